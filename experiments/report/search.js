(() => {
  const most = 100;
  const form = document.getElementById("search");
  const [list, status] = [form.querySelector("ol"), form.querySelector("[role=status]")];
  const fields = form.elements;
  const plain = text => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const data = JSON.parse(document.getElementById("sought").textContent);
  for (const one of data) {
    one.words = plain([one.item, one.kind, one.verdict, one.text].join(" "));
  }

  const element = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.textContent = text;
    return made;
  };

  // The text with the sought words marked; what is sought is never read as markup.
  const marked = (text, words) => {
    const made = element("p", "", "");
    const escaped = words.map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const parts = words.length ? text.split(new RegExp(`(${escaped.join("|")})`, "giu")) : [text];
    parts.forEach((part, i) => made.append(i % 2 ? element("mark", "", part) : part));
    return made;
  };

  const shown = (one, words) => {
    const line = element("li", "", "");
    const link = element("a", "", one.item);
    link.href = one.page;
    line.append(link, " ", element("span", "soft", one.kind));
    if (one.verdict) {
      line.append(" ", element("span", `verdict ${one.verdict.replace(" ", "-")}`, one.verdict));
    }
    line.append(marked(one.text, words));
    return line;
  };

  const search = () => {
    const words = plain(fields.words.value).split(/\s+/).filter(Boolean);
    const verdict = fields.verdict.value;
    const asked = words.length > 0 || verdict !== "";
    const found = data.filter(one => asked && (!verdict || one.verdict === verdict)
      && words.every(word => one.words.includes(word)));
    list.replaceChildren(...found.slice(0, most).map(one => shown(one, words)));
    const more = found.length > most ? `, the first ${most} here` : "";
    status.textContent = asked ? `${found.length} found${more}` : "";
  };

  form.hidden = false;
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", search);
  // A browser that goes back fills in what was sought before.
  addEventListener("pageshow", search);
})();

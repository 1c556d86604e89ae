"use strict";

// What an address names is unfolded, with whatever it stands in.
function unfold() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  let folded = place.closest("details:not([open])");
  if (!folded) return;
  for (; folded; folded = place.closest("details:not([open])")) folded.open = true;
  place.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

for (const link of document.querySelectorAll("nav.narrow a")) {
  link.addEventListener("click", () => { link.closest("details").open = false; });
}

// Without a clipboard the text is selected, ready to be copied by hand.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
  });
}

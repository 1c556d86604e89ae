"""The report as text, and as pages that are opened from their files in a browser."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest

from experiments import __main__ as runner
from experiments.catalogue import all_experiments
from experiments.kept import Entry, keep_run, run_path, write_outcome
from experiments.public_prior import example_one
from experiments.registry import VERDICTS, Comparison, Outcome, Table
from experiments.report.mathematics import to_mathml
from experiments.report.pages import write_report
from tests.browser import Page, chromium, complaints, requested, wait_for
from tests.experiments.comparing import exit_code

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

NAMES = ("majority-figure-9", "roo-figure-1", "prior-example-1")
EXAMPLE = example_one.run
LEAST_CONTRAST = 4.5
HOSTILE = """</script><script>alert(1)</script><img src=x onerror=alert(1)> "' &"""
HOSTILE += " {{ 1234567 * 11 }}"
FORMULA = r"\min_{x} \frac{a < b}{c} \quad \text{s.t. } x \le e^{\varepsilon}"

# Every element with text of its own, its colour, and the first opaque colour behind it.
_TEXTS = """
for (const part of document.querySelectorAll("details")) part.open = true;
const opaque = value => !["transparent", "rgba(0, 0, 0, 0)"].includes(value);
const found = [];
for (const node of document.body.querySelectorAll("*")) {
  const own = [...node.childNodes].some(c => c.nodeType === 3 && c.textContent.trim());
  if (!own || !node.getClientRects().length) continue;
  let behind = node;
  while (behind && !opaque(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
  found.push([
    node.getAttribute("class") || node.tagName.toLowerCase(), getComputedStyle(node).color,
    behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)",
  ]);
}
return found;
"""
_PICTURES = "return [...document.images].every(i => i.complete && i.naturalWidth > 0)"
_WIDTHS = """
const page = document.documentElement;
return [window.innerWidth, page.clientWidth, page.scrollWidth];
"""


def part_of(page: Page, start: str, end: str = "") -> str:
    """The words of a page from one phrase up to another."""
    after = page.words.split(start, 1)[1]
    return after.split(end, 1)[0] if end else after


def luminance(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)`` as WCAG 2 defines it."""
    match = re.fullmatch(r"rgb\((\d+), (\d+), (\d+)\)", colour)
    assert match, colour
    channels = [int(number) / 255 for number in match.groups()]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def run_into(folder: Path, *names: str) -> None:
    assert exit_code(runner.main, ["run", *names, "--out", str(folder), "--workers", "1"]) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    run_into(out, *NAMES)
    return out


@pytest.fixture(scope="module")
def formula_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every part that a page can have."""
    out = tmp_path_factory.mktemp("formula")
    full = entry(*VERDICTS, mathematics=(FORMULA,))
    assert full.outcome is not None
    outcome = replace(full.outcome, data="coins in the format of coins", generated=True)
    write_outcome(Entry(EXAMPLE, EXAMPLE.run(EXAMPLE.quick), 1.0), out)
    written([replace(full, outcome=outcome)], out)
    return out / f"{EXAMPLE.name}.html"


def written(entries: list[Entry], folder: Path) -> Page:
    """The index of a folder after a run of some experiments."""
    for each in entries:
        keep_run(each, folder)
    return page_of(write_report(entries, folder).stem, folder)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without what it keeps for itself."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def page_of(name: str, folder: Path) -> Page:
    return Page((folder / f"{name}.html").read_text(encoding="utf-8"))


def entry(*verdicts: str, **fields: Any) -> Entry:
    """An entry whose comparisons have these verdicts."""
    said = tuple(Comparison(f"claim {v}", f"ours <{v}>", v, f"proof {v}") for v in verdicts)
    table = Table("A caption.", ("m", "word"), ((1, "short"), (2, None)))
    outcome = Outcome({"t": table}, said)
    return Entry(replace(EXAMPLE, **fields), outcome, 1.25)


def test_every_link_leads_somewhere(folder: Path) -> None:
    pages = {path.name: page_of(path.stem, folder) for path in folder.glob("*.html")}
    assert set(pages) == {"index.html", *(f"{name}.html" for name in NAMES)}
    files = set(contents(folder))
    linked = set()
    for name, page in pages.items():
        assert len(page.values("id")) == len(set(page.values("id")))
        for link in page.values("href", "src"):
            address = urlsplit(link)
            assert not address.scheme
            assert not address.netloc
            target = unquote(address.path) or name
            linked.add(target)
            assert target in files
            if address.fragment:
                assert address.fragment in pages[target].values("id")
    assert {path for path in files if not path.endswith(".run.json")} == linked
    inside = pages["index.html"].values("href")
    assert {"#paper-darrm", "#paper-public-prior", "#disagreements"} <= set(inside)


def test_the_pages_hold_what_the_records_say(folder: Path) -> None:
    index = page_of("index", folder).words
    for name in NAMES:
        record, words = json.loads((folder / f"{name}.json").read_text()), page_of(name, folder)
        assert record["comparisons"]
        for comparison in record["comparisons"]:
            keys = {"claim", "ours", "verdict", "certificate", "rule", "statement"}
            assert set(comparison) == keys
            for key in keys - {"statement"}:
                assert comparison[key] in words.words
            parts = comparison["verdict"] in ("refuted", "differs", "sharper")
            assert (comparison["claim"] in index) == parts
            assert not parts or comparison["ours"] in index


def test_pages_are_in_order_for_those_who_hear_them(folder: Path) -> None:
    for path in folder.glob("*.html"):
        page = page_of(path.stem, folder)
        levels = [int(tag[1]) for tag, _ in page.elements if tag in ("h1", "h2", "h3", "h4")]
        assert levels.count(1) == 1
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        assert len(page.all("main")) == 1
        assert all("aria-label" in nav for nav in page.all("nav"))
        assert all("scope" in head for head in page.all("th"))
        assert all("alt" in image for image in page.all("img"))
        sections = [part["aria-labelledby"] for part in page.all("section")]
        assert set(sections) <= set(page.values("id"))
        assert page.all("html") == [{"lang": "en"}]


def test_disagreements_come_first_by_how_serious_they_are(tmp_path: Path) -> None:
    index = written(
        [entry("sharper", "agrees"), entry("misprint", "differs", "refuted", name="b")], tmp_path
    )
    summary = part_of(index, "5 printed numbers and statements were compared", "What the verdicts")
    places = [summary.index(f"claim {v}") for v in ("refuted", "misprint", "differs", "sharper")]
    assert places == sorted(places)
    assert "claim agrees" not in summary
    assert "1 agree 1 differ 1 refuted 1 misprint 1 sharper" in summary
    assert "1 agree 1 sharper" in part_of(index, "Public prior", "5 printed numbers")


def test_a_statement_counts_once_however_many_items_judge_it(tmp_path: Path) -> None:
    def judging(name: str, *verdicts: str) -> Entry:
        said = tuple(
            Comparison(f"claim of {name}", "o.", verdict, "p", "the rule", "theorem 2")
            for verdict in verdicts
        )
        return Entry(replace(EXAMPLE, name=name, item=name), Outcome({}, said), 1.0)

    index = written([judging("a", "agrees", "refuted"), judging("b", "refuted")], tmp_path)
    summary = part_of(index, "Where the papers and this run part 1 printed", "What the verdicts")
    assert "1 refuted" in summary
    assert "agree" not in summary
    assert summary.count("claim of") == 1
    assert summary.count("Rule: the rule.") == 1
    # Each item is linked at the judgement that the table shows.
    assert {"a.html#statement-2", "b.html#statement-1"} <= set(index.values("href"))
    assert page_of("a", tmp_path).words.count("Rule: the rule.") == 2


def test_one_experiment_renews_its_page_and_the_index_only(tmp_path: Path) -> None:
    run_into(tmp_path, "roo-figure-1", "prior-example-1")
    before, page = contents(tmp_path), tmp_path / "roo-figure-1.html"
    written_at = page.stat().st_mtime_ns
    outcome = EXAMPLE.run(EXAMPLE.quick)
    write_outcome(Entry(EXAMPLE, outcome, 1.0), tmp_path)
    index = written([Entry(EXAMPLE, outcome, 123.0)], tmp_path)
    assert {"roo-figure-1.html", "prior-example-1.html"} <= set(index.values("href"))
    changed = {name for name, content in contents(tmp_path).items() if before[name] != content}
    assert changed == {"index.html", "prior-example-1.html", "prior-example-1.run.json"}
    assert page.stat().st_mtime_ns == written_at


def test_an_interrupted_run_and_unreadable_files_are_told(tmp_path: Path) -> None:
    outcome = EXAMPLE.run(EXAMPLE.quick)
    write_outcome(Entry(EXAMPLE, outcome, 1.0), tmp_path)
    written([Entry(EXAMPLE, outcome, 1.0)], tmp_path)
    assert "Interrupted" not in page_of(EXAMPLE.name, tmp_path).words
    write_outcome(Entry(EXAMPLE, outcome, 1.0), tmp_path)
    assert not run_path(EXAMPLE.name, tmp_path).exists()
    assert "interrupted" in written([], tmp_path).words
    page = page_of(EXAMPLE.name, tmp_path).words
    assert "Interrupted." in page
    assert "interrupted, time unknown" in page
    assert len(page_of(EXAMPLE.name, tmp_path).all("img")) == 1
    for left in (b"", b"half of it"):
        (tmp_path / f"{EXAMPLE.name}.png").write_bytes(left)
        assert written([], tmp_path).all("img") == []
        page = page_of(EXAMPLE.name, tmp_path)
        assert page.all("img") == []
        assert "The figure is missing; run it again." in page.words
    record = tmp_path / f"{EXAMPLE.name}.json"
    other_type = json.dumps(json.loads(record.read_text()) | {"full": "yes"})
    for content in ("{", "[]", "{}", '{"tables": 3}', "\0", other_type):
        record.write_text(content)
        assert "cannot be read" in written([], tmp_path).words
        page = page_of(EXAMPLE.name, tmp_path)
        assert "its files cannot be read; run it again." in page.words
        assert page.all("img") == []


def everywhere(text: str, formula: str) -> list[Entry]:
    """An entry and a failure with a text in every field that a page shows."""
    experiment = replace(
        EXAMPLE, paper=text, item=text, summary=text, published=text, mathematics=(formula,)
    )
    said = tuple(Comparison(text, text, verdict, text, text, text) for verdict in VERDICTS)
    table = Table(text, (text, "x"), ((text, 1.5), (None, 2.5)))
    outcome = Outcome({text.replace("/", "|"): table}, said, text, True)
    settings = {text: text, "listed": [text], "named": {text: text}}
    shown = Entry(
        experiment,
        outcome,
        1.0,
        when=text,
        configuration=settings,
        versions={text: text, "dpopt": text},
        style=text,
        commit=text,
        own_parameters=True,
        reused=True,
    )
    broken = Entry(replace(experiment, name=f"b{text}".replace("/", "|")), None, 1.0, text)
    return [shown, broken]


def test_text_is_escaped_in_every_field(tmp_path: Path) -> None:
    plain, hostile = tmp_path / "plain", tmp_path / "hostile"
    for folder, text in ((plain, "word"), (hostile, HOSTILE)):
        folder.mkdir()
        formula = text.replace("{", "").replace("}", "")
        written(everywhere(text, rf"\text{{{formula}}}"), folder)
    written_pages = (
        [page_of(path.stem, folder) for path in sorted(folder.glob("*.html"))]
        for folder in (plain, hostile)
    )
    for first, second in zip(*written_pages, strict=True):
        # The same elements with the same attributes: none of the text became markup.
        assert [(tag, list(a)) for tag, a in first.elements if tag != "mtext"] == [
            (tag, list(a)) for tag, a in second.elements if tag != "mtext"
        ]
        assert HOSTILE in second.words
        assert "13580237" not in second.words.replace(HOSTILE, "")


def test_every_experiment_s_mathematics_can_be_set() -> None:
    for experiment in all_experiments().values():
        for formula in map(to_mathml, experiment.mathematics):
            # A command or an environment that is not known would stand there as it was written.
            assert not {"\\", "&"} & set(unescape(formula.split(">", 1)[1]))


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_pages_read_well_in_a_browser(
    folder: Path, formula_page: Path, tmp_path: Path, dark: bool, width: int
) -> None:
    pages = (folder / "index.html", folder / f"{NAMES[0]}.html", formula_page)
    classes: set[str] = set()
    with chromium(tmp_path / "profile", dark=dark, size=(width, 900)) as driver:
        for page in pages:
            shot = tmp_path / f"{page.stem}.png"
            classes |= read_well(driver, page, shot, dark=dark, width=width)
    spoken = {"agrees", "differs", "refuted", "sharper", "not-comparable", "soft", "summary"}
    assert spoken <= classes
    assert {"banner", "mi", "mo", "td", "p", "lead"} <= classes


def read_well(driver: Chrome, page: Path, shot: Path, *, dark: bool, width: int) -> set[str]:
    """Look at a page; return the classes of what is written on it."""
    driver.get(page.as_uri())
    wait_for(driver, _PICTURES)
    asked = requested(driver)
    assert asked
    assert all(address.startswith(page.parent.as_uri() + "/") for address in asked)
    assert complaints(driver) == []

    texts = driver.execute_script(_TEXTS)
    assert [text for text in texts if contrast(text[1], text[2]) < LEAST_CONTRAST] == []
    assert (luminance(texts[0][2]) < 0.5) == dark
    # Colours of figures have a meaning: no page changes them, and they stand on white.
    looks = "i => [getComputedStyle(i).filter, getComputedStyle(i).backgroundColor]"
    pictures = driver.execute_script(f"return [...document.images].map({looks})")
    assert pictures
    assert all(look == ["none", "rgb(255, 255, 255)"] for look in pictures)

    outer, inner, whole = driver.execute_script(_WIDTHS)
    assert outer == width
    assert whole <= inner
    image = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    shot.write_bytes(base64.b64decode(image["data"]))
    assert shot.stat().st_size > 20_000
    return {word for names, *_ in texts for word in names.split()}


def sought(driver: Chrome, words: str, verdict: str = "") -> list[str]:
    """The texts that the search shows."""
    script = """
    const [words, verdict] = arguments, form = document.getElementById("search");
    form.elements.words.value = words;
    form.elements.verdict.value = verdict;
    form.dispatchEvent(new Event("input"));
    return [...form.querySelectorAll("li")].map(line => line.textContent);
    """
    return driver.execute_script(script, words, verdict)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chrome]:
    with chromium(tmp_path / "profile") as driver:
        yield driver


def test_the_search_works_from_a_file(browser: Chrome, folder: Path) -> None:
    browser.get((folder / "index.html").as_uri())
    records = {name: json.loads((folder / f"{name}.json").read_text()) for name in NAMES}
    said = [c for record in records.values() for c in record["comparisons"]]
    for verdict in VERDICTS:
        claims = sorted(c["claim"] for c in said if c["verdict"] == verdict)
        found = sought(browser, "", verdict)
        assert len(found) == len(claims)
        assert all(any(claim in text for text in found) for claim in claims)
    assert sought(browser, "") == []
    claim = records["prior-example-1"]["comparisons"][0]["claim"]
    words = " ".join(claim.upper().split()[:4])
    assert any(claim in text for text in sought(browser, words))
    assert sought(browser, "nowhere-to-be-found") == []
    status = browser.find_element("css selector", "#search [role=status]")
    assert status.text == "0 found"
    # What is sought is text: neither a pattern nor markup.
    for hostile in (".*", "<img src=x onerror=alert(1)>", "(", "\\"):
        assert all(hostile in text for text in sought(browser, hostile))
    assert complaints(browser) == []

    field = browser.find_element("css selector", "#search input")
    browser.execute_script("arguments[0].value = ''", field)
    sought(browser, "", "")
    field.send_keys("roo-figure-1")
    links = browser.find_elements("css selector", "#search li a")
    assert [link.get_attribute("href") for link in links] == [
        (folder / "roo-figure-1.html").as_uri()
    ]
    links[0].click()
    assert browser.current_url == (folder / "roo-figure-1.html").as_uri()
    assert requested(browser)
    assert all(address.startswith("file:") for address in requested(browser))

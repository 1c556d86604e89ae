"""The report as text, and as a page that is opened from its file in a browser."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments import __main__ as runner
from experiments.kept import Entry, keep_run, kept_entry, run_path, write_outcome
from experiments.public_prior import example_one
from experiments.registry import Comparison, Outcome, Table
from experiments.report import write_report
from tests.browser import chromium, complaints, requested

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

NAMES = ("majority-figure-9", "roo-figure-1", "prior-example-1")
EXAMPLE = example_one.EXPERIMENT
LEAST_CONTRAST = 4.5

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
    node.className || node.tagName.toLowerCase(), getComputedStyle(node).color,
    behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)",
  ]);
}
return found;
"""


class Page(HTMLParser):
    """Identifiers, addresses and tags of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            elif name in ("href", "src") and value:
                self.links.append(value)

    def handle_data(self, data: str) -> None:
        self.text += data


def channels(colour: str) -> tuple[float, float, float]:
    """Red, green and blue of ``rgb(r, g, b)``, each in [0, 1]."""
    kind, _, numbers = colour.rstrip(")").partition("(")
    assert kind == "rgb", colour
    red, green, blue = (float(part) / 255 for part in numbers.split(","))
    return red, green, blue


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    with pytest.raises(SystemExit) as caught:
        runner.main(["run", *NAMES, "--out", str(out)])
    assert caught.value.code == 0
    return out


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "index.html").read_text(encoding="utf-8"))


def written(entries: list[Entry], folder: Path) -> str:
    for each in entries:
        keep_run(each, folder)
    return write_report(entries, folder).read_text(encoding="utf-8")


def entry(*verdicts: str, **fields: Any) -> Entry:
    """An entry whose comparisons have these verdicts."""
    said = tuple(Comparison(f"claim {v}", f"ours <{v}>", v, f"proof {v}") for v in verdicts)
    table = Table("A caption.", ("m", "word"), ((1, "short"), (2, None)))
    outcome = Outcome({"t": table}, ("a finding & more",), said)
    return Entry(replace(EXAMPLE, **fields), outcome, 1.25)


def test_known_contrasts() -> None:
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("rgb(119, 119, 119)", "rgb(255, 255, 255)") == pytest.approx(4.48, abs=0.005)
    assert contrast("rgb(10, 20, 30)", "rgb(10, 20, 30)") == 1


def test_every_link_leads_somewhere(folder: Path, page: Page) -> None:
    inside = [link[1:] for link in page.links if link.startswith("#")]
    assert len(page.ids) == len(set(page.ids))
    assert set(inside) <= set(page.ids)
    assert {*NAMES, "paper-darrm", "paper-public-prior"} <= set(inside)
    files = {link for link in page.links if not link.startswith("#")}
    assert files
    assert files <= {path.name for path in folder.iterdir()}
    assert "script" not in page.tags


def test_the_page_holds_what_the_records_say(folder: Path, page: Page) -> None:
    for name in NAMES:
        record = json.loads((folder / f"{name}.json").read_text())
        assert record["comparisons"]
        for comparison in record["comparisons"]:
            keys = {"claim", "ours", "verdict", "certificate", "rule", "statement"}
            assert set(comparison) == keys
            # Once at the item, and once more in the summary if paper and run part.
            times = 2 if comparison["verdict"] in ("refuted", "differs", "sharper") else 1
            assert page.text.count(comparison["claim"]) >= times
            assert page.text.count(comparison["ours"]) >= times
        assert all(finding in page.text for finding in record["findings"])


def test_disagreements_come_first_by_how_serious_they_are(tmp_path: Path) -> None:
    text = written([entry("sharper", "agrees"), entry("differs", "refuted", name="b")], tmp_path)
    summary = Page(text.split('id="disagreements"')[1].split('id="paper-')[0]).text
    places = [summary.index(f"claim {v}") for v in ("refuted", "differs", "sharper")]
    assert places == sorted(places)
    assert "claim agrees" not in summary
    assert "4 printed numbers and statements were compared" in summary
    assert "1\N{NO-BREAK SPACE}agree, 1\N{NO-BREAK SPACE}differ, 1" in summary
    index = Page(text.split("Items by paper")[1].split('id="disagreements"')[0]).text
    assert "1\N{NO-BREAK SPACE}agree, 1\N{NO-BREAK SPACE}sharper" in index


def test_without_disagreements_there_is_no_summary(tmp_path: Path) -> None:
    text = written([entry("agrees"), entry(name="b")], tmp_path)
    assert "disagreements" not in text
    assert text.count('class="compare"') == 1


def test_a_statement_counts_once_however_many_items_judge_it(tmp_path: Path) -> None:
    def judging(name: str, *verdicts: str) -> Entry:
        said = tuple(
            Comparison(f"claim of {name}", "o.", verdict, "p", "the rule", "theorem 2")
            for verdict in verdicts
        )
        return Entry(replace(EXAMPLE, name=name, item=name), Outcome({}, (), said), 1.0)

    text = written([judging("a", "agrees", "refuted"), judging("b", "refuted")], tmp_path)
    summary = text.split('id="disagreements"')[1].split('id="paper-')[0]
    assert "1 printed numbers and statements" in summary
    assert "1&nbsp;refuted" in summary
    assert "agree<" not in summary
    assert summary.count("claim of") == 1
    assert [f'href="#{name}"' in summary for name in "ab"] == [True, True]
    assert text.count("Rule: the rule.") == 4


def test_not_comparable_is_no_disagreement(tmp_path: Path) -> None:
    text = written([entry("not comparable", "agrees")], tmp_path)
    assert "disagreements" not in text
    assert '<td class="verdict not-comparable"' in text


def run_into(folder: Path, *names: str) -> str:
    with pytest.raises(SystemExit) as caught:
        runner.main(["run", *names, "--out", str(folder), "--workers", "1"])
    assert caught.value.code == 0
    return (folder / "index.html").read_text(encoding="utf-8")


def test_one_experiment_leaves_the_others_in_the_report(tmp_path: Path) -> None:
    both = run_into(tmp_path, "roo-figure-1", "prior-example-1")
    record = run_path("roo-figure-1", tmp_path).read_bytes()
    one = run_into(tmp_path, "prior-example-1")
    assert run_path("roo-figure-1", tmp_path).read_bytes() == record
    for text in (both, one):
        page = Page(text)
        assert {"roo-figure-1", "prior-example-1"} <= set(page.ids)
        assert page.text.count("Run: quick, 20") == 2
    # What a folder keeps looks as it did when it was run.
    section = both.split('id="roo-figure-1"')[1].split("<h2")[0]
    again = one.split('id="roo-figure-1"')[1].split("<h2")[0]
    listed = "<details><summary>parameters"
    assert again.split(listed)[0] == section.split(listed)[0]


def test_what_is_kept_says_with_which_configuration_it_was_run(tmp_path: Path) -> None:
    config = replace(EXAMPLE.config, epsilon=1.25)
    other = replace(EXAMPLE, config=config, quick=config)
    outcome = other.run(config, lambda: None)
    write_outcome(Entry(other, outcome, 2.5, full=True), tmp_path)
    keep_run(Entry(other, outcome, 2.5, full=True), tmp_path)
    kept = kept_entry(EXAMPLE, tmp_path)
    assert kept is not None
    assert (kept.configuration["epsilon"], kept.full, kept.seconds) == (1.25, True, 2.5)
    assert kept.outcome == outcome
    text = written([], tmp_path)
    assert "<dt>epsilon</dt><dd>1.25</dd>" in text
    assert "Run: full, 20" in text


def test_an_interrupted_run_and_unreadable_files_are_told(tmp_path: Path) -> None:
    outcome = EXAMPLE.run(EXAMPLE.quick, lambda: None)
    write_outcome(Entry(EXAMPLE, outcome, 1.0), tmp_path)
    written([Entry(EXAMPLE, outcome, 1.0)], tmp_path)
    write_outcome(Entry(EXAMPLE, outcome, 1.0), tmp_path)
    assert not run_path(EXAMPLE.name, tmp_path).exists()
    assert "interrupted, time unknown" in written([], tmp_path)
    record = tmp_path / f"{EXAMPLE.name}.json"
    for content in ("{", "[]", "{}", '{"tables": 3}', "\0"):
        record.write_text(content)
        assert "its files cannot be read; run it again." in written([], tmp_path)


def test_a_failure_stays_until_the_next_run(tmp_path: Path) -> None:
    outcome = EXAMPLE.run(EXAMPLE.quick, lambda: None)
    write_outcome(Entry(EXAMPLE, outcome, 1.0), tmp_path)
    written([Entry(EXAMPLE, None, 0.5, "no optimum")], tmp_path)
    assert "no optimum" in written([], tmp_path)
    text = written([Entry(EXAMPLE, outcome, 1.0)], tmp_path)
    assert "no optimum" not in text


def test_text_is_escaped(tmp_path: Path) -> None:
    text = written([entry("refuted", item="<b>item</b>", published="a < b.")], tmp_path)
    assert "<b>item</b>" not in text
    assert "&lt;b&gt;item&lt;/b&gt;" in text
    assert "a finding &amp; more" in text
    assert "ours &lt;refuted&gt;" in text
    assert "The paper: a &lt; b. Time: 1.2 s. Run: quick, 20" in text


def test_long_tables_and_long_lists_fold(tmp_path: Path) -> None:
    rows = tuple((i, "w" * 60 if i else None) for i in range(1_000))
    tables = {
        "many": Table("Many.", ("i", "said"), rows),
        "few": Table("Few.", ("i", "as_said"), rows[:3]),
    }
    outcome = Outcome(tables, tuple(f"finding {i}" for i in range(30)))
    text = written([Entry(EXAMPLE, outcome, 0.0)], tmp_path)
    assert "<details><summary>Many. (1000 rows, the first 300 here)" in text
    assert "<details open><summary>Few. (3 rows)" in text
    assert "<details><summary>30 findings</summary>" in text
    assert text.count("<tr><td>") == 303
    assert '<td class="long">–</td>' in text
    assert '<th class="long">as_<wbr>said</th>' in text


def test_a_failure_is_shown_where_it_belongs(tmp_path: Path) -> None:
    broken = Entry(replace(EXAMPLE, name="broken"), None, 0.5, "no optimum <was> found")
    text = written([entry("agrees"), broken], tmp_path)
    assert text.count("no optimum &lt;was&gt; found") == 1
    assert '<span class="failed">failed</span>' in text
    assert 'src="broken.png"' not in text


@pytest.fixture(params=[False, True], ids=["light", "dark"])
def dark(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(params=[1280, 400])
def width(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def opened(folder: Path, tmp_path: Path, dark: bool, width: int) -> Iterator[Chrome]:
    """The report in a browser of its own, opened from its file."""
    with chromium(tmp_path / "profile", dark=dark) as driver:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get((folder / "index.html").as_uri())
        yield driver


def test_the_page_reads_well_in_a_browser(
    opened: Chrome, folder: Path, tmp_path: Path, dark: bool, width: int
) -> None:
    images = opened.execute_script(
        "return [...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth])"
    )
    assert len(images) == len(NAMES)
    assert all(complete and natural > 0 for complete, natural, _ in images)
    # On a narrow screen a figure scrolls, so that its text does not shrink to nothing.
    assert min(shown for *_, shown in images) >= 600
    asked = requested(opened)
    assert asked
    assert all(address.startswith(folder.as_uri() + "/") for address in asked)
    assert complaints(opened) == []

    texts = opened.execute_script(_TEXTS)
    classes = " ".join(name for name, *_ in texts).split()
    assert {"agrees", "differs", "refuted", "soft", "summary", "td", "p"} <= set(classes)
    faint = [text for text in texts if contrast(text[1], text[2]) < LEAST_CONTRAST]
    assert faint == []
    assert (luminance(texts[0][2]) < 0.5) == dark

    outer, inner, whole = opened.execute_script(
        "const page = document.documentElement;"
        "return [window.innerWidth, page.clientWidth, page.scrollWidth]"
    )
    assert outer == width
    assert whole <= inner
    lost = opened.execute_script(
        "return [...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash.slice(1))"
        ".filter(id => !document.getElementById(id))"
    )
    assert lost == []
    shot = opened.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    picture = tmp_path / f"report-{'dark' if dark else 'light'}-{width}.png"
    picture.write_bytes(base64.b64decode(shot["data"]))
    assert picture.stat().st_size > 20_000

    opened.execute_script("arguments[0].click()", opened.find_element("css selector", "nav li a"))
    assert opened.current_url.endswith(f"#{NAMES[0]}")
    place = "return document.querySelector(':target').getBoundingClientRect().top"
    assert 0 <= opened.execute_script(place) < 100


def test_on_paper_it_is_light_and_whole(folder: Path, tmp_path: Path) -> None:
    with chromium(tmp_path / "profile", dark=True) as driver:
        # A sheet of A4 with margins of a centimetre.
        size = {"width": 718, "height": 1047, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get((folder / "index.html").as_uri())
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        media = {"media": "print", "features": [dark]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        texts = driver.execute_script(_TEXTS)
        assert [t for t in texts if contrast(t[1], t[2]) < LEAST_CONTRAST] == []
        assert luminance(texts[0][2]) == 1.0
        filters = driver.execute_script(
            "return [...document.images].map(i => getComputedStyle(i).filter)"
        )
        assert set(filters) == {"none"}
        hidden = driver.execute_script(
            "return [...document.querySelectorAll('.scroll')]"
            ".filter(part => part.scrollHeight > part.clientHeight + 2).length"
        )
        assert hidden == 0
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= size["width"]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [dark]})
        driver.refresh()
        sheet = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert sheet.startswith(b"%PDF")
    assert 3 <= sheet.count(b"/Type /Page\n") <= 40


def test_a_missing_figure_would_be_noticed(folder: Path, tmp_path: Path) -> None:
    """What the test above looks at does change when a figure is missing."""
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    (copy / "roo-figure-1.png").unlink()
    with chromium(tmp_path / "profile") as driver:
        driver.get((copy / "index.html").as_uri())
        widths = driver.execute_script("return [...document.images].map(i => i.naturalWidth)")
        assert sorted(width > 0 for width in widths) == [False, True, True]
        assert any("roo-figure-1.png" in line for line in complaints(driver))

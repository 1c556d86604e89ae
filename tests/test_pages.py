"""The examples of README, pages and docstrings run, and print what stands beside them.

Pages state few other results; links lead to files. The README's two first commands are what CI
calls; its patterns name experiments that there are.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import dpopt
from dpopt import lp, majority, privacy, public_prior, roo
from experiments.__main__ import main as run_experiments
from experiments.catalogue import all_experiments, matching
from experiments.parameters import parameters_of
from tests.pages import ROOT, Page, differs, failures, printed

NAMES = (
    *("README", "docs/mechanisms", "docs/tools", "docs/your_program", "docs/closed_forms"),
    *("docs/referee", "docs/releases"),
)
PAGES = {name: Page.of(f"{name}.md") for name in NAMES}
SCRIPTS = [
    pytest.param(script, id=f"{name}-{number}")
    for name, page in PAGES.items()
    for number, script in enumerate(page.scripts)
]
LINES = [line for page in PAGES.values() for line in page.lines]
FINDINGS = sorted(path.stem for path in (ROOT / "docs/findings").glob("*.md"))
FOR_CONTRIBUTORS = [".github/CONTRIBUTING.md", "docs/releasing.md", "docs/promise.md"]
PAPERS = [f"docs/papers/{path.name}" for path in sorted(ROOT.glob("docs/papers/*.md"))]
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_CELLS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("docs", "docs/findings")
    for path in (ROOT / folder).glob("*.md")
    if CELL.search(path.read_text(encoding="utf-8"))
)


def text_of(name: str | Path) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.every_case
@pytest.mark.slow_after(2)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_the_decimals_beside_it(
    script: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What writes files runs twice, as a reader does who tries it again in the same folder."""
    scope: dict = {}
    exec(compile(script, "page", "exec"), scope)
    assert "design" not in scope or scope["design"].certificate.slack >= 0
    out = capfd.readouterr().out
    assert out
    found = [float(number) for number in re.findall(r"\d+\.\d+(?:e-?\d+)?", out)]
    comments = " ".join(line.partition("#")[2] for line in script.splitlines())
    for number in re.findall(r"\d+\.\d+", comments):
        unit = 10.0 ** -len(number.partition(".")[2])
        assert any(abs(value - float(number)) <= unit for value in found), number
    if list(tmp_path.iterdir()):
        exec(compile(script, "page", "exec"), {})


@pytest.mark.every_case
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "docs/releases"))
        for name, page in PAGES.items()
        if page.sessions
    ],
)
def test_sessions_one_after_the_other(name: str) -> None:
    assert failures(PAGES[name].sessions) == ""


def test_the_rule_of_the_last_sentence_on_closed_forms_is_not_private() -> None:
    assert not dpopt.design(dpopt.RevealOrObscure(7, 2, 0.25, rule="journal")).private


@pytest.mark.parametrize("name", ["docs/your_program", "docs/referee"])
def test_commands_print_what_the_page_says(name: str) -> None:
    assert PAGES[name].commands
    for command, expected in PAGES[name].commands:
        if command.startswith("dpopt "):
            assert differs(expected, printed(command)) == "", command


@pytest.mark.parametrize(
    ("word", "before", "after", "files"),
    [
        ("verifier=True", "It prints:\n\n```\n", "\n```", {"x.json", "x.proof.json", "verify.py"}),
        ("cvxpy", "It prints `", "`:", set()),
    ],
)
def test_the_readme_shows_what_its_examples_print(
    word: str, before: str, after: str, files: set[str], capfd: pytest.CaptureFixture[str]
) -> None:
    (script,) = (script for script in PAGES["README"].scripts if word in script)
    exec(compile(script, "README.md", "exec"), {})
    assert before + capfd.readouterr().out.strip("\n") + after in text_of("README.md")
    assert {path.name for path in Path().iterdir()} == files


@pytest.mark.every_case
@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", WITH_CELLS)
def test_cells_run(name: str) -> None:
    scope: dict = {}
    for cell in CELL.findall(text_of(name)):
        exec(compile(cell, name, "exec"), scope)


def test_what_the_referee_reads() -> None:
    """The page's files, checked by their own verify.py, print what is shown there."""
    (saved,) = PAGES["docs/referee"].scripts
    exec(compile(saved, "docs/referee.md", "exec"), {})
    ((command, expected),) = (
        each for each in PAGES["docs/referee"].commands if each[0].startswith("python ")
    )
    ran = [sys.executable, "-I", *shlex.split(command)[1:]]
    out = subprocess.run(ran, capture_output=True, text=True, check=True).stdout
    number = r"\d+(?:\.\d+)?(?:e-\d+)?"
    assert re.sub(number, "N", out) == re.sub(number, "N", expected)
    # The gap is what rounding leaves, and another solver's basis leaves another.
    (*found, gap), (*shown, _) = (
        [float(n) for n in re.findall(number, text)] for text in (out, expected)
    )
    assert found == pytest.approx(shown, abs=1e-12)
    assert gap < 1e-12


@pytest.mark.slow
def test_command_line_examples_run() -> None:
    pages = (PAGES["docs/mechanisms"], Page.of("docs/quickstart.md"), PAGES["docs/tools"])
    commands = [line for page in pages for line in page.lines if line.startswith("dpopt ")]
    assert len(commands) > 10
    for command in commands:
        out = printed(command)
        assert out
        assert "[exit code" not in out, out
    assert Path("gamma.png").exists()


@pytest.mark.slow
def test_commands_of_the_experiments_run(capfd: pytest.CaptureFixture[str]) -> None:
    start = ".venv/bin/python -m experiments "
    given = [shlex.split(line.removeprefix(start)) for line in LINES if line.startswith(start)]
    assert [arguments[0] for arguments in given] == ["list", "run", "run", "show", "run"]
    for arguments in given:
        if "--full" in arguments:
            # Minutes; only whether there are such experiments.
            assert len(matching([arguments[1]], all_experiments())) > 1
            continue
        with pytest.raises(SystemExit) as caught:
            run_experiments(arguments)
        assert caught.value.code == 0
        assert capfd.readouterr().out
    assert {"majority-figure-2.pdf", "index.html"} <= {path.name for path in Path("mine").iterdir()}


def test_links_lead_to_files() -> None:
    for page in ("README.md", *FOR_CONTRIBUTORS):
        links = re.findall(r"\]\(([^)#:]+)\)", text_of(page))
        assert links or page != "README.md"
        assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_experiments_that_pages_name_are_there() -> None:
    pages = text_of("README.md") + text_of("docs/tools.md")
    given = re.findall(r"experiments run ([\w-]+) --set (\w+)=", pages)
    assert {"majority-figure-2", "prior-figure-4"} <= {name for name, _ in given}
    for name, field in given:
        assert field in parameters_of(all_experiments()[name])
    for name in FINDINGS:
        text = text_of(f"docs/findings/{name}.md")
        commands = re.findall(r"python -m experiments run ([\w-]+)", text)
        assert set(commands) <= set(all_experiments())
        assert commands or name in ("index", "kernels")


def test_what_contributors_are_to_run_is_there() -> None:
    workflows = sorted(ROOT.glob(".github/workflows/*.yml"))
    assert len(workflows) == 3
    text = "".join(map(text_of, [*FOR_CONTRIBUTORS, *workflows]))
    scripts = {*re.findall(r"(?<=[ \n`])\.ci/\w+", text)}
    assert {".ci/run", ".ci/nightly", ".ci/build", ".ci/installed"} == scripts
    assert all((ROOT / script).stat().st_mode & 0o111 for script in scripts)
    modules = {*re.findall(r"-m\s+(tests(?:\.\w+)+)", text)}
    assert {"tests.public_surface", "tests.golden"} <= modules
    assert all(importlib.util.find_spec(name) is not None for name in modules)


def test_the_tests_that_papers_names_are_there() -> None:
    """A name without its folder is of a folder that the same row names before it."""
    named = 0
    for row in "".join(map(text_of, PAPERS)).splitlines():
        folders = [Path()]
        for name in map(Path, re.findall(r"`([\w/]*test_\w+\.py)", row)):
            folders.append(name.parent)
            assert any((ROOT / "tests" / at / name.name).exists() for at in folders), (name, row)
            named += 1
    assert named > 30


def test_the_tests_that_security_names_are_there() -> None:
    text = text_of("SECURITY.md")
    promised = text.split("## What is promised")[1].split("## What is not")[0]
    promises = [part for part in promised.split("\n\n") if part.startswith("**")]
    assert len(promises) >= 7
    assert all("::test_" in promise for promise in promises)
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text):
        assert f"\ndef {name}(" in text_of(file)


def test_few_results_stand_in_prose() -> None:
    """Of two decimals or more, outside of code: tests and executed cells state them."""
    for most, *names in (
        (20, "README.md", "PAPERS.md", *PAPERS),
        *((5, f"docs/findings/{name}.md") for name in FINDINGS),
    ):
        prose = re.sub(r"```.*?```|`[^`]*`", "", "".join(map(text_of, names)), flags=re.DOTALL)
        assert len(re.findall(r"\d*\.\d{2,}", prose)) < most, names


def test_the_first_screen_has_the_two_commands() -> None:
    first = text_of("README.md").splitlines()[:22]
    commands = [line for line in first if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("-m experiments")
    assert commands[1].endswith("-m pytest")


MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "dpopt").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
SHOWN = [
    *(dpopt.Majority, majority.assess),
    *(dpopt.RevealOrObscure, dpopt.BestSampler, dpopt.SmoothFloor, roo.tally),
    *(dpopt.PublicPrior, dpopt.Multiclass, dpopt.Plurality, public_prior.mollify),
    *(lp.solve, lp.Problem, dpopt.certify, privacy.general_composition),
]


def examples(name: str) -> list[doctest.DocTest]:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if not name.startswith("dpopt.interop."):
            raise
        pytest.skip(str(error))
    return [test for test in doctest.DocTestFinder().find(module, name) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.REPORT_NDIFF)
    failed = sum(runner.run(test, out=said.append).failed for test in examples(name))
    assert not failed, "".join(said)


def test_the_main_functions_have_an_example() -> None:
    for function in SHOWN:
        found = {test.name for test in examples(function.__module__)}
        assert f"{function.__module__}.{function.__qualname__}" in found

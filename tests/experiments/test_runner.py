"""Running experiments: the same bytes however it is done, what is kept, and the commands."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dpopt import ParameterError, SolverError
from experiments import __main__ as runner
from experiments import store
from experiments.benchmarks.page import run as benchmarks
from experiments.catalogue import all_experiments
from experiments.kept import Entry, kept_entry, kept_run, to_csv
from experiments.parameters import configured
from experiments.public_prior import example_one
from experiments.registry import Outcome, Table
from experiments.runner import CACHE, Job, computed, run_all
from experiments.store import Store, keys_of
from tests.experiments.comparing import exit_code, refusal

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("roo-figure-1", "prior-example-1")
EXAMPLE = example_one.run
run = partial(exit_code, runner.main)


def files(folder: Path) -> dict[str, bytes]:
    """The files that are the same in every run; the report and the runs tell the time."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and not path.name.endswith((".run.json", ".html"))
    }


def ended(out: Path, *jobs: Job, fresh: bool = False) -> tuple[Entry, ...]:
    return run_all(jobs, out, workers=1, store=Store(out / CACHE, fresh))[0]


def job(style_name: str = "plain", **settings: object) -> Job:
    return Job(EXAMPLE, configured(EXAMPLE, False, settings), style=style_name)


@pytest.mark.slow
def test_two_at_a_time_write_the_same_bytes(tmp_path: Path) -> None:
    known, outcomes = all_experiments(), []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        jobs = [Job(known[name], known[name].quick) for name in NAMES]
        found, _ = run_all(jobs, folder, workers=workers)
        told = [(entry.experiment.name, entry.failure, entry.reused) for entry in found]
        assert told == [(name, None, False) for name in NAMES]
        assert all(entry.seconds is not None and entry.seconds > 0 for entry in found)
        outcomes.append([entry.outcome for entry in found])
    assert outcomes[0] == outcomes[1]
    first, second = (files(tmp_path / workers) for workers in "12")
    assert first == second
    assert len(first) > 6


@pytest.mark.slow
def test_a_second_run_computes_nothing_and_writes_the_same(tmp_path: Path) -> None:
    (first,) = ended(tmp_path, job())
    written = files(tmp_path)
    # Tables of an earlier run do not stay; those of another item do.
    old, other = (tmp_path / f"{EXAMPLE.name}{end}.other.csv" for end in ("", "-b"))
    old.write_text("a\n1\n")
    other.write_text("a\n1\n")
    said: list[str] = []
    (second,) = run_all([job()], tmp_path, workers=2, say=said.append)[0]
    assert said == ["1 item, all kept from earlier runs"]
    assert (first.reused, second.reused) == (False, True)
    # The time is that of the computation.
    assert second.seconds == first.seconds
    assert second.outcome == first.outcome
    assert files(tmp_path) == written | {other.name: b"a\n1\n"}
    run = kept_run(EXAMPLE.name, tmp_path)
    assert (run["reused"], run["seconds"], run["failure"]) == (True, first.seconds, None)


@pytest.mark.slow
def test_other_parameters_code_or_libraries_are_computed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(tmp_path, job())
    assert ended(tmp_path, job())[0].reused
    assert not ended(tmp_path, job(points=11))[0].reused
    assert ended(tmp_path, job(points=11))[0].reused
    assert not ended(tmp_path, job(), fresh=True)[0].reused
    assert ended(tmp_path, job())[0].reused
    # Another style draws anew, from the tables that are there.
    assert ended(tmp_path, job("icml"))[0].reused
    assert kept_run(EXAMPLE.name, tmp_path)["style"] == "icml"
    monkeypatch.setattr("experiments.store.code_digest", lambda *_, **__: "edited")
    assert not ended(tmp_path, job())[0].reused
    monkeypatch.undo()
    assert ended(tmp_path, job())[0].reused
    monkeypatch.setattr("experiments.store.libraries", lambda **_: {"numpy": "99"})
    assert not ended(tmp_path, job())[0].reused


@pytest.mark.slow
def test_a_damaged_store_is_no_error(tmp_path: Path) -> None:
    (first,) = ended(tmp_path, job())
    kept = sorted((tmp_path / CACHE).rglob("output.pkl"))
    assert len(kept) == 2
    for path in kept:
        path.write_bytes(path.read_bytes()[:40])
    (second,) = ended(tmp_path, job())
    assert not second.reused
    assert second.outcome == first.outcome
    assert ended(tmp_path, job())[0].reused
    for path in kept:
        path.write_bytes(b"")
    assert not ended(tmp_path, job())[0].reused
    said = refusal(Store(kept[0]).get, "tables", {"tables": "of a run"}, dict)
    assert said == f"cache is {str(kept[0])!r}; it must be a folder."


def test_a_file_that_is_named_counts_by_its_state(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    file = data / "ratings.dat"
    file.write_text("one")

    def found(value: object) -> Any:
        return store.data_files({"path": value, "epsilon": 1.0})

    ((name, size, _),) = found(str(file))
    assert (name, size) == (str(file.resolve()), 3)
    before = found(str(data))
    assert [entry[0] for entry in before] == [str(file.resolve())]
    file.write_text("other")
    assert found(str(data)) != before
    assert found(("beta:2,2", str(file))) == found(str(file))
    for other in (None, "beta:2,2", str(data / "absent"), "x" * 5000, "a\0b"):
        assert found(other) == []


# Which files tables rest on, and which pictures.
COUNTED = {
    "smoothed/elections.py": (True, True),
    "smoothed/data/popular_vote.csv": (True, True),
    "verdicts.py": (True, True),
    "style.py": (False, True),
    "smoothed/data/SOURCES.md": (False, False),
    "report/views.py": (False, False),
    "runner.py": (False, False),
    "__main__.py": (False, False),
}


def test_the_code_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "experiments"
    shutil.copytree(ROOT / "experiments", root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(store, "_ROOT", root)
    digest = store.code_digest.__wrapped__
    for file, counts in COUNTED.items():
        before = digest(), digest(drawing=True)
        with (root / file).open("a", encoding="utf-8") as written:
            written.write("\n")
        assert (digest() != before[0], digest(drawing=True) != before[1]) == counts, file


@pytest.mark.slow
def test_what_is_not_repeatable_or_not_of_the_project_is_not_kept(tmp_path: Path) -> None:
    config = EXAMPLE.quick
    assert keys_of(EXAMPLE, config, "plain")
    own = replace(EXAMPLE, run=lambda _: Outcome({}))
    for other in (replace(EXAMPLE, repeatable=False), own):
        assert not keys_of(other, config, "plain")
    timed = Job(replace(EXAMPLE, repeatable=False), config)
    for _ in range(2):
        assert not ended(tmp_path, timed)[0].reused
    assert not (tmp_path / CACHE).exists()


@pytest.mark.slow
def test_verdicts_are_of_the_paper_s_parameters_only(tmp_path: Path) -> None:
    outcome = replace(EXAMPLE(), data="nothing", generated=True)
    assert outcome.comparisons
    experiment = replace(EXAMPLE, run=lambda _: outcome, effort=("points",))
    for settings, own in (({}, False), ({"points": 5}, False), ({"epsilon": 1.0}, True)):
        config = configured(experiment, False, settings)
        (entry,) = ended(tmp_path, Job(experiment, config))
        assert entry.own_parameters is own
        assert entry.comparisons == (() if own else outcome.comparisons)
        kept = kept_entry(experiment, tmp_path)
        assert kept is not None
        assert (kept.own_parameters, kept.comparisons) == (own, entry.comparisons)
        assert kept.configuration == entry.configuration == EXAMPLE.parameters(False) | settings
        assert (kept.outcome, kept.command) == (entry.outcome, entry.command)


@pytest.mark.slow
def test_a_value_that_a_run_refuses_leaves_the_folder_as_it_is(tmp_path: Path) -> None:
    ended(tmp_path, job())
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}

    def refuse(*_: object) -> Outcome:
        raise ParameterError("epsilon is 5; it must be less.")

    own = replace(EXAMPLE, run=refuse)
    config = configured(own, False, {"epsilon": 5.0})
    found = run_all([Job(own, config)], tmp_path, workers=1)
    assert found == ((), {EXAMPLE.name: "epsilon is 5; it must be less."})
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    # At the registered parameters it is the experiment that is broken.
    ((entry,), _) = run_all([Job(own, own.quick)], tmp_path, workers=1)
    assert entry.failure == "epsilon is 5; it must be less."


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start runs that an interrupt ends, and that do not outlive a test that fails."""
    running: list[subprocess.Popen[bytes]] = []

    def started(out: Path, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "experiments", "run", *arguments, "--out", str(out)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        running.append(process)
        return process

    # What this process ignores, such as in the background of a shell, its children ignore too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield started
    signal.signal(signal.SIGINT, before)
    for process in running:
        with process, suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.nightly
@pytest.mark.slow
def test_an_interrupted_run_keeps_what_is_done_and_leaves_no_process(
    tmp_path: Path, start: Start
) -> None:
    out = tmp_path / "out"
    # The second would take hours.
    long = ("prior-figure-2", "--set", f"runs={10**5}")
    process = start(out, EXAMPLE.name, *long)
    done = out / f"{EXAMPLE.name}.run.json"
    deadline = time.monotonic() + 120
    while not done.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
    assert done.exists()
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert err.rstrip().endswith(b"interrupted.")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.2)
    else:
        raise AssertionError("a worker is still running")
    assert (out / f"{EXAMPLE.name}.html").exists()
    assert EXAMPLE.name in (out / "index.html").read_text(encoding="utf-8")
    assert not list(out.glob(".dpopt-*"))
    (entry,) = ended(out, job())
    assert entry.reused


@pytest.mark.nightly
@pytest.mark.slow
def test_two_runs_into_one_folder(tmp_path: Path, start: Start) -> None:
    out = tmp_path / "out"
    both = [start(out, *NAMES), start(out, *NAMES, "--style", "icml")]
    for process in both:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    assert not list(out.glob(".dpopt-*"))
    for name in NAMES:
        assert json.loads((out / f"{name}.json").read_text())["experiment"] == name
        assert kept_run(name, out)["failure"] is None


def test_a_failure_at_the_experiment_s_own_parameters_stays_what_it_is() -> None:
    def fail(*_: object) -> Outcome:
        raise ZeroDivisionError("at home")

    broken = replace(all_experiments()["prior-example-1"], run=fail)
    with pytest.raises(ZeroDivisionError, match="at home"):
        computed(Job(broken, broken.quick), Store(None))
    own = Job(broken, replace(broken.quick, user=0.2))
    with pytest.raises(ParameterError, match=r"cannot be run with user = 0\.2: at home\."):
        computed(own, Store(None))


def test_a_failing_experiment_is_reported_and_the_exit_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> Outcome:
        raise SolverError("highs ended with status time_limit", "time_limit")

    broken = replace(EXAMPLE, run=fail)
    monkeypatch.setattr(runner, "all_experiments", lambda: {broken.name: broken})
    assert run(["--out", str(tmp_path)]) == 1
    assert "time_limit" in capfd.readouterr().err
    assert "time_limit" in (tmp_path / f"{broken.name}.html").read_text()
    names = {"index.html", f"{broken.name}.html", f"{broken.name}.run.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    kept = kept_entry(broken, tmp_path)
    assert kept is not None
    assert (kept.outcome, "time_limit" in (kept.failure or "")) == (None, True)


@pytest.mark.slow
def test_the_list_loads_nothing_that_only_a_run_needs() -> None:
    program = (
        "import sys\nfrom experiments.__main__ import main\n"
        "try:\n    main(['list'])\nexcept SystemExit:\n    pass\n"
        "heavy = ['scipy.stats', 'matplotlib.pyplot', 'sklearn', 'polars', 'cvxpy', 'torch']\n"
        "sys.exit(' '.join(set(heavy) & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_list_names_every_experiment(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["list"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(all_experiments())
    assert run(["list", "roo-*", "prior-kernels"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        name for name in all_experiments() if name.startswith("roo-") or name == "prior-kernels"
    ]


def test_csv_keeps_every_digit() -> None:
    table = Table.of([{"a": 0.1 + 0.2, "b": None, "c": "x,y", "d": 3}], caption="t")
    assert to_csv(table) == 'a,b,c,d\n0.30000000000000004,,"x,y",3\n'


@pytest.mark.slow
def test_benchmarks_stay_out_of_the_default_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap = {EXAMPLE.name: EXAMPLE, benchmarks.name: benchmarks}
    monkeypatch.setattr(runner, "all_experiments", lambda: cheap)
    assert run(["--out", str(tmp_path)]) == 0
    assert (tmp_path / f"{EXAMPLE.name}.png").exists()
    assert not list(tmp_path.glob("benchmark*"))

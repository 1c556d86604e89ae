"""Settings shared by all tests."""

import gc
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("dpopt", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("nightly", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dpopt"))

# Thousands of tests are collected and stay until the end: looking through them for garbage again
# and again takes two fifths of the time of collecting, and a twelfth of that of running.
gc.disable()

# Of a test without the mark "slow", seconds of processor time.
_LONGEST = 3.0
# Slow cases of a function that CI runs, one where others are not slow; the rest is for the night.
_SAMPLE = 2
_late, _taken = pytest.StashKey[list[str]](), pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what CI asks for."""
    told = f"fail if a test that is not marked slow takes over {_LONGEST:g} s"
    parser.addoption("--quick", action="store_true", help=told)
    told = f"run the first {_SAMPLE} cases of each test"
    parser.addoption("--few", action="store_true", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Begin the list of what took too long."""
    config.stash[_late] = []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark all but the first cases as slow where a test says so; leave out what is nightly.

    Of the slow cases of a function, a sample is run, unless they are marked every_case.
    """
    cases, quick = Counter[str](), Counter[str]()
    nightly, slow = _beyond_samples(items), defaultdict[str, list[pytest.Item]](list)
    for item in items:
        function, mark = item.nodeid.partition("[")[0], item.get_closest_marker("slow_after")
        cases[function] += 1
        if mark is not None and cases[function] > mark.args[0]:
            item.add_marker(pytest.mark.slow)
        quick[function] += item.get_closest_marker("slow") is None
        few = config.getoption("--few") and cases[function] > _SAMPLE
        if few or item in nightly or item.get_closest_marker("nightly"):
            nightly.add(item)
        elif item.get_closest_marker("slow") and not item.get_closest_marker("every_case"):
            slow[function].append(item)
    if settings.get_current_profile_name() == "nightly":
        return
    for function, alike in slow.items():
        sample = 1 if quick[function] else _SAMPLE
        nightly |= {*alike} - {*alike[:: math.ceil(len(alike) / sample)]}
    config.hook.pytest_deselected(items=[item for item in items if item in nightly])
    items[:] = [item for item in items if item not in nightly]


def _beyond_samples(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the cases that their functions leave to the night: all but a sample.

    Steps of about 0.618 of their number spread it, whatever the parameters' periods are.
    """
    marked, beyond = defaultdict[str, list[pytest.Item]](list), set[pytest.Item]()
    for item in items:
        if item.get_closest_marker("sample"):
            marked[item.nodeid.partition("[")[0]].append(item)
    for alike in marked.values():
        mark, count = alike[0].get_closest_marker("sample"), len(alike)
        assert mark is not None
        step = next(
            n for n in range(max(1, round(0.618 * count)), 2 * count + 1) if math.gcd(n, count) == 1
        )
        beyond |= {*alike} - {alike[place * step % count] for place in range(mark.args[0])}
    return beyond


def pytest_collection_finish() -> None:
    """Let what was collected be, and look for garbage from here on."""
    gc.freeze()
    gc.enable()


def _processor_time() -> float:
    """Return the seconds of this process and of those that it started, whoever else is at work."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measure what a test takes."""
    before = _processor_time()
    try:
        return (yield)
    finally:
        item.stash[_taken] = _processor_time() - before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Write on the report of a test how long it took, if it is not marked slow."""
    report = yield
    slow = item.get_closest_marker("slow") is not None
    report.taken = 0.0 if slow else item.stash.get(_taken, 0.0)
    return report


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> None:
    """Keep what took too long."""
    if report.when == "call" and report.taken > _LONGEST:
        config.stash[_late].append(f"{report.nodeid}: {report.taken:.1f} s")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if tests took too long, and CI asks."""
    if session.config.stash[_late] and session.config.getoption("--quick"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Tell what took too long."""
    for line in config.stash[_late]:
        terminalreporter.write_line(f"not marked slow: {line}")

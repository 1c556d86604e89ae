"""What takes over a minute says so before it starts, or is refused before the first step."""

from __future__ import annotations

import pytest

import dpopt
from dpopt import smoothed
from dpopt._progress import ProgressEvent, reporting
from dpopt.cli import main
from dpopt.majority import reduced_size


class StoppedError(Exception):
    """Ends a computation at what it announces."""


def announced(event: ProgressEvent) -> None:
    if event.seconds is not None:
        raise StoppedError(event.message)
    # Reducing a handful of distributions comes first: how many are left decides how long it takes.
    if event.total != len(PMFS):
        raise AssertionError(f"{event} before any announcement")


PMFS = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "work",
    [
        lambda: dpopt.design(dpopt.Majority(4001, 0.001, 10.0)),
        lambda: dpopt.design(dpopt.Majority(201, 0.1, 10.0, voter_delta=1e-6, delta=1e-4)),
        lambda: smoothed.smoothed_delta(smoothed.SamplingHistogram(184, 3, 3), 1.0, PMFS),
    ],
)
def test_long_work_is_announced(work: object) -> None:
    assert callable(work)
    with reporting(announced), pytest.raises(StoppedError, match="; Ctrl-C ends it"):
        work()


def test_the_command_says_it_once_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With a minute shortened, so that a small design takes one."""
    monkeypatch.setattr("dpopt._progress._LONG_SECONDS", 0.0)
    with pytest.raises(SystemExit) as ended:
        main(["majority", "--voters", "3", "--epsilon", "0.1", "--allowance", "1", "--json"])
    printed = capfd.readouterr()
    assert ended.value.code == 0
    steps = reduced_size(dpopt.Majority(3, 0.1, 1.0)) * 3
    sentence = f"design of the noise function: {steps} steps, about 0 minutes; Ctrl-C ends it.\n"
    assert printed.err == sentence
    assert printed.out.count("\n") == 1

"""Progress: who is told what, that nobody is told by default, and that a callback can cancel."""

import io
import sys
import threading

import pytest

from dpopt._progress import ProgressEvent, advance, expect, progress_bar, reporting, track


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal on which a bar is shown at once."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("dpopt._progress._SHOWN_SECONDS", 0.0)
    return Terminal()


def test_advance_reaches_the_callback_in_force() -> None:
    outer, inner = list[ProgressEvent](), list[ProgressEvent]()
    with reporting(outer.append):
        advance("proof", 1, 3, "worst 1e-9")
        with reporting(inner.append):
            advance("proof", 2, 3)
        with reporting(None):
            advance("proof", 2, 3)
        advance("proof", 3, 3)
    advance("proof", 4)
    assert outer == [ProgressEvent("proof", 1, 3, "worst 1e-9"), ProgressEvent("proof", 3, 3)]
    assert inner == [ProgressEvent("proof", 2, 3)]


def test_a_callback_ends_the_loop_by_what_it_raises_and_is_gone() -> None:
    def cancel(event: ProgressEvent) -> None:
        if event.done == 2:
            raise TimeoutError("enough")

    reached: list[int] = []

    def work() -> None:
        for step in range(5):
            reached.append(step)
            advance("work", step + 1, 5)

    with reporting(cancel), pytest.raises(TimeoutError, match="enough"):
        work()
    with reporting(cancel), pytest.raises(TimeoutError, match="enough"):
        reached.extend(track([7, 8], "work"))
    advance("work", 2)
    assert reached == [0, 1, 7, 8]


def test_other_threads_are_silent() -> None:
    seen: list[ProgressEvent] = []
    with reporting(seen.append):
        thread = threading.Thread(target=lambda: advance("proof", 1))
        thread.start()
        thread.join()
    assert seen == []


@pytest.mark.parametrize(
    ("quiet", "told"), [(1e9, [(0, 3), (3, 3)]), (0.0, [(0, 3), (1, 3), (2, 3), (3, 3)])]
)
def test_track_tells_start_end_and_steps_that_are_slow_enough(
    quiet: float, told: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpopt._progress._QUIET_SECONDS", quiet)
    seen: list[ProgressEvent] = []
    with reporting(seen.append):
        assert list(track("abc", "categories")) == ["a", "b", "c"]
        assert [(event.done, event.total) for event in seen] == told
        seen.clear()
        monkeypatch.setattr("dpopt._progress._QUIET_SECONDS", 1e9)
        assert list(track(iter("a"), "categories")) == ["a"]
        assert list(track(iter("a"), "categories", total=5)) == ["a"]
        assert list(track([], "categories")) == []
    assert [(e.done, e.total) for e in seen] == [(0, None), (1, 1), (0, 5), (1, 1), (0, 0)]


def test_a_long_step_is_shown_without_a_second_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpopt._progress._SHOWN_SECONDS", 0.01)
    shown = threading.Event()

    class Watched(Terminal):
        def write(self, text: str) -> int:
            if "proof" in text:
                shown.set()
            return super().write(text)

    with progress_bar(Watched()):
        advance("proof", 0)
        assert shown.wait(timeout=30)


CLEARED = "\x1b[1A\x1b[2K"


def test_the_bar_shows_tasks_until_they_are_over(terminal: Terminal) -> None:
    with progress_bar(terminal):
        advance("proof", 0, 2)
        advance("proof", 1, 2)
        shown = len(terminal.getvalue())
        advance("proof", 2, 2)
        ended = terminal.getvalue()
        stdout = sys.stdout
        advance("proof", 2, 2)
        assert sys.stdout is stdout
        assert terminal.getvalue() == ended
    assert 0 < shown < len(ended)
    assert terminal.getvalue() == ended
    assert ended.endswith(CLEARED)
    with progress_bar(terminal):
        advance("proof [x]", 3, 7, "worst [1]")
        advance("solve", 4)
    for text in ("proof [x]", "3/7", "worst [1]", "4/?"):
        assert text in terminal.getvalue()


def test_the_bar_leaves_standard_output_alone_and_goes_when_the_computation_fails(
    terminal: Terminal, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        with progress_bar(terminal):
            advance("proof", 1, 2)
            sys.stdout.write("answer\n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue().endswith(CLEARED)
    assert capfd.readouterr().out == "answer\n"


def test_what_takes_over_a_minute_is_told_before_it_starts() -> None:
    seen: list[ProgressEvent] = []
    with reporting(seen.append):
        expect("proof", 600, 10.0)
        expect("proof", 601, 10.0)
        expect("proof", 1e7, 1e3)
        expect("proof", 1e9, 1e3)
    assert [event.seconds for event in seen] == [60.1, 1e4, 1e6]
    assert [event.message for event in seen] == [
        "proof: 601 steps, about 1 minutes; Ctrl-C ends it.",
        "proof: 10,000,000 steps, about 3 hours; Ctrl-C ends it.",
        "proof: 1,000,000,000 steps, about 12 days; Ctrl-C ends it.",
    ]
    expect("proof", 1e9, 1.0)
    shown = Terminal()
    with progress_bar(shown):
        expect("proof", 1e7, 1e3)
    assert shown.getvalue() == f"{seen[1].message}\n"

"""Progress: who is told what, that nobody is told by default, and that a callback can cancel."""

import io
import sys
import threading

import pytest

from dpopt._progress import (
    ProgressEvent,
    advance,
    expect,
    progress_bar,
    reporting,
    track,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nobody_is_told_unless_asked_to() -> None:
    advance("proof", 1, 2)
    assert list(track([1, 2, 3], "proof")) == [1, 2, 3]


def test_advance_reaches_the_callback_in_force() -> None:
    outer: list[ProgressEvent] = []
    inner: list[ProgressEvent] = []
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


def test_the_callback_is_gone_after_an_exception() -> None:
    seen: list[ProgressEvent] = []
    with pytest.raises(ZeroDivisionError), reporting(seen.append):
        raise ZeroDivisionError
    advance("proof", 1)
    assert seen == []


def test_other_threads_are_silent() -> None:
    seen: list[ProgressEvent] = []
    with reporting(seen.append):
        thread = threading.Thread(target=lambda: advance("proof", 1))
        thread.start()
        thread.join()
    assert seen == []


def test_track_tells_start_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpopt._progress._QUIET_SECONDS", 1e9)
    seen: list[ProgressEvent] = []
    with reporting(seen.append):
        assert list(track("abc", "letters")) == ["a", "b", "c"]
        assert list(track(iter("ab"), "letters")) == ["a", "b"]
        assert list(track(iter("ab"), "letters", total=5)) == ["a", "b"]
        assert list(track([], "letters")) == []
    told = [(event.done, event.total) for event in seen]
    assert told == [(0, 3), (3, 3), (0, None), (2, 2), (0, 5), (2, 2), (0, 0)]


def test_track_tells_every_step_that_is_slow_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpopt._progress._QUIET_SECONDS", 0.0)
    seen: list[ProgressEvent] = []
    with reporting(seen.append):
        seen.extend(ProgressEvent("body", 0) for _ in track(range(3), "steps"))
    assert [(e.task, e.done) for e in seen] == [
        ("steps", 0),
        ("body", 0),
        ("steps", 1),
        ("body", 0),
        ("steps", 2),
        ("body", 0),
        ("steps", 3),
    ]


def test_what_a_callback_raises_ends_the_loop() -> None:
    reached = []

    def cancel(event: ProgressEvent) -> None:
        if event.done == 2:
            raise TimeoutError("enough")

    def work() -> None:
        for step in range(5):
            reached.append(step)
            advance("work", step + 1, 5)

    with reporting(cancel), pytest.raises(TimeoutError, match="enough"):
        work()
    assert reached == [0, 1]
    with reporting(cancel), pytest.raises(TimeoutError, match="enough"):
        list(track([7, 8], "work"))
    work()
    assert reached == [0, 1, 0, 1, 2, 3, 4]


def test_the_bar_writes_nothing_where_there_is_no_terminal() -> None:
    file = io.StringIO()
    with progress_bar(file=file, delay=0.0) as bar:
        advance("proof", 1, 2)
        bar(ProgressEvent("proof", 1, 2))
    assert file.getvalue() == ""


def test_the_bar_shows_a_task_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    file = Terminal()
    with progress_bar(file=file, delay=0.0, always=True):
        advance("proof [x]", 3, 7, "worst [1]")
        advance("solve", 4)
    text = file.getvalue()
    assert "proof [x]" in text
    assert "3/7" in text
    assert "worst [1]" in text
    assert "4/?" in text


def test_a_long_step_is_shown_without_a_second_event() -> None:
    shown = threading.Event()

    class Watched(Terminal):
        def write(self, text: str) -> int:
            if "proof" in text:
                shown.set()
            return super().write(text)

    with progress_bar(file=Watched(), delay=0.01, always=True):
        advance("proof", 0)
        assert shown.wait(timeout=30)


def test_a_task_that_ended_does_not_come_back() -> None:
    file = Terminal()
    with progress_bar(file=file, delay=0.01, always=True):
        advance("other", 0, 1)
        advance("proof", 0, 2)
        advance("proof", 2, 2)
        threading.Event().wait(0.05)
    assert "proof" not in file.getvalue()


CLEARED = "\x1b[1A\x1b[2K"


def test_nothing_is_live_once_every_task_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    with progress_bar(file=file, delay=0.0, always=True):
        advance("proof", 0, 2)
        advance("proof", 1, 2)
        shown = len(file.getvalue())
        advance("proof", 2, 2)
        ended = file.getvalue()
        stdout = sys.stdout
        advance("proof", 2, 2)
        assert sys.stdout is stdout
        assert file.getvalue() == ended
    assert 0 < shown < len(ended)
    assert file.getvalue() == ended
    assert ended.endswith(CLEARED)


def test_the_bar_leaves_standard_output_alone(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar(file=Terminal(), delay=0.0, always=True):
        advance("proof", 1, 2)
        sys.stdout.write("answer\n")
    assert capfd.readouterr().out == "answer\n"


def test_the_bar_goes_when_the_computation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()

    def interrupted() -> None:
        with progress_bar(file=file, delay=0.0, always=True):
            advance("proof", 1, 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.getvalue().endswith(CLEARED)


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
    with progress_bar(file=shown):
        expect("proof", 1e7, 1e3)
    assert shown.getvalue() == f"{seen[1].message}\n"

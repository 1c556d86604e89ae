"""Where the page computes: a process of its own, which is ended when it takes too long.

A field may ask for a program of any size, and no rule of this page knows what a kind can bear. So
whatever it is, it gets the same seconds and the same memory.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from dpopt.design import Question, kinds
from dpopt.explore.render import html_of, refusal

SECONDS = 10.0
"""What an answer may take."""

_MEMORY = 8 << 30
_PATIENCE = 120.0


class Worker:
    """A process that answers one setting after another; begun when the first is asked for.

    Args:
        seconds: after which an answer is given up, and its process ended.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._running: tuple[Any, Connection] | None = None

    def html(self, kind: type[Question[Any]], texts: Mapping[str, str]) -> str:
        """Return what `html_of` does, or the sentence of why there is nothing to show."""
        try:
            pipe = self._pipe()
            pipe.send((kind, dict(texts)))
            if pipe.poll(self.seconds):
                return pipe.recv()
            why = f"takes longer than the {self.seconds:g} seconds of this page"
        except (EOFError, OSError):
            why = "ended the process of this page; its terminal may say why"
        self.close()
        return refusal(f"{kind.kind} with these values {why}. dpopt.design has no such limit.")

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._running is not None:
            process, _ = self._running
            self._running = None
            process.kill()
            process.join()

    def _pipe(self) -> Connection:
        if self._running is not None:
            return self._running[1]
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _interrupts_held():
            process.start()
        theirs.close()
        self._running = process, ours
        # It loads its libraries before the first answer's seconds begin.
        if not ours.poll(_PATIENCE):
            raise EOFError
        ours.recv()
        return ours


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Begin what inherits this deaf to Ctrl-C, which is for the server; the server ends it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Connection) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    kinds()
    import_module("matplotlib.backends.backend_svg")
    pipe.send(True)
    with suppress(EOFError):
        while True:
            pipe.send(html_of(*pipe.recv()))

"""Commands of ``dpopt`` in a process that may be killed: after a time, or for its memory."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Self

from tests.robustness.commands import Ended, run

MEMORY = 4 << 30


class Worker:
    """The process, begun anew when it was killed; a context.

    Args:
        folder: where the commands run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun: tuple[BaseProcess, Connection] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, arguments: list[str], seconds: float) -> Ended:
        """Run a command; the exit code is in words if the process died, or was killed in time."""
        if self.begun is None:
            context = get_context("spawn")
            pipe, other = context.Pipe()
            process = context.Process(target=serve, args=(other, self.folder), daemon=True)
            process.start()
            other.close()
            # Loading the libraries is no part of a command's time.
            pipe.recv()
            self.begun = process, pipe
        process, pipe = self.begun
        try:
            pipe.send(arguments)
            if pipe.poll(seconds):
                return pipe.recv()
            ended = Ended(f"(none after {seconds:g} s)", "", "")
        except (EOFError, OSError):
            process.join()
            ended = Ended(f"(the process died: {process.exitcode})", "", "")
        self._end()
        return ended

    def _end(self) -> None:
        if self.begun is not None:
            process, pipe = self.begun
            process.kill()
            process.join()
            pipe.close()
            self.begun = None


def serve(pipe: Connection, folder: Path) -> None:
    """Answer until the pipe ends; what a library writes counts as printed by the command."""
    os.chdir(folder)
    if os.name == "posix":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryFile() as strays:
        os.dup2(strays.fileno(), 1)
        pipe.send("ready")
        while True:
            try:
                arguments = pipe.recv()
            except EOFError:
                return
            try:
                ended = run(*arguments)
            except Exception as error:  # noqa: BLE001
                ended = Ended(f"({type(error).__name__}: {str(error)[:300]})", "", "")
            strays.seek(0)
            pipe.send(replace(ended, out=strays.read().decode(errors="replace") + ended.out))
            strays.seek(0)
            strays.truncate()

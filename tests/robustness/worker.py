"""Commands of ``dpopt`` in a process that may be killed: after a time, or for its memory.

As a module, the process itself: a number and a list of arguments a line on stdin; on stdout that
number and how it ended. All other lines there are a library's, and count as printed by the command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from types import TracebackType
from typing import IO, Self

from tests.robustness.commands import Ended, run

MEMORY = 4 << 30
PATH = str(Path(__file__).parents[2])


class Worker:
    """The process, begun anew when it was killed; a context.

    Args:
        folder: where the commands run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None
        self.lines: SimpleQueue[str] = SimpleQueue()
        self.number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def run(self, arguments: list[str], seconds: float) -> Ended:
        """Run a command; the exit code is in words if the process died, or was killed in time."""
        if self.process is None:
            self.process = self._begun()
        process, strays = self.process, ""
        self.number += 1
        assert process.stdin is not None
        process.stdin.write(json.dumps([self.number, arguments]) + "\n")
        process.stdin.flush()
        end = monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - monotonic()))
            except Empty:
                self._end()
                return Ended(f"(none after {seconds:g} s)", strays, "")
            if not line:
                self._end()
                return Ended(f"(the process died: {process.returncode})", strays, "")
            number, _, answer = line.partition(" ")
            if number == f"answer-{self.number}":
                ended = Ended(**json.loads(answer))
                return replace(ended, out=strays + ended.out)
            strays += line.lstrip("\n")

    def _begun(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.robustness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": PATH},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        self.lines = lines = SimpleQueue()

        def read(stdout: IO[str]) -> None:
            for line in stdout:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, args=[process.stdout], daemon=True).start()
        return process

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    pipe.close()
            self.process = None


def serve() -> None:
    """Answer until stdin ends."""
    if os.name == "posix":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        number, arguments = json.loads(line)
        try:
            ended = run(*arguments)
        except Exception as error:  # noqa: BLE001
            ended = Ended(f"({type(error).__name__}: {str(error)[:300]})", "", "")
        # On a line of its own, whatever a library wrote before.
        answers.write(f"\nanswer-{number} {json.dumps(asdict(ended))}\n")
        answers.flush()


if __name__ == "__main__":
    serve()

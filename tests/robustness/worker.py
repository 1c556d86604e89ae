"""Commands of ``dpopt`` in a process that may be killed: after a time, or for its memory.

As a module, the process itself: a list of arguments a line on stdin, how it ended a line on stdout.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
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
        self.process: subprocess.Popen[str] | None = None

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
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(arguments) + "\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                self._end()
                return Ended(f"(none after {seconds:g} s)", "", "")
        line = process.stdout.readline()
        if not line:
            self._end()
            return Ended(f"(the process died: {process.returncode})", "", "")
        return Ended(**json.loads(line))

    def _begun(self) -> subprocess.Popen[str]:
        root = str(Path(__file__).parents[2])
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.robustness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": root},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
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
        try:
            ended = run(*json.loads(line))
        except Exception as error:  # noqa: BLE001
            ended = Ended(f"({type(error).__name__}: {str(error)[:300]})", "", "")
        answers.write(json.dumps(asdict(ended)) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()

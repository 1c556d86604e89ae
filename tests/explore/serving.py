"""The command `dpopt explore` as a process of its own, for tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

COMMAND = [sys.executable, "-c", "from dpopt.cli import main; main()", "explore", "--no-browser"]


@contextmanager
def explorer(port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield the process and the address that it says; end it by Ctrl-C if it still runs."""
    process = subprocess.Popen(
        [*COMMAND, "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Asks for scripts from another machine, and lets others in; the page must not heed it.
        env={**os.environ, "BOKEH_RESOURCES": "cdn", "BOKEH_ALLOW_WS_ORIGIN": "example.org,*"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), line + process.stderr.read()
        yield process, line.split()[0]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)

"""``dpopt`` as a process: interrupted, its descriptors closed, its folder read-only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from dpopt.cli import main; main()"]
SMALL = ["reveal-or-obscure", "--records", "9", "--categories", "2", "--epsilon", "1"]
BAD = ["reveal-or-obscure", "--records", "0", "--categories", "2", "--epsilon", "1"]
VOTERS = ["majority", "--voters", "11", "--epsilon", "0.1", "--allowance", "3"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals and descriptors of POSIX"),
]


def finished(
    arguments: Sequence[str | bytes], command: Sequence[str] = COMMAND, **more: object
) -> subprocess.CompletedProcess[bytes]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(
        [*command, *arguments],
        check=False,
        timeout=120,
        **{**pipes, **more},  # type: ignore[call-overload]
    )


IN_A_SOLVE = """
import os, signal
from dpopt.lp.backends import highs
from dpopt.cli import main
run = highs.HighsSession.run
def interrupted(*args, **kept):
    found = run(*args, **kept)
    os.kill(os.getpid(), signal.SIGINT)
    return found
highs.HighsSession.run = interrupted
main()
"""
AT_AN_IMPORT = """
import os, signal, sys
class Finder:
    left = {imports}
    def find_spec(self, name, path=None, target=None):
        Finder.left -= 1
        if Finder.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return None
import dpopt.cli
sys.meta_path.insert(0, Finder())
dpopt.cli.main()
"""


@pytest.mark.parametrize("imports", [None, 1, 60, 400])
def test_ctrl_c(imports: int | None, tmp_path: Path) -> None:
    """The process interrupts itself, in a solve or at an import: no time is guessed."""
    script = IN_A_SOLVE if imports is None else AT_AN_IMPORT.format(imports=imports)
    words = [*VOTERS, "--save", str(tmp_path / "gamma.json")]
    ended = finished(words, [sys.executable, "-c", script])
    assert (ended.returncode, ended.stdout) == (130, b"")
    assert ended.stderr.strip() == b"interrupted."
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_gone() -> None:
    """Like ``dpopt ... | head -1``: a sentence."""
    reader, writer = os.pipe()
    os.close(reader)
    prior = ",".join(["0.005"] * 200)
    ended = finished(["public-prior", "--public", prior, "--epsilon", "1", "--json"], stdout=writer)
    os.close(writer)
    assert ended.returncode == 5
    assert ended.stderr == b"standard output took no answer: broken pipe.\n"


@pytest.mark.parametrize("descriptor", [0, 1, 2])
@pytest.mark.parametrize(("arguments", "code"), [(SMALL, 0), (BAD, 2)], ids=["good", "bad"])
def test_a_closed_descriptor(descriptor: int, arguments: list[str], code: int) -> None:
    ended = finished(arguments, preexec_fn=lambda: os.close(descriptor))
    assert ended.returncode == (5 if code == 0 and descriptor == 1 else code)
    assert b"Traceback" not in ended.stderr
    if code == 0 and descriptor != 1:
        assert ended.stdout


def test_an_error_that_cannot_be_said_keeps_its_code() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    with full.open("w") as stderr:
        ended = finished(BAD, stderr=stderr)
    assert (ended.returncode, ended.stdout) == (2, b"")


def test_a_folder_without_permission(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    try:
        if os.access(closed, os.W_OK):
            pytest.skip("this user may write to any folder")
        ended = finished([*SMALL, "--save", str(closed / "rule.json")])
        assert (ended.returncode, ended.stdout) == (2, b"")
        assert ended.stderr.count(b"\n") == 1
        assert list(closed.iterdir()) == []
    finally:
        closed.chmod(0o700)


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """The next thing to a full disk: the old file stays, and no part of the new one is left."""
    resource = pytest.importorskip("resource")
    target = tmp_path / "rule.json"
    target.write_text("before")

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    ended = finished([*SMALL, "--save", str(target)], preexec_fn=limited)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.count(b"\n") == 1
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["cite"], 0),
        ([*SMALL, "--rule", "ε\U0001f4a5"], 2),
        (["certify", b"\xff\xfe"], 2),
        ([*SMALL, "--rule", b"\xff"], 2),
    ],
    ids=["text", "words", "path", "bytes"],
)
def test_a_terminal_of_another_encoding(arguments: list[str | bytes], code: int) -> None:
    for environment in (None, {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}):
        ended = finished(arguments, env=environment)
        assert ended.returncode == code
        assert b"Traceback" not in ended.stderr
        assert code == 0 or (ended.stdout, ended.stderr.count(b"\n")) == (b"", 1)

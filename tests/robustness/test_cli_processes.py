"""``dpopt`` as a process: interrupted, its pipes closed, its folder read-only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpopt.cli import cli
from tests.robustness.commands import baselines, options

COMMAND = [sys.executable, "-c", "from dpopt.cli import main; main()"]
SMALL = ["roo", "--records", "9", "--letters", "2", "--epsilon", "1"]
BAD = ["roo", "--records", "0", "--letters", "2", "--epsilon", "1"]
posix = pytest.mark.skipif(os.name != "posix", reason="signals and descriptors of POSIX")


def finished(arguments: list[str], **more: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        check=False,
        timeout=120,
        **more,  # type: ignore[call-overload]
    )


@pytest.mark.slow
@posix
def test_ctrl_c_while_it_computes(tmp_path: Path) -> None:
    """The signal is sent by the process itself, in the middle of the solve: no time is guessed."""
    script = (
        "import os, signal\n"
        "from dpopt.lp.backends import highs\n"
        "from dpopt.cli import main\n"
        "run = highs.HighsSession.run\n"
        "def interrupted(*args, **kept):\n"
        "    found = run(*args, **kept)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return found\n"
        "highs.HighsSession.run = interrupted\n"
        "main()\n"
    )
    target = tmp_path / "gamma.json"
    options = ["--mechanisms", "11", "--epsilon", "0.1", "--allowance", "3", "--save", str(target)]
    ended = subprocess.run(
        [sys.executable, "-c", script, "majority", *options],
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout) == (130, b"")
    assert ended.stderr.strip() == b"interrupted."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@posix
def test_a_reader_that_has_gone() -> None:
    """Like ``dpopt ... | head -1``: a sentence."""
    prior = ",".join(["0.005"] * 200)
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [*COMMAND, "prior", "--prior", prior, "--epsilon", "1", "--json"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=120,
    )
    os.close(writer)
    assert ended.returncode == 5
    assert ended.stderr == b"standard output took no answer: broken pipe.\n"


def closing(descriptor: int) -> Callable[[], None]:
    return lambda: os.close(descriptor)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("descriptor", [0, 1, 2])
@pytest.mark.parametrize(("arguments", "code"), [(SMALL, 0), (BAD, 2)], ids=["good", "bad"])
def test_a_closed_descriptor(descriptor: int, arguments: list[str], code: int) -> None:
    ended = finished(arguments, preexec_fn=closing(descriptor))
    assert ended.returncode == (5 if code == 0 and descriptor == 1 else code)
    assert b"Traceback" not in ended.stderr
    if code == 0 and descriptor != 1:
        assert ended.stdout


def has_json(name: str) -> bool:
    return any("--json" in option.opts for option in options(name))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return {**baselines(tmp_path_factory.mktemp("files")), "doctor": []}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(filter(has_json, cli.commands)))
def test_the_json_of_every_command_is_all_that_it_writes(
    name: str, asked: dict[str, list[str]]
) -> None:
    ended = finished([name, *asked[name], "--json"])
    assert ended.returncode == 0
    assert isinstance(json.loads(ended.stdout), dict)


@pytest.mark.slow
def test_standard_input_is_not_read() -> None:
    ended = finished([*SMALL, "--json"], input=b"y\n" * 10)
    assert json.loads(ended.stdout)["private"]


def can_write_anywhere(folder: Path) -> bool:
    """Whether permissions do not bind this user, such as root."""
    try:
        (folder / "probe").touch()
    except OSError:
        return False
    return True


@posix
def test_a_folder_without_permission(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    try:
        if can_write_anywhere(closed):
            pytest.skip("this user may write to any folder")
        ended = finished([*SMALL, "--save", str(closed / "rule.json")])
        assert (ended.returncode, ended.stdout) == (2, b"")
        assert ended.stderr.count(b"\n") == 1
        assert list(closed.iterdir()) == []
    finally:
        closed.chmod(0o700)


@pytest.mark.slow
@posix
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


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_terminal_of_another_encoding(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    for arguments in (SMALL, ["cite"], [*SMALL, "--rule", "ε\U0001f4a5"]):
        ended = finished(arguments, env=environment)
        assert ended.returncode == (2 if "--rule" in arguments else 0)
        assert b"Traceback" not in ended.stderr


@pytest.mark.slow
@posix
def test_arguments_that_are_not_text() -> None:
    for arguments in (
        ["sample", b"\xff.csv", "--column", "x", "--alphabet", "a,b", "--epsilon", "1"],
        ["certify", b"\xff\xfe"],
        ["release", b"\xff", "--input", b"\xff"],
        [*SMALL, "--rule", b"\xff"],
    ):
        ended = subprocess.run(
            [*COMMAND, *arguments], capture_output=True, check=False, timeout=120
        )
        assert (ended.returncode, ended.stdout) == (2, b"")
        assert ended.stderr.count(b"\n") == 1
        assert b"Traceback" not in ended.stderr

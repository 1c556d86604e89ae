"""Standard output that takes no answer: tried before a draw, said in a sentence, exit code 5."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpopt import majority, public_prior, roo

COMMAND = [sys.executable, "-c", "from dpopt.cli import main; main()"]
posix = pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX")
FULL = Path("/dev/full")

# Says on standard error that something was drawn: whatever draws asks the system for randomness.
WATCHED = [
    sys.executable,
    "-c",
    "import secrets, sys\n"
    "def watched(name):\n"
    "    real = getattr(secrets, name)\n"
    "    def draw(*size):\n"
    "        sys.stderr.write('DRAWN ')\n"
    "        return real(*size)\n"
    "    setattr(secrets, name, draw)\n"
    "watched('randbelow')\n"
    "watched('token_bytes')\n"
    "from dpopt.cli import main\n"
    "main()\n",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("output")
    majority.design(3, 0.1, 1).save(made / "gamma.json")
    roo.min_count(5, 2, 1.0).save(made / "rule.json")
    prior = public_prior.minimax_kernel([0.2, 0.3, 0.5], 1.0, letters=["a", "ε", "c"])
    prior.save(made / "kernel.json")
    (made / "p.txt").write_text("1 0 0")
    (made / "data.csv").write_text("city\nb\nb\nb\n")
    return made


DRAWS: dict[str, list[str]] = {
    "majority": ["release", "gamma.json", "--input", "1,1,0"],
    "min-count": ["release", "rule.json", "--input", "3,2"],
    "kernel": ["release", "kernel.json", "--distribution", "p.txt"],
    "sample": ["sample", "data.csv", "--column", "city", "--alphabet", "b,ε", "--epsilon", "1"],
}
LETTERS = {"kernel": {"a", "ε", "c"}, "sample": {"b", "ε"}}
SHOWS: dict[str, list[str]] = {
    "help": ["--help"],
    "help of a verb": ["roo", "--help"],
    "version": ["--version"],
    "roo": ["roo", "--records", "9", "--letters", "2", "--epsilon", "1"],
    "not private": [
        *("roo", "--records", "3", "--letters", "2", "--epsilon", "0.5", "--rule", "journal"),
    ],
    "majority": ["majority", "--mechanisms", "3", "--epsilon", "0.1", "--allowance", "1"],
    "prior": ["prior", "--prior", "0.5,0.5", "--epsilon", "1"],
    "certify": ["certify", "gamma.json"],
    "cite": ["cite"],
    "completion": ["completion", "fish"],
}


def ended(
    command: list[str], words: list[str], folder: Path, **more: Any
) -> subprocess.CompletedProcess[str]:
    settings: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    } | more
    if "sample" in words:
        pytest.importorskip("polars", reason="polars is not installed (extra data)")
    return subprocess.run(
        [*command, *words], cwd=folder, check=False, timeout=120, encoding="utf-8", **settings
    )


def closed() -> None:
    os.close(1)


def assert_refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 5, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("standard output ")
    assert done.stderr.endswith(".\n")


@pytest.mark.slow
@posix
@pytest.mark.parametrize("name", DRAWS)
def test_nothing_is_drawn_for_an_output_that_takes_nothing(name: str, folder: Path) -> None:
    drawn = ended(WATCHED, [*DRAWS[name], "--json"], folder)
    assert drawn.returncode == 0
    assert drawn.stderr.startswith("DRAWN")
    assert_refused(ended(WATCHED, [*DRAWS[name], "--json"], folder, preexec_fn=closed))
    with Path(os.devnull).open() as unwritable:
        assert_refused(ended(WATCHED, [*DRAWS[name], "--json"], folder, stdout=unwritable))
    if hasattr(select, "poll"):
        reader, writer = os.pipe()
        os.close(reader)
        assert_refused(ended(WATCHED, [*DRAWS[name], "--json"], folder, stdout=writer))
        os.close(writer)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("name", DRAWS)
def test_what_was_drawn_and_not_written_is_said_to_be_spent(name: str, folder: Path) -> None:
    """A file that may not grow takes the empty write before the draw, and no other."""
    resource = pytest.importorskip("resource")

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    with (folder / "out").open("w") as file:
        words = [*DRAWS[name], "--json"]
        done = ended(COMMAND, words, folder, stdout=file, preexec_fn=limited)
    assert_refused(done)
    assert "what was drawn is lost, and its privacy is spent" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", LETTERS)
def test_a_letter_that_the_terminal_lacks(name: str, folder: Path) -> None:
    """Refused whichever letter would be drawn; JSON escapes it."""
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = ended(WATCHED, DRAWS[name], folder, env=environment)
    assert_refused(done)
    assert "has no '\\u03b5'" in done.stderr
    done = ended(COMMAND, [*DRAWS[name], "--json"], folder, env=environment)
    assert done.returncode == 0
    assert set(json.loads(done.stdout)["released"]) <= LETTERS[name]


@pytest.mark.slow
def test_all_queries_are_checked_before_one_is_answered(folder: Path) -> None:
    for file, good, bad in (("gamma.json", "1,1,0", "1,2,0"), ("rule.json", "3,2", "3,3")):
        (folder / "queries").write_text(f"{good}\n{bad}\n")
        done = ended(WATCHED, ["release", file, "--input", "queries"], folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert "DRAWN" not in done.stderr
        (folder / "queries").write_text(f"{good}\n{good}\n")
        done = ended(WATCHED, ["release", file, "--input", "queries"], folder)
        assert (done.returncode, done.stdout.count("\n")) == (0, 2)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("name", SHOWS)
def test_every_verb_says_that_its_answer_was_not_taken(name: str, folder: Path) -> None:
    assert_refused(ended(COMMAND, SHOWS[name], folder, preexec_fn=closed))
    if FULL.exists():
        with FULL.open("w") as full:
            assert_refused(ended(COMMAND, SHOWS[name], folder, stdout=full))


@pytest.mark.slow
@posix
def test_an_error_that_cannot_be_said_keeps_its_code(folder: Path) -> None:
    if not FULL.exists():
        pytest.skip("there is no /dev/full")
    with FULL.open("w") as full:
        done = ended(COMMAND, ["release", "gamma.json", "--input", "1"], folder, stderr=full)
    assert (done.returncode, done.stdout) == (2, "")


INTERRUPTING = """
import os, signal, sys
class Finder:
    left = int(sys.argv.pop(1))
    def find_spec(self, name, path=None, target=None):
        Finder.left -= 1
        if Finder.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return None
import dpopt.cli
sys.meta_path.insert(0, Finder())
dpopt.cli.main()
"""


@pytest.mark.slow_after(1)
@posix
@pytest.mark.parametrize("imports", [1, 10, 60, 200, 400])
def test_ctrl_c_while_the_libraries_load(imports: int) -> None:
    """The process interrupts itself at the import of that number: no time is guessed."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTING, str(imports), *SHOWS["majority"]],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "interrupted."


@pytest.mark.slow
@posix
def test_an_alphabet_of_bytes_that_are_no_text(folder: Path) -> None:
    words: list[str] = [word if word != "b,ε" else "b,\udcff" for word in DRAWS["sample"]]
    done = ended(COMMAND, words, folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "alphabet is 'b,\\udcff'" in done.stderr

"""``dpopt verify``: a saved design, checked by one file that knows nothing of this package."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import click

from dpopt import verify as verifier
from dpopt._errors import NotPrivateError, ParameterError
from dpopt.cli.output import show, to_json


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("proof", type=click.Path(path_type=Path), required=False)
@click.option("--copy", is_flag=True, help="Lay verify.py beside FILE, for others to run.")
@click.option("--json", "as_json", is_flag=True, help="Print what was shown as JSON.")
def verify(file: Path, proof: Path | None, copy: bool, as_json: bool) -> None:
    """Check a saved design and the proof that nothing is better, without this package.

    FILE is what --save wrote, X.json; PROOF is what --proof wrote, X.proof.json, found by itself if
    it lies beside. verify.py, one file of the standard library, reads both in a Python of its own
    and decides every inequality exactly. Exit code 4 for what is not private, or not shown.

    Example: dpopt verify gamma.json
    """
    from dpopt.proofs.saved import proof_path, write_verifier

    for path in (file, proof):
        if path is not None and not _is_file(path):
            raise ParameterError(f"file is {str(path)!r}; there is no such file.")
    beside = proof_path(file)
    if proof is None and beside.is_file():
        proof = beside
    start = time.perf_counter()
    files = [str(path.absolute()) for path in (file, proof) if path is not None]
    done = subprocess.run(
        [sys.executable, "-I", "-S", verifier.__file__, *files],
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
    shown, verified = done.stdout.splitlines(), done.returncode == 0
    if copy and done.returncode in (0, 4):
        # Beside what is no such file, or with another one's proof, nothing is laid.
        write_verifier(file)
    if as_json and done.returncode in (0, 4):
        seconds = time.perf_counter() - start
        told = {"verified": verified, "proof": None if proof is None else str(proof)}
        show(to_json({**told, "shown": shown, "seconds": seconds}))
    elif shown and not as_json:
        show("\n".join(shown))
    if not verified:
        why = f"file {str(file)!r}: {done.stderr.strip() or 'verify.py was ended'}"
        raise (NotPrivateError if done.returncode == 4 else ParameterError)(why)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False

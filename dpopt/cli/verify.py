"""``dpopt verify``: a saved design, checked by one file that knows nothing of this package."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from dpopt import verify as verifier
from dpopt._errors import NotPrivateError, ParameterError
from dpopt.cli.options import File, Flag, command
from dpopt.cli.output import show, to_json


@command()
def verify(file: File, proof: File | None = None, copy: Flag = False, json: Flag = False) -> None:
    """Check a saved design and the proof that nothing is better, without this package.

    FILE is what --save wrote, X.json; PROOF is what --proof wrote, X.proof.json, found by itself if
    it lies beside. verify.py, one file of the standard library, reads both in a Python of its own
    and decides every inequality exactly. Exit code 4 for what is not private, or not shown.

    Args:
        file: the design.
        proof: that nothing is better.
        copy: lay verify.py beside FILE, for others to run.
        json: print what was shown as JSON.

    Example:
        dpopt verify gamma.json
    """
    from dpopt.proofs.saved import proof_path, write_verifier

    for path in (file, proof):
        if path is not None and not os.path.isfile(path):  # noqa: PTH113 - whatever its name is
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
    decided = done.returncode in (0, 4)
    if copy and decided:
        # Beside what is no such file, or with another one's proof, nothing is laid.
        write_verifier(file)
    shown = done.stdout.splitlines()
    if json and decided:
        record = {"verified": done.returncode == 0, "proof": None if proof is None else str(proof)}
        show(to_json({**record, "shown": shown, "seconds": time.perf_counter() - start}))
    elif shown and not json:
        show("\n".join(shown))
    if done.returncode:
        why = f"file {str(file)!r}: {done.stderr.strip() or 'verify.py was ended'}"
        raise (NotPrivateError if done.returncode == 4 else ParameterError)(why)

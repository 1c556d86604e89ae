"""The proof of a design's bound, and the proof file and verifier saved with the design."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dpopt import verify
from dpopt._errors import ParameterError, SolverError
from dpopt._numbers import exact_text
from dpopt._types import Json
from dpopt.files import read_text, replacing, write_json, write_text
from dpopt.proofs.dual import Optimality, proved

FORMAT, SCHEMA = "dpopt proof", 1

SMALL = 4000
"""Number of entries of rows up to which a proof is made unasked: about 0.3 seconds."""


def optimality(
    kind: str,
    setting: Json,
    weights: Any,  # noqa: ANN401
    names: Sequence[verify.Name] | None = None,
    data: Json | None = None,
) -> Optimality | None:
    """Return the proof that no mechanism has a better value than a design.

    Args:
        kind: of the design.
        setting: its parameters as plain values, as a file has them.
        weights: its integer weights as plain values ("table" of a file).
        names: rows that may have multipliers; those that are tight at the design if None.
        data: fields of the proof file other than its bound and multipliers.

    Returns:
        The proof; None for a kind that `dpopt.verify` does not know.

    Raises:
        ParameterError: if `dpopt.verify` does not support the setting, or it is too large.
        SolverError: if no multipliers were found.
    """
    display = verify.KINDS.get(kind)
    if display is None:
        return None
    # The values that a file would have: lists for tuples.
    setting, weights, data = json.loads(json.dumps([setting, weights, data or {}]))
    try:
        program = display(setting, weights, None, data)
    except verify.Malformed as error:
        raise ParameterError(f"there is no proof of this {kind!r}: {error}.") from None
    except verify.Refused as error:
        raise SolverError(f"no proof of this {kind!r} was found: {error}.", "numerical") from None
    if not program.cost:
        raise ParameterError(f"there is no proof of this {kind!r}: value{program.note}.")
    return proved(program, names)


def proof_path(path: Path) -> Path:
    """Return X.proof.json for X.json."""
    return path.with_name(path.name.removesuffix(".json") + ".proof.json")


def write_verifier(path: Path) -> Path:
    """Copy `dpopt.verify` as verify.py into the folder of a design's file; return its path."""
    target, source = path.with_name("verify.py"), Path(verify.__file__).read_text(encoding="utf-8")
    if not target.exists():
        write_text(target, source)
    elif read_text(target) != source:
        raise ParameterError(f"path is {str(target)!r}; another file of that name is there.")
    return target


@contextmanager
def laid_beside(
    path: Path, kind: str, proof: Optimality | None, verifier: bool, data: Json | None = None
) -> Iterator[None]:
    """Save proof and verifier with a design that the block writes: all of them, or none.

    The proof may be None, and the verifier, verify.py, left out; ``data`` are those of
    `optimality`.
    """
    added = verifier and not path.with_name("verify.py").exists()
    try:
        if verifier:
            write_verifier(path)
        with ExitStack() as stack:
            if proof is not None:
                multipliers = [[*name, exact_text(y)] for name, y in proof.multipliers]
                head = {"format": FORMAT, "schema": SCHEMA, "kind": kind, **(data or {})}
                bound = {"bound": exact_text(proof.bound), "multipliers": multipliers}
                write_json(stack.enter_context(replacing(proof_path(path))), head | bound)
            yield
    except BaseException:
        if added:
            path.with_name("verify.py").unlink(missing_ok=True)
        raise

"""The proof of a design's bound, from the plain values of its file, and what lies beside that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpopt import verify
from dpopt._errors import ParameterError, SolverError
from dpopt._numbers import exact_text
from dpopt._types import Json
from dpopt.files import (
    check_json_target,
    check_target,
    read_text,
    replacing,
    write_json,
    write_text,
)
from dpopt.proofs.dual import Optimality, proved

FORMAT, SCHEMA = "dpopt proof", 1

# Up to so many entries of rows a proof is made unasked: about 0.3 seconds.
_SMALL = 4000


def small(size: int) -> bool:
    """Whether a proof that looks at so many entries of rows takes no time worth asking for."""
    return size <= _SMALL


def counted(units: Any) -> int:  # noqa: ANN401
    """Return how many numbers units are; more than are small for what is not known."""
    if isinstance(units, int | float):
        return 1
    if isinstance(units, np.ndarray):
        return units.size
    if isinstance(units, tuple | list):
        return sum(map(counted, units))
    inputs, outputs = getattr(units, "inputs", None), getattr(units, "outputs", None)
    return inputs * outputs if isinstance(inputs, int) and isinstance(outputs, int) else _SMALL + 1


def optimality(
    kind: str,
    setting: Json,
    units: Any,  # noqa: ANN401
    names: Sequence[verify.Name] | None = None,
    data: Json | None = None,
) -> Optimality | None:
    """Return the proof that no point is better than that of a design.

    Args:
        kind: of the design.
        setting: its parameters as plain values, as a file has them.
        units: likewise.
        names: of the rows whose multipliers are looked for; those tight at the units if None.
        data: what a proof file holds beside its bound and multipliers.

    Returns:
        The proof; None for a kind that `dpopt.verify` does not know.

    Raises:
        ParameterError: if that module does not display such a setting, or it is too large for it.
        SolverError: if no multipliers were found.
    """
    display = verify.KINDS.get(kind)
    if display is None:
        return None
    # As a file has them: lists for tuples, nothing but plain values.
    setting, units, data = json.loads(json.dumps([setting, units, data or {}]))
    try:
        program = display(setting, units, None, data)
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
    """Lay `dpopt.verify` as verify.py into the folder of a design's file; return where.

    Args:
        path: of the design.

    Raises:
        ParameterError: if it cannot be written, or another file has that name.
    """
    target, source = path.with_name("verify.py"), Path(verify.__file__).read_text(encoding="utf-8")
    if not target.exists():
        write_text(target, source)
    elif read_text(target) != source:
        raise ParameterError(f"path is {str(target)!r}; another file of that name is there.")
    return target


@contextmanager
def laid_beside(
    path: Path,
    kind: str,
    proof: Optimality | None,
    verifier: bool,
    data: Json | None = None,
) -> Iterator[None]:
    """Lay proof and verifier beside a design that is written inside: all of them, or none.

    Args:
        path: of the design.
        kind: of the design.
        proof: of its bound; None for none.
        verifier: whether verify.py is laid there too.
        data: as for `optimality`.

    Raises:
        ParameterError: if a file cannot be written, or another verify.py is there.
    """
    check_json_target(path)
    targets = [proof_path(path)] if proof is not None else []
    targets += [path.with_name("verify.py")] if verifier else []
    for target in targets:
        check_target(target)
    before = {target: target.read_bytes() if target.is_file() else None for target in targets}
    try:
        if verifier:
            write_verifier(path)
        if proof is not None:
            _write_proof(path, kind, proof, data)
        yield
    except BaseException:
        for target, content in before.items():
            if content is None:
                target.unlink(missing_ok=True)
            elif target.read_bytes() != content:
                with replacing(target) as temporary:
                    temporary.write_bytes(content)
        raise


def _write_proof(path: Path, kind: str, proof: Optimality, data: Json | None) -> None:
    written = {
        "format": FORMAT,
        "schema": SCHEMA,
        "kind": kind,
        **(data or {}),
        "bound": exact_text(proof.bound),
        "multipliers": [[*name, exact_text(y)] for name, y in proof.multipliers],
    }
    write_json(proof_path(path), written)

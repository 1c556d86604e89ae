"""The proof of a design's bound, from the plain values of its file, and the file that holds it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpopt import verify
from dpopt._errors import ParameterError
from dpopt._numbers import exact_text
from dpopt._types import Json
from dpopt.files import write_json
from dpopt.proofs.dual import Optimality, proved

FORMAT, SCHEMA = "dpopt proof", 1

# Up to so many entries of rows a proof is made unasked: about 0.3 seconds.
_SMALL = 4000


def small(kind: str, size: int) -> bool:
    """Whether a proof that looks at so many entries of rows takes no time worth asking for."""
    return kind in verify.KINDS and size <= _SMALL


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
        return proved(display(setting, units, None, data), names)
    except verify.Malformed as error:
        raise ParameterError(f"there is no proof of this {kind!r}: {error}.") from None


def proof_path(path: Path) -> Path:
    """Return X.proof.json for X.json."""
    return path.with_name(path.name.removesuffix(".json") + ".proof.json")


def write_proof(path: Path, kind: str, proof: Optimality, data: Json | None = None) -> None:
    """Write the proof of a design beside its file.

    Args:
        path: of the design.
        kind: of the design.
        proof: of its bound.
        data: as for `optimality`.

    Raises:
        ParameterError: if the file cannot be written.
    """
    written = {
        "format": FORMAT,
        "schema": SCHEMA,
        "kind": kind,
        **(data or {}),
        "bound": exact_text(proof.bound),
        "multipliers": [[*name, exact_text(y)] for name, y in proof.multipliers],
    }
    write_json(proof_path(path), written)

"""The proof of a design's bound, from the plain values of its file, and the file that holds it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpopt import verify
from dpopt._numbers import exact_text
from dpopt._types import Json
from dpopt.files import write_json
from dpopt.proofs.dual import Optimality, proved

FORMAT, SCHEMA = "dpopt proof", 1

# Up to so many integers a proof is made unasked: less than half a second.
_SMALL = 600


def small(kind: str, units: Any) -> bool:  # noqa: ANN401
    """Whether a proof of these units takes no time worth asking for."""
    return kind in verify.KINDS and _count(units) <= _SMALL


def _count(units: Any) -> int:  # noqa: ANN401
    if isinstance(units, int | float):
        return 1
    if isinstance(units, np.ndarray):
        return units.size
    if isinstance(units, tuple | list):
        return sum(map(_count, units))
    inputs, outputs = getattr(units, "inputs", None), getattr(units, "outputs", None)
    return inputs * outputs if isinstance(inputs, int) and isinstance(outputs, int) else _SMALL + 1


def optimality(
    kind: str,
    setting: Json,
    units: Any,  # noqa: ANN401
    names: Sequence[verify.Name] | None = None,
) -> Optimality | None:
    """Return the proof that no point is better than that of a design.

    Args:
        kind: of the design.
        setting: its parameters as plain values, as a file has them.
        units: likewise.
        names: of the rows whose multipliers are looked for; those tight at the units if None.

    Returns:
        The proof; None for a kind that `dpopt.verify` does not know.

    Raises:
        SolverError: if no multipliers were found.
    """
    display = verify.KINDS.get(kind)
    if display is None:
        return None
    # As a file has them: lists for tuples, nothing but plain values.
    setting, units = json.loads(json.dumps([setting, units]))
    return proved(display(setting, units, None, {}), names)


def proof_path(path: Path) -> Path:
    """Return X.proof.json for X.json."""
    return path.with_name(path.name.removesuffix(".json") + ".proof.json")


def write_proof(path: Path, kind: str, proof: Optimality) -> None:
    """Write the proof of a design beside its file.

    Args:
        path: of the design.
        kind: of the design.
        proof: of its bound.

    Raises:
        ParameterError: if the file cannot be written.
    """
    written = {
        "format": FORMAT,
        "schema": SCHEMA,
        "kind": kind,
        "bound": exact_text(proof.bound),
        "multipliers": [[*name, exact_text(y)] for name, y in proof.multipliers],
    }
    write_json(proof_path(path), written)

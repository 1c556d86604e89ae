"""Numbers that are kept, and how those of today differ from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from dpopt import DpoptError
from tests.golden.settings import Case

VALUES = Path(__file__).with_name("values.json")
# A point is as near as its optimum is steep, and what it spends is below the budget by its repair.
POINTS, NEAR = {"gamma", "q", "diagonal", "spent", "rate"}, 1e-6
# Held to limits of their own.
LIMITED = {"value", "bound", "gap"}
# What rounding leaves of 0, and the size that a value of 0 is taken to have.
ROUNDING, SMALL = 1e-12, 1e-3
# A gap above this share of a value is that of a loose bound, and says nothing of the value.
WIDE = 1e-7


def numbers_of(case: Case) -> dict[str, Any]:
    """Return what a case gives; of one that is refused, by which error."""
    try:
        return case.make()
    except DpoptError as error:
        return {"refused": type(error).__name__}


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, kept: Mapping[str, Any]) -> None:
    """Write what is kept, a line for each name, in their order."""
    lines = (f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def differences(kept: Any, found: Any, tolerance: float, name: str = "") -> Iterator[str]:
    """Yield where numbers are apart by more than a share of their size, and all else that differs.

    A list is as large as its largest number.
    """
    if isinstance(kept, dict) and isinstance(found, dict):
        for key in sorted({*kept, *found}):
            if key not in kept or key not in found:
                yield f"{name}{key}: " + ("new" if key in found else "gone")
            else:
                yield from differences(kept[key], found[key], tolerance, f"{name}{key} ")
    elif isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        size = max((abs(x) for x in kept if is_float(x)), default=0.0)
        for place, (one, other) in enumerate(zip(kept, found, strict=True)):
            if is_float(one) and is_float(other):
                yield from apart(one, other, tolerance * size, f"{name}{place} ")
            else:
                yield from differences(one, other, tolerance, f"{name}{place} ")
    elif is_float(kept) and is_float(found):
        yield from apart(kept, found, tolerance * abs(kept), name)
    elif kept != found:
        yield f"{name}was {kept}, is {found}"


def is_float(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def apart(kept: float, found: float, most: float, name: str) -> Iterator[str]:
    if kept != found and not abs(found - kept) <= max(most, ROUNDING):
        share = abs(found - kept) / abs(kept) if kept else math.inf
        yield f"{name}was {kept!r}, is {found!r}: moved by {found - kept:.2g} ({share:.2g} of it)"


def moved(kept: Mapping[str, Any], found: Mapping[str, Any], tolerance: float) -> Iterator[str]:
    """Yield what moved: numbers by more than the tolerance, and a bound or a gap beyond its limit.

    A value may move by a small gap, which is all that was known of the optimum. Bounds may come
    nearer to their values. They may not pass them, nor be further off than a hundred times what
    they were, or the tolerance if that is more.
    """
    others = (kept.keys() | found.keys()) - POINTS - LIMITED
    for names, most in ((POINTS, NEAR), (others, tolerance)):
        was, now = ({name: side[name] for name in names & side.keys()} for side in (kept, found))
        yield from differences(was, now, most)
    gaps = kept.get("gap"), found.get("gap")
    if "value" in kept and "value" in found:
        room = (gaps[0] or 0.0) / abs(kept["value"]) if gaps[0] and kept["value"] else 0.0
        allowed = max(tolerance, room if room <= WIDE else 0.0)
        yield from differences(kept["value"], found["value"], allowed, "value ")
    if (gaps[0] is None) != (gaps[1] is None):
        yield f"gap was {gaps[0]}, is {gaps[1]}"
    elif gaps[0] is not None and gaps[1] is not None:
        size = max(abs(found["value"]), SMALL)
        rounding = ROUNDING * max(1.0, size)
        if not -rounding <= gaps[1] <= max(100 * gaps[0], tolerance * size):
            yield f"gap was {gaps[0]:.2g}, is {gaps[1]:.2g}"
        if abs(abs(found["bound"] - found["value"]) - abs(gaps[1])) > rounding:
            yield f"bound is {found['bound']!r}, value {found['value']!r} and gap {gaps[1]:.2g}"

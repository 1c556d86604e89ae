"""The points of a sweep, what a table can hold, and which function a table belongs to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from types import CodeType, FunctionType
from typing import Any, TypeAlias, cast

import numpy as np

from dpopt._errors import ParameterError
from dpopt._numbers import exact_text, shown
from dpopt.provenance import versions

Axes: TypeAlias = Mapping[str, Iterable[Any]]
"""Values for each parameter."""

Grid: TypeAlias = Axes | Iterable[Mapping[str, Any]]
"""Values for each parameter (their product is swept), or the points themselves."""

FAILURE = "failure"
_LONGEST_INTEGER = 10_000


@dataclass(frozen=True)
class Point:
    """One point of a grid.

    Attributes:
        arguments: what the function is called with, as given.
        parameters: the same as values of JSON.
        key: the same as text; equal for equal points.
    """

    arguments: Mapping[str, Any]
    parameters: Mapping[str, Any]
    key: str


def plain(value: Any, where: str) -> Any:  # noqa: ANN401
    """Return ``value`` as a value of JSON.

    Scalars of numpy become numbers, arrays and tuples become lists; NaN and infinities stay. An
    integer of more than 10,000 bits, which Python neither writes nor reads in decimal, becomes a
    string in hexadecimal.

    Args:
        value: a number, a string, a truth value, None, or lists and mappings of these.
        where: what it is, for the error message.

    Raises:
        ParameterError: if it is, or holds, anything else.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _LONGEST_INTEGER else exact_text(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): plain(part, where) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part, where) for part in value]
    raise ParameterError(
        f"{where} holds {_shortened(value)} of type {type(value).__name__}; it must consist of "
        "numbers, strings, truth values, None, and lists and mappings (with strings as keys) of "
        "these."
    )


def points_of(grid: Grid) -> tuple[Point, ...]:
    """Return the points of a grid in its order: the last parameter of a mapping varies fastest.

    Raises:
        ParameterError: if there is no point, a point occurs twice, points differ in the names of
            their parameters, or a value cannot be written to a table.
    """
    chosen = _product(cast(Axes, grid)) if isinstance(grid, Mapping) else _listed(grid)
    points, known = [], set()
    for arguments in chosen:
        parameters = {name: plain(value, name) for name, value in arguments.items()}
        point = Point(arguments, parameters, key_of(parameters))
        if point.key in known:
            raise ParameterError(f"grid holds the point {point.key} twice; give each point once.")
        known.add(point.key)
        points.append(point)
    if not points:
        raise ParameterError("grid is empty; give at least one value of each parameter.")
    names = set(points[0].parameters)
    for point in points:
        if set(point.parameters) != names:
            raise ParameterError(
                f"grid holds the point {point.key}; each point must have the parameters "
                f"{', '.join(sorted(names))}."
            )
    return tuple(points)


def key_of(parameters: Mapping[str, Any]) -> str:
    """Return the text that identifies a point, whatever the order of its parameters."""
    return json.dumps(parameters, sort_keys=True)


def _product(grid: Axes) -> list[dict[str, Any]]:
    axes = {}
    for name, values in grid.items():
        _check_name(name)
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise ParameterError(
                f"grid has {_shortened(values)} for {name}; it must be a list of values."
            )
        axes[name] = list(values)
    chosen = product(*axes.values()) if axes else ()
    return [dict(zip(axes, point, strict=True)) for point in chosen]


def _listed(grid: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(grid, str | bytes) or not isinstance(grid, Iterable):
        raise ParameterError(
            f"grid is {_shortened(grid)}; it must be a mapping of lists or a list of mappings."
        )
    points = []
    for point in grid:
        if not isinstance(point, Mapping) or not point:
            raise ParameterError(
                f"grid holds {_shortened(point)}; each point must be a mapping from the names of "
                "parameters to values."
            )
        for name in point:
            _check_name(name)
        points.append(dict(point))
    return points


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier() or name == FAILURE:
        raise ParameterError(
            f"grid has a parameter named {shown(name)}; it must be a name that the function "
            f"takes, and not {FAILURE!r}."
        )


def _shortened(value: object) -> str:
    text = shown(value)
    return text if len(text) <= 60 else text[:57] + "..."


def name_of(function: Callable[..., Any]) -> str:
    """Return the module and the qualified name of a function, of a partial one that inside."""
    while isinstance(function, partial):
        function = function.func
    owner = function if hasattr(function, "__qualname__") else type(function)
    return f"{owner.__module__}.{owner.__qualname__}"


def fingerprint(function: Callable[..., Any], version: str | None) -> str:
    """Return a digest that tells apart functions whose results must not share a table.

    With a version it is that of name and version. Without, that of name, dpopt's version, and the
    function's own code, defaults and closed-over values; the code of what it calls is not seen.
    """
    if version is not None:
        parts = [name_of(function), "version", version]
    else:
        parts = [name_of(function), "code", versions()["dpopt"], *_described(function)]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _described(value: object) -> list[str]:
    """Return lines that change with the code or the value; addresses do not enter."""
    if isinstance(value, partial):
        return ["partial", *_described(value.func), *_described([value.args, value.keywords])]
    if isinstance(value, FunctionType):
        cells = [_content(cell) for cell in value.__closure__ or ()]
        defaults = [value.__defaults__, value.__kwdefaults__]
        return ["function", *_described(value.__code__), *_described([defaults, cells])]
    if isinstance(value, CodeType):
        own = [value.co_code.hex(), repr(value.co_names), repr(value.co_varnames)]
        return ["code", *own, *_described(value.co_consts)]
    if isinstance(value, np.ndarray | np.generic):
        return _described(value.tolist())
    if isinstance(value, Mapping):
        return ["{", *(line for item in value.items() for line in _described(item)), "}"]
    if isinstance(value, frozenset | set):
        return ["set", *sorted("\t".join(_described(part)) for part in value)]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ["[", *(line for part in value for line in _described(part)), "]"]
    if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
        return [f"int {exact_text(value)}"]
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return [f"{type(value).__name__} {value!r}"]
    return [f"{type(value).__module__}.{type(value).__qualname__}"]


def _content(cell: Any) -> object:  # noqa: ANN401
    try:
        return cell.cell_contents
    except ValueError:
        # A name that is not bound yet, such as that of a function that calls itself.
        return None

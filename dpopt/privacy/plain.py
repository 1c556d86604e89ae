"""Parameters and tables as plain values for files, and a digest of them for certificates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from dpopt._errors import ParameterError
from dpopt._numbers import exact_text


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return a parameter as what JSON holds and a constructor takes."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return exact_text(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list | range):
        return [plain(part) for part in value]
    if is_dataclass(value) and "__str__" not in type(value).__dict__:
        return [plain(getattr(value, f.name)) for f in fields(cast(Any, value))]
    return str(value)


def fingerprint(*parts: object) -> str:
    """Return the SHA-256 of numbers, texts, arrays, tuples and frozen dataclasses of them.

    Equal numbers of different types (1 and 1.0) differ, and so do a tuple and a list, which could
    be changed afterwards and is refused. Fields that a dataclass does not compare do not count.

    Raises:
        ParameterError: for anything else.
    """
    digest = hashlib.sha256()
    for token in _tokens(parts):
        digest.update(token.encode() if isinstance(token, str) else token)
    return digest.hexdigest()


def _tokens(part: object) -> Iterator[str | bytes]:
    """Yield a text of a part that no other part has; numbers in hexadecimal, of any length."""
    if part is None or isinstance(part, bool):
        yield f"{part};"
    elif type(part) is int:
        yield f"{part:x};"
    elif type(part) is float:
        yield f"{part.hex()};"
    elif isinstance(part, Fraction):
        yield f"{part.numerator:x}/{part.denominator:x};"
    elif isinstance(part, str):
        yield f"{len(part)}:{part};"
    elif isinstance(part, np.ndarray) and part.dtype.kind in "iuf":
        yield f"{part.dtype.str}{part.shape}:"
        yield np.ascontiguousarray(part).tobytes()
    elif type(part) is tuple:
        yield f"({len(part)}:"
        if set(map(type, part)) == {int}:
            yield ";".join(map("{:x}".format, part))
        else:
            for inner in part:
                yield from _tokens(inner)
        yield ")"
    elif is_dataclass(part) and not isinstance(part, type):
        yield f"{type(part).__name__}:"
        compared = [field.name for field in fields(cast(Any, part)) if field.compare]
        yield from _tokens(tuple(getattr(part, name) for name in compared))
    else:
        raise ParameterError(
            f"the numbers hold a {type(part).__name__}; a proof is about integers, floats, texts "
            "and tuples of them."
        )

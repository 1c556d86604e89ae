"""Conversion of parameters to plain values for files, and a digest for certificates."""

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
    """Return a parameter as a JSON value that its constructor also accepts."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return exact_text(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list | range):
        return [plain(entry) for entry in value]
    if is_dataclass(value) and "__str__" not in type(value).__dict__:
        return [plain(getattr(value, f.name)) for f in fields(cast(Any, value))]
    return str(value)


def fingerprint(*parts: object) -> str:
    """Return the SHA-256 of numbers, texts, arrays, tuples and frozen dataclasses of them.

    Equal numbers of different types (1 and 1.0) have different digests. Lists are refused, since
    they could change afterwards. Dataclass fields with ``compare=False`` are left out.
    """
    digest = hashlib.sha256()
    for token in _tokens(parts):
        digest.update(token.encode() if isinstance(token, str) else token)
    return digest.hexdigest()


def _tokens(value: object) -> Iterator[str | bytes]:
    """Yield an injective encoding of a value; integers are in hexadecimal, of any length."""
    if value is None or isinstance(value, bool):
        yield f"{value};"
    elif type(value) is int:
        yield f"{value:x};"
    elif type(value) is float:
        yield f"{value.hex()};"
    elif isinstance(value, Fraction):
        yield f"{value.numerator:x}/{value.denominator:x};"
    elif isinstance(value, str):
        yield f"{len(value)}:{value};"
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        yield f"{value.dtype.str}{value.shape}:"
        yield np.ascontiguousarray(value).tobytes()
    elif type(value) is tuple:
        yield f"({len(value)}:"
        if set(map(type, value)) == {int}:
            yield ";".join(map("{:x}".format, value))
        else:
            for inner in value:
                yield from _tokens(inner)
        yield ")"
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__name__}:"
        compared = [field.name for field in fields(cast(Any, value)) if field.compare]
        yield from _tokens(tuple(getattr(value, name) for name in compared))
    else:
        raise ParameterError(
            f"the numbers hold a {type(value).__name__}; a proof is about integers, floats, texts "
            "and tuples of them."
        )

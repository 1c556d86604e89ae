"""Results that hold the numbers which their certificate is about, and no others.

A frozen result can be changed after all: `dataclasses.replace`, a constructor call and a pickle
each make an object whose certificate was made for another one's numbers. Here every way to make
an object goes through its constructor, which compares the certificate's digest with the numbers,
and a pickle through the proof itself. So whoever holds a result may rely on it: releases, files,
votes and other libraries' interfaces have nothing left to check.

The caller is trusted, mistakes are not: who writes into ``__dict__`` is not stopped.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Self, cast

import numpy as np

from dpopt._errors import ParameterError
from dpopt.privacy.exact import Certificate

Implied = tuple[str, object, object]
"""Name of a field, its value, and the value that follows from what was proved."""


class Coherent:
    """A frozen dataclass of which some fields follow from others, and are held to it.

    What it computes for itself (cached properties) is neither copied nor pickled.
    """

    def __post_init__(self) -> None:
        """Refuse fields that do not belong together.

        Raises:
            ParameterError: naming the field.
        """
        for name, value, expected in self._implied():
            if not _same(value, expected):
                raise ParameterError(
                    f"{name} is not that of the other numbers of this {type(self).__name__}; make "
                    "the result anew instead of changing one of its fields."
                )

    def _implied(self) -> Iterator[Implied]:
        """Yield the fields that follow from others, as they are and as they have to be."""
        yield from ()

    def _proved_again(self) -> Self:
        """Return the object with a proof made now."""
        return self

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}

    def __copy__(self) -> Self:
        """Return another object of the same fields."""
        return type(self)(**self._fields())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return another object of copied fields."""
        values = {n: copy.deepcopy(v, memo) for n, v in self._fields().items()}
        return _built(type(self), values)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields; what is read back is proved again."""
        return _restored, (type(self), self._fields())


class Vouched(Coherent, ABC):
    """A result with a certificate, which is about this result's own numbers."""

    # A Certificate, or None in some classes; a field in all but one.
    certificate: Any

    def __post_init__(self) -> None:
        """Refuse numbers that the certificate is not about.

        Raises:
            ParameterError: if there are such.
        """
        proof = self.certificate
        if proof is not None and not proof.is_about(*self._subject()):
            raise ParameterError(
                f"certificate is not about the other numbers of this {type(self).__name__}: what "
                "is released was not proved; make the result anew instead of changing one of its "
                "fields."
            )
        super().__post_init__()

    @abstractmethod
    def _subject(self) -> tuple[object, ...]:
        """Return what the certificate has to be about, as it was given to `Certificate.about`."""

    @abstractmethod
    def _prove(self) -> Certificate:
        """Prove the numbers at hand.

        Raises:
            NotPrivateError: if they are not private.
        """

    def _proved_again(self) -> Self:
        if self.certificate is None:
            return self
        return replace(cast(Any, self), certificate=self._prove())


def _restored(kind: type[Coherent], values: dict[str, Any]) -> Coherent:
    """Return the object of a pickle, its digest compared and its proof made again."""
    return _built(kind, values)._proved_again()


def _built(kind: type[Any], values: dict[str, Any]) -> Any:  # noqa: ANN401
    # Neither a pickle nor a copy of an array keeps that it is read-only.
    for value in values.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return kind(**values)


def _same(value: object, expected: object) -> bool:
    if isinstance(expected, np.ndarray):
        return np.array_equal(cast(Any, value), expected)
    return value == expected

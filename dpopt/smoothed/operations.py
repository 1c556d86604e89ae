"""Operations on anonymous mechanisms that return a new one: Propositions 4, 5 and 6."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import IntVector, Json, Matrix, SparseMatrix, brief, frozen
from dpopt.prob.histograms import checked_distributions, checked_histograms
from dpopt.smoothed.mechanisms import (
    AnonymousMechanism,
    Mechanism,
    as_anonymous,
    read_mechanism,
    settle,
)

LARGEST_OUTPUTS = 10**7
_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class PostProcessed(AnonymousMechanism):
    """A mechanism whose output goes through a map that does not see the data.

    Attributes:
        mechanism: whose output is mapped.
        matrix: Pr[new output | output], shape (outputs, new outputs), rows summing to 1.
    """

    mechanism: AnonymousMechanism
    matrix: SparseMatrix
    word: ClassVar[str] = "post-processed"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PostProcessed:
        """Return the mapped mechanism of its plain values."""
        inner = as_anonymous(read_mechanism(values["of"]))
        rows, columns, entries = zip(*values["map"], strict=True)
        shape = (inner.outputs, _checks.integer("new_outputs", values["new_outputs"], 1))
        matrix = sp.csr_array((entries, (rows, columns)), shape=shape)
        if matrix.nnz and (matrix.data.min() < 0 or np.abs(matrix.sum(axis=1) - 1).max() > 1e-9):
            raise ParameterError("map must be a stochastic matrix.")
        return cls(inner, matrix)

    def __repr__(self) -> str:
        return brief(self)

    def __post_init__(self) -> None:
        settle(self, records=self.mechanism.records, categories=self.mechanism.categories)

    @property
    def outputs(self) -> int:
        """Number of new outputs."""
        return int(self.matrix.shape[1])

    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return the laws of the mapped output; see `AnonymousMechanism.laws`."""
        return np.asarray(self.mechanism.laws(histograms) @ self.matrix)

    def to_dict(self) -> Json:
        """Return the mechanism and the map as plain values: triples (output, new output, p)."""
        entries = self.matrix.tocoo()
        triples = zip(
            entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True
        )
        return {
            "mechanism": self.word,
            "of": self.mechanism.to_dict(),
            "new_outputs": self.outputs,
            "map": [list(triple) for triple in triples],
        }


@dataclass(frozen=True, eq=False)
class PreProcessed(AnonymousMechanism):
    """A mechanism that sees each record through a map of categories.

    Attributes:
        mechanism: M, over k categories.
        mapping: f, the category of M that stands for each new category, shape (m,), read-only.
    """

    mechanism: AnonymousMechanism
    mapping: tuple[int, ...]
    word: ClassVar[str] = "pre-processed"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PreProcessed:
        """Return the mechanism before which categories are mapped, of its plain values."""
        return pre_process(read_mechanism(values["of"]), values["mapping"])

    def __post_init__(self) -> None:
        settle(self, records=self.mechanism.records, categories=len(self.mapping))

    @property
    def outputs(self) -> int:
        """Number of outputs of M."""
        return self.mechanism.outputs

    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return the laws of M on the mapped records; see `AnonymousMechanism.laws`."""
        rows = checked_histograms(histograms, self.records, self.categories)
        mapped = np.zeros((rows.shape[0], self.mechanism.categories), dtype=np.int64)
        for new, old in enumerate(self.mapping):
            mapped[:, old] += rows[:, new]
        return self.mechanism.laws(mapped)

    def to_dict(self) -> Json:
        """Return the mechanism and the map as plain values."""
        return {
            "mechanism": self.word,
            "of": self.mechanism.to_dict(),
            "mapping": list(self.mapping),
        }


@dataclass(frozen=True, eq=False)
class Composed(AnonymousMechanism):
    """Several mechanisms run independently on the same database, all outputs published.

    Attributes:
        mechanisms: at least one; the last one's output varies fastest.
    """

    mechanisms: tuple[AnonymousMechanism, ...]
    word: ClassVar[str] = "composed"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Composed:
        """Return the composition of the parts' plain values."""
        return compose(*(read_mechanism(part) for part in values["parts"]))

    def __post_init__(self) -> None:
        first = self.mechanisms[0]
        settle(self, records=first.records, categories=first.categories)

    @property
    def outputs(self) -> int:
        """Product of the numbers of outputs."""
        return math.prod(part.outputs for part in self.mechanisms)

    def laws(self, histograms: npt.ArrayLike) -> Matrix:
        """Return the product laws; see `AnonymousMechanism.laws`."""
        rows = checked_histograms(histograms, self.records, self.categories)
        law = np.ones((rows.shape[0], 1))
        for part in self.mechanisms:
            law = (law[:, :, None] * part.laws(rows)[:, None, :]).reshape(rows.shape[0], -1)
        return law

    def to_dict(self) -> Json:
        """Return the parts as plain values."""
        parts = [part.to_dict() for part in self.mechanisms]
        return {"mechanism": self.word, "parts": parts}


def post_process(
    mechanism: Mechanism, mapping: Callable[[int], int] | npt.ArrayLike
) -> PostProcessed:
    """Return f(M): the output of a mechanism after a map, random or not, that sees no data.

    delta of f(M) is at most that of M, at every database and epsilon.

    Args:
        mechanism: M.
        mapping: f: a function of the output's index, or one integer for each output (outputs with
            the same integer are merged, new outputs are in increasing order of the integers), or a
            stochastic matrix of shape (outputs, new outputs).

    Raises:
        ParameterError: if the map does not fit the outputs.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Proposition 4.
    """
    inner = as_anonymous(mechanism)
    return PostProcessed(inner, _stochastic(inner.outputs, mapping))


def pre_process(mechanism: Mechanism, mapping: npt.ArrayLike) -> PreProcessed:
    """Return M(f(x)) for a map f of each record's category.

    M(f) is as private over Pi as M is over f(Pi), `push_forward`; at a database x, delta of M(f)
    is at most that of M at f(x), as replacing a record of x replaces at most one of f(x).

    Args:
        mechanism: M, over k categories.
        mapping: f as the category 0..k-1 of M for each new category, shape (m,), m >= 2.

    Raises:
        ParameterError: if it is no such map.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Proposition 6.
    """
    inner = as_anonymous(mechanism)
    indices = _indices(mapping, inner.categories)
    if indices.size < 2:
        raise ParameterError("mapping has 1 category; a mechanism has at least 2.")
    return PreProcessed(inner, tuple(indices.tolist()))


def push_forward(
    distributions: npt.ArrayLike, mapping: npt.ArrayLike, categories: int | None = None
) -> Matrix:
    """Return f(Pi): the laws of f(X) for X from each distribution.

    Args:
        distributions: Pi, shape (l, m).
        mapping: f as in `pre_process`, shape (m,).
        categories: k; one more than the largest category of ``mapping`` if None.

    Returns:
        Shape (l, k), read-only.

    Raises:
        ParameterError: if they do not fit each other.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, before Proposition 6.
    """
    laws = checked_distributions(distributions)
    if categories is not None:
        categories = _checks.integer("categories", categories, 1, LARGEST_OUTPUTS)
    indices = _indices(mapping, categories)
    if indices.size != laws.shape[1]:
        raise ParameterError(
            f"mapping has {indices.size} categories and the distributions {laws.shape[1]}; "
            "they must have the same."
        )
    images = np.zeros((laws.shape[0], int(indices.max()) + 1 if categories is None else categories))
    for new, old in enumerate(indices.tolist()):
        images[:, old] += laws[:, new]
    return frozen(images)


def compose(*mechanisms: Mechanism) -> Composed:
    """Return the mechanism that publishes what several publish, independently of each other.

    Its epsilons and deltas are at most the sums of theirs.

    Args:
        mechanisms: at least one, with the same n and m, at most 1e7 outputs in all.

    Raises:
        ParameterError: if there is none, or they do not fit.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Proposition 5.
    """
    if not mechanisms:
        raise ParameterError("mechanisms is empty; compose takes at least one.")
    parts = tuple(as_anonymous(part) for part in mechanisms)
    sizes = {(part.records, part.categories) for part in parts}
    if len(sizes) > 1:
        raise ParameterError(
            f"mechanisms have (records, categories) {sorted(sizes)}; they must have the same."
        )
    composed = Composed(parts)
    if composed.outputs > LARGEST_OUTPUTS:
        raise ParameterError(
            f"mechanisms have {composed.outputs:,} outputs together; at most {LARGEST_OUTPUTS:,} "
            "can be listed."
        )
    return composed


def _indices(mapping: npt.ArrayLike, categories: int | None) -> IntVector:
    most = "" if categories is None else f" and at most {categories - 1}"
    given = _checks.array("mapping", mapping)
    whole = given.ndim == 1 and given.size > 0 and np.issubdtype(given.dtype, np.integer)
    if not whole or np.any(given < 0) or (categories is not None and np.any(given >= categories)):
        raise ParameterError(
            f"mapping is {_checks.shown(mapping)}; it must hold integers of at least 0{most}."
        )
    return given.astype(np.int64)


def _stochastic(outputs: int, mapping: Callable[[int], int] | npt.ArrayLike) -> SparseMatrix:
    """Return the map as a matrix of shape (outputs, new outputs)."""
    if callable(mapping):
        mapping = [_checks.integer("the map's value", mapping(i), 0) for i in range(outputs)]
    given = _checks.array("mapping", mapping)
    if given.ndim == 1:
        labels = _indices(given, None)
        if labels.size != outputs:
            raise ParameterError(f"mapping has {labels.size} entries for {outputs} outputs.")
        _, places = np.unique(labels, return_inverse=True)
        entries = (np.ones(outputs), (np.arange(outputs), places))
        return sp.csr_array(entries, shape=(outputs, int(places.max()) + 1))
    if given.ndim != 2 or given.shape[0] != outputs or given.shape[1] < 1:
        raise ParameterError(
            f"mapping has shape {given.shape}; a matrix must be ({outputs}, new outputs)."
        )
    matrix = checked_distributions(given) if given.shape[1] > 1 else np.asarray(given, float)
    if given.shape[1] == 1 and not np.all(matrix == 1.0):
        raise ParameterError("mapping has one new output; its column must hold ones.")
    return sp.csr_array(matrix)

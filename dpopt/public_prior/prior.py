"""The public distribution, its bounds on every private kernel, and users' inputs.

The bounds are Theorem 1 and Lemma 3 of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Rational
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import MOST_BITS, digits
from dpopt._types import IntVector, Matrix, Vector, frozen
from dpopt.data.tally import labels_of
from dpopt.privacy.exact import rational
from dpopt.privacy.release import below, below_each, seeded, system

# By how much public masses may miss the sum 1, before they are divided by it.
TOLERANCE = 1e-9

LEAST_EPSILON = 1e-9
"""In nats; below it, the kernel is the prior up to rounding."""

Labels = Sequence[Hashable]
"""Names of the categories; as a text, a,b,c."""


@dataclass(frozen=True, eq=False)
class PublicDistribution:
    """A public distribution q > 0 over n categories.

    Attributes:
        labels: names of the categories, shape (n,), in the caller's order; a range if they have
            none.
        masses: q, shape (n,), above 0, summing to 1, read-only.
    """

    labels: Sequence[Hashable]
    masses: Vector

    @property
    def size(self) -> int:
        """Number of categories, n."""
        return self.masses.size

    @cached_property
    def order(self) -> IntVector:
        """Indices of the categories by ascending mass, ties in the caller's order, shape (n,)."""
        order = np.argsort(self.masses, kind="stable").astype(np.int64)
        order.setflags(write=False)
        return order

    @cached_property
    def places(self) -> Mapping[Hashable, int]:
        """Index of each category in the caller's order."""
        return {category: index for index, category in enumerate(self.labels)}

    def columns(self) -> dict[str, Sequence[Hashable]]:
        """Return the columns "category" and "mass", one line per category."""
        return {"category": list(self.labels), "mass": self.masses.tolist()}


PublicLike = npt.ArrayLike | PublicDistribution
"""A public distribution, or its probabilities."""


def public_distribution(
    public: PublicLike, labels: Iterable[Hashable] | None = None
) -> PublicDistribution:
    """Return a checked public distribution, its masses divided by their sum.

    Args:
        public: q, shape (n,), n >= 1, each above 0, summing to 1 up to 1e-9; in any order.
        labels: n distinct names, printable texts or integers, as a text a,b,c; if None, the index
            of a pandas column that has one, else 0..n-1.

    Raises:
        ParameterError: for another shape; for masses that are negative, not finite, 0 (the theorem
            excludes such categories) or do not sum to 1; or for names that are not distinct.
    """
    if isinstance(public, PublicDistribution):
        if labels is not None:
            raise ParameterError("labels are given, but public has its own; give one of them.")
        return public
    index = getattr(public, "index", None)
    pandas = type(public).__module__.split(".")[0] == "pandas"
    if labels is None and pandas and type(index).__name__ != "RangeIndex":
        labels = index
    values = _checks.floats("public", public)
    if values.ndim != 1 or values.size == 0:
        raise ParameterError(f"public has shape {values.shape}; it must be (n,) with n at least 1.")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ParameterError("public holds a negative number, or one that is not finite.")
    names = _labels(labels, values.size)
    zero = np.flatnonzero(values == 0)
    if zero.size:
        named_zeros = ", ".join(repr(names[int(index)]) for index in zero[:5])
        more = f" and {zero.size - 5} more" if zero.size > 5 else ""
        raise ParameterError(
            f"public has mass 0 at {named_zeros}{more}; every category needs a mass above 0: leave "
            "those out that no user has, or mix with the uniform distribution."
        )
    total = float(np.sum(values, dtype=np.longdouble))
    if abs(total - 1.0) > TOLERANCE:
        raise ParameterError(
            f"public sums to {digits(total)}; it must sum to 1 up to {TOLERANCE:g}: divide it by "
            "its sum."
        )
    # A sum this close to 1 is 1 up to rounding: dividing by it would only change the last digits.
    if abs(total - 1.0) > 2.0**-52:
        values = values / np.sum(values, dtype=np.longdouble)
    return PublicDistribution(names, frozen(values))


def _labels(labels: object, size: int) -> Sequence[Hashable]:
    """Return checked names, ``size`` of them; 0..size-1 if there are none."""
    if labels is None:
        return range(size)
    names = labels_of(labels.split(",") if isinstance(labels, str) else labels, least=1)
    if not isinstance(names, range):
        if not all(type(name) in (str, int) for name in names):
            raise ParameterError("labels holds a name that is neither a text nor an integer.")
        for name in names:
            if isinstance(name, str):
                _checks.printable("labels", name)
    if len(names) != size:
        raise ParameterError(f"labels has {len(names)} names; it must have {size}.")
    return names


def minimax_utility(public: PublicLike, epsilon: float) -> float:
    """Return Gamma_TV(q, epsilon), the least worst-case total variation (Theorem 1).

    Gamma_TV = min over K of max over p of TV(p, p K), over epsilon-LDP kernels with q K = q. It is
    1 - x with x the least of `diagonal_bounds`. For the f-divergence of any convex f with f(1) = 0
    the least worst case is (1 - x) f(0) + x f(1 / x), attained by the same kernels.

    Args:
        public: q, shape (n,), above 0, summing to 1; or a `PublicDistribution`.
        epsilon: above 0, in nats, at most 600.

    Raises:
        ParameterError: if an argument is out of range.
    """
    smallest = float(public_distribution(public).masses.min())
    # The odds (1 - x) / x, computed without cancellation.
    odds = (1.0 - smallest) / smallest * math.exp(-_privacy(epsilon))
    # They overflow to infinity if the mass is below the normal range of floats.
    return 1.0 if math.isinf(odds) else odds / (1.0 + odds)


def diagonal_bounds(public: PublicLike, epsilon: float) -> Vector:
    """Return upper bounds on K_ii: e^epsilon q_i / (e^epsilon q_i + 1 - q_i) (Lemma 3).

    Args:
        public: q, shape (n,), above 0, summing to 1; or a `PublicDistribution`.
        epsilon: above 0, in nats, at most 600.

    Returns:
        Shape (n,), read-only.

    Raises:
        ParameterError: if an argument is out of range.
    """
    q = public_distribution(public).masses
    return frozen(q / (q + (1.0 - q) * math.exp(-_privacy(epsilon))))


def _privacy(epsilon: float) -> float:
    return _checks.real("epsilon", epsilon, 0.0, 600.0, open_lower=True)


def pmfs_over(values: npt.ArrayLike, size: int) -> Matrix:
    """Return distributions, checked and normalised: one, shape (size,), or several, a row each."""
    array = _checks.floats("p", values)
    if array.ndim not in (1, 2) or array.shape[-1] != size or array.size == 0:
        raise ParameterError(
            f"p has shape {array.shape}; it must be ({size},), or (users, {size}) with users at "
            "least 1."
        )
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ParameterError("p holds a negative number, or one that is not finite.")
    # The sum of what is no distribution may be beyond all floats.
    with np.errstate(over="ignore"):
        sums = array.sum(axis=-1, keepdims=True)
    if np.any(np.abs(sums - 1.0) > TOLERANCE):
        raise ParameterError(f"p does not sum to 1 up to {TOLERANCE:g}; divide it by its sum.")
    return np.asarray(array / sums)


def places_of(public: PublicDistribution, own: object) -> tuple[IntVector, bool]:
    """Return the indices of one category or several, and whether it was one.

    The error for an unknown category does not show it, since that would release it.
    """
    if isinstance(public.labels, range):
        array = _checks.array("own", own)
        integral = array.dtype.kind in "iu" or array.size == 0
        if array.ndim > 1 or not integral:
            raise ParameterError("own must be a category, or a sequence of them: integers.")
        if array.size and (array.min() < 0 or array.max() >= public.size):
            raise ParameterError(f"own holds a category outside 0..{public.size - 1}.")
        return np.atleast_1d(array).astype(np.int64), array.ndim == 0
    if isinstance(own, Hashable) and own in public.places:
        return np.array([public.places[own]], dtype=np.int64), True
    unknown = ParameterError("own holds a category that the prior does not have.")
    if isinstance(own, str | bytes) or not isinstance(own, Iterable):
        raise unknown
    try:
        indices = [public.places[category] for category in own]
    except (KeyError, TypeError):
        raise unknown from None
    return np.array(indices, dtype=np.int64), False


def _in_order(counts: Any, labels: Sequence[Hashable]) -> Any:  # noqa: ANN401
    """Return a table or column whose labels are the categories in the order of the categories."""
    names = getattr(counts, "columns", getattr(counts, "index", None))
    if type(counts).__module__.split(".")[0] not in ("pandas", "polars") or names is None:
        return counts
    same = len(names) == len(labels) and set(names) == set(labels)
    return counts[list(labels)] if same else counts


def _counts(table: npt.NDArray[Any]) -> npt.NDArray[np.int64] | npt.NDArray[np.object_]:
    """Return counts, shape (users, n), as integers: of 64 bits if every user's sum fits."""
    exact = (isinstance(value, Rational) and not isinstance(value, bool) for value in table.flat)
    if table.dtype.kind not in "iuO" or (table.dtype.kind == "O" and not all(exact)):
        raise ParameterError("counts must be integers or Fractions; floats are not exact.")
    if table.dtype.kind == "O":
        # Times a common denominator of the user's.
        rows = [[rational("counts", value) for value in row] for row in table]
        common = [math.lcm(*(value.denominator for value in row)) for row in rows]
        if max(common, default=1).bit_length() > MOST_BITS:
            raise ParameterError(f"counts have a common denominator beyond 2^{MOST_BITS}.")
        scaled = [[int(v * c) for v in row] for row, c in zip(rows, common, strict=True)]
        table = np.array(scaled, dtype=object).reshape(table.shape)
    if np.any(table < 0):
        raise ParameterError("counts holds a negative number.")
    large = table.size and int(table.max()) > (1 << 62) // table.shape[1]
    counts = table.astype(object if large else np.int64)
    if np.any(counts.sum(axis=1) == 0):
        raise ParameterError("counts has a user whose counts are all 0; leave such users out.")
    return counts


def draw_own_category(
    counts: object, labels: Sequence[Hashable] | int, rng: np.random.Generator | None = None
) -> Any:  # noqa: ANN401
    """Return a category drawn exactly from each user's p; this draw is not private itself.

    A release from the kernel K for these categories then has exactly the distribution p K.

    Args:
        counts: proportional to p, integers or Fractions, shape (n,) or (users, n), at least 0, not
            all 0 for any user; a table may have its columns in any order, named by category.
        labels: names of the categories, or n.
        rng: a seeded generator, for experiments; None uses the system's randomness.

    Returns:
        One category for a single user, else one per user: a list of names, or an array of indices
        if the categories have no names.

    Raises:
        ParameterError: for another shape or other values.
    """
    names = labels_of(labels, least=1)
    array = _checks.array("counts", _in_order(counts, names))
    if array.ndim not in (1, 2) or array.shape[-1] != len(names):
        raise ParameterError(
            f"labels are {len(names)} and counts has shape {array.shape}; it must be one number "
            "for each category, or a row of them for each user."
        )
    table = _counts(np.atleast_2d(array))
    source = system if rng is None else seeded(rng)
    # Cumulative counts, at which an integer below the sum of all is compared.
    sums: npt.NDArray[Any] = np.cumsum(table, axis=1)
    if sums.dtype == object:
        drawn = np.array([below(int(total), source) for total in sums[:, -1]], dtype=object)
    else:
        drawn = below_each(sums[:, -1], source)
    return named(np.count_nonzero(sums <= drawn[:, None], axis=1), names, array.ndim == 1)


def named(indices: IntVector, labels: Sequence[Hashable], single: bool) -> Any:  # noqa: ANN401
    """Return categories by index: one, a list of names, or the indices if they have no names."""
    if single:
        return labels[int(indices[0])]
    return indices if isinstance(labels, range) else [labels[index] for index in indices]

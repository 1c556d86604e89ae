"""Smoothed delta and smoothed epsilon: the worst way to draw the records from a set of laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._plot import new_axes
from dpopt._progress import advance
from dpopt._types import IntVector, Json, Matrix, Vector, brief
from dpopt.files import write_json
from dpopt.prob.compositions import log_composition, maximise
from dpopt.prob.histograms import (
    binary_share,
    checked_distributions,
    dropping_loss,
    extremes,
    general_smoothed,
    hull_vertices,
    log_composed,
)
from dpopt.prob.sum_law import allowance
from dpopt.provenance import versions
from dpopt.smoothed.mechanisms import SamplingHistogram
from dpopt.smoothed.profile import (
    LARGEST_EPSILON,
    LN10,
    Mechanism,
    checked,
    finite,
    log_profile,
    worst_case_delta,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def smoothed_delta(
    mechanism: Mechanism, epsilon: float, distributions: npt.ArrayLike
) -> SmoothedDelta:
    """Return max over pi in Pi^n of E_{x ~ pi} delta_{epsilon,M}(x), with its certificate.

    Each of the n records is drawn independently, from a distribution of Pi that the adversary
    chooses. M is anonymous, so what matters is how many records come from which; by Proposition 7
    only the vertices of the convex hull of Pi do. Every composition over the vertices is evaluated
    or bounded, none is skipped.

    Args:
        mechanism: a `SamplingHistogram` or any `AnonymousMechanism`.
        epsilon: from 0 to 700, in nats.
        distributions: Pi: shape (l, m), rows summing to 1; for m = 2 also shape (l,), the shares
            of the first category.

    Returns:
        The maximum, the composition that attains it, an upper bound for all others, and DP's delta.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list.

    Example:
        >>> from dpopt import smoothed
        >>> found = smoothed.smoothed_delta(smoothed.SamplingHistogram(36, 34), 0.0, [0.4, 0.6])
        >>> round(found.delta, 12), found.certified, found.argmax
        (0.478070349009, True, (18, 18))

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 3, Proposition 7, Algorithm 1.
    """
    epsilon = checked(mechanism, epsilon)
    laws = checked_distributions(distributions, mechanism.categories)
    return _maximum(mechanism, epsilon, laws, hull_vertices(laws))


def expected_delta(
    mechanism: Mechanism,
    epsilon: float,
    distributions: npt.ArrayLike,
    composition: Sequence[int],
) -> ExpectedDelta:
    """Return E_{x ~ pi} delta_{epsilon,M}(x) where n_j of the records come from law j.

    Records are independent, and the order does not matter: M is anonymous. `smoothed_delta` is the
    largest of these numbers over all compositions n_1 + ... + n_l = n.

    Args:
        mechanism: a `SamplingHistogram` or any `AnonymousMechanism`.
        epsilon: from 0 to 700, in nats.
        distributions: the laws, shape (l, m), rows summing to 1; for m = 2 also shape (l,), the
            shares of the first category.
        composition: n_1, ..., n_l, integers of at least 0 that sum to n.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list.

    Example:
        >>> from dpopt import smoothed
        >>> mechanism = smoothed.SamplingHistogram(36, 34)
        >>> round(smoothed.expected_delta(mechanism, 0.0, [0.4, 0.6], [36, 0]).delta, 12)
        0.477756536586

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 3 and Algorithm 1.
    """
    epsilon = checked(mechanism, epsilon)
    n, m = mechanism.records, mechanism.categories
    laws = checked_distributions(distributions, m)
    counts = _checked_composition(composition, n, len(laws))
    values = log_profile(mechanism, epsilon)
    used = np.unique(laws[counts > 0], axis=0)
    if m == 2 and len(used) <= 2:
        low, high = (used[place] for place in extremes(used))
        ones = int(counts[np.all(laws == high, axis=1)].sum()) if len(used) == 2 else 0
        log_value = log_composition(values, binary_share(low), binary_share(high), ones)
        rounding = allowance(n, log_value)
    else:
        log_value, rounding = log_composed(values, n, m, laws, counts.tolist())
    return ExpectedDelta(
        mechanism=mechanism,
        epsilon=epsilon,
        distributions=laws,
        composition=tuple(counts.tolist()),
        log_delta=log_value,
        rounding=rounding,
        provenance=versions(),
    )


def smoothed_epsilon(
    mechanism: Mechanism,
    delta: float,
    distributions: npt.ArrayLike,
    *,
    tolerance: float = 1e-9,
) -> SmoothedEpsilon:
    """Return the least epsilon, up to ``tolerance``, at which smoothed delta is at most ``delta``.

    delta(x) falls as epsilon grows, and so does its maximum: bisection. What is returned suffices,
    up to the rounding that the certificate states; ``lower`` was not found to (or is 0).

    Args:
        mechanism: a `SamplingHistogram` or any `AnonymousMechanism`.
        delta: the target, in (0, 1).
        distributions: see `smoothed_delta`.
        tolerance: width of the bracket, at least 1e-12.

    Returns:
        The bracket; epsilon is infinite if even 700 does not suffice, as where a category can be
        absent from a database.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list.

    Example:
        >>> from dpopt import smoothed
        >>> mechanism = smoothed.SamplingHistogram(records=100, drawn=80)
        >>> round(smoothed.smoothed_epsilon(mechanism, 1e-3, [0.3, 0.5]).epsilon, 4)
        2.0172
    """
    checked(mechanism, 0.0)
    target = _checks.real("delta", delta, 0.0, 1.0, open_lower=True, open_upper=True)
    width = _checks.real("tolerance", tolerance, 1e-12)
    laws = checked_distributions(distributions, mechanism.categories)
    vertices = hull_vertices(laws)

    def found(epsilon: float) -> SmoothedDelta:
        return _maximum(mechanism, epsilon, laws, vertices)

    if _suffices(at := found(0.0), target):
        return SmoothedEpsilon(target, 0.0, 0.0, at)
    lower, upper = 0.0, 1.0
    while not _suffices(at := found(upper), target):
        if upper >= LARGEST_EPSILON:
            return SmoothedEpsilon(target, math.inf, upper, at)
        lower, upper = upper, min(2.0 * upper, LARGEST_EPSILON)
    while upper - lower > width:
        advance("smoothed epsilon", 0, message=f"bracket {upper - lower:.1e}")
        middle = 0.5 * (lower + upper)
        if middle in (lower, upper):
            break
        tried = found(middle)
        if _suffices(tried, target):
            upper, at = middle, tried
        else:
            lower = middle
    advance("smoothed epsilon", 1, 1)
    return SmoothedEpsilon(target, upper, lower, at)


def _checked_composition(composition: Sequence[int], records: int, laws: int) -> IntVector:
    given = _checks.array("composition", composition)
    if given.shape == (laws,):
        counts = [_checks.integer("composition", count, 0, records) for count in given.tolist()]
        if sum(counts) == records:
            return np.array(counts, dtype=np.int64)
    raise ParameterError(
        f"composition is {_checks.shown(composition)}; it must hold {laws} counts, one for each "
        f"distribution, that sum to {records}."
    )


def _suffices(found: SmoothedDelta, target: float) -> bool:
    """Whether a maximum is at most delta; one that is not proved counts with its bound."""
    largest = found.log_delta if found.certified else found.certificate.log_bound
    return largest <= math.log(target)


def _dp(mechanism: Mechanism, epsilon: float, values: Vector) -> float:
    if isinstance(mechanism, SamplingHistogram):
        return worst_case_delta(mechanism, epsilon).log_delta
    return float(np.max(values))


def _maximum(
    mechanism: Mechanism, epsilon: float, laws: Matrix, vertices: IntVector
) -> SmoothedDelta:
    n, values = mechanism.records, log_profile(mechanism, epsilon)
    counts = [0] * len(laws)
    if mechanism.categories == 2:
        low, high = vertices[list(extremes(laws[vertices]))].tolist()
        found = maximise(values, binary_share(laws[low]), binary_share(laws[high]))
        counts[low] += n - found.ones_from_high
        counts[high] += found.ones_from_high
        log_value, log_bound, method = found.log_value, found.log_bound, found.method
        certified, evaluated, compositions = found.certified, found.evaluated, n + 1
        rounding = allowance(n, log_value, n)
    else:
        best = general_smoothed(values, n, mechanism.categories, laws[vertices])
        for place, count in zip(vertices, best.composition, strict=True):
            counts[int(place)] = count
        log_value, evaluated, compositions = best.log_value, best.evaluated, best.evaluated
        rounding = best.rounding + (dropping_loss(n) if vertices.size < len(laws) else 0.0)
        log_bound, method, certified = log_value + rounding, "every composition", True
    return SmoothedDelta(
        mechanism=mechanism,
        epsilon=epsilon,
        distributions=laws,
        log_delta=log_value,
        argmax=tuple(counts),
        certified=certified,
        certificate=_certificate(
            n, log_value, log_bound, rounding, method, evaluated, compositions
        ),
        log_dp_delta=_dp(mechanism, epsilon, values),
        provenance=versions(),
    )


def _certificate(
    records: int,
    log_value: float,
    log_bound: float,
    rounding: float,
    method: str,
    evaluated: int,
    compositions: int,
) -> MaximumCertificate:
    excess = 0.0 if log_bound == log_value else log_bound - log_value
    return MaximumCertificate(
        claim=f"no composition of the {records} records has an expected delta above the bound, "
        "for the profile as computed",
        method=method,
        evaluated=evaluated,
        compositions=compositions,
        log_bound=log_bound,
        excess=excess,
        slack=2.0 * rounding - excess,
    )


# JOINED: """What is known over a set of distributions: smoothed delta, its proof, and its inverse."""
#


@dataclass(frozen=True)
class MaximumCertificate:
    """Why no composition of the records has a larger expected delta.

    Attributes:
        claim: what is proved, in words.
        method: "one composition", "ends of a V-shape" (total positivity), "every composition" or
            "branch and bound" (V-shaped majorants).
        evaluated: number of compositions whose expectation was computed.
        compositions: number of all.
        log_bound: no composition's logarithm is larger.
        excess: log_bound - log_delta: what rounding may hide, in the logarithm.
        slack: twice the rounding allowed, less the excess: at least 0 if the claim is proved.
    """

    claim: str
    method: str
    evaluated: int
    compositions: int
    log_bound: float
    excess: float
    slack: float

    def to_dict(self) -> Json:
        """Return the fields as plain values; None for the logarithm of 0."""
        return {**asdict(self), "log_bound": finite(self.log_bound)}


@dataclass(frozen=True, eq=False)
class SmoothedDelta:
    """max over pi in Pi^n of E_{x ~ pi} delta_{epsilon,M}(x) (Definition 3), and where it is.

    Attributes:
        mechanism: M.
        epsilon: in nats.
        distributions: Pi, one distribution in each row, shape (l, m), read-only.
        log_delta: natural logarithm of the maximum, -inf if it is 0.
        argmax: how many records come from each distribution where the maximum is, summing to n.
        certified: whether every composition was evaluated or bounded.
        certificate: the bound on all compositions, and how it was found.
        log_dp_delta: natural logarithm of the worst database's delta, which is DP's.
        provenance: versions that made it.
    """

    mechanism: Mechanism
    epsilon: float
    distributions: Matrix
    log_delta: float
    argmax: tuple[int, ...]
    certified: bool
    certificate: MaximumCertificate
    log_dp_delta: float
    provenance: dict[str, str]

    @property
    def delta(self) -> float:
        """Smoothed delta; 0 below 1e-308, where `log10_delta` still tells it."""
        return math.exp(self.log_delta)

    @property
    def log10_delta(self) -> float:
        """Decimal logarithm of smoothed delta."""
        return self.log_delta / LN10

    @property
    def bound(self) -> float:
        """Upper bound of the expected delta of every composition."""
        return math.exp(self.certificate.log_bound)

    @property
    def dp_delta(self) -> float:
        """DP's delta at the same epsilon."""
        return math.exp(self.log_dp_delta)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw log10 of smoothed delta beside DP's; return the axes."""
        axes = new_axes(ax)
        names = [r"smoothed $\delta$", r"DP's $\delta$"]
        axes.plot(names, [self.log10_delta, self.log_dp_delta / LN10], "o")
        axes.set_ylabel(r"$\log_{10} \delta$")
        axes.set_title(rf"$\varepsilon = {self.epsilon:g}$, $n = {self.mechanism.records}$")
        axes.margins(x=0.5)
        return axes

    def __repr__(self) -> str:
        return brief(
            self,
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            log10_delta=self.log10_delta,
            argmax=self.argmax,
            certified=self.certified,
        )

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON; None for the logarithm of 0."""
        return {
            "kind": "smoothed-delta",
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.epsilon,
            "distributions": self.distributions.tolist(),
            "delta": self.delta,
            "log10_delta": finite(self.log10_delta),
            "argmax": list(self.argmax),
            "certified": self.certified,
            "certificate": self.certificate.to_dict(),
            "dp_delta": self.dp_delta,
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())


@dataclass(frozen=True, eq=False)
class ExpectedDelta:
    """E_{x ~ pi} delta_{epsilon,M}(x) at one composition of the records.

    Attributes:
        mechanism: M.
        epsilon: in nats.
        distributions: the laws, one in each row, shape (l, m), read-only.
        composition: how many records come from each law, summing to n.
        log_delta: natural logarithm of the expectation, -inf if it is 0.
        rounding: what rounding can have changed in it, for the profile as computed.
        provenance: versions that made it.
    """

    mechanism: Mechanism
    epsilon: float
    distributions: Matrix
    composition: tuple[int, ...]
    log_delta: float
    rounding: float
    provenance: dict[str, str]

    @property
    def delta(self) -> float:
        """The expectation; 0 below 1e-308, where `log10_delta` still tells it."""
        return math.exp(self.log_delta)

    @property
    def log10_delta(self) -> float:
        """Decimal logarithm of the expectation."""
        return self.log_delta / LN10

    def __repr__(self) -> str:
        return brief(
            self,
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            composition=self.composition,
            log10_delta=self.log10_delta,
        )

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON; None for the logarithm of 0."""
        return {
            "kind": "expected-delta",
            "mechanism": self.mechanism.to_dict(),
            "epsilon": self.epsilon,
            "distributions": self.distributions.tolist(),
            "composition": list(self.composition),
            "delta": self.delta,
            "log10_delta": finite(self.log10_delta),
            "rounding": self.rounding,
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())


@dataclass(frozen=True, eq=False)
class SmoothedEpsilon:
    """The least epsilon at which smoothed delta is at most a target.

    Attributes:
        target: the delta that was asked for.
        epsilon: an epsilon that suffices up to the rounding that ``at`` states: the upper end of
            the bracket; infinite if none below 700 does.
        lower: an epsilon that was not found to suffice, or 0.
        at: smoothed delta at ``epsilon``; at 700 if ``epsilon`` is infinite.
    """

    target: float
    epsilon: float
    lower: float
    at: SmoothedDelta

    @property
    def certified(self) -> bool:
        """Whether the maximum over compositions is proved at ``epsilon``."""
        return self.at.certified

    def to_dict(self) -> Json:
        """Return the result as plain values, ready for JSON; None for an infinite epsilon."""
        return {
            "kind": "smoothed-epsilon",
            "target": self.target,
            "epsilon": finite(self.epsilon),
            "lower": self.lower,
            "at": self.at.to_dict(),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what `SmoothedDelta.plot` does, at ``epsilon``; return the axes."""
        return self.at.plot(ax)

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())

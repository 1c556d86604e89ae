"""Smoothed delta and epsilon: the worst case over distributions of the records from a set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._progress import advance
from dpopt._types import IntVector, Json, Matrix, Vector, frozen
from dpopt.prob.compositions import maximise
from dpopt.prob.histograms import (
    MaximumCertificate,
    binary_share,
    checked_distributions,
    dropping_loss,
    extremes,
    hull_vertices,
    largest_expectation,
    require_compositions,
)
from dpopt.smoothed.mechanisms import AnonymousMechanism, SamplingHistogram
from dpopt.smoothed.profile import LARGEST_EPSILON, log_exposure, log_profile
from dpopt.smoothed.results import LN10, DeltaResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class SmoothedDelta(DeltaResult[float]):
    """max over pi in Pi^n of E_{x ~ pi} delta_{epsilon,M}(x) (Definition 3), and where it is.

    Attributes:
        mechanism: M.
        epsilon: in nats.
        distributions: Pi: one distribution in each row, shape (l, m), read-only.
        certificate: the maximum, the bound on all compositions, and the method.
        log_dp_delta: natural logarithm of DP's delta at the same epsilon.
    """

    kind: ClassVar[str] = "smoothed"
    written = (
        *("mechanism", "epsilon", "distributions", "delta", "log10_delta", "bound", "argmax"),
        *("certified", "certificate", "dp_delta"),
    )

    mechanism: AnonymousMechanism
    epsilon: float
    distributions: Matrix
    certificate: MaximumCertificate
    log_dp_delta: float

    @property
    def log_delta(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Natural logarithm of the largest expected delta(x), -inf if it is 0."""
        return self.certificate.log_value

    @property
    def bound(self) -> float:
        """Upper bound of the expected delta of every composition."""
        return math.exp(self.certificate.log_bound)

    @property
    def argmax(self) -> tuple[int, ...]:
        """Numbers of records from each distribution at the maximum, summing to n."""
        return self.certificate.composition

    @property
    def certified(self) -> bool:
        """Whether every composition was evaluated or bounded."""
        return self.certificate.slack >= 0.0

    @property
    def dp_delta(self) -> float:
        """DP's delta at the same epsilon."""
        return math.exp(self.log_dp_delta)

    def facts(self) -> Json:
        """Return the summary of the one-line repr."""
        fields = ("mechanism", "epsilon", "log10_delta", "argmax", "certified")
        return {name: getattr(self, name) for name in fields}

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return each distribution and its number of records."""
        shares = {f"p_{c}": column.tolist() for c, column in enumerate(self.distributions.T)}
        return {**shares, "records": list(self.argmax)}

    def draw(self, axes: Axes, label: str | None) -> None:
        """Draw log10 of smoothed delta beside DP's."""
        names = [r"smoothed $\delta$", r"DP's $\delta$"]
        axes.plot(names, [self.log10_delta, self.log_dp_delta / LN10], "o", label=label)
        axes.set_ylabel(r"$\log_{10} \delta$")
        axes.set_title(rf"$\varepsilon = {self.epsilon:g}$, $n = {self.mechanism.records}$")
        axes.margins(x=0.5)


@dataclass(frozen=True, eq=False)
class SmoothedEpsilon:
    """The least epsilon at which smoothed delta is at most a target.

    Attributes:
        target: the target delta.
        epsilon: upper end of the bracket, which suffices up to the rounding error stated in
            ``at``; infinite if no epsilon up to 700 suffices.
        lower: lower end of the bracket, which does not suffice (or could not be proved to), or 0.
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


def smoothed_delta(
    mechanism: AnonymousMechanism, epsilon: float, distributions: npt.ArrayLike
) -> SmoothedDelta:
    """Return max over pi in Pi^n of E_{x ~ pi} delta_{epsilon,M}(x), with its certificate.

    Each of the n records is drawn independently from a distribution in Pi that the adversary
    chooses. Since M is anonymous, only the composition matters: how many records come from each
    distribution. By Proposition 7 the vertices of the convex hull of Pi suffice. Every composition
    over the vertices is evaluated or bounded.

    Args:
        mechanism: M.
        epsilon: from 0 to 700, in nats.
        distributions: Pi: shape (l, m), rows summing to 1; for m = 2 also shape (l,), the
            probabilities of the first category.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list.

    Example:
        >>> from dpopt import smoothed
        >>> worst = smoothed.smoothed_delta(smoothed.SamplingHistogram(36, 34), 0.0, [0.4, 0.6])
        >>> round(worst.delta, 12), worst.certified, worst.argmax
        (0.478070349009, True, (18, 18))

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 3, Proposition 7, Algorithm 1.
    """
    _checks.instance("mechanism", mechanism, AnonymousMechanism)
    pmfs = checked_distributions(distributions, mechanism.categories)
    epsilon = _checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON)
    if mechanism.categories > 2:
        vertices = _vertices(tuple(map(tuple, pmfs.tolist())))
        require_compositions(mechanism.records, mechanism.categories, vertices.size)
    values = log_profile(mechanism, epsilon)
    if isinstance(mechanism, SamplingHistogram):
        log_dp_delta = log_exposure(mechanism)
    else:
        log_dp_delta = float(np.max(values))
    best = _largest(mechanism, values, pmfs)
    return SmoothedDelta(mechanism, epsilon, frozen(pmfs), best, log_dp_delta)


def smoothed_epsilon(
    mechanism: AnonymousMechanism,
    delta: float,
    distributions: npt.ArrayLike,
    *,
    tolerance: float = 1e-9,
) -> SmoothedEpsilon:
    """Return the least epsilon, up to ``tolerance``, at which smoothed delta is at most ``delta``.

    Smoothed delta falls as epsilon grows, so that epsilon is found by bisection. It suffices up to
    the rounding error stated in the certificate; ``lower`` does not suffice, or is 0.

    The other arguments, and the errors, are those of `smoothed_delta`. Epsilon is infinite if even
    700 does not suffice, for example if a category can be absent from a database.

    Args:
        mechanism: M.
        delta: the target, in (0, 1).
        distributions: Pi.
        tolerance: width of the bracket, at least 1e-12.

    Raises:
        ParameterError: if an argument is out of range, or there are too many databases to list.

    Example:
        >>> from dpopt import smoothed
        >>> mechanism = smoothed.SamplingHistogram(records=100, drawn=80)
        >>> round(smoothed.smoothed_epsilon(mechanism, 1e-3, [0.3, 0.5]).epsilon, 4)
        2.0172
    """
    target = _checks.real("delta", delta, 0.0, 1.0, open_lower=True, open_upper=True)
    width = _checks.real("tolerance", tolerance, 1e-12)

    def answer_at(epsilon: float) -> SmoothedDelta:
        return smoothed_delta(mechanism, epsilon, distributions)

    # Double the upper end until it suffices, then bisect.
    lower, upper, at = 0.0, 0.0, answer_at(0.0)
    while not _suffices(at, target):
        if upper >= LARGEST_EPSILON:
            return SmoothedEpsilon(target, math.inf, upper, at)
        lower, upper = upper, min(max(1.0, 2.0 * upper), LARGEST_EPSILON)
        at = answer_at(upper)
    while upper - lower > width:
        advance("smoothed epsilon", 0, message=f"bracket {upper - lower:.1e}")
        middle = 0.5 * (lower + upper)
        candidate = answer_at(middle)
        if _suffices(candidate, target):
            upper, at = middle, candidate
        else:
            lower = middle
    advance("smoothed epsilon", 1, 1)
    return SmoothedEpsilon(target, upper, lower, at)


def _largest(mechanism: AnonymousMechanism, values: Vector, pmfs: Matrix) -> MaximumCertificate:
    """Return the maximum over all compositions, counted over all given distributions."""
    n, vertices = mechanism.records, _vertices(tuple(map(tuple, pmfs.tolist())))
    if mechanism.categories == 2:
        rows = vertices[list(extremes(pmfs[vertices]))]
        best = maximise(values, *(binary_share(pmfs[row]) for row in rows))
    else:
        rows = vertices
        best = largest_expectation(values, n, mechanism.categories, pmfs[vertices])
        if vertices.size < len(pmfs):
            rounding = best.rounding + dropping_loss(n)
            best = replace(best, rounding=rounding, log_bound=best.log_value + rounding)
    counts = np.zeros(len(pmfs), dtype=np.int64)
    # From counts by vertex to counts by given distribution; two vertices may be the same row.
    np.add.at(counts, rows, best.composition)
    return replace(best, composition=tuple(counts.tolist()))


@lru_cache(maxsize=8)
def _vertices(distributions: tuple[tuple[float, ...], ...]) -> IntVector:
    """Return `hull_vertices`, cached for the next epsilon."""
    return hull_vertices(distributions)


def _suffices(answer: SmoothedDelta, target: float) -> bool:
    """Whether the maximum, or its upper bound if not certified, is at most ``target``."""
    largest = answer.log_delta if answer.certified else answer.certificate.log_bound
    return largest <= math.log(target)

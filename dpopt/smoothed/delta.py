"""Smoothed delta and smoothed epsilon: the worst way to draw the records from a set of laws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._page import result_page
from dpopt._progress import advance
from dpopt._types import IntVector, Json, Matrix, Numbers, Table, Vector, frozen
from dpopt.files import write_json
from dpopt.lp import Solution
from dpopt.privacy import Problem
from dpopt.prob.compositions import log_composition, maximise
from dpopt.prob.histograms import (
    binary_share,
    checked_distributions,
    dropping_loss,
    extremes,
    hull_vertices,
    largest_expectation,
    log_composed,
    require_compositions,
)
from dpopt.prob.sum_law import allowance
from dpopt.shape import Answer, Question, design
from dpopt.smoothed.mechanisms import Mechanism, SamplingHistogram, read_mechanism, settle
from dpopt.smoothed.profile import (
    LARGEST_EPSILON,
    LN10,
    Asked,
    InLogarithms,
    OfMechanism,
    finite,
    log_or_none,
    log_profile,
    worst_case_delta,
)
from dpopt.smoothed.program import (
    SmoothedInstance,
    adversary_problem,
    smoothed_instance,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SOLVED_TO = 1e-7


class OverLaws(OfMechanism):
    """What questions share whose records are drawn from laws of a set."""

    distributions: Any
    epsilon: Any

    def _settle(self) -> None:
        width = None
        if self.mechanism is None:
            given = _checks.floats("distributions", self.distributions)
            width = given.shape[1] if given.ndim == 2 else 2
        mechanism = self._describe(records=self.records, categories=width)
        laws = checked_distributions(self.distributions, mechanism.categories)
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, LARGEST_EPSILON)
        settle(self, distributions=tuple(map(tuple, laws.tolist())), epsilon=epsilon)

    @property
    def categories(self) -> int:
        """m, as many as the distributions have."""
        return len(self.distributions[0])

    @cached_property
    def laws(self) -> Matrix:
        """The distributions as an array, shape (l, m), read-only."""
        return frozen(self.distributions)

    @cached_property
    def log_profile(self) -> Vector:
        """Log delta(x) of every database x."""
        return log_profile(self.whole, self.epsilon)

    @property
    def maximises(self) -> bool:
        """The adversary's view."""
        return True

    def value(self, units: Any) -> float:  # noqa: ANN401
        """Return the expected delta(x); 0 below 1e-308."""
        return math.exp(units.log_delta)

    def plain(self, units: Any) -> Json:  # noqa: ANN401
        """Return the fields as plain values, None for the logarithm of 0."""
        fields = asdict(units).items()
        return {name: finite(v) if isinstance(v, float) else v for name, v in fields}

    def read(self, plain: Any) -> Any:  # noqa: ANN401
        """Return the values of a file, which are computed again."""
        return plain

    def columns(self, units: Any) -> Mapping[str, Sequence[Any]]:  # noqa: ANN401
        """Return each distribution and how many records come from it."""
        laws = {f"p_{c}": self.laws[:, c].tolist() for c in range(self.categories)}
        counts = getattr(units, "argmax", None) or getattr(self, "composition", ())
        return {**laws, "records": list(counts)}


@dataclass(frozen=True)
class MaximumCertificate:
    """The largest expected delta(x), and why no composition of the records has a larger one.

    Attributes:
        log_delta: its natural logarithm, -inf if it is 0.
        argmax: how many records come from each distribution, summing to n.
        log_bound: no composition's logarithm is larger.
        rounding: what rounding, or a solver's tolerance, can have changed in either.
        method: "one composition", "ends of a V-shape" (total positivity), "every composition",
            "branch and bound" (V-shaped majorants) or "linear program".
        evaluated: number of compositions whose expectation was computed.
        compositions: number of all.
    """

    log_delta: float
    argmax: tuple[int, ...]
    log_bound: float
    rounding: float
    method: str
    evaluated: int
    compositions: int

    @property
    def claim(self) -> str:
        """What is proved, in words."""
        return (
            f"no composition of the {sum(self.argmax)} records has an expected delta above the "
            "bound, for the profile as computed"
        )

    @property
    def excess(self) -> float:
        """What is left between the value and the bound, in the logarithm."""
        return 0.0 if self.log_bound == self.log_delta else self.log_bound - self.log_delta

    @property
    def slack(self) -> float:
        """Twice the rounding allowed, less the excess: at least 0 if the claim is proved."""
        return 2.0 * self.rounding - self.excess

    def to_dict(self) -> Json:
        """Return the claim and what proves it as plain values; None for the logarithm of 0."""
        told = ("claim", "method", "evaluated", "compositions", "log_bound", "excess", "slack")
        plain = {name: getattr(self, name) for name in told}
        return {**plain, "log_bound": finite(self.log_bound)}


@dataclass(frozen=True, kw_only=True)
class Smoothed(OverLaws, Question["SmoothedDelta"]):
    """Smoothed delta: the largest expected delta(x) when an adversary picks every record's law.

        maximise    sum_k sum_a psi_k(a) (P_k(a) - e^epsilon P'_k(a))
        subject to  sum_pi w_pi = 1                           (sum)
                    sum_k v_{x,k} <= sum_pi w_pi pi(x)        (split)
                    psi_k <= v_{x,k} + v_{x',k}               (tests within sides)
                    w, v, psi >= 0

    over the adversary's mixture w of compositions pi (how many records are drawn from which
    distribution); the probability pi(x) of each database x, split among the directions k of its
    pairs of neighbours x, x'; and for each direction a test psi_k of the outputs a. A best test
    is the hockey-stick of the pair, so the value is max over pi of E_{x ~ pi} delta(x).

    The closed form sums E_{x ~ pi} delta(x) exactly and searches the compositions by branch and
    bound. Solvers keep absolute tolerances: the three solvers agree to 1e-9 of a value of about
    0.01 or more, and a value of about 1e-7 or less is told by the closed form only.

    Attributes:
        records: n, at least 1.
        drawn: T, how many records are drawn and published as a histogram, from 1 to n.
        epsilon: from 0 to 700, in nats.
        distributions: laws of one record, one in each row, summing to 1; for two categories also
            the shares of the first, such as 0.4,0.6.
        lost_rate: share of the records that is lost, in [0, 1), instead of drawn.
        replacement: whether records are put back before the next draw.
        mechanism: any other anonymous mechanism, instead of records and drawn; as text the JSON
            object of its parameters.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 3.
    """

    kind: ClassVar[str] = "smoothed"

    records: int | None = None
    drawn: int | None = None
    epsilon: float
    distributions: Table
    lost_rate: float | None = None
    replacement: bool = False
    mechanism: Mechanism | None = None

    def __post_init__(self) -> None:
        self._settle()

    @classmethod
    def example(cls) -> Self:
        """Return a sample of three of five records, which are drawn from two laws."""
        return cls(records=5, drawn=3, epsilon=0.5, distributions=[0.4, 0.7])

    @cached_property
    def instance(self) -> SmoothedInstance:
        """The numbers of the program.

        Raises:
            ParameterError: if there are too many.
        """
        return smoothed_instance(self.whole, self.epsilon, self.laws)

    def problem(self) -> Problem:
        """Return the program of the class's docstring; `smoothed_problem` is its dual.

        Raises:
            ParameterError: if a table of it would have more than 2,000,000 entries.
        """
        return adversary_problem(self.instance)

    def closed_form(self) -> MaximumCertificate:
        """Return the maximum over all compositions by exact sums."""
        laws, n = self.laws, self.whole.records
        vertices, counts = _vertices(self.distributions), [0] * len(laws)
        if self.categories > 2:
            require_compositions(n, self.categories, vertices.size)
        values = self.log_profile
        if self.categories == 2:
            low, high = vertices[list(extremes(laws[vertices]))].tolist()
            best = maximise(values, binary_share(laws[low]), binary_share(laws[high]))
            counts[low] += n - best.ones_from_high
            counts[high] += best.ones_from_high
            return MaximumCertificate(
                best.log_value,
                tuple(counts),
                best.log_bound,
                allowance(n, best.log_value, n),
                best.method,
                best.evaluated,
                n + 1,
            )
        every = largest_expectation(values, n, self.categories, laws[vertices])
        for vertex, count in zip(vertices, every.composition, strict=True):
            counts[int(vertex)] = count
        rounding = every.rounding + (dropping_loss(n) if vertices.size < len(laws) else 0.0)
        return MaximumCertificate(
            every.log_value,
            tuple(counts),
            every.log_value + rounding,
            rounding,
            "every composition",
            every.evaluated,
            every.evaluated,
        )

    def point(self, solution: Solution) -> MaximumCertificate:
        """Return the value, its bound and the composition of the largest weight."""
        weights = solution["weights"]
        best = self.instance.compositions[int(np.argmax(weights))]
        return MaximumCertificate(
            log_or_none(solution.objective),
            tuple(best.tolist()),
            log_or_none(max(solution.objective, solution.bound)),
            _SOLVED_TO,
            "linear program",
            weights.size,
            weights.size,
        )

    def bound(self, units: MaximumCertificate, solution: Solution | None) -> float:
        """Return a bound on the expected delta of every composition."""
        return math.exp(units.log_bound) if solution is None else solution.bound

    def draw(self, axes: Axes, units: MaximumCertificate, label: str | None = None) -> None:
        """Draw log10 of smoothed delta beside DP's."""
        names = [r"smoothed $\delta$", r"DP's $\delta$"]
        logs = [units.log_delta / LN10, self.log_dp_delta / LN10]
        axes.plot(names, logs, "o", label=label)
        axes.set_ylabel(r"$\log_{10} \delta$")
        axes.set_title(rf"$\varepsilon = {self.epsilon:g}$, $n = {self.whole.records}$")
        axes.margins(x=0.5)

    @cached_property
    def log_dp_delta(self) -> float:
        """Natural logarithm of DP's delta."""
        if isinstance(self.whole, SamplingHistogram):
            return worst_case_delta(self.whole, self.epsilon).log_delta
        return float(np.max(self.log_profile))


class ExpectationAnswer(InLogarithms[float], Answer):
    """What answers over a set of distributions share: what was asked, and the value."""

    mechanism = Asked[Mechanism]("whole", "M.")
    epsilon = Asked[float]("epsilon", "In nats.")
    distributions = Asked[Matrix]("laws", "Pi: one law in each row, shape (l, m), read-only.")

    @property
    def log_delta(self) -> float:
        """Natural logarithm of the expected delta(x), -inf if it is 0."""
        return self.units.log_delta

    def facts(self) -> Json:
        """Return delta and its decimal logarithm; None for that of 0."""
        return {"delta": self.delta, "log10_delta": finite(self.log10_delta)}

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "log10_delta": self.log10_delta,
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SmoothedDelta(ExpectationAnswer):
    """max over pi in Pi^n of E_{x ~ pi} delta_{epsilon,M}(x) (Definition 3), and where it is.

    Attributes:
        units: a `MaximumCertificate`.
        bound: upper bound of the expected delta of every composition.
    """

    @property
    def argmax(self) -> tuple[int, ...]:
        """How many records come from each distribution where the maximum is, summing to n."""
        return self.units.argmax

    @property
    def certificate(self) -> MaximumCertificate:
        """The bound on all compositions, and how it was found."""
        return self.units

    @property
    def certified(self) -> bool:
        """Whether every composition was evaluated or bounded."""
        return self.certificate.slack >= 0.0

    log_dp_delta = Asked[float]("log_dp_delta", "Natural logarithm of DP's delta.")

    @property
    def dp_delta(self) -> float:
        """DP's delta at the same epsilon."""
        return math.exp(self.log_dp_delta)

    def facts(self) -> Json:
        """Return the maximum, where it is, why it is one, and DP's."""
        return {
            **super().facts(),
            "argmax": list(self.argmax),
            "certified": self.certified,
            "certificate": self.certificate.to_dict(),
            "dp_delta": self.dp_delta,
        }

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {**super().headline(), "argmax": self.argmax, "certified": self.certified}


@dataclass(frozen=True)
class Expectation:
    """E_{x ~ pi} delta(x) of one composition.

    Attributes:
        log_delta: its natural logarithm, -inf if it is 0.
        rounding: what rounding, or a solver's tolerance, can have changed in it.
    """

    log_delta: float
    rounding: float


@dataclass(frozen=True, kw_only=True)
class Expected(OverLaws, Question["ExpectedDelta"]):
    """The expected delta(x) where so many of the records come from each distribution.

        maximise    sum_k sum_a psi_k(a) (P_k(a) - e^epsilon P'_k(a))
        subject to  w = 1                                     (sum)
                    sum_k v_{x,k} <= w pi(x)                  (split)
                    psi_k <= v_{x,k} + v_{x',k}               (tests within sides)
                    w, v, psi >= 0

    over the probability pi(x) of each database x, split among the directions k of its pairs of
    neighbours x, x', and for each direction a test psi_k of the outputs a: the program of
    `Smoothed` for an adversary who has one composition pi. The value is E_{x ~ pi} delta(x).

    Attributes:
        records: n, at least 1.
        drawn: T, how many records are drawn and published as a histogram, from 1 to n.
        epsilon: from 0 to 700, in nats.
        distributions: laws of one record, one in each row, summing to 1; for two categories also
            the shares of the first, such as 0.4,0.6.
        composition: how many records come from each distribution, summing to n.
        lost_rate: share of the records that is lost, in [0, 1), instead of drawn.
        replacement: whether records are put back before the next draw.
        mechanism: any other anonymous mechanism, instead of records and drawn; as text the JSON
            object of its parameters.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 3 and Algorithm 1.
    """

    kind: ClassVar[str] = "expected"

    records: int | None = None
    drawn: int | None = None
    epsilon: float
    distributions: Table
    composition: Numbers
    lost_rate: float | None = None
    replacement: bool = False
    mechanism: Mechanism | None = None

    def __post_init__(self) -> None:
        self._settle()
        counts = _checked_composition(self.composition, self.whole.records, len(self.laws))
        settle(self, composition=tuple(counts.tolist()))

    @classmethod
    def example(cls) -> Self:
        """Return a sample of three of five records, two from one law and three from another."""
        return cls(records=5, drawn=3, epsilon=0.5, distributions=[0.4, 0.7], composition=(2, 3))

    def problem(self) -> Problem:
        """Return the program of `Smoothed` for this composition alone.

        Raises:
            ParameterError: if a table of it would have more than 2,000,000 entries.
        """
        only = np.array([self.composition], dtype=np.int64)
        return adversary_problem(smoothed_instance(self.whole, self.epsilon, self.laws, only))

    def closed_form(self) -> Expectation:
        """Return the expectation as an exact sum."""
        laws, values, n = self.laws, self.log_profile, self.whole.records
        counts = np.array(self.composition, dtype=np.int64)
        used = np.unique(laws[counts > 0], axis=0)
        if self.categories > 2 or len(used) > 2:
            composed = log_composed(values, n, self.categories, laws, counts.tolist())
            return Expectation(*composed)
        low, high = (used[row] for row in extremes(used))
        ones = int(counts[np.all(laws == high, axis=1)].sum()) if len(used) == 2 else 0
        log_value = log_composition(values, binary_share(low), binary_share(high), ones)
        return Expectation(log_value, allowance(n, log_value))

    def point(self, solution: Solution) -> Expectation:
        """Return the value."""
        return Expectation(log_or_none(solution.objective), _SOLVED_TO)

    def draw(self, axes: Axes, units: Expectation, label: str | None = None) -> None:
        """Draw log10 of the expectation above the composition."""
        axes.plot([str(self.composition)], [units.log_delta / LN10], "o", label=label)
        axes.set_ylabel(r"$\log_{10}$ of the expected $\delta(x)$")
        axes.set_xlabel("records from each distribution")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ExpectedDelta(ExpectationAnswer):
    """E_{x ~ pi} delta_{epsilon,M}(x) at one composition of the records.

    Attributes:
        units: an `Expectation`.
    """

    composition = Asked[tuple[int, ...]]("composition", "Records from each law, summing to n.")

    @property
    def rounding(self) -> float:
        """What rounding can have changed in the logarithm, for the profile as computed."""
        return self.units.rounding

    def facts(self) -> Json:
        """Return delta, its logarithm, and the rounding of that."""
        return {**super().facts(), "rounding": self.rounding}

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {**super().headline(), "composition": self.composition}


Smoothed.answer, Expected.answer = SmoothedDelta, ExpectedDelta


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

    def _repr_html_(self) -> str:
        """Return picture, statement and facts, for notebooks."""
        statement = (
            f"Smoothed delta is at most {self.target:g} from epsilon = {self.epsilon:.6g} on; "
            f"below {self.lower:.6g} it was not found to be."
        )
        facts = {"at epsilon": self.at, "certified": self.certified}
        return result_page(type(self).__name__, statement, None, facts, self.plot)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what `SmoothedDelta.plot` does, at ``epsilon``; return the axes."""
        return self.at.plot(ax)

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())


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
    given = read_mechanism(mechanism)
    return design(Smoothed(mechanism=given, epsilon=epsilon, distributions=distributions))


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
        mechanism: M, as in `smoothed_delta`, likewise epsilon and the distributions.
        epsilon: from 0 to 700, in nats.
        distributions: the laws.
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
    return design(
        Expected(
            mechanism=read_mechanism(mechanism),
            epsilon=epsilon,
            distributions=distributions,
            composition=composition,
        )
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
    given = read_mechanism(mechanism)
    target = _checks.real("delta", delta, 0.0, 1.0, open_lower=True, open_upper=True)
    width = _checks.real("tolerance", tolerance, 1e-12)
    first = Smoothed(mechanism=given, epsilon=0.0, distributions=distributions)

    def answer_at(epsilon: float) -> SmoothedDelta:
        return design(replace(first, epsilon=epsilon))

    if _suffices(at := answer_at(0.0), target):
        return SmoothedEpsilon(target, 0.0, 0.0, at)
    lower, upper = 0.0, 1.0
    while not _suffices(at := answer_at(upper), target):
        if upper >= LARGEST_EPSILON:
            return SmoothedEpsilon(target, math.inf, upper, at)
        lower, upper = upper, min(2.0 * upper, LARGEST_EPSILON)
    while upper - lower > width:
        advance("smoothed epsilon", 0, message=f"bracket {upper - lower:.1e}")
        middle = 0.5 * (lower + upper)
        if middle in (lower, upper):
            break
        tried = answer_at(middle)
        if _suffices(tried, target):
            upper, at = middle, tried
        else:
            lower = middle
    advance("smoothed epsilon", 1, 1)
    return SmoothedEpsilon(target, upper, lower, at)


@lru_cache(maxsize=8)
def _vertices(distributions: tuple[tuple[float, ...], ...]) -> IntVector:
    """Return `hull_vertices`, kept for the next epsilon."""
    return hull_vertices(distributions)


def _checked_composition(composition: npt.ArrayLike, records: int, laws: int) -> IntVector:
    given = _checks.array("composition", composition)
    if given.shape == (laws,):
        counts = [_checks.integer("composition", count, 0, records) for count in given.tolist()]
        if sum(counts) == records:
            return np.array(counts, dtype=np.int64)
    raise ParameterError(
        f"composition is {_checks.shown(composition)}; it must hold {laws} counts, one for each "
        f"distribution, that sum to {records}."
    )


def _suffices(answer: SmoothedDelta, target: float) -> bool:
    """Whether a maximum is at most delta; one that is not proved counts with its bound."""
    largest = answer.log_delta if answer.certified else answer.certificate.log_bound
    return largest <= math.log(target)

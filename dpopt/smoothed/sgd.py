"""One step of SGD with quantised gradients: delta(x) over every replacement of one record.

Write the neighbour x' as x with one record a replaced by w, and split both databases at that
record: with L the counts of batches without it and M those of the T - 1 others in a batch with it,
x has L + M shifted by a, and x' has L + M shifted by w. At every output

    P - e^eps P' = M_a - (e^eps - 1) L - e^eps M_w,

which keeps its digits for small epsilon too, and likewise with a and w exchanged.

`QuantisedGradient` draws random databases, and `monte_carlo_delta` is the published estimate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._progress import track
from dpopt._types import IntVector, Json, Numbers, Vector, frozen
from dpopt.lp import Solution
from dpopt.privacy import Problem
from dpopt.prob.batches import (
    FROM_DATABASE,
    FROM_NEIGHBOUR,
    LARGEST_VALUE,
    BatchLaw,
    HockeySticks,
    Outputs,
    as_values,
    batch_law,
    check_batch,
    leave_one_out,
    subsets,
)
from dpopt.shape import Answer, Question, design
from dpopt.smoothed.mechanisms import settle
from dpopt.smoothed.profile import LN10, Asked, InLogarithms, finite, log_or_none
from dpopt.smoothed.program import LARGEST_PROGRAM, gains_of, sticks_problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_EPSILON = 700.0
"""Beyond ln 2^1000 = 693.2 no ratio of two batch laws is finite, and delta no longer changes."""

_LARGEST_RANGE = 1 << 16
_NEIGHBOURS = ("all", "extreme")
_FAMILIES = ("gaussian", "laplace")
_LARGEST_DRAWS = 10**15


@dataclass(frozen=True)
class SgdNeighbour:
    """The neighbour at which delta is attained.

    Attributes:
        replaced: the value of the record that is replaced.
        replacement: what it is replaced by.
        direction: "d(x, x')" or "d(x', x)", x' being the neighbour.
    """

    replaced: int
    replacement: int
    direction: str


@dataclass(frozen=True)
class Step:
    """What one step tells at each epsilon.

    Attributes:
        log_delta: natural logarithm of delta, shape (E,), -inf where delta is 0.
        worst: a neighbour that attains delta, for each epsilon; None where delta is 0.
    """

    log_delta: tuple[float, ...]
    worst: tuple[SgdNeighbour | None, ...]


@dataclass(frozen=True, kw_only=True)
class SgdStep(Question["SgdProfile"]):
    """How private one step of SGD on quantised gradients is: delta(x) at each epsilon.

        minimise    (1/E) sum_e d_e
        subject to  d_e >= sum_a s_{e,k}(a)                        (sides)
                    s_{e,k}(a) >= P_k(a) - e^(epsilon_e) P'_k(a)   (tests)
                    s >= 0

    over the E values of epsilon: k runs over the neighbours x' of x in both directions, a over
    the sums, or rounded means, of a batch of T of the N records. The closed form takes all
    neighbours from tables of partial sums at once.

    Solvers keep absolute tolerances: a value of about 1e-7 or less is told by the closed form only.

    Attributes:
        values: x: N integers from ``lowest`` to ``highest``.
        drawn: T, the batch size, from 1 to N.
        epsilons: one or several, each from 0 to 700, in nats.
        lowest: smallest value that a record can be replaced by.
        highest: largest value that a record can be replaced by, at most 65535 above ``lowest``.
        rounded: True for the rounded mean of the batch, False for its sum.
        neighbours: "all" replacements, or the two "extreme" ones only, where a smallest record
            becomes ``highest`` or a largest one ``lowest``: at most what all of them give.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 2 and Section 6.
    """

    kind: ClassVar[str] = "sgd"

    values: Numbers
    drawn: int
    epsilons: Numbers
    lowest: int = -127
    highest: int = 128
    rounded: bool = True
    neighbours: Literal["all", "extreme"] = "all"

    def __post_init__(self) -> None:
        x = as_values(self.values)
        low = _checks.integer("lowest", self.lowest, -LARGEST_VALUE, LARGEST_VALUE)
        high = _checks.integer("highest", self.highest, low + 1, low + _LARGEST_RANGE - 1)
        if x.min() < low or x.max() > high:
            raise ParameterError(
                f"values holds {int(x.min()) if x.min() < low else int(x.max())}; each must be "
                f"from lowest = {low} to highest = {high}."
            )
        epsilons = np.atleast_1d(_checks.array("epsilons", self.epsilons))
        if epsilons.ndim != 1 or epsilons.size == 0:
            raise ParameterError(
                f"epsilons has shape {epsilons.shape}; it must be a number or a vector of numbers."
            )
        at = [_checks.real("epsilons", e, 0.0, LARGEST_EPSILON) for e in epsilons.tolist()]
        settle(
            self,
            values=tuple(x.tolist()),
            drawn=check_batch(x, self.drawn),
            epsilons=tuple(at),
            lowest=low,
            highest=high,
            rounded=_checks.flag("rounded", self.rounded),
            neighbours=_checks.choice("neighbours", self.neighbours, _NEIGHBOURS),
        )

    @classmethod
    def example(cls) -> Self:
        """Return batches of three of five small gradients."""
        return cls(values=(-1, 0, 0, 1, 2), drawn=3, epsilons=(0.2, 1.0), lowest=-1, highest=2)

    @cached_property
    def database(self) -> IntVector:
        """X as an array, shape (N,), read-only."""
        return as_values(self.values)

    def replacements(self) -> list[tuple[int, int]]:
        """Return (record's value, what it is replaced by) for every neighbour."""
        held = sorted(set(self.database.tolist()))
        if self.neighbours == "extreme":
            return [(held[0], self.highest), (held[-1], self.lowest)]
        allowed = range(self.lowest, self.highest + 1)
        return [(value, other) for value in held for other in allowed if other != value]

    def problem(self) -> Problem:
        """Return the program of the class's docstring.

        Raises:
            ParameterError: if it would have more than 2,000,000 rows "tests".
        """
        moves, epsilons = self.replacements(), cast(tuple[float, ...], self.epsilons)
        reach = self.highest - self.lowest
        outputs = (reach if self.rounded else reach * self.drawn) + 1
        rows = 2 * len(moves) * len(epsilons) * outputs
        if rows > LARGEST_PROGRAM:
            raise ParameterError(
                f"values have {len(moves):,} neighbours with {outputs:,} outputs: the program "
                f"would have {rows:,} rows; at most {LARGEST_PROGRAM:,} are written out. The "
                "closed form goes further."
            )
        first = self.lowest if self.rounded else self.lowest * self.drawn

        def law(values: IntVector) -> Vector:
            return batch_law(values, self.drawn, rounded=self.rounded).over(first, outputs)

        own = law(self.database)
        pairs = [(own, law(_moved(self.database, *move))) for move in moves]
        gains = [
            gains_of(p, q, epsilon)
            for epsilon in epsilons
            for pair in pairs
            for p, q in (pair, pair[::-1])
        ]
        # Rows run over (epsilon, neighbour, direction); each epsilon has one d.
        owner = np.repeat(np.arange(len(epsilons)), 2 * len(moves))
        return sticks_problem("one step of SGD", np.array(gains), owner)

    def closed_form(self) -> Step:
        """Return delta at each epsilon from the leave-one-out tables of partial sums."""
        x, allowed = self.database, (self.lowest, self.highest)
        extreme = self.neighbours == "extreme"
        at = np.array(self.epsilons, dtype=np.float64)
        best = _largest_sticks(x, self.drawn, at, allowed, self.rounded, extreme)
        log_total = math.log(subsets(x.size, self.drawn))
        return Step(
            tuple(
                min(math.log(stick) - log_total, 0.0) if stick > 0 else -math.inf
                for stick, _ in best
            ),
            tuple(neighbour for _, neighbour in best),
        )

    def point(self, solution: Solution) -> Step:
        """Return d, and for each epsilon the neighbour and direction of the largest dual."""
        logs = [log_or_none(value) for value in solution["delta"].tolist()]
        moves = self.replacements()
        # Axes of the duals: epsilon, neighbour, direction.
        prices = np.abs(solution.duals["sides"]).reshape(len(logs), len(moves), 2)
        worst = []
        for log_value, price in zip(logs, prices, strict=True):
            move, direction = np.unravel_index(int(np.argmax(price)), price.shape)
            name = (FROM_DATABASE, FROM_NEIGHBOUR)[direction]
            worst.append(SgdNeighbour(*moves[move], name) if log_value > -math.inf else None)
        return Step(tuple(logs), tuple(worst))

    def value(self, units: Step) -> float:
        """Return the mean of delta over the epsilons: delta itself for one."""
        return float(np.mean(np.exp(units.log_delta)))

    def plain(self, units: Step) -> list[Json]:
        """Return one record for each epsilon."""
        columns = self.columns(units)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def read(self, plain: Any) -> Any:  # noqa: ANN401
        """Return the values of a file, which are computed again."""
        return plain

    def draw(self, axes: Axes, units: Step, label: str | None = None) -> None:
        """Draw log10 delta against epsilon."""
        epsilons, logs = np.array(self.epsilons), np.array(units.log_delta) / LN10
        order = np.argsort(epsilons)
        axes.plot(epsilons[order], logs[order], marker="o", label=label)
        axes.set_xlabel(r"$\varepsilon$ (nats)")
        axes.set_ylabel(r"$\log_{10} \delta(x)$")

    def columns(self, units: Step) -> Mapping[str, Sequence[Any]]:
        """Return log10 delta and the neighbour that attains it, for each epsilon."""
        worst = units.worst
        return {
            "epsilon": list(cast(Any, self.epsilons)),
            "log10_delta": [finite(value / LN10) for value in units.log_delta],
            "replaced": [None if w is None else w.replaced for w in worst],
            "replacement": [None if w is None else w.replacement for w in worst],
            "direction": [None if w is None else w.direction for w in worst],
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SgdProfile(InLogarithms[Vector], Answer):
    """delta_{eps,M}(x) of one database of quantised gradients, at one or several epsilon.

    Attributes:
        units: a `Step`.
    """

    values = Asked[IntVector]("database", "x, shape (N,), read-only.")
    drawn = Asked[int]("drawn", "T, the batch size.")

    @property
    def epsilons(self) -> Vector:
        """In nats, shape (E,), read-only."""
        return frozen(self.setting.epsilons)

    neighbours = Asked[str]("neighbours", "All replacements, or the two extreme ones.")
    rounded = Asked[bool]("rounded", "Whether the output is the rounded mean, or the sum.")
    lowest = Asked[int]("lowest", "Smallest value that a record can be replaced by.")
    highest = Asked[int]("highest", "Largest value that a record can be replaced by.")

    @property
    def log_delta(self) -> Vector:
        """Natural logarithm of delta, shape (E,), -inf where delta is 0; read-only."""
        return frozen(self.units.log_delta)

    @property
    def worst(self) -> tuple[SgdNeighbour | None, ...]:
        """A neighbour that attains delta, for each epsilon; None where delta is 0."""
        return self.units.worst

    def to_records(self) -> list[Json]:
        """Return one record for each epsilon, for tables and frames."""
        return self.setting.plain(self.units)


SgdStep.answer = SgdProfile


def sgd_profile(
    values: npt.ArrayLike,
    drawn: int,
    epsilons: npt.ArrayLike,
    *,
    lowest: int = -127,
    highest: int = 128,
    rounded: bool = True,
    neighbours: str = "all",
) -> SgdProfile:
    """Return delta(x) = max over x' of d(x, x') and d(x', x) for one database x.

    M draws T of the N values without replacement and publishes their sum, or their mean rounded to
    the nearest integer, halves upwards. Every record may be replaced by every value of the range.
    A range moved by one, -128 to 127 with all values, gives the same delta.

    The rounded mean is post-processing of the sum; the "extreme" neighbours are the two that
    published estimates are based on (a record of the least value moved to ``highest``, one of the
    largest moved to ``lowest``), which give a lower bound on delta only.

    Args:
        values: x, as in `SgdStep`, like all that follow.
        drawn: T, from 1 to N.
        epsilons: one or several, each from 0 to 700, in nats.
        lowest: smallest value that a record can be replaced by.
        highest: largest value that a record can be replaced by.
        rounded: True for the rounded mean, False for the sum.
        neighbours: "all" or "extreme".

    Raises:
        ParameterError: if an argument is out of range, or the law of a batch too large a table.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 2 and Section 6.
    """
    return design(
        SgdStep(
            values=values,
            drawn=drawn,
            epsilons=epsilons,
            lowest=lowest,
            highest=highest,
            rounded=rounded,
            neighbours=cast(Any, neighbours),
        )
    )


def sgd_log_profile(
    values: npt.ArrayLike,
    drawn: int,
    epsilons: npt.ArrayLike,
    *,
    lowest: int = -127,
    highest: int = 128,
    rounded: bool = True,
) -> Vector:
    """Return log delta(x) at each epsilon, shape (E,); see `sgd_profile`."""
    return sgd_profile(
        values, drawn, epsilons, lowest=lowest, highest=highest, rounded=rounded
    ).log_delta


def _largest_sticks(
    x: IntVector,
    drawn: int,
    epsilons: Vector,
    allowed: tuple[int, int],
    rounded: bool,
    extreme: bool,
) -> list[tuple[float, SgdNeighbour | None]]:
    """Return the largest hockey-stick at each epsilon, in the scale of the counts."""
    least, largest = int(x.min()), int(x.max())
    low, high = allowed[0] - least, allowed[1] - least
    outputs = Outputs.of(drawn, largest - least, low, high, rounded)
    sticks = HockeySticks(outputs, epsilons)
    moves: dict[int, list[int]] = {}
    if extreme:
        moves[0] = [high]
        moves[largest - least] = [*moves.get(largest - least, []), low]
    tables = leave_one_out(x - least, drawn, moves if extreme else None)
    for value, without, others in track(tables, "neighbours of the batch"):
        sticks.add(value, without, others, moves[value] if extreme else None)
    return [
        (stick, SgdNeighbour(a + least, w + least, direction) if stick > 0 else None)
        for stick, a, w, direction in sticks.best
    ]


@dataclass(frozen=True)
class QuantisedGradient:
    """A gradient rounded up to a multiple of 2^-bits in (-1/2, 1/2], given that it lies there.

    Value v, from 1 - 2^(bits-1) to 2^(bits-1), stands for ((v - 1) 2^-bits, v 2^-bits]; for 8 bits
    from -127 to 128. The paper's Definition 5 names the same intervals by their lower ends, which
    moves all values by one and leaves delta as it is. It does not say what the sigma of a Laplace
    distribution is; here it is the standard deviation before quantisation, so the scale is
    sigma / sqrt(2).

    Attributes:
        mean: mu, before quantisation.
        deviation: sigma > 0, the standard deviation before quantisation.
        family: "gaussian" or "laplace".
        bits: from 1 to 16.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Definition 5 (Appendix G.1).
    """

    mean: float
    deviation: float
    family: str = "gaussian"
    bits: int = 8

    def __post_init__(self) -> None:
        mean = _checks.real("mean", self.mean)
        deviation = _checks.real("deviation", self.deviation, 0.0, open_lower=True)
        _checks.choice("family", self.family, _FAMILIES)
        bits = _checks.integer("bits", self.bits, 1, 16)
        settle(self, mean=mean, deviation=deviation, bits=bits)
        if not self._masses().sum() > 0:
            raise ParameterError(
                f"mean is {mean} and deviation {deviation}; the distribution must have mass in "
                "(-1/2, 1/2] that a double can hold."
            )

    @property
    def lowest(self) -> int:
        """The least value."""
        return 1 - (1 << (self.bits - 1))

    @property
    def highest(self) -> int:
        """The largest value."""
        return 1 << (self.bits - 1)

    @property
    def values(self) -> IntVector:
        """All values in ascending order, shape (2^bits,)."""
        return np.arange(self.lowest, self.highest + 1)

    @property
    def probabilities(self) -> Vector:
        """The probability of each value, shape (2^bits,), read-only."""
        masses = self._masses()
        return frozen(masses / masses.sum())

    def _masses(self) -> Vector:
        edges = np.arange(self.lowest - 1, self.highest + 1) / (1 << self.bits)
        with np.errstate(over="ignore"):
            scaled = (edges - self.mean) / self.deviation
        # Each interval as a difference of the tails on its own side of the mean.
        left, right = scaled[:-1], scaled[1:]
        return np.where(
            left >= 0,
            self._below(-left) - self._below(-right),
            self._below(right) - self._below(left),
        )

    def _below(self, scaled: Vector) -> Vector:
        """Return the probability below the mean plus ``scaled`` standard deviations."""
        if self.family == "gaussian":
            return np.asarray(ndtr(scaled))
        tail = 0.5 * np.exp(-math.sqrt(2.0) * np.abs(scaled))
        return np.where(scaled <= 0, tail, 1.0 - tail)

    def sample(self, size: int, rng: np.random.Generator) -> IntVector:
        """Return independent values, shape (size,); for experiments, not private."""
        size = _checks.integer("size", size, 0)
        return rng.choice(self.values, size=size, p=self.probabilities)

    def to_dict(self) -> Json:
        """Return the parameters as plain values."""
        return asdict(self)


def sample_database(
    gradients: Sequence[QuantisedGradient], composition: Sequence[int], rng: np.random.Generator
) -> IntVector:
    """Return x ~ pi with ``composition[j]`` records from ``gradients[j]``, shape (n,).

    Raises:
        ParameterError: if the two differ in length, a count is below 0, or there is no record.
    """
    for name, value in (("gradients", gradients), ("composition", composition)):
        if not isinstance(value, list | tuple | np.ndarray) or getattr(value, "ndim", 1) != 1:
            raise ParameterError(f"{name} is {_checks.shown(value)}; it must be a sequence.")
    for gradient in gradients:
        _checks.instance("gradients", gradient, QuantisedGradient)
    _checks.instance("rng", rng, np.random.Generator)
    if len(gradients) != len(composition):
        raise ParameterError(
            f"composition has {len(composition)} counts for {len(gradients)} distributions; "
            "there must be one for each."
        )
    counts = [_checks.integer("composition", count, 0) for count in composition]
    if sum(counts) == 0:
        raise ParameterError("composition holds no record; at least one must be above 0.")
    parts = [g.sample(count, rng) for g, count in zip(gradients, counts, strict=True)]
    return np.concatenate(parts)


def monte_carlo_delta(
    values: npt.ArrayLike,
    drawn: int,
    epsilon: float,
    draws: int,
    rng: np.random.Generator,
    *,
    lowest: int = -127,
    highest: int = 128,
    rounded: bool = True,
) -> float:
    """Return the published kind of estimate of delta(x), which is biased upwards.

    Batches of x and of two neighbours are drawn (a record of the least value moved to ``highest``,
    one of the largest to ``lowest``), their outputs counted, and the largest hockey-stick between
    the frequencies returned. A hockey-stick is convex, so by Jensen's inequality the estimate is
    too large on average for these neighbours: at an output that x hardly ever produces, a single
    draw counts as 1 / draws against nothing. Other neighbours it does not see. Use `sgd_profile`
    for delta itself; this is here to measure the bias.

    The counts of independent draws are multinomial; they are drawn as such from the exact law of a
    batch, which is the same distribution and takes no longer for 1e12 draws than for ten.

    Args:
        values: as in `SgdStep`, likewise drawn and rounded.
        drawn: T.
        epsilon: from 0 to 700, in nats.
        draws: number of batches drawn from each of the three databases, from 1 to 1e15.
        rng: numpy's generator, seeded by the caller.
        lowest: replacement of the largest value.
        highest: replacement of the least value.
        rounded: True for the rounded mean.

    Raises:
        ParameterError: if an argument is out of range, or the law of a batch too large a table.
    """
    _checks.instance("rng", rng, np.random.Generator)
    x = as_values(values)
    epsilon = _checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON)
    draws = _checks.integer("draws", draws, 1, _LARGEST_DRAWS)
    low = _checks.integer("lowest", lowest, -LARGEST_VALUE, LARGEST_VALUE)
    high = _checks.integer("highest", highest, -LARGEST_VALUE, LARGEST_VALUE)
    moved = _moved(x, int(x.min()), high), _moved(x, int(x.max()), low)
    own, *others = (
        BatchLaw(law.lowest, frozen(rng.multinomial(draws, law.probabilities) / draws))
        for law in (batch_law(values, drawn, rounded=rounded) for values in (x, *moved))
    )
    largest = 0.0
    for other in others:
        first = min(own.lowest, other.lowest)
        count = max(int(law.outputs[-1]) for law in (own, other)) - first + 1
        p, q = own.over(first, count), other.over(first, count)
        for one, two in ((p, q), (q, p)):
            stick = np.maximum(one - math.exp(epsilon) * two, 0.0).sum()
            largest = max(largest, float(stick))
    return largest


def _moved(values: IntVector, replaced: int, replacement: int) -> IntVector:
    """Return the database with the first record of a value replaced."""
    moved = values.copy()
    moved[int(np.argmax(moved == replaced))] = replacement
    return moved

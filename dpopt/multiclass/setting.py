"""A private plurality of private voters: the setting, its design, and the function that makes one.

The configurations that decide stand in the corners module, their rows in the oracle module, the
proof of what comes out in the proof module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits
from dpopt._progress import expect
from dpopt._types import Json, Vector
from dpopt.ballots.draws import Labels
from dpopt.ballots.partitions import Partitions
from dpopt.ballots.table import Units, flat, law, scale
from dpopt.ballots.votes import count_queries
from dpopt.lp import Backend, Solution
from dpopt.multiclass.corners import configuration_count, require_priceable
from dpopt.multiclass.oracle import Pricing
from dpopt.multiclass.priors import VotePrior, checked_prior
from dpopt.multiclass.proof import (
    Target,
    bits_of,
    certify,
    dominating,
    least_epsilon,
    repaired,
)
from dpopt.multiclass.rules import RULES, rule_units
from dpopt.privacy import Guarantee, Problem
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.exact import Certificate
from dpopt.privacy.least import Least, require_pure
from dpopt.privacy.release import Source, seeded, system
from dpopt.shape import Design, Setting
from dpopt.shape import design as designed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows are divided by e^(m epsilon) - 1: below this, rounding their coefficients shows.
_LEAST_EXPONENT = 1e-7
# Configurations a second, in all rounds of pricing and the proof together.
_SPEED = 2e6
# What a solver leaves of noise in a kernel.
_NOISE = 1e-6


@dataclass(frozen=True)
class MulticlassSetting(Setting["MulticlassDesign"]):
    """K voters, each epsilon-private with a label of C classes, and the target (m epsilon, delta).

    With the counts of the votes sorted, lambda, the plurality outputs a class of count c with
    probability k[lambda, c]: relabelling the classes relabels the output. A plurality class is one
    of the largest count. With a(y | N) the probability of y where the counts are N,

        minimise   E Pr[output is no plurality class]                                 (prior)
        subject to sum_c n[lambda, c] k[lambda, c] = 1                                "sums"
                   E a(y | N) - e^(m epsilon) E' a(y | N) <= 0                        "corners"
                   for all votes with laws (P_i, P'_i) of voters i that are epsilon-private
                   0 <= k <= 1

    with n[lambda, c] the number of classes of count c, and N the counts of votes drawn from P_i,
    under E', from P'_i. Only corners of the laws count, and of these only configurations without
    cycles of two or three voters. For delta > 0 the rows are of sets of outputs, with delta on the
    right.

    A rule in place of "optimal" has its strongest parameter that is private for all voters; the
    program then fixes its table in rows "rule". Sizes with more than 4e7 corner configurations,
    more than 300 voters over two classes, and voters with a mechanism_delta are for rules only,
    which a bound proves.

    Attributes:
        mechanisms: K, at least 1; even numbers are fine.
        classes: C, in 2..100; votes are 0..C-1.
        epsilon: of each voter, above 0, in nats.
        allowance: m, real, in (0, K]: the plurality may spend m epsilon, at least 1e-7.
        mechanism_delta: Delta of each voter, in [0, 1); 0 for the rule "optimal".
        delta: of the plurality, in [0, 1).
        prior: of the votes, all drawn from one law p: "dirichlet:A" if p is from a symmetric
            Dirichlet law, "dirichlet:1" makes every histogram equally likely; "point:P,...,P" for a
            p that is known up to the order of the classes.
        rule: "optimal" is the program's; "ladder", "permute-and-flip" and "exponential" are known
            rules with the largest parameter that is private; "subsampling" the plurality of as many
            of the voters as is private, drawn at random.
    """

    kind: ClassVar[str] = "multiclass"

    mechanisms: int
    classes: int
    epsilon: float
    allowance: float
    mechanism_delta: float = 0.0
    delta: float = 0.0
    prior: str = "dirichlet:1"
    rule: Literal["optimal", "ladder", "permute-and-flip", "exponential", "subsampling"] = "optimal"

    def __post_init__(self) -> None:
        # Not the property: what it keeps must be of the fields as they are kept below.
        target = self._made()
        classes, product = target.classes, target.allowance * target.epsilon
        if product < _LEAST_EXPONENT:
            raise ParameterError(
                f"allowance * epsilon is {digits(product)}; a program in double "
                f"precision needs at least {_LEAST_EXPONENT:g}."
            )
        rule = _checks.choice("rule", self.rule, RULES)
        shift = target.mechanism_delta
        if shift > 0.0 and rule == "optimal":
            raise ParameterError(
                f"mechanism_delta is {digits(shift)}; it must be 0 with rule 'optimal', and a rule "
                "such as 'ladder' has a proved bound with it."
            )
        self.keep(
            mechanisms=target.mechanisms,
            classes=classes,
            epsilon=target.epsilon,
            allowance=target.allowance,
            mechanism_delta=shift,
            delta=target.delta,
            prior=checked_prior(self.prior, classes),
            rule=rule,
        )

    @classmethod
    def example(cls) -> Self:
        """Return five voters over three classes."""
        return cls(5, 3, 0.5, 2.0)

    @classmethod
    def example_data(cls) -> list[int]:
        """Return five votes."""
        return [1, 1, 0, 2, 1]

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return votes of which some may have changed."""
        return [
            ([0] * 5, [1] * 5),
            ([0, 0, 0, 1, 2], [1, 1, 1, 1, 2]),
            ([0, 1, 2, 2, 2], [1, 2, 2, 2, 2]),
        ]

    @property
    def guarantee(self) -> Guarantee:
        """(m epsilon, delta), m epsilon rounded up to a float."""
        return self.target.guarantee

    @property
    def behind(self) -> tuple[Guarantee, int]:
        """(epsilon, Delta) of each voter, and K."""
        return Guarantee(self.epsilon, self.mechanism_delta), self.mechanisms

    @cached_property
    def target(self) -> Target:
        """What the proof is about."""
        return self._made()

    def _made(self) -> Target:
        return Target(
            self.mechanisms,
            self.classes,
            self.epsilon,
            self.allowance,
            self.delta,
            self.mechanism_delta,
        )

    @cached_property
    def partitions(self) -> Partitions:
        """The sorted histograms, and the places of k[lambda, c]."""
        return Partitions(self.mechanisms, self.classes)

    @cached_property
    def occurring(self) -> Vector:
        """The probability of each sorted histogram under the prior, shape (states,)."""
        return VotePrior.of(self.prior, self.classes).law(self.partitions)

    @cached_property
    def pricing(self) -> Pricing:
        """The privacy rows as an oracle over k[lambda, c], for a linear program of your own.

        Raises:
            ParameterError: if there are too many configurations.
        """
        return Pricing(self.target)

    def problem(self) -> Problem:
        """Return the program: variable "k", rows "sums", family "corners"; of a rule, rows "rule".

        Raises:
            ParameterError: if there are too many configurations.
        """
        partitions = self.partitions
        if self.rule == "optimal":
            require_priceable(self.mechanisms, self.classes)
        problem = Problem("plurality of private voters")
        problem.add_variables("k", partitions.size, lower=0.0, upper=1.0)
        sums = np.zeros((len(partitions.states), partitions.size))
        sums[partitions.state_of, np.arange(partitions.size)] = partitions.multiplicities
        problem.add_rows("sums", {"k": sums}, lower=1.0, upper=1.0)
        if self.rule == "optimal":
            problem.add_family("corners", self.pricing, over="k")
        else:
            known = flat(partitions, self._rule_units, bits_of(partitions, self._rule_units))
            problem.add_rows("rule", {"k": np.eye(partitions.size)}, lower=known, upper=known)
        missed = self.occurring[partitions.state_of] * partitions.multiplicities
        missed[partitions.starts[:-1]] = 0.0
        problem.minimise({"k": missed})
        # In units of what the uniform kernel leaves of a row of one output; sets leave more.
        problem.set_inside({"k": 1.0 / self.classes}, slack=1.0)
        return problem

    @cached_property
    def _rule_units(self) -> Units:
        return rule_units(self.rule, self.target)

    def closed_form(self) -> Units | None:
        """Return the integers of a rule; None for the program's optimum."""
        return None if self.rule == "optimal" else self._rule_units

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve `problem`."""
        if self.target.exact:
            count = configuration_count(self.mechanisms, self.classes)
            expect("design of the plurality", count, _SPEED)
        return super().solved(backend, time_limit, stop_at_gap)

    def point(self, solution: Solution) -> Vector:
        """Return k[lambda, c], by the variables of `dpopt.ballots.Partitions`."""
        return np.maximum(solution["k"], 0.0)

    def as_point(self, values: Vector) -> Vector:
        """Return numbers k[lambda, c] that somebody else found, without 1e-6 of noise.

        Raises:
            ParameterError: for another shape, or probabilities that do not add up.
        """
        partitions = self.partitions
        if values.shape != (partitions.size,) or not np.all(np.isfinite(values)):
            raise ParameterError(
                f"k has shape {values.shape}; it must hold {partitions.size} probabilities."
            )
        sums = np.add.reduceat(values * partitions.multiplicities, partitions.starts[:-1])
        if np.any(values < -_NOISE) or np.any(np.abs(sums - 1.0) > _NOISE):
            raise ParameterError("k must hold probabilities that add up to 1 for each histogram.")
        return np.maximum(values, 0.0)

    def units(self, point: Vector) -> Units:
        """Return a kernel as integers: mixed with the uniform law until private."""
        if self.rule != "optimal":
            return self._rule_units
        return repaired(self.target, point)

    def bound(self, units: Units, solution: Solution | None) -> float | None:
        """Return the bound of the dual vector; None for a rule, which bounds nothing."""
        return None if self.rule != "optimal" else super().bound(units, solution)

    def proof_rows(self, units: Units) -> list[tuple[object, ...]]:
        """Return the corners that are tight; see `dpopt.multiclass.oracle.Pricing.tight`."""
        partitions = self.partitions
        return self.pricing.tight(flat(partitions, units, bits_of(partitions, units)))

    def value(self, units: Units) -> float:
        """Return the probability that the plurality is missed, under the prior."""
        return math.fsum(self.occurring * self.missed(units))

    def missed(self, units: Units) -> Vector:
        """Return the probability that no plurality class is output, for each sorted histogram."""
        partitions = self.partitions
        whole = scale(self.classes, bits_of(partitions, units))
        top = [levels[0][1] for levels in partitions.levels]
        return np.array([(whole - row[0] * n) / whole for row, n in zip(units, top, strict=True)])

    def prove(self, units: Units) -> Certificate:
        """Return the exact proof of the integers.

        Raises:
            NotPrivateError: naming the voters whose constraint fails.
            ParameterError: for integers that are no units, or too many configurations.
        """
        if self.rule == "optimal":
            require_priceable(self.mechanisms, self.classes)
        return certify(self.target, units)

    def law(self, units: Units, data: npt.ArrayLike) -> Sequence[int]:
        """Return the law of the label for the votes of one query.

        Raises:
            ParameterError: for votes of another shape or other values.
        """
        counts, single = self.counted(data)
        if not single:
            raise ParameterError(
                f"votes has {len(counts)} rows; a law is that of one query, shape "
                f"({self.mechanisms},)."
            )
        return law(self.partitions, units, counts[0].tolist())

    def counted(self, votes: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], bool]:
        """Return the counts of each query, shape (queries, C), and whether votes had shape (K,).

        Raises:
            ParameterError: for votes of another shape or other values; none is shown.
        """
        return count_queries(votes, self.mechanisms, self.classes)

    def spent(self, units: Units, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon of one query for delta = 0.

        Raises:
            ParameterError: for an epsilon or a delta that is given: only that of 0 is known.
        """
        require_pure(self.kind, epsilon, delta)
        return least_epsilon(self.target, units)

    def dominating(self, units: Units) -> DominatingPair:
        """Return the tight dominating pair of one query, over all voters and sets of outputs."""
        return dominating(self.target, units)

    def draw(self, axes: Axes, units: Units, label: str | None = None) -> None:
        """Draw the probability of a plurality class against its lead, a point a histogram.

        The line is the mean over the prior.
        """
        lead = np.array([state[0] - state[1] for state in self.partitions.states])
        right = 1.0 - self.missed(units)
        drawn = axes.plot(lead, right, "o", markersize=3, alpha=0.5, clip_on=False)
        leads = np.unique(lead)
        mass = self.occurring + 1e-300
        means = [np.average(right[lead == at], weights=mass[lead == at]) for at in leads]
        axes.plot(leads, means, color=drawn[0].get_color(), label=label)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("lead of the plurality, in votes")
        axes.set_ylabel("probability of a plurality class")
        axes.set_ylim(-0.03, 1.03)

    def columns(self, units: Units) -> Mapping[str, Sequence[Any]]:
        """Return for each sorted histogram and count in it the probability of one such class."""
        partitions = self.partitions
        names = ["-".join(map(str, state)) for state in partitions.states]
        return {
            "votes": [names[state] for state in partitions.state_of],
            "count": partitions.counts.tolist(),
            "classes": partitions.multiplicities.tolist(),
            "probability": flat(partitions, units, bits_of(partitions, units)).tolist(),
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MulticlassDesign(Design):
    """A plurality of private voters.

    `dpopt.shape.Design` says what every design has; ``value`` is the probability that no
    plurality class is output, under the prior.

    Attributes:
        setting: the voters, the target and the prior.
        units: k[lambda, c] as integers, see `dpopt.ballots.table`.
    """

    setting: MulticlassSetting
    units: Units

    @cached_property
    def kernel(self) -> Vector:
        """k[lambda, c] as floats by the variables of `dpopt.ballots.Partitions`, read-only."""
        partitions = self.setting.partitions
        return flat(partitions, self.units, bits_of(partitions, self.units))

    @property
    def error(self) -> float:
        """The value: how often the plurality is missed."""
        return self.value

    @cached_property
    def worst_violation(self) -> float:
        """By how much the worst constraint is broken, in probability; 0 if private."""
        if self.private:
            return 0.0
        try:
            self._prove()
        except NotPrivateError as error:
            return error.excess
        return 0.0

    def asked(self, data: Any = None) -> int:  # noqa: ANN401
        """Return the number of queries, each of which spends the whole guarantee; see `release`."""
        self.require_private()
        return len(self.setting.counted(data)[0])

    def release(self, data: Any = None) -> npt.NDArray[np.int64] | int:  # noqa: ANN401
        """Return the private plurality of votes, with the operating system's randomness.

        Each row of votes is one query and spends the whole guarantee once. No seed; Python is not
        constant-time, and timing is outside the guarantee.

        Args:
            data: votes in 0..C-1, shape (K,) for one query or (queries, K).

        Returns:
            A class for one query; an array of them, shape (queries,), for several.

        Raises:
            ParameterError: for another shape or other values. A refusal for a vote's value tells of
                the data and is not covered by the guarantee: make a class of each vote before.
            NotPrivateError: if the plurality has no certificate; it names the voters.
        """
        self.require_private()
        counts, single = self.setting.counted(data)
        return self._drawn_labels(counts, single, system)

    def simulate(
        self,
        data: Any,  # noqa: ANN401
        rng: np.random.Generator,
    ) -> npt.NDArray[np.int64] | int:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        source = seeded(rng)
        return self._drawn_labels(*self.setting.counted(data), source)

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self.setting.partitions, self.units)

    def _drawn_labels(
        self, counts: npt.NDArray[np.int64], single: bool, source: Source
    ) -> npt.NDArray[np.int64] | int:
        drawn = self._labels.draw(counts, source)
        return int(drawn[0]) if single else drawn

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {
            "mechanisms": self.setting.mechanisms,
            "classes": self.setting.classes,
            "guarantee": self.guarantee,
            "verdict": self.verdict,
            "rule": self.setting.rule,
            "error": self.value,
        }

    def facts(self) -> Json:
        """Return the error, and by how many constraints the plurality was judged."""
        solved, proof = self.solution, self.certificate
        return {
            "error": self.value,
            "prior": self.setting.prior,
            "histograms": len(self.setting.partitions.states),
            "worst_violation": self.worst_violation,
            "constraints_checked": None if proof is None else proof.constraints,
            "rows_used": None if solved is None else solved.rows_used,
            "rounds": None if solved is None else solved.rounds,
        }


MulticlassSetting.answer = MulticlassDesign


def design(
    mechanisms: int,
    classes: int,
    epsilon: float,
    allowance: float,
    *,
    mechanism_delta: float = 0.0,
    delta: float = 0.0,
    prior: str = "dirichlet:1",
    rule: str = "optimal",
    backend: str | Backend | None = None,
    time_limit: float | None = None,
    stop_at_gap: float = 0.0,
) -> MulticlassDesign:
    """Return the best plurality of K private voters, solved, repaired and proved.

    The parameters are the fields of the setting, see `MulticlassSetting`. For backend,
    time_limit and stop_at_gap see `dpopt.design`.

    Raises:
        ParameterError: for a parameter out of range, or more configurations than can be priced.
        SolverError: if the solver found no answer.

    Example:
        >>> from dpopt import multiclass
        >>> best = multiclass.design(11, 3, 0.1, 3)
        >>> best.verdict, round(best.error, 4)
        ('private', 0.0601)
    """
    named: Any = _checks.choice("rule", rule, RULES)
    given = mechanisms, classes, epsilon, allowance, mechanism_delta, delta, prior
    setting = MulticlassSetting(*given, named)
    return designed(setting, backend=backend, time_limit=time_limit, stop_at_gap=stop_at_gap)

"""A private plurality of private voters over C classes: the setting and its exact proof.

Corner configurations are in `dpopt.multiclass.corners`; `dpopt.verify` verifies the integer tables.

Rules. Where all corner configurations can be priced, a rule's parameter is found by bisection in
floats, and the repair makes the table private. Elsewhere, and for voters with Delta > 0, it is the
largest that the bound on stable rules allows. If replacing one vote changes a probability by a
factor of at most v = e^{epsilon_v}, and the voters are (epsilon, 0)-DP with r = e^epsilon, then the
output is K psi-DP with e^psi = (r v + 1) / (r + v). This, and the bound for Delta > 0, are proved
in docs/theorems/stable.md. Rationals rounded to the safe side decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain
from math import comb
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from dpopt import _checks, verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits, float_up, roughly
from dpopt._progress import expect
from dpopt._types import Vector
from dpopt.ballots.choice import ClassSetting, PrivateVoters, check_prior
from dpopt.ballots.tabulate import FLOATS, audit_rule, largest, rule_at
from dpopt.lp import Solution
from dpopt.multiclass.corners import Pricing, require_walked, voters_in_words
from dpopt.privacy import Certificate, Problem, exp_lower
from dpopt.privacy.cost import DominatingPair, Least, least_of_ratio, require_pure
from dpopt.privacy.exact import exp_upper, log_near
from dpopt.privacy.guarantee import in_short
from dpopt.table import Losses, SortedHistograms, Table, constant, repair, rounded
from dpopt.table.least import as_floats, undominated

# Largest epsilon of one vote, in nats: there a rule is the plurality up to e^-30.
_LARGEST = 30.0


@dataclass(frozen=True)
class Multiclass(PrivateVoters, ClassSetting):
    """The best private plurality vote over C classes of K voters who are private themselves.

    Let lambda be the sorted counts of the votes. The mechanism outputs each class of count c with
    probability k[lambda, c], and so treats all classes alike. A plurality class is one of the
    largest count. With a(y | N) the probability of y where the counts are N,

        minimise   E Pr[output is no plurality class]                                 (prior)
        subject to sum_c n[lambda, c] k[lambda, c] = 1                                "sums"
                   E a(y | N) - e^(m epsilon) E' a(y | N) <= 0                        "corners"
                   for all P_i, P'_i that are within e^epsilon of each other
                   0 <= k <= 1

    where n[lambda, c] is the number of classes of count c. P_i and P'_i are the distributions of
    voter i's vote on two neighbouring data sets, and N the counts of votes drawn from all P_i
    (under E', from all P'_i). It suffices to check corners of the pairs (P_i, P'_i): a voter votes
    for one class always, under both, or is on an edge u -> v: under P_i it votes for u with
    probability e^epsilon / (1 + e^epsilon) and else for v, and under P'_i the two probabilities are
    exchanged. A configuration assigns a corner to each voter; only those need a check whose edges
    have no cycle of two or three, such as u -> v, v -> u. For delta > 0 there is a row for each set
    of outputs, with delta on the right-hand side.

    A rule other than "optimal" solves no program: its one parameter, such as a step or the size of
    a sample, is the largest with which it is private whatever the voters' distributions are. Take
    such a rule in any of three cases: voter_delta is above 0; there are two classes and more than
    300 voters; there are more than 8e6 configurations (the error message says how many). Its
    privacy is then shown by a proved bound.

    Attributes:
        voters: K, at least 1; it may be even.
        classes: C, in 2..100; votes are 0..C-1.
        epsilon: of each voter, above 0, in nats.
        allowance: m, real, in (0, K]: the plurality is to be (m epsilon, delta)-DP; m epsilon is
            at least 1e-7. None for several releases.
        voter_delta: Delta of each voter, in [0, 1); 0 for the rule "optimal".
        delta: of the plurality, in [0, 1).
        prior: of the votes, all drawn from one distribution p: "uniform" makes every histogram
            equally likely, p being uniform on the simplex; "dirichlet:A" if p is from a symmetric
            Dirichlet distribution, A in [0.0001, 1e6]; "point:P,...,P" for a p that is known up to
            the order of the classes.
        rule: "optimal" solves the program; "ladder", "permute-and-flip" and "exponential" are known
            rules with the largest private parameter; "subsampling" is the plurality of a random
            sample of the voters, as large as is private.
        releases: k, in 1..1000. Above 1, the design is for k labels, each of votes that are drawn
            afresh and may depend on the labels before; total_epsilon and total_delta of all of them
            replace allowance and delta, and voter_delta must be 0. See `dpopt.budget`.
        total_epsilon: of all k releases together, in (0, 28], in nats; None for one release.
        total_delta: likewise, in [1e-12, 0.5]; 0 for one release.

    Example:
        >>> import dpopt
        >>> best = dpopt.design(dpopt.Multiclass(11, 3, 0.1, 3))
        >>> best.private, round(best.error, 4)
        (True, 0.0601)
    """

    kind: ClassVar[str] = "multiclass"

    voters: int
    classes: int
    epsilon: float
    # None for several releases.
    allowance: float = cast(float, None)
    voter_delta: float = 0.0
    delta: float = 0.0
    prior: str = "uniform"
    rule: Literal["optimal", "ladder", "permute-and-flip", "exponential", "subsampling"] = "optimal"
    releases: int = 1
    total_epsilon: float | None = None
    total_delta: float = 0.0

    def __post_init__(self) -> None:
        voters = _checks.integer("voters", self.voters, 1, 10_000)
        classes = _checks.integer("classes", self.classes, 2, 100)
        self.keep_voters(voters)
        # Rows are divided by e^(m epsilon) - 1: below, the rounding of their coefficients shows.
        if self.releases == 1 and self.exponent < 1e-7:
            raise ParameterError(
                f"allowance * epsilon is {digits(float(self.exponent))}; a program in double "
                "precision needs at least 1e-07."
            )
        rule = _checks.choice(
            "rule",
            self.rule,
            ("optimal", "ladder", "permute-and-flip", "exponential", "subsampling"),
        )
        if self.voter_delta > 0.0 and rule in ("optimal", "subsampling"):
            raise ParameterError(
                f"voter_delta is {digits(self.voter_delta)}; it must be 0 with rule {rule!r}, and "
                "a rule such as 'ladder' has a proved bound with it."
            )
        self.keep(classes=classes, prior=check_prior(self.prior, classes), rule=rule)
        self.require_optimal()

    @classmethod
    def example(cls) -> Self:
        """Return five voters over three classes."""
        return cls(5, 3, 0.5, 2.0)

    @classmethod
    def example_neighbours(cls) -> list[tuple[list[int], list[int]]]:
        """Return pairs of votes: any of the voters may have changed."""
        return [
            ([0] * 5, [1] * 5),
            ([0, 0, 0, 1, 2], [1, 1, 1, 1, 2]),
            ([0, 1, 2, 2, 2], [1, 2, 2, 2, 2]),
        ]

    @property
    def exact(self) -> bool:
        """Whether all configurations are checked; otherwise the bound on stable rules is."""
        return self.voter_delta == 0.0 and verify.corners_are_few(self.voters, self.classes)

    @property
    def votes(self) -> int:
        """K."""
        return self.voters

    @property
    def losses(self) -> Losses:
        """The 0-1 loss of not releasing a plurality class, in the mean under the prior."""
        return self.losses_of("error", mean=True)

    @cached_property
    def pricing(self) -> Pricing:
        """The separation oracle of the privacy rows over k[lambda, c], for a program of your own.

        Raises:
            ParameterError: if there are too many configurations, or the voters have a Delta.
        """
        if self.voter_delta > 0.0:
            raise ParameterError(
                f"voter_delta is {self.voter_delta:g}; it must be 0 where configurations "
                "are priced."
            )
        return Pricing(self.voters, self.classes, self.epsilon, self.allowance, self.delta)

    def problem(self) -> Problem:
        """Return the program: variable "k", rows "sums", lazy rows "corners"."""
        self.require_program()
        problem = self._program([self])
        # Configurations per second, over all rounds of pricing and the proof, for the progress
        # estimate.
        expect("design of the plurality", verify.corner_count(self.voters, self.classes), 2e6)
        return problem

    def _program(self, targets: Sequence[Any]) -> Problem:
        """Return the program over the rows of all targets: "corners", "corners 1", ..."""
        inputs, losses = self.domain, self.losses
        problem = Problem("plurality of private voters")
        problem.add_variables("k", inputs.size, lower=0.0, upper=1.0)
        problem.add_rows("sums", {"k": inputs.sums}, lower=1.0, upper=1.0)
        for j, target in enumerate(targets):
            problem.add_family(f"corners {j}" if j else "corners", target.pricing, over="k")
        problem.minimise({"k": losses.costs * inputs.counts * self.occurring[inputs.rows]})
        # The uniform kernel is strictly feasible. Rows are divided by its slack for one output;
        # rows of larger sets have more slack.
        problem.set_inside({"k": 1.0 / self.classes}, slack=1.0)
        return problem

    def unmixed(self, solution: Solution) -> Table:
        """Return a solution's kernel as integers, rounded and not repaired."""
        return rounded(self.domain, self.point(solution), self.bits)

    def output_pairs(self, table: Table) -> list[tuple[Vector, Vector]]:
        """Return the pairs of one query that count, over all corner configurations.

        Reducing configurations exchanges P' of two voters, which leaves both distributions of the
        output as they are, so it holds for every convex function of them.
        """
        labels = self._labels(table)
        return as_floats(undominated(labels.neighbours(), labels.scale), labels.scale)

    def closed_form(self) -> Table | None:
        """Return the integer table of a rule; None for "optimal"."""
        if self.rule == "optimal":
            return None
        if self.exact or self.rule == "subsampling":
            return self.table(_strongest(self.rule, self.pricing))
        ratio = vote_ratio_below(self.voters, self.epsilon, self.allowance, self.voter_delta)
        # Stay 2^-40 below the limit: rounding up next to it would exceed it.
        of_vote = _LARGEST if ratio is None else min(_LARGEST, log_near(ratio) * (1 - 2.0**-40))
        if not of_vote > 0.0:
            raise ParameterError(
                f"allowance * epsilon is {self.allowance * self.epsilon:g}; no rule is proved for "
                "so small a budget."
            )
        return audit_rule(self.rule, self.voters, self.classes, of_vote)[1]

    def point(self, solution: Solution) -> Vector:
        """Return k[lambda, c], the probability of one class, for each variable of `domain`."""
        return np.maximum(solution["k"], 0.0)

    def table(self, point: Vector | list[Fraction]) -> Table:
        """Return a kernel as integer weights, mixed with the uniform distribution until private.

        The uniform distribution has f = |S| / C (1 - e^(m epsilon)) at every configuration.
        """
        first = rounded(self.domain, point, self.bits)
        uniform = constant(self.domain, np.full(1, 1.0 / self.classes), self.bits)
        headroom = (exp_lower(self.exponent) - 1) / self.classes + Fraction(self.delta)
        return repair(first, uniform, self.judge, self.bits, headroom)[0]

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the exact proof of a table: over all corner configurations, or by the bound."""
        if not isinstance(table, Table) or table.inputs != self.domain:
            raise ParameterError(f"table is {_checks.shown(table)}; it must be one over its votes.")
        if self.rule == "optimal":
            require_walked(self.voters, self.classes)
        if self.releases > 1:
            return self.certified(table)
        return table.proof(self, partial(_judged, self, table))

    def _proof_rows(self, table: Table) -> list[tuple[object, ...]]:
        """Return the tight rows; see `dpopt.multiclass.corners.Pricing.tight`."""
        return self.pricing.tight(table.probabilities)

    def report(self, table: Table) -> Mapping[str, Callable[[], Any]]:
        """Return k[lambda, c] as floats by the variables of `domain`, and the error: the value."""
        return {"kernel": lambda: table.probabilities, "error": lambda: self.value(table)}

    def spent(self, table: Table, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon of one query for delta = 0."""
        require_pure(self.kind, epsilon, delta)
        return _least_epsilon(self._labels(table))

    def dominating(self, table: Table) -> DominatingPair:
        """Return the tight dominating pair of one query, over all voters and sets of outputs."""
        labels, events = self._labels(table), verify.corner_count(self.voters, self.classes)
        if events * (self.classes - 1) > 2_000_000:
            raise ParameterError(
                f"voters is {self.voters} and classes {self.classes}; the privacy loss is found "
                f"from at most 2e+06 events, and these may be {events * (self.classes - 1):.1e}."
            )
        curves = chain.from_iterable(map(verify.curve_of, labels.neighbours()))
        points = ((q, min(p, labels.scale)) for q, p in curves)
        return DominatingPair.of_points(points, labels.scale)

    def _labels(self, table: Table) -> verify.Labels:
        if self.voter_delta > 0.0:
            raise ParameterError(
                f"voter_delta is {self.voter_delta:g}; the privacy loss is found for "
                "voters without one."
            )
        require_walked(self.voters, self.classes)
        ballots = verify.Ballots(self.voters, self.classes, table.plain())
        return verify.Labels(self.one_query.to_dict(), ballots, None)


def _judged(setting: Multiclass, table: Table) -> Certificate:
    guarantee = setting.guarantee
    promised = in_short(guarantee)
    try:
        stated = verify.KINDS[setting.kind](setting.to_dict(), table.plain(), None, {})
        verdict = verify.decide(stated)
    except verify.Malformed as error:
        raise ParameterError(f"{error}.") from None
    except verify.Refused as refusal:
        inputs, output, where = _where(setting, refusal.at)
        how = "breaks" if setting.exact else "is not proved to keep"
        raise NotPrivateError(
            f"the plurality {how} {promised} by {roughly(Fraction(refusal.missed))}: {where}.",
            inputs=inputs,
            output=output,
            excess=float_up(Fraction(refusal.missed)) or math.ulp(0.0),
        ) from None
    claim = "reduced corner configurations" if setting.exact else "it is private in each vote"
    return Certificate(
        claim=f"this plurality is private for all private voters: {claim}",
        guarantee=guarantee,
        constraints=verdict.rows,
        slack=Fraction(verdict.slack),
        tightest=_where(setting, verdict.at)[2],
    )


def _where(setting: Multiclass, at: tuple[Any, ...]) -> tuple[tuple[str, str], str, str]:
    """Return both neighbours of a row of `dpopt.verify` in words, its output, and all in one."""
    if at[0] == "corner":
        _, size, signed, loops = at
        sides = voters_in_words(setting.classes, signed, loops)
        output = "0" if size == 1 else f"0..{size - 1}"
        return sides, output, f"{sides[0]}; neighbour: {sides[1]}; output {output}"
    _, first, count, second, other = at
    sides = setting.domain.described(first), setting.domain.described(second)
    output = f"the class with {count}, then {other}"
    return sides, output, f"counts {sides[0]} and {sides[1]}, {output}"


def _least_epsilon(labels: verify.Labels) -> Least:
    """Return bounds on the least epsilon of one query for delta = 0.

    It is the logarithm of the largest Pr[output] / Pr'[output] over all voters and outputs;
    infinite if an output is possible under one neighbour only.
    """
    numerator, denominator, where, lower = 0, 1, ("", ""), Fraction(0)
    # b was rounded up by less than two units, and c down: the relative error of each factor c.
    relative_error = Fraction(4, 1 << verify.CORNER) * (1 + exp_upper(labels.epsilon))
    for _, signed, loops, *both in labels.sides([(0, 1)]):
        edges = sum(map(abs, signed))
        for sign, (above, below) in ((1, both), (-1, both[::-1])):
            for at, (over, under) in enumerate(zip(above, below, strict=True)):
                if over * denominator > numerator * max(under - edges, 0):
                    ends = [sign * n for n in signed]
                    where = voters_in_words(labels.classes, ends, loops[at])
                    numerator, denominator = over, under - edges
                    if denominator <= 0:
                        return least_of_ratio(None, where, (0,))
                    lower = Fraction(max(0, over - edges), under) * (1 - edges * relative_error)
    one = Fraction(1)
    return least_of_ratio(
        max(Fraction(numerator, denominator), one), where, (0,), lower=max(lower, one)
    )


def _strongest(rule: str, pricing: Pricing) -> Vector | list[Fraction]:
    """Return the rule's kernel with the largest parameter such that f <= delta, up to rounding.

    The parameter is epsilon of one vote: the ladder has r = e^epsilon, permute-and-flip and the
    exponential mechanism s = e^(epsilon / 2). "subsampling" draws as many voters as is private.
    """

    def keeps(kernel: Vector) -> bool:
        # Rounding error of f in floats that is tolerated; the repair makes up for it.
        return pricing.price(kernel)[0] <= pricing.delta + 1e-14

    if rule == "subsampling":
        for sample in range(pricing.inputs.records, 0, -1):
            exact = sampled_plurality(pricing.inputs, sample)
            # The privacy cost is often m epsilon exactly: the repair makes up for rounding.
            if keeps(np.array([float(share) for share in exact])):
                return list(exact)
        raise ParameterError(
            "allowance is below 1; it must be at least 1 with rule 'subsampling', which returns "
            "the vote of one voter at least."
        )
    at, root = rule_at(rule, pricing.inputs), 1 if rule == "ladder" else 2

    def kernel(epsilon: float) -> Vector:
        return at(Fraction(math.exp(epsilon / root)), FLOATS)

    def fits(epsilon: float) -> bool:
        values = kernel(epsilon)
        return bool(np.all(values >= 0.0)) and keeps(values)

    return kernel(largest(fits, 0.0, _LARGEST))


def vote_ratio_below(
    voters: int, epsilon: float, allowance: float, voter_delta: float = 0.0
) -> Fraction | None:
    """Return the largest multiple v of 2^-128, up to rounding, with K psi <= m epsilon.

    v bounds the factor by which replacing one vote may change a probability. None if every rule is
    private: m = K and Delta = 0.

    Args:
        voters: K.
        epsilon: of each voter, above 0, in nats.
        allowance: m, in (0, K].
        voter_delta: Delta of each voter, in [0, 1).

    Example:
        >>> from dpopt.multiclass.setting import vote_ratio_below
        >>> round(float(vote_ratio_below(11, 0.1, 3)), 6)
        1.750795
    """
    delta = Fraction(voter_delta)
    budget = exp_lower(Fraction(allowance) * Fraction(epsilon) / voters)
    voter = (exp_upper(Fraction(epsilon)) + delta) / (1 - delta)
    limits = []
    # e^psi is below r for every v, so m = K gives no limit, although the budget is rounded down.
    if budget < voter and (delta or allowance < voters):
        limits.append((voter * budget - 1) / (voter - budget))
    if delta:
        limits.append(1 + (budget - 1) / delta)
    if not limits:
        return None
    # Fractional bits of v.
    ratio = Fraction(int(min(limits) * (1 << 128)), 1 << 128)
    if ratio <= 1:
        raise ParameterError(
            f"epsilon is {digits(epsilon)}; with allowance {digits(allowance)} and {voters} "
            "mechanisms it must be larger: no rule but a constant one is proved."
        )
    return ratio


def sampled_plurality(inputs: SortedHistograms, sample: int) -> tuple[Fraction, ...]:
    """Return k[lambda, c], the exact pmf of the plurality of M voters drawn without replacement.

    Ties for the largest count of the sample are broken uniformly:
    k = sum over sub-histograms h of M votes of prod_x binom(l_x, h_x) / binom(K, M), times
    1 / (number of top classes of h) if the class is one of them.
    """
    size = _checks.integer("sample", sample, 1, inputs.records)
    samples, shares = comb(inputs.records, size), list[Fraction]()
    for histogram in inputs.listed():
        # The probability of all classes of a count together, then of one of them.
        masses = dict.fromkeys(histogram, Fraction(0))
        for drawn, number in _samples(histogram, size):
            top = max(drawn)
            fair = Fraction(number, samples * drawn.count(top))
            for count, votes in zip(histogram, drawn, strict=True):
                if votes == top:
                    masses[count] += fair
        shares += [mass / histogram.count(count) for count, mass in masses.items()]
    return tuple(shares)


def _samples(counts: Sequence[int], size: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the histograms of ``size`` drawn votes, each with its number of samples."""
    if len(counts) == 1:
        if size <= counts[0]:
            yield (size,), comb(counts[0], size)
        return
    for first in range(min(counts[0], size) + 1):
        number = comb(counts[0], first)
        for histogram, others in _samples(counts[1:], size - first):
            yield (first, *histogram), number * others

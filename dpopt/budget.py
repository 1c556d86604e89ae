"""Many releases at one budget: the best mechanism of which k releases together are private.

Each of the k outputs may be asked for after seeing those before. What they spend together is the
delta of `dpopt.composition`, from all pairs (P, Q) of neighbours of one release; it is smaller than
what composition of one (epsilon, delta) gives, since an output with few values has not the whole
privacy curve that such a guarantee allows. No linear program says that delta is small enough; but
for a curve with one parameter s,

    pure       K_x(S) <= e^s K_x'(S)                            for neighbours x, x' and events S
    gaussian   K_x(S) <= e^(a_j) K_x'(S) + delta_s(a_j),        likewise, at points a_1 < ... < a_J
               delta_s(a) = Phi(s / 2 - a / s) - e^a Phi(-s / 2 - a / s),

the best mechanism under it is one. The second is s-Gaussian differential privacy at J points. The
parameter of each family is raised until the k releases use up total_delta; the mechanism of less
loss is the design. It is the best under its curve, not proved the best of all; without privacy rows
at all, where that is private already, it is the best of all.
"""

from __future__ import annotations

import json
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import log_ndtr

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits
from dpopt._types import Vector
from dpopt.composition import Enclosed, decided_delta, interval
from dpopt.lp import Backend, Separation, Solution, make_rows, solve
from dpopt.privacy import Problem
from dpopt.privacy.guarantee import Certificate, Guarantee, in_short
from dpopt.shape import Design, Setting, made
from dpopt.table import Table, probabilities_of, rounded
from dpopt.table.inputs import Inputs

__all__ = ["Budgeted", "gaussian_curve", "gaussian_delta"]


class Budgeted(Setting):
    """A setting whose design may be for several releases with one guarantee.

    Attributes:
        releases: k, in 1..1000.
        total_epsilon: of all k releases together, in (0, 28], in nats; None for one release.
        total_delta: likewise, in [1e-12, 0.5]; 0 for one release.
    """

    releases: Any
    total_epsilon: Any
    total_delta: Any

    def keep_total(self, required: str, **of_one: object) -> bool:
        """Set the checked fields of several releases; return whether there are several.

        Args:
            required: name of the field that one release must have.
            of_one: by name those fields that belong to one release; None or 0 where not given.

        Raises:
            ParameterError: if both were given, or neither.
        """
        releases = _checks.integer("releases", self.releases, 1, 1000)
        delta = _checks.real("total_delta", self.total_delta, 0.0, 0.5)
        if releases == 1:
            if self.total_epsilon is not None or delta > 0.0:
                raise ParameterError(
                    "total_epsilon or total_delta is given and releases is 1; they are of several "
                    f"releases, at least 2; of one it is {' and '.join(of_one)}."
                )
            if of_one[required] is None:
                raise ParameterError(
                    f"{required} is missing; give it, or releases, total_epsilon and total_delta."
                )
            self.keep(releases=1, total_delta=0.0)
            return False
        for name, value in of_one.items():
            if value is not None and not (isinstance(value, int | float) and value == 0.0):
                raise ParameterError(
                    f"{name} is {_checks.shown(value)} and releases is {releases}; several "
                    "releases have total_epsilon and total_delta instead."
                )
        if self.total_epsilon is None:
            raise ParameterError(
                f"releases is {releases} and total_epsilon is missing; it is what they spend "
                "together, with total_delta."
            )
        epsilon = _checks.real("total_epsilon", self.total_epsilon, 0.0, 28.0, open_lower=True)
        if delta < 1e-12:
            raise ParameterError(
                f"total_delta is {digits(delta)}; it must be at least 1e-12. For 0, design one "
                f"release and divide the epsilon by {releases}."
            )
        self.keep(releases=releases, total_epsilon=epsilon, total_delta=delta)
        return True

    @property
    def unshown(self) -> tuple[str, ...]:
        """Fields of several releases for one, and those of one for several."""
        if self.releases == 1:
            return "releases", "total_epsilon", "total_delta"
        fields = cast(Any, self)
        missing = [n for n in ("allowance", "epsilon") if getattr(fields, n, 0) is None]
        return ("delta", "voter_delta", *missing)

    @property
    def total(self) -> Guarantee:
        """(total_epsilon, total_delta), of all releases together."""
        return Guarantee(self.total_epsilon, self.total_delta)

    @abstractmethod
    def one_release(self, guarantee: Guarantee) -> Self:
        """Return the setting of one release with a guarantee of its own."""

    def alone(self, **changed: Any) -> Self:  # noqa: ANN401
        """Return the setting of one release, with changed fields."""
        one: Any = {"releases": 1, "total_epsilon": None, "total_delta": 0.0}
        return cast(Self, replace(cast(Any, self), **one, **changed))

    def refuse_several(self) -> None:
        """Refuse to state one program for several releases.

        Raises:
            ParameterError: if releases is above 1.
        """
        if self.releases > 1:
            raise ParameterError(
                f"releases is {self.releases}; for several there is no single program: `under` "
                "returns that of a curve."
            )

    @property
    def _unlimited(self) -> float:
        """An epsilon of one release that every mechanism of this kind has; infinite if none."""
        return math.inf

    def under(self, curve: Sequence[Guarantee]) -> Problem:
        """Return the program of one release that has every guarantee of a curve.

        By default over tables: variable "kernel", the masses; rows "sums", lazy rows "privacy".

        Args:
            curve: (epsilon, delta) of its points; none for the mechanism without privacy.
        """
        problem, inputs = Problem(self.kind), self.domain
        problem.add_variables("kernel", inputs.size, lower=0.0, upper=1.0)
        problem.add_rows("sums", {"kernel": inputs.sums.sign()}, lower=1.0, upper=1.0)
        if curve:
            problem.add_family("privacy", curve_rows(inputs, curve), over="kernel")
        self._required_losses().add(problem, inputs, Guarantee(0.0))
        return problem

    def unmixed(self, solution: Solution) -> Table:
        """Return a solution of `under` as integers, rounded and not repaired."""
        values = np.maximum(probabilities_of(self.domain, Guarantee(0.0), solution), 0.0)
        return rounded(self.domain, values, self.bits)

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the proof of a table, for several releases that they are private together.

        Raises:
            NotPrivateError: if it is not private, or not shown to be.
            ParameterError: if it is no table of this setting.
        """
        return super().judge(table) if self.releases == 1 else self.certified(table)

    def searched(
        self, backend: str | Backend | None, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Design | None:
        """Return the design for several releases; None for one."""
        if self.releases == 1:
            return None
        limit = None if time_limit is None else time.monotonic() + time_limit
        search = _Search(self, "highs" if backend is None else backend, limit, stop_at_gap)
        best = search.best()
        details = {
            "curve": best.curve,
            "curve_parameter": best.parameter,
            "curve_bound": None if best.solution is None else best.solution.bound,
            "spent_delta": best.spent,
        }
        return made(self, best.table, best.solution, float_bound=None, _details=details)

    def certified(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the proof that the k releases of a table together are private.

        Raises:
            NotPrivateError: if that is not shown.
            ParameterError: if it is no table of this setting.
        """
        self._require_own(table)
        statement = json.dumps([self.kind, self.to_dict()], sort_keys=True)
        return table.proof(statement, lambda: self._certified(table))

    def _certified(self, table: Table) -> Certificate:
        pairs, total = self.output_pairs(table), self.total
        spent = decided_delta(pairs, self.releases, total.epsilon, total.delta)
        claim = (
            f"{self.releases} releases are private together, each for an input that may depend on "
            f"earlier outputs; {table.inputs.claim()}"
        )
        return certified_together(claim, spent, self.releases, total, self.releases * len(pairs))


def certified_together(
    claim: str, spent: Enclosed, releases: int, total: Guarantee, constraints: int
) -> Certificate:
    """Return the proof that several releases are private together, from what they spend.

    Raises:
        NotPrivateError: if that is not shown.
    """
    if spent.upper > total.delta:
        how = "are not" if spent.lower > total.delta else "are not shown to be"
        raise NotPrivateError(
            f"{releases} releases {how} {in_short(total)}: their delta is between "
            f"{spent.lower:.6g} and {spent.upper:.6g}.",
            inputs=("any input", "its neighbour, chosen after each output"),
            output="an event",
            excess=spent.upper - total.delta,
        )
    return Certificate(
        claim=claim,
        guarantee=total,
        constraints=constraints,
        slack=Fraction(total.delta) - Fraction(spent.upper),
        tightest=f"delta of all releases, at most {spent.upper:.6g}",
        arithmetic="outward-rounded floats",
    )


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta at epsilon of mu-Gaussian differential privacy (Dong, Roth, Su 2022)."""
    first, second = log_ndtr([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
    return float(math.exp(first) * -math.expm1(epsilon + second - first))


def gaussian_curve(mu: float, last: float) -> list[Guarantee]:
    """Return guarantees of mu-Gaussian differential privacy, evenly spaced down to a delta."""
    end = mu
    while gaussian_delta(mu, end) > last:
        end += mu / 8
    # With twice as many points designs lose a thousandth less.
    points = np.linspace(end / 100, end, 24).tolist()
    return [Guarantee(e, gaussian_delta(mu, e)) for e in points]


def curve_rows(inputs: Inputs, curve: Sequence[Guarantee]) -> Callable[[Vector], Separation]:
    """Return the separation oracle of the rows of a curve over masses of a table.

    For neighbours x, x' and a point (epsilon, delta) of the curve the worst event is that of all
    outputs with K_x > e^epsilon K_x'; its row is added where it is violated.
    """
    edges, counts = inputs.edges, np.asarray(inputs.counts, dtype=float)
    *ends, sums = edges.directed()
    entries = np.arange(2 * len(edges.first))
    # Of an entry and a variable: outputs of the entry times the probability of one in its mass.
    first, second = (
        sp.csr_array(
            (np.tile(edges.counts, 2) / counts[end], (entries, end)),
            shape=(entries.size, inputs.size),
        )
        for end in ends
    )
    # Rows are divided by not less than what a solver's tolerance is good for.
    units = [max(point.delta, 1e-2) for point in curve]
    points = list(zip(curve, units, strict=True))
    excesses = [(first - math.exp(p.epsilon) * second) / unit for p, unit in points]

    def separate(masses: Vector) -> Separation:
        """Return the violated rows at masses, the worst first."""
        violations, rows, limits = np.empty(0), list[Any](), np.empty(0)
        for matrix, (point, unit) in zip(excesses, points, strict=True):
            excess, limit = matrix @ masses, point.delta / unit
            over = sums @ np.maximum(excess, 0.0) - limit
            # In the row's own units, about what solvers keep.
            broken = np.flatnonzero(over > 1e-9)
            # The event of an edge: its entries with an excess.
            event = sp.diags_array((excess > 0).astype(float))
            rows.append(sums[broken] @ event @ matrix)
            violations = np.append(violations, over[broken])
            limits = np.append(limits, np.full(broken.size, limit))
        # In one round; memory fixes the number.
        worst = np.argsort(-violations, kind="stable")[:2_000]
        added = make_rows(sp.csr_array(sp.vstack(rows, format="csr")[worst]), upper=limits[worst])
        return Separation(added, float(violations.max(initial=0.0)), len(points))

    return separate


@dataclass(frozen=True)
class _Candidate:
    """A table, how it was found, and what k releases of it spend."""

    table: Table
    value: float
    solution: Solution | None
    curve: str
    parameter: float | None
    spent: float


class _Search:
    """The search for the parameter of each family of curves."""

    def __init__(
        self, setting: Budgeted, backend: str | Backend, limit: float | None, gap: float
    ) -> None:
        self.setting, self.backend, self.limit, self.gap = setting, backend, limit, gap
        # A little less than total_delta, so that coarser accountings accept the design too.
        self.most = 0.995 * setting.total.delta

    def best(self) -> _Candidate:
        """Return the best of the mechanism without privacy rows, and of both families."""
        setting, total = self.setting, self.setting.total
        free = self._accounted("none", None, self._solved([]))
        if free.spent <= self.most:
            return free
        # k releases of pure epsilon / k, and of mu / sqrt(k), are private in any case.
        ends = math.log(1e-6), math.log(100.0)
        log_mu = brentq(lambda s: gaussian_delta(math.exp(s), total.epsilon) - total.delta, *ends)
        least = math.exp(log_mu) / math.sqrt(setting.releases)
        gaussian = self._raised("gaussian", least, self._gaussian, None)
        return self._raised("pure", total.epsilon / setting.releases, self._pure, gaussian)

    def _solved(self, curve: Sequence[Guarantee]) -> tuple[Table, Solution]:
        problem = self.setting.under(curve)
        solution = solve(problem, self.backend, time_limit=self._left(), stop_at_gap=self.gap)
        return self.setting.unmixed(solution), solution

    def _pure(self, epsilon: float) -> tuple[Table, Solution | None]:
        setting = self.setting.one_release(Guarantee(epsilon))
        closed = setting.closed_form() if self.backend == "highs" else None
        if closed is not None:
            return closed, None
        solution = setting.solved(self.backend, self._left(), self.gap)
        return setting.table(setting.point(solution)), solution

    def _gaussian(self, mu: float) -> tuple[Table, Solution]:
        # All releases may spend a thousandth of total_delta beyond the last point.
        last = 1e-3 * self.setting.total.delta / self.setting.releases
        return self._solved(gaussian_curve(mu, last))

    def _left(self) -> float | None:
        return None if self.limit is None else max(self.limit - time.monotonic(), 1e-3)

    def _accounted(
        self, curve: str, parameter: float | None, solved: tuple[Table, Solution | None]
    ) -> _Candidate:
        (table, solution), setting = solved, self.setting
        pairs, releases = setting.output_pairs(table), setting.releases
        # Cells on either side of 1; beyond 100 releases the grid reaches about sqrt(k) as far.
        cells = math.ceil(4_000 * max(1.0, math.sqrt(releases / 100)))
        spent = interval(pairs, releases, setting.total.epsilon, cells, lower=False)[1]
        return _Candidate(table, setting.value(table), solution, curve, parameter, spent)

    def _better(self, candidate: _Candidate, rival: _Candidate) -> bool:
        over = candidate.value > rival.value
        return over if self.setting.maximises else not over

    def _raised(
        self,
        curve: str,
        start: float,
        solved: Callable[[float], tuple[Table, Solution | None]],
        rival: _Candidate | None,
    ) -> _Candidate:
        """Return the mechanism of the largest parameter at which k releases are private.

        At the start they are, but for the solver's tolerance. A rival is returned where it is
        better; the search ends at once where even a parameter that is too large has more loss.
        """
        delta, most = self.setting.total.delta, math.inf
        if curve == "pure":
            most = self.setting._unlimited
        low = min(start, most)

        def at(parameter: float) -> _Candidate:
            return self._accounted(curve, parameter, solved(parameter))

        best = at(low)
        while best.spent > self.most:
            low *= 0.999
            best = at(low)
        high, over = low, best
        while over.spent <= self.most and high < most:
            low, best = high, over
            high = min(2 * high, most)
            over = at(high)
        if over.spent <= self.most:
            best = over
        # A few steps are enough, unless delta jumps.
        for step in range(40 if over is not best else 0):
            if rival is not None and not self._better(over, rival):
                return rival
            if high / low - 1 <= 1e-4 or best.spent >= 0.985 * delta:
                break
            # Where a power of the parameter meets the aim, or, as delta may leave 0 at once, a
            # line; now and then the middle.
            ends, aim = [max(each.spent, 1e-300) for each in (best, over)], 0.99 * delta
            if step % 3 == 0:
                share = math.log(aim / ends[0]) / math.log(ends[1] / ends[0])
            else:
                share = (aim - ends[0]) / (ends[1] - ends[0]) if step % 3 == 1 else 0.5
            share = min(max(share, 0.001), 0.999)
            middle = low * (high / low) ** share
            between = at(middle)
            if between.spent <= self.most:
                low, best = middle, between
            else:
                high, over = middle, between
        return best if rival is None or self._better(best, rival) else rival

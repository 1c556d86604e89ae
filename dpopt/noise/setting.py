"""The best symmetric noise for integers: the setting, its table and its proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np

from dpopt import _checks, verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import digits
from dpopt._types import IntVector, Json, Numbers, Vector, frozen
from dpopt.budget import certified_together
from dpopt.composition import Enclosed
from dpopt.lp import Backend, Solution
from dpopt.noise.closed import (
    Multipliers,
    best_step,
    geometric_multipliers,
    staircase_multipliers,
    truncated_geometric,
)
from dpopt.noise.many import CANDIDATES, candidates, certified_delta
from dpopt.noise.program import DOUBLINGS, WRITTEN, Grid, Program, optimum
from dpopt.noise.table import NoiseTable, added, decided, integers, shifted
from dpopt.privacy import Certificate, Guarantee, Problem, exp_lower
from dpopt.privacy.cost import DominatingPair, Least
from dpopt.privacy.exact import least_float
from dpopt.privacy.release import Source
from dpopt.shape import Design, Setting, made

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.verify import Name

# Bits of a weight beyond those that delta, over all distances, needs.
_BITS = 64
# Shares of delta that rounding may take, one after the other until the integers are private, and of
# a point inside all rows; and the least probability to spare, which floats lose.
_SPARE, _INSIDE, _LEAST_SPARE = (2e-9, 2e-8, 1e-6), (1e-12, 1e-10, 1e-8, 1e-6), 1e-16
# Distances times shifts of noise without an end that is solved for.
_MOST_ENDLESS = 1_000_000
# Distances that a frame shows of noise without an end, and the mass that it may leave out.
_SHOWN, _LEFT_OUT = 100_000, 1e-9
# Pairs of probabilities of which a dominating pair is made, at most.
_PAIRS = 2_000_000


@dataclass(frozen=True, eq=False)
class Noise(Setting):
    """The noise Z for integers, such as counts, that has the least mean loss.

    Any integer x is released as x + Z. Neighbouring data sets have integers that differ by at most
    the sensitivity D. Let p(x) = Pr[Z = x], let c be the ``loss``, and let s_d(x) be a variable
    that is at least p(x) - e^epsilon p(x + d):

        minimise   sum_x c(|x|) p(x)
        subject to sum_x p(x) = 1                                                      "sum"
                   p(x) <= e^epsilon p(x + d) + s_d(x),  sum_x s_d(x) <= delta         "privacy"
                   p >= 0,  s >= 0                 for all integers x and d = 1, ..., D

    The noise is symmetric, p(x) = p(-x). Nothing is lost by that: Z and -Z have the same loss, and
    the average of their two distributions is as private. The integers have no end here: the
    design's ``value`` is the mean loss over all of them, and no private noise on the integers has a
    mean loss below its ``bound``. Two cases have a closed form. For delta = 0 the best noise is a
    discrete staircase: p falls by the factor e^epsilon once in every D integers, and is constant
    between these steps. For delta > 0 and sensitivity 1 there
    is an N such that p(x) = p(0) e^(-epsilon |x|) for |x| < N, p(N) = p(-N) is at most
    p(0) e^(-epsilon N), and p is 0 beyond N. All other settings of one release are solved
    numerically. In our tests, value and bound then differed by at most 1e-7 of the value for the
    losses "absolute" and "squared", and by at most 5e-3 for lists, mostly far less; the design's
    ``gap`` is the difference.

    Attributes:
        sensitivity: D, in 1..1000, with D <= 10,000 * epsilon; at most 100 if delta is above 0.
        epsilon: in [0.001, 10], in nats.
        delta: 0, or in [1e-15, 0.5].
        loss: c: "absolute" (|x|), "squared" (x^2), or a list c(0), ..., c(m), at least 0 and never
            falling, with c(x) = c(m) beyond m; on the command line separated by commas, such as
            0,1, or a file.
        releases: k, in 1..1,000. Above 1, epsilon and delta hold for k released integers together,
            each of which may depend on the outputs before; sensitivity must be 1 and delta at least
            1e-12. Such a design is the best that a search finds; it has no ``bound``.

    Example:
        >>> import dpopt
        >>> noise = dpopt.design(dpopt.Noise(sensitivity=1, epsilon=1.0, delta=1e-3))
        >>> round(noise.value, 6), noise.private, noise.pmf([0, 1]).round(4).tolist()
        (0.842984, True, [0.4627, 0.1702])
    """

    kind: ClassVar[str] = "noise"

    sensitivity: int
    epsilon: float
    delta: float = 0.0
    loss: Numbers | Literal["absolute", "squared"] = "absolute"
    releases: int = 1

    def __post_init__(self) -> None:
        sensitivity = _checks.integer("sensitivity", self.sensitivity, 1, 1000)
        epsilon = _checks.real("epsilon", self.epsilon, 0.001, 10.0)
        delta = _checks.real("delta", self.delta, 0.0, 0.5)
        if 0 < delta < 1e-15:
            raise ParameterError(f"delta is {digits(delta)}; it must be 0 or at least 1e-15.")
        if delta > 0 and sensitivity > 100:
            raise ParameterError(
                f"sensitivity is {sensitivity}; it must be at most 100 where delta is above 0."
            )
        if sensitivity > 10_000 * epsilon:
            raise ParameterError(
                f"sensitivity is {sensitivity}; it must be at most 10,000 times epsilon, which is "
                f"{digits(epsilon)}."
            )
        self.keep(
            sensitivity=sensitivity,
            epsilon=epsilon,
            delta=delta,
            loss=_checked_loss(self.loss),
            releases=_checks.integer("releases", self.releases, 1, 1000),
        )
        if self.releases > 1 and (sensitivity > 1 or delta < 1e-12):
            what = f"sensitivity is {sensitivity} and delta {digits(delta)}"
            raise ParameterError(
                f"releases is {self.releases}, and {what}; several releases are for sensitivity 1 "
                "and a delta from 1e-12. For delta = 0 divide epsilon by their number."
            )

    @classmethod
    def example(cls) -> Self:
        """Return noise for numbers that change by up to 3."""
        return cls(sensitivity=3, epsilon=1.0, delta=0.05, loss="squared")

    @classmethod
    def example_neighbours(cls) -> list[tuple[int, int]]:
        """Return integers at most 3 apart."""
        return [(0, 1), (-1, 1), (0, 3), (2, 0)]

    @property
    def summary(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The variance; for several releases also how it was found, and candidates if computed."""
        if self.releases == 1:
            return ("variance",)
        return ("variance", "search", *(CANDIDATES if "_candidates" in vars(self) else ()))

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) between integers that differ by at most the sensitivity."""
        return Guarantee(self.epsilon, self.delta)

    def losses_of(self, distance: IntVector) -> Vector:
        """Return c of distances |x| >= 0, as floats."""
        if isinstance(self.loss, str):
            floats = distance.astype(float)
            return floats if self.loss == "absolute" else floats * floats
        listed = np.asarray(self.loss)
        return listed[np.minimum(distance, listed.size - 1)]

    # --- solvers ---

    def problem(self) -> Problem:
        """Return the finite program of `dpopt.noise.program`, all rows written out."""
        program = self._program()
        if (size := program.count) > WRITTEN:
            raise ParameterError(
                f"sensitivity is {self.sensitivity}; the program has {size:,} rows, and is "
                f"written out up to {WRITTEN:,}. Leave out backend."
            )
        return program.problem()

    def _program(self) -> Program:
        """Return the program of one release on the first grid."""
        if self.releases > 1:
            raise ParameterError(
                f"releases is {self.releases}; for several it is no linear program. Leave out "
                "backend."
            )
        return Program(self._grid(0), self.delta, self.losses_of)

    def _grid(self, doublings: int) -> Grid:
        return Grid.of(self.sensitivity, self.epsilon, self.delta, doublings)

    def _found(
        self, backend: str | Backend | None, time_limit: float | None
    ) -> tuple[NoiseTable, Multipliers, Solution | None]:
        """Return the optimum for a little less than delta, its integers private, and its proof."""
        refused: NotPrivateError | None = None
        for share in _SPARE:
            spare = max(share * self.delta, min(_LEAST_SPARE, self.delta / 10))
            found = optimum(self._grid, self.delta, spare, self.losses_of, backend, time_limit)
            try:
                table = self._private(found.program, found.point.z)
            except NotPrivateError as error:
                refused = error
            else:
                return table, found.multipliers, found.solution
            if backend is None and not isinstance(self.loss, str):
                endless = found.program.endless(np.size(self.loss))
                if endless.grid.last * self.sensitivity <= _MOST_ENDLESS:
                    with suppress(NotPrivateError):
                        table = self._private(endless, endless.solved(time_limit).z)
                        return table, found.multipliers, found.solution
        raise cast(NotPrivateError, refused)

    def _private(self, program: Program, z: Vector) -> NoiseTable:
        """Return a point of a program as private noise, mixed with a point inside all rows."""
        refused: NotPrivateError | None = None
        for inside, ended in product(_INSIDE, (True, False)):
            table = self._weighted(program.pmf(z, inside, ended))
            try:
                self.judge(table)
            except NotPrivateError as error:
                refused = error
            else:
                return table
        raise cast(NotPrivateError, refused)

    def searched(
        self, backend: str | Backend | None, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Design | None:
        """Return the design of a solver, by default where there is no closed form."""
        del stop_at_gap
        closed = self.delta == 0 or self.sensitivity == 1
        if self.releases > 1 or (closed and backend is None):
            return None
        if backend is not None:
            self.problem()  # refused where it cannot be written out
        table, multipliers, solution = self._found(backend, time_limit)
        if not closed:
            vars(self)["_multipliers"] = multipliers
        return made(self, table, solution)

    def closed_form(self) -> NoiseTable | None:
        """Return the staircase for delta = 0, the truncated geometric noise for sensitivity 1."""
        if self.releases > 1:
            return min(self._candidates.values(), key=self.value)
        if self.delta == 0:
            step, _ = best_step(self.sensitivity, self.epsilon, self.losses_of)
            ratio = self._ratio
            above, below = ratio.as_integer_ratio()
            weights = (below,) * step + (above,) * self.sensitivity
            return NoiseTable(weights, ratio, self.sensitivity)
        if self.sensitivity == 1:
            bits = _BITS + math.ceil(-math.log2(self.delta))
            weights = truncated_geometric(self.epsilon, self.delta, bits)
            return NoiseTable(weights, Fraction(0), 1)
        return None

    @cached_property
    def _candidates(self) -> dict[str, NoiseTable]:
        """Noise for several releases, by name."""
        pmfs = candidates(self.releases, self.epsilon, self.delta, self.losses_of)
        return {name: self._weighted(np.append(pmf, 0.0)) for name, pmf in pmfs.items()}

    @property
    def _ratio(self) -> Fraction:
        """The ratio of periods, just above e^-epsilon."""
        return Fraction(math.ceil(Fraction(1 << 62) / exp_lower(self.epsilon)), 1 << 62)

    def point(self, solution: Solution) -> Vector:
        """Return the variables "p" of `problem`."""
        return solution["p"]

    def table(self, point: Vector) -> NoiseTable:
        """Return the variables "p" of `problem` as private noise."""
        program = self._program()
        if point.shape != program.masses.shape:
            raise ParameterError(
                f"point has shape {point.shape}; it must be {program.masses.shape}, the variables "
                "p of the program."
            )
        return self._private(program, point)

    def _weighted(self, probabilities: Vector) -> NoiseTable:
        """Return p(0), ..., p(N) and the ratio beyond as integers."""
        pmf, ratio, bits = probabilities[:-1], float(probabilities[-1]), 62
        if self.delta == 0:
            pmf = pmf[: self._grid(0).head + 1]
        else:
            bits = _BITS + math.ceil(math.log2(pmf.size / self.delta))
        weights = [round(Fraction(p) * (1 << bits)) for p in pmf.tolist()]
        if ratio:
            above = Fraction(math.ceil(Fraction(ratio) * (1 << 62)), 1 << 62)
            exact = self._ratio if self.delta == 0 else max(self._ratio, above)
            return NoiseTable(tuple(weights), exact, self.sensitivity)
        last = max(self.sensitivity, *(x for x, weight in enumerate(weights) if weight))
        return NoiseTable(tuple(weights[: last + 1]), Fraction(0), self.sensitivity)

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the exact proof of a table: both directions of every shift up to D."""
        if not isinstance(table, NoiseTable) or table.period != self.sensitivity:
            raise ParameterError(f"table must be noise in periods of {self.sensitivity}.")
        if self.releases > 1:
            return self._composed(table)
        try:
            verdict = decided(table, self.epsilon, self.delta)
        except verify.Refused as refusal:
            excess = float(refusal.missed)
            raise NotPrivateError(
                f"noise is not ({digits(self.epsilon)}, {digits(self.delta)})-DP between 0 and "
                f"{refusal.at}: delta is exceeded by {excess:.3g}.",
                inputs=("0", str(refusal.at)),
                output="an event",
                excess=excess or math.ulp(0.0),
            ) from None
        return Certificate(
            claim=f"noise on all integers is private for shifts up to {self.sensitivity}",
            guarantee=self.guarantee,
            constraints=verdict.rows,
            slack=Fraction(verdict.slack),
            tightest=f"integers {verdict.at} apart",
        )

    def output_pairs(self, table: NoiseTable) -> list[tuple[Vector, Vector]]:
        """Return the distributions of 0 + Z and d + Z for each shift d, over all outputs."""
        if table.ratio:
            raise ParameterError("noise has a ratio above 0; its outputs are not finitely many.")
        pmf = table.probabilities
        symmetric = np.concatenate([pmf[:0:-1], pmf])
        shifts = [np.zeros(d) for d in range(1, self.sensitivity + 1)]
        return [(np.append(symmetric, zeros), np.append(zeros, symmetric)) for zeros in shifts]

    def _composed(self, table: NoiseTable) -> Certificate:
        """Return the proof that k releases together are private, each with a shift by one."""
        if table.ratio:
            raise ParameterError("table has a ratio above 0; noise of several releases must end.")
        spent = certified_delta(table.probabilities, self.releases, self.epsilon)
        claim = (
            f"{self.releases} integers with noise are private together, also if they depend on "
            "earlier outputs"
        )
        together = Enclosed(0.0, spent), self.releases, self.guarantee, self.releases
        return certified_together(claim, *together)

    # --- numbers ---

    def value(self, table: NoiseTable) -> float:
        """Return the mean loss, tails included."""
        loss = self.loss if isinstance(self.loss, str) else np.asarray(self.loss).tolist()
        return float(table.exact.mean(loss))

    def report(self, table: NoiseTable) -> Mapping[str, Callable[[], Any]]:
        """Return the distribution and its moments.

        - pmf: a function from integers, of any shape, to their probabilities Pr[Z = x].
        - variance: E Z^2; mean_absolute: E |Z|, tails included.
        - support: the largest |Z|; infinite for endless noise.
        - gaussian, laplace, found: for several releases, the mean loss of each candidate.
        - search: likewise, "found, not proved optimal".
        """
        names = CANDIDATES if self.releases > 1 else ()
        several: dict[str, Callable[[], Any]] = {
            name: partial(lambda each: self.value(self._candidates[each]), name) for name in names
        }
        if several:
            several["search"] = lambda: "found, not proved optimal"
        return {
            **several,
            "pmf": lambda: table.pmf,
            "variance": lambda: float(table.exact.mean("squared")),
            "mean_absolute": lambda: float(table.exact.mean("absolute")),
            "support": lambda: math.inf if table.ratio else table.last,
        }

    @cached_property
    def _multipliers(self) -> Multipliers:
        """Return multipliers that prove the optimum, from the closed form where there is one."""
        if self.delta == 0:
            return staircase_multipliers(self.sensitivity, self.epsilon, self.losses_of)
        if self.sensitivity == 1:
            return geometric_multipliers(self.epsilon, self.delta, self.losses_of)
        return self._found(None, None)[1]

    def bound(self, table: NoiseTable, solution: Solution | None) -> float | None:
        """Return a lower bound on the mean loss of all noise on Z; None for several releases."""
        del table, solution
        return self._multipliers.bound if self.releases == 1 else None

    def _proof_size(self, table: NoiseTable) -> int:
        """Return about how many coefficients the rows of a proof have."""
        return len(table.weights) * self.sensitivity

    def _proof_rows(self, table: NoiseTable) -> Sequence[Name]:
        """Return one row for each shift: the sum with the multipliers of `_proof_data`."""
        del table
        multipliers = self._multipliers
        shifts = {*multipliers.shift.tolist(), *np.flatnonzero(multipliers.ends).tolist()}
        return [("privacy", shift) for shift in sorted(shifts)]

    def _proof_data(self, table: NoiseTable) -> Json:
        """Return the multipliers of each shift, and of all positions beyond the last."""
        multipliers, rows = self._multipliers, list[list[Any]]()
        for _, d in self._proof_rows(table):
            of = multipliers.shift == d
            rows.append([d, multipliers.position[of].tolist(), multipliers.value[of].tolist()])
        return {"last": multipliers.last, "rows": rows, "ends": multipliers.ends[1:].tolist()}

    def dominating(self, table: NoiseTable) -> DominatingPair:
        """Return the tight dominating pair of one release over all shifts, in exact integers."""
        size = 2 * len(table.weights) * self.sensitivity
        if size > _PAIRS:
            raise ParameterError(
                f"sensitivity is {self.sensitivity} for {len(table.weights)} distances; a "
                f"dominating pair is made of at most {_PAIRS:,} pairs of probabilities."
            )
        scale = table.exact.total
        shifts = range(1, self.sensitivity + 1)
        curves = (verify.curve_of(shifted(table, shift)) for shift in shifts)
        return DominatingPair.of_points(chain.from_iterable(curves), scale)

    def spent(self, table: NoiseTable, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon for a delta, or the least delta for an epsilon."""
        pair, inputs = self.dominating(table), (0, self.sensitivity)
        if epsilon is not None:
            least = pair.delta(epsilon)
            return Least("delta", least, least, epsilon, inputs, ())
        target = 0.0 if delta is None else delta
        if pair.infinite_mass > target:
            return Least("epsilon", math.inf, math.inf, target, inputs, ())
        least = least_float(lambda e: pair.delta(e) <= target, 0.0)
        below = math.nextafter(least, 0.0)
        return Least("epsilon", below, least, target, inputs, ())

    # --- releases ---

    def drawn(self, table: NoiseTable, data: Any, source: Source) -> Any:  # noqa: ANN401
        """Return an integer plus noise, or an array of integers with fresh noise for each."""
        return added(data, table, source)

    def release_count(self, table: NoiseTable, data: Any) -> int:  # noqa: ANN401
        """Return the number of integers."""
        del table
        return int(integers(data).size)

    @cached_property
    def _reach(self) -> int:
        """An integer above every output of |x| <= D, the same for all tables."""
        return self._grid(DOUBLINGS).last + 2 * self.sensitivity

    def output_weights(self, table: NoiseTable, data: Any) -> list[int]:  # noqa: ANN401
        """Return the distribution of the output for |x| <= D: of -R, ..., R, R beyond them all."""
        value, reach = integers(data), self._reach
        if value.ndim or abs(int(value)) > self.sensitivity:
            raise ParameterError(
                f"data must be an integer in -{self.sensitivity}..{self.sensitivity}; others have "
                "the same distribution, shifted."
            )
        if table.ratio or table.last + self.sensitivity > reach:
            raise ParameterError(f"noise is endless, or ends beyond {reach}; use pmf.")
        distances = (abs(y - int(value)) for y in range(-reach, reach + 1))
        return [table.weights[x] if x <= table.last else 0 for x in distances]

    def output(self, place: int) -> int:
        """Return the integer at a place of `output_weights`."""
        return place - self._reach

    def plain(self, table: NoiseTable) -> Json:
        """Return the integers as text for a file."""
        return table.plain()

    def read(self, plain: Any) -> NoiseTable:  # noqa: ANN401
        """Return the table of a file, checked in form."""
        return NoiseTable.read(self.sensitivity, plain)

    def columns(self, table: NoiseTable) -> Mapping[str, Sequence[Any]]:
        """Return noise and probability; of noise without an end, all but a billionth of it."""
        last = table.last
        if table.ratio:
            periods = math.ceil(math.log(_LEFT_OUT) / math.log(float(table.ratio)))
            last = min(last + table.period * periods, _SHOWN)
        x = np.arange(-last, last + 1)
        return {"noise": x.tolist(), "probability": table.pmf(x).tolist()}

    def draw(self, axes: Axes, table: NoiseTable, label: str | None = None) -> None:
        """Draw the probabilities of all but a thousandth of the noise."""
        columns = self.columns(table)
        x, p = np.array(columns["noise"]), np.array(columns["probability"])
        inside = np.cumsum(p) > 0.0005  # on either side
        shown = np.abs(x) <= max(1, -int(x[inside][0]))
        axes.plot(x[shown], p[shown], drawstyle="steps-mid", label=label)
        axes.set_xlabel("noise")
        axes.set_ylabel("probability")
        axes.set_ylim(bottom=0.0)


def _checked_loss(loss: Any) -> Any:  # noqa: ANN401
    """Return a loss: one of two words, or numbers of at least 0 that never fall."""
    if isinstance(loss, str):
        return _checks.choice("loss", loss, ("absolute", "squared"))
    listed = _checks.floats("loss", loss)
    if listed.ndim != 1 or not 2 <= listed.size <= 100_000:
        raise ParameterError(
            f"loss has shape {listed.shape}; it must be absolute, squared, or 2 to 100,000 numbers."
        )
    if not np.all((listed >= 0) & (listed <= 1e100)):
        raise ParameterError("loss must hold numbers from 0 to 1e100.")
    if np.any(np.diff(listed) < 0) or listed[0] == listed[-1]:
        raise ParameterError("loss falls, or is constant; a loss c(0), c(1), ... must rise.")
    return frozen(listed)

"""An interior-point method for a population's kernel, which knows how its program is built.

The program couples the columns of K by n rows only, the sums; all others, those of the users too,
are of one column each. So a step takes, beside n systems of n + 1 unknowns, the n matrices
sum_u d_uj p_u p_u^T, whatever the number of users.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._progress import advance
from dpopt._types import Matrix, Vector
from dpopt.lp.backends import RawSolution, Session, get_backend
from dpopt.lp.model import Model, Rows
from dpopt.lp.solution import Status

_STEPS = 200
_CLOSE, _KEPT = 1e-11, 1e-9
_TASK = "kernel of a population"
_BACK = 0.995
_REFINED = 3


@dataclass(frozen=True, eq=False)
class Population:
    """What the method is given; see `PopulationSetting` for the program.

    Attributes:
        masses: q, shape (n,).
        users: p_u, shape (users, n).
        weights: w_u, shape (users,), summing to 1.
        shrink: e^-epsilon.
        kept: least K_ii.
        start: a kernel that keeps q, shape (n, n).
    """

    masses: Vector
    users: Matrix
    weights: Vector
    shrink: float
    kept: float
    start: Matrix


@dataclass(frozen=True)
class ByColumns:
    """A backend for one population: this method first, then HiGHS.

    Attributes:
        population: whose program is handed to it, in the shifted form of `KernelSetting`.
    """

    population: Population

    @property
    def name(self) -> str:
        """Shown in results."""
        return "interior point by columns"

    @property
    def tolerance(self) -> float:
        """That of HiGHS."""
        return get_backend("highs").tolerance

    def load(self, model: Model) -> ByColumnsSession:
        """Keep the model; it is handed to HiGHS only if that is needed."""
        return ByColumnsSession(self.population, model)


class ByColumnsSession:
    """The program, solved from its structure or by HiGHS."""

    def __init__(self, population: Population, model: Model) -> None:
        self._population, self._model = population, model
        self._highs: Session | None = None

    @property
    def ways(self) -> int:
        """The method of this module, and the ordinary way of HiGHS."""
        return 2

    def append(self, rows: Rows) -> None:
        """Add rows, which HiGHS alone can take."""
        self._other().append(rows)

    def run(self, time_limit: float | None, *, way: int = 0) -> RawSolution:
        """Solve in one of the two ways."""
        if way:
            return self._other().run(time_limit)
        return _Method(self._population).run(self._model, time_limit)

    def _other(self) -> Session:
        if self._highs is None:
            self._highs = get_backend("highs").load(self._model)
        return self._highs


class _Method:
    """Mehrotra's predictor and corrector, from a point that need not satisfy the rows.

    Inequalities, each with a slack and a multiplier, in this order: K - e^-epsilon w >= 0 and
    w - K >= 0 for the ceilings w, K_jj >= kept, s >= 0, and s + p K >= p. Letters that a user does
    not have are given weight 0 there, and multipliers 0.
    """

    def __init__(self, given: Population) -> None:
        self.given = given
        n = given.masses.size
        self.has = given.users > 0
        self.cost = np.where(self.has, given.weights[:, None], 0.0)
        self.kernel = given.start.copy()
        self.ceiling = (self.kernel.max(axis=0) + self.kernel.min(axis=0) / given.shrink) / 2
        lost = given.users - given.users @ self.kernel
        room = 0.1 / n
        short = np.where(self.has, np.maximum(lost, 0.0) + room, 1.0)
        sides = self.sides(self.kernel, self.ceiling, short)
        self.slacks = [np.maximum(side, room) for side in sides]
        self.multipliers = [
            *(np.full((n, n), 1.0 / n) for _ in range(2)),
            np.full(n, 1.0 / n),
            self.cost / 2,
            self.cost / 2,
        ]
        self.sums, self.invariance = np.zeros(n), np.zeros(n)
        self.pairs = 2 * n * n + n + 2 * int(self.has.sum())

    def sides(self, kernel: Matrix, ceiling: Vector, short: Matrix) -> tuple[Any, ...]:
        """Return what should equal the slacks."""
        given = self.given
        return (
            kernel - given.shrink * ceiling,
            ceiling - kernel,
            np.diagonal(kernel) - given.kept,
            short,
            np.where(self.has, short + given.users @ kernel - given.users, 1.0),
        )

    def _gap(self) -> float:
        """Return the mean product of a slack and its multiplier."""
        pairs = zip(self.slacks, self.multipliers, strict=True)
        return sum(float(np.sum(s * m)) for s, m in pairs) / self.pairs

    def run(self, model: Model, time_limit: float | None) -> RawSolution:
        """Return the last point and its multipliers; the loop around it judges them."""
        start, step = time.perf_counter(), 0
        for step in range(_STEPS):
            advance(_TASK, step, None, f"gap {self._gap() * self.pairs:.1e}")
            if self._gap() * self.pairs < _CLOSE and self._missed() < _KEPT:
                break
            if time_limit is not None and time.perf_counter() - start > time_limit:
                return RawSolution(Status.TIME_LIMIT, None, None, step, "by columns")
            before, missed = dict(vars(self)), self._missed()
            try:
                on = self._step()
            except np.linalg.LinAlgError:
                on = False
            if self._missed() > max(_KEPT, missed):
                # Near the end rounding can spoil a step: the point before it stands.
                vars(self).update(before)
                on = False
            if not on:
                break
        advance(_TASK, step, step)
        return RawSolution(Status.OPTIMAL, *self._written(model), step, "by columns")

    def _missed(self) -> float:
        """Return by how much rows and columns are missed."""
        sides = self.sides(self.kernel, self.ceiling, self.slacks[3])
        parts = [s - side for s, side in zip(self.slacks, sides, strict=True)]
        parts += [*self.missing(), *self.gradients()]
        return max(float(np.max(np.abs(part))) for part in parts)

    def missing(self) -> tuple[Vector, Vector]:
        q = self.given.masses
        return 1.0 - self.kernel.sum(axis=1), q - q @ self.kernel

    def gradients(self) -> tuple[Matrix, Vector, Matrix]:
        """Return minus the derivatives of the Lagrangian by K, w and s."""
        given, (low, high, diagonal, least, lost) = self.given, self.multipliers
        by_kernel = low - high + given.users.T @ lost + self.sums[:, None]
        by_kernel = by_kernel + np.outer(given.masses, self.invariance)
        by_kernel[np.diag_indices(given.masses.size)] += diagonal
        by_ceiling = high.sum(axis=0) - given.shrink * low.sum(axis=0)
        return by_kernel, by_ceiling, least + lost - self.cost

    def _step(self) -> bool:
        """Take one step; False if none leads on."""
        given = self.given
        n, p, shrink = given.masses.size, given.users, given.shrink
        (v, r, g, s, t), (a, b, c, z, y) = self.slacks, self.multipliers
        low, high, most = a / v, b / r, c / g
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(self.has, 1.0 / (s / z + t / y), 0.0)
        # K = c w + u, and u is what is small of K - e^-epsilon w and K - w: nothing cancels.
        share = np.where(low > high, shrink, 1.0).T
        systems = np.zeros((n, n + 1, n + 1))
        for j in range(n):
            systems[j, :n, :n] = (p * scale[:, j : j + 1]).T @ p
        places = np.arange(n)
        systems[places, places, places] += most
        mixed = np.einsum("jab,jb->ja", systems[:, :n, :n], share)
        systems[:, n, n] = np.sum(mixed * share, axis=1)
        systems[:, n, n] += np.sum(
            low.T * (share - shrink) ** 2 + high.T * (1 - share) ** 2, axis=1
        )
        mixed += low.T * (share - shrink) - high.T * (1 - share)
        systems[:, :n, n] = systems[:, n, :n] = mixed
        systems[:, places, places] += (low + high).T
        solver = _Solver(self, scale, share, systems)
        mean = self._gap()
        products = [slack * m for slack, m in zip(self.slacks, self.multipliers, strict=True)]
        predicted = solver.direction([-product for product in products])
        lengths = self._lengths(predicted)
        after = sum(
            float(np.sum((x + lengths[0] * dx) * (m + lengths[1] * dm)))
            for x, dx, m, dm in zip(
                self.slacks, predicted.slacks, self.multipliers, predicted.multipliers, strict=True
            )
        )
        centre = (after / self.pairs / mean) ** 3 * mean
        wanted = [
            centre - product - dx * dm
            for product, dx, dm in zip(
                products, predicted.slacks, predicted.multipliers, strict=True
            )
        ]
        found = solver.direction(wanted)
        if not found.finite:
            return False
        primal, dual = (_BACK * length for length in self._lengths(found))
        self.kernel = self.kernel + primal * found.kernel
        self.ceiling = self.ceiling + primal * found.ceiling
        self.slacks = [x + primal * dx for x, dx in zip(self.slacks, found.slacks, strict=True)]
        self.multipliers = [
            m + dual * dm for m, dm in zip(self.multipliers, found.multipliers, strict=True)
        ]
        self.sums = self.sums + dual * found.sums
        self.invariance = self.invariance + dual * found.invariance
        return max(primal, dual) > 1e-6

    def _lengths(self, found: _Direction) -> tuple[float, float]:
        """Return how far slacks and multipliers can go before one of them is 0, at most 1."""
        return (
            min(1.0, _reach(self.slacks, found.slacks)),
            min(1.0, _reach(self.multipliers, found.multipliers)),
        )

    def _written(self, model: Model) -> tuple[Vector, Vector]:
        """Return the point and the multipliers in the order of the model."""
        shrink, (_, high, diagonal, _, lost) = self.given.shrink, self.multipliers
        kernel, users = self.kernel, self.given.users
        ceiling = np.clip(self.ceiling, kernel.max(axis=0), kernel.min(axis=0) / shrink)
        ceiling = np.minimum(ceiling, 1.0)
        missing = np.maximum(users - users @ kernel, 0.0)[self.has]
        values = {"ceiling": ceiling, "excess": kernel - shrink * ceiling, "shortfall": missing}
        duals = {
            "sums": self.sums,
            "privacy": -high,
            "invariance": self.invariance,
            "worst case": diagonal,
            "shortfalls": lost[self.has],
        }
        x, y = np.zeros(model.cost.size), np.zeros(model.rows.count)
        for name, part in model.variables.items():
            x[part] = values[name].ravel()
        for name, part in model.blocks.items():
            y[part] = duals[name].ravel()
        return x, y


@dataclass(frozen=True, eq=False)
class _Direction:
    """Where a step goes, by the names of `_Method`."""

    kernel: Matrix
    ceiling: Vector
    sums: Vector
    invariance: Vector
    slacks: list[npt.NDArray[np.float64]]
    multipliers: list[npt.NDArray[np.float64]]

    @property
    def finite(self) -> bool:
        """Whether all of it are numbers."""
        return bool(np.all(np.isfinite(self.kernel)) and np.all(np.isfinite(self.sums)))


class _Solver:
    """Newton's equations at a point, with what they share for several right-hand sides."""

    def __init__(
        self, at: _Method, scale: Matrix, share: Matrix, systems: npt.NDArray[np.float64]
    ) -> None:
        self.at, self.scale, self.share, self.systems = at, scale, share, systems
        n, q = at.given.masses.size, at.given.masses
        # Scaled to a diagonal of 1, the systems keep their digits near the end.
        unit = 1 / np.sqrt(np.einsum("jaa->ja", systems))
        scaled = systems * unit[:, :, None] * unit[:, None, :]
        inverse = np.linalg.inv(scaled) * unit[:, :, None] * unit[:, None, :]
        self.inverse = inverse
        self.by_sums = inverse[:, :, :n] + inverse[:, :, n:] * share[:, None, :]
        self.by_mass = self.by_sums @ q
        own = self._kernel(self.by_mass)
        self.moved, self.own = own, own @ q
        # What the sums leave, once the rows of each column keep its mass; q is in its kernel.
        schur = self.by_sums[:, :n].sum(axis=0) + np.einsum("ja,jb->ab", share, self.by_sums[:, n])
        schur = schur - own.T @ (own / self.own[:, None])
        self.schur = schur + np.trace(schur) / n * np.outer(q, q) / (q @ q)

    def _kernel(self, columns: Matrix) -> Matrix:
        """Return the columns of K, shape (n, n), of u and w, shape (n, n + 1)."""
        return columns[:, :-1] + self.share * columns[:, -1:]

    def _solved(self, right: Matrix, sums: Vector, masses: Vector) -> tuple[Matrix, Vector, Vector]:
        """Return columns with their ceilings, shape (n, n + 1), and the multipliers' steps."""
        n, q = sums.size, self.at.given.masses
        columns, by_sums, by_mass = np.zeros_like(right), np.zeros(n), np.zeros(n)
        for _ in range(_REFINED):
            # What is still missing, then its own solution on top.
            pull = by_sums + np.outer(by_mass, q)
            short = right - np.einsum("jab,jb->ja", self.systems, columns)
            short += np.column_stack([pull, np.sum(self.share * pull, axis=1)])
            plain = np.einsum("jab,jb->ja", self.inverse, short)
            kernel = self._kernel(columns + plain)
            due = masses - kernel @ q
            missing = sums - kernel.sum(axis=0) - (due / self.own) @ self.moved
            more = np.linalg.lstsq(self.schur, missing, rcond=None)[0]
            more_mass = (due - self.moved @ more) / self.own
            columns = columns + plain + self.by_sums @ more + self.by_mass * more_mass[:, None]
            by_sums, by_mass = by_sums + more, by_mass + more_mass
        return columns, by_sums, by_mass

    def direction(self, wanted: list[npt.NDArray[np.float64]]) -> _Direction:
        """Return the step after which slacks times multipliers change as wanted, to first order."""
        at, given = self.at, self.at.given
        n, p, shrink = given.masses.size, given.users, given.shrink
        (v, r, g, s, t), (a, b, d, z, y) = at.slacks, at.multipliers
        sides = at.sides(at.kernel, at.ceiling, s)
        rv, rr, rg, rs, rt = (x - side for x, side in zip(at.slacks, sides, strict=True))
        by_kernel, by_ceiling, by_short = at.gradients()
        low, high, most = a / v, b / r, d / g
        below, above = wanted[0] / v + low * rv, wanted[1] / r + high * rr
        with np.errstate(divide="ignore", invalid="ignore"):
            # ds = (wanted - s dz) / z + rs with dz = -by_short - dy.
            moved = (wanted[3] + s * by_short) / z - rs
            lost = np.where(at.has, wanted[4] / y + rt - moved, 0.0)
        right = by_kernel + p.T @ (self.scale * lost)
        right[np.diag_indices(n)] += wanted[2] / g + most * rg
        c = self.share.T
        last = by_ceiling + np.sum(c * right + (c - shrink) * below + (1 - c) * above, axis=0)
        right += below - above
        found, d_sums, d_masses = self._solved(np.column_stack([right.T, last]), *at.missing())
        kernel, ceiling, small = self._kernel(found).T, found[:, n], found[:, :n].T
        dv, dr = small + (c - shrink) * ceiling - rv, (1 - c) * ceiling - small - rr
        dg = np.diagonal(kernel) - rg
        d_lost = self.scale * (lost - p @ kernel)
        d_short = np.where(at.has, -by_short - d_lost, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ds = np.where(at.has, (wanted[3] - s * d_short) / z, 0.0)
            dt = np.where(at.has, (wanted[4] - t * d_lost) / y, 0.0)
        multipliers = [
            (wanted[0] - a * dv) / v,
            (wanted[1] - b * dr) / r,
            (wanted[2] - d * dg) / g,
            d_short,
            d_lost,
        ]
        return _Direction(kernel, ceiling, d_sums, d_masses, [dv, dr, dg, ds, dt], multipliers)


def _reach(values: list[Any], steps: list[Any]) -> float:
    """Return the largest length of a step that leaves all values, which are above 0, at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # Of letters that a user does not have, a multiplier and its step are 0.
        fastest = max(
            float(np.fmax.reduce(-step / x, axis=None))
            for x, step in zip(values, steps, strict=True)
        )
    return 1 / fastest if fastest > 0 else np.inf

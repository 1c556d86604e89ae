"""The least variance of a linear query: a convex program over patterns, by column generation.

A row of the mechanism, Pr[output | letter] as a function of the letter, may be taken as theta s
with a pattern s in {1, e}^n, e = e^epsilon, theta >= 0: other rows are sums of such rows, and
splitting a row never loses information. With d_s = s . p, M = sum_s theta_s s s' / d_s, and G = W'W
the program is

    minimise   F(theta) = tr(M^-1 G)
    subject to sum_s theta_s s = 1,  theta >= 0,

which is convex, for M is linear in theta. With B = M^-1 G M^-1, q_s = s'B s / d_s is minus the
derivative of F by theta_s, and sum_s theta_s q_s = F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import scipy.linalg
from threadpoolctl import threadpool_limits

from dpopt._errors import SolverError
from dpopt._progress import advance
from dpopt._types import Matrix, Vector
from dpopt.lp.solution import Status

Patterns = npt.NDArray[np.bool_]
"""Shape (patterns, letters): where a pattern is e; it is 1 elsewhere."""

# Up to so many letters all patterns are in the program from the start, and priced one by one.
ALL, LISTED = 8, 16
# What the barrier may leave as a share of the variance; and of F, what it leaves where it can.
_RELATIVE, _LEAST = 1e-9, 1e-13
_MOST_ROUNDS, _MOST_STEPS = 400, 100
# How the barrier falls, and when a centre counts as found: largest change of a weight, as a share.
_SHRINK, _NEAR = 0.3, 0.05
# Patterns below both shares, of the median and of the largest weight, are left out.
_SLACK, _WEIGHTLESS = 50, 1e-4
# Starts of the search beyond `LISTED` letters: blends of B's largest eigenvectors.
_DIRECTIONS, _RANDOM = 12, 200


@dataclass(frozen=True)
class Optimum:
    """Weights of patterns, with what proves how good they are.

    Attributes:
        patterns: the present ones, shape (patterns, n).
        theta: their weights, above 0.
        multipliers: lambda of sum theta s = 1, shape (n,).
        prior: p, shape (n,): as given, or the worst.
        value: F(theta).
    """

    patterns: Patterns
    theta: Vector
    multipliers: Vector
    prior: Vector
    value: float


def rows_of(patterns: Patterns, ratio: float) -> Matrix:
    """Return patterns as rows of ones and e^epsilon, shape (patterns, n)."""
    return np.where(patterns, ratio, 1.0)


def information(rows: Matrix, prior: Vector) -> Matrix:
    """Return M = sum over rows r of r r' / (r . p), shape (n, n)."""
    return rows.T @ (rows / (rows @ prior)[:, None])


def squares(rows: Matrix, form: Matrix) -> Vector:
    """Return s' form s for each row s."""
    return np.einsum("ij,ij->i", rows @ form, rows)


def slopes(gram: Matrix, matrix: Matrix) -> tuple[float, Matrix]:
    """Return F = tr(M^-1 G) and B = M^-1 G M^-1.

    Raises:
        SolverError: if M is singular in floats.
    """
    inverse = inverted(matrix)
    return float(np.sum(inverse * gram)), inverse @ gram @ inverse


def every_pattern(n: int) -> Patterns:
    """Return all patterns but that of ones alone, which is a multiple of that of e alone."""
    return (np.arange(1, 1 << n)[:, None] >> np.arange(n)) & 1 > 0


def first_patterns(n: int) -> Patterns:
    """Return patterns to begin with: all, or intervals around a circle and thresholds."""
    if n <= ALL:
        return every_pattern(n)
    place = np.arange(n)
    # The lengths of intervals that the best mechanisms of simple queries use.
    lengths = sorted({1, 2, 3, n // 8, n // 4, n // 3, n // 2} - {0})
    intervals = [(place[None, :] - place[:, None]) % n < length for length in lengths]
    thresholds = place[None, :] <= place[:, None]
    return np.unique(np.concatenate([*intervals, thresholds, ~thresholds[:-1]]), axis=0)


class Priced(Protocol):
    """What patterns are priced by: those present, p, and the multipliers of sum theta s = 1."""

    @property
    def patterns(self) -> Patterns:
        """Those present."""
        ...

    @property
    def prior(self) -> Vector:
        """Shape (n,)."""
        ...

    @property
    def multipliers(self) -> Vector:
        """Shape (n,)."""
        ...


class Master:
    """The program over its present patterns, by a primal-dual interior point.

    Along the path theta_s z_s = barrier, with z_s = lambda . s - q_s the slack of a pattern. For
    the worst prior it is the saddle of F - sum_u p_u G_uu, convex in theta and concave in p.
    """

    def __init__(self, gram: Matrix, ratio: float, prior: Vector | None) -> None:
        n = len(gram)
        self.gram, self.ratio, self.worst = gram, ratio, prior is None
        self.prior = np.full(n, 1 / n) if prior is None else prior
        self.multipliers = np.zeros(n)
        self.patterns = first_patterns(n)
        self.rows = rows_of(self.patterns, ratio)
        # Such weights as make the mean of the sums 1; Newton's method makes each of them 1.
        self.theta = np.full(len(self.rows), n / self.rows.sum())
        self.barrier = self.value / len(self.rows)
        self.slack = self.barrier / self.theta
        self.prior_slack = np.full(n if self.worst else 0, n * self.barrier)

    @property
    def value(self) -> float:
        """F at the present weights."""
        return self.slopes()[0]

    def slopes(self) -> tuple[float, Matrix]:
        """Return F and B at the present weights."""
        return slopes(self.gram, information(self.rows * self.theta[:, None], self.prior))

    def add(self, patterns: Patterns) -> None:
        """Take further patterns, each with a weight that is small beside those present."""
        small = 0.1 * float(np.median(self.theta))
        self.patterns = np.concatenate([self.patterns, patterns])
        self.rows = rows_of(self.patterns, self.ratio)
        self.theta = np.concatenate([self.theta, np.full(len(patterns), small)])
        self.slack = np.concatenate([self.slack, np.full(len(patterns), self.barrier / small)])

    def prune(self) -> None:
        """Leave out patterns that weigh nothing."""
        theta = self.theta
        kept = (theta > np.median(theta) / _SLACK) | (theta > _WEIGHTLESS * theta.max())
        self.patterns, self.rows = self.patterns[kept], self.rows[kept]
        self.theta, self.slack = theta[kept], self.slack[kept]

    def centre(self) -> None:
        """Go to where theta z = barrier, and p w = barrier, up to a share of each."""
        for _ in range(_MOST_STEPS):
            x, y, self.multipliers = self._step()
            theta, p = self.theta, self.prior
            slack = self.barrier / theta - self.slack * x - self.slack
            longest = _longest(x, slack / self.slack)
            if self.worst:
                other = self.barrier / p - self.prior_slack * y - self.prior_slack
                longest = min(longest, _longest(y, other / self.prior_slack))
                self.prior = p * (1 + longest * y)
                self.prior_slack = self.prior_slack + longest * other
            self.theta = theta * (1 + longest * x)
            self.slack = self.slack + longest * slack
            off = np.max(np.abs(self.theta * self.slack / self.barrier - 1))
            if longest == 1.0 and max(off, np.max(np.abs(x))) < _NEAR:
                return
        raise SolverError("Newton's method found no centre.", Status.ITERATION_LIMIT)

    def _step(self) -> tuple[Vector, Vector, Vector]:
        """Return Newton's step as shares of theta and of p, and the multipliers."""
        s, theta, p, mu = self.rows, self.theta, self.prior, self.barrier
        d = s @ p
        # All of the derivatives are scaled by theta.
        t = s * (theta / d)[:, None]
        inverse = inverted(s.T @ t)
        sb = t @ inverse @ self.gram @ inverse
        q = np.einsum("ij,ij->i", sb, s)
        both = (s @ inverse @ s.T) * (sb @ t.T)
        m, n = s.shape
        size = m + (2 * n + 1 if self.worst else n)
        kkt, right = np.zeros((size, size)), np.zeros(size)
        kkt[:m, :m] = 2 * both
        kkt[np.arange(m), np.arange(m)] += theta * self.slack
        right[:m] = q + mu
        sides = slice(size - n, size)
        kkt[:m, sides] = s * theta[:, None]
        kkt[sides, :m] = kkt[:m, sides].T
        right[sides] = 1.0 - theta @ s
        if self.worst:
            at, total = slice(m, m + n), m + n
            c, kkt[at, at], rise = by_prior(s, p, both, q, self.gram)
            kkt[:m, at] = -2 * both @ c + q[:, None] * c
            kkt[at, :m] = kkt[:m, at].T
            kkt[np.arange(m, m + n), np.arange(m, m + n)] -= p * self.prior_slack
            right[at] = -rise - mu
            kkt[at, total] = kkt[total, at] = p
            right[total] = 1.0 - p.sum()
        found = _solved(kkt, right, m)
        prior_step = found[m : m + n] if self.worst else np.zeros(0)
        return found[:m], prior_step, found[sides]


def by_prior(
    rows: Matrix, p: Vector, both: Matrix, q: Vector, gram: Matrix
) -> tuple[Matrix, Matrix, Vector]:
    """Return derivatives of F - sum_u p_u G_uu by the logarithms of p.

    Args:
        rows: s, shape (rows, n).
        p: shape (n,).
        both: theta_s theta_t (s'M^-1 t)(s'B t) / (d_s d_t), shape (rows, rows).
        q: theta_s q_s, shape (rows,).
        gram: G.

    Returns:
        c_su, by what share of itself d_s changes; the curvature, shape (n, n), that of p itself
        left out; and the slope, shape (n,).
    """
    c = rows * p / (rows @ p)[:, None]
    return c, 2 * c.T @ (both @ c - q[:, None] * c), q @ c - p * np.diagonal(gram)


def _longest(*changes: Vector) -> float:
    """Return the longest step, at most 1, that leaves 5 % of every number."""
    return min(1.0, *(0.95 / max(0.95, float(np.max(-change))) for change in changes))


def inverted(matrix: Matrix) -> Matrix:
    """Return M^-1, symmetric.

    Raises:
        SolverError: if M is singular in floats.
    """
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        raise SolverError("the mechanism tells nothing of some letter.", Status.NUMERICAL) from None
    return (inverse + inverse.T) / 2


def _solved(kkt: Matrix, right: Vector, size: int) -> Vector:
    """Solve for a step: the first block, of so many rows, is positive definite."""
    try:
        factor = scipy.linalg.cho_factor(kkt[:size, :size], lower=True, check_finite=False)
        sides = np.column_stack([kkt[:size, size:], right[:size]])
        through = scipy.linalg.cho_solve(factor, sides, check_finite=False)
        small = kkt[size:, size:] - kkt[size:, :size] @ through[:, :-1]
        others = np.linalg.solve(small, right[size:] - kkt[size:, :size] @ through[:, -1])
    except np.linalg.LinAlgError:
        raise SolverError("a step of Newton's method failed.", Status.NUMERICAL) from None
    found = np.append(through[:, -1] - through[:, :-1] @ others, others)
    if not np.all(np.isfinite(found)):
        raise SolverError("a step of Newton's method failed.", Status.NUMERICAL)
    return found


@threadpool_limits.wrap(limits=1, user_api="blas")
def optimum(
    gram: Matrix,
    ratio: float,
    prior: Vector | None,
    *,
    relative_gap: float = _RELATIVE,
) -> Optimum:
    """Return weights of patterns of least F, and the multipliers that prove it nearly least.

    Args:
        gram: G = W'W, shape (n, n).
        ratio: e^epsilon, above 1.
        prior: p, above 0, summing to 1; None for the worst, where F - sum_u p_u G_uu counts.
        relative_gap: what the barrier may leave, as a share of F - sum_u p_u G_uu.

    Raises:
        SolverError: if it was not found.
    """
    n = len(gram)
    scale = float(np.trace(gram))
    master = Master(gram / scale, ratio, prior)
    search = Search(n, ratio)
    best, lowest = None, -np.inf
    for done in range(_MOST_ROUNDS):
        advance("patterns", done)
        try:
            master.centre()
        except SolverError:
            # Below some barrier a step is noise, at about 1e-12 of F.
            if best is None:
                raise
            return best
        room, (value, b) = len(master.theta) * master.barrier, master.slopes()
        # A share of the variance, which is far below F where epsilon is large.
        variance = value - float(master.prior @ np.diagonal(master.gram))
        enough = max(relative_gap * variance, _LEAST * value)
        if n > ALL:
            found = search.violated(b, master, 2 * room)
            if len(found):
                master.prune()
                master.add(_fresh(found, master.patterns))
                # A few that come late need no centre of their own, but for the last one.
                if len(found) < n and room > enough:
                    master.barrier *= _SHRINK
                continue
        if room <= enough:
            # Where the best M is nearly singular, the multipliers get worse again.
            proved = search.bound(master) if n <= LISTED else value
            if best is None or proved >= lowest:
                lowest = proved
                best = Optimum(
                    master.patterns,
                    master.theta,
                    scale * master.multipliers,
                    master.prior,
                    scale * value,
                )
            if n > LISTED or room <= _LEAST * value:
                return best
        master.barrier *= _SHRINK
    raise SolverError("the patterns did not settle.", Status.ITERATION_LIMIT)


def _fresh(found: Patterns, present: Patterns) -> Patterns:
    known = {row.tobytes() for row in present}
    return np.array([row for row in found if row.tobytes() not in known], dtype=bool).reshape(
        -1, present.shape[1]
    )


class Search:
    """Patterns s with s'B s / (s . p) above lambda . s: all of them, or by single flips.

    Args:
        n: number of letters.
        ratio: e^epsilon.
    """

    def __init__(self, n: int, ratio: float) -> None:
        self.ratio, self.rng = ratio, np.random.default_rng(n)
        self.all = every_pattern(n) if n <= LISTED else None
        self.most = max(100, 4 * n)

    def violated(self, b: Matrix, at: Priced, allowed: float) -> Patterns:
        """Return patterns that violate by more than is allowed, the most violated first."""
        candidates, excess = self.found(b, at)
        order = np.argsort(-excess)[: self.most]
        return candidates[order[excess[order] > allowed]]

    def found(self, b: Matrix, at: Priced) -> tuple[Patterns, Vector]:
        """Return patterns, all or where the best single flips lead, and the excess of each."""
        x = self._climbed(b, at) if self.all is None else self.all
        return x, excesses(rows_of(x, self.ratio), b, at)

    def bound(self, at: Master) -> float:
        """Return the bound of F that the multipliers prove once they pay for what is found."""
        value, b = at.slopes()
        patterns, excess = self.found(b, at)
        missed = float(np.max(excess / rows_of(patterns, self.ratio).sum(axis=1)))
        return 2 * value - float(at.multipliers.sum()) - len(at.prior) * max(0.0, missed)

    def _climbed(self, b: Matrix, at: Priced) -> Patterns:
        n = len(b)
        _, vectors = np.linalg.eigh(b)
        top = vectors[:, -_DIRECTIONS:]
        blends = self.rng.standard_normal((_RANDOM, top.shape[1])) @ top.T
        cuts = self.rng.standard_normal((_RANDOM, 1)) * np.std(blends)
        starts = np.concatenate([blends > cuts, at.patterns])
        x = np.unique(starts[starts.any(axis=1)], axis=0)
        step, p, lam = self.ratio - 1.0, at.prior, at.multipliers
        s = rows_of(x, self.ratio)
        sb, d, linear = s @ b, s @ p, s @ lam
        square = np.einsum("ij,ij->i", sb, s)
        diagonal = np.diagonal(b)
        active = np.arange(len(x))
        for _ in range(8 * n):
            sign = np.where(x[active], -step, step)
            flipped = (
                (square[active, None] + 2 * sign * sb[active] + sign**2 * diagonal)
                / (d[active, None] + sign * p)
                - linear[active, None]
                - sign * lam
            )
            best = flipped.argmax(axis=1)
            now = square[active] / d[active] - linear[active]
            better = flipped[np.arange(active.size), best] > now + 1e-15 * np.abs(now)
            if not np.any(better):
                break
            active, best = active[better], best[better]
            change = sign[better][np.arange(active.size), best]
            square[active] += 2 * change * sb[active, best] + change**2 * diagonal[best]
            sb[active] += change[:, None] * b[best]
            d[active] += change * p[best]
            linear[active] += change * lam[best]
            x[active, best] ^= True
        return np.unique(x[x.any(axis=1)], axis=0)


def excesses(rows: Matrix, b: Matrix, at: Priced) -> Vector:
    """Return s'B s / (s . p) - lambda . s for each row s."""
    return squares(rows, b) / (rows @ at.prior) - rows @ at.multipliers

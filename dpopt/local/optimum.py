"""The least variance of linear queries: a convex program over patterns, by column generation.

A row of the mechanism, Pr[output | category] as a function of the category, may be taken as theta s
with a pattern s in {1, e^epsilon}^n and theta >= 0: other rows are sums of such rows, and splitting
a row never loses information. With d_s = s . p, M = sum_s theta_s s s' / d_s, and G = W'W the
program is

    minimise   F(theta) = tr(M^-1 G)
    subject to sum_s theta_s s = 1,  theta >= 0,

which is convex, since M is linear in theta. With B = M^-1 G M^-1, q_s = s'B s / d_s is minus the
derivative of F by theta_s, and sum_s theta_s q_s = F.

If permutations of the categories leave the queries unchanged (`dpopt.local.symmetry`), a pattern
represents all its images, and M is block diagonal. The Hessian of F is a sum of
r = sum_b n_b (n_b + 1) / 2 squares, with n_b the sizes of the blocks: with M^-1 = C C' and
B = C diag(b) C' in a block, and y = C's,

    (s'M^-1 t)(s'B t) = sum_{i <= j} w_ij (y_i y_j)(s) (y_i y_j)(t),  w_ii = b_i, w_ij = b_i + b_j,

so that a Newton step takes time r^2 (patterns + r), linear in the number of patterns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg

from dpopt._errors import SolverError
from dpopt._progress import advance
from dpopt._threads import one_blas_thread
from dpopt._types import Matrix, Vector
from dpopt.local.symmetry import Symmetry, centred
from dpopt.lp.solution import Status

Patterns = npt.NDArray[np.bool_]
"""Shape (patterns, categories): True where a pattern is e^epsilon, False where it is 1."""

# Categories up to which the program has all patterns from the start, or prices all in each round.
ALL, LISTED = 8, 20
# Categories in the lower half of a pattern, which is tabulated.
_LOW = 10
# Duality gaps: the default target, relative to the variance, and the smallest attempted, relative
# to F.
_RELATIVE, _LEAST = 1e-9, 1e-13
# Rounds of column generation, and Newton steps to one centre.
_MOST_ROUNDS, _MOST_STEPS = 400, 100
# Factor of the barrier in each round, and the largest relative change of a weight at a centre.
_SHRINK, _CENTRED = 0.3, 0.05
# A pattern is pruned if its weight is below the median over _SLACK and below this share of the
# largest.
_SLACK, _WEIGHTLESS = 50, 1e-4
# Starts of the local search: random blends of so many of B's largest eigenvectors.
_DIRECTIONS, _RANDOM = 12, 200
# The step uses the sum of squares if there are more patterns than squares by this factor and the
# duality gap is above this share of F; so many rounds of iterative refinement.
_MANY, _FEW_DIGITS, _REFINED = 1.2, 1e-11, 3
# Rounding error of s'B s, a sum of n^2 products, over the sum of their absolute values; and of an
# eigenvalue, over the largest.
ROUNDING = 2.0**-48


@dataclass(frozen=True)
class Optimum:
    """Optimal weights of patterns, with the multipliers for a lower bound.

    Attributes:
        patterns: those with a weight above 0, shape (patterns, n).
        theta: weight of each pattern, shape (patterns,).
        multipliers: lambda of the rows sum_s theta_s s = 1, shape (n,).
        prior: p, shape (n,): the given or the worst one.
        value: F(theta).
    """

    patterns: Patterns
    theta: Vector
    multipliers: Vector
    prior: Vector
    value: float


def rows_of(patterns: Patterns, exp_epsilon: float) -> Matrix:
    """Return patterns as rows with entries 1 and e^epsilon, shape (patterns, n)."""
    return np.where(patterns, exp_epsilon, 1.0)


def information(rows: Matrix, prior: Vector) -> Matrix:
    """Return M = sum over rows r of r r' / (r . p), shape (n, n)."""
    return rows.T @ (rows / (rows @ prior)[:, None])


def squares(rows: Matrix, form: Matrix) -> Vector:
    """Return s' form s for each row s."""
    return np.einsum("ij,ij->i", rows @ form, rows)


def slopes(gram: Matrix, matrix: Matrix) -> tuple[float, Matrix]:
    """Return F = tr(M^-1 G) and B = M^-1 G M^-1."""
    inverse = inverted(matrix)
    return float(np.sum(inverse * gram)), inverse @ gram @ inverse


def every_pattern(n: int) -> Patterns:
    """Return all patterns but the one of ones, a multiple of the one of e^epsilon alone."""
    return (np.arange(1, 1 << n)[:, None] >> np.arange(n)) & 1 > 0


def first_patterns(n: int) -> Patterns:
    """Return the patterns to start from: all, or cyclic intervals and thresholds."""
    if n <= ALL:
        return every_pattern(n)
    category = np.arange(n)
    # Interval lengths that are used by optimal mechanisms of simple queries.
    lengths = sorted({1, 2, 3, n // 8, n // 4, n // 3, n // 2} - {0})
    intervals = [(category[None, :] - category[:, None]) % n < length for length in lengths]
    thresholds = category[None, :] <= category[:, None]
    return np.unique(np.concatenate([*intervals, thresholds, ~thresholds[:-1]]), axis=0)


class Master:
    """The restricted master program over its current patterns, by a primal-dual interior point.

    It follows the central path theta_s z_s = barrier, with z_s = lambda . s - q_s the slack of a
    pattern. For the worst prior the program is the saddle point of F - sum_u p_u G_uu, convex in
    theta and concave in p. A pattern represents all its images under the symmetry of G and p, which
    is the trivial one for the worst p (``prior`` None).
    """

    def __init__(
        self, gram: Matrix, exp_epsilon: float, prior: Vector | None, symmetry: Symmetry
    ) -> None:
        n = len(gram)
        self.gram, self.exp_epsilon, self.worst = gram, exp_epsilon, prior is None
        self.symmetry = symmetry
        self.grams = [block.T @ gram @ block for block in symmetry.blocks]
        self.prior = np.full(n, 1 / n) if prior is None else prior
        self.sides = np.zeros(symmetry.blocks[0].shape[1])
        self.take(symmetry.first(first_patterns(n)))
        # Equal weights whose sums over the rows have mean 1; Newton's method makes each of them 1.
        self.theta = np.full(len(self.rows), n / self.rows.sum())
        self.barrier = self.slopes()[0] / len(self.rows)
        self.slack = self.barrier / self.theta
        self.prior_slack = np.full(n if self.worst else 0, n * self.barrier)

    def take(self, patterns: Patterns) -> None:
        """Replace all patterns."""
        self.patterns, self.rows = patterns, rows_of(patterns, self.exp_epsilon)
        self.parts = [self.rows @ block for block in self.symmetry.blocks]

    @property
    def multipliers(self) -> Vector:
        """Lambda, shape (n,): equal for categories that a symmetry exchanges."""
        return self.symmetry.blocks[0] @ self.sides

    def slopes(self) -> tuple[float, Matrix]:
        """Return F, which is kept as `latest`, and B at the current weights."""
        weights = self.theta / (self.rows @ self.prior)
        value, total_b = 0.0, np.zeros_like(self.gram)
        for block, columns, gram in zip(self.symmetry.blocks, self.parts, self.grams, strict=True):
            block_value, b = slopes(gram, columns.T @ (columns * weights[:, None]))
            value, total_b = value + block_value, total_b + block @ b @ block.T
        self.latest = value
        return value, total_b

    def add(self, patterns: Patterns) -> None:
        """Add patterns, each with a weight that is small compared to the current ones."""
        small = 0.1 * float(np.median(self.theta))
        self.take(np.concatenate([self.patterns, patterns]))
        self.theta = np.concatenate([self.theta, np.full(len(patterns), small)])
        self.slack = np.concatenate([self.slack, np.full(len(patterns), self.barrier / small)])

    def prune(self) -> None:
        """Remove patterns of negligible weight."""
        theta = self.theta
        retained = (theta > _WEIGHTLESS * theta.max()) | (theta > np.median(theta) / _SLACK)
        if not np.all(retained):
            self.take(self.patterns[retained])
            self.theta, self.slack = theta[retained], self.slack[retained]

    def centre(self) -> None:
        """Move to the centre theta z = barrier, and p w = barrier, up to a relative error."""
        for _ in range(_MOST_STEPS):
            theta, p = self.theta, self.prior
            try:
                x, y, sides = self._step()
            except (np.linalg.LinAlgError, ValueError):
                x, y, sides = np.full(len(theta), np.nan), p, self.sides
            if not np.all(np.isfinite(x)):
                raise SolverError("a step of Newton's method failed.", Status.NUMERICAL)
            self.sides = sides
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
            if longest == 1.0 and max(off, np.max(np.abs(x))) < _CENTRED:
                return
        raise SolverError("Newton's method found no centre.", Status.ITERATION_LIMIT)

    def _step(self) -> tuple[Vector, Vector, Vector]:
        """Return the Newton step relative to theta and to p, and the multipliers by block 0."""
        theta, p, mu = self.theta, self.prior, self.barrier
        weights = theta / (self.rows @ p)
        # All derivatives are scaled by theta.
        scaled = [columns * weights[:, None] for columns in self.parts]
        first, size = self.symmetry.blocks[0], len(theta)
        border = self.parts[0] * theta[:, None]
        short = first.sum(axis=0) - border.sum(axis=0)
        # r: the number of squares of which the Hessian is a sum.
        r = sum(len(gram) * (len(gram) + 1) // 2 for gram in self.grams)
        few = r * _MANY < size and not self.worst
        # With a small barrier, squares and diagonal differ too much in size for Woodbury's formula.
        if few and size * mu > _FEW_DIGITS * self.latest:
            features, q = self._features(scaled, weights)
            return self._short_step(features, q, border, short)
        # both[s, t] = theta_s theta_t (s'M^-1 t)(s'B t) / (d_s d_t), half of the Hessian.
        both, q = np.zeros((size, size)), np.zeros(size)
        for columns, t, gram in zip(self.parts, scaled, self.grams, strict=True):
            inverse = inverted(columns.T @ t)
            sb = t @ inverse @ gram @ inverse
            q += np.einsum("ij,ij->i", sb, columns)
            product = columns @ inverse @ columns.T
            product *= sb @ t.T
            both += product
        # KKT system: theta, then for the worst prior log p and the multiplier of its sum, then the
        # multipliers of the rows sum theta s = 1 by columns of block 0.
        n = len(p)
        others = border.shape[1] + (n + 1 if self.worst else 0)
        corner, edge = np.zeros((others, others)), np.zeros((size, others))
        right = np.zeros(size + others)
        right[:size] = q + mu
        sides = slice(others - border.shape[1], others)
        edge[:, sides] = border
        right[size:][sides] = short
        if self.worst:
            at = slice(n)
            c, corner[at, at], rise = by_prior(self.rows, p, both, q, self.gram)
            edge[:, at] = -2 * both @ c + q[:, None] * c
            corner[np.arange(n), np.arange(n)] -= p * self.prior_slack
            right[size : size + n] = -rise - mu
            corner[at, n] = corner[n, at] = p
            right[size + n] = 1.0 - p.sum()
        both *= 2
        both[np.arange(size), np.arange(size)] += theta * self.slack
        step = _solved(both, edge, corner, right)
        return (
            step[:size],
            step[size : size + n] if self.worst else np.zeros(0),
            step[size:][sides],
        )

    def _features(self, scaled: list[Matrix], weights: Vector) -> tuple[Matrix, Vector]:
        """Return Psi, shape (patterns, r), with the Hessian Psi Psi', and theta q."""
        features, q = [], np.zeros(len(weights))
        for columns, t, gram in zip(self.parts, scaled, self.grams, strict=True):
            root = np.linalg.cholesky(columns.T @ t)
            half = scipy.linalg.solve_triangular(root, gram, lower=True)
            half = scipy.linalg.solve_triangular(root, half.T, lower=True)
            share, rotation = np.linalg.eigh((half + half.T) / 2)
            share = np.maximum(share, 0.0)
            y = columns @ scipy.linalg.solve_triangular(root, rotation, lower=True, trans="T")
            q += (y**2 @ share) * weights
            i, j = np.triu_indices(len(share))
            size = np.sqrt(2 * np.where(i == j, share[i], share[i] + share[j]))
            features.append(y[:, i] * y[:, j] * size)
        psi = np.concatenate(features, axis=1)
        psi *= weights[:, None]
        return psi, q

    def _short_step(
        self, features: Matrix, q: Vector, border: Matrix, short: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return the step by Woodbury's formula: the Hessian is few squares plus a diagonal."""
        root = np.sqrt(self.theta * self.slack)
        features /= root[:, None]
        border = border / root[:, None]
        core = scipy.linalg.blas.dsyrk(1.0, features.T)
        core[np.diag_indices(len(core))] += 1.0
        factor = scipy.linalg.cho_factor(core, check_finite=False, overwrite_a=True)

        def undone(sides: Matrix) -> Matrix:
            return sides - features @ scipy.linalg.cho_solve(
                factor, features.T @ sides, check_finite=False
            )

        edge = undone(border)
        small = scipy.linalg.lu_factor(border.T @ edge)
        # Right sides of the two blocks of equations, later their residuals.
        residual, sum_residual = (q + self.barrier) / root, short
        x, lam = np.zeros_like(residual), np.zeros_like(short)
        for _ in range(_REFINED):
            through = undone(residual)
            more = scipy.linalg.lu_solve(small, border.T @ through - sum_residual)
            x, lam = x + through - edge @ more, lam + more
            applied = features @ (features.T @ x) + x + border @ lam
            residual, sum_residual = (q + self.barrier) / root - applied, short - border.T @ x
        return x / root, np.zeros(0), lam


def by_prior(
    rows: Matrix, p: Vector, both: Matrix, q: Vector, gram: Matrix
) -> tuple[Matrix, Matrix, Vector]:
    """Return the derivatives of F - sum_u p_u G_uu by log p, for rows s, shape (rows, n).

    ``both`` is theta_s theta_t (s'M^-1 t)(s'B t) / (d_s d_t), shape (rows, rows), ``q`` theta_s
    q_s. They are c_su, the derivative of log d_s by log p_u; the curvature, shape (n, n), without
    the second derivative of p itself; and the gradient.
    """
    c = rows * p / (rows @ p)[:, None]
    return c, 2 * c.T @ (both @ c - q[:, None] * c), q @ c - p * np.diagonal(gram)


def _longest(*changes: Vector) -> float:
    """Return the largest step, at most 1, that keeps at least 5 % of every number."""
    return min(1.0, *(0.95 / max(0.95, float(np.max(-change))) for change in changes))


def inverted(matrix: Matrix) -> Matrix:
    """Return M^-1, exactly symmetric."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        raise SolverError(
            "the mechanism's outputs do not distinguish some category.", Status.NUMERICAL
        ) from None
    return (inverse + inverse.T) / 2


def _solved(first: Matrix, edge: Matrix, corner: Matrix, right: Vector) -> Vector:
    """Return the solution of a KKT system; its first block, positive definite, is overwritten."""
    size = len(first)
    factor = scipy.linalg.cho_factor(first, lower=True, check_finite=False, overwrite_a=True)
    sides = np.column_stack([edge, right[:size]])
    through = scipy.linalg.cho_solve(factor, sides, check_finite=False)
    small = corner - edge.T @ through[:, :-1]
    others = np.linalg.solve(small, right[size:] - edge.T @ through[:, -1])
    return np.append(through[:, -1] - through[:, :-1] @ others, others)


@one_blas_thread
def optimum(
    gram: Matrix, exp_epsilon: float, prior: Vector | None, *, relative_gap: float = _RELATIVE
) -> Optimum:
    """Return the weights of patterns with least F, and multipliers that prove it nearly least."""
    n = len(gram)
    scale = float(np.trace(gram))
    inner, shift = gram / scale, np.zeros(n)
    if prior is None:
        symmetry = Symmetry.none(n)
    else:
        inner, shift = centred(inner, prior)
        symmetry = Symmetry.of(inner, prior)
    master = Master(inner, exp_epsilon, prior, symmetry)
    search = Search(n, exp_epsilon)
    best, lowest = None, -np.inf
    for done in range(_MOST_ROUNDS):
        advance("patterns", done)
        try:
            master.centre()
        except SolverError:
            # Below a gap of about 1e-12 of F, steps are rounding noise: keep the best so far.
            if best is None:
                raise
            break
        gap, (value, b) = len(master.theta) * master.barrier, master.slopes()
        # Relative to the variance, which is far below F for a large epsilon.
        variance = value - float(master.prior @ np.diagonal(master.gram))
        enough = max(relative_gap * variance, _LEAST * value)
        if n > ALL:
            patterns = search.violated(b, master, 2 * gap, symmetry)
            if len(patterns):
                master.prune()
                present = {row.tobytes() for row in master.patterns}
                fresh = [row for row in patterns if row.tobytes() not in present]
                master.add(np.array(fresh, dtype=bool).reshape(-1, n))
                # If few patterns are added, the barrier shrinks at once; if one violates by much
                # more than the gap, the barrier is raised to move away from the boundary.
                if len(patterns) < n and gap > enough:
                    master.barrier *= _SHRINK
                away = float(excesses(rows_of(patterns[:1], exp_epsilon), b, master)[0])
                # After patterns are added, the duality gap is at least this share of the largest
                # violation.
                least = 0.1 * away / len(master.theta)
                if least > master.barrier:
                    grown = np.sqrt(least / master.barrier)
                    master.slack, master.prior_slack = (
                        master.slack * grown,
                        master.prior_slack * grown,
                    )
                    master.barrier = least
                continue
        if gap <= enough:
            # If the optimal M is nearly singular, later multipliers are worse: keep the best bound.
            # The bound with multipliers that are raised to satisfy all patterns.
            missed = max(0.0, most_missed(b, exp_epsilon, master)) if n <= LISTED else 0.0
            proved = 2 * value - float(master.multipliers.sum()) - n * missed
            if best is None or proved >= lowest:
                lowest, best = proved, _made(master, scale, shift)
            if n > LISTED or gap <= _LEAST * value:
                break
        master.barrier *= _SHRINK
    if best is None:
        raise SolverError("the patterns did not settle.", Status.ITERATION_LIMIT)
    return best


def _made(master: Master, scale: float, shift: Vector) -> Optimum:
    """Return the solution for G itself, with all images of patterns.

    With G = G' + 1 v' + v 1', and M p = 1, s'B s is s'B's + 2 (s . p) (s . M^-1 v). The master
    program is about G' / scale, and v is scaled likewise.
    """
    patterns, theta = master.symmetry.images(master.patterns, master.theta)
    rows, p = rows_of(patterns, master.exp_epsilon), master.prior
    side = np.linalg.solve(information(rows * theta[:, None], p), shift)
    value = master.slopes()[0] + 2 * float(shift @ p)
    return Optimum(patterns, theta, scale * (master.multipliers + 2 * side), p, scale * value)


# Current patterns, p, and the multipliers of sum theta s = 1, which price patterns.
Priced: TypeAlias = Master | Optimum


class Search:
    """Pricing: patterns s with s'B s / (s . p) above lambda . s, by enumeration or local search.

    Local search flips one entry of a pattern at a time.
    """

    def __init__(self, n: int, exp_epsilon: float) -> None:
        self.n, self.exp_epsilon, self.rng = n, exp_epsilon, np.random.default_rng(n)
        self.most = max(100, 4 * n)

    def violated(self, b: Matrix, at: Priced, allowed: float, symmetry: Symmetry) -> Patterns:
        """Return patterns whose excess is above ``allowed``, largest first, one of all images."""
        most = self.most * len(symmetry.moves)
        x = self._worst(self.climbed(b, at), b, at, allowed)[:most]
        if not len(x) and self.n <= LISTED:
            # All patterns are priced only if local search finds none.
            x = self._worst(self._above(b, at, allowed), b, at, allowed)[:most]
        return self._worst(symmetry.first(x), b, at, -np.inf)[: self.most]

    def _worst(self, x: Patterns, b: Matrix, at: Priced, allowed: float) -> Patterns:
        """Return those of the patterns whose excess is above ``allowed``, largest first."""
        excess = excesses(rows_of(x, self.exp_epsilon), b, at)
        order = np.argsort(-excess)
        return x[order[excess[order] > allowed]]

    def _above(self, b: Matrix, at: Priced, allowed: float) -> Patterns:
        """Return the most violated of all patterns whose excess is above ``allowed``."""
        low = min(self.n, _LOW)
        numbers, values = [np.zeros(0, np.int64)], [np.zeros(0)]
        for start, excess, _ in _listed(b, self.exp_epsilon, at):
            # Entry (i, j) is the pattern with lower half i and upper half start + j.
            i, j = np.nonzero(excess > allowed)
            numbers.append(i + ((j + start) << low))
            values.append(excess[i, j])
        # Most violated patterns that are returned when all patterns are priced.
        order = np.argsort(-np.concatenate(values))[:5_000]
        return (np.concatenate(numbers)[order, None] >> np.arange(self.n)) & 1 > 0

    def climbed(self, b: Matrix, at: Priced) -> Patterns:
        """Return the local maxima of the excess reached from random and current patterns."""
        n = len(b)
        _, vectors = np.linalg.eigh(b)
        top = vectors[:, -_DIRECTIONS:]
        blends = self.rng.standard_normal((_RANDOM, top.shape[1])) @ top.T
        cuts = self.rng.standard_normal((_RANDOM, 1)) * np.std(blends)
        starts = np.concatenate([blends > cuts, at.patterns])
        x = np.unique(starts[starts.any(axis=1)], axis=0)
        step, p, lam = self.exp_epsilon - 1.0, at.prior, at.multipliers
        s = rows_of(x, self.exp_epsilon)
        sb, d, linear = s @ b, s @ p, s @ lam
        square = np.einsum("ij,ij->i", sb, s)
        diagonal = np.diagonal(b)
        active = np.arange(len(x))
        for _ in range(8 * n):
            sign = np.where(x[active], -step, step)
            # Excess of each active pattern (axis 0) with one category flipped (axis 1).
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
            # Rank-one updates of s'B s, s'B, s . p and lambda . s for the flipped entries.
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


def most_missed(b: Matrix, exp_epsilon: float, at: Priced) -> float:
    """Return max over all patterns of (s'B s / (s . p) - lambda . s) / (1 . s), rounded up."""
    # The rounding error of s'B s is bounded by ROUNDING times the sum of its terms' sizes.
    listed = _listed(b + ROUNDING * np.abs(b), exp_epsilon, at)
    worst = max(float(np.max(excess / entries)) for _, excess, entries in listed)
    return worst + ROUNDING * float(np.abs(at.multipliers).max())


def _listed(b: Matrix, exp_epsilon: float, at: Priced) -> Iterator[tuple[int, Matrix, Matrix]]:
    """Yield (start, excess, sums) of all patterns, for 64 upper halves from ``start`` at a time."""
    n, p, lam = len(b), at.prior, at.multipliers
    split = min(n, _LOW)
    low, high = (
        rows_of((np.arange(1 << size)[:, None] >> np.arange(size)) & 1 > 0, exp_epsilon)
        for size in (split, n - split)
    )
    below, above = slice(split), slice(split, n)
    crossed, squared = 2 * low @ b[below, above], squares(low, b[below, below])
    upper = squares(high, b[above, above])
    for start in range(0, len(high), 64):
        columns = slice(start, start + 64)
        block = high[columns]
        excess = crossed @ block.T + squared[:, None] + upper[columns]
        excess /= (low @ p[below])[:, None] + block @ p[above]
        excess -= (low @ lam[below])[:, None] + block @ lam[above]
        yield start, excess, low.sum(axis=1)[:, None] + block.sum(axis=1)

"""The least variance of a linear query: a convex program over patterns, by column generation.

A row of the mechanism, Pr[output | category] as a function of the category, may be taken as theta s
with a pattern s in {1, e}^n, e = e^epsilon, theta >= 0: other rows are sums of such rows, and
splitting a row never loses information. With d_s = s . p, M = sum_s theta_s s s' / d_s, and G = W'W
the program is

    minimise   F(theta) = tr(M^-1 G)
    subject to sum_s theta_s s = 1,  theta >= 0,

which is convex, for M is linear in theta. With B = M^-1 G M^-1, q_s = s'B s / d_s is minus the
derivative of F by theta_s, and sum_s theta_s q_s = F.

Where orders of the categories leave the queries alike (`dpopt.local.symmetry`), a pattern stands
for all its images, and M falls into blocks. The Hessian of F is a sum of r = sum_b n_b (n_b + 1) /
2 squares, n_b the sizes of the blocks: with M^-1 = C C' and B = C diag(b) C' in a block, and y =
C's,

    (s'M^-1 t)(s'B t) = sum_{i <= j} w_ij (y_i y_j)(s) (y_i y_j)(t),  w_ii = b_i, w_ij = b_i + b_j,

so that a step of Newton's method takes time r^2 (patterns + r), however many patterns there are.
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
"""Shape (patterns, categories): where a pattern is e; it is 1 elsewhere."""

# Up to so many categories all patterns are in the program from the start, or priced in each round.
ALL, LISTED = 8, 20
# Categories in the lower half of a pattern, which is tabulated.
_LOW = 10
# What the barrier may leave as a share of the variance; and of F, what it leaves where it can.
_RELATIVE, _LEAST = 1e-9, 1e-13
_MOST_ROUNDS, _MOST_STEPS = 400, 100
# How the barrier falls, and when a centre counts as found: largest change of a weight, as a share.
_SHRINK, _NEAR = 0.3, 0.05
# The least barrier where patterns are added, as a share of the largest violation.
_INSIDE = 0.1
# Patterns below both shares, of the median and of the largest weight, are left out.
_SLACK, _WEIGHTLESS = 50, 1e-4
# Starts of the search beyond `LISTED` categories: blends of B's largest eigenvectors.
_DIRECTIONS, _RANDOM = 12, 200
# Patterns above a number of squares by this factor: a step then goes by the squares; as long as the
# barrier leaves this share of F.
_MANY, _FEW_DIGITS, _REFINED = 1.2, 1e-11, 3
# How many of all patterns that violate are looked at closely.
_LISTED_MOST = 5_000
# Rounding of s'B s, a sum of n^2 products, as a share of the sum of their sizes; and of an
# eigenvalue, as a share of the largest.
ROUNDING = 2.0**-48


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


class Master:
    """The program over its present patterns, by a primal-dual interior point.

    Along the path theta_s z_s = barrier, with z_s = lambda . s - q_s the slack of a pattern. For
    the worst prior it is the saddle of F - sum_u p_u G_uu, convex in theta and concave in p.

    Args:
        gram: G, shape (n, n).
        ratio: e^epsilon.
        prior: p; None for the worst.
        symmetry: of G and p: a pattern stands for all its images. None is known of the worst p.
    """

    def __init__(
        self, gram: Matrix, ratio: float, prior: Vector | None, symmetry: Symmetry
    ) -> None:
        n = len(gram)
        self.gram, self.ratio, self.worst = gram, ratio, prior is None
        self.symmetry = symmetry
        self.grams = [part.T @ gram @ part for part in symmetry.blocks]
        self.prior = np.full(n, 1 / n) if prior is None else prior
        self.sides = np.zeros(symmetry.blocks[0].shape[1])
        self.take(symmetry.first(first_patterns(n)))
        # F when it was last computed.
        self.latest = 0.0
        # Such weights as make the mean of the sums 1; Newton's method makes each of them 1.
        self.theta = np.full(len(self.rows), n / self.rows.sum())
        self.barrier = self.value / len(self.rows)
        self.slack = self.barrier / self.theta
        self.prior_slack = np.full(n if self.worst else 0, n * self.barrier)

    def take(self, patterns: Patterns) -> None:
        """Have these patterns and no others."""
        self.patterns, self.rows = patterns, rows_of(patterns, self.ratio)
        self.parts = [self.rows @ block for block in self.symmetry.blocks]

    @property
    def multipliers(self) -> Vector:
        """Lambda, shape (n,): the same for categories that some order exchanges."""
        return self.symmetry.blocks[0] @ self.sides

    @property
    def value(self) -> float:
        """F at the present weights."""
        return self.slopes()[0]

    @property
    def squares(self) -> int:
        """r: of so many squares the Hessian is a sum."""
        return sum(len(gram) * (len(gram) + 1) // 2 for gram in self.grams)

    def slopes(self) -> tuple[float, Matrix]:
        """Return F and B at the present weights."""
        weights = self.theta / (self.rows @ self.prior)
        value, whole = 0.0, np.zeros_like(self.gram)
        for block, part, gram in zip(self.symmetry.blocks, self.parts, self.grams, strict=True):
            here, b = slopes(gram, part.T @ (part * weights[:, None]))
            value, whole = value + here, whole + block @ b @ block.T
        self.latest = value
        return value, whole

    def add(self, patterns: Patterns) -> None:
        """Take further patterns, each with a weight that is small beside those present."""
        small = 0.1 * float(np.median(self.theta))
        self.take(np.concatenate([self.patterns, patterns]))
        self.theta = np.concatenate([self.theta, np.full(len(patterns), small)])
        self.slack = np.concatenate([self.slack, np.full(len(patterns), self.barrier / small)])

    def prune(self, least: float | None = None) -> None:
        """Leave out patterns that weigh nothing, or less than a share of the largest."""
        theta = self.theta
        kept = theta > (_WEIGHTLESS if least is None else least) * theta.max()
        if least is None:
            kept |= theta > np.median(theta) / _SLACK
        if not np.all(kept):
            self.take(self.patterns[kept])
            self.theta, self.slack = theta[kept], self.slack[kept]

    def raise_to(self, barrier: float) -> None:
        """Go back to a larger barrier, if it is one."""
        if barrier > self.barrier:
            grown = np.sqrt(barrier / self.barrier)
            self.slack, self.prior_slack = self.slack * grown, self.prior_slack * grown
            self.barrier = barrier

    def centre(self) -> None:
        """Go to where theta z = barrier, and p w = barrier, up to a share of each."""
        for _ in range(_MOST_STEPS):
            x, y, self.sides = self._step()
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
        theta, p, mu = self.theta, self.prior, self.barrier
        weights = theta / (self.rows @ p)
        # All of the derivatives are scaled by theta.
        scaled = [part * weights[:, None] for part in self.parts]
        first, size = self.symmetry.blocks[0], len(theta)
        border = self.parts[0] * theta[:, None]
        short = first.sum(axis=0) - border.sum(axis=0)
        few = self.squares * _MANY < size and not self.worst
        # Where the barrier is small, the sum of squares and the rest are too far apart for floats.
        if few and size * mu > _FEW_DIGITS * self.latest:
            features, q = self._features(scaled, weights)
            return self._short_step(features, q, border, short)
        both, q = np.zeros((size, size)), np.zeros(size)
        for part, t, gram in zip(self.parts, scaled, self.grams, strict=True):
            inverse = inverted(part.T @ t)
            sb = t @ inverse @ gram @ inverse
            q += np.einsum("ij,ij->i", sb, part)
            product = part @ inverse @ part.T
            product *= sb @ t.T
            both += product
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
        found = _solved(both, edge, corner, right)
        return (
            found[:size],
            found[size : size + n] if self.worst else np.zeros(0),
            found[size:][sides],
        )

    def _features(self, scaled: list[Matrix], weights: Vector) -> tuple[Matrix, Vector]:
        """Return Psi, shape (patterns, r), with Psi Psi' the Hessian; and theta q; see the top."""
        features, q = [], np.zeros(len(weights))
        for part, t, gram in zip(self.parts, scaled, self.grams, strict=True):
            try:
                root = np.linalg.cholesky(part.T @ t)
            except np.linalg.LinAlgError:
                raise SolverError(
                    "the mechanism tells nothing of some category.", Status.NUMERICAL
                ) from None
            half = scipy.linalg.solve_triangular(root, gram, lower=True)
            half = scipy.linalg.solve_triangular(root, half.T, lower=True)
            share, turn = np.linalg.eigh((half + half.T) / 2)
            share = np.maximum(share, 0.0)
            y = part @ scipy.linalg.solve_triangular(root, turn, lower=True, trans="T")
            q += (y**2 @ share) * weights
            i, j = np.triu_indices(len(share))
            size = np.sqrt(2 * np.where(i == j, share[i], share[i] + share[j]))
            features.append(y[:, i] * y[:, j] * size)
        found = np.concatenate(features, axis=1)
        found *= weights[:, None]
        return found, q

    def _short_step(
        self, features: Matrix, q: Vector, border: Matrix, short: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Return the step by the inverse of a diagonal and a sum of few squares (Woodbury).

        With the diagonal D = theta z the rest is of size r. What rounding leaves is solved for
        again.
        """
        root = np.sqrt(self.theta * self.slack)
        features /= root[:, None]
        border = border / root[:, None]
        core = scipy.linalg.blas.dsyrk(1.0, features.T)
        core[np.diag_indices(len(core))] += 1.0
        try:
            factor = scipy.linalg.cho_factor(core, check_finite=False, overwrite_a=True)

            def undone(right: Matrix) -> Matrix:
                return right - features @ scipy.linalg.cho_solve(
                    factor, features.T @ right, check_finite=False
                )

            edge = undone(border)
            small = scipy.linalg.lu_factor(border.T @ edge)
            left, right = (q + self.barrier) / root, short
            x, lam = np.zeros_like(left), np.zeros_like(short)
            for _ in range(_REFINED):
                through = undone(left)
                more = scipy.linalg.lu_solve(small, border.T @ through - right)
                x, lam = x + through - edge @ more, lam + more
                whole = features @ (features.T @ x) + x + border @ lam
                left, right = (q + self.barrier) / root - whole, short - border.T @ x
        except (np.linalg.LinAlgError, ValueError):
            raise SolverError("a step of Newton's method failed.", Status.NUMERICAL) from None
        if not np.all(np.isfinite(x)):
            raise SolverError("a step of Newton's method failed.", Status.NUMERICAL)
        return x / root, np.zeros(0), lam


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
        raise SolverError(
            "the mechanism tells nothing of some category.", Status.NUMERICAL
        ) from None
    return (inverse + inverse.T) / 2


def _solved(first: Matrix, edge: Matrix, corner: Matrix, right: Vector) -> Vector:
    """Solve for a step: the first block is positive definite, and is written over."""
    size = len(first)
    try:
        factor = scipy.linalg.cho_factor(first, lower=True, check_finite=False, overwrite_a=True)
        sides = np.column_stack([edge, right[:size]])
        through = scipy.linalg.cho_solve(factor, sides, check_finite=False)
        small = corner - edge.T @ through[:, :-1]
        others = np.linalg.solve(small, right[size:] - edge.T @ through[:, -1])
    except np.linalg.LinAlgError:
        raise SolverError("a step of Newton's method failed.", Status.NUMERICAL) from None
    found = np.append(through[:, -1] - through[:, :-1] @ others, others)
    if not np.all(np.isfinite(found)):
        raise SolverError("a step of Newton's method failed.", Status.NUMERICAL)
    return found


@one_blas_thread
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
    inner, shift = gram / scale, np.zeros(n)
    if prior is None:
        symmetry = Symmetry.none(n)
    else:
        inner, shift = centred(inner, prior)
        symmetry = Symmetry.of(inner, prior)
    master = Master(inner, ratio, prior, symmetry)
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
            break
        room, (value, b) = len(master.theta) * master.barrier, master.slopes()
        # A share of the variance, which is far below F where epsilon is large.
        variance = value - float(master.prior @ np.diagonal(master.gram))
        enough = max(relative_gap * variance, _LEAST * value)
        if n > ALL:
            found = search.violated(b, master, 2 * room, symmetry)
            if len(found):
                master.prune()
                master.add(_fresh(found, master.patterns))
                # A few that come late need no centre of their own, but for the last one; what
                # violates by far more than the barrier leaves is taken in from further inside.
                if len(found) < n and room > enough:
                    master.barrier *= _SHRINK
                away = float(excesses(rows_of(found[:1], ratio), b, master)[0])
                master.raise_to(_INSIDE * away / len(master.theta))
                continue
        if room <= enough:
            # Where the best M is nearly singular, the multipliers get worse again.
            proved = search.bound(master) if n <= LISTED else value
            if best is None or proved >= lowest:
                lowest, best = proved, _made(master, scale, shift)
            if n > LISTED or room <= _LEAST * value:
                break
        master.barrier *= _SHRINK
    if best is None:
        raise SolverError("the patterns did not settle.", Status.ITERATION_LIMIT)
    return best


def _made(master: Master, scale: float, shift: Vector) -> Optimum:
    """Return a solution about G itself, of all images of patterns.

    With G = G' + 1 v' + v 1', and M p = 1, s'B s is s'B's + 2 (s . p) (s . M^-1 v).
    """
    patterns, theta = master.symmetry.images(master.patterns, master.theta)
    rows, p = rows_of(patterns, master.ratio), master.prior
    side = np.linalg.solve(information(rows * theta[:, None], p), shift)
    value = master.value + 2 * float(shift @ p)
    return Optimum(patterns, theta, scale * (master.multipliers + 2 * side), p, scale * value)


def _fresh(found: Patterns, present: Patterns) -> Patterns:
    known = {row.tobytes() for row in present}
    return np.array([row for row in found if row.tobytes() not in known], dtype=bool).reshape(
        -1, present.shape[1]
    )


Priced: TypeAlias = Master | Optimum
"""What patterns are priced by: those present, p, and the multipliers of sum theta s = 1."""


class Search:
    """Patterns s with s'B s / (s . p) above lambda . s: all of them, or by single flips.

    Args:
        n: number of categories.
        ratio: e^epsilon.
    """

    def __init__(self, n: int, ratio: float) -> None:
        self.n, self.ratio, self.rng = n, ratio, np.random.default_rng(n)
        self.most = max(100, 4 * n)

    def violated(self, b: Matrix, at: Priced, allowed: float, symmetry: Symmetry) -> Patterns:
        """Return patterns that violate by more than is allowed, the most violated first.

        Of the images of a pattern there is one.
        """
        most = self.most * len(symmetry.moves)
        x = self._climbed(b, at) if self.n > ALL else every_pattern(self.n)
        order = self._worst(x, b, at, allowed, most)
        if not order.size and ALL < self.n <= LISTED:
            # Only where single flips find none are all patterns looked at.
            x = self._above(b, at, allowed)
            order = self._worst(x, b, at, allowed, most)
        found = symmetry.first(x[order])
        return found[np.argsort(-excesses(rows_of(found, self.ratio), b, at))[: self.most]]

    def _worst(
        self, x: Patterns, b: Matrix, at: Priced, allowed: float, most: int
    ) -> npt.NDArray[np.intp]:
        excess = excesses(rows_of(x, self.ratio), b, at)
        order = np.argsort(-excess)[:most]
        return order[excess[order] > allowed]

    def found(self, b: Matrix, at: Priced) -> tuple[Patterns, Vector]:
        """Return patterns where single flips lead, and the excess of each."""
        x = self._climbed(b, at)
        return x, excesses(rows_of(x, self.ratio), b, at)

    def bound(self, at: Master) -> float:
        """Return the bound of F that the multipliers prove once they pay for all patterns."""
        value, b = at.slopes()
        missed = max(0.0, most_missed(b, self.ratio, at))
        return 2 * value - float(at.multipliers.sum()) - len(at.prior) * missed

    def _above(self, b: Matrix, at: Priced, allowed: float) -> Patterns:
        """Return patterns whose excess is above, of all patterns, some of the most violated."""
        low = min(self.n, _LOW)
        numbers, values = [np.zeros(0, np.int64)], [np.zeros(0)]
        for start, excess, _ in _listed(b, self.ratio, at):
            i, j = np.nonzero(excess > allowed)
            numbers.append(i + ((j + start) << low))
            values.append(excess[i, j])
        order = np.argsort(-np.concatenate(values))[:_LISTED_MOST]
        return (np.concatenate(numbers)[order, None] >> np.arange(self.n)) & 1 > 0

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


def most_missed(b: Matrix, ratio: float, at: Priced) -> float:
    """Return max over all patterns of (s'B s / (s . p) - lambda . s) / (1 . s), rounded up.

    Args:
        b: B, shape (n, n).
        ratio: e^epsilon.
        at: what patterns are priced by.
    """
    # What rounding may have lost of s'B s is a share of the sum of the sizes of its terms.
    listed = _listed(b + ROUNDING * np.abs(b), ratio, at)
    worst = max(float(np.max(excess / entries)) for _, excess, entries in listed)
    return worst + ROUNDING * float(np.abs(at.multipliers).max())


def _listed(b: Matrix, ratio: float, at: Priced) -> Iterator[tuple[int, Matrix, Matrix]]:
    """Yield the excess of all patterns and their sums, lower halves down, by upper halves.

    Of 2^10 lower halves everything is tabulated, and one product of matrices adds what both halves
    have in common.
    """
    n, p, lam = len(b), at.prior, at.multipliers
    split = min(n, _LOW)
    low, high = (
        rows_of((np.arange(1 << size)[:, None] >> np.arange(size)) & 1 > 0, ratio)
        for size in (split, n - split)
    )
    below, above = slice(split), slice(split, n)
    crossed, squared = 2 * low @ b[below, above], squares(low, b[below, below])
    upper = squares(high, b[above, above])
    for start in range(0, len(high), 64):
        part = slice(start, start + 64)
        block = high[part]
        excess = crossed @ block.T + squared[:, None] + upper[part]
        excess /= (low @ p[below])[:, None] + block @ p[above]
        excess -= (low @ lam[below])[:, None] + block @ lam[above]
        yield start, excess, low.sum(axis=1)[:, None] + block.sum(axis=1)

"""The closed forms: Algorithm 1 and the leximin kernel, in floats and in certified integers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpopt._errors import NotPrivateError
from dpopt._types import IntVector, Matrix, Vector, frozen
from dpopt.privacy import Certificate, exp_lower
from dpopt.privacy.release import Source
from dpopt.public_prior.layers import LayeredRows
from dpopt.public_prior.prior import PublicPrior
from dpopt.public_prior.proof import certify_rows, drift, worst_ratio
from dpopt.public_prior.utility import diagonal_bounds

LARGEST_MATRIX = 5000
"""Letters up to which n^2 floats or integers are listed (200 MB of floats)."""

# The kernel is made for r - (r - 1) 2^-40, so that rounding has room below r; this moves no
# diagonal entry by more than about 1e-12 of itself.
_MARGIN_BITS = 40
_HEADROOM_BITS = 12
_WORD = 64
_RAISES = 3
# Entries of users' laws that are released at once: what stays in a core's cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class ClosedForm(ABC):
    """A kernel that keeps a public prior: floats in O(n), and integers in layers when asked for.

    Letters are in the caller's order. It offers what an `ExactKernel` does, of which every entry
    is written down.

    Attributes:
        prior: q.
        epsilon: in nats.
    """

    prior: PublicPrior
    epsilon: float

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the parameters; the integers are made and proved again."""
        return type(self), (self.prior, self.epsilon)

    @cached_property
    def _proved(self) -> tuple[LayeredRows, Certificate]:
        """Return integers and their proof; precision is raised until they pass."""
        masses = self.prior.masses[self.prior.order]
        ratio = _reduced_ratio(self.epsilon)
        bits = _least_bits(float(masses[0]), self.epsilon)
        largest = bits + _RAISES * _WORD
        while True:
            rows = self._layered(integer_masses(masses, bits), ratio, bits)
            try:
                return rows, certify_rows(rows, self.epsilon)
            except NotPrivateError:
                if bits >= largest:
                    raise
                bits += _WORD

    @property
    def rows(self) -> LayeredRows:
        """The integers, letters by ascending prior mass.

        Raises:
            NotPrivateError: if no precision gives integers that pass.
        """
        return self._proved[0]

    @property
    def certificate(self) -> Certificate:
        """The proof of the integers, which follow from the parameters."""
        return self._proved[1]

    @property
    def bits(self) -> int:
        """Weights are over 2^bits."""
        return self.rows.bits

    @property
    def subject(self) -> tuple[object, ...]:
        """What makes the integers."""
        return type(self).__name__, self.prior.masses, self.epsilon, self.bits

    @cached_property
    def drift(self) -> float:
        """Upper bound of the total variation between q K and q."""
        masses = self.prior.masses[self.prior.order]
        return float(drift(self.rows, integer_masses(masses, self.bits)))

    @cached_property
    def worst_ratio(self) -> float:
        """Upper bound of the largest K_ij / K_i'j, at most e^epsilon up to the float's rounding."""
        return worst_ratio(self.rows)

    @property
    @abstractmethod
    def diagonal(self) -> Vector:
        """K_ii, shape (n,), read-only."""

    def apply(self, p: Vector) -> Vector:
        """Return p K for laws p, shape (..., n), in O(n) each."""
        order, users = self.prior.order, p.reshape(-1, self.prior.size)
        released = np.empty_like(users)
        # Some users at a time: temporaries of all of them would be written to fresh memory.
        step = max(1, _BLOCK // self.prior.size)
        for start in range(0, len(users), step):
            block = slice(start, start + step)
            sorted_users = np.take(users[block], order, axis=1)
            np.take(self._apply_sorted(sorted_users), self._rank, axis=1, out=released[block])
        return released.reshape(p.shape)

    def matrix(self) -> Matrix:
        """Return K as floats, shape (n, n)."""
        return self.apply(np.eye(self.prior.size))

    @cached_property
    def _rank(self) -> IntVector:
        """Place of each letter by ascending prior mass."""
        rank = np.empty(self.prior.size, dtype=np.int64)
        rank[self.prior.order] = np.arange(self.prior.size)
        return rank

    def row(self, letter: int) -> list[int]:
        """Return the weights of a letter's row."""
        sorted_row = self.rows.row(int(self._rank[letter]))
        return [sorted_row[place] for place in self._rank]

    def drawn(self, letters: IntVector, source: Source) -> IntVector:
        """Return a letter from the row of each letter, from random bytes."""
        return self.prior.order[self.rows.draw(self._rank[letters], source)]

    @abstractmethod
    def _apply_sorted(self, p: Vector) -> Vector:
        """Return p K, letters by ascending prior mass."""

    @staticmethod
    @abstractmethod
    def _layered(masses: list[int], ratio: Fraction, bits: int) -> LayeredRows:
        """Return the kernel in integers: from Q in ascending order, r above 1, and T = 2^bits."""


class Staircase(ClosedForm):
    """The kernel of Algorithm 1.

    With letters by ascending q, s_i = sum_{j >= i} q_j and B_1 = 1,
    g_i = B_i / (e^eps q_i + s_{i+1}) and B_{i+1} = B_i - g_i q_i:
    K_ij = g_{min(i, j)} q_j off the diagonal, K_ii = e^eps g_i q_i.
    """

    @cached_property
    def _parts(self) -> tuple[Vector, Vector]:
        """Return g by ascending mass, and K_ii in the caller's order."""
        masses = self.prior.masses[self.prior.order].astype(np.longdouble)
        after = np.zeros_like(masses)
        after[:-1] = np.cumsum(masses[:0:-1])[::-1]
        ratio, excess = math.exp(self.epsilon), math.expm1(self.epsilon)
        below = ratio * masses + after
        left = np.ones_like(masses)
        np.cumprod(((excess * masses + after) / below)[:-1], out=left[1:])
        scale = left / below
        diagonal = np.empty(self.prior.size)
        diagonal[self.prior.order] = ratio * scale * masses
        return frozen(scale), frozen(diagonal)

    @property
    def scale(self) -> Vector:
        """g, letters by ascending prior mass, shape (n,), read-only."""
        return self._parts[0]

    @property
    def diagonal(self) -> Vector:
        """K_ii, shape (n,), read-only."""
        return self._parts[1]

    def _apply_sorted(self, p: Vector) -> Vector:
        """Return q_j (sum_{i<j} p_i g_i + g_j (e^eps p_j + sum_{i>j} p_i))."""
        g, q = self.scale, self.prior.masses[self.prior.order]
        earlier = np.zeros_like(p)
        np.cumsum((p * g)[..., :-1], axis=-1, out=earlier[..., 1:])
        later = np.zeros_like(p)
        later[..., :-1] = np.cumsum(p[..., :0:-1], axis=-1)[..., ::-1]
        # e^eps g can be near 1 where g is tiny: first g, then p.
        return q * (earlier + (math.exp(self.epsilon) * g) * p + g * later)

    def matrix(self) -> Matrix:
        """Return K as floats, shape (n, n)."""
        scale = np.empty_like(self.scale)
        scale[self.prior.order] = self.scale
        # g does not increase, so that g_{min(i, j)} is the larger of g_i and g_j.
        entries = np.maximum.outer(scale, scale)
        entries *= self.prior.masses
        np.fill_diagonal(entries, self.diagonal)
        return entries

    @staticmethod
    def _layered(masses: list[int], ratio: Fraction, bits: int) -> LayeredRows:
        """Return Algorithm 1 in integers: what is left of T, letter by letter.

        With R_0 = T: w_i = floor(R_i Q_i / (r Q_i + S_{i+1})), diagonal floor(r w_i), R_{i+1} =
        R_i - w_i; the last letter keeps all that is left. A row's rest goes to the later letters
        by Q.
        """
        up, shift = ratio.numerator, ratio.denominator.bit_length() - 1
        base, left, after = list[int](), 1 << bits, sum(masses)
        for mass in masses[:-1]:
            after -= mass
            base.append((left * mass << shift) // (up * mass + (after << shift)))
            left -= base[-1]
        extra = [weight * up >> shift for weight in base]
        # There are no rows after the last letter's, which keeps all that is left.
        return LayeredRows(bits, [*base, 0], [*extra, left], masses, staircase=True)


class Flat(ClosedForm):
    """The leximin kernel.

    With b_i lemma 3's bounds and M such that (e^eps - 1) M + sum_j min(b_j, M) = e^eps:
    d = min(b, M), u = d / e^eps, rho_i = (e^eps - 1) (M - d_i) / e^eps,
    kappa_j = q_j - u_j (1 + (e^eps - 1) q_j), and
    K = 1 u^T + (e^eps - 1) diag(u) + rho kappa^T / sum(kappa).
    """

    @cached_property
    def _parts(self) -> tuple[float, Vector, Vector, Vector]:
        """Return M, d in the caller's order, rho and the shares by ascending mass."""
        prior, epsilon = self.prior, self.epsilon
        masses, excess = prior.masses[prior.order], math.expm1(epsilon)
        bounds = diagonal_bounds(prior, epsilon)[prior.order]
        # In complements, c = 1 - b and m = 1 - M, since b and M are near 1 where epsilon is large:
        # with a letters at the level, m = (a - 1 + sum of the other b) / (e^eps - 1 + a).
        lost = (1 - masses) / (1 + excess * masses)
        shrink, gain = math.exp(-epsilon), -math.expm1(-epsilon)
        before = np.zeros(prior.size, dtype=np.longdouble)
        np.cumsum(bounds[:-1], dtype=np.longdouble, out=before[1:])
        above = np.arange(prior.size, 0, -1)
        levels = shrink * (above - 1 + before) / (gain + shrink * above)
        # The last letter falls short of its level only by rounding, as do those of its mass; then
        # the nearest is taken.
        reached = lost <= levels
        first = int(np.argmax(reached) if np.any(reached) else np.argmin(lost - levels))
        least = float(levels[first])
        kept = np.where(lost > least, bounds, 1 - least)
        # kappa_j = (b_j - M)_+ (1 + (e^eps - 1) q_j) / e^eps.
        shares = np.maximum(least - lost, 0.0) * (1 + excess * masses) * shrink
        rest = frozen(gain * np.maximum(lost - least, 0.0))
        # The prior is kept if q rho = sum(kappa); where it is not, kappa is rounding, and the
        # letters of the level's mass, which are at it by rounding only, share alike.
        due = float(masses @ rest)
        if abs(float(shares.sum()) - due) > 1e-3 * due:
            first = int(np.searchsorted(masses, masses[first]))
            shares[first:] = masses[first:]
        total = shares.sum()
        diagonal = np.empty(prior.size)
        diagonal[prior.order] = kept
        split = frozen(shares / total if total > 0 else np.zeros(prior.size))
        return 1 - least, frozen(diagonal), rest, split

    @property
    def level(self) -> float:
        """M, the largest K_ii."""
        return self._parts[0]

    @property
    def diagonal(self) -> Vector:
        """K_ii, shape (n,), read-only."""
        return self._parts[1]

    @property
    def rest(self) -> Vector:
        """rho, letters by ascending prior mass, shape (n,), read-only."""
        return self._parts[2]

    @property
    def shares(self) -> Vector:
        """Kappa / sum(kappa), in the same order; zeros if nothing is left over."""
        return self._parts[3]

    def _apply_sorted(self, p: Vector) -> Vector:
        d = self.diagonal[self.prior.order]
        floor = math.exp(-self.epsilon) * d * p.sum(axis=-1, keepdims=True)
        kept = -math.expm1(-self.epsilon) * d * p
        return floor + kept + (p @ self.rest)[..., None] * self.shares

    @staticmethod
    def _layered(masses: list[int], ratio: Fraction, bits: int) -> LayeredRows:
        """Return the leximin kernel in integers.

        Letters below the level have u_i = floor(T Q_i / (r Q_i + S - Q_i)); those above share one
        u, the largest for which sum(u) + (r - 1) u <= T. Extra floor((r - 1) u_i) on the diagonal;
        what is left of each row is split by kappa.
        """
        up, shift = ratio.numerator, ratio.denominator.bit_length() - 1
        n, unit, more = len(masses), 1 << (bits + shift), up - (1 << shift)
        floor = sum(masses) << shift
        base, spent = list[int](), 0
        for place, mass in enumerate(masses[:-1]):
            bound = (mass << (bits + shift)) // (mass * more + floor)
            # Whether letters from here on at its bound need more than is left.
            if ((spent + (n - place) * bound) << shift) + more * bound >= unit:
                break
            base.append(bound)
            spent += bound
        first = len(base)
        level = (unit - (spent << shift)) // (more + ((n - first) << shift))
        base += [level] * (n - first)
        extra = [weight * more >> shift for weight in base]
        # kappa in proportion: Q_j T r_d - u_j (r_d S + (r_n - r_d) Q_j), brought back to ``bits``:
        # what letters at the level lack of their own share; below it nothing.
        slope, least = unit - level * more, level * floor
        lacks = [max(0, mass * slope - least) for mass in masses[first:]]
        drop = max(0, sum(lacks).bit_length() - bits)
        shares = [lack >> drop for lack in lacks]
        shares = [0] * first + (shares if any(shares) else masses[first:])
        return LayeredRows(bits, base, extra, shares, staircase=False)


def integer_masses(masses: Vector, bits: int) -> list[int]:
    """Return floats above 0, at most 1, as integers over 2^bits, rounded down; order is kept."""
    ratios = map(float.as_integer_ratio, masses.tolist())
    return [(top << bits) // bottom for top, bottom in ratios]


def _reduced_ratio(epsilon: float) -> Fraction:
    r = exp_lower(epsilon)
    smaller = r - (r - 1) / (1 << _MARGIN_BITS)
    bits = _WORD + _MARGIN_BITS + max(0, -math.floor(math.log2(epsilon)))
    return Fraction((smaller.numerator << bits) // smaller.denominator, 1 << bits)


def _least_bits(least_mass: float, epsilon: float) -> int:
    """Return bits, two less than whole words, that leave a rounding unit well inside the margin."""
    below = math.log2(-math.expm1(-epsilon))
    scale = math.log2(1 + math.expm1(epsilon) * least_mass) + epsilon / math.log(2)
    needed = _MARGIN_BITS + _HEADROOM_BITS - below - math.log2(least_mass) + scale
    return _WORD * math.ceil((needed + 2) / _WORD) - 2

"""The leximin kernel: as good as Algorithm 1 at the worst letter, and then at the others."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt._types import Vector, frozen
from dpopt.privacy.layers import LayeredRows
from dpopt.provenance import versions
from dpopt.public_prior.prior import PublicPrior, public_prior
from dpopt.public_prior.quantise import Maker
from dpopt.public_prior.sampler import SamplingKernel, checked_epsilon
from dpopt.public_prior.utility import diagonal_bounds


@dataclass(frozen=True, eq=False, repr=False)
class LeximinKernel(SamplingKernel):
    """The kernel whose sorted diagonal is largest letter by letter, kept as O(n) numbers.

    With b_i lemma 3's bounds and M such that (e^eps - 1) M + sum_j min(b_j, M) = e^eps:
    d = min(b, M), u = d / e^eps, rho_i = (e^eps - 1) (M - d_i) / e^eps,
    kappa_j = q_j - u_j (1 + (e^eps - 1) q_j), and
    K = 1 u^T + (e^eps - 1) diag(u) + rho kappa^T / sum(kappa).

    Attributes:
        level: M, the largest K_ii.
        rest: rho, letters by ascending prior mass, shape (n,), read-only.
        shares: kappa / sum(kappa), in the same order; zeros if nothing is left over.
    """

    level: float
    rest: Vector
    shares: Vector

    def _apply_sorted(self, p: Vector) -> Vector:
        d = self.diagonal[self.prior.order]
        floor = math.exp(-self.epsilon) * d * p.sum(axis=-1, keepdims=True)
        kept = -math.expm1(-self.epsilon) * d * p
        return floor + kept + (p @ self.rest)[..., None] * self.shares

    def _maker(self) -> Maker:
        return flat_rows

    @staticmethod
    def _floats(prior: PublicPrior, epsilon: float) -> dict[str, Any]:
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
        # The last letter falls short of the level only by rounding, where all masses are equal;
        # then argmax answers 0, which is right.
        least = float(levels[int(np.argmax(lost <= levels))])
        kept = np.where(lost > least, bounds, 1 - least)
        # kappa_j = (b_j - M)_+ (1 + (e^eps - 1) q_j) / e^eps.
        shares = np.maximum(least - lost, 0.0) * (1 + excess * masses) * shrink
        total = shares.sum()
        diagonal = np.empty(prior.size)
        diagonal[prior.order] = kept
        return {
            "diagonal": frozen(diagonal),
            "level": 1 - least,
            "rest": frozen(gain * np.maximum(lost - least, 0.0)),
            "shares": frozen(shares / total if total > 0 else np.zeros(prior.size)),
        }


def leximin_kernel(
    prior: npt.ArrayLike | PublicPrior,
    epsilon: float,
    *,
    letters: Iterable[Hashable] | None = None,
) -> LeximinKernel:
    """Return the leximin kernel: epsilon-LDP, qK = q, minimax, and best at the letters above.

    Its smallest K_ii is that of Algorithm 1, so that no f-divergence has a smaller worst case;
    then its second smallest is as large as any such kernel has, and so on.

    Args:
        prior: q, shape (n,), in any order, all above 0, summing to 1 up to 1e-9; or a
            `PublicPrior`.
        epsilon: in [1e-9, 600], in nats.
        letters: n distinct names; 0..n-1 if None.

    Raises:
        ParameterError: for a prior or an epsilon out of range.

    Example:
        >>> from dpopt import public_prior
        >>> design = public_prior.leximin_kernel([0.05, 0.1, 0.15, 0.2, 0.5], epsilon=1.0)
        >>> design.diagonal.round(4).tolist()
        [0.1252, 0.232, 0.3242, 0.4046, 0.6005]
    """
    q, epsilon = public_prior(prior, letters), checked_epsilon(epsilon)
    floats = LeximinKernel._floats(q, epsilon)
    return LeximinKernel(prior=q, epsilon=epsilon, provenance=versions(), **floats)


def flat_rows(masses: list[int], ratio: Fraction, bits: int) -> LayeredRows:
    """Return the leximin kernel in integers.

    Letters below the level have u_i = floor(T Q_i / (r Q_i + S - Q_i)); those above share one u,
    the largest for which sum(u) + (r - 1) u <= T. Extra floor((r - 1) u_i) on the diagonal; what
    is left of each row is split by kappa.

    Args:
        masses: Q in ascending order.
        ratio: r, above 1.
        bits: T = 2^bits.
    """
    up, down = ratio.numerator, ratio.denominator
    total, unit, n = sum(masses), 1 << bits, len(masses)
    bounds = [unit * q * down // ((up - down) * q + down * total) for q in masses]
    spent, first = 0, 0
    for first, u in enumerate(bounds):
        if first == n - 1 or (spent + (n - first) * u) * down + (up - down) * u >= unit * down:
            break
        spent += u
    level = (unit - spent) * down // (up - down + (n - first) * down)
    base = bounds[:first] + [level] * (n - first)
    extra = [(up - down) * u // down for u in base]
    # kappa in proportion: Q_j T r_d - u_j (r_d S + (r_n - r_d) Q_j), brought back to ``bits``.
    left = [
        max(0, q * unit * down - u * (down * total + (up - down) * q))
        for q, u in zip(masses[first:], base[first:], strict=True)
    ]
    shift = max(0, sum(left).bit_length() - bits)
    shares = [share >> shift for share in left]
    if not any(shares):
        shares = masses[first:]
    return LayeredRows(bits, tuple(base), tuple(extra), (*([0] * first), *shares), staircase=False)

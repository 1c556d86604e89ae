"""Algorithm 1: the kernel that is best against every f-divergence, in O(n)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dpopt._types import Matrix, Vector, frozen
from dpopt.privacy.layers import LayeredRows
from dpopt.provenance import versions
from dpopt.public_prior.prior import PublicPrior, public_prior
from dpopt.public_prior.quantise import Maker
from dpopt.public_prior.sampler import SamplingKernel, checked_epsilon


@dataclass(frozen=True, eq=False, repr=False)
class PublicPriorKernel(SamplingKernel):
    """The kernel of Algorithm 1, kept as n numbers.

    With letters by ascending q, s_i = sum_{j >= i} q_j and B_1 = 1,
    g_i = B_i / (e^eps q_i + s_{i+1}) and B_{i+1} = B_i - g_i q_i:
    K_ij = g_{min(i, j)} q_j off the diagonal, K_ii = e^eps g_i q_i.

    Attributes:
        scale: g, letters by ascending prior mass, shape (n,), read-only.
    """

    scale: Vector

    def _apply_sorted(self, p: Vector) -> Vector:
        """Return q_j (sum_{i<j} p_i g_i + g_j (e^eps p_j + sum_{i>j} p_i))."""
        g, q = self.scale, self.prior.masses[self.prior.order]
        earlier = np.zeros_like(p)
        np.cumsum((p * g)[..., :-1], axis=-1, out=earlier[..., 1:])
        later = np.zeros_like(p)
        later[..., :-1] = np.cumsum(p[..., :0:-1], axis=-1)[..., ::-1]
        # e^eps g can be near 1 where g is tiny: first g, then p.
        return q * (earlier + (math.exp(self.epsilon) * g) * p + g * later)

    def _matrix(self) -> Matrix:
        scale = np.empty_like(self.scale)
        scale[self.prior.order] = self.scale
        # g does not increase, so that g_{min(i, j)} is the larger of g_i and g_j.
        found = np.maximum.outer(scale, scale)
        found *= self.prior.masses
        np.fill_diagonal(found, self.diagonal)
        return found

    def _maker(self) -> Maker:
        return staircase_rows

    @staticmethod
    def _floats(prior: PublicPrior, epsilon: float) -> dict[str, Vector]:
        sorted_masses = prior.masses[prior.order].astype(np.longdouble)
        after = np.zeros_like(sorted_masses)
        after[:-1] = np.cumsum(sorted_masses[:0:-1])[::-1]
        ratio, excess = math.exp(epsilon), math.expm1(epsilon)
        below = ratio * sorted_masses + after
        left = np.ones_like(sorted_masses)
        np.cumprod(((excess * sorted_masses + after) / below)[:-1], out=left[1:])
        scale = left / below
        diagonal = np.empty(prior.size)
        diagonal[prior.order] = ratio * scale * sorted_masses
        return {"diagonal": frozen(diagonal), "scale": frozen(scale)}


def minimax_kernel(
    prior: npt.ArrayLike | PublicPrior,
    epsilon: float,
    *,
    letters: Iterable[Hashable] | None = None,
) -> PublicPriorKernel:
    """Return the kernel of Algorithm 1: epsilon-LDP, qK = q, and least worst-case f-divergence.

    sup_p D_f(p || pK) is the least possible for every f at once. It is not the only kernel of
    which this is true; see `leximin_kernel`. For a uniform q it is n-ary randomised response.

    Args:
        prior: q, shape (n,), in any order, all above 0, summing to 1 up to 1e-9; or a
            `PublicPrior`.
        epsilon: in [1e-9, 600], in nats.
        letters: n distinct names; 0..n-1 if None.

    Raises:
        ParameterError: for a prior or an epsilon out of range.

    References:
        Zamanlooy, Diaz, Asoodeh, "Locally Private Sampling with Public Data", Algorithm 1 and
        theorem 2; the closed form of its recursion is ours.

    Example:
        >>> from dpopt import public_prior
        >>> design = public_prior.minimax_kernel([0.05, 0.1, 0.15, 0.2, 0.5], epsilon=1.0)
        >>> round(design.gamma_tv, 4), design.diagonal.round(4).tolist()
        (0.8748, [0.1252, 0.2312, 0.3198, 0.3913, 0.6073])
    """
    q, epsilon = public_prior(prior, letters), checked_epsilon(epsilon)
    floats = PublicPriorKernel._floats(q, epsilon)
    return PublicPriorKernel(prior=q, epsilon=epsilon, provenance=versions(), **floats)


def staircase_rows(masses: list[int], ratio: Fraction, bits: int) -> LayeredRows:
    """Return Algorithm 1 in integers: what is left of T, letter by letter.

    With R_0 = T: w_i = floor(R_i Q_i / (r Q_i + S_{i+1})), diagonal floor(r w_i), R_{i+1} = R_i -
    w_i; the last letter keeps all that is left. A row's rest goes to the later letters by Q.

    Args:
        masses: Q in ascending order.
        ratio: r, above 1.
        bits: T = 2^bits.
    """
    up, down = ratio.numerator, ratio.denominator
    total = sum(masses)
    left, base, extra = 1 << bits, [], []
    for mass, through in zip(masses[:-1], accumulate(masses), strict=False):
        weight = left * mass * down // (up * mass + down * (total - through))
        base.append(weight)
        extra.append(up * weight // down)
        left -= weight
    return LayeredRows(bits, (*base, 0), (*extra, left), tuple(masses), staircase=True)

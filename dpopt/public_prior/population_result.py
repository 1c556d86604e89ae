"""The population's kernel: what it is, what was proved of it, and draws from exactly it."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt._plot import new_axes
from dpopt._types import Json, Matrix, Vector, brief, frozen
from dpopt.lp import Solution
from dpopt.privacy import Certificate, ExactKernel, Guarantee
from dpopt.privacy.vouched import Coherent, Implied
from dpopt.prob import total_variation
from dpopt.public_prior.algorithm import minimax_kernel
from dpopt.public_prior.inputs import counts_of, in_order, own_letters, places_of
from dpopt.public_prior.leximin import leximin_kernel
from dpopt.public_prior.mollifier import laws_over
from dpopt.public_prior.prior import PublicPrior, distributions
from dpopt.public_prior.utility import diagonal_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Released = Hashable | list[Hashable] | npt.NDArray[np.int64]


@dataclass(frozen=True)
class KernelDistances:
    """Total variation between users' laws p and p K, for one kernel.

    Attributes:
        kernel: its name.
        mean: over the users.
        largest: over the users.
        worst_tv: over all laws p: 1 - min_i K_ii.
    """

    kernel: str
    mean: float
    largest: float
    worst_tv: float


@dataclass(frozen=True, eq=False)
class PopulationKernel(Coherent):
    """A kernel designed for a population, its optimality there and its proof of privacy.

    Letters and arrays are in the caller's order.

    Attributes:
        prior: q.
        epsilon: in nats.
        objective: "tv" or "diagonal"; see `population_kernel`.
        slack: how far the worst case may exceed the least possible.
        users: number of users that it was designed for.
        exact: the certified kernel that `release` draws from, integers over a power of two.
        diagonal: its K_ii, shape (n,), read-only.
        value: the objective of the certified kernel.
        bound: lower bound on the objective of any kernel allowed, from the dual vector.
        gap: value - bound: what solver, repair and rounding together may have lost.
        gamma_tv: the least possible worst case (theorem 1).
        drift: TV(q, q K): what repair and rounding left of q K = q.
        solution: the solve behind the bound; duals by block name.
        provenance: versions that made it.
    """

    prior: PublicPrior
    epsilon: float
    objective: str
    slack: float
    users: int
    exact: ExactKernel
    diagonal: Vector
    value: float
    bound: float
    gap: float
    gamma_tv: float
    drift: float
    solution: Solution
    provenance: dict[str, str]

    def _implied(self) -> Iterator[Implied]:
        n = self.prior.size
        yield "exact", (self.exact.inputs, self.exact.outputs, self.exact.pairs), (n, n, None)
        yield "exact", self.exact.guarantee, Guarantee(self.epsilon)
        yield "diagonal", self.diagonal, np.diag(self.exact.matrix())

    def __repr__(self) -> str:
        return brief(self)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0), between any two users."""
        return self.exact.guarantee

    @property
    def certificate(self) -> Certificate:
        """The exact proof, over all pairs of letters."""
        return self.exact.certificate

    @property
    def worst_tv(self) -> float:
        """Largest total variation between p and p K over all p: 1 - min K_ii (lemma 1)."""
        return float(1 - self.diagonal.min())

    def matrix(self) -> Matrix:
        """Return the certified kernel as floats, shape (n, n), read-only; for reading only."""
        return frozen(self.exact.matrix())

    def apply(self, p: npt.ArrayLike) -> Matrix:
        """Return p K for laws p of shape (n,) or (users, n); for reading only.

        Raises:
            ParameterError: for another shape or other values.
        """
        return np.asarray(distributions(p, self.prior.size) @ self.exact.matrix())

    def release(self, own: object) -> Released:
        """Return one private letter for each user's letter, with the system's randomness.

        The law is exactly the letter's row of ``exact``. No seed; Python is not constant-time,
        and timing is outside the guarantee.

        Args:
            own: a letter, or a sequence of letters, one for each user.

        Returns:
            A letter, or as many as there are users: a list of names, or an array of places where
            letters have no names.

        Raises:
            ParameterError: for an unknown letter. That it is unknown is not covered by the
                guarantee: the refusal is for the user alone.
        """
        places, single = places_of(self.prior, own)
        return self._named(self.exact.release(places), single)

    def release_from(self, counts: object) -> Released:
        """Return one private letter for each user's distribution p, with the system's randomness.

        A letter is drawn from p with exactly uniform integers, then one from that letter's row.
        Each user spends epsilon, whatever the counts.

        Args:
            counts: p in proportion, integers or Fractions, shape (n,) or (users, n), at least 0,
                no user without any.

        Raises:
            ParameterError: for another shape or other values; the refusal is for the user alone.
        """
        table, single = counts_of(in_order(counts, self.prior.letters), self.prior.size)
        return self._named(self.exact.release(own_letters(table, secrets.randbelow)), single)

    def simulate(self, own: object, rng: np.random.Generator) -> Released:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        places, single = places_of(self.prior, own)
        return self._named(self.exact.simulate(places, rng), single)

    def report(self, held_out_users: npt.ArrayLike) -> tuple[KernelDistances, ...]:
        """Return distances on users that the kernel was not designed for, beside two others.

        Args:
            held_out_users: laws, shape (users, n). On the users that it was designed for, the
                kernel is better than on others.

        Returns:
            For this kernel ("population"), Algorithm 1 ("minimax") and "leximin".

        Raises:
            ParameterError: for no users, another shape or other values.
        """
        p = np.atleast_2d(laws_over(held_out_users, self.prior.size))
        return (
            _distances("population", p, self.apply(p), self.worst_tv),
            *(
                _distances(name, p, kernel.apply(p), kernel.worst_tv)
                for name, kernel in (
                    ("minimax", minimax_kernel(self.prior, self.epsilon)),
                    ("leximin", leximin_kernel(self.prior, self.epsilon)),
                )
            ),
        )

    def _named(self, found: npt.NDArray[np.int64] | int, single: bool) -> Released:
        places, letters = np.atleast_1d(found), self.prior.letters
        if single:
            return letters[int(places[0])]
        return places if isinstance(letters, range) else [letters[place] for place in places]

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw K_ii against q_i, with lemma 3's bound on it; return the axes."""
        axes = new_axes(ax)
        q, order = self.prior.masses, self.prior.order
        axes.plot(q[order], diagonal_bounds(q, self.epsilon)[order], color="grey", linewidth=1)
        axes.plot(q, self.diagonal, marker="o", markersize=3, linestyle="", label=label)
        axes.set_xlabel("prior mass, $q_i$")
        axes.set_ylabel("probability to keep the letter, $K_{ii}$")
        axes.set_ylim(0.0, 1.0)
        return axes

    def to_dict(self) -> Json:
        """Return the result as plain values; save ``exact`` to certify it again when loaded."""
        return {
            "kernel": type(self).__name__,
            "epsilon": self.epsilon,
            "prior": self.prior.masses.tolist(),
            "objective": self.objective,
            "slack": self.slack,
            "users": self.users,
            "diagonal": self.diagonal.tolist(),
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "gamma_tv": self.gamma_tv,
            "worst_tv": self.worst_tv,
            "drift": self.drift,
            "exact": self.exact.to_dict(),
            "status": str(self.solution.status),
            "backend": self.solution.backend,
            "provenance": self.provenance,
        }


def _distances(name: str, p: Matrix, released: Matrix, worst: float) -> KernelDistances:
    found = total_variation(p, released)
    return KernelDistances(name, float(found.mean()), float(found.max()), worst)

"""The relative mollifier: a user's pmf is projected onto a box around the public distribution.

Husain, Balle, Cranko, Nock, "Local Differential Privacy for Sampling" (AISTATS 2020).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._numbers import exact_text, whole
from dpopt._types import Matrix, Numbers, Vector, frozen
from dpopt.lp import Solution
from dpopt.privacy import Certificate, Problem, exp_lower
from dpopt.privacy.graph import LARGEST_EPSILON
from dpopt.prob import total_variation
from dpopt.public_prior.prior import (
    LEAST_EPSILON,
    Labels,
    PublicLike,
    pmfs_over,
    public_distribution,
)
from dpopt.public_prior.setting import PriorSetting

# Probabilities held at once while users are projected: bounds memory.
_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class Mollifier(PriorSetting):
    """The distribution nearest to a user's in the relative mollifier of a public one.

        minimise   sum_j z[j]
        subject to z[j] >= p[j] - r[j]                              "distance"
                   sum_j r[j] = 1                                   "sum"
                   q[j] e^(-epsilon/2) <= r[j] <= q[j] e^(epsilon/2),  z >= 0

    for all categories j; the optimum is the total variation between p and r. The KL projection
    (`mollify`), in O(n log n), attains it and is the closed form. Any two distributions in the box
    are within a factor of e^epsilon of each other, whatever the users' p. The proof is that the
    integer weights of r are in the box; the release is one category. The setting and a file of the
    design contain p itself, so neither is private. `release` takes the p of another user.

    Attributes:
        public: q, shape (n,), above 0, summing to 1.
        epsilon: in [1e-9, 600], in nats: local privacy of a released category.
        distribution: the user's p, shape (n,), summing to 1; it may hold zeros.
        labels: n distinct names, texts or integers; 0..n-1 if None. As a text, a,b,c.
    """

    kind: ClassVar[str] = "mollifier"

    public: PublicLike
    epsilon: float
    distribution: Numbers
    labels: Labels | None = None

    def __post_init__(self) -> None:
        epsilon = _checks.real("epsilon", self.epsilon, LEAST_EPSILON, LARGEST_EPSILON)
        distribution = frozen(_one_pmf("distribution", self.distribution, self.labelled.size))
        self.keep(epsilon=epsilon, distribution=distribution)

    @classmethod
    def example(cls) -> Self:
        """Return a user who mostly has the rarest of three categories."""
        return cls([0.25, 0.25, 0.5], 1.0, [0.8, 0.2, 0.0])

    @classmethod
    def example_neighbours(cls) -> list[tuple[Any, Any]]:
        """Return pairs of users' distributions: any two users are neighbours."""
        return [(None, [0.0, 0.0, 1.0]), ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])]

    def problem(self) -> Problem:
        """Return the program of appendix A.8, for any number of categories."""
        low, high = _limits(self.labelled.masses, self.epsilon)
        problem, n = Problem("relative mollifier"), self.labelled.size
        problem.add_variables("pmf", n, lower=low, upper=np.minimum(high, 1.0))
        problem.add_variables("shortfall", n, lower=0.0, upper=1.0)
        problem.add_rows("sum", {"pmf": np.ones((1, n))}, lower=1.0, upper=1.0)
        eye = sp.eye_array(n)
        problem.add_rows("distance", {"pmf": eye, "shortfall": eye}, lower=self.distribution)
        problem.minimise({"shortfall": 1.0})
        return problem

    def closed_form(self) -> tuple[int, ...]:
        """Return the KL projection as integer weights."""
        return self.table(mollify(self.labelled, cast(Vector, self.distribution), self.epsilon))

    def point(self, solution: Solution) -> Vector:
        """Return r."""
        return solution["pmf"]

    def table(self, point: Vector) -> tuple[int, ...]:
        """Return r as integer weights in the box that sum to a power of two.

        With a rational h <= e^(epsilon/2) the box is q / h <= r <= q h, so any two distributions in
        it have ratios of at most h^2 <= e^epsilon.
        """
        masses, epsilon = self.labelled.masses, self.epsilon
        # Enough bits that the interval of the rarest category has more than 2^40 integers.
        width = math.log2(float(masses.min())) + math.log2(-math.expm1(-epsilon)) - epsilon
        total = 1 << 64 * math.ceil((40 - width) / 64)
        half, exact = exp_lower(epsilon / 2), [Fraction(mass) for mass in masses.tolist()]
        unit = total / sum(exact)
        limits = [(math.ceil(mass * unit / half), math.floor(mass * unit * half)) for mass in exact]
        values = [Fraction(value) for value in point.tolist()]
        scale = total / sum(values)
        weights = [
            min(max(round(value * scale), low), high)
            for value, (low, high) in zip(values, limits, strict=True)
        ]
        missing = total - sum(weights)
        for index, (low, high) in enumerate(limits):
            change = min(max(missing, low - weights[index]), high - weights[index])
            weights[index] += change
            missing -= change
        return tuple(weights)

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the proof that r is in the box, whose distributions are within e^epsilon."""
        is_weights = isinstance(table, tuple) and all(type(w) is int and w >= 0 for w in table)
        if not is_weights or len(table) != self.labelled.size or not sum(table):
            raise ParameterError(
                f"table must hold {self.labelled.size} weights, not all of them 0."
            )
        exp_half = verify.growth(Fraction(self.epsilon) / 2)
        masses, _ = verify.integer_weights(self.labelled.masses.tolist(), len(table))
        try:
            verdict = verify.decide_box(list(table), masses, exp_half)
        except verify.Refused as refusal:
            raise self.refused(refusal, refusal.at[0] % len(table)) from None
        claim = (
            f"pmf of {len(table)} categories is in the relative mollifier of the prior, where all "
            "pmfs are private from each other"
        )
        return self.proved(verdict, claim, verdict.at[0] % len(table))

    def plain(self, table: tuple[int, ...]) -> Any:  # noqa: ANN401
        """Return the integers as text."""
        return list(map(exact_text, table))

    def read(self, plain: Any) -> tuple[int, ...]:  # noqa: ANN401
        """Return the integers of a file."""
        return tuple(whole(weight) for weight in plain)

    def output_weights(self, table: tuple[int, ...], data: Any) -> Sequence[int]:  # noqa: ANN401
        """Return the integer weights of r; for another user's p, ``data``, of its projection."""
        if data is None:
            return table
        user = replace(self, distribution=_one_pmf("data", data, self.labelled.size))
        weights = user.closed_form()
        user.judge(weights)
        return weights

    def _proof_size(self, table: tuple[int, ...]) -> int:
        """Estimate the entries of rows that a proof reads."""
        return 4 * len(table)

    def _proof_rows(self, table: tuple[int, ...]) -> list[tuple[str, int]]:
        """Return the rows whose sum is the larger of the two lower bounds on the distance.

        Summed over the categories where p is above the box, sum_j z[j] >= sum (p - r) is at least
        the excess of p over the box. Summed over those where p is not below the box, it is at least
        the mass that r must have above p elsewhere.
        """
        del table
        low, high = _limits(self.labelled.masses, self.epsilon)
        p = cast(Vector, self.distribution)
        over, under = np.maximum(0.0, p - high), np.maximum(0.0, low - p)
        if over.sum() >= under.sum():
            categories, limited, side = np.flatnonzero(over), np.flatnonzero(over), "above"
        else:
            categories, limited, side = np.flatnonzero(under == 0.0), np.flatnonzero(under), "below"
        rows = [("distance", category) for category in categories.tolist()]
        return rows + [(side, category) for category in limited.tolist()]

    def value(self, table: tuple[int, ...]) -> float:
        """Return the total variation between p and r."""
        return float(total_variation(cast(Vector, self.distribution), _floats(table)))

    def columns(self, table: tuple[int, ...]) -> Mapping[str, Sequence[Any]]:
        """Return one line per category: its name, q, p and r."""
        return {
            "category": list(self.labelled.labels),
            "public": self.labelled.masses.tolist(),
            "distribution": cast(Vector, self.distribution).tolist(),
            "mollified": _floats(table).tolist(),
        }


def _floats(pmf: Sequence[int]) -> Vector:
    total = sum(pmf)
    return np.array([weight / total for weight in pmf])


def _one_pmf(name: str, pmf: npt.ArrayLike, size: int) -> Vector:
    p = pmfs_over(pmf, size)
    if p.ndim != 1:
        raise ParameterError(f"{name} has shape {p.shape}; it must be ({size},).")
    return p


def mollify(public: PublicLike, pmfs: npt.ArrayLike, epsilon: float) -> Matrix:
    """Return the KL projections of the users' distributions onto the relative epsilon-mollifier.

    argmin KL(p || r) over distributions r with q e^(-epsilon/2) <= r <= q e^(epsilon/2) is
    r(x) = min{max{q(x) e^(-epsilon/2), p(x) / C}, q(x) e^(epsilon/2)} (equation 3), found in
    O(n log n). The result also attains the least total variation, the value of `Mollifier`.

    If the support of p sums to less than 1 even at the upper limit, KL does not determine the
    remaining mass: the categories with p = 0 get it in proportion to q.

    Args:
        public: q, shape (n,), above 0, summing to 1; or a `PublicDistribution`.
        pmfs: p, shape (n,) or (users, n), summing to 1; may hold zeros.
        epsilon: above 0, in nats, at most 600.

    Returns:
        r, of the shape of ``pmfs``, read-only. These are floats: no certificate covers draws from
        them.

    Raises:
        ParameterError: if an argument is out of range.

    Example:
        >>> from dpopt import public_prior
        >>> public_prior.mollify([0.25, 0.25, 0.5], [1.0, 0.0, 0.0], 1.0).round(4).tolist()
        [0.4122, 0.1959, 0.3919]
    """
    q = public_distribution(public).masses
    p = pmfs_over(pmfs, q.size)
    low, high = _limits(q, epsilon)
    batches = np.array_split(p.reshape(-1, q.size), -(-p.size // _CHUNK))
    projected = np.concatenate([_project(batch, q, low, high) for batch in batches])
    return frozen(projected.reshape(p.shape))


def _limits(q: Vector, epsilon: float) -> tuple[Vector, Vector]:
    half = _checks.real("epsilon", epsilon, 0.0, 600.0, open_lower=True) / 2.0
    return q * math.exp(-half), q * math.exp(half)


def _project(p: Matrix, q: Vector, low: Vector, high: Vector) -> Matrix:
    """Return the projections of distributions, shape (users, n): p scaled and clipped to sum to 1.

    A category is at its lower limit for scales up to ``first``, at its upper from ``last`` on; the
    sum is linear in the scale between two of these breakpoints.
    """

    def clipped(scale: Vector) -> Matrix:
        # An infinite scale gives the upper limit.
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(p > 0.0, p * scale[:, None], 0.0)
        return np.clip(scaled, low, high)

    with np.errstate(over="ignore", divide="ignore"):
        first, last = low / p, high / p
    points = np.sort(np.concatenate([first, last], axis=1), axis=1)
    users, count = np.arange(p.shape[0]), points.shape[1]
    # Binary search, for all rows at once, for the last breakpoint where the sum is below 1.
    at = np.full(users.size, -1)
    for step in (1 << bit for bit in reversed(range(count.bit_length()))):
        probe = np.minimum(at + step, count - 1)
        fewer = clipped(points[users, probe]).sum(axis=1) < 1.0
        at = np.where(fewer & (at + step < count), probe, at)
    short = at == count - 1
    scale = np.where(short, np.inf, points[users, np.minimum(at + 1, count - 1)])
    # Up to the next breakpoint the sum is limited + scale * active: solve for the sum 1.
    lowest, highest = first >= scale[:, None], last < scale[:, None]
    active = np.where(lowest | highest, 0.0, p).sum(axis=1)
    limited = np.where(lowest, low, 0.0).sum(axis=1) + np.where(highest, high, 0.0).sum(axis=1)
    np.divide(1.0 - limited, active, out=scale, where=~short & (active > 0.0))
    projected = clipped(scale)
    if np.any(short):
        # The support cannot hold all mass: the other categories share the rest like q.
        absent = p[short] == 0.0
        remaining = 1.0 - np.where(absent, 0.0, projected[short]).sum(axis=1)
        mass = np.maximum(np.where(absent, q, 0.0).sum(axis=1), np.finfo(float).tiny)
        spread = np.clip(q * (remaining / mass)[:, None], low, high)
        projected[short] = np.where(absent, spread, projected[short])
    return projected

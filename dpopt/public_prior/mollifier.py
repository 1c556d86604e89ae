"""The relative mollifier: a user's pmf, moved as little as possible into a box around the prior.

Husain, Balle, Cranko, Nock, "Local Differential Privacy for Sampling" (AISTATS 2020).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks, verify
from dpopt._errors import ParameterError
from dpopt._figure import LIMIT
from dpopt._numbers import exact_text, whole
from dpopt._types import Matrix, Numbers, Vector, frozen
from dpopt.lp import Solution
from dpopt.privacy import Certificate, Problem, exp_lower
from dpopt.privacy.least import Least, least_of_ratio, require_pure
from dpopt.prob import total_variation
from dpopt.public_prior.prior import (
    LARGEST_EPSILON,
    LEAST_EPSILON,
    Labels,
    PublicLike,
    pmfs_over,
    public_distribution,
)
from dpopt.public_prior.setting import PriorSetting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Probabilities held at once while users are projected.
_CHUNK = 1 << 20
# Bits of the room that the rarest category has in the box; a distribution is over 2^bits of whole
# words.
_ROOM, _WORD = 40, 64


@dataclass(frozen=True, eq=False)
class Mollifier(PriorSetting):
    """The distribution nearest to a user's in the relative mollifier of a public one.

        minimise   sum_j z[j]
        subject to z[j] >= p[j] - r[j]                              "distance"
                   sum_j r[j] = 1                                   "sum"
                   q[j] e^(-epsilon/2) <= r[j] <= q[j] e^(epsilon/2),  z >= 0

    for all categories j; the optimum is the total variation between p and r. The projection in KL
    (`mollify`) attains it, in O(n log n), and is the closed form. Any two distributions in the box
    are within a factor of e^epsilon of each other, whatever the users' p. What is proved is that
    the integers of r are in the box; what is released is a category. The setting holds p itself,
    and so does a file of the design: neither is private. Another user's p is given to `release`.

    Attributes:
        public: q, shape (n,), above 0, summing to 1.
        epsilon: in [1e-9, 600], in nats: local privacy of a released category.
        distribution: the user's p, shape (n,), may hold zeros.
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
        """Return a user who holds the rarest of three categories, mostly."""
        return cls([0.25, 0.25, 0.5], 1.0, [0.8, 0.2, 0.0])

    @classmethod
    def example_neighbours(cls) -> list[tuple[Any, Any]]:
        """Return distributions of users, of whom every two are neighbours."""
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
        """Return the projection in KL."""
        return self.table(mollify(self.labelled, cast(Vector, self.distribution), self.epsilon))

    def point(self, solution: Solution) -> Vector:
        """Return r."""
        return solution["pmf"]

    def table(self, point: Vector) -> tuple[int, ...]:
        """Return r as integers in the box whose sum is a power of two."""
        return within_box(point, self.labelled.masses, self.epsilon)

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the proof that r is in the box, and the box within e^epsilon.

        Raises:
            ParameterError: if it is no distribution of the categories.
            NotPrivateError: if it is outside.
        """
        whole = isinstance(table, tuple) and all(type(w) is int and w >= 0 for w in table)
        if not whole or len(table) != self.labelled.size or not sum(table):
            raise ParameterError(
                f"table must hold {self.labelled.size} weights, not all of them 0."
            )
        grown = verify.growth(Fraction(self.epsilon) / 2)
        masses, _ = verify.whole(self.labelled.masses.tolist(), len(table))
        try:
            verdict = verify.decide_box(list(table), masses, grown)
        except verify.Refused as refusal:
            raise self.refused(refusal, refusal.at) from None
        claim = (
            f"pmf of {len(table)} categories is in the relative mollifier of the prior, where all "
            "pmfs are private from each other"
        )
        return self.proved(verdict, claim, verdict.at)

    def plain(self, table: tuple[int, ...]) -> Any:  # noqa: ANN401
        """Return the integers as text."""
        return list(map(exact_text, table))

    def read(self, plain: Any) -> tuple[int, ...]:  # noqa: ANN401
        """Return the integers of a file."""
        return tuple(whole(weight) for weight in plain)

    def spent(self, table: tuple[int, ...], epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon between any two users, whatever their p, for delta = 0.

        Upper end: the largest ratio of what a category can have in the box, next to all others.
        Lower end: the integers of two users, one with this category alone and one with all others.
        """
        require_pure(self.kind, epsilon, delta)
        q, total = self.labelled.masses, sum(table)
        limits = integer_box(q, self.epsilon, total.bit_length() - 1)
        lows, highs = map(sum, zip(*limits, strict=True))
        reach = [
            (max(low, total - highs + high), min(high, total - lows + low)) for low, high in limits
        ]
        category = max(range(len(reach)), key=lambda j: Fraction(reach[j][1], reach[j][0]))
        alone = np.arange(q.size) == category
        users = (alone, q * ~alone / q[~alone].sum()) if q.size > 1 else (alone, alone)
        ends = [self.output_weights(table, p.astype(float))[category] for p in users]
        name, (least, most) = self.labelled.labels[category], reach[category]
        inputs = f"p with most of category {name}", f"p with least of category {name}"
        lower = max(Fraction(1), Fraction(*ends))
        return least_of_ratio(Fraction(most, least), inputs, (category,), lower=lower)

    def output_weights(self, table: tuple[int, ...], data: Any) -> Sequence[int]:  # noqa: ANN401
        """Return the integers of r; of another user's p, those that its projection gives.

        Args:
            table: of this design.
            data: None for the user of the setting, or p of another one, shape (n,).

        Raises:
            ParameterError: for another shape or other values.
        """
        if data is None:
            return table
        other = replace(self, distribution=_one_pmf("data", data, self.labelled.size))
        found = other.closed_form()
        other.judge(found)
        return found

    def _proof_size(self, table: tuple[int, ...]) -> int:
        """Return about how many entries of rows a proof looks at."""
        return 4 * len(table)

    def _proof_rows(self, table: tuple[int, ...]) -> list[tuple[str, int]]:
        """Return the rows that add up to the larger of the two sums of `mollifier_tv`.

        sum_j z[j] >= sum (p - r) over the categories where p is above the box, so at least what p
        has above it there; and over those where p is not below it, so what r has to have more than
        p where it is.
        """
        del table
        p, (low, high) = (
            cast(Vector, self.distribution),
            _limits(self.labelled.masses, self.epsilon),
        )
        over, under = np.maximum(0.0, p - high), np.maximum(0.0, low - p)
        if over.sum() >= under.sum():
            places, limited, side = np.flatnonzero(over), np.flatnonzero(over), "above"
        else:
            places, limited, side = np.flatnonzero(under == 0.0), np.flatnonzero(under), "below"
        rows = [("distance", place) for place in places.tolist()]
        return rows + [(side, place) for place in limited.tolist()]

    def value(self, table: tuple[int, ...]) -> float:
        """Return the total variation between p and r."""
        return float(total_variation(cast(Vector, self.distribution), _floats(table)))

    def draw(self, axes: Axes, table: tuple[int, ...], label: str | None = None) -> None:
        """Draw r between the limits, and p."""
        places = np.arange(self.labelled.size)
        low, high = _limits(self.labelled.masses, self.epsilon)
        limits = axes.vlines(places, low, np.minimum(high, 1.0), color=LIMIT, linewidth=1)
        limits.set_label("allowed")
        axes.plot(places, cast(Vector, self.distribution), "x", color=LIMIT, label="$p$")
        axes.plot(places, _floats(table), "o", label="$r$" if label is None else label)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("category")
        axes.set_ylabel("probability")

    def columns(self, table: tuple[int, ...]) -> Mapping[str, Sequence[Any]]:
        """Return category, prior, p and r, a line for each category."""
        return {
            "category": list(self.labelled.labels),
            "public": self.labelled.masses.tolist(),
            "distribution": cast(Vector, self.distribution).tolist(),
            "mollified": _floats(table).tolist(),
        }


def within_box(pmf: Vector, masses: Vector, epsilon: float) -> tuple[int, ...]:
    """Return a distribution as integers over a power of two, in `integer_box`.

    Each is the nearest in the box; what is then missing from the sum, or too much, is made up by
    categories that have room, from the first on.

    Args:
        pmf: r, shape (n,), near the box.
        masses: q, shape (n,).
        epsilon: in nats.
    """
    # So many that the rarest category has room for more than 2^40 integers.
    width = math.log2(float(masses.min())) + math.log2(-math.expm1(-epsilon)) - epsilon
    bits = _WORD * math.ceil((_ROOM - width) / _WORD)
    limits = integer_box(masses, epsilon, bits)
    total = sum(map(Fraction, pmf.tolist()), Fraction(0))
    weights = []
    for value, (low, high) in zip(pmf.tolist(), limits, strict=True):
        weights.append(min(max(round(Fraction(value) / total * (1 << bits)), low), high))
    missing = (1 << bits) - sum(weights)
    for place, (low, high) in enumerate(limits):
        change = min(max(missing, low - weights[place]), high - weights[place])
        weights[place] += change
        missing -= change
    return tuple(weights)


def integer_box(masses: Vector, epsilon: float, bits: int) -> list[tuple[int, int]]:
    """Return the least and the largest integer over 2^bits for each category of the mollifier.

    With h a rational <= e^(epsilon/2): q / h <= r <= q h, so that h^2 <= e^epsilon bounds the ratio
    of any two distributions.
    """
    half = exp_lower(epsilon / 2)
    exact = [Fraction(mass) for mass in masses.tolist()]
    unit = (1 << bits) / sum(exact)
    return [(math.ceil(mass * unit / half), math.floor(mass * unit * half)) for mass in exact]


def _floats(pmf: Sequence[int]) -> Vector:
    total = sum(pmf)
    return np.array([weight / total for weight in pmf])


def _one_pmf(name: str, pmf: npt.ArrayLike, size: int) -> Vector:
    p = pmfs_over(pmf, size)
    if p.ndim != 1:
        raise ParameterError(f"{name} has shape {p.shape}; it must be ({size},).")
    return p


def mollify(public: PublicLike, pmfs: npt.ArrayLike, epsilon: float) -> Matrix:
    """Return the distributions nearest in KL to the users' within the relative epsilon-mollifier.

    argmin KL(p || r) over distributions r with q e^(-epsilon/2) <= r <= q e^(epsilon/2) is
    r(x) = min{max{q(x) e^(-epsilon/2), p(x) / C}, q(x) e^(epsilon/2)} (equation 3). The sum is
    piecewise linear in 1/C: the piece is found among the 2 n sorted breakpoints and C computed
    from it, in O(n log n), not approached by bisection over C. The result also attains the least
    total variation (`mollifier_tv`).

    Where p is 0 on so much of q that even its support at the upper limit sums to less than 1, KL
    does not tell the rest apart: the categories with p = 0 get it in proportion to q.

    Args:
        public: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        pmfs: p, shape (n,) or (users, n), may hold zeros.
        epsilon: above 0, in nats, at most 600.

    Returns:
        r, of the shape of ``pmfs``, read-only. Floats: a draw from it by floating point is not
        covered by a certificate.

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
    rows = p.reshape(-1, q.size)
    found = np.empty_like(rows)
    step = max(1, _CHUNK // q.size)
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        found[part] = _project(rows[part], q, low, high)
    return frozen(found.reshape(p.shape))


def mollifier_tv(public: PublicLike, pmfs: npt.ArrayLike, epsilon: float) -> Vector:
    """Return the least total variation between each user's distribution and the relative mollifier.

    max{sum_x (q(x) e^(-epsilon/2) - p(x))_+, sum_x (p(x) - q(x) e^(epsilon/2))_+}, the value of
    the program of `Mollifier`: each sum is forced on any distribution within the limits, and what
    is left over can be moved without raising the larger one.

    Args:
        public: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        pmfs: p, shape (n,) or (users, n).
        epsilon: above 0, in nats, at most 600.

    Returns:
        Shape () or (users,), read-only.

    Raises:
        ParameterError: if an argument is out of range.
    """
    q = public_distribution(public).masses
    p = pmfs_over(pmfs, q.size)
    low, high = _limits(q, epsilon)
    below = np.maximum(0.0, low - p).sum(axis=-1)
    above = np.maximum(0.0, p - high).sum(axis=-1)
    return frozen(np.maximum(below, above))


def _limits(q: Vector, epsilon: float) -> tuple[Vector, Vector]:
    half = _checks.real("epsilon", epsilon, 0.0, 600.0, open_lower=True) / 2.0
    return q * math.exp(-half), q * math.exp(half)


def _project(p: Matrix, q: Vector, low: Vector, high: Vector) -> Matrix:
    """Return the projections of distributions, shape (users, n)."""
    scale, held = _scale(p, low, high)
    found = _clipped(p, scale, low, high)
    if np.any(held):
        empty = p[held] == 0.0
        rest = 1.0 - np.where(empty, 0.0, found[held]).sum(axis=1)
        share = np.maximum(np.where(empty, q, 0.0).sum(axis=1), np.finfo(float).tiny)
        spread = np.clip(q * (rest / share)[:, None], low, high)
        found[held] = np.where(empty, spread, found[held])
    return found


def _clipped(p: Matrix, scale: Vector, low: Vector, high: Vector) -> Matrix:
    """Return p times the scale of its row, within the limits; an infinite scale means high."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(p > 0.0, p * scale[:, None], 0.0)
    return np.clip(scaled, low, high)


def _scale(p: Matrix, low: Vector, high: Vector) -> tuple[Vector, npt.NDArray[np.bool_]]:
    """Return 1/C for each row, and the rows that sum to less than 1 whatever the scale."""
    with np.errstate(over="ignore", divide="ignore"):
        first, last = low / p, high / p
    points = np.sort(np.concatenate([first, last], axis=1), axis=1)
    users = np.arange(p.shape[0])
    left, right = np.zeros_like(users), np.full_like(users, points.shape[1])
    # Search for the first breakpoint where the sum reaches 1; each sum is of positive terms.
    while np.any(left < right):
        middle = np.minimum((left + right) // 2, points.shape[1] - 1)
        reached = _clipped(p, points[users, middle], low, high).sum(axis=1) >= 1.0
        open_rows = left < right
        right = np.where(open_rows & reached, middle, right)
        left = np.where(open_rows & ~reached, middle + 1, left)
    held = left == points.shape[1]
    point = points[users, np.minimum(left, points.shape[1] - 1)]
    lowest, highest = first >= point[:, None], last < point[:, None]
    active = np.where(lowest | highest, 0.0, p).sum(axis=1)
    limited = np.where(lowest, low, 0.0).sum(axis=1) + np.where(highest, high, 0.0).sum(axis=1)
    inside = ~held & (active > 0.0)
    scale = np.where(held, np.inf, point)
    np.divide(1.0 - limited, active, out=scale, where=inside)
    return scale, held

"""Settings that decide from votes, by private voters or over C classes, and counts of votes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits, float_up
from dpopt._types import Vector
from dpopt.budget import Budgeted
from dpopt.lp import Solution
from dpopt.privacy import Guarantee, Problem
from dpopt.privacy.release import Source
from dpopt.table import Losses, SortedHistograms, Table
from dpopt.table.histograms import sorted_histograms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
import numbers
from dataclasses import dataclass

import numpy.typing as npt

from dpopt import verify
from dpopt._numbers import shown, typed_rational
from dpopt._types import frozen
from dpopt.data.tally import Tally
from dpopt.table.histograms import checked_counts

IntTable = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of votes for each class: data of a plurality, instead of the votes themselves.

    Attributes:
        counts: integers that sum to K for each query, shape (C,) or (queries, C).
    """

    counts: npt.ArrayLike


def counted(data: Any, voters: int, classes: int) -> tuple[IntTable, bool]:  # noqa: ANN401
    """Return the counts of each query, shape (queries, C), and whether there is only one.

    The data are votes, shape (K,) or (queries, K); or `Counts`; or a `Tally`, those of one query.

    Raises:
        ParameterError: for another shape, other values or another sum; none is shown.
    """
    if not isinstance(data, Counts | Tally):
        return count_queries(data, voters, classes)
    return checked_counts(data.counts, voters, classes)


def count_queries(votes: npt.ArrayLike, voters: int, classes: int) -> tuple[IntTable, bool]:
    """Count the votes for each class on each query."""
    array = _checks.array("votes", votes)
    if array.ndim not in (1, 2) or array.shape[-1] != voters:
        raise ParameterError(
            f"votes has shape {array.shape}; it must be ({voters},) or (queries, {voters})."
        )
    table = np.atleast_2d(array)
    counts = np.empty((len(table), classes), dtype=np.int64)
    # Votes read at once: they stay in a core's cache.
    step = max(1, (1 << 16) // voters)
    for start in range(0, max(1, len(table)), step):
        batch = as_integers(table[start : start + step], classes - 1)
        if batch is None:
            allowed = "0 and 1" if classes == 2 else f"0..{classes - 1}"
            raise ParameterError(f"votes holds a value other than {allowed}.")
        counts[start : start + step] = count_votes(batch, classes)
    return counts, array.ndim == 1


def count_votes(votes: IntTable, classes: int) -> IntTable:
    """Return the counts of votes, shape (queries, C), for votes of shape (queries, K)."""
    queries, voters = votes.shape
    if classes == 2:
        # A sum over voters is several times as fast as a histogram.
        ones = np.einsum("qk->q", votes, dtype=np.int64)
        return np.stack([voters - ones, ones], axis=1)
    # Flat index of (query, class).
    cells = votes + classes * np.arange(queries)[:, None]
    return np.bincount(cells.ravel(), minlength=queries * classes).reshape(queries, classes)


def as_integers(array: npt.NDArray[np.generic], largest: int) -> IntTable | None:
    """Return an array as integers if all its values are integers in 0..largest, else None."""
    if array.dtype.kind in "iu":
        # Viewed as unsigned, negative numbers become large.
        unsigned = array.view(array.dtype.str.replace("i", "u"))
        fits = not array.size or int(unsigned.max()) <= largest
        return array.astype(np.int64, copy=False) if fits else None
    numeric = array.dtype.kind in "bf" or (
        array.dtype == object and all(isinstance(v, numbers.Real | np.bool_) for v in array.flat)
    )
    if not numeric or not np.all((array >= 0) & (array <= largest)):  # pyright: ignore[reportOperatorIssue]
        return None
    integers = array.astype(np.int64)
    return integers if np.all(integers == array) else None


def check_prior(prior: object, classes: int) -> str:
    """Return a prior of the votes, its numbers as floats: dirichlet:1/2 becomes dirichlet:0.5."""
    text = prior if isinstance(prior, str) else ""
    try:
        name, colon, numbers = text.partition(":")
        floats = [digits(float(typed_rational(text))) for text in numbers.split(",") if colon]
        text = name + colon + ",".join(floats)
    except (ArithmeticError, ValueError):
        text = ""
    if not verify.is_prior_of_votes(text, classes):
        raise ParameterError(
            f"prior is {shown(prior)}; it must be 'uniform', 'dirichlet:A' with A in "
            f"[0.0001, 1e+06], or 'point:P,...' with {classes} probabilities that add up to 1."
        )
    return text


def votes_pmf(prior: str, inputs: SortedHistograms) -> Vector:
    """Return a prior's probability of each sorted histogram, shape (histograms,), read-only."""
    try:
        ballots = verify.Ballots(inputs.records, inputs.categories, None)
        return frozen([float(mass) for mass in ballots.chances(prior)])
    except verify.Malformed as error:
        raise ParameterError(
            f"prior is {shown(prior)}; its distribution of the histograms of "
            f"{inputs.records} votes over {inputs.categories} classes is not computed: {error}."
        ) from None


class PrivateVoters(Budgeted):
    """K voters, each (epsilon, Delta)-DP, whose joint answer is to be (m epsilon, delta)-DP.

    Attributes:
        voters: K.
        epsilon: of each voter.
        allowance: m; None for several releases.
        voter_delta: Delta, of each voter.
        delta: of the answer.
    """

    voters: int
    epsilon: float
    allowance: float
    voter_delta: float
    delta: float

    def keep_voters(self, voters: int) -> None:
        """Set the checked fields."""
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, open_lower=True)
        of_one = {"allowance": self.allowance, "delta": self.delta, "voter_delta": self.voter_delta}
        allowance = self.allowance
        if not self.keep_total("allowance", **of_one):
            allowance = _checks.real("allowance", allowance, 0.0, voters, open_lower=True)
        # In nats, so that e^(m epsilon) stays a finite float.
        if max(allowance or 1.0, 1.0) * epsilon > 600.0:
            raise ParameterError(
                f"epsilon is {digits(epsilon)} and allowance {allowance}; epsilon and their "
                "product must be at most 600."
            )
        deltas = {
            name: _checks.real(name, getattr(self, name), 0.0, 1.0, open_upper=True)
            for name in ("voter_delta", "delta")
        }
        self.keep(voters=voters, epsilon=epsilon, allowance=allowance, **deltas)

    @property
    def exponent(self) -> Fraction:
        """The exponent m epsilon, exactly."""
        return Fraction(self.allowance) * Fraction(self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """(m epsilon, delta), rounded up; or what all releases spend together."""
        if self.releases > 1:
            return self.total
        return Guarantee(float_up(self.exponent), self.delta)

    @property
    def behind(self) -> tuple[Guarantee, int]:
        """(epsilon, Delta) of each voter, and K."""
        return Guarantee(self.epsilon, self.voter_delta), self.voters

    @property
    def _unlimited(self) -> float:
        """Every function of the votes is (K epsilon)-DP."""
        return self.voters * self.epsilon

    def one_release(self, guarantee: Guarantee) -> Self:
        """Return the setting of one release with a guarantee of its own."""
        allowance = min(guarantee.epsilon / self.epsilon, self.voters)
        return self.alone(allowance=allowance, delta=guarantee.delta)

    @property
    def one_query(self) -> Self:
        """The setting of one query; of several releases, its target is not used."""
        return self if self.releases == 1 else self.one_release(Guarantee(self._unlimited))

    def under(self, curve: Sequence[Guarantee]) -> Problem:
        """Return the program of one release that has every guarantee of a curve.

        Its rows are those of one release for each guarantee that does not hold by itself.
        """
        limits = [point for point in curve if point.epsilon < self._unlimited]
        return self._program([self.one_release(point) for point in limits])

    @abstractmethod
    def _program(self, targets: Sequence[Any]) -> Problem:
        """Return the program over the privacy rows of all targets."""


class ClassSetting(Budgeted):
    """A setting with a table k[lambda, c] over sorted histograms; each query draws one class.

    Attributes:
        classes: C.
        rule: "optimal" solves the program; any other rule replaces it.
        prior: of the counts, as text.
    """

    classes: int
    rule: Any
    prior: str

    @property
    @abstractmethod
    def votes(self) -> int:
        """K, the number of votes on each query."""

    @property
    def domain(self) -> SortedHistograms:
        """The sorted histograms of K votes over C classes."""
        return sorted_histograms(self.votes, self.classes)

    @cached_property
    def occurring(self) -> Vector:
        """The prior's probability of each sorted histogram, shape (histograms,), read-only."""
        return votes_pmf(self.prior, self.domain)

    def losses_of(self, loss: str, mean: bool) -> Losses:
        """Return the losses: the largest count minus the class's own, or for "error" at most 1.

        Their value is the mean under the prior, or the largest over histograms.
        """
        tops, counts = self.domain.histograms[self.domain.rows, 0], self.domain.values
        gaps = (tops - counts).astype(np.float64)
        costs = np.minimum(gaps, 1.0) if loss == "error" else gaps
        return Losses(costs, self.occurring if mean else None)

    def require_optimal(self) -> None:
        """Raise `ParameterError` for a rule, of several releases."""
        if self.rule != "optimal" and self.releases > 1:
            raise ParameterError(
                f"rule is {self.rule!r} and releases is {self.releases}; several releases are of "
                "rule 'optimal'."
            )

    def require_program(self) -> None:
        """Raise `ParameterError` for a rule, or several releases: they have no single program."""
        self.refuse_several()
        if self.rule != "optimal":
            raise ParameterError(f"rule is {self.rule!r}, which is no program; name no backend.")

    def bound(self, table: Any, solution: Solution | None) -> float | None:  # noqa: ANN401
        """Return the dual bound; None for a rule, which need not be optimal."""
        del table
        return None if solution is None else solution.bound

    def as_point(self, values: Vector) -> Vector:
        """Return k[lambda, c] by variable of `domain`, without solver noise up to 1e-6."""
        inputs = self.domain
        if values.shape != (inputs.size,) or not np.all(np.isfinite(values)):
            raise ParameterError(
                f"point has shape {values.shape}; it must be ({inputs.size},), one probability for "
                "each count of each sorted histogram."
            )
        # Solver noise that is removed from a probability.
        if np.any(values < -1e-6) or np.any(np.abs(inputs.sums @ values - 1.0) > 1e-6):
            raise ParameterError(
                "point must hold probabilities that add up to 1 for each sorted histogram."
            )
        return np.maximum(values, 0.0)

    def counted(self, data: Any) -> tuple[IntTable, bool]:  # noqa: ANN401
        """Return the counts of each query, shape (queries, C), and whether there is only one.

        The data are votes in 0..C-1, shape (K,) or (queries, K); or `dpopt.plurality.Counts` of
        them, or a `dpopt.roo.Tally`. A refusal depends on them, and is not covered by the
        guarantee: map every vote to a class beforehand.
        """
        return counted(data, self.votes, self.classes)

    def output_weights(self, table: Any, data: Any) -> list[int]:  # noqa: ANN401
        """Return the distribution of the class for one query, as integer weights, shape (C,)."""
        rows, single = self.counted(data)
        if not single:
            raise ParameterError(f"data have {len(rows)} queries; a distribution is that of one.")
        return table.row(rows[0])

    def drawn(self, table: Any, data: Any, source: Source) -> Any:  # noqa: ANN401
        """Return a class in 0..C-1 for one query, an array of them for several, drawn exactly."""
        rows, single = self.counted(data)
        labels = table.drawn(rows, source)[0]
        return int(labels[0]) if single else labels

    def release_count(self, table: Any, data: Any) -> int:  # noqa: ANN401
        """Return the number of queries, each of which has one output."""
        del table
        return len(self.counted(data)[0])

    def columns(self, table: Table) -> Mapping[str, Sequence[Any]]:
        """Return one line per variable: the counts of all classes, a count, and its probability."""
        inputs = self.domain
        names = [" ".join(map(str, counts)) for counts in inputs.listed()]
        return {
            "counts": [names[row] for row in inputs.rows.tolist()],
            "count": inputs.values.tolist(),
            "classes": inputs.counts.tolist(),
            "probability": table.probabilities.tolist(),
        }

    def draw(self, axes: Axes, table: Any, label: str | None = None) -> None:  # noqa: ANN401
        """Draw the probability of a class of the largest count against its lead over the second."""
        if not isinstance(table, Table):
            super().draw(axes, table, label)
            return
        inputs = self.domain
        lead = inputs.histograms[:, 0] - inputs.histograms[:, 1]
        right, leads = table.masses[inputs.starts[:-1]], np.unique(lead)
        # The offset gives a mean to leads whose histograms all have probability 0.
        weights = self.occurring + 1e-300
        means = [np.average(right[lead == at], weights=weights[lead == at]) for at in leads]
        low, high = ([end(right[lead == at]) for at in leads] for end in (np.min, np.max))
        line = axes.plot(leads, means, marker="o", markersize=3, clip_on=False, label=label)[0]
        axes.fill_between(leads, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        axes.set_xlabel("lead of the largest count")
        axes.set_ylabel("probability of a largest class")
        axes.set_ylim(-0.03, 1.03)
        axes.locator_params(axis="x", integer=True)

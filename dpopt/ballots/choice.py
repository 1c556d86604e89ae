"""Settings of a choice among C classes from the counts of K votes: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpopt._errors import ParameterError
from dpopt._types import Vector, frozen
from dpopt.ballots.priors import VotePrior
from dpopt.ballots.votes import IntTable, counted
from dpopt.lp import Solution
from dpopt.privacy.release import Source
from dpopt.shape import Setting
from dpopt.table import Losses, SortedHistograms, Table
from dpopt.table.histograms import sorted_histograms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What a solver leaves of noise in a probability.
_NOISE = 1e-6


class ClassSetting(Setting):
    """A table k[lambda, c] over sorted histograms, which a class is drawn from for each query.

    Attributes:
        classes: C.
        rule: "optimal" is the program's; any other takes its place.
        prior: of the counts; see `VotePrior`.
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
        """The sorted histograms.

        Raises:
            ParameterError: if they are too many to be listed.
        """
        return sorted_histograms(self.votes, self.classes)

    @cached_property
    def occurring(self) -> Vector:
        """The prior's probability of each sorted histogram, shape (histograms,), read-only."""
        return frozen(VotePrior.of(self.prior, self.classes).pmf(self.domain))

    def losses_of(self, loss: str, mean: bool) -> Losses:
        """Return by how much the largest count is above a class's, of "error" at most 1.

        In the mean under the prior, or of the worst histogram.
        """
        tops, counts = self.domain.histograms[self.domain.rows, 0], self.domain.values
        gaps = (tops - counts).astype(np.float64)
        costs = np.minimum(gaps, 1.0) if loss == "error" else gaps
        return Losses(costs, self.occurring if mean else None)

    def require_program(self) -> None:
        """Refuse a rule, which has no program."""
        if self.rule != "optimal":
            raise ParameterError(f"rule is {self.rule!r}, which is no program; name no backend.")

    def bound(self, table: Any, solution: Solution | None) -> float | None:  # noqa: ANN401
        """Return the bound of the dual vector; None of a rule, which need not be the optimum."""
        del table
        return None if solution is None else solution.bound

    def as_point(self, values: Vector) -> Vector:
        """Return probabilities of one class of each variable of `inputs`, without 1e-6 of noise.

        Raises:
            ParameterError: for another shape, or probabilities that do not add up to 1.
        """
        inputs = self.domain
        if values.shape != (inputs.size,) or not np.all(np.isfinite(values)):
            raise ParameterError(
                f"point has shape {values.shape}; it must be ({inputs.size},), one probability for "
                "each count of each sorted histogram."
            )
        if np.any(values < -_NOISE) or np.any(np.abs(inputs.sums @ values - 1.0) > _NOISE):
            raise ParameterError(
                "point must hold probabilities that add up to 1 for each sorted histogram."
            )
        return np.maximum(values, 0.0)

    def counted(self, data: Any) -> tuple[IntTable, bool]:  # noqa: ANN401
        """Return the counts of each query, shape (queries, C), and whether there is but one.

        Args:
            data: votes in 0..C-1, shape (K,) or (queries, K); or `dpopt.plurality.Counts` of them,
                or a `dpopt.roo.Tally`.

        Raises:
            ParameterError: for another shape, other values or another sum; none is shown. Which it
                is depends on the data, and is not covered by the guarantee: make a class of each
                vote before.
        """
        return counted(data, self.votes, self.classes)

    def output_weights(self, table: Any, data: Any) -> list[int]:  # noqa: ANN401
        """Return the distribution of the class for one query, in the order of the classes.

        Raises:
            ParameterError: for data as `counted`, or of several queries.
        """
        rows, single = self.counted(data)
        if not single:
            raise ParameterError(f"data have {len(rows)} queries; a distribution is that of one.")
        return table.row(rows[0])

    def drawn(self, table: Any, data: Any, source: Source) -> Any:  # noqa: ANN401
        """Return a class in 0..C-1 for one query, an array of them for several, drawn exactly."""
        rows, single = self.counted(data)
        labels = table.drawn(rows, source)[0]
        return int(labels[0]) if single else labels

    def releases(self, table: Any, data: Any) -> int:  # noqa: ANN401
        """Return the number of queries, each of which spends the whole guarantee."""
        del table
        return len(self.counted(data)[0])

    def columns(self, table: Table) -> Mapping[str, Sequence[Any]]:
        """Return the probability of a class by its count and the counts of all, a line for each."""
        inputs = self.domain
        names = [" ".join(map(str, state)) for state in inputs.listed()]
        return {
            "counts": [names[row] for row in inputs.rows.tolist()],
            "count": inputs.values.tolist(),
            "classes": inputs.counts.tolist(),
            "probability": table.probabilities.tolist(),
        }

    def draw(self, axes: Axes, table: Any, label: str | None = None) -> None:  # noqa: ANN401
        """Draw the probability that a class of the largest count is output, against its lead.

        The line is the mean over the prior, the band from the least to the largest of all counts.
        """
        if not isinstance(table, Table):
            super().draw(axes, table, label)
            return
        inputs = self.domain
        lead = inputs.histograms[:, 0] - inputs.histograms[:, 1]
        right, leads = table.masses[inputs.starts[:-1]], np.unique(lead)
        # A histogram that never occurs counts where there is no other.
        weights = self.occurring + 1e-300
        means = [np.average(right[lead == at], weights=weights[lead == at]) for at in leads]
        low, high = ([end(right[lead == at]) for at in leads] for end in (np.min, np.max))
        line = axes.plot(leads, means, marker="o", markersize=3, clip_on=False, label=label)[0]
        axes.fill_between(leads, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        axes.set_xlabel("lead of the largest count")
        axes.set_ylabel("probability of a largest class")
        axes.set_ylim(-0.03, 1.03)
        axes.locator_params(axis="x", integer=True)

"""A batch of private labels, and what is checked and charged before one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dpopt._figure import new_axes
from dpopt._page import result_page
from dpopt._types import IntVector, Json, brief
from dpopt.ballots.spending import LabelSpending
from dpopt.files import write_json
from dpopt.privacy import Guarantee
from dpopt.provenance import versions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.shape import Design

_CURVE_POINTS = 512

D = TypeVar("D", bound="Design", covariant=True)


@dataclass(frozen=True)
class VoteBatch(Generic[D]):
    """Private labels of a batch of queries, and what they spend.

    Attributes:
        labels: 0..C-1 for each query, shape (queries,), read-only.
        design: the certified mechanism that they were drawn with.
        spending: how queries compose.
        answered: number of queries answered before this batch, over the same data.
        budget: what all of them were allowed to spend; None if there was no limit.
    """

    labels: IntVector
    design: D
    spending: LabelSpending
    answered: int = 0
    budget: Guarantee | None = None

    def __repr__(self) -> str:
        return brief(self)

    @property
    def queries(self) -> int:
        """Number of queries in this batch."""
        return self.labels.size

    def columns(self) -> dict[str, Sequence[int]]:
        """Return query and label as one tidy table; queries are counted from the first ever."""
        first = self.answered
        return {
            "query": list(range(first, first + self.queries)),
            "label": self.labels.tolist(),
        }

    @property
    def per_query(self) -> Guarantee:
        """What one query spends."""
        return self.spending.per_query

    @property
    def compositions(self) -> dict[str, Guarantee]:
        """Every guarantee proved for all queries so far; see `LabelSpending`."""
        return self.spending.compositions(self.answered + self.queries)

    @property
    def composition(self) -> str:
        """Name of the one that `total` is: the smallest epsilon, within the budget if given."""
        return self.spending.total(self.answered + self.queries, self.budget)[0]

    @property
    def total(self) -> Guarantee:
        """What all queries so far spend together."""
        return self.compositions[self.composition]

    def _repr_html_(self) -> str:
        """Return picture, statement and facts, for notebooks."""
        count, total = self.answered + self.queries, self.total
        statement = (
            f"{count:,} queries so far spend ({total.epsilon:.6g}, {total.delta:.6g})-DP together, "
            f"by {self.composition} composition."
        )
        facts = {
            "queries": self.queries,
            "labels": _counted(self.labels),
            "per query": self.per_query,
            "budget": self.budget,
        }
        return result_page(type(self).__name__, statement, self.design.private, facts, self.plot)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the total epsilon against the number of queries so far, for each composition."""
        axes = new_axes(ax)
        last = self.answered + self.queries
        counts = np.unique(np.linspace(1, last, min(last, _CURVE_POINTS)).astype(np.int64))
        spends = {int(count): self.spending.compositions(int(count)) for count in counts}
        for name in spends[1]:
            spent = [(count, by[name].epsilon) for count, by in spends.items() if name in by]
            marker = "o" if len(spent) == 1 else None
            axes.plot(*zip(*spent, strict=True), marker=marker, label=name)
        axes.set_xlabel("number of queries")
        axes.set_ylabel(r"total $\varepsilon$ (nats)")
        axes.set_ylim(bottom=0.0)
        axes.legend()
        return axes

    def to_dict(self) -> Json:
        """Return labels, design and guarantees as plain values, ready for JSON."""
        return {
            "labels": self.labels.tolist(),
            "queries": self.queries,
            "answered": self.answered,
            **self.spending.facts(),
            "per_query": asdict(self.per_query),
            "compositions": {name: asdict(spent) for name, spent in self.compositions.items()},
            "composition": self.composition,
            "total": asdict(self.total),
            "budget": None if self.budget is None else asdict(self.budget),
            "design": self.design.to_dict(),
        }

    def save(self, path: str | Path) -> None:
        """Write the batch to a JSON file. It holds labels, counts and no votes.

        Raises:
            ParameterError: if the file cannot be written.
        """
        body = {"format": "dpopt votes", **self.to_dict(), "provenance": versions()}
        write_json(Path(path), body)


def drawn(
    design: D,
    data: Mapping[str, npt.ArrayLike],
    spending: LabelSpending,
    *,
    answered: int,
    budget: Guarantee | None,
) -> VoteBatch[D]:
    """Return the labels of a batch that is known to be affordable.

    Args:
        design: certified.
        data: what it releases from, a row for each query, by the name of release's parameter.
        spending: how queries compose.
        answered: number of queries answered earlier.
        budget: see `VoteBatch`.

    Raises:
        NotPrivateError: if the design has no certificate.
    """
    design.require_private()
    labels = np.array(design.release(**data), dtype=np.int64)
    labels = labels.reshape(-1)
    labels.setflags(write=False)
    return VoteBatch(labels, design, spending, answered, budget)


def _counted(labels: IntVector) -> str:
    """Return how often each label was drawn, the most frequent first."""
    drawn, times = np.unique(labels, return_counts=True)
    order = np.argsort(-times, kind="stable")
    return ", ".join(f"{drawn[at]} ({times[at]:,} times)" for at in order)

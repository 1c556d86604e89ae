"""Published statements that are false, each with a file that `dpopt.verify` accepts alone.

`experiments.refuted.record` says what one is; each paper's stand in a module of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.refuted import darrm, obscuring, smoothed
from experiments.refuted.record import Refutation
from experiments.registry import Comparison


def refutations() -> tuple[Refutation, ...]:
    """Return all of them, in the order of the papers' names."""
    return (*darrm.REFUTATIONS, *obscuring.REFUTATIONS, *smoothed.REFUTATIONS)


def refutations_of(
    paper: str, experiment: str, comparisons: Sequence[Comparison]
) -> tuple[Refutation, ...]:
    """Return those that belong to an item, and those that prove one of its comparisons."""
    false = ("refuted", "misprint")
    judged = {said.identifier for said in comparisons if said.verdict in false}
    return tuple(
        each
        for each in refutations()
        if each.paper == paper and (each.experiment == experiment or each.judges in judged)
    )

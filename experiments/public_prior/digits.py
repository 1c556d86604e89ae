"""Figure 4 on data that come with a library: the ink of handwritten digits, a group each."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le
from matplotlib.figure import Figure

from experiments.data.groups import DIGITS, NAME, load_ink
from experiments.parameters import Several, configuration
from experiments.public_prior.common import OUTPERFORMS, Epsilon, drawn, measured, of_bound
from experiments.registry import Comparison, Outcome, Table, experiment
from experiments.verdicts import not_comparable

# Categories are 4 x 4 cells of an image.
_SIDE = 4


@configuration
class Config:
    """Parameters of the figure; epsilon as in Figure 4.

    Attributes:
        epsilon: one or more, in nats; a panel for each.
        digits: the groups of users, among 0..9.
        prior: of a group: "total" of its ink, or "average" of its images' pmfs.
    """

    epsilon: Several[Epsilon] = (4.0,)
    digits: Several[Annotated[int, Ge(0), Le(9)]] = DIGITS
    prior: Literal["total", "average"] = "total"


@experiment("prior-digits", config=Config(epsilon=(2.0, 4.0, 8.0)), quick=Config())
def run(config: Config) -> Outcome:
    """Measure every method on the images of every digit."""
    groups = load_ink(_SIDE, config.digits)
    table = measured(groups, config.prior, config.epsilon, NAME, "digit")
    compared = (of_bound(table, "digit"), of_sampler(table))
    return Outcome({"distances": table}, compared, data=NAME)


def of_sampler(table: Table) -> Comparison:
    """Compare the paper's conclusion with images, which are not its data."""
    ours, other = (table.select(method=method).records for method in ("minimax", "mollifier-kl"))
    largest, mean = (
        sum(a[column] < b[column] for a, b in zip(ours, other, strict=True))
        for column in ("largest", "mean")
    )
    cases = "digits" if len(set(table.column("epsilon"))) == 1 else "pairs of digit and epsilon"
    return not_comparable(
        OUTPERFORMS,
        f"Of {len(ours)} {cases} Algorithm 1 has the smaller largest TV in {largest}, and the "
        f"smaller mean in {mean}.",
        "every image, double precision",
        why="the data are images of digits, which the paper does not use",
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the largest distance of each method for each digit as bars."""
    return drawn(outcome.tables["distances"], "digit", f"digit, in {NAME}")

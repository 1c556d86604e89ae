"""Figure 4 on data that come with a library: the ink of handwritten digits, a group each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from experiments.data.groups import PRIORS
from experiments.data.images import DIGITS, NAME, SIDES, load_ink
from experiments.public_prior.common import PAPER, require, require_epsilons
from experiments.public_prior.grouped import MATHEMATICS, drawn, measured, of_bound, seen
from experiments.registry import Comparison, Outcome, Table, advance, experiment
from experiments.verdicts import not_comparable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OUTPERFORMS = (
    "Our experiments consistently demonstrate that our sampler significantly outperforms the "
    "state-of-the-art approach (section 5)."
)


@dataclass(frozen=True)
class Config:
    """Parameters of the figure; epsilon as in Figure 4.

    Attributes:
        epsilon: one or more, in nats; a panel for each.
        side: the letters are side x side cells of an image; 1, 2, 4 or 8.
        digits: the groups of users, among 0..9.
        prior: of a group: "total" of its ink, or "average" of its images' laws.
    """

    epsilon: tuple[float, ...] = (4.0,)
    side: int = 4
    digits: tuple[int, ...] = DIGITS
    prior: Literal["total", "average"] = "total"

    def __post_init__(self) -> None:
        require_epsilons(self.epsilon)
        require("side", self.side, f"one of {', '.join(map(str, SIDES))}", holds=self.side in SIDES)
        fine = bool(self.digits) and set(self.digits) <= set(DIGITS)
        fine = fine and len(set(self.digits)) == len(self.digits)
        require("digits", self.digits, "some of 0..9, none of them twice", holds=fine)
        require("prior", self.prior, f"one of {', '.join(PRIORS)}", holds=self.prior in PRIORS)


@experiment(
    "prior-digits",
    PAPER,
    "Figure 4's shape on digits",
    "Largest total variation over the images of each digit, epsilon = 4: p is where the "
    "ink of an image lies, over 4 x 4 cells, q the same over all images of the digit. The data "
    "come with scikit-learn; the paper has MovieLens 1M.",
    config=Config(epsilon=(2.0, 4.0, 8.0)),
    quick=Config(),
    mathematics=MATHEMATICS,
)
def run(config: Config) -> Outcome:
    """Measure every method on the images of every digit."""
    groups = load_ink(config.side, config.digits)
    advance()
    rows = measured(groups, config.prior, config.epsilon, NAME, "digit")
    advance()
    table = Table.of(
        f"Total variation between images' laws of ink and their sampling laws, {NAME}: largest and "
        "mean over the images of each digit, with the least worst case over all laws.",
        rows,
    )
    findings = seen(table, "digit", "digits")
    compared = (of_bound(table, "digit"), of_sampler(table))
    return Outcome({"distances": table}, tuple(findings), compared, data=NAME)


def of_sampler(table: Table) -> Comparison:
    """Put the paper's conclusion beside the images, which are not its data."""
    ours, other = (table.select(method=method).records for method in ("minimax", "mollifier-kl"))
    largest, mean = (
        sum(a[column] < b[column] for a, b in zip(ours, other, strict=True))
        for column in ("largest", "mean")
    )
    cases = "digits" if len(set(table.column("epsilon"))) == 1 else "pairs of digit and epsilon"
    return not_comparable(
        _OUTPERFORMS,
        f"Of {len(ours)} {cases} Algorithm 1 has the smaller largest TV in {largest}, and the "
        f"smaller mean in {mean}.",
        "every image, double precision",
        why="the data are images of digits, which the paper does not use",
    )


@run.figure
def plot(outcome: Outcome) -> Figure:
    """Draw the largest distance of each method for each digit as bars."""
    return drawn(outcome.tables["distances"], "digit", f"digit, in {NAME}")

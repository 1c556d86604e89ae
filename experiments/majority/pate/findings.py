"""What the tables say, in sentences; every number is read from them."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from experiments.majority.pate.published import METHODS
from experiments.majority.pate.votes import Votes
from experiments.registry import Table

RERUN = "python -m experiments.majority.pate --data PATH --out FILE"

_NOISY = ("gnmax", "gnmax-label", "subsampling", "surrogate", "expected-error", "common-p")


def findings(votes: Votes, tables: Mapping[str, Table], *, shipped: bool) -> tuple[str, ...]:
    """Return the findings, from the votes' origin to what the labels spend."""
    found = [_origin(votes, shipped=shipped)]
    found += _orders(tables["accuracy"])
    found += _against_print(tables["queries"])
    found += [_label_noise(tables["accuracy"]), _priors(tables)]
    found += [_parallel(votes, tables["accuracy"]), _post_processing(votes, tables["totals"])]
    fine = votes.record.get("epsilon_at_error_0.001")
    if isinstance(fine, float):
        found.append(
            f"The teachers' epsilon, {votes.epsilon:.5f}, is the accountant's upper bound at its "
            f"default error of 0.01; at an error of 0.001 it is {fine:.5f}."
        )
    return tuple(found)


def _origin(votes: Votes, *, shipped: bool) -> str:
    seeds = ", ".join(str(run.seed) for run in votes.runs)
    return (
        f"The votes come from a recorded training run ({votes.dataset}, classes "
        f"{votes.classes[0]} and {votes.classes[1]}, {len(votes.labels)} test images, training "
        f"seeds {seeds}), {'shipped with the project' if shipped else 'from the given file'}; "
        f"the tables are computed from them. To train anew: {RERUN}."
    )


def _orders(accuracy: Table) -> list[str]:
    found = []
    for allowance in dict.fromkeys(accuracy.column("m")):
        part = accuracy.select(m=allowance)
        at = dict(zip(part.column("method"), part.column("accuracy"), strict=True))
        order = sorted(_NOISY, key=lambda method: -at[method])
        listed = ", ".join(f"{method} {at[method]:.3f}" for method in order)
        found.append(
            f"m = {allowance}: expected accuracy {listed}; the best gamma for these votes "
            f"{at['best-for-votes']:.3f}."
        )
    return found


def _against_print(drawn: Table) -> list[str]:
    parts = []
    for method in METHODS:
        gaps = [
            g for g in drawn.select(method=method).column("exact_minus_printed") if g is not None
        ]
        if gaps:
            parts.append(f"{method} {fmean(gaps):+.3f} ({min(gaps):+.3f} to {max(gaps):+.3f})")
    if not parts:
        return []
    within = [near for near in drawn.column("within") if near is not None]
    found = (
        "Mean over the training runs of the expected accuracy, minus the printed one, mean and "
        f"range over the printed entries: {', '.join(parts)}."
    )
    if not within:
        return [found]
    return [
        found,
        f"{sum(within)} of {len(within)} printed means lie within Welch's 95 % interval around the "
        "mean of the runs, plus half a printed unit.",
    ]


def _column(accuracy: Table, method: str) -> list[float]:
    return accuracy.select(method=method).column("accuracy")


def _listed(values: list[float], form: str = ".3f") -> str:
    return ", ".join(format(value, form) for value in values)


def _label_noise(accuracy: Table) -> str:
    allowances = accuracy.select(method="gnmax").column("m")
    label, best = _column(accuracy, "gnmax-label"), _column(accuracy, "best-for-votes")
    ahead = [m for m, a, b in zip(allowances, label, best, strict=True) if a > b]
    at = f"at m = {', '.join(map(str, ahead))}" if ahead else "at no m"
    return (
        "The paper's sigma makes the noisy counts private; the label needs less. With the least "
        f"sigma for the label GNMax is right with {_listed(label)} instead of "
        f"{_listed(_column(accuracy, 'gnmax'))} (m = {', '.join(map(str, allowances))}), and is "
        f"ahead of every gamma on these private teachers {at}."
    )


def _priors(tables: Mapping[str, Table]) -> str:
    accuracy, agreement = tables["accuracy"], tables["agreement"].select(teachers="private")
    paper = _column(accuracy, "surrogate")
    ours, common = _column(accuracy, "expected-error"), _column(accuracy, "common-p")
    middle = agreement.column("agreeing")[0] + 1
    far = sum(
        share
        for size, share in zip(
            agreement.column("agreeing"), agreement.column("share_of_images"), strict=True
        )
        if size > middle
    )
    return (
        "The gamma for independent p_i ~ U[0, 1] differs from the paper's by "
        f"{_listed([a - b for a, b in zip(ours, paper, strict=True)], '+.3f')}: under that prior "
        f"the votes crowd around K / 2, whereas here more than {middle} teachers agree on "
        f"{far:.0%} of the images, since teachers find the same images hard. The gamma for one p "
        "~ U[0, 1] common to all voters differs from the paper's by "
        f"{_listed([a - b for a, b in zip(common, paper, strict=True)], '+.3f')}."
    )


def _parallel(votes: Votes, accuracy: Table) -> str:
    whole = accuracy.select(method="private-majority").column("accuracy")[0]
    return (
        f"The private teachers' majority without noise is right with {whole:.3f}. The parts of the "
        "data are disjoint, so that a record is seen by one teacher only: by parallel composition "
        f"all teachers together are ({votes.stated_epsilon:g}, {votes.delta:g})-private, and so is "
        "any number of labels from them. Noise on their majority buys nothing in this setting; "
        "DaRRM's guarantee is for voters that may all see the same record. GNMax needs the "
        "disjoint parts."
    )


def _post_processing(votes: Votes, totals: Table) -> str:
    k, composed = votes.teachers, totals.column("composed_epsilon")
    together = (k * votes.stated_epsilon, k * votes.delta)
    held = sum(
        together[0] <= epsilon and together[1] <= delta
        for epsilon, delta in zip(composed, totals.column("composed_delta"), strict=True)
    )
    return (
        f"Even if all {k} teachers saw every record, any number of labels would spend no more than "
        f"({together[0]:.4f}, {together[1]:.4f}), since they are computed from the teachers. "
        f"Theorem 2.3 gives an epsilon of {min(composed):.3f} to {max(composed):.3f} for the same "
        "labels; it asks for fresh randomness in every one of them, which teachers trained once do "
        f"not have. {held} of the {len(composed)} totals bound these teachers all the same, since "
        "the teachers together spend less."
    )

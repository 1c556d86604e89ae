"""The tab of Reveal-or-Obscure: the obscuring probabilities q_m of a rule, and their audit."""

from __future__ import annotations

from dpopt import _checks, roo
from dpopt.explore.view import Picture, Table, View, drawing, number, picture

MOST_RECORDS, MOST_LETTERS = 2000, 100
LEAST_EPSILON, LARGEST_EPSILON = 0.01, 8.0
"""Parameters up to which the page computes again in well under a second."""

_MOST_LISTED = 60

_CODE = """\
from dpopt import roo

design = roo.min_count(records={records}, letters={letters}, epsilon={epsilon}, rule={rule!r})
print(design.q)
print(design.private, design.audit.excess_factor, design.audit.witness)
exact = roo.min_count(records={records}, letters={letters}, epsilon={epsilon}, rule="exact")
axes = design.plot(exact.plot(label="exact"), label={rule!r})"""


def rule_view(records: int, letters: int, epsilon: float, rule: str = "exact") -> View:
    """Return q_0, q_1, ... of a rule beside the exact one's, and what the rule spends.

    Args:
        records: n, in 1..2000.
        letters: k, in 2..100.
        epsilon: in [0.01, 8], in nats.
        rule: see `dpopt.roo.RULES`.

    Raises:
        ParameterError: for a parameter out of range.
    """
    n = _checks.integer("records", records, 1, MOST_RECORDS)
    k = _checks.integer("letters", letters, 2, MOST_LETTERS)
    epsilon = _checks.real("epsilon", epsilon, LEAST_EPSILON, LARGEST_EPSILON)
    found = roo.min_count(n, k, epsilon, rule)
    exact = roo.min_count(n, k, epsilon)
    audit = found.audit
    return View(
        verdict=_verdict(found),
        private=found.private,
        facts={
            "worst ratio": number(None if audit.worst_ratio is None else float(audit.worst_ratio)),
            "e^epsilon": number(float(found.setting.ratio)),
            "worst ratio / e^epsilon": number(audit.excess_factor),
            "slack": number(float(audit.slack), 3),
            "largest q_m": number(float(found.q.max())),
        },
        tables=(_table(found, exact), _witness(audit.witness)),
        pictures=(_drawn(found, exact),),
        code=_CODE.format(records=n, letters=k, epsilon=epsilon, rule=rule),
    )


def _verdict(found: roo.MinCountSampler) -> str:
    audit, epsilon = found.audit, found.setting.epsilon
    if found.private:
        return (
            f"The rule {found.rule!r} is {epsilon:g}-DP: {audit.rows:,} inequalities decided in "
            "integers."
        )
    return (
        f"The rule {found.rule!r} is NOT {epsilon:g}-DP: a letter is {audit.excess_factor:.6g} "
        "e^epsilon times as likely for one of the two neighbours below; it refuses to release."
    )


def _table(found: roo.MinCountSampler, exact: roo.MinCountSampler) -> Table:
    """Return q_m up to the first m from which both are 0, at most 60 of them."""
    last = min(found.setting.largest_minimum, max(len(found.q), len(exact.q)))
    head = ("m", f"q_m, {found.rule}")
    same = found.rule == exact.rule
    rows = []
    for m in range(min(last + 1, _MOST_LISTED)):
        row = (str(m), number(found.obscuring(m)))
        rows.append(row if same else (*row, number(exact.obscuring(m))))
    return Table(head if same else (*head, "q_m, exact"), tuple(rows))


def _witness(witness: roo.Witness) -> Table:
    sides = {"one data set": witness.runs, "its neighbour": witness.neighbour_runs}
    return Table(
        ("worst pair", "counts of the letters"),
        tuple((name, ", ".join(_run(*run) for run in runs)) for name, runs in sides.items()),
    )


def _run(count: int, letters: int) -> str:
    """Return a count, and how many letters in a row have it."""
    return str(count) if letters == 1 else f"{count} ({letters} letters)"


def _drawn(found: roo.MinCountSampler, exact: roo.MinCountSampler) -> Picture:
    with drawing(6.0, 3.6) as figure:
        figure.subplots_adjust(left=0.12, right=0.98, top=0.97, bottom=0.15)
        axes = exact.plot(figure.subplots(), label="exact")
        axes.locator_params(axis="x", integer=True)
        if found.rule != exact.rule:
            found.plot(axes, label=found.rule)
        axes.legend(frameon=False)
        return picture(figure, "Probability to obscure for each smallest count m.")

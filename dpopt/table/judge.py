"""The verifier in process: `dpopt.verify` decides the integer weights; a certificate records it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from dpopt import verify
from dpopt._errors import NotPrivateError
from dpopt._numbers import roughly
from dpopt.privacy.exact import Certificate
from dpopt.privacy.guarantee import Guarantee, in_short
from dpopt.table.table import Table


def certify_table(table: Table, guarantee: Guarantee) -> Certificate:
    """Prove in integer arithmetic that a table is (epsilon, delta)-DP between all its neighbours.

    For delta = 0 the verifier checks w_v <= e^epsilon w_u for all neighbouring variables u, v; for
    delta > 0, sum_y max(0, w_xy - e^epsilon w_x'y) <= delta total for all neighbouring inputs x,
    x'. The proof of a table is made once, see `Table.proof`.

    Raises:
        NotPrivateError: if an inequality fails; it names the inputs and the output.
    """
    return table.proof(guarantee, partial(_certified, table, guarantee))


def _certified(table: Table, guarantee: Guarantee) -> Certificate:
    inputs, exp_epsilon = table.inputs, verify.growth(Fraction(guarantee.epsilon))
    weights = list(table.weights)
    try:
        if guarantee.delta > 0:
            edges = inputs.edges.listed()
            verdict = verify.decide_sets(
                weights, table.total, edges, exp_epsilon, Fraction(guarantee.delta)
            )
        else:
            # By member: first variables of all groups, second ones, ...
            columns = inputs.neighbours.T.tolist()
            verdict = verify.decide_ratios(weights, table.total, columns, exp_epsilon)
    except verify.Refused as refusal:
        raise _refused(table, guarantee, refusal) from None
    return Certificate(
        claim=inputs.claim(),
        guarantee=guarantee,
        constraints=verdict.rows,
        slack=Fraction(verdict.slack),
        tightest=_where(table, verdict.at, sets=guarantee.delta > 0)[0],
    )


def _refused(table: Table, guarantee: Guarantee, refusal: verify.Refused) -> NotPrivateError:
    missed = Fraction(refusal.missed)
    where, ends, output = _where(table, refusal.at, sets=guarantee.delta > 0)
    return NotPrivateError(
        f"the table breaks {in_short(guarantee)} at {where}, by {roughly(missed)}.",
        inputs=ends,
        output=output,
        excess=float(missed) or math.ulp(0.0),
    )


def _where(
    table: Table, at: tuple[int, int] | None, *, sets: bool
) -> tuple[str, tuple[str, str], str | None]:
    """Return an inequality of the verifier in words, its two inputs, and its output."""
    if at is None:
        return "no neighbours", ("", ""), None
    if not sets:
        one, other, output = map(str, table.inputs.words(*at))
        return f"inputs {one} and {other}, output {output}", (one, other), output
    edge, turned = at
    one, other = map(str, table.inputs.event(edge, ())[0])
    ends = (other, one) if turned else (one, other)
    return f"inputs {ends[0]} and {ends[1]}, all outputs that favour the first", ends, None

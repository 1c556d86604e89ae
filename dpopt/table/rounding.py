"""From a solver's floats to a private table: polished, rounded to integers, mixed, judged.

A solver's point breaks its rows by about 1e-9. `polished` removes what its tolerance left where
probabilities are small, `rounded` makes integers whose rows sum exactly, and `repair` mixes the
table with one whose inequalities all hold strictly, until the judge accepts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._types import Vector
from dpopt.privacy.exact import Certificate
from dpopt.privacy.guarantee import Guarantee
from dpopt.table.inputs import Inputs
from dpopt.table.table import BITS, Table

Judge = Callable[[Table], Certificate]

# An output whose probability is nowhere above this is taken to be unused: solvers' noise.
UNUSED = 1e-13
# Below this delta, epsilon = 0 asks for equal rows: solvers do not tell the rest apart.
_ALIKE = 1e-10
# What is too small by rounding alone is not raised.
_ROUNDING = 2.0**-50
# The n-th mixture has 4^n times the share that makes rounding good, at least 2^-_SHARE, more than
# the chord asks for.
_SHARE, _TRIES = 60, 28


def alike(guarantee: Guarantee) -> bool:
    """Whether neighbours must have equal rows, up to what solvers tell apart."""
    return guarantee.epsilon == 0 and guarantee.delta <= _ALIKE


def polished(inputs: Inputs, point: Vector, guarantee: Guarantee) -> Vector:
    """Return probabilities next to a solver's, without noise, rows summing to 1 up to rounding.

    For delta = 0 every probability is raised to e^-epsilon of its neighbours' largest, so that the
    error is relative; then all rows are scaled alike and filled up with multiples of one row that
    differ by less than e^epsilon, which keeps all ratios. For epsilon = 0 neighbours get the mean.

    Args:
        inputs: the variables.
        point: probability of one output of each variable, shape (size,).
        guarantee: what is asked.
    """
    values = np.maximum(np.asarray(point, dtype=np.float64), 0.0)
    if values.shape != (inputs.size,) or not np.all(np.isfinite(values)):
        raise ParameterError(f"point must hold {inputs.size} finite numbers.")
    counts = np.asarray(inputs.counts, dtype=np.float64)
    largest = np.zeros(len(inputs.column_sizes))
    np.maximum.at(largest, inputs.columns, values)
    values = np.where(largest[inputs.columns] <= UNUSED, 0.0, values)
    if alike(guarantee):
        sizes = counts * np.array([float(size) for size in inputs.row_sizes])[inputs.rows]
        values = (np.bincount(inputs.parts, values * sizes) / np.bincount(inputs.parts, sizes))[
            inputs.parts
        ]
    elif guarantee.delta == 0:
        values = _raised(inputs, values, guarantee.epsilon)
    sums = inputs.sums @ values
    top, short = float(sums.max()), 1.0 - float(sums.min() / sums.max())
    headroom = math.expm1(guarantee.epsilon) if guarantee.delta == 0 else 0.0
    if not short < headroom * 1e-3:
        return values / sums[inputs.rows]
    scale = (1.0 - short / headroom) / top
    mean = inputs.mean_row(values * counts)
    missing = (1.0 - scale * sums)[inputs.rows]
    return scale * values + missing * (mean / (mean @ inputs.column_sizes))[inputs.columns]


def _raised(inputs: Inputs, values: Vector, epsilon: float) -> Vector:
    """Return the least numbers above these of which neighbours differ by e^epsilon at most."""
    shrink, values = math.exp(-epsilon), values.copy()
    # By member, so that what is looked at of all groups lies together.
    every = columns = np.ascontiguousarray(inputs.neighbours.T)
    while columns.size:
        least = shrink * values[columns].max(axis=0)
        members, groups = np.nonzero(least > values[columns] * (1.0 + _ROUNDING))
        # The largest of a group is not raised: where all are neighbours, one round is enough.
        np.maximum.at(values, columns[members, groups], least[groups])
        if not members.size or len(columns) > 2:
            break
        raised = np.zeros(inputs.size, dtype=bool)
        raised[columns[members, groups]] = True
        columns = every[:, raised[every].any(axis=0)]
    return values


def rounded(
    inputs: Inputs,
    values: Sequence[int] | Sequence[Fraction] | Vector,
    bits: int = BITS,
    *,
    equal: bool = False,
) -> Table:
    """Return the table of integers in proportion to values; the rows are divided by their sums.

    In each row the variable with the largest mass takes what the rounding of the others leaves:
    these are rounded to multiples of its number of outputs, so that it can be shared.

    Args:
        inputs: the variables.
        values: of one output of each variable, at least 0, shape (size,): floats and fractions are
            taken exactly, integers may have any common factor in each row.
        bits: the total has about so many.
        equal: whether variables that neighbours join are to have equal weights.

    Raises:
        ParameterError: if a row holds zeros alone, or a value is negative.
    """
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if min(listed) < 0:
        raise ParameterError("point holds a negative probability.")
    labels = inputs.parts.tolist() if equal else list(range(inputs.size))
    counts = inputs.counts.tolist()
    rows = list[tuple[dict[int, int], dict[int, int], int]]()
    for start, end in pairwise(inputs.starts.tolist()):
        ratios = [value.as_integer_ratio() for value in listed[start:end]]
        common = math.lcm(*{below for _, below in ratios})
        wholes, outputs = dict[int, int](), dict[int, int]()
        for v, (above, below) in enumerate(ratios, start):
            wholes[labels[v]] = above * (common // below)
            outputs[labels[v]] = outputs.get(labels[v], 0) + counts[v]
        largest = max(outputs, key=lambda label: wholes[label] * outputs[label])
        rows.append((wholes, outputs, largest))
    total = math.lcm(*{outputs[largest] for _, outputs, largest in rows}) << bits
    weights = dict[int, int]()
    for wholes, outputs, largest in rows:
        unit = outputs[largest]
        mass = sum(wholes[label] * count for label, count in outputs.items()) * unit
        if not mass:
            raise ParameterError("point holds an input whose outputs all have probability 0.")
        for label, value in wholes.items():
            weights[label] = unit * (value * total // mass)
        rest = sum(n * weights[label] for label, n in outputs.items() if label != largest)
        weights[largest] = (total - rest) // unit
    return Table(inputs, tuple(weights[label] for label in labels), total)


def constant(inputs: Inputs, row: Vector, bits: int = BITS) -> Table:
    """Return the table that does not look at its input: its neighbours are equal.

    Args:
        inputs: the variables.
        row: probability of one output, by output up to symmetry.
        bits: of the total.
    """
    return rounded(inputs, np.asarray(row, dtype=np.float64)[inputs.columns], bits, equal=False)


def interior(inputs: Inputs, point: Vector, bits: int = BITS) -> Table:
    """Return a table that does not look at its input: half the mean of a point, half uniform.

    Outputs that the point does not use stay unused. With epsilon or delta above 0 all privacy rows
    hold strictly.
    """
    mean = inputs.mean_row(np.asarray(point) * np.asarray(inputs.counts, dtype=np.float64))
    used = (mean > 0) / ((mean > 0) @ inputs.column_sizes)
    return constant(inputs, mean / (mean @ inputs.column_sizes) / 2 + used / 2, bits)


def mixed(one: Table, other: Table, share: Fraction, bits: int = BITS) -> Table:
    """Return (1 - share) one + share other, rounded.

    Args:
        one: a table.
        other: over the same inputs.
        share: in [0, 1].
        bits: of the total.
    """
    left = (share.denominator - share.numerator) * other.total
    right = share.numerator * one.total
    both = zip(one.weights, other.weights, strict=True)
    return rounded(one.inputs, [left * a + right * b for a, b in both], bits)


def repair(
    table: Table,
    strict: Table,
    judge: Judge,
    bits: int = BITS,
    headroom: Fraction | None = None,
) -> tuple[Table, Certificate]:
    """Return a table next to one that the judge accepts, mixed with a strictly private one.

    The least slack is concave between the two tables: where its chord is above 0, so is it. The
    chord asks for s / (s + t), s what the table is short of and t the slack of the strict one;
    rounding asks for a little more, so that the share grows until the judge accepts. The chord of
    every mixture that is refused says by how much, at least.

    Args:
        table: rounded, perhaps not private.
        strict: a table whose inequalities all hold with slack.
        judge: decides a table exactly, or raises `NotPrivateError` with the excess.
        bits: of the tables that are made.
        headroom: slack of the strict table, where it is known; else it is judged.

    Raises:
        NotPrivateError: if the strict table has no slack, or no mixture is accepted.
    """
    try:
        return table, judge(table)
    except NotPrivateError as error:
        refusal = error
    short = Fraction(refusal.excess)
    headroom = judge(strict).slack if headroom is None else headroom
    if headroom <= 0:
        raise refusal
    chord = short / (short + headroom)
    # Rounding takes a unit of 2^-bits for each variable of a row.
    units = 4 + int(np.diff(table.inputs.starts).max())
    rounding = max(Fraction(1, 1 << _SHARE), units / headroom / (1 << bits))
    for attempt in range(_TRIES):
        share = min(chord + 4**attempt * rounding, Fraction(1))
        share = Fraction(-(-share.numerator << bits) // share.denominator, 1 << bits)
        mixture = mixed(table, strict, min(share, Fraction(1)), bits)
        try:
            return mixture, judge(mixture)
        except NotPrivateError as error:
            refusal, short = error, Fraction(error.excess)
            chord = share + (1 - share) * short / (short + headroom)
    raise refusal

"""From a solver's floats to a private table: polish, round to integers, mix, certify.

A solver's solution violates its rows by about 1e-9. `polished` makes the errors of small
probabilities relative, `rounded` returns integers whose rows sum exactly to the total, and `repair`
mixes the table with one that satisfies all inequalities strictly, until the verifier accepts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpopt import verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._types import Vector
from dpopt.privacy.exact import Certificate
from dpopt.privacy.guarantee import Guarantee
from dpopt.table.inputs import Inputs
from dpopt.table.table import BITS, Table

Certifier = Callable[[Table], Certificate]
"""Returns the certificate of a table, or raises `NotPrivateError` with the excess."""

# Probability; an output that no input gives more than this counts as unused: it is solver noise.
_UNUSED = 1e-13
# Mixture n = 0, 1, ... adds to the chord's share 4^n times one that covers rounding, which is at
# least 2^-_SHARE: the last of _TRIES adds at least 2^-6.
_SHARE, _TRIES = 60, 28


def alike(guarantee: Guarantee) -> bool:
    """Whether neighbours must have equal rows, up to differences that solvers cannot resolve."""
    # With epsilon = 0 and a delta up to this, rows are made equal: solvers cannot tell them apart.
    return guarantee.epsilon == 0 and guarantee.delta <= 1e-10


def polished(inputs: Inputs, point: Vector, guarantee: Guarantee) -> Vector:
    """Return probabilities near a solver's, without noise, whose rows sum to 1 up to rounding.

    For delta = 0 every probability is raised to at least e^-epsilon times its neighbours' largest,
    so that its error is relative. Then all rows are scaled by one factor and filled up to 1 with
    multiples of one common row; the multiples differ by less than e^epsilon, so all ratios stay
    within it. For epsilon = 0 neighbours get their mean.
    """
    values = np.maximum(np.asarray(point, dtype=np.float64), 0.0)
    if values.shape != (inputs.size,) or not np.all(np.isfinite(values)):
        raise ParameterError(f"point must hold {inputs.size} finite numbers.")
    counts = np.asarray(inputs.counts, dtype=np.float64)
    values = without_unused(inputs, values)
    if alike(guarantee):
        # Mean over each component, weighted by the pairs (x, y) that a variable stands for.
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
    # Scaled sums fall short of 1 by between short / headroom and e^epsilon times that.
    scale = (1.0 - short / headroom) / top
    mean = inputs.mean_row(values * counts)
    missing = (1.0 - scale * sums)[inputs.rows]
    return scale * values + missing * (mean / (mean @ inputs.column_sizes))[inputs.columns]


def _raised(inputs: Inputs, values: Vector, epsilon: float) -> Vector:
    """Return the least values >= these such that neighbours differ by at most e^epsilon."""
    shrink, values = math.exp(-epsilon), values.copy()
    # Transposed to shape (members, groups), so that one member of all groups is contiguous.
    every = columns = np.ascontiguousarray(inputs.neighbours.T)
    while columns.size:
        least = shrink * values[columns].max(axis=0)
        # Relative rounding error within which a probability is not raised.
        members, groups = np.nonzero(least > values[columns] * (1.0 + (2.0**-50)))
        # The largest of a group is not raised: in a complete graph one round is enough.
        np.maximum.at(values, columns[members, groups], least[groups])
        if len(columns) > 2:
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
    """Return the table of integer weights in proportion to values, each row divided by its sum.

    In each row, all variables but the one with the largest mass are rounded down, to multiples of
    that one's number of outputs. The remainder is then divisible among its outputs.

    Args:
        inputs: the variables.
        values: of one output of each variable, at least 0 and not all 0 in a row: taken exactly.
        bits: of the total, about.
        equal: whether variables joined by neighbours get equal weights.
    """
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if min(listed) < 0:
        raise ParameterError("point holds a negative probability.")
    labels = inputs.parts.tolist() if equal else list(range(inputs.size))
    counts = inputs.counts.tolist()
    # For each row: value and number of outputs of each label, and the label of largest mass.
    rows = list[tuple[dict[int, int], dict[int, int], int]]()
    for start, end in pairwise(inputs.starts.tolist()):
        wholes, outputs = dict[int, int](), dict[int, int]()
        for v, whole in enumerate(verify.scaled(listed[start:end])[0], start):
            wholes[labels[v]] = whole
            outputs[labels[v]] = outputs.get(labels[v], 0) + counts[v]
        largest = max(outputs, key=lambda label: wholes[label] * outputs[label])
        rows.append((wholes, outputs, largest))
    # A multiple of the number of outputs of every row's largest variable.
    total = math.lcm(*{outputs[largest] for _, outputs, largest in rows}) << bits
    weights = dict[int, int]()
    for wholes, outputs, largest in rows:
        unit = outputs[largest]
        mass = sum(wholes[label] * count for label, count in outputs.items()) * unit
        if not mass:
            raise ParameterError("point holds an input whose outputs all have probability 0.")
        for label, value in wholes.items():
            weights[label] = unit * (value * total // mass)
        others_mass = sum(n * weights[label] for label, n in outputs.items() if label != largest)
        weights[largest] = (total - others_mass) // unit
    return Table(inputs, tuple(weights[label] for label in labels), total)


def constant(inputs: Inputs, row: Vector, bits: int = BITS) -> Table:
    """Return the table with the same ``row`` for every input: one output of each orbit of them."""
    return rounded(inputs, np.asarray(row, dtype=np.float64)[inputs.columns], bits, equal=False)


def interior(inputs: Inputs, point: Vector, bits: int = BITS) -> Table:
    """Return a strictly feasible table: every row is half a point's mean row, half uniform.

    Outputs that the point does not use stay unused. All privacy rows hold strictly if epsilon or
    delta is above 0.
    """
    mean = inputs.mean_row(np.asarray(point) * np.asarray(inputs.counts, dtype=np.float64))
    used = (mean > 0) / ((mean > 0) @ inputs.column_sizes)
    return constant(inputs, mean / (mean @ inputs.column_sizes) / 2 + used / 2, bits)


def mixed(one: Table, other: Table, share: Fraction, bits: int = BITS) -> Table:
    """Return (1 - share) one + share other, rounded; both are over the same inputs."""
    factor = (share.denominator - share.numerator) * other.total
    other_factor = share.numerator * one.total
    both = zip(one.weights, other.weights, strict=True)
    return rounded(one.inputs, [factor * a + other_factor * b for a, b in both], bits)


def repair(
    table: Table,
    strict: Table,
    certify: Certifier,
    bits: int = BITS,
    headroom: Fraction | None = None,
) -> tuple[Table, Certificate]:
    """Return a table near the given one that is certified private, and its certificate.

    It is a mixture with a strictly feasible table. The least slack is concave between both, hence
    at least its chord, which reaches 0 at the share s / (s + t) of the strict table: s is the
    excess of the table, t the slack of the strict one. Rounding needs a little more, so the share
    grows until the verifier accepts; each refusal's excess gives a new chord.

    Args:
        table: rounded, perhaps not private.
        strict: a table that satisfies all inequalities with slack.
        certify: returns the certificate of a table, or raises `NotPrivateError` with the excess.
        bits: of the totals of mixtures.
        headroom: slack of the strict table; computed by ``certify`` if None.

    Raises:
        NotPrivateError: if the strict table has no slack, or no mixture is accepted.
    """
    try:
        return table, certify(table)
    except NotPrivateError as error:
        refusal = error
    short = Fraction(refusal.excess)
    headroom = certify(strict).slack if headroom is None else headroom
    if headroom <= 0:
        raise refusal
    chord = short / (short + headroom)
    # Rounding changes a row by at most a unit of 2^-bits for each of its variables.
    rounding_units = 4 + int(np.diff(table.inputs.starts).max())
    rounding = max(Fraction(1, 1 << _SHARE), rounding_units / headroom / (1 << bits))
    for attempt in range(_TRIES):
        share = min(chord + 4**attempt * rounding, Fraction(1))
        # A multiple of 2^-bits keeps the integers of the mixture small.
        share = Fraction((share.numerator << bits) // share.denominator, 1 << bits)
        mixture = mixed(table, strict, share, bits)
        try:
            return mixture, certify(mixture)
        except NotPrivateError as error:
            refusal, short = error, Fraction(error.excess)
            chord = share + (1 - share) * short / (short + headroom)
    raise refusal


def without_unused(inputs: Inputs, values: Vector) -> Vector:
    """Return a point with the probabilities of unused outputs set to 0."""
    largest = np.zeros(len(inputs.column_sizes))
    np.maximum.at(largest, inputs.columns, values)
    return np.where(largest[inputs.columns] <= _UNUSED, 0.0, values)

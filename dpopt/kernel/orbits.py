"""The program of a kernel over orbits of pairs, and its solution repaired to integers.

With symmetries an optimal kernel is constant on the orbits o of pairs (x, y), see
`dpopt.kernel.symmetry`, so that a variable for each orbit is enough. An input x of the orbit a of
inputs has c[o] outputs y with (x, y) in o, and k[o] is the probability that one of them is told:
K[x, y] = k[o] / c[o].

    minimise   sum_a prior_a sum_{o in a} loss[o] k[o]              (bayes)
           or  max_a sum_{o in a} loss[o] k[o]                      (minimax, "losses")
    subject to sum_{o in a} k[o] = 1                                "sums"
               k[o] / c[o] <= e^epsilon k[o'] / c[o']               "privacy"
               sum_x A_ix K[x, y] = B_iy                            "invariance"

"sums" and "losses" have a row for each orbit of inputs, "privacy" for each step (o, o') that an
edge makes, from the orbit of (x, y) to that of (x', y); "invariance" for one output y of each
orbit. Where every two inputs are neighbours, "ceiling" has a variable w for each orbit of outputs,
and e^-epsilon w <= K[x, y] <= w. With delta > 0, "excess_mass" has a variable for each step,
s >= K[x, y] - e^epsilon K[x', y], and "delta" a row for each orbit of edges: the sum over outputs
of s is at most delta.

A dual vector of this program is one of the program over all entries: each multiplier is divided by
the size of its orbit, and shared by all rows of it. The two have the same bound, as the page
docs/theorems/orbits.md proves. So the bound holds for every kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import MOST_BITS, digits
from dpopt._types import IntVector, Matrix, Vector
from dpopt.lp import Solution
from dpopt.privacy import Problem
from dpopt.privacy.exact import resolve_ratio
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.orbit import OrbitKernel, Orbits
from dpopt.privacy.quantise import least_mixing
from dpopt.privacy.rows import MOST_ROWS

if TYPE_CHECKING:
    from dpopt.kernel.setting import KernelSetting

# Bits of the weights beyond those that tell the outputs of an orbit apart.
_BITS, _SPARE_BITS = (64, 128), 32
_ROUNDING, _NOISE = 2.0**-50, 1e-10


def orbit_program(setting: KernelSetting, orbits: Orbits) -> Problem:
    """Return the program that this module displays, with the user's own rows.

    Raises:
        ParameterError: for more than 2,000,000 rows of privacy.
    """
    losses = setting.loss_at(*orbits.representatives.T)
    problem = Problem("optimal kernel over orbits")
    problem.add_variables("orbits", orbits.count, lower=0.0, upper=1.0)
    own = _indicators(orbits.rows, len(orbits.row_sizes))
    problem.add_rows("sums", {"orbits": own}, lower=1.0, upper=1.0)
    _add_privacy(problem, orbits, setting.guarantee)
    _add_objective(problem, setting, orbits, losses, own)
    if setting.invariances is not None:
        left, right = setting.invariances
        for_outputs = [_column(left, orbits, y) for y in orbits.column_representatives.tolist()]
        limits = right[:, orbits.column_representatives].T.ravel()
        problem.add_rows(
            "invariance", {"orbits": sp.vstack(for_outputs)}, lower=limits, upper=limits
        )
    for own in setting.blocks:
        i, x, y = own.places.T
        labels = orbits.labels(x, y)
        shape = (own.count, orbits.count)
        matrix = sp.csr_array((own.coefficients / orbits.counts[labels], (i, labels)), shape=shape)
        rows = own.rows(orbits.inputs, orbits.outputs)
        problem.add_rows(own.name, {"orbits": matrix}, lower=rows.lower, upper=rows.upper)
    return problem


def _indicators(labels: IntVector, size: int) -> sp.csr_array:
    """Return the matrix with a 1 in row labels[i] of column i, shape (size, len(labels))."""
    return sp.csr_array(
        (np.ones(labels.size), (labels, np.arange(labels.size))), shape=(size, labels.size)
    )


def _add_privacy(problem: Problem, orbits: Orbits, guarantee: Guarantee) -> None:
    """Add the privacy rows, each scaled so that its largest coefficient is 1."""
    counts, shrink = orbits.counts.astype(float), math.exp(-guarantee.epsilon)
    if orbits.complete and guarantee.delta == 0:
        # The ceilings are scaled alike: w[b] times the number of outputs in the orbit b.
        sizes = orbits.column_sizes.astype(float)
        share = counts / sizes[orbits.columns]
        # An output is at most e^epsilon times as likely as at its least: these sum to 1 at most.
        most = np.minimum(sizes, math.exp(guarantee.epsilon))
        problem.add_variables("ceiling", sizes.size, lower=0.0, upper=most)
        one = sp.eye_array(orbits.count, format="csr")
        lift = _indicators(orbits.columns, sizes.size).T
        low = {"orbits": -one, "ceiling": shrink * (sp.diags_array(share) @ lift)}
        high = {"orbits": one, "ceiling": -(sp.diags_array(share) @ lift)}
        both = {name: sp.vstack([low[name], high[name]]) for name in low}
        problem.add_rows("privacy", both, upper=0.0)
        return
    steps = orbits.steps
    count = len(steps.first)
    if count > MOST_ROWS:
        raise ParameterError(
            f"symmetry leaves {count} privacy rows; at most {MOST_ROWS} are taken: give more "
            "symmetries, or a graph with fewer edges."
        )
    # K[x, y] - e^epsilon K[x', y] times a factor, in terms of k[o] and k[o'].
    raised, lowered = shrink / counts[steps.first], 1.0 / counts[steps.second]
    unit = np.maximum(raised, lowered)
    place = np.arange(count)
    ratios = sp.csr_array(
        (
            np.concatenate([raised / unit, -lowered / unit]),
            (np.tile(place, 2), np.concatenate([steps.first, steps.second])),
        ),
        shape=(count, orbits.count),
    )
    if count == 0:
        return
    if guarantee.delta == 0:
        problem.add_rows("privacy", {"orbits": ratios}, upper=0.0)
        return
    # Of a step, the excess over as many outputs as the first orbit has.
    problem.add_variables("excess_mass", count, lower=0.0, upper=1.0)
    excess = sp.diags_array(-shrink / counts[steps.first] / unit)
    problem.add_rows("privacy", {"orbits": ratios, "excess_mass": excess}, upper=0.0)
    shares = steps.counts @ sp.diags_array(1.0 / counts[steps.first])
    problem.add_rows("delta", {"excess_mass": shares}, upper=guarantee.delta)


def _add_objective(
    problem: Problem, setting: KernelSetting, orbits: Orbits, losses: Vector, own: sp.csr_array
) -> None:
    optimise = problem.maximise if setting.maximises else problem.minimise
    if setting.weights is not None:
        optimise({"orbits": _prior(setting, orbits)[orbits.rows] * losses})
        return
    unit = float(np.max(np.abs(losses))) or 1.0
    low, high = float(losses.min()) / unit, float(losses.max()) / unit
    problem.add_variables("worst", 1, lower=low, upper=high)
    sides = {"orbits": own @ sp.diags_array(losses / unit), "worst": -np.ones((own.shape[0], 1))}
    limits: Any = {"lower" if setting.maximises else "upper": 0.0}
    problem.add_rows("losses", sides, **limits)
    optimise({"worst": unit})


def _prior(setting: KernelSetting, orbits: Orbits) -> Vector:
    """Return the prior of each orbit of inputs: of all its inputs together."""
    weights = np.asarray(setting.weights)
    return weights[orbits.row_representatives] * orbits.row_sizes


def _column(left: Matrix, orbits: Orbits, y: int) -> sp.csr_array:
    """Return A K[., y] over the orbits, shape (rows of A, orbits)."""
    labels = orbits.labels(np.arange(orbits.inputs), y)
    lift = _indicators(labels, orbits.count).T @ sp.diags_array(1.0 / orbits.counts)
    return sp.csr_array(left @ lift)


def orbit_point(solution: Solution) -> Vector:
    """Return k as the solver left it, shape (orbits,)."""
    return solution["orbits"]


def orbit_value(setting: KernelSetting, orbits: Orbits, units: OrbitKernel) -> float:
    """Return the objective in rational arithmetic, rounded once."""
    losses = setting.loss_at(*orbits.representatives.T).tolist()
    counts = orbits.counts.tolist()
    by_row = [
        sum((Fraction(losses[o]) * (counts[o] * units.weights[o]) for o in row), Fraction(0))
        / units.total
        for row in orbits.by_row
    ]
    if setting.weights is None:
        return float(min(by_row) if setting.maximises else max(by_row))
    sizes = zip(orbits.row_representatives, orbits.row_sizes.tolist(), strict=True)
    prior = [Fraction(float(setting.weights[x])) * size for x, size in sizes]
    total = sum((p * cost for p, cost in zip(prior, by_row, strict=True)), Fraction(0))
    return float(total / sum(prior))


def orbit_units(
    point: Vector,
    guarantee: Guarantee,
    orbits: Orbits,
    *,
    keeping: Vector | None = None,
    tolerance: float,
    unused: float,
) -> OrbitKernel:
    """Return k repaired and rounded to integers, which are certified.

    K is mixed with a row u that is the same for every input and constant on orbits of outputs,
    K <- (1 - eta) K + eta 1 u^T, with eta just large enough for the worst exact violation and the
    rounding to come. Then a row must sum to the total T exactly, while orbits count differently
    often: in each row the orbit o* of the largest probability takes what is left. The total is a
    multiple of c[o*] for every row, the weights of all other orbits are c[o*] times an integer, and
    so what is left is c[o*] times an integer, too.

    Args:
        point: k, shape (orbits,).
        guarantee: to certify.
        orbits: of pairs.
        keeping: a row u to try first, shape (outputs,), where it is constant on orbits.
        tolerance: most total variation between a row and its rounded version.
        unused: an orbit of outputs whose probability is nowhere above this is taken to be unused.

    Raises:
        NotPrivateError: if making it private costs more than the tolerance.
    """
    kernel = _cleaned(point, guarantee, orbits, tolerance, unused)
    r, cost = resolve_ratio(guarantee, None), Fraction(1)
    for row in _rows_to_mix(kernel, orbits, keeping):
        for bits in _precisions(row, r):
            if bits > MOST_BITS // 2:
                continue
            for eta in (Fraction(0), _mixing(kernel, row, r, guarantee, orbits, bits)):
                if eta is None:
                    continue
                mixed = [
                    (1 - eta) * value + eta * row[column] if eta else value
                    for value, column in zip(kernel, orbits.columns.tolist(), strict=True)
                ]
                weights, total = _rounded(mixed, guarantee, orbits, bits)
                moved = _moved(kernel, weights, total, orbits)
                if min(weights) >= 0 and moved <= tolerance:
                    try:
                        return OrbitKernel.make(
                            weights, total, guarantee, orbits, cost=float(moved)
                        )
                    except NotPrivateError:
                        continue
                cost = min(cost, moved) if eta else cost
    raise NotPrivateError(
        f"making the kernel ({guarantee.epsilon:g}, {guarantee.delta:g})-DP moves a row by "
        f"{digits(float(cost))} in total variation, above tolerance {digits(tolerance)}; "
        "solve more tightly, or raise tolerance."
    )


def _cleaned(
    point: Vector, guarantee: Guarantee, orbits: Orbits, tolerance: float, unused: float
) -> list[Fraction]:
    """Return K on each orbit, exactly stochastic, without outputs of solver noise."""
    masses = np.maximum(_checks.floats("point", point), 0.0)
    if masses.shape != (orbits.count,):
        raise ParameterError(f"point has shape {masses.shape}; it must be ({orbits.count},).")
    # By orbit of inputs and of outputs, the probability that an output of the orbit is told.
    told = sp.csr_array(
        (masses, (orbits.rows, orbits.columns)),
        shape=(len(orbits.row_sizes), len(orbits.column_sizes)),
    )
    largest = told.max(axis=0).toarray().ravel()
    masses[largest[orbits.columns] <= unused] = 0.0
    counts, rows = orbits.counts.tolist(), orbits.rows.tolist()
    values = [Fraction(mass) / count for mass, count in zip(masses.tolist(), counts, strict=True)]
    if _alike(guarantee):
        values = _levelled(values, orbits)
    elif guarantee.delta == 0:
        values = list(map(Fraction, _lifted(masses / orbits.counts, orbits, guarantee).tolist()))
    sums = [sum((counts[o] * values[o] for o in row), Fraction(0)) for row in orbits.by_row]
    top, short = max(sums), 1 - min(sums) / max(sums)
    room = Fraction(math.expm1(guarantee.epsilon)) if guarantee.delta == 0 else Fraction(0)
    if short >= room * Fraction(tolerance):
        return [value / sums[row] for value, row in zip(values, rows, strict=True)]
    # All rows are scaled alike, and each is filled up with a multiple of one law; the multiples
    # differ by less than e^epsilon, so that ratios between rows stay private.
    scale = (1 - short / room) / top
    mean = _mean(values, orbits)
    weight = sum((s * m for s, m in zip(orbits.column_sizes.tolist(), mean, strict=True)))
    return [
        scale * value + (1 - scale * sums[row]) * mean[column] / weight
        for value, row, column in zip(values, rows, orbits.columns.tolist(), strict=True)
    ]


def _lifted(values: Vector, orbits: Orbits, guarantee: Guarantee) -> Vector:
    """Return the least kernel above K whose neighbours differ by a factor of e^epsilon at most.

    What is too small by the solver's tolerance would take much mixing where all outputs are rare:
    far from the input, on a long cycle, or everywhere on a large cube. Rows sum to more than 1.
    """
    shrink, lifted = math.exp(-guarantee.epsilon), values.copy()
    if orbits.complete:
        largest = np.zeros(len(orbits.column_sizes))
        np.maximum.at(largest, orbits.columns, values)
        return np.maximum(values, shrink * largest[orbits.columns])
    steps = orbits.steps
    order = np.argsort(steps.second, kind="stable")
    first, (second, starts) = steps.first[order], np.unique(steps.second[order], return_index=True)
    while second.size:
        least = shrink * np.maximum.reduceat(lifted[first], starts)
        if np.all(least <= lifted[second] * (1.0 + _ROUNDING)):
            break
        lifted[second] = np.maximum(lifted[second], least)
    return lifted


def _alike(guarantee: Guarantee) -> bool:
    """Whether neighbours have equal rows, or differ by less than solvers tell apart."""
    return guarantee.epsilon == 0 and guarantee.delta <= _NOISE


def _levelled(values: Sequence[Fraction], orbits: Orbits) -> list[Fraction]:
    """Return the mean over all orbits that edges join, which makes the rows of a part equal."""
    labels, sizes = _levels(orbits), orbits.counts * orbits.row_sizes[orbits.rows]
    total = [Fraction(0)] * (int(labels.max()) + 1)
    count = [0] * len(total)
    for label, value, size in zip(labels.tolist(), values, sizes.tolist(), strict=True):
        total[label] += value * size
        count[label] += size
    return [total[label] / count[label] for label in labels.tolist()]


def _levels(orbits: Orbits) -> IntVector:
    """Return which orbits are joined by edges."""
    if orbits.complete:
        return orbits.columns
    steps, size = orbits.steps, orbits.count
    ones = np.ones(len(steps.first))
    links = sp.csr_array((ones, (steps.first, steps.second)), shape=(size, size))
    return connected_components(links, directed=False)[1]


def _mean(values: Sequence[Fraction], orbits: Orbits) -> list[Fraction]:
    """Return the mean row of K, one number for each orbit of outputs."""
    sizes = (orbits.counts * orbits.row_sizes[orbits.rows]).tolist()
    summed = [Fraction(0)] * len(orbits.column_sizes)
    for value, size, column in zip(values, sizes, orbits.columns.tolist(), strict=True):
        summed[column] += value * size
    outputs = orbits.column_sizes.tolist()
    return [s / (size * orbits.inputs) for s, size in zip(summed, outputs, strict=True)]


def _rows_to_mix(
    kernel: Sequence[Fraction], orbits: Orbits, keeping: Vector | None
) -> Iterator[list[Fraction]]:
    """Yield laws u, one number for each orbit of outputs."""
    mean, sizes = _mean(kernel, orbits), orbits.column_sizes.tolist()
    if keeping is not None:
        row = [Fraction(float(value)) for value in keeping[orbits.column_representatives]]
        total = sum((size * mass for size, mass in zip(sizes, row, strict=True)), Fraction(0))
        if abs(float(total) - 1.0) < 1e-9 and all(
            u > 0 or not mass for u, mass in zip(row, mean, strict=True)
        ):
            yield [mass / total for mass in row]
    used = sum(size for size, mass in zip(sizes, mean, strict=True) if mass)
    # Half uniform, since an output of little mass would otherwise need much mixing; the mean itself
    # for tiny epsilon, where every row is close to it.
    yield [(mass + Fraction(1, used)) / 2 if mass else mass for mass in mean]
    yield mean


def _precisions(row: Sequence[Fraction], r: Fraction) -> Iterator[int]:
    yield from _BITS
    rarest = min((mass for mass in row if mass), default=Fraction(1))
    if r > 1:
        bits = _SPARE_BITS + int((1 + r) / ((r - 1) * rarest)).bit_length()
        if bits > _BITS[-1]:
            yield bits


def _rounded(
    values: Sequence[Fraction], guarantee: Guarantee, orbits: Orbits, bits: int
) -> tuple[list[int], int]:
    """Return integer weights near the values, and the total of every row.

    Where rows must be equal, they stay so: orbits that edges join are taken as one.
    """
    label = (_levels(orbits) if _alike(guarantee) else np.arange(orbits.count)).tolist()
    counts = orbits.counts.tolist()
    rows: list[tuple[int, dict[int, int]]] = []
    value_of = dict(zip(label, values, strict=True))
    for row in orbits.by_row:
        by_label: dict[int, int] = {}
        for o in row:
            by_label[label[o]] = by_label.get(label[o], 0) + counts[o]
        rows.append((max(by_label, key=lambda part: (value_of[part], -part)), by_label))
    # A weight is rounded by at most as many units as a row has outputs.
    total = math.lcm(*(by_label[largest] for largest, by_label in rows))
    total <<= bits + 2 * orbits.outputs.bit_length()
    weights: dict[int, int] = {}
    for largest, by_label in rows:
        unit = by_label[largest]
        for part in by_label:
            weights[part] = unit * round(value_of[part] * total / unit)
        rest = sum(count * weights[part] for part, count in by_label.items() if part != largest)
        weights[largest] = (total - rest) // unit
    return [weights[part] for part in label], total


def _mixing(
    kernel: Sequence[Fraction],
    row: Sequence[Fraction],
    r: Fraction,
    guarantee: Guarantee,
    orbits: Orbits,
    bits: int,
) -> Fraction | None:
    """Return eta, or None if this precision leaves no room for rounding."""
    outputs = orbits.outputs
    # The total is at least 2^bits times the square of the number of outputs.
    rounding = (1 + r) * Fraction(1, outputs << bits)
    room = Fraction(guarantee.delta) - outputs * rounding
    gains = [(r - 1) * mass for mass in row]
    columns = orbits.columns.tolist()
    eta = Fraction(0)
    if room > 0:
        steps = orbits.steps
        first, second = steps.first.tolist(), steps.second.tolist()
        for edge in range(len(steps.edges)):
            part = slice(*steps.counts.indptr[edge : edge + 2])
            entries = list(
                zip(steps.counts.data[part].tolist(), steps.counts.indices[part], strict=True)
            )
            here = [count * kernel[first[step]] for count, step in entries]
            there = [count * kernel[second[step]] for count, step in entries]
            gain = [count * gains[columns[first[step]]] for count, step in entries]
            eta = max(eta, least_mixing(here, there, r, gain, room))
        return eta
    if orbits.complete:
        extremes = [
            (max(kernel[o] for o in part), min(kernel[o] for o in part), gain)
            for part, gain in zip(orbits.by_column, gains, strict=True)
        ]
    else:
        both = zip(orbits.steps.first.tolist(), orbits.steps.second.tolist(), strict=True)
        extremes = [(kernel[one], kernel[other], gains[columns[one]]) for one, other in both]
    for high, low, gain in extremes:
        # eta gain >= (1 - eta) tau + rounding
        tau = high - r * low
        if high > 0 and tau + rounding > 0:
            if gain <= rounding:
                return None
            eta = max(eta, (tau + rounding) / (gain + tau))
    return eta


def _moved(
    kernel: Sequence[Fraction], weights: Sequence[int], total: int, orbits: Orbits
) -> Fraction:
    """Return the largest total variation between a row and its rounded version."""
    counts = orbits.counts.tolist()
    gaps = [
        count * abs(value - Fraction(weight, total))
        for count, value, weight in zip(counts, kernel, weights, strict=True)
    ]
    return max(sum((gaps[o] for o in row), Fraction(0)) / 2 for row in orbits.by_row)

"""From a float table that is nearly private to integers that are, with own rows kept as well.

A solver leaves every inequality broken by its tolerance. Each constraint is convex, f(K) <= 0, so
that mixing with another kernel Z, with room f(Z) < 0, puts all right: (1 - a) K + a Z has f <= 0
from a = f(K) / (f(K) - f(Z)) on. Without own rows Z may be any input-independent law, and
`dpopt.privacy.quantise_kernel` does it. Own rows need a Z that keeps them: a program finds the one
with the most room. Equalities have none: units are moved until they are met, where that can be.

Where own rows leave little room, that is dear: 1e-10 of violation against 1e-5 of room costs 1e-5.
Then a second program is asked for the change D of K that puts all right. It is written in units
of the violation v itself, K + v D, so that the solver's tolerance counts relative to v, and what is
broken afterwards is v times that tolerance: mixing then costs next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dpopt._errors import InfeasibleError, NotPrivateError, SolverError
from dpopt._types import Matrix
from dpopt.kernel.equalities import balanced
from dpopt.kernel.setting import KernelSetting
from dpopt.lp import solve
from dpopt.lp.backends.highs import Highs
from dpopt.privacy import ExactKernel, Problem, exp_lower, quantise_kernel, stochastic_rows
from dpopt.privacy.graph import all_pairs, links

# Cost of mixing that is not worth another try, and with own rows not worth a program.
_NEGLIGIBLE, _SMALL = 1e-6, 1e-8
# Largest change of an entry by such a program, in units of the violation; and its seconds.
_FARTHEST, _SECONDS = 1e4, 20.0
# An output whose probability is nowhere above this is taken to be unused.
_UNUSED = 1e-9
# Of an interior point: room below which a row counts as having none.
_ROOM = 1e-8
_BITS = (95, 127, 255, 1023)
_ATTEMPTS = 12
# Bits between a unit and the room of the rarest output: rounding costs no more than 2^-_SPARE.
_SPARE = 40
# What shares of a mixture are over: less than 2^-160 changes no float's worth of cost.
_WHOLE = 1 << 160

Weights = list[list[int]]
Outputs = npt.NDArray[np.bool_]


def repaired(setting: KernelSetting, given: Matrix, kernel: Matrix) -> ExactKernel:
    """Return integers next to a float kernel that are certified private and keep the own rows.

    Args:
        setting: the guarantee, the neighbours and the own rows; its program in the form "edges" or
            "columns".
        given: the table that costs are measured from, shape (inputs, outputs).
        kernel: laws, of that shape, private and within the own rows up to a solver's tolerance.

    Raises:
        NotPrivateError: if no precision of the integers is enough.
    """
    kernel = _levelled(setting, kernel)
    exact = _kept(setting, given, kernel) if setting.blocks else None
    return _mixed(setting, given, kernel) if exact is None else exact


def laws(table: Matrix) -> Matrix:
    """Return a table without negative entries, each row divided by its sum."""
    positive = np.maximum(table, 0.0)
    return positive / positive.sum(axis=1, keepdims=True)


def integer_rows(table: Matrix) -> Weights:
    """Return each row of floats, negative ones as 0, as integers in exactly their proportion."""
    rows = []
    for row in np.maximum(table, 0.0).tolist():
        ratios = [value.as_integer_ratio() for value in row]
        # Denominators of floats are powers of two: the largest is a multiple of the others.
        over = max(below for _, below in ratios)
        rows.append([top * (over // below) for top, below in ratios])
    return rows


def moved(table: Matrix, exact: ExactKernel) -> Fraction:
    """Return the largest change of the probability of an event, over all inputs, exactly."""
    rows = zip(table.tolist(), exact.weights, strict=True)
    return max(_moved(row, weights, exact.bits) for row, weights in rows)


def _moved(row: Sequence[float], weights: Sequence[int], bits: int) -> Fraction:
    """Return the larger of all that a row of floats gained and all that it lost, exactly."""
    ratios = [value.as_integer_ratio() for value in row]
    shift = max(bits, *(below.bit_length() - 1 for _, below in ratios))
    gained = lost = 0
    for (top, below), weight in zip(ratios, weights, strict=True):
        away = (weight << (shift - bits)) - (top << (shift - below.bit_length() + 1))
        gained, lost = gained + max(away, 0), lost + max(-away, 0)
    return Fraction(max(gained, lost), 1 << shift)


def _levelled(setting: KernelSetting, kernel: Matrix) -> Matrix:
    """Return the kernel, for epsilon = delta = 0 with the mean row of each connected component."""
    if setting.epsilon > 0 or setting.delta > 0:
        return kernel
    graph = links(setting.pairs, setting.inputs)
    _, component = connected_components(graph, directed=False)
    count = int(component.max()) + 1
    means = np.stack([kernel[component == label].mean(axis=0) for label in range(count)])
    return means[component]


def _mixed(setting: KernelSetting, given: Matrix, kernel: Matrix) -> ExactKernel:
    """Return the kernel mixed with the input-independent row that costs least of three.

    The mean keeps what is rare rare; the others help where an output has hardly any mass.

    Raises:
        NotPrivateError: if none of them has enough room.
    """
    mean, used = kernel.mean(axis=0), kernel.max(axis=0) > 0
    uniform = used / used.sum()
    asked: Any = {"pairs": setting.pairs, "tolerance": 1.0}
    mixed: list[tuple[Fraction, ExactKernel]] = []
    refusals: list[NotPrivateError] = []
    for row in (mean, 0.5 * mean + 0.5 * uniform, uniform):
        try:
            exact = quantise_kernel(kernel, setting.guarantee, row=row, **asked)
        except NotPrivateError as refusal:
            refusals.append(refusal)
            continue
        mixed.append((moved(given, exact), exact))
        if mixed[-1][0] <= _NEGLIGIBLE:
            break
    if not mixed:
        raise refusals[0]
    return min(mixed, key=lambda pair: pair[0])[1]


def _kept(setting: KernelSetting, given: Matrix, kernel: Matrix) -> ExactKernel | None:
    """Return the kernel mixed with one that keeps the own rows; None if privacy has no room."""
    interior = _interior(setting, kernel)
    if interior is None:
        return None
    middle, outputs = interior
    mixed = _towards(setting, laws(np.where(outputs, kernel, 0.0)), middle)
    if mixed is not None and moved(kernel, mixed) <= _SMALL:
        return mixed
    # Infeasible: some violation is no solver's noise.
    with suppress(InfeasibleError, SolverError):
        changed = _changed(setting, kernel)
        exact = _towards(setting, laws(np.where(outputs, changed, 0.0)), middle)
        if mixed is None or (exact is not None and moved(given, exact) < moved(given, mixed)):
            return exact
    return mixed


def _changed(setting: KernelSetting, kernel: Matrix) -> Matrix:
    """Return K + v D, v being the worst violation and D the change of least largest entry.

    D is the solution of the setting's own rows, moved to K and divided by v.

    Raises:
        InfeasibleError: if entries would have to change by more than 10,000 v.
        SolverError: if the solver found no answer.
    """
    model = setting.problem().assemble()
    place, matrix = model.variables["kernel"], model.rows.matrix
    x = np.zeros(model.cost.size)
    x[place] = kernel.ravel()
    if "ceiling" in model.variables:
        x[model.variables["ceiling"]] = kernel.max(axis=0)
    if "excess_mass" in model.variables:
        # Rows of privacy are divided by e^epsilon.
        above = math.exp(setting.epsilon) * (matrix @ x)[model.blocks["privacy"]]
        x[model.variables["excess_mass"]] = np.maximum(above, 0.0)
    values = matrix @ x
    unit = float(max(np.max(model.rows.lower - values), np.max(values - model.rows.upper)))
    if unit <= 0:
        return kernel
    least = np.maximum((model.lower - x) / unit, -_FARTHEST)
    most = np.minimum((model.upper - x) / unit, _FARTHEST)
    lower, upper = (model.rows.lower - values) / unit, (model.rows.upper - values) / unit
    # Limits that no change within the box can reach are left out.
    reach = _FARTHEST * np.abs(matrix).sum(axis=1)
    lower[lower < -reach], upper[upper > reach] = -math.inf, math.inf
    near = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
    problem = Problem("repair")
    problem.add_variables("change", x.size, lower=least, upper=most)
    problem.add_variables("largest", 1, lower=0.0, upper=_FARTHEST)
    problem.add_rows("rows", {"change": matrix[near]}, lower=lower[near], upper=upper[near])
    every, one = sp.eye_array(x.size, format="csr")[place], np.ones((kernel.size, 1))
    problem.add_rows("above", {"change": every, "largest": -one}, upper=0.0)
    problem.add_rows("below", {"change": -every, "largest": -one}, upper=0.0)
    problem.minimise({"largest": [1.0]})
    solution = solve(problem, Highs(interior=True), time_limit=_SECONDS)
    return laws(kernel + unit * solution["change"][place].reshape(kernel.shape))


def _towards(setting: KernelSetting, kernel: Matrix, middle: Matrix) -> ExactKernel | None:
    """Return K mixed with an interior kernel Z, just enough for privacy and the own rows.

    Every constraint is convex, f(K) <= 0, so that (1 - a) K + a Z satisfies it for a >= f(K) /
    (f(K) - f(Z)) where f(Z) < 0. What is decided in integers is the result, and a is raised until
    it is right. None if it never is.
    """
    for bits in _precisions(setting, middle):
        one, other = _rounded(kernel, bits), _rounded(middle, bits)
        share = 0
        for attempt in range(_ATTEMPTS):
            weights = [_between(a, b, share) for a, b in zip(one, other, strict=True)]
            weights = balanced(weights, bits, setting.blocks)
            broken = _violated(setting, weights, other, bits)
            if not broken:
                with suppress(NotPrivateError):
                    return ExactKernel.make(
                        weights, bits, setting.guarantee, pairs=cast(Any, setting.pairs)
                    )
            # The least share that is enough but for the rounding, then twice that and so on.
            needed = max((v / (v - room) for v, room in broken), default=Fraction(0))
            more = math.ceil(needed * (_WHOLE - share)) + 1
            if share == _WHOLE:
                break
            share = min(_WHOLE, share + (more << attempt))
    return None


def _precisions(setting: KernelSetting, middle: Matrix) -> Iterator[int]:
    """Yield the bits to try: so many that the room of the rarest output is far above a unit."""
    room = -math.expm1(-setting.epsilon) or 1.0
    least = _SPARE - math.log2(float(middle[middle > 0].min())) - math.log2(room)
    yield from [bits for bits in _BITS if bits >= least] or _BITS[-1:]


def _rounded(kernel: Matrix, bits: int) -> Weights:
    """Return a kernel of floats as integers over 2^bits."""
    rows = []
    for row in integer_rows(kernel):
        total = sum(row)
        rows.append(_filled([divmod(weight << bits, total) for weight in row], 1 << bits))
    return rows


def _between(one: Sequence[int], other: Sequence[int], share: int) -> list[int]:
    """Return (1 - a) one + a other, a being ``share`` over a whole, rounded to the same sum."""
    if not share:
        return list(one)
    left = _WHOLE - share
    parts = [divmod(a * left + b * share, _WHOLE) for a, b in zip(one, other, strict=True)]
    return _filled(parts, sum(one))


def _filled(parts: list[tuple[int, int]], total: int) -> list[int]:
    """Return whole parts with the sum ``total``: the largest remainders are rounded up."""
    weights = [whole for whole, _ in parts]
    short = total - sum(weights)
    for place in sorted(range(len(parts)), key=lambda y: -parts[y][1])[:short]:
        weights[place] += 1
    return weights


def _violated(
    setting: KernelSetting, weights: Weights, middle: Weights, bits: int
) -> list[tuple[Fraction, Fraction]]:
    """Return (f(K), f(Z)) of the constraints with f(K) > 0 and f(Z) < 0, in integers."""
    both = zip(
        _constraints(setting, weights, bits), _constraints(setting, middle, bits), strict=True
    )
    return [(value, room) for value, room in both if value > 0 > room]


def _constraints(setting: KernelSetting, weights: Weights, bits: int) -> Iterator[Fraction]:
    """Yield f of each constraint f <= 0: privacy of each column or pair, and own inequalities."""
    ratio, delta = exp_lower(setting.epsilon), Fraction(setting.delta)
    pairs = None if setting.pairs is None else setting.pairs.tolist()
    up, down, unit = ratio.numerator, ratio.denominator, 1 << bits
    if delta:
        for x, other in pairs or all_pairs(None, setting.inputs).tolist():
            excess = sum(
                max(0, down * a - up * b) for a, b in zip(weights[x], weights[other], strict=True)
            )
            yield Fraction(excess, down * unit) - delta
    else:
        for column in zip(*weights, strict=True):
            if pairs is None:
                worst = down * max(column) - up * min(column)
            else:
                worst = max(down * column[x] - up * column[other] for x, other in pairs)
            yield Fraction(worst, down * unit)
    for own in setting.blocks:
        totals = own.totals(weights, bits)
        for total, lower, upper in zip(totals, own.lower, own.upper, strict=True):
            if lower is not None and lower != upper:
                yield Fraction(lower) - total
            if upper is not None and lower != upper:
                yield total - Fraction(upper)


def _interior(setting: KernelSetting, kernel: Matrix) -> tuple[Matrix, Outputs] | None:
    """Return a kernel with room in privacy and in the own rows; None if privacy has none.

    It comes with the outputs that it may use: all, or those that the given kernel uses, since own
    rows may forbid the others. Privacy without a delta is tried first, which has room for any.
    Where some own row has no room, as one that says the same as an equality, as much room as there
    is in all of them together.
    """
    every = np.ones(setting.outputs, dtype=bool)
    used = kernel.max(axis=0) > _UNUSED
    deltas = dict.fromkeys((0.0, setting.delta))
    for delta, outputs, together in product(deltas, (every, used), (True, False)):
        with suppress(InfeasibleError, SolverError):
            solution = solve(_room_problem(setting, delta, outputs, together=together))
            if float(solution["margin"][0]) > _ROOM:
                middle = solution["kernel"].reshape((setting.inputs, setting.outputs))
                return _levelled(setting, laws(np.where(outputs, middle, 0.0))), outputs
    return None


def _room_problem(
    setting: KernelSetting, delta: float, outputs: Outputs, *, together: bool
) -> Problem:
    """Return the program of a kernel that has the most room.

    "margin" is that of privacy, and with ``together`` that of every own inequality as well, in
    units of its largest coefficient; otherwise each has a margin of its own, and their sum counts.
    """
    n, m = setting.inputs, setting.outputs
    problem = Problem("room")
    upper = np.broadcast_to(outputs.astype(float), (n, m)).ravel()
    problem.add_variables("kernel", n * m, lower=0.0, upper=upper)
    own = [(rows, rows.rows(n, m)) for rows in setting.blocks]
    count = sum(2 * rows.count for rows, _ in own)
    problem.add_variables("margin", 1, lower=0.0, upper=1.0)
    problem.add_variables("margins", max(count, 1), lower=0.0, upper=1.0)
    problem.add_rows("sums", {"kernel": stochastic_rows(n, m).matrix}, lower=1.0, upper=1.0)
    _add_private_room(problem, setting, delta, outputs)
    place = 0
    for rows, dense in own:
        equal = dense.lower == dense.upper
        if equal.any():
            problem.add_rows(
                f"{rows.name} equal",
                {"kernel": dense.matrix[np.flatnonzero(equal)]},
                lower=dense.lower[equal],
                upper=dense.upper[equal],
            )
        for sign, limits in ((1.0, dense.upper), (-1.0, -dense.lower)):
            chosen = np.flatnonzero(~equal & np.isfinite(limits))
            if chosen.size:
                matrix = sign * dense.matrix[chosen]
                # What stands over no output that may be used needs no room.
                size = np.abs(matrix @ sp.diags_array(upper)).max(axis=1).toarray().ravel()
                at = (np.arange(chosen.size), place + np.arange(chosen.size))
                lift = sp.csr_array((size, at), shape=(chosen.size, max(count, 1)))
                sides = {"kernel": matrix, "margins": lift}
                problem.add_rows(f"{rows.name} {sign:+.0f}", sides, upper=limits[chosen])
                place += chosen.size
    if together and count:
        # margin <= margins: the least of all is the one that counts.
        sides = {"margin": np.ones((count, 1)), "margins": -sp.eye_array(count)}
        problem.add_rows("least", sides, upper=0.0)
    shares = np.zeros(max(count, 1)) if together else np.full(max(count, 1), 1.0 / max(count, 1))
    problem.maximise({"margin": [1.0], "margins": shares})
    return problem


def _add_private_room(
    problem: Problem, setting: KernelSetting, delta: float, outputs: Outputs
) -> None:
    """Add privacy less "margin" times what an input-independent law has of it."""
    n, m = setting.inputs, setting.outputs
    shrink, room = math.exp(-setting.epsilon), -math.expm1(-setting.epsilon)
    may = sp.csr_array(outputs.astype(float)[:, None])
    if delta > 0:
        general = setting.problem()
        excess, total = general.blocks["privacy"].matrix, general.blocks["delta"].matrix
        size = excess.shape[1] - n * m
        problem.add_variables("excess_mass", size, lower=0.0, upper=1.0)
        sides = {"kernel": excess[:, : n * m], "excess_mass": excess[:, n * m :]}
        problem.add_rows("privacy", sides, upper=0.0)
        count = total.shape[0]
        sides = {
            "excess_mass": total[:, n * m :],
            "margin": np.full((count, 1), delta),
        }
        problem.add_rows("delta", sides, upper=delta)
    elif setting.pairs is None:
        # K <= e^epsilon u and K >= u, with all the room in the latter.
        problem.add_variables("floor", m, lower=0.0, upper=1.0)
        every, lift = sp.eye_array(n * m), sp.kron(np.ones((n, 1)), sp.eye_array(m))
        least = {"kernel": -every, "floor": lift, "margin": sp.kron(np.ones((n, 1)), room * may)}
        problem.add_rows("privacy", least, upper=0.0)
        problem.add_rows("ceiling", {"kernel": shrink * every, "floor": -lift}, upper=0.0)
    else:
        first, second = (
            sp.csr_array((np.ones(len(ends)), (np.arange(len(ends)), ends)), shape=(len(ends), n))
            for ends in setting.pairs.T
        )
        ratio = sp.kron(shrink * first - second, sp.eye_array(m))
        sides = {"kernel": ratio, "margin": sp.kron(np.ones((len(setting.pairs), 1)), room * may)}
        problem.add_rows("privacy", sides, upper=0.0)

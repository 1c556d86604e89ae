"""Optimal kernels along a path without their program: the geometric mechanism, then an answer.

Inputs 0..n-1 on a path, a = e^-epsilon. The truncated geometric mechanism gives the noisy value i
for the input x with probability G[x, i] = u_i a^|x - i|, where u_i = (1 - a) / (1 + a), and 1 / (1
+ a) at both ends. It is private, and so is whatever is answered from i alone.

**Theorem.** Let the outputs be ordered such that for any two of them, z before y, the difference
loss[x, y] - loss[x, z] never rises above 0 again once it was below, as x goes along the path. Then,
for every prior, answering each noisy value with an output of least expected loss is optimal among
all private kernels; for the largest loss of an input, so is some random answer to each noisy value.

A loss that for each x is a nondecreasing function of |x - y| is of this form: of two outputs, the
nearer one is better, and which is nearer changes once, half way. So is every convex function of x -
y (asymmetric losses), and any number of outputs at any places may be offered. For losses that are
nondecreasing in |x - y| the statement is that of Ghosh, Roughgarden and Sundararajan (2012), and
with largest losses that of Gupte and Sundararajan (2010). The condition is sufficient, and not
idle: for loss[., y] = (0, 1, 0), (1, 0, 1) no answer to the geometric mechanism is optimal.

**Proof.** Write c_y(x) = prior_x loss[x, y], g_i(x) = a^|x - i|, V(i) = min_y <c_y, g_i>, and z(i)
for the first output that attains it. Let l solve <l, g_i> = V(i) for all i. The rows of G sum to 1,
which says that sum_i u_i g_i = 1: the kernel of the theorem has loss sum_i u_i V(i) = sum_x l(x).
Any kernel K has the loss sum_x l(x) + sum_y <d_y, K[., y]> with d_y = c_y - l. What is left is to
show that <d_y, k> >= 0 for every private column k.

Let H_y(i) = <d_y, g_i>: at least 0, and 0 if y = z(i). The surplus up to i, L(i) = sum_{x <= i}
a^(i-x) d_y(x), and from i on, R(i) = sum_{x >= i} a^(x-i) d_y(x), satisfy H_y(i) = L(i) + a R(i+1)
and H_y(i+1) = a L(i) + R(i+1).

(1) *z is nondecreasing.* For z before y the difference c_y - c_z is >= 0 for x < j and <= 0 from
some j on, and g_i'(x) / g_i(x) does not fall in x for i < i'. So if <c_y - c_z, g_i> < 0, then
<c_y - c_z, g_i'> <= (g_i'(j) / g_i(j)) <c_y - c_z, g_i> < 0: z is not the answer further on.

(2) *If z = z(i+1) is y or before, L(i) >= 0.* (1 - a^2) L(i) = H_y(i) - a H_y(i+1) is, as H_z(i) >=
0 = H_z(i+1), at least (H_y - H_z)(i) - a (H_y - H_z)(i+1) = (1 - a^2) S with S = sum_{x <= i}
a^(i-x) (c_y - c_z)(x). Either no term of S is below 0, or none of the terms x > i is above 0; then
0 <= (H_y - H_z)(i+1) = a S + (those terms) again says S >= 0. Likewise R(i+1) >= 0 if z(i) is y or
after.

(3) Let i be the last place with z(i) at y or before. Private k have k_{x+1} >= a k_x: the surpluses
L(0) >= 0, ..., L(i-1) >= 0 of (2) may be handed on from one place to the next, times a, and those
from the right as well. What arrives is at least L(i) k_i + R(i+1) k_{i+1}. One of the two is >= 0,
since H_y(i) and H_y(i+1) are; handed on to the other's place it leaves H_y(i) k_i or H_y(i+1)
k_{i+1}, at least 0. (At an end of the path there is one of them only.) This proves the theorem for
a prior. For the largest loss: random answers are a convex compact set, so that the least largest
loss over them is the largest, over priors, of the least loss over them (von Neumann); by the first
part, that is the largest over priors of the least loss over all kernels, which no kernel beats.

The surpluses of (3) are multipliers of the rows of privacy: with them, `Optimum.bound` is computed
from the loss and the prior alone, by weak duality, and does not rest on the theorem.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from dpopt._errors import SolverError
from dpopt._types import IntVector, Matrix, Vector, frozen
from dpopt.lp import Problem, solve
from dpopt.lp.backends.highs import Highs
from dpopt.privacy.graph import links

if TYPE_CHECKING:
    from dpopt.kernel.setting import KernelSetting

# Below this, 1 - a^2 is too small a divisor for floats; and such kernels hardly depend on x.
_LEAST_EPSILON = 1e-6
# The largest loss is found to this, relative to it; a wider gap is left to the program.
_CLOSE, _MOST_GAP, _ROUGH = 1e-11, 1e-8, 1e-4
# Up to so many inputs, or at so large an epsilon, the first answers are those around the best ones.
_FEW, _LARGE = 40, 0.7
_MOST_ROUNDS, _MOST_IDLE = 40, 5
# Of the unit, what the solver need not see of losses.
_UNSEEN = 1e-13
# Rounding of eight operations.
_EIGHT = 2.0**-50

Options = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Line:
    """Inputs and outputs in the order of the theorem.

    Attributes:
        inputs: the inputs along the path, shape (inputs,).
        outputs: the outputs, shape (outputs,).
        losses: losses in these orders, to be minimised, shape (inputs, outputs).
        epsilon: in nats.
    """

    inputs: IntVector
    outputs: IntVector
    losses: Matrix
    epsilon: float


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal kernel, and what proves that it is one.

    Attributes:
        kernel: shape (inputs, outputs), private and stochastic up to rounding, read-only.
        prior: that of the setting, or the one that makes the least loss largest, shape (inputs,).
        bound: no private kernel has a lower loss (a higher utility): by weak duality from ``prior``
            and ``multipliers``, rounded outward.
        multipliers: of e^-epsilon K[x, y] <= K[x', y] for each directed pair of neighbours, shape
            (pairs, outputs), at least 0.
    """

    kernel: Matrix
    prior: Vector
    bound: float
    multipliers: Matrix


def optimum(setting: KernelSetting) -> Optimum | None:
    """Return the optimum along a path; None if the theorem does not apply.

    For a prior there is nothing to solve, in time and memory inputs * outputs and two products of
    matrices. For the largest loss the random answers are variables of a small program, whose
    dual variables are the prior: `Optimum.bound` is that of this prior.
    """
    line = line_of(setting)
    if line is None:
        return None
    if setting.weights is None:
        found = _least_largest(line)
        if found is None or found[2] > _MOST_GAP:
            return None
        answers, prior, _ = found
    else:
        prior = setting.weights[line.inputs]
        answers = np.zeros(line.losses.shape)
        answers[np.arange(len(prior)), np.argmin(_posterior(line, prior), axis=1)] = 1.0
    bound, onward, back = _proved(line, prior)
    kernel, at_input = np.empty(line.losses.shape), np.empty(len(prior))
    kernel[np.ix_(line.inputs, line.outputs)] = geometric(len(prior), line.epsilon) @ answers
    at_input[line.inputs] = prior
    place = np.empty_like(line.inputs)
    place[line.inputs] = np.arange(len(prior))
    first, second = place[_pairs(setting)].T
    # A pair's first entry is the smaller one, times e^-epsilon: its other end has the surplus.
    multipliers = np.empty((len(first), len(line.outputs)))
    handed = np.where((second < first)[:, None], onward[second], back[second])
    multipliers[:, line.outputs] = handed
    sign = -1.0 if setting.maximises else 1.0
    return Optimum(frozen(kernel), frozen(at_input), sign * bound, frozen(multipliers))


def duals(setting: KernelSetting, found: Optimum) -> Mapping[str, Vector]:
    """Return the multipliers by block of the setting's program, as a solver would.

    Args:
        setting: one that `optimum` answers.
        found: its answer.
    """
    problem = setting.problem()
    model, sign = problem.assemble(), -1.0 if setting.maximises else 1.0
    y = np.zeros(model.rows.count)
    y[model.blocks["privacy"]] = -found.multipliers.ravel()
    if "losses" in model.blocks:
        y[model.blocks["losses"]] = -sign * float(np.abs(model.cost).max()) * found.prior
    reduced = (model.cost - model.rows.matrix.T @ y)[model.variables["kernel"]]
    y[model.blocks["sums"]] = reduced.reshape(setting.inputs, -1).min(axis=1)
    return {name: frozen(sign * y[block]) for name, block in model.blocks.items()}


def line_of(setting: KernelSetting) -> Line | None:
    """Return the setting in the theorem's order; None if it is no such setting.

    Outputs are tried as they stand, and in the order of the inputs where their loss is least.
    """
    if setting.delta > 0 or setting.epsilon < _LEAST_EPSILON:
        return None
    if setting.invariances is not None or setting.formulation not in ("auto", "edges"):
        return None
    inputs = _along(setting)
    if inputs is None:
        return None
    losses = (-setting.losses if setting.maximises else setting.losses)[inputs]
    by_place = np.argsort(np.argmin(losses, axis=0), kind="stable")
    for outputs in (np.arange(setting.outputs), by_place):
        if crosses_once(losses[:, outputs]):
            return Line(inputs, outputs, losses[:, outputs], setting.epsilon)
    return None


def _pairs(setting: KernelSetting) -> IntVector:
    return np.empty((0, 2), dtype=np.int64) if setting.pairs is None else setting.pairs


def _along(setting: KernelSetting) -> IntVector | None:
    """Return the inputs from one end of the path to the other; None if the graph is no path."""
    pairs, count = _pairs(setting), setting.inputs
    degrees = np.bincount(pairs[:, 0], minlength=count)
    if len(pairs) != 2 * (count - 1) or degrees.max() > 2:
        return None
    end = int(np.argmin(degrees))
    order = breadth_first_order(links(setting.pairs, count), end, return_predecessors=False)
    return order.astype(np.int64) if len(order) == count else None


def crosses_once(losses: Matrix) -> bool:
    """Whether no difference of two columns, the later less the earlier, is below 0 and then above.

    Args:
        losses: shape (inputs, outputs), in the order of the path and of the outputs.
    """
    count = len(losses)
    for place in range(losses.shape[1] - 1):
        change = losses[:, place + 1 :] - losses[:, [place]]
        below, above = change < 0, change > 0
        first = np.where(below.any(axis=0), np.argmax(below, axis=0), count)
        last = np.where(above.any(axis=0), count - 1 - np.argmax(above[::-1], axis=0), -1)
        if np.any(first < last):
            return False
    return True


def geometric(inputs: int, epsilon: float) -> Matrix:
    """Return the truncated geometric mechanism G, shape (inputs, inputs); at least 2 inputs."""
    return _falling(inputs, epsilon) * _scale(inputs, epsilon)


def _scale(inputs: int, epsilon: float) -> Vector:
    """Return u: the probability of the noisy value i at the input i."""
    shrink = math.exp(-epsilon)
    scale = np.full(inputs, -math.expm1(-epsilon) / (1.0 + shrink))
    scale[[0, -1]] = 1.0 / (1.0 + shrink)
    return scale


def _falling(inputs: int, epsilon: float) -> Matrix:
    """Return e^(-epsilon |x - i|)."""
    places = np.arange(inputs)
    return np.exp(-epsilon * np.abs(places[:, None] - places))


def _posterior(line: Line, prior: Vector) -> Matrix:
    """Return <c_y, g_i>: the loss of answering i with y, by a factor for each i."""
    return _falling(len(prior), line.epsilon) @ (prior[:, None] * line.losses)


def _average(line: Line) -> float:
    """Return the least mean loss over all inputs, losses counted from the lowest one."""
    prior = np.full(len(line.inputs), 1.0 / len(line.inputs))
    least = float(_scale(len(prior), line.epsilon) @ _posterior(line, prior).min(axis=1))
    return least - float(line.losses.min())


def _proved(line: Line, prior: Vector) -> tuple[float, Matrix, Matrix]:
    """Return a lower bound of the least loss, and the surpluses that prove it.

    With multipliers F, B >= 0 of a K[x + 1, y] <= K[x, y] and of a K[x - 1, y] <= K[x, y], every
    private kernel has the loss sum_xy prior_x loss[x, y] K[x, y] >= sum_xy r[x, y] K[x, y] with
    r[x, .] = prior_x loss[x, .] - F[x, .] - B[x, .] + a (F[x - 1, .] + B[x + 1, .]), hence at least
    sum_x min_y r[x, y]. Here a is a float below e^-epsilon, which asks for less than privacy does.

    Returns:
        The bound, then F and B, shapes (inputs, outputs); zero in the last (first) row.
    """
    cost, count = prior[:, None] * line.losses, len(prior)
    shrink = math.nextafter(math.nextafter(math.exp(-line.epsilon), 0.0), 0.0)
    posterior = _posterior(line, prior)
    answers = np.argmin(posterior, axis=1)
    # l = G^-T V, written in the answers: where neighbours share theirs, l(x) is its cost.
    level = cost[np.arange(count), answers]
    share = shrink / -math.expm1(-2.0 * line.epsilon)
    beside = np.arange(count - 1)
    least = posterior[np.arange(count), answers]
    level[1:] += share * (posterior[beside, answers[1:]] - least[:-1])
    level[:-1] += share * (posterior[beside + 1, answers[:-1]] - least[1:])
    onward, back = cost - level[:, None], cost - level[:, None]
    arrived = -onward
    for x in range(1, count):
        onward[x] += shrink * np.maximum(onward[x - 1], 0.0)
    for x in range(count - 2, -1, -1):
        back[x] += shrink * np.maximum(back[x + 1], 0.0)
    arrived += onward + back
    # Rounding leaves debts where there should be none: the two ways meet where these are least.
    debts, nothing = np.minimum(onward, 0.0), np.zeros((1, cost.shape[1]))
    left = np.concatenate([nothing, np.cumsum(debts[:-1], axis=0)])
    debts = np.minimum(back, 0.0)[::-1]
    right = np.concatenate([nothing, np.cumsum(debts[:-1], axis=0)])[::-1]
    meeting = np.argmax(left + right + np.minimum(arrived, 0.0), axis=0)
    places = np.arange(count)[:, None]
    onward = np.where(places < meeting, np.maximum(onward, 0.0), 0.0)
    back = np.where(places > meeting, np.maximum(back, 0.0), 0.0)
    gained = shrink * np.concatenate([nothing, onward[:-1]])
    gained += shrink * np.concatenate([back[1:], nothing])
    rounding = _EIGHT * (np.abs(cost) + onward + back + gained)
    rest = (cost - onward - back + gained - rounding).min(axis=1)
    bound = math.fsum(rest) / math.fsum(prior)
    return bound - _EIGHT * abs(bound), onward, back


def _least_largest(line: Line, enough: float = _CLOSE) -> tuple[Matrix, Vector, float] | None:
    """Return random answers R[i, y] of the least largest loss, the worst prior, and their gap.

    minimise w subject to sum_y R[i, y] = 1 and sum_iy G[x, i] loss[x, y] R[i, y] <= w, over answers
    that are optional: first those near an answer of a path with half the inputs and twice epsilon,
    then those that would be better against the prior found, until the gap is ``enough`` relative to
    the loss. None if a program was not solved.
    """
    options, best, idle = _first_options(line), None, 0
    law = geometric(len(line.losses), line.epsilon)
    for _ in range(_MOST_ROUNDS):
        found = _over_options(line, law, options)
        if found is None:
            break
        answers, prior = found
        posterior = law.T @ (prior[:, None] * line.losses)
        least = posterior.min(axis=1)
        value = float(np.max(np.sum((law @ answers) * line.losses, axis=1)))
        gap = (value - float(np.sum(least))) / _size(line, value)
        idle = 0 if best is None or gap <= 0.5 * best[2] else idle + 1
        if best is None or gap < best[2]:
            best = (answers, prior, gap)
        better = (posterior <= least[:, None]) & ~options
        patience = 0 if gap <= _MOST_GAP else _MOST_IDLE
        if gap <= enough or idle > patience or not better.any():
            break
        options |= _widened(better, 2)
    return best


def _size(line: Line, value: float) -> float:
    """Return what the error of a loss is measured by, above 0 if any loss is not 0."""
    return max(abs(value), 1e-6 * float(np.max(np.abs(line.losses)))) or 1.0


def _first_options(line: Line) -> Options:
    """Return answers that an optimum may use, by noisy value: near those of a coarser path."""
    count, outputs = line.losses.shape
    if count <= _FEW or line.epsilon >= _LARGE:
        options = np.zeros((count, outputs), dtype=bool)
        flat = np.argmin(_posterior(line, np.full(count, 1.0 / count)), axis=1)
        own = np.argmin(line.losses, axis=1)
        places = np.arange(outputs)
        options |= places >= np.minimum(flat, own)[:, None]
        options &= places <= np.maximum(flat, own)[:, None]
        return _widened(options, 1)
    # From both ends, so that a loss that is the same from either end stays so.
    half = np.arange(0, (count + 1) // 2, 2)
    kept = np.union1d(half, count - 1 - half)
    coarse = Line(kept, line.outputs, line.losses[kept], 2.0 * line.epsilon)
    found = _least_largest(coarse, _ROUGH)
    if found is None:
        return _first_options(Line(line.inputs, line.outputs, line.losses, _LARGE))
    used = found[0] > 1e-6
    first, last = np.argmax(used, axis=1), outputs - 1 - np.argmax(used[:, ::-1], axis=1)
    low = np.floor(np.interp(np.arange(count), kept, first))[:, None]
    high = np.ceil(np.interp(np.arange(count), kept, last))[:, None]
    places = np.arange(outputs)
    return _widened((places >= low) & (places <= high), 1)


def _widened(options: Options, steps: int) -> Options:
    """Return the options with those that are at most so many outputs away."""
    wide = options.copy()
    for step in range(1, steps + 1):
        wide[:, step:] |= options[:, :-step]
        wide[:, :-step] |= options[:, step:]
    return wide


def _over_options(line: Line, law: Matrix, options: Options) -> tuple[Matrix, Vector] | None:
    """Return the best random answers among the options, and the prior of their dual; None if none.

    A loss that is the same from either end has an optimum that is so (the mean of any optimum and
    its mirror image): then the variables are those of one half of the noisy values.
    """
    count, outputs = line.losses.shape
    mirrored = np.array_equal(line.losses, line.losses[::-1, ::-1])
    half = (count + 1) // 2 if mirrored else count
    value, output = np.nonzero((options | options[::-1, ::-1] if mirrored else options)[:half])
    sums = sp.csr_array((np.ones(value.size), (value, np.arange(value.size))))
    # A row for each input x, a column for each option (i, y). Rows of answers sum to 1: losses may
    # be counted from the lowest one, and from 0 to about 1, as the solver measures absolutely.
    losses = law[:, value] * (line.losses - line.losses.min())[:, output]
    if mirrored:
        losses = losses[:half] + losses[::-1][:half]
        losses[:, value == count - 1 - value] *= 0.5
    highest = float(np.max(losses @ (1.0 / np.bincount(value)[value])))
    unit = max(_average(line), 1e-6 * highest) or 1.0
    losses[losses < _UNSEEN * unit] = 0.0
    problem = Problem("answers to the geometric mechanism")
    problem.add_variables("answers", value.size, lower=0.0, upper=1.0)
    problem.add_variables("worst", 1, lower=0.0, upper=highest / unit)
    problem.add_rows("sums", {"answers": sums}, lower=1.0, upper=1.0)
    sides = {"answers": sp.csr_array(losses / unit), "worst": np.full((half, 1), -1.0)}
    problem.add_rows("losses", sides, upper=0.0)
    problem.minimise({"worst": [1.0]})
    try:
        solution = solve(problem, Highs(interior=True), tolerance=_MOST_GAP, relative_gap=1e-6)
    except SolverError:
        return None
    answers = np.zeros((count, outputs))
    answers[value, output] = np.maximum(solution["answers"], 0.0)
    prior = np.zeros(count)
    prior[:half] = np.maximum(-solution.duals["losses"], 0.0)
    if mirrored:
        answers, prior = answers + answers[::-1, ::-1], prior + prior[::-1]
    if not (answers.any(axis=1).all() and prior.any()):
        return None
    return answers / answers.sum(axis=1, keepdims=True), prior / prior.sum()

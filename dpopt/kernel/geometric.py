"""Optimal kernels on paths and grids without their program: geometric noise, then an answer.

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

The proof is on the page docs/findings/kernels.md. With c_y(x) = prior_x loss[x, y], z(i) the first
output of least <c_y, g_i>, g_i(x) = a^|x - i|, and l the function with <l, g_i> = <c_z(i), g_i>, it
shows <c_y - l, k> >= 0 for every private column k. The surpluses of d_y = c_y - l up to a place
and from it on, L(i) = sum_{x <= i} a^(i-x) d_y(x) and R(i) = sum_{x >= i} a^(x-i) d_y(x), are at
least 0 up to the last place with z(i) at y or before, and after it, and may be handed on to it.

**Grids.** Let inputs and outputs be words of one shape, neighbours words that differ by 1 in one
symbol, loss[x, y] = sum_j loss_j[x_j, y_j] with each loss_j as above, and the prior a product of
priors of the symbols, as the uniform one is. Then the optimum tells each symbol on its own, by its
own optimal kernel with the whole epsilon, and its loss is the sum of theirs. That is
proved on the same page.

These surpluses are multipliers of the rows of privacy: with them, `Optimum.bound` is computed
from the loss and the prior alone, by weak duality, and does not rest on the theorem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from dpopt._errors import SolverError
from dpopt._types import IntVector, Matrix, Vector, frozen
from dpopt.lp import solve
from dpopt.lp.backends.highs import Highs
from dpopt.privacy import Problem
from dpopt.privacy.graph import links

if TYPE_CHECKING:
    from dpopt.kernel.setting import Kernel

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
# Up to this, relative to the largest, losses and priors may differ from those of symbols.
_NOISE = 1e-12

Options = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Line:
    """Inputs and outputs of a path in the order of the theorem.

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
        bound: no private kernel has a lower loss (a higher utility): by weak duality from the
            prior, or the one that makes the least loss largest, and multipliers of the rows of
            privacy, rounded outward.
    """

    kernel: Matrix
    bound: float


@dataclass(frozen=True, eq=False)
class _Symbols:
    """A setting as one of words: a path has words of one symbol.

    Attributes:
        lines: the path of each symbol.
        priors: the prior of each symbol; None where the largest loss counts.
        missed: most that any kernel's loss differs from the sum over the symbols, for the rounding
            of the loss and of the prior.
    """

    lines: tuple[Line, ...]
    priors: tuple[Vector, ...] | None
    missed: float


def optimum(setting: Kernel) -> Optimum | None:
    """Return the optimum on a path or a grid; None if the theorem does not apply.

    For a prior there is nothing to solve, in time and memory inputs * outputs and two products of
    matrices. For the largest loss the random answers are variables of a small program, whose
    dual variables are the prior that `Optimum.bound` is for.
    """
    words = _words(setting)
    if words is None:
        return None
    priors = [None] * len(words.lines) if words.priors is None else words.priors
    solved: list[Optimum] = []
    for line, prior in zip(words.lines, priors, strict=True):
        symbol = _solved(line, prior)
        if symbol is None:
            return None
        solved.append(symbol)
    bound = math.fsum(symbol.bound for symbol in solved)
    bound -= words.missed + (_EIGHT * abs(bound) if len(solved) > 1 else 0.0)
    return Optimum(
        kernel=frozen(reduce(np.kron, (symbol.kernel for symbol in solved))),
        bound=-bound if setting.maximises else bound,
    )


def _solved(line: Line, prior: Vector | None) -> Optimum | None:
    """Return the optimum along one path, for a prior by input or for the largest loss.

    Its bound is of the losses, which are minimised, and its kernel may be written to.
    """
    if prior is None:
        largest = _least_largest(line)
        if largest is None or largest[2] > _MOST_GAP:
            return None
        answers, along, _ = largest
    else:
        along = prior[line.inputs]
        answers = np.zeros(line.losses.shape)
        answers[np.arange(len(along)), np.argmin(_posterior(line, along), axis=1)] = 1.0
    place, output = np.argsort(line.inputs), np.argsort(line.outputs)
    kernel = geometric(len(along), line.epsilon) @ answers
    return Optimum(kernel[place][:, output], _proved(line, along))


def _words(setting: Kernel) -> _Symbols | None:
    """Return the setting as one of the theorem; None if it is none."""
    if setting.delta > 0 or setting.epsilon < _LEAST_EPSILON:
        return None
    if setting.blocks or setting.invariances is not None or setting.symmetry != "none":
        return None
    losses = -setting.loss_table if setting.maximises else setting.loss_table
    if setting.graph_name == "grid" and setting.shape is not None and len(setting.shape) > 1:
        return _grid(losses, setting.weights, tuple(setting.shape), setting.epsilon)
    inputs = _along(setting)
    line = None if inputs is None else _line(losses, inputs, setting.epsilon)
    if line is None:
        return None
    return _Symbols((line,), None if setting.weights is None else (setting.weights,), 0.0)


def _line(losses: Matrix, inputs: IntVector, epsilon: float) -> Line | None:
    """Return a path in the theorem's order; None if there is none.

    Outputs are tried as they stand, and in the order of the inputs where their loss is least.
    """
    along = losses[inputs]
    by_place = np.argsort(np.argmin(along, axis=0), kind="stable")
    for outputs in (np.arange(losses.shape[1]), by_place):
        if crosses_once(along[:, outputs]):
            return Line(inputs, outputs, along[:, outputs], epsilon)
    return None


def _grid(
    losses: Matrix, prior: Vector | None, shape: tuple[int, ...], epsilon: float
) -> _Symbols | None:
    """Return the symbols of a grid; None if loss or prior are not made of the symbols' own.

    With losses of one symbol as they are between words whose other symbols are all 0, these are
    counted once for each symbol: the share of the others is taken off.
    """
    if losses.shape[0] != losses.shape[1] or min(shape) < 2:
        return None
    count, size = len(shape), float(np.max(np.abs(losses)))
    words, lines = losses.reshape(*shape, *shape), []
    rebuilt = np.zeros_like(words)
    for j, symbols in enumerate(shape):
        place: list[Any] = [0] * (2 * count)
        place[j] = place[count + j] = slice(None)
        own = words[tuple(place)] - losses[0, 0] * ((count - 1) / count)
        line = _line(own, np.arange(symbols), epsilon)
        if line is None:
            return None
        lines.append(line)
        sides = [1] * (2 * count)
        sides[j] = sides[count + j] = symbols
        rebuilt += own.reshape(sides)
    missed, priors = float(np.max(np.abs(rebuilt - words))), None
    if prior is not None:
        table = prior.reshape(shape)
        priors = tuple(table.sum(axis=tuple({*range(count)} - {j})) for j in range(count))
        missed += float(np.sum(np.abs(reduce(np.kron, priors) - prior))) * size
    # Twice, for the rounding of these differences themselves.
    return None if missed > _NOISE * size else _Symbols(tuple(lines), priors, 2.0 * missed)


def _along(setting: Kernel) -> IntVector | None:
    """Return the inputs from one end of the path to the other; None if the graph is no path."""
    pairs, count = setting.pairs, setting.inputs
    if pairs is None or len(pairs) != 2 * (count - 1):
        return None
    degrees = np.bincount(pairs[:, 0], minlength=count)
    if degrees.max() > 2:
        return None
    end = int(np.argmin(degrees))
    order = breadth_first_order(links(pairs, count), end, return_predecessors=False)
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


def _proved(line: Line, prior: Vector) -> float:
    """Return a lower bound of the least loss, which the surpluses prove.

    With multipliers F, B >= 0 of a K[x + 1, y] <= K[x, y] and of a K[x - 1, y] <= K[x, y], every
    private kernel has the loss sum_xy prior_x loss[x, y] K[x, y] >= sum_xy r[x, y] K[x, y] with
    r[x, .] = prior_x loss[x, .] - F[x, .] - B[x, .] + a (F[x - 1, .] + B[x + 1, .]), hence at least
    sum_x min_y r[x, y]. Here a is a float below e^-epsilon, which asks for less than privacy does.
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
    return bound - _EIGHT * abs(bound)


def _least_largest(line: Line, enough: float = _CLOSE) -> tuple[Matrix, Vector, float] | None:
    """Return random answers R[i, y] of the least largest loss, the worst prior, and their gap.

    minimise w subject to sum_y R[i, y] = 1 and sum_iy G[x, i] loss[x, y] R[i, y] <= w, over answers
    that are optional: first those near an answer of a path with half the inputs and twice epsilon,
    then those that would be better against the prior found, until the gap is ``enough`` relative to
    the loss. None if a program was not solved.
    """
    options, best, idle = _first_options(line), None, 0
    pmf = geometric(len(line.losses), line.epsilon)
    for _ in range(_MOST_ROUNDS):
        found = _over_options(line, pmf, options)
        if found is None:
            break
        answers, prior = found
        posterior = pmf.T @ (prior[:, None] * line.losses)
        least = posterior.min(axis=1)
        value = float(np.max(np.sum((pmf @ answers) * line.losses, axis=1)))
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
    """Return what the error of a loss is measured by, above 0 if any loss is not 0.

    Where losses of both signs cancel, that is the loss counted from the lowest one, as in the
    program: a solver's error is relative to this.
    """
    lowest, largest = float(np.min(line.losses)), float(np.max(np.abs(line.losses)))
    return max(abs(value), value - lowest, 1e-6 * largest) or 1.0


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


def _over_options(line: Line, pmf: Matrix, options: Options) -> tuple[Matrix, Vector] | None:
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
    losses = pmf[:, value] * (line.losses - line.losses.min())[:, output]
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

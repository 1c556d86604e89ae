"""Optimal kernels on paths and grids in closed form: geometric noise, then post-processing.

Inputs 0..n-1 on a path, a = e^-epsilon. The truncated geometric mechanism gives the noisy value i
for the input x with probability G[x, i] = u_i a^|x - i|, where u_i = (1 - a) / (1 + a), and 1 / (1
+ a) at both ends. It is private, and so is every function of the noisy value i alone.

**Theorem.** Order the outputs such that, for any two of them with z before y, the difference
loss[x, y] - loss[x, z] never rises above 0 after having been below 0, as x moves along the path.
Then, for every prior, answering each noisy value with an output of least expected loss is optimal
among all private kernels; for the worst input, some random answer to each noisy value is optimal.

Losses nondecreasing in |x - y| satisfy this, and every convex function of x - y. For the former
the theorem is that of Ghosh, Roughgarden and Sundararajan (2012), and for the worst input that of
Gupte and Sundararajan (2010). The proof is on the page docs/findings/kernels.md. With c_y(x) =
prior_x loss[x, y] it bounds d_y = c_y - l, for a suitable l, by its surpluses on both sides of an
index i, L(i) = sum_{x <= i} a^(i-x) d_y(x) and R(i) = sum_{x >= i} a^(x-i) d_y(x).

**Grids.** Let inputs and outputs be words of one shape, neighbours words that differ by 1 in one
symbol, loss[x, y] = sum_j loss_j[x_j, y_j] with each loss_j as above, and the prior a product of
priors of the symbols, as the uniform one is. Then it is optimal to release each symbol
independently by its own optimal kernel with the whole epsilon, and the losses add up. The proof is
on the same page.

These surpluses are multipliers of the privacy rows: `Optimum.bound` is computed from them, the loss
and the prior alone, by weak duality, and does not rely on the theorem.
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

# Relative gaps of the worst input's loss: where the search stops, the largest that is accepted (the
# linear program is solved instead if it is exceeded), and the one for a coarser path.
_CLOSE, _MOST_GAP, _ROUGH = 1e-11, 1e-8, 1e-4
# A path of at most so many inputs, or with so large an epsilon, is not coarsened further.
_FEW, _LARGE = 40, 0.7
# Rounds of adding answers, and of them consecutive ones that do not halve the gap.
_MOST_ROUNDS, _MOST_IDLE = 40, 5
# Relative rounding error of eight float operations.
_EIGHT = 2.0**-50

Options = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Line:
    """A path: its inputs, its outputs in the order of the theorem, and losses[x, y] to minimise."""

    inputs: IntVector
    outputs: IntVector
    losses: Matrix
    epsilon: float


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal kernel K[x, y], and a bound by weak duality, rounded outward, that proves it."""

    kernel: Matrix
    bound: float


# The path of each symbol with its prior (None: the worst input), and the largest difference, by
# rounding, of any kernel's loss from the sum over the symbols.
_Symbols = tuple[list[tuple[Line, Vector | None]], float]


def optimum(setting: Kernel) -> Optimum | None:
    """Return the optimum on a path or a grid; None if the theorem does not apply."""
    lines, missed = _per_symbol(setting) or ([], 0.0)
    symbols = [symbol for line in lines if (symbol := _line_optimum(*line)) is not None]
    if not lines or len(symbols) < len(lines):
        return None
    bound = math.fsum(symbol.bound for symbol in symbols)
    bound -= missed + (_EIGHT * abs(bound) if len(symbols) > 1 else 0.0)
    kernel = frozen(reduce(np.kron, (symbol.kernel for symbol in symbols)))
    return Optimum(kernel, -bound if setting.maximises else bound)


def _line_optimum(line: Line, prior: Vector | None) -> Optimum | None:
    """Return the optimum along one path, for a prior of the inputs; for the worst input if None."""
    if prior is None:
        largest = _minimax_answers(line)
        if largest is None or largest[2] > _MOST_GAP:
            return None
        answers, line_prior, _ = largest
    else:
        line_prior = prior[line.inputs]
        answers = np.zeros(line.losses.shape)
        answers[np.arange(len(line_prior)), np.argmin(_posterior(line, line_prior), axis=1)] = 1.0
    input_order, output_order = np.argsort(line.inputs), np.argsort(line.outputs)
    kernel = geometric(len(line_prior), line.epsilon) @ answers
    return Optimum(kernel[input_order][:, output_order], _dual_bound(line, line_prior))


def _per_symbol(setting: Kernel) -> _Symbols | None:
    """Return the paths of a setting's symbols, or one; None if the theorem does not apply."""
    # In nats. Below it, 1 - a^2 is too small a divisor for floats; such kernels hardly depend on x.
    if setting.delta > 0 or setting.epsilon < 1e-6:
        return None
    if setting.blocks or setting.invariant is not None or setting.symmetry != "none":
        return None
    losses = -setting.loss_table if setting.maximises else setting.loss_table
    if setting.graph_name == "grid" and setting.shape is not None and len(setting.shape) > 1:
        return _grid_lines(losses, setting.weights, tuple(setting.shape), setting.epsilon)
    inputs = _path_order(setting)
    line = None if inputs is None else _ordered_line(losses, inputs, setting.epsilon)
    return None if line is None else ([(line, setting.weights)], 0.0)


def _ordered_line(losses: Matrix, inputs: IntVector, epsilon: float) -> Line | None:
    """Return a path with its outputs in an order of the theorem; None if none was found."""
    path_losses = losses[inputs]
    by_best_input = np.argsort(np.argmin(path_losses, axis=0), kind="stable")
    for outputs in (np.arange(losses.shape[1]), by_best_input):
        if crosses_once(path_losses[:, outputs]):
            return Line(inputs, outputs, path_losses[:, outputs], epsilon)
    return None


def _grid_lines(
    losses: Matrix, prior: Vector | None, shape: tuple[int, ...], epsilon: float
) -> _Symbols | None:
    """Return the paths of a grid; None if the loss is no sum, or the prior no product, of symbols'.

    The loss of symbol j is read from words whose other symbols are all 0. Their loss, loss[0, 0]
    in all, would be counted once for each symbol, so (count - 1) / count of it is subtracted.
    """
    if losses.shape[0] != losses.shape[1] or min(shape) < 2:
        return None
    count, size = len(shape), float(np.max(np.abs(losses)))
    # Axes: one for each symbol of the input, then one for each symbol of the output.
    words, lines = losses.reshape(*shape, *shape), list[tuple[Line, Vector | None]]()
    rebuilt, product = np.zeros_like(words), np.ones(1)
    for j, symbols in enumerate(shape):
        index: list[Any] = [0] * (2 * count)
        index[j] = index[count + j] = slice(None)
        symbol_losses = words[tuple(index)] - losses[0, 0] * ((count - 1) / count)
        line = _ordered_line(symbol_losses, np.arange(symbols), epsilon)
        if line is None:
            return None
        others = tuple({*range(count)} - {j})
        symbol_prior = None if prior is None else prior.reshape(shape).sum(axis=others)
        product = product if symbol_prior is None else np.kron(product, symbol_prior)
        lines.append((line, symbol_prior))
        # Broadcast over all other symbols of input and output.
        sides = [1] * (2 * count)
        sides[j] = sides[count + j] = symbols
        rebuilt += symbol_losses.reshape(sides)
    missed = float(np.max(np.abs(rebuilt - words)))
    if prior is not None:
        missed += float(np.sum(np.abs(product - prior))) * size
    # Losses and priors may be so far from sums and products over symbols, over the largest entry.
    # Doubled to cover the rounding of these differences themselves.
    return None if missed > 1e-12 * size else (lines, 2.0 * missed)


def _path_order(setting: Kernel) -> IntVector | None:
    """Return the inputs from one end of the path to the other; None if the graph is not a path."""
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
    """Whether no difference of two columns, later minus earlier, rises above 0 after below."""
    count = len(losses)
    # Along axis 0, the first index below 0 must come after the last one above 0.
    for output in range(losses.shape[1] - 1):
        change = losses[:, output + 1 :] - losses[:, [output]]
        below, above = change < 0, change > 0
        first = np.where(below.any(axis=0), np.argmax(below, axis=0), count)
        last = np.where(above.any(axis=0), count - 1 - np.argmax(above[::-1], axis=0), -1)
        if np.any(first < last):
            return False
    return True


def geometric(inputs: int, epsilon: float) -> Matrix:
    """Return the truncated geometric mechanism G[x, i], shape (inputs, inputs), inputs >= 2."""
    return _decay(inputs, epsilon) * _scale(inputs, epsilon)


def _scale(inputs: int, epsilon: float) -> Vector:
    """Return u_i: the probability of the noisy value i for the input i."""
    shrink = math.exp(-epsilon)
    scale = np.full(inputs, -math.expm1(-epsilon) / (1.0 + shrink))
    scale[[0, -1]] = 1.0 / (1.0 + shrink)
    return scale


def _decay(inputs: int, epsilon: float) -> Matrix:
    """Return e^(-epsilon |x - i|), shape (inputs, inputs)."""
    index = np.arange(inputs)
    return np.exp(-epsilon * np.abs(index[:, None] - index))


def _posterior(line: Line, prior: Vector) -> Matrix:
    """Return <c_y, g_i>, shape (noisy values i, outputs y): u_i times it is the loss of y for i."""
    return _decay(len(prior), line.epsilon) @ (prior[:, None] * line.losses)


def _dual_bound(line: Line, prior: Vector) -> float:
    """Return a lower bound on the least loss, by weak duality with the surpluses as multipliers.

    With multipliers F, B >= 0 of a K[x + 1, y] <= K[x, y] and of a K[x - 1, y] <= K[x, y], every
    private kernel has the loss sum_xy prior_x loss[x, y] K[x, y] >= sum_xy r[x, y] K[x, y] with
    r[x, .] = prior_x loss[x, .] - F[x, .] - B[x, .] + a (F[x - 1, .] + B[x + 1, .]), hence at least
    sum_x min_y r[x, y]. Here a is a float below e^-epsilon: the rows are weaker than privacy.
    """
    cost, count = prior[:, None] * line.losses, len(prior)
    shrink = math.nextafter(math.nextafter(math.exp(-line.epsilon), 0.0), 0.0)
    posterior = _posterior(line, prior)
    answers = np.argmin(posterior, axis=1)
    # l = G^-T V in closed form: l(x) is the cost of x's answer where its neighbours share it.
    level = cost[np.arange(count), answers]
    share = shrink / -math.expm1(-2.0 * line.epsilon)
    before = np.arange(count - 1)
    least = posterior[np.arange(count), answers]
    level[1:] += share * (posterior[before, answers[1:]] - least[:-1])
    level[:-1] += share * (posterior[before + 1, answers[:-1]] - least[1:])
    # `onward` becomes L, the surplus up to x, `back` R, that from x on, and `arrived` L + R - d.
    onward, back = cost - level[:, None], cost - level[:, None]
    arrived = -onward
    for x in range(1, count):
        onward[x] += shrink * np.maximum(onward[x - 1], 0.0)
    for x in range(count - 2, -1, -1):
        back[x] += shrink * np.maximum(back[x + 1], 0.0)
    arrived += onward + back
    # Rounding makes some surpluses negative. For each output, L is used before an index and R after
    # it; the index is the one where the negative parts add up to least.
    debts, nothing = np.minimum(onward, 0.0), np.zeros((1, cost.shape[1]))
    debts_before = np.concatenate([nothing, np.cumsum(debts[:-1], axis=0)])
    debts = np.minimum(back, 0.0)[::-1]
    debts_after = np.concatenate([nothing, np.cumsum(debts[:-1], axis=0)])[::-1]
    meeting = np.argmax(debts_before + debts_after + np.minimum(arrived, 0.0), axis=0)
    index = np.arange(count)[:, None]
    onward = np.where(index < meeting, np.maximum(onward, 0.0), 0.0)
    back = np.where(index > meeting, np.maximum(back, 0.0), 0.0)
    # a (F[x - 1, .] + B[x + 1, .]): what each input gains from its two neighbours' multipliers.
    gained = shrink * np.concatenate([nothing, onward[:-1]])
    gained += shrink * np.concatenate([back[1:], nothing])
    rounding = _EIGHT * (np.abs(cost) + onward + back + gained)
    reduced = (cost - onward - back + gained - rounding).min(axis=1)
    bound = math.fsum(reduced) / math.fsum(prior)
    return bound - _EIGHT * abs(bound)


def _minimax_answers(line: Line, enough: float = _CLOSE) -> tuple[Matrix, Vector, float] | None:
    """Return random answers R[i, y] that are best for the worst input, the worst prior, their gap.

    minimise w subject to sum_y R[i, y] = 1 and sum_iy G[x, i] loss[x, y] R[i, y] <= w, by column
    generation over the answers (i, y): first those near an answer of a path with half the inputs
    and twice epsilon, then those that improve on the current dual prior, until the gap is
    ``enough`` relative to the loss. None if a program was not solved.
    """
    options, best, idle = _first_options(line), None, 0
    pmf = geometric(len(line.losses), line.epsilon)
    lowest, largest = float(np.min(line.losses)), float(np.max(np.abs(line.losses)))
    for _ in range(_MOST_ROUNDS):
        solved = _best_among(line, pmf, options)
        if solved is None:
            break
        answers, prior = solved
        posterior = pmf.T @ (prior[:, None] * line.losses)
        least = posterior.min(axis=1)
        value = float(np.max(np.sum((pmf @ answers) * line.losses, axis=1)))
        # Relative to the loss; where signs cancel, to what it is above the lowest loss.
        size = max(abs(value), value - lowest, 1e-6 * largest) or 1.0
        gap = (value - float(np.sum(least))) / size
        idle = 0 if best is None or gap <= 0.5 * best[2] else idle + 1
        if best is None or gap < best[2]:
            best = (answers, prior, gap)
        better = (posterior <= least[:, None]) & ~options
        patience = 0 if gap <= _MOST_GAP else _MOST_IDLE
        if gap <= enough or idle > patience or not better.any():
            break
        options |= _widen(better, 2)
    return best


def _first_options(line: Line) -> Options:
    """Return the answers to start from, shape (noisy values, outputs): those of a coarser path."""
    count, outputs = line.losses.shape
    if count <= _FEW or line.epsilon >= _LARGE:
        # All outputs between the best for the uniform prior and the best for the noisy value.
        options = np.zeros((count, outputs), dtype=bool)
        flat = np.argmin(_posterior(line, np.full(count, 1.0 / count)), axis=1)
        cheapest = np.argmin(line.losses, axis=1)
        output = np.arange(outputs)
        options |= output >= np.minimum(flat, cheapest)[:, None]
        options &= output <= np.maximum(flat, cheapest)[:, None]
        return _widen(options, 1)
    # Every second input counted from both ends, so that a symmetric loss stays symmetric.
    half = np.arange(0, (count + 1) // 2, 2)
    sampled = np.union1d(half, count - 1 - half)
    coarse = Line(sampled, line.outputs, line.losses[sampled], 2.0 * line.epsilon)
    coarse_optimum = _minimax_answers(coarse, _ROUGH)
    if coarse_optimum is None:
        return _first_options(Line(line.inputs, line.outputs, line.losses, _LARGE))
    used = coarse_optimum[0] > 1e-6
    first, last = np.argmax(used, axis=1), outputs - 1 - np.argmax(used[:, ::-1], axis=1)
    # First and last output used by a sampled input, interpolated to all inputs.
    low = np.floor(np.interp(np.arange(count), sampled, first))[:, None]
    high = np.ceil(np.interp(np.arange(count), sampled, last))[:, None]
    output = np.arange(outputs)
    return _widen((output >= low) & (output <= high), 1)


def _widen(options: Options, steps: int) -> Options:
    """Return the options and all answers at most ``steps`` outputs away from one."""
    wide = options.copy()
    for step in range(1, steps + 1):
        wide[:, step:] |= options[:, :-step]
        wide[:, :-step] |= options[:, step:]
    return wide


def _best_among(line: Line, pmf: Matrix, options: Options) -> tuple[Matrix, Vector] | None:
    """Return the best random answers among the options and their dual prior; None if unsolved.

    A loss that is symmetric under reversal of inputs and outputs has a symmetric optimum (the mean
    of any optimum and its mirror image): then only half of the noisy values have variables.
    """
    count, outputs = line.losses.shape
    mirrored = np.array_equal(line.losses, line.losses[::-1, ::-1])
    half = (count + 1) // 2 if mirrored else count
    value, output = np.nonzero((options | options[::-1, ::-1] if mirrored else options)[:half])
    sums = sp.csr_array((np.ones(value.size), (value, np.arange(value.size))))
    # A row for each input x, a column for each option (i, y). Answers sum to 1, so the lowest loss
    # may be subtracted; scaling to about 1 suits the solver's absolute tolerances.
    losses = pmf[:, value] * (line.losses - line.losses.min())[:, output]
    if mirrored:
        # A variable stands for (i, y) and its mirror image; the middle i is its own.
        losses = losses[:half] + losses[::-1][:half]
        losses[:, value == count - 1 - value] *= 0.5
    highest = float(np.max(losses @ (1.0 / np.bincount(value)[value])))
    # The least mean loss for the uniform prior, minus the lowest loss of all.
    means = _posterior(line, np.full(count, 1.0 / count)).min(axis=1)
    average = float(_scale(count, line.epsilon) @ means) - float(line.losses.min())
    unit = max(average, 1e-6 * highest) or 1.0
    # Losses below this share of the unit are set to 0 for the solver.
    losses[losses < 1e-13 * unit] = 0.0
    problem = Problem("answers to the geometric mechanism")
    problem.add_variables("answers", value.size, lower=0.0, upper=1.0)
    problem.add_variables("worst", 1, lower=0.0, upper=highest / unit)
    problem.add_rows("sums", {"answers": sums}, lower=1.0, upper=1.0)
    sides = {"answers": sp.csr_array(losses / unit), "worst": np.full((half, 1), -1.0)}
    problem.add_rows("losses", sides, upper=0.0)
    problem.minimise({"worst": [1.0]})
    try:
        solution = solve(problem, Highs(interior=1e-12), tolerance=_MOST_GAP, relative_gap=1e-6)
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

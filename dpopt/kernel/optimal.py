"""From a loss matrix to the best private kernel, repaired and certified exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._types import Matrix, Vector, frozen
from dpopt.kernel.graph import all_pairs
from dpopt.kernel.program import OWN_BLOCKS, ExtraRows, kernel_problem
from dpopt.kernel.rays import solve_kernel
from dpopt.kernel.result import KernelDesign
from dpopt.kernel.setting import KernelSetting
from dpopt.kernel.variables import kernel_of, kernel_shape
from dpopt.lp import Backend, Problem, Solution
from dpopt.privacy import ExactKernel, quantise_kernel
from dpopt.provenance import versions

# Total variation that repair and rounding may move a row; the gap shows what it cost.
_TOLERANCE = 1e-5
# An output whose probability is nowhere above this is taken to be unused.
_UNUSED = 1e-9


def optimal_kernel(
    loss: npt.ArrayLike,
    *,
    epsilon: float,
    delta: float = 0.0,
    graph: str | npt.ArrayLike = "complete",
    shape: Sequence[int] | None = None,
    prior: npt.ArrayLike | None = None,
    objective: str = "bayes",
    sense: str = "minimise",
    invariant: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    formulation: str = "auto",
    rows: ExtraRows | Callable[[KernelSetting], ExtraRows] | None = None,
    backend: str | Backend = "highs",
    time_limit: float | None = None,
) -> KernelDesign:
    """Return the (epsilon, delta)-private kernel of least expected loss, certified exactly.

    Minimise sum_x prior_x sum_y loss_xy K_xy ("bayes") or max_x sum_y loss_xy K_xy ("minimax")
    over row-stochastic K with K(S | x) <= e^epsilon K(S | x') + delta for all neighbours x, x'
    and all sets S of outputs.

    Args:
        loss: shape (inputs, outputs), at least 2 inputs; a utility if ``sense`` is "maximise".
        epsilon: in [0, 600], in nats.
        delta: in [0, 1).
        graph: neighbouring inputs: "complete", "path", "hamming" (words of ``shape``), or
            undirected edges, shape (edges, 2). Inputs without an edge are not protected, nor are
            parts that no edge joins from each other; the certificate's claim counts them.
        shape: see `KernelSetting`, as for prior, objective, sense and invariant.
        prior: weights of the inputs for "bayes", shape (inputs,); uniform if None.
        objective: "bayes" or "minimax".
        sense: "minimise" or "maximise".
        invariant: q with q K = q, or (A, B) with A K = B; kept up to ``residuals["invariance"]``.
        formulation: see `kernel_problem`, as for rows.
        rows: further linear rows over the flattened kernel.
        backend: see `dpopt.solve`; for how the program is solved, see `solve_kernel`.
        time_limit: seconds for the solve.

    Raises:
        ParameterError: for a parameter out of range, or a combination that is not offered.
        InfeasibleError: if the further rows leave no kernel; it names the blocks in conflict.
        NotPrivateError: if repair would move a row by more than 1e-5.
        SolverError: if the solver found no answer.

    References:
        Ghosh, Roughgarden, Sundararajan (2012) for count queries; Kairouz, Oh, Viswanath (2016)
        for local privacy.

    Example:
        >>> import numpy as np
        >>> from dpopt import kernel
        >>> design = kernel.optimal_kernel([[0, 1], [1, 0]], epsilon=np.log(3))
        >>> round(design.value, 6), design.kernel.round(6).tolist()
        (0.25, [[0.75, 0.25], [0.25, 0.75]])
    """
    setting = KernelSetting(loss, epsilon, delta, graph, shape, prior, objective, sense, invariant)
    problem = kernel_problem(setting, formulation=formulation, rows=rows)
    solution = solve_kernel(setting, problem, backend, time_limit=time_limit)
    return design_of(setting, problem, solution)


def design_of(setting: KernelSetting, problem: Problem, solution: Solution) -> KernelDesign:
    """Return the certified design of a solved kernel program, with whatever rows were added.

    The kernel is repaired (`dpopt.privacy.quantise_kernel`): mixed with an input-independent row
    just enough for every privacy inequality, then rounded to integers that are certified.

    Args:
        setting: the one that the problem was made from.
        problem: from `kernel_problem`, perhaps with further rows or variables, but with its
            objective: value, bound and gap refer to the setting's.
        solution: of this problem.

    Raises:
        ParameterError: if setting, problem and solution do not belong together.
        NotPrivateError: if repair would move a row by more than 1e-5 in total variation.
    """
    _checks.instance("setting", setting, KernelSetting)
    if kernel_shape(problem) != (setting.inputs, setting.outputs):
        raise ParameterError(
            f"problem has a kernel of shape {kernel_shape(problem)}; the setting's is "
            f"{(setting.inputs, setting.outputs)}."
        )
    exact = _certified(setting, _cleaned(setting, kernel_of(problem, solution)))
    value = _value(setting, exact)
    away = value - solution.bound
    return KernelDesign(
        setting=setting,
        formulation=_formulation(problem),
        exact=exact,
        kernel=frozen(exact.matrix()),
        value=value,
        bound=solution.bound,
        gap=away if setting.sense == "minimise" else -away,
        residuals=_residuals(setting, problem, solution, exact),
        solution=solution,
        provenance=versions(),
    )


def _formulation(problem: Problem) -> str:
    if "kernel" not in problem.variables:
        return "shifted"
    return "columns" if "minimum" in problem.variables else "edges"


def _cleaned(setting: KernelSetting, kernel: Matrix) -> Matrix:
    """Return the kernel without outputs of solver noise, rows summing to 1.

    For epsilon = delta = 0, the mean row of each connected component: rows must be equal.
    """
    kernel = np.maximum(kernel, 0.0)
    kernel[:, kernel.max(axis=0) <= _UNUSED] = 0.0
    if setting.epsilon == 0 and setting.delta == 0:
        pairs = all_pairs(setting.pairs, setting.inputs)
        links = sp.csr_array(
            (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(setting.inputs,) * 2
        )
        _, part = connected_components(links, directed=False)
        means = [kernel[part == label].mean(axis=0) for label in range(int(part.max()) + 1)]
        kernel = np.stack(means)[part]
    return _filled(setting, kernel)


def _filled(setting: KernelSetting, kernel: Matrix) -> Matrix:
    """Return the kernel with rows that sum to 1; ratios between rows stay private.

    All rows are scaled alike, and each is filled up with a multiple of one law; the multiples
    differ by less than e^epsilon. Where that does not apply each row is divided by its sum.
    """
    sums = kernel.sum(axis=1, keepdims=True)
    top, short = float(sums.max()), 1.0 - float(sums.min() / sums.max())
    plain = setting.delta > 0 or setting.invariances is not None
    room = 0.0 if plain else math.expm1(setting.epsilon)
    if short >= room * _TOLERANCE:
        return kernel / sums
    scale = (1.0 - short / room) / top
    mean = kernel.mean(axis=0)
    return scale * kernel + (1.0 - scale * sums) * (mean / mean.sum())


def _certified(setting: KernelSetting, kernel: Matrix) -> ExactKernel:
    """Quantise, mixing with a row that keeps the invariances if there is one, else with any."""
    used = kernel.max(axis=0) > 0
    mean = kernel.mean(axis=0)
    # Half uniform, since an output of little mass would otherwise need much mixing; the mean
    # itself for tiny epsilon, where every row is close to it.
    rows = [0.5 * mean + 0.5 * used / used.sum(), mean]
    keeping = _keeping_row(setting)
    if keeping is not None and np.all(keeping[used] > 0):
        rows.insert(0, keeping)
    for row in rows[:-1]:
        try:
            return _quantised(setting, kernel, row)
        except NotPrivateError:
            continue
    return _quantised(setting, kernel, rows[-1])


def _quantised(setting: KernelSetting, kernel: Matrix, row: Vector) -> ExactKernel:
    return quantise_kernel(
        kernel, setting.guarantee, pairs=setting.pairs, row=row, tolerance=_TOLERANCE
    )


def _keeping_row(setting: KernelSetting) -> Vector | None:
    """Return the law u with A 1 u^T = B, which makes mixing keep A K = B; None if there is none."""
    if setting.invariances is None:
        return None
    left, right = setting.invariances
    totals = left.sum(axis=1)
    largest = int(np.argmax(np.abs(totals)))
    if totals[largest] == 0:
        return None
    row = right[largest] / totals[largest]
    fits = np.allclose(np.outer(totals, row), right, rtol=0.0, atol=1e-12 * np.abs(right).max())
    return row if fits and np.all(row >= 0) and row.sum() > 0 else None


def _value(setting: KernelSetting, exact: ExactKernel) -> float:
    """Return the objective in rational arithmetic, rounded once."""
    losses = [
        sum((Fraction(cost) * weight for cost, weight in zip(line, row, strict=True)), Fraction(0))
        / (1 << exact.bits)
        for line, row in zip(setting.losses.tolist(), exact.weights, strict=True)
    ]
    if setting.weights is None:
        return float(max(losses) if setting.sense == "minimise" else min(losses))
    prior = [Fraction(weight) for weight in setting.weights.tolist()]
    total = sum((p * cost for p, cost in zip(prior, losses, strict=True)), Fraction(0))
    return float(total / sum(prior))


def _residuals(
    setting: KernelSetting, problem: Problem, solution: Solution, exact: ExactKernel
) -> Mapping[str, float]:
    """Return the worst violation of the invariances, exactly, and of each block of the user's."""
    found: dict[str, float] = {}
    if setting.invariances is not None:
        left, right = setting.invariances
        columns = list(zip(*exact.weights, strict=True))
        found["invariance"] = max(
            abs(float(_dot(line, column) / (1 << exact.bits) - Fraction(float(right[i, y]))))
            for i, line in enumerate(left.tolist())
            for y, column in enumerate(columns)
        )
    values = {name: np.array(value) for name, value in solution.values.items()}
    if "kernel" in values:
        values["kernel"] = exact.matrix().ravel()
    else:
        # Rows from over_kernel see base and excess by their sum only.
        values["base"] = np.zeros(setting.outputs)
        values["excess"] = exact.matrix().ravel()
    point = np.concatenate([values[name] for name in problem.variables])
    for name, rows in problem.blocks.items():
        if name not in OWN_BLOCKS:
            seen = point[: rows.matrix.shape[1]]
            found[name] = float(np.max(rows.violation(seen), initial=0.0))
    return found


def _dot(line: Sequence[float], column: Sequence[int]) -> Fraction:
    terms = (Fraction(a) * weight for a, weight in zip(line, column, strict=True))
    return sum(terms, Fraction(0))

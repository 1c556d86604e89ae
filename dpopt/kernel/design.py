"""The optimal kernel: what was found, what was proved of it, and draws from exactly it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._types import Json, Matrix, Vector, frozen
from dpopt.kernel.geometric import duals
from dpopt.kernel.own import ExtraRows, own_rows
from dpopt.kernel.program import (
    OWN_BLOCKS,
    form_written,
    kernel_of,
    kernel_shape,
)
from dpopt.kernel.setting import FORMULATIONS, Graph, KernelSetting, dot
from dpopt.kernel.symmetry import Symmetry
from dpopt.lp import Backend, Solution, solve
from dpopt.privacy import ExactKernel, Problem
from dpopt.privacy.orbit import OrbitKernel
from dpopt.shape import Design, made


class TableDesign(Design):
    """A design whose units are a kernel of integers."""

    @property
    def exact(self) -> Any:  # noqa: ANN401
        """The units: integer weights, their certificate, and the draws.

        An `ExactKernel`; with a symmetry, an `OrbitKernel`, with a weight for each orbit of pairs.
        """
        return self.units

    @cached_property
    def kernel(self) -> Matrix:
        """The same as floats, shape (inputs, outputs), read-only.

        With a symmetry there may be too many to write out: more than 20,000,000 are refused.
        """
        return frozen(self.exact.matrix())

    def asked(self, data: Any = None) -> int:  # noqa: ANN401
        """Return the number of inputs, each of which spends the whole guarantee; see `release`."""
        self.require_private()
        return self.exact.asked(data)

    def release(self, data: Any = None) -> Any:  # noqa: ANN401
        """Return one output for each input, drawn with the operating system's randomness.

        Args:
            data: an index in 0..inputs-1, or an array of them; each spends the whole guarantee.

        Raises:
            ParameterError: if an index is no input; the refusal tells of the index and is not
                covered by the guarantee.
        """
        self.require_private()
        return self.exact.release(data)

    def simulate(self, data: Any, rng: np.random.Generator) -> Any:  # noqa: ANN401
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        return self.exact.simulate(data, rng)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KernelDesign(TableDesign):
    """A private kernel, its optimality and its proof.

    Attributes:
        setting: what was asked, a `KernelSetting`.
        units: the integers, an `ExactKernel`, or with a symmetry an `OrbitKernel`: what the
            guarantee is about.
        bound: from the dual vector: no kernel that satisfies all rows has a lower loss (a higher
            utility). The rows' e^-epsilon is rounded to a float.
        own_rows: by how much the certified kernel misses each block of a program that has more than
            the setting's; these are in no file.
    """

    own_rows: Mapping[str, float] = field(default_factory=dict)

    @property
    def formulation(self) -> str:
        """The form that the program is written in."""
        return self.setting.form

    @cached_property
    def duals(self) -> Mapping[str, Vector]:
        """By block, the change of the objective per unit of the limit; none of a file.

        Of "delta", for each directed edge: the price of privacy, per unit of delta. Of a closed
        form, the multipliers that prove its bound.
        """
        if self.solution is not None:
            return self.solution.duals
        known = None if "bound" in self.stated else self.setting.geometric
        return {} if known is None else duals(self.setting, known)

    @cached_property
    def residuals(self) -> Mapping[str, float]:
        """By how much the certified kernel misses "invariance", and each block of own rows.

        Repair and rounding keep privacy exactly, and these rows up to the residual only. It is
        computed in rational arithmetic, but for blocks that the setting does not have.
        """
        asked = {
            block.name: float(block.misses(self.exact)) for block in self.setting.blocks
        } | dict(self.own_rows)
        fixed = self.setting.invariances
        if fixed is None:
            return MappingProxyType(asked)
        left, right = fixed
        if isinstance(self.exact, OrbitKernel):
            # The outputs of an orbit miss their limits by as much as one of them.
            outputs, total = self.exact.orbits.column_representatives, self.exact.total
            columns = [self.exact.column(y) for y in outputs.tolist()]
            right = right[:, outputs]
        else:
            columns, total = list(zip(*self.exact.weights, strict=True)), 1 << self.exact.bits
        missed = max(
            abs(float(dot(line, column) / total - Fraction(float(right[i, y]))))
            for i, line in enumerate(left.tolist())
            for y, column in enumerate(columns)
        )
        return MappingProxyType({"invariance": missed, **asked})

    @property
    def expected_losses(self) -> Vector:
        """sum_y loss_xy K_xy for each input x, shape (inputs,), read-only."""
        if isinstance(self.exact, OrbitKernel):
            orbits = self.exact.orbits
            losses = self.setting.loss_at(*orbits.representatives.T)
            by_row = np.bincount(orbits.rows, self.exact.masses * losses)
            return frozen(by_row[orbits.rows[orbits.labels(np.arange(orbits.inputs), 0)]])
        return frozen(np.sum(self.kernel * self.setting.losses, axis=1))

    def facts(self) -> Json:
        """Return what `to_dict` tells beyond the fields that all answers share."""
        return {"formulation": self.formulation, "residuals": dict(self.residuals)}

    def headline(self) -> Json:
        """Return what the one-line repr tells."""
        return {
            "inputs": self.exact.inputs,
            "outputs": self.exact.outputs,
            "guarantee": self.guarantee,
            "value": self.value,
            "gap": self.gap,
        }


KernelSetting.answer = KernelDesign


def optimal_kernel(
    loss: npt.ArrayLike | str,
    *,
    epsilon: float,
    delta: float = 0.0,
    graph: Graph = "complete",
    shape: Sequence[int] | None = None,
    prior: npt.ArrayLike | None = None,
    objective: str = "bayes",
    sense: str = "minimise",
    invariant: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    formulation: str = "auto",
    inputs: int | None = None,
    outputs: int | None = None,
    symmetry: Symmetry = "none",
    rows: ExtraRows | Callable[[KernelSetting], ExtraRows] | None = None,
    backend: str | Backend | None = None,
    time_limit: float | None = None,
    stop_at_gap: float = 0.0,
) -> KernelDesign:
    """Return the (epsilon, delta)-private kernel of least expected loss, certified exactly.

    Minimise sum_x prior_x sum_y loss_xy K_xy ("bayes") or max_x sum_y loss_xy K_xy ("minimax")
    over row-stochastic K with K(S | x) <= e^epsilon K(S | x') + delta for all neighbours x, x'
    and all sets S of outputs.

    Args:
        loss: "absolute", "squared", "zero-one" or "hamming", see `KernelSetting`; or a table of
            shape (inputs, outputs), at least 2 inputs; a utility if ``sense`` is "maximise".
        epsilon: in [0, 600], in nats.
        delta: in [0, 1).
        graph: neighbouring inputs: "complete", "path", "cycle", "grid", "hamming", or edges.
        shape: this and all below down to ``outputs`` are attributes of `KernelSetting`.
        prior: weights of the inputs for "bayes", shape (inputs,); uniform if None.
        objective: "bayes" or "minimax".
        sense: "minimise" or "maximise".
        invariant: q with q K = q, or (A, B) with A K = B; kept up to ``residuals["invariance"]``.
        formulation: "auto", "edges", "columns" or "shifted".
        inputs: number of inputs, for a loss by name.
        outputs: number of outputs, for a loss by name; as many as inputs if None.
        symmetry: "none", "auto", the name of a group, or generators (sigma, tau): a program over
            orbits instead of entries, which reaches far larger kernels; see `KernelSetting`.
        rows: further linear rows over the flattened kernel, K[x, y] at column x * outputs + y:
            tuples (name, matrix, lower, upper), or a function that makes them from the setting;
            kept up to ``residuals``, and saved with the setting.
        backend: None takes the closed form where there is one (`KernelSetting.closed_form`), else
            HiGHS; for others see `dpopt.solve`.
        time_limit: seconds for the solve of the program.
        stop_at_gap: see `dpopt.design`.

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
    if time_limit is not None:
        _checks.real("time_limit", time_limit, 0.0)
    _checks.real("stop_at_gap", stop_at_gap, 0.0, 1.0)
    asked: Any = (graph, shape, prior, objective, sense, invariant, formulation, inputs, outputs)
    setting = KernelSetting(cast(Any, loss), epsilon, delta, *asked, symmetry=symmetry)
    setting = _with_rows(setting, rows)
    units = setting.closed_form() if backend is None else None
    if units is not None:
        return made(setting, units)
    problem, solver = setting.problem(), "highs" if backend is None else backend
    solution = solve(problem, solver, time_limit=time_limit, stop_at_gap=stop_at_gap)
    return design_of(setting, problem, solution)


def _with_rows(
    setting: KernelSetting, rows: ExtraRows | Callable[[KernelSetting], ExtraRows] | None
) -> KernelSetting:
    """Return a setting with further rows of the user's, beside those that it has."""
    if rows is None:
        return setting
    given = rows(setting) if callable(rows) else rows
    further = own_rows(given, setting.inputs, setting.outputs)
    return replace(setting, rows=(*setting.blocks, *further))


def kernel_problem(
    setting: KernelSetting,
    *,
    formulation: str | None = None,
    rows: ExtraRows | Callable[[KernelSetting], ExtraRows] | None = None,
) -> Problem:
    """Return the linear program of a setting, perhaps in another form, or with further rows.

    The docstring of `KernelSetting` displays it. The same constraints are written in one of three
    forms:

    - "edges": variables "kernel", and the rows as displayed, for each directed edge; with delta > 0
      also the variables "excess_mass". Any graph.
    - "columns": variables "kernel" and "ceiling", w; e^-epsilon w[y] <= K[x, y] <= w[y]. Complete
      graph, delta = 0.
    - "shifted": K = e^-epsilon 1 w^T + V, variables "ceiling", w, and "excess", V >= 0;
      V[x, y] <= (1 - e^-epsilon) w[y]. Complete graph, delta = 0; the fewest rows.

    "minimax" has a variable "worst", of which "losses" are divided by a small loss. Of a complete
    graph with as many outputs as inputs, at most 1,414 inputs are taken ("shifted"). The
    flattened kernel is the group of variables "kernel" in the forms "edges" and "columns";
    `over_kernel` writes rows over K for all three.

    Args:
        setting: what is asked.
        formulation: "auto", "edges", "columns" or "shifted"; that of the setting if None.
        rows: rows beside those of the setting, or a function that makes them from it; see
            `optimal_kernel`.
    """
    _checks.instance("setting", setting, KernelSetting)
    if formulation is not None:
        _checks.choice("formulation", formulation, FORMULATIONS)
        setting = replace(setting, formulation=cast(Any, formulation))
    return _with_rows(setting, rows).problem()


def design_of(setting: KernelSetting, problem: Problem, solution: Solution) -> KernelDesign:
    """Return the certified design of a solved kernel program, with whatever was added to it.

    Args:
        setting: the one that the problem was made from.
        problem: from `kernel_problem`, perhaps with further rows or variables, but with its
            objective: value, bound and gap refer to the setting's. What the kernel misses of rows
            that the setting does not have stands in ``own_rows``.
        solution: of this problem.

    Raises:
        ParameterError: if setting, problem and solution do not belong together.
        NotPrivateError: if repair would move a row by more than 1e-5 in total variation.
    """
    _checks.instance("setting", setting, KernelSetting)
    if setting.orbits is not None:
        _require_orbits(setting, problem, solution)
        units = setting.units(setting.point(solution))
        missed = _missed(setting, problem, solution, units)
        return made(setting, units, solution, own_rows=missed)
    shape = kernel_shape(problem)
    if shape != (setting.inputs, setting.outputs):
        raise ParameterError(
            f"problem has a kernel of shape {shape}; the setting's is "
            f"{(setting.inputs, setting.outputs)}."
        )
    units = setting.units(kernel_of(problem, solution))
    setting = replace(setting, formulation=cast(Any, form_written(problem)))
    missed = _missed(setting, problem, solution, units)
    return made(setting, units, solution, own_rows=missed)


def _require_orbits(setting: KernelSetting, problem: Problem, solution: Solution) -> None:
    _checks.instance("problem", problem, Problem)
    _checks.instance("solution", solution, Solution)
    count = cast(Any, setting.orbits).count
    place = problem.variables.get("orbits", slice(0, 0))
    if place.stop - place.start != count or solution.values.keys() != problem.variables.keys():
        raise ParameterError(
            f"problem and solution must be of the setting's {count} orbits of pairs."
        )


def _missed(
    setting: KernelSetting,
    problem: Problem,
    solution: Solution,
    exact: ExactKernel | OrbitKernel,
) -> Mapping[str, float]:
    """Return the worst violation of each block that is not the setting's, by the kernel."""
    known = {*OWN_BLOCKS, *(block.name for block in setting.blocks)}
    own = {name: rows for name, rows in problem.blocks.items() if name not in known}
    if not own:
        return {}
    values = {name: np.array(value) for name, value in solution.values.items()}
    if isinstance(exact, OrbitKernel):
        values["orbits"] = exact.masses
    elif "kernel" in values:
        values["kernel"] = exact.matrix().ravel()
    else:
        # Rows from over_kernel see the kernel as e^-epsilon ceiling + excess only.
        values["ceiling"] = np.zeros(setting.outputs)
        values["excess"] = exact.matrix().ravel()
    point = np.concatenate([values[name] for name in problem.variables])
    missed = {}
    for name, rows in own.items():
        # A block that was written before a group of variables does not see it.
        seen = point[: rows.matrix.shape[1]]
        missed[name] = float(np.max(rows.violation(seen), initial=0.0))
    return missed

"""Linear programs with privacy as a block of rows: `dpopt.Problem`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks, lp
from dpopt._errors import ParameterError
from dpopt._types import Vector
from dpopt.privacy.graph import LARGEST_EPSILON, all_pairs, directed_pairs, pair_count, require_rows


class Problem(lp.Problem):
    """A linear program over named variables, in which mechanisms can be constrained to be private.

    Example:
        >>> import numpy as np
        >>> from dpopt import Problem, solve
        >>> problem = Problem("three answers, true as often as privacy allows")
        >>> position = problem.add_variables("K", (3, 3), lower=0.0, upper=1.0)
        >>> problem.add_pmf("sums", "K")
        >>> problem.add_private("privacy", "K", epsilon=np.log(2))
        >>> problem.maximise({"K": np.eye(3) / 3})
        >>> solution = solve(problem)
        >>> solution["K"].shape, round(solution.objective, 6)
        ((3, 3), 0.5)
    """

    def __init__(self, name: str = "problem") -> None:
        super().__init__(name)
        # The variable whose columns each group of ceilings bounds.
        self._ceilings: dict[str, str] = {}

    def add_pmf(self, name: str, variable: str) -> None:
        """Add rows that make the last axis of a variable sum to 1, as probabilities do.

        Args:
            name: of the rows, not used before.
            variable: name of variables with at least one axis; there is one row for each index of
                the axes before the last. Their bounds must make entries at least 0.

        Raises:
            ParameterError: if the name is used, or there is no such variable.
        """
        self._find(variable)
        shape = self.shapes[variable]
        if not shape:
            raise ParameterError(
                f"variable is {variable!r}, a single number; a distribution needs an axis."
            )
        sums = _sums(math.prod(shape[:-1]), shape[-1])
        self.add_rows(name, {variable: sums}, lower=1.0, upper=1.0)

    def add_private(
        self,
        name: str,
        variable: str,
        *,
        epsilon: float,
        delta: float = 0.0,
        graph: str | npt.ArrayLike = "complete",
        shape: Sequence[int] | None = None,
    ) -> None:
        """Add (epsilon, delta)-privacy of a mechanism: K[x, y] = Pr[output y | input x].

            sum_y max(0, K[x, y] - e^epsilon K[x', y]) <= delta   for all neighbours (x, x')

        For delta = 0 that is K[x, y] <= e^epsilon K[x', y] for each output y. The rows are divided
        by e^epsilon, so that their coefficients are at most 1. On the complete graph of more than 3
        inputs they bound all entries of an output from above by a variable ``f"{name}:ceiling"``,
        shape (outputs,), and from below by e^-epsilon times it.

        `add_pmf` adds the rows that make each K[x, .] sum to 1. A solver satisfies the rows only up
        to its tolerance: `dpopt.certify` turns its solution into a proved mechanism.

        Args:
            name: of the block of rows, not used before; ``f"{name}:delta"`` for the sums over y.
            variable: name of variables of shape (inputs, outputs).
            epsilon: in [0, 600], in nats.
            delta: in [0, 1]. Above 0 there are further variables ``f"{name}:excess"``, shape
                (pairs, outputs), for the excess K[x, y] - e^epsilon K[x', y] of each entry.
            graph: which inputs are neighbours, as for `directed_pairs`.
            shape: likewise, for the graphs "grid" and "hamming".

        Raises:
            ParameterError: if a name is used or unknown, the variable does not have two axes, a
                number is out of range, the graph does not fit, or there are more than 2,000,000
                rows.
        """
        self._check_new(name)
        self._find(variable)
        axes = self.shapes[variable]
        if len(axes) != 2:
            raise ParameterError(
                f"private rows {name!r} are over {variable!r}, which has shape {axes}; it must "
                "have two axes, (inputs, outputs)."
            )
        inputs, outputs = axes
        pairs = directed_pairs(graph, inputs, shape)
        delta = _checks.real(f"delta of {name!r}", delta, 0.0, 1.0)
        epsilon = _checks.real(f"epsilon of {name!r}", epsilon, 0.0, LARGEST_EPSILON)
        # Ceilings take 2 rows for each entry of the kernel, pairs of neighbours inputs - 1.
        ceilings, edges = pairs is None and delta == 0.0 and inputs > 3, pair_count(pairs, inputs)
        require_rows(outputs * (2 * inputs if ceilings else edges))
        shrink, size = math.exp(-epsilon), inputs * outputs
        if ceilings:
            ceiling = f"{name}:ceiling"
            low, high = self._ceiling_bounds(variable)
            self.add_variables(ceiling, outputs, lower=low, upper=high)
            self._ceilings[ceiling] = variable
            # e^-epsilon w[y] <= K[x, y] for all entries, then K[x, y] <= w[y].
            every = sp.eye_array(size, format="csr")
            lift = sp.kron(np.ones((inputs, 1)), sp.eye_array(outputs), format="csr")
            sides = {
                variable: sp.vstack([-every, every], format="csr"),
                ceiling: sp.vstack([shrink * lift, -lift], format="csr"),
            }
            self.add_rows(name, sides, upper=0.0)
            return
        # Rows x, and rows x', of a kernel, for each pair.
        every = sp.eye_array(inputs, format="csr")
        first, second = (every[side] for side in all_pairs(pairs, inputs).T)
        # e^-epsilon K[x, y] - K[x', y], K flattened in C order: a row for each (pair, y).
        sides = {variable: sp.kron(shrink * first - second, sp.eye_array(outputs), format="csr")}
        excess, total = f"{name}:excess", f"{name}:delta"
        if delta > 0:
            self._check_new(total)
            self.add_variables(excess, (edges, outputs), lower=0.0, upper=1.0)
            sides[excess] = -shrink * sp.eye_array(edges * outputs, format="csr")
        self.add_rows(name, sides, upper=0.0)
        if delta > 0:
            self.add_rows(total, {excess: _sums(edges, outputs)}, upper=delta)

    def set_bounds(
        self, name: str, *, lower: npt.ArrayLike | None = None, upper: npt.ArrayLike | None = None
    ) -> None:
        """Change the bounds of variables, and of the ceilings of their privacy rows.

        Its arguments are those of `add_variables`.
        """
        super().set_bounds(name, lower=lower, upper=upper)
        for ceiling, variable in self._ceilings.items():
            if variable == name:
                low, high = self._ceiling_bounds(name)
                super().set_bounds(ceiling, lower=low, upper=high)

    def _ceiling_bounds(self, variable: str) -> tuple[Vector, Vector]:
        """Return bounds of the largest entry of each output: the largest bounds of its entries."""
        low, high = (bound.reshape(self.shapes[variable]) for bound in self._bounds[variable])
        return low.max(axis=0), high.max(axis=0)


def _sums(rows: int, columns: int) -> sp.csr_array:
    """Return the matrix that sums each row of an array flattened in C order."""
    return sp.kron(sp.eye_array(rows), np.ones((1, columns)), format="csr")

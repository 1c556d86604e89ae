"""The optimal kernel: what it is, what was proved of it, and draws from exactly it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt._plot import new_axes
from dpopt._types import Json, Matrix, Vector, brief, frozen
from dpopt.kernel.setting import KernelSetting
from dpopt.lp import Solution, Status
from dpopt.privacy import Certificate, ExactKernel, Guarantee
from dpopt.privacy.vouched import Coherent, Implied

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class KernelDesign(Coherent):
    """A private kernel, its optimality and its proof.

    Attributes:
        setting: what was asked.
        formulation: the form that was solved.
        exact: integer weights, their certificate, and the draws; what the guarantee is about.
        kernel: the same as floats, shape (inputs, outputs), read-only.
        value: the objective, computed from the certified integers.
        bound: from the dual vector: no kernel that satisfies all rows has a lower loss (a higher
            utility). The rows' e^-epsilon is rounded to a float.
        gap: distance from value to bound: what solver, repair and rounding may have lost. Below 0
            by rounding, or where the repair left invariances or the user's rows unmet by the
            residual.
        residuals: for "invariance" and each block of the user's own rows, by how much the
            certified kernel misses it: repair and rounding keep privacy exactly, and these rows
            up to the residual only.
        solution: the solve behind the bound.
        provenance: versions that made it.
    """

    setting: KernelSetting
    formulation: str
    exact: ExactKernel
    kernel: Matrix
    value: float
    bound: float
    gap: float
    residuals: Mapping[str, float]
    solution: Solution
    provenance: dict[str, str]

    def _implied(self) -> Iterator[Implied]:
        pairs, shape = self.setting.pairs, (self.setting.inputs, self.setting.outputs)
        edges = None if pairs is None else tuple((int(x), int(other)) for x, other in pairs)
        yield "exact", (self.exact.inputs, self.exact.outputs), shape
        yield "exact", self.exact.guarantee, self.setting.guarantee
        yield "exact", self.exact.pairs, edges
        yield "kernel", self.kernel, self.exact.matrix()

    def __repr__(self) -> str:
        return brief(
            self,
            inputs=self.exact.inputs,
            outputs=self.exact.outputs,
            guarantee=self.guarantee,
            value=self.value,
            gap=self.gap,
        )

    @property
    def status(self) -> Status:
        """How the solve ended; always `Status.OPTIMAL`, every other end raises."""
        return self.solution.status

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) along the edges of the setting's graph."""
        return self.exact.guarantee

    @property
    def certificate(self) -> Certificate:
        """The exact proof of the guarantee."""
        return self.exact.certificate

    @property
    def duals(self) -> Mapping[str, Vector]:
        """By block, the change of the objective per unit of the limit; units in `kernel_problem`.

        Of "delta", for each directed edge: the price of privacy, per unit of delta.
        """
        return self.solution.duals

    @property
    def expected_losses(self) -> Vector:
        """sum_y loss_xy K_xy for each input x, shape (inputs,), read-only."""
        return frozen(np.sum(self.kernel * self.setting.losses, axis=1))

    def release(self, inputs: npt.ArrayLike) -> npt.NDArray[np.int64] | int:
        """Return one output for each input, drawn with the operating system's randomness.

        Args:
            inputs: an index in 0..inputs-1, or an array of them.

        Raises:
            ParameterError: if an index is no input; the refusal tells of the index and is not
                covered by the guarantee.
        """
        return self.exact.release(inputs)

    def simulate(
        self, inputs: npt.ArrayLike, rng: np.random.Generator
    ) -> npt.NDArray[np.int64] | int:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        return self.exact.simulate(inputs, rng)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the kernel as a heat map, inputs down and outputs across; return the axes."""
        axes = new_axes(ax)
        image = axes.imshow(self.kernel, vmin=0.0, aspect="auto", interpolation="nearest")
        axes.set_xlabel("output $y$")
        axes.set_ylabel("input $x$")
        figure = axes.get_figure(root=True)
        if figure is not None:
            figure.colorbar(image, ax=axes, label="$K(y | x)$")
        return axes

    def to_dict(self) -> Json:
        """Return the design as plain values, ready for JSON; weights as decimal strings."""
        return {
            "setting": self.setting.to_dict(),
            "formulation": self.formulation,
            "exact": self.exact.to_dict(),
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "residuals": dict(self.residuals),
            "status": str(self.status),
            "backend": self.solution.backend,
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write the certified kernel to a JSON file; `dpopt.load` returns it as `ExactKernel`.

        Raises:
            ParameterError: if the file cannot be written.
        """
        self.exact.save(path)

"""The tab of the general program: the optimal kernel for a loss and a graph of neighbours."""

from __future__ import annotations

import numpy as np

from dpopt import _checks, kernel
from dpopt.explore.view import Picture, Table, View, drawing, number, picture

MOST_LETTERS = 20
"""Letters up to which the page solves again in about a second."""

LARGEST_EPSILON = 8.0

LOSSES = {
    "distance": "abs(x[:, None] - x)",
    "squared distance": "(x[:, None] - x) ** 2",
    "0 or 1": "(x[:, None] != x).astype(float)",
}
"""Losses by name, with the line of Python that computes each from x = 0, 1, ..., n - 1."""

_GRAPHS = ("path", "complete")
_OBJECTIVES = ("bayes", "minimax")
_SECONDS = 5.0

_CODE = """\
import numpy as np
from dpopt import kernel

x = np.arange({letters})
loss = {loss}
design = kernel.optimal_kernel(
    loss, epsilon={epsilon}, graph={graph!r}, objective={objective!r}
)
print(design.value, design.bound, design.gap)
print(design.kernel)
axes = design.plot()"""


def kernel_view(
    letters: int,
    epsilon: float,
    loss: str = "distance",
    graph: str = "path",
    objective: str = "bayes",
) -> View:
    """Return the optimal kernel over letters 0..n-1.

    Args:
        letters: n, in 2..20; inputs and outputs are the same.
        epsilon: in [0, 8], in nats.
        loss: a name of `LOSSES`.
        graph: "path" (neighbours differ by one) or "complete" (all are neighbours).
        objective: "bayes" for a uniform prior, or "minimax".

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no answer within 5 seconds.
    """
    n = _checks.integer("letters", letters, 2, MOST_LETTERS)
    epsilon = _checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON)
    _checks.choice("loss", loss, tuple(LOSSES))
    _checks.choice("graph", graph, _GRAPHS)
    _checks.choice("objective", objective, _OBJECTIVES)
    design = kernel.optimal_kernel(
        _matrix(n, loss), epsilon=epsilon, graph=graph, objective=objective, time_limit=_SECONDS
    )
    proof = design.certificate
    return View(
        verdict=f"The kernel over {n} letters is {epsilon:g}-DP between "
        f"{'neighbours that differ by one' if graph == 'path' else 'any two letters'}: "
        f"{proof.constraints:,} inequalities decided in integers.",
        private=True,
        facts={
            "value": number(design.value),
            "dual bound": number(design.bound),
            "gap": number(design.gap, 3),
            "largest expected loss": number(float(design.expected_losses.max())),
            "mean expected loss": number(float(design.expected_losses.mean())),
            "slack of the proof": number(float(proof.slack), 3),
        },
        tables=(_table(design),),
        pictures=(_drawn(design),),
        code=_CODE.format(
            letters=n, loss=LOSSES[loss], epsilon=epsilon, graph=graph, objective=objective
        ),
    )


def _matrix(n: int, loss: str) -> np.ndarray:
    x = np.arange(n)
    if loss == "distance":
        return abs(x[:, None] - x)
    if loss == "squared distance":
        return (x[:, None] - x) ** 2
    return (x[:, None] != x).astype(float)


def _table(design: kernel.KernelDesign) -> Table:
    n = design.kernel.shape[1]
    return Table(
        ("input x", "expected loss", *(f"y = {y}" for y in range(n))),
        tuple(
            (str(x), number(lost), *(number(p, 3) for p in row))
            for x, (row, lost) in enumerate(zip(design.kernel, design.expected_losses, strict=True))
        ),
    )


def _drawn(design: kernel.KernelDesign) -> Picture:
    with drawing(6.0, 4.2) as figure:
        figure.subplots_adjust(left=0.1, right=1.02, top=0.97, bottom=0.13)
        design.plot(figure.subplots())
        return picture(figure, "Probability of each output y for each input x.")

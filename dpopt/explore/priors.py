"""The tab of sampling with a public prior: the minimax kernel of the paper beside the leximin."""

from __future__ import annotations

from dpopt import _checks, public_prior
from dpopt._errors import ParameterError
from dpopt.explore.view import Picture, Table, View, drawing, number, picture

MOST_LETTERS = 40
"""Letters of which the page still shows the kernels in full."""

LARGEST_EPSILON = 8.0

_CODE = """\
from dpopt import public_prior

q = {masses}
minimax = public_prior.minimax_kernel(q, epsilon={epsilon})
leximin = public_prior.leximin_kernel(q, epsilon={epsilon})
print(minimax.gamma_tv, minimax.worst_tv, leximin.worst_tv)
print(minimax.diagonal, leximin.diagonal)
print(minimax.matrix(), leximin.matrix())"""


def prior_view(prior: str, epsilon: float) -> View:
    """Return the two kernels of a public prior q, and what they keep of each letter.

    Args:
        prior: q as text: numbers above 0 with sum 1, between commas or blanks; 2 to 40 of them.
        epsilon: local privacy of the letter released, in [1e-9, 8], in nats.

    Raises:
        ParameterError: for another text, or a parameter out of range.
    """
    masses = _masses(prior)
    epsilon = _checks.real("epsilon", epsilon, 0.0, LARGEST_EPSILON, open_lower=True)
    kernels = {
        "minimax": public_prior.minimax_kernel(masses, epsilon),
        "leximin": public_prior.leximin_kernel(masses, epsilon),
    }
    first, second = kernels["minimax"], kernels["leximin"]
    decided = first.certificate.constraints + second.certificate.constraints
    return View(
        verdict=f"Both kernels over {len(masses)} letters are {epsilon:g}-LDP: "
        f"{decided:,} inequalities decided in integers.",
        private=True,
        facts={
            "Gamma_TV": number(first.gamma_tv),
            "worst case, minimax": number(first.worst_tv),
            "worst case, leximin": number(second.worst_tv),
            "mean under q, minimax": number(_lost(first)),
            "mean under q, leximin": number(_lost(second)),
        },
        tables=(_table(first, second),),
        pictures=(_drawn(kernels),),
        code=_CODE.format(masses=masses, epsilon=epsilon),
    )


def _masses(text: str) -> list[float]:
    try:
        found = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        found = []
    if not 2 <= len(found) <= MOST_LETTERS:
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise ParameterError(
            f"prior is {shown!r}; it must hold 2 to {MOST_LETTERS} numbers between commas, such "
            "as 0.2, 0.3, 0.5."
        )
    return found


def _lost(kernel: public_prior.SamplingKernel) -> float:
    """Return the mean of 1 - K_ii, the total variation of a user who holds letter i only."""
    return float(kernel.prior.masses @ (1.0 - kernel.diagonal))


def _table(first: public_prior.SamplingKernel, second: public_prior.SamplingKernel) -> Table:
    return Table(
        ("letter", "q", "K_ii minimax", "K_ii leximin"),
        tuple(
            (str(letter), *(number(value) for value in values))
            for letter, values in enumerate(
                zip(first.prior.masses, first.diagonal, second.diagonal, strict=True)
            )
        ),
    )


def _drawn(kernels: dict[str, public_prior.SamplingKernel]) -> Picture:
    with drawing(9.0, 3.8) as figure:
        figure.subplots_adjust(left=0.06, right=1.06, top=0.92, bottom=0.13, wspace=0.18)
        panels = figure.subplots(1, 2)
        images = [
            axes.imshow(kernel.matrix(), vmin=0.0, vmax=1.0, interpolation="nearest")
            for axes, kernel in zip(panels, kernels.values(), strict=True)
        ]
        for axes, name in zip(panels, kernels, strict=True):
            axes.set_title(name)
            axes.set_xlabel("output letter")
            axes.set_ylabel("own letter")
        figure.colorbar(images[0], ax=panels, label="$K_{ij}$")
        return picture(
            figure, "Probability of each output letter for a user who holds one letter only."
        )

"""Locally private sampling with a public prior: kernels, their programs, the relative mollifier.

Zamanlooy, Diaz, Asoodeh, "Locally Private Sampling with Public Data".
"""

from dpopt.public_prior.mollifier import mollify
from dpopt.public_prior.prior import (
    PublicDistribution,
    diagonal_bounds,
    draw_own_category,
    minimax_utility,
    public_distribution,
)

__all__ = [
    "PublicDistribution",
    "diagonal_bounds",
    "draw_own_category",
    "minimax_utility",
    "mollify",
    "public_distribution",
]

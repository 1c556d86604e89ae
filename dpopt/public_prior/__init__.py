"""Locally private sampling with a public prior: kernels, their programs, the relative mollifier.

Zamanlooy, Diaz, Asoodeh, "Locally Private Sampling with Public Data".
"""

from dpopt.public_prior.mollifier import MollifierSetting, mollifier_tv, mollify
from dpopt.public_prior.population import PopulationSetting
from dpopt.public_prior.prior import (
    PublicPrior,
    draw_own_letter,
    drop_zeros,
    public_prior,
    smooth_prior,
)
from dpopt.public_prior.setting import PublicPriorSetting, leximin_kernel, minimax_kernel
from dpopt.public_prior.utility import (
    DIVERGENCES,
    diagonal_bounds,
    minimax_utility,
    point_mass_divergence,
)

__all__ = [
    "DIVERGENCES",
    "MollifierSetting",
    "PopulationSetting",
    "PublicPrior",
    "PublicPriorSetting",
    "diagonal_bounds",
    "draw_own_letter",
    "drop_zeros",
    "leximin_kernel",
    "minimax_kernel",
    "minimax_utility",
    "mollifier_tv",
    "mollify",
    "point_mass_divergence",
    "public_prior",
    "smooth_prior",
]

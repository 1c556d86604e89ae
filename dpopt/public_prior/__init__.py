"""Locally private sampling with a public prior: kernels, their programs, the relative mollifier.

Zamanlooy, Diaz, Asoodeh, "Locally Private Sampling with Public Data".
"""

from dpopt.public_prior.mollifier import MollifierSetting, mollifier_problem, mollifier_tv, mollify
from dpopt.public_prior.population import (
    POPULATION_OBJECTIVES,
    KernelDistances,
    PopulationKernel,
    PopulationSetting,
    population_kernel,
)
from dpopt.public_prior.prior import (
    PublicPrior,
    draw_own_letter,
    drop_zeros,
    public_prior,
    smooth_prior,
)
from dpopt.public_prior.program import (
    FORMULATIONS,
    kernel_of,
    leximin_problem,
    leximin_values,
    tv_problem,
)
from dpopt.public_prior.sampler import LeximinKernel, PublicPriorKernel, SamplingKernel
from dpopt.public_prior.setting import PublicPriorSetting, leximin_kernel, minimax_kernel
from dpopt.public_prior.utility import (
    DIVERGENCES,
    diagonal_bounds,
    minimax_utility,
    point_mass_divergence,
)

__all__ = [
    "DIVERGENCES",
    "FORMULATIONS",
    "POPULATION_OBJECTIVES",
    "KernelDistances",
    "LeximinKernel",
    "MollifierSetting",
    "PopulationKernel",
    "PopulationSetting",
    "PublicPrior",
    "PublicPriorKernel",
    "PublicPriorSetting",
    "SamplingKernel",
    "diagonal_bounds",
    "draw_own_letter",
    "drop_zeros",
    "kernel_of",
    "leximin_kernel",
    "leximin_problem",
    "leximin_values",
    "minimax_kernel",
    "minimax_utility",
    "mollifier_problem",
    "mollifier_tv",
    "mollify",
    "point_mass_divergence",
    "population_kernel",
    "public_prior",
    "smooth_prior",
    "tv_problem",
]

"""Locally private sampling with a public prior: kernels, their programs, the relative mollifier.

Zamanlooy, Diaz, Asoodeh, "Locally Private Sampling with Public Data".
"""

from dpopt.public_prior.algorithm import PublicPriorKernel, minimax_kernel
from dpopt.public_prior.leximin import LeximinKernel, leximin_kernel
from dpopt.public_prior.mollifier import mollifier_problem, mollifier_tv, mollify
from dpopt.public_prior.population import population_kernel
from dpopt.public_prior.population_program import POPULATION_OBJECTIVES
from dpopt.public_prior.population_result import KernelDistances, PopulationKernel
from dpopt.public_prior.prior import (
    PublicPrior,
    drop_zeros,
    public_prior,
    smooth_prior,
)
from dpopt.public_prior.programs import (
    FORMULATIONS,
    kernel_of,
    leximin_values,
    tv_problem,
)
from dpopt.public_prior.quantise import CertifiedRows
from dpopt.public_prior.sampler import SamplingKernel
from dpopt.public_prior.saved import draw_own_letter, save_kernel
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
    "CertifiedRows",
    "KernelDistances",
    "LeximinKernel",
    "PopulationKernel",
    "PublicPrior",
    "PublicPriorKernel",
    "SamplingKernel",
    "diagonal_bounds",
    "draw_own_letter",
    "drop_zeros",
    "kernel_of",
    "leximin_kernel",
    "leximin_values",
    "minimax_kernel",
    "minimax_utility",
    "mollifier_problem",
    "mollifier_tv",
    "mollify",
    "point_mass_divergence",
    "population_kernel",
    "public_prior",
    "save_kernel",
    "smooth_prior",
    "tv_problem",
]

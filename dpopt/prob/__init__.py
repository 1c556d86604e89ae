"""Discrete probability: laws of counts, divergences between laws."""

from dpopt.prob.divergence import (
    chi_square,
    f_divergence,
    hockey_stick,
    kl_divergence,
    total_variation,
)
from dpopt.prob.pmf import binomial_pmf, hypergeometric_pmf, poisson_binomial_pmf

__all__ = [
    "binomial_pmf",
    "chi_square",
    "f_divergence",
    "hockey_stick",
    "hypergeometric_pmf",
    "kl_divergence",
    "poisson_binomial_pmf",
    "total_variation",
]

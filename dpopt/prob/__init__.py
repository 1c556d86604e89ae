"""Discrete probability: pmfs of counts, divergences, and expectations over histograms."""

from dpopt.prob.divergence import kl_divergence, total_variation
from dpopt.prob.pmf import binomial_pmf, poisson_binomial_pmf

__all__ = [
    "binomial_pmf",
    "kl_divergence",
    "poisson_binomial_pmf",
    "total_variation",
]

"""Discrete probability: pmfs of counts, their distance, and expectations over histograms."""

from dpopt.prob.divergence import total_variation
from dpopt.prob.pmf import binomial_pmf, poisson_binomial_pmf

__all__ = [
    "binomial_pmf",
    "poisson_binomial_pmf",
    "total_variation",
]

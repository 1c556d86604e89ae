"""Discrete probability: pmfs of counts, their distance, and expectations over histograms."""

from dpopt.prob.pmf import binomial_pmf, poisson_binomial_pmf, total_variation

__all__ = [
    "binomial_pmf",
    "poisson_binomial_pmf",
    "total_variation",
]

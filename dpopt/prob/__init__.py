"""Discrete probability: laws of counts, divergences between laws, expectations over histograms."""

from dpopt.prob.batches import BatchLaw, batch_law
from dpopt.prob.divergence import (
    kl_divergence,
    total_variation,
)
from dpopt.prob.histograms import hull_vertices
from dpopt.prob.pmf import binomial_pmf, hypergeometric_pmf, poisson_binomial_pmf

__all__ = [
    "BatchLaw",
    "batch_law",
    "binomial_pmf",
    "hull_vertices",
    "hypergeometric_pmf",
    "kl_divergence",
    "poisson_binomial_pmf",
    "total_variation",
]

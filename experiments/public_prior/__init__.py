"""Experiments of the paper on locally private sampling with a public prior."""

from experiments.public_prior import (
    avazu,
    example_one,
    kernels,
    kernels_time,
    movielens,
    synthetic,
)

EXPERIMENTS = (
    synthetic.EXPERIMENT,
    movielens.EXPERIMENT,
    avazu.EXPERIMENT,
    example_one.EXPERIMENT,
    kernels.EXPERIMENT,
    kernels_time.EXPERIMENT,
)

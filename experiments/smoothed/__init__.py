"""Experiments of "Smoothed Differential Privacy"."""

from experiments.smoothed import claims, compositions, elections, notions, sgd, sgd_bias

EXPERIMENTS = (
    *elections.EXPERIMENTS,
    *compositions.EXPERIMENTS,
    *sgd.EXPERIMENTS,
    *notions.EXPERIMENTS,
    *claims.EXPERIMENTS,
    *sgd_bias.EXPERIMENTS,
)

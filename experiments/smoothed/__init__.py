"""Experiments of "Smoothed Differential Privacy"."""

from experiments.smoothed import compositions, elections, notions, sgd, sgd_bias

EXPERIMENTS = (
    *elections.EXPERIMENTS,
    *compositions.EXPERIMENTS,
    *sgd.EXPERIMENTS,
    *notions.EXPERIMENTS,
    *sgd_bias.EXPERIMENTS,
)

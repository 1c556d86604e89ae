"""What the experiments on sampling with a public prior share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dpopt import public_prior
from dpopt.prob import total_variation

PAPER = "Public prior"

METHODS = {
    "minimax": ("Algorithm 1", "#2f5d9b", "s-"),
    "leximin": ("leximin kernel (ours)", "#0b6e4f", "o-"),
    "mollifier-kl": ("relative mollifier, KL", "#c1432e", "^-"),
    "mollifier-tv": ("relative mollifier, TV", "#d98a29", "v--"),
    "uniform": ("randomised response, uniform prior", "#7a7a7a", "d-"),
    "population": ("population program (ours)", "#8a5aa8", "x-"),
}
"""Label, colour and line of each method."""


def distances(method: str, prior: np.ndarray, laws: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the total variation between each user's law and the law of the released letter.

    Args:
        method: a key of `METHODS` other than "population".
        prior: q, shape (n,).
        laws: p, shape (users, n).
        epsilon: in nats.

    Returns:
        Shape (users,).
    """
    if method == "mollifier-tv":
        return public_prior.mollifier_tv(prior, laws, epsilon)
    return total_variation(laws, sampling_laws(method, prior, laws, epsilon))


def sampling_laws(method: str, prior: np.ndarray, laws: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the law of the released letter for each user; not for "mollifier-tv"."""
    if method == "mollifier-kl":
        return public_prior.mollify(prior, laws, epsilon)
    if method == "leximin":
        return public_prior.leximin_kernel(prior, epsilon).apply(laws)
    if method == "uniform":
        prior = np.full(prior.size, 1 / prior.size)
    return public_prior.minimax_kernel(prior, epsilon).apply(laws)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder for generated data that is removed afterwards."""
    with TemporaryDirectory(prefix="dpopt-") as name:
        yield Path(name)

"""Databases of quantised gradients on which estimates of delta are compared with exact values."""

from __future__ import annotations

import numpy as np

from dpopt.smoothed import QuantisedGradient

GAUSSIAN = "N(0, .12²)"
TWO_VALUES = "-127, 128"


def databases(records: int, seed: int) -> dict[str, np.ndarray]:
    """Return one database of each kind; the last four hold few different values."""
    rng = np.random.default_rng([seed, 0])
    index = np.arange(records)
    normal = rng.normal(size=records)
    return {
        "formula": ((37 * index**2 + 11 * index) % 181) - 90,
        GAUSSIAN: QuantisedGradient(0.0, 0.12).sample(records, rng),
        "N(.2, .12²)": QuantisedGradient(0.2, 0.12).sample(records, rng),
        "L(0, .12²)": QuantisedGradient(0.0, 0.12, "laplace").sample(records, rng),
        "4 bits": 16 * np.clip(np.rint(2 * normal), -7, 7).astype(int),
        "2 bits": 64 * np.clip(np.rint(normal), -1, 2).astype(int),
        "-127, 0, 127": 127 * np.clip(np.rint(0.6 * normal), -1, 1).astype(int),
        TWO_VALUES: np.where(index < records // 2, -127, 128),
    }

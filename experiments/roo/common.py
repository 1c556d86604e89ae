"""What the experiments on Reveal-or-Obscure share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpopt import roo
from experiments.registry import Table

PAPER = "Reveal-or-Obscure"
VIOLATES = 1.0 + 1e-9
"""An excess factor above this is the rule's own; rounding q_m to 2^-62 stays far below."""

RULES = {
    "journal": ("journal's recursion", "#c1432e", "s-"),
    "conference": ("conference's recursion", "#d98a29", "^-"),
    "journal-repaired": ("journal's, repaired", "#8a5aa8", "d--"),
    "exact": ("exact rule (ours)", "#0b6e4f", "o"),
    "roo": ("ROO", "#2f5d9b", "v-"),
}


def records_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows as records."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def violates(sampler: roo.MinCountSampler) -> bool:
    """Return whether a rule exceeds e^epsilon by more than the rounding of its weights."""
    return sampler.audit.excess_factor > VIOLATES


def data_sets(sampler: roo.MinCountSampler) -> str:
    """Return the audit's neighbours in words: counts, or runs of counts for many letters."""
    witness = sampler.audit.witness
    if sampler.setting.letters <= 12:
        return f"{witness.counts} to {witness.neighbour}"
    sides = (
        ", ".join(f"{letters} x {count}" for count, letters in runs)
        for runs in (witness.runs, witness.neighbour_runs)
    )
    return " to ".join(sides)


def two_level(letters: int, least: float, low: int) -> np.ndarray:
    """Return P with ``low`` letters at the least probability, the others equal."""
    rest = (1 - low * least) / (letters - low)
    return np.concatenate([np.full(low, least), np.full(letters - low, rest)])


def smooth_floor(n: int, k: int, epsilon: float) -> roo.SmoothFloorSampler | None:
    """Return the smooth floor, or None where epsilon is too small for so few records."""
    return roo.smooth_floor(n, k, epsilon) if epsilon > math.log1p(1 / n) else None


def short(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:.3g}"

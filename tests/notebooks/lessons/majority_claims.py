"""What must be so after the cells of ``majority_claims.ipynb``."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpopt.privacy import exp_upper


def after_ratio(it: Any) -> None:
    assert it.ratio > exp_upper(Fraction(6))


def after_smallest(it: Any) -> None:
    for name, voter in it.teachers.items():
        assert 11 * voter < Fraction(it.smallest[name])
        assert 11 * Fraction("0.0001") < Fraction("0.002")

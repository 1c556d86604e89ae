"""Exact proofs that nothing is better: bounds as rationals, optima as fractions, closed forms.

All of it stands on the programs that `dpopt.verify` displays from the plain values of a file: what
is proved here is what that module, alone, checks again.
"""

from __future__ import annotations

from dpopt.proofs.dual import BITS, Bound, Optimality, Written, proved
from dpopt.proofs.saved import (
    counted,
    laid_beside,
    optimality,
    proof_path,
    small,
    write_verifier,
)

__all__ = [
    "BITS",
    "Bound",
    "Optimality",
    "Written",
    "counted",
    "laid_beside",
    "optimality",
    "proof_path",
    "proved",
    "small",
    "write_verifier",
]

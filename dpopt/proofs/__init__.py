"""Exact proofs of optimality: bounds as rationals, optima as fractions, closed forms.

All of them use the linear programs that `dpopt.verify` writes from the plain values of a file, so
that stand-alone module can check what is proved here.
"""

from __future__ import annotations

from dpopt.proofs.dual import BITS, SMALL, Bound, Optimality, Written, optimality, proved
from dpopt.proofs.saved import laid_beside, proof_path, write_verifier

__all__ = [
    "BITS",
    "SMALL",
    "Bound",
    "Optimality",
    "Written",
    "laid_beside",
    "optimality",
    "proof_path",
    "proved",
    "write_verifier",
]

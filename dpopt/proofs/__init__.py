"""Exact proofs of optimality: bounds as rationals, optima as fractions, closed forms.

All of them use the linear programs that `dpopt.verify` writes from the plain values of a file, so
that that stand-alone module can check what is proved here.
"""

from __future__ import annotations

from dpopt.proofs.dual import BITS, Bound, Optimality, Written, proved
from dpopt.proofs.saved import counted, laid_beside, optimality, proof_path, small, write_verifier

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

"""Reading saved mechanisms back, whatever their kind; nothing is believed, all is certified."""

from __future__ import annotations

from pathlib import Path

from dpopt._numbers import shown
from dpopt.mechanisms.majority import MajorityDesign, from_sealed
from dpopt.mechanisms.public_prior import SamplingKernel
from dpopt.mechanisms.public_prior.saved import KIND as PUBLIC_PRIOR
from dpopt.mechanisms.public_prior.saved import from_sealed as public_prior_from_sealed
from dpopt.mechanisms.roo import MinCountSampler
from dpopt.mechanisms.roo.minimum import from_sealed as min_count_from_sealed
from dpopt.privacy.kernel import ExactKernel
from dpopt.privacy.saved import AUDIT, read_sealed, refuse_audit

Mechanism = MajorityDesign | MinCountSampler | SamplingKernel | ExactKernel


def load(path: str | Path) -> Mechanism:
    """Return a saved mechanism after certifying it again from its integers.

    Structure is checked first, then privacy, then the hash: a file whose weights are not private
    is reported as such even if it was edited.

    Raises:
        ParameterError: if the file is missing, truncated, malformed, of a newer schema, or was
            changed after it was saved.
        NotPrivateError: if its weights are not private, or it holds an audit.
    """
    sealed = read_sealed(Path(path))
    if sealed.kind == "majority":
        return from_sealed(sealed)
    if sealed.kind == "kernel":
        return ExactKernel.from_sealed(sealed)
    if sealed.kind == "min-count":
        return min_count_from_sealed(sealed)
    if sealed.kind == PUBLIC_PRIOR:
        return public_prior_from_sealed(sealed)
    if sealed.kind == AUDIT:
        raise refuse_audit(sealed)
    raise sealed.refuse(
        f"its kind is {shown(sealed.kind)}; known are majority, min-count, public-prior and kernel"
    )

"""What is recorded of a claim: what the paper says, what is found, and how it was proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpopt import DpoptError, majority
from dpopt.privacy import Certificate
from experiments.registry import Table

REFUTED, IMPROVED, SUPPORTED = "refuted", "improved", "supported, not proved"


@dataclass(frozen=True)
class Claim:
    """One instance of a claim.

    Attributes:
        claim: its short name, shared by all its instances.
        place: where the paper states it.
        instance: the parameters.
        says: what the paper says.
        found: what was computed.
        quantity: what the two values are.
        value_claimed: what the claim gives for the quantity.
        value_found: what was found.
        status: `REFUTED`, `IMPROVED` or `SUPPORTED`.
        certificate: how ``value_found`` was proved.
        constraints: number of inequalities decided exactly; None if the proof is of another kind.
        slack: smallest right minus left side of a proof, or minus the excess of a broken row, in
            probability; None if the proof covers every epsilon.
    """

    claim: str
    place: str
    instance: str
    says: str
    found: str
    quantity: str
    value_claimed: float
    value_found: float
    status: str
    certificate: str
    constraints: int | None = None
    slack: float | None = None

    @property
    def sentence(self) -> str:
        """The claim as one finding."""
        return f"{self.claim}, {self.instance}: {self.found} ({self.status}; {self.certificate})"


@dataclass(frozen=True)
class Part:
    """What one group of claims yields: instances, and tables for the figure."""

    claims: tuple[Claim, ...]
    tables: Mapping[str, Table] = field(default_factory=dict)


def short(value: float) -> str:
    """Return a number in four significant digits."""
    return f"{value:.4g}"


def require(held: bool, what: str) -> None:
    """Stop the run where a statement that is about to be recorded does not hold.

    Raises:
        DpoptError: if it does not.
    """
    if not held:
        raise DpoptError(f"{what}: what was to be recorded does not hold.")


def proof_of(design: majority.MajorityDesign) -> Certificate:
    """Return the certificate of a design.

    Raises:
        DpoptError: if it has none.
    """
    if design.certificate is None:
        raise DpoptError(f"gamma ({design.objective}) is not private for {design.setting}.")
    return design.certificate


def proved_by(proof: Certificate) -> str:
    """Return how a certificate was reached, in words."""
    arithmetic = proof.arithmetic.partition(";")[0]
    return f"{proof.constraints:,} rows decided in {arithmetic}"

"""What is recorded of a claim: what the paper says, what is found, and how it was proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from dpopt import DpoptError, majority
from dpopt.privacy import Certificate
from experiments.registry import Cell, Table

REFUTED, IMPROVED, AGREES, UNDECIDED = "refuted", "improved", "agrees", "undecided"
HOLDS, FAILS = "holds", "does not hold"
AT_LEAST, AT_MOST = "at least", "at most"
# Values of double precision that differ by less are the same.
_ROUNDING = 1e-9


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
        relation: what the claim says of the quantity: it is `AT_LEAST` or `AT_MOST` the claimed.
        certificate: how ``value_found`` was proved.
        sharpens: whether a quantity beyond the claimed one says more than the paper.
        own: whether the statement is ours; the paper does not make it.
        proved: whether the certificate holds; the claim is undecided otherwise.
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
    relation: str
    certificate: str
    constraints: int | None = None
    slack: float | None = None
    sharpens: bool = False
    own: bool = False
    proved: bool = True

    @property
    def beyond(self) -> float:
        """How far the quantity lies on the claim's side of the claimed value; below 0 against."""
        step = self.value_found - self.value_claimed
        return step if self.relation == AT_LEAST else -step

    @property
    def holds(self) -> bool:
        """Whether the claim holds in this instance, up to rounding."""
        return self.beyond >= -self._rounding

    @property
    def more(self) -> bool:
        """Whether more than the claim holds in this instance."""
        return self.sharpens and self.beyond > self._rounding

    @property
    def _rounding(self) -> float:
        return _ROUNDING * max(abs(self.value_claimed), abs(self.value_found))

    @property
    def status(self) -> str:
        """`REFUTED`, `IMPROVED`, `AGREES`; `HOLDS`, `FAILS` if it is our own; or `UNDECIDED`."""
        if not self.proved:
            return UNDECIDED
        if self.own:
            return HOLDS if self.holds else FAILS
        return REFUTED if not self.holds else IMPROVED if self.more else AGREES

    @property
    def record(self) -> dict[str, Cell]:
        """The instance as a row."""
        return asdict(self) | {"status": self.status}

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


def require(same: bool, what: str) -> None:
    """Stop the run where two computations of one number part: one of them is wrong.

    Raises:
        DpoptError: if they do.
    """
    if not same:
        raise DpoptError(f"{what}: two computations of the same number differ.")


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

"""What is recorded of a claim, and the exact arithmetic that proves it.

For Delta = 0, an integer m and a rational gamma, every privacy row of DaRRM is a polynomial in
r = e^epsilon once it is multiplied by (r + 1) for each voter at b = r / (r + 1) or c = 1 - b. If
no coefficient in t = r - 1 is negative, the row holds for every epsilon >= 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cache
from math import comb, lcm

from flint import fmpz_poly

import dpopt
from dpopt import DpoptError, majority
from dpopt.privacy import Certificate, exp_lower, exp_upper
from experiments.registry import Cell, Table

REFUTED, IMPROVED, AGREES, UNDECIDED = "refuted", "improved", "agrees", "undecided"
HOLDS, FAILS = "holds", "does not hold"
AT_LEAST, AT_MOST = "at least", "at most"
# Values of double precision that differ by less are the same.
_ROUNDING = 1e-9

Voters = Sequence[tuple[Fraction, Fraction]]


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


def proof_of(design: dpopt.Design) -> Certificate:
    """Return the certificate of a design.

    Raises:
        DpoptError: if it has none.
    """
    if design.certificate is None:
        raise DpoptError(f"gamma is not private for {design.setting}.")
    return design.certificate


def proved_by(proof: Certificate) -> str:
    """Return how a certificate was reached, in words."""
    return f"{proof.constraints:,} rows decided in exact integers"


@dataclass(frozen=True)
class Proof:
    """Rows decided for every epsilon >= 0 at once.

    Attributes:
        constraints: number of rows, each a polynomial in t = e^epsilon - 1.
        tight: rows whose slack is identically zero.
        undecided: rows with a negative coefficient; the proof holds if there is none.
    """

    constraints: int
    tight: int
    undecided: int


def prove_for_every_epsilon(
    upper: Sequence[Fraction], allowance: int, *, full: bool = False
) -> Proof:
    """Decide m epsilon-DP of a noise function for every epsilon >= 0, for Delta = 0.

    Args:
        upper: gamma(l) for l = (K + 1) / 2..K, in [0, 1].
        allowance: m, a positive integer.
        full: take the paper's C(K+3, 3) multisets instead of the reduced set's (K + 1)^2.
    """
    denominator = lcm(*(value.denominator for value in upper))
    scaled = [int(value * denominator) for value in upper]
    signed = [-value for value in reversed(scaled)] + scaled
    count = tight = undecided = 0
    for slack in _slacks(signed, denominator, allowance, full):
        coefficients = [int(value) for value in slack.coeffs()]
        count += 1
        tight += not coefficients
        undecided += any(value < 0 for value in coefficients)
    return Proof(count, tight, undecided)


def _slacks(signed: list[int], unit: int, allowance: int, full: bool) -> Iterator[fmpz_poly]:
    """Yield unit (r + 1)^s (r^m - 1 - G(p) + r^m G(p')) in t = r - 1, s voters at b or c."""
    k, shift = len(signed) - 1, fmpz_poly([1, 1])
    power = fmpz_poly([0, 1]) ** allowance
    for moving in range(k + 1):
        budget = unit * (power - 1) * fmpz_poly([1, 1]) ** moving
        splits = range(moving + 1) if full else sorted({0, moving})
        for ones in range(k + 1 - moving):
            means = {high: _mean(signed, high, moving - high, ones) for high in splits}
            for high in splits:
                yield (budget - means[high] + power * means[moving - high])(shift)


def _mean(signed: list[int], high: int, low: int, ones: int) -> fmpz_poly:
    """Return (r + 1)^(high + low) E h(ones + Bin(high, b) + Bin(low, c)) as a polynomial in r."""
    coefficients = [0] * (high + low + 1)
    for i, up in enumerate(_binomials(high)):
        for j, down in enumerate(_binomials(low)):
            coefficients[i + low - j] += up * down * signed[ones + i + j]
    return fmpz_poly(coefficients)


@cache
def _binomials(n: int) -> tuple[int, ...]:
    return tuple(comb(n, i) for i in range(n + 1))


def chance_of_one(gamma: Sequence[Fraction], p: Sequence[Fraction]) -> Fraction:
    """Return Pr[DaRRM outputs 1] for gamma on 0..K and the voters' p, exactly."""
    law = [Fraction(1)]
    for q in p:
        law = [
            (law[i] * (1 - q) if i < len(law) else 0) + (law[i - 1] * q if i else 0)
            for i in range(len(law) + 1)
        ]
    signs = (1 if 2 * ones > len(p) else -1 for ones in range(len(p) + 1))
    mean = sum(
        (mass * sign * value for mass, sign, value in zip(law, signs, gamma, strict=True)),
        Fraction(0),
    )
    return (1 + mean) / 2


def excess_at(
    gamma: Sequence[Fraction], voters: Voters, ratio: Fraction, delta: Fraction = Fraction(0)
) -> Fraction:
    """Return Pr[1 | p] - ratio Pr[1 | p'] - delta, exactly; above 0 if the row is broken."""
    here = chance_of_one(gamma, [p for p, _ in voters])
    return here - ratio * chance_of_one(gamma, [q for _, q in voters]) - delta


def surely_broken_by(
    setting: majority.MajoritySetting, gamma: Sequence[float], counts: Mapping[str, int]
) -> Fraction:
    """Return a lower bound on how much a gamma breaks the row of some voters, exact.

    The voters are at corners for a rational r <= e^epsilon, so they are private; the target is a
    rational >= e^(m epsilon).

    Args:
        setting: the voters and the target.
        gamma: on 0..K, floats taken exactly.
        counts: how many voters sit at which corner, such as ``check_full(...).worst``.
    """
    r = exp_lower(setting.epsilon)
    exact = Fraction(setting.allowance) * Fraction(setting.epsilon)
    ratio = exp_upper(max(exact, Fraction(setting.guarantee.epsilon)))
    voters = corner_voters(counts, r, Fraction(setting.mechanism_delta))
    return excess_at([Fraction(g) for g in gamma], voters, ratio, Fraction(setting.delta))


def corner_voters(counts: Mapping[str, int], r: Fraction, shift: Fraction) -> Voters:
    """Return (p, p') of each voter, for e^epsilon = r and Delta = shift (lemma 5.1)."""
    value = {
        "0": Fraction(0),
        "1": Fraction(1),
        "D": shift,
        "m": 1 - shift,
        "b": (r + shift) / (r + 1),
        "c": (1 - shift) / (r + 1),
    }
    return [(value[at[0]], value[at[1]]) for at, n in counts.items() for _ in range(n)]


def majority_of_sample(mechanisms: int, size: int) -> list[Fraction]:
    """Return Pr[majority of ``size`` of K voters is 1 | L = l] on 0..K; a tie counts half."""
    found = []
    for ones in range(mechanisms + 1):
        ways = Fraction(0)
        for j in range(size + 1):
            share = Fraction(1, 2) if 2 * j == size else Fraction(int(2 * j > size))
            ways += share * comb(ones, j) * comb(mechanisms - ones, size - j)
        found.append(ways / comb(mechanisms, size))
    return found

"""The base class of settings that decide from the votes of voters who are private themselves."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Self

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits, float_up
from dpopt.budget import Budgeted
from dpopt.privacy import Guarantee


class PrivateVoters(Budgeted):
    """K voters, each (epsilon, Delta)-DP, whose joint answer is to be (m epsilon, delta)-DP.

    Attributes:
        voters: K.
        epsilon: of each voter.
        allowance: m; None for several releases.
        voter_delta: Delta, of each voter.
        delta: of the answer.
    """

    voters: int
    epsilon: float
    allowance: float
    voter_delta: float
    delta: float

    def keep_voters(self, voters: int) -> None:
        """Set the checked fields."""
        epsilon = _checks.real("epsilon", self.epsilon, 0.0, open_lower=True)
        of_one = {"allowance": self.allowance, "delta": self.delta, "voter_delta": self.voter_delta}
        allowance = self.allowance
        if not self.keep_total("allowance", **of_one):
            allowance = _checks.real("allowance", allowance, 0.0, voters, open_lower=True)
        # In nats, so that e^(m epsilon) stays a finite float.
        if max(allowance or 1.0, 1.0) * epsilon > 600.0:
            raise ParameterError(
                f"epsilon is {digits(epsilon)} and allowance {allowance}; epsilon and their "
                "product must be at most 600."
            )
        deltas = {
            name: _checks.real(name, getattr(self, name), 0.0, 1.0, open_upper=True)
            for name in ("voter_delta", "delta")
        }
        self.keep(voters=voters, epsilon=epsilon, allowance=allowance, **deltas)

    @property
    def exponent(self) -> Fraction:
        """The exponent m epsilon, exactly."""
        return Fraction(self.allowance) * Fraction(self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """(m epsilon, delta), rounded up; or what all releases spend together."""
        if self.releases > 1:
            return self.total
        return Guarantee(float_up(self.exponent), self.delta)

    @property
    def behind(self) -> tuple[Guarantee, int]:
        """(epsilon, Delta) of each voter, and K."""
        return Guarantee(self.epsilon, self.voter_delta), self.voters

    @property
    def _unlimited(self) -> float:
        """Every function of the votes is (K epsilon)-DP."""
        return self.voters * self.epsilon

    def one_release(self, guarantee: Guarantee) -> Self:
        """Return the setting of one release with a guarantee of its own."""
        allowance = min(guarantee.epsilon / self.epsilon, self.voters)
        return self.alone(allowance=allowance, delta=guarantee.delta)

    @property
    def one_query(self) -> Self:
        """The setting of one query; of several releases, its target is not used."""
        return self if self.releases == 1 else self.one_release(Guarantee(self._unlimited))

    def targets(self, curve: Sequence[Guarantee]) -> list[Self]:
        """Return the settings of one release with each guarantee that does not hold by itself."""
        return [self.one_release(point) for point in curve if point.epsilon < self._unlimited]

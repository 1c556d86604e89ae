"""What K private voters spend through a rule that is private in each vote, for every C and K.

If replacing one vote changes a probability by a factor of v = e^{epsilon_v} at most, voters that
are (epsilon, 0)-DP, r = e^epsilon, spend K psi with e^psi = (r v + 1) / (r + v); with a Delta see
the page docs/theorems/stable.md, where both are proved. Rationals rounded to the safe side decide.
"""

from __future__ import annotations

from fractions import Fraction

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.privacy.exponential import exp_lower, exp_upper, rational

BITS = 128


def one_voter(
    voter_ratio: Fraction, vote_ratio: Fraction, mechanism_delta: Fraction = Fraction(0)
) -> Fraction:
    """Return e^psi: by how much one private voter changes the output of a stable rule at most.

    Args:
        voter_ratio: r = e^epsilon of the voter, at least 1.
        vote_ratio: v = e^{epsilon_v} of the rule, at least 1.
        mechanism_delta: Delta of the voter, in [0, 1).

    Example:
        >>> from fractions import Fraction
        >>> print(one_voter(Fraction(2), Fraction(3)))
        7/5
    """
    delta = Fraction(mechanism_delta)
    ratio = (Fraction(voter_ratio) + delta) / (1 - delta)
    through = (ratio * vote_ratio + 1) / (ratio + vote_ratio)
    return max(through, 1 + delta * (vote_ratio - 1))


def budget_below(mechanisms: int, epsilon: float, allowance: float) -> Fraction:
    """Return a rational of at most e^{m epsilon / K}, by less than 2^-128 below it."""
    return exp_lower(rational("allowance", allowance) * rational("epsilon", epsilon) / mechanisms)


def vote_ratio_below(
    mechanisms: int,
    epsilon: float,
    allowance: float,
    mechanism_delta: float = 0.0,
    bits: int = BITS,
) -> Fraction | None:
    """Return the largest multiple v of 2^-bits, up to rounding, with K psi <= m epsilon.

    None where every rule is private: m = K and Delta = 0.

    Args:
        mechanisms: K.
        epsilon: of each voter, positive.
        allowance: m, in (0, K].
        mechanism_delta: Delta of each voter, in [0, 1).
        bits: of the fraction's denominator.

    Raises:
        ParameterError: for a parameter out of range, or so small a budget that v is 1.

    Example:
        >>> from dpopt.multiclass.bound import vote_ratio_below
        >>> round(float(vote_ratio_below(11, 0.1, 3)), 6)
        1.750795
    """
    sizes = _checked(mechanisms, epsilon, allowance, mechanism_delta)
    delta, budget = Fraction(sizes[3]), budget_below(*sizes[:3])
    voter = (exp_upper(sizes[1]) + delta) / (1 - delta)
    limits = []
    # g(r, v) is below r for every v: m = K bounds nothing, though the budget is rounded down.
    if budget < voter and (delta or sizes[2] < sizes[0]):
        limits.append((voter * budget - 1) / (voter - budget))
    if delta:
        limits.append(1 + (budget - 1) / delta)
    if not limits:
        return None
    found = Fraction(int(min(limits) * (1 << bits)), 1 << bits)
    if found <= 1:
        raise ParameterError(
            f"epsilon is {_checks.shown(epsilon)}; with allowance {_checks.shown(allowance)} and "
            f"{sizes[0]} mechanisms it must be larger: no rule but a constant one is proved."
        )
    return found


def _checked(
    mechanisms: int, epsilon: float, allowance: float, mechanism_delta: float
) -> tuple[int, float, float, float]:
    voters = _checks.integer("mechanisms", mechanisms, 1)
    return (
        voters,
        _checks.real("epsilon", epsilon, 0.0, open_lower=True),
        _checks.real("allowance", allowance, 0.0, voters, open_lower=True),
        _checks.real("mechanism_delta", mechanism_delta, 0.0, 1.0, open_upper=True),
    )

r"""What K private voters spend through a rule that is private in each vote: proved for every C, K.

Voter i has the law P_i under one data set and P'_i under its neighbour, all voters independent. A
rule a(y | votes) is v-stable if replacing one vote changes the probability of every set of outputs
by a factor of v = e^{epsilon_v} at most; the ladder, permute-and-flip and the exponential mechanism
are made so. Nothing else is asked of it: not symmetry, not a number of outputs.

**Theorem.** If each voter is (epsilon, 0)-DP, r = e^epsilon, the output is (K psi, 0)-DP with

.. math::

    e^{\psi} = g(r, v) = \frac{r v + 1}{r + v} .

*Proof.* Replace the P_i by the P'_i one voter after the other. In one step all other laws are
fixed. Let A_x be the probability of a set of outputs, over the others and the rule, where this
voter votes x: A_x <= v A_z for all x and z, by stability, averaged over the others. If some A_z is
0, all are, and both sides are 0. Else the step multiplies the set's probability by P.A / P'.A. For
every t, P.A - t P'.A is linear in (P, P'), so it is at most 0 on the polytope of private pairs if
it is at its corners: the largest ratio stands at a corner (`dpopt.multiclass.pairs`, theorem 1).
At (delta_y, delta_y) it is 1. With b = r / (1 + r), c = 1 - b and x = A_y / A_z, at the corner of
y and z it is (b x + c) / (c x + b). As b > c, this rises with x, and x <= v: it is at most
(b v + c) / (c v + b) = g(r, v). K steps multiply. ∎

g is symmetric: a private voter and a stable rule are two channels in a row. g(r, v) < min(r, v).
It is sharp for one voter: two classes, and randomised response of ratio v as the rule. It is sharp
for K of them where the rule may tell K answers, one response for each vote. A rule that tells one
class spends less, so that an exact audit of few classes allows more.

**Theorem, (epsilon, Delta)-DP voters.** The output is still (K psi, 0)-DP: no delta is left, as
the rule is stable whatever a vote was. Now, with r_Delta = (r + Delta) / (1 - Delta),

.. math::

    e^{\psi} = \max\bigl(g(r_\Delta, v),\; 1 + \Delta (v - 1)\bigr),

of which the first is the larger exactly if 1 + Delta (v - 1) <= r.

*Proof.* As before, with corners (theorem 3 there)

    P = (Delta, (1 - Delta) b, (1 - Delta) c, 0), P' its mirror, on classes w, x, y, z of any kind.

The ratio is (Delta A_w + (1 - Delta)(b A_x + c A_y)) / ((1 - Delta)(c A_x + b A_y) + Delta A_z).
It rises with A_w and falls with A_z: let these be v and 1, the least A being 1. Where all others
are 1, it is q = 1 + Delta (v - 1). Raising A_x adds to both sides in proportion r : 1, and raising
A_y in proportion 1 : r. The ratio that results lies between the old one and this proportion. So it
is at least 1 before A_y is raised, with A_x raised or not, and raising A_y only lowers it: A_y = 1.
Raising A_x raises it if q < r and lowers it if q > r. Raised, it is (beta v + gamma) /
(gamma v + beta) with beta = (r + Delta) / (1 + r) and gamma = (1 - Delta) / (1 + r): g(r_Delta, v).
∎

**In exact numbers.** Both terms rise with r and with v. So a rational of at least r, one of at most
e^{m epsilon / K} and a rational v decide e^{K psi} <= e^{m epsilon} from the safe side. Solving
g(r, v) = t gives v = (r t - 1) / (r - t), which rises with t and falls with r: the largest v, up to
rounding, from the same two rationals.
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

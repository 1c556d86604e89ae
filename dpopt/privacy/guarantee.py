"""Guarantees of (epsilon, delta)-differential privacy, their composition, and certificates.

A certificate records an exact proof: its least slack, and a digest of what was proved.

Compositions are rounded up and use the guarantees alone. A *part* is a guarantee (epsilon_j,
delta_j) with the number n_j of mechanisms that have it. Each mechanism's randomness is independent
of the others', given data and earlier outputs; the choice of the next mechanism and of its data may
depend on earlier outputs.

*A budget as a filter*, `allowed`: the guarantee of the next release, and whether there is one, may
depend on all outputs so far. A slack s of a budget (E, D) is reserved: s = D / 2, or s = 0 if the
first entry alone has a delta above D / 2 (it is chosen before any output). Releases are allowed as
long as

    sum delta_j <= D - s   and   ( sum epsilon_j <= E   or   rho + 2 sqrt(rho log(1/s)) <= E ),

with rho = sum epsilon_j^2 / 2. Then all of them together are (E, D)-DP. Proof: an (epsilon_j,
delta_j) mechanism is epsilon_j-DP except on an event of conditional probability delta_j, and these
events have total probability at most D - s. Outside them, the privacy loss L is at most
sum epsilon_j. And exp(lambda L - lambda (lambda + 1) rho) is a supermartingale for every
lambda > 0, since epsilon-DP implies (epsilon^2 / 2)-zCDP: by Ville's inequality, the probability
that L ever exceeds E while the second bound holds is at most s. The "or" costs nothing, since the
first bound holds on every path. With the slack defined instead as D minus the deltas of a path,
this would be false: `tests/ledger/test_filters.py` has the adversary.

References:
    Rogers, Roth, Ullman, Vadhan (2016); Whitehouse, Ramdas, Rogers, Wu (2023), theorem 1, whose
    bound the second one is; Bun, Steinke (2016), proposition 1.4, for zCDP of pure mechanisms.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal, cast

import numpy as np

from dpopt import _checks, verify
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import exact_text, float_down, float_up, roughly
from dpopt._types import Json, brief
from dpopt.privacy.exact import exp_lower, exp_upper, least_float, log_upper, sqrt_upper

# Fractional bits of powers. Deltas go down to 2^-1074; each of up to 107 products loses less than
# 2^54 units.
_POWER_BITS = 1220

MOST_FOLDS = 20_000
"""Number of mechanisms at which `optimal_composition` returns None; time fixes it."""

# Fractional bits of the probabilities in `optimal_composition`.
_BITS = 512
# Unit of a slack, and the smallest that is used: below every float.
_SMALLEST = Fraction(1, 1 << 1200)


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy.

    For all neighbouring inputs and every event S: Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] +
    delta.

    Attributes:
        epsilon: at least 0, in nats.
        delta: in [0, 1).
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checks.real("epsilon", self.epsilon, 0.0))
        delta = _checks.real("delta", self.delta, 0.0, 1.0, open_upper=True)
        object.__setattr__(self, "delta", delta)

    def __repr__(self) -> str:
        # 0.1 * 3 as 0.3.
        epsilon, delta = (float(f"{number:.12g}") for number in (self.epsilon, self.delta))
        return f"Guarantee(epsilon={epsilon}, delta={delta})"


def in_short(guarantee: Guarantee) -> str:
    """Return a short text of a guarantee, such as "(0.5, 0)-DP", rounded up to six digits."""
    return f"({verify.not_below(guarantee.epsilon)}, {verify.not_below(guarantee.delta)})-DP"


def simple_composition(guarantee: Guarantee, folds: int) -> Guarantee:
    """Return the guarantee of ``folds`` composed mechanisms: (k epsilon, k delta), rounded up.

    Both are the least floats that are at least the exact products.

    Args:
        guarantee: of each mechanism.
        folds: k >= 1.

    Raises:
        ParameterError: if k delta reaches 1, where nothing is guaranteed.

    References:
        Theorem 2.2 of the DaRRM paper.
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    # Number of mechanisms: integers up to here are exact as floats.
    k = _checks.integer("folds", folds, 1, 2**53)
    exact = Fraction(guarantee.epsilon), Fraction(guarantee.delta)
    return Guarantee(float_up(k * exact[0]), float_up(k * exact[1]))


def general_composition(guarantee: Guarantee, folds: int, slack: float) -> Guarantee:
    """Return the guarantee of ``folds`` composed mechanisms, with less epsilon for a larger delta.

    epsilon' = min{ k e, A + e sqrt(2k log(E + sqrt(k e^2) / slack)), A + e sqrt(2k log(1 / slack))
    } with e = epsilon, E = exp(1), A = k e (exp(e) - 1) / (exp(e) + 1), and
    delta' = 1 - (1 - delta)^k (1 - slack). Both are rounded up: every step is taken in rationals
    that are at least the exact value, by a few floats at most.

    The slack in (0, 1), the delta' of the theorem, is the additional delta. The other arguments are
    those of `simple_composition`.

    References:
        Kairouz, Oh, Viswanath (2015); theorem 2.3 of the DaRRM paper.

    Example:
        >>> from dpopt.privacy import Guarantee, general_composition
        >>> round(general_composition(Guarantee(0.1), 100, slack=1e-6).epsilon, 4)
        5.7561
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    k = _checks.integer("folds", folds, 1, 2**53)
    slack = _checks.real("slack", slack, 0.0, 1.0, open_lower=True, open_upper=True)
    e, tail = Fraction(guarantee.epsilon), Fraction(slack)
    # (exp(e) - 1) / (exp(e) + 1), which above e = 100 rounds to 1.
    mean_loss = Fraction(1) if e > 100 else (exp_upper(e) - 1) / (exp_upper(e) + 1)
    base = k * e * mean_loss
    root = sqrt_upper(k) * e / tail
    logs = log_upper(exp_upper(1) + root), log_upper(1 / tail)
    spread = e * sqrt_upper(2 * k * Fraction(min(logs)))
    survival = power_below(1 - Fraction(guarantee.delta), k) * (1 - tail)
    return Guarantee(float_up(min(k * e, base + spread)), float_up(1 - survival))


def power_below(base: Fraction, exponent: int) -> Fraction:
    """Return base^exponent for a base in [0, 1], rounded down by at most 2^-1150."""
    # Square and multiply in integers over 2^_POWER_BITS, each product rounded down.
    scale = 1 << _POWER_BITS
    power, square = scale, base.numerator * scale // base.denominator
    while exponent:
        if exponent & 1:
            power = power * square >> _POWER_BITS
        square = square * square >> _POWER_BITS
        exponent >>= 1
    return Fraction(power, scale)


Parts = Sequence[tuple[Guarantee, int]]
"""Guarantees, each with the number of mechanisms that have it."""


def simple(parts: Parts) -> Guarantee | None:
    """Return (sum n_j epsilon_j, sum n_j delta_j), rounded up; None if that is no guarantee.

    It is none where delta reaches 1 or epsilon is infinite.

    References:
        Theorem 2.2 of the DaRRM paper.
    """
    epsilon, delta = float_up(_epsilons(parts, 1)), float_up(_deltas(parts))
    return Guarantee(epsilon, delta) if delta < 1 and math.isfinite(epsilon) else None


def allowed(parts: Parts, budget: Guarantee) -> bool:
    """Return whether a budget allows these releases, by the filter in the docstring of the module.

    The first part is the first entry.
    """
    most = Fraction(budget.delta)
    slack = Fraction(0) if 2 * _deltas(parts[:1]) > most else most / 2
    if _deltas(parts) > most - slack:
        return False
    if _epsilons(parts, 1) <= Fraction(budget.epsilon):
        return True
    return slack > _SMALLEST and concentrated_bound(_epsilons(parts, 2), slack) <= budget.epsilon


def concentrated_bound(squares: Fraction, slack: Fraction) -> float:
    """Return rho + 2 sqrt(rho log(1 / slack)), rounded up, with rho half the sum of squares."""
    rho = squares / 2
    return float_up(rho + 2 * sqrt_upper(rho * Fraction(log_upper(1 / slack))))


def room(parts: Parts, budget: Guarantee) -> float:
    """Return the remaining budget: the largest epsilon of one more release with delta = 0.

    The arguments are those of `allowed`.
    """

    def fits(epsilon: float) -> bool:
        return allowed([*parts, (Guarantee(epsilon), 1)], budget)

    over = Fraction(budget.epsilon) - _epsilons(parts, 1)
    if fits(budget.epsilon):
        return budget.epsilon
    # From what the sum of epsilons leaves, which is always allowed.
    low = float_down(max(Fraction(0), over))
    refused = least_float(lambda epsilon: not fits(epsilon), low if fits(low) else 0.0)
    return max(0.0, math.nextafter(refused, 0.0))


def optimal_composition(guarantee: Guarantee, folds: int, delta: float) -> Guarantee | None:
    """Return the least epsilon of k mechanisms with one guarantee, composed, at a given delta.

    The worst (epsilon, delta_1)-DP mechanism reveals the truth with probability delta_1, and
    otherwise is randomised response, which is correct with e^epsilon / (1 + e^epsilon). Of k such
    answers only the number i of wrong ones matters; the privacy loss is (k - 2 i) epsilon. With P
    and Q the distributions of i, s from delta = 1 - (1 - s) (1 - delta_1)^k, and the events "at
    most j are wrong", which are optimal by the Neyman-Pearson lemma:

        e^epsilon' = max_j (P(i <= j) - s) / Q(i <= j).

    P is bounded from above and Q from below, in integers. The result holds if k = ``folds`` and the
    guarantee are fixed before the first output is seen.

    The delta of the composition is 0 or in [1e-300, 1). None if it is too small, the guarantee's
    epsilon is above 100, or k is at least `MOST_FOLDS`.

    References:
        Kairouz, Oh, Viswanath (2015), theorem 3.3.
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    k = _checks.integer("folds", folds, 1)
    delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
    if 0 < delta < 1e-300:
        raise ParameterError(f"delta is {delta}; it must be 0, or at least 1e-300.")
    # Largest epsilon of one mechanism there, in nats: e^-epsilon must be far above 2^-_BITS.
    if k >= MOST_FOLDS or guarantee.epsilon > 100:
        return None
    slack, sums = _slack(guarantee.delta, k, delta), float_up(k * Fraction(guarantee.epsilon))
    if slack is None or slack == 0 or guarantee.epsilon == 0:
        return None if slack is None else Guarantee(sums, delta)
    most, least = _wrong_answers(guarantee.epsilon, k)
    slack_units = slack.numerator * (1 << _BITS) // slack.denominator
    above, below = 0, 0
    top, bottom = 0, 1
    for i in range(k + 1):
        # Q is the distribution of k - i under P: right and wrong answers change roles.
        above, below = above + most[i], below + least[k - i]
        gain = min(above, 1 << _BITS) - slack_units
        if gain > 0 and below == 0:
            return None
        if gain * bottom > top * below:
            top, bottom = gain, below
    exact = log_upper(Fraction(top, bottom)) if top > bottom else 0.0
    return Guarantee(min(exact, sums), delta)


def _slack(delta: float, folds: int, total: float) -> Fraction | None:
    """Return s with total = 1 - (1 - s) (1 - delta)^folds, rounded down; None below 0."""
    if total == 0:
        return Fraction(0) if delta == 0 else None
    survival = power_below(1 - Fraction(delta), folds)
    if survival <= 0 or 1 - Fraction(total) > survival:
        return None
    slack = 1 - (1 - Fraction(total)) / survival
    # Rounded down to 1200 fractional bits, which covers all floats.
    slack = Fraction(slack.numerator * _SMALLEST.denominator // slack.denominator) * _SMALLEST
    return slack if slack > _SMALLEST else Fraction(0)


def _wrong_answers(epsilon: float, n: int) -> tuple[list[int], list[int]]:
    """Return upper and lower bounds on Pr[i of n answers are wrong], i = 0..n, over 2^_BITS.

    Weights C(n, i) e^(-i epsilon) relative to the largest are computed by ratios of neighbours in
    both directions, once rounded up and once down. Each is divided by the sum of the other kind.
    """
    low, high = exp_lower(epsilon, _BITS), exp_upper(epsilon, _BITS)
    # Weights increase with i while (n - i) / ((i + 1) e^epsilon) is at least 1.
    top = min(n, max(0, int((n + 1) / (1 + float(low)))))
    most, least = [0] * (n + 1), [0] * (n + 1)
    most[top] = least[top] = 1 << _BITS
    for i in range(top, n):
        most[i + 1] = -(-most[i] * (n - i) * low.denominator // ((i + 1) * low.numerator))
        least[i + 1] = least[i] * (n - i) * high.denominator // ((i + 1) * high.numerator)
    for i in range(top, 0, -1):
        most[i - 1] = -(-most[i] * i * high.numerator // ((n - i + 1) * high.denominator))
        least[i - 1] = least[i] * i * low.numerator // ((n - i + 1) * low.denominator)
    over, under = sum(least), sum(most)
    return (
        [-(-(weight << _BITS) // over) for weight in most],
        [(weight << _BITS) // under for weight in least],
    )


def _epsilons(parts: Parts, power: int) -> Fraction:
    """Return sum n_j epsilon_j^power exactly."""
    return sum((n * Fraction(g.epsilon) ** power for g, n in parts), Fraction(0))


def _deltas(parts: Parts) -> Fraction:
    return sum((n * Fraction(g.delta) for g, n in parts), Fraction(0))


@dataclass(frozen=True)
class Certificate:
    """A record that all inequalities of a privacy claim were proved in exact arithmetic.

    Attributes:
        claim: what was proved, in one sentence.
        guarantee: the (epsilon, delta) that follows.
        constraints: number of inequalities decided.
        slack: smallest right side minus left side, in probability; at least 0.
        tightest: the neighbours and the output where the slack is smallest.
        arithmetic: how they were decided: in exact integers, or in floats that are all rounded so
            that the claim can only become harder to prove.
        digest: SHA-256 of all the above and of the numbers that were proved; a result with other
            numbers is refused.
    """

    claim: str
    guarantee: Guarantee
    constraints: int
    slack: Fraction
    tightest: str
    arithmetic: Literal["exact integers", "outward-rounded floats"] = "exact integers"
    digest: str = ""

    def __post_init__(self) -> None:
        """Check the fields."""
        _checks.instance("guarantee", self.guarantee, Guarantee)
        _checks.choice("arithmetic", self.arithmetic, ("exact integers", "outward-rounded floats"))
        shown = _checks.shown(self.slack)
        if not isinstance(self.slack, Rational):
            raise ParameterError(f"slack is {shown}; it must be a Fraction, or an integer.")
        if self.slack > exp_upper(self.guarantee.epsilon) + 1:
            raise ParameterError(f"slack is {shown}; no inequality has more than e^epsilon + 1.")
        _checks.integer("constraints", self.constraints, 0)
        slack = Fraction(self.slack)
        if slack < 0:
            raise NotPrivateError(
                f"{in_short(self.guarantee)} is not proved: a certificate has slack "
                f"{roughly(slack)}, and it must be at least 0.",
                excess=float(-slack) or math.ulp(0.0),
            )

    def about(self, *subject: object) -> Certificate:
        """Return the certificate with the digest of the numbers that it proves."""
        return replace(self, digest=self._digest(subject))

    def is_about(self, *subject: object) -> bool:
        """Whether these are the numbers that the certificate proves, by its digest."""
        return self.digest == self._digest(subject)

    def _digest(self, subject: tuple[object, ...]) -> str:
        values = [getattr(self, field.name) for field in fields(self) if field.name != "digest"]
        return fingerprint(*values, subject)

    def __repr__(self) -> str:
        return brief(
            self,
            claim=self.claim,
            guarantee=self.guarantee,
            constraints=self.constraints,
            slack=float(self.slack),
        )

    def to_dict(self) -> Json:
        """Return the certificate as plain values; rationals as "a/b", beyond 256 bits "0x..."."""
        return {
            "claim": self.claim,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "constraints": self.constraints,
            "slack": float(self.slack),
            "slack_exact": exact_text(self.slack),
            "tightest": self.tightest,
            "arithmetic": self.arithmetic,
            "digest": self.digest,
        }


def fingerprint(*parts: object) -> str:
    """Return the SHA-256 of numbers, texts, arrays, tuples and frozen dataclasses of them.

    Equal numbers of different types (1 and 1.0) have different digests. Lists are refused, since
    they could change afterwards. Dataclass fields with ``compare=False`` are left out.
    """
    digest = hashlib.sha256()
    for token in _tokens(parts):
        digest.update(token.encode() if isinstance(token, str) else token)
    return digest.hexdigest()


def _tokens(value: object) -> Iterator[str | bytes]:
    """Yield an injective encoding of a value; integers are in hexadecimal, of any length."""
    if value is None or isinstance(value, bool):
        yield f"{value};"
    elif type(value) is int:
        yield f"{value:x};"
    elif type(value) is float:
        yield f"{value.hex()};"
    elif isinstance(value, Fraction):
        yield f"{value.numerator:x}/{value.denominator:x};"
    elif isinstance(value, str):
        yield f"{len(value)}:{value};"
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        yield f"{value.dtype.str}{value.shape}:"
        yield np.ascontiguousarray(value).tobytes()
    elif type(value) is tuple:
        yield f"({len(value)}:"
        if set(map(type, value)) == {int}:
            yield ";".join(map("{:x}".format, value))
        else:
            for inner in value:
                yield from _tokens(inner)
        yield ")"
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__name__}:"
        compared = [field.name for field in fields(cast(Any, value)) if field.compare]
        yield from _tokens(tuple(getattr(value, name) for name in compared))
    else:
        raise ParameterError(
            f"the numbers hold a {type(value).__name__}; a proof is about integers, floats, texts "
            "and tuples of them."
        )


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return a parameter as a JSON value that its constructor also accepts."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return exact_text(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list | range):
        return [plain(entry) for entry in value]
    if is_dataclass(value) and "__str__" not in type(value).__dict__:
        return [plain(getattr(value, f.name)) for f in fields(cast(Any, value))]
    return str(value)

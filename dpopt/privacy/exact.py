"""From a float solution to a proof: exact ratios, repair, quantisation, certificates.

A linear program's solution breaks its constraints by the solver's tolerance, and its coefficients
were rounded before the solver saw them. Here every probability becomes an integer over 2^bits and
every privacy inequality is decided in integers, against a rational lower bound of e^epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache
from numbers import Rational
from operator import sub
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import MOST_BITS, digits, exact_text, roughly
from dpopt._page import result_page
from dpopt._types import Json, brief
from dpopt.privacy.exponential import exp_lower, exp_upper, rational
from dpopt.privacy.fingerprint import fingerprint
from dpopt.privacy.guarantee import Guarantee

Pairs = Sequence[tuple[int, int]] | npt.NDArray[np.int64]

_PRECISIONS = (128, 512, 2048, 8192, 32768)


@dataclass(frozen=True)
class Certificate:
    """A record of inequalities that were decided exactly, all of them true.

    Attributes:
        claim: what was proved, in one sentence.
        guarantee: the (epsilon, delta) that follows.
        ratio: the rational used for e^epsilon: at most e^epsilon, or the caller's, of which epsilon
            is the logarithm up to two floats.
        constraints: number of inequalities decided.
        slack: smallest right side minus left side, in probability; at least 0.
        tightest: the neighbours and the output where the slack is smallest.
        arithmetic: how the inequalities were decided.
        bits: the weights that were proved are integers over 2^bits; 0 if they are over their sum.
        digest: SHA-256 of all the above and of the numbers that were proved: a result whose
            numbers have another one cannot be made.
    """

    claim: str
    guarantee: Guarantee
    constraints: int
    slack: Fraction
    tightest: str
    ratio: Fraction = Fraction(1)
    arithmetic: str = "exact integers"
    bits: int = 0
    digest: str = ""

    def __post_init__(self) -> None:
        """Refuse a record of what is not true.

        Raises:
            NotPrivateError: if the slack is below 0.
            ParameterError: if a number or the guarantee is none, or the ratio above e^epsilon.
        """
        _checks.instance("guarantee", self.guarantee, Guarantee)
        for name in ("ratio", "slack"):
            if not isinstance(getattr(self, name), Rational):
                raise ParameterError(
                    f"{name} is {_checks.shown(getattr(self, name))}; it must be a Fraction, or an "
                    "integer."
                )
        if self.slack > exp_upper(self.guarantee.epsilon) + 1:
            raise ParameterError(
                f"slack is {_checks.shown(self.slack)}; no inequality has more than e^epsilon + 1."
            )
        _checks.integer("constraints", self.constraints, 0)
        _checks.integer("bits", self.bits, 0)
        resolve_ratio(self.guarantee, self.ratio)
        slack = Fraction(self.slack)
        if slack < 0:
            raise NotPrivateError(
                f"({self.guarantee.epsilon:g}, {self.guarantee.delta:g})-DP is not proved: a "
                f"certificate has slack {roughly(slack)}, and it must be at least 0.",
                excess=float(-slack) or math.ulp(0.0),
            )

    def about(self, *subject: object) -> Certificate:
        """Return the certificate with the digest of what it was made for."""
        return replace(self, digest=self._digest(subject))

    def is_about(self, *subject: object) -> bool:
        """Whether these are the numbers that the certificate was made for."""
        return self.digest == self._digest(subject)

    def _digest(self, subject: tuple[object, ...]) -> str:
        own = [getattr(self, field.name) for field in fields(self) if field.name != "digest"]
        return fingerprint(*own, subject)

    def __repr__(self) -> str:
        return brief(
            self,
            claim=self.claim,
            guarantee=self.guarantee,
            constraints=self.constraints,
            slack=float(self.slack),
            arithmetic=self.arithmetic,
        )

    def _repr_html_(self) -> str:
        """Return claim and guarantee, for notebooks."""
        facts = {
            "guarantee": self.guarantee,
            "inequalities": self.constraints,
            "slack": float(self.slack),
            "arithmetic": self.arithmetic,
        }
        return result_page(type(self).__name__, f"{self.claim}.", True, facts)

    def to_dict(self) -> Json:
        """Return the certificate as plain values; rationals as "a/b", beyond 256 bits "0x..."."""
        return {
            "claim": self.claim,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "ratio": exact_text(self.ratio),
            "constraints": self.constraints,
            "slack": float(self.slack),
            "slack_exact": exact_text(self.slack),
            "tightest": self.tightest,
            "arithmetic": self.arithmetic,
            "bits": self.bits,
            "digest": self.digest,
        }


def resolve_ratio(guarantee: Guarantee, ratio: Rational | None) -> Fraction:
    """Return the rational to use for e^epsilon: the caller's, or a lower bound of 128 bits.

    Raises:
        ParameterError: if the caller's ratio is above e^epsilon by more than epsilon's rounding.
    """
    _checks.instance("guarantee", guarantee, Guarantee)
    if ratio is None:
        return exp_lower(guarantee.epsilon)
    exact = rational("ratio", ratio)
    if exact.numerator.bit_length() > 2 * MOST_BITS:
        raise ParameterError(
            f"ratio is {_checks.shown(exact)}; it must have at most {2 * MOST_BITS:,} bits."
        )
    # epsilon = log(ratio) is rounded: allow two floats more.
    epsilon = math.nextafter(math.nextafter(guarantee.epsilon, math.inf), math.inf)
    largest = exp_upper(epsilon) if guarantee.epsilon > 0 else Fraction(1)
    if not 1 <= exact <= largest:
        raise ParameterError(
            f"ratio is {_checks.shown(exact)}; it must be at least 1 and at most "
            f"e^{digits(guarantee.epsilon)}."
        )
    return exact


def decisive_ratio(
    guarantee: Guarantee, ratio: Rational | None, slack_at: Callable[[Fraction], Fraction]
) -> Fraction:
    """Return a lower bound of e^epsilon that is as good as e^epsilon itself: ``ratio`` if given.

    Where the slack is below 0 at the lower bound and not at an upper one, either says too little,
    and both come closer. e^epsilon is transcendental, so that no slack which depends on it is 0.

    Args:
        guarantee: whose epsilon is meant.
        ratio: the caller's e^epsilon.
        slack_at: the smallest right side minus left side for a given e^epsilon, which does not
            fall in it.

    Raises:
        NotPrivateError: if even 32,768 bits do not tell.
    """
    found = resolve_ratio(guarantee, ratio)
    if ratio is not None or slack_at(found) >= 0:
        return found
    for bits in _PRECISIONS:
        found = exp_lower(guarantee.epsilon, bits)
        if slack_at(found) >= 0 or slack_at(exp_upper(guarantee.epsilon, bits)) < 0:
            return found
    raise NotPrivateError(
        f"({guarantee.epsilon:g}, {guarantee.delta:g})-DP is not proved: {_PRECISIONS[-1]} bits of "
        "e^epsilon do not tell."
    )


def shrink_to_budget(worst: Fraction, budget: Fraction) -> Fraction:
    """Return the largest t in [0, 1] with t * worst <= budget, for constraints linear in a point.

    Where every constraint is linear, 0 at the origin and has right side ``budget`` > 0, t times
    the point is feasible.
    """
    worst, budget = rational("worst", worst), rational("budget", budget)
    if budget <= 0:
        raise ParameterError(f"budget is {_checks.shown(budget)}; it must be above 0.")
    return Fraction(1) if worst <= budget else budget / worst


def integer_weights(rows: npt.ArrayLike, bits: int) -> list[list[int]]:
    """Return the weights of a row-stochastic matrix as Python integers, checked.

    Raises:
        ParameterError: if they are not non-negative integers in rows that sum to 2^bits.
    """
    bits = _checks.integer("bits", bits, 1, MOST_BITS)
    listed: Any = rows.tolist() if isinstance(rows, np.ndarray) else rows
    if not isinstance(listed, Sequence) or len(listed) == 0:
        raise ParameterError("weights must be rows of integers, at least one.")
    found: list[list[int]] = []
    for index, given in enumerate(listed):
        row: Any = given.tolist() if isinstance(given, np.ndarray) else given
        if not isinstance(row, Sequence) or not all(map(_is_whole, row)):
            raise ParameterError(f"row {index} of weights must hold integers.")
        weights = [int(weight) for weight in row]
        if any(weight < 0 for weight in weights):
            raise ParameterError(f"row {index} of weights holds a negative number.")
        if sum(weights) != 1 << bits:
            raise ParameterError(
                f"row {index} of weights sums to {_checks.shown(sum(weights))}, not 2^{bits}."
            )
        found.append(weights)
    if len({len(row) for row in found}) != 1:
        raise ParameterError("weights must be rows of the same length.")
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def edge_list(
    pairs: Pairs | None, inputs: int, *, one_way: bool = False
) -> list[tuple[int, int]] | None:
    """Return directed neighbours as pairs of Python integers, none twice; None for all pairs.

    Raises:
        ParameterError: if they are not pairs of different integers in 0..inputs-1, at least one,
            or, unless ``one_way``, if the other direction of one is missing.
    """
    one_way = _checks.flag("one_way", one_way)
    if pairs is None:
        return None
    try:
        array = np.asarray(pairs)
    except ValueError:
        raise ParameterError("pairs must be pairs of integers.") from None
    if array.size == 0:
        raise ParameterError(
            "pairs is empty; give at least one pair of neighbours, or None for all inputs."
        )
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ParameterError("pairs must be pairs of integers.")
    edges = list(dict.fromkeys((int(x), int(other)) for x, other in array))
    for x, other in edges:
        if not (0 <= x < inputs and 0 <= other < inputs):
            raise ParameterError(f"pairs holds ({x}, {other}); inputs are 0..{inputs - 1}.")
        if x == other:
            raise ParameterError(f"pairs holds ({x}, {x}); no input is its own neighbour.")
    missing = one_directional(edges)
    if missing and not one_way:
        x, other = missing[0]
        raise ParameterError(
            f"pairs holds ({x}, {other}) without ({other}, {x}); differential privacy holds both "
            "ways: give both, or ask for less with one_way=True."
        )
    return edges


def one_directional(edges: Iterable[tuple[int, int]] | None) -> list[tuple[int, int]]:
    """Return the edges whose other direction is missing."""
    known = set(edges or ())
    return [(x, other) for x, other in known if (other, x) not in known]


def certify_kernel(
    weights: npt.ArrayLike,
    bits: int,
    guarantee: Guarantee,
    *,
    pairs: Pairs | None = None,
    ratio: Rational | None = None,
    one_way: bool = False,
) -> Certificate:
    """Prove that a kernel given by integer weights is (epsilon, delta)-private along edges.

    For each directed edge (x, x'): w[x, y] <= r w[x', y] for all y if delta = 0, else
    sum_y max(0, w[x, y] - r w[x', y]) <= delta 2^bits, in integers.

    Args:
        weights: integers, shape (inputs, outputs), rows summing to 2^bits.
        bits: see there.
        guarantee: what to prove.
        pairs: directed neighbours (x, x'), both directions; all pairs of inputs if None. An input
            without a neighbour is not protected, nor are two inputs that no path of neighbours
            joins from each other: the claim counts both.
        ratio: e^epsilon as a rational, if it is one.
        one_way: allow pairs whose other direction is missing. What is then proved is not
            differential privacy, and the claim says so.

    Raises:
        NotPrivateError: naming the neighbours and the output, if an inequality fails.
        ParameterError: if the weights are no kernel, or a pair names no input.

    Example:
        >>> import math
        >>> from dpopt.privacy import Guarantee, certify_kernel
        >>> proof = certify_kernel([[3, 1], [1, 3]], 2, Guarantee(math.log(3)), ratio=3)
        >>> proof.constraints, proof.slack
        (4, Fraction(0, 1))
    """
    # A numpy integer would overflow in the shifts that follow.
    bits = _checks.integer("bits", bits, 1, MOST_BITS)
    rows = integer_weights(weights, bits)
    resolve_ratio(guarantee, ratio)
    edges = edge_list(pairs, len(rows), one_way=one_way)
    count = len(rows) * (len(rows) - 1) if edges is None else len(edges)
    worst = _worst_by_column if edges is None else _worst_by_edge
    if guarantee.delta == 0:
        count *= len(rows[0])

    @cache
    def worst_at(r: Fraction) -> tuple[Fraction, Place]:
        if guarantee.delta > 0:
            return _worst_hockey_stick(rows, edges, r, Fraction(guarantee.delta), bits)
        return worst(rows, edges, r, bits)

    r = decisive_ratio(guarantee, ratio, lambda r: worst_at(r)[0])
    slack, (x, other, y) = worst_at(r)
    if slack < 0:
        output = "the event of all outputs that favour it" if y is None else f"output {y}"
        raise NotPrivateError(
            f"inputs {x} and {other} break ({guarantee.epsilon:g}, {guarantee.delta:g})-DP at "
            f"{output}, by {roughly(-slack)}.",
            inputs=(str(x), str(other)),
            output=None if y is None else str(y),
            excess=float(-slack) or math.ulp(0.0),
        )
    tightest = f"inputs {x} and {other}" + ("" if y is None else f", output {y}")
    return Certificate(
        claim=_claim(len(rows), edges),
        guarantee=guarantee,
        ratio=r,
        constraints=count,
        slack=slack,
        tightest=tightest,
        arithmetic="exact integers",
        bits=bits,
    ).about(
        "kernel",
        tuple(map(tuple, rows)),
        guarantee,
        None if edges is None else tuple(edges),
        None if ratio is None else r,
    )


Place = tuple[int, int, int | None]


def _claim(inputs: int, edges: list[tuple[int, int]] | None) -> str:
    """Say which neighbours were proved: a list that names few of them proves little."""
    if inputs == 1:
        return "kernel has one input, which has no neighbour: there was nothing to prove"
    if edges is None:
        return f"kernel is private between all {inputs} inputs"
    one_way, alone = len(one_directional(edges)), inputs - len({x for edge in edges for x in edge})
    parts = _components(inputs, edges) - alone
    said = f"kernel is private along {len(edges)} directed edges of {inputs} inputs"
    if one_way:
        said += f", {one_way} of them in one direction only, which is not differential privacy"
    if alone:
        said += f"; without a neighbour, and not protected: {alone}"
    if parts > 1:
        said += f"; no neighbours join its {parts} parts, and privacy holds within each"
    return said


def _components(inputs: int, edges: list[tuple[int, int]]) -> int:
    """Return the number of connected components."""
    root = list(range(inputs))

    def top(x: int) -> int:
        while root[x] != x:
            root[x] = root[root[x]]
            x = root[x]
        return x

    for x, other in edges:
        root[top(x)] = top(other)
    return sum(root[x] == x for x in range(inputs))


def _worst_by_column(
    rows: list[list[int]], _: list[tuple[int, int]] | None, r: Fraction, bits: int
) -> tuple[Fraction, Place]:
    """Over all pairs of inputs, the extremes of each column decide."""
    found: list[tuple[int, Place]] = []
    for y, column in enumerate(zip(*rows, strict=True)):
        low, high = min(column), max(column)
        place = (column.index(high), column.index(low), y)
        found.append((r.numerator * low - r.denominator * high, place))
    slack, place = min(found)
    return Fraction(slack, r.denominator << bits), place


def _worst_by_edge(
    rows: list[list[int]], edges: list[tuple[int, int]] | None, r: Fraction, bits: int
) -> tuple[Fraction, Place]:
    """Over the edges, r w[x', y] - w[x, y] in units of 2^-bits over r's denominator."""
    if not edges:
        return Fraction(1), (0, 0, None)
    allowed = [[r.numerator * weight for weight in row] for row in rows]
    taken = [[r.denominator * weight for weight in row] for row in rows]
    least = [min(map(sub, allowed[other], taken[x])) for x, other in edges]
    slack = min(least)
    x, other = edges[least.index(slack)]
    output = list(map(sub, allowed[other], taken[x])).index(slack)
    return Fraction(slack, r.denominator << bits), (x, other, output)


def _worst_hockey_stick(
    rows: list[list[int]],
    edges: list[tuple[int, int]] | None,
    r: Fraction,
    delta: Fraction,
    bits: int,
) -> tuple[Fraction, Place]:
    best: tuple[Fraction, Place] | None = None
    for x, other in _all_edges(len(rows)) if edges is None else edges:
        excess = sum(
            max(0, r.denominator * weight - r.numerator * against)
            for weight, against in zip(rows[x], rows[other], strict=True)
        )
        slack = delta - Fraction(excess, r.denominator << bits)
        if best is None or slack < best[0]:
            best = (slack, (x, other, None))
    return best or (delta, (0, 0, None))


def _all_edges(inputs: int) -> Iterator[tuple[int, int]]:
    return ((x, other) for x in range(inputs) for other in range(inputs) if x != other)

"""Check a saved design without the package that made it: one file, Python's standard library.

    python verify.py x.json                  privacy alone
    python verify.py x.json x.proof.json     privacy, and that no mechanism is better
    python verify.py x.finding.json          that a published statement is false

A design is a table of integer weights; a proof is a list of dual multipliers. The kind of a design
names the linear program that it solves,

    minimise  cost . v   over   v >= 0 in distributions (each with a constant sum) and v in boxes
                         with   a . v <= b   for each row,

and one function below for each kind writes that program out, to be read beside the paper. A design
is private if its weights satisfy every privacy row; each is decided in exact arithmetic. A
coefficient that contains e^epsilon is enclosed between two rationals, and the end that makes the
row harder to satisfy is used. Optimality is weak duality: for any multipliers y >= 0 of the rows,
the minimum of (cost + y a) . v over the distributions and boxes, minus y . b, is at most cost . v
at every feasible v. Wrong multipliers make this bound weaker, never false.

Fields of a file other than its setting, weights, value and bound (such as gamma, q or a verdict)
are not checked; the last line printed lists them. One line is printed for each statement shown. The
exit code is 0 if all were shown, 2 if a file has no known format or a setting that dpopt refuses,
and 4 if the design is not private, not optimal, or not shown to be.
"""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # Only the standard library is imported, also where files of a sender lie beside this one.
    del sys.path[0]

import ast
import json
import operator
import re
import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cache, cached_property, partial, reduce
from heapq import heappop, heappush
from itertools import accumulate, combinations, islice, pairwise, permutations, product
from math import comb, factorial, floor, fsum, inf, lcm, log, log1p, log2, pi, prod
from math import exp as e_to
from operator import getitem, mul, sub
from pathlib import Path
from typing import Any, cast

Number = int | Fraction
Between = tuple[Number, Number]  # an enclosure: lower and upper end of a real number
Variable = tuple[Any, ...]  # such as ("K", 0, 3): Pr[output 3 | input 0]
Pmf = tuple[list[Variable], Number]  # variables >= 0, and the constant that they sum to
Name = tuple[Any, ...]  # name of a row, such as ("privacy", 0, 1, 3)
Setting = dict[str, Any]
Pair = tuple[tuple[int, ...], tuple[int, ...]]  # two distributions, as integers over one total

LONGEST = 5000  # characters of one number
MOST = 4_000_000  # variables, rows or steps: more would take many minutes
BITS = 320  # accuracy of e^x, in bits
RATIO_BITS = 256  # bits of numerator and denominator of a rational e^epsilon
RESIDUAL = Fraction(1, 10**6)  # violation of rows other than privacy allowed if none is stated
# Sorted counts, at most: of a plurality's linear program, and of the table of a published rule.
SOLVED, TABLED = 5_000, 20_000
# Corners of private voters that are decided one by one, and voters over two classes, at most.
CORNERS, LEVELS = 8_000_000, 300
CORNER = 128  # fractional bits of the probabilities at a corner

# What Python raises when a part of a file is missing or has the wrong type.
MISSING = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError)
MISSING += (ValueError,)


class Malformed(Exception):
    """The file is not a design, a proof or a finding of a known format."""


class Refused(Exception):
    """A claim of the files is false, or the files do not show it.

    Attributes:
        at: the name of the violated row; None if the reason is not a row.
        missed: by how much that row is violated.
    """

    def __init__(self, why: str, at: Any = None, missed: Number = 0) -> None:
        super().__init__(why)
        self.at, self.missed = at, missed


def broken(why: str, missed: Number, at: Any) -> Refused:
    """Return the refusal of a design that breaks a row by so much."""
    return Refused(f"not private: {why} by {float(missed):.3g}", at, missed)


# --- numbers -----------------------------------------------------------------------------------


def number(value: object) -> Fraction:
    """Read a number exactly: a float as its binary value, a text as an integer or p/q."""
    try:
        if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
            return Fraction(value)
        # Python's own int() also takes digits of other scripts, spaces and underscores.
        allowed = "-?(0x[0-9a-fA-F]+|[0-9]+)(/(0x[0-9a-fA-F]+|[0-9]+))?"
        if isinstance(value, str) and len(value) <= LONGEST and re.fullmatch(allowed, value):
            sign, (numerator, denominator) = value[0], (*value.lstrip("-").split("/"), "1")[:2]
            return (-1 if sign == "-" else 1) * Fraction(int(numerator, 0), int(denominator, 0))
    except (ArithmeticError, ValueError):
        pass
    raise Malformed(f"{str(value)[:40]!r} is no number")


def same_denominator(values: list[Fraction]) -> list[Fraction]:
    """Return the numbers; refuse them if their common denominator is too long for exact sums."""
    common = 1
    for value in values:
        if common % value.denominator:
            common = lcm(common, value.denominator)
            if common.bit_length() > 16 * LONGEST:
                raise Malformed("numbers have too many different denominators")
    return values


def integer(value: object, low: int, high: int) -> int:
    """Read an integer from low to high."""
    if type(value) is int and low <= value <= high:
        return value
    parsed = number(value)
    if parsed.denominator != 1 or not low <= parsed <= high:
        limit = high if high < 1 << 64 else f"2^{high.bit_length() - 1}"
        raise Malformed(f"{str(value)[:40]!r} is no integer from {low} to {limit}")
    return int(parsed)


def integers(values: object, low: int, high: int) -> list[int]:
    """Read a nonempty list of integers from low to high."""
    if not isinstance(values, list) or not values:
        raise Malformed("a list of integers is missing")
    # A list of Python integers within the limits is returned as it is.
    all_int = set(map(type, values)) == {int} and low <= min(values) and max(values) <= high
    return values if all_int else [integer(value, low, high) for value in values]


def vector(values: object, size: int) -> list[Fraction]:
    """Read a list of ``size`` numbers."""
    if not isinstance(values, list) or len(values) != size:
        raise Malformed(f"a list of {size} numbers is missing")
    return same_denominator([number(value) for value in values])


def integer_weights(values: object, size: int) -> tuple[list[int], int]:
    """Read ``size`` weights, all at least 0, not all 0, as integers over a common denominator."""
    # A prior of many floats is read without making a Fraction for each.
    floats = isinstance(values, list) and len(values) == size and {*map(type, values)} == {float}
    listed_: Any = values if floats else vector(values, size)
    weights, common = scaled(listed_)
    if min(weights) < 0 or sum(weights) <= 0:
        raise Malformed("a prior or a distribution has a weight below 0, or no other")
    return weights, common


def shares_of(values: object, size: int) -> list[Fraction]:
    """Read ``size`` weights, all at least 0, not all 0, as shares of their sum."""
    weights, _ = integer_weights(values, size)
    total = sum(weights)
    return [Fraction(weight, total) for weight in weights]


def matrix(values: object, rows: int, columns: int) -> list[list[Fraction]]:
    """Read a table of numbers of shape (rows, columns)."""
    if not isinstance(values, list) or len(values) != rows:
        raise Malformed(f"a table of {rows} rows is missing")
    table = [vector(row, columns) for row in values]
    same_denominator([value for row in table for value in row])
    return table


def require_size(*sizes: int, most: int | None = None) -> None:
    """Refuse a computation whose sizes multiply to more than ``most`` steps, or than `MOST`."""
    total, most = 1, most or MOST
    for size in sizes:
        total *= max(size, 1)
        if total > most:
            raise Malformed(f"a size is beyond {most}")


def exact_cost(bits: int) -> int:
    """Return what a sum of fractions of so many bits costs, as a multiple of that of short ones."""
    return 1 + (bits >> 11) ** 2


def scaled(values: Iterable[Number | float]) -> tuple[list[int], int]:
    """Return numbers as integers over their least common denominator."""
    ratios = [value.as_integer_ratio() for value in values]
    common = lcm(*{below for _, below in ratios})
    return [above * (common // below) for above, below in ratios], common


def summed(values: Iterable[Number]) -> Fraction:
    """Return the sum of fractions, reduced only once."""
    integers_, common = scaled(values)
    return Fraction(sum(integers_), common)


@cache
def exp(x: Number, bits: int = BITS) -> Between:
    """Return rationals low <= e^x <= high: Taylor's series of x / 2^h, squared h times.

    Roundings go outward: the width is about 2^-bits of e^x.
    """
    x = Fraction(x)
    if abs(x) > 4000:
        raise Malformed("an exponent is beyond 4000")
    if x < 0:
        low, high = exp(-x, bits)
        return 1 / Fraction(high), 1 / Fraction(low)
    halvings = int(x).bit_length() + 8
    work = bits + halvings + 16
    t, term, low, count = x / 2**halvings, 1 << work, 0, 0
    while term:
        low, count = low + term, count + 1
        term = term * t.numerator // (t.denominator * count)
    # Each term is floored and short by less than 2 units; the omitted ones sum to less than 1.
    high = low + 2 * count + 2
    for _ in range(halvings):
        low, high = low * low >> work, (high * high >> work) + 1
    return Fraction(low, 1 << work), Fraction(high, 1 << work)


# --- the verifier: privacy in integers ----------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What was proved about a design.

    Attributes:
        rows: number of inequalities decided.
        slack: every row holds with at least this slack, which is at least 0.
        at: name of the row with that slack.
        missed: largest violation among the rows that a design may miss (not privacy).
    """

    rows: int
    slack: Number = 0
    at: Any = None
    missed: Number = 0


Growth = Callable[[int], tuple[int, int, int]]
"""From bits to integers (low, high, unit), low <= unit e^epsilon <= high, that close together."""
Neighbours = list[list[int]]
"""Columns of variables: the variables at the same position of all columns are neighbours."""
Edge = tuple[list[int], list[int], list[int]]
"""Two neighbouring inputs: variables of the first, of the second, and how many outputs share them.
"""
FINEST = 1 << 16  # bits of e^epsilon: a row still undecided with as many is refused


def growth(epsilon: Number, exp_epsilon: Between | None = None) -> Growth:
    """Return a function from bits to an enclosure of e^epsilon, exact if it is a given rational."""

    def enclosed(bits: int) -> tuple[int, int, int]:
        if exp_epsilon is not None and exp_epsilon[0] == exp_epsilon[1]:
            exact = Fraction(exp_epsilon[0])
            return exact.numerator, exact.numerator, exact.denominator
        low, high = exp(epsilon, bits)
        return floor(low * (1 << bits)), -floor(-high * (1 << bits)), 1 << bits

    return enclosed


def least_slack(
    slacks_at: Callable[[int, int], list[int]],
    total: int,
    exp_to: Growth,
    says: Callable[[int], tuple[Any, str]],
) -> tuple[Fraction, Any]:
    """Return the least slack, at least 0, and its row; refuse one below 0.

    The slacks, times total unit, are those for an e^epsilon over unit. It is enclosed in more and
    more bits, until its lower end shows that all rows hold, or its upper end that one does not.
    """
    bits = 64 + total.bit_length()
    while True:
        low, high, unit = exp_to(bits)
        slacks = slacks_at(low, unit)
        slack = Fraction(min(slacks), unit * total)
        at, why = says(slacks.index(min(slacks)))
        if slack >= 0:
            return slack, at
        if min(slacks_at(high, unit)) < 0:
            raise broken(f"{why},", -slack, at)
        bits *= 2
        if bits > FINEST:
            raise Refused(f"too close to be decided: {why}", at)


def decide_ratios(
    weights: list[int], total: int, neighbours: Neighbours, exp_to: Growth, rows: int = 0
) -> Verdict:
    """Decide w_v <= e^epsilon w_u for every two variables u, v at one position of the columns.

    The weights are those of one output, over ``total``; ``exp_to`` is what `growth` returns.
    Reported is the number of these rows if ``rows`` is 0; a refusal names the two variables.
    """
    if len(neighbours) < 2 or not neighbours[0]:
        return Verdict(0, Fraction(1), None)
    values = [[weights[v] for v in column] for column in neighbours]
    # At each position: the smallest and the largest weight of its neighbouring variables.
    small, large = (list(map(end, *values)) for end in (min, max))
    count = rows or len(values) * (len(values) - 1) * len(small)
    # Positions at which all weights are 0 hold trivially; their slack 0 would hide the others'.
    positions = [position for position, weight in enumerate(large) if weight]
    small, large = ([side[position] for position in positions] for side in (small, large))
    if not positions:
        return Verdict(count, Fraction(1), None)

    def says(index: int) -> tuple[tuple[int, int], str]:
        group = [column[positions[index]] for column in neighbours]
        largest = max(group, key=weights.__getitem__)
        others = [v for v in group if v != largest] or [largest]
        at = largest, min(others, key=weights.__getitem__)
        return at, f"the ratio of variables {at} is above e^epsilon"

    def slacks_at(exp_epsilon: int, unit: int) -> list[int]:
        # Hardest pair of a position: its largest weight against its smallest.
        return [exp_epsilon * a - unit * b for a, b in zip(small, large, strict=True)]

    return Verdict(count, *least_slack(slacks_at, total, exp_to, says))


def decide_sets(
    weights: list[int], total: int, edges: list[Edge], exp_to: Growth, delta: Number
) -> Verdict:
    """Decide sum_y max(0, w_xy - e^epsilon w_zy) <= delta for all neighbours x, z: (eps, delta)-DP.

    The sum is the hockey-stick divergence, attained by the worst set of outputs. The slack reported
    is that of the worst set that is not empty and has an output that one of the inputs has. A
    refusal names the index of the edge and its direction; each edge is given once. For the weights
    see `decide_ratios`.
    """
    if not edges:
        return Verdict(0, Fraction(1), None)
    limit = Fraction(delta)
    directed = [(a, b, n) for one, two, n in edges for a, b in ((one, two), (two, one))]

    def slacks_at(exp_epsilon: int, unit: int) -> list[int]:
        scaled, permitted = [unit * w for w in weights], [exp_epsilon * w for w in weights]
        # Delta total unit, less the divergence of each directed edge.
        budget, slacks = limit.numerator * total * unit // limit.denominator, list[int]()
        for first, second, multiplicities in directed:
            excess = [scaled[a] - permitted[b] for a, b in zip(first, second, strict=True)]
            divergence = sum(n * e for n, e in zip(multiplicities, excess, strict=True) if e > 0)
            slacks.append(budget - (divergence or max(filter(None, excess), default=0)))
        return slacks

    def says(index: int) -> tuple[tuple[int, int], str]:
        return divmod(index, 2), f"a set of outputs of edge {index // 2} is above its limit"

    return Verdict(len(directed), *least_slack(slacks_at, total, exp_to, says))


# --- settings: the parameters that a file may have ----------------------------------------------

Requirements = Iterator[tuple[bool, str]]  # conditions on several fields: whether each holds, words
SHOWN = 40  # characters of a value shown in a message
NUMBER, WEIGHT, EPSILON = "number in [-1e308, 1e308]", "number in [0, 1e300]", "number in (0, 600]"

# What `accepts` calls by a name.
TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda v: v is None,
    "text": lambda v: isinstance(v, str),
    "truth value": lambda v: isinstance(v, bool),
    "object": lambda v: isinstance(v, dict),
    "index": lambda v: type(v) is int and 0 <= v <= MOST,
    "name": lambda v: type(v) in (str, int),
    "limit": lambda v: v is None or accepts(NUMBER)(v),
    "block": lambda v: isinstance(v, list) and len(v) == 5,
}


@cache
def accepts(wanted: str) -> Callable[[Any], bool]:
    """Return the test of what a value must be, in words.

    They are alternatives, parted by " | ": a number or an integer in an interval; a list, perhaps
    of so many elements, or a rectangular table of some elements; one of `TYPES`; or a text.
    """
    if " | " in wanted:
        tests = [accepts(option) for option in wanted.split(" | ")]
        return lambda v: any(fits(v) for fits in tests)
    kind, _, elements = wanted.partition(" of ")
    if kind == "table":
        rows = accepts(f"list of list of {elements}")
        return lambda v: rows(v) and len(set(map(len, v))) == 1
    if kind.startswith("list"):
        least, most = map(int, (kind[5:] or f"1..{MOST}").split(".."))
        each = accepts(elements)
        return lambda v: isinstance(v, list) and least <= len(v) <= most and all(map(each, v))
    kind, _, interval = wanted.partition(" in ")
    if not interval:
        return TYPES.get(wanted, lambda v: v == wanted)
    low, high = map(float, interval[1:-1].split(", "))
    ends_ = {end for end, sign in ((low, interval[0]), (high, interval[-1])) if sign in "[]"}
    whole = kind == "integer"

    def within(v: Any) -> bool:
        inside = type(v) in (int, float) and (low < v < high or v in ends_)
        return inside and (not whole or v == int(v))

    return within


def is_pmf(values: list[float], size: int) -> bool:
    """Whether so many numbers are at least 0 and sum to 1 within 1e-9."""
    return len(values) == size and min(values) >= 0 and abs(fsum(values) - 1) <= 1e-9


def floats_of(text: str) -> list[float]:
    """Read comma-separated floats; return [-1] if they are not numbers."""
    try:
        return [float(token) for token in text.split(",")]
    except ValueError:
        return [-1.0]


def voters_prior(text: str) -> tuple[str, list[Fraction]]:
    """Return the name of a prior of the voters' p, and its parameters, exactly as the floats."""
    name, _, text_of_numbers = text.partition(":")
    if re.fullmatch(r"samples:[0-9]+x[0-9]+:[0-9a-f]{16}", text):
        return "samples", []
    numbers = floats_of(text_of_numbers)
    kind, in_unit = name.removeprefix("common-"), all(0 <= p <= 1 for p in numbers)
    rising = all(a < b if i % 2 == 0 else a <= b for i, (a, b) in enumerate(pairwise(numbers)))
    fits = {
        "uniform": in_unit and rising and len(numbers) % 2 == 0,
        "beta": len(numbers) == 2 and all(1e-300 <= a <= 1e4 for a in numbers),
        "point": in_unit and name == kind,
    }
    if not fits.get(kind):
        raise Malformed(f"prior is {text[:SHOWN]!r}, which is none of voters")
    return name, [number(end) for end in numbers]


def releases_fit(s: Setting) -> Requirements:
    """Yield the conditions on what is given of one release, and of several together."""
    several, given = s["releases"] > 1, s["total_epsilon"] is not None
    one = "allowance" if "allowance" in s else "epsilon"
    yield several == given, "total_epsilon is of several releases"
    yield (s["total_delta"] >= 1e-12) if several else not s["total_delta"], "total_delta is wrong"
    yield several == (s[one] is None), f"{one} is of one release"
    zeros = [s.get("delta"), s.get("voter_delta")]
    yield not several or not any(zeros), "delta and voter_delta are of one release"
    yield not several or s.get("rule", "optimal") == "optimal", "rule is of one release"


def majority_fits(s: Setting) -> Requirements:
    """Yield the conditions on voters, target and objective of a majority."""
    yield from releases_fit(s)
    count, m = s["voters"], s["allowance"] or 0
    yield count % 2 == 1, "voters is even; it must be odd, so that no vote is tied"
    yield count <= 501 or not s["voter_delta"], "voters is above 501, with voter_delta"
    yield m <= count, "allowance is above voters"
    yield max(m, 1.0) * s["epsilon"] <= 600, "allowance times epsilon is above 600"
    yield s["voter_delta"] <= s["delta"], "voter_delta is above delta"
    for prior in [s["prior"], *(s["priors"] or [])]:
        voters_prior(prior)
    c = s["coefficients"]
    yield c is None or len(c) == (count + 1) // 2, "coefficients are not (voters + 1) / 2"


def votes_fit(s: Setting) -> Requirements:
    """Yield the conditions on target, rule and prior of a plurality of voters or ballots."""
    yield from releases_fit(s)
    m = s.get("allowance")
    if m is not None:
        yield m <= s["voters"], "allowance is above voters"
        fits = 1e-7 <= m * s["epsilon"] <= 600
        yield fits, "allowance times epsilon is not in [1e-7, 600]"
    stable = s["rule"] in ("ladder", "permute-and-flip", "exponential")
    yield stable or not s.get("voter_delta"), "voter_delta is of rules alone"
    yield is_prior_of_votes(s["prior"], s["classes"]), "prior is no distribution"


def is_prior_of_votes(prior: str, classes: int) -> bool:
    """Whether a prior of the votes is uniform, dirichlet:A or point:P,...,P."""
    name, _, text = prior.partition(":")
    p = floats_of(text)
    fixed = name == "point" and max(p) <= 1 and is_pmf(p, classes)
    dirichlet = name == "dirichlet" and len(p) == 1 and 1e-4 <= p[0] <= 1e6
    return prior == "uniform" or fixed or dirichlet


def prior_fits(s: Setting) -> Requirements:
    """Yield the conditions on a public prior, and on the distributions of users."""
    q, names, weights = s["public"], s["labels"], s.get("weights", [1])
    yield is_pmf(q, len(q)), "public has a sum that is not 1"
    same = names is None or len(names) == len(set(names)) == len(q)
    yield same, "labels are not as many different names as masses"
    users = s.get("users", [s.get("distribution", q)])
    pmfs = all(is_pmf(pmf, len(q)) for pmf in users)
    yield pmfs, "distribution or users hold what is no distribution of these categories"
    fits = len(weights) == len(users) and max(weights) <= 1e300 / len(users)
    yield fits and sum(weights) > 0, "weights are not one for each user, or all 0"


def kernel_fits(s: Setting) -> Requirements:
    """Yield the conditions on the parameters of a kernel together."""
    yield from releases_fit(s)
    loss, shape, graph, inputs, outputs, symmetry = (
        s[name] for name in ("loss", "shape", "graph", "inputs", "outputs", "symmetry")
    )
    named, prior, fixed = isinstance(loss, str), s["prior"], s["invariant"]
    size = [inputs, outputs if shape is None else inputs] if named else [len(loss), len(loss[0])]
    yield [inputs, outputs] == size, "inputs and outputs are not those of loss and shape"
    by_shape = graph in ("grid", "hamming")
    needs_shape = by_shape or loss == "hamming" or symmetry == "hamming"
    yield not needs_shape or shape is not None, "graph, loss or symmetry needs a shape"
    yield shape is None or by_shape or named, "shape is of graphs and losses over words alone"
    yield shape is None or prod(shape) == inputs, "shape makes another number of words than inputs"
    for x, z in graph if isinstance(graph, list) else ():
        yield x != z and max(x, z) < inputs, "graph holds an edge of no two inputs"
    yield prior is None or s["objective"] == "mean", "prior is of the objective mean"
    keeps = fixed is None or (inputs == outputs and is_pmf(fixed, inputs))
    yield keeps, "invariant is no distribution of the inputs"
    used = {"invariance": fixed is not None, "delta": s["delta"], "sums": True, "privacy": True}
    used["losses"] = s["objective"] == "worst-case"
    yield from rows_fit(s, {name for name, is_used in used.items() if is_used})
    fits_shape = symmetry in ("none", "reflection") or not isinstance(symmetry, str)
    yield fits_shape or inputs == outputs, "symmetry is of as many outputs as inputs"
    others = ("constraints", "invariant", "input_names", "output_names")
    alone = symmetry == "none" or not any(s[name] for name in others)
    yield alone, "symmetry is given and so are constraints, an invariant or names"
    for names, count in (("input_names", inputs), ("output_names", outputs)):
        if s[names] is not None:
            labels = {*map(str, s[names])} - {"", "None", "inf", "-inf"}
            fits = len(s[names]) == len(labels) == count
            yield fits, f"{names} are not as many different names as the table needs"


def rows_fit(s: Setting, used_names: set[str]) -> Requirements:
    """Yield the conditions on the user's own linear constraints."""
    are_limits = accepts("list of limit")
    for name, entries, coefficients, lower, upper in s["constraints"] or []:
        is_free = isinstance(name, str) and name not in {"", *used_names}
        yield is_free, "constraints hold a name that is taken, or none"
        used_names = {*used_names, name}
        are_places = accepts(f"list 0..{MOST} of list 3..3 of index")(entries)
        yield are_places, "constraints hold places that are none"
        are_numbers = accepts(f"list 0..{MOST} of {NUMBER}")(coefficients)
        yield are_numbers, "constraints hold coefficients that are no numbers"
        yield are_limits(lower) and are_limits(upper), "constraints hold limits that are no numbers"
        yield len(lower) == len(upper), "constraints hold other numbers of limits"
        rising = all(None in pair or pair[0] <= pair[1] for pair in zip(lower, upper, strict=True))
        yield rising, "constraints hold a lower limit above the upper one"


def workload_fits(s: Setting) -> Requirements:
    """Yield the conditions on the queries and the prior of a workload."""
    queries, prior = s["queries"], s["prior"]
    if isinstance(queries, list):
        yield any(len(set(row)) > 1 for row in queries), "queries tell no categories apart"
        most = max(abs(a) for row in queries for a in row)
        yield 1e-100 <= most <= 1e100, "queries have no entry from 1e-100 to 1e100"
    yield prior is None or s["objective"] == "mean", "prior is of the objective mean"
    even = prior is None or max(prior) <= 1e6 * min(prior)
    yield even, "prior has a category that is more than 1e6 times as likely as another"


def noise_fits(s: Setting) -> Requirements:
    """Yield the conditions on loss, delta and sensitivity of additive noise."""
    sensitivity, delta, loss = s["sensitivity"], s["delta"], s["loss"]
    rises = isinstance(loss, str) or all(a <= b for a, b in pairwise(loss))
    yield rises and loss[0] != loss[-1], "loss falls, or is constant"
    yield delta == 0 or delta >= 1e-15, "delta is 0 or at least 1e-15"
    yield delta == 0 or sensitivity <= 100, "sensitivity is at most 100 where delta is above 0"
    yield sensitivity <= 10_000 * s["epsilon"], "sensitivity is at most 10,000 epsilon"
    yield s["releases"] == 1, "the noise of several releases is accounted in floats, not here"


FLOOR = "epsilon is not above log(1 + 1/n)"
CONDITIONS: dict[str, Callable[[Setting], Requirements]] = {
    "kernel": kernel_fits,
    "majority": majority_fits,
    "mollifier": prior_fits,
    "multiclass": votes_fit,
    "noise": noise_fits,
    "plurality": votes_fit,
    "population": prior_fits,
    "public-prior": prior_fits,
    "smooth-floor": lambda s: iter([(s["epsilon"] > log1p(1 / s["records"]), FLOOR)]),
    "workload": workload_fits,
}
RELEASES = {
    "releases": "integer in [1, 1000]",
    "total_epsilon": "null | number in (0, 28]",
    "total_delta": "number in [0, 0.5]",
}
RECORDS = {
    "records": "integer in [1, 1e15]",
    "categories": "integer in [2, 1e15]",
    "epsilon": EPSILON,
}
PRIOR = {
    "public": "list of number in (0, 2]",
    "epsilon": "number in [1e-9, 600]",
    "labels": f"null | list 0..{MOST} of name",
}
# What each parameter of a kind may be, as `accepts` reads it: as in dpopt's own classes.
SETTINGS: dict[str, dict[str, str]] = {
    "kernel": {
        **RELEASES,
        "epsilon": "null | number in [0, 600]",
        "delta": "number in [0, 1)",
        "graph": "complete | path | cycle | grid | hamming | list of list 2..2 of index",
        "shape": "null | list of integer in [1, 2147483647]",
        "constraints": f"null | list 0..{MOST} of block",
        "loss": "absolute | squared | zero-one | hamming | table of number in [-1e100, 1e100]",
        "prior": f"null | list of {WEIGHT}",
        "objective": "mean | worst-case",
        "sense": "minimise | maximise",
        "invariant": f"null | list of {WEIGHT}",
        "inputs": "integer in [2, 4194304]",
        "outputs": "integer in [1, 4194304]",
        "symmetry": "none | reflection | cyclic | dihedral | hamming | symbols"
        " | list of list 2..2 of list of index",
        "input_names": f"null | list 0..{MOST} of name",
        "output_names": f"null | list 0..{MOST} of name",
    },
    "majority": {
        **RELEASES,
        "voters": "integer in [1, 4001]",
        "epsilon": EPSILON,
        "allowance": "null | number in (0, 4001]",
        "voter_delta": "number in [0, 1)",
        "delta": "number in [0, 1)",
        "objective": "mean | surrogate | worst-case | least-regret",
        "prior": "text",
        "priors": f"null | list 2..{MOST} of text",
        "coefficients": f"null | list of {NUMBER}",
        "contrary": "truth value",
    },
    "mollifier": {**PRIOR, "distribution": f"list of {WEIGHT}"},
    "multiclass": {
        **RELEASES,
        "voters": "integer in [1, 10000]",
        "classes": "integer in [2, 100]",
        "epsilon": EPSILON,
        "allowance": "null | number in (0, 10000]",
        "voter_delta": "number in [0, 1)",
        "delta": "number in [0, 1)",
        "prior": "text",
        "rule": "optimal | ladder | permute-and-flip | exponential | subsampling",
    },
    "noise": {
        "sensitivity": "integer in [1, 1000]",
        "epsilon": "number in [0.001, 10]",
        "delta": "number in [0, 0.5]",
        "loss": "absolute | squared | list 2..100000 of number in [0, 1e100]",
        "releases": "integer in [1, 1000]",
    },
    "best-sampler": {
        **RECORDS,
        "categories": "integer in [2, 100]",
        "objective": "worst-case | mean",
        "prior": "number in [1e-3, 1e3]",
    },
    "plurality": {
        **RELEASES,
        "records": "integer in [1, 1e15]",
        "classes": "integer in [2, 1e6]",
        "epsilon": "null | number in (0, 50]",
        "objective": "mean | worst-case",
        "loss": "regret | error",
        "rule": "optimal | ladder | permute-and-flip | exponential",
        "prior": "text",
    },
    "population": {
        **PRIOR,
        "epsilon": "number in (0, 16]",
        "users": f"table of {WEIGHT}",
        "weights": f"list of {WEIGHT}",
        "slack": "number in [0, 1]",
        "objective": "mean | diagonal",
    },
    "public-prior": {**PRIOR, "objective": "minimax | leximin"},
    "reveal-or-obscure": {
        **RECORDS,
        "rule": "exact | roo | journal | journal-repaired | conference",
    },
    "smooth-floor": RECORDS,
    "table": {
        "epsilon": "number in [0, 600]",
        "delta": "number in [0, 1)",
        "inputs": "object",
        "losses": "object",
    },
    "workload": {
        "queries": f"histogram | prefix | range | marginals | table of {NUMBER}",
        "categories": "integer in [2, 128]",
        "epsilon": "number in [0.01, 12]",
        "prior": "null | list of number in (0, 1e300]",
        "objective": "mean | worst-case",
    },
}


def allowed(kind: str, setting: Any) -> None:
    """Refuse a setting that dpopt itself would refuse: of wrong fields, or of wrong values."""
    if kind not in SETTINGS:
        raise Malformed(f"its kind is {str(kind)[:SHOWN]!r}, which is not checked here")
    if not isinstance(setting, dict):
        raise Malformed("the setting holds no parameters by name")
    # Not by its own items, which would count as read.
    fields, values = SETTINGS[kind], dict(dict.items(setting))
    for name in {**fields, **values}:
        if name not in fields or name not in values:
            how = "unknown" if name in values else "missing"
            raise Malformed(f"the parameter {name[:SHOWN]} of the setting is {how}")
        if not accepts(fields[name])(values[name]):
            raise Malformed(f"{name} is {str(values[name])[:SHOWN]}; it must be {fields[name]}")
    for holds, requirement in CONDITIONS[kind](values) if kind in CONDITIONS else ():
        if not holds:
            raise Malformed(f"{requirement}, in a setting of {kind}")


# --- linear programs ---------------------------------------------------------------------------


@dataclass
class Row:
    """A row a . v <= b or a . v = b; a coefficient is a number or an enclosure of one.

    Attributes:
        terms: a, by variable; if the variable is at least 0, it may be an enclosure.
        limit: b.
        equality: whether the row is a . v = b.
        promised: if False, a design may violate it, and the verdict says by how much.
    """

    terms: dict[Variable, Number | Between]
    limit: Number | Between = 0
    equality: bool = False
    promised: bool = True


def no_row(name: Name) -> Row:
    """Refuse the name of a row that the program does not have."""
    raise Malformed(f"there is no row {str(name)[:80]}")


@dataclass
class Program:
    """The linear program of a setting, and the solution that a design is.

    Attributes:
        pmfs: distributions: lists of variables >= 0, each with its sum.
        boxes: lower and upper limit of each other variable.
        cost: the objective, by variable.
        many: names of rows that are written one by one.
        made: writes such a row.
        maximise: whether a larger value is better.
        written: such rows that are written already.
        rows: the other rows.
        point: the design's value of each variable; variables that it lacks are 0.
        private: decides all but the other rows on integers; if None, they are decided one by one.
        pairs: distributions of the output for neighbours, in both orders, and their total, if
            listed.
        mean: the value, if the point does not have all of it.
        note: printed after the value.
        neighbours: the inputs between which privacy was decided, in words.
        among: printed after "no other" if the bound holds for some solutions only.
    """

    pmfs: list[Pmf]
    boxes: dict[Variable, Between]
    cost: Mapping[Variable, Number]
    many: Callable[[], Iterable[Name]] = list
    made: Callable[[Name], Row] = field(default_factory=lambda: no_row)
    maximise: bool = False
    written: dict[Name, Row] = field(default_factory=dict)
    rows: dict[Name, Row] = field(default_factory=dict)
    point: dict[Variable, Number] = field(default_factory=dict)
    private: Callable[[], Verdict] | None = None
    pairs: Callable[[], tuple[Iterable[Pair], int]] | None = None
    mean: Callable[[], Number] | None = None
    note: str = ""
    neighbours: str = ""
    among: str = ""

    def names(self) -> Iterator[Name]:
        """Yield the names of all rows."""
        yield from self.many()
        yield from self.written
        yield from self.rows

    def row(self, name: Name) -> Row:
        """Return the row of a name."""
        return self.rows.get(name) or self.written.get(name) or self.made(name)

    @property
    def value(self) -> Number:
        """The objective value of the design."""
        if self.mean:
            return self.mean()
        return summed(cost * self.point.get(v, 0) for v, cost in self.cost.items())

    @property
    def span(self) -> Number:
        """How far apart two values can be in the distributions and boxes, without the rows."""
        span = sum((b - a) * abs(self.cost.get(v, 0)) for v, (a, b) in self.boxes.items())
        for variables, mass in self.pmfs:
            costs = [self.cost.get(v, 0) for v in variables]
            span += mass * (max(costs) - min(costs))
        return span


def added(one: Between, other: Between) -> Between:
    """Return an enclosure of the sum of two numbers."""
    return one[0] + other[0], one[1] + other[1]


def ends(coefficient: Number | Between) -> Between:
    """Return the lower and the upper end of a coefficient."""
    return coefficient if isinstance(coefficient, tuple) else (coefficient, coefficient)


def bound(program: Program, multipliers: Iterable[tuple[Name, Number]]) -> Number:
    """Return a bound on the value of every feasible solution, by weak duality.

    With d = cost + y a, it is the sum over distributions of mass times min d, plus the sum over
    boxes of min d v, minus y . b. Enclosed coefficients enter with the end that lowers the bound.
    A program that maximises is negated. A negative multiplier of an inequality is refused.
    """
    sign = -1 if program.maximise else 1
    reduced: dict[Variable, Number] = defaultdict(int)
    widths: dict[Variable, Number] = defaultdict(int)
    for variable, cost in program.cost.items():
        reduced[variable] = sign * cost
    total: list[Number] = []
    size = 0
    for name, y in multipliers:
        row = program.row(name)
        size += 1 + len(row.terms) * exact_cost(y.denominator.bit_length())
        require_size(size)
        if y < 0 and not row.equality:
            raise Refused(f"the multiplier of row {name} is negative")
        lower = 0 if y >= 0 else 1
        for variable, coefficient in row.terms.items():
            reduced[variable] += y * ends(coefficient)[lower]
            if isinstance(coefficient, tuple):
                widths[variable] += abs(y) * (coefficient[1] - coefficient[0])
        total.append(-y * ends(row.limit)[1 - lower])
    for variables, mass in program.pmfs:
        total.append(mass * min(reduced[variable] for variable in variables))
    for variable, box in program.boxes.items():
        # d is enclosed between two sums; a negative v is lowest with the upper one.
        sums = reduced[variable], reduced[variable] + widths[variable]
        total.append(min(a * end for a, end in product(sums, box)))
    return sign * summed(total)


def multipliers_of(lines: list[Any]) -> list[tuple[Name, Fraction]]:
    """Read the multipliers of a file; refuse a row that stands twice, which might be very long."""
    require_size(len(lines), 40)
    multipliers = [(tuple(map(frozen, name)), number(y)) for *name, y in lines]
    if len(dict(multipliers)) < len(multipliers):
        raise Malformed("a row stands twice among the multipliers")
    return multipliers


def decide(program: Program) -> Verdict:
    """Decide whether a design satisfies its distributions, boxes and promised rows.

    The verdict has the largest violation of rows not promised; of others, one is refused.
    """
    point, missed = program.point, Fraction(0)
    for variables, mass in program.pmfs:
        masses = [point.get(variable, 0) for variable in variables]
        if min(masses) < 0 or sum(masses) != mass:
            raise Refused(f"{variables[0]} and the others of its distribution are no distribution")
    for variable, (low, high) in program.boxes.items():
        if not low <= point.get(variable, 0) <= high:
            raise Refused(f"{variable} is outside its limits")
    verdict = program.private() if program.private else Verdict(0, Fraction(1))
    count, slack, at = verdict.rows, verdict.slack, verdict.at
    for name in program.rows if program.private else program.names():
        row, count = program.row(name), count + 1
        terms = [[a * point.get(v, 0) for a in ends(both)] for v, both in row.terms.items()]
        sums = sum(map(min, terms)), sum(map(max, terms))
        # Harder end of each enclosure: the largest left side against the smallest limit.
        over = sums[1] - ends(row.limit)[0]
        miss = max(over, ends(row.limit)[1] - sums[0]) if row.equality else over
        if row.promised and miss > 0:
            raise broken(f"row {name} is broken", miss, name)
        if row.promised and -miss < slack and not program.private:
            slack, at = -miss, name
        missed = max(missed, miss)
    return Verdict(count, slack, at, missed)


# --- several releases of outputs with few values -------------------------------------------------


Point = tuple[int, int]
"""(Q(S), P(S)) of an event S, as integers over a common total."""


def curve_of(pair: tuple[Sequence[int], Sequence[int]]) -> tuple[Point, ...]:
    """Return (Q(S), P(S)) of the events S of the first outputs by descending P / Q, if P > 0."""
    # Different ratios of integers up to 2^bits differ by at least 2^(-2 bits): exact sorting keys.
    bits = max((weight.bit_length() for side in pair for weight in side), default=0)
    order = [
        ((p << 2 * bits) // q if q else 1 << 4 * bits + 1, p, q)
        for p, q in zip(*pair, strict=True)
        if p
    ]
    q_sum = p_sum = 0
    curve = list[Point]()
    for _, p, q in sorted(order, reverse=True):
        q_sum, p_sum = q_sum + q, p_sum + p
        curve.append((q_sum, p_sum))
    return tuple(curve)


def under(curve: tuple[Point, ...], other: tuple[Point, ...]) -> bool:
    """Whether no event of a curve is above another curve, which is level beyond its last event."""
    ends_ = [q for q, _ in other]
    for q, p in curve:
        at = bisect_right(ends_, q) - 1
        (q0, p0), (q1, p1) = other[at] if at >= 0 else (0, 0), other[min(at + 1, len(other) - 1)]
        if (p - p0) * (q1 - q0) > (p1 - p0) * (q - q0) or (q1 == q0 and p > p0):
            return False
    return True


def hull(points: Iterable[Point]) -> list[Point]:
    """Return the vertices of the upper concave hull of points, from left to right."""
    vertices = list[Point]()
    for x, y in sorted(set(points)):
        if vertices and vertices[-1][0] == x:
            vertices.pop()
        while len(vertices) > 1:
            (x0, y0), (x1, y1) = vertices[-2:]
            if (y1 - y0) * (x - x0) > (y - y0) * (x1 - x0):
                break
            vertices.pop()
        vertices.append((x, y))
    return vertices


def deciding(pairs: Iterable[Pair], total: int, most: int = MOST) -> list[Pair]:
    """Return pairs of neighbours that decide what several releases spend, in ``most`` steps.

    A pair whose curve is nowhere above another's has at every alpha no larger sum of
    max(P - alpha Q, 0), and so a smaller step. With two outputs a step is a convex function of
    (P_1, Q_1), and vertices of the hull of all pairs, in both orders, are enough.
    """
    curves, steps = dict[tuple[Point, ...], Pair](), 0
    for pair in pairs:
        steps += 4 * len(pair[0])
        require_size(steps, most=most)
        curves[curve_of(pair)] = pair
    if all(len(one) == 2 for one, _ in curves.values()):
        firsts = {curve[0]: pair for curve, pair in curves.items()}
        corners = hull([(0, 0), (total, total), *firsts])
        # Where both worlds are the same, no corner is a pair's.
        return [firsts[c] for c in corners if c in firsts] or list(curves.values())[:1]
    # The largest P(S) - Q(S) first: such pairs dominate most others.
    ordered, steps = sorted(curves, key=lambda curve: -max(p - q for q, p in curve)), 0
    kept = list[tuple[Point, ...]]()
    for curve in ordered:
        above = next((at for at, other in enumerate(kept, 1) if under(curve, other)), 0)
        steps += (above or len(kept)) * len(curve)
        require_size(steps, most=most)
        kept += [] if above else [curve]
    return [curves[curve] for curve in kept]


def decide_releases(
    pairs: Iterable[Pair], total: int, releases: int, epsilon: Number, delta: Number
) -> Verdict:
    """Decide that k releases together are (epsilon, delta)-DP, also for inputs chosen in between.

    With w_0(a, b) = max(a - e^epsilon b, 0) and w_j(a, b) the largest sum of w_(j-1)(a P_y, b Q_y)
    over pairs (P, Q) of neighbours, the least delta is w_k(1, 1). W_j(t) = w_j(t, 1) is convex, 0
    at 0, and of slope at most 1. So it is nowhere above chords of upper values at breakpoints, a
    line to 0 on their left and one of slope 1 on their right; nor above what one step makes of
    such a function at the breakpoints. All is in integers that are rounded up.

    The pairs, over ``total``, are in both orders; P may be rounded up, and Q down. (epsilon, delta)
    is of all releases together; see `upper_delta` for the grid of breakpoints.
    """
    listed_ = deciding(pairs, total)
    # Steps for each breakpoint; those of the coarsest grid, over 8.
    steps, least = releases * sum(len(one) for one, _ in listed_), Fraction(1)
    require_size(steps, 500 // 8)
    # On either side of 1: one number after the other is tried.
    for count in (500, 1000, 2000, 4000, 8000):
        if steps * count > 8 * MOST:
            break
        least = min(least, upper_delta(listed_, total, releases, epsilon, count))
        if least <= delta:
            return Verdict(releases * len(listed_), Fraction(delta) - least)
        # The excess of chords falls with the square of the breakpoints: more would not be enough.
        if least > delta * (1 + Fraction(8000, count)):
            break
    missed = least - delta
    why = f"{releases} releases are not shown to be private: their delta is at most"
    raise Refused(f"{why} {float(least):.6g}, and may be {float(delta):.6g}", None, missed)


def upper_delta(
    pairs: list[Pair], total: int, releases: int, epsilon: Number, count: int
) -> Fraction:
    """Bound the delta of k releases, with ``count`` breakpoints on either side of 1.

    For the others see `decide_releases`.
    """
    # Breakpoints, and the values there, have as many fractional bits as corners.
    unit = 1 << CORNER
    losses = [
        abs(log(p) - log(q))
        for one, other in pairs
        for p, q in zip(one, other, strict=True)
        if p and q
    ]
    largest = max(losses, default=0.0)
    # e^epsilon, rounded down, and what a breakpoint is multiplied with: it is one of them.
    start, target = floor(exp(epsilon)[0] * unit), float(epsilon)
    reach = min(
        max(target + 1, min(releases * largest + 0.1, target + 6 * largest * releases**0.5 + 2)),
        40.0,
    )
    # Where steps are all alike, kinks are at multiples of epsilon / k; of a small one, at 1.
    whole_steps = target / releases if target * count >= reach * releases else target
    width = whole_steps / max(1, round(whole_steps * count / reach))
    width = width if 16 * width * count > reach else reach / count
    size = int(reach / width) + 1
    grid = {int(e_to(i * width) * unit) for i in range(-size, size + 1)}
    points = sorted(grid - {0} | {start, unit})
    values = [max(t - start, 0) for t in points]
    for left in range(releases - 1, -1, -1):
        # Later steps look so far from 1 only.
        far = left * largest + 2 * width
        low, high = (int(e_to(max(-300, min(300.0, sign * far))) * unit) for sign in (-1, 1))
        first, last = bisect_right(points, low - 1), bisect_right(points, high)
        kept = points[first:last] if left else [unit]
        new = [max(stepped(pair, total, t, points, values) for pair in pairs) for t in kept]
        points, values = kept, new
    return Fraction(values[0], unit)


def stepped(pair: Pair, total: int, t: int, points: list[int], values: list[int]) -> int:
    """Return the sum of w(t P_y, Q_y) of `decide_releases`, rounded up, in units of 2^-CORNER.

    So are t, and of w(., 1) rising breakpoints and upper values there; see `upper_delta`.
    """
    whole_sum = 0
    for p, q in zip(*pair, strict=True):
        if p and not q:
            whole_sum += t * p
        elif p:
            at = bisect_right(points, t * p // q) - 1
            if at < 0:
                whole_sum -= -values[0] * t * p // points[0]
            elif at == len(points) - 1:
                whole_sum += q * values[at] + t * p - q * points[at]
            else:
                rise, run = values[at + 1] - values[at], points[at + 1] - points[at]
                whole_sum += q * values[at] - (-rise * (t * p - q * points[at]) // run)
    return -(-whole_sum // total)


# --- kernels: K_xy = Pr[output y | input x] ----------------------------------------------------

LOSSES: dict[str, Callable[[Any, Any], int]] = {
    "absolute": lambda x, y: sum(abs(a - b) for a, b in zip(x, y, strict=True)),
    "squared": lambda x, y: sum((a - b) ** 2 for a, b in zip(x, y, strict=True)),
    "zero-one": lambda x, y: int(x != y),
    "hamming": lambda x, y: sum(a != b for a, b in zip(x, y, strict=True)),
}


def words(shape: object, size: int) -> list[tuple[int, ...]]:
    """Return the words that 0, 1, ... number: the last symbol changes first."""
    sizes = [integer(n, 1, MOST) for n in shape] if isinstance(shape, list) else [size]
    require_size(*sizes, len(sizes), len(sizes))
    return list(product(*map(range, sizes)))


def neighbours(setting: Setting, inputs: int) -> list[tuple[int, int]] | None:
    """Return the directed edges of a neighbour graph; None if all inputs are neighbours."""
    graph = setting["graph"]
    if graph == "complete":
        return None
    edges = graph if isinstance(graph, list) else [(inputs - 1, 0)] if graph == "cycle" else []
    if isinstance(graph, str):
        line = graph in ("path", "cycle")
        index_of = {w: x for x, w in enumerate(words(None if line else setting["shape"], inputs))}
        categories = range(1 + max(max(word) for word in index_of))
        require_size(len(index_of), len(categories) if graph == "hamming" else 1)
        # Each edge once: one symbol raised by 1 (grid, path, cycle) or to any larger one (hamming).
        for word, x in index_of.items():
            for i, category in enumerate(word):
                others = categories[category + 1 :] if graph == "hamming" else (category + 1,)
                changed = (index_of.get((*word[:i], other, *word[i + 1 :])) for other in others)
                edges += [(x, z) for z in changed if z is not None]
    # Both directions, no loops; a graph with all pairs is the complete one.
    directed = sorted({pair for x, z in edges for pair in ((x, z), (z, x)) if x != z})
    return directed if len(directed) < inputs * (inputs - 1) else None


def add_privacy(
    program: Program, pairs: Any, shape: tuple[int, int], exp_epsilon: Between, delta: Fraction
) -> None:
    """Add the rows of (epsilon, delta)-DP, and their slack variables, to a program over K.

    The pairs are those of `neighbours`, and the shape is (inputs, outputs).
    "privacy", x, z, y: K_xy - e^epsilon K_zy <= s_xzy, and "delta", x, z: sum_y s_xzy <= delta.
    For all pairs (None) and delta = 0, with u_y = min_x K_xy, there are fewer rows:
    "above", x, y: K_xy <= e^epsilon u_y, and "below", x, y: u_y <= K_xy.
    """
    (inputs, outputs), (low, high), point = shape, exp_epsilon, program.point
    program.neighbours = among(pairs, inputs)
    require_size(inputs * (inputs if delta else 1) if pairs is None else len(pairs), outputs)
    columns = range(outputs)
    if pairs is None and delta == 0:
        program.boxes |= {("u", y): (0, 1) for y in columns}
        if point:
            point |= {("u", y): min(point["K", x, y] for x in range(inputs)) for y in columns}
        # 2 inputs outputs rows instead of inputs (inputs - 1) outputs.
        names: list[Name] = [*product(("above", "below"), range(inputs), columns)]
    else:
        pairs = list(permutations(range(inputs), 2)) if pairs is None else pairs
        names = [("privacy", *pair, y) for pair in pairs for y in columns]
        for x, z in pairs if delta else ():
            names.append(("delta", x, z))
            program.boxes |= {("s", x, z, y): (0, 1) for y in columns}
            for y in columns if point else ():
                point["s", x, z, y] = max(0, point["K", x, y] - low * point["K", z, y])
    name_set = set(names)

    def row(name: Name) -> Row:
        if name not in name_set:
            no_row(name)
        if name[0] == "above":
            return Row({("K", *name[1:]): 1, ("u", name[2]): (-high, -low)})
        if name[0] == "below":
            return Row({("u", name[2]): 1, ("K", *name[1:]): -1})
        if name[0] == "delta":
            return Row({("s", *name[1:], y): 1 for y in columns}, delta)
        _, x, z, y = name
        slack: dict[Variable, Any] = {("s", x, z, y): -1} if delta else {}
        return Row({("K", x, y): 1, ("K", z, y): (-high, -low), **slack})

    program.many, program.made = lambda: names, row


def add_losses(
    program: Program, losses: Mapping[Name, Any], shares: Iterable[Number] | None, box: Between
) -> None:
    """Set the objective: the mean of sums by their shares; without shares the largest sum, t.

    Row by row a sum is at most t, or at least t where the program maximises; t is in the box.
    """
    if shares is not None:
        parts = zip(shares, losses.values(), strict=True)
        program.cost = {v: share * a for share, each in parts for v, a in each.items()}
        return
    sign, point = (-1 if program.maximise else 1), program.point
    for name, each in losses.items():
        program.rows[name] = Row({v: sign * a for v, a in each.items()} | {("t",): -sign})
    program.cost, program.boxes["t",] = {("t",): 1}, box
    if point:
        sums = [sum(a * point[v] for v, a in each.items()) for each in losses.values()]
        point["t",] = min(sums) if program.maximise else max(sums)


def add_shortfall(
    program: Program, name: Name, short: Variable, output: dict[Variable, Any], share: Number
) -> None:
    """Add the row output + short >= share, for distances such as those of `optimal_sampler`.

    The output is a sum of terms by variable, and short a variable in [0, 1]; see `Row`.
    """
    terms = {v: -a for v, a in output.items()}
    program.rows[name] = Row({**terms, short: -1}, -share)
    program.boxes[short] = (0, 1)
    if program.point:
        chance = sum(a * program.point[v] for v, a in output.items())
        program.point[short] = max(0, share - chance)


@dataclass
class WeightTable:
    """The integer weights of a kernel, for its inputs up to symmetry.

    Attributes:
        weights: of one output of each variable; the variables of an input are consecutive.
        starts: index of the first variable of each input, and the number of variables.
        total: sum of weights times counts of each input.
    """

    weights: list[int]
    starts: list[int]
    total: int


def table_of(stored: Any, sizes: list[int], counts: list[int]) -> WeightTable:
    """Read the weights of a file: "total", and under "weights" a list for each input.

    An input has so many variables (``sizes``), each shared by so many outputs (``counts``).
    """
    total, rows = integer(stored["total"], 1, 1 << 4 * LONGEST), stored["weights"]
    if not isinstance(rows, list) or len(rows) != len(sizes):
        raise Malformed(f"a table of {len(sizes)} rows is missing")
    weights, starts = list[int](), list(accumulate(sizes, initial=0))
    for row, (start, end) in zip(rows, pairwise(starts), strict=True):
        if not isinstance(row, list) or len(row) != end - start:
            raise Malformed(f"a row of {end - start} weights is missing")
        weights += [integer(weight, 0, total) for weight in row]
        if sum(map(mul, weights[start:end], counts[start:end])) != total:
            raise Refused(f"the weights from {start} to {end - 1} are no distribution")
    return WeightTable(weights, starts, total)


def kernel(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of the kernel of least mean loss, or of least worst-case loss.

    The mean is sum_x prior_x loss_x . K_x, the worst case max_x loss_x . K_x; K_xy = Pr[y | x].
    """
    inputs, outputs = integer(setting["inputs"], 2, MOST), integer(setting["outputs"], 1, MOST)
    require_size(inputs, outputs, 4)
    loss: Any = setting["loss"]
    if isinstance(loss, str):
        sides = [words(setting["shape"], size) for size in (inputs, outputs)]
        loss = [[LOSSES[loss](a, b) for b in sides[1]] for a in sides[0]]
    else:
        loss = matrix(loss, inputs, outputs)
    pmfs: list[Pmf] = [([("K", x, y) for y in range(outputs)], 1) for x in range(inputs)]
    program = Program(pmfs, {}, {}, maximise=setting["sense"] == "maximise")
    program.rows = own_rows(setting, inputs, outputs)
    variable = orbits(setting, inputs, outputs)
    table = table_of(stored, *sizes_of(variable, outputs)) if stored else None
    if table:
        masses = [Fraction(weight, table.total) for weight in table.weights]
        program.point = {v: masses[variable[v[1]][v[2]]] for row, _ in pmfs for v in row}
    losses = {("worst", x): dict(zip(row, loss[x], strict=True)) for x, (row, _) in enumerate(pmfs)}
    prior = shares_of(setting["prior"] or [1] * inputs, inputs)
    shares = None if setting["objective"] == "worst-case" else prior
    add_losses(program, losses, shares, (min(map(min, loss)), max(map(max, loss))))
    epsilon, delta = (number(setting[name]) for name in ("epsilon", "delta"))
    pairs = neighbours(setting, inputs)
    add_privacy(program, pairs, (inputs, outputs), exp_epsilon or exp(epsilon), delta)
    if table:
        exp_to = growth(epsilon, exp_epsilon)
        program.private = partial(decide_table, table, variable, pairs, exp_to, delta)
        program.pairs = partial(pairs_of_rows, table, variable, pairs)
    if setting["symmetry"] != "none":
        symmetric(setting, loss, pairs, variable)
    return program


def sizes_of(variable: list[list[int]], outputs: int) -> tuple[list[int], list[int]]:
    """Return the number of variables of an input of each orbit, and how many outputs share each."""
    sizes, counts = list[int](), list[int]()
    for row in variable:
        # Inputs of an orbit have the same variables, and each orbit's numbers continue the last's.
        if min(row) >= len(counts):
            ids = sorted(set(row))
            sizes.append(len(ids))
            counts += [row.count(v) for v in ids] if len(ids) < outputs else [1] * outputs
    return sizes, counts


def decide_table(
    table: WeightTable,
    variable: list[list[int]],
    pairs: list[tuple[int, int]] | None,
    exp_to: Growth,
    delta: Number,
) -> Verdict:
    """Decide that a table is (epsilon, delta)-DP between those of `neighbours`.

    ``variable`` has the index of the variable of (x, y), shape (inputs, outputs).
    """
    if delta:
        # Edges whose outputs have the same pairs of variables are one.
        edges = {
            tuple(sorted(zip(variable[x], variable[z], strict=True)))
            for x, z in (combinations(range(len(variable)), 2) if pairs is None else pairs)
            if x < z
        }
        edge_list = [([a for a, _ in e], [b for _, b in e], [1] * len(e)) for e in sorted(edges)]
        return decide_sets(table.weights, table.total, edge_list, exp_to, delta)
    if pairs is None:
        count = len(variable) * (len(variable) - 1) * len(variable[0])
        return decide_ratios(table.weights, table.total, variable, exp_to, count)
    joined = [
        (a, b) for x, z in pairs if x < z for a, b in zip(variable[x], variable[z], strict=True)
    ]
    # A pair of variables stands for both directions, wherever it occurs.
    unordered = sorted({(min(pair), max(pair)) for pair in joined if pair[0] != pair[1]})
    columns = [*map(list, zip(*unordered, strict=True))]
    return decide_ratios(table.weights, table.total, columns, exp_to, 2 * len(joined))


def pairs_of_rows(
    table: WeightTable, variable: list[list[int]], pairs: list[tuple[int, int]] | None
) -> tuple[Iterable[Pair], int]:
    """Return the distributions of neighbouring inputs, and their total; see `decide_table`."""
    rows = [tuple(map(table.weights.__getitem__, row)) for row in variable]
    ends_ = permutations(range(len(rows)), 2) if pairs is None else pairs
    count = len(rows) * (len(rows) - 1) if pairs is None else len(pairs)
    require_size(count, len(rows[0]), 4)
    return ((rows[x], rows[z]) for x, z in ends_), table.total


def among(pairs: list[tuple[int, int]] | None, inputs: int) -> str:
    """Say in words between which inputs a kernel is private."""
    if pairs is None:
        return f"between all {inputs} inputs"
    isolated = inputs - len({x for x, _ in pairs})
    note = f"; {isolated} inputs have no neighbour" if isolated else ""
    return f"along {len(pairs)} directed edges of {inputs} inputs{note}"


def orbits(setting: Setting, inputs: int, outputs: int) -> list[list[int]]:
    """Return the orbit of each pair (x, y) under the symmetries, numbered as in a file.

    A table with one weight for each orbit defines a whole kernel: no symmetry has to be proved.
    """
    symmetry, orbit = setting["symmetry"], dict[tuple[int, int], int]()
    if symmetry == "none":
        return [[*range(x * outputs, (x + 1) * outputs)] for x in range(inputs)]
    if symmetry in ("hamming", "symbols"):
        # An orbit: for each alphabet size, at how many positions of that size two words differ.
        shape = setting["shape"] if symmetry == "hamming" else [inputs]
        blocks = [[i for i, q in enumerate(shape) if q == size] for size in sorted(set(shape))]
        all_words = words(shape, inputs)
        distances = [
            [tuple(sum(v[i] != w[i] for i in block) for block in blocks) for w in all_words]
            for v in all_words
        ]
        order = {d: number for number, d in enumerate(sorted(set().union(*distances)))}
        return [[order[d] for d in row] for row in distances]
    # Breadth-first: the first pair that was not reached starts the next orbit.
    count, generators = 0, symmetry_generators(setting, inputs, outputs)
    for pair in product(range(inputs), range(outputs)):
        reached = [] if pair in orbit else [pair]
        for x, y in reached:
            if (x, y) not in orbit:
                orbit[x, y] = count
                reached += [(sigma[x], tau[y]) for sigma, tau in generators]
        count += bool(reached)
    return [[orbit[x, y] for y in range(outputs)] for x in range(inputs)]


def symmetry_generators(setting: Setting, inputs: int, outputs: int) -> list[list[list[int]]]:
    """Return generators (sigma, tau) of the symmetries: permutations of inputs and of outputs."""
    symmetry, sizes = setting["symmetry"], (inputs, outputs)
    moves: dict[str, list[Callable[[int, int], int]]] = {
        "reflection": [lambda x, n: n - 1 - x],
        "cyclic": [lambda x, n: (x + 1) % n],
        "dihedral": [lambda x, n: (x + 1) % n, lambda x, n: -x % n],
    }
    if isinstance(symmetry, str):
        return [[[move(x, n) for x in range(n)] for n in sizes] for move in moves[symmetry]]
    require_size(len(symmetry), inputs, outputs)
    for pair in symmetry:
        if any(sorted(side) != [*range(n)] for n, side in zip(sizes, pair, strict=True)):
            raise Malformed("symmetry holds what is no permutation")
    return symmetry


def symmetric(
    setting: Setting, loss: Any, pairs: list[tuple[int, int]] | None, orbit: list[list[int]]
) -> None:
    """Refuse symmetries that change the loss, the neighbours or the prior."""
    orbit_loss, edges, inputs = dict[int, Number](), set(pairs or ()), setting["inputs"]
    for ids, losses in zip(orbit, loss, strict=True):
        if any(orbit_loss.setdefault(v, a) != a for v, a in zip(ids, losses, strict=True)):
            raise Malformed("symmetry changes the loss")
    prior = setting["prior"] or [1] * inputs
    if setting["symmetry"] in ("hamming", "symbols"):
        # Each word is mapped to each other one, and each pair of an orbit to the others.
        linked = {orbit[x][z] for x, z in edges}
        whole = {(x, z) for x in range(inputs) for z in range(inputs) if orbit[x][z] in linked}
        kept = whole == edges and len(set(prior)) == 1
    else:
        generators = symmetry_generators(setting, inputs, setting["outputs"])
        require_size(len(generators), inputs + len(edges))
        kept = all(
            {(sigma[x], sigma[z]) for x, z in edges} == edges
            and all(prior[sigma[x]] == share for x, share in enumerate(prior))
            for sigma, _ in generators
        )
    if not kept:
        raise Malformed("symmetry changes the prior or the neighbours")


def own_rows(setting: Setting, inputs: int, outputs: int) -> dict[Name, Row]:
    """Return the setting's rows other than privacy, which a kernel satisfies up to a residual.

    "invariance", 0, y: sum_x q_x K_xy = q_y. "rows", name, i, sign: sum_xy c_ixy K_xy is at most
    its upper limit (sign 1) or at least its lower one (-1), for row i of that name.
    """
    q, rows = vector(setting["invariant"] or [0] * inputs, inputs), dict[Name, Row]()
    for y, share in enumerate(q if any(q) else ()):
        terms: dict[Variable, Any] = {("K", x, y): a for x, a in enumerate(q) if a}
        rows["invariance", 0, y] = Row(terms, share, equality=True, promised=False)
    for name, entries, coefficients, *limits in setting["constraints"] or []:
        sums: list[dict[Variable, Any]] = [defaultdict(Fraction) for _ in limits[0]]
        # Entry (i, x, y): coefficient of K_xy in row i; repeated entries add up.
        for (i, x, y), a in zip(entries, vector(coefficients, len(entries)), strict=True):
            variable = "K", integer(x, 0, inputs - 1), integer(y, 0, outputs - 1)
            sums[integer(i, 0, len(sums) - 1)][variable] += a
        for (sign, side), (i, sum_) in product(zip((-1, 1), limits, strict=True), enumerate(sums)):
            if side[i] is not None:
                terms = {variable: sign * a for variable, a in sum_.items()}
                rows["rows", name, i, sign] = Row(terms, sign * number(side[i]), promised=False)
    return rows


# --- majorities --------------------------------------------------------------------------------

AXES = (("bc", "cb"), ("D0", "0D"), ("1m", "m1"))  # pairs of opposite corners (p, p') of a voter
Placed = tuple[tuple[str, int], ...]  # number of voters at each corner
Sides = tuple[list[Any], list[Any]] | tuple[()]  # E h(ones + L) under both neighbours, by ones
Step = Callable[[list[Any], str], list[Any]]
Close = tuple[float, Placed, list[int]]  # lower bound of the slack, corner, numbers of voters at 1
FIXED = 256  # fractional bits of the pmf of the number of ones


class Voters:
    """K voters, each (epsilon, Delta)-DP, and the target (m epsilon, delta) of their majority.

    (p, p') are a voter's chances to say 1 under two neighbours. The private pairs are a polygon, of
    which only corners matter (docs/theorems/corners.md): c = 1 - b, where b is
    (e^epsilon + Delta) / (e^epsilon + 1); D = Delta and 0; 1 and m = 1 - Delta; (0, 0) and (1, 1).
    R = e^(m epsilon).
    """

    def __init__(self, setting: Setting, exp_epsilon: Between | None) -> None:
        self.count = integer(setting["voters"], 1, 10_000)
        self.epsilon, self.shift = number(setting["epsilon"]), number(setting["voter_delta"])
        self.target = number(setting["allowance"]) * self.epsilon
        self.delta = number(setting["delta"])
        self.rational = number(exp_epsilon[0]) if exp_epsilon else None
        self.tied = 0  # steps that ties have taken
        self.fine(BITS)
        self.axes = AXES[: 3 if self.shift else 1]
        self.bits = self.bits if self.rational is None else 0

    def fine(self, bits: int) -> None:
        """Set the accuracy of all enclosures, in bits."""
        # A binomial coefficient has at most as many bits as there are voters.
        self.precision, self.bits = bits, bits + BITS + self.count
        self.growth = self.exp(self.target)
        self.mixtures: dict[tuple[Any, int], list[Between]] = {}
        self.scale = 1  # what a voter's chances are multiplied with

    def exp(self, x: Fraction) -> Between:
        """Return an enclosure of e^x; exact if e^epsilon is rational."""
        if self.rational is None:
            return exp(x, self.precision)
        return ends(self.rational ** integer(x / self.epsilon, 0, 9999))

    def times(self, one: Between, other: Between) -> Between:
        """Return an enclosure of the product of numbers >= 0, in multiples of 2^-bits or exact."""
        low, high = (cast(int, a) * cast(int, b) for a, b in zip(one, other, strict=True))
        return (low >> self.bits, -(-high >> self.bits)) if self.bits else (low, high)

    def chance(self, corner: str) -> Between:
        """Return an enclosure of the chance that a voter at a corner says 1."""
        low, high = self.exp(self.epsilon)
        d, zero = self.shift, Fraction(0)
        # One character for a chance to say 1; two name a corner.
        by_corner = {"b": ((low + d) / (low + 1), (high + d) / (high + 1)), "0": (zero, zero)}
        by_corner |= {"c": ((1 - d) / (high + 1), (1 - d) / (low + 1)), "D": (d, d)}
        return (by_corner | {"m": (1 - d, 1 - d), "1": (zero + 1, zero + 1)})[corner]

    def enclosed(self, low: Number, high: Number) -> Between:
        """Round an enclosure outward to multiples of 2^-bits; exact numbers stay."""
        unit = 1 << self.bits
        return (low * unit // 1, -(-high * unit // 1)) if self.bits else (low, high)

    def steps_of(self, placed: Placed, total: int = 1) -> int:
        """Return the steps of both `mixed` at a corner, times an integer as long as ``total``."""
        sizes = list(accumulate((n for _, n in placed), initial=1))
        steps = sum(size * (n + 1) for size, (_, n) in zip(sizes, placed, strict=False))
        return (16 + 2 * steps) * (1 + max(self.bits, total.bit_length()) // 2048)

    def mixed(self, placed: Placed, side: int) -> list[Between]:
        """Return an enclosure of the pmf of the number of ones among voters at corners."""
        if (placed, side) in self.mixtures:
            return self.mixtures[placed, side]
        one = self.enclosed(1, 1)
        pmf = [one]
        for kind, count in placed:
            low, high = (end * self.scale for end in self.chance(kind[side]))
            both = self.enclosed(low, high), self.enclosed(self.scale - high, self.scale - low)
            # p^j and (1 - p)^j for j = 0..count; then convolve with Binomial(count, p).
            powers = [list(accumulate([p] * count, self.times, initial=one)) for p in both]
            wider: list[Between] = [(0, 0)] * (len(pmf) + count)
            binomial = 1
            for j in range(count + 1):
                a, b = self.times(powers[0][j], powers[1][count - j])
                for votes, before in enumerate(pmf):
                    chance = self.times(before, (binomial * a, binomial * b))
                    wider[votes + j] = added(wider[votes + j], chance)
                binomial = binomial * (count - j) // (j + 1)
            pmf = wider
        self.mixtures[placed, side] = pmf
        return pmf

    def row(self, name: Name) -> Row:
        """Return the row of a corner: E h(L) - R E' h(L) <= R - 1 + 2 delta.

        ("corner", ones, placed): so many voters at (1, 1), ``placed`` at corners, the rest at
        (0, 0). h(l) is gamma(l) for l > K/2, and -gamma(K - l) below.
        """
        _, ones, placed = name
        placed = tuple((kind, integer(n, 0, 4001)) for kind, n in placed)
        valid = all(any(kind in pair for pair in AXES) for kind, _ in placed)
        used = sum(n for _, n in placed)
        if not valid or integer(ones, 0, 4001) + used > self.count:
            raise Malformed(f"{str(name)[:80]} is no corner")
        require_size(*(n + 1 for _, n in placed), 4)
        # Rows with the same voters share a mixture, which takes much memory.
        if len(self.mixtures) * self.count > 100_000:
            self.mixtures.clear()
        pmfs, nothing, unit = [self.mixed(placed, side) for side in (0, 1)], (0, 0), 1 << self.bits
        small, large = self.growth
        growth, terms = self.enclosed(small, large), dict[Variable, Any]()
        span = range(used + 1)
        for at in range((self.count + 1) // 2, self.count + 1):
            # gamma(at) is h(at) and -h(K - at): ones among the voters at corners in either case.
            votes = [at - ones, self.count - at - ones]
            if not any(n in span for n in votes):
                continue
            (a, b), (c, d) = [[pmf[n] if n in span else nothing for n in votes] for pmf in pmfs]
            # a - b - R (c - d), rounded outward.
            c, d = self.times(growth, c), self.times(growth, d)
            low, high = a[0] - b[1] - c[1] + d[0], a[1] - b[0] - c[0] + d[1]
            terms["gamma", at] = Fraction(low, unit), Fraction(high, unit)
        return Row(terms, (small - 1 + 2 * self.delta, large - 1 + 2 * self.delta))

    def require_rows(self, lines: list[Any]) -> None:
        """Refuse the multipliers of a proof if their rows are too many, before the first one."""
        corners = [line[2] for line in lines if line[0] == "corner"]
        placed = [tuple((kind, integer(n, 0, 4001)) for kind, n in corner) for corner in corners]
        require_size(sum(self.steps_of(each) + 4 * self.count for each in placed))
        errors = sum(1 + len(str(line[1])) // 64 for line in lines if line[0] == "error")
        require_size(errors, self.count, 1 + self.count // 25)

    def names(self) -> Iterator[Name]:
        """Yield the rows of the corner theorem: on each axis, voters at one of its two corners."""
        # One number less for each voter that is placed: as many voters at 1 are possible.
        for placed, ones, _ in self.walk([0] * (self.count + 1), lambda rest, _: rest[1:]):
            yield from (("corner", at, placed) for at in range(len(ones)))

    def walk(
        self, start: list[Any], step: Step, at: int = 0, placed: Placed = (), sides: Sides = ()
    ) -> Iterator[tuple[Placed, list[Any], list[Any]]]:
        """Yield each corner with the means over its placed voters under both neighbours, by ones.

        ``start`` has them without voters, and ``step`` adds one voter at a named chance to say 1,
        as `screened` has them; ``sides`` are those of the voters placed on axes before ``at``.
        Opposite corners exchange the two means, and are computed once.
        """
        up, down = sides or (start, start)
        if at == len(self.axes):
            yield placed, up, down
            if placed:
                yield tuple((kind[::-1], n) for kind, n in placed), down, up
            return
        yield from self.walk(start, step, at + 1, placed, (up, down))
        for kind in self.axes[at][: 2 if placed else 1]:
            new_up, new_down = up, down
            for n in range(1, len(up)):
                new_up, new_down = step(new_up, kind[0]), step(new_down, kind[1])
                yield from self.walk(start, step, at + 1, (*placed, (kind, n)), (new_up, new_down))

    def private(self, chances: list[int], total: int) -> Verdict:
        """Decide P <= R P' + delta at all corners, P and P' the chances of the output 1.

        ``chances`` has that chance by the number of ones 0..K, over ``total``. A refusal names the
        row that is violated most, up to rounding.
        """
        return self.settled(chances, total, *self.screened(chances, total))

    def screened(self, chances: list[int], total: int) -> tuple[Verdict, list[Close]]:
        """Decide the corners in floats; return the verdict of those decided, and the undecided.

        One more voter, who says 1 with chance p, makes p P(o + 1) + (1 - p) P(o) of P(o), o the
        number of ones. All numbers are >= 0, so a step has three roundings, each of relative size
        at most 2^-53, or of size 2^-1000 on underflow.
        """
        p_of = {kind[0]: self.chance(kind[0]) for pair in self.axes for kind in pair}
        both = {name: (float(low), float(1 - high)) for name, (low, high) in p_of.items()}

        def step(values: list[float], name: str) -> list[float]:
            p, q = both[name]
            return [p * b + q * a for a, b in pairwise(values)]

        growth, delta = float(min(self.growth[0], 1 << 900)), float(self.delta)
        count, least, at = 0, growth + 1.0, (0, ())
        close = list[Close]()
        # Prefix counts of nonzero chances: where all in range are 0, P = 0 and the row holds.
        possible = list(accumulate(map(bool, chances), initial=0))
        for placed, up, down in self.walk([a / total for a in chances], step):
            used, count = self.count + 1 - len(up), count + len(up)
            require_size(count // 8)
            less = 1 - (8 * used + 16) / (1 << 53)
            # What underflow may have added to q is taken off before it grows.
            slacks = [
                (growth * max(0.0, q - 1e-290) + delta) * less - p
                for p, q in zip(up, down, strict=True)
            ]
            if min(slacks) < 1e-290:
                open_ = [o for o, slack in enumerate(slacks) if slack < 1e-290]
                open_ = [o for o in open_ if possible[o + used + 1] > possible[o]]
                open_.sort(key=slacks.__getitem__)
                close += [(slacks[o], placed, open_) for o in open_[:1]]
                for ones in open_:
                    slacks[ones] = least
            if min(slacks) < least:
                least = min(slacks)
                at = slacks.index(least), placed
        # Allow for the rounding of the last subtraction.
        slack_bound = Fraction(least) * (1 - Fraction(1, 1 << 50))
        return Verdict(count, slack_bound, ("corner", *at)), sorted(close)

    def settled(
        self, chances: list[int], total: int, others: Verdict, close: list[Close]
    ) -> Verdict:
        """Decide the corners that floats leave undecided; return the verdict of all.

        First in integers, rounded against privacy. If these cannot decide, by the exact formula: a
        sum of a e^x with distinct rational x is 0 only if every a is (Lindemann-Weierstrass). The
        first row that is violated is refused; ``close`` has the worst first.
        """
        finer, verdict = copy(self), others
        finer.fine(4 * BITS)
        work = sum(
            finer.steps_of(placed, total) + len(open_) * sum(n for _, n in placed)
            for _, placed, open_ in close
        )
        for _, placed, open_ in close:
            for ones in open_:
                low, high = finer.slack(chances, total, ones, placed)
                at = "corner", ones, placed
                if low < 0 and (high < 0 or finer.broken(chances, total, ones, placed)):
                    raise broken(f"{ones} voters at 1 and {placed}, the others at 0,", -low, at)
                if max(low, 0) < verdict.slack:
                    verdict = replace(verdict, slack=max(low, Fraction(0)), at=at)
            finer.mixtures.clear()
            # Sizes are limited after the first corner: if it is violated, no more work is done.
            require_size(work, 2)
        return verdict

    def slack(self, chances: list[int], total: int, ones: int, placed: Placed) -> Between:
        """Return an enclosure of R P' + delta - P at a corner."""
        sides = list[list[int]]()
        for side in (0, 1):
            both = zip(*self.mixed(placed, side), strict=True)
            sides.append([sum(map(mul, cast(Any, pmf), chances[ones:])) for pmf in both])
        (p_low, p), (q, q_high) = sides
        unit = total << self.bits
        low, high = self.growth
        return low * Fraction(q, unit) + self.delta - Fraction(p, unit), (
            high * Fraction(q_high, unit) + self.delta - Fraction(p_low, unit)
        )

    def broken(self, chances: list[int], total: int, ones: int, placed: Placed) -> bool:
        """Whether R P' + delta - P is below 0 at a corner, or too close to 0 to decide.

        With n voters placed it is a polynomial in e^epsilon and R over (1 + e^epsilon)^n, R either
        another power of e^epsilon or to be set beyond all of its powers. The polynomial is 0 if it
        is 0 at 2^N for e^epsilon, where 2^N is above the sum of its integer coefficients.
        """
        n, power = sum(n for _, n in placed), self.target / self.epsilon
        power = int(power) if power.denominator == 1 else n + 1
        # Each voter doubles coefficients at most; the denominators of Delta and delta are cleared.
        each = 1 + self.shift.denominator.bit_length()
        bits = n * each + total.bit_length() + self.delta.denominator.bit_length() + 4
        self.tied += n * (n if self.shift else 1) * (1 + (bits * max(n, power) >> 11))
        require_size(4 * self.tied)
        formal = copy(self)
        formal.rational, formal.bits, formal.mixtures = Fraction(1 << bits), 0, {}
        # Both sides in integers.
        formal.scale = (1 + (1 << bits)) * self.shift.denominator
        p, q = (
            sum(
                low * a
                for (low, _), a in zip(formal.mixed(placed, side), chances[ones:], strict=False)
            )
            for side in (0, 1)
        )
        differs = p != q * (1 << bits * power) + self.delta * total * formal.scale**n
        return differs and self.slack(chances, total, ones, placed)[0] < 0


# The l1 distance allowed between a proof's coefficients of the objective and those computed here.
PROOF_ERROR = Fraction(1, 10**9)


def vote_weights(setting: Setting, proof: dict[str, Any]) -> tuple[list[Fraction] | None, str]:
    """Return the coefficients of the objective, for votes l = (K + 1) / 2..K, and a note.

    c_l = 1/2 E[sign(p - 1/2) (a_l - a_(K-l))], a the pmf of L. If they are irrational, the proof's
    rationals are used, once they agree with those computed here; None if none are computed.
    """
    k, text = integer(setting["voters"], 1, 4001), str(setting["prior"])
    half, pmf = (k + 1) // 2, [Fraction(0)] * (k + 1)
    if setting["coefficients"] is not None:
        return vector(setting["coefficients"], half), ""
    name, points = voters_prior(text)
    if setting["objective"] == "surrogate":
        pmf = [Fraction(comb(k, at) * 3**at, 4**k) for at in range(k + 1)]
    elif name == "common-uniform":
        bits = k * max(p.denominator.bit_length() for p in points)
        require_size(len(points), k, exact_cost(bits))
        pieces = list(zip(points[::2], points[1::2], strict=True))
        for (a, b), (end, sign) in product(pieces, ((0, -1), (1, 1))):
            low, high = (a, min(b, Fraction(1, 2))) if end == 0 else (max(a, Fraction(1, 2)), b)
            # Pr[Bin(k + 1, p) = j] at both ends of the piece, for j = 0..k + 1.
            tails = [
                [comb(k + 1, j) * p**j * (1 - p) ** (k + 1 - j) for j in range(k + 2)]
                for p in (low, high)
            ]
            integral = Fraction(0)
            for at in range(k, -1, -1) if low < high else ():
                # (k + 1) times the integral of Pr[Bin(k, p) = l] is Pr[Bin(k + 1, p) > l].
                integral += tails[1][at + 1] - tails[0][at + 1]
                pmf[at] += sign * integral / (k + 1) / sum(b - a for a, b in pieces)
    elif name not in SIGNED_PMFS:
        return None, f": not decided, no coefficients are computed here for {text[:SHOWN]}"
    elif "coefficients" not in proof:
        return None, ": to be looked at with the proof, which has its coefficients"
    else:
        stated, pmf = vector(proof["coefficients"], half), SIGNED_PMFS[name](k, points)
        missed = sum(abs(2 * c - pmf[at] + pmf[k - at]) / 2 for at, c in enumerate(stated, half))
        if missed > PROOF_ERROR:
            raise Refused(
                f"the proof's coefficients miss those of {text[:SHOWN]} by {float(missed):.3g}"
            )
        note = f"within {float(PROOF_ERROR)} of those of {text[:SHOWN]}"
        return stated, f" for the proof's coefficients, {note}"
    return [(pmf[at] - pmf[k - at]) / 2 for at in range(half, k + 1)], ""


def each_voter(k: int, points: list[Fraction]) -> list[Fraction]:
    """Return the p of each of k voters: one for all, or one for each."""
    p = points * (k if len(points) == 1 else 1)
    if len(p) != k:
        raise Malformed("the prior is of another number of voters")
    return p


def pmf_of_ones(p: list[Fraction]) -> list[int]:
    """Return Pr[L = l] for fixed p_i in units of 2^-FIXED, each too low by at most K units."""
    pmf = [1 << FIXED]
    for n, d in (each.as_integer_ratio() for each in p):
        # One more voter with p = n / d: pmf[l] = p pmf[l - 1] + (1 - p) pmf[l], floored.
        pmf = [(n * a + (d - n) * b) // d for a, b in zip([0, *pmf], [*pmf, 0], strict=True)]
    return pmf


def pmf_at_points(k: int, points: list[Fraction]) -> list[Fraction]:
    """Return sign(sum p_i - K/2) Pr[L = l] for fixed p_i, too small in size by <= K 2^-FIXED."""
    require_size(k, k)
    p = each_voter(k, points)
    sign = 1 if 2 * sum(p) >= k else -1
    return [Fraction(sign * a, 1 << FIXED) for a in pmf_of_ones(p)]


def pmf_of_beta(k: int, points: list[Fraction]) -> list[Fraction]:
    """Return E[sign(p - 1/2) Pr[L = l | p]] for a common p from Beta(a, b), up to 2^-200.

    The integral of p^(a-1) (1-p)^(b-1) below 1/2 is 2^-(a+b) S(a, b), with the positive series
    S(a, b) = 1/a sum_n (a+b)(a+b+1)..(a+b+n-1) / ((a+1)..(a+n) 2^n); above, S(b, a).
    """
    a, b = points
    require_size(k, k + int(a + b) + 2 * FIXED)

    def series(a: Fraction, b: Fraction) -> Fraction:
        common = lcm(a.denominator, b.denominator)
        numerator, denominator = int((a + b) * common), int((a + 1) * common)
        term, total = 1 << 2 * FIXED, 0
        while term:
            # Once a term is at most 3/4 of the one before, the tail is below 3 terms.
            total, term = total + term, term * numerator // (2 * denominator)
            numerator, denominator = numerator + common, denominator + common
        return Fraction(total, 1 << 2 * FIXED) / a

    # The factor 2^-(a+b) cancels; k more trials give 2^-k.
    normaliser = (series(a, b) + series(b, a)) * 2**k
    both = [(series(a + at, b + k - at), series(b + k - at, a + at)) for at in range(k + 1)]
    return [comb(k, at) * (above - below) / normaliser for at, (below, above) in enumerate(both)]


def pmf_of_uniform(k: int, points: list[Fraction]) -> list[Fraction]:
    """Return E[sign(sum p_i - K/2) Pr[L = l | p]] for independent uniform p_i, up to 1e-12.

    For |x| < W, sign(x) is 4/pi times the sum of sin(pi j x / W) / j over odd j: the result is
    C(K, l) 4/pi times the sum of Im(A^l B^(K-l)) / j, with A = E[p e^(it(p - 1/2))], B that with
    1 - p, and t = pi j / W. Both are at most v / t, v the variation of p and 1 - p times the
    density; the omitted terms sum to less than 1e-12. In fixed point, units of 2^-bits, a step is
    wrong by a few units, times at most K^2 / j where it is divided by t^2.
    """
    total, half = sum(points[1::2]) - sum(points[::2]), Fraction(1, 2)
    if points[0] >= half or points[-1] <= half:
        squares = [p * p for p in points]
        return pmf_at_points(k, [(sum(squares[1::2]) - sum(squares[::2])) / (2 * Fraction(total))])
    if k == 1:
        # One voter: E|p - 1/2|, since the integral of |x| is x |x| / 2.
        ends_ = [(p - half) * abs(p - half) / 2 for p in points]
        mean = Fraction(sum(ends_[1::2]) - sum(ends_[::2])) / total
        return [-mean, mean]
    bits, width = FIXED + k, k * max(half - points[0], points[-1] - half)
    unit = 1 << bits
    reach = float(len(points) / total * width) / pi
    last = int(reach * e_to((log(comb(k, k // 2)) + log(4e12 / pi / k)) / k)) + 3
    require_size(last, k + 4 * len(points), 4)
    # A float below pi: a larger W is one, too, and 4 / pi is right up to 1e-16.
    angle = int(Fraction(pi) * unit)

    def times_(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
        return (x[0] * y[0] - x[1] * y[1]) >> bits, (x[0] * y[1] + x[1] * y[0]) >> bits

    turns = [turned(int(angle * (p - half) / width), unit) for p in points]
    twice, pmf = [times_(turn, turn) for turn in turns], [0] * (k + 1)
    signs = [Fraction((-1) ** (at + 1)) for at in range(len(points))]
    moments = [*map(mul, signs, points)]
    for j in range(1, last + 1, 2):
        t = int(j * angle / width)
        # With e = e^(it(p - 1/2)): sums of e and of p e at upper ends less those at lower ones.
        (x, y), (u, v) = (
            [int(sum(map(mul, weights, parts)) * unit / t) for parts in zip(*turns, strict=True)]
            for weights in (signs, moments)
        )
        # Antiderivatives are e / (it) and p e / (it) + e / t^2.
        one = int((v + x * unit // t) / total), int((y * unit // t - u) / total)
        zero = int(y / total) - one[0], int(-x / total) - one[1]
        powers = [list(accumulate([z] * k, times_, initial=(unit, 0))) for z in (one, zero)]
        for at, ((a, b), (c, d)) in enumerate(zip(powers[0], powers[1][::-1], strict=True)):
            pmf[at] += ((a * d + b * c) >> bits) // j
        turns = [times_(turn, two) for turn, two in zip(turns, twice, strict=True)]
    return [Fraction(4 * comb(k, at) * a, angle) for at, a in enumerate(pmf)]


def turned(angle: int, unit: int) -> tuple[int, int]:
    """Return cosine and sine, times ``unit``, of an angle of size at most 2, by their series."""
    sums, term, n = [0, 0], unit, 0
    while term:
        sums[n % 2] += -term if n % 4 > 1 else term
        n += 1
        term = int(Fraction(term * angle, unit * n))
    return sums[0], sums[1]


SIGNED_PMFS: dict[str, Callable[[int, list[Fraction]], list[Fraction]]] = {
    "common-beta": pmf_of_beta,
    "point": pmf_at_points,
    "uniform": pmf_of_uniform,
}


def split(coefficients: list[int], at: Fraction) -> tuple[list[int], list[int]]:
    """Return floored Bernstein coefficients on [0, at] and on [at, 1] (de Casteljau)."""
    first, second, n, d = [coefficients[0]], [coefficients[-1]], at.numerator, at.denominator
    while len(coefficients) > 1:
        coefficients = [((d - n) * a + n * b) // d for a, b in pairwise(coefficients)]
        first, second = [*first, coefficients[0]], [*second, coefficients[-1]]
    return first, second[::-1]


class LargestError:
    """The largest |error(p)| over the p of a prior; error(p) = E f(L), f(l) = -f(K - l).

    f(l) = (1 - gamma(l)) / 2 for l > K/2. The error is affine in each p_i: of independent p_i only
    the ends of the interval matter. Rows error <= t and -error <= t: ("error", j, sign), j voters
    at the largest p and the others at the smallest, or ("error", p, sign) for a common p.
    """

    def __init__(self, setting: Setting) -> None:
        self.count, prior = integer(setting["voters"], 1, 4001), str(setting["prior"])
        name, points = voters_prior(prior)
        if name == "samples":
            raise Malformed(f"{prior[:40]} does not say which p it allows")
        points = [Fraction(0), Fraction(1)] if name.endswith("beta") else points
        self.common = name.startswith("common-")
        self.points = each_voter(self.count, points) if name == "point" else []
        self.pieces = [] if self.points else list(zip(points[::2], points[1::2], strict=True))

    def voters(self, at: Any) -> list[Fraction]:
        """Return each voter's p in a row."""
        if self.points:
            return self.points
        if not self.common:
            least, most = min(self.pieces)[0], max(b for _, b in self.pieces)
            return [most] * (j := integer(at, 0, self.count)) + [least] * (self.count - j)
        p = number(at)
        if not any(a <= p <= b for a, b in self.pieces):
            raise Malformed(f"{str(at)[:40]} is no p of the prior")
        return [p] * self.count

    def pmf(self, at: Any) -> tuple[list[int], int]:
        """Return the pmf of L in units of 2^-FIXED, and by how many units each may be too low."""
        p = self.voters(at)
        return pmf_of_ones(p), sum(each.denominator > 1 for each in p)

    def row(self, name: Name) -> Row:
        """Return sign E f(L) <= t."""
        _, at, sign = name
        require_size(self.count, self.count)
        if sign not in (1, -1):
            raise Malformed(f"there is no row {str(name)[:80]}")
        (pmf, short), unit = self.pmf(at), 2 << FIXED
        terms, limits = dict[Variable, Any](), [Fraction(0), Fraction(0)]
        for n in range((self.count + 1) // 2, self.count + 1):
            margin = -sign * (pmf[n] - pmf[self.count - n])
            terms["gamma", n] = Fraction(margin - short, unit), Fraction(margin + short, unit)
            limits = [limits[0] + terms["gamma", n][0], limits[1] + terms["gamma", n][1]]
        return Row(terms | {("t",): -1}, (limits[0], limits[1]))

    def largest(self, minority: list[int], total: int) -> Fraction:
        """Return an upper bound of all |error|, at most 2^-49 too large for a common p.

        The Bernstein coefficients f(0), .., f(K) of the error polynomial bound it; halve the
        interval until they are close to a value that the polynomial takes. ``minority`` has the
        chances of the minority's output over ``total``, from the closest vote on.
        """
        # f(0..K) over total: minus the minority's chance below K/2, its chance above.
        f, best = [-b for b in minority[::-1]] + minority, 0
        if not self.common:
            require_size(self.count, self.count, 1 if self.points else self.count // 10)
            for at in range(1 if self.points else self.count + 1):
                pmf, short = self.pmf(at)
                best = max(best, abs(sum(map(mul, pmf, f))) + short * sum(map(abs, f)))
            return Fraction(best, total << FIXED)
        start, polys = [a << FIXED for a in f], []
        require_size(len(self.pieces), self.count, 1 + self.count // 10)
        # Restrict the polynomial on [0, 1] to [low, high].
        for low, high in self.pieces:
            below = split(start, high)[0] if high < 1 else start
            polys.append(split(below, low / high)[1] if low else below)
        tolerance, steps, top = (total << FIXED) >> 50, 2 * len(polys), 0
        while polys:
            best = max(best, *(abs(poly[end]) for poly in polys for end in (0, -1)))
            tops = [max(map(abs, poly)) for poly in polys]
            top = max(top, *(a for a in tops if a <= best + tolerance), 0)
            polys = [poly for poly, a in zip(polys, tops, strict=True) if a > best + tolerance]
            steps += len(polys)
            require_size(steps, self.count, 1 + self.count // 100)
            polys = [half for poly in polys for half in split(poly, Fraction(1, 2))]
        # Each split averages coefficients, and floors once for each voter: add those units.
        return Fraction(top + steps * self.count * any(f), total << FIXED)


def add_regrets(program: Program, setting: Setting, proof: Any) -> None:
    """Set the objective: minimise t, error_j <= b_j + t coin_j for each prior j; value -t.

    error_j = sum_l c_jl (1 - gamma(l)); coin_j = sum_l c_jl is that of a fair coin; b_j is the
    least error under prior j, which the proof states and its multipliers prove.
    """
    regrets, suffix = list[Fraction](), ""
    if len(proof["priors"]) != len(setting["priors"]):
        raise Malformed("the proof has other priors")
    for j, (prior, entry) in enumerate(zip(setting["priors"], proof["priors"], strict=True)):
        one = {**setting, "objective": "mean", "prior": prior}
        weights, note = vote_weights(one, entry)
        if weights is None:
            raise Malformed(f"prior {str(prior)[:40]}{note}")
        suffix = suffix or (note and " for the proof's coefficients")
        cost = dict(zip([*program.boxes], weights, strict=True))
        multipliers = multipliers_of(entry["multipliers"])
        # Without the rows of other priors, which have the variable t.
        mean = replace(program, cost=cost, boxes={**program.boxes}, rows={})
        coin = sum(weights)
        if coin <= 0:
            raise Malformed(f"a fair coin has no error under {str(prior)[:40]}")
        best_error = number(entry["best"])
        if best_error > coin - bound(mean, multipliers):
            raise Refused(f"the best error under {str(prior)[:40]} is not shown to be the best")
        terms: dict[Variable, Any] = {v: -c for v, c in cost.items()}
        program.rows["prior", j] = Row(terms | {("t",): -coin}, best_error - coin)
        gain = sum(c * program.point.get(v, 0) for v, c in cost.items())
        regrets.append(Fraction(coin - gain - best_error) / coin)
    if program.point:
        program.point["t",] = max(regrets)
    program.cost, program.boxes["t",] = {("t",): -1}, (0, 1)
    # Errors below the least ones would be taken, too: what is shown holds against these.
    program.among = " against these least errors"
    program.note = f" (or more: minus the largest regret against errors that none is below{suffix})"


def majority(setting: Setting, stored: Any, exp_epsilon: Between | None, proof: Any) -> Program:
    """Return the program of the noise function gamma(l) = gamma(K - l) of a majority vote.

    For l = (K + 1) / 2..K votes for the majority, the table has the chances of the majority's
    answer, (1 + gamma(l)) / 2, and of the other; "contrary" allows the other to be likelier.
    """
    voters = Voters(setting, exp_epsilon)
    for lines in [proof, *proof.get("priors", [])] if proof else []:
        voters.require_rows(lines.get("multipliers", []))
    half = (voters.count + 1) // 2
    variables: list[Variable] = [("gamma", at) for at in range(half, voters.count + 1)]
    boxes: dict[Variable, Between] = dict.fromkeys(variables, (-1 if setting["contrary"] else 0, 1))
    program = Program([], boxes, {}, voters.names, voters.row, maximise=True)
    table = None if stored is None else table_of(stored, [2] * half, [1] * (2 * half))
    if table:
        ones, zeros = table.weights[::2], table.weights[1::2]
        gammas = [Fraction(a - b, table.total) for a, b in zip(ones, zeros, strict=True)]
        program.point = dict(zip(variables, gammas, strict=True))
        program.private = partial(voters.private, zeros[::-1] + ones, table.total)
        program.pairs = partial(labels_of_majority, setting, stored)
    objective = setting["objective"] if setting.get("coefficients") is None else ""
    if objective == "worst-case":
        if table is None:
            raise Malformed("a worst case is checked with its weights alone")
        # Minimise t, at least every |error|; the value is -t.
        errors, corner = LargestError(setting), program.made
        error = cache(errors.row)
        program.point["t",] = errors.largest(table.weights[1::2], table.total)
        program.cost, program.boxes["t",] = {("t",): -1}, (0, 1)
        program.made = lambda name: (error if name[0] == "error" else corner)(name)
        program.note = f" (minus the largest error for {str(setting['prior'])[:40]})"
    elif objective == "least-regret" and proof:
        add_regrets(program, setting, proof)
    elif objective == "least-regret":
        program.note = ": to be looked at with the proof, which has its coefficients"
    else:
        weights, program.note = vote_weights(setting, proof)
        program.cost = dict(zip(variables, weights or [], strict=weights is not None))
    program.neighbours = f"one record changed, which all {voters.count} voters may have seen"
    return program


# --- pluralities: q_lc = Pr[output is one of the classes of count c | sorted counts l] ----------


@cache
def counts(total: int, classes: int) -> list[tuple[int, ...]]:
    """Return all count vectors of the classes with this total."""
    require_size(comb(total + classes - 1, total), classes)
    bars = combinations(range(total + classes - 1), classes - 1)
    ends = ((-1, *bar, total + classes - 1) for bar in bars)
    return [tuple(b - a - 1 for a, b in pairwise(end)) for end in ends]


@cache
def raised(total: int, classes: int) -> list[list[int]]:
    """Return, for each class, the index of each vector of `counts` with one more vote for it."""
    index_of = {n: at for at, n in enumerate(counts(total + 1, classes))}
    vectors = counts(total, classes)
    return [[index_of[*n[:y], n[y] + 1, *n[y + 1 :]] for n in vectors] for y in range(classes)]


def urn(
    a: Fraction, classes: int, states: list[tuple[int, ...]], copies: list[dict[int, int]]
) -> list[Fraction]:
    """Return the pmf of the sorted counts of K draws from Polya's urn: p is Dirichlet(a, .., a).

    It is in proportion to the assignments of counts to classes, times K! prod a (a + 1) ..
    (a + n - 1) / n! over the counts n. For a = 1 the latter is K! for all.
    """
    scale, draws, even = a.denominator, sum(states[0]), a == 1
    steps = [1 if even else a.numerator + n * scale for n in range(draws)]
    rising, masses = list(accumulate(steps, mul, initial=1)), list[int]()
    for state, each in zip(states, copies, strict=True):
        orders = factorial(classes) // prod(map(factorial, each.values()))
        arranged = 1 if even else factorial(draws) // prod(map(factorial, state))
        masses.append(orders * arranged * prod(rising[n] for n in state))
    total = sum(masses)
    return [Fraction(mass, total) for mass in masses]


class Ballots:
    """Sorted counts of K ballots over C classes; classes of the same count are equally likely.

    Attributes:
        shown: number of classes kept: of more than two empty ones it is enough to know how many.
        states: the sorted counts, the largest first.
        copies: for each state, the number of classes with each count.
        weights: for each state, the integer weight of a class of each count; empty if not given.
    """

    def __init__(
        self, voters: object, classes: object, stored: Any, shown: int | None = None
    ) -> None:
        self.voters, self.classes = integer(voters, 1, 10**15), integer(classes, 2, 10**6)
        if self.voters > 10_000:
            raise Malformed("these are more than 10000 ballots")
        self.shown = shown = shown or min(self.classes, self.voters + 2)
        # Partitions of the voters, one class at a time: each count is at most the one before.
        self.states = [tuple[int, ...]()]
        for slots in range(shown, 0, -1):
            # The next count is at least the mean of the ballots that remain, at most the last one.
            begun = ((state, self.voters - sum(state)) for state in self.states)
            longer = (
                (*state, count)
                for state, unused in begun
                for count in range(min([unused, *state[-1:]]), -(-unused // slots) - 1, -1)
            )
            self.states = list(islice(longer, TABLED + 1))
            if len(self.states) > TABLED:
                raise Malformed(f"these are more than {TABLED} sorted counts")
            require_size(len(self.states), shown)
        self.index_of = {state: at for at, state in enumerate(self.states)}
        hidden = self.classes - shown
        self.copies = [{c: s.count(c) + hidden * (c == 0) for c in s} for s in self.states]
        self.weights, self.table = list[dict[int, int]](), None
        if stored:
            counts_ = [n for copies in self.copies for n in copies.values()]
            self.table = table_of(stored, list(map(len, self.copies)), counts_)
            units = iter(self.table.weights)
            self.weights = [{c: next(units) for c in copies} for copies in self.copies]
        self.total = self.table.total if self.table else 0

    def at(self, votes: Iterable[int]) -> int:
        """Return the index of the state of these counts."""
        return self.index_of[tuple(sorted(votes, reverse=True)[: self.shown])]

    def chances(self, prior: str) -> list[Fraction]:
        """Return the pmf of the sorted counts: votes i.i.d. from p, which is fixed or Dirichlet."""
        (name, _, text), masses = prior.partition(":"), [0] * len(self.states)
        several = name == "dirichlet" and "," in text
        written = r"uniform|(dirichlet|point):([0-9.,/]|e[+-]?[0-9]{1,2}\b)+"
        if several or len(prior) > 40 * self.classes or not re.fullmatch(written, prior):
            raise Malformed(f"prior is {prior[:40]!r}")
        pmf, k = [Fraction(p) for p in (text or "1").split(",")], self.voters
        common = lcm(*{p.denominator for p in pmf})
        # All chances are over one denominator, of at most so many bits.
        each = common + k if name == "point" or pmf[0] == 1 else int((pmf[0] + k) * common)
        bits = 0 if pmf[0] == 1 else k * each.bit_length()
        require_size(len(self.states), 8, exact_cost(bits))
        if name != "point":
            require_size(k, 1 if pmf[0] == 1 else k)
            return urn(pmf[0], self.classes, self.states, self.copies)
        require_size(k, self.classes, 1 + bits // 512)
        powers = [list(accumulate([int(p * common)] * k, mul, initial=1)) for p in pmf]
        for drawn in counts(k, self.classes):
            # Multinomial coefficient times the probability of these counts.
            orders = factorial(k) // prod(map(factorial, drawn))
            masses[self.at(drawn)] += orders * prod(map(getitem, powers, drawn))
        total = sum(masses)
        return [Fraction(mass, total) for mass in masses]

    def chances_of_counts(self, letter: str, names: Sequence[Any]) -> Program:
        """Return a program of (letter, name of a state, c): that the output has c ballots."""
        named = list(zip(names, self.copies, strict=True))
        program = Program([([(letter, name, c) for c in each], 1) for name, each in named], {}, {})
        for (name, copies), weights in zip(named, self.weights, strict=False):
            for c, w in weights.items():
                program.point[letter, name, c] = Fraction(w * copies[c], self.total)
        return program

    def program(self, prior: str, loss: str, minimax: bool = False) -> Program:
        """Return the program without privacy; row ("worst", l): state l has loss at most t."""
        program = self.chances_of_counts("q", range(len(self.states)))
        losses = dict[Name, dict[Variable, int]]()
        most = {"regret": self.voters, "error": 1}[loss]
        for at, (state, copies) in enumerate(zip(self.states, self.copies, strict=True)):
            losses["worst", at] = {("q", at, c): min(state[0] - c, most) for c in copies}
        shares = None if minimax else self.chances(prior)
        add_losses(program, losses, shares, (0, self.voters))
        return program

    def moves(self, at: int) -> Iterator[list[int]]:
        """Yield the counts after one ballot is replaced, in the order of the classes of state l."""
        state = self.states[at]
        # The first class i of each count; a ballot moves from a class i of a to a class j of b.
        firsts = {c: i for i, c in reversed(list(enumerate(state)))}
        for (a, i), (b, j) in product(firsts.items(), repeat=2):
            j += a == b
            if a > 0 and j < len(state) and state[j] == b:
                yield [c - (y == i) + (y == j) for y, c in enumerate(state)]

    def near(self, at: int) -> Iterator[tuple[int, int, int]]:
        """Yield (c, t, d): one replaced ballot leads to state t, and a class from count c to d."""
        for after in self.moves(at):
            to, pairs = self.at(after), set(zip(self.states[at], after, strict=True))
            yield from ((c, to, d) for c, d in pairs if (at, c) != (to, d))

    def decide(self, exp_to: Growth) -> Verdict:
        """Decide that a replaced ballot multiplies no chance of a class by more than e^epsilon."""
        if not self.table:
            raise Malformed("there are no weights")
        cells = ((at, c) for at, copies in enumerate(self.copies) for c in copies)
        variable = {cell: v for v, cell in enumerate(cells)}
        states = range(len(self.states))
        pairs = [(variable[a, c], variable[b, d]) for a in states for c, b, d in self.near(a)]
        columns = [*map(list, zip(*pairs, strict=True))]
        return decide_ratios(self.table.weights, self.total, columns, exp_to, len(pairs))

    def pairs(self) -> Iterator[Pair]:
        """Yield the weights of all outputs before and after a ballot is replaced, both orders."""
        # Of the classes that are not shown, none has a ballot: they are one outcome.
        hidden = self.classes - self.shown
        for at, state in enumerate(self.states):
            for after in self.moves(at):
                both = (self.weights[at], state), (self.weights[self.at(after)], after)
                one, other = (
                    (*(weights[c] for c in counts_), hidden * weights.get(0, 0))
                    for weights, counts_ in both
                )
                yield from ((one, other), (other, one))


def plurality(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of a plurality of non-private ballots; see `Ballots`.

    "privacy", l, c, t, d: k_lc <= e^epsilon k_td if one replaced ballot turns l into t, and a class
    of count c into one of count d; k is q over the number of classes of that count.
    """
    if isinstance(stored, list):
        raise Refused("a step is private by a theorem that is not decided here")
    ballots = Ballots(setting["records"], setting["classes"], stored)
    low, high = exp_epsilon or exp(number(setting["epsilon"]))
    minimax = {"mean": False, "worst-case": True}[setting["objective"]]
    program = ballots.program(setting["prior"], setting["loss"], minimax)
    edges_of = cache(lambda at: set(ballots.near(at)))

    def names() -> Iterator[Name]:
        states = range(len(ballots.states))
        yield from (("privacy", at, *edge) for at in states for edge in edges_of(at))

    def row(name: Name) -> Row:
        if name[0] != "privacy":
            no_row(name)
        _, at, c, to, d = name
        if (c, to, d) not in edges_of(integer(at, 0, len(ballots.states) - 1)):
            no_row(name)
        n, m = ballots.copies[at][c], ballots.copies[to][d]
        return Row({("q", at, c): Fraction(1, n), ("q", to, d): (-high / m, -low / m)})

    program.many, program.made = names, row
    program.private = partial(ballots.decide, growth(number(setting["epsilon"]), exp_epsilon))
    program.pairs = lambda: (ballots.pairs(), ballots.total)
    program.neighbours = f"one of {ballots.voters} ballots replaced"
    most = SOLVED if setting["rule"] == "optimal" else TABLED
    if len(ballots.states) > most:
        raise Malformed(f"these are more than {most} sorted counts")
    return program


class Labels:
    """K voters, each epsilon-DP with a label as output, and the target (m epsilon, delta)."""

    def __init__(self, setting: Setting, ballots: Ballots, exp_epsilon: Between | None) -> None:
        self.ballots, self.voters, self.classes = ballots, ballots.voters, ballots.classes
        self.each, self.pairs = (
            Voters(setting, exp_epsilon),
            list(combinations(range(self.classes), 2)),
        )
        self.epsilon, self.delta, self.shift = self.each.epsilon, self.each.delta, self.each.shift
        self.steps, self.growth = 0, self.each.growth
        self.sizes = range(1, self.classes if self.delta else 2)  # of the sets of outputs to decide

    def edges(self, turned: bool = True) -> Iterator[tuple[int, ...]]:
        """Yield the number of voters on edge y -> z (negative: on z -> y), for each pair y < z.

        No three edges form a cycle. Each choice comes after the one without its last edge; unless
        ``turned``, the one with all edges reversed is left out.
        """
        index_of = {pair: at for at, pair in enumerate(self.pairs)}
        threes = list(combinations(range(self.classes), 3))
        # Three pairs close a cycle if x -> y, y -> z have one sign and x -> z the other.
        circles = [(index_of[x, y], index_of[y, z], index_of[x, z]) for x, y, z in threes]
        waiting = [((0,) * len(self.pairs), 0)]
        while waiting:
            signed, last = waiting.pop()
            yield signed
            addable = range(last, len(signed) if sum(map(abs, signed)) < self.voters else 0)
            for at, direction in product(addable, (1, -1) if turned or any(signed) else (1,)):
                wider = (*signed[:at], signed[at] + direction, *signed[at + 1 :])
                circular = (wider[i] * wider[j] > 0 > wider[i] * wider[k] for i, j, k in circles)
                if signed[at] * direction >= 0 and not any(circular):
                    waiting.append((wider, at))

    def names(self) -> Iterator[Name]:
        """Yield all corners: sizes of sets of outputs, voters on edges, and voters at loops."""
        for size, signed in product(self.sizes, self.edges()):
            for loops in counts(self.voters - sum(map(abs, signed)), self.classes):
                yield "corner", size, signed, loops

    def row(self, name: Name) -> Row:
        """Return the row ("corner", k, edges, loops): E A - e^(m epsilon) E' A <= delta.

        A is the probability of the first k classes. A voter at loop y votes y; one on y -> z votes
        y with the chance b of `Voters`, and under the neighbour E' with c = 1 - b, or else z.
        """
        kind, size, signed, loops = name
        signed = [integer(m, -self.voters, self.voters) for m in signed]
        loops, edges = tuple(integer(n, 0, self.voters) for n in loops), sum(map(abs, signed))
        if kind != "corner" or len(loops) != self.classes or sum(loops) + edges != self.voters:
            no_row(name)
        require_size(edges, edges)
        sums = defaultdict[Variable, list[Between]](lambda: [(0, 0), (0, 0)])
        for side in (0, 1):
            pmf = {loops: self.each.enclosed(1, 1)}
            for (y, z), m in zip(self.pairs, signed, strict=True):
                wider = defaultdict[Any, Between](lambda: (0, 0))
                self.steps += len(pmf) * abs(m)
                require_size(self.steps // 10)
                # i of these |m| voters vote y, the others z.
                chances = self.each.mixed((("bc" if m > 0 else "cb", abs(m)),), side)
                for (votes, mass), (i, chance) in product(pmf.items(), enumerate(chances)):
                    counted = enumerate(votes)
                    more = tuple(n + i * (x == y) + (abs(m) - i) * (x == z) for x, n in counted)
                    wider[more] = added(wider[more], self.each.times(mass, chance))
                pmf = wider if m else pmf
            for votes, mass in pmf.items():
                at = self.ballots.at(votes)
                for c in votes[: integer(size, 1, self.classes - 1)]:
                    sums["q", at, c][side] = added(sums["q", at, c][side], mass)
        terms, unit = dict[Variable, Any](), 1 << self.each.bits
        for v, ((a, b), (c, d)) in sums.items():
            each = unit * self.ballots.copies[v[1]][v[2]]
            ends_ = a - self.growth[1] * d, b - self.growth[0] * c
            terms[v] = Fraction(ends_[0]) / each, Fraction(ends_[1]) / each
        return Row(terms, self.delta)

    def sides(
        self, sets: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, tuple[int, ...], list[tuple[int, ...]], list[int], list[int]]]:
        """Yield E A and E' A at all corners, times total 2^CORNER, rounded up.

        If T(n) is the value for votes n at loops, one more edge y -> z gives b T(n + e_y) +
        c T(n + e_z), b = e^epsilon / (1 + e^epsilon), c = 1 - b, rounded up by less than one unit
        for each edge. b is rounded up, too: a larger epsilon allows the voters more. Of a set of
        outputs, from a first class to the one after its last, are yielded the latter; voters on
        edges, not reversed, as sides would be exchanged; vectors of voters at loops; and by these
        both sides.
        """
        weights, ballots, high = self.ballots.weights, self.ballots, self.each.exp(self.epsilon)[1]
        b = -(-high * (1 << CORNER) // (1 + high))
        c, most = (1 << CORNER) - b, (1 << CORNER) - 1
        last = dict[int, tuple[list[int], list[int]]]()  # by the number of edges
        for (start, end), signed in product(sets, self.edges(turned=False)):
            edges = sum(map(abs, signed))
            loops = counts(self.voters - edges, self.classes)
            if edges == 0:
                first = [sum(weights[ballots.at(n)][m] for m in n[start:end]) for n in loops]
                first = [value << CORNER for value in first]
                last[0] = first, first
            else:
                # Take one voter off the last edge: its values at n + e_y and n + e_z are known.
                at, m = max((at, m) for at, m in enumerate(signed) if m)
                more = raised(self.voters - edges, self.classes)
                y, z = self.pairs[at][:: 1 if m > 0 else -1]
                both = list(zip(more[y], more[z], strict=True))
                ahead, back = last[edges - 1]
                ahead = [b * ahead[i] + c * ahead[j] + most >> CORNER for i, j in both]
                back = [c * back[i] + b * back[j] + most >> CORNER for i, j in both]
                last[edges] = ahead, back
            yield end, signed, loops, *last[edges]

    @property
    def scale(self) -> int:
        """What the integers of `neighbours` are over."""
        return self.ballots.total << CORNER

    def neighbours(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Yield the distributions of the output of neighbours at all corners, in both orders.

        They are integers over `scale`, those of the first rounded up and those of the second down.
        """
        walks = [self.sides([(y, y + 1)]) for y in range(self.classes)]
        for steps in zip(*walks, strict=True):
            edges = sum(map(abs, steps[0][1]))
            for ahead, back in ((3, 4), (4, 3)) if edges else ():
                ones = zip(*(step[ahead] for step in steps), strict=True)
                others = zip(*(step[back] for step in steps), strict=True)
                for one, other in zip(ones, others, strict=True):
                    yield one, tuple(max(q - edges, 0) for q in other)

    def private(self) -> Verdict:
        """Decide all corners; if they are too many, decide that each single vote changes little.

        A refusal names the row ("corner", k, edges, loops) that is violated most, or the pair
        ("vote", l, c, t, d) of the largest ratio, see `Ballots.near`.
        """
        if self.shift or not corners_are_few(self.voters, self.classes):
            return self.stable()
        growth, unit, count = self.growth[0] * (1 << CORNER) // 1, 1 << CORNER, 0
        budget, least, at = int(self.delta * self.ballots.total * unit * unit), None, ()
        for size, signed, loops, ahead, back in self.sides((0, size) for size in self.sizes):
            edges = sum(map(abs, signed))
            # With all edges reversed the sides are exchanged.
            turned = [(1, ahead, back), (-1, back, ahead)][: 2 if edges else 1]
            for direction, over, under in turned:
                both = zip(over, under, strict=True)
                slacks = [growth * (d - edges if d > edges else 0) - unit * a for a, d in both]
                slack, count = min(slacks), count + len(slacks)
                if least is None or slack < least:
                    edge_counts, where = tuple(direction * n for n in signed), slacks.index(slack)
                    least, at = slack, ("corner", size, edge_counts, loops[where])
        slack = Fraction((least or 0) + budget, self.ballots.total * unit * unit)
        if slack < 0:
            raise broken(f"row {at} is broken", -slack, at)
        return Verdict(count, slack, at)

    def stable(self) -> Verdict:
        """Decide privacy from the largest factor v by which one vote changes a probability.

        One voter changes it by at most (r v + 1) / (r + v), r = (e^epsilon + Delta) / (1 - Delta),
        or 1 + Delta (v - 1); K voters by that to the K (docs/theorems/stable.md).
        """
        weights, over, under, count, at = self.ballots.weights, 0, 1, 0, ()
        for x, own in enumerate(weights):
            for c, to, d in self.ballots.near(x):
                a, b, count = own[c], weights[to][d], count + 1
                if a * under > over * b:
                    over, under, at = a, b, (x, c, to, d)
        r, unit = (self.each.exp(self.epsilon)[1] + self.shift) / (1 - self.shift), 1 << FIXED
        v, power, low = Fraction(over, under or 1), unit, self.growth[0] * unit
        each = -(-max((r * v + 1) / (r + v), 1 + self.shift * (v - 1)) * unit // 1)
        for _ in range(self.voters):
            power = -(-power * each >> FIXED)
            if not under or power > low:
                missed = Fraction(power - low, unit) if under else Fraction(1)
                why = "not shown to be private for so many voters or classes"
                raise Refused(why, ("vote", *at), missed)
        return Verdict(count, Fraction(low - power, unit), ("vote", *at))


def corner_count(voters: int, classes: int) -> int:
    """Return an upper bound of the number of corners, for one size of sets of outputs.

    Voters are on j directed pairs of classes, at least one on each, and the others at loops.
    """
    pairs = comb(classes, 2)
    return sum(
        comb(pairs, j) * comb(voters + classes - 1, voters - j) << j
        for j in range(min(voters, pairs) + 1)
    )


def corners_are_few(voters: int, classes: int) -> bool:
    """Whether the corners of private voters are few enough to be decided one by one."""
    return (classes > 2 or voters <= LEVELS) and corner_count(voters, classes) <= CORNERS


def labels_of_majority(setting: Setting, stored: Any) -> tuple[Iterable[Pair], int]:
    """Return `Labels.neighbours` of a majority, a plurality of two classes, and their scale."""
    require_size(setting["voters"], setting["voters"], setting["voters"])
    # Sorted counts begin with all votes for one class.
    table = {"total": stored["total"], "weights": stored["weights"][::-1]}
    labels = Labels(setting, Ballots(setting["voters"], 2, table), None)
    return labels.neighbours(), labels.scale


def multiclass(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of a plurality of private voters; the loss is the error rate."""
    ballots = Ballots(setting["voters"], setting["classes"], stored)
    program = ballots.program(setting["prior"], "error")
    labels = Labels(setting, ballots, exp_epsilon)
    program.neighbours = f"one record changed, which all {ballots.voters} voters may have seen"
    program.many, program.made = labels.names, cache(labels.row)
    program.private = labels.private
    if corners_are_few(ballots.voters, ballots.classes):
        program.pairs = lambda: (labels.neighbours(), labels.scale)
    return program


# --- one category of n records over k categories: samplers --------------------------------------


def sizes(setting: Setting, exp_epsilon: Between | None, most: int) -> tuple[int, int, Between]:
    """Return n, k and an enclosure of e^epsilon."""
    n, k = integer(setting["records"], 1, most), integer(setting["categories"], 2, most)
    return n, k, exp_epsilon or exp(number(setting["epsilon"]))


def moves(n: int, k: int, m: int, rule: str) -> list[Name]:
    """Return rows ("move", i, c, j, d): f(j, d) <= e^epsilon f(i, c), where max(i, j) = m.

    f(m, c) = q_m / k + (1 - q_m) c / n is the chance of a category of count c, m the least count.
    For "exact" and "roo" these rows imply all: f rises in c and a row is affine in c, from m to
    t = n - (k - 1) m, so its two ends decide, with the largest d and the least c. If m stays, c to
    c + 1 is hardest at c = m. From m to m - 1, a category goes from c to c + 1 or c, or from m to
    m - 1; of two categories one gains what the other loses. The published rules ask for c to c + 1
    at c = m and c = n, or for some of these rows, which does not always make them private.
    """
    t, more = n - (k - 1) * m, int(k > 2)
    if rule in ("exact", "roo"):
        rows = [(m, m, m, m + 1)] if n > k * m and (more or n == 2 * m + 1) else []
        if m:
            rows += [(m, m, m - 1, m - 1 + 2 * more), (m, t, m - 1, t + 1)]
            rows += [(m - 1, m - 1, m, m), (m - 1, t + 1 - more, m, t)]
    elif rule == "conference":
        rows = [(m, m, max(m - 1, 0), m + 1)] if m == 0 or n > k * m else []
    else:
        rows = [(m, n, m, n + 1)]
        if rule != "journal" or m < max(n // k, 1):
            rows.append((m, m, m, m + 1))
        if m:
            rows += [(m, c, m - 1, c + 1) for c in (m, n)]
            rows += [(m - 1, c, m, c + 1) for c in (m - 1, n)]
    return [("move", *move) for move in rows]


def chances_of_moves(n: int, k: int, q: list[int], same: bool) -> Iterator[tuple[Name, int, int]]:
    """Yield moves that imply all, with the category's chance before and after, over k n 2^62.

    The q_0, q_1, ... are over 2^62; later ones are 0, or equal to the one if ``same``. After two
    consecutive q_m = 0, rows say c + 1 <= e^epsilon c for increasing c: the first is enough. With
    one q for all m, the rows of the least counts are.
    """
    last = min(n // k, 1 if same else len(q) + 1)
    padded = q * (last + 1) if same else [*q, 0, 0]
    # Chance of count c, over k n 2^62: q_m n + (1 - q_m) k c, q_m in units of 2^-62.
    fixed, each = [w * n for w in padded], [((1 << 62) - w) * k for w in padded]
    for m in range(last + 1):
        for name in moves(n, k, m, "exact"):
            _, i, c, j, d = name
            yield name, fixed[i] + each[i] * c, fixed[j] + each[j] * d


def decide_rule(n: int, k: int, q: list[int], same: bool, growth: Number) -> Verdict:
    """Decide that no move multiplies a chance by more than ``growth``; see `chances_of_moves`."""
    over, under = growth.numerator, growth.denominator
    rows, least, at = 0, over * n * k << 62, None
    for name, before, after in chances_of_moves(n, k, q, same):
        slack = over * before - under * after
        rows += 1
        if slack < least:
            least, at = slack, name
    if least < 0:
        raise broken(f"row {at} is broken", Fraction(-least, under * n * k << 62), at)
    return Verdict(rows, Fraction(least, under * n * k << 62), at)


def roo(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of the rule with least sum of q_m, the chance to obscure at least count m.

    A sum over the first q_m alone bounds the sum over all from below. For "roo" all q_m are equal.
    """
    n, k, (low, high) = sizes(setting, exp_epsilon, 10**15)
    most, rule, same = n // k, setting["rule"], setting["rule"] == "roo"
    q = [] if stored is None else integers(stored, 0, 1 << 62)
    if len(q) > (1 if same else most + 1):
        raise Malformed(f"there are {len(q)} q_m for {most + 1} least counts")
    last = min(most, 1 if same else len(q) + 1 if q else most)
    require_size(last + 1, 3)
    costs: dict[Variable, Number] = {("q", m): 1 for m in range(last + 1)}
    costs = {("q", 0): most + 1} if same else costs
    if rule == "conference" and last == most > 0:
        costs["q", most] = Fraction(1, k)

    def names() -> Iterator[Name]:
        return (name for m in range(last + 1) for name in moves(n, k, m, rule))

    def row(name: Name) -> Row:
        _, m, c, j, d = name
        if max(m, j) > last or name not in moves(n, k, max(m, j), rule):
            no_row(name)
        before, after = ("q", 0 if same else m), ("q", 0 if same else j)
        ends_ = sorted(end * (k * c - n) + (n - k * d) * (before == after) for end in (low, high))
        terms: dict[Variable, Any] = {after: n - k * d}
        return Row(terms | {before: tuple(ends_)}, (low * k * c - k * d, high * k * c - k * d))

    program = Program([], dict.fromkeys(costs, (0, 1)), costs, names, row)
    program.point = {("q", m): Fraction(w, 1 << 62) for m, w in enumerate(q)}
    program.private = partial(decide_rule, n, k, q, same, low) if q else None
    program.neighbours = f"one of {n} records over {k} categories changed"
    return program


class Floor:
    """Weights W of a smooth floor: count c has chance W(c) / Z, and W(c) = c U from c* on.

    U is the unit, Z the sum over all categories, D(c) = W(c + 1) - W(c); L(l, t) and H(l, t) are
    the least and the largest sum of W over l categories with t records. If W(0) > 0 and
    0 <= D(0) <= D(1) <= ... <= U, the floor is epsilon-DP if and only if

        (2)  W(c + 1) Z <= e^epsilon W(c) (Z + D(c) - D(d - 1))

    for a category that gains at c and one that loses at d, c + d <= n (= n for k = 2), where Z is
    W(c) + W(d) plus L(k - 2, n - c - d) if D(d - 1) >= D(c), else plus H(k - 2, n - c - d). With
    v = floor((n - c) / (k - 1)), only d from min(v, c* + 1) to c* + 1 have to be checked, where
    d = c* + 1 stands for max(v, c* + 1). From c* on, (2) is at most c + 1 <= e^epsilon c.

    No (c, d) in a block c1 <= c <= c2, d1 <= d <= d2 has a larger ratio than

        (3)  (W(c1) + D(c2)) Z / (W(c1) (Z + min(0, D(c1) - D(d2 - 1))))

    for Z = W(c1) + L(k - 1, n - c2), or the larger W(c1) + W(d1) + L(k - 2, n - c2 - d2). Proofs
    are in docs/theorems/floor.md.
    """

    def __init__(self, n: int, k: int, weights: list[int], unit: int) -> None:
        self.records, self.categories, self.unit, self.last = n, k, unit, len(weights)
        self.values = [*weights, self.last * unit]
        self.steps = [after - before for before, after in pairwise(self.values)] + [unit]
        falls = any(before > after for before, after in pairwise(self.steps))
        if self.values[0] <= 0 or self.steps[0] < 0 or falls:
            raise Refused("not shown to be private: the weights are not convex")

    def weight(self, count: int) -> int:
        """Return W(count)."""
        return self.values[count] if count <= self.last else count * self.unit

    def step(self, count: int) -> int:
        """Return D(count)."""
        return self.steps[min(count, self.last)]

    def least(self, categories: int, records: int) -> int:
        """Return L: a sum of convex weights is least if the counts are as equal as possible."""
        if categories == 0:
            return 0
        each, more = divmod(records, categories)
        if each >= self.last:
            return records * self.unit
        return (categories - more) * self.values[each] + more * self.values[each + 1]

    def most(self, categories: int, records: int) -> int:
        """Return H: a sum of convex weights is largest if one category has all records."""
        return self.weight(records) + (categories - 1) * self.weight(0) if categories else 0

    def even(self, c: int) -> int:
        """Return v: the count of the other categories if they share the other records evenly."""
        return (self.records - c) // (self.categories - 1)

    def bound(self, c1: int, c2: int, d1: int, d2: int) -> tuple[int, int]:
        """Return numerator and denominator of (3), both above 0: Z >= W(0) + U, as W(c) >= c U."""
        remaining = max(0, self.records - c2 - d2)
        total = self.weight(c1) + max(
            self.least(self.categories - 1, self.records - c2),
            self.weight(d1) + self.least(self.categories - 2, remaining),
        )
        change = min(0, self.step(c1) - self.step(d2 - 1))
        return (self.weight(c1) + self.step(c2)) * total, self.weight(c1) * (total + change)

    def ratio(self, c: int, d: int) -> tuple[int, int, int]:
        """Return the largest d that this one stands for, and both parts of the ratio in (2)."""
        if d > self.last:
            d = max(d, self.even(c))
        remaining, change = self.records - c - d, self.step(c) - self.step(d - 1)
        others = (self.least if change <= 0 else self.most)(self.categories - 2, remaining)
        total = self.weight(c) + self.weight(d) + others
        return d, self.weight(c + 1) * total, self.weight(c) * (total + change)

    def worst(self) -> tuple[Fraction, tuple[int, int], int]:
        """Return the largest ratio of a category's chances, its (c, d), and the number of rows.

        Branch and bound: the block with the largest bound (3) is halved across its longer side,
        until no bound is above the largest ratio found.
        """
        high, low, at, rows = 0, 1, (0, 1), self.last + 2
        top = min(self.last, self.records - 1), min(self.records, self.last + 1)
        heap = [(-inf, (0, top[0], 1, top[1]))]
        while heap:
            require_size(rows)
            block, rows = heappop(heap)[1], rows + 1
            over, under = self.bound(*block)
            if over * low <= high * under:
                continue
            c1, c2, d1, d2 = block
            if c1 == c2 and d1 == d2:
                d, over, under = self.ratio(c1, d1)
                if over * low > high * under:
                    high, low, at = over, under, (c1, d)
                continue
            c, d = (c1 + c2) // 2, (d1 + d2) // 2
            halves = [(c1, c2, d1, d), (c1, c2, d + 1, d2)]
            if c2 - c1 >= d2 - d1:
                halves = [(c1, c, d1, d2), (c + 1, c2, d1, d2)]
            for half in halves:
                c1, c2, d1, d2 = half
                # A possible pair (c, d), d not below the least one to check.
                if d2 >= min(self.even(c2), self.last + 1) and c1 + d1 <= self.records:
                    over, under = self.bound(*half)
                    heappush(heap, (log(under) - log(over), half))
        for c in range(self.last + 1, self.records):
            if (c + 1) * low <= high * c:
                break
            rows += 1
            d, over, under = self.ratio(c, min(self.records - c, self.last + 1))
            if over * low > high * under:
                high, low, at = over, under, (c, d)
        return Fraction(high, low), at, rows

    def decide(self, growth: Number) -> Verdict:
        """Decide that no chance grows by a factor above ``growth``, at most e^epsilon."""
        worst, at, rows = self.worst()
        # The least chance: (growth - ratio) times it is at most the slack of any row.
        least = Fraction(
            self.weight(0), self.weight(self.records) + (self.categories - 1) * self.weight(0)
        )
        slack = (growth - worst) * least
        if slack < 0:
            why = f"not private: a category gains at {at[0]} and one loses at {at[1]}"
            raise Refused(why, at, -slack)
        return Verdict(rows, slack, at)


def smooth_floor(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of the table W of least sum with its growth; W(c) = c from c* on."""
    n, k, (low, _) = sizes(setting, exp_epsilon, 10**15)
    unit = 1 << integer(stored[0], 1, 4096)
    weights = integers(stored[1], 1, 1 << 9999)
    smoothed, last = Floor(n, k, weights, unit), len(weights)
    table = [*smoothed.values, (last + 1) * unit]
    growth = max(Fraction(after, before) for before, after in pairwise(table))

    def row(name: Name) -> Row:
        if ("lift", at := name[1]) not in point or name[0] != "growth":
            no_row(name)
        terms: dict[Variable, Any] = {("lift", at): -growth, ("lift", at + 1): 1}
        return Row(dict(list(terms.items())[: last - at]), growth * at - at - 1)

    point: dict[Variable, Number] = {
        ("lift", c): Fraction(w, unit) - c for c, w in enumerate(weights)
    }
    names = [("growth", c) for c in range(last)]
    boxes: dict[Variable, Between] = dict.fromkeys(point, (0, last))
    program = Program([], boxes, dict.fromkeys(point, 1), lambda: names, row, point=point)
    program.private = partial(smoothed.decide, low)
    program.note = f" for growth {float(growth - 1)!r}"
    program.among = " of this growth"
    program.neighbours = f"one of {n} records over {k} categories changed"
    return program


def optimal_sampler(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of K_xc = Pr[output is one of the categories of count c | histogram x].

    "short", x, c: S_xc >= categories c / n - K_xc, whose sum over c is the distance of x;
    "distance", x: it is at most t.
    """
    n, k, (low, high) = sizes(setting, exp_epsilon, 4001)
    require_size(n, k, 10)
    ballots = Ballots(n, k, stored, shown=k)
    histograms = ballots.states
    if len(histograms) > 2000:
        raise Malformed("these are too many histograms")
    names = {
        ("privacy", x, c, histograms[to], d): None
        for at, x in enumerate(histograms)
        for c, to, d in ballots.near(at)
    }

    def row(name: Name) -> Row:
        """K_zd / categories <= e^epsilon K_xc / categories."""
        if name not in names:
            no_row(name)
        _, x, c, z, d = name
        over, under = x.count(c), z.count(d)
        return Row({("K", z, d): over, ("K", x, c): (-high * under, -low * under)})

    program = ballots.chances_of_counts("K", histograms)
    program.many, program.made = lambda: names, row
    program.private = partial(ballots.decide, growth(number(setting["epsilon"]), exp_epsilon))
    program.neighbours = f"one of {n} records over {k} categories changed"
    for cell in ((x, c) for x in histograms for c in dict.fromkeys(x) if c):
        share = Fraction(cell[0].count(cell[1]) * cell[1], n)
        add_shortfall(program, ("short", *cell), ("S", *cell), {("K", *cell): 1}, share)
    losses = {("distance", x): {("S", x, c): 1 for c in set(x) if c} for x in histograms}
    shares = None
    if setting["objective"] == "mean":
        prior = number(setting["prior"])
        require_size(n, n, k, prior.denominator.bit_length())
        shares = urn(prior, k, histograms, ballots.copies)
    add_losses(program, losses, shares, (0, 1))
    return program


# --- public priors: kernels K over n categories with q K = q ------------------------------------


def invariant_kernel(
    setting: Setting, stored: Any, exp_epsilon: Between | None, mean: Any = None
) -> Program:
    """Return the program of the prior-invariant kernel with least mean or largest 1 - K_xx."""
    n = len(setting["public"])
    fields = {"inputs": n, "outputs": n, "loss": "zero-one", "sense": "minimise", "shape": None}
    fields |= {"objective": "mean" if mean else "worst-case", "prior": mean, "delta": 0}
    fields |= {"graph": "complete", "constraints": None, "symmetry": "none"}
    fields |= {"epsilon": setting["epsilon"], "invariant": setting["public"]}
    return kernel(fields, stored, exp_epsilon, None)


def most_kept(setting: Setting, exp_epsilon: Between | None) -> Between:
    """Return lemma 3's upper bound R q / (R q + 1 - q) of K_ii, R = e^epsilon, q = min mass = q_i.

    K_ii is at most R times each other entry of its column, so at most R times their mean by the
    prior; and that mean times 1 - q is q - q K_ii, since the prior is invariant.
    """
    masses, _ = integer_weights(setting["public"], len(setting["public"]))
    q = Fraction(min(masses), sum(masses))
    low, high = [r * q / (r * q + 1 - q) for r in exp_epsilon or exp(number(setting["epsilon"]))]
    return low, high


@dataclass(frozen=True)
class Layers:
    """The integer weights of a closed-form kernel over T = 2^bits, categories by ascending mass.

    Row i gives w_j to each j < i (flat: to all j), e_i to i, and the remainder of T to the j > i
    (flat: to all j) in proportion to k_j. With S the sum of these k and C of those before a
    category, its share begins at floor(remainder C / S), so that exactly T is given away.

    Attributes:
        bits: of T.
        flat: whether the w and the k of a row apply to all its columns.
        q: masses of the categories, in proportion.
        w: weight of the columns before the diagonal.
        e: extra weight of the diagonal.
        k: proportions of the remainder.
    """

    bits: int
    flat: bool
    q: list[int]
    w: list[int]
    e: list[int]
    k: list[int]

    @cached_property
    def rests(self) -> list[tuple[int, int]]:
        """The remainder of each row, and the sum S that it is split over, or 1."""
        # free: T less the w of earlier columns (flat: all); of: sum of the later k (flat: all).
        free, of, rests = (1 << self.bits) - (sum(self.w) if self.flat else 0), sum(self.k), []
        for w, e, k in zip(self.w, self.e, self.k, strict=True):
            of -= 0 if self.flat else k
            if w < 0 or e < 0 or k < 0 or free < e or (free > e and not of):
                raise Refused("a row of the kernel is no distribution")
            rests.append((free - e, of or 1))
            free -= 0 if self.flat else w
        return rests

    @cached_property
    def rates(self) -> list[int]:
        """floor(2^(bits + 64) remainder / S) of each row."""
        fine = self.bits + 64
        return [(remainder << fine) // share_sum for remainder, share_sum in self.rests]

    def columns(self) -> Iterator[tuple[int, int, int]]:
        """Yield K_jj, and bounds within 2 of the least and the largest K_ij, of each column j."""
        fine, last = self.bits + 64, len(self.w) - 1
        if self.flat:
            low = min(self.rates)
            for w, e, k, rate in zip(self.w, self.e, self.k, self.rates, strict=True):
                # A larger e_j leaves less to share, so the diagonal is the column's largest.
                diagonal = w + e + (rate * k >> fine)
                yield diagonal, w + (low * k >> fine), diagonal + 2
            return
        # low, high: least and largest rate of the earlier rows, which share to column j.
        low, high = 1 << fine + self.bits, 0
        entries = zip(self.w, self.e, self.k, self.rates, strict=True)
        for j, (w, diagonal, k, rate) in enumerate(entries):
            least, most = low * k >> fine, -(-high * k >> fine)
            if 0 < j < last:
                yield diagonal, min(diagonal, w, least), max(diagonal, w, most)
            else:
                # No row is before the first category, and none after the last one.
                ends_ = [diagonal, *([least, most] if j else []), *([w] if j < last else [])]
                yield diagonal, min(ends_), max(ends_)
            low, high = min(low, rate), max(high, rate + 1)

    def drift(self) -> Fraction:
        """Return an upper bound of the total variation between q K and q."""
        total, distance, flat, bits = sum(self.q), 0, self.flat, self.bits
        # Mass of the rows below (they give w), and sum of mass rate of the rows above (they share).
        below, received = total, 0
        if flat:
            received = sum([a * rate >> bits for a, rate in zip(self.q, self.rates, strict=True)])
        entries = zip(self.q, self.w, self.e, self.k, self.rates, strict=True)
        for mass, w, e, k, rate in entries:
            below -= 0 if flat else mass
            distance += abs(w * below + e * mass + (received * k >> 64) - (mass << bits))
            received += 0 if flat else mass * rate >> bits
        # Rounding of shares and of received mass changes each category by less than 2 sum(q).
        return Fraction(distance + 2 * len(self.q) * total, 2 * total << bits)


def layers(setting: Setting, bits: int) -> Layers:
    """Return the weights of Algorithm 1, or of leximin (flat), over T = 2^bits.

    With r slightly below e^epsilon and masses Q ascending, of sum S, Algorithm 1 has
    w_i = R_i Q_i / (r Q_i + Q_(i+1) + ...), R_i = T - w_1 - ... - w_(i-1), e_i = r w_i, k = Q;
    leximin has w_i = min(T Q_i / ((r - 1) Q_i + S), one level for all) and e_i = (r - 1) w_i.
    """
    masses, unit = integer_weights(setting["public"], len(setting["public"]))
    q = sorted([(mass << bits) // unit for mass in masses])
    epsilon, size, total, n = number(setting["epsilon"]), 1 << bits, sum(q), len(q)
    # r - 1 keeps 64 bits for small epsilon; up is r less (r - 1) 2^-40, over 2^shift.
    fine = max(128, 64 + epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    r = Fraction(exp(epsilon, 512 + 2 * int(epsilon))[0] * (1 << fine) // 1, 1 << fine)
    shift = 104 + max(0, -floor(log2(epsilon)))
    up = (r - (r - 1) / (1 << 40)) * (1 << shift) // 1
    w, remaining, after = list[int](), size, total
    if setting["objective"] == "minimax":
        for mass in q[:-1]:
            after -= mass
            w.append((remaining * mass << shift) // (up * mass + (after << shift)))
            remaining -= w[-1]
        return Layers(bits, False, q, [*w, 0], [*(up * a >> shift for a in w), remaining], q)
    more = up - (1 << shift)
    for i, mass in enumerate(q[:-1]):
        most = (size * mass << shift) // (more * mass + (total << shift))
        if ((n - i) * most - remaining << shift) + more * most >= 0:
            break
        remaining -= most
        w.append(most)
    # One level for all later categories, and k such that q is invariant.
    high, first = (remaining << shift) // (more + (n - len(w) << shift)), len(w)
    gain, level = (size << shift) - high * more, high * total << shift
    k = [max(0, a * gain - level) for a in q[first:]]
    drop = max(0, sum(k).bit_length() - bits)
    k = [a >> drop for a in k]
    w += [high] * (n - first)
    e = [more * a >> shift for a in w]
    return Layers(bits, True, q, w, e, [0] * first + (k if any(k) else q[first:]))


def decide_layers(table: Layers, exp_to: Growth) -> tuple[Verdict, Fraction]:
    """Decide that no entry of a column exceeds e^epsilon times another; return the least K_ii, too.

    The verdict is ``at`` a category by ascending mass, and has ``missed`` the prior's drift.
    """
    (low, _, unit), count = exp_to(64 + table.bits), len(table.q)
    diagonal, slack, at = 1 << table.bits, unit << table.bits, 0
    for j, (k_jj, least, most) in enumerate(table.columns()):
        diagonal, column_slack = min(diagonal, k_jj), low * least - unit * most
        if column_slack < slack:
            slack, at = column_slack, j
    worst = Fraction(slack, unit << table.bits)
    if slack < 0:
        raise Refused(f"not private: category {at} by ascending mass", at, -worst)
    drift = table.drift()
    if drift > RESIDUAL:
        raise Refused(f"the prior is kept up to {float(drift):.3g} only")
    verdict = Verdict(count * count * (count - 1), worst, at, drift)
    return verdict, Fraction(diagonal, 1 << table.bits)


def prior(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of a public prior's kernel; of a closed form, of min K_ii alone.

    Rows "worst": 1 - kept <= t, and "lemma 3": kept <= R q / (R q + 1 - q), kept = min K_ii.
    """
    if stored is None or "weights" in stored:
        return invariant_kernel(setting, stored, exp_epsilon)
    count, bits = len(setting["public"]), integer(stored["bits"], 1, 4096)
    require_size(count, 1 + bits // 64)
    table, exp_to = layers(setting, bits), growth(number(setting["epsilon"]), exp_epsilon)
    verdict, least_diagonal = decide_layers(table, exp_to)
    program = Program([], {("t",): (0, 1), ("kept",): (0, 2)}, {("t",): 1})
    program.rows["lemma 3",] = Row({("kept",): 1}, most_kept(setting, exp_epsilon))
    program.rows["worst",] = Row({("t",): -1, ("kept",): -1}, -1)
    program.point = {("t",): 1 - least_diagonal, ("kept",): least_diagonal}
    program.private = lambda: verdict
    program.neighbours = among(None, count)
    program.note = f" (the prior kept up to {float(verdict.missed):.3g} in total variation)"
    return program


def population(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of the prior-invariant kernel nearest to users' pmfs p_u, of weights w_u.

    "shortfall", u, j: p_uj - (p_u K)_j <= s_uj; "worst case", i: K_ii >= lemma 3's bound - slack.
    """
    n, count = len(setting["public"]), len(setting["users"])
    require_size(count, n, n)
    users, shares = matrix(setting["users"], count, n), shares_of(setting["weights"], count)
    mean = [sum(w * p[i] for w, p in zip(shares, users, strict=True)) for i in range(n)]
    program = invariant_kernel(setting, stored, exp_epsilon, mean)
    slack = number(setting["slack"])
    low, high = [min(0, slack - most) for most in most_kept(setting, exp_epsilon)]
    for i in range(n):
        program.rows["worst case", i] = Row({("K", i, i): -1}, (high, low), promised=False)
    if setting["objective"] == "diagonal":
        return program
    program.cost = {}
    for (u, p), j in product(enumerate(users), range(n)):
        if p[j]:
            output: dict[Variable, Any] = {("K", i, j): a for i, a in enumerate(p) if a}
            add_shortfall(program, ("shortfall", u, j), ("s", u, j), output, p[j])
            program.cost["s", u, j] = shares[u]
    return program


def decide_box(pmf: list[int], q: list[int], exp_to: Growth) -> Verdict:
    """Decide q_j / h <= r_j <= q_j h for each category, h = e^(epsilon/2), r and q normalised.

    Any two distributions r in this box are within a factor e^epsilon of each other. A refusal
    names two variables: category j of r is j, of q it is j plus their number.
    """
    total, mass, n = sum(pmf), sum(q), len(q)
    weights = [*(r * mass for r in pmf), *(a * total for a in q)]
    columns = [[*range(n)], [*range(n, 2 * n)]]
    return decide_ratios(weights, total * mass, columns, exp_to)


def mollifier(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of the pmf r nearest to p with q / h <= r <= q h, h = e^(epsilon/2).

    "distance", j: p_j - r_j <= z_j; "above", j: r_j <= q_j h; "below", j: q_j / h <= r_j.
    """
    if exp_epsilon:
        raise Malformed("its coefficients are in e^(epsilon / 2)")
    n, half = len(setting["public"]), number(setting["epsilon"]) / 2
    require_size(3, n)
    q, p = (shares_of(setting[name], n) for name in ("public", "distribution"))
    low, high = exp(half)
    program = Program([([("r", j) for j in range(n)], 1)], {}, {("z", j): 1 for j in range(n)})
    if stored:
        pmf = [integer(weight, 0, 1 << 4 * LONGEST) for weight in stored]
        if len(pmf) != n or not sum(pmf):
            raise Malformed("the weights are not those of the categories")
        program.point = {("r", j): Fraction(weight, sum(pmf)) for j, weight in enumerate(pmf)}
        masses = integer_weights(setting["public"], n)[0]
        program.private = partial(decide_box, pmf, masses, growth(half))
    for j, a in enumerate(q):
        add_shortfall(program, ("distance", j), ("z", j), {("r", j): 1}, p[j])
        program.written["above", j] = Row({("r", j): 1}, (a * low, a * high))
        program.written["below", j] = Row({("r", j): -1}, (-a / low, -a / high))
    program.neighbours = "between all users whose r keep these rows"
    return program


# --- noise on all integers: p(x) = p(-x) = Pr[Z = x] --------------------------------------------


class Noise:
    """Symmetric noise in proportion to w(|x|) up to N; beyond, p(x + D) = ratio p(x).

    All sums over Z are finite ones: those of the last D distances stand for their repetitions, and
    count 1 / (1 - ratio) times.
    """

    def __init__(self, weights: list[int], ratio: Fraction, most: int) -> None:
        self.weights, self.ratio, self.most, self.last = weights, ratio, most, len(weights) - 1
        if self.last < most or not 0 <= ratio < 1 or not any(weights):
            raise Malformed("the weights and the ratio are no noise on the integers")
        above, below = ratio.as_integer_ratio()
        # Over a common scale, with one period beyond N.
        self.extended = [w * below for w in weights] + [w * above for w in weights[-most:]]
        self.inner, self.outer = below - above, below
        masses = (w * (2 if x else 1) * self.scale(x) for x, w in enumerate(self.extended))
        self.total = sum(islice(masses, self.last + 1))

    def scale(self, x: int) -> int:
        """Return what a distance counts: that of a repeated period for its repetitions, too."""
        return self.outer if x > self.last - self.most else self.inner

    def spent(self, shift: int, source: list[int], target: list[int]) -> int:
        """Return unit total sup_S (Pr[Z in S] - e^epsilon Pr[Z + shift in S]), a shift in 1..D.

        The sides are `extended`, times unit and times unit e^epsilon.
        """
        core, end = self.last - self.most, self.last + shift + 1
        # p(x) against p(x + d) for x >= 0; then p(-x) against p(d - x) for x > 0.
        right = [*map(sub, source, target[shift:end])]
        reverse = [*map(sub, source[1:end], [*target[shift - 1 :: -1], *target[1:]])]
        split_right, split_left = max(0, core + 1), core + shift
        inner = [w for w in (*right[:split_right], *reverse[:split_left]) if w > 0]
        outer = [w for w in (*right[split_right:], *reverse[split_left:]) if w > 0]
        return sum(inner) * self.inner + sum(outer) * self.outer

    def decide(self, delta: Fraction, exp_to: Growth) -> Verdict:
        """Decide that no shift up to D spends more than delta at e^epsilon."""
        low, high, unit = exp_to(64 + 2 * self.total.bit_length())
        source, target = ([w * by for w in self.extended] for by in (unit, low))
        total, most, at = unit * self.total, -1, 0
        for shift in range(1, self.most + 1):
            spent = self.spent(shift, source, target)
            if spent > delta * total:
                surely = self.spent(shift, source, [w * high for w in self.extended])
                why = "is not" if surely > delta * total else "is not shown"
                why = f"not private: the noise {why} within delta for a shift by {shift}"
                raise Refused(why, shift, Fraction(spent, total) - delta)
            if spent > most:
                most, at = spent, shift
        return Verdict(2 * self.most, delta - Fraction(most, total), at)

    def mean(self, loss: Any) -> Fraction:
        """Return the mean loss, tails included."""
        ratio, total = self.ratio, Fraction(0)
        complement, (above, below) = 1 - ratio, ratio.as_integer_ratio()
        listed_, scale = integer_weights(loss, len(loss)) if isinstance(loss, list) else ([0], 1)
        # A listed loss is summed over so many repetitions, in numbers of so many bits each.
        size = len(listed_) // self.most * below.bit_length()
        require_size(1 + len(listed_) // 100, 1 + size // 64)
        require_size(self.most, 8, exact_cost(size))
        # 1, j and j^2 summed over repetitions j with weight ratio^j.
        sums = 1 / complement, ratio / complement**2, ratio * (1 + ratio) / complement**3
        for x, weight in enumerate(self.weights):
            if x <= self.last - self.most or not ratio:
                mean = noise_loss(loss, x)
            elif isinstance(loss, list):
                # Horner's rule from the last entry, which stands for all beyond, in integers.
                power, rest = below - above, listed_[-1] * below
                for y in reversed(range(x, len(listed_), self.most)):
                    power *= below
                    rest = rest * above + listed_[y] * power
                mean = Fraction(rest, power * scale)
            else:
                mean = x * sums[0] + self.most * sums[1]
                if loss == "squared":
                    mean = x * x * sums[0] + 2 * x * self.most * sums[1] + self.most**2 * sums[2]
            total += mean * weight * (2 if x else 1)
        return total * self.inner * self.outer / self.total


def noise_loss(loss: Any, x: int) -> Fraction:
    """Return c(x) of a distance: a listed loss keeps its last value."""
    if isinstance(loss, list):
        return number(loss[min(x, len(loss) - 1)])
    return Fraction(x if loss == "absolute" else x * x)


def noise(setting: Setting, stored: Any, exp_epsilon: Between | None, proof: Any) -> Program:
    """Return the program of symmetric noise on Z with the least mean loss.

    ("p", x): Pr[|Z| = x] of x = 0..L + D; ("beyond",): of all others. Row ("privacy", d) is the sum
    of p(x) <= e^epsilon p(x + d) + s_d(x), sum_x s_d(x) <= delta, with the multipliers of a proof:

        sum_x lambda_d(x) (p(x) - e^epsilon p(x + d)) <= delta max_x lambda_d(x)

    for x in -L..L, and one more multiplier for the sum over all x > L.
    """
    if stored is None:
        raise Malformed("noise has no exact optimum")
    most, loss, delta = setting["sensitivity"], setting["loss"], number(setting["delta"])
    require_size(most, len(stored["weights"]))
    weights = [integer(weight, 0, 1 << 4 * LONGEST) for weight in stored["weights"]]
    ratio = number(stored["ratio"])
    bits = max(map(int.bit_length, weights)) + ratio.denominator.bit_length()
    require_size(len(weights), 1 + bits // 64)
    require_size(most, len(weights), 1 + bits // 512)
    law = Noise(weights, ratio, most)
    last = integer(proof.get("last", most), 1, MOST)
    require_size(last + most, 10)
    low, high = exp_epsilon or exp(number(setting["epsilon"]))
    variables: list[Variable] = [*(("p", x) for x in range(last + most + 1)), ("beyond",)]
    cost: dict[Variable, Number] = {v: noise_loss(loss, x) for x, v in enumerate(variables)}
    program = Program([(variables, 1)], {}, cost)
    if "rows" in proof:
        program.written = noise_rows(proof, most, last, delta, (low, high))
    inside = range(min(law.last - most, last + most) + 1)
    unit = Fraction(law.inner * law.outer, law.total)
    masses = {("p", x): law.weights[x] * (2 if x else 1) * unit for x in inside}
    program.point = {**masses, ("beyond",): 1 - sum(masses.values())}
    program.mean = partial(law.mean, loss)
    program.private = partial(law.decide, delta, growth(number(setting["epsilon"]), exp_epsilon))
    program.neighbours = f"between integers up to {most} apart"
    return program


def noise_rows(
    proof: Any, most: int, last: int, delta: Fraction, ratio: Between
) -> dict[Name, Row]:
    """Return for each shift d up to D (``most``) the sum of its rows with a proof's multipliers.

    For these rows see `noise`. Of each d, "rows" has positions x, of size at most L (``last``), and
    multipliers; "ends" has one multiplier for all beyond.
    """
    rows, size = dict[Name, Row](), 0
    ends = vector(proof["ends"], most)
    for d, places, multipliers in proof["rows"]:
        d, terms = integer(d, 1, most), defaultdict[Variable, list[Number]](lambda: [0, 0])
        places = places and integers(places, -last, last)
        multipliers, end = vector(multipliers, len(places)), ends[d - 1]
        longest = max((y.denominator.bit_length() for y in (*multipliers, end)), default=0)
        size += (len(places) + (most if end else 0)) * exact_cost(longest)
        require_size(size, 5)
        if ("privacy", d) in rows or len(set(places)) < len(places) or min([*multipliers, end]) < 0:
            raise Malformed("a row stands twice in the proof, or has a multiplier below 0")
        for x, multiplier in zip(places, multipliers, strict=True):
            terms["p", abs(x)][0] += multiplier / (2 if x else 1)
            terms["p", abs(x + d)][1] += multiplier / (2 if x + d else 1)
        if end:
            # p(x) up to L + d, and beyond it p(x) - e^epsilon p(x).
            for x in range(last + 1, last + most + 1):
                terms["p", x][0] += end / 2
                terms["p", x][1] += end / 2 if x > last + d else 0
            terms["beyond",] = [end / 2, end / 2]
        both = {
            v: (source - ratio[1] * target, source - ratio[0] * target)
            for v, (source, target) in terms.items()
        }
        rows["privacy", d] = Row(dict(both), delta * max([*multipliers, end]))
    return rows


# --- findings: published statements that are false ---------------------------------------------

Value = Any  # of a formula: a number, an enclosure, a list of these, or a truth value
FORMULA_BITS = 1 << 16  # largest number in a formula
OPERATIONS: dict[type, Callable[..., Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: Fraction(a) / b,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}
RELATIONS: dict[type, Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}


class Formulas:
    """Named formulas over integers, evaluated on their syntax trees and never run as Python.

    They may use + - * / // % **, comparisons, "a if b else c", lists and their entries, each other
    as in q(m - 1), and exp, comb, range, len, sum, min, max. A number is exact, or an enclosure if
    it depends on exp; a comparison that an enclosure leaves undecided is refused.
    """

    def __init__(self, lines: list[str], values: dict[str, Value]) -> None:
        self.definitions: dict[str, tuple[list[str], ast.expr]] = {}
        self.values: dict[Any, Value] = {(name, ()): value for name, value in values.items()}
        self.steps = 0
        for line in lines:
            head, _, body = line.partition(" = ")
            signature: Any = self.parsed(head)
            names = [name.id for name in getattr(signature, "args", [])]
            known = ("exp", "comb", "range", "len", "sum", "min", "max", *values, *self.definitions)
            if getattr(signature, "func", signature).id in known:
                raise Malformed(f"{head[:40]!r} is defined already")
            self.definitions[getattr(signature, "func", signature).id] = names, self.parsed(body)

    def parsed(self, text: str) -> ast.expr:
        """Return the syntax tree of a formula."""
        require_size(len(text), MOST // 1000)
        try:
            with warnings.catch_warnings():
                # Python's compiler may warn about a text such as "1if 2else 3".
                warnings.simplefilter("ignore")
                return ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            raise Malformed(f"{text[:60]!r} is no formula") from None

    def count(self, more: int) -> None:
        """Count the steps of the next operation, and refuse too many."""
        self.steps += 1 + more
        require_size(self.steps)

    def listed(self, elements: list[Value]) -> list[Value]:
        """Return the list, refused if lists are nested more than twice."""
        sublists = [element for element in elements if isinstance(element, list)]
        if any(isinstance(one, list) for element in sublists for one in element):
            raise Malformed("a formula holds a list of lists of lists")
        self.count(sum(map(len, sublists)))
        return elements

    def applied(self, operation: Callable[..., Number], *operands: Value) -> Value:
        """Return the result of an operation; its extremes are at ends of the operands."""
        terms = [n for a in operands for end in ends(a) for n in number(end).as_integer_ratio()]
        size = max(map(int.bit_length, terms))
        self.count(size // 16)
        require_size(size, MOST // FORMULA_BITS)
        results = [operation(*corner) for corner in product(*map(ends, operands))]
        if not any(isinstance(a, tuple) for a in operands):
            return results[0]
        if operation in (operator.mod, operator.floordiv):
            raise Refused("a remainder of a number that is not known exactly")
        if operation is OPERATIONS[ast.Div] and min(ends(operands[1])) < 0 < max(ends(operands[1])):
            raise ZeroDivisionError
        return min(results), max(results)

    def kept(self, arg: Value) -> Any:
        """Return a value by which results are kept, and count its entries and their bits."""
        if isinstance(arg, list):
            # An entry takes about four steps of other work.
            self.count(4 * len(arg))
            return (list, *map(self.kept, arg))
        parts = [n for end in ends(arg) for n in (end.numerator, end.denominator)]
        self.count(max(map(int.bit_length, parts)) // 64)
        # True equals 1, and is none.
        return (bool, arg) if isinstance(arg, bool) else arg

    def call(self, name: str, args: list[Value]) -> Value:
        """Return the value of a formula or of a function for its arguments."""
        key = name, tuple(map(self.kept, args))
        if key not in self.values and name in self.definitions:
            names, body = self.definitions[name]
            self.values[key] = self.value(body, dict(zip(names, args, strict=True)))
        if key in self.values:
            return self.values[key]
        if name == "exp":
            self.count(999)
            low, high = ends(args[0])
            return self.applied(lambda end: end, (exp(number(low))[0], exp(number(high))[1]))
        if name == "comb":
            n, k = (integer(number_, 0, 5000) for number_ in args)
            self.count(n)
            return comb(n, k)
        if name == "range":
            numbers = range(*(integer(end, -MOST, MOST) for end in args))
            self.count(len(numbers))
            return [*numbers]
        # sum(list) or sum(a, b): an enclosure is a tuple, not a list.
        values = args[0] if len(args) == 1 and isinstance(args[0], list) else args
        if name in ("sum", "min", "max"):
            operation = {"sum": operator.add, "min": min, "max": max}[name]
            start = [0] if name == "sum" else []
            return reduce(partial(self.applied, operation), [*start, *values])
        return {"len": len}[name](values)

    def sides(self, node: ast.expr, names: dict[str, Value]) -> tuple[bool, Value, Value]:
        """Return whether a comparison holds, and its sides; refuse it if undecided."""
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            raise Malformed("a comparison of two sides is missing")
        lhs, rhs = self.value(node.left, names), self.value(node.comparators[0], names)
        for end in (*ends(lhs), *ends(rhs)):
            self.count(number(end).denominator.bit_length() >> 6)
        relation = RELATIONS[type(node.ops[0])]
        outcomes = {relation(number(a), number(b)) for a, b in product(ends(lhs), ends(rhs))}
        meet = ends(lhs)[0] <= ends(rhs)[1] and ends(rhs)[0] <= ends(lhs)[1]
        # If two enclosures overlap, equality of the numbers is undecided.
        undecided = (
            relation is operator.eq and meet and isinstance(lhs, tuple) | isinstance(rhs, tuple)
        )
        if len(outcomes) > 1 or undecided:
            raise Refused("two numbers are too close to be distinguished")
        return outcomes.pop(), lhs, rhs

    def value(self, node: ast.expr, names: dict[str, Value]) -> Value:
        """Return the value of a node of a formula, for the names bound around it."""
        self.count(0)
        match node:
            case ast.Constant(value=int(number_)):
                return number_
            case ast.Name(id=name):
                return names[name] if name in names else self.call(name, [])
            case ast.List(elts=elements):
                return self.listed([self.value(operand, names) for operand in elements])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.applied(operator.sub, 0, self.value(operand, names))
            case ast.BinOp(left=lhs, op=ast.Pow(), right=rhs):
                n = integer(self.value(rhs, names), -FORMULA_BITS, FORMULA_BITS)
                times = partial(self.applied, operator.mul)
                number_ = reduce(times, [self.value(lhs, names)] * abs(n), 1)
                return number_ if n >= 0 else self.applied(OPERATIONS[ast.Div], 1, number_)
            case ast.BinOp(left=lhs, op=op, right=rhs):
                sides = [self.value(operand, names) for operand in (lhs, rhs)]
                return self.applied(OPERATIONS[type(op)], *sides)
            case ast.Compare():
                return self.sides(node, names)[0]
            case ast.IfExp(test=test, body=lhs, orelse=rhs):
                condition = self.value(test, names)
                if isinstance(condition, list | tuple):
                    raise Malformed("a list or an enclosure is neither true nor false")
                return self.value(lhs if condition else rhs, names)
            case ast.Subscript(value=operand, slice=index):
                listed = self.value(operand, names)
                if not isinstance(listed, list):
                    raise Malformed("a formula takes a part of what is no list")
                return listed[integer(self.value(index, names), 0, MOST)]
            case ast.GeneratorExp(elt=operand, generators=[each]) | ast.ListComp(operand, [each]):
                name, values = each.target, self.value(each.iter, names)
                if not isinstance(name, ast.Name) or each.ifs:
                    raise Malformed("a formula runs over more than one name")
                return self.listed([self.value(operand, {**names, name.id: one}) for one in values])
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(name, [self.value(operand, names) for operand in args])
        raise Malformed(f"a formula holds {type(node).__name__}")


def digits(value: Value) -> str:
    """Show a value as a float, or by its number of digits."""
    end = number(ends(value)[0])
    try:
        return repr(float(end))
    except OverflowError:
        return f"a number of about {int(abs(int(end)).bit_length() * 0.30103) + 1} digits"


def finding(file: dict[str, Any], _: Any) -> Iterator[str]:
    """Show that a published statement is false: a witness meets its assumptions, not its claim.

    A design, if the file has one, is decided to be private; formulas call its integer weights
    ``weights``, a list for each input, over ``total``, and its objective ``value``. All that is
    ``given`` holds and the ``claim`` does not. Compare the formulas with the paper yourself.
    """
    values: dict[str, Value] = {}
    if saved := file.get("design"):
        kind, setting, table = saved["kind"], saved["setting"], saved["table"]
        allowed(kind, setting)
        program = KINDS[kind](setting, table, None, {})
        count = decide(program).rows
        yield f"private: {kind}, {count} inequalities decided exactly, {program.neighbours}"
        yield about(setting)
        rows = [[*map(number, row)] for row in table["weights"]]
        values = {"weights": rows, "total": number(table["total"]), "value": program.value}
    formulas = Formulas(file["formulas"], values)
    for text in file["given"]:
        if not formulas.sides(formulas.parsed(text), {})[0]:
            raise Refused(f"{text} does not hold")
        yield f"given: {text}"
    claim = str(file["claim"])
    holds, lhs, rhs = formulas.sides(formulas.parsed(claim), {})
    shown = f"{claim}, with {' and '.join(map(digits, (lhs, rhs)))}"
    if holds:
        raise Refused(f"the statement holds here: {shown}")
    yield f"refuted: {file['statement']}"
    yield f"false: {shown}"


# --- linear queries in the local model: V y estimates W x from the counts y of outputs ----------


def gram_matrix(setting: Setting, n: int) -> list[list[Fraction]]:
    """Return G = W'W for queries W by name (histogram, prefix, range, marginals) or as a table."""
    queries = setting["queries"]
    named: dict[str, Callable[[int, int], int]] = {
        "histogram": lambda u, v: int(u == v),
        "prefix": lambda u, v: n - max(u, v),
        "range": lambda u, v: (min(u, v) + 1) * (n - max(u, v)),
        "marginals": lambda u, v: 1 << (n.bit_length() - 1 - (u ^ v).bit_count()),
    }
    if isinstance(queries, str):
        if queries == "marginals" and n & (n - 1):
            raise Malformed(f"there are {n} categories; marginals are of a power of 2")
        return [[Fraction(named[queries](u, v)) for v in range(n)] for u in range(n)]
    require_size(len(queries), n, n)
    rows = matrix(queries, len(queries), n)
    return times(zip(*rows, strict=True), rows)


def times(a: Any, b: Any) -> list[list[Any]]:
    """Return the product of two matrices."""
    columns = list(zip(*b, strict=True))
    return [[sum(map(mul, line, column)) for column in columns] for line in a]


def inverse(a: list[list[int]]) -> tuple[list[list[int]], int]:
    """Return R and d, R / d the inverse of a positive semidefinite matrix of integers.

    Rows that depend on earlier ones are 0: the inverse is that of the block of the others.
    """
    n, last = len(a), 1
    # Fraction-free Gauss-Jordan elimination of [a | I] (Bareiss): every division is exact.
    lines = [[*line, *[0] * n] for line in a]
    for i, line in enumerate(lines):
        pivot = line[i]
        if pivot <= 0:
            line[:] = [0] * (2 * n)
            continue
        line[n + i] = last
        # Of [a | I], columns up to i are those of I by now, and those after n + i still.
        for other in lines[:i] + lines[i + 1 :]:
            factor = other[i]
            for c in range(i + 1, n + i + 1):
                other[c] = (pivot * other[c] - factor * line[c]) // last
        last = pivot
    return [line[n:] for line in lines], last


def second_moments(
    table: WeightTable, p: list[Fraction], gram: list[list[Fraction]]
) -> list[Fraction]:
    """Return sum_o Q_ou (Q_o . p)^-2 Q_o' M^-1 G M^-1 Q_o of each category u; see `workload`.

    With integers w = total Q_o and s, where s / 2^96 is 1 / (Q_o . p) rounded down (another
    unbiased decoder, of hardly larger variance), M is N / (2^96 total^2), N = sum s w w'. With
    N^-1 = R / d the sum is total times that of s^2 w_u (R w)' G R w, over d^2.
    """
    n, total, (entries, scale) = len(p), table.total, scaled(v for line in gram for v in line)
    g = [entries[u * n : u * n + n] for u in range(n)]
    columns = [[*table.weights[o :: len(table.weights) // n]] for o in range(table.starts[1])]
    lines = [(floor((total << 96) / sum(map(mul, w, p))), w) for w in columns if any(w)]
    information = [[sum(s * w[u] * w[v] for s, w in lines) for v in range(n)] for u in range(n)]
    # Elimination takes n^3 products of numbers n times as long; a product about their square.
    bits = max(map(int.bit_length, map(max, information)))
    require_size(n, n, n, 2 * (1 + (bits >> 7) ** 2))
    r, d = inverse(information)
    # If M is singular, the queries still have a decoder if G is in its range.
    if not all(map(any, r)) and times(information, times(r, g)) != [
        [d * value for value in line] for line in g
    ]:
        raise Refused("the outputs do not tell all categories apart")
    sums = [0] * n
    for s, w in lines:
        x = [sum(map(mul, line, w)) for line in r]
        norm = s * s * sum(a * sum(map(mul, line, x)) for a, line in zip(x, g, strict=True))
        sums = [a + norm * b for a, b in zip(sums, w, strict=True)]
    return [Fraction(total * a, d * d * scale) for a in sums]


def workload(setting: Setting, stored: Any, exp_epsilon: Between | None, proof: Any) -> Program:
    """Return the program of the kernel Q of least variance F - sum p_u G_uu, F = tr(M^-1 G).

    M = sum over outputs o of Q_o Q_o' / (Q_o . p). F is convex, and at least its tangent at X,
    2 tr(X G) - tr(X G X'M). Rows of Q are sums of positive multiples of s in {1, e^epsilon}^n: if
    (lambda . s)(p . s) >= s'X G X's for all s, then F >= 2 tr(X G) - sum lambda: row "tangent".
    """
    n = integer(setting["categories"], 2, 64)
    if not stored:
        raise Malformed("it is a convex program, not a linear one")
    outputs = len(stored["weights"][0])
    require_size(n, n, outputs)
    table = table_of(stored, [outputs] * n, [1] * (n * outputs))
    gram, worst = gram_matrix(setting, n), setting["objective"] == "worst-case"
    stated_prior = proof["prior"] if worst and proof else setting["prior"]
    p = shares_of([1] * n if stated_prior is None else stated_prior, n)
    diagonal = [gram[u][u] for u in range(n)]
    losses = [a - b for a, b in zip(second_moments(table, p, gram), diagonal, strict=True)]
    value = max(losses) if worst else sum(map(mul, losses, p))
    program = Program([], {("t",): (0, 2 * value + 1)}, {("t",): 1}, point={("t",): value})
    epsilon, program.neighbours = number(setting["epsilon"]), among(None, n)
    _, high = exp_epsilon or exp(epsilon)
    variable = [[*range(u * outputs, (u + 1) * outputs)] for u in range(n)]
    program.private = partial(decide_table, table, variable, None, growth(epsilon, exp_epsilon), 0)
    if not proof or "multipliers_of_categories" not in proof:
        return program
    x, lam = matrix(proof["inverse"], n, n), vector(proof["multipliers_of_categories"], n)
    tilted = times(x, times(gram, list(map(list, zip(*x, strict=True)))))
    at_most_at_all_patterns(tilted, lam, p, Fraction(-floor(-high * (1 << 64)), 1 << 64))
    least = 2 * sum(times(x, gram)[u][u] for u in range(n)) - sum(lam)
    least -= sum(map(mul, p, diagonal))
    program.rows["tangent",] = Row({("t",): -1}, -least)
    # The box repeats the row: a small bound would drown in a solver's tolerance.
    program.boxes["t",] = (max(Fraction(0), least), 2 * value + 1)
    return program


def at_most_at_all_patterns(
    b: list[list[Fraction]], lam: list[Fraction], p: list[Fraction], exp_epsilon: Fraction
) -> None:
    """Refuse lambda if s'b s > (lambda . s)(p . s) for an s in {1, e^epsilon}^n (Gray code)."""
    n = len(lam)
    bits = max(value.denominator.bit_length() for line in (lam, p, *b) for value in line)
    require_size(1 << n, n, exact_cost(bits))
    # In integers: s over the denominator of e^epsilon; b, lambda and p over their own.
    step, below = exp_epsilon.numerator - exp_epsilon.denominator, exp_epsilon.denominator
    entries, right_scale = scaled(value for line in b for value in line)
    square = [entries[i * n : i * n + n] for i in range(n)]
    (paid, of_lam), (mass, of_p) = scaled(lam), scaled(p)
    left_scale = of_lam * of_p
    sides = [below * sum(line) for line in square]
    total, pays, weighs = below * sum(sides), below * sum(paid), below * sum(mass)
    sign = [1] * n
    for code in range(1, 1 << n):
        # The lowest set bit of the counter is the sign that the Gray code flips.
        i = (code & -code).bit_length() - 1
        change = sign[i] * step
        sign[i] = -sign[i]
        total += change * (2 * sides[i] + change * square[i][i])
        sides = [side + change * value for side, value in zip(sides, square[i], strict=True)]
        pays, weighs = pays + change * paid[i], weighs + change * mass[i]
        if total * left_scale > pays * weighs * right_scale:
            raise Refused("the multipliers of categories do not pay for a pattern")


# --- tables of unknown kinds: the file lists inputs, neighbours and losses ----------------------


def any_table(setting: Setting, stored: Any, exp_epsilon: Between | None, _: Any) -> Program:
    """Return the program of the table of least loss over inputs that the file lists.

    ("K", v) is the probability of all n_v outputs of variable v; those of an input sum to 1.
    "privacy", g, i, j: K_v / n_v <= e^epsilon K_u / n_u for variables v, u at positions i, j of
    group g. For delta > 0 "privacy", e, d, i: K_v / n_v - e^epsilon K_u / n_u <= s of entry
    i of edge e, in direction d, and "delta", e, d: the sum of counts times s is at most delta.
    "losses", x: the loss of input x is at most t. Whether these are the intended neighbours and
    losses is for the reader to check.
    """
    inputs, losses = setting["inputs"], setting["losses"]
    sizes = [integer(n, 1, MOST) for n in inputs["sizes"]]
    counts_ = [integer(n, 1, 1 << 99_999) for n in inputs["counts"]]
    size, starts = sum(sizes), list(accumulate(sizes, initial=0))
    require_size(size)
    if len(counts_) != size:
        raise Malformed("counts are not one for each variable")
    epsilon, delta = number(setting["epsilon"]), number(setting["delta"])
    groups, edges = listed_neighbours(inputs, starts, counts_, delta > 0)
    pmfs: list[Pmf] = [([("K", v) for v in range(a, b)], 1) for a, b in pairwise(starts)]
    costs, (low, high) = vector(losses["costs"], size), exp_epsilon or exp(epsilon)

    @cache
    def written() -> dict[Name, tuple[int, int]]:
        """The names of all rows; of "privacy", v and u of K_v / n_v <= e^epsilon K_u / n_u."""
        require_size(sum(len(group) ** 2 for group in groups))
        named = dict[Name, tuple[int, int]]()
        for g, group in enumerate(groups):
            both = product(enumerate(group), repeat=2)
            named |= {("privacy", g, i, j): (v, u) for (i, v), (j, u) in both if v != u}
        for (e, edge), d in product(enumerate(edges), (0, 1)):
            both = enumerate(zip(edge[d], edge[1 - d], strict=True))
            named |= {("privacy", e, d, i): (v, u) for i, (v, u) in both if v != u}
            named["delta", e, d] = e, d
        return named

    def row(name: Name) -> Row:
        if name not in written():
            no_row(name)
        v, u = written()[name]
        if name[0] == "delta":
            return Row({("s", v, u, i): n for i, n in enumerate(edges[v][2])}, delta)
        n, m = counts_[v], counts_[u]
        terms: dict[Variable, Any] = {("K", v): Fraction(1, n), ("K", u): (-high / m, -low / m)}
        return Row(terms | ({("s", *name[1:]): -1} if edges else {}))

    program = Program(pmfs, {}, {}, written, row)
    for e, edge in enumerate(edges):
        program.boxes |= {("s", e, d, i): (0, 1) for d in (0, 1) for i in range(len(edge[2]))}
    slacks, point = [*program.boxes], program.point
    table = table_of(stored, sizes, counts_) if stored else None
    if table:
        one_output = [Fraction(w, table.total) for w in table.weights]
        point |= {("K", v): n * w for v, (n, w) in enumerate(zip(counts_, one_output, strict=True))}
        for _, e, d, i in slacks:
            v, u = edges[e][d][i], edges[e][1 - d][i]
            point["s", e, d, i] = max(0, one_output[v] - low * one_output[u])
    of_inputs = {("losses", x): {v: costs[v[1]] for v in row} for x, (row, _) in enumerate(pmfs)}
    weights = losses["weights"]
    shares = None if weights is None else shares_of(weights, len(sizes))
    add_losses(program, of_inputs, shares, (min(costs), max(costs)))
    # Of an input beside itself, outputs that stay the same make no neighbour.
    listed = {v for group in groups if len({*group}) > 1 for v in group} | {
        v for one, two, _ in edges if one != two for v in one + two
    }
    isolated = sum(listed.isdisjoint(range(a, b)) for a, b in pairwise(starts))
    program.neighbours = f"among {len(groups) or len(edges)} groups of neighbours that it lists"
    program.neighbours += f"; {isolated} inputs have no neighbour" if isolated else ""
    if table:
        exp_to, judged = growth(epsilon, exp_epsilon), (table.weights, table.total)
        columns = [list(column) for column in zip(*groups, strict=True)]
        program.private = partial(decide_ratios, *judged, columns, exp_to)
        if delta > 0:
            program.private = partial(decide_sets, *judged, edges, exp_to, delta)
    return program


def listed_neighbours(
    inputs: Any, starts: list[int], counts_: list[int], sets: bool
) -> tuple[list[list[int]], list[Edge]]:
    """Read the groups of neighbouring variables of a file, or its edges if ``sets`` (delta > 0).

    Neighbours must have all outputs of their inputs: without some of them less would be proved.
    """
    rows = [range(a, b) for a, b in pairwise(starts)]
    index = partial(integer, low=0, high=len(counts_) - 1)
    count = partial(integer, low=1, high=1 << 99_999)
    if not inputs["edges" if sets else "neighbours"]:
        raise Malformed("no inputs are listed as neighbours")
    if not sets:
        groups = [[*map(index, group)] for group in inputs["neighbours"]]
        if any(len(group) != len(groups[0]) or len(group) < 2 for group in groups):
            raise Malformed("groups of neighbours are of different lengths")
        input_of = [x for x, row in enumerate(rows) for _ in row]
        together: dict[tuple[int, ...], list[list[int]]] = defaultdict(list)
        for group in groups:
            together[tuple(sorted({input_of[v] for v in group}))].append(group)
        for members, same in together.items():
            variables = {v for group in same for v in group}
            # Of an input that is its own neighbour, outputs that stay the same have no row.
            if len(members) == 1:
                continue
            if len(variables) < sum(len(rows[x]) for x in members):
                raise Malformed("neighbours leave out outputs of an input")
            once = sum(map(len, same)) == len(variables)
            if once and all(len({counts_[v] for v in group}) == 1 for group in same):
                continue
            require_size(len(members) ** 2, sum(len(group) ** 2 for group in same))
            both = {pair for group in same for pair in product(group, repeat=2)}
            for x, other in combinations(members, 2):
                linked = {(v, u) for v, u in both if v in rows[x] and u in rows[other]}
                require_correspondence(linked, counts_, rows[x], rows[other])
        return groups, []
    edges = [
        ([*map(index, one)], [*map(index, two)], [*map(count, multiplicities)])
        for one, two, multiplicities in inputs["edges"]
    ]
    if any(not len(one) == len(two) == len(multiplicities) for one, two, multiplicities in edges):
        raise Malformed("parts of an edge are of different lengths")
    whole_rows = [dict(enumerate(counts_[a:b], a)) for a, b in pairwise(starts)]
    row_of = [row for row in whole_rows for _ in row]
    for one, two, multiplicities in edges:
        for side in (one, two):
            outputs = defaultdict[int, int](int)
            for v, n in zip(side, multiplicities, strict=True):
                outputs[v] += n
            if not side or outputs != row_of[side[0]]:
                raise Malformed("an edge leaves out outputs of an input")
    return [], edges


def require_correspondence(
    linked: set[tuple[int, int]], counts_: list[int], one: range, other: range
) -> None:
    """Refuse two inputs of whose outputs no bijection pairs linked variables only.

    A maximal flow of outputs, v's to u's, is raised along paths until there is none: back along a
    path, outputs are paired anew.
    """
    require_size(len(linked), len(one) + len(other), 8)
    left, open_ = {v: counts_[v] for v in one}, {u: counts_[u] for u in other}
    flow = dict.fromkeys(linked, 0)
    while any(left.values()):
        # By variable, how it was reached: None, or from the variable before it.
        before: dict[int, int | None] = {v: None for v in one if left[v]}
        queue, end = [*before], None
        for at in queue:
            if open_.get(at):
                end = at
                break
            ahead = [u for v, u in linked if v == at] if at in left else []
            ahead += [v for (v, u), n in flow.items() if u == at and n]
            new = [to for to in dict.fromkeys(ahead) if to not in before]
            before |= dict.fromkeys(new, at)
            queue += new
        if end is None:
            raise Malformed("no correspondence of outputs pairs the listed neighbours only")
        path = [end]
        while (last := before[path[-1]]) is not None:
            path.append(last)
        steps = [*pairwise(path[::-1])]
        room = [flow[u, v] for v, u in steps if v in open_]
        n = min(left[path[-1]], open_[end], *room)
        left[path[-1]] -= n
        open_[end] -= n
        for v, u in steps:
            flow[(v, u) if v in left else (u, v)] += n if v in left else -n


# Each takes the setting; the integer weights ("table" of a file; None for the program alone); an
# enclosure of e^epsilon (None: that of the setting); and the proof, which has irrational numbers.
KINDS: dict[str, Callable[[Setting, Any, Between | None, Any], Program]] = {
    "kernel": kernel,
    "majority": majority,
    "mollifier": mollifier,
    "multiclass": multiclass,
    "noise": noise,
    "best-sampler": optimal_sampler,
    "plurality": plurality,
    "population": population,
    "public-prior": prior,
    "reveal-or-obscure": roo,
    "smooth-floor": smooth_floor,
    "table": any_table,
    "workload": workload,
}


# --- files -------------------------------------------------------------------------------------


class ReadObject(dict[str, Any]):
    """A JSON object without duplicate names; it records which of them were read."""

    __slots__ = ("names_read",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.names_read = set[str]()
        if len(self) != len(pairs):
            raise Malformed("a name stands twice in an object")

    def __getitem__(self, name: str) -> Any:
        self.names_read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default."""
        self.names_read.add(name)
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        self.names_read.update(dict.keys(self))
        return super().__iter__()

    def values(self) -> Any:
        """Return all values."""
        self.names_read.update(dict.keys(self))
        return super().values()

    def unread(self, before: str = "") -> Iterator[str]:
        """Yield the names that were not read, with the path to them."""
        for name, value in dict.items(self):
            if name not in self.names_read:
                yield before + name
            elif isinstance(value, ReadObject):
                yield from value.unread("" if name == "body" else f"{before}{name}.")


def read(path: str) -> ReadObject:
    """Read the JSON object of a file; numbers must be finite and names unique."""
    try:
        if not Path(path).is_file() or Path(path).stat().st_size > 256 << 20:
            raise Malformed("it is no file of at most 256 MiB")
        text = Path(path).read_text(encoding="utf-8")
        # An empty list or object takes far more memory than its two characters.
        require_size(text.count("{"), 10)
        require_size(text.count("["))
        content = json.loads(text, object_pairs_hook=ReadObject, parse_constant=number)
    except (OSError, ValueError, RecursionError) as error:
        raise Malformed(f"it cannot be read: {type(error).__name__}") from None
    if not isinstance(content, ReadObject):
        raise Malformed("it holds no object")
    return content


def check(path: str, proof_path: str | None = None) -> Iterator[str]:
    """Yield a line for each statement shown about a design, an exact optimum or a finding.

    Args:
        path: of the file.
        proof_path: of the proof of a design's bound, if any.

    Raises:
        Malformed: if a file is not of a known format.
        Refused: if a claim is false or not shown.
    """
    file, proof = read(path), read(proof_path) if proof_path else None
    what = str(file.get("format"))
    if what not in FORMATS:
        raise Malformed(f"its format is {what[:SHOWN]!r}, which is not checked here")
    if proof is not None and FORMATS[what] is not design:
        raise Malformed("a file of this format has no second one")
    yield from FORMATS[what](file, proof)
    names = [*file.unread("file." if "body" in dict.keys(file) else "")]
    # The proof's setting was compared as a whole with the design's.
    unread = proof.unread("proof.") if proof else ()
    names += [name for name in unread if not name.startswith("proof.setting.")]
    if names:
        yield f"not looked at: {', '.join(names)}"


def about(setting: ReadObject) -> str:
    """List the parameters that were read; lists by their length."""
    texts, one = list[str](), dict.get(setting, "releases") == 1
    for name, value in dict.items(setting):
        if name not in setting.names_read or value in (None, []) or (one and name in RELEASES):
            continue
        what = ", ".join(dict.keys(value)) if isinstance(value, dict) else str(value)
        text = f"{name} of {what}" if isinstance(value, dict) else f"{name} {what}"
        texts.append(f"{name} of {len(value)}" if isinstance(value, list) else text[:SHOWN])
    return f"about: {', '.join(texts)}"


def design(file: dict[str, Any], proof: Any) -> Iterator[str]:
    """Decide the privacy of a design, its value, and its bound if there is a proof."""
    body = file["body"]
    kind, setting = body["kind"], body["setting"]
    stated = file.get("kind", kind)
    if kind != (body["of"] if stated == "audit" else stated):
        raise Malformed("its kind stands twice, once another")
    if kind not in KINDS and "displayed" in body:
        # A kind unknown to this file lists its inputs and losses.
        kind, setting = "table", body["displayed"]
    if proof is not None and (proof.get("format"), proof.get("kind")) != ("dpopt proof", kind):
        raise Malformed(f"the second file is no proof of a {kind!r}")
    allowed(kind, setting)
    if body["table"] is None:
        raise Malformed("it has no integer weights")
    epsilon, delta, one = promised_by(setting)
    stated, releases = body["guarantee"], integer(setting.get("releases", 1), 1, 1000)
    if proof is not None and one is not setting:
        # Rows of the program of one release have a target of its own, which nobody promised.
        raise Refused("a bound for several releases together is not decided")
    program = KINDS[kind](one, body["table"], None, {} if proof is None else proof)
    if one is not setting:
        if program.pairs is None:
            raise Malformed("several releases of this kind and size are not decided here")
        listed_, whole_total = program.pairs()
        program.private = partial(decide_releases, listed_, whole_total, releases, epsilon, delta)
        program.neighbours += f", {releases} releases together"
    verdict = decide(program)
    missed = verdict.missed
    # Decided was the guarantee of the setting; the file may state a weaker one only.
    if number(stated["epsilon"]) < epsilon or number(stated["delta"]) < delta:
        raise Refused("it states a smaller guarantee than its setting")
    promise = f"({not_below(epsilon)}, {not_below(delta)})-DP"
    where = f"{verdict.rows} inequalities decided exactly, {program.neighbours}"
    yield f"private: {kind}, {promise}, {where}"
    yield about(setting)
    if missed:
        limit = max(map(number, body.get("residuals", {0: RESIDUAL}).values()), default=Fraction(0))
        if missed > limit + limit / 10**9 + Fraction(1, 10**15):
            raise Refused(f"rows are missed by {float(missed):.3g}; it states {float(limit):.3g}")
        yield f"rows that were asked for are missed by at most {float(missed):.3g}"
    if not program.cost:
        yield "value" + program.note
        if proof is not None:
            raise Refused("optimality is not decided: no coefficients of its objective are known")
        return
    # What double precision may miss is small compared with the values that are possible.
    value, span = program.value, Fraction(program.span)
    if abs(value - number(body["value"])) > abs(value) / 10**9 + min(span, 1) / 10**12:
        raise Refused(f"it states the value {body['value']}, which is {float(value)!r}")
    yield f"value: {float(value)!r}{program.note}"
    if proof is not None:
        if proof["setting"] != setting:
            raise Refused("the proof is of another design, which has other parameters")
        multipliers = multipliers_of(proof["multipliers"])
        same_denominator([y for _, y in multipliers])
        shown, claimed = bound(program, multipliers), number(proof["bound"])
        if claimed > shown if not program.maximise else claimed < shown:
            raise Refused(f"the proof claims {float(claimed)!r} and shows {float(shown)!r} only")
        gap, sign = abs(value - claimed), -1 if program.maximise else 1
        # Optimal are values that differ by less than a millionth of what is possible.
        scale, stated = min(span, max(1, abs(value))) + abs(value) / 10**6, body["bound"]
        tolerance = scale / 10**9
        if stated is None or sign * (number(stated) - claimed) > tolerance:
            raise Refused(f"it states the bound {stated}; the proof shows {float(claimed)!r}")
        side = "above" if program.maximise else "below"
        what = "optimal" if gap <= 1000 * tolerance and not program.among else "bounded"
        yield f"{what}: no other{program.among} is {side} {float(claimed)!r}, gap {float(gap):.3g}"
    elif body["bound"] is not None:
        yield f"bound: {float(number(body['bound']))!r} is stated, and was not checked"


def not_below(value: Number | float) -> str:
    """Return six digits of a number, rounded up where more than the rounding of a float is lost."""
    text, least = f"{float(value):.6g}", Decimal(float(value) * (1 - 2**-50))
    if Decimal(text) >= least:
        return text
    return f"{float(Context(prec=6, rounding=ROUND_CEILING).create_decimal(least)):.6g}"


def promised_by(setting: Setting) -> tuple[Number, Number, Setting]:
    """Return the (epsilon, delta) that a setting promises, and the setting of its program.

    Of several releases, the total; their program is that of one, whose target is not decided.
    """
    if setting.get("total_epsilon") is None and not setting.get("total_delta"):
        # The target of voters is (m epsilon, delta); most other kinds have no delta.
        epsilon = number(setting["epsilon"]) * number(setting.get("allowance", 1))
        return epsilon, number(setting.get("delta", 0)), setting
    one = {**setting, **({"allowance": 1} if "allowance" in setting else {"epsilon": 1})}
    return number(setting["total_epsilon"]), number(setting["total_delta"]), one


def optimum(body: dict[str, Any], _: Any) -> Iterator[str]:
    """Decide an exact optimum at a rational e^epsilon: a solution whose value is the bound."""
    kind, setting, ratio = body["kind"], body["setting"], number(body["ratio"])
    if ratio < 1 or ratio.numerator.bit_length() > RATIO_BITS:
        raise Malformed("its ratio is below 1, or has too many digits")
    allowed(kind, setting)
    program = KINDS[kind](setting, None, (ratio, ratio), {})
    domain = {v for variables, _ in program.pmfs for v in variables} | set(program.boxes)
    if not program.cost:
        raise Malformed("the objective of this program is no exact one")
    program.point, program.private = {frozen(v): number(x) for *v, x in body["point"]}, None
    if not domain >= set(program.point) or len(program.point) < len(body["point"]):
        raise Malformed("its point has a variable twice, or one that the program has not")
    multipliers = multipliers_of(body["multipliers"])
    verdict, value, claimed = decide(program), program.value, number(body["value"])
    if verdict.missed > 0 or not value == claimed == bound(program, multipliers):
        raise Refused("its value, its point and its multipliers do not agree")
    where = f"({kind}, {verdict.rows} rows), exactly, {program.neighbours}"
    yield f"optimal: {value} for e^epsilon = {ratio} {where}"
    # The file's "ratio" replaces e^epsilon.
    setting.names_read.discard("epsilon")
    yield about(setting)


def frozen(value: Any) -> Any:
    """Return lists of a file, such as parts of a row's name, as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


# The check of each file format.
FORMATS: dict[str, Callable[[dict[str, Any], Any], Iterator[str]]] = {
    "dpopt exact optimum": optimum,
    "dpopt finding": finding,
    "dpopt mechanism": design,
}


def main(arguments: list[str]) -> int:
    """Check one or two files, print what was shown, and return the exit code."""
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python verify.py x.json [x.proof.json]\n")
        return 2
    shown, code, why = list[str](), 0, ""
    try:
        shown.extend(check(*arguments))
    except Refused as error:
        code, why = 4, f"REFUSED: {error}"
    except Malformed as error:
        code, why = 2, f"not a file of this kind: {error}"
    except MISSING as error:
        code, why = 2, f"not a file of this kind: a part is malformed ({error!r:.60})"
    # A malformed file shows nothing.
    for stream, lines in (
        (sys.stdout, shown if code != 2 else []),
        (sys.stderr, [why] * (code > 0)),
    ):
        # Escape control characters: text of a file must not forge lines of output.
        safe = ("".join(c if " " <= c <= "~" else ascii(c)[1:-1] for c in line) for line in lines)
        try:
            stream.writelines(line + "\n" for line in safe)
            stream.flush()
        except OSError:
            return 2
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Check a saved design without the package that made it: one file, Python's standard library.

    python verify.py x.json                  privacy alone
    python verify.py x.json x.proof.json     privacy, and that nothing is better
    python verify.py x.finding.json          that a published statement is false

A design is integers; a proof is a list of multipliers. The kind of the design says which linear
program it answers,

    minimise  cost . v   over   v >= 0 in distributions (which sum to a constant) and v in boxes
                         with   a . v <= b   for each row,

and each kind is one function below, which displays that program so that it can be read beside the
paper. A design is private if its integers keep every row, each decided exactly; where a coefficient
holds e^epsilon, it is enclosed between rationals, and the end that makes the row harder counts.
Nothing is better than a bound by weak duality: for any multipliers y >= 0 of the rows, the sum over
distributions and boxes of the least value that (cost + y a) . v can have there, minus y b, is below
the value of every point. Nothing has to be feasible: a wrong multiplier makes the bound worse,
never untrue.

What a file says of itself beside its setting, units, value and bound (gamma, q, a verdict) is not
judged, and named in the last line. One line is printed for each thing that was shown. The command
exits with 0 if all was, 2 for what is no such file, which one with a setting is that the package
refuses, 4 for what is not private, not optimal or not shown.
"""

from __future__ import annotations

import ast
import json
import operator
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, partial, reduce
from heapq import heappop, heappush
from itertools import accumulate, combinations, islice, pairwise, product
from math import comb, factorial, floor, fsum, inf, lcm, log, log1p, log2, perm, pi, prod
from math import exp as e_to
from operator import getitem, mul
from pathlib import Path
from typing import Any, cast

Number = int | Fraction
Between = tuple[Number, Number]  # lower and upper end of a number that is not known exactly
Variable = tuple[Any, ...]  # such as ("K", 0, 3)
Pmf = tuple[list[Variable], Number]  # variables that are at least 0, and their sum
Name = tuple[Any, ...]  # of a row, such as ("privacy", 0, 1, 3)
Setting = dict[str, Any]

LARGEST_FILE = 256 << 20
LONGEST = 5000  # characters of a number
# ASCII alone: Python's own int takes the digits of every script, spaces and underscores.
WRITTEN = "-?(0x[0-9a-fA-F]+|[0-9]+)(/(0x[0-9a-fA-F]+|[0-9]+))?"
MOST = 4_000_000  # of variables, rows, steps: more would take more than minutes
BITS = 320  # of e^x
SMALL = Fraction(1, 10**6)  # by how much a prior may be missed where a file does not say
RATIO_BITS = 256  # of numerator and denominator of a rational e^epsilon
SOLVED, TABLED = 5_000, 20_000  # sorted counts of a plurality's program, and of a rule's table
CORNERS, LEVELS = 8_000_000, 300  # of private voters; and how many of them over two classes
CORNER = 128  # fractional bits of probabilities at corners


# What parts of a file raise where others were expected.
MISSING = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError)
MISSING += (ValueError,)


class Malformed(Exception):
    """This is no file of a design, or no proof of one."""


class Refused(Exception):
    """What the files claim is wrong, or is not shown by them.

    Attributes:
        at: the row that is broken, as its kind names it; None if it is no row.
        missed: by how much.
    """

    def __init__(self, why: str, at: Any = None, missed: Number = 0) -> None:
        super().__init__(why)
        self.at, self.missed = at, missed


# --- numbers -----------------------------------------------------------------------------------


def number(value: object) -> Fraction:
    """Return a number of a file: a float is its exact binary value, a text an integer or p/q."""
    try:
        if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
            return Fraction(value)
        if isinstance(value, str) and len(value) <= LONGEST and re.fullmatch(WRITTEN, value):
            sign, (over, under) = value[0], (*value.lstrip("-").split("/"), "1")[:2]
            return (-1 if sign == "-" else 1) * Fraction(int(over, 0), int(under, 0))
    except (ArithmeticError, ValueError):
        pass
    raise Malformed(f"{str(value)[:40]!r} is no number")


def alike(values: list[Fraction]) -> list[Fraction]:
    """Refuse numbers without a common denominator of a length that sums can be computed with."""
    common = 1
    for value in values:
        if common % value.denominator:
            common = lcm(common, value.denominator)
            if common.bit_length() > 16 * LONGEST:
                raise Malformed("numbers have too many different denominators")
    return values


def integer(value: object, low: int, high: int) -> int:
    """Return an integer of a file within limits."""
    found = number(value)
    if found.denominator != 1 or not low <= found <= high:
        most = high if high < 1 << 64 else f"2^{high.bit_length() - 1}"
        raise Malformed(f"{str(value)[:40]!r} is no integer from {low} to {most}")
    return int(found)


def integers(values: object, low: int, high: int) -> list[int]:
    """Return a list of integers of a file within limits."""
    if not isinstance(values, list) or not values:
        raise Malformed("a list of integers is missing")
    # Those of a program need no reading.
    plain = set(map(type, values)) == {int} and low <= min(values) and max(values) <= high
    return values if plain else [integer(value, low, high) for value in values]


def vector(values: object, size: int) -> list[Fraction]:
    """Return a list of so many numbers."""
    if not isinstance(values, list) or len(values) != size:
        raise Malformed(f"a list of {size} numbers is missing")
    return alike([number(value) for value in values])


def weights_of(values: object, size: int) -> list[Fraction]:
    """Return a list of so many weights: at least 0, and not all of them 0."""
    found = vector(values, size)
    if min(found) < 0 or sum(found) <= 0:
        raise Malformed("a prior or a distribution has a weight below 0, or no other")
    return found


def whole(values: object, size: int) -> tuple[list[int], int]:
    """Return a list of so many weights as integers over a common denominator, and that."""
    if isinstance(values, list) and set(map(type, values)) == {float}:
        # Of the many numbers of a long prior no fractions are made.
        ratios = [value.as_integer_ratio() for value in values]
    else:
        ratios = [value.as_integer_ratio() for value in weights_of(values, size)]
    unit = lcm(*{under for _, under in ratios})
    found = [over * (unit // under) for over, under in ratios]
    if len(found) != size or min(found) < 0 or sum(found) <= 0:
        raise Malformed("a prior or a distribution has a weight below 0, or no other")
    return found, unit


def matrix(values: object, rows: int, columns: int) -> list[list[Fraction]]:
    """Return a table of numbers."""
    if not isinstance(values, list) or len(values) != rows:
        raise Malformed(f"a table of {rows} rows is missing")
    found = [vector(row, columns) for row in values]
    alike([value for row in found for value in row])
    return found


def require_size(*sizes: int) -> None:
    """Refuse what would take longer than anybody waits."""
    total = 1
    for size in sizes:
        total *= max(size, 1)
        if total > MOST:
            raise Malformed(f"a size is beyond {MOST}")


@cache
def exp(x: Number, bits: int = BITS) -> Between:
    """Return rationals lo <= e^x <= hi: Taylor's series after halving, rounded outward."""
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
    # Each term is short of its value by less than 2; those left out sum to less than 1.
    high = low + 2 * count + 2
    for _ in range(halvings):
        low, high = low * low >> work, (high * high >> work) + 1
    return Fraction(low, 1 << work), Fraction(high, 1 << work)


# --- the judge ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What was decided of a design, all of it true.

    Attributes:
        rows: how many inequalities were decided.
        slack: no right side exceeds its left side by less; at least 0.
        at: the row with that slack, as its kind names it.
        missed: by how much rows that were asked for beside privacy are missed at most.
    """

    rows: int
    slack: Number = 0
    at: Any = None
    missed: Number = 0


Growth = Callable[[int], tuple[int, int, int]]
"""Integers (low, high, unit) with low <= unit e^epsilon <= high, close to so many bits."""
Neighbours = list[list[int]]
"""Columns of variables: those at one place of all columns are each other's neighbours."""
Edge = tuple[list[int], list[int], list[int]]
"""Of two neighbouring inputs: variables of the one, of the other, and for how many outputs."""
FINEST = 1 << 16  # bits of e^epsilon beyond which nothing is decided


def growth(epsilon: Number, ratio: Between | None = None) -> Growth:
    """Return e^epsilon to any number of bits; exactly where it is given as a rational."""

    def enclosed(bits: int) -> tuple[int, int, int]:
        if ratio is not None and ratio[0] == ratio[1]:
            exact = Fraction(ratio[0])
            return exact.numerator, exact.numerator, exact.denominator
        low, high = exp(epsilon, bits)
        return floor(low * (1 << bits)), -floor(-high * (1 << bits)), 1 << bits

    return enclosed


def decide_ratios(
    weights: list[int], total: int, neighbours: Neighbours, grown: Growth, rows: int = 0
) -> Verdict:
    """Decide w_v <= e^epsilon w_u for every two neighbouring variables u, v.

    Args:
        weights: of one output of each variable, over ``total``.
        total: what the weights of an input's outputs sum to.
        neighbours: columns, all of the same length.
        grown: e^epsilon.
        rows: what is counted; of a table whose columns stand for more, how many more.

    Raises:
        Refused: with the two variables, if an inequality is broken.
    """
    if len(neighbours) < 2 or not neighbours[0]:
        return Verdict(0, Fraction(1), None)
    values = [[weights[v] for v in column] for column in neighbours]
    small, large = (list(map(end, *values)) for end in (min, max))
    count, bits = rows or len(values) * (len(values) - 1) * len(small), 64 + total.bit_length()
    # Where all weights are 0 there is nothing to decide, and no slack that says anything.
    places = [place for place, weight in enumerate(large) if weight]
    small, large = ([values_[place] for place in places] for values_ in (small, large))
    if not places:
        return Verdict(count, Fraction(1), None)
    while True:
        low, high, unit = grown(bits)
        slacks = [low * a - unit * b for a, b in zip(small, large, strict=True)]
        slack = min(slacks)
        group = [column[places[slacks.index(slack)]] for column in neighbours]
        most = max(group, key=weights.__getitem__)
        others = [v for v in group if v != most] or [most]
        at = most, min(others, key=weights.__getitem__)
        if slack >= 0:
            return Verdict(count, Fraction(slack, unit * total), at)
        if min(high * a - unit * b for a, b in zip(small, large, strict=True)) < 0:
            missed = Fraction(-slack, unit * total)
            why = f"not private: the ratio of variables {at} is above e^epsilon"
            raise Refused(f"{why}, by {float(missed):.3g}", at, missed)
        bits *= 2
        if bits > FINEST:
            raise Refused("a ratio is too close to e^epsilon to be told from it", at)


def decide_sets(
    weights: list[int], total: int, edges: list[Edge], grown: Growth, delta: Number
) -> Verdict:
    """Decide sum_y max(0, w_xy - e^epsilon w_zy) <= delta for every two neighbours x, z.

    The slack is that of the worst set of outputs that is not empty, which an empty one would hide,
    and so would an output that both inputs never have.

    Args:
        weights: of one output of each variable, over ``total``.
        total: what the weights of an input's outputs sum to.
        edges: neighbours, each once.
        grown: e^epsilon.
        delta: exact.

    Raises:
        Refused: with the place of the edge and its direction, if an inequality is broken.
    """
    if not edges:
        return Verdict(0, Fraction(1), None)
    bits, over = 64 + total.bit_length(), Fraction(delta)
    ways = [(a, b, n) for one, two, n in edges for a, b in ((one, two), (two, one))]

    def slacks_at(end: int, unit: int) -> list[int]:
        raised_, allowed_ = [unit * w for w in weights], [end * w for w in weights]
        budget, slacks = over.numerator * total * unit // over.denominator, list[int]()
        for here, there, many in ways:
            excess = [raised_[a] - allowed_[b] for a, b in zip(here, there, strict=True)]
            lost = sum(n * e for n, e in zip(many, excess, strict=True) if e > 0)
            slacks.append(budget - (lost or max(filter(None, excess), default=0)))
        return slacks

    while True:
        low, high, unit = grown(bits)
        slacks = slacks_at(low, unit)
        slack = min(slacks)
        at = divmod(slacks.index(slack), 2)
        if slack >= 0:
            return Verdict(len(ways), Fraction(slack, unit * total), at)
        if min(slacks_at(high, unit)) < 0:
            missed = Fraction(-slack, unit * total)
            why = f"not private: a set of outputs of edge {at[0]} is above its limit"
            raise Refused(f"{why}, by {float(missed):.3g}", at, missed)
        bits *= 2
        if bits > FINEST:
            raise Refused("a set of outputs is too close to its limit to be decided", at)


def decide_pmfs(weights: list[int], counts: list[int], starts: list[int], total: int) -> None:
    """Refuse weights below 0, and inputs whose outputs' weights do not sum to the total."""
    masses = list(map(mul, weights, counts))
    if total <= 0 or (weights and min(weights) < 0):
        raise Refused("a weight is below 0, or there is no total")
    for start, end in pairwise(starts):
        if sum(masses[start:end]) != total:
            raise Refused(f"the weights from {start} to {end - 1} are no distribution")


# --- settings: what a file may ask for -----------------------------------------------------------

Allowed = tuple[str, Callable[[Any], bool]]  # what a value must be, in words, and whether it is
Wrong = Iterator[tuple[bool, str]]  # what must hold of several fields, and its words
SHORT = 40  # characters of a value that is told


def real(interval: str) -> Allowed:
    """Allow numbers of an interval such as "(0, 600]"."""
    low, high = map(float, interval[1:-1].split(","))
    ends_ = {low} if interval[0] == "[" else set[float]()
    ends_ |= {high} if interval[-1] == "]" else set()
    plain = (int, float)
    return f"a number in {interval}", lambda v: type(v) in plain and (low < v < high or v in ends_)


def whole_number(low: int, high: int) -> Allowed:
    """Allow integers within limits."""
    plain = (int, float)
    words_ = f"an integer from {low} to {high}"
    return words_, lambda v: type(v) in plain and low <= v <= high and v == int(v)


def word(*known: str) -> Allowed:
    """Allow some words."""
    return f"one of {', '.join(known)}", lambda v: isinstance(v, str) and v in known


def none_or(allowed: Allowed) -> Allowed:
    """Allow null, too."""
    return f"null, or {allowed[0]}", lambda v: v is None or allowed[1](v)


def either(*parts: Allowed) -> Allowed:
    """Allow what one of several does."""
    return ", or ".join(said for said, _ in parts), lambda v: any(fits(v) for _, fits in parts)


def listed(part: Allowed, least: int = 1, most: int = MOST) -> Allowed:
    """Allow lists of such values."""
    said = f"a list of {least} or more, each {part[0]}"
    return said, lambda v: isinstance(v, list) and least <= len(v) <= most and all(map(part[1], v))


def tabled(part: Allowed, rows: int = 1, columns: int = 1) -> Allowed:
    """Allow tables of such values."""
    said, fits = listed(listed(part, columns), rows)
    return said, lambda v: fits(v) and len(set(map(len, v))) == 1


TEXT: Allowed = ("a text", lambda v: isinstance(v, str))
FLAG: Allowed = ("true or false", lambda v: isinstance(v, bool))
NUMBER, WEIGHT, SHARE = real("[-1e308, 1e308]"), real("[0, 1e300]"), real("[0, 1)")
EPSILON = real("(0, 600]")
INDEX: Allowed = ("an index", lambda v: type(v) is int and 0 <= v <= MOST)
NAMES: Allowed = (
    "names: texts or integers",
    lambda v: isinstance(v, list) and all(type(name) in (str, int) for name in v),
)


def is_pmf(values: list[float]) -> bool:
    """Whether numbers are at least 0, with sum 1 up to 1e-9."""
    return min(values) >= 0 and abs(fsum(values) - 1) <= 1e-9


def doubles(text: str) -> list[float]:
    """Return numbers with commas between them; one below 0 for what is none."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return [-1.0]


def believed(text: str) -> tuple[str, list[Fraction]]:
    """Return which pmf of the voters' p a prior names, and its numbers, which are doubles."""
    name, _, rest = text.partition(":")
    if re.fullmatch(r"samples:[0-9]+x[0-9]+:[0-9a-f]{16}", text):
        return "samples", []
    ends_ = doubles(rest)
    kind, inside = name.removeprefix("common-"), all(0 <= p <= 1 for p in ends_)
    rising = all(a < b if i % 2 == 0 else a <= b for i, (a, b) in enumerate(pairwise(ends_)))
    fits = {
        "uniform": inside and rising and len(ends_) % 2 == 0,
        "beta": len(ends_) == 2 and all(1e-300 <= a <= 1e4 for a in ends_),
        "point": inside and name == kind,
    }
    if not fits.get(kind):
        raise Malformed(f"prior is {text[:SHORT]!r}, which is none of voters")
    return name, [number(end) for end in ends_]


def majority_fits(s: Setting) -> Wrong:
    """Yield what voters, target and objective of a majority must be."""
    count, m = s["voters"], s["allowance"]
    yield count % 2 == 1, "voters is even; it must be odd, so that no vote is tied"
    yield count <= 501 or not s["voter_delta"], "voters is above 501, with voter_delta"
    yield m <= count, "allowance is above mechanisms"
    yield max(m, 1.0) * s["epsilon"] <= 600, "allowance times epsilon is above 600"
    for prior in [s["prior"], *(s["priors"] or [])]:
        believed(prior)
    own = s["coefficients"]
    yield own is None or len(own) == (count + 1) // 2, "coefficients are not (mechanisms + 1) / 2"


def votes_fit(prior: str, classes: int) -> bool:
    """Whether a prior names a pmf of the votes' p: uniform, dirichlet:A or point:P,...,P."""
    name, _, text = prior.partition(":")
    p = doubles(text)
    several = name == "point" and len(p) == classes and max(p) <= 1 and is_pmf(p)
    alone = name == "dirichlet" and len(p) == 1 and 1e-4 <= p[0] <= 1e6
    return prior == "uniform" or several or alone


def multiclass_fits(s: Setting) -> Wrong:
    """Yield what voters, target and prior of a plurality of private voters must be."""
    m, spent = s["allowance"], s["allowance"] * s["epsilon"]
    yield m <= s["voters"], "allowance is above mechanisms"
    yield 1e-7 <= spent <= 600, "allowance times epsilon is not in [1e-7, 600]"
    stable = s["rule"] in ("ladder", "permute-and-flip", "exponential")
    yield stable or s["voter_delta"] == 0, "voter_delta is of rules alone"
    yield votes_fit(s["prior"], s["classes"]), "prior is no distribution"


def plurality_fits(s: Setting) -> Wrong:
    """Yield what prior a plurality of plain ballots must have."""
    yield votes_fit(s["prior"], s["classes"]), "prior is no distribution"


def sampler_fits(s: Setting) -> Wrong:
    """Yield what the distribution of an optimal sampler's records must be."""
    pmf, objective = s["distribution"], s["objective"]
    yield pmf is None or objective != "worst-case", "distribution is of the mean and the output"
    yield pmf is not None or objective != "output", "distribution is missing for the output"
    yield (
        pmf is None or (len(pmf) == s["categories"] and is_pmf(pmf)),
        "distribution is no distribution",
    )


def floor_fits(s: Setting) -> Wrong:
    """Yield which epsilon a smooth floor is for."""
    yield s["epsilon"] > log1p(1 / s["records"]), "epsilon is not above log(1 + 1/n)"


def prior_fits(s: Setting) -> Wrong:
    """Yield what a public prior and the names of its categories must be."""
    q, names = s["public"], s["labels"]
    yield is_pmf(q), "public has a sum that is not 1"
    same = names is None or len(names) == len(set(names)) == len(q)
    yield same, "labels are not as many different names as masses"


def mollifier_fits(s: Setting) -> Wrong:
    """Yield what the prior and the user's own distribution must be."""
    yield from prior_fits(s)
    yield (
        len(s["distribution"]) == len(s["public"]) and is_pmf(s["distribution"]),
        "distribution is no distribution of these categories",
    )


def population_fits(s: Setting) -> Wrong:
    """Yield what the prior, the users' distributions and their weights must be."""
    yield from prior_fits(s)
    users, weights = s["users"], s["weights"]
    pmfs = all(len(pmf) == len(s["public"]) and is_pmf(pmf) for pmf in users)
    yield pmfs, "users hold what is no distribution of these categories"
    fits = len(weights) == len(users) and max(weights) <= 1e300 / len(users)
    yield fits and sum(weights) > 0, "weights are not one for each user, or all 0"


def graph_fits(s: Setting, inputs: int, named: bool) -> Wrong:
    """Yield how graph and shape must fit the inputs; named, whether the loss has a name."""
    graph, shape = s["graph"], s["shape"]
    by_shape = graph in ("grid", "hamming")
    yield not by_shape or shape is not None, "graph needs a shape"
    yield shape is None or by_shape or named, "shape is of graphs and losses over words alone"
    yield shape is None or prod(shape) == inputs, "shape makes another number of words than inputs"
    for x, z in graph if isinstance(graph, list) else ():
        yield x != z and max(x, z) < inputs, "graph holds an edge of no two inputs"


def rows_fit(s: Setting, taken: set[str]) -> Wrong:
    """Yield what the user's own rows must be."""
    for name, places, coefficients, lower, upper in s["constraints"] or []:
        yield (
            TEXT[1](name) and name not in {"", *taken},
            "constraints hold a name that is taken, or none",
        )
        taken = {*taken, name}
        yield listed(listed(INDEX, 3, 3), 0)[1](places), "constraints hold places that are none"
        yield (
            listed(NUMBER, 0)[1](coefficients),
            "constraints hold coefficients that are no numbers",
        )
        limits = listed(none_or(NUMBER))
        yield limits[1](lower) and limits[1](upper), "constraints hold limits that are no numbers"
        yield len(lower) == len(upper), "constraints hold other numbers of limits"
        both = zip(lower, upper, strict=True)
        rising = all(a is None or b is None or a <= b for a, b in both)
        yield rising, "constraints hold a lower limit above the upper one"


def kernel_fits(s: Setting) -> Wrong:
    """Yield how the parameters of a kernel must fit each other."""
    loss, shape, inputs, outputs = (s[name] for name in ("loss", "shape", "inputs", "outputs"))
    named, prior = isinstance(loss, str), s["prior"]
    size = [inputs, outputs if shape is None else inputs] if named else [len(loss), len(loss[0])]
    yield [inputs, outputs] == size, "inputs and outputs are not those of loss and shape"
    yield loss != "hamming" or shape is not None, "loss needs a shape"
    yield from graph_fits(s, inputs, named)
    yield prior is None or s["objective"] == "mean", "prior is of the objective mean"
    fixed, taken = s["invariant"], {"sums", "privacy"}
    if fixed is not None and isinstance(fixed[0], list):
        table_ = tabled(NUMBER)[1]
        yield len(fixed) == 2 and all(map(table_, fixed)), "invariant is no pair of tables"
    elif fixed is not None:
        yield listed(WEIGHT)[1](fixed), "invariant is no distribution"
        yield (
            inputs == outputs == len(fixed) and is_pmf(fixed),
            "invariant is no distribution of the inputs",
        )
    taken |= {"invariance"} if fixed is not None else set()
    taken |= {"delta"} if s["delta"] else set()
    taken |= {"losses"} if s["objective"] == "worst-case" else set()
    yield from rows_fit(s, taken)
    alike = s["symmetry"] in ("none", "reflection") or not isinstance(s["symmetry"], str)
    yield alike or inputs == outputs, "symmetry is of as many outputs as inputs"
    yield s["symmetry"] != "hamming" or shape is not None, "symmetry needs a shape"


def nearest_fits(s: Setting) -> Wrong:
    """Yield how the parameters of a table that is to be made private must fit each other."""
    given, least = s["kernel"], s["tolerance"]
    below = [-sum(min(a, 0) for a in line) for line in given]
    near = all(abs(fsum(line) - 1) <= least for line in given) and max(below) <= least
    yield near and all(max(line) > 0 for line in given), "kernel is no table of distributions"
    for names, size in (("input_names", len(given)), ("output_names", len(given[0]))):
        known = range(size) if s[names] is None else s[names]
        fits = len(known) == len({*map(str, known)} - {"", "None", "inf", "-inf"}) == size
        yield fits, f"{names} are not as many different names as the table needs"
    yield from graph_fits(s, len(given), named=False)
    yield from rows_fit(s, set())


def workload_fits(s: Setting) -> Wrong:
    """Yield what queries and prior must be."""
    queries, prior = s["queries"], s["prior"]
    if isinstance(queries, list):
        yield any(len(set(row)) > 1 for row in queries), "queries tell no categories apart"
        most = max(abs(a) for row in queries for a in row)
        yield 1e-100 <= most <= 1e100, "queries have no entry from 1e-100 to 1e100"
    yield prior is None or s["objective"] == "mean", "prior is of the objective mean"
    even = prior is None or max(prior) <= 1e6 * min(prior)
    yield even, "prior has a category that is more than 1e6 times as likely as another"


RECORDS: dict[str, Allowed] = {
    "records": whole_number(1, 10**15),
    "categories": whole_number(2, 10**15),
    "epsilon": EPSILON,
}
GRAPH: dict[str, Allowed] = {
    "epsilon": real("[0, 600]"),
    "delta": SHARE,
    "graph": either(
        word("complete", "path", "cycle", "grid", "hamming"), listed(listed(INDEX, 2, 2))
    ),
    "shape": none_or(listed(whole_number(1, 2**31 - 1))),
    "constraints": none_or(
        listed(("a block of rows", lambda v: isinstance(v, list) and len(v) == 5), 0)
    ),
}
PRIOR: dict[str, Allowed] = {
    "public": listed(real("(0, 2]")),
    "epsilon": real("[1e-9, 600]"),
    "labels": none_or(NAMES),
}
Fields = dict[str, Allowed]

# The parameters of each kind, and how they fit each other: what the package refuses, it says too.
SETTINGS: dict[str, tuple[Fields, Callable[[Setting], Wrong]]] = {
    "kernel": (
        GRAPH
        | {
            "loss": either(
                word("absolute", "squared", "zero-one", "hamming"),
                tabled(real("[-1e100, 1e100]"), 2),
            ),
            "prior": none_or(listed(WEIGHT)),
            "objective": word("mean", "worst-case"),
            "sense": word("minimise", "maximise"),
            "invariant": none_or(
                listed(either(NUMBER, ("a table", lambda v: isinstance(v, list))))
            ),
            "inputs": whole_number(2, 2**22),
            "outputs": whole_number(1, 2**22),
            "symmetry": either(
                word("none", "reflection", "cyclic", "dihedral", "hamming", "symbols"),
                listed(listed(listed(INDEX), 2, 2)),
            ),
        },
        kernel_fits,
    ),
    "majority": (
        {
            "voters": whole_number(1, 4001),
            "epsilon": EPSILON,
            "allowance": real("(0, 4001]"),
            "voter_delta": SHARE,
            "delta": SHARE,
            "objective": word("mean", "surrogate", "worst-case", "least-regret"),
            "prior": TEXT,
            "priors": none_or(listed(TEXT, 2)),
            "coefficients": none_or(listed(NUMBER)),
            "contrary": FLAG,
        },
        majority_fits,
    ),
    "mollifier": (PRIOR | {"distribution": listed(WEIGHT)}, mollifier_fits),
    "multiclass": (
        {
            "voters": whole_number(1, 10_000),
            "classes": whole_number(2, 100),
            "epsilon": EPSILON,
            "allowance": real("(0, 10000]"),
            "voter_delta": SHARE,
            "delta": SHARE,
            "prior": TEXT,
            "rule": word("optimal", "ladder", "permute-and-flip", "exponential", "subsampling"),
        },
        multiclass_fits,
    ),
    "nearest-kernel": (
        GRAPH
        | {"kernel": tabled(NUMBER, 2), "tolerance": real("(0, 1]")}
        | {"input_names": none_or(NAMES), "output_names": none_or(NAMES)},
        nearest_fits,
    ),
    "best-sampler": (
        RECORDS
        | {
            "categories": whole_number(2, 100),
            "objective": word("worst-case", "mean", "output"),
            "distribution": none_or(listed(WEIGHT)),
            "prior": real("[1e-3, 1e3]"),
        },
        sampler_fits,
    ),
    "plurality": (
        {
            "records": whole_number(1, 10**15),
            "classes": whole_number(2, 10**6),
            "epsilon": real("(0, 50]"),
            "objective": word("mean", "worst-case"),
            "loss": word("regret", "error"),
            "rule": word("optimal", "ladder", "permute-and-flip", "exponential"),
            "prior": TEXT,
        },
        plurality_fits,
    ),
    "population": (
        PRIOR
        | {
            "epsilon": real("(0, 16]"),
            "users": tabled(WEIGHT),
            "weights": listed(WEIGHT),
            "slack": real("[0, 1]"),
            "objective": word("mean", "diagonal"),
        },
        population_fits,
    ),
    "public-prior": (PRIOR | {"objective": word("minimax", "leximin")}, prior_fits),
    "reveal-or-obscure": (
        RECORDS | {"rule": word("exact", "roo", "journal", "journal-repaired", "conference")},
        lambda _: iter(()),
    ),
    "smooth-floor": (RECORDS | {"rate": none_or(real("(0, 700]"))}, floor_fits),
    "table": (
        {
            "epsilon": real("[0, 600]"),
            "delta": SHARE,
            "inputs": ("inputs that are written out", lambda v: isinstance(v, dict)),
            "losses": ("losses that are written out", lambda v: isinstance(v, dict)),
        },
        lambda _: iter(()),
    ),
    "workload": (
        {
            "queries": either(
                word("histogram", "prefix", "range", "marginals"), tabled(NUMBER, 1, 2)
            ),
            "categories": whole_number(2, 128),
            "epsilon": real("[0.01, 12]"),
            "prior": none_or(listed(real("(0, 1e300]"))),
            "objective": word("mean", "worst-case"),
        },
        workload_fits,
    ),
}


def held_by(values: Any, fields: Fields, what: str) -> None:
    """Refuse parameters that are missing, unknown, or not what they must be."""
    if not isinstance(values, dict):
        raise Malformed(f"{what} holds no parameters by name")
    for name in {**fields, **dict.fromkeys(dict.keys(values))}:
        if name not in fields or name not in values:
            how = "unknown" if name in values else "missing"
            raise Malformed(f"the parameter {name[:SHORT]} of {what} is {how}")
        said, fits = fields[name]
        if not fits(dict.__getitem__(values, name)):
            shown = str(dict.__getitem__(values, name))[:SHORT]
            raise Malformed(f"{name} is {shown}; it must be {said}")


def allowed(kind: str, setting: Any) -> None:
    """Refuse the setting of a file that the package would not make."""
    fields, fit = SETTINGS[kind]
    held_by(setting, fields, "the setting")
    for holds, said in fit(dict(dict.items(setting))):
        if not holds:
            raise Malformed(f"{said}, in a setting of {kind}")


# --- programs ----------------------------------------------------------------------------------


@dataclass
class Row:
    """a . v <= b, or a . v = b; a coefficient is a number, or the two ends of an enclosure.

    Enclosed is a coefficient of a variable that is at least 0 alone.

    Attributes:
        terms: a, by variable.
        limit: b.
        equality: whether it is one.
        promised: if not, a design may miss the row, and says by how much.
    """

    terms: dict[Variable, Number | Between]
    limit: Number | Between = 0
    equality: bool = False
    promised: bool = True


@dataclass
class Program:
    """The linear program that a design answers, and the design's point in it.

    Attributes:
        pmfs: lists of variables >= 0, and their sum; what is in no distribution and no box is 0.
        boxes: both limits of other variables.
        cost: by variable.
        names: of the rows.
        row: of a name.
        maximise: whether a larger value is better.
        point: of the design, by variable; empty if there is none.
        private: decides the privacy rows, where they are too many to be looked at one by one.
        others: names of the rows that `private` does not decide.
        note: what is said beside the value.
        neighbours: between whom the rows were decided.
        among: of which other points the bound speaks, if not of all that the setting allows.
    """

    pmfs: list[Pmf]
    boxes: dict[Variable, Between]
    cost: Mapping[Variable, Number]
    names: Callable[[], Iterable[Name]]
    row: Callable[[Name], Row]
    maximise: bool = False
    point: dict[Variable, Number] = field(default_factory=dict)
    private: Callable[[], Verdict] | None = None
    others: Callable[[], Iterable[Name]] = list
    note: str = ""
    neighbours: str = ""
    among: str = ""

    @property
    def value(self) -> Number:
        """The objective at the point."""
        return sum(cost * self.point.get(v, 0) for v, cost in self.cost.items())


def ends(coefficient: Number | Between) -> Between:
    """Return both ends of a coefficient."""
    return coefficient if isinstance(coefficient, tuple) else (coefficient, coefficient)


def bound(program: Program, multipliers: Iterable[tuple[Name, Number]]) -> Number:
    """Return what no point of the program can pass, by weak duality."""
    sign = -1 if program.maximise else 1
    reduced: dict[Variable, Number] = defaultdict(int)
    widths: dict[Variable, Number] = defaultdict(int)
    for variable, cost in program.cost.items():
        reduced[variable] = sign * cost
    total: Number = 0
    for name, y in multipliers:
        row = program.row(name)
        if y < 0 and not row.equality:
            raise Refused(f"the multiplier of row {name} is negative")
        lower = 0 if y >= 0 else 1
        for variable, coefficient in row.terms.items():
            reduced[variable] += y * ends(coefficient)[lower]
            if isinstance(coefficient, tuple):
                widths[variable] += abs(y) * (coefficient[1] - coefficient[0])
        total -= y * ends(row.limit)[1 - lower]
    for variables, mass in program.pmfs:
        total += mass * min(reduced[variable] for variable in variables)
    for variable, box in program.boxes.items():
        # Of a variable below 0, the upper end of what multiplies it counts.
        sums = reduced[variable], reduced[variable] + widths[variable]
        total += min(a * end for a, end in product(sums, box))
    return sign * total


def decide(program: Program) -> Verdict:
    """Refuse a point that breaks a distribution, a box or a row that was promised.

    Returns:
        How many rows were decided, the least slack, and by how much the others are missed at most.
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
    for name in program.others() if program.private else program.names():
        row, count = program.row(name), count + 1
        terms = [[a * point.get(v, 0) for a in ends(both)] for v, both in row.terms.items()]
        sums = sum(map(min, terms)), sum(map(max, terms))
        over = sums[1] - ends(row.limit)[0]
        miss = max(over, ends(row.limit)[1] - sums[0]) if row.equality else over
        if row.promised and miss > 0:
            raise Refused(f"not private: row {name} is broken by {float(miss):.3g}", name, miss)
        if row.promised and -miss < slack and not program.private:
            slack, at = -miss, name
        missed = max(missed, miss)
    return Verdict(count, slack, at, missed)


# --- kernels: K_xy = Pr[output y | input x] ----------------------------------------------------

LOSSES: dict[str, Callable[[Any, Any], int]] = {
    "absolute": lambda x, y: sum(abs(a - b) for a, b in zip(x, y, strict=True)),
    "squared": lambda x, y: sum((a - b) ** 2 for a, b in zip(x, y, strict=True)),
    "zero-one": lambda x, y: int(x != y),
    "hamming": lambda x, y: sum(a != b for a, b in zip(x, y, strict=True)),
}


def words(shape: object, size: int) -> list[tuple[int, ...]]:
    """Return what the numbers 0, 1, ... stand for: words, the last place changing first."""
    sizes = (
        [integer(categories, 1, MOST) for categories in shape]
        if isinstance(shape, list)
        else [size]
    )
    require_size(*sizes, len(sizes), len(sizes))
    return list(product(*map(range, sizes)))


def neighbours(setting: Setting, inputs: int) -> list[tuple[int, int]] | None:
    """Return the directed pairs of neighbours of a graph; None if every two inputs are."""
    graph, shape = setting["graph"], setting.get("shape")
    if graph == "complete":
        return None
    if isinstance(graph, list):
        found = [(integer(x, 0, inputs - 1), integer(z, 0, inputs - 1)) for x, z in graph]
    elif graph in ("path", "cycle", "grid", "hamming"):
        place = {
            w: x for x, w in enumerate(words(None if graph in ("path", "cycle") else shape, inputs))
        }
        if len(place) != inputs:
            raise Malformed("the shape is of another number of inputs")
        categories = range(1 + max(max(word) for word in place))
        require_size(len(place), len(categories) if graph == "hamming" else 1)
        found = [(inputs - 1, 0)] if graph == "cycle" else []
        for word, x in place.items():
            for i, category in enumerate(word):
                others = categories[category + 1 :] if graph == "hamming" else (category + 1,)
                changed = (place.get((*word[:i], other, *word[i + 1 :])) for other in others)
                found += [(x, z) for z in changed if z is not None]
    else:
        raise Malformed(f"graph is {str(graph)[:40]!r}")
    known = sorted({pair for x, z in found for pair in ((x, z), (z, x)) if x != z})
    return known if len(known) < inputs * (inputs - 1) else None


def add_privacy(
    program: Program, pairs: Any, shape: tuple[int, int], ratio: Between, delta: Fraction
) -> None:
    """Add to a program over K, with its point, that it is (epsilon, delta)-private.

    "privacy", x, z, y: K_xy - e^epsilon K_zy <= s_xzy, and "delta", x, z: sum_y s_xzy <= delta;
    for all pairs and delta = 0 "above", x, y: K_xy <= e^epsilon u_y, "below", x, y: u_y <= K_xy.

    Args:
        program: with variables ("K", x, y).
        pairs: directed neighbours (x, z); None for all.
        shape: numbers of inputs and outputs.
        ratio: e^epsilon, enclosed.
        delta: exact.
    """
    (inputs, outputs), (low, high), point = shape, ratio, program.point
    program.neighbours = among(pairs, inputs)
    require_size(inputs * (inputs if delta else 1) if pairs is None else len(pairs), outputs)
    if pairs is None and delta == 0:
        program.boxes |= {("u", y): (0, 1) for y in range(outputs)}
        if point:
            point |= {
                ("u", y): min(point["K", x, y] for x in range(inputs)) for y in range(outputs)
            }
        names = list(product(("above", "below"), range(inputs), range(outputs)))
    else:
        pairs = (
            [(x, z) for x in range(inputs) for z in range(inputs) if x != z]
            if pairs is None
            else pairs
        )
        names = [("privacy", *pair, y) for pair in pairs for y in range(outputs)]
        for x, z in pairs if delta else ():
            names.append(("delta", x, z))
            for y in range(outputs):
                program.boxes["s", x, z, y] = (0, 1)
                if point:
                    point["s", x, z, y] = max(0, point["K", x, y] - low * point["K", z, y])
    known, other_names, other = set(names), program.names, program.row

    def row(name: Name) -> Row:
        if name not in known:
            return other(name)
        if name[0] == "above":
            return Row({("K", *name[1:]): 1, ("u", name[2]): (-high, -low)})
        if name[0] == "below":
            return Row({("u", name[2]): 1, ("K", *name[1:]): -1})
        if name[0] == "delta":
            return Row({("s", *name[1:], y): 1 for y in range(outputs)}, delta)
        _, x, z, y = name
        slack: dict[Variable, Any] = {("s", x, z, y): -1} if delta else {}
        return Row({("K", x, y): 1, ("K", z, y): (-high, -low), **slack})

    program.names, program.row = lambda: [*names, *other_names()], row


def no_table() -> WeightTable:
    """Refuse to decide a table that is not there."""
    raise Malformed("there are no weights")


def no_row(name: Name) -> Row:
    """Refuse a row that a program does not have."""
    raise Malformed(f"there is no row {str(name)[:80]}")


@dataclass
class WeightTable:
    """Integer weights: of one output of each variable, for the inputs up to symmetry.

    Attributes:
        weights: variable after variable, input after input.
        counts: how many outputs of an input each variable stands for.
        starts: where the variables of each input start, and their number.
        total: what the weights of all outputs of an input sum to.
    """

    weights: list[int]
    counts: list[int]
    starts: list[int]
    total: int


def table_of(units: Any, sizes: list[int], counts: list[int]) -> WeightTable:
    """Return the table of a file: "total", and for each input a list of "weights".

    Args:
        units: of the file.
        sizes: how many variables each input has.
        counts: how many outputs each variable stands for.
    """
    total, rows = integer(units["total"], 1, 1 << 4 * LONGEST), units["weights"]
    if not isinstance(rows, list) or len(rows) != len(sizes):
        raise Malformed(f"a table of {len(sizes)} rows is missing")
    weights = list[int]()
    for row, size in zip(rows, sizes, strict=True):
        if not isinstance(row, list) or len(row) != size:
            raise Malformed(f"a row of {size} weights is missing")
        weights += [integer(weight, 0, total) for weight in row]
    starts = list(accumulate(sizes, initial=0))
    decide_pmfs(weights, counts, starts, total)
    return WeightTable(weights, counts, starts, total)


def kernel(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the kernel of least loss: sum_x prior_x loss_x . K_x, or the largest loss_x . K_x."""
    inputs, outputs = integer(setting["inputs"], 2, MOST), integer(setting["outputs"], 1, MOST)
    require_size(inputs, outputs, 4)
    named = setting["loss"]
    if isinstance(named, str):
        if named not in LOSSES:
            raise Malformed(f"loss is {named[:40]!r}")
        sides = [words(setting["shape"], size) for size in (inputs, outputs)]
        loss: Any = [[LOSSES[named](a, b) for b in sides[1]] for a in sides[0]]
    else:
        loss = matrix(named, inputs, outputs)
    places = list(product(range(inputs), range(outputs)))
    pmfs: list[Pmf] = [([("K", x, y) for y in range(outputs)], 1) for x in range(inputs)]
    program = Program(pmfs, {}, {}, list, no_row, setting["sense"] == "maximise")
    variable = variables_of(setting, inputs, outputs)
    made = table_of(units, *sizes_of(variable, outputs)) if units else None
    if made:
        known = [Fraction(weight, made.total) for weight in made.weights]
        program.point = {("K", x, y): known[variable[x][y]] for x, y in places}
    rows = asked(setting, inputs, outputs)
    if setting["sense"] not in ("minimise", "maximise"):
        raise Malformed("sense is neither minimise nor maximise")
    if setting["objective"] not in ("mean", "worst-case"):
        raise Malformed("objective is neither bayes nor minimax")
    if setting["objective"] == "worst-case":
        # "worst", x: loss_x . K_x <= t, or t <= loss_x . K_x of a utility.
        sign, cells = (-1 if program.maximise else 1), [loss[x][y] for x, y in places]
        for x, line in enumerate(loss):
            terms: dict[Variable, Any] = {("K", x, y): sign * a for y, a in enumerate(line)}
            rows["worst", x] = Row(terms | {("t",): -sign})
        program.cost, program.boxes["t",] = {("t",): 1}, (min(cells), max(cells))
        if units:
            losses = [
                sum(a * program.point["K", x, y] for y, a in enumerate(loss[x]))
                for x in range(inputs)
            ]
            program.point["t",] = min(losses) if program.maximise else max(losses)
    else:
        prior = weights_of(setting["prior"] or [1] * inputs, inputs)
        total = sum(prior)
        program.cost = {("K", x, y): prior[x] / total * loss[x][y] for x, y in places}
    program.names, program.row = lambda: rows, lambda name: rows.get(name) or no_row(name)
    promised = [number(setting[name]) for name in ("epsilon", "delta")]
    pairs = neighbours(setting, inputs)
    add_privacy(program, pairs, (inputs, outputs), ratio or exp(promised[0]), promised[1])
    if made:
        grown = growth(promised[0], ratio)
        near = partial(decide_table, made, variable, pairs, grown, promised[1])
        program.others, program.private = lambda: rows, near
    if setting["symmetry"] != "none":
        symmetric(setting, loss, pairs)
    return program


def variables_of(setting: Setting, inputs: int, outputs: int) -> list[list[int]]:
    """Return the variable of each input and output: pairs that a symmetry joins are one."""
    if setting["symmetry"] == "none":
        return [[*range(x * outputs, (x + 1) * outputs)] for x in range(inputs)]
    orbit = orbits(setting, inputs, outputs)
    return [[orbit[x, y] for y in range(outputs)] for x in range(inputs)]


def sizes_of(variable: list[list[int]], outputs: int) -> tuple[list[int], list[int]]:
    """Return how many variables each input has, of inputs that are alike the first, and counts."""
    sizes, counts = list[int](), list[int]()
    for row in variable:
        # Inputs that are alike have the same variables, numbered from where those before end.
        if min(row) >= len(counts):
            known = sorted(set(row))
            sizes.append(len(known))
            counts += [row.count(v) for v in known] if len(known) < outputs else [1] * outputs
    return sizes, counts


def decide_table(
    made: WeightTable,
    variable: list[list[int]],
    pairs: list[tuple[int, int]] | None,
    grown: Growth,
    delta: Number,
) -> Verdict:
    """Decide that a table is private along directed edges.

    Args:
        made: the table.
        variable: of each input and output.
        pairs: the edges; None for all.
        grown: e^epsilon.
        delta: exact.
    """
    inputs = range(len(variable))
    if delta:
        every = [(x, z) for x in inputs for z in inputs if x != z] if pairs is None else pairs
        edges = {
            tuple(sorted(zip(variable[x], variable[z], strict=True))) for x, z in every if x < z
        }
        listed = [([a for a, _ in e], [b for _, b in e], [1] * len(e)) for e in sorted(edges)]
        return decide_sets(made.weights, made.total, listed, grown, delta)
    if pairs is None:
        columns, count = variable, len(variable) * (len(variable) - 1) * len(variable[0])
        return decide_ratios(made.weights, made.total, columns, grown, count)
    both = [
        (a, b) for x, z in pairs if x < z for a, b in zip(variable[x], variable[z], strict=True)
    ]
    near = sorted({(min(pair), max(pair)) for pair in both if pair[0] != pair[1]})
    columns = [[a for a, _ in near], [b for _, b in near]]
    return decide_ratios(made.weights, made.total, columns, grown, 2 * len(both))


def among(pairs: list[tuple[int, int]] | None, inputs: int) -> str:
    """Return between which inputs a kernel is private, in words."""
    if pairs is None:
        return f"between all {inputs} inputs"
    alone = inputs - len({x for x, _ in pairs})
    left_out = f"; {alone} inputs have no neighbour" if alone else ""
    return f"along {len(pairs)} directed edges of {inputs} inputs{left_out}"


def orbits(setting: Setting, inputs: int, outputs: int) -> dict[tuple[int, int], int]:
    """Return the orbit of each pair (x, y) under the symmetries, numbered as in a file.

    A kernel that is one weight for each orbit is written out: its symmetries need no proof.
    """
    symmetry, found = setting["symmetry"], dict[tuple[int, int], int]()
    if symmetry in ("hamming", "symbols"):
        # Pairs of words that differ in as many places, among those with as many categories.
        shape = setting["shape"] if symmetry == "hamming" else [inputs]
        places = [[i for i, q in enumerate(shape) if q == size] for size in sorted(set(shape))]
        apart = {
            (x, y): tuple(sum(v[i] != w[i] for i in alike) for alike in places)
            for (x, v), (y, w) in product(enumerate(words(shape, inputs)), repeat=2)
        }
        order = {far: number for number, far in enumerate(sorted(set(apart.values())))}
        return {pair: order[far] for pair, far in apart.items()}
    count, generators = 0, moved(setting, inputs, outputs)
    for pair in product(range(inputs), range(outputs)):
        reached = [] if pair in found else [pair]
        for x, y in reached:
            if (x, y) not in found:
                found[x, y] = count
                reached += [(sigma[x], tau[y]) for sigma, tau in generators]
        count += bool(reached)
    return found


def moved(setting: Setting, inputs: int, outputs: int) -> list[list[list[int]]]:
    """Return generators of the symmetries: where each moves inputs and outputs."""
    symmetry, sizes = setting["symmetry"], (inputs, outputs)
    if symmetry in ("hamming", "symbols"):
        # Two categories exchanged at a place, and two places with as many categories.
        shape = setting["shape"] if symmetry == "hamming" else [inputs]
        known = words(shape, inputs)
        place = {w: x for x, w in enumerate(known)}
        found = list[list[int]]()
        for i, size in enumerate(shape):
            for category in range(1, size):
                swap = {0: category, category: 0}
                turned_ = ((*w[:i], swap.get(w[i], w[i]), *w[i + 1 :]) for w in known)
                found.append([place[w] for w in turned_])
            for j in (j for j in range(i) if shape[j] == size):
                swapped = ((*w[:j], w[i], *w[j + 1 : i], w[j], *w[i + 1 :]) for w in known)
                found.append([place[w] for w in swapped])
        return [[side, side] for side in found]
    moves: dict[str, list[Callable[[int, int], int]]] = {
        "reflection": [lambda x, n: n - 1 - x],
        "cyclic": [lambda x, n: (x + 1) % n],
        "dihedral": [lambda x, n: (x + 1) % n, lambda x, n: -x % n],
    }
    if isinstance(symmetry, str):
        return [[[move(x, n) for x in range(n)] for n in sizes] for move in moves[symmetry]]
    for pair in symmetry:
        if any(sorted(side) != [*range(n)] for n, side in zip(sizes, pair, strict=True)):
            raise Malformed("symmetry holds what is no permutation")
    return symmetry


def symmetric(setting: Setting, loss: Any, pairs: list[tuple[int, int]] | None) -> None:
    """Refuse symmetries that change the loss, the neighbours, the prior or the rows."""
    inputs, outputs, prior = setting["inputs"], setting["outputs"], setting["prior"]
    own, values = asked(setting, inputs, outputs), dict[int, Number]()
    known = {(name[:-2], row.limit, frozenset(row.terms.items())) for name, row in own.items()}
    if any(
        values.setdefault(at, loss[x][y]) != loss[x][y]
        for (x, y), at in orbits(setting, inputs, outputs).items()
    ):
        raise Malformed("symmetry changes the loss")
    for sigma, tau in moved(setting, inputs, outputs):
        images = {
            (
                name[:-2],
                row.limit,
                frozenset((("K", sigma[x], tau[y]), a) for (_, x, y), a in row.terms.items()),
            )
            for name, row in own.items()
        }
        if not images <= known or (
            prior and any(prior[x] != prior[sigma[x]] for x in range(inputs))
        ):
            raise Malformed("symmetry changes the prior or the rows")
        if pairs and {(sigma[x], sigma[z]) for x, z in pairs} != set(pairs):
            raise Malformed("symmetry changes the neighbours")


def asked(setting: Setting, inputs: int, outputs: int) -> dict[Name, Row]:
    """Return what was asked beside privacy, which a kernel keeps up to a residual.

    "invariance", i, y: sum_x A_ix K_xy = B_iy, or q K = q; "rows", name, i, 1 and -1: the upper and
    the lower limit of sum_xy c_ixy K_xy, row i of the user's own rows of that name.
    """
    fixed, rows = setting["invariant"] or [[], []], dict[Name, Row]()
    left, right = fixed if isinstance(fixed[0], list) else ([fixed], [fixed])
    left, right = matrix(left, len(left), inputs), matrix(right, len(left), outputs)
    require_size(1 + len(left), inputs, outputs)
    for (i, line), y in product(enumerate(left), range(outputs)):
        terms: dict[Variable, Any] = {("K", x, y): a for x, a in enumerate(line) if a}
        rows["invariance", i, y] = Row(terms, right[i][y], equality=True, promised=False)
    if len({own[0] for own in setting["constraints"] or []}) < len(setting["constraints"] or []):
        raise Malformed("two blocks of rows have the same name")
    for name, places, coefficients, *limits in setting["constraints"] or []:
        sums: list[dict[Variable, Any]] = [defaultdict(Fraction) for _ in limits[0]]
        for (i, x, y), a in zip(places, vector(coefficients, len(places)), strict=True):
            place = "K", integer(x, 0, inputs - 1), integer(y, 0, outputs - 1)
            sums[integer(i, 0, len(sums) - 1)][place] += a
        for (sign, side), (i, sum_) in product(zip((-1, 1), limits, strict=True), enumerate(sums)):
            if side[i] is not None:
                terms = {place: sign * a for place, a in sum_.items()}
                rows["rows", name, i, sign] = Row(terms, sign * number(side[i]), promised=False)
    return rows


# --- majorities --------------------------------------------------------------------------------

Powers = dict[Fraction, Fraction]  # coefficients a of e^x by x: the number sum a e^x
AXES = (("bc", "cb"), ("D0", "0D"), ("1m", "m1"))  # pairs of opposite corners (p, p') of a voter
Placed = tuple[tuple[str, int], ...]  # how many voters are at which corner
Sides = tuple[list[Any], list[Any]] | tuple[()]  # of two neighbours, by the number of voters at 1
Step = Callable[[list[Any], str], list[Any]]
Close = tuple[float, Placed, list[int]]  # a lower end of the least slack, and voters at 1
FIXED = 256  # fractional bits of the distribution of the ones


def powers_of(number: Powers, most: int) -> list[Powers]:
    """Return sum a e^x to the powers 0..most."""
    found: list[Powers] = [{Fraction(0): Fraction(1)}]
    for _ in range(most):
        wider: Powers = defaultdict(Fraction)
        for (x, a), (y, b) in product(found[-1].items(), number.items()):
            wider[x + y] += a * b
        found.append({x: a for x, a in wider.items() if a})
    return found


class Voters:
    """K voters, each (epsilon, Delta)-private, and the target (m epsilon, delta)."""

    def __init__(self, setting: Setting, ratio: Between | None) -> None:
        self.count = integer(setting["voters"], 1, 4001)
        self.epsilon, self.shift = number(setting["epsilon"]), number(setting["voter_delta"])
        self.target = number(setting["allowance"]) * self.epsilon
        self.delta = number(setting["delta"])
        self.rational = number(ratio[0]) if ratio else None
        if self.epsilon <= 0 or self.target <= 0:
            raise Malformed("epsilon and the allowance are not above 0")
        if not 0 <= self.shift <= self.delta < 1:
            raise Malformed("a Delta is below 0, or above delta")
        self.fine(BITS)
        self.axes = AXES[: 3 if self.shift else 1]
        self.bits = self.bits if self.rational is None else 0
        self.spent = 0

    def fine(self, bits: int) -> None:
        """Enclose e^x to so many bits."""
        # A binomial coefficient has at most as many bits as there are voters.
        self.precision, self.bits = bits, bits + BITS + self.count
        self.growth = self.at({self.target: Fraction(1)})
        self.mixtures: dict[tuple[Any, int], list[Between]] = {}
        self.says: dict[str, tuple[Between, Between]] = {}

    def at(self, powers: Powers) -> Between:
        """Return sum a e^x, enclosed; exactly if e^epsilon is rational."""
        low: Number = 0
        high: Number = 0
        for x, a in powers.items():
            if self.rational is not None:
                found = ends(self.rational ** integer(x / self.epsilon, 0, 9999))
            else:
                found = exp(x, self.precision)
            low, high = low + a * found[a < 0], high + a * found[a >= 0]
        return low, high

    def times(self, one: Between, other: Between) -> Between:
        """Return the product of numbers >= 0: of multiples of 2^-bits, or of exact ones."""
        low, high = (cast(int, a) * cast(int, b) for a, b in zip(one, other, strict=True))
        return (low >> self.bits, -(-high >> self.bits)) if self.bits else (low, high)

    def chance(self, corner: str) -> Between:
        """Return the chance that a voter at a corner says 1, enclosed."""
        low, high = self.at({self.epsilon: Fraction(1)})
        d, zero = self.shift, Fraction(0)
        known = {"b": ((low + d) / (low + 1), (high + d) / (high + 1)), "0": (zero, zero)}
        known |= {"c": ((1 - d) / (high + 1), (1 - d) / (low + 1)), "D": (d, d)}
        return (known | {"m": (1 - d, 1 - d), "1": (zero + 1, zero + 1)})[corner]

    def enclosed(self, low: Number, high: Number) -> Between:
        """Return an enclosure in multiples of 2^-bits; exact numbers stay."""
        unit = 1 << self.bits
        return (low * unit // 1, -(-high * unit // 1)) if self.bits else (low, high)

    def mixed(self, placed: Placed, side: int) -> list[Between]:
        """Return the distribution of the number of ones among voters at corners, enclosed."""
        if (placed, side) in self.mixtures:
            return self.mixtures[placed, side]
        one = self.enclosed(1, 1)
        pmf = [one]
        for kind, count in placed:
            if kind[side] not in self.says:
                low, high = self.chance(kind[side])
                both = self.enclosed(low, high), self.enclosed(1 - high, 1 - low)
                self.says[kind[side]] = both
            says = self.says[kind[side]]
            powers = [list(accumulate([p] * count, self.times, initial=one)) for p in says]
            wider: list[Between] = [(0, 0)] * (len(pmf) + count)
            ways = 1
            for j in range(count + 1):
                a, b = self.times(powers[0][j], powers[1][count - j])
                for votes, before in enumerate(pmf):
                    c, d = self.times(before, (ways * a, ways * b))
                    wider[votes + j] = wider[votes + j][0] + c, wider[votes + j][1] + d
                ways = ways * (count - j) // (j + 1)
            pmf = wider
        self.mixtures[placed, side] = pmf
        return pmf

    def pmf(self, ones: int, placed: Placed, side: int) -> dict[int, Powers]:
        """Return the pmf of the number of ones, times e^epsilon + 1 for each voter at b or c."""
        pmf = {ones: {Fraction(0): Fraction(1)}}
        d, e, zero = self.shift, self.epsilon, Fraction(0)
        for kind, count in placed:
            # What a voter says 1 and 0 with; b = (e^epsilon + Delta) / (e^epsilon + 1), c = 1 - b.
            large, small = {e: Fraction(1), zero: d}, {zero: 1 - d}
            known = {"b": (large, small), "c": (small, large), "0": ({}, {zero: Fraction(1)})}
            known |= {"D": ({zero: d}, small), "m": (small, {zero: d}), "1": known["0"][::-1]}
            ones_, zeros = (powers_of(chance, count) for chance in known[kind[side]])
            wider: dict[int, Powers] = defaultdict(lambda: defaultdict(Fraction))
            for (votes, before), j in product(pmf.items(), range(count + 1)):
                self.spent += len(before) * len(ones_[j]) * len(zeros[count - j])
                require_size(self.spent, 16)
                for (x, a), (y, b), (z, c) in product(
                    before.items(), ones_[j].items(), zeros[count - j].items()
                ):
                    wider[votes + j][x + y + z] += comb(count, j) * a * b * c
            pmf = wider
        return pmf

    def row(self, name: Name) -> Row:
        """Return ("corner", ones, placed): E h(L) - R E' h(L) <= R - 1 + 2 delta, the rest at 0."""
        _, ones, placed = name
        placed = tuple((kind, integer(n, 0, 4001)) for kind, n in placed)
        known = all(any(kind in pair for pair in AXES) for kind, _ in placed)
        used = sum(n for _, n in placed)
        if not known or integer(ones, 0, 4001) + used > self.count:
            raise Malformed(f"{str(name)[:80]} is no corner")
        require_size(*(n + 1 for _, n in placed), 4)
        pmfs, nothing, unit = [self.mixed(placed, side) for side in (0, 1)], (0, 0), 1 << self.bits
        small, large = self.growth
        growth, terms = self.enclosed(small, large), dict[Variable, Any]()
        inside = range(used + 1)
        for at in range((self.count + 1) // 2, self.count + 1):
            says = [at - ones, self.count - at - ones]  # how many of those at a corner say 1
            if not any(n in inside for n in says):
                continue
            (a, b), (c, d) = [[pmf[n] if n in inside else nothing for n in says] for pmf in pmfs]
            # a - b - R (c - d), each end from the ends that fit.
            c, d = self.times(growth, c), self.times(growth, d)
            low, high = a[0] - b[1] - c[1] + d[0], a[1] - b[0] - c[0] + d[1]
            terms["gamma", at] = Fraction(low, unit), Fraction(high, unit)
        return Row(terms, (small - 1 + 2 * self.delta, large - 1 + 2 * self.delta))

    def names(self, at: int = 0, placed: Placed = ()) -> Iterator[Name]:
        """Yield the rows that the corner theorem leaves: on each axis one of its two corners."""
        if at == len(self.axes):
            used = sum(n for _, n in placed)
            yield from (("corner", ones, placed) for ones in range(self.count - used + 1))
            return
        room = self.count - sum(n for _, n in placed)
        yield from self.names(at + 1, placed)
        for kind, n in product(self.axes[at], range(1, room + 1)):
            yield from self.names(at + 1, (*placed, (kind, n)))

    def walk(
        self, start: list[Any], step: Step, at: int = 0, placed: Placed = (), sides: Sides = ()
    ) -> Iterator[tuple[Placed, list[Any], list[Any]]]:
        """Yield all these corners, and means over the voters placed by those at 1, on both sides.

        Opposite corners have the same two means in the other order, and are walked to once.

        Args:
            start: of a number for every number of ones, without any voter placed.
            step: returns the means with one voter more, who says 1 with a chance that has a name.
            at: the axis that is next.
            placed: voters so far.
            sides: the means so far; both are ``start`` if there are none.
        """
        up, down = sides or (start, start)
        if at == len(self.axes):
            yield placed, up, down
            if placed:
                yield tuple((kind[::-1], n) for kind, n in placed), down, up
            return
        yield from self.walk(start, step, at + 1, placed, (up, down))
        for kind in self.axes[at][: 2 if placed else 1]:
            here, there = up, down
            for n in range(1, len(up)):
                here, there = step(here, kind[0]), step(there, kind[1])
                yield from self.walk(start, step, at + 1, (*placed, (kind, n)), (here, there))

    def private(self, chances: list[int], total: int) -> Verdict:
        """Decide P <= R P' + delta, P the chance of the output 1, at all these corners.

        Args:
            chances: of the output 1, by the number of ones, over ``total``.
            total: see there.

        Raises:
            Refused: with the row that is broken most, up to rounding.
        """
        return self.settled(chances, total, *self.screened(chances, total))

    def screened(self, chances: list[int], total: int) -> tuple[Verdict, list[Close]]:
        """Return the verdict of all corners but those that floats leave open, and these.

        One more voter at p makes p P(o + 1) + (1 - p) P(o) of P(o), o the voters that say 1. In
        floats, of numbers >= 0, a step is wrong by three roundings, each 2^-53 of the result at
        most, or by less than 2^-1000 where it underflows.

        Args:
            chances: see `private`.
            total: likewise.
        """
        says = {kind[0]: self.chance(kind[0]) for pair in self.axes for kind in pair}
        both = {name: (float(low), float(1 - high)) for name, (low, high) in says.items()}

        def step(values: list[float], name: str) -> list[float]:
            p, q = both[name]
            return [p * b + q * a for a, b in pairwise(values)]

        growth, room = float(min(self.growth[0], 1 << 900)), float(self.delta)
        count, least, at = 0, growth + 1.0, (0, ())
        close = list[Close]()
        # Where the output 1 is impossible, P is 0, and the row holds.
        possible = list(accumulate(map(bool, chances), initial=0))
        for placed, up, down in self.walk([a / total for a in chances], step):
            used, count = self.count + 1 - len(up), count + len(up)
            require_size(count // 8)
            less = 1 - (8 * used + 16) / (1 << 53)
            slacks = [(growth * q + room) * less - p for p, q in zip(up, down, strict=True)]
            if min(slacks) < 1e-290:
                near = [o for o, slack in enumerate(slacks) if slack < 1e-290]
                near = [o for o in near if possible[o + used + 1] > possible[o]]
                near.sort(key=slacks.__getitem__)
                close += [(slacks[o], placed, near) for o in near[:1]]
                for ones in near:
                    slacks[ones] = least
            if min(slacks) < least:
                least = min(slacks)
                at = slacks.index(least), placed
        # The last subtraction was rounded, too.
        sure = Fraction(least) * (1 - Fraction(1, 1 << 50))
        return Verdict(count, sure, ("corner", *at)), sorted(close)

    def settled(
        self, chances: list[int], total: int, others: Verdict, close: list[Close]
    ) -> Verdict:
        """Decide the corners that floats leave open; return the verdict of them and the others.

        In integers, rounded against the claim; where these cannot tell, by the formula: it is a sum
        of a e^x with different rational x, 0 only if every a is (Lindemann).

        Args:
            chances: see `private`.
            total: likewise.
            others: of all other corners.
            close: those that are left, the worst first.

        Raises:
            Refused: with the first row that is broken.
        """
        finer, verdict = copy(self), others
        finer.fine(4 * BITS)
        work = sum(len(near) * (sum(n for _, n in placed) + 16) for _, placed, near in close)
        for _, placed, near in close:
            for ones in near:
                low, high = finer.slack(chances, total, ones, placed)
                at = "corner", ones, placed
                if low < 0 and (high < 0 or finer.broken(chances, total, ones, placed)):
                    told = f"{ones} voters at 1 and {placed}, the others at 0, by {float(-low):.3g}"
                    raise Refused(f"not private: {told}", at, -low)
                if max(low, 0) < verdict.slack:
                    verdict = replace(verdict, slack=max(low, Fraction(0)), at=at)
            finer.mixtures.clear()
            # Only now: of many rows that are broken, the first tells.
            require_size(work // 4)
        return verdict

    def slack(self, chances: list[int], total: int, ones: int, placed: Placed) -> Between:
        """Return R P' + delta - P at a corner, enclosed."""
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
        """Whether R P' + delta - P is below 0 at a corner, or too close to it to be told."""
        terms: Powers = defaultdict(Fraction)
        both = [self.pmf(ones, placed, side) for side in (0, 1)]
        for pmf, factor, shift in zip(both, (-1, 1), (Fraction(0), self.target), strict=True):
            for votes, powers in pmf.items():
                for x, a in powers.items():
                    terms[x + shift] += factor * a * chances[votes]
                    terms[x] += self.delta * a * total * (factor < 0)
        left = {x: a for x, a in terms.items() if a}
        return bool(left) and self.at(left)[0] < 0


NEAR = Fraction(1, 10**9)  # by how much coefficients of a proof may miss those of a prior together


def vote_weights(setting: Setting, proof: dict[str, Any]) -> tuple[list[Fraction] | None, str]:
    """Return c_l = 1/2 E[sign(p - 1/2) (a_l - a_(K-l))], a the pmf of L, l = (K + 1) / 2..K.

    Where these are no rationals that follow from the setting, those of the proof, if they are near
    what is computed here; None where nothing is.
    """
    k, text = integer(setting["voters"], 1, 4001), str(setting["prior"])
    half, pmf = (k + 1) // 2, [Fraction(0)] * (k + 1)
    if setting["coefficients"] is not None:
        return vector(setting["coefficients"], half), ""
    name, points = believed(text)
    if setting["objective"] == "surrogate":
        pmf = [Fraction(comb(k, at) * 3**at, 4**k) for at in range(k + 1)]
    elif setting["objective"] != "mean":
        raise Malformed(f"{setting['objective']} has no coefficients")
    elif name == "common-uniform":
        require_size(len(points), k, 1 + k * max(p.denominator.bit_length() for p in points) // 64)
        pieces = list(zip(points[::2], points[1::2], strict=True))
        for (a, b), (end, sign) in product(pieces, ((0, -1), (1, 1))):
            low, high = (a, min(b, Fraction(1, 2))) if end == 0 else (max(a, Fraction(1, 2)), b)
            tails = [
                [comb(k + 1, j) * p**j * (1 - p) ** (k + 1 - j) for j in range(k + 2)]
                for p in (low, high)
            ]
            rest = Fraction(0)
            for at in range(k, -1, -1) if low < high else ():
                # The integral of Pr[Binomial(k, p) = l], by Pr[Binomial(k + 1, p) > l].
                rest += tails[1][at + 1] - tails[0][at + 1]
                pmf[at] += sign * rest / (k + 1) / sum(b - a for a, b in pieces)
    elif name not in SIGNED_PMFS:
        return None, f": not decided, no coefficients are computed here for {text[:SHORT]}"
    elif "coefficients" not in proof:
        return None, ": to be looked at with the proof, which has its coefficients"
    else:
        given, pmf = vector(proof["coefficients"], half), SIGNED_PMFS[name](k, points)
        missed = sum(abs(2 * c - pmf[at] + pmf[k - at]) / 2 for at, c in enumerate(given, half))
        if missed > NEAR:
            raise Refused(
                f"the proof's coefficients miss those of {text[:SHORT]} by {float(missed):.3g}"
            )
        told = f" for the proof's coefficients, within {float(NEAR)} of those of {text[:SHORT]}"
        return given, told
    return [(pmf[at] - pmf[k - at]) / 2 for at in range(half, k + 1)], ""


def pmf_at_points(k: int, points: list[Fraction]) -> list[Fraction]:
    """Return sign(sum p_i - K/2) Pr[L = l] of known p_i, below the truth by K 2^-FIXED at most."""
    require_size(k, k)
    p = points * (k if len(points) == 1 else 1)
    if len(p) != k:
        raise Malformed("the prior is of another number of voters")
    pmf, sign = [1 << FIXED], 1 if 2 * sum(p) >= k else -1
    for n, d in (each.as_integer_ratio() for each in p):
        pmf = [(n * a + (d - n) * b) // d for a, b in zip([0, *pmf], [*pmf, 0], strict=True)]
    return [Fraction(sign * a, 1 << FIXED) for a in pmf]


def pmf_of_beta(k: int, points: list[Fraction]) -> list[Fraction]:
    """Return E[sign(p - 1/2) Pr[L = l | p]] of one p, Beta(a, b), up to 2^-200.

    The integral of p^(a-1) (1-p)^(b-1) below 1/2 is 2^-(a+b) S(a, b), with the positive series
    S(a, b) = 1/a sum_n (a+b)(a+b+1)..(a+b+n-1) / ((a+1)..(a+n) 2^n); above, S(b, a).
    """
    a, b = points
    require_size(k, k + int(a + b) + 2 * FIXED)

    def series(a: Fraction, b: Fraction) -> Fraction:
        common = lcm(a.denominator, b.denominator)
        over, under = int((a + b) * common), int((a + 1) * common)
        term, total = 1 << 2 * FIXED, 0
        while term:
            # From where a term is at most 3/4 of the one before, the rest is below 3 of them.
            total, term = total + term, term * over // (2 * under)
            over, under = over + common, under + common
        return Fraction(total, 1 << 2 * FIXED) / a

    whole_ = (series(a, b) + series(b, a)) * 2**k
    both = [(series(a + at, b + k - at), series(b + k - at, a + at)) for at in range(k + 1)]
    return [comb(k, at) * (above - below) / whole_ for at, (below, above) in enumerate(both)]


def pmf_of_uniform(k: int, points: list[Fraction]) -> list[Fraction]:
    """Return E[sign(sum p_i - K/2) Pr[L = l | p]] of independent uniform p_i, up to 1e-12.

    The sign is 4/pi times the sum of sin(pi j x / W) / j over odd j for |x| < W, so that this is
    C(K, l) 4/pi times the sum of Im(A^l B^(K-l)) / j, A = E[p e^(it(p - 1/2))] and B that of 1 - p
    at t = pi j / W. Both are at most v / t, with v the variation of p and 1 - p times the density;
    the terms left out are below 1e-12 together. Fixed point, 2^-bits: a step is wrong by a few
    units, times K^2 / j at most where it is divided by t^2.
    """
    total = sum(points[1::2]) - sum(points[::2])
    if points[0] >= Fraction(1, 2) or points[-1] <= Fraction(1, 2):
        squares = [p * p for p in points]
        return pmf_at_points(k, [(sum(squares[1::2]) - sum(squares[::2])) / (2 * Fraction(total))])
    if k == 1:
        # E|p - 1/2| of one voter: the integral of |p - 1/2| from 1/2 is x |x| / 2.
        ends_ = [(p - Fraction(1, 2)) * abs(p - Fraction(1, 2)) / 2 for p in points]
        mean = Fraction(sum(ends_[1::2]) - sum(ends_[::2])) / total
        return [-mean, mean]
    bits, width = (
        FIXED + k,
        k * max(Fraction(1, 2) - points[0], points[-1] - Fraction(1, 2)),
    )
    unit, reach = 1 << bits, float(len(points) / total * width) / pi
    last = int(reach * e_to((log(comb(k, k // 2)) + log(4e12 / pi / k)) / k)) + 3
    require_size(last, k, 4)
    angle = 4 * (4 * arctan(5, unit) - arctan(239, unit))  # pi

    def times_(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
        return (x[0] * y[0] - x[1] * y[1]) >> bits, (x[0] * y[1] + x[1] * y[0]) >> bits

    steps = [turned(int(angle * (p - Fraction(1, 2)) / width), unit) for p in points]
    turns, twice = [*steps], [times_(step, step) for step in steps]
    pmf = [0] * (k + 1)
    for j in range(1, last + 1, 2):
        t = int(j * angle / width)
        # [e / (it)] and [p e / (it) + e / t^2] over the ends, e the turn at each.
        mass, first = [0, 0], [0, 0]
        for at, (p, (x, y)) in enumerate(zip(points, turns, strict=True)):
            sign, over = (1 if at % 2 else -1), ((y * unit) // t, (-x * unit) // t)
            mass = [m + sign * o for m, o in zip(mass, over, strict=True)]
            square = ((x * unit) // t * unit) // t, ((y * unit) // t * unit) // t
            parts = zip(first, over, square, strict=True)
            first = [f + sign * int(p * o + q) for f, o, q in parts]
        one = int(first[0] / total), int(first[1] / total)
        zero = int(mass[0] / total) - one[0], int(mass[1] / total) - one[1]
        powers = [list(accumulate([z] * k, times_, initial=(unit, 0))) for z in (one, zero)]
        for at, ((a, b), (c, d)) in enumerate(zip(powers[0], powers[1][::-1], strict=True)):
            pmf[at] += ((a * d + b * c) >> bits) // j
        turns = [times_(turn, two) for turn, two in zip(turns, twice, strict=True)]
    return [Fraction(4 * comb(k, at) * a, angle) for at, a in enumerate(pmf)]


def arctan(x: int, unit: int) -> int:
    """Return the angle whose tangent is 1 / x, in units, up to one for each term."""
    power, total, n = unit // x, 0, 1
    while power:
        total += (power if n % 4 == 1 else -power) // n
        power, n = power // (x * x), n + 2
    return total


def turned(angle: int, unit: int) -> tuple[int, int]:
    """Return cosine and sine of an angle of at most 2, by their series."""
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


def split(part: list[int], at: Fraction) -> tuple[list[int], list[int]]:
    """Return Bernstein coefficients on [0, at] and on [at, 1], floored (de Casteljau)."""
    left, right, n, d = [part[0]], [part[-1]], at.numerator, at.denominator
    while len(part) > 1:
        part = [((d - n) * a + n * b) // d for a, b in pairwise(part)]
        left, right = [*left, part[0]], [*right, part[-1]]
    return left, right[::-1]


class LargestError:
    """|error(p)| <= t for every p that a prior allows; error(p) = E f(L), f(l) = -f(K - l).

    f(l) = (1 - gamma(l)) / 2 above the middle. The error is affine in each p_i: of independent
    p_i, voters at the ends of the interval are enough. Rows are ("error", j, sign), j voters at the
    largest p and the others at the smallest, or ("error", p, sign) for one p of all.
    """

    def __init__(self, setting: Setting) -> None:
        self.count, prior = integer(setting["voters"], 1, 4001), str(setting["prior"])
        name, points = believed(prior)
        if name == "samples":
            raise Malformed(f"{prior[:40]} does not say which p it allows")
        points = [Fraction(0), Fraction(1)] if name.endswith("beta") else points
        self.common, self.points = name.startswith("common-"), points if name == "point" else []
        self.points *= self.count if len(points) == 1 else 1
        self.pieces = [] if self.points else list(zip(points[::2], points[1::2], strict=True))
        if self.points and len(self.points) != self.count:
            raise Malformed(f"{prior[:40]} is no prior of {self.count} voters")

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
        """Return the pmf of L in units of 2^-FIXED, and by how many each may be too low."""
        pmf, short = [1 << FIXED], 0
        for p in self.voters(at):
            n, d = p.numerator, p.denominator
            both = zip([0, *pmf], [*pmf, 0], strict=True)
            pmf, short = [(n * a + (d - n) * b) // d for a, b in both], short + (d > 1)
        return pmf, short

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
        """Return what no |error| is above: of a common p less than 2^-49 too large.

        The coefficients of its polynomial, which bound it, are f(0), .., f(K).

        Args:
            minority: chances of the minority's output over ``total``, from the closest vote on.
            total: see there.
        """
        f, best = [-b for b in minority[::-1]] + minority, 0
        if not self.common:
            require_size(self.count, self.count, 1 if self.points else self.count // 10)
            for at in range(1 if self.points else self.count + 1):
                pmf, short = self.pmf(at)
                best = max(best, abs(sum(map(mul, pmf, f))) + short * sum(map(abs, f)))
            return Fraction(best, total << FIXED)
        start, parts = [a << FIXED for a in f], []
        for low, high in self.pieces:
            parts.append(split(split(start, high)[0], low / high)[1])
        room, steps, top = (total << FIXED) >> 50, 2 * len(parts), 0
        while parts:
            best = max(best, *(abs(part[end]) for part in parts for end in (0, -1)))
            tops = [max(map(abs, part)) for part in parts]
            top = max(top, *(a for a in tops if a <= best + room), 0)
            parts = [part for part, a in zip(parts, tops, strict=True) if a > best + room]
            steps += len(parts)
            require_size(steps, self.count, 1 + self.count // 100)
            parts = [half for part in parts for half in split(part, Fraction(1, 2))]
        # Each number is an average of others, and floored once for every voter in each step.
        return Fraction(top + steps * self.count * any(f), total << FIXED)


def add_largest(program: Program, setting: Setting, made: WeightTable | None) -> None:
    """Add a worst case: minimise t, as large as every |error|; its value is -t."""
    errors, others = LargestError(setting), program.row
    row = cache(errors.row)
    if made is None:
        raise Malformed("a worst case is checked with its units alone")
    program.point["t",] = errors.largest(made.weights[1::2], made.total)
    program.cost, program.boxes["t",] = {("t",): -1}, (0, 1)
    program.row = lambda name: (row if name[0] == "error" else others)(name)
    program.note = f" (minus the largest error for {str(setting['prior'])[:40]})"


def add_regrets(program: Program, setting: Setting, proof: Any) -> None:
    """Add a least regret: minimise t, error_j <= b_j + t coin_j for each prior j; its value is -t.

    error_j = sum_l c_jl (1 - gamma(l)), coin_j = sum_l c_jl; the proof states b_j, and its
    multipliers show that no error_j is below.
    """
    others, rows, told = program.row, dict[Name, Row](), ""
    regrets = list[Fraction]()
    if len(proof["priors"]) != len(setting["priors"]):
        raise Malformed("the proof has other priors")
    for j, (prior, known) in enumerate(zip(setting["priors"], proof["priors"], strict=True)):
        one = {**setting, "objective": "mean", "prior": prior}
        weights, note = vote_weights(one, known)
        if weights is None:
            raise Malformed(f"prior {str(prior)[:40]}{note}")
        told = told or (note and " for the proof's coefficients")
        cost = dict(zip([*program.boxes], weights, strict=True))
        names = [(tuple(map(frozen, line[:-1])), number(line[-1])) for line in known["multipliers"]]
        require_size(len(names), 40)
        alone, coin = replace(program, cost=cost, boxes={**program.boxes}), sum(weights)
        if coin <= 0:
            raise Malformed(f"a fair coin has no error under {str(prior)[:40]}")
        least = number(known["best"])
        if least > coin - bound(alone, names):
            raise Refused(f"the best error under {str(prior)[:40]} is not shown to be the best")
        terms: dict[Variable, Any] = {v: -c for v, c in cost.items()}
        rows["prior", j] = Row(terms | {("t",): -coin}, least - coin)
        kept = sum(c * program.point.get(v, 0) for v, c in cost.items())
        regrets.append(Fraction(coin - kept - least) / coin)
    program.row = lambda name: rows[name] if name[0] == "prior" else others(name)
    every = program.names
    program.names = lambda: [*rows, *every()]
    if program.point:
        program.point["t",] = max(regrets)
    program.cost, program.boxes["t",] = {("t",): -1}, (0, 1)
    program.note = f" (or more: minus the largest regret against errors that none is below{told})"


def majority(setting: Setting, units: Any, ratio: Between | None, proof: Any) -> Program:
    """Display the noise function gamma(l) = gamma(K - l) of a majority of private voters.

    The table holds, for l = (K + 1) / 2..K votes for the majority, the chances of its answer,
    (1 + gamma(l)) / 2, and of the other one, which "contrary" allows to be the likelier one.
    """
    voters = Voters(setting, ratio)
    variables: list[Variable] = [
        ("gamma", at) for at in range((voters.count + 1) // 2, voters.count + 1)
    ]
    boxes = dict.fromkeys(variables, (-1 if setting["contrary"] else 0, 1))
    program = Program([], {**boxes}, {}, voters.names, voters.row, maximise=True)
    made = None
    if units is not None:
        made = table_of(units, [2] * len(variables), [1] * (2 * len(variables)))
        ones, zeros = made.weights[::2], made.weights[1::2]
        program.point = {
            v: Fraction(a - b, made.total) for v, a, b in zip(variables, ones, zeros, strict=True)
        }
        program.private = partial(voters.private, zeros[::-1] + ones, made.total)
    asked = setting["objective"] if setting.get("coefficients") is None else ""
    if asked == "worst-case":
        add_largest(program, setting, made)
    elif asked == "least-regret" and proof:
        add_regrets(program, setting, proof)
    elif asked == "least-regret":
        program.note = ": to be looked at with the proof, which has its coefficients"
    else:
        weights, program.note = vote_weights(setting, proof)
        program.cost = dict(zip(variables, weights or [], strict=weights is not None))
    program.neighbours = f"one record changed, which all {voters.count} voters may have seen"
    return program


# --- pluralities: q_lc = Pr[output is one of the classes of count c | sorted counts l] -----------


@cache
def counts(total: int, classes: int) -> list[tuple[int, ...]]:
    """Return all counts of the classes with a total."""
    require_size(comb(total + classes - 1, total), classes)
    bars = combinations(range(total + classes - 1), classes - 1)
    ends = ((-1, *bar, total + classes - 1) for bar in bars)
    return [tuple(b - a - 1 for a, b in pairwise(end)) for end in ends]


@cache
def raised(total: int, classes: int) -> list[list[int]]:
    """Return for each class where counts of a total are in `counts`, with one for it more."""
    place = {n: at for at, n in enumerate(counts(total + 1, classes))}
    every = counts(total, classes)
    return [[place[*n[:y], n[y] + 1, *n[y + 1 :]] for n in every] for y in range(classes)]


class Ballots:
    """Sorted counts of K ballots over C classes; classes of the same count are output alike."""

    def __init__(self, voters: object, classes: object, units: Any) -> None:
        self.voters, self.classes = integer(voters, 1, 10**15), integer(classes, 2, 10**6)
        if isinstance(units, list):
            raise Refused("a step is private by a theorem that is not decided here")
        # Of more than two classes without a ballot it is enough to know how many there are.
        self.shown = shown = min(self.classes, self.voters + 2)
        self.states = [tuple[int, ...]()]
        for parts in range(shown, 0, -1):
            begun = ((state, self.voters - sum(state)) for state in self.states)
            longer = (
                (*state, count)
                for state, left in begun
                for count in range(min([left, *state[-1:]]), -(-left // parts) - 1, -1)
            )
            self.states = list(islice(longer, MOST // shown + 1))
            require_size(len(self.states), shown)
        self.place = {state: at for at, state in enumerate(self.states)}
        hidden = self.classes - shown
        self.many = [{c: s.count(c) + hidden * (c == 0) for c in s} for s in self.states]
        self.weights, self.table = list[dict[int, int]](), None
        if units:
            counts_ = [n for many in self.many for n in many.values()]
            self.table = table_of(units, list(map(len, self.many)), counts_)
            rows = pairwise(self.table.starts)
            listed = [self.table.weights[start:end] for start, end in rows]
            self.weights = [
                dict(zip(m, row, strict=True)) for m, row in zip(self.many, listed, strict=True)
            ]
        self.whole = self.table.total if self.table else 0

    def at(self, votes: Iterable[int]) -> int:
        """Return the place of counts, sorted."""
        return self.place[tuple(sorted(votes, reverse=True)[: self.shown])]

    def chances(self, prior: str) -> list[Fraction]:
        """Return how often sorted counts occur: votes of one p, which is Dirichlet or given."""
        (name, _, text), masses = prior.partition(":"), [Fraction(0) for _ in self.states]
        several = name == "dirichlet" and "," in text
        written = r"uniform|(dirichlet|point):([0-9.,/]|e[+-]?[0-9]{1,2}\b)+"
        if several or len(prior) > 40 * self.classes or not re.fullmatch(written, prior):
            raise Malformed(f"prior is {prior[:40]!r}")
        pmf = [Fraction(p) for p in (text or "1").split(",")]
        if name == "point":
            for drawn in counts(self.voters, self.classes):
                orders = factorial(self.voters) // prod(map(factorial, drawn))
                chance = orders * prod(p**n for p, n in zip(pmf, drawn, strict=True))
                masses[self.at(drawn)] += chance
        else:
            require_size(*[self.voters] * (1 if pmf[0] == 1 else 2))
            steps = ((pmf[0] + n) / (n + 1) for n in range(self.voters))
            rising = list(accumulate(steps, mul, initial=Fraction(1)))
            for at, (state, many) in enumerate(zip(self.states, self.many, strict=True)):
                orders = factorial(self.classes) // prod(map(factorial, many.values()))
                masses[at] = orders * prod((rising[n] for n in state), start=Fraction(1))
        total = sum(masses)
        return [mass / total for mass in masses]

    def program(self, prior: str, loss: str, minimax: bool = False) -> Program:
        """Display distributions, point and objective; "worst", l: the loss of l is at most t."""
        pmfs: list[Pmf] = [([("q", at, c) for c in many], 1) for at, many in enumerate(self.many)]
        program, lost = Program(pmfs, {}, {}, list, no_row), list[dict[Variable, Any]]()
        most = {"regret": self.voters, "error": 1}[loss]
        for at, (state, many) in enumerate(zip(self.states, self.many, strict=True)):
            lost.append({("q", at, c): min(state[0] - c, most) for c in many})
            for c, w in self.weights[at].items() if self.weights else ():
                program.point["q", at, c] = Fraction(w * many[c], self.whole)
        if minimax:
            rows = {("worst", at): Row({**each, ("t",): -1}) for at, each in enumerate(lost)}
            program.names, program.row = lambda: rows, lambda name: rows.get(name) or no_row(name)
            program.cost, program.boxes["t",] = {("t",): 1}, (0, self.voters)
            if self.weights:
                sums = (sum(a * program.point[v] for v, a in each.items()) for each in lost)
                program.point["t",] = max(sums)
        else:
            known = zip(self.chances(prior), lost, strict=True)
            program.cost = {v: p * a for p, each in known for v, a in each.items()}
        return program

    def near(self, at: int) -> Iterator[tuple[int, int, int]]:
        """Yield (c, t, d): one ballot replaced, a class of count c has d of the counts t."""
        state = self.states[at]
        firsts = {c: i for i, c in reversed(list(enumerate(state)))}
        for (a, i), (b, j) in product(firsts.items(), repeat=2):
            j += a == b
            if a > 0 and j < len(state) and state[j] == b:
                moved = [c - (y == i) + (y == j) for y, c in enumerate(state)]
                to, found = self.at(moved), set(zip(state, moved, strict=True))
                yield from ((c, to, d) for c, d in found if (at, c) != (to, d))

    def steepest(self) -> tuple[int, int, int, Name]:
        """Return two weights of neighbours of the largest ratio, the number of all, and whose."""
        over, under, count, where = 0, 1, 0, ()
        for at, weights in enumerate(self.weights):
            for c, to, d in self.near(at):
                a, b, count = weights[c], self.weights[to][d], count + 1
                if a * under > over * b:
                    over, under, where = a, b, (at, c, to, d)
        return over, under, count, where


def plurality(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display a plurality of plain ballots, given as `KINDS` says; see `Ballots`.

    "privacy", l, c, t, d: k_lc <= e^epsilon k_td for a class of count c in l and d in t, where k is
    q over the number of such classes, and one ballot replaced makes t of l.
    """
    ballots = Ballots(setting["records"], setting["classes"], units)
    low, high = ratio or exp(number(setting["epsilon"]))
    minimax = {"mean": False, "worst-case": True}[setting["objective"]]
    program = ballots.program(setting["prior"], setting["loss"], minimax)
    names, rows, near = program.names, program.row, cache(lambda at: set(ballots.near(at)))

    def every() -> Iterator[Name]:
        yield from names()
        yield from (("privacy", at, *far) for at in range(len(ballots.states)) for far in near(at))

    def row(name: Name) -> Row:
        if name[0] != "privacy":
            return rows(name)
        _, at, c, to, d = name
        if (c, to, d) not in near(integer(at, 0, len(ballots.states) - 1)):
            no_row(name)
        n, m = ballots.many[at][c], ballots.many[to][d]
        return Row({("q", at, c): Fraction(1, n), ("q", to, d): (-high / m, -low / m)})

    def private() -> Verdict:
        made, start = ballots.table or no_table(), {}
        for at, many in enumerate(ballots.many):
            start |= {(at, c): len(start) + i for i, c in enumerate(many)}
        pairs = [
            (start[at, c], start[to, d])
            for at in range(len(ballots.states))
            for c, to, d in near(at)
        ]
        columns = [[v for v, _ in pairs], [w for _, w in pairs]]
        grown = growth(number(setting["epsilon"]), ratio)
        return decide_ratios(made.weights, made.total, columns, grown, len(pairs))

    program.names, program.row, program.private = every, row, private
    program.neighbours = f"one of {ballots.voters} ballots replaced"
    most = SOLVED if setting["rule"] == "optimal" else TABLED
    if len(ballots.states) > most or ballots.voters > 10_000:
        raise Malformed(f"these are more than {most} sorted counts, or 10000 ballots")
    return program


class Labels:
    """K voters, each epsilon-private with a label, and the target (m epsilon, delta)."""

    def __init__(self, setting: Setting, ballots: Ballots, ratio: Between | None) -> None:
        self.ballots, self.voters, self.classes = ballots, ballots.voters, ballots.classes
        self.epsilon, self.allowance, self.delta, self.shift = (
            number(setting[name]) for name in ("epsilon", "allowance", "delta", "voter_delta")
        )
        self.ratio, self.pairs = ratio, list(combinations(range(self.classes), 2))
        if not self.epsilon > 0 or not 0 <= self.shift < 1:
            raise Malformed("there are no such voters")
        self.steps, self.growth = 0, self.grown(self.allowance)
        self.sizes = range(1, self.classes if self.delta else 2)  # of sets of outputs that decide

    def grown(self, power: Number) -> Between:
        """Return e^(power epsilon)."""
        known = self.ratio and Fraction(self.ratio[0]) ** integer(power, 0, 9999)
        return (known, known) if known else exp(power * self.epsilon)

    def edges(self, turned: bool = True) -> Iterator[tuple[int, ...]]:
        """Yield how many voters are on y -> z, or if negative on z -> y, for each pair y < z.

        No three are on a circle. Each choice but the first follows one with its last edge less.

        Args:
            turned: also those with all edges of another choice turned around.
        """
        place = {pair: at for at, pair in enumerate(self.pairs)}
        threes = list(combinations(range(self.classes), 3))
        circles = [(place[x, y], place[y, z], place[x, z]) for x, y, z in threes]
        waiting = [((0,) * len(self.pairs), 0)]
        while waiting:
            signed, last = waiting.pop()
            yield signed
            room = range(last, len(signed) if sum(map(abs, signed)) < self.voters else 0)
            for at, way in product(room, (1, -1) if turned or any(signed) else (1,)):
                grown = (*signed[:at], signed[at] + way, *signed[at + 1 :])
                round_ = (grown[i] * grown[j] > 0 > grown[i] * grown[k] for i, j, k in circles)
                if signed[at] * way >= 0 and not any(round_):
                    waiting.append((grown, at))

    def names(self) -> Iterator[Name]:
        """Yield all corners: sets of outputs by their size, edges, and voters at loops."""
        for size, signed in product(self.sizes, self.edges()):
            for loops in counts(self.voters - sum(map(abs, signed)), self.classes):
                yield "corner", size, signed, loops

    def row(self, name: Name) -> Row:
        """Return ("corner", k, edges, loops): E A - e^(m epsilon) E' A <= delta.

        A is the probability of the first k classes; a voter at a loop y votes y, one on y -> z
        votes y and z in proportion e^epsilon : 1, under E' in proportion 1 : e^epsilon.
        """
        kind, size, signed, loops = name
        signed = [integer(m, -self.voters, self.voters) for m in signed]
        pmf = {(tuple(integer(n, 0, self.voters) for n in loops), 0): 1}
        edges, pairs = sum(map(abs, signed)), zip(self.pairs, signed, strict=True)
        if kind != "corner" or len(loops) != self.classes or sum(loops) + edges != self.voters:
            no_row(name)
        require_size(edges, edges)
        for (y, z), m in pairs:
            (y, z), wider = (y, z) if m > 0 else (z, y), defaultdict[Any, int](int)
            self.steps += len(pmf) * abs(m)
            require_size(self.steps // 10)
            for ((votes, j), a), i in product(pmf.items(), range(abs(m) + 1)):
                more = [n + i * (x == y) + (abs(m) - i) * (x == z) for x, n in enumerate(votes)]
                wider[tuple(more), j + i] += a * comb(abs(m), i)
            pmf = wider if m else pmf
        found: dict[Variable, list[int]] = defaultdict(lambda: [0] * (edges + 1))
        share = lcm(*range(1, self.classes + 1))
        for (votes, j), a in pmf.items():
            at = self.ballots.at(votes)
            for c in votes[: integer(size, 1, self.classes - 1)]:
                found["q", at, c][j] += a * share // self.ballots.many[at][c]
        # e^(j epsilon), all times one number.
        unit = Fraction(self.ratio[0]).denominator ** edges if self.ratio else 1 << BITS
        powers = [self.grown(j) for j in range(edges + 1)]
        down, up = [low * unit // 1 for low, _ in powers], [-(-b * unit // 1) for _, b in powers]
        least, most = (sum(comb(edges, j) * a for j, a in enumerate(p)) for p in (down, up))
        terms: dict[Variable, Any] = {}
        for v, parts in found.items():
            (a, b), (c, d) = [
                [sum(map(mul, line, side)) for side in (down, up)] for line in (parts, parts[::-1])
            ]
            ends_ = a - self.growth[1] * d, b - self.growth[0] * c
            terms[v] = ends_[0] / (share * most), ends_[1] / (share * most)
        return Row(terms, (self.delta * least / most, self.delta))

    def sides(
        self, sizes: Iterable[int]
    ) -> Iterator[tuple[int, tuple[int, ...], list[tuple[int, ...]], list[int], list[int]]]:
        """Yield at all corners E A and E' A times total 2^CORNER, rounded up.

        A vote less at a loop and one more on y -> z makes b T(n + e_y) + c T(n + e_z) of T(n), n
        the votes at loops: in integers, rounded up by less than one for each edge. b itself is
        rounded up: of such voters there are more.

        Yields:
            The size k of the set of outputs; voters on edges, of which those turned around come
            with them, the two sides exchanged; voters at loops; and both sides, one for each.
        """
        weights, ballots, high = self.ballots.weights, self.ballots, self.grown(1)[1]
        b = -(-high * (1 << CORNER) // (1 + high))
        c, most = (1 << CORNER) - b, (1 << CORNER) - 1
        last = dict[int, tuple[list[int], list[int]]]()  # by the number of edges
        for size, signed in product(sizes, self.edges(turned=False)):
            edges = sum(map(abs, signed))
            here = counts(self.voters - edges, self.classes)
            if edges == 0:
                first = [sum(weights[ballots.at(n)][m] for m in n[:size]) << CORNER for n in here]
                last[0] = first, first
            else:
                at, m = max((at, m) for at, m in enumerate(signed) if m)
                more = raised(self.voters - edges, self.classes)
                y, z = self.pairs[at][:: 1 if m > 0 else -1]
                both = list(zip(more[y], more[z], strict=True))
                ahead, back = last[edges - 1]
                ahead = [b * ahead[i] + c * ahead[j] + most >> CORNER for i, j in both]
                back = [c * back[i] + b * back[j] + most >> CORNER for i, j in both]
                last[edges] = ahead, back
            yield size, signed, here, *last[edges]

    def private(self) -> Verdict:
        """Decide all corners, or where they are too many that the plurality is stable in each vote.

        Raises:
            Refused: with the row ("corner", k, edges, loops) that is broken most; of a plurality
                that is not stable, with ("vote", l, c, t, d), see `Ballots.near`.
        """
        if self.shift or not walked(self.voters, self.classes):
            return self.stable()
        growth, unit, count = self.growth[0] * (1 << CORNER) // 1, 1 << CORNER, 0
        room, least, at = int(self.delta * self.ballots.whole * unit * unit), None, ()
        for size, signed, here, *both in self.sides(self.sizes):
            edges = sum(map(abs, signed))
            ways = (1, -1) if edges else (1,)
            count += len(here) * len(ways)
            for way, (over, under) in zip(ways, (both, both[::-1]), strict=False):
                # What is rounded below 0 counts less here than there: most corners end at once.
                quick = min([growth * d - unit * a for a, d in zip(over, under, strict=True)])
                if least is not None and quick - growth * edges >= least:
                    continue
                slacks = [
                    growth * max(d - edges, 0) - a * unit for a, d in zip(over, under, strict=True)
                ]
                slack = min(slacks)
                if least is None or slack < least:
                    loops = here[slacks.index(slack)]
                    least, at = slack, ("corner", size, tuple(way * n for n in signed), loops)
        slack = Fraction((least or 0) + room, self.ballots.whole * unit * unit)
        if slack < 0:
            raise Refused(f"not private: row {at} is broken by {float(-slack):.3g}", at, -slack)
        return Verdict(count, slack, at)

    def stable(self) -> Verdict:
        """Decide that a vote multiplies a probability by so little that K voters keep the target.

        By v at most; then a voter does by g(r, v) = (r v + 1) / (r + v), or 1 + Delta (v - 1).
        """
        over, under, count, at = self.ballots.steepest()
        r, unit = (self.grown(1)[1] + self.shift) / (1 - self.shift), 1 << FIXED
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
    """Return a number that no number of corners passes, for one set of outputs.

    Voters on j directed pairs of classes, at least one on each, the others at loops.
    """
    pairs = comb(classes, 2)
    return sum(
        comb(pairs, j) * comb(voters + classes - 1, voters - j) << j
        for j in range(min(voters, pairs) + 1)
    )


def walked(voters: int, classes: int) -> bool:
    """Whether private voters are so few that all their corners are decided one by one."""
    return (classes > 2 or voters <= LEVELS) and corner_count(voters, classes) <= CORNERS


def multiclass(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display a plurality of private voters, see `Labels`; how often it is missed counts."""
    ballots = Ballots(setting["voters"], setting["classes"], units)
    program, labels = ballots.program(setting["prior"], "error"), Labels(setting, ballots, ratio)
    program.neighbours = f"one record changed, which all {ballots.voters} voters may have seen"
    program.names, program.row = labels.names, cache(labels.row)
    program.private = labels.private
    return program


# --- one category of n records over k categories -------------------------------------------------


def sizes(setting: Setting, ratio: Between | None, most: int) -> tuple[int, int, Between]:
    """Return n, k and e^epsilon."""
    n, k = integer(setting["records"], 1, most), integer(setting["categories"], 2, most)
    return n, k, ratio or exp(number(setting["epsilon"]))


def moves(n: int, k: int, m: int, rule: str) -> list[Name]:
    """Return rows "move", m, c, m~, c~: f(m~, c~) <= e^epsilon f(m, c); m is the larger of m, m~.

    f(m, c) = q_m / k + (1 - q_m) c / n is the chance of a category with count c, m the least count.
    For "exact" and "roo" they imply all: f rises in c, a row is affine in c, and c is from m to
    t = n - (k - 1) m, so that both ends decide, with the largest c~ and the least c. Where m stays,
    c + 1 after c is hardest at c = m. From m to m - 1, a category goes from c to c + 1 or c, or
    from m to m - 1. Two categories can only gain what the other loses. Published rules ask for c +
    1 after c at c = m and c = n, or for some of that; it does not always make them private.
    """
    t, more = n - (k - 1) * m, int(k > 2)
    if rule in ("exact", "roo"):
        found = [(m, m, m, m + 1)] if n > k * m and (more or n == 2 * m + 1) else []
        if m:
            found += [(m, m, m - 1, m - 1 + 2 * more), (m, t, m - 1, t + 1)]
            found += [(m - 1, m - 1, m, m), (m - 1, t + 1 - more, m, t)]
    elif rule == "conference":
        found = [(m, m, max(m - 1, 0), m + 1)] if m == 0 or n > k * m else []
    else:
        found = [(m, n, m, n + 1)]
        if rule != "journal" or m < max(n // k, 1):
            found.append((m, m, m, m + 1))
        if m:
            found += [(m, c, m - 1, c + 1) for c in (m, n)]
            found += [(m - 1, c, m, c + 1) for c in (m - 1, n)]
    return [("move", *move) for move in found]


def chances_of_moves(n: int, k: int, q: list[int], same: bool) -> Iterator[tuple[Name, int, int]]:
    """Yield the moves that imply all, with a category's chance before and after, over k n 2^62.

    From two q_m = 0 in a row on, rows say c + 1 <= e^epsilon c for larger and larger c: the first
    is enough; and with one q for all m, those of the least counts.

    Args:
        n: number of records.
        k: number of categories.
        q: q_0, q_1, ... over 2^62; 0 afterwards, or if same, all like the one.
        same: whether there is one q.
    """
    last = min(n // k, 1 if same else len(q) + 1)
    padded = q * (last + 1) if same else [*q, 0, 0]
    # A category of count c has q_m n + (1 - q_m) k c.
    fixed, each = [w * n for w in padded], [((1 << 62) - w) * k for w in padded]
    for m in range(last + 1):
        for name in moves(n, k, m, "exact"):
            _, i, c, j, d = name
            yield name, fixed[i] + each[i] * c, fixed[j] + each[j] * d


def decide_rule(n: int, k: int, q: list[int], same: bool, growth: Number) -> Verdict:
    """Decide that no move of `chances_of_moves` makes a category over e^epsilon times as likely.

    Args:
        n: number of records.
        k: number of categories.
        q: q_0, q_1, ... over 2^62; 0 afterwards, or if same, all like the one.
        same: whether there is one q.
        growth: e^epsilon, or what it is at least.

    Raises:
        Refused: with the move, if one does.
    """
    over, under = growth.numerator, growth.denominator
    rows, least, at = 0, over * n * k << 62, None
    for name, before, after in chances_of_moves(n, k, q, same):
        slack = over * before - under * after
        rows += 1
        if slack < least:
            least, at = slack, name
    if least < 0:
        missed = Fraction(-least, under * n * k << 62)
        raise Refused(f"not private: row {at} is broken by {float(missed):.3g}", at, missed)
    return Verdict(rows, Fraction(least, under * n * k << 62), at)


def roo(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the rule of least sum of q_m, the chance of a uniform category at the least count m.

    The sum over the first q_m is below that over all. For "roo" all q_m are one.
    """
    n, k, (low, high) = sizes(setting, ratio, 10**15)
    most, rule, same = n // k, setting["rule"], setting["rule"] == "roo"
    if rule not in ("exact", "roo", "journal", "journal-repaired", "conference"):
        raise Malformed(f"rule is {str(rule)[:40]!r}")
    q = [] if units is None else integers(units, 0, 1 << 62)
    if len(q) > (1 if same else most + 1):
        raise Malformed(f"there are {len(q)} q_m for {most + 1} least counts")
    last = min(most, 1 if same else len(q) + 1 if q else most)
    require_size(last + 1, 3)
    costs: dict[Variable, Number] = {("q", m): 1 for m in range(last + 1)}
    if same:
        costs = {("q", 0): most + 1}
    if rule == "conference" and last == most > 0:
        costs["q", most] = Fraction(1, k)

    def row(name: Name) -> Row:
        _, m, c, j, d = name
        before, after = ("q", 0 if same else m), ("q", 0 if same else j)
        ends_ = sorted(end * (k * c - n) + (n - k * d) * (before == after) for end in (low, high))
        terms: dict[Variable, Any] = {after: n - k * d}
        return Row(terms | {before: tuple(ends_)}, (low * k * c - k * d, high * k * c - k * d))

    def names() -> Iterator[Name]:
        return (name for m in range(last + 1) for name in moves(n, k, m, rule))

    def known(name: Name) -> Row:
        m = max(name[1], name[3])
        return row(name) if m <= last and name in moves(n, k, m, rule) else no_row(name)

    program = Program([], dict.fromkeys(costs, (0, 1)), costs, names, known)
    program.point = {("q", m): Fraction(w, 1 << 62) for m, w in enumerate(q)}
    program.private = partial(decide_rule, n, k, q, same, low) if q else None
    program.neighbours = f"one of {n} records over {k} categories changed"
    return program


class Floor:
    """Weights W of a smooth floor, W(c) = c unit from its end c* on; a category has W(c) / Z.

    Z is the sum over all categories, D(c) = W(c + 1) - W(c), L(l, t) the least and H(l, t) the
    largest sum over l categories with t records. For W(0) > 0 and 0 <= D(0) <= D(1) <= ... <= unit,
    the floor is epsilon-DP if and only if

        (2)  W(c + 1) Z <= e^epsilon W(c) (Z + D(c) - D(d - 1))

    for one category that gains at c and one that loses at d, c + d <= n (= n for k = 2), where Z is
    W(c) + W(d) plus L(k - 2, n - c - d) if D(d - 1) >= D(c), else plus H(k - 2, n - c - d). With
    v = floor((n - c) / (k - 1)), only the d from min(v, c* + 1) to c* + 1 need a look, d = c* + 1
    standing for the larger of v and c* + 1. From c* on, (2) is at most c + 1 <= e^epsilon c.

    Blocks c1 <= c <= c2, d1 <= d <= d2 of the others have no larger ratio than

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
        """Return W."""
        return self.values[count] if count <= self.last else count * self.unit

    def step(self, count: int) -> int:
        """Return D."""
        return self.steps[min(count, self.last)]

    def least(self, categories: int, records: int) -> int:
        """Return L: convex weights are least where counts are even."""
        if categories == 0:
            return 0
        each, more = divmod(records, categories)
        if each >= self.last:
            return records * self.unit
        return (categories - more) * self.values[each] + more * self.values[each + 1]

    def most(self, categories: int, records: int) -> int:
        """Return H: convex weights are largest where one category has all records."""
        return self.weight(records) + (categories - 1) * self.weight(0) if categories else 0

    def even(self, c: int) -> int:
        """Return v."""
        return (self.records - c) // (self.categories - 1)

    def occurs(self, c1: int, c2: int, d1: int, d2: int) -> bool:
        """Whether a block has a c and d that two categories can have, and d not below the worst."""
        return d2 >= min(self.even(c2), self.last + 1) and c1 + d1 <= self.records

    def bound(self, c1: int, c2: int, d1: int, d2: int) -> tuple[int, int]:
        """Return the two parts of (3), both above 0: Z >= W(0) + unit, since W(c) >= c unit."""
        total = self.weight(c1) + self.least(self.categories - 1, self.records - c2)
        if d2 <= self.last or self.even(c1) <= self.last + 1:
            rest = max(0, self.records - c2 - d2)
            other = self.weight(c1) + self.weight(d1) + self.least(self.categories - 2, rest)
            total = max(total, other)
        change = min(0, self.step(c1) - self.step(d2 - 1))
        return (self.weight(c1) + self.step(c2)) * total, self.weight(c1) * (total + change)

    def ratio(self, c: int, d: int) -> tuple[int, int, int]:
        """Return d, and the two parts of the ratio that (2) limits."""
        if d > self.last:
            d = max(d, self.even(c))
        rest, change = self.records - c - d, self.step(c) - self.step(d - 1)
        others = (self.least if change <= 0 else self.most)(self.categories - 2, rest)
        total = self.weight(c) + self.weight(d) + others
        return d, self.weight(c + 1) * total, self.weight(c) * (total + change)

    def worst(self) -> tuple[Fraction, tuple[int, int], int]:
        """Return the largest ratio of a category's chances, its c and d, and how many rows it took.

        The block with the largest bound is halved across its longer side, until no bound is above
        the largest ratio that was met.
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
                if self.occurs(*half):
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
        """Decide that no category becomes more than e^epsilon times as likely.

        Raises:
            Refused: with the counts of the two categories, if one does.
        """
        worst, at, rows = self.worst()
        # The least chance there is: no row's slack is smaller.
        least = Fraction(
            self.weight(0), self.weight(self.records) + (self.categories - 1) * self.weight(0)
        )
        slack = (growth - worst) * least
        if slack < 0:
            told = f"not private: a category gains at {at[0]} and one loses at {at[1]}"
            raise Refused(told, at, -slack)
        return Verdict(rows, slack, at)


def smooth_floor(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the table W of least sum that grows no faster, with W(c) = c from its end c* on."""
    n, k, (low, _) = sizes(setting, ratio, 10**15)
    unit = 1 << integer(units[0], 1, 4096)
    weights = integers(units[1], 1, 1 << 9999)
    made, last = Floor(n, k, weights, unit), len(weights)
    table = [*made.values, (last + 1) * unit]
    own = max(Fraction(after, before) for before, after in pairwise(table))
    stated = setting["rate"] and [end - 1 for end in exp(number(setting["rate"]))]
    # The package takes e^rate - 1 as a double.
    growth = 1 + stated[1] * (1 + Fraction(1, 1 << 48)) if stated else own
    if own > growth:
        raise Refused("the weights grow faster than the rate that the setting states")

    def row(name: Name) -> Row:
        if ("lift", at := name[1]) not in point or name[0] != "growth":
            no_row(name)
        terms: dict[Variable, Any] = {("lift", at): -growth, ("lift", at + 1): 1}
        return Row(dict(list(terms.items())[: last - at]), growth * at - at - 1)

    point: dict[Variable, Number] = {
        ("lift", c): Fraction(w, unit) - c for c, w in enumerate(weights)
    }
    program = Program([], dict.fromkeys(point, (0, last)), dict.fromkeys(point, 1), list, row)
    program.names = lambda: (("growth", c) for c in range(last))
    program.private, program.point = partial(made.decide, low), point
    program.note = f" for growth {float(growth - 1)!r}"
    program.among = "" if stated else " of this growth"
    program.neighbours = f"one of {n} records over {k} categories changed"
    return program


def sorted_counts(n: int, k: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the histograms: k counts with sum n, the largest first and none above most."""
    if k == 1:
        yield (n,)
        return
    for c in range(min(n, most), -(-n // k) - 1, -1):
        yield from ((c, *rest) for rest in sorted_counts(n - c, k - 1, c))


def passages(x: tuple[int, ...]) -> Iterator[Name]:
    """Yield what one changed record does to a category: from histogram x, count c to z, d."""
    for loss, gain in product(dict.fromkeys(x), repeat=2):
        if loss and (loss != gain or x.count(loss) > 1):
            rest = list(x)
            rest.remove(loss)
            rest.remove(gain)
            z = tuple(sorted([*rest, loss - 1, gain + 1], reverse=True))
            pairs = [(loss, loss - 1), (gain, gain + 1), *((c, c) for c in dict.fromkeys(rest))]
            yield from (("privacy", x, c, z, d) for c, d in pairs if (x, c) != (z, d))


def chances(setting: Setting, n: int, k: int, found: list[Any]) -> dict[Any, Fraction]:
    """Return the pmf of the histogram x, and of (x, c, y) where category y has c of the records."""
    weight: dict[Any, int] = defaultdict(int)
    bayes, fixed = setting["distribution"] is None, setting["objective"] == "output"
    pmf = weights_of([setting["prior"]], 1) if bayes else weights_of(setting["distribution"], k)
    scale = lcm(*(p.denominator for p in pmf))
    require_size(n, n, k, scale.bit_length())
    # Of p, p^c n! / c!; of the Dirichlet distribution, a (a + 1) ... (a + c - 1) n! / c!, Polya's
    # urn. All over scale^c, whose product over the categories is scale^n.
    steps = [[int(p * scale) + bayes * i * scale for i in range(n)] for p in pmf]
    ways = [[prod(step[:c]) * perm(n, n - c) for c in range(n + 1)] for step in steps]
    if bayes:
        for x in found:
            orders = factorial(k) // prod(factorial(x.count(c)) for c in set(x))
            weight[x] = orders * prod(ways[0][c] for c in x)
    else:
        require_size(comb(n + k - 1, n), k)
        for bars in combinations(range(n + k - 1), k - 1):
            counts = [b - a - 1 for a, b in pairwise((-1, *bars, n + k - 1))]
            x, each = tuple(sorted(counts, reverse=True)), prod(map(getitem, ways, counts))
            weight[x] += each
            for y, c in enumerate(counts) if fixed else ():
                weight[x, c, y] += each
    total = sum(weight[x] for x in found)
    return {at: Fraction(w, total) for at, w in weight.items()}


def optimal_sampler(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the best pmf of a category: K_xc, that of all categories with count c in histogram x.

    "short", x, c: S_xc >= categories c / n - K_xc, whose sum over c is the distance of x;
    "distance",
    x: it is at most t; "output", y: P_y - sum of Pr[x, y has c] K_xc / categories is at most B_y.
    """
    n, k, (low, high) = sizes(setting, ratio, 4001)
    require_size(n, k, 10)
    found, objective = list(islice(sorted_counts(n, k, n), 2001)), setting["objective"]
    if len(found) > 2000:
        raise Malformed("these are too many histograms")
    places = [(x, c) for x in found for c in dict.fromkeys(x)]
    pmfs: list[Pmf] = [([("K", x, c) for c in dict.fromkeys(x)], 1) for x in found]
    rows: dict[Name, Any] = {name: None for x in found for name in passages(x)}
    program = Program(pmfs, {}, {}, lambda: rows, lambda name: rows[name] or passage(*name))
    program.neighbours = f"one of {n} records over {k} categories changed"
    point, boxes, costs = program.point, program.boxes, {}
    if units is not None:
        counts_ = [x.count(c) for x, c in places]
        made = table_of(units, [len(set(x)) for x in found], counts_)
        masses = [Fraction(n * w, made.total) for n, w in zip(counts_, made.weights, strict=True)]
        point |= {("K", *at): mass for at, mass in zip(places, masses, strict=True)}
        start = {at: v for v, at in enumerate(places)}
        pairs = [(start[x, c], start[z, d]) for _, x, c, z, d in rows]
        columns = [[v for v, _ in pairs], [w for _, w in pairs]]
        grown = growth(number(setting["epsilon"]), ratio)
        decided = partial(decide_ratios, made.weights, made.total, columns, grown, len(pairs))
        program.private, program.others = decided, lambda: [n for n in rows if n[0] != "privacy"]

    def passage(_: str, x: Any, c: int, z: Any, d: int) -> Row:
        """K_zd / categories <= e^epsilon K_xc / categories."""
        over, under = x.count(c), z.count(d)
        return Row({("K", z, d): over, ("K", x, c): (-high * under, -low * under)})

    def least(v: Variable, name: Name, most: Number, terms: dict[Variable, Any]) -> None:
        """Let v be at least most + terms, and no more than it is at the point."""
        boxes[v], rows[name] = (0, 1), Row(terms | {v: -1}, -most)
        if point:
            known = most + sum(a * point[at] for at, a in terms.items())
            point[v] = max(0, known, point.get(v, 0))

    for x, c in places:
        if c:
            whole = Fraction(x.count(c) * c, n)
            least(("S", x, c), ("short", x, c), whole, {("K", x, c): -1})
    distance = {x: {("S", x, c): 1 for c in set(x) if c} for x in found}
    pmf = {} if objective == "worst-case" else chances(setting, n, k, found)
    if objective == "worst-case":
        for x in found:
            least(("t",), ("distance", x), 0, distance[x])
        costs = {("t",): 1}
    elif objective == "output":
        asked = weights_of(setting["distribution"], k)
        for y, p in enumerate(asked):
            at = {("K", x, c): pmf[x, c, y] / -x.count(c) for x, c in places if (x, c, y) in pmf}
            least(("B", y), ("output", y), p / sum(asked), at)
        costs = {("B", y): 1 for y in range(k)}
    else:
        costs = {v: pmf[x] for x in found for v in distance[x]}
    program.cost = costs
    return program


# --- public priors: kernels K over n categories with q K = q --------------------------------------


def extend(program: Program, rows: dict[Name, Row]) -> Program:
    """Return a program with further rows."""
    names, others, row = program.names, program.others, program.row
    program.names, program.others = lambda: [*rows, *names()], lambda: [*rows, *others()]
    program.row = lambda name: rows.get(name) or row(name)
    return program


def truthful(setting: Setting, units: Any, ratio: Between | None, mean: Any = None) -> Program:
    """Display the kernel that keeps the prior and loses least: the mean or the most of 1 - K_xx."""
    n = len(setting["public"])
    require_size(n, n)
    loss = [[int(x != y) for y in range(n)] for x in range(n)]
    asks = {"inputs": n, "outputs": n, "loss": loss, "sense": "minimise", "graph": "complete"}
    asks |= {
        "objective": "mean" if mean else "worst-case",
        "prior": mean,
        "delta": 0,
        "constraints": None,
    }
    asks |= {"symmetry": "none"} | {"epsilon": setting["epsilon"], "invariant": setting["public"]}
    return kernel(asks, units, ratio, None)


def most_kept(setting: Setting, ratio: Between | None) -> Between:
    """Return lemma 3's bound R q / (R q + 1 - q) of K_ii, R = e^epsilon, i of the least mass q.

    K_ii is at most R times each other entry of its column, so at most R times their mean by the
    prior; and that mean times 1 - q is q - q K_ii, since the prior is kept.
    """
    masses, _ = whole(setting["public"], len(setting["public"]))
    q = Fraction(min(masses), sum(masses))
    low, high = [r * q / (r * q + 1 - q) for r in ratio or exp(number(setting["epsilon"]))]
    return low, high


@dataclass(frozen=True)
class Layers:
    """The integers of a closed form over T = 2^bits, categories by ascending mass.

    Row i gives w_j to each j < i (flat: to all j), e_i to i on top, and its rest, what is left of
    T, to the j > i (flat: all j) in proportion to k_j: with S the sum of these k and C of those
    before a category, its share begins at the floor of rest C / S, so that all of T is given away.

    Attributes:
        bits: of T.
        flat: whether all rows have the same w and k.
        q: the masses of the categories, in proportion.
        w: see above, as for e and k.
        e: on the category itself.
        k: by which the rest is split.
    """

    bits: int
    flat: bool
    q: list[int]
    w: list[int]
    e: list[int]
    k: list[int]

    @cached_property
    def rests(self) -> list[tuple[int, int]]:
        """The rest of each row, and the sum S that it is split over, or 1."""
        left, of, found = (1 << self.bits) - (sum(self.w) if self.flat else 0), sum(self.k), []
        for own, extra, share in zip(self.w, self.e, self.k, strict=True):
            of -= 0 if self.flat else share
            if own < 0 or extra < 0 or share < 0 or left < extra or (left > extra and not of):
                raise Refused("a row of the kernel is no distribution")
            found.append((left - extra, of or 1))
            left -= 0 if self.flat else own
        return found

    @cached_property
    def rates(self) -> list[int]:
        """The floor of rest / S of each row, over 2^(bits + 64)."""
        fine = self.bits + 64
        return [(rest << fine) // of for rest, of in self.rests]

    def columns(self) -> Iterator[tuple[int, int, int]]:
        """Yield K_jj and bounds of the least and the largest K_ij of each category j, off by 2."""
        fine, last = self.bits + 64, len(self.w) - 1
        if self.flat:
            low = min(self.rates)
            for own, extra, share, rate in zip(self.w, self.e, self.k, self.rates, strict=True):
                # Who keeps more has as much less to share: no other row gives the category more.
                kept = own + extra + (rate * share >> fine)
                yield kept, own + (low * share >> fine), kept + 2
            return
        low, high = 1 << fine + self.bits, 0
        parts = zip(self.w, self.e, self.k, self.rates, strict=True)
        for j, (own, kept, share, rate) in enumerate(parts):
            least, most = low * share >> fine, -(-high * share >> fine)
            if 0 < j < last:
                yield kept, min(kept, own, least), max(kept, own, most)
            else:
                # No row is before the first category, and none after the last one.
                ends_ = [kept, *([least, most] if j else []), *([own] if j < last else [])]
                yield kept, min(ends_), max(ends_)
            low, high = min(low, rate), max(high, rate + 1)

    def drift(self) -> Fraction:
        """Return a bound of the total variation between q K and q: half the sum over categories."""
        total, moved, flat, bits = sum(self.q), 0, self.flat, self.bits
        below, came = total, 0
        if flat:
            came = sum([a * rate >> bits for a, rate in zip(self.q, self.rates, strict=True)])
        parts = zip(self.q, self.w, self.e, self.k, self.rates, strict=True)
        for mass, own, extra, share, rate in parts:
            below -= 0 if flat else mass
            moved += abs(own * below + extra * mass + (came * share >> 64) - (mass << bits))
            came += 0 if flat else mass * rate >> bits
        # What rounding of the shares and of what came changes is less than 2 S for each category.
        return Fraction(moved + 2 * len(self.q) * total, 2 * total << bits)


def layers(setting: Setting, bits: int) -> Layers:
    """Return the integers of Algorithm 1, or of leximin, which are flat, over T = 2^bits.

    With r a little below e^epsilon and Q the masses in ascending order, S their sum, Algorithm 1
    has w_i = R_i Q_i / (r Q_i + Q_(i+1) + ...), R_i = T - w_1 - ... - w_(i-1), e_i = r w_i, k = Q;
    leximin w_i = min(T Q_i / ((r - 1) Q_i + S), one level for all), e_i = (r - 1) w_i.
    """
    masses, unit = whole(setting["public"], len(setting["public"]))
    q = sorted([(mass << bits) // unit for mass in masses])
    epsilon, size, total, n = number(setting["epsilon"]), 1 << bits, sum(q), len(q)
    fine = max(128, 64 + epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    r = Fraction(exp(epsilon, 512 + 2 * int(epsilon))[0] * (1 << fine) // 1, 1 << fine)
    shift = 104 + max(0, -floor(log2(epsilon)))
    up = (r - (r - 1) / (1 << 40)) * (1 << shift) // 1
    w, left, after = list[int](), size, total
    if setting["objective"] == "minimax":
        for mass in q[:-1]:
            after -= mass
            w.append((left * mass << shift) // (up * mass + (after << shift)))
            left -= w[-1]
        return Layers(bits, False, q, [*w, 0], [*(up * a >> shift for a in w), left], q)
    more = up - (1 << shift)
    for place, mass in enumerate(q[:-1]):
        most = (size * mass << shift) // (more * mass + (total << shift))
        if ((n - place) * most - left << shift) + more * most >= 0:
            break
        left -= most
        w.append(most)
    high, first = (left << shift) // (more + (n - len(w) << shift)), len(w)
    gain, level = (size << shift) - high * more, high * total << shift
    k = [max(0, a * gain - level) for a in q[first:]]
    drop = max(0, sum(k).bit_length() - bits)
    k = [a >> drop for a in k]
    w += [high] * (n - first)
    e = [more * a >> shift for a in w]
    return Layers(bits, True, q, w, e, [0] * first + (k if any(k) else q[first:]))


def decide_layers(made: Layers, grown: Growth) -> tuple[Verdict, Fraction]:
    """Decide that no entry of a column is above e^epsilon times another; return the least K_ii.

    Returns:
        The verdict: at is the category by ascending mass, missed how far the prior drifts.
    """
    (low, _, unit), count = grown(64 + made.bits), len(made.q)
    kept, slack, at = 1 << made.bits, unit << made.bits, 0
    for j, (diagonal, least, most) in enumerate(made.columns()):
        kept, room = min(kept, diagonal), low * least - unit * most
        if room < slack:
            slack, at = room, j
    found = Fraction(slack, unit << made.bits)
    if slack < 0:
        raise Refused(f"not private: category {at} by ascending mass", at, -found)
    drift = made.drift()
    if drift > SMALL:
        raise Refused(f"the prior is kept up to {float(drift):.3g} only")
    return Verdict(count * count * (count - 1), found, at, drift), Fraction(kept, 1 << made.bits)


def prior(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the kernel of a public prior; of a closed form, for any n, its rarest category alone.

    "worst": 1 - kept <= t; "lemma 3": kept <= R q / (R q + 1 - q).
    """
    if units is None or "weights" in units:
        return truthful(setting, units, ratio)
    count, bits = len(setting["public"]), integer(units["bits"], 1, 4096)
    require_size(count, 1 + bits // 64)
    made, grown = layers(setting, bits), growth(number(setting["epsilon"]), ratio)
    verdict, kept = decide_layers(made, grown)
    rows: dict[Name, Row] = {("lemma 3",): Row({("kept",): 1}, most_kept(setting, ratio))}
    rows["worst",] = Row({("t",): -1, ("kept",): -1}, -1)
    program = Program([], {("t",): (0, 1), ("kept",): (0, 2)}, {("t",): 1}, list, no_row)
    program.point = {("t",): 1 - kept, ("kept",): kept}
    program.private = lambda: verdict
    program.neighbours = among(None, count)
    program.note = f" (the prior kept up to {float(verdict.missed):.3g} in total variation)"
    return extend(program, rows)


def population(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the kernel that keeps a prior and is nearest to users' pmfs p_u, weighed by w_u.

    "shortfall", u, j: p_uj - (p_u K)_j <= s_uj; "worst case", i: K_ii >= lemma 3's bound - slack.
    """
    n, count = len(setting["public"]), len(setting["users"])
    require_size(count, n, n)
    users, weights = matrix(setting["users"], count, n), weights_of(setting["weights"], count)
    if min(map(min, users)) < 0:
        raise Malformed("a user's distribution has a probability below 0")
    whole, slack = sum(weights), number(setting["slack"])
    mean = [sum(w * p[i] for w, p in zip(weights, users, strict=True)) / whole for i in range(n)]
    program = truthful(setting, units, ratio, mean)
    low, high = [min(0, slack - kept) for kept in most_kept(setting, ratio)]
    rows: dict[Name, Row] = {
        ("worst case", i): Row({("K", i, i): -1}, (high, low), promised=False) for i in range(n)
    }
    if setting["objective"] == "diagonal":
        return extend(program, rows)
    program.cost, point = {}, program.point
    for (u, p), j in product(enumerate(users), range(n)):
        if p[j]:
            terms: dict[Variable, Any] = {("K", i, j): -a for i, a in enumerate(p) if a}
            rows["shortfall", u, j] = Row(terms | {("s", u, j): -1}, -p[j])
            program.cost["s", u, j], program.boxes["s", u, j] = weights[u] / whole, (0, 1)
            if point:
                gone = p[j] + sum(a * point[v] for v, a in terms.items())
                point["s", u, j] = max(0, gone)
    return extend(program, rows)


def nearest(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the private kernel nearest to a given table g, with rows of the user's own.

    "moved", x, y: K_xy - g_xy <= P_xy; "distance", x: sum_y P_xy <= t - max(0, sum_y g_xy - 1).
    """
    inputs, outputs = len(setting["kernel"]), len(setting["kernel"][0])
    require_size(inputs, outputs)
    given = matrix(setting["kernel"], inputs, outputs)
    zero = {"loss": [[0] * outputs] * inputs, "prior": None, "objective": "mean"}
    zero |= {"inputs": inputs, "outputs": outputs, "sense": "minimise", "invariant": None}
    zero |= {"symmetry": "none"}
    program, rows = kernel({**setting, **zero}, units, ratio, None), dict[Name, Row]()
    moved: list[Number] = []
    program.cost, program.boxes["t",], point = {("t",): 1}, (0, 2), program.point
    for x, line in enumerate(given):
        over = max(0, sum(line) - 1)
        terms: dict[Variable, Any] = {("P", x, y): 1 for y in range(outputs)}
        rows["distance", x] = Row(terms | {("t",): -1}, -over)
        for y, a in enumerate(line):
            program.boxes["P", x, y] = (0, 2)
            rows["moved", x, y] = Row({("K", x, y): 1, ("P", x, y): -1}, a)
            if point:
                point["P", x, y] = max(0, point["K", x, y] - a)
        moved.append(over + sum(point.get(v, 0) for v in terms))
    if point:
        point["t",] = max(moved)
        if point["t",] > Fraction(setting["tolerance"]) * (1 + SMALL):
            raise Refused("it is farther from the given table than its tolerance")
    return extend(program, rows)


def decide_box(pmf: list[int], q: list[int], grown: Growth) -> Verdict:
    """Decide q_j / h <= r_j <= q_j h for each category, h = e^(epsilon/2), r and q over their sums.

    Any two distributions r that keep this are within e^epsilon of each other.
    """
    total, mass = sum(pmf), sum(q)
    low, high, unit = grown(64 + total.bit_length() + mass.bit_length())
    sides = [(r * mass, a * total) for r, a in zip(pmf, q, strict=True)]
    room = [low * min(side) - unit * max(side) for side in sides]
    slack = min(room)
    at = room.index(slack)
    found = Fraction(slack, unit * total * mass)
    if slack < 0:
        why = "is outside" if high * min(sides[at]) < unit * max(sides[at]) else "is at the end of"
        raise Refused(f"not private: category {at} {why} the box", at, -found)
    return Verdict(2 * len(q), found, at)


def mollifier(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the pmf r nearest to p with q / h <= r <= q h, h^2 = e^epsilon: any two are private.

    "distance", j: p_j - r_j <= z_j; "above", j: r_j <= q_j h; "below", j: q_j / h <= r_j.
    """
    n = len(setting["public"])
    require_size(3, n)
    masses, p = vector(setting["public"], n), vector(setting["distribution"], n)
    pmf = [integer(weight, 0, 1 << 4 * LONGEST) for weight in units or [1] * n]
    q, p = [[a / total for a in values] for values in (masses, p) for total in [sum(values)]]
    if ratio:
        raise Malformed("its coefficients are in e^(epsilon / 2)")
    half = number(setting["epsilon"]) / 2
    low, high = exp(half)
    rows, private = dict[Name, Row](), dict[Name, Row]()
    for j, a in enumerate(q):
        rows["distance", j] = Row({("r", j): -1, ("z", j): -1}, -p[j])
        private["above", j] = Row({("r", j): 1}, (a * low, a * high))
        private["below", j] = Row({("r", j): -1}, (-a / low, -a / high))
    cost: dict[Variable, Number] = {("z", j): 1 for j in range(n)}
    boxes: dict[Variable, Between] = dict.fromkeys(cost, (0, 1))
    program = Program([([("r", j) for j in range(n)], 1)], boxes, cost, list, no_row)
    program.names, program.row = lambda: private, lambda name: private.get(name) or no_row(name)
    if units:
        if len(pmf) != n or not sum(pmf):
            raise Malformed("units are no weights of the categories")
        known = [Fraction(weight, sum(pmf)) for weight in pmf]
        program.point = {("z", j): max(0, p[j] - a) for j, a in enumerate(known)}
        program.point |= {("r", j): a for j, a in enumerate(known)}
        program.private = partial(decide_box, pmf, whole(setting["public"], n)[0], growth(half))
    program.neighbours = "between all users whose r keep these rows"
    return extend(program, rows)


# --- findings: published statements that are false ---------------------------------------------

Value = Any  # of a formula: a number, an enclosure of one, a list of such, or whether it is so
WIDEST = 1 << 16  # bits of a number in a formula
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


FUNCTIONS = ("exp", "comb", "range", "len", "sum", "min", "max")


class Formulas:
    """Named formulas over integers, which are walked here as trees and never run.

    They hold + - * / // % **, comparisons, "a if b else c", lists and their parts, each other, such
    as q(m - 1), and exp, comb, range, len, sum, min, max. A number is exact, or enclosed where
    it comes from exp; what an enclosure leaves open is refused.
    """

    def __init__(self, lines: list[str], known: dict[str, Value]) -> None:
        self.parts: dict[str, tuple[list[str], ast.expr]] = {}
        self.kept: dict[Any, Value] = {(name, ()): value for name, value in known.items()}
        self.steps = 0
        for line in lines:
            head, _, body = line.partition(" = ")
            found: Any = self.parsed(head)
            names = [name.id for name in getattr(found, "args", [])]
            if getattr(found, "func", found).id in (*FUNCTIONS, *known, *self.parts):
                raise Malformed(f"{head[:40]!r} is defined already")
            self.parts[getattr(found, "func", found).id] = names, self.parsed(body)

    def parsed(self, text: str) -> ast.expr:
        """Return a formula as a tree."""
        require_size(len(text), MOST // 1000)
        try:
            return ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            raise Malformed(f"{text[:60]!r} is no formula") from None

    def count(self, more: int) -> None:
        """Count the steps of what is done next, and refuse what nobody waits for."""
        self.steps += 1 + more
        require_size(self.steps)

    def listed(self, parts: list[Value]) -> list[Value]:
        """Return a list of numbers, or of lists of numbers."""
        inner = [part for part in parts if isinstance(part, list)]
        if any(isinstance(one, list) for part in inner for one in part):
            raise Malformed("a formula holds a list of lists of lists")
        self.count(sum(map(len, inner)))
        return parts

    def applied(self, operation: Callable[..., Number], *operands: Value) -> Value:
        """Return a result, which is least and largest where the operands are at their ends."""
        parts = [
            part for a in operands for end in ends(a) for part in number(end).as_integer_ratio()
        ]
        size = max(map(int.bit_length, parts))
        self.count(size // 16)
        require_size(size, MOST // WIDEST)
        found = [operation(*corner) for corner in product(*map(ends, operands))]
        if not any(isinstance(a, tuple) for a in operands):
            return found[0]
        if operation in (operator.mod, operator.floordiv):
            raise Refused("a remainder of a number that is not known exactly")
        if operation is OPERATIONS[ast.Div] and min(ends(operands[1])) < 0 < max(ends(operands[1])):
            raise ZeroDivisionError
        return min(found), max(found)

    def call(self, name: str, given: list[Value]) -> Value:
        """Return a formula's value for its arguments, or that of a function."""
        for part in given:
            rows = part if isinstance(part, list) else []
            self.count(sum(len(row) if isinstance(row, list) else 1 for row in rows))
        key = name, tuple(str(part) for part in given)
        if key not in self.kept and name in self.parts:
            names, body = self.parts[name]
            self.kept[key] = self.value(body, dict(zip(names, given, strict=True)))
        if key in self.kept:
            return self.kept[key]
        if name == "exp":
            self.count(999)
            low, high = ends(given[0])
            return self.applied(lambda end: end, (exp(number(low))[0], exp(number(high))[1]))
        if name == "comb":
            n, k = (integer(number_, 0, 5000) for number_ in given)
            self.count(n)
            return comb(n, k)
        if name == "range":
            places = range(*(integer(end, -MOST, MOST) for end in given))
            self.count(len(places))
            return [*places]
        # An enclosure is no list.
        values = given[0] if len(given) == 1 and isinstance(given[0], list) else given
        if name in ("sum", "min", "max"):
            operation = {"sum": operator.add, "min": min, "max": max}[name]
            start = [0] if name == "sum" else []
            return reduce(partial(self.applied, operation), [*start, *values])
        return {"len": len}[name](values)

    def sides(self, node: ast.expr, names: dict[str, Value]) -> tuple[bool, Value, Value]:
        """Return whether a comparison holds, and its sides; refuse what is too close."""
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            raise Malformed("a comparison of two sides is missing")
        left, right = self.value(node.left, names), self.value(node.comparators[0], names)
        relation = RELATIONS[type(node.ops[0])]
        found = {relation(number(a), number(b)) for a, b in product(ends(left), ends(right))}
        meet = ends(left)[0] <= ends(right)[1] and ends(right)[0] <= ends(left)[1]
        # Of two enclosures that meet nobody knows whether the numbers are equal.
        open_ = (
            relation is operator.eq and meet and isinstance(left, tuple) | isinstance(right, tuple)
        )
        if len(found) > 1 or open_:
            raise Refused("two numbers are too close to be told apart")
        return found.pop(), left, right

    def value(self, node: ast.expr, names: dict[str, Value]) -> Value:
        """Return what a part of a formula is, for the names that are bound around it."""
        self.count(0)
        match node:
            case ast.Constant(value=int(found)):
                return found
            case ast.Name(id=name):
                return names[name] if name in names else self.call(name, [])
            case ast.List(elts=parts):
                return self.listed([self.value(part, names) for part in parts])
            case ast.UnaryOp(op=ast.USub(), operand=part):
                return self.applied(operator.sub, 0, self.value(part, names))
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                n = integer(self.value(right, names), -WIDEST, WIDEST)
                times = partial(self.applied, operator.mul)
                found = reduce(times, [self.value(left, names)] * abs(n), 1)
                return found if n >= 0 else self.applied(OPERATIONS[ast.Div], 1, found)
            case ast.BinOp(left=left, op=op, right=right):
                sides = [self.value(part, names) for part in (left, right)]
                return self.applied(OPERATIONS[type(op)], *sides)
            case ast.Compare():
                return self.sides(node, names)[0]
            case ast.IfExp(test=test, body=left, orelse=right):
                told = self.value(test, names)
                if isinstance(told, list | tuple):
                    raise Malformed("a list or an enclosure is neither true nor false")
                return self.value(left if told else right, names)
            case ast.Subscript(value=part, slice=at):
                listed = self.value(part, names)
                if not isinstance(listed, list):
                    raise Malformed("a formula takes a part of what is no list")
                return listed[integer(self.value(at, names), 0, MOST)]
            case ast.GeneratorExp(elt=part, generators=[each]) | ast.ListComp(part, [each]):
                name, values = each.target, self.value(each.iter, names)
                if not isinstance(name, ast.Name) or each.ifs:
                    raise Malformed("a formula runs over more than one name")
                return self.listed([self.value(part, {**names, name.id: one}) for one in values])
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]):
                return self.call(name, [self.value(part, names) for part in given])
        raise Malformed(f"a formula holds {type(node).__name__}")


def digits(value: Value) -> str:
    """Return a value as a float has it, or how many digits it has."""
    end = number(ends(value)[0])
    try:
        return repr(float(end))
    except OverflowError:
        return f"a number of {len(str(abs(int(end))))} digits"


def finding(file: dict[str, Any], proof: Any) -> Iterator[str]:
    """Show that a published statement is false where a witness satisfies what it asks for.

    A design, if there is one, is private; in the formulas its integers are ``weights``, a list for
    each input, over ``total``, and its objective is ``value``. What is ``given`` holds, and the
    ``claim`` does not. Whether these formulas are the paper's is for the reader.
    """
    alone(proof)
    known: dict[str, Value] = {}
    if file.get("design"):
        own = file["design"]
        if own["kind"] not in KINDS:
            raise Malformed(f"its kind is {str(own['kind'])[:40]!r}, which is not checked here")
        allowed(own["kind"], own["setting"])
        program = KINDS[own["kind"]](own["setting"], own["units"], None, {})
        count = decide(program).rows
        yield f"private: {own['kind']}, {count} inequalities decided exactly, {program.neighbours}"
        yield about(own["setting"])
        rows = [[*map(number, row)] for row in own["units"]["weights"]]
        known = {"weights": rows, "total": number(own["units"]["total"]), "value": program.value}
    formulas = Formulas(file["formulas"], known)
    for text in file["given"]:
        if not formulas.sides(formulas.parsed(text), {})[0]:
            raise Refused(f"{text} does not hold")
        yield f"given: {text}"
    claim = str(file["claim"])
    holds, left, right = formulas.sides(formulas.parsed(claim), {})
    shown = f"{claim}, with {' and '.join(map(digits, (left, right)))}"
    if holds:
        raise Refused(f"the statement holds here: {shown}")
    yield f"refuted: {file['statement']}"
    yield f"false: {shown}"


# --- linear queries: an output tells of a category, V y estimates W x ----------------------------


def asked_of(setting: Setting, n: int) -> list[list[Fraction]]:
    """Return G = W'W: of all categories, the first ones, intervals, tables of bits, or W."""
    queries, apart = setting["queries"], lambda u, v: (u ^ v).bit_count()
    named: dict[str, Callable[[int, int], int]] = {
        "histogram": lambda u, v: int(u == v),
        "prefix": lambda u, v: n - max(u, v),
        "range": lambda u, v: (min(u, v) + 1) * (n - max(u, v)),
        "marginals": lambda u, v: 1 << (n.bit_length() - 1 - apart(u, v)),
    }
    if isinstance(queries, str):
        if queries not in named or (queries == "marginals" and n & (n - 1)):
            raise Malformed(f"workload is {queries[:40]!r}")
        return [[Fraction(named[queries](u, v)) for v in range(n)] for u in range(n)]
    require_size(len(queries), n, n)
    columns = list(zip(*matrix(queries, len(queries), n), strict=True))
    return [[sum(map(mul, a, b), Fraction(0)) for b in columns] for a in columns]


def times(a: list[list[Fraction]], b: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the product of two tables of numbers."""
    columns = list(zip(*b, strict=True))
    return [[sum(map(mul, line, column), Fraction(0)) for column in columns] for line in a]


def inverse(a: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the inverse of a positive semidefinite table, by elimination.

    A line that depends on those before is 0 in it: the others' block is inverted.
    """
    n = len(a)
    lines = [[*line, *(Fraction(i == j) for j in range(n))] for i, line in enumerate(a)]
    for i in range(n):
        if lines[i][i] <= 0:
            lines[i] = [Fraction(0)] * (2 * n)
            continue
        lines[i] = [x / lines[i][i] for x in lines[i]]
        for j in range(n):
            if j != i and lines[j][i]:
                lines[j] = [x - lines[j][i] * y for x, y in zip(lines[j], lines[i], strict=True)]
    return [line[n:] for line in lines]


def workload(setting: Setting, units: Any, ratio: Between | None, proof: Any) -> Program:
    """Display the kernel Q of least variance F - sum p_u G_uu, F = tr(M^-1 G), of its decoder.

    M = sum over outputs o of Q_o Q_o' / (Q_o . p). "tangent": F >= 2 tr(X G) - sum lambda for every
    X, if (lambda . s)(p . s) >= s'X G X's for all s in {1, e^epsilon}^n: F is at least its tangent,
    2 tr(X G) - tr(X G X'M), and the rows of Q are sums of multiples of such s.
    """
    n = integer(setting["categories"], 2, 64)
    if not units:
        raise Malformed("it is a convex program, not a linear one")
    outputs = len(units["weights"][0])
    require_size(n, n, outputs)
    made = table_of(units, [outputs] * n, [1] * (n * outputs))
    if setting["objective"] not in ("mean", "worst-case"):
        raise Malformed(f"objective is {str(setting['objective'])[:40]!r}")
    gram, worst = asked_of(setting, n), setting["objective"] == "worst-case"
    given = proof["prior"] if worst and proof else setting["prior"]
    weights = weights_of([1] * n if given is None else given, n)
    p = [weight / sum(weights) for weight in weights]
    known = [gram[u][u] for u in range(n)]
    places = product(range(n), range(outputs))
    point: dict[Variable, Number] = {
        ("K", u, o): Fraction(w, made.total) for (u, o), w in zip(places, made.weights, strict=True)
    }
    lines = [[Fraction(point["K", u, o]) for u in range(n)] for o in range(outputs)]
    # 1 / (Q_o . p), rounded down: that of a decoder that is as unbiased, and hardly worse.
    shares = [
        Fraction(floor((1 << 200) / sum(map(mul, line, p))), 1 << 200) if any(line) else Fraction(0)
        for line in lines
    ]
    scaled = [[share * q for q in line] for share, line in zip(shares, lines, strict=True)]
    information = times(list(map(list, zip(*scaled, strict=True))), lines)
    undone = inverse(information)
    # Queries that tell no more categories apart than the outputs do still have their decoder.
    if not all(map(any, undone)) and times(information, times(undone, gram)) != gram:
        raise Refused("the outputs do not tell all categories apart")
    spread = times(undone, times(gram, undone))
    norms = [
        share * sum(map(mul, a, b))
        for share, a, b in zip(shares, times(scaled, spread), lines, strict=True)
    ]
    losses = [sum(map(mul, norms, column)) - g for *column, g in zip(*lines, known, strict=True)]
    value = max(losses) if worst else sum(map(mul, losses, p))
    pmfs: list[Pmf] = [([("K", u, o) for o in range(outputs)], 1) for u in range(n)]
    program = Program(pmfs, {("t",): (0, 2 * value + 1)}, {("t",): 1}, list, no_row)
    program.point = {**point, ("t",): value}
    high = (ratio or exp(number(setting["epsilon"])))[1]
    epsilon, variable = (
        number(setting["epsilon"]),
        [[*range(u * outputs, (u + 1) * outputs)] for u in range(n)],
    )
    add_privacy(program, None, (n, outputs), ratio or exp(epsilon), Fraction(0))
    program.private = partial(decide_table, made, variable, None, growth(epsilon, ratio), 0)
    if not proof or "multipliers_of_categories" not in proof:
        return program
    x, lam = matrix(proof["inverse"], n, n), vector(proof["multipliers_of_categories"], n)
    tilted = times(x, times(gram, list(map(list, zip(*x, strict=True)))))
    at_most_at_all_patterns(tilted, lam, p, Fraction(-floor(-high * (1 << 64)), 1 << 64))
    least = 2 * sum(times(x, gram)[u][u] for u in range(n)) - sum(lam)
    least -= sum(map(mul, p, known))
    tangent = Row({("t",): -1}, -least)
    # The row alone says so; that the box begins there spares small values a solver's tolerance.
    program.boxes[("t",)] = (max(Fraction(0), least), 2 * value + 1)
    return extend(program, {("tangent",): tangent})


def at_most_at_all_patterns(
    b: list[list[Fraction]], lam: list[Fraction], p: list[Fraction], ratio: Fraction
) -> None:
    """Refuse lambda if s'b s > (lambda . s)(p . s) for some s in {1, ratio}^n, one flip a time."""
    n = len(lam)
    require_size(1 << n, n)
    common = lcm(*(value.denominator for line in b for value in line))
    both = [lcm(*(value.denominator for value in line)) for line in (lam, p)]
    # All of it in integers: s over the denominator of the ratio, b, lambda and p over theirs.
    step, below = ratio.numerator - ratio.denominator, ratio.denominator
    square = [[int(value * common) for value in line] for line in b]
    paid, mass = ([int(v * d) for v in line] for line, d in zip((lam, p), both, strict=True))
    left, right = both[0] * both[1], common
    sides = [below * sum(line) for line in square]
    total, pays, weighs = below * sum(sides), below * sum(paid), below * sum(mass)
    sign = [1] * n
    for place in range(1, 1 << n):
        i = (place & -place).bit_length() - 1
        change = sign[i] * step
        sign[i] = -sign[i]
        total += change * (2 * sides[i] + change * square[i][i])
        sides = [side + change * value for side, value in zip(sides, square[i], strict=True)]
        pays, weighs = pays + change * paid[i], weighs + change * mass[i]
        if total * left > pays * weighs * right:
            raise Refused("the multipliers of categories do not pay for a pattern")


# --- any table over inputs that the file writes out ----------------------------------------------


def any_table(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the table of least loss over inputs that the file writes out, of a kind not known.

    ("K", v) is the probability of all outputs of variable v together; those of an input sum to 1.
    "privacy", g, i, j: K_v / n_v <= e^epsilon K_u / n_u for variables v, u at places i, j of group
    g of neighbours. For delta > 0 "privacy", e, d, i: K_v / n_v - e^epsilon K_u / n_u <= s of entry
    i of edge e, in direction d, and "delta", e, d: the sum of counts times s is at most delta.
    "losses", x: the loss of input x is at most t. Whether neighbours and losses are those that were
    meant is for the reader.
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
    program, costs = Program(pmfs, {}, {}, list, no_row), vector(losses["costs"], size)
    ends_ = ratio or exp(epsilon)
    names, row, worst = *rows_of_table(counts_, groups, edges, ends_, delta), dict[Name, Row]()
    program.names = lambda: [*names(), *worst]
    program.row = lambda name: worst.get(name) or row(name)
    program.boxes |= {
        ("s", e, d, i): (0, 1)
        for e, edge in enumerate(edges)
        for d, i in product((0, 1), range(len(edge[2])))
    }
    if losses["weights"] is None:
        worst = {
            ("losses", x): Row({**{("K", v): costs[v] for v in range(a, b)}, ("t",): -1})
            for x, (a, b) in enumerate(pairwise(starts))
        }
        program.cost, program.boxes["t",] = {("t",): 1}, (min(costs), max(costs))
    else:
        weights = weights_of(losses["weights"], len(sizes))
        shares = [w / sum(weights) for w, n in zip(weights, sizes, strict=True) for _ in range(n)]
        program.cost = {("K", v): w * c for v, (w, c) in enumerate(zip(shares, costs, strict=True))}
    program.neighbours = f"among {len(groups) or len(edges)} groups of neighbours that it lists"
    if not units:
        return program
    made, grown = table_of(units, sizes, counts_), growth(epsilon, ratio)
    point, one_output = program.point, [Fraction(w, made.total) for w in made.weights]
    point |= {("K", v): n * w for v, (n, w) in enumerate(zip(counts_, one_output, strict=True))}
    if losses["weights"] is None:
        point["t",] = max(
            sum(costs[v] * point["K", v] for v in range(a, b)) for a, b in pairwise(starts)
        )
    for _, e, d, i in [name for name in program.boxes if name[0] == "s"]:
        v, u = edges[e][d][i], edges[e][1 - d][i]
        point["s", e, d, i] = max(0, one_output[v] - ends_[0] * one_output[u])
    if delta > 0:
        program.private = partial(decide_sets, made.weights, made.total, edges, grown, delta)
    else:
        columns = [list(column) for column in zip(*groups, strict=True)]
        program.private = partial(decide_ratios, made.weights, made.total, columns, grown)
    return program


def listed_neighbours(
    inputs: Any, starts: list[int], counts_: list[int], sets: bool
) -> tuple[list[list[int]], list[Edge]]:
    """Return the groups of neighbouring variables of a file, or with delta > 0 its edges.

    An edge has all outputs of two inputs: one that left some out would prove less.
    """
    size = len(counts_)
    if not sets:
        groups = [[integer(v, 0, size - 1) for v in group] for group in inputs["neighbours"]]
        if any(len(group) != len(groups[0]) or len(group) < 2 for group in groups):
            raise Malformed("groups of neighbours are of different lengths")
        return groups, []
    edges = [
        (
            [integer(v, 0, size - 1) for v in one],
            [integer(v, 0, size - 1) for v in two],
            [integer(n, 1, 1 << 99_999) for n in many],
        )
        for one, two, many in inputs["edges"]
    ]
    if any(not len(one) == len(two) == len(many) for one, two, many in edges):
        raise Malformed("parts of an edge are of different lengths")
    whole_rows = [dict(enumerate(counts_[a:b], a)) for a, b in pairwise(starts)]
    row_of = [row for row in whole_rows for _ in row]
    for one, two, many in edges:
        for side in (one, two):
            outputs = defaultdict[int, int](int)
            for v, n in zip(side, many, strict=True):
                outputs[v] += n
            if not side or outputs != row_of[side[0]]:
                raise Malformed("an edge leaves out outputs of an input")
    return [], edges


def rows_of_table(
    counts_: list[int], groups: list[list[int]], edges: list[Edge], grown: Between, delta: Number
) -> tuple[Callable[[], Iterator[Name]], Callable[[Name], Row]]:
    """Return the names of a table's privacy rows, and what makes the row of one.

    Args:
        counts_: how many pairs of an input and an output share each variable.
        groups: variables that are neighbours of one another, for delta = 0 without edges.
        edges: pairs of neighbouring inputs: variables of one, of the other, and how many outputs
            share each two, for delta > 0.
        grown: e^epsilon, enclosed.
        delta: delta.
    """
    low, high = map(Fraction, grown)

    def ratios(v: int, u: int) -> dict[Variable, Any]:
        n, m = counts_[v], counts_[u]
        return {("K", v): Fraction(1, n), ("K", u): (-high / m, -low / m)} if v != u else {}

    def names() -> Iterator[Name]:
        for g, group in enumerate(groups):
            yield from (
                ("privacy", g, i, j)
                for i, j in product(range(len(group)), repeat=2)
                if group[i] != group[j]
            )
        for (e, (one, two, _)), d in product(enumerate(edges), (0, 1)):
            apart = [i for i, (v, u) in enumerate(zip(one, two, strict=True)) if v != u]
            yield from (("privacy", e, d, i) for i in apart)
            yield "delta", e, d

    def row(name: Name) -> Row:
        what, first, *others = name
        if what == "delta" and edges:
            (d,), e = others, integer(first, 0, len(edges) - 1)
            excess = {("s", e, integer(d, 0, 1), i): n for i, n in enumerate(edges[e][2])}
            return Row(dict(excess), delta)
        if what != "privacy":
            return no_row(name)
        if not edges:
            group = groups[integer(first, 0, len(groups) - 1)]
            i, j = (group[integer(place, 0, len(group) - 1)] for place in others)
            return Row(ratios(i, j))
        e, d = integer(first, 0, len(edges) - 1), integer(others[0], 0, 1)
        i = integer(others[1], 0, len(edges[e][2]) - 1)
        return Row({**ratios(edges[e][d][i], edges[e][1 - d][i]), ("s", e, d, i): -1})

    return names, row


# Each takes the setting, the units (or None), e^epsilon enclosed (or None for that of the setting),
# and the proof file, which some settings need for numbers that they cannot state exactly.
KINDS: dict[str, Callable[[Setting, Any, Between | None, Any], Program]] = {
    "kernel": kernel,
    "majority": majority,
    "mollifier": mollifier,
    "multiclass": multiclass,
    "nearest-kernel": nearest,
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


class Seen(dict[str, Any]):
    """An object of a file, its names different; it keeps which of them were asked for."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.looked = set[str]()
        if len(self) != len(pairs):
            raise Malformed("a name stands twice in an object")

    def __getitem__(self, name: str) -> Any:
        self.looked.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or another one where there is none."""
        self.looked.add(name)
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        self.looked.update(dict.keys(self))
        return super().__iter__()

    def values(self) -> Any:
        """Return all values."""
        self.looked.update(dict.keys(self))
        return super().values()

    def unseen(self, before: str = "") -> Iterator[str]:
        """Yield the names that nobody asked for, those of objects in it with theirs before."""
        for name, value in dict.items(self):
            if name not in self.looked:
                yield before + name
            elif isinstance(value, Seen):
                yield from value.unseen("" if name == "body" else f"{before}{name}.")


def read(path: str) -> Seen:
    """Return the object that a file holds: numbers are finite, names stand once."""
    try:
        if not Path(path).is_file() or Path(path).stat().st_size > LARGEST_FILE:
            raise Malformed("it is no file of at most 256 MiB")
        text = Path(path).read_text(encoding="utf-8")
        found = json.loads(text, object_pairs_hook=Seen, parse_constant=number)
    except (OSError, ValueError, RecursionError) as error:
        raise Malformed(f"it cannot be read: {type(error).__name__}") from None
    if not isinstance(found, Seen):
        raise Malformed("it holds no object")
    return found


def check(path: str, proof_path: str | None = None) -> Iterator[str]:
    """Yield a line for each thing that is shown.

    Raises:
        Malformed: for what is no design, or no proof.
        Refused: for what is not so, or not shown.
    """
    whole, proof = read(path), read(proof_path) if proof_path else None
    what = str(whole.get("format"))
    if what not in FORMATS:
        raise Malformed(f"its format is {what[:SHORT]!r}, which is not checked here")
    yield from FORMATS[what](whole, proof)
    names = [*whole.unseen("file." if "body" in dict.keys(whole) else "")]
    # The proof's setting was compared as a whole.
    ours = proof.unseen("proof.") if proof else ()
    names += [name for name in ours if not name.startswith("proof.setting.")]
    if names:
        yield f"not looked at: {', '.join(names)}"


def about(setting: Seen) -> str:
    """Return the parameters that were asked for, those that are lists by their length."""
    told = (
        (name, dict.get(setting, name)) for name in dict.keys(setting) if name in setting.looked
    )
    parts = [
        f"{name} of {', '.join(dict.keys(value))}"[:SHORT]
        if isinstance(value, dict)
        else (f"{name} of {len(value)}" if isinstance(value, list) else f"{name} {value}"[:SHORT])
        for name, value in told
        if value is not None and value != []
    ]
    return f"about: {', '.join(parts)}"


def design(whole: dict[str, Any], proof: Any) -> Iterator[str]:
    """Decide the privacy of a design, find its value, and its bound if there is a proof."""
    body = whole["body"]
    kind, setting = body["kind"], body["setting"]
    stated = whole.get("kind", kind)
    if kind != (body["of"] if stated == "audit" else stated):
        raise Malformed("its kind stands twice, once another")
    if kind not in KINDS and "displayed" in body:
        # Of a kind that is not known here, inputs and losses are written out.
        kind, setting = "table", body["displayed"]
    if kind not in KINDS:
        raise Malformed(f"its kind is {str(kind)[:40]!r}, which is not checked here")
    if proof is not None and (proof.get("format"), proof.get("kind")) != ("dpopt proof", kind):
        raise Malformed(f"the second file is no proof of a {kind!r}")
    allowed(kind, setting)
    if body["units"] is None:
        raise Malformed("it has no units")
    # Voters may spend (m epsilon, delta); most other kinds have no delta.
    epsilon = number(setting["epsilon"]) * number(setting.get("allowance", 1))
    delta, stated = number(setting.get("delta", 0)), body["guarantee"]
    program = KINDS[kind](setting, body["units"], None, {} if proof is None else proof)
    verdict = decide(program)
    count, missed = verdict.rows, verdict.missed
    # What the setting promises is what was decided; the file may state no less.
    least = epsilon * (1 - Fraction(1, 10**12))
    if number(stated["epsilon"]) < least or number(stated["delta"]) < delta:
        raise Refused("it states a smaller guarantee than its setting")
    promise = f"({float(epsilon):.6g}, {float(delta):.6g})-DP"
    yield f"private: {kind}, {promise}, {count} inequalities decided exactly, {program.neighbours}"
    yield about(setting)
    if missed:
        told = max(map(number, body.get("residuals", {0: SMALL}).values()), default=Fraction(0))
        if missed > told + told / 10**9 + Fraction(1, 10**15):
            raise Refused(f"rows are missed by {float(missed):.3g}; it states {float(told):.3g}")
        yield f"rows that were asked for are missed by at most {float(missed):.3g}"
    if not program.cost:
        yield "value" + program.note
        if proof is not None:
            raise Refused("optimality is not decided: no coefficients of its objective are known")
        return
    value = program.value
    if abs(value - number(body["value"])) > abs(value) / 10**9 + Fraction(1, 10**12):
        raise Refused(f"it states the value {body['value']}, which is {float(value)!r}")
    yield f"value: {float(value)!r}{program.note}"
    if proof is not None:
        if proof["setting"] != setting:
            raise Refused("the proof is of another design, which has other parameters")
        lines = proof["multipliers"]
        require_size(len(lines), 40)
        ys = alike([number(line[-1]) for line in lines])
        names = zip((tuple(map(frozen, line[:-1])) for line in lines), ys, strict=True)
        found, claimed = bound(program, names), number(proof["bound"])
        if claimed > found if not program.maximise else claimed < found:
            raise Refused(f"the proof claims {float(claimed)!r} and shows {float(found)!r} only")
        gap, sign = abs(value - claimed), -1 if program.maximise else 1
        room, stated = max(1, abs(value)) / Fraction(10**9), body["bound"]
        if stated is None or sign * (number(stated) - claimed) > room:
            raise Refused(f"it states the bound {stated}; the proof shows {float(claimed)!r}")
        side = "above" if program.maximise else "below"
        what = "optimal" if gap <= 1000 * room and not program.among else "bounded"
        yield f"{what}: no other{program.among} is {side} {float(claimed)!r}, gap {float(gap):.3g}"
    elif body["bound"] is not None:
        yield f"bound: {float(number(body['bound']))!r} is stated, and was not checked"


def alone(proof: Any) -> None:
    """Refuse a second file beside one that needs no proof."""
    if proof is not None:
        raise Malformed("a file of this format has no second one")


def optimum(body: dict[str, Any], proof: Any) -> Iterator[str]:
    """Decide an exact optimum: a point at a rational e^epsilon whose value is the bound."""
    alone(proof)
    ratio, display = number(body["ratio"]), KINDS.get(body["kind"])
    if display is None or ratio < 1 or ratio.numerator.bit_length() > RATIO_BITS:
        raise Malformed("its kind or its ratio is unknown")
    allowed(body["kind"], body["setting"])
    program = display(body["setting"], None, (ratio, ratio), {})
    known = {v for variables, _ in program.pmfs for v in variables} | set(program.boxes)
    if not program.cost:
        raise Malformed("the objective of this program is no exact one")
    program.point, program.private = {frozen(v): number(x) for *v, x in body["point"]}, None
    if not known >= set(program.point) or len(program.point) < len(body["point"]):
        raise Malformed("its point has a variable twice, or one that the program has not")
    names = ((tuple(map(frozen, name)), number(y)) for *name, y in body["multipliers"])
    verdict, value, claimed = decide(program), program.value, number(body["value"])
    count = verdict.rows
    if verdict.missed > 0 or not value == claimed == bound(program, names):
        raise Refused("its value, its point and its multipliers do not agree")
    told = f"{value} for e^epsilon = {ratio} ({body['kind']}, {count} rows), exactly"
    yield f"optimal: {told}, {program.neighbours}"
    # The ratio stands for it.
    body["setting"].looked.discard("epsilon")
    yield about(body["setting"])


def frozen(value: Any) -> Any:
    """Return part of a row's name: lists of a file as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


# What a file is, by its format.
FORMATS: dict[str, Callable[[dict[str, Any], Any], Iterator[str]]] = {
    "dpopt exact optimum": optimum,
    "dpopt finding": finding,
    "dpopt mechanism": design,
}


def main(arguments: list[str]) -> int:
    """Check a design, and its proof; write what is shown and return the exit code."""
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
    # Of what is no such file nothing was shown.
    for stream, lines in (
        (sys.stdout, shown if code != 2 else []),
        (sys.stderr, [why] * (code > 0)),
    ):
        # Words of a file stay on their line.
        told = ("".join(c if " " <= c <= "~" else ascii(c)[1:-1] for c in line) for line in lines)
        try:
            stream.writelines(line + "\n" for line in told)
            stream.flush()
        except OSError:
            return 2
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

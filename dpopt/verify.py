"""Check a saved design without the package that made it: one file, Python's standard library.

    python verify.py x.json                  privacy alone
    python verify.py x.json x.proof.json     privacy, and that nothing is better

A design is integers; a proof is a list of multipliers. The kind of the design says which linear
program it answers,

    minimise  cost . v   over   v >= 0 in laws (which sum to a constant) and v in boxes
                         with   a . v <= b   for each row,

and each kind is one function below, which displays that program so that it can be read beside the
paper. A design is private if its integers keep every row, each decided exactly; where a coefficient
holds e^epsilon, it is enclosed between rationals, and the end that makes the row harder counts.
Nothing is better than a bound by weak duality: for any multipliers y >= 0 of the rows, the sum over
laws and boxes of the least value that (cost + y a) . v can have there, minus y b, is below the
value of every point. Nothing has to be feasible: a wrong multiplier makes the bound worse, never
untrue.

One line is printed for each thing that was shown. The command exits with 0 if all was, 2 for what
is no such file, 4 for what is not private, not optimal or not shown.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import comb, factorial, lcm, prod
from pathlib import Path
from typing import Any

Number = int | Fraction
Between = tuple[Number, Number]  # lower and upper end of a number that is not known exactly
Variable = tuple[Any, ...]  # such as ("K", 0, 3)
Law = tuple[list[Variable], Number]  # variables that are at least 0, and their sum
Name = tuple[Any, ...]  # of a row, such as ("privacy", 0, 1, 3)
Setting = dict[str, Any]

LARGEST_FILE = 256 << 20
LONGEST = 5000  # characters of a number
# ASCII alone: Python's own int takes the digits of every script, spaces and underscores.
WRITTEN = "-?(0x[0-9a-fA-F]+|[0-9]+)(/(0x[0-9a-fA-F]+|[0-9]+))?"
MOST = 4_000_000  # of variables, rows, steps: more would take more than minutes
BITS = 320  # of e^x


# What parts of a file raise where others were expected.
MISSING = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError)
MISSING += (ValueError,)


class Malformed(Exception):
    """This is no file of a design, or no proof of one."""


class Refused(Exception):
    """What the files claim is wrong, or is not shown by them."""


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
        raise Malformed(f"{str(value)[:40]!r} is no integer from {low} to {high}")
    return int(found)


def vector(values: object, size: int) -> list[Fraction]:
    """Return a list of so many numbers."""
    if not isinstance(values, list) or len(values) != size:
        raise Malformed(f"a list of {size} numbers is missing")
    return alike([number(value) for value in values])


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


# --- programs ----------------------------------------------------------------------------------


@dataclass
class Row:
    """a . v <= b, or a . v = b; a coefficient is a number, or the two ends of an enclosure.

    A row that was asked for and not promised may be missed by a design, which says by how much.
    """

    terms: dict[Variable, Number | Between]
    limit: Number | Between = 0
    equality: bool = False
    promised: bool = True


@dataclass
class Program:
    """The linear program that a design answers, and the design's point in it.

    What is in no law and no box is 0. Where the rows are too many to be looked at one by one,
    ``private`` decides them all and returns their number.
    """

    laws: list[Law]
    boxes: dict[Variable, Between]
    cost: Mapping[Variable, Number]
    names: Callable[[], Iterable[Name]]
    row: Callable[[Name], Row]
    maximise: bool = False
    point: dict[Variable, Number] = field(default_factory=dict)
    private: Callable[[], int] | None = None
    note: str = ""

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
        total -= y * ends(row.limit)[1 - lower]
    for variables, mass in program.laws:
        total += mass * min(reduced[variable] for variable in variables)
    for variable, box in program.boxes.items():
        total += min(reduced[variable] * end for end in box)
    return sign * total


def decide(program: Program) -> tuple[int, Number]:
    """Refuse a point that breaks a law, a box or a row that was promised.

    Returns:
        How many rows were decided, and by how much the others are missed at most.
    """
    point, count, missed = program.point, 0, Fraction(0)
    for variables, mass in program.laws:
        masses = [point.get(variable, 0) for variable in variables]
        if min(masses) < 0 or sum(masses) != mass:
            raise Refused(f"{variables[0]} and the others of its law are no law")
    for variable, (low, high) in program.boxes.items():
        if not low <= point.get(variable, 0) <= high:
            raise Refused(f"{variable} is outside its limits")
    if program.private is not None:
        return program.private(), missed
    for name in program.names():
        row, count = program.row(name), count + 1
        sums = [sum(ends(a)[end] * point.get(v, 0) for v, a in row.terms.items()) for end in (0, 1)]
        over = sums[1] - ends(row.limit)[0]
        miss = max(over, ends(row.limit)[1] - sums[0]) if row.equality else over
        if row.promised and miss > 0:
            raise Refused(f"not private: row {name} is broken by {float(miss):.3g}")
        missed = max(missed, miss)
    return count, missed


# --- kernels: K_xy = Pr[output y | input x] ----------------------------------------------------

LOSSES: dict[str, Callable[[Any, Any], int]] = {
    "absolute": lambda x, y: sum(abs(a - b) for a, b in zip(x, y, strict=True)),
    "squared": lambda x, y: sum((a - b) ** 2 for a, b in zip(x, y, strict=True)),
    "zero-one": lambda x, y: int(x != y),
    "hamming": lambda x, y: sum(a != b for a, b in zip(x, y, strict=True)),
}


def words(shape: object, size: int) -> list[tuple[int, ...]]:
    """Return what the numbers 0, 1, ... stand for: words, the last place changing first."""
    sizes = [integer(letters, 1, MOST) for letters in shape] if isinstance(shape, list) else [size]
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
        letters = range(1 + max(max(word) for word in place))
        require_size(len(place), len(letters) if graph == "hamming" else 1)
        found = [(inputs - 1, 0)] if graph == "cycle" else []
        for word, x in place.items():
            for i, letter in enumerate(word):
                others = letters[letter + 1 :] if graph == "hamming" else (letter + 1,)
                changed = (place.get((*word[:i], other, *word[i + 1 :])) for other in others)
                found += [(x, z) for z in changed if z is not None]
    else:
        raise Malformed(f"graph is {str(graph)[:40]!r}")
    return sorted({pair for x, z in found for pair in ((x, z), (z, x)) if x != z})


def add_privacy(
    program: Program, pairs: Any, shape: tuple[int, int], ratio: Between, delta: Fraction
) -> None:
    """Add to a program over K, with its point, that it is (epsilon, delta)-private.

    "privacy", x, z, y: K_xy - e^epsilon K_zy <= s_xzy, and "delta", x, z: sum_y s_xzy <= delta;
    for all pairs and delta = 0 "above", x, y: K_xy <= e^epsilon u_y, "below", x, y: u_y <= K_xy.
    """
    (inputs, outputs), (low, high), point = shape, ratio, program.point
    require_size(inputs if pairs is None else len(pairs), outputs)
    if pairs is None and delta == 0:
        program.boxes |= {("u", y): (0, 1) for y in range(outputs)}
        if point:
            point |= {
                ("u", y): min(point["K", x, y] for x in range(inputs)) for y in range(outputs)
            }
        names = list(product(("above", "below"), range(inputs), range(outputs)))
    else:
        pairs = pairs or [(x, z) for x in range(inputs) for z in range(inputs) if x != z]
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


def no_row(name: Name) -> Row:
    """Refuse a row that a program does not have."""
    raise Malformed(f"there is no row {str(name)[:80]}")


def table(units: Any, inputs: int, outputs: int) -> dict[Variable, Number]:
    """Return the kernel of a file: integers over 2^bits."""
    total = 1 << integer(units["bits"], 1, 4096)
    lines = enumerate(matrix(units["weights"], inputs, outputs))
    return {("K", x, y): w / total for x, line in lines for y, w in enumerate(line)}


def kernel(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the kernel of least loss: sum_x prior_x loss_x . K_x, or the largest loss_x . K_x."""
    inputs, outputs = integer(setting["inputs"], 2, MOST), integer(setting["outputs"], 1, MOST)
    require_size(inputs, outputs)
    point = table(units, inputs, outputs) if units else {}  # before anything is made of a size
    named = setting["loss"]
    if isinstance(named, str):
        if named not in LOSSES:
            raise Malformed(f"loss is {named[:40]!r}")
        sides = [words(setting["shape"], size) for size in (inputs, outputs)]
        loss: Any = [[LOSSES[named](a, b) for b in sides[1]] for a in sides[0]]
    else:
        loss = matrix(named, inputs, outputs)
    places = list(product(range(inputs), range(outputs)))
    laws: list[Law] = [([("K", x, y) for y in range(outputs)], 1) for x in range(inputs)]
    program = Program(laws, {}, {}, list, no_row, setting["sense"] == "maximise")
    program.point = point
    if setting["objective"] == "minimax":
        # "worst", x: loss_x . K_x <= t, or t <= loss_x . K_x of a utility.
        sign, cells = (-1 if program.maximise else 1), [loss[x][y] for x, y in places]
        rows = {
            ("worst", x): Row(
                {("t",): -sign} | {("K", x, y): sign * a for y, a in enumerate(loss[x])}
            )
            for x in range(inputs)
        }
        program.cost, program.boxes["t",] = {("t",): 1}, (min(cells), max(cells))
        program.names, program.row = lambda: rows, lambda name: rows.get(name) or no_row(name)
        if units:
            losses = [
                sum(a * program.point["K", x, y] for y, a in enumerate(loss[x]))
                for x in range(inputs)
            ]
            program.point["t",] = min(losses) if program.maximise else max(losses)
    else:
        prior = vector(setting["prior"] or [1] * inputs, inputs)
        program.cost = {("K", x, y): prior[x] / sum(prior) * loss[x][y] for x, y in places}
    promised = [number(setting[name]) for name in ("epsilon", "delta")]
    pairs = neighbours(setting, inputs)
    if units and ratio is None:
        stated = units["pairs"] and sorted(map(tuple, units["pairs"]))
        if [number(units["guarantee"][name]) for name in ("epsilon", "delta")] != promised:
            raise Refused("the units state another guarantee than the setting")
        if stated != pairs:
            raise Refused("the units state other neighbours than the setting")
    ratio, delta = ratio or exp(promised[0]), promised[1]
    add_privacy(program, pairs, (inputs, outputs), ratio, delta)
    return program


# --- majorities --------------------------------------------------------------------------------

Powers = dict[Fraction, Fraction]  # coefficients a of e^x by x: the number sum a e^x
AXES = (("bc", "cb"), ("D0", "0D"), ("1m", "m1"))  # pairs of opposite corners (p, p') of a voter
Placed = list[tuple[int, str, int]]  # how many voters of which group are at which corner
FIXED = 256  # fractional bits of the recursion over voters


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
    """K voters in groups, each (epsilon, Delta)-private, and the target (m epsilon, delta)."""

    def __init__(self, setting: Setting, ratio: Between | None) -> None:
        own = [setting["mechanisms"], setting["epsilon"], setting["mechanism_delta"]]
        groups = [
            list(g.values()) if isinstance(g, dict) else g for g in setting["groups"] or [own]
        ]
        sizes, epsilons, shifts = zip(*groups, strict=True)
        self.sizes = [integer(size, 1, 4001) for size in sizes]
        self.epsilons, self.shifts = [[number(a) for a in line] for line in (epsilons, shifts)]
        self.target = number(setting["allowance"]) * max(self.epsilons)
        self.delta, self.count = number(setting["delta"]), sum(self.sizes)
        rational = ratio[0] if ratio else setting.get("voter_ratio")
        self.rational = None if rational is None else number(rational)
        self.growth = self.at({self.target: Fraction(1)})
        self.axes = [(g, pair) for g, d in enumerate(self.shifts) for pair in AXES[: 3 if d else 1]]

    def at(self, powers: Powers, bits: int = BITS) -> Between:
        """Return sum a e^x, enclosed; exactly if e^epsilon is rational."""
        low: Number = 0
        high: Number = 0
        for x, a in powers.items():
            if self.rational is not None:
                found = ends(self.rational ** integer(x / self.epsilons[0], 0, 9999))
            else:
                found = exp(x, bits)
            low, high = low + a * found[a < 0], high + a * found[a >= 0]
        return low, high

    def rounded(self, low: Number, high: Number) -> Between:
        """Return an enclosure in fewer digits; a rational e^epsilon stays exact."""
        if self.rational is not None:
            return low, high
        unit = 1 << 2 * BITS
        return Fraction(low * unit // 1, unit), Fraction(-(-high * unit // 1), unit)

    def law(self, ones: int, placed: Placed, side: int) -> dict[int, Powers]:
        """Return the law of the number of ones, times e^epsilon + 1 for each voter at b or c."""
        law = {ones: {Fraction(0): Fraction(1)}}
        for group, kind, count in placed:
            d, e, zero = self.shifts[group], self.epsilons[group], Fraction(0)
            # What a voter says 1 and 0 with; b = (e^epsilon + Delta) / (e^epsilon + 1), c = 1 - b.
            large, small = {e: Fraction(1), zero: d}, {zero: 1 - d}
            known = {"b": (large, small), "c": (small, large), "0": ({}, {zero: Fraction(1)})}
            known |= {"D": ({zero: d}, small), "m": (small, {zero: d}), "1": known["0"][::-1]}
            ones_, zeros = (powers_of(chance, count) for chance in known[kind[side]])
            wider: dict[int, Powers] = defaultdict(lambda: defaultdict(Fraction))
            for (votes, before), j in product(law.items(), range(count + 1)):
                for (x, a), (y, b), (z, c) in product(
                    before.items(), ones_[j].items(), zeros[count - j].items()
                ):
                    wider[votes + j][x + y + z] += comb(count, j) * a * b * c
            law = wider
        return law

    def row(self, name: Name) -> Row:
        """Return ("corner", ones, placed): E h(L) - R E' h(L) <= R - 1 + 2 delta, the rest at 0."""
        _, ones, placed = name
        placed = [
            (integer(g, 0, len(self.sizes) - 1), kind, integer(n, 0, 4001)) for g, kind, n in placed
        ]
        known = all(any(kind in pair for pair in AXES) for _, kind, _ in placed)
        if not known or integer(ones, 0, 4001) + sum(n for *_, n in placed) > self.count:
            raise Malformed(f"{str(name)[:80]} is no corner")
        laws, under = [], (Fraction(1), Fraction(1))
        for group in (g for g, kind, n in placed for _ in range(n) if kind in AXES[0]):
            over = self.at({Fraction(0): Fraction(1), self.epsilons[group]: Fraction(1)})
            under = self.rounded(under[0] * over[0], under[1] * over[1])
        for side in (0, 1):
            law = {n: self.at(powers) for n, powers in self.law(ones, placed, side).items()}
            laws.append({n: self.rounded(a / under[1], b / under[0]) for n, (a, b) in law.items()})
        terms: dict[Variable, Any] = {}
        nothing, (small, large) = (0, 0), self.growth
        for at in range((self.count + 1) // 2, self.count + 1):
            (a, b), (c, d) = [
                [law.get(place, nothing) for place in (at, self.count - at)] for law in laws
            ]
            # a - b - R (c - d), each end from the ends that fit.
            low = a[0] - b[1] - large * c[1] + small * d[0]
            terms["gamma", at] = (low, a[1] - b[0] - small * c[0] + large * d[1])
        return Row(terms, (small - 1 + 2 * self.delta, large - 1 + 2 * self.delta))

    def names(self, at: int = 0, placed: Placed | None = None) -> Iterator[Name]:
        """Yield the rows that the corner theorem leaves: on each axis one of its two corners."""
        placed = placed or []
        if at == len(self.axes):
            used = sum(n for *_, n in placed)
            yield from (("corner", ones, tuple(placed)) for ones in range(self.count - used + 1))
            return
        group, pair = self.axes[at]
        room = self.sizes[group] - sum(n for g, _, n in placed if g == group)
        yield from self.names(at + 1, placed)
        for kind, n in product(pair, range(1, room + 1)):
            yield from self.names(at + 1, [*placed, (group, kind, n)])

    def private(self, weights: list[int], bits: int) -> int:
        """Decide P <= R P' + 2 delta, P = E (1 + h(L)), at all these corners; return how many.

        One more voter at p makes p P(o + 1) + (1 - p) P(o) of P(o), o the voters that say 1: in
        integers, rounded up for P and down for P'.
        """
        unit, chances = (
            1 << bits,
            [(1 << bits) - w for w in weights[::-1]] + [(1 << bits) + w for w in weights],
        )
        over, under = self.growth[0].numerator, self.growth[0].denominator
        count, steps, room = 0, 0, int(2 * self.delta * unit * under * (1 << FIXED))

        def walk(at: int, placed: Placed, up: list[int], down: list[int]) -> None:
            nonlocal count, steps
            if at == len(self.axes):
                count += len(up)
                for ones, (p, q) in enumerate(zip(up, down, strict=True)):
                    if p * under > q * over + room:
                        self.settle(chances, unit, ones, placed)
                return
            group, pair = self.axes[at]
            walk(at + 1, placed, up, down)
            most = self.sizes[group] - sum(n for g, _, n in placed if g == group)
            for kind in pair:
                (low, high), d = self.ratios(group), self.shifts[group]
                tops = {
                    "b": (high + d) / (high + 1),
                    "c": (1 - d) / (low + 1),
                    "D": d,
                    "m": 1 - d,
                    "0": 0,
                    "1": 1,
                }
                lows = {**tops, "b": (low + d) / (low + 1), "c": (1 - d) / (high + 1)}
                p, q = (
                    -(-tops[kind[0]] * (1 << FIXED) // 1),
                    -((lows[kind[0]] - 1) * (1 << FIXED) // 1),
                )
                s, t = lows[kind[1]] * (1 << FIXED) // 1, (1 - tops[kind[1]]) * (1 << FIXED) // 1
                high_p, low_p = up, down
                for n in range(1, most + 1):
                    high_p = [-(-(p * b + q * a) >> FIXED) for a, b in pairwise(high_p)]
                    low_p = [s * b + t * a >> FIXED for a, b in pairwise(low_p)]
                    steps += len(high_p)
                    require_size(steps)
                    walk(at + 1, [*placed, (group, kind, n)], high_p, low_p)

        start = [a << FIXED for a in chances]
        walk(0, [], start, start)
        return count

    def ratios(self, group: int) -> Between:
        """Return e^epsilon of a group, enclosed."""
        return self.at({self.epsilons[group]: Fraction(1)})

    def settle(self, chances: list[int], unit: int, ones: int, placed: Placed) -> None:
        """Refuse R P' + 2 delta - P < 0, where it is so close that only the formula can tell.

        It is a sum of a e^x with different rational x: 0 only if every a is (Lindemann).
        """
        total: Powers = defaultdict(Fraction)
        both = [self.law(ones, placed, side) for side in (0, 1)]
        for law, factor, shift in zip(both, (-1, 1), (Fraction(0), self.target), strict=True):
            for votes, powers in law.items():
                for x, a in powers.items():
                    total[x + shift] += factor * a * chances[votes]
                    total[x] += 2 * self.delta * a * unit * (factor < 0)
        left = {x: a for x, a in total.items() if a}
        if left and self.at(left, 4 * BITS)[0] < 0:
            raise Refused(f"not private: {ones} voters at 1 and {placed}, the others at 0")


def vote_weights(setting: Setting, proof: dict[str, Any]) -> tuple[list[Fraction], str]:
    """Return c_l = 1/2 E[sign(p - 1/2) (a_l - a_(K-l))], a the law of L, l = (K + 1) / 2..K."""
    k, prior = integer(setting["mechanisms"], 1, 4001), str(setting.get("prior"))
    half, law = (k + 1) // 2, [Fraction(0)] * (k + 1)
    if setting.get("coefficients") is not None:
        return vector(setting["coefficients"], half), ""
    if setting["objective"] == "surrogate":
        law = [Fraction(comb(k, at) * 3**at, 4**k) for at in range(k + 1)]
    elif setting["objective"] == "expected-error" and prior.startswith("common-uniform:"):
        points = [number(float(end)) for end in prior.partition(":")[2].split(",")]
        require_size(len(points), k, k)
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
                law[at] += sign * rest / (k + 1) / sum(b - a for a, b in pieces)
    else:
        return vector(proof["coefficients"], half), f" for the proof's coefficients ({prior[:40]})"
    return [(law[at] - law[k - at]) / 2 for at in range(half, k + 1)], ""


def majority(setting: Setting, units: Any, ratio: Between | None, proof: Any) -> Program:
    """Display the noise function gamma(l) = gamma(K - l) of a majority of private voters."""
    voters, places = (
        Voters(setting, ratio),
        range((setting["mechanisms"] + 1) // 2, setting["mechanisms"] + 1),
    )
    weights, note = vote_weights(setting, proof)
    variables: list[Variable] = [("gamma", at) for at in places]
    boxes: dict[Variable, Between] = dict.fromkeys(variables, (0, 1))
    cost = dict(zip(variables, weights, strict=True))
    program = Program([], boxes, cost, voters.names, voters.row, maximise=True, note=note)
    if units is not None:
        gamma = [integer(w, 0, 1 << 62) for w in vector(units, len(places))]
        program.point = {v: Fraction(w, 1 << 62) for v, w in zip(variables, gamma, strict=True)}
        program.private = lambda: voters.private(gamma, 62)
    return program


KINDS: dict[str, Callable[[Setting, Any, Between | None, Any], Program]] = {
    "kernel": kernel,
    "majority": majority,
}


# --- questions: delta(x) of a database x is its largest hockey-stick from or to a neighbour ------

UNIT = 1 << 1100  # what deltas are integers over, each rounded up
Histogram = tuple[int, ...]
Found = tuple[Number, Number, str]  # the value at the units, that of the best point, what it is
Counted = dict[Any, Any]  # weights of outputs; all laws of a mechanism have the same sum


@cache
def histograms(size: int, categories: int) -> list[Histogram]:
    """Return all counts of so many records, the last place changing first."""
    require_size(size + 1, categories, categories)
    require_size(comb(size + categories - 1, size), categories)
    if categories == 1:
        return [(size,)]
    return [(a, *h) for a in range(size + 1) for h in histograms(size - a, categories - 1)]


def counted(setting: Setting, categories: int) -> tuple[int, Callable[[Histogram], Counted]]:
    """Return n, and the law of a mechanism's output by the histogram of n records."""
    own = setting["mechanism"] or {**setting, "mechanism": "sampling-histogram"}
    n, again, word = integer(own["records"], 1, MOST), own.get("replacement"), own["mechanism"]
    inputs = histograms(n, categories)
    if "kernel" in own:
        lines = matrix(own["kernel"], len(inputs), len(own["kernel"][0]))
        if any(min(row) < 0 or abs(sum(row) - 1) > Fraction(1, 10**8) for row in lines):
            raise Malformed("the mechanism has a row that is no law")
        rows = dict(zip(inputs, lines, strict=True))
        return n, cache(lambda x: {y: p / sum(rows[x]) for y, p in enumerate(rows[x])})
    if own.get("lost_rate") or word not in ("sampling-histogram", "sampling-average"):
        raise Malformed(f"a mechanism {str(word)[:40]!r} is not checked here")
    drawn = integer(own["drawn"], 1, MOST if again else n)
    outputs = histograms(drawn, categories)
    require_size(len(inputs), len(outputs), max(4, drawn if again else 0))
    # An average tells the sum of the drawn values alone.
    worth = vector(own["values"], categories) if word == "sampling-average" else []

    def law(x: Histogram) -> Counted:
        ways: dict[Any, int] = defaultdict(int)
        for y in outputs:
            told = sum(a * b for a, b in zip(y, worth, strict=True)) if worth else y
            orders = factorial(drawn) // prod(map(factorial, y)) if again else 1
            ways[told] += orders * prod(map(pow, x, y) if again else map(comb, x, y))
        return {y: count for y, count in ways.items() if count}

    return n, cache(law)


def stick(p: Counted, q: Counted, epsilon: Fraction) -> int:
    """Return sum_y max(0, p_y - e^epsilon q_y)."""
    over, under = Fraction(exp(epsilon)[0]).as_integer_ratio()
    above = sum(max(0, under * a - over * q.get(y, 0)) for y, a in p.items())
    return -(-UNIT * above // (under * sum(p.values())))


def deltas(setting: Setting, categories: int, asked: Any = None) -> dict[Histogram, int]:
    """Return delta(x) of the database that is asked for, or of each."""
    (n, law), epsilon = counted(setting, categories), number(setting["epsilon"])
    found = dict.fromkeys([asked] if asked else histograms(n, categories), 0)
    if any(sum(x) != n for x in found):
        raise Malformed("counts are of another number of records")
    for x, a, b in product(found, range(categories), range(categories)):
        if x[a] and a != b:
            z = tuple(count - (c == a) + (c == b) for c, count in enumerate(x))
            both = stick(law(x), law(z), epsilon), stick(law(z), law(x), epsilon)
            found[x] = max(found[x], *both)
    return found


def one_drawn(values: dict[Histogram, int], law: list[int]) -> dict[Histogram, int]:
    """Return the mean of V(h with one record more), which is drawn from a law, by h."""
    size, total, found = sum(next(iter(values))) - 1, sum(law), {}
    for h in histograms(size, len(law)):
        more = ((*h[:c], h[c] + 1, *h[c + 1 :]) for c in range(len(law)))
        found[h] = -(-sum(w * values[x] for w, x in zip(law, more, strict=True)) // total)
    return found


def largest(values: dict[Histogram, int], laws: list[list[int]]) -> int:
    """Return the largest expectation over all ways to draw each record from one of the laws."""
    best = 0
    while len(values) > 1:
        best = max(best, largest(values, laws[1:])) if laws[1:] else best
        values = one_drawn(values, laws[0])
    return max(best, *values.values(), 0)


def as_stated(stated: object, found: Number, logarithm: bool = False) -> None:
    """Refuse a number of a file, or a logarithm in it, that is not what was found."""
    given = number(stated or 0) if stated is None or not logarithm else exp(number(stated))[1]
    if abs(given - found) > found / Fraction(10**8) + Fraction(1, 10**300):
        raise Refused(f"it states {str(stated)[:40]}, and {float(found)!r} was found")


def smoothed(setting: Setting, units: Any, one: bool = False) -> Found:
    """Return E delta(x) of a composition of the records, and the largest unless one is asked for.

    The expectation is linear in the law of each record: of two categories, the laws with the least
    and the largest share are enough.
    """
    shares = setting["distributions"]
    laws = [vector(law, len(shares[0])) for law in shares]
    if any(min(law) < 0 or abs(sum(law) - 1) > Fraction(1, 10**8) for law in laws):
        raise Malformed("a distribution is no law")
    whole = [[int(p * lcm(*(q.denominator for q in law))) for p in law] for law in laws]
    n, m = integer(setting["records"], 1, MOST), len(laws[0])
    asked = vector(setting["composition"] if one else units["argmax"], len(laws))
    counts = [integer(c, 0, n) for c in asked]
    require_size(len(histograms(n, m)), n, 16)
    values = start = deltas(setting, m)
    if sum(counts) != n:
        raise Malformed(f"a composition is not one of {n} records")
    for law, times in zip(whole, counts, strict=True):
        for _ in range(times):
            values = one_drawn(values, law)
    (found,) = values.values()
    as_stated(units["log_delta"], Fraction(found, UNIT), True)
    if one:
        return Fraction(found, UNIT), Fraction(found, UNIT), "the composition that was asked for"
    order = sorted(range(len(laws)), key=lambda at: laws[at][0] / sum(laws[at]))
    used = [whole[at] for at in ([order[0], order[-1]] if m == 2 else order)]
    require_size(comb(n + len(used) + m - 1, n), 8)
    size = comb(n + len(used) - 1, n)
    best = max(found, largest(start, used))
    as_stated(units["log_bound"], Fraction(best, UNIT), True)
    return Fraction(found, UNIT), Fraction(best, UNIT), f"the largest of {size} compositions"


def profile(setting: Setting, units: Any) -> Found:
    """Return the mean of delta(x) over the databases that were asked for."""
    m, counts = integer(setting["categories"], 2, 64), setting.get("counts")
    asked = None if counts is None else tuple(integer(c, 0, MOST) for c in vector(counts, m))
    require_size(1 if asked else integer(setting["records"], 1, MOST) ** 2, 16)
    found = deltas(setting, m, asked)
    for stated, delta in zip(units, found.values(), strict=True):
        as_stated(stated, Fraction(delta, UNIT), True)
    mean = Fraction(sum(found.values()), UNIT * len(found))
    return mean, mean, f"the mean of {len(found)} databases"


QUESTIONS: dict[str, Callable[[Setting, Any], Found]] = {
    "smoothed": smoothed,
    "expected": lambda setting, units: smoothed(setting, units, one=True),
    "profile": profile,
}


# --- files -------------------------------------------------------------------------------------


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a file whose names are different."""
    if len(dict(pairs)) != len(pairs):
        raise Malformed("a name stands twice in an object")
    return dict(pairs)


def read(path: str) -> dict[str, Any]:
    """Return the object that a file holds: numbers are finite, names stand once."""
    try:
        if not Path(path).is_file() or Path(path).stat().st_size > LARGEST_FILE:
            raise Malformed("it is no file of at most 256 MiB")
        text = Path(path).read_text(encoding="utf-8")
        found = json.loads(text, object_pairs_hook=unique, parse_constant=number)
    except (OSError, ValueError, RecursionError) as error:
        raise Malformed(f"it cannot be read: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise Malformed("it holds no object")
    return found


def check(path: str, proof_path: str | None = None) -> Iterator[str]:
    """Yield a line for each thing that is shown.

    Raises:
        Malformed: for what is no design, or no proof.
        Refused: for what is not so, or not shown.
    """
    body, proof = read(path)["body"], read(proof_path) if proof_path else {}
    kind, setting = body["kind"], body["setting"]
    if kind in QUESTIONS:
        if proof_path:
            raise Malformed("the answer to a question is found again, and has no proof")
        value, best, what = QUESTIONS[kind](setting, body["units"])
        as_stated(body["value"], value)
        as_stated(body["bound"], best)
        if best > value * (1 + Fraction(1, 10**8)):
            raise Refused(f"it states {float(value)!r}; the best point has {float(best)!r}")
        yield f"answered: {kind}, {what}"
        yield f"value: {float(value)!r}"
        return
    if kind not in KINDS:
        raise Malformed(f"its kind is {str(kind)[:40]!r}, which is not checked here")
    program = KINDS[kind](setting, body["units"], None, proof)
    count, missed = decide(program)
    yield f"private: {kind}, {count} inequalities decided exactly"
    if missed:
        yield f"rows that were asked for are missed by at most {float(missed):.3g}"
    value = program.value
    if abs(value - number(body["value"])) > abs(value) / 10**9 + Fraction(1, 10**12):
        raise Refused(f"it states the value {body['value']}, which is {float(value)!r}")
    yield f"value: {float(value)!r}{program.note}"
    if proof_path:
        lines = proof["multipliers"]
        require_size(len(lines), 40)
        ys = alike([number(line[-1]) for line in lines])
        names = zip((tuple(map(frozen, line[:-1])) for line in lines), ys, strict=True)
        found, claimed = bound(program, names), number(proof["bound"])
        if claimed > found if not program.maximise else claimed < found:
            raise Refused(f"the proof claims {float(claimed)!r} and shows {float(found)!r} only")
        gap = abs(value - claimed)
        side = "above" if program.maximise else "below"
        yield f"optimal: no other is {side} {float(claimed)!r}, gap {float(gap):.3g}"


def frozen(value: Any) -> Any:
    """Return part of a row's name: lists of a file as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def main(arguments: list[str]) -> int:
    """Check a design, and its proof; write what is shown and return the exit code."""
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python verify.py x.json [x.proof.json]\n")
        return 2
    try:
        for line in check(*arguments):
            sys.stdout.write(line + "\n")
    except Refused as error:
        sys.stderr.write(f"REFUSED: {error}\n")
        return 4
    except Malformed as error:
        sys.stderr.write(f"not a file of this kind: {error}\n")
        return 2
    except MISSING as error:
        sys.stderr.write(f"not a file of this kind: a part is malformed ({error!r:.60})\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

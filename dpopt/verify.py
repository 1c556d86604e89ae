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
from itertools import accumulate, pairwise, product
from math import comb, floor, log2, prod
from pathlib import Path
from typing import Any, cast

Number = int | Fraction
Between = tuple[Number, Number]  # lower and upper end of a number that is not known exactly
Variable = tuple[Any, ...]  # such as ("K", 0, 3)
Law = tuple[list[Variable], Number]  # variables that are at least 0, and their sum
Name = tuple[Any, ...]  # of a row, such as ("privacy", 0, 1, 3)
Setting = dict[str, Any]

LARGEST_FILE = 256 << 20
MOST = 4_000_000  # of variables, rows, steps: more would take more than minutes
BITS = 320  # of e^x
RATIO_BITS = 256  # of numerator and denominator of a rational e^epsilon


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
    if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    match = re.fullmatch(r"(-?)(0x)?(\w+)(?:/(0x)?(\w+))?", value if isinstance(value, str) else "")
    try:
        sign, hexadecimal, over, below, under = match.groups()  # type: ignore[union-attr]
        found = Fraction(
            int(over, 16 if hexadecimal else 10), int(under or "1", 16 if below else 10)
        )
    except (AttributeError, ValueError, ZeroDivisionError):
        raise Malformed(f"{str(value)[:40]!r} is no number") from None
    return -found if sign else found


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
    return [number(value) for value in values]


def matrix(values: object, rows: int, columns: int) -> list[list[Fraction]]:
    """Return a table of numbers."""
    if not isinstance(values, list) or len(values) != rows:
        raise Malformed(f"a table of {rows} rows is missing")
    return [vector(row, columns) for row in values]


def require_size(*sizes: int) -> None:
    """Refuse what would take longer than anybody waits."""
    if prod(sizes) > MOST:
        raise Malformed(f"a size of {' x '.join(map(str, sizes))} is beyond {MOST}")


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
    require_size(*sizes)
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
    if units and "bits" in units:
        program.point = table(units, inputs, outputs)
    elif units:
        orbit, total = orbits(setting, inputs, outputs), integer(units["total"], 1, 1 << 4096)
        weights = vector(units["weights"], max(orbit.values()) + 1)
        program.point = {("K", x, y): weights[place] / total for (x, y), place in orbit.items()}
    rows = asked(setting, inputs, outputs)
    if setting["objective"] == "minimax":
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
        prior = vector(setting["prior"] or [1] * inputs, inputs)
        total = sum(prior)
        program.cost = {("K", x, y): prior[x] / total * loss[x][y] for x, y in places}
    program.names, program.row = lambda: rows, lambda name: rows.get(name) or no_row(name)
    ratio, delta = ratio or exp(number(setting["epsilon"])), number(setting["delta"])
    add_privacy(program, neighbours(setting, inputs), (inputs, outputs), ratio, delta)
    return program


def orbits(setting: Setting, inputs: int, outputs: int) -> dict[tuple[int, int], int]:
    """Return the orbit of each pair (x, y) under the symmetries, numbered as in a file.

    A kernel that is one weight for each orbit is written out: its symmetries need no proof.
    """
    symmetry, found = setting["symmetry"], dict[tuple[int, int], int]()
    if symmetry in ("hamming", "letters"):
        # Pairs of words that differ in as many places, among those with as many letters.
        shape = setting["shape"] if symmetry == "hamming" else [inputs]
        places = [[i for i, q in enumerate(shape) if q == size] for size in sorted(set(shape))]
        apart = {
            (x, y): tuple(sum(v[i] != w[i] for i in alike) for alike in places)
            for (x, v), (y, w) in product(enumerate(words(shape, inputs)), repeat=2)
        }
        order = {far: number for number, far in enumerate(sorted(set(apart.values())))}
        return {pair: order[far] for pair, far in apart.items()}
    moves: dict[str, list[Callable[[int, int], int]]] = {
        "reflection": [lambda x, n: n - 1 - x],
        "cyclic": [lambda x, n: (x + 1) % n],
        "dihedral": [lambda x, n: (x + 1) % n, lambda x, n: -x % n],
    }
    sizes = inputs, outputs
    generators = (
        [[[move(x, n) for x in range(n)] for n in sizes] for move in moves[symmetry]]
        if isinstance(symmetry, str)
        else [
            [[integer(x, 0, n - 1) for x in side] for n, side in zip(sizes, pair, strict=True)]
            for pair in symmetry
        ]
    )
    count = 0
    for pair in product(range(inputs), range(outputs)):
        reached = [] if pair in found else [pair]
        for x, y in reached:
            if (x, y) not in found:
                found[x, y] = count
                reached += [(sigma[x], tau[y]) for sigma, tau in generators]
        count += bool(reached)
    return found


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
    for name, places, coefficients, *limits in setting["rows"] or []:
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
Placed = tuple[tuple[int, str, int], ...]  # how many voters of which group are at which corner
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
        # A binomial coefficient has at most as many bits as there are voters.
        self.bits = 0 if self.rational is not None else 2 * BITS + self.count
        self.mixtures: dict[tuple[Any, int], list[Between]] = {}

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

    def times(self, one: Between, other: Between) -> Between:
        """Return the product of numbers >= 0: of multiples of 2^-bits, or of exact ones."""
        low, high = (cast(int, a) * cast(int, b) for a, b in zip(one, other, strict=True))
        return (low >> self.bits, -(-high >> self.bits)) if self.bits else (low, high)

    def chance(self, group: int, corner: str) -> Between:
        """Return the chance that a voter at a corner says 1, enclosed."""
        low, high = self.at({self.epsilons[group]: Fraction(1)})
        d, zero = self.shifts[group], Fraction(0)
        known = {"b": ((low + d) / (low + 1), (high + d) / (high + 1)), "0": (zero, zero)}
        known |= {"c": ((1 - d) / (high + 1), (1 - d) / (low + 1)), "D": (d, d)}
        return (known | {"m": (1 - d, 1 - d), "1": (zero + 1, zero + 1)})[corner]

    def enclosed(self, low: Number, high: Number) -> Between:
        """Return an enclosure in multiples of 2^-bits; exact numbers stay."""
        unit = 1 << self.bits
        return (low * unit // 1, -(-high * unit // 1)) if self.bits else (low, high)

    def mixed(self, placed: Placed, side: int) -> list[Between]:
        """Return the law of the number of ones among voters at corners, enclosed."""
        if (placed, side) in self.mixtures:
            return self.mixtures[placed, side]
        one = self.enclosed(Fraction(1), Fraction(1))
        law = [one]
        for group, kind, count in placed:
            low, high = self.chance(group, kind[side])
            says = self.enclosed(low, high), self.enclosed(1 - high, 1 - low)
            powers = [list(accumulate([p] * count, self.times, initial=one)) for p in says]
            wider: list[Between] = [(0, 0)] * (len(law) + count)
            for j in range(count + 1):
                (a, b), ways = self.times(powers[0][j], powers[1][count - j]), comb(count, j)
                for votes, before in enumerate(law):
                    c, d = self.times(before, (ways * a, ways * b))
                    wider[votes + j] = wider[votes + j][0] + c, wider[votes + j][1] + d
            law = wider
        self.mixtures[placed, side] = law
        return law

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
        placed = tuple(
            (integer(g, 0, len(self.sizes) - 1), kind, integer(n, 0, 4001)) for g, kind, n in placed
        )
        known = all(any(kind in pair for pair in AXES) for _, kind, _ in placed)
        used = sum(n for *_, n in placed)
        if not known or integer(ones, 0, 4001) + used > self.count:
            raise Malformed(f"{str(name)[:80]} is no corner")
        require_size(*(n + 1 for *_, n in placed), 4)
        laws, nothing, unit = [self.mixed(placed, side) for side in (0, 1)], (0, 0), 1 << self.bits
        small, large = self.growth
        growth, terms = self.enclosed(small, large), dict[Variable, Any]()
        for at in range((self.count + 1) // 2, self.count + 1):
            (a, b), (c, d) = [
                [law[n - ones] if 0 <= n - ones <= used else nothing for n in (at, self.count - at)]
                for law in laws
            ]
            # a - b - R (c - d), each end from the ends that fit.
            c, d = self.times(growth, c), self.times(growth, d)
            low, high = a[0] - b[1] - c[1] + d[0], a[1] - b[0] - c[0] + d[1]
            if low or high:
                terms["gamma", at] = Fraction(low, unit), Fraction(high, unit)
        return Row(terms, (small - 1 + 2 * self.delta, large - 1 + 2 * self.delta))

    def names(self, at: int = 0, placed: Placed = ()) -> Iterator[Name]:
        """Yield the rows that the corner theorem leaves: on each axis one of its two corners."""
        if at == len(self.axes):
            used = sum(n for *_, n in placed)
            yield from (("corner", ones, placed) for ones in range(self.count - used + 1))
            return
        group, pair = self.axes[at]
        room = self.sizes[group] - sum(n for g, _, n in placed if g == group)
        yield from self.names(at + 1, placed)
        for kind, n in product(pair, range(1, room + 1)):
            yield from self.names(at + 1, (*placed, (group, kind, n)))

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
                # Of p and of p': in multiples of 2^-FIXED, up for the one and down for the other.
                (low, high), (below, above) = [self.chance(group, corner) for corner in kind]
                p, q = -(-high * (1 << FIXED) // 1), -((low - 1) * (1 << FIXED) // 1)
                s, t = below * (1 << FIXED) // 1, (1 - above) * (1 << FIXED) // 1
                high_p, low_p = up, down
                for n in range(1, most + 1):
                    high_p = [-(-(p * b + q * a) >> FIXED) for a, b in pairwise(high_p)]
                    low_p = [s * b + t * a >> FIXED for a, b in pairwise(low_p)]
                    steps += len(high_p)
                    require_size(steps)
                    walk(at + 1, (*placed, (group, kind, n)), high_p, low_p)

        start = [a << FIXED for a in chances]
        walk(0, (), start, start)
        return count

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
    if "coefficients" in proof and setting["objective"] == "expected-error":
        return vector(proof["coefficients"], half), f" for the proof's coefficients ({prior[:40]})"
    if setting["objective"] == "surrogate":
        law = [Fraction(comb(k, at) * 3**at, 4**k) for at in range(k + 1)]
    elif setting["objective"] == "expected-error" and prior.startswith("common-uniform:"):
        points = [number(float(end)) for end in prior.partition(":")[2].split(",")]
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
        raise Malformed(f"{setting['objective']} for {prior[:40]} is in no rational program")
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


# --- public priors: kernels K over n letters with q K = q --------------------------------------


def extend(program: Program, rows: dict[Name, Row]) -> Program:
    """Return a program with further rows."""
    names, row = program.names, program.row
    program.names = lambda: [*rows, *names()]
    program.row = lambda name: rows.get(name) or row(name)
    return program


def truthful(setting: Setting, units: Any, ratio: Between | None, mean: Any = None) -> Program:
    """Display the kernel that keeps the prior and loses least: the mean or the most of 1 - K_xx."""
    n = len(setting["prior"])
    require_size(n, n)
    loss = [[int(x != y) for y in range(n)] for x in range(n)]
    asks = {"inputs": n, "outputs": n, "loss": loss, "sense": "minimise", "graph": "complete"}
    asks |= {"objective": "bayes" if mean else "minimax", "prior": mean, "delta": 0, "rows": None}
    asks |= {"epsilon": setting["epsilon"], "invariant": setting["prior"]}
    return kernel(asks, units, ratio, None)


def most_kept(setting: Setting, ratio: Between | None) -> Between:
    """Return lemma 3's bound R q / (R q + 1 - q) of K_ii, R = e^epsilon, i of the least mass q.

    K_ii is at most R times each other entry of its column, so at most R times their mean by the
    prior; and that mean times 1 - q is q - q K_ii, since the prior is kept.
    """
    masses = vector(setting["prior"], len(setting["prior"]))
    q = min(masses) / sum(masses)
    low, high = [r * q / (r * q + 1 - q) for r in ratio or exp(number(setting["epsilon"]))]
    return low, high


def layers(setting: Setting, q: list[int], bits: int) -> tuple[list[int], list[int], list[int]]:
    """Return w, e, k of a closed form, integers over T = 2^bits; Q ascending with the sum S.

    Row i gives w_j to each j < i (of leximin to all j), e_i to i on top, and what is left of T to
    the j > i (to all j) in proportion to k_j. With r a little below e^epsilon, Algorithm 1 has
    w_i = R_i Q_i / (r Q_i + Q_(i+1) + ...), R_i = T - w_1 - ... - w_(i-1), e_i = r w_i, k = Q;
    leximin w_i = min(T Q_i / ((r - 1) Q_i + S), one level for all), e_i = (r - 1) w_i.
    """
    epsilon, size, total, n = number(setting["epsilon"]), 1 << bits, sum(q), len(q)
    fine = max(128, 64 + epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    r = Fraction(exp(epsilon, 512 + 2 * int(epsilon))[0] * (1 << fine) // 1, 1 << fine)
    down = 1 << 104 + max(0, -floor(log2(epsilon)))
    up = (r - (r - 1) / (1 << 40)) * down // 1
    w, left, after = list[int](), size, total
    if setting["objective"] == "minimax":
        for mass in q[:-1]:
            after -= mass
            w.append(left * mass * down // (up * mass + down * after))
            left -= w[-1]
        return [*w, 0], [*(up * a // down for a in w), left], q
    for place, mass in enumerate(q[:-1]):
        most = size * mass * down // ((up - down) * mass + down * total)
        if ((n - place) * most - left) * down + (up - down) * most >= 0:
            break
        left -= most
        w.append(most)
    high, first = left * down // (up - down + (n - len(w)) * down), len(w)
    k = [max(0, a * size * down - high * (down * total + (up - down) * a)) for a in q[first:]]
    shift = max(0, sum(k).bit_length() - bits)
    k = [a >> shift for a in k]
    w += [high] * (n - first)
    return w, [(up - down) * a // down for a in w], [0] * first + (k if any(k) else q[first:])


def least_kept(setting: Setting, bits: int, ratio: Number) -> tuple[Fraction, Fraction]:
    """Decide the columns of a closed form; return its least K_ii, and how far a letter drifts.

    What is split is rounded down or up: its least and its largest share of k_j bound a column.
    """
    q = sorted(mass * (1 << bits) // 1 for mass in vector(setting["prior"], len(setting["prior"])))
    (w, e, k), flat, total = layers(setting, q, bits), setting["objective"] != "minimax", sum(q)
    base, after, rests = sum(w) if flat else 0, sum(k), list[tuple[int, int]]()
    before = [((1, 0), (0, 1), 0)]  # of the rows so far: least and largest share, mass split
    for mass, own, extra, share in zip(q, w, e, k, strict=True):
        after -= 0 if flat else share
        rest, of = (1 << bits) - base - extra, after or 1
        rests.append((rest, of))
        base += 0 if flat else own
        if min(own, extra, share, rest) < 0 or (rest and not after):
            raise Refused("a row of the kernel is no law")
        low, high, came = before[-1]
        low = (rest, of) if rest * low[1] < low[0] * of else low
        high = (rest, of) if rest * high[1] > high[0] * of else high
        before.append((low, high, came + (mass * rest << 64) // of))
    kept, drift, below = 1 << bits, 0, total
    for j, (mass, own, extra, share) in enumerate(zip(q, w, e, k, strict=True)):
        (rest, of), (low, high, came) = rests[j], before[-1 if flat else j]
        everywhere = own if flat else 0
        diagonal = everywhere + extra + (rest * share // of if flat else 0)
        column = [diagonal, diagonal + flat] + [own] * (not flat and j + 1 < len(q))
        if flat or j:
            column += [everywhere + low[0] * share // low[1]]
            column += [everywhere - (-high[0] * share // high[1])]
        if ratio.numerator * min(column) < ratio.denominator * max(column):
            raise Refused(f"not private: letter {j} by ascending mass")
        below -= 0 if flat else mass
        mean = own * below + extra * mass + (came * share >> 64)
        kept, drift = min(kept, diagonal), max(drift, abs(mean - (mass << bits)))
    return Fraction(kept, 1 << bits), Fraction(drift + 2 * total, total << bits)


def prior(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the kernel of a public prior; of a closed form, for any n, its rarest letter alone.

    "worst": 1 - kept <= t; "lemma 3": kept <= R q / (R q + 1 - q).
    """
    if units is None or "weights" in units:
        return truthful(setting, units, ratio)
    count, low = len(setting["prior"]), (ratio or exp(number(setting["epsilon"])))[0]
    require_size(count)
    kept, drift = least_kept(setting, integer(units["bits"], 1, 4096), low)
    rows: dict[Name, Row] = {("lemma 3",): Row({("kept",): 1}, most_kept(setting, ratio))}
    rows["worst",] = Row({("t",): -1, ("kept",): -1}, -1)
    program = Program([], {("t",): (0, 1), ("kept",): (0, 2)}, {("t",): 1}, list, no_row)
    program.point = {("t",): 1 - kept, ("kept",): kept}
    program.private = lambda: count * count * (count - 1)
    program.note = f", each letter of the prior kept up to {float(drift):.3g}"
    return extend(program, rows)


def population(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the kernel that keeps a prior and is nearest to users' laws p_u, weighed by w_u.

    "shortfall", u, j: p_uj - (p_u K)_j <= s_uj; "worst case", i: K_ii >= lemma 3's bound - slack.
    """
    n, count = len(setting["prior"]), len(setting["users"])
    require_size(count, n, n)
    users, weights = matrix(setting["users"], count, n), vector(setting["weights"], count)
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
    zero = {"loss": [[0] * outputs] * inputs, "prior": None, "objective": "bayes"}
    zero |= {"inputs": inputs, "outputs": outputs, "sense": "minimise", "invariant": None}
    program, rows = kernel(setting | zero, units, ratio, None), dict[Name, Row]()
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
    return extend(program, rows)


def mollifier(setting: Setting, units: Any, ratio: Between | None, _: Any) -> Program:
    """Display the law r nearest to p with q / h <= r <= q h, h^2 = e^epsilon: any two are private.

    "distance", j: p_j - r_j <= z_j; "above", j: r_j <= q_j h; "below", j: q_j / h <= r_j.
    """
    n = len(setting["prior"])
    require_size(3, n)
    q, p, law = [vector(a, n) for a in (setting["prior"], setting["own"], units or [1] * n)]
    q, p, law = [[a / total for a in masses] for masses in (q, p, law) for total in [sum(masses)]]
    if ratio:
        raise Malformed("its coefficients are in e^(epsilon / 2)")
    low, high = exp(number(setting["epsilon"]) / 2)
    rows = dict[Name, Row]()
    for j, a in enumerate(q):
        rows["distance", j] = Row({("r", j): -1, ("z", j): -1}, -p[j])
        rows["above", j] = Row({("r", j): 1}, (a * low, a * high))
        rows["below", j] = Row({("r", j): -1}, (-a / low, -a / high))
    cost: dict[Variable, Number] = {("z", j): 1 for j in range(n)}
    boxes: dict[Variable, Between] = dict.fromkeys(cost, (0, 1))
    program = Program([([("r", j) for j in range(n)], 1)], boxes, cost, list, no_row)
    if units:
        program.point = {("z", j): max(0, p[j] - a) for j, a in enumerate(law)}
        program.point |= {("r", j): a for j, a in enumerate(law)}
    return extend(program, rows)


KINDS: dict[str, Callable[[Setting, Any, Between | None, Any], Program]] = {
    "kernel": kernel,
    "majority": majority,
    "mollifier": mollifier,
    "nearest": nearest,
    "population": population,
    "prior": prior,
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
    whole = read(path)
    if whole.get("format") == "dpopt exact optimum":
        yield optimum(whole)
        return
    body, proof = whole["body"], read(proof_path) if proof_path else {}
    kind, setting = body["kind"], body["setting"]
    if kind not in KINDS:
        raise Malformed(f"its kind is {str(kind)[:40]!r}")
    program = KINDS[kind](setting, body["units"], None, proof)
    count, missed = decide(program)
    yield f"private: {kind}, {count} inequalities decided exactly"
    if missed:
        stated = max(map(number, body.get("residuals", {0: missed}).values()), default=Fraction(0))
        if missed > stated + stated / 10**9 + Fraction(1, 10**15):
            raise Refused(f"rows are missed by {float(missed):.3g}; it states {float(stated):.3g}")
        yield f"rows that were asked for are missed by at most {float(missed):.3g}"
    value = program.value
    if abs(value - number(body["value"])) > abs(value) / 10**9 + Fraction(1, 10**12):
        raise Refused(f"it states the value {body['value']}, which is {float(value)!r}")
    yield f"value: {float(value)!r}{program.note}"
    if proof_path:
        names = ((tuple(map(frozen, line[:-1])), number(line[-1])) for line in proof["multipliers"])
        found, claimed = bound(program, names), number(proof["bound"])
        if claimed > found if not program.maximise else claimed < found:
            raise Refused(f"the proof claims {float(claimed)!r} and shows {float(found)!r} only")
        gap = abs(value - claimed)
        side = "above" if program.maximise else "below"
        yield f"optimal: no other is {side} {float(claimed)!r}, gap {float(gap):.3g}"


def optimum(body: dict[str, Any]) -> str:
    """Decide an exact optimum: a point at a rational e^epsilon whose value is the bound."""
    ratio, display = number(body["ratio"]), KINDS.get(body["kind"])
    if display is None or ratio < 1 or ratio.numerator.bit_length() > RATIO_BITS:
        raise Malformed("its kind or its ratio is unknown")
    program = display(body["setting"], None, (ratio, ratio), {})
    known = {v for variables, _ in program.laws for v in variables} | set(program.boxes)
    program.point, program.private = {frozen(v): number(x) for *v, x in body["point"]}, None
    if not known >= set(program.point):
        raise Malformed("its point has a variable that the program has not")
    names = ((tuple(map(frozen, name)), number(y)) for *name, y in body["multipliers"])
    (count, missed), value, claimed = decide(program), program.value, number(body["value"])
    if missed > 0 or not value == claimed == bound(program, names):
        raise Refused("its value, its point and its multipliers do not agree")
    return f"optimal: {value} for e^epsilon = {ratio} ({body['kind']}, {count} rows), exactly"


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

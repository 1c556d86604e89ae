"""Own equalities met exactly in integers, by moving units between entries."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpopt.kernel.own import OwnRows

# Coefficients of a system that is solved in fractions: about a second of elimination.
_MOST_COEFFICIENTS = 4_000

Place = tuple[int, int]
Row = tuple[dict[Place, Fraction], Fraction]


def balanced(
    weights: Sequence[Sequence[int]], bits: int, blocks: Sequence[OwnRows]
) -> list[list[int]]:
    """Return weights that meet every equality of whole coefficients, or those given.

    A basic solution of c (w + d) = b 2^bits with rows of d that sum to 0: each equation moves one
    entry, the largest one whose coefficient is a power of two, so that d is whole. There is none if
    a limit is finer than a unit, or the equalities contradict each other; then nothing is moved.

    Args:
        weights: integers, shape (inputs, outputs), rows summing to 2^bits.
        bits: see there.
        blocks: own rows; inequalities among them, and equalities of other coefficients, are left.
    """
    moved = [list(row) for row in weights]
    solved: list[tuple[Place, Row]] = []
    for row in _equations(weights, bits, blocks):
        terms, right = row
        for pivot, (other, limit) in solved:
            if pivot in terms:
                share = terms[pivot] / other[pivot]
                for place, value in other.items():
                    terms[place] = terms.get(place, Fraction(0)) - share * value
                right -= share * limit
        terms = {place: value for place, value in terms.items() if value}
        fit = [place for place, value in terms.items() if _is_power_of_two(value)]
        if not terms and not right:
            continue
        if not fit:
            return [list(row) for row in weights]
        # Of 1 if there is one: then nothing needs to be even.
        pivot = max(fit, key=lambda at: (abs(terms[at].numerator) == 1, weights[at[0]][at[1]]))
        solved.append((pivot, (terms, right)))
    change: dict[Place, Fraction] = {}
    for pivot, (terms, right) in reversed(solved):
        known = sum((terms[at] * d for at, d in change.items() if at in terms), Fraction(0))
        change[pivot] = (right - known) / terms[pivot]
    for (x, y), units in change.items():
        moved[x][y] += int(units)
        if units.denominator != 1 or moved[x][y] < 0:
            return [list(row) for row in weights]
    return moved


def _equations(weights: Sequence[Sequence[int]], bits: int, blocks: Sequence[OwnRows]) -> list[Row]:
    """Return what is to be added: to each equality its residual, to each row of weights nothing."""
    found: list[Row] = []
    for block in blocks:
        rows: list[dict[Place, Fraction]] = [{} for _ in range(block.count)]
        for (i, x, y), value in zip(
            block.places.tolist(), block.coefficients.tolist(), strict=True
        ):
            rows[i][x, y] = rows[i].get((x, y), Fraction(0)) + Fraction(value)
        for terms, total, lower, upper in zip(
            rows, block.totals(weights, bits), block.lower, block.upper, strict=True
        ):
            whole = all(value.denominator == 1 for value in terms.values())
            if lower is not None and lower == upper and whole:
                found.append((terms, (Fraction(lower) - total) * (1 << bits)))
    if sum(len(terms) for terms, _ in found) > _MOST_COEFFICIENTS or not any(r for _, r in found):
        return []
    inputs = sorted({x for terms, _ in found for x, _ in terms})
    outputs = range(len(weights[0]))
    if len(inputs) * len(outputs) > _MOST_COEFFICIENTS:
        return []
    sums: list[Row] = [({(x, y): Fraction(1) for y in outputs}, Fraction(0)) for x in inputs]
    return [*sums, *found]


def _is_power_of_two(value: Fraction) -> bool:
    top, below = abs(value.numerator), value.denominator
    return not top & (top - 1) and not below & (below - 1)

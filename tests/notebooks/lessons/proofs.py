"""What must be so after the cells of ``proofs.ipynb``."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog


def least_worst_loss(inputs: int, ratio: float, power: int) -> float:
    """The program of a path, by another solver."""
    cells = [(x, y) for x in range(inputs) for y in range(inputs)]
    place = {cell: at for at, cell in enumerate(cells)}
    rows = []
    for x, y in cells:
        for z in (x - 1, x + 1):
            if 0 <= z < inputs:
                row = np.zeros(len(cells) + 1)
                row[place[x, y]], row[place[z, y]] = 1.0, -ratio
                rows.append(row)
    for x in range(inputs):
        row = np.zeros(len(cells) + 1)
        for y in range(inputs):
            row[place[x, y]] = abs(x - y) ** power
        row[-1] = -1.0
        rows.append(row)
    sums = np.zeros((inputs, len(cells) + 1))
    for x, y in cells:
        sums[x, place[x, y]] = 1.0
    cost = np.zeros(len(cells) + 1)
    cost[-1] = 1.0
    solved = linprog(cost, np.array(rows), np.zeros(len(rows)), sums, np.ones(inputs))
    return float(solved.fun)


def after_names(it: Any) -> None:
    assert it.names == ["counts.json", "counts.proof.json", "verify.py"]
    assert it.design.bound.how == "proved"
    assert 0 <= it.design.value - it.design.bound < 1e-11
    assert math.isclose(it.design.value, least_worst_loss(6, math.e, 1), abs_tol=1e-8)


def after_accepted(it: Any) -> None:
    assert it.accepted[0] == 0
    assert [line.split(":")[0] for line in it.accepted[1].splitlines()] == [
        *("private", "about", "value", "optimal", "not looked at"),
    ]


def after_moved(it: Any) -> None:
    assert it.moved[0] == 4
    assert it.moved[1].startswith("REFUSED: not private: row ('privacy', 0, 1, 0)")


def after_weaker(it: Any) -> None:
    assert (it.weaker[0], it.wrong[0]) == (4, 4)
    # Each leaves the design private, and its value as it is.
    for _, text in (it.weaker, it.wrong):
        assert [line.split(":")[0] for line in text.splitlines()] == [
            *("private", "about", "value", "REFUSED"),
        ]
    said = it.weaker[1].split("claims ")[1].split()
    assert float(said[3]) < float(said[0])
    assert "is negative" in it.wrong[1]


def after_exact(it: Any) -> None:
    assert it.exact.value == Fraction(32420, 43841)
    assert math.isclose(it.exact.value, least_worst_loss(6, 2.5, 1), abs_tol=1e-8)


def after_decided(it: Any) -> None:
    code, text = it.decided
    assert code == 0
    assert text.startswith(
        "optimal: 32420/43841 for e^epsilon = 5/2 (kernel, 66 rows), exactly, "
        "along 10 directed edges of 6 inputs\nabout: loss absolute, "
    )


def after_form(it: Any) -> None:
    assert np.allclose([float(r) for r in it.form.breaks], [math.sqrt(3), 3])
    for epsilon, value in it.sampled.items():
        assert math.isclose(value, it.form(math.exp(epsilon)), abs_tol=1e-9)
        assert math.isclose(value, least_worst_loss(3, math.exp(epsilon), 2), abs_tol=1e-8)


def after_at_two(it: Any) -> None:
    kernel = [[it.at_two.get(("K", x, y), Fraction(0)) for y in range(3)] for x in range(3)]
    assert [sum(law) for law in kernel] == [1, 1, 1]
    assert all(a <= 2 * b for x in (0, 1) for a, b in zip(kernel[x], kernel[x + 1], strict=True))
    assert all(b <= 2 * a for x in (0, 1) for a, b in zip(kernel[x], kernel[x + 1], strict=True))
    losses = [sum(p * (x - y) ** 2 for y, p in enumerate(law)) for x, law in enumerate(kernel)]
    assert max(losses) == it.form(2) == Fraction(5, 6)

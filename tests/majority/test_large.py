"""Large majorities, solved by interior points, against optima of warm simplex rounds."""

from __future__ import annotations

import pytest

from dpopt.lp import solve
from dpopt.lp.backends.highs import Highs
from dpopt.majority import MajoritySetting

# Optima of the program over all rows by HiGHS's dual simplex, to a duality gap of 1e-11.
REFERENCES = [
    (501, 1, 0.25000013757340506),
    (501, 3, 0.4374768336431444),
    (501, 10, 0.49950780022442937),
    (501, 30, 0.5000000018688563),
    (501, 100, 0.5000000025579272),
]


@pytest.mark.parametrize(("voters", "allowance", "best"), REFERENCES)
def test_values_are_those_of_simplex_rounds(voters: int, allowance: float, best: float) -> None:
    setting = MajoritySetting(voters, 0.1, allowance, objective="surrogate")
    solution = solve(setting.problem())
    assert solution.objective == pytest.approx(best, abs=1e-9)
    assert solution.gap <= 1e-9
    assert solution.residual <= 1e-9


@pytest.mark.parametrize("objective", ["expected-error", "surrogate"])
def test_both_kinds_of_rounds_agree(objective: str) -> None:
    setting = MajoritySetting(101, 0.1, 3, objective=objective)  # pyright: ignore[reportArgumentType]
    values = [
        solve(setting.problem(), Highs(rounds=rounds)).objective
        for rounds in ("simplex", "interior")
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-9)

import math
from fractions import Fraction as F
from math import comb

import numpy as np
import pytest

from dpopt import ParameterError, majority, solve
from dpopt.majority import MajoritySetting, check_full, full_problem, full_size
from tests.majority.brute import laws


def setting_of(voters: int, r: F, shift: F, target: F, delta: F) -> MajoritySetting:
    epsilon = math.log(r)
    return MajoritySetting(voters, epsilon, math.log(target) / epsilon, float(shift), float(delta))


@pytest.mark.parametrize(
    ("r", "shift", "target", "delta"),
    [
        (F(9, 4), F(0), F(3), F(0)),
        (F(9, 4), F(0), F(2), F(1, 50)),
        (F(5, 4), F(1, 20), F(3, 2), F(1, 20)),
    ],
)
@pytest.mark.parametrize("voters", [3, 5])
def test_rows_are_those_of_the_definition(voters: int, r: F, shift: F, target: F, delta: F) -> None:
    setting = setting_of(voters, r, shift, target, delta)
    model = full_problem(setting, np.ones(setting.middle)).assemble().rows
    found = model.matrix.toarray()
    assert found.shape == (full_size(setting), setting.middle)
    assert full_size(setting) == comb(voters + (7 if shift else 3), voters)
    exact = []
    for here, there in laws(voters, r, shift):
        f = [a - target * b for a, b in zip(here, there, strict=True)]
        upper = [f[i] - f[voters - i] for i in range(setting.middle, voters + 1)]
        exact.append([float(x / (target - 1 + 2 * delta)) for x in upper])
    # Each multiset has its own row, in an order that means nothing: rows are matched.
    apart = np.abs(found[:, None, :] - np.array(exact)[None, :, :]).max(axis=2)
    assert apart.min(axis=1).max() < 1e-12
    assert apart.min(axis=0).max() < 1e-12
    assert np.all(model.upper == 1.0)


@pytest.mark.parametrize(
    ("voters", "m", "shift"), [(3, 1, 0.0), (9, 2, 0.0), (21, 3, 0.0), (3, 1, 1e-2), (5, 2, 1e-3)]
)
def test_the_optimum_is_private_and_that_of_the_family(voters: int, m: int, shift: float) -> None:
    setting = MajoritySetting(voters, 0.3, m, shift, m * shift)
    weights = majority.surrogate_weights(voters).values
    found = solve(full_problem(setting, weights))
    family = solve(majority.gamma_problem(setting, weights))
    assert found.objective == pytest.approx(family.objective, abs=1e-9)
    # The dual bound of each is above the other: they are one program.
    assert found.bound >= family.objective - 1e-9
    upper = found["gamma"]
    check = check_full(setting, np.concatenate([upper[::-1], upper]))
    assert check.excess <= 1e-9 * setting.budget + check.rounding


def test_large_sets_are_refused() -> None:
    large = MajoritySetting(17, 0.1, 3, 1e-5, 1e-5)
    with pytest.raises(ParameterError, match="^mechanisms is 17, with 346104 multisets"):
        full_problem(large, np.ones(9))
    with pytest.raises(ParameterError, match="^setting is 3; it must be a MajoritySetting"):
        full_problem(3, [1.0])  # type: ignore[arg-type]

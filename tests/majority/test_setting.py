import math

import pytest

from dpopt import Guarantee, ParameterError, verify
from dpopt.majority import MajoritySetting

GOOD = {"mechanisms": 11, "epsilon": 0.1, "allowance": 3.0}


def test_derived_numbers() -> None:
    setting = MajoritySetting(11, 0.1, 3, 1e-3, 2e-3)
    assert setting.middle == 6
    assert setting.guarantee == Guarantee(0.1 * 3, 2e-3)
    assert setting.budget == pytest.approx(math.exp(0.3) - 1 + 4e-3, rel=1e-14)


def test_corners_are_extreme_points_of_both_privacy_constraints() -> None:
    setting = MajoritySetting(3, 0.7, 1, 0.05, 0.05)
    r = math.exp(0.7)
    b, c = setting.corner("bc")
    assert b + c == pytest.approx(1, abs=1e-15)
    assert b == pytest.approx(r * c + 0.05, rel=1e-14)
    assert 1 - c == pytest.approx(r * (1 - b) + 0.05, rel=1e-14)
    assert setting.corner("cb") == (c, b)
    assert setting.corner("1m") == (1.0, 0.95)
    assert setting.corner("0D") == (0.0, 0.05)


@pytest.mark.parametrize(
    ("voters", "shift", "most"), [(4003, 0.0, 4001), (503, 1e-6, 501)], ids=["pure", "Delta"]
)
def test_more_voters_than_can_be_decided_are_refused(voters: int, shift: float, most: int) -> None:
    setting = MajoritySetting(most, 0.1, 3, shift, shift)
    with pytest.raises(ParameterError, match=f"mechanisms is {voters}; every constraint"):
        MajoritySetting(voters, 0.1, 3, shift, shift)
    with pytest.raises(verify.Malformed):
        verify.allowed("majority", {**setting.to_dict(), "mechanisms": voters})

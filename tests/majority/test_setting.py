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


def test_a_file_from_when_there_were_groups_is_read_where_it_has_none() -> None:
    plain = MajoritySetting(**GOOD).to_dict()
    for earlier in ({"groups": []}, {"groups": [], "voter_ratio": None}):
        assert MajoritySetting.from_dict({**plain, **earlier}) == MajoritySetting(**GOOD)
    for name, value in {"groups": [[5, 0.1, 0.0], [6, 0.05, 0.0]], "voter_ratio": "5/2"}.items():
        other = {**plain, name: value}
        with pytest.raises(ParameterError, match=name):
            MajoritySetting.from_dict(other)
        with pytest.raises(verify.Malformed, match=f"{name} of the setting is unknown"):
            verify.allowed("majority", other)

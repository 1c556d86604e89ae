"""A rational e^epsilon: every proof is about its powers themselves, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction as F
from pathlib import Path

import pytest

import dpopt
from dpopt import NotPrivateError, ParameterError, majority
from dpopt.majority import GammaProver, MajoritySetting
from dpopt.privacy import exp_upper
from tests.majority.brute import ONE, judged


def setting_of(k: int, ratio: F, m: int) -> MajoritySetting:
    return MajoritySetting(k, math.log(ratio), m, voter_ratio=ratio)


@pytest.mark.parametrize(
    ("k", "ratio", "m"), [(3, F(5, 2), 1), (3, F(9, 8), 1), (5, F(2), 2), (5, F(10, 9), 1)]
)
def test_a_design_is_private_for_the_ratio_itself(k: int, ratio: F, m: int) -> None:
    found = majority.design(k, math.log(ratio), m, voter_ratio=ratio)
    assert found.verdict == "private"
    assert found.certificate is not None
    assert judged(found.setting, found.weights) <= 0
    assert found.guarantee.epsilon == pytest.approx(m * math.log(ratio), rel=1e-15)
    free = [place for place, weight in enumerate(found.weights) if weight < ONE]
    assert free
    for place in free:
        more = tuple(w + (i == place) for i, w in enumerate(found.weights))
        assert judged(found.setting, more) > 0
        with pytest.raises(NotPrivateError):
            GammaProver(found.setting).certify(more)


def test_a_tie_at_one_ratio_only_is_private_there() -> None:
    """7 g(3) + 6 g(2) <= 9 is the row of three voters at b and c, at e^epsilon = 2 and m = 1."""
    setting, weights = setting_of(3, F(2), 1), (5 * ONE // 8, 3 * ONE // 4)
    assert judged(setting, weights) == 0
    assert GammaProver(setting).certify(weights).slack == 0
    for more in ((weights[0] + 1, weights[1]), (weights[0], weights[1] + 1)):
        assert judged(setting, more) > 0
        with pytest.raises(NotPrivateError):
            GammaProver(setting).certify(more)
    near = setting_of(3, F(2) - F(1, 1 << 52), 1)
    assert judged(near, weights) > 0
    with pytest.raises(NotPrivateError):
        GammaProver(near).certify(weights)


def test_the_ratio_is_saved_and_part_of_the_proof(tmp_path: Path) -> None:
    found = majority.design(5, math.log(2.5), 2, voter_ratio=F(5, 2))
    found.save(tmp_path / "gamma.json")
    loaded = dpopt.load(tmp_path / "gamma.json")
    assert isinstance(loaded, majority.MajorityDesign)
    assert loaded.setting == found.setting
    assert loaded.certificate is not None
    assert loaded.certificate.ratio == F(25, 4)
    assert found.setting.to_dict()["voter_ratio"] == "5/2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, math.log(2.5), 1, F(3)), "voter_ratio is 3; it must be above 1, and epsilon"),
        ((3, math.log(2.5), 1, F(1)), "voter_ratio is 1; it must be above 1"),
        ((3, math.log(2.5), 1, "5/2"), "voter_ratio is '5/2'; it must be a finite number"),
        ((3, math.log(2.5), 1.5, F(5, 2)), "it takes a whole number"),
        ((4001, math.log(1.5), 1200, F(3 << 200, 2 << 200) + F(1, 1 << 90)), "at most 100,000"),
    ],
)
def test_another_ratio_is_refused(arguments: tuple[int, float, float, F], message: str) -> None:
    k, epsilon, allowance, ratio = arguments
    with pytest.raises(ParameterError, match=message):
        MajoritySetting(k, epsilon, allowance, voter_ratio=ratio)


def test_groups_have_no_common_ratio() -> None:
    groups = MajoritySetting.of_groups([(2, 0.5), (1, math.log(2.0))], 1)
    with pytest.raises(ParameterError, match="voters that are alike"):
        MajoritySetting(3, math.log(2.0), 1, 0.0, 0.0, groups.groups, F(2))


@pytest.mark.parametrize(
    ("epsilon", "ratio"),
    [(1e-300, 1 + F(4, 10**16)), (1e-9, 1 + F(1, 10**9) + F(3, 10**16)), (math.log(5), F(5))],
)
@pytest.mark.parametrize("trained_once", [True, False])
def test_voters_spend_the_logarithm_of_their_ratio(
    epsilon: float, ratio: F, trained_once: bool
) -> None:
    setting = MajoritySetting(3, epsilon, 3, voter_ratio=ratio)
    spending = majority.Spending(setting, trained_once)
    # A voter's votes alone, published, have the ratio: no epsilon below its logarithm is true.
    assert exp_upper(spending.voter.epsilon, 256) >= ratio
    assert exp_upper(spending.compositions(1)["voters-simple"].epsilon, 256) >= ratio**3

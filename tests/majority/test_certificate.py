from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import Majority, NotPrivateError
from dpopt.majority import reduced_size
from dpopt.majority.voters import table_of
from tests.majority.brute import ONE, judged, table, verdict, weights

SMALL = [
    Majority(1, 0.5, 0.7),
    Majority(3, 0.5, 1.0),
    Majority(3, 0.3, 1.7, 0.01, 0.02),
    Majority(3, 2.0, 0.6, 0.2, 0.2),
    Majority(5, 0.1, 2.0),
    Majority(5, 1.5, 1.3, 0.0, 0.01),
]


@pytest.mark.parametrize("setting", SMALL)
def test_the_certificate_s_slack_is_the_fractions_slack(setting: Majority) -> None:
    """A lower bound, up to the rounding of floats; that of a repaired table is next to 0."""
    start = np.array([0.3, 0.8, 0.1])[: setting.middle]
    repaired = setting.table(start)
    less = tuple(w * 9 // 10 for w in weights(repaired))
    for private in (repaired, table(setting, less)):
        certificate, exact = setting.judge(private), -judged(setting, weights(private))
        assert 0 <= certificate.slack <= exact + F(1, 10**60)
        assert exact - certificate.slack < F(1, 10**14)
        assert certificate.constraints == reduced_size(setting)
        assert certificate.guarantee == setting.guarantee
    broken = judged(setting, weights(table_of(setting, start, 63))) > 0
    assert not broken or judged(setting, weights(repaired)) > F(-1, 10**13)


@pytest.mark.parametrize("setting", SMALL[1:])
def test_the_refusal_names_voters_where_fractions_see_the_same_excess(
    setting: Majority,
) -> None:
    whole = (ONE,) * setting.middle
    with pytest.raises(NotPrivateError, match="^gamma breaks") as caught:
        setting.judge(table(setting, whole))
    assert caught.value.excess == pytest.approx(float(judged(setting, whole)), rel=1e-12)
    assert caught.value.output == "1"
    for side in caught.value.inputs:
        counts = [int(part.split()[0]) for part in side.split(", ")]
        assert sum(counts) == setting.voters


@pytest.mark.parametrize("objective", ["mean", "surrogate"])
@pytest.mark.parametrize(
    ("k", "m", "shift"),
    [(11, 3, 0.0), (11, 3, 1e-5), (51, 10, 0.0), (101, 10, 0.0), (101, 20, 0.0), (21, 3, 1e-5)],
)
def test_a_little_more_in_any_weight_is_caught(
    k: int, m: int, shift: float, objective: Any
) -> None:
    setting = Majority(k, 0.1, m, shift, m * shift, objective=objective)
    gamma, step = weights(dpopt.design(setting).table), ONE >> 16
    places = [i for i, weight in enumerate(gamma) if weight <= ONE - step]
    assert places
    for place in places[:: max(1, len(places) // 4)]:
        raised = [weight + step * (i == place) for i, weight in enumerate(gamma)]
        assert not verdict(setting, tuple(raised))


def test_a_private_gamma_is_left_alone() -> None:
    setting = Majority(5, 0.1, 2.0)
    gamma = ONE // 8, ONE // 4, ONE // 16 * 3
    assert weights(setting.table(np.array([0.125, 0.25, 0.1875]))) == gamma


@pytest.mark.parametrize(("k", "m"), [(11, 7), (201, 150)])
def test_a_majority_that_is_private_by_itself_is_left_whole(k: int, m: int) -> None:
    design = dpopt.design(dpopt.Majority(k, 0.1, m))
    assert set(weights(design.table)) == {ONE}
    assert design.certificate is not None
    # All voters at 0 on both sides: e^(m epsilon) - 1 <= e^(m epsilon) - 1.
    assert design.certificate.slack == 0

"""Malformed arguments of the public functions: one sentence each, never another error."""

from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest

from dpopt import ParameterError, majority
from dpopt.majority import (
    BetaPrior,
    CommonPrior,
    GammaProver,
    MajoritySetting,
    PointPrior,
    SamplePrior,
    UniformPrior,
    WorstCase,
    proof,
)

SETTING = MajoritySetting(3, 0.1, 1)


def values(*found: Any) -> tuple[Any, ...]:
    return found


def design(**more: object) -> Callable[[], object]:
    return lambda: majority.design(3, 0.1, 1, **more)  # type: ignore[arg-type]


def sampled(drawn: object) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    return lambda: SamplePrior.draw(lambda *_: drawn, 3, rng, 2)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    "call",
    [
        *(design(prior=prior) for prior in values(5, 0, [], object(), UniformPrior, np.ones(2))),
        design(prior="common-" * 5000),
        design(prior=SamplePrior(np.full((2, 5), 0.5))),
        design(prior=SamplePrior(np.full((2, 5), 0.5)), objective="worst-case"),
        design(objective=np.array([1, 2])),
        design(objective=None),
        design(weights=[1j, 2j]),
        design(weights=[[1.0], [1.0, 2.0]]),
        design(weights=["a", "b"]),
        *(lambda n=n: SETTING.corner(n) for n in values(5, None, "b", "", "bc@1", "xx", "zz")),
        *(lambda i=i: UniformPrior(i) for i in values(5, (0, 1), "ab", ((0,),), np.ones((1, 2)))),
        *(lambda p=p: PointPrior(p) for p in values((), "a", (2.0,), np.ones(2))),
        *(lambda b=b: CommonPrior(b) for b in values("x", None, PointPrior((0.5,)))),
        *(lambda s=s: SamplePrior(s) for s in values(1, [[1j]] * 2, [["a"]] * 2, np.empty((2, 0)))),
        *(sampled(v) for v in values("a", [[0.5], [0.5]], [[0.5] * 3, [0.5] * 2])),
        lambda: SamplePrior.draw(5, 3, np.random.default_rng(0)),  # type: ignore[arg-type]
        *(lambda k=k: WorstCase(k, UniformPrior()) for k in values(4, 0, -1, True, "a", None)),
        *(lambda k=k: majority.surrogate_weights(k) for k in values(2, 4, "a", np.nan)),
        *(lambda k=k: majority.expected_error_weights(k, UniformPrior()) for k in values(2, 4)),
        *(
            lambda g=g: majority.expected_error(g, UniformPrior())
            for g in values([5.0] * 4, [np.nan] * 4, [0.5] * 3, [[0.5]])
        ),
        *(lambda w=w: GammaProver(SETTING).certify(w) for w in values(5, (1,), (1.0, 2.0))),
        *(lambda w=w: GammaProver(SETTING).shrink(w) for w in values(5, (1,))),
        lambda: GammaProver(MajoritySetting(503, 0.1, 3, 1e-5, 1e-4)).certify((0,) * 252),
        lambda: majority.design_for("a"),  # type: ignore[arg-type]
        lambda: BetaPrior(0, 1),
    ],
)
def test_one_sentence(call: Callable[[], object]) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message


def test_narrow_intervals_keep_their_weights() -> None:
    # At p = 1/2, C(3, 2) / 8 = C(3, 3) / 8 * 3: the weights' slope in p, from the binomial.
    width = 1e-8
    prior = CommonPrior(UniformPrior(((0.5, 0.5 + width),)))
    values = majority.expected_error_weights(3, prior).values
    slope = np.array([1.5, 1.5]) / 4  # d/dp of 1/2 (alpha_l - alpha_{3-l}) at 1/2, over 2
    np.testing.assert_allclose(values, slope * width, rtol=1e-6)
    assert majority.design(3, 0.1, 1, prior=prior).expected_error > 0


@pytest.mark.parametrize("shape", [99.0, 101.0, 600.0, 1e4])
def test_peaked_beta_priors(shape: float) -> None:
    weights = majority.expected_error_weights(11, BetaPrior(shape, shape))
    assert np.all(np.isfinite(weights.values))
    # With (alpha_l - alpha_{K-l}) / 2 linear in sum p - K/2 next to p = 1/2: a normal's mean.
    deviation = np.sqrt(11 / (4 * (2 * shape + 1)))
    chance = Fraction(sum((2 * ones - 11) * comb(11, ones) for ones in range(6, 12)), 11 * 2**10)
    expected = float(chance) * np.sqrt(2 / np.pi) * deviation
    assert weights.values.sum() == pytest.approx(expected, rel=0.02)


def test_a_list_that_was_cut_off_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "MOST_LISTED", 5)
    found = majority.design(11, 0.1, 3)
    assert found.private

"""The checks over kinds find what is wrong, and nothing else: kinds that are known to be either."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import NotPrivateError, ParameterError
from tests.shape import checks as over
from tests.shape import toys
from tests.shape.toys import Coin, Worded


@pytest.fixture(autouse=True)
def among_the_kinds() -> Iterator[None]:
    with toys.registered():
        yield


@pytest.mark.sample(30)
@pytest.mark.every_case
@pytest.mark.slow_after(5)
@pytest.mark.parametrize("check", over.CHECKS, ids=lambda part: part.__name__)
@pytest.mark.parametrize("kind", toys.RIGHT, ids=lambda part: part.__name__)
def test_a_right_kind_passes(kind: type[Any], check: Any, tmp_path: Path) -> None:
    over.run(check, kind, tmp_path)


BY_PMF = over.neighbours_are_within_the_guarantee
FOUND: list[tuple[Any, Any, str]] = [
    (toys.Blind, over.proof_refuses_units_more, "were proved private"),
    (toys.OtherDraws, over.releases_its_pmf, "p = |impossible"),
    (toys.OtherSubject, over.proof_is_about_its_integers, "DID NOT RAISE"),
    (toys.OneSided, BY_PMF, "break the guarantee by 0.4"),
    (toys.OffByOne, BY_PMF, "break the guarantee by"),
    (toys.NegativeWeight, BY_PMF, "negative weight"),
    (toys.MoreOutputs, BY_PMF, "different numbers of outputs"),
    (toys.HiddenRatio, over.pairs_are_within_the_guarantee, "finds more than was proved"),
    (toys.HiddenRatio, BY_PMF, "break the guarantee by 0.00"),
    (toys.NoSignCheck, over.proof_refuses_negative_units, "DID NOT RAISE"),
]


@pytest.mark.parametrize(("kind", "check", "words"), FOUND)
def test_a_wrong_kind_is_found(kind: type[Any], check: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception), match=words):
        over.run(check, kind, tmp_path)


def test_a_kind_that_differs_in_its_words_alone() -> None:
    mine, general = dpopt.design(Worded(math.log(3))), dpopt.design(Coin(math.log(3)))
    assert mine.table == general.table
    assert mine.value == general.value
    assert {mine.simulate(0, np.random.default_rng(seed)) for seed in range(20)} == {"no", "yes"}
    # One proof, about two settings: neither certificate fits the other.
    assert mine.certificate != general.certificate
    with pytest.raises(ParameterError, match="certificate is not about"):
        replace(mine, certificate=general.certificate)


def test_a_published_rule_that_fails_is_a_design_that_releases_nothing(tmp_path: Path) -> None:
    for backend in (None, "highs", "cvxpy"):
        found = dpopt.design(dpopt.RevealOrObscure(3, 2, 0.5, "journal"), backend=backend)
        assert (found.private, found.certificate) == (False, None)
        # Only what is proved is called a guarantee.
        for shown in (repr(found), found._repr_html_()):
            assert ("guarantee" in shown, "target" in shown) == (False, True)
        with pytest.raises(NotPrivateError):
            found.release([1] * 3)
        with pytest.raises(NotPrivateError):
            found.save(tmp_path / "bad.json")
        assert not pickle.loads(pickle.dumps(found)).private


def test_a_proof_of_less_than_is_promised_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    weaker = toys.proof_of(Coin(2.0), Fraction(1, 2))
    monkeypatch.setattr(Coin, "judge", lambda *_: weaker)
    with pytest.raises(ParameterError, match="certificate is of .*, and kind .* promises"):
        dpopt.design(Coin(1.0))


def test_a_slack_below_zero_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Coin, "judge", lambda self, _: toys.proof_of(self, Fraction(-1, 1000)))
        with pytest.raises(NotPrivateError, match="slack -0.001, and it must be") as caught:
            dpopt.design(Coin(1.0))
    over.says_one_sentence(caught.value)
    proof = dpopt.design(Coin(1.0)).certificate
    assert proof is not None
    for wrong in (-0.5, math.nan, None):
        with pytest.raises(ParameterError, match="^slack is .*; it must be a Fraction"):
            replace(proof, slack=wrong)  # type: ignore[arg-type]


def test_a_file_of_a_kind_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "coin.json"
    dpopt.design(Coin(1.0)).save(path)
    assert type(dpopt.load(path).setting) is Coin

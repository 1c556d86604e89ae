"""The commands smoothed and profile."""

from __future__ import annotations

import json
import math

import pytest

from tests.cli.running import Capture, run

KEYS = {"delta", "log10_delta", "argmax", "certified", "dp_delta", "seconds"}


def test_smoothed_prints_json(capsys: Capture) -> None:
    sized = ["--records", "36", "--drawn", "34", "--epsilon", "0", "--shares", "0.6,0.4"]
    code, out, _ = run(["smoothed", *sized, "--json"], capsys)
    found = json.loads(out)
    assert code == 0
    assert set(found) >= KEYS
    assert found["delta"] == pytest.approx(0.478070349009, abs=1e-12)
    assert found["log10_delta"] == pytest.approx(math.log10(0.478070349009), abs=1e-11)
    assert found["argmax"] == [18, 18]
    assert found["certified"] is True
    assert found["dp_delta"] == pytest.approx(34 / 36)


def test_smoothed_takes_a_lost_rate_and_more_categories(capsys: Capture) -> None:
    sized = ["smoothed", "--records", "12", "--lost-rate", "0.2", "--epsilon", "1"]
    laws = ["--shares", "0.2:0.3:0.5,0.6:0.2:0.2"]
    code, out, _ = run([*sized, *laws, "--json"], capsys)
    found = json.loads(out)
    assert code == 0
    assert found["drawn"] == 10
    assert sum(found["argmax"]) == 12
    assert 0 < found["delta"] < found["dp_delta"]
    code, out, _ = run([*sized, *laws], capsys)
    assert code == 0
    assert "log10_delta" in out


def test_profile_of_the_election_of_2020(capsys: Capture) -> None:
    epsilon = repr(math.log(51 / 49))
    counts = ["--counts", "81268924,74216154", "--lost-rate", "0.002"]
    code, out, _ = run(["profile", *counts, "--epsilon", epsilon, "--json"], capsys)
    found = json.loads(out)
    assert code == 0
    assert found["delta"] == pytest.approx(1.207812712909e-32, rel=1e-12)
    assert found["threshold"] == pytest.approx(0.51)
    assert 10 ** found["log10_utility"] == pytest.approx(1.123258997447e-32, rel=1e-11)
    assert found["one_over_n"] == 1 / 155485078


def test_a_delta_of_zero_has_no_logarithm(capsys: Capture) -> None:
    arguments = ["profile", "--counts", "8,8", "--drawn", "1", "--epsilon", "3", "--json"]
    code, out, _ = run(arguments, capsys)
    found = json.loads(out)
    assert code == 0
    assert found["delta"] == 0.0
    assert found["log10_delta"] is None


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("smoothed --records 10 --epsilon 1 --shares 0.5", "lost-rate"),
        ("smoothed --records 10 --drawn 9 --lost-rate 0.1 --epsilon 1 --shares 0.5", "lost-rate"),
        ("smoothed --records 10 --drawn 11 --epsilon 1 --shares 0.5", "drawn"),
        ("smoothed --records 10 --drawn 9 --epsilon -1 --shares 0.5", "epsilon"),
        ("smoothed --records 10 --drawn 9 --epsilon 1 --shares 0.5,x", "shares"),
        ("smoothed --records 10 --drawn 9 --epsilon 1 --shares 0.5,0.2:0.8", "shares"),
        ("smoothed --records 10 --drawn 9 --epsilon 1 --shares 1.5", "distributions"),
        ("smoothed --records 10 --lost-rate nan --epsilon 1 --shares 0.5", "lost_rate"),
        ("profile --counts 10 --drawn 9 --epsilon 1", "counts"),
        ("profile --counts 5,-5 --drawn 1 --epsilon 1", "counts"),
        ("profile --counts 5,5 --drawn 9 --epsilon inf", "epsilon"),
    ],
)
def test_bad_arguments_exit_with_2(arguments: str, word: str, capsys: Capture) -> None:
    code, out, err = run(arguments.split(), capsys)
    assert (code, out) == (2, "")
    assert word in err
    assert "Traceback" not in err

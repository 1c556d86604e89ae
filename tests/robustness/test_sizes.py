"""Every result at sizes whose integers Python does not print: shown, written and read all the same.

Python refuses the decimal form of an integer beyond 4,300 digits, about 14,284 bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import Design, vote
from dpopt.interop.accounting import dominating_pair
from tests.kernel.brute import made_of, optimal
from tests.robustness.commands import run


def long_kernel(bits: int, epsilon: float = 0.25) -> Design:
    half = 1 << (bits - 1)
    return made_of([[half + 1, half - 1], [half - 1, half + 1]], epsilon)


def long_design() -> dpopt.Design:
    return dpopt.design(dpopt.Majority(281, 0.1, 70.25, objective="surrogate"))


LARGEST: dict[str, Callable[[], Any]] = {
    "kernel": lambda: long_kernel(15_000),
    "kernel-largest": lambda: long_kernel(99_999),
    "majority": long_design,
    "vote": lambda: vote(long_design(), np.ones((2, 281)), trained_once=False),
    "min-count": lambda: dpopt.design(dpopt.RevealOrObscure(10**15, 2, 600.0)),
    "roo": lambda: dpopt.design(dpopt.RevealOrObscure(10**15, 10**15, 600.0, "roo")),
    "journal": lambda: dpopt.design(dpopt.RevealOrObscure(10**12, 10**6, 600.0, "journal")),
    "floor": lambda: dpopt.design(dpopt.SmoothFloor(10**15, 10**9, 600.0)),
    "best-sampler": lambda: dpopt.design(dpopt.BestSampler(4, 2, 600.0)),
    "minimax": lambda: dpopt.design(dpopt.PublicPrior([0.2, 0.3, 0.5], 600.0)),
    "leximin": lambda: dpopt.design(
        dpopt.PublicPrior([1e-9, 0.3, 0.7 - 1e-9], 600.0, objective="leximin")
    ),
    "population": lambda: dpopt.design(dpopt.Population([0.4, 0.6], 16.0, [[0.5, 0.5]])),
    "kernel-design": lambda: optimal(1 - np.eye(3), epsilon=600.0),
    "pair": lambda: dominating_pair(long_kernel(15_000)),
}
LOADED = {"kernel", "kernel-largest", "majority", "min-count", "roo", "journal"}


@pytest.mark.every_case
@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", LARGEST)
def test_it_is_shown_and_written_and_read(name: str, tmp_path: Path) -> None:
    result = LARGEST[name]()
    parts = (result, getattr(result, "certificate", None), getattr(result, "audit", None))
    for part in parts:
        # Every digit of one such integer would make it longer.
        assert len(repr(part)) < 4300
    if hasattr(result, "to_dict"):
        json.dumps(result.to_dict(), allow_nan=False)
    if not hasattr(result, "save"):
        return
    path, again = tmp_path / "saved.json", tmp_path / "again.json"
    result.save(path)
    json.loads(path.read_text())
    if name in LOADED:
        found: Any = dpopt.load(path)
        assert found.table == result.table
        assert found.certificate.slack == result.certificate.slack
        found.save(again)
        # Once loaded, a bound is what a file states: from then on, nothing changes.
        dpopt.load(again).save(path)
        assert name == "majority" or again.read_bytes() == path.read_bytes()


def test_a_refusal_by_less_than_any_float_is_not_by_zero() -> None:
    with pytest.raises(dpopt.NotPrivateError, match=r"by 7\.1e-4516\.") as caught:
        long_kernel(15_000, 0.0)
    assert caught.value.excess > 0


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_line_at_the_smallest_design_that_failed(as_json: bool, tmp_path: Path) -> None:
    path, options = str(tmp_path / "gamma.json"), ["--json"] if as_json else []
    words = ["--voters", "281", "--epsilon", "0.1", "--allowance", "70.25"]
    words += ["--objective", "surrogate", "--save", path]
    for command in (["majority", *words], ["certify", path]):
        ended = run(*command, *options)
        assert (ended.code, ended.err) == (0, "")
        if as_json:
            json.loads(ended.out)


def test_a_sweep_over_integers_that_cannot_be_printed() -> None:
    small, large = dpopt.sweep(lambda exponent: 1 << exponent, {"exponent": [3, 20_000]}).records
    assert small["value"] == 8
    assert "Exceeds the limit (4300 digits)" in large["failure"]
    with pytest.raises(dpopt.ParameterError, match="grid is .*Exceeds the limit"):
        dpopt.sweep(len, {"offset": [7**3, 7**9000]})

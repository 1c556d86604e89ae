"""What is no ratio, no interval, no setting or too large is refused in one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import dpopt
from dpopt.kernel import KernelSetting
from dpopt.proofs.closed import Ratio, private_where
from dpopt.shape import kinds
from tests.cli.running import Capture, run
from tests.shape.toys import Coin

SMALL = KernelSetting("absolute", 1.0, graph="path", inputs=3, objective="minimax")
NO_RATIOS: list[Any] = [
    *(0, -1, Fraction(1, 2), 2.5, math.nan, "5/2", True, [2], 1 << 300, 3 + 0j),
    Fraction(10**5000, 3),
]


def refusal(call: Callable[..., object], *arguments: Any) -> str:
    """The one sentence of a refusal, which names what is wrong and what it must be."""
    with pytest.raises(dpopt.ParameterError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert len(text) < 450
    assert "; it must " in text or "; its " in text or "; a closed form" in text
    assert not any(word in text for word in ("Traceback", "object is not", "unsupported"))
    return text


@pytest.mark.parametrize("ratio", [*NO_RATIOS, None])
def test_what_is_no_ratio_is_refused(ratio: Any) -> None:
    assert refusal(dpopt.exact_optimum, SMALL, ratio).startswith("ratio is ")
    assert refusal(dpopt.closed_form, SMALL, ratio).startswith("low is ")
    assert refusal(private_where, SMALL, {}, ratio).startswith("low is ")


@pytest.mark.parametrize("ratio", NO_RATIOS)
def test_an_interval_s_end_is_a_larger_ratio(ratio: Any) -> None:
    assert refusal(dpopt.closed_form, SMALL, 1, ratio).startswith("high is ")


@pytest.mark.parametrize(("low", "high"), [(3, 2), (2, 2), (1, 1), (Fraction(7, 2), 3)])
def test_an_interval_is_not_empty(low: Any, high: Any) -> None:
    assert f"larger than low, {low}" in refusal(dpopt.closed_form, SMALL, low, high)


@pytest.mark.parametrize(
    "setting",
    [None, 3, "kernel", object(), KernelSetting, {"kind": "kernel"}, [SMALL]],
    ids=lambda s: type(s).__name__,
)
def test_what_is_no_setting_is_refused(setting: Any) -> None:
    for call in (dpopt.exact_optimum, dpopt.closed_form):
        assert refusal(call, setting).startswith("setting is ")
    assert refusal(private_where, setting, {}).startswith("setting is ")


def test_a_kind_of_ones_own_has_no_program_to_be_solved() -> None:
    for call in (dpopt.exact_optimum, dpopt.closed_form):
        assert "kind whose program can be checked" in refusal(call, Coin(1.0))


@pytest.mark.parametrize("name", ["mollifier", "smooth-floor", "majority"])
def test_a_program_that_is_not_rational_in_the_ratio_is_refused(name: str) -> None:
    """The mollifier is in e^(epsilon / 2), the floor has no program; a voter's m is 3/2."""
    kind = next(kind for kind in kinds() if kind.kind == name)
    for call in (dpopt.exact_optimum, dpopt.closed_form):
        assert "rational where" in refusal(call, kind.example())


@pytest.mark.parametrize("inputs", [46, 400])
def test_what_is_too_large_is_refused_at_once(inputs: int) -> None:
    setting = KernelSetting("absolute", 1.0, inputs=inputs, graph="path")
    for call in (dpopt.exact_optimum, dpopt.closed_form):
        assert "too large" in refusal(call, setting)


@pytest.mark.parametrize(
    "point",
    [None, 3, {("K", 0, 0): 1}, {("K", 0, 0): Ratio((1,), (0,))}, {("K", 9, 9): Ratio((1,))}],
    ids=str,
)
def test_a_rule_is_a_formula_for_each_variable(point: Any) -> None:
    assert refusal(private_where, SMALL, point).startswith("point is ")


@pytest.mark.parametrize("r", [Fraction(1, 2), -math.inf, math.nan, "2", None, True])
def test_a_closed_form_is_asked_at_a_ratio(r: Any) -> None:
    form = dpopt.closed_form(SMALL)
    for call in (form, form.point, form.piece):
        assert refusal(call, r).startswith("r is ")


@pytest.mark.parametrize("count", [0, 1, 2.5, "9", None])
def test_a_grid_has_two_places(count: Any) -> None:
    assert refusal(dpopt.closed_form(SMALL).columns, count).startswith("count is ")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "\x00", '{"format": "other"}', "[" * 9999]
)
def test_what_is_no_saved_answer_is_not_verified(text: str, tmp_path: Any, capfd: Capture) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    ended = run(["verify", str(file)], capfd)
    assert ended[0] == 2
    assert ended[1] == ""
    assert ended[2].count("\n") == 1

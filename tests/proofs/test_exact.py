"""Optima as fractions: against values known otherwise, and against files that were spoilt."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import Kernel, Majority, verify
from dpopt.proofs.dual import Written
from dpopt.proofs.exact import Exact, Vertex, displayed
from tests.proofs.judging import alone, answer, optimum, read
from tests.proofs.test_closed_forms import SETTINGS


def path(inputs: int, **other: Any) -> Kernel:
    given = {"objective": "worst-case", "graph": "path", **other}
    return Kernel("absolute", 1.0, inputs=inputs, **given)


@pytest.mark.parametrize(
    ("ratio", "values"),
    [
        (2, ["1/3", "4/7", "28/39", "36/43", "212/231"]),
        (3, ["1/4", "3/7", "39/76", "24/41", "267/428"]),
    ],
)
def test_optima_are_the_known_fractions(ratio: int, values: list[str]) -> None:
    found = [dpopt.exact_optimum(path(n), ratio).value for n in range(2, 7)]
    assert found == list(map(Fraction, values))
    # Randomised response is best for the zero-one loss.
    for n in (3, 4, 6):
        optimum = dpopt.exact_optimum(Kernel("zero-one", 1.0, inputs=n), Fraction(17, ratio))
        assert optimum.value == (n - 1) / (Fraction(17, ratio) + n - 1)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("ratio", [Fraction(8, 7), Fraction(22, 9), Fraction(19, 3)])
def test_it_is_the_optimum_of_another_solver(setting: Any, ratio: Fraction) -> None:
    value = dpopt.exact_optimum(setting, ratio).value
    program = displayed(setting.kind, read(setting), ratio)
    assert float(value) == pytest.approx(optimum(program), abs=1e-7)


def test_the_optimum_is_near_the_design_at_its_own_epsilon() -> None:
    setting = path(4)
    ratio = Fraction(np.exp(setting.epsilon).item()).limit_denominator(10**12)
    value = dpopt.design(setting).value
    assert float(dpopt.exact_optimum(setting, ratio).value) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("setting", [path(4), SETTINGS[1]], ids=["kernel", "majority"])
def test_the_file_is_checked_alone(setting: Any, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    dpopt.exact_optimum(setting, Fraction(7, 3)).save(file)
    ended = alone(tmp_path / "alone", file)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("optimal: ")


TINY = Fraction(1, 10**30)


def test_a_spoilt_file_is_refused(tmp_path: Path) -> None:
    body = dpopt.exact_optimum(path(4), Fraction(7, 3)).to_dict()
    (*row, y), (*variable, x) = body["multipliers"][0], body["point"][0]
    smaller: Any = {"inputs": 3, "outputs": 3}
    for change, code in [
        ({"value": str(Fraction(body["value"]) - TINY)}, 4),
        ({"ratio": "9/4"}, 4),
        ({"multipliers": [[*row, f"-{y}"], *body["multipliers"][1:]]}, 4),
        ({"multipliers": [[*row, str(Fraction(y) * (1 + TINY))], *body["multipliers"][1:]]}, 4),
        ({"point": [[*variable, str(Fraction(x) * (1 + TINY))], *body["point"][1:]]}, 4),
        ({"setting": {**body["setting"], **smaller}}, 2),
        *(({"ratio": ratio}, 2) for ratio in ("1/2", str(1 << 300))),
        *(({"kind": kind}, 2) for kind in ("unknown", ["kernel"])),
        *(({"point": point}, 2) for point in ([[["t"], ["t"], "1"]], None)),
        ({"multipliers": [["nothing", "1"]]}, 2),
        ({"setting": None}, 2),
        ({"value": "x"}, 2),
    ]:
        assert answer(tmp_path, {**body, **change})[:2] == (code, [])


def test_a_basis_that_is_not_optimal_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vertex of a float solver may break a limit by a unit of the last place."""
    widths, inner, judged, refusals = [], Written.solved, vars(Vertex)["optimal"].func, [1, 2]

    def watched(written: Written, *given: Any) -> Any:
        widths.append(given[2] if given else Fraction(1))
        return inner(written, *given)

    def refused_twice(vertex: Vertex) -> bool:
        return not (refusals and refusals.pop()) and judged(vertex)

    monkeypatch.setattr(Written, "solved", watched)
    monkeypatch.setattr(Vertex, "optimal", property(refused_twice))
    assert dpopt.exact_optimum(Kernel("zero-one", 1.0, inputs=3), 4).value == Fraction(1, 3)
    assert len(widths) == 3
    assert widths == sorted(widths, reverse=True)


def test_programs_without_a_point_are_told() -> None:
    # Two shares of at least 2/3 each.
    rows = {(name,): verify.Row({("x", i): -1}, Fraction(-2, 3)) for i, name in enumerate("ab")}
    program = verify.Program(
        [([("x", 0), ("x", 1)], 1)], {}, {("x", 0): 1}, lambda: list(rows), rows.__getitem__
    )
    with pytest.raises(dpopt.InfeasibleError, match="no point"):
        Exact.of(Written(program, tuple(rows))).optimum()


def test_only_what_can_be_checked_has_an_exact_optimum() -> None:
    for ratio in (0, Fraction(1, 2), True, 2.5, "2", None, 1 << 300):
        with pytest.raises(dpopt.ParameterError, match="ratio is"):
            dpopt.exact_optimum(path(3), ratio)  # type: ignore[arg-type]
    uneven = Majority(5, 0.1, 1.5, objective="surrogate")
    wrong: Any = ((3, "setting is"), (path(60), "too large"), (uneven, "rational where"))
    for setting, why in wrong:
        with pytest.raises(dpopt.ParameterError, match=why):
            dpopt.exact_optimum(setting, 2)

"""The checker judges kernels of public priors, mollifiers, populations and nearest kernels."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import dpopt
from dpopt import verify
from dpopt.kernel import NearestKernel
from dpopt.public_prior import MollifierSetting, PopulationSetting, PublicPriorSetting
from tests.proofs.judging import alone, displayed, optimum

MASSES = [0.05, 0.1, 0.15, 0.2, 0.5]
USERS = [[0.4, 0.1, 0.1, 0.4], [0.0, 0.5, 0.5, 0.0], [0.1, 0.2, 0.3, 0.4]]
DELTA_PATH = NearestKernel(
    [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], 0.5, 1e-3, "path", tolerance=0.5
)
CASES = {
    "Algorithm 1": (PublicPriorSetting.example(), None),
    "leximin": (PublicPriorSetting(MASSES, 1.0, objective="leximin"), None),
    "program of the prior": (PublicPriorSetting.example(), "highs"),
    "mollifier": (MollifierSetting.example(), None),
    "program of the mollifier": (MollifierSetting.example(), "highs"),
    "population": (PopulationSetting.example(), None),
    "diagonal": (
        PopulationSetting([0.1, 0.2, 0.3, 0.4], 1.0, USERS, slack=0.1, objective="diagonal"),
        None,
    ),
    "nearest": (NearestKernel.example(), None),
    "nearest along a path": (DELTA_PATH, None),
}
NAMES = list(CASES)


def saved(name: str, folder: Path) -> tuple[Any, Path, Path]:
    """Return a case's design, its file and the file of its proof."""
    setting, backend = CASES[name]
    found = dpopt.design(setting, backend=backend)
    found.save(folder / "x.json", proof=True)
    return found, folder / "x.json", folder / "x.proof.json"


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", NAMES)
def test_files_are_accepted_by_a_copy_alone_in_its_folder(name: str, tmp_path: Path) -> None:
    found, path, proof = saved(name, tmp_path)
    done = alone(tmp_path / "empty", path, proof)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("private: ")
    assert "optimal: no other is below" in done.stdout
    assert found.bound.how == "proved"
    assert abs(found.gap) <= 1e-12
    assert dpopt.load(path).value == found.value


@pytest.mark.parametrize("name", NAMES)
def test_values_and_bounds_are_the_optimum_of_the_displayed_program(name: str) -> None:
    setting, backend = CASES[name]
    found = dpopt.design(setting, backend=backend)
    assert found.bound == pytest.approx(optimum(displayed(found)), abs=1e-8)


@pytest.mark.parametrize("objective", ["minimax", "leximin"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_two_rows_of_a_prior_prove_what_the_whole_program_has_as_optimum(
    objective: Any, epsilon: float
) -> None:
    setting = PublicPriorSetting([0.3, 0.1, 0.4, 0.2], epsilon, objective=objective)
    # n^2 (n - 1) rows of privacy, written out here.
    n, q, r = 4, np.array([0.3, 0.1, 0.4, 0.2]), math.exp(epsilon)
    above, limits = [], []
    for i in range(n):
        line = np.zeros(n * n + 1)
        line[[i * n + i, -1]] = -1.0
        above.append(line)
        limits.append(-1.0)
    for x in range(n):
        for z in range(n):
            for y in range(n if x != z else 0):
                line = np.zeros(n * n + 1)
                line[[x * n + y, z * n + y]] = 1.0, -r
                above.append(line)
                limits.append(0.0)
    equal = [np.append(np.repeat(np.eye(n)[i], n), 0.0) for i in range(n)]
    equal += [np.append(np.outer(q, np.eye(n)[y]).ravel(), 0.0) for y in range(n)]
    solved = linprog(
        np.append(np.zeros(n * n), 1.0), above, limits, equal, [*np.ones(n), *q], bounds=(0.0, 1.0)
    )
    assert dpopt.design(setting).bound == pytest.approx(solved.fun, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=12),
    st.floats(1e-6, 500.0),
    st.sampled_from(["minimax", "leximin"]),
)
def test_the_checker_makes_the_integers_that_are_drawn_from(
    masses: list[float], epsilon: float, objective: Any
) -> None:
    prior = np.array(masses) / sum(masses)
    found = dpopt.design(PublicPriorSetting(prior, epsilon, objective=objective))
    setting, bits = json.loads(json.dumps(found.setting.to_dict())), found.table.bits
    made, unit = verify.layers(setting, bits), 1 << bits
    q = sorted(Fraction(mass) * unit // 1 for mass in setting["prior"])
    assert made == found.table.layers
    assert made.q == q
    grown = verify.growth(Fraction(epsilon))
    verdict, kept = verify.decide_layers(made, grown)
    # Against all n^2 integers: the diagonal within two units, the drift from above, each column.
    order = found.setting.public.order.tolist()
    rows = [found.table.row(letter) for letter in order]
    weights = [[row[letter] for letter in order] for row in rows]
    assert 0 <= min(row[i] for i, row in enumerate(weights)) - kept * unit <= 2
    low, moved = grown(64)[0], Fraction(0)
    for j, column in enumerate(zip(*weights, strict=True)):
        moved += abs(sum(a * b for a, b in zip(q, column, strict=True)) - q[j] * unit)
        assert grown(64)[2] * max(column) <= low * min(column)
    assert moved / (2 * sum(q) * unit) <= verdict.missed


@pytest.mark.parametrize("objective", ["minimax", "leximin"])
def test_integers_of_a_greater_ratio_are_refused(
    objective: Any,
) -> None:
    setting = PublicPriorSetting(MASSES, 1.0, objective=objective).to_dict()
    grown = verify.growth(Fraction(1))
    # The room for rounding is 2^-40 of e^epsilon; twice as much is beyond it.
    greater = verify.layers({**setting, "epsilon": 1 + 2.0**-39}, 62)
    assert verify.decide_layers(verify.layers(setting, 62), grown)[0].slack > 0
    with pytest.raises(verify.Refused, match="not private") as caught:
        verify.decide_layers(greater, grown)
    assert caught.value.at in range(5)
    assert 0 < caught.value.missed < 1e-12


@pytest.mark.parametrize("place", range(3))
def test_a_unit_moved_beyond_the_room_of_a_column_is_refused(place: int) -> None:
    grown = verify.growth(Fraction(1))
    made = verify.layers(PublicPriorSetting(MASSES, 1.0).to_dict(), 62)
    low, _, unit = grown(126)

    def moved(extra: int) -> verify.Layers:
        return replace(made, e=[*made.e[:place], extra, *made.e[place + 1 :]])

    # The most that e^epsilon times the column's other entries allow, and a unit more.
    most = low * made.w[place] // unit
    verify.decide_layers(moved(most), grown)
    with pytest.raises(verify.Refused, match=f"not private: letter {place}"):
        verify.decide_layers(moved(most + 1), grown)


def edited(path: Path, change: Any) -> None:
    """Change the body of a file."""
    held = json.loads(path.read_text())
    change(held.get("body", held))
    path.write_text(json.dumps(held))


@pytest.mark.parametrize("name", ["program of the prior", "population", "nearest"])
def test_units_moved_beyond_the_slack_of_a_kernel_are_refused(name: str, tmp_path: Path) -> None:
    found, path, _ = saved(name, tmp_path)
    table, low = found.table, verify.exp(Fraction(1))[0]
    weights = [table.row(x) for x in range(table.inputs.inputs)]
    slack, x, y = min(
        (low * b[y] - a[y], x, y)
        for x, a in enumerate(weights)
        for z, b in enumerate(weights)
        for y in range(len(a))
        if x != z
    )

    def change(body: Any, units: int) -> None:
        row = body["units"]["weights"][x]
        other = (y + 1) % len(row)
        row[y], row[other] = str(int(row[y]) + units), str(int(row[other]) - units)

    assert slack >= 0
    edited(path, lambda body: change(body, slack // 1 + 1))
    assert verify.main([str(path)]) == 4
    done = alone(tmp_path / "empty", path)
    assert done.returncode == 4
    assert "above e^epsilon" in done.stderr


def test_a_unit_outside_the_mollifier_is_refused(tmp_path: Path) -> None:
    found, path, _ = saved("mollifier", tmp_path)
    # Letter 0 is at its upper limit, letter 1 at none: q e^(1/2) = 0.412... of 2^64.
    half, total = verify.exp(Fraction(1, 2))[0], sum(found.table)
    slack = half / 4 * total - found.table[0]
    assert 0 <= slack < 1

    def change(body: Any) -> None:
        units = [int(unit) for unit in body["units"]]
        body["units"] = [str(units[0] + 1), str(units[1]), str(units[2] - 1)]

    edited(path, change)
    assert verify.main([str(path)]) == 4


@pytest.mark.parametrize("name", NAMES)
def test_a_corrupted_multiplier_never_raises_a_bound_above_the_optimum(
    name: str, tmp_path: Path
) -> None:
    found, path, proof = saved(name, tmp_path)
    program, rng = displayed(found), np.random.default_rng(5)
    # Another solver's optimum, good to its tolerance.
    most = optimum(program) + 1e-8
    multipliers = list(found.optimality.multipliers)
    for _ in range(40):
        at = int(rng.integers(len(multipliers)))
        factor = Fraction(float(rng.exponential(2.0)))
        changed = list(multipliers)
        changed[at] = changed[at][0], changed[at][1] * factor
        assert verify.bound(program, changed) <= most

    def claim(body: Any) -> None:
        body["bound"] = str(verify.number(body["bound"]) + Fraction(1, 10**15))

    edited(proof, claim)
    assert verify.main([str(path), str(proof)]) == 4


@pytest.mark.parametrize("bits", [1, 30])
def test_too_few_bits_are_refused(bits: int, tmp_path: Path) -> None:
    _, path, _ = saved("Algorithm 1", tmp_path)
    edited(path, lambda body: body["units"].update(bits=bits))
    assert verify.main([str(path)]) == 4


def test_a_file_that_states_no_residuals_is_told_what_it_misses(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(12))
    setting = PopulationSetting(prior, 2.0, rng.dirichlet(np.ones(12), size=10))
    found = dpopt.design(setting)
    found.save(tmp_path / "x.json", proof=True)
    done = alone(tmp_path / "empty", tmp_path / "x.json", tmp_path / "x.proof.json")
    assert (done.returncode, done.stderr) == (0, "")
    program, told = displayed(found), done.stdout.partition("missed by at most ")[2]
    assert float(told.split()[0]) == pytest.approx(float(verify.decide(program).missed), rel=1e-2)
    assert verify.decide(program).missed < 1e-13


@pytest.mark.parametrize("objective", ["minimax", "leximin"])
def test_many_letters_have_a_proof_of_two_multipliers(objective: Any, tmp_path: Path) -> None:
    masses = np.random.default_rng(3).uniform(size=20_000)
    found: Any = dpopt.design(PublicPriorSetting(masses / masses.sum(), 8.0, objective=objective))
    assert found.bound.how == "float"
    found.save(tmp_path / "x.json", proof=True)
    held = json.loads((tmp_path / "x.proof.json").read_text())
    assert held["multipliers"] == [["lemma 3", "1"], ["worst", "1"]]
    least = Fraction(found.setting.public.masses.min()) / sum(
        map(Fraction, found.setting.public.masses.tolist())
    )
    # Theorem 1 with e^8 from its series.
    r = sum(Fraction(8**k, math.factorial(k)) for k in range(80))
    assert float(verify.number(held["bound"])) == pytest.approx(
        float((1 - least) / (r * least + 1 - least)), rel=1e-14
    )
    assert verify.main([str(tmp_path / "x.json"), str(tmp_path / "x.proof.json")]) == 0

"""verify.py says what it decided about, what it left alone, and no more: optimality of what."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import dpopt
from dpopt import Kernel, Majority, Plurality, RevealOrObscure, SmoothFloor, verify
from dpopt.majority.priors import SamplePrior
from tests.oracles import poisson_binomial
from tests.proofs.judging import answer, edited, read, run, saved

Setting: Any = Majority


# Coefficients of an objective


def test_coefficients_of_a_proof_do_not_count_where_the_setting_has_its_own(tmp_path: Path) -> None:
    """For c = (0, 0, 1) the best gamma is (0, 0, 1); the setting asks for another objective."""
    wrong = [0.0, 0.0, 1.0]
    path, proof = saved(Setting(5, 0.5, 1.5, coefficients=wrong), tmp_path)
    assert run(path, proof)[0] == 0
    body = json.loads(path.read_text())["body"]
    plain = Setting(5, 0.5, 1.5)
    edited(path, body=body | {"setting": read(plain)})
    edited(proof, coefficients=wrong, setting=read(plain))
    code, lines, err = run(path, proof)
    assert code == 4
    assert "it states the value" in err
    assert not any(line.startswith("optimal") for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    "prior", ["uniform:0,1", "uniform:0.1,0.3,0.6,1", "common-beta:2.0,0.5", "point:0.3,0.9,0.8"]
)
def test_coefficients_of_a_proof_are_checked(prior: str, tmp_path: Path) -> None:
    path, proof = saved(Setting(3, 0.5, 1.5, prior=prior), tmp_path)
    code, lines, _ = run(path, proof)
    assert code == 0
    assert lines[2].endswith(f" for the proof's coefficients, within 1e-09 of those of {prior}")
    assert lines[3].startswith("optimal: ")
    own = json.loads(proof.read_text())["coefficients"]
    edited(proof, coefficients=[own[0] + 1e-12, own[1]])
    assert "coefficients miss" not in run(path, proof)[2]
    for wrong in ([own[0] + 2e-9, own[1]], own[::-1]):
        edited(proof, coefficients=wrong)
        code, _, err = run(path, proof)
        assert code == 4
        assert f"the proof's coefficients miss those of {prior} by" in err


@pytest.mark.parametrize(
    "prior", ["beta:2,3", SamplePrior(np.array([[0.6] * 3, [0.7] * 3]))], ids=["beta", "samples"]
)
def test_optimality_that_is_not_decided_is_not_said(prior: Any, tmp_path: Path) -> None:
    found = dpopt.design(Setting(3, 0.5, 1.5, prior=prior))
    assert found.bound is not None
    assert found.bound.how == "float"
    with pytest.raises(dpopt.ParameterError, match="no coefficients are computed here"):
        found.save(tmp_path / "x.json", proof=True)
    found.save(tmp_path / "x.json")
    code, lines, _ = run(tmp_path / "x.json")
    assert code == 0
    assert lines[2].startswith("value: not decided, no coefficients are computed here for ")
    forged = {"format": "dpopt proof", "kind": "majority", "setting": found.setting.to_dict()}
    forged |= {"coefficients": [0.1, 0.2], "bound": "1", "multipliers": []}
    code, lines, err = answer(tmp_path, json.loads((tmp_path / "x.json").read_text()), forged)
    assert (code, len(lines)) == (4, 3)
    assert "optimality is not decided" in err


def uniform_by_inversion(k: int, points: list[Fraction]) -> list[Fraction]:
    """E[sign(sum p - K/2) Pr[L = l]] of independent p, by the inverse Laplace transform, exactly.

    With u = 1 / s the transforms of p and 1 - p on [a, b] are u ((a + u) e^(-sa) - (b + u) e^(-sb))
    and u ((1 - a - u) e^(-sa) - (1 - b - u) e^(-sb)); u^m e^(-sd) is (t - d)^(m - 1) / (m - 1)!.
    """
    total = sum(points[1::2], Fraction(0)) - sum(points[::2])
    mean = (sum(b * b for b in points[1::2]) - sum(a * a for a in points[::2])) / (2 * total)
    found = list[Fraction]()
    for ones in range(k + 1):
        below = Fraction(0)
        for ends in product(range(len(points)), repeat=k):
            t, part = Fraction(k, 2) - sum(points[i] for i in ends), [Fraction(1)]
            for voter, i in enumerate(ends) if t > 0 else ():
                a, b = (points[i], 1) if voter < ones else (1 - points[i], -1)
                sign = -1 if i % 2 else 1
                part = [sign * (a * x + b * y) for x, y in zip([*part, 0], [0, *part], strict=True)]
            terms = (c * t ** (k + m) / math.factorial(k + m) for m, c in enumerate(part))
            below += sum(terms) if t > 0 else 0
        below /= total**k
        found.append(math.comb(k, ones) * (mean**ones * (1 - mean) ** (k - ones) - 2 * below))
    return found


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("k", "ends"),
    [
        (1, "0 1"),
        (1, "0 1/5 7/10 9/10"),
        (1, "1/4 1"),
        (5, "1/5 7/10"),
        (5, "1/4 1"),
        (7, "0 3/4"),
        (5, "0 1/2"),
        (5, "1/2 1"),
        (3, "3/5 4/5 9/10 1"),
        (3, "0 1/5 3/10 2/5"),
        (5, "0 1/5 7/10 9/10"),
        (5, "1/5 3/10 7/10 1"),
        (3, "0 1"),
    ],
)
def test_the_distribution_of_uniform_voters(k: int, ends: str) -> None:
    points = [Fraction(end) for end in ends.split()]
    exact = uniform_by_inversion(k, points)
    near = verify.pmf_of_uniform(k, points)
    for ones in range(k + 1):
        assert k == 1 or abs(near[ones] - exact[ones]) <= Fraction(1, 10**12)
        # Only a_l - a_(K-l) is a coefficient; of one voter both sums are the same.
        miss = near[ones] - near[k - ones] - exact[ones] + exact[k - ones]
        assert abs(miss) <= Fraction(1, 10**12)


@pytest.mark.parametrize(
    ("k", "a", "b"), [(1, 1, 1), (3, 2, 0.5), (5, 0.25, 7), (11, 30, 31), (3, 1e-3, 200)]
)
def test_the_distribution_of_a_common_beta(k: int, a: float, b: float) -> None:
    near = verify.pmf_of_beta(k, [Fraction(a), Fraction(b)])
    with mp.workdps(30):
        for ones in range(k + 1):
            low, high = (
                mp.betainc(ones + mpf(a), k - ones + mpf(b), *ends) for ends in ((0, 0.5), (0.5, 1))
            )
            exact = math.comb(k, ones) * (high - low) / mp.beta(a, b)
            assert abs(mpf(near[ones].numerator) / near[ones].denominator - exact) < 1e-20


def test_the_distribution_at_points_and_angles() -> None:
    for p in ([0.5], [0.3, 0.9, 0.8], [0.1, 0.2, 0.9], [0.75]):
        near = verify.pmf_at_points(3, [Fraction(each) for each in p])
        every = [Fraction(each) for each in p * (3 if len(p) == 1 else 1)]
        sign = 1 if sum(every) >= Fraction(3, 2) else -1
        for exact, mass in zip(poisson_binomial(every), near, strict=True):
            assert 0 <= exact - sign * mass <= Fraction(3, 1 << verify.FIXED)
    # Angles are summed to a unit for each term.
    unit = 1 << 100
    with mp.workdps(60):
        for angle in (mpf(2), mpf("0.3"), mpf(0), mpf(-1)):
            cosine, sine = verify.turned(int(angle * unit), unit)
            assert abs(cosine - mp.cos(angle) * unit) <= 60
            assert abs(sine - mp.sin(angle) * unit) <= 60


# What was decided about, and what was not


def test_neighbours_are_told(tmp_path: Path) -> None:
    few = Kernel("absolute", 1.0, inputs=21, graph=[[3, 4]])
    code, lines, _ = run(saved(few, tmp_path)[0])
    assert code == 0
    assert lines[0].endswith(
        " decided exactly, along 2 directed edges of 21 inputs; 19 inputs have no neighbour"
    )
    assert lines[1] == (
        "about: loss absolute, epsilon 1.0, delta 0.0, graph of 1, objective mean, "
        "sense minimise, inputs 21, outputs 21, symmetry none"
    )
    code, lines, _ = run(saved(Kernel("zero-one", 1.0, inputs=3), tmp_path)[0])
    assert lines[0].endswith(", between all 3 inputs")
    code, lines, _ = run(saved(Setting(5, 0.5, 1.5, 0.01, 0.02), tmp_path)[0])
    assert lines[0].endswith(", one record changed, which all 5 voters may have seen")
    assert lines[1].startswith("about: voters 5, epsilon 0.5, allowance 1.5, voter_delta 0.01")
    # A smooth floor is bounded by others of its growth.
    _, lines, _ = run(*saved(SmoothFloor(12, 3, 0.3), tmp_path))
    assert lines[3].startswith("bounded: no other of this growth is")


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        (Setting(5, 0.5, 1.5), {"expected_error", "verdict", "certificate"}),
        (RevealOrObscure.example(), {"excess_factor", "verdict"}),
        (Plurality.example(), {"mean_regret", "spending"}),
        (Kernel.example(), {"residuals", "file.hash"}),
        (Kernel([[0.0, 1.0]] * 2, 1.0, invariant=[0.5, 0.5]), {"gap"}),
    ],
    ids=["majority", "roo", "plurality", "kernel", "residuals"],
)
def test_what_was_not_looked_at_is_named(setting: Any, names: set[str], tmp_path: Path) -> None:
    path, proof = saved(setting, tmp_path)
    code, lines, _ = run(path, proof)
    head, _, told = lines[-1].partition(": ")
    assert (code, head) == (0, "not looked at")
    listed = told.split(", ")
    assert names <= set(listed)
    assert len(set(listed)) == len(listed)
    # Whatever stands there, no line changes.
    record, shown = json.loads(path.read_text()), json.loads(proof.read_text())
    for name in listed:
        container, key = place_of(name, record, shown)
        if not name.startswith("setting."):
            container[key] = "something else"
    path.write_text(json.dumps(record))
    proof.write_text(json.dumps(shown))
    assert run(path, proof)[1] == lines
    # All else is looked at: without it the file is no such file, or says less.
    parts = {"": record["body"], "setting.": record["body"]["setting"], "proof.": shown}
    for before, container in parts.items():
        for key in [key for key in container if before + key not in listed]:
            kept = container.pop(key)
            path.write_text(json.dumps(record))
            proof.write_text(json.dumps(shown))
            assert run(path, proof)[1] != lines, key
            container[key] = kept


def place_of(name: str, record: Any, shown: Any) -> tuple[Any, str]:
    """The object of a name, and its key there."""
    *parts, key = name.split(".")
    found = record["body"]
    if parts and parts[0] in ("file", "proof"):
        found = {"file": record, "proof": shown}[parts.pop(0)]
    for part in parts:
        found = found[part]
    return found, key

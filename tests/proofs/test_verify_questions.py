"""Questions of smoothed privacy in verify.py, against sums over every database and published ones.

They promise no privacy: what is checked is that the value is so, and that nothing is larger.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import verify
from dpopt.smoothed import Expected, KernelMechanism, Profile, SamplingAverage, Smoothed

KERNEL = KernelMechanism(2, 2, np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.0, 0.25, 0.75]]))
AVERAGE = SamplingAverage(4, 2, [0, 1, 2])


def saved(question: Any, folder: Path) -> Path:
    dpopt.design(question).save(folder / "x.json")
    return folder / "x.json"


def value(path: Path) -> float:
    return float(list(verify.check(str(path)))[-2].partition(": ")[2])


def delta(database: tuple[int, ...], drawn: int, epsilon: float, told: Callable[..., Any]) -> float:
    """Return delta(x) from all samples of all databases that differ in one record, one by one."""
    categories = (0, 1, 2) if told is sum else (0, 1)

    def law(x: tuple[int, ...]) -> dict[Any, Fraction]:
        found: dict[Any, Fraction] = {}
        for places in combinations(range(len(x)), drawn):
            y = told([x[place] for place in places])
            found[y] = found.get(y, Fraction(0)) + Fraction(1, math.comb(len(x), drawn))
        return found

    own, worst = law(database), 0.0
    for at, new in product(range(len(database)), categories):
        other = law((*database[:at], new, *database[at + 1 :]))
        for p, q in ((own, other), (other, own)):
            over = math.fsum(
                max(0.0, float(p.get(y, 0)) - math.exp(epsilon) * q.get(y, 0)) for y in p
            )
            worst = max(worst, over)
    return worst


def expected(laws: list[list[float]], counts: tuple[int, ...], of: Callable[..., float]) -> float:
    """Return the mean of delta(x) over all databases of records from their laws."""
    each = [law for law, count in zip(laws, counts, strict=True) for _ in range(count)]
    categories = range(len(laws[0]))
    return math.fsum(
        math.prod(law[letter] for law, letter in zip(each, x, strict=True)) * of(x)
        for x in product(categories, repeat=len(each))
    )


def histogram(letters: list[int]) -> tuple[int, ...]:
    return tuple(sorted(letters))


def test_the_largest_expectation_is_that_of_every_database(tmp_path: Path) -> None:
    question = Smoothed.example()
    laws = [[0.4, 0.6], [0.7, 0.3]]
    every = [expected(laws, (k, 5 - k), lambda x: delta(x, 3, 0.5, histogram)) for k in range(6)]
    path = saved(question, tmp_path)
    assert value(path) == pytest.approx(max(every), rel=1e-12)
    (tmp_path / "verify.py").write_bytes(Path(verify.__file__).read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", "-S", "verify.py", "x.json"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("answered: smoothed, the largest of 6 compositions\n")


def test_one_composition_and_one_database(tmp_path: Path) -> None:
    laws = [[0.4, 0.6], [0.7, 0.3]]
    mean = expected(laws, (2, 3), lambda x: delta(x, 3, 0.5, histogram))
    assert value(saved(Expected.example(), tmp_path)) == pytest.approx(mean, rel=1e-12)
    one = delta((0, 0, 0, 1, 1), 3, 0.5, histogram)
    assert value(saved(Profile.example(), tmp_path)) == pytest.approx(one, rel=1e-12)


def test_other_mechanisms(tmp_path: Path) -> None:
    laws = [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]
    mean = expected(laws, (1, 3), lambda x: delta(x, 2, 0.25, sum))
    asked: dict[str, Any] = {"mechanism": AVERAGE, "epsilon": 0.25, "distributions": laws}
    path = saved(Expected(**asked, composition=(1, 3)), tmp_path)
    assert value(path) == pytest.approx(mean, rel=1e-12)
    # By hand at epsilon = 0: half the distance to the farther of the neighbours' rows.
    path = saved(Profile(mechanism=KERNEL, epsilon=0.0, counts=(1, 1)), tmp_path)
    assert value(path) == pytest.approx(0.5, rel=1e-12)
    # With replacement, of two records two draws: laws (1, 0, 0), (1/4, 1/2, 1/4) and (0, 0, 1).
    path = saved(Profile(counts=(2, 0), drawn=2, epsilon=0.0, replacement=True), tmp_path)
    assert value(path) == pytest.approx(0.75, rel=1e-12)


@pytest.mark.parametrize(
    ("question", "published"),
    [
        (Smoothed(records=36, drawn=34, epsilon=0.0, distributions=[0.4, 0.6]), 0.478070349009),
        (Profile(counts=(100, 100), drawn=160, epsilon=1.0), 4.993893946215e-05),
        (Profile(counts=(500, 500), drawn=998, epsilon=1.0), 2.497497497497e-01),
    ],
)
def test_known_values(question: Any, published: float, tmp_path: Path) -> None:
    assert value(saved(question, tmp_path)) == pytest.approx(published, rel=1e-11)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda body: body.update(value=body["value"] * (1 + 1e-6)), 4),
        (lambda body: body.update(bound=body["bound"] * (1 - 1e-6)), 4),
        (lambda body: body["units"].update(log_delta=body["units"]["log_delta"] + 1e-6), 4),
        (lambda body: body["units"].update(log_bound=None), 4),
        (lambda body: body["units"].update(argmax=[1, 4]), 4),
        (lambda body: body["units"].update(argmax=[1, 5]), 2),
        (lambda body: body["setting"].update(epsilon=0.05), 4),
        (lambda body: body["setting"].update(composition=[0, 5], epsilon=0.05), 2),
        (lambda body: body["setting"].update(lost_rate=0.2), 2),
        (lambda body: body["setting"].update(records=10**9), 2),
        (lambda body: body["setting"].update(distributions=[[0.4, 0.7], [0.7, 0.3]]), 2),
        (lambda body: body["setting"].update(mechanism={"mechanism": "noisy", "records": 5}), 2),
    ],
)
def test_what_is_not_so(change: Any, code: int, tmp_path: Path) -> None:
    path = saved(Smoothed.example(), tmp_path)
    record = json.loads(path.read_text())
    change(record["body"])
    path.write_text(json.dumps(record))
    assert verify.main([str(path)]) == code


def test_a_composition_that_is_not_the_largest(tmp_path: Path) -> None:
    """Its value, bound and logarithms are all of itself: only the others tell."""
    path = saved(Smoothed.example(), tmp_path)
    record = json.loads(path.read_text())
    body, own = record["body"], dpopt.design(Expected.example())
    body["value"] = body["bound"] = own.value
    log = own.log_delta
    body["units"].update(argmax=[2, 3], log_delta=log, log_bound=body["units"]["log_bound"])
    path.write_text(json.dumps(record))
    with pytest.raises(verify.Refused):
        list(verify.check(str(path)))


def test_a_question_has_no_proof(tmp_path: Path) -> None:
    path = saved(Profile.example(), tmp_path)
    with pytest.raises(verify.Malformed, match="has no proof"):
        list(verify.check(str(path), str(path)))
    with pytest.raises(dpopt.ParameterError, match="there is no proof"):
        dpopt.design(Profile.example()).save(tmp_path / "y.json", proof=True)
    assert not (tmp_path / "y.json").exists()


def test_the_questions_that_are_told_from_designs() -> None:
    assert set(verify.ASKED) == set(verify.QUESTIONS)

"""Designs of every kind: the checker accepts their proofs, and no multiplier shows more."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import verify
from tests.proofs import test_verify_kernels as kernels
from tests.proofs import test_verify_majority_objectives as objectives
from tests.proofs import test_verify_plurals as plurals
from tests.proofs import test_verify_priors as priors
from tests.proofs import test_verify_samplers as samplers
from tests.proofs.judging import alone, displayed, edited, run

# A setting, and the solver that is asked instead of its closed form.
GIVEN: dict[str, list[tuple[Any, str | None]]] = {
    "kernels": [(setting, None) for setting in kernels.SETTINGS.values()],
    "samplers": [(setting, None) for setting in samplers.EXAMPLES],
    "priors": list(priors.CASES.values()),
    "ballots": [(dpopt.Plurality(*given), None) for given in plurals.PLAIN],
    "voters": [(dpopt.Multiclass(*given), None) for given in plurals.PRIVATE],
    "objectives": [(setting, None) for setting in objectives.SETTINGS.values()],
}
# The first of each comes first.
CASES = sorted((i, name) for name, cases in GIVEN.items() for i in range(len(cases)))


@pytest.mark.every_case
@pytest.mark.slow_after(24)
@pytest.mark.parametrize(("place", "name"), CASES)
def test_a_proof_is_accepted_and_no_other_multipliers_show_more(
    place: int, name: str, tmp_path: Path
) -> None:
    setting, backend = GIVEN[name][place]
    found = dpopt.design(setting, backend=backend)
    path, proof = tmp_path / "x.json", tmp_path / "x.proof.json"
    found.save(path, proof=True)
    code, lines, err = run(path, proof)
    assert (code, err) == (0, "")
    # A smooth floor is compared with tables of its own growth alone, regrets with the least errors
    # that the proof states.
    regrets = getattr(setting, "objective", "") == "least-regret"
    what = "bounded" if regrets or isinstance(setting, dpopt.SmoothFloor) else "optimal"
    told = [line.partition(":")[0] for line in lines if not line.startswith("rows that")]
    assert told == ["private", "about", "value", what, "not looked at"]
    assert found.bound is not None
    assert found.bound.how == "proved"
    # A worst case leaves 1e-9 to choose among optima.
    assert float(lines[-2].rpartition(" ")[2]) <= (2e-9 if name == "objectives" else 1e-12)
    if place == 0:
        ended = alone(tmp_path / "alone", path, proof)
        assert (ended.returncode, ended.stderr, ended.stdout.splitlines()) == (0, "", lines)
    record = json.loads(proof.read_text())
    program = displayed(found, record)
    assert found.optimality is not None
    known = list(found.optimality.multipliers)
    sign = -1 if program.maximise else 1
    most = max(sign * program.value, sign * verify.number(record["bound"])) + Fraction(1, 10**9)
    rng = np.random.default_rng(place)
    for at in rng.permutation(len(known))[:12].tolist():
        row, y = known[at]
        for wrong in (0, y / 3, 2 * y, abs(y) + 1, y * Fraction(float(rng.exponential(2.0)))):
            changed = [*known[:at], (row, wrong), *known[at + 1 :]]
            assert sign * verify.bound(program, changed) <= most
    shares = [Fraction(float(share)) for share in rng.uniform(0, 2, len(known))]
    for each in ([Fraction(0)] * len(known), [Fraction(10**9)] * len(known), shares):
        mixed = [(row, y * share) for (row, y), share in zip(known, each, strict=True)]
        assert sign * verify.bound(program, mixed) <= most
    claimed = str(verify.number(record["bound"]) + sign * Fraction(1, 10**15))
    for changes, exit_code in (
        ({"bound": claimed}, 4),
        ({"multipliers": [*record["multipliers"], ["nothing", 0, "1"]]}, 2),
    ):
        edited(proof, **(record | changes))
        assert run(path, proof)[0] == exit_code

"""The majority on the command line: the default belief, and several between which to hedge."""

from __future__ import annotations

import json

import pytest

from dpopt import ParameterError
from dpopt._kinds import arguments
from dpopt.majority import MajoritySetting
from tests.cli.running import Capture, run

ELEVEN = ("majority", "--mechanisms", "11", "--epsilon", "0.1", "--allowance", "3")
TWO = "uniform:0,1;common-uniform:0.8,1"


def test_the_default_belief_is_one_p_for_all(capfd: Capture) -> None:
    code, out, err = run(ELEVEN, capfd)
    assert (code, err) == (0, "")
    # The program written out in tests.majority.test_regret: 0.0256.
    assert "expected_error     0.0256204183" in out
    assert json.loads(run([*ELEVEN, "--json"], capfd)[1])["prior"] == "common-uniform:0,1"


def test_each_prior_of_a_least_regret_has_its_line(capfd: Capture) -> None:
    code, out, err = run([*ELEVEN, "--objective", "least-regret"], capfd)
    assert (code, err) == (0, "")
    assert "value              -0.03657069" in out
    told = [line for line in out.splitlines() if line.startswith("under ")]
    assert [line.split()[1] for line in told] == [
        "uniform:0,1",
        "common-uniform:0,1",
        "common-uniform:0.8,1",
    ]
    assert all("best 0.0" in line and "regret 0.0" in line for line in told)


def test_priors_are_read_with_semicolons_between_them(capfd: Capture) -> None:
    line = [*ELEVEN, "--objective", "least-regret", "--priors", TWO, "--json"]
    code, out, _ = run(line, capfd)
    found = json.loads(out)
    assert code == 0
    assert found["setting"]["priors"] == TWO.split(";")
    assert [known["prior"] for known in found["regrets"]] == TWO.split(";")
    assert found["value"] == -max(known["regret"] for known in found["regrets"])


@pytest.mark.parametrize(
    "text", ["uniform:0,1", ";", "uniform:0,1;gauss:1", "uniform:0,1,beta:2,2"]
)
def test_other_lists_are_refused(text: str, capfd: Capture) -> None:
    code, out, err = run([*ELEVEN, "--objective", "least-regret", "--priors", text], capfd)
    assert (code, out) == (2, "")
    assert "it must" in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("priors", [None, TWO, ("point:0.5", "point:0.6"), "beta:2,2;point:0.1"])
def test_what_is_typed_is_written_back(priors: str | None) -> None:
    for objective in ("least-regret", "expected-error"):
        setting = MajoritySetting(5, 0.5, 1.5, objective=objective, priors=priors)  # type: ignore[arg-type]
        plain = setting.to_dict()
        assert MajoritySetting.from_dict(plain) == setting
        words = arguments({"priors": plain["priors"]})
        given = [] if plain["priors"] is None else ["--priors", ";".join(plain["priors"])]
        assert words == given


def test_a_single_belief_is_no_list() -> None:
    with pytest.raises(ParameterError, match="priors is 'uniform:0,1'"):
        MajoritySetting(5, 0.5, 1.5, priors="uniform:0,1")  # type: ignore[arg-type]

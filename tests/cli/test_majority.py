"""The majority on the command line: the default belief, and several between which to hedge."""

from __future__ import annotations

import json

import pytest

import dpopt
from dpopt import Majority
from dpopt._kinds import arguments
from tests.cli.running import Capture, run

ELEVEN = ("majority", "--voters", "11", "--epsilon", "0.1", "--allowance", "3")
TWO = "uniform:0,1;common-uniform:0.8,1"


def test_priors_are_read_with_semicolons_between_them(capfd: Capture) -> None:
    line = [*ELEVEN, "--objective", "least-regret", "--priors", TWO, "--json"]
    code, out, _ = run(line, capfd)
    found = json.loads(out)
    assert code == 0
    assert found["setting"]["priors"] == TWO.split(";")
    design = dpopt.design(dpopt.Majority(11, 0.1, 3, objective="least-regret", priors=TWO))
    assert [known.prior for known in design.regrets] == TWO.split(";")
    assert found["value"] == design.value == -max(known.regret for known in design.regrets)


@pytest.mark.parametrize("priors", [None, TWO, ("point:0.5", "point:0.6"), "beta:2,2;point:0.1"])
def test_what_is_typed_is_written_back(priors: str | None) -> None:
    for objective in ("least-regret", "mean"):
        setting = Majority(5, 0.5, 1.5, objective=objective, priors=priors)  # type: ignore[arg-type]
        plain = setting.to_dict()
        assert Majority.from_dict(plain) == setting
        words = arguments({"priors": plain["priors"]})
        given = [] if plain["priors"] is None else ["--priors", ";".join(plain["priors"])]
        assert words == given

"""The command kernel: designs, saved kernels, releases."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dpopt
from dpopt import ParameterError, public_prior
from tests.cli.running import Capture, run

PRIOR = "0.05,0.1,0.15,0.2,0.5"


def test_reference_values(capsys: Capture) -> None:
    code, out, _ = run(["kernel", "--prior", PRIOR, "--epsilon", "1", "--json"], capsys)
    found = json.loads(out)
    assert code == 0
    assert found["letters"] == 5
    assert found["gamma_tv"] == pytest.approx(0.874839002002, abs=1e-11)
    known = [0.125160997998, 0.231151335839, 0.319835608357, 0.391342199099, 0.607292323365]
    np.testing.assert_allclose(found["diagonal"], known, atol=1e-11)
    np.testing.assert_allclose(np.sum(found["kernel"], axis=1), 1.0, atol=1e-12)
    assert found["worst_ratio"] <= math.e
    assert found["worst_ratio"] == pytest.approx(math.e, rel=1e-9)
    assert "seconds" in found


def test_leximin_and_text(capsys: Capture) -> None:
    words = ["kernel", "--prior", PRIOR, "--epsilon", "1", "--objective", "leximin"]
    code, out, _ = run(words, capsys)
    assert code == 0
    assert "0.404609675" in out
    assert "1-LDP" in out


def test_population_from_files(tmp_path: Path, capsys: Capture) -> None:
    prior, users = tmp_path / "q.txt", tmp_path / "users.txt"
    prior.write_text("0.2 0.3 0.5\n")
    users.write_text("1 0 0\n0.5 0.5 0\n0.1,0.1,0.8\n")
    path = tmp_path / "kernel.json"
    words = ["kernel", "--prior", str(prior), "--epsilon", "2", "--objective", "population"]
    code, out, _ = run([*words, "--users", str(users), "--json", "--save", str(path)], capsys)
    found = json.loads(out)
    assert code == 0
    assert found["worst_tv"] == pytest.approx(found["gamma_tv"], abs=1e-7)
    assert run(["certify", str(path)], capsys)[0] == 0
    mine = tmp_path / "mine.txt"
    mine.write_text("0.25 1/4 0.5")
    code, out, _ = run(["kernel", "release", str(path), "--distribution", str(mine)], capsys)
    assert (code, out.strip() in ("0", "1", "2")) == (0, True)


@pytest.mark.parametrize("objective", ["minimax", "leximin"])
def test_saved_kernels_are_made_and_certified_again(
    objective: str, tmp_path: Path, capsys: Capture
) -> None:
    path, mine = tmp_path / "kernel.json", tmp_path / "mine.txt"
    words = ["kernel", "--prior", "0.7,0.1,0.2", "--epsilon", "3", "--objective", objective]
    assert run([*words, "--save", str(path)], capsys)[0] == 0
    again = dpopt.load(path)
    assert isinstance(again, public_prior.SamplingKernel)
    make = public_prior.minimax_kernel if objective == "minimax" else public_prior.leximin_kernel
    assert again.weights() == make([0.7, 0.1, 0.2], 3.0).weights()
    assert run(["certify", str(path)], capsys)[0] == 0
    mine.write_text("0\n3\n0\n")
    drawn: Counter[str] = Counter()
    for _ in range(60):
        code, out, _ = run(["kernel", "release", str(path), "--distribution", str(mine)], capsys)
        assert code == 0
        drawn[out.strip()] += 1
    # K_11 is 0.69: fewer than 15 of 60 have a chance below 1e-13.
    assert drawn["1"] > 15

    plain = json.loads(path.read_text())
    plain["body"]["prior"][0] = (0.6).hex()
    path.write_text(json.dumps(plain))
    with pytest.raises(ParameterError):
        dpopt.load(path)
    for name, value in (("kernel", "x"), ("prior", None), ("letters", 5), ("guarantee", {})):
        broken = json.loads(json.dumps(plain))
        broken["body"][name] = value
        path.write_text(json.dumps(broken))
        with pytest.raises(ParameterError):
            dpopt.load(path)


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (["--epsilon", "1"], "prior is missing"),
        (["--prior", PRIOR], "epsilon is missing"),
        (["--prior", "0.5,0.6", "--epsilon", "1"], "prior"),
        (["--prior", "0,1", "--epsilon", "1"], "prior"),
        (["--prior", "a,b", "--epsilon", "1"], "path is"),
        (["--prior", PRIOR, "--epsilon", "0"], "epsilon is 0"),
        (["--prior", PRIOR, "--epsilon", "nan"], "epsilon is nan"),
        (["--prior", PRIOR, "--epsilon", "1", "--objective", "x"], "objective is 'x'"),
        (["--prior", PRIOR, "--epsilon", "1", "--objective", "population"], "users is for"),
        (["--prior", PRIOR, "--epsilon", "1", "--users", "none.txt"], "users is for"),
        (["release", "none.json", "--distribution", "none.txt"], "none.json"),
    ],
)
def test_bad_input(words: list[str], about: str, capsys: Capture) -> None:
    code, out, err = run(["kernel", *words], capsys)
    assert (code, out) == (2, "")
    assert about in err
    assert err.count("\n") == 1


def test_distributions_of_another_kind(tmp_path: Path, capsys: Capture) -> None:
    path, mine = tmp_path / "kernel.json", tmp_path / "mine.txt"
    words = ["kernel", "--prior", "0.3,0.7", "--epsilon", "1", "--save", str(path)]
    assert run(words, capsys)[0] == 0
    for text in ("", "a b", "1 2 3", "1/0 1", "-1 2", "0 0"):
        mine.write_text(text)
        code, out, err = run(["kernel", "release", str(path), "--distribution", str(mine)], capsys)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1


@pytest.mark.parametrize("objective", ["minimax", "leximin", "population"])
def test_a_mass_below_all_normal_floats(objective: str, tmp_path: Path, capsys: Capture) -> None:
    users = tmp_path / "users.txt"
    users.write_text("1 0\n0.5 0.5\n")
    words = ["kernel", "--prior", "1e-310,1", "--epsilon", "1", "--objective", objective]
    words += ["--users", str(users)] if objective == "population" else []
    code, out, err = run([*words, "--json"], capsys)
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["gamma_tv"] == 1.0
    assert 1.0 <= found["worst_ratio"] <= math.e * (1 + 1e-12)

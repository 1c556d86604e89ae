"""Designs whose constraints are too many to be priced: marked, and refused."""

import json
from pathlib import Path

import pytest

from dpopt import NotPrivateError, ParameterError, load, majority
from dpopt.cli import main
from dpopt.majority import (
    MajorityDesign,
    MajoritySetting,
    reduced_size,
    voters,
)


@pytest.fixture
def unverified(monkeypatch: pytest.MonkeyPatch) -> MajorityDesign:
    """A design of 11 voters, as if their 7,008 multisets were too many."""
    monkeypatch.setattr(voters, "_LARGEST_SHIFTED", 9)
    monkeypatch.setattr(voters, "_PARTIAL_SIZE", 2000)
    return majority.design(11, 0.1, 3, mechanism_delta=1e-5, delta=3e-5)


def test_it_is_marked(unverified: MajorityDesign) -> None:
    assert unverified.verdict == "unverified"
    assert not unverified.private
    assert unverified.certificate is None
    assert unverified.worst_violation is None
    assert unverified.priced is not None
    assert 0 < unverified.priced < reduced_size(unverified.setting) == 7008


def test_it_refuses_to_release_and_to_be_saved(unverified: MajorityDesign, tmp_path: Path) -> None:
    sentence = rf"gamma is unverified: only {unverified.priced:,} of 7,008 constraints were priced"
    with pytest.raises(NotPrivateError, match=sentence):
        unverified.release([1] * 11)
    with pytest.raises(NotPrivateError, match=sentence):
        unverified.require_private()
    path = tmp_path / "gamma.json"
    with pytest.raises(NotPrivateError, match=sentence):
        unverified.save(path)
    assert not path.exists()
    unverified.save(path, even_if_not_private=True)
    assert json.loads(path.read_text())["kind"] == "audit"
    with pytest.raises(NotPrivateError, match="not proved private"):
        load(path)


def test_its_plain_values_say_so(unverified: MajorityDesign) -> None:
    plain = json.loads(json.dumps(unverified.to_dict()))
    assert plain["verdict"] == "unverified"
    assert plain["private"] is False
    assert plain["certificate"] is None
    assert plain["worst_violation"] is None


def test_its_bound_is_that_of_the_rows_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of fewer rows has an optimum at least as large."""
    whole = majority.design(11, 0.5, 3, mechanism_delta=0.02, delta=0.02)
    monkeypatch.setattr(voters, "_LARGEST_SHIFTED", 9)
    monkeypatch.setattr(voters, "_PARTIAL_SIZE", 2000)
    part = majority.design(11, 0.5, 3, mechanism_delta=0.02, delta=0.02)
    assert part.verdict == "unverified"
    assert whole.value is not None
    assert part.bound is not None
    assert part.bound >= whole.value - 1e-12


def test_what_cannot_be_verified_is_not_assessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voters, "_LARGEST_SHIFTED", 9)
    setting = MajoritySetting(11, 0.1, 3, 1e-5, 3e-5)
    with pytest.raises(ParameterError, match="mechanisms is 11"):
        majority.assess(setting, majority.subsampling(11, 3))
    with pytest.raises(ParameterError, match="mechanisms is 11"):
        majority.design_for(setting, objective="worst-case")
    with pytest.raises(ParameterError, match="mechanisms is 11"):
        majority.CornerOracle(setting)


def test_the_command_exits_4_and_saves_its_audit_only_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(voters, "_LARGEST_SHIFTED", 9)
    monkeypatch.setattr(voters, "_PARTIAL_SIZE", 2000)
    path = tmp_path / "gamma.json"
    words = ["majority", "--mechanisms", "11", "--epsilon", "0.1", "--allowance", "3"]
    words += ["--mechanism-delta", "1e-5", "--delta", "3e-5", "--save", str(path)]
    for more, saved in (([], False), (["--even-if-not-private"], True)):
        with pytest.raises(SystemExit) as ended:
            main([*words, *more])
        printed = capfd.readouterr()
        assert (ended.value.code, path.exists()) == (4, saved)
        assert "unverified" in printed.out
        assert printed.err.startswith("gamma is unverified")
        assert ("Nothing was saved" in printed.err) is not saved

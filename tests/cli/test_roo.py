"""The commands roo and sample, and saved min-count samplers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import dpopt
from dpopt import NotPrivateError, ParameterError, roo
from dpopt.privacy.saved import seal
from tests.cli.running import Capture, run


def test_roo_prints_json(capsys: Capture) -> None:
    sized = ["--records", "1000", "--letters", "10", "--epsilon", "0.1"]
    code, out, _ = run(["roo", *sized, "--json"], capsys)
    found = json.loads(out)
    assert code == 0
    assert found["rule"] == "exact"
    assert found["private"] is True
    assert len(found["q"]) == 17
    assert found["q"][16] == pytest.approx(0.00258300569767, abs=1e-13)
    assert found["worst_ratio"] <= 2.718281828459045**0.1 * (1 + 1e-15)
    assert sum(found["witness"]["counts"]) == sum(found["witness"]["neighbour"]) == 1000


@pytest.mark.parametrize(
    ("rule", "n", "k", "epsilon", "factor"),
    [("conference", 20, 3, 0.1, 1.00668167682), ("journal", 3, 2, 0.5, 1.10772159688)],
)
def test_broken_published_rules_are_shown(
    rule: str, n: int, k: int, epsilon: float, factor: float, capsys: Capture
) -> None:
    sized = ["--records", str(n), "--letters", str(k), "--epsilon", str(epsilon)]
    code, out, err = run(["roo", *sized, "--rule", rule, "--json"], capsys)
    found = json.loads(out)
    assert code == 4
    assert f"rule {rule!r} is not {epsilon:g}-DP" in err
    assert found["private"] is False
    assert found["certificate"] is None
    assert found["excess_factor"] == pytest.approx(factor, abs=1e-11)
    code, out, _ = run(["roo", *sized, "--rule", rule], capsys)
    assert (code, "NOT PRIVATE" in out) == (4, True)
    code, out, _ = run(["roo", *sized, "--json"], capsys)
    assert json.loads(out)["private"] is True


def column(path: Path, letters: str) -> Path:
    path.write_text("id,city\n" + "".join(f"{i},{c}\n" for i, c in enumerate(letters)))
    return path


@pytest.mark.parametrize("rule", ["exact", "roo", "smooth-floor"])
def test_sample_releases_a_letter_of_the_alphabet(
    rule: str, tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip("polars", reason="polars is not installed (extra data)")
    file = column(tmp_path / "visits.csv", "A" * 30 + "B" * 30)
    words = ["sample", str(file), "--column", "city", "--epsilon", "2", "--rule", rule]
    drawn: Counter[str] = Counter()
    for _ in range(40):
        code, out, _ = run([*words, "--alphabet", "A,B"], capsys)
        assert code == 0
        drawn[out] += 1
    assert set(drawn) == {"A\n", "B\n"}
    listed = tmp_path / "letters.txt"
    listed.write_text("B\nA\n")
    code, out, _ = run([*words, "--alphabet", str(listed)], capsys)
    assert (code, out.strip() in "AB") == (0, True)


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"--alphabet": "A,C"}, "alphabet"),
        ({"--alphabet": "A"}, "alphabet is 'A'"),
        ({"--alphabet": "A,A"}, "alphabet is 'A,A'"),
        ({"--column": "town"}, "column"),
        ({"--epsilon": "0"}, "epsilon is 0"),
        ({"--epsilon": "nan"}, "epsilon is nan"),
        ({"--rule": "journal"}, "rule is 'journal'"),
        ({"file": "missing.csv"}, "missing.csv"),
    ],
)
def test_bad_input_of_sample(
    change: dict[str, str], about: str, tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip("polars", reason="polars is not installed (extra data)")
    file = column(tmp_path / "visits.csv", "AAAABBB")
    options = {"--column": "city", "--alphabet": "A,B", "--epsilon": "1", "--rule": "exact"}
    name = change.pop("file", None) if "file" in change else None
    words = ["sample", str(tmp_path / name) if name else str(file)]
    for option, value in {**options, **change}.items():
        words += [option, value]
    code, out, err = run(words, capsys)
    assert (code, out) == (2, "")
    assert about in err
    assert err.count("\n") == 1


def test_bad_input_of_roo(capsys: Capture) -> None:
    for words, about in (
        (["--records", "0", "--letters", "3", "--epsilon", "1"], "records is 0"),
        (["--records", "9", "--letters", "1", "--epsilon", "1"], "letters is 1"),
        (["--records", "9", "--letters", "3", "--epsilon", "inf"], "epsilon is inf"),
        (["--records", "9", "--letters", "3", "--epsilon", "1", "--rule", "x"], "rule is 'x'"),
    ):
        code, out, err = run(["roo", *words], capsys)
        assert (code, out) == (2, "")
        assert about in err


def test_a_saved_rule_is_audited_again(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rule.json"
    sized = ["--records", "20", "--letters", "3", "--epsilon", "0.1"]
    assert run(["roo", *sized, "--save", str(path)], capsys)[0] == 0
    again = dpopt.load(path)
    assert isinstance(again, roo.MinCountSampler)
    assert again.weights == roo.min_count(20, 3, 0.1).weights
    code, out, _ = run(["certify", str(path)], capsys)
    assert (code, "0.1, 0)-DP" in out) == (0, True)
    code, out, _ = run(["release", str(path), "--input", "10,10,0"], capsys)
    assert (code, out.strip() in ("0", "1", "2")) == (0, True)
    assert run(["release", str(path), "--input", "10,10,1"], capsys)[0] == 2

    plain = json.loads(path.read_text())
    plain["body"]["weights"][0] = "0"
    path.write_text(json.dumps(plain))
    with pytest.raises(NotPrivateError):
        dpopt.load(path)
    plain["body"]["weights"][0] = str(2**62)
    path.write_text(json.dumps(plain))
    with pytest.raises((NotPrivateError, ParameterError)):
        dpopt.load(path)
    for weights in ([], ["x"], None, ["-1"], [str(2**63)], ["0"] * 100):
        plain["body"]["weights"] = weights
        path.write_text(json.dumps(plain))
        with pytest.raises(ParameterError):
            dpopt.load(path)


def test_a_broken_rule_cannot_be_loaded(tmp_path: Path) -> None:
    """As a file of its own kind, written by hand: `save` refuses it."""
    path = tmp_path / "rule.json"
    broken = roo.min_count(20, 3, 0.1, "conference")
    seal("min-count", broken.to_dict(), path)
    with pytest.raises(NotPrivateError, match=r"1\.00668 e\^epsilon"):
        dpopt.load(path)


def test_a_broken_rule_is_saved_as_its_audit_only(tmp_path: Path) -> None:
    path = tmp_path / "rule.json"
    broken = roo.min_count(20, 3, 0.1, "conference")
    with pytest.raises(NotPrivateError, match=r"1\.00668 e\^epsilon"):
        broken.save(path)
    assert not path.exists()
    broken.save(path, even_if_not_private=True)
    found = json.loads(path.read_text())
    assert (found["kind"], found["body"]["of"]) == ("audit", "min-count")
    assert found["body"]["witness"] == broken.audit.witness.to_dict()
    with pytest.raises(NotPrivateError, match="not proved private"):
        dpopt.load(path)
    # What is private is saved as itself, whatever else was allowed.
    roo.min_count(20, 3, 0.1).save(path, even_if_not_private=True)
    assert isinstance(dpopt.load(path), roo.MinCountSampler)
    with pytest.raises(ParameterError, match="even_if_not_private is 1"):
        broken.save(path, even_if_not_private=1)  # type: ignore[arg-type]


def test_a_broken_rule_exits_4_and_writes_nothing(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rule.json"
    words = ["roo", "--records", "3", "--letters", "2", "--epsilon", "0.5", "--rule", "journal"]
    code, out, err = run([*words, "--save", str(path)], capsys)
    assert (code, "NOT PRIVATE" in out, list(tmp_path.iterdir())) == (4, True, [])
    assert "Nothing was saved; --even-if-not-private" in err
    code, _, err = run([*words, "--save", str(path), "--even-if-not-private"], capsys)
    assert (code, "Nothing was saved" in err, path.exists()) == (4, False, True)
    for verb in (["certify", str(path)], ["release", str(path), "--input", "2,1"]):
        code, out, err = run(verb, capsys)
        assert (code, out, err.count("\n")) == (4, "", 1)
        assert "releases nothing" in err

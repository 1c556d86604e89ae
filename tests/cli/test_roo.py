"""The commands roo and sample, and saved min-count samplers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import dpopt
from dpopt import NotPrivateError, ParameterError, roo
from dpopt.cli import main

Capture = pytest.CaptureFixture[str]


def run(arguments: list[str], capsys: Capture) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    printed = capsys.readouterr()
    return int(caught.value.code or 0), printed.out, printed.err


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
    code, out, _ = run(["roo", *sized, "--rule", rule, "--json"], capsys)
    found = json.loads(out)
    assert code == 0
    assert found["private"] is False
    assert found["certificate"] is None
    assert found["excess_factor"] == pytest.approx(factor, abs=1e-11)
    code, out, _ = run(["roo", *sized, "--rule", rule], capsys)
    assert "NOT PRIVATE" in out
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
    path = tmp_path / "rule.json"
    roo.min_count(20, 3, 0.1, "conference").save(path)
    with pytest.raises(NotPrivateError, match=r"1\.00668 e\^epsilon"):
        dpopt.load(path)

"""The doors to a proof: save(proof=, verifier=), --proof, and ``dpopt verify``."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import Kernel, shape, verify
from dpopt.proofs import saved
from tests.cli.running import Capture, run
from tests.proofs.judging import edited


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def kernel() -> Any:
    return dpopt.design(Kernel.example())


def test_the_folder_is_checked_by_python_alone(kernel: Any, tmp_path: Path) -> None:
    kernel.save(tmp_path / "k.json", proof=True, verifier=True)
    assert names(tmp_path) == {"k.json", "k.proof.json", "verify.py"}
    command = [sys.executable, "-I", "-S", "verify.py", "k.json", "k.proof.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        *("private", "about", "value", "optimal", "not looked at"),
    ]
    kernel.save(tmp_path / "other.json", verifier=True)
    assert names(tmp_path) == {"k.json", "k.proof.json", "verify.py", "other.json"}


def test_another_verifier_is_left_alone(kernel: Any, tmp_path: Path) -> None:
    (tmp_path / "verify.py").write_text("print('mine')\n")
    with pytest.raises(dpopt.ParameterError, match="another file of that name is there"):
        kernel.save(tmp_path / "k.json", proof=True, verifier=True)
    assert names(tmp_path) == {"verify.py"}
    assert (tmp_path / "verify.py").read_text() == "print('mine')\n"


def test_all_files_or_none(kernel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The design's own file fails last: what was laid beside it goes, and what was there stays."""

    def full(*_: object) -> None:
        raise dpopt.ParameterError("the disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(shape, "seal", full)
        with pytest.raises(dpopt.ParameterError, match="full"):
            kernel.save(tmp_path / "k.json", proof=True, verifier=True)
        assert names(tmp_path) == set()
        (tmp_path / "k.proof.json").write_text("an earlier one")
        with pytest.raises(dpopt.ParameterError, match="full"):
            kernel.save(tmp_path / "k.json", proof=True)
    assert (tmp_path / "k.proof.json").read_text() == "an earlier one"
    with monkeypatch.context() as patched:
        patched.setattr(saved, "write_json", full)
        with pytest.raises(dpopt.ParameterError, match="full"):
            kernel.save(tmp_path / "k.json", proof=True, verifier=True)
    assert names(tmp_path) == {"k.proof.json"}


def test_the_command_finds_the_proof(kernel: Any, tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "k.json"
    kernel.save(path)
    code, out, err = run(["verify", str(path)], capfd)
    assert (code, err) == (0, "")
    assert "optimal" not in out
    kernel.save(path, proof=True)
    code, out, err = run(["verify", str(path)], capfd)
    assert (code, err) == (0, "")
    assert out.splitlines() == list(verify.check(str(path), str(tmp_path / "k.proof.json")))
    moved = (tmp_path / "k.proof.json").rename(tmp_path / "moved.json")
    code, out, _ = run(["verify", str(path), str(moved), "--json", "--copy"], capfd)
    told = json.loads(out)
    assert (code, told["verified"], told["proof"]) == (0, True, str(moved))
    assert told["shown"][-2].startswith("optimal: ")
    assert (tmp_path / "verify.py").read_bytes() == Path(verify.__file__).read_bytes()


def test_the_command_passes_on_what_is_refused(kernel: Any, tmp_path: Path, capfd: Capture) -> None:
    path, proof = tmp_path / "k.json", tmp_path / "k.proof.json"
    kernel.save(path, proof=True)
    edited(proof, bound="1000")
    code, out, err = run(["verify", str(path)], capfd)
    assert (code, err.count("\n")) == (4, 1)
    assert out.startswith("private: ")
    assert "REFUSED: the proof claims 1000.0" in err
    code, out, err = run(["verify", str(path), "--json"], capfd)
    assert (code, json.loads(out)["verified"]) == (4, False)
    path.write_text("{")
    code, out, err = run(["verify", str(path)], capfd)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot be read" in err
    for missing in ([str(tmp_path / "none.json")], [str(path), str(tmp_path)], [""]):
        code, out, err = run(["verify", *missing], capfd)
        assert (code, out) == (2, "")
        assert "there is no such file" in err


def test_a_kind_saves_its_proof(tmp_path: Path, capfd: Capture) -> None:
    words = ["majority", "--voters", "5", "--epsilon", "0.2", "--allowance", "2", "--proof"]
    code, out, err = run(words, capfd)
    assert (code, out) == (2, "")
    assert "without --save" in err
    code, _, err = run([*words, "--save", str(tmp_path / "g.json")], capfd)
    assert (code, err) == (0, "")
    assert names(tmp_path) == {"g.json", "g.proof.json"}
    code, out, _ = run(["verify", str(tmp_path / "g.json")], capfd)
    assert (code, out.splitlines()[-2].partition(":")[0]) == (0, "optimal")


def test_a_proof_that_does_not_fit_comes_before_anything_is_written(
    tmp_path: Path, capfd: Capture
) -> None:
    written = ["--proof", "--save", str(tmp_path / "q.json"), "--plot", str(tmp_path / "q.png")]
    # Solved by symmetry, but 2^22 entries are more than the checker writes out.
    words = ["kernel", "--loss", "hamming", "--graph", "hamming", "--shape", ",".join("2" * 11)]
    words += ["--epsilon", "1", "--objective", "worst-case", "--symmetry", "auto", *written]
    code, out, err = run(words, capfd)
    assert (code, out, names(tmp_path)) == (2, "", set())
    assert "there is no proof of this 'kernel'" in err


@pytest.mark.slow
def test_a_proof_of_another_design_is_told(kernel: Any, tmp_path: Path, capfd: Capture) -> None:
    path, other = tmp_path / "k.json", tmp_path / "other.json"
    kernel.save(path, proof=True)
    for setting in (
        replace(kernel.setting, epsilon=kernel.setting.epsilon / 2),
        Kernel("absolute", 1.0, graph="path", inputs=5, objective="worst-case"),
    ):
        dpopt.design(setting).save(other, proof=True)
        for file, proof in (("k.json", "other.proof.json"), ("other.json", "k.proof.json")):
            code, out, err = run(["verify", str(tmp_path / file), str(tmp_path / proof)], capfd)
            assert (code, out.partition(":")[0]) == (4, "private")
            assert "the proof is of another design, which has other parameters" in err
    dpopt.design(dpopt.Majority(3, 0.1, 1.0)).save(other, proof=True)
    for wrong in (path, tmp_path / "other.proof.json"):
        code, out, err = run(["verify", str(path), str(wrong), "--copy"], capfd)
        assert (code, out) == (2, "")
        assert "the second file is no proof of a 'kernel'" in err
    assert not (tmp_path / "verify.py").exists()
    # An earlier proof beside a new design of another setting shows nothing about it.
    kernel.save(other)
    code, out, err = run(["verify", str(other)], capfd)
    assert (code, out) == (2, "")
    assert "the second file is no proof of a 'kernel'" in err

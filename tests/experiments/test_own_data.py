"""The figures of the public prior from a user's own downloads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments import __main__ as runner
from experiments.data.generate import generate_avazu, generate_movielens
from tests.experiments.comparing import exit_code

pytest.importorskip("polars", reason="polars is not installed (extra data)")


@pytest.mark.slow
def test_the_user_s_own_data_become_a_report(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ratings = generate_movielens(tmp_path / "ml", 30, 40, 1)
    clicks = generate_avazu(tmp_path / "train.csv", 2000, 1)
    out = tmp_path / "out"

    def command(name: str, path: Path, *arguments: str) -> int:
        given = ("run", name, "--set", f"path={path}", *arguments, "--out", str(out))
        return exit_code(runner.main, given)

    assert command("prior-figure-4", ratings) == 0
    assert command("prior-figures-3-6-11", clicks, "--set", "user=device_ip") == 0
    names = {path.name for path in out.iterdir()}
    assert {
        "prior-figure-4.distances.csv",
        "prior-figure-4.png",
        "prior-figures-3-6-11.summary.csv",
        "prior-figures-3-6-11.png",
        "index.html",
    } <= names
    record = json.loads((out / "prior-figures-3-6-11.json").read_text())
    assert record["configuration"]["user"] == "device_ip"
    assert record["configuration"]["path"] == str(clicks)
    capfd.readouterr()
    assert command("prior-figures-3-6-11", tmp_path / "absent") == 2
    assert "kaggle" in capfd.readouterr().err

"""Files are read with suspicion: nothing hangs, nothing grows, nothing a file says looks proved."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any, cast

import numpy as np
import pytest

import dpopt
from dpopt import ParameterError, _kinds, files, majority, public_prior
from dpopt.cli import main
from dpopt.shape import kind_of
from tests.robustness.commands import example
from tests.robustness.test_saved_files import MAKERS


@pytest.fixture(params=MAKERS)
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "saved.json"
    MAKERS[request.param](path)
    return path


def test_a_name_that_stands_twice(saved: Path) -> None:
    """The second would win here, the first elsewhere: a file must not say two things."""
    whole = json.loads(saved.read_text())
    for name in ("body", "hash", "format"):
        twice = json.dumps(whole)[:-1] + f', "{name}": {json.dumps(whole[name])}}}'
        saved.write_text(twice)
        with pytest.raises(ParameterError, match="twice"):
            dpopt.load(saved)
    inner = json.dumps({**whole, "body": "@"}).replace(
        '"@"', json.dumps(whole["body"])[:-1] + ', "guarantee": {"epsilon": 9.0, "delta": 0.0}}'
    )
    saved.write_text(inner)
    with pytest.raises(ParameterError, match="twice"):
        dpopt.load(saved)


@contextmanager
def special_files(folder: Path) -> Iterator[list[Path]]:
    """A device that never ends, a pipe without a writer, a pipe with one, and a link."""
    idle, busy, link = folder / "idle.csv", folder / "busy.csv", folder / "link.csv"
    os.mkfifo(idle)
    os.mkfifo(busy)
    link.symlink_to("/dev/zero")
    # Open for reading and writing does not wait for anybody.
    keeper = os.open(busy, os.O_RDWR | os.O_NONBLOCK)
    os.write(keeper, b"1,2,3\n" * 100)
    try:
        yield [Path("/dev/zero"), idle, busy, link]
    finally:
        os.close(keeper)


def commands(path: Path, saved: Path) -> dict[str, list[str]]:
    """Every argument that is the path of a file to read."""
    where = str(path)
    found = {
        "certify": ["certify", where],
        "release": ["release", where, "--input", "1"],
        "input": ["release", str(saved), "--input", where],
        "distribution": ["release", str(saved), "--distribution", where],
        "sample": ["sample", where, "--column=a", "--epsilon=1", "--alphabet=a,b"],
        "alphabet": ["sample", where, "--column=a", "--epsilon=1", "--alphabet", where],
    }
    for kind in _kinds.KINDS:
        for field in _kinds.described(cast(Any, kind_of(kind))).fields:
            if {"Numbers", "Table", "ExtraRows"} & set(field.annotation.split(" | ")):
                option = f"--{field.name.replace('_', '-')}"
                found[f"{kind} {option}"] = [kind, *example(kind), option, where]
    return found


@pytest.mark.slow_after(6)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("name", commands(Path("x"), Path("x")))
def test_a_device_or_a_pipe_is_refused_at_once(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel = tmp_path / "kernel.json"
    MAKERS["prior"](kernel)
    with special_files(tmp_path) as found:
        for path in found:
            refused: list[object] = []

            def run(arguments: list[str], into: list[object] = refused) -> None:
                try:
                    main(arguments)
                except SystemExit as ended:
                    into.append(ended.code)

            # A read that waits would wait for ever: in a thread, it only fails the test.
            thread = Thread(target=run, args=(commands(path, kernel)[name],), daemon=True)
            thread.start()
            thread.join(120)
            assert refused == [2], path
            assert capfd.readouterr().err.count("\n") == 1


def test_a_file_beyond_the_limit_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kernel.json"
    MAKERS["kernel"](path)
    size = path.stat().st_size
    monkeypatch.setattr(files, "LARGEST_FILE", size)
    assert dpopt.load(path).certificate is not None
    monkeypatch.setattr(files, "LARGEST_FILE", size - 1)
    with pytest.raises(ParameterError, match="more than"):
        dpopt.load(path)
    with pytest.raises(ParameterError, match="more than"):
        MAKERS["kernel"](tmp_path / "new.json")
    assert not (tmp_path / "new.json").exists()


def test_a_sparse_file_of_a_terabyte_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ParameterError, match="more than 256 MiB"):
        dpopt.load(path)


def test_a_distribution_of_endless_denominators() -> None:
    """Each is short; their common one would not be."""
    prime = [p for p in range(3, 2500) if all(p % q for q in range(2, int(p**0.5) + 1))]
    counts = np.array([Fraction(1, p**200) for p in prime], dtype=object)
    with pytest.raises(ParameterError, match="common denominator"):
        public_prior.draw_own_letter(counts, counts.size)


@pytest.mark.parametrize("rate", ["1e-100000000", "0." + "0" * 5000 + "1", "1/0", "nan"])
def test_a_lost_rate_of_endless_digits(rate: str) -> None:
    with pytest.raises(ParameterError, match="lost_rate is"):
        dpopt.smoothed.SamplingHistogram.of_lost_rate(10, rate)


def resealed(path: Path, **changes: object) -> Any:
    from dpopt.privacy.saved import seal

    whole = json.loads(path.read_text())
    seal(whole["kind"], {**whole["body"], **changes}, path)
    return dpopt.load(path)


def test_what_a_file_says_of_optimality_is_named_as_said(tmp_path: Path) -> None:
    path = tmp_path / "gamma.json"
    made = majority.design(5, 0.5, 2.0)
    made.save(path)
    assert made.stated == ()
    assert "stated" not in repr(made)
    assert "stated_by_file" not in made.to_dict()
    found = resealed(path, value=0.1, bound=0.9, gap=0.0, expected_error=0.0)
    # Of these, gamma decides: they are computed from it.
    assert found.value == made.value
    assert found.expected_error == made.expected_error
    # Nothing here can check a bound; the gap is to that bound.
    assert (found.bound, found.gap) == (0.9, -(found.value - 0.9))
    assert found.stated == ("bound",)
    assert found.to_dict()["stated_by_file"] == ["bound"]
    assert "stated_by_file=bound" in repr(found)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("objective", ["expected-error", "surrogate", "worst-case"])
def test_values_are_computed_again_for_each_objective(objective: str, tmp_path: Path) -> None:
    path = tmp_path / "gamma.json"
    made = majority.design(5, 0.5, 2.0, objective=objective, prior="beta:2,3")
    made.save(path)
    found = resealed(path, value=7.0)
    assert found.value == pytest.approx(made.value, rel=1e-12)
    assert "value" not in found.stated


def test_a_value_under_coefficients_of_ones_own_is_computed_too(tmp_path: Path) -> None:
    path = tmp_path / "gamma.json"
    made = majority.design(5, 0.5, 2.0, coefficients=[1.0, 2.0, 3.0])
    made.save(path)
    found = dpopt.load(path)
    assert isinstance(found, dpopt.Design)
    assert found.value == made.value
    assert found.stated == ("bound",)

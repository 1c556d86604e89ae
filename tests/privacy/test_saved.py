"""Saved mechanisms: the same integers back, and no harm from a file that is not what it says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import Design, NotPrivateError, ParameterError
from dpopt.privacy import exp_lower
from dpopt.privacy.saved import seal
from tests.kernel.brute import made_of, sure

Json = dict[str, Any]
Change = Callable[[Json], object]


def tight() -> Design:
    """At its limit: no unit can move from output 1 to output 0 of input 0."""
    total, epsilon = 2**62, 0.5
    low = total // 5
    high = int(exp_lower(epsilon) * low)
    return made_of([[high, total - high], [low, total - low]], epsilon)


def small() -> Design:
    return made_of([[40, 24], [24, 40]], 1.0)


def test_weights_are_written_as_decimal_strings(tmp_path: Path) -> None:
    design = tight()
    design.save(tmp_path / "kernel.json")
    written = json.loads((tmp_path / "kernel.json").read_text())
    weights = [str(weight) for weight in design.table.weights]
    assert written["body"]["units"] == {"total": str(2**62), "weights": [weights[:2], weights[2:]]}
    stated = (written["format"], written["schema"], written["kind"])
    assert stated == ("dpopt mechanism", 3, "kernel")
    found = dpopt.load(tmp_path / "kernel.json")
    assert found.table == design.table
    found.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "kernel.json").read_bytes()


def test_weights_beyond_256_bits_are_written_in_hexadecimal(tmp_path: Path) -> None:
    design = made_of([[2**299 + 1, 2**299 - 1]] * 2, 0.1)
    design.save(tmp_path / "kernel.json")
    body = json.loads((tmp_path / "kernel.json").read_text())["body"]
    assert body["units"]["weights"] == [[hex(2**299 + 1), hex(2**299 - 1)]] * 2
    top, bottom = body["certificate"]["slack_exact"].split("/")
    assert Fraction(int(top, 16), int(bottom, 16)) == sure(design.certificate).slack
    assert dpopt.load(tmp_path / "kernel.json").table == design.table


def changed(folder: Path, change: Change) -> Path:
    """Save a kernel and edit the file, its hash left as it was."""
    path = folder / "kernel.json"
    tight().save(path)
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    return path


def resealed(folder: Path, change: Change, design: Design | None = None) -> Path:
    """Save a kernel and edit its body, with the hash of the new body."""
    path = folder / "kernel.json"
    (design or tight()).save(path)
    body = json.loads(path.read_text())["body"]
    change(body)
    seal("kernel", body, path)
    return path


def one_unit(body: Json) -> None:
    row = body["units"]["weights"][0]
    body["units"]["weights"][0] = [str(int(row[0]) + 1), str(int(row[1]) - 1)]


def lower_epsilon(body: Json) -> None:
    body["setting"]["epsilon"] = math.nextafter(body["setting"]["epsilon"], 0.0)


@pytest.mark.parametrize("change", [one_unit, lower_epsilon])
def test_a_right_hash_does_not_make_it_private(change: Change, tmp_path: Path) -> None:
    with pytest.raises(NotPrivateError, match="inputs 0 and 1"):
        dpopt.load(resealed(tmp_path, change))


def test_a_lowered_delta(tmp_path: Path) -> None:
    design = made_of([[32, 32], [0, 64]], 0.0, 0.5)
    with pytest.raises(NotPrivateError):
        dpopt.load(resealed(tmp_path, lambda body: body["setting"].update(delta=0.49), design))


ENVELOPES: dict[str, tuple[Change, str]] = {
    "format": (lambda record: record.update(format="other"), "not a saved dpopt mechanism"),
    "newer": (lambda record: record.update(schema=4), "newer"),
    "schema-x": (lambda record: record.update(schema="x"), "schema"),
    "no-body": (lambda record: record.pop("body"), "missing"),
    "body-list": (lambda record: record.update(body=[]), "missing"),
    "no-kind": (lambda record: record.pop("kind"), "missing"),
    "no-hash": (lambda record: record.pop("hash"), "missing"),
    "no-provenance": (lambda record: record.pop("provenance"), "missing"),
    "unknown-kind": (lambda record: record.update(kind="oracle"), "kind is 'oracle'"),
    "other-kind": (lambda record: record.update(kind="nearest"), "parameters of 'nearest'"),
}


def test_a_bad_envelope(tmp_path: Path) -> None:
    for change, words in ENVELOPES.values():
        with pytest.raises(ParameterError, match=words):
            dpopt.load(changed(tmp_path, change))


def putting(name: str, value: object) -> Change:
    return lambda body: body["units"].update({name: value})


def asking(**values: object) -> Change:
    return lambda body: body["setting"].update(values)


HUGE = 10**400

BODIES: dict[str, Change] = {
    "sum": putting("weights", [["40", "25"], ["24", "40"]]),
    "negative": putting("weights", [["65", "-1"], ["24", "40"]]),
    "fraction-text": putting("weights", [["40.5", "23.5"], ["24", "40"]]),
    "exponent-text": putting("weights", [["4e1", "24"], ["24", "40"]]),
    "ragged": putting("weights", [["64"], ["24", "40"]]),
    "empty": putting("weights", []),
    "number": putting("weights", 64),
    "no-weights": lambda body: body["units"].pop("weights"),
    "total-63": putting("total", "63"),
    "total-0": putting("total", "0"),
    "total-negative": putting("total", "-64"),
    "total-float": putting("total", 64.5),
    "total-true": putting("total", True),
    "no-total": lambda body: body["units"].pop("total"),
    "no-units": lambda body: body.pop("units"),
    "no-setting": lambda body: body.pop("setting"),
    "setting-list": lambda body: body.update(setting=[1.0, 0.0]),
    "graph-out-of-range": asking(graph=[[0, 2]]),
    "graph-loop": asking(graph=[[0, 0]]),
    "epsilon-negative": asking(epsilon=-1.0),
    "epsilon-text": asking(epsilon="1"),
    "epsilon-huge": asking(epsilon=HUGE),
    "delta-one": asking(delta=1.0),
    "delta-negative": asking(delta=-0.1),
}


def test_a_malformed_body_with_a_right_hash(tmp_path: Path) -> None:
    taken = []
    for name, change in BODIES.items():
        try:
            taken.append((name, dpopt.load(resealed(tmp_path, change, small()))))
        except ParameterError:
            continue
    assert taken == []

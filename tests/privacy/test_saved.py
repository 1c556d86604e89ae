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
from dpopt import Guarantee, NotPrivateError, ParameterError
from dpopt.privacy import ExactKernel, certify_kernel, exp_lower, quantise_kernel
from dpopt.privacy.saved import seal

Json = dict[str, Any]
Change = Callable[[Json], object]

FLOATS = [[0.5, 0.3, 0.2], [0.3, 0.45, 0.25], [0.25, 0.4, 0.35]]
BOTH_WAYS = [(0, 1), (1, 0), (1, 2), (2, 1)]


def tight_kernel() -> ExactKernel:
    """At its limit: no unit can move from output 1 to output 0 of input 0."""
    bits, epsilon = 62, 0.5
    low = 2**bits // 5
    high = int(exp_lower(epsilon) * low)
    return ExactKernel.make(
        [[high, 2**bits - high], [low, 2**bits - low]], bits, Guarantee(epsilon)
    )


KERNELS: dict[str, Callable[[], ExactKernel]] = {
    "pure": lambda: quantise_kernel(FLOATS, Guarantee(0.8)),
    "delta": lambda: quantise_kernel(FLOATS, Guarantee(0.3, 0.2)),
    "pairs": lambda: quantise_kernel(FLOATS, Guarantee(0.6), pairs=BOTH_WAYS),
    "delta-pairs": lambda: quantise_kernel(FLOATS, Guarantee(0.1, 0.25), pairs=BOTH_WAYS),
    "one-way": lambda: quantise_kernel(FLOATS, Guarantee(0.6), pairs=[(0, 1)], one_way=True),
    "tight": tight_kernel,
    "many-bits": lambda: ExactKernel.make([[2**199 + 1, 2**199 - 1]] * 2, 200, Guarantee(0.1)),
    "large-epsilon": lambda: quantise_kernel(FLOATS, Guarantee(500.0)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_comes_back_the_same(name: str, tmp_path: Path) -> None:
    kernel = KERNELS[name]()
    path = tmp_path / "kernel.json"
    kernel.save(path)
    found = dpopt.load(path)
    assert isinstance(found, ExactKernel)
    assert found == kernel
    assert found.weights == kernel.weights
    found.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_a_kernel_proved_with_a_rational_ratio_can_be_loaded(tmp_path: Path) -> None:
    ratio, epsilon = Fraction(7), math.log(7)
    assert exp_lower(epsilon) < ratio
    weights, guarantee = [[7, 1], [1, 7]], Guarantee(epsilon)
    proof = certify_kernel(weights, 3, guarantee, ratio=ratio)
    kernel = ExactKernel.make(weights, 3, guarantee, ratio=ratio)
    assert kernel.certificate == proof
    kernel.save(tmp_path / "kernel.json")
    assert dpopt.load(tmp_path / "kernel.json") == kernel


def test_weights_are_written_as_decimal_strings(tmp_path: Path) -> None:
    kernel = tight_kernel()
    kernel.save(tmp_path / "kernel.json")
    written = json.loads((tmp_path / "kernel.json").read_text())
    assert written["body"]["weights"] == [[str(weight) for weight in row] for row in kernel.weights]
    assert (written["format"], written["schema"], written["kind"]) == (
        "dpopt mechanism",
        3,
        "exact-kernel",
    )


def test_weights_beyond_256_bits_are_written_in_hexadecimal(tmp_path: Path) -> None:
    kernel = ExactKernel.make([[2**299 + 1, 2**299 - 1]] * 2, 300, Guarantee(0.1))
    kernel.save(tmp_path / "kernel.json")
    body = json.loads((tmp_path / "kernel.json").read_text())["body"]
    assert body["weights"] == [[hex(2**299 + 1), hex(2**299 - 1)]] * 2
    top, bottom = body["certificate"]["slack_exact"].split("/")
    assert Fraction(int(top, 16), int(bottom, 16)) == kernel.certificate.slack


def saved(kernel: ExactKernel, folder: Path) -> tuple[Path, Json]:
    path = folder / "kernel.json"
    kernel.save(path)
    return path, json.loads(path.read_text())


def changed(folder: Path, change: Change, kernel: ExactKernel | None = None) -> Path:
    """Save a kernel and edit the file, its hash left as it was."""
    path, record = saved(kernel or tight_kernel(), folder)
    change(record)
    path.write_text(json.dumps(record))
    return path


def resealed(folder: Path, change: Change, kernel: ExactKernel | None = None) -> Path:
    """Save a kernel and edit its body, with the hash of the new body."""
    path, record = saved(kernel or tight_kernel(), folder)
    change(record["body"])
    seal("exact-kernel", record["body"], path)
    return path


def small_kernel() -> ExactKernel:
    return ExactKernel.make([[40, 24], [24, 40]], 6, Guarantee(1.0))


def one_unit(body: Json) -> None:
    row = body["weights"][0]
    body["weights"][0] = [str(int(row[0]) + 1), str(int(row[1]) - 1)]


def lower_epsilon(body: Json) -> None:
    body["guarantee"]["epsilon"] = math.nextafter(body["guarantee"]["epsilon"], 0.0)


@pytest.mark.parametrize("change", [one_unit, lower_epsilon])
def test_a_right_hash_does_not_make_it_private(change: Change, tmp_path: Path) -> None:
    with pytest.raises(NotPrivateError, match="inputs 0 and 1"):
        dpopt.load(resealed(tmp_path, change))


def test_a_right_hash_is_accepted(tmp_path: Path) -> None:
    found = dpopt.load(resealed(tmp_path, lambda body: body.update(cost=0.125)))
    assert isinstance(found, ExactKernel)
    assert found.cost == 0.125


def test_a_lowered_delta(tmp_path: Path) -> None:
    kernel = ExactKernel.make([[32, 32], [0, 64]], 6, Guarantee(0.0, 0.5))
    path = changed(tmp_path, lambda r: r["body"]["guarantee"].update(delta=0.49), kernel)
    with pytest.raises(NotPrivateError):
        dpopt.load(path)


ENVELOPES: dict[str, tuple[Change, str]] = {
    "format": (lambda record: record.update(format="other"), "not a saved dpopt mechanism"),
    "no-format": (lambda record: record.pop("format"), "not a saved dpopt mechanism"),
    "newer": (lambda record: record.update(schema=4), "newer"),
    "schema-x": (lambda record: record.update(schema="x"), "schema"),
    "schema-1.5": (lambda record: record.update(schema=1.5), "schema"),
    "no-schema": (lambda record: record.pop("schema"), "schema"),
    "no-body": (lambda record: record.pop("body"), "missing"),
    "body-list": (lambda record: record.update(body=[]), "missing"),
    "no-kind": (lambda record: record.pop("kind"), "missing"),
    "no-hash": (lambda record: record.pop("hash"), "missing"),
    "no-provenance": (lambda record: record.pop("provenance"), "missing"),
    "unknown-kind": (lambda record: record.update(kind="oracle"), "kind is 'oracle'"),
    "other-kind": (lambda record: record.update(kind="majority"), "malformed"),
}


def test_a_bad_envelope(tmp_path: Path) -> None:
    for change, words in ENVELOPES.values():
        with pytest.raises(ParameterError, match=words):
            dpopt.load(changed(tmp_path, change))


def putting(name: str, value: object) -> Change:
    return lambda body: body.update({name: value})


def guaranteeing(**values: object) -> Change:
    return lambda body: body["guarantee"].update(values)


HUGE = 10**400

BODIES: dict[str, Change] = {
    "sum": putting("weights", [["40", "25"], ["24", "40"]]),
    "negative": putting("weights", [["65", "-1"], ["24", "40"]]),
    "fraction-text": putting("weights", [["40.5", "23.5"], ["24", "40"]]),
    "exponent-text": putting("weights", [["4e1", "24"], ["24", "40"]]),
    "words": putting("weights", [["forty", "24"], ["24", "40"]]),
    "fraction": putting("weights", [[40.9, 24.9], [24, 40]]),
    "infinite": putting("weights", [[math.inf, 24], [24, 40]]),
    "nan": putting("weights", [[math.nan, 24], [24, 40]]),
    "null": putting("weights", [[None, 24], [24, 40]]),
    "ragged": putting("weights", [["64"], ["24", "40"]]),
    "empty": putting("weights", []),
    "empty-rows": putting("weights", [[], []]),
    "number": putting("weights", 64),
    "object": putting("weights", {"a": 1}),
    "no-weights": lambda body: body.pop("weights"),
    "bits-5": putting("bits", 5),
    "bits-7": putting("bits", 7),
    "bits-0": putting("bits", 0),
    "bits-negative": putting("bits", -6),
    "bits-huge": putting("bits", 10**12),
    "bits-float": putting("bits", 6.0),
    "bits-text": putting("bits", "6"),
    "bits-true": putting("bits", True),
    "no-bits": lambda body: body.pop("bits"),
    "pair-out-of-range": putting("pairs", [[0, 2]]),
    "pair-negative": putting("pairs", [[-1, 0]]),
    "pair-of-three": putting("pairs", [[0, 1, 1]]),
    "pair-number": putting("pairs", [0, 1]),
    "pair-text": putting("pairs", [["a", "b"]]),
    "pair-fraction": putting("pairs", [[0.5, 1.5]]),
    "pair-infinite": putting("pairs", [[math.inf, 0]]),
    "pairs-number": putting("pairs", 3),
    "no-pairs": lambda body: body.pop("pairs"),
    "pairs-empty": putting("pairs", []),
    "pairs-loop": putting("pairs", [[0, 0]]),
    "pairs-one-way": putting("pairs", [[0, 1]]),
    "one-way-text": putting("one_way", "yes"),
    "cost-text": putting("cost", "dear"),
    "cost-null": putting("cost", None),
    "cost-huge": putting("cost", HUGE),
    "no-cost": lambda body: body.pop("cost"),
    "no-guarantee": lambda body: body.pop("guarantee"),
    "guarantee-list": putting("guarantee", [1.0, 0.0]),
    "epsilon-nan": guaranteeing(epsilon=math.nan),
    "epsilon-infinite": guaranteeing(epsilon=math.inf),
    "epsilon-negative": guaranteeing(epsilon=-1.0),
    "epsilon-null": guaranteeing(epsilon=None),
    "epsilon-text": guaranteeing(epsilon="1"),
    "epsilon-true": guaranteeing(epsilon=True),
    "epsilon-huge": guaranteeing(epsilon=HUGE),
    "epsilon-1e300": guaranteeing(epsilon=1e300),
    "delta-nan": guaranteeing(delta=math.nan),
    "delta-one": guaranteeing(delta=1.0),
    "delta-negative": guaranteeing(delta=-0.1),
    "delta-null": guaranteeing(delta=None),
}


FINITE = [name for name in BODIES if not name.endswith(("infinite", "nan"))]


def test_a_malformed_body_with_a_right_hash(tmp_path: Path) -> None:
    taken = []
    for name in FINITE:
        try:
            taken.append((name, dpopt.load(resealed(tmp_path, BODIES[name], small_kernel()))))
        except ParameterError:
            continue
    assert taken == []

"""Saved mechanisms: the same integers back, and no harm from a file that is not what it says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpopt
from dpopt import Guarantee, NotPrivateError, ParameterError, majority
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


def test_a_path_can_be_text(tmp_path: Path) -> None:
    path = str(tmp_path / "kernel.json")
    tight_kernel().save(path)
    assert dpopt.load(path) == tight_kernel()


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


HARMLESS: dict[str, Change] = {
    "cost": lambda record: record["body"].update(cost=0.125),
    "provenance": lambda record: record["provenance"].update(dpopt="0.0.0"),
    "extra": lambda record: record["body"].update(note="hello"),
    "certificate": lambda record: record["body"]["certificate"].update(slack=0.5),
    "epsilon-raised": lambda record: record["body"]["guarantee"].update(epsilon=0.75),
    "delta-raised": lambda record: record["body"]["guarantee"].update(delta=0.25),
    "pairs": lambda record: record["body"].update(pairs=[[0, 1], [1, 0]]),
    "one-way": lambda record: record["body"].update(pairs=[[0, 1]], one_way=True),
    "hash": lambda record: record.update(hash="0" * 64),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_file_that_is_still_private_but_was_changed(name: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="changed"):
        dpopt.load(changed(tmp_path, HARMLESS[name]))


def one_unit(record: Json) -> None:
    row = record["body"]["weights"][0]
    record["body"]["weights"][0] = [str(int(row[0]) + 1), str(int(row[1]) - 1)]


def lower_epsilon(record: Json) -> None:
    epsilon = record["body"]["guarantee"]["epsilon"]
    record["body"]["guarantee"]["epsilon"] = math.nextafter(epsilon, 0.0)


@pytest.mark.parametrize("change", [one_unit, lower_epsilon])
def test_a_change_that_breaks_privacy_is_named_as_such(change: Change, tmp_path: Path) -> None:
    with pytest.raises(NotPrivateError, match="inputs 0 and 1"):
        dpopt.load(changed(tmp_path, change))


@pytest.mark.parametrize("change", [one_unit, lower_epsilon])
def test_a_right_hash_does_not_make_it_private(change: Change, tmp_path: Path) -> None:
    path = resealed(tmp_path, lambda body: change({"body": body}))
    with pytest.raises(NotPrivateError, match="inputs 0 and 1"):
        dpopt.load(path)


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
    "much-newer": (lambda record: record.update(schema=10**30), "newer"),
    "schema-x": (lambda record: record.update(schema="x"), "schema"),
    "schema-0": (lambda record: record.update(schema=0), "schema"),
    "schema-2": (lambda record: record.update(schema=2), "schema is 2, which was never published"),
    "schema-1.5": (lambda record: record.update(schema=1.5), "schema"),
    "schema-true": (lambda record: record.update(schema=True), "schema"),
    "no-schema": (lambda record: record.pop("schema"), "schema"),
    "no-body": (lambda record: record.pop("body"), "missing"),
    "body-list": (lambda record: record.update(body=[]), "missing"),
    "no-kind": (lambda record: record.pop("kind"), "missing"),
    "no-hash": (lambda record: record.pop("hash"), "missing"),
    "no-provenance": (lambda record: record.pop("provenance"), "missing"),
    "unknown-kind": (lambda record: record.update(kind="oracle"), "kind is 'oracle'"),
    "other-kind": (lambda record: record.update(kind="majority"), "malformed"),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_a_bad_envelope(name: str, tmp_path: Path) -> None:
    change, words = ENVELOPES[name]
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


@pytest.mark.parametrize("name", BODIES)
def test_a_malformed_body_with_a_stale_hash(name: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError):
        dpopt.load(changed(tmp_path, lambda record: BODIES[name](record["body"]), small_kernel()))


FINITE = [name for name in BODIES if not name.endswith(("infinite", "nan"))]


@pytest.mark.parametrize("name", FINITE)
def test_a_malformed_body_with_a_right_hash(name: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError):
        dpopt.load(resealed(tmp_path, BODIES[name], small_kernel()))


TEXTS = {
    "empty": b"",
    "words": b"hello",
    "list": b"[1, 2, 3]",
    "number": b"1",
    "null": b"null",
    "empty-object": b"{}",
    "binary": bytes(range(256)) * 8,
    "zeros": b"\0" * 100,
    "utf-16": "{}".encode("utf-16"),
    "deep-list": b"[" * 100_000 + b"]" * 100_000,
    "deep-object": b'{"body": ' * 100_000 + b"1" + b"}" * 100_000,
    "long-number": b'{"format": "dpopt mechanism", "schema": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("name", TEXTS)
def test_files_of_something_else(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.json"
    path.write_bytes(TEXTS[name])
    with pytest.raises(ParameterError, match=r"kernel\.json"):
        dpopt.load(path)


def test_every_truncated_file_is_refused(tmp_path: Path) -> None:
    path, _ = saved(small_kernel(), tmp_path)
    whole = path.read_bytes().rstrip()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ParameterError, match="cut off"):
            dpopt.load(path)


@pytest.mark.parametrize("where", ["bits", "weights", "pairs", "cost", "guarantee", "note"])
def test_nesting_of_any_depth_in_a_field(where: str, tmp_path: Path) -> None:
    path = changed(tmp_path, lambda record: record["body"].update({where: "@"}), small_kernel())
    text = path.read_text()
    for depth in [10, 100, *range(800, 1000), 5000, 100_000]:
        path.write_text(text.replace('"@"', "[" * depth + "]" * depth))
        with pytest.raises(ParameterError):
            dpopt.load(path)


def test_a_directory_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="directory"):
        dpopt.load(tmp_path)
    with pytest.raises(ParameterError, match="no such file"):
        dpopt.load(tmp_path / "missing.json")


def test_a_path_that_no_file_can_have() -> None:
    with pytest.raises(ParameterError):
        dpopt.load("kernel\0.json")


def test_saving_to_a_directory_or_a_missing_folder(tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "missing" / "kernel.json"):
        with pytest.raises(ParameterError, match="path"):
            small_kernel().save(target)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-2, 70),
    st.floats(),
    st.text(max_size=4),
    st.integers(-1, 70).map(str),
)
VALUES = st.one_of(
    SCALARS,
    st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=12,
    ),
    st.lists(st.lists(SCALARS, min_size=2, max_size=2), min_size=1, max_size=3),
    st.fixed_dictionaries({"epsilon": SCALARS, "delta": SCALARS}).filter(
        lambda stated: not isinstance(stated["epsilon"], int | float) or stated["epsilon"] < 1e4
    ),
)


def load_or_refuse(path: Path) -> None:
    try:
        found = dpopt.load(path)
    except (ParameterError, NotPrivateError):
        return
    assert found.certificate is not None


def record_of(kind: str, folder: Path) -> tuple[Path, Json]:
    path = folder / "mechanism.json"
    if kind == "kernel":
        small_kernel().save(path)
    else:
        majority.design(3, 0.2, 2).save(path)
    return path, json.loads(path.read_text())


@pytest.fixture(scope="module", params=["kernel", "majority"])
def record(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> object:
    return record_of(request.param, tmp_path_factory.mktemp("saved"))


@given(data=st.data())
def test_any_json_in_any_top_level_field(record: tuple[Path, Json], data: st.DataObject) -> None:
    path, whole = record
    name = data.draw(st.sampled_from(sorted(whole)))
    path.write_text(json.dumps({**whole, name: data.draw(VALUES)}))
    load_or_refuse(path)


@given(data=st.data(), right_hash=st.booleans())
def test_any_json_in_any_field_of_the_body(
    record: tuple[Path, Json], data: st.DataObject, right_hash: bool
) -> None:
    path, whole = record
    name = data.draw(st.sampled_from(sorted(whole["body"])))
    body = {**whole["body"], name: data.draw(VALUES)}
    if right_hash and is_finite(body):
        seal(whole["kind"], body, path)
    else:
        path.write_text(json.dumps({**whole, "body": body}))
    load_or_refuse(path)


def is_finite(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True

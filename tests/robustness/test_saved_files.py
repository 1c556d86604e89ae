"""Corrupted and adversarial files: saved mechanisms of each kind, and every file that is read."""

from __future__ import annotations

import copy
import gzip
import io
import json
import math
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import (
    DpoptError,
    NotPrivateError,
    ParameterError,
    _kinds,
    majority,
    privacy,
    public_prior,
    roo,
)
from dpopt.files import read_integer_rows, read_rows, read_text
from dpopt.privacy.saved import seal
from dpopt.shape import Design, kind_of
from tests.kernel.brute import made_of

Json = dict[str, Any]


def _kernel() -> Design:
    """At its limit: one unit more for output 0 of input 0 breaks it."""
    low = 2**62 // 5
    high = int(privacy.exp_lower(0.5) * low)
    return made_of([[high, 2**62 - high], [low, 2**62 - low]], 0.5)


def _example(kind: str) -> Callable[[Path], object]:
    defined = kind_of(kind)
    assert defined is not None
    return lambda path: dpopt.design(defined.example()).save(path)


MAKERS: dict[str, Callable[[Path], object]] = {
    **{kind: _example(kind) for kind in _kinds.KINDS},
    "kernel-tight": lambda path: _kernel().save(path),
    "majority-delta": lambda path: majority.design(
        3, 0.4, 1, mechanism_delta=1e-3, delta=2e-3
    ).save(path),
    "roo-two": lambda path: roo.min_count(9, 2, 0.3).save(path),
    "letters": lambda path: public_prior.minimax_kernel(
        [0.2, 0.3, 0.5], 1.0, letters=["a", "b", "c"]
    ).save(path),
}
KINDS = sorted(MAKERS)
# The design with a delta takes ten times as long to certify as the others.
QUICK = [kind for kind in KINDS if kind != "majority-delta"]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder, found = tmp_path_factory.mktemp("originals"), {}
    for kind, make in MAKERS.items():
        make(folder / kind)
        found[kind] = (folder / kind).read_bytes()
    return found


def refused(path: Path, content: bytes) -> DpoptError | None:
    """Load a file; return the error, which is one of ours, or None if it was accepted."""
    path.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = dpopt.load(path)
    except (ParameterError, NotPrivateError) as error:
        return error
    if isinstance(found, Design):
        assert found.certificate is not None
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_cut_off_at_every_50th_byte(kind: str, originals: dict[str, bytes], tmp_path: Path) -> None:
    whole = originals[kind].rstrip()
    for length in range(0, len(whole), 50):
        assert isinstance(refused(tmp_path / "file", whole[:length]), ParameterError)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("kind", QUICK)
def test_a_flipped_bit_is_never_believed(
    kind: str, originals: dict[str, bytes], tmp_path: Path
) -> None:
    whole, rng, path = originals[kind], random.Random(kind), tmp_path / "file"
    before = json.loads(whole)
    for _ in range(150):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        if refused(path, bytes(flipped)) is None:
            # A blank for another: the same contents.
            assert json.loads(flipped.decode()) == before


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("kind", QUICK)
def test_bytes_inserted_removed_and_doubled(
    kind: str, originals: dict[str, bytes], tmp_path: Path
) -> None:
    whole, rng, path = originals[kind], random.Random(kind), tmp_path / "file"
    before = json.loads(whole)
    for _ in range(60):
        at, length = rng.randrange(len(whole)), rng.randint(1, 8)
        part = whole[at : at + length]
        for changed in (
            whole[:at] + whole[at + length :],
            whole[:at] + part + whole[at:],
            whole[:at] + rng.randbytes(length) + whole[at:],
        ):
            if refused(path, changed) is None:
                assert json.loads(changed.decode()) == before


def places(value: object, before: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to every value of a JSON tree."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*before, key)
        yield from places(inner, (*before, key))


def replaced(record: Json, place: tuple[str | int, ...], value: object) -> Json:
    changed: Any = copy.deepcopy(record)
    target = changed
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return changed


WRONG: tuple[object, ...] = (
    *(None, True, "", "x", [], {}, [[]], {"a": 1}, -1, 0, 2, 1.5, -0.0, 1e308, 5e-324),
    *(10**400, -(10**400), "9" * 5000, "-1", "1/0", "0x10", "nan", [None], [[None]] * 2),
    *(math.nan, math.inf, -math.inf),
)


# What JSON may hold and a value of Python may not, or not so long.
BOMBS = (
    *('"1e300000000"', "1e300000000", '"1e-300000000"', '"1/1e300000000"', '"0x1p999999999999"'),
    *("9" * 100_000, f'"{"9" * 100_000}"', f'"0x{"f" * 100_000}"', "1000", "1e300", "[[[]]]"),
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUICK)
def test_any_value_in_any_place(kind: str, originals: dict[str, bytes], tmp_path: Path) -> None:
    """With the old hash nothing that differs is accepted; a hang would end the run."""
    record, path = json.loads(originals[kind]), tmp_path / "file"
    rng, texts = random.Random(kind), [*map(json.dumps, WRONG), *BOMBS]
    for place in places(record):
        for text in rng.sample(texts, 8):
            content = json.dumps(replaced(record, place, "@")).replace('"@"', text)
            error = refused(path, content.encode())
            if error is None:
                # true is 1 and 0 is -0.0 for Python: the same mechanism.
                assert json.loads(content) == record
            assert len(str(error)) < 1000


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUICK)
def test_any_value_in_the_body_with_a_right_hash(
    kind: str, originals: dict[str, bytes], tmp_path: Path
) -> None:
    """The hash protects from accidents only: whatever is accepted was certified again."""
    record, path = json.loads(originals[kind]), tmp_path / "file"
    rng, tried = random.Random(kind), 0
    for place in places(record["body"]):
        if place[0] == "certificate" or ("setting" in place[:1] and len(place) == 1):
            continue
        for value in rng.sample(WRONG, 4):
            body = replaced(record["body"], place, value)
            try:
                seal(record["kind"], body, path)
            except ValueError:
                continue
            refused(path, path.read_bytes())
            tried += 1
    assert tried > 10


@pytest.mark.parametrize("kind", KINDS)
def test_keys_missing(kind: str, originals: dict[str, bytes], tmp_path: Path) -> None:
    record, path = json.loads(originals[kind]), tmp_path / "file"
    for key in record:
        missing = {name: value for name, value in record.items() if name != key}
        assert isinstance(refused(path, json.dumps(missing).encode()), ParameterError)


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [100, 990, 5000, 100_000])
def test_deep_nesting(kind: str, depth: int, originals: dict[str, bytes], tmp_path: Path) -> None:
    record = json.loads(originals[kind])
    for key in record["body"]:
        body = {**record["body"], key: "@"}
        text = json.dumps({**record, "body": body})
        text = text.replace('"@"', "[" * depth + "]" * depth)
        assert isinstance(refused(tmp_path / "file", text.encode()), ParameterError)


def more_for_the_first(weights: list[Any]) -> None:
    row = weights[0]
    if isinstance(row, list):
        row[:] = [str(int(row[0]) + 1), str(int(row[1]) - 1), *row[2:]]
    else:
        weights[0] = str(int(row) + 1)


def less_for_the_first(weights: list[Any]) -> None:
    weights[0] = str(int(weights[0]) - 1)


def all_zero(weights: list[Any]) -> None:
    weights[:] = ["0"] * len(weights)


def no_noise(weights: list[Any]) -> None:
    """The majority itself."""
    weights[:] = [[str(sum(map(int, row))), "0"] for row in weights]


BREAKING = [
    *(("kernel-tight", more_for_the_first), ("roo", less_for_the_first), ("roo", all_zero)),
    *(("roo-two", less_for_the_first), ("roo-two", all_zero)),
    *(("majority", no_noise), ("majority-delta", no_noise)),
]


def integers(body: Json) -> list[Any]:
    """The integers of a mechanism's file."""
    found = body["weights"] if "weights" in body else body["units"]
    return found["weights"] if isinstance(found, dict) else found


@pytest.mark.parametrize(("kind", "change"), BREAKING)
@pytest.mark.parametrize("right_hash", [False, True])
def test_weights_that_are_not_private_are_named_so(
    kind: str,
    change: Callable[[list[Any]], None],
    right_hash: bool,
    originals: dict[str, bytes],
    tmp_path: Path,
) -> None:
    record, path = json.loads(originals[kind]), tmp_path / "file"
    change(integers(record["body"]))
    content = json.dumps(record).encode()
    if right_hash:
        seal(record["kind"], record["body"], path)
        content = path.read_bytes()
    assert isinstance(refused(path, content), NotPrivateError)


@pytest.mark.parametrize("kind", ["majority", "majority-delta"])
def test_the_least_change_of_gamma_that_breaks_it(
    kind: str, originals: dict[str, bytes], tmp_path: Path
) -> None:
    """Bisect one weight with right hashes: accepted below some integer, NotPrivateError above."""
    record, path = json.loads(originals[kind]), tmp_path / "file"
    rows, total = integers(record["body"]), int(record["body"]["units"]["total"])
    place = next(i for i, (_, other) in enumerate(rows) if int(other) > 0)

    def private(weight: int) -> bool:
        rows[place] = [str(weight), str(total - weight)]
        seal(record["kind"], record["body"], path)
        error = refused(path, path.read_bytes())
        assert error is None or isinstance(error, NotPrivateError)
        return error is None

    low, high = int(rows[place][0]), total
    assert private(low)
    assert not private(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if private(middle) else (low, middle)
    # The design was at its limit: no more than a part in 1e6 of the range was left over.
    assert low - int(integers(json.loads(originals[kind])["body"])[place][0]) < total / 1e6


@pytest.mark.parametrize("kind", ["kernel-tight", "majority", "roo"])
def test_more_private_with_a_wrong_hash_is_refused(
    kind: str, originals: dict[str, bytes], tmp_path: Path
) -> None:
    record = json.loads(originals[kind])
    weights = integers(record["body"])
    if kind == "kernel-tight":
        weights[:] = [weights[0]] * 2
    elif kind == "roo":
        # A uniform letter, whatever the smallest of 12 counts of 3 letters is: 0..4.
        weights[:] = [str(2**62)] * 5
    else:
        half = str(int(record["body"]["units"]["total"]) // 2)
        weights[:] = [[half, half] for _ in weights]
    error = refused(tmp_path / "file", json.dumps(record).encode())
    assert isinstance(error, ParameterError)
    assert "changed" in str(error)


def test_a_rule_that_stops_too_early_is_refused_at_once(tmp_path: Path) -> None:
    """Its first missing q_m is already not private; 1e15 more need not be looked at."""
    path = tmp_path / "file"
    roo.min_count(9, 2, 0.3).save(path)
    record = json.loads(path.read_bytes())
    record["body"]["setting"] = {"records": 10**15, "letters": 2, "epsilon": 1e-15, "rule": "exact"}
    record["body"]["units"] = [str(2**62)] * 3
    seal(record["kind"], record["body"], path)
    assert isinstance(refused(path, path.read_bytes()), NotPrivateError)


CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\t\n",
    "binary": bytes(range(256)) * 8,
    "zeros": b"\0" * 1000,
    "latin-1": "é".encode("latin-1"),
    "utf-16": "1,2".encode("utf-16"),
    "words": b"one two",
    "ragged": b"1,2\n3\n",
    "long line": b"1 " * 50_000,
    "digits": b"9" * 5000,
    "exponent": b"1e400",
    "nan": b"nan",
    "negative": b"-1,-2",
    "half": b"0.5,0.5",
    "complex": b"1j",
    "underscore": b"1_0",
    "byte order mark": b"\xef\xbb\xbf1,2",
    "gzip": gzip.compress(b"1,2"),
}
READERS: dict[str, Callable[[Path], object]] = {
    "text": read_text,
    "rows": read_rows,
    "integer rows": lambda path: read_integer_rows(str(path)),
    "load": dpopt.load,
    "csv": lambda path: roo.tally_file(path.with_suffix(".csv"), "x", ["a", "b"]),
    "csv of integers": lambda path: roo.tally_file(path.with_suffix(".csv"), "x", 5),
    "parquet": lambda path: roo.tally_file(path.with_suffix(".parquet"), "x", ["a", "b"]),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", CONTENTS)
def test_readers_answer_or_refuse(reader: str, content: str, tmp_path: Path) -> None:
    if reader in ("csv", "csv of integers", "parquet"):
        pytest.importorskip("polars")
    path = tmp_path / "file"
    for ending in ("", ".csv", ".parquet"):
        path.with_suffix(ending).write_bytes(CONTENTS[content])
    try:
        READERS[reader](path)
    except ParameterError:
        return
    assert reader in ("text", "rows", "integer rows")


PATHS: dict[str, Callable[[Path], Path]] = {
    "missing": lambda folder: folder / "missing",
    "below a file": lambda folder: _touched(folder / "file") / "below",
    "folder": lambda folder: folder,
    "loop": lambda folder: _loop(folder / "loop"),
    "long": lambda folder: folder / ("x" * 5000),
    "nul": lambda folder: folder / "a\0b",
    "surrogate": lambda folder: folder / "\udcff",
    "unicode": lambda folder: folder / "ε\U0001f4a5",
}


def _touched(path: Path) -> Path:
    path.touch()
    return path


def _loop(path: Path) -> Path:
    path.symlink_to(path)
    return path


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("place", PATHS)
def test_readers_refuse_what_is_no_file(reader: str, place: str, tmp_path: Path) -> None:
    if reader in ("csv", "csv of integers", "parquet"):
        pytest.importorskip("polars")
    if place == "loop" and reader.startswith(("csv", "parquet")):
        for ending in (".csv", ".parquet"):
            _loop(tmp_path / f"loop{ending}")
    path = PATHS[place](tmp_path)
    with pytest.raises(ParameterError):
        READERS[reader](path)


@pytest.mark.parametrize("place", sorted(set(PATHS) - {"unicode", "surrogate", "missing"}))
def test_writers_refuse_what_can_be_no_file(place: str, tmp_path: Path) -> None:
    path = PATHS[place](tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ParameterError):
        _kernel().save(path)
    assert sorted(tmp_path.iterdir()) == before


def parquet(data: dict[str, Any]) -> bytes:
    pl = pytest.importorskip("polars")
    buffer = io.BytesIO()
    pl.DataFrame(data).write_parquet(buffer)
    return buffer.getvalue()


def test_damaged_parquet(tmp_path: Path) -> None:
    whole, rng = parquet({"x": ["a", "b", "a"] * 50}), random.Random(0)
    path = tmp_path / "file.parquet"
    path.write_bytes(whole)
    assert roo.tally_file(path, "x", ["a", "b"]).counts.tolist() == [100, 50]
    for length in range(0, len(whole), 50):
        path.write_bytes(whole[:length])
        with pytest.raises(ParameterError):
            roo.tally_file(path, "x", ["a", "b"])
    for _ in range(60):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(flipped))
        try:
            found = roo.tally_file(path, "x", ["a", "b"])
        except ParameterError:
            continue
        # Parquet has no checksum of its own by default: counts of the letters named, no others.
        assert np.all(found.counts >= 0)


COLUMNS: dict[str, dict[str, Any]] = {
    "nulls": {"x": ["a", None]},
    "floats": {"x": [0.5, 1.5]},
    "nan": {"x": [float("nan"), 1.0]},
    "lists": {"x": [["a"], ["b"]]},
    "structs": {"x": [{"a": 1}, {"a": 2}]},
    "outside": {"x": ["a", "c"]},
    "another": {"y": ["a", "b"]},
    "booleans": {"x": [True, False]},
}


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_another_kind(column: str, tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(parquet(COLUMNS[column]))
    with pytest.raises(ParameterError) as caught:
        roo.tally_file(path, "x", ["a", "b"])
    assert "'c'" not in str(caught.value)

"""Saved mechanisms of each kind, damaged, malformed and adversarial: none is believed."""

from __future__ import annotations

import json
import math
import random
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import DpoptError, NotPrivateError, ParameterError
from dpopt.proofs.saved import seal
from tests.kernel.brute import made_of
from tests.robustness.hostile import more
from tests.shape.checks import loaded_as_it_is, put
from tests.solved import SOLVED, solved

Json = dict[str, Any]
# The design with a delta takes ten times as long to certify as the others.
QUICK = [kind for kind in SOLVED if kind != "majority-delta"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.json"


def content_of(kind: str, path: Path) -> bytes:
    """Return what the file of a solved design holds."""
    solved(kind).save(path)
    return path.read_bytes()


def refused(path: Path, content: bytes) -> DpoptError | None:
    """Load a file; return the error, which is one of ours, or None if it was accepted."""
    path.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = dpopt.load(path)
    except (ParameterError, NotPrivateError) as error:
        return error
    if isinstance(found, dpopt.Design):
        assert found.certificate is not None
    return None


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


WRONG: tuple[object, ...] = (
    *(None, True, "", "x", [], {}, [[]], {"a": 1}, -1, 0, 2, 1.5, -0.0, 1e308, 5e-324),
    *(10**400, -(10**400), "9" * 5000, "-1", "1/0", "0x10", "nan", [None], [[None]] * 2),
    *(math.nan, math.inf, -math.inf),
)
# What JSON may hold and a value of Python may not, or not so long.
BOMBS = (
    *('"1e300000000"', "1e300000000", '"1e-300000000"', '"1/1e300000000"', '"0x1p999999999999"'),
    *("9" * 100_000, f'"{"9" * 100_000}"', f'"0x{"f" * 100_000}"', "1000", "1e300", "[[[]]]"),
    *("[" * depth + "]" * depth for depth in (100, 990, 5000, 100_000)),
)

# --- Under the old hash, nothing is accepted that differs


def cut_off(whole: bytes, rng: random.Random) -> Iterator[bytes]:
    for length in range(0, len(whole.rstrip()), rng.randint(40, 60)):
        yield whole[:length]


def a_flipped_bit(whole: bytes, rng: random.Random) -> Iterator[bytes]:
    for _ in range(more(40)):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        yield bytes(flipped)


def bytes_inserted_removed_and_doubled(whole: bytes, rng: random.Random) -> Iterator[bytes]:
    for _ in range(more(15)):
        at, length = rng.randrange(len(whole)), rng.randint(1, 8)
        yield whole[:at] + whole[at + length :]
        yield whole[: at + length] + whole[at:]
        yield whole[:at] + rng.randbytes(length) + whole[at:]


def a_name_missing(whole: bytes, _: random.Random) -> Iterator[bytes]:
    record = json.loads(whole)
    for key in record:
        yield json.dumps({name: value for name, value in record.items() if name != key}).encode()


def a_name_twice(whole: bytes, _: random.Random) -> Iterator[bytes]:
    """The second would win here, the first elsewhere: a file must not say two things."""
    record = json.loads(whole)
    for name in ("body", "hash", "format"):
        yield (json.dumps(record)[:-1] + f', "{name}": {json.dumps(record[name])}}}').encode()
    body = json.dumps(record["body"])[:-1] + ', "guarantee": {"epsilon": 9.0, "delta": 0.0}}'
    yield json.dumps({**record, "body": "@"}).replace('"@"', body).encode()


def any_value_in_any_place(whole: bytes, rng: random.Random) -> Iterator[bytes]:
    record, texts = json.loads(whole), [*map(json.dumps, WRONG), *BOMBS]
    for place in places(record):
        for text in rng.sample(texts, min(len(texts), more(3))):
            yield json.dumps(put(record, place, "@")).replace('"@"', text).encode()


DAMAGES = (
    *(cut_off, a_flipped_bit, bytes_inserted_removed_and_doubled, a_name_missing, a_name_twice),
    any_value_in_any_place,
)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("kind", QUICK)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_never_believed(
    damage: Callable[[bytes, random.Random], Iterator[bytes]], kind: str, path: Path
) -> None:
    whole = content_of(kind, path)
    for content in damage(whole, random.Random(kind)):
        error = refused(path, content)
        assert len(str(error)) < 1000
        # A blank for another, true for 1, -0.0 for 0: the same mechanism.
        assert error is not None or json.loads(content) == json.loads(whole)
        assert damage is not a_name_twice or "twice" in str(error)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "not a saved dpopt mechanism"),
        ({"schema": 4}, "its schema is 4, not 3"),
        ({"body": []}, "missing"),
        ({"kind": "oracle"}, "kind is 'oracle'"),
        ({"kind": "workload"}, "the parameters of 'workload'"),
    ],
)
def test_an_envelope_says_what_is_wrong_with_it(change: Json, words: str, path: Path) -> None:
    record = json.loads(content_of("kernel-tight", path)) | change
    assert words in str(refused(path, json.dumps(record).encode()))


# --- Under a right hash, which protects from accidents only, what is accepted was proved again


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUICK)
def test_any_value_in_the_body_with_a_right_hash(kind: str, path: Path) -> None:
    record = json.loads(content_of(kind, path))
    rng, tried = random.Random(kind), 0
    for place in places(record["body"]):
        if place[0] == "certificate":
            continue
        for value in rng.sample(WRONG, min(len(WRONG), more(3))):
            try:
                seal(record["kind"], put(record["body"], place, value), path)
            except ValueError:
                continue
            loaded_as_it_is(type(solved(kind).setting), path)
            tried += 1
    assert tried > 10


BREAKING: dict[str, Callable[[list[Any]], list[Any]]] = {
    "kernel-tight": lambda rows: [[str(int(rows[0][0]) + 1), str(int(rows[0][1]) - 1)], rows[1]],
    "reveal-or-obscure": lambda weights: [str(int(weights[0]) - 1), *weights[1:]],
    "roo-two": lambda weights: ["0"] * len(weights),
    # The majority itself, without noise.
    **dict.fromkeys(
        ("majority", "majority-delta"), lambda rows: [[str(sum(map(int, r))), "0"] for r in rows]
    ),
}


@pytest.mark.parametrize(("kind", "change"), BREAKING.items())
@pytest.mark.parametrize("right_hash", [False, True])
def test_weights_that_are_not_private_are_named_so(
    kind: str, change: Callable[[list[Any]], list[Any]], right_hash: bool, path: Path
) -> None:
    record = json.loads(content_of(kind, path))
    body = record["body"]["table"] if isinstance(record["body"]["table"], dict) else record["body"]
    name = "weights" if "weights" in body else "table"
    body[name] = change(body[name])
    content = json.dumps(record).encode()
    if right_hash:
        seal(record["kind"], record["body"], path)
        content = path.read_bytes()
    assert isinstance(refused(path, content), NotPrivateError)


def resealed(path: Path, design: Any, **changes: object) -> Any:
    """Load a design whose file says something else, under a right hash."""
    design.save(path)
    record = json.loads(path.read_text())
    seal(record["kind"], {**record["body"], **changes}, path)
    return dpopt.load(path)


def test_a_guarantee_that_is_a_little_stronger_is_not_private(path: Path) -> None:
    tight = solved("kernel-tight").setting.to_dict()
    less = tight | {"epsilon": math.nextafter(tight["epsilon"], 0.0)}
    with pytest.raises(NotPrivateError, match="inputs 0 and 1"):
        resealed(path, solved("kernel-tight"), setting=less)
    design = made_of([[32, 32], [0, 64]], 0.0, 0.5)
    with pytest.raises(NotPrivateError):
        resealed(path, design, setting=design.setting.to_dict() | {"delta": 0.49})


def test_a_rule_that_stops_too_early_is_refused_at_once(path: Path) -> None:
    """Its first missing q_m is already not private; 1e15 more need not be looked at."""
    setting = {"records": 10**15, "categories": 2, "epsilon": 1e-15, "rule": "exact"}
    with pytest.raises(NotPrivateError):
        resealed(path, solved("roo-two"), setting=setting, units=[str(2**62)] * 3)


def test_what_a_file_says_of_optimality_is_named_as_said(path: Path) -> None:
    made = dpopt.design(dpopt.Majority(5, 0.5, 2.0))
    assert made._stated == ()
    assert "stated" not in repr(made)
    assert "stated_by_file" not in made.to_dict()
    found = resealed(path, made, value=0.1, bound=0.9, gap=0.0, expected_error=0.0)
    # Of these, gamma decides: they are computed from it.
    assert found.value == made.value
    assert found.expected_error == made.expected_error
    # Nothing here can check a bound; the gap is to that bound.
    assert (found.bound, found.gap) == (0.9, -(found.value - 0.9))
    assert found._stated == ("bound",)
    assert found.to_dict()["stated_by_file"] == ["bound"]
    assert "stated_by_file=bound" in repr(found)


# --- What is written


def test_weights_are_decimal_texts_and_beyond_256_bits_hexadecimal(path: Path) -> None:
    design = solved("kernel-tight")
    design.save(path)
    weights = [str(weight) for weight in design.table.weights]
    units = json.loads(path.read_text())["body"]["table"]
    assert units == {"total": str(2**62), "weights": [weights[:2], weights[2:]]}
    design = made_of([[2**299 + 1, 2**299 - 1]] * 2, 0.1)
    design.save(path)
    body = json.loads(path.read_text())["body"]
    assert body["table"]["weights"] == [[hex(2**299 + 1), hex(2**299 - 1)]] * 2
    top, bottom = body["certificate"]["slack_exact"].split("/")
    assert Fraction(int(top, 16), int(bottom, 16)) == design.certificate.slack
    assert dpopt.load(path).table == design.table

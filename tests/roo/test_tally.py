"""Counting against collections.Counter, with every kind of data; errors that show no record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpopt import ParameterError, roo

ALPHABETS: list[list[Hashable]] = [
    ["a", "b", "c"],
    ["1", 1, "True"],
    [1, 2.5, -3],
    [False, True],
    [("x", 1), ("x", 2), frozenset({3})],
    [b"a", "a", 0],
]


def counted(data: object, labels: Any) -> list[int]:
    return roo.tally(data, labels).counts.tolist()


@given(st.sampled_from(ALPHABETS), st.data())
def test_sequences_against_a_counter(labels: list[Hashable], drawn: st.DataObject) -> None:
    records = drawn.draw(st.lists(st.sampled_from(labels), max_size=40))
    found = Counter(records)
    expected = [found[category] for category in labels]
    for data in (records, tuple(records), iter(records), found, dict(found)):
        assert counted(data, labels) == expected


@given(st.lists(st.integers(0, 6), max_size=60), st.sampled_from(["i1", "u1", "i8", "u8", "f8"]))
def test_arrays_against_a_counter(records: list[int], dtype: str) -> None:
    found = Counter(records)
    array = np.array(records, dtype=dtype)
    assert counted(array, 7) == [found[i] for i in range(7)]
    assert counted(records, 7) == counted(array, 7)
    order = [3, 0, 6, 1, 2, 5, 4]
    assert counted(array, order) == [found[i] for i in order]
    shifted = range(10, 24, 2)
    assert counted(2 * array + 10, shifted) == counted(array, 7)
    assert counted((2 * array + 10).tolist(), shifted) == counted(array, 7)


@given(st.lists(st.sampled_from(["x", "yy", ""]), max_size=30))
def test_arrays_of_strings(records: list[str]) -> None:
    expected = [Counter(records)[category] for category in ("yy", "", "x")]
    assert counted(np.array(records, dtype="U3"), ("yy", "", "x")) == expected
    assert counted(np.array(records, dtype=object), ("yy", "", "x")) == expected


def test_long_data_of_every_dtype() -> None:
    records = np.random.default_rng(1).integers(0, 4, 1000)
    expected = np.bincount(records, minlength=4).tolist()
    mixed = [(0, 7, 2.5, True)[r] for r in records]
    for data in (records, records[::-1], records.astype(float), records.tolist()):
        assert counted(data, 4) == expected
        assert counted(data, [0, 1, 2, 3]) == expected
    assert counted(mixed, [0, 7, 2.5, True]) == expected
    assert counted(records.astype(str), ["0", "1", "2", "3"]) == expected


def test_booleans_are_not_numbers_nor_numbers_text() -> None:
    labels = [True, 0, "1"]
    assert counted([True, True, 0, "1", np.True_, np.int64(0)], labels) == [3, 2, 1]
    assert counted({True: 4, 0: 2}, labels) == [4, 2, 0]
    for data in ([1], [1.0], [False], ["0"], [np.int8(1)], {1: 2}, np.array([1]), np.array([1.0])):
        with pytest.raises(ParameterError, match="none of the labels"):
            counted(data, labels)
    for data in ([True], np.array([True]), ["1"], np.array(["1"]), {True: 1}, [b"1"], [1.5], [1j]):
        with pytest.raises(ParameterError, match="none of the labels"):
            counted(data, 2)
    assert counted([1.0, 0, Decimal(1)], 2) == counted([1.0, 0, Decimal(1)], (0, 1)) == [1, 2]


class Colour(Enum):
    RED = 1
    BLUE = 2


def test_any_hashable_category_is_one() -> None:
    assert counted([Colour.BLUE, Colour.RED, Colour.BLUE], list(Colour)) == [1, 2]
    big = 2**70
    assert counted([big, big + 1], [big + 1, big, 3]) == [1, 1, 0]
    assert counted([big + 1], range(big, big + 3)) == [0, 1, 0]
    assert counted(np.array([2**63 + 1], dtype="u8"), range(2**63, 2**63 + 3)) == [0, 1, 0]
    assert counted(np.array([2**53], dtype=float), [2**53 + 1, 2**53]) == [0, 1]


SECRET = "6174"
OUTSIDE: list[object] = [
    *([0, 6174], np.array([0, 6174]), np.array([0, -6174]), np.array([0, 3]), np.array([0, -1])),
    *(np.array([0.0, 6174.5]), np.array([0, SECRET], dtype=object), ["0", SECRET]),
    *({0: 1, 6174: 2}, [0, None], [0, float("nan")], [0, float("inf")], np.array([0.0, np.nan])),
    *(np.ma.masked_array([0, 1], mask=[False, True]), [0, [6174]], [True, [6174]]),
]


@pytest.mark.parametrize("labels", [3, (0, 1, 2), range(0, 6, 2)])
def test_a_record_outside_is_refused_and_not_shown(labels: Any) -> None:
    for data in (*OUTSIDE, iter([6174])):
        with pytest.raises(ParameterError, match="must be public") as caught:
            roo.tally(data, labels)
        assert SECRET not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_no_records_and_tallies_of_tallies() -> None:
    empty = roo.tally([], 3)
    assert empty.counts.tolist() == [0, 0, 0]
    assert roo.tally(empty, range(3)) is empty
    assert counted({}, 2) == [0, 0]
    assert counted(np.array([]), 2) == [0, 0]
    assert counted(range(5), 6) == [1, 1, 1, 1, 1, 0]
    assert not empty.counts.flags.writeable
    assert roo.tally(np.array([2, 2]), np.array([2, 7])).labels == (2, 7)


def test_pandas_columns() -> None:
    pd = pytest.importorskip("pandas")
    words = ["b", "a", "b"]
    for column in (
        pd.Series(words),
        pd.Series(words, dtype=object),
        pd.Series(words, dtype="string"),
        pd.Series(words, dtype="category"),
        pd.Series(pd.Categorical(words, categories=["a", "b", "unused"])),
        pd.Index(words),
    ):
        assert counted(column, ("a", "b")) == [1, 2]
    for dtype in ("int64", "uint8", "Int64", "float64"):
        assert counted(pd.Series([2, 0, 2], dtype=dtype), 3) == [1, 0, 2]
    for dtype in ("bool", "boolean", object):
        column = pd.Series([True, False, True], dtype=dtype)
        assert counted(column, (False, True)) == [1, 2]
        with pytest.raises(ParameterError, match="none of the labels"):
            counted(column, 2)
    assert counted(pd.Series([True, 0, True], dtype=object), (True, 0, "1")) == [2, 1, 0]
    with pytest.raises(ParameterError, match="none of the labels"):
        counted(pd.Series([True, 1, 0], dtype=object), (True, 0, "1"))
    days = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01"]))
    assert counted(days, (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"))) == [2, 1]
    for column in (
        pd.Series([1, None]),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", None]),
        pd.Series([1, 6174]),
    ):
        with pytest.raises(ParameterError, match="none of the labels") as caught:
            counted(column, (1, "a"))
        assert SECRET not in str(caught.value)
    with pytest.raises(ParameterError, match="type DataFrame"):
        counted(pd.DataFrame({"x": [1]}), 2)


def test_polars_columns() -> None:
    pl = pytest.importorskip("polars")
    words = ["b", "a", "b"]
    for dtype in (pl.String, pl.Categorical, pl.Enum(["a", "b", "unused"]), pl.Object):
        assert counted(pl.Series("count", words, dtype=dtype), ("a", "b")) == [1, 2]
    for dtype in (pl.Int64, pl.UInt8, pl.Float32):
        assert counted(pl.Series([2, 0, 2], dtype=dtype), 3) == [1, 0, 2]
    flags = pl.Series([True, False, True])
    assert counted(flags, (False, True)) == [1, 2]
    for column in (flags, pl.Series([1, None]), pl.Series([1.0, float("nan")]), pl.Series([6174])):
        with pytest.raises(ParameterError, match="none of the labels") as caught:
            counted(column, 2)
        assert SECRET not in str(caught.value)
    with pytest.raises(ParameterError, match="type DataFrame"):
        counted(pl.DataFrame({"x": [1]}), 2)
    with pytest.raises(ParameterError, match="type LazyFrame"):
        counted(pl.LazyFrame({"x": [1]}), 2)


def test_counts_by_category_are_those_in_the_order_of_the_alphabet() -> None:
    by_category, in_order = (
        roo.Tally.of_counts(counts, ["a", "b"]) for counts in ({"b": 2, "a": 3}, [3, 2])
    )
    assert by_category.counts.tolist() == in_order.counts.tolist()
    assert roo.RooSetting(5, 2, 1.0).fitting({1: 2, 0: 3}).tolist() == [3, 2]

"""Points, values of JSON, and which functions may share a table."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpopt import ParameterError
from dpopt.sweeps.grid import fingerprint, name_of, plain, points_of


def test_a_mapping_of_lists_is_a_product_whose_last_parameter_is_fastest() -> None:
    points = points_of({"k": [3, 5], "epsilon": np.array([0.1, 0.2])})
    assert [dict(p.parameters) for p in points] == [
        {"k": 3, "epsilon": 0.1},
        {"k": 3, "epsilon": 0.2},
        {"k": 5, "epsilon": 0.1},
        {"k": 5, "epsilon": 0.2},
    ]


def test_a_list_of_mappings_is_taken_as_it_stands() -> None:
    voters = ((5, 0.1), (6, 0.2))
    points = points_of([{"m": 2, "voters": voters}, {"voters": (), "m": np.int64(1)}])
    assert points[0].arguments["voters"] is voters
    assert points[0].parameters == {"m": 2, "voters": [[5, 0.1], [6, 0.2]]}
    assert points[1].key == '{"m": 1, "voters": []}'


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "grid is empty"),
        ([], "grid is empty"),
        ({"k": []}, "grid is empty"),
        ({"k": 3}, "grid has 3 for k; it must be a list"),
        ({"k": "abc"}, "grid has 'abc' for k; it must be a list"),
        ({"k": [1, 1]}, 'the point {"k": 1} twice'),
        ({3: [1]}, "a parameter named 3"),
        ({"a b": [1]}, "a parameter named 'a b'"),
        ({"failure": [1]}, "a parameter named 'failure'"),
        ({"k": [Fraction(1, 2)]}, r"k holds 1/2 of type Fraction"),
        (7, "grid is 7"),
        ("ab", "grid is 'ab'"),
        ([3], "grid holds 3"),
        ([{}], "grid holds {}"),
        ([{"a": 1}, {"b": 1}], 'the point {"b": 1}; each point must have the parameters a'),
    ],
)
def test_a_bad_grid_is_refused(grid: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        points_of(grid)


def test_plain_values() -> None:
    value = {
        "int": np.int64(3),
        "float": np.float32(0.5),
        "bool": np.True_,
        "text": np.str_("x"),
        "array": np.arange(4).reshape(2, 2),
        "tuple": (1, None, [math.inf]),
    }
    found = plain(value, "result")
    assert found == {
        "int": 3,
        "float": 0.5,
        "bool": True,
        "text": "x",
        "array": [[0, 1], [2, 3]],
        "tuple": [1, None, [math.inf]],
    }
    assert [type(found[name]) for name in ("int", "float", "bool", "text")] == [
        int,
        float,
        bool,
        str,
    ]


@pytest.mark.parametrize(
    "value", [object(), 1j, {1: 2}, {1, 2}, [b"x"], np.datetime64("2026-01-01")]
)
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(ParameterError, match=r"result holds .* of type .*; it must consist of"):
        plain(value, "result")


def adding(constant: float) -> Callable[..., float]:
    return lambda a: a + constant


def taking(a: float, b: float = 1.0) -> float:
    return a + b


def nested(a: str) -> bool:
    return a in {"x", "y", "z"} and any(a == letter for letter in "xyz")


class Model:
    def __call__(self, a: float) -> float:
        return a


def test_the_same_function_has_the_same_fingerprint() -> None:
    assert fingerprint(adding(1.0), None) == fingerprint(adding(1.0), None)
    assert fingerprint(taking, None) == fingerprint(taking, None)
    assert fingerprint(partial(taking, b=2), None) == fingerprint(partial(taking, b=2), None)
    assert fingerprint(Model(), None) == fingerprint(Model(), None)


def test_functions_that_differ_have_other_fingerprints() -> None:
    functions = [
        adding(1.0),
        adding(2.0),
        taking,
        partial(taking, b=2),
        partial(taking, b=3),
        lambda a: a + 1,
        lambda a: a + 2,
        lambda a, b=1: a + b,
        lambda a, b=2: a + b,
        nested,
        Model(),
        math.sqrt,
    ]
    assert len({fingerprint(function, None) for function in functions}) == len(functions)


def test_a_version_stands_for_the_code() -> None:
    assert fingerprint(adding(1.0), "1") == fingerprint(adding(2.0), "1")
    assert fingerprint(adding(1.0), "1") != fingerprint(adding(1.0), "2")
    assert fingerprint(adding(1.0), "1") != fingerprint(taking, "1")


def test_names() -> None:
    assert name_of(taking).endswith(".taking")
    assert name_of(partial(taking, b=2)) == name_of(taking)
    assert name_of(Model()).endswith(".Model")
    assert name_of(math.sqrt) == "math.sqrt"

"""What users read of any public object: its repr, and the errors of calls that cannot be."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from dpopt import ParameterError, kernel, majority, roo
from tests.robustness.test_public_fuzz import NAMES, PATHS, called

# Arrays of a few numbers say more than their shape; a certificate's fractions are exact.
SPELLED = {"BatchLaw", "Certificate", "Rows"}


def parts(value: object) -> Iterator[object]:
    """Yield the dataclasses that a value is, or holds."""
    if isinstance(value, tuple):
        for part in value:
            yield from parts(part)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))


@pytest.mark.parametrize("name", [name for name in NAMES if not PATHS & set(called(name)[1])])
def test_what_a_function_returns_shows_in_one_line(name: str) -> None:
    function, arguments = called(name)
    for part in (*parts(function(**arguments)), *parts(tuple(arguments.values()))):
        if type(part).__name__ not in SPELLED:
            shown = repr(part)
            assert "\n" not in shown, shown
            assert len(shown) < 300, shown


def test_counts_by_letter() -> None:
    sampler = roo.min_count(5, 2, 1.0)
    by_letter, in_order = (
        sampler.simulate(roo.Tally.of_counts(counts, ["a", "b"]), np.random.default_rng(3))
        for counts in ({"b": 2, "a": 3}, [3, 2])
    )
    assert by_letter == in_order
    np.testing.assert_array_equal(
        sampler.setting.fitting({1: 2, 0: 3}),
        [3, 2],
    )
    with pytest.raises(ParameterError, match="outside the alphabet"):
        sampler.release({"c": 5})


@pytest.mark.parametrize("unordered", [{0: 1, 1: 1}, {1, 2}, frozenset({1})])
def test_what_has_no_order_is_no_array(unordered: object) -> None:
    design = majority.design(3, 0.1, 1.0)
    with pytest.raises(ParameterError, match=rf"votes is a {type(unordered).__name__}; .* order"):
        design.release(unordered)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=rf"loss is a {type(unordered).__name__}"):
        kernel.KernelSetting(unordered, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["gurobi", "Mosek"])
def test_a_backend_behind_cvxpy_is_named_as_it_is_written(name: str) -> None:
    with pytest.raises(ParameterError, match=r"such as cvxpy:CLARABEL\."):
        majority.design(3, 0.1, 1.0, backend=name)


@pytest.mark.parametrize("ending", [".pkl", ".npz", ".csv", ".PNG", ".yaml"])
def test_a_file_of_json_has_no_ending_of_another_format(ending: str) -> None:
    for result in (majority.design(3, 0.1, 1.0), roo.min_count(5, 2, 1.0)):
        with pytest.raises(ParameterError, match=r"its ending must be \.json"):
            result.save(f"result{ending}")

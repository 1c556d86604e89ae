"""Tables of results in pandas and polars, columns of both as input; labels name categories."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import ParameterError, Problem, public_prior, roo, solve, vote
from dpopt.interop.frames import to_frame

pd: Any = pytest.importorskip("pandas", reason="pandas is not installed")
pl: Any = pytest.importorskip("polars", reason="polars is not installed")

LIBRARIES = ("pandas", "polars")
MAKERS = {"pandas": pd.Series, "polars": pl.Series}
TABLES = {
    "pandas": lambda rows, names: pd.DataFrame(rows, columns=names),
    "polars": lambda rows, names: pl.DataFrame(rows, schema=names, orient="row"),
}
NAMES = ["x", "y", "z"]


def columns_of(frame: Any) -> dict[str, list[Any]]:
    return {name: list(frame[name]) for name in frame.columns}


def frame_of(result: object, library: str) -> dict[str, list[Any]]:
    frame = to_frame(result, library)
    assert type(frame).__module__.split(".")[0] == library
    return columns_of(frame)


@pytest.fixture(scope="module")
def prior() -> public_prior.PublicDistribution:
    return public_prior.public_distribution([0.5, 0.3, 0.2], NAMES)


@pytest.mark.parametrize("library", LIBRARIES)
def test_majority(library: str) -> None:
    design = dpopt.design(dpopt.Majority(5, 0.5, 2))
    assert frame_of(design, library) == {"l": list(range(6)), "gamma": design.gamma.tolist()}
    batch = vote(design, np.ones((4, 5), dtype=int), trained_once=False, answered=10)
    assert frame_of(batch, library) == {
        "query": [10, 11, 12, 13],
        "label": batch.labels.tolist(),
    }


@pytest.mark.parametrize("library", LIBRARIES)
def test_labels_keep_their_names(library: str, prior: public_prior.PublicDistribution) -> None:
    users = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])
    for made in (
        dpopt.design(dpopt.PublicPrior(prior, 0.8)),
        dpopt.design(dpopt.Population(prior, 0.8, users)),  # type: ignore[arg-type]
    ):
        found = frame_of(made, library)
        assert found["input"] == ["x"] * 3 + ["y"] * 3 + ["z"] * 3
        assert found["output"] == NAMES * 3
        for x, y, p in zip(*found.values(), strict=True):
            assert made.kernel[NAMES.index(x), NAMES.index(y)] == p
    assert frame_of(prior, library) == {"category": NAMES, "mass": prior.masses.tolist()}
    numbered = dpopt.design(dpopt.PublicPrior([0.5, 0.3, 0.2], 0.8))
    assert frame_of(numbered, library)["input"] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("library", LIBRARIES)
def test_solution_has_variables_and_duals(library: str) -> None:
    problem = Problem("two variables")
    problem.add_variables("a", 2, lower=0.0, upper=4.0)
    problem.add_variables("b", 1, lower=0.0, upper=1.0)
    problem.maximise({"a": [1.0, 2.0], "b": 1.0})
    problem.add_rows("cap", {"a": np.ones((1, 2))}, upper=5.0)
    solution = solve(problem)
    found = frame_of(solution, library)
    assert found["kind"] == ["variable"] * 3 + ["dual"]
    assert found["name"] == ["a", "a", "b", "cap"]
    assert found["index"] == [0, 1, 0, 0]
    # The dearest variable is full, the cap's next unit goes to the other one.
    assert found["value"] == pytest.approx([1.0, 4.0, 1.0, 1.0])


@pytest.mark.parametrize("library", LIBRARIES)
def test_priors_and_own_labels_in(library: str) -> None:
    column = MAKERS[library]
    made = public_prior.public_distribution(column([0.5, 0.3, 0.2]), column(NAMES))
    assert list(made.labels) == NAMES
    assert made.masses.tolist() == [0.5, 0.3, 0.2]
    certain = dpopt.design(dpopt.PublicPrior(made, 600.0))
    assert certain.release(column(["z", "x", "x"])) == ["z", "x", "x"]
    assert certain.release(public_prior.draw_own_category(column([0, 5, 0]), NAMES)) == "y"
    counts = TABLES[library]([[1, 0, 0], [0, 0, 7]], NAMES)
    assert certain.release(public_prior.draw_own_category(counts, NAMES)) == ["x", "z"]
    numbered = dpopt.design(dpopt.PublicPrior(column([0.5, 0.3, 0.2]), 600.0))
    assert np.array_equal(np.asarray(numbered.release(column([2, 0]))), [2, 0])


@pytest.mark.parametrize("library", LIBRARIES)
def test_losses_in(library: str) -> None:
    loss = TABLES[library]([[0.0, 1.0], [1.0, 0.0]], ["keep", "flip"])
    design = dpopt.design(dpopt.Kernel(loss, np.log(3)))
    assert design.kernel == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]), abs=1e-9)


LETTERS = ["a", "b", "c"]


def test_counts_follow_their_index() -> None:
    counted = pd.Series(["c", "a", "c", "c"]).value_counts()
    assert roo.Tally.of_counts(counted, LETTERS).counts.tolist() == [1, 0, 3]
    numbered = pd.Series([3, 0, 2]).value_counts()
    assert roo.Tally.of_counts(numbered, 4).counts.tolist() == [1, 0, 1, 1]
    assert roo.Tally.of_counts(pd.Series([1, 0, 3]), LETTERS).counts.tolist() == [1, 0, 3]
    only = roo.Tally.of_counts(pd.Series({"b": 4}), LETTERS)
    assert dpopt.design(dpopt.RevealOrObscure(4, 3, 600.0)).release(only) == "b"
    with pytest.raises(ParameterError, match="none of the labels"):
        roo.Tally.of_counts(pd.Series({"a": 1, "b": 2, "d": 1}), LETTERS)


def test_priors_follow_their_index() -> None:
    masses = pd.Series({"x": 0.5, "y": 0.3, "z": 0.2})
    assert public_prior.public_distribution(masses).labels == ("x", "y", "z")
    numbered = public_prior.public_distribution(masses.reset_index(drop=True))
    assert list(numbered.labels) == [0, 1, 2]
    assert public_prior.public_distribution(masses, ["u", "v", "w"]).labels == ("u", "v", "w")


def test_users_counts_follow_their_labels() -> None:
    prior = public_prior.public_distribution([0.5, 0.3, 0.2], LETTERS)
    sure = dpopt.design(dpopt.PublicPrior(prior, 600.0))
    assert public_prior.draw_own_category(pd.Series({"c": 5, "a": 0, "b": 0}), LETTERS) == "c"
    for table in (pd.DataFrame, pl.DataFrame):
        users = table({"c": [1, 0], "b": [0, 0], "a": [0, 1]})
        assert sure.release(public_prior.draw_own_category(users, LETTERS)) == ["c", "a"]
        other = table({"u": [1, 0], "v": [0, 0], "w": [0, 1]})
        assert sure.release(public_prior.draw_own_category(other, LETTERS)) == ["a", "c"]


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "code"),
    [
        *(
            (name, f"frames.to_frame(dpopt.design(dpopt.Majority(3, 0.5, 1)), {name!r})")
            for name in LIBRARIES
        ),
        ("dp_accounting", "import dpopt.interop.accounting"),
        ("opendp", "import dpopt.interop.opendp"),
        ("sklearn", "import dpopt.interop.sklearn"),
    ],
)
def test_without_a_library_the_error_names_the_extra(library: str, code: str) -> None:
    """None is loaded before it is asked for."""
    start = (
        "import sys\nimport dpopt\nfrom dpopt.interop import frames\n"
        f"assert {library!r} not in sys.modules; sys.modules[{library!r}] = None\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", start + code], capture_output=True, text=True, check=False
    )
    assert "ImportError: " in done.stderr
    assert "dpopt[interop]" in done.stderr

"""Labels of pandas and polars name categories; no position is taken where a label is there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import dpopt
from dpopt import ParameterError, public_prior, roo

pd: Any = pytest.importorskip("pandas", reason="pandas is not installed")
pl: Any = pytest.importorskip("polars", reason="polars is not installed")

PANDAS = ("pandas", "polars")
LABELS = ["a", "b", "c"]


def test_counts_follow_their_index() -> None:
    counted = pd.Series(["c", "a", "c", "c"]).value_counts()
    assert roo.Tally.of_counts(counted, LABELS).counts.tolist() == [1, 0, 3]
    assert roo.Tally.of_counts(pd.Series([3, 0, 2]).value_counts(), 4).counts.tolist() == [
        1,
        0,
        1,
        1,
    ]
    assert roo.Tally.of_counts(pd.Series([1, 0, 3]), LABELS).counts.tolist() == [1, 0, 3]
    only = roo.Tally.of_counts(pd.Series({"b": 4}), LABELS)
    assert dpopt.design(dpopt.RevealOrObscure(4, 3, 600.0)).release(only) == "b"
    with pytest.raises(ParameterError, match="none of the labels"):
        roo.Tally.of_counts(pd.Series({"a": 1, "b": 2, "d": 1}), LABELS)


def test_priors_follow_their_index() -> None:
    masses = pd.Series({"x": 0.5, "y": 0.3, "z": 0.2})
    assert public_prior.public_distribution(masses).labels == ("x", "y", "z")
    assert list(public_prior.public_distribution(masses.reset_index(drop=True)).labels) == [
        0,
        1,
        2,
    ]
    assert public_prior.public_distribution(masses, ["u", "v", "w"]).labels == ("u", "v", "w")


def test_users_counts_follow_their_labels() -> None:
    prior = public_prior.public_distribution([0.5, 0.3, 0.2], LABELS)
    sure = dpopt.design(dpopt.PublicPrior(prior, 600.0))
    assert public_prior.draw_own_category(pd.Series({"c": 5, "a": 0, "b": 0}), LABELS) == "c"
    for table in (pd.DataFrame, pl.DataFrame):
        users = table({"c": [1, 0], "b": [0, 0], "a": [0, 1]})
        assert sure.release(public_prior.draw_own_category(users, LABELS)) == ["c", "a"]
        other = table({"u": [1, 0], "v": [0, 0], "w": [0, 1]})
        assert sure.release(public_prior.draw_own_category(other, LABELS)) == ["a", "c"]


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "code"),
    [
        *(
            (name, f"frames.to_frame(dpopt.design(dpopt.Majority(3, 0.5, 1)), {name!r})")
            for name in PANDAS
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

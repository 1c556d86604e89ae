"""The classifier under scikit-learn's own checks of estimators."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.linear_model import LogisticRegression  # pyright: ignore[reportMissingImports]
from sklearn.neighbors import KNeighborsClassifier  # pyright: ignore[reportMissingImports]
from sklearn.utils.estimator_checks import (  # pyright: ignore[reportMissingImports]
    parametrize_with_checks,
)

from dpopt.interop.sklearn import PrivateVotingClassifier
from tests.robustness.hostile import NIGHTLY

# Three teachers may name three classes, and here they do, for a quarter of the rows and more.
EXCEPTIONS = {
    "check_supervised_y_2d": (
        "it compares two predictions of the same rows, and ties are broken at random in each"
    )
}


def voting(base: Any, teachers: int) -> PrivateVotingClassifier:
    """A label differs from the plurality with probability below 2 e^-20, so that checks agree."""
    return PrivateVotingClassifier(
        teachers="plain",
        epsilon=20.0,
        estimator=base,
        n_estimators=teachers,
        classes="in-y",
        random_state=0,
    )


@pytest.mark.every_case
@pytest.mark.slow_after(1)
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        voting(LogisticRegression(), 1),
        *([voting(KNeighborsClassifier(1), 3)] if NIGHTLY else []),
    ],
)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    name = check.func.__name__
    if estimator.n_estimators > 1 and name in EXCEPTIONS:
        # By chance both predictions are the same now and then: it is not expected to fail either.
        pytest.skip(EXCEPTIONS[name])
    check(estimator)

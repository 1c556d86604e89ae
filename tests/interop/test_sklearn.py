"""The voting classifier on scikit-learn's digits: its distribution, its ledger, its refusals."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2

from dpopt import Guarantee, ParameterError
from dpopt.privacy import general_composition, simple_composition
from tests.oracles import poisson_binomial

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import BaseEstimator, ClassifierMixin, clone  # pyright: ignore[reportMissingImports]
from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]
from sklearn.naive_bayes import GaussianNB  # pyright: ignore[reportMissingImports]

from dpopt.interop.sklearn import PrivateVotingClassifier

VOTERS, EPSILON, ALLOWANCE = 11, 1.0, 2.0
TRUTHFUL = math.exp(EPSILON) / (1 + math.exp(EPSILON))
ALARM = 1e-9


class RandomisedVoter(ClassifierMixin, BaseEstimator):
    """Randomised response on each prediction: the class that `model` predicts with chance TRUTHFUL.

    Each prediction is EPSILON-DP in all of the training data, whatever the model is.
    """

    def __init__(self, model: Any, seed: int) -> None:
        self.model = model
        self.seed = seed

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        self.model_ = clone(self.model).fit(X, y)
        self.classes_ = self.model_.classes_
        self.n_features_in_ = self.model_.n_features_in_
        self.rng_ = np.random.default_rng(self.seed)
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        truth = self.model_.predict(X) == self.classes_[1]
        kept = self.rng_.random(truth.size) < TRUTHFUL
        return self.classes_[np.where(kept, truth, ~truth).astype(int)]


class Constant(BaseEstimator):
    """Predicts what it is told."""

    def __init__(self, label: Any = 1, classes: Any = (0, 1), features: int | None = 2) -> None:
        self.label, self.classes, self.features = label, classes, features
        self.classes_ = np.array(classes)
        if features is not None:
            self.n_features_in_ = features

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        return np.full(len(np.asarray(X)), self.label)


@pytest.fixture(scope="module")
def digits() -> tuple[npt.NDArray[Any], ...]:
    """3 against 8: training rows, their labels, test rows, their labels."""
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, (3, 8))
    X, y = X[kept] + np.random.default_rng(0).normal(scale=0.5, size=X[kept].shape), y[kept]
    order = np.random.default_rng(1).permutation(y.size)
    train, test = order[:257], order[257:]
    return X[train], y[train], X[test], y[test]


@pytest.fixture(scope="module")
def voters(digits: tuple[npt.NDArray[Any], ...]) -> list[RandomisedVoter]:
    X, y = digits[:2]
    return [
        RandomisedVoter(GaussianNB(var_smoothing=1e-2), seed).fit(X[seed::VOTERS], y[seed::VOTERS])
        for seed in range(VOTERS)
    ]


def classifier(voters: list[Any], **changed: Any) -> PrivateVotingClassifier:
    given = {
        "teachers": "private",
        "epsilon": EPSILON,
        "allowance": ALLOWANCE,
        "trained_once": False,
    }
    return PrivateVotingClassifier(voters, **{**given, **changed})


def exact_chances(
    fitted: PrivateVotingClassifier, voters: list[Any], X: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Pr[second class] for each row: the pmf of L by convolution, then the certified gamma."""
    table: Any = fitted.design_.table
    answers = np.array(table.weights).reshape(-1, 2) / table.total
    chance = np.concatenate([answers[::-1, 1], answers[:, 0]])
    ones = np.array([voter.model_.predict(X) == voter.classes_[1] for voter in voters])
    chances = []
    for column in ones.T:
        pmf = poisson_binomial(TRUTHFUL if one else 1 - TRUTHFUL for one in column)
        chances.append(float(pmf @ chance))
    return np.array(chances)


@pytest.mark.slow
def test_labels_and_accuracy_follow_the_exact_distribution(
    digits: tuple[npt.NDArray[Any], ...], voters: list[RandomisedVoter]
) -> None:
    X, y = digits[2:]
    times = 400
    fitted = classifier(voters).fit()
    chances = exact_chances(fitted, voters, X)
    drawn = fitted.predict(np.tile(X, (times, 1))).reshape(times, -1)
    assert set(np.unique(drawn)) == {3, 8}
    counts = np.count_nonzero(drawn == 8, axis=0)
    variance = times * chances * (1 - chances)
    assert variance.min() > 10
    statistic = float(np.sum((counts - times * chances) ** 2 / variance))
    assert chi2.sf(statistic, chances.size) > ALARM
    assert chi2.cdf(statistic, chances.size) > ALARM
    right = np.where(y == 8, chances, 1 - chances)
    accuracy = float(np.mean(drawn == y))
    spread = math.sqrt(float(np.sum(right * (1 - right))) / times) / y.size
    assert abs(accuracy - right.mean()) < 7 * spread
    alone = [np.mean(voter.model_.predict(X) == y) for voter in voters]
    assert right.mean() > TRUTHFUL * max(alone) + (1 - TRUTHFUL) * (1 - max(alone))


def test_the_ledger_composes(voters: list[RandomisedVoter]) -> None:
    fitted = classifier(voters, epsilon=0.1, allowance=3).fit()
    each, row = Guarantee(3 * 0.1), np.zeros((1, 64))
    fitted.predict(np.tile(row, (20, 1)))
    assert fitted.spent_ == simple_composition(each, 20)
    fitted.predict(np.tile(row, (80, 1)))
    assert fitted.queries_ == 100
    assert fitted.spent_ == general_composition(each, 100, 1e-6)


def test_voters_trained_once() -> None:
    voters = [Constant() for _ in range(5)]
    given = {"epsilon": 0.1, "allowance": 3, "voter_delta": 1e-5, "trained_once": True}
    given |= {"teachers": "private"}
    fitted = PrivateVotingClassifier(voters, **given).fit()
    fitted.predict(np.zeros((1, 2)))
    assert fitted.spent_ == Guarantee(3 * 0.1, 3 * 1e-5)
    fitted.predict(np.zeros((500, 2)))
    # Rounded up: five of the float 0.1 are more than a half.
    assert fitted.spent_ == Guarantee(math.nextafter(0.5, 1.0), math.nextafter(5e-5, 1.0))
    apart = PrivateVotingClassifier(voters, **given, voters_per_record=1).fit()
    apart.predict(np.zeros((500, 2)))
    assert apart.spent_ == Guarantee(0.1, 1e-5)


def test_a_budget_refuses_before_a_draw(
    voters: list[RandomisedVoter], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = classifier(voters, epsilon=0.125, budget_epsilon=1.0).fit()
    fitted.predict(np.zeros((3, 64)))

    def refuse(*_: object) -> None:
        raise AssertionError("something was drawn")

    with monkeypatch.context() as patch:
        patch.setattr("dpopt.privacy.release.Pmfs.draw", refuse)
        with pytest.raises(ParameterError, match="queries is 5, .* affords 4"):
            fitted.predict(np.zeros((2, 64)))
        with pytest.raises(ParameterError, match="at least one query"):
            classifier([Constant() for _ in range(3)]).fit().predict(np.zeros((0, 2)))
    assert fitted.queries_ == 3
    fitted.predict(np.zeros((1, 64)))
    assert fitted.spent_ == Guarantee(1.0)


def test_a_budget_with_delta_allows_general_composition(voters: list[RandomisedVoter]) -> None:
    given = {"epsilon": 0.1, "allowance": 1.0, "budget_epsilon": 7.0}
    rows = np.zeros((100, 64))
    with pytest.raises(ParameterError, match="queries is 100, .* affords 69, and 100 spend"):
        classifier(voters, **given).fit().predict(rows)
    fitted = classifier(voters, **given, budget_delta=1e-5).fit()
    fitted.predict(rows)
    assert fitted.spent_ == general_composition(Guarantee(0.1), 100, 1e-6)
    assert fitted.spent_.epsilon < 7.0


def test_a_clone_of_bare_estimators_is_not_fitted(voters: list[RandomisedVoter]) -> None:
    with pytest.raises(ParameterError, match=r"estimators\[0\] has no classes_"):
        clone(classifier(voters).fit()).fit()


def test_fitting_again_does_not_forget() -> None:
    fitted = classifier([Constant() for _ in range(3)], epsilon=0.5).fit().fit()
    fitted.predict(np.zeros((7, 2)))
    # Votes drawn afresh compose, whose estimators they may be.
    fitted.set_params(estimators=[Constant(0) for _ in range(3)], rule="ladder").fit()
    assert fitted.queries_ == 7
    with pytest.raises(ParameterError, match="queries_ is 7"):
        fitted.set_params(epsilon=0.1).fit()
    # Estimators trained once share what they spend with no others.
    voters = [Constant(), Constant(), Constant()]
    once = classifier(voters, trained_once=True).fit()
    once.predict(np.zeros((2, 2)))
    assert once.fit().queries_ == 2
    with pytest.raises(ParameterError, match="queries_ is 2"):
        once.set_params(estimators=[Constant(), Constant(), Constant()]).fit()


def test_parameters_changed_after_the_fit_do_not_touch_the_ledger() -> None:
    fitted = classifier([Constant() for _ in range(3)], epsilon=0.5, budget_epsilon=2.0).fit()
    fitted.set_params(epsilon=1e-3, budget_epsilon=1e6, trained_once=True, estimators=[])
    fitted.predict(np.zeros((2, 2)))
    assert fitted.spent_ == Guarantee(2.0)
    with pytest.raises(ParameterError, match="affords 2"):
        fitted.predict(np.zeros((1, 2)))


class Short(Constant):
    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        return super().predict(X)[1:]


class Long(Constant):
    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        return np.ones(len(np.asarray(X)) + 3)


class Raising(Constant):
    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:  # noqa: ARG002
        raise ValueError("what it was trained on")


class Wide(Constant):
    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        return np.ones((len(np.asarray(X)), 2))


@pytest.mark.parametrize(
    ("odd", "labels"),
    [
        (Constant(1), [1, 1, 1, 1]),
        (Constant(0), [0, 0, 0, 0]),
        (Constant(2), [0, 0, 0, 0]),
        (Constant(None), [0, 0, 0, 0]),
        (Constant("1"), [0, 0, 0, 0]),
        (Short(), [1, 1, 1, 0]),
        (Long(), [1, 1, 1, 1]),
        (Raising(), [0, 0, 0, 0]),
        (Wide(), [0, 0, 0, 0]),
    ],
)
def test_whatever_an_estimator_predicts_is_a_vote(odd: Any, labels: list[int]) -> None:
    # At m = K = 3 the majority itself is private, so that the labels tell the votes.
    fitted = classifier([Constant(1), Constant(0), odd], allowance=3).fit()
    assert fitted.predict(np.zeros((4, 2))).tolist() == labels
    assert fitted.queries_ == 4

"""The voting classifier: the distribution of its labels, its parts, its ledger, what it refuses."""

# pyright: reportMissingImports=false

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array

from dpopt import Guarantee, Majority, Multiclass, ParameterError, Plurality
from dpopt.privacy import exp_lower, general_composition, simple_composition
from experiments.ensembles.ladder import ladder
from tests.oracles import follow
from tests.robustness.hostile import NIGHTLY

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpopt.interop.sklearn import PrivateVotingClassifier

FRUIT = ("apple", "pear", "plum")


class Constant(ClassifierMixin, BaseEstimator):
    """Predicts what it is told, or what a function makes of the number of rows."""

    def __init__(self, label: Any = "apple", classes: Any = FRUIT, features: Any = None) -> None:
        self.label, self.classes, self.features = label, classes, features
        self.classes_ = np.array(classes)
        if features is not None:
            self.n_features_in_ = features

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        label, rows = self.label, len(np.asarray(X))
        return np.asarray(label(rows)) if callable(label) else np.full(rows, label)


def raising(error: BaseException) -> Callable[[int], Any]:
    def label(_: int) -> Any:
        raise error

    return label


class Seen(ClassifierMixin, BaseEstimator):
    """Remembers what it was trained on; predicts its first label."""

    def fit(self, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> Seen:
        self.rows_, self.labels_, self.classes_ = X, y, np.unique(y)
        return self

    def predict(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.full(len(X), self.labels_[0])


def plain(voters: list[Any] | None = None, **changed: Any) -> PrivateVotingClassifier:
    given: dict[str, Any] = {"teachers": "plain", "epsilon": 0.5, **changed}
    return PrivateVotingClassifier(voters, **given)


def fruit(apples: int, pears: int, plums: int) -> list[Constant]:
    counts = zip(FRUIT, (apples, pears, plums), strict=True)
    return [Constant(label) for label, count in counts for _ in range(count)]


def bits(*labels: Any) -> list[Constant]:
    """Estimators of two features that predict one of two classes, or what else they are told."""
    return [Constant(label, (0, 1), 2) for label in labels]


def private(voters: list[Any], **changed: Any) -> PrivateVotingClassifier:
    """Of voters of whom each is private, with votes drawn afresh."""
    asked = {"epsilon": 1.0, "allowance": 2.0, "trained_once": False, **changed}
    return PrivateVotingClassifier(voters, teachers="private", **asked)


def test_labels_follow_the_ladder() -> None:
    """Six, five and four votes: the ladder in fractions, and words as classes."""
    fitted = plain(fruit(6, 5, 4), epsilon=math.log(2), rule="ladder").fit()
    assert isinstance(fitted.design_.setting, Plurality)
    drawn = fitted.predict(np.zeros((20_000, 1)))
    pmf = ladder((6, 5, 4), exp_lower(math.log(2)))
    assert [float(p) for p in pmf] == pytest.approx([5 / 9, 5 / 18, 1 / 6], rel=1e-12)
    assert follow(drawn.tolist(), dict(zip(FRUIT, map(float, pmf), strict=True)))
    assert fitted.queries_ == 20_000


@pytest.mark.parametrize("ones", [4, 6, 7])
def test_labels_follow_the_noise_function(ones: int) -> None:
    """Of eleven voters so many say the second class: by the certified gamma."""
    fitted = private(bits(*[1] * ones, *[0] * (11 - ones)), epsilon=0.3).fit()
    table: Any = fitted.design_.table
    answers = np.array(table.weights).reshape(-1, 2) / table.total
    one = np.concatenate([answers[::-1, 1], answers[:, 0]])[ones]
    assert 0.1 < one < 0.9
    assert follow(fitted.predict(np.zeros((20_000, 2))).tolist(), {0: 1 - one, 1: one})


@pytest.mark.parametrize(
    ("count", "classes", "rule", "kind", "chosen"),
    [
        (5, 2, "best", Majority, None),
        (4, 2, "best", Multiclass, "optimal"),
        (5, 2, "ladder", Multiclass, "ladder"),
        (4, 3, "best", Multiclass, "optimal"),
        (11, 9, "permute-and-flip", Multiclass, "permute-and-flip"),
    ],
)
def test_which_mechanism_private_teachers_get(
    count: int, classes: int, rule: str, kind: type, chosen: str | None
) -> None:
    voters = [Constant(0, range(classes)) for _ in range(count)]
    design = private(voters, rule=rule, epsilon=0.5, trained_once=True).fit().design_
    assert isinstance(design.setting, kind)
    assert design.guarantee == Guarantee(1.0)
    assert chosen is None or getattr(design.setting, "rule", None) == chosen


def test_parts_are_disjoint_and_depend_on_places_alone() -> None:
    X = np.arange(60.0)[:, None]
    y, other = np.arange(60) % 3, (np.arange(60) + 1) % 3
    given = {"estimator": Seen(), "n_estimators": 4, "classes": (0, 1, 2), "random_state": 5}
    first, second = plain(**given).fit(X, y), plain(**given).fit(-X, other)
    rows = [each.rows_.ravel().astype(int) for each in first.estimators_]
    assert sorted(np.concatenate(rows)) == list(range(60))
    for one, two in zip(first.estimators_, second.estimators_, strict=True):
        assert np.array_equal(one.rows_, -two.rows_)
        assert np.array_equal(one.labels_, y[one.rows_.ravel().astype(int)])
    # A replaced row changes one teacher.
    changed = X.copy()
    changed[17] = 99.0
    third = plain(**given).fit(changed, y)
    pairs = zip(first.estimators_, third.estimators_, strict=True)
    assert sum(not np.array_equal(one.rows_, two.rows_) for one, two in pairs) == 1


def test_teachers_that_lack_a_class() -> None:
    voters = [Constant("plum", ("apple", "plum")) for _ in range(3)] + [
        Constant("pear", ("pear", "plum")) for _ in range(2)
    ]
    with pytest.raises(ParameterError, match=r"\[3\] has other classes_ .* give all classes"):
        plain(voters).fit()
    fitted = plain(voters, classes=FRUIT, epsilon=30.0).fit()
    assert fitted.predict(np.zeros((2, 1))).tolist() == ["plum"] * 2
    # A label outside of the classes is a vote for the first one.
    strange = plain(
        [Constant("fig", ("fig",)) for _ in range(3)], classes=FRUIT, epsilon=30.0
    ).fit()
    assert strange.predict(np.zeros((2, 1))).tolist() == ["apple"] * 2


def test_what_private_predictions_spend() -> None:
    fitted = private(bits(*[1] * 11), epsilon=0.1, allowance=3).fit()
    each = Guarantee(3 * 0.1)
    fitted.predict(np.zeros((20, 2)))
    assert fitted.spent_ == simple_composition(each, 20)
    fitted.predict(np.zeros((80, 2)))
    assert fitted.queries_ == 100
    assert fitted.spent_ == general_composition(each, 100, 1e-6)


def test_voters_trained_once() -> None:
    voters = bits(*[1] * 5)
    given = {"epsilon": 0.1, "allowance": 3, "voter_delta": 1e-5, "trained_once": True}
    fitted = private(voters, **given).fit()
    fitted.predict(np.zeros((1, 2)))
    assert fitted.spent_ == Guarantee(3 * 0.1, 3 * 1e-5)
    fitted.predict(np.zeros((500, 2)))
    # Rounded up: five of the float 0.1 are more than a half.
    assert fitted.spent_ == Guarantee(math.nextafter(0.5, 1.0), math.nextafter(5e-5, 1.0))
    apart = private(voters, **given, voters_per_record=1).fit()
    apart.predict(np.zeros((500, 2)))
    assert apart.spent_ == Guarantee(0.1, 1e-5)


def test_a_budget_refuses_before_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    for fitted in (
        private(bits(*[1] * 11), epsilon=0.125, budget_epsilon=1.0).fit(),
        plain(fruit(4, 1, 0), epsilon=0.25, budget_epsilon=1.0).fit(),
    ):
        fitted.predict(np.zeros((3, 2)))
        assert fitted.spent_ == Guarantee(0.75)
        with monkeypatch.context() as patch:
            patch.setattr("dpopt.privacy.release.Pmfs.draw", lambda *_: pytest.fail("it was drawn"))
            with pytest.raises(ParameterError, match="queries is 5, .* affords 4"):
                fitted.predict(np.zeros((2, 2)))
            with pytest.raises(ParameterError, match="at least one query"):
                fitted.predict(np.zeros((0, 2)))
        assert fitted.queries_ == 3
        fitted.predict(np.zeros((1, 2)))
        assert fitted.spent_ == Guarantee(1.0)
    twice = plain(fruit(4, 1, 0), epsilon=0.25, voters_per_record=2).fit()
    twice.predict(np.zeros((3, 1)))
    assert twice.spent_ == Guarantee(1.5)


def test_a_budget_with_delta_allows_general_composition() -> None:
    given = {"epsilon": 0.1, "allowance": 1.0, "budget_epsilon": 7.0}
    voters, rows = bits(*[1] * 11), np.zeros((100, 2))
    with pytest.raises(ParameterError, match="queries is 100, .* affords 69, and 100 spend"):
        private(voters, **given).fit().predict(rows)
    fitted = private(voters, **given, budget_delta=1e-5).fit()
    fitted.predict(rows)
    assert fitted.spent_ == general_composition(Guarantee(0.1), 100, 1e-6)
    assert fitted.spent_.epsilon < 7.0


def test_a_clone_of_bare_estimators_is_not_fitted() -> None:
    voters = [Seen().fit(np.zeros((2, 1)), np.arange(2)) for _ in range(3)]
    with pytest.raises(ParameterError, match=r"estimators\[0\] has no classes_"):
        clone(private(voters).fit()).fit()


def test_fitting_again_does_not_forget() -> None:
    fitted = private(bits(1, 1, 1), epsilon=0.5).fit().fit()
    fitted.predict(np.zeros((7, 2)))
    # Votes drawn afresh compose, whose estimators they may be.
    fitted.set_params(estimators=bits(0, 0, 0), rule="ladder").fit()
    assert fitted.queries_ == 7
    with pytest.raises(ParameterError, match="queries_ is 7"):
        fitted.set_params(epsilon=0.1).fit()
    # Estimators trained once share what they spend with no others.
    voters = bits(1, 1, 1)
    once = private(voters, trained_once=True).fit()
    once.predict(np.zeros((2, 2)))
    assert once.fit().queries_ == 2
    with pytest.raises(ParameterError, match="queries_ is 2"):
        once.set_params(estimators=bits(1, 1, 1)).fit()


def test_parameters_changed_after_the_fit_do_not_touch_the_ledger() -> None:
    fitted = private(bits(1, 1, 1), epsilon=0.5, budget_epsilon=2.0).fit()
    fitted.set_params(epsilon=1e-3, budget_epsilon=1e6, trained_once=True, estimators=[])
    fitted.predict(np.zeros((2, 2)))
    assert fitted.spent_ == Guarantee(2.0)
    with pytest.raises(ParameterError, match="affords 2"):
        fitted.predict(np.zeros((1, 2)))


def test_threads_count_every_query() -> None:
    fitted = plain(fruit(4, 1, 0), rule="ladder").fit()
    threads = [threading.Thread(target=fitted.predict, args=[np.zeros((50, 1))]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fitted.queries_ == 400


def test_pipelines_searches_and_pickles() -> None:
    X, y = load_digits(return_X_y=True)
    digits = list(range(10))
    vote = plain(
        estimator=GaussianNB(), n_estimators=5, classes=digits, rule="permute-and-flip", epsilon=3.0
    )
    piped = make_pipeline(StandardScaler(), vote)
    search = GridSearchCV(piped, {"privatevotingclassifier__epsilon": [1.0, 3.0]}, cv=2)
    search.fit(X[:600], y[:600])
    best = search.best_estimator_
    assert 0.3 < best.score(X[600:800], y[600:800]) <= 1.0
    kept = pickle.loads(pickle.dumps(best))
    assert kept[-1].queries_ == 200
    kept.predict(X[:7])
    assert (kept[-1].queries_, best[-1].queries_) == (207, 200)
    assert not hasattr(clone(best)[-1], "design_")


TRAINED = {"estimator": Seen(), "n_estimators": 3, "classes": FRUIT}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"teachers": "public"}, "teachers is 'public'; it must be one of private, plain"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"allowance": 2}, "allowance is 2; it belongs to private teachers"),
        ({"trained_once": False}, "trained_once is False; it belongs to private teachers"),
        ({"voter_delta": 0.1}, "voter_delta is 0.1; it belongs to private teachers"),
        ({"teachers": "private"}, "allowance is None"),
        ({"teachers": "private", "allowance": 1}, "trained_once is None"),
        ({"rule": "fair"}, "rule is 'fair'"),
        ({"voters_per_record": 9}, "voters_per_record is 9"),
        ({"classes": "apple"}, "classes is 'apple'; it must list"),
        ({"classes": "in-y"}, "classes is 'in-y'; it must list"),
        ({"classes": ["apple", "apple"]}, "none twice"),
        ({"classes": [1, None]}, "several types"),
        (TRAINED, "and not both"),
    ],
)
def test_bad_parameters(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said) as told:
        plain(fruit(2, 1, 0), **changed).fit().predict(np.zeros((1, 1)))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("teachers", ["plain", "private"])
@pytest.mark.parametrize("wrap", [lambda one: one, FrozenEstimator], ids=["bare", "frozen"])
def test_no_estimator_votes_twice(teachers: str, wrap: Any) -> None:
    """One record would move all its ballots."""
    one = Constant()
    others = {"allowance": 1, "trained_once": True} if teachers == "private" else {}
    with pytest.raises(ParameterError, match=r"estimators\[2\] is the same object as estim.*\[0\]"):
        plain([wrap(one), Constant(), wrap(one)], teachers=teachers, **others).fit()


class Spoiler(ClassifierMixin, BaseEstimator):
    """Writes the first label of its training part into all that it is handed; votes what it finds.

    Draws a number of its own, and from numpy's global state as often as it has rows of class 1.
    """

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> Spoiler:
        self.classes_, self.first_ = np.unique(y), y[0]
        self.drawn_ = check_random_state(self.random_state).randint(1 << 30)
        self.global_ = np.random.random(1 + np.count_nonzero(y == 1))[0]  # noqa: NPY002
        self.seen_ = np.array(X)
        X[:] = self.first_
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        if hasattr(X, "toarray"):
            found = X.toarray()[:, 0].astype(int)
            X.data[:] = self.first_
        else:
            found = np.array(X)[:, 0].astype(int)
            X[:] = self.first_
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_an_estimator_changes_the_input_of_no_other(kind: str) -> None:
    """All rows to predict for hold 2, so that all votes are 2, and stay so."""
    X, y = np.full((30, 2), 2.0), np.arange(30) % 3
    given = {"estimator": Spoiler(), "n_estimators": 3, "classes": (0, 1, 2), "random_state": 1}
    fitted = plain(**given, epsilon=30.0).fit(X, y)
    assert np.all(X == 2)
    if kind == "frame":
        rows: Any = pytest.importorskip("pandas").DataFrame({"a": [2.0] * 20, "b": [2.0] * 20})
        fitted = plain(list(fitted.estimators_), epsilon=30.0).fit()
    else:
        rows = csr_array(X[:20]) if kind == "sparse" else X[:20]
    assert fitted.predict(rows).tolist() == [2] * 20
    assert np.all((rows.toarray() if kind == "sparse" else np.asarray(rows)) == 2)


@pytest.mark.parametrize("inner", [None, np.random.RandomState(3)])
def test_seeds_follow_from_the_place_alone(inner: Any) -> None:
    """A part that becomes of one class, and one that draws oftener, leaves all others' draws."""
    X, y = np.arange(40.0)[:, None], np.arange(40) % 3
    base: Any = make_pipeline(StandardScaler(), Spoiler(inner))
    given = {"estimator": base, "n_estimators": 4, "classes": (0, 1, 2), "random_state": 7}
    first = plain(**given).fit(X, y)
    draws = [each[-1].drawn_ for each in first.estimators_]
    shared = [each[-1].global_ for each in first.estimators_]
    assert len(set(draws)) == len(set(shared)) == 4
    state: Any = np.random.get_state()  # noqa: NPY002
    parts = plain(**{**given, "estimator": Seen()}).fit(X, y).estimators_
    for label in (None, 1):
        changed = y.copy()
        rows = parts[0].rows_[:, 0].astype(int)
        changed[rows] = 0 if label is None else np.where(np.arange(10) % 2, 1, 0)
        again = plain(**given).fit(X, changed)
        assert isinstance(again.estimators_[0], DummyClassifier) == (label is None)
        assert [each[-1].drawn_ for each in again.estimators_[1:]] == draws[1:]
        assert [each[-1].global_ for each in again.estimators_[1:]] == shared[1:]
    after: Any = np.random.get_state()  # noqa: NPY002
    assert np.array_equal(state[1], after[1])
    # Without a random_state each fit has seeds of its own, whatever numpy's global state is.
    free = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        fitted = plain(**{**given, "random_state": None}).fit(X, y)
        free.append([each[-1].drawn_ for each in fitted.estimators_])
    assert free[0] != free[1]


def test_a_refused_fit_changes_nothing() -> None:
    X, y = np.arange(60.0).reshape(30, 2), np.arange(30) % 2
    fitted = plain(estimator=GaussianNB(), n_estimators=3, classes=(0, 1), epsilon=30.0).fit(X, y)
    before = dict(vars(fitted))
    for rows, labels in (
        (np.ones((30, 3)), y + 5),
        (np.ones((30, 3)), y * np.nan),
        (np.ones((2, 3)), y[:2]),
    ):
        with pytest.raises((ParameterError, ValueError)):
            fitted.fit(rows, labels)
        assert vars(fitted) == before
    with pytest.raises(ValueError, match="3 features"):
        fitted.predict(np.ones((2, 3)))
    assert fitted.queries_ == 0
    # What another kind of fit knows no more is not kept.
    fitted.set_params(estimator=None, estimators=fruit(3, 0, 0), classes=None).fit()
    assert not hasattr(fitted, "n_features_in_")


@pytest.mark.parametrize(
    ("odd", "labels"),
    [
        (1, [1, 1, 1, 1]),
        *((odd, [0, 0, 0, 0]) for odd in (0, 2, None, "1")),
        (lambda rows: np.ones(rows - 1), [1, 1, 1, 0]),
        (lambda rows: np.ones(rows + 3), [1, 1, 1, 1]),
        (lambda rows: np.ones((rows, 2)), [0, 0, 0, 0]),
        *((raising(error), [0] * 4) for error in (SystemExit(3), GeneratorExit(), MemoryError())),
        (raising(ValueError("what it was trained on")), [0, 0, 0, 0]),
    ],
)
def test_whatever_an_estimator_predicts_is_a_vote(odd: Any, labels: list[int]) -> None:
    # At m = K = 3 the majority itself is private, so that the labels tell the votes.
    fitted = private(bits(1, 0, odd), allowance=3).fit()
    assert fitted.predict(np.zeros((4, 2))).tolist() == labels
    assert fitted.queries_ == 4


def test_an_interrupt_ends_a_prediction() -> None:
    fitted = plain([Constant(raising(KeyboardInterrupt())), *fruit(2, 0, 0)], epsilon=30.0).fit()
    with pytest.raises(KeyboardInterrupt):
        fitted.predict(np.ones((2, 1)))
    assert fitted.queries_ == 0


def voting(base: Any, teachers: int) -> PrivateVotingClassifier:
    """A label differs from the plurality with probability below 2 e^-20, so that checks agree."""
    trained = {"estimator": base, "n_estimators": teachers, "classes": "in-y"}
    return plain(**trained, epsilon=20.0, random_state=0)


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
    if estimator.n_estimators > 1 and check.func.__name__ == "check_supervised_y_2d":
        # Of three teachers that name three classes; both predictions agree now and then.
        pytest.skip("it compares two predictions of the same rows, and ties are broken at random")
    check(estimator)

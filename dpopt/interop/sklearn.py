"""A scikit-learn classifier that answers with the private vote of an ensemble.

Needs scikit-learn: ``pip install 'dpopt[interop]'``.
"""

from __future__ import annotations

import copy
import numbers
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.majority.setting import Majority
from dpopt.multiclass.setting import Multiclass
from dpopt.plurality import mode_design
from dpopt.privacy import Guarantee
from dpopt.shape import design
from dpopt.verify import corners_are_few
from dpopt.votes import Design, Spending, vote

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
    from sklearn.dummy import DummyClassifier
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils import _safe_indexing, check_random_state, get_tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "dpopt.interop.sklearn needs scikit-learn; install it with pip install 'dpopt[interop]'."
    ) from error


@dataclass(eq=False, repr=False)
class PrivateVotingClassifier(ClassifierMixin, BaseEstimator):
    """Private vote of K estimators over any number of classes.

    - ``teachers="private"``: each estimator is (epsilon, voter_delta)-DP itself, which cannot
      be checked here, and one prediction may spend m epsilon and max(m, 1) voter_delta:
      `dpopt.majority` for two classes and odd K, else `dpopt.multiclass`.
    - "plain": the estimators are not private; each was trained on a part of the data of its own,
      and one prediction may spend epsilon (`dpopt.plurality`). With one ``estimator``, `fit` trains
      K clones so that it holds. Rows are dealt out at random by their index alone; each clone has a
      copy of its rows and of what is predicted for, and a seed of its own wherever ``random_state``
      is no integer. State that clones share otherwise, such as a cache, is outside of it.

    How predictions compose says `dpopt.votes.Spending`. The guarantee is about the data that the
    estimators were trained on; what is predicted for, X, and ``classes_`` are public. `predict`
    spends, and so does what calls it, as `score` does; ``queries_`` counts predictions of this
    object over all its fits, not of a clone or a pickled copy. There is no `predict_proba`:
    Pr[label = y] would reveal the shares of votes.

    Attributes:
        estimators: K fitted classifiers, no object twice, with randomness of their own. A clone
            of this object empties them unless each is in a `sklearn.frozen.FrozenEstimator`.
        teachers: "private" or "plain".
        epsilon: of each estimator ("private"), or of one prediction ("plain"); above 0, in nats.
        estimator: one unfitted classifier, instead of ``estimators``; for "plain" only.
        n_estimators: K, of an ``estimator``.
        classes: all classes that there are, public; None: those on which fitted estimators agree;
            "in-y": those that occur in y, which then become public.
        allowance: m in (0, K], of private estimators.
        trained_once: of private estimators, see `dpopt.votes.Spending`; no default.
        voter_delta: Delta of each private estimator, in [0, 1).
        rule: of the setting; "best" is that of `dpopt.plurality.mode_design`, and of private
            estimators the optimum, or the ladder where they have a Delta or are too many.
        voters_per_record: how many estimators a change of the data can reach; None: all private
            ones, one plain one. With an ``estimator``, in how many rows a person may occur.
        budget_epsilon: what all predictions may spend together; no limit if None.
        budget_delta: likewise; at 0, only compositions without a delta are allowed.
        random_state: of an ``estimator``: which row goes to which clone, and the clones' seeds.
        design_: the certified mechanism.
        classes_: the classes, sorted.
        estimators_: the estimators that vote.
        spending_: how predictions compose.
    """

    estimators: Sequence[Any] | None = None
    _: KW_ONLY
    teachers: str
    epsilon: float
    estimator: Any = None
    n_estimators: int | None = None
    classes: Sequence[Any] | npt.NDArray[Any] | str | None = None
    allowance: float | None = None
    trained_once: bool | None = None
    voter_delta: float = 0.0
    rule: str = "best"
    voters_per_record: int | None = None
    budget_epsilon: float | None = None
    budget_delta: float = 0.0
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        """Return the tags of scikit-learn: labels are random, input is what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ANN401, N803
        """Certify the mechanism, and train clones of an ``estimator`` on disjoint parts of X, y.

        Of fitted ``estimators`` nothing is trained, and no data are read. A part with rows of one
        class votes for it. An error of an estimator while it is trained is raised; like every
        refusal of data, it is for the curator alone. After it, the classifier is as it was before.
        What was predicted already must compose with what is fitted now, or it is refused.
        """
        fitted = copy.copy(self)
        for name in ("n_features_in_", "feature_names_in_"):
            fitted.__dict__.pop(name, None)
        _checks.choice("teachers", self.teachers, ("private", "plain"))
        if (self.estimator is None) == (self.estimators is None):
            raise ParameterError("estimators or estimator must be given, and not both.")
        if self.estimator is None:
            fitted.estimators_, classes = _voters(self.estimators, self.classes)
            fitted.classes_, fitted._limits = _listed(classes), None
            fitted._certify()
        else:
            fitted._train(X, y)
        self.__dict__ = fitted.__dict__
        return self

    def _train(self, X: Any, y: Any) -> None:  # noqa: ANN401, N803
        """Certify, then train clones, each on a part that is chosen by n and chance alone."""
        base = self.estimator
        if self.teachers != "plain" or self.classes is None:
            raise ParameterError(
                "estimator is given; teachers must be 'plain', since private ones are fitted by "
                "their own means, and classes must be listed, or 'in-y', which makes those of y "
                "public."
            )
        if not isinstance(base, BaseEstimator) or not is_classifier(base) or clone(base) is base:
            raise ParameterError(
                f"estimator is {_checks.shown(base)}; it must be one unfitted classifier of "
                "scikit-learn, an object, neither a class nor frozen."
            )
        takes = get_tags(base).input_tags
        self._limits = {
            "accept_sparse": "csr" if takes.sparse else False,
            "dtype": None,
            "ensure_all_finite": "allow-nan" if takes.allow_nan else True,
            "ensure_2d": takes.two_d_array,
            "allow_nd": takes.three_d_array,
        }
        rows, labels = validate_data(self, X, y, reset=True, **self._limits)
        check_classification_targets(labels)
        public = isinstance(self.classes, str) and self.classes == "in-y"
        self.classes_ = _listed(np.unique(labels) if public else self.classes)
        count = _checks.integer("n_estimators", self.n_estimators, 1)
        if labels.size < count:
            raise ParameterError(
                f"X has n_samples={labels.size} rows; it must have one for each of the "
                f"n_estimators = {count}."
            )
        if not np.all(np.isin(labels, self.classes_)):
            raise ParameterError("y holds a label that is not one of classes.")
        chance = np.random.RandomState(secrets.randbits(32))
        if self.random_state is not None:
            chance = check_random_state(self.random_state)
        # All before any is trained: what a clone copies may depend on no data.
        seeds = chance.randint(0, 1 << 32, size=count, dtype=np.uint64).tolist()
        self.estimators_ = tuple(_seeded(clone(base), seed) for seed in seeds)
        self._certify()
        parts = np.array_split(chance.permutation(labels.size), count)
        rows, voters = X if hasattr(X, "columns") else rows, []
        for indices, seed, each in zip(parts, seeds, self.estimators_, strict=True):
            sample = np.sort(indices)
            # Many classifiers refuse a single class.
            if np.unique(labels[sample]).size == 1:
                each = DummyClassifier(strategy="most_frequent")
            with _own_stream(seed):
                rows_of = copy.deepcopy(_safe_indexing(rows, sample))
                voters.append(each.fit(rows_of, labels[sample].copy()))
        self.estimators_ = tuple(voters)

    def _certify(self) -> None:
        """Find the mechanism, how its labels compose, the budget, and what counts the queries."""
        budget = self.budget_epsilon
        self._budget = None if budget is None else Guarantee(budget, self.budget_delta)
        self.design_ = self._designed(len(self.estimators_), self.classes_.size)
        setting, reach = self.design_.setting, self.voters_per_record
        self.spending_ = of = Spending(setting, self.trained_once, voters_per_record=reach)
        # Estimators trained once share what they spend with no others.
        same = tuple(map(id, self.estimators_)) if self.trained_once else ()
        way = (of.per_query, setting.behind, of.trained_once, of.reach, same)
        queries = getattr(self, "_asked", None)
        if queries is not None and queries.queries and queries.way != way:
            raise ParameterError(
                f"queries_ is {queries.queries}: they do not add up with those of other parameters "
                "or estimators, and fitting again would forget them; fit a clone, and add what "
                "both spend."
            )
        self._asked = queries if queries is not None and queries.way == way else _Asked(way)

    def _designed(self, voters: int, classes: int) -> Design:
        delta, rule = self.voter_delta, cast(Any, self.rule)
        if self.teachers == "plain":
            for name, absent in (("allowance", None), ("trained_once", None), ("voter_delta", 0)):
                if getattr(self, name) != absent:
                    raise ParameterError(
                        f"{name} is {_checks.shown(getattr(self, name))}; it belongs to private "
                        "teachers, and teachers is 'plain'."
                    )
            return mode_design(voters, classes, self.epsilon, rule=rule)
        m = _checks.real("allowance", self.allowance, 0.0, open_lower=True)
        budget = self.epsilon, m, delta, max(m, 1.0) * delta
        if rule == "best" and classes == 2 and voters % 2:
            return design(Majority(voters, *budget))
        if rule == "best":
            rule = "optimal" if corners_are_few(voters, classes) and not delta else "ladder"
        return design(Multiclass(voters, classes, *budget, rule=rule))

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401, N803
        """Return a private label for each row of X, and count the rows.

        Predicting the same row again draws, and spends, again. An estimator that predicts what is
        none of ``classes_``, too few rows, or raises an error has voted for the first class there:
        an error would tell of the data that it was trained on. Try X on the estimators first.
        What the budget does not allow is refused as a whole, before anything is drawn.
        """
        check_is_fitted(self, "design_")
        if self._limits is not None:
            checked = validate_data(self, X, reset=False, **self._limits)
            X = X if hasattr(X, "columns") else checked  # noqa: N806
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        if not shape or not shape[0]:
            raise ParameterError("X has no rows; it must hold at least one query.")
        index_of = {label: index for index, label in enumerate(self.classes_.tolist())}
        # A step that changes its input would hand one estimator's data on to the others.
        votes = np.column_stack(
            [_votes(each, index_of, copy.deepcopy(X), shape[0]) for each in self.estimators_]
        )
        with self._asked.lock:
            batch = vote(
                self.design_,
                votes,
                trained_once=self.spending_.trained_once,
                voters_per_record=self.spending_.reach,
                answered=self._asked.queries,
                budget=self._budget,
            )
            self._asked.queries += batch.queries
        return self.classes_[batch.labels]

    @property
    def queries_(self) -> int:
        """Number of predictions so far."""
        check_is_fitted(self, "design_")
        return self._asked.queries

    @property
    def spent_(self) -> Guarantee:
        """What all predictions so far spend together, within the budget if there is one."""
        queries = self.queries_
        return self.spending_.total(queries, self._budget)[1] if queries else Guarantee(0.0)


class _Asked:
    """The number of predictions, which threads share, and a copy does not."""

    def __init__(self, way: tuple[object, ...], queries: int = 0) -> None:
        self.way, self.queries, self.lock = way, queries, threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.way, self.queries)


def _voters(estimators: Any, classes: Any) -> tuple[tuple[Any, ...], Any]:  # noqa: ANN401
    """Return fitted estimators, and their classes if None are given."""
    if isinstance(estimators, str) or not isinstance(estimators, Sequence) or not estimators:
        raise ParameterError("estimators must be a list of at least one fitted classifier.")
    counts: dict[int, int] = {}
    common: Any = getattr(estimators[0], "classes_", None) if classes is None else classes
    for index, estimator in enumerate(estimators):
        if not hasattr(estimator, "classes_") or not hasattr(estimator, "predict"):
            raise ParameterError(
                f"estimators[{index}] has no classes_; it must be a fitted classifier."
            )
        if classes is None and not np.array_equal(common, estimator.classes_):
            raise ParameterError(
                f"estimators[{index}] has other classes_ than estimators[0]; give all classes that "
                "there are as classes."
            )
        # Frozen ones are what they hold.
        while isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        if counts.setdefault(id(estimator), index) < index:
            raise ParameterError(
                f"estimators[{index}] is the same object as estimators[{counts[id(estimator)]}]; "
                "each must be one of its own, for a record would move the votes of both."
            )
    return tuple(estimators), common


def _listed(classes: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    """Return public classes, sorted; at least two, none of them twice."""
    try:
        labels = np.asarray(classes)
        distinct = np.unique(labels)
    except TypeError:
        raise ParameterError("classes holds labels of several types; they must be alike.") from None
    if labels.ndim != 1 or distinct.size < 2 or distinct.size != labels.size:
        raise ParameterError(
            f"classes is {_checks.shown(classes)}; it must list more than one class, none twice "
            "('in-y' takes those of the y that an estimator is trained on)."
        )
    return distinct


def _seeded(estimator: Any, seed: int) -> Any:  # noqa: ANN401
    """Return an estimator whose random states follow from a seed; integers stay as they are.

    A random state that clones share, such as numpy's global one, is where a clone that draws
    another number of times would change all later ones.
    """
    chance = np.random.RandomState(seed)
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if name.split("__")[-1] == "random_state" and not isinstance(value, numbers.Integral):
            estimator.set_params(**{name: int(chance.randint(1 << 31))})
    return estimator


@contextmanager
def _own_stream(seed: int) -> Iterator[None]:
    """Let what draws from numpy's global state all the same draw from a seed, and put it back."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _votes(
    estimator: Any,  # noqa: ANN401
    places: dict[Any, int],
    X: Any,  # noqa: ANN401, N803
    rows: int,
) -> npt.NDArray[np.int64]:
    """Return a vote for each row: the place of the class that the estimator says.

    What it answers, how much, and whether it raises an error depend on the data that it was trained
    on: all else is a vote for the first class, and no other value can be recognised.
    """
    votes = np.zeros(rows, dtype=np.int64)
    try:
        answers = estimator.predict(X)
        listed = (answers.tolist() if hasattr(answers, "tolist") else list(answers))[:rows]
        votes[: len(listed)] = [places.get(answer, 0) for answer in listed]
    except KeyboardInterrupt:
        # Of the person at the keyboard, not of the estimator.
        raise
    except BaseException:  # noqa: BLE001 - an error is an answer, which must look like any other
        votes[:] = 0
    return votes

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
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks, majority, multiclass, plurality
from dpopt._errors import ParameterError
from dpopt.ballots.spending import SLACK, BallotSpending, LabelSpending, Spending, label_delta
from dpopt.design import Design
from dpopt.majority import MajorityDesign, VoteBatch, design_for
from dpopt.majority.vote import majority_setting
from dpopt.privacy import Guarantee
from dpopt.privacy.ledger import Recorder

try:
    from sklearn.base import (  # pyright: ignore[reportMissingImports]
        BaseEstimator,
        ClassifierMixin,
        clone,
    )
    from sklearn.dummy import DummyClassifier  # pyright: ignore[reportMissingImports]
    from sklearn.frozen import FrozenEstimator  # pyright: ignore[reportMissingImports]
    from sklearn.utils import (  # pyright: ignore[reportMissingImports]
        _safe_indexing,
        check_random_state,
        get_tags,
    )
    from sklearn.utils.multiclass import (  # pyright: ignore[reportMissingImports]
        check_classification_targets,
    )
    from sklearn.utils.validation import (  # pyright: ignore[reportMissingImports]
        check_is_fitted,
        validate_data,
    )
except ImportError as error:
    raise ImportError(
        "dpopt.interop.sklearn needs scikit-learn; install it with pip install 'dpopt[interop]'."
    ) from error

TEACHERS = ("private", "plain")
IN_Y = "in-y"
"""The value of ``classes`` that takes the labels in y as public."""


class PrivateVotingClassifier(ClassifierMixin, BaseEstimator):
    """Private vote of K estimators over any number of classes.

    What epsilon means depends on the estimators, so that ``teachers`` has no default:

    - "private": each estimator is (epsilon, mechanism_delta)-DP itself, and one prediction may
      spend m epsilon, m = ``allowance``. Two classes and odd K: DaRRM (`dpopt.majority`). Else
      `dpopt.multiclass`. How predictions compose stands in `dpopt.majority.Spending`. Whether the
      estimators have the privacy that is stated of them cannot be checked here.
    - "plain": the estimators are not private; each was trained on a part of the data of its own,
      and one prediction may spend epsilon (`dpopt.plurality`). The data model stands in
      `dpopt.plurality.BallotSpending`. Given one ``estimator``, `fit` itself trains K clones on
      disjoint parts, so that the model holds: rows are dealt out at random by their place alone,
      and a replaced row changes one clone. Each clone has a copy of its rows, and of what is
      predicted for, and a seed of its own wherever ``random_state`` is no integer. An estimator
      that keeps other state in common with its clones, such as a cache, is outside of the model.

    The guarantee is about the data that the estimators were trained on; what is predicted for, X,
    is public, and so are ``classes_``.

    - `predict` spends privacy, and so do `score` and everything else that calls it, such as a
      search over parameters. The ledger `queries_` belongs to this object: predictions of a clone,
      of a pickled copy, or of another classifier over the same data add to what the data spend but
      not to it; a ``ledger`` counts them all. `fit` called again counts on. Several threads may
      call `predict`, as far as the estimators let them.
    - There is no `predict_proba`, on purpose: the share of votes is not covered by the guarantee,
      and the mechanism is public, so that even Pr[label = y] would reveal the counts.
    - `sklearn.base.clone` also clones the estimators, which empties fitted ones. Wrap each into
      `sklearn.frozen.FrozenEstimator` to keep them as they are.

    Args:
        estimators: K fitted classifiers, no object twice. Their training randomness, and that of
            their predictions, is independent between estimators.
        teachers: "private" or "plain".
        epsilon: of each estimator ("private"), or of one prediction ("plain"); above 0, in nats.
        estimator: one unfitted classifier, instead of ``estimators``; for "plain" only. Private
            ones are fitted by their own means, each with randomness of its own.
        n_estimators: K, of an ``estimator``.
        classes: all classes that there are, public. If None, those that all fitted estimators
            agree on; "in-y" takes those that occur in y, which are then told to everyone.
        allowance: m in (0, K], of private estimators.
        trained_once: of private estimators: True if (epsilon, mechanism_delta) holds for each
            fitted estimator as a whole and its predictions follow from it, False if it holds for
            each single prediction, with randomness drawn afresh. There is no safe default.
        mechanism_delta: Delta of each private estimator, in [0, 1).
        delta: of one prediction of private estimators; max(m, 1) mechanism_delta if None.
        rule: "best", or one of `dpopt.multiclass.MulticlassSetting` or
            `dpopt.plurality.PluralitySetting`.
        objective: of the design; its default if None.
        prior: of the votes; that of the design if None.
        voters_per_record: how many estimators a change of the data can reach; if None, all private
            ones, and one plain one. With an ``estimator``, in how many rows a person may occur.
        slack: the delta' of theorem 2.3, in (0, 1).
        budget_epsilon: what all predictions may spend together; no limit if None.
        budget_delta: likewise; at 0, only compositions without a delta are allowed.
        random_state: of an ``estimator``: which row goes to which clone, and the seed of each
            clone; it need not be secret. None, an integer of at least 0, or a RandomState.
        ledger: a `dpopt.Ledger`, charged before each draw.
        dataset: name of the data in the ledger.
        group: name of estimators trained once in the ledger, the same for all that is ever
            predicted with them; None of others.

    Attributes:
        design_: the certified mechanism; its setting says which it is.
        classes_: the classes, sorted.
        n_features_in_: of the estimators, where they have it.
        feature_names_in_: of what `fit` trained on, if it had names.
        estimators_: the estimators that vote.
        spending_: how predictions compose.
        budget_: the budget, None if there is none.
    """

    def __init__(
        self,
        estimators: Sequence[Any] | None = None,
        *,
        teachers: str,
        epsilon: float,
        estimator: Any = None,  # noqa: ANN401
        n_estimators: int | None = None,
        classes: Sequence[Any] | npt.NDArray[Any] | str | None = None,
        allowance: float | None = None,
        trained_once: bool | None = None,
        mechanism_delta: float = 0.0,
        delta: float | None = None,
        rule: str = "best",
        objective: str | None = None,
        prior: Any = None,  # noqa: ANN401
        voters_per_record: int | None = None,
        slack: float = SLACK,
        budget_epsilon: float | None = None,
        budget_delta: float = 0.0,
        random_state: Any = None,  # noqa: ANN401
        ledger: Recorder | None = None,
        dataset: str | None = None,
        group: str | None = None,
    ) -> None:
        self.estimators = estimators
        self.teachers = teachers
        self.epsilon = epsilon
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.classes = classes
        self.allowance = allowance
        self.trained_once = trained_once
        self.mechanism_delta = mechanism_delta
        self.delta = delta
        self.rule = rule
        self.objective = objective
        self.prior = prior
        self.voters_per_record = voters_per_record
        self.slack = slack
        self.budget_epsilon = budget_epsilon
        self.budget_delta = budget_delta
        self.random_state = random_state
        self.ledger = ledger
        self.dataset = dataset
        self.group = group

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        """Return the tags of scikit-learn: labels are random, input is what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        if _is_estimator(self.estimator):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ANN401, N803
        """Certify the mechanism; with an ``estimator``, train its clones on disjoint parts first.

        Of fitted ``estimators`` nothing is trained, and no data are read. A part with rows of one
        class votes for it. An error of an estimator while it is trained is raised; like every
        refusal of data, it is for the curator alone.

        Args:
            X: rows to train on, shape (n, features); not used for fitted estimators.
            y: their classes, shape (n,); likewise.

        Raises:
            ParameterError: for estimators that do not fit together, a parameter out of range, or
                a classifier that has predicted already in a way that does not compose with this.
            SolverError: if the solver found no mechanism.

        After an error the classifier is as it was before.
        """
        fitted = copy.copy(self)
        fitted._fit(X, y)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any) -> None:  # noqa: ANN401, N803
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        kind = _checks.choice("teachers", self.teachers, TEACHERS)
        if (self.estimator is None) == (self.estimators is None):
            both = "neither is" if self.estimator is None else "both are"
            raise ParameterError(f"estimators or estimator must be given; {both}.")
        if self.estimator is None:
            voters = _voters(self.estimators)
            classes = _agreed(voters) if self.classes is None else _listed(self.classes)
            features = _common_features(voters)
            found = self._certified(kind, len(voters), classes.size, voters)
            if features is not None:
                self.n_features_in_ = features
            self._limits_of_rows = None
        else:
            count = self._clones(kind)
            # Rows and labels, checked as scikit-learn does.
            rows, labels = validate_data(self, X, y, reset=True, **self._limits())
            classes = _occurring(labels) if _is_in_y(self.classes) else _listed(self.classes)
            if labels.size < count:
                raise ParameterError(
                    f"X has n_samples={labels.size} rows; it must have one for each of the "
                    f"n_estimators = {count}."
                )
            if not np.all(np.isin(labels, classes)):
                raise ParameterError("y holds a label that is not one of classes.")
            found = self._certified(kind, count, classes.size, ())
            voters = self._trained(X if hasattr(X, "columns") else rows, labels, count)
            self._limits_of_rows = self._limits()
        self.design_, self.spending_, self.budget_, self._asked = found
        self._charged = self.ledger, self.dataset, self.group
        self.estimators_, self.classes_ = voters, classes

    def _clones(self, kind: str) -> int:
        """Return the number of clones to be trained; they must be plain."""
        if kind != "plain":
            raise ParameterError(
                "estimator is given, and teachers is 'private'; fit private estimators by their "
                "own means, each with randomness of its own, and give them as estimators."
            )
        if self.classes is None:
            raise ParameterError(
                f"classes is None; it must hold all classes, or be {IN_Y!r}, which takes those "
                "that occur in y as public."
            )
        if not _is_estimator(self.estimator):
            raise ParameterError(
                f"estimator is {_checks.shown(self.estimator)}; it must be one unfitted classifier "
                "of scikit-learn, an object and not a class."
            )
        if clone(self.estimator) is self.estimator:
            raise ParameterError(
                "estimator is frozen; it cannot be trained on disjoint parts, so give fitted ones "
                "as estimators."
            )
        if not _is_random_state(self.random_state):
            raise ParameterError(
                f"random_state is {_checks.shown(self.random_state)}; it must be None, an integer "
                "of at least 0, or a RandomState of numpy."
            )
        return _checks.integer("n_estimators", self.n_estimators, 1)

    def _limits(self) -> dict[str, Any]:
        """Return what `validate_data` may let pass: what the estimator takes."""
        tags = get_tags(self.estimator).input_tags
        return {
            "accept_sparse": "csr" if tags.sparse else False,
            "dtype": None,
            "ensure_all_finite": "allow-nan" if tags.allow_nan else True,
            "ensure_2d": tags.two_d_array,
            "allow_nd": tags.three_d_array,
        }

    def _trained(
        self,
        X: Any,  # noqa: ANN401, N803
        y: npt.NDArray[Any],
        count: int,
    ) -> tuple[Any, ...]:
        """Return clones, each trained on a part of its own, which is chosen by n and chance."""
        sequence = np.random.SeedSequence(_entropy(self.random_state))
        # All before any is trained: what a clone copies may depend on no data.
        seeds = sequence.generate_state(count).tolist()
        clones = [_seeded(clone(self.estimator), seed) for seed in seeds]
        order = np.random.default_rng(sequence).permutation(y.size)
        trained = []
        for part, seed, each in zip(np.array_split(order, count), seeds, clones, strict=True):
            own = np.sort(part)
            # Many classifiers refuse a single class.
            if np.unique(y[own]).size == 1:
                each = DummyClassifier(strategy="most_frequent")
            with _own_stream(seed):
                trained.append(each.fit(_copied(_safe_indexing(X, own)), y[own].copy()))
        return tuple(trained)

    def _certified(
        self, kind: str, voters: int, classes: int, same: tuple[Any, ...]
    ) -> tuple[Design, LabelSpending, Guarantee | None, _Asked]:
        """Return the mechanism, how its labels compose, the budget, and what counts the queries."""
        budget = None
        if self.budget_epsilon is not None:
            budget = Guarantee(self.budget_epsilon, self.budget_delta)
        make = self._of_private if kind == "private" else self._of_plain
        design, spending = make(voters, classes)
        if self.ledger is not None:
            spending.shared(self.group)
        for name, value in (("dataset", self.dataset), ("group", self.group)):
            if self.ledger is None and value is not None:
                raise ParameterError(
                    f"{name} is {_checks.shown(value)} and ledger None; a name needs a ledger."
                )
        way: tuple[object, ...] = (kind, spending.per_query, spending.facts())
        if isinstance(spending, Spending):
            # Estimators trained once share what they spend with no others.
            way += spending.voter, *(map(id, same) if spending.trained_once else ())
        count: _Asked = getattr(self, "_asked", None) or _Asked(way)
        if count.way == way:
            return design, spending, budget, count
        if count.queries:
            raise ParameterError(
                f"queries_ is {count.queries}: they do not add up with those of other parameters "
                "or estimators, and fitting again would forget them; fit a clone, and add what "
                "both spend."
            )
        return design, spending, budget, _Asked(way)

    def _of_private(self, voters: int, classes: int) -> tuple[Design, LabelSpending]:
        """Return the mechanism for private voters, and how its labels compose."""
        if self.allowance is None:
            raise ParameterError(
                "allowance is None; teachers is 'private', and one prediction may spend allowance "
                "epsilon."
            )
        given = {} if self.prior is None else {"prior": self.prior}
        if classes == 2 and voters % 2 and self.rule == "best":
            design: Design = design_for(
                majority_setting(
                    voters, self.epsilon, self.allowance, self.mechanism_delta, self.delta
                ),
                objective=self.objective,
                **given,
            )
        else:
            if self.objective is not None:
                raise ParameterError(
                    f"objective is {_checks.shown(self.objective)}; it must be None but for two "
                    "classes, an odd number of private estimators and rule 'best'."
                )
            delta = label_delta(self.allowance, self.mechanism_delta, self.delta)
            design = multiclass.best_design(
                voters,
                classes,
                self.epsilon,
                self.allowance,
                rule=self.rule,
                mechanism_delta=self.mechanism_delta,
                delta=delta,
                **given,
            )
        once = _checks.flag("trained_once", self.trained_once)
        setting: Any = design.setting
        return design, Spending(setting, once, self.slack, self.voters_per_record)

    def _of_plain(self, voters: int, classes: int) -> tuple[Design, LabelSpending]:
        """Return the mechanism for plain voters, and how its labels compose."""
        of_private = {
            "allowance": self.allowance,
            "trained_once": self.trained_once,
            "delta": self.delta,
            "mechanism_delta": self.mechanism_delta or None,
        }
        for name, value in of_private.items():
            if value is not None:
                raise ParameterError(
                    f"{name} is {_checks.shown(value)}; it belongs to private teachers, and "
                    "teachers is 'plain'."
                )
        given = {"objective": self.objective, "prior": self.prior}
        known = {name: value for name, value in given.items() if value is not None}
        design = plurality.best_design(voters, classes, self.epsilon, rule=self.rule, **known)
        reach = 1 if self.voters_per_record is None else self.voters_per_record
        return design, BallotSpending(design.setting, self.slack, reach)

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401, N803
        """Return a private label for each row of X, and count the rows.

        Draws use the system's randomness; predicting the same row again draws, and spends, again.
        An estimator that predicts what is none of ``classes_``, too few rows, or raises an error
        has voted for the first class there: an error would tell of the data that it was trained on.
        Try X on the estimators first, where that is public.

        Args:
            X: what the estimators take, n rows.

        Returns:
            Entries of ``classes_``, shape (n,).

        Raises:
            ParameterError: if X is empty or has another number of features, or if the budget does
                not allow n more predictions; before anything is drawn.
        """
        check_is_fitted(self, "design_")
        rows, X = self._rows(X)  # noqa: N806
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        # A step that changes its input would hand one estimator's data on to the others.
        own = (_copied(X) for _ in self.estimators_)
        votes = np.column_stack(
            [_votes(each, places, x, rows) for each, x in zip(self.estimators_, own, strict=True)]
        )
        with self._asked.lock:
            batch = self._answered(votes)
            self._asked.queries += batch.queries
        return self.classes_[batch.labels]

    def _answered(self, votes: npt.NDArray[np.int64]) -> VoteBatch[Any]:
        """Draw the labels of votes."""
        spending, design = self.spending_, self.design_
        ledger, dataset, group = self._charged
        given: dict[str, Any] = {
            "design": design,
            "slack": spending.slack,
            "voters_per_record": spending.reach,
            "answered": self.queries_,
            "budget": self.budget_,
            "ledger": ledger,
            "dataset": dataset,
        }
        if not isinstance(spending, Spending):
            return plurality.vote(votes, **given)
        given |= {"trained_once": spending.trained_once, "group": group}
        if isinstance(design, MajorityDesign):
            return majority.vote(votes, **given)
        return multiclass.vote(votes, **given)

    def _rows(self, X: Any) -> tuple[int, Any]:  # noqa: ANN401, N803
        """Return the number of queries, and X as the estimators get it: a frame as it is.

        X is public; it is checked as far as it is known what the estimators take.
        """
        if self._limits_of_rows is None:
            return _shape(X, getattr(self, "n_features_in_", None)), X
        checked = validate_data(self, X, reset=False, **self._limits_of_rows)
        return int(checked.shape[0]), X if hasattr(X, "columns") else checked

    @property
    def queries_(self) -> int:
        """Number of predictions so far."""
        check_is_fitted(self, "design_")
        return self._asked.queries

    @property
    def spent_(self) -> Guarantee:
        """What all predictions so far spend together, within the budget if there is one."""
        return self.privacy_spent()

    def privacy_spent(self, slack: float | None = None) -> Guarantee:
        """Return the composed guarantee of all predictions so far; (0, 0) before the first.

        Args:
            slack: the delta' of theorem 2.3, in (0, 1); that of the classifier if None. One
                guarantee holds for each slack.

        Raises:
            ParameterError: if slack is out of range, or every composition has a delta of 1.
        """
        check_is_fitted(self, "design_")
        spending, budget = cast(Any, self.spending_), self.budget_
        if slack is not None:
            spending, budget = replace(spending, slack=slack), None
        if not self.queries_:
            return Guarantee(0.0)
        return spending.total(self.queries_, budget)[1]


class _Asked:
    """The number of predictions, which threads share, and a copy does not."""

    def __init__(self, way: tuple[object, ...], queries: int = 0) -> None:
        self.way, self.queries, self.lock = way, queries, threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.way, self.queries)


def _voters(estimators: object) -> tuple[Any, ...]:
    if isinstance(estimators, str) or not isinstance(estimators, Sequence) or not estimators:
        raise ParameterError("estimators must be a list of at least one fitted classifier.")
    for place, estimator in enumerate(estimators):
        if not hasattr(estimator, "classes_") or not hasattr(estimator, "predict"):
            raise ParameterError(
                f"estimators[{place}] has no classes_; it must be a fitted classifier."
            )
    first: dict[int, int] = {}
    for place, estimator in enumerate(estimators):
        # Frozen ones are what they hold.
        while isinstance(estimator, FrozenEstimator):
            estimator = cast(Any, estimator).estimator
        if first.setdefault(id(estimator), place) < place:
            raise ParameterError(
                f"estimators[{place}] is the same object as estimators[{first[id(estimator)]}]; "
                "each must be one of its own, for a record would move the votes of both."
            )
    return tuple(estimators)


def _agreed(estimators: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Return the classes that all estimators have."""
    first = np.asarray(estimators[0].classes_)
    for place, estimator in enumerate(estimators):
        if not np.array_equal(first, np.asarray(estimator.classes_)):
            raise ParameterError(
                f"estimators[{place}] has other classes_ than estimators[0]; give all classes that "
                "there are as classes."
            )
    return _listed(first)


def _listed(classes: object) -> npt.NDArray[Any]:
    """Return public classes, sorted; at least two, none of them twice."""
    listed = None if isinstance(classes, str) else np.asarray(classes)
    if listed is None or listed.ndim != 1:
        raise ParameterError(
            f"classes is {_checks.shown(classes)}; it must be a list of labels, or {IN_Y!r} where "
            "an estimator is trained, which takes those that occur in y as public."
        )
    try:
        found = np.unique(listed)
    except TypeError:
        raise ParameterError("classes holds labels of several types; they must be alike.") from None
    if found.size < 2 or found.size != listed.size:
        raise ParameterError(
            f"classes holds {listed.size} labels, {found.size} of them different; it must hold at "
            "least two, and none twice."
        )
    return found


def _occurring(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    check_classification_targets(y)
    found = np.unique(y)
    if found.size < 2:
        raise ParameterError("y holds one class; there must be at least two.")
    return found


def _is_in_y(classes: object) -> bool:
    return isinstance(classes, str) and classes == IN_Y


def _common_features(estimators: tuple[Any, ...]) -> int | None:
    known = [getattr(estimator, "n_features_in_", None) for estimator in estimators]
    if any(count != known[0] for count in known):
        raise ParameterError(f"estimators have n_features_in_ {known}; they must be the same.")
    return known[0]


def _shape(X: Any, features: int | None) -> int:  # noqa: ANN401, N803
    """Return the number of rows.

    Raises:
        ParameterError: if X has no rows, or another number of features.
    """
    shape = np.shape(X) if getattr(X, "shape", None) is None else X.shape
    if len(shape) == 0:
        raise ParameterError("X is no array; it must hold a row for each query.")
    if not shape[0]:
        raise ParameterError("X has no rows; it must hold at least one query.")
    if features is not None and len(shape) == 2 and shape[1] != features:
        raise ParameterError(f"X has {shape[1]} features; the estimators know {features}.")
    return int(shape[0])


def _copied(X: Any) -> Any:  # noqa: ANN401, N803
    """Return a copy that shares nothing with X.

    Raises:
        ParameterError: for what cannot be copied.
    """
    try:
        return copy.deepcopy(X)
    except Exception:  # noqa: BLE001 - whatever it is, it cannot be had twice
        raise ParameterError(
            f"X is a {type(X).__name__} that cannot be copied; each estimator must have its own."
        ) from None


def _is_estimator(value: object) -> bool:
    needed = ("fit", "predict", "get_params", "__sklearn_tags__")
    return not isinstance(value, type) and all(hasattr(value, name) for name in needed)


def _is_random_state(state: object) -> bool:
    if isinstance(state, int | np.integer) and not isinstance(state, bool):
        return bool(state >= 0)
    return state is None or state is np.random or isinstance(state, np.random.RandomState)


def _entropy(state: Any) -> int:  # noqa: ANN401
    """Return what all seeds follow from: the system's generator where there is no state."""
    if state is None:
        return secrets.randbits(128)
    if isinstance(state, int | np.integer):
        return int(state)
    words = check_random_state(state).randint(0, 1 << 32, size=4, dtype=np.uint64)
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


def _seeded(estimator: Any, seed: int) -> Any:  # noqa: ANN401
    """Return an estimator whose random states follow from a seed; integers stay as they are.

    A random state that clones share, such as numpy's global one, is where a clone that draws
    another number of times would change all later ones.
    """
    states = np.random.SeedSequence(seed)
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if name.split("__")[-1] == "random_state" and not isinstance(value, numbers.Integral):
            estimator.set_params(**{name: int(states.spawn(1)[0].generate_state(1)[0] >> 1)})
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
    on: all else is a vote for the first class, and nothing is told apart.
    """
    votes = np.zeros(rows, dtype=np.int64)
    try:
        answers = estimator.predict(X)
        listed = answers.tolist() if hasattr(answers, "tolist") else list(answers)
        found = [places.get(answer, 0) for answer in listed[:rows]]
        votes[: len(found)] = found
    except KeyboardInterrupt:
        # Of the person at the keyboard, not of the estimator.
        raise
    except BaseException:  # noqa: BLE001 - an error is an answer, not to be told from the others
        votes[:] = 0
    return votes

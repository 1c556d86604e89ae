"""A scikit-learn classifier that answers with the private majority of fitted private estimators.

Needs scikit-learn: ``pip install 'dpopt[interop]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpopt._errors import ParameterError
from dpopt.majority import Prior, Spending, design_for, vote
from dpopt.majority.vote import SLACK, majority_setting
from dpopt.privacy import Guarantee

try:
    from sklearn.base import BaseEstimator, ClassifierMixin  # pyright: ignore[reportMissingImports]
    from sklearn.utils.validation import check_is_fitted  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError(
        "dpopt.interop.sklearn needs scikit-learn; install it with pip install 'dpopt[interop]'."
    ) from error


class PrivateVotingClassifier(ClassifierMixin, BaseEstimator):
    """Private majority vote of K fitted estimators, each (epsilon, mechanism_delta)-DP.

    The guarantee is about the data that the estimators were trained on; what is covered, and how
    predictions compose, stands in `dpopt.majority.Spending`. Whether the estimators have
    the privacy that is stated of them cannot be checked here.

    - `predict` spends privacy, and so do `score` and everything else that calls it. The ledger
      `queries_` belongs to this object: predictions of a clone, of a pickled copy, or of another
      classifier over the same estimators add to what the data spend but not to it. `predict` is
      not meant for several threads at once.
    - There is no `predict_proba`, on purpose: the share of votes is not covered by the guarantee,
      and gamma is public, so that even Pr[label = 1] would reveal the number of ones.
    - `sklearn.base.clone` also clones the estimators, which empties them. Wrap each into
      `sklearn.frozen.FrozenEstimator` (scikit-learn 1.6) to keep them as they are.

    Args:
        estimators: K fitted classifiers, K odd, all with the same two ``classes_``. Their training
            randomness, and that of their predictions, is independent between estimators.
        epsilon: of each estimator, above 0, in nats.
        allowance: m in (0, K]: one prediction may spend m epsilon.
        trained_once: True if (epsilon, mechanism_delta) holds for each fitted estimator as a whole
            and its predictions follow from it, False if it holds for each single prediction, with
            randomness drawn afresh. There is no safe default.
        mechanism_delta: Delta of each estimator, in [0, 1).
        delta: of one prediction; max(m, 1) mechanism_delta if None.
        objective: see `dpopt.majority.design`.
        prior: of the estimators' votes, see `dpopt.majority.vote`.
        voters_per_record: how many estimators a change of the data can reach; all if None, 1 if
            they were trained on disjoint parts.
        slack: the delta' of theorem 2.3, in (0, 1).
        budget_epsilon: what all predictions may spend together; no limit if None.
        budget_delta: likewise; at 0, only compositions without a delta are allowed.

    Attributes:
        design_: the certified noise function; see `dpopt.majority.MajorityDesign`.
        classes_: the two classes; a vote of 1 is for the second one.
        n_features_in_: of the estimators, where they have it.
        estimators_: the estimators that vote.
        spending_: how predictions compose.
        budget_: the budget, None if there is none.
        queries_: number of predictions so far.
    """

    def __init__(
        self,
        estimators: Sequence[Any],
        *,
        epsilon: float,
        allowance: float,
        trained_once: bool,
        mechanism_delta: float = 0.0,
        delta: float | None = None,
        objective: str = "expected-error",
        prior: Prior | str | None = None,
        voters_per_record: int | None = None,
        slack: float = SLACK,
        budget_epsilon: float | None = None,
        budget_delta: float = 0.0,
    ) -> None:
        self.estimators = estimators
        self.epsilon = epsilon
        self.allowance = allowance
        self.trained_once = trained_once
        self.mechanism_delta = mechanism_delta
        self.delta = delta
        self.objective = objective
        self.prior = prior
        self.voters_per_record = voters_per_record
        self.slack = slack
        self.budget_epsilon = budget_epsilon
        self.budget_delta = budget_delta

    def fit(self, X: object = None, y: object = None) -> Self:  # noqa: ARG002, N803
        """Check the estimators and certify the noise; nothing is trained, no data are read.

        Args:
            X: not used, there for scikit-learn.
            y: likewise.

        Raises:
            ParameterError: for estimators that do not fit together, a parameter out of range, or a
                classifier that has predicted already, whose ledger would be lost.
            SolverError: if the solver found no noise function.
        """
        answered = getattr(self, "queries_", 0)
        if answered:
            raise ParameterError(
                f"queries_ is {answered}: fitting again would forget them; fit a clone, and add "
                "what both spend."
            )
        estimators = _voters(self.estimators)
        classes = _common_classes(estimators)
        features = _common_features(estimators)
        setting = majority_setting(
            len(estimators), self.epsilon, self.allowance, self.mechanism_delta, self.delta
        )
        spending = Spending(setting, self.trained_once, self.slack, self.voters_per_record)
        budget = None
        if self.budget_epsilon is not None:
            budget = Guarantee(self.budget_epsilon, self.budget_delta)
        self.design_ = design_for(setting, objective=self.objective, prior=self.prior)
        self.estimators_, self.classes_ = estimators, classes
        self.spending_, self.budget_ = spending, budget
        if features is not None:
            self.n_features_in_ = features
        self.queries_ = 0
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: ANN401, N803
        """Return a private label for each row of X, and add the rows to the ledger.

        Draws use the system's randomness; predicting the same row again draws, and spends, again.
        An estimator that predicts another class, too few rows, or raises an error has voted for the
        first class there: an error would tell of the data that it was trained on. Try X on the
        estimators first, where that is public.

        Args:
            X: what the estimators take, n rows.

        Returns:
            Entries of ``classes_``, shape (n,).

        Raises:
            ParameterError: if X is empty or has another number of features, or if the budget does
                not allow n more predictions; before anything is drawn.
        """
        check_is_fitted(self, "design_")
        rows, second = _rows(X, getattr(self, "n_features_in_", None)), self.classes_[1]
        votes = np.column_stack([_votes(each, second, X, rows) for each in self.estimators_])
        batch = vote(
            votes,
            trained_once=self.spending_.trained_once,
            design=self.design_,
            voters_per_record=self.spending_.voters_per_record,
            slack=self.spending_.slack,
            answered=self.queries_,
            budget=self.budget_,
        )
        self.queries_ += batch.queries
        return self.classes_[batch.labels]

    @property
    def spent_(self) -> Guarantee:
        """What all predictions so far spend together, within the budget's shape; see `vote`."""
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
        spending, budget = self.spending_, self.budget_
        if slack is not None:
            spending = Spending(
                spending.setting, spending.trained_once, slack, spending.voters_per_record
            )
            budget = None
        if not self.queries_:
            return Guarantee(0.0)
        return spending.total(self.queries_, budget)[1]


def _voters(estimators: object) -> tuple[Any, ...]:
    if isinstance(estimators, str) or not isinstance(estimators, Sequence):
        raise ParameterError("estimators is not a list; it must hold fitted classifiers.")
    if len(estimators) % 2 == 0:
        raise ParameterError(
            f"estimators holds {len(estimators)}; K must be odd, so that no vote is tied."
        )
    return tuple(estimators)


def _common_classes(estimators: tuple[Any, ...]) -> npt.NDArray[Any]:
    for place, estimator in enumerate(estimators):
        if not hasattr(estimator, "classes_") or not hasattr(estimator, "predict"):
            raise ParameterError(
                f"estimators[{place}] has no classes_; it must be a fitted classifier."
            )
    classes = np.array(estimators[0].classes_)
    if classes.shape != (2,):
        raise ParameterError(
            f"estimators[0] has classes_ of shape {classes.shape}; it must know two classes."
        )
    for place, estimator in enumerate(estimators):
        if not np.array_equal(classes, np.asarray(estimator.classes_)):
            raise ParameterError(
                f"estimators[{place}] has classes_ {np.asarray(estimator.classes_).tolist()}; "
                f"they must be {classes.tolist()}, as for estimators[0]."
            )
    return classes


def _common_features(estimators: tuple[Any, ...]) -> int | None:
    known = [getattr(estimator, "n_features_in_", None) for estimator in estimators]
    if any(count != known[0] for count in known):
        raise ParameterError(f"estimators have n_features_in_ {known}; they must be the same.")
    return known[0]


def _rows(X: Any, features: int | None) -> int:  # noqa: ANN401, N803
    """Return the number of queries; X is public.

    Raises:
        ParameterError: if X has no rows, or another number of features.
    """
    shape = np.shape(X) if getattr(X, "shape", None) is None else X.shape
    if len(shape) == 0:
        raise ParameterError("X is no array; it must hold a row for each query.")
    if features is not None and len(shape) == 2 and shape[1] != features and shape[0]:
        raise ParameterError(f"X has {shape[1]} features; the estimators know {features}.")
    return int(shape[0])


def _votes(
    estimator: Any,  # noqa: ANN401
    second: object,
    X: Any,  # noqa: ANN401, N803
    rows: int,
) -> npt.NDArray[np.bool_]:
    """Return a vote for each row: for the second class where the estimator says so.

    What it answers, how much, and whether it raises an error depend on the data that it was trained
    on: all else is a vote for the first class, and nothing is told apart.
    """
    votes = np.zeros(rows, dtype=bool)
    try:
        predicted = list(estimator.predict(X))[:rows]
        votes[: len(predicted)] = [bool(answer == second) for answer in predicted]
    except Exception:  # noqa: BLE001 - an error is an answer, not to be told from the others
        votes[:] = False
    return votes

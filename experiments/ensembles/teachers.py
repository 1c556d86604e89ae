"""Teachers of scikit-learn's handwritten digits: plain ones on disjoint parts, and private ones.

1,797 images of 8 x 8 pixels, ten classes, which come with the library; see `data.groups`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpopt import ParameterError
from experiments.arrays import Floats, Ints
from experiments.data.groups import DIGITS, digits_of_sklearn

_PIXELS = 8
_FULL = 16.0
# Gradients of the fits fall below this: their distance from the optimum is nothing beside noise.
_TOLERANCE = 1e-8
_STEPS = 2000
# Newton's steps: few, and small matrices.
_SOLVER = "newton-cg"


@dataclass(frozen=True)
class Polled:
    """The votes of one ensemble on its queries.

    Attributes:
        seed: of the split, and of the noise.
        votes: classes, shape (queries, K).
        labels: true classes, shape (queries,).
        classes: C.
    """

    seed: int
    votes: Ints
    labels: Ints
    classes: int

    def counts(self) -> Ints:
        """Return how many voters chose each class, shape (queries, C)."""
        return np.stack([(self.votes == c).sum(axis=1) for c in range(self.classes)], axis=1)

    def first(self, voters: int) -> Polled:
        """Return the votes of the first voters alone."""
        return replace(self, votes=self.votes[:, :voters])


def plain(voters: int, part: int, queries: int, seed: int) -> Polled:
    """Return the votes of K logistic regressions, each on images that no other one sees.

    They have scikit-learn's own regularisation, on pixels in [0, 1].
    """
    images, labels = digits_of_sklearn()
    from sklearn.linear_model import LogisticRegression  # pyright: ignore[reportMissingImports]

    order = np.random.default_rng(seed).permutation(len(labels))
    asked, given = order[len(order) - queries :], order[: len(order) - queries]
    votes = []
    for teacher in range(voters):
        own = given[teacher * part : (teacher + 1) * part]
        if len(set(labels[own])) < 2:
            raise ParameterError(f"part is {part}; it must be so large that teachers see classes.")
        model = LogisticRegression(solver=_SOLVER, max_iter=_STEPS)
        model.fit(images[own] / _FULL, labels[own])
        votes.append(model.predict(images[asked] / _FULL))
    return Polled(seed, np.stack(votes, axis=1), labels[asked], len(DIGITS))


@dataclass(frozen=True)
class Fitted:
    """A regularised multinomial regression, and the images it is asked.

    Attributes:
        seed: of the split.
        weights: shape (C, features).
        asked: features of the queries, shape (queries, features), of norm 1 at most.
        labels: true classes in 0..C-1, shape (queries,).
        images: n, that it was trained on.
        regularisation: the weight of |W|^2 / 2 beside the mean loss.
    """

    seed: int
    weights: Floats
    asked: Floats
    labels: Ints
    images: int
    regularisation: float

    @property
    def predicted(self) -> Ints:
        """The classes without noise, shape (queries,)."""
        return np.argmax(self.asked @ self.weights.T, axis=1).astype(np.int64)

    @property
    def sensitivity(self) -> float:
        """How far one replaced image moves the weights: 2 sqrt 2 / (n regularisation).

        The gradient of the loss by W is (p - e_y) x^T, of norm sqrt 2 at most for |x| <= 1; the
        mean loss is strongly convex by the regularisation.
        """
        return 2.0 * math.sqrt(2.0) / (self.images * self.regularisation)

    def noisy(self, epsilon: float, voters: int, rng: np.random.Generator) -> Polled:
        """Return votes of K epsilon-DP voters: weights plus noise of density e^(-epsilon |b| / S).

        Its norm is of Gamma(size of W, S / epsilon), its direction uniform, S the sensitivity.

        References:
            Chaudhuri, Monteleoni, Sarwate, "Differentially Private Empirical Risk Minimization"
            (2011), Algorithm 1, with the multinomial loss in the place of the binary one.
        """
        size = self.weights.size
        ways = rng.standard_normal((voters, size))
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        noise = ways * rng.gamma(size, self.sensitivity / epsilon, (voters, 1))
        given = self.weights + noise.reshape(voters, *self.weights.shape)
        votes = np.argmax(np.einsum("qf,kcf->qkc", self.asked, given), axis=2)
        return Polled(self.seed, votes.astype(np.int64), self.labels, len(self.weights))


def ink_features(side: int) -> Floats:
    """Return the features of every image, of norm 1 at most: shape (images, side^2).

    The ink of side x side cells, scaled to norm 1, less 0.8 / side each, and scaled down to norm 1
    where it is longer: no number of these is taken from the data.
    """
    images, _ = digits_of_sklearn()
    across = _PIXELS // side
    ink = images.reshape(-1, side, across, side, across).sum(axis=(2, 4)).reshape(-1, side * side)
    features = ink / np.linalg.norm(ink, axis=1, keepdims=True) - 0.8 / side
    return features / np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))


def regression(features: Floats, labels: Ints, regularisation: float) -> Floats:
    """Return the weights of multinomial regression, of mean loss + regularisation |W|^2 / 2."""
    from sklearn.linear_model import LogisticRegression  # pyright: ignore[reportMissingImports]

    model = LogisticRegression(
        C=1.0 / (len(labels) * regularisation),
        fit_intercept=False,
        solver=_SOLVER,
        tol=_TOLERANCE,
        max_iter=_STEPS,
    )
    return np.asarray(model.fit(features, labels).coef_, dtype=float)


def fitted(
    digits: tuple[int, ...], side: int, regularisation: float, share: float, seed: int
) -> Fitted:
    """Return a regression on a share of the images of some digits, asked the others."""
    _, labels = digits_of_sklearn()
    features = ink_features(side)
    known = np.flatnonzero(np.isin(labels, digits))
    order = np.random.default_rng(seed).permutation(known)
    count = round(share * len(order))
    given, asked = order[:count], order[count:]
    places = np.searchsorted(np.sort(digits), labels)
    weights = regression(features[given], places[given], regularisation)
    return Fitted(seed, weights, features[asked], places[asked], count, regularisation)

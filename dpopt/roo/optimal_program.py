"""Linear programs over all samplers that treat letters alike: variable K[histogram, count]."""

from __future__ import annotations

import math
from itertools import chain, combinations
from math import comb

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import gammaln, xlogy

from dpopt._errors import ParameterError
from dpopt._types import Matrix, Vector
from dpopt.lp import Problem
from dpopt.lp.model import as_floats
from dpopt.roo.histograms import Histograms
from dpopt.roo.setting import RooSetting

_MOST_COUNTS = 1_000_000
# Weights below this part of the largest would leave K undefined where they stand.
_VISIBLE = 1e-9
# What an optimum gives way, so that the solver can tell its ties from its tolerance; and the gap
# that does for the program which only chooses among them.
_TIE, TIE_GAP = 1e-9, 1e-5


def histogram_prior(found: Histograms, alpha: float) -> Vector:
    """Return the law of the histogram of n records of P, P symmetric Dirichlet(alpha).

    Shape (histograms,): the Dirichlet-multinomial law of the counts times the number of their
    orders. alpha = 1, P uniform on the simplex, makes all count vectors alike likely.
    """
    counts = found.counts
    n, k = int(counts[0].sum()), counts.shape[1]
    orders = np.full(found.size, gammaln(k + 1))
    np.subtract.at(orders, found.owner, gammaln(found.multiplicity + 1))
    each = gammaln(counts + alpha) - gammaln(alpha) - gammaln(counts + 1)
    logs = orders + each.sum(axis=1) + gammaln(n + 1) + gammaln(k * alpha) - gammaln(n + k * alpha)
    law = np.exp(logs - logs.max())
    return law / law.sum()


def multinomial_prior(found: Histograms, distribution: npt.ArrayLike) -> Vector:
    """Return the law of the histogram of n records of P, shape (histograms,).

    Every letter has one count of a histogram, so that k letters count each histogram k times.
    """
    chances = incidence(found, distribution).sum(axis=0)
    return np.bincount(found.owner, chances, found.size) / found.counts.shape[1]


def visible(weights: Vector) -> Vector:
    """Return weights of an objective, raised to what a solver can see."""
    return np.maximum(weights, _VISIBLE * weights.max())


def incidence(found: Histograms, distribution: npt.ArrayLike) -> Matrix:
    """Return Pr[the data have this histogram and letter y this count], shape (k, places).

    Times K, it gives the law of the released letter under n records of P.

    Args:
        found: the histograms.
        distribution: P, shape (k,).

    Raises:
        ParameterError: if P is no law over k letters, or there are more than 1e6 count vectors.
    """
    n, k = int(found.counts[0].sum()), found.counts.shape[1]
    law = checked_law(distribution, k)
    total = comb(n + k - 1, k - 1)
    if total > _MOST_COUNTS:
        raise ParameterError(
            f"distribution is over {k} letters; {n} records of it have {total:.3g} count vectors, "
            f"and at most {_MOST_COUNTS} are summed."
        )
    bars = np.fromiter(chain.from_iterable(combinations(range(n + k - 1), k - 1)), np.int64)
    edges = np.full((total, k + 1), -1)
    edges[:, 1:-1], edges[:, -1] = bars.reshape(total, k - 1), n + k - 1
    counts = np.diff(edges, axis=1) - 1
    logs = gammaln(n + 1) + (xlogy(counts, law) - gammaln(counts + 1)).sum(axis=1)
    rows, inverse = np.unique(-np.sort(-counts, axis=1), axis=0, return_inverse=True)
    owners = np.array([found.index(row) for row in rows])[inverse.reshape(-1)]
    where = np.zeros((found.size, n + 1), dtype=np.int64)
    where[found.owner, found.count] = np.arange(found.places)
    chances = np.exp(logs)
    chances /= chances.sum()
    sums = [np.bincount(where[owners, c], chances, found.places) for c in counts.T]
    return np.array(sums, dtype=float)


def checked_law(distribution: npt.ArrayLike, letters: int) -> Vector:
    """Return P as floats that sum to 1.

    Raises:
        ParameterError: for another shape, negative values or another sum.
    """
    law = as_floats("distribution", distribution)
    if law.shape != (letters,):
        raise ParameterError(f"distribution has shape {law.shape}; it must be ({letters},).")
    if not np.all(np.isfinite(law) & (law >= 0)) or abs(float(law.sum()) - 1) > 1e-9:
        raise ParameterError("distribution must hold probabilities that sum to 1.")
    return law / law.sum()


class SamplerProgram:
    """What all objectives share: K is a law for each histogram, and private along all edges."""

    def __init__(self, setting: RooSetting, found: Histograms) -> None:
        self.setting, self.found = setting, found
        self.positive = np.flatnonzero(found.count > 0)

    def worst_case(self) -> Problem:
        """Minimise the largest TV(K(x), empirical(x)) over all data sets: variable "worst"."""
        problem = self._problem()
        problem.add_variables("worst", 1, lower=0.0, upper=1.0)
        distances, size = self._distances(), self.found.size
        minus = -np.ones((size, 1))
        problem.add_rows("distance", {"shortfall": distances, "worst": minus}, upper=0.0)
        problem.minimise({"worst": 1.0})
        return problem

    def mean(self, weights: Vector) -> Problem:
        """Minimise the mean of TV(K(x), empirical(x)), with a weight for each histogram."""
        problem = self._problem()
        problem.minimise({"shortfall": self._distances().T @ weights})
        return problem

    def among_optima(self, problem: Problem, objective: float, weights: Vector) -> None:
        """Turn a program into that of the least mean among its optima, up to `_TIE`."""
        name = "worst" if "worst" in problem.variables else "below"
        part = problem.variables[name]
        ones = np.ones((1, part.stop - part.start))
        problem.add_rows("optimum", {name: ones}, upper=objective + _TIE)
        problem.minimise({"shortfall": self._distances().T @ weights})

    def fixed(self, chances: Matrix, law: Vector) -> Problem:
        """Minimise TV(mean of K(x), P): the sum of "below", P(y) less the chance of y, or 0."""
        problem = self._problem()
        problem.add_variables("below", law.size, lower=0.0, upper=1.0)
        sides = {"kernel": chances, "below": sp.eye_array(law.size)}
        problem.add_rows("output", sides, lower=law)
        problem.minimise({"below": 1.0})
        return problem

    def _problem(self) -> Problem:
        """Return the constraints; "shortfall" is at least c / n - K where c > 0."""
        found, n = self.found, self.setting.records
        problem = Problem("optimal sampler of one letter")
        problem.add_variables("kernel", found.places, lower=0.0, upper=1.0)
        problem.add_variables("shortfall", self.positive.size, lower=0.0, upper=1.0)
        problem.add_rows("sums", {"kernel": self._sums()}, lower=1.0, upper=1.0)
        problem.add_rows("privacy", {"kernel": self._ratios()}, upper=0.0)
        chosen = sp.eye_array(found.places, format="csr")[self.positive]
        sides = {"kernel": chosen, "shortfall": sp.eye_array(self.positive.size)}
        problem.add_rows("shortfalls", sides, lower=found.count[self.positive] / n)
        return problem

    def _sums(self) -> sp.csr_array:
        found = self.found
        places = (found.owner, np.arange(found.places))
        return sp.csr_array(
            (found.multiplicity.astype(float), places), shape=(found.size, found.places)
        )

    def _distances(self) -> sp.csr_array:
        """Return the matrix that takes the shortfalls to TV(K, empirical) of each histogram."""
        return sp.csr_array(self._sums()[:, self.positive])

    def _ratios(self) -> sp.csr_array:
        """Return e^-epsilon K' - K for each edge; its size stays in range for large epsilon."""
        edges = self.found.edges
        count = len(edges)
        data = np.repeat([math.exp(-self.setting.epsilon), -1.0], count)
        rows = np.tile(np.arange(count), 2)
        columns = np.concatenate([edges[:, 1], edges[:, 0]])
        return sp.csr_array((data, (rows, columns)), shape=(count, self.found.places))

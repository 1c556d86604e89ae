"""The Bayesian adversary's adjusted utility, for any anonymous mechanism (Justification 3)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpopt import ParameterError
from dpopt.prob.histograms import checked_histograms
from dpopt.prob.tails import log_tails
from dpopt.smoothed.mechanisms import AnonymousMechanism, SamplingHistogram


def candidates_utility(pmfs: npt.ArrayLike, threshold: float) -> float:
    """Return the adjusted utility of an adversary who knows all records but one.

    u(t) = 1/(1 - t) max_c sum_a P_c(a) max(0, max_v Pr[v | a] - t), where P_c is the distribution
    of the output if the record is c, and Pr[v | a] = P_v(a) / sum_w P_w(a): the prior is uniform
    over the candidates. The adversary names the likeliest v, right or wrong, and gains where the
    posterior exceeds t; c is what the record really is.

    At t = e^epsilon / (e^epsilon + 1) the term of output a with likeliest v is P_c/S (P_v -
    e^epsilon (S - P_v)), S = sum_w P_w. So for two candidates the utilities of the two records
    add up to d(x, x') + d(x', x) exactly, and their maximum u satisfies u <= d + d' <= 2 u: the 3
    of Lemma 10 may be 2. The first is an equality, against the < of Lemmas 2 and 10, where one
    of the two utilities is 0; the second where they are equal.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, equation (3) and Lemma 10.
    """
    t, table = threshold, np.asarray(pmfs, dtype=float)
    if table.ndim != 2 or table.shape[0] < 2 or not np.all((table >= 0) & (table <= 2)):
        raise ParameterError(
            f"pmfs has shape {table.shape}; it must hold probabilities, one row for each of at "
            "least 2 candidates."
        )
    total, best = table.sum(axis=0), table.max(axis=0)
    rest = np.sort(table, axis=0)[:-1].sum(axis=0)
    # The posterior less t, without the difference of two numbers near t.
    gain = np.maximum(0.0, (1.0 - t) * best - t * rest)
    share = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    return float(np.max(share @ gain)) / (1.0 - t)


def adversary_utility(
    mechanism: AnonymousMechanism,
    threshold: float,
    histogram: npt.ArrayLike,
    *,
    reading: str = "pairs",
) -> float:
    """Return ln u, u the adjusted utility of the adversary against a database.

    The paper has two definitions, equal for m = 2:

    - "pairs": max over neighbours x' of u(t, x and x'), the prior uniform over the two values of
      the record in which they differ (Lemmas 2 and 10, Appendix A.1; Figures 1 and 3).
    - "categories": max over records i of u(t, x_-i), the prior uniform over all m categories
      (equation (3)).

    At t = e^epsilon / (e^epsilon + 1), with "pairs" u <= 2 delta(x) (Corollary 3), less where
    delta(x) > 0. With "categories" u <= 2 max_c delta(x_-i + c) for the i that attains it, which
    gives Lemma 1; but u may exceed 2 delta(x), up to 1 + (m - 1)/(e^epsilon + 1) times delta(x),
    and it may be positive where Lemma 2's d(x, x') + d(x', x) is 0. Its proof compares a pair of
    categories that depends on the output.

    t is in [1/2, 1) for "pairs" and [1/m, 1) for "categories": below that a guess without any
    output would gain. Where all pmfs are summed, u has the relative error of the pmfs except near
    outputs whose posterior is t, and is 0 below about 1e-300.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, equation (3), Lemma 1, Corollary 3.
    """
    m = mechanism.categories
    (counts,) = checked_histograms([histogram], mechanism.records, m)
    t = threshold
    if isinstance(mechanism, SamplingHistogram) and m == 2 and not mechanism.replacement:
        return float(log_utility_at(mechanism.records, mechanism.drawn, t, counts[:1])[0])
    best = 0.0
    for own in np.flatnonzero(counts):
        pmfs = _pmfs_without(mechanism, counts, int(own))
        if reading == "categories":
            best = max(best, candidates_utility(pmfs, t))
            continue
        for other in range(m):
            if other != own:
                best = max(best, candidates_utility(pmfs[[own, other]], t))
    return math.log(best) if best > 0.0 else -math.inf


def log_utility_at(
    records: int, drawn: int, threshold: float, ones: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the logarithm of the Bayesian adversary's adjusted utility at chosen H.

    The adversary knows all records but one, X_i in {0, 1}, has a uniform prior on it and reads
    the published count a. For the neighbours x, x' that differ in X_i,

        u(t, x and x') = 1/(1 - t) max_{X_i} E_{a ~ M(x_-i + X_i)} max(0, max_v Pr[v | a] - t),

    with the inner maximum over the two values v of the record: a confident but wrong guess counts
    too. The utility of a database is the largest over its neighbours, the pairs of counts
    {H, H + 1} and {H - 1, H}. t is in [1/2, 1): below 1/2 the better guess always exceeds it.

    References:
        Liu, Wang, Xia, Smoothed Differential Privacy, Section 4 and Appendix A.1.
    """
    lost = records - drawn
    # Axes of right and wrong: which value the record has (one, zero: the counts exchanged), which
    # pair of counts ({H, H + 1}, {H - 1, H}), database.
    held = np.concatenate([np.clip(ones + 1, 1, records), np.clip(ones, 1, records)])
    side = np.concatenate([held, records + 1 - held])
    shares = (1.0 - threshold, (threshold, 0.0))
    right = log_tails(records, lost, side, *shares, "a").reshape(2, 2, -1)
    wrong = log_tails(records, lost, side, *shares, "b").reshape(2, 2, -1)
    total = np.logaddexp(right, wrong[::-1])
    return np.max(total, axis=(0, 1)) - np.log1p(-threshold)


def _pmfs_without(
    mechanism: AnonymousMechanism, counts: npt.NDArray[np.int64], own: int
) -> npt.NDArray[np.float64]:
    """Return the pmfs if one record of category ``own`` is replaced by each category."""
    rows = np.tile(counts, (mechanism.categories, 1))
    rows[:, own] -= 1
    return mechanism.pmfs(rows + np.eye(mechanism.categories, dtype=np.int64))

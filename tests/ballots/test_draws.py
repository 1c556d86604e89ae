"""Batch draws of labels: the distribution of each row of counts, in every order of its classes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

import dpopt
from dpopt.privacy.release import system
from dpopt.table import SortedHistograms, rounded

ALARM = 1e-9


@pytest.mark.parametrize("batches", [1, 4_000])
def test_each_row_has_its_own_distribution(batches: int) -> None:
    """Weights 5/8 and 3/16, 3/16 for (2, 1, 1); 1/2, 1/4, 1/4 for (4, 0, 0); in every order."""
    inputs = SortedHistograms(4, 3)
    point = [Fraction(1, 1 + many) for many in inputs.counts.tolist()]
    known = {(4, 0, 0): (1 / 2, 1 / 4, 1 / 4), (2, 1, 1): (5 / 8, 3 / 16, 3 / 16)}
    for state, shares in known.items():
        start = inputs.starts[inputs.rows_of(np.array([state]))[0]]
        point[start : start + 2] = [Fraction(shares[0]), Fraction(shares[1])]
    table = rounded(inputs, point)
    rows = np.array([[1, 2, 1], [0, 0, 4], [4, 0, 0], [1, 1, 2]])
    # Batches of fewer draws than entries of the kernel are drawn by variable, then by output.
    queries = np.tile(rows, (40_000 // batches, 1))
    drawn = [table.drawn(queries, system)[0] for _ in range(batches)]
    labels = np.concatenate(drawn).reshape(-1, 4)
    for place, row in enumerate(rows.tolist()):
        top = max(row)
        first, others = known[(4, 0, 0) if top == 4 else (2, 1, 1)][:2]
        shares = np.array([first if count == top else others for count in row])
        observed = np.bincount(labels[:, place], minlength=3)
        assert chisquare(observed, shares * 40_000).pvalue > ALARM


def test_a_batch_of_100_classes() -> None:
    """All ballots for one class: the limit has words of more than 128 bits."""
    design = dpopt.design(dpopt.Multiclass(5, 100, 1.0, 5, rule="ladder"))
    votes = np.full((500, 5), 63)
    share = np.mean(np.asarray(design.release(votes)) == 63)
    wanted = float(design.kernel[0])
    assert abs(share - wanted) < 6 * (wanted * (1 - wanted) / 500) ** 0.5 + 1e-12

"""Batch draws of labels: the law of each row of counts, in every order of its classes."""

from __future__ import annotations

import secrets
from bisect import bisect_right
from fractions import Fraction
from io import BytesIO
from itertools import accumulate, product

import numpy as np
import pytest
from scipy.stats import chisquare

from dpopt import multiclass
from dpopt.ballots import draws
from dpopt.ballots.draws import Labels
from dpopt.ballots.partitions import Partitions
from dpopt.ballots.table import law, quantised, scale
from dpopt.privacy.release import system

ALARM = 1e-9


@pytest.mark.parametrize("listed", [True, False])
def test_each_row_has_its_own_law(listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights 5/8 and 3/16, 3/16 for (2, 1, 1); 1/2, 1/4, 1/4 for (4, 0, 0); in every order."""
    if not listed:
        monkeypatch.setattr(draws, "_MOST_CODES", 0)
        monkeypatch.setattr(draws, "_MOST_WEIGHTS", 0)
    partitions = Partitions(4, 3)
    point = [Fraction(1, 1 + many) for many in partitions.multiplicities.tolist()]
    laws = {(4, 0, 0): (1 / 2, 1 / 4, 1 / 4), (2, 1, 1): (5 / 8, 3 / 16, 3 / 16)}
    for state, shares in laws.items():
        start = partitions.starts[partitions.place[state]]
        point[start : start + 2] = [Fraction(shares[0]), Fraction(shares[1])]
    units = quantised(partitions, point)
    rows = np.array([[1, 2, 1], [0, 0, 4], [4, 0, 0], [1, 1, 2]])
    many = np.tile(rows, (40_000, 1))
    labels = Labels(partitions, units).draw(many, system).reshape(-1, 4)
    for place, row in enumerate(rows.tolist()):
        top = max(row)
        first, others = laws[(4, 0, 0) if top == 4 else (2, 1, 1)][:2]
        law = np.array([first if count == top else others for count in row])
        observed = np.bincount(labels[:, place], minlength=3)
        assert chisquare(observed, law * 40_000).pvalue > ALARM


@pytest.mark.parametrize("listed", [True, False])
def test_numbers_that_are_enumerated_give_each_vector_of_counts_its_law(
    listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The middles of 4,096 equal parts of [0, 1), among the weights of the integers."""
    if not listed:
        monkeypatch.setattr(draws, "_MOST_CODES", 0)
        monkeypatch.setattr(draws, "_MOST_WEIGHTS", 0)
    partitions = Partitions(5, 3)
    rng = np.random.default_rng(2)
    units = quantised(
        partitions, [Fraction(n) for n in rng.integers(1, 9, partitions.size).tolist()]
    )
    labels, total = Labels(partitions, units), scale(3)
    words = [k << 52 | 1 << 51 for k in range(4096)]
    for counts in (row for row in product(range(6), repeat=3) if sum(row) == 5):
        order = np.argsort(-np.array(counts), kind="stable")
        weights = law(partitions, units, counts)
        sums = [c << 64 for c in accumulate(weights[place] for place in order.tolist())]
        given = BytesIO(np.array(words, dtype="<u8").tobytes())
        found = labels.draw(np.tile(counts, (len(words), 1)), given.read)
        assert found.tolist() == [order[bisect_right(sums, u * total)] for u in words]


def test_a_batch_of_100_classes() -> None:
    """All ballots for one class: the limit has words of more than 128 bits."""
    design = multiclass.design(5, 100, 1.0, 5, rule="ladder")
    votes = np.full((500, 5), 63)
    share = np.mean(np.asarray(design.release(votes)) == 63)
    wanted = float(design.kernel[design.setting.partitions.starts[0]])
    assert abs(share - wanted) < 6 * (wanted * (1 - wanted) / 500) ** 0.5 + 1e-12


def test_a_seed_gives_the_same_labels() -> None:
    design = multiclass.design(5, 3, 0.5, 2, rule="ladder")
    votes = np.random.default_rng(1).integers(0, 3, (50, 5))
    first, second = (design.simulate(votes, np.random.default_rng(2)) for _ in range(2))
    assert np.array_equal(first, second)
    one = design.release([secrets.randbelow(3) for _ in range(5)])
    assert type(one) is int

"""Batch draws from integer weights: uniform below any limit, and the law of each row."""

from __future__ import annotations

import secrets
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import chisquare

from dpopt import multiclass
from dpopt.ballots.draws import drawn_labels, words_below
from dpopt.ballots.partitions import Partitions
from dpopt.ballots.table import quantised, scale
from dpopt.privacy.release import Words, random_words, seeded_words

ALARM = 1e-9


@pytest.mark.parametrize("limit", [2, 5, 6, 257])
def test_words_are_uniform_below_a_small_limit(limit: int) -> None:
    drawn = words_below(limit, 60_000, random_words)
    assert drawn.shape == (1, 60_000)
    observed = np.bincount(drawn[0].astype(np.int64), minlength=limit)
    assert observed.size == limit
    assert chisquare(observed).pvalue > ALARM


@pytest.mark.parametrize("limit", [3 << 62, 1 << 64, (1 << 64) + 1, 60 << 62, scale(100)])
def test_words_are_below_a_large_limit(limit: int) -> None:
    """A remainder of words would favour the lower part: here thirds are equally likely."""
    drawn = words_below(limit, 3_000, random_words)
    values = [sum(int(w) << (64 * i) for i, w in enumerate(column[::-1])) for column in drawn.T]
    assert max(values) < limit
    assert chisquare(np.bincount([3 * v // limit for v in values], minlength=3)).pvalue > ALARM


def test_too_large_ones_are_drawn_again() -> None:
    """5 and 6 of three bits are refused below 5, in as many rounds as it takes."""
    given = iter([[5, 0, 7], [6, 4], [3]])
    asked = []

    def words(bits: int, count: int) -> Words:
        asked.append((bits, count))
        return np.array([next(given)], dtype=np.uint64)

    assert words_below(5, 3, words).tolist() == [[3, 0, 4]]
    assert asked == [(3, 3), (3, 2), (3, 1)]


def test_each_row_has_its_own_law() -> None:
    """Weights 5/8 and 3/16, 3/16 for (2, 1, 1); 1/2, 1/4, 1/4 for (4, 0, 0); in every order."""
    partitions = Partitions(4, 3)
    point = [Fraction(1, 1 + many) for many in partitions.multiplicities.tolist()]
    laws = {(4, 0, 0): (1 / 2, 1 / 4, 1 / 4), (2, 1, 1): (5 / 8, 3 / 16, 3 / 16)}
    for state, shares in laws.items():
        start = partitions.starts[partitions.place[state]]
        point[start : start + 2] = [Fraction(shares[0]), Fraction(shares[1])]
    units = quantised(partitions, point)
    rows = np.array([[1, 2, 1], [0, 0, 4], [4, 0, 0], [1, 1, 2]])
    many = np.tile(rows, (40_000, 1))
    labels = drawn_labels(partitions, units, many, 62, random_words).reshape(-1, 4)
    for place, row in enumerate(rows.tolist()):
        top = max(row)
        first, others = laws[(4, 0, 0) if top == 4 else (2, 1, 1)][:2]
        law = np.array([first if count == top else others for count in row])
        observed = np.bincount(labels[:, place], minlength=3)
        assert chisquare(observed, law * 40_000).pvalue > ALARM


def test_a_batch_of_100_classes() -> None:
    """All ballots for one class: the limit has words of more than 128 bits."""
    design = multiclass.best_design(5, 100, 1.0, 5, rule="ladder")
    votes = np.full((500, 5), 63)
    share = np.mean(np.asarray(design.release(votes)) == 63)
    wanted = float(design.kernel[design.setting.partitions.starts[0]])
    assert abs(share - wanted) < 6 * (wanted * (1 - wanted) / 500) ** 0.5 + 1e-12


def test_a_seed_gives_the_same_labels() -> None:
    design = multiclass.best_design(5, 3, 0.5, 2, rule="ladder")
    votes = np.random.default_rng(1).integers(0, 3, (50, 5))
    first, second = (design.simulate(votes, np.random.default_rng(2)) for _ in range(2))
    assert np.array_equal(first, second)
    drawn = words_below(6, 9, partial(seeded_words, rng=np.random.default_rng(3)))
    assert np.all(drawn < 6)
    one = design.release([secrets.randbelow(3) for _ in range(5)])
    assert type(one) is int

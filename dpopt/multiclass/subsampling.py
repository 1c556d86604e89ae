"""The plurality of a sample of the voters, exactly.

M of K voters are drawn without replacement, and the class that most of them vote for is told; a
fair draw decides between classes that share the largest count. What it spends is computed by
`experiments.ensembles.sampled`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import comb

from dpopt import _checks
from dpopt.table import SortedHistograms


def sampled_plurality(inputs: SortedHistograms, sample: int) -> tuple[Fraction, ...]:
    """Return k[lambda, c], the law of the plurality of a sample, exactly, by variable.

    k = sum over sub-histograms h of M votes of prod_x binom(l_x, h_x) / binom(K, M), times
    1 / (number of top classes of h) where the class is one of them.

    Args:
        inputs: the sorted histograms of K votes over C classes.
        sample: M, in 1..K.
    """
    size = _checks.integer("sample", sample, 1, inputs.records)
    ways_in_all, shares = comb(inputs.records, size), list[Fraction]()
    for state in inputs.listed():
        told = dict.fromkeys(state, Fraction(0))
        for drawn, ways in _samples(state, size):
            top = max(drawn)
            fair = Fraction(ways, ways_in_all * drawn.count(top))
            for count, votes in zip(state, drawn, strict=True):
                if votes == top:
                    told[count] += fair
        shares += [share / state.count(count) for count, share in told.items()]
    return tuple(shares)


def _samples(counts: Sequence[int], size: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the histograms of ``size`` votes drawn, each with its number of ways."""
    if len(counts) == 1:
        if size <= counts[0]:
            yield (size,), comb(counts[0], size)
        return
    for first in range(min(counts[0], size) + 1):
        ways = comb(counts[0], first)
        for rest, others in _samples(counts[1:], size - first):
            yield (first, *rest), ways * others

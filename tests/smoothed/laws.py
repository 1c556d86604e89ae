"""Laws and hockey-sticks in exact rationals, from the definitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
from mpmath import mp, mpf

from dpopt.smoothed import sampling
from dpopt.smoothed.mechanisms import SamplingHistogram

Vector = npt.NDArray[np.float64]
Law = dict[tuple[int, ...], Fraction]
Histogram = tuple[int, ...]


def exact_exp(epsilon: float) -> Fraction:
    """Return e^epsilon to 60 digits."""
    with mp.workdps(70):
        return Fraction(int(mp.exp(mpf(epsilon)) * mpf(10) ** 60), 10**60)


def compositions(total: int, parts: int) -> Iterator[Histogram]:
    """Yield all histograms, smallest first counts first."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def records_of(histogram: Histogram) -> list[int]:
    """Return a database with this histogram."""
    return [c for c, count in enumerate(histogram) for _ in range(count)]


def counts_of(records: tuple[int, ...], categories: int) -> Histogram:
    tally = Counter(records)
    return tuple(tally[c] for c in range(categories))


def by_subsets(histogram: Histogram, drawn: int) -> Law:
    """Return the law of the drawn histogram over all subsets of T records."""
    tally = Counter(
        counts_of(chosen, len(histogram)) for chosen in combinations(records_of(histogram), drawn)
    )
    return {key: Fraction(count, tally.total()) for key, count in tally.items()}


def by_words(histogram: Histogram, drawn: int) -> Law:
    """Return the law of the drawn histogram over all words of T records with replacement."""
    tally = Counter(
        counts_of(word, len(histogram)) for word in product(records_of(histogram), repeat=drawn)
    )
    return {key: Fraction(count, tally.total()) for key, count in tally.items()}


@cache
def hypergeometric(histogram: Histogram, drawn: int) -> Law:
    """Return prod C(H_c, h_c) / C(n, T)."""
    total = math.comb(sum(histogram), drawn)
    law = {
        h: math.prod(math.comb(a, b) for a, b in zip(histogram, h, strict=True))
        for h in compositions(drawn, len(histogram))
    }
    return {h: Fraction(count, total) for h, count in law.items() if count}


@cache
def multinomial(histogram: Histogram, drawn: int) -> Law:
    """Return T! prod (H_c / n)^h_c / h_c!."""
    total = sum(histogram) ** drawn
    law = {}
    for h in compositions(drawn, len(histogram)):
        ways = math.factorial(drawn)
        for count in h:
            ways //= math.factorial(count)
        law[h] = ways * math.prod(a**b for a, b in zip(histogram, h, strict=True))
    return {h: Fraction(count, total) for h, count in law.items() if count}


def neighbours(histogram: Histogram) -> list[Histogram]:
    """Return what one replaced record makes of it."""
    found = []
    for a, b in product(range(len(histogram)), repeat=2):
        if a != b and histogram[a]:
            moved = list(histogram)
            moved[a] -= 1
            moved[b] += 1
            found.append(tuple(moved))
    return found


def stick(p: Mapping[Any, Fraction], q: Mapping[Any, Fraction], ratio: Fraction) -> Fraction:
    """Return sum (p - ratio q)_+."""
    return sum((max(p[y] - ratio * q.get(y, 0), Fraction(0)) for y in p), Fraction(0))


def delta(law: Callable[[Histogram], Law], histogram: Histogram, ratio: Fraction) -> Fraction:
    """Return delta of one database, from its law and those of its neighbours."""
    own, worst = law(histogram), Fraction(0)
    for other in neighbours(histogram):
        its = law(other)
        worst = max(worst, stick(own, its, ratio), stick(its, own, ratio))
    return worst


def profile(
    records: int, drawn: int, categories: int, ratio: Fraction, again: bool = False
) -> dict[Histogram, Fraction]:
    """Return delta of every database of the sampling-histogram."""
    law = partial(multinomial if again else hypergeometric, drawn=drawn)
    return {row: delta(law, row, ratio) for row in compositions(records, categories)}


def spread(records: Iterable[Sequence[Any]], categories: int) -> dict[Histogram, Any]:
    """Return the law of the histogram of independent records, each with a law of its own."""
    law: dict[Histogram, Any] = {(0,) * categories: 1}
    for record in records:
        after: dict[Histogram, Any] = {}
        for h, chance in law.items():
            for c, p in enumerate(record):
                key = (*h[:c], h[c] + 1, *h[c + 1 :])
                after[key] = after.get(key, 0) + chance * p
        law = after
    return law


def mean(
    values: Mapping[Histogram, Any], laws: Sequence[Sequence[Any]], counts: Iterable[int]
) -> Any:
    """Return E V(h) where so many of the records come from each of the laws."""
    chosen = [law for law, count in zip(laws, counts, strict=True) for _ in range(count)]
    return sum(p * values[h] for h, p in spread(chosen, len(laws[0])).items())


def means(
    values: Mapping[Histogram, Any], laws: Sequence[Sequence[Any]], records: int
) -> dict[Histogram, Any]:
    """Return E V(h) for every composition of the records."""
    return {counts: mean(values, laws, counts) for counts in compositions(records, len(laws))}


def log_of(value: Fraction) -> float:
    """Return ln of a rational, correctly to about a rounding error, -inf for 0."""
    if value == 0:
        return -math.inf
    with mp.workdps(40):
        return float(mp.log(mpf(value.numerator) / mpf(value.denominator)))


def log_profile(records: int, drawn: int, epsilon: float, again: bool = False) -> Vector:
    """Return the package's ln delta of all databases over two categories."""
    return sampling.log_profile(SamplingHistogram(records, drawn, 2, again), epsilon)


def log_delta_at(
    records: int, drawn: int, epsilon: float, ones: npt.NDArray[np.int64], again: bool = False
) -> Vector:
    """Return the package's ln delta of databases over two categories, each asked for by itself."""
    mechanism = SamplingHistogram(records, drawn, 2, again)
    rows = np.column_stack([ones, records - ones])
    return np.concatenate([sampling.log_delta_at(mechanism, epsilon, row) for row in rows])


def log_divergence(
    records: int, drawn: int, epsilon: float, ones: npt.NDArray[np.int64], again: bool = False
) -> Vector:
    """Return the package's ln D(H + 1 || H)."""
    return sampling.log_divergence(SamplingHistogram(records, drawn, 2, again), epsilon, ones)


def assert_logs(logs: npt.ArrayLike, exact: Iterable[Any], tolerance: float) -> None:
    """Compare logarithms with exact values, -inf with 0."""
    for log_value, value in zip(np.asarray(logs).tolist(), exact, strict=True):
        if value == 0:
            assert log_value == -np.inf
        else:
            # One unit in the last place of a logarithm of 10^5 is 1.5e-11 already.
            exactly = (
                mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value
            )
            error = abs(mp.expm1(mpf(log_value) - mp.log(exactly)))
            assert error <= max(tolerance, np.spacing(abs(log_value)))

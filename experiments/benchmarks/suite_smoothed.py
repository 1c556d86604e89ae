"""Benchmarks of smoothed differential privacy: profiles, compositions, one step of SGD."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import smoothed
from experiments.benchmarks.spec import (
    LIBRARY,
    OURS,
    PAPER,
    Answer,
    Benchmark,
    Contender,
    Target,
    limited,
)

EPSILON = 1.0
SHARES = (0.7714, 0.0553)
_LOST = 500
_WHOLE_UP_TO = 2_000
_ENTRIES, _LEAST_TABLES, _MOST_TABLES, _BLOCKS = 2_000_000, 40, 400, 4

Floats = npt.NDArray[np.float64]

_BITS, _PRECISE = 256, 128
_NO_EPSILON = 0.0
_DRAWS, _BATCH = 10_000_000, 500_000
Integers = npt.NDArray[np.int64]


def mechanism(records: int) -> smoothed.SamplingHistogram:
    """Return the sampling-histogram that loses one record in 500."""
    return smoothed.SamplingHistogram(records, records - max(1, records // _LOST))


def every_database(instance: smoothed.SamplingHistogram) -> Answer:
    """Sum tails for all n + 1 databases."""
    log_delta = smoothed.privacy_profile(instance, EPSILON).log_delta
    return Answer(float(np.mean(log_delta)) / math.log(10))


def tables_on_support(instance: smoothed.SamplingHistogram) -> Answer:
    """Make a hypergeometric table for each H up to n / 2, over the outputs it can have."""
    return _by_tables(instance, whole=False)


def tables_of_all_outputs(instance: smoothed.SamplingHistogram) -> Answer:
    """Make the same tables over every output 0..T."""
    return _by_tables(instance, whole=True)


def _by_tables(instance: smoothed.SamplingHistogram, *, whole: bool) -> Answer:
    """Return the mean of log10 delta, or do a part of the tables where there are many."""
    n = instance.records
    half = n // 2
    length = instance.drawn + 1 if whole else instance.lost + 1
    if n <= _WHOLE_UP_TO:
        lower = _deltas(instance, 0, half + 1, whole=whole)
        every = np.append(lower, lower[: n - half][::-1])
        return Answer(float(np.mean(np.log10(every))), note=f"{half + 2:,} tables")
    each = max(_LEAST_TABLES, min(_MOST_TABLES, _ENTRIES // length)) // _BLOCKS
    starts = np.linspace(1, half - each, _BLOCKS).astype(int)
    for start in starts.tolist():
        _deltas(instance, start, start + each, whole=whole)
    # A run of databases needs the tables of both ends' neighbours too.
    done = (each + 2) * _BLOCKS
    note = f"{done:,} of {half + 2:,} tables, in {_BLOCKS} runs of neighbours"
    return Answer(None, part=done / (half + 2), note=note)


def _deltas(instance: smoothed.SamplingHistogram, first: int, last: int, *, whole: bool) -> Floats:
    """Return delta(H) for H in first..last - 1; each table serves both of its neighbours."""
    tables: dict[int, tuple[int, Floats]] = {}
    found = []
    n = instance.records
    for ones in range(first, last):
        near = [h for h in (ones - 1, ones, ones + 1) if 0 <= h <= n]
        tables = {h: tables.get(h) or _table(instance, h, whole=whole) for h in near}
        sticks = [
            _stick(tables[a], tables[b])
            for h in near
            if h != ones
            for a, b in ((ones, h), (h, ones))
        ]
        found.append(max(sticks))
    return np.array(found)


def _table(instance: smoothed.SamplingHistogram, ones: int, *, whole: bool) -> tuple[int, Floats]:
    """Return the least output and the probabilities of the numbers of ones published."""
    from scipy.stats import hypergeom

    low = 0 if whole else ones - instance.lost
    high = instance.drawn if whole else ones
    outputs = np.arange(low, high + 1)
    return low, hypergeom.pmf(outputs, instance.records, ones, instance.drawn)


def _stick(one: tuple[int, Floats], two: tuple[int, Floats]) -> float:
    """Return sum of max(0, P - e^epsilon P')."""
    (low, p), (other, q) = one, two
    moved = np.zeros(p.size)
    here, there = max(0, other - low), max(0, low - other)
    shared = min(p.size - here, q.size - there)
    moved[here : here + shared] = q[there : there + shared]
    return float(np.maximum(p - math.exp(EPSILON) * moved, 0.0).sum())


def one_database(instance: smoothed.SamplingHistogram) -> Answer:
    """Sum the tail of the database with as many ones as zeros."""
    n = instance.records
    profile = smoothed.privacy_profile(instance, EPSILON, [n - n // 2, n // 2])
    return Answer(float(profile.log_delta[0]) / math.log(10))


def three_tables(instance: smoothed.SamplingHistogram) -> Answer:
    """Make the tables of the database and its two neighbours with scipy, in logarithms."""
    from scipy.special import logsumexp
    from scipy.stats import hypergeom

    n, drawn, half = instance.records, instance.drawn, instance.records // 2
    outputs = np.arange(max(0, half - 1 - instance.lost), half + 2)
    laws = {h: hypergeom.logpmf(outputs, n, h, drawn) for h in (half - 1, half, half + 1)}
    best = -math.inf
    for h in (half - 1, half + 1):
        for p, q in ((laws[half], laws[h]), (laws[h], laws[half])):
            over = (p > -np.inf) & (p > EPSILON + q)
            p, q = p[over], q[over]
            best = max(best, float(logsumexp(p + np.log(-np.expm1(EPSILON + q - p)))))
    return Answer(best / math.log(10))


def enclosed(instance: smoothed.SamplingHistogram) -> Answer:
    """Sum the tail in arb, whose intervals are proved, and return the middle of log10 delta."""
    from flint import arb, ctx

    n, lost, half = instance.records, instance.lost, instance.records // 2
    before, ctx.prec = ctx.prec, _BITS
    try:
        # D(G || G - 1) for both pairs of neighbours, and the same of the zeros.
        logs = {g: _tail(n, lost, g) for g in {half + 1, n - half, half, n + 1 - half}}
        largest = max((log / arb(10).log() for log in logs.values()), key=lambda log: log.mid())
        note = f"proved to {float(largest.rad()):.0e}"
        return Answer(float(largest.mid()), note=note)
    finally:
        ctx.prec = before


def _tail(records: int, lost: int, held: int) -> Any:  # noqa: ANN401
    """Return ln D(G || G - 1): sum over the K ones lost of P_G(K) (1 - e^epsilon P_{G-1}/P_G)."""
    from flint import arb

    factor, zeros = arb(EPSILON).exp(), records - held

    def log_choose(n: int, k: int) -> Any:  # noqa: ANN401
        return sum((sign * arb(x + 1).lgamma() for sign, x in ((1, n), (-1, k), (-1, n - k))))

    def weight(k: int) -> Any:  # noqa: ANN401
        return 1 - factor * k * (zeros + 1) / (arb(held) * (lost - k + 1))

    start = min(int(held * (lost + 1) / (math.e * (zeros + 1) + held)) + 2, lost, held)
    while not weight(start) > 0:
        start -= 1
    total, term, k = arb(0), arb(1), start
    while k >= max(0, lost - zeros):
        added = term * weight(k)
        total += added
        # Ratios of the terms fall and the weights stay below 1: the rest is a geometric sum.
        ratio = arb(k) * (zeros - lost + k) / (arb(held - k + 1) * (lost - k + 1))
        term, k = term * ratio, k - 1
        rest = term / (1 - ratio)
        if ratio < 1 and rest < total * arb(2) ** -_PRECISE:
            total += rest * arb(0.5, 0.5)
            break
    probability = log_choose(held, start) + log_choose(zeros, lost - start)
    return probability - log_choose(records, lost) + total.log()


def every_composition(instance: smoothed.SamplingHistogram) -> Answer:
    """Return smoothed delta with the certificate that the maximum is the maximum."""
    distributions = [[1 - share, share] for share in SHARES]
    found = smoothed.smoothed_delta(instance, EPSILON, distributions)
    note = "certified" if found.certificate is not None else "without a certificate"
    return Answer(float(found.log10_delta), note=note)


@dataclass(frozen=True)
class Profiled:
    """A mechanism and delta of all its databases, shape (n + 1,), by number of ones."""

    mechanism: smoothed.SamplingHistogram
    delta: Floats


def profiled(records: int) -> Profiled:
    """Return the mechanism with its profile, which the paper's Algorithm 1 starts from."""
    made = mechanism(records)
    profile = smoothed.privacy_profile(made, EPSILON)
    ones = profile.histograms[:, 1]
    delta = np.empty(records + 1)
    delta[ones] = np.exp(profile.log_delta)
    return Profiled(made, delta)


def one_convolution_each(instance: Profiled) -> Answer:
    """Convolve two binomial laws for every composition and average delta, as Algorithm 1 does."""
    from scipy.signal import fftconvolve
    from scipy.stats import binom

    n = instance.mechanism.records
    whole = n <= _WHOLE_UP_TO
    sizes = np.arange(n + 1) if whole else np.linspace(0, n, _few(n)).astype(int)
    best = 0.0
    for first in sizes.tolist():
        one = binom.pmf(np.arange(first + 1), first, SHARES[0])
        two = binom.pmf(np.arange(n - first + 1), n - first, SHARES[1])
        best = max(best, float(fftconvolve(one, two) @ instance.delta))
    note = f"{sizes.size:,} of {n + 1:,} compositions; the profile is given"
    return Answer(math.log10(best) if whole else None, part=sizes.size / (n + 1), note=note)


def _few(records: int) -> int:
    return max(_LEAST_TABLES, min(200, 2 * _ENTRIES // records))


PROFILE = Benchmark(
    name="smoothed-profile",
    title="Smoothed DP: delta of every database",
    measures="delta of all n + 1 databases of a sampling-histogram with two categories.",
    setting="0.2 % of the records lost, epsilon = 1",
    axis="records n",
    value="mean of log10 delta",
    sizes=(1000, 3000, 10_000, 100_000, 1_000_000),
    contenders=(
        Contender("dpopt.privacy_profile", OURS, mechanism, every_database),
        Contender("n / 2 tables, support only", PAPER, mechanism, tables_on_support),
        Contender("n / 2 tables, every output", PAPER, mechanism, tables_of_all_outputs),
    ),
    tolerance=1e-9,
    warm_up=100,
    targets=(
        Target(100_000, "n / 2 tables, support only", 1000.0),
        Target(100_000, "n / 2 tables, every output", 1000.0),
    ),
)

DATABASE = Benchmark(
    name="smoothed-database",
    title="Smoothed DP: delta of one database",
    measures="delta of the database with as many ones as zeros. Where ours and scipy's tables "
    "differ, ours is right: it is in the interval that arb proves. The tail adds 1 - e^(epsilon - "
    "ln(P/Q)), and at n = 1e9 the exponents that count are about 3e-6, but scipy's logarithms of P "
    "and Q are wrong by 4e-6.",
    setting="0.2 % of the records lost, epsilon = 1",
    axis="records n",
    value="log10 delta",
    sizes=(1000, 10_000, 100_000, 1_000_000, 10**7, 10**8, 10**9),
    contenders=(
        Contender("dpopt.privacy_profile", OURS, mechanism, one_database),
        Contender("arb, one tail of intervals", LIBRARY, mechanism, enclosed),
        Contender("scipy, three log tables", PAPER, mechanism, three_tables),
    ),
    tolerance=1e-6,
    warm_up=100,
)


def half_drawn(records: int) -> smoothed.SamplingHistogram:
    """Return the sampling-histogram of three categories that draws half of the records."""
    return smoothed.SamplingHistogram(records, records // 2, 3)


def one_of_three(instance: smoothed.SamplingHistogram) -> Answer:
    """Take the draws of each pair of categories one after the other."""
    profile = smoothed.privacy_profile(instance, _NO_EPSILON, _shares(instance.records))
    return Answer(float(profile.log_delta[0]) / math.log(10))


def pairs_of_counts(instance: smoothed.SamplingHistogram) -> Answer:
    """Sum over how many of both categories are lost, within ten deviations, in logarithms."""
    from scipy.special import gammaln

    n, lost, counts = instance.records, instance.lost, _shares(instance.records)
    best = 0.0

    def log_choose(n: Floats | float, k: Floats) -> Floats:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    def window(count: int) -> Floats:
        reach = 10.0 * math.sqrt(count * lost / n * (1.0 - lost / n)) + 10.0
        least = max(0.0, math.floor(count * lost / n - reach))
        return np.arange(least, min(count, math.ceil(count * lost / n + reach)) + 1.0)

    # Both databases of a pair: H and H - e_a + e_b, seen from either side.
    pairs = [(a, b) for a in counts for b in counts if a != b]
    for one, two in {*pairs, *((b + 1, a - 1) for a, b in pairs)}:
        x, rest, total = window(one), n - one - two, 0.0
        for y in np.array_split(window(two), max(1, x.size**2 // _ENTRIES)):
            # Axes: how many of each are lost. Where H lost x, its neighbour lost x - 1 and y + 1.
            logs = log_choose(one, x)[:, None] + log_choose(two, y)[None, :]
            logs += log_choose(rest, lost - x[:, None] - y[None, :])
            logs -= log_choose(n, np.array(float(lost)))
            ratio = x[:, None] * (two + 1.0) / (one * (y[None, :] + 1.0))
            gains = np.exp(logs) * np.maximum(0.0, 1.0 - math.exp(_NO_EPSILON) * ratio)
            total += float(gains.sum())
        best = max(best, total)
    return Answer(math.log10(best))


def _shares(records: int) -> list[int]:
    """Return the database with two fifths, two fifths less one, and the rest."""
    return [2 * records // 5, 2 * records // 5 - 1, records - 2 * (2 * records // 5) + 1]


COMPOSITIONS = Benchmark(
    name="smoothed-delta",
    title="Smoothed DP: the maximum over compositions",
    measures="Smoothed delta over two distributions, the maximum of n + 1 compositions; ours "
    "includes the profile and the certificate, the paper's way starts from the profile.",
    setting="0.2 % of the records lost, epsilon = 1, shares 77.14 % and 5.53 %",
    axis="records n",
    value="log10 delta",
    sizes=(1000, 3000, 10_000, 100_000, 1_000_000),
    contenders=(
        Contender("dpopt.smoothed_delta", OURS, mechanism, every_composition),
        Contender("one convolution each", PAPER, profiled, one_convolution_each),
    ),
    tolerance=1e-9,
    warm_up=100,
    targets=(Target(100_000, "one convolution each", 1000.0),),
)


CATEGORIES = Benchmark(
    name="smoothed-categories",
    title="Smoothed DP: delta of one database of three categories",
    measures="delta of a database with two fifths of the records in each of two categories. Ours "
    "takes the records of each pair of categories one after the other, so that the time grows as "
    "the square root of n; a sum over pairs of counts takes time in proportion to n.",
    setting="half of the records drawn, epsilon = 0",
    axis="records n",
    value="log10 delta",
    sizes=(500, 5000, 50_000, 500_000, 5_000_000, 10**8, 10**10),
    contenders=(
        Contender("dpopt.privacy_profile", OURS, half_drawn, one_of_three),
        Contender("every pair of counts", PAPER, half_drawn, pairs_of_counts, 500_000),
    ),
    tolerance=1e-6,
    warm_up=100,
)


@dataclass(frozen=True)
class Batches:
    """A database of quantised gradients, shape (N,), and how many of them a step uses."""

    values: Integers
    drawn: int


def gradients(records: int) -> Batches:
    """Return v_i = ((37 i^2 + 11 i) mod 181) - 90 and T = sqrt N."""
    i = np.arange(records)
    return Batches((37 * i * i + 11 * i) % 181 - 90, math.isqrt(records))


def exact_step(instance: Batches) -> Answer:
    """Count the batches by their sum, for every replacement of one record."""
    profile = smoothed.sgd_profile(instance.values, instance.drawn, EPSILON)
    return Answer(float(profile.log_delta[0]) / math.log(10), note="every neighbour")


def monte_carlo(instance: Batches) -> Answer:
    """Draw 1e7 batches from the database and its two published neighbours, and compare."""
    rng = np.random.default_rng(5)
    x, count = instance.values, instance.values.size
    neighbours = []
    for place, value in ((int(x.argmin()), 128), (int(x.argmax()), -127)):
        moved = x.copy()
        moved[place] = value
        neighbours.append(moved)
    frequencies = [_frequencies(v, instance.drawn, rng) for v in (x, *neighbours)]
    own, factor, best = frequencies[0], math.exp(EPSILON), 0.0
    for other in frequencies[1:]:
        for p, q in ((own, other), (other, own)):
            best = max(best, float(np.maximum(p - factor * q, 0.0).sum()))
    note = f"estimate from {_DRAWS:,} batches of {instance.drawn} among {count}, two neighbours"
    return Answer(math.log10(best) if best > 0 else None, note=note)


def _frequencies(values: Integers, drawn: int, rng: np.random.Generator) -> Floats:
    """Return how often each rounded mean from -128 to 128 was drawn."""
    counts = np.zeros(257)
    left = _DRAWS
    while left:
        # A batch with a record twice is drawn again: what is left is uniform over the subsets.
        places = np.sort(rng.integers(values.size, size=(_BATCH, drawn), dtype=np.int32), axis=1)
        distinct = np.all(places[:, 1:] != places[:, :-1], axis=1)
        sums = values[places[distinct]].sum(axis=1)[:left]
        means = (2 * sums + drawn) // (2 * drawn)
        counts += np.bincount(means + 128, minlength=257)
        left -= sums.size
    return counts / _DRAWS


STEP = Benchmark(
    name="smoothed-sgd",
    title="Smoothed DP: one step of SGD with 8-bit gradients",
    measures="delta of one database of N gradients, of which sqrt N are drawn.",
    setting="epsilon = 1; gradients by a formula; rounded mean published",
    axis="records N",
    value="log10 delta",
    sizes=(64, 144, 225, 400, 900),
    contenders=(
        Contender("dpopt.sgd_profile", OURS, gradients, exact_step),
        Contender("Monte Carlo, 1e7 draws", PAPER, gradients, monte_carlo, 400, same=False),
    ),
    tolerance=1e-9,
    warm_up=16,
    limits=limited(60),
)

BENCHMARKS = (PROFILE, DATABASE, CATEGORIES, COMPOSITIONS, STEP)

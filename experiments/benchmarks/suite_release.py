"""Benchmarks of release: exact draws with the system's randomness beside numpy and OpenDP."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import kernel, majority, multiclass, plurality, public_prior, roo
from dpopt.shape import Design
from experiments.benchmarks.spec import LIBRARY, OURS, Answer, Benchmark, Contender, limited
from experiments.benchmarks.suite_kernels import user
from experiments.benchmarks.suite_samplers import setting as roo_setting

_ALPHABET, _EPSILON, _OWN = 64, 1.0, 20
_VOTERS = 11
# What is released and what it is released from must not share a stream.
_SEED, _DRAWN = 3, 4
_USERS, _TIMES = 1_000, 1_000
_CLASSES, _BALLOTS, _BITS_LONG = 3, 20, 6
_DRAWS = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
_OPENDP = ("opendp", "interop")

Integers = npt.NDArray[np.int64]


def _share(hits: float, draws: int, note: str = "") -> Answer:
    """Return a relative frequency with its standard error, at least that of one hit."""
    error = math.sqrt(max(hits * (draws - hits), draws) / draws) / draws
    return Answer(hits / draws, error=error, note=note)


def _truth() -> float:
    """Return the chance that randomised response over 64 letters keeps the letter."""
    return math.exp(_EPSILON) / (math.exp(_EPSILON) + _ALPHABET - 1)


@dataclass(frozen=True)
class Letters:
    """How many letters are released, and what releases them."""

    draws: int
    mechanism: Any


def exact_letters(draws: int) -> Letters:
    """Return the certified kernel of randomised response over 64 letters."""
    other = (1 - _truth()) / (_ALPHABET - 1)
    matrix = np.full((_ALPHABET, _ALPHABET), other)
    np.fill_diagonal(matrix, _truth())
    kernel = dpopt.certify(matrix, _EPSILON)
    kernel.release(np.zeros(1, np.int64))
    return Letters(draws, kernel)


def float_letters(draws: int) -> Letters:
    """Return numpy's generator, seeded."""
    return Letters(draws, np.random.default_rng(_DRAWN))


def _opendp() -> Any:  # noqa: ANN401
    """Return OpenDP with the mechanisms that outsiders contributed."""
    import opendp.prelude as dp  # pyright: ignore[reportMissingImports]

    dp.enable_features("contrib")  # pyright: ignore[reportPrivateImportUsage]
    return dp


def opendp_letters(draws: int) -> Letters:
    """Return OpenDP's measurement of randomised response."""
    dp = _opendp()
    letters = list(range(_ALPHABET))
    return Letters(draws, dp.m.make_randomized_response(categories=letters, prob=_truth()))


def release_letters(instance: Letters) -> Answer:
    """Draw with the system's randomness from exact integers."""
    kernel: dpopt.Design = instance.mechanism
    drawn = kernel.release(np.full(instance.draws, _OWN))
    return _share(float(np.sum(drawn == _OWN)), instance.draws)


def simulate_letters(instance: Letters) -> Answer:
    """Draw floats: no privacy proof holds for them."""
    rng: np.random.Generator = instance.mechanism
    kept = rng.random(instance.draws) < _truth()
    moved = (_OWN + rng.integers(1, _ALPHABET, instance.draws)) % _ALPHABET
    drawn = np.where(kept, _OWN, moved)
    return _share(float(np.sum(drawn == _OWN)), instance.draws, "seeded floats, not private")


def invoke_letters(instance: Letters) -> Answer:
    """Invoke OpenDP's measurement once for each letter."""
    measure: Callable[[int], int] = instance.mechanism
    hits = sum(measure(_OWN) == _OWN for _ in range(instance.draws))
    return _share(float(hits), instance.draws)


def _geometric() -> npt.NDArray[np.float64]:
    """Return the truncated geometric kernel over 64 letters on a line, epsilon = 1 a step."""
    steps = np.exp(-_EPSILON / 2 * np.abs(np.subtract.outer(*[np.arange(_ALPHABET)] * 2)))
    return steps / steps.sum(axis=1, keepdims=True)


def exact_geometric(draws: int) -> Letters:
    """Return that kernel, certified on the path of its letters."""
    kernel = dpopt.certify(_geometric(), _EPSILON, graph="path")
    kernel.release(np.zeros(1, np.int64))
    return Letters(draws, kernel)


def choose_letters(instance: Letters) -> Answer:
    """Let numpy choose from the row in floats: no privacy proof holds for them."""
    rng: np.random.Generator = instance.mechanism
    drawn = rng.choice(_ALPHABET, size=instance.draws, p=_geometric()[_OWN])
    return _share(float(np.sum(drawn == _OWN)), instance.draws, "seeded floats, not private")


def _noisy() -> npt.NDArray[np.float64]:
    """Return the law of a count 0..63 with two-sided geometric noise of epsilon = 1, cut off."""
    steps = np.exp(-_EPSILON * np.abs(np.subtract.outer(*[np.arange(_ALPHABET)] * 2)))
    # The ends have all that is beyond them: a geometric series.
    steps[:, [0, -1]] /= -math.expm1(-_EPSILON)
    return math.tanh(_EPSILON / 2) * steps


def exact_counts(draws: int) -> Letters:
    """Return that kernel, certified for counts that differ by one."""
    kernel = dpopt.certify(_noisy(), _EPSILON, graph="path")
    kernel.release(np.zeros(1, np.int64))
    return Letters(draws, kernel)


def opendp_counts(draws: int) -> Letters:
    """Return OpenDP's geometric mechanism over lists of counts."""
    dp = _opendp()
    counts = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    return Letters(draws, dp.m.make_geometric(*counts, scale=1 / _EPSILON))


def opendp_count(draws: int) -> Letters:
    """Return OpenDP's geometric mechanism over one count."""
    dp = _opendp()
    count = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    return Letters(draws, dp.m.make_geometric(*count, scale=1 / _EPSILON))


def invoke_counts(instance: Letters) -> Answer:
    """Invoke OpenDP's measurement once for all counts; cut the noise off at both ends."""
    drawn = np.clip(instance.mechanism([_OWN] * instance.draws), 0, _ALPHABET - 1)
    return _share(float(np.sum(drawn == _OWN)), instance.draws)


def float_counts(instance: Letters) -> Answer:
    """Draw the noise as a difference of numpy's geometric variables: no proof holds for it."""
    rng: np.random.Generator = instance.mechanism
    noise = np.subtract(*(rng.geometric(-math.expm1(-_EPSILON), instance.draws) for _ in "ab"))
    drawn = np.clip(_OWN + noise, 0, _ALPHABET - 1)
    return _share(float(np.sum(drawn == _OWN)), instance.draws, "seeded floats, not private")


def _told() -> float:
    """Return the chance that randomised response over two answers tells the truth."""
    return math.exp(_EPSILON) / (math.exp(_EPSILON) + 1)


def exact_answers(draws: int) -> Letters:
    """Return the certified kernel of randomised response over two answers."""
    matrix = np.array([[_told(), 1 - _told()], [1 - _told(), _told()]])
    kernel = dpopt.certify(matrix, _EPSILON)
    kernel.release(np.zeros(1, np.int64))
    return Letters(draws, kernel)


def opendp_answers(draws: int) -> Letters:
    """Return OpenDP's measurement of randomised response over true and false."""
    dp = _opendp()
    return Letters(draws, dp.m.make_randomized_response_bool(prob=_told()))


def release_answers(instance: Letters) -> Answer:
    """Draw with the system's randomness from exact integers."""
    kernel: dpopt.Design = instance.mechanism
    drawn = kernel.release(np.ones(instance.draws, np.int64))
    return _share(float(np.sum(drawn == 1)), instance.draws)


def invoke_answers(instance: Letters) -> Answer:
    """Invoke OpenDP's measurement once for each answer."""
    measure: Callable[[bool], bool] = instance.mechanism
    return _share(float(sum(measure(True) for _ in range(instance.draws))), instance.draws)


def float_answers(instance: Letters) -> Answer:
    """Draw floats: no privacy proof holds for them."""
    rng: np.random.Generator = instance.mechanism
    kept = float(np.sum(rng.random(instance.draws) < _told()))
    return _share(kept, instance.draws, "seeded floats, not private")


@dataclass(frozen=True)
class Votes:
    """A certified design and votes, shape (queries, K)."""

    design: dpopt.Design
    votes: Integers


def votes(queries: int) -> Votes:
    """Return a design for 11 voters and votes that are ones with chance 0.6."""
    made = majority.design(_VOTERS, 0.1, 3, prior="uniform:0,1")
    drawn = np.random.default_rng(_SEED).random((queries, _VOTERS)) < 0.6
    made.release(drawn[:1].astype(np.int64))
    return Votes(made, drawn.astype(np.int64))


def release_votes(instance: Votes) -> Answer:
    """Release one private majority for each query."""
    drawn = instance.design.release(instance.votes)
    return _share(float(np.sum(drawn)), len(instance.votes))


def simulate_votes(instance: Votes) -> Answer:
    """Do the same with numpy's floats, from a seed."""
    rng, gamma = np.random.default_rng(_DRAWN), instance.design.gamma
    ones = instance.votes.sum(axis=1)
    noisy = rng.random(ones.size) >= gamma[ones]
    drawn = np.where(noisy, rng.random(ones.size) < 0.5, ones > _VOTERS / 2)
    return _share(float(drawn.sum()), ones.size, "seeded floats, not private")


@dataclass(frozen=True)
class Queries:
    """A certified mechanism, what it releases from, a row a query, and the laws of all rows."""

    design: Any
    data: Any
    places: Integers
    laws: npt.NDArray[np.float64]


def private_voters(queries: int) -> Queries:
    """Return a plurality of 11 private voters over three classes, and their votes."""
    made = multiclass.design(_VOTERS, _CLASSES, 0.1, 3.0)
    votes = np.random.default_rng(_SEED).integers(0, _CLASSES, (queries, _VOTERS))
    counts = np.stack([(votes == c).sum(axis=1) for c in range(_CLASSES)], axis=1)
    made.release(votes[:1])
    return _with_laws(made, votes, counts)


def plain_ballots(queries: int) -> Queries:
    """Return a plurality of 20 plain ballots over three classes, and their counts."""
    made = plurality.design(_BALLOTS, _CLASSES, 0.5)
    counts = np.random.default_rng(_SEED).multinomial(_BALLOTS, [0.5, 0.3, 0.2], queries)
    made.release(plurality.Counts(counts[:1]))
    return _with_laws(made, plurality.Counts(counts), counts)


def _with_laws(
    design: Any,  # noqa: ANN401
    data: Any,  # noqa: ANN401
    counts: Integers,
) -> Queries:
    """Add the laws of all counts as floats, and where each row's law is among them."""
    codes = counts @ (int(counts.max()) + 1) ** np.arange(_CLASSES)
    _, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
    votes = [np.repeat(np.arange(_CLASSES), row) for row in counts[firsts]]
    weights = [design.setting.distribution(design.table, ballots) for ballots in votes]
    laws = np.array([[w / sum(row) for w in row] for row in weights])
    return Queries(design, data, places, laws)


def release_queries(instance: Queries) -> Answer:
    """Release one class for each query."""
    drawn = np.asarray(instance.design.release(instance.data))
    return _share(float(np.sum(drawn == 0)), drawn.size)


def choose_queries(instance: Queries) -> Answer:
    """Compare a float with each query's cumulative law, which is given: not private."""
    rng, sums = np.random.default_rng(_DRAWN), np.cumsum(instance.laws, axis=1)[:, :-1]
    drawn = np.sum(sums[instance.places] <= rng.random(len(instance.places))[:, None], axis=1)
    return _share(float(np.sum(drawn == 0)), drawn.size, "seeded floats, not private")


@dataclass(frozen=True)
class Words:
    """A certified kernel over words of bits, known by its orbits, and the users' own words."""

    kernel: dpopt.Design
    own: Integers


def words(draws: int) -> Words:
    """Return the best kernel for the Hamming distance of words of 6 bits, which are neighbours."""
    size = (2,) * _BITS_LONG
    made = dpopt.design(
        kernel.KernelSetting("hamming", _EPSILON, graph="hamming", shape=size, symmetry="hamming")
    )
    made.release(0)
    return Words(made, np.random.default_rng(_SEED).integers(0, 1 << _BITS_LONG, draws))


def release_words(instance: Words) -> Answer:
    """Release one word for each user."""
    drawn = np.asarray(instance.kernel.release(instance.own))
    return _share(float(np.sum(drawn == instance.own)), drawn.size)


def choose_words(instance: Words) -> Answer:
    """Search a float in all cumulative laws, one behind the other: not private."""
    rng, table = np.random.default_rng(_DRAWN), instance.kernel.kernel
    sums = (np.cumsum(table, axis=1) + np.arange(len(table))[:, None]).ravel()
    found = np.searchsorted(sums, instance.own + rng.random(instance.own.size), side="right")
    drawn = found - instance.own * len(table)
    return _share(float(np.sum(drawn == instance.own)), drawn.size, "seeded floats, not private")


def same(size: int) -> int:
    """Return the size itself."""
    return size


def system_bytes(draws: int) -> Answer:
    """Ask the system for two random bytes for each draw, which is what most draws take."""
    return _ones(np.frombuffer(os.urandom(2 * draws), dtype=np.uint8))


def system_words(draws: int) -> Answer:
    """Ask the system for eight random bytes for each draw."""
    return _ones(np.frombuffer(os.urandom(8 * draws), dtype=np.uint8))


def generated_words(draws: int) -> Answer:
    """Make a float of numpy's generator for each draw."""
    drawn = np.random.default_rng(_DRAWN).random(draws)
    return _share(float(np.sum(drawn[:1000] < 0.5)), min(draws, 1000))


def _ones(drawn: npt.NDArray[np.uint8]) -> Answer:
    few = drawn[:1000]
    return _share(float(np.sum(few & 1)), few.size)


@dataclass(frozen=True)
class Users:
    """A certified kernel and the letters of its users."""

    kernel: Design
    own: Integers


def users(letters: int) -> Users:
    """Return Algorithm 1's kernel, certified, and 1,000 users."""
    return _users(letters, _USERS)


def as_many_users(letters: int) -> Users:
    """Return the same with as many users as letters."""
    return _users(letters, letters)


def _users(letters: int, count: int) -> Users:
    made = user(letters)
    kernel = public_prior.minimax_kernel(made.prior, made.epsilon)
    own = np.random.default_rng(_SEED).choice(letters, count, p=made.prior)
    kernel.release(own[:1])
    return Users(kernel, own)


def release_users(instance: Users) -> Answer:
    """Release one letter for each user."""
    drawn = np.asarray(instance.kernel.release(instance.own))
    return _share(float(np.sum(drawn == instance.own)), instance.own.size)


def layered_users(instance: Users) -> Answer:
    """Search a float in sums of the prior, by the recursion of Algorithm 1: no proof holds.

    With letters by ascending prior mass, row i has g_j q_j before its own letter, then
    e^epsilon g_i q_i, then g_i q_j.
    """
    rng, made = np.random.default_rng(_DRAWN), instance.kernel
    order, epsilon = made.setting.public.order, made.setting.epsilon
    q = made.setting.public.masses[order]
    g = made.diagonal[order] * math.exp(-epsilon) / q
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    own, u = rank[instance.own], rng.random(instance.own.size)
    base, shares = np.cumsum(g * q), np.cumsum(q)
    below = np.where(own > 0, base[own - 1], 0.0)
    past = u - below - (math.exp(epsilon) * g * q)[own]
    value = np.where(u < below, u, 2.0 + shares[own] + past / g[own])
    found = np.searchsorted(np.append(base, 2.0 + shares), value, side="right")
    drawn = np.where(u < below, found, np.where(past < 0, own, found - order.size))
    return _share(float(np.sum(drawn == own)), own.size, "seeded floats, not private")


def choose_users(instance: Users) -> Answer:
    """Make each user's row in floats and let numpy choose from it."""
    rng, kernel = np.random.default_rng(_DRAWN), instance.kernel
    hits, letter = 0, np.zeros(kernel.setting.public.size)
    for own in instance.own.tolist():
        letter[own] = 1.0
        row = kernel.apply(letter)
        letter[own] = 0.0
        hits += int(rng.choice(row.size, p=row / row.sum()) == own)
    return _share(float(hits), instance.own.size, "seeded floats, not private")


@dataclass(frozen=True)
class Records:
    """A certified sampler and the counts of its records."""

    sampler: Design
    counts: Integers


def records(size: int) -> Records:
    """Return the exact rule and counts in the proportions 1 : 2 : ... : k."""
    setting = roo_setting(size)
    sampler = roo.min_count(setting.records, setting.letters, setting.epsilon)
    weights = np.arange(1, setting.letters + 1)
    counts = size * weights // int(weights.sum())
    counts[-1] += size - int(counts.sum())
    return Records(sampler, counts)


def release_records(instance: Records) -> Answer:
    """Release a letter 1,000 times."""
    last = instance.counts.size - 1
    tally = roo.Tally.of_counts(instance.counts, instance.counts.size)
    hits = sum(instance.sampler.release(tally) == last for _ in range(_TIMES))
    return _share(float(hits), _TIMES)


def choose_records(instance: Records) -> Answer:
    """Draw 1,000 times with numpy from the same law in floats."""
    rng, law = np.random.default_rng(_DRAWN), instance.sampler.output_distribution(instance.counts)
    hits = sum(int(rng.choice(law.size, p=law)) == law.size - 1 for _ in range(_TIMES))
    return _share(float(hits), _TIMES, "seeded floats, not private")


LETTERS = Benchmark(
    name="release-letters",
    title="Release: randomised response over 64 letters",
    measures="Drawing one letter for each of so many users.",
    setting="64 letters, epsilon = 1; the kernel is given",
    axis="draws",
    value="share of letters kept",
    sizes=_DRAWS,
    contenders=(
        Contender("dpopt release", OURS, exact_letters, release_letters),
        Contender("numpy floats", LIBRARY, float_letters, simulate_letters),
        Contender(
            "OpenDP, one call each", LIBRARY, opendp_letters, invoke_letters, 10_000, needs=_OPENDP
        ),
    ),
    tolerance=0.0,
    warm_up=5,
)

COUNTS = Benchmark(
    name="release-count",
    title="Release: a count with geometric noise",
    measures="Drawing so many noisy counts, cut off at 0 and 63.",
    setting="epsilon = 1, count 20 of 63; dpopt draws from the certified kernel of all 64 counts, "
    "OpenDP draws the noise itself, exactly too, and takes counts of any size",
    axis="draws",
    value="share of counts kept",
    sizes=_DRAWS,
    contenders=(
        Contender("dpopt release", OURS, exact_counts, release_letters),
        Contender("numpy floats", LIBRARY, float_letters, float_counts),
        Contender(
            "OpenDP, one call for all",
            LIBRARY,
            opendp_counts,
            invoke_counts,
            1_000_000,
            needs=_OPENDP,
        ),
        Contender(
            "OpenDP, one call each", LIBRARY, opendp_count, invoke_letters, 10_000, needs=_OPENDP
        ),
    ),
    tolerance=0.0,
    warm_up=5,
)

ANSWERS = Benchmark(
    name="release-answers",
    title="Release: randomised response to a yes or no",
    measures="Drawing one answer for each of so many users.",
    setting="epsilon = 1; dpopt draws from the certified kernel, OpenDP from a float that it takes "
    "as an exact chance",
    axis="draws",
    value="share of answers kept",
    sizes=_DRAWS,
    contenders=(
        Contender("dpopt release", OURS, exact_answers, release_answers),
        Contender("numpy floats", LIBRARY, float_letters, float_answers),
        Contender(
            "OpenDP, one call each", LIBRARY, opendp_answers, invoke_answers, 10_000, needs=_OPENDP
        ),
    ),
    tolerance=0.0,
    warm_up=5,
)

VOTES = Benchmark(
    name="release-majority",
    title="Release: private majorities",
    measures="Releasing one private majority of 11 votes for each query.",
    setting="K = 11, epsilon = 0.1, m = 3; the certified design is given",
    axis="queries",
    value="share of ones",
    sizes=_DRAWS,
    contenders=(
        Contender("dpopt release", OURS, votes, release_votes),
        Contender("numpy floats", LIBRARY, votes, simulate_votes),
    ),
    tolerance=0.0,
    warm_up=5,
)

USERS = Benchmark(
    name="release-prior",
    title="Release: a kernel over many letters",
    measures="Releasing one letter for each of 1,000 users, who know their own letter.",
    setting="epsilon = 4; the certified kernel is given",
    axis="letters n",
    value="share of letters kept",
    sizes=(10, 100, 1000, 10_000, 100_000, 1_000_000),
    contenders=(
        Contender("dpopt release", OURS, users, release_users),
        Contender("numpy choice from the row", LIBRARY, users, choose_users, largest=100_000),
    ),
    tolerance=0.0,
    warm_up=5,
    limits=limited(60),
)

RECORDS = Benchmark(
    name="release-roo",
    title="Release: Reveal-or-Obscure",
    measures="Releasing one letter of n records, from their counts, 1,000 times.",
    setting="k = 10, epsilon = 0.1; the certified rule is given",
    axis="records n",
    value="share of the last letter",
    sizes=(10, 1000, 10**5, 10**7, 10**9),
    contenders=(
        Contender("dpopt release", OURS, records, release_records),
        Contender("numpy choice", LIBRARY, records, choose_records),
    ),
    tolerance=0.0,
    warm_up=20,
)

GEOMETRIC = Benchmark(
    name="release-geometric",
    title="Release: a geometric kernel over 64 letters",
    measures="Drawing so many letters from one row of a kernel without a closed form.",
    setting="64 letters on a line, epsilon = 1 a step; the kernel is given",
    axis="draws",
    value="share of letters kept",
    sizes=_DRAWS,
    contenders=(
        Contender("dpopt release", OURS, exact_geometric, release_letters),
        Contender("numpy choice", LIBRARY, float_letters, choose_letters),
    ),
    tolerance=0.0,
    warm_up=5,
)

EVERYONE = Benchmark(
    name="release-everyone",
    title="Release: as many users as letters",
    measures="Releasing one letter for each of n users, who know their own of n letters.",
    setting="epsilon = 4; the certified kernel is given",
    axis="letters n",
    value="share of letters kept",
    sizes=(10, 100, 1000, 10_000, 100_000, 1_000_000),
    contenders=(
        Contender("dpopt release", OURS, as_many_users, release_users),
        Contender("numpy floats, layer by layer", LIBRARY, as_many_users, layered_users),
        Contender("numpy choice from the row", LIBRARY, as_many_users, choose_users, largest=1000),
    ),
    tolerance=0.0,
    warm_up=5,
    limits=limited(60),
)

VOTERS = Benchmark(
    name="release-multiclass",
    title="Release: the plurality of private voters",
    measures="Releasing one class for each query, from 11 votes for three classes.",
    setting="K = 11, C = 3, epsilon = 0.1, m = 3; the certified design is given, to numpy the laws",
    axis="queries",
    value="share of the first class",
    sizes=(1000, 10_000, 100_000, 1_000_000, 5_000_000),
    contenders=(
        Contender("dpopt release", OURS, private_voters, release_queries),
        Contender("numpy floats, laws given", LIBRARY, private_voters, choose_queries),
    ),
    tolerance=0.0,
    warm_up=5,
    limits=limited(60),
)

BALLOTS = Benchmark(
    name="release-plurality",
    title="Release: the plurality of plain ballots",
    measures="Releasing one class for each query, from the counts of 20 ballots.",
    setting="K = 20, C = 3, epsilon = 0.5; the certified design is given, to numpy the laws",
    axis="queries",
    value="share of the first class",
    sizes=(1000, 10_000, 100_000, 1_000_000, 5_000_000),
    contenders=(
        Contender("dpopt release", OURS, plain_ballots, release_queries),
        Contender("numpy floats, laws given", LIBRARY, plain_ballots, choose_queries),
    ),
    tolerance=0.0,
    warm_up=5,
    limits=limited(60),
)

WORDS = Benchmark(
    name="release-orbits",
    title="Release: a kernel known by its orbits",
    measures="Releasing one word of 6 bits for each user; numpy is given all 64 rows.",
    setting="Hamming distance, epsilon = 1 a bit; the certified kernel is given",
    axis="draws",
    value="share of words kept",
    sizes=(1000, 10_000, 100_000, 1_000_000, 5_000_000),
    contenders=(
        Contender("dpopt release", OURS, words, release_words),
        Contender("numpy floats, all rows", LIBRARY, words, choose_words),
    ),
    tolerance=0.0,
    warm_up=5,
)

BITS = Benchmark(
    name="release-bits",
    title="Release: random bits alone",
    measures="Getting the random bits of so many draws: no release can be faster.",
    setting="no mechanism; the share is of the first 1,000",
    axis="draws",
    value="share of ones, or of floats below 1/2",
    sizes=_DRAWS,
    contenders=(
        Contender("system's generator, two bytes", OURS, same, system_bytes),
        Contender("system's generator, eight bytes", OURS, same, system_words),
        Contender("numpy floats", LIBRARY, same, generated_words),
    ),
    tolerance=0.0,
    warm_up=5,
)

BENCHMARKS = (
    LETTERS,
    COUNTS,
    ANSWERS,
    VOTES,
    USERS,
    RECORDS,
    GEOMETRIC,
    EVERYONE,
    VOTERS,
    BALLOTS,
    WORDS,
    BITS,
)

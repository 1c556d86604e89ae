"""Benchmarks of release: exact draws with the system's randomness beside numpy and OpenDP.

Releases of ours draw from exact integers; what numpy draws are seeded floats, for which no privacy
proof holds. What is released and what it is released from must not share a stream.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import dpopt
from dpopt import roo
from dpopt.noise import many
from experiments.arrays import Floats
from experiments.benchmarks.memory import Limits
from experiments.benchmarks.spec import Answer, Contender, benchmark, same
from experiments.benchmarks.suite_kernels import user
from experiments.benchmarks.suite_samplers import setting as roo_setting

_CATEGORIES, _EPSILON, _OWN = 64, 1.0, 20
_TRUTH = math.exp(_EPSILON) / (math.exp(_EPSILON) + _CATEGORIES - 1)
_VOTERS = 11
_SEED, _DRAWN = 3, 4
_USERS, _TIMES = 1_000, 1_000
_DRAWS = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
_OPENDP = ("opendp", "interop")
_DELTA = 1e-6


Draws = tuple[Any, Any]
"""What releases, and what it releases from."""


def _share(hits: float, draws: int, note: str = "") -> Answer:
    """Return a relative frequency with its standard error, at least that of one hit."""
    error = math.sqrt(max(hits * (draws - hits), draws) / draws) / draws
    return Answer(hits / draws, error=error, note=note)


def _floats(drawn: npt.NDArray[Any], hit: object) -> Answer:
    return _share(float(np.sum(drawn == hit)), drawn.size, "seeded floats, not private")


def exact_categories(draws: int) -> Draws:
    """Return the certified kernel of randomised response, and one category as often."""
    matrix = np.full((_CATEGORIES, _CATEGORIES), (1 - _TRUTH) / (_CATEGORIES - 1))
    np.fill_diagonal(matrix, _TRUTH)
    return _certified(dpopt.certify(matrix, _EPSILON), draws)


def noisy_counts() -> Floats:
    """Return the kernel of a count 0..63 with two-sided geometric noise of epsilon = 1, cut off."""
    steps = np.exp(-_EPSILON * np.abs(np.subtract.outer(*[np.arange(_CATEGORIES)] * 2)))
    # The ends have all that is beyond them: a geometric series.
    steps[:, [0, -1]] /= -math.expm1(-_EPSILON)
    return math.tanh(_EPSILON / 2) * steps


def exact_counts(draws: int) -> Draws:
    """Return that kernel, certified for counts that differ by one."""
    return _certified(dpopt.certify(noisy_counts(), _EPSILON, graph="path"), draws)


def exact_noise(draws: int) -> Draws:
    """Return the best noise for epsilon = 1, the geometric one on all integers."""
    return _certified(dpopt.design(dpopt.Noise(1, _EPSILON)), draws)


def design_noise(sensitivity: int) -> Answer:
    """Design the best noise, with its proof."""
    made = dpopt.design(dpopt.Noise(sensitivity, _EPSILON, _DELTA))
    return Answer(made.value, note=f"at most {made.gap or 0.0:.0e} above the bound")


def calibrate(gaussian: bool, sensitivity: int) -> Answer:
    """Let OpenDP search the least scale of discrete Gaussian or Laplace noise."""
    dp = _prelude()
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)

    def make(scale: float) -> Any:  # noqa: ANN401
        if not gaussian:
            return dp.m.make_geometric(*space, scale=scale)
        concentrated = dp.m.make_gaussian(*space, scale=scale)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(concentrated), _DELTA)

    budget = (_EPSILON, _DELTA) if gaussian else _EPSILON
    scale = dp.binary_search_param(make, d_in=sensitivity, d_out=budget)
    shape = many.gaussian if gaussian else many.laplace
    value = many.mean_loss(shape(math.ceil(40 * scale), scale), dpopt.Noise(1, 1.0).losses_of)
    return Answer(value, note=f"scale {scale:.4g}, delta {_DELTA if gaussian else 0:g}")


def _certified(kernel: dpopt.Design, draws: int) -> Draws:
    kernel.release(np.zeros(1, np.int64))
    return kernel, np.full(draws, _OWN)


def release_own(instance: Draws) -> Answer:
    """Release once for each input; count the outputs that are the input."""
    mechanism, data = instance
    drawn = np.asarray(mechanism.release(data))
    return _share(float(np.sum(drawn == data)), drawn.size)


def keep_or_move(draws: int) -> Answer:
    """Draw randomised response over 64 categories in floats."""
    rng = np.random.default_rng(_DRAWN)
    kept = rng.random(draws) < _TRUTH
    moved = (_OWN + rng.integers(1, _CATEGORIES, draws)) % _CATEGORIES
    return _floats(np.where(kept, _OWN, moved), _OWN)


def add_noise(draws: int) -> Answer:
    """Draw the noise as a difference of numpy's geometric variables."""
    rng = np.random.default_rng(_DRAWN)
    noise = np.subtract(*(rng.geometric(-math.expm1(-_EPSILON), draws) for _ in range(2)))
    return _floats(np.clip(_OWN + noise, 0, _CATEGORIES - 1), _OWN)


def _prelude() -> Any:  # noqa: ANN401
    """Return OpenDP's names."""
    import opendp.prelude as dp  # pyright: ignore[reportMissingImports]

    dp.enable_features("contrib")  # pyright: ignore[reportPrivateImportUsage]
    return dp


def opendp_response(draws: int) -> Draws:
    """Return OpenDP's randomised response, and one category as often."""
    dp = _prelude()
    measurement = dp.m.make_randomized_response(categories=list(range(_CATEGORIES)), prob=_TRUTH)
    return measurement, [_OWN] * draws


def opendp_noise(draws: int) -> Draws:
    """Return OpenDP's geometric noise of many counts, and one count as often."""
    dp = _prelude()
    domain = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    return dp.m.make_geometric(*domain, scale=1 / _EPSILON), [_OWN] * draws


def invoke_each(instance: Draws) -> Answer:
    """Invoke OpenDP's measurement once for each input."""
    measurement, data = instance
    return _share(float(sum(measurement(value) == value for value in data)), len(data))


def invoke_once(instance: Draws) -> Answer:
    """Invoke OpenDP's measurement once for all counts; cut the noise off at both ends."""
    measurement, data = instance
    drawn = np.clip(measurement(data), 0, _CATEGORIES - 1)
    return _share(float(np.sum(drawn == _OWN)), drawn.size)


def majorities(queries: int) -> Draws:
    """Return a design for 11 voters and votes that are ones with chance 0.6."""
    made = dpopt.design(dpopt.Majority(_VOTERS, 0.1, 3, prior="uniform:0,1"))
    votes = (np.random.default_rng(_SEED).random((queries, _VOTERS)) < 0.6).astype(np.int64)
    made.release(votes[:1])
    return made, votes


def release_majorities(instance: Draws) -> Answer:
    """Release one private majority for each query."""
    design, votes = instance
    return _share(float(np.sum(design.release(votes))), len(votes))


def float_majorities(instance: Draws) -> Answer:
    """Do the same with numpy's floats."""
    design, votes = instance
    rng, ones = np.random.default_rng(_DRAWN), votes.sum(axis=1)
    noisy = rng.random(ones.size) >= design.gamma[ones]
    return _floats(np.where(noisy, rng.random(ones.size) < 0.5, ones > _VOTERS / 2), True)


def users(categories: int) -> Draws:
    """Return Algorithm 1's kernel, certified, and the categories of 1,000 users."""
    made = user(categories)
    kernel = dpopt.design(dpopt.PublicPrior(made.prior, made.epsilon))
    own = np.random.default_rng(_SEED).choice(categories, _USERS, p=made.prior)
    kernel.release(own[:1])
    return kernel, own


def choose_users(instance: Draws) -> Answer:
    """Make each user's row in floats and let numpy choose from it."""
    rng, (kernel, categories) = np.random.default_rng(_DRAWN), instance
    drawn, category = [], np.zeros(kernel.setting.labelled.size)
    for own in categories.tolist():
        category[own] = 1.0
        row = kernel.apply(category)
        category[own] = 0.0
        drawn.append(rng.choice(row.size, p=row / row.sum()))
    return _floats(np.array(drawn), categories)


def records(size: int) -> Draws:
    """Return the exact rule and counts in the proportions 1 : 2 : ... : k."""
    setting = roo_setting(size)
    sampler = dpopt.design(
        dpopt.RevealOrObscure(setting.records, setting.categories, setting.epsilon)
    )
    weights = np.arange(1, setting.categories + 1)
    counts = size * weights // int(weights.sum())
    counts[-1] += size - int(counts.sum())
    return sampler, counts


def release_records(instance: Draws) -> Answer:
    """Release a category 1,000 times."""
    sampler, counts = instance
    tally = roo.Tally.of_counts(counts, counts.size)
    hits = sum(sampler.release(tally) == counts.size - 1 for _ in range(_TIMES))
    return _share(float(hits), _TIMES)


def choose_records(instance: Draws) -> Answer:
    """Draw 1,000 times with numpy from the same distribution in floats."""
    sampler, counts = instance
    rng, row = np.random.default_rng(_DRAWN), sampler.output_distribution(counts)
    return _floats(np.array([rng.choice(row.size, p=row) for _ in range(_TIMES)]), row.size - 1)


CATEGORIES = benchmark(
    "release-categories",
    sizes=_DRAWS,
    contenders=(
        Contender("dpopt release", exact_categories, release_own),
        Contender("numpy floats", same, keep_or_move),
        Contender("OpenDP, one call each", opendp_response, invoke_each, 10_000, needs=_OPENDP),
    ),
    tolerance=0.0,
)

COUNTS = benchmark(
    "release-count",
    sizes=_DRAWS,
    contenders=(
        Contender("dpopt release", exact_counts, release_own),
        Contender("numpy floats", same, add_noise),
        Contender("OpenDP, one call for all", opendp_noise, invoke_once, 10**6, needs=_OPENDP),
    ),
    tolerance=0.0,
)

NOISE = benchmark(
    "release-noise",
    sizes=COUNTS.sizes,
    tolerance=COUNTS.tolerance,
    contenders=(Contender("dpopt release", exact_noise, release_own), *COUNTS.contenders[1:]),
)

DESIGNS = benchmark(
    "noise-design",
    sizes=(1, 3, 10, 30, 60),
    contenders=(
        Contender("dpopt.design", same, design_noise),
        *(
            Contender(
                f"OpenDP, discrete {name}",
                same,
                partial(calibrate, name == "Gaussian"),
                same=False,
                needs=_OPENDP,
            )
            for name in ("Laplace", "Gaussian")
        ),
    ),
    tolerance=0.0,
    warm_up=2,
)

MAJORITIES = benchmark(
    "release-majority",
    sizes=_DRAWS,
    contenders=(
        Contender("dpopt release", majorities, release_majorities),
        Contender("numpy floats", majorities, float_majorities),
    ),
    tolerance=0.0,
)

USERS = benchmark(
    "release-prior",
    sizes=(10, 100, 1000, 10_000, 100_000, 1_000_000),
    contenders=(
        Contender("dpopt release", users, release_own),
        Contender("numpy choice from the row", users, choose_users, largest=100_000),
    ),
    tolerance=0.0,
    limits=Limits(60),
)

RECORDS = benchmark(
    "release-roo",
    sizes=(10, 1000, 10**5, 10**7, 10**9),
    contenders=(
        Contender("dpopt release", records, release_records),
        Contender("numpy choice", records, choose_records),
    ),
    tolerance=0.0,
    warm_up=20,
)

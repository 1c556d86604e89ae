"""Benchmarks of linear queries under local privacy: the program over patterns, as letters grow."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np

from dpopt import design
from dpopt.local import WorkloadSetting
from dpopt.local.decoder import letter_variances
from experiments.benchmarks.spec import (
    OURS,
    PAPER,
    SOLVER,
    Answer,
    Benchmark,
    Contender,
    limited,
)
from experiments.workload.baselines import projected_gradient, subset_selection

# Rounds of the local search; it is as good as its start by then.
_STEPS = 500


def asked(workload: str, epsilon: float, letters: int) -> WorkloadSetting:
    """Return named queries of uniform letters."""
    return WorkloadSetting(workload, letters, epsilon)  # type: ignore[arg-type]


def proved(setting: WorkloadSetting) -> Answer:
    """Design in integers, with a bound of every other mechanism."""
    found = design(setting)
    bound = found.float_bound
    gap = math.nan if bound is None else 1 - bound / found.variance
    return Answer(found.variance, note=f"{found.proof}, gap {gap:.1e}")


def descended(setting: WorkloadSetting) -> Answer:
    """Descend by projected gradient from one start; nothing is proved of it."""
    uniform = np.full(setting.letters, 1 / setting.letters)
    rows = projected_gradient(
        setting.gram, setting.epsilon, uniform, np.random.default_rng(0), steps=_STEPS
    )
    found = float(uniform @ letter_variances(rows, setting.gram, uniform))
    return Answer(found, note="a local optimum, never below ours")


def every_pattern(setting: WorkloadSetting) -> Answer:
    """Give all patterns to cvxpy and CLARABEL."""
    import cvxpy as cp

    gram, n = setting.gram, setting.letters
    patterns = np.array(list(product([1.0, math.exp(setting.epsilon)], repeat=n)))
    theta = cp.Variable(len(patterns), nonneg=True)
    shares = cp.multiply(theta, n / patterns.sum(axis=1))
    matrix = patterns.T @ cp.diag(shares) @ patterns
    root = np.linalg.cholesky(gram)
    cost = sum(cp.matrix_frac(root[:, i], matrix) for i in range(n))
    problem = cp.Problem(cp.Minimize(cost), [patterns.T @ theta == 1])
    problem.solve(solver=cp.CLARABEL)
    value = float(problem.value) - float(np.trace(gram)) / n  # type: ignore[arg-type]
    return Answer(value, note=f"{len(patterns):,} patterns")


def every_set(setting: WorkloadSetting) -> Answer:
    """Write out subset selection of each size, as its paper has it."""
    n, uniform = setting.letters, np.full(setting.letters, 1 / setting.letters)
    return Answer(
        min(
            float(
                uniform
                @ letter_variances(subset_selection(n, setting.epsilon, k), setting.gram, uniform)
            )
            for k in range(1, n)
        )
    )


BENCHMARKS = (
    *(
        Benchmark(
            name=f"workload-{workload}",
            title=f"Linear queries under local privacy: {title}",
            measures="From letters and epsilon to integers that are proved private, and a bound of "
            "every other mechanism: by all patterns up to 24 letters, semidefinite beyond.",
            setting="epsilon = 3, uniform letters",
            axis="letters n",
            value="variance of all answers, for each person",
            sizes=(4, 8, 16, 24, 32, 48, 64),
            contenders=(
                Contender("dpopt", OURS, partial(asked, workload, 3.0), proved),
                Contender(
                    "projected gradient, one start",
                    PAPER,
                    partial(asked, workload, 3.0),
                    descended,
                    largest=32,
                    same=False,
                ),
                Contender(
                    "cvxpy + CLARABEL, all patterns",
                    SOLVER,
                    partial(asked, workload, 3.0),
                    every_pattern,
                    largest=8,
                ),
            ),
            tolerance=1e-5,
            warm_up=4,
            limits=limited(120),
        )
        for workload, title in (("prefix", "a distribution function"), ("range", "all intervals"))
    ),
    Benchmark(
        name="workload-histogram",
        title="Linear queries under local privacy: frequencies",
        measures="From letters and epsilon to integers that are proved private and optimal: subset "
        "selection, of few sets that meet evenly, or of all sets.",
        setting="epsilon = 1, uniform letters",
        axis="letters n",
        value="variance of all answers, for each person",
        sizes=(4, 8, 16, 32, 64, 128),
        contenders=(
            Contender("dpopt", OURS, partial(asked, "histogram", 1.0), proved),
            Contender(
                "subset selection, all sets",
                PAPER,
                partial(asked, "histogram", 1.0),
                every_set,
                largest=16,
            ),
        ),
        tolerance=1e-9,
        warm_up=4,
    ),
)

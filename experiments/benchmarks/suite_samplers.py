"""Benchmarks of Reveal-or-Obscure: rules in the smallest count, and the best sampler."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import dpopt
from dpopt import design, roo, solve
from experiments.arrays import Floats, Ints
from experiments.benchmarks import rivals
from experiments.benchmarks.spec import Answer, Contender, benchmark

CATEGORIES, EPSILON = 10, 0.1


def setting(records: int) -> roo.RooSetting:
    """Return n records over 10 categories, epsilon = 0.1."""
    return roo.RooSetting(records, CATEGORIES, EPSILON)


def exact_rule(instance: roo.RooSetting) -> dpopt.RevealOrObscure:
    """Return the setting of the least rule."""
    return dpopt.RevealOrObscure(instance.records, instance.categories, instance.epsilon)


def certified(instance: roo.RooSetting) -> Answer:
    """Make the least rule by its recursion and audit it in exact arithmetic."""
    sampler: Any = design(exact_rule(instance))
    sampler._require_private()
    rows = sampler.certificate.constraints
    return Answer(float(sampler.q.sum()), note=f"{rows:,} rows decided")


def by_program(instance: roo.RooSetting) -> Answer:
    """Solve dpopt's program: a few rows for each smallest count."""
    return Answer(solve(exact_rule(instance).problem()).objective)


def journal_rule(instance: roo.RooSetting) -> Answer:
    """Run the journal's Algorithm 2 as printed, over every smallest count."""
    n, k, e = instance.records, instance.categories, math.exp(instance.epsilon)
    u_all, v_all, w_all = -1 + 1 / k - 1 / n, e * (1 / k - 1), e - 1 - 1 / n
    q = 1 / (1 + n / k * (e - 1))
    total = q
    for j in range(1, n // k + 1):
        found = max(0.0, (v_all * q + w_all) / u_all)
        if j < n / k:
            u, v, w = -j / n + 1 / k - 1 / n, e * (1 / k - j / n), -1 / n - j / n + j / n * e
            found = max(found, (u * q - w) / v)
        q = found
        total += q
    return Answer(total, note="another rule, never below ours, and not always private")


def all_rows(solver: rivals.Solver, instance: roo.RooSetting) -> Answer:
    """Give a row for each count of each move to a solver."""
    matrix, right = every_row(instance)
    optimum = solver(rivals.Written(np.ones(matrix.shape[1]), matrix, right))
    return Answer(optimum, note=f"{right.size:,} rows")


def every_row(instance: roo.RooSetting) -> tuple[sp.csr_array, Floats]:
    """Return f(m~, c~) <= e^epsilon f(m, c) for every m, c, m~, c~ of neighbours, times n.

    f(m, c) = q_m / k + (1 - q_m) c / n, for k >= 3 categories.

    The rows are over q_0, ..., q_M; their right sides come beside them.
    """
    n, k, e = instance.records, instance.categories, math.exp(instance.epsilon)
    before, count, after, moved = _every_move(instance)
    place = np.arange(before.size)
    data = np.concatenate([n / k - moved, -e * (n / k - count)])
    columns = np.concatenate([after, before])
    shape = (before.size, instance.largest_minimum + 1)
    matrix = sp.csr_array((data, (np.tile(place, 2), columns)), shape=shape)
    return matrix, np.asarray(e * count - moved, dtype=np.float64)


def _every_move(instance: roo.RooSetting) -> tuple[Ints, Ints, Ints, Ints]:
    """Return m, c, m~ and c~ of every move, each of shape (rows,)."""
    n, k, last = instance.records, instance.categories, instance.largest_minimum
    parts: list[tuple[Ints, Ints, Ints, Ints]] = []
    for m in range(last + 1):
        top, above = n - (k - 1) * m, n - (k - 1) * (m + 1)
        ranges = []
        if n >= k * m + 1:
            ranges += [(m, 1, m, top - 1), (m, 0, m, top - 1), (m, -1, m + 1, top)]
        if m >= 1:
            ranges += [(m - 1, 1, m, top), (m - 1, 0, m, top), (m - 1, -1, m, m)]
        if m < last:
            ranges += [(m + 1, 1, m, m), (m + 1, 0, m + 1, above)]
            ranges += [(m + 1, -1, m + 2, above + 1)]
        for new, step, low, high in ranges:
            counts = np.arange(low, high + 1)
            ones = np.ones_like(counts)
            parts.append((m * ones, counts, new * ones, counts + step))
    before, count, after, moved = (np.concatenate(column) for column in zip(*parts, strict=True))
    return before, count, after, moved


def optimal_setting(records: int) -> dpopt.BestSampler:
    """Return n records over 4 categories, epsilon = 0.2."""
    return dpopt.BestSampler(records, 4, 0.2)


def optimal(instance: dpopt.BestSampler) -> Answer:
    """Design the best sampler there is, with the second program, the repair and the proof."""
    found: Any = design(instance)
    found._require_private()
    return Answer(found.value, note=f"{found.certificate.constraints:,} rows decided")


def optimal_by_all_rows(instance: dpopt.BestSampler) -> Answer:
    """Solve both programs alone."""
    found = solve(instance.problem())
    return Answer(found.objective, note=f"{found.rows_used:,} rows")


RULE = benchmark(
    "roo-rule",
    sizes=(10, 100, 1000, 10_000, 10**6, 10**9),
    contenders=(
        Contender("dpopt, certified", setting, certified),
        Contender("dpopt.solve, exact program", setting, by_program, largest=10**6),
        Contender("journal recursion", setting, journal_rule, 10**6, same=False),
        *(
            Contender(f"{name}, all rows", setting, partial(all_rows, solver), largest=1000)
            for name, solver in rivals.DEFAULTS.items()
        ),
    ),
    warm_up=20,
)

OPTIMAL = benchmark(
    "roo-optimal",
    sizes=(12, 20, 30, 40, 50, 60),
    contenders=(
        Contender("dpopt, certified", optimal_setting, optimal),
        Contender("dpopt.solve, all rows", optimal_setting, optimal_by_all_rows),
    ),
    tolerance=1e-8,
    warm_up=8,
)

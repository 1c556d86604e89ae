"""What proof and exact release cost, beside plain fractions, interval arithmetic and numpy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb, ctx

from dpopt import majority
from dpopt.privacy import ExactKernel, Guarantee, exp_upper, quantise_kernel
from experiments.benchmarks.timing import race
from experiments.registry import Advance, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Config:
    """Sizes and repeats; Delta = 0 in the proofs."""

    voters: tuple[int, ...] = (11, 51, 101)
    slow_up_to: int = 51
    epsilon: float = 0.1
    letters: int = 64
    draws: int = 1_000_000
    rounds: int = 5
    seed: int = 3


def run(config: Config, advance: Advance) -> Outcome:
    """Time proofs for each K, then draws from one row."""
    records = []
    for k in config.voters:
        design = majority.design(k, config.epsilon, max(1, k // 5))
        prover = majority.GammaProver(design.setting)
        contenders: dict[str, Any] = {
            "integers (ours)": lambda p=prover, d=design: p.certify(d.weights)
        }
        if k <= config.slow_up_to:
            contenders["interval arithmetic"] = lambda d=design: _by_laws(d, _interval)
        if k <= min(config.slow_up_to, 11):
            contenders["plain fractions"] = lambda d=design: _by_laws(d, Fraction)
        records += race("certify a noise function", f"K = {k}", contenders, config.rounds)
        advance()
    kernel = _kernel(config)
    inputs = np.full(config.draws, config.letters // 2)
    row, rng = kernel.matrix()[config.letters // 2], np.random.default_rng(config.seed)
    contenders = {
        "exact integers, system randomness (ours)": lambda: kernel.release(inputs),
        "numpy choice, floats, seeded": lambda: rng.choice(row.size, size=config.draws, p=row),
    }
    size = f"{config.draws:,} draws, {config.letters} letters"
    records += race("draw letters", size, contenders, config.rounds)
    advance()
    table = Table.of("Medians of alternating runs in one process; ratio to ours.", records)
    return Outcome({"times": table}, _findings(table))


def _kernel(config: Config) -> ExactKernel:
    """Return the truncated geometric kernel over letters on a line, certified on a path."""
    n = config.letters
    steps = np.exp(-config.epsilon * np.abs(np.subtract.outer(np.arange(n), np.arange(n))))
    kernel = steps / steps.sum(axis=1, keepdims=True)
    pairs = [(i, j) for i in range(n) for j in (i - 1, i + 1) if 0 <= j < n]
    return quantise_kernel(kernel, Guarantee(2 * config.epsilon), pairs=pairs)


def by_intervals(design: majority.MajorityDesign) -> bool:
    """Return whether no multiset of the reduced set certainly fails, in interval arithmetic."""
    return _by_laws(design, _interval)


def by_fractions(design: majority.MajorityDesign) -> bool:
    """Return the same by plain fractions."""
    return _by_laws(design, Fraction)


def _interval(value: Fraction) -> arb:
    return arb(value.numerator) / arb(value.denominator)


def _by_laws(design: majority.MajorityDesign, number: Any) -> bool:  # noqa: ANN401
    """Look for a multiset of the reduced set that certainly fails, by its two laws."""
    setting, unit = design.setting, 1 << 62
    r = exp_upper(setting.epsilon, 256)
    b, c = number(r / (r + 1)), number(1 / (r + 1))
    target = number(exp_upper(Fraction(setting.allowance) * Fraction(setting.epsilon), 256))
    upper = [number(Fraction(w, unit)) for w in design.weights]
    h = [-x for x in reversed(upper)] + upper
    one = number(Fraction(1))
    # What rounding e^epsilon to 2^-256 can add to a row that is an identity in it.
    limit = target - one + number(Fraction(1, 1 << 240))
    with ctx.workprec(320):
        return not any(
            _mean(h, p, s, ones) - target * _mean(h, q, s, ones) > limit
            for p, q, s, ones in _multisets(setting.mechanisms, b, c)
        )


def _multisets(k: int, b: Any, c: Any) -> Iterator[tuple[Any, Any, int, int]]:  # noqa: ANN401
    for s in range(k + 1):
        for ones in range(k + 1 - s):
            yield (b, c), (c, b), s, ones
            yield (c, b), (b, c), s, ones


def _mean(h: list[Any], p: tuple[Any, Any], s: int, ones: int) -> Any:  # noqa: ANN401
    """Return E h(ones + Bin(s, p)) by the law's recurrence."""
    law = [p[0] * 0 + 1]
    for _ in range(s):
        moved = [p[0] * mass for mass in law]
        law = [p[1] * mass for mass in law] + [p[0] * 0]
        law = [law[0]] + [stay + up for stay, up in zip(law[1:], moved, strict=True)]
    return sum((mass * h[ones + i] for i, mass in enumerate(law)), p[0] * 0)


def _findings(table: Table) -> tuple[str, ...]:
    return tuple(
        f"{row[0]}, {row[1]}: {row[2]} takes {row[6]:.3g} times as long as ours ({row[3]:.3g} s)."
        for row in table.rows
        if isinstance(row[6], float) and isinstance(row[3], float) and "ours" not in str(row[2])
    )


def plot(outcome: Outcome) -> Figure:
    """Draw one bar for each contender."""
    from matplotlib.figure import Figure

    table = outcome.tables["times"]
    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = figure.subplots()
    labels = [f"{row[0]}, {row[1]}: {row[2]}" for row in table.rows]
    axes.barh(labels, table.column("median_seconds"), color="#2f5d9b")
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("median seconds")
    axes.tick_params(axis="y", labelsize=8)
    return figure


EXPERIMENT = Experiment(
    name="benchmark-exactness",
    paper="Benchmarks",
    item="Proof and release",
    summary="Certifying DaRRM noise functions over the reduced set, and drawing from a kernel.",
    published=None,
    config=Config(rounds=11),
    quick=Config(),
    steps=lambda config: len(config.voters) + 1,
    run=run,
    plot=plot,
    repeatable=False,
)

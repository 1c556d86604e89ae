"""Benchmarks of certificates: what a proof of privacy costs, beside plainer ways to the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx

import dpopt
from dpopt import majority, public_prior
from dpopt.privacy import exp_lower, exp_upper
from experiments.benchmarks.spec import LIBRARY, OURS, PAPER, Answer, Benchmark, Contender, limited
from experiments.benchmarks.suite_kernels import user
from experiments.benchmarks.suite_majority import pure, shifted
from experiments.majority.full_set import check_full

_KERNEL_EPSILON = 4.0
_DESIGNED_UP_TO = 501


def pure_design(mechanisms: int) -> dpopt.Design:
    """Return a design for Delta = 0; beyond K = 501 the subsampling majority, as private."""
    setting = pure(mechanisms).setting
    if mechanisms <= _DESIGNED_UP_TO:
        return _designed(setting)
    gamma = majority.subsampling(mechanisms, int(setting.allowance))
    return majority.assess(setting, gamma, prior="uniform:0,1", repair=True)


def shifted_design(mechanisms: int) -> dpopt.Design:
    """Return a design for Delta = 1e-5."""
    return _designed(shifted(mechanisms).setting)


def _designed(setting: majority.MajoritySetting) -> dpopt.Design:
    return majority.design(
        setting.mechanisms,
        setting.epsilon,
        setting.allowance,
        mechanism_delta=setting.mechanism_delta,
        delta=setting.delta,
        prior="uniform:0,1",
    )


def proved(design: dpopt.Design) -> Answer:
    """Prove it over the reduced set."""
    proof = design.setting.judge(design.table)
    return Answer(1.0, note=f"{proof.constraints:,} multisets")


def in_intervals(design: dpopt.Design) -> Answer:
    """Look for a failing multiset in interval arithmetic."""
    return Answer(float(holds(design, interval)))


def in_fractions(design: dpopt.Design) -> Answer:
    """Look for a failing multiset in plain fractions."""
    return Answer(float(holds(design, Fraction)))


def interval(value: Fraction) -> arb:
    """Return a fraction as an interval of the working precision."""
    return arb(value.numerator) / arb(value.denominator)


def holds(design: dpopt.Design, number: Any) -> bool:  # noqa: ANN401
    """Return whether no multiset of the reduced set certainly fails, each by its two laws.

    Args:
        design: to be judged.
        number: makes what is calculated with out of a fraction, such as `interval`.
    """
    setting, table = design.setting, design.table
    r = exp_upper(setting.epsilon, 256)
    b, c = number(r / (r + 1)), number(1 / (r + 1))
    target = number(exp_upper(Fraction(setting.allowance) * Fraction(setting.epsilon), 256))
    upper = [number(2 * Fraction(w, table.total) - 1) for w in table.weights[::2]]
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


def in_doubles(design: dpopt.Design) -> Answer:
    """Enumerate the paper's full set in double precision, which proves nothing."""
    found = check_full(design.setting, design.gamma)
    private = found.excess <= found.rounding
    return Answer(float(private), note=f"{found.constraints_checked:,} multisets, no proof")


@dataclass(frozen=True)
class Prior:
    """A public prior, shape (n,)."""

    masses: np.ndarray


def prior(letters: int) -> Prior:
    """Return a random prior."""
    return Prior(user(letters).prior)


def proved_kernel(instance: Prior) -> Answer:
    """Make the minimax kernel's integers and prove them, in O(n)."""
    kernel = public_prior.minimax_kernel(instance.masses, _KERNEL_EPSILON)
    proof: Any = kernel.certificate
    return Answer(1.0, note=f"{proof.constraints:,} rows implied")


def proved_matrix(instance: Prior) -> Answer:
    """Round the matrix to integers and prove every column, in O(n^2)."""
    kernel = public_prior.minimax_kernel(instance.masses, _KERNEL_EPSILON)
    proof: Any = dpopt.certify(np.asarray(kernel.kernel), _KERNEL_EPSILON).certificate
    return Answer(1.0, note=f"{proof.constraints:,} rows")


def every_pair(instance: Prior) -> Answer:
    """Compare every two rows of the rounded matrix in plain fractions, in O(n^3)."""
    kernel = public_prior.minimax_kernel(instance.masses, _KERNEL_EPSILON)
    table = dpopt.certify(np.asarray(kernel.kernel), _KERNEL_EPSILON).table
    ratio, letters = exp_lower(Fraction(_KERNEL_EPSILON)), range(table.inputs.inputs)
    rows = [[Fraction(weight, table.total) for weight in table.row(x)] for x in letters]
    private = all(
        one <= ratio * two
        for first in rows
        for second in rows
        for one, two in zip(first, second, strict=True)
    )
    return Answer(float(private), note=f"{len(rows) ** 3:,} ratios")


PURE = Benchmark(
    name="proof-majority-pure",
    title="Proof of a noise function, Delta = 0",
    measures="Proving a designed gamma over all voters.",
    setting="as majority-pure; the design is given, beyond K = 501 the subsampling majority",
    axis="voters K",
    value="private (1) or not (0)",
    sizes=(11, 51, 101, 201, 501, 1001, 2001, 4001),
    contenders=(
        Contender("dpopt, integers", OURS, pure_design, proved),
        Contender("interval arithmetic", LIBRARY, pure_design, in_intervals, largest=51),
        Contender("plain fractions", LIBRARY, pure_design, in_fractions, largest=11),
        Contender("paper's set in doubles", PAPER, pure_design, in_doubles, largest=101),
    ),
    tolerance=0.0,
    warm_up=5,
)

SHIFTED = Benchmark(
    name="proof-majority-shifted",
    title="Proof of a noise function, Delta = 1e-5",
    measures="Proving a designed gamma over all voters.",
    setting="as majority-shifted; the design is given",
    axis="voters K",
    value="private (1) or not (0)",
    sizes=(5, 11, 15, 21, 31, 41, 71, 101),
    contenders=(
        Contender("dpopt, integers", OURS, shifted_design, proved),
        Contender("paper's set in doubles", PAPER, shifted_design, in_doubles, largest=21),
    ),
    tolerance=0.0,
    warm_up=5,
)

KERNEL = Benchmark(
    name="proof-kernel",
    title="Proof of a kernel with a public prior",
    measures="Making Algorithm 1's kernel in integers and proving it epsilon-LDP.",
    setting="epsilon = 4; q random",
    axis="letters n",
    value="private (1) or not (0)",
    sizes=(10, 30, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000),
    contenders=(
        Contender("dpopt, layers", OURS, prior, proved_kernel),
        Contender("dpopt, matrix", OURS, prior, proved_matrix, largest=100),
        Contender("plain fractions, every pair", LIBRARY, prior, every_pair, largest=30),
    ),
    tolerance=0.0,
    warm_up=5,
    limits=limited(60),
)

BENCHMARKS = (PURE, SHIFTED, KERNEL)

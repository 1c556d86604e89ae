"""Random designs over the whole range of parameters: ``python -m tests.robustness.sweep_designs``.

Each must be found, certified, and within 1e-8 of the upper bound that its dual vector proves.
Objectives are sums of probabilities of at most 1, so the gap is absolute.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import click

import dpopt
from dpopt import DpoptError
from dpopt.majority import MajoritySetting

LARGEST_GAP = 1e-8
# What adding up the objective in doubles may take the value above the bound.
ROUNDING = 1e-12

OBJECTIVES = ("expected-error", "surrogate", "worst-case", "least-regret")
PRIORS = (
    "uniform:0,1",
    "uniform:0.5,1",
    "uniform:0.1,0.4,0.6,0.9",
    "beta:2,3",
    "common-uniform:0,1",
    "common-uniform:0.3,0.9",
    "common-beta:2,3",
    "point:0.7",
)


@dataclass(frozen=True)
class Case:
    """One design to try; a least regret is over several priors, with ; between their names."""

    setting: MajoritySetting
    objective: str
    prior: str

    @property
    def told(self) -> dict[str, Any]:
        """The objective and the prior, or the priors, as arguments of a design."""
        several = self.objective == "least-regret"
        return {"objective": self.objective, "priors" if several else "prior": self.prior}

    def __str__(self) -> str:
        s = self.setting
        return (
            f"majority.design({s.mechanisms}, {s.epsilon!r}, {s.allowance!r}, "
            f"mechanism_delta={s.mechanism_delta!r}, delta={s.delta!r}, "
            f"{', '.join(f'{name}={value!r}' for name, value in self.told.items())})"
        )


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def cases(seed: int, largest: int = 51) -> Iterator[Case]:
    """Draw designs for ever: K odd, epsilon over four decades, all objectives and priors."""
    rng = random.Random(seed)
    while True:
        k = rng.randrange(1, largest + 1, 2)
        epsilon = log_uniform(rng, 1e-3, 10.0)
        allowance = rng.choice(
            [rng.uniform(0.0, k), log_uniform(rng, 0.01, k), float(rng.randint(1, k)), 0.5]
        )
        shift = rng.choice([0.0, log_uniform(rng, 1e-6, 1e-3)])
        delta = shift + rng.choice([0.0, log_uniform(rng, 1e-6, 1e-1)])
        setting = MajoritySetting(k, epsilon, min(max(allowance, 0.01), float(k)), shift, delta)
        objective = rng.choice(OBJECTIVES)
        many = rng.randint(2, 4) if objective == "least-regret" else 1
        yield Case(setting, objective, ";".join(rng.sample(PRIORS, many)))


def fault_of(case: Case) -> tuple[str, float]:
    """Return what is wrong with the design, or an empty text; and its gap."""
    try:
        found = dpopt.design(replace(case.setting, **case.told))
    except DpoptError as error:
        return f"{type(error).__name__}: {error}", math.inf
    if found.gap is None or found.certificate is None:
        return "it has no gap or no certificate", math.inf
    if not -ROUNDING <= found.gap <= LARGEST_GAP:
        return f"gap {found.gap:.2e}", found.gap
    return "", found.gap


@click.command()
@click.argument("count", default=2000)
@click.option("--seed", default=0)
@click.option("--largest", default=51, help="Largest K.")
def main(count: int, seed: int, largest: int) -> None:
    """Try COUNT random designs; exit code 1 if one of them fails."""
    failures, widest = 0, 0.0
    for number, case in enumerate(islice(cases(seed, largest), count)):
        start = time.perf_counter()
        fault, gap = fault_of(case)
        if fault:
            failures += 1
            seconds = time.perf_counter() - start
            click.echo(f"{number}: {fault} ({seconds:.1f} s)\n    {case}")
        else:
            widest = max(widest, gap)
    click.echo(f"{count} designs, {failures} failed; widest gap {widest:.2e}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

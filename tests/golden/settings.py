"""The cases whose numbers `values.json` keeps: each is a name, a maker and its parameters.

Only the makers in the first half know what the package calls things: where a public name changes, a
maker changes, and neither a case's name nor its numbers do. A maker returns plain values by name;
what they are held to is told in `tests.golden.compare`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
from flint import fmpz_poly

import dpopt
from dpopt import majority, smoothed
from dpopt.prob import poisson_binomial_pmf
from dpopt.proofs.closed import product_text
from experiments.majority import baselines

Numbers = dict[str, Any]
Maker = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """What is computed, and how near its numbers must stay to those that are kept.

    Attributes:
        make: computes the numbers.
        tolerance: of values, as a share of their size.
        slow: whether it takes more than about 1.5 seconds, and is compared at night only.
    """

    make: Callable[[], Numbers]
    tolerance: float
    slow: bool


CASES: dict[str, Case] = {}


def design(found: Any) -> Numbers:
    bound = None if found.bound is None else float(found.bound)
    return {"value": found.value, "bound": bound, "gap": found.gap, "private": found.private}


def case(
    name: str,
    maker: Maker,
    *given: Any,
    slow: bool = False,
    tolerance: float = 1e-9,
    show: Callable[[Any], Numbers] = design,
    **named: Any,
) -> None:
    """Add a case; what the maker returns is shown as a design, unless it is numbers already."""
    assert name not in CASES, name

    def make() -> Numbers:
        found = maker(*given, **named)
        return found if isinstance(found, dict) else show(found)

    CASES[name] = Case(make, tolerance, slow)


# --- what is shown of what was made ------------------------------------------------------------


def spending(found: Any) -> Numbers:
    """A design, and the least epsilon that its integers spend."""
    return {**design(found), "spent": dpopt.certify(found).upper}


def also(*names: str) -> Callable[[Any], Numbers]:
    """A design, and other numbers of it; arrays as lists."""
    return lambda found: {**design(found), **{n: plain(getattr(found, n)) for n in names}}


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | tuple):
        return [plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def private_only(found: Any) -> Numbers:
    """What is known of a rule whose histograms are too many to list."""
    return {"private": found.private}


# --- makers: the only part that knows the package's names --------------------------------------


def made(setting: Callable[..., Any], *given: Any, **named: Any) -> Any:
    backend = named.pop("backend", None)
    return dpopt.design(setting(*given, **named), backend=backend)


voters = partial(made, dpopt.Majority)
ballots = partial(made, dpopt.Plurality)
classes = partial(made, dpopt.Multiclass)
kernels = partial(made, dpopt.Kernel)
obscuring = partial(made, dpopt.RevealOrObscure)
sampler = partial(made, dpopt.BestSampler)
floor = partial(made, dpopt.SmoothFloor)
public = partial(made, dpopt.PublicPrior)
population = partial(made, dpopt.Population)
mollified = partial(made, dpopt.Mollifier)
workload = partial(made, dpopt.Workload)
noise = partial(made, dpopt.Noise)


def constant(k: int, epsilon: float, m: int) -> Any:
    """The noise function of subsampling, brought to integers and assessed."""
    setting = dpopt.Majority(k, epsilon, m)
    return majority.assess(setting, baselines.subsampling(k, m))


def largest_prior(n: int, objective: str, epsilon: float = 1.0) -> Numbers:
    """Algorithm 1 for a prior that falls like 1 / (i + 10)."""
    masses = 1 / np.arange(10.0, n + 10.0)
    found = made(dpopt.PublicPrior, masses / masses.sum(), epsilon, objective=objective)
    return {
        **design(found),
        "gamma_tv": found.gamma_tv,
        "diagonal sum": float(found.diagonal.sum()),
        "inequalities hold": found.certificate.slack >= 0,
    }


def crowd(n: int, users: int) -> Any:
    prior = rows_of(wave(1, n) + 0.2)[0]
    return population(prior, 1.0, rows_of(wave(users, n)))


def near(table: Any, epsilon: float, delta: float = 0.0, most: float = 1.0, **named: Any) -> Any:
    """A private table near this one, with rows moved by ``most`` in total variation."""
    found = dpopt.certify(table, epsilon, delta, tolerance=most, **named)
    return {"moved": found.moved, "private": found.private}


def least(table: Any, epsilon: Any = None, delta: Any = 0.0, **named: Any) -> Numbers:
    found = dpopt.certify(table, epsilon, delta, **named)
    return {"lower": found.lower, "upper": found.upper}


def given(gamma: Any, *voters: Any, **named: Any) -> Any:
    return dpopt.certify(gamma, setting=dpopt.Majority(*voters, **named))


def solution(problem: Any) -> Numbers:
    found = dpopt.solve(problem)
    return {"value": found.objective, "bound": found.bound, "gap": found.gap}


def by_rows(epsilon: float, delta: float = 0.0, cap: float | None = None) -> Numbers:
    """A count of 0..5 people, by rows, with a risk that is capped."""
    n, problem = 6, dpopt.Problem()
    loss = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    problem.add_variables("K", (n, n), lower=0.0, upper=1.0)
    problem.add_rows("sums", {"K": np.kron(np.eye(n), np.ones(n))}, lower=1.0, upper=1.0)
    problem.add_private("privacy", "K", epsilon=epsilon, delta=delta, graph="path")
    if cap is not None:
        far = np.kron(np.eye(n), np.ones(n)) * (loss >= 3).ravel()
        problem.add_rows("risk", {"K": far}, upper=cap)
    problem.minimise({"K": loss.ravel() / n})
    return solution(problem)


def by_cvxpy(epsilon: float, delta: float = 0.0, worst: bool = False) -> Numbers:
    """The program of the README, its optimum and the table that is proved, which keeps its row."""
    n = 9
    loss = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    table = cp.Variable((n, n), nonneg=True, name="K")
    safe: Any = cp.sum(cp.multiply(loss >= 3, table), axis=1) <= 0.05
    private = dpopt.privacy_constraints(table, epsilon, delta, graph="path")
    rules = [cp.sum(table, axis=1) == 1, safe.set_label("risk"), *private]
    losses = cp.sum(cp.multiply(loss, table), axis=1)
    objective = cp.max(losses) if worst else cp.sum(losses) / n
    found = solution(cp.Problem(cp.Minimize(objective), rules))
    proved = dpopt.certify(table, epsilon, delta, graph="path", constraints=[safe])
    return {**found, "private": proved.private, "moved less than 1e-9": proved.value < 1e-9}


def exact(setting: Callable[..., Any], *given: Any, ratio: Any, **named: Any) -> Numbers:
    return {"value": str(dpopt.exact_optimum(setting(*given, **named), ratio).value)}


def formula(setting: Callable[..., Any], *given: Any, **named: Any) -> Numbers:
    """The pieces of a closed form in r = e^epsilon, and the optimum at some r."""
    found = dpopt.closed_form(setting(*given, **named))
    at = {f"at {r}": str(found(Fraction(r))) for r in ("3/2", "2", "5", "100")}
    pieces = [
        [*(product_text(fmpz_poly(list(side))) for side in (p.value.over, p.value.under)), p.status]
        for p in found.pieces
    ]
    return {"pieces": pieces, **at}


SAMPLING = smoothed.SamplingHistogram


def largest(mechanism: Any, epsilon: float, distributions: Any) -> Numbers:
    found = smoothed.smoothed_delta(mechanism, epsilon, distributions)
    logarithm = found.log10_delta
    return {
        "delta": found.delta,
        "log10_delta": logarithm if math.isfinite(logarithm) else str(logarithm),
        "argmax": list(found.argmax),
        "certified": found.certified,
        "dp_delta": found.dp_delta,
    }


def expected(mechanism: Any, epsilon: float, shares: Any, counts: list[int]) -> Numbers:
    chances = poisson_binomial_pmf(np.repeat(shares, counts))
    mean = float(chances @ smoothed.privacy_profile(mechanism, epsilon).delta)
    return {"delta": mean, "log10_delta": math.log10(mean)}


def profile(mechanism: Any, epsilon: float, histogram: Any = None) -> Numbers:
    found = smoothed.privacy_profile(mechanism, epsilon, histogram)
    return {"delta": plain(found.delta[:9]), "largest log": float(np.max(found.log_delta))}


def least_smoothed(mechanism: Any, delta: float, distributions: Any) -> Numbers:
    return {"epsilon": smoothed.smoothed_epsilon(mechanism, delta, distributions).epsilon}


def worst(mechanism: Any, epsilon: float) -> Numbers:
    return {"delta": float(smoothed.privacy_profile(mechanism, epsilon).delta.max())}


def step(values: Any, drawn: int, epsilons: Any, **named: Any) -> Numbers:
    return {"log_delta": plain(smoothed.sgd_profile(values, drawn, epsilons, **named).log_delta)}


# --- data --------------------------------------------------------------------------------------


def wave(inputs: int, outputs: int) -> Any:
    """A table of numbers in [0, 1] without any order, the same everywhere."""
    return np.mod(np.arange(1, inputs * outputs + 1) * math.sqrt(2), 1.0).reshape(inputs, outputs)


def ring(n: int) -> Any:
    away = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.minimum(away, n - away).astype(float)


def power(n: int, exponent: float) -> Any:
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float) ** exponent


def rows_of(table: Any) -> Any:
    return table / table.sum(axis=1, keepdims=True)


def unit(n: int, *places: int) -> Any:
    row = np.zeros((1, n))
    row[0, list(places)] = 1.0
    return row


TWO, THREE = [0.4, 0.6], [0.2, 0.3, 0.5]
FIVE = [0.05, 0.10, 0.15, 0.20, 0.50]
CAPPED = [("cap", unit(36, 3, 4, 5), None, 0.1)]
USERS = [[0.4, 0.1, 0.1, 0.4], [0.0, 0.5, 0.5, 0.0], [0.1, 0.2, 0.3, 0.4]]
GRADIENTS = [-3, -1, 0, 0, 1, 2, 2, 5, 7, 7]
STAR = [(0, 1), (0, 2), (0, 3), (0, 4)]

# --- voters that are private -------------------------------------------------------------------

HALF, ALIKE, TILTED = "uniform:0,1", "common-beta:2,3", "uniform:0.1,0.4,0.6,0.9"
GAMMA = also("gamma", "expected_error")
case("majority/K=11", voters, 11, 0.1, 3, show=GAMMA)
case("majority/K=11 subsampling", constant, 11, 0.1, 3, show=GAMMA)
case("majority/K=1", voters, 1, 0.5, 0.5)
case("majority/K=3 all spent", voters, 3, 0.5, 3, show=spending)
case("majority/K=5", voters, 5, 0.5, 1.5, show=spending)
case("majority/K=5 m=0.3", voters, 5, 0.5, 0.3, show=spending)
case("majority/K=5 by cvxpy", voters, 5, 0.5, 1.5, backend="cvxpy")
case("majority/K=5 epsilon=1e-3", voters, 5, 1e-3, 2)
case("majority/K=5 epsilon=8", voters, 5, 8.0, 2)
case("majority/K=11 independent", voters, 11, 0.1, 3, prior=HALF)
case("majority/K=11 common beta", voters, 11, 0.1, 3, prior=ALIKE)
case("majority/K=11 two intervals", voters, 11, 0.1, 3, prior=TILTED)
case("majority/K=11 beta", voters, 11, 0.4, 2.5, prior="beta:2,2")
case("majority/K=11 point", voters, 11, 0.4, 2.5, prior="point:0.7")
case("majority/K=11 surrogate", voters, 11, 0.1, 3, objective="surrogate", show=GAMMA)
case("majority/K=11 worst case", voters, 11, 0.1, 3, objective="worst-case")
case("majority/K=7 worst of some", voters, 7, 0.3, 2, objective="worst-case", prior="uniform:.6,1")
case("majority/K=11 least regret", voters, 11, 0.1, 3, objective="least-regret")
REGRET: Numbers = {"objective": "least-regret"}
TWO_PRIORS = tuple(map(majority.parse_prior, (HALF, "common-uniform:0,1")))
case("majority/K=9 regret of two", voters, 9, 0.2, 2.5, **REGRET, priors=TWO_PRIORS)
case("majority/K=5 coefficients", voters, 5, 0.5, 1.5, coefficients=[1.0, 0.25, 0.5])
case("majority/K=11 delta", voters, 11, 0.1, 3, delta=1e-3)
case("majority/K=11 delta=0.1 worst", voters, 11, 0.1, 3, delta=0.1, objective="worst-case")
case("majority/K=5 Delta", voters, 5, 0.3, 1.5, voter_delta=1e-3, delta=0.01)
DELTAS: Numbers = {"voter_delta": 1e-4, "delta": 1e-3}
case("majority/K=11 Delta", voters, 11, 0.1, 3, **DELTAS)
case("majority/K=11 Delta surrogate", voters, 11, 0.1, 3, objective="surrogate", **DELTAS)
case("majority/K=11 Delta worst", voters, 11, 0.1, 3, objective="worst-case", **DELTAS)
case("majority/K=11 Delta regret", voters, 11, 0.1, 3, objective="least-regret", **DELTAS)
case("majority/K=11 Delta=delta", voters, 11, 0.5, 3, voter_delta=0.02, delta=0.02)
case("majority/K=51 Delta", voters, 51, 0.1, 5, voter_delta=1e-6, delta=1e-5)
case("majority/K=101", voters, 101, 0.1, 5)
case("majority/K=101 worst case", voters, 101, 0.1, 5, objective="worst-case")
case("majority/K=101 least regret", voters, 101, 0.1, 5, objective="least-regret")
case("majority/K=201 Delta", voters, 201, 0.1, 10, voter_delta=1e-6, delta=1e-5, slow=True)
case("majority/K=501", voters, 501, 0.1, 10, slow=True)
case("majority/K=501 surrogate", voters, 501, 0.1, 10, objective="surrogate", slow=True)
case("majority/K=1001", voters, 1001, 0.1, 10, slow=True)

case("multiclass/K=5 C=3", classes, 5, 3, 0.5, 2, show=spending)
case("multiclass/K=6 C=2", classes, 6, 2, 0.5, 2)
case("multiclass/K=11 C=3", classes, 11, 3, 0.1, 3)
case("multiclass/K=5 C=3 delta", classes, 5, 3, 0.5, 2, delta=0.01)
case("multiclass/K=5 C=3 dirichlet", classes, 5, 3, 0.5, 2, prior="dirichlet:0.5")
case("multiclass/K=5 C=3 point", classes, 5, 3, 0.5, 2, prior="point:0.5,0.3,0.2")
case("multiclass/K=4 C=4", classes, 4, 4, 0.5, 2)
for rule in ("ladder", "permute-and-flip", "exponential", "subsampling"):
    case(f"multiclass/K=5 C=3 {rule}", classes, 5, 3, 0.5, 2, rule=rule)
DELTAS: Numbers = {"voter_delta": 0.01, "delta": 0.02}
case("multiclass/K=5 C=3 Delta", classes, 5, 3, 0.1, 3, rule="ladder", **DELTAS)
case("multiclass/K=15 C=3", classes, 15, 3, 0.1, 3)

# --- voters that are not -----------------------------------------------------------------------

REGRETS = also("mean_regret", "worst_regret", "mean_error", "worst_error")
case("plurality/K=7 C=3", ballots, 7, 3, 0.5, show=spending)
for objective in ("mean", "worst-case"):
    for loss in ("regret", "error"):
        asked: Numbers = {"objective": objective, "loss": loss}
        case(f"plurality/K=12 C=3 {objective} {loss}", ballots, 12, 3, 0.5, **asked)
        case(f"plurality/K=10 C=4 {objective} {loss}", ballots, 10, 4, 2.0, **asked)
for rule in ("ladder", "permute-and-flip", "exponential"):
    case(f"plurality/K=12 C=3 {rule}", ballots, 12, 3, 0.5, rule=rule, show=REGRETS)
    case(f"plurality/K=100000 C=10 {rule}", ballots, 10**5, 10, 0.01, rule=rule, show=private_only)
case("plurality/K=10 C=3 dirichlet", ballots, 10, 3, 0.5, prior="dirichlet:0.3")
case("plurality/K=12 C=3 by cvxpy", ballots, 12, 3, 0.5, backend="cvxpy")
case("plurality/K=20 C=2", ballots, 20, 2, 0.1)
case("plurality/K=5 C=30", ballots, 5, 30, 1.0)
case("plurality/K=30 C=3", ballots, 30, 3, 0.5)
case("plurality/K=30 C=3 minimax", ballots, 30, 3, 0.5, objective="worst-case")
case("plurality/K=40 C=4", ballots, 40, 4, 0.5)
case("plurality/K=40 C=4 minimax", ballots, 40, 4, 0.5, objective="worst-case")

# --- one private category from a column --------------------------------------------------------

Q = also("q")
for rule in ("exact", "roo", "journal", "journal-repaired", "conference"):
    case(f"roo/n=12 k=3 {rule}", obscuring, 12, 3, 0.5, rule, show=Q)
case("roo/n=20 k=3", obscuring, 20, 3, 0.5, show=spending)
case("roo/n=20 k=3 program", obscuring, 20, 3, 0.5, backend="highs")
case("roo/n=20 k=3 by cvxpy", obscuring, 20, 3, 0.5, backend="cvxpy")
case("roo/n=6 k=3 journal program", obscuring, 6, 3, 0.9, "journal-repaired", backend="highs")
case("roo/n=1000 k=10", obscuring, 1000, 10, 0.1)
case("roo/n=100000 k=4", obscuring, 10**5, 4, 0.001)
case("roo/n=20 k=3 conference fails", obscuring, 20, 3, 1.0, "conference")
case("best sampler/n=8 k=3", sampler, 8, 3, 1.0, show=spending)
case("best sampler/n=8 k=3 bayes", sampler, 8, 3, 1.0, "mean")
case("best sampler/n=8 k=3 alpha", sampler, 8, 3, 1.0, "mean", prior=0.5)
case("best sampler/n=8 k=3 by cvxpy", sampler, 8, 3, 1.0, backend="cvxpy")
case("best sampler/n=30 k=3", sampler, 30, 3, 0.3, "mean")
case("best sampler/n=12 k=5", sampler, 12, 5, 0.5)
case("best sampler/n=30 k=4 worst", sampler, 30, 4, 0.3)
FLOOR = also("rate")
case("smooth floor/n=20 k=4", floor, 20, 4, 0.1, show=FLOOR)
case("smooth floor/n=20 k=3 epsilon=1", floor, 20, 3, 1.0, show=FLOOR)
case("smooth floor/n=1000 k=10", floor, 1000, 10, 0.1, show=FLOOR)

# --- with a public prior -----------------------------------------------------------------------

DIAGONAL = also("diagonal", "gamma_tv")
case("public prior/5 minimax", public, FIVE, 1.0, show=DIAGONAL)
case("public prior/5 leximin", public, FIVE, 1.0, objective="leximin", show=DIAGONAL)
case("public prior/5 program", public, FIVE, 1.0, backend="highs")
case("public prior/5 leximin program", public, FIVE, 1.0, objective="leximin", backend="highs")
case("public prior/3 epsilon=1e-6", public, THREE, 1e-6, show=DIAGONAL)
case("public prior/3 epsilon=9", public, THREE, 9.0, show=DIAGONAL)
case("public prior/3 least", public, THREE, 0.8, show=spending)
case("public prior/1000", largest_prior, 1000, "minimax")
case("public prior/1000 leximin", largest_prior, 1000, "leximin")
case("public prior/10^5", largest_prior, 10**5, "minimax")
case("public prior/10^5 leximin", largest_prior, 10**5, "leximin")
case("public prior/10^6", largest_prior, 10**6, "minimax", slow=True)
case("population/4 tv", population, [0.1, 0.2, 0.3, 0.4], 1.0, USERS)
case("population/4 diagonal", population, [0.1, 0.2, 0.3, 0.4], 1.0, USERS, objective="diagonal")
case("population/4 slack", population, [0.1, 0.2, 0.3, 0.4], 0.5, USERS, [2, 1, 1], slack=0.05)
case("population/8 of 60", crowd, 8, 60)
case("population/15 of 400", crowd, 15, 400)
case("mollifier/5", mollified, FIVE, 1.0, [0.5, 0.5, 0.0, 0.0, 0.0])
case("mollifier/3", mollified, THREE, 0.4, [0.0, 0.0, 1.0])
case("mollifier/3 program", mollified, THREE, 0.4, [0.0, 0.0, 1.0], backend="highs")

# --- kernels -----------------------------------------------------------------------------------

for loss in ("absolute", "squared", "zero-one"):
    for objective in ("mean", "worst-case"):
        name = f"{loss} {objective}"
        asked: Numbers = {"inputs": 8, "objective": objective}
        case(f"kernel/8 path {name}", kernels, loss, 0.7, graph="path", **asked)
        case(f"kernel/8 complete {name}", kernels, loss, 0.7, **asked)
PATH: Numbers = {"graph": "path", "inputs": 8}
case("kernel/8 path program", kernels, "absolute", 0.7, **PATH, backend="highs", show=spending)
case("kernel/8 path by cvxpy", kernels, "absolute", 0.7, **PATH, backend="cvxpy")
case("kernel/8 path prior", kernels, power(8, 1), 0.7, graph="path", prior=np.arange(1, 9))
case("kernel/8 path epsilon=0", kernels, "absolute", 0.0, **PATH)
case("kernel/8 path epsilon=1e-3", kernels, "absolute", 1e-3, **PATH, backend="highs")
case("kernel/8 path epsilon=1e-6", kernels, "absolute", 1e-6, **PATH, backend="highs")
case("kernel/8 path epsilon=12", kernels, "absolute", 12.0, **PATH)
case("kernel/8 path delta", kernels, "absolute", 0.5, 0.05, **PATH)
case("kernel/8 path delta=1e-9", kernels, "absolute", 0.5, 1e-9, **PATH)
case("kernel/6 complete delta", kernels, power(6, 1), 0.5, 1e-3, objective="worst-case")
case("kernel/6 cycle delta", kernels, ring(6), 0.5, 0.1, graph="cycle")
case("kernel/7x5 no order", kernels, wave(7, 5), 2.5, show=spending)
case("kernel/7x5 path no order", kernels, wave(7, 5), 0.8, graph="path", objective="worst-case")
case("kernel/5x4 star", kernels, wave(5, 4), 0.8, graph=STAR)
case("kernel/5x4 star delta", kernels, wave(5, 4), 0.8, 0.02, graph=STAR)
case("kernel/5 utility", kernels, power(5, 1), 0.7, sense="maximise")
case("kernel/7x5 utility worst", kernels, wave(7, 5), 2.5, sense="maximise", objective="worst-case")
case("kernel/6x9 outputs", kernels, "absolute", 1.0, graph="path", inputs=6, outputs=9)
case("kernel/3x3 grid", kernels, "absolute", 0.8, graph="grid", shape=(3, 3))
case("kernel/4x4 grid minimax", kernels, "squared", 0.8, graph="grid", shape=(4, 4))
case("kernel/3 bits", kernels, "hamming", 1.0, graph="hamming", shape=(2, 2, 2))
case("kernel/3 qK=q", kernels, power(3, 1), 0.5, prior=THREE, invariant=THREE)
# The mean of the first and the last row is (1/4, 1/2, 1/4).
ENDS_MEAN = [("ends", np.kron([[0.5, 0.0, 0.5]], np.eye(3)), *[[0.25, 0.5, 0.25]] * 2)]
case("kernel/3 equal rows", kernels, power(3, 1), 0.5, constraints=ENDS_MEAN)
case("kernel/6 own rows", kernels, "absolute", 1.0, graph="path", inputs=6, constraints=CAPPED)
case(
    "kernel/6 own rows worst", kernels, power(6, 2), 1.0, objective="worst-case", constraints=CAPPED
)
case("kernel/6 own rows delta", kernels, "absolute", 1.0, 0.01, inputs=6, constraints=CAPPED)
NONE_LEFT = [("sure", unit(36, 0), 0.9, None), ("never", unit(36, 6), None, 0.1)]
case("kernel/6 own rows leave none", kernels, power(6, 1), 1.0, graph="path", constraints=NONE_LEFT)
SYMMETRIC: Numbers = {"objective": "worst-case", "show": spending}
ENDS: Numbers = {"graph": "path", "symmetry": "reflection", **SYMMETRIC}
case("kernel/9 reflection", kernels, power(9, 1), 0.5, **ENDS)
case("kernel/9 cyclic", kernels, ring(9), 0.5, graph="cycle", symmetry="cyclic", **SYMMETRIC)
case("kernel/60 dihedral", kernels, ring(60), 0.5, graph="cycle", symmetry="dihedral")
case("kernel/6 dihedral delta", kernels, ring(6), 0.8, 0.05, graph="cycle", symmetry="dihedral")
case("kernel/50 symbols", kernels, "zero-one", 1.0, inputs=50, symmetry="symbols")
FLIP = [([2, 1, 0], [2, 1, 0])]
case("kernel/3 generators", kernels, power(3, 1), 0.5, graph="path", symmetry=FLIP)
WORDS: Numbers = {"graph": "hamming", "symmetry": "hamming"}
case("kernel/2^11 words", kernels, "hamming", 1.0, shape=(2,) * 11, **WORDS, show=spending)
case("kernel/3^6 words", kernels, "hamming", 1.0, shape=(3,) * 6, **WORDS)
case("kernel/2^20 words", kernels, "hamming", 1.0, shape=(2,) * 20, **WORDS, slow=True)
case("kernel/8 auto", kernels, power(8, 1), 0.5, graph="path", symmetry="auto")
LARGE: Numbers = {"graph": "path", "backend": "highs"}
WORST: Numbers = {**LARGE, "objective": "worst-case"}
# The program's rows ask entries of e^-150 for what no solver's tolerance sees.
TAILS: Numbers = {"tolerance": 1e-8, "slow": True}
case("kernel/60 path no order", kernels, wave(60, 60), 0.5, graph="path", slow=True)
case("kernel/150 path program", kernels, "absolute", 1.0, inputs=150, **LARGE, **TAILS)
case("kernel/60 path worst program", kernels, power(60, 1), 1.0, **WORST, **TAILS)
case("kernel/400 path", kernels, "absolute", 1.0, graph="path", inputs=400, slow=True)
case("kernel/60 complete", kernels, power(60, 1), 1.0)

# --- linear queries of people who trust nobody -------------------------------------------------

for name in ("histogram", "prefix", "range", "marginals"):
    case(f"workload/{name} 8", workload, name, 1.0, 8)
case("workload/prefix 8 worst", workload, "prefix", 1.0, 8, objective="worst-case")
case("workload/prefix 3 prior", workload, "prefix", 1.0, 3, THREE)
case("workload/own 5", workload, wave(4, 5), 3.0)
case("workload/histogram 64", workload, "histogram", 1.0, 64)
case("workload/histogram 128", workload, "histogram", 1.0, 128, slow=True)
# Found by adding patterns while they help: the bound is 4e-4 of the value away.
case("workload/prefix 24", workload, "prefix", 1.0, 24, tolerance=1e-7, slow=True)

# --- tables and programs of the user's own -----------------------------------------------------

TABLE = rows_of(wave(5, 4) + 0.1)
SYMMETRIC_TABLE = [[0.8, 0.2], [0.2, 0.8]]
case("certify/near", near, SYMMETRIC_TABLE, 1.0)
CAP_0: Numbers = {"graph": "path", "constraints": [("cap", unit(20, 0, 1), None, 0.4)]}
for name, asked in {
    "": {},
    " path": {"graph": "path"},
    " delta": {"delta": 0.05},
    " own row": CAP_0,
}.items():
    case(f"certify/5x4{name}", near, TABLE, 0.3, **asked)
    if name != " own row":
        case(f"certify/5x4{name} least epsilon", least, TABLE, **asked)
case("certify/5x4 least delta", least, TABLE, 0.3, None)
case("certify/5x4 too far", near, TABLE, 0.3, most=1e-3)
case("certify/gamma", given, [0.4, 0.5, 0.6], 5, 0.5, 1.5, show=spending)
case("certify/gamma Delta", given, [0.4, 0.5], 3, 0.5, 1.5, voter_delta=1e-3, delta=0.01)
case("program/rows", by_rows, 0.8)
case("program/rows delta", by_rows, 0.8, 0.05)
case("program/rows capped", by_rows, 0.8, cap=0.1)
case("program/rows delta capped", by_rows, 0.8, 0.05, 0.1)
case("program/rows capped too low", by_rows, 0.1, cap=0.01)
case("program/cvxpy", by_cvxpy, 1.0)
case("program/cvxpy worst", by_cvxpy, 1.0, worst=True)
case("program/cvxpy delta", by_cvxpy, 1.0, 0.01)

# --- exact optima ------------------------------------------------------------------------------

Kernel, Voters, Ballots = dpopt.Kernel, dpopt.Majority, dpopt.Plurality
COUNTS: Numbers = {"graph": "path", "inputs": 4, "objective": "worst-case"}
EXACT: dict[str, tuple[Any, ...]] = {
    "counts": (Kernel, "absolute", 1.0, COUNTS),
    "symbols": (Kernel, "zero-one", 1.0, {"inputs": 3}),
    "voters": (Voters, 3, 0.5, 1, {}),
    "voters surrogate": (Voters, 3, 0.5, 2, {"objective": "surrogate"}),
    "ballots": (Ballots, 4, 3, 0.5, {}),
    "obscuring": (dpopt.RevealOrObscure, 5, 2, 1.0, {}),
    "sampler": (dpopt.BestSampler, 4, 2, 1.0, {}),
    "prior": (dpopt.PublicPrior, THREE, 1.0, {}),
}
for name, (setting, *numbers, asked) in EXACT.items():
    case(f"exact/{name} r=2", exact, setting, *numbers, ratio=2, **asked)
    case(f"exact/{name} r=7/5", exact, setting, *numbers, ratio=Fraction(7, 5), **asked)
    if name not in ("prior", "voters surrogate"):
        case(f"exact/{name} formula", formula, setting, *numbers, **asked)

# --- what is asked without any mechanism -------------------------------------------------------

COUNT, SMALL = SAMPLING(36, 34), SAMPLING(40, 20)
case("smoothed/36 of two", largest, COUNT, 0.0, TWO)
case("smoothed/40 of three", largest, SMALL, 0.5, [0.2, 0.5, 0.9])
case("smoothed/12 of three", largest, SAMPLING(12, 9, 3), 0.2, [THREE, [0.6, 0.2, 0.2]])
case("smoothed/20 with replacement", largest, SAMPLING(20, 15, replacement=True), 0.3, TWO)
case("smoothed/1000", largest, SAMPLING(1000, 998), 1.0, [0.0553, 0.7714])
case("smoothed/100000", largest, SAMPLING(10**5, 99_800), 1.0, [0.0553, 0.7714])
case("smoothed/least epsilon", least_smoothed, SAMPLING(100, 80), 1e-3, [0.3, 0.5])
case("expected/36", expected, COUNT, 0.0, TWO, [36, 0])
case("expected/36 mixed", expected, COUNT, 0.1, TWO, [12, 24])
case("profile/20", profile, SAMPLING(20, 15), 0.4)
case("profile/20 with replacement", profile, SAMPLING(20, 15, replacement=True), 0.4)
ELECTION = SAMPLING(155_485_078, 155_174_108)
case("profile/election", profile, ELECTION, 0.04, (81_268_924, 74_216_154))
case("profile/worst case", worst, SAMPLING(20, 15), 0.4)
case("sgd/10", step, GRADIENTS, 4, [0.0, 0.1, 1.0, 3.0])
case("sgd/10 sums", step, GRADIENTS, 4, [0.0, 0.1, 1.0], rounded=False)
case("sgd/10 narrow", step, GRADIENTS, 7, [0.1], lowest=-8, highest=8)
case("noise/staircase", noise, 7, 2.5)
case("noise/sensitivity 1", noise, 1, 0.5, 1e-6, "squared")
case("noise/delta", noise, 3, 1.0, 0.05, "squared")
case("noise/small delta", noise, 10, 0.3, 1e-9)

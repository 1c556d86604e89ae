"""Every public function with arguments that it accepts, for tests that then spoil one of them.

The functions are the public names of the rooms, and what they take is read from their signatures. A
good value of a parameter is looked up by function and name, then by room and name, by its type, and
by its name; else its default is good. A parameter without any is an error of these tables.

Of the public classes those are called that check what they are given. Not here: settings and
their designs (`tests/shape` spoils these), and records, which hold what the package computed and
check nothing.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import cvxpy as cp
import numpy as np

import dpopt
from dpopt import Guarantee, Problem, lp, majority, roo, smoothed
from tests.shape.checks import input_of

Arguments = dict[str, Any]
Makers = dict[str, Callable[[], Any]]

ROOMS = (
    *("majority", "plurality", "roo", "public_prior", "kernel", "smoothed"),
    *("local", "privacy", "lp", "prob"),
)
MODULES: tuple[ModuleType, ...] = tuple(import_module(f"dpopt.{room}") for room in ROOMS)

PRIOR = [0.2, 0.3, 0.5]


@cache
def sampler() -> Any:
    return dpopt.design(dpopt.RevealOrObscure(5, 2, 1.0))


def sampling() -> smoothed.SamplingHistogram:
    return smoothed.SamplingHistogram(4, 3)


def small_problem() -> Problem:
    problem = Problem()
    problem.add_variables("x", 2, lower=0.0, upper=1.0)
    problem.add_rows("budget", [[1.0, 2.0]], upper=2.0)
    problem.maximise([1.0, 1.0])
    return problem


def table_program() -> Problem:
    problem = Problem()
    problem.add_variables("K", (3, 3), lower=0.0, upper=1.0)
    return problem


BY_TYPE: Makers = {
    "Majority": lambda: dpopt.Majority(3, 0.1, 1.0),
    "Voters": lambda: dpopt.Majority(3, 0.1, 1.0),
    "RooSetting": lambda: roo.RooSetting(5, 2, 1.0),
    "SamplingHistogram": sampling,
    "AnonymousMechanism": sampling,
    "Prior": majority.UniformPrior,
    "PriorLike": majority.UniformPrior,
    "UniformPrior | BetaPrior": majority.UniformPrior,
    "PriorLike | None": lambda: "uniform:0,1",
    "PublicLike": lambda: PRIOR,
    "Divergence": lambda: "chi-square",
    "np.random.Generator": lambda: np.random.default_rng(0),
}

BY_NAME: Makers = {
    "a": lambda: 1.0,
    "delta": lambda: 0.1,
    **{name: lambda: [0.5, 0.5] for name in ("p", "weights")},
    "categories": lambda: 2,
    **{name: lambda: 3 for name in ("cuts", "drawn", "folds", "voters")},
    "labels": lambda: ["a", "b"],
    "b": lambda: 2.0,
    "bits": lambda: 64,
    "column": lambda: "x",
    "composition": lambda: [3, 1],
    "data": lambda: ["a", "b"],
    "distributions": lambda: [[0.5, 0.5], [0.25, 0.75]],
    "draws": lambda: 10,
    "epsilon": lambda: 1.0,
    "epsilons": lambda: [0.5, 1.0],
    "exponent": lambda: 1.0,
    "gamma": lambda: np.array([0.5, 0.1, 0.1, 0.5]),
    "highest": lambda: 5,
    "histogram": lambda: [2, 2],
    "lowest": lambda: 0,
    "matrix": lambda: [[1.0, 2.0]],
    "path": lambda: "missing.csv",
    "population": lambda: 9,
    "q": lambda: [0.25, 0.75],
    "records": lambda: 5,
    "rule": lambda: "exact",
    "size": lambda: 3,
    "slack": lambda: 1e-6,
    "stop_at_gap": lambda: 1e-3,
    "successes": lambda: 4,
    "text": lambda: "uniform:0,1",
    "time_limit": lambda: 60.0,
    "trials": lambda: 5,
    "upper": lambda: 2.0,
    "values": lambda: [1, 2, 3, 4],
}

BY_ROOM: dict[str, Makers] = {
    "public_prior": {"labels": lambda: ["a", "b", "c"], "pmfs": lambda: [[1.0, 0.0, 0.0]]},
    "smoothed": {"records": lambda: 4, "epsilon": lambda: 0.5},
    "local": {"queries": lambda: "prefix", "categories": lambda: 3},
    "plurality": {"classes": lambda: 3, "epsilon": lambda: 0.1, "rule": lambda: "best"},
}

BY_FUNCTION: dict[str, Makers] = {
    "privacy.Certificate": {
        **{name: lambda: "in words" for name in ("claim", "tightest", "digest")},
        "guarantee": lambda: Guarantee(1.0),
        "constraints": lambda: 2,
        "slack": lambda: Fraction(1, 8),
    },
    "majority.parse_prior": {"prior": lambda: "uniform:0,1"},
    "majority.PointPrior": {"p": lambda: (0.2, 0.3, 0.4)},
    "majority.SamplePrior": {"samples": lambda: np.full((2, 3), 0.4)},
    "majority.assess": {"repair": lambda: True},
    "public_prior.draw_own_category": {"counts": lambda: [1, 2, 3]},
    **{
        f"{room}.directed_pairs": {"graph": lambda: "path", "inputs": lambda: 3}
        for room in ("kernel", "privacy")
    },
    "kernel.ConstraintBlock": {
        "name": lambda: "cap",
        "places": lambda: [[0, 0, 1]],
        "coefficients": lambda: [1.0],
        "lower": lambda: [None],
        "upper": lambda: [0.5],
    },
    "smoothed.batch_distribution": {"drawn": lambda: 2},
    "smoothed.sgd_profile": {"drawn": lambda: 2},
    "privacy.general_composition": {"guarantee": lambda: Guarantee(0.1, 1e-6)},
    "privacy.simple_composition": {"guarantee": lambda: Guarantee(0.1, 1e-6)},
    "lp.Problem.add_rows": {"name": lambda: "more", "lower": lambda: 0.0, "upper": lambda: [1.0]},
    "lp.Problem.add_variables": {
        "name": lambda: "y",
        "shape": lambda: 2,
        "lower": lambda: 0.0,
        "upper": lambda: [1.0, 2.0],
    },
    "lp.Problem.maximise": {"objective": lambda: {"x": [1.0, 2.0]}},
    "lp.Problem.minimise": {"objective": lambda: [1.0, 2.0]},
    "lp.make_rows": {"lower": lambda: [0.0]},
    "lp.solve": {"problem": small_problem, "tolerance": lambda: 1e-9, "max_rounds": lambda: 10},
    "prob.binomial_pmf": {"p": lambda: 0.3},
    "prob.poisson_binomial_pmf": {"p": lambda: [0.1, 0.5]},
}

# What users call on results: object, and arguments of the method that follows the point.
METHODS: dict[str, Callable[[], tuple[object, Arguments]]] = {
    "sampler.output_distribution": lambda: (sampler(), {"counts": [3, 2]}),
    "sampling_kernel.apply": lambda: (dpopt.design(dpopt.PublicPrior(PRIOR, 1.0)), {"p": PRIOR}),
    "workload_design.estimate": lambda: (
        dpopt.design(dpopt.Workload("prefix", 1.0, 3)),
        {"outputs": [0, 1, 1]},
    ),
    "dpopt.certify": lambda: (
        dpopt,
        {
            **{"kernel": [[0.6, 0.4], [0.4, 0.6]], "epsilon": 1.0, "delta": 0.0},
            **{"graph": "path", "inputs": ["a", "b"], "constraints": None, "tolerance": 0.1},
        },
    ),
    "dpopt.closed_form": lambda: (
        dpopt,
        {"setting": dpopt.Kernel("zero-one", 1.0, inputs=2)},
    ),
    "dpopt.exact_optimum": lambda: (
        dpopt,
        {"setting": dpopt.Kernel("zero-one", 1.0, inputs=2), "ratio": 2},
    ),
    "dpopt.vote": lambda: (
        dpopt,
        {
            **{"mechanism": dpopt.Majority(3, 0.1, 1.0), "votes": [[1, 1, 0]]},
            **{"trained_once": False, "voters_per_record": 1, "slack": 1e-6, "answered": 0},
            "budget": Guarantee(1.0),
        },
    ),
    "dpopt.sweep": lambda: (dpopt, {"function": abs, "grid": [{"x": 1}], "workers": 1}),
    "dpopt.privacy_constraints": lambda: (
        dpopt,
        {"K": cp.Variable((3, 3)), "epsilon": 1.0, "delta": 0.1, "graph": "path"},
    ),
    "program_of_a_table.add_private": lambda: (
        table_program(),
        {"name": "more", "variable": "K", "epsilon": 1.0, "delta": 0.1, "graph": "path"},
    ),
    "Tally.of_counts": lambda: (roo.Tally, {"counts": [3, 2], "labels": ["a", "b"]}),
    "SamplingHistogram.of_lost_rate": lambda: (
        smoothed.SamplingHistogram,
        {"records": 10, "lost_rate": 0.5},
    ),
    **{
        f"lp.Problem.{name}": lambda name=name: (small_problem(), good_for(f"lp.Problem.{name}"))
        for name in ("add_rows", "add_variables", "maximise", "minimise")
    },
    # The arguments are those that the kind gives as an example; both ways of drawing take them.
    **{
        f"{kind.kind}.{verb}": lambda kind=kind, verb=verb: (designed(kind), drawing(kind, verb))
        for kind in dpopt.kinds()
        if issubclass(kind, dpopt.Setting)
        for verb in ("release", "simulate")
    },
}


@cache
def designed(kind: Any) -> Any:
    return dpopt.design(kind.example())


def drawing(kind: Any, verb: str) -> Arguments:
    first = next(iter(inspect.signature(getattr(designed(kind), verb)).parameters))
    seeded = {"rng": np.random.default_rng(0)} if verb == "simulate" else {}
    return {first: input_of(kind), **seeded}


def is_called(value: object) -> bool:
    """Whether a public name is a function, or a class that checks what it is given."""
    if not inspect.isclass(value):
        return inspect.isfunction(value)
    if inspect.isabstract(value) or getattr(value, "_is_protocol", False):
        return False
    if issubclass(value, enum.Enum | dpopt.Setting | lp.Problem):
        return False
    # A constructor that `dataclass` wrote checks nothing but what `__post_init__` does.
    written = value.__init__.__code__.co_filename != "<string>"
    return written or hasattr(value, "__post_init__")


def _callables() -> dict[str, Callable[..., object]]:
    found = {
        f"{room}.{name}": getattr(module, name)
        for room, module in zip(ROOMS, MODULES, strict=True)
        for name in module.__all__
    }
    return {name: value for name, value in found.items() if is_called(value)}


CALLABLES = _callables()
NAMES = list(CALLABLES)


def parameter_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a public function, or of a method of a problem."""
    method = name.startswith("lp.Problem.")
    function = getattr(Problem, name.rpartition(".")[2]) if method else CALLABLES[name]
    found = dict(inspect.signature(function).parameters)
    found.pop("self", None)
    return {key: p for key, p in found.items() if p.kind is not p.VAR_KEYWORD}


def good_for(name: str) -> Arguments:
    """Return arguments that a function accepts.

    Raises:
        KeyError: if the tables above have none for one of its parameters.
    """
    room, arguments = name.partition(".")[0], {}
    for key, parameter in parameter_of(name).items():
        annotation = str(parameter.annotation)
        for table in (BY_FUNCTION.get(name, {}), BY_ROOM.get(room, {}), BY_TYPE, BY_NAME):
            maker = table.get(annotation if table is BY_TYPE else key)
            if maker is not None:
                arguments[key] = maker()
                break
        else:
            if parameter.default is parameter.empty:
                raise KeyError(f"no good value for {key}: {annotation} of {name}")
            arguments[key] = parameter.default
    return arguments


def called(name: str) -> tuple[Callable[..., object], Arguments]:
    """Return the callable of a name such as ``roo.tally`` and arguments that it accepts."""
    if name in METHODS:
        owner, arguments = METHODS[name]()
        return getattr(owner, name.rpartition(".")[2]), arguments
    function, arguments = CALLABLES[name], good_for(name)
    several = [key for key, p in parameter_of(name).items() if p.kind is p.VAR_POSITIONAL]
    if several:
        listed = {f"{several[0]}_{i}": value for i, value in enumerate(arguments[several[0]])}
        return lambda **kept: function(*kept.values()), listed
    if inspect.isgeneratorfunction(function):
        return lambda **kept: list(function(**kept)), arguments
    return function, arguments

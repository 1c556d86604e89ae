"""Every public callable with arguments that it accepts, for tests that then spoil one of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from dpopt import (
    Guarantee,
    Problem,
    gnmax,
    kernel,
    lp,
    majority,
    privacy,
    prob,
    public_prior,
    roo,
    smoothed,
    solve,
)

Arguments = dict[str, Any]
MODULES: tuple[ModuleType, ...] = (
    *(majority, roo, public_prior, kernel, gnmax, smoothed),
    *(privacy, lp, prob),
)

SETTING = majority.MajoritySetting(3, 0.1, 1.0)
ROO = roo.RooSetting(5, 2, 1.0)
SAMPLING = smoothed.SamplingHistogram(4, 3)
LAWS = [[0.5, 0.5], [0.25, 0.75]]
NOISY = {"records": 4, "drawn": 3, "epsilon": 1.0}
PRIOR = [0.2, 0.3, 0.5]
LOSS = [[0.0, 1.0], [1.0, 0.0]]


@cache
def design() -> majority.MajorityDesign:
    return majority.design(3, 0.1, 1.0)


@cache
def min_count() -> roo.MinCountSampler:
    return roo.min_count(5, 2, 1.0)


@cache
def kernel_program() -> tuple[kernel.KernelSetting, Problem, lp.Solution]:
    setting = kernel.KernelSetting(LOSS, 1.0)
    problem = kernel.kernel_problem(setting)
    return setting, problem, solve(problem)


@cache
def instance() -> smoothed.SmoothedInstance:
    return smoothed.smoothed_instance(SAMPLING, 0.5, LAWS)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def gamma() -> np.ndarray:
    return np.array([0.5, 0.1, 0.1, 0.5])


MAJORITY: dict[str, Callable[[], Arguments]] = {
    "BetaPrior": lambda: {"a": 1.0, "b": 2.0},
    "CommonPrior": lambda: {"base": majority.UniformPrior()},
    "CornerOracle": lambda: {"setting": SETTING, "cuts": 3, "partial": False},
    "GammaProver": lambda: {"setting": SETTING},
    "MajoritySetting": lambda: {
        **{"mechanisms": 3, "epsilon": 0.1, "allowance": 1.0},
        **{"mechanism_delta": 0.0, "delta": 0.0, "groups": ()},
    },
    "PointPrior": lambda: {"p": (0.2, 0.3, 0.4)},
    "SamplePrior": lambda: {"samples": np.full((2, 3), 0.4)},
    "Spending": lambda: {
        **{"setting": SETTING, "trained_once": True, "slack": 1e-6, "voters_per_record": 1},
    },
    "UniformPrior": lambda: {"intervals": ((0.0, 1.0),)},
    "VoterGroup": lambda: {"size": 3, "epsilon": 0.1, "mechanism_delta": 0.0},
    "WorstCase": lambda: {"mechanisms": 3, "prior": majority.UniformPrior()},
    "affordable_queries": lambda: {
        **{"per_query": Guarantee(0.1), "budget": Guarantee(1.0, 1e-5), "slack": 1e-6},
    },
    "assess": lambda: {
        **{"setting": SETTING, "gamma": gamma(), "prior": "uniform:0,1", "repair": True},
    },
    "check_full": lambda: {"setting": SETTING, "gamma": gamma()},
    "constant": lambda: {"setting": SETTING},
    "corner_rows": lambda: {"setting": SETTING, "multisets": [(("bc", 2), ("00", 1))]},
    "design": lambda: {
        **{"mechanisms": 3, "epsilon": 0.1, "allowance": 1.0, "mechanism_delta": 0.0},
        **{"delta": 0.0, "objective": "expected-error", "prior": "uniform:0,1"},
        **{"weights": None, "backend": "highs", "time_limit": 60.0},
    },
    "design_for": lambda: {
        **{"setting": SETTING, "objective": "expected-error", "prior": "uniform:0,1"},
        **{"weights": [0.5, 0.5], "backend": "highs", "time_limit": 60.0},
    },
    "double_subsampling": lambda: {"mechanisms": 5, "allowance": 2},
    "expected_error": lambda: {"gamma": gamma(), "prior": majority.UniformPrior()},
    "expected_error_weights": lambda: {"mechanisms": 3, "prior": majority.UniformPrior()},
    "full_size": lambda: {"setting": SETTING},
    "gamma_problem": lambda: {"setting": SETTING, "weights": [0.5, 0.5]},
    "parse_prior": lambda: {"text": "uniform:0,1"},
    "reduced_size": lambda: {"setting": SETTING},
    "sampled_error": lambda: {
        **{"setting": SETTING, "gamma": gamma(), "prior": majority.UniformPrior()},
        **{"rng": rng(), "draws": 10},
    },
    "sampled_margins": lambda: {
        **{"mechanisms": 3, "prior": majority.UniformPrior(), "rng": rng(), "draws": 10},
    },
    "subsampling": lambda: {"mechanisms": 5, "size": 3},
    "surrogate_weights": lambda: {"mechanisms": 3, "prior": majority.UniformPrior()},
    "vote": lambda: {
        **{"votes": [[1, 1, 0]], "trained_once": False, "epsilon": 0.1, "allowance": 1.0},
        **{"mechanism_delta": 0.0, "delta": 0.0, "objective": "expected-error"},
        **{"prior": "uniform:0,1", "voters_per_record": 1, "slack": 1e-6, "answered": 0},
        **{"budget": Guarantee(5.0, 0.1), "design": None},
    },
    "worst_case_problem": lambda: {"setting": SETTING, "prior": majority.UniformPrior()},
}

ROO_CASES: dict[str, Callable[[], Arguments]] = {
    "LaplaceProjection": lambda: {"setting": ROO},
    "RooSetting": lambda: {"records": 5, "letters": 2, "epsilon": 1.0},
    "ds_roo_binomial_bound": lambda: {"sampler": min_count(), "least_probability": 0.3},
    "ds_roo_bound": lambda: {"sampler": min_count(), "least_probability": 0.3},
    "ds_roo_rate": lambda: {"setting": ROO, "least_probability": 0.3},
    "ds_roo_records": lambda: {
        **{"accuracy": 0.3, "letters": 2, "epsilon": 1.0, "least_probability": 0.3},
        "rule": "exact",
    },
    "exact_problem": lambda: {"setting": ROO},
    "expected_output": lambda: {"sampler": min_count(), "distribution": [0.5, 0.5]},
    "from_weights": lambda: {"setting": ROO, "rule": "exact", "weights": min_count().weights},
    "journal_problem": lambda: {"setting": ROO},
    "laplace_bound": lambda: {"setting": ROO},
    "laplace_projection": lambda: {"records": 5, "letters": 2, "epsilon": 1.0},
    "lower_bound": lambda: {"setting": ROO},
    "lower_bound_records": lambda: {"accuracy": 0.3, "letters": 2, "epsilon": 1.0},
    "min_count": lambda: {"records": 5, "letters": 2, "epsilon": 1.0, "rule": "exact"},
    "moves": lambda: {"setting": ROO, "minimum": 1},
    "optimal_sampler": lambda: {
        **{"records": 3, "letters": 2, "epsilon": 1.0, "objective": "worst-case"},
        **{"distribution": None, "prior": 1.0, "backend": "highs", "time_limit": 60.0},
    },
    "project_to_simplex": lambda: {"points": [[0.5, 0.7]]},
    "records_needed": lambda: {"method": "roo", "accuracy": 0.3, "letters": 2, "epsilon": 1.0},
    "roo_bound": lambda: {"setting": ROO},
    "rule_weights": lambda: {"setting": ROO, "rule": "exact"},
    "smooth_floor": lambda: {"records": 5, "letters": 2, "epsilon": 1.0, "rate": None},
    "smooth_floor_binomial_bound": lambda: {
        **{"sampler": roo.smooth_floor(5, 2, 1.0), "least_probability": 0.3},
    },
    "subrr": lambda: {"records": 5, "letters": 2, "epsilon": 1.0, "amplification": "published"},
    "subrr_bound": lambda: {"setting": ROO},
    "tally": lambda: {"data": ["a", "b"], "alphabet": ["a", "b"]},
    "tally_file": lambda: {"path": "missing.csv", "column": "x", "alphabet": ["a", "b"]},
    "worst_case_tv": lambda: {"sampler": min_count()},
}

PUBLIC_PRIOR: dict[str, Callable[[], Arguments]] = {
    "diagonal_bounds": lambda: {"prior": PRIOR, "epsilon": 1.0},
    "draw_own_letter": lambda: {"counts": [1, 2], "size": 2},
    "drop_zeros": lambda: {"masses": [0.5, 0.0, 0.5], "letters": ["a", "b", "c"]},
    "leximin_kernel": lambda: {"prior": PRIOR, "epsilon": 1.0, "letters": ["a", "b", "c"]},
    "leximin_values": lambda: {"prior": PRIOR, "epsilon": 1.0, "backend": "highs"},
    "minimax_kernel": lambda: {"prior": PRIOR, "epsilon": 1.0, "letters": ["a", "b", "c"]},
    "minimax_utility": lambda: {
        **{"prior": PRIOR, "epsilon": 1.0, "divergence": "chi-square", "at_zero": None},
    },
    "mollifier_problem": lambda: {"prior": PRIOR, "law": [1.0, 0.0, 0.0], "epsilon": 1.0},
    "mollifier_tv": lambda: {"prior": PRIOR, "laws": [[1.0, 0.0, 0.0]], "epsilon": 1.0},
    "mollify": lambda: {"prior": PRIOR, "laws": [[1.0, 0.0, 0.0]], "epsilon": 1.0},
    "point_mass_divergence": lambda: {"kept": 0.5, "divergence": "tv", "at_zero": None},
    "population_kernel": lambda: {
        **{"prior": PRIOR, "epsilon": 1.0, "users": [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]},
        **{"weights": [1.0, 2.0], "slack": 0.0, "objective": "tv", "backend": "highs"},
        "time_limit": 60.0,
    },
    "public_prior": lambda: {"masses": PRIOR, "letters": ["a", "b", "c"]},
    "smooth_prior": lambda: {"masses": PRIOR, "weight": 0.1, "letters": ["a", "b", "c"]},
    "tv_problem": lambda: {"prior": PRIOR, "epsilon": 1.0, "formulation": "shifted"},
    "kernel_of": lambda: {
        **{"solution": solve(public_prior.tv_problem(PRIOR, 1.0)), "epsilon": 1.0},
    },
}

KERNEL: dict[str, Callable[[], Arguments]] = {
    "KernelSetting": lambda: {
        **{"loss": LOSS, "epsilon": 1.0, "delta": 0.0, "graph": "complete", "shape": None},
        **{"prior": [0.5, 0.5], "objective": "bayes", "sense": "minimise", "invariant": None},
    },
    "design_of": lambda: {
        **dict(zip(("setting", "problem", "solution"), kernel_program(), strict=True)),
    },
    "directed_pairs": lambda: {"graph": "path", "inputs": 3, "shape": None},
    "kernel_of": lambda: dict(zip(("problem", "solution"), kernel_program()[1:], strict=True)),
    "kernel_problem": lambda: {
        **{"setting": kernel_program()[0], "formulation": "auto", "rows": None},
    },
    "optimal_kernel": lambda: {
        **{"loss": LOSS, "epsilon": 1.0, "delta": 0.1, "graph": "complete", "shape": None},
        **{"prior": [0.5, 0.5], "objective": "bayes", "sense": "minimise", "invariant": None},
        **{"formulation": "auto", "rows": None, "backend": "highs", "time_limit": 60.0},
    },
    "solve_kernel": lambda: {
        **dict(zip(("setting", "problem"), kernel_program()[:2], strict=True)),
        **{"backend": "highs", "time_limit": 60.0},
    },
    "over_kernel": lambda: {"problem": kernel_program()[1], "matrix": [[1.0, 1.0, 0.0, 0.0]]},
}

GNMAX: dict[str, Callable[[], Arguments]] = {
    "GNMax": lambda: {"sigma": 2.0, "classes": 2},
    "calibrate_gnmax": lambda: {"guarantee": Guarantee(1.0, 1e-5), "method": "rdp", "voters": None},
    "data_dependent_rdp": lambda: {"counts": [9, 2], "sigma": 2.0, "order": 2.0},
    "GNMaxLabel": lambda: {"voters": 5, "sigma": 2.0, "delta": 0.01},
    "gnmax_concentrated": lambda: {"sigma": 2.0},
    "label_epsilon": lambda: {"voters": 11, "sigma": 2.0, "delta": 0.0},
    "variance_at_order": lambda: {"guarantee": Guarantee(1.0, 1e-5), "orders": [13.0, 30.0]},
}

SMOOTHED: dict[str, Callable[[], Arguments]] = {
    "KernelMechanism": lambda: {
        **{"records": 1, "categories": 2, "kernel": np.eye(2), "name": "kernel"},
    },
    "NoisyHistogram": lambda: {"records": 4, "drawn": 3, "epsilon": 1.0, "categories": 2},
    "QuantisedGradient": lambda: {
        **{"mean": 0.1, "deviation": 0.2, "family": "gaussian", "bits": 8},
    },
    "SamplingAverage": lambda: {"records": 4, "drawn": 3, "values": [0, 1]},
    "SamplingHistogram": lambda: {
        **{"records": 4, "drawn": 3, "categories": 2, "replacement": False},
    },
    "adversary_problem": lambda: {"instance": instance()},
    "adversary_utility": lambda: {
        **{"mechanism": SAMPLING, "threshold": 0.6, "histogram": [2, 2], "reading": "pairs"},
    },
    "average_log_delta": lambda: {"records": 4, "drawn": 3},
    "batch_law": lambda: {"values": [1, 2, 3, 4], "drawn": 2, "rounded": False},
    "best_test_problem": lambda: {"p": [0.5, 0.5], "q": [0.25, 0.75], "epsilon": 0.5},
    "candidates_utility": lambda: {"laws": [[0.5, 0.5], [0.25, 0.75]], "threshold": 0.6},
    "compose": lambda: {"first": SAMPLING, "second": SAMPLING},
    "distribution_reduction": lambda: {"distributions": [[0.5, 0.5], [0.25, 0.75]]},
    "distributional_delta": lambda: {
        **{"mechanism": SAMPLING, "epsilon": 0.5, "distributions": LAWS, "backend": "highs"},
    },
    "expected_delta": lambda: {
        **{"mechanism": SAMPLING, "epsilon": 0.5, "distributions": LAWS, "composition": [3, 1]},
    },
    "excess_problem": lambda: {"p": [0.5, 0.5], "q": [0.25, 0.75], "epsilon": 0.5},
    "general_epsilon": lambda: {"mechanism": SAMPLING, "histogram": [2, 2]},
    "histograms": lambda: {"records": 4, "categories": 2},
    "hull_vertices": lambda: {"distributions": [[0.5, 0.5], [0.25, 0.75]]},
    "log_exposure": lambda: {"mechanism": SAMPLING},
    "log_lower_bound": lambda: {"mechanism": SAMPLING, "distributions": LAWS},
    "log_upper_bound": lambda: {"mechanism": SAMPLING, "epsilon": 2.0, "distributions": LAWS},
    "monte_carlo_delta": lambda: {
        **{"values": [1, 2, 3, 4], "drawn": 2, "epsilon": 0.5, "draws": 10, "rng": rng()},
        **{"lowest": 0, "highest": 5, "rounded": True},
    },
    "Expected": lambda: {
        **{"records": 4, "drawn": 3, "epsilon": 0.5, "distributions": LAWS},
        **{"composition": [3, 1], "replacement": False},
    },
    "NoisyEpsilon": lambda: {"records": 4, "drawn": 3, "epsilon": 1.0, "categories": 2},
    "Profile": lambda: {"counts": [2, 2], "drawn": 3, "epsilon": 0.5, "replacement": False},
    "SgdStep": lambda: {
        **{"values": [1, 2, 3, 4], "drawn": 2, "epsilons": [0.5, 1.0]},
        **{"lowest": 0, "highest": 5, "rounded": True, "neighbours": "all"},
    },
    "Smoothed": lambda: {
        **{"records": 4, "lost_rate": 0.25, "epsilon": 0.5, "distributions": LAWS},
        "replacement": False,
    },
    "read_mechanism": lambda: {"given": {"mechanism": "noisy-histogram", **NOISY}},
    "noisy_guarantee": lambda: {"mechanism": smoothed.NoisyHistogram(4, 3, 1.0)},
    "post_process": lambda: {"mechanism": SAMPLING, "mapping": [0, 0, 1, 1]},
    "pre_process": lambda: {"mechanism": SAMPLING, "mapping": [0, 1]},
    "privacy_profile": lambda: {"mechanism": SAMPLING, "epsilon": 0.5, "histogram": [2, 2]},
    "published_log_bound": lambda: {"mechanism": SAMPLING, "epsilon": 2.0, "distributions": LAWS},
    "push_forward": lambda: {
        **{"distributions": [[0.5, 0.5]], "mapping": [1, 0], "categories": 2},
    },
    "read_adversary": lambda: {
        **{"instance": instance(), "solution": solve(smoothed.smoothed_problem(instance()))},
    },
    "sample_database": lambda: {
        "gradients": [smoothed.QuantisedGradient(0.1, 0.2)],
        **{"composition": [3], "rng": rng()},
    },
    "sgd_log_profile": lambda: {
        **{"values": [1, 2, 3, 4], "drawn": 2, "epsilons": [0.5, 1.0]},
        **{"lowest": 0, "highest": 5, "rounded": True},
    },
    "sgd_profile": lambda: {
        **{"values": [1, 2, 3, 4], "drawn": 2, "epsilons": [0.5, 1.0]},
        **{"lowest": 0, "highest": 5, "rounded": True, "neighbours": "all"},
    },
    "smoothed_delta": lambda: {"mechanism": SAMPLING, "epsilon": 0.5, "distributions": LAWS},
    "smoothed_epsilon": lambda: {
        **{"mechanism": SAMPLING, "delta": 0.1, "distributions": LAWS, "tolerance": 1e-6},
    },
    "smoothed_instance": lambda: {"mechanism": SAMPLING, "epsilon": 0.5, "distributions": LAWS},
    "smoothed_problem": lambda: {"instance": instance()},
    "solve_smoothed": lambda: {
        **{"mechanism": SAMPLING, "epsilon": 0.5, "distributions": LAWS, "backend": "highs"},
    },
    "worst_case_delta": lambda: {"mechanism": SAMPLING, "epsilon": 0.5},
}

PRIVACY: dict[str, Callable[[], Arguments]] = {
    "ConcentratedGuarantee": lambda: {"rho": 0.1},
    "Guarantee": lambda: {"epsilon": 1.0, "delta": 0.1},
    "audit_epsilon": lambda: {
        **{"first": [0, 1, 1], "second": [0, 0, 1], "outputs": 2, "delta": 0.0},
        "confidence": 0.9,
    },
    "certify_kernel": lambda: {
        **{"weights": [[5, 3], [3, 5]], "bits": 3, "guarantee": Guarantee(1.0)},
        **{"pairs": None, "ratio": None},
    },
    "column_minimum_rows": lambda: {"inputs": 2, "outputs": 2, "epsilon": 1.0},
    "complete_graph": lambda: {"inputs": 3},
    "concentrated_composition": lambda: {"first": privacy.ConcentratedGuarantee(0.1)},
    "convert_renyi": lambda: {
        **{"curve": lambda order: 0.1 * order, "delta": 1e-5, "conversion": "classical"},
    },
    "exp_lower": lambda: {"exponent": 1.0, "bits": 64},
    "exp_upper": lambda: {"exponent": 1.0, "bits": 64},
    "gaussian_concentrated": lambda: {"sigma": 2.0, "sensitivity": 1.0},
    "gaussian_delta": lambda: {"epsilon": 1.0, "sigma": 2.0, "sensitivity": 1.0},
    "gaussian_epsilon": lambda: {"delta": 1e-5, "sigma": 2.0, "sensitivity": 1.0},
    "gaussian_sigma": lambda: {"guarantee": Guarantee(1.0, 1e-5), "sensitivity": 1.0},
    "general_composition": lambda: {"guarantee": Guarantee(0.1, 1e-6), "folds": 3, "slack": 1e-6},
    "hockey_stick_rows": lambda: {
        **{"pairs": [[0, 1], [1, 0]], "inputs": 2, "outputs": 2, "epsilon": 1.0, "delta": 0.1},
    },
    "quantise_kernel": lambda: {
        **{"kernel": [[0.6, 0.4], [0.4, 0.6]], "guarantee": Guarantee(1.0), "pairs": None},
        **{"row": [0.5, 0.5], "tolerance": 1e-7, "ratio": None},
    },
    "raise_sequence": lambda: {
        **{"values": [0.5, 0.25], "lower": [(Fraction(1, 2), Fraction(0))] * 2, "bits": 16},
    },
    "ratio_rows": lambda: {
        **{"pairs": [[0, 1], [1, 0]], "inputs": 2, "outputs": 2, "epsilon": 1.0},
    },
    "renyi_epsilon": lambda: {
        **{"order": 2.0, "divergence": 0.1, "delta": 1e-5, "conversion": "classical"},
    },
    "shrink_to_budget": lambda: {"worst": Fraction(3, 2), "budget": Fraction(1)},
    "simple_composition": lambda: {"guarantee": Guarantee(0.1, 1e-6), "folds": 3},
    "stochastic_rows": lambda: {"inputs": 2, "outputs": 2},
}


def _problem() -> Problem:
    problem = Problem()
    problem.add_variables("x", 2, lower=0.0, upper=1.0)
    problem.add_rows("budget", [[1.0, 2.0]], upper=2.0)
    problem.maximise([1.0, 1.0])
    return problem


LP: dict[str, Callable[[], Arguments]] = {
    "make_rows": lambda: {"matrix": [[1.0, 2.0]], "lower": [0.0], "upper": 2.0},
    "solve": lambda: {
        **{"problem": _problem(), "backend": "highs", "tolerance": 1e-9, "time_limit": 60.0},
        **{"max_rounds": 10, "callback": None},
    },
    "Problem.add_variables": lambda: {"name": "y", "size": 2, "lower": 0.0, "upper": [1.0, 2.0]},
    "Problem.add_rows": lambda: {
        **{"name": "more", "matrix": [[1.0, 2.0]], "lower": 0.0, "upper": [1.0]},
    },
    "Problem.minimise": lambda: {"objective": [1.0, 2.0]},
    "Problem.maximise": lambda: {"objective": {"x": [1.0, 2.0]}},
}

PROB: dict[str, Callable[[], Arguments]] = {
    "batch_law": lambda: {"values": [1, 2, 3, 4], "drawn": 2, "rounded": True},
    "binomial_pmf": lambda: {"trials": 5, "p": 0.3},
    "chi_square": lambda: {"p": [0.5, 0.5], "q": [0.25, 0.75]},
    "f_divergence": lambda: {
        **{"p": [0.5, 0.5], "q": [0.25, 0.75], "f": lambda ratio: (ratio - 1.0) ** 2},
        **{"at_zero": 1.0, "slope_at_infinity": 1.0},
    },
    "hockey_stick": lambda: {"p": [0.5, 0.5], "q": [0.25, 0.75], "epsilon": 0.5},
    "hull_vertices": lambda: {"distributions": LAWS},
    "hypergeometric_pmf": lambda: {"population": 9, "successes": 4, "draws": 3},
    "kl_divergence": lambda: {"p": [0.5, 0.5], "q": [0.25, 0.75]},
    "poisson_binomial_pmf": lambda: {"p": [0.1, 0.5]},
    "total_variation": lambda: {"p": [0.5, 0.5], "q": [0.25, 0.75]},
}

CASES: dict[str, dict[str, Callable[[], Arguments]]] = {
    "majority": MAJORITY,
    "roo": ROO_CASES,
    "public_prior": PUBLIC_PRIOR,
    "kernel": KERNEL,
    "gnmax": GNMAX,
    "smoothed": SMOOTHED,
    "privacy": PRIVACY,
    "lp": LP,
    "prob": PROB,
}


@cache
def exact_kernel() -> privacy.ExactKernel:
    return privacy.quantise_kernel([[0.6, 0.4], [0.4, 0.6]], Guarantee(1.0))


@cache
def sampling_kernel() -> public_prior.PublicPriorKernel:
    return public_prior.minimax_kernel(PRIOR, 1.0)


# What users call on results: object, name of the method, arguments.
METHODS: dict[str, Callable[[], tuple[object, Arguments]]] = {
    "design.release": lambda: (design(), {"votes": [1, 0, 1]}),
    "design.simulate": lambda: (design(), {"votes": [1, 0, 1], "rng": rng()}),
    "min_count.release": lambda: (min_count(), {"counts": [3, 2]}),
    "min_count.output_distribution": lambda: (min_count(), {"counts": [3, 2]}),
    "exact_kernel.release": lambda: (exact_kernel(), {"inputs": [0, 1]}),
    "exact_kernel.simulate": lambda: (exact_kernel(), {"inputs": 0, "rng": rng()}),
    "sampling_kernel.release": lambda: (sampling_kernel(), {"own": [0, 2]}),
    "sampling_kernel.release_from": lambda: (sampling_kernel(), {"counts": [1, 2, 3]}),
    "GNMax.output_distribution": lambda: (gnmax.GNMax(2.0), {"counts": [3, 1]}),
    "Tally.of_counts": lambda: (roo.Tally, {"counts": [3, 2], "alphabet": ["a", "b"]}),
    "ExactKernel.make": lambda: (
        privacy.ExactKernel,
        {"weights": [[5, 3], [3, 5]], "bits": 3, "guarantee": Guarantee(1.0)},
    ),
    "MajoritySetting.of_groups": lambda: (
        majority.MajoritySetting,
        {"groups": [(3, 0.1), (2, 0.2)], "allowance": 1.0, "delta": 0.0},
    ),
    "SamplingHistogram.of_lost_rate": lambda: (
        smoothed.SamplingHistogram,
        {"records": 10, "lost_rate": 0.5},
    ),
}

NAMES = [f"{module}.{name}" for module, cases in CASES.items() for name in cases]


def called(name: str) -> tuple[Callable[..., object], Arguments]:
    """Return the callable of a name such as ``roo.min_count`` and arguments that it accepts."""
    module, _, item = name.partition(".")
    if name in METHODS:
        owner, arguments = METHODS[name]()
        return getattr(owner, item), arguments
    arguments = CASES[module][item]()
    if item.startswith("Problem."):
        return getattr(_problem(), item.removeprefix("Problem.")), arguments
    found = getattr(next(m for m in MODULES if m.__name__ == f"dpopt.{module}"), item)
    if item in ("compose", "concentrated_composition"):
        return lambda **kept: found(*kept.values()), arguments
    if item == "moves":
        return lambda **kept: list(found(**kept)), arguments
    return found, arguments

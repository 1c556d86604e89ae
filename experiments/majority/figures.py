"""Figures 2, 6, 7 and 8 of DaRRM: noise functions for several targets and their errors; Table 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

import dpopt
from dpopt import NotPrivateError, majority
from dpopt.majority.objectives import margins_at
from experiments.majority.figures_drawing import plot_with_axis
from experiments.majority.figures_verdicts import of_noise_functions
from experiments.majority.full_set import check_design, full_size
from experiments.majority.voters import Composed, Config, Target, Voters
from experiments.majority.words import pmf_words
from experiments.registry import Cell, Outcome, Table, experiment, track

_FULL = 100


def run(config: Voters) -> Outcome:
    """Design, prove and measure each noise function for each target."""
    designs: dict[tuple[float, str], dpopt.Design] = {}
    for target in track(config.targets):
        for curve in config.drawn:
            designs[target.at, curve] = _design(config, target, curve)
    means = _sampled(config, designs)
    errors: list[dict[str, Cell]] = []
    shapes: list[dict[str, Cell]] = []
    for key, design in designs.items():
        where: dict[str, Cell] = {"target": key[0], "curve": key[1]}
        errors.append({**where, **_record(design, means[key]), "prior": config.prior})
        for ones, value in enumerate(design.gamma):
            shapes.append({**where, "l": ones, "gamma": float(value)})
    tables = {
        "errors": Table.of(
            f"Error under {pmf_words(config.prior)}, p_1..p_K, and privacy of each noise function.",
            errors,
        ),
        "shapes": Table.of("The noise functions gamma(l), l = 0..K.", shapes),
    }
    return Outcome(tables, (), of_noise_functions(config, tables))


def _design(config: Voters, target: Target, curve: str) -> dpopt.Design:
    setting = config.setting(target)
    if curve in ("mean", "surrogate"):
        return dpopt.design(replace(setting, objective=curve))
    if curve == "subsampling":
        gamma = majority.subsampling(config.voters, target.sample)
    elif curve == "double":
        gamma = majority.double_subsampling(config.voters, target.sample)
    else:
        gamma = majority.constant(setting, target.tau, target.lam)
    return majority.assess(setting, gamma, repair=True)


def _sampled(
    config: Voters, designs: Mapping[tuple[float, str], dpopt.Design]
) -> dict[tuple[float, str], list[float]]:
    """Return, for each design, the mean error of each repeat; all share the same p."""
    rng = np.random.default_rng(config.seed)
    noise = np.array([1.0 - design.gamma[design.setting.middle :] for design in designs.values()])
    prior = majority.parse_prior(config.prior)
    means = []
    for _ in range(config.repeats):
        margins = margins_at(prior.sample((config.draws, config.voters), rng))
        means.append(np.abs(margins @ noise.T).mean(axis=0))
    return {key: [float(m[i]) for m in means] for i, key in enumerate(designs)}


def _record(design: dpopt.Design, means: list[float]) -> dict[str, Cell]:
    check, proof = check_design(design), design.certificate
    if proof is None:
        raise NotPrivateError(f"no proof at allowance {design.setting.allowance}.")
    return {
        "m": design.setting.allowance,
        "expected_error": design.expected_error,
        "sampled_error": float(np.mean(means)),
        "spread": float(np.std(means, ddof=1)),
        "target_epsilon": design.guarantee.epsilon,
        "spent_epsilon": None if check is None else check.epsilon,
        "delta": design.guarantee.delta,
        "worst_violation": max(0.0, -float(proof.slack)),
        "exact_slack": float(proof.slack),
        "constraints_proved": proof.constraints,
        "paper_constraints": full_size(design.setting),
        "lp_gap": design.gap,
    }


_PROGRAM = (
    r"\max_{\gamma} \sum_{l = (K+1)/2}^{K} c_l \, \gamma(l) \quad \text{subject to} \quad "
    r"0 \le \gamma(l) = \gamma(K - l) \le 1,",
    r"\mathbb{E}\, h(L) - e^{m \varepsilon} \, \mathbb{E}' h(L) \le e^{m \varepsilon} - 1 + "
    r"2 \delta \quad \text{for all voters at corners } (p_i, p_i') \text{ of lemma 5.1},",
    r"h(l) = \gamma(l) \text{ for } l > K/2, \quad h(l) = -\gamma(l) \text{ for } l < K/2, \quad "
    r"\Pr[\text{output } 1 \mid L = l] = \frac{1 + h(l)}{2},",
    r"\text{ours: } c_l = \frac{1}{2} \mathbb{E}_p \left[ \mathrm{sign} \left( \sum_i p_i - "
    r"\frac{K}{2} \right) \left( \alpha_l(p) - \alpha_{K-l}(p) \right) \right], \quad "
    r"\text{the paper's: } c_l = \frac{1}{2} \mathbb{E}_{p \sim U[1/2, 1]^K} \left[ \alpha_l(p) - "
    r"\alpha_{K-l}(p) \right],",
    r"\alpha_l(p) = \Pr[L = l], \quad \text{error}(p) = \left| \sum_{l = (K+1)/2}^{K} "
    r"\frac{\alpha_l(p) - \alpha_{K-l}(p)}{2} \left( 1 - \gamma(l) \right) \right|.",
)
_SIMPLE = r"\delta = 1 - (1 - \Delta)^m."
_GENERAL = (
    r"m \varepsilon = \min \left\{ M \varepsilon, \; M \varepsilon \tanh \frac{\varepsilon}{2} + "
    r"\varepsilon \sqrt{2 M \log \left( e + \frac{\sqrt{M} \varepsilon}{\delta'} \right)}, \; "
    r"M \varepsilon \tanh \frac{\varepsilon}{2} + \varepsilon \sqrt{2 M \log \frac{1}{\delta'}} "
    r"\right\}, \quad \delta = 1 - (1 - \Delta)^M (1 - \delta')."
)
_ALLOWANCE, _SAMPLED = "privacy allowance $m$", "subsampled voters $M$"


for _figure, _config, _summary, _published in (
    (
        2,
        Config(voters=11, epsilon=0.1, voter_delta=1e-5, allowance=(1.0, 3.0, 5.0, 7.0)),
        "Noise functions at K = 11, epsilon = 0.1, Delta = 1e-5, and their errors. The paper's "
        "curves, and one more: the noise function that minimises the error that is plotted.",
        None,
    ),
    (
        6,
        Composed(
            voters=35,
            epsilon=0.1,
            voter_delta=1e-5,
            samples=(10, 13, 15, 20),
            slack=0.1,
        ),
        "The target is the privacy cost of the majority of M of K = 35 voters by general "
        "composition (delta' = 0.1), epsilon = 0.1, Delta = 1e-5.",
        "Table 3: m = 6.4521, 7.5742, 8.2708, 9.8823; tau = 14.0328; lambda = 0.1003; "
        "delta = 0.1001, 0.1001, 0.1001, 0.1002.",
    ),
    (
        7,
        Config(
            voters=11,
            epsilon=0.1,
            voter_delta=0.0,
            allowance=(1.0, 3.0, 5.0, 7.0, 9.0, 11.0),
        ),
        "Pure differential privacy, K = 11: also with double subsampling.",
        None,
    ),
    (
        8,
        Config(
            voters=101,
            epsilon=0.1,
            voter_delta=0.0,
            allowance=(10.0, 20.0, 30.0, 40.0, 60.0, 80.0),
        ),
        "Pure differential privacy, K = 101.",
        None,
    ),
):
    _composed = isinstance(_config, Composed)
    experiment(
        f"majority-figure-{_figure}",
        "DaRRM",
        f"Figure {_figure}" + (" and Table 3" if _figure == 6 else ""),
        _summary,
        published=_published,
        config=replace(_config, repeats=_FULL),
        quick=_config,
        effort=("draws", "repeats", "seed"),
        mathematics=(*_PROGRAM, _GENERAL if _composed else _SIMPLE),
    )(run).figure(partial(plot_with_axis, _SAMPLED if _composed else _ALLOWANCE))

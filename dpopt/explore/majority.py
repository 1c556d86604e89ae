"""The tab of the private majority vote: gamma, its error and what it spends, beside baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dpopt import _checks, majority
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt.explore.view import Picture, Table, View, drawing, number, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt._types import Vector

MOST_VOTERS = 41
MOST_VOTERS_DELTA = 21
"""Voters up to which the page solves again in about a second, with Delta = 0 and above."""

_OBJECTIVES = ("expected-error", "worst-case")
_MOST_ENUMERATED = 50_000
_SECONDS = 5.0
_LARGEST_BETA = 100.0
_LARGEST_TARGET = 10.0
_COMMON = np.linspace(0.5, 1.0, 51)

_CODE = """\
from dpopt import majority

setting = majority.MajoritySetting(
    mechanisms={mechanisms}, epsilon={epsilon}, allowance={allowance},
    mechanism_delta={mechanism_delta}, delta={delta},
)
prior = {prior!r}
ours = majority.design_for(setting, objective={objective!r}, prior=prior)
paper = majority.design_for(setting, objective="surrogate", prior=prior)
gammas = {{
{baselines}}}
others = {{
    name: majority.assess(setting, gamma, prior=prior, repair=True)
    for name, gamma in gammas.items()
}}
for name, design in {{"ours": ours, "the paper's": paper, **others}}.items():
    print(name, design.expected_error, design.verdict, design.shrink)
axes = ours.plot()"""


def majority_view(
    mechanisms: int,
    allowance: float,
    epsilon: float,
    mechanism_delta: float = 0.0,
    delta: float = 0.0,
    prior: str = "uniform:0,1",
    objective: str = "expected-error",
) -> View:
    """Return gamma for K voters, beside the paper's gamma, subsampling, randomised response.

    A baseline that is not private is scaled down until it is, and the table says by how much: by
    a rounding where it spends all of m epsilon, by more where its own delta exceeds the target's.

    Args:
        mechanisms: K, odd, at most 41; at most 21 for Delta > 0.
        allowance: m in (0, K], with m epsilon at most 10; subsampling (of m voters, rounded down)
            is left out for m below 1.
        epsilon: of each voter, above 0, in nats.
        mechanism_delta: Delta of each voter, in [0, 1).
        delta: of the majority, at least Delta.
        prior: see `dpopt.majority.parse_prior`.
        objective: "expected-error" or "worst-case".

    Raises:
        ParameterError: for a parameter out of range.
        SolverError: if the solver found no answer within 5 seconds.
    """
    _checks.choice("objective", objective, _OBJECTIVES)
    setting = majority.MajoritySetting(mechanisms, epsilon, allowance, mechanism_delta, delta)
    prior = prior.strip()
    _require_quick(setting, prior)
    baselines = _baselines(setting)
    designs = {
        "ours": _solved(setting, objective, prior),
        "the paper's": _solved(setting, "surrogate", prior),
    } | {
        name: majority.assess(setting, gamma, prior=prior, repair=True)
        for name, (_, gamma) in baselines.items()
    }
    ours = designs["ours"]
    return View(
        verdict=_verdict(ours),
        private=ours.private,
        facts=_facts(ours),
        tables=(_comparison(designs), _gammas(designs)),
        pictures=(_drawn(designs),),
        code=_CODE.format(
            **setting.to_dict(),
            prior=prior,
            objective=objective,
            baselines="".join(f'    "{name}": {line},\n' for name, (line, _) in baselines.items()),
        ),
    )


def _require_quick(setting: majority.MajoritySetting, prior: str) -> None:
    if setting.guarantee.epsilon > _LARGEST_TARGET:
        raise ParameterError(
            f"allowance * epsilon is {digits(setting.guarantee.epsilon)}; this page solves up to "
            f"{_LARGEST_TARGET:g}. dpopt.majority.design solves more."
        )
    law = majority.parse_prior(prior)
    sampled = isinstance(law, majority.BetaPrior) and (
        min(law.a, law.b) < 1.0 or max(law.a, law.b) > _LARGEST_BETA
    )
    if sampled:
        raise ParameterError(
            f"prior is {prior}; this page takes beta:A,B with A and B in [1, {_LARGEST_BETA:g}]. "
            "dpopt.majority.design averages the others over samples, in some seconds."
        )
    shift = setting.mechanism_delta
    limit = MOST_VOTERS_DELTA if shift > 0.0 else MOST_VOTERS
    if setting.mechanisms > limit:
        raise ParameterError(
            f"mechanisms is {setting.mechanisms} with Delta = {shift:g}; this page solves up to "
            f"{limit} voters there. dpopt.majority.design solves more."
        )


def _solved(
    setting: majority.MajoritySetting, objective: str, prior: str
) -> majority.MajorityDesign:
    return majority.design_for(setting, objective=objective, prior=prior, time_limit=_SECONDS)


def _baselines(setting: majority.MajoritySetting) -> dict[str, tuple[str, Vector]]:
    """Return by name a line of Python and the gamma that it computes."""
    k, drawn = setting.mechanisms, int(setting.allowance)
    response = ("majority.constant(setting)", majority.constant(setting))
    if drawn < 1:
        return {"randomised response": response}
    line = f"majority.subsampling(setting.mechanisms, {drawn})"
    return {
        "subsampling": (line, majority.subsampling(k, drawn)),
        "randomised response": response,
    }


def _verdict(design: majority.MajorityDesign) -> str:
    target, proof = design.guarantee, design.certificate
    what = f"({target.epsilon:.6g}, {target.delta:g})-DP"
    if proof is None:
        return f"The majority of {design.setting.mechanisms} voters is not proved {what}."
    return (
        f"The majority of {design.setting.mechanisms} voters is {what}: "
        f"{proof.constraints:,} inequalities decided in integers."
    )


def _spent(design: majority.MajorityDesign) -> str:
    """Return the least epsilon at the setting's delta, where the paper's corners are few enough."""
    if majority.full_size(design.setting) > _MOST_ENUMERATED or design.check is None:
        return "not enumerated"
    return number(design.check.epsilon)


def _facts(design: majority.MajorityDesign) -> dict[str, str]:
    proof = design.certificate
    return {
        "expected error": number(design.expected_error),
        "epsilon allowed": number(design.guarantee.epsilon),
        "epsilon spent": _spent(design),
        "slack of the proof": number(None if proof is None else float(proof.slack), 3),
        "objective": number(design.value),
        "gap to the dual bound": number(design.gap, 3),
    }


def _comparison(designs: Mapping[str, majority.MajorityDesign]) -> Table:
    return Table(
        ("noise function", "expected error", "epsilon spent", "verdict", "scaled by"),
        tuple(
            (
                name,
                number(design.expected_error),
                _spent(design),
                design.verdict,
                number(design.shrink),
            )
            for name, design in designs.items()
        ),
    )


def _gammas(designs: Mapping[str, majority.MajorityDesign]) -> Table:
    """Return every gamma from the middle up; below it is the mirror image."""
    first = designs["ours"].setting
    return Table(
        ("ones l", *designs),
        tuple(
            (str(ones), *(number(design.gamma[ones]) for design in designs.values()))
            for ones in range(first.middle, first.mechanisms + 1)
        ),
    )


def _drawn(designs: Mapping[str, majority.MajorityDesign]) -> Picture:
    with drawing(9.0, 3.4) as figure:
        left, right = figure.subplots(1, 2)
        figure.subplots_adjust(left=0.07, right=0.98, top=0.97, bottom=0.16, wspace=0.22)
        for name, design in designs.items():
            design.plot(left, label=name)
        _draw_errors(right, designs)
        setting = designs["ours"].setting
        left.set_xlim(setting.middle - 0.3, setting.mechanisms + 0.3)
        left.locator_params(axis="x", integer=True)
        left.legend(fontsize=8, frameon=False)
        return picture(
            figure,
            "Left: gamma for each number of ones that is a majority. Right: the error if every "
            "voter says 1 with the same probability p.",
        )


def _draw_errors(axes: Axes, designs: Mapping[str, majority.MajorityDesign]) -> None:
    points = [majority.PointPrior((float(p),)) for p in _COMMON]
    for name, design in designs.items():
        errors = [majority.expected_error(design.gamma, point).value for point in points]
        axes.plot(_COMMON, errors, label=name)
    axes.set_xlabel("$p$, the same for all voters")
    axes.set_ylabel("error")
    axes.set_ylim(bottom=0.0)

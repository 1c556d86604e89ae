"""``dpopt majority``: design a noise function."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpopt._errors import ParameterError
from dpopt._plot import require_matplotlib, save_figure
from dpopt.cli.output import show, to_json
from dpopt.cli.proved import audit_too, require_private, save_proved
from dpopt.cli.words import BACKENDS, MAJORITY_OBJECTIVES, PRIORS, Words
from dpopt.files import check_json_target, check_target, read_numbers, replacing

if TYPE_CHECKING:
    from dpopt.majority import MajorityDesign, MajoritySetting

_FIGURE_ENDINGS = (".png", ".pdf", ".svg")


@click.command()
@click.option("--mechanisms", type=int, help="Number of voters K, odd.")
@click.option("--epsilon", type=float, help="Epsilon of each voter, above 0.")
@click.option(
    "--group",
    "groups",
    multiple=True,
    help="SIZE,EPSILON[,DELTA]: voters of different privacy, instead of --mechanisms and "
    "--epsilon; give it once for each group. m then counts the largest epsilon.",
)
@click.option("--allowance", type=float, required=True, help="m: the majority may spend m epsilon.")
@click.option("--mechanism-delta", type=float, default=0.0, help="Delta of each voter.  [0]")
@click.option("--delta", type=float, default=0.0, help="Delta of the majority.  [0]")
@click.option(
    "--objective",
    type=Words(*MAJORITY_OBJECTIVES),
    default="expected-error",
    help="expected-error (default), surrogate (the paper's equation 3) or worst-case (over all p "
    "that the prior allows).",
)
@click.option(
    "--prior",
    type=Words(*PRIORS),
    default="uniform:0,1",
    help="Law of the voters' p: uniform:LOW,HIGH[,LOW,HIGH], beta:A,B, either with common- before "
    "it (one p for all), or point:P[,P].  [uniform:0,1]",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    help="Text file of (K + 1) / 2 numbers to maximise instead of an objective.",
)
@click.option(
    "--backend",
    type=Words(*BACKENDS),
    default="highs",
    help="highs (default), cvxpy or cvxpy:SOLVER, such as cvxpy:GUROBI.",
)
@click.option("--time-limit", type=float, help="Seconds for the solve.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw gamma to .png, .pdf or .svg.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the result as JSON.")
@audit_too
def majority(
    mechanisms: int | None,
    epsilon: float | None,
    groups: tuple[str, ...],
    allowance: float,
    mechanism_delta: float,
    delta: float,
    objective: str,
    prior: str,
    weights: Path | None,
    backend: str,
    time_limit: float | None,
    as_json: bool,
    plot: Path | None,
    save: Path | None,
    even_if_not_private: bool,
) -> None:
    """Design the noise function gamma of a private majority vote (DaRRM).

    Example: dpopt majority --mechanisms 11 --epsilon 0.1 --allowance 3
    """
    from dpopt.majority import design_for

    _check_targets(plot, save)
    start = time.perf_counter()
    result = design_for(
        _voters(mechanisms, epsilon, groups, allowance, mechanism_delta, delta),
        objective=objective,
        prior=prior,
        weights=None if weights is None else read_numbers(weights),
        backend=backend,
        time_limit=time_limit,
    )
    seconds = time.perf_counter() - start
    if plot is not None:
        with replacing(plot) as temporary:
            save_figure(result.plot(), temporary)
    save_proved(result, save, even_if_not_private)
    show(to_json({**result.to_dict(), "seconds": seconds}) if as_json else _text(result, seconds))
    require_private(result, save, even_if_not_private)


def _check_targets(plot: Path | None, save: Path | None) -> None:
    """Refuse files that cannot be written, before anything is solved."""
    if plot is not None and plot == save:
        raise ParameterError(f"plot and save are both {str(plot)!r}; they must differ.")
    if save is not None:
        check_json_target(save)
    if plot is None:
        return
    check_target(plot)
    if plot.suffix.lower() not in _FIGURE_ENDINGS:
        raise ParameterError(
            f"plot is {str(plot)!r}; its ending must be {', '.join(_FIGURE_ENDINGS)}."
        )
    require_matplotlib()


def _voters(
    mechanisms: int | None,
    epsilon: float | None,
    groups: tuple[str, ...],
    allowance: float,
    mechanism_delta: float,
    delta: float,
) -> MajoritySetting:
    """Return the setting of voters that are alike, or of groups of them."""
    from dpopt.majority import MajoritySetting

    if not groups:
        if mechanisms is None or epsilon is None:
            missing = "mechanisms" if mechanisms is None else "epsilon"
            raise ParameterError(f"{missing} is missing; give --mechanisms and --epsilon.")
        return MajoritySetting(mechanisms, epsilon, allowance, mechanism_delta, delta)
    if mechanisms is not None or epsilon is not None or mechanism_delta:
        raise ParameterError(
            "group is given; mechanisms, epsilon and mechanism-delta are those of the groups."
        )
    found = []
    for text in groups:
        try:
            found.append(tuple(float(part) for part in text.split(",")))
        except ValueError:
            raise ParameterError(
                f"group is {text!r}; it must have the form SIZE,EPSILON or SIZE,EPSILON,DELTA."
            ) from None
    return MajoritySetting.of_groups(found, allowance, delta)


def _of_voters(setting: MajoritySetting) -> str:
    """Return the voters in words."""
    parts = ", ".join(
        f"{group.size} x ({group.epsilon:g}, {group.mechanism_delta:g})-DP"
        for group in setting.voters
    )
    return f"DaRRM with K = {setting.mechanisms} voters, {parts}"


def _text(result: MajorityDesign, seconds: float) -> str:
    setting, record = result.setting, result.to_dict()
    violation = "UNVERIFIED" if result.priced else f"{result.worst_violation:.3g}"
    which = "full" if result.check else "reduced" if result.priced is None else "part of the"
    lines = [
        f"{_of_voters(setting)}; target ({result.guarantee.epsilon:g}, "
        f"{result.guarantee.delta:g})-DP",
        f"objective       {result.value:.12f}  ({result.objective}; at most {result.bound:.12f})",
        f"expected error  {result.expected_error:.6g}  under {result.prior} "
        f"({result.expected_error_method})",
        f"worst violation {violation}  over {record['constraints_checked']:,} "
        f"corner multisets ({which} set)",
        f"certificate     {result.certificate.arithmetic if result.certificate else 'none'}",
        f"seconds         {seconds:.3f}",
        "",
        "    l  gamma(l)",
    ]
    lines += [
        f"{ones:5d}  {result.gamma[ones]:.12f}"
        for ones in range(setting.middle, setting.mechanisms + 1)
    ]
    return "\n".join(lines)

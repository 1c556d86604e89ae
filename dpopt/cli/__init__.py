"""The command line: ``dpopt majority ...``. Exit 2: bad input; 3: no solution; 4: not private."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpopt import __version__
from dpopt._errors import InfeasibleError, NotPrivateError, ParameterError, SolverError
from dpopt._plot import save_figure
from dpopt.files import check_target, read_integer_rows, read_numbers, replacing

if TYPE_CHECKING:
    from dpopt.mechanisms.majority import MajorityDesign, MajoritySetting

_FIGURE_ENDINGS = (".png", ".pdf", ".svg")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpopt")
def cli() -> None:
    """Differentially private mechanisms, designed by linear programming."""


@cli.command()
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
    default="expected-error",
    help="expected-error (default), surrogate (the paper's equation 3) or worst-case (over all p "
    "that the prior allows).",
)
@click.option(
    "--prior",
    default="uniform:0,1",
    help="Law of the voters' p: uniform:LOW,HIGH[,LOW,HIGH], beta:A,B, either with common- before "
    "it (one p for all), or point:P[,P].  [uniform:0,1]",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    help="Text file of (K + 1) / 2 numbers to maximise instead of an objective.",
)
@click.option("--backend", default="highs", help="highs (default), cvxpy or cvxpy:SOLVER.")
@click.option("--time-limit", type=float, help="Seconds for the solve.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw gamma to .png, .pdf or .svg.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the result as JSON.")
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
) -> None:
    """Design the noise function gamma of a private majority vote (DaRRM).

    Example: dpopt majority --mechanisms 11 --epsilon 0.1 --allowance 3
    """
    from dpopt.mechanisms.majority import design_for

    if plot is not None and plot == save:
        raise ParameterError(f"plot and save are both {str(plot)!r}; they must differ.")
    for target in (plot, save):
        if target is not None:
            check_target(target)
    if plot is not None and plot.suffix.lower() not in _FIGURE_ENDINGS:
        raise ParameterError(
            f"plot is {str(plot)!r}; its ending must be {', '.join(_FIGURE_ENDINGS)}."
        )
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
    if save is not None:
        result.save(save)
    if as_json:
        click.echo(json.dumps({**result.to_dict(), "seconds": seconds}, allow_nan=False))
    else:
        _show_majority(result, seconds)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the certificate as JSON.")
def certify(file: Path, as_json: bool) -> None:
    """Certify a saved mechanism again, from its integers. Exit code 4 if it is not private.

    Example: dpopt certify gamma.json
    """
    from dpopt import load

    start = time.perf_counter()
    proof = load(file).certificate
    if proof is None:
        raise NotPrivateError(f"file {str(file)!r} holds a mechanism without a certificate.")
    seconds = time.perf_counter() - start
    if as_json:
        click.echo(json.dumps({"private": True, **proof.to_dict(), "seconds": seconds}))
        return
    lines = [
        f"({proof.guarantee.epsilon:g}, {proof.guarantee.delta:g})-DP: {proof.claim}",
        f"constraints  {proof.constraints:,}",
        f"worst slack  {float(proof.slack):.3g}",
        f"tightest     {proof.tightest}",
        f"arithmetic   {proof.arithmetic}; probabilities over 2^{proof.bits}",
        f"seconds      {seconds:.3f}",
    ]
    click.echo("\n".join(lines))


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--input",
    "text",
    required=True,
    help="Votes 1,0,1,... of one query (majority) or inputs (kernel); or a file, a query a line.",
)
def release(file: Path, text: str) -> None:
    """Release from a saved mechanism, once for each query, with the system's randomness.

    Example: dpopt release gamma.json --input 1,1,1,0,0
    """
    from dpopt import load
    from dpopt.mechanisms.majority import MajorityDesign

    queries = read_integer_rows(text)
    mechanism = load(file)
    if isinstance(mechanism, MajorityDesign):
        drawn = [mechanism.release(votes) for votes in queries]
    else:
        drawn = [mechanism.release(index) for row in queries for index in row]
    click.echo("\n".join(str(output) for output in drawn))


def _voters(
    mechanisms: int | None,
    epsilon: float | None,
    groups: tuple[str, ...],
    allowance: float,
    mechanism_delta: float,
    delta: float,
) -> MajoritySetting:
    """Return the setting of voters that are alike, or of groups of them."""
    from dpopt.mechanisms.majority import MajoritySetting

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


def _show_majority(result: MajorityDesign, seconds: float) -> None:
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
    click.echo("\n".join(lines))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = cli.main(args=arguments, prog_name="dpopt", standalone_mode=False)
    except click.ClickException as error:
        return _refuse(error.format_message(), 2)
    except ParameterError as error:
        return _refuse(str(error), 2)
    except (InfeasibleError, SolverError) as error:
        return _refuse(str(error), 3)
    except NotPrivateError as error:
        return _refuse(str(error), 4)
    except (click.Abort, KeyboardInterrupt):
        return _refuse("interrupted.", 130)
    return code if isinstance(code, int) else 0


def _refuse(message: str, code: int) -> int:
    click.echo(message, err=True)
    return code

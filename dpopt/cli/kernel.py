"""``dpopt kernel``: locally private sampling with a public prior."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpopt._errors import ParameterError
from dpopt._numbers import typed_rational
from dpopt.cli.output import show, show_draw, to_json
from dpopt.cli.words import KERNEL_OBJECTIVES, Words
from dpopt.files import check_json_target, read_numbers, read_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from dpopt.public_prior import PopulationKernel, SamplingKernel

_LARGEST_SHOWN, _LARGEST_LISTED = 200, 20


@click.group(invoke_without_command=True)
@click.option(
    "--prior",
    type=Words(files=True),
    help="Public prior q: a list 0.2,0.3,0.5 or a file of numbers.",
)
@click.option("--epsilon", type=float, help="Local privacy of a released letter, above 0.")
@click.option(
    "--objective",
    type=Words(*KERNEL_OBJECTIVES),
    default="minimax",
    help="minimax (default: Algorithm 1), leximin, or population (by linear program, for --users).",
)
@click.option(
    "--users",
    type=click.Path(path_type=Path),
    help="File with the law of one user in each line, for the objective population.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the kernel as JSON.")
@click.pass_context
def kernel(
    context: click.Context,
    prior: str | None,
    epsilon: float | None,
    objective: str,
    users: Path | None,
    as_json: bool,
    save: Path | None,
) -> None:
    """Design a kernel K that releases a letter of pK, epsilon-LDP and with qK = q.

    Example: dpopt kernel --prior 0.05,0.1,0.15,0.2,0.5 --epsilon 1
    """
    from dpopt import _checks

    if context.invoked_subcommand is not None:
        return
    if prior is None or epsilon is None:
        raise ParameterError(
            f"{'prior' if prior is None else 'epsilon'} is missing; give --prior and --epsilon."
        )
    _checks.choice("objective", objective, KERNEL_OBJECTIVES)
    if (objective == "population") != (users is not None):
        raise ParameterError("users is for the objective population, which needs it.")
    if save is not None:
        check_json_target(save)
    start = time.perf_counter()
    found = _designed(_numbers(prior), epsilon, objective, users)
    if save is not None:
        _save(found, save)
    record = _record(found, objective)
    record["seconds"] = time.perf_counter() - start
    show(to_json(record) if as_json else _text(record))


@kernel.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--distribution",
    type=click.Path(path_type=Path),
    required=True,
    help="File with the user's p: counts, decimals or fractions such as 1/3, in the prior's order.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the letter as JSON.")
def release(file: Path, distribution: Path, as_json: bool) -> None:
    """Release one private letter for a user with distribution p, from a saved kernel.

    Example: dpopt kernel release kernel.json --distribution mine.txt
    """
    import numpy as np

    from dpopt import load
    from dpopt.privacy import ExactKernel
    from dpopt.public_prior import SamplingKernel, draw_own_letter

    mechanism = load(file)
    words = read_text(distribution).replace(",", " ").split()
    try:
        p = np.array([typed_rational(word) for word in words], dtype=object)
    except ValueError:
        raise ParameterError(
            f"distribution is {str(distribution)!r}; it must hold counts, decimals or fractions."
        ) from None
    if isinstance(mechanism, SamplingKernel):
        letters: Sequence[object] = mechanism.prior.letters
        draw = partial(mechanism.release_from, p)
    elif isinstance(mechanism, ExactKernel):
        kernel, letters = mechanism, range(mechanism.outputs)
        draw = lambda: kernel.release(draw_own_letter(p, kernel.inputs))  # noqa: E731
    else:
        raise ParameterError(f"file is {str(file)!r}; it does not hold a kernel.")
    show_draw(lambda: [draw()], letters, mechanism.guarantee, as_json)


def _numbers(prior: str) -> npt.ArrayLike:
    """Return the numbers of a list, or of a file."""
    words = prior.replace(",", " ").split()
    try:
        return [float(word) for word in words]
    except ValueError:
        return read_numbers(Path(prior))


def _designed(
    prior: npt.ArrayLike, epsilon: float, objective: str, users: Path | None
) -> SamplingKernel | PopulationKernel:
    from dpopt.public_prior import leximin_kernel, minimax_kernel, population_kernel

    if users is None:
        return (leximin_kernel if objective == "leximin" else minimax_kernel)(prior, epsilon)
    rows = [line.replace(",", " ").split() for line in read_text(users).splitlines()]
    try:
        laws = [[float(word) for word in row] for row in rows if row]
    except ValueError:
        raise ParameterError(f"users is {str(users)!r}; it must hold numbers only.") from None
    if not laws or any(len(law) != len(laws[0]) for law in laws):
        raise ParameterError(
            f"users is {str(users)!r}; it must hold the law of one user in each line, all of the "
            "same length."
        )
    return population_kernel(prior, epsilon, laws)


def _save(found: SamplingKernel | PopulationKernel, path: Path) -> None:
    from dpopt.public_prior import SamplingKernel, save_kernel

    if isinstance(found, SamplingKernel):
        save_kernel(found, path)
    else:
        found.exact.save(path)


def _record(found: SamplingKernel | PopulationKernel, objective: str) -> dict[str, Any]:
    """Return what is printed; the kernel itself up to 200 letters."""
    import numpy as np

    from dpopt.public_prior import SamplingKernel

    if isinstance(found, SamplingKernel):
        n, diagonal, gamma = found.letters, found.diagonal, found.gamma_tv
        worst, ratio = found.worst_tv, found.exact.worst_ratio
        matrix = found.matrix() if n <= _LARGEST_SHOWN else None
    else:
        whole = found.matrix()
        n, diagonal, gamma = len(whole), np.diag(whole), found.gamma_tv
        worst, ratio = found.worst_tv, _worst_ratio(found.exact.weights)
        matrix = whole if n <= _LARGEST_SHOWN else None
    proof = found.certificate
    return {
        "letters": n,
        "epsilon": proof.guarantee.epsilon,
        "objective": objective,
        "gamma_tv": gamma,
        "worst_tv": worst,
        "diagonal": diagonal.tolist(),
        "kernel": None if matrix is None else matrix.tolist(),
        "worst_ratio": ratio,
        "drift": found.drift,
        "private": True,
        "certificate": proof.to_dict(),
    }


def _worst_ratio(weights: Sequence[Sequence[int]]) -> float:
    """Return the largest ratio of two entries of a column; of private ones, none or all are 0."""
    columns = [column for column in zip(*weights, strict=True) if max(column) > 0]
    return max(float(Fraction(max(column), min(column))) for column in columns)


def _text(record: dict[str, Any]) -> str:
    proof = record["certificate"]
    lines = [
        f"{record['objective']} kernel over {record['letters']} letters, {record['epsilon']:g}-LDP",
        f"Gamma_TV     {record['gamma_tv']:.12f}  (least possible largest total variation)",
        f"worst case   {record['worst_tv']:.12f}",
        f"worst ratio  {record['worst_ratio']:.12g}",
        f"qK - q       {record['drift']:.3g}  in total variation, by rounding",
        f"certificate  {proof['constraints']:,} constraints; {proof['arithmetic']}",
        f"seconds      {record['seconds']:.3f}",
        "",
        "letter  K_ii",
    ]
    shown = record["diagonal"][:_LARGEST_LISTED]
    lines += [f"{letter:6d}  {value:.12f}" for letter, value in enumerate(shown)]
    if record["letters"] > len(shown):
        lines.append(f"   ...  {record['letters'] - len(shown)} more")
    return "\n".join(lines)

"""``dpopt KIND``: the command of each kind, made from what its class says."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._figure import STYLES, context, save_figure
from dpopt._kinds import KINDS, Described, described
from dpopt.cli.output import show, to_json
from dpopt.cli.words import SOLVERS, Words, flag, flags, missing_option, option, with_flags
from dpopt.files import check_json_target, check_target, replacing

if TYPE_CHECKING:
    from dpopt.shape import Design

_FIGURE_ENDINGS = (".png", ".pdf", ".svg")
ROWS, _WIDTH = 40, 72
_NOTHING = " Nothing was saved; --even-if-not-private saves the audit, which releases nothing."


def command(kind: str) -> click.Command:
    """Return the command of a kind of the package, whose module is imported here."""
    from dpopt.shape import kind_of

    about = described(cast(Any, kind_of(kind)))
    short = flags(about.fields)
    own = []
    for field in about.fields:
        own.append(option(field))
        own += [flag(name, *said) for name, said in short.items() if said[0] == field.name]
    return click.Command(
        kind,
        params=[*own, *_shared()],
        callback=lambda **given: _run(about, with_flags(short, given)),
        help=_help(about),
        short_help=KINDS[kind][1],
    )


def _shared() -> list[click.Option]:
    """Return the options that every kind's command has."""
    path = click.Path(path_type=Path)
    return [
        click.Option(
            ["--backend"],
            type=Words(*SOLVERS),
            help="Solve the linear program with highs, cvxpy or cvxpy:SOLVER, such as "
            "cvxpy:GUROBI; otherwise the closed form is taken where there is one, else highs.",
        ),
        click.Option(["--time-limit"], type=float, help="Seconds for the solve."),
        click.Option(
            ["--stop-at-gap"],
            type=float,
            help="In [0, 1]: stop once value and bound are this near, as a share of the program's "
            "objective; the result states its gap. A closed form has nothing to stop.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON."),
        click.Option(["--all-rows"], is_flag=True, help=f"Print all rows, not the first {ROWS}."),
        click.Option(["--plot"], type=path, help="Draw the result to .png, .pdf or .svg."),
        click.Option(
            ["--style"],
            type=Words(*STYLES),
            default="plain",
            help=f"Size and fonts of the drawing: {', '.join(STYLES)}.  [plain]",
        ),
        click.Option(["--save"], type=path, help="Write the result as JSON."),
        click.Option(
            ["--proof"],
            is_flag=True,
            help="With --save X.json: write also X.proof.json, the proof of its bound, for dpopt "
            "verify.",
        ),
        click.Option(
            ["--even-if-not-private"],
            is_flag=True,
            help="With --save: where the result is not private, write the record of its audit, "
            "which releases nothing.",
        ),
    ]


def _help(about: Described) -> str:
    """Return the docstring for click: displayed programs keep their lines."""
    paragraphs = []
    for paragraph in about.about.replace("`", "").split("\n\n"):
        displayed = any(line.startswith("  ") for line in paragraph.splitlines())
        paragraphs.append(f"\b\n{paragraph}" if displayed else paragraph)
    return "\n\n".join([*paragraphs, f"\b\nExample: {about.example}"])


def _run(about: Described, given: dict[str, Any]) -> None:
    backend, time_limit = given.pop("backend"), given.pop("time_limit")
    stop_at_gap = given.pop("stop_at_gap")
    as_json, audit_too = given.pop("as_json"), given.pop("even_if_not_private")
    plot, save, style = given.pop("plot"), given.pop("save"), given.pop("style")
    proof, all_rows = given.pop("proof"), given.pop("all_rows")
    check_targets(plot, save, style)
    if proof and save is None:
        raise ParameterError("--proof is given without --save; it lies beside the saved file.")
    from dpopt.shape import design, kind_of
    from dpopt.verify import KINDS

    if proof and about.kind not in KINDS:
        raise ParameterError(
            f"--proof is given; there is no proof of a {about.kind!r}: leave it out."
        )
    kind: Any = kind_of(about.kind)
    start = time.perf_counter()
    try:
        setting = kind(**{name: value for name, value in given.items() if value is not None})
    except ParameterError as error:
        raise missing_option(error, given) from None
    found = design(
        setting,
        backend=backend,
        time_limit=time_limit,
        stop_at_gap=0.0 if stop_at_gap is None else stop_at_gap,
    )
    seconds = time.perf_counter() - start
    # First what may be refused: without a proof that a kind could have nothing is written.
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        if save is not None and (found.private or audit_too):
            found.save(save, even_if_not_private=audit_too, proof=proof)
    if plot is not None:
        with context(style), replacing(plot) as temporary:
            save_figure(found.plot(), temporary)
    for warning in said:
        click.echo(f"Note: {warning.message}", err=True)
    if as_json:
        show(to_json({**found.to_dict(), "seconds": seconds}))
    else:
        show(_text(found, seconds, None if all_rows else ROWS))
    _require_private(found, save is not None and not audit_too)


def _require_private(found: Any, refused_to_save: bool) -> None:  # noqa: ANN401
    """End with what a design breaks, and with what became of the file.

    Raises:
        NotPrivateError: if it is not proved private.
    """
    try:
        found.require_private()
    except NotPrivateError as error:
        raise NotPrivateError(f"{error}{_NOTHING if refused_to_save else ''}") from None


def check_targets(plot: Path | None, save: Path | None, style: str) -> None:
    """Refuse files that cannot be written and unknown styles, before anything is solved."""
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
    with context(style):
        pass


def _text(found: Design, seconds: float, most: int | None) -> str:
    """Return the facts a line each, and rows of the table, at most so many."""
    facts = {**found.named(), **found.known()}
    proof = found.certificate
    if proof is None:
        facts["certificate"] = "none"
    else:
        plural = "" if proof.constraints == 1 else "s"
        facts["certificate"] = f"{proof.constraints:,} constraint{plural}; {proof.arithmetic}"
    facts |= {**found.details(), "seconds": f"{seconds:.3f}"}
    lines = [f"{name:18s} {told_value(value)}" for name, value in facts.items() if _is_known(value)]
    return "\n".join([*lines, "", *_table(found, most)])


def _table(found: Design, most: int | None) -> list[str]:
    """Return rows of the design's columns, aligned: all, or the first ones."""
    try:
        return table_lines(found.setting.columns(found.table), most)
    except ParameterError as error:
        return [f"no table: {error}"]


def table_lines(table: Mapping[str, Sequence[Any]], most: int | None) -> list[str]:
    """Return rows of a table, aligned: all, or the first ones."""
    columns = {name: list(values[:most]) for name, values in table.items()}
    written = [[name, *(told_value(value) for value in values)] for name, values in columns.items()]
    widths = [min(_WIDTH, max(map(len, column))) for column in written]
    lines = [
        "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True))
        for row in zip(*written, strict=True)
    ]
    whole = max(map(len, table.values()), default=0)
    if most is None or whole <= most:
        return lines
    return [*lines, f"... {whole - most:,} more; --all-rows prints them"]


def _is_known(value: object) -> bool:
    """Return whether there is such a number: some means are of tables that cannot be listed."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def told_value(value: Any) -> str:  # noqa: ANN401
    """Return a value as the command line prints it."""
    if type(value).__name__ == "Guarantee":
        return f"({value.epsilon:g}, {value.delta:g})-DP"
    return f"{value:.12g}" if isinstance(value, float) else str(value)

"""``python -m experiments [run NAME ...]``: tables, figures, report; ``list``, ``show``, ...."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from dpopt import ParameterError
from experiments.catalogue import all_experiments, matching
from experiments.entry import make_folder, run_command
from experiments.parameters import (
    Parameter,
    check_names,
    configured,
    parameters_of,
    parsed,
    text_of,
)
from experiments.registry import Experiment
from experiments.style import STYLES

_HELP = {"help_option_names": ["-h", "--help"]}
_OUT = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results"),
    help="Folder to write to, and of earlier runs.  [results]",
)
_WIDTH = 72


@click.group(context_settings=_HELP)
def command() -> None:
    """Figures and tables of the papers, with the papers' parameters or with your own.

    Without a command, all of them are run, and the report is written.
    """


@command.command("run", context_settings=_HELP, short_help="Run experiments, and write the report.")
@click.argument("names", nargs=-1)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A parameter of your own, for each experiment that has it; see show NAME.",
)
@click.option("--full", is_flag=True, help="Sample as much as the figures of a paper would.")
@click.option(
    "--style",
    type=click.Choice(list(STYLES)),
    default="plain",
    help="Widths and fonts of the figures.  [plain]",
)
@_OUT
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=2,
    help="Experiments that run at the same time; benchmarks run alone.  [2]",
)
@click.option("--fresh", is_flag=True, help="Compute anew what is kept from earlier runs.")
def run_names(
    names: tuple[str, ...],
    settings: tuple[str, ...],
    full: bool,
    style: str,
    out: Path,
    workers: int,
    fresh: bool,
) -> int:
    """Run the experiments NAMEd, or all but the benchmarks, and write the report.

    A NAME may be a pattern such as 'majority-*'. Numbers of a FIELD are separated by commas, texts
    by semicolons. The report keeps what the folder holds of the experiments that are not run; what
    ran before with the same parameters and the same code is not computed again.
    """
    known = all_experiments()
    chosen = matching(names, known) if names else [e for e in known.values() if e.repeatable]
    texts = dict(map(_parted, settings))
    check_names(chosen, texts)
    configs = [configured(each, full, parsed(each, texts)) for each in chosen]
    make_folder(out)

    from experiments.report.pages import write_report
    from experiments.runner import CACHE, Job, run_all
    from experiments.store import Store

    jobs = [Job(each, own, full, style) for each, own in zip(chosen, configs, strict=True)]
    store = Store(out / CACHE, fresh=fresh)

    def say(text: str) -> None:
        click.echo(f"{text}.", err=True)

    try:
        entries, refused = run_all(jobs, out, workers=workers, store=store, say=say)
    except KeyboardInterrupt:
        # What is done has its page.
        write_report([], out)
        raise
    if entries:
        click.echo(f"report: {write_report(entries, out)}")
    failed = [entry for entry in entries if entry.failure is not None]
    for entry in failed:
        click.echo(f"{entry.experiment.name} failed: {entry.failure}", err=True)
    for name, why in refused.items():
        click.echo(why if len(jobs) == 1 else f"{name}: {why}", err=True)
    return 2 if refused else 1 if failed else 0


@command.command(
    "list", context_settings=_HELP, short_help="List the experiments and how long they take."
)
@click.argument("patterns", nargs=-1)
@_OUT
def list_names(patterns: tuple[str, ...], out: Path) -> None:
    """List the experiments, or those that a PATTERN such as 'roo-*' names.

    Each with its paper and item, and the time of its last run into the folder.
    """
    from experiments.kept import last_seconds

    known = all_experiments()
    for each in matching(patterns, known) if patterns else known.values():
        seconds = last_seconds(each, each.quick, out)
        took = "-" if seconds is None else f"{seconds:.1f} s"
        click.echo(f"{each.name:28} {took:>8}  {each.title}")


@command.command(
    "show", context_settings=_HELP, short_help="Show experiments and their parameters."
)
@click.argument("names", nargs=-1, required=True)
def show_names(names: tuple[str, ...]) -> None:
    """Show what experiments are about, and their parameters, which run --set changes."""
    shown = [_shown(each) for each in matching(names, all_experiments())]
    click.echo("\n\n".join(shown))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, 1 if an experiment failed, 2 for bad input."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("-") and given[0] not in _HELP["help_option_names"]):
        given.insert(0, "run")
    run_command(command, "python -m experiments", given)


def _parted(setting: str) -> tuple[str, str]:
    name, mark, text = setting.partition("=")
    if not mark:
        raise ParameterError(f"setting is {setting!r}; it must be a field, =, and its value.")
    return name.strip().replace("-", "_"), text


def _shown(experiment: Experiment) -> str:
    """Return the words about an experiment and each of its parameters."""
    head = f"{experiment.name}: {experiment.title}"
    summary = f"With the paper's parameters: {experiment.summary}"
    about = click.wrap_text(summary, _WIDTH, "  ", "  ")
    return "\n".join([head, about, *map(_parameter, parameters_of(experiment).values())])


def _parameter(parameter: Parameter) -> str:
    default = text_of(parameter.quick)
    if parameter.quick != parameter.full:
        default += f"; with --full {text_of(parameter.full)}"
    about = [click.wrap_text(parameter.about, _WIDTH, "      ", "      ")]
    about = about if parameter.about else []
    allowed = click.wrap_text(f"({parameter.allowed})", _WIDTH, "      ", "       ")
    return "\n".join(["", f"  {parameter.name} = {default}", *about, allowed])


if __name__ == "__main__":
    main()

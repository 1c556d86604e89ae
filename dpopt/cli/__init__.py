"""The command line. Exit 2: bad input; 3: no solution; 4: not private."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from dpopt import __version__
from dpopt._errors import InfeasibleError, NotPrivateError, ParameterError, SolverError
from dpopt._progress import progress_bar
from dpopt.cli.about import cite, completion, doctor
from dpopt.cli.explore import explore
from dpopt.cli.kernel import kernel
from dpopt.cli.majority import majority
from dpopt.cli.roo import roo, sample
from dpopt.cli.saved import certify, release
from dpopt.cli.smoothed import profile, smoothed

_LONGEST = 600


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpopt")
def cli() -> None:
    """Differentially private mechanisms, designed by linear programming."""


for command in (
    *(majority, kernel, roo, sample, smoothed, profile, certify, release),
    *(explore, cite, doctor, completion),
):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        with progress_bar():
            code = cli.main(args=arguments, prog_name="dpopt", standalone_mode=False)
    except click.ClickException as error:
        return _refuse(error.format_message(), 2)
    except ParameterError as error:
        return _refuse(str(error), 2)
    except (InfeasibleError, SolverError) as error:
        return _refuse(str(error), 3)
    except NotPrivateError as error:
        return _refuse(str(error), 4)
    except MemoryError:
        return _refuse("out of memory; ask for a smaller instance.", 3)
    except (click.Abort, KeyboardInterrupt):
        return _refuse("interrupted.", 130)
    return code if isinstance(code, int) else 0


def _refuse(message: str, code: int) -> int:
    """Print one sentence, whatever the library that refused had to say."""
    sentence = " ".join(message.split())
    if len(sentence) > _LONGEST:
        sentence = f"{sentence[: _LONGEST // 2]} ... {sentence[-_LONGEST // 2 :]}"
    click.echo(sentence if sentence.endswith((".", "?")) else f"{sentence}.", err=True)
    return code

"""How a command of the experiments ends: an exit code, and one line on failure."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from dpopt import DpoptError, ParameterError


def run_command(command: click.Command, name: str, arguments: Sequence[str] | None) -> NoReturn:
    """Run a command and exit: 0 or its own code, 1 if it failed, 2 for bad input."""
    code: object
    try:
        code = command.main(args=arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        click.echo(error.format_message(), err=True)
        code = 2
    except DpoptError as error:
        click.echo(str(error), err=True)
        code = 2 if isinstance(error, ParameterError) else 1
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted.", err=True)
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def make_folder(out: Path, name: str = "out") -> None:
    """Make the folder that is written to, if it is not there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise ParameterError(f"{name} is {str(out)!r}; it must be a folder.") from None

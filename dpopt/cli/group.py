"""The group ``dpopt``: each verb's module is loaded when the verb, or its help, is asked for."""

from __future__ import annotations

from importlib import import_module

import click

from dpopt import __version__

# A verb's module; in the order of the help.
_HOMES = {
    "majority": "majority",
    "kernel": "kernel",
    "roo": "roo",
    "sample": "roo",
    "smoothed": "smoothed",
    "profile": "smoothed",
    "certify": "saved",
    "release": "saved",
    "explore": "explore",
    "cite": "about",
    "doctor": "about",
    "completion": "about",
}

_CODES = """\b
Exit codes:
  0    it is done
  2    bad input: a parameter, or a file that is missing or was changed
  3    no solution: infeasible, out of time or memory, or a solver failed
  4    not private, or not proved to be; what was found is printed all the same
  5    standard output took no answer; if a letter or label was drawn, that is
       spent, and the message says so
  130  interrupted (Ctrl-C)
"""


class _Lazy(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name in _HOMES and cmd_name not in self.commands:
            module = import_module(f"dpopt.cli.{_HOMES[cmd_name]}")
            self.add_command(getattr(module, cmd_name), cmd_name)
        return self.commands.get(cmd_name)


@click.group(cls=_Lazy, epilog=_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpopt")
@click.pass_context
def cli(context: click.Context) -> None:
    """Differentially private mechanisms, designed by linear programming."""
    from dpopt.cli.progress import told

    context.with_resource(told())


def loaded() -> click.Group:
    """Return the group with all its commands in ``commands``, for those who read them there."""
    for name in _HOMES:
        cli.get_command(click.Context(cli), name)
    return cli

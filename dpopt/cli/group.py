"""The group ``dpopt``: kinds have commands made from their source, other verbs are imported."""

from __future__ import annotations

from importlib import import_module

import click

from dpopt import __version__
from dpopt._kinds import VERBS, homes, summary_of
from dpopt.cli.kind import command

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
    """A group of a command for each kind, made from its source, and of verbs that are imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*sorted(homes()), *VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self.commands:
            if cmd_name in VERBS:
                module = import_module(f"dpopt.cli.{VERBS[cmd_name]}")
                self.add_command(getattr(module, cmd_name), cmd_name)
            elif cmd_name in homes():
                self.add_command(command(cmd_name))
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List what linear programs decide, then what is done with it."""
        width = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        verbs = {name: self.get_command(ctx, name) for name in VERBS}
        rows = [(name, verb.get_short_help_str(width)) for name, verb in verbs.items() if verb]
        with formatter.section("Mechanisms and questions"):
            formatter.write_dl([(kind, summary_of(kind)) for kind in sorted(homes())])
        with formatter.section("Files and tools"):
            formatter.write_dl(rows)


@click.group(cls=_Lazy, epilog=_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpopt")
@click.pass_context
def cli(context: click.Context) -> None:
    """Differentially private mechanisms, designed by linear programming."""
    from dpopt.cli.progress import told

    context.with_resource(told())


def loaded() -> click.Group:
    """Return the group with all its commands in ``commands``, for those who read them there."""
    for name in cli.list_commands(click.Context(cli)):
        cli.get_command(click.Context(cli), name)
    return cli

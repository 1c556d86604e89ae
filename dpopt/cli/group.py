"""The group ``dpopt``: what it lists stands in `dpopt._kinds`, and is imported when it is used."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from dpopt import __version__
from dpopt._errors import ParameterError
from dpopt._kinds import KINDS, VERBS
from dpopt.cli.kind import command
from dpopt.cli.words import as_options

_CODES = """\b
Exit codes:
  0    it is done
  2    bad input: a parameter, or a file that is missing or was changed; or a
       release that its ledger refuses
  3    no solution: infeasible, out of time or memory, or a solver failed
  4    not private, or not proved to be; what was found is printed all the same
  5    standard output took no answer; if a letter or label was drawn, that is
       spent, and the message says so
  130  interrupted (Ctrl-C)
"""


class _Lazy(click.Group):
    """A group of a command for each kind, made from its class, and of verbs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*KINDS, *VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self.commands:
            if cmd_name in VERBS:
                module = import_module(f"dpopt.cli.{VERBS[cmd_name]}")
                self.add_command(getattr(module, cmd_name), cmd_name)
            elif cmd_name in KINDS:
                self.add_command(command(cmd_name))
        return self.commands.get(cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin as what was typed does, of kinds without an import."""
        kinds = [
            CompletionItem(kind, help=about)
            for kind, (_, about) in KINDS.items()
            if kind.startswith(incomplete)
        ]
        verbs = {name: self.get_command(ctx, name) for name in VERBS if name.startswith(incomplete)}
        others = [
            CompletionItem(name, help=verb.get_short_help_str())
            for name, verb in verbs.items()
            if verb
        ]
        return [*kinds, *others, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a name; of a name that is none, say which one is near."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = get_close_matches(name, self.list_commands(ctx), 1)
            mean = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {name!r}.{mean}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run a command; what the library advises is said in the command's own options."""
        try:
            return super().invoke(ctx)
        except ParameterError as error:
            found = self.get_command(ctx, ctx.invoked_subcommand or "")
            known = [] if found is None else [str(option.name) for option in found.params]
            raise ParameterError(as_options(str(error), known)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List what linear programs decide, then what is done with it."""
        width = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        verbs = {name: self.get_command(ctx, name) for name in VERBS}
        rows = [(name, verb.get_short_help_str(width)) for name, verb in verbs.items() if verb]
        with formatter.section("Mechanisms"):
            formatter.write_dl([(kind, about) for kind, (_, about) in KINDS.items()])
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

"""The page of the command line, from what click knows of each command."""

from __future__ import annotations

import inspect

import click

from dpopt.cli import cli
from experiments.reference.text import is_displayed, plain_help

_TITLE = "Command line"


def command_page() -> str:
    """Return the reStructuredText of ``dpopt`` and its commands: usage, help, options."""
    lines = [_TITLE, "=" * len(_TITLE), "", *_help(cli), ""]
    lines += [
        "Exit codes: 0; 2 for bad input; 3 if no solution was found; 4 if a mechanism is not "
        "private.",
        "",
    ]
    context = click.Context(cli, info_name="dpopt")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if command is not None and not command.hidden:
            lines += _command(command, click.Context(command, info_name=name, parent=context))
    return "\n".join(lines)


def _command(command: click.Command, context: click.Context) -> list[str]:
    path = context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [path, "-" * len(path), "", "::", "", f"    {usage}", "", *_help(command), ""]
    lines += [f".. program:: {path}", ""]
    for parameter in command.params:
        flags, text = parameter.get_help_record(context) or ("", "")
        if text:
            lines += [f".. option:: {_declared(flags)}", "", f"   {plain_help(text)}", ""]
    return lines


def _help(command: click.Command) -> list[str]:
    """Return a command's help; its examples, which start with the program's name, as literals."""
    lines = []
    for paragraph in inspect.cleandoc(command.help or "").replace("\b\n", "").split("\n\n"):
        if is_displayed(paragraph):
            lines += ["::", "", *paragraph.split("\n"), ""]
            continue
        joined = " ".join(paragraph.split())
        head, mark, example = joined.partition("Example: ")
        if head:
            lines += [plain_help(head), ""]
        if mark:
            lines += ["Example::", "", f"    {example}", ""]
    return lines


def _declared(flags: str) -> str:
    """Return an option's flags as Sphinx reads them: alternatives by commas."""
    return flags.replace(" / ", ", ")

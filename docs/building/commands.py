"""The pages of the commands: what click knows of them, with formulas and options as they are."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click

from docs.building.text import is_displayed, plain_help
from dpopt.cli.group import loaded

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def description(text: str | None) -> list[str]:
    """Return a command's help, or what follows its options, as reStructuredText.

    Its examples, which start with the program's name, and its displayed programs are literals.
    """
    lines = []
    if not text:
        return lines
    for paragraph in inspect.cleandoc(text).replace("\b\n", "").split("\n\n"):
        if is_displayed(paragraph):
            lines += ["::", "", *(f"    {line}" for line in paragraph.split("\n")), ""]
            continue
        joined = " ".join(paragraph.split())
        head, mark, example = joined.partition("Example: ")
        if head:
            lines += [plain_help(head), ""]
        if mark:
            lines += ["Example::", "", f"    {example}", ""]
    return lines


def options(context: click.Context) -> list[str]:
    """Return a command's options as directives, with the help that the command prints."""
    lines = []
    for parameter in context.command.params:
        flags, text = parameter.get_help_record(context) or ("", "")
        if text:
            # Sphinx has commas between alternatives.
            declared = flags.replace(" / ", ", ")
            lines += [f".. option:: {declared}", "", f"   {plain_help(text)}", ""]
    return lines


def _description(_app: Sphinx, context: click.Context, lines: list[str]) -> None:
    lines[:] = description(context.command.help)


def _options(_app: Sphinx, context: click.Context, lines: list[str]) -> None:
    lines[:] = options(context)


def _epilog(_app: Sphinx, context: click.Context, lines: list[str]) -> None:
    text = context.command.epilog
    if not text or not isinstance(context.command, click.Group):
        lines[:] = description(text)
        return
    # The exit codes, as they are printed.
    codes = inspect.cleandoc(text.replace("\b\n", "")).splitlines()
    lines[:] = ["::", "", *(f"    {line}" for line in codes), ""]


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite what sphinx-click found."""
    app.setup_extension("sphinx_click")
    # It reads the options of all commands.
    loaded()
    app.connect("sphinx-click-process-description", _description)
    app.connect("sphinx-click-process-options", _options)
    app.connect("sphinx-click-process-epilog", _epilog)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

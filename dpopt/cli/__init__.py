"""The command line; what it exits with stands at the end of ``dpopt --help``."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpopt.cli.group import cli

__all__ = ["cli", "main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    interrupts = None
    try:
        # All is loaded in here, for that is when impatient users press Ctrl-C.
        from dpopt.cli.interrupts import Interrupts

        interrupts = Interrupts()
        from dpopt.cli.run import run

        code, sentence = run(arguments)
    except BaseException as error:
        # Libraries that are interrupted while they load may turn it into errors of their own.
        if not (isinstance(error, KeyboardInterrupt) or (interrupts and interrupts.count)):
            raise
        code, sentence = 130, "interrupted."
    finally:
        if interrupts is not None:
            interrupts.stop()
    _say(sentence)
    sys.exit(code)


def __getattr__(name: str) -> object:
    if name == "cli":
        from dpopt.cli.group import loaded

        return loaded()
    raise AttributeError(f"module 'dpopt.cli' has no attribute {name!r}")


def _say(sentence: str) -> None:
    """Write a sentence to standard error, if there is one that takes it."""
    if not sentence or sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        # The exit code still says it.
        sys.stderr = None

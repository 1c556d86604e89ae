"""The command line; what it exits with stands at the end of ``dpopt --help``."""

from __future__ import annotations

import sys

# What type checkers take for true; typing takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        # All is loaded in here, for that is when impatient users press Ctrl-C.
        from dpopt.cli.group import run

        code, sentence = run(arguments)
    except BaseException as error:
        if not _interrupted(error):
            raise
        code, sentence = 130, "interrupted."
    if sentence and sys.stderr is not None:
        try:
            sys.stderr.write(f"{sentence}\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            # The exit code still says it.
            sys.stderr = None
    sys.exit(code)


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: libraries may raise their own if they are interrupted."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None

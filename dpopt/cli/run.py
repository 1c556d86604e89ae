"""One run of the command line: whatever happens becomes an exit code and at most one sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from dpopt._errors import (
    BudgetError,
    InfeasibleError,
    NotPrivateError,
    ParameterError,
    SolverError,
)
from dpopt.cli.group import cli
from dpopt.cli.output import CLOSED, OutputError, abandon, refused

_LONGEST = 600


def run(arguments: Sequence[str] | None) -> tuple[int, str]:
    """Return the exit code of ``dpopt`` with these arguments, and the sentence for its user."""
    try:
        code = cli.main(args=arguments, prog_name="dpopt", standalone_mode=False)
    except click.ClickException as error:
        return 2, _sentence(error.format_message())
    except (BudgetError, ParameterError) as error:
        return 2, _sentence(str(error))
    except (InfeasibleError, SolverError) as error:
        return 3, _sentence(str(error))
    except NotPrivateError as error:
        return 4, _sentence(str(error))
    except MemoryError:
        return 3, "out of memory; ask for a smaller instance."
    except OutputError as error:
        return 5, _sentence(str(error))
    except (UnicodeEncodeError, OSError) as error:
        # Every file is read and written by functions that refuse by name: this is click's help.
        return 5, _sentence(str(refused(error)))
    except (click.Abort, KeyboardInterrupt):
        return 130, "interrupted."
    except SystemExit as end:
        if "_DPOPT_COMPLETE" in os.environ:
            raise
        # So click ends where the reader of its help has gone.
        abandon()
        return (5, "standard output took no answer: nobody reads it.") if end.code else (0, "")
    if sys.stdout is None:
        # What the verbs write says so itself; click writes its help to nowhere.
        return 5, f"{CLOSED}."
    return (code if isinstance(code, int) else 0), ""


def _sentence(message: str) -> str:
    """Return one sentence, whatever the library that refused had to say."""
    sentence = " ".join(message.split())
    if len(sentence) > _LONGEST:
        sentence = f"{sentence[: _LONGEST // 2]} ... {sentence[-_LONGEST // 2 :]}"
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."

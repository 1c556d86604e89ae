"""What the verbs do with a result that is not proved private: show it, save nothing, exit 4."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import click

from dpopt._errors import NotPrivateError

audit_too = click.option(
    "--even-if-not-private",
    is_flag=True,
    help="With --save: where the result is not private, write the record of its audit, which "
    "releases nothing.",
)

_NOTHING = " Nothing was saved; --even-if-not-private saves the audit, which releases nothing."


class Result(Protocol):
    """A mechanism with its proof, or without one."""

    @property
    def private(self) -> bool:
        """Whether the guarantee was proved."""
        ...

    def require_private(self) -> None:
        """Raise `NotPrivateError` unless it was."""
        ...

    def save(self, path: str | Path, *, even_if_not_private: bool = False) -> None:
        """Write the mechanism, or its audit."""
        ...


def save_proved(result: Result, path: Path | None, even_if_not_private: bool) -> None:
    """Save a result if a file was asked for and the result may be in it."""
    if path is not None and (result.private or even_if_not_private):
        result.save(path, even_if_not_private=even_if_not_private)


def require_private(result: Result, path: Path | None, even_if_not_private: bool) -> None:
    """End with what a result breaks, and with what became of the file.

    Raises:
        NotPrivateError: if the result is not proved private.
    """
    try:
        result.require_private()
    except NotPrivateError as error:
        saved = "" if path is None or even_if_not_private else _NOTHING
        raise NotPrivateError(f"{error}{saved}") from None

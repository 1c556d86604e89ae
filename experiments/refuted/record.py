"""A published statement that is false, and the file that shows it.

The file holds formulas, beside which the paper can be laid, and a witness in integers. The checker
needs neither this package nor the package that it is about.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpopt import verify

FORMAT, SCHEMA = "dpopt finding", 1
CHECKER = "verify.py"
"""Name of the checker beside the files."""


@dataclass(frozen=True)
class Refutation:
    """A statement, formulas and a witness for which it is false.

    Attributes:
        paper: as its items name it.
        name: of the file.
        experiment: the item that it belongs to.
        source: paper and place.
        statement: what is false, in plain words.
        formulas: definitions "name = ..." or "name(argument, ...) = ...", in the language of
            `dpopt.verify.Formulas`.
        claim: the comparison that the statement makes, and that is false.
        judges: identifier of the comparison that it proves, in this item or another one of the
            paper; empty if no item has such a comparison.
        given: comparisons that hold: what the statement asks for.
        design: makes a design whose privacy the file shows besides; in the formulas its integers
            are ``weights``, a list for each input, over ``total``. None if there is none.
    """

    paper: str
    name: str
    experiment: str
    source: str
    statement: str
    formulas: tuple[str, ...]
    claim: str
    judges: str = ""
    given: tuple[str, ...] = ()
    design: Callable[[], Any] | None = None

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.finding.json"

    @property
    def command(self) -> str:
        """What shows it again, within the folder."""
        return f"python {CHECKER} {self.file}"

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file."""
        design = None if self.design is None else self.design()
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "finding": self.name,
            "source": self.source,
            "statement": self.statement,
            "design": None if design is None else _plain(design),
            "formulas": list(self.formulas),
            "given": list(self.given),
            "claim": self.claim,
        }

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return (json.dumps(self.to_dict(), indent=2) + "\n").encode()


def _plain(design: Any) -> dict[str, Any]:  # noqa: ANN401
    body = design.to_dict()
    return {name: body[name] for name in ("kind", "setting", "table")}


def checker() -> bytes:
    """Return the bytes of the checker: the file alone, which needs no package."""
    return Path(verify.__file__).read_bytes()

"""Published statements that are false, each with a file that `dpopt.verify` accepts alone.

``refuted.toml`` holds them: formulas, beside which the paper can be laid, and an integer witness.
The checker of a file needs neither this package nor the package that it is about.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from dpopt import verify
from experiments.registry import Comparison

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
        design: name and arguments of a design whose privacy the file shows besides; in the formulas
            its integers are ``weights``, a list for each input, over ``total``. None if there is
            none.
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
    design: tuple[Any, ...] | None = None

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
        return {
            "format": "dpopt finding",
            "schema": 1,
            "finding": self.name,
            "source": self.source,
            "statement": self.statement,
            "design": None if self.design is None else _design(*self.design),
            "formulas": list(self.formulas),
            "given": list(self.given),
            "claim": self.claim,
        }

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return (json.dumps(self.to_dict(), indent=2) + "\n").encode()


def _design(name: str, voters: int, epsilon: float = 0.1, allowance: float = 1) -> dict[str, Any]:
    """Return a design of DaRRM: gamma(l) = 1 / |2 l - K|, or that of the paper's objective."""
    import dpopt
    from dpopt import majority
    from experiments.majority.voters import harmonic

    setting = dpopt.Majority(voters, epsilon, allowance, objective="surrogate")
    if name == "harmonic":
        setting = dpopt.Majority(voters, epsilon, allowance)
        made = majority.assess(setting, harmonic(voters), repair=True)
    else:
        made = dpopt.design(setting)
    body = made.to_dict()
    return {part: body[part] for part in ("kind", "setting", "table")}


@cache
def refutations() -> tuple[Refutation, ...]:
    """Return all of them, in the order of the papers' names."""
    known = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    blocks = {f"@{name}": block for name, block in known["blocks"].items()}
    for one in known["refutation"]:
        one["formulas"] = [f for part in one["formulas"] for f in blocks.get(part, [part])]
    return TypeAdapter(tuple[Refutation, ...]).validate_python(known["refutation"])


def refutations_of(
    paper: str, experiment: str, comparisons: Sequence[Comparison]
) -> tuple[Refutation, ...]:
    """Return those that belong to an item, and those that prove one of its comparisons."""
    false = ("refuted", "misprint")
    judged = {said.identifier for said in comparisons if said.verdict in false}
    return tuple(
        each
        for each in refutations()
        if each.paper == paper and (each.experiment == experiment or each.judges in judged)
    )


def checker() -> bytes:
    """Return the bytes of the checker: the file alone, which needs no package."""
    return Path(verify.__file__).read_bytes()

"""``dpopt sample`` and ``dpopt mode``: one private letter of a column."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from dpopt._errors import ParameterError
from dpopt._kinds import described
from dpopt.cli.ledger import LEDGER, Keeper
from dpopt.cli.options import File, Flag, TextOrFile, command, parameters
from dpopt.cli.output import show_draw
from dpopt.files import contents


def _draw(
    make: Callable[[int, int], tuple[Any, dict[str, object]]],
    file: File,
    column: str,
    alphabet: TextOrFile,
    json: Flag = False,
    **keeping: Any,  # noqa: ANN401
) -> None:
    """Count a column, make the mechanism for so many records and letters, and release one.

    Args:
        make: returns the mechanism, and what is known of it beforehand.
        file: .csv or .parquet.
        column: name of the column that holds the letters.
        alphabet: the public letters: a list A,B,C or a text file with one letter a line.
        json: print the letter as JSON.
        keeping: see `Keeper`.
    """
    from dpopt.data.columns import tally_file

    letters, keeper = _alphabet(alphabet), Keeper(**keeping)
    tally = tally_file(file, column, letters)
    design, facts = make(int(tally.counts.sum()), len(letters))

    def draw() -> list[object]:
        design.asked(tally)
        keeper.charge(design)
        drawn = design.release(tally)
        # A vote is the place of its class, a sample the letter itself.
        return [drawn if isinstance(drawn, str) else letters[int(drawn)]]

    show_draw(draw, letters, design.guarantee, json, facts)
    keeper.tell()


_OPTIONS = [*parameters(described(_draw).fields[1:]), *LEDGER]


@command(*_OPTIONS)
def sample(
    epsilon: float,
    rule: Literal["exact", "smooth-floor", "roo"] = "exact",
    **given: Any,  # noqa: ANN401
) -> None:
    """Release one private letter from a column of a CSV or Parquet FILE.

    The alphabet is public: it must be fixed before the data are looked at. A record outside it is
    an error, not a letter. The number of records is public too. With --ledger it is written down
    before it is drawn; what is spent is told on standard error.

    Args:
        epsilon: privacy of the letter, above 0.
        rule: by which the letter is drawn.
        given: the column and the ledger.

    Example:
        dpopt sample visits.csv --column city --alphabet Bern,Basel,Chur --epsilon 1
    """
    from dpopt import RevealOrObscure, SmoothFloor, _checks, design

    _checks.choice("rule", rule, ("exact", "smooth-floor", "roo"))

    def make(records: int, letters: int) -> tuple[Any, dict[str, object]]:
        if rule == "smooth-floor":
            return design(SmoothFloor(records, letters, epsilon)), {}
        return design(RevealOrObscure(records, letters, epsilon, rule)), {}

    _draw(make, **given)


@command(*_OPTIONS)
def mode(
    epsilon: float,
    rule: Literal["best", "ladder", "permute-and-flip", "exponential", "optimal"] = "best",
    **given: Any,  # noqa: ANN401
) -> None:
    """Release the most common letter of a column of a CSV or Parquet FILE, privately.

    Private for one record that is replaced by another. The alphabet is public: it must be fixed
    before the data are looked at. A record outside it is an error, not a letter. The number of
    records is public too. With --ledger the release is written down before it is drawn; what is
    spent is told on standard error.

    Told beside the letter: by which rule it was drawn, and why that is private. By default it is
    the rule of least mean regret where its tables are small, as for few records, and
    permute-and-flip elsewhere.

    Args:
        epsilon: privacy of the letter, above 0.
        rule: by which the letter is drawn.
        given: the column and the ledger.

    Example:
        dpopt mode visits.csv --column city --alphabet Bern,Basel,Chur --epsilon 1
    """
    from dpopt.plurality.mode import mode_design, proof

    def make(records: int, letters: int) -> tuple[Any, dict[str, object]]:
        if not records:
            raise ParameterError("data holds no records; a mode needs at least one.")
        made = mode_design(records, letters, epsilon, rule=rule)
        return made, {"rule": made.setting.rule, "records": records, "proof": proof(made)}

    _draw(make, **given)


def _alphabet(text: str) -> list[str]:
    """Return the letters of a list, or of a file with one a line."""
    letters = [part.strip() for part in text.split(",")]
    if os.path.isfile(text):  # noqa: PTH113 - a list that is too long is no file either
        try:
            lines = contents(Path(text)).splitlines()
        except (OSError, ValueError):
            raise ParameterError(f"alphabet is {text!r}; it cannot be read as text.") from None
        letters = [line.strip() for line in lines if line.strip()]
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ParameterError(f"alphabet is {text!r}; it holds bytes that are no text here.")
    if len(letters) < 2 or not all(letters) or len(set(letters)) != len(letters):
        raise ParameterError(
            f"alphabet is {text!r}; it must be a file or a list A,B,C of at least two letters, "
            "none empty and none twice."
        )
    return letters

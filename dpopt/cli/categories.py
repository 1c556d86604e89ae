"""``dpopt sample`` and ``dpopt mode``: one private category of a column."""

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
    labels: TextOrFile,
    json: Flag = False,
    **keeping: Any,  # noqa: ANN401
) -> None:
    """Count a column, make the mechanism for so many records and categories, and release one.

    Args:
        make: returns the mechanism, and what is known of it beforehand.
        file: .csv or .parquet.
        column: name of the column that holds the categories.
        labels: the public categories: a list A,B,C or a text file with one category a line.
        json: print the category as JSON.
        keeping: see `Keeper`.
    """
    from dpopt.data.columns import tally_file

    categories, keeper = _alphabet(labels), Keeper(**keeping)
    tally = tally_file(file, column, categories)
    design, facts = make(int(tally.counts.sum()), len(categories))

    def draw() -> list[object]:
        design.releases(tally)
        keeper.charge(design)
        drawn = design.release(tally)
        # A vote is the place of its class, a sample the category itself.
        return [drawn if isinstance(drawn, str) else categories[int(drawn)]]

    show_draw(draw, categories, design.guarantee, json, facts)
    keeper.tell()


# The options that `sample` and `mode` share.
_OPTIONS = [*parameters(described(_draw).fields[1:]), *LEDGER]


@command(*_OPTIONS)
def sample(
    epsilon: float,
    rule: Literal["exact", "smooth-floor", "roo"] = "exact",
    **given: Any,  # noqa: ANN401
) -> None:
    """Release one private category from a column of a CSV or Parquet FILE.

    The alphabet is public: it must be fixed before the data are looked at. A record outside it is
    an error, not a category. The number of records is public too. With --ledger it is written down
    before it is drawn; the privacy cost is printed on standard error.

    Args:
        epsilon: privacy of the category, above 0.
        rule: by which the category is drawn.
        given: the column and the ledger.

    Example:
        dpopt sample visits.csv --column city --labels Bern,Basel,Chur --epsilon 1
    """
    from dpopt import RevealOrObscure, SmoothFloor, _checks, design

    _checks.choice("rule", rule, ("exact", "smooth-floor", "roo"))

    def make(records: int, categories: int) -> tuple[Any, dict[str, object]]:
        if rule == "smooth-floor":
            return design(SmoothFloor(records, categories, epsilon)), {}
        return design(RevealOrObscure(records, categories, epsilon, rule)), {}

    _draw(make, **given)


@command(*_OPTIONS)
def mode(
    epsilon: float,
    rule: Literal["best", "ladder", "permute-and-flip", "exponential", "optimal"] = "best",
    **given: Any,  # noqa: ANN401
) -> None:
    """Release the most common category of a column of a CSV or Parquet FILE, privately.

    Private for one record that is replaced by another. The alphabet is public: it must be fixed
    before the data are looked at. A record outside it is an error, not a category. The number of
    records is public too. With --ledger the release is written down before it is drawn; its
    privacy cost is printed on standard error.

    Printed beside the category: by which rule it was drawn, and why that is private. By default it
    is the rule of least mean regret where its tables are small, as for few records, and
    permute-and-flip elsewhere.

    Args:
        epsilon: privacy of the category, above 0.
        rule: by which the category is drawn.
        given: the column and the ledger.

    Example:
        dpopt mode visits.csv --column city --labels Bern,Basel,Chur --epsilon 1
    """
    from dpopt.plurality.mode import mode_design

    def make(records: int, categories: int) -> tuple[Any, dict[str, object]]:
        if not records:
            raise ParameterError("data holds no records; a mode needs at least one.")
        mechanism = mode_design(records, categories, epsilon, rule=rule)
        return mechanism, {
            "rule": mechanism.setting.rule,
            "records": records,
            "proof": getattr(mechanism.certificate, "claim", ""),
        }

    _draw(make, **given)


def _alphabet(text: str) -> list[str]:
    """Return the categories of a list, or of a file with one a line."""
    categories = [name.strip() for name in text.split(",")]
    if os.path.isfile(text):  # noqa: PTH113 - a list that is too long is no file either
        try:
            lines = contents(Path(text)).splitlines()
        except (OSError, ValueError):
            raise ParameterError(f"labels is {text!r}; it cannot be read as text.") from None
        categories = [line.strip() for line in lines if line.strip()]
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ParameterError(f"labels is {text!r}; it holds bytes that are no text here.")
    if len(categories) < 2 or not all(categories) or len(set(categories)) != len(categories):
        raise ParameterError(
            f"labels is {text!r}; it must be a file or a list A,B,C of at least two categories, "
            "none empty and none twice."
        )
    return categories

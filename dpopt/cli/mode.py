"""``dpopt mode``: the most common letter of a column, released."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpopt.cli.ledger import Keeper, ledger_options
from dpopt.cli.output import show_draw
from dpopt.cli.release import alphabet_of
from dpopt.cli.words import Words

MODE_RULES = ("best", "ladder", "permute-and-flip", "exponential", "optimal")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--column", required=True, help="Name of the column that holds the letters.")
@click.option(
    "--alphabet",
    required=True,
    type=Words(files=True),
    help="The public letters: a list A,B,C or a text file with one letter a line.",
)
@click.option("--epsilon", type=float, required=True, help="Privacy of the letter, above 0.")
@click.option(
    "--rule",
    type=Words(*MODE_RULES),
    default="best",
    help="best (default), ladder, permute-and-flip, exponential or optimal.",
)
@ledger_options
@click.option("--json", "as_json", is_flag=True, help="Print the letter as JSON.")
def mode(
    file: Path,
    column: str,
    alphabet: str,
    epsilon: float,
    rule: Any,  # noqa: ANN401
    ledger: Path | None,
    dataset: str | None,
    as_json: bool,
) -> None:
    """Release the most common letter of a column of a CSV or Parquet FILE, privately.

    Private for one record that is replaced by another. The alphabet is public: it must be fixed
    before the data are looked at. A record outside it is an error, not a letter. The number of
    records is public too. With --ledger the release is written down before it is drawn; what is
    spent is told on standard error.

    Told beside the letter: by which rule it was drawn, and why that is private. By default it is
    the rule of least mean regret where its tables are small, as for few records, and
    permute-and-flip elsewhere.

    Example: dpopt mode visits.csv --column city --alphabet Bern,Basel,Chur --epsilon 1
    """
    from dpopt import ParameterError, _checks
    from dpopt.data.columns import tally_file
    from dpopt.plurality.mode import mode_design, proof

    _checks.choice("rule", rule, MODE_RULES)
    letters = alphabet_of(alphabet)
    counted = tally_file(file, column, letters)
    records = int(counted.counts.sum())
    if not records:
        raise ParameterError("data holds no records; a mode needs at least one.")
    made = mode_design(records, len(letters), epsilon, rule=rule)
    facts = {"rule": made.setting.rule, "records": records, "proof": proof(made)}
    keeper = Keeper(ledger, dataset)

    def draw() -> list[object]:
        made.asked(counted)
        keeper.charge(made)
        return [letters[int(made.release(counted))]]

    show_draw(draw, letters, made.guarantee, as_json, facts)
    keeper.tell()

"""``dpopt roo`` and ``dpopt sample``: one private letter from a column of records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpopt._errors import ParameterError
from dpopt.cli.output import show, show_draw, to_json
from dpopt.cli.proved import audit_too, require_private, save_proved
from dpopt.cli.words import ROO_RULES, SAMPLE_RULES, Words
from dpopt.files import check_json_target, contents

if TYPE_CHECKING:
    from dpopt.roo import LetterSampler, MinCountSampler

_SHOWN = 40


@click.command()
@click.option("--records", type=int, required=True, help="Number of records n.")
@click.option("--letters", type=int, required=True, help="Size k of the public alphabet.")
@click.option("--epsilon", type=float, required=True, help="Privacy of the letter, above 0.")
@click.option(
    "--rule",
    type=Words(*ROO_RULES),
    default="exact",
    help="exact (default), roo, journal, journal-repaired or conference. The two published rules "
    "can be looked at where they are not private, but then release nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the rule as JSON.")
@audit_too
def roo(
    records: int,
    letters: int,
    epsilon: float,
    rule: str,
    as_json: bool,
    save: Path | None,
    even_if_not_private: bool,
) -> None:
    """Compute the obscuring probabilities q_m of DS-ROO and audit them exactly.

    Example: dpopt roo --records 1000 --letters 10 --epsilon 0.1
    """
    from dpopt.roo import min_count

    if save is not None:
        check_json_target(save)
    start = time.perf_counter()
    sampler = min_count(records, letters, epsilon, rule)
    seconds = time.perf_counter() - start
    save_proved(sampler, save, even_if_not_private)
    show(to_json({**sampler.to_dict(), "seconds": seconds}) if as_json else _text(sampler, seconds))
    require_private(sampler, save, even_if_not_private)


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
    type=Words(*SAMPLE_RULES),
    default="exact",
    help="exact (default), smooth-floor or roo.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the letter as JSON.")
def sample(
    file: Path, column: str, alphabet: str, epsilon: float, rule: str, as_json: bool
) -> None:
    """Release one private letter from a column of a CSV or Parquet FILE.

    The alphabet is public: it must be fixed before the data are looked at. A record outside it is
    an error, not a letter. The number of records is public too.

    Example: dpopt sample visits.csv --column city --alphabet Bern,Basel,Chur --epsilon 1
    """
    from dpopt import _checks
    from dpopt.roo import tally_file

    _checks.choice("rule", rule, SAMPLE_RULES)
    letters = _alphabet(alphabet)
    found = tally_file(file, column, letters)
    sampler = _sampler(int(found.counts.sum()), len(letters), epsilon, rule)
    show_draw(
        lambda: [sampler.release(found, alphabet=letters)], letters, sampler.guarantee, as_json
    )


def _sampler(records: int, letters: int, epsilon: float, rule: str) -> LetterSampler:
    from dpopt.roo import min_count, smooth_floor

    if rule == "smooth-floor":
        return smooth_floor(records, letters, epsilon)
    return min_count(records, letters, epsilon, rule)


def _alphabet(text: str) -> list[str]:
    """Return the letters of a list, or of a file with one a line."""
    path = Path(text)
    try:
        is_file = path.is_file()
    except OSError:
        is_file = False
    if not is_file:
        letters = [part.strip() for part in text.split(",")]
    else:
        try:
            lines = contents(path).splitlines()
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


def _text(sampler: MinCountSampler, seconds: float) -> str:
    audit, setting = sampler.audit, sampler.setting
    spent = "unbounded" if audit.worst_ratio is None else f"{float(audit.worst_ratio):.12g}"
    lines = [
        f"rule {sampler.rule!r} for n = {setting.records} records, k = {setting.letters} letters, "
        f"epsilon = {setting.epsilon:g}: {'private' if sampler.private else 'NOT PRIVATE'}",
        f"worst ratio  {spent}  ({audit.excess_factor:.12g} e^epsilon, over {audit.rows:,} rows)",
        f"attained by  {audit.witness.runs} and {audit.witness.neighbour_runs} (count, letters)",
        f"seconds      {seconds:.3f}",
        "",
        "    m  q_m",
    ]
    lines += [f"{m:5d}  {q:.12f}" for m, q in enumerate(sampler.q[:_SHOWN])]
    if sampler.q.size > _SHOWN:
        lines.append(f"  ... {sampler.q.size - _SHOWN} more")
    lines.append("all of them" if sampler.rule == "roo" else "0 from there on")
    return "\n".join(lines)

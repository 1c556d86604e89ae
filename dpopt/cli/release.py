"""``dpopt release``: outputs of a saved mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dpopt._errors import ParameterError
from dpopt._numbers import shown, typed_rational
from dpopt.cli.certify import loaded
from dpopt.cli.ledger import LEDGER, Keeper
from dpopt.cli.options import File, Flag, TextOrFile, command
from dpopt.cli.output import show_draw
from dpopt.files import contents, read_integer_rows, read_text


@command(
    *LEDGER,
    click.Option(
        ["--trained-once/--fresh", "trained_once"],
        default=None,
        help="With --ledger, of a vote: whether voters were trained once, or every vote was drawn "
        "afresh.  [what covers both is written down]",
    ),
)
def release(
    file: File,
    input: TextOrFile | None = None,
    counts: TextOrFile | None = None,
    distribution: Path | None = None,
    json: Flag = False,
    **keeping: Any,  # noqa: ANN401
) -> None:
    """Release from a saved mechanism, once for each query, with the system's randomness.

    With --ledger it is written down before anything is drawn, and refused beyond the budget; what
    all releases from the data set spend so far is printed on standard error.

    Args:
        file: the mechanism.
        input: what the mechanism takes: votes 1,0,1,... of one query (majority, plurality), the
            counts of all categories (min-count), inputs, by name if they have names (kernel); or a
            file, a query a line.
        counts: for a plurality or one category of records, how many there are of each class
            instead; or a file, a query a line.
        distribution: for a kernel, a file with the user's p instead: counts, decimals or fractions
            such as 1/3, in the order of the inputs. The user's own category is drawn from it first.
        json: print what is released as JSON.
        keeping: the fields of a `Keeper`, trained_once for its opposite, fresh.

    Example:
        dpopt release gamma.json --input 1,1,1,0,0
    """
    if sum(value is not None for value in (input, counts, distribution)) > 1:
        raise ParameterError("give either --input or --counts or --distribution, one of them.")
    from dpopt.public_prior import draw_own_category

    p = None if distribution is None else _rationals(distribution)
    mechanism = loaded(file)
    once = keeping.pop("trained_once", None)
    keeper = Keeper(**keeping, fresh=None if once is None else not once)
    labels = None if p is None else _categories_of(mechanism)
    if p is not None:
        queries = [p.astype(float)] if labels is None else [labels[0]]
    elif input is not None:
        names = getattr(mechanism.setting, "input_names", None)
        rows = read_integer_rows(input) if names is None else _named_rows(input, names)
        queries = [query for row in rows for query in inputs_of(mechanism.setting, row)]
    else:
        queries = _of_nothing(mechanism) if counts is None else _of_counts(mechanism, counts)

    def draw() -> Sequence[object]:
        # All queries are checked before the first of them is written down, and draws.
        inputs = queries if labels is None else [labels[draw_own_category(p, len(labels))]]
        outputs = sum(mechanism._outputs(query) for query in inputs)
        keeper.charge(mechanism, -(-outputs // mechanism.setting.together))
        return [mechanism.release(query) for query in inputs]

    show_draw(draw, _names(mechanism, queries[0]), mechanism.guarantee, json)
    keeper.tell()


def inputs_of(setting: Any, row: Sequence[Any]) -> list[Any]:  # noqa: ANN401
    """Return the inputs that a line of integers or names stands for.

    The counts of all categories; or one input each, where an input of the example is an integer;
    else all of the line is one input.
    """
    from dpopt.public_prior.setting import KeptPriorSetting
    from dpopt.roo import CategorySetting, Tally

    if isinstance(setting, CategorySetting):
        return [Tally.of_counts(list(row), setting.categories)]
    if isinstance(setting, KeptPriorSetting):
        labels = setting.labelled.labels
        if not all(0 <= index < len(labels) for index in row):
            raise ParameterError(f"the inputs must be indices in 0..{len(labels) - 1}.")
        return [labels[index] for index in row]
    example = next(iter(setting.example_neighbours()), (None,))[0]
    return list(row) if isinstance(example, int) else [list(row)]


def _of_counts(mechanism: Any, text: str) -> list[Any]:  # noqa: ANN401
    """Return the inputs of lines of counts."""
    from dpopt.plurality.setting import Plurality
    from dpopt.roo import CategorySetting, Tally

    rows = read_integer_rows(text)
    if not isinstance(mechanism.setting, Plurality | CategorySetting):
        raise ParameterError(
            "counts is given; it belongs to a plurality or one category of records, and only there."
        )
    return [Tally.of_counts(row, len(row)) for row in rows]


def _of_nothing(mechanism: Any) -> list[Any]:  # noqa: ANN401
    """Return the only input of a mechanism whose setting holds the data, such as a mollifier."""
    try:
        mechanism.setting.output_weights(mechanism.table, None)
    except ParameterError:
        raise ParameterError(
            "the mechanism takes an input; give --input, or for a kernel --distribution."
        ) from None
    return [None]


def _categories_of(mechanism: Any) -> Sequence[Any] | None:  # noqa: ANN401
    """Return the inputs of a kernel, one of which is drawn from a user's own p.

    None of a mechanism whose input a distribution is itself, or of none.
    """
    setting = mechanism.setting
    if hasattr(mechanism, "apply"):
        return setting.labelled.labels
    if setting.kind == "kernel":
        return setting.input_names or range(setting.domain.inputs)
    return None


def _names(mechanism: Any, query: object) -> Sequence[object]:  # noqa: ANN401
    """Return what the outputs are called; an empty range if they are integers."""
    from dpopt.shape import Setting

    setting = mechanism.setting
    if type(setting).output is Setting.output or getattr(setting, "output_names", "") is None:
        return range(0)
    outputs = len(setting.output_weights(mechanism.table, query))
    return [setting.output(index) for index in range(outputs)]


def _named_rows(text: str, names: Sequence[object]) -> list[list[str]]:
    """Return inputs by their names, separated by commas: of a text, or lines of a file it names."""
    texts = {str(name) for name in names}
    lines = [text]
    if not {word.strip() for word in text.split(",")} <= texts:
        try:
            lines = [line for line in contents(Path(text)).splitlines() if line.strip()]
        except (OSError, ValueError):
            lines = []
    rows = [[word.strip() for word in line.split(",")] for line in lines]
    # What was typed may be data, and is not shown.
    if not rows or not {word for row in rows for word in row} <= texts:
        raise ParameterError(
            "input is no list, nor a file, of names of inputs; they are "
            f"{shown(list(names))[1:-1]}, separated by commas."
        )
    return rows


def _rationals(path: Path) -> Any:  # noqa: ANN401
    """Return the numbers of a file exactly, as an array of fractions."""
    import numpy as np

    words = read_text(path).replace(",", " ").split()
    try:
        return np.array([typed_rational(word) for word in words], dtype=object)
    except ValueError:
        raise ParameterError(
            f"distribution is {str(path)!r}; it must hold counts, decimals or fractions."
        ) from None

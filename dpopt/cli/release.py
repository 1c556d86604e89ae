"""``dpopt certify``, ``release`` and ``sample``: saved mechanisms, tables, letters of a column."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly, shown, typed_rational
from dpopt.cli.ledger import Keeper, ledger_options
from dpopt.cli.output import show, show_draw, to_json
from dpopt.cli.words import OwnBlocks, Words
from dpopt.files import TABLES, check_json_target, contents, read_integer_rows, read_text

if TYPE_CHECKING:
    from dpopt.privacy import Certificate, ExactKernel, Least
    from dpopt.shape import Design

    Mechanism = Design | ExactKernel

GRAPHS = ("complete", "path", "cycle", "grid", "hamming")
SAMPLE_RULES = ("exact", "smooth-floor", "roo")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--epsilon", type=float, help="Of a table: private for this; else the least is told.")
@click.option("--delta", type=Words("least"), help="In [0, 1), or least: the least one.  [0]")
@click.option(
    "--graph",
    type=Words(*GRAPHS),
    help="Neighbouring inputs: complete, path, cycle, grid, hamming, or edges 0:1,1:2, between "
    "names where inputs have names.  [complete]",
)
@click.option("--shape", type=Words(), help="For grid and hamming, sizes such as 2,3,3.")
@click.option(
    "--inputs",
    type=Words(),
    help="Names of the inputs in their order, low,mid,high: a graph with a name goes by it.",
)
@click.option("--rows", type=OwnBlocks(), help="A CSV file of own rows that are kept.")
@click.option(
    "--tolerance", type=float, help="Most total variation that a row is moved by.  [0.001]"
)
@click.option("--save", type=click.Path(path_type=Path), help="Write the mechanism as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print the certificate as JSON.")
def certify(file: Path, as_json: bool, save: Path | None, **given: Any) -> None:  # noqa: ANN401
    """Certify a saved mechanism again; or a table: make it private and prove it.

    FILE is a mechanism that was saved, proved again from its integers; or a table of probabilities,
    .csv, .tsv, .npz, .npy or .parquet, with a row for each input or the columns input, output and
    probability. With --epsilon the table is moved to a private one next to it, which is proved;
    without, the least epsilon of the table is told. Exit code 4 if it is not private.

    Example: dpopt certify kernel.csv --epsilon 1 --graph path --save kernel.json
    """
    asked = {name: value for name, value in given.items() if value is not None}
    start = time.perf_counter()
    if file.suffix.lower() in TABLES:
        _certify_table(file, asked, save, as_json, start)
        return
    unused = next(iter(asked), None if save is None else "save")
    if unused is not None:
        raise ParameterError(
            f"{unused} is given, which belongs to a table ({', '.join(TABLES)}); file "
            f"{str(file)!r} is taken for a saved mechanism, which has its own."
        )
    proof = _mechanism(file).certificate
    if proof is None:
        raise NotPrivateError(f"file {str(file)!r} holds a mechanism without a certificate.")
    _show_proof(proof, {}, start, as_json)


def _certify_table(
    file: Path, asked: dict[str, Any], save: Path | None, as_json: bool, start: float
) -> None:
    """Make the table of a file private and prove it, or tell its least epsilon or delta."""
    if "delta" in asked:
        asked["delta"] = _delta(asked["delta"])
    if save is not None:
        if "epsilon" not in asked or asked.get("delta", 0.0) is None:
            raise ParameterError(
                f"save is {str(save)!r} and no mechanism is made: give epsilon and delta for one."
            )
        check_json_target(save)
    from dpopt.kernel.certify import certify
    from dpopt.privacy import Least

    made = certify(file, **asked)
    if isinstance(made, Least):
        seconds = time.perf_counter() - start
        show(to_json({**made.to_dict(), "seconds": seconds}) if as_json else _told(made, seconds))
        if made.upper == float("inf"):
            raise NotPrivateError(
                "no epsilon is enough: an output of one input is impossible for a neighbour."
            )
        return
    if save is not None:
        made.save(save)
    costs = {"moved": made.moved, "residuals": dict(made.residuals)}
    _show_proof(made.certificate, costs, start, as_json)


def _delta(text: str) -> float | None:
    """Return a delta as typed; None for the least one."""
    if text == "least":
        return None
    try:
        return float(text)
    except ValueError:
        raise ParameterError(
            f"delta is {shown(text)}; it must be a number in [0, 1), or least."
        ) from None


def _told(least: Least, seconds: float) -> str:
    """Return a line for each fact of a least epsilon or delta."""
    x, other = least.inputs
    outputs = ", ".join(map(str, least.outputs)) or "none"
    given = "delta" if least.parameter == "epsilon" else "epsilon"
    lines = [
        f"least {least.parameter:8s} {least.upper!r}",
        f"at least       {least.lower!r}",
        f"for {given:10s} {least.given:g}",
        f"needed by      inputs {x} and {other}, outputs {outputs}",
        f"rows moved by  {least.moved:.3g}",
        f"seconds        {seconds:.3f}",
    ]
    return "\n".join(lines)


def _show_proof(proof: Certificate, costs: dict[str, Any], start: float, as_json: bool) -> None:
    """Show a certificate; of a table, also what it cost, and what its own rows are missed by."""
    seconds = time.perf_counter() - start
    if as_json:
        show(to_json({"private": True, **proof.to_dict(), **costs, "seconds": seconds}))
        return
    over = f"2^{proof.bits}" if proof.bits else "their sum"
    lines = [
        f"({proof.guarantee.epsilon:g}, {proof.guarantee.delta:g})-DP: {proof.claim}",
        f"constraints  {proof.constraints:,}",
        f"worst slack  {roughly(proof.slack)}",
        f"tightest     {proof.tightest}",
        f"arithmetic   {proof.arithmetic}; weights over {over}",
        *(f"moved by     {costs[name]:.3g}" for name in costs if name == "moved"),
        *(f"row {name} missed by {by:.3g}" for name, by in costs.get("residuals", {}).items()),
        f"seconds      {seconds:.3f}",
    ]
    show("\n".join(lines))


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--input",
    "text",
    type=Words(files=True),
    help="What the mechanism takes: votes 1,0,1,... of one query (majority, plurality), the counts "
    "of all letters (min-count), inputs, by name if they have names (kernel); or a file, a query a "
    "line.",
)
@click.option(
    "--counts",
    type=Words(files=True),
    help="For a plurality or one letter of records, how many there are of each class instead; or a "
    "file, a query a line.",
)
@click.option(
    "--distribution",
    type=click.Path(path_type=Path),
    help="For a kernel, a file with the user's p instead: counts, decimals or fractions such as "
    "1/3, in the order of the inputs. The user's own letter is drawn from it first.",
)
@ledger_options
@click.option(
    "--trained-once/--fresh",
    "trained_once",
    default=None,
    help="With --ledger, of a vote: whether voters were trained once, or every vote was drawn "
    "afresh.  [what covers both is written down]",
)
@click.option("--json", "as_json", is_flag=True, help="Print what is released as JSON.")
def release(
    file: Path,
    text: str | None,
    counts: str | None,
    distribution: Path | None,
    ledger: Path | None,
    dataset: str | None,
    trained_once: bool | None,
    as_json: bool,
) -> None:
    """Release from a saved mechanism, once for each query, with the system's randomness.

    With --ledger it is written down before anything is drawn, and refused beyond the budget; what
    all releases from the data set spend so far is told on standard error.

    Example: dpopt release gamma.json --input 1,1,1,0,0
    """
    if sum(value is not None for value in (text, counts, distribution)) > 1:
        raise ParameterError("give either --input or --counts or --distribution, one of them.")
    p = None if distribution is None else _rationals(distribution)
    mechanism = _mechanism(file)
    if mechanism.certificate is None:
        raise NotPrivateError(f"file {str(file)!r} holds a mechanism without a certificate.")
    names = getattr(getattr(mechanism, "setting", None), "input_names", None)
    rows: list[list[Any]] = []
    line = text if counts is None else counts
    if line is not None:
        named = None if counts is not None else names
        rows = read_integer_rows(line) if named is None else _named_rows(line, named)
    keeper = Keeper(ledger, dataset, None if trained_once is None else not trained_once)
    if p is not None:
        draw, names = _of_p(mechanism, p, keeper)
    elif line is None:
        draw, names = _of_nothing(mechanism, keeper)
    elif counts is None:
        draw, names = _of_rows(mechanism, rows, keeper)
    else:
        draw, names = _of_counts(mechanism, rows, keeper)
    show_draw(draw, names, mechanism.guarantee, as_json)
    keeper.tell()


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
@ledger_options
@click.option("--json", "as_json", is_flag=True, help="Print the letter as JSON.")
def sample(
    file: Path,
    column: str,
    alphabet: str,
    epsilon: float,
    rule: str,
    ledger: Path | None,
    dataset: str | None,
    as_json: bool,
) -> None:
    """Release one private letter from a column of a CSV or Parquet FILE.

    The alphabet is public: it must be fixed before the data are looked at. A record outside it is
    an error, not a letter. The number of records is public too. With --ledger it is written down
    before it is drawn; what is spent is told on standard error.

    Example: dpopt sample visits.csv --column city --alphabet Bern,Basel,Chur --epsilon 1
    """
    from dpopt import _checks
    from dpopt.roo import min_count, smooth_floor, tally_file

    _checks.choice("rule", rule, SAMPLE_RULES)
    letters = alphabet_of(alphabet)
    tally = tally_file(file, column, letters)
    sizes = int(tally.counts.sum()), len(letters), epsilon
    sampler = smooth_floor(*sizes) if rule == "smooth-floor" else min_count(*sizes, rule)
    keeper = Keeper(ledger, dataset)

    def draw() -> list[object]:
        sampler.asked(tally, alphabet=letters)
        keeper.charge(sampler)
        return [sampler.release(tally, alphabet=letters)]

    show_draw(draw, letters, sampler.guarantee, as_json)
    keeper.tell()


def _mechanism(file: Path) -> Mechanism:
    """Load a saved mechanism, proved again."""
    from dpopt.shape import load

    return load(file)


Draws = tuple[Callable[[], Sequence[object]], Sequence[object]]
"""What draws for all queries, to be called once, and the names of all that can be drawn."""


def _of_rows(mechanism: Mechanism, rows: list[list[Any]], keeper: Keeper) -> Draws:
    """Return the draws for lines of integers, as the mechanism's setting understands a line."""
    from dpopt.privacy import ExactKernel

    if isinstance(mechanism, ExactKernel):
        # A kernel of no setting.
        return _of_queries(mechanism, [number for row in rows for number in row], range(0), keeper)
    queries = [query for row in rows for query in mechanism.setting.queries(row)]
    return _of_queries(mechanism, queries, _names(mechanism, queries[0]), keeper)


def _of_counts(mechanism: Mechanism, rows: list[list[int]], keeper: Keeper) -> Draws:
    """Return the draws for lines of counts.

    Raises:
        ParameterError: for a mechanism that takes none.
    """
    from dpopt.plurality import PluralityDesign
    from dpopt.roo import LetterSetting, Tally

    setting = getattr(mechanism, "setting", None)
    if not isinstance(mechanism, PluralityDesign) and not isinstance(setting, LetterSetting):
        raise ParameterError(
            "counts is given; it belongs to a plurality or one letter of records, and only there."
        )
    queries = [Tally.of_counts(row, len(row)) for row in rows]
    return _of_queries(mechanism, queries, _names(mechanism, queries[0]), keeper)


def _of_queries(
    mechanism: Any,  # noqa: ANN401
    queries: Sequence[object],
    names: Sequence[object],
    keeper: Keeper,
) -> Draws:
    """Return the draws for inputs of a mechanism, one for each."""

    def draw() -> Sequence[object]:
        # All queries are checked before the first of them is written down, and draws.
        keeper.charge(mechanism, sum(mechanism.asked(query) for query in queries))
        return [mechanism.release(query) for query in queries]

    return draw, names


def _of_nothing(mechanism: Mechanism, keeper: Keeper) -> Draws:
    """Return the draw of a mechanism whose setting holds the data, such as a mollifier."""
    from dpopt.privacy import ExactKernel

    try:
        if isinstance(mechanism, ExactKernel):
            raise ParameterError("it is a kernel.")
        mechanism.setting.law(mechanism.units, None)
    except ParameterError:
        raise ParameterError(
            "the mechanism takes an input; give --input, or for a kernel --distribution."
        ) from None
    return _once(mechanism, lambda: None, keeper), _names(mechanism, None)


def _once(mechanism: Any, data: Callable[[], object], keeper: Keeper) -> Callable[[], list[object]]:  # noqa: ANN401
    """Return what draws one output for data that are made first, and written down before it."""

    def draw() -> list[object]:
        made = data()
        mechanism.asked(made)
        keeper.charge(mechanism)
        return [mechanism.release(made)]

    return draw


def _of_p(mechanism: Any, p: Any, keeper: Keeper) -> Draws:  # noqa: ANN401
    """Return the draw for a user's own law p over the inputs of a kernel."""
    from dpopt.public_prior import draw_own_letter

    setting = getattr(mechanism, "setting", None)
    if hasattr(mechanism, "release_from"):
        letters = mechanism.prior.letters
        own = lambda: letters[draw_own_letter(p, len(letters))]  # noqa: E731
        return _once(mechanism, own, keeper), letters
    inputs = getattr(mechanism if setting is None else setting, "inputs", None)
    if isinstance(inputs, int):
        names = getattr(setting, "input_names", None) or range(inputs)
        own = lambda: names[draw_own_letter(p, inputs)]  # noqa: E731
        return _once(mechanism, own, keeper), getattr(setting, "output_names", None) or range(0)
    # A law is itself the input of this mechanism, or of none.
    law = p.astype(float)
    return _once(mechanism, lambda: law, keeper), _names(mechanism, law)


def _names(mechanism: Design, query: object) -> Sequence[object]:
    """Return what the outputs are called; an empty range if they are integers."""
    from dpopt.shape import Setting

    if type(mechanism.setting).output is Setting.output:
        return range(0)
    outputs = len(mechanism.setting.law(mechanism.units, query))
    return [mechanism.setting.output(place) for place in range(outputs)]


def _named_rows(text: str, names: Sequence[object]) -> list[list[str]]:
    """Return inputs by their names, separated by commas: from a text, or lines of a file it names.

    Raises:
        ParameterError: if they are other ones; what was typed may be data, and is not shown.
    """
    known = {str(name) for name in names}

    def parted(line: str) -> list[str]:
        return [word.strip() for word in line.split(",")]

    if set(parted(text)) <= known:
        return [parted(text)]
    try:
        rows = [parted(line) for line in contents(Path(text)).splitlines() if line.strip()]
    except (OSError, ValueError):
        rows = []
    if not rows or not {word for row in rows for word in row} <= known:
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


def alphabet_of(text: str) -> list[str]:
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

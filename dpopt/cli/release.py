"""``dpopt certify``, ``release`` and ``sample``: saved mechanisms, tables, letters of a column."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly, typed_rational
from dpopt.cli.ledger import Keeper, ledger_options
from dpopt.cli.output import show, show_draw, to_json
from dpopt.cli.words import OwnBlocks, Words
from dpopt.files import TABLES, check_json_target, contents, read_integer_rows, read_text

if TYPE_CHECKING:
    from dpopt.design import Design
    from dpopt.privacy import Certificate, ExactKernel, Least

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
    help="Neighbouring inputs: complete, path, cycle, grid, hamming, or edges 0:1,1:2.  [complete]",
)
@click.option("--shape", type=Words(), help="For grid and hamming, sizes such as 2,3,3.")
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
    costs = {"cost": made.cost, "residuals": dict(made.residuals)}
    _show_proof(made.certificate, costs, start, as_json)


def _delta(text: str) -> float | None:
    """Return a delta as typed; None for the least one."""
    if text == "least":
        return None
    try:
        return float(text)
    except ValueError:
        from dpopt._numbers import shown

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
        *(f"moved by     {costs[name]:.3g}" for name in costs if name == "cost"),
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
    help="What the mechanism takes: votes 1,0,1,... of one query (majority), the counts of all "
    "letters (min-count), inputs (kernel); or a file, a query a line.",
)
@click.option(
    "--distribution",
    type=click.Path(path_type=Path),
    help="For a kernel, a file with the user's p instead: counts, decimals or fractions such as "
    "1/3, in the order of the inputs. The user's own letter is drawn from it first.",
)
@ledger_options("FILE.ledger")
@click.option(
    "--trained-once/--fresh",
    "trained_once",
    default=None,
    help="Of a vote: whether voters were trained once, or every vote was drawn afresh.  [what "
    "covers both is written down]",
)
@click.option(
    "--group",
    help="Of a vote: your name of the voters, the same for all that is asked of them; needed with "
    "--trained-once.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what is released as JSON.")
def release(
    file: Path,
    text: str | None,
    distribution: Path | None,
    as_json: bool,
    trained_once: bool | None,
    group: str | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """Release from a saved mechanism, once for each query, with the system's randomness.

    Before anything is drawn it is written to the ledger beside FILE, which refuses what is beyond
    its budget; what all releases from the data set spend so far is told on standard error.

    Example: dpopt release gamma.json --input 1,1,1,0,0
    """
    if text is not None and distribution is not None:
        raise ParameterError("give either --input or --distribution, not both.")
    rows = [] if text is None else read_integer_rows(text)
    p = None if distribution is None else _rationals(distribution)
    mechanism = _mechanism(file)
    voters = {"trained_once": trained_once, "group": group}
    told = {name: value for name, value in voters.items() if value is not None}
    keeper = _keeper(file, mechanism, told, given)
    if text is None and p is None:
        draw, names = _of_nothing(mechanism, keeper)
    else:
        of_law = p is not None
        draw, names = (
            _of_p(mechanism, p, keeper) if of_law else _of_rows(mechanism, rows, keeper, told)
        )
    show_draw(draw, names, mechanism.guarantee, as_json)
    keeper.tell()


def _keeper(
    file: Path, mechanism: Mechanism, told: dict[str, Any], given: dict[str, Any]
) -> Keeper:
    """Return the ledger beside the file, or as the options name it."""
    from dpopt.privacy.ledger import beside

    proof = mechanism.certificate
    if proof is None:
        raise NotPrivateError(f"file {str(file)!r} holds a mechanism without a certificate.")
    if told and getattr(getattr(mechanism, "setting", None), "behind", None) is None:
        raise ParameterError(
            f"{next(iter(told))} is given; it belongs to a vote of private voters, and only there."
        )
    return Keeper(**given, beside=beside(file), digest=proof.digest)


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
@ledger_options()
@click.option("--json", "as_json", is_flag=True, help="Print the letter as JSON.")
def sample(
    file: Path,
    column: str,
    alphabet: str,
    epsilon: float,
    rule: str,
    as_json: bool,
    **given: Any,  # noqa: ANN401
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
    keeper = Keeper(**given)
    show_draw(
        lambda: [sampler.release(tally, alphabet=letters, ledger=keeper)],
        letters,
        sampler.guarantee,
        as_json,
    )
    keeper.tell()


def _mechanism(file: Path) -> Mechanism:
    """Load a saved mechanism, proved again.

    Raises:
        ParameterError: also if the file holds the answer to a question, which releases nothing.
    """
    from dpopt.design import Answer, Design, load

    found = load(file)
    if isinstance(found, Answer) and not isinstance(found, Design):
        raise ParameterError(
            f"file {str(file)!r} answers a question about privacy ({found.setting.kind}); it holds "
            "no mechanism."
        )
    return found


Draws = tuple[Callable[[], Sequence[object]], Sequence[object]]
"""What draws for all queries, to be called once, and the names of all that can be drawn."""


def _of_rows(
    mechanism: Mechanism, rows: list[list[int]], keeper: Keeper, told: dict[str, Any]
) -> Draws:
    """Return the draws for lines of integers, as the mechanism's setting understands a line."""
    from dpopt.privacy import ExactKernel

    if isinstance(mechanism, ExactKernel):
        import numpy as np

        # A kernel of no setting, which checks all inputs before it draws.
        inputs = [number for row in rows for number in row]
        return lambda: np.atleast_1d(mechanism.release(inputs, ledger=keeper)).tolist(), range(0)
    setting, units = mechanism.setting, mechanism.units
    queries = [query for row in rows for query in setting.queries(row)]
    keeper.times = len(queries)

    def draw() -> Sequence[object]:
        # All queries are checked before the first of them is written down, and draws.
        for query in queries:
            setting.law(units, query)
        return [mechanism.release(query, ledger=keeper, **told) for query in queries]

    return draw, _names(mechanism, queries[0])


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
    return lambda: [mechanism.release(ledger=keeper)], _names(mechanism, None)


def _of_p(mechanism: Any, p: Any, keeper: Keeper) -> Draws:  # noqa: ANN401
    """Return the draw for a user's own law p over the inputs of a kernel."""
    from_law = getattr(mechanism, "release_from", None)
    if from_law is not None:
        return lambda: [from_law(p, ledger=keeper)], mechanism.prior.letters
    inputs = getattr(getattr(mechanism, "setting", mechanism), "inputs", None)
    if isinstance(inputs, int):
        from dpopt.public_prior import draw_own_letter

        def draw() -> Sequence[object]:
            return [mechanism.release(draw_own_letter(p, inputs), ledger=keeper)]

        return draw, range(0)
    # A law is itself the input of this mechanism, or of none.
    law = p.astype(float)
    return lambda: [mechanism.release(law, ledger=keeper)], _names(mechanism, law)


def _names(mechanism: Design, query: object) -> Sequence[object]:
    """Return what the outputs are called; an empty range if they are integers."""
    from dpopt.design import Setting

    if type(mechanism.setting).output is Setting.output:
        return range(0)
    outputs = len(mechanism.setting.law(mechanism.units, query))
    return [mechanism.setting.output(place) for place in range(outputs)]


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

"""``dpopt certify``: a saved mechanism proved again; or a table made private, and proved."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly, shown
from dpopt.cli.options import File, Flag, command
from dpopt.cli.output import show, to_json
from dpopt.files import TABLES, check_json_target

if TYPE_CHECKING:
    from dpopt.kernel.setting import ExtraRows
    from dpopt.privacy import Certificate, Least


@command()
def certify(
    file: File,
    epsilon: float | None = None,
    delta: str | Literal["least"] | None = None,
    graph: str | Literal["complete", "path", "cycle", "grid", "hamming"] | None = None,
    shape: str | None = None,
    inputs: str | None = None,
    rows: ExtraRows | None = None,
    tolerance: float | None = None,
    save: Path | None = None,
    json: Flag = False,
) -> None:
    """Certify a saved mechanism again; or a table: make it private and prove it.

    FILE is a mechanism that was saved, proved again from its integers; or a table of probabilities,
    .csv, .tsv, .npz, .npy or .parquet, with a row for each input or the columns input, output and
    probability. With --epsilon the table is moved to a private one next to it, which is proved;
    without, the least epsilon of the table is told. Exit code 4 if it is not private.

    Args:
        file: the mechanism or the table.
        epsilon: of a table: private for this; else the least is told.
        delta: In [0, 1), or least: the least one.  [0]
        graph: neighbouring inputs: complete, path, cycle, grid, hamming, or edges 0:1,1:2, between
            names where inputs have names.  [complete]
        shape: for grid and hamming, sizes such as 2,3,3.
        inputs: names of the inputs in their order, low,mid,high: a graph with a name goes by it.
        rows: A CSV file of own rows that are kept.
        tolerance: most total variation that a row is moved by.  [0.001]
        save: write the mechanism as JSON.
        json: print the certificate as JSON.

    Example:
        dpopt certify kernel.csv --epsilon 1 --graph path --save kernel.json
    """
    given = {"epsilon": epsilon, "delta": delta, "graph": graph, "shape": shape}
    given |= {"inputs": inputs, "rows": rows, "tolerance": tolerance}
    asked = {name: value for name, value in given.items() if value is not None}
    start = time.perf_counter()
    if file.suffix.lower() in TABLES:
        record, lines = _table(file, asked, save)
    else:
        unused = next(iter(asked), None if save is None else "save")
        if unused is not None:
            raise ParameterError(
                f"{unused} is given, which belongs to a table ({', '.join(TABLES)}); file "
                f"{str(file)!r} is taken for a saved mechanism, which has its own."
            )
        proof = loaded(file).certificate
        record, lines = {"private": True, **proof.to_dict()}, _proof(proof)
    seconds = time.perf_counter() - start
    text = "\n".join([*lines, f"seconds        {seconds:.3f}"])
    show(to_json({**record, "seconds": seconds}) if json else text)
    if record.get("upper", 0.0) is None:
        raise NotPrivateError(
            "no epsilon is enough: an output of one input is impossible for a neighbour."
        )


def loaded(file: Path) -> Any:  # noqa: ANN401
    """Return a saved mechanism, proved again.

    Raises:
        NotPrivateError: if it has no certificate.
    """
    from dpopt.shape import load

    mechanism = load(file)
    if mechanism.certificate is None:
        raise NotPrivateError(f"file {str(file)!r} holds a mechanism without a certificate.")
    return mechanism


def _table(
    file: Path, asked: dict[str, Any], save: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """Make the table of a file private and prove it, or find its least epsilon or delta.

    Returns:
        What is printed, as plain values and as lines.
    """
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
        return made.to_dict(), _least(made)
    if save is not None:
        made.save(save)
    proof, rows = made.certificate, dict(made.residuals)
    record = {"private": True, **proof.to_dict(), "moved": made.moved, "residuals": rows}
    missed = [f"row {name} missed by {by:.3g}" for name, by in rows.items()]
    return record, [*_proof(proof), f"moved by     {made.moved:.3g}", *missed]


def _delta(text: str) -> float | None:
    """Return a delta as typed; None for the least one."""
    try:
        return None if text == "least" else float(text)
    except ValueError:
        raise ParameterError(
            f"delta is {shown(text)}; it must be a number in [0, 1), or least."
        ) from None


def _least(least: Least) -> list[str]:
    """Return a line for each fact of a least epsilon or delta."""
    x, other = least.inputs
    outputs = ", ".join(map(str, least.outputs)) or "none"
    given = "delta" if least.parameter == "epsilon" else "epsilon"
    return [
        f"least {least.parameter:8s} {least.upper!r}",
        f"at least       {least.lower!r}",
        f"for {given:10s} {least.given:g}",
        f"needed by      inputs {x} and {other}, outputs {outputs}",
        f"rows moved by  {least.moved:.3g}",
    ]


def _proof(proof: Certificate) -> list[str]:
    """Return a line for each fact of a certificate."""
    return [
        f"({proof.guarantee.epsilon:g}, {proof.guarantee.delta:g})-DP: {proof.claim}",
        f"constraints  {proof.constraints:,}",
        f"worst slack  {roughly(proof.slack)}",
        f"tightest     {proof.tightest}",
        "arithmetic   exact integers",
    ]

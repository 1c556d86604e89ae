"""``dpopt certify``, ``verify``: a saved mechanism proved again; or a table made private."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import roughly
from dpopt.cli.options import File, Flag, command
from dpopt.cli.output import listed, show_record
from dpopt.files import TABLES, check_json_target

if TYPE_CHECKING:
    from dpopt.kernel.constraints import Constraints


@command()
def certify(
    file: File,
    epsilon: float | None = None,
    delta: float | Literal["least"] | None = None,
    graph: str | Literal["complete", "path", "cycle", "grid", "hamming"] | None = None,
    shape: str | None = None,
    inputs: str | None = None,
    constraints: Constraints | None = None,
    tolerance: float | None = None,
    save: Path | None = None,
    json: Flag = False,
) -> None:
    """Certify a saved mechanism again; or a table: make it private and prove it.

    FILE is a mechanism that was saved, proved again from its integers; or a table of probabilities,
    .csv or .tsv, with a row for each input or the columns input, output and probability. With
    --epsilon the table is moved to a private one next to it, which is proved; without, the least
    epsilon of the table is printed. Exit code 4 if it is not private.

    Args:
        file: the mechanism or the table.
        epsilon: of a table: private for this; else the least is printed.
        delta: In [0, 1), or least: the least one.  [0]
        graph: neighbouring inputs: complete, path, cycle, grid, hamming, or edges 0:1,1:2, between
            names where inputs have names.  [complete]
        shape: for grid and hamming, sizes such as 2,3,3.
        inputs: names of the inputs in their order, low,mid,high: a graph with a name goes by it.
        constraints: A JSON file of linear rows of your own, which are kept.
        tolerance: most total variation that a row is moved by.  [0.001]
        save: write the mechanism as JSON.
        json: print the certificate as JSON.

    Example:
        dpopt certify kernel.csv --epsilon 1 --graph path --save kernel.json
    """
    asked = {"epsilon": epsilon, "delta": delta, "graph": graph, "shape": shape, "inputs": inputs}
    asked |= {"constraints": constraints, "tolerance": tolerance}
    stated = {name: value for name, value in asked.items() if value is not None}
    from dpopt.shape import load

    start = time.perf_counter()
    table = file.suffix.lower() in TABLES
    unused = next(iter(stated), None if save is None else "save")
    if unused is not None and not table:
        raise ParameterError(
            f"{unused} is given, which belongs to a table ({', '.join(TABLES)}); file "
            f"{str(file)!r} is taken for a saved mechanism, which has its own."
        )
    if delta == "least":
        stated["delta"] = None
    design: Any = _of_table(file, stated, save) if table else load(file)
    record, lines = _least(design) if hasattr(design, "lower") else _proof(design, table)
    seconds = time.perf_counter() - start
    lines += listed({"seconds": f"{seconds:.3f}"})
    show_record(json, {**record, "seconds": seconds}, lines)
    if getattr(design, "upper", 0.0) == math.inf:
        raise NotPrivateError(
            "no epsilon is enough: an output of one input is impossible for a neighbour."
        )


def _of_table(file: Path, asked: dict[str, Any], save: Path | None) -> Any:  # noqa: ANN401
    """Make the table of a file private, prove and save it; or find its least epsilon or delta."""
    if save is not None:
        if "epsilon" not in asked or asked.get("delta", 0.0) is None:
            raise ParameterError(
                f"save is {str(save)!r} and no mechanism is made: give epsilon and delta for one."
            )
        check_json_target(save)
    from dpopt.kernel.certify import certify

    design = certify(file, **asked)
    if save is not None:
        cast(Any, design).save(save)
    return design


def _least(least: Any) -> tuple[dict[str, Any], list[str]]:  # noqa: ANN401
    """Return the lines about a least epsilon or delta."""
    x, other = least.inputs
    outputs = ", ".join(map(str, least.outputs)) or "none"
    facts = {
        f"least {least.parameter}": repr(least.upper),
        "at least": repr(least.lower),
        f"for {'delta' if least.parameter == 'epsilon' else 'epsilon'}": f"{least.given:g}",
        "needed by": f"inputs {x} and {other}, outputs {outputs}",
        "rows moved by": f"{least.moved:.3g}",
    }
    return least.to_dict(), listed(facts)


def _proof(made: Any, table: bool) -> tuple[dict[str, Any], list[str]]:  # noqa: ANN401
    """Return the lines about a certificate; of a table, also what its constraints are missed by."""
    from dpopt.privacy.guarantee import in_short

    proof = made.certificate
    costs = {"moved": made.moved, "residuals": dict(made.residuals)} if table else {}
    facts = {
        "constraints": f"{proof.constraints:,}",
        "worst slack": roughly(proof.slack),
        "tightest": proof.tightest,
        "arithmetic": proof.arithmetic,
        **({"moved by": f"{made.moved:.3g}"} if table else {}),
    }
    missed = [f"row {name} missed by {by:.3g}" for name, by in costs.get("residuals", {}).items()]
    lines = [f"{in_short(proof.guarantee)}: {proof.claim}", *listed(facts), *missed]
    return {"private": True, **proof.to_dict(), **costs}, lines


@command()
def verify(file: File, proof: File | None = None, copy: Flag = False, json: Flag = False) -> None:
    """Check a saved design and the proof that nothing is better, without this package.

    FILE is what --save wrote, X.json; PROOF is what --proof wrote, X.proof.json, found by itself if
    it lies beside. verify.py, one file of the standard library, reads both in a Python of its own
    and decides every inequality exactly. Exit code 4 for what is not private, or not shown.

    Args:
        file: the design.
        proof: that nothing is better.
        copy: lay verify.py beside FILE, for others to run.
        json: print what was shown as JSON.

    Example:
        dpopt verify gamma.json
    """
    import subprocess

    from dpopt import verify as verifier
    from dpopt.proofs.saved import proof_path, write_verifier

    for path in (file, proof):
        if path is not None and not os.path.isfile(path):  # noqa: PTH113 - whatever its name is
            raise ParameterError(f"file is {str(path)!r}; there is no such file.")
    proof_file = proof_path(file)
    if proof is None and proof_file.is_file():
        proof = proof_file
    start = time.perf_counter()
    files = [str(path.absolute()) for path in (file, proof) if path is not None]
    done = subprocess.run(
        [sys.executable, "-I", "-S", verifier.__file__, *files],
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
    decided = done.returncode in (0, 4)
    if copy and decided:
        # Beside what is no such file, or with another one's proof, nothing is laid.
        write_verifier(file)
    said = done.stdout.splitlines()
    if decided or (said and not json):
        record = {"verified": done.returncode == 0, "proof": None if proof is None else str(proof)}
        seconds = time.perf_counter() - start
        show_record(json, {**record, "shown": said, "seconds": seconds}, said)
    if done.returncode:
        why = f"file {str(file)!r}: {done.stderr.strip() or 'verify.py was ended'}"
        raise (NotPrivateError if done.returncode == 4 else ParameterError)(why)

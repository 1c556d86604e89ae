"""``dpopt certify`` and ``dpopt release``: saved mechanisms."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import click

from dpopt._errors import NotPrivateError
from dpopt._numbers import roughly
from dpopt.cli.output import show, show_draw, to_json
from dpopt.cli.words import Words
from dpopt.files import read_integer_rows


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the certificate as JSON.")
def certify(file: Path, as_json: bool) -> None:
    """Certify a saved mechanism again, from its integers. Exit code 4 if it is not private.

    Example: dpopt certify gamma.json
    """
    from dpopt import load

    start = time.perf_counter()
    proof = load(file).certificate
    if proof is None:
        raise NotPrivateError(f"file {str(file)!r} holds a mechanism without a certificate.")
    seconds = time.perf_counter() - start
    if as_json:
        show(to_json({"private": True, **proof.to_dict(), "seconds": seconds}))
        return
    lines = [
        f"({proof.guarantee.epsilon:g}, {proof.guarantee.delta:g})-DP: {proof.claim}",
        f"constraints  {proof.constraints:,}",
        f"worst slack  {roughly(proof.slack)}",
        f"tightest     {proof.tightest}",
        f"arithmetic   {proof.arithmetic}; probabilities over 2^{proof.bits}",
        f"seconds      {seconds:.3f}",
    ]
    show("\n".join(lines))


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--input",
    "text",
    type=Words(files=True),
    required=True,
    help="Votes 1,0,1,... of one query (majority), inputs (kernel), or the counts of all letters "
    "(min-count); or a file, a query a line.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what is released as JSON.")
def release(file: Path, text: str, as_json: bool) -> None:
    """Release from a saved mechanism, once for each query, with the system's randomness.

    Example: dpopt release gamma.json --input 1,1,1,0,0
    """
    from dpopt import load
    from dpopt.majority import MajorityDesign
    from dpopt.public_prior import SamplingKernel
    from dpopt.roo import MinCountSampler

    queries = read_integer_rows(text)
    mechanism = load(file)
    letters: Sequence[object] = range(0)

    def drawn() -> Sequence[object]:
        # All queries are checked before the first of them draws.
        if isinstance(mechanism, MinCountSampler):
            fitting = [mechanism.fitting(counts) for counts in queries]
            return [mechanism.release(counts=counts) for counts in fitting]
        if isinstance(mechanism, MajorityDesign):
            found = mechanism.release(queries)
        else:
            found = mechanism.release([index for row in queries for index in row])
        return list(cast("list[object]", found))

    if isinstance(mechanism, SamplingKernel):
        letters = mechanism.prior.letters
    show_draw(drawn, letters, mechanism.guarantee, as_json)

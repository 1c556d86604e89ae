"""The optimum of a small program as a fraction, where e^epsilon is rational."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from numbers import Rational
from pathlib import Path
from typing import TYPE_CHECKING

from dpopt import verify
from dpopt._errors import ParameterError, SolverError
from dpopt._numbers import exact_text, shown
from dpopt._types import Json, brief
from dpopt.files import write_json
from dpopt.proofs.dual import Written
from dpopt.proofs.simplex import Exact, fraction
from dpopt.provenance import versions

if TYPE_CHECKING:
    from dpopt.shape import Setting

_MOST_ROWS, _MOST_COLUMNS = 20_000, 2_000


@dataclass(frozen=True, repr=False)
class ExactOptimum:
    """The optimum of a program at a rational e^epsilon, with its proof.

    Attributes:
        kind: of the setting.
        setting: its parameters as plain values; ``ratio`` replaces e^epsilon.
        ratio: e^epsilon.
        value: the optimum.
        point: an optimal solution, by variable of the program of `dpopt.verify`, without zeros.
        multipliers: by row; the bound that they prove is ``value``.
        provenance: versions of the software that computed it.
    """

    kind: str
    setting: Json
    ratio: Fraction
    value: Fraction
    point: Mapping[verify.Variable, Fraction]
    multipliers: Mapping[verify.Name, Fraction]
    provenance: Mapping[str, str] = field(default_factory=versions)

    def __repr__(self) -> str:
        return brief(self, kind=self.kind, ratio=self.ratio, value=self.value)

    def to_dict(self) -> Json:
        """Return the optimum as plain values, ready for JSON; fractions as text."""
        return {
            "format": "dpopt exact optimum",
            "kind": self.kind,
            "setting": self.setting,
            "ratio": exact_text(self.ratio),
            "value": exact_text(self.value),
            "point": [[*v, exact_text(x)] for v, x in self.point.items()],
            "multipliers": [[*name, exact_text(y)] for name, y in self.multipliers.items()],
            "provenance": dict(self.provenance),
        }

    def save(self, path: str | Path) -> None:
        """Write the optimum to a JSON file that `dpopt.verify` checks on its own.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), self.to_dict())


def exact_optimum(setting: Setting, ratio: Rational | int = Fraction(5, 2)) -> ExactOptimum:
    """Return the optimum of a setting's program as a fraction, with its proof.

    The program is the one that `dpopt.verify` writes, with ``ratio`` instead of e^epsilon; the
    epsilon of the setting is ignored. In a majority of voters ``ratio`` is e^epsilon of one voter
    and the target is ratio^allowance, so the allowance has to be an integer. The basis of a float
    solver is solved again in fractions, and it is decided exactly that the solution is feasible and
    that the multipliers prove its value.

    Args:
        setting: of a kind that `dpopt.verify` supports, with at most 2,000 variables and 20,000
            rows.
        ratio: e^epsilon, rational, at least 1; numerator and denominator of at most 256 bits.

    Raises:
        ParameterError: if the setting is not supported, or the ratio is out of range.
        SolverError: if no basis was optimal in exact arithmetic.
    """
    kind, plain = plain_setting(setting)
    rational = isinstance(ratio, Rational) and not isinstance(ratio, bool)
    exact = Fraction(ratio) if rational else Fraction(0)
    if exact < 1 or max(exact.numerator, exact.denominator).bit_length() > verify.RATIO_BITS:
        raise ParameterError(
            f"ratio is {shown(ratio)}; it must be an integer or fraction of at least 1, numerator "
            f"and denominator of at most {verify.RATIO_BITS} bits."
        )
    program = displayed(kind, plain, exact)
    rows = written(program)
    vertex = Exact.of(rows).optimum()
    point = {v: fraction(x) for v, x in zip(rows.variables, vertex.point, strict=True) if x}
    # Rows of the vertex are numbered distributions first.
    prices = {i - len(program.pmfs): y for i, y in vertex.multipliers.items() if y}
    multipliers = {rows.names[i]: fraction(y) for i, y in prices.items() if i >= 0}
    program.point = dict(point)
    try:
        program.private = None
        verify.decide(program)
        bound = verify.bound(program, multipliers.items())
    except verify.Refused as error:
        raise SolverError(f"the optimum found is refused: {error}.", "numerical") from error
    value = Fraction(program.value)
    if bound != value:
        raise SolverError("the multipliers found do not prove the optimum.", "numerical")
    return ExactOptimum(kind, plain, exact, value, point, multipliers)


def plain_setting(setting: Setting) -> tuple[str, Json]:
    """Return a setting's kind, and its parameters as the plain values of a file."""
    kind = getattr(setting, "kind", None)
    if isinstance(setting, type) or kind not in verify.KINDS:
        raise ParameterError(
            f"setting is {shown(setting)}; it must be of a kind whose program can be checked: "
            f"{', '.join(kind for kind in verify.KINDS if kind != 'table')}."
        )
    return kind, json.loads(json.dumps(setting.to_dict()))


def displayed(kind: str, plain: Json, ratio: Fraction) -> verify.Program:
    """Return the program of a setting at a rational e^epsilon."""
    try:
        return verify.KINDS[kind](plain, None, (ratio, ratio), {})
    except (verify.Malformed, *verify.MISSING) as error:
        why = f" ({error})" if isinstance(error, verify.Malformed) else ""
        raise ParameterError(
            f"setting is {shown(plain)}; it must have a program whose numbers are rational where "
            f"e^epsilon is{why}."
        ) from error


def written(program: verify.Program) -> Written:
    """Return a program together with all its rows."""
    names = tuple(islice(program.names(), _MOST_ROWS + 1))
    program_rows = Written(program, names)
    if len(names) > _MOST_ROWS or len(program_rows.variables) > _MOST_COLUMNS:
        raise ParameterError(
            f"setting is too large; its program must have at most {_MOST_COLUMNS:,} variables and "
            f"{_MOST_ROWS:,} rows."
        )
    return program_rows

"""A table: one integer weight for each variable; it is proved, saved and sampled from.

`dpopt.verify` decides the weights in this process; a certificate records what it decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks, verify
from dpopt._errors import MALFORMED, NotPrivateError, ParameterError
from dpopt._numbers import MOST_BITS, exact_text, roughly, whole
from dpopt._types import IntVector, Json, Matrix, Vector, brief, frozen
from dpopt.privacy.exact import Certificate, fingerprint
from dpopt.privacy.guarantee import Guarantee, in_short
from dpopt.privacy.release import Pmfs, Source, below_each
from dpopt.table.inputs import Inputs

BITS = 62
"""Bits of the total of a table's weights, unless a setting needs more."""

# Draws made at once, which bounds memory.
_DRAWN = 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A mechanism as integers: Pr[y | x] = weights[variable of (x, y)] / total.

    Attributes:
        inputs: the variables and their neighbours.
        weights: weight of one output of each variable, Python integers >= 0, shape (size,).
        total: sum of the weights of all outputs of an input, the same for every input.

    Raises:
        ParameterError: if these are not such integers.
    """

    inputs: Inputs
    weights: tuple[int, ...]
    total: int

    def __post_init__(self) -> None:
        weights, total, inputs = self.weights, self.total, self.inputs
        if type(total) is not int or total <= 0 or total.bit_length() > MOST_BITS:
            raise ParameterError(f"total must be a positive integer of at most {MOST_BITS:,} bits.")
        if not isinstance(weights, tuple) or len(weights) != inputs.size:
            raise ParameterError(f"weights must be a tuple of {inputs.size} integers.")
        if set(map(type, weights)) != {int} or min(weights) < 0:
            raise ParameterError("weights must be integers of at least 0.")
        masses = list(map(mul, weights, inputs.counts.tolist()))
        for row, (start, end) in enumerate(pairwise(inputs.starts.tolist())):
            if (mass := sum(masses[start:end])) != total:
                raise ParameterError(
                    f"weights of row {row} sum to {_checks.shown(mass)}, not to the total "
                    f"{_checks.shown(total)}."
                )

    @property
    def key(self) -> tuple[object, ...]:
        """The parameters and numbers that a certificate's digest covers."""
        return "table", self.inputs.key, self.weights, self.total

    def proof(self, statement: Hashable, decide: Callable[[], Certificate]) -> Certificate:
        """Return the certificate of a statement about these weights, computed at most once.

        It is cached under everything that ``decide`` depends on apart from the table; a copy or an
        unpickled table has none.
        """
        proofs: dict[Hashable, Certificate] = vars(self).setdefault("_proofs", {})
        if statement not in proofs:
            proofs[statement] = decide()
        return proofs[statement]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the integers without certificates, which must be computed again."""
        return type(self), (self.inputs, self.weights, self.total)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        same = (self.weights, self.total) == (other.weights, other.total)
        return same and self.inputs == other.inputs

    def __hash__(self) -> int:
        return hash(fingerprint(*self.key))

    def __repr__(self) -> str:
        return brief(self, inputs=self.inputs.inputs, outputs=self.inputs.outputs)

    @cached_property
    def probabilities(self) -> Vector:
        """Pr[y | x] of each variable as floats, shape (size,), read-only; never sampled from."""
        return frozen([weight / self.total for weight in self.weights])

    @cached_property
    def masses(self) -> Vector:
        """Probability of all outputs of each variable together, shape (size,), read-only."""
        return frozen(self.probabilities * self.inputs.counts)

    def matrix(self) -> Matrix:
        """Return the probabilities as floats, shape (inputs, outputs); they are never sampled from.

        Raises:
            ParameterError: for more than 20,000,000 entries.
        """
        return self.probabilities[self.inputs.table()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Matrix:  # noqa: ANN401
        """Return the probabilities, as `matrix` does, for `numpy.asarray`."""
        return np.asarray(self.matrix(), dtype=dtype)

    def row(self, data: Any) -> list[int]:  # noqa: ANN401
        """Return the weights of all outputs for one input, over `total`."""
        located, single = self.inputs.located(data)
        if not single:
            raise ParameterError("data holds several inputs; give one.")
        variables = self.inputs.variables_of(located)[0]
        return list(map(self.weights.__getitem__, variables.tolist()))

    def means(self, costs: npt.ArrayLike) -> list[Fraction]:
        """Return sum_y cost_xy Pr[y | x] for each orbit of inputs, exactly; costs by variable."""
        wholes, common = verify.scaled(np.asarray(costs, dtype=np.float64).tolist())
        counts = self.inputs.counts.tolist()
        terms = [c * n * w for c, n, w in zip(wholes, counts, self.weights, strict=True)]
        scale = common * self.total
        return [Fraction(sum(terms[a:b]), scale) for a, b in pairwise(self.inputs.starts.tolist())]

    def drawn(self, data: Any, source: Source) -> tuple[IntVector, bool]:  # noqa: ANN401
        """Return an exactly drawn output for each input, and whether ``data`` was a single one.

        A draw picks one of the input's variables, then uniformly one of its outputs; many draws
        from a small kernel pick the output directly.
        """
        inputs = self.inputs
        located, single = inputs.located(data)
        queries = len(located)
        # Entries of the largest kernel that is expanded to one weight per entry for sampling.
        if inputs.inputs * inputs.outputs <= min(1 << 16, queries):
            return self._written.draw(inputs.numbers(located), source), single
        pmfs, members = self._pmfs
        outputs = np.empty(queries, dtype=np.int64)
        for start in range(0, queries, _DRAWN):
            chunk = located[start : start + _DRAWN]
            rows = inputs.rows_of(chunk)
            variables = members[rows, pmfs.draw(rows, source)]
            index = below_each(inputs.counts[variables], source)
            outputs[start : start + _DRAWN] = inputs.chosen(chunk, variables, index)
        return outputs, single

    @cached_property
    def _written(self) -> Pmfs:
        """The distribution of each input over all outputs."""
        weights = self.weights
        rows = self.inputs.table().tolist()
        return Pmfs([[weights[v] for v in row] for row in rows])

    @cached_property
    def _pmfs(self) -> tuple[Pmfs, IntVector]:
        """For each orbit of inputs the distribution over its variables, and these variables."""
        starts = self.inputs.starts.tolist()
        masses = list(map(mul, self.weights, self.inputs.counts.tolist()))
        most = max(end - start for start, end in pairwise(starts))
        # Rows are padded with weights 0, which are never drawn, to the length of the longest.
        rows = [masses[a:b] + [0] * (most - b + a) for a, b in pairwise(starts)]
        return Pmfs(rows), np.array(starts[:-1])[:, None] + np.arange(most)

    def columns(
        self, inputs: Sequence[Hashable] | None = None, outputs: Sequence[Hashable] | None = None
    ) -> Mapping[str, Any]:
        """Return columns input, output and probability with a line for each entry, for a frame."""
        matrix = self.matrix()
        rows, columns = matrix.shape
        return {
            "input": np.repeat(np.arange(rows), columns)
            if inputs is None
            else [name for name in inputs for _ in range(columns)],
            "output": np.tile(np.arange(columns), rows) if outputs is None else [*outputs] * rows,
            "probability": matrix.ravel(),
        }

    def plain(self) -> Json:
        """Return the integers as text for a file, a list of weights for each orbit of inputs."""
        texts = [exact_text(weight) for weight in self.weights]
        rows = [texts[a:b] for a, b in pairwise(self.inputs.starts.tolist())]
        return {"total": exact_text(self.total), "weights": rows}

    @classmethod
    def read(cls, inputs: Inputs, plain: object) -> Table:
        """Return the table that `plain` wrote, after checking its form."""
        body: Any = plain
        try:
            rows = [[whole(weight) for weight in row] for row in body["weights"]]
            total = whole(body["total"])
        except MALFORMED:
            raise ParameterError("the table's weights or total are malformed.") from None
        # Numbers first: inputs that the weights do not fill may be too many for arrays.
        sizes = [len(row) for row in rows]
        if sum(sizes) != inputs.size or sizes != np.diff(inputs.starts).tolist():
            raise ParameterError("the table's weights are rows of other lengths than its inputs'.")
        return cls(inputs, tuple(weight for row in rows for weight in row), total)


def certify_table(table: Table, guarantee: Guarantee) -> Certificate:
    """Prove in integer arithmetic that a table is (epsilon, delta)-DP between all its neighbours.

    For delta = 0 the verifier checks w_v <= e^epsilon w_u for all neighbouring variables u, v; for
    delta > 0, sum_y max(0, w_xy - e^epsilon w_x'y) <= delta total for all neighbouring inputs x,
    x'. The proof of a table is made once, see `Table.proof`.

    Raises:
        NotPrivateError: if an inequality fails; it names the inputs and the output.
    """
    return table.proof(guarantee, partial(_certified, table, guarantee))


def _certified(table: Table, guarantee: Guarantee) -> Certificate:
    inputs, exp_epsilon = table.inputs, verify.growth(Fraction(guarantee.epsilon))
    weights = list(table.weights)
    try:
        if guarantee.delta > 0:
            edges = inputs.edges.listed()
            verdict = verify.decide_sets(
                weights, table.total, edges, exp_epsilon, Fraction(guarantee.delta)
            )
        else:
            # By member: first variables of all groups, second ones, ...
            columns = inputs.neighbours.T.tolist()
            verdict = verify.decide_ratios(weights, table.total, columns, exp_epsilon)
    except verify.Refused as refusal:
        missed, (where, ends, output) = (
            Fraction(refusal.missed),
            _where(table, guarantee, refusal.at),
        )
        raise NotPrivateError(
            f"the table breaks {in_short(guarantee)} at {where}, by {roughly(missed)}.",
            inputs=ends,
            output=output,
            excess=float(missed) or math.ulp(0.0),
        ) from None
    return Certificate(
        claim=inputs.claim(),
        guarantee=guarantee,
        constraints=verdict.rows,
        slack=Fraction(verdict.slack),
        tightest=_where(table, guarantee, verdict.at)[0],
    )


def _where(
    table: Table, guarantee: Guarantee, at: tuple[int, int] | None
) -> tuple[str, tuple[str, str], str | None]:
    """Return an inequality of the verifier in words, its two inputs, and its output."""
    if at is None:
        return "no neighbours", ("", ""), None
    if guarantee.delta == 0:
        one, other, output = map(str, table.inputs.words(*at))
        return f"inputs {one} and {other}, output {output}", (one, other), output
    edge, turned = at
    ends = table.inputs.event(edge, ())[0]
    one, other = map(str, reversed(ends) if turned else ends)
    return f"inputs {one} and {other}, all outputs that favour the first", (one, other), None

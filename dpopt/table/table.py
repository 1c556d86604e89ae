"""A table: one integer weight for each variable; it is repaired, proved, saved and sampled from.

`dpopt.verify` decides the weights in this process; a certificate records what it decided.

A solver's solution violates its rows by about 1e-9. `polished` makes the errors of small
probabilities relative, `rounded` returns integers whose rows sum exactly to the total, and `repair`
mixes the table with one that satisfies all inequalities strictly, until the verifier accepts it.
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
from dpopt.privacy.guarantee import Certificate, Guarantee, fingerprint, in_short
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


Certifier = Callable[[Table], Certificate]
"""Returns the certificate of a table, or raises `NotPrivateError` with the excess."""

# Probability; an output that no input gives more than this counts as unused: it is solver noise.
_UNUSED = 1e-13
# Mixture n = 0, 1, ... adds to the chord's share 4^n times one that covers rounding, which is at
# least 2^-_SHARE: the last of _TRIES adds at least 2^-6.
_SHARE, _TRIES = 60, 28


def alike(guarantee: Guarantee) -> bool:
    """Whether neighbours must have equal rows, up to differences that solvers cannot resolve."""
    # With epsilon = 0 and a delta up to this, rows are made equal: solvers cannot tell them apart.
    return guarantee.epsilon == 0 and guarantee.delta <= 1e-10


def polished(inputs: Inputs, point: Vector, guarantee: Guarantee) -> Vector:
    """Return probabilities near a solver's, without noise, whose rows sum to 1 up to rounding.

    For delta = 0 every probability is raised to at least e^-epsilon times its neighbours' largest,
    so that its error is relative. Then all rows are scaled by one factor and filled up to 1 with
    multiples of one common row; the multiples differ by less than e^epsilon, so all ratios stay
    within it. For epsilon = 0 neighbours get their mean.
    """
    values = np.maximum(np.asarray(point, dtype=np.float64), 0.0)
    if values.shape != (inputs.size,) or not np.all(np.isfinite(values)):
        raise ParameterError(f"point must hold {inputs.size} finite numbers.")
    counts = np.asarray(inputs.counts, dtype=np.float64)
    values = without_unused(inputs, values)
    if alike(guarantee):
        # Mean over each component, weighted by the pairs (x, y) that a variable stands for.
        sizes = counts * np.array([float(size) for size in inputs.row_sizes])[inputs.rows]
        values = (np.bincount(inputs.parts, values * sizes) / np.bincount(inputs.parts, sizes))[
            inputs.parts
        ]
    elif guarantee.delta == 0:
        values = _raised(inputs, values, guarantee.epsilon)
    sums = inputs.sums @ values
    top, short = float(sums.max()), 1.0 - float(sums.min() / sums.max())
    headroom = math.expm1(guarantee.epsilon) if guarantee.delta == 0 else 0.0
    if not short < headroom * 1e-3:
        return values / sums[inputs.rows]
    # Scaled sums fall short of 1 by between short / headroom and e^epsilon times that.
    scale = (1.0 - short / headroom) / top
    mean = inputs.mean_row(values * counts)
    missing = (1.0 - scale * sums)[inputs.rows]
    return scale * values + missing * (mean / (mean @ inputs.column_sizes))[inputs.columns]


def _raised(inputs: Inputs, values: Vector, epsilon: float) -> Vector:
    """Return the least values >= these such that neighbours differ by at most e^epsilon."""
    shrink, values = math.exp(-epsilon), values.copy()
    # Transposed to shape (members, groups), so that one member of all groups is contiguous.
    every = columns = np.ascontiguousarray(inputs.neighbours.T)
    while columns.size:
        least = shrink * values[columns].max(axis=0)
        # Relative rounding error within which a probability is not raised.
        members, groups = np.nonzero(least > values[columns] * (1.0 + (2.0**-50)))
        # The largest of a group is not raised: in a complete graph one round is enough.
        np.maximum.at(values, columns[members, groups], least[groups])
        if len(columns) > 2:
            break
        raised = np.zeros(inputs.size, dtype=bool)
        raised[columns[members, groups]] = True
        columns = every[:, raised[every].any(axis=0)]
    return values


def rounded(
    inputs: Inputs,
    values: Sequence[int] | Sequence[Fraction] | Vector,
    bits: int = BITS,
    *,
    equal: bool = False,
) -> Table:
    """Return the table of integer weights in proportion to values, each row divided by its sum.

    In each row, all variables but the one with the largest mass are rounded down, to multiples of
    that one's number of outputs. The remainder is then divisible among its outputs.

    Args:
        inputs: the variables.
        values: of one output of each variable, at least 0 and not all 0 in a row: taken exactly.
        bits: of the total, about.
        equal: whether variables joined by neighbours get equal weights.
    """
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if min(listed) < 0:
        raise ParameterError("point holds a negative probability.")
    labels = inputs.parts.tolist() if equal else list(range(inputs.size))
    counts = inputs.counts.tolist()
    # For each row: value and number of outputs of each label, and the label of largest mass.
    rows = list[tuple[dict[int, int], dict[int, int], int]]()
    for start, end in pairwise(inputs.starts.tolist()):
        wholes, outputs = dict[int, int](), dict[int, int]()
        for v, weight in enumerate(verify.scaled(listed[start:end])[0], start):
            wholes[labels[v]] = weight
            outputs[labels[v]] = outputs.get(labels[v], 0) + counts[v]
        largest = max(outputs, key=lambda label: wholes[label] * outputs[label])
        rows.append((wholes, outputs, largest))
    # A multiple of the number of outputs of every row's largest variable.
    total = math.lcm(*{outputs[largest] for _, outputs, largest in rows}) << bits
    weights = dict[int, int]()
    for wholes, outputs, largest in rows:
        unit = outputs[largest]
        mass = sum(wholes[label] * count for label, count in outputs.items()) * unit
        if not mass:
            raise ParameterError("point holds an input whose outputs all have probability 0.")
        for label, value in wholes.items():
            weights[label] = unit * (value * total // mass)
        others_mass = sum(n * weights[label] for label, n in outputs.items() if label != largest)
        weights[largest] = (total - others_mass) // unit
    return Table(inputs, tuple(weights[label] for label in labels), total)


def constant(inputs: Inputs, row: Vector, bits: int = BITS) -> Table:
    """Return the table with the same ``row`` for every input: one output of each orbit of them."""
    return rounded(inputs, np.asarray(row, dtype=np.float64)[inputs.columns], bits, equal=False)


def interior(inputs: Inputs, point: Vector, bits: int = BITS) -> Table:
    """Return a strictly feasible table: every row is half a point's mean row, half uniform.

    Outputs that the point does not use stay unused. All privacy rows hold strictly if epsilon or
    delta is above 0.
    """
    mean = inputs.mean_row(np.asarray(point) * np.asarray(inputs.counts, dtype=np.float64))
    used = (mean > 0) / ((mean > 0) @ inputs.column_sizes)
    return constant(inputs, mean / (mean @ inputs.column_sizes) / 2 + used / 2, bits)


def mixed(one: Table, other: Table, share: Fraction, bits: int = BITS) -> Table:
    """Return (1 - share) one + share other, rounded; both are over the same inputs."""
    factor = (share.denominator - share.numerator) * other.total
    other_factor = share.numerator * one.total
    both = zip(one.weights, other.weights, strict=True)
    return rounded(one.inputs, [factor * a + other_factor * b for a, b in both], bits)


def repair(
    table: Table,
    strict: Table,
    certify: Certifier,
    bits: int = BITS,
    headroom: Fraction | None = None,
) -> tuple[Table, Certificate]:
    """Return a table near the given one that is certified private, and its certificate.

    It is a mixture with a strictly feasible table. The least slack is concave between both, hence
    at least its chord, which reaches 0 at the share s / (s + t) of the strict table: s is the
    excess of the table, t the slack of the strict one. Rounding needs a little more, so the share
    grows until the verifier accepts; each refusal's excess gives a new chord.

    Args:
        table: rounded, perhaps not private.
        strict: a table that satisfies all inequalities with slack.
        certify: returns the certificate of a table, or raises `NotPrivateError` with the excess.
        bits: of the totals of mixtures.
        headroom: slack of the strict table; computed by ``certify`` if None.

    Raises:
        NotPrivateError: if the strict table has no slack, or no mixture is accepted.
    """
    try:
        return table, certify(table)
    except NotPrivateError as error:
        refusal = error
    short = Fraction(refusal.excess)
    headroom = certify(strict).slack if headroom is None else headroom
    if headroom <= 0:
        raise refusal
    chord = short / (short + headroom)
    # Rounding changes a row by at most a unit of 2^-bits for each of its variables.
    rounding_units = 4 + int(np.diff(table.inputs.starts).max())
    rounding = max(Fraction(1, 1 << _SHARE), rounding_units / headroom / (1 << bits))
    for attempt in range(_TRIES):
        share = min(chord + 4**attempt * rounding, Fraction(1))
        # A multiple of 2^-bits keeps the integers of the mixture small.
        share = Fraction((share.numerator << bits) // share.denominator, 1 << bits)
        mixture = mixed(table, strict, share, bits)
        try:
            return mixture, certify(mixture)
        except NotPrivateError as error:
            refusal, short = error, Fraction(error.excess)
            chord = share + (1 - share) * short / (short + headroom)
    raise refusal


def without_unused(inputs: Inputs, values: Vector) -> Vector:
    """Return a point with the probabilities of unused outputs set to 0."""
    largest = np.zeros(len(inputs.column_sizes))
    np.maximum.at(largest, inputs.columns, values)
    return np.where(largest[inputs.columns] <= _UNUSED, 0.0, values)

"""A certified kernel: integer weights, their proof, and draws from exactly these weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from numbers import Rational
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import NotPrivateError, ParameterError
from dpopt._numbers import MOST_BITS, exact_rational, exact_text, whole
from dpopt._types import Json, Matrix, Vector, brief, frozen
from dpopt.privacy.dominating import DominatingPair, likelihood_tests, upper_hull
from dpopt.privacy.exact import (
    Certificate,
    Pairs,
    certify_kernel,
    edge_list,
    integer_weights,
    one_directional,
)
from dpopt.privacy.exponential import rational
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.release import Laws, Source, seeded, system
from dpopt.privacy.saved import READERS, STATED, Sealed, seal
from dpopt.privacy.vouched import Implied, Vouched

KIND = "exact-kernel"
"""Of the files of kernels that belong to no setting."""

_MOST_POINTS = 4_000_000
_MOST_LINES = 100_000_000


@dataclass(frozen=True)
class ExactKernel(Vouched):
    """A kernel of integer weights over 2^bits that was certified.

    Attributes:
        weights: shape (inputs, outputs), Python integers, rows summing to 2^bits.
        bits: a row's weights sum to 2^bits.
        guarantee: what was certified.
        certificate: the proof's record.
        pairs: directed neighbours; None for all pairs of inputs.
        cost: largest total variation between a row and the one it was made from.
        ratio: e^epsilon, where it was given as a rational.
        stated: what a file stated and nothing could check: ("cost",) of a loaded kernel.
    """

    weights: tuple[tuple[int, ...], ...]
    bits: int
    guarantee: Guarantee
    certificate: Certificate
    pairs: tuple[tuple[int, int], ...] | None
    cost: float
    ratio: Fraction | None = None
    stated: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def make(
        cls,
        weights: Sequence[Sequence[int]],
        bits: int,
        guarantee: Guarantee,
        *,
        pairs: Pairs | None = None,
        cost: float = 0.0,
        ratio: Rational | None = None,
        one_way: bool = False,
    ) -> ExactKernel:
        """Return the kernel after certifying it; see `certify_kernel` for the arguments.

        Raises:
            NotPrivateError: if it is not private.
            ParameterError: if the weights are no kernel.
        """
        certificate = certify_kernel(
            weights, bits, guarantee, pairs=pairs, ratio=ratio, one_way=one_way
        )
        rows = tuple(tuple(row) for row in integer_weights(weights, bits))
        edges = edge_list(pairs, len(rows), one_way=one_way)
        return cls(
            weights=rows,
            bits=certificate.bits,
            guarantee=guarantee,
            certificate=certificate,
            pairs=None if edges is None else tuple(edges),
            cost=_checks.real("cost", cost, 0.0, 1.0),
            ratio=None if ratio is None else rational("ratio", ratio),
        )

    @property
    def subject(self) -> tuple[object, ...]:
        """What the certificate is about."""
        return "kernel", self.weights, self.guarantee, self.pairs, self.ratio

    def _subject(self) -> tuple[object, ...]:
        return self.subject

    def _implied(self) -> Iterator[Implied]:
        yield "bits", self.bits, self.certificate.bits

    def _prove(self) -> Certificate:
        return certify_kernel(
            self.weights,
            self.bits,
            self.guarantee,
            pairs=self.pairs,
            ratio=self.ratio,
            one_way=self.one_way,
        )

    @property
    def one_way(self) -> bool:
        """Whether some pair was proved in one direction only, which is not differential privacy."""
        return bool(one_directional(self.pairs))

    def require_both_ways(self) -> None:
        """Refuse a kernel that was proved in one direction only.

        Raises:
            NotPrivateError: if it was.
        """
        if self.one_way:
            raise NotPrivateError(
                "pairs of the kernel were proved in one direction only (one_way=True), which is "
                "not differential privacy."
            )

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return len(self.weights)

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return len(self.weights[0])

    @cached_property
    def _laws(self) -> Laws:
        return Laws(self.weights)

    def row(self, x: object) -> tuple[int, ...]:
        """Return the law of the output for input x, integers over 2^bits.

        Raises:
            ParameterError: if x is no input; the refusal is for the curator alone.
        """
        if isinstance(x, bool) or not isinstance(x, int | np.integer) or not 0 <= x < self.inputs:
            raise ParameterError(f"the input must be an integer in 0..{self.inputs - 1}.")
        return self.weights[int(x)]

    @cached_property
    def _floats(self) -> Matrix:
        return frozen([[w / (1 << self.bits) for w in row] for row in self.weights])

    def matrix(self) -> Matrix:
        """Return the probabilities as floats, shape (inputs, outputs); for reading only."""
        return self._floats.copy()

    @property
    def diagonal(self) -> Vector:
        """Probability of each input's own place among the outputs, read-only."""
        return frozen(np.diag(self._floats))

    def apply(self, laws: Vector) -> Vector:
        """Return laws of the inputs times the kernel, shape (..., outputs); for reading only."""
        return np.asarray(laws @ self._floats)

    def proof_of(
        self, guarantee: Guarantee, shape: tuple[int, int], pairs: Pairs | None = None
    ) -> Certificate:
        """Return the certificate, if it is of this guarantee, shape and neighbours.

        Raises:
            ParameterError: if it is of others.
        """
        own = (self.inputs, self.outputs)
        if own != shape:
            raise ParameterError(
                f"units have shape {own}; the kernels of this setting have {shape}."
            )
        if self.guarantee != guarantee:
            raise ParameterError(
                f"units were proved for {self.guarantee}; the setting promises {guarantee}."
            )
        asked = None if pairs is None else {(int(x), int(other)) for x, other in pairs}
        if (None if self.pairs is None else set(self.pairs)) != asked:
            raise ParameterError("units were proved for other neighbours than the setting's graph.")
        return self.certificate

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Matrix:  # noqa: ANN401
        """Return the probabilities, as `matrix` does: what numpy takes a kernel for."""
        return np.asarray(self.matrix(), dtype=dtype)

    def columns(
        self,
        inputs: Sequence[Hashable] | None = None,
        outputs: Sequence[Hashable] | None = None,
    ) -> Mapping[str, Sequence[Any] | npt.NDArray[Any]]:
        """Return input, output and probability, a line for each entry, for a table.

        Args:
            inputs: names of the inputs; their places if None.
            outputs: names of the outputs, likewise.

        Raises:
            ParameterError: for more than 1e8 entries.
        """
        inputs = range(self.inputs) if inputs is None else inputs
        outputs = range(self.outputs) if outputs is None else outputs
        return long_table(self.matrix(), inputs, outputs)

    def dominating(self, rows: tuple[int, int] | None = None) -> DominatingPair:
        """Return the tight dominating pair over all neighbours that were certified.

        Args:
            rows: only this pair of different inputs, neighbours or not: P is the first one's row,
                Q the second's. What it gives is about these two, not a guarantee.

        Raises:
            ParameterError: for inputs that are none, or more than 4,000,000 events.
            NotPrivateError: if the kernel was proved in one direction only.
        """
        if rows is None:
            self.require_both_ways()
        return kernel_pair(self.weights, self.bits, self.pairs, rows)

    def asked(self, inputs: npt.ArrayLike) -> int:
        """Return the number of inputs, each of which spends the whole guarantee; see `release`."""
        return self.places(inputs)[0].size

    def release(self, inputs: npt.ArrayLike) -> npt.NDArray[np.int64] | int:
        """Return one output for each input, drawn with the operating system's randomness.

        The law is exactly ``weights / 2^bits``. No seed; timing is outside the guarantee.

        Args:
            inputs: an index in 0..inputs-1, or an array of them; each spends the whole guarantee.

        Raises:
            ParameterError: if an index is no input; the refusal tells of the index and is not
                covered by the guarantee.
        """
        rows, single = self.places(inputs)
        outputs = self.drawn(rows, system)
        return int(outputs[0]) if single else outputs

    def simulate(
        self, inputs: npt.ArrayLike, rng: np.random.Generator
    ) -> npt.NDArray[np.int64] | int:
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        source = seeded(rng)
        rows, single = self.places(inputs)
        outputs = self.drawn(rows, source)
        return int(outputs[0]) if single else outputs

    def drawn(self, rows: npt.NDArray[np.int64], source: Source) -> npt.NDArray[np.int64]:
        """Return an output of each input, which are not checked, from random bytes."""
        return self._laws.draw(rows, source)

    def __repr__(self) -> str:
        return brief(
            self,
            inputs=len(self.weights),
            outputs=len(self.weights[0]),
            guarantee=self.guarantee,
            bits=self.bits,
            cost=self.cost,
            **({STATED: ", ".join(self.stated)} if self.stated else {}),
        )

    def plain(self) -> Json:
        """Return the integers and what they were proved for, from which `read` proves again."""
        return {
            "bits": self.bits,
            "weights": [[exact_text(weight) for weight in row] for row in self.weights],
            "guarantee": {"epsilon": self.guarantee.epsilon, "delta": self.guarantee.delta},
            "pairs": None if self.pairs is None else [list(pair) for pair in self.pairs],
            "one_way": self.one_way,
            "cost": self.cost,
            "ratio": None if self.ratio is None else exact_text(self.ratio),
        }

    def to_dict(self) -> Json:
        """Return the kernel as plain values; weights as strings, hexadecimal beyond 256 bits."""
        return {
            **self.plain(),
            "certificate": self.certificate.to_dict(),
            **({STATED: list(self.stated)} if self.stated else {}),
        }

    def save(self, path: str | Path) -> None:
        """Write the kernel to a JSON file that `dpopt.load` certifies again."""
        seal(KIND, self.to_dict(), Path(path))

    @classmethod
    def read(cls, plain: object) -> ExactKernel:
        """Certify again what `plain` returned.

        Raises:
            ParameterError: if it is malformed.
            NotPrivateError: if the kernel is not private.
        """
        body: Any = plain
        try:
            bits = body["bits"]
            if type(bits) is not int or not 1 <= bits <= MOST_BITS:
                raise ParameterError(f"bits is no whole number in 1..{MOST_BITS}.")
            weights = [[whole(weight) for weight in row] for row in body["weights"]]
            pairs = body["pairs"]
            pairs = None if pairs is None else [(whole(x), whole(y)) for x, y in pairs]
            one_way = _checks.flag("one_way", body.get("one_way", False))
            cost = _checks.real("cost", body["cost"], 0.0, 1.0)
            ratio = None if body["ratio"] is None else exact_rational(body["ratio"])
            promised = body["guarantee"]
            guarantee = Guarantee(promised["epsilon"], promised["delta"])
        except ParameterError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise ParameterError(
                "the kernel's weights, bits, guarantee, pairs, cost or ratio are malformed."
            ) from None
        kernel = cls.make(
            weights, bits, guarantee, pairs=pairs, cost=cost, ratio=ratio, one_way=one_way
        )
        return replace(kernel, stated=("cost",))

    def places(self, inputs: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], bool]:
        """Return inputs as checked indices, and whether it was a single one.

        Raises:
            ParameterError: if an index is no input.
        """
        array = _checks.array("inputs", inputs)
        if array.ndim > 1 or not np.issubdtype(array.dtype, np.integer):
            raise ParameterError("inputs must be an integer or a one-dimensional array of them.")
        rows = np.atleast_1d(array).astype(np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= self.inputs):
            raise ParameterError(f"inputs holds a value outside 0..{self.inputs - 1}.")
        return rows, array.ndim == 0


def _of_file(sealed: Sealed) -> ExactKernel:
    try:
        kernel = ExactKernel.read(sealed.body)
    except ParameterError as error:
        raise sealed.refuse(str(error).rstrip(".")) from None
    sealed.require_hash()
    return kernel


READERS[KIND] = _of_file


def long_table(
    matrix: Matrix, inputs: Sequence[Hashable], outputs: Sequence[Hashable]
) -> Mapping[str, Sequence[Any] | npt.NDArray[Any]]:
    """Return a kernel's columns input, output and probability, row after row.

    Raises:
        ParameterError: for more than 1e8 entries.
    """
    if matrix.size > _MOST_LINES:
        raise ParameterError(f"the kernel has {matrix.size:,} entries; a table has at most 1e8.")
    return {
        "input": _repeated(inputs, len(outputs), each=True),
        "output": _repeated(outputs, len(inputs), each=False),
        "probability": matrix.ravel(),
    }


def _repeated(
    names: Sequence[Hashable], times: int, *, each: bool
) -> list[Hashable] | npt.NDArray[np.int64]:
    """Return names, each of them or all of them repeated; ranges as arrays."""
    if isinstance(names, range):
        places = np.asarray(names, dtype=np.int64)
        return np.repeat(places, times) if each else np.tile(places, times)
    if each:
        return [name for name in names for _ in range(times)]
    return list(names) * times


def kernel_pair(
    weights: Sequence[Sequence[int]],
    bits: int,
    pairs: Sequence[tuple[int, int]] | None,
    rows: tuple[int, int] | None = None,
) -> DominatingPair:
    """Return the tight dominating pair of a kernel of integers over its neighbours.

    Args:
        weights: shape (inputs, outputs), rows summing to 2^bits.
        bits: a row's weights sum to 2^bits.
        pairs: directed neighbours; None for all pairs of inputs.
        rows: only this pair of different inputs, neighbours or not.

    Raises:
        ParameterError: for inputs that are none, or more than 4,000,000 events.
    """
    inputs = len(weights)
    if rows is not None:
        x, other = (_checks.integer("rows", place, 0, inputs - 1) for place in rows)
        if x == other:
            raise ParameterError(f"rows is ({x}, {x}); no input is its own neighbour.")
        pairs = [(x, other)]
    count = (inputs * (inputs - 1) if pairs is None else len(pairs)) * len(weights[0])
    if count > _MOST_POINTS:
        raise ParameterError(
            f"inputs is {inputs}; the privacy loss is found from at most {_MOST_POINTS:.0e} "
            f"events, and these are {count:.1e}."
        )
    chosen = permutations(range(inputs), 2) if pairs is None else pairs
    points = (
        at for x, other in chosen for at in likelihood_tests(weights[x], weights[other], bits)
    )
    return DominatingPair.of_points(upper_hull(points), 1 << bits)

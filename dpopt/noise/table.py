"""Symmetric noise on all integers as integer weights, and exact draws of any size."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import verify
from dpopt._errors import ParameterError
from dpopt._numbers import exact_text, typed_rational, whole
from dpopt._types import IntVector, Json, Vector, brief, frozen
from dpopt.privacy.guarantee import fingerprint
from dpopt.privacy.release import Pmfs, Source

# Periods beyond the first table are drawn in parts of at most so many.
_PERIODS = 256
# Periods are written out in the first table until so large a share of all that repeat the last one
# is left, and at most so many.
_LEFT, _MOST_WRITTEN = Fraction(1, 1000), 16
# Largest sum of absolute values that a 64-bit integer holds.
_INT64 = np.iinfo(np.int64).max


@dataclass(frozen=True, repr=False)
class NoiseTable:
    """Noise on the integers: Pr[Z = x] = Pr[Z = -x] in proportion to weights[|x|] up to N.

    Beyond N, Pr[Z = x + D] = ratio Pr[Z = x], so that the last D weights are repeated for ever; the
    noise ends at N if the ratio is 0.

    Attributes:
        weights: of |x| = 0..N, integers of at least 0, N at least D.
        ratio: of one period to the one before, in [0, 1).
        period: D.
    """

    weights: tuple[int, ...]
    ratio: Fraction
    period: int

    def __post_init__(self) -> None:
        weights = self.weights
        if not isinstance(weights, tuple) or len(weights) <= self.period:
            raise ParameterError(f"weights must be a tuple of more than {self.period} integers.")
        if set(map(type, weights)) != {int} or min(weights) < 0 or not any(weights):
            raise ParameterError("weights must be integers of at least 0, not all of them 0.")
        if type(self.ratio) is not Fraction or not 0 <= self.ratio < 1:
            raise ParameterError(f"ratio is {self.ratio}; it must be a Fraction in [0, 1).")

    @property
    def last(self) -> int:
        """N."""
        return len(self.weights) - 1

    @property
    def key(self) -> tuple[object, ...]:
        """The numbers that a certificate's digest covers."""
        return "noise", self.weights, self.ratio, self.period

    def __hash__(self) -> int:
        return hash(fingerprint(*self.key))

    def __repr__(self) -> str:
        return brief(self, last=self.last, ratio=float(self.ratio))

    @cached_property
    def exact(self) -> verify.Noise:
        """The same numbers, as the verifier decides them."""
        return verify.Noise(list(self.weights), self.ratio, self.period)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the integers alone; what was proved of them is proved again."""
        return type(self), (self.weights, self.ratio, self.period)

    @cached_property
    def probabilities(self) -> Vector:
        """Pr[Z = x] of x = 0..N as floats, read-only; never sampled from."""
        unit = Fraction(self.exact.inner * self.exact.outer, self.exact.total)
        return frozen([float(weight * unit) for weight in self.weights])

    def pmf(self, x: npt.ArrayLike) -> Vector:
        """Return Pr[Z = x] of integers as floats, of the shape of x."""
        distance = np.abs(np.asarray(x, dtype=np.int64))
        periods = np.maximum(0, -((self.last - distance) // self.period))
        core = distance - periods * self.period
        decay = np.where(periods > 0, float(self.ratio) ** periods, 1.0)
        return self.probabilities[core] * decay

    def drawn(self, count: int, source: Source) -> npt.NDArray[Any]:
        """Return independent noise, drawn exactly, shape (count,)."""
        noise = np.empty(count, dtype=np.int64)
        # In parts that a processor's cache holds.
        size = 1 << 16
        for start in range(0, count, size):
            part = noise[start : start + size]
            distance = self._core.draw(np.zeros(part.size, dtype=np.int64), source)
            tails = np.flatnonzero(distance > self.last + (self._written - 1) * self.period)
            if self.ratio and tails.size:
                distance[tails] += self.period * self._periods(tails.size, source)
            signs = np.frombuffer(source(part.size), dtype=np.uint8) & 1
            part[:] = np.where(signs == 1, distance, -distance)
        return noise

    def _periods(self, count: int, source: Source) -> IntVector:
        """Return geometric numbers of periods: Pr[J >= j] = ratio^j."""
        periods, waiting = np.zeros(count, dtype=np.int64), np.arange(count)
        while waiting.size:
            more = self._more.draw(np.zeros(waiting.size, dtype=np.int64), source)
            periods[waiting] += more
            waiting = waiting[more == _PERIODS]
        return periods

    @cached_property
    def _written(self) -> int:
        """Periods beyond N in the table of |Z|."""
        written, left = 0, self.ratio
        while left > _LEFT and written < _MOST_WRITTEN:
            written, left = written + 1, left * self.ratio
        return written

    @cached_property
    def _core(self) -> Pmfs:
        """|Z| = 0..N and some periods more, the last of which stands for all that repeat it."""
        above, below = self.ratio.as_integer_ratio()
        weights = [w * below**self._written for w in self.weights]
        for _ in range(self._written):
            weights += [w // below * above for w in weights[-self.period :]]
        scale = verify.Noise(weights, self.ratio, self.period).scale
        return Pmfs([[w * (2 if x else 1) * scale(x) for x, w in enumerate(weights)]])

    @cached_property
    def _more(self) -> Pmfs:
        """Geometric numbers of periods, of which the last stands for as many or more."""
        above, below = self.ratio.as_integer_ratio()
        ended = [(below - above) * above**j * below ** (_PERIODS - 1 - j) for j in range(_PERIODS)]
        return Pmfs([[*ended, above**_PERIODS]])

    def plain(self) -> Json:
        """Return the numbers as text for a file."""
        return {"weights": list(map(exact_text, self.weights)), "ratio": exact_text(self.ratio)}

    @classmethod
    def read(cls, period: int, plain: Any) -> NoiseTable:  # noqa: ANN401
        """Return the table that `plain` wrote, after checking its form."""
        weights = tuple(whole(weight) for weight in plain["weights"])
        return cls(weights, typed_rational(plain["ratio"]), period)


@lru_cache(maxsize=16)  # a table that was just made is judged again as a design
def decided(table: NoiseTable, epsilon: float, delta: float) -> verify.Verdict:
    """Return the verdict of the verifier."""
    return table.exact.decide(Fraction(delta), verify.growth(Fraction(epsilon)))


def added(data: Any, table: NoiseTable, source: Source) -> Any:  # noqa: ANN401
    """Return integers plus noise: an int for an int, else an array of the same shape."""
    values = integers(data)
    noise = table.drawn(values.size, source).reshape(values.shape)
    if values.dtype == object:
        answer = values + noise.astype(object)
    else:
        most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
        fits = most + int(np.abs(noise).max(initial=0)) <= _INT64
        answer = values + noise if fits else values.astype(object) + noise.astype(object)
    return answer if values.ndim else int(answer)


def integers(data: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    """Return integers as an array of int64, or of Python integers beyond."""
    if isinstance(data, np.ndarray) and data.dtype.kind == "i":
        return np.asarray(data, dtype=np.int64)
    try:
        values = np.asarray(data, dtype=object)
    except (TypeError, ValueError):
        values = np.array(None)
    listed = values.ravel().tolist()
    if not all(type(value) is int or isinstance(value, np.integer) for value in listed):
        raise ParameterError("data must be an integer, or an array of integers.")
    exact = np.array(list(map(int, listed)), dtype=object).reshape(values.shape)
    try:
        return exact.astype(np.int64)
    except OverflowError:
        return exact


def shifted(table: NoiseTable, shift: int) -> tuple[list[int], list[int]]:
    """Return p(x) and p(x + d) of all x as integers; pairs of repeated periods are summed."""
    exact, core = table.exact, table.last - table.period
    from_, to = list[int](), list[int]()
    for x in range(-(table.last + shift), table.last + 1):
        scale = exact.inner if -core - shift <= x <= core else exact.outer
        from_.append(exact.extended[abs(x)] * scale)
        to.append(exact.extended[abs(x + shift)] * scale)
    return from_, to

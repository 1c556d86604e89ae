"""A user's own mechanism, which mypy --strict and pyright check, and which runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, assert_type

import dpopt
from dpopt.privacy import Certificate, certify_kernel, exp_lower
from dpopt.proofs import Bound

BITS = 30


class CoinDesign(dpopt.Design):
    """A coin, with a property of its own."""

    @property
    def truth(self) -> float:
        """Probability of the truth."""
        return self.value


@dataclass(frozen=True)
class Coin(dpopt.Setting[CoinDesign]):
    """A coin that tells the truth with probability p.

    Attributes:
        epsilon: above 0.
    """

    kind: ClassVar[str] = "my-coin"
    answer: ClassVar[type[dpopt.Design]] = CoinDesign

    epsilon: float

    @classmethod
    def example(cls) -> Coin:
        return cls(math.log(3))

    @property
    def guarantee(self) -> dpopt.Guarantee:
        return dpopt.Guarantee(self.epsilon)

    @property
    def maximises(self) -> bool:
        return True

    def problem(self) -> dpopt.Problem:
        problem = dpopt.Problem("coin")
        problem.add_variables("p", 1, lower=0.0, upper=1.0)
        ratio = math.exp(self.epsilon)
        problem.add_rows("privacy", {"p": [[1.0 + ratio]]}, upper=ratio)
        problem.maximise({"p": [1.0]})
        return problem

    def point(self, solution: dpopt.Solution) -> float:
        return float(solution["p"][0])

    def units(self, point: float) -> tuple[int, int]:
        ratio = exp_lower(self.epsilon)
        truth = math.floor(min(Fraction(point), ratio / (1 + ratio)) * (1 << BITS))
        return truth, (1 << BITS) - truth

    def prove(self, units: tuple[int, int]) -> Certificate:
        return certify_kernel([units, units[::-1]], BITS, self.guarantee)

    def law(self, units: tuple[int, int], data: Any) -> Sequence[int]:
        return units[::-1] if data else units

    def value(self, units: tuple[int, int]) -> float:
        return units[0] / (1 << BITS)


def main() -> None:
    """Design, and use what was designed."""
    design = dpopt.design(Coin.example(), backend="highs")
    assert_type(design, CoinDesign)
    assert_type(design.truth, float)
    assert_type(design.bound, Bound | None)
    assert_type(dpopt.kinds(), tuple[type[dpopt.Setting[Any]], ...])
    if design.release(1) not in (0, 1) or abs(design.truth - 0.75) > 1e-6:
        raise ValueError(design)


if __name__ == "__main__":
    main()

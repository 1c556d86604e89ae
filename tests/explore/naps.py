"""A kind for tests of the page's process: it sleeps, dies, or wants memory before it answers.

It is no kind of the package: it is named after its class was made, so nothing registers it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dpopt import ParameterError, _checks
from dpopt._types import Numbers
from dpopt.design import Answer, Question
from dpopt.lp import Solution
from dpopt.privacy import Problem


@dataclass(frozen=True)
class Nap(Question[Answer]):
    """The least x of at least the seconds slept.

        minimise   x
        subject to x >= seconds                     "slept"

    Attributes:
        seconds: to sleep before the answer;
            at least 0.
        pages: odd, of 4096 bytes to hold at once.
        ending: what happens then.
        dreams: whether there are any.
        others: further numbers.
    """

    papers: ClassVar[tuple[str, ...]] = ()

    seconds: float
    pages: int = 1
    ending: Literal["answer", "death", "not < or &"] = "answer"
    dreams: bool = False
    others: Numbers | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", _checks.real("seconds", self.seconds, 0.0))
        pages = _checks.integer("pages", self.pages, 1)
        if pages % 2 == 0:
            raise ParameterError(f"pages is {pages}; it must be odd.")

    @classmethod
    def example(cls) -> Nap:
        return cls(0.0)

    def problem(self) -> Problem:
        problem = Problem("nap")
        problem.add_variables("x", 1, lower=0.0, upper=1e9)
        problem.add_rows("slept", {"x": [[1.0]]}, lower=self.seconds)
        problem.minimise({"x": [1.0]})
        return problem

    def closed_form(self) -> float:
        if self.ending == "death":
            os._exit(7)
        time.sleep(self.seconds)
        return float(np.zeros((self.pages, 512))[0, 0] + self.seconds)

    def point(self, solution: Solution) -> float:
        return float(solution["x"][0])

    def value(self, units: float) -> float:
        return units


Nap.kind = "nap"

"""The exceptions of the package, each with what its reader needs to act on it."""

from __future__ import annotations


class DpoptError(Exception):
    """Base class of every error that dpopt raises on purpose."""


class ParameterError(DpoptError, ValueError):
    """A parameter is outside its allowed range; the message names it, its value and the range."""


class BudgetError(DpoptError):
    """A ledger refuses a release that would leave its budget; nothing was drawn or written."""


class InfeasibleError(DpoptError):
    """No point satisfies every constraint of a problem.

    Attributes:
        blocks: names of the row blocks, families and variable bounds that conflict; removing
            any one of them from this set makes the rest satisfiable.
    """

    def __init__(self, message: str, blocks: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.blocks = blocks


class SolverError(DpoptError, RuntimeError):
    """A solver stopped without an answer that can be trusted.

    Attributes:
        status: the `dpopt.lp.Status` value as a string, such as ``"time_limit"``.
    """

    def __init__(self, message: str, status: str = "unknown") -> None:
        super().__init__(message)
        self.status = status


class NotPrivateError(DpoptError):
    """A mechanism breaks the privacy guarantee that it was meant to have.

    Attributes:
        inputs: the two neighbouring inputs, in words.
        output: the output at which the guarantee breaks; None if it takes several at once.
        excess: by how much, in probability.
    """

    def __init__(
        self,
        message: str,
        inputs: tuple[str, str] = ("", ""),
        output: str | None = None,
        excess: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.inputs = inputs
        self.output = output
        self.excess = excess


MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a kind's own arithmetic raises on a point or a table of another shape or another kind."""

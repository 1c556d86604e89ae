"""Every public callable: what it returns shows in a line; then one argument is spoiled at a time.

It ends in an answer or in one of dpopt's own errors: numbers, arrays and texts of any other kind,
and objects of other classes, end in a `DpoptError`. A refusal names the parameter, and what is
outside a parameter's range is refused by its name. Only two kinds of wrong argument end as Python
ends them: a function that cannot be called with what it is promised (TypeError), and a path that is
no path (TypeError of `os.PathLike`).
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Callable, Iterator

import pytest

from dpopt import DpoptError, ParameterError
from tests.robustness.hostile import EXTREME, NEVER, REFUSED, VALUES, values_for
from tests.robustness.registry import METHODS, NAMES, called

# Called by the package with numbers or arrays: "int" and a function of no argument cannot be.
FUNCTIONS = {"constraints"}
PATHS = {"path"}
# Arrays of a few numbers say more than their shape; a certificate's fractions are exact.
SPELLED = {"BatchDistribution", "Certificate", "Rows"}
# Any value will do: a label that is only shown.
LABELS = {"dpopt.certify.inputs"} | {
    f"privacy.Certificate.{name}" for name in ("claim", "tightest", "digest")
}


def parts(value: object) -> Iterator[object]:
    """Yield the dataclasses that a value is, or holds."""
    if isinstance(value, tuple):
        for part in value:
            yield from parts(part)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))


def test_the_arguments_before_they_are_spoiled() -> None:
    assert len(NAMES) > 40
    for name in [*NAMES, *METHODS]:
        function, arguments = called(name)
        if PATHS & set(arguments):
            with pytest.raises(DpoptError):
                function(**arguments)
            continue
        for part in (*parts(function(**arguments)), *parts(tuple(arguments.values()))):
            if type(part).__name__ not in SPELLED:
                shown = repr(part)
                assert "\n" not in shown, shown
                assert len(shown) < 300, shown


# Where such a value is legal: texts that are names or categories, exact rationals.
LEGAL = {
    "categories": {"text", "texts"},
    "labels": {"texts"},
    "data": {"texts"},
    "counts": {"huge list"},
    "values": {"huge list"},
    "name": {"text", "text of a number"},
    "path": {"text", "text of a number"},
}


# Words of a refusal where they are not the parameter's own: what it is made into, or counted as.
CALLED = {
    **dict.fromkeys(("intervals", "text"), ("prior",)),
    "pmfs": ("p ",),
    "voters": ("mechanism",),
    "data": ("votes", "inputs", "counts", "own", "p "),
    "weights": ("gamma",),
    "gamma": ("voters",),
    "distributions": ("distribution", "composition"),
    "kernel": ("path",),
    "exponent": ("epsilon",),
    "labels": ("path", "counts"),
    "column": ("path",),
    "path": ("constraints",),
    "matrix": ("rows", "lower"),
    "ratio": ("slack",),
    "size": ("counts",),
    "population": ("successes",),
}


def names(message: str, argument: str) -> bool:
    """Return whether a refusal names the parameter that an argument is, or is a value of."""
    name = re.sub(r"_\d+$", "", argument)
    return any(word in message for word in (name, *CALLED.get(name, ())))


def wrong_end(
    function: Callable[..., object], arguments: dict[str, object], argument: str, value: str
) -> tuple[str, bool]:
    """Return what is wrong with how a call ends, and whether it ended in an answer."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(**arguments)
    except DpoptError as error:
        message = str(error).strip()
        good = message.endswith(".") and "\n" not in message
        if good and isinstance(error, ParameterError) and value not in EXTREME:
            good = names(message, argument)
        return "" if good else f"message {message!r}", False
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}", False
    return "", True


@pytest.mark.every_case
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_spoiled_arguments(name: str) -> None:
    wrong = []
    for argument, good in called(name)[1].items():
        for value in values_for(argument, good):
            function, arguments = called(name)
            spoiled = {**arguments, argument: VALUES[value]()}
            found, answered = wrong_end(function, spoiled, argument, value)
            # A TypeError is Python's own business at some.
            python = argument in PATHS or (argument in FUNCTIONS and value in ("type", "function"))
            if found and not (python and found.startswith("TypeError")):
                wrong.append(f"{argument} = {value}: {found}")
            legal = LEGAL.get(argument, set()) if f"{name}.{argument}" not in LABELS else NEVER
            # Noise is for integers of any size.
            legal = legal | ({"10**400", "huge list"} if name.startswith("noise.") else set())
            if answered and value in (NEVER - legal) | REFUSED.get(argument, set()):
                wrong.append(f"{argument} = {value}: accepted")
    assert not wrong, "\n".join(wrong)

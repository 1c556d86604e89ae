"""Results hold the numbers that their certificate is about: however they were made.

For designs, `tests/shape` says so over all kinds; here is what belongs to no kind.
"""

from __future__ import annotations

import copy
import io
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from dpopt.privacy.orbit import OrbitKernel, WordOrbits
from dpopt.privacy.vouched import Coherent, Vouched

import dpopt
from dpopt import Design, Guarantee, NotPrivateError, ParameterError, majority, roo
from dpopt.privacy import Certificate, ExactKernel
from dpopt.privacy.fingerprint import fingerprint

MAKERS: dict[str, Callable[[], Any]] = {
    "kernel": lambda: ExactKernel.make(
        [[3, 1], [1, 3]], 2, Guarantee(math.log(3)), ratio=Fraction(3)
    ),
    "kernel with pairs": lambda: ExactKernel.make(
        [[5, 3], [4, 4], [3, 5]], 3, Guarantee(0.4, 0.1), pairs=[(0, 1), (1, 0), (1, 2), (2, 1)]
    ),
    # Words of two letters at two places, by the number of places that differ: 4 + 2 * 2 + 1 = 9.
    "orbits": lambda: OrbitKernel.make([4, 2, 1], 9, Guarantee(0.7), WordOrbits((2, 2), ((1,),))),
}
DATA = {"kernel": 0, "kernel with pairs": 0, "orbits": 0}
# Records of what it is for and how it was found; none says or changes what is released.
RECORDS = {"cost", "stated", "provenance"}


@cache
def made(name: str) -> Any:
    return MAKERS[name]()


def other(value: Any) -> Iterator[Any]:
    """Yield values next to a given one, of the same kind."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, float):
        yield value * 1.5 + 0.25
    elif isinstance(value, Fraction):
        yield value / 2
    elif isinstance(value, tuple) and value and isinstance(value[0], int):
        yield (value[0] + 1, *value[1:])
    elif isinstance(value, tuple) and value:
        yield value[::-1]
    elif isinstance(value, Guarantee):
        yield Guarantee(value.epsilon / 2, value.delta)
        yield Guarantee(value.epsilon, value.delta / 2 or 1e-9)
    elif isinstance(value, Certificate):
        yield replace(value, guarantee=Guarantee(value.guarantee.epsilon + 1))
        yield replace(value, slack=value.slack + 1)
        yield replace(value, claim="kernel is private")
    elif isinstance(value, WordOrbits):
        yield WordOrbits(value.shape, None)
        yield WordOrbits((2, 2, 2), value.differences)
    elif value is None:
        yield ((0, 1), (1, 0))


def changes(name: str) -> Iterator[tuple[str, Any]]:
    """Yield every field that matters with values that it must not take."""
    for field in fields(made(name)):
        if field.name not in RECORDS:
            for wrong in other(getattr(made(name), field.name)):
                yield field.name, wrong


@pytest.mark.parametrize("name", MAKERS)
def test_no_number_can_be_replaced(name: str) -> None:
    mechanism, seen = made(name), set()
    given = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}
    for field, wrong in changes(name):
        seen.add(field)
        with pytest.raises(ParameterError, match="make the result anew|must be|prior"):
            replace(mechanism, **{field: wrong})
        with pytest.raises(ParameterError):
            type(mechanism)(**{**given, field: wrong})
    assert {name for name, value in given.items() if value is not None} - RECORDS - seen == set()


@pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("name", MAKERS)
def test_copies_hold_the_same_and_nothing_else(name: str, how: str) -> None:
    mechanism = made(name)
    mechanism.release(DATA[name])
    copies: dict[str, Callable[[Any], Any]] = {
        "pickle": lambda it: pickle.loads(pickle.dumps(it)),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }
    again = copies[how](mechanism)
    assert again is not mechanism
    # What was computed on the way, such as the table that is drawn from, is not carried along.
    assert set(vars(again)) == {field.name for field in fields(again)}
    assert again.certificate == mechanism.certificate
    again.release(DATA[name])


class Swapping(pickle.Pickler):
    """Pickles with other fields, as a file on the way could have been changed."""

    def __init__(self, file: io.BytesIO, field: str, value: Any) -> None:
        super().__init__(file)
        self.field, self.value = field, value

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Coherent) and self.field in obj._fields():
            build, (kind, values) = obj.__reduce__()
            return build, (kind, {**values, self.field: self.value})
        return NotImplemented


@pytest.mark.parametrize("name", MAKERS)
def test_a_changed_pickle_does_not_come_back(name: str) -> None:
    for field, wrong in changes(name):
        file = io.BytesIO()
        Swapping(file, field, wrong).dump(made(name))
        with pytest.raises(ParameterError):
            pickle.loads(file.getvalue())


def test_a_pickle_is_proved_again() -> None:
    """A digest can be computed by anyone; the proof cannot be made for what is not private."""
    table = ((4, 0), (0, 4))
    exact = made("kernel")
    forged = exact.certificate.about("kernel", table, exact.guarantee, None, exact.ratio)
    with pytest.raises(NotPrivateError, match="break"):
        pickle.loads(pickle.dumps(replace(exact, weights=table, certificate=forged)))


def test_a_certificate_of_no_digest_is_about_nothing() -> None:
    exact = made("kernel")
    with pytest.raises(ParameterError, match="not about"):
        replace(exact, certificate=replace(exact.certificate, digest=""))


def test_without_its_certificate_a_result_is_not_private() -> None:
    broken = majority.assess(majority.MajoritySetting(3, 0.5, 1), [1.0, 1.0])
    assert not broken.private
    with pytest.raises(NotPrivateError):
        broken.release([0, 1, 1])
    assert pickle.loads(pickle.dumps(broken)).verdict == "not private"


def test_every_class_that_releases_is_held_to_its_numbers() -> None:
    """It is a design, which is held to its setting and its units, or one of the few here."""

    def below(kind: type) -> set[type]:
        return {kind, *(found for sub in kind.__subclasses__() for found in below(sub))}

    known = {kind for kind in below(Vouched) if kind.__module__.startswith("dpopt.")}
    here = {Vouched, *(type(made(name)) for name in MAKERS)}
    assert {kind for kind in known if not issubclass(kind, Design)} <= here
    for answer in {kind.answer for kind in dpopt.kinds() if issubclass(kind, dpopt.Setting)}:
        assert issubclass(answer, Design)


def test_fingerprints_tell_numbers_apart() -> None:
    different = [
        (), (1,), (1.0,), (True,), ("1",), (None,), (Fraction(1),), ((1,),), (1, 1), ((1, 1),),
        ((1,), (1,)), (11,), ("1;", 1), (10**5000,), (10**5000 + 1,), (-1,), (0.0,), (-0.0,),
        (np.array([1]),), (np.array([1.0]),), (np.array([[1]]),), (Guarantee(1.0),),
        (Guarantee(1.0, 0.5),), (roo.RooSetting(6, 3, 0.9),),
    ]  # fmt: skip
    assert len({fingerprint(*parts) for parts in different}) == len(different)
    assert fingerprint((1, 2), "a") == fingerprint((1, 2), "a")
    for wrong in ([1], {1: 2}, np.int64(3), object()):
        with pytest.raises(ParameterError, match="a proof is about"):
            fingerprint(wrong)

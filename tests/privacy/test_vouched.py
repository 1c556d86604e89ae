"""Results hold the numbers that their certificate is about: however they were made."""

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

from dpopt import Guarantee, NotPrivateError, ParameterError, kernel, majority, public_prior, roo
from dpopt.majority import MajorityDesign
from dpopt.privacy import Certificate, ExactKernel
from dpopt.privacy.fingerprint import fingerprint
from dpopt.privacy.vouched import Coherent, Vouched
from dpopt.roo import LetterSampler

ONE = 1 << 62
PRIOR = [0.2, 0.3, 0.5]
PATH = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
GROUPS = majority.MajoritySetting.of_groups([(2, 0.3), (1, 0.5)], 1.5)


@cache
def made(name: str) -> Any:
    return MAKERS[name]()


MAKERS: dict[str, Callable[[], Any]] = {
    "kernel": lambda: ExactKernel.make(
        [[3, 1], [1, 3]], 2, Guarantee(math.log(3)), ratio=Fraction(3)
    ),
    "kernel with pairs": lambda: ExactKernel.make(
        [[5, 3], [4, 4], [3, 5]], 3, Guarantee(0.4, 0.1), pairs=[(0, 1), (1, 0), (1, 2), (2, 1)]
    ),
    "majority": lambda: majority.design(3, 0.5, 1.5),
    "majority with deltas": lambda: majority.design(3, 0.5, 1.5, mechanism_delta=1e-3, delta=0.01),
    "majority of groups": lambda: majority.design_for(GROUPS),
    "given majority": lambda: majority.assess(majority.MajoritySetting(3, 0.5, 1), [0.1, 0.2]),
    "min-count": lambda: roo.min_count(6, 3, 0.9),
    "min-count, one q": lambda: roo.min_count(6, 3, 0.9, "roo"),
    "SubRR": lambda: roo.subrr(20, 3, 0.5),
    "smooth floor": lambda: roo.smooth_floor(6, 3, 1.0),
    "optimal sampler": lambda: roo.optimal_sampler(4, 2, 1.0),
    "optimal kernel": lambda: kernel.optimal_kernel(PATH, epsilon=0.5, graph="path"),
    "minimax kernel": lambda: public_prior.minimax_kernel(PRIOR, 0.8),
    "leximin kernel": lambda: public_prior.leximin_kernel(PRIOR, 0.8),
    "population kernel": lambda: public_prior.population_kernel(PRIOR, 1.0, np.eye(3)),
}

# Records of what it is for and how it was found; none says or changes what is released.
RECORDS = {
    *("bound", "cost", "distribution", "excess", "expected_error"),
    *("expected_error_method", "expected_error_standard_error", "formulation", "gap", "mixing"),
    *("objective", "prior", "provenance", "residuals", "shrink", "solution", "users", "value"),
    *("stated", "own_rows", "amplification", "drift", "gamma_tv", "slack", "factor"),
}


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
    elif isinstance(value, str):
        yield {"exact": "roo", "roo": "exact"}.get(value, value + "?")
    elif isinstance(value, np.ndarray):
        yield value * 0.5
    elif isinstance(value, tuple) and value and isinstance(value[0], int):
        yield (value[0] + 1, *value[1:])
        yield (*value[:-1], max(0, value[-1] - 1)) if value[-1] else (*value[:-1], 1)
    elif isinstance(value, tuple) and value:
        yield value[::-1]
    elif isinstance(value, Guarantee):
        yield Guarantee(value.epsilon / 2, value.delta)
        yield Guarantee(value.epsilon, value.delta / 2 or 1e-9)
    elif isinstance(value, Certificate):
        yield replace(value, guarantee=Guarantee(0.0))
        yield replace(value, slack=value.slack + 1)
        yield replace(value, claim="kernel is private")
    elif value is None:
        yield ((0, 1), (1, 0))


OTHERS: dict[tuple[str, str], Callable[[], list[Any]]] = {
    ("setting", "majority"): lambda: [
        majority.MajoritySetting(3, 0.1, 1.5),
        majority.MajoritySetting(3, 0.5, 1.4),
        majority.MajoritySetting.of_groups([(2, 0.3), (1, 0.5)], 1.2),
    ],
    ("setting", "roo"): lambda: [
        roo.RooSetting(6, 3, 0.01),
        roo.RooSetting(7, 3, 0.9),
        roo.RooSetting(6, 2, 0.9),
    ],
    ("setting", "kernel"): lambda: [
        kernel.KernelSetting(PATH, 0.1, graph="path"),
        kernel.KernelSetting(PATH, 0.5),
    ],
    ("units", "kernel"): lambda: [
        ExactKernel.make([[1, 1]] * 3, 1, Guarantee(0.5), pairs=made("optimal kernel").exact.pairs),
        made("kernel"),
    ],
    ("setting", "prior"): lambda: [
        public_prior.PublicPriorSetting(PRIOR, 0.7),
        public_prior.PublicPriorSetting(PRIOR[::-1], 0.8),
        public_prior.PopulationSetting(PRIOR, 0.7, np.eye(3)),
    ],
    ("units", "prior"): lambda: (
        [made(name).units for name in ("minimax kernel", "leximin kernel", "population kernel")]
        + [public_prior.minimax_kernel(PRIOR, 0.9).units]
    ),
    ("roo", "any"): lambda: [roo.min_count(20, 3, 0.4, "roo")],
    ("audit", "any"): lambda: [roo.min_count(6, 3, 0.5).audit, roo.smooth_floor(6, 3, 0.9).audit],
    ("histograms", "any"): lambda: [roo.optimal_sampler(5, 2, 1.0).histograms],
}


def changes(name: str) -> Iterator[tuple[str, Any]]:
    """Yield every field that matters with values that it must not take."""
    mechanism = made(name)
    for field in fields(mechanism):
        value = getattr(mechanism, field.name)
        kind = "majority" if isinstance(mechanism, MajorityDesign) else "any"
        kind = "roo" if isinstance(mechanism, LetterSampler) else kind
        kind = "kernel" if name == "optimal kernel" else kind
        kind = "prior" if isinstance(mechanism, public_prior.SamplingKernel) else kind
        given = OTHERS.get((field.name, kind)) or OTHERS.get((field.name, "any"))
        if field.name in {*RECORDS, "priced"}:
            continue
        for wrong in given() if given else other(value):
            if wrong is not value:
                yield field.name, wrong


@pytest.mark.parametrize("name", MAKERS)
def test_no_number_can_be_replaced(name: str) -> None:
    mechanism, seen = made(name), set()
    for field, wrong in changes(name):
        seen.add(field)
        with pytest.raises(ParameterError, match="make the result anew|must be|prior"):
            replace(mechanism, **{field: wrong})
    checked = {f.name for f in fields(mechanism) if getattr(mechanism, f.name) is not None}
    assert checked - RECORDS - seen == set()


@pytest.mark.parametrize("name", MAKERS)
def test_no_other_number_goes_into_the_constructor(name: str) -> None:
    mechanism = made(name)
    given = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}
    for field, wrong in changes(name):
        with pytest.raises(ParameterError):
            type(mechanism)(**{**given, field: wrong})


def release(mechanism: Any) -> Any:
    if isinstance(mechanism, MajorityDesign):
        return mechanism.release([0, 1, 1])
    if isinstance(mechanism, LetterSampler):
        n, k = mechanism.setting.records, mechanism.setting.letters
        return mechanism.release(counts=[n] + [0] * (k - 1))
    return mechanism.release(0)


@pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("name", MAKERS)
def test_copies_hold_the_same_and_nothing_else(name: str, how: str) -> None:
    mechanism = made(name)
    release(mechanism)
    copies: dict[str, Callable[[Any], Any]] = {
        "pickle": lambda it: pickle.loads(pickle.dumps(it)),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }
    again = copies[how](mechanism)
    assert again is not mechanism
    # What was computed on the way, such as the table that is drawn from, is not carried along.
    assert set(vars(again)) == {field.name for field in fields(again)}
    for field in fields(again):
        value = getattr(again, field.name)
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable
            assert np.array_equal(value, getattr(mechanism, field.name))
    assert again.certificate == mechanism.certificate
    release(again)


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


@pytest.mark.parametrize("name", ["kernel", "majority", "min-count", "smooth floor"])
def test_a_changed_pickle_does_not_come_back(name: str) -> None:
    for field, wrong in changes(name):
        file = io.BytesIO()
        Swapping(file, field, wrong).dump(made(name))
        with pytest.raises(ParameterError):
            pickle.loads(file.getvalue())


def test_a_pickle_is_proved_again() -> None:
    """A digest can be computed by anyone; the proof cannot be made for what is not private."""
    design = made("majority")
    weights = (ONE, ONE)
    forged = design.certificate.about(*design.setting.subject(weights))
    broken = replace(design, units=weights, certificate=forged)
    with pytest.raises(NotPrivateError, match="gamma breaks"):
        pickle.loads(pickle.dumps(broken))
    table = ((4, 0), (0, 4))
    exact = made("kernel")
    forged = exact.certificate.about("kernel", table, exact.guarantee, None, exact.ratio)
    with pytest.raises(NotPrivateError, match="break"):
        pickle.loads(pickle.dumps(replace(exact, weights=table, certificate=forged)))
    sampler = made("min-count")
    rule, audit = ("exact", sampler.audit)
    forged = sampler.certificate.about("min-count", sampler.setting, rule, (0,), audit)
    with pytest.raises(NotPrivateError, match="above|as likely"):
        pickle.loads(
            pickle.dumps(replace(sampler, weights=(0,), q=np.zeros(1), certificate=forged))
        )


def test_a_certificate_of_no_digest_is_about_nothing() -> None:
    design = made("majority")
    with pytest.raises(ParameterError, match="not about"):
        replace(design, certificate=replace(design.certificate, digest=""))


def test_without_its_certificate_a_result_is_not_private() -> None:
    broken = majority.assess(majority.MajoritySetting(3, 0.5, 1), [1.0, 1.0])
    assert not broken.private
    with pytest.raises(NotPrivateError):
        broken.release([0, 1, 1])
    assert pickle.loads(pickle.dumps(broken)).verdict == "not private"


def test_every_class_that_releases_is_held_to_its_numbers() -> None:
    def below(kind: type) -> set[type]:
        return {kind, *(found for sub in kind.__subclasses__() for found in below(sub))}

    tested = {type(made(name)) for name in MAKERS}
    known = {kind for kind in below(Coherent) if hasattr(kind, "release")}
    abstract = {Coherent, Vouched, LetterSampler, public_prior.SamplingKernel}
    assert known - abstract == tested


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

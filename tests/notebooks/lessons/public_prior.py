"""What must be so after the cells of ``public_prior.ipynb``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpopt import public_prior


def after_K(it: Any) -> None:
    assert np.allclose(it.K.sum(axis=1), 1)
    assert np.allclose(it.q @ it.K, it.q)
    assert np.all(it.K.max(axis=0) <= math.exp(it.epsilon) * it.K.min(axis=0) * (1 + 1e-12))


def after_program(it: Any) -> None:
    assert np.isclose(it.design.worst_tv, it.design.gamma_tv, atol=1e-12)
    assert np.isclose(it.program.value, it.design.gamma_tv, atol=1e-08)
    assert it.program.bound <= it.design.gamma_tv + 1e-12


def after_leximin(it: Any) -> None:
    assert np.isclose(it.leximin.worst_tv, it.design.gamma_tv, atol=1e-12)
    assert np.all(np.sort(it.leximin.diagonal)[:4] >= np.sort(it.design.diagonal)[:4] - 1e-12)
    assert np.allclose(
        public_prior.leximin_values(it.q, it.epsilon), it.leximin.diagonal, atol=1e-07
    )


def after_letters(it: Any) -> None:
    assert len(it.letters) == 3
    assert set(it.letters) <= set("abcde")
    assert it.one in "abcde"
    assert it.proof.slack >= 0
    assert it.design.drift < 1e-15


def after_share(it: Any) -> None:
    assert abs(it.share - it.design.apply(it.p)).max() < 5 * 0.5 / 20000**0.5


def after_fitted(it: Any) -> None:
    assert it.fitted.certificate.slack >= 0
    assert it.fitted.gap < 1e-07
    for own, new in zip(it.fitted.report(it.seen), it.fitted.report(it.others), strict=True):
        assert it.fitted.value <= own.mean + 1e-9
        assert new.worst_tv <= it.design.gamma_tv + 1e-9


def after_near(it: Any) -> None:
    assert np.all(it.near <= it.q * math.exp(it.epsilon / 2) * (1 + 1e-09))
    assert np.all(it.near >= it.q * math.exp(-it.epsilon / 2) * (1 - 1e-09))
    assert np.allclose(it.distance, public_prior.mollifier_tv(it.q, it.others, it.epsilon))
    assert it.distance.mean() < it.kernel.mean()
    assert it.worst > it.leximin.worst_tv


def after_moved(it: Any) -> None:
    assert it.moved <= it.wide.worst_tv
    assert np.isclose(it.out.sum(), 1)
    assert np.isclose(it.wide.worst_tv, it.wide.gamma_tv)


def after_again(it: Any) -> None:
    assert it.again.weights() == it.design.weights()
    assert it.again.certificate.slack >= 0


def after_best(it: Any) -> None:
    least = float(it.design.diagonal.min())
    for name, value in it.best.items():
        assert np.isclose(value, public_prior.point_mass_divergence(least, name))


def after_curves(it: Any) -> None:
    for values in it.curves.values():
        assert np.all(np.diff(values) < 0)

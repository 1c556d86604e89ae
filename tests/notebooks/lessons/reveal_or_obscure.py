"""What must be so after the cells of ``reveal_or_obscure.ipynb``."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpopt.privacy import exp_upper


def after_rules(it: Any) -> None:
    assert [name for name, sampler in it.rules.items() if not sampler.private] == ["conference"]
    exact = it.rules["exact"]
    for name in ("roo", "journal", "journal-repaired"):
        for m in range(it.n // it.k + 1):
            assert it.rules[name].obscuring(m) >= exact.obscuring(m)


def after_witness(it: Any) -> None:
    assert it.witness.counts == (6, 6, 8)
    assert it.witness.neighbour == (7, 6, 7)
    assert it.ratio == it.sampler.audit.worst_ratio
    assert it.ratio > exp_upper(it.epsilon)


def after_refused(it: Any) -> None:
    assert it.refused


def after_small(it: Any) -> None:
    assert not it.small["journal"].private
    assert it.small["journal-repaired"].private
    assert it.small["exact"].private


def after_away(it: Any) -> None:
    assert it.away < 1e-08
    assert it.proof.slack >= 0


def after_lost(it: Any) -> None:
    assert np.all(it.lost["exact"] <= it.lost["roo"])


def after_pair(it: Any) -> None:
    assert 0.9 * it.pair[0] < it.pair[1] < it.pair[0]
    assert np.isclose(it.worst[0], it.worst[1], rtol=1e-09)


def after_floor(it: Any) -> None:
    assert it.floor.private


def after_rows(it: Any) -> None:
    assert np.all(np.diff(it.rows, axis=1) > -1e-06)


def after_city(it: Any) -> None:
    assert it.city in it.alphabet
    assert it.refused
    assert "Zug" not in it.refused
    assert abs(it.share - it.sampler.output_distribution(it.counted.counts)).max() < 0.04


def after_losses(it: Any) -> None:
    for counts, lost in it.losses.items():
        assert (lost["floor"] < lost["exact"]) == (min(counts) < 6)


def after_optima(it: Any) -> None:
    for optimal in it.optima.values():
        assert optimal.gap < 1e-6
        assert optimal.certificate.slack >= 0

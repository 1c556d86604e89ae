"""What holds for a kind's example holds for its other forms, whose proofs are different ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import Guarantee, kernel, majority, public_prior, roo
from tests.shape import checks
from tests.shape.checks import run

PRIOR = [0.2, 0.3, 0.5]
PATH = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
SQUARE = [[0.0, 1.0, 1.0, 2.0], [1.0, 0.0, 2.0, 1.0], [1.0, 2.0, 0.0, 1.0], [2.0, 1.0, 1.0, 0.0]]
CIRCLE = [[0.0, 1.0, 2.0, 1.0], [1.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0, 1.0], [1.0, 2.0, 1.0, 0.0]]

# A setting, and an input of it.
VARIANTS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "deltas": lambda: (
        majority.MajoritySetting(3, 0.5, 1.5, mechanism_delta=1e-3, delta=0.01),
        [0, 1, 1],
    ),
    "one q": lambda: (roo.min_count(6, 3, 0.9, "roo").setting, [0, 0, 0, 1, 1, 2]),
    "journal": lambda: (roo.min_count(6, 3, 0.9, "journal-repaired").setting, [0, 0, 0, 1, 1, 2]),
    "leximin": lambda: (public_prior.leximin_kernel(PRIOR, 0.8).setting, 1),
    "delta": lambda: (kernel.KernelSetting(PATH, 0.5, 0.1, graph="path"), 1),
    "complete": lambda: (kernel.KernelSetting(PATH, 0.5, prior=PRIOR, invariant=PRIOR), 1),
    "orbits": lambda: (
        kernel.KernelSetting(PATH, 0.5, graph="path", objective="minimax", symmetry="reflection"),
        1,
    ),
    "orbits with delta": lambda: (
        kernel.KernelSetting(CIRCLE, 0.5, 0.1, graph="cycle", symmetry="dihedral"),
        1,
    ),
    "orbits of words": lambda: (
        kernel.KernelSetting(SQUARE, 0.5, graph="hamming", shape=(2, 2), symmetry="hamming"),
        1,
    ),
}

CHECKS = (
    checks.survives_its_file,
    checks.comes_back_from_its_file,
    checks.releases_its_law,
    checks.a_changed_file_is_not_loaded,
    checks.a_malformed_file_is_refused,
    checks.copies_are_the_same,
    checks.proof_refuses_units_more,
    checks.proof_refuses_what_is_clearly_broken,
    checks.proof_is_about_its_integers,
    checks.a_forged_pickle_is_proved_again,
    checks.without_a_proof_nothing_is_released,
    checks.pairs_are_within_the_guarantee,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant(
    name: str, check: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, data = VARIANTS[name]()
    monkeypatch.setattr(type(setting), "example", lambda: setting)
    monkeypatch.setattr(type(setting), "example_data", lambda: data)
    run(check, type(setting), tmp_path)


def test_the_guarantees_are_those_asked_for() -> None:
    assert dpopt.design(VARIANTS["deltas"]()[0]).guarantee == Guarantee(0.75, 0.01)
    assert dpopt.design(VARIANTS["delta"]()[0]).guarantee == Guarantee(0.5, 0.1)

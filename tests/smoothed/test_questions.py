"""The kinds of this paper: closed form and program agree, files name the mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dpopt
from dpopt import ParameterError, smoothed
from dpopt.prob.histograms import checked_histograms
from dpopt.shape import Question
from dpopt.smoothed.mechanisms import plain_mechanism

RNG = np.random.default_rng


def random_kernel(records: int, outputs: int, seed: int) -> smoothed.KernelMechanism:
    rows = RNG(seed).dirichlet(np.full(outputs, 0.7), size=records + 1)
    return smoothed.KernelMechanism(records, 2, rows)


@dataclass(frozen=True)
class Parity(smoothed.AnonymousMechanism):
    """A mechanism of a user: the parity of the first count, told wrongly with chance ``error``."""

    records: int
    error: float
    categories: int = 2

    @property
    def outputs(self) -> int:
        return 2

    def laws(self, histograms: npt.ArrayLike) -> npt.NDArray[np.float64]:
        odd = checked_histograms(histograms, self.records, 2)[:, 0] % 2 == 1
        wrong = np.where(odd, self.error, 1.0 - self.error)
        return np.column_stack([wrong, 1.0 - wrong])

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": "parity", "error": self.error}


LAWS = [[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]]
QUESTIONS: list[Question[Any]] = [
    smoothed.Smoothed(records=6, drawn=4, epsilon=0.3, distributions=[0.3, 0.6]),
    smoothed.Smoothed(
        records=6, drawn=3, epsilon=0.7, distributions=[[0.2, 0.8], [0.9, 0.1]], replacement=True
    ),
    smoothed.Smoothed(records=5, drawn=2, epsilon=0.5, distributions=LAWS),
    smoothed.Smoothed(mechanism=random_kernel(5, 4, 3), epsilon=0.2, distributions=[0.2, 0.9]),
    smoothed.Smoothed(mechanism=Parity(4, 0.3), epsilon=0.1, distributions=[0.2, 0.9]),
    smoothed.Expected(records=5, drawn=2, epsilon=0.5, distributions=LAWS, composition=[1, 4]),
    smoothed.Profile(counts=[3, 0, 2], drawn=3, epsilon=0.4),
    smoothed.Profile(records=6, lost_rate=0.5, epsilon=0.0),
    smoothed.Profile(records=3, categories=3, drawn=4, replacement=True, epsilon=1.0),
    smoothed.Profile(mechanism=random_kernel(4, 3, 1), epsilon=0.3),
    smoothed.SgdStep(values=[0, 0, 1, 3], drawn=2, epsilons=0.4, lowest=0, highest=4),
    smoothed.SgdStep(
        values=[0, 1, 1, 3], drawn=2, epsilons=[0.1, 2.0], lowest=-1, highest=3, rounded=False
    ),
    smoothed.SgdStep(
        values=[0, 1, 2, 3], drawn=3, epsilons=0.2, lowest=0, highest=4, neighbours="extreme"
    ),
    smoothed.NoisyEpsilon(records=4, drawn=1, epsilon=3.0),
    smoothed.NoisyEpsilon(records=3, drawn=2, epsilon=0.4, categories=3),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.kind)
def test_the_closed_form_solves_the_program(question: Question[Any]) -> None:
    closed = dpopt.design(question)
    for backend in ("highs", "cvxpy"):
        solved = dpopt.design(question, backend=backend)
        assert solved.value == pytest.approx(closed.value, rel=1e-9)
        assert abs(solved.gap) <= 1e-9
        assert solved.bound == pytest.approx(closed.value, rel=1e-9)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.kind)
def test_a_file_names_the_question_and_the_mechanism(
    question: Question[Any], tmp_path: Path
) -> None:
    found = dpopt.design(question)
    found.save(tmp_path / "answer.json")
    again = dpopt.load(tmp_path / "answer.json")
    assert again.value == pytest.approx(found.value, rel=1e-15)
    assert type(again) is type(found)
    assert again.setting.to_dict() == question.to_dict()


def test_each_database_and_epsilon_has_the_solver_s_value() -> None:
    profile = smoothed.Profile(records=5, categories=3, drawn=3, epsilon=0.6)
    closed, solved = dpopt.design(profile), dpopt.design(profile, backend="highs")
    assert closed.log_delta.shape == (21,)
    assert solved.log_delta == pytest.approx(closed.log_delta, abs=1e-9)
    step = smoothed.SgdStep(
        values=[0, 0, 1, 3, 4], drawn=2, epsilons=[0.2, 1.5, 0.7], lowest=-2, highest=5
    )
    closed, solved = dpopt.design(step), dpopt.design(step, backend="highs")
    assert solved.log_delta == pytest.approx(closed.log_delta, abs=1e-9)
    for epsilon, log_delta, worst in zip(
        solved.epsilons, solved.log_delta, solved.worst, strict=True
    ):
        assert worst is not None
        moved = closed.values.copy()
        moved[int(np.argmax(moved == worst.replaced))] = worst.replacement
        own = dict(batch(closed.values.tolist(), 2))
        other = dict(batch(moved.tolist(), 2))
        first, second = (own, other) if worst.direction == "d(x, x')" else (other, own)
        stick = sum(max(0.0, p - math.exp(epsilon) * second.get(o, 0.0)) for o, p in first.items())
        assert math.log(stick) == pytest.approx(log_delta, abs=1e-9)


def batch(values: list[int], drawn: int) -> dict[int, float]:
    """Return the law of the rounded mean of two of the values, pair by pair."""
    law: dict[int, float] = {}
    pairs = [(i, j) for i in range(len(values)) for j in range(i)]
    for i, j in pairs:
        mean = math.floor(Fraction(values[i] + values[j], drawn) + Fraction(1, 2))
        law[mean] = law.get(mean, 0.0) + 1.0 / len(pairs)
    return law


def test_a_solver_finds_the_composition_too() -> None:
    asked = smoothed.Smoothed(records=36, drawn=34, epsilon=0.0, distributions=[0.4, 0.6])
    closed, solved = dpopt.design(asked), dpopt.design(asked, backend="highs")
    assert solved.argmax == closed.argmax == (18, 18)
    assert solved.certified
    assert solved.certificate.method == "linear program"
    assert solved.certificate.compositions == 37


def test_deltas_below_the_range_of_floats_survive(tmp_path: Path) -> None:
    asked = smoothed.Smoothed(records=500_000, lost_rate=0.5, epsilon=2.0, distributions=[0.5])
    found = dpopt.design(asked)
    assert found.value == found.delta == found.bound == 0.0
    assert -1e6 < found.log_delta < -1e4
    assert found.certificate.log_bound == pytest.approx(found.log_delta, rel=1e-9)
    found.save(tmp_path / "far.json")
    assert dpopt.load(tmp_path / "far.json").log_delta == found.log_delta
    assert found.to_dict()["log10_delta"] == found.log10_delta


def test_the_plain_fields_and_the_mechanism_are_the_same_question() -> None:
    mechanism = smoothed.SamplingHistogram.of_lost_rate(1000, "0.002")
    asked = smoothed.Smoothed(mechanism=mechanism, epsilon=1.0, distributions=[0.4, 0.6])
    plain = smoothed.Smoothed(records=1000, lost_rate=0.002, epsilon=1.0, distributions=[0.4, 0.6])
    assert asked == plain
    assert plain.drawn == 998
    assert smoothed.smoothed_delta(mechanism, 1.0, [0.4, 0.6]).setting == plain


@pytest.mark.parametrize(
    "mechanism",
    [
        smoothed.SamplingHistogram(5, 3, 3, True),
        smoothed.NoisyHistogram(4, 2, 0.5),
        smoothed.SamplingAverage(5, 2, [0, "1/2", 3]),
        random_kernel(3, 4, 2),
        smoothed.post_process(smoothed.SamplingHistogram(4, 2), [0, 1, 1]),
        smoothed.post_process(
            smoothed.SamplingHistogram(3, 1), [[0.25, 0.75, 0.0], [0.0, 0.5, 0.5]]
        ),
        smoothed.pre_process(smoothed.SamplingHistogram(4, 2), [0, 1, 1]),
        smoothed.compose(smoothed.SamplingHistogram(4, 2), smoothed.NoisyHistogram(4, 1, 1.0)),
        Parity(5, 0.2),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_mechanism_is_read_back_from_its_plain_values(mechanism: Any) -> None:
    again = smoothed.read_mechanism(plain_mechanism(mechanism))
    assert (again.records, again.categories) == (mechanism.records, mechanism.categories)
    profiles = [smoothed.privacy_profile(m, 0.3).log_delta for m in (mechanism, again)]
    np.testing.assert_allclose(profiles[0], profiles[1], rtol=1e-12)


def test_the_noisy_histogram_is_enclosed_and_where_possible_exact() -> None:
    for records, drawn, epsilon in [(4, 1, 3.0), (5, 4, 0.3), (6, 2, 20.0)]:
        mechanism = smoothed.NoisyHistogram(records, drawn, epsilon)
        known = smoothed.noisy_guarantee(mechanism)
        exact = dpopt.design(known.setting)
        assert known.attained - 1e-12 <= exact.value <= known.amplified + 1e-12
        assert exact.gap == 0.0
        assert exact.holds is not None
        assert known.holds in (None, exact.holds)
    large = dpopt.design(smoothed.NoisyEpsilon(records=2000, drawn=1000, epsilon=1.0))
    assert (large.bound, large.value) == (large.attained, large.amplified)
    assert large.gap is not None
    assert large.gap > 0.0


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (
            smoothed.Smoothed(records=3000, drawn=9, epsilon=1.0, distributions=[0.4, 0.6]),
            "2,000,000",
        ),
        (
            smoothed.Expected(
                records=30_000, drawn=30, epsilon=1.0, distributions=[0.4], composition=[30_000]
            ),
            "2,000,000",
        ),
        (smoothed.Profile(records=2000, drawn=1000, epsilon=1.0), "2,000,000"),
        (smoothed.SgdStep(values=range(-99, 100), drawn=9, epsilons=0.1), "2,000,000"),
        (smoothed.NoisyEpsilon(records=200, drawn=150, epsilon=0.1), "2,000,000"),
        (smoothed.NoisyEpsilon(records=2, drawn=1, epsilon=600.0), "closed form"),
    ],
    ids=lambda case: getattr(case, "kind", "words"),
)
def test_a_program_that_is_too_large_says_up_to_which_size(
    question: Question[Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        question.problem()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"drawn": None}, "drawn and lost_rate"),
        ({"lost_rate": 0.1}, "drawn and lost_rate"),
        ({"drawn": None, "lost_rate": 0.1, "replacement": True}, "without replacement"),
        ({"mechanism": Parity(4, 0.1)}, "of it"),
        ({"mechanism": Parity(4, 0.1), "drawn": None, "records": 5}, "the mechanism has 4"),
        ({"mechanism": "{}", "drawn": None}, "JSON object"),
        ({"mechanism": 3, "drawn": None}, "mechanism is 3"),
        ({"records": None}, "records is None"),
        ({"replacement": 1}, "replacement is 1"),
        ({"distributions": 0.5}, "distributions"),
    ],
)
def test_fields_that_do_not_fit_are_named(change: dict[str, Any], words: str) -> None:
    good = {"records": 4, "drawn": 3, "epsilon": 0.5, "distributions": [[0.4, 0.6]]}
    with pytest.raises(ParameterError, match=words):
        smoothed.Smoothed(**{**good, **change})


def test_a_profile_takes_counts_records_or_a_mechanism() -> None:
    with pytest.raises(ParameterError, match="counts and records"):
        smoothed.Profile(drawn=3, epsilon=0.1)
    with pytest.raises(ParameterError, match="counts is"):
        smoothed.Profile(counts=[3], drawn=3, epsilon=0.1)
    with pytest.raises(ParameterError, match="counts is"):
        smoothed.Profile(counts=[math.inf, 1], drawn=3, epsilon=0.1)
    with pytest.raises(ParameterError, match="histogram"):
        smoothed.Profile(counts=[3, 4], records=8, drawn=3, epsilon=0.1)
    with pytest.raises(ParameterError, match="releases nothing"):
        dpopt.design(smoothed.Profile.example()).release([3, 2])


@pytest.mark.parametrize("epsilon", [1e-320, 1e-17, 1e-10, 1e-5])
def test_a_tiny_epsilon_of_the_noise_is_enclosed_and_never_nothing(epsilon: float) -> None:
    found = dpopt.design(smoothed.NoisyEpsilon(records=3, drawn=2, epsilon=epsilon))
    # 1/3 epsilon up to terms of epsilon^2, by hand: T / n = 2 / 3 of a noise of epsilon / 2.
    assert found.bound is not None
    assert 0.0 < found.bound <= epsilon / 3.0 * (1.0 + 1e-4) <= found.value * (1.0 + 1e-3)
    with pytest.raises(ParameterError, match="written out from 0.0001"):
        dpopt.design(found.setting, backend="highs")

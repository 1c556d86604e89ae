"""What must be so once cells of a notebook have run.

A notebook reads as a lesson, without checks. ``NOTEBOOK__NAME`` is called in the notebook's kernel
after the first cell that assigns NAME, with everything that is defined by then. What mechanisms
compute is tested with them: here stands what their lesson says of these very numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpopt import public_prior, smoothed
from dpopt.privacy import exp_upper


def kernel__geometric(it: Any) -> None:
    assert abs(it.design.kernel - it.geometric).max() < 1e-06
    assert np.isclose((it.geometric * it.loss).sum() / 9, it.design.value, atol=1e-09)


def kernel__kept(it: Any) -> None:
    assert np.isclose(it.kept.value, public_prior.minimax_utility(it.q, 1.0), atol=1e-08)


def kernel__by_edge(it: Any) -> None:
    """The prices of single edges add up to the slope of the value in epsilon."""
    assert np.isclose(it.by_edge.sum(), (it.up - it.down) / (2 * it.h), rtol=0.001)


def kernel__held(it: Any) -> None:
    assert it.held.value > it.design.value
    assert "near" in it.refused
    assert "privacy" in it.refused


def kernel__relaxed(it: Any) -> None:
    for delta, found in it.relaxed.items():
        assert np.isclose(found.value, (1 - delta) / (1 + math.exp(it.epsilon)), atol=1e-8)


def majority__refusal(it: Any) -> None:
    assert round(it.design.expected_error, 4) == 0.0256
    # Each is the best of the three under its own prior.
    assert np.all(it.table.diagonal() <= it.table.min(axis=0) + 1e-9)
    assert it.table[0, 1] > 5 * it.table[1, 1]
    assert it.independent.expected_error <= it.sampled + 4 * it.spread
    assert np.isclose((1 - it.worst.gamma.min()) / 2, -it.worst.value, atol=1e-9)
    assert it.proof.constraints == 144
    assert abs(it.drawn.mean() - it.chance) < 5 * (it.chance * (1 - it.chance) / 50_000) ** 0.5
    assert it.refusal


def majority_claims__ratio(it: Any) -> None:
    assert it.ratio > exp_upper(Fraction(6))


def majority_claims__smallest(it: Any) -> None:
    for name, voter in it.teachers.items():
        assert 11 * voter < Fraction(it.smallest[name])


def proofs__accepted(it: Any) -> None:
    assert it.accepted[0] == 0
    assert it.design.bound.how == "proved"
    assert 0 <= it.design.value - it.design.bound < 1e-11


def proofs__moved(it: Any) -> None:
    assert it.moved[0] == 4
    assert it.moved[1].startswith("REFUSED: not private: the ratio of variables")


def proofs__weaker(it: Any) -> None:
    """Each leaves the design private, and its value as it is."""
    assert (it.weaker[0], it.wrong[0]) == (4, 4)
    for _, text in (it.weaker, it.wrong):
        assert text.startswith("private")
        assert text.splitlines()[-1].startswith("REFUSED")


def proofs__decided(it: Any) -> None:
    assert it.exact.value == Fraction(32420, 43841)
    assert it.decided[0] == 0
    assert it.decided[1].startswith("optimal: 32420/43841 for e^epsilon = 5/2 (kernel, 66 rows)")


def proofs__at_two(it: Any) -> None:
    assert np.allclose([float(r) for r in it.form.breaks], [math.sqrt(3), 3])
    kernel = [[it.at_two.get(("K", x, y), Fraction(0)) for y in range(3)] for x in range(3)]
    losses = [sum(p * (x - y) ** 2 for y, p in enumerate(law)) for x, law in enumerate(kernel)]
    assert max(losses) == it.form(2) == Fraction(5, 6)


def public_prior__leximin(it: Any) -> None:
    assert np.isclose(it.program.value, it.design.gamma_tv, atol=1e-08)
    assert np.isclose(it.leximin.worst_tv, it.design.gamma_tv, atol=1e-12)
    assert np.all(np.sort(it.leximin.diagonal)[:4] >= np.sort(it.design.diagonal)[:4] - 1e-12)


def public_prior__share(it: Any) -> None:
    assert abs(it.share - it.design.apply(it.p)).max() < 5 * 0.5 / 20000**0.5


def public_prior__near(it: Any) -> None:
    assert it.distance.mean() < it.kernel.mean()
    assert it.worst > it.leximin.worst_tv


def reveal_or_obscure__rules(it: Any) -> None:
    assert [name for name, sampler in it.rules.items() if not sampler.private] == ["conference"]


def reveal_or_obscure__witness(it: Any) -> None:
    assert (it.witness.counts, it.witness.neighbour) == ((6, 6, 8), (7, 6, 7))
    assert it.ratio > exp_upper(it.epsilon)


def reveal_or_obscure__refused(it: Any) -> None:
    assert it.refused


def reveal_or_obscure__city(it: Any) -> None:
    assert it.city in it.alphabet
    assert it.refused
    assert "Zug" not in it.refused


def reveal_or_obscure__losses(it: Any) -> None:
    for counts, lost in it.losses.items():
        assert (lost["floor"] < lost["exact"]) == (min(counts) < 6)


def smoothed__logs(it: Any) -> None:
    assert np.isclose(10 ** it.logs[2020], 1.207812712909e-32, rtol=1e-10)


def smoothed__expected(it: Any) -> None:
    assert it.found.certified
    assert it.found.argmax == (18, 18)
    assert np.isclose(it.found.delta, 0.478070349009, atol=1e-12)
    assert np.isclose(it.expected[0], 0.477756536586, atol=1e-12)


def smoothed__inverse(it: Any) -> None:
    assert smoothed.smoothed_delta(it.mechanism, it.inverse.epsilon, [0.4, 0.6]).delta <= 1e-06
    assert smoothed.smoothed_delta(it.mechanism, it.inverse.lower, [0.4, 0.6]).delta > 1e-06


def smoothed__best(it: Any) -> None:
    stick = np.maximum(it.p - math.exp(0.5) * it.q, 0).sum()
    assert np.isclose(it.best.objective, stick, atol=1e-09)


def smoothed__mean(it: Any) -> None:
    assert np.isclose(it.exact.delta[1], 9.144733474356e-06, rtol=1e-10)
    assert np.isclose(it.exact.delta[4], 2.454641855294e-10, rtol=1e-10)
    assert it.drawn[-1] > 100 * it.exact.delta[-1]


def votes__minimax(it: Any) -> None:
    assert it.best.mean_regret < it.minimax.mean_regret
    assert it.minimax.worst_regret - it.minimax.bound < 1e-8
    assert [round(d.worst_regret, 2) for d in (it.best, it.minimax)] == [1.2, 1.1]


def votes__refused(it: Any) -> None:
    assert it.voting.queries_ == 30
    assert it.voting.spent_.epsilon == 15.0
    assert "affords 40" in it.refused


def votes__others(it: Any) -> None:
    assert round(it.three.error, 4) == 0.0601
    assert [round(d.error, 4) for d in it.others.values()] == [0.1165, 0.1247, 0.1312, 0.1655]


def votes__beyond(it: Any) -> None:
    assert it.released == 3
    assert it.last[1].epsilon <= 2.8 + 1e-12
    assert "left of the budget" in it.beyond


def workload__compared(it: Any) -> None:
    assert math.isclose(it.compared["this"], it.compared["bound"], rel_tol=1e-8)
    assert it.decoded > it.design.variance


def workload__estimate(it: Any) -> None:
    off = np.abs(it.estimate.values - it.truth)
    assert np.all(off <= 6 * it.estimate.standard_errors + 1e-6)


def workload__made(it: Any) -> None:
    means = {name: it.q @ each.letter_variances for name, each in it.made.items()}
    most = {name: each.letter_variances.max() for name, each in it.made.items()}
    assert min(means, key=lambda name: means[name]) == "for the prior"
    assert min(most, key=lambda name: most[name]) == "for the worst"


def your_program_proved__answer(it: Any) -> None:
    assert abs(it.model.objective.value - it.solution.objective) < 1e-6
    assert it.solution.bound <= it.answer.objective + 1e-9


def your_program_proved__tables(it: Any) -> None:
    assert it.design.private
    assert it.risk <= it.RISK + 1e-12


def your_program_proved__by_definition(it: Any) -> None:
    assert abs(it.by_cvxpy.objective - it.by_problem.objective) < 1e-7
    assert abs(it.by_definition.objective - it.by_cvxpy.objective) < 1e-7

"""Ensembles on real data: every number against counting, sampling or the package's exact tables."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import dpopt
from dpopt.ballots.tabulate import audit_rule
from dpopt.privacy import Guarantee
from experiments.catalogue import named
from experiments.ensembles import images, plain, pmfs, private
from experiments.ensembles.ladder import ladder
from experiments.ensembles.teachers import fitted, ink_features, regression
from experiments.ensembles.teachers import plain as teach
from experiments.majority.pate.votes import SHIPPED, load_votes
from experiments.majority.renyi import gaussian_delta
from experiments.registry import Outcome
from tests.ballots.pmfs import exponential, permute_and_flip
from tests.experiments.comparing import ran

pytestmark = pytest.mark.slow

DIGITS, LABELS = (named(f"ensembles-digits-{what}") for what in ("plain", "labels"))
SMALL = plain.Config(voters=(9, 6), queries=200, seeds=3, optimal=(0.5,), most_solved=6)
SMALL_LABELS = plain.LabelsConfig(
    voters=(9,), queries=200, seeds=3, designed_voters=5, designed_labels=(10,)
)
SMALL_PRIVATE = private.Config(digits=("358", "01234"), voters=5, allowance=(1, 2, 3), seeds=3)


@pytest.fixture(scope="module")
def digits() -> Outcome:
    return ran(DIGITS, SMALL)


@pytest.fixture(scope="module")
def labels() -> Outcome:
    return ran(LABELS, SMALL_LABELS)


def test_labels_designed_together_against_their_distribution_at_each_query(labels: Outcome) -> None:
    budget = {"releases": 10, "total_epsilon": 5.0, "total_delta": 1e-5}
    design = dpopt.design(dpopt.Plurality(5, 10, loss="error", **budget))
    shares = []
    for polled in SMALL_LABELS.polled(9):
        first = polled.first(5)
        for votes, label in zip(first.votes, first.labels.tolist(), strict=True):
            weights = design.setting.output_weights(design.table, votes)
            shares.append(weights[label] / sum(weights))
    accuracies = {row["method"]: row["accuracy"] for row in labels.tables["designed"].records}
    designed = accuracies.pop("designed")
    assert designed == pytest.approx(np.mean(shares), abs=1e-12)
    del accuracies["plurality"]
    assert designed > max(accuracies.values())


@pytest.fixture(scope="module")
def voters() -> Outcome:
    return ran(private.run, SMALL_PRIVATE)


@pytest.fixture(scope="module")
def mnist() -> Outcome:
    return ran(images.run, replace(images.run.quick, allowance=(1, 3)))


@pytest.mark.parametrize(("voters", "classes"), [(6, 3), (9, 4), (7, 10), (1, 5)])
def test_rules_are_those_of_the_package_in_fractions(voters: int, classes: int) -> None:
    rules = pmfs.rules_of(voters, classes)
    step = Fraction(7, 5)
    for found, exact in (
        (rules.ladder(1.4), ladder),
        (rules.permute_and_flip(1.4), permute_and_flip),
        (rules.exponential(1.4), exponential),
    ):
        for state, places in zip(rules.inputs.listed(), rules.inputs.variables, strict=True):
            pmf = exact(state, step)
            assert [found[v] for v in places] == pytest.approx([float(x) for x in pmf], abs=1e-14)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_a_calibrated_rule_is_the_one_audited_in_integers(epsilon: float) -> None:
    """Ten classes, where the ladder's r is lowered at a small epsilon."""
    rules = pmfs.rules_of(12, 10)
    for name, rule in (
        ("ladder", rules.ladder),
        ("permute-and-flip", rules.permute_and_flip),
        ("exponential", rules.exponential),
    ):
        share, parameter = rules.calibrated(rule, epsilon)
        step, table = audit_rule(name, 12, 10, epsilon)  # pyright: ignore[reportArgumentType]
        assert parameter == pytest.approx(float(step), rel=1e-7)
        assert share == pytest.approx(table.probabilities, abs=1e-7)
        assert epsilon * (1 - 1e-8) <= rules.spent(share) <= epsilon * (1 + 1e-13)


def test_noisy_counts_win_as_often_as_they_are_drawn_to() -> None:
    rng = np.random.default_rng(4)
    histograms = np.array([[7, 3, 1, 1], [5, 5, 2, 0], [3, 3, 3, 3]])
    own = np.array([7, 2, 3])
    draws = 200_000
    noises = {
        pmfs.laplace_wins: rng.laplace(size=(draws, 4)),
        pmfs.gaussian_wins: rng.standard_normal((draws, 4)),
    }
    for (wins, noise), scale in product(noises.items(), (0.4, 2.0, 9.0)):
        for row, count, chance in zip(histograms, own, wins(histograms, own, scale), strict=True):
            place = row.tolist().index(count)
            seen = float((np.argmax(row + scale * noise, axis=1) == place).mean())
            spread = math.sqrt(chance * (1 - chance) / draws)
            assert seen == pytest.approx(chance, abs=5 * spread + 1e-4)
        whole = [wins(histograms[:1], np.array([c]), scale)[0] for c in histograms[0]]
        assert sum(whole) == pytest.approx(1.0, abs=1e-9)


def test_pure_labels_compose_as_randomised_responses_do() -> None:
    """Every sequence of answers is counted; one label is its own total."""
    epsilon, labels, total = 0.7, 6, 1.5
    true = math.exp(epsilon) / (1 + math.exp(epsilon))
    delta = 0.0
    for answers in product((true, 1 - true), repeat=labels):
        one, other = math.prod(answers), math.prod(1 - p for p in answers)
        delta += max(0.0, one - math.exp(total) * other)
    assert pmfs.pure_delta(total, labels, epsilon) == pytest.approx(delta, rel=1e-12)
    assert pmfs.pure_delta(1.0, 1, 1.0) == pytest.approx(0.0, abs=1e-16)
    budget = Guarantee(1.0, 1e-5)
    share = pmfs.pure_share(budget, 40)
    assert 1.0 / 40 < share < 1.0
    assert pmfs.pure_delta(1.0, 40, share) <= 1e-5 < pmfs.pure_delta(1.0, 40, 1.001 * share)
    assert pmfs.ranged_share(budget, 40) > share
    sigma = pmfs.gnmax_noise(budget, 40)
    assert gaussian_delta(1.0, sigma, math.sqrt(80.0)) <= 1e-5


def test_accuracies_are_those_of_votes_counted_and_rules_drawn(digits: Outcome) -> None:
    table = digits.tables["accuracy"]
    rng = np.random.default_rng(0)
    plurality, flips, noisy = [], [], []
    (row,) = table.select(voters=9, epsilon=0.5, method="gnmax").records
    for seed in range(3):
        polled = teach(9, 40, 200, seed)
        counts = polled.counts()
        assert counts.sum(axis=1).tolist() == [9] * 200
        best = counts == counts.max(axis=1, keepdims=True)
        right = best[np.arange(200), polled.labels] / best.sum(axis=1)
        plurality.append(right.mean())
        # Permute-and-flip: the first, in random order, that its coin takes.
        many = np.repeat(counts, 100, axis=0)
        takes = rng.random(many.shape) < np.exp(-0.25 * (many.max(axis=1, keepdims=True) - many))
        order = np.where(takes, rng.random(many.shape), 2.0)
        flips.append((order.argmin(axis=1) == np.repeat(polled.labels, 100)).mean())
        drawn_counts = many + row["parameter"] * rng.standard_normal(many.shape)
        noisy.append((drawn_counts.argmax(axis=1) == np.repeat(polled.labels, 100)).mean())
    at = table.select(voters=9, epsilon=0.5)
    for method, seen, near in (
        ("plurality", plurality, 1e-12),
        ("permute-and-flip", flips, 0.01),
        ("gnmax", noisy, 0.01),
    ):
        (found,) = at.select(method=method).column("accuracy")
        assert found == pytest.approx(float(np.mean(seen)), abs=near), method
    (error,) = at.select(method="plurality").column("standard_error")
    assert error == pytest.approx(float(np.std(plurality, ddof=1)) / math.sqrt(3))


@pytest.mark.nightly
def test_private_voters_against_samples_of_their_votes(voters: Outcome) -> None:
    table = voters.tables["accuracy"]
    rng = np.random.default_rng(2)
    model = fitted((3, 5, 8), 4, 0.1, 2 / 3, 0)
    known = float((model.predicted == model.labels).mean())
    # Randomised response: K answers, and the plurality of them.
    odds = math.exp(1.0)
    answers = np.where(
        rng.random((100_000, 5)) < odds / (odds + 2), 0, rng.integers(1, 3, (100_000, 5))
    )
    counts = np.stack([(answers == c).sum(axis=1) for c in range(3)], axis=1)
    best = counts == counts.max(axis=1, keepdims=True)
    right = float((best[:, 0] / best.sum(axis=1)).mean())
    one = replace(SMALL_PRIVATE, digits=("358",), teachers=("response",), seeds=1)
    first = private.run.run(one).tables["accuracy"]
    (found,) = first.select(epsilon=1.0, m=3, method="all").column("accuracy")
    assert found == pytest.approx(known * right + (1 - known) * (1 - right) / 2, abs=0.005)
    (single,) = first.select(epsilon=1.0, m=3, method="one-voter").column("accuracy")
    share = odds / (odds + 2)
    assert single == pytest.approx(known * share + (1 - known) * (1 - share) / 2, rel=1e-12)
    for row in table.records:
        assert row["within_budget"] == (row["spent_epsilon"] <= row["m"] * row["epsilon"] + 1e-8)
    for row in table.select(method="sampled").records:
        assert row["within_budget"]
    assert not any(table.select(method="all", m=2).column("within_budget"))


def test_noise_on_weights_has_the_norm_of_its_distribution() -> None:
    model = fitted((3, 5, 8), 4, 0.1, 2 / 3, 0)
    assert np.linalg.norm(model.asked, axis=1).max() <= 1.0 + 1e-12
    assert model.sensitivity == pytest.approx(2 * math.sqrt(2) / (model.images * 0.1))
    almost = model.noisy(1e9, 3, np.random.default_rng(0))
    assert almost.votes.T.tolist() == [model.predicted.tolist()] * 3


def test_one_replaced_image_moves_the_weights_by_the_sensitivity_at_most() -> None:
    features, labels = ink_features(4)[:60], np.arange(60) % 3
    assert np.linalg.norm(ink_features(8), axis=1).max() <= 1.0 + 1e-12
    weights = regression(features, labels, 0.05)
    # The optimum: the mean of (p - e_y) x^T, and the regularisation's own gradient.
    scores = np.exp(features @ weights.T)
    wrong = scores / scores.sum(axis=1, keepdims=True) - np.eye(3)[labels]
    assert wrong.T @ features / 60 + 0.05 * weights == pytest.approx(0.0, abs=1e-7)
    far = []
    for place, label in ((0, 1), (1, 0), (7, 2)):
        changed, others = features.copy(), labels.copy()
        changed[place], others[place] = -features[place], label
        far.append(np.linalg.norm(regression(changed, others, 0.05) - weights))
    assert 0.1 < max(far) / (2 * math.sqrt(2) / (60 * 0.05)) <= 1.0


def test_mnist_s_accuracies_are_those_of_the_shipped_votes(mnist: Outcome) -> None:
    table = mnist.tables["labels"]
    for dataset in ("mnist", "fashion-mnist"):
        votes = load_votes(SHIPPED[dataset])
        seen = {"one-teacher": [(run.private == votes.labels).mean() for run in votes.runs]}
        for kind in ("private", "plain"):
            ones = [getattr(run, kind).sum(axis=0, dtype=int) for run in votes.runs]
            seen[f"{kind}-majority"] = [((2 * n > 11) == votes.labels).mean() for n in ones]
        for row in table.select(dataset=dataset).records:
            if row["method"] in seen:
                mean = float(np.mean(seen[row["method"]]))
                assert row["accuracy"] == pytest.approx(mean, abs=1e-12)
            else:
                assert row["spent_epsilon"] == pytest.approx(row["m"] * votes.stated_epsilon)

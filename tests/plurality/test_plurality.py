"""The best plurality against reference values, the general program, and plain fractions."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import dpopt
from dpopt import NotPrivateError, ParameterError, Plurality
from dpopt.data.tally import Tally
from dpopt.plurality import Counts
from dpopt.privacy import exp_lower, exp_upper
from dpopt.shape import Design
from tests.cli.running import Capture, run
from tests.oracles import compositions, neighbours, stick

Histogram = tuple[int, ...]


@cache
def designed(records: int, classes: int, epsilon: float, **fields: Any) -> Design:
    return dpopt.design(dpopt.Plurality(records, classes, epsilon, **fields))


def regrets(inputs: list[Histogram]) -> np.ndarray:
    return np.array([[max(h) - count for count in h] for h in inputs], dtype=float)


def least_cost(
    inputs: list[Histogram], epsilon: float, cost: np.ndarray, rows: Any = None, limit: float = 0.0
) -> float:
    """The least cost of a private kernel over ordered histograms, and under rows, by scipy."""
    place, classes = {h: i for i, h in enumerate(inputs)}, cost.shape[1]
    pairs = [(place[h], place[other]) for h in inputs for other in neighbours(h)]
    ratios = np.zeros((len(pairs), len(inputs)))
    for row, (x, other) in zip(ratios, pairs, strict=True):
        row[x], row[other] = 1.0, -math.exp(epsilon)
    private = np.kron(ratios, np.eye(classes))
    rows = np.zeros((0, private.shape[1])) if rows is None else rows
    limits = np.append(np.zeros(len(private)), np.full(len(rows), limit))
    sums = np.kron(np.eye(len(inputs)), np.ones(classes))
    upper = np.vstack([private, rows])
    return float(linprog(cost.ravel(), upper, limits, sums, np.ones(len(inputs))).fun)


# K, C, epsilon; the best mean and worst regret; and how near, those of the specification by digits.
REFERENCES = [
    (10, 3, 0.5, 0.928370772520, 1.087079051364, 1e-9),
    (20, 3, 0.5, 0.703178833734, 1.114180071614, 1e-9),
    (12, 4, 0.5, 1.184514361590, 1.390246803041, 1e-9),
    (30, 3, 0.5, 0.5108, 1.1038, 5e-5),
    (15, 5, 1.0, 0.45139, 0.7709, 5e-5),
    (20, 10, 1.0, 0.7616, 1.2035, 5e-5),
]


@pytest.mark.slow_after(3)
@pytest.mark.every_case
@pytest.mark.parametrize(("records", "classes", "epsilon", "mean", "most", "digits"), REFERENCES)
def test_reference_values(
    records: int, classes: int, epsilon: float, mean: float, most: float, digits: float
) -> None:
    for objective, value, lost in (("mean", mean, 1e-11), ("worst-case", most, 1.1e-10)):
        found = designed(records, classes, epsilon, objective=objective)
        assert found.value == pytest.approx(value, abs=digits)
        assert found.gap is not None
        assert -1e-12 < found.gap < 1e-9
        assert found.solution is not None
        # What the repair and the rounding to integers cost.
        assert found.value - found.solution.objective < lost


def test_the_minimax_of_least_mean() -> None:
    """By scipy, over ordered histograms: the least mean where no regret is above the worst."""
    records, classes, epsilon = 6, 3, 1.0
    found = designed(records, classes, epsilon, objective="worst-case")
    inputs = list(compositions(records, classes))
    lost = regrets(inputs)
    own = (np.eye(len(inputs))[:, :, None] * lost).reshape(len(inputs), -1)
    best = least_cost(inputs, epsilon, lost / len(inputs), own, found.worst_regret)
    assert found.mean_regret == pytest.approx(best, abs=1e-7)


SMALL = [(1, 2, 0.7), (1, 4, 1.0), (2, 2, 0.3), (2, 3, 1.0), (3, 5, 0.5), (4, 3, 0.2), (5, 2, 1.0)]
SMALL += [(6, 3, 1.0), (4, 4, 2.0)]


@pytest.mark.parametrize("loss", ["regret", "error"])
@pytest.mark.parametrize("prior", ["uniform", "dirichlet:2", "dirichlet:1/2"])
def test_the_optimum_by_another_solver(loss: str, prior: str) -> None:
    """scipy over ordered histograms, weighed by Polya's urn, one vote after the other."""
    records, classes, epsilon = 4, 3, 0.8
    added = {"uniform": 1.0, "dirichlet:2": 2.0, "dirichlet:1/2": 0.5}[prior]
    urn: dict[Histogram, float] = {(0,) * classes: 1.0}
    for drawn in range(records):
        after: dict[Histogram, float] = {}
        for h, mass in urn.items():
            for y in range(classes):
                more = (*h[:y], h[y] + 1, *h[y + 1 :])
                share = (h[y] + added) / (drawn + classes * added)
                after[more] = after.get(more, 0.0) + mass * share
        urn = after
    inputs = sorted(urn)
    lost = regrets(inputs) if loss == "regret" else (regrets(inputs) > 0).astype(float)
    best = least_cost(inputs, epsilon, np.array([urn[h] for h in inputs])[:, None] * lost)
    found = designed(records, classes, epsilon, loss=loss, prior=prior)
    assert found.value == pytest.approx(best, abs=1e-9)


def test_one_record_is_randomised_response() -> None:
    """Of one record the class is told with r / (r + C - 1), and any other with 1 of these parts."""
    for classes in (2, 3, 6):
        found, r = designed(1, classes, 0.9), math.exp(0.9)
        assert found.value == pytest.approx((classes - 1) / (r + classes - 1), abs=1e-12)


@pytest.mark.parametrize(("records", "classes", "epsilon"), [(20, 3, 0.5), (16, 4, 1.0)])
def test_the_ladder_is_the_bayes_optimum(records: int, classes: int, epsilon: float) -> None:
    rule = designed(records, classes, epsilon, rule="ladder")
    best = designed(records, classes, epsilon)
    assert rule.value == pytest.approx(best.value, abs=1e-11)
    # It is the optimum itself, class by class.
    assert np.allclose(rule.table.probabilities, best.table.probabilities, rtol=0, atol=1e-9)


RULES = [
    # K, C, epsilon, rule; mean and worst regret of the specification.
    (30, 3, 0.5, "ladder", 0.5108, 1.1996),
    (60, 3, 0.2, "ladder", 1.6123, 3.073),
    (15, 5, 1.0, "ladder", 0.45140, 0.9050),
    (25, 5, 0.5, "ladder", 1.1381, 1.871),
    (20, 10, 1.0, "ladder", 0.7625, 1.4071),
    (20, 10, 0.5, "ladder", 2.0625, 2.9248),
    (30, 3, 0.5, "permute-and-flip", 0.5652, 1.2938),
    (20, 10, 0.5, "permute-and-flip", 2.6633, 3.5225),
    (30, 3, 0.5, "exponential", 0.8892, None),
    (20, 10, 0.5, "exponential", 2.9775, None),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("records", "classes", "epsilon", "rule", "mean", "most"), RULES)
def test_measured_rules(
    records: int, classes: int, epsilon: float, rule: str, mean: float, most: float | None
) -> None:
    found = designed(records, classes, epsilon, rule=rule)
    assert found.mean_regret == pytest.approx(mean, abs=5.1e-5)
    if most is not None:
        assert found.worst_regret == pytest.approx(most, abs=5.1e-4)
    assert found.spending <= epsilon
    assert found.bound is None


def test_the_ladder_of_two_classes_is_geometric() -> None:
    """Of odd K, a lead of g is told with 1 - r^-((g + 1) / 2) / (1 + 1 / r) of a coin's rest.

    The optimum of two classes is the truncated geometric mechanism, asked which side of the middle:
    u(g) = u(1) r^-((g - 1) / 2) for the smaller class, u(1) = 1 / (1 + r).
    """
    records, r = 9, math.exp(0.6)
    for rule in ("ladder", "optimal"):
        found = designed(records, 2, 0.6, rule=rule)
        for top in range(5, 10):
            gap = 2 * top - records
            weights = found.setting.output_weights(found.table, Counts([records - top, top]))
            expected = r ** (-(gap - 1) / 2) / (1 + r)
            assert weights[0] / sum(weights) == pytest.approx(expected, abs=1e-12)


JUDGED = [
    *((records, classes, epsilon, "optimal") for records, classes, epsilon in SMALL),
    *((5, 3, 0.7, "optimal"), (6, 3, 1.0, "ladder")),
    *((5, 4, 0.4, rule) for rule in ("permute-and-flip", "exponential")),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("records", "classes", "epsilon", "rule"), JUDGED)
def test_every_pair_of_ordered_neighbours(
    records: int, classes: int, epsilon: float, rule: str
) -> None:
    """Single outputs at the largest ratio, and the dominating pair at every smaller one."""
    found = designed(records, classes, epsilon, rule=rule)
    whole, pmfs = found.table.total, dict[Histogram, Any]()
    for histogram in compositions(records, classes):
        weights = found.setting.output_weights(found.table, Counts(histogram))
        assert sum(weights) == whole
        pmfs[histogram] = weights
        # Classes of one count are alike, to the last unit.
        assert len(set(zip(histogram, weights, strict=True))) == len(set(histogram))
    pairs = [(pmf, pmfs[other]) for h, pmf in pmfs.items() for other in neighbours(h)]
    worst = max(Fraction(p, q) for one, two in pairs for p, q in zip(one, two, strict=True))
    assert 1 < worst <= exp_upper(epsilon)
    assert found.spending == pytest.approx(math.log(worst), rel=1e-12)
    least = found.setting.spent(found.table, None, 0.0)
    assert least.lower <= math.log(worst) * (1 + 1e-15)
    assert least.upper >= math.log(worst) * (1 - 1e-15)
    pair = found.setting.dominating(found.table)
    for smaller in (0.0, 0.3 * epsilon, 0.7 * epsilon, 0.98 * epsilon):
        ratio = exp_lower(smaller, 256)
        largest = float(max(stick(one, two, ratio) for one, two in pairs) / whole)
        assert pair.delta(smaller) == pytest.approx(largest, rel=1e-12, abs=1e-15)
        least = found.setting.spent(found.table, smaller, None)
        assert least.upper == pytest.approx(largest, rel=1e-12, abs=1e-15)
        if largest:
            back = found.setting.spent(found.table, None, largest)
            assert back.upper == pytest.approx(smaller, abs=1e-12)


@pytest.mark.parametrize("rule", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize(("records", "classes", "epsilon"), [(300, 10, 0.5), (60, 1000, 1.0)])
def test_rules_need_no_list_of_histograms(
    records: int, classes: int, epsilon: float, rule: Any
) -> None:
    """Histograms of 60 records are too many to list; those of 20 are few for any C."""
    found = dpopt.design(dpopt.Plurality(records, classes, epsilon, rule=rule))
    assert found.certificate is not None
    assert "theorem" in found.certificate.claim
    assert found.certificate.constraints == 1
    assert found.setting.by_theorem
    assert not Plurality(20, classes, epsilon, rule=rule).by_theorem
    exact = found.table
    assert exact**2 <= exp_lower(epsilon)
    assert exact**2 > exp_lower(epsilon * (1 - 1e-8))
    assert found.spending == pytest.approx(epsilon, rel=1e-8)
    assert math.isnan(found.value)
    assert found.to_dict()["value"] is None
    with pytest.raises(NotPrivateError):
        found.setting.judge(exact + Fraction(1, 1 << 33))
    with pytest.raises(ParameterError):
        found.setting.read(["3", "4"])
    counts = np.zeros(classes, dtype=np.int64)
    counts[[3, 7]] = records - 8, 8
    assert 0 <= found.release(Counts(counts)) < classes


def test_a_million_records() -> None:
    found = dpopt.design(dpopt.Plurality(1_000_000, 3, 1.0, rule="exponential"))
    assert found.release(Counts([400_000, 300_000, 300_000])) == 0
    with pytest.raises(ParameterError, match="too long"):
        found.setting.output_weights(found.table, Counts([400_000, 300_000, 300_000]))


def test_votes_are_no_counts() -> None:
    """With as many records as classes either would do: the argument's name says which it is."""
    found = designed(3, 3, 40.0)
    votes = np.array([[2, 1, 0], [1, 1, 1], [2, 2, 0]])
    counts = np.array([[1, 1, 1], [0, 3, 0], [1, 0, 2]])
    pmf = partial(found.setting.output_weights, found.table)
    for row, own in zip(votes, counts, strict=True):
        assert pmf(row) == pmf(Counts(own)) == pmf(Tally.of_counts(own, 3))
    assert pmf([1, 1, 1]) != pmf(Counts([1, 1, 1]))
    # At such an epsilon the class of most votes is certain, up to 2e-17.
    assert np.array_equal(np.asarray(found.release(votes))[1:], [1, 2])
    assert np.array_equal(np.asarray(found.release(Counts(counts)))[1:], [1, 2])
    rng = np.random.default_rng(1)
    assert found.simulate(votes[2], rng) == found.simulate(Counts(counts[2]), rng) == 2
    with pytest.raises(ParameterError, match="votes has shape"):
        found.release()
    with pytest.raises(ParameterError, match="votes holds a value other than"):
        found.release([3, 0, 0])


def test_the_command_line_takes_votes_or_counts(tmp_path: Path, capsys: Capture) -> None:
    path = str(tmp_path / "vote.json")
    designed(3, 3, 40.0).save(path)
    dpopt.design(dpopt.Majority(3, 0.5, 3)).save(tmp_path / "majority.json")
    for given in (["--input", "2,2,0"], ["--counts", "1,0,2"]):
        code, out, _ = run(["release", path, *given, "--json"], capsys)
        assert (code, json.loads(out)["released"]) == (0, [2])
    for words, said in (
        (["release", path, "--counts", "1,0,1"], "counts of a query must add up to 3"),
        (
            ["release", path, "--counts", "1,0,2", "--input", "2,2,0"],
            "give either --input or --counts",
        ),
        (["release", str(tmp_path / "majority.json"), "--counts", "1,2"], "it belongs to"),
    ):
        code, _, err = run(words, capsys)
        assert (code, said in err) == (2, True)


@pytest.mark.parametrize(
    "counts", [[3, 2, 2], [4, 3, -1], [3, 3], [[[3, 2, 1]]], [2.5, 2.5, 1.0], ["3", "2", "1"]]
)
def test_bad_counts_are_refused_without_being_shown(counts: Any) -> None:
    found = designed(6, 3, 1.0)
    for use in (found.release, partial(found.setting.output_weights, found.table)):
        with pytest.raises(ParameterError) as caught:
            use(Counts(counts))
        assert "2.5" not in str(caught.value)
        assert "-1" not in str(caught.value)


def test_a_rule_has_no_program() -> None:
    with pytest.raises(ParameterError, match="no program"):
        dpopt.design(dpopt.Plurality(6, 3, 1.0, rule="ladder"), backend="highs")

"""Linear queries under local privacy: reference values, other solvers, and what people release."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import dpopt
from dpopt import Workload, verify
from dpopt._types import Matrix, Vector
from dpopt.local import query_matrix
from dpopt.local.bound import even_sets, lower_bound, selected, semidefinite
from dpopt.local.decoder import category_variances, worst_prior
from dpopt.local.optimum import Optimum, information, most_missed, optimum, rows_of, slopes
from dpopt.local.symmetry import Symmetry, centred


def designed(*numbers: Any, **named: Any) -> dpopt.Design:
    return dpopt.design(Workload(*numbers, **named))


PRIOR = [u / 36 for u in range(1, 9)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "categories", "epsilon", "prior", "variance"),
    [
        # Of a program of its own, duality gap 5e-14; 2 and 4 categories also by cvxpy below.
        ("prefix", 2, 1.0, None, 0.920673594208),
        ("prefix", 3, 1.0, None, 2.906725434339),
        ("prefix", 4, 1.0, None, 5.993007824842),
        ("prefix", 8, 1.0, None, 23.03136788111),
        ("prefix", 8, 0.5, None, 101.882202800),
        ("prefix", 10, 2.0, None, 6.334046477120),
        ("histogram", 6, 1.0, None, 14.875275473463),
        ("prefix", 8, 1.0, PRIOR, 22.830576022971),
    ],
)
def test_reference_values(
    workload: str, categories: int, epsilon: float, prior: list[float] | None, variance: float
) -> None:
    found = designed(workload, epsilon, categories, prior)
    assert found.value == pytest.approx(variance, rel=1e-10)
    assert found.bound is not None
    assert found.bound <= variance * (1 + 1e-11)
    assert found.bound == pytest.approx(variance, rel=1e-10)
    assert found.proof == ("symmetry" if workload == "histogram" else "enumeration")
    assert np.abs(found.decoder @ found.table.matrix().T - found.setting.matrix).max() < 1e-12


def by_cvxpy(gram: Matrix, epsilon: float, prior: Vector) -> float:
    """F over all patterns, as tr G M^-1 by Schur complements: another program, another solver."""
    n = len(gram)
    patterns = np.array(list(product([1.0, math.exp(epsilon)], repeat=n)))
    theta = cp.Variable(len(patterns), nonneg=True)
    matrix = patterns.T @ cp.diag(cp.multiply(theta, 1 / (patterns @ prior))) @ patterns
    root = np.linalg.cholesky(gram + 0.0)
    cost = sum(cp.matrix_frac(root[:, i], matrix) for i in range(n))
    problem = cp.Problem(cp.Minimize(cost), [patterns.T @ theta == 1])
    problem.solve(solver=cp.CLARABEL)
    value: Any = problem.value
    return float(value) - float(prior @ np.diagonal(gram))


@pytest.mark.parametrize(
    ("categories", "epsilon"), [(2, 1.0), (3, 0.5), (4, 1.0), (4, 3.0), (5, 1.0)]
)
def test_the_same_by_cvxpy_over_all_patterns(categories: int, epsilon: float) -> None:
    rng = np.random.default_rng(categories)
    prior = rng.uniform(0.5, 1.5, categories)
    prior /= prior.sum()
    size = categories + 2, categories
    queries = rng.integers(-2, 3, size) + np.eye(*size) * 5
    expected = by_cvxpy(queries.T @ queries, epsilon, prior)
    found = designed(queries, epsilon, prior=prior)
    assert found.value == pytest.approx(expected, rel=1e-6)
    assert found.bound is not None
    assert found.bound <= expected * (1 + 1e-6)


def subset_selection(n: int, e: float) -> float:
    """The closed form for a histogram and uniform data, k best, and what is subtracted of F / n."""
    sizes = range(1, n)
    least = min((n - 1) ** 2 * (k * e + n - k) ** 2 / (k * (n - k)) for k in sizes)
    return least / (n * (e - 1) ** 2) + 1 / n - 1


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("categories", [2, 3, 5, 8, 16, 30])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_of_a_histogram_subset_selection_is_best(categories: int, epsilon: float) -> None:
    """The closed form, and the column generation that knows nothing of it."""
    n, e = categories, math.exp(epsilon)
    proved = lower_bound(np.eye(n), e, selected(np.eye(n), e))
    assert proved is not None
    assert proved.how == "symmetry"
    assert proved.value - 1 == pytest.approx(subset_selection(n, e), rel=1e-9)
    if n <= 8:
        found = optimum(np.eye(n), e, np.full(n, 1 / n))
        assert found.value == pytest.approx(proved.value, rel=1e-9)


COARSE = [[1.0, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0]]


def test_the_linear_program_of_tangents_agrees() -> None:
    for queries, categories in (("prefix", 2), ("prefix", 3), (COARSE, 5)):
        setting = Workload(queries, 1.0, categories)
        by_tangents = dpopt.design(setting, backend="highs")
        assert by_tangents.value == pytest.approx(dpopt.design(setting).value, rel=1e-7)
    with pytest.raises(dpopt.ParameterError, match="at most 6 categories"):
        dpopt.design(Workload("prefix", 1.0, 7), backend="highs")


def patterns_of(categories: int, ratio: float) -> Matrix:
    return np.array(list(product([1.0, ratio], repeat=categories)))


@pytest.mark.parametrize("categories", [2, 5, 11, 13])
def test_enumeration_finds_the_worst_pattern(categories: int) -> None:
    rng = np.random.default_rng(categories)
    half = rng.standard_normal((categories, 3))
    prior = rng.uniform(0.2, 1, categories)
    prior /= prior.sum()
    at = Optimum(
        np.zeros((0, categories), bool), np.zeros(0), rng.standard_normal(categories), prior, 0.0
    )
    rows = patterns_of(categories, 2.5)
    b = half @ half.T
    excess = np.sum(rows @ b * rows, axis=1) / (rows @ prior) - rows @ at.multipliers
    worst = np.max(excess / rows.sum(axis=1))
    found = most_missed(b, 2.5, at)
    assert worst <= found <= worst + 1e-9 * abs(worst) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("categories", [3, 8, 12])
def test_the_semidefinite_multipliers_pay_for_every_pattern(categories: int) -> None:
    w = query_matrix("prefix", categories)
    gram, p = w.T @ w, np.full(categories, 1 / categories)
    found = optimum(gram, math.e, p)
    rows = rows_of(found.patterns, math.e) * found.theta[:, None]
    value, b = slopes(gram, information(rows, p))
    paid = semidefinite(b, math.e, p, Symmetry.none(categories))
    assert paid is not None
    all_rows = patterns_of(categories, math.e)
    assert np.all(np.sum(all_rows @ b * all_rows, axis=1) / (all_rows @ p) <= all_rows @ paid)
    assert 0 < value - (2 * value - paid.sum()) < 0.03 * value


@pytest.mark.parametrize(("size", "categories"), [(3, 7), (5, 12), (6, 31), (4, 64)])
def test_few_sets_meet_as_evenly_as_all(size: int, categories: int) -> None:
    """Each pair of categories is in sets of the same weight: k (k - 1) / (n (n - 1)) of it."""
    sets, weights = even_sets(categories, size)
    assert np.all(sets.sum(axis=1) == size)
    pairs = np.zeros((categories, categories))
    for turn in range(categories):
        turned = np.roll(sets, turn, axis=1).astype(float)
        pairs += turned.T @ (turned * weights[:, None]) / categories
    expected = size * (size - 1) / (categories * (categories - 1))
    assert pairs[~np.eye(categories, dtype=bool)] == pytest.approx(expected, rel=1e-9)
    assert np.diagonal(pairs) == pytest.approx(size / categories, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["mean", "worst-case"])
def test_a_histogram_of_many_categories_has_its_closed_form(objective: str) -> None:
    found = designed("histogram", 1.0, 40, objective=objective)
    assert found.value == pytest.approx(subset_selection(40, math.e), rel=1e-9)
    assert found.bound == pytest.approx(found.value, rel=1e-9)
    assert found.proof == "symmetry"


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["prefix", "range", "marginals"])
def test_the_order_of_the_categories_does_not_matter(workload: str) -> None:
    """Shuffled categories have no symmetry that is looked for, and the same least variance."""
    matrix = query_matrix(workload, 16)
    shuffled = matrix[:, np.random.default_rng(1).permutation(16)]
    p = np.full(16, 1 / 16)
    orders = [len(Symmetry.of(centred(w.T @ w, p)[0], p).moves) for w in (matrix, shuffled)]
    assert orders == [16 if workload == "marginals" else 2, 1]
    found = [designed(w, 3.0) for w in (matrix, shuffled)]
    assert found[0].value == pytest.approx(found[1].value, rel=1e-9)
    assert found[0].gap == pytest.approx(0.0, abs=1e-8)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("workload", "n"), [("prefix", 5), ("marginals", 4), ("prefix", 8), ("marginals", 8)]
)
def test_blocks_of_the_semidefinite_program_lose_nothing(workload: str, n: int) -> None:
    w, p = query_matrix(workload, n), np.full(n, 1 / n)
    found = optimum(w.T @ w, math.e, p)
    inner, _ = centred(w.T @ w, p)
    rows = rows_of(found.patterns, math.e) * found.theta[:, None]
    _, b = slopes(inner, information(rows, p))
    sums = []
    for symmetry in (Symmetry.none(n), Symmetry.of(inner, p)):
        vectors = np.concatenate(symmetry.blocks, axis=1)
        assert vectors.T @ vectors == pytest.approx(np.eye(n), abs=1e-12)
        paid = semidefinite(b, math.e, p, symmetry)
        assert paid is not None
        every = patterns_of(n, math.e)
        assert np.all(np.sum(every @ b * every, axis=1) / (every @ p) <= every @ paid)
        sums.append(paid.sum())
    assert sums[0] == pytest.approx(sums[1], rel=1e-5)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_size_of_the_queries_does_not_matter(scale: float) -> None:
    found = designed(scale * query_matrix("prefix", 4), 1.0)
    assert found.value == pytest.approx(scale**2 * 5.993007824842, rel=1e-9)
    assert found.bound is not None
    assert found.bound.how == "proved"
    assert found.bound == pytest.approx(found.value, rel=1e-9)


FEW = [[-1, 0, -1, -2, 1], [-1, -1, 2, 2, -1], [0, -1, 2, 2, -1]]


@pytest.mark.parametrize(
    ("queries", "epsilon", "categories", "prior", "proof", "gap"),
    [
        ("prefix", 3.0, 26, None, "semidefinite", 0.01),
        # The best mechanism of two directions alone makes M nearly singular.
        (FEW, 0.01, 5, None, "enumeration", 1e-5),
        ("prefix", 12.0, 5, np.geomspace(1, 9e5, 5), "enumeration", 1e-5),
    ],
    ids=["larger alphabet", "few queries", "skewed prior"],
)
def test_a_bound_is_near(
    queries: Any, epsilon: float, categories: int, prior: Any, proof: str, gap: float
) -> None:
    found = designed(queries, epsilon, categories, prior)
    assert found.proof == proof
    assert found.bound is not None
    assert found.value * (1 - gap) <= found.bound <= found.value


@pytest.mark.slow
def test_the_worst_data() -> None:
    """Against a grid of priors: the least over mechanisms of the largest over categories."""
    worst = designed("prefix", 1.0, 3, objective="worst-case")
    assert worst.category_variances.max() == pytest.approx(worst.value)
    grid = [
        designed("prefix", 1.0, 3, [a, b, a]).value
        for a, b in ((k / 40, 1 - k / 20) for k in range(1, 20))
    ]
    assert max(grid) <= worst.value * (1 + 1e-9)
    assert worst.value == pytest.approx(max(grid), rel=3e-3)
    assert worst.bound == pytest.approx(worst.value, rel=1e-9)
    mean = designed("prefix", 1.0, 3)
    assert mean.value <= worst.value
    at_worst = worst_prior(mean.table.matrix().T, mean.setting.gram)
    variances = category_variances(mean.table.matrix().T, mean.setting.gram, at_worst)
    assert variances.max() >= worst.value - 1e-12


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 8.0, 12.0])
@pytest.mark.parametrize("objective", ["mean", "worst-case"])
def test_value_and_bound_agree_at_the_ends_of_epsilon(epsilon: float, objective: str) -> None:
    """Two categories, one of them asked for: q (1 - q) / (1 - 2 q)^2, q = 1 / (1 + e^epsilon)."""
    found = designed([[1.0, 0.0]], epsilon, objective=objective)
    q = 1 / (1 + math.exp(epsilon))
    assert found.value == pytest.approx(q * (1 - q) / (1 - 2 * q) ** 2, rel=1e-8)
    assert found.bound == pytest.approx(found.value, rel=1e-6)
    wide = designed("prefix", epsilon, 4, objective=objective)
    assert wide.bound == pytest.approx(wide.value, rel=1e-5)


@pytest.mark.parametrize("objective", ["mean", "worst-case"])
def test_categories_that_no_query_tells_apart_are_one(objective: str) -> None:
    """Five categories of three sorts: the mechanism of three, at the sums of the prior."""
    prior = [0.1, 0.2, 0.3, 0.25, 0.15] if objective == "mean" else None
    sums = [0.35, 0.35, 0.3] if objective == "mean" else None
    found = designed(COARSE, 1.0, prior=prior, objective=objective)
    three = designed("histogram", 1.0, 3, sums, objective)
    assert found.value == pytest.approx(three.value, rel=1e-8)
    assert found.bound == pytest.approx(three.value, rel=1e-8)
    assert np.array_equal(found.table.matrix().T[:, [0, 1]], found.table.matrix().T[:, [3, 4]])
    assert np.abs(found.decoder @ found.table.matrix().T - COARSE).max() < 1e-12
    people = np.repeat(np.arange(5), 200)
    estimate = found.estimate(found.release(people))
    assert estimate.histogram.sum() == pytest.approx(1000)
    assert np.allclose(np.array(COARSE) @ estimate.histogram, estimate.values)
    shares = estimate.histogram[3] / estimate.histogram[0]
    assert shares == pytest.approx(found.prior[3] / found.prior[0])


def test_estimates_are_unbiased_and_vary_as_predicted() -> None:
    rng = np.random.default_rng(8)
    found = designed("prefix", 1.0, 5)
    people = rng.permutation(np.repeat(np.arange(5), [100, 300, 50, 400, 150]))
    truth = found.setting.matrix @ np.bincount(people, minlength=5)
    runs = [found.estimate(found.simulate(people, rng)) for _ in range(400)]
    errors = np.array([run.values - truth for run in runs])
    predicted = float(found.category_variances[people].sum())
    squares = (errors**2).sum(axis=1)
    assert abs(squares.mean() - predicted) < 3 * squares.std() / math.sqrt(len(runs))
    spread = errors.std(axis=0) / math.sqrt(len(runs))
    assert np.all(np.abs(errors.mean(axis=0))[:-1] < 4 * spread[:-1])
    # The last prefix is everybody: N is known.
    assert np.abs(errors[:, -1]).max() < 1e-9
    stated = np.mean([run.standard_errors**2 for run in runs], axis=0)
    assert stated[:-1] == pytest.approx(errors[:, :-1].var(axis=0), rel=0.3)
    assert all(run.people == 1000 for run in runs)


def test_one_person_releases_an_output() -> None:
    found = designed("prefix", 1.0, 3)
    told = found.release([0, 1, 2])
    assert found.estimate(told).people == 3
    for bad in (-1, found.outputs, 0.5, [], "a"):
        with pytest.raises(dpopt.ParameterError, match="outputs must"):
            found.estimate(bad)


# The checker that stands alone.


def saved(folder: Path, setting: Workload) -> tuple[Path, Path]:
    dpopt.design(setting).save(folder / "x.json", proof=True)
    return folder / "x.json", folder / "x.proof.json"


def of_setting(setting: Workload, folder: Path) -> tuple[Any, Any, Any]:
    """Setting, table and proof as the files have them."""
    x, proof = saved(folder, setting)
    body = json.loads(x.read_text(encoding="utf-8"))["body"]
    return body["setting"], body["table"], json.loads(proof.read_text(encoding="utf-8"))


SETTINGS = [
    Workload("prefix", 1.0, 4),
    Workload("marginals", 0.5, 4),
    Workload([[1.0, 2.0, 0.0], [0.0, -1.0, 0.5]], 2.0, 3, [0.2, 0.3, 0.5]),
    Workload("range", 1.0, 3, objective="worst-case"),
    Workload(COARSE, 1.0, 5, [0.1, 0.2, 0.3, 0.25, 0.15]),
    Workload(COARSE, 0.5, 5, objective="worst-case"),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
def test_the_checker_accepts_value_and_bound(
    setting: Workload, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    x, proof = saved(tmp_path, setting)
    assert verify.main([str(x), str(proof)]) == 0
    assert "optimal: no other is below" in capfd.readouterr().out
    assert verify.main([str(x)]) == 0
    assert dpopt.load(x).value == pytest.approx(dpopt.design(setting).value, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
def test_a_changed_proof_shows_no_more_than_is_true(setting: Workload, tmp_path: Path) -> None:
    value, (read, table, written) = dpopt.design(setting).value, of_setting(setting, tmp_path)
    rng = np.random.default_rng(4)
    for _ in range(60):
        changed = json.loads(json.dumps(written))
        row = changed["inverse"][rng.integers(setting.categories)]
        if rng.random() < 0.5:
            row[rng.integers(setting.categories)] *= 1 + rng.normal() / 10
        else:
            place = rng.integers(setting.categories)
            changed["multipliers_of_categories"][place] *= 1 - abs(rng.normal()) / 10
        try:
            program = verify.workload(read, table, None, changed)
        except verify.Refused:
            continue
        assert verify.bound(program, [(("tangent",), Fraction(1))]) <= value + 1e-12


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("queries", ["histogram", "prefix", "range", "marginals"])
def test_the_checker_knows_the_queries_by_name(queries: str, n: int) -> None:
    """Written out as the rows that each name stands for."""
    bits = n.bit_length() - 1
    rows = {
        "histogram": [[u == v for u in range(n)] for v in range(n)],
        "prefix": [[u <= v for u in range(n)] for v in range(n)],
        "range": [[a <= u <= b for u in range(n)] for a in range(n) for b in range(a, n)],
        "marginals": [
            [u & attributes == pattern for u in range(n)]
            for attributes in range(1 << bits)
            for pattern in range(n)
            if pattern & attributes == pattern
        ],
    }
    w = np.array(rows[queries], dtype=int)
    assert np.array_equal(np.array(verify.gram_matrix({"queries": queries}, n), int), w.T @ w)
    listed = verify.gram_matrix({"queries": w.tolist()}, n)
    assert np.array_equal(np.array(listed, int), w.T @ w)


def test_the_checker_refuses_what_is_no_setting(tmp_path: Path) -> None:
    x, proof = saved(tmp_path, SETTINGS[0])
    whole = json.loads(x.read_text(encoding="utf-8"))
    whole["body"]["setting"]["objective"] = "mena"
    x.write_text(json.dumps(whole), encoding="utf-8")
    assert verify.main([str(x), str(proof)]) == 2


def test_the_checker_refuses_marginals_of_what_are_no_words() -> None:
    with pytest.raises(verify.Malformed, match="marginals are of a power of 2"):
        verify.gram_matrix({"queries": "marginals"}, 6)


@pytest.mark.parametrize("rank", [2, 5])
def test_the_checkers_inverse(rank: int) -> None:
    """In fractions; of a singular matrix, that of the block of the first independent rows."""
    half = np.random.default_rng(rank).integers(-3, 4, (5, rank))
    half[0], half[1] = 0, 0
    half[0, 0], half[1, :2] = 1, 1
    a = (half @ half.T).tolist()
    r, d = verify.inverse(a)
    kept = [i for i in range(5) if any(r[i])]
    assert len(kept) == rank
    for i in kept:
        for k in kept:
            assert sum(r[i][j] * a[j][k] for j in kept) == d * (i == k)
        assert all(r[i][j] == 0 for j in range(5) if j not in kept)


def test_the_checker_needs_a_decoder_of_the_queries(tmp_path: Path) -> None:
    """Two categories may be alike, or one output be all: then the same is said to all of them."""
    setting, table, _ = of_setting(SETTINGS[0], tmp_path)
    rows = table["weights"]
    for alike in ([*rows[:3], rows[2]], [[table["total"]] for _ in rows]):
        table["weights"] = alike
        with pytest.raises(verify.Refused, match="do not tell all categories apart"):
            verify.workload(setting, table, None, None)
    setting["queries"] = [[1, 1, 1, 1]]
    assert verify.workload(setting, table, None, None).point[("t",)] == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("setting", SETTINGS[2:4], ids=repr)
def test_the_checkers_value_is_the_variance(setting: Workload, tmp_path: Path) -> None:
    """From the decoder W M^-1 in floats; its sum of squares for each category, less W's own."""
    design = dpopt.design(setting)
    read, table, proof = of_setting(setting, tmp_path)
    q, w = np.array(table["weights"], float).T / float(table["total"]), setting.matrix
    p = np.array(proof["prior"] if setting.objective == "worst-case" else setting.weights)
    p = p / p.sum()
    shares = q / (q @ p)[:, None]
    decoder = w @ np.linalg.inv(q.T @ shares) @ shares.T
    variances = (decoder**2).sum(axis=0) @ q - (w**2).sum(axis=0)
    value = variances.max() if setting.objective == "worst-case" else variances @ p
    program = verify.workload(read, table, None, proof)
    assert float(program.point[("t",)]) == pytest.approx(value, rel=1e-9)
    assert design.value == pytest.approx(value, rel=1e-9)


def test_a_proof_holds_for_all_that_e_epsilon_may_be(tmp_path: Path) -> None:
    """The multipliers pay for the patterns of the largest e^epsilon, and there for no more."""
    setting, table, proof = of_setting(SETTINGS[0], tmp_path)
    low, high = verify.exp(verify.number(setting["epsilon"]))
    program = verify.workload(setting, table, (low, high), proof)
    row, box = program.row(("tangent",)), program.boxes[("t",)]
    assert (row.terms, row.limit) == ({("t",): -1}, -box[0])
    assert 0 < box[0] <= program.value < box[1]
    unproved = verify.workload(setting, table, None, {"prior": None})
    assert unproved.boxes[("t",)][0] == 0
    assert unproved.value == program.value
    with pytest.raises(verify.Refused, match="do not pay for a pattern"):
        verify.workload(setting, table, (low, 2 * high), proof)


def test_patterns_are_tried_at_no_less_than_e_epsilon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, table, proof = of_setting(SETTINGS[0], tmp_path)
    tried: list[Fraction] = []
    monkeypatch.setattr(verify, "at_most_at_all_patterns", lambda *data: tried.append(data[-1]))
    high = Fraction(19, 7)
    verify.workload(setting, table, (high, high), proof)
    assert high < tried[0] < high + Fraction(1, 2**60)


@pytest.mark.parametrize(
    ("weights", "total", "private"),
    # e^epsilon is 2.718...: 2718 / 1000 is below it, 2719 / 1000 above.
    [
        ([[2718, 1000], [1000, 2718]], 3718, True),
        ([[2719, 1000], [1000, 2719]], 3719, False),
        ([[3718, 2719], [2719, 3718]], 6437, True),
        ([[2718, 2719, 0], [1000, 1000, 3437]], 5437, False),
    ],
)
def test_the_checker_compares_all_pairs(
    weights: list[list[int]], total: int, private: bool
) -> None:
    setting = {"categories": 2, "queries": "histogram", "epsilon": 1, "prior": None}
    table = {"weights": weights, "total": total}
    program = verify.workload({**setting, "objective": "mean"}, table, None, None)
    assert program.private is not None
    if private:
        assert program.private().slack >= 0
    else:
        with pytest.raises(verify.Refused):
            program.private()


@pytest.mark.parametrize("seed", range(8))
def test_the_multipliers_are_tried_on_every_pattern(seed: int) -> None:
    """They may just pay for the costliest pattern, and not miss it by the least."""
    rng, n, ratio = np.random.default_rng(seed), 4, Fraction(5, 2)
    half = rng.integers(-3, 4, (n, 2))
    b = [[Fraction(int(value), 7) for value in line] for line in half @ half.T]
    p = [Fraction(int(w)) for w in rng.integers(1, 6, n)]
    p = [w / sum(p) for w in p]
    shape = [Fraction(int(w), 3) for w in rng.integers(1, 9, n)]

    def dot(a: Sequence[Fraction], c: Sequence[Fraction]) -> Fraction:
        return sum((x * y for x, y in zip(a, c, strict=True)), Fraction(0))

    needed = max(
        dot(s, [dot(line, s) for line in b]) / dot(shape, s) / dot(p, s)
        for s in product([Fraction(1), ratio], repeat=n)
    )
    verify.at_most_at_all_patterns(b, [needed * a for a in shape], p, ratio)
    less = needed * (1 - Fraction(1, 10**9))
    with pytest.raises(verify.Refused):
        verify.at_most_at_all_patterns(b, [less * a for a in shape], p, ratio)

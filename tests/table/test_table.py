"""Tables: judged against brute force in fractions, drawn as they say, repaired to be private."""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from dpopt import NotPrivateError, ParameterError, Problem, solve
from dpopt._numbers import MOST_BITS
from dpopt.privacy import Certificate
from dpopt.privacy.exact import exp_lower
from dpopt.privacy.graph import directed_pairs
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.release import seeded
from dpopt.table import (
    Graph,
    Inputs,
    Losses,
    SortedHistograms,
    Table,
    Words,
    add_table,
    certify_table,
    constant,
    interior,
    over_masses,
    polished,
    probabilities_of,
    repair,
    rounded,
)
from dpopt.table.table import _raised, alike
from tests.table.test_inputs import CASES, by_hand

Floats = npt.NDArray[np.float64]


def broken_by(table: Table, epsilon: float, delta: float) -> Fraction:
    """By how much the worst event of the worst neighbours is above its limit, written out."""
    variables, near = by_hand(table.inputs)
    ratio, worst = exp_lower(epsilon, 400), Fraction(-1)
    for x, z in near:
        for a, b in ((x, z), (z, x)):
            gains = [
                Fraction(table.weights[v], table.total)
                - ratio * Fraction(table.weights[w], table.total)
                for v, w in zip(variables[a], variables[b], strict=True)
            ]
            excess = sum((g for g in gains if g > 0), Fraction(0)) or max(gains)
            worst = max(worst, excess - Fraction(delta) if delta else max(gains))
    return worst


def random_table(inputs: Inputs, seed: int, spread: float) -> Table:
    rng = np.random.default_rng(seed)
    return rounded(inputs, np.exp(spread * rng.random(inputs.size)), bits=20)


def repaired(inputs: Inputs, point: Floats, guarantee: Guarantee) -> tuple[Table, Certificate]:
    """Round a point, and mix it with an interior table until it is private."""
    judge = partial(certify_table, guarantee=guarantee)
    return repair(rounded(inputs, point), interior(inputs, point), judge)


def on_its_limits(inputs: Inputs, guarantee: Guarantee) -> Table:
    """A private table on its limits: a mixture with a constant."""
    table = random_table(inputs, 8, 3.0)
    flat = interior(inputs, table.probabilities)
    return repair(table, flat, partial(certify_table, guarantee=guarantee))[0]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_verdicts_are_those_of_brute_force(name: str, delta: float) -> None:
    verdicts = Counter[bool]()
    for seed in range(12):
        for spread in (0.1, 0.5, 1.0, 2.0):
            table = random_table(CASES[name], seed, spread)
            over = broken_by(table, 0.7, delta)
            verdicts[over <= 0] += 1
            if over > 0:
                with pytest.raises(NotPrivateError) as caught:
                    certify_table(table, Guarantee(0.7, delta))
                assert caught.value.excess == pytest.approx(float(over), rel=1e-9)
            else:
                proof = certify_table(table, Guarantee(0.7, delta))
                assert float(proof.slack) == pytest.approx(float(-over), rel=1e-9, abs=1e-15)
    assert len(verdicts) == 2


def test_a_unit_more_is_refused() -> None:
    inputs = Graph(2, 2)
    total = 1 << 62
    ratio = exp_lower(1.0, 200)
    # K[0, 0] <= e K[1, 0]: the largest that holds, and one unit more.
    low = total // 5
    high = ratio.numerator * low // ratio.denominator
    kept = Table(inputs, (high, total - high, low, total - low), total)
    assert certify_table(kept, Guarantee(1.0)).slack >= 0
    broken = Table(inputs, (high + 1, total - high - 1, low, total - low), total)
    with pytest.raises(NotPrivateError, match="inputs 0 and 1, output 0"):
        certify_table(broken, Guarantee(1.0))


def test_a_ratio_of_one_is_exact() -> None:
    inputs = Graph(3, 2, directed_pairs("path", 3))
    assert certify_table(Table(inputs, (1, 2) * 3, 3), Guarantee(0.0)).slack == 0
    with pytest.raises(NotPrivateError):
        certify_table(Table(inputs, (1, 2, 1, 2, 2, 1), 3), Guarantee(0.0))


@pytest.mark.sample(15)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("guarantee", [Guarantee(0.4), Guarantee(0.4, 1e-3), Guarantee(1e-6)])
def test_noise_of_a_solver_is_repaired_at_little_cost(name: str, guarantee: Guarantee) -> None:
    inputs, rng = CASES[name], np.random.default_rng(1)
    private = on_its_limits(inputs, guarantee)
    # Noise as solvers leave it.
    point = private.probabilities + 1e-9 * rng.standard_normal(inputs.size)
    made, proof = repaired(inputs, polished(inputs, point, guarantee), guarantee)
    assert proof.slack >= 0
    assert broken_by(made, guarantee.epsilon, guarantee.delta) <= 0
    moved = np.abs(made.masses - private.masses).sum()
    assert moved < (1e-6 if guarantee.epsilon > 1e-3 else 1e-2) * inputs.size


def test_a_table_is_judged_once_and_every_other_object_anew() -> None:
    table, guarantee = random_table(CASES["path"], 8, 0.1), Guarantee(5.0)
    proof = certify_table(table, guarantee)
    assert certify_table(table, guarantee) is proof
    assert certify_table(table, Guarantee(6.0)).guarantee == Guarantee(6.0)
    pickled = pickle.loads(pickle.dumps(table))
    for other in (replace(table), copy.copy(table), copy.deepcopy(table), pickled):
        assert other == table
        assert certify_table(other, guarantee) is not proof
    broken = (0, table.weights[0] + table.weights[1], *table.weights[2:])
    with pytest.raises(NotPrivateError):
        certify_table(replace(table, weights=broken), guarantee)


def test_rounding_keeps_equal_rows_equal() -> None:
    inputs = SortedHistograms(5, 4)
    values = np.random.default_rng(2).random(inputs.size)
    guarantee = Guarantee(0.0)
    table = rounded(inputs, polished(inputs, values, guarantee), equal=True)
    assert certify_table(table, guarantee).slack == 0


def test_a_constant_table_has_the_slack_of_its_rarest_output() -> None:
    inputs = Words(2, 4, True)
    flat = constant(inputs, np.ones(2) / 16)
    proof = certify_table(flat, Guarantee(0.5))
    assert float(proof.slack) == pytest.approx((math.exp(0.5) - 1) / 16)


def test_means_are_exact() -> None:
    inputs = Graph(2, 3)
    table = Table(inputs, (1, 2, 4, 3, 3, 1), 7)
    assert table.means([0.5, 0.0, 1.0, 2.0, 0.25, 0.0]) == [Fraction(9, 14), Fraction(27, 28)]


@pytest.mark.parametrize("written", [(), (0, 3)])
def test_rows_that_are_priced_give_the_optimum_of_all(written: tuple[int, ...]) -> None:
    inputs, guarantee = SortedHistograms(6, 3), Guarantee(0.7)
    tops = inputs.histograms[inputs.rows, 0]
    losses = Losses((tops - inputs.values).astype(float), np.ones(len(inputs.histograms)))
    optima = []
    for lazy in ([("first", *inputs.neighbours[list(written)].T)], []):
        problem = Problem()
        add_table(problem, inputs, guarantee, *lazy)
        losses.add(problem, inputs, guarantee)
        optima.append(solve(problem).objective)
    assert optima[0] == pytest.approx(optima[1], abs=1e-12)


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_few_inputs_have_a_program_and_a_proof(inputs: int) -> None:
    """Of one input there is nothing to prove; of two, rows have size 1 as of more."""
    table, guarantee, problem = Graph(inputs, 2), Guarantee(1.0), Problem("few")
    add_table(problem, table, guarantee)
    keep = sp.csr_array((np.ones(inputs), ([0] * inputs, [x * 2 + x % 2 for x in range(inputs)])))
    rows = over_masses(problem, table, guarantee, sp.csr_array(keep, shape=(1, table.size)))
    problem.maximise({name: row.toarray().ravel() for name, row in rows.items()})
    solution = solve(problem)
    # Randomised response; the third input says what the first one does.
    kept = math.e / (1 + math.e) if inputs > 1 else 1.0
    assert solution.objective == pytest.approx(inputs * kept)
    values = polished(table, probabilities_of(table, guarantee, solution), guarantee)
    made, proof = repaired(table, values, guarantee)
    assert proof.constraints == inputs * (inputs - 1) * 2
    assert float(sum(made.masses[x * 2 + x % 2] for x in range(inputs))) == pytest.approx(
        solution.objective
    )


@pytest.mark.parametrize(
    ("guarantee", "equal"),
    [
        *((Guarantee(0.0), True), (Guarantee(0.0, 1e-10), True), (Guarantee(0.0, 1.1e-10), False)),
        *((Guarantee(1e-9), False), (Guarantee(1e-9, 1e-10), False)),
    ],
)
def test_neighbours_get_their_mean_where_solvers_cannot_tell_them_apart(
    guarantee: Guarantee, equal: bool
) -> None:
    assert alike(guarantee) == equal
    inputs = SortedHistograms(5, 4)
    values = np.random.default_rng(2).uniform(0.9, 1.0, inputs.size)
    values /= (inputs.sums @ values)[inputs.rows]
    table = polished(inputs, values, guarantee)[inputs.table()]
    assert (np.ptp(table) < 1e-15) == equal
    assert table.sum(axis=1) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.sample(15)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epsilon", [0.1, 0.4, 1.5])
def test_what_is_polished_has_rows_of_sum_1_within_the_ratio(name: str, epsilon: float) -> None:
    """Noise of 1e-5 is taken out of all ratios: what is left over is rounding."""
    inputs, rng = CASES[name], np.random.default_rng(7)
    private = on_its_limits(inputs, Guarantee(epsilon))
    for _ in range(5):
        noise = 1e-5 * rng.standard_normal(inputs.size)
        point = private.probabilities * (1 + noise)
        values = polished(inputs, point, Guarantee(epsilon))
        assert inputs.sums @ values == pytest.approx(1.0, abs=1e-13)
        assert values == pytest.approx(private.probabilities, rel=1e-3)
        groups = values[inputs.neighbours]
        ratios = groups.max(axis=1) / groups.min(axis=1)
        assert ratios.max() <= math.exp(epsilon) * (1 + 1e-12)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_probabilities_are_raised_by_their_distance(name: str) -> None:
    inputs, epsilon = CASES[name], 0.4
    values = np.exp(-6.0 * np.random.default_rng(9).random(inputs.size))
    groups = inputs.neighbours
    links = [pair for group in groups.tolist() for pair in permutations(group, 2)]
    apart = sp.csr_array(
        (np.ones(len(links)), tuple(np.array(links).T)), shape=(inputs.size, inputs.size)
    )
    steps = shortest_path(apart, unweighted=True)
    expected = (np.exp(-epsilon * steps) * values).max(axis=1)
    assert _raised(inputs, values, epsilon) == pytest.approx(expected, rel=1e-13)


def test_an_output_of_noise_alone_is_not_used() -> None:
    inputs = Graph(2, 3)
    point = np.array([1.0, 1e-13, 1.1e-13, 1.0, 0.0, 0.0])
    used = polished(inputs, point, Guarantee(1.0)).reshape(2, 3) > 0
    assert used.tolist() == [[True, False, True]] * 2


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_all_but_the_largest_variable_are_rounded_down(name: str) -> None:
    inputs, rng = CASES[name], np.random.default_rng(4)
    values = rng.integers(0, 50, inputs.size) / 64
    values[inputs.starts[:-1]] += 1
    table, counts = rounded(inputs, values, bits=9), inputs.counts.tolist()
    exact = list(map(Fraction, values.tolist()))
    for a, b in zip(inputs.starts[:-1].tolist(), inputs.starts[1:].tolist(), strict=True):
        masses = [exact[v] * counts[v] for v in range(a, b)]
        largest = a + masses.index(max(masses))
        unit = counts[largest]
        for v in set(range(a, b)) - {largest}:
            assert table.weights[v] == unit * (exact[v] * table.total / sum(masses) // unit)
    assert table.total % (1 << 9) == 0


@pytest.mark.parametrize("slack", [0, -1])
def test_a_table_without_slack_repairs_none(slack: int) -> None:
    table = rounded(Graph(2, 2), [1, 0, 0, 1])
    with pytest.raises(NotPrivateError, match="input"):
        repair(table, table, lambda t: certify_table(t, Guarantee(1.0)), headroom=Fraction(slack))


def test_the_largest_total() -> None:
    most = (1 << MOST_BITS) - 1
    assert Table(Graph(1, 2), (0, most), most).means([0.0, 1.0]) == [1]
    with pytest.raises(ParameterError, match="^total must"):
        Table(Graph(1, 2), (1, most), most + 1)


def test_tables_are_equal_by_weights_and_inputs() -> None:
    table = Table(Graph(3, 2), (1, 2, 2, 1, 1, 2), 3)
    assert table == Table(Graph(3, 2, directed_pairs("complete", 3)), table.weights, 3)
    assert table != Table(Graph(3, 2), (2, 1, 2, 1, 1, 2), 3)
    assert table != Table(Graph(3, 2, directed_pairs("path", 3)), table.weights, 3)
    assert table != Table(Graph(2, 3), (1, 1, 1, 1, 1, 1), 3)
    assert table != "table"


def test_a_row_is_that_of_one_input() -> None:
    table = Table(Graph(2, 2), (1, 2, 2, 1), 3)
    assert [table.row(x) for x in (0, 1)] == [[1, 2], [2, 1]]
    with pytest.raises(ParameterError, match="several inputs"):
        table.row([0, 1])


@pytest.mark.parametrize("inputs", [None, ["no", "yes"]])
@pytest.mark.parametrize("outputs", [None, ["a", "b", "c"]])
def test_columns_have_a_line_for_each_entry(inputs: list | None, outputs: list | None) -> None:
    columns = Table(Graph(2, 3), (1, 2, 1, 2, 1, 1), 4).columns(inputs, outputs)
    lines = list(zip(*(list(columns[name]) for name in columns), strict=True))
    sides = [(x, y) for x in inputs or range(2) for y in outputs or range(3)]
    shares = [0.25, 0.5, 0.25, 0.5, 0.25, 0.25]
    assert list(columns) == ["input", "output", "probability"]
    assert lines == [(x, y, share) for (x, y), share in zip(sides, shares, strict=True)]


@pytest.mark.parametrize(
    ("weights", "total"),
    [
        ([1, 2, 2, 1], 3),
        ((1, 2, 2), 3),
        ((1.0, 2.0, 2.0, 1.0), 3),
        ((-1, 4, 2, 1), 3),
        ((0, 0, 0, 0), 0),
        ((1, 2, 2, 1), 3.0),
        ((1, 2, 2, 2), 3),
    ],
    ids=str,
)
def test_what_is_no_table(weights: Any, total: Any) -> None:
    assert Table(Graph(2, 2), (1, 2, 2, 1), 3).total == 3
    with pytest.raises(ParameterError, match="must be|sum to"):
        Table(Graph(2, 2), weights, total)


def test_a_table_is_read_as_it_is_written() -> None:
    for inputs in CASES.values():
        table = random_table(inputs, 5, 1.0)
        assert Table.read(inputs, table.plain()) == table
    for rows in ([["1"], ["2", "2", "1"]], [["1", "2"]], [["1", "2"]] * 3):
        with pytest.raises(ParameterError, match="rows of other lengths"):
            Table.read(Graph(2, 2), {"total": "3", "weights": rows})


def test_few_draws_are_of_what_has_a_weight() -> None:
    """All of each row on its last variable."""
    for inputs in CASES.values():
        last = inputs.starts[1:] - 1
        table = rounded(inputs, np.bincount(last, minlength=inputs.size).tolist())
        variables = inputs.table()
        queries = inputs.every()
        drawn, single = table.drawn(queries, seeded(np.random.default_rng(1)))
        assert not single
        assert set(variables[np.arange(len(drawn)), drawn]) == set(last)


def test_a_certificate_names_its_tightest_inequality() -> None:
    table = Table(Graph(2, 2), (3, 1, 2, 2), 4)
    assert certify_table(table, Guarantee(0.7)).tightest == "inputs 1 and 0, output 1"


def test_points_that_are_none() -> None:
    inputs = Graph(2, 2)
    for wrong in ([1.0, 0.0, 1.0], [1.0, 0.0, 1.0, math.nan], [1.0, 0.0, 1.0, math.inf]):
        with pytest.raises(ParameterError, match="point must hold 4 finite numbers"):
            polished(inputs, np.array(wrong), Guarantee(1.0))
    with pytest.raises(ParameterError, match="negative probability"):
        rounded(inputs, [1, 0, 2, -1])


def test_an_interior_point_is_half_the_mean_and_half_uniform_on_what_is_used() -> None:
    flat = interior(Graph(2, 3), np.array([0.75, 0.25, 0.0, 0.5, 0.5, 0.0]))
    assert flat.matrix().tolist() == [[0.5625, 0.4375, 0.0]] * 2


def test_few_bits_are_repaired_with_more_of_the_strict_table() -> None:
    """Slack and rounding are a few units of 2^-19, far above all multiples of the least share."""
    inputs, half, guarantee = Graph(2, 2), 1 << 18, Guarantee(2.0**-15)
    table = Table(inputs, (half + 6, half - 6, half - 6, half + 6), 2 * half)
    strict = constant(inputs, np.ones(2), 19)
    made, _ = repair(table, strict, lambda t: certify_table(t, guarantee), 19)
    # (2^18 + 4) / (2^18 - 4) is above e^(2^-15).
    assert made.weights[0] <= half + 3


def test_each_refusal_gives_a_new_chord() -> None:
    """Of a convex slack, -0.2 at share 0, 0 at 0.9 and 0.1 at 1, the second new chord is exact."""
    inputs = Graph(2, 2)
    shares = list[float]()

    def certify(table: Table) -> Any:
        share = 2 * table.masses[1]
        shares.append(share)
        if (slack := max(-0.2 + 0.125 * share, share - 0.9)) < 0:
            raise NotPrivateError("refused", excess=-slack)

    repair(
        rounded(inputs, [1, 0, 0, 1]), constant(inputs, np.ones(2)), certify, 62, Fraction(1, 10)
    )
    assert shares == pytest.approx([0, 2 / 3, 11 / 13, 0.9])

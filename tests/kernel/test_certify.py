"""Given tables, made private: judged by plain fractions over every event and every own row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import dpopt
from dpopt import Kernel, NotPrivateError, ParameterError
from dpopt.privacy import directed_pairs
from tests.kernel.brute import (
    Array,
    Edges,
    complete,
    events,
    geometric,
    path,
    private,
    rows_of,
    sure,
)

GRAPHS = ("complete", "path", "cycle")


def edges_of(graph: str, inputs: int) -> Edges:
    pairs = directed_pairs(graph, inputs)
    return complete(inputs) if pairs is None else [(int(x), int(y)) for x, y in pairs]


def weighed(design: Any, matrix: Array) -> list[Fraction]:
    """Each row of a matrix over the flattened kernel, times the integers, in fractions."""
    flat, unit = [*design.table.weights], design.table.total
    return [
        sum((Fraction(c) * w for c, w in zip(line, flat, strict=True)), Fraction(0)) / unit
        for line in np.atleast_2d(matrix).tolist()
    ]


def moved(given: Array, design: Any) -> Fraction:
    """The largest change of the probability of any event, one event after the other."""
    unit = design.table.total
    return max(
        abs(sum((Fraction(row[y]) - Fraction(weights[y], unit) for y in event), Fraction(0)))
        for row, weights in zip(given.tolist(), rows_of(design), strict=True)
        for event in events(len(row))
    )


def random_table(rng: np.random.Generator) -> tuple[Array, float, float, str, Edges]:
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    graph = str(rng.choice(GRAPHS))
    epsilon = float(rng.choice([0.0, 0.01, 0.5, 1.0, 3.0, 40.0]))
    delta = float(rng.choice([0.0, 0.0, 1e-9, 0.05, 0.9]))
    table = rng.dirichlet(np.full(m, float(rng.choice([0.1, 1.0, 10.0]))), size=n)
    return table, epsilon, delta, graph, edges_of(graph, n)


@pytest.mark.slow
def test_random_tables_become_private_at_the_cost_that_is_told() -> None:
    rng = np.random.default_rng(1)
    for _ in range(120):
        table, epsilon, delta, graph, edges = random_table(rng)
        design = dpopt.certify(table, epsilon, delta, graph=graph, tolerance=1.0)
        assert private(design, edges)
        cost = moved(table, design)
        assert cost <= Fraction(design.moved) <= cost * (1 + Fraction(1, 2**50))


@pytest.mark.nightly
@pytest.mark.slow
def test_own_inequalities_hold_exactly() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        table, epsilon, delta, graph, edges = random_table(rng)
        epsilon = max(epsilon, 0.01)
        n, m = table.shape
        matrix = rng.normal(size=(2, n * m))
        # Satisfied, with room, by equal rows: so there is an interior, at some distance.
        at = matrix @ np.tile(table.mean(axis=0), n)
        own = [("two", matrix, None, at + 0.05), ("one", matrix[:1], [at[0] - 0.07], None)]
        design = dpopt.certify(table, epsilon, delta, graph=graph, constraints=own, tolerance=1.0)
        assert private(design, edges)
        values = weighed(design, matrix)
        assert all(v <= Fraction(limit + 0.05) for v, limit in zip(values, at, strict=True))
        assert values[0] >= Fraction(at[0] - 0.07)
        assert design.residuals == {"two": 0.0, "one": 0.0}


def near_its_least_risk(graph: str, delta: float) -> tuple[Array, Array, float]:
    """The best kernel of 8 counts whose risk of a far answer is 1.0001 times the least risk."""
    x = np.arange(8)
    loss = np.abs(x[:, None] - x)
    far = np.eye(8)[:, :, None] * (loss >= 3)
    problem = dpopt.Problem("least risk")
    problem.add_variables("K", (8, 8), lower=0.0, upper=1.0)
    problem.add_variables("risk", 1, lower=0.0, upper=1.0)
    problem.add_pmf("sums", "K")
    problem.add_private("privacy", "K", epsilon=1.0, delta=delta, graph=graph)
    problem.add_rows("far", {"K": far, "risk": -np.ones((8, 1))}, upper=0.0)
    problem.minimise({"risk": [1.0]})
    risk = 1.0001 * dpopt.solve(problem).objective
    problem.add_rows("taken", {"risk": [[1.0]]}, upper=risk)
    problem.minimise({"K": loss / 8})
    return dpopt.solve(problem)["K"], far.reshape(8, 64), risk


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_own_rows_next_to_their_least_cost_no_more_than_the_noise(graph: str, delta: float) -> None:
    """Mixing alone moves rows by 3e-4 to 7e-2 here: there is so little room."""
    table, far, risk = near_its_least_risk(graph, delta)
    noise = np.random.default_rng(5).normal(size=table.shape)
    design = dpopt.certify(
        np.maximum(table + 1e-9 * noise, 0.0),
        *(1.0, delta),
        graph=graph,
        constraints=[("far", far, None, risk)],
    )
    assert private(design, edges_of(graph, 8))
    assert max(weighed(design, far)) <= Fraction(risk)
    assert moved(table, design) <= Fraction(design.moved) + Fraction(1, 10**8) < Fraction(1, 10**7)


def test_rows_that_forbid_an_output_or_leave_no_room() -> None:
    table = np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]])
    first = np.eye(6)[[2]]
    design = dpopt.certify(table, 1.0, constraints=[("never", first, None, [0.0])], tolerance=0.3)
    assert (design.residuals["never"], rows_of(design)[0][2]) == (0.0, 0)
    assert rows_of(design)[1][2] == 0
    # The same said twice, from either side: nothing is left between.
    both = [("most", first, None, [0.1]), ("least", first, [0.1], None)]
    design = dpopt.certify(table, 1.0, constraints=both, tolerance=0.3)
    assert max(design.residuals.values()) < 1e-8


def test_a_long_path_keeps_its_small_entries() -> None:
    table = geometric(101, 1.0)
    assert table.min() < 1e-43
    design = dpopt.certify(table, 1.0, graph="path")
    assert design.moved < 1e-13
    assert private(design, path(101))
    assert 0 < design.kernel.min() < 1e-15
    noisy = table + np.random.default_rng(6).normal(size=table.shape) * 1e-10
    assert private(dpopt.certify(noisy, 1.0, graph="path"), path(101))


def test_a_table_too_far_from_private_is_refused_with_what_it_would_take() -> None:
    with pytest.raises(
        NotPrivateError, match=r"moves a row by 0\.0689414.* 0\.001; .* 1\.386"
    ) as e:
        dpopt.certify([[0.8, 0.2], [0.2, 0.8]], 1.0)
    assert e.value.excess == pytest.approx(0.8 - math.e / (1 + math.e), abs=1e-9)
    assert dpopt.certify([[0.8, 0.2], [0.2, 0.8]], 1.0, tolerance=0.07).private
    with pytest.raises(NotPrivateError, match="as it stands no epsilon is enough"):
        dpopt.certify([[1.0, 0.0], [0.0, 1.0]], 1.0)


def test_the_least_epsilon_and_delta_of_a_table() -> None:
    odds = np.array([[0.75, 0.25], [0.25, 0.75]])
    least = dpopt.certify(odds)
    assert least.lower <= math.log(3) <= least.upper
    assert (least.parameter, least.moved) == ("epsilon", 0.0)
    assert dpopt.certify(odds, 0.0, None).upper == 0.5
    assert math.isinf(dpopt.certify(np.eye(2)).upper)
    assert dpopt.certify(odds, delta=0.5).upper == 0.0
    assert dpopt.certify(2 * odds - odds + 1e-9).moved == pytest.approx(2e-9, rel=1e-6)


def test_a_design_is_judged_by_its_integers() -> None:
    design = dpopt.certify([[0.8, 0.2], [0.2, 0.8]], 1.0, tolerance=0.1)
    for given in (design, design.table):
        assert dpopt.certify(given).upper <= 1.0
    along = dpopt.design(Kernel.example())
    assert dpopt.certify(along).upper <= 1.0 < dpopt.certify(along.kernel).upper


def test_points_of_every_kind() -> None:
    for kind in dpopt.kinds():
        # Other tests of this process may have kinds of their own.
        if not issubclass(kind, dpopt.Setting) or not kind.__module__.startswith("dpopt."):
            continue
        setting = kind.example()
        found = dpopt.design(setting, backend="highs")
        point = setting.point(sure(found.solution))
        again = dpopt.certify(point, setting=setting)
        assert type(again) is type(found)
        assert again.private
        assert again.bound is None
        assert again.value == pytest.approx(found.value, rel=1e-9)
        for wrong in (np.zeros((2, 2, 2)), np.full(np.shape(point), np.nan), "x", [[1, 2], [3]]):
            with pytest.raises(ParameterError) as caught:
                dpopt.certify(wrong, setting=setting)
            assert str(caught.value).endswith(".")


def test_a_gamma_of_a_solver() -> None:
    setting = dpopt.Majority(7, 0.1, 2)
    gamma = dpopt.design(setting).gamma
    noise = np.random.default_rng(7).normal(size=8) * 1e-8
    for given in (gamma, gamma[setting.middle :], np.minimum(gamma + noise, 1.0 + 1e-9)):
        design = dpopt.certify(given, setting=setting)
        assert design.private
        assert design.gamma == pytest.approx(gamma, abs=1e-6)
    with pytest.raises(ParameterError, match="gamma has shape"):
        dpopt.certify(gamma[:3], setting=setting)


TABLE = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.35, 0.3, 0.35], [0.3, 0.3, 0.4]])


def holders(folder: Path) -> dict[str, Any]:
    """The same table in everything that holds one."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    variable = cp.Variable((4, 3))
    variable.value = TABLE
    long = {
        "input": [x for x in range(4) for _ in range(3)],
        "output": [f"y{y}" for _ in range(4) for y in range(3)],
        "probability": TABLE.ravel().tolist(),
    }
    wide = {f"y{y}": TABLE[:, y] for y in range(3)}
    np.savetxt(folder / "plain.csv", TABLE, delimiter=",", fmt="%.17g")
    pd.DataFrame(wide).to_csv(folder / "wide.csv", index=False)
    pd.DataFrame(wide).to_csv(folder / "indexed.csv")
    pd.DataFrame(TABLE).to_csv(folder / "numbered.csv", index=False)
    pd.DataFrame(wide).to_csv(folder / "wide.tsv", index=False, sep="\t")
    # A long table may come in any order.
    pd.DataFrame(long).sample(frac=1, random_state=1).sort_values("output").to_csv(
        folder / "long.csv", index=False
    )
    return {
        **{file.name: file for file in folder.iterdir()},
        "text": str(folder / "wide.csv"),
        "list": TABLE.tolist(),
        "fortran": np.asfortranarray(TABLE),
        "pandas wide": pd.DataFrame(wide),
        "pandas long": pd.DataFrame(long),
        "polars wide": pl.DataFrame(wide),
        "polars long": pl.DataFrame(long),
        "cvxpy": variable,
        "cvxpy expression": variable + 0.0,
    }


def test_whatever_holds_a_table(tmp_path: Path) -> None:
    for what, given in holders(tmp_path).items():
        design = dpopt.certify(given, 1.0, graph="path")
        assert design.moved < 1e-9, what
        assert design.kernel == pytest.approx(TABLE, abs=1e-9), what


LEVELS = {"low": [0.8, 0.2], "mid": [0.7, 0.3], "high": [0.55, 0.45]}
OUTPUTS = ("no", "yes")


def levels(lines: Sequence[str], names: dict[str, Any] | None = None) -> dict[str, list[Any]]:
    """The long table of `LEVELS`, its inputs in the order of lines."""
    return {
        "input": [x if names is None else names[x] for x in lines for _ in OUTPUTS],
        "output": [y for _ in lines for y in OUTPUTS],
        "probability": [p for x in lines for p in LEVELS[x]],
    }


@pytest.mark.parametrize("lines", [*permutations(LEVELS)])
def test_named_inputs_have_the_order_that_is_said(lines: tuple[str, ...], tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    order, path = list(LEVELS), [("low", "mid"), ("mid", "high")]
    wide = pd.DataFrame([LEVELS[x] for x in lines], index=list(lines), columns=list(OUTPUTS))
    wide.to_csv(tmp_path / "wide.csv")
    pd.DataFrame(levels(lines)).to_csv(tmp_path / "long.csv", index=False)
    held = (levels(lines), pd.DataFrame(levels(lines)), wide)
    for given in (*held, tmp_path / "wide.csv", tmp_path / "long.csv"):
        for graph, shape in (("path", None), ("cycle", None), ("grid", (3,)), ("hamming", (3,))):
            for epsilon in (None, 1.0):
                with pytest.raises(ParameterError, match="order is not known: say it with inputs="):
                    dpopt.certify(given, epsilon, graph=graph, shape=shape)  # type: ignore[call-overload]
        for graph, inputs in (("path", order), (path, None), ("mid:low,high:mid", None)):
            least = dpopt.certify(given, graph=graph, inputs=inputs)
            assert least.lower <= math.log(1.5) <= least.upper + 1e-15
            assert (set(least.inputs) <= set(order), least.outputs) == (True, ("yes",))
            design = dpopt.certify(given, 1.0, graph=graph, inputs=inputs)
            own = dict(zip(design.setting.input_names, design.kernel.tolist(), strict=True))
            assert all(own[x] == pytest.approx(row) for x, row in LEVELS.items())
            edges = {
                frozenset(design.setting.input_names[x] for x in e) for e in design.setting.pairs
            }
            assert edges == {frozenset(edge) for edge in path}
        everyone = dpopt.certify(given)
        assert everyone.inputs == ("high", "low")
        assert everyone.lower <= math.log(0.45 / 0.2) <= everyone.upper + 1e-15


@pytest.mark.slow
def test_a_named_design_answers_by_name(tmp_path: Path) -> None:
    order = [*LEVELS]
    for graph, inputs in ([("low", "mid"), ("mid", "high")], None), ("path", order):
        design = dpopt.certify(levels(order), 1.0, graph=graph, inputs=inputs)
        design.save(tmp_path / "named.json")
        for found in (design, dpopt.load(tmp_path / "named.json")):
            rng = np.random.default_rng(3)
            drawn = [found.simulate("high", rng) for _ in range(4000)]
            assert drawn.count("yes") / 4000 == pytest.approx(0.45, abs=0.04)
            assert found.release("low") in OUTPUTS
            assert {*found.release(["low", "mid"] * 9)} <= {*OUTPUTS}
            assert "edges are 'low:mid', 'mid:high'" in sure(found.certificate).claim
            assert "output yes" in sure(found.certificate).tightest
            assert found.setting.columns(found.table)["input"][0] == "low"
            assert dpopt.certify(found).outputs == ("yes",)
            with pytest.raises(ParameterError, match="one of the names 'low', 'mid', 'high'"):
                found.release(0)
        assert replace(design.setting, epsilon=2.0).pairs.tolist() == design.setting.pairs.tolist()
    unnamed = dpopt.certify([*LEVELS.values()], 1.0, graph="path", inputs=order)
    assert unnamed.release("low") in (0, 1)
    with pytest.raises(NotPrivateError) as caught:
        dpopt.certify(levels([*LEVELS]), 0.1)
    assert caught.value.inputs == ("high", "low")
    assert caught.value.output == "yes"


def test_names_that_are_numbers_have_their_order() -> None:
    for names in ({"low": 1, "mid": 2, "high": 3}, {"low": -0.5, "mid": 0.0, "high": 2.5}):
        for lines in permutations(LEVELS):
            given = levels(lines, names)
            assert dpopt.certify(given, graph="path").upper == pytest.approx(math.log(1.5))
            design = dpopt.certify(given, 1.0, graph="path")
            assert design.kernel.tolist() == pytest.approx(np.array([*LEVELS.values()]))
            assert design.release(names["high"]) in OUTPUTS
    # Places are no names.
    assert (
        dpopt.certify(levels([*LEVELS], {"low": 0, "mid": 1, "high": 2}), 1.0).setting.input_names
        is None
    )


def test_constraints_of_cvxpy_are_own_rows() -> None:
    rng = np.random.default_rng(9)
    edges = complete(3)
    for solver in ("CLARABEL", "SCS", "HIGHS"):
        kernel, bonus = cp.Variable((3, 4), nonneg=True), rng.random((3, 4))
        pmf, cap = np.array([0.5, 0.3, 0.2]), cp.Parameter(value=0.45)
        rows: list[Any] = [
            cp.sum(cp.multiply(bonus, kernel)) <= 1.1 * bonus.sum() / 4,
            pmf @ kernel == pmf @ np.full((3, 4), 0.25) + [0.01, -0.01, 0.0, 0.0],
            kernel[0, 1:3] >= 0.1,
            kernel[2] <= cap,
        ]
        rows[0].set_label("bonus")
        rows[1].set_label("mean")
        ratios = [kernel[x] <= math.e * kernel[z] for x, z in edges]
        loss = rng.random((3, 4))
        every: list[Any] = [*rows, *ratios, cp.sum(kernel, axis=1) == 1]
        problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(loss, kernel))), every)
        problem.solve(solver=solver)
        before: Any = kernel.value
        design = dpopt.certify(kernel, 1.0, constraints=rows)
        after: Any = kernel.value
        assert np.array_equal(after, before)
        assert private(design, edges)
        assert [*design.residuals] == ["bonus", "mean", "rows 2", "rows 3"]
        assert weighed(design, bonus.ravel())[0] <= Fraction(1.1 * bonus.sum() / 4) + 1e-15
        weights = [[Fraction(w, design.table.total) for w in row] for row in rows_of(design)]
        assert min(weights[0][1:3]) >= Fraction(0.1)
        assert max(weights[2]) <= Fraction(0.45)
        means = pmf @ design.kernel
        assert means == pytest.approx([0.26, 0.24, 0.25, 0.25], abs=1e-8)
        assert design.residuals["mean"] < 1e-8


def entries(shape: tuple[int, int], **values: float) -> Array:
    """A row over the kernel: its coefficients by place, x0_1=3 for 3 K[0, 1]."""
    row = np.zeros(shape)
    for place, value in values.items():
        x, y = map(int, place[1:].split("_"))
        row[x, y] = value
    return row


def test_equalities_hold_up_to_rounding() -> None:
    rng, outputs = np.random.default_rng(15), np.arange(5)
    graph = [[0, 1], [1, 2], [2, 3]]
    for case in range(12):
        table = 0.5 / 5 + 0.5 * rng.dirichlet(np.ones(5), size=4)
        answers = np.array([np.outer(np.arange(4) == x, outputs).ravel() for x in range(4)])
        means = table @ outputs
        rows: list[tuple[str, Array, list[float], list[float]]] = [
            ("entry", entries((4, 5), x2_0=1.0), [0.2], [0.2]),
            ("mean", answers, list(means), list(means)),
            ("alike", entries((4, 5), x0_3=1.0, x3_3=-1.0), [0.0], [0.0]),
            ("sum", entries((4, 5), x1_0=1.0, x1_1=1.0, x1_2=-2.0), [0.1], [0.1]),
        ]
        rows = [rows[i] for i in rng.permutation(4)[: 1 + case % 4]]
        own = [(name, np.reshape(matrix, (-1, 20)), low, up) for name, matrix, low, up in rows]
        design = dpopt.certify(table, 2.0, graph=graph, constraints=own, tolerance=0.9)
        for name, matrix, low, _ in own:
            missed = max(
                abs(v - Fraction(limit))
                for v, limit in zip(weighed(design, matrix), low, strict=True)
            )
            assert missed <= Fraction(design.residuals[name]) <= Fraction(1, 10**15), name
        edges = [(x, z) for one, other in graph for x, z in ((one, other), (other, one))]
        assert private(design, edges)


def test_other_equalities_say_by_how_much_they_are_missed() -> None:
    """0.1 K[0, 0] = 0.05 has no solution in units of a power of two; nor have contradictions."""
    table = [[0.5, 0.5], [0.4, 0.6]]
    tenth = entries((2, 2), x0_0=0.1).reshape(1, 4)
    half = 0.1 * 0.5000001
    thrice = [entries((2, 2), x1_0=3.0).reshape(1, 4), entries((2, 2), x1_1=3.0).reshape(1, 4)]
    limits = 3 * 0.4, 3 * 0.6
    rows = [("tenth", tenth, [half], [half])]
    rows += [(f"{y}", matrix, [limits[y]], [limits[y]]) for y, matrix in enumerate(thrice)]
    design = dpopt.certify(table, 1.0, constraints=rows)
    for name, matrix, low, _ in rows:
        (value,) = weighed(design, matrix)
        missed = abs(value - Fraction(low[0]))
        assert design.residuals[name] >= missed
        assert design.residuals[name] == pytest.approx(float(missed), rel=1e-12)
        assert missed < 1e-15
    assert design.residuals["tenth"] > 0


def test_a_solution_of_linopy() -> None:
    linopy = pytest.importorskip("linopy")
    import xarray as xr

    model = linopy.Model()
    kernel = model.add_variables(lower=0, upper=0.7, coords=[range(2), range(2)], name="kernel")
    with pytest.raises(ParameterError, match="of linopy and has no solution"):
        dpopt.certify(kernel, 1.0)
    model.add_constraints(kernel.sum("dim_1") == 1)
    wrong = xr.DataArray([[0.0, 1.0], [1.0, 0.0]], dims=kernel.dims, coords=kernel.coords)
    model.add_objective((kernel * wrong).sum())
    model.solve(solver_name="highs", log_to_console=False)
    for given in (kernel, kernel.solution, 1.0 * kernel):
        design = dpopt.certify(given, 1.0)
        assert design.kernel == pytest.approx(np.array([[0.7, 0.3], [0.3, 0.7]]), abs=1e-9)


def test_inputs_that_are_words() -> None:
    rng = np.random.default_rng(8)
    table = 0.9 / 5 + 0.1 * rng.dirichlet(np.ones(5), size=6)
    words: Any = {"graph": "hamming", "shape": (2, 3)}
    design = dpopt.certify(table, 2.0, **words)
    assert design.setting.shape == (2, 3)
    assert design.kernel == pytest.approx(table, abs=1e-9)
    assert dpopt.certify(table, **words | {"graph": "grid"}).upper <= dpopt.certify(table).upper
    with pytest.raises(ParameterError, match=r"kernel has shape \(2, 3, 5\); it must be a table"):
        dpopt.certify(table.reshape(2, 3, 5), 2.0, **words)

"""Products that leave the zeros of rows out, against those of the whole; rows to begin with."""

import numpy as np
import pytest

from dpopt import ParameterError, Problem, majority, solve
from dpopt.lp.bands import Bands, stretches
from dpopt.majority import CornerOracle, MajoritySetting
from tests.lp.zoo import disc


def bumps(rows: int, columns: int, seed: int) -> np.ndarray:
    """Rows that are zero but for a short stretch, some of them everywhere."""
    rng = np.random.default_rng(seed)
    centres, widths = rng.uniform(0, columns, rows), rng.choice([0.5, 3, 20, 80], rows)
    distance = (np.arange(columns) - centres[:, None]) / widths[:, None]
    matrix = rng.normal(size=(rows, 1)) * np.exp(-(distance**2))
    matrix[rng.random(rows) < 0.1] = 0.0
    return matrix


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (1, 1), (7, 40), (700, 120)])
def test_products_are_those_of_the_whole(rows: int, columns: int) -> None:
    matrix = bumps(rows, columns, rows)
    bands = Bands(matrix, stretches(matrix))
    rng = np.random.default_rng(1)
    x, y, weights = rng.normal(size=columns), rng.normal(size=rows), rng.random(rows) * 1e6
    np.testing.assert_allclose(bands.times(x), matrix @ x, atol=1e-12)
    np.testing.assert_allclose(bands.transposed(y), matrix.T @ y, atol=1e-12)
    np.testing.assert_allclose(
        bands.square(weights), (matrix.T * weights) @ matrix, rtol=1e-12, atol=1e-7
    )


def test_rows_to_begin_with_are_of_the_reduced_set() -> None:
    """Each is a row that every private noise function keeps, such as subsampling's."""
    setting = MajoritySetting(151, 0.1, 3)
    rows = CornerOracle(setting).spread()
    private = np.asarray(majority.subsampling(151, 3))[76:]
    assert rows.count > 50
    assert np.max(rows.matrix @ private - rows.upper) <= 1e-9
    # With them or without, the optimum is the same.
    problem = majority.gamma_problem(setting, majority.surrogate_weights(151).values)
    with_them = solve(problem)
    bare = Problem("without")
    bare.add_variables("gamma", 76, lower=0.0, upper=1.0)
    bare.maximise({"gamma": majority.surrogate_weights(151).values})
    bare.add_family("corners", CornerOracle(setting), over="gamma")
    assert with_them.objective == pytest.approx(solve(bare).objective, abs=1e-9)


def test_what_gives_no_rows_is_refused() -> None:
    problem = Problem("disc")
    problem.add_variables("x", 2, lower=-2.0, upper=2.0)
    with pytest.raises(ParameterError, match="first is 3; it must be a function"):
        problem.add_family("disc", disc, first=3)  # pyright: ignore[reportArgumentType]

"""Arrays of numbers, whose shapes stand in the docstrings that use them, and lines through them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def fitted_line(x: npt.ArrayLike, y: npt.ArrayLike) -> dict[str, float | None]:
    """Return the least-squares line a + b x, and r squared, of the points whose y is finite.

    All three are None where there are fewer than two; r squared is 1 where all y are the same.
    """
    across, values = np.array(x, dtype=float), np.array(y, dtype=float)
    across, values = across[np.isfinite(values)], values[np.isfinite(values)]
    if values.size < 2:
        return dict.fromkeys(("a", "b", "r_squared"))
    slope, start = np.polyfit(across, values, 1)
    square = np.corrcoef(across, values)[0, 1] ** 2 if np.ptp(values) > 0.0 else 1.0
    return {"a": float(start), "b": float(slope), "r_squared": float(square)}

"""Types of arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntVector = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

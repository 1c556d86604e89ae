"""Values that no one should pass, each made anew."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from hypothesis import settings

NIGHTLY = settings.get_current_profile_name() == "nightly"


def more(count: int) -> int:
    """Return how many cases to try: so many, or at night (HYPOTHESIS_PROFILE=nightly) ten times."""
    return 10 * count if NIGHTLY else count


VALUES: dict[str, Callable[[], object]] = {
    "None": lambda: None,
    "True": lambda: True,
    "text": lambda: "x",
    "text of a number": lambda: "3",
    "unicode": lambda: "ε\U0001f4a5\ud800",
    "bytes": lambda: b"x",
    "object": object,
    "type": lambda: int,
    "function": lambda: lambda: 1,
    "dict of nonsense": lambda: {"x": "y", 3: None},
    "generator": lambda: (i for i in range(2)),
    "ragged": lambda: [[1.0], [2.0, 3.0]],
    "texts": lambda: ["a", "b"],
    "Nones": lambda: [None, None],
    "deep": lambda: [[[[1.0]]]],
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-1": lambda: -1,
    "0": lambda: 0,
    "0.5": lambda: 0.5,
    "1.5": lambda: 1.5,
    "least": lambda: 5e-324,
    "largest": lambda: 1.7e308,
    "10**400": lambda: 10**400,
    "2**63": lambda: 2**63,
    "complex": lambda: 1 + 2j,
    "huge fraction": lambda: Fraction(10**400, 3),
    "decimal snan": lambda: Decimal("sNaN"),
    "float32 nan": lambda: np.float32("nan"),
    "0-d": lambda: np.array(1.5),
    "0-d text": lambda: np.array("a"),
    "nans": lambda: np.array([np.nan, np.nan]),
    "infs": lambda: [np.inf, -np.inf],
    "negatives": lambda: np.array([-1.0, -2.0]),
    "largests": lambda: np.array([1.7e308, 1.7e308]),
    "huge list": lambda: [10**400, 10**400],
    "objects": lambda: np.array([object(), None], dtype=object),
    "set": lambda: {1, 2},
    "records": lambda: np.zeros(2, dtype=[("a", "i4")]),
    "dates": lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "empty array": lambda: np.empty((0, 2)),
    "empty list": list,
    "far edge": lambda: [[0, 10**9]],
    "negative edge": lambda: [[-1, 0]],
    "loop": lambda: [[0, 0]],
    "edge of floats": lambda: [[0.0, 1.0]],
    "no distributions": lambda: [[0.5, 0.4], [1.1, -0.1]],
    "3-d": lambda: np.zeros((2, 2, 2)),
    "nan matrix": lambda: np.full((2, 2), np.nan),
    "masked": lambda: np.ma.masked_array([0.5, 0.5], [True, False]),
    "sparse": lambda: sp.csr_array(np.eye(2)),
}


with suppress(ModuleNotFoundError):
    import pandas as pd

    VALUES |= {
        "series": lambda: pd.Series([0.5, None], index=["x", "y"]),
        "frame": lambda: pd.DataFrame({"a": [0.5, 0.5], "b": ["x", "y"]}),
        "NA": lambda: pd.NA,
    }

# Never taken for a number, a probability or a vote, whatever the argument.
NEVER = {
    *("text", "text of a number", "bytes", "object", "complex", "decimal snan", "float32 nan"),
    *("nan", "nans", "nan matrix", "objects", "texts", "0-d text", "ragged", "records", "dates"),
    *("set", "masked", "huge list", "10**400", "frame", "NA"),
}
# Refused wherever a parameter has the name.
_SIZE = {"-1", "0.5", "1.5", "inf"}
REFUSED = {
    "epsilon": {"-1", "inf", "True", "negatives"},
    "delta": {"-1", "1.5", "2**63", "inf", "True"},
    "slack": {"-1", "1.5", "inf"},
    "tolerance": {"0", "-1", "inf"},
    **dict.fromkeys(
        ("inputs", "outputs", "records", "categories", "classes", "drawn", "folds"), _SIZE
    ),
    "workers": {"0", *_SIZE},
    "answered": {"-1", "0.5", "inf"},
    "rule": {"text", "None", "1.5"},
    "objective": {"1.5", "text of a number"},
    "trained_once": {"0", "1.5", "text"},
    "kernel": {"empty list", "no distributions", "infs"},
    "weights": {"empty list", "infs"},
}
# So far from all others that something that is computed from them may end first.
EXTREME = {"least", "largest", "largests", "2**63", "10**400", "huge fraction"}
# For arguments that take an object of the package, or a function: of another class is enough.
_OTHER_CLASSES = ("None", "text", "object", "type", "function", "nan", "nans", "dict of nonsense")


def values_for(parameter: str, good: object) -> tuple[str, ...]:
    """Return the names of the values to put in the place of a good one, at night of all."""
    package = type(good).__module__.partition(".")[0] == "dpopt"
    return _OTHER_CLASSES if package or callable(good) else sample(parameter, tuple(VALUES))


def sample(parameter: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return every other value, beginning at either of the first two by the parameter's name."""
    return values if NIGHTLY else values[crc32(parameter.encode()) % 2 :: 2]

"""Results as tables of pandas or polars, one row for each number.

Needs the library that is asked for: ``pip install 'dpopt[interop]'``. The other way round no module
is needed: records, letters, votes, counts and priors are taken from columns and tables of both
libraries where they are taken from arrays.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.kernel import KernelDesign
from dpopt.lp import Solution
from dpopt.majority import MajorityDesign, VoteBatch
from dpopt.privacy import ExactKernel
from dpopt.public_prior import PopulationKernel, PublicPrior, SamplingKernel
from dpopt.roo import (
    MinCountSampler,
    OptimalSampler,
    SmoothFloorSampler,
    SubRRSampler,
    Tally,
)

Columns = Mapping[str, Sequence[Any] | npt.NDArray[Any]]

LIBRARIES = ("pandas", "polars")
_MOST_ROWS = 100_000_000


def to_frame(result: object, library: str = "pandas") -> Any:  # noqa: ANN401
    """Return a result as one tidy table.

    - `MajorityDesign`: l, gamma. `VoteBatch`: query, label.
    - `ExactKernel`, `KernelDesign`, kernels of a public prior: input, output, probability; inputs
      and outputs of the latter are letters.
    - `PublicPrior`: letter, mass. `Tally`: letter, count.
    - `MinCountSampler`, `SubRRSampler`: m, q; where the rule has a q of its own for each m, those
      beyond the last row are 0.
    - `SmoothFloorSampler`: count, weight; from the first count that is left out, weight is count.
    - `OptimalSampler`: histogram (its place), count, multiplicity (letters that have the count),
      probability (of each of these letters).
    - `Solution`: kind ("variable" or "dual"), name, index, value.
    - Anything with a method ``to_records``, which returns records (mappings from names to values,
      all with the same names) or one mapping from names to columns.

    Args:
        result: one of these.
        library: "pandas" or "polars".

    Returns:
        A ``pandas.DataFrame`` with the default index, or a ``polars.DataFrame``; probabilities are
        floats, for reading only.

    Raises:
        ParameterError: for another object or library, or a table of more than 1e8 rows.
        ImportError: if the library is not installed; it names the extra.
    """
    name = _checks.choice("library", library, LIBRARIES)
    columns = _columns(result)
    module = _library(name)
    if name == "pandas":
        return module.DataFrame(dict(columns))
    return module.DataFrame([_polars_column(module, key, columns[key]) for key in columns])


def _library(name: str) -> Any:  # noqa: ANN401
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"to_frame needs {name}; install it with pip install 'dpopt[interop]'."
        ) from error


def _polars_column(module: Any, name: str, values: Any) -> Any:  # noqa: ANN401
    """Return a column; letters of several types stay what they are, as objects."""
    mixed = not isinstance(values, np.ndarray) and len({type(value) for value in values}) > 1
    return (
        module.Series(name, list(values), dtype=module.Object)
        if mixed
        else (module.Series(name, values))
    )


def _columns(result: object) -> Columns:
    """Return the columns of a result's table by name."""
    own = getattr(result, "to_records", None)
    if callable(own):
        return _of_records(own())
    for kinds, columns in _TABLES:
        if isinstance(result, kinds):
            return columns(result)
    raise ParameterError(
        f"result is of type {type(result).__name__}; there is no table for it, and it has no "
        "method to_records."
    )


def _of_records(found: object) -> Columns:
    if isinstance(found, Mapping):
        return found
    records = list(found) if isinstance(found, Sequence) else []
    if not all(isinstance(record, Mapping) for record in records) or not records:
        raise ParameterError("to_records of the result returned neither records nor columns.")
    names = list(records[0])
    if any(list(record) != names for record in records):
        raise ParameterError("to_records of the result returned records with different names.")
    return {name: [record[name] for record in records] for name in names}


def _majority(design: MajorityDesign) -> Columns:
    return {"l": np.arange(design.gamma.size), "gamma": design.gamma}


def _votes(batch: VoteBatch) -> Columns:
    return {"query": batch.answered + np.arange(batch.queries), "label": batch.labels}


def _kernel(kernel: ExactKernel | KernelDesign) -> Columns:
    exact = kernel.exact if isinstance(kernel, KernelDesign) else kernel
    _require_few(exact.inputs * exact.outputs)
    return _long(exact.matrix(), range(exact.inputs), range(exact.outputs))


def _letters(kernel: SamplingKernel | PopulationKernel) -> Columns:
    letters = kernel.prior.letters
    return _long(kernel.matrix(), letters, letters)


def _long(
    matrix: npt.NDArray[np.float64], inputs: Sequence[Hashable], outputs: Sequence[Hashable]
) -> Columns:
    return {
        "input": _repeated(inputs, len(outputs), each=True),
        "output": _repeated(outputs, len(inputs), each=False),
        "probability": matrix.ravel(),
    }


def _repeated(
    letters: Sequence[Hashable], times: int, *, each: bool
) -> list[Hashable] | npt.NDArray[np.int64]:
    """Return letters, each of them or all of them repeated; ranges as arrays."""
    if isinstance(letters, range):
        places = np.asarray(letters, dtype=np.int64)
        return np.repeat(places, times) if each else np.tile(places, times)
    if each:
        return [letter for letter in letters for _ in range(times)]
    return list(letters) * times


def _prior(prior: PublicPrior) -> Columns:
    return {"letter": list(prior.letters), "mass": prior.masses}


def _tally(tally: Tally) -> Columns:
    return {"letter": list(tally.letters), "count": tally.counts}


def _rule(sampler: MinCountSampler | SubRRSampler) -> Columns:
    rule = sampler.roo if isinstance(sampler, SubRRSampler) else sampler
    rows = rule.setting.largest_minimum + 1 if rule.rule == "roo" else rule.q.size
    _require_few(rows)
    return {"m": np.arange(rows), "q": np.broadcast_to(rule.q, (rows,)).copy()}


def _floor(sampler: SmoothFloorSampler) -> Columns:
    return {"count": np.arange(sampler.floor.size), "weight": sampler.floor}


def _optimal(sampler: OptimalSampler) -> Columns:
    places = sampler.histograms
    return {
        "histogram": places.owner,
        "count": places.count,
        "multiplicity": places.multiplicity,
        "probability": sampler.kernel,
    }


def _solution(solution: Solution) -> Columns:
    parts = [("variable", solution.values), ("dual", solution.duals)]
    blocks = [(kind, name, values) for kind, found in parts for name, values in found.items()]
    return {
        "kind": [kind for kind, _, values in blocks for _ in range(values.size)],
        "name": [name for _, name, values in blocks for _ in range(values.size)],
        "index": np.concatenate([np.arange(values.size) for _, _, values in blocks]),
        "value": np.concatenate([values for _, _, values in blocks]),
    }


def _require_few(rows: int) -> None:
    if rows > _MOST_ROWS:
        raise ParameterError(f"result has {rows:,} rows; a table is made for at most 1e8.")


_TABLES: tuple[tuple[tuple[type, ...], Callable[[Any], Columns]], ...] = (
    ((MajorityDesign,), _majority),
    ((VoteBatch,), _votes),
    ((ExactKernel, KernelDesign), _kernel),
    ((SamplingKernel, PopulationKernel), _letters),
    ((PublicPrior,), _prior),
    ((Tally,), _tally),
    ((MinCountSampler, SubRRSampler), _rule),
    ((SmoothFloorSampler,), _floor),
    ((OptimalSampler,), _optimal),
    ((Solution,), _solution),
)

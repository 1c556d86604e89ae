"""Symmetries of a kernel program: named groups, generators, and checks of their invariance.

Theorem. Let every symmetry (sigma, tau) permute inputs and outputs such that loss[sigma x, tau y] =
loss[x, y], neighbours stay neighbours, and the prior stays the same. Then some optimal kernel has
K[sigma x, tau y] = K[x, y] for all of them.

It is the mean of an optimal one over the group; the proof is on the page docs/theorems/orbits.md.
It also covers rows of the user's own, but a setting has either these or a symmetry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt.table import Graph, Inputs, Words
from dpopt.table.inputs import read_only
from dpopt.table.symmetric import Generator
from dpopt.verify import symmetry_generators

if TYPE_CHECKING:
    from dpopt.kernel.setting import Kernel, Sizes

SYMMETRIES = ("none", "auto", "reflection", "cyclic", "dihedral", "hamming", "symbols")
"""Values of the parameter ``symmetry``: names of groups."""

Symmetry = str | Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]
"""A name, or generators (sigma, tau): input x goes to sigma[x], output y to tau[y]."""

# Losses compared at once, which bounds memory, and in all, which bounds time.
_CHUNK, _MOST_COMPARED = 2**20, 2**26


def checked_symmetry(symmetry: object, inputs: int, outputs: int) -> str | tuple[Generator, ...]:
    """Return the checked symmetry: a name, or generators as read-only permutations."""
    if isinstance(symmetry, str):
        return _checks.choice("symmetry", symmetry, SYMMETRIES)
    pairs: Any = symmetry.tolist() if isinstance(symmetry, np.ndarray) else symmetry
    if not isinstance(pairs, Sequence) or len(pairs) == 0:
        raise ParameterError(
            f"symmetry is {_checks.shown(symmetry)}; it must be a name ({', '.join(SYMMETRIES)}) "
            "or a list of at least one pair (sigma, tau) of permutations."
        )
    generators = []
    for index, pair in enumerate(pairs):
        listed = isinstance(pair, Sequence | np.ndarray) and len(pair) == 2
        sides = [_checks.array("symmetry", side) for side in pair] if listed else []
        fits = [
            side.ndim == 1 and side.dtype.kind in "iu" and sorted(side.tolist()) == [*range(size)]
            for side, size in zip(sides, (inputs, outputs), strict=False)
        ]
        if not sides or not all(fits):
            raise ParameterError(
                f"symmetry holds {_checks.shown(pair)} at place {index}; it must be a pair (sigma, "
                f"tau) of permutations of 0..{inputs - 1} and of 0..{outputs - 1}."
            )
        generators.append((read_only(sides[0]), read_only(sides[1])))
    return tuple(generators)


def settled(setting: Kernel) -> tuple[str | tuple[Generator, ...], Inputs | None]:
    """Return the symmetry, "auto" resolved to a name, and its orbits; None for "none"."""
    symmetry = checked_symmetry(setting.symmetry, setting.inputs, setting.outputs)
    if symmetry == "none":
        return "none", None
    if symmetry != "auto":
        return symmetry, _orbits(setting, symmetry)
    # The order in which "auto" tries the groups: fewest orbits first.
    for name in ("hamming", "symbols", "dihedral", "cyclic", "reflection"):
        try:
            return name, _orbits(setting, name)
        except ParameterError:
            continue
    return "none", None


def _orbits(setting: Kernel, symmetry: str | tuple[Generator, ...]) -> Inputs:
    """Return the orbits of a symmetry, after checking that the setting has it."""
    inputs, outputs, shown = setting.inputs, setting.outputs, _checks.shown(symmetry)
    if setting.blocks or setting.invariant is not None or any(setting.names):
        raise ParameterError(
            f"symmetry is {shown} and there are constraints, an invariant or names of inputs or "
            "outputs; leave one of them out."
        )
    if isinstance(symmetry, str) and symmetry != "reflection" and inputs != outputs:
        raise ParameterError(
            f"symmetry is {shown} with {inputs} inputs and {outputs} outputs; it moves both alike, "
            "and needs as many of both."
        )
    words = symmetry in ("hamming", "symbols")
    # The formula of these losses implies the symmetry: words may be too many to compare.
    known = words and isinstance(setting.loss, str) and setting.loss in ("zero-one", symmetry)
    if not known and inputs * outputs > _MOST_COMPARED:
        raise ParameterError(
            f"symmetry is {shown} and not known to keep the loss, and {inputs} inputs and "
            f"{outputs} outputs are too many to see it: at most {_MOST_COMPARED:,} pairs are "
            "compared."
        )
    if words:
        orbits: Inputs = _orbits_of_words(setting, cast(str, symmetry))
    else:
        if isinstance(symmetry, str):
            listed = symmetry_generators({"symmetry": symmetry}, inputs, outputs)
            symmetry = tuple((np.array(sigma), np.array(tau)) for sigma, tau in listed)
        try:
            orbits = Graph(inputs, outputs, setting.pairs, symmetry)
        except ParameterError as error:
            raise ParameterError(f"symmetry is {shown}: {error}") from None
    prior = setting.weights
    if prior is not None:
        first = orbits.representatives[orbits.starts[:-1], 0][orbits.rows_of(np.arange(inputs))]
        if np.any(differs := prior != prior[first]):
            x = int(np.argmax(differs))
            raise ParameterError(
                f"symmetry is {shown}; it takes input {first[x]} to {x}, and prior gives them "
                "different weights."
            )
    if not known:
        _require_loss(shown, orbits, setting)
    return orbits


def _orbits_of_words(setting: Kernel, name: str) -> Words:
    """Return the orbits of words, after checking that they have the neighbours of the graph."""
    if name == "hamming" and setting.shape is None:
        raise ParameterError(
            "symmetry is 'hamming' without a shape; it permutes symbols and positions of words: "
            "take graph 'hamming' and its shape."
        )
    shape = (setting.inputs,) if name == "symbols" else tuple(cast("Sizes", setting.shape))
    if math.prod(shape) != setting.inputs:
        raise ParameterError(
            f"shape is {_checks.shown(shape)}; it does not make the {setting.inputs} inputs."
        )
    symbols = [size for size in shape if size > 1]
    if len(set(symbols)) != 1:
        raise ParameterError(
            f"symmetry is {name!r} and shape is {_checks.shown(shape)}; it permutes positions of "
            "equally many symbols: give generators."
        )
    hamming = name == setting.graph_name == "hamming" and len(symbols) > 1
    # Words of a graph by name may be too many for a list of neighbours.
    if not hamming and setting.pairs is not None:
        raise ParameterError(
            f"symmetry is {name!r}, and maps some neighbours to inputs that are none in graph: "
            "take graph 'complete', or 'hamming' for the symmetry 'hamming'."
        )
    return Words(symbols[0], len(symbols), hamming)


def _require_loss(shown: str, orbits: Inputs, setting: Kernel) -> None:
    """Refuse an orbit of pairs (x, y) with different losses."""
    firsts, y = orbits.representatives, np.arange(setting.outputs)
    first_losses, step = setting.loss_at(*firsts.T), max(1, _CHUNK // setting.outputs)
    for start in range(0, setting.inputs, step):
        x = np.arange(start, min(start + step, setting.inputs))
        losses, variables = setting.loss_at(x[:, None], y), orbits.variables_of(x)
        differs = np.argwhere(losses != first_losses[variables])
        if len(differs):
            i, j = differs[0].tolist()
            variable = variables[i, j]
            raise ParameterError(
                f"symmetry is {shown}; it takes the pair ({firsts[variable][0]}, "
                f"{firsts[variable][1]}) to ({x[i]}, {j}), and loss is "
                f"{digits(float(first_losses[variable]))} at the first and "
                f"{digits(float(losses[i, j]))} at the second."
            )

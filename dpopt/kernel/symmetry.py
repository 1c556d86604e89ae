"""Symmetries of a kernel program: named groups, generators, and checks of their invariance.

Theorem. Let every symmetry (sigma, tau) permute inputs and outputs such that loss[sigma x, tau y] =
loss[x, y], neighbours stay neighbours, and the prior stays the same. Then some optimal kernel has
K[sigma x, tau y] = K[x, y] for all of them.

It is the mean of an optimal one over the group; the proof is on the page docs/theorems/orbits.md.
It also covers rows of the user's own, but a setting has either these or a symmetry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import IntVector
from dpopt.table import Graph, Inputs, Words
from dpopt.table.symmetric import Generator

if TYPE_CHECKING:
    from dpopt.kernel.setting import Kernel

SYMMETRIES = ("none", "auto", "reflection", "cyclic", "dihedral", "hamming", "symbols")
"""Values of the parameter ``symmetry``: names of groups."""

Symmetry = str | Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]
"""A name, or generators (sigma, tau): input x goes to sigma[x], output y to tau[y]."""

# Losses compared at once, which bounds memory, and in all, which bounds time.
_CHUNK, _MOST_COMPARED = 2**20, 2**27


def checked_symmetry(symmetry: object, inputs: int, outputs: int) -> str | tuple[Generator, ...]:
    """Return the checked symmetry: a name, or generators as read-only permutations."""
    if isinstance(symmetry, str):
        _checks.choice("symmetry", symmetry, SYMMETRIES)
        return symmetry
    listed = symmetry.tolist() if isinstance(symmetry, np.ndarray) else symmetry
    if not isinstance(listed, Sequence) or len(listed) == 0:
        raise ParameterError(
            f"symmetry is {_checks.shown(symmetry)}; it must be a name ({', '.join(SYMMETRIES)}) "
            "or a list of at least one pair (sigma, tau) of permutations."
        )
    generators = []
    for index, generator in enumerate(listed):
        if not isinstance(generator, Sequence | np.ndarray) or len(generator) != 2:
            raise ParameterError(
                f"symmetry holds {_checks.shown(generator)} at place {index}; it must be a pair "
                "(sigma, tau) of permutations."
            )
        sigma = _permutation(f"sigma of symmetry {index}", generator[0], inputs)
        tau = _permutation(f"tau of symmetry {index}", generator[1], outputs)
        generators.append((sigma, tau))
    return tuple(generators)


def _permutation(name: str, values: object, size: int) -> IntVector:
    array = _checks.array(name, values)
    integral = array.shape == (size,) and array.dtype.kind in "iu"
    if not integral or not np.array_equal(np.sort(array), np.arange(size)):
        raise ParameterError(
            f"{name} is {_checks.shown(values)}; it must be a permutation of 0..{size - 1}."
        )
    permutation = array.astype(np.int64)
    permutation.setflags(write=False)
    return permutation


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
    inputs, outputs = setting.inputs, setting.outputs
    if setting.blocks or setting.invariant is not None or any(setting.names):
        raise ParameterError(
            f"symmetry is {_checks.shown(symmetry)} and there are constraints, an invariant or "
            "names of inputs or outputs; leave one of them out."
        )
    if symmetry in ("hamming", "symbols"):
        shape = _shape(setting, cast(str, symmetry))
        generators = _word_generators(shape)
    else:
        shape = None
        generators = _generators(symmetry, inputs, outputs)
    name = repr(symmetry) if isinstance(symmetry, str) else None
    # Permuting symbols and positions keeps Hamming distances, hence the edges of "hamming".
    hamming = symmetry == "hamming" and setting.graph_name == "hamming"
    for index, generator in enumerate(generators):
        called, sigma = f"symmetry {name or index}", generator[0]
        if not hamming and setting.pairs is not None:
            _require_edges(called, sigma, setting.pairs, inputs)
        prior = setting.weights
        if prior is not None and np.any(moved := prior[sigma] != prior):
            x = int(np.argmax(moved))
            raise ParameterError(
                f"{called} maps input {x} to {sigma[x]}, and prior gives them different weights."
            )
        # The formula of these losses implies the symmetry: words may be too many to compare.
        formula = isinstance(setting.loss, str) and setting.loss in ("zero-one", symmetry)
        if not (formula and symmetry in ("hamming", "symbols")):
            _require_loss(called, generator, setting)
    if shape is None:
        return Graph(inputs, outputs, setting.pairs, generators)
    symbols = tuple(size for size in shape if size > 1)
    if hamming and len(symbols) > 1:
        # Neighbours differ in one position; positions are counted by their number of symbols.
        single = np.eye(len(set(symbols)), dtype=int)
        return Words(symbols, tuple(map(tuple, single.tolist())))
    if hamming or setting.pairs is None:
        return Words(symbols, None)
    # The group maps any two words to all that differ as they do: differences define neighbours.
    words = Words(symbols, None)
    return Words(symbols, words.apart(*setting.pairs.T))


def _shape(setting: Kernel, name: str) -> tuple[int, ...]:
    if setting.inputs != setting.outputs:
        raise ParameterError(
            f"symmetry is {name!r} with {setting.inputs} inputs and {setting.outputs} outputs; it "
            "moves both alike, and needs as many of both."
        )
    if name == "symbols":
        return (setting.inputs,)
    if setting.shape is None:
        raise ParameterError(
            "symmetry is 'hamming' without a shape; it permutes symbols and positions of words: "
            "take graph 'hamming' and its shape."
        )
    sizes = tuple(setting.shape)
    if int(np.prod(sizes, dtype=object)) != setting.inputs:
        raise ParameterError(
            f"shape is {_checks.shown(sizes)}; it does not make the {setting.inputs} inputs."
        )
    return sizes


def _generators(
    symmetry: str | tuple[Generator, ...], inputs: int, outputs: int
) -> tuple[Generator, ...]:
    if not isinstance(symmetry, str):
        return symmetry
    x, y = np.arange(inputs), np.arange(outputs)
    if symmetry == "reflection":
        return ((x[::-1].copy(), y[::-1].copy()),)
    if inputs != outputs:
        raise ParameterError(
            f"symmetry is {symmetry!r} with {inputs} inputs and {outputs} outputs; it moves both "
            "alike, and needs as many of both."
        )
    shift, turn = (x + 1) % inputs, -x % inputs
    return ((shift, shift), (turn, turn))[: 2 if symmetry == "dihedral" else 1]


def _word_generators(shape: tuple[int, ...]) -> tuple[Generator, ...]:
    """Return generators of the permutations of symbols, and of positions with as many symbols."""
    # Axis i is the symbol at position i; the entry is the number of the word.
    words = np.arange(int(np.prod(shape, dtype=object))).reshape(shape)
    images = []
    for symbols in sorted(set(shape) - {1}):
        positions = [i for i, size in enumerate(shape) if size == symbols]
        order = np.arange(symbols)
        images.append(np.take(words, [1, 0, *order[2:]], axis=positions[0]))
        if symbols > 2:
            images.append(np.roll(words, 1, axis=positions[0]))
        if len(positions) > 1:
            images.append(np.swapaxes(words, positions[0], positions[1]))
        if len(positions) > 2:
            images.append(np.moveaxis(words, positions, [*positions[1:], positions[0]]))
    flat = [np.ascontiguousarray(each).ravel() for each in images]
    return tuple((sigma, sigma) for sigma in flat)


def _require_edges(called: str, sigma: IntVector, pairs: IntVector, inputs: int) -> None:
    keys, images = pairs[:, 0] * inputs + pairs[:, 1], sigma[pairs]
    broken = ~np.isin(images[:, 0] * inputs + images[:, 1], keys)
    if np.any(broken):
        x, other = pairs[np.argmax(broken)].tolist()
        raise ParameterError(
            f"{called} maps the neighbours {x} and {other} to {sigma[x]} and {sigma[other]}, which "
            "are none in graph."
        )


def _require_loss(called: str, generator: Generator, setting: Kernel) -> None:
    sigma, tau = generator
    if setting.inputs * setting.outputs > _MOST_COMPARED:
        raise ParameterError(
            f"{called} is not known to keep the loss, and its {setting.inputs} inputs and "
            f"{setting.outputs} outputs are too many to see it: at most {_MOST_COMPARED:,} pairs "
            "are compared."
        )
    step, y = max(1, _CHUNK // setting.outputs), np.arange(setting.outputs)
    for start in range(0, setting.inputs, step):
        x = np.arange(start, min(start + step, setting.inputs))[:, None]
        losses, image_losses = setting.loss_at(x, y), setting.loss_at(sigma[x], tau)
        if not np.array_equal(losses, image_losses):
            i, j = (
                int(k) for k in np.unravel_index(np.argmax(losses != image_losses), losses.shape)
            )
            raise ParameterError(
                f"{called} maps the pair ({start + i}, {j}) to ({sigma[start + i]}, {tau[j]}), and "
                f"loss is {digits(float(losses[i, j]))} at the first and "
                f"{digits(float(image_losses[i, j]))} at the second."
            )

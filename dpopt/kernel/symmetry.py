"""Symmetries of a kernel program: groups by name, generators, and what they must leave alone.

Theorem. Let every symmetry (sigma, tau) map inputs to inputs and outputs to outputs such that
loss[sigma x, tau y] = loss[x, y], neighbours stay neighbours, and prior, invariances and the user's
own rows stay the same. Then some optimal kernel has K[sigma x, tau y] = K[x, y] for all of them.

It is the mean of an optimal one over the group; the proof is on the page docs/theorems/orbits.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import digits
from dpopt._types import IntVector, Matrix, Vector
from dpopt.kernel.constraints import ConstraintBlock
from dpopt.table import Generated, Inputs, Words
from dpopt.table.symmetric import Generator

if TYPE_CHECKING:
    from dpopt.kernel.setting import Kernel

SYMMETRIES = ("none", "auto", "reflection", "cyclic", "dihedral", "hamming", "symbols")
"""Names of groups."""

Symmetry = str | Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]
"""A name, or generators (sigma, tau): input x goes to sigma[x], output y to tau[y]."""

# In the order that they are tried in: those that leave fewer orbits first.
_TRIED = ("hamming", "symbols", "dihedral", "cyclic", "reflection")
_CHUNK, _MOST_COMPARED = 2**20, 2**27
_LARGEST = 1e308


def checked_symmetry(symmetry: object, inputs: int, outputs: int) -> str | tuple[Generator, ...]:
    """Return a name, or generators as read-only permutations.

    Raises:
        ParameterError: for an unknown name, or generators that are no permutations.
    """
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
    for place, generator in enumerate(listed):
        if not isinstance(generator, Sequence | np.ndarray) or len(generator) != 2:
            raise ParameterError(
                f"symmetry holds {_checks.shown(generator)} at place {place}; it must be a pair "
                "(sigma, tau) of permutations."
            )
        sigma = _permutation(f"sigma of symmetry {place}", generator[0], inputs)
        tau = _permutation(f"tau of symmetry {place}", generator[1], outputs)
        generators.append((sigma, tau))
    return tuple(generators)


def _permutation(name: str, values: object, size: int) -> IntVector:
    array = _checks.array(name, values)
    whole = array.shape == (size,) and array.dtype.kind in "iu"
    if not whole or not np.array_equal(np.sort(array), np.arange(size)):
        raise ParameterError(
            f"{name} is {_checks.shown(values)}; it must be a permutation of 0..{size - 1}."
        )
    permutation = array.astype(np.int64)
    permutation.setflags(write=False)
    return permutation


def settled(setting: Kernel) -> tuple[str | tuple[Generator, ...], Inputs | None]:
    """Return the symmetry with "auto" decided, and its orbits; None for "none".

    Raises:
        ParameterError: if the setting does not have the symmetry, naming the first pair that shows
            it.
    """
    symmetry = checked_symmetry(setting.symmetry, setting.inputs, setting.outputs)
    if symmetry == "none":
        return "none", None
    if symmetry != "auto":
        return symmetry, _orbits(setting, symmetry)
    for name in _TRIED:
        try:
            return name, _orbits(setting, name)
        except ParameterError:
            continue
    return "none", None


def _orbits(setting: Kernel, symmetry: str | tuple[Generator, ...]) -> Inputs:
    """Return the orbits of a symmetry that the setting has."""
    inputs, outputs = setting.inputs, setting.outputs
    if symmetry in ("hamming", "symbols"):
        shape = _shape(setting, cast(str, symmetry))
        generators = _word_generators(shape)
    else:
        shape = None
        generators = _generators(symmetry, inputs, outputs)
    name = repr(symmetry) if isinstance(symmetry, str) else None
    # Words that differ in one place still do, whatever their symbols and places become.
    hamming = symmetry == "hamming" and setting.graph_name == "hamming"
    for place, generator in enumerate(generators):
        called = f"symmetry {name or place}"
        if not hamming:
            _require_edges(called, generator[0], setting.pairs, inputs)
        _require_prior(called, generator[0], setting.weights)
        if not _known(setting, symmetry, generator):
            _require_loss(called, generator, setting)
        _require_invariances(called, generator, setting.invariances)
        for block in setting.blocks:
            _require_constraints(called, generator, block)
    if shape is None:
        return Generated(inputs, outputs, generators, setting.pairs)
    symbols = tuple(size for size in shape if size > 1)
    if hamming and len(symbols) > 1:
        # One place differs, of each size of an alphabet.
        single = np.eye(len(set(symbols)), dtype=int)
        return Words(symbols, tuple(map(tuple, single.tolist())))
    if hamming or setting.pairs is None:
        return Words(symbols, None)
    # One neighbour that is so far away makes all of them neighbours.
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
            "symmetry is 'hamming' without a shape; it permutes the symbols and places of words: "
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
    """Return generators of all permutations of symbols and of places with as many symbols.

    For the places of each size: the first two symbols exchanged at the first of them, its symbols
    moved on by one, its first two places exchanged, and all of them moved on by one.
    """
    words = np.arange(int(np.prod(shape, dtype=object))).reshape(shape)
    moved = []
    for symbols in sorted(set(shape) - {1}):
        places = [i for i, size in enumerate(shape) if size == symbols]
        order = np.arange(symbols)
        moved.append(np.take(words, [1, 0, *order[2:]], axis=places[0]))
        if symbols > 2:
            moved.append(np.roll(words, 1, axis=places[0]))
        if len(places) > 1:
            moved.append(np.swapaxes(words, places[0], places[1]))
        if len(places) > 2:
            moved.append(np.moveaxis(words, places, [*places[1:], places[0]]))
    flat = [np.ascontiguousarray(each).ravel() for each in moved]
    return tuple((sigma, sigma) for sigma in flat)


def _require_edges(called: str, sigma: IntVector, pairs: IntVector | None, inputs: int) -> None:
    if pairs is None:
        return
    keys, images = pairs[:, 0] * inputs + pairs[:, 1], sigma[pairs]
    lost = ~np.isin(images[:, 0] * inputs + images[:, 1], keys)
    if np.any(lost):
        x, other = pairs[np.argmax(lost)].tolist()
        raise ParameterError(
            f"{called} maps the neighbours {x} and {other} to {sigma[x]} and {sigma[other]}, which "
            "are none in graph."
        )


def _require_prior(called: str, sigma: IntVector, prior: Vector | None) -> None:
    if prior is None:
        return
    lost = prior[sigma] != prior
    if np.any(lost):
        x = int(np.argmax(lost))
        raise ParameterError(
            f"{called} maps input {x} to {sigma[x]}, and prior gives them different weights."
        )


def _known(setting: Kernel, symmetry: str | tuple[Generator, ...], generator: Generator) -> bool:
    """Whether a loss by name has the symmetry by its formula, of words of any number."""
    sigma, tau = generator
    if not isinstance(setting.loss, str):
        return False
    if setting.loss == "zero-one":
        return sigma is tau or np.array_equal(sigma, tau)
    if symmetry == "reflection":
        # Every symbol of a word is reflected.
        return setting.inputs == setting.outputs
    return symmetry == setting.loss == "hamming"


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
        here, there = setting.loss_at(x, y), setting.loss_at(sigma[x], tau)
        if not np.array_equal(here, there):
            i, j = (int(k) for k in np.unravel_index(np.argmax(here != there), here.shape))
            raise ParameterError(
                f"{called} maps the pair ({start + i}, {j}) to ({sigma[start + i]}, {tau[j]}), and "
                f"loss is {digits(float(here[i, j]))} at the first and "
                f"{digits(float(there[i, j]))} at the second."
            )


def _require_invariances(
    called: str, generator: Generator, invariances: tuple[Matrix, Matrix] | None
) -> None:
    if invariances is None:
        return
    sigma, tau = generator
    left, right = invariances
    rows, images = np.hstack([left, right]), np.hstack([left[:, sigma], right[:, tau]])
    _require_rows(f"{called} does not keep invariant", images, rows)


def _require_constraints(called: str, generator: Generator, block: ConstraintBlock) -> None:
    i, x, y = block.places.T
    sigma, tau = generator
    # The first columns hold the limits, which an image of a row must share.
    sides = sp.csr_array(np.nan_to_num(np.stack(block.limits, axis=1), posinf=_LARGEST))
    shape = (block.count, len(sigma) * len(tau))
    rows, images = (
        sp.hstack([sides, sp.csr_array((block.coefficients, (i, column)), shape=shape)])
        for column in (x * len(tau) + y, sigma[x] * len(tau) + tau[y])
    )
    _require_rows(f"{called} does not keep rows {block.name!r}", images, rows)


def _require_rows(called: str, images: object, rows: object) -> None:
    """Refuse rows whose images under a symmetry are not these rows again, in whatever order."""
    known = set(_hashed(rows))
    for place, image in enumerate(_hashed(images)):
        if image not in known:
            raise ParameterError(f"{called}: row {place} is mapped to one that is not there.")


def _hashed(rows: Any) -> list[tuple[bytes, bytes]]:  # noqa: ANN401
    """Return each row as the places and values of what is not 0."""
    matrix = sp.csr_array(rows, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    ends = zip(matrix.indptr, matrix.indptr[1:], strict=False)
    return [
        (matrix.indices[a:b].astype(np.int64).tobytes(), matrix.data[a:b].tobytes())
        for a, b in ends
    ]

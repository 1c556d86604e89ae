"""Kernels over orbits: known values, the full program, every group element, every drawn integer."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from io import BytesIO
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpopt import Kernel
from dpopt._errors import ParameterError
from dpopt.privacy.graph import all_pairs
from dpopt.table import Graph, Table, Words
from tests.kernel.brute import distances, least_loss, optimal, private, rows_of, sure

Array = npt.NDArray[np.float64]
Move = tuple[tuple[int, ...], tuple[int, ...]]


def ring(size: int) -> Array:
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.minimum(apart, size - apart).astype(float)


# Values


@pytest.mark.slow
@pytest.mark.parametrize("places", [10, 1, 6, 3, 20])
def test_product_of_responses_is_best_for_words(places: int) -> None:
    """Losses by name, and as tables, so that the check of their symmetry is not by name."""
    words = np.array(list(product((0, 1), repeat=min(places, 10))))
    apart = np.sum(words[:, None] != words, axis=2).astype(float)
    cube: Any = {"graph": "hamming", "shape": (2,) * places, "symmetry": "hamming"}
    for epsilon in (0.3, 1.0):
        right = math.exp(epsilon) / (1 + math.exp(epsilon))
        cases: list[tuple[Any, float]] = [("hamming", places * (1 - right))]
        if places <= 10:
            cases += [(apart, places * (1 - right)), (np.sign(apart), 1 - right**places)]
        for loss, value in cases:
            found = optimal(loss, epsilon=epsilon, objective="worst-case", **cube)
            assert found.table.inputs.size == places + 1
            assert found.value == pytest.approx(value, rel=1e-10, abs=1e-12)
            assert 0 <= sure(found.gap) < 1e-8


def test_a_cube_out_of_reach_of_the_entries() -> None:
    cube: Any = {"graph": "hamming", "shape": (2,) * 11, "objective": "worst-case"}
    with pytest.raises(ParameterError, match="2,000,000"):
        optimal("hamming", epsilon=1.0, **cube)
    found = optimal("hamming", epsilon=1.0, symmetry="auto", **cube)
    assert found.setting.symmetry == "hamming"
    assert found.value == pytest.approx(11 / (1 + math.e), rel=1e-11)
    # A row of product randomised response, from its formula.
    flips = np.array([bin(word ^ 5).count("1") for word in range(2048)])
    right = math.e / (1 + math.e)
    row = np.array(found.table.row(5), dtype=float) / found.table.total
    assert row == pytest.approx(right ** (11 - flips) * (1 - right) ** flips, rel=1e-9)


@pytest.mark.parametrize("symmetry", ["cyclic", "dihedral", "auto"])
def test_a_cycle(symmetry: str) -> None:
    settings: Any = {"epsilon": 0.5, "graph": "cycle", "objective": "worst-case"}
    found = optimal(ring(40), symmetry=symmetry, **settings)
    assert found.value == pytest.approx(1.918126711515, abs=6e-13)
    assert sure(found.bound) == pytest.approx(found.value, abs=1e-9)
    problem = found.setting.problem()
    assert problem.size == (41 if symmetry == "cyclic" else 22)
    assert problem.blocks["sums"].count == problem.blocks["losses"].count == 1


# Random settings, each beside the program over all entries


def closure(generators: list[Move]) -> list[Move]:
    """All elements of the group, by brute force."""
    identity = tuple(range(len(generators[0][0]))), tuple(range(len(generators[0][1])))
    known, new = {identity}, [identity]
    while new:
        one = new.pop()
        for sigma, tau in generators:
            step = tuple(sigma[i] for i in one[0]), tuple(tau[i] for i in one[1])
            if step not in known:
                known.add(step)
                new.append(step)
    return sorted(known)


def invariant_mean(values: Array, group: list[Move]) -> Array:
    """The mean over the group, to the last bit the same on every orbit of pairs."""
    mean = np.empty_like(values)
    for x, y in np.ndindex(values.shape):
        orbit = sorted({(sigma[x], tau[y]) for sigma, tau in group})
        mean[x, y] = math.fsum(values[pair] for pair in orbit) / len(orbit)
    return mean


def permuted(rng: np.random.Generator, size: int) -> tuple[int, ...]:
    """A permutation with a cycle or two of few points, so that many groups are small."""
    moved, order = np.arange(size), rng.permutation(size)
    first = order[: 3 if rng.random() < 0.2 else 2]
    second = order[3:5] if rng.random() < 0.5 else order[:0]
    for few in (first, second):
        moved[few] = np.roll(few, 1)
    return tuple(moved.tolist())


def random_setting(seed: int) -> tuple[dict[str, Any], list[Move]]:
    """Parameters of a small setting that has a random symmetry, and its whole group."""
    rng = np.random.default_rng([16, seed])
    n, m = int(rng.integers(3, 7)), int(rng.integers(2, 5))
    together = bool(rng.random() < 0.2)
    n = min(n, 4) if together else n
    m = n if together else m
    generators = []
    for _ in range(1 if rng.random() < 0.7 else 2):
        sigma = permuted(rng, n)
        generators.append((sigma, sigma if together else permuted(rng, m)))
    group = closure(generators)
    edges = {(int(a), int(b)) for a, b in rng.integers(0, n, (2, 2)) if a != b} or {(0, 1)}
    edges = {(sigma[a], sigma[b]) for a, b in edges for sigma, _ in group}
    asked: dict[str, Any] = {
        "loss": invariant_mean(rng.random((n, m)), group),
        "epsilon": float(rng.choice([0.0, 0.2, 1.0, 2.5], p=[0.1, 0.3, 0.3, 0.3])),
        "delta": float(rng.choice([0.0, 0.1])),
        "graph": "complete" if rng.random() < 0.4 else sorted({tuple(sorted(e)) for e in edges}),
        "objective": str(rng.choice(["mean", "worst-case"])),
        "symmetry": generators,
    }
    prior = invariant_mean(rng.random((n, 1)), [(sigma, (0,)) for sigma, _ in group])[:, 0]
    if asked["objective"] == "mean":
        asked["prior"] = prior
    return asked, group


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("seed", range(100))
def test_orbits_are_as_good_as_entries(seed: int) -> None:
    asked, group = random_setting(seed)
    found = optimal(**asked)
    setting = found.setting
    edges = [tuple(pair) for pair in all_pairs(setting.pairs, setting.inputs).tolist()]
    full = optimal(**{**asked, "symmetry": "none"})
    least = least_loss(
        asked["loss"], edges, asked["epsilon"], asked["delta"], prior=setting.weights
    )
    assert sure(found.bound) <= min(least + 1e-9, full.value + 1e-11)
    assert found.value == pytest.approx(least, abs=1e-9)
    assert found.value == pytest.approx(full.value, abs=1e-9)
    assert found.setting.problem().size <= full.setting.problem().size + 1
    assert private(found, edges)
    rows = rows_of(found)
    for sigma, tau in group:
        assert all(rows[sigma[x]][tau[y]] == rows[x][y] for x, y in np.ndindex(found.kernel.shape))
    assert found.kernel == pytest.approx(np.array(rows) / found.table.total)
    losses = [
        sum(Fraction(cost) * w for cost, w in zip(line, row, strict=True)) / found.table.total
        for line, row in zip(asked["loss"].tolist(), rows, strict=True)
    ]
    assert found.expected_losses == pytest.approx([float(loss) for loss in losses])
    if setting.weights is None:
        assert found.value == float(max(losses))
    else:
        assert found.value == pytest.approx(setting.weights @ np.array(losses, float), rel=1e-14)


# Orbits


@pytest.mark.sample(6)
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 3), (2, 2, 2, 2), (3, 3, 3), (5,), (3, 1, 3)])
@pytest.mark.parametrize("graph", ["hamming", "complete"])
def test_orbits_of_words_by_search(shape: tuple[int, ...], graph: str) -> None:
    size = math.prod(shape)
    asked: Any = {"shape": shape, "graph": graph, "objective": "worst-case"}
    words = Kernel("hamming", 1.0, symmetry="hamming", **asked).domain
    assert isinstance(words, Words)
    every = [np.arange(size).reshape(shape).transpose(order) for order in places_permuted(shape)]
    for place, symbols in enumerate(shape):
        moves = ([1, 0, *range(2, symbols)], [*range(1, symbols), 0]) if symbols > 1 else ()
        every += [np.take(np.arange(size).reshape(shape), move, axis=place) for move in moves]
    generators = tuple((move.ravel(), move.ravel()) for move in every)
    pairs = Kernel("hamming", 1.0, **asked).pairs
    searched = Graph(size, size, pairs, generators)
    one, other = words.table(), searched.table()
    both = {(int(a), int(b)) for a, b in zip(one.ravel(), other.ravel(), strict=True)}
    assert len(both) == words.size == searched.size
    for a, b in both:
        assert words.counts[a] == searched.counts[b] == np.sum(other[0] == b)
        assert one[tuple(words.representatives[a])] == a
    assert words.hamming == (pairs is not None)


def places_permuted(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    swaps = []
    for i, j in product(range(len(shape)), repeat=2):
        order = list(range(len(shape)))
        if i < j and shape[i] == shape[j]:
            order[i], order[j] = j, i
        swaps.append(tuple(order))
    return swaps


# Draws


@pytest.mark.parametrize("symmetry", ["dihedral", "hamming"])
def test_every_part_of_the_total_is_drawn_once(symmetry: str) -> None:
    """The middles of nine equal parts of [0, 1) choose the orbit; then 0 and 1 one of its two."""
    setting = Kernel(ring(4), 1.0, symmetry="dihedral", graph="cycle")
    if symmetry == "hamming":
        setting = Kernel("hamming", 1.0, graph="hamming", shape=(2, 2), symmetry="hamming")
    small = Table(setting.domain, (4, 2, 1), 9)
    for x in range(4):
        drawn: Counter[int] = Counter()
        for number, index in product(range(small.total), range(2)):
            words = (2 * number + 1 << 63) // small.total, index
            given = BytesIO(b"".join(word.to_bytes(8, "little") for word in words))
            drawn[int(small.drawn(x, given.read)[0][0])] += 1
        assert [drawn[y] for y in range(4)] == [2 * weight for weight in small.row(x)]


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("graph", ["cycle", "complete"])
def test_the_dominating_pair_is_that_of_all_rows(graph: str, delta: float) -> None:
    found = optimal(
        ring(6), epsilon=0.8, delta=delta, graph=graph, symmetry="dihedral", objective="worst-case"
    )
    pair = found.setting.dominating(found.table)
    pmf = found.kernel
    edges = all_pairs(found.setting.pairs, 6)
    for epsilon in (-0.5, 0.0, 0.3, 0.79):
        worst = max(
            float(np.sum(np.maximum(pmf[x] - math.exp(epsilon) * pmf[other], 0)))
            for x, other in edges
        )
        assert pair.delta(epsilon) == pytest.approx(worst, abs=1e-12)


# What a setting has


def test_auto_takes_what_there_is() -> None:
    def chosen(loss: Any, **asked: Any) -> object:
        return Kernel(loss, 1.0, symmetry="auto", **asked).symmetry

    assert chosen(ring(5), graph="cycle") == "dihedral"
    turned = np.add.outer(np.arange(5), 2 * np.arange(5)) % 5
    assert chosen(np.array([[(y - x) % 5 for y in range(5)] for x in range(5)])) == "cyclic"
    assert chosen(1 - np.eye(5)) == "symbols"
    assert chosen(distances(5), graph="path") == "reflection"
    assert chosen(distances(5)[:, :4] * [1, 2, 3, 4]) == "none"
    assert chosen("hamming", shape=(3, 3), graph="hamming") == "hamming"
    assert chosen("hamming", shape=(2, 3), graph="hamming") == "reflection"
    assert chosen("absolute", inputs=5, graph="path", prior=[1, 2, 3, 4, 5]) == "none"
    far: Any = [("far", np.eye(25)[[3]], 0.05, None)]
    own: Any
    for own in ({"constraints": far}, {"invariant": [0.2] * 5}, {"output_names": "a,b,c,d,e"}):
        assert chosen(1 - np.eye(5), graph="cycle", **own) == "none"
    assert chosen(turned.astype(float) ** 2 + distances(5)) == "none"

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
from tests.kernel.brute import events, least_loss, optimal, rows_of, sure
from tests.oracles import exponential

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Move = tuple[tuple[int, ...], tuple[int, ...]]


def ring(size: int) -> Array:
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.minimum(apart, size - apart).astype(float)


def line(size: int) -> Array:
    return np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)


# Values


@pytest.mark.slow
@pytest.mark.parametrize("places", [1, 3, 6, 10, 20])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_product_of_responses_is_best_for_hamming_loss(places: int, epsilon: float) -> None:
    found = optimal(
        "hamming",
        epsilon=epsilon,
        graph="hamming",
        shape=(2,) * places,
        objective="worst-case",
        symmetry="hamming",
    )
    assert found.table.inputs.size == places + 1
    assert found.value == pytest.approx(places / (1 + math.exp(epsilon)), rel=1e-10)
    assert 0 <= sure(found.gap) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("places", "hamming", "zero_one"),
    [(3, 0.806824264110, 0.609288195069), (10, 2.689414213700, 0.956396457206)],
)
def test_cubes(places: int, hamming: float, zero_one: float) -> None:
    """Tables of losses, so that the check of their symmetry is not by name."""
    words = np.array(list(product((0, 1), repeat=places)))
    apart = np.sum(words[:, None] != words, axis=2).astype(float)
    cube: Any = {"graph": "hamming", "shape": (2,) * places, "symmetry": "hamming"}
    for loss, value in ((apart, hamming), (np.sign(apart), zero_one)):
        found = optimal(loss, epsilon=1.0, objective="worst-case", **cube)
        assert found.value == pytest.approx(value, abs=6e-13)
        assert sure(found.bound) == pytest.approx(value, abs=1e-11)
        ratio = math.e / (1 + math.e)
        if loss is not apart:
            assert found.value == pytest.approx(1 - ratio**places, abs=1e-12)


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
    rows = found.setting.problem().blocks
    assert found.setting.problem().size == (41 if symmetry == "cyclic" else 22)
    assert rows["sums"].count == rows["losses"].count == 1


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
        asked["loss"],
        edges,
        asked["epsilon"],
        asked["delta"],
        prior=setting.weights,
    )
    assert sure(found.bound) <= min(least + 1e-9, full.value + 1e-11)
    assert found.value == pytest.approx(least, abs=1e-9)
    assert found.value == pytest.approx(full.value, abs=1e-9)
    assert found.setting.problem().size <= full.setting.problem().size + 1
    judge(found, edges)
    rows = rows_of(found)
    for sigma, tau in group:
        assert all(rows[sigma[x]][tau[y]] == rows[x][y] for x, y in np.ndindex(found.kernel.shape))
    assert found.kernel == pytest.approx(np.array(rows) / found.table.total)
    told = [float(np.sum(found.kernel[x] * asked["loss"][x])) for x in range(len(rows))]
    assert found.expected_losses == pytest.approx(told)


def judge(found: Any, edges: list[Any]) -> None:
    """Every event of every edge, and every row's sum, in plain fractions."""
    rows = [[Fraction(w, found.table.total) for w in row] for row in rows_of(found)]
    assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
    ratio, delta = exponential(found.setting.epsilon), Fraction(found.setting.delta)
    outputs = found.setting.outputs
    chosen = events(outputs) if delta else [(y,) for y in range(outputs)]
    for x, other in edges:
        for event in chosen:
            here, there = (sum(rows[i][y] for y in event) for i in (x, other))
            assert here <= ratio * there + delta
    value = [
        sum(Fraction(float(cost)) * mass for cost, mass in zip(line, row, strict=True))
        for line, row in zip(found.setting.loss_table, rows, strict=True)
    ]
    if found.setting.weights is None:
        assert found.value == float(max(value))
    else:
        mean = sum(float(p) * float(v) for p, v in zip(found.setting.weights, value, strict=True))
        assert found.value == pytest.approx(mean, rel=1e-14)


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


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Graph(3, 3, None, (moved(0, 0, 2),)), "no permutation"),
        (lambda: Graph(3, 3, edges(2, 1), (moved(1, 0, 2),)), "neighbours to neighbours"),
        (lambda: Graph(3, 3, edges(0, 3)), "an edge joins two different inputs"),
        (lambda: Words(1, 2, True), "at least 2 symbols"),
        (lambda: Words(2, 0, True), "at least 1 position"),
    ],
)
def test_orbits_that_a_proof_could_not_rely_on(made: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        made()


def moved(*sigma: int) -> tuple[Ints, Ints]:
    return np.array(sigma), np.array(sigma)


def edges(x: int, other: int) -> Ints:
    return np.array(sorted([(x, other), (other, x)]))


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


# What is not there


def test_a_setting_has_own_rows_or_a_symmetry() -> None:
    far = np.zeros((6, 36))
    far[np.arange(6), np.arange(6) * 6 + (np.arange(6) + 3) % 6] = 1.0
    rows: Any = [("far", far, 0.05, None)]
    own: Any
    for own in ({"constraints": rows}, {"invariant": [1 / 6] * 6}, {"output_names": "a,b,c,d,e,f"}):
        with pytest.raises(ParameterError, match="symmetry is 'cyclic' and there are constraints"):
            Kernel(1 - np.eye(6), 0.9, graph="cycle", symmetry="cyclic", **own)
        assert Kernel(1 - np.eye(6), 0.9, graph="cycle", symmetry="auto", **own).symmetry == "none"


def test_auto_takes_what_there_is() -> None:
    def chosen(loss: Any, **asked: Any) -> object:
        return Kernel(loss, 1.0, symmetry="auto", **asked).symmetry

    assert chosen(ring(5), graph="cycle") == "dihedral"
    turned = np.add.outer(np.arange(5), 2 * np.arange(5)) % 5
    assert chosen(np.array([[(y - x) % 5 for y in range(5)] for x in range(5)])) == "cyclic"
    assert chosen(1 - np.eye(5)) == "symbols"
    assert chosen(line(5), graph="path") == "reflection"
    assert chosen(line(5)[:, :4] * [1, 2, 3, 4]) == "none"
    assert chosen("hamming", shape=(3, 3), graph="hamming") == "hamming"
    assert chosen("hamming", shape=(2, 3), graph="hamming") == "reflection"
    assert chosen("absolute", inputs=5, graph="path", prior=[1, 2, 3, 4, 5]) == "none"
    assert chosen(turned.astype(float) ** 2 + line(5)) == "none"


# Files

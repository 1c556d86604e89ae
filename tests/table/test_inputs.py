"""Makers of inputs against all inputs and outputs written out."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from dpopt.privacy.graph import directed_pairs
from dpopt.table import Generated, Graph, Inputs, SortedHistograms, Words


def by_hand(inputs: Inputs) -> tuple[list[list[int]], set[tuple[int, int]]]:
    """Return the variable of each pair, and the neighbours as unordered pairs of inputs."""
    if isinstance(inputs, SortedHistograms):
        n, k = inputs.records, inputs.categories
        known = [x for x in product(range(n + 1), repeat=k) if sum(x) == n]
        table = inputs.variables_of(np.array(known)).tolist()
        near = {
            (i, j)
            for (i, x), (j, y) in combinations(enumerate(known), 2)
            if sum(abs(a - b) for a, b in zip(x, y, strict=True)) == 2
        }
        return table, near
    table = inputs.table().tolist()
    pairs = inputs.pairs  # type: ignore[attr-defined]
    if pairs is None:
        return table, set(combinations(range(inputs.inputs), 2))
    return table, {(x, z) for x, z in pairs.tolist() if x < z}


CYCLE = directed_pairs("cycle", 6)
TURN = (np.roll(np.arange(6), -1), np.roll(np.arange(6), -1))
FLIP = (np.arange(5)[::-1].copy(), np.arange(7)[::-1].copy())
CASES: dict[str, Inputs] = {
    "path": Graph(5, 4, directed_pairs("path", 5)),
    "complete": Graph(4, 3),
    "own": Graph(5, 2, directed_pairs([[0, 1], [3, 1]], 5)),
    "cycle turned": Generated(6, 6, (TURN,), CYCLE),
    "path reflected": Generated(5, 7, (FLIP,), directed_pairs("path", 5)),
    "complete turned": Generated(6, 6, (TURN,), None),
    "bits": Words((2, 2, 2), ((1,),)),
    "mixed words": Words((2, 3, 2), ((1, 0), (0, 1))),
    "words, complete": Words((3, 3), None),
    "4 records, 3 categories": SortedHistograms(4, 3),
    "5 records, 4 categories": SortedHistograms(5, 4),
    "1 record, 5 categories": SortedHistograms(1, 5),
    "7 records, 2 categories": SortedHistograms(7, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_variables_count_outputs_and_inputs(name: str) -> None:
    inputs = CASES[name]
    table, _ = by_hand(inputs)
    rows = {}
    for line in table:
        assert len({int(inputs.rows[v]) for v in line}) == 1
        assert all(inputs.counts[v] == many for v, many in Counter(line).items())
        rows.setdefault(int(inputs.rows[line[0]]), []).append(line)
        assert sorted(set(line)) == list(range(*inputs.starts[inputs.rows[line[0]] :][:2]))
    assert [len(rows[row]) for row in range(len(rows))] == [int(s) for s in inputs.row_sizes]
    assert sum(len(lines) for lines in rows.values()) == inputs.inputs
    assert np.all(np.diff(inputs.rows) >= 0)
    by_column = Counter(int(inputs.columns[v]) for v in table[0])
    assert [by_column[c] for c in range(len(by_column))] == list(inputs.column_sizes)


@pytest.mark.parametrize("name", CASES)
def test_neighbours_are_those_of_all_inputs(name: str) -> None:
    inputs = CASES[name]
    table, near = by_hand(inputs)
    expected = {
        (min(v, w), max(v, w))
        for x, z in near
        for v, w in zip(table[x], table[z], strict=True)
        if v != w
    }
    found = {
        (min(v, w), max(v, w))
        for line in inputs.neighbours.tolist()
        for v, w in combinations(line, 2)
    }
    assert found == expected


@pytest.mark.parametrize("name", CASES)
def test_edges_are_those_of_all_inputs(name: str) -> None:
    inputs = CASES[name]
    table, near = by_hand(inputs)

    def shape(pairs: Counter[tuple[int, int]]) -> frozenset[tuple[tuple[int, int], int]]:
        return frozenset(pairs.items())

    expected = {
        shape(Counter(zip(table[a], table[b], strict=True)))
        for x, z in near
        for a, b in ((x, z), (z, x))
    }
    found = set()
    for first, second, counts in inputs.edges.listed():
        for one, two in ((first, second), (second, first)):
            entries = Counter[tuple[int, int]]()
            for v, w, many in zip(one, two, counts, strict=True):
                entries[v, w] += many
            found.add(shape(entries))
    assert found == expected


@pytest.mark.parametrize("name", CASES)
def test_chosen_outputs_are_those_of_their_variable(name: str) -> None:
    inputs = CASES[name]
    table, _ = by_hand(inputs)
    if isinstance(inputs, SortedHistograms):
        n, k = inputs.records, inputs.categories
        queries = np.array([x for x in product(range(n + 1), repeat=k) if sum(x) == n])
    else:
        queries = np.arange(inputs.inputs)
    located, single = inputs.located(queries)
    assert not single
    assert inputs.variables_of(located).tolist() == table
    assert inputs.rows_of(located).tolist() == [int(inputs.rows[line[0]]) for line in table]
    for x, line in enumerate(table):
        for v, many in Counter(line).items():
            outputs = [
                int(inputs.chosen(located[[x]], np.array([v]), np.array([i]))[0])
                for i in range(many)
            ]
            assert sorted(outputs) == [y for y, w in enumerate(line) if w == v]
    # All at once, which some find in another way.
    first = np.array([line[0] for line in table])
    outputs = inputs.chosen(located, first, np.zeros(len(table), dtype=np.int64))
    assert all(table[x][y] == first[x] for x, y in enumerate(outputs.tolist()))


@pytest.mark.parametrize("name", CASES)
def test_words_name_neighbours_and_an_output(name: str) -> None:
    inputs = CASES[name]
    if isinstance(inputs, SortedHistograms):
        assert "counts" in str(inputs.words(*inputs.neighbours[0])[0])
        return
    table, near = by_hand(inputs)
    for line in inputs.neighbours.tolist()[:40]:
        x, z, y = map(int, inputs.words(line[0], line[1]))
        assert (min(x, z), max(x, z)) in near
        assert (table[x][y], table[z][y]) == (line[0], line[1])


@pytest.mark.parametrize("sizes", [(4, 3), (5, 4), (1, 5), (7, 2), (3, 300)])
def test_histograms_are_numbered_in_their_order(sizes: tuple[int, int]) -> None:
    inputs = SortedHistograms(*sizes)
    every = inputs.every() if sizes[1] < 300 else np.eye(300, dtype=np.int64) * 3
    if sizes[1] < 300:
        known = product(range(sizes[0] + 1), repeat=sizes[1])
        assert every.tolist() == [list(x) for x in known if sum(x) == sizes[0]]
        assert inputs.table().shape == (inputs.inputs, inputs.outputs)
    numbers = inputs.numbers(every)
    assert numbers is None if sizes[1] == 300 else numbers is not None
    assert numbers is None or numbers.tolist() == list(range(inputs.inputs))

"""Makers of inputs against all inputs and outputs written out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest

from dpopt import ParameterError
from dpopt.privacy.graph import directed_pairs
from dpopt.table import Graph, Inputs, SortedHistograms, Words, histograms, symmetric
from dpopt.table import inputs as inputs_module
from tests.oracles import compositions


def one_moved(rows: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """Pairs of counts between which one record is another one."""
    return {
        (i, j)
        for (i, x), (j, y) in combinations(enumerate(rows), 2)
        if sum(abs(a - b) for a, b in zip(x, y, strict=True)) == 2
    }


def by_hand(inputs: Inputs) -> tuple[list[list[int]], set[tuple[int, int]]]:
    """Return the variable of each pair, and the neighbours as unordered pairs of inputs."""
    if isinstance(inputs, SortedHistograms):
        every = [*compositions(inputs.records, inputs.categories)]
        return inputs.variables_of(np.array(every)).tolist(), one_moved(every)
    table = inputs.table().tolist()
    if isinstance(inputs, Words):
        words = list(enumerate(product(range(inputs.symbols), repeat=inputs.positions)))
        apart = {
            (i, j): sum(a != b for a, b in zip(x, z, strict=True))
            for (i, x), (j, z) in combinations(words, 2)
        }
        return table, {pair for pair, k in apart.items() if k == 1 or not inputs.hamming}
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
    "cycle turned": Graph(6, 6, CYCLE, (TURN,)),
    "path reflected": Graph(5, 7, directed_pairs("path", 5), (FLIP,)),
    "complete turned": Graph(6, 6, None, (TURN,)),
    "bits": Words(2, 3, True),
    "words of three symbols": Words(3, 3, True),
    "words, complete": Words(3, 2, False),
    "4 records, 3 categories": SortedHistograms(4, 3),
    "5 records, 4 categories": SortedHistograms(5, 4),
    "5 records, 3 categories": SortedHistograms(5, 3),
    "3 records, 4 categories": SortedHistograms(3, 4),
    "1 record, 5 categories": SortedHistograms(1, 5),
    "7 records, 2 categories": SortedHistograms(7, 2),
}


def test_variables_count_outputs_and_inputs() -> None:
    for inputs in CASES.values():
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


def test_neighbours_are_those_of_all_inputs() -> None:
    for inputs in CASES.values():
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


def test_edges_are_those_of_all_inputs() -> None:
    for inputs in CASES.values():
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


def test_chosen_outputs_are_those_of_their_variable() -> None:
    for inputs in CASES.values():
        table, _ = by_hand(inputs)
        queries = np.arange(inputs.inputs)
        if isinstance(inputs, SortedHistograms):
            queries = np.array([*compositions(inputs.records, inputs.categories)])
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


@pytest.mark.parametrize("sizes", [(4, 3), (5, 4), (1, 5), (7, 2)])
def test_histograms_are_numbered_in_their_order(sizes: tuple[int, int]) -> None:
    inputs = SortedHistograms(*sizes)
    assert inputs.every().tolist() == [list(x) for x in compositions(*sizes)]
    assert inputs.table().shape == (inputs.inputs, inputs.outputs)
    assert inputs.numbers(inputs.every()).tolist() == list(range(inputs.inputs))


@pytest.mark.parametrize("data", [0, 4, [4, 0, 4]])
def test_numbers_of_inputs_are_located(data: object) -> None:
    located, single = Graph(5, 2).located(data)
    assert (located.tolist(), single) == ([data] if single else data, isinstance(data, int))


@pytest.mark.parametrize("data", [[3, 0, 0], [[0, 1, 2], [1, 1, 1]], np.zeros((0, 3), int)])
def test_counts_are_located(data: list[list[int]]) -> None:
    located, single = SortedHistograms(3, 3).located(data)
    assert single == (np.ndim(data) == 1)
    assert located.tolist() == np.atleast_2d(data).tolist()


@pytest.mark.parametrize(
    "pairs",
    [
        *([[0, 1], [0, 2]], [[0, 1], [0, 2], [1, 0]]),
        *([[0, 2], [0, 1], [1, 0], [2, 0]], [[0, 1], [0, 1], [1, 0], [2, 0]]),
    ],
)
def test_neighbours_are_kept_in_both_directions_and_sorted(pairs: list[list[int]]) -> None:
    kept = Graph(3, 2, np.array(pairs)).pairs
    assert np.asarray(kept).tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]


@pytest.mark.parametrize("pairs", [[[0, 1], [1, 1]], [[-1, 0], [0, -1]], [[0, 3], [3, 0]]])
def test_neighbours_that_are_no_edges(pairs: list[list[int]]) -> None:
    with pytest.raises(ParameterError, match="an edge joins two different inputs of 0..2"):
        Graph(3, 2, np.array(pairs))


# By inputs and edges, what a claim says behind "the kernel has" or "the kernel is".
CLAIMS: list[tuple[int, list[list[int]] | None, str]] = [
    (1, None, "one input, which has no neighbour: there was nothing to prove"),
    (2, None, "private between all 2 inputs"),
    (3, [[0, 1], [1, 2]], "private along 4 directed edges of 3 inputs"),
    (
        *(4, [[0, 2]]),
        "private along 2 directed edges of 4 inputs; without a neighbour, and not protected: 2",
    ),
    (
        *(5, [[0, 2], [1, 3]]),
        "private along 4 directed edges of 5 inputs; without a neighbour, and not protected: 1; "
        "no neighbours join its 2 parts, and privacy holds within each",
    ),
]


@pytest.mark.parametrize(("inputs", "edges", "said"), CLAIMS)
def test_a_claim_counts_what_is_not_protected(inputs: int, edges: list | None, said: str) -> None:
    pairs = None if edges is None else directed_pairs(edges, inputs)
    verb = "has" if inputs == 1 else "is"
    assert Graph(inputs, 2, pairs).claim() == f"the kernel {verb} {said}"


def test_parts_are_what_neighbours_join() -> None:
    for inputs in CASES.values():
        part = {v: {v} for v in range(inputs.size)}
        for group in inputs.neighbours.tolist():
            joined = set().union(*(part[v] for v in group))
            part |= dict.fromkeys(joined, joined)
        labels = inputs.parts.tolist()
        assert all(
            part[v] == {w for w, label in enumerate(labels) if label == labels[v]} for v in part
        )


def test_inputs_without_neighbours_are_parts_of_their_own() -> None:
    assert Graph(1, 3).parts.tolist() == [0, 1, 2]
    assert Graph(1, 3).neighbours.shape == (0, 2)


def test_inputs_are_equal_by_what_determines_them() -> None:
    assert Graph(3, 2) == Graph(3, 2)
    assert Graph(3, 2) != Graph(2, 3)
    assert Graph(3, 2) != "graph"


@pytest.mark.parametrize(("records", "categories"), [(4, 3), (3, 5), (6, 2), (1, 2)])
def test_sorted_histograms_are_as_many_as_listed(records: int, categories: int) -> None:
    known = {tuple(sorted(x, reverse=True)) for x in compositions(records, categories)}
    assert histograms.partition_count(records, categories) == len(known)
    assert list(SortedHistograms(records, categories).listed()) == sorted(known, reverse=True)


def test_histograms_in_words() -> None:
    inputs = SortedHistograms(3, 3)
    said = ["3 and 2 of 0", "2, 1 and 1 of 0", "1, 1, 1"]
    assert [inputs.described(row) for row in range(3)] == said


@pytest.mark.parametrize("outputs", [3, 4])
def test_the_largest_kernel_that_is_written_out(
    outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (inputs_module, symmetric):
        monkeypatch.setattr(module, "LARGEST_WRITTEN", 9)
    inputs = Graph(3, outputs)
    if outputs == 3:
        assert inputs.table().shape == (3, 3)
        assert len(inputs.edges.listed()) == 3
    else:
        with pytest.raises(ParameterError, match="at most 9 entries are written out"):
            inputs.table()
        with pytest.raises(ParameterError, match="at most 9 of both together"):
            _ = inputs.edges


@pytest.mark.slow
def test_the_most_sorted_histograms() -> None:
    with pytest.raises(ParameterError, match="sorted histograms; at most 1,000,000 are listed"):
        SortedHistograms(61, 61)


def test_an_event_names_the_outputs_of_its_entries() -> None:
    for inputs in CASES.values():
        edges = inputs.edges
        table = None if isinstance(inputs, SortedHistograms) else inputs.table().tolist()
        for edge, start in enumerate(edges.starts[:-1].tolist()):
            (x, z), outputs = inputs.event(edge, [start])
            if table is None:
                assert outputs == (inputs.words(edges.first[start], edges.second[start])[2],)
            else:
                asked = int(edges.first[start]), int(edges.second[start])
                pairs = zip(table[int(x)], table[int(z)], strict=True)
                assert outputs == tuple(y for y, pair in enumerate(pairs) if pair == asked)


@pytest.mark.parametrize(("records", "categories"), [(5, 3), (3, 4), (6, 4), (7, 2)])
def test_moves_are_each_listed_once_with_all_categories_in_position(
    records: int, categories: int
) -> None:
    inputs = SortedHistograms(records, categories)
    found, table = Counter[tuple[int, int]](), inputs.histograms.tolist()
    for move in inputs.moves:
        for before, after in zip(move.before.tolist(), move.after.tolist(), strict=True):
            found[before, after] += 1
            moved = table[before].copy()
            moved[move.giver] -= 1
            moved[move.taker] += 1
            assert moved == table[after]
    assert found == Counter(one_moved(table))


def test_directed_edges_sum_over_their_outputs() -> None:
    for name in CASES:
        edges = CASES[name].edges
        first, second, sums = edges.directed()
        listed = edges.listed()
        each = [side for one, other, _ in listed for side in [list(zip(one, other, strict=True))]]
        each += [[(w, v) for v, w in pairs] for pairs in each]
        assert sums.shape == (len(each), first.size)
        for row, pairs in zip(sums.toarray(), each, strict=True):
            at = np.flatnonzero(row)
            assert row[at].tolist() == [1.0] * len(pairs)
            assert list(zip(first[at].tolist(), second[at].tolist(), strict=True)) == pairs


@pytest.mark.parametrize("data", [[0.0], [-1], [5], ["0"], [True], [-1, 5], [[0]]], ids=str)
def test_what_is_no_number_of_an_input(data: object) -> None:
    with pytest.raises(ParameterError, match="inputs must"):
        Graph(5, 2).located(data)


@pytest.mark.parametrize(
    "data",
    [[1, 2], [1, 1, 1, 0], [[[1, 1, 1]]], 3, [1.0, 1.0, 1.0], [3, 1, -1], [1, 1, 2]],
    ids=str,
)
def test_what_is_no_histogram(data: object) -> None:
    inputs = SortedHistograms(3, 3)
    assert inputs.located([1, 1, 1])[0].tolist() == [[1, 1, 1]]
    with pytest.raises(ParameterError, match="^counts"):
        inputs.located(data)


def test_counts_that_only_64_bits_add_up() -> None:
    with pytest.raises(ParameterError, match="must add up to 3 records"):
        SortedHistograms(3, 4).located([(1 << 63) - 1, (1 << 63) - 1, 5, 0])

"""Forged files that once were taken for what they are not, or to which no answer came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

import dpopt
from dpopt import Kernel, ParameterError, verify
from dpopt.proofs.saved import seal
from tests.proofs.judging import answer, saved

Record = dict[str, Any]
PATH = Kernel("absolute", 5.0, graph="path", inputs=4)


def record_of(setting: Any, folder: Path) -> Record:
    return json.loads(saved(setting, folder)[0].read_text())


def answered(record: Record, folder: Path, *beside: Record) -> int:
    return answer(folder, record, *beside)[0]


def finding(formulas: list[str], claim: str) -> Record:
    words = {"finding": "x", "source": "s", "statement": "st"}
    told = {"formulas": formulas, "given": [], "claim": claim, "design": None}
    return {"format": "dpopt finding", "schema": 1, **words, **told}


INPUTS = {"sizes": [4] * 4, "counts": [1] * 16}
LOSSES = {"costs": [0.0] * 16, "weights": None}
LESS = {"epsilon": 0.01, "delta": 0.0}
# The body tells the judge of a table without neighbours at a smaller epsilon.
AS_A_TABLE = {
    "kind": "counts",
    "displayed": {**LESS, "inputs": {**INPUTS, "neighbours": []}, "losses": LOSSES},
    "guarantee": LESS,
}


# A guarantee that is larger than the setting's is true; another kind is none of its own.
@pytest.mark.parametrize(
    ("forged", "code"), [(AS_A_TABLE, 2), ({"guarantee": {"epsilon": 6.0, "delta": 0.0}}, 0)]
)
def test_what_the_judge_reads_is_what_is_loaded(forged: Record, code: int, tmp_path: Path) -> None:
    record = record_of(PATH, tmp_path)
    record["body"] |= forged
    # A file whose hash is right: anybody can compute it.
    seal(record["kind"], record["body"], tmp_path / "sealed.json")
    with pytest.raises(ParameterError, match="is not that of its setting"):
        dpopt.load(tmp_path / "sealed.json")
    assert answered(record, tmp_path) == code


@pytest.mark.parametrize("stated", ["nonsense", "dpopt proof", 7, None])
def test_a_file_of_another_format_is_no_design(stated: object, tmp_path: Path) -> None:
    record = record_of(PATH, tmp_path)
    assert answered(record, tmp_path) == 0
    assert answered(record | {"format": stated}, tmp_path) == 2


def test_nothing_stands_beside_a_finding_or_an_exact_optimum(tmp_path: Path) -> None:
    beside = {"format": "dpopt proof", "bound": "none"}
    optimum = dpopt.exact_optimum(PATH, 2).to_dict()
    for each in (finding([], "2 < 1"), optimum):
        assert answered(each, tmp_path) == 0
        assert answered(each, tmp_path, beside) == 2
    # A point names each variable once.
    first = optimum["point"][0]
    assert answered({**optimum, "point": [[*first[:-1], "999"], *optimum["point"]]}, tmp_path) == 2


@pytest.mark.parametrize(
    ("formulas", "claim"),
    [
        (["a0 = [1, 2]", *(f"a{i + 1} = [a{i}, a{i}]" for i in range(40))], "a40 == 1"),
        (["f(n) = [0] if n == 0 else [f(n - 1), f(n - 1)]"], "sum(f(30)) < 0"),
        ([], "sum(comb(5000, 2500 + i % 2) for i in range(10**6)) < 0"),
        (["f(x, i) = i", "x = range(10**6)"], "sum(f(x, i) for i in range(10**6)) < 0"),
    ],
)
def test_a_formula_that_never_ends_is_refused(
    formulas: list[str], claim: str, tmp_path: Path
) -> None:
    assert answered(finding(formulas, claim), tmp_path) == 2


def test_a_false_claim_about_large_numbers_is_shown(tmp_path: Path) -> None:
    for power, digits in ((400, 401), (6000, 6001)):
        code, lines, _ = answer(tmp_path, finding([], f"10**{power} <= 1"))
        assert (code, f"a number of about {digits} digits" in "".join(lines)) == (0, True)


def test_pairs_of_a_complete_graph_are_counted(tmp_path: Path) -> None:
    n = 2001
    record = record_of(Kernel([[0.0, 1.0], [1.0, 0.0]], 1.0, delta=0.1), tmp_path)
    record["body"]["setting"] |= {"loss": [[0.0, 1.0]] * n, "inputs": n}
    record["body"]["table"] = {"total": "2", "weights": [["1", "1"]] * n}
    assert answered(record, tmp_path) == 2


def listed(epsilon: float, weights: list[list[int]], total: int, inputs: Record) -> Record:
    """The file of a kind that the verifier does not know, with one loss for all."""
    size = sum(map(len, weights))
    losses = {"costs": [0] * size, "weights": None}
    displayed = {"epsilon": epsilon, "delta": 0, "inputs": inputs, "losses": losses}
    table = {"total": total, "weights": weights}
    stated = {"guarantee": {"epsilon": epsilon, "delta": 0}, "value": 0, "bound": None}
    body = {"kind": "zzz", "setting": {}, "displayed": displayed, "table": table, **stated}
    return {"format": "dpopt mechanism", "kind": "zzz", "body": body}


def test_outputs_of_neighbours_must_correspond(tmp_path: Path) -> None:
    """With the best bijection these tables need e^epsilon = 2 and 7/6; listed pairs need less."""
    inputs = {"sizes": [2, 2], "counts": [2, 1, 1, 2], "neighbours": [[0, 2], [1, 3]]}
    assert answered(listed(0.41, [[4, 2], [6, 2]], 10, inputs), tmp_path) == 2
    inputs = {"sizes": [3, 3], "counts": [1] * 6, "neighbours": [[0, 3], [0, 4], [1, 5], [2, 5]]}
    weights = [[40, 30, 30], [35, 35, 30]]
    assert answered(listed(0.15, weights, 100, inputs), tmp_path) == 2
    # Paired twice, but with a bijection among the pairs.
    inputs["neighbours"] = [[0, 3], [0, 4], [1, 4], [1, 5], [2, 5]]
    assert answered(listed(0.16, weights, 100, inputs), tmp_path) == 0
    inputs = {"sizes": [2, 2], "counts": [1, 2, 2, 1], "neighbours": [[0, 2], [1, 2], [1, 3]]}
    assert answered(listed(0.7, [[4, 3], [3, 4]], 10, inputs), tmp_path) == 0


def test_a_correspondence_is_found_where_there_is_one() -> None:
    """Against a maximal matching of single outputs, by scipy."""
    rng, answers = np.random.default_rng(3), set[bool]()
    for _ in range(600):
        m, k = rng.integers(1, 5, size=2)
        total = int(rng.integers(max(m, k), 9))
        cuts = [np.sort(rng.permutation(total - 1)[: n - 1]) + 1 for n in (m, k)]
        counts = [np.diff([0, *cut, total]).tolist() for cut in cuts]
        links = rng.random((m, k)) < rng.choice([0.4, 0.7])
        linked = {(int(v), int(m + u)) for v, u in np.argwhere(links)}
        single = np.repeat(np.repeat(links, counts[0], axis=0), counts[1], axis=1)
        matching = maximum_bipartite_matching(csr_array(single), perm_type="column")
        found = True
        try:
            verify.require_correspondence(
                linked, [*counts[0], *counts[1]], range(m), range(m, m + k)
            )
        except verify.Malformed:
            found = False
        assert found == (min(matching) >= 0)
        answers.add(found)
    assert answers == {True, False}


def test_the_same_outputs_of_an_input_make_no_neighbour(tmp_path: Path) -> None:
    inputs = {"sizes": [2, 2], "counts": [1] * 4, "neighbours": [[0, 0], [2, 2]]}
    code, lines, _ = answer(tmp_path, listed(0.0, [[1, 0], [0, 1]], 1, inputs))
    assert (code, "2 inputs have no neighbour" in lines[0]) == (0, True)


def test_a_bound_of_one_release_is_none_of_several(tmp_path: Path) -> None:
    setting = Kernel("absolute", 1.0, graph="path", inputs=4, objective="worst-case")
    record, proof = (json.loads(path.read_text()) for path in saved(setting, tmp_path))
    several = {"epsilon": None, "releases": 2, "total_epsilon": 4.0, "total_delta": 1e-12}
    for each in (record["body"]["setting"], proof["setting"]):
        each |= several
    record["body"]["guarantee"] = {"epsilon": 4.0, "delta": 1e-12}
    assert answered(record, tmp_path) == 0
    assert answered(record, tmp_path, proof) == 4


def test_a_known_kind_is_decided_as_itself_whatever_else_is_displayed(tmp_path: Path) -> None:
    record = record_of(PATH, tmp_path)
    inputs = {**INPUTS, "neighbours": [[v, v] for v in range(16)]}
    stated = {"guarantee": LESS, "value": 0, "bound": None}
    record["body"] |= {"displayed": {**LESS, "inputs": inputs, "losses": LOSSES}, **stated}
    assert answered(record, tmp_path) == 4
    record["body"]["kind"] = record["kind"] = "counts"
    assert answered(record, tmp_path) == 0


def test_bounds_and_guarantees_better_than_what_is_shown_are_refused(tmp_path: Path) -> None:
    record, proof = (json.loads(path.read_text()) for path in saved(PATH, tmp_path))
    assert answered(record, tmp_path, proof) == 0
    # No digit smaller than that of the setting.
    for forged in (
        {"bound": record["body"]["bound"] + 1e-3},
        {"bound": None},
        {"guarantee": {"epsilon": 5.0 * (1 - 2.0**-50), "delta": 0.0}},
    ):
        assert answered(record | {"body": record["body"] | forged}, tmp_path, proof) == 4


def test_rows_that_were_asked_for_may_be_missed_by_what_is_stated(tmp_path: Path) -> None:
    setting = Kernel("absolute", 1.0, graph="path", inputs=3, invariant=[0.2, 0.3, 0.5])
    code, lines, _ = answer(tmp_path, record_of(setting, tmp_path))
    assert (code, "rows that were asked for are missed by at most" in "\n".join(lines)) == (0, True)

"""Every command of ``dpopt`` with wrong, missing, extreme and hostile arguments."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpopt.cli import cli
from tests.majority.brute import worst_excess
from tests.robustness.commands import WORDS, baselines, complaint, files, options, run
from tests.roo.brute import histograms, neighbours

# Answers that do not end by themselves, or take seconds; their arguments are fuzzed by hand below.
SLOW = {"doctor"}
COMMANDS = sorted(set(cli.commands) - SLOW)
VALUES, MIXES = 240, 50

each_command = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.mark.slow_after(4)
@each_command
def test_good_arguments_answer(name: str, folder: Path) -> None:
    if name in {"mode", "sample"}:
        pytest.importorskip("polars")
    ended = run(name, *baselines(folder)[name])
    assert ended.code == 0
    assert ended.err == "" or ended.err.count("\n") == 1
    assert ended.out


@pytest.mark.slow
@each_command
def test_each_option_with_each_hostile_value(name: str, folder: Path) -> None:
    rng = random.Random(name)
    good = baselines(folder)[name]
    hostile = (*WORDS, *files(folder).values())
    tried = [[name], [name, *good, "--no-such-option"]]
    for option in options(name):
        written = option.opts[0]
        if option.is_flag:
            tried.append([name, *good, written, written])
            continue
        for value in rng.sample(hostile, min(len(hostile), VALUES // len(options(name)))):
            place = good.index(written) + 1 if written in good else None
            spoiled = [*good, written, value] if place is None else list(good)
            if place is not None:
                spoiled[place] = value
            tried.append([name, *spoiled])
        tried.append([name, *good, written])
        if written in good:
            place = good.index(written)
            tried.append([name, *good[:place], *good[place + 2 :]])
    if good and not good[0].startswith("-"):
        tried += [[name, value, *good[1:]] for value in hostile]
    assert_sentences(tried)


@pytest.mark.slow_after(1)
@each_command
def test_mixtures_of_arguments(name: str, folder: Path) -> None:
    rng = random.Random(name)
    hostile, good = (*WORDS, *files(folder).values()), baselines(folder)[name]
    written = [option.opts[0] for option in options(name)] or ["--x"]
    tried = []
    for _ in range(MIXES):
        mixed = list(good)
        for _ in range(rng.randint(1, 4)):
            change = rng.random()
            if change < 0.2 and mixed:
                mixed.pop(rng.randrange(len(mixed)))
            elif change < 0.6 and mixed:
                mixed[rng.randrange(len(mixed))] = rng.choice(hostile)
            else:
                mixed += [rng.choice(written), rng.choice(hostile)]
        tried.append([name, *mixed])
    assert_sentences(tried)


def assert_sentences(tried: list[list[str]]) -> None:
    wrong = []
    for arguments in tried:
        try:
            found = complaint(run(*arguments))
        except Exception as error:  # noqa: BLE001
            found = f"{type(error).__name__}: {error}"
        if found is not None:
            wrong.append(f"{[argument[:60] for argument in arguments]}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("arguments", [["--no-such"], ["x"], ["--json", "x"]])
def test_doctor_takes_no_arguments(arguments: list[str]) -> None:
    ended = run("doctor", *arguments)
    assert ended.code == 2
    assert complaint(ended) is None


CONTRADICTIONS = [
    "majority --mechanisms 3 --epsilon 0.1 --allowance 1 --mechanism-delta 0.1",
    "smoothed --records 6 --drawn 3 --lost-rate 0.5 --epsilon 1 --distributions 0.5",
    "profile --counts 4,3 --epsilon 1",
    "profile --counts 4,3 --drawn 3 --lost-rate 0.5 --epsilon 1",
    "population --prior 0.5,0.5 --epsilon 1",
    "kernel --loss 0:1,1:0 --epsilon 1 --prior 0.5,0.5 --objective minimax",
]


@pytest.mark.parametrize("line", CONTRADICTIONS)
def test_contradictions_are_refused(line: str) -> None:
    ended = run(*line.split())
    assert ended.code == 2
    assert complaint(ended) is None


EXTREMES = [
    "majority --mechanisms 99999 --epsilon 0.1 --allowance 1",
    "majority --mechanisms 99999999999 --epsilon 0.1 --allowance 1",
    "majority --mechanisms 3 --epsilon 5e-324 --allowance 5e-324",
    "majority --mechanisms 3 --epsilon 200 --allowance 3",
    "majority --mechanisms 1 --epsilon 1e-6 --allowance 1",
    "roo --records 1000000000000000 --letters 1000000000000000 --epsilon 1",
    "roo --records 1000000000 --letters 2 --epsilon 600",
    "roo --records 1 --letters 2 --epsilon 5e-324",
    "smoothed --records 1000000000 --drawn 1 --epsilon 1 --distributions 0,1",
    "smoothed --records 50 --drawn 50 --epsilon 700 --distributions 0,1",
    "profile --counts 1000000000000,1 --drawn 1 --epsilon 0",
    "profile --counts 1,0 --drawn 1 --epsilon 0",
    "prior --prior 1e-300,1 --epsilon 600",
    "prior --prior 1 --epsilon 1",
]


@pytest.mark.parametrize("line", EXTREMES)
def test_extreme_but_legal(line: str) -> None:
    assert complaint(run(*line.split(), "--json")) is None


def answer(*arguments: object) -> dict[str, Any]:
    ended = run(*map(str, arguments), "--json")
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def exponential(epsilon: float | Fraction) -> Fraction:
    """Return e^epsilon to 40 digits, by its series at epsilon / 2^64."""
    halvings, x = 64, Fraction(epsilon) / 2**64
    value = sum((x**n / math.factorial(n) for n in range(6)), Fraction(0))
    for _ in range(halvings):
        value = Fraction(round(value * value * 10**60), 10**60)
    return value


@pytest.mark.slow
@settings(max_examples=25)
@given(
    voters=st.sampled_from([1, 3, 5]),
    epsilon=st.floats(0.01, 2.0),
    share=st.floats(0.05, 1.0),
    shift=st.sampled_from([0.0, 1e-5, 0.05]),
)
def test_majority_against_every_corner(
    voters: int, epsilon: float, share: float, shift: float
) -> None:
    """Definition 2.1 in fractions, over every multiset of corners: private, and at its limit."""
    if voters == 5 and shift:
        voters = 3
    m = max(0.05, share * voters)
    found = answer(
        *("majority", "--mechanisms", voters, "--epsilon", epsilon, "--allowance", m),
        *("--mechanism-delta", shift, "--delta", 2 * shift),
    )
    assert found["private"]
    rows, total = found["units"]["weights"], int(found["units"]["total"])
    half = [Fraction(int(one) - int(other), total) for one, other in rows]
    gamma = [*half[::-1], *half]
    r, target = exponential(epsilon), exponential(Fraction(m) * Fraction(epsilon))
    exact = (r, Fraction(shift), target, Fraction(2 * shift))
    assert worst_excess(gamma, *exact) <= Fraction(1, 10**35)
    if min(half) < 1:
        raised = [min(Fraction(1), value + Fraction(1, 10**6)) for value in gamma]
        assert worst_excess(raised, *exact) > 0


@pytest.mark.slow
@settings(max_examples=40)
@given(
    records=st.integers(1, 9),
    letters=st.integers(2, 4),
    epsilon=st.floats(0.01, 4.0),
)
def test_roo_against_every_histogram(records: int, letters: int, epsilon: float) -> None:
    """Private for all neighbours in fractions, and with no smaller q_m."""
    found = answer("roo", "--records", records, "--letters", letters, "--epsilon", epsilon)
    assert found["private"]
    weights = [Fraction(int(weight), 2**62) for weight in found["units"]]
    r = exponential(epsilon)
    assert largest_ratio(records, letters, weights) <= r * (1 + Fraction(1, 10**30))
    for place, q in enumerate(weights):
        if q > Fraction(1, 10**6):
            lower = [*weights[:place], q - Fraction(1, 10**7), *weights[place + 1 :]]
            assert largest_ratio(records, letters, lower) > r


def largest_ratio(records: int, letters: int, q: list[Fraction]) -> Fraction:
    """Largest ratio of a letter's probability between neighbours, from algorithm 2."""

    def chance(counts: tuple[int, ...], letter: int) -> Fraction:
        least = min(counts)
        obscured = q[least] if least < len(q) else Fraction(0)
        return obscured / letters + (1 - obscured) * Fraction(counts[letter], records)

    worst = Fraction(1)
    for counts in histograms(records, letters):
        for other in neighbours(counts):
            for letter in range(letters):
                below = chance(other, letter)
                above = chance(counts, letter)
                if above > 0 and below == 0:
                    return Fraction(10**100)
                if below:
                    worst = max(worst, above / below)
    return worst


def hockey_sticks(counts: tuple[int, ...], drawn: int, r: Fraction) -> Fraction:
    """Largest divergence between a database and a neighbour, both ways, by hypergeometric laws."""

    def law(database: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
        found: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for count in database:
            found = {
                (*key, taken): chance * math.comb(count, taken)
                for key, chance in found.items()
                for taken in range(min(count, drawn - sum(key)) + 1)
            }
        total = math.comb(sum(database), drawn)
        return {key: value / total for key, value in found.items() if sum(key) == drawn}

    worst, own = Fraction(0), law(counts)
    for a in range(len(counts)):
        for b in range(len(counts)):
            if a == b or counts[a] == 0:
                continue
            moved = list(counts)
            moved[a], moved[b] = moved[a] - 1, moved[b] + 1
            other = law(tuple(moved))
            for p, q in ((own, other), (other, own)):
                excess = sum((max(Fraction(0), p[o] - r * q.get(o, 0)) for o in p), Fraction(0))
                worst = max(worst, excess)
    return worst


@pytest.mark.slow
@settings(max_examples=40)
@given(
    counts=st.lists(st.integers(0, 12), min_size=2, max_size=3).filter(any),
    share=st.floats(0.0, 1.0),
    epsilon=st.sampled_from([0.0, 0.1, 0.5, 2.0, 30.0]),
)
def test_profile_against_fractions(counts: list[int], share: float, epsilon: float) -> None:
    drawn = max(1, round(share * sum(counts)))
    words = ",".join(map(str, counts))
    found = answer("profile", "--counts", words, "--drawn", drawn, "--epsilon", epsilon)
    exact = hockey_sticks(tuple(counts), drawn, exponential(epsilon))
    assert found["delta"] == [pytest.approx(float(exact), rel=1e-10, abs=1e-300)]
    assert found["mechanism"]["records"] == sum(counts)


@settings(max_examples=20)
@given(
    records=st.integers(1, 8),
    share=st.floats(0.0, 1.0),
    epsilon=st.sampled_from([0.0, 0.3, 1.0]),
    shares=st.lists(st.floats(0.001, 1.0) | st.just(0.0), min_size=1, max_size=3),
)
def test_smoothed_against_brute_force(
    records: int, share: float, epsilon: float, shares: list[float]
) -> None:
    """Every assignment of distributions to records, every database, in fractions."""
    drawn = max(1, round(share * records))
    found = answer(
        *("smoothed", "--records", records, "--drawn", drawn, "--epsilon", epsilon),
        *("--distributions", ",".join(map(repr, shares))),
    )
    r = exponential(epsilon)
    table = [hockey_sticks((n, records - n), drawn, r) for n in range(records + 1)]
    worst = Fraction(0)
    for split in multisets(len(shares), records):
        ones = [Fraction(1)]
        for law in split:
            p = Fraction(shares[law])
            ones = [
                (ones[i - 1] * p if i else 0) + (ones[i] * (1 - p) if i < len(ones) else 0)
                for i in range(len(ones) + 1)
            ]
        worst = max(worst, sum((c * d for c, d in zip(ones, table, strict=True)), Fraction(0)))
    assert found["certified"]
    assert found["delta"] == pytest.approx(float(worst), rel=1e-9, abs=1e-300)
    assert found["dp_delta"] == pytest.approx(float(max(table)), rel=1e-10, abs=1e-300)


def multisets(kinds: int, size: int) -> list[list[int]]:
    bars = combinations(range(size + kinds - 1), kinds - 1)
    found = []
    for places in bars:
        edges = (-1, *places, size + kinds - 1)
        counts = [edges[i + 1] - edges[i] - 1 for i in range(kinds)]
        found.append([law for law, count in enumerate(counts) for _ in range(count)])
    return found


@settings(max_examples=30)
@given(
    masses=st.lists(st.integers(1, 1000), min_size=2, max_size=6),
    epsilon=st.floats(0.05, 5.0),
    objective=st.sampled_from(["minimax", "leximin"]),
)
def test_kernel_against_its_definition(masses: list[int], epsilon: float, objective: str) -> None:
    """Rows sum to 1, ratios within e^epsilon, qK = q; the worst row as good as theorem 1 says."""
    q = [mass / sum(masses) for mass in masses]
    words = ["prior", "--prior", ",".join(map(repr, q)), "--epsilon", repr(epsilon)]
    found = answer(*words, "--objective", objective)
    r, size = math.exp(epsilon), len(q)
    # The table is the last of what is printed: input, output, probability to 12 digits.
    table = run(*words, "--objective", objective).out.splitlines()[-size * size :]
    flat = [float(line.split()[2]) for line in table]
    kernel = [flat[i * size : (i + 1) * size] for i in range(size)]
    assert found["private"]
    assert all(abs(sum(row) - 1.0) < 1e-10 for row in kernel)
    for j in range(size):
        column = [row[j] for row in kernel]
        assert max(column) <= r * min(column) * (1 + 1e-9)
        assert sum(q[i] * column[i] for i in range(size)) == pytest.approx(q[j], abs=1e-10)
    worst = 1.0 - min(kernel[i][i] for i in range(size))
    assert found["value"] == pytest.approx(worst, abs=1e-11)
    # K_ii + (1 - q_i) K_ii / r <= 1 and K_ii <= r q_i-average: no kernel keeps its rarest letter
    # with more than r / (r + 1 / q_min - 1).
    rarest = min(q)
    assert 1.0 - worst <= r / (r + 1.0 / rarest - 1.0) + 1e-11

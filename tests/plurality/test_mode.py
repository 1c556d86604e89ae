"""The mode of a column: exact coins, frequencies of the draws, the command, bad data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import dpopt
from dpopt import Guarantee, Ledger, ParameterError, plurality
from dpopt.plurality.setting import Coins, power_bounds
from dpopt.privacy.release import Source
from tests.ballots.pmfs import permute_and_flip
from tests.cli.running import Capture, run
from tests.kernel.brute import sure

COMMAND = ["--column", "city", "--labels", "Basel,Bern,Chur", "--epsilon", "1"]


def draws_of(*words: int) -> Source:
    """Random bytes that a test chose, in order."""
    return BytesIO(np.array(words, dtype="<u8").tobytes()).read


@pytest.mark.parametrize("step", [Fraction(7, 5), 1 + Fraction(1, 10**9)])
def test_a_coin_is_a_uniform_number_below_the_exact_chance(step: Fraction) -> None:
    for gap in (1, 2, 7, 100):
        threshold = math.floor(2**192 / step**gap)
        for u, up in ((threshold - 1, True), (threshold + 1, False)):
            words = [u >> 128, u >> 64 & (1 << 64) - 1, u & (1 << 64) - 1]
            assert Coins(step, draws_of(*words)).toss(np.array([gap]))[0] == up


@pytest.mark.parametrize("gap", [1, 3, 10**6, 10**15])
def test_powers_are_enclosed_closely(gap: int) -> None:
    step = 1 + Fraction(1, 10 ** len(str(gap)))
    for bits in (64, 320):
        low, high = power_bounds(step, gap, bits)
        assert 0 <= low <= high <= low + 2
        power = math.exp(-gap * math.log1p(float(step - 1)))
        assert low / 2**bits == pytest.approx(power, rel=1e-6)
        if gap < 10:
            assert low <= 2**bits / step**gap <= high


def test_the_largest_and_the_smallest_words() -> None:
    last = (1 << 64) - 1
    tiny = 1 + Fraction(1, 10**40)
    # Its chance is above 1 - 2^-128, but not above every number of 192 bits.
    assert Coins(tiny, draws_of(last, 0)).toss(np.array([1]))[0]
    assert not Coins(tiny, draws_of(last, last, last)).toss(np.array([1]))[0]
    # U below 2^-64 still does not pass for a chance below 2^-10^14.
    assert not Coins(Fraction(2), draws_of(0, 0, 1)).toss(np.array([10**15]))[0]
    assert Coins(Fraction(2), draws_of(last)).toss(np.array([0]))[0]


def near(observed: np.ndarray, pmf: Sequence[float]) -> bool:
    """Pearson's chi-square, passed by all but one draw in a million where the pmf holds."""
    expected = np.array(pmf) * observed.sum()
    kept = expected > 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return bool(statistic < chi2.isf(1e-6, kept.sum() - 1))


def test_independent_coins_are_permute_and_flip() -> None:
    counts, step = (4, 2, 2, 1, 0), Fraction(3, 2)
    chances = [1 / step ** (max(counts) - count) for count in counts]
    found = [Fraction(0)] * len(counts)
    for up in product((False, True), repeat=len(counts)):
        chance = math.prod(
            (p if one else 1 - p for p, one in zip(chances, up, strict=True)), start=Fraction(1)
        )
        for place in np.flatnonzero(up) if chance else ():
            found[place] += chance / sum(up)
    assert tuple(found) == permute_and_flip(counts, step)


def floats_of(rule: str, counts: Sequence[int], epsilon: float) -> list[float]:
    """The distribution at s = e^(epsilon / 2): of permute-and-flip an integral over its order."""
    keep = np.exp(epsilon / 2 * (np.array(counts) - max(counts)))
    if rule == "exponential":
        return (keep / keep.sum()).tolist()
    nodes, weights = np.polynomial.legendre.leggauss(len(counts))
    t = (nodes + 1) / 2
    others = [np.prod([1 - t * q for q in np.delete(keep, y)], axis=0) for y in range(len(keep))]
    return [float(p * (weights @ rest)) / 2 for p, rest in zip(keep, others, strict=True)]


@pytest.mark.parametrize("rule", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("counts", [(40, 40, 40, 41, 0, 7), (10**9, 10**9 - 1, 10**9 - 4, 3)])
def test_frequencies_are_those_of_the_exact_distribution(
    rule: Any, counts: tuple[int, ...]
) -> None:
    many = (*counts, *[0] * 40)
    made = dpopt.design(dpopt.Plurality(sum(many), len(many), 0.7, rule=rule))
    assert made.setting.by_theorem
    counts_of_queries = plurality.Counts(np.tile(many, (6_000, 1)))
    drawn = made.simulate(counts_of_queries, np.random.default_rng(7))
    observed = np.bincount(np.asarray(drawn), minlength=len(many))
    assert near(observed, floats_of(rule, many, 0.7))
    # The test has power: the distribution at half of epsilon is another one.
    assert not near(observed, floats_of(rule, many, 0.35))


def test_best_is_the_least_mean_regret_where_tables_are_small() -> None:
    for sizes in ((20, 3, 0.5), (9, 10, 0.1), (30, 2, 0.01)):
        rivals = {
            name: dpopt.design(dpopt.Plurality(*sizes, rule=name)).mean_regret
            for name in ("ladder", "permute-and-flip", "exponential")
        }
        best = plurality.mode_design(*sizes)
        assert best.private
        assert best.setting.rule == min(rivals, key=rivals.__getitem__)


def test_large_counts_and_many_categories() -> None:
    counts = np.zeros(100_000, dtype=np.int64)
    counts[70_000] = 10**9
    for rule in ("best", "exponential"):
        found = plurality.mode_design(10**9, 100_000, 1.0, rule=rule)  # pyright: ignore[reportArgumentType]
        assert found.release(plurality.Counts(counts)) == 70_000
        assert "theorem" in sure(found.certificate).claim


def test_the_ladder_of_a_large_column_is_refused() -> None:
    for records in (9_000, 10**12):
        with pytest.raises(ParameterError, match="permute-and-flip") as caught:
            plurality.mode_design(records, 10, 1.0, rule="ladder")
        assert str(records) in str(caught.value)
        assert plurality.mode_design(records, 10, 1.0).setting.rule == "permute-and-flip"


def column(path: Path, values: Sequence[str]) -> Path:
    """Write a column of cities, as CSV or Parquet."""
    if path.suffix == ".csv":
        path.write_text("\n".join(["city,other", *(f"{value},1" for value in values)]) + "\n")
    else:
        pl = pytest.importorskip("polars")
        pl.DataFrame({"city": list(values)}, schema={"city": pl.String}).write_parquet(path)
    return path


@pytest.mark.parametrize("name", ["visits.csv", "visits.parquet"])
@pytest.mark.parametrize("many", [7, 700])
def test_the_command_releases_the_mode(
    name: str, many: int, tmp_path: Path, capfd: Capture
) -> None:
    pytest.importorskip("polars")
    file = column(tmp_path / name, ["Bern"] * many)
    code, out, _ = run(["mode", str(file), *COMMAND[:-1], "20", "--json"], capfd)
    told = json.loads(out)
    assert code == 0
    assert told["released"] == ["Bern"]
    assert told["guarantee_of_each"] == {"epsilon": 20.0, "delta": 0.0}
    assert told["records"] == many
    assert ("theorem" in told["proof"]) == (many == 700)
    assert (told["rule"] == "permute-and-flip") == (many == 700)
    assert "private" in told["proof"]
    code, out, _ = run(["mode", str(file), *COMMAND[:-1], "20"], capfd)
    assert (code, out.splitlines()[0]) == (0, "Bern")


@pytest.mark.parametrize("name", ["visits.csv", "visits.parquet"])
@pytest.mark.parametrize(
    ("values", "words"), [(["Bern", "Genf"], "none of the labels"), ([], "no records")]
)
def test_bad_columns_exit_2_and_are_not_shown(
    name: str, values: list[str], words: str, tmp_path: Path, capfd: Capture
) -> None:
    pytest.importorskip("polars")
    file = column(tmp_path / name, values)
    code, out, err = run(["mode", str(file), *COMMAND], capfd)
    assert (code, out) == (2, "")
    assert words in err
    assert "Genf" not in err


@pytest.mark.parametrize("many", [7, 700])
def test_a_release_is_written_down_before_it_is_drawn(
    many: int, tmp_path: Path, capfd: Capture
) -> None:
    pytest.importorskip("polars")
    file, path = column(tmp_path / "visits.csv", ["Bern"] * many), tmp_path / "city.ledger"
    words = ["mode", str(file), *COMMAND, "--ledger", str(path), "--dataset", "visits"]
    ledger = Ledger(path, Guarantee(1.5))
    code, _, err = run(words, capfd)
    assert code == 0
    assert "an epsilon of 0.5 is left" in err
    entries = ledger.entries()
    assert [(entry.dataset, entry.guarantee.epsilon) for entry in entries] == [("visits", 1.0)]
    code, out, err = run(words, capfd)
    assert (code, out) == (2, "")
    assert "budget" in err

"""The mode of a column: exact coins, frequencies of the draws, the command, bad data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from dpopt import Guarantee, Ledger, ParameterError, plurality
from dpopt.ballots import Coins, Ladder, exponential, ladder, permute_and_flip
from dpopt.cli import main
from dpopt.privacy import exp_lower, exp_upper

Capture = pytest.CaptureFixture[str]
CITIES = ["Basel", "Bern", "Chur"]
COMMAND = ["--column", "city", "--alphabet", "Basel,Bern,Chur", "--epsilon", "1"]


class Scripted:
    """Words that a test chose, in order."""

    def __init__(self, words: Sequence[int]) -> None:
        self.words = list(words)

    def __call__(self, count: int) -> np.ndarray:
        found, self.words = self.words[:count], self.words[count:]
        return np.array(found, dtype=np.uint64)


def test_a_coin_is_a_uniform_number_below_the_exact_chance() -> None:
    rate = Fraction(1, 3)
    for gap in (1, 2, 7, 100):
        # floor(2^192 e^-x), between bounds of 400 bits: U below it comes up, U above it does not.
        low = exp_lower(-gap * rate, 400)
        high = exp_upper(-gap * rate, 400)
        threshold = math.floor(low * 2**192)
        assert threshold == math.floor(high * 2**192)
        for u, up in ((threshold - 1, True), (threshold + 1, False)):
            words = [u >> 128, u >> 64 & (1 << 64) - 1, u & (1 << 64) - 1]
            assert Coins(rate, Scripted(words)).toss(np.array([gap]))[0] == up


@pytest.mark.parametrize("gap", [1, 10**15])
def test_the_largest_and_the_smallest_words(gap: int) -> None:
    last = (1 << 64) - 1
    tiny = Fraction(1, 10**40)
    # e^-10^-40 is above 1 - 2^-128, but not above every number of 192 bits.
    assert Coins(tiny, Scripted([last, 0])).toss(np.array([1]))[0]
    assert not Coins(tiny, Scripted([last, last, last])).toss(np.array([1]))[0]
    # U below 2^-64 still does not pass for a chance below 2^-10^14.
    assert not Coins(Fraction(10**3), Scripted([0, 0, 1])).toss(np.array([gap]))[0]
    assert Coins(Fraction(1), Scripted([last])).toss(np.array([0]))[0]


def test_uniform_places_reject_the_incomplete_run() -> None:
    last = (1 << 64) - 1
    # 2^64 = 1 modulo 3: the last word is drawn again.
    assert Coins(Fraction(1), Scripted([last, 5])).below(3, 1)[0] == 2
    assert Coins(Fraction(1), Scripted([last])).below(4, 1)[0] == 3


def near(observed: np.ndarray, law: Sequence[float]) -> bool:
    """Pearson's chi-square, passed by all but one draw in a million where the law holds."""
    expected = np.array(law) * observed.sum()
    kept = expected > 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return bool(statistic < chi2.isf(1e-6, kept.sum() - 1))


@pytest.mark.parametrize("rule", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("counts", [(3, 1), (5, 3, 3, 0), (40, 40, 40, 41, 0), (2, 2, 2)])
def test_frequencies_are_those_of_the_exact_law(rule: str, counts: tuple[int, ...]) -> None:
    epsilon = 0.7
    exact = permute_and_flip if rule == "permute-and-flip" else exponential
    law = [float(share) for share in exact(counts, exp_lower(epsilon / 2))]
    made = plurality.mode_rule(sum(counts), len(counts), epsilon, rule=rule)  # pyright: ignore[reportArgumentType]
    drawn = made.simulate(counts, np.random.default_rng(7), 6_000)
    observed = np.bincount(drawn, minlength=len(counts))
    assert near(observed, law)
    # The test has power: the law at half of epsilon is another one.
    other = [float(share) for share in exact(counts, exp_lower(0.25 * epsilon))]
    assert max(counts) - sorted(counts)[-2] < 2 or not near(observed, other)


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


def test_best_is_a_proved_table_where_it_is_small() -> None:
    made = plurality.mode_rule(20, 3, 0.5)
    assert made.rule == "ladder"
    assert made.design is not None
    assert made.design.private
    # Where the ladder fails and is lowered, the best of the three is taken by its mean regret.
    for sizes in ((9, 10, 0.1), (30, 2, 0.01)):
        rivals = {
            name: plurality.design(*sizes, rule=name).mean_regret
            for name in ("ladder", "permute-and-flip", "exponential")
        }
        assert plurality.mode_rule(*sizes).rule == min(rivals, key=rivals.__getitem__)
    law = np.array(made.design.setting.law(made.design.units, counts=[9, 8, 3]), dtype=float)
    drawn = made.simulate([9, 8, 3], np.random.default_rng(1), 5_000)
    assert near(np.bincount(drawn, minlength=3), law / law.sum())


def test_large_counts_and_many_letters() -> None:
    counts = np.zeros(100_000, dtype=np.int64)
    counts[70_000] = 10**9
    for rule in ("best", "exponential"):
        found = plurality.mode(counts, 1.0, rule=rule)  # pyright: ignore[reportArgumentType]
        assert (found.letter, found.records) == (70_000, 10**9)
    assert found.to_dict()["epsilon"] == 1.0


def test_the_ladder_of_a_large_column_is_refused() -> None:
    for records in (9_000, 10**6, 10**12):
        with pytest.raises(ParameterError, match="permute-and-flip") as caught:
            plurality.mode_rule(records, 10, 1.0, rule="ladder")
        assert str(records) in str(caught.value)
        best = plurality.mode_rule(records, 10, 1.0)
        assert best.rule == "permute-and-flip"
        assert "no quick proof" in best.why


@pytest.mark.parametrize(("classes", "epsilon"), [(2, 0.3), (3, 0.5), (5, 1.0), (6, 2.0)])
def test_best_is_the_ladder_where_it_is_proved_for_every_number(
    classes: int, epsilon: float
) -> None:
    for rule in ("best", "ladder"):
        made = plurality.mode_rule(10**9, classes, epsilon, rule=rule)  # pyright: ignore[reportArgumentType]
        assert (made.rule, made.guarantee.epsilon) == ("ladder", epsilon)
        assert "every number of records" in made.proof
        assert (made.why == "asked for") == (rule == "ladder")
        assert made.ratio is not None
        assert exp_lower(epsilon * (1 - 1e-8)) < made.ratio <= exp_lower(epsilon)


@pytest.mark.parametrize(
    ("classes", "epsilon", "reach"),
    [(2, 0.5, 20), (3, 0.2, 12), (4, 0.5, 7), (5, 1.0, 5), (7, 1.1, 3), (10, 2.0, 2)],
)
def test_the_ladder_loses_less_than_permute_and_flip(
    classes: int, epsilon: float, reach: int
) -> None:
    """What "best" says of them: for all gaps up to some reach, in regret and in error."""
    step = exp_lower(epsilon / 2, 24)
    assert plurality.mode_rule(10**9, classes, epsilon).rule == "ladder"
    rungs = Ladder(step**2)
    for rest in combinations_with_replacement(range(reach + 1), classes - 1):
        gaps = (0, *rest)
        counts = [reach - gap for gap in gaps]
        own, other = rungs.law(counts), permute_and_flip(counts, step)
        for losses in (gaps, [int(gap > 0) for gap in gaps]):
            lost, more = (
                sum((share * loss for share, loss in zip(law, losses, strict=True)), Fraction(0))
                for law in (own, other)
            )
            assert lost <= more


@pytest.mark.parametrize("counts", [(10**9, 10**9 - 1, 10**9 - 4, 3), (7, 10**9, 10**9, 10**9)])
def test_frequencies_of_the_ladder_of_a_billion(counts: tuple[int, ...]) -> None:
    made = plurality.mode_rule(sum(counts), 4, 1.0)
    assert made.ratio is not None
    # A count so far below has less than 2^-1000, and the others nearly the shares of three.
    smallest = counts.index(min(counts))
    three = [count - 10**9 + 9 for count in counts if count > 10]
    law = [float(share) for share in ladder(three, made.ratio)]
    law.insert(smallest, 0.0)
    drawn = made.simulate(counts, np.random.default_rng(3), 6_000)
    observed = np.bincount(drawn, minlength=4)
    assert near(observed, law)
    assert not near(observed, [*law[1:], law[0]])
    assert made.release(counts, alphabet=None).letter != smallest


@pytest.mark.parametrize(
    ("data", "alphabet", "words"),
    [
        ([], CITIES, "no records"),
        (["Bern", "Genf"], CITIES, "outside the alphabet"),
        ([0, 0, 0], None, "no records"),
        ([[1, 2]], None, "counts has shape"),
        ([1, -2], None, "whole numbers"),
    ],
)
def test_bad_data(data: list[object], alphabet: list[str] | None, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        plurality.mode(data, 1.0, alphabet=alphabet)
    assert "Genf" not in str(caught.value)


def test_a_rule_is_for_its_own_sizes() -> None:
    made = plurality.mode_rule(3, 2, 1.0)
    with pytest.raises(ParameterError, match="4 records over 2 letters; the rule is for 3 over 2"):
        made.release([2, 2])


@pytest.mark.parametrize("change", [{"epsilon": 0.0}, {"epsilon": math.inf}, {"rule": "laplace"}])
def test_bad_parameters(change: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=f"^{next(iter(change))} is "):
        plurality.mode([2, 1], **{"epsilon": 1.0, **change})  # pyright: ignore[reportArgumentType]


def run(arguments: Sequence[str], capfd: Capture) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    printed = capfd.readouterr()
    return int(caught.value.code or 0), printed.out, printed.err


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
    assert told["rule"] == "ladder"
    assert ("every number of records" in told["proof"]) == (many == 700)
    assert told["why"].startswith("best: ")
    assert "private" in told["proof"]
    code, out, _ = run(["mode", str(file), *COMMAND[:-1], "20"], capfd)
    assert (code, out.splitlines()[0]) == (0, "Bern")


@pytest.mark.parametrize("name", ["visits.csv", "visits.parquet"])
@pytest.mark.parametrize(
    ("values", "words"), [(["Bern", "Genf"], "outside the alphabet"), ([], "no records")]
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


@pytest.mark.parametrize(
    ("given", "words"),
    [(["--rule", "laplace"], "rule is"), (["--epsilon", "-1"], "epsilon is"), (["--rule"], "rule")],
)
def test_bad_options_exit_2(given: list[str], words: str, tmp_path: Path, capfd: Capture) -> None:
    pytest.importorskip("polars")
    file = column(tmp_path / "visits.csv", ["Bern"])
    code, out, err = run(["mode", str(file), *COMMAND, *given], capfd)
    assert (code, out) == (2, "")
    assert words in err


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

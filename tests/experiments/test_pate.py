import json
import math
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, ttest_ind_from_stats

from dpopt import ParameterError
from experiments import __main__ as experiments
from experiments.data.mnist import Digits, load_digits
from experiments.entry import run_command
from experiments.majority.pate import __main__ as cli
from experiments.majority.pate.aggregate import (
    aggregators,
    draw_accuracies,
    draw_spread,
)
from experiments.majority.pate.experiment import Config, run
from experiments.majority.pate.published import allowed_difference
from experiments.majority.pate.rates import (
    Training,
    accuracies,
    at_chosen_rates,
    disjoint_parts,
    load_rates,
    scan_table,
)
from experiments.majority.pate.votes import SHIPPED, Run, Votes, load_votes, save_votes
from experiments.registry import Outcome, telling
from tests.experiments.comparing import exit_code, refusal

pytestmark = pytest.mark.slow

SAMPLE = Path(__file__).parents[1] / "data" / "mnist_sample.npz"

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("opacus") is None,
    reason="PyTorch and opacus are not installed (extra pate)",
)


def small_votes(teachers: int = 11, images: int = 200, seed: int = 0) -> Votes:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, images)

    def cast(right: float) -> np.ndarray:
        return np.where(rng.random((teachers, images)) < right, labels, 1 - labels)

    runs = tuple(Run(s, cast(0.7).astype(np.uint8), cast(0.97).astype(np.uint8)) for s in range(2))
    return Votes("toy", (5, 8), labels.astype(np.uint8), runs, 0.08915930, 1e-4, {"made": "here"})


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return run(replace(run.quick, datasets=("mnist",)))


@pytest.fixture(scope="module")
def digits() -> Digits:
    return load_digits(SAMPLE)


# The file of votes.


def test_votes_come_back_as_they_were(tmp_path: Path) -> None:
    votes = small_votes(images=203)
    path = tmp_path / "votes.json"
    save_votes(votes, path)
    found = load_votes(path)
    assert np.array_equal(found.labels, votes.labels)
    for one, other in zip(found.runs, votes.runs, strict=True):
        assert one.seed == other.seed
        for name in ("private", "plain"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
            assert not getattr(one, name).flags.writeable
    assert replace(found, labels=0, runs=()) == replace(votes, labels=0, runs=())
    first = path.read_bytes()
    save_votes(found, path)
    assert path.read_bytes() == first


def test_a_damaged_votes_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "votes.json"
    save_votes(small_votes(), path)
    whole = path.read_text()
    changed = json.dumps(json.loads(whole) | {"epsilon": 0.01})
    for text, words in ((whole[:-100], "not whole JSON"), (changed, "was changed")):
        path.write_text(text)
        assert words in refusal(load_votes, path)
    assert "no such file" in refusal(load_votes, tmp_path / "none.json")
    assert "directory" in refusal(load_votes, tmp_path)


def test_epsilon_is_stated_rounded_up() -> None:
    votes = small_votes()
    for epsilon, stated in ((0.08915930, 0.0892), (0.0892, 0.0892), (0.08920001, 0.0893)):
        assert replace(votes, epsilon=epsilon).stated_epsilon == stated


@pytest.mark.parametrize(("dataset", "images"), [("mnist", 1866), ("fashion-mnist", 2000)])
def test_the_rates_of_the_votes_are_those_that_the_scan_chose(dataset: str, images: int) -> None:
    votes, rates = load_votes(SHIPPED[dataset]), load_rates()
    training = Training(**votes.record["training"])
    assert at_chosen_rates(Training(), rates, dataset) == training
    for kind, rate in (("private", training.private_rate), ("non-private", training.plain_rate)):
        records = rates.select(dataset=dataset, teachers=kind).records
        best = max(records, key=lambda row: row["mean"])
        assert best["learning_rate"] == rate
        assert [row["chosen"] for row in records] == [row is best for row in records]
    # The scan looked at a sixth of the training images, and at no test image.
    held_out = {"mnist": 11_272 // 6, "fashion-mnist": 12_000 // 6}[dataset]
    assert len(votes.labels) == images
    for share in rates.select(dataset=dataset).column("majority"):
        assert share * held_out == pytest.approx(round(share * held_out), abs=1e-6)


def test_the_best_rate_is_chosen_and_the_lower_of_two_as_good() -> None:
    labels = np.array([1, 1, 0, 0], np.uint8)
    right, half = np.array([labels] * 3), np.array([[1, 1, 1, 1]] * 3, np.uint8)
    scanned = (
        ("private", 0.3, 0, right),
        ("private", 0.1, 0, right),
        ("private", 0.2, 0, half),
        ("non-private", 0.5, 0, half),
        ("non-private", 0.5, 1, half),
        ("non-private", 0.7, 0, right),
        ("non-private", 0.7, 1, 1 - right),
    )
    table = scan_table([("toy", *row, labels) for row in scanned])
    assert table.column("chosen") == [False, True, False, True, True, False, False]
    chosen = at_chosen_rates(Training(), table, "toy")
    assert (chosen.private_rate, chosen.plain_rate) == (0.1, 0.5)
    with pytest.raises(ParameterError, match="rates has no private teachers of 'mnist'"):
        at_chosen_rates(Training(), table, "mnist")


# Aggregation.


def test_subsampling_is_the_majority_of_m_voters() -> None:
    way = {w.method: w for w in aggregators(small_votes(teachers=5), 3)}["subsampling"]
    for ones in range(6):
        cast = [1] * ones + [0] * (5 - ones)
        chances = [sum(three) >= 2 for three in combinations(cast, 3)]
        assert way.chances[ones] == pytest.approx(np.mean(chances), abs=1e-9)


def test_the_noise_for_the_label_is_smaller_and_private() -> None:
    for m in (1, 3, 7):
        ways = {w.method: w for w in aggregators(small_votes(), m)}
        label, delta = ways["gnmax-label"], m * 1e-4
        assert label.sigma is not None
        assert label.sigma < (ways["gnmax"].sigma or 0.0)
        p = label.chances
        excess = max(
            a - math.exp(m * 0.0892) * b - delta
            for i in range(11)
            for a, b in ((p[i + 1], p[i]), (1 - p[i], 1 - p[i + 1]))
        )
        assert -1e-6 < excess < 1e-9


def test_draws_agree_with_the_exact_accuracy() -> None:
    votes = small_votes()
    rng = np.random.default_rng(5)
    chosen = rng.integers(0, 200, (400, 50))
    for way in aggregators(votes, 3):
        run = votes.runs[1]
        found = draw_accuracies(way, run, votes.labels, chosen, rng)
        assert found.shape == (400,)
        exact = float(way.right(votes)[1][chosen].mean())
        assert abs(found.mean() - exact) <= 6 * 0.5 / math.sqrt(chosen.size)


def test_the_spread_of_a_draw_is_the_brute_force_one() -> None:
    correct = np.array([0.1, 0.5, 0.9, 1.0, 0.7])
    for queries in (1, 2, 4, 5):
        values, chances = [], []
        for images in combinations(range(5), queries):
            for right in product((0, 1), repeat=queries):
                a = correct[list(images)]
                values.append(np.mean(right))
                chances.append(np.prod(np.where(right, a, 1 - a)) / math.comb(5, queries))
        mean = np.dot(values, chances)
        spread = math.sqrt(np.dot((np.array(values) - mean) ** 2, chances))
        assert draw_spread(correct, queries) == pytest.approx(spread, abs=1e-12)


def test_accuracies_of_three_teachers_by_hand() -> None:
    votes = np.array([[1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 1]], np.uint8)
    labels = np.array([1, 1, 0, 0], np.uint8)
    assert accuracies(votes, labels) == (0.25, pytest.approx(7 / 12), 1.0, 0.5)


# The tables.


@pytest.mark.parametrize(
    ("runs", "printed_std"),
    [((0.684, 0.717, 0.708), 0.03), ((0.5, 0.9), 0.01), ((0.7, 0.7, 0.71, 0.72), 0.11)],
)
def test_the_allowed_difference_is_welch_s(runs: tuple[float, ...], printed_std: float) -> None:
    allowed = allowed_difference(runs, printed_std)
    assert allowed is not None
    for gap, significant in ((0.99 * (allowed - 0.005), False), (1.01 * (allowed - 0.005), True)):
        ours = np.mean(runs), np.std(runs, ddof=1), len(runs)
        test = ttest_ind_from_stats(ours[0] + gap, printed_std, 10, *ours, equal_var=False)
        assert (test.pvalue < 0.05) == significant
    assert allowed_difference((0.7,), printed_std) is None
    assert allowed_difference((0.7, 0.7), 0.0) == 0.005


def of_accuracies(*private: float) -> Votes:
    """Runs whose private teachers agree with each other, and are right with these shares."""
    labels = np.tile([0, 1], 500).astype(np.uint8)

    def cast(right: float) -> np.ndarray:
        wrong = np.arange(1000) >= round(1000 * right)
        return np.tile(np.where(wrong, 1 - labels, labels), (11, 1)).astype(np.uint8)

    runs = tuple(Run(seed, cast(x), cast(0.97)) for seed, x in enumerate(private))
    return Votes("mnist", (5, 8), labels, runs, 0.08915930, 1e-4, {"made": "here"})


@pytest.mark.parametrize(
    ("private", "expected"),
    [
        # One run alone near the print decides nothing: the mean of all does, with its spread.
        ((0.82, 0.82, 0.82), "agrees"),
        ((0.83, *[0.93] * 5), "differs"),
        ((0.99, 0.99, 0.99), "differs"),
        ((0.60, 0.80, 0.99), "agrees"),
        ((0.80,), "not comparable"),
    ],
)
def test_the_verdict_follows_from_all_training_runs(
    tmp_path: Path, private: tuple[float, ...], expected: str
) -> None:
    path = tmp_path / "votes.json"
    save_votes(of_accuracies(*private), path)
    config = Config(votes=str(path), allowance=(7,), queries=(100,))
    outcome = run(config)
    (found,) = outcome.tables["queries"].select(method="surrogate").records
    # At m = 7 the optimised gamma is the majority itself: its accuracy is the teachers'.
    assert found["exact_mean"] == pytest.approx(np.mean(private), abs=2e-3)
    assert [found[f"seed_{i}"] for i in range(len(private))] == pytest.approx(private, abs=2e-3)
    spread = pytest.approx(np.std(private, ddof=1), abs=2e-3) if len(private) > 1 else None
    assert found["run_spread"] == spread
    (judged,) = [c for c in outcome.comparisons if c.claim.startswith("The optimised gamma: 0.83")]
    assert judged.verdict == expected


def test_agreement_makes_up_the_majority(outcome: Outcome) -> None:
    votes = load_votes(SHIPPED["mnist"])
    for kind, place in (("private", 0), ("non-private", 1)):
        rows = outcome.tables["agreement"].select(teachers=kind).records
        right = sum(row["share_of_images"] * (row["majority_right"] or 0.0) for row in rows)
        casts = [(run.private, run.plain)[place] for run in votes.runs]
        assert right == pytest.approx(np.mean([accuracies(c, votes.labels)[3] for c in casts]))


run_cli = partial(exit_code, partial(run_command, cli.command, "pate"))


def test_tables_of_a_user_s_votes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "votes.json", tmp_path / "out"
    save_votes(small_votes(), path)
    given = ["run", run.name, "--set", f"votes={path}", "--out", str(out)]
    assert exit_code(experiments.main, given) == 0
    assert "report" in capfd.readouterr().out
    names = {p.name for p in out.iterdir()}
    assert {f"{run.name}.accuracy.csv", f"{run.name}.png", "index.html"} <= names
    record = json.loads((out / f"{run.name}.json").read_text())
    assert record["configuration"]["votes"] == str(path)
    assert record["data"].endswith(".json")


@pytest.mark.nightly
@needs_torch
def test_data_are_asked_for_before_training(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "votes.json")
    assert run_cli(["--out", out]) == 2
    assert "--data and --download" in capfd.readouterr().err
    assert run_cli(["--data", str(SAMPLE), "--out", out]) == 2
    assert "300 training images, 27 for each of 11 teachers" in capfd.readouterr().err


# Training.


def test_parts_are_disjoint_and_equal() -> None:
    training = Training()
    parts = disjoint_parts(11_272, training, np.random.default_rng(0))
    assert [len(part) for part in parts] == [1024] * 11
    together = np.concatenate(parts)
    assert len(set(together.tolist())) == 11 * 1024
    assert 0 <= together.min() <= together.max() < 11_272
    assert training.steps(1024) == 160


def gaussian_limit_epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """Central limit of subsampled Gaussians (Bu et al. 2020): mu-GDP, mu = q sqrt(T (e^(1/s^2)-1)).

    Its epsilon solves delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).
    """
    mu = rate * math.sqrt(steps * math.expm1(noise**-2))
    return brentq(
        lambda e: norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - delta,
        1e-6,
        10.0,
    )


@needs_torch
def test_the_accountant_gives_the_paper_s_epsilon() -> None:
    from experiments.majority.pate.teachers import accounted_epsilon

    assert accounted_epsilon(Training(), 1024) == pytest.approx(0.08916, abs=5e-6)
    fine = accounted_epsilon(Training(), 1024, error=1e-3)
    assert load_votes(SHIPPED["mnist"]).record["epsilon_at_error_0.001"] == pytest.approx(
        fine, abs=1e-9
    )
    limit = gaussian_limit_epsilon(12.0, 1 / 32, 160, 1e-4)
    # The accountant's bound lies up to twice its error above; the limit itself is within 1e-3.
    assert limit - 1e-3 < fine < limit + 3e-3
    assert accounted_epsilon(Training(noise_multiplier=6.0), 1024) > 0.15


@needs_torch
def test_the_printed_epsilon_of_fashion_mnist_is_that_of_12_000_images() -> None:
    from experiments.majority.pate.teachers import accounted_epsilon

    training = Training()
    assert training.part_size(12_000) == 1090
    assert training.steps(1090) == 175
    assert accounted_epsilon(training, 1090) == pytest.approx(0.0852, abs=5e-5)
    # The paper prints 10,000 images.
    assert abs(accounted_epsilon(training, training.part_size(10_000)) - 0.0852) > 5e-3


@pytest.mark.nightly
@needs_torch
def test_teachers_vote_the_same_for_the_same_seed(digits: Digits) -> None:
    import torch  # pyright: ignore[reportMissingImports]

    from experiments.majority.pate.teachers import train_votes

    training = Training(teachers=1, epochs=1)
    told: list[int] = []
    before = torch.get_rng_state()
    with telling(lambda done, _: told.append(done)):
        votes = train_votes(digits, training, (0, 1), dataset="toy")
    assert torch.equal(torch.get_rng_state(), before)
    assert sum(told) == 2 * 2 * 1
    assert votes.teachers == 1
    assert all(run.private.shape == run.plain.shape == (1, 100) for run in votes.runs)
    assert np.array_equal(votes.labels, digits.test_labels)
    assert votes.record["data_sha256"] == digits.sha256
    again = train_votes(digits, training, (1,))
    assert np.array_equal(again.runs[0].private, votes.runs[1].private)
    assert np.array_equal(again.runs[0].plain, votes.runs[1].plain)
    assert not np.array_equal(votes.runs[0].private, votes.runs[1].private)


@pytest.mark.nightly
@needs_torch
def test_noise_and_clipping_reach_the_private_teacher(digits: Digits) -> None:
    from experiments.majority.pate.teachers import train_teachers

    quiet = Training(teachers=1, epochs=4, private_rate=0.5, noise_multiplier=0.01)
    learnt = train_teachers(digits, quiet, 0, private=True)
    assert accuracies(learnt, digits.test_labels)[1] > 0.8
    for change in ({"noise_multiplier": 1000.0}, {"clipping": 1e-9}):
        training = replace(quiet, epochs=1, **change)
        votes = train_teachers(digits, training, 0, private=True)
        assert accuracies(votes, digits.test_labels)[1] < 0.75

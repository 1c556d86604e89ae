import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

from dpopt import ParameterError
from experiments.benchmarks.suite_kernels import printed_algorithm
from experiments.data.avazu import load_clicks, subcategories
from experiments.data.generate import generate_avazu, generate_movielens
from experiments.data.movielens import load_movielens
from experiments.public_prior import avazu, digits, kernels, movielens, synthetic
from tests.experiments.comparing import ran
from tests.experiments.pictures import drawn
from tests.experiments.test_public_prior_data import ml_100k

pytest.importorskip("polars", reason="polars is not installed (extra data)")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def tv(p: np.ndarray, r: np.ndarray) -> float:
    return float(np.abs(p - r).sum() / 2)


def clamped(prior: np.ndarray, pmf: np.ndarray, epsilon: float) -> np.ndarray:
    """The KL mollifier as the paper computes it, its constant by root finding."""
    low, high = prior * math.exp(-epsilon / 2), prior * math.exp(epsilon / 2)
    level = brentq(lambda t: np.clip(pmf * math.exp(t), low, high).sum() - 1, -28, 28, xtol=1e-14)
    return np.clip(pmf * math.exp(level), low, high)


def by_hand(method: str, prior: np.ndarray, pmf: np.ndarray, epsilon: float) -> np.ndarray:
    if method == "mollifier-kl":
        return clamped(prior, pmf, epsilon)
    if method == "uniform":
        prior = np.full(prior.size, 1 / prior.size)
    return pmf @ printed_algorithm(prior, epsilon)


def lost(method: str, prior: np.ndarray, pmfs: Any, epsilon: float) -> list[float]:
    """The largest and the mean distance of users."""
    values = [tv(pmf, by_hand(method, prior, pmf, epsilon)) for pmf in pmfs]
    return [max(values), sum(values) / len(values)]


def test_figure_2_is_mean_and_standard_error_of_values_by_hand() -> None:
    config = synthetic.Config(categories=12, runs=3, points=5)
    rng = np.random.default_rng(config.seed)
    priors = [rng.random(12) for _ in range(3)]
    table = ran(synthetic.run, config).tables["divergences"]
    firsts = [1 / 12 + k * (1 - 1 / 12) / 4 for k in range(5)]
    for method in ("minimax", "mollifier-kl"):
        rows = table.select(method=method).records
        assert [row["first"] for row in rows] == pytest.approx(firsts)
        for row in rows:
            pmf = np.array([row["first"]] + [(1 - row["first"]) / 11] * 11)
            released = [by_hand(method, q / q.sum(), pmf, 8.0) for q in priors]
            values = [tv(pmf, r) for r in released]
            kl = [float(rel_entr(pmf, r).sum()) for r in released]
            assert row["tv"] == pytest.approx(sum(values) / 3, rel=1e-7, abs=1e-12)
            assert row["kl"] == pytest.approx(sum(kl) / 3, rel=1e-6, abs=1e-12)
            error = math.sqrt(sum((v - sum(values) / 3) ** 2 for v in values) / 2 / 3)
            assert row["tv_error"] == pytest.approx(error, rel=1e-6, abs=1e-12)
    kl, program = (table.select(method=f"mollifier-{name}").column("tv") for name in ("kl", "tv"))
    assert kl == pytest.approx(program, abs=1e-7)


def test_figure_4_is_the_largest_distance_of_each_age_group(tmp_path: Path) -> None:
    config = movielens.Config(users=80, movies=60)
    generated = ran(movielens.run, config)
    table = generated.tables["distances"]
    generate_movielens(tmp_path, config.users, config.movies, config.seed)
    groups = load_movielens(tmp_path)
    assert len(table.rows) == 5 * len(groups)
    for group in groups:
        prior = group.counts.sum(axis=0) / group.counts.sum()
        for method in ("minimax", "mollifier-kl", "uniform"):
            (row,) = table.select(age=group.value, method=method).records
            pmfs = [counts / counts.sum() for counts in group.counts]
            expected = pytest.approx([*lost(method, prior, pmfs, 4.0), len(pmfs)], rel=1e-9)
            assert [row["largest"], row["mean"], row["users"]] == expected
        least = prior.min()
        gamma = (1 - least) / (math.exp(4.0) * least + 1 - least)
        for name in ("minimax", "leximin"):
            (row,) = table.select(age=group.value, method=name).records
            assert row["worst_case"] == pytest.approx(gamma)
            assert row["largest"] <= gamma + 1e-12
    again = ran(movielens.run, replace(config, path=str(tmp_path)))
    # The first cell tells whose data they are.
    assert [r[1:] for r in again.tables["distances"].rows] == [r[1:] for r in table.rows]
    assert generated.generated
    assert generated.data == "generated data in the format of MovieLens 1M"
    assert (again.generated, again.data) == (False, "own data in the format of MovieLens 1M")


@pytest.mark.slow
def test_avazu_cases_and_summary_by_hand(tmp_path: Path) -> None:
    config = avazu.Config(rows=40_000, sites=8, minimum_users=8)
    outcome = ran(avazu.run, config)
    cases = outcome.tables["cases"]
    path = generate_avazu(tmp_path / "train.csv", config.rows, config.seed)
    clicks = load_clicks(path)
    groups = list(subcategories(clicks, "C18", sites=8, minimum_users=8))
    assert len(cases.select(attribute="C18").rows) == 3 * len(groups) >= 3
    for group in groups:
        pmfs = [counts / counts.sum() for counts in group.counts]
        prior = np.mean(pmfs, axis=0)
        for epsilon in (8.0, 12.0, 16.0):
            (row,) = cases.select(attribute="C18", value=group.value, epsilon=epsilon).records
            for method in ("minimax", "mollifier-kl"):
                expected = pytest.approx(lost(method, prior, pmfs, epsilon), rel=1e-6)
                assert [row[method], row[f"{method}_mean"]] == expected
    gains = [row["mollifier-kl"] - row["minimax"] for row in cases.records]
    won = [gain for gain in gains if gain > 0]
    losses = [-gain for gain in gains if gain <= 0]
    *_, every, published = outcome.tables["summary"].records
    assert every["cases"] == len(gains)
    assert every["wins"] == len(won) / len(gains)
    assert every["improvement"] == pytest.approx(sum(won) / len(won))
    assert every["loss"] == (pytest.approx(sum(losses) / len(losses)) if losses else None)
    assert (published["wins"], published["improvement"], published["loss"]) == (0.905, 0.46, 0.009)
    own = ran(avazu.run, replace(config, path=str(path)))
    assert [r[1:] for r in own.tables["cases"].rows] == [r[1:] for r in cases.rows]
    assert (outcome.generated, own.generated) == (True, False)
    assert own.data == "own data in the format of Avazu"


@pytest.mark.slow
def test_figure_4_from_a_folder_of_100k(tmp_path: Path) -> None:
    outcome = ran(movielens.run, movielens.Config(path=str(ml_100k(tmp_path))))
    assert (outcome.data, outcome.generated) == ("own data in the format of MovieLens 100k", False)
    assert outcome.tables["distances"].column("age")[::5] == ["Under 18", "18-24", "50-55", "56+"]
    assert outcome.comparisons[-1].rule.endswith("MovieLens 100k, the paper's are MovieLens 1M")
    drawn(movielens.run, outcome)


def test_an_age_group_without_users_is_refused() -> None:
    config = movielens.Config(users=1, movies=18, groups=("Under 18", "56+"))
    with pytest.raises(ParameterError, match="has users"):
        ran(movielens.run, config)


@pytest.mark.slow
def test_digits_are_counted_pixel_by_pixel() -> None:
    """Ink summed by hand over the cells of every image of a digit; TV by the printed recursion."""
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

    outcome = ran(digits.run, digits.Config(digits=(0, 1)))
    assert (outcome.data, outcome.generated) == ("scikit-learn's digits", False)
    assert {c.verdict for c in outcome.comparisons} == {"agrees", "not comparable"}
    table = outcome.tables["distances"]
    images, labels = load_digits(return_X_y=True)
    for digit in (0, 1):
        pmfs = []
        for image in images[labels == digit].reshape(-1, 8, 8):
            cells = [
                sum(image[2 * i + a, 2 * j + b] for a in range(2) for b in range(2))
                for i in range(4)
                for j in range(4)
            ]
            pmfs.append(np.array(cells))
        total = np.sum(pmfs, axis=0)
        used = total > 0
        prior = total[used] / total.sum()
        shares = [(pmf / pmf.sum())[used] for pmf in pmfs]
        for method in ("minimax", "mollifier-kl", "uniform"):
            (row,) = table.select(digit=str(digit), method=method).records
            expected = pytest.approx(lost(method, prior, shares, 4.0), rel=1e-9)
            assert [row["largest"], row["mean"]] == expected
            assert (row["users"], row["categories"]) == (len(shares), int(used.sum()))


def test_kernels_are_in_the_order_that_theory_gives() -> None:
    small = {"categories": (3, 4), "epsilon": (1.0, 2.0), "sizes": (5, 2000)}
    tables = ran(kernels.run, kernels.Config(**small, training=40, held_out=200)).tables
    settings = tables["distances"].grouped("method", "categories", "epsilon")
    assert set(settings) == set(product((3, 4), (1.0, 2.0)))
    for at in settings.values():
        assert set(at) == {"minimax", "leximin", "population", "mollifier-kl"}
        for name in ("leximin", "population"):
            assert at[name]["worst_case"] == pytest.approx(at["minimax"]["worst_case"], abs=1e-6)
            # The program's own users: none of the kernels that it may choose from does better.
            assert at["population"]["training_mean"] <= at[name]["training_mean"] + 1e-7
        assert at["population"]["training_mean"] <= at["minimax"]["training_mean"] + 1e-7
        assert at["mollifier-kl"]["worst_case"] >= at["minimax"]["worst_case"] - 1e-12
        for row in at.values():
            assert 0 < row["mean"] < row["largest"] <= row["worst_case"] + 1e-12
    assert max(tables["sizes"].column("invariance")) < 1e-12


@pytest.mark.parametrize(
    ("rows", "changed", "said"),
    [
        (1000, {}, "the file has 1,000 rows, the paper's 40,000,000 or more"),
        (40_000_000, {"sites": 8, "user": "device_ip"}, "user, sites: not as in the paper"),
        (40_000_000, {"seed": 1}, None),
    ],
)
def test_what_is_not_as_in_the_paper(rows: int, changed: dict[str, Any], said: str | None) -> None:
    clicks: Any = SimpleNamespace(rows=rows)
    assert avazu._other(avazu.Config(path="train.csv", **changed), clicks) == said

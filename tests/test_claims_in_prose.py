"""Every number of the README, of PAPERS, SECURITY and of pages of the site is computed here.

Or a test is named. A number in prose is a parameter, a result, or part of a name. Names
("Table 4", "(9)", years) are taken out by `NAMES`. Every other number lies in the words of one
entry of `CLAIMS`, which says of each result how it is computed: a function whose value must round
to the printed digits, or the test that asserts it. What the words state at given parameters is
computed too, by `holds`. To change a number in prose, change its entry. A formula whose numbers
all have one digit claims nothing, nor does such a number in an argument that ends in ∎: they are
proved where they stand.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from tests.test_gnmax import SENSITIVITY, bernoulli_divergence

import dpopt
from dpopt import (
    ParameterError,
    gnmax,
    kernel,
    local,
    majority,
    multiclass,
    plurality,
    public_prior,
    roo,
    smoothed,
    verify,
)
from dpopt.ballots import Partitions, ladder
from dpopt.ballots.unbounded import spent_by_any_number
from dpopt.files import LARGEST_FILE
from dpopt.local.bound import ENUMERATED
from dpopt.majority import check, voters
from dpopt.multiclass.bound import vote_ratio_below
from dpopt.multiclass.corners import priceable
from dpopt.multiclass.subsampling import sampled_plurality, spent
from dpopt.privacy import Guarantee, concentrated_composition, general_composition, release
from dpopt.proofs.closed import ClosedForm, private_where
from dpopt.roo import rules
from dpopt.roo.histograms import MOST_HISTOGRAMS, MOST_LETTERS
from dpopt.style import STYLES
from experiments.ensembles import images, plain, private
from experiments.ensembles.laws import rules_of
from experiments.majority import (
    claims,
    claims_corners,
    claims_error,
    claims_record,
    claims_sampling,
    composition,
    corner_sets,
    figures,
    objective,
)
from experiments.majority import lemmas as lemmas_b
from experiments.majority.claims_record import REFUTED
from experiments.majority.claims_record import Claim as Instance
from experiments.majority.gnmax import as_printed
from experiments.majority.pate.aggregate import aggregators
from experiments.majority.pate.tables import exact_record
from experiments.majority.pate.votes import SHIPPED, load_votes
from experiments.public_prior import digits, kernels, movielens, program
from experiments.registry import Outcome
from experiments.roo import audit_map, lemmas, utility
from experiments.smoothed import compositions, runtime, sgd_bias
from experiments.smoothed.sgd_bias import GAUSSIAN, TWO_VALUES, databases
from experiments.smoothed.votes import units
from tests.majority import test_separation
from tests.smoothed import test_binary, test_bounds

ROOT = Path(__file__).resolve().parents[1]
README, PAPERS, SECURITY = "README.md", "PAPERS.md", "SECURITY.md"
LIMITS, TOOLS, LAYOUT = "docs/limits.md", "docs/tools.md", "docs/layout.md"
MAJORITY, OBSCURE = "docs/findings/majority.md", "docs/findings/reveal_or_obscure.md"
PRIOR, SMOOTHED = "docs/findings/public_prior.md", "docs/findings/smoothed.md"
KERNELS, VOTES = "docs/findings/kernels.md", "docs/findings/votes.md"
REFEREE, CLOSED = "docs/referee.md", "docs/closed_forms.md"
FINDINGS = sorted(f"docs/findings/{path.name}" for path in (ROOT / "docs/findings").glob("*.md"))
DOCUMENTS = (README, PAPERS, SECURITY, LIMITS, TOOLS, LAYOUT, REFEREE, CLOSED, *FINDINGS)

NUMBER = re.compile(r"(?<![\w.])\.?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?(?!\w)")
_LABEL = r"\(?[A-Z]?\.?\d+(?:\.\d+)*\)?(?!,?\d)"
_ITEMS = (
    "Figures?|Tables?|[Ll]emmas?|[Tt]heorems?|Algorithms?|Definitions?|Propositions?|Remarks?|"
    "Corollary|[Ee]quations?|Section|Example|Python|[Ll]ines?"
)
# Names of items with lists of numbers, equations in brackets, years, addresses, corners.
NAMES = re.compile(
    rf"(?:{_ITEMS}) {_LABEL}(?:(?:, (?:and )?| and | to ){_LABEL})*"
    r"|(?<!\w)\(\d+\)(?: to \(\d+\))?|\b0\.\.\d+|(?<![\w.])(?:19|20)\d\d\b|127\.0\.0\.1"
    r"|\b(?:00, 11|11, bc)\b"
    r"|\b2\^bits|Exit codes: 2|, 3 if no|, 4 if the|, 5 if standard|, 130 if"
    r"|; 2 left, 4|right, 5 \(SGD|, 3 and 4 "
)

# A number that a formula tells: a decimal, or one of several digits.
_TOLD = re.compile(r"\d\.\d|\d\d")
# From its first words, in italics, to its end; in it a number of one digit is proved there.
_ARGUMENT = re.compile(r"(?<!\*)\*(?!\*)[A-Z][^*]*\.\*(?!\*).*?∎")

Computed = Callable[[], float]
Tested = tuple[str, str]


@dataclass(frozen=True)
class Claim:
    """Words of a document, and where each number in them comes from.

    Attributes:
        document: one of `DOCUMENTS`.
        words: exactly as printed, but for line breaks; inline code is a single backtick, and a
            formula a dollar sign, unless it has a number of more than one digit.
        given: parameters, which claim nothing.
        computed: each result's number as printed, and what computes it: rounded to its digits.
        tested: each result's number as printed, the file and name of the test that asserts it, and
            the text with the number in that test's parameters or body.
        holds: what the words state at the given parameters.
    """

    document: str
    words: str
    given: str = ""
    computed: Mapping[str, Computed] = field(default_factory=dict)
    tested: Mapping[str, Tested] = field(default_factory=dict)
    holds: Callable[[], bool] | None = None


@cache
def prose(document: str) -> str:
    """Return a document without code but for its comments, in one line."""
    text = (ROOT / document).read_text(encoding="utf-8")

    def comments(block: re.Match[str]) -> str:
        lines = block[0].splitlines()[1:-1]
        return "\n".join(line.partition("#")[2] for line in lines if "#" in line)

    def formula(found: re.Match[str]) -> str:
        return found[1] if _TOLD.search(found[1]) else "$"

    # What MyST reads before the title is no prose.
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```", comments, text, flags=re.DOTALL)
    text = re.sub(r"\$\$?([^$]+)\$\$?", formula, text)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "`", text))
    return " ".join(text.split())


@cache
def source_of(test: str) -> str:
    """Return a test, given as file::name, with its parameters."""
    file, _, name = test.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    (found,) = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == name and name.startswith("test_")
    ]
    first = min(node.lineno for node in (found, *found.decorator_list))
    return "\n".join(text.splitlines()[first - 1 : found.end_lineno])


def unit_of(number: str) -> float:
    """Return the unit of a printed number's last digit; of 2,200 that is 100."""
    mantissa, _, power = number.replace(",", "").partition("e")
    whole, _, decimals = mantissa.partition(".")
    zeros = len(whole) - len(whole.rstrip("0")) if "," in number and not decimals else 0
    return 10.0 ** (int(power or 0) - len(decimals) + zeros)


@cache
def vote() -> majority.MajorityDesign:
    return majority.design(11, 0.1, 3)


def checked() -> int:
    """How many multisets of the paper's corners were checked."""
    found = vote().check
    assert found is not None
    return found.constraints_checked


@cache
def voted(objective: str) -> majority.MajorityDesign:
    """For voters believed to be independent, which is not the default."""
    return majority.design(11, 0.1, 3, objective=objective, prior="uniform:0,1")


def half_the_error() -> bool:
    """Whether the surrogate's error is more than twice the least one, for independent voters."""
    return 2 * voted("expected-error").expected_error < voted("surrogate").expected_error


def believed() -> float:
    """The error of the default, designed for one p of all voters, where they are independent."""
    return majority.expected_error(vote().gamma, majority.parse_prior("uniform:0,1")).value


def excess(n: int, k: int, epsilon: float, rule: str) -> float:
    return roo.min_count(n, k, epsilon, rule).audit.excess_factor


def relative_error(log_value: float, exact: Any) -> float:
    """Return |e^log_value - exact| / exact, at the precision that mpmath works with."""
    return float(abs(mpmath.expm1(mpmath.mpf(float(log_value)) - mpmath.log(exact))))


def unneeded() -> float:
    """By how much the conference's q_m sum to more than what its own rows allow."""
    setting = roo.MinCount(101, 10, 0.01, "conference")
    problem = setting.problem()
    problem.minimise({"q": 1.0})
    return float(dpopt.design(setting).q.sum()) - dpopt.solve(problem).objective


@cache
def full_map() -> tuple[int, int, float]:
    """Settings in which the conference's recursion violates, all, and the worst factor."""
    config = audit_map.EXPERIMENT.config
    factors = [
        excess(k * least + rest, k, epsilon, "conference")
        for k, epsilon, least in product(config.letters, config.epsilons, config.minima)
        for rest in sorted({0, 1, k - 1})
    ]
    return sum(factor > 1 + 1e-9 for factor in factors), len(factors), max(factors)


@cache
def uncovered() -> tuple[int, int]:
    """Settings of the default map that violate by the journal's rule, of those of lemma 2's gap."""
    config = audit_map.EXPERIMENT.quick
    violate = [
        (excess(n, k, epsilon, "journal") > 1 + 1e-9)
        for k, epsilon, least in product(config.letters, config.epsilons, config.minima)
        for n in (k * least + rest for rest in sorted({0, 1, k - 1}))
        if n % k and math.expm1(epsilon) * least < 1
    ]
    return sum(violate), len(violate)


def audits_decided() -> int:
    """How many settings of the default map theorem 2, repaired, tells from others: all of them."""
    config = audit_map.EXPERIMENT.quick
    settings = [
        (k * least + rest, k, epsilon)
        for k, epsilon, least in product(config.letters, config.epsilons, config.minima)
        for rest in sorted({0, 1, k - 1})
    ]
    decided = [
        roo.journal_is_private(roo.RooSetting(*setting))
        == roo.min_count(*setting, "journal").audit.private
        for setting in settings
    ]
    assert all(decided)
    return len(decided)


def told(count: int) -> float:
    """The chance of a letter with this count, the smallest being 1: the journal's (3, 2, 0.5)."""
    obscured = roo.min_count(3, 2, 0.5, "journal").obscuring(1)
    return count / 3 + obscured * (1 / 2 - count / 3)


def short_by(name: str, n: int, k: int, e: Fraction) -> Fraction:
    """By how much a lemma fails at m = 1."""
    (lemma,) = [each for each in lemmas.LEMMAS if each.name == name]
    return -dict(lemma.margins(lemmas.Case(n, k, e, conference=lemma.conference)))[1]


def repaired() -> bool:
    """Whether theorem 2, repaired, is what audits find at some settings on either side."""
    return all(
        roo.journal_is_private(roo.RooSetting(n, k, epsilon))
        == roo.min_count(n, k, epsilon, "journal").audit.private
        and roo.min_count(n, k, epsilon, "journal-repaired").audit.private
        for n, k, epsilon in product(range(1, 30), (2, 3, 5), (0.05, 0.3, 0.5, 1.0))
    )


def attained() -> bool:
    """Whether lemma 5 is an equality there, and w' < 0 exactly for e < 1 + 1/n."""
    (lemma,) = [each for each in lemmas.LEMMAS if each.name == "lemma 5"]
    margins = dict(lemma.margins(lemmas.Case(4, 2, Fraction(3, 2), conference=False)))
    below = [lemmas.Case(4, 2, 1 + Fraction(1, d), conference=False).primed[2] for d in (5, 4, 3)]
    return margins[1] == 0 and below[0] < 0 == below[1] < below[2]


@cache
def small_settings() -> list[dict[str, float]]:
    """The worst case of each sampler in each setting of `roo-utility`."""
    experiment = utility.EXPERIMENT
    outcome = experiment.run(replace(experiment.quick, draws=5), lambda: None)
    table, found = outcome.tables["utility"], {}
    for k, n, sampler, worst in zip(
        *(table.column(name) for name in ("letters", "records", "sampler", "worst_case")),
        strict=True,
    ):
        found.setdefault((k, n), {})[sampler] = worst
    return list(found.values())


@cache
def held_out() -> Outcome:
    experiment = kernels.EXPERIMENT
    return experiment.run(replace(experiment.quick, sizes=(10,)), lambda: None)


def leximin_ahead() -> int:
    table = held_out().tables["distances"]
    means = [table.select(method=m).column("mean") for m in ("leximin", "minimax", "mollifier-kl")]
    worst = [table.select(method=m).column("worst_case") for m in ("minimax", "mollifier-kl")]
    assert all(c < a for a, _, c in zip(*means, strict=True))
    assert all(b > a for a, b in zip(*worst, strict=True))
    assert len(means[0]) == len(kernels.EXPERIMENT.quick.settings)
    return sum(a < b for a, b, _ in zip(*means, strict=True))


@cache
def bias() -> dict[float, float]:
    """Means of estimates from 1e7 draws over the exact delta, as `smoothed-sgd-bias` takes them."""
    config = sgd_bias.Config()
    values = databases(config.records, config.seed)[GAUSSIAN]
    exact = smoothed.sgd_profile(values, config.drawn, config.epsilons).delta
    place, draws = sgd_bias._ESTIMATED.index(GAUSSIAN), 10**7
    rng = np.random.default_rng([config.seed, 1, place, draws])
    rows: list[dict[str, Any]] = sgd_bias._estimates(config, GAUSSIAN, values, exact, draws, rng)
    return {row["epsilon"]: row["factor"] for row in rows}


@cache
def inside() -> smoothed.SmoothedDelta:
    return smoothed.smoothed_delta(smoothed.SamplingHistogram(36, 34), 0.0, [0.4, 0.6])


def above_the_ends() -> float:
    """Percent by which the maximum over compositions is above both ends."""
    count = smoothed.SamplingHistogram.of_lost_rate(20_000, "0.0001")
    whole = smoothed.smoothed_delta(count, 0.0, [0.4, 0.62]).delta
    return 100 * (
        whole / max(smoothed.smoothed_delta(count, 0.0, [p]).delta for p in (0.4, 0.62)) - 1
    )


def election() -> float:
    count = smoothed.SamplingHistogram.of_lost_rate(155_485_078, "0.002")
    profile = smoothed.privacy_profile(count, epsilon=0.04, histogram=(81_268_924, 74_216_154))
    return -float(profile.log10_delta[0])


def extreme(place: int) -> float:
    """Percent of the vertex units of 2020."""
    found = sorted(units(), key=lambda unit: unit.share)[place]
    assert found.name == ("DC", "NE-3")[place]
    return 100 * found.share


@cache
def path() -> kernel.KernelDesign:
    x = np.arange(9)
    return kernel.optimal_kernel(
        abs(x[:, None] - x), epsilon=1.0, graph="path", objective="minimax"
    )


def words_program() -> dpopt.Problem:
    return kernel.KernelSetting(
        "hamming",
        1.0,
        graph="hamming",
        shape=(2,) * 11,
        objective="minimax",
        symmetry="hamming",
    ).problem()


@cache
def risky() -> dpopt.Solution:
    """The count with a risk, as rows of a `Problem` and not by way of cvxpy."""
    loss = np.abs(np.subtract.outer(np.arange(9), np.arange(9)))
    problem = dpopt.Problem()
    problem.add_variables("K", (9, 9), lower=0.0, upper=1.0)
    problem.add_law("sums", "K")
    problem.add_private("privacy", "K", epsilon=1.0, graph="path")
    problem.add_rows("risk", {"K": np.eye(9)[:, :, None] * (loss >= 3)}, upper=0.05)
    problem.minimise({"K": loss / 9})
    return dpopt.solve(problem)


def risky_cost() -> float:
    return dpopt.certify(risky()["K"], 1.0, graph="path").value


def composed() -> float:
    pytest.importorskip("dp_accounting")
    from dpopt.interop import accounting
    from dpopt.privacy import quantise_kernel

    response = np.full((4, 4), 1 / 5) + np.eye(4) / 5
    return accounting.composed_epsilon(quantise_kernel(response, Guarantee(math.log(2))), 100, 1e-6)


@cache
def constants() -> tuple[Instance, ...]:
    """What `majority-claims` finds of lemma A.1."""
    config = claims.Config()
    return claims_error.constants(
        config.constant_cases, config.cases("below"), config.epsilon, lambda: None
    ).claims


def larger() -> list[float]:
    """The largest private constant gamma over lemma A.1's, for each K and m."""
    found = [claim for claim in constants() if claim.quantity == "constant gamma"]
    return [claim.value_found / claim.value_claimed for claim in found]


def below_tau() -> Instance:
    """Lemma A.1 with tau < m, at K = 35, m = 16."""
    (found,) = [claim for claim in constants() if claim.instance.startswith("K = 35, m = 16, ")]
    assert found.quantity == "epsilon spent by p_const"
    return found


@cache
def harmonic(k: int) -> Instance:
    """Lemma 3.2 at gamma(l) = 1 / |2l - K|, refuted by exact arithmetic for every epsilon."""
    found = claims_error._unanimous(k)
    assert found.status == REFUTED
    assert found.value_claimed == (k - 1) / (2 * k)
    return found


def odd_up_to(largest: int) -> bool:
    """Whether the default run has each odd K up to this one, the full one 21 and 51 besides."""
    quick, full = claims.EXPERIMENTS[0].quick.at_one, claims.EXPERIMENTS[0].config.at_one
    assert full == (*quick, 21, 51)
    return quick == tuple(range(3, largest + 1, 2))


def multisets_of_three() -> int:
    """How many multisets of corners prove it at K = 3."""
    upper = claims_error.harmonic(3)[2:]
    proof = claims_error.prove_for_every_epsilon(upper, 1, full=True)
    assert proof.undecided == 0
    return proof.constraints


@cache
def corners(start: str) -> Instance:
    """What three corners give in the instance that starts like this."""
    config = claims.Config()
    part = claims_corners.three_corners(
        [claims_corners.Case(*case) for case in config.cases("three")],
        config.cases("swept")[:1],
        config.swept_epsilons[:1],
        lambda: None,
    )
    (found,) = [claim for claim in part.claims if claim.instance.startswith(start)]
    return found


@cache
def repeated() -> Instance:
    """One query put 12 times to K = 41 voters trained once, proved in fractions."""
    config = claims.Config()
    (case,) = [claims_sampling.Repeated(*case) for case in config.cases("repeated")]
    assert case == claims_sampling.Repeated(41, 1.0, 0.5, 12)
    (found,) = claims_sampling.repeated_queries([case], lambda: None).claims
    assert found.proved
    return found


@cache
def totals() -> Outcome:
    """Tables 2, 5, 7 and 9, recomputed."""
    return composition.EXPERIMENTS[0].run(composition.Config(), lambda: None)


def held() -> int:
    """How many printed totals hold for voters trained once."""
    table = totals().tables["totals"]
    assert all(value is not None for value in table.column("printed_epsilon"))
    return sum(table.column("holds_trained_once"))


def agreeing() -> int:
    """How many printed totals are those of theorem 2.3."""
    return sum(totals().tables["totals"].column("agrees"))


def together(data: str, epsilon: float) -> Guarantee:
    """What K = 11 voters trained once spend for any number of queries."""
    table = totals().tables["totals"].select(data=data)
    setting = majority.MajoritySetting(11, epsilon, 3, 1e-4, 3e-4)
    found = majority.Spending(setting, trained_once=True, slack=1e-4).total(100)[1]
    pair = pytest.approx((found.epsilon, found.delta), rel=1e-12)
    for name in ("epsilon", "delta"):
        assert len(set(table.column(f"trained_once_{name}"))) == 1
    assert (
        table.column("trained_once_epsilon")[0],
        table.column("trained_once_delta")[0],
    ) == pair
    return found


def apart() -> Guarantee:
    """The same for voters trained on disjoint data."""
    setting = majority.MajoritySetting(11, 0.0892, 3, 1e-4, 3e-4)
    spending = majority.Spending(setting, trained_once=True, voters_per_record=1)
    return spending.total(10**9)[1]


@cache
def accuracies(data: str = "mnist") -> dict[tuple[int, str], dict[str, Any]]:
    """Accuracy on the recorded votes, by m and method."""
    votes = load_votes(SHIPPED[data])
    records = [exact_record(votes, way, m) for m in (1, 3, 5, 7) for way in aggregators(votes, m)]
    return {(int(str(r["m"])), str(r["method"])): r for r in records}


def right(m: int, method: str, data: str = "mnist") -> float:
    """Mean over the training runs."""
    return accuracies(data)[m, method]["accuracy"]


def agreement_is_ahead(data: str, m: int = 3) -> float:
    """By how much the default prior, one p for all voters, is ahead of the paper's gamma."""
    return right(m, "common-p", data) - right(m, "surrogate", data)


def independence_loses(data: str = "mnist") -> bool:
    """To the paper's gamma, at m = 1, 3 and 5 alone, in each of three training runs."""
    at = accuracies(data)
    runs = [name for name in at[1, "surrogate"] if name.startswith("seed_")]
    assert len(runs) == 3
    loses = {
        m: all(at[m, "expected-error"][run] < at[m, "surrogate"][run] for run in runs)
        for m in (1, 3, 5, 7)
    }
    return loses == {1: True, 3: True, 5: True, 7: False}


def gnmax_ahead(data: str = "mnist") -> list[int]:
    """Each m at which it is ahead of the paper's gamma with the least noise for its label."""
    ms = (1, 3, 5, 7)
    return [m for m in ms if right(m, "gnmax-label", data) > right(m, "surrogate", data)]


def sets_agree() -> int:
    """How many programs have one optimum over the paper's corners and over the reduced set."""
    outcome = corner_sets.EXPERIMENT.run(corner_sets.EXPERIMENT.quick, lambda: None)
    gaps = outcome.tables["programs"].column("difference")
    assert max(gaps) < 1e-9
    return len(gaps)


def largest(allowed: Callable[[int], bool]) -> int:
    """The odd number of voters that is allowed, the next one not; none is skipped below 301."""
    found = max((k for k in (*range(3, 301, 2), 501, 1001, 4001) if allowed(k)), default=0)
    assert not allowed(found + 2)
    assert all(allowed(k) for k in range(3, min(found, 301), 2))
    return found


def pure(k: int) -> bool:
    return voters.priceable(majority.MajoritySetting(k, 0.1, 3))


def approximate(k: int) -> bool:
    return voters.priceable(majority.MajoritySetting(k, 0.1, 3, 1e-5, 1e-4))


def designable(k: int) -> bool:
    """Whether a design for Delta > 0 is begun, verified or not."""
    try:
        majority.CornerOracle(majority.MajoritySetting(k, 0.01, 3, 1e-5, 1e-4), partial=True)
    except ParameterError as error:
        return f"unverified above {largest(approximate)}." not in str(error)
    return True


@cache
def halved() -> bool:
    """Whether the majority of M of K sampled voters spends ceil(M / 2) epsilon."""
    sampled = [claims_sampling.Sampled(*case) for case in claims.Config().cases("sampled")[:1]]
    spending = claims_sampling.spent(sampled, (11, 21), 0.1, lambda: None)
    found = [claim for claim in spending.claims if claim.claim == claims_sampling.HALVED]
    return len(found) == 2 and all(claim.holds for claim in found)


def composition_gains_nothing() -> bool:
    """Whether theorem 2.3 gives no smaller epsilon than simple composition in Figure 2."""
    config = figures.EXPERIMENTS[0].quick
    voter = Guarantee(config.epsilon, config.mechanism_delta)
    k = config.mechanisms
    return all(
        min(found["refined"], found["plain"]) > found["simple"]
        for slack in (0.1, 1.0, 10.0)
        for found in [composition.terms_of_theorem(voter, k, slack * voter.delta)]
    )


def error_of_coins() -> float:
    """The largest error of any symmetric gamma at p_i = 1/2: of random ones, K up to 11."""
    rng, half = np.random.default_rng(9), Fraction(1, 2)
    errors = []
    for k in range(1, 12, 2):
        upper = [Fraction(float(value)) for value in rng.random((k + 1) // 2)]
        ones = claims_record.chance_of_one([*reversed(upper), *upper], [half] * k)
        truth = claims_record.chance_of_one([Fraction(1)] * (k + 1), [half] * k)
        errors.append(abs(float(truth - ones)))
    return max(errors)


def growth(size: Callable[[majority.MajoritySetting], int], delta: float) -> int:
    """The power of K with which a number of multisets grows, from K = 401 to 803."""
    few, many = (size(majority.MajoritySetting(k, 1e-3, 3, delta, delta)) for k in (401, 803))
    power = math.log(many / few) / math.log(803 / 401)
    assert power == pytest.approx(round(power), abs=0.05)
    return round(power)


def decides_alike(k: int) -> bool:
    """Whether the reduced set has the paper's set's maximum, for arbitrary gammas."""
    rng = np.random.default_rng(k)
    for shift in (0.0, 1e-3):
        setting = majority.MajoritySetting(k, 0.7, 1.0, shift, shift)
        for upper in (rng.random(setting.middle), (rng.random(setting.middle) < 0.5) * 1.0):
            found = test_separation.price(setting, upper)
            if abs(found - test_separation.full_excess(setting, upper)) > 1e-12:
                return False
    return True


def leaning(gamma: npt.NDArray[np.float64]) -> float:
    """The error of a noise function where all voters lean the same way: p ~ U[0, 0.1]."""
    return majority.expected_error(gamma, majority.parse_prior("uniform:0,0.1")).value


def groups_ahead() -> int:
    """Age groups of the generated users in which randomised response has the smaller largest TV."""
    table = movielens.run(movielens.Config(), lambda: None).tables["distances"]
    ages = list(dict.fromkeys(table.column("age")))
    ahead = 0
    for age in ages:
        part = table.select(age=age)
        largest = dict(zip(part.column("method"), part.column("largest"), strict=True))
        ahead += largest["uniform"] < min(largest["minimax"], largest["leximin"])
    assert ahead == len(ages)
    return ahead


def exact_everywhere() -> int:
    """Settings in which Algorithm 1 is optimal, and in fractions all that it is said to be."""
    experiment = program.EXPERIMENT
    outcome = experiment.run(replace(experiment.quick, second=None, points=2), lambda: None)
    rows: list[dict[str, Any]] = outcome.tables["settings"].records
    exact = ("sums_exact", "prior_exact", "private_exact", "least_exact")
    for row in rows:
        assert row["optimum"] == pytest.approx(row["gamma"], abs=1e-9)
        assert row["gamma"] - row["bound"] < 1e-6
        assert all(row[name] for name in exact)
        several = row["letters"] > 2 and row["prior"] != "uniform"
        assert (row["kernels_apart"] > 1e-9) == several
    return len(rows)


def digits_against() -> int:
    """Digits for which the KL mollifier is nearer than Algorithm 1, at most and in the mean."""
    experiment = digits.EXPERIMENT
    table = experiment.run(experiment.quick, lambda: None).tables["distances"]
    ours, theirs = (
        {row["digit"]: row for row in table.select(method=method).records}
        for method in ("minimax", "mollifier-kl")
    )
    return sum(
        theirs[digit]["largest"] < row["largest"] and theirs[digit]["mean"] < row["mean"]
        for digit, row in ours.items()
    )


def geometric_is_not_enough() -> bool:
    """Whether a private kernel beats every answer to geometric noise, its loss in the mean."""
    loss = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    best = kernel.optimal_kernel(loss, epsilon=1.0, graph="path").value
    a = math.exp(-1.0)
    noise = a ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    noise *= np.array([1 / (1 + a), (1 - a) / (1 + a), 1 / (1 + a)])
    answers = [
        float((noise @ np.eye(2)[list(said)] * loss).sum() / 3)
        for said in product((0, 1), repeat=3)
    ]
    return best < min(answers) - 1e-6


def remark_8_says_little() -> bool:
    """Whether that is so for the default records of Figure 2, wherever the remark is stated."""
    config = compositions.Config()
    ends = [extreme(0) / 100, extreme(-1) / 100]
    laws = [[share, 1 - share] for share in ends]
    found = []
    for n, epsilon in product(config.records, config.epsilons):
        count = smoothed.SamplingHistogram.of_lost_rate(n, config.lost_rates[0])
        if epsilon > -math.log(count.lost / count.records):
            bound = smoothed.published_log_bound(count, epsilon, laws)
            delta = smoothed.smoothed_delta(count, epsilon, ends).delta
            found.append(bound > math.log(0.99) and delta < 1e-4)
    return bool(found) and all(found)


def times(mechanisms: int, epsilon: float) -> dict[str, float]:
    return {"product": mechanisms * epsilon}


def swept_again() -> int:
    """How many points of the tools' grid a second sweep takes from the table."""
    text = (ROOT / TOOLS).read_text(encoding="utf-8")
    grid = ast.literal_eval(re.findall(r"^grid = (.*)$", text, flags=re.MULTILINE)[0])
    with TemporaryDirectory() as folder:
        table = Path(folder) / "sweep.jsonl"
        assert dpopt.sweep(times, grid, table=table).reused == 0
        return dpopt.sweep(times, grid, table=table).reused


def roundings(epsilon: float) -> tuple[float, float]:
    """The worst relative error of delta, and the least log of it, at three of 500,000 records."""
    ones = np.array([1, 125_000, 250_000])
    logs = test_binary.log_delta_at(500_000, 499_000, epsilon, ones)
    with mpmath.workdps(50):
        errors = [
            relative_error(
                value, test_binary.delta_by_definition(500_000, 499_000, epsilon, int(h))
            )
            for value, h in zip(logs, ones, strict=True)
        ]
    return max(errors), float(min(logs))


def first_violation() -> int:
    """The least T at which DP's delta with replacement is below T / (n + 1), n = 50."""

    def delta(drawn: int) -> float:
        count = smoothed.SamplingHistogram(50, drawn, replacement=True)
        found = math.exp(smoothed.worst_case_delta(count, 20.0).log_delta)
        assert found == pytest.approx(1 - (1 - 1 / 50) ** drawn, rel=1e-9)
        return found

    return next(drawn for drawn in range(1, 9) if delta(drawn) < drawn / 51 - 1e-12)


def halves_hold() -> bool:
    """Whether (eta epsilon, 0)-DP holds with noise from eta = 1/2 on, and fails below it."""

    def holds(drawn: int, epsilon: float) -> bool | None:
        return smoothed.noisy_guarantee(smoothed.NoisyHistogram(1000, drawn, epsilon)).holds

    epsilons = (0.1, 1.3, 4.0, 20.0, 80.0, 600.0)
    kept = all(holds(drawn, epsilon) is True for drawn in (500, 750) for epsilon in epsilons)
    return kept and holds(490, 1.3) is True and holds(490, 80.0) is False


def remark_8(records: int, drawn: int, growth: Fraction) -> bool:
    """Whether Remark 8 holds for fair coins, in fractions but for its own bound."""
    bound = smoothed.published_log_bound(
        smoothed.SamplingHistogram(records, drawn), math.log(growth), [[0.5, 0.5]]
    )
    return test_bounds.log(test_bounds.coins(records, drawn, growth)) <= bound


def remark_8_from_here() -> bool:
    """Whether it holds at the least T with T/n >= 1/sqrt(6), epsilon barely above its least."""
    return all(
        remark_8(n, drawn, Fraction(n, n - drawn) * Fraction(1001, 1000))
        for n in (5, 12, 25, 40)
        for drawn in (math.ceil(n / math.sqrt(6)),)
    )


def enumerated(delta: float) -> int:
    """The largest odd K whose full set is enumerated."""
    settings = [majority.MajoritySetting(k, 0.1, 3, delta, 10 * delta) for k in range(3, 301, 2)]
    return max(s.mechanisms for s in settings if majority.full_size(s) <= check.FULL_LIMIT)


def realised(prior: list[float]) -> float:
    law = np.array([0.05, 0.95])
    released = public_prior.minimax_kernel(prior, 2.0).apply(law)
    return float(np.abs(released - law).sum() / 2)


def labels_composed() -> float:
    """Epsilon of 100 GNMax labels as Renyi divergences, at the total delta of theorem 2.3."""
    total = general_composition(Guarantee(0.2676, 3e-4), 100, 1e-4)
    noise = gnmax.gnmax_concentrated(gnmax.calibrate_gnmax(Guarantee(0.2676, 3e-4)).sigma)
    return concentrated_composition(*[noise] * 100).convert(total.delta).epsilon


def noisy() -> float:
    """The least epsilon of delta = 0 at n = 8, T = 1, epsilon = 4 ln 3."""
    return float(smoothed.general_epsilon(smoothed.NoisyHistogram(8, 1, 4 * math.log(3))).max())


def surrogate_at_10() -> float:
    """The paper's optimised gamma at 10 of 11 ones, m = 3, with the Delta of Figure 2."""
    target = figures.EXPERIMENTS[0].quick.targets[1]
    design = majority.design(
        11, 0.1, 3, mechanism_delta=1e-5, delta=target.delta, objective="surrogate"
    )
    return float(design.gamma[10])


def least_gamma() -> float:
    """The least gamma of the program at the first target of Figure 6."""
    target = figures.EXPERIMENTS[1].quick.targets[0]
    design = majority.design(
        35,
        0.1,
        target.allowance,
        mechanism_delta=1e-5,
        delta=target.delta,
        objective="surrogate",
    )
    return float(design.gamma.min())


def of_two_values() -> float:
    """The largest delta of the two heuristic neighbours where every delta is T/n."""
    config = sgd_bias.Config()
    values = databases(config.records, config.seed)[TWO_VALUES]
    share = config.drawn / config.records
    whole = smoothed.sgd_profile(values, config.drawn, config.epsilons)
    assert whole.delta == pytest.approx(np.full(len(config.epsilons), share), rel=1e-9)
    two = smoothed.sgd_profile(values, config.drawn, config.epsilons, neighbours="extreme")
    return float(two.delta.max())


@cache
def algorithm_6() -> tuple[float, float, float, float, float]:
    """At 5:0: Algorithm 6 as printed, with a logarithm, the divergence, both bounds."""
    votes = (5, 0, 1.0, 1.5)
    found = gnmax.data_dependent_rdp([5, 0], 1.0, 1.5)
    printed = as_printed(*votes)
    logarithm = as_printed(*votes, logarithm=True)
    assert printed is not None
    assert logarithm is not None
    assert logarithm == pytest.approx(math.log(printed * 0.5) / 0.5, rel=1e-12)
    exact = bernoulli_divergence(5 / SENSITIVITY, 3 / SENSITIVITY, 1.5)
    return printed, logarithm, exact, found.bound or 0.0, found.gaussian


# Votes over more than two classes.


def multisets(count: int, *, reduced: bool) -> int:
    """Multisets of the corners of voters over three classes, those of the theorem if reduced."""
    chosen = combinations_with_replacement(product(range(3), repeat=2), count)
    return sum(
        not reduced or all(y == z or (z, y) not in pairs for y, z in pairs) for pairs in chosen
    )


def in_a_row(classes: int) -> int:
    """Maps of four letters in a row to classes, each class having letters in a row."""
    return sum(
        all(
            word[at] != word[end] or len({*word[at : end + 1]}) == 1
            for at, end in combinations(range(4), 2)
        )
        for word in product(range(classes), repeat=4)
    )


def missed(partitions: Partitions, law: Sequence[Fraction]) -> float:
    """The chance to miss the plurality, every histogram equally likely."""
    right = sum(
        (
            orders * levels[0][1] * law[partitions.starts[state]]
            for state, (orders, levels) in enumerate(
                zip(partitions.orders, partitions.levels, strict=True)
            )
        ),
        Fraction(0),
    )
    return float(1 - right / sum(partitions.orders))


@cache
def bounded_ladder() -> tuple[float, float]:
    """What the ladder that the bound allows spends, in epsilon, and how often it misses."""
    partitions = Partitions(11, 3)
    allowed = vote_ratio_below(11, 0.1, 3)
    assert allowed is not None
    step = allowed.limit_denominator(10_000)
    rungs = [ladder(state, step) for state in partitions.states]
    law = [
        rung[state.index(count)]
        for rung, state, levels in zip(rungs, partitions.states, partitions.levels, strict=True)
        for count, _ in levels
    ]
    return spends(law, Fraction(641, 580)), missed(partitions, law)


def spends(law: Sequence[Fraction], ratio: Fraction) -> float:
    """What a rule on the votes of eleven voters over three classes spends, in their epsilon."""
    return math.log(spent(Partitions(11, 3), law, ratio).ratio) / math.log(ratio)


@cache
def samples(ratio: Fraction = Fraction(641, 580)) -> list[float]:
    """What the plurality of 1 to 11 sampled voters of eleven spends, in their epsilon."""
    partitions = Partitions(11, 3)
    return [spends(sampled_plurality(partitions, m), ratio) for m in range(1, 12)]


def more_in_all(classes: int, share: int) -> bool:
    """Whether the plurality of M = C t voters spends (C - 1) t epsilon or more."""
    assert classes == 3
    return samples()[classes * share - 1] >= (classes - 1) * share - 1e-9


def least_ratio(classes: int) -> Fraction:
    """(C - 2) / 4, once two histograms prove that the ladder is not private below it."""
    least = Fraction(classes - 2, 4)
    rest = (1,) * (classes - 3)
    for ratio, holds in ((least, True), (least * Fraction(999, 1000), False)):
        one, other = ladder((3, 3, 1, *rest), ratio)[1], ladder((3, 2, 2, *rest), ratio)[1]
        assert (one <= ratio * other) == holds
    return least


def ordered_top(classes: int, ratio: Fraction) -> Fraction:
    """T(m) - T(l) of the ladder's second pair: not negative where it is private."""
    rest = (1,) * (classes - 3)
    return ladder((3, 2, 1, *rest), ratio)[0] - ladder((3, 3, *rest, 0), ratio)[0]


@cache
def second_root(classes: int) -> float:
    """The least r from which that holds, by halving."""
    low, high = Fraction(11, 10), Fraction(8)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if ordered_top(classes, middle) >= 0 else (middle, high)
    return float(high)


def quartic(classes: int, r: Fraction) -> Fraction:
    """The polynomial q of the page."""
    c = classes
    square = c * c - 7 * c
    return 12 * r**4 + (25 - c) * r**3 - (square + 18) * r**2 - (square + 16) * r + c - 3


def quartic_decides() -> bool:
    """Whether q has the sign of the second pair."""
    ratios = [Fraction(word) for word in ("3/2", "5/2", "14/5", "3", "7/2", "5", "7")]
    return all(
        (ordered_top(classes, r) >= 0) == (quartic(classes, r) >= 0)
        for classes in (6, 12, 13, 16, 24)
        for r in ratios
    )


def private_from(classes: int) -> bool:
    """Whether the ladder of C to C + 5 ballots is private just above what the pairs ask for.

    And, of one of these numbers of ballots, not just below. By all pairs, in double precision.
    """
    least = max((classes - 2) / 4, second_root(classes))
    excess = {1.0001: 0.0, 0.999: 0.0}
    for ballots, factor in product(range(classes, classes + 6), excess):
        rules, ratio = rules_of(ballots, classes), least * factor
        over = rules.spent(rules.ladder(ratio)) - math.log(ratio)
        excess[factor] = max(excess[factor], over)
    return excess[1.0001] < 1e-9 and excess[0.999] > 1e-5


def proved_from(least: Mapping[int, tuple[str, int]]) -> bool:
    """Whether the ladder of these classes, r and reaches is private for every number of ballots."""
    return all(
        spent_by_any_number(classes, Fraction(r), reach).private
        for classes, (r, reach) in least.items()
    )


def coin(k: int, weights: npt.NDArray[np.float64]) -> float:
    """How often the best rule of DaRRM's form misses the majority, by its program's dual."""
    found = majority.design(k, 0.1, 1, weights=weights)
    assert found.bound is not None
    assert found.bound == pytest.approx(found.value, abs=1e-9)
    return (1 - found.bound / float(np.sum(weights))) / 2


def seven_of_ten(k: int) -> npt.NDArray[np.float64]:
    """The law of the larger count for p = 0.7, from (K + 1) / 2 on."""
    law = [math.comb(k, ones) * 0.7**ones * 0.3 ** (k - ones) for ones in range(k + 1)]
    return np.array([law[ones] + law[k - ones] for ones in range((k + 1) // 2, k + 1)])


def minority_answered() -> bool:
    """The best rule of eleven voters: at 7 to 4 alone the minority has more than half."""
    found = multiclass.design(11, 2, 0.1, 1)
    answers = found.kernel[0::2] < 0.5
    return answers.tolist() == [state == (7, 4) for state in found.setting.partitions.states]


@cache
def ballots_of_thirty(**changed: Any) -> plurality.PluralityDesign:
    return plurality.design(30, 3, 0.5, **changed)


@cache
def safe_means() -> tuple[float, float]:
    """The least and the largest mean regret of rules of the least worst one, by two programs."""
    setting = ballots_of_thirty(objective="minimax").setting
    problem, partitions = setting.problem(), setting.partitions
    least = dpopt.solve(problem).objective
    costs = [
        orders * many * (state[0] - count) / sum(partitions.orders)
        for state, levels, orders in zip(
            partitions.states, partitions.levels, partitions.orders, strict=True
        )
        for count, many in levels
    ]
    problem.set_bounds("worst", upper=least + 1e-9)
    means = []
    for sign in (1, -1):
        problem.minimise({"kernel": sign * np.array(costs)})
        means.append(sign * dpopt.solve(problem).objective)
    return means[0], means[1]


def priced(classes: int) -> int:
    """The most voters whose program is priced, no smaller number being refused."""
    allowed = [priceable(k, classes) for k in range(1, 400)]
    most = sum(allowed)
    assert all(allowed[:most])
    return most


def rules_only() -> bool:
    """Whether voters with a Delta have a rule and no program."""
    with pytest.raises(ParameterError, match="it must be 0 with rule 'optimal'"):
        multiclass.design(5, 3, 0.1, 3, mechanism_delta=0.01)
    return (
        multiclass.design(5, 3, 0.1, 3, mechanism_delta=0.01, rule="ladder").certificate is not None
    )


@cache
def prefixes() -> local.WorkloadDesign:
    return local.workload_mechanism("prefix", 8, epsilon=1.0)


@cache
def steps(free: int, axes: int) -> int:
    """The votes that verify.py adds: of as many voters, on so many axes of two pairs of corners."""
    if axes == 0:
        return 0
    here = sum(free - n + 1 + steps(free - n, axes - 1) for n in range(1, free + 1))
    return steps(free, axes - 1) + 2 * here


def voters_checked(axes: int) -> int:
    """The most voters of one group, an odd number up to 4001, for which an eighth is allowed."""
    return next(k for k in range(1, 4002, 2) if k == 4001 or steps(k + 2, axes) // 8 > verify.MOST)


def as_checked(axes: int) -> bool:
    """Whether nine voters take so many steps and no fewer."""
    shift = 0.0 if axes == 1 else 1e-5
    setting = majority.MajoritySetting(9, 0.1, 3, shift, 10 * shift).to_dict()

    def taken(most: int) -> bool:
        with patch.object(verify, "MOST", most):
            try:
                verify.Voters(setting, None).private([0] * 5, 62)
            except verify.Malformed:
                return False
        return True

    return taken(steps(9, axes) // 8) and not taken(steps(9, axes) // 8 - 1)


def values_checked() -> int:
    """To thousands, the most values of q that verify.py takes of a rule of the smallest count."""
    setting = roo.MinCount(10**9, 2, 1e-6).to_dict()

    def taken(values: int) -> bool:
        try:
            verify.roo(setting, [0] * values, None, None)
        except verify.Malformed:
            return False
        return True

    assert not taken(267_000)
    return 266_000 if taken(266_000) else 0


def letters_checked() -> int:
    """The most letters whose patterns verify.py goes through."""

    def taken(letters: int) -> bool:
        none, ones = [[Fraction(0)] * letters] * letters, [Fraction(1)] * letters
        try:
            verify.at_most_at_all_patterns(none, ones, ones, Fraction(2))
        except verify.Malformed:
            return False
        return True

    assert not taken(18)
    return 17 if taken(17) else 0


def letters_designed() -> int:
    """The most letters of linear queries."""
    with pytest.raises(ParameterError, match="letters is 65"):
        local.WorkloadSetting("prefix", 65)
    return local.WorkloadSetting("prefix", 64).letters


def letters_alike() -> int:
    """The most letters of a histogram of uniform ones."""
    with pytest.raises(ParameterError, match="letters is 129"):
        local.WorkloadSetting("histogram", 129)
    return local.WorkloadSetting("histogram", 128).letters


def bound_lost() -> int:
    """A whole epsilon at which 26 letters have no bound, and two below which they have one."""
    lost = [
        epsilon
        for epsilon in (8, 10)
        if local.workload_mechanism("prefix", 26, epsilon=epsilon).float_bound is None
    ]
    (found,) = lost
    return found


def diagonals_told() -> int:
    """The most letters of which a file tells the diagonal; one more is not told."""
    found = {n: public_prior.minimax_kernel([1 / n] * n, 1.0).to_dict() for n in (100_000, 100_001)}
    return max(letters for letters, told in found.items() if "diagonal" in told)


def solved() -> int:
    """How many sorted histograms of three classes the largest program of the plurality has."""

    def taken(records: int) -> bool:
        try:
            plurality.PluralitySetting(records, 3, 1.0)
        except ParameterError:
            return False
        return True

    most = max(k for k in range(200, 300) if taken(k))
    assert not taken(most + 1)
    return len(Partitions(most, 3).states)


# Proofs and closed forms.


@cache
def form(name: str) -> ClosedForm:
    """The optimum as a function of r = e^epsilon."""
    if name in ("journal", "exact"):
        return dpopt.closed_form(roo.MinCount(7, 2, 1.0, rule=name))
    if name == "ballots":
        return dpopt.closed_form(plurality.PluralitySetting(3, 3, 1.0, objective="minimax"))
    if name == "prior":
        return dpopt.closed_form(public_prior.PublicPriorSetting([0.125, 0.25, 0.625], 1.0))
    if name == "votes":
        return dpopt.closed_form(majority.MajoritySetting(5, 1.0, 2, objective="surrogate"))
    return dpopt.closed_form(path_of(3, name))


def path_of(inputs: int, loss: str = "absolute") -> kernel.KernelSetting:
    """The largest expected loss along a path."""
    return kernel.KernelSetting(loss, 1.0, graph="path", inputs=inputs, objective="minimax")


@cache
def journal_gap() -> tuple[float, float, float]:
    """Where the journal's first formula breaks, where it ends, from where its second is private."""
    best = roo.MinCount(7, 2, 1.0, rule="exact")
    parts = [part for piece in form("journal").pieces for part in piece.parts]
    (end, first), (_, second) = parts[:2]
    ((_, low),) = private_where(best, first)
    ((high, _),) = private_where(best, second)
    assert low is not None
    assert end is not None
    assert low.polynomial == "175 r^2 - 223 r + 7"
    # What comes later is private wherever it is used.
    for (start, _), (stop, later) in pairwise(parts[1:]):
        ((since, until),) = private_where(best, later)
        assert start is not None
        assert not start < since
        assert until is None or (stop is not None and not until < stop)
    return float(low), float(end), float(high)


def gap_of_the_journal() -> bool:
    """Whether it is from 1.24208 to 4/3, and formulas meet at 1.32708 within it."""
    low, meet, high = journal_gap()
    return round(low, 5) == 1.24208 and round(meet, 5) == 1.32708 and high == pytest.approx(4 / 3)


def four_counts() -> bool:
    """Whether the README's formula and fraction are those that are found."""
    asked = path_of(4)
    told = "2 r (r^2 + r + 1)/((r + 1) (r^3 + r^2 + r - 1))"
    return str(dpopt.closed_form(asked).pieces[0].value) == told and dpopt.exact_optimum(
        asked, 2
    ).value == Fraction(28, 39)


def breaks(name: str) -> list[str]:
    """The polynomials whose roots part the formulas."""
    return [root.polynomial for root in form(name).breaks]


def sizes_refused(function: Callable[[], object]) -> list[int]:
    """The numbers of variables and rows that a refusal names first."""
    with pytest.raises(ParameterError) as caught:
        function()
    return [int(n.replace(",", "")) for n in NUMBER.findall(str(caught.value).partition("most")[2])]


def exact_sizes() -> list[int]:
    return sizes_refused(lambda: dpopt.exact_optimum(path_of(80), 2))[:2]


def formula_sizes() -> list[int]:
    return sizes_refused(lambda: dpopt.closed_form(path_of(30)))[:2]


@cache
def exit_codes() -> tuple[int, int, int]:
    """What verify.py ends with: for what holds, for no file, for one unit too many."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        design = dpopt.design(path_of(3))
        design.save(path, proof=True)
        proof = Path(folder) / "x.proof.json"
        holds, none = verify.main([str(path), str(proof)]), verify.main([f"{path}.not"])
        claimed = json.loads(proof.read_text())
        proof.write_text(json.dumps(claimed | {"bound": "1"}))
        return holds, none, verify.main([str(path), str(proof)])


# Votes on real data.


@cache
def responses() -> Outcome:
    """Private voters by randomised response, whose accuracies are exact."""
    return private.run(private.Config(teachers=("response",)), lambda: None)


def private_voters(digits: str, epsilon: float, m: int) -> dict[str, float]:
    """The accuracy of each way that keeps the budget of one label."""
    part = responses().tables["accuracy"].select(digits=digits, epsilon=epsilon, m=m)
    return {row["method"]: row["accuracy"] for row in part.records if row["within_budget"]}


def cases() -> list[tuple[str, float, int]]:
    config = private.Config()
    return list(product(config.digits, config.epsilon, config.allowance))


def one_voter_wins() -> int:
    """In how many cases no way is more accurate than one voter that spends m epsilon."""
    ways = [private_voters(*case) for case in cases()]
    return sum(max(way.values()) <= way["one-strong"] + 1e-9 for way in ways)


def ladder_behind_a_sample() -> int:
    """For ten digits: in how many of its nine cases the plurality of m voters is ahead."""
    ways = [private_voters(*case) for case in cases() if len(case[0]) == 10]
    assert len(ways) == 9
    return sum(way["ladder"] < way["sampled"] for way in ways)


@cache
def plain_teachers() -> Outcome:
    config = plain.Config(voters=(30,), epsilon=(0.1, 0.2, 0.3), optimal=())
    return plain.run(config, lambda: None)


def one_label(epsilon: float, method: str) -> float:
    table = plain_teachers().tables["accuracy"]
    return table.select(epsilon=epsilon, method=method).column("accuracy")[0]


def lowered() -> list[bool]:
    """Whether the ladder's r is below e^epsilon, by epsilon."""
    part = plain_teachers().tables["accuracy"].select(method="ladder")
    return [
        ratio < math.exp(epsilon) * (1 - 1e-6)
        for ratio, epsilon in zip(part.column("parameter"), part.column("epsilon"), strict=True)
    ]


def splits_ahead() -> list[int]:
    """In how many of five splits the ladder is ahead of permute-and-flip, by epsilon."""
    table = plain_teachers().tables["ladder"].select(beside="permute-and-flip-audited")
    assert set(table.column("seeds")) == {5}
    return table.column("seeds_ahead")


@cache
def many_labels() -> Outcome:
    config = plain.LabelsConfig(epsilon=(1.0,), labels=(1, 3, 10))
    return plain.run_labels(config, lambda: None)


def each_label(labels: int, method: str) -> float:
    table = many_labels().tables["accuracy"]
    return table.select(labels=labels, method=method).column("accuracy")[0]


@cache
def teachers_of_images() -> Outcome:
    config = images.Config(allowance=(1, 3))
    return images.run(config, lambda: None)


def image_label(dataset: str, m: int, method: str) -> float:
    table = teachers_of_images().tables["labels"]
    return table.select(dataset=dataset, m=m, method=method).column("accuracy")[0]


def no_better_than_one() -> bool:
    """At m = 1: whether the default's gamma and the paper's are right as often as one teacher."""
    return all(
        image_label(dataset, 1, method)
        == pytest.approx(image_label(dataset, 1, "one-teacher"), abs=1e-9)
        for dataset in images.Config().datasets
        for method in ("common", "surrogate")
    )


def free_from() -> int:
    """The least number of labels from which on the private teachers' majority is ahead, of all."""
    table = teachers_of_images().tables["totals"]
    ahead = set()
    for dataset, labels in product(images.Config().datasets, images.Config().labels):
        part = table.select(dataset=dataset, teachers_see="same images", labels=labels)
        at = {row["method"]: row["accuracy"] for row in part.records}
        if at["private-majority"] > max(at["gnmax"], at["ladder"]):
            ahead.add((dataset, labels))
    least = min(labels for _, labels in ahead)
    later = [labels for labels in images.Config().labels if labels >= least]
    assert ahead == set(product(images.Config().datasets, later))
    return least


LINEAR = (
    "tests/majority/test_prior.py::"
    "test_the_linear_weights_lose_little_to_the_exact_program_over_samples"
)


MANY_CLASSES = (
    "tests/ballots/test_ladder_theorem.py::test_the_least_ratios_that_are_told_for_many_classes"
)
OTHER_EDGES = "tests/multiclass/test_theorems.py::test_edges_between_two_other_classes_are_needed"


# What both a page of findings and PAPERS state.
MULTISETS: dict[str, Computed] = {
    "2": lambda: growth(voters.reduced_size, 0.0),
    "4": lambda: growth(voters.reduced_size, 1e-5),
}
CONSTANTS: dict[str, Computed] = {
    "1.02": lambda: min(larger()),
    "2.9": lambda: max(larger()),
    "1.8": lambda: below_tau().value_found,
    "1.6": lambda: below_tau().value_claimed,
}
EXTREMES: dict[str, Computed] = {"5.53": lambda: extreme(0), "77.14": lambda: extreme(-1)}

CLAIMS: tuple[Claim, ...] = (
    # README: figure, first example, prior, roo, kernels, smoothed.
    Claim(README, "Both need Python 3.11 or later"),
    Claim(README, "error at K = 11]", "11"),
    Claim(README, "program for the expected error itself make of K = 11 voters", "11"),
    Claim(
        README,
        "0.0256 if all voters share one p ~ U[0, 1]; subsampling: 0.0747",
        "0 1",
        {
            "0.0256": lambda: vote().expected_error,
            "0.0747": lambda: (
                majority.assess(vote().setting, majority.subsampling(11, 3)).expected_error
            ),
        },
    ),
    Claim(README, "all 364 multisets", computed={"364": checked}),
    Claim(
        README,
        "misses the plurality with probability 0.0601; the plurality of a sample: 0.1655",
        computed={
            "0.0601": lambda: multiclass.design(11, 3, 0.1, 3).value,
            "0.1655": lambda: missed(Partitions(11, 3), sampled_plurality(Partitions(11, 3), 5)),
        },
        # Five voters: the most that may be sampled.
        holds=lambda: [round(m, 9) for m in samples()[4:6]] == [3, 4],
    ),
    Claim(
        README,
        "(0.277 of the signal here)",
        computed={"0.277": lambda: voted("expected-error").gamma[-1]},
    ),
    Claim(
        README,
        "mean regret in ballots 0.511; permute-and-flip has 0.565, the exponential mechanism "
        "0.889 the largest: 1.104; permute-and-flip 1.294",
        computed={
            "0.511": lambda: ballots_of_thirty().value,
            "0.565": lambda: ballots_of_thirty(rule="permute-and-flip").mean_regret,
            "0.889": lambda: ballots_of_thirty(rule="exponential").mean_regret,
            "1.104": lambda: ballots_of_thirty(objective="minimax").value,
            "1.294": lambda: ballots_of_thirty(rule="permute-and-flip").worst_regret,
        },
    ),
    Claim(
        README,
        "not below log((C - 2) / 4), from 13 classes on not even there.",
        "2 4 13",
        holds=lambda: (
            [least_ratio(c) for c in range(7, 13)] == [Fraction(c - 2, 4) for c in range(7, 13)]
            and second_root(12) < 10 / 4
            and second_root(13) > 11 / 4
        ),
    ),
    Claim(
        README,
        "q_0, q_1, ...; 0 from m = 17 on",
        "0",
        {"17": lambda: len(roo.min_count(1000, 10, 0.1).q)},
    ),
    Claim(
        README,
        "1.0067 e^epsilon: not private",
        computed={"1.0067": lambda: excess(20, 3, 0.1, "conference")},
    ),
    Claim(
        README,
        "0.8748..., the least worst-case",
        computed={"0.8748": lambda: public_prior.minimax_utility([0.05, 0.1, 0.15, 0.2, 0.5], 1.0)},
    ),
    Claim(
        README,
        "largest expected |error| 0.7743, proved optimal to 1e-11",
        computed={"0.7743": lambda: path().value, "1e-11": lambda: max(path().gap or 0.0, 1e-11)},
    ),
    Claim(
        README,
        "13 for all words of 11 bits",
        "11",
        {"13": lambda: words_program().size},
    ),
    Claim(
        README,
        "a count of 0..8 people, with an error of 3 or more in 1 of 20 answers at most 0.7839, and "
        "what risk is worth moved by 1e-14;",
        "3 1 20",
        {"0.7839": lambda: risky().objective, "1e-14": lambda: max(risky_cost(), 1e-14)},
    ),
    Claim(
        README,
        "the least epsilon of any table, enclosed: 1.25277",
        # A bound from above, rounded up.
        computed={
            "1.25277": lambda: math.ceil(1e5 * dpopt.certify([[0.8, 0.2], [0.3, 0.7]]).upper) / 1e5
        },
    ),
    Claim(README, "-31.9", computed={"31.9": election}),
    Claim(
        README,
        "0.47807 with 18 records of each",
        computed={"0.47807": lambda: inside().delta, "18": lambda: inside().argmax[0]},
    ),
    Claim(
        README,
        "23.0314 for each person, which none is below 32.6046",
        computed={
            "23.0314": lambda: prefixes().value,
            "32.6046": lambda: prefixes().compare()["subset selection"],
        },
        holds=lambda: 0 <= prefixes().value - prefixes().compare()["bound"] < 1e-9,
    ),
    Claim(TOOLS, "workers=2: in two processes", "2"),
    Claim(TOOLS, "6: nothing is computed twice", computed={"6": swept_again}),
    Claim(
        TOOLS,
        "100 releases of 4-ary randomised response at e^epsilon = 2 compose to 36.9 at "
        "delta = 1e-6, "
        "basic composition to 69.3)",
        "100 4 2 1e-6",
        {"36.9": composed, "69.3": lambda: 100 * math.log(2)},
    ),
    # README: what it found, the style's width.
    Claim(README, "5.5 inches wide", computed={"5.5": lambda: STYLES["neurips"].text}),
    Claim(
        README,
        "O(K^2) and O(K^4) multisets",
        computed=MULTISETS,
        holds=half_the_error,
    ),
    # Limits.
    Claim(
        LIMITS,
        "up to K = 21 (Delta > 0) or 191 (Delta = 0)",
        "0",
        {"21": lambda: enumerated(1e-5), "191": lambda: enumerated(0.0)},
    ),
    Claim(LIMITS, "has the sign of sum p - K/2,", "2"),
    Claim(
        LIMITS,
        "double precision, 1e-11 relative where tested",
        computed={"1e-11": lambda: max(*(roundings(e)[0] for e in (0.04, 2.0)), 1e-11)},
    ),
    Claim(
        LIMITS,
        "K is at most 4001 for Delta = 0, and 501 otherwise. Beyond 501 "
        "and up to 1001, a design for Delta > 0",
        "0",
        {
            "4001": lambda: largest(pure),
            "501": lambda: largest(approximate),
            "1001": lambda: largest(designable),
        },
    ),
    Claim(
        LIMITS,
        "priced up to 300 voters for two classes, 58 for three, 17 for four, 10 for five and 7 for "
        "six.",
        computed={
            "300": lambda: priced(2),
            "58": lambda: priced(3),
            "17": lambda: priced(4),
            "10": lambda: priced(5),
            "7": lambda: priced(6),
        },
    ),
    Claim(LIMITS, "For voters with a Delta above 0 only these rules", "0", holds=rules_only),
    Claim(
        LIMITS,
        "up to 4,001 voters for Delta = 0 and 97 otherwise, rules of the smallest count with up to "
        "266,000 values of q, and proofs of linear queries over up to 17 letters.",
        "0",
        {
            "4,001": lambda: voters_checked(1),
            "97": lambda: voters_checked(3),
            "266,000": values_checked,
            "17": letters_checked,
        },
        holds=lambda: all(as_checked(axes) for axes in (1, 3)),
    ),
    Claim(
        LIMITS,
        "A saved file has 256 MiB at most.",
        computed={"256": lambda: LARGEST_FILE / 2**20},
    ),
    Claim(
        LIMITS,
        "have at most 1,000,000 values of q that are not 0. The program of the optimal sampler "
        "takes data sets of up to 2,000 sorted histograms, over up to 100 letters. Files of a "
        "public prior of more than 100,000 letters leave out",
        "0",
        {
            "1,000,000": lambda: rules._LONGEST,
            "2,000": lambda: MOST_HISTOGRAMS,
            "100": lambda: MOST_LETTERS,
            "100,000": diagonals_told,
        },
    ),
    Claim(
        LIMITS,
        "designed for up to 64 letters. The bound is looked at for every pattern up to 24 letters,",
        computed={"64": letters_designed, "24": lambda: ENUMERATED},
    ),
    Claim(
        LIMITS,
        "Beyond 24 letters and for an epsilon of about 10 or more, that allowance is all of the "
        "bound, and there is none.",
        computed={"24": lambda: ENUMERATED, "10": bound_lost},
    ),
    Claim(LIMITS, "there are up to 128, and the closed form", computed={"128": letters_alike}),
    Claim(LIMITS, "takes up to 5,000 sorted histograms.", computed={"5,000": solved}),
    # Proofs that are checked alone, closed forms.
    Claim(
        README,
        "2 r (r^2 + r + 1)/((r + 1) (r^3 + r^2 + r - 1)) for 1 <= r (proved) 28/39",
        "2 1 3 28 39",
        holds=four_counts,
    ),
    Claim(
        README,
        "of 7 records and 2 letters, where e^epsilon is between 1.24208 and 4/3.",
        "7 2 4 3",
        {"1.24208": lambda: journal_gap()[0]},
        holds=gap_of_the_journal,
    ),
    Claim(
        PAPERS,
        "The journal's algorithm 2 at n = 7, k = 2 is not private exactly where e^epsilon is in "
        "(1.24208, 4/3), 1.24208 a root of 175 r^2 - 223 r + 7.",
        "2 7 4 3 175 223",
        {"1.24208": lambda: journal_gap()[0]},
        holds=gap_of_the_journal,
    ),
    Claim(PAPERS, "(INFORMS J. Comput. 28)", "28"),
    Claim(
        OBSCURE,
        "At n = 7, k = 2 the journal's recursion is private for every $ but those with $ strictly "
        "between 1.24208, a root of 175 r^2 - 223 r + 7, and 4/3:",
        "7 2 175 223 4 3",
        {"1.24208": lambda: journal_gap()[0]},
        holds=gap_of_the_journal,
    ),
    Claim(CLOSED, "the largest mean error, r = 2:", "2"),
    Claim(
        CLOSED,
        "where e^epsilon is the square root of 3, and 3:",
        "3",
        holds=lambda: breaks("squared") == ["r^2 - 3", "r - 3"],
    ),
    Claim(
        CLOSED,
        "the breaks are the square root of 2, then 2 and 3.",
        "2 3",
        holds=lambda: breaks("ballots") == ["r^2 - 2", "r - 2", "r - 3"],
    ),
    Claim(
        CLOSED,
        "that may spend 2 epsilon has five intervals and four formulas;",
        "2",
        holds=lambda: (
            len(form("votes").pieces) == 5
            and len({str(piece.value) for piece in form("votes").pieces}) == 4
        ),
    ),
    Claim(
        CLOSED,
        "The first formula is used up to r = 1.32708 and is private up to 1.24208 only; the second "
        "begins at 1.32708 and is private from 4/3 on. So for r between 1.24208 and 4/3 the rule",
        "4 3",
        {"1.32708": lambda: journal_gap()[1], "1.24208": lambda: journal_gap()[0]},
        holds=gap_of_the_journal,
    ),
    Claim(
        CLOSED,
        "A float of 0.25 is 1/4, but one of 0.3 is no 3/10:",
        "0.25 1 4 0.3 3 10",
        holds=lambda: Fraction(0.25) == Fraction(1, 4) and Fraction(0.3) != Fraction(3, 10),
    ),
    Claim(
        CLOSED,
        "for the prior 1/8, 1/4, 5/8 comes out as lemma 3 of its paper has it, "
        "1 - r q / (r q + 1 - q) with q = 1/8:",
        "1 8 4 5",
        holds=lambda: all(
            form("prior")(r) == 1 - r * q / (r * q + 1 - q)
            for r, q in ((Fraction(r), Fraction(1, 8)) for r in (2, 3, 9))
        ),
    ),
    Claim(
        REFEREE,
        "exit code | meaning | |---|---| | 0 | all",
        "0",
        holds=lambda: exit_codes()[0] == 0,
    ),
    Claim(REFEREE, "| 2 | this is no such file", "2", holds=lambda: exit_codes()[1] == 2),
    Claim(REFEREE, "| 4 | it is not so", "4", holds=lambda: exit_codes()[2] == 4),
    Claim(REFEREE, "breaks, and exits with 4,", "4", holds=lambda: exit_codes()[2] == 4),
    Claim(REFEREE, "error at m = 1 |", "1"),
    Claim(REFEREE, "optimal at m = 1 |", "1"),
    Claim(
        LIMITS,
        "refuses what would need more than 4,000,000 variables, rows or steps, files above 256 MiB",
        computed={"4,000,000": lambda: verify.MOST, "256": lambda: verify.LARGEST_FILE / 2**20},
    ),
    Claim(
        LIMITS,
        "takes programs of up to 2,000 variables and 20,000 rows whose coefficients",
        computed={"2,000": lambda: exact_sizes()[0], "20,000": lambda: exact_sizes()[1]},
    ),
    Claim(
        LIMITS,
        "takes 400 variables and 2,000 rows.",
        computed={"400": lambda: formula_sizes()[0], "2,000": lambda: formula_sizes()[1]},
    ),
    # Findings: DaRRM.
    Claim(
        MAJORITY,
        "is the probability that voter i says 1, and L",
        "1",
    ),
    Claim(MAJORITY, "whose best place is at 00 or at 11.", "00 11"),
    Claim(
        MAJORITY,
        "at K = 15, m = 1, $ = 0.7755 they let through a noise function that spends 1.040. The "
        "paper's own sets, written out as rows of a program, have the reduced sets' optimum in all "
        "36 settings",
        "15 1 0.7755",
        {
            "1.040": lambda: corners("K = 15, m = 1, epsilon = 0.7755").value_found,
            "36": sets_agree,
        },
        # The powers of K in the formulas before it.
        holds=lambda: (
            growth(voters.reduced_size, 0.0) == 2
            and growth(voters.reduced_size, 1e-5) == 4
            and growth(majority.full_size, 0.0) == 3
            and growth(majority.full_size, 1e-5) == 7
        ),
    ),
    Claim(
        MAJORITY,
        "less than half of it at K = 11, m = 3: 0.0155 against 0.0377",
        "11 3",
        {
            "0.0155": lambda: voted("expected-error").expected_error,
            "0.0377": lambda: voted("surrogate").expected_error,
        },
        holds=half_the_error,
    ),
    Claim(
        MAJORITY,
        "under p \\sim U[0, 0.1] at K = 11, m = 3 its noise function has error 0.354, the paper's "
        "0.0041, subsampling 0.0072",
        "0 0.1 11 3",
        {
            "0.354": lambda: leaning(voted("expected-error").gamma),
            "0.0041": lambda: leaning(voted("surrogate").gamma),
            "0.0072": lambda: leaning(majority.subsampling(11, 3)),
        },
    ),
    Claim(
        MAJORITY,
        "uniform on [0, 1]. Its noise function has error 0.0007 there, and 0.0379 under "
        "independent uniform $, no less than the paper's.",
        "0 1",
        {"0.0007": lambda: leaning(vote().gamma), "0.0379": believed},
        holds=lambda: believed() >= voted("surrogate").expected_error,
    ),
    Claim(
        MAJORITY,
        "at 50 points 1.21 times for K = 5, 2.80 for K = 11.",
        "50 5 11",
        {
            "1.21": lambda: float(objective.printed_factor(5, 50)),
            "2.80": lambda: float(objective.printed_factor(11, 50)),
        },
    ),
    Claim(
        MAJORITY,
        "At m = 3, right with: | votes of | the paper's gamma | independent $ | one p for all "
        "voters, our default | GNMax, least noise for its label | |---|---|---|---|---| | MNIST "
        "teachers | 0.836 | 0.746 | 0.835 | 0.834 | | Fashion-MNIST teachers | 0.965 | 0.660 | "
        "0.967 | 0.809 | So a prior of independent $ loses to the paper's gamma where voters "
        "mostly agree, at m = 1, 3 and 5, in every run. The default, one p for all, loses 0.001 "
        "to it on MNIST at m = 3, and less than 0.0001 at m = 1, 5 and 7; on Fashion-MNIST it is "
        "ahead by 0.001 at m = 3. On MNIST the label of GNMax is ahead of the paper's gamma at "
        "m = 5 and 7,",
        "1 3 5 7 0.0001",
        {
            "0.001": lambda: right(3, "surrogate") - right(3, "common-p"),
            "0.836": lambda: right(3, "surrogate"),
            "0.746": lambda: right(3, "expected-error"),
            "0.835": lambda: right(3, "common-p"),
            "0.834": lambda: right(3, "gnmax-label"),
            "0.965": lambda: right(3, "surrogate", "fashion-mnist"),
            "0.660": lambda: right(3, "expected-error", "fashion-mnist"),
            "0.967": lambda: right(3, "common-p", "fashion-mnist"),
            "0.809": lambda: right(3, "gnmax-label", "fashion-mnist"),
        },
        holds=lambda: (
            independence_loses()
            and independence_loses("fashion-mnist")
            and agreement_is_ahead("fashion-mnist") == pytest.approx(0.001, abs=5e-4)
            and all(abs(agreement_is_ahead("mnist", m)) < 1e-4 for m in (1, 5, 7))
            and gnmax_ahead() == [5, 7]
            and gnmax_ahead("fashion-mnist") == []
        ),
    ),
    Claim(MAJORITY, "below 1/2 no private majority", "1 2"),
    Claim(
        MAJORITY,
        "$ is $-DP at m = 1, for every $: each privacy row, written in powers of $, has no "
        "negative coefficient. That is decided in exact arithmetic for each odd K up to 11, and "
        "for 21 and 51 with `. Now let $ voters say 1 for sure and the others 0. Then $ for sure, "
        "$, and the label is the majority: the error is 0. The lemma's bound there is $, which is "
        "1/3 for K = 3.",
        "1 3 11 21 51",
        {"0": lambda: max(harmonic(k).value_found for k in (*range(3, 12, 2), 21, 51))},
        holds=lambda: odd_up_to(11) and harmonic(3).value_claimed == 1 / 3,
    ),
    Claim(
        MAJORITY,
        "with $ voters at the corner (b, c) and the others at 0, label 1 has the ratio $ exactly",
        "0 1",
        holds=halved,
    ),
    Claim(
        MAJORITY,
        "At K = 35, m = 16 with the tau of general composition the constant noise function of the "
        "lemma spends 1.8 instead of 1.6: one row in fractions shows it. The largest constant that "
        "is private is 1.02 to 2.9 times",
        "35 16",
        CONSTANTS,
    ),
    Claim(
        MAJORITY,
        "at K = 3 and p = (0.9, 0.9, 0) the values 0.99 and 0.37 of $ and $ have error 0, the "
        "larger 0.99 and 1 have 0.00315.",
        "3 0.9 0.99 0.37 1",
        {
            "0": lambda: float(lemmas_b.unequal_errors()[0]),
            "0.00315": lambda: float(lemmas_b.unequal_errors()[1]),
        },
    ),
    Claim(MAJORITY, "lacks a factor $ below K / 2;", "2"),
    Claim(
        MAJORITY,
        "Q labels are all 1 with probability $, which is not what the noise was certified for. "
        "With the paper's own noise function at K = 41, $ = 0.5, m = 1, one query put 12 times "
        "spends at least 6.048, not 6. The ratio is a rational number. **All 24 printed totals "
        "hold all the same**, for another reason: all labels are computed from the voters, and "
        "the K = 11 teachers together spend (0.981, 0.0011). That bounds any number of queries, "
        "and lies below each total. If they were trained on disjoint data they spend "
        "(0.0892, 1e-4).",
        "41 0.5 1 12 11",
        {
            "6.048": lambda: repeated().value_found,
            "6": lambda: repeated().value_claimed,
            "24": held,
            "0.981": lambda: together("MNIST", 0.0892).epsilon,
            "0.0011": lambda: together("MNIST", 0.0892).delta,
            "0.0892": lambda: apart().epsilon,
            "1e-4": lambda: apart().delta,
        },
    ),
    Claim(
        MAJORITY,
        "The label of K = 11 teachers with the printed $ = 21.46 spends 0.066 of the 0.2676 that "
        "it may; $ = 7.68 is enough.",
        "11 21.46 0.2676",
        {
            "0.066": lambda: gnmax.label_epsilon(11, 21.46, 3e-4),
            "7.68": lambda: (
                gnmax.calibrate_gnmax(Guarantee(0.2676, 3e-4), "label", voters=11).sigma
            ),
        },
    ),
    Claim(
        MAJORITY,
        "at votes 5:0, $ = 1, $ = 1.5 it gives 2.013 where the Gaussian bound is 1.5. With a "
        "logarithm there, line 9 as printed gives .0131 where the divergence itself is .0165.",
        "5 0 1",
        {
            "2.013": lambda: algorithm_6()[0],
            ".0131": lambda: algorithm_6()[1],
            ".0165": lambda: algorithm_6()[2],
            "1.5": lambda: algorithm_6()[4],
        },
    ),
    # Findings: Reveal-or-Obscure.
    Claim(
        OBSCURE,
        "At n = 20, k = 3, $ = 0.1 the counts (6, 6, 8) and (7, 6, 7) are neighbours, and a "
        "letter's probability grows by more than $.",
        "20 3 0.1 6 8 7",
        holds=lambda: excess(20, 3, 0.1, "conference") > 1,
    ),
    Claim(
        OBSCURE,
        "At n = 51, k = 50, $ = 0.2, in the map of `, it is 1.64 times.",
        "51 50 0.2",
        {"1.64": lambda: excess(51, 50, 0.2, "conference")},
    ),
    Claim(
        OBSCURE,
        "The two data sets are (1, 2) and (2, 1). Here $ = 0.1229, so that f(1, 1) = 0.3538 and "
        "f(1, 2) = 0.6462. Their ratio is 1.8263, which is 1.1077 times e^{0.5}.",
        "1 2 0.5",
        {
            "0.1229": lambda: roo.min_count(3, 2, 0.5, "journal").obscuring(1),
            "0.3538": lambda: told(1),
            "0.6462": lambda: told(2),
            "1.8263": lambda: told(2) / told(1),
            "1.1077": lambda: excess(3, 2, 0.5, "journal"),
        },
    ),
    Claim(
        OBSCURE,
        "in all 384 audits of `",
        computed={"384": audits_decided},
        holds=repaired,
    ),
    Claim(
        OBSCURE,
        "at n = 3, k = 2, $ = 5/3, m = 1 it is short by 3/20. **Conference lemma 3 is refuted** "
        "likewise: at n = 8, k = 7, $ = 3/2, m = 1 by 7/15.",
        "1 2 3 5 7 8 15 20",
        holds=lambda: (
            short_by("lemma 2", 3, 2, Fraction(5, 3)) == Fraction(3, 20)
            and short_by("conference lemma 3", 8, 7, Fraction(3, 2)) == Fraction(7, 15)
        ),
    ),
    Claim(
        OBSCURE,
        "At n = 4, k = 2, m = 1, $ = 3/2 both sides are the same fraction.",
        "4 2 1 3",
        holds=lambda: attained() and short_by("conference lemma 4", 4, 2, Fraction(3, 2)) == 0,
    ),
    Claim(OBSCURE, "has O(1) rows for each m", "1"),
    Claim(
        OBSCURE,
        "at n = 3, k = 2, $ = 0.5 the journal's $ is 0.123, the exact one's 0.265.",
        "3 2 0.5",
        {
            "0.123": lambda: roo.min_count(3, 2, 0.5, "journal").obscuring(1),
            "0.265": lambda: roo.min_count(3, 2, 0.5).obscuring(1),
        },
    ),
    Claim(
        OBSCURE,
        "Of the 20 settings of ` the optimal sampler, found by a linear program over histograms, "
        "meets this bound in 14.",
        computed={
            "20": lambda: len(small_settings()),
            "14": lambda: sum(
                at["optimum"] <= at["lower-bound"] * (1 + 1e-6) for at in small_settings()
            ),
        },
    ),
    Claim(
        OBSCURE,
        "Of the 20 settings of ` it has a smaller worst case than the exact rule in 18.",
        computed={
            "20": lambda: len(small_settings()),
            "18": lambda: sum(
                at["smooth-floor"] < at["exact"] * (1 - 1e-9) for at in small_settings()
            ),
        },
    ),
    # Findings: public prior.
    Claim(
        PRIOR,
        "In all 48 settings of ` no private kernel that keeps q has a smaller worst case: the "
        "optimum of the program over all kernels is Algorithm 1's, and a dual vector bounds it "
        "from below. In fractions, with a rational number for $, Algorithm 1 as printed has rows "
        "that sum to 1, keeps q, is private, and has the diagonal of corollary 1, without",
        "1",
        {"48": exact_everywhere},
    ),
    Claim(PRIOR, "smaller mean distance in all 6 settings of `", computed={"6": leximin_ahead}),
    Claim(
        PRIOR,
        "has a smaller largest distance than both in all 7 age groups",
        computed={"7": groups_ahead},
    ),
    Claim(
        PRIOR,
        "the ink of an image in 16 cells, a group is a digit and the public prior that group's own "
        "ink. At $ = 4, that of the paper's Figure 4, the KL mollifier has the smaller largest "
        "distance, and the smaller mean, for all 10 digits",
        "4",
        {"16": lambda: digits.EXPERIMENT.quick.side**2, "10": digits_against},
        holds=lambda: digits.EXPERIMENT.quick.epsilon == (4.0,),
    ),
    Claim(
        PRIOR,
        "gives 0.03 and 0.1 as $ with the public prior and with the uniform one. These are one "
        "user's distances, 0.0376 and 0.107, cut off.",
        "0.03 0.1",
        {
            "0.0376": lambda: realised([0.01, 0.99]),
            "0.107": lambda: realised([0.5, 0.5]),
        },
    ),
    # Findings: kernels, whose proofs have the other numbers.
    Claim(KERNELS, "Inputs are 0..n-1, neighbours", "0 1"),
    Claim(KERNELS, "never rises above 0 again", "0"),
    Claim(
        KERNELS,
        "for the losses (0, 1, 0) and (1, 0, 1) of two outputs",
        "0 1",
        holds=geometric_is_not_enough,
    ),
    Claim(
        KERNELS,
        "The rows of G sum to 1, which",
        "1",
    ),
    # Findings: smoothed DP.
    Claim(
        SMOOTHED,
        "Eighteen records of each law give 0.478070349; the two ends give 0.477756537.",
        computed={
            "0.478070349": lambda: inside().delta,
            "0.477756537": lambda: max(
                smoothed.smoothed_delta(smoothed.SamplingHistogram(36, 34), 0.0, [p]).delta
                for p in (0.4, 0.6)
            ),
        },
        holds=lambda: inside().argmax[0] == 18,
    ),
    Claim(
        SMOOTHED,
        "(5.53 %) and the third district of Nebraska (77.14 %), not DC and NE-2.",
        "2",
        EXTREMES,
    ),
    Claim(
        SMOOTHED,
        "is the former: 3, 5 and 6 at (m, $) = (2, 2), (3, 2) and (3, 3), where the latter is 3, 4 "
        "and 5",
        "2 3 4 5 6",
        holds=lambda: (
            [runtime.degree(m, several) for m, several in ((2, 2), (3, 2), (3, 3))] == [3, 5, 6]
            and [m + several - 1 for m, several in ((2, 2), (3, 2), (3, 3))] == [3, 4, 5]
        ),
    ),
    Claim(
        SMOOTHED,
        "At n = 127, T = 1, e^\\varepsilon = 66/65 and fair coins",
        "127 1 66 65",
        holds=lambda: not remark_8(127, 1, Fraction(66, 65)) and remark_8_from_here(),
    ),
    Claim(
        SMOOTHED,
        "its bound is above 0.99, and smoothed delta below 1e-4.",
        "0.99 1e-4",
        holds=remark_8_says_little,
    ),
    Claim(
        SMOOTHED,
        "**Refuted from T = 3 on.** With replacement, the theorem says that no $ below T / (n + 1)",
        "1",
        {"3": first_violation},
    ),
    Claim(
        SMOOTHED,
        "is convex in $, 0 at 0, and not negative at 1/2.",
        "0 1 2",
        holds=halves_hold,
    ),
    Claim(
        SMOOTHED,
        "At n = 8, T = 1, $ it is 2, where",
        "8 1",
        {"2": lambda: math.exp(noisy())},
    ),
    Claim(
        SMOOTHED,
        "where the lemma has 3.",
        "3",
        tested={},
        holds=lambda: (
            "assert u <= forward + backward <= 2 * u"
            in source_of(
                "tests/smoothed/test_utility.py::"
                "test_two_candidates_utilities_add_up_to_the_divergences"
            )
        ),
    ),
    Claim(
        SMOOTHED,
        "With 1e7 draws the estimate of delta is too high: by a factor of 11 at $ and of 2,200 at "
        "5, on one database of 225 records.",
        "1e7 5",
        {
            "11": lambda: bias()[3.0],
            "2,200": lambda: bias()[5.0],
            "225": lambda: sgd_bias.Config().records,
        },
    ),
    # PAPERS: DaRRM.
    Claim(PAPERS, "all 24 totals", computed={"24": agreeing}),
    Claim(
        PAPERS,
        "O(K^2) and O(K^4) multisets",
        computed=MULTISETS,
    ),
    Claim(PAPERS, "on the segment from 00 to 11, along", "00 11"),
    Claim(
        PAPERS,
        "at epsilon = 0.1 and delta' of the order of Delta",
        "0.1",
        holds=composition_gains_nothing,
    ),
    Claim(
        PAPERS,
        "for arbitrary gammas up to K = 9, random and optimal ones at K = 11 and 15",
        computed={
            "9": lambda: max(
                k for k in range(1, 10, 2) if all(map(decides_alike, range(1, k + 1, 2)))
            )
        },
        tested=dict.fromkeys(
            ("11", "15"),
            (
                "tests/majority/test_separation.py::"
                "test_the_reduced_set_decides_for_random_and_optimal_gammas",
                '("k", [11, 15])',
            ),
        ),
    ),
    Claim(
        PAPERS,
        "lose at most 2 % to the exact program over 20,000 samples at (K, m) = (3, 1) and (11, 3)",
        tested={
            "2": (LINEAR, "assert linear <= exact * 1.02"),
            "20,000": (LINEAR, "random((20_000, k))"),
            **dict.fromkeys(("3", "1", "11"), (LINEAR, '("k", "m"), [(3, 1), (11, 3)]')),
        },
    ),
    Claim(
        PAPERS,
        "K = 5, e^epsilon = 9/4, e^(m epsilon) = 2, maximise gamma(4): 0.9408553251 against "
        "0.9354298401; K = 15, m = 1, epsilon = 0.7755 spends 1.040; K = 9, m = 2, epsilon "
        "= 0.9005 "
        "spends 1.943 instead of 1.801.",
        "5 9 4 2 15 1 0.7755 0.9005",
        {
            "0.9408553251": lambda: corners("K = 5, e^epsilon = 9/4").value_claimed,
            "0.9354298401": lambda: corners("K = 5, e^epsilon = 9/4").value_found,
            "1.040": lambda: corners("K = 15, m = 1, epsilon = 0.7755").value_found,
            "1.943": lambda: corners("K = 9, m = 2, epsilon = 0.9005").value_found,
            "1.801": lambda: corners("K = 9, m = 2, epsilon = 0.9005").value_claimed,
        },
    ),
    Claim(
        PAPERS,
        "for K = 35 at (m epsilon, delta) = (0.6452, 0.1001) the program returns gamma = 1:",
        "35 0.6452 0.1001",
        {"1": least_gamma},
    ),
    Claim(
        PAPERS,
        "ceil(M / 2) epsilon (Delta = 0), for voters that need not be alike: p' >= "
        "e^-epsilon p, so "
        "L' dominates a thinning of L; given m ones among 2m - 1 voters",
        "2 0 1",
        holds=halved,
    ),
    Claim(
        PAPERS,
        "gamma(l) = 1 / abs(2l - K) is epsilon-DP at m = 1 for every epsilon (K = 3: all 20 "
        "multisets, exactly; each odd K up to 11; 21 and 51 with `), with error 0 at p = "
        "(1, 1, 0) where the bound is 1/3.",
        "1 3 11 21 51",
        {
            "20": multisets_of_three,
            "0": lambda: max(harmonic(k).value_found for k in (*range(3, 12, 2), 21, 51)),
        },
        holds=lambda: odd_up_to(11) and harmonic(3).value_claimed == 1 / 3,
    ),
    Claim(
        PAPERS,
        "(K = 35, m = 16: it spends 1.8 instead of 1.6); the largest private constant gamma is "
        "1.02 to 2.9 times",
        "35 16",
        CONSTANTS,
    ),
    Claim(
        PAPERS,
        "the paper's own gamma at K = 41, epsilon = 0.5, m = 1: one query 12 times spends at least "
        "6.048, not 6 (one ratio",
        "41 0.5 1 12",
        {"6.048": lambda: repeated().value_found, "6": lambda: repeated().value_claimed},
    ),
    Claim(
        PAPERS,
        "All 24 printed totals hold for voters trained once, for another reason: K-fold "
        "composition of the voters, (0.981, 0.0011) for MNIST and (0.937, 0.0011) for "
        "Fashion-MNIST, bounds any number of queries; on disjoint parts (0.0892, 1e-4).",
        "",
        {
            "24": held,
            "0.981": lambda: together("MNIST", 0.0892).epsilon,
            "0.937": lambda: together("Fashion-MNIST", 0.0852).epsilon,
            "0.0011": lambda: together("Fashion-MNIST", 0.0852).delta,
            "0.0892": lambda: apart().epsilon,
            "1e-4": lambda: apart().delta,
        },
    ),
    Claim(
        PAPERS,
        "At p_i = 0.5 (Figure 9) the error of every symmetric gamma is 0.",
        "0.5",
        {"0": error_of_coins},
    ),
    Claim(
        PAPERS,
        "(62.12 and 64.97 are). The label of K = 11 teachers with sigma = 21.46 spends 0.0664, not "
        "0.2676; sigma = 7.68 is enough.",
        "11 21.46 0.2676",
        {
            "62.12": lambda: gnmax.calibrate_gnmax(Guarantee(0.2676, 3e-4)).order or 0.0,
            "64.97": lambda: gnmax.calibrate_gnmax(Guarantee(0.2556, 3e-4)).order or 0.0,
            "0.0664": lambda: gnmax.label_epsilon(11, 21.46, 3e-4),
            "7.68": lambda: (
                gnmax.calibrate_gnmax(Guarantee(0.2676, 3e-4), "label", voters=11).sigma
            ),
        },
    ),
    Claim(
        PAPERS,
        "at votes 5:0, sigma = 1, lambda = 1.5 (ours) it gives 2.013, above the Gaussian bound "
        "1.5. With a logarithm there, line 9 as printed (q outside the power) gives .0131 where "
        "the divergence is .0165; the theorem of Papernot et al. gives .0374.",
        "5 0 1",
        {
            "2.013": lambda: algorithm_6()[0],
            ".0131": lambda: algorithm_6()[1],
            ".0165": lambda: algorithm_6()[2],
            ".0374": lambda: algorithm_6()[3],
            "1.5": lambda: algorithm_6()[4],
        },
    ),
    Claim(
        PAPERS,
        "for m > 1 the optimised gamma is not the highest at every number of ones: K = 11, "
        "m = 3, l "
        "= 10: 0.9777, subsampling 1.",
        "1 11 3 10",
        {"0.9777": surrogate_at_10},
    ),
    Claim(
        PAPERS,
        "at m = 3, Q = 100: epsilon 1.965 instead of 15.044 at the same delta",
        "3 100",
        {
            "1.965": labels_composed,
            "15.044": lambda: general_composition(Guarantee(0.2676, 3e-4), 100, 1e-4).epsilon,
        },
    ),
    Claim(
        PAPERS,
        "is right with 0.590, 0.746, 0.860 at m = 1, 3, 5, less than the paper's gamma (0.703, "
        "0.836, 0.865) in each of three training runs; one p common to all voters, the default, "
        "has 0.703, 0.835, 0.865. GNMax with the least noise for its label is ahead of the paper's "
        "gamma at m = 5 and 7.",
        "1 3 5 7",
        {
            "0.590": lambda: right(1, "expected-error"),
            "0.746": lambda: right(3, "expected-error"),
            "0.860": lambda: right(5, "expected-error"),
            "0.703": lambda: right(1, "surrogate"),
            "0.836": lambda: right(3, "surrogate"),
            "0.865": lambda: right(5, "surrogate"),
            "0.835": lambda: right(3, "common-p"),
        },
        holds=lambda: (
            independence_loses()
            and gnmax_ahead() == [5, 7]
            and [round(right(m, "common-p"), 3) for m in (1, 5)] == [0.703, 0.865]
        ),
    ),
    Claim(PAPERS, "which choices of them decide privacy, also for Delta > 0.", "0"),
    Claim(
        PAPERS,
        "nine of eleven voters spend 6 epsilon; M = C t of them at least (C - 1) t epsilon.",
        "1",
        {"6": lambda: samples()[8]},
        holds=lambda: all(more_in_all(3, share) for share in (1, 2, 3)),
    ),
    # PAPERS: Reveal-or-Obscure.
    Claim(
        PAPERS,
        "(20, 3, 0.1), counts (6, 6, 8) and (7, 6, 7), 1.00668167682 e^epsilon; with `, "
        "326 of 1,287 "
        "settings of the map, at worst 1.6375 e^epsilon at (51, 50, 0.2).",
        "20 3 0.1 6 8 7 51 50 0.2",
        {
            "1.00668167682": lambda: excess(20, 3, 0.1, "conference"),
            "326": lambda: full_map()[0],
            "1,287": lambda: full_map()[1],
            "1.6375": lambda: full_map()[2],
        },
    ),
    Claim(
        PAPERS,
        "counts 1/k, not in the plain sum of the q_m: at (101, 10, 0.01) its sum is 0.787824 above",
        "1 101 10 0.01",
        {"0.787824": unneeded},
    ),
    Claim(
        PAPERS,
        "(3, 2, 0.5), counts (1, 2) and (2, 1), 1.10772159688 e^epsilon. Lemma 2 uses u_m / v_m > "
        "0, false for m > n/k - 1. All violations audited have k not dividing n and "
        "e^epsilon < 1 + "
        "1/M; not all such settings violate (28 of 95 of the default map).",
        "3 2 0.5 1 0",
        {
            "1.10772159688": lambda: excess(3, 2, 0.5, "journal"),
            "28": lambda: uncovered()[0],
            "95": lambda: uncovered()[1],
        },
    ),
    Claim(PAPERS, "Lemma 9, q_m0 = 0", "0"),
    Claim(
        PAPERS,
        "k divides n, n < k, e^epsilon >= 1 + 1/M, or q_M >= t_M = (1 - M s) / (1 + s (n/k - M)), "
        "s = e^epsilon - 1; with q_M raised to t_M it always is.",
        "1",
        holds=repaired,
    ),
    Claim(
        PAPERS,
        "Lemma 5 is an equality at n = 4, k = 2, m = 1, e^epsilon = 3/2; theorem 2 needs <= only. "
        "The printed proof of lemma 6 asks for w' >= 0, false for epsilon < log(1 + 1/n)",
        "4 2 1 3 0",
        holds=attained,
    ),
    Claim(PAPERS, "has O(1) rows for each m", "1"),
    # PAPERS: public prior.
    Claim(
        PAPERS,
        "one user's distances, 0.0376 and 0.107, cut off to 0.03 and 0.1; Gamma_TV is 0.9305 and "
        "0.1192.",
        "0.03 0.1",
        {
            "0.0376": lambda: realised([0.01, 0.99]),
            "0.107": lambda: realised([0.5, 0.5]),
            "0.9305": lambda: public_prior.minimax_utility([0.01, 0.99], 2.0),
            "0.1192": lambda: public_prior.minimax_utility([0.5, 0.5], 2.0),
        },
    ),
    # PAPERS: smoothed DP.
    Claim(
        PAPERS, "(with noise it fails for eta < 1/2 and large epsilon)", "1 2", holds=halves_hold
    ),
    Claim(
        PAPERS,
        "1e-11 relative at values far below 1e-300",
        computed={
            "1e-11": lambda: max(roundings(8.0)[0], 1e-11),
            "1e-300": lambda: max(math.exp(roundings(8.0)[1]), 1e-300),
        },
    ),
    Claim(
        PAPERS,
        "n = 36, T = 34, epsilon = 0, shares 3/5 and 2/5: 18 records of each give 0.478070349009, "
        "the ends 0.477756536586. n = 20000, 0.01 % lost, .4/.62, epsilon = 0: 4.2 % above "
        "the ends.",
        "36 34 0 3 5 2 20000 0.01 .4 .62",
        {
            "18": lambda: inside().argmax[0],
            "0.478070349009": lambda: inside().delta,
            "0.477756536586": lambda: max(
                smoothed.smoothed_delta(smoothed.SamplingHistogram(36, 34), 0.0, [p]).delta
                for p in (0.4, 0.6)
            ),
            "4.2": above_the_ends,
        },
    ),
    Claim(
        PAPERS,
        "DC (5.53 %) and NE-3 (77.14 %), not DC and NE-2",
        "3 2",
        EXTREMES,
    ),
    Claim(
        PAPERS,
        "u <= d + d' <= 2 u (Lemma 10 has 3)",
        "3",
        tested={
            "2": (
                "tests/smoothed/test_utility.py::"
                "test_two_candidates_utilities_add_up_to_the_divergences",
                "assert u <= forward + backward <= 2 * u",
            )
        },
    ),
    Claim(
        PAPERS,
        "for a prior over 3 categories (n = 3, T = 1); Corollary 3 over 15;",
        tested={
            **dict.fromkeys(
                ("3", "1"),
                (
                    "tests/smoothed/test_utility.py::"
                    "test_lemma_2_fails_with_a_prior_over_three_categories",
                    "SamplingHistogram(3, 1, 3)",
                ),
            ),
            "15": (
                "tests/smoothed/test_utility.py::"
                "test_corollary_3_fails_with_a_prior_over_fifteen_categories",
                "KernelMechanism(1, 15, kernel)",
            ),
        },
    ),
    Claim(
        PAPERS,
        "n = 127, T = 1, e^epsilon = 66/65, fair coins. It holds for T/n >= 1/sqrt(6).",
        "127 1 66 65 6",
        holds=lambda: not remark_8(127, 1, Fraction(66, 65)) and remark_8_from_here(),
    ),
    Claim(
        PAPERS,
        "min(r, sum_i (1 - f_i (1 - e^-K))^n), K = KL(1 - e^-epsilon, T/n); from below r Pr[Bin(n, "
        "f) <= 1] at every epsilon",
        "1",
    ),
    Claim(
        PAPERS,
        "1 - (1 - 1/n)^T, below T/(n + 1) from T = 3 on",
        "1",
        {"3": first_violation},
    ),
    Claim(
        PAPERS,
        "(eta epsilon, 0)-DP holds for eta >= 1/2, and for every epsilon up to 1.3; below "
        "eta = 1/2 "
        "it fails from some epsilon on: n = 8, T = 1, epsilon = 4 ln 3 has ratio 2, not "
        "sqrt(3), in "
        "fractions. ln(1 + eta (e^eps' - 1)) holds",
        "0 1 8 4 3",
        {"2": lambda: math.exp(noisy())},
        {
            "1.3": (
                "tests/smoothed/test_noisy.py::test_fewer_make_it_wrong_from_some_epsilon_on",
                "for epsilon in (0.01, 0.5, 1.3):\n        assert noisy_guarantee(",
            )
        },
        holds=halves_hold,
    ),
    Claim(
        PAPERS,
        "with 1e7 draws is biased upward: 10.9 times at epsilon = 3, 2,230 times at 5 on one "
        "database of 225 records",
        "1e7 3 5",
        {
            "10.9": lambda: bias()[3.0],
            "2,230": lambda: bias()[5.0],
            "225": lambda: sgd_bias.Config().records,
        },
    ),
    Claim(
        PAPERS,
        "(two values: 0 instead of T/n)",
        computed={"0": of_two_values},
    ),
    # Findings: votes.
    Claim(
        VOTES,
        "With three classes 42 of 45 multisets are left for two voters, 138 of 165 for three, 363 "
        "of 495 for four.",
        computed={
            "42": lambda: multisets(2, reduced=True),
            "45": lambda: multisets(2, reduced=False),
            "138": lambda: multisets(3, reduced=True),
            "165": lambda: multisets(3, reduced=False),
            "363": lambda: multisets(4, reduced=True),
            "495": lambda: multisets(4, reduced=False),
        },
    ),
    Claim(
        VOTES,
        "and m = 2 returns a rule that breaks privacy by 0.036.",
        tested={
            "2": (OTHER_EDGES, "voters, ratio, allowance = 4, Fraction(3, 2), 2"),
            "0.036": (OTHER_EDGES, "== pytest.approx(0.036, abs=5e-4)"),
        },
    ),
    Claim(
        VOTES,
        "39 of 81 for three classes, 136 of 256 for four, and the eight of lemma 5.1 for two.",
        computed={
            "39": lambda: in_a_row(3),
            "81": lambda: 3**4,
            "136": lambda: in_a_row(4),
            "256": lambda: 4**4,
        },
        holds=lambda: in_a_row(2) == 8,
    ),
    Claim(
        VOTES,
        "For K = 11, $ = 0.1, m = 1 and all histograms equally likely the best rule misses the "
        "majority with probability 0.18997, the best one of DaRRM's form with 0.19791. The rule "
        "answers the minority where it has four votes, more often than not. For K = 9 and "
        "p = (0.7, 0.3), in either order, it misses with 0.2327 instead of 0.2419.",
        "11 0.1 1 9 0.7 0.3",
        {
            "0.18997": lambda: multiclass.design(11, 2, 0.1, 1).value,
            "0.19791": lambda: coin(11, np.ones(6)),
            "0.2327": lambda: multiclass.design(9, 2, 0.1, 1, prior="point:.7,.3").value,
            "0.2419": lambda: coin(9, seven_of_ten(9)),
        },
        holds=minority_answered,
    ),
    Claim(
        VOTES,
        "at K = 11, C = 3, $ = 0.1 and m = 3 the ladder that the bound allows spends 1.95 $, and "
        "misses the plurality with probability 0.2271 where the audited one misses it with 0.1165.",
        "11 3 0.1",
        {
            "1.95": lambda: bounded_ladder()[0],
            "0.2271": lambda: bounded_ladder()[1],
            "0.1165": lambda: multiclass.design(11, 3, 0.1, 3, rule="ladder").value,
        },
    ),
    Claim(
        VOTES,
        "three voters between 0 and 1, three between 1 and 2, five at 2. Label 0 has a ratio of $ "
        "exactly, where $ was promised. For 11 voters, three classes and $ = 0.1: | sampled | 1 | "
        "2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | "
        "|---|---|---|---|---|---|---|---|---|---|---|---| | spends, in $ | 1 | 1 | 2 | 2.2039 | "
        "3 | 4 | 4 | 5 | 6 | 6 | 7 | All of these are the largest ratio over all corners, in "
        "integers; the one at four depends on $ (2.1917 at $ = 1).",
        "0 1 2 3 4 5 6 7 8 9 10 11 0.1",
        {
            "2.2039": lambda: samples()[3],
            "2.1917": lambda: spends(sampled_plurality(Partitions(11, 3), 4), Fraction(math.e)),
        },
        holds=lambda: (
            [round(m, 9) for m in samples() if m != samples()[3]] == [1, 1, 2, 3, 4, 4, 5, 6, 6, 7]
        ),
    ),
    Claim(VOTES, "All other ratios are equal to r, to 1, or reduce to these.", "1"),
    Claim(
        VOTES,
        "**From 13 classes on that is not enough.** From $ to $ (B) says $ with q(r) = 12 r^4 + "
        "(25 - C)\\, r^3 - (C^2 - 7 C + 18)\\, r^2 - (C^2 - 7 C + 16)\\, r + C - 3 . Its largest "
        "root is 2.4936 for twelve classes, below 10/4; 2.8068 for 13, above 11/4; 6.3624 for 24; "
        "and about $ for many.",
        "12 4 25 3 2 7 18 16 13 24 10 11",
        {
            "2.4936": lambda: second_root(12),
            "2.8068": lambda: second_root(13),
            "6.3624": lambda: second_root(24),
        },
        holds=lambda: quartic_decides() and second_root(12) < 10 / 4 and second_root(13) > 11 / 4,
    ),
    Claim(
        VOTES,
        "twenty classes and r = 11/10 the top would get -0.006.",
        "11 10",
        {"0.006": lambda: -float(ladder((6, *[0] * 19), Fraction(11, 10))[0])},
    ),
    Claim(
        VOTES,
        "| classes | private for every K and every r from | |---|---| | 3 | 10/9 | | 4 | 1.35 | | "
        "5 | 1.65 | | 6 | 2.25 | | 7 | 2.75 | | 8 | 3.4 | | 9 | 4.1 | | 10 | 5 |",
        "3 4 5 6 7 10 9 1.35 2.25",
        tested={
            "1.65": (MANY_CLASSES, '(5, "1.65"'),
            "2.75": (MANY_CLASSES, '(7, "2.75"'),
            "8": (MANY_CLASSES, '(8, "3.4"'),
            "3.4": (MANY_CLASSES, '(8, "3.4"'),
            "4.1": (MANY_CLASSES, '(9, "4.1"'),
        },
        holds=lambda: proved_from({3: ("10/9", 120), 4: ("1.35", 33), 6: ("2.25", 10)}),
    ),
    Claim(
        VOTES,
        "for up to twelve classes, and the root of q for 13 to 24.",
        "13 24",
        holds=lambda: all(private_from(classes) for classes in (8, 12, 13, 16)),
    ),
    Claim(
        VOTES,
        "Of 30 plain ballots over three classes, $ = 0.5, the least worst regret is 1.104 ballots. "
        "Rules that attain it have mean regrets between 0.545 and 1.084, over all histograms, and "
        "a solver may stop at any of them. The least mean of any private rule is 0.511.",
        "30 0.5",
        {
            "1.104": lambda: ballots_of_thirty(objective="minimax").worst_regret,
            "0.545": lambda: safe_means()[0],
            "1.084": lambda: safe_means()[1],
            "0.511": lambda: ballots_of_thirty().value,
        },
        holds=lambda: (
            ballots_of_thirty(objective="minimax").mean_regret
            == pytest.approx(safe_means()[0], abs=1e-6)
        ),
    ),
    Claim(
        VOTES,
        "K = 11 voters answer by randomised response,",
        "11",
        holds=lambda: private.Config().voters == 11,
    ),
    Claim(
        VOTES,
        "in all 18 cases of three and of ten digits one voter that spends m $ is the most "
        "accurate. With three digits, $ = 0.5 and m = 3 it has 0.636, the program 0.555, the "
        "ladder 0.532, the plurality of three voters 0.471. At m = 1 one of the voters as they "
        "are has 0.433, the program on all eleven 0.428: its prior is not that of these votes. "
        "With ten digits the ladder, calibrated by the bound, is behind the plurality of m voters "
        "in eight of nine cases: 0.164 against 0.191 at $ = 1, m = 3.",
        "0.5 3 1",
        {
            "18": one_voter_wins,
            "0.636": lambda: private_voters("358", 0.5, 3)["one-strong"],
            "0.555": lambda: private_voters("358", 0.5, 3)["optimal"],
            "0.532": lambda: private_voters("358", 0.5, 3)["ladder"],
            "0.471": lambda: private_voters("358", 0.5, 3)["sampled"],
            "0.433": lambda: private_voters("358", 0.5, 1)["one-voter"],
            "0.428": lambda: private_voters("358", 0.5, 1)["optimal"],
            "0.164": lambda: private_voters("0123456789", 1.0, 3)["ladder"],
            "0.191": lambda: private_voters("0123456789", 1.0, 3)["sampled"],
        },
        holds=lambda: one_voter_wins() == len(cases()) and ladder_behind_a_sample() == 8,
    ),
    Claim(
        VOTES,
        "30 plain teachers, ten digits: with the largest step that is private permute-and-flip is "
        "right with 0.365 at $ = 0.1, the ladder with 0.339; at 0.2 with 0.621 and 0.618; so in "
        "each split. The ladder's own r had to be lowered. At 0.3 it is ahead, 0.790 against "
        "0.778. The exponential mechanism with the largest step, which spends all of $, beats the "
        "ladder at 0.1 as well, with 0.344; at 0.2 it has 0.561.",
        "30 0.1 0.2 0.3",
        {
            "0.365": lambda: one_label(0.1, "permute-and-flip-audited"),
            "0.339": lambda: one_label(0.1, "ladder"),
            "0.621": lambda: one_label(0.2, "permute-and-flip-audited"),
            "0.618": lambda: one_label(0.2, "ladder"),
            "0.344": lambda: one_label(0.1, "exponential-audited"),
            "0.561": lambda: one_label(0.2, "exponential-audited"),
            "0.790": lambda: one_label(0.3, "ladder"),
            "0.778": lambda: one_label(0.3, "permute-and-flip-audited"),
        },
        holds=lambda: splits_ahead() == [0, 0, 5] and lowered() == [True, True, True],
    ),
    Claim(
        VOTES,
        "For ten labels of the same teachers at $ = 1 and $ = 1e-5 in total GNMax is right with "
        "0.439, the exponential mechanism with 0.380, the ladder with 0.341. For one label the "
        "ladder has 0.915 and GNMax 0.883, for three 0.821 and 0.730.",
        "1 1e-5",
        {
            "0.439": lambda: each_label(10, "gnmax"),
            "0.380": lambda: each_label(10, "exponential"),
            "0.341": lambda: each_label(10, "ladder"),
            "0.915": lambda: each_label(1, "ladder"),
            "0.883": lambda: each_label(1, "gnmax"),
            "0.821": lambda: each_label(3, "ladder"),
            "0.730": lambda: each_label(3, "gnmax"),
        },
    ),
    Claim(
        VOTES,
        "At m = 3 DaRRM on private MNIST teachers is right with 0.835, the ladder on plain ones "
        "with 0.876; for Fashion-MNIST with 0.967 and 0.853. At m = 1 DaRRM's best gamma is no "
        "better than one teacher, 0.703 and 0.919. And the plain majority of the private teachers, "
        "0.866 and 0.971, is free for any number of labels once K $ may be spent: from ten labels "
        "on it is ahead of GNMax and the ladder on plain teachers.",
        "1 3",
        {
            "0.835": lambda: image_label("mnist", 3, "common"),
            "0.876": lambda: image_label("mnist", 3, "ladder"),
            "0.967": lambda: image_label("fashion-mnist", 3, "common"),
            "0.853": lambda: image_label("fashion-mnist", 3, "ladder"),
            "0.703": lambda: image_label("mnist", 1, "one-teacher"),
            "0.919": lambda: image_label("fashion-mnist", 1, "one-teacher"),
            "0.866": lambda: image_label("mnist", 3, "private-majority"),
            "0.971": lambda: image_label("fashion-mnist", 3, "private-majority"),
        },
        holds=lambda: no_better_than_one() and free_from() == 10,
    ),
    # SECURITY.
    Claim(
        SECURITY,
        "draws that their first 64 bits leave open",
        computed={"64": lambda: release._WORD},
    ),
    Claim(
        SECURITY,
        "0.1 is 0.1000000000000000055...",
        "0.1 0.1000000000000000055",
        holds=lambda: str(Decimal.from_float(0.1)).startswith("0.1000000000000000055"),
    ),
)


def alone(document: str, text: str) -> list[str]:
    """Return the numbers of a text, with their surroundings, that no claim and no name covers."""
    places = [match.span() for match in NAMES.finditer(text)]
    for argument in _ARGUMENT.finditer(text):
        found = re.finditer(r"(?<![\w.])\d(?![\w.,]*\d)", argument[0])
        places += [(argument.start() + n.start(), argument.start() + n.end()) for n in found]
    for claim in CLAIMS:
        if claim.document == document:
            words = re.finditer(re.escape(claim.words), text)
            places += [match.span() for match in words]
    return [
        f"{match[0]} in: {text[max(0, match.start() - 60) : match.end() + 30]}"
        for match in NUMBER.finditer(text)
        if not any(start <= match.start() < end for start, end in places)
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_number_is_claimed_or_a_name(document: str) -> None:
    assert alone(document, prose(document)) == []


def test_a_number_without_a_claim_is_found() -> None:
    text = prose(README)
    assert len(alone(README, text + " It takes 0.4711 of Table 4 and 1,234 in 2020.")) == 2
    assert len(alone(README, text.replace("0.7839", "0.7840"))) > 1


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.document}: {claim.words[:60]}")
def test_each_number_is_what_is_computed(claim: Claim) -> None:
    assert claim.words in prose(claim.document)
    named = NAMES.sub(" ", claim.words)
    printed = set(NUMBER.findall(named))
    assert printed == {*claim.given.split(), *claim.computed, *claim.tested}
    for number, computed in claim.computed.items():
        value, unit = float(computed()), unit_of(number)
        assert abs(value - float(number.replace(",", ""))) <= 0.5 * unit * (1 + 1e-9), number
    for number, (test, text) in claim.tested.items():
        source = source_of(test)
        assert "assert" in source, number
        assert text in source, number
    assert claim.holds is None or claim.holds()


def test_what_is_taken_for_a_number() -> None:
    found = NUMBER.findall("K = 11, m = 3: 1e-11, .0165, 1,287 or 4-ary (2, 1)")
    assert found == ["11", "3", "1e-11", ".0165", "1,287", "4", "2", "1"]
    assert not NUMBER.findall(NAMES.sub(" ", "Tables 2, 5, 7 and 9; lemma A.1; (68) to (70); 2020"))
    assert [unit_of(n) for n in ("0.066", "2,200", "11", "20,000", "1e-11")] == [
        pytest.approx(u) for u in (1e-3, 100, 1, 10_000, 1e-11)
    ]

"""Voters of different privacy, judged by fractions over every corner of every voter."""

import json
from fractions import Fraction as F
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import dpopt
from dpopt import NotPrivateError, ParameterError, majority, solve
from dpopt.majority import (
    CornerOracle,
    GammaProver,
    MajoritySetting,
    VoterGroup,
    gamma_problem,
    reduced_size,
)
from dpopt.majority.program import corner_rows
from dpopt.prob import poisson_binomial_pmf
from tests.majority.brute import (
    ONE,
    corners,
    exponential,
    groups_of,
    judged,
    laws,
    reduced_multisets,
    verdict,
)

of = MajoritySetting.of_groups

SMALL = [
    of([(2, 0.5), (1, 1.0)], 1.0),
    of([(1, 0.3, 0.01), (2, 0.8)], 1.5, 0.02),
    of([(1, 0.2, 0.1), (1, 0.7, 0.05), (1, 1.5)], 1.0, 0.1),
    of([(2, 0.1), (3, 0.4)], 2.0),
    of([(3, 0.9), (2, 0.5, 0.02)], 1.2, 0.05),
    of([(2, 0.9, 0.01), (3, 0.5)], 0.7, 0.01),
    of([(1, 0.3), (2, 0.6), (2, 1.2)], 0.8),
]


@given(
    st.sampled_from(SMALL),
    st.lists(st.integers(0, ONE), min_size=3, max_size=3),
    st.lists(st.integers(-2, 2), min_size=3, max_size=3),
)
def test_the_verdict_is_that_of_every_choice_of_corners(
    setting: MajoritySetting, raw: list[int], steps: list[int]
) -> None:
    start = tuple(raw[: setting.middle])
    assert verdict(setting, start) == (judged(setting, start) <= 0)
    prover = GammaProver(setting)
    filled = prover.fill(prover.shrink(start)[0])
    assert judged(setting, filled) <= 0
    moved = zip(filled, steps[: setting.middle], strict=True)
    near = tuple(min(ONE, max(0, weight + step)) for weight, step in moved)
    exact = judged(setting, near)
    if abs(exact) > F(1, 10**30):
        assert verdict(setting, near) == (exact <= 0)


@pytest.mark.parametrize("setting", SMALL)
@pytest.mark.parametrize("objective", ["expected-error", "surrogate", "worst-case"])
def test_designs_for_groups_are_private_by_fractions_and_at_the_limit(
    setting: MajoritySetting, objective: str
) -> None:
    design = majority.design_for(setting, objective=objective)
    assert design.certificate is not None
    assert design.certificate.constraints == reduced_size(setting)
    assert design.verdict == "private"
    exact = judged(setting, design.weights)
    assert exact <= 0
    assert abs(design.certificate.slack + exact) < F(1, 10**30)
    assert exact > -F(1, 10**9)
    # A thousandth more of everything breaks a constraint, unless gamma is already full.
    wider = tuple(min(ONE, weight + ONE // 1000) for weight in design.weights)
    if wider != design.weights:
        assert verdict(setting, wider) == (judged(setting, wider) <= 0)


@pytest.mark.parametrize("setting", SMALL)
def test_the_refusal_has_the_excess_of_the_fractions(setting: MajoritySetting) -> None:
    weights = (ONE,) * setting.middle
    if judged(setting, weights) <= 0:
        assert verdict(setting, weights)
        return
    with pytest.raises(NotPrivateError, match="group") as caught:
        GammaProver(setting).certify(weights)
    assert caught.value.excess == pytest.approx(float(judged(setting, weights)), rel=1e-12)
    for side in caught.value.inputs:
        assert sum(int(part.split()[0]) for part in side.split(", ")) == setting.mechanisms


@pytest.mark.parametrize("setting", SMALL)
def test_the_optimum_is_that_of_all_corners_written_out(setting: MajoritySetting) -> None:
    target = np.exp(setting.allowance * setting.epsilon)
    sides = np.array(laws(*groups_of(setting)), dtype=float)
    matrix = sides[:, 0] - target * sides[:, 1]
    middle = setting.middle
    folded = matrix[:, middle:] - matrix[:, middle - 1 :: -1]
    budget = np.full(len(folded), target - 1 + 2 * setting.delta)
    for weights in (
        majority.surrogate_weights(setting.mechanisms).values,
        np.arange(1.0, middle + 1),
        np.eye(middle)[0],
    ):
        listed = linprog(-weights, A_ub=folded, b_ub=budget, bounds=(0, 1), method="highs")
        found = solve(gamma_problem(setting, weights))
        assert found.objective == pytest.approx(-listed.fun, abs=1e-9)


@pytest.mark.parametrize("setting", SMALL)
def test_random_voters_inside_their_polygons_stay_within_the_target(
    setting: MajoritySetting,
) -> None:
    design = majority.design_for(setting)
    chance = 0.5 + 0.5 * np.where(
        np.arange(setting.mechanisms + 1) < setting.middle, -design.gamma, design.gamma
    )
    rng = np.random.default_rng(SMALL.index(setting))
    sides: list[list[np.ndarray]] = [[], []]
    for group in setting.voters:
        edge = np.array(corners(exponential(F(group.epsilon)), F(group.mechanism_delta)), float)
        for _ in range(group.size):
            inside = rng.dirichlet(np.full(len(edge), 0.3), 4000) @ edge
            for side in (0, 1):
                sides[side].append(inside[:, side])
    one, other = (
        poisson_binomial_pmf(np.clip(np.column_stack(side), 0, 1)) @ chance for side in sides
    )
    target = np.exp(setting.guarantee.epsilon)
    assert np.max(one - target * other) <= setting.delta + 1e-12
    assert np.max((1 - one) - target * (1 - other)) <= setting.delta + 1e-12


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.floats(0.1, 2), st.sampled_from([0.0, 0.01, 0.2])),
        min_size=1,
        max_size=3,
    ).filter(lambda groups: sum(size for size, *_ in groups) in (1, 3, 5)),
)
@settings(max_examples=15)
def test_the_size_is_the_length_of_the_list(groups: list[tuple[float, ...]]) -> None:
    setting = of(groups, 1.0, 0.2)
    listed = reduced_multisets(setting)
    assert len(listed) == reduced_size(setting)
    assert len({frozenset(counts) for counts in listed}) == len(listed)
    rng = np.random.default_rng(0)
    gamma = rng.random(setting.middle)
    worst = corner_rows(setting, listed).violation(gamma).max()
    priced = CornerOracle(setting).price(gamma)
    assert max(priced.violation, 0.0) == pytest.approx(max(worst, 0.0), abs=1e-12)
    assert frozenset(priced.counts) in {frozenset(counts) for counts in listed}


@pytest.mark.parametrize("k", [1, 3, 11, 41, 101])
def test_the_size_of_one_group_has_closed_forms(k: int) -> None:
    assert reduced_size(of([(k, 0.1)], 1.0)) == (k + 1) ** 2
    expected = comb(k + 4, 4) + 3 * comb(k + 3, 4) + 3 * comb(k + 2, 4) + comb(k + 1, 4)
    assert reduced_size(of([(k, 0.1, 1e-3)], 1.0, 1e-3)) == expected


def test_two_pure_groups_have_a_closed_size() -> None:
    # One of bc and cb in each: 2 or 1 ways for n voters there, and K - n + 1 splits of the rest.
    a, b = 3, 4
    ways = [(n, 2 if n else 1) for n in range(a + 1)], [(n, 2 if n else 1) for n in range(b + 1)]
    expected = sum(x * y * (a + b - n - t + 1) for n, x in ways[0] for t, y in ways[1])
    assert reduced_size(of([(a, 0.1), (b, 0.2)], 1.0)) == expected


def test_equal_groups_are_one() -> None:
    merged = of([(2, 0.5), VoterGroup(3, 0.5)], 1.3)
    assert merged == MajoritySetting(5, 0.5, 1.3)
    assert merged.groups == ()
    three = of([(2, 0.5), (1, 0.7), (2, 0.5), (2, 0.5, 0.1)], 1.0, 0.1)
    assert three.groups == (VoterGroup(4, 0.5), VoterGroup(1, 0.7), VoterGroup(2, 0.5, 0.1))
    assert (three.mechanisms, three.epsilon, three.mechanism_delta) == (7, 0.7, 0.1)


@pytest.mark.parametrize("shift", [0.0, 0.01])
def test_one_group_is_the_setting_without_groups(shift: float) -> None:
    delta = 2 * shift
    grouped = majority.design_for(of([(3, 0.4, shift), (4, 0.4, shift)], 2.0, delta))
    plain = majority.design(7, 0.4, 2.0, mechanism_delta=shift, delta=delta)
    assert grouped.weights == plain.weights
    tagged = MajoritySetting(7, 0.4, 2.0, shift, delta, (VoterGroup(7, 0.4, shift),))
    assert majority.design_for(tagged).value == pytest.approx(plain.value, abs=1e-9)
    assert verdict(tagged, plain.weights)
    assert reduced_size(tagged) == reduced_size(plain.setting)


@pytest.mark.parametrize("setting", SMALL)
def test_the_order_of_the_groups_does_not_matter(setting: MajoritySetting) -> None:
    weights = majority.surrogate_weights(setting.mechanisms).values
    optimum = solve(gamma_problem(setting, weights)).objective
    turned = of(setting.groups[1:] + setting.groups[:1], setting.allowance, setting.delta)
    assert solve(gamma_problem(turned, weights)).objective == pytest.approx(optimum, abs=1e-9)
    filled = majority.design_for(setting).weights
    assert verdict(turned, filled)
    more = next((i for i, weight in enumerate(filled) if weight < ONE), None)
    if more is not None:
        raised = tuple(weight + (i == more) for i, weight in enumerate(filled))
        assert verdict(turned, raised) == verdict(setting, raised)


@given(
    st.floats(0.05, 1.0),
    st.floats(0.05, 1.0),
    st.sampled_from([0.0, 1e-3, 0.05]),
    st.sampled_from([0.0, 1e-3, 0.05]),
    st.sampled_from([(1, 2), (2, 3), (4, 3)]),
)
def test_a_more_private_group_never_hurts(
    epsilon: float, other: float, shift: float, more: float, sizes: tuple[int, int]
) -> None:
    """With the other group, and so the target, as they are."""
    low, high = sorted((epsilon, other))
    few, many = sorted((shift, more))

    def optimum(group: tuple[float, float]) -> float:
        setting = of([(sizes[0], *group), (sizes[1], 1.0, 0.0)], 1.5, 0.05)
        weights = majority.surrogate_weights(setting.mechanisms).values
        return solve(gamma_problem(setting, weights)).objective

    base = optimum((high, many))
    assert optimum((low, many)) >= base - 1e-9
    assert optimum((high, few)) >= base - 1e-9


def test_groups_use_what_the_least_private_voter_leaves() -> None:
    weights = majority.surrogate_weights(11).values
    alike = solve(gamma_problem(MajoritySetting(11, 0.5, 1.0), weights)).objective
    mixed = solve(gamma_problem(of([(10, 0.05), (1, 0.5)], 1.0), weights)).objective
    assert mixed > alike + 0.05


def test_corners_of_groups() -> None:
    setting = of([(1, 0.5), (2, 1.0, 0.1)], 1.0, 0.1)
    r = float(np.exp(1.0))
    assert setting.corner("bc@2") == pytest.approx(((r + 0.1) / (r + 1), 0.9 / (r + 1)))
    assert setting.corner("D0@2") == (0.1, 0.0)
    assert setting.corner("1m@2") == (1.0, 0.9)
    assert setting.corner("D0@1") == (0.0, 0.0)
    assert [axis.names[0] for axis in setting.axes] == ["D0@2", "1m@2", "bc@1", "bc@2"]
    for axis in setting.axes:
        assert setting.corner(axis.names[1]) == axis.chances[::-1]
    for name in ("bc@3", "bc@0", "bc@x", "bc@1@2", "b@1", "xx@1", "", "@"):
        with pytest.raises(ParameterError, match="corner"):
            setting.corner(name)


@pytest.mark.parametrize("setting", SMALL)
def test_groups_come_back_from_plain_values_and_from_their_text(setting: MajoritySetting) -> None:
    assert MajoritySetting.from_dict(json.loads(json.dumps(setting.to_dict()))) == setting
    text = ",".join(f"{g.size}:{g.epsilon!r}:{g.mechanism_delta!r}" for g in setting.groups)
    assert MajoritySetting(allowance=setting.allowance, delta=setting.delta, groups=text) == setting  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "groups",
    [
        [[2, 0.5, 0.0], [1, 1.0, 0.1]],
        [[1, 0.5, 0.0], [2, 1.0, 0.0]],
        [[2, 0.4999, 0.0], [1, 1.0, 0.0]],
        [[2, "a", 0.0], [1, 1.0, 0.0]],
        [[2.5, 0.5, 0.0], [0.5, 1.0, 0.0]],
        5,
        [[]],
        [],
    ],
)
def test_tampered_groups_are_refused(groups: object, tmp_path: Path) -> None:
    path = tmp_path / "groups.json"
    majority.design_for(SMALL[0]).save(path)
    plain = json.loads(path.read_text())
    plain["body"]["setting"]["groups"] = groups
    path.write_text(json.dumps(plain))
    with pytest.raises((ParameterError, NotPrivateError)):
        dpopt.load(path)


@pytest.mark.parametrize(
    "groups",
    [
        [],
        [(3,)],
        [(3, 0.1, 0.0, 0.0)],
        [(0, 0.1)],
        [(-1, 0.1)],
        [(3.5, 0.1)],
        [(2, 0.1)],
        [(3, 0.0)],
        [(3, float("nan"))],
        [(3, float("inf"))],
        [(3, 0.1, 1.0)],
        [(3, 0.1, -0.1)],
        [(3, "a")],
        [(True, 0.1)],
        [(3, 1e5)],
        ["ab"],
        "ab",
        np.zeros((2, 2)),
        [(1, 0.1), (2, 0.2, 0.5)],
    ],
)
def test_groups_that_are_none_are_refused(groups: list) -> None:
    with pytest.raises(ParameterError):
        of(groups, 1.0, 0.1)


def test_groups_that_disagree_with_the_rest_are_refused() -> None:
    for own in ((5, 0.5, 0.1), (3, 0.4, 0.1), (3, 0.5, 0.2)):
        with pytest.raises(ParameterError, match="groups disagree"):
            MajoritySetting(*own[:2], 1.0, own[2], 0.2, (VoterGroup(3, 0.5, 0.1),))
    with pytest.raises(ParameterError, match="it must have the form SIZE:EPSILON"):
        MajoritySetting(groups="5:0.1,6:x", allowance=1.0)  # type: ignore[arg-type]

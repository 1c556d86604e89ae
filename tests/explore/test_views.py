"""What the tabs show, against closed forms and the papers; the code shown, run."""

import itertools
import math
import re
from contextlib import redirect_stdout
from fractions import Fraction
from io import StringIO
from typing import Any

import numpy as np
import pytest

from dpopt import ParameterError
from dpopt.explore import View, kernel_view, majority_view, prior_view, rule_view
from dpopt.explore.majority import _draw_errors, _solved
from dpopt.explore.render import html_of, page_of, refusal
from dpopt.explore.view import Picture, drawing, number, picture
from dpopt.majority import MajoritySetting

VIEWS = {
    "majority": lambda: majority_view(11, 3.0, 0.1),
    "kernel": lambda: kernel_view(6, 1.0),
    "prior": lambda: prior_view("0.05, 0.1, 0.15, 0.2, 0.5", 1.0),
    "rule": lambda: rule_view(20, 3, 0.1, "conference"),
}


def ran(view: View) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()):
        exec(view.code, names)
    return names


def column(view: View, table: int, place: int) -> list[str]:
    return [row[place] for row in view.tables[table].rows]


def test_majority_errors_are_those_of_readme_and_papers() -> None:
    errors = dict(
        zip(column(VIEWS["majority"](), 0, 0), column(VIEWS["majority"](), 0, 1), strict=True)
    )
    assert list(errors) == ["ours", "the paper's", "subsampling", "randomised response"]
    expected = {"ours": 0.0155, "the paper's": 0.0377, "subsampling": 0.0953}
    for name, value in expected.items():
        assert float(errors[name]) == pytest.approx(value, abs=5e-5)


def test_what_baselines_spend() -> None:
    # Theorem 4.1: the majority of M sampled voters spends ceil(M / 2) epsilon.
    for allowance, drawn in ((1.0, 1), (3.0, 2), (4.9, 2), (5.0, 3)):
        rows = {row[0]: row for row in majority_view(11, allowance, 0.1).tables[0].rows}
        assert float(rows["subsampling"][2]) == pytest.approx(0.1 * drawn, abs=1e-6)
        assert float(rows["ours"][2]) == pytest.approx(0.1 * allowance, abs=1e-6)
        assert {row[3:] for row in rows.values()} == {("private", "1")}


def test_a_baseline_that_is_not_private_is_scaled_until_it_is() -> None:
    # The majority of 10 such voters spends more delta than one voter's, which is the target.
    view = majority_view(11, 10.0, 0.5, 0.01, 0.01)
    rows = {row[0]: row for row in view.tables[0].rows}
    assert rows["subsampling"][3] == "private"
    assert 0.999 < float(rows["subsampling"][4]) < 1.0
    assert float(rows["subsampling"][2]) == pytest.approx(5.0, abs=1e-5)


def test_below_one_voter_there_is_no_subsampling() -> None:
    view = majority_view(11, 0.5, 0.1)
    assert column(view, 0, 0) == ["ours", "the paper's", "randomised response"]
    assert "subsampling" not in view.code


def test_what_is_too_long_to_list_says_so() -> None:
    view = majority_view(21, 3.0, 0.1, 1e-5, 1e-4)
    assert view.facts["epsilon spent"] == "not enumerated"
    assert view.private
    assert float(view.facts["slack of the proof"]) >= 0


@pytest.mark.parametrize("allowance", [1.0, 3.0])
def test_the_error_curve_by_enumeration(allowance: float) -> None:
    design = _solved(MajoritySetting(5, 0.5, allowance), "expected-error", "uniform:0,1")
    with drawing(4.0, 3.0) as figure:
        axes = figure.subplots()
        _draw_errors(axes, {"ours": design})
    (line,) = axes.get_lines()
    at = dict(zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True))
    assert min(at) == 0.5
    assert max(at) == 1.0
    for p, shown in at.items():
        gap = 0.0
        for votes in itertools.product((0, 1), repeat=5):
            ones = sum(votes)
            chance = p**ones * (1 - p) ** (5 - ones)
            keep = design.gamma[ones]
            gap += chance * ((ones > 2) - (keep * (ones > 2) + (1 - keep) / 2))
        assert shown == pytest.approx(abs(gap), abs=1e-12)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mechanisms": 10}, "mechanisms is 10; it must be odd"),
        ({"mechanisms": 43}, "this page solves up to 41 voters"),
        ({"mechanisms": 23, "mechanism_delta": 1e-6, "delta": 1e-6}, "solves up to 21 voters"),
        ({"allowance": 12.0}, "allowance is 12.0"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"mechanism_delta": 1e-5}, "must not exceed delta"),
        ({"allowance": 10.25, "epsilon": 1.0}, "allowance * epsilon is 10.25"),
        ({"prior": "gauss"}, "prior is 'gauss'"),
        ({"prior": "beta:0.3,2"}, "A and B in"),
        ({"prior": "beta:2,101"}, "A and B in"),
        ({"objective": "surrogate"}, "objective is 'surrogate'"),
    ],
)
def test_majority_refuses(changed: dict[str, Any], said: str) -> None:
    asked = {"mechanisms": 11, "allowance": 3.0, "epsilon": 0.1} | changed
    with pytest.raises(ParameterError, match=re.escape(said)):
        majority_view(**asked)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("objective", ["bayes", "minimax"])
def test_kernel_is_randomised_response(epsilon: float, objective: str) -> None:
    # Kairouz, Oh, Viswanath: 0-1 loss, all neighbours: 1 - e^eps / (e^eps + n - 1).
    view = kernel_view(5, epsilon, "0 or 1", "complete", objective)
    expected = 4 / (math.exp(epsilon) + 4)
    assert float(view.facts["value"]) == pytest.approx(expected, rel=2e-6)


def test_kernel_of_two_letters_on_a_path() -> None:
    view = kernel_view(2, 1.0, "squared distance")
    assert float(view.facts["value"]) == pytest.approx(1 / (1 + math.e), rel=2e-6)
    assert view.tables[0].rows[0][2:] == (
        number(math.e / (1 + math.e), 3),
        number(1 / (1 + math.e), 3),
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"letters": 1}, "letters is 1"),
        ({"letters": 21}, "letters is 21"),
        ({"epsilon": 8.5}, "epsilon is 8.5"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"loss": "cube"}, "loss is 'cube'"),
        ({"graph": "star"}, "graph is 'star'"),
        ({"objective": "least"}, "objective is 'least'"),
    ],
)
def test_kernel_refuses(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(said)):
        kernel_view(**({"letters": 5, "epsilon": 1.0} | changed))


@pytest.mark.parametrize("text", ["0.05, 0.1, 0.15, 0.2, 0.5", "0.5 0.05 0.1 0.15 0.2", " .2,.8,"])
def test_prior_by_its_formula(text: str) -> None:
    view = prior_view(text, 1.0)
    least = min(float(word) for word in text.replace(",", " ").split())
    expected = (1 - least) / (math.e * least + 1 - least)
    for name in ("Gamma_TV", "worst case, minimax", "worst case, leximin"):
        assert float(view.facts[name]) == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it must hold 2 to 40 numbers"),
        ("1", "it must hold 2 to 40 numbers"),
        ("a, b", "prior is 'a, b'"),
        ("0.5, 0.6", "prior sums to 1.1"),
        ("1, 0", "prior has mass 0"),
        ("1.5, -0.5", "prior"),
        ("nan, 1", "prior"),
        ("inf, 1", "prior"),
        ("0.5, 1e-400, 0.5", "prior has mass 0"),
        (",".join(["0.02"] * 50), "..."),
    ],
)
def test_prior_refuses(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(said)) as caught:
        prior_view(text, 1.0)
    assert len(str(caught.value)) < 300


def test_rule_of_two_records_and_letters() -> None:
    # n = k = 2: q_0 = 1 / (1 + e^eps - 1) = e^-eps; at m = 1 both letters are alike: q_1 = 0.
    view = rule_view(2, 2, 1.0)
    assert view.tables[0].rows[0] == ("0", number(math.exp(-1.0)))
    assert view.tables[0].rows[1:] in ((), (("1", "0"),))


def test_a_rule_that_is_not_private_says_so() -> None:
    view = rule_view(20, 3, 0.1, "conference")
    assert not view.private
    assert view.facts["worst ratio / e^epsilon"] == "1.00668"
    assert "1.00668 e^epsilon" in view.verdict
    found = ran(view)["design"]
    first, second = (column(view, 1, 1)[side] for side in (0, 1))
    assert sum(int(part.split()[0]) for part in first.split(", ") if "(" not in part) <= 20
    assert len(found.audit.witness.counts) == 3
    assert first != second


@pytest.mark.parametrize("rule", ["exact", "roo", "journal", "journal-repaired"])
def test_every_rule_starts_at_the_least_q_of_roo(rule: str) -> None:
    view = rule_view(30, 4, 0.5, rule)
    expected = Fraction(1) / (1 + Fraction(30, 4) * (Fraction(math.exp(0.5)) - 1))
    assert float(view.tables[0].rows[0][1]) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"records": 0}, "records is 0"),
        ({"records": 2001}, "records is 2001"),
        ({"letters": 1}, "letters is 1"),
        ({"epsilon": 0.001}, "epsilon is 0.001"),
        ({"rule": "none"}, "rule is 'none'"),
    ],
)
def test_rule_refuses(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(said)):
        rule_view(**({"records": 20, "letters": 3, "epsilon": 0.1} | changed))


def test_the_code_of_majority_gives_what_is_shown() -> None:
    for view in (
        VIEWS["majority"](),
        majority_view(7, 0.5, 0.3, 1e-4, 1e-3, "common-beta:2,3", "worst-case"),
    ):
        names = ran(view)
        designs = [names["ours"], names["paper"], *names["others"].values()]
        assert column(view, 0, 1) == [number(design.expected_error) for design in designs]
        assert column(view, 0, 3) == [design.verdict for design in designs]
        assert column(view, 0, 4) == [number(design.shrink) for design in designs]
        upper = designs[0].gamma[designs[0].setting.middle :]
        assert column(view, 1, 1) == [number(value) for value in upper]
        assert np.array_equal(names["axes"].get_lines()[0].get_ydata(), designs[0].gamma)


@pytest.mark.parametrize("loss", ["distance", "squared distance", "0 or 1"])
def test_the_code_of_kernels_gives_what_is_shown(loss: str) -> None:
    view = kernel_view(4, 0.7, loss, "complete", "minimax")
    design = ran(view)["design"]
    assert view.facts["value"] == number(design.value)
    assert view.facts["dual bound"] == number(design.bound)
    assert [row[2:] for row in view.tables[0].rows] == [
        tuple(number(p, 3) for p in row) for row in design.kernel
    ]


def test_the_code_of_priors_gives_what_is_shown() -> None:
    view = VIEWS["prior"]()
    names = ran(view)
    assert column(view, 0, 2) == [number(kept) for kept in names["minimax"].diagonal]
    assert column(view, 0, 3) == [number(kept) for kept in names["leximin"].diagonal]


def test_the_code_of_rules_gives_what_is_shown() -> None:
    view = VIEWS["rule"]()
    names = ran(view)
    assert column(view, 0, 1)[: names["design"].q.size] == [number(q) for q in names["design"].q]
    assert column(view, 0, 2)[: names["exact"].q.size] == [number(q) for q in names["exact"].q]
    assert [line.get_label() for line in names["axes"].get_lines()] == ["exact", "conference"]


@pytest.mark.parametrize("name", VIEWS)
def test_pictures_are_the_same_twice_and_fetch_nothing(name: str) -> None:
    first, second = VIEWS[name](), VIEWS[name]()
    assert first == second
    for shown in first.pictures:
        assert shown.svg.startswith("<svg ")
        assert "currentColor" in shown.svg
        assert "#010203" not in shown.svg
        assert "script" not in shown.svg
        # Links point into the picture, or hold the pixels themselves; names are only names.
        links = re.findall(r'href="([^"]*)"', shown.svg)
        assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
        rest = re.sub(r'xmlns(:xlink)?="[^"]*"', "", shown.svg)
        assert "http" not in rest


def test_a_picture_scales_up_to_its_own_size() -> None:
    with drawing(2.5, 1.0) as figure:
        figure.subplots()
        svg = picture(figure, "nothing").svg
    opening = svg.split(">", 1)[0]
    assert 'viewBox="0 0 180 72"' in opening
    assert 'style="max-width: 240px"' in opening
    assert ' width="' not in opening


def test_html_escapes_every_text() -> None:
    bad = '<img src=x onerror="alert(1)">'
    view = VIEWS["prior"]()
    spoilt = View(bad, True, {bad: bad}, view.tables, (Picture("<svg></svg>", bad),), bad)
    for html in (page_of(spoilt), refusal(bad)):
        assert "<img" not in html
        assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in html


@pytest.mark.parametrize(
    "text",
    ["", ":", "uniform:", "uniform:nan,1", "uniform:0,1,0,1", "point:inf", "point:", "beta:0,0",
     "beta:1e308,2", "common-common-uniform:0,1", "uniform:0,1\x00", "1e999, 1", "१,२",
     "'; import os", "{x}", "uniform:{0},1", "uniform:0.5,0.5", "0.5 0.5 </pre>", "beta:2,nan"],
)  # fmt: skip
def test_any_text_gives_numbers_or_a_sentence(text: str) -> None:
    for html in (
        html_of(majority_view, {"mechanisms": 5, "allowance": 1.0, "epsilon": 0.1, "prior": text}),
        html_of(prior_view, {"prior": text, "epsilon": 1.0}),
    ):
        assert ("data-fact" in html) != ('role="alert"' in html)


def test_html_holds_every_number() -> None:
    view = VIEWS["rule"]()
    html = page_of(view)
    for name, text in view.facts.items():
        assert f'<dd data-fact="{name}">{text}</dd>' in html
    assert html.count("<tr data-row=") == sum(len(table.rows) for table in view.tables)
    assert 'class="verdict refuted"' in html


def test_numbers() -> None:
    assert [number(None), number(0.1), number(1 / 3), number(1e-12, 3)] == [
        "–", "0.1", "0.333333", "1e-12",
    ]  # fmt: skip

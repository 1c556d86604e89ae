"""Each refuted statement's file: accepted alone, refused where its witness refutes nothing."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import dpopt
from dpopt import majority, verify
from experiments.catalogue import all_experiments
from experiments.refuted import Refutation, checker, refutations
from tests.oracles import poisson_binomial
from tests.proofs.judging import alone, answer, run

ALL = {each.name: each for each in refutations()}
# A change of one formula after which the statement is true of the witness.
TRUE: dict[str, tuple[str, str]] = {
    "darrm-lemma-3-2": ("p = [1, 1, 0]", "p = [1, 1, 1]"),
    "darrm-subsampling-at-one": ("1/3, 1))", "1, 1/3))"),
    "darrm-best-of-all": ("1/3, 1))", "1, 1))"),
    "darrm-three-corners": ("[1/6, 15/16, 0]", "[1/6, 9/10, 0]"),
    "darrm-lemma-a-1": ("m = 16", "m = 18"),
    "darrm-composition-of-queries": ("queries = 12", "queries = 11"),
    "darrm-algorithm-5": ("tau = 50", "tau = 60"),
    "roo-theorem-2-conference": ("z = [7, 6, 7]", "z = [6, 7, 7]"),
    "roo-theorem-2-journal": ("e = exp(1/2)", "e = 2"),
    "roo-lemma-2": ("n = 3", "n = 4"),
    "roo-lemma-5": ("n = 4", "n = 5"),
    "roo-equation-31": ("e = 2", "e = 3/2"),
    "roo-conference-lemma-3": ("n = 8", "n = 15"),
    "roo-conference-lemma-4": ("n = 4", "n = 5"),
    "roo-row-68": ("n = 3", "n = 4"),
    "smoothed-remark-8": ("f = 1/2", "f = 1/3"),
    "smoothed-theorem-5": ("T = 3", "T = 2"),
    "smoothed-lemma-2": ("e = 2", "e = 11/10"),
    "smoothed-corollary-3": ("k = 13", "k = 12"),
    "smoothed-table-1-noise": ("r = 1/3", "r = 1/2"),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", ALL)
def test_a_fresh_interpreter_accepts_each_file_without_the_package(
    name: str, tmp_path: Path
) -> None:
    assert checker() == Path(verify.__file__).read_bytes()
    (tmp_path / ALL[name].file).write_bytes(ALL[name].content)
    ended = alone(tmp_path / "alone", tmp_path / ALL[name].file)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"refuted: {ALL[name].statement}" in ended.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_witness_that_refutes_nothing_is_refused(name: str, tmp_path: Path) -> None:
    content = ALL[name].to_dict()
    old, new = TRUE[name]
    changed = [line.replace(old, new) for line in content["formulas"]]
    assert changed != content["formulas"]
    assert answer(tmp_path, content | {"formulas": changed})[0] == 4


@pytest.mark.slow
def test_every_refuted_statement_of_the_lemmas_has_a_file() -> None:
    known = {(each.paper, each.judges) for each in ALL.values()}
    ours = {"smoothed-claims", "majority-claims"}
    for name in ours:
        item = all_experiments()[name]
        outcome = item.run(item.quick)
        refuted = [said for said in outcome.comparisons if said.verdict in ("refuted", "misprint")]
        assert refuted
        assert {(item.paper, said.identifier) for said in refuted} <= known


def test_what_is_not_shown_is_refused(tmp_path: Path) -> None:
    composed, single = (ALL[f"darrm-{name}"] for name in ("composition-of-queries", "lemma-3-2"))
    for finding in (composed, ALL["roo-lemma-2"]):
        code, lines, _ = answer(tmp_path, finding.to_dict())
        assert (code, any(line.startswith("false: ") for line in lines)) == (0, True)
    # One more in the last digit, and the voters are not private.
    formulas = [line.replace("16487212707/", "16487212708/") for line in composed.formulas]
    assert answer(tmp_path, composed.to_dict() | {"formulas": formulas})[0] == 4
    # A design that is not private.
    content = single.to_dict()
    units = content["design"]["table"]
    units["weights"][1] = [units["total"], "0"]
    assert answer(tmp_path, content)[0] == 4
    # What an enclosure leaves open.
    content = ALL["roo-lemma-2"].to_dict() | {"formulas": [], "given": []}
    for claim in ("exp(1)*exp(-1) < 1", "exp(1/2)*exp(1/2) < exp(1)"):
        assert answer(tmp_path, content | {"claim": claim})[0] == 4


def test_what_is_no_formula_is_malformed(tmp_path: Path) -> None:
    for formulas, claim in [
        (["a = b", "b = a"], "a < 1"),
        (["a = 2**100000"], "a < 1"),
        (["a = range(10**9)"], "len(a) < 1"),
        (["a(i) = 1 + sum(a(i - 1) for j in range(9))"], "a(99) < 1"),
        (["a = __import__('os')"], "a < 1"),
        (["a = (1).__class__"], "a < 1"),
        (["a = 1/0"], "a < 1"),
        (["a = 0.5"], "a < 1"),
        (["a = lambda: 1"], "a < 1"),
        (["a = sum(i for i in range(9) if i < 3)"], "a < 4"),
        (["a = sum(1 for (i, j) in [[1, 2]])"], "a < 2"),
        (["a = sum([1, 2], 3)"], "a < 4"),
        (["a = " + "(" * 900], "a < 1"),
        (["a = 2*range(9)"], "len(a) < 1"),
        ([], "1"),
        ([], "1 < 2 < 3"),
        ([], "x < 1"),
        ([7], "1 < 0"),
    ]:
        content = ALL["roo-lemma-2"].to_dict() | {"formulas": formulas, "given": [], "claim": claim}
        assert answer(tmp_path, content)[0] == 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("exp(1/2)", math.exp(0.5)),
        ("(1 - exp(1))**3", (1 - math.e) ** 3),
        ("1/(2 - exp(-3))", 1 / (2 - math.exp(-3))),
        ("max(-exp(1), min([1/3, 2]))", 1 / 3),
        ("sum(comb(5, i)*2**i*(1/2)**(5 - i) for i in range(6))", 2.5**5),
        ("7 // 2 + 7 % 2 - [1, 2, 3][2]", 1.0),
        ("2**-3 if 1 < 2 else 0", 0.125),
    ],
)
def test_formulas_have_the_values_of_floats(text: str, wanted: float) -> None:
    formulas, formula = parsed(text)
    low, high = verify.ends(formulas.value(formula, {}))
    assert float(low) == pytest.approx(wanted, rel=1e-14)
    assert 0 <= high - low < Fraction(1, 2**250)


def parsed(text: str, **values: Any) -> tuple[verify.Formulas, Any]:
    formulas = verify.Formulas([], values)
    return formulas, formulas.parsed(text)


def sides(refutation: Refutation) -> tuple[Any, Any]:
    formulas = verify.Formulas(list(refutation.formulas), {})
    return formulas.sides(formulas.parsed(refutation.claim), {})[1:]


def test_numbers_by_hand() -> None:
    # Margins that the grid of the lemmas found in fractions of its own: -3/20 and -7/15.
    assert sides(ALL["roo-lemma-2"]) == (Fraction(1, 10), Fraction(1, 4))
    assert sides(ALL["roo-conference-lemma-3"]) == (0, Fraction(7, 15))
    assert sides(ALL["smoothed-lemma-2"]) == (Fraction(1, 3), 0)
    # The ratio is 2, and its square is compared with 3.
    left, right = sides(ALL["smoothed-table-1-noise"])
    assert left / right == Fraction(4, 3)
    delta, claimed = sides(ALL["smoothed-theorem-5"])
    assert delta == 1 - Fraction(199, 200) ** 3
    assert claimed == Fraction(3, 201)


def test_the_recursions_are_those_of_the_package() -> None:
    cases: Any = (("conference", (20, 3, 0.1)), ("journal", (3, 2, 0.5)))
    for name, data in cases:
        after, allowed = sides(ALL[f"roo-theorem-2-{name}"])
        audit = dpopt.design(dpopt.RevealOrObscure(*data, rule=name)).audit
        assert float(after[0] / allowed[1]) == pytest.approx(audit.excess_factor, rel=1e-12)


def test_three_corners_by_their_pmfs() -> None:
    gamma = [0, Fraction(15, 16), Fraction(1, 6), Fraction(1, 6), Fraction(15, 16), 0]
    signed = [Fraction(1 + (1 if ones > 2 else -1) * g, 2) for ones, g in enumerate(gamma)]

    def one(p: Fraction) -> Fraction:
        pmf = poisson_binomial([Fraction(0)] * 4 + [p])
        return sum((a * b for a, b in zip(pmf, signed, strict=True)), Fraction(0))

    known = one(Fraction(4, 13)), 2 * one(Fraction(9, 13))
    assert sides(ALL["darrm-three-corners"]) == known


def test_the_audit_of_a_design_is_refused_as_not_private(tmp_path: Path) -> None:
    path, rule = tmp_path / "audit.json", majority.assess(dpopt.Majority(3, 0.1, 1), [1, 1, 1, 1])
    with pytest.raises(dpopt.NotPrivateError, match="breaks"):
        rule.save(path)
    rule.save(path, even_if_not_private=True)
    code, _, complaint = run(path)
    assert (code, "not private" in complaint) == (4, True)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("x + y", (0, 5)),
        ("x - y", (-2, 3)),
        ("y - x", (-3, 2)),
        ("x*y", (-2, 6)),
        ("y*y", (-3, 9)),  # of two numbers in y, which need not be the same
        ("y/x", (-1, 3)),
        ("-x", (-2, -1)),
        ("x**-2", (Fraction(1, 4), 1)),
        ("max(x, y)", (1, 3)),
        ("min(x, y)", (-1, 2)),
        ("sum([x, y, 1])", (1, 6)),
        ("[x, y][1]", (-1, 3)),
        ("7/2", Fraction(7, 2)),
        ("sum(3)", 3),
        ("exp(x)", [math.e, math.e**2]),
        *((text, ZeroDivisionError) for text in ("1/y", "x/y", "1/(y - y)", "1/0")),
    ],
)
def test_an_enclosure_holds_all_results(text: str, ends: Any) -> None:
    formulas, formula = parsed(text, x=(1, 2), y=(-1, 3))
    if ends is ZeroDivisionError:
        with pytest.raises(ends):
            formulas.value(formula, {})
        return
    value = formulas.value(formula, {})
    if text == "exp(x)":
        assert [float(end) for end in value] == pytest.approx(ends, rel=1e-14)
    else:
        assert value == ends


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        *((text, None) for text in ("y < 1", "y == 1", "x == x", "x > y", "y // 2 < 1")),
        *(("y <= 3", True), ("x == 5", False), ("0 == x", False), ("2 == 2", True)),
        *((f"{a} == {b}", None) for a, b in ("xz", "zx", "x2", "w2", "xu", "ux")),
        ("2 == 3", False),
    ],
)
def test_what_numbers_of_an_enclosure_differ_in_is_undecided(text: str, holds: bool | None) -> None:
    known = {"x": (1, 2), "y": (-1, 3), "z": (2, 3), "w": (Fraction(2), Fraction(2)), "u": (0, 3)}
    formulas, formula = parsed(text, **known)
    if holds is not None:
        assert formulas.sides(formula, {})[0] is holds
        return
    with pytest.raises(verify.Refused, match="too close" if "==" in text else None):
        formulas.sides(formula, {})


@pytest.mark.parametrize("seed", range(20))
def test_a_random_formula_encloses_its_value(seed: int) -> None:
    """At 150 digits of another library."""
    rng = np.random.default_rng(seed)

    def term(depth: int) -> str:
        if depth == 0:
            return f"exp({rng.integers(-9, 10)}/{rng.integers(1, 9)})"
        return f"({term(depth - 1)} {rng.choice([*'+-*/'])} {term(depth - 1)})"

    text = term(3)
    formulas, formula = parsed(text)
    low, high = formulas.value(formula, {})
    with mpmath.workdps(150):
        names = {"exp": mpmath.exp}
        exact = eval(re.sub(r"(\d+)", r"mpmath.mpf(\1)", text), {"mpmath": mpmath, **names})
        assert mpmath.mpf(low.numerator) / low.denominator <= exact
        assert exact <= mpmath.mpf(high.numerator) / high.denominator
        assert 0 < high - low < Fraction(1, 2**50) * max(abs(low), 1)

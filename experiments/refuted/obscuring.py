"""Statements of both reveal-or-obscure papers."""

from __future__ import annotations

from functools import partial

from experiments.refuted.record import Refutation
from experiments.roo.common import PAPER

_STEPS = (
    "M = n//k",
    "u(m) = 1/k - (m + 1)/n",
    "v(m) = e*(1/k - m/n)",
    "w(m) = (m*e - m - 1)/n",
    "t(m) = w(m)/(u(m) - v(m))",
    "f1(m) = (u(m)*q(m - 1) - w(m))/v(m)",
)
_FIRST = "1/(1 + n/k*(e - 1)) if m == 0 else"
_CONFERENCE = (*_STEPS, f"q(m) = {_FIRST} max(0, f1(m)) if m*k < n else 0")
_JOURNAL = (
    *_STEPS,
    "f2(m) = (e*(1/k - 1)*q(m - 1) + e - 1 - 1/n)/(1/k - 1 - 1/n)",
    f"q(m) = {_FIRST} max(0, max(f1(m), f2(m))) if m*k < n else max(0, f2(m))",
)
# The chance of the first category, of which x[0] of the n records are.
_CATEGORY = "chance(x) = x[0]/n + q(min(x))*(1/k - x[0]/n)"
_NEIGHBOURS = (
    "sum(x) == n",
    "sum(z) == n",
    "sum(max(x[i] - z[i], 0) for i in range(k)) == 1",
)


def _case(n: int, k: int, e: str, m: int | None = None) -> tuple[str, ...]:
    found = (f"n = {n}", f"k = {k}", f"e = {e}")
    return found if m is None else (*found, f"m = {m}")


_refutation = partial(Refutation, PAPER)
_of_recursion = partial(_refutation, experiment="roo-program")

REFUTATIONS = (
    _refutation(
        name="roo-theorem-2-conference",
        experiment="roo-audit-map",
        judges="theorem 2, conference",
        source="reveal-or-obscure, ITW 2025, theorem 2",
        statement="The conference paper's DS-ROO is epsilon-DP; here n = 20, k = 3, epsilon = 0.1.",
        formulas=(
            *_case(20, 3, "exp(1/10)"),
            *_CONFERENCE,
            _CATEGORY,
            "x = [6, 6, 8]",
            "z = [7, 6, 7]",
        ),
        given=_NEIGHBOURS,
        claim="chance(z) <= e*chance(x)",
    ),
    _refutation(
        name="roo-theorem-2-journal",
        experiment="roo-audit-map",
        judges="theorem 2, journal",
        source="reveal-or-obscure, journal version, theorem 2",
        statement="The journal paper's DS-ROO is epsilon-DP; here n = 3, k = 2, epsilon = 0.5.",
        formulas=(
            *_case(3, 2, "exp(1/2)"),
            *_JOURNAL,
            _CATEGORY,
            "x = [1, 2]",
            "z = [2, 1]",
        ),
        given=_NEIGHBOURS,
        claim="chance(z) <= e*chance(x)",
    ),
    _of_recursion(
        name="roo-lemma-2",
        source="reveal-or-obscure, journal version, lemma 2",
        statement="q_m >= t_m for every m up to 1 / (e^epsilon - 1), where n > k.",
        formulas=(*_case(3, 2, "5/3", 1), *_JOURNAL),
        given=("n > k", "m <= M", "m*(e - 1) <= 1"),
        claim="q(m) >= t(m)",
    ),
    _of_recursion(
        name="roo-lemma-5",
        source="reveal-or-obscure, journal version, lemma 5",
        statement="u_m q_(m+1) < v_m q_m + w_m for 0 <= m < M, where n > k; both are equal here.",
        formulas=(*_case(4, 2, "3/2", 1), *_JOURNAL),
        given=("n > k", "m < M"),
        claim="u(m)*q(m + 1) < v(m)*q(m) + w(m)",
    ),
    _of_recursion(
        name="roo-equation-31",
        source="reveal-or-obscure, journal version, equation 31",
        statement="(u_m - v_m) q_m >= w_m for every m, which (68) has with <=.",
        formulas=(*_case(4, 2, "2", 2), *_JOURNAL),
        given=("n > k", "m <= M"),
        claim="(u(m) - v(m))*q(m) >= w(m)",
    ),
    _of_recursion(
        name="roo-conference-lemma-3",
        source="reveal-or-obscure, ITW 2025, lemma 3",
        statement="q_m > t_m for every m < n / k from 1 up to 1 / (e^epsilon - 1).",
        formulas=(*_case(8, 7, "3/2", 1), *_CONFERENCE),
        given=("n > k", "m*k < n", "m*(e - 1) <= 1"),
        claim="q(m) > t(m)",
    ),
    _of_recursion(
        name="roo-conference-lemma-4",
        source="reveal-or-obscure, ITW 2025, lemma 4",
        statement="u_m q_(m+1) < v_m q_m + w_m for 0 <= m < M; both are equal here.",
        formulas=(*_case(4, 2, "3/2", 1), *_CONFERENCE),
        given=("n > k", "m < M"),
        claim="u(m)*q(m + 1) < v(m)*q(m) + w(m)",
    ),
    _of_recursion(
        name="roo-row-68",
        judges="The recursion satisfies the conditions (68) to (70) and (72) to (74) (section IV, "
        "(37)).",
        source="reveal-or-obscure, journal version, section IV, (37) and (68)",
        statement="The journal's recursion satisfies (68), (u_m - v_m) q_m <= w_m, for every m.",
        formulas=(*_case(3, 2, "exp(1/2)", 1), *_JOURNAL),
        given=("n > k", "m <= M"),
        claim="(u(m) - v(m))*q(m) <= w(m)",
    ),
)

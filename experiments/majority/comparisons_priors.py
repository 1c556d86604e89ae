"""The DaRRM paper beside the run of its figure 9."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.registry import Comparison, Table
from experiments.verdicts import observed, statement

_TOLERANCE = 1e-9
# What the paper expects of its curves is no statement that a proof could refute.
_EXPECTED = "agrees if it is so at every m"
_PAPER_U, _PAPER_P = "the paper's, U[0, 1]", "the paper's, U[0, .3] or [.7, 1]"


def of_priors(errors: Table) -> tuple[Comparison, ...]:
    """Compare what section D.1.3 expects of a wrong and of a right prior (Figure 9)."""
    found = []
    allowances = list(dict.fromkeys(errors.column("m")))
    slacks = errors.column("exact_slack")
    certificate = (
        "exact integers for every gamma; errors in closed form"
        if all(slack is not None and slack >= 0 for slack in slacks)
        else "errors in closed form; not every gamma is proved"
    )
    for actual, near, far, words in (
        ("uniform:0,0.1", _PAPER_P, _PAPER_U, "p ~ U[0, 0.1], near the prior of clear votes"),
        ("uniform:0,1", _PAPER_U, _PAPER_P, "p ~ U[0, 1], the uniform prior"),
    ):
        if actual not in errors.column("actual"):
            continue
        pairs = [
            (_cell(errors, m, actual, near), _cell(errors, m, actual, far)) for m in allowances
        ]
        listed = ", ".join(f"{a:.2g} against {b:.2g}" for a, b in pairs)
        found.append(
            observed(
                f"Under {words}, the gamma optimised for it is expected to have the lower error "
                "(section D.1.3).",
                f"{listed} at {_named(allowances)}.",
                certificate,
                alike=all(a < b for a, b in pairs),
                rule=_EXPECTED,
                name=f"Figure 9, {actual}",
            )
        )
    found += _at_half(errors, certificate)
    return (*found, _below_baselines(errors, allowances, certificate))


def _cell(errors: Table, m: int, actual: str, curve: str) -> float:
    return float(errors.select(m=m, actual=actual, curve=curve).column("error")[0])


def _at_half(errors: Table, certificate: str) -> list[Comparison]:
    part = errors.select(actual="point:0.5")
    if not part.rows:
        return []
    values = part.column("error")
    clear, plain = (part.select(curve=curve).column("error") for curve in (_PAPER_P, _PAPER_U))
    return [
        observed(
            "At p_i = 0.5 the gamma optimised for clear votes is expected to have the higher "
            "error (section D.1.3).",
            f"By symmetry all {len(values)} errors are {max(values):.1g}; a difference is sampling "
            "noise.",
            certificate,
            alike=all(a > b for a, b in zip(clear, plain, strict=True)),
            rule=_EXPECTED,
            name="Figure 9, p = 0.5",
        )
    ]


def _below_baselines(errors: Table, allowances: Sequence[int], certificate: str) -> Comparison:
    worse = [
        (m, actual, curve, _cell(errors, m, actual, curve), least)
        for m in allowances
        for actual in dict.fromkeys(errors.column("actual"))
        for least in [
            min(_cell(errors, m, actual, b) for b in ("subsampling", "randomised response"))
        ]
        for curve in (_PAPER_U, _PAPER_P)
        if _cell(errors, m, actual, curve) > least + _TOLERANCE
    ]
    ours = "Nowhere higher"
    ours += "; at p_i = 0.5 all are 0." if "point:0.5" in errors.column("actual") else "."
    if worse:
        m, actual, curve, error, least = worse[0]
        ours = f"Not at m = {m}, p ~ {actual}: {error:.2g} for {curve}, {least:.2g} for a baseline."
    return statement(
        "Whatever the prior, the optimised gamma has a lower error than the baselines (Figure 9).",
        ours,
        certificate,
        holds=not worse,
        name="Figure 9, baselines",
    )


def _named(allowances: Sequence[int]) -> str:
    return "m = " + ", ".join(map(str, allowances))

"""DaRRM away from the parameters of the paper: drawn, and with nothing printed to compare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from matplotlib.figure import Figure

from dpopt import ParameterError
from experiments.majority import claims, composition, figures, gnmax
from experiments.majority.claims_corners import Case
from experiments.majority.claims_sampling import Repeated, Sampled
from experiments.majority.figures import composed_targets, simple_targets, tick_step
from experiments.majority.gnmax import Example
from experiments.registry import Experiment
from tests.experiments.comparing import ran

FIGURE_2, FIGURE_6, FIGURE_7, FIGURE_8 = figures.EXPERIMENTS
(FIGURE_10,) = gnmax.EXPERIMENTS
(TOTALS,) = composition.EXPERIMENTS
(CLAIMS,) = claims.EXPERIMENTS
SMALL = replace(FIGURE_2.quick, draws=20, repeats=2, targets=simple_targets((1, 3), 1e-5))
FEW = replace(
    CLAIMS.quick,
    draws=50,
    at_one=(3,),
    objectives=((5, 1),),
    counted=(5,),
    pure=(3,),
    approximate=(3,),
    gammas=1,
    three=(Case(5, 2.0, 0.9),),
    swept=((5, 2.0),),
    swept_epsilons=(0.9,),
    doubled=(3,),
    certified=(3,),
    certified_epsilons=(0.5,),
    doubled_approximate=((3, 1, 1e-3),),
    sampled=(Sampled(5, 3, 0.1),),
    sampled_curve=(3,),
    constants=((5, (1,)),),
    below=((5, 2),),
    repeated=(Repeated(5, 1.0, 0.5, 2),),
)


@pytest.mark.parametrize("mechanisms", [3, 5, *range(13, 25, 2), 27])
def test_figure_2_is_drawn_for_any_number_of_voters(mechanisms: int) -> None:
    outcome = ran(FIGURE_2, replace(SMALL, mechanisms=mechanisms))
    figure = FIGURE_2.plot(outcome)
    figure.draw_without_rendering()
    ticks = figure.get_axes()[0].get_xticks()
    assert 2 <= len(ticks) <= 8
    assert all(tick == round(tick) for tick in ticks)
    assert not [c for c in outcome.comparisons if c.claim.startswith("Table")]


def test_ticks_are_few_and_round_for_every_number_of_voters() -> None:
    for last in range(1, 4002):
        step = tick_step(last)
        assert str(step).rstrip("0") in {"1", "2", "5"}
        assert 2 <= len(range(0, last + 1, step)) <= 8
    assert [tick_step(last) for last in (3, 11, 13, 23, 35, 101)] == [1, 2, 2, 5, 5, 20]


def test_table_3_is_compared_for_its_own_parameters_only() -> None:
    samples = (10, 13, 15, 20)
    config = replace(SMALL, mechanisms=21, targets=composed_targets(21, 0.1, 1e-5, samples, 0.1))
    assert not [c for c in ran(FIGURE_6, config).comparisons if "Table 3" in c.claim]


def test_one_sampled_voter_is_not_m_1() -> None:
    """Composed targets sit at M; what is said of m = 1 and of m = K asks for the allowance."""
    targets = composed_targets(3, 0.1, 0.0, (1, 3), 0.1)
    config = replace(SMALL, mechanisms=3, mechanism_delta=0.0, targets=targets)
    found = ran(FIGURE_6, config).comparisons
    assert [t.allowance == 1.0 for t in targets] == [True, False]
    assert sum(c.claim.startswith("At m = 1") for c in found) == 2
    moved = replace(config, targets=(replace(targets[0], allowance=1.5), targets[1]))
    assert not [c for c in ran(FIGURE_6, moved).comparisons if c.claim.startswith("At m = 1")]


OTHERS: list[tuple[Experiment, dict[str, Any]]] = [
    *((FIGURE_10, {"voters": k}) for k in (1, 2, 50)),
    *(
        (FIGURE_10, {"example": example})
        for example in (Example(0, 5), Example(3, 2), Example(250, 0, 40.0, 2.0))
    ),
    *((TOTALS, {"voters": k}) for k in (1, 101, 999)),
    *((TOTALS, {"queries": q}) for q in ((1,), (20, 100), (3, 50, 70, 200))),
    *((TOTALS, {"slack": s}) for s in (1e-9, 1e-3, 0.5)),
    *((CLAIMS, {"below": b}) for b in (((3, 1),), ((35, 10),), ((5, 5), (11, 2)))),
    *(
        (CLAIMS, {"repeated": (case,)})
        for case in (
            Repeated(3, 1.0, 0.1, 2),
            Repeated(5, 2.5, 0.5, 1),
            Repeated(11, 0.5, 1.0, 6),
        )
    ),
    *((CLAIMS, {"epsilon": e}) for e in (0.01, 0.5, 1.5)),
    *((CLAIMS, {"objectives": o}) for o in (((3, 3),), ((13, 2), (5, 5)))),
    *((CLAIMS, {"three": (case,)}) for case in (Case(3, 1.0, 0.1), Case(13, 3.0, 2.0))),
    (CLAIMS, {"approximate": ()}),
]


@pytest.mark.parametrize(
    ("experiment", "changes"), OTHERS, ids=lambda x: x.name if isinstance(x, Experiment) else str(x)
)
def test_other_parameters_run_and_are_drawn(
    experiment: Experiment, changes: dict[str, Any]
) -> None:
    config = replace(FEW if experiment is CLAIMS else experiment.quick, **changes)
    told: list[int] = []
    outcome = experiment.run(config, lambda: told.append(1))
    assert len(told) == experiment.steps(config)
    assert isinstance(experiment.plot(outcome), Figure)
    paper = {name for name in changes if name in ("slack", "voters")}
    if experiment is FIGURE_10 and paper:
        assert not [c for c in outcome.comparisons if "K = 11" in c.claim]


def test_a_grid_without_orders_is_refused() -> None:
    with pytest.raises(ParameterError, match="^last_order is 20; it must be more than"):
        ran(FIGURE_10, replace(FIGURE_10.quick, last_order=20.0))

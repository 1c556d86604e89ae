"""What each prior's noise function loses under the others, as the item's tables tell it."""

from typing import Any

import pytest

from dpopt import ParameterError
from experiments.majority.hedging import DEFAULT, EXPERIMENT, PAPER, REGRET, WORST, Config
from experiments.registry import Outcome
from tests.experiments.comparing import ran
from tests.experiments.pictures import drawn
from tests.majority.test_regret import HEDGED, NINE


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return ran(EXPERIMENT)


def test_eleven_voters_are_those_of_the_program_written_out(outcome: Outcome) -> None:
    errors = outcome.tables["errors"].select(K=11, m=3.0, Delta=0.0)
    curves = {
        "one p, the default": "for U[0, 1], one p for all",
        "independent p_i": "for U[0, 1]",
        "the paper's objective": PAPER,
    }
    for name, known in NINE.items():
        part = errors.select(curve=curves[name])
        assert part.column("law") == list(HEDGED)
        assert [round(error, 4) for error in part.column("error")] == pytest.approx(known)
    hedged = errors.select(curve=REGRET)
    assert max(hedged.column("regret")) == pytest.approx(0.0365707, abs=1e-6)
    assert HEDGED[1] == DEFAULT


def test_least_regret_is_least_in_every_case(outcome: Outcome) -> None:
    errors = outcome.tables["errors"]
    cases = set(zip(errors.column("K"), errors.column("m"), errors.column("Delta"), strict=True))
    assert len(cases) == 4
    for k, m, shift in cases:
        part = errors.select(K=k, m=m, Delta=shift)
        largest = {
            curve: max(part.select(curve=curve).column("regret")) for curve in part.column("curve")
        }
        assert min(largest, key=lambda curve: largest[curve]) == REGRET
        # Independent p_i, of which unanimous votes are rare, lose most of all.
        assert max(largest, key=lambda curve: largest[curve]) == "for U[0, 1]"
        assert largest[WORST] > 2 * largest[REGRET]
    assert min(errors.column("regret")) >= 0.0
    assert set(errors.column("verdict")) == {"private"}
    assert outcome.comparisons == ()


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"settings": ("5,2,0",)},
        {"settings": ("3,1,0", "5,1.5,1e-5", "7,2,0.01")},
        {"settings": ("5,2,0", "7,1,0"), "priors": ("beta:2,2", "common-beta:9,1", "point:0.7",
                                                    "uniform:0.5,1", "uniform:0,1")},
        {"settings": ("5,2,0",), "epsilon": 3.0, "priors": ("uniform:0,1", "common-uniform:0,1")},
    ],
)  # fmt: skip
def test_it_is_drawn_whole(changed: dict[str, Any]) -> None:
    drawn(EXPERIMENT, EXPERIMENT.run(Config(**changed), lambda: None))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"settings": ()}, "settings is ()"),
        ({"settings": ("5,2",)}, "settings holds '5,2'"),
        ({"settings": ("4,2,0",)}, "mechanisms is 4"),
        ({"settings": ("5,2,0", "5,2,0")}, "each once"),
        ({"priors": ("uniform:0,1",)}, "two to 5 laws"),
        ({"priors": ("uniform:0,1", "uniform:0,1")}, "each once"),
        ({"priors": ("uniform:0,1", "gauss:1")}, "prior is 'gauss:1'"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
    ],
)
def test_what_it_cannot_show_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match="must") as caught:
        Config(**changed)
    assert words in str(caught.value)

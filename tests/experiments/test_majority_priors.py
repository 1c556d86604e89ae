"""What each prior's noise function loses under the others, as the item's tables tell it."""

import pytest

from experiments.majority.hedging import DEFAULT, PAPER, REGRET, WORST, run
from experiments.registry import Outcome
from tests.experiments.comparing import ran
from tests.majority.test_regret import HEDGED, NINE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return ran(run)


@pytest.mark.nightly
def test_eleven_voters_are_those_of_the_program_written_out(outcome: Outcome) -> None:
    errors = outcome.tables["errors"].select(K=11, m=3.0, Delta=0.0)
    curves = {
        "one p, the default": "for U[0, 1], one p for all",
        "independent p_i": "for U[0, 1]",
        "the paper's objective": PAPER,
    }
    for name, known in NINE.items():
        part = errors.select(curve=curves[name])
        assert part.column("pmf") == list(HEDGED)
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

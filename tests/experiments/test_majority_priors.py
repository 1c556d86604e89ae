"""What each prior's noise function loses under the others, as the item's tables tell it."""

import pytest

from experiments.majority.hedging import DEFAULT, PAPER, REGRET, run
from tests.experiments.comparing import ran
from tests.majority.test_regret import HEDGED, NINE


@pytest.mark.slow
@pytest.mark.nightly
def test_eleven_voters_are_those_of_the_program_written_out() -> None:
    errors = ran(run).tables["errors"].select(K=11, m=3.0, Delta=0.0)
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

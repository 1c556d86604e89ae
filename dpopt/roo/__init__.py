"""Reveal-or-Obscure: one private letter from n records, by the best certified rule.

Tasnim, Gilani, Sankar, Kosut, "Differentially Private Sampling via Reveal-or-Obscure" (journal),
and its conference version (ITW 2025).
"""

from dpopt.data.columns import tally_file
from dpopt.data.tally import Tally, tally
from dpopt.roo.accuracy import (
    DsRooBound,
    DsRooRate,
    ExpectedOutput,
    LowerBound,
    ds_roo_binomial_bound,
    ds_roo_bound,
    ds_roo_rate,
    ds_roo_records,
    expected_output,
    laplace_bound,
    lower_bound,
    lower_bound_records,
    records_needed,
    roo_bound,
    smooth_floor_binomial_bound,
    subrr_bound,
    worst_case_tv,
)
from dpopt.roo.floor import SmoothFloor, SmoothFloorSampler, smooth_floor
from dpopt.roo.minimum import (
    MinCount,
    MinCountSampler,
    exact_problem,
    from_weights,
    journal_problem,
    min_count,
)
from dpopt.roo.optimal import OptimalLetter, OptimalSampler, optimal_sampler
from dpopt.roo.proof import FloorAudit, Move, RooAudit, Witness, moves
from dpopt.roo.rules import RULES, journal_is_private, rule_weights
from dpopt.roo.sampler import LetterSampler
from dpopt.roo.setting import RooSetting

__all__ = [
    "RULES",
    "DsRooBound",
    "DsRooRate",
    "ExpectedOutput",
    "FloorAudit",
    "LetterSampler",
    "LowerBound",
    "MinCount",
    "MinCountSampler",
    "Move",
    "OptimalLetter",
    "OptimalSampler",
    "RooAudit",
    "RooSetting",
    "SmoothFloor",
    "SmoothFloorSampler",
    "Tally",
    "Witness",
    "ds_roo_binomial_bound",
    "ds_roo_bound",
    "ds_roo_rate",
    "ds_roo_records",
    "exact_problem",
    "expected_output",
    "from_weights",
    "journal_is_private",
    "journal_problem",
    "laplace_bound",
    "lower_bound",
    "lower_bound_records",
    "min_count",
    "moves",
    "optimal_sampler",
    "records_needed",
    "roo_bound",
    "rule_weights",
    "smooth_floor",
    "smooth_floor_binomial_bound",
    "subrr_bound",
    "tally",
    "tally_file",
    "worst_case_tv",
]

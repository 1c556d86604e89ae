"""DaRRM: the private majority of private voters, with the noise function from a linear program.

Jiang, Zhang, Joshi, "Optimized Tradeoffs for Private Prediction with Majority Ensembling".
"""

from dpopt.majority.assess import assess, from_sealed
from dpopt.majority.baselines import constant, double_subsampling, subsampling
from dpopt.majority.certificate import GammaProver
from dpopt.majority.check import PrivacyCheck, check_full, full_size
from dpopt.majority.design import (
    design,
    design_for,
    gamma_problem,
    worst_case_problem,
)
from dpopt.majority.points import CommonPrior, PointPrior, SamplePrior, parse_prior
from dpopt.majority.prior import BetaPrior, Prior, UniformPrior
from dpopt.majority.reduction import reduced_size
from dpopt.majority.result import MajorityDesign
from dpopt.majority.separation import CornerOracle, corner_rows
from dpopt.majority.setting import MajoritySetting, VoterGroup
from dpopt.majority.spending import Spending, affordable_queries
from dpopt.majority.vote import VoteBatch, vote
from dpopt.majority.weights import (
    ErrorEstimate,
    Weights,
    expected_error,
    expected_error_weights,
    sampled_error,
    sampled_margins,
    surrogate_weights,
)
from dpopt.majority.worst import WorstCase

__all__ = [
    "BetaPrior",
    "CommonPrior",
    "CornerOracle",
    "ErrorEstimate",
    "GammaProver",
    "MajorityDesign",
    "MajoritySetting",
    "PointPrior",
    "Prior",
    "PrivacyCheck",
    "SamplePrior",
    "Spending",
    "UniformPrior",
    "VoteBatch",
    "VoterGroup",
    "Weights",
    "WorstCase",
    "affordable_queries",
    "assess",
    "check_full",
    "constant",
    "corner_rows",
    "design",
    "design_for",
    "double_subsampling",
    "expected_error",
    "expected_error_weights",
    "from_sealed",
    "full_size",
    "gamma_problem",
    "parse_prior",
    "reduced_size",
    "sampled_error",
    "sampled_margins",
    "subsampling",
    "surrogate_weights",
    "vote",
    "worst_case_problem",
]

"""DaRRM: the private majority of private voters, with the noise function from a linear program.

Jiang, Zhang, Joshi, "Optimized Tradeoffs for Private Prediction with Majority Ensembling".
"""

from dpopt.majority.objectives import (
    ErrorEstimate,
    Regret,
    Weights,
    WorstCase,
    expected_error,
    expected_error_weights,
    surrogate_weights,
)
from dpopt.majority.priors import (
    BetaPrior,
    CommonPrior,
    PointPrior,
    Prior,
    SamplePrior,
    UniformPrior,
    parse_prior,
)
from dpopt.majority.program import CornerOracle, gamma_problem
from dpopt.majority.setting import assess
from dpopt.majority.voters import reduced_size

__all__ = [
    "BetaPrior",
    "CommonPrior",
    "CornerOracle",
    "ErrorEstimate",
    "PointPrior",
    "Prior",
    "Regret",
    "SamplePrior",
    "UniformPrior",
    "Weights",
    "WorstCase",
    "assess",
    "expected_error",
    "expected_error_weights",
    "gamma_problem",
    "parse_prior",
    "reduced_size",
    "surrogate_weights",
]

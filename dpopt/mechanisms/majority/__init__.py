"""DaRRM: the private majority of private voters, with the noise function from a linear program.

Jiang, Zhang, Joshi, "Optimized Tradeoffs for Private Prediction with Majority Ensembling".
"""

from dpopt.mechanisms.majority.baselines import constant, double_subsampling, subsampling
from dpopt.mechanisms.majority.certificate import GammaProver
from dpopt.mechanisms.majority.check import PrivacyCheck, check_full, full_size
from dpopt.mechanisms.majority.design import assess, design, from_sealed, gamma_problem
from dpopt.mechanisms.majority.prior import (
    UniformPrior,
    Weights,
    expected_error_weights,
    sampled_error,
    sampled_margins,
    surrogate_weights,
)
from dpopt.mechanisms.majority.result import MajorityDesign
from dpopt.mechanisms.majority.separation import CornerOracle, corner_rows, reduced_size
from dpopt.mechanisms.majority.setting import MajoritySetting

__all__ = [
    "CornerOracle",
    "GammaProver",
    "MajorityDesign",
    "MajoritySetting",
    "PrivacyCheck",
    "UniformPrior",
    "Weights",
    "assess",
    "check_full",
    "constant",
    "corner_rows",
    "design",
    "double_subsampling",
    "expected_error_weights",
    "from_sealed",
    "full_size",
    "gamma_problem",
    "reduced_size",
    "sampled_error",
    "sampled_margins",
    "subsampling",
    "surrogate_weights",
]

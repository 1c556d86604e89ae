"""Smoothed differential privacy: what a sample, or any anonymous mechanism, reveals on its own.

Liu, Wang, Xia, "Smoothed Differential Privacy". delta(x) of a database is the largest hockey-stick
divergence from any neighbour; smoothed delta is its largest expectation when each record is drawn
from a distribution of a set that the adversary picks from. All are exact sums, in logarithms.
"""

from dpopt.prob.batches import BatchLaw, batch_law
from dpopt.prob.histograms import distribution_reduction, histograms, hull_vertices
from dpopt.smoothed.bounds import (
    average_log_delta,
    log_exposure,
    log_lower_bound,
    log_upper_bound,
    published_log_bound,
)
from dpopt.smoothed.delta import (
    Expected,
    ExpectedDelta,
    MaximumCertificate,
    Smoothed,
    SmoothedDelta,
    SmoothedEpsilon,
    expected_delta,
    smoothed_delta,
    smoothed_epsilon,
)
from dpopt.smoothed.distributional import DistributionalDelta, distributional_delta
from dpopt.smoothed.mechanisms import (
    AnonymousMechanism,
    KernelMechanism,
    SamplingAverage,
    SamplingHistogram,
    read_mechanism,
)
from dpopt.smoothed.noisy import NoisyEpsilon, NoisyGuarantee, NoisyHistogram, noisy_guarantee
from dpopt.smoothed.operations import compose, post_process, pre_process, push_forward
from dpopt.smoothed.profile import (
    PrivacyProfile,
    Profile,
    WorstCase,
    general_epsilon,
    privacy_profile,
    worst_case_delta,
)
from dpopt.smoothed.program import (
    SmoothedAdversary,
    SmoothedInstance,
    adversary_problem,
    best_test_problem,
    excess_problem,
    smoothed_instance,
    smoothed_problem,
    solve_smoothed,
)
from dpopt.smoothed.sgd import (
    QuantisedGradient,
    SgdNeighbour,
    SgdProfile,
    SgdStep,
    monte_carlo_delta,
    sample_database,
    sgd_log_profile,
    sgd_profile,
)
from dpopt.smoothed.utility import adversary_utility, candidates_utility

__all__ = [
    "AnonymousMechanism",
    "BatchLaw",
    "DistributionalDelta",
    "Expected",
    "ExpectedDelta",
    "KernelMechanism",
    "MaximumCertificate",
    "NoisyEpsilon",
    "NoisyGuarantee",
    "NoisyHistogram",
    "PrivacyProfile",
    "Profile",
    "QuantisedGradient",
    "SamplingAverage",
    "SamplingHistogram",
    "SgdNeighbour",
    "SgdProfile",
    "SgdStep",
    "Smoothed",
    "SmoothedAdversary",
    "SmoothedDelta",
    "SmoothedEpsilon",
    "SmoothedInstance",
    "WorstCase",
    "adversary_problem",
    "adversary_utility",
    "average_log_delta",
    "batch_law",
    "best_test_problem",
    "candidates_utility",
    "compose",
    "distribution_reduction",
    "distributional_delta",
    "excess_problem",
    "expected_delta",
    "general_epsilon",
    "histograms",
    "hull_vertices",
    "log_exposure",
    "log_lower_bound",
    "log_upper_bound",
    "monte_carlo_delta",
    "noisy_guarantee",
    "post_process",
    "pre_process",
    "privacy_profile",
    "published_log_bound",
    "push_forward",
    "read_mechanism",
    "sample_database",
    "sgd_log_profile",
    "sgd_profile",
    "smoothed_delta",
    "smoothed_epsilon",
    "smoothed_instance",
    "smoothed_problem",
    "solve_smoothed",
    "worst_case_delta",
]

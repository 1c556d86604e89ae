"""Smoothed differential privacy: what sampling, or any anonymous mechanism, reveals without noise.

Liu, Wang, Xia, "Smoothed Differential Privacy". delta(x) of a database is its largest hockey-stick
divergence from a neighbour; smoothed delta is the largest expectation of delta(x) if the adversary
picks each record's distribution from a given set. All values are exact sums, in logarithms.
"""

from dpopt.prob.batches import BatchDistribution, batch_distribution
from dpopt.prob.histograms import (
    MaximumCertificate,
    histograms,
    hull_vertices,
)
from dpopt.smoothed.delta import (
    SmoothedDelta,
    SmoothedEpsilon,
    smoothed_delta,
    smoothed_epsilon,
)
from dpopt.smoothed.mechanisms import AnonymousMechanism, SamplingHistogram
from dpopt.smoothed.profile import (
    PrivacyProfile,
    log_exposure,
    privacy_profile,
)
from dpopt.smoothed.sgd import SgdNeighbour, SgdProfile, sgd_profile

__all__ = [
    "AnonymousMechanism",
    "BatchDistribution",
    "MaximumCertificate",
    "PrivacyProfile",
    "SamplingHistogram",
    "SgdNeighbour",
    "SgdProfile",
    "SmoothedDelta",
    "SmoothedEpsilon",
    "batch_distribution",
    "histograms",
    "hull_vertices",
    "log_exposure",
    "privacy_profile",
    "sgd_profile",
    "smoothed_delta",
    "smoothed_epsilon",
]

"""Linear queries of people who answer once, under local privacy: the best mechanism, proved."""

from dpopt.local.design import Estimate, WorkloadDesign, workload_mechanism
from dpopt.local.queries import query_matrix
from dpopt.local.setting import WorkloadSetting

__all__ = [
    "Estimate",
    "WorkloadDesign",
    "WorkloadSetting",
    "query_matrix",
    "workload_mechanism",
]

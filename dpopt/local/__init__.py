"""Linear queries of people who answer once, under local privacy: the best mechanism, proved."""

from dpopt.local.design import Estimate as Estimate
from dpopt.local.design import WorkloadDesign as WorkloadDesign
from dpopt.local.design import workload_mechanism as workload_mechanism
from dpopt.local.queries import query_matrix as query_matrix
from dpopt.local.setting import WorkloadSetting as WorkloadSetting

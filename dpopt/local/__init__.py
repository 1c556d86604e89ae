"""Local differential privacy: optimal mechanisms for linear queries of a histogram, certified."""

from dpopt.local.decoder import Decoder, Estimate
from dpopt.local.setting import query_matrix

__all__ = ["Decoder", "Estimate", "query_matrix"]

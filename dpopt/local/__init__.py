"""Linear queries of people who answer once, under local privacy: the best mechanism, proved."""

from dpopt.local.decoder import Decoder, Estimate
from dpopt.local.queries import query_matrix

__all__ = ["Decoder", "Estimate", "query_matrix"]

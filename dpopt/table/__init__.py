"""Tables: a mechanism as integer weights over inputs up to symmetry, repaired and certified."""

from dpopt.table.histograms import SortedHistograms
from dpopt.table.inputs import Edges, Inputs
from dpopt.table.program import Losses, add_table, over_masses, probabilities_of
from dpopt.table.symmetric import Graph, Words
from dpopt.table.table import Table, certify_table, constant, interior, polished, repair, rounded

__all__ = [
    "Edges",
    "Graph",
    "Inputs",
    "Losses",
    "SortedHistograms",
    "Table",
    "Words",
    "add_table",
    "certify_table",
    "constant",
    "interior",
    "over_masses",
    "polished",
    "probabilities_of",
    "repair",
    "rounded",
]

"""A local page that solves again as its sliders move; needs the extra ``explore``.

Each tab is a function from parameters to a `View`, which needs no browser; `serve` puts them on a
page of 127.0.0.1.
"""

from dpopt.explore.kernels import kernel_view
from dpopt.explore.majority import majority_view
from dpopt.explore.priors import prior_view
from dpopt.explore.rules import rule_view
from dpopt.explore.server import serve
from dpopt.explore.view import Picture, Table, View

__all__ = [
    "Picture",
    "Table",
    "View",
    "kernel_view",
    "majority_view",
    "prior_view",
    "rule_view",
    "serve",
]

"""The private majority vote (DaRRM); see `dpopt.mechanisms.majority`."""

from dpopt.mechanisms.majority import *  # noqa: F403
from dpopt.mechanisms.majority import __all__ as __all__

"""Private samplers of one letter (ROO, DS-ROO); see `dpopt.mechanisms.roo`."""

from dpopt.mechanisms.roo import *  # noqa: F403
from dpopt.mechanisms.roo import __all__ as __all__

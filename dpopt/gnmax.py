"""The GNMax baseline; see `dpopt.mechanisms.gnmax`."""

from dpopt.mechanisms.gnmax import *  # noqa: F403
from dpopt.mechanisms.gnmax import __all__ as __all__

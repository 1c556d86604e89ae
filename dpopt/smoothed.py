"""Privacy without added noise, computed exactly; see `dpopt.mechanisms.smoothed`."""

from dpopt.mechanisms.smoothed import *  # noqa: F403
from dpopt.mechanisms.smoothed import __all__ as __all__

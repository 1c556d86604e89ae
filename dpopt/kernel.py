"""The general optimal-mechanism program over a finite kernel; see `dpopt.mechanisms.kernel`."""

from dpopt.mechanisms.kernel import *  # noqa: F403
from dpopt.mechanisms.kernel import __all__ as __all__

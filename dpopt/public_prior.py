"""Locally private sampling with a public prior; see `dpopt.mechanisms.public_prior`."""

from dpopt.mechanisms.public_prior import *  # noqa: F403
from dpopt.mechanisms.public_prior import __all__ as __all__

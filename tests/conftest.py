"""Settings shared by all tests."""

from hypothesis import settings

settings.register_profile("dpopt", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("dpopt")

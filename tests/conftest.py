"""Settings shared by all tests."""

import gc

from hypothesis import settings

settings.register_profile("dpopt", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("dpopt")

# Thousands of tests are collected and stay until the end: looking through them for garbage again
# and again takes two fifths of the time of collecting, and a twelfth of that of running.
gc.disable()


def pytest_collection_finish() -> None:
    """Let what was collected be, and look for garbage from here on."""
    gc.freeze()
    gc.enable()

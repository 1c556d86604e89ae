"""Small dense algebra on one BLAS thread."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  (brings a BLAS library of its own)
from threadpoolctl import ThreadpoolController


class _OneThread(ContextDecorator):
    """Keeps BLAS to one thread; for a whole solve, not for each product.

    A product of small matrices takes less time than waking another thread does; beside a busy
    process, which keeps that thread waiting, it takes 100 times as long. The limit holds for the
    whole process: of several threads in here, the last one to leave restores what the first found.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                _take_over()
                self._limits = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _take_over()
                self._limits.restore_original_limits()


def _take_over() -> None:
    """Let this thread set limits: from threadpoolctl 3.8 on, only the first to do so may."""
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


@cache
def _controller() -> ThreadpoolController:
    """Return what sets the threads of the BLAS libraries that numpy and scipy brought along."""
    return ThreadpoolController()


one_blas_thread = _OneThread()
"""A context manager and a decorator."""

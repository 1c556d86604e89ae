"""Small dense algebra has one BLAS thread, and everything else what it had."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import dpopt
from dpopt._threads import one_blas_thread


def blas_threads() -> set[int]:
    """Of numpy's and scipy's libraries: some solver's own has one thread, whatever is asked."""
    blas = [found for found in threadpool_info() if found["user_api"] == "blas"]
    ours = [
        found for found in blas if {"numpy", "scipy"} & set(re.split(r"\W|_", found["filepath"]))
    ]
    return {found["num_threads"] for found in ours}


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    """Two threads, however many the machine or its environment gives."""
    with threadpool_limits(2, user_api="blas"):
        yield


def solve_workload() -> None:
    dpopt.design(dpopt.Workload("prefix", 1.0, 8))


def decode_a_mechanism() -> None:
    decoder = importlib.import_module("dpopt.local.decoder")
    decoder.worst_prior(np.array([[0.7, 0.2], [0.3, 0.8]]), np.diag([1.0, 2.0]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "function", "work"),
    [
        ("dpopt.local.optimum", "_solved", solve_workload),
        ("dpopt.local.decoder", "inverted", decode_a_mechanism),
    ],
)
def test_solves_have_one_thread_and_give_the_others_back(
    monkeypatch: pytest.MonkeyPatch, module: str, function: str, work: Any
) -> None:
    found = importlib.import_module(module)
    inner, seen = getattr(found, function), []

    def watched(*args: Any, **more: Any) -> Any:
        seen.append(blas_threads())
        return inner(*args, **more)

    monkeypatch.setattr(found, function, watched)
    work()
    assert seen
    assert all(threads == {1} for threads in seen)
    assert blas_threads() == {2}


def test_the_last_of_several_threads_gives_them_back() -> None:
    """The first to come is the first to leave."""
    both, left = Barrier(2, timeout=60), Barrier(2, timeout=60)

    def first() -> None:
        with one_blas_thread:
            both.wait()
        left.wait()

    def second() -> set[int]:
        with one_blas_thread:
            both.wait()
            left.wait()
            return blas_threads()

    with ThreadPoolExecutor(2) as pool:
        done = pool.submit(first), pool.submit(second)
    assert (done[0].result(), done[1].result()) == (None, {1})
    assert blas_threads() == {2}


def test_an_error_gives_them_back() -> None:
    with pytest.raises(ZeroDivisionError), one_blas_thread, one_blas_thread:
        _ = 1 / 0
    assert blas_threads() == {2}

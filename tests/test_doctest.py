"""The examples in docstrings run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import dpopt
from dpopt import lp, majority, privacy, public_prior, roo

FLAGS = doctest.ELLIPSIS | doctest.REPORT_NDIFF
MODULES = sorted(module.name for module in pkgutil.walk_packages(dpopt.__path__, "dpopt."))
SHOWN = [
    *(majority.design, majority.assess, majority.subsampling),
    *(roo.min_count, roo.optimal_sampler, roo.smooth_floor, roo.tally),
    *(public_prior.minimax_kernel, public_prior.leximin_kernel, public_prior.mollify),
    *(lp.solve, lp.Problem, dpopt.certify, privacy.general_composition),
]


def examples(name: str) -> list[doctest.DocTest]:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if not name.startswith("dpopt.interop."):
            raise
        pytest.skip(str(error))
    return [test for test in doctest.DocTestFinder().find(module, name) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name: str) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    failed = sum(runner.run(test, out=said.append).failed for test in examples(name))
    assert not failed, "".join(said)


@pytest.mark.parametrize("function", SHOWN, ids=lambda function: function.__qualname__)
def test_the_main_functions_have_an_example(function: type) -> None:
    found = {test.name for test in examples(function.__module__)}
    assert f"{function.__module__}.{function.__qualname__}" in found


def test_a_wrong_example_fails() -> None:
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    said: list[str] = []
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append).failed == 1
    assert said

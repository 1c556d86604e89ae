"""The American spelling of objectives does the same as the British one."""

from __future__ import annotations

import pytest

import dpopt


@pytest.mark.parametrize("word", ["minimize", "maximize"])
def test_objectives_of_a_problem(word: str) -> None:
    answers = []
    for spelling in (word, word.replace("z", "s")):
        problem = dpopt.Problem()
        problem.add_variables("x", 2, lower=0.0, upper=[1.0, 2.0])
        problem.add_rows("sum", {"x": [[1.0, 1.0]]}, lower=1.0, upper=2.5)
        getattr(problem, spelling)({"x": [1.0, 1.0]})
        getattr(problem, f"then_{spelling}")({"x": [1.0, 0.0]})
        answers.append(dpopt.solve(problem)["x"].tolist())
    assert answers[0] == answers[1] == ([0.0, 1.0] if word == "minimize" else [1.0, 1.5])


def test_the_sense_of_a_kernel() -> None:
    asked = {"epsilon": 1.0, "graph": "path", "inputs": 3}
    british = dpopt.Kernel("absolute", sense="maximise", **asked)  # type: ignore[arg-type]
    american = dpopt.Kernel("absolute", sense="maximize", **asked)  # type: ignore[arg-type]
    assert american.to_dict() == british.to_dict()
    assert american.maximises

"""Benchmarks of the checker that stands alone, and of making what it reads."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import dpopt
from dpopt import verify
from dpopt.kernel import KernelSetting
from dpopt.majority import MajoritySetting
from dpopt.public_prior import PublicPriorSetting
from experiments.benchmarks.spec import OURS, Answer, Benchmark, Contender, limited
from experiments.benchmarks.suite_kernels import user

_EPSILON, _VOTER_EPSILON, _ALLOWANCE, _PRIOR_EPSILON = 1.0, 0.1, 2.0, 4.0


class Saved:
    """A design on disk, with its proof; the files go when this does.

    Attributes:
        paths: of the design and of the proof.
    """

    def __init__(self, setting: Any) -> None:  # noqa: ANN401
        folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = folder / "x.json"
        dpopt.design(setting).save(path, proof=True)
        self.paths = str(path), str(path.with_name("x.proof.json"))


def kernel(inputs: int) -> KernelSetting:
    """Return the setting of a path's least largest mean error."""
    return KernelSetting("absolute", _EPSILON, graph="path", size=inputs, objective="minimax")


def voters(mechanisms: int) -> MajoritySetting:
    """Return the setting of a majority's surrogate."""
    allowance = min(_ALLOWANCE, mechanisms)
    return MajoritySetting(mechanisms, _VOTER_EPSILON, allowance, objective="surrogate")


def prior(letters: int) -> PublicPriorSetting:
    """Return the setting of Algorithm 1 with a random prior."""
    return PublicPriorSetting(user(letters).prior, _PRIOR_EPSILON)


def saved_kernel(inputs: int) -> Saved:
    """Save a kernel."""
    return Saved(kernel(inputs))


def saved_majority(mechanisms: int) -> Saved:
    """Save a noise function."""
    return Saved(voters(mechanisms))


def saved_prior(letters: int) -> Saved:
    """Save Algorithm 1's kernel."""
    return Saved(prior(letters))


def called(saved: Saved) -> Answer:
    """Call the same function in this process."""
    lines = list(verify.check(*saved.paths))
    return Answer(float(lines[0].startswith("private")))


def without_proof(saved: Saved) -> Answer:
    """Call it for privacy and value alone."""
    lines = list(verify.check(saved.paths[0]))
    return Answer(float(lines[0].startswith("private")))


def loaded(saved: Saved) -> Answer:
    """Load it into the package, which proves privacy again with its own code."""
    return Answer(float(dpopt.load(saved.paths[0]).private))


def with_proof(setting: Any) -> Answer:  # noqa: ANN401
    """Design, prove that nothing is better, and save both."""
    with tempfile.TemporaryDirectory() as folder:
        design = dpopt.design(setting)
        design.save(Path(folder) / "x.json", proof=True)
    return Answer(design.value)


def plainly(setting: Any) -> Answer:  # noqa: ANN401
    """Design and save."""
    with tempfile.TemporaryDirectory() as folder:
        design = dpopt.design(setting)
        design.save(Path(folder) / "x.json")
    return Answer(design.value)


_MEASURES = "Deciding privacy of a saved design, and where said that nothing is better."
_PRIVATE = "private (1) or not (0)"


def _checked(name: str, title: str, setting: str, axis: str, sizes: Any, prepare: Any) -> Benchmark:  # noqa: ANN401
    return Benchmark(
        name=name,
        title=title,
        measures=_MEASURES,
        setting=setting,
        axis=axis,
        value=_PRIVATE,
        sizes=sizes,
        contenders=(
            Contender("verify.check and proof", OURS, prepare, called),
            Contender("verify.check, privacy", OURS, prepare, without_proof),
            Contender("dpopt.load, privacy", OURS, prepare, loaded),
        ),
        tolerance=0.0,
        warm_up=5,
        limits=limited(60),
    )


KERNEL = _checked(
    "verify-kernel",
    "Check of a saved kernel",
    "path, mean error at the worst input, epsilon = 1",
    "inputs n",
    (5, 10, 15, 20, 30),
    saved_kernel,
)

MAJORITY = _checked(
    "verify-majority",
    "Check of a saved noise function",
    "epsilon = 0.1, m = 2, the surrogate",
    "voters K",
    (5, 11, 31, 61, 101),
    saved_majority,
)

PRIOR = _checked(
    "verify-prior",
    "Check of a saved kernel with a public prior",
    "Algorithm 1, epsilon = 4; q random",
    "letters n",
    (10, 1000, 10_000, 100_000, 1_000_000),
    saved_prior,
)

MAKING = Benchmark(
    name="proof-making",
    title="A design saved with and without a proof",
    measures="From the setting to files: the solve, privacy in integers, and the proof.",
    setting="path, mean error at the worst input, epsilon = 1",
    axis="inputs n",
    value="largest mean error",
    sizes=(5, 10, 15, 20, 30),
    contenders=(
        Contender("dpopt, with the proof", OURS, kernel, with_proof),
        Contender("dpopt, without", OURS, kernel, plainly),
    ),
    tolerance=1e-9,
    warm_up=3,
    limits=limited(60),
)

BENCHMARKS = (KERNEL, MAJORITY, PRIOR, MAKING)

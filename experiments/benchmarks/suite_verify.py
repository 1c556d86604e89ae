"""Benchmarks of the checker that stands alone."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dpopt
from dpopt import Kernel, PublicPrior, verify
from experiments.benchmarks.memory import Limits
from experiments.benchmarks.spec import Answer, Benchmark, Contender, benchmark
from experiments.benchmarks.suite_kernels import user

_EPSILON, _PRIOR_EPSILON = 1.0, 4.0


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


def kernel(inputs: int) -> Kernel:
    """Return the setting of a path's least largest mean error."""
    return Kernel("absolute", _EPSILON, graph="path", inputs=inputs, objective="worst-case")


def prior(categories: int) -> PublicPrior:
    """Return the setting of Algorithm 1 with a random prior."""
    return PublicPrior(user(categories).prior, _PRIOR_EPSILON)


def saved(setting: Callable[[int], Any], size: int) -> Saved:
    """Save the design of a setting of a size."""
    return Saved(setting(size))


def checked(files: int, design: Saved) -> Answer:
    """Check the design, and its proof too if both files are read."""
    lines = list(verify.check(*design.paths[:files]))
    return Answer(float(lines[0].startswith("private")))


def loaded(design: Saved) -> Answer:
    """Load it into the package, which proves privacy again with its own code."""
    return Answer(float(dpopt.load(design.paths[0]).private))


def _checked(name: str, sizes: tuple[int, ...], setting: Callable[[int], Any]) -> Benchmark:
    prepare = partial(saved, setting)
    return benchmark(
        name,
        sizes=sizes,
        contenders=(
            Contender("verify.check and proof", prepare, partial(checked, 2)),
            Contender("verify.check, privacy", prepare, partial(checked, 1)),
            Contender("dpopt.load, privacy", prepare, loaded),
        ),
        tolerance=0.0,
        limits=Limits(60),
    )


KERNELS = _checked("verify-kernel", (5, 10, 15, 20, 30), kernel)
PRIORS = _checked("verify-prior", (10, 1000, 10_000, 100_000, 1_000_000), prior)

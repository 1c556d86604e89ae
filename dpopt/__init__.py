"""Differentially private mechanisms designed by linear programming."""

from __future__ import annotations

from importlib import import_module

from dpopt._errors import (
    BudgetError,
    DpoptError,
    InfeasibleError,
    NotPrivateError,
    ParameterError,
    SolverError,
)

# What every type checker takes it for; typing would be a third of the time of `import dpopt`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpopt import (
        interop,
        kernel,
        lp,
        majority,
        multiclass,
        plurality,
        privacy,
        prob,
        public_prior,
        roo,
        smoothed,
        votes,
    )
    from dpopt._interact import interact
    from dpopt._progress import ProgressEvent, progress_bar, reporting
    from dpopt._sweep import SweepResult, sweep
    from dpopt.kernel.certify import certify
    from dpopt.kernel.setting import Kernel
    from dpopt.ledger import Ledger
    from dpopt.local.setting import Workload
    from dpopt.lp import Solution, Status, solve
    from dpopt.majority.setting import Majority
    from dpopt.multiclass.setting import Multiclass
    from dpopt.noise.setting import Noise
    from dpopt.plurality.setting import Plurality
    from dpopt.privacy import Guarantee, Problem
    from dpopt.privacy.constraints import privacy_constraints
    from dpopt.proofs.closed import ClosedForm, closed_form
    from dpopt.proofs.exact import ExactOptimum, exact_optimum
    from dpopt.public_prior.mollifier import Mollifier
    from dpopt.public_prior.population import Population
    from dpopt.public_prior.setting import PublicPrior
    from dpopt.roo.floor import SmoothFloor
    from dpopt.roo.minimum import RevealOrObscure
    from dpopt.roo.optimal import BestSampler
    from dpopt.shape import Design, Setting, design, kinds, load
    from dpopt.votes import vote

__version__ = "0.1.0"

__all__ = [
    "BestSampler",
    "BudgetError",
    "ClosedForm",
    "Design",
    "DpoptError",
    "ExactOptimum",
    "Guarantee",
    "InfeasibleError",
    "Kernel",
    "Ledger",
    "Majority",
    "Mollifier",
    "Multiclass",
    "Noise",
    "NotPrivateError",
    "ParameterError",
    "Plurality",
    "Population",
    "Problem",
    "ProgressEvent",
    "PublicPrior",
    "RevealOrObscure",
    "Setting",
    "SmoothFloor",
    "Solution",
    "SolverError",
    "Status",
    "SweepResult",
    "Workload",
    "__version__",
    "certify",
    "closed_form",
    "design",
    "exact_optimum",
    "interact",
    "interop",
    "kernel",
    "kinds",
    "load",
    "lp",
    "majority",
    "multiclass",
    "plurality",
    "privacy",
    "privacy_constraints",
    "prob",
    "progress_bar",
    "public_prior",
    "reporting",
    "roo",
    "smoothed",
    "solve",
    "sweep",
    "vote",
    "votes",
]

# Loaded when first used: a script that needs one mechanism does not wait for the libraries of all.
_HOMES = {
    name: module
    for module, names in {
        "dpopt._interact": "interact",
        "dpopt._progress": "ProgressEvent progress_bar reporting",
        "dpopt._sweep": "SweepResult sweep",
        "dpopt.kernel.certify": "certify",
        "dpopt.kernel.setting": "Kernel",
        "dpopt.ledger": "Ledger",
        "dpopt.local.setting": "Workload",
        "dpopt.lp": "Solution Status solve",
        "dpopt.majority.setting": "Majority",
        "dpopt.multiclass.setting": "Multiclass",
        "dpopt.noise.setting": "Noise",
        "dpopt.plurality.setting": "Plurality",
        "dpopt.privacy": "Guarantee Problem",
        "dpopt.privacy.constraints": "privacy_constraints",
        "dpopt.proofs.closed": "ClosedForm closed_form",
        "dpopt.proofs.exact": "ExactOptimum exact_optimum",
        "dpopt.public_prior.mollifier": "Mollifier",
        "dpopt.public_prior.population": "Population",
        "dpopt.public_prior.setting": "PublicPrior",
        "dpopt.roo.floor": "SmoothFloor",
        "dpopt.roo.minimum": "RevealOrObscure",
        "dpopt.roo.optimal": "BestSampler",
        "dpopt.shape": "Design Setting design kinds load",
        "dpopt.votes": "vote",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("_"):
        try:
            return import_module(f"dpopt.{name}")
        except ModuleNotFoundError as error:
            # A room that is there may lack a library of its own.
            if error.name != f"dpopt.{name}":
                raise
    raise AttributeError(f"module 'dpopt' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    """List what users call, and nothing else."""
    return sorted(__all__)

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
    from dpopt.shape import (
        Design,
        Setting,
        design,
        kinds,
        load,
    )
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
    "Majority": "dpopt.majority.setting",
    "Multiclass": "dpopt.multiclass.setting",
    "Plurality": "dpopt.plurality.setting",
    "RevealOrObscure": "dpopt.roo.minimum",
    "BestSampler": "dpopt.roo.optimal",
    "SmoothFloor": "dpopt.roo.floor",
    "PublicPrior": "dpopt.public_prior.setting",
    "Population": "dpopt.public_prior.population",
    "Mollifier": "dpopt.public_prior.mollifier",
    "Kernel": "dpopt.kernel.setting",
    "Noise": "dpopt.noise.setting",
    "Workload": "dpopt.local.setting",
    "ClosedForm": "dpopt.proofs.closed",
    "Design": "dpopt.shape",
    "ExactOptimum": "dpopt.proofs.exact",
    "Guarantee": "dpopt.privacy",
    "Ledger": "dpopt.ledger",
    "Problem": "dpopt.privacy",
    "ProgressEvent": "dpopt._progress",
    "Setting": "dpopt.shape",
    "Solution": "dpopt.lp",
    "Status": "dpopt.lp",
    "SweepResult": "dpopt._sweep",
    "certify": "dpopt.kernel.certify",
    "closed_form": "dpopt.proofs.closed",
    "design": "dpopt.shape",
    "exact_optimum": "dpopt.proofs.exact",
    "interact": "dpopt._interact",
    "kinds": "dpopt.shape",
    "load": "dpopt.shape",
    "privacy_constraints": "dpopt.privacy.constraints",
    "progress_bar": "dpopt._progress",
    "reporting": "dpopt._progress",
    "solve": "dpopt.lp",
    "sweep": "dpopt._sweep",
    "vote": "dpopt.votes",
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

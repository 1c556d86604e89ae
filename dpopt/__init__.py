"""Differentially private mechanisms designed by linear programming."""

from __future__ import annotations

from importlib import import_module

# What every type checker takes it for; typing would be a third of the time of `import dpopt`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpopt import interop as interop
    from dpopt import kernel as kernel
    from dpopt import lp as lp
    from dpopt import majority as majority
    from dpopt import plurality as plurality
    from dpopt import privacy as privacy
    from dpopt import prob as prob
    from dpopt import public_prior as public_prior
    from dpopt import roo as roo
    from dpopt import smoothed as smoothed
    from dpopt import votes as votes
    from dpopt._errors import BudgetError as BudgetError
    from dpopt._errors import DpoptError as DpoptError
    from dpopt._errors import InfeasibleError as InfeasibleError
    from dpopt._errors import NotPrivateError as NotPrivateError
    from dpopt._errors import ParameterError as ParameterError
    from dpopt._errors import SolverError as SolverError
    from dpopt._interact import interact as interact
    from dpopt._progress import ProgressEvent as ProgressEvent
    from dpopt._progress import progress_bar as progress_bar
    from dpopt._progress import reporting as reporting
    from dpopt._sweep import SweepResult as SweepResult
    from dpopt._sweep import sweep as sweep
    from dpopt.kernel.certify import certify as certify
    from dpopt.kernel.setting import Kernel as Kernel
    from dpopt.ledger import Ledger as Ledger
    from dpopt.local.setting import Workload as Workload
    from dpopt.lp import Solution as Solution
    from dpopt.lp import Status as Status
    from dpopt.lp import solve as solve
    from dpopt.majority.setting import Majority as Majority
    from dpopt.multiclass.setting import Multiclass as Multiclass
    from dpopt.noise.setting import Noise as Noise
    from dpopt.plurality.setting import Plurality as Plurality
    from dpopt.privacy import Guarantee as Guarantee
    from dpopt.privacy import Problem as Problem
    from dpopt.privacy.constraints import privacy_constraints as privacy_constraints
    from dpopt.proofs.closed import ClosedForm as ClosedForm
    from dpopt.proofs.closed import closed_form as closed_form
    from dpopt.proofs.exact import ExactOptimum as ExactOptimum
    from dpopt.proofs.exact import exact_optimum as exact_optimum
    from dpopt.public_prior.mollifier import Mollifier as Mollifier
    from dpopt.public_prior.setting import Population as Population
    from dpopt.public_prior.setting import PublicPrior as PublicPrior
    from dpopt.roo.floor import SmoothFloor as SmoothFloor
    from dpopt.roo.minimum import RevealOrObscure as RevealOrObscure
    from dpopt.roo.optimal import BestSampler as BestSampler
    from dpopt.shape import Design as Design
    from dpopt.shape import Setting as Setting
    from dpopt.shape import design as design
    from dpopt.shape import kinds as kinds
    from dpopt.shape import load as load
    from dpopt.votes import vote as vote

__version__ = "0.1.0"

# Loaded when first used: a script that needs one mechanism does not wait for the libraries of all.
_HOMES = {
    name: module
    for module, names in {
        "dpopt._errors": "BudgetError DpoptError InfeasibleError NotPrivateError ParameterError "
        "SolverError",
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
        "dpopt.public_prior.setting": "Population PublicPrior",
        "dpopt.roo.floor": "SmoothFloor",
        "dpopt.roo.minimum": "RevealOrObscure",
        "dpopt.roo.optimal": "BestSampler",
        "dpopt.shape": "Design Setting design kinds load",
        "dpopt.votes": "vote",
        "dpopt": "interop kernel lp majority plurality privacy prob public_prior roo "
        "smoothed votes",
    }.items()
    for name in names.split()
}

# Type checkers take the aliases above.
__all__ = sorted([*_HOMES, "__version__"])  # noqa: PLE0605  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if _HOMES.get(name, "dpopt") != "dpopt":
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

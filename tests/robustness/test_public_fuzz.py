"""Every public callable, one argument spoiled at a time: an answer, or one of dpopt's own errors.

Numbers, arrays and texts of any other kind, and objects of other classes, end in a `DpoptError`.
Only two kinds of wrong argument end as Python ends them: a function that cannot be called with
what it is promised (TypeError), and a path that is no path (TypeError of `os.PathLike`).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from dpopt import DpoptError
from tests.robustness.hostile import NEVER, VALUES, values_for
from tests.robustness.registry import CASES, METHODS, MODULES, NAMES, called

# Called by the package with numbers or arrays: "int" and a function of no argument cannot be.
FUNCTIONS = {"curve", "f", "divergence", "mapping", "callback", "rows"}
PATHS = {"path"}
# Any value will do: a label that is only shown.
LABELS = {"smoothed.KernelMechanism.name"}

RECORDS = "a record of results or of a proof: made by the package, nothing is computed from it"
NOT_FUZZED = {
    "majority.ErrorEstimate": RECORDS,
    "majority.MajorityDesign": RECORDS,
    "majority.PrivacyCheck": RECORDS,
    "majority.VoteBatch": RECORDS,
    "majority.Weights": RECORDS,
    "majority.Prior": "a protocol",
    "roo.RULES": "a tuple of names",
    "roo.DsRooBound": RECORDS,
    "roo.DsRooRate": RECORDS,
    "roo.ExpectedOutput": RECORDS,
    "roo.FloorAudit": RECORDS,
    "roo.LetterSampler": "an abstract class",
    "roo.LowerBound": RECORDS,
    "roo.MinCountSampler": RECORDS,
    "roo.Move": RECORDS,
    "roo.OptimalSampler": RECORDS,
    "roo.RooAudit": RECORDS,
    "roo.SmoothFloorSampler": RECORDS,
    "roo.SubRRSampler": RECORDS,
    "roo.Tally": RECORDS,
    "roo.Witness": RECORDS,
    "public_prior.DIVERGENCES": "a tuple of names",
    "public_prior.FORMULATIONS": "a tuple of names",
    "public_prior.POPULATION_OBJECTIVES": "a tuple of names",
    "public_prior.CertifiedRows": RECORDS,
    "public_prior.KernelDistances": RECORDS,
    "public_prior.LeximinKernel": RECORDS,
    "public_prior.PopulationKernel": RECORDS,
    "public_prior.PublicPrior": RECORDS,
    "public_prior.PublicPriorKernel": RECORDS,
    "public_prior.SamplingKernel": "an abstract class",
    "kernel.ExtraRows": "a type",
    "kernel.KernelDesign": RECORDS,
    "gnmax.DataDependentRdp": RECORDS,
    "gnmax.GNMaxCalibration": RECORDS,
    "smoothed.AnonymousMechanism": "an abstract class",
    "smoothed.BatchLaw": RECORDS,
    "smoothed.DistributionalDelta": RECORDS,
    "smoothed.MaximumCertificate": RECORDS,
    "smoothed.NoisyGuarantee": RECORDS,
    "smoothed.PrivacyProfile": RECORDS,
    "smoothed.SgdNeighbour": RECORDS,
    "smoothed.SgdProfile": RECORDS,
    "smoothed.SmoothedAdversary": RECORDS,
    "smoothed.ExpectedDelta": RECORDS,
    "smoothed.SmoothedDelta": RECORDS,
    "smoothed.SmoothedEpsilon": RECORDS,
    "smoothed.SmoothedInstance": RECORDS,
    "smoothed.WorstCase": RECORDS,
    "prob.BatchLaw": RECORDS,
    "privacy.Audit": RECORDS,
    "privacy.Certificate": RECORDS,
    "privacy.Conversion": RECORDS,
    "privacy.ExactKernel": RECORDS,
    "lp.Backend": "a protocol",
    "lp.Model": RECORDS,
    "lp.Problem": "fuzzed method by method",
    "lp.Progress": RECORDS,
    "lp.Rows": RECORDS,
    "lp.Separation": RECORDS,
    "lp.Solution": RECORDS,
    "lp.Status": "an enumeration",
    "lp.backends": "takes no argument",
    "lp.register_backend": "changes the registry of the process; a wrong name is refused by solve",
}


def test_every_public_name_is_here_or_left_out_for_a_reason() -> None:
    public = {f"{m.__name__.removeprefix('dpopt.')}.{name}" for m in MODULES for name in m.__all__}
    known = {name for name in NAMES if name.removeprefix("lp.").split(".")[0] != "Problem"}
    assert public - known - set(NOT_FUZZED) == set()
    assert known - public == set()
    assert set(NOT_FUZZED) - public == set()
    assert not known & set(NOT_FUZZED)


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_the_arguments_before_they_are_spoiled(name: str) -> None:
    function, arguments = called(name)
    if PATHS & set(arguments):
        with pytest.raises(DpoptError):
            function(**arguments)
    else:
        function(**arguments)


# Where such a value is legal: texts that are names or letters, exact rationals.
LEGAL = {
    "letters": {"text", "texts"},
    "alphabet": {"texts"},
    "data": {"texts"},
    "counts": {"huge list"},
    "values": {"huge list"},
    "worst": {"10**400"},
    "budget": {"10**400"},
    "name": {"text", "text of a number"},
    "path": {"text", "text of a number"},
}


def wrong_end(function: Callable[..., object], arguments: dict[str, object]) -> tuple[str, bool]:
    """Return what is wrong with how a call ends, and whether it ended in an answer."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(**arguments)
    except DpoptError as error:
        message = str(error).strip()
        return "" if message.endswith(".") else f"message {message!r}", False
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}", False
    return "", True


def allowed(argument: str, value: str, found: str) -> bool:
    """Return whether a TypeError is Python's own business."""
    if not found.startswith("TypeError"):
        return False
    return argument in PATHS or (argument in FUNCTIONS and value in ("type", "function"))


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_spoiled_arguments(name: str) -> None:
    wrong = []
    for argument, good in called(name)[1].items():
        for value in values_for(good):
            function, arguments = called(name)
            found, answered = wrong_end(function, {**arguments, argument: VALUES[value]()})
            if found and not allowed(argument, value, found):
                wrong.append(f"{argument} = {value}: {found}")
            legal = LEGAL.get(argument, set()) if f"{name}.{argument}" not in LABELS else NEVER
            if answered and value in NEVER - legal:
                wrong.append(f"{argument} = {value}: accepted")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_an_unknown_argument_is_a_type_error(name: str) -> None:
    function, arguments = called(name)
    if inspect.signature(function).parameters.keys() == {"kept"}:
        pytest.skip("takes any number of arguments")
    with pytest.raises(TypeError):
        function(**arguments, no_such_argument=np.pi)


def test_every_module_has_cases() -> None:
    assert {m.__name__.removeprefix("dpopt.") for m in MODULES} == set(CASES)

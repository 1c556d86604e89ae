"""Bodies of files of the schemas 1 and 2, as bodies of the present one; from dict to dict.

Each kind then had a body of its own. Nothing here is believed: what comes out is read, and proved,
like any other file, and the hash is that of the file as it was written.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def converted(kind: str, body: Json) -> tuple[str, Json]:
    """Return the present kind and body of an earlier file's; an unknown kind as it is.

    Raises:
        LookupError: if something is missing; or a TypeError or ValueError if it is malformed.
    """
    known = {
        "kernel": _kernel,
        "majority": _majority,
        "min-count": _min_count,
        "public-prior": _public_prior,
    }
    return known[kind](body) if kind in known else (kind, body)


def _kernel(body: Json) -> tuple[str, Json]:
    """Kernels of no setting were then all that was saved as a kernel; their body is the same."""
    return "exact-kernel", body


def _majority(body: Json) -> tuple[str, Json]:
    """A gamma that was given, or of coefficients of one's own, was saved without an objective."""
    designed = body["objective_name"] in {"expected-error", "surrogate", "worst-case"}
    objective = {"objective": body["objective_name"]} if designed else {}
    return "majority", {
        "setting": {**body["setting"], **objective, "prior": body["prior"]},
        "units": body["weights"],
        "bound": body["bound"] if designed else None,
    }


def _min_count(body: Json) -> tuple[str, Json]:
    return "roo", {
        "setting": {**body["setting"], "rule": body["rule"]},
        "units": body["weights"],
        "bound": None,
    }


def _public_prior(body: Json) -> tuple[str, Json]:
    """Only the bits of the integers were saved, which the closed form makes again."""
    objectives = {"PublicPriorKernel": "minimax", "LeximinKernel": "leximin"}
    return "prior", {
        "setting": {
            "prior": [float.fromhex(mass) for mass in body["prior"]],
            "epsilon": body["guarantee"]["epsilon"],
            "letters": body["letters"],
            "objective": objectives[body["kernel"]],
        },
        "units": {"bits": body["bits"]},
        "bound": None,
    }

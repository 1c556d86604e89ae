"""Kernels of a public prior as files: the prior and epsilon; the integers are made again."""

from __future__ import annotations

import secrets
from pathlib import Path

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.privacy.saved import Sealed, seal
from dpopt.public_prior.algorithm import minimax_kernel
from dpopt.public_prior.inputs import counts_of, own_letters
from dpopt.public_prior.leximin import leximin_kernel
from dpopt.public_prior.sampler import SamplingKernel

KIND = "public-prior"
_MAKERS = {"PublicPriorKernel": minimax_kernel, "LeximinKernel": leximin_kernel}


def save_kernel(kernel: SamplingKernel, path: str | Path) -> None:
    """Write a minimax or leximin kernel to a JSON file; `dpopt.load` makes and certifies it anew.

    Args:
        kernel: from `minimax_kernel` or `leximin_kernel`.
        path: of the file.

    Raises:
        ParameterError: if the file cannot be written, or letters are neither text nor integers.
        NotPrivateError: if the kernel cannot be certified.
    """
    _checks.instance("kernel", kernel, SamplingKernel)
    names = kernel.prior.letters
    plain = all(isinstance(name, str | int) and not isinstance(name, bool) for name in names)
    if not plain:
        raise ParameterError("letters must be texts or integers for a kernel to be saved.")
    body = {
        "kernel": type(kernel).__name__,
        "guarantee": {"epsilon": kernel.epsilon, "delta": 0.0},
        "prior": [mass.hex() for mass in kernel.prior.masses.tolist()],
        "letters": None if isinstance(names, range) else list(names),
        "bits": kernel.certificate.bits,
    }
    seal(KIND, body, Path(path))


def from_sealed(sealed: Sealed) -> SamplingKernel:
    """Make the kernel of a saved file again, and certify it.

    Raises:
        ParameterError: if the file holds no such kernel, or was changed.
        NotPrivateError: if it cannot be certified.
    """
    body = sealed.body
    try:
        make = _MAKERS[body["kernel"]]
        masses = [float.fromhex(mass) for mass in body["prior"]]
        kernel = make(masses, body["guarantee"]["epsilon"], letters=body["letters"])
    except ParameterError as error:
        raise sealed.refuse(str(error).rstrip(".")) from None
    except (KeyError, TypeError, ValueError, OverflowError):
        raise sealed.refuse("its kernel, prior or letters are missing or malformed") from None
    if kernel.certificate.bits != sealed.integer("bits"):
        raise sealed.refuse("its bits are not those of its kernel")
    sealed.require_hash()
    return kernel


def draw_own_letter(counts: object, size: int) -> int:
    """Return a letter drawn from a user's p with exactly uniform integers: not private itself.

    Args:
        counts: p in proportion, integers or Fractions, shape (n,).
        size: n.

    Raises:
        ParameterError: for another shape or other values.
    """
    return int(own_letters(counts_of(counts, size)[0], secrets.randbelow)[0])

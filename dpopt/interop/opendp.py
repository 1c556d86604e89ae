"""Certified mechanisms as measurements of the OpenDP library.

Needs OpenDP: ``pip install 'dpopt[interop]'``. The caller switches on its features "contrib" and
"honest-but-curious" (``opendp.prelude.enable_features``): OpenDP cannot check the proofs of
others, and takes them on trust.

A measurement releases with the system's randomness, and its privacy map is the certified guarantee
rounded up to floats; at more than one step between the inputs, that of group privacy:
(d epsilon, delta (e^(d epsilon) - 1) / (e^epsilon - 1)). Pure guarantees are stated in
`max_divergence`, others in `approximate(max_divergence)`: (epsilon, delta)-DP in both directions is
the existence of events of probability 1 - delta within which epsilon holds, since every such pair
of laws is a post-processing of one with these events (Kairouz, Oh, Viswanath 2015).

An error is an output, which no map covers. So nothing here is refused for its value: OpenDP does
not ask a domain for membership before it invokes a function, and what lies outside is moved into
the domain, each record, letter or vote for itself, by a rule that no other one enters. That cannot
bring neighbours further apart. Only what the domain makes public is checked: how many there are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from numbers import Number
from typing import Any, cast

import numpy as np

from dpopt._errors import ParameterError
from dpopt._numbers import float_up, shown
from dpopt.data.tally import letters_of
from dpopt.kernel import KernelDesign, directed_pairs
from dpopt.majority import MajorityDesign
from dpopt.privacy import Certificate, ExactKernel, Guarantee, exp_lower, exp_upper
from dpopt.privacy.exponential import log_upper
from dpopt.public_prior import SamplingKernel
from dpopt.roo import LetterSampler

try:
    from opendp.combinators import make_composition  # pyright: ignore[reportMissingImports]
    from opendp.domains import (  # pyright: ignore[reportMissingImports]
        atom_domain,
        user_domain,
        vector_domain,
    )
    from opendp.measurements import make_user_measurement  # pyright: ignore[reportMissingImports]
    from opendp.measures import approximate, max_divergence  # pyright: ignore[reportMissingImports]
    from opendp.metrics import (  # pyright: ignore[reportMissingImports]
        absolute_distance,
        change_one_distance,
        discrete_distance,
        hamming_distance,
    )
    from opendp.mod import Measurement  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError(
        "dpopt.interop.opendp needs opendp; install it with pip install 'dpopt[interop]'."
    ) from error

Spent = tuple[float, float]
"""Epsilon and delta."""

_NAMED = 20
_CERTAIN = 800.0


def make_kernel(
    kernel: ExactKernel | KernelDesign | SamplingKernel,
) -> Measurement:
    """Return a certified kernel as a measurement: one input to one output.

    - Every two inputs are neighbours: an integer, or a letter of the public prior, under
      `discrete_distance`; any distance above 0 spends the guarantee once.
    - A path: an integer under `absolute_distance`.
    - A `KernelDesign` for a Hamming graph: a word, a list of integers, under `hamming_distance`.

    An integer outside is taken for the nearest input, anything else for the first one; so is each
    letter of a word.

    Args:
        kernel: certified.

    Raises:
        ParameterError: for another object, or neighbours that no metric of OpenDP describes.
        NotPrivateError: for a kernel that was proved in one direction only.
        OpenDPException: if OpenDP's features are not enabled.
    """
    if isinstance(kernel, SamplingKernel):
        return _local(kernel)
    if not isinstance(kernel, ExactKernel | KernelDesign):
        raise ParameterError(
            f"kernel is of type {type(kernel).__name__}; it must be an ExactKernel, a KernelDesign "
            "or a kernel of a public prior."
        )
    exact = kernel.exact if isinstance(kernel, KernelDesign) else kernel
    # Words along a grid are neighbours only if a letter moves by one: no Hamming distance.
    if (
        isinstance(kernel, KernelDesign)
        and kernel.setting.shape is not None
        and kernel.setting.graph_name in ("hamming", "complete")
    ):
        return _over_words(exact, tuple(kernel.setting.shape))
    exact.require_both_ways()
    last = exact.inputs - 1
    if exact.pairs is None:
        metric, steps = discrete_distance(), 1
    elif exact.inputs > 1 and _is_path(exact):
        metric, steps = absolute_distance(T=int), last
    else:
        raise ParameterError(
            "pairs of the kernel are neither all pairs of inputs nor a path; OpenDP has no metric "
            "for them. For words, give the KernelDesign of a Hamming graph."
        )
    domain = atom_domain(bounds=(0, last))
    spent = _certified(exact.guarantee, exact.certificate)
    return _measurement(
        domain, metric, spent, steps, lambda given: exact.release(_nearest(given, last)), int
    )


def make_sampler(sampler: LetterSampler, alphabet: object = None) -> Measurement:
    """Return a Reveal-or-Obscure sampler as a measurement: n records to one letter.

    The domain is all lists of n letters, the metric `change_one_distance`: records changed, in any
    order. A record outside the alphabet counts as its first letter.

    Args:
        sampler: with a certificate.
        alphabet: the k letters, public, as in `LetterSampler.release`; 0..k-1 if None.

    Raises:
        ParameterError: for another object, or letters that do not fit.
        NotPrivateError: if the sampler has no certificate.
        OpenDPException: if OpenDP's features are not enabled.
    """
    if not isinstance(sampler, LetterSampler):
        raise ParameterError(
            f"sampler is of type {type(sampler).__name__}; it must be a certified sampler of "
            "dpopt.roo."
        )
    sampler.require_private()
    design: Any = sampler
    k, n = sampler.setting.letters, sampler.setting.records
    letters = letters_of(k if alphabet is None else alphabet)
    if len(letters) != k:
        raise ParameterError(f"alphabet has {len(letters)} letters; the sampler is for {k}.")
    letter = _into(letters)
    return _measurement(
        vector_domain(_letter_domain(letters), size=n),
        change_one_distance(),
        _certified(design.guarantee, design.certificate),
        n,
        lambda records: sampler.release([letter(own) for own in records], alphabet=letters),
        _output_type(letters),
    )


def make_majority(
    design: MajorityDesign,
    voters: Sequence[Measurement] | Callable[[Any], Any],
    *,
    input_domain: Any = None,  # noqa: ANN401
    input_metric: Any = None,  # noqa: ANN401
) -> Measurement:
    """Return the private majority of private voters as a measurement: data to a label, 0 or 1.

    The guarantee is about the data behind the votes. The design is not private as a function of
    the votes: it may publish a unanimous vote as it is, and one changed record changes all of them.

    Args:
        design: certified, for K voters.
        voters: either K measurements whose outputs are 0 and 1 or booleans, over one domain and
            metric. Then all is checked: wherever every voter's map is within its (epsilon, Delta)
            of the design, the majority spends (m epsilon, delta), and elsewhere (or where it is
            less) what the voters spend together, by `make_composition`. With groups, voters come
            in the order of the groups. Or a function from the data to K votes, for which the
            caller answers: the votes are independent given the data, drawn afresh at each call,
            each (epsilon, Delta)-DP between data at distance 1, and data at distance d are d such
            steps apart. That is about votes as they are counted: 1 and True as a 1, all else as a
            0, and so the answer of a voter that raises an error, or none. A function that raises
            an error has cast K votes of 0.
        input_domain: of the data, where voters is a function.
        input_metric: likewise.

    Raises:
        ParameterError: for voters that do not fit.
        NotPrivateError: if the design has no certificate.
        OpenDPException: if OpenDP's features are not enabled.
    """
    if not isinstance(design, MajorityDesign):
        raise ParameterError(f"design is {shown(design)}; it must be a MajorityDesign.")
    design.require_private()
    spent = _certified(design.guarantee, design.certificate)
    function = None if isinstance(voters, Sequence | Measurement) else voters
    if function is None and (input_domain is not None or input_metric is not None):
        raise ParameterError(
            "input_domain and input_metric are given; they belong to a function, measurements "
            "have their own."
        )
    if function is None:
        return _checked_majority(design, voters, spent)
    if not callable(function) or input_domain is None or input_metric is None:
        raise ParameterError(
            "voters must be a function, with its input_domain and input_metric, or measurements."
        )
    steps = 1 if input_metric == discrete_distance() else None
    k = design.setting.mechanisms
    return _measurement(
        input_domain,
        input_metric,
        spent,
        steps,
        lambda data: design.release(_ballot(lambda: function(data), k)),
        int,
    )


def _checked_majority(design: MajorityDesign, voters: object, spent: Spent) -> Measurement:
    k = design.setting.mechanisms
    listed = isinstance(voters, Sequence) and all(isinstance(v, Measurement) for v in voters)
    if not isinstance(voters, Sequence) or not listed or len(voters) != k:
        raise ParameterError(f"voters must be {k} OpenDP measurements, or a function.")
    together = make_composition(list(voters))
    pure = together.output_measure == max_divergence()
    if not pure and together.output_measure != approximate(max_divergence()):
        raise ParameterError(
            f"voters have the measure {together.output_measure}; it must be MaxDivergence or "
            "Approximate(MaxDivergence)."
        )
    limit = design.setting.epsilon, design.setting.mechanism_delta

    def privacy_map(distance: Any) -> Any:  # noqa: ANN401
        total = _as_pair(together.map(distance))
        each = [_as_pair(voter.map(distance)) for voter in voters]
        within = all(_within(own, limit) for own in each)
        least = spent if within and not _within(total, spent) else total
        return least[0] if pure and spent[1] == 0.0 else least

    return make_user_measurement(
        together.input_domain,
        together.input_metric,
        max_divergence() if pure and spent[1] == 0.0 else approximate(max_divergence()),
        # One by one: an error is the vote of the voter that raised it, and not of the others.
        lambda data: design.release([_ballot(lambda v=v: [v(data)], 1)[0] for v in voters]),
        privacy_map,
        TO=int,
    )


def _local(kernel: SamplingKernel) -> Measurement:
    spent = _certified(kernel.guarantee, kernel.certificate)
    letters = kernel.prior.letters
    letter = _into(letters)
    return _measurement(
        _letter_domain(letters),
        discrete_distance(),
        spent,
        1,
        lambda own: kernel.release(letter(own)),
        _output_type(letters),
    )


def _over_words(exact: ExactKernel, shape: tuple[int, ...]) -> Measurement:
    places = len(shape)

    def release(word: Any) -> Any:  # noqa: ANN401
        if len(word) != places:
            raise ParameterError(
                f"word does not fit the shape {shape}: it has {len(word)} letters."
            )
        inside = [_nearest(letter, size - 1) for letter, size in zip(word, shape, strict=True)]
        return exact.release(int(np.ravel_multi_index(inside, shape)))

    if len(set(shape)) != 1:
        raise ParameterError(
            f"shape is {shape}; an OpenDP vector has the same letters at every place."
        )
    domain = vector_domain(atom_domain(bounds=(0, shape[0] - 1)), size=places)
    spent = _certified(exact.guarantee, exact.certificate)
    return _measurement(domain, hamming_distance(), spent, places, release, int)


def _ballot(votes: Callable[[], Any], voters: int) -> list[int]:
    """Return as many zeros and ones as there are voters, whatever ``votes`` returns or raises."""
    try:
        found = [_is_one(vote) for vote in votes()]
    except Exception:  # noqa: BLE001 - an error is an answer, not to be told from the others
        found = []
    return (found + [0] * voters)[:voters]


def _is_one(vote: object) -> int:
    return int(isinstance(vote, Number | np.bool_) and vote == 1)


def _nearest(value: object, last: int) -> int:
    """Return the integer in 0..last that is nearest; 0 for what is no integer."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return 0
    return min(max(int(cast(int, value)), 0), last)


def _into(letters: Sequence[Hashable]) -> Callable[[object], Hashable]:
    """Return the function that leaves a letter as it is and makes the first one of all else."""
    known = None if isinstance(letters, range) else frozenset((type(x), x) for x in letters)

    def letter(own: object) -> Hashable:
        if known is None:
            return own if type(own) is int and own in letters else letters[0]
        try:
            return own if (type(own), own) in known else letters[0]  # type: ignore[return-value]
        except TypeError:  # not hashable
            return letters[0]

    return letter


def _is_path(exact: ExactKernel) -> bool:
    path = directed_pairs("path", exact.inputs)
    return path is not None and set(map(tuple, path.tolist())) == set(exact.pairs or ())


def _letter_domain(letters: Sequence[Hashable]) -> Any:  # noqa: ANN401
    """Return the domain of one letter; its name tells alphabets apart."""
    if isinstance(letters, range) and letters == range(len(letters)):
        return atom_domain(bounds=(0, len(letters) - 1))
    if not all(isinstance(letter, str | int | float | bool) for letter in letters):
        raise ParameterError("letters must be strings, numbers or booleans to be named in OpenDP.")
    names, known = repr(tuple(letters)), frozenset((type(letter), letter) for letter in letters)
    if len(letters) > _NAMED:
        names = f"{len(letters)} letters, SHA-256 {hashlib.sha256(names.encode()).hexdigest()}"
    return user_domain(f"dpopt letter of {names}", lambda own: (type(own), own) in known)


def _output_type(letters: Sequence[Hashable]) -> Any:  # noqa: ANN401
    if isinstance(letters, range):
        return int
    return str if all(isinstance(letter, str) for letter in letters) else "ExtrinsicObject"


def _measurement(
    domain: Any,  # noqa: ANN401
    metric: Any,  # noqa: ANN401
    spent: Spent,
    most: int | None,
    function: Callable[[Any], Any],
    output: Any,  # noqa: ANN401
) -> Measurement:
    """Return the measurement whose map is group privacy over at most ``most`` steps."""
    pure = spent[1] == 0.0

    def privacy_map(distance: Any) -> Any:  # noqa: ANN401
        steps = math.ceil(distance)
        found = group_privacy(*spent, steps if most is None else min(steps, most))
        return found[0] if pure else found

    measure = max_divergence() if pure else approximate(max_divergence())
    return make_user_measurement(domain, metric, measure, function, privacy_map, TO=output)


def group_privacy(epsilon: float, delta: float, steps: int) -> Spent:
    """Return what inputs ``steps`` neighbours apart spend, rounded up to floats.

    (d epsilon, delta (1 + e^epsilon + ... + e^((d - 1) epsilon))), delta at most 1.

    Args:
        epsilon: at least 0.
        delta: in [0, 1).
        steps: d, at least 0.
    """
    if steps <= 0:
        return 0.0, 0.0
    total = steps * Fraction(epsilon)
    if delta == 0.0 or steps == 1:
        return float_up(total), delta
    if total > _CERTAIN:
        return float_up(total), 1.0
    grown, least = exp_upper(total, 256), exp_lower(epsilon, 256)
    factor = steps * grown
    if least > 1:
        factor = min(factor, (grown - 1) / (least - 1))
    return float_up(total), min(1.0, float_up(Fraction(delta) * factor))


def _certified(guarantee: Guarantee, certificate: Certificate | None) -> Spent:
    """Return the guarantee, epsilon raised until e^epsilon is at least the ratio proved."""
    if certificate is None:
        raise ParameterError("certificate is None; a measurement needs a proof.")
    if exp_lower(guarantee.epsilon) >= certificate.ratio:
        return guarantee.epsilon, guarantee.delta
    return max(guarantee.epsilon, log_upper(certificate.ratio)), guarantee.delta


def _as_pair(spent: Any) -> Spent:  # noqa: ANN401
    return (float(spent[0]), float(spent[1])) if isinstance(spent, tuple) else (float(spent), 0.0)


def _within(spent: Spent, limit: Spent) -> bool:
    return spent[0] <= limit[0] and spent[1] <= limit[1]

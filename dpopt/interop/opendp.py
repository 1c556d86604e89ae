"""Certified mechanisms as measurements of the OpenDP library.

Needs OpenDP: ``pip install 'dpopt[interop]'``. The caller switches on its features "contrib" and
"honest-but-curious" (``opendp.prelude.enable_features``): OpenDP cannot check the proofs of
others, and takes them on trust.

A measurement releases with the system's randomness, and its privacy map is the certified guarantee
rounded up to floats; at more than one step between the inputs, that of group privacy:
(d epsilon, delta (e^(d epsilon) - 1) / (e^epsilon - 1)). Pure guarantees are stated in
`max_divergence`, others in `approximate(max_divergence)`: (epsilon, delta)-DP in both directions is
the existence of events of probability 1 - delta within which epsilon holds, since every such pair
of distributions is a post-processing of one with these events (Kairouz, Oh, Viswanath 2015).

An error is an output, which no map covers. So nothing here is refused for its value: OpenDP does
not ask a domain for membership before it invokes a function, and what lies outside is moved into
the domain, each record, category or vote for itself, by a rule that no other one enters. That
cannot bring neighbours further apart. Only what the domain makes public is checked: how many there
are. Every maker raises NotPrivateError for a design without a certificate, and OpenDPException
where OpenDP's features are not enabled.
"""

# What OpenDP's prelude has, it exports by stars.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpopt._errors import ParameterError
from dpopt._numbers import float_up, shown
from dpopt.data.tally import labels_of, tally
from dpopt.kernel import directed_pairs
from dpopt.kernel.setting import Kernel
from dpopt.noise.setting import Noise
from dpopt.privacy import exp_lower, exp_upper
from dpopt.privacy.graph import all_pairs
from dpopt.public_prior.setting import KeptPriorSetting
from dpopt.roo import CategorySetting
from dpopt.shape import Design

try:
    import opendp.prelude as dp  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise ImportError(
        "dpopt.interop.opendp needs opendp; install it with pip install 'dpopt[interop]'."
    ) from error

Spent = tuple[float, float]
"""Epsilon and delta."""


def make_kernel(kernel: Design) -> dp.Measurement:
    """Return a certified kernel as a measurement: one input to one output.

    - Every two inputs are neighbours: an integer, or a category of the public prior, under
      `discrete_distance`; any distance above 0 spends the guarantee once.
    - A path: an integer under `absolute_distance`.

    An integer outside is taken for the nearest input, anything else for the first one.

    Args:
        kernel: a design of a `Kernel` without names, or a kernel of a public prior.

    Raises:
        ParameterError: for another object, or neighbours that no metric of OpenDP describes.
    """
    what = "the design of a kernel, or a kernel of a public prior"
    setting, spent = _certified("kernel", kernel, Kernel | KeptPriorSetting, what)
    if isinstance(setting, KeptPriorSetting):
        domain, into, output = _categories(setting.labelled.labels)

        def answer(category: Any) -> Any:  # noqa: ANN401
            return kernel.release(into(category))

        return _measurement(domain, dp.discrete_distance(), spent, 1, answer, output)
    if any(setting.names):
        raise ParameterError(
            "inputs or outputs of the kernel have names; OpenDP's domain is of integers."
        )
    last = setting.domain.inputs - 1
    if setting.pairs is None:
        metric, steps = dp.discrete_distance(), 1
    elif np.array_equal(setting.pairs, all_pairs(directed_pairs("path", last + 1), last + 1)):
        metric, steps = dp.absolute_distance(T=int), last
    else:
        raise ParameterError(
            "pairs of the kernel are neither all pairs of inputs nor a path; OpenDP has no metric "
            "for them."
        )

    def release(given: Any) -> Any:  # noqa: ANN401
        return kernel.release(_nearest(given, last))

    return _measurement(dp.atom_domain(bounds=(0, last)), metric, spent, steps, release, int)


def make_noise(noise: Design) -> dp.Measurement:
    """Return certified additive noise as a measurement: an integer of 64 bits to one.

    Under `absolute_distance`; every D, the sensitivity, spends the guarantee once. What is no
    integer counts as 0. An output beyond 64 bits is the nearest of 64 bits, which is
    post-processing.

    Args:
        noise: a design of a `Noise` of one release.

    Raises:
        ParameterError: for another object, or several releases.
    """
    setting, spent = _certified("noise", noise, Noise, "the design of a Noise")

    def function(given: Any) -> int:  # noqa: ANN401
        limits = np.iinfo(np.int64)
        released = noise.release(_nearest(given, limits.max, limits.min))
        return _nearest(released, limits.max, limits.min)

    domain, metric = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    return _measurement(domain, metric, spent, None, function, "i64", setting.sensitivity)


def make_sampler(sampler: Design, labels: object = None) -> dp.Measurement:
    """Return a Reveal-or-Obscure sampler as a measurement: n records to one category.

    The domain is all lists of n categories, the metric `change_one_distance`: records changed, in
    any order. A record outside the alphabet counts as its first category.

    Args:
        sampler: certified, a design of `dpopt.roo`.
        labels: the k categories, public; 0..k-1 if None.

    Raises:
        ParameterError: for another object, or categories that do not fit.
    """
    what = "a certified sampler of dpopt.roo"
    setting, spent = _certified("sampler", sampler, CategorySetting, what)
    k, n = setting.categories, setting.records
    categories = labels_of(k if labels is None else labels)
    if len(categories) != k:
        raise ParameterError(f"labels has {len(categories)} categories; the sampler is for {k}.")
    domain, into, output = _categories(categories)

    def release(records: Any) -> Any:  # noqa: ANN401
        return sampler.release(tally(list(map(into, records)), categories))

    vectors = dp.vector_domain(domain, size=n)
    return _measurement(vectors, dp.change_one_distance(), spent, n, release, output)


def _nearest(value: object, last: int, least: int = 0) -> int:
    """Return the integer in least..last that is nearest; 0 for what is no integer."""
    integer = int(value) if type(value) is int or isinstance(value, np.integer) else 0
    return min(max(integer, least), last)


def _categories(categories: Sequence[Hashable]) -> tuple[Any, Callable[[object], Hashable], type]:
    """Return OpenDP's domain of the categories' type, what moves others to the first, and the type.

    As of OpenDP's own randomized response, the domain of names is that of all texts.
    """
    numbered = isinstance(categories, range)
    types = {int} if numbered else set(map(type, categories))
    if len(types) > 1 or not types <= {str, int, float, bool}:
        raise ParameterError("categories must be all strings, or all integers, floats or booleans.")
    (of,) = types
    members = categories if numbered else frozenset(categories)

    def into(own: Any) -> Hashable:  # noqa: ANN401
        return own if type(own) is of and own in members else categories[0]

    domain = dp.atom_domain(bounds=(0, len(categories) - 1)) if numbered else dp.atom_domain(T=of)
    return domain, into, of


def _measurement(
    domain: Any,  # noqa: ANN401
    metric: Any,  # noqa: ANN401
    spent: Spent,
    most: int | None,
    function: Callable[[Any], Any],
    output: Any,  # noqa: ANN401
    step: int = 1,
) -> dp.Measurement:
    """Return the measurement whose map is group privacy over at most ``most`` steps of a length."""
    pure = spent[1] == 0.0

    def privacy_map(distance: Any) -> Any:  # noqa: ANN401
        steps = -(-math.ceil(distance) // step)
        loss = group_privacy(*spent, steps if most is None else min(steps, most))
        return loss[0] if pure else loss

    measure = dp.max_divergence() if pure else dp.approximate(dp.max_divergence())
    return dp.m.make_user_measurement(domain, metric, measure, function, privacy_map, TO=output)


def group_privacy(epsilon: float, delta: float, steps: int) -> Spent:
    """Return what inputs d = ``steps`` neighbours apart spend, rounded up to floats.

    (d epsilon, delta (1 + e^epsilon + ... + e^((d - 1) epsilon))), delta at most 1.
    """
    if steps <= 0:
        return 0.0, 0.0
    total = steps * Fraction(epsilon)
    if delta == 0.0 or steps == 1:
        return float_up(total), delta
    # In nats: there e^total times the least delta above 0 is above 1.
    if total > 800.0:
        return float_up(total), 1.0
    grown, least = exp_upper(total, 256), exp_lower(epsilon, 256)
    factor = steps * grown
    if least > 1:
        factor = min(factor, (grown - 1) / (least - 1))
    return float_up(total), min(1.0, float_up(Fraction(delta) * factor))


def _certified(name: str, design: object, kinds: Any, what: str) -> tuple[Any, Spent]:  # noqa: ANN401
    """Return a design's setting and the guarantee of one release, which a certificate proves."""
    if not isinstance(design, Design) or not isinstance(design.setting, kinds):
        raise ParameterError(f"{name} is {shown(design)}; it must be {what}.")
    design._require_private()
    if design.setting.together > 1:
        raise ParameterError(
            f"releases is {design.setting.together}; a measurement is one release: OpenDP composes "
            "it."
        )
    return design.setting, (design.guarantee.epsilon, design.guarantee.delta)

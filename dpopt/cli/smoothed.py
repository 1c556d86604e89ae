"""``dpopt smoothed`` and ``dpopt profile``: what a sample reveals on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dpopt._errors import ParameterError
from dpopt._kinds import described
from dpopt.cli.options import Flag, command, parameters
from dpopt.cli.output import OPTIONS, Answer

if TYPE_CHECKING:
    from dpopt._types import Numbers, RowsOfNumbers
    from dpopt.smoothed import SamplingHistogram


def _sample(
    sizes: tuple[int, int],
    drawn: int | None = None,
    lost_rate: str | None = None,
    replacement: Flag = False,
) -> SamplingHistogram:
    """Return the sample that the options describe, of n records over m categories.

    Args:
        sizes: n and m.
        drawn: T, how many records are drawn, from 1 to n.
        lost_rate: share of the records that is lost, in [0, 1), instead of drawn.
        replacement: records are put back before the next draw.
    """
    from dpopt.smoothed import SamplingHistogram

    if (drawn is None) == (lost_rate is None):
        raise ParameterError("drawn and lost_rate: give one of them.")
    records, categories = sizes
    if drawn is not None:
        return SamplingHistogram(records, drawn, categories, replacement)
    if replacement:
        raise ParameterError("lost_rate is of a sample without replacement; give drawn.")
    return SamplingHistogram.of_lost_rate(records, str(lost_rate), categories)


# The options that `smoothed` and `profile` share.
_OPTIONS = [*parameters(described(_sample).fields[1:]), *OPTIONS]


@command(*_OPTIONS)
def smoothed(records: int, distributions: RowsOfNumbers, epsilon: float, **given: Any) -> None:  # noqa: ANN401
    """The largest expected delta(x) of a sample, when an adversary picks every record's pmf.

    T of n records are drawn and published as a histogram, without noise. Every composition of the
    records over the distributions is evaluated or bounded.

    Args:
        records: N, at least 1.
        distributions: Distributions of one record, a row each, summing to 1; for two categories
            also the shares of the first, such as 0.4,0.6.
        epsilon: From 0 to 700, in nats.
        given: the sample, and what becomes of the answer.

    Example:
        dpopt smoothed --records 36 --drawn 34 --epsilon 0 --distributions 0.4,0.6
    """
    from dpopt import _checks
    from dpopt.smoothed import smoothed_delta

    pmfs = _checks.floats("distributions", distributions)
    sizes = records, pmfs.shape[1] if pmfs.ndim == 2 else 2
    answer, sample = Answer.of(given), _sample(sizes, **given)
    answer.give(lambda: smoothed_delta(sample, epsilon, pmfs))


@command(*_OPTIONS)
def profile(
    epsilon: float,
    counts: Numbers | None = None,
    records: int | None = None,
    categories: int | None = None,
    **given: Any,  # noqa: ANN401
) -> None:
    """How private each database of a sample is: delta(x), its largest divergence to a neighbour.

    T of its n records are drawn and published as a histogram, without noise. Without counts it is
    printed for every database.

    Args:
        epsilon: From 0 to 700, in nats.
        counts: The database, such as 60,40; every database if left out.
        records: N, at least 1, where no counts are given.
        categories: M, at least 2, where no counts are given.  [2]
        given: the sample, and what becomes of the answer.

    Example:
        dpopt profile --counts 60,40 --drawn 90 --epsilon 0.5
    """
    from dpopt import _checks
    from dpopt.smoothed import privacy_profile

    for name, other in (("records", records), ("categories", categories)):
        if counts is not None and other is not None:
            raise ParameterError(f"counts and {name}: give one of them.")
    if counts is None and records is None:
        raise ParameterError("counts and records: give one of them.")
    sizes = records or 0, 2 if categories is None else categories
    if counts is not None:
        integers = [_checks.integer("counts", count, 0) for count in cast(list[object], counts)]
        if len(integers) < 2:
            raise ParameterError(f"counts is {integers}; it must hold at least two, such as 60,40.")
        sizes = sum(integers), len(integers)
    answer, sample = Answer.of(given), _sample(sizes, **given)
    answer.give(lambda: privacy_profile(sample, epsilon, cast(Any, counts)))

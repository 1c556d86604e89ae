"""What a plurality of private voters spends: its least epsilon, and its tight dominating pair.

From the corners that `dpopt.verify` walks over, in integers rounded outward.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpopt import verify
from dpopt._errors import ParameterError
from dpopt.multiclass.corners import voters_in_words
from dpopt.privacy.dominating import DominatingPair, Point
from dpopt.privacy.exponential import exp_upper
from dpopt.privacy.least import Least, least_of_ratio

# Events of which a dominating pair is made.
_MOST_POINTS = 2_000_000


def least_epsilon(labels: verify.Labels) -> Least:
    """Return the least epsilon of one query for delta = 0, enclosed.

    It is the logarithm of the largest Pr[output] / Pr'[output] over all voters and outputs, up to
    rounding; infinite if an output is possible on one side only.
    """
    most, least, where, lower = 0, 1, ("", ""), Fraction(0)
    # A voter's b was rounded up by less than two units, and c down: so much of each factor c.
    rounded = Fraction(4, 1 << verify.CORNER) * (1 + exp_upper(labels.epsilon))
    for _, signed, loops, *both in labels.sides(range(1, 2)):
        edges = sum(map(abs, signed))
        for way, (above, below) in ((1, both), (-1, both[::-1])):
            for at, (over, under) in enumerate(zip(above, below, strict=True)):
                if over * least > most * max(under - edges, 0):
                    ends = [way * n for n in signed]
                    where = voters_in_words(labels.classes, ends, loops[at])
                    most, least = over, under - edges
                    if least <= 0:
                        return least_of_ratio(None, where, (0,))
                    lower = Fraction(max(0, over - edges), under) * (1 - edges * rounded)
    one = Fraction(1)
    return least_of_ratio(max(Fraction(most, least), one), where, (0,), lower=max(lower, one))


def dominating(labels: verify.Labels) -> DominatingPair:
    """Return the tight dominating pair of one query, over all voters and sets of outputs.

    Over every configuration and every set of outputs, as the proof of theorem 2 holds at every
    ratio and set. Irrational probabilities are rounded outward, which only raises the hull.

    Raises:
        ParameterError: if there are too many configurations.
    """
    sizes = range(1, labels.classes)
    events = len(sizes) * verify.corner_count(labels.voters, labels.classes)
    if events > _MOST_POINTS:
        raise ParameterError(
            f"mechanisms is {labels.voters} and classes {labels.classes}; the privacy loss is "
            f"found from at most {_MOST_POINTS:.0e} events, and these may be {events:.1e}."
        )
    total = labels.ballots.whole << verify.CORNER

    def points() -> Iterator[Point]:
        for _, signed, _, *both in labels.sides(sizes):
            edges = sum(map(abs, signed))
            for above, below in (both, both[::-1]):
                for over, under in zip(above, below, strict=True):
                    yield max(under - edges, 0), min(over, total)

    return DominatingPair.of_points(points(), total)

"""What was released of one data set: what it spends together, and whether a budget allows it.

*The budget is a filter.* What is asked next, how much it may spend, and whether anything is, may
depend on all outputs so far. Of a budget (E, D) a slack s is kept: D / 2, or none where the first
entry alone has a delta above D / 2 (nothing was seen before it). Releases are allowed as long as

    sum delta_j <= D - s   and   ( sum epsilon_j <= E   or   rho + 2 sqrt(rho log(1/s)) <= E ),

with rho = sum epsilon_j^2 / 2. Then all of them together are (E, D)-DP. For an (epsilon_j,
delta_j) mechanism is epsilon_j-DP but for an event of probability delta_j, given all before it, and
these events have probability at most D - s together. Without them, the loss L is at most
sum epsilon_j. And exp(lambda L - lambda (lambda + 1) rho) is a supermartingale for every
lambda > 0, since epsilon-DP is (epsilon^2 / 2)-zCDP: by Ville's inequality, L is ever above E while
the second bound holds with probability at most s. The "or" costs nothing, since the first bound
holds on each path by itself. Were the slack what the deltas of a path leave of D, this would be
wrong: `tests/ledger/test_filters.py` has an adversary against that, too.

References:
    Rogers, Roth, Ullman, Vadhan (2016); Whitehouse, Ramdas, Rogers, Wu (2023), theorem 1, whose
    bound the second one is; Haney et al. (2023) for voters that are asked in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from typing import NamedTuple

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt._numbers import float_down, shown
from dpopt.privacy.composed import (
    Parts,
    concentrated,
    concentrated_bound,
    general,
    larger,
    least_delta,
    optimal,
    simple,
)
from dpopt.privacy.dominating import DominatingPair
from dpopt.privacy.guarantee import Guarantee
from dpopt.privacy.ledger import Entry

# Beyond these, ways to count groups are not tried in all combinations.
_MOST_WAYS = 16
_HALVINGS = 60

Part = tuple[Guarantee, DominatingPair | None]
"""What one mechanism spends; its dominating pair if that is known."""

Way = dict[Part, int]
"""Mechanisms that spend together what releases do, with their numbers."""

Voters = tuple[Guarantee, int]
"""The guarantee of each voter behind votes, and how many of them a record reaches."""

Accountant = Callable[[tuple[tuple[Part, int], ...], float], Guarantee | None]
"""What makes an epsilon of dominating pairs and a delta; None where it knows none."""


class Sums(NamedTuple):
    """Sums over mechanisms, of epsilon, of its square, and of delta, on any path of outputs."""

    epsilon: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def and_of(self, other: Sums, times: int = 1) -> Sums:
        """Return the sums over these and others."""
        return Sums(*(mine + times * its for mine, its in zip(self, other, strict=True)))


def _sums(guarantee: Guarantee, times: int = 1) -> Sums:
    epsilon, delta = Fraction(guarantee.epsilon), Fraction(guarantee.delta)
    return Sums(times * epsilon, times * epsilon**2, times * delta)


def _either(one: Sums, other: Sums) -> Sums:
    """Return what covers both, where it is not known which holds."""
    return Sums(*map(max, one, other))


@dataclass
class Shared:
    """The releases of a group: their guarantees with numbers, and what they share."""

    at_most: Guarantee
    folds: int
    composes: bool | None
    releases: Way = field(default_factory=dict)

    @property
    def terms(self) -> tuple[object, ...]:
        """What all releases of the group share."""
        return self.at_most, self.folds, self.composes

    def ways(self) -> list[Way]:
        """Return the ways to count them that are valid; none if they promise nothing."""
        shared: Way = {(self.at_most, None): self.folds}
        if sum(self.releases.values()) == 1 or self.composes:
            return [self.releases, shared]
        if self.composes is not None:
            return [shared]
        # Either is what they spend, and it is not known which.
        both = larger(_parts(self.releases), _parts(shared))
        return [] if both is None else [{(both, None): 1}]

    def sums(self) -> Sums:
        """Return what the group adds to the sums: a bound that no later release of it replaces."""
        own = Sums()
        for (guarantee, _), count in self.releases.items():
            own = own.and_of(_sums(guarantee, count))
        if self.composes:
            return own
        shared = _sums(self.at_most, self.folds)
        return shared if self.composes is False else _either(own, shared)


@dataclass
class Account:
    """What was spent of one data set, equal entries merged.

    Attributes:
        alone: releases of no group, by guarantee, pair, and the voters behind each of them alone.
        calls: votes of voters without a name, by their guarantee, the voters, and how many were
            asked at once. Whether two calls asked the same voters is not known, nor whether their
            votes were drawn afresh. So each call counts as its votes or as all its voters, the
            larger of both: that bounds every case, also of voters that were asked twice. A single
            vote with no other beside it counts as itself.
        groups: by name.
        releases: their number.
        first: the delta of the first entry; None before it.
    """

    alone: dict[tuple[Part, Voters | None], int] = field(default_factory=dict)
    calls: dict[tuple[Part, Voters, int], int] = field(default_factory=dict)
    groups: dict[str, Shared] = field(default_factory=dict)
    releases: int = 0
    first: Fraction | None = None

    def add(self, entry: Entry, times: int = 1) -> None:
        """Count an entry, or several that are equal.

        Raises:
            ParameterError: if it says something else of its group than earlier ones.
        """
        part = entry.guarantee, entry.pair
        behind = None if entry.at_most is None else (entry.at_most, entry.folds)
        if entry.group is not None:
            self._group(entry).releases[part] = (
                self._group(entry).releases.get(part, 0) + times * entry.count
            )
        elif behind is not None and entry.composes is None:
            call = part, behind, entry.count
            self.calls[call] = self.calls.get(call, 0) + times
        else:
            key = part, behind
            self.alone[key] = self.alone.get(key, 0) + times * entry.count
        if self.first is None:
            alone = Account(first=Fraction(0))
            alone.add(entry)
            self.first = alone.sums().delta
        self.releases += times * entry.count

    def _group(self, entry: Entry) -> Shared:
        new = Shared(entry.at_most or entry.guarantee, entry.folds, entry.composes)
        group = self.groups.setdefault(str(entry.group), new)
        if new.terms != group.terms:
            raise ParameterError(
                f"group is {shown(entry.group)}, of which the ledger knows another at_most, "
                "folds or composes; name another group."
            )
        return group

    def copy(self) -> Account:
        """Return another account of the same."""
        found = Account(first=self.first)
        found.join(self, "")
        return found

    def join(self, other: Account, name: str) -> None:
        """Count what another data set spent, too; equal names of groups there are other groups."""
        for key, count in other.alone.items():
            self.alone[key] = self.alone.get(key, 0) + count
        for call, count in other.calls.items():
            self.calls[call] = self.calls.get(call, 0) + count
        for group, of in other.groups.items():
            kept = Shared(of.at_most, of.folds, of.composes, dict(of.releases))
            self.groups[f"{name}\n{group}" if name else group] = kept
        self.releases += other.releases

    @property
    def single_vote(self) -> bool:
        """Whether the calls are one vote, and no other is known that could be of its voters."""
        return sum(n * times for (*_, n), times in self.calls.items()) == 1 and not self.groups

    def ways(self) -> list[Way]:
        """Return ways to count all releases, each valid; none if one of them promises nothing."""
        choices: list[list[Way]] = []
        for (part, behind), count in self.alone.items():
            own: Way = {part: count}
            other: list[Way] = [] if behind is None else [{(behind[0], None): behind[1] * count}]
            choices.append([own, *other])
        for (part, voters, count), times in self.calls.items():
            each = larger([(part[0], count)], [voters])
            if self.single_vote:
                choices.append([{part: 1}])
            else:
                choices.append([] if each is None else [{(each, None): times}])
        choices += [group.ways() for group in self.groups.values()]
        return [_merged(picked) for picked in _picked(choices)]

    def sums(self) -> Sums:
        """Return sums that grow with every release, whatever is asked later."""
        total = Sums()
        for ((guarantee, _), behind), count in self.alone.items():
            own = _sums(guarantee)
            if behind is not None and guarantee.delta == behind[0].delta == 0.0:
                own = Sums(*map(min, own, _sums(*behind)))
            total = total.and_of(own, count)
        for ((guarantee, _), voters, count), times in self.calls.items():
            total = total.and_of(_either(_sums(guarantee, count), _sums(*voters)), times)
        for group in self.groups.values():
            total = total.and_of(group.sums())
        return total

    def allowed(self, budget: Guarantee) -> bool:
        """Whether all that was released is within a budget, as the module's text says it."""
        return self._within(budget, self.sums(), self._least_simple())

    def room(self, budget: Guarantee) -> float:
        """Return the largest epsilon of one more release without a delta, rounded down."""
        sums, least = self.sums(), self._least_simple()

        def fits(epsilon: float) -> bool:
            more = Fraction(epsilon)
            return self._within(
                budget,
                sums.and_of(Sums(more, more**2)),
                None if least is None else least + more,
            )

        spent = sums.epsilon if least is None else min(least, sums.epsilon)
        low = max(0.0, float_down(max(Fraction(0), Fraction(budget.epsilon) - spent)))
        low, high = (low, budget.epsilon) if fits(low) else (0.0, 0.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _within(self, budget: Guarantee, sums: Sums, least: Fraction | None) -> bool:
        limit, most = Fraction(budget.epsilon), Fraction(budget.delta)
        slack = Fraction(0) if 2 * (self.first or 0) > most else most / 2
        if sums.delta > most - slack:
            return False
        if sums.epsilon <= limit or (least is not None and least <= limit):
            return True
        return slack > 0 and concentrated_bound(sums.squares, slack) <= limit

    def _least_simple(self) -> Fraction | None:
        """Return the least sum of epsilons of any way, where no delta is in it; else None.

        Without deltas each way bounds the loss on every path, so that the least may be taken.
        """
        sums = [
            sum((n * Fraction(g.epsilon) for g, n in _parts(way)), Fraction(0))
            for way in self.ways()
            if all(g.delta == 0.0 for g, _ in _parts(way))
        ]
        return min(sums, default=None) if self.sums().delta == 0 else None

    def guarantees(
        self, delta: float | None, accountant: Accountant
    ) -> Iterator[tuple[str, Guarantee]]:
        """Yield guarantees by name, those first that take no time.

        Args:
            delta: of all together; that of simple composition if None.
            accountant: of the dominating pairs.

        Raises:
            ParameterError: for a delta out of range.
        """
        if delta is not None:
            delta = _checks.real("delta", delta, 0.0, 1.0, open_upper=True)
        ways = self.ways()
        for way in ways:
            found = simple(_parts(way))
            if found is not None and (delta is None or found.delta <= delta):
                yield "simple", found
        for rule in (concentrated, general, optimal):
            for way in ways:
                aim = _aim(way) if delta is None else delta
                found = None if aim is None else rule(_parts(way), aim)
                if found is not None:
                    yield rule.__name__, found
        for way in ways:
            aim = _aim(way) if delta is None else delta
            found = None if aim is None else accountant(tuple(way.items()), aim)
            if found is not None:
                yield "exact", found


def _parts(way: Way) -> Parts:
    """Return guarantees with numbers: pairs are for accountants."""
    return [(guarantee, count) for (guarantee, _), count in way.items()]


def _aim(way: Way) -> float | None:
    """Return the delta of simple composition; where that is 1, the least one that is known."""
    found = simple(_parts(way))
    aim = least_delta(_parts(way)) if found is None else found.delta
    return aim if aim < 1 else None


def _merged(ways: Iterable[Way]) -> Way:
    merged: Way = {}
    for way in ways:
        for part, count in way.items():
            merged[part] = merged.get(part, 0) + count
    return merged


def _picked(choices: list[list[Way]]) -> list[tuple[Way, ...]]:
    """Return combinations of one way of each choice: all if they are few, else the likely best."""
    if prod(map(len, choices)) <= _MOST_WAYS:
        return list(product(*choices))

    def least(power: int) -> tuple[Way, ...]:
        def size(way: Way) -> Fraction:
            return sum((n * Fraction(g.epsilon) ** power for (g, _), n in way.items()), Fraction(0))

        return tuple(min(ways, key=size) for ways in choices)

    # Of simple composition the sum of epsilons decides; of the others, nearly that of the squares.
    return [least(1), least(2)]

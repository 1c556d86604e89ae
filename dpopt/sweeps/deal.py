"""Points dealt out in batches to workers, some of which die.

A batch is as long as half a second allows, by what points have taken so far, and a worker comes
back after that time wherever it is: little is lost with it. When a place dies, all its batches are
handed out again. Whose fault it was is known only if there was one point alone. So the points of
several are handed in one by one; those in whose company a place dies again are set aside to the
end, where each gets a place to itself. A point that has ended so many places alone is given up.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpopt.sweeps.call import SECONDS, Outcome
from dpopt.sweeps.grid import Point
from dpopt.sweeps.pools import News, Pool, WorkerError
from dpopt.sweeps.table import Lines

_LARGEST_BATCH = 1000


@dataclass(frozen=True)
class _Batch:
    """Points that are at a place; ``alone`` if it takes no others meanwhile."""

    place: str
    indices: tuple[int, ...]
    alone: bool


class Deal:
    """Outcomes of points, as they come back from a pool.

    Args:
        pool: who computes.
        points: of the grid.
        left: indices to compute, drawn when they are handed out.
        count: how many of them there are at most.
        tries: places that a point may end alone.
        kept: what is done, by this process or another.

    Attributes:
        batches: how many were handed out.
        deaths: places that died with a point of ours.
        repeated: points that were handed out again therefore.
    """

    def __init__(
        self,
        pool: Pool,
        points: Sequence[Point],
        left: Iterator[int],
        count: int,
        tries: int,
        kept: Lines,
    ) -> None:
        self._pool, self._points, self._left, self._count = pool, points, left, count
        self._tries, self._kept = tries, kept
        self._out: dict[int, _Batch] = {}
        self._again: deque[int] = deque()
        self._singly: deque[int] = deque()
        self._aside: deque[int] = deque()
        self._in_company: Counter[int] = Counter()
        self._by_itself: Counter[int] = Counter()
        self._dry = False
        self._pace: float | None = None
        self.batches = self.deaths = self.repeated = 0

    def __iter__(self) -> Iterator[tuple[Outcome, ...]]:
        while True:
            self._hand_out()
            if not self._out and not self._waiting():
                return
            yield from self._taken_in(self._pool.news())

    def _waiting(self) -> bool:
        """Return whether there may be points to hand out, once there is a place."""
        return bool(self._again or self._singly or self._aside) or not self._dry

    def _hand_out(self) -> None:
        places = self._pool.places()
        used = Counter(batch.place for batch in self._out.values())
        closed = {batch.place for batch in self._out.values() if batch.alone}
        slots = sum(places.values())
        for place, size in places.items():
            while place not in closed and used[place] < size:
                indices, alone = self._drawn(slots), False
                if not indices and not used[place]:
                    indices, alone = self._drawn_aside(), True
                if not indices:
                    break
                used[place] += 1
                closed.update({place} if alone else ())
                self._out[self.batches] = _Batch(place, indices, alone)
                batch = [(index, self._points[index].arguments) for index in indices]
                self._pool.submit(self.batches, batch, place)
                self.batches += 1

    def _drawn(self, slots: int) -> tuple[int, ...]:
        """Return the points of the next batch: what came back undone, what is new, then singles."""
        size, drawn = self._size(slots), []
        while len(drawn) < size and self._again:
            index = self._again.popleft()
            drawn += [] if self._done(index) else [index]
        while len(drawn) < size and not self._dry:
            index = next(self._left, None)
            self._dry = index is None
            if index is not None:
                self._count -= 1
                drawn.append(index)
        return tuple(drawn) or self._first(self._singly)

    def _drawn_aside(self) -> tuple[int, ...]:
        """Return a point that is to have a place to itself, once there is nothing else to do."""
        return () if self._again or self._singly else self._first(self._aside)

    def _first(self, indices: deque[int]) -> tuple[int, ...]:
        while indices:
            index = indices.popleft()
            if not self._done(index):
                return (index,)
        return ()

    def _done(self, index: int) -> bool:
        return self._kept.done(self._points[index].key)

    def _size(self, slots: int) -> int:
        """Return how many points a batch is to have: enough, and some left for the others."""
        if self._pace is None:
            return 1
        share = (self._count + len(self._again)) // (2 * slots) + 1
        return max(1, min(_LARGEST_BATCH, share, int(SECONDS / max(self._pace, 1e-9))))

    def _taken_in(self, news: News) -> Iterator[tuple[Outcome, ...]]:
        for ticket, outcomes in news.outcomes.items():
            batch = self._out.pop(ticket, None)
            if batch is not None:
                reached = {outcome.index for outcome in outcomes}
                self._again.extend(index for index in batch.indices if index not in reached)
                mean = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
                self._pace = mean if self._pace is None else 0.5 * (mean + self._pace)
                yield outcomes
        for place in news.gone:
            given_up = self._died(place)
            if given_up:
                yield given_up

    def _died(self, place: str) -> tuple[Outcome, ...]:
        """Hand out again what was at a place; return the point that is given up, if one is."""
        tickets = [ticket for ticket, batch in self._out.items() if batch.place == place]
        indices: list[int] = []
        for ticket in tickets:
            self._pool.drop(ticket)
            indices += self._out.pop(ticket).indices
        self.deaths += bool(indices)
        if len(indices) == 1:
            (index,) = indices
            self._by_itself[index] += 1
            if self._by_itself[index] >= self._tries:
                return (_given_up(index, self._tries),)
        for index in indices:
            self._in_company[index] += len(indices) > 1
            # Alone it may be at fault; twice beside the fault, it may be as well.
            aside = len(indices) == 1 or self._in_company[index] > 1
            (self._aside if aside else self._singly).append(index)
        self.repeated += len(indices)
        return ()


def _given_up(index: int, tries: int) -> Outcome:
    times = "once" if tries == 1 else f"{tries} times"
    error = WorkerError(
        f"the worker died {times} while it computed nothing but this point, which is given up."
    )
    return Outcome(index, {}, 0.0, error, (type(error).__name__, str(error)))

"""Whose fault a death is: places that die with all that is there, played without processes."""

from __future__ import annotations

import pytest

from dpopt.sweeps.call import Batch, Outcome
from dpopt.sweeps.deal import Deal
from dpopt.sweeps.grid import points_of
from dpopt.sweeps.pools import News, Pool
from dpopt.sweeps.table import Lines


class Scripted(Pool):
    """Places of so many threads; one with a fatal point in it is gone, another comes."""

    def __init__(self, places: int, threads: int, fatal: set[int]) -> None:
        self.fatal, self.threads, self.born = fatal, threads, places
        self.there: dict[str, dict[int, Batch]] = {str(place): {} for place in range(places)}

    def places(self) -> dict[str, int]:
        return dict.fromkeys(self.there, self.threads)

    def submit(self, ticket: int, batch: Batch, place: str) -> None:
        self.there[place][ticket] = batch
        assert len(self.there[place]) <= self.threads

    def news(self) -> News:
        news = News()
        for place, batches in list(self.there.items()):
            if any(index in self.fatal for batch in batches.values() for index, _ in batch):
                news.gone.add(place)
                del self.there[place]
                self.there[str(self.born)] = {}
                self.born += 1
            else:
                for ticket, batch in batches.items():
                    # No more than two are reached in the time of a batch.
                    news.outcomes[ticket] = tuple(Outcome(i, {}, 0.1) for i, _ in batch[:2])
                batches.clear()
        return news

    def drop(self, ticket: int) -> None:
        assert all(ticket not in batches for batches in self.there.values())

    def close(self, finished: bool) -> None:
        raise AssertionError(finished)


@pytest.mark.parametrize("places", [1, 2, 5])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("tries", [1, 3])
@pytest.mark.parametrize("fatal", [set(), {0}, {3, 17, 18}, set(range(40))])
def test_only_those_at_fault_are_given_up(
    places: int, threads: int, tries: int, fatal: set[int]
) -> None:
    points = points_of({"a": range(40)})
    pool = Scripted(places, threads, fatal)
    deal = Deal(pool, points, iter(range(40)), 40, tries, Lines())
    ended = [outcome for outcomes in deal for outcome in outcomes]
    assert sorted(outcome.index for outcome in ended) == list(range(40))
    assert {outcome.index for outcome in ended if outcome.error is not None} == fatal
    assert all("nothing but this point" in o.failure[1] for o in ended if o.error is not None)
    # Each fault costs two deaths in company at most, and those alone.
    assert deal.deaths <= len(fatal) * (2 + tries)
    assert deal.deaths >= (tries if fatal else 0)

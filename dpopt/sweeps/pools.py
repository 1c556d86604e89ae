"""Who computes: threads, processes or a Dask cluster, all behind one door.

A *place* is what dies as a whole, with all that is computed there: a worker of a cluster, or the
processes of this machine together, which loky ends when one of them dies. A batch is handed to a
place and comes back as outcomes, or the place is gone.
"""

from __future__ import annotations

import asyncio
import signal
import time
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from dpopt._errors import DpoptError, ParameterError
from dpopt.sweeps.call import Batch, Outcome, compute_sent, compute_some, packed

_T = TypeVar("_T")

_POLL = 0.5
_ASKED_IN_VAIN = 120


class WorkerError(DpoptError):
    """A point of a sweep ends its workers again and again, or there is no cluster any more."""


@dataclass(frozen=True)
class News:
    """What has happened since one asked last.

    Attributes:
        outcomes: by ticket, of batches that came back; points that were not reached have none.
        gone: places that are no more.
    """

    outcomes: dict[int, tuple[Outcome, ...]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)


class Pool(ABC):
    """Workers that take batches."""

    @abstractmethod
    def places(self) -> Mapping[str, int]:
        """Return how many batches each place computes at once."""

    @abstractmethod
    def submit(self, ticket: int, batch: Batch, place: str) -> None:
        """Hand a batch to a place; its outcomes come with the news, under the ticket."""

    @abstractmethod
    def news(self) -> News:
        """Wait for news, but not for long."""

    @abstractmethod
    def drop(self, ticket: int) -> None:
        """Forget a batch whose place is gone."""

    @abstractmethod
    def close(self, finished: bool) -> None:
        """End the work; if it is not finished, what is computed is of no use to anyone."""


class Threads(Pool):
    """Threads of this process, which are never gone."""

    def __init__(self, function: Callable[..., Any], workers: int) -> None:
        self._function, self._workers = function, workers
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="sweep")
        self._done: SimpleQueue[tuple[int, Future[Any]]] = SimpleQueue()

    def places(self) -> Mapping[str, int]:
        """Return the one place that all threads are."""
        return {"threads": self._workers}

    def submit(self, ticket: int, batch: Batch, place: str) -> None:  # noqa: ARG002
        """Hand a batch to a thread."""
        future = self._executor.submit(compute_some, self._function, batch)
        future.add_done_callback(lambda done: self._done.put((ticket, done)))

    def news(self) -> News:
        """Wait for batches that come back."""
        return News({ticket: future.result() for ticket, future in _waited_for(self._done)})

    def drop(self, ticket: int) -> None:
        """Do nothing: a thread is never gone."""

    def close(self, finished: bool) -> None:  # noqa: ARG002
        """Wait for what the threads are at, which nothing can end."""
        self._executor.shutdown(wait=True, cancel_futures=True)


class Processes(Pool):
    """Processes of this machine. When one dies, the others are ended and all start anew."""

    def __init__(self, function: Callable[..., Any], workers: int) -> None:
        self._function, self._workers, self._life = packed(function), workers, 0
        self._done: SimpleQueue[tuple[int, str, Future[Any]]] = SimpleQueue()
        self._start()

    def _start(self) -> None:
        from joblib.externals.loky import (  # pyright: ignore[reportMissingImports]
            get_reusable_executor,
        )

        # Ctrl-C reaches every process of a terminal; only this one is to handle it.
        self._executor = get_reusable_executor(
            self._workers, timeout=300, initializer=_ignore_interrupts
        )

    def places(self) -> Mapping[str, int]:
        """Return the one place that all processes are, until one of them dies."""
        return {str(self._life): self._workers}

    def submit(self, ticket: int, batch: Batch, place: str) -> None:
        """Hand a batch to a process."""
        import cloudpickle  # pyright: ignore[reportMissingImports]
        from joblib.externals.loky.process_executor import (  # pyright: ignore[reportMissingImports]
            BrokenProcessPool,
        )

        try:
            future = self._executor.submit(compute_sent, self._function, cloudpickle.dumps(batch))
        except BrokenProcessPool as error:
            # Idle processes were killed, or others that the last news did not tell of yet.
            future = Future()
            future.set_exception(error)
        future.add_done_callback(lambda done: self._done.put((ticket, place, done)))

    def news(self) -> News:
        """Wait for batches that come back, or for the end of all processes."""
        from joblib.externals.loky.process_executor import (  # pyright: ignore[reportMissingImports]
            BrokenProcessPool,
        )

        news = News()
        for ticket, place, future in _waited_for(self._done):
            try:
                news.outcomes[ticket] = future.result()
            except BrokenProcessPool:
                news.gone.add(place)
        if str(self._life) in news.gone:
            self._life += 1
            self._start()
        return news

    def drop(self, ticket: int) -> None:
        """Do nothing: with its process a batch has ended."""

    def close(self, finished: bool) -> None:
        """Keep the processes for the next sweep, or end them."""
        if not finished:
            self._executor.shutdown(wait=True, kill_workers=True)


class Cluster(Pool):
    """The workers of the current Dask client.

    Each batch is bound to one worker. So the scheduler moves it to no other when the worker dies,
    which would end that one as well; and who shared a worker with whom is known.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = packed(function)
        self._futures: dict[int, tuple[Any, str]] = {}
        self._done: SimpleQueue[tuple[int, tuple[Outcome, ...] | BaseException]] = SimpleQueue()
        self._stack = ExitStack()
        self._client = _client(self._stack)
        self._workers: dict[str, int] = {}
        self._new: set[str] = set()
        self._asked, self._without = time.monotonic(), 0
        self._ask()

    def places(self) -> Mapping[str, int]:
        """Return how many threads each worker has, unless it has come just now.

        So one that comes and dies is given no points. A cluster of one worker may still stay empty
        after repeated deaths; the cause is not known.
        """
        return {place: size for place, size in self._workers.items() if place not in self._new}

    def submit(self, ticket: int, batch: Batch, place: str) -> None:
        """Hand a batch to a worker, and to no other."""
        import cloudpickle  # pyright: ignore[reportMissingImports]

        with _scheduler_there():
            future = self._client.submit(
                compute_sent,
                self._function,
                cloudpickle.dumps(batch),
                key=f"dpopt-sweep-{uuid.uuid4().hex}",
                pure=False,
                workers=[place],
                allow_other_workers=False,
            )
        self._futures[ticket] = (future, place)
        self._client.loop.add_callback(self._fetch, ticket, future)

    async def _fetch(self, ticket: int, future: Any) -> None:  # noqa: ANN401
        """Hand on what a future holds; runs in the client's thread."""
        try:
            result = await self._client.gather(future, asynchronous=True)
        except BaseException as error:  # noqa: BLE001
            # Raised again, or known for what it is, where the news are asked for.
            result = error
        self._done.put((ticket, result))

    def news(self) -> News:
        """Wait for batches that come back, and look which workers are gone."""
        news = News()
        for ticket, result in _waited_for(self._done):
            if ticket in self._futures:
                _, place = self._futures.pop(ticket)
                self._sort(news, ticket, place, result)
        if time.monotonic() - self._asked > _POLL:
            before = set(self._workers)
            self._ask()
            self._new = set(self._workers) - before
            news.gone.update(before - set(self._workers))
        return news

    def _sort(
        self, news: News, ticket: int, place: str, result: tuple[Outcome, ...] | BaseException
    ) -> None:
        from distributed import KilledWorker  # pyright: ignore[reportMissingImports]

        if isinstance(result, KilledWorker):
            # A worker that came back under the address of the one that died.
            news.gone.add(place)
        elif isinstance(result, CancelledError | asyncio.CancelledError | OSError):
            raise _no_cluster() from result
        elif isinstance(result, BaseException):
            raise result
        else:
            news.outcomes[ticket] = result

    def _ask(self) -> None:
        """Ask the scheduler which workers there are."""
        with _scheduler_there():
            self._workers = dict(self._client.nthreads())
        self._asked = time.monotonic()
        # Counted, not timed: a client that did not run for a while has not asked in vain.
        self._without = 0 if self._workers else self._without + 1
        if self._without == _ASKED_IN_VAIN:
            warnings.warn(
                "the Dask cluster has no worker; the sweep waits for one.",
                RuntimeWarning,
                stacklevel=2,
            )

    def drop(self, ticket: int) -> None:
        """Take a batch back that waits for its worker to return."""
        future, _ = self._futures.pop(ticket, (None, ""))
        if future is not None:
            with _scheduler_there():
                future.cancel(force=True)

    def close(self, finished: bool) -> None:  # noqa: ARG002
        """Tell the scheduler that nobody waits any more."""
        futures = [future for future, _ in self._futures.values()]
        self._futures.clear()
        # There may be no scheduler any more, which is why the work ends.
        with suppress(WorkerError), _scheduler_there():
            if futures:
                self._client.cancel(futures, force=True)
        self._stack.close()


def pool_of(backend: str, function: Callable[..., Any], workers: int) -> Pool:
    """Return the workers that a backend stands for.

    Raises:
        ParameterError: if the function cannot be sent to them, or there is no cluster.
        ImportError: if joblib or Dask is missing.
    """
    if backend == "threads":
        return Threads(function, workers)
    check_installed(backend)
    return Cluster(function) if backend == "dask" else Processes(function, workers)


def check_installed(backend: str) -> None:
    """Raise ImportError, saying what to install, if a backend's libraries are missing."""
    try:
        import cloudpickle  # noqa: F401  # pyright: ignore[reportMissingImports]
        import joblib  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "dpopt.sweep with several workers needs joblib and cloudpickle; install them "
            "with pip install 'dpopt[sweeps]'."
        ) from error
    if backend == "dask" and find_spec("distributed") is None:
        raise ImportError(
            "dpopt.sweep on a cluster needs Dask; install it with pip install 'dask[distributed]'."
        )


def _waited_for(queue: SimpleQueue[_T]) -> Iterator[_T]:
    """Wait a little for something in the queue; yield all that is there."""
    with suppress(Empty):
        yield queue.get(timeout=_POLL)
        while True:
            yield queue.get_nowait()


def _client(stack: ExitStack) -> Any:  # noqa: ANN401
    """Return the current client; inside a task, whose thread is lent out until the stack ends."""
    from distributed import (  # pyright: ignore[reportMissingImports]
        get_client,
        get_worker,
        worker_client,
    )

    with suppress(ValueError):
        get_worker()
        return stack.enter_context(worker_client())
    try:
        client = get_client()
    except ValueError as error:
        raise ParameterError(
            "backend is 'dask', but there is no cluster; open one before, such as "
            "dask.distributed.Client()."
        ) from error
    if client.asynchronous:
        raise ParameterError(
            "backend is 'dask', but the current client is asynchronous; open one that is not."
        )
    return client


@contextmanager
def _scheduler_there() -> Iterator[None]:
    """Say what it means if the client cannot reach its scheduler."""
    try:
        yield
    except (OSError, RuntimeError, CancelledError, asyncio.CancelledError) as error:
        raise _no_cluster() from error


def _no_cluster() -> WorkerError:
    return WorkerError(
        "the scheduler of the Dask cluster is lost, or its client was closed; what is done is in "
        "the table, and the same call goes on from there on another cluster."
    )


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

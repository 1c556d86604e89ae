"""A contender in a child process of its own: time, peak memory, and limits that end it gently."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_ON_THE_CLOCK = 8.0
_NO_MEMORY = ("MemoryError", "bad_alloc", "Cannot allocate memory", "Memory limit reached")

DONE = "done"


@dataclass(frozen=True)
class Limits:
    """What a child may use.

    Attributes:
        seconds: time of the processor, imports included (RLIMIT_CPU), which does not depend on
            what else runs on the machine; by the clock, eight times as long.
        gibibytes: virtual memory (RLIMIT_AS; macOS does not enforce it).
    """

    seconds: int = 30
    gibibytes: int = 8


@dataclass(frozen=True)
class Ran:
    """What became of a child.

    Attributes:
        outcome: "done", "over N GiB", "over N s", or the error in words.
        value: what the last call returned; None unless done.
        seconds: wall-clock seconds of each call.
        cpu_seconds: seconds of processor time of each call, all threads together.
        resident: peak of the resident memory of the whole process in bytes, imports included.
    """

    outcome: str
    value: Any = None
    seconds: tuple[float, ...] = ()
    cpu_seconds: tuple[float, ...] = ()
    resident: int | None = None


def run_child(
    function: Callable[[Any], object],
    argument: object,
    limits: Limits,
    *,
    prepare: Callable[[Any], object] | None = None,
    warm_up: Sequence[object] = (),
    least_seconds: float = 0.0,
) -> Ran:
    """Call a function in a fresh process with one thread for linear algebra.

    ``prepare`` makes in the child, under the limits but not timed, what ``function`` is given;
    calls of ``warm_up`` are not timed, and the timed one is repeated for ``least_seconds``. Both
    functions are importable by name, arguments and values picklable; failures of the child are
    values, not errors.
    """
    places = os.pathsep.join(place or str(Path.cwd()) for place in sys.path)
    environment = {**os.environ, "PYTHONPATH": places, **dict.fromkeys(_THREADS, "1")}
    clock = _ON_THE_CLOCK * limits.seconds
    try:
        child = subprocess.run(
            [sys.executable, "-m", __spec__.name, str(limits.seconds), str(limits.gibibytes)],
            input=pickle.dumps((function, argument, prepare, tuple(warm_up), least_seconds)),
            capture_output=True,
            env=environment,
            timeout=clock,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ran(f"over {clock:g} s")
    if child.returncode == 0:
        return Ran(DONE, *pickle.loads(child.stdout))
    if sys.platform != "win32" and child.returncode == -signal.SIGXCPU:
        return Ran(f"over {limits.seconds} s")
    lines = child.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
    if any(word in line for word in _NO_MEMORY for line in lines[-3:]):
        return Ran(f"over {limits.gibibytes} GiB")
    if child.returncode < 0:
        return Ran(f"ended by {signal.Signals(-child.returncode).name}")
    return Ran(f"error: {lines[-1]}")


def _serve() -> None:
    """Answer one request on standard input, in the child."""
    _limit(int(sys.argv[1]), int(sys.argv[2]) << 30)
    # What solvers print must not mix with the answer.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    function, argument, prepare, warm_up, least_seconds = pickle.load(sys.stdin.buffer)
    for small in warm_up:
        function(prepare(small) if prepare else small)
    argument = prepare(argument) if prepare else argument
    value = None
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    while not seconds or sum(seconds) < least_seconds:
        # The last value is let go first: two at a time would show as memory.
        value = None
        start, cpu = time.perf_counter(), time.process_time()
        value = function(argument)
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu)
    with answer:
        pickle.dump((value, tuple(seconds), tuple(cpu_seconds), _peak()), answer)


def _limit(seconds: int, address_space: int) -> None:
    if sys.platform != "win32":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        soft = address_space if hard == resource.RLIM_INFINITY else min(address_space, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def _peak() -> int:
    """Return the peak of the resident memory in bytes."""
    # Linux's ru_maxrss begins at the peak of the parent; VmHWM is the process's own.
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


if __name__ == "__main__":
    _serve()

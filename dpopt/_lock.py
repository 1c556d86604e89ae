"""The lock of an open file, which the system takes back when its holder dies."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# What file systems without locks answer, such as some that are shared over a network.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def locked(file: int, shared: bool = False) -> Iterator[bool]:
    """Hold the lock of a file, alone among all that ask for it; wait for it as long as it takes.

    Args:
        file: descriptor of a file open for writing. Each process opens it anew.
        shared: whether others that ask so may hold it too, as readers do; the file may then be
            open for reading alone.

    Yields:
        True; False, and no lock, where the file system has none.

    Raises:
        OSError: if the lock is refused for another reason.
    """
    try:
        (_lock_shared if shared else _lock)(file)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        yield False
        return
    try:
        yield True
    finally:
        _unlock(file)


if sys.platform == "win32":
    import msvcrt

    # A byte that no table reaches: Windows refuses others even to read what is locked.
    _BYTE = 1 << 40

    def _lock(file: int) -> None:
        while True:
            os.lseek(file, _BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(file, msvcrt.LK_LOCK, 1)
            except OSError as error:
                # It gives up after ten seconds.
                if error.errno != errno.EDEADLK:
                    raise
            else:
                return

    _lock_shared = _lock

    def _unlock(file: int) -> None:
        os.lseek(file, _BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    # That of `flock` belongs to the open file: closing another of this process keeps it.
    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _lock_shared(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_SH)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)

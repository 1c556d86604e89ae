"""Reader of IDX files, the format in which MNIST and Fashion-MNIST are published."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpopt import ParameterError

Bytes = npt.NDArray[np.uint8]

_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTE = 8


def read_idx(path: Path, dimensions: int) -> Bytes:
    """Read an IDX file of unsigned bytes, plain or gzipped (told apart by its first bytes).

    The header is two zero bytes, the type (8: unsigned byte), the number of dimensions, and each
    dimension as a big-endian 32-bit integer; the values follow in C order.

    Args:
        path: the file.
        dimensions: how many it must have: 3 for images, 1 for labels.

    Raises:
        ParameterError: if it cannot be read, or is not such a file, or is longer or shorter than
            its header says.
    """
    content = _content(path)
    start = 4 + 4 * dimensions
    if len(content) < start or content[:2] != b"\0\0":
        raise ParameterError(f"path is {str(path)!r}; it must be an IDX file.")
    if content[2] != _UNSIGNED_BYTE or content[3] != dimensions:
        raise ParameterError(
            f"path is {str(path)!r}, an IDX file of type {content[2]} and {content[3]} dimensions; "
            f"it must have type {_UNSIGNED_BYTE} and {dimensions}."
        )
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", dimensions, offset=4))
    if len(content) - start != math.prod(shape):
        raise ParameterError(
            f"path is {str(path)!r}; it holds {len(content) - start} values, "
            f"but its header says {' x '.join(map(str, shape))}."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw.startswith(_GZIP) else raw
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ParameterError(f"path is {str(path)!r}; its gzip stream is damaged.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ParameterError(f"path is {str(path)!r}; {reason}.") from None

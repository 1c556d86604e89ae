"""Two classes of MNIST or Fashion-MNIST, from an .npz archive or from IDX files as published."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import math
import urllib.request
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpopt import ParameterError
from dpopt.files import replacing
from experiments.data import refused
from experiments.entry import make_folder

Bytes = npt.NDArray[np.uint8]

_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTE = 8

SIDE = 28
"""Height and width of an image, in pixels."""

ARRAYS = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
"""Name of each array in an .npz archive, and of its IDX file."""


def read_idx(path: Path, dimensions: int) -> Bytes:
    """Read an IDX file of unsigned bytes, plain or gzipped (told apart by its first bytes).

    The header is two zero bytes, the type (8: unsigned byte), the number of dimensions, and each
    dimension as a big-endian 32-bit integer; the values follow in C order.
    """
    content = _content(path)
    start = 4 + 4 * dimensions
    if len(content) < start or content[:2] != b"\0\0":
        raise refused(path, "it must be an IDX file")
    if content[2] != _UNSIGNED_BYTE or content[3] != dimensions:
        raise refused(
            path,
            f"it is an IDX file of type {content[2]} and {content[3]} dimensions; "
            f"it must have type {_UNSIGNED_BYTE} and {dimensions}",
        )
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", dimensions, offset=4))
    if len(content) - start != math.prod(shape):
        raise refused(
            path,
            f"it holds {len(content) - start} values, "
            f"but its header says {' x '.join(map(str, shape))}",
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw.startswith(_GZIP) else raw
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise refused(path, "its gzip stream is damaged") from None
    except OSError as error:
        raise refused(path, error) from None


@dataclass(frozen=True)
class Digits:
    """Images of two classes, in the order of the files; all arrays are read-only.

    Attributes:
        classes: the two classes; label 0 stands for the first, 1 for the second.
        train_images: shape (n, 28, 28), unsigned bytes.
        train_labels: zeros and ones, shape (n,).
        test_images: shape (t, 28, 28).
        test_labels: shape (t,).
    """

    classes: tuple[int, int]
    train_images: Bytes
    train_labels: Bytes
    test_images: Bytes
    test_labels: Bytes

    @property
    def sha256(self) -> str:
        """Digest of the classes, shapes and values; the same whatever file they came from."""
        digest = hashlib.sha256(repr(self.classes).encode())
        for array in (self.train_images, self.train_labels, self.test_images, self.test_labels):
            digest.update(repr(array.shape).encode() + array.tobytes())
        return digest.hexdigest()

    def hold_out(self, count: int, seed: int) -> Digits:
        """Return the training images alone, some of them in the place of the test images.

        What is chosen on the result has seen no test image.
        """
        order = np.random.default_rng(seed).permutation(len(self.train_labels))
        held, kept = np.sort(order[:count]), np.sort(order[count:])
        return Digits(
            self.classes,
            *_read_only(self.train_images[kept], self.train_labels[kept]),
            *_read_only(self.train_images[held], self.train_labels[held]),
        )


def load_digits(path: str | Path, classes: tuple[int, int] = (5, 8)) -> Digits:
    """Load two classes of MNIST, or of anything published in the same files.

    A folder has the four IDX files under their original names, plain or with the ending .gz; an
    .npz archive holds x_train, y_train, x_test and y_test.
    """
    path = Path(path)
    try:
        folder = path.is_dir()
    except (OSError, ValueError):
        raise refused(path, "it must be a folder or a file") from None
    read = _of_folder if folder else _of_archive
    train, test = (
        _chosen(path, part, read(path, f"x_{part}"), read(path, f"y_{part}"), classes)
        for part in ("train", "test")
    )
    return Digits(classes, *train, *test)


def _of_folder(folder: Path, name: str) -> npt.NDArray[np.generic]:
    plain = folder / ARRAYS[name]
    packed = plain.with_name(plain.name + ".gz")
    found = plain if plain.exists() else packed
    if not found.exists():
        raise refused(folder, f"it holds neither {plain.name} nor {packed.name}")
    return read_idx(found, 3 if name.startswith("x") else 1)


def _of_archive(path: Path, name: str) -> npt.NDArray[np.generic]:
    try:
        # Opened by numpy alone, a file that is no archive would be taken for a pickle.
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as member:
            return np.lib.format.read_array(member, allow_pickle=False)
    except KeyError:
        raise refused(path, f"it must hold {', '.join(ARRAYS)}, and {name} is missing") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError):
        raise refused(
            path,
            "it must be a folder of IDX files or an .npz archive of plain arrays, and is neither "
            "or damaged",
        ) from None
    except OSError as error:
        raise refused(path, error) from None


def _chosen(
    path: Path,
    part: str,
    images: npt.NDArray[np.generic],
    labels: npt.NDArray[np.generic],
    classes: tuple[int, int],
) -> tuple[Bytes, Bytes]:
    """Return the images of the two classes and their labels as zeros and ones."""
    if images.ndim != 3 or images.shape[1:] != (SIDE, SIDE) or images.dtype != np.uint8:
        raise refused(
            path,
            f"its {part} images have shape {images.shape} and type "
            f"{images.dtype}, and must have (n, {SIDE}, {SIDE}) and uint8",
        )
    if labels.shape != images.shape[:1] or labels.dtype.kind not in "ui":
        raise refused(
            path,
            f"its {part} labels have shape {labels.shape} and type "
            f"{labels.dtype}, and must be {images.shape[0]} integers",
        )
    keep = np.isin(labels, classes)
    chosen = images[keep].astype(np.uint8)
    ones = (labels[keep] == classes[1]).astype(np.uint8)
    for value, name in enumerate(classes):
        if not np.any(ones == value):
            raise refused(path, f"its {part} set has no class {name}")
    return _read_only(chosen, ones)


def _read_only(images: Bytes, labels: Bytes) -> tuple[Bytes, Bytes]:
    images.setflags(write=False)
    labels.setflags(write=False)
    return images, labels


_TIMEOUT = 60.0


@dataclass(frozen=True)
class Source:
    """Where the files of a data set are, and how to recognise them.

    Attributes:
        mirrors: addresses of the folders, each with a final slash, in the order of trial.
        checksums: "md5:..." or "sha256:..." in hexadecimal digits, by file name.
    """

    mirrors: tuple[str, ...]
    checksums: Mapping[str, str]


SOURCES: Mapping[str, Source] = {
    "mnist": Source(
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        {
            "train-images-idx3-ubyte.gz": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte.gz": "md5:d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte.gz": "md5:9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte.gz": "md5:ec29112dd5afa0611ce80d1b7f02629c",
        },
    ),
    "fashion-mnist": Source(
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ),
        {
            "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
            "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
            "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
        },
    ),
}
"""Mirrors and checksums as torchvision publishes them; an MD5 sum guards against damage only."""


def download(
    dataset: str, folder: str | Path, sources: Mapping[str, Source] = SOURCES
) -> list[Path]:
    """Fetch the files of a data set into a folder, for `load_digits`; return their paths.

    A file that is there with the right checksum is kept; any other is replaced.
    """
    folder = Path(folder)
    make_folder(folder, "folder")
    source = sources[dataset]
    paths = {folder / name: checksum for name, checksum in source.checksums.items()}
    for path, checksum in paths.items():
        if not path.is_file() or not _matches(path.read_bytes(), checksum):
            content = _received(path.name, source.mirrors, checksum)
            with replacing(path) as temporary:
                temporary.write_bytes(content)
    return list(paths)


def _received(name: str, mirrors: tuple[str, ...], checksum: str) -> bytes:
    """Return the content of a file from the first mirror that sends it as it should be."""
    reasons = []
    for mirror in mirrors:
        try:
            with urllib.request.urlopen(mirror + name, timeout=_TIMEOUT) as answer:
                content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            reasons.append(f"{mirror} ({error})")
            continue
        if _matches(content, checksum):
            return content
        reasons.append(f"{mirror} (its checksum is wrong)")
    raise ParameterError(f"{name} could not be downloaded from {' or '.join(reasons)}.")


def _matches(content: bytes, checksum: str) -> bool:
    algorithm, _, expected = checksum.partition(":")
    return hashlib.new(algorithm, content).hexdigest() == expected

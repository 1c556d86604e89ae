"""Download of MNIST and Fashion-MNIST: each file arrives whole with its checksum, or not at all."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dpopt import ParameterError
from dpopt.files import replacing

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

    A file that is there with the right checksum is kept. Any other is written to a temporary
    name, and moved to its place once its checksum is right.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ParameterError(f"folder is {str(folder)!r}; {reason}.") from None
    source = sources[dataset]
    return [
        _fetched(folder / name, source.mirrors, checksum)
        for name, checksum in source.checksums.items()
    ]


def _fetched(path: Path, mirrors: tuple[str, ...], checksum: str) -> Path:
    if path.is_file() and _matches(path, checksum):
        return path
    reasons = []
    for mirror in mirrors:
        reason = _fetch(mirror + path.name, path, checksum)
        if reason is None:
            return path
        reasons.append(f"{mirror} ({reason})")
    raise ParameterError(f"{path.name} could not be downloaded from {' or '.join(reasons)}.")


class _RefusedError(Exception):
    """What a mirror sent is not the file; the message says why."""


def _fetch(address: str, path: Path, checksum: str) -> str | None:
    """Write the file to ``path``; return None, or why it was not written."""
    try:
        with replacing(path) as temporary:
            _receive(address, temporary)
            if not _matches(temporary, checksum):
                raise _RefusedError("its checksum is wrong")
    except _RefusedError as error:
        return str(error)
    return None


def _receive(address: str, path: Path) -> None:
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT) as answer, path.open("wb") as file:
            shutil.copyfileobj(answer, file)
    except urllib.error.HTTPError as error:
        with error:
            raise _RefusedError(f"status {error.code}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise _RefusedError(str(reason) or type(error).__name__) from None


def _matches(path: Path, checksum: str) -> bool:
    algorithm, _, expected = checksum.partition(":")
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest() == expected

"""The votes of trained teachers, and the file that keeps them with the record of their run."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpopt.files import write_text
from experiments.arrays import Floats
from experiments.data import refused

Bits = npt.NDArray[np.uint8]

SHIPPED = {
    "mnist": Path(__file__).parent / "votes" / "mnist_5_8.json",
    "fashion-mnist": Path(__file__).parent / "votes" / "fashion_mnist_5_8.json",
}
"""The votes of recorded runs, classes 5 against 8, by data set."""

_FORMAT = "dpopt votes, version 1"


@dataclass(frozen=True)
class Run:
    """The votes of one training run.

    Attributes:
        seed: of the parts, weights, batches and noise.
        private: votes of the private teachers, zeros and ones, shape (K, test images).
        plain: votes of the teachers trained without privacy, same shape.
    """

    seed: int
    private: Bits
    plain: Bits

    def __post_init__(self) -> None:
        for name in ("private", "plain"):
            object.__setattr__(self, name, _bits(getattr(self, name)))


@dataclass(frozen=True)
class Votes:
    """The votes of several runs on the same test images.

    Attributes:
        dataset: "mnist", "fashion-mnist" or the user's own name.
        classes: the two classes of votes 0 and 1.
        labels: true labels as zeros and ones, shape (test images,).
        runs: at least one.
        epsilon: of each private teacher, by the accountant.
        delta: at which epsilon was accounted.
        record: hyper-parameters, versions and the digest of the data, as plain values.
    """

    dataset: str
    classes: tuple[int, int]
    labels: Bits
    runs: tuple[Run, ...]
    epsilon: float
    delta: float
    record: dict[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", _bits(self.labels))

    @property
    def teachers(self) -> int:
        """K."""
        return int(self.runs[0].private.shape[0])

    @property
    def stated_epsilon(self) -> float:
        """The teachers' epsilon rounded up to four decimals, as the paper states it."""
        return math.ceil(round(self.epsilon * 1e4, 6)) / 1e4

    def right(self, teachers: str, chances: Floats) -> Floats:
        """Return the probability that each image's label comes out right, shape (runs, images).

        Args:
            teachers: whose votes are read, "private" or "plain".
            chances: Pr[label 1 | l ones among the votes], l = 0..K, shape (K + 1,).
        """
        ones = np.array([getattr(run, teachers).sum(axis=0, dtype=np.int64) for run in self.runs])
        return np.where(self.labels == 1, chances[ones], 1.0 - chances[ones])


def save_votes(votes: Votes, path: Path) -> None:
    """Write the votes as JSON, each teacher's as the hexadecimal digits of its packed bits."""
    body: dict[str, Any] = {
        "format": _FORMAT,
        "dataset": votes.dataset,
        "classes": list(votes.classes),
        "epsilon": votes.epsilon,
        "delta": votes.delta,
        "record": votes.record,
        "images": len(votes.labels),
        "labels": _packed(votes.labels),
        "runs": [
            {
                "seed": run.seed,
                "private": [_packed(row) for row in run.private],
                "plain": [_packed(row) for row in run.plain],
            }
            for run in votes.runs
        ],
    }
    body["sha256"] = _digest(body)
    write_text(path, json.dumps(body, indent=1, allow_nan=False) + "\n")


def load_votes(path: Path) -> Votes:
    """Read a file that `save_votes` wrote, as its digest shows."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise refused(path, error, "votes") from None
    except (ValueError, RecursionError):
        raise refused(path, "it is not whole JSON", "votes") from None
    if not isinstance(body, dict) or body.get("format") != _FORMAT:
        raise refused(path, f"it must be a file of {_FORMAT!r}", "votes")
    stated = body.pop("sha256", None)
    if stated != _digest(body):
        raise refused(path, "it was changed: its digest is another", "votes")

    def unpacked(rows: list[str]) -> Bits:
        packed = np.array([list(bytes.fromhex(row)) for row in rows], np.uint8)
        return np.unpackbits(packed, axis=1, count=body["images"])

    (labels,) = unpacked([body["labels"]])
    runs = tuple(
        Run(run["seed"], unpacked(run["private"]), unpacked(run["plain"])) for run in body["runs"]
    )
    kept = {name: body[name] for name in ("dataset", "epsilon", "delta", "record")}
    return Votes(classes=tuple(body["classes"]), labels=labels, runs=runs, **kept)


def _bits(values: npt.ArrayLike) -> Bits:
    array = np.array(values, dtype=np.uint8)
    array.setflags(write=False)
    return array


def _packed(bits: Bits) -> str:
    return np.packbits(bits).tobytes().hex()


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

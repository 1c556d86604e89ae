"""Fuzz of saved files and command lines, as long as asked: what breaks is kept as a corpus entry.

python -m tests.robustness.fuzz --minutes 60 --seed 1 --found found/

Each case is a saved mechanism of some kind that was damaged (bytes, or values of its body under a
right hash), or a command whose arguments were mixed with hostile ones. It must be refused in one
sentence, or answer; anything else, more than 4 GB, or more than a minute is a finding. Exit code 1
if there are any. Move a finding to ``tests/robustness/corpus`` with what it is, and mend it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dpopt.proofs.saved import seal
from tests.robustness.commands import WORDS, baselines, files, options
from tests.robustness.entries import KEPT, Entry, fault
from tests.robustness.test_saved_files import (
    QUICK,
    WRONG,
    a_flipped_bit,
    bytes_inserted_removed_and_doubled,
    cut_off,
    places,
)
from tests.robustness.worker import Worker
from tests.shape.checks import put
from tests.solved import solved

SECONDS = 60.0
HOSTILE = (
    *(*WRONG, 1000, 1e-320, 2**53 + 1, 10**18, "1e300000000", "1e-300000000", "1e308", "0x1p99999"),
    *("9" * 2000, "-0", "1_0", "١", " 1", [0, 0], [[0, 0]], [[1, 0]], {"epsilon": 1000}),
)


class Fuzz:
    """A stream of cases, the same for the same seed.

    Args:
        seed: of the stream.
        folder: where files are made.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.saved: dict[str, bytes] = {}
        for kind in QUICK:
            solved(kind).save(self.folder / "made.json")
            self.saved[kind] = (self.folder / "made.json").read_bytes()
        self.good = {
            name: arguments
            for name, arguments in baselines(self.folder).items()
            # Minutes of honest work for a wrong number are no finding.
            if name != "majority"
        }
        self.hostile = (*WORDS, *sorted(files(self.folder).values()))

    def case(self) -> Entry:
        """Return the next case."""
        way = self.rng.random()
        if way < 0.4:
            return self._damaged_bytes()
        return self._damaged_body() if way < 0.75 else self._command()

    def run(
        self, worker: Worker, *, cases: int | None = None, seconds: float = float("inf")
    ) -> list[tuple[Entry, str]]:
        """Run cases until there were as many, or the time is over; return what broke, and how."""
        end, found, done = time.monotonic() + seconds, [], 0
        while (cases is None or done < cases) and time.monotonic() < end:
            entry = self.case()
            with tempfile.TemporaryDirectory(dir=self.folder) as place:
                why = fault(worker.run(entry.prepare(Path(place)), SECONDS), entry.expect)
            if why is not None:
                found.append((entry, why))
            done += 1
        self.done = done
        return found

    def _damaged_bytes(self) -> Entry:
        kind = self.rng.choice(sorted(self.saved))
        content = self.saved[kind]
        for _ in range(self.rng.randint(1, 3)):
            damage = self.rng.choice((cut_off, a_flipped_bit, bytes_inserted_removed_and_doubled))
            content = self.rng.choice(list(damage(content if content.strip() else b"x", self.rng)))
        return Entry(f"bytes of {kind}", self._use(kind), "harmless", hex=content.hex())

    def _damaged_body(self) -> Entry:
        """Values of the body replaced, its hash right."""
        kind = self.rng.choice(sorted(self.saved))
        record = json.loads(self.saved[kind])
        body: Any = record["body"]
        for _ in range(self.rng.randint(1, 3)):
            place = self.rng.choice(list(places(body)) or [()])
            if place:
                body = put(body, place, self.rng.choice(HOSTILE))
        path = self.folder / "sealed.json"
        try:
            seal(record["kind"], body, path)
            content = path.read_bytes()
        except (ValueError, OverflowError):
            content = json.dumps({**record, "body": body}).encode()
        return Entry(f"values of {kind}", self._use(kind), "harmless", hex=content.hex())

    def _use(self, kind: str) -> list[str]:
        if self.rng.random() < 0.8:
            return ["certify", "{file}"]
        counts = "6,4,2" if kind.startswith("reveal") else "1,0,1,1,0"
        return ["release", "{file}", "--input", self.rng.choice([counts, "0", *WORDS])]

    def _command(self) -> Entry:
        """One to four arguments removed, replaced or added."""
        rng, name = self.rng, self.rng.choice(sorted(self.good))
        words, written = list(self.good[name]), [option.opts[0] for option in options(name)]
        for _ in range(rng.randint(1, 4)):
            change = rng.random()
            if change < 0.2 and words:
                words.pop(rng.randrange(len(words)))
            elif change < 0.6 and words:
                words[rng.randrange(len(words))] = rng.choice(self.hostile)
            else:
                words += [rng.choice([*written, "--x"]), rng.choice(self.hostile)]
        arguments = [argument.replace(f"{self.folder}/", KEPT, 1) for argument in words]
        return Entry(f"command {name}", [name, *arguments], "harmless")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.fuzz")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="default: another each time")
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder of findings")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if asked.seed is None else asked.seed
    sys.stdout.write(f"seed {seed}\n")
    with tempfile.TemporaryDirectory() as name, Worker(Path(name)) as worker:
        fuzz = Fuzz(seed, Path(name))
        found = fuzz.run(worker, seconds=60.0 * asked.minutes)
    # An entry for each content.
    for entry, why in found:
        asked.found.mkdir(parents=True, exist_ok=True)
        kept = Entry(**{**vars(entry), "what": f"{entry.what}: {why}"[:500]})
        name = hashlib.sha256(repr((entry.arguments, entry.hex)).encode()).hexdigest()[:12]
        kept.save(asked.found / f"found-{name}.json")
    sys.stdout.write(f"{fuzz.done} cases, {len(found)} findings\n")
    sys.stdout.writelines(f"{entry.what}: {why}\n" for entry, why in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""verify.py and files that nobody saved: no traceback, and nothing is shown that is not so.

What is accepted is judged by others: the package's own proof and value of the same integers, and a
bound against the value of the private point beside it, which it can never pass.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import verify
from dpopt.shape import Setting
from tests.proofs.judging import run
from tests.robustness.test_saved_files import (
    WRONG,
    a_flipped_bit,
    a_name_missing,
    a_name_twice,
    bytes_inserted_removed_and_doubled,
    cut_off,
    places,
)
from tests.shape.checks import at, put
from tests.solved import example

HOSTILE = (*WRONG, 3.5, 1e-320, 10**9, 2**62, "1/3", "٣", "1_000", " 1", "\ud800", [0] * 1000)
# Files that write out their rows, "table", are spoiled in `test_judge`.
CHECKED = sorted(set(verify.KINDS) - {"table"})


def mutate(record: Any, rng: random.Random) -> Any:
    """Return a file with one place changed."""
    ways = list(places(record))
    way: Any = rng.choice(ways)
    *before, key = way
    container, old, how = at(record, tuple(before)), at(record, way), rng.randrange(8)
    if how == 0 and isinstance(container, dict):
        less = {name: value for name, value in container.items() if name != key}
        return put(record, tuple(before), less)
    if how in (0, 1, 2) and isinstance(container, list):
        less = [*container[:key], *container[key + 1 :]]
        return put(record, tuple(before), (less, [*container, old], container[::-1])[how])
    new = rng.choice([*HOSTILE, at(record, rng.choice(ways))])
    if how == 3:
        new = [old] if rng.random() < 0.8 else json.loads("[" * 100 + "]" * 100)
    elif how in (4, 5) and isinstance(old, int | float) and not isinstance(old, bool):
        half = old // 2 if isinstance(old, int) else old * (1 + 1e-6)
        new = rng.choice([old + 1, old - 1, old * 2, -old, half])
    elif how in (4, 5) and isinstance(old, str) and old.lstrip("-").isdigit():
        new = str(int(old) + rng.choice([1, -1, 10**15, -(10**15), int(old)]))
    return put(record, way, copy.deepcopy(new))


def judged(path: Path, code: int, lines: list[str]) -> None:
    """Fail if what was accepted is not so."""
    told = {line.partition(":")[0]: line.partition(": ")[2] for line in lines}
    body = json.loads(path.read_text())["body"]
    kind: Any = next(kind for kind in dpopt.kinds() if kind.kind == body["kind"])
    # What the package refuses of a setting was not accepted.
    setting: Any = kind.from_dict(body["setting"])
    try:
        if isinstance(setting, Setting):
            setting.judge(setting.read(body["table"]))
            value = setting.value(setting.read(body["table"]))
        else:
            value = dpopt.design(setting).value
    except dpopt.ParameterError:
        # The package refuses more of units, such as a float: nothing to compare with.
        return
    shown = float(told["value"].split()[0])
    assert shown == pytest.approx(value, rel=1e-6, abs=1e-9), body
    if "optimal" in told and code == 0:
        claimed = float(told["optimal"].split(",")[0].split()[-1])
        over = shown - claimed if "below" in told["optimal"] else claimed - shown
        assert over >= -1e-9 * max(1.0, abs(shown)), body


def attack(folder: Path, kind: str, seed: int) -> int:
    """Check one mutation of a saved example and its proof, and return the exit code."""
    rng = random.Random(f"{kind} {seed}")
    names = [folder / f"{kind}.json", folder / f"{kind}.proof.json"]
    contents = [name.read_bytes() for name in names if name.exists()]
    changed = rng.randrange(len(contents))
    if rng.random() < 0.2:
        named = a_name_missing if changed else a_name_twice
        damages = (cut_off, a_flipped_bit, bytes_inserted_removed_and_doubled, named)
        contents[changed] = rng.choice([*rng.choice(damages)(contents[changed], rng)])
    else:
        record = json.loads(contents[changed])
        for _ in range(rng.choice([1, 1, 2, 3])):
            part = record if changed else record["body"]
            record = mutate(part, rng) if changed else record | {"body": mutate(part, rng)}
        contents[changed] = json.dumps(record).encode()
    paths = [folder / "mutated.json", folder / "mutated.proof.json"][: len(contents)]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    code, lines, err = run(*paths)
    assert code in (0, 2, 4), err
    assert err.count("\n") == (code != 0)
    if code == 0:
        judged(paths[0], code, lines)
    return code


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", CHECKED)
def test_mutations(kind: str, tmp_path: Path) -> None:
    design = dpopt.design(example(kind))
    try:
        design.save(tmp_path / f"{kind}.json", proof=True)
    except dpopt.ParameterError:
        design.save(tmp_path / f"{kind}.json")
    codes = [attack(tmp_path, kind, seed) for seed in range(60)]
    assert {2, 4} <= set(codes)


def test_numbers() -> None:
    assert [str(verify.number(text)) for text in ("-0x1f/0x2", "7/3", "-3", 0.5)] == [
        *("-31/2", "7/3", "-3", "1/2"),
    ]
    with pytest.raises(verify.Malformed, match="different denominators"):
        verify.vector([f"1/{10**4000 + 2 * k + 1}" for k in range(20)], 20)

"""verify.py and files that nobody saved: no traceback, and nothing is shown that is not so.

What is accepted is judged by others: the package's own proof and value of the same integers, and a
bound against the value of the private point beside it, which it can never pass.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpopt
from dpopt import verify
from dpopt.shape import Setting
from tests.proofs.judging import run

# Files that write out their rows, "table", are spoiled in `test_judge`.
CHECKED = sorted(set(verify.KINDS) - {"table"})
HOSTILE: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3.5, 1e-320, 1e308, 10**9, -(10**9), 10**400, 2**62),
    *("", "1", "-1", "1/3", "1/0", "٣", "1_000", " 1", "0x1f", "1e9", "NaN", "\ud800", "x" * 9999),
    *("9" * 5000, f"1/{'7' * 4000}", f"0x{'f' * 4999}", f"0x{'f' * 10**5}"),
    *([], [[]], {}, {"a": 1}, [0] * 1000, ["1/3", None], [[0, 1], [1, 0]], "complete", "path"),
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container of a file with each of its keys."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def mutate(record: Any, rng: random.Random) -> None:
    """Change one place of a file."""
    container, key = rng.choice(list(places(record)))
    old, how = container[key], rng.randrange(8)
    if how == 0:
        del container[key]
    elif how == 1 and isinstance(container, list):
        container.insert(key, copy.deepcopy(old))
    elif how == 2 and isinstance(container, list):
        other = rng.randrange(len(container))
        container[key], container[other] = container[other], container[key]
    elif how == 3:
        container[key] = [old] if rng.random() < 0.8 else json.loads("[" * 100 + "]" * 100)
    elif how in (4, 5) and isinstance(old, int | float) and not isinstance(old, bool):
        half = old // 2 if isinstance(old, int) else old * (1 + 1e-6)
        container[key] = rng.choice([old + 1, old - 1, old * 2, -old, half])
    elif how in (4, 5) and isinstance(old, str) and old.lstrip("-").isdigit():
        container[key] = str(int(old) + rng.choice([1, -1, 10**15, -(10**15), int(old)]))
    elif how == 6:
        container[key] = copy.deepcopy(rng.choice([v for c, k in places(record) for v in [c[k]]]))
    else:
        container[key] = copy.deepcopy(rng.choice(HOSTILE))


def altered(text: str, rng: random.Random) -> str:
    """Change a few characters of a file."""
    at = rng.randrange(len(text))
    return rng.choice(
        [
            text[:at],
            text[:at] + rng.choice('0123456789-/.,"[]{}xe ') + text[at + 1 :],
            text[:at] + text[at + 1 :],
            text.replace(": 0", ": NaN", 1),
            text.replace(": ", ": 1e999, ", 1),
            text.replace('"setting": {', '"setting": {"epsilon": 9, ', 1),
            text.replace('"body": {', '"body": {}, "body": {', 1),
        ]
    )


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
    texts = {name.name: name.read_text() for name in names if name.exists()}
    chosen = rng.choice(sorted(texts))
    if rng.random() < 0.2:
        texts[chosen] = altered(texts[chosen], rng)
    else:
        record = json.loads(texts[chosen])
        for _ in range(rng.choice([1, 1, 2, 3])):
            mutate(record if chosen.endswith("proof.json") else record["body"], rng)
        texts[chosen] = json.dumps(record)
    path, proof = folder / "mutated.json", folder / "mutated.proof.json"
    for name, text in texts.items():
        (proof if name.endswith("proof.json") else path).write_text(text)
    code, lines, err = run(path, proof if len(texts) == 2 else None)
    assert code in (0, 2, 4), err
    assert err.count("\n") == (code != 0)
    if code == 0:
        judged(path, code, lines)
    return code


def save(kind: type[Any], folder: Path) -> None:
    found = dpopt.design(kind.example())
    try:
        found.save(folder / f"{kind.kind}.json", proof=True)
    except dpopt.ParameterError:
        found.save(folder / f"{kind.kind}.json")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", CHECKED)
def test_mutations(kind: str, tmp_path: Path) -> None:
    save(next(found for found in dpopt.kinds() if found.kind == kind), tmp_path)
    codes = [attack(tmp_path, kind, seed) for seed in range(60)]
    assert {2, 4} <= set(codes)


def test_numbers() -> None:
    assert [str(verify.number(text)) for text in ("-0x1f/0x2", "7/3", "-3", 0.5)] == [
        *("-31/2", "7/3", "-3", "1/2"),
    ]
    with pytest.raises(verify.Malformed, match="different denominators"):
        verify.vector([f"1/{10**4000 + 2 * k + 1}" for k in range(20)], 20)

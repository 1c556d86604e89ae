"""The part of `dpopt.verify` that checks one kind: what a referee of one design has to read."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from dpopt import verify
from dpopt._errors import ParameterError

_SOURCE = Path(verify.__file__)
# The tables from which an entry is taken by its name in a file; all else is reached by names.
_TABLES = ("KINDS",)


@cache
def excerpt(kind: str) -> str:
    """Return the source of `dpopt.verify` without what other kinds need: one file that runs alone.

    Its functions stand word for word as they do there, in the same order.

    Args:
        kind: of a design, in `dpopt.verify.KINDS`.

    Raises:
        ParameterError: if that module does not know the kind.
    """
    if kind not in verify.KINDS:
        raise ParameterError(f"kind is {kind!r}; dpopt.verify knows {', '.join(verify.KINDS)}.")
    text = _SOURCE.read_text(encoding="utf-8")
    lines, parts = text.splitlines(), ast.parse(text).body
    needed = _reached(parts, kind)
    names = {n.id for part in needed for n in ast.walk(part) if isinstance(n, ast.Name)}
    kept: list[str] = []
    end = 0
    for part in parts:
        first = min([part.lineno, *(d.lineno for d in getattr(part, "decorator_list", []))])
        comments = lines[end : first - 1]
        source = lines[first - 1 : part.end_lineno]
        end = part.end_lineno or first
        if part in needed:
            if isinstance(part, ast.ImportFrom) and part.module != "__future__":
                used = [alias.name for alias in part.names if alias.name in names]
                source = [f"from {part.module} import {', '.join(used)}"] if used else []
            elif _name_of(part) in _TABLES:
                source = [source[0].rstrip(), f'    "{kind}": {_entry(part, kind)},', "}"]
            kept += comments + source
        else:
            # A section's title stays if anything of the section does.
            kept += [line for line in comments if line.startswith("# ---")]
    return "\n".join(_without_empty_sections(kept)) + "\n"


def _without_empty_sections(lines: list[str]) -> list[str]:
    """Leave out titles that nothing follows, and more than two empty lines in a row."""
    found: list[str] = []
    for line in lines:
        if line.startswith("# ---"):
            while found and (not found[-1].strip() or found[-1].startswith("# ---")):
                found.pop()
            found += ["", "", line, "", ""]
        elif line.strip() or found[-2:] != ["", ""]:
            found.append(line)
    return found


def _name_of(part: ast.stmt) -> str | None:
    """Return the name that a statement of the module defines."""
    if isinstance(part, ast.FunctionDef | ast.ClassDef):
        return part.name
    if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
        return part.target.id
    if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
        return part.targets[0].id
    return None


def _entry(part: ast.stmt, kind: str) -> str:
    """Return what stands for a kind in a table."""
    table = getattr(part, "value", None)
    pairs = zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ()
    for key, value in pairs:
        if isinstance(key, ast.Constant) and key.value == kind:
            return ast.unparse(value)
    raise ParameterError(f"kind is {kind!r}; it is in no table of dpopt.verify.")


def _reached(parts: list[ast.stmt], kind: str) -> set[ast.stmt]:
    """Return the statements that checking a kind runs: those without a name, and what they use."""
    named: dict[str, list[ast.stmt]] = {}
    for part in parts:
        if (name := _name_of(part)) is not None:
            named.setdefault(name, []).append(part)
    reached = {part for part in parts if _name_of(part) is None}
    waiting = list(reached)
    while waiting:
        part = waiting.pop()
        table = _name_of(part) in _TABLES
        source = ast.parse(_entry(part, kind)) if table else part
        for node in ast.walk(source):
            for other in named.get(node.id, []) if isinstance(node, ast.Name) else []:
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
    return reached

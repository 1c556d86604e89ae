"""The part of `dpopt.verify` that checks one kind: what a referee of one design has to read."""

from __future__ import annotations

import ast
import symtable
from functools import cache
from pathlib import Path

from dpopt import verify
from dpopt._errors import ParameterError

_SOURCE = Path(verify.__file__)
# Tables from which entries are taken by their names; all else is reached by the names it uses.
_TABLES = ("KINDS", "QUESTIONS", "FORMATS")
_FORMATS = {"finding": "dpopt finding", "exact-optimum": "dpopt exact optimum"}
# What an excerpt can be of.
WORDS = (*verify.KINDS, *verify.QUESTIONS, *_FORMATS)


@cache
def excerpt(*words: str) -> str:
    """Return the source of `dpopt.verify` without what other files need: one file that runs alone.

    Its functions stand word for word as they do there, in the same order.

    Args:
        words: a kind of design or question; or ``"finding"`` or ``"exact-optimum"``, with the kind
            that such a file refers to, if any.

    Raises:
        ParameterError: if that module does not know a word, or there is none.
    """
    for word in words or ("",):
        if word not in WORDS:
            raise ParameterError(f"kind is {word!r}; it must be one of {', '.join(WORDS)}.")
    kept_entries = {_FORMATS.get(word, word) for word in words}
    if not kept_entries & set(_FORMATS.values()):
        kept_entries |= {"question" if word in verify.QUESTIONS else "design" for word in words}
    return _source_of(frozenset(kept_entries))


def words_of(path: Path) -> tuple[str, ...]:
    """Return the words for the excerpt that a file needs.

    Raises:
        ParameterError: if it is no file that `dpopt.verify` reads.
    """
    try:
        whole = verify.read(str(path))
        for word, form in _FORMATS.items():
            if whole.get("format") == form:
                own = whole if word == "exact-optimum" else whole.get("design")
                return (word, str(own["kind"])) if own else (word,)
        return (str(whole["body"]["kind"]),)
    except (verify.Malformed, *verify.MISSING):
        raise ParameterError(f"file is {str(path)!r}; it must be one that is checked.") from None


def _source_of(entries: frozenset[str]) -> str:
    """Return the source that is left if the tables hold these entries alone."""
    text = _SOURCE.read_text(encoding="utf-8")
    lines, parts = text.splitlines(), ast.parse(text).body
    needed = _reached(parts, entries)
    tables = [part for part in needed if _name_of(part) in _TABLES]
    code = [p for p in needed if p not in tables and not isinstance(p, ast.Import | ast.ImportFrom)]
    names = set[str]().union(*map(_globals, code))
    names |= {n for part in tables for _, v in _entries(part, entries) for n in _globals(v)}
    names |= {
        n for part in tables if isinstance(part, ast.AnnAssign) for n in _globals(part.annotation)
    }
    kept: list[str] = []
    end = 0
    for part in parts:
        first = min([part.lineno, *(d.lineno for d in getattr(part, "decorator_list", []))])
        comments = lines[end : first - 1]
        source = lines[first - 1 : part.end_lineno]
        end = part.end_lineno or first
        if part in needed:
            if isinstance(part, ast.Import):
                source = source if part.names[0].name in names else []
            elif isinstance(part, ast.ImportFrom) and part.module != "__future__":
                used = [alias.name for alias in part.names if alias.name in names]
                source = [f"from {part.module} import {', '.join(used)}"] if used else []
            elif _name_of(part) in _TABLES:
                rows = [f'    "{word}": {ast.unparse(v)},' for word, v in _entries(part, entries)]
                source = [source[0].rstrip(), *rows, "}"]
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


def _entries(part: ast.stmt, entries: frozenset[str]) -> list[tuple[str, ast.expr]]:
    """Return the entries of a table that are kept."""
    table = getattr(part, "value", None)
    pairs = zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ()
    return [
        (str(key.value), value)
        for key, value in pairs
        if isinstance(key, ast.Constant) and key.value in entries
    ]


def _reached(parts: list[ast.stmt], entries: frozenset[str]) -> set[ast.stmt]:
    """Return the statements that a check runs: those without a name, and what they use."""
    named: dict[str, list[ast.stmt]] = {}
    for part in parts:
        if (name := _name_of(part)) is not None:
            named.setdefault(name, []).append(part)
    reached = {part for part in parts if _name_of(part) is None}
    waiting = list(reached)
    while waiting:
        part = waiting.pop()
        used: list[ast.AST] = [part]
        if isinstance(part, ast.AnnAssign) and _name_of(part) in _TABLES:
            used = [part.annotation, *(value for _, value in _entries(part, entries))]
        for name in set[str]().union(*map(_globals, used)):
            for other in named.get(name, []):
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
    return reached


def _globals(part: ast.AST) -> set[str]:
    """Return the names of the module that a part of it uses; its own variables are others."""
    waiting, found = [symtable.symtable(ast.unparse(part), "verify.py", "exec")], set[str]()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        outer = table.get_type() == "module"
        found |= {s.get_name() for s in table.get_symbols() if outer or s.is_global()}
    return found

"""What the source says of each kind of setting: no list names them, and no library is loaded.

A setting says ``kind: ClassVar[str] = "..."`` in the body of its class. That line is looked for in
the files of the package, and the class around it is read, not run: so the command line can offer
every kind, its options and their help without importing one.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dpopt._errors import ParameterError
from dpopt._numbers import digits

VERBS = {
    "verify": "verify",
    "certify": "release",
    "release": "release",
    "mode": "mode",
    "sample": "release",
    "ledger": "ledger",
    "explore": "explore",
    "cite": "about",
    "doctor": "about",
    "completion": "about",
}
"""The commands that are no kinds, in the order of the help, each with its module of `dpopt.cli`."""

_ROOT = Path(__file__).parent
_KIND = re.compile(r'^    kind: ClassVar\[str\] = "([a-z][a-z0-9-]*)"$', re.MULTILINE)
_TOP_LEVEL = re.compile(r"^[^\s#)\]}]", re.MULTILINE)
_METHOD = re.compile(r"^    (?:@|def )", re.MULTILINE)
_EXAMPLE = re.compile(r"^    def example\(.*?(?=^    (?:@|def )|\Z)", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^(?:[A-Z]\w+):$", re.MULTILINE)


class Field(NamedTuple):
    """A parameter of a kind.

    Attributes:
        name: of the dataclass's field.
        annotation: its type as written.
        required: whether it has no default.
        default: the default as written; None if there is none.
        about: what the docstring says of it.
    """

    name: str
    annotation: str
    required: bool
    default: str | None
    about: str


class Described(NamedTuple):
    """A kind as its source describes it.

    Attributes:
        kind: its name.
        module: where it is defined.
        name: of the class.
        about: its docstring up to the first section such as "Attributes:".
        sections: the sections of its docstring by name.
        papers: keys of the papers behind it.
        fields: its parameters in order.
        example: the parameters of its example, if they are literals.
    """

    kind: str
    module: str
    name: str
    about: str
    sections: dict[str, str]
    papers: tuple[str, ...]
    fields: tuple[Field, ...]
    example: dict[str, Any] | None


@cache
def _found() -> dict[str, tuple[Path, str]]:
    """Return the file of each kind and its text, in the order of the files' names."""
    found: dict[str, tuple[Path, str]] = {}
    for path in sorted(_ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for kind in _KIND.findall(text) if "kind: ClassVar[str]" in text else ():
            where = path.relative_to(_ROOT).as_posix()
            if kind in VERBS:
                raise ParameterError(
                    f"kind is {kind!r} in {where}; the command line has a verb of that name."
                )
            if kind in found:
                raise ParameterError(
                    f"kind is {kind!r} in {where}; a class of "
                    f"{found[kind][0].relative_to(_ROOT).as_posix()} is of that kind already."
                )
            found[kind] = path, text
    return found


@cache
def homes() -> dict[str, Path]:
    """Return the file that defines each kind of the package, in the order of the files' names.

    Raises:
        ParameterError: if two classes are of one kind, or one has the name of a verb.
    """
    return {kind: path for kind, (path, _) in _found().items()}


def module_of(path: Path) -> str:
    """Return the name of the module that a file of the package is."""
    parts = path.relative_to(_ROOT.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def summary_of(kind: str) -> str:
    """Return the first sentence of a kind's docstring, without its full stop and backticks."""
    text = _found()[kind][1]
    match = next(match for match in _KIND.finditer(text) if match[1] == kind)
    start = text.index('"""', text.rindex("\nclass ", 0, match.start())) + 3
    paragraph = text[start : text.index('"""', start)].split("\n\n")[0]
    return re.split(r"\.(?:\s|$)", " ".join(paragraph.split()))[0].replace("`", "")


@cache
def described(kind: str) -> Described:
    """Return what the source says of a kind of the package.

    Raises:
        KeyError: if there is none of that name.
    """
    path, text = _found()[kind]
    node = _class_around(text, kind)
    about, sections = _docstring(ast.get_docstring(node) or "")
    helps = _entries(sections.get("Attributes", ""))
    fields, papers = [], ()
    for line in node.body:
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        name, annotation = line.target.id, ast.unparse(line.annotation)
        if annotation.startswith("ClassVar"):
            if name == "papers" and line.value is not None:
                papers = ast.literal_eval(line.value)
            continue
        field = _field(name, annotation, line.value, helps.get(name, ""))
        if field is not None:
            fields.append(field)
    return Described(
        kind, module_of(path), node.name, about, sections, papers, tuple(fields), _example(node)
    )


def literal(text: str | None) -> Any:  # noqa: ANN401
    """Return the value of a default as written; None if it is no literal."""
    try:
        return ast.literal_eval(text or "")
    except (SyntaxError, ValueError):
        return None


def choices(annotation: str) -> tuple[str, ...]:
    """Return the words of an annotation ``Literal["a", "b"]``; none of any other."""
    if not annotation.startswith("Literal["):
        return ()
    return tuple(map(str, ast.literal_eval(annotation.removeprefix("Literal").strip())))


def parted(annotation: str) -> tuple[str, tuple[str, ...]]:
    """Return the type of an annotation without None, and the words that are allowed beside it.

    Of ``Table | Literal["a", "b"] | None`` they are ``Table``, and a and b.
    """
    base, mark, words = annotation.removesuffix(" | None").partition(" | Literal[")
    return base, choices(f"Literal[{words}") if mark else ()


def other_word(field: Field) -> str | None:
    """Return the word of a choice between two that is not the default; None of other fields."""
    words, default = choices(field.annotation), literal(field.default)
    others = [word for word in words if word != default]
    return others[0] if len(words) == 2 and len(others) == 1 else None


def hyphened(name: str) -> str:
    """Return the option of a parameter's name."""
    return f"--{name.replace('_', '-')}"


def arguments(values: Mapping[str, Any]) -> list[str]:
    """Return the command line that gives parameters these plain values; None is left out."""
    words: list[str] = []
    for name, value in values.items():
        option = hyphened(name)
        if isinstance(value, bool):
            words.append(option if value else f"--no-{option[2:]}")
        elif value is not None:
            words += [option, text_of(value)]
    return words


def text_of(value: object) -> str:
    """Return a plain value as an option takes it.

    A list is written with commas, a list of lists with colons inside, a list of texts with
    semicolons; deeper ones are JSON.
    """
    if isinstance(value, list | tuple):
        if value and all(isinstance(part, str) for part in value):
            return ";".join(value)
        inner = [part for part in value if isinstance(part, list | tuple)]
        if any(isinstance(part, list | tuple) for row in inner for part in row):
            return json.dumps(value)
        return ",".join(
            ":".join(map(text_of, row)) if isinstance(row, list | tuple) else text_of(row)
            for row in value
        )
    return digits(value) if isinstance(value, float) else str(value)


def _class_around(text: str, kind: str) -> ast.ClassDef:
    """Parse the class whose body has the line of a kind: its fields and its example, if possible.

    Its other methods are left out, which would take most of the time.
    """
    match = next(match for match in _KIND.finditer(text) if match[1] == kind)
    start = text.rindex("\nclass ", 0, match.start()) + 1
    end = _TOP_LEVEL.search(text, match.end())
    body = text[start : end.start() if end else len(text)]
    method, example = _METHOD.search(body, match.end() - start), _EXAMPLE.search(body)
    short = body[: method.start() if method else len(body)] + (example[0] if example else "")
    try:
        parsed = ast.parse(short).body
    except SyntaxError:
        # A text in three quotes may hold lines that look like the top level, or like a method.
        line = text.count("\n", 0, start) + 1
        parsed = [node for node in ast.parse(text).body if node.lineno == line]
    if not isinstance(parsed[0], ast.ClassDef):
        raise KeyError(kind)
    return parsed[0]


def _field(name: str, annotation: str, value: ast.expr | None, about: str) -> Field | None:
    """Return a field as it is written; None of one that the constructor does not take."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        named = {keyword.arg: keyword.value for keyword in value.keywords}
        if "init" in named and ast.unparse(named["init"]) == "False":
            return None
        value = named.get("default", named.get("default_factory"))
    return Field(name, annotation, value is None, value and ast.unparse(value), about)


def _example(node: ast.ClassDef) -> dict[str, Any] | None:
    """Return the arguments by name of the ``return cls(...)`` in ``example``, if all are literals.

    Arguments by position are named in the order of the fields.
    """
    names = [
        line.target.id
        for line in node.body
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and not ast.unparse(line.annotation).startswith("ClassVar")
    ]
    methods = [line for line in node.body if isinstance(line, ast.FunctionDef)]
    for method in methods:
        last = method.body[-1]
        if method.name == "example" and isinstance(last, ast.Return):
            if not isinstance(last.value, ast.Call):
                return None
            given = dict(zip(names, last.value.args, strict=False))
            given |= {keyword.arg or "**": keyword.value for keyword in last.value.keywords}
            try:
                return {name: _value(value, method) for name, value in given.items()}
            except ValueError:
                return None
    return None


def _value(node: ast.expr, method: ast.FunctionDef) -> Any:  # noqa: ANN401
    """Return the value of a literal, or of a name that a method gives to one."""
    assigned = {
        ast.unparse(line.targets[0]): line.value
        for line in method.body
        if isinstance(line, ast.Assign)
    }
    return ast.literal_eval(assigned.get(ast.unparse(node), node))


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return a docstring's description, and its sections by name."""
    marks = list(_SECTION.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    sections = {
        mark[0].rstrip(":"): text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)
    }
    return text[: marks[0].start() if marks else len(text)].strip(), sections


def _entries(section: str) -> dict[str, str]:
    """Return the entries ``name: text`` of a section; lines indented more go on with the text."""
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        start = re.match(r"    (\w+): ?(.*)", line)
        if start:
            name = start[1]
            found[name] = start[2].strip()
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return found

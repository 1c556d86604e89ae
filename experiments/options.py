"""The parameters of an experiment as a command line and a caller give them.

What may be set, and how its text is read, follows from the annotations of the experiment's
configuration; what it means, from the "Attributes:" of its docstring.
"""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
import os
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dpopt import DpoptError, ParameterError
from experiments.registry import Experiment

_NONE = "none"
# What a field of this name may be at least, in every experiment.
_LEAST = {"seed": 0}
_ENTRY = re.compile(r"(\w+): ?(.*)")
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


@dataclass(frozen=True)
class Kind:
    """What values an annotation allows.

    Attributes:
        base: int, float, str or bool, or the words of a choice.
        many: whether the value is a tuple of such.
        optional: whether it may be None.
    """

    base: type | tuple[str, ...]
    many: bool = False
    optional: bool = False

    @property
    def words(self) -> str:
        """What a text must be."""
        several = f"{self._named}, separated by {'commas' if self._mark == ',' else 'semicolons'}"
        return (several if self.many else self._named) + (f", or {_NONE}" if self.optional else "")

    @property
    def _named(self) -> str:
        if isinstance(self.base, tuple):
            return f"{'words among' if self.many else 'one of'} {', '.join(self.base)}"
        return _WORDS[self.base][self.many]

    @property
    def _mark(self) -> str:
        """What separates the parts of a tuple; a text may hold commas."""
        return "," if self.base in (int, float, bool) else ";"

    def parse(self, name: str, text: str) -> Any:  # noqa: ANN401
        """Return the value of a text; `text_of` is the inverse.

        Raises:
            ParameterError: if it is none that is allowed.
        """
        stripped = text.strip()
        if self.optional and stripped.lower() == _NONE:
            return None
        try:
            if not self.many:
                return self._parsed(text if self.base is str else stripped)
            parts = stripped.split(self._mark) if stripped else []
            return tuple(self._parsed(part.strip()) for part in parts)
        except ValueError:
            raise _refused(name, text, self.words) from None

    def convert(self, name: str, value: object) -> Any:  # noqa: ANN401
        """Return a caller's value in the field's type: lists and arrays as tuples.

        Raises:
            ParameterError: if it is none that is allowed.
        """
        if value is None and self.optional:
            return None
        try:
            if not self.many:
                return self._converted(value)
            listed = value.tolist() if hasattr(value, "tolist") else value  # pyright: ignore
            if isinstance(listed, str) or not isinstance(listed, Sequence):
                raise ValueError
            return tuple(self._converted(part) for part in listed)
        except (ValueError, OverflowError):
            allowed = f"a tuple of {self._named}" if self.many else self._named
            allowed += ", or None" if self.optional else ""
            raise _refused(name, value, allowed) from None

    def _parsed(self, text: str) -> Any:  # noqa: ANN401
        if self.base is bool:
            return {"true": True, "false": False}[_known(text.lower(), ("true", "false"))]
        if isinstance(self.base, tuple):
            return _known(text, self.base)
        return _finite(self.base(text))

    def _converted(self, value: Any) -> Any:  # noqa: ANN401
        value = value.item() if getattr(value, "ndim", None) == 0 else value
        if isinstance(self.base, tuple):
            return _known(value, self.base)
        if self.base is str and isinstance(value, str | os.PathLike):
            return os.fspath(value)
        if self.base is bool and isinstance(value, bool):
            return value
        if self.base is int and isinstance(value, numbers.Integral) and value is not bool(value):
            return int(value)
        if self.base is float and isinstance(value, numbers.Real) and value is not bool(value):
            return _finite(float(value))
        raise ValueError


_WORDS = {
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "true or false"),
    str: ("a text", "texts"),
}


@dataclass(frozen=True)
class Option:
    """A parameter of an experiment.

    Attributes:
        name: of the configuration's field.
        kind: what it may be; None if only code can set it.
        about: what the docstring says of it.
        quick: its value in the quick run.
        full: its value in the full run.
    """

    name: str
    kind: Kind | None
    about: str
    quick: Any
    full: Any


def kind_of(annotation: Any) -> Kind | None:  # noqa: ANN401
    """Return what values an annotation allows; None if no text stands for them."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        inner = kind_of(parts[0]) if len(parts) == 1 else None
        return None if inner is None else replace(inner, optional=True)
    if get_origin(annotation) is tuple:
        inner, *rest = get_args(annotation)
        one = kind_of(inner)
        if one is None or one.many or one.optional or rest != [...]:
            return None
        return replace(one, many=True)
    if get_origin(annotation) is Literal:
        words = get_args(annotation)
        return Kind(words) if all(isinstance(word, str) for word in words) else None
    return Kind(annotation) if annotation in _WORDS else None


def options(experiment: Experiment) -> dict[str, Option]:
    """Return the parameters of an experiment by name, in the order of its configuration."""
    kind = type(experiment.config)
    hints, about = get_type_hints(kind), documented(kind)
    return {
        field.name: Option(
            field.name,
            kind_of(hints[field.name]),
            about.get(field.name, ""),
            getattr(experiment.quick, field.name),
            getattr(experiment.config, field.name),
        )
        for field in fields(kind)
    }


def documented(kind: type) -> dict[str, str]:
    """Return what the "Attributes:" of a class, and of those that it extends, say of each."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        found |= _documented(each.__doc__ if each.__module__ != "builtins" else None)
    return found


def _documented(docstring: str | None) -> dict[str, str]:
    _, _, section = inspect.cleandoc(docstring or "").partition("\nAttributes:\n")
    found: dict[str, list[str]] = {}
    name = ""
    for line in section.split("\n"):
        if line and not line.startswith(" "):
            break
        entry = _ENTRY.match(line[4:]) if line[4:5].strip() else None
        if entry is not None:
            name = entry[1]
            found[name] = [entry[2]]
        elif name and line.strip():
            found[name].append(line.strip())
    return {name: " ".join(words) for name, words in found.items()}


def configured(experiment: Experiment, full: bool, settings: Mapping[str, object]) -> Any:  # noqa: ANN401
    """Return the configuration of a run with some values of a caller's own.

    Args:
        experiment: as registered.
        full: whether the other values are those of the full run.
        settings: values by the name of their field.

    Raises:
        ParameterError: if there is no such field, or its value is none that is allowed.
    """
    known = options(experiment)
    check_fields([experiment], settings)
    own = {name: known[name].kind.convert(name, value) for name, value in settings.items()}  # pyright: ignore
    for name, least in _LEAST.items():
        if own.get(name) is not None and own[name] < least:
            raise ParameterError(f"{name} is {own[name]}; it must be at least {least}.")
    with sensible(experiment.name, own):
        return replace(experiment.config if full else experiment.quick, **own)


@contextmanager
def sensible(name: str, own: Mapping[str, object]) -> Iterator[None]:
    """Take an arithmetic failure of the block as a reader's parameters that make no sense.

    Args:
        name: of the experiment.
        own: the parameters that are not its own; without any, the failure stays what it is.

    Raises:
        ParameterError: in place of the failure.
    """
    try:
        yield
    except DpoptError:
        raise
    except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
        if not own:
            raise
        given = ", ".join(f"{field} = {text_of(value)}" for field, value in own.items())
        said = str(error).rstrip(".") or type(error).__name__
        raise ParameterError(f"{name} cannot be run with {given}: {said}.") from error


def parsed(experiment: Experiment, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of those texts whose field the experiment has.

    Raises:
        ParameterError: if a text is none that its field allows.
    """
    known = {name: option.kind for name, option in options(experiment).items()}
    kinds = {name: known.get(name) for name in texts}
    return {name: kind.parse(name, texts[name]) for name, kind in kinds.items() if kind is not None}


def check_fields(experiments: Iterable[Experiment], names: Iterable[str]) -> None:
    """Refuse the name of a field that none of the experiments has.

    Raises:
        ParameterError: with the names that look like it.
    """
    known = {
        option.name
        for experiment in experiments
        for option in options(experiment).values()
        if option.kind is not None
    }
    for name in names:
        if name not in known:
            listed = f"one of {', '.join(sorted(known))}" if known else "none"
            raise ParameterError(
                f"setting is {name!r}; it must be {did_you_mean(name, known, listed)}"
            )


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of a sentence about a word that is not known: those that look like it."""
    near = difflib.get_close_matches(word, sorted(known), 2)
    return f"a known one; did you mean {' or '.join(near)}?" if near else f"{otherwise}."


def text_of(value: object) -> str:
    """Return the text from which `Kind.parse` reads a value."""
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        mark = ";" if any(isinstance(part, str) for part in value) else ","
        return mark.join(map(text_of, value))
    return repr(value) if isinstance(value, float) else str(value)


def changed(experiment: Experiment, configuration: Mapping[str, Any], full: bool) -> dict[str, Any]:
    """Return the values of a configuration that are not the experiment's own.

    Args:
        experiment: as registered.
        configuration: plain values.
        full: whether its own are those of the full run.
    """
    own = asdict(experiment.config if full else experiment.quick)
    settable = [name for name, option in options(experiment).items() if option.kind is not None]
    return {
        name: configuration[name]
        for name in settable
        if name in configuration and plain(configuration[name]) != plain(own[name])
    }


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return a value with lists, which is what JSON makes of tuples, as tuples."""
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    return value


def _known(word: str, words: tuple[str, ...]) -> str:
    if word not in words:
        raise ValueError
    return word


def _finite(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    return value


def _refused(name: str, value: object, words: str) -> ParameterError:
    return ParameterError(f"{name} is {_SHORT.repr(value)}; it must be {words}.")

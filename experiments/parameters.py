"""The parameters of an experiment: a frozen dataclass whose annotations say what each may be.

```python
@configuration
class Config:
    voters: Several[Voters] = (11, 35)
    epsilon: Positive = 0.1
```

The command line, a caller in Python and the report read the same annotations. What several
parameters must be together is for ``__post_init__``, which raises a ``ParameterError``.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from dpopt import DpoptError, ParameterError
from experiments.registry import Experiment

_T = TypeVar("_T")
_NONE = "none"
# Of a docstring's attributes: a name, and its words, whose further lines are indented more.
_ENTRY = re.compile(r"^ {4}(\w+): ?(.*(?:\n {5}.*)*)", re.MULTILINE)
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


@dataclass_transform(frozen_default=True)
def configuration(kind: type[_T]) -> type[_T]:
    """Make a class a frozen dataclass whose values are checked: no text is an integer's value."""
    strict = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    made: Any = checked(frozen=True, config=strict)(kind)
    return made


def _each_once(values: tuple[_T, ...]) -> tuple[_T, ...]:
    if len(set(values)) < len(values):
        raise ValueError("hold each value once")
    return values


def _rise(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if any(after <= before for before, after in pairwise(values)):
        raise ValueError("rise")
    return values


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("be odd")
    return value


Some = Annotated[tuple[_T, ...], MinLen(1)]
"""At least one value."""
Several = Annotated[tuple[_T, ...], MinLen(1), AfterValidator(_each_once)]
"""At least one value, none of them twice."""
Rising = Annotated[tuple[_T, ...], MinLen(1), AfterValidator(_rise)]
"""At least one value, each above the one before."""
Count = Annotated[int, Ge(1)]
Seed = Annotated[int, Ge(0)]
Voters = Annotated[int, Ge(1), AfterValidator(_odd)]
Positive = Annotated[float, Gt(0.0)]
Probability = Annotated[float, Gt(0.0), Lt(1.0)]

# JSON's names of types, in words for one value and for several.
_WORDS = {
    "integer": ("a whole number", "whole numbers"),
    "number": ("a number", "numbers"),
    "boolean": ("true or false", "true or false"),
    "string": ("a text", "texts"),
}
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of an experiment.

    Attributes:
        name: of the configuration's field.
        annotation: what it may be.
        about: what the docstring says of it.
        quick: its value in the quick run.
        full: its value in the full run.
    """

    name: str
    annotation: Any
    about: str
    quick: Any
    full: Any

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.annotation, config=ConfigDict(allow_inf_nan=False))

    @cached_property
    def _whole_schema(self) -> Mapping[str, Any]:
        return self._adapter.json_schema()

    @property
    def _schema(self) -> Mapping[str, Any]:
        """The JSON schema of the annotation, of its first part if it may be None."""
        return self._whole_schema.get("anyOf", [self._whole_schema])[0]

    @property
    def _scalar(self) -> Mapping[str, Any]:
        return self._schema.get("items", self._schema)

    @property
    def optional(self) -> bool:
        """Whether it may be None."""
        return "anyOf" in self._whole_schema

    @property
    def mark(self) -> str | None:
        """What separates several values, of which a text may hold commas; None for one value."""
        if self._schema.get("type") != "array":
            return None
        return ";" if self._scalar["type"] == "string" else ","

    @property
    def allowed(self) -> str:
        """What a text must be, in words."""
        scalar, many = self._scalar, self.mark is not None
        if "enum" in scalar or "const" in scalar:
            listed = ", ".join(scalar.get("enum", [scalar.get("const")]))
            said = f"{'words among' if many else 'one of'} {listed}"
        else:
            said = _WORDS[scalar["type"]][many]
        bounds = [f"{words} {scalar[key]:g}" for key, words in _BOUNDS.items() if key in scalar]
        said += f" {' and '.join(bounds)}" if bounds else ""
        if many:
            said += f", separated by {'commas' if self.mark == ',' else 'semicolons'}"
        return said + (f", or {_NONE}" if self.optional else "")

    def parse(self, text: str) -> Any:  # noqa: ANN401
        """Return the value of a text; `text_of` is the inverse."""
        stripped = text.strip()
        if self.optional and stripped.lower() == _NONE:
            return None
        mark, value = self.mark, text if self._scalar["type"] == "string" else stripped
        given = [part.strip() for part in stripped.split(mark)] if mark and stripped else []
        try:
            return self._adapter.validate_python(value if mark is None else given)
        except ValidationError as error:
            raise _refused(self, error, text) from None


def _refused(parameter: Parameter, error: ValidationError, value: object) -> ParameterError:
    """Return one sentence: the parameter, its value, and what is allowed."""
    reason = error.errors()[0].get("ctx", {}).get("error")
    if isinstance(reason, ParameterError):
        return reason
    needed = f"be {parameter.allowed}" if reason is None else str(reason)
    if not value and parameter.mark is not None:
        needed = "hold at least one value"
    return ParameterError(f"{parameter.name} is {_SHORT.repr(value)}; it must {needed}.")


def parameters_of(experiment: Experiment) -> dict[str, Parameter]:
    """Return the parameters of an experiment by name, in the order of its configuration."""
    kind = type(experiment.config)
    hints, about = get_type_hints(kind, include_extras=True), documented(kind)
    return {
        field.name: Parameter(
            field.name,
            hints[field.name],
            about.get(field.name, ""),
            getattr(experiment.quick, field.name),
            getattr(experiment.config, field.name),
        )
        for field in fields(kind)
    }


def documented(kind: type) -> dict[str, str]:
    """Return what the "Attributes:" of a class, and of those that it extends, say of each."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        _, _, section = inspect.cleandoc(each.__doc__ or "").partition("\nAttributes:\n")
        entries = _ENTRY.findall(section.split("\n\n")[0])
        found |= {name: " ".join(words.split()) for name, words in entries}
    return found


def configured(experiment: Experiment, full: bool, settings: Mapping[str, object]) -> Any:  # noqa: ANN401
    """Return the configuration of a run with some values of a caller's own."""
    check_names([experiment], settings)
    known = parameters_of(experiment)
    own = {name: _given(value, known[name]) for name, value in settings.items()}
    with sensible(experiment.name, own):
        try:
            return replace(experiment.config if full else experiment.quick, **own)
        except ValidationError as error:
            first = error.errors()[0]
            if not first["loc"]:
                # What several of them must be together.
                raise first.get("ctx", {})["error"] from None
            name = str(first["loc"][0])
            raise _refused(known[name], error, own.get(name)) from None


def _given(value: Any, parameter: Parameter) -> Any:  # noqa: ANN401
    """Return a caller's value as a configuration holds it, in Python's own types."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if parameter.mark is not None and isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(part.item() if hasattr(part, "item") else part for part in value)
    return value


@contextmanager
def sensible(name: str, own: Mapping[str, object]) -> Iterator[None]:
    """Take an arithmetic failure of the block as a reader's parameters that make no sense."""
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
    """Return the values of those texts whose field the experiment has."""
    known = parameters_of(experiment)
    return {name: known[name].parse(text) for name, text in texts.items() if name in known}


def check_names(experiments: Iterable[Experiment], names: Iterable[str]) -> None:
    """Refuse the name of a field that none of the experiments has."""
    known = {name for experiment in experiments for name in parameters_of(experiment)}
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


def text_of(value: object, room: str = "") -> str:
    """Return the text from which `Parameter.parse` reads a value, with room after its marks."""
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        mark = ";" if any(isinstance(part, str) for part in value) else ","
        return f"{mark}{room}".join(map(text_of, value))
    return repr(value) if isinstance(value, float) else str(value)


def changed(experiment: Experiment, configuration: Mapping[str, Any], full: bool) -> dict[str, Any]:
    """Return the values of a configuration that are not the experiment's own."""
    return {
        name: configuration[name]
        for name, value in experiment.parameters(full).items()
        if name in configuration and plain(configuration[name]) != plain(value)
    }


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return a value with lists, which is what JSON makes of tuples, as tuples."""
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    return value

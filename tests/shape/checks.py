"""What the shape promises of every kind, one function each; it raises where a kind breaks it.

Each takes the class of a kind, and knows nothing of any.
"""

from __future__ import annotations

import copy
import inspect
import json
import math
import pickle
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from html import escape
from itertools import islice, product
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from scipy.stats import chi2

import dpopt
from dpopt import DpoptError, NotPrivateError, ParameterError
from dpopt.interop.frames import LIBRARIES, to_frame
from dpopt.privacy import exp_lower, exp_upper
from dpopt.privacy.guarantee import fingerprint
from dpopt.proofs.saved import read_sealed, seal
from dpopt.shape import _parameters, _proved, _subject, made
from dpopt.table import Table
from tests.robustness.hostile import EXTREME, NEVER, REFUSED, VALUES, sample

Kind = type[Any]
BACKENDS = ("highs", "cvxpy")
INTERIOR = "cvxpy:CLARABEL"
# Of all the draws of all kinds, one false alarm in a million runs.
_ALARM = 1e-6
_DRAWS = 400
# Places of a file, or units, that are changed one by one.
_MOST_CHANGES = 40
# What a refusal calls a parameter where it is not its own name.
_CALLED = {
    **{"distribution": "^p |distribution", "users": "^p |users"},
    **{"input_names": "inputs", "output_names": "outputs", "priors": "prior"},
}
# By so many units a design is changed at most, until its proof refuses: a millionth of 2^62.
_MOST_UNITS = 1 << 42


def tolerance(kind: Kind) -> float:
    """How far solvers may be apart: 1e-9 of the value, or what the docstring says instead."""
    said = re.search(r"agree to (1e-\d+)", " ".join((kind.__doc__ or "").split()))
    return float(said[1]) if said else 1e-9


@cache
def _solved(example: Callable[[], Any], backend: str | None) -> Any:
    return dpopt.design(example(), backend=backend)


def answer(kind: Kind, backend: str | None = None) -> Any:
    """The design of a kind's example, solved once for all checks."""
    return _solved(kind.example, backend)


def input_of(kind: Kind) -> Any:
    """Return an input of the example, in the middle of those that have neighbours."""
    pairs = kind.example_neighbours()
    return pairs[len(pairs) // 2][0] if pairs else None


def same(one: object, other: object) -> bool:
    """Whether two values are the same numbers."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(np.asarray(one), np.asarray(other))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dataclass_fields__") and type(one) is type(other):
        named = [f.name for f in fields(one) if f.compare]  # type: ignore[arg-type]
        return all(same(getattr(one, name), getattr(other, name)) for name in named)
    return bool(one == other)


def says_one_sentence(error: BaseException) -> None:
    text = str(error).strip()
    assert text.endswith("."), text
    assert "\n" not in text, text
    assert len(text) < 1000, text


# The setting


def is_described(kind: Kind) -> None:
    text = inspect.getdoc(kind) or ""
    assert "Attributes:" in text, "the docstring has no section of its parameters"
    told = text.partition("Attributes:")[2]
    for name in _parameters(kind):
        assert re.search(rf"^    {name}: ", told, re.MULTILINE), f"{name} is not explained"
        assert name in inspect.get_annotations(kind), f"{name} is not declared in the class"


def survives_its_file(kind: Kind) -> None:
    example = kind.example()
    plain = json.loads(json.dumps(example.to_dict(), allow_nan=False))
    again = kind.from_dict(plain)
    assert same(again, example), f"{again} is not {example}"
    assert again.to_dict() == example.to_dict()


def refuses_wrong_parameters(kind: Kind) -> None:
    plain = kind.example().to_dict()
    with pytest.raises(ParameterError) as caught:
        kind.from_dict({**plain, "no_such_parameter": 1})
    says_one_sentence(caught.value)
    for name, required in _parameters(kind).items():
        if required:
            with pytest.raises(ParameterError, match=name) as caught:
                kind.from_dict({key: value for key, value in plain.items() if key != name})
            says_one_sentence(caught.value)
    for wrong in (None, 3, "text", [1, 2]):
        with pytest.raises(ParameterError):
            kind.from_dict(wrong)


def is_number(annotation: object) -> bool:
    parts = get_args(annotation) or (annotation,)
    return all(part in (int, float, type(None)) for part in parts)


def refuses_hostile_values(kind: Kind) -> None:
    """A value for any parameter is refused in one sentence that names it, or kept in its file."""
    example, wrong = kind.example(), []
    annotations = get_type_hints(kind)
    for name in _parameters(kind):
        for what in sample(name, tuple(VALUES)):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    taken = replace(example, **{name: VALUES[what]()})
                    json.dumps(taken.to_dict(), allow_nan=False)
            except DpoptError as error:
                says_one_sentence(error)
                if what not in EXTREME and not re.search(_CALLED.get(name, name), str(error)):
                    wrong.append(f"{name} = {what}: refused by {error}")
            except Exception as error:  # noqa: BLE001
                wrong.append(f"{name} = {what}: {type(error).__name__}: {error}")
            else:
                never = NEVER if is_number(annotations[name]) else set()
                if what in never | REFUSED.get(name, set()):
                    wrong.append(f"{name} = {what}: taken")
    assert not wrong, "\n".join(wrong)


# The answer


def solvers_agree(kind: Kind) -> None:
    """The closed form, HiGHS and cvxpy are solvers of the same program.

    Plain cvxpy calls HiGHS, too; an interior-point method is another algorithm of other authors.
    """
    least = tolerance(kind)
    first = answer(kind)
    for backend in BACKENDS:
        other = answer(kind, backend)
        assert other.solution is not None, f"{backend} solved no program"
        assert other.value == pytest.approx(first.value, rel=least, abs=1e-15), backend
        assert json.dumps(other.to_dict(), allow_nan=False)
    interior = answer(kind, INTERIOR)
    assert interior.solution.backend == INTERIOR
    assert interior.value == pytest.approx(first.value, rel=1e-6, abs=1e-9), INTERIOR


def bound_is_no_worse(kind: Kind) -> None:
    """No solver's bound is on the wrong side of any solver's value."""
    answers = [answer(kind, backend) for backend in (None, *BACKENDS)]
    for one in answers:
        for other in answers:
            if one.bound is None:
                continue
            room = max(1e-7, 10 * tolerance(kind)) * max(1.0, abs(one.bound))
            away = other.value - one.bound
            away = -away if one.setting.maximises else away
            assert away >= -room, f"value {other.value} beyond the bound {one.bound}"
        assert one.gap is None or one.bound is not None


def is_shown(kind: Kind) -> None:
    found = answer(kind)
    for text in (repr(found), repr(found.setting)):
        assert "\n" not in text, text
        assert len(text) < 300, text
    assert repr(found).startswith(f"{type(found).__name__}(")
    assert "guarantee" in repr(found)
    page = found._repr_html_()
    assert page.startswith("<div><figure"), page[:200]
    assert page.endswith("</table></div>"), page[-200:]
    assert escape(found._statement) in page
    assert "script" not in page
    # Six digits, not below what is promised.
    shown = re.search(r">\(([^,<]+), ([^)<]+)\)-DP<", page)
    assert shown is not None
    both = found.guarantee.epsilon, found.guarantee.delta
    for text, promised in zip(shown.groups(), both, strict=True):
        assert promised * (1 - 2.0**-49) <= float(text) <= promised * (1 + 1e-5)
    assert f">{found._verdict}<" in page
    axes = found.plot()
    assert axes.has_data()
    assert found.plot(axes) is axes
    table = found.setting.columns(found.table)
    assert table, "no columns"
    (lines,) = {len(column) for column in table.values()}
    for library in LIBRARIES:
        with suppress(ImportError):
            frame = to_frame(found, library)
            assert (list(frame.columns), len(frame)) == (list(table), lines)
    plain = found.to_dict()
    assert plain["kind"] == kind.kind
    assert json.loads(json.dumps(plain, allow_nan=False))["setting"] == found.setting.to_dict()


def copies_are_the_same(kind: Kind) -> None:
    found = answer(kind)
    ways: dict[str, Callable[[Any], Any]] = {
        "pickle": lambda it: pickle.loads(pickle.dumps(it)),
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
    }
    new = {how: set(vars(way(dpopt.design(kind.example())))) for how, way in ways.items()}
    found.plot()
    found.release(input_of(kind))
    for how, way in ways.items():
        again = way(found)
        assert again is not found, how
        # What was computed on the way, such as a table that is drawn from, is not carried along.
        assert set(vars(again)) == new[how], how
        assert same(again.table, found.table), how
        assert same(again.setting, found.setting), how
        assert again.value == found.value, how
        assert again.certificate == found.certificate, how
        again.release(input_of(kind))


def comes_back_from_its_file(kind: Kind, folder: Path) -> None:
    for backend in (None, "highs"):
        found, path = answer(kind, backend), folder / "saved.json"
        found.save(path)
        again = dpopt.load(path)
        assert type(again) is type(found)
        assert same(again.setting, found.setting)
        assert same(again.table, found.table)
        assert again.certificate == found.certificate
        assert again.value == found.value
        if found.bound is not None and again.bound is not None:
            assert again.bound == found.bound
        again.release(input_of(kind))


# The release


def hashable(value: Any) -> object:
    return value.item() if isinstance(value, np.generic) else value


def follows(draws: list[Any], masses: Mapping[Any, float], tests: int) -> None:
    """Chi-square of draws against a distribution; small cells are taken together."""
    seen = Counter(map(hashable, draws))
    assert set(seen) <= {key for key, mass in masses.items() if mass > 0}, "an impossible output"
    total = len(draws)
    large = {key: mass * total for key, mass in masses.items() if mass * total >= 5}
    cells = [(seen[key], mean) for key, mean in large.items()]
    rest = total - sum(large.values())
    if rest >= 5:
        cells.append((total - sum(seen[key] for key in large), rest))
    statistic = sum((observed - mean) ** 2 / mean for observed, mean in cells)
    if len(cells) > 1:
        least = float(chi2.sf(statistic, len(cells) - 1))
        assert least > _ALARM / tests, f"{seen} is not {masses}: p = {least:.2g}"


def releases_its_pmf(kind: Kind, tests: int = 2) -> None:
    found, data = answer(kind), input_of(kind)
    pmf = list(found.setting.output_weights(found.table, data))
    assert all(isinstance(weight, int) and weight >= 0 for weight in pmf)
    masses: dict[object, float] = defaultdict(float)
    for place, weight in enumerate(pmf):
        masses[hashable(found.setting.output(place))] += weight / sum(pmf)
    rng = np.random.default_rng(20120319)
    follows([found.simulate(data, rng=rng) for _ in range(_DRAWS)], masses, tests)
    follows([found.release(data) for _ in range(_DRAWS)], masses, tests)


def refuses_other_data(kind: Kind) -> None:
    """What is no input of the mechanism is refused in one sentence."""
    found = answer(kind)
    # Integers of any sign and shape are inputs of additive noise.
    integers = any(-1 in pair for pair in kind.example_neighbours() if type(pair[0]) is int)
    others = () if integers else ("-1", "3-d")
    for what in ("object", "ragged", "text", "complex", "nan", "nans", *others):
        with pytest.raises(DpoptError) as caught:
            found.release(VALUES[what]())
        says_one_sentence(caught.value)


# The proof


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a plain value that holds no list and no object."""
    if isinstance(value, dict | list | tuple):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            yield from leaves(part, (*path, key))
    else:
        yield path


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a plain value with another part."""
    if not path:
        return new
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = put(value[path[0]], path[1:], new)
    return changed


def some(paths: list[Any]) -> list[Any]:
    """No more than a number of places, spread over all of them."""
    step = -(-len(paths) // _MOST_CHANGES) if paths else 1
    return paths[::step]


def whole(text: object) -> int | None:
    """The integer that a leaf of a file holds; None if it holds something else."""
    if isinstance(text, bool):
        return None
    if isinstance(text, int):
        return text
    fits = isinstance(text, str) and re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", text)
    return int(str(text), 0) if fits else None


def next_to(value: Any) -> list[Any]:
    """Values next to a plain one, of the same kind."""
    if isinstance(value, bool):
        return [not value]
    number = whole(value)
    if number is not None:
        show = str if isinstance(value, str) else int
        return [show(number + 1), show(number - 1)]
    if isinstance(value, float):
        return [value * (1 + 1e-9) + 1e-12, value / 2 - 1e-9]
    if value is None:
        return [0.25]
    return [f"{value}?"]


def outputs_of(found: Any, path: tuple[Any, ...]) -> int:
    """For how many outputs of an input an integer of a file stands."""
    if not isinstance(found.table, Table) or path[0] != "weights":
        return 1
    return int(found.table.inputs.counts[found.table.inputs.starts[path[1]] + path[2]])


def other_units(found: Any, step: int = 1) -> Iterator[Any]:
    """Integers as a file might hold them: one is a step off, or a step is moved within its row."""
    plain = found.setting.plain(found.table)
    places = [path for path in leaves(plain) if whole(at(plain, path)) is not None]
    steps = [(path, sign) for path in some(places) for sign in (step, -step)]
    for path, by in steps:
        yield put(plain, path, _moved(at(plain, path), by))
    rows: dict[Any, list[Any]] = {}
    for path in places:
        rows.setdefault(path[:-1], []).append(path)
    for row in some(list(rows.values())):
        for one, other in islice(((a, b) for a in row for b in row if a != b), 12):
            # What outputs of one gain together, those of the other lose.
            gain, loss = outputs_of(found, other), outputs_of(found, one)
            gain, loss = (step * side // math.gcd(gain, loss) for side in (gain, loss))
            changed = put(plain, one, _moved(at(plain, one), gain))
            yield put(changed, other, _moved(at(plain, other), -loss))


def _moved(value: Any, by: int) -> Any:
    number = whole(value)
    assert number is not None
    return str(number + by) if isinstance(value, str) else number + by


def judged(found: Any, plains: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Of units as a file might hold them, those refused as not private, and those proved.

    None stands for units that were refused when they were read. No pair finds more than a proof.
    """
    refused, proved = [], []
    for plain in plains:
        units = None
        try:
            units = found.setting.read(plain)
            _proved(found.setting, units)
        except DpoptError as error:
            says_one_sentence(error)
            if isinstance(error, NotPrivateError):
                refused.append(units)
        else:
            _pair_is_within(found.guarantee, found.setting, units)
            proved.append(units)
    return refused, proved


@cache
def _refused_next(example: Callable[[], Any]) -> list[Any]:
    found, step = _solved(example, None), 1
    while True:
        refused, proved = judged(found, other_units(found, step))
        if refused or (step == 1 and not proved):
            return refused
        step *= 2
        assert proved, "all units that are distributions at all were proved private"
        assert step <= _MOST_UNITS, "many units more than there is room for were proved private"


def refused_next(kind: Kind) -> list[Any]:
    """Units as near to those of a design, by 1, 2, 4, ... units, as some that its proof refuses.

    None where the form of the units allows no others. Found once for all checks.
    """
    return _refused_next(kind.example)


def proof_refuses_units_more(kind: Kind) -> None:
    """A few units more than were proved are too much, or no distribution at all.

    How many depends on the room that is left, and on what a unit counts in the row that breaks.
    """
    found = answer(kind)
    if found.certificate is None:
        return
    assert found.certificate.slack >= 0
    refused_next(kind)


def proof_is_about_its_integers(kind: Kind) -> None:
    """No field can be given another value that the proof was not made for."""
    found = answer(kind)
    proof = found.certificate
    if proof is None:
        return
    for plain in other_units(found):
        try:
            units = found.setting.read(plain)
        except ParameterError:
            continue
        _refused(found, table=units)
    for setting in other_settings(kind):
        if fingerprint(_subject(setting, ())) != fingerprint(_subject(found.setting, ())):
            _refused(found, setting=setting)
    for field, value in {
        "claim": "everything is private",
        "guarantee": dpopt.Guarantee(proof.guarantee.epsilon + 1),
        "slack": proof.slack + 1,
        "digest": "",
    }.items():
        _refused(found, certificate=replace(proof, **{field: value}))
    bare = replace(found, certificate=None)
    assert not bare.private
    with pytest.raises(NotPrivateError):
        bare.release(input_of(kind))


def _refused(found: Any, **changes: Any) -> None:
    with pytest.raises(ParameterError):
        replace(found, **changes)
    given = {field.name: getattr(found, field.name) for field in fields(found) if field.init}
    with pytest.raises(ParameterError):
        type(found)(**{**given, **changes})


def other_settings(kind: Kind) -> Iterator[Any]:
    plain = kind.example().to_dict()
    for path in some(list(leaves(plain))):
        for value in next_to(at(plain, path)):
            try:
                other = kind.from_dict(put(plain, path, value))
            except ParameterError as error:
                says_one_sentence(error)
                continue
            if other.to_dict() != plain:
                yield other


def a_forged_pickle_is_proved_again(kind: Kind) -> None:
    """Anybody can compute a digest; a proof of what is not private nobody can make."""
    found = answer(kind)
    if found.certificate is None:
        return
    for units in [units for units in refused_next(kind) if units is not None][:3]:
        forged = found.certificate.about(*_subject(found.setting, units))
        broken = replace(found, table=units, certificate=forged)
        with pytest.raises(NotPrivateError):
            pickle.loads(pickle.dumps(broken))


def without_a_proof_nothing_is_released(kind: Kind, folder: Path) -> None:
    found = answer(kind)
    for units in [units for units in refused_next(kind) if units is not None][:3]:
        with pytest.raises(NotPrivateError):
            made(found.setting, units, strict=True)
        bare = made(found.setting, units, strict=False)
        assert (bare.private, bare.certificate) == (False, None)
        for spend in (
            lambda bare=bare: bare.release(input_of(kind)),
            lambda bare=bare: bare.save(folder / "bare.json"),
        ):
            with pytest.raises(NotPrivateError) as caught:
                spend()
            says_one_sentence(caught.value)
        bare.save(folder / "audit.json", even_if_not_private=True)
        with pytest.raises(NotPrivateError, match="audit"):
            dpopt.load(folder / "audit.json")


def a_changed_file_is_not_loaded(kind: Kind, folder: Path) -> None:
    """Every integer and every parameter, one off: under the old hash, and under a right one."""
    found, path = answer(kind), folder / "saved.json"
    found.save(path)
    text = path.read_text(encoding="utf-8")
    record = json.loads(text)
    places = {
        part: some([(part, *rest) for rest in leaves(record["body"].get(part))])
        for part in record["body"]
    }
    for number, place in enumerate(place for part in places.values() for place in part):
        for value in next_to(at(record["body"], place))[: 1 + (number % 2)]:
            body = put(record["body"], place, value)
            path.write_text(json.dumps({**record, "body": body}), encoding="utf-8")
            with pytest.raises((ParameterError, NotPrivateError)) as caught:
                dpopt.load(path)
            says_one_sentence(caught.value)
            seal(record["kind"], body, path)
            loaded_as_it_is(kind, path)


def loaded_as_it_is(kind: Kind, path: Path) -> None:
    """A right hash protects from accidents only: what is loaded was proved, from its integers."""
    try:
        again = dpopt.load(path)
    except (ParameterError, NotPrivateError) as error:
        says_one_sentence(error)
        return
    assert type(again.setting) is kind
    body = read_sealed(path).body
    assert again.certificate is not None
    assert same(again.table, again.setting.read(body["table"]))
    assert again.certificate == _proved(again.setting, again.table)
    assert again.value == again.setting.value(again.table)
    assert math.isfinite(again.value)


def pairs_are_within_the_guarantee(kind: Kind) -> None:
    """The dominating pair, from other code than the proof, allows no more than is promised."""
    found = answer(kind)
    if found.certificate is None:
        return
    _pair_is_within(found.guarantee, found.setting, found.table)


def _pair_is_within(promised: dpopt.Guarantee, setting: Any, units: Any) -> None:
    try:
        pair = setting.dominating(units)
    except ParameterError as error:
        says_one_sentence(error)
        return
    # Where epsilon is the logarithm of a rational, or a product, the float of it is rounded.
    above = math.nextafter(math.nextafter(promised.epsilon, math.inf), math.inf)
    assert pair.delta(above) <= promised.delta * (1 + 1e-12), "a pair finds more than was proved"


def mixed(setting: Any, units: Any, pair: tuple[Any, Any]) -> list[int]:
    """The pmf for the first of two inputs; of votes, a vote that differs says either, by chance."""
    if setting.behind is None:
        return list(setting.output_weights(units, pair[0]))
    chances, total = exp_lower(setting.behind[0].epsilon, 64).as_integer_ratio(), Counter[int]()
    differing = [i for i, (vote, other) in enumerate(zip(*pair, strict=True)) if vote != other]
    for said in product((0, 1), repeat=len(differing)):
        votes = list(pair[0])
        for i, which in zip(differing, said, strict=True):
            votes[i] = pair[which][i]
        pmf, weight = (
            setting.output_weights(units, votes),
            math.prod(chances[which] for which in said),
        )
        assert sum(pmf) == sum(setting.output_weights(units, pair[0])), (
            "distributions of different sums"
        )
        total.update({y: weight * w for y, w in enumerate(pmf)})
    return [total[y] for y in sorted(total)]


def proof_refuses_negative_units(kind: Kind) -> None:
    """A weight below 0 is refused, also where another one makes up for it in the sum."""
    found = answer(kind)
    if found.certificate is None:
        return
    plain = found.setting.plain(found.table)
    for path in some([path for path in leaves(plain) if whole(at(plain, path)) is not None]):
        mass = whole(at(plain, path))
        assert mass is not None
        negative = put(plain, path, _moved(at(plain, path), -mass - 1))
        beside = (p for p in leaves(plain) if p[:-1] == path[:-1] and p != path)
        others = [p for p in beside if whole(at(plain, p)) is not None]
        for changed in (
            negative,
            *(put(negative, p, _moved(at(plain, p), mass + 1)) for p in others[:1]),
        ):
            with pytest.raises(DpoptError) as caught:
                _proved(found.setting, found.setting.read(changed))
            says_one_sentence(caught.value)


def neighbours_are_within_the_guarantee(kind: Kind) -> None:
    """What is drawn for neighbouring inputs, in integers, whatever the proof says of them."""
    found, pairs = answer(kind), kind.example_neighbours()
    if found.certificate is None:
        return
    assert pairs, "the kind names no neighbouring inputs of its example"
    promised, proof = found.guarantee, found.certificate
    # Where epsilon is the logarithm of a rational, the float of it is rounded.
    above = math.nextafter(math.nextafter(promised.epsilon, math.inf), math.inf)
    ratio, delta = exp_upper(above), Fraction(promised.delta)
    for one, other in (way for pair in pairs for way in (pair, pair[::-1])):
        pmfs = [mixed(found.setting, found.table, way) for way in ((one, other), (other, one))]
        p, q = ([Fraction(w, sum(pmf)) for w in pmf] for pmf in pmfs)
        assert len(p) == len(q), f"{one} and {other} have different numbers of outputs"
        assert min(*pmfs[0], *pmfs[1]) >= 0, f"{one} or {other} has a negative weight"
        excess = sum(max(a - ratio * b, Fraction(0)) for a, b in zip(p, q, strict=True))
        assert excess <= delta, f"{one} and {other} break the guarantee by {float(excess):.3g}"
        if delta == 0:
            least = min(ratio * b - a for a, b in zip(p, q, strict=True) if a or b)
            assert least >= proof.slack, f"{one} and {other} have less slack than was proved"


CHECKS: tuple[Callable[..., None], ...] = (
    *(is_described, survives_its_file, refuses_wrong_parameters, refuses_hostile_values),
    *(solvers_agree, bound_is_no_worse),
    *(is_shown, copies_are_the_same, comes_back_from_its_file),
    a_changed_file_is_not_loaded,
    *(releases_its_pmf, refuses_other_data, proof_refuses_units_more),
    *(proof_is_about_its_integers, a_forged_pickle_is_proved_again),
    *(without_a_proof_nothing_is_released, pairs_are_within_the_guarantee),
    *(proof_refuses_negative_units, neighbours_are_within_the_guarantee),
)


def run(check: Callable[..., None], kind: Kind, folder: Path) -> None:
    """Run one check, in an empty folder if it asks for one."""
    given = {"folder": folder} if "folder" in inspect.signature(check).parameters else {}
    check(kind, **given)

"""What the tabs show, for every kind: the fields as texts, the answer, and the lines, run."""

import json
import math
import re
import shlex
from contextlib import redirect_stdout
from dataclasses import replace
from fractions import Fraction
from io import StringIO
from typing import Any, cast

import pytest

import dpopt
from dpopt._page import drawing, svg_of
from dpopt.cli import main
from dpopt.design import Question
from dpopt.explore.fields import (
    code_of,
    command_of,
    fields_of,
    near,
    setting_of,
    summary_of,
    texts_of,
)
from dpopt.explore.render import about, html_of, page_of, refusal
from dpopt.explore.view import Table, View, number, view_of
from dpopt.kernel import KernelSetting
from tests.explore.naps import Nap

Kind = type[Question[Any]]
KINDS: tuple[Kind, ...] = (*dpopt.kinds(), Nap)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)


def ran(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()):
        exec(code, names)
    return names


@every_kind
def test_a_setting_is_its_texts(kind: Kind) -> None:
    example = kind.example()
    again = setting_of(kind, texts_of(example))
    assert again.to_dict() == example.to_dict()
    assert type(again) is kind


def test_rows_over_a_kernel_and_what_it_keeps_are_texts_too() -> None:
    """Lists of tables are JSON, in the controls and on the command line."""
    keeps = ([[1.0, 1.0]], [[1.0, 1.0]])
    cap = [("cap: a, b", [[0.0, 0.0, 0.0, 1.0]], None, 0.6)]
    setting = KernelSetting("zero-one", 1.0, inputs=2, invariant=keeps, rows=cap)
    texts = texts_of(setting)
    assert texts["loss"] == "zero-one"
    assert setting_of(KernelSetting, texts).to_dict() == setting.to_dict()
    words = shlex.split(command_of(setting))[1:]
    printed = StringIO()
    with redirect_stdout(printed), pytest.raises(SystemExit):
        main([*words, "--json"])
    found = json.loads(printed.getvalue())
    assert found["setting"] == json.loads(json.dumps(setting.to_dict()))
    assert found["value"] == dpopt.design(setting).value
    assert ran(code_of(setting))["answer"].value == found["value"]


@every_kind
def test_every_field_is_explained_and_so_is_the_kind(kind: Kind) -> None:
    first, _ = summary_of(kind)
    assert first.endswith(".")
    assert [field.name for field in fields_of(kind) if not field.says] == []


@every_kind
def test_what_is_shown_is_what_its_code_computes(kind: Kind) -> None:
    example = kind.example()
    shown = view_of(example)
    assert shown.good == getattr(dpopt.design(example), "private", True)
    assert shown.code.count("\n") < 100
    names = ran(shown.code)
    answer = names["answer"]
    assert type(names["setting"]) is kind
    facts = (answer.value, answer.bound, answer.gap)
    assert [shown.facts[name] for name in ("value", "bound", "gap")] == [*map(number, facts)]
    columns = answer.setting.columns(answer.units)
    assert shown.table.head == tuple(columns)
    shown_columns = list(zip(*shown.table.rows, strict=True))
    for column, texts in zip(columns.values(), shown_columns, strict=True):
        assert len(column) == len(texts) + shown.table.left_out
        assert [number(value) for value in column][: len(texts)] == list(texts)


@pytest.mark.parametrize("kind", dpopt.kinds(), ids=lambda kind: kind.kind)
def test_the_command_shown_answers_the_same(kind: Kind, capsys: pytest.CaptureFixture[str]) -> None:
    example = kind.example()
    with pytest.raises(SystemExit) as ended:
        main([*shlex.split(command_of(example))[1:], "--json"])
    assert ended.value.code == 0
    answered = json.loads(capsys.readouterr().out)
    assert answered["value"] == pytest.approx(dpopt.design(example).value, rel=1e-12)
    assert answered["setting"] == example.to_dict()


@every_kind
def test_the_picture_is_the_same_twice_and_fetches_nothing(kind: Kind) -> None:
    first = view_of(kind.example())
    assert first == view_of(kind.example())
    svg = first.picture
    assert svg.startswith("<svg ")
    assert "currentColor" in svg
    assert "#010203" not in svg
    assert "script" not in svg
    # Links point into the picture, or hold the pixels themselves; names are only names.
    links = re.findall(r'href="([^"]*)"', svg)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", svg)


@every_kind
def test_any_text_gives_numbers_or_a_sentence(kind: Kind) -> None:
    texts = texts_of(kind.example())
    for field in fields_of(kind):
        for text in ("", ":", "nan", "-1", "1e999", "'; import os", "{x}", "<b>&", "\x00", "1:2:x"):
            html = html_of(kind, texts | {field.name: text})
            assert ("data-fact" in html) != ('role="alert"' in html)
            assert "<b>" not in html


@every_kind
def test_numbers_near_are_taken(kind: Kind) -> None:
    example = kind.example()
    for field in fields_of(kind):
        if field.base in ("int", "float"):
            numbers = near(example, field.name)
            if getattr(example, field.name) is None:
                assert numbers == []
                continue
            assert numbers == sorted(set(numbers))
            assert getattr(example, field.name) in numbers
            for extreme in (numbers[0], numbers[-1]):
                assert replace(cast(Any, example), **{field.name: extreme}).kind == kind.kind


def test_near_a_count_a_large_number_and_nothing() -> None:
    assert near(Nap(0.0, pages=3), "pages") == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]
    assert near(Nap(0.0), "seconds") == [0.0] + [10.0**power for power in range(-12, -1)]
    large = near(Nap(0.0, pages=1001), "pages")
    assert all(pages % 2 for pages in large)
    assert (min(large), max(large)) == (15, 1001)
    around = near(Nap(0.37), "seconds")
    assert (around[0], around[-1], len(around)) == (0.001, 80.0, 51)


def test_fields_are_read_as_their_annotation_says() -> None:
    fields = {field.name: field for field in fields_of(Nap)}
    assert fields["ending"].choices == ("answer", "death", "not < or &")
    assert fields["seconds"].says == "to sleep before the answer; at least 0."
    assert fields["dreams"].read("true") is True
    assert fields["pages"].read("x") == "x"
    assert fields["others"].read(" ") is None
    for annotation, text, value in (
        ("Numbers", "0.5, 1 2", [0.5, 1, 2]),
        ("Table", "1:0.5,3:4", [[1, 0.5], [3, 4]]),
        ("Table", "1,2", [1, 2]),
        ("Table | None", "1:2", [[1, 2]]),
        ("Fraction | None", "1/3", Fraction(1, 3)),
        ("Fraction | None", "1/0", "1/0"),
        ("Prior", "uniform:0,1", "uniform:0,1"),
        ("float", "1e-3", 0.001),
    ):
        assert replace(fields["seconds"], annotation=annotation).read(text) == value


def test_code_and_command_leave_defaults_out() -> None:
    setting = Nap(0.5, ending="not < or &", dreams=True)
    assert command_of(setting) == "dpopt nap --seconds 0.5 --ending 'not < or &' --dreams"
    assert 'Nap(seconds=0.5, ending="not < or &", dreams=True)\n' in code_of(setting)
    assert code_of(Nap(0.5)).splitlines()[1:4] == [
        "from tests.explore.naps import Nap",
        "",
        "setting = Nap(seconds=0.5)",
    ]
    texts = shlex.split(command_of(setting))[2:6:1]
    assert texts == ["--seconds", "0.5", "--ending", "not < or &"]


def test_a_long_table_says_how_much_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"x": range(1060), "y": range(1060)}
    monkeypatch.setattr(Nap, "columns", lambda *_: columns)
    shown = view_of(Nap(0.0))
    assert (len(shown.table.rows), shown.table.left_out) == (60, 1000)
    assert "<p>1,000 more rows.</p>" in page_of(shown)


def test_a_picture_scales_up_to_its_own_size() -> None:
    with drawing(2.5, 1.0) as figure:
        figure.subplots()
        svg = svg_of(figure)
    opening = svg.split(">", 1)[0]
    assert 'viewBox="0 0 180 72"' in opening
    assert 'style="max-width: 240px"' in opening
    assert ' width="' not in opening


def test_html_escapes_every_text_and_holds_every_number() -> None:
    bad = '<img src=x onerror="alert(1)">'
    spoilt = View(bad, False, {bad: bad}, Table((bad,), ((bad,),)), "<svg></svg>", bad, bad)
    for html in (page_of(spoilt), refusal(bad)):
        assert "<img" not in html
        assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in html
    assert 'class="verdict refuted"' in page_of(spoilt)
    shown = view_of(Nap(0.25))
    for name, text in shown.facts.items():
        assert f'<dd data-fact="{name}">{text}</dd>' in page_of(shown)
    assert page_of(shown).count("<tr data-row=") == len(shown.table.rows)
    assert "x &gt;= seconds" in about(Nap)


def test_numbers() -> None:
    shown = [number(value) for value in (None, 0.1, 1 / 3, -0.0, True, 2**70, "text")]
    assert shown == ["–", "0.1", "0.333333", "0", "True", "1180591620717411303424", "text"]
    assert number(math.nan) == "nan"

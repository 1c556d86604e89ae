"""Bad input to what all kinds share is answered with one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpopt
from dpopt import ParameterError, Setting, _kinds
from dpopt._figure import result_page
from dpopt.proofs.saved import seal
from dpopt.shape import kind_of, made
from dpopt.table import Graph, Losses
from tests.robustness.hostile import VALUES
from tests.shape.checks import says_one_sentence
from tests.shape.toys import Coin, Odds, registered


def test_kinds_are_in_the_order_of_their_names() -> None:
    names = [kind.kind for kind in dpopt.kinds()]
    assert names == sorted(set(names))
    assert not [name for name in names if name.startswith("toy")]
    with registered():
        assert Coin in dpopt.kinds()
        assert kind_of("toy-coin") is Coin
    assert kind_of("toy-coin") is None


def test_what_is_no_setting() -> None:
    for what in VALUES:
        for call in (dpopt.design, lambda value: made(value, ())):
            with pytest.raises(ParameterError, match="^setting is ") as caught:
                call(VALUES[what]())  # type: ignore[arg-type]
            says_one_sentence(caught.value)


@pytest.mark.parametrize(
    "pmf", [None, 3, [], [0, 0], [2, -1], [0.75, 0.25], [1, 0.5], np.array([3, 1])], ids=repr
)
def test_a_distribution_that_is_none(pmf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dpopt.design(Odds(1.0))
    monkeypatch.setattr(Odds, "output_weights", lambda *_: pmf)
    for draw in (found.release, lambda data: found.simulate(data, np.random.default_rng(1))):
        with pytest.raises(
            ParameterError, match="^output_weights of kind 'toy-odds' must"
        ) as caught:
            draw(1)
        says_one_sentence(caught.value)


@pytest.mark.parametrize("proof", [None, True, "private"])
def test_a_proof_that_is_none(proof: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Coin, "judge", lambda *_: proof)
    with pytest.raises(ParameterError, match="^judge of kind 'toy-coin' returned .* Certificate"):
        dpopt.design(Coin(1.0))


def loose(frozen: bool, name: str | None) -> type[Any]:
    """A setting, of a kind if it has a name."""
    named = type("Named", (Setting,), {} if name is None else {"kind": name})

    @dataclass(frozen=frozen)
    class Loose(named):
        scale: float
        domain = property(lambda _: Graph(2, 2))
        losses = property(lambda _: Losses(np.array([0.0, 1.0, 1.0, 0.0])))

        @classmethod
        def example(cls) -> Loose:
            return cls(1.0)

        @property
        def guarantee(self) -> dpopt.Guarantee:
            return dpopt.Guarantee(self.scale)

    return Loose


def test_a_setting_that_could_change_after_its_proof() -> None:
    with pytest.raises(ParameterError, match=r"Loose, which must be a dataclass\(frozen=True\)"):
        dpopt.design(loose(frozen=False, name="loose")(1.0))
    with pytest.raises(ParameterError, match="Loose, which must say its kind"):
        dpopt.design(loose(frozen=True, name=None)(1.0))
    found = dpopt.design(loose(frozen=True, name="loose")(1.0))
    assert found.value == pytest.approx(1 / (1 + math.e), rel=1e-9)


def test_a_kind_has_a_name_of_its_own() -> None:
    before = dpopt.kinds()
    wrong = {
        "kind is .* lower case": ["", "Coin", "a kind", "3", "-x", None, 3, "kern\u00e9l"],
        "the command line has a verb of that name": [*_kinds.VERBS],
        "another class is of that kind already": [kind.kind for kind in before],
    }
    for message, names in wrong.items():
        for name in names:
            with pytest.raises(ParameterError, match=message):
                type("Mine", (Coin,), {"kind": name})
    assert dpopt.kinds() == before
    with registered():
        # The cell of a notebook is run twice.
        again = dataclass(frozen=True)(
            type("Coin", (Coin,), {"kind": "toy-coin", "__module__": Coin.__module__})
        )
        assert kind_of("toy-coin") in (again, *again.__bases__, Coin)


def test_a_file_of_an_unknown_kind(tmp_path: Path) -> None:
    for kind in ["nonsense", "", "../majority", "audit?", "x" * 5000, "\u202e"]:
        path = tmp_path / "saved.json"
        seal(kind, {"setting": {}, "table": [], "bound": None}, path)
        with pytest.raises(
            ParameterError, match="its kind is .*; known are .* import the module"
        ) as caught:
            dpopt.load(path)
        says_one_sentence(caught.value)


def test_an_error_in_a_kind_of_ones_own_is_kept_as_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "saved.json"
    with registered():
        dpopt.design(Coin(1.0)).save(path)
        monkeypatch.setattr(Coin, "read", lambda _, plain: plain + "")
        with pytest.raises(ParameterError, match="missing or malformed") as caught:
            dpopt.load(path)
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_setting_says_its_losses_or_its_program() -> None:
    class Silent(Coin):
        problem, value = Setting.problem, Setting.value

    with pytest.raises(ParameterError, match="says neither its losses nor its problem"):
        dpopt.design(Silent(1.0), backend="highs")


def test_columns_of_ones_own_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dpopt.design(Coin(math.log(3)))
    for table, places, name in (
        ({"told": ["yes", "no"], "mass": [0.75, 0.25], "in words": ["3/4", "1/4"]}, [0, 1], "told"),
        ({"x": np.array([2, 5]), "y": [1, 1], "mass": np.array([0.75, 0.25])}, [2, 5], "x"),
        ({"mass": [0.75, 0.25]}, [0, 1], "place"),
    ):
        monkeypatch.setattr(Coin, "columns", lambda *_, table=table: table)
        axes = found.plot(label="coin")
        (line,) = axes.get_lines()
        np.testing.assert_array_equal(line.get_xdata(orig=False), places)
        np.testing.assert_array_equal(line.get_ydata(), [0.75, 0.25])
        assert (axes.get_xlabel(), axes.get_ylabel()) == (name, "mass")
        assert line.get_label() == "coin"
    monkeypatch.setattr(Coin, "columns", lambda *_: {"told": ["yes"]})
    with pytest.raises(ParameterError, match="none holds numbers alone: override draw"):
        found.plot()


def test_where_a_plot_refuses_its_reason_is_shown() -> None:
    def refuse(axes: object) -> None:
        del axes
        raise ParameterError("n is 1e9; a plot is made up to <1e6>.")

    page = result_page("Thing", "a < b", None, {"<x>": "<y>"}, refuse)
    assert "No picture: n is 1e9; a plot is made up to &lt;1e6&gt;." in page
    assert "a &lt; b" in page
    assert "&lt;x&gt;" in page
    assert "<y>" not in page

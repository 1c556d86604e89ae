"""The page in a real browser: what it shows, what follows a slider, what it never asks for."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dpopt
from dpopt.explore.fields import fields_of, near
from dpopt.explore.view import number, view_of
from dpopt.majority import MajoritySetting, parse_prior
from tests.browser import chromium, complaints, find_all, requested, wait_for
from tests.explore.serving import explorer

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytest.importorskip("panel", reason="panel is not installed (extra explore)")

_OF_LABEL = 'return arguments[0].getRootNode().querySelector("input, select");'
_TEXTS = "return arguments[0].map(element => element.textContent);"
_KINDS = {kind.kind: kind for kind in dpopt.kinds()}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Chrome"]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver, explorer() as (_, address):
        driver.get(address)
        yield driver


@pytest.fixture
def fresh(page: "Chrome") -> "Chrome":
    page.refresh()
    wait_for(lambda: sorted(tab.text for tab in find_all(page, ".bk-tab")), sorted(_KINDS))
    go_to(page, "majority")
    return page


def go_to(page: "Chrome", name: str) -> None:
    next(tab for tab in find_all(page, ".bk-tab") if tab.text == name).click()
    wait_for(lambda: len(find_all(page, f".controls.{name}")), 1)
    wait_for(lambda: len(find_all(page, '[data-fact="value"]')), 1)


def fact(page: "Chrome", name: str) -> str:
    return find_all(page, f'[data-fact="{name}"]')[0].text


def control(page: "Chrome", name: str) -> "WebElement":
    """The input or select of a field."""
    return page.execute_script(_OF_LABEL, find_all(page, "label")[labels(page).index(name)])


def labels(page: "Chrome") -> list[str]:
    """The names of the fields, which the labels begin with."""
    texts = page.execute_script(_TEXTS, find_all(page, "label"))
    return [text.strip().split(":")[0] for text in texts]


def enter(page: "Chrome", field: "WebElement", text: str) -> None:
    from selenium.webdriver import ActionChains, Keys

    # Typed at the focus: an element of a shadow tree loses its selection when sent keys itself.
    page.execute_script("arguments[0].focus(); arguments[0].select();", field)
    ActionChains(page).send_keys(text, Keys.ENTER).perform()


def test_every_tab_shows_what_python_computes_and_asks_no_other_machine(
    page: "Chrome", fresh: "Chrome"
) -> None:
    for name, kind in _KINDS.items():
        go_to(fresh, name)
        expected = view_of(kind.example())
        for told, text in expected.facts.items():
            assert fact(fresh, told) == " ".join(text.split())
        assert [line.text for line in find_all(fresh, "pre[data-code]")] == [
            expected.code,
            expected.command,
        ]
        assert find_all(fresh, ".verdict")[0].text == " ".join(expected.verdict.split())
        assert len(find_all(fresh, "figure svg")) == 1
        assert len(find_all(fresh, "tr[data-row]")) == len(expected.table.rows)
        assert labels(fresh) == [field.name for field in fields_of(kind)]
    asked = requested(page)
    assert any(address.startswith("ws://127.0.0.1:") for address in asked)
    assert [
        address for address in asked if address.split("/")[2].split(":")[0] != "127.0.0.1"
    ] == []
    assert complaints(page) == []


def test_a_slider_solves_again(fresh: "Chrome") -> None:
    from selenium.webdriver import Keys

    before = find_all(fresh, "figure svg")[0].get_attribute("outerHTML")
    example = MajoritySetting.example()
    voters = near(example, "mechanisms")
    more = voters[voters.index(example.mechanisms) + 1]
    assert more == example.mechanisms + 2
    find_all(fresh, ".noUi-handle")[0].send_keys(Keys.ARROW_RIGHT)
    larger = dpopt.design(MajoritySetting(int(more), example.epsilon, example.allowance))
    wait_for(lambda: fact(fresh, "value"), number(larger.value))
    assert control(fresh, "mechanisms").get_attribute("value") == str(more)
    assert find_all(fresh, "figure svg")[0].get_attribute("outerHTML") != before
    assert f"mechanisms={more}" in find_all(fresh, "pre[data-code]")[0].text


def test_what_is_typed_or_chosen_solves_again(fresh: "Chrome") -> None:
    enter(fresh, control(fresh, "mechanisms"), "11")
    enter(fresh, control(fresh, "epsilon"), "0.1")
    enter(fresh, control(fresh, "allowance"), "3")
    # README: the error of eleven voters of epsilon 0.1 whose majority may spend 0.3.
    wait_for(lambda: fact(fresh, "expected error"), "0.0256204")
    enter(fresh, control(fresh, "prior"), "uniform:0,1")
    wait_for(lambda: fact(fresh, "expected error"), "0.0154715")
    enter(fresh, control(fresh, "prior"), "common-uniform:0,1")
    enter(fresh, control(fresh, "delta"), "1e-9")
    wait_for(lambda: find_all(fresh, ".verdict")[0].text.startswith("(0.3, 1e-09)-DP: "), True)
    prior = parse_prior("common-uniform:0,1")
    setting = MajoritySetting(11, 0.1, 3.0, delta=1e-9, prior=prior)
    assert fact(fresh, "value") == number(dpopt.design(setting).value)
    control(fresh, "objective").send_keys("worst-case")
    setting = MajoritySetting(11, 0.1, 3.0, delta=1e-9, prior=prior, objective="worst-case")
    wait_for(lambda: fact(fresh, "value"), number(dpopt.design(setting).value))


def test_lines_can_be_copied(fresh: "Chrome") -> None:
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    fresh.execute_cdp_cmd("Browser.grantPermissions", grant)
    read = "navigator.clipboard.readText().then(arguments[0], arguments[0])"
    for place, beginning in enumerate(("import dpopt\n", "dpopt majority --mechanisms ")):
        find_all(fresh, ".code button")[place].click()
        shown = str(find_all(fresh, "pre[data-code]")[place].get_property("textContent"))
        wait_for(lambda: fresh.execute_async_script(read), shown)
        assert shown.startswith(beginning)


def test_bad_input_is_a_sentence_and_leaves_no_number(fresh: "Chrome") -> None:
    shown = fact(fresh, "value")
    for name, text, said in (
        ("mechanisms", "10", "mechanisms is 10; it must be odd"),
        ("prior", "<b>gauss</b>", "prior is '<b>gauss</b>'; it must have the form"),
        ("mechanism_delta", "1e-9", "mechanism_delta is 1e-09 and delta 0; mechanism_delta must"),
    ):
        before = str(control(fresh, name).get_attribute("value"))
        enter(fresh, control(fresh, name), text)
        wait_for(lambda: len(find_all(fresh, "[role=alert]")), 1)
        assert find_all(fresh, "[role=alert]")[0].text.startswith(said)
        assert find_all(fresh, "[data-fact]") == find_all(fresh, "figure") == []
        enter(fresh, control(fresh, name), before)
        wait_for(lambda: fact(fresh, "value"), shown)


def test_a_published_rule_that_fails_says_so(fresh: "Chrome") -> None:
    go_to(fresh, "roo")
    for name, text in (("records", "20"), ("letters", "3"), ("epsilon", "0.1")):
        enter(fresh, control(fresh, name), text)
    control(fresh, "rule").send_keys("conference")
    wait_for(lambda: len(find_all(fresh, ".verdict.refuted")), 1)
    said = find_all(fresh, ".verdict")[0].text
    assert said.startswith("Not private; it releases nothing.")
    assert "1.00668" in said


def test_light_and_dark(tmp_path: Path) -> None:
    with explorer() as (_, address):
        for dark in (False, True):
            profile = tmp_path / str(dark)
            profile.mkdir()
            with chromium(profile, dark=dark, size=(420, 900)) as driver:
                driver.get(address)
                wait_for(lambda: len(find_all(driver, "figure svg")), 1)
                shades = [
                    brightness(driver, *pair)
                    for pair in (
                        ("body", "background-color"),
                        ("[data-fact]", "color"),
                        ("label", "color"),
                        ("input", "color"),
                        ("pre", "color"),
                        (".bk-tab", "color"),
                        ("figure svg", "color"),
                    )
                ]
                assert (shades[0] < 60) is dark
                assert all((shade > 160) is dark for shade in shades[1:])
                # Nothing sticks out of a narrow window; wide tables scroll by themselves.
                wide = "return document.documentElement.scrollWidth - window.innerWidth"
                assert driver.execute_script(wide) <= 0


def brightness(driver: "Chrome", selector: str, quality: str) -> float:
    colour = find_all(driver, selector)[0].value_of_css_property(quality)
    channels = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(float(channel) for channel in channels) / 3

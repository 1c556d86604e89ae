"""The page in a real browser: what it shows, what follows a slider, what it never asks for."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dpopt import kernel, majority, public_prior, roo
from dpopt.explore.view import number
from tests.browser import chromium, complaints, find_all, requested, wait_for
from tests.explore.serving import explorer

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytest.importorskip("panel", reason="panel is not installed (extra explore)")

_TABS = ["Majority vote", "Kernel", "Public prior", "Reveal or obscure"]
_OF_LABEL = 'return arguments[0].getRootNode().querySelector("input, select");'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Chrome"]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver, explorer() as (_, address):
        driver.get(address)
        yield driver


@pytest.fixture
def fresh(page: "Chrome") -> "Chrome":
    page.refresh()
    wait_for(lambda: [tab.text for tab in find_all(page, ".bk-tab")], _TABS)
    wait_for(lambda: len(find_all(page, "[data-fact]")) > 0, True)
    return page


def go_to(page: "Chrome", name: str, fact: str) -> None:
    find_all(page, ".bk-tab")[_TABS.index(name)].click()
    wait_for(lambda: len(find_all(page, f'[data-fact="{fact}"]')), 1)


def fact(page: "Chrome", name: str) -> str:
    return find_all(page, f'[data-fact="{name}"]')[0].text


def row(page: "Chrome", name: str, table: int = 0) -> list[str]:
    """The texts of the row that starts with ``name``, of those there are the ``table``-th."""
    found = find_all(page, f'tr[data-row="{name}"]')[table]
    return [cell.text for cell in find_cells(found)]


def find_cells(element: "WebElement") -> "list[WebElement]":
    return element.find_elements("css selector", "td")


def control(page: "Chrome", label: str) -> "WebElement":
    """The input or select that a label belongs to."""
    (found,) = [item for item in find_all(page, "label") if item.text.strip() == label]
    return page.execute_script(_OF_LABEL, found)


def enter(page: "Chrome", field: "WebElement", text: str) -> None:
    from selenium.webdriver import ActionChains, Keys

    # Typed at the focus: an element of a shadow tree loses its selection when sent keys itself.
    page.execute_script("arguments[0].focus(); arguments[0].select();", field)
    ActionChains(page).send_keys(text, Keys.ENTER).perform()


def press_right(page: "Chrome", slider: int) -> None:
    from selenium.webdriver import Keys

    find_all(page, ".noUi-handle")[slider].send_keys(Keys.ARROW_RIGHT)


def test_the_majority_tab_shows_what_dpopt_computes(fresh: "Chrome") -> None:
    design = majority.design(11, 0.1, 3)
    assert fact(fresh, "expected error") == number(design.expected_error) == "0.0154715"
    assert fact(fresh, "epsilon spent") == "0.3"
    shown = [row(fresh, str(ones))[0] for ones in range(6, 12)]
    assert shown == [number(value) for value in design.gamma[6:]]
    # The paper's gamma and subsampling, as README and PAPERS.md have them.
    assert row(fresh, "the paper's")[0].startswith("0.0377")
    assert row(fresh, "subsampling")[0].startswith("0.0953")
    assert len(find_all(fresh, "figure svg")) == 1


def test_a_slider_solves_again(fresh: "Chrome") -> None:
    before = find_all(fresh, "figure svg")[0].get_attribute("outerHTML")
    press_right(fresh, 0)
    design = majority.design(13, 0.1, 3)
    wait_for(lambda: fact(fresh, "expected error"), number(design.expected_error))
    shown = [row(fresh, str(ones))[0] for ones in range(7, 14)]
    assert shown == [number(value) for value in design.gamma[7:]]
    press_right(fresh, 1)
    design = majority.design(13, 0.1, 3.25)
    wait_for(lambda: fact(fresh, "expected error"), number(design.expected_error))
    assert fact(fresh, "epsilon allowed") == "0.325"
    assert find_all(fresh, "figure svg")[0].get_attribute("outerHTML") != before
    assert "mechanisms=13" in find_all(fresh, "pre[data-code]")[0].text


def test_delta_and_a_prior_solve_again(fresh: "Chrome") -> None:
    control(fresh, "delta of the majority (delta)").send_keys("1e-9")
    enter(fresh, control(fresh, "Prior of the voters' p"), "common-uniform:0,1")
    design = majority.design(11, 0.1, 3, delta=1e-9, prior="common-uniform:0,1")
    wait_for(lambda: fact(fresh, "expected error"), number(design.expected_error))
    assert "(0.3, 1e-09)-DP" in find_all(fresh, ".verdict")[0].text


def test_a_number_typed_beside_its_slider_solves_again(fresh: "Chrome") -> None:
    enter(fresh, find_all(fresh, "input")[2], "0.25")
    design = majority.design(11, 0.25, 3)
    wait_for(lambda: fact(fresh, "expected error"), number(design.expected_error))
    enter(fresh, find_all(fresh, "input")[0], "10")
    wait_for(lambda: len(find_all(fresh, "[role=alert]")), 1)
    assert find_all(fresh, "[role=alert]")[0].text.startswith("mechanisms is 10; it must be odd")


def test_the_code_can_be_copied(fresh: "Chrome") -> None:
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    fresh.execute_cdp_cmd("Browser.grantPermissions", grant)
    find_all(fresh, ".code button")[0].click()
    read = "navigator.clipboard.readText().then(arguments[0], arguments[0])"
    shown = find_all(fresh, "pre[data-code]")[0].get_property("textContent")
    wait_for(lambda: fresh.execute_async_script(read), shown)
    assert str(shown).startswith("from dpopt import majority")


def test_bad_input_is_a_sentence_and_leaves_no_number(fresh: "Chrome") -> None:
    enter(fresh, control(fresh, "Prior of the voters' p"), "<b>gauss</b>")
    wait_for(lambda: len(find_all(fresh, "[role=alert]")), 1)
    said = find_all(fresh, "[role=alert]")[0].text
    assert said.startswith("prior is '<b>gauss</b>'; it must have the form uniform:LOW,HIGH")
    assert find_all(fresh, "[data-fact]") == find_all(fresh, "figure") == []
    enter(fresh, control(fresh, "Prior of the voters' p"), "uniform:0,1")
    wait_for(lambda: fact(fresh, "expected error"), "0.0154715")


def test_a_voter_less_private_than_the_majority_is_a_sentence(fresh: "Chrome") -> None:
    control(fresh, "Delta of each voter (mechanism_delta)").send_keys("1e-9")
    wait_for(lambda: len(find_all(fresh, "[role=alert]")), 1)
    said = find_all(fresh, "[role=alert]")[0].text
    assert said == ("mechanism_delta is 1e-09 and delta 0; mechanism_delta must not exceed delta.")


def test_the_kernel_tab(fresh: "Chrome") -> None:
    go_to(fresh, "Kernel", "dual bound")
    x = list(range(9))
    loss = [[abs(a - b) for b in x] for a in x]
    design = kernel.optimal_kernel(loss, epsilon=1.0, graph="path")
    assert fact(fresh, "value") == number(design.value)
    assert row(fresh, "4")[0] == number(design.expected_losses[4])
    assert row(fresh, "4")[1:] == [number(p, 3) for p in design.kernel[4]]
    control(fresh, "Objective").send_keys("minimax")
    design = kernel.optimal_kernel(loss, epsilon=1.0, graph="path", objective="minimax")
    wait_for(lambda: fact(fresh, "value"), number(design.value))
    # README: largest expected |error| of a count of 0..8 people.
    assert float(fact(fresh, "value")) == pytest.approx(0.7743, abs=5e-5)


def test_the_prior_tab(fresh: "Chrome") -> None:
    go_to(fresh, "Public prior", "Gamma_TV")
    q = [0.05, 0.1, 0.15, 0.2, 0.5]
    assert fact(fresh, "Gamma_TV") == "0.874839"
    for place, design in enumerate((public_prior.minimax_kernel, public_prior.leximin_kernel)):
        kept = design(q, 1.0).diagonal
        assert [row(fresh, str(i))[1 + place] for i in range(5)] == [number(k) for k in kept]
    enter(fresh, control(fresh, "Public prior q"), "0.5, 0.2")
    wait_for(
        lambda: [said.text for said in find_all(fresh, "[role=alert]")],
        ["prior sums to 0.7; it must sum to 1 up to 1e-09: divide it by its sum."],
    )
    enter(fresh, control(fresh, "Public prior q"), "0.25 0.25 0.25 0.25")
    # The uniform prior: (1 - q_min) / (e q_min + 1 - q_min) = 3 / (e + 3).
    wait_for(lambda: fact(fresh, "Gamma_TV"), number(3 / (math.e + 3)))


def test_the_rule_tab(fresh: "Chrome") -> None:
    go_to(fresh, "Reveal or obscure", "largest q_m")
    exact = roo.min_count(20, 3, 0.1)
    shown = [row(fresh, str(m))[0] for m in range(exact.q.size)]
    assert shown == [number(q) for q in exact.q]
    assert "is 0.1-DP" in find_all(fresh, ".verdict")[0].text
    control(fresh, "Rule").send_keys("conference")
    wait_for(lambda: fact(fresh, "worst ratio / e^epsilon"), "1.00668")
    assert "is NOT 0.1-DP" in find_all(fresh, ".verdict.refuted")[0].text


def test_nothing_is_asked_of_another_machine(page: "Chrome", fresh: "Chrome") -> None:
    for name, known in zip(_TABS, ("expected error", "gap", "Gamma_TV", "slack"), strict=True):
        go_to(fresh, name, known)
    asked = requested(page)
    assert any(address.startswith("ws://127.0.0.1:") for address in asked)
    assert [
        address for address in asked if address.split("/")[2].split(":")[0] != "127.0.0.1"
    ] == []
    assert complaints(page) == []


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
                        ("select", "color"),
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

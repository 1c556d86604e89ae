"""Pages for tests: as text, and in a headless Chromium, served on this machine or from a file.

It downloads nothing: browser and driver are those found on the path, and without them the test is
skipped with that reason.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_NETWORK = ("http", "https", "ws", "wss", "ftp", "file")
_PATIENCE = 30.0


@contextmanager
def chromium(
    profile: Path,
    *,
    dark: bool = False,
    size: tuple[int, int] = (1250, 1400),
) -> Iterator[Chrome]:
    """Yield a browser with an empty profile, which records what its pages ask for.

    Args:
        profile: an empty folder, such as ``tmp_path``.
        dark: whether its user prefers dark pages.
        size: of the page in pixels, which may be narrower than any window.
    """
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver_path = shutil.which("chromedriver")
    if browser is None or driver_path is None:
        pytest.skip("neither Chromium nor its driver chromedriver is on the path")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=service.Service(driver_path))
    try:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        screen = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        driver.get_log("performance")
        yield driver
    finally:
        driver.quit()


def wait_for(driver: Chrome, script: str) -> None:
    """Wait until a script of the page returns something true."""
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(driver, _PATIENCE, 0.05).until(lambda _: driver.execute_script(script))


def requested(driver: Chrome) -> list[str]:
    """Return what the pages asked for since the last call: web addresses, sockets, files."""
    found = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
        elif message["method"] == "Network.webSocketCreated":
            found.append(message["params"]["url"])
    return [address for address in found if address.split(":", 1)[0] in _NETWORK]


def complaints(driver: Chrome) -> list[str]:
    """Return the errors on the console since the last call."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


class Page(HTMLParser):
    """Elements of a page with their attributes, and its text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._raw = False
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._raw = tag in ("script", "style")
        if tag in ("td", "th", "dt", "dd", "li", "p"):
            self.text += " "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._raw = False

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def values(self, *names: str) -> list[str]:
        """Values of attributes, in the order of the page."""
        return [
            value
            for _, attributes in self.elements
            for name, value in attributes.items()
            if name in names and value
        ]

    @property
    def words(self) -> str:
        """The text with single blanks."""
        return " ".join(self.text.split())

"""Who is answered, with which headers, and what is left when a visitor has gone."""

from __future__ import annotations

import asyncio
import gc
import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import chromium, complaints, find_all, wait_for
from tests.explore.serving import explorer

if TYPE_CHECKING:
    from panel.io.server import Server

pytest.importorskip("panel", reason="panel is not installed (extra explore)")

STATIC = "/static/js/bokeh.min.js"
# {"session_id": []}
UNHASHABLE = "eyJzZXNzaW9uX2lkIjogW119"
PATHS = ["/", STATIC, "/favicon.ico", "/ws", "/nowhere"]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with explorer() as (_, address):
        yield int(address.rstrip("/").rpartition(":")[2])


Answer = tuple[int, dict[str, str], str]


def ask(port: int, path: str = "/", *, method: str = "GET", **headers: str) -> Answer:
    """Ask with these headers, underscores for dashes; Host is this server unless given."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return asked(port, method, path, [*({"Host": f"127.0.0.1:{port}"} | given).items()])


def asked(port: int, method: str, path: str, headers: list[tuple[str, str]]) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    # That of an opened socket has no end.
    text = "" if answer.status == 101 else answer.read().decode(errors="replace")
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text


def socket_of(port: int, token: str, **headers: str) -> int:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec_WebSocket_Protocol": f"bokeh, {token}",
    }
    return ask(port, "/ws", **(upgrade | headers))[0]


def token_of(page: str) -> str:
    (token,) = re.findall(r'"token":"([^"]+)"', page)
    return token


@pytest.mark.parametrize("path", PATHS)
def test_other_names_are_refused_whatever_is_asked_for(port: int, path: str) -> None:
    """A name that resolves to this machine (DNS rebinding) comes with its own Host."""
    for host in (
        *("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""),
        *(f"127.0.0.1:{port}.evil.example", f"127.0.0.1.evil.example:{port}", f"[::1]:{port}"),
        *(f"localhost.evil.example:{port}", f"127.0.0.2:{port}", f"0.0.0.0:{port}"),
        *(f"evil@127.0.0.1:{port}", f"127.0.0.1:{port},127.0.0.1:{port}"),
    ):
        status, _, said = ask(port, path, Host=host)
        # 400 where the library in front finds that it is no name at all.
        assert status in (400, 403), host
        assert "token" not in said
    twice = [("Host", f"127.0.0.1:{port}"), ("Host", "evil.example")]
    assert asked(port, "GET", path, twice)[0] in (400, 403)
    assert asked(port, "GET", path, [])[0] in (400, 403)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_own_names_are_answered(port: int, name: str) -> None:
    for path in ("/", STATIC, "/favicon.ico"):
        assert ask(port, path, Host=f"{name}:{port}")[0] == 200


@pytest.mark.parametrize("path", PATHS)
def test_pages_of_others_are_refused_whatever_they_ask_for(port: int, path: str) -> None:
    for origin in ("http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1"):
        assert ask(port, path, Origin=origin)[0] == 403
    for origin in (f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port}.evil.example"):
        assert ask(port, path, Origin=origin)[0] == 403
    # As an image, a script or a frame; another port of this machine is another site too.
    for site in ("cross-site", "same-site"):
        for kind in ("image", "script", "iframe", "empty", "embed", "style"):
            assert ask(port, path, Sec_Fetch_Site=site, Sec_Fetch_Dest=kind)[0] == 403


def test_a_link_may_be_followed_and_an_address_typed(port: int) -> None:
    assert ask(port, Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="document")[0] == 200
    assert ask(port, Sec_Fetch_Site="none", Sec_Fetch_Dest="document")[0] == 200
    assert ask(port, STATIC, Sec_Fetch_Site="same-origin", Sec_Fetch_Dest="script")[0] == 200


@pytest.mark.parametrize("path", ["/autoload.js", "/metadata", "/components/x", "/../x", "//", "*"])
def test_what_the_page_does_not_need_is_not_there(port: int, path: str) -> None:
    assert ask(port, path)[0] in (400, 403)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_reading(port: int, method: str) -> None:
    assert ask(port, "/", method=method, Content_Length="0")[0] in (403, 405)


def test_sockets_open_for_this_page_only(port: int) -> None:
    """Whatever the environment allows (see `explorer`)."""
    own, token = f"http://127.0.0.1:{port}", token_of(ask(port)[2])
    for origin in ("http://evil.example", f"http://evil.example:{port}", "http://example.org"):
        assert socket_of(port, token, Origin=origin) == 403
    assert socket_of(port, token) == 403
    assert socket_of(port, token, Origin=own, Host=f"evil.example:{port}") == 403
    assert socket_of(port, token, Origin=own) == 101
    for made_up in ("none", "", "e30", "e30.e30", "ÿ", "bnVsbA", UNHASHABLE):
        assert socket_of(port, made_up, Origin=own) == 403
    # Half a signature; the socket opens, and is closed before it is given anything.
    assert socket_of(port, token[:-4] + "AAAA", Origin=own) in (101, 403)
    # A session that this server did not begin, in a token of the right form.
    forged = "eyJzZXNzaW9uX2lkIjogIngiLCAic2Vzc2lvbl9leHBpcnkiOiA5OTk5OTk5OTk5fQ"
    assert socket_of(port, forged, Origin=own) == 403
    assert ask(port, "/?bokeh-session-id=chosen")[0] == 403
    assert ask(port, f"/?bokeh-token={forged}")[0] == 403


@pytest.mark.parametrize("path", ["/", STATIC, "/favicon.ico", "/nowhere", "/static/nothing.js"])
def test_every_answer_says_who_may_hold_it(port: int, path: str) -> None:
    _, headers, _ = ask(port, path)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_the_policy_names_the_scripts_that_run(port: int) -> None:
    _, headers, page = ask(port)
    policy = headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    scripts = rules["script-src"].split()
    assert scripts[0] == "'self'"
    assert all(name.startswith("'sha256-") for name in scripts[2:])
    assert "unsafe-inline" not in rules["script-src"]
    assert "unsafe-eval" not in policy
    assert re.findall(r'(?:src|href)="https?://', page) == []
    assert int(headers["content-length"]) == len(page.encode()) > 1000


def test_what_is_put_into_the_page_runs_nothing(tmp_path: Path) -> None:
    with chromium(tmp_path) as driver, explorer() as (_, address):
        driver.get(address)
        wait_for(lambda: len(find_all(driver, "figure svg")), 1)
        assert complaints(driver) == []
        driver.execute_script(
            "document.body.insertAdjacentHTML('beforeend',"
            ' \'<img src=x: onerror="window.ran = 1"><iframe srcdoc="<script>top.ran = 1'
            "</script>\"></iframe>');"
        )
        wait_for(
            lambda: any("Content Security Policy" in said for said in complaints(driver)), True
        )
        assert driver.execute_script("return window.ran") is None


def test_a_name_that_another_site_points_here_gets_nothing(tmp_path: Path) -> None:
    rebound = ("--host-resolver-rules=MAP evil.example 127.0.0.1",)
    with chromium(tmp_path, flags=rebound) as driver, explorer() as (_, address):
        driver.get(address.replace("127.0.0.1", "evil.example"))
        text = str(driver.execute_script("return document.body.innerText"))
        assert text.startswith("This page is served to programs of this machine")


@contextmanager
def running() -> Iterator[Server]:
    """Yield a server of this process, on a thread with a loop of its own."""
    from dpopt.explore.page import WORKER
    from dpopt.explore.server import bound

    found: list[Any] = []
    ready = threading.Event()

    def run() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        server = bound(0)
        server.start()
        found.append(server)
        server.io_loop.add_callback(ready.set)
        server.io_loop.start()
        server.stop()
        server.io_loop.close(all_fds=True)

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60)
    try:
        yield found[0]
    finally:
        found[0].io_loop.add_callback(found[0].io_loop.stop)
        thread.join()
        WORKER.close()


def test_visitors_are_bounded_and_freed() -> None:
    from dpopt.explore.guard import MOST_SESSIONS

    with running() as server:
        port = server.port or 0
        for host in ("evil.example", "127.0.0.1"):
            assert ask(port, Host=host)[0] == 403
        assert ask(port, Origin="http://evil.example")[0] == 403
        assert len(server.get_sessions()) == 0
        statuses = [ask(port)[0] for _ in range(MOST_SESSIONS)]
        assert statuses == [200] * MOST_SESSIONS
        status, _, said = ask(port)
        assert (status, len(server.get_sessions())) == (503, MOST_SESSIONS)
        assert said == "20 pages are open; close one, or wait ten seconds, and load it again.\n"
        # What an open page still needs is answered.
        assert ask(port, STATIC)[0] == 200
        wait_for(lambda: len(server.get_sessions()), 0)
        assert ask(port)[0] == 200


def test_nothing_is_computed_before_a_browser_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpopt.explore import page

    built: list[object] = []
    monkeypatch.setattr(page, "_fill", built.append)
    with running() as server:
        assert [ask(server.port or 0)[0] for _ in range(3)] == [200] * 3
    assert built == []


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_pages_that_are_left_leave_nothing_behind(tmp_path: Path) -> None:
    from bokeh.document import Document
    from panel.widgets import TextInput

    def alive(kind: type) -> int:
        gc.collect()
        # By its type: some libraries' objects warn when they are asked for their class.
        return sum(issubclass(type(thing), kind) for thing in gc.get_objects())

    before, documents, each = alive(TextInput), alive(Document), 0
    with running() as server, chromium(tmp_path) as driver:
        for visits in range(1, 5):
            driver.get(f"http://127.0.0.1:{server.port}/")
            wait_for(lambda: len(find_all(driver, "figure svg")), 1)
            if visits == 1:
                each = alive(TextInput) - before
        assert alive(TextInput) - before >= 4 * each > 0
        driver.get("about:blank")
        wait_for(lambda: len(server.get_sessions()), 0)
        # The last of them may still be held by the frame of the last callback.
        assert alive(TextInput) - before <= 2 * each
        assert alive(Document) - documents <= 3

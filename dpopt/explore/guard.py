"""Who is served: the page's own requests, from this machine, under this machine's own names.

A page of another site that the same browser shows can ask 127.0.0.1 too, and by a name of its own
that resolves to it (DNS rebinding). What it cannot choose are the headers Host, Origin and
Sec-Fetch-Site, which the browser sets; they are checked before anything is looked up or computed.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Any, ClassVar

from bokeh.util.token import get_session_id
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.routing import Matcher
from tornado.web import OutputTransform, RequestHandler

MOST_SESSIONS = 20
"""Open pages at one time; each holds about 2 MB."""

_PATHS = re.compile(r"/(?:ws|favicon\.ico|static/.*)?")
_INLINE = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)
# Panel's loader of modules, which this page has none of, tries whether blobs may run.
_SHIM = re.compile(rb"<script[^>]*/es-module-shims[^>]*></script>")

_STRANGER = (403, "This page is served to programs of this machine, at the address it names.")
_FULL = (503, f"{MOST_SESSIONS} pages are open; close one, or wait ten seconds, and load it again.")


class Refused(Matcher):
    """Matches the requests that are refused; to the others the application answers.

    Args:
        port: that of the server.
        sessions: called for the identifiers of the sessions that are alive.
    """

    def __init__(self, port: int, sessions: Callable[[], Collection[str]]) -> None:
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        if port == 80:
            self.hosts |= {"127.0.0.1", "localhost"}
        self.sessions = sessions

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Return the status and the sentence to refuse with, or None."""
        alive = self.sessions()
        if not self._ours(request, alive):
            return {"target_kwargs": {"why": _STRANGER}}
        if request.path == "/" and len(alive) >= MOST_SESSIONS:
            return {"target_kwargs": {"why": _FULL}}
        return None

    def _ours(self, request: HTTPServerRequest, alive: Collection[str]) -> bool:
        headers = request.headers
        # Twice the same header is joined by a comma, and then no name of ours.
        hosts, origins = headers.get_list("Host"), headers.get_list("Origin")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return False
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            return False
        if request.method not in ("GET", "HEAD") or not _PATHS.fullmatch(request.path):
            return False
        if request.path == "/ws":
            return bool(origins) and _session(headers) in alive
        # A link that is followed, or an address that is typed, may come from anywhere.
        followed = headers.get("Sec-Fetch-Dest") == "document"
        return followed or headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")


def _session(headers: HTTPHeaders) -> str | None:
    """Return the session that a socket asks for; a socket never begins one."""
    _, _, token = headers.get("Sec-WebSocket-Protocol", "").partition(",")
    try:
        found = get_session_id(token.strip())
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


class Refusal(RequestHandler):
    """Answers with a status and one sentence."""

    def initialize(self, why: tuple[int, str]) -> None:
        """Take what `Refused` found."""
        self.why = why

    def prepare(self) -> None:
        """Answer, whatever the method."""
        status, sentence = self.why
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(sentence + "\n")


class Headers(OutputTransform):
    """Adds to every answer what it may load and who may hold it."""

    fixed: ClassVar[dict[str, str]] = {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }

    def __init__(self, request: HTTPServerRequest) -> None:
        self.request = request

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Add the headers."""
        for name, value in self.fixed.items():
            headers[name] = value
        headers.pop("Server", None)
        page = headers.get("Content-Type", "").startswith("text/html")
        headers["Content-Security-Policy"] = policy(chunk if page else b"", self.request.host)
        if page and finishing and chunk:
            chunk = _SHIM.sub(b"", chunk)
            headers["Content-Length"] = str(len(chunk))
        return status_code, headers, chunk


def policy(page: bytes, host: str) -> str:
    """Return the content security policy of a page: its own scripts, and those of its server.

    An inline script runs if its hash is named: those that the page came with do, none that is put
    into it later does, but the one of the button that copies. No text becomes code.
    """
    from dpopt.explore.render import COPY

    scripts = " ".join(_hash(script) for script in [*_INLINE.findall(page), COPY.encode()])
    # Bokeh sets styles of elements; a style runs nothing, and can fetch from here only.
    return (
        "default-src 'none'; "
        f"script-src 'self' 'unsafe-hashes' {scripts}; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
        f"connect-src 'self' ws://{host}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        if page
        else "default-src 'none'; frame-ancestors 'none'"
    )


def _hash(script: bytes) -> str:
    return f"'sha256-{b64encode(sha256(script).digest()).decode()}'"

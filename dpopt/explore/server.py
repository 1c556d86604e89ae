"""The page's server: this machine only, until Ctrl-C."""

from __future__ import annotations

import errno
import secrets
import signal
import webbrowser
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from dpopt import _checks
from dpopt._errors import ParameterError

if TYPE_CHECKING:
    from panel.io.server import Server

ADDRESS = "127.0.0.1"
"""The only address that is listened on: no other machine reaches it."""

PORT = 5006

_LIMITS: dict[str, Any] = {
    # A page that no browser connects to is given up after ten seconds.
    "unused_session_lifetime_milliseconds": 10_000,
    "check_unused_sessions_milliseconds": 2_000,
    "websocket_max_message_size": 1 << 20,
}


def serve(
    port: int = PORT,
    *,
    open_browser: bool = True,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve the page on 127.0.0.1 until Ctrl-C, from this process and its main thread.

    Args:
        port: in 1..65535, or 0 for any free one.
        open_browser: show the page in the desktop's browser.
        started: called with the page's address once it answers.

    Raises:
        ParameterError: if the port cannot be had, or the extra ``explore`` is missing.
        KeyboardInterrupt: at Ctrl-C, after the server has closed.
    """
    server = bound(_checks.integer("port", port, 0, 65535))
    from dpopt.explore.page import WORKER

    address = f"http://{ADDRESS}:{server.port}/"

    def interrupted(_signal: int, _frame: FrameType | None) -> None:
        server.io_loop.add_callback_from_signal(server.io_loop.stop)

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        server.start()
        if started is not None:
            started(address)
        if open_browser:
            server.io_loop.add_callback(webbrowser.open, address)
        server.io_loop.start()
    finally:
        signal.signal(signal.SIGINT, before)
        WORKER.close()
        server.stop()
    raise KeyboardInterrupt


def bound(port: int) -> Server:
    """Return a server that holds its port, not yet started.

    Raises:
        ParameterError: if the port cannot be had, or the extra ``explore`` is missing.
    """
    try:
        from bokeh.settings import settings
        from panel.io.server import get_server

        from dpopt.explore.page import TITLE, page
    except ImportError:
        raise ParameterError(
            "explore needs panel; install it with pip install 'dpopt[explore]'."
        ) from None
    # Whatever BOKEH_RESOURCES says: scripts come from here, not from another machine.
    settings.resources = "server"
    try:
        server = get_server(
            page,
            port=port,
            address=ADDRESS,
            title=TITLE,
            location=False,
            # Only the tokens that came with a page of this server open its sockets.
            sign_sessions=True,
            secret_key=secrets.token_bytes(32),
            **_LIMITS,
        )
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: "another program listens there",
            errno.EACCES: "this user may not listen there",
        }
        why = reasons.get(error.errno or 0, "it cannot be listened on")
        raise ParameterError(
            f"port is {port}; {why}: give another --port, or 0 for any free one."
        ) from None
    _guard(server)
    return server


def _guard(server: Server) -> None:
    """Put the guard before everything that the server answers with."""
    from bokeh.settings import settings
    from tornado.routing import Rule

    from dpopt.explore.guard import Headers, Refusal, Refused

    application, port = server._tornado, server.port or 0
    # Whatever BOKEH_ALLOW_WS_ORIGIN says.
    settings.allowed_ws_origin = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
    refused = Refused(port, lambda: {session.id for session in server.get_sessions()})
    application.default_router.rules.insert(0, Rule(refused, Refusal))
    application.add_transform(Headers)

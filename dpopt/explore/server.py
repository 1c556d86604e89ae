"""The page's server: this machine only, until Ctrl-C."""

from __future__ import annotations

import errno
import signal
import webbrowser
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from dpopt import _checks
from dpopt._errors import ParameterError

if TYPE_CHECKING:
    from panel.io.server import Server

ADDRESS = "127.0.0.1"
"""The only address that is listened on: no other machine reaches it."""

PORT = 5006


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
    server = _bound(_checks.integer("port", port, 0, 65535))
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
        server.stop()
    raise KeyboardInterrupt


def _bound(port: int) -> Server:
    """Return a server that holds its port, not yet started."""
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
        return get_server(page, port=port, address=ADDRESS, title=TITLE)
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: "another program listens there",
            errno.EACCES: "this user may not listen there",
        }
        why = reasons.get(error.errno or 0, "it cannot be listened on")
        raise ParameterError(
            f"port is {port}; {why}: give another --port, or 0 for any free one."
        ) from None

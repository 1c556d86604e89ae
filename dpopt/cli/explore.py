"""``dpopt explore``: the local page."""

from __future__ import annotations

import click

from dpopt.cli.output import show


@click.command()
@click.option("--port", type=int, default=5006, help="Port on 127.0.0.1; 0 for a free one.  [5006]")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def explore(port: int, no_browser: bool) -> None:
    """Serve a page on 127.0.0.1 whose sliders solve again; Ctrl-C ends it (extra ``explore``).

    Example: dpopt explore --port 5010 --no-browser
    """
    from dpopt.explore import serve

    serve(
        port,
        open_browser=not no_browser,
        started=lambda address: show(f"{address}  (Ctrl-C ends it)"),
    )

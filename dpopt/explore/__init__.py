"""A local page that solves again as its values change; needs the extra ``explore``.

Each kind of `dpopt.kinds` has a tab, whose controls are the kind's fields. `view_of` is what a tab
shows, without a browser; `serve` puts the tabs on a page of 127.0.0.1.
"""

from dpopt.explore.server import serve
from dpopt.explore.view import Table, View, view_of

__all__ = ["Table", "View", "serve", "view_of"]

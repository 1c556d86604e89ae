"""A public name in code becomes a link to its place in the reference, also where no role asks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_NAME = re.compile(r"[A-Za-z_][\w.]*")
_SPEAKING = (
    *("papers", "findings/", "index", "voters", "quickstart", "your_program", "guides/"),
    *("limits", "theorems/", "tools"),
)


def _link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link literals of prose such as ``dpopt.roo.tally``; bare names where only one has it."""
    if not docname.startswith(_SPEAKING):
        return
    objects = app.env.domains.python_domain.objects
    bare: dict[str, list[str]] = {}
    for full, entry in objects.items():
        if not entry.aliased and entry.objtype in ("class", "function", "exception", "data"):
            bare.setdefault(full.rpartition(".")[2], []).append(full)
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().partition("(")[0]
        if not _NAME.fullmatch(name) or isinstance(literal.parent, nodes.reference | nodes.title):
            continue
        found = [name] if name.startswith("dpopt") and name in objects else bare.get(name, [])
        if len(found) != 1:
            continue
        entry = objects[found[0]]
        link = make_refnode(
            app.builder, docname, entry.docname, entry.node_id, literal.deepcopy(), found[0]
        )
        literal.replace_self(link)


def setup(app: Sphinx) -> dict[str, Any]:
    """Link once every page has been read."""
    app.connect("doctree-resolved", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

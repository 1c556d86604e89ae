"""Mathematics as MathML, which browsers set themselves: no script, no server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes

from experiments.report.mathematics import to_mathml

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

# As an exponent it is made smaller, though its glyph is small already.
_PRIME = "<mi>\N{PRIME}</mi>"


def mathml(text: str, *, display: bool) -> str:
    """Return LaTeX, without dollar signs, as a MathML element.

    Args:
        text: of the formula.
        display: whether it stands on lines of its own.
    """
    found = str(to_mathml(text, display=display))
    return found.replace(_PRIME, _PRIME.replace("<mi>", '<mi class="prime">'))


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), display=False))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    for part in filter(str.strip, node.astext().split("\n\n")):
        translator.body.append(mathml(part.strip(), display=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer; ``html_math_renderer = "mathml"`` chooses it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))  # pyright: ignore[reportArgumentType]
    return {"parallel_read_safe": True, "parallel_write_safe": True}

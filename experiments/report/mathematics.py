"""Formulas: LaTeX as MathML, which browsers set without a script."""

from __future__ import annotations

from html import unescape
from xml.etree.ElementTree import Element, tostring

from latex2mathml.converter import Converter
from markupsafe import Markup

# In a display these have their subscript below.
_LIMITS = {"min", "max", "inf", "sup", "lim", "liminf", "limsup", "argmin", "argmax"}
_BELOW = {"msub": "munder", "msubsup": "munderover"}


def to_mathml(latex: str, *, display: bool = True) -> Markup:
    """Return a formula as a MathML element."""
    math = Converter(display="block" if display else "inline").convert_to_element(latex)
    math.set("alttext", latex)
    for element in math.iter():
        _tidy(element, display=display)
    # The tree's own writer escapes what the converter's would leave as it is.
    return Markup(tostring(math, encoding="unicode"))


def _tidy(element: Element, *, display: bool) -> None:
    """Replace references to characters by these, and put a display's limits below."""
    if element.text:
        element.text = unescape(element.text)
    if not display or element.tag not in _BELOW:
        return
    if "".join(unescape(element[0].text or "").split()) in _LIMITS:
        element.tag = _BELOW[element.tag]

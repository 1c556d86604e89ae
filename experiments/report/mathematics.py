"""Displayed formulas: LaTeX as MathML, which browsers set without a script."""

from __future__ import annotations

from html import unescape
from xml.etree.ElementTree import Element, tostring

from latex2mathml.converter import Converter
from markupsafe import Markup

# In a display these have their subscript below.
_LIMITS = {"min", "max", "inf", "sup", "lim", "liminf", "limsup", "argmin", "argmax"}
_BELOW = {"msub": "munder", "msubsup": "munderover"}


def to_mathml(latex: str) -> Markup:
    """Return a displayed formula as a MathML element.

    Args:
        latex: without dollar signs.
    """
    math = Converter(display="block").convert_to_element(latex)
    math.set("alttext", latex)
    for element in math.iter():
        _tidy(element)
    # The tree's own writer escapes what the converter's would leave as it is.
    return Markup(tostring(math, encoding="unicode"))


def _tidy(element: Element) -> None:
    """Replace references to characters by these, and put limits below their operator."""
    if element.text:
        element.text = unescape(element.text)
    if element.tag in _BELOW and "".join(unescape(element[0].text or "").split()) in _LIMITS:
        element.tag = _BELOW[element.tag]

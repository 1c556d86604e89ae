"""The figures that `dpopt.style` makes; imported when the first one is."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure


class PrintedFigure(Figure):
    """A figure whose fonts are embedded as Type 42, wherever it is written from."""

    def savefig(self, fname: Any, **options: Any) -> None:  # noqa: ANN401
        """Write the figure; see matplotlib."""
        with mpl.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
            super().savefig(fname, **options)

"""The papers' figures and tables, and what the linear programs say beyond them.

```python
import experiments

run = experiments.run("majority-figure-2", voters=15)
run.tables["errors"].records
run.figure("neurips").savefig("figure.pdf")
```

`python -m experiments` makes all of them, and a report.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.kept import Entry
    from experiments.runner import run

__all__ = ["Entry", "run"]


def __getattr__(name: str) -> object:
    """Load what is asked for: the import of the package alone brings no library."""
    if name in __all__:
        return getattr(import_module("experiments.runner"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

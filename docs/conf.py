"""Sphinx's settings: ``python -m sphinx -W -b html docs results/site`` builds all of the site.

Nothing is fetched, by the build or by its pages. The gallery is that of the run of ``python -m
experiments`` in ``results``, or in the folder that ``DPOPT_RUN`` names. Where there is none, the
build says how long it takes, and runs the experiments itself.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
# The kernels of the guides find this checkout, too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

import dpopt  # noqa: E402
from docs.building.docstrings import TYPE_ALIASES  # noqa: E402

project = "dpopt"
author = "The dpopt authors"
version = release = dpopt.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "docs.building.docstrings",
    "docs.building.commands",
    "docs.building.mathematics",
    "docs.building.links",
    "docs.building.sources",
]
# The paper is in the form of a journal, whose own tools make pages of it.
exclude_patterns = ["building", "conf.py", "paper"]
experiments_run = os.environ.get("DPOPT_RUN", "")

html_theme = "furo"
html_title = f"dpopt {version}"
# The font of formulas comes with ziamath, of which nothing else is used.
_FONT = distribution("ziamath").locate_file("ziamath/fonts/STIXTwoMath-Regular.ttf")
html_static_path = ["_static", str(_FONT)]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
# Summaries of what is found are fetched, which browsers refuse to pages opened from a file.
html_show_search_summary = False
html_math_renderer = "mathml"

# A name in single backticks is code, and a link where the name is a public one.
default_role = "py:obj"
smartquotes_action = "D"
# Displayed programs and what commands print are no Python.
highlight_language = "none"
add_module_names = False
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
python_display_short_literal_types = True

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = TYPE_ALIASES
napoleon_numpy_docstring = False
napoleon_use_rtype = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_heading_anchors = 3
myst_update_mathjax = False
_FIGURES, _TESTS = re.findall(
    r"^python3 -m venv .*$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE
)[:2]
myst_substitutions = {
    "figures_command": f"```sh\n{_FIGURES}\n```",
    "tests_command": f"```sh\n{_TESTS}\n```",
}
# Always run: what is kept of an earlier build knows nothing of a change in the package.
nb_execution_mode = "force"
# But for pages by these patterns: the guides have tests of their own, which run them.
nb_execution_excludepatterns = os.environ.get("DPOPT_NOT_RUN", "").split()
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_ipywidgets_js = {}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

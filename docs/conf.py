"""How Sphinx builds the site: `make docs` writes build/docs/index.html.

The pages are plain Markdown files of this folder, so that GitHub shows them, too. The reference comes from docstrings.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
os.environ["NUMBA_DISABLE_JIT"] = "1"  # compiled functions are then plain functions, which autodoc can read

import docstrings
import kernelrl

project = "kernelrl"
author = "The kernelrl developers"
release = version = kernelrl.__version__
html_title = f"kernelrl {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_static"]
highlight_language = "none"
smartquotes = False
myst_heading_anchors = 4  # the anchors that GitHub makes
myst_enable_extensions = ["colon_fence"]
nitpicky = True
# Types of other packages, and names of ours that are not public: there is nothing to link to.
NOT_PUBLIC = r"kernelrl\.(\w+\.)+(Rows|ActionNet|C|OneProblem|Seen|Declaration)"
nitpick_ignore_regex = [("py:.*", r"(?!kernelrl\.(\w+\.)*[A-Z]).*"), ("py:class", NOT_PUBLIC)]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
napoleon_numpy_docstring = False

html_theme = "furo"
html_show_copyright = False  # LICENSE says it
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = []  # those of one page: `scripts_of`
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"source_repository": "", "top_of_page_buttons": []}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_exclude = ".linenos, .gp, .go"


def scripts_of(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The page with a figure that readers move loads its scripts."""
    if name == "explained":
        for script in ("explained_samples.js", "explained.js"):
            app.add_js_file(script, loading_method="defer")


def setup(app: Sphinx) -> None:
    """How docstrings and pages are read; the list of layers in design.md is plain text."""
    app.add_lexer("layers", TextLexer)
    app.connect("autodoc-process-docstring", docstrings.as_restructured_text, priority=100)
    app.connect("autodoc-skip-member", docstrings.leave_out)
    app.connect("source-read", docstrings.read_page)
    app.connect("html-page-context", scripts_of)

"""How the documentation is built: ``make docs``."""

import sys
from collections.abc import Callable
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

sys.path.insert(0, str(Path(__file__).parent))
from generated import DIRECTIVES

project = "napari-panoptic"
author = "The napari-panoptic developers"
project_copyright = "The napari-panoptic developers, BSD-3-Clause"
version = release = version_of("napari-panoptic")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["amsmath", "dollarmath", "colon_fence"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"napari-panoptic {release}"
html_baseurl = "https://napari-panoptic.github.io/napari-panoptic/latest/"
html_theme_options = {
    "source_repository": "https://github.com/napari-panoptic/napari-panoptic/",
    "source_branch": "main",
    "source_directory": "docs/",
}
exclude_patterns = ["_build"]
numpydoc_show_class_members = False
autodoc_typehints = "none"  # numpydoc's sections say it


# Formulas as MathML: they need neither a script nor a network to be read.
html_math_renderer = "mathml"


def _write_inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _write_display(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def _directive(write: Callable[[str], str]) -> type[SphinxDirective]:
    """Return a directive that shows the Markdown which a function writes for its content."""

    class Generated(SphinxDirective):
        has_content = True

        def run(self) -> list[nodes.Node]:
            return self.parse_text_to_nodes(write("\n".join(self.content)))

    return Generated


def setup(app: Sphinx) -> None:
    """Let Sphinx write formulas so, and know the lists that are generated from the code."""
    app.add_html_math_renderer("mathml", (_write_inline, None), (_write_display, None))
    for name, write in DIRECTIVES.items():
        app.add_directive(name, _directive(write))

"""How the documentation is built: ``make docs``."""

from importlib.metadata import version as version_of

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
html_title = "napari-panoptic"
html_theme_options = {
    "source_repository": "https://github.com/napari-panoptic/napari-panoptic/",
    "source_branch": "main",
    "source_directory": "docs/",
}
exclude_patterns = ["_build"]
numpydoc_show_class_members = False
autodoc_typehints = "none"  # numpydoc's sections say it

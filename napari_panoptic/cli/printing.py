"""The only place where commands print: names from files cannot control the terminal."""

from __future__ import annotations

import sys

from napari_panoptic.common.text import visible


def say(text: str = "") -> None:
    """Print a line, with control characters escaped."""
    print(visible(text))


def warn(text: str) -> None:
    """Print a line to the standard error, after the program's name."""
    print(f"napari-panoptic: {visible(text)}", file=sys.stderr)

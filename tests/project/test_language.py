"""Docstrings begin with what is returned or done, in ordinary words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import REPOSITORY

PACKAGE = REPOSITORY / "napari_panoptic"
AVOIDED = re.compile(
    r"(Gives?|Tells?|Says?|Do so|Do the same|So many|So much|Somebody|Nobody|Who|Whoever|"
    r"What (came|comes|became|becomes) of)\b"
)
"""Beginnings to replace by Return, Check, Compute, Set, Describe and the like."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every docstring of a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def test_docstrings_begin_with_ordinary_words() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}: {text.splitlines()[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in docstrings(path)
        if AVOIDED.match(text)
    ]
    assert found == []

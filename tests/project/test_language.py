"""Docstrings, messages and pages are written in ordinary words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY

PACKAGE = sorted((REPOSITORY / "napari_panoptic").rglob("*.py"))
PAGES = [
    *sorted(
        page
        for folder in ("docs", "benchmarks", "fuzz")
        for page in (REPOSITORY / folder).rglob("*.md")
    ),
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
]

BEGINNINGS = re.compile(
    r"(Gives?|Tells?|Says?|Do so|Do the same|So many|So much|Somebody|Nobody|Who|Whoever|"
    r"What (came|comes|became|becomes) of)\b"
)
"""Beginnings of docstrings to replace by Return, Check, Compute, Set, Describe and the like."""

PHRASES = re.compile(
    r"\b(so\s+many|anew|nobody|somebody|whoever|what\s+(became|becomes|comes)\s+of|came\s+of|"
    r"come\s+to\s+be|gone\s+over)\b",
    flags=re.IGNORECASE,
)
"""Phrases to replace, anywhere: by the number, again, the user, the outcome, are created."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every docstring of a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every string of a module, docstrings included."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_docstrings_begin_with_ordinary_words() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}: {text.splitlines()[0]}"
        for path in PACKAGE
        for line, text in docstrings(path)
        if BEGINNINGS.match(text)
    ]
    assert found == []


def test_strings_of_the_package_avoid_riddles() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}: {phrase.group()}"
        for path in PACKAGE
        for line, text in strings(path)
        for phrase in PHRASES.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_pages_avoid_riddles(page: Path) -> None:
    assert [phrase.group() for phrase in PHRASES.finditer(page.read_text("utf-8"))] == []

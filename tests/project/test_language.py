"""Docstrings, messages and pages are written in ordinary words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY
from tests.support.sources import nodes

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


def test_docstrings_begin_with_ordinary_words() -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        f"{name}:{node.body[0].lineno}: {text.splitlines()[0]}"
        for name, node in nodes()
        if isinstance(node, kinds) and (text := ast.get_docstring(node))
        if BEGINNINGS.match(text)
    ]
    assert found == []


def test_strings_of_the_package_avoid_riddles() -> None:
    """Docstrings are among the strings."""
    found = [
        f"{name}:{node.lineno}: {phrase.group()}"
        for name, node in nodes()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for phrase in PHRASES.finditer(node.value)
    ]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_pages_avoid_riddles(page: Path) -> None:
    assert [phrase.group() for phrase in PHRASES.finditer(page.read_text("utf-8"))] == []

"""The syntax of every module of the package, parsed once for all tests that look at it."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

import napari_panoptic

PACKAGE = Path(napari_panoptic.__file__).parent
"""The folder of the package."""


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax of every module by its path in the package."""
    gc.disable()  # it would go through millions of nodes, again and again
    try:
        return {
            path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted(PACKAGE.rglob("*.py"))
        }
    finally:
        gc.freeze()  # nor later: they stay
        gc.enable()


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Return every node but plain names, with the name of its module."""
    gc.disable()
    try:
        return [(name, node) for name, tree in modules().items() for node in _below(tree)]
    finally:
        gc.freeze()  # nor later: they stay
        gc.enable()


def _below(tree: ast.Module) -> list[ast.AST]:
    """Return what `ast.walk` yields but plain names, in a third of the time."""
    left_out = (ast.Name, ast.expr_context)
    found: list[ast.AST] = []
    to_do: list[ast.AST] = [tree]
    while to_do:
        node = to_do.pop()
        found.append(node)
        # Not all of `vars`: tools that write tracebacks give operators, of which Python has one
        # each, a parent in their own trees.
        for value in [getattr(node, field, None) for field in node._fields]:
            if isinstance(value, ast.AST):
                if not isinstance(value, left_out):
                    to_do.append(value)
            elif isinstance(value, list):
                to_do += [
                    each
                    for each in value
                    if isinstance(each, ast.AST) and not isinstance(each, left_out)
                ]
    return found

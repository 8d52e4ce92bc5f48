"""What pages list of the code: all tables, commands, options and keys are on some page."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from types import ModuleType

import pytest

from napari_panoptic import questions, report, review
from napari_panoptic.cli.main import command_parser
from napari_panoptic.report.raters import tables as raters
from napari_panoptic.tables.columns import TableSpec
from tests.support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
SHOWN_IN_REPORTS_ONLY = raters.SPREAD
"""Columns of another table."""


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    """Import the module of the documentation, as its configuration does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        return importlib.import_module("generated")


@pytest.fixture(scope="module")
def pages(generated: ModuleType) -> str:
    """Return the Markdown that all directives of all pages write, as on Linux."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", "linux")
        return "\n".join(
            generated.DIRECTIVES[name](content.strip())
            for page in DOCS.rglob("*.md")
            for name, content in re.findall(
                r"^```\{([a-z-]+)\}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
            )
            if name in generated.DIRECTIVES
        )


def specifications() -> list[TableSpec]:
    """Return every specification of a CSV file that is the constant of a module."""
    found = {}
    for package in (questions, report, review):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            values = vars(importlib.import_module(module.name)).values()
            found |= {id(one): one for one in values if isinstance(one, TableSpec) and one.file}
    return [spec for spec in found.values() if spec is not SHOWN_IN_REPORTS_ONLY]


def test_every_table_is_on_a_page(generated: ModuleType, pages: str) -> None:
    specs = specifications()
    assert len(specs) > 30
    assert [one.file for one in specs if generated.describe_table(one) not in pages] == []


def test_a_table_has_all_of_its_columns(generated: ModuleType) -> None:
    for spec in specifications():
        text = generated.describe_table(spec)
        assert [key for key in spec.keys if f"`{key}`" not in text] == []


def test_every_command_is_on_the_page_with_its_options(generated: ModuleType, pages: str) -> None:
    known = re.findall(r"^    ([a-z-]+)(?:  |$)", command_parser().format_help(), re.MULTILINE)
    assert len(known) > 20
    titles = re.findall(r"^```\{rubric\} napari-panoptic ([a-z-]+)$", pages, re.MULTILINE)
    assert sorted(titles) == sorted(known)
    for command, parser in generated.command_parsers().items():
        options = re.findall(r"--[a-z-]+", parser.format_usage())
        assert [option for option in options if f"`{option}" not in pages] == [], command


def test_texts_of_the_terminal_are_written_in_markdown(generated: ModuleType) -> None:
    text = generated.written_in_markdown("with --fix all: see docs/tasks/convert.md (--to)")
    assert text == "with `--fix` all: see [convert](../tasks/convert.md) (`--to`)"


def test_every_key_is_on_the_page(generated: ModuleType, pages: str) -> None:
    lists = generated.key_lists()
    assert {"Desk", "Panels", "Review", "Commands without a key"} <= set(lists)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", "linux")
        missing = [
            line for lines in generated.key_lists().values() for line in lines if line not in pages
        ]
    assert missing == []
    assert "- Alt+X: Regions" in pages
    assert "- Space, Enter: centre the selected object" in pages

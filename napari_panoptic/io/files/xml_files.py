"""XML files by a parser that opens nothing else."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

from lxml import etree

Element: TypeAlias = etree._Element


def safe_parser(**options: Any) -> etree.XMLParser:
    """Return a parser that opens nothing that a file refers to, and keeps libxml2's limits."""
    return etree.XMLParser(
        resolve_entities="internal", no_network=True, load_dtd=False, huge_tree=False, **options
    )


def xml_root(source: Path | BytesIO) -> Element:
    """Read a file, or its content, into a tree, and return its root.

    Raises
    ------
    ValueError
        If it is no valid XML.
    """
    try:
        return etree.parse(source, safe_parser()).getroot()
    except etree.XMLSyntaxError as error:
        raise ValueError(f"its XML is cut off or damaged: {error}") from error


def xml_text_root(text: str) -> Element:
    """Return the root of XML that is within another file; see `xml_root`."""
    return xml_root(BytesIO(text.encode()))

"""Markup in which every text from outside is escaped."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping

from markupsafe import Markup, escape

from napari_panoptic.common.text import visible

_VOID = ("br", "img", "meta", "wbr")
SHORT_NAME = 24
"""Names of at most this many characters are not broken across lines."""

Html = Markup
Child = Markup | str | None
"""Markup, text to be escaped, or nothing."""


def escaped(text: str) -> Html:
    """Return a text as markup; characters that cannot be shown are spelled out."""
    if isinstance(text, Html):
        return text
    return escape("\n".join(visible(line) for line in text.split("\n")))


def plain_text(content: Child) -> str:
    """Return markup or text as text alone."""
    return "" if content is None else html.unescape(re.sub(r"<[^>]*>", "", escaped(content)))


def fragment(*children: Child) -> Html:
    """Join markup and texts; texts are escaped, None is left out."""
    return trusted("".join(escaped(child) for child in children if child is not None))


def element(tag: str, *children: Child, **attributes: str | None) -> Html:
    """Return an element.

    Parameters
    ----------
    tag
        Its name.
    children
        Markup, or text that is escaped; None is left out.
    attributes
        Their values are escaped; None is left out. ``class_`` stands for
        ``class``, and other underscores for hyphens.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return trusted(f"<{tag}{written}>")
    return trusted(f"<{tag}{written}>{fragment(*children)}</{tag}>")


def trusted(markup: str) -> Html:
    """Mark text as markup. Every part must be escaped already, or be constant."""
    return Html(markup)


def paragraph(*children: Child) -> Html:
    """Return a paragraph."""
    return element("p", *children)


def note(*children: Child) -> Html:
    """Return a muted paragraph."""
    return element("p", *children, class_="note")


def bullets(items: Iterable[Child]) -> Html:
    """Return a list."""
    return element("ul", *(element("li", item) for item in items))


def definitions(items: Mapping[str, Child]) -> Html:
    """Return a list of names and their values."""
    pairs = (fragment(element("dt", key), element("dd", value)) for key, value in items.items())
    return element("dl", *pairs)


def folded(title: str, *children: Child) -> Html:
    """Hide long content behind its title; all of it is printed."""
    return element("details", element("summary", title), *children)


def named(name: str) -> Html:
    """Return a name from a file; its writing direction does not affect the text around it."""
    return element("bdi", name, class_="short" if len(name) <= SHORT_NAME else None)


def object_link(text: str) -> Html:
    """Return a link to an object; nothing without one."""
    if not text:
        return trusted("")
    about = "Copy the address of this link, and open it with: napari-panoptic view --link"
    return element("a", "link", class_="object", href=text, title=about)


def data_uri(kind: str, content: bytes) -> str:
    """Return the content of a file as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def download(title: str, file_name: str, kind: str, content: bytes) -> Html:
    """Return a link to a file inside the page."""
    return element("a", title, class_="download", download=file_name, href=data_uri(kind, content))

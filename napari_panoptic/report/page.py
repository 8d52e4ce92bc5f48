"""Pages in one file: markup in which every text is escaped, downloads, and the scaffold.

A page loads nothing from elsewhere. Without its script, which only sorts tables, it reads the
same.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import utf8, visible
from napari_panoptic.display.palette import team_styles
from napari_panoptic.report.writing import write_bytes

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
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


def rendered(template: str, **values: object) -> Html:
    """Render one of our templates; values are escaped unless they are markup."""
    return trusted(_environment().get_template(template).render(values))


def trusted(markup: str) -> Html:
    """Mark text as markup. Every part must be escaped already, or be constant."""
    return Html(markup)


def _shown(value: Any) -> Any:
    return escaped(value) if isinstance(value, str) else value


@cache
def _environment() -> Environment:
    # Commands that only write tables should not wait for this import.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


# --- small elements ------------------------------------------------------------------------------


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


def team_label(name: str, teams: Sequence[str]) -> Html:
    """Return a team's name beside its colour, which depends on its place among all."""
    colour = team_styles(teams)[name].colour
    dot = element("span", class_="dot", style=f"background:{colour}", aria_hidden="true")
    kind = "team short" if len(name) <= SHORT_NAME else "team"
    return element("span", dot, named(name), class_=kind)


def team_list(names: Iterable[str], teams: Sequence[str]) -> Html:
    """Return the names of teams, separated by commas."""
    return trusted(", ".join(team_label(name, teams) for name in names))


def data_uri(kind: str, content: bytes) -> str:
    """Return the content of a file as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def download(title: str, file_name: str, kind: str, content: bytes) -> Html:
    """Return a link to a file inside the page."""
    return element("a", title, class_="download", download=file_name, href=data_uri(kind, content))


# --- pages -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Section:
    """A section of a page."""

    #: Its address in the page.
    slug: str
    #: Its heading.
    title: str
    #: Its content.
    parts: Sequence[Child]

    @property
    def content(self) -> Html:
        """Its parts, joined."""
        return fragment(*self.parts)


def page(title: str, lead: Sequence[Child], sections: Sequence[Section], foot: Child) -> str:
    """Return a page in one file.

    Parameters
    ----------
    title
        Its heading.
    lead
        The content above the table of contents.
    sections
        Its sections.
    foot
        Its last line.
    """
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    # The page may load only its own content and script.
    policy = (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src 'unsafe-inline'; script-src '{content_hash(script)}'"
    )
    return rendered(
        "base.html.j2",
        title=title,
        lead=fragment(*lead),
        sections=sections,
        foot=foot,
        policy=policy,
        style=trusted(style),
        script=trusted(script),
    )


def content_hash(content: str) -> str:
    """Return a script or style as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def write_page(path: Path, content: str) -> Path:
    """Write a page completely or not at all; an existing file is replaced.

    Raises
    ------
    PanopticError
        If it cannot be written.
    """
    try:
        return write_bytes(path, utf8(content))
    except OSError as error:
        raise PanopticError(
            f"the report cannot be written: {error.strerror}; choose another place", path=path
        ) from error

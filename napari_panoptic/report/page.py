"""Pages in one file: markup in which every text is escaped, downloads, and the scaffold.

A page loads nothing from elsewhere. Without its script, which only sorts tables, it reads the
same.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import utf8
from napari_panoptic.display.palette import team_styles
from napari_panoptic.report.writing import write_bytes
from napari_panoptic.tables.markup import (
    SHORT_NAME,
    Child,
    Html,
    element,
    escaped,
    fragment,
    named,
    trusted,
)

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


def rendered(template: str, **values: object) -> Html:
    """Render one of our templates; values are escaped unless they are markup."""
    return trusted(_environment().get_template(template).render(values))


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


def team_label(name: str, teams: Sequence[str]) -> Html:
    """Return a team's name beside its colour, which depends on its place among all."""
    colour = team_styles(teams)[name].colour
    dot = element("span", class_="dot", style=f"background:{colour}", aria_hidden="true")
    kind = "team short" if len(name) <= SHORT_NAME else "team"
    return element("span", dot, named(name), class_=kind)


def team_list(names: Iterable[str], teams: Sequence[str]) -> Html:
    """Return the names of teams, separated by commas."""
    return trusted(", ".join(team_label(name, teams) for name in names))


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

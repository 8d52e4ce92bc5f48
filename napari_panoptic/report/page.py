"""Pages of one file: markup in which every text is escaped, tables, plots, downloads.

Nothing is fetched from anywhere. A page reads the same without its script,
which only sorts tables.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.spreadsheets import inert_cells
from napari_panoptic.common.visible import utf8, visible
from napari_panoptic.report.plots import Plot, png_bytes, svg_text
from napari_panoptic.report.writing import write_bytes

_TEMPLATE = Path(__file__).parent / "templates"
_VOID = ("br", "img", "meta", "wbr")
_LARGEST_SVG = 400_000
_SHORT_TABLE = 16
SHORT_NAME = 24
"""A name of at most so many characters keeps to its line."""


class Html(str):
    """Markup that can go into a page as it is; any other text is escaped first."""

    __slots__ = ()


Child = Html | str | None


def escaped(text: str) -> Html:
    """Make markup of a text; what cannot be shown is written out."""
    if isinstance(text, Html):
        return text
    lines = (visible(line) for line in text.split("\n"))
    return Html(html.escape("\n".join(lines), quote=True))


def fragment(*children: Child) -> Html:
    """Put markup and texts one after the other."""
    return Html("".join(escaped(child) for child in children if child is not None))


def element(tag: str, *children: Child, **attributes: str | None) -> Html:
    """Make an element.

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
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{fragment(*children)}</{tag}>")


def paragraph(*children: Child) -> Html:
    """Make a paragraph."""
    return element("p", *children)


def bullets(items: Sequence[Child]) -> Html:
    """Make a list."""
    return element("ul", *(element("li", item) for item in items))


def named(name: str) -> Html:
    """Write a name from outside, whatever its direction, without effect on what is around it."""
    return element("bdi", name, class_="short" if len(name) <= SHORT_NAME else None)


def data_uri(kind: str, content: bytes) -> str:
    """Return a file as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def download(title: str, file_name: str, kind: str, content: bytes) -> Html:
    """Link to a file that the page holds itself."""
    return element("a", title, class_="download", download=file_name, href=data_uri(kind, content))


# --- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """What stands in a table's cell.

    Parameters
    ----------
    shown
        Markup or text.
    value
        What the cell is sorted by: a number, NaN for undefined; or None for
        the text.
    """

    shown: Child
    value: float | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """A table to read, and the file behind it.

    Parameters
    ----------
    slug
        Name of the file, without ``.csv``.
    caption
        What it shows, in a sentence.
    header
        Titles of the columns; the first column names the rows.
    rows
        As many cells each.
    frame
        The same in full precision, for the file.
    """

    slug: str
    caption: Child
    header: Sequence[Child]
    rows: Sequence[Sequence[Cell]]
    frame: pd.DataFrame


def table(content: Table) -> Html:
    """Show a table, with a link to its CSV file."""
    csv = inert_cells(content.frame).to_csv(index=False, lineterminator="\n")
    # Names of files may hold what UTF-8 has no letters for.
    link = download("CSV", f"{content.slug}.csv", "text/csv;charset=utf-8", _utf8(csv))
    if not content.rows:
        return element(
            "div",
            element("p", content.caption, " ", link, class_="caption"),
            element("p", "The table has no rows.", class_="nothing"),
            class_="table",
        )
    columns = zip(*content.rows, strict=True)
    kinds = ("number" if any(c.value is not None for c in own) else None for own in columns)
    titles = zip(content.header, kinds, strict=True)
    head = element("tr", *(element("th", t, scope="col", class_=kind) for t, kind in titles))
    body = (element("tr", *(_cell(c, n) for n, c in enumerate(row))) for row in content.rows)
    shown = element(
        "table",
        element("caption", content.caption, " ", link),
        element("thead", head),
        element("tbody", *body),
        class_="sortable",
    )
    size = "table short" if len(content.rows) <= _SHORT_TABLE else "table"
    return element("div", element("div", shown, class_="scroll", tabindex="0"), class_=size)


def _cell(cell: Cell, column: int) -> Html:
    value: str | None = None
    if cell.value is not None:
        value = "" if math.isnan(cell.value) else repr(float(cell.value))
    kind = None if cell.value is None else "number"
    if column == 0:
        return element("th", cell.shown, scope="row", class_=kind, data_value=value)
    return element("td", cell.shown, class_=kind, data_value=value)


def folded(title: str, *children: Child) -> Html:
    """Hide what is long behind its title; on paper all of it is shown."""
    return element("details", element("summary", title), *children)


def _utf8(text: str) -> bytes:
    return utf8(text)


# --- plots -------------------------------------------------------------------------------------


def plot_figure(plot: Plot, slug: str, caption: Child) -> Html:
    """Show a plot as SVG, or as PNG where that would be huge, with its caption."""
    svg = svg_text(plot, salt=slug)
    if len(svg) > _LARGEST_SVG:
        png = png_bytes(plot)
        width = round(float(plot.figure.get_figwidth()) * 96)
        address = data_uri("image/png", png)
        shown = element("img", src=address, alt=_plain(caption), width=str(width))
        link = download("PNG", f"{slug}.png", "image/png", png)
    else:
        shown = inline_svg(svg, _plain(caption))
        link = download("SVG", f"{slug}.svg", "image/svg+xml", _utf8(svg))
    return element("figure", shown, element("figcaption", caption, " ", link), class_="plot")


def inline_svg(document: str, title: str) -> Html:
    """Take from an SVG document what goes into a page.

    Parameters
    ----------
    document
        As matplotlib writes it.
    title
        What it shows, for those who cannot see it.
    """
    drawing = document[document.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"<style[^>]*>.*?</style>", "", drawing, count=1, flags=re.DOTALL)
    # Groups are numbered anew in every drawing; nothing refers to them.
    drawing = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", drawing)
    width = re.search(r'width="([\d.]+)pt"', drawing)
    head = f'<svg role="img" aria-label="{escaped(title)}"'
    if width:
        drawing = re.sub(r' height="[\d.]+pt"', "", drawing, count=1)
        pixels = round(float(width[1]) * 96 / 72)
        drawing = drawing.replace(width[0], f'width="{pixels}"', 1)
    return Html(drawing.replace("<svg", head, 1).strip())


def _plain(markup: Child) -> str:
    return "" if markup is None else html.unescape(re.sub(r"<[^>]*>", "", escaped(markup)))


# --- pages -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a page.

    Parameters
    ----------
    slug
        Its address in the page.
    title
        Its heading.
    parts
        What stands in it.
    """

    slug: str
    title: str
    parts: Sequence[Child]


def page(title: str, lead: Sequence[Child], sections: Sequence[Section], foot: Child) -> str:
    """Make a page of one file.

    Parameters
    ----------
    title
        Its heading.
    lead
        What stands above the list of contents.
    sections
        Its parts.
    foot
        Its last line.
    """
    style = (_TEMPLATE / "report.css").read_text(encoding="utf-8")
    script = (_TEMPLATE / "report.js").read_text(encoding="utf-8")
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The page may show what it holds and run its own script, and nothing else.
    policy = (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{own}'"
    )
    contents = element(
        "ol", *(element("li", element("a", s.title, href=f"#{s.slug}")) for s in sections)
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(style)),
    )
    body = element(
        "body",
        element("header", element("h1", title), *lead),
        element("nav", element("h2", "Contents"), contents, aria_label="Contents"),
        element("main", *(_section(section) for section in sections)),
        element("footer", paragraph(foot)),
        element("script", Html(script)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _section(section: Section) -> Html:
    return element("section", element("h2", section.title), *section.parts, id=section.slug)


def write_page(path: Path, content: str) -> Path:
    """Write a page whole or not at all; an older one is replaced.

    Raises
    ------
    PanopticError
        Where it cannot be written.
    """
    try:
        return write_bytes(path, utf8(content))
    except OSError as error:
        raise PanopticError(
            f"the report cannot be written: {error.strerror}; choose another place", path=path
        ) from error


def definitions(items: Mapping[str, Child]) -> Html:
    """List names with what they mean."""
    pairs = (fragment(element("dt", key), element("dd", value)) for key, value in items.items())
    return element("dl", *pairs)

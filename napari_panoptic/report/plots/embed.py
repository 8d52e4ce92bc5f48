"""Plots in a page: inline SVG, or PNG if the SVG were huge."""

from __future__ import annotations

import re

from napari_panoptic.common.text import utf8
from napari_panoptic.report.plots.theme import Plot, png_bytes, svg_text
from napari_panoptic.tables.markup import (
    Child,
    Html,
    data_uri,
    download,
    element,
    escaped,
    plain_text,
    trusted,
)

_LARGEST_SVG = 500_000


def plot_figure(plot: Plot, slug: str, caption: Child) -> Html:
    """Return a plot as SVG, or as PNG if the SVG were huge, with its caption."""
    svg = svg_text(plot, salt=slug)
    if len(svg) > _LARGEST_SVG:
        png = png_bytes(plot)
        width = round(float(plot.figure.get_figwidth()) * 96)
        address = data_uri("image/png", png)
        shown = element("img", src=address, alt=plain_text(caption), width=str(width))
        link = download("PNG", f"{slug}.png", "image/png", png)
    else:
        shown = inline_svg(svg, plain_text(caption))
        link = download("SVG", f"{slug}.svg", "image/svg+xml", utf8(svg))
    return element("figure", shown, element("figcaption", caption, " ", link), class_="plot")


def inline_svg(document: str, title: str) -> Html:
    """Return the part of an SVG document that goes into a page.

    Parameters
    ----------
    document
        As written by matplotlib.
    title
        What it shows, for screen readers.
    """
    drawing = document[document.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"<style[^>]*>.*?</style>", "", drawing, count=1, flags=re.DOTALL)
    # Every drawing numbers its groups from 1; nothing refers to them.
    drawing = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", drawing)
    width = re.search(r'width="([\d.]+)pt"', drawing)
    head = f'<svg role="img" aria-label="{escaped(title)}"'
    if width:
        drawing = re.sub(r' height="[\d.]+pt"', "", drawing, count=1)
        pixels = round(float(width[1]) * 96 / 72)
        drawing = drawing.replace(width[0], f'width="{pixels}"', 1)
    return trusted(drawing.replace("<svg", head, 1).strip())

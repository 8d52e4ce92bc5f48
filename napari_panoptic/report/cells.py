"""Cells and words that all parts of the report share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.nuclei.palette import STATUS_COLOURS, hex_colour, team_styles
from napari_panoptic.nuclei.values.vocabulary import Status
from napari_panoptic.report.page import (
    SHORT_NAME,
    Cell,
    Child,
    Html,
    data_uri,
    element,
    fragment,
    named,
)
from napari_panoptic.report.text import (
    UNDEFINED,
    ratio,
)


def all_teams(report: CohortReport) -> list[str]:
    """List all teams of the cohort, in its order: that decides their colours."""
    return [team.name for team in report.cohort.teams]


def team_html(report: CohortReport, name: str) -> Html:
    """Write a team's name beside its colour."""
    return team_label(name, all_teams(report))


def team_headings(report: CohortReport, names: Iterable[str]) -> list[Html]:
    """Write teams' names beside their colours, for the columns of a table."""
    return [team_html(report, name) for name in names]


def team_label(name: str, teams: Sequence[str]) -> Html:
    """Write a team's name beside its colour, which its place among all teams decides."""
    colour = team_styles(teams)[name].colour
    dot = element("span", class_="dot", style=f"background:{colour}", aria_hidden="true")
    kind = "team short" if len(name) <= SHORT_NAME else "team"
    return element("span", dot, named(name), class_=kind)


def team_cell(report: CohortReport, name: str) -> Cell:
    """Return a cell with a team's name beside its colour."""
    return Cell(team_html(report, name))


def number(value: float, write: Callable[[float], str] = ratio) -> Cell:
    """Return a cell with a number, NaN for undefined."""
    return Cell(write(float(value)), float(value))


def one_place(value: float) -> str:
    """Write a number with one decimal; an en dash where undefined."""
    return ratio(value, 1)


def writer(figure: str) -> Callable[[float], str]:
    """Return how a figure is written: distances are no ratios."""
    return one_place if figure.endswith("_px") else ratio


def ranked(score: float, rank: int) -> Cell:
    """Write a figure and its rank; the best stands out."""
    if math.isnan(score):
        return Cell(UNDEFINED, float("nan"))
    kind = "best" if rank == 1 else None
    place = element("span", f" ({rank})", class_="rank")
    return Cell(fragment(element("span", ratio(score), class_=kind), place), score)


def status_legend(words: Mapping[Status, str]) -> Html:
    """Describe what the colours of outlines mean."""
    items = [
        element(
            "span",
            element(
                "span",
                class_="stripe",
                style=f"border-top:4px solid {hex_colour(STATUS_COLOURS[status])}",
            ),
            text,
        )
        for status, text in words.items()
    ]
    return element("div", *items, class_="legend")


def failures(title: Child, figures: Iterable[Child]) -> Html:
    """Show pictures of failures of one kind, or in one place, under a heading."""
    return element(
        "div",
        element("h4", title),
        element("div", *figures, class_="gallery"),
        class_="cause",
    )


def failure_figure(jpeg: bytes, alt: str, *caption: Child) -> Html:
    """Show the picture of a failure, as wide as every other, with its caption."""
    image = element("img", src=data_uri("image/jpeg", jpeg), alt=alt, width="168")
    return element("figure", image, element("figcaption", *caption))


def note(*text: Child) -> Html:
    """Make a paragraph of lesser weight."""
    return element("p", *text, class_="note")


def team_list(report: CohortReport, teams: Iterable[str]) -> Html:
    """List teams, each beside its colour."""
    parts: list[Child] = []
    for team in teams:
        parts += [", " if parts else "", team_html(report, team)]
    return fragment(*parts)

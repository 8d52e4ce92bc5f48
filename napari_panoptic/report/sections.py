"""What every report has, whatever its cohort is about: its first lines, settings, last line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from napari_panoptic import __version__
from napari_panoptic.common.errors import Finding, FindingKind
from napari_panoptic.report.nuclei.tables import versions
from napari_panoptic.report.page import (
    Child,
    Html,
    Section,
    definitions,
    element,
    page,
    paragraph,
)
from napari_panoptic.report.text import count
from napari_panoptic.report.writing import MADE_WITH

DATA_SLUG = "data"
"""Address of the section that lists what was missing."""


def report_document(title: str, lead: Sequence[Child], sections: Sequence[Section]) -> str:
    """Make the page of a report, which ends by saying what made it."""
    return page(title, lead, sections, f"{MADE_WITH} {__version__}.")


def lead(
    *said: Child, date: str, findings: Sequence[Finding], consequence: str
) -> list[Html | None]:
    """Say in a sentence what is reported, and at once what stood in the way, if anything did.

    Parameters
    ----------
    said
        What is reported.
    date
        When; empty for none.
    findings
        All of them; missing and unreadable ones count.
    consequence
        What follows their number, up to "see".
    """
    first = paragraph(*said, f"; {date}" if date else "", ".")
    return [first, _attention(findings, consequence)]


def _attention(findings: Sequence[Finding], consequence: str) -> Html | None:
    in_the_way = (FindingKind.MISSING, FindingKind.UNREADABLE)
    lost = sum(finding.kind in in_the_way for finding in findings)
    if not lost:
        return None
    link = element("a", "Data quality", href=f"#{DATA_SLUG}")
    return element("p", f"{count(lost)} {consequence} ", link, ".", class_="warning")


def settings_beside_versions(settings: Mapping[str, Child]) -> Html:
    """List settings, and beside them what computed with them."""
    return element(
        "div",
        element("div", element("h3", "Settings"), definitions(settings)),
        element("div", element("h3", "Versions"), definitions(dict(versions()))),
        class_="beside",
    )

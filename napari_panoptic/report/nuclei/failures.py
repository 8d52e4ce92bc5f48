"""Sections on the failures of teams: by size, by cause, what they share, pictures of the worst."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from napari_panoptic.report import pictures as failure_pictures
from napari_panoptic.report import plots
from napari_panoptic.report.columns import table, team_column
from napari_panoptic.report.nuclei.cohort_report import CohortReport
from napari_panoptic.report.nuclei.gallery import Picture, failure_kinds
from napari_panoptic.report.nuclei.teams import all_teams
from napari_panoptic.report.page import team_label
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    across,
    number,
    whole,
    words,
)
from napari_panoptic.tables.figures import UNDEFINED, area_text, count, one_place, ratio
from napari_panoptic.tables.markup import (
    Child,
    Html,
    element,
    fragment,
    named,
    note,
    object_link,
    paragraph,
)
from napari_panoptic.values.links import LinkMaker
from napari_panoptic.values.vocabulary import Cause, Side, Status

_LEGEND = {
    Status.FN: "annotated, not matched (FN)",
    Status.FP: "predicted, not matched (FP)",
    Status.MISCLASSIFIED: "matched, another class",
    Status.TP: "matched (TP)",
    Status.IGNORED: "ignored",
}


def sizes_section(report: CohortReport) -> list[Child]:
    """Show metrics by size of object."""
    frame = report.sizes
    if frame is None:
        return [paragraph("Undefined: size classes need annotated nuclei, found none.")]
    columns = [
        TableColumn(f"area ({frame['area_unit'].iloc[0]})", _area),
        team_column(all_teams(report)),
        whole("reference_objects", "nuclei"),
        whole("found"),
        number("recall"),
        whole("prediction_objects", "predictions"),
        whole("matched"),
        number("precision"),
        number("class_accuracy", "right class"),
        number("mean_iou", "mean IoU"),
        number("mean_hausdorff_px", "mean Hausdorff (px)", one_place),
    ]
    rows = frame.sort_values("size", kind="stable").to_dict("records")
    caption = (
        "Size classes are bounded by the quartiles of the annotated nuclei's areas. Matched pairs "
        "are counted in the size class of the annotated nucleus. "
        f"{UNDEFINED}: undefined, the denominator is 0."
    )
    return [
        plot_figure(
            plots.size_lines(frame, all_teams(report)),
            "size",
            "Recall of nuclei, precision of predictions, and IoU of pairs, by size.",
        ),
        table("by_size", caption, columns, frame, rows),
    ]


def _area(row: Record) -> CellContent:
    return CellContent(area_text(row["area_from"], row["area_below"]), float(row["size"]))


def causes_section(report: CohortReport) -> list[Child]:
    """Show the number of failures of each cause."""
    frame = report.causes
    if frame.empty:
        return [paragraph("All objects are matched: there are no failures.")]
    teams = all_teams(report)
    columns = [
        TableColumn("side", _status),
        words("cause"),
        *(_share(key, team_label(key, teams)) for key in dict.fromkeys(frame["team"])),
    ]
    caption = "Unmatched objects by cause: number (share of the team's FN or FP)."
    return [
        plot_figure(
            plots.cause_dots(frame, teams),
            "cause",
            "Share of each cause among a team's unmatched nuclei (FN) and predictions (FP).",
        ),
        table("by_cause", caption, columns, frame, across(frame, ["side", "cause"], "team")),
    ]


def _status(row: Record) -> CellContent:
    return CellContent("FN" if row["side"] == str(Side.REFERENCE) else "FP")


def _share(key: str, title: Html) -> TableColumn:
    def cell(row: Record) -> CellContent:
        own = row["team", key]
        return CellContent(f"{count(own['count'])} ({ratio(own['share'], 2)})", float(own["count"]))

    return TableColumn(title, cell)


def gallery_section(report: CohortReport, pictures: Sequence[Picture]) -> list[Child]:
    """Show pictures of the worst failures of each team and cause."""
    if not pictures:
        return [paragraph("There are no failures to show, or no pictures could be made.")]
    parts: list[Child] = [
        note(
            "The largest failures of each team and cause. Thick outline: annotation; thin: "
            "prediction; faint: unrelated neighbouring objects."
        ),
        failure_pictures.legend(_LEGEND),
    ]
    links = links_of(report)
    order = {team: place for place, team in enumerate(report.evaluation.team_names)}
    kinds = {kind: place for place, kind in enumerate(failure_kinds())}
    ordered = sorted(
        pictures,
        key=lambda p: (order[p.failure.team], kinds[_kind(p)], -p.failure.area_px),
    )
    for team_name, of_team in groupby(ordered, key=lambda p: p.failure.team):
        causes = [_cause(list(own), links) for _, own in groupby(of_team, key=_kind)]
        parts += [
            element("h3", team_label(team_name, all_teams(report))),
            element("div", *causes, class_="causes"),
        ]
    return parts


def _kind(picture: Picture) -> tuple[Side, Cause]:
    return picture.failure.side, picture.failure.cause


def links_of(report: CohortReport) -> LinkMaker:
    """Return what writes links to the objects of a report."""
    request = report.request
    return LinkMaker.of(request.cohort, request.settings, request.source)


def _cause(pictures: Sequence[Picture], links: LinkMaker) -> Html:
    failure = pictures[0].failure
    title = "misclassified" if failure.cause is Cause.NONE else f"{failure.status}: {failure.cause}"
    figures = [failure_figure(picture, links) for picture in pictures]
    return failure_pictures.group(title, figures)


def failure_figure(picture: Picture, links: LinkMaker) -> Html:
    """Return the picture of an object with its caption, and a link to it."""
    failure = picture.failure
    side = "nucleus" if failure.side is Side.REFERENCE else "prediction"
    what = f"{side} {failure.id}, {failure.class_name}"
    if failure.status is Status.MISCLASSIFIED:
        what += f" predicted as {failure.partner_class}"
    width = f"{picture.field_px} px"
    if picture.mpp is not None:
        width += f" ({picture.field_px * picture.mpp:.0f} µm)"
    is_pair = failure.status in (Status.TP, Status.MISCLASSIFIED)
    overlap = "IoU" if is_pair else "best IoU"
    caption = fragment(
        named(failure.region),
        element("br"),
        what,
        element("br"),
        f"{overlap} {ratio(failure.iou, 2)}, {count(failure.area_px)} px, {width} wide",
        " ",
        object_link(links.text(failure.region, failure.team, failure.side, failure.id)),
    )
    alt = f"{failure.status} {failure.cause}, {what}, region {failure.region}"
    return failure_pictures.figure(picture.jpeg, alt, caption)

"""Parts of the report: where teams fail, and pictures of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.nuclei.values.vocabulary import Cause, Side, Status
from napari_panoptic.report import plots
from napari_panoptic.report.cells import (
    all_teams,
    failure_figure,
    failures,
    note,
    number,
    one_place,
    status_legend,
    team_cell,
    team_headings,
    team_html,
)
from napari_panoptic.report.nuclei.gallery import Picture
from napari_panoptic.report.page import (
    Cell,
    Child,
    Html,
    Table,
    element,
    fragment,
    named,
    paragraph,
    plot_figure,
    table,
)
from napari_panoptic.report.text import (
    UNDEFINED,
    area_text,
    count,
    ratio,
)


def sizes_section(report: CohortReport) -> list[Child]:
    """Show figures by size of object."""
    frame = report.sizes
    if frame is None:
        return [paragraph("Undefined: classes of size need annotated nuclei, found none.")]
    columns = {
        "reference_objects": ("nuclei", count),
        "found": ("found", count),
        "recall": ("recall", ratio),
        "prediction_objects": ("predictions", count),
        "matched": ("matched", count),
        "precision": ("precision", ratio),
        "class_accuracy": ("right class", ratio),
        "mean_iou": ("mean IoU", ratio),
        "mean_hausdorff_px": ("mean Hausdorff (px)", one_place),
    }
    rows = [
        [
            Cell(area_text(r["area_from"], r["area_below"]), float(r["size"])),
            team_cell(report, r["team"]),
            *(number(r[key], write) for key, (_, write) in columns.items()),
        ]
        for r in frame.sort_values("size", kind="stable").to_dict("records")
    ]
    unit = str(frame["area_unit"].iloc[0])
    header: list[Child] = [f"area ({unit})", "team", *(title for title, _ in columns.values())]
    caption = (
        "Classes of size are bounded by the quartiles of the annotated nuclei's areas. Pairs "
        f"stand in the class of the annotated nucleus. {UNDEFINED}: nothing to divide by."
    )
    return [
        plot_figure(
            plots.size_lines(frame, all_teams(report)),
            "size",
            "Recall of nuclei, precision of predictions, and IoU of pairs, by size.",
        ),
        table(Table("by_size", caption, header, rows, frame)),
    ]


def causes_section(report: CohortReport) -> list[Child]:
    """Show how many failures have which cause."""
    frame = report.causes
    if frame.empty:
        return [paragraph("No object is unmatched: there is no failure to explain.")]
    teams = list(dict.fromkeys(frame["team"]))
    rows = []
    for (side, cause), cells in frame.groupby(["side", "cause"], sort=False):
        own = {r["team"]: r for r in cells.to_dict("records")}
        word = "FN" if side == str(Side.REFERENCE) else "FP"
        rows.append(
            [
                Cell(str(word)),
                Cell(str(cause)),
                *(
                    Cell(
                        f"{count(own[t]['count'])} ({ratio(own[t]['share'], 2)})",
                        float(own[t]["count"]),
                    )
                    for t in teams
                ),
            ]
        )
    header: list[Child] = ["side", "cause", *team_headings(report, teams)]
    caption = "Unmatched objects by cause: number (share of the team's on that side)."
    return [
        plot_figure(
            plots.cause_dots(frame, all_teams(report)),
            "cause",
            "Share of each cause among a team's unmatched nuclei (FN) and predictions (FP).",
        ),
        table(Table("by_cause", caption, header, rows, frame)),
    ]


def gallery_section(report: CohortReport, pictures: Sequence[Picture]) -> list[Child]:
    """Show pictures of the worst failures of each team and cause."""
    if not pictures:
        return [paragraph("There is no failure to show, or no picture of one could be made.")]
    parts: list[Child] = [
        note(
            "The largest failures of each team and cause. Heavier outline: annotation; finer: "
            "prediction; paler: objects that have nothing to do with the one in the middle."
        ),
        _legend(),
    ]
    order = {team: place for place, team in enumerate(report.evaluation.team_names)}
    kinds = {(side, cause): k for k, (side, cause) in enumerate(_kinds(pictures))}
    ordered = sorted(
        pictures,
        key=lambda p: (
            order[p.failure.team],
            kinds[p.failure.side, p.failure.cause],
            -p.failure.area_px,
        ),
    )
    for team, of_team in groupby(ordered, key=lambda p: p.failure.team):
        causes = [
            _cause(list(own))
            for _, own in groupby(of_team, key=lambda p: (p.failure.side, p.failure.cause))
        ]
        parts += [
            element("h3", team_html(report, team)),
            element("div", *causes, class_="causes"),
        ]
    return parts


def _kinds(pictures: Sequence[Picture]) -> list[tuple[Side, Cause]]:
    """List sides and causes, unmatched nuclei first and misclassified ones last."""
    known = {(p.failure.side, p.failure.cause) for p in pictures}
    order = [(side, cause) for side in Side for cause in Cause]
    return sorted(known, key=lambda kind: (kind[1] is Cause.NONE, order.index(kind)))


def _legend() -> Html:
    words = {
        Status.FN: "annotated, not matched (FN)",
        Status.FP: "predicted, not matched (FP)",
        Status.MISCLASSIFIED: "matched, another class",
        Status.TP: "matched (TP)",
        Status.IGNORED: "ignored",
    }
    return status_legend(words)


def _cause(pictures: Sequence[Picture]) -> Html:
    failure = pictures[0].failure
    title = "misclassified" if failure.cause is Cause.NONE else f"{failure.status}: {failure.cause}"
    return failures(title, [_picture(picture) for picture in pictures])


def _picture(picture: Picture) -> Html:
    failure = picture.failure
    side = "nucleus" if failure.side is Side.REFERENCE else "prediction"
    what = f"{side} {failure.id}, {failure.class_name}"
    if failure.status is Status.MISCLASSIFIED:
        what += f" taken for {failure.partner_class}"
    width = f"{picture.field_px} px"
    if picture.mpp is not None:
        width += f" ({picture.field_px * picture.mpp:.0f} µm)"
    overlap = "IoU" if failure.status is Status.MISCLASSIFIED else "best IoU"
    caption = fragment(
        named(failure.region),
        element("br"),
        what,
        element("br"),
        f"{overlap} {ratio(failure.iou, 2)}, {count(failure.area_px)} px, {width} wide",
    )
    alt = f"{failure.status} {failure.cause}, {what}, region {failure.region}"
    return failure_figure(picture.jpeg, alt, caption)

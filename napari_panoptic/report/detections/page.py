"""One HTML file that reports everything about a cohort of detections."""

from __future__ import annotations

import math
from collections.abc import Iterator

from napari_panoptic.detections.evaluate import DetectionEvaluation, FrameResult
from napari_panoptic.io.files.fingerprints import input_fingerprints
from napari_panoptic.report import pictures as point_pictures
from napari_panoptic.report.columns import spec_table
from napari_panoptic.report.detections.gallery import (
    FIELD_UM,
    PointPicture,
    failure_pictures,
    worst_frames,
)
from napari_panoptic.report.detections.tables import (
    CURVE,
    FRAMES,
    PATIENTS,
    TEAMS,
    best_first,
    curve_table,
    frames_table,
    patients_table,
    teams_table,
)
from napari_panoptic.report.page import Section, team_label, team_list
from napari_panoptic.report.plots.detections import precision_recall_curves
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.report.sections import (
    DATA_SLUG,
    findings_section,
    fingerprints,
    lead,
    methods_section,
    report_document,
    settings_section,
)
from napari_panoptic.tables.figures import count, counted, ratio
from napari_panoptic.tables.markup import (
    Child,
    Html,
    bullets,
    element,
    folded,
    fragment,
    named,
    note,
    paragraph,
)
from napari_panoptic.tables.ranks import friedman_sentence
from napari_panoptic.values.vocabulary import Side, Status

WORST_FRAMES = 3
FAILURES_PER_FRAME = 6
_LEGEND = {
    Status.FN: "annotated, not found (FN)",
    Status.FP: "detected, not annotated (FP)",
    Status.TP: "found (TP)",
}


def detection_report_page(evaluation: DetectionEvaluation, *, date: str = "") -> str:
    """Return the page of a report; without a date, the same files give the same page."""
    cohort, distance_um = evaluation.cohort, evaluation.settings.distance_um
    first = lead(
        f"{counted(len(cohort.frames), 'frame')} of {counted(len(cohort.patients), 'patient')}, "
        f"{counted(len(evaluation.team_names), 'team')}; detections within {distance_um:g} µm of "
        "an annotated point are correct",
        date=date,
        findings=evaluation.findings,
        consequence="The figures of a team are over its own frames, and cannot be compared between "
        "teams with different frames.",
    )
    methods = methods_section("methods_detections.html.j2", distance_um=distance_um)
    teams, by_frame = cohort.team_names, ["region", "patient"]
    sections = [
        Section("summary", "Summary", _summary(evaluation)),
        Section("settings", "Settings and provenance", _settings(evaluation)),
        Section(DATA_SLUG, "Data quality", findings_section(evaluation.findings)),
        Section("curves", "Precision and recall", _curves(evaluation)),
        Section("patients", "Patients", [spec_table(PATIENTS, patients_table(evaluation), teams)]),
        Section(
            "frames", "Frames", [spec_table(FRAMES, frames_table(evaluation), teams, by_frame)]
        ),
        Section("worst", "Worst frames", _worst(evaluation)),
        Section("methods", "Methods, for a paper", methods),
    ]
    return report_document(f"Detection report: {cohort.name}", first, sections)


def _summary(evaluation: DetectionEvaluation) -> list[Child]:
    frame = teams_table(evaluation)
    rows = best_first(frame).to_dict("records")
    shown = spec_table(TEAMS, frame, evaluation.cohort.team_names, ["team", "rank"], rows)
    return [shown, bullets(_conclusions(evaluation))]


def _conclusions(evaluation: DetectionEvaluation) -> Iterator[Child]:
    """Return the main results as sentences."""
    if len(evaluation.team_names) > 1:
        yield friedman_sentence(evaluation.comparison, "the F-measure", "patient")
    n_frames = {len(results) for results in evaluation.by_team.values()}
    if len(n_frames) > 1:
        yield (
            f"Teams were evaluated on {min(n_frames)} to {max(n_frames)} frames: their ranks "
            "compare different frames."
        )
    for key in evaluation.team_names:
        curve = evaluation.curve(key)
        best = None if curve is None else curve.best
        if curve is not None and best is not None and curve.n_reference:
            yield fragment(
                team_label(key, evaluation.cohort.team_names),
                f" would reach its largest F-measure, {ratio(float(curve.f_measure[best]))}, with "
                f"detections of confidence {curve.thresholds[best]:g} or more.",
            )


def _settings(evaluation: DetectionEvaluation) -> list[Child]:
    settings = evaluation.settings
    items: dict[str, Child] = {
        "distance": f"{settings.distance_um:g} µm, inclusive",
        "confidence": "all detections count"
        if settings.confidence is None
        else f"at least {settings.confidence:g}",
    }
    files = input_fingerprints(evaluation.cohort, evaluation.team_names)
    return settings_section(items, fingerprints(files))


def _curves(evaluation: DetectionEvaluation) -> list[Child]:
    teams = evaluation.cohort.team_names
    found = {key: evaluation.curve(key) for key in evaluation.team_names}
    curves = {key: curve for key, curve in found.items() if curve is not None}
    counts = {key: evaluation.counts(key) for key in evaluation.team_names}
    parts: list[Child] = [
        plot_figure(
            precision_recall_curves(curves, teams, counts),
            "precision-recall",
            "Precision against recall at every confidence threshold, all frames of a team "
            "together; large marks: the threshold of this evaluation; grey curves: equal "
            "F-measure, given at their ends.",
        )
    ]
    lacking = [key for key in evaluation.team_names if key not in curves]
    if lacking:
        names = team_list(lacking, teams)
        parts.append(note("No curve (some detections lack a confidence): ", names, "."))
    return [*parts, folded("Every threshold", spec_table(CURVE, curve_table(evaluation), teams))]


def _worst(evaluation: DetectionEvaluation) -> list[Child]:
    parts: list[Child] = []
    radius = evaluation.settings.distance_um
    for key in evaluation.team_names:
        worst = worst_frames(evaluation.by_team[key], WORST_FRAMES)
        if worst:
            parts.append(element("h3", team_label(key, evaluation.cohort.team_names)))
        for result in worst:
            pictures = failure_pictures(result, radius, FAILURES_PER_FRAME)
            figures = [_figure(picture) for picture in pictures]
            parts.append(point_pictures.group(_frame_title(result), figures))
    if not parts:
        return [paragraph("No team failed anywhere.")]
    introduction = note(
        "The frames with the most failures of each team. For each frame, FN, and the "
        "FP with the highest confidence. Circles show the maximum distance from the "
        f"annotated point at their centre; crosses are detections. Pictures are {FIELD_UM:.0f} µm "
        "wide."
    )
    return [introduction, point_pictures.legend(_LEGEND), *parts]


def _frame_title(result: FrameResult) -> Html:
    counts = result.counts
    return fragment(
        named(result.frame.name),
        f": F {ratio(counts.f_measure)}, {count(counts.fn)} FN, {count(counts.fp)} FP",
    )


def _figure(picture: PointPicture) -> Html:
    own, row = picture.result.judged.side(picture.side), picture.row
    id_, confidence = own.points.ids[row], float(own.points.confidence[row])
    distance = float(own.distance_um[row])
    what, nearest = "annotated point", "detection"
    if picture.side is Side.PREDICTION:
        what, nearest = nearest, what
    lines: list[Child] = [f"{picture.status}: {what} {id_}"]
    if not math.isnan(confidence):
        lines += [element("br"), f"confidence {confidence:g}"]
    if not math.isnan(distance):
        lines += [element("br"), f"nearest {nearest}: {distance:.1f} µm"]
    alt = f"{picture.status}, {what} {id_}, frame {picture.result.frame.name}"
    return point_pictures.figure(picture.jpeg, alt, *lines)

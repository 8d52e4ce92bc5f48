"""One HTML file about a cohort of detections, which needs nothing beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from napari_panoptic.detections.atypia import POINTS_RULE, SCORES, AnswerState
from napari_panoptic.detections.evaluate import DetectionEvaluation, FrameResult
from napari_panoptic.detections.pairing import DetectionCounts
from napari_panoptic.nuclei.values.vocabulary import Side, Status
from napari_panoptic.report.cells import (
    failure_figure,
    failures,
    note,
    number,
    status_legend,
    team_label,
)
from napari_panoptic.report.detections.gallery import (
    FIELD_UM,
    PointPicture,
    failure_pictures,
    worst_frames,
)
from napari_panoptic.report.detections.tables import (
    atypia_table,
    curve_table,
    frames_table,
    input_fingerprints,
    patients_table,
    teams_table,
)
from napari_panoptic.report.nuclei.teams import findings_parts, fingerprint_parts
from napari_panoptic.report.page import (
    Cell,
    Child,
    Html,
    Section,
    Table,
    bullets,
    element,
    folded,
    fragment,
    named,
    paragraph,
    plot_figure,
    table,
    write_page,
)
from napari_panoptic.report.plots.detections import precision_recall_curves
from napari_panoptic.report.sections import (
    DATA_SLUG,
    lead,
    report_document,
    settings_beside_versions,
)
from napari_panoptic.report.text import count, interval, p_value, ratio
from napari_panoptic.statistics.bootstrap import LEVEL
from napari_panoptic.statistics.friedman import SIGNIFICANCE

WORST_FRAMES = 3
FAILURES_PER_FRAME = 6


def write_detection_report(evaluation: DetectionEvaluation, path: Path, *, date: str = "") -> Path:
    """Draw the pictures, and write the report as one HTML file, whole or not at all.

    Parameters
    ----------
    evaluation
        What was computed.
    path
        Where to; an older file is replaced.
    date
        Of the report; without one the same files give the same report.

    Raises
    ------
    PanopticError
        Where the file cannot be written.
    """
    return write_page(path, detection_report_page(evaluation, date=date))


def detection_report_page(evaluation: DetectionEvaluation, *, date: str = "") -> str:
    """Make the page of a report; as `write_detection_report`."""
    cohort = evaluation.cohort
    said = lead(
        f"{count(len(cohort.frames))} frames of {count(len(cohort.patients))} patients, "
        f"{count(len(evaluation.team_names))} team(s); a detection within "
        f"{evaluation.settings.distance_um:g} µm of an annotated point is right",
        date=date,
        findings=evaluation.findings,
        consequence="finding(s) of missing or unreadable files: teams' figures are over the "
        "frames that each has, and teams with other frames cannot be compared by them alone. See",
    )
    sections = [
        Section("summary", "Summary", _summary(evaluation)),
        Section("settings", "Settings and provenance", _settings(evaluation)),
        Section(DATA_SLUG, "Data quality", findings_parts(evaluation.findings)),
        Section("curves", "Precision and recall", _curves(evaluation)),
        Section("patients", "Patients", _patients(evaluation)),
        Section("frames", "Frames", _frames(evaluation)),
        Section("worst", "Worst frames", _worst(evaluation)),
        Section("atypia", "Nuclear atypia", _atypia(evaluation)),
        Section("methods", "Methods, for a paper", _methods(evaluation)),
    ]
    return report_document(f"Detection report: {cohort.name}", said, sections)


def _team(evaluation: DetectionEvaluation, name: str) -> Cell:
    return Cell(team_label(name, evaluation.cohort.team_names))


def _count_cells(counts: DetectionCounts) -> list[Cell]:
    numbers = [number(value, count) for value in (counts.tp, counts.fp, counts.fn)]
    return [
        *numbers,
        *(number(value) for value in (counts.precision, counts.recall, counts.f_measure)),
    ]


_COUNT_HEADER = ("TP", "FP", "FN", "precision", "recall", "F-measure")


def _ordered(evaluation: DetectionEvaluation) -> list[str]:
    """List the teams, the best first, those without a figure last."""
    return sorted(
        evaluation.team_names,
        key=lambda team: evaluation.ranks.get(team, len(evaluation.ranks) + 1),
    )


def _summary(evaluation: DetectionEvaluation) -> list[Child]:
    rows = []
    for team in _ordered(evaluation):
        found, curve = evaluation.interval(team), evaluation.curve(team)
        rows.append(
            [
                _team(evaluation, team),
                number(evaluation.ranks.get(team, math.nan), count),
                *_count_cells(evaluation.counts(team)),
                Cell(interval(found.low, found.high), found.low),
                number(math.nan if curve is None else curve.average_precision),
                number(len(evaluation.by_team[team]), count),
            ]
        )
    header = ["team", "rank", *_COUNT_HEADER, f"{LEVEL:.0%} interval of F"]
    header += ["average precision", "frames"]
    caption = (
        "All frames of a team together; ranked by the F-measure, as in MITOS-ATYPIA-14. Average "
        "precision needs a confidence of every detection."
    )
    shown = Table("teams", caption, header, rows, teams_table(evaluation))
    return [table(shown), bullets(list(_said(evaluation)))]


def _said(evaluation: DetectionEvaluation) -> Iterator[Child]:
    if len(evaluation.team_names) > 1:
        comparison = evaluation.comparison
        if comparison.why_undefined:
            yield f"No Friedman test of the F-measure: {comparison.why_undefined}."
        else:
            differ = comparison.friedman_p < SIGNIFICANCE
            yield (
                f"The F-measure {'differs' if differ else 'does not differ significantly'} between "
                f"teams (Friedman, p {p_value(comparison.friedman_p)}, n = "
                f"{comparison.n_patients} patients)."
            )
    n_frames = {len(results) for results in evaluation.by_team.values()}
    if len(n_frames) > 1:
        yield (
            f"Teams were evaluated on {min(n_frames)} to {max(n_frames)} frames: their ranks "
            "compare different frames."
        )
    for team in evaluation.team_names:
        curve = evaluation.curve(team)
        best = None if curve is None else curve.best
        if curve is not None and best is not None and curve.n_reference:
            yield fragment(
                team_label(team, evaluation.cohort.team_names),
                f" would reach its largest F-measure, {ratio(float(curve.f_measure[best]))}, with "
                f"detections of a confidence of {curve.thresholds[best]:g} or more.",
            )


def _settings(evaluation: DetectionEvaluation) -> list[Child]:
    settings = evaluation.settings
    items: dict[str, Child] = {
        "distance": f"{settings.distance_um:g} µm, inclusive",
        "confidence": "all detections count"
        if settings.confidence is None
        else f"at least {settings.confidence:g}",
    }
    return [
        settings_beside_versions(items),
        fingerprint_parts(input_fingerprints(evaluation.cohort, evaluation.team_names)),
    ]


def _curves(evaluation: DetectionEvaluation) -> list[Child]:
    curves = {
        team: curve
        for team in evaluation.team_names
        if (curve := evaluation.curve(team)) is not None
    }
    counts = {team: evaluation.counts(team) for team in evaluation.team_names}
    plot = precision_recall_curves(curves, evaluation.cohort.team_names, counts)
    caption = (
        "Precision against recall at every threshold of confidence, all frames of a team "
        "together; large marks: what was evaluated; grey: equal F-measure."
    )
    frame = curve_table(evaluation)
    columns = ("threshold", "tp", "fp", "fn", "precision", "recall", "f_measure")
    rows = [
        [_team(evaluation, row["team"]), *(number(float(row[name]), _short) for name in columns)]
        for row in frame.to_dict("records")
    ]
    header = ["team", "threshold", *_COUNT_HEADER]
    shown = Table("curve", "Every threshold.", header, rows, frame)
    lacking = [team for team in evaluation.team_names if team not in curves]
    parts: list[Child] = [plot_figure(plot, "precision-recall", caption)]
    if lacking:
        parts.append(
            note(
                "Without a curve, since a detection has no confidence: ",
                *(team_label(team, evaluation.cohort.team_names) for team in lacking),
                ".",
            )
        )
    return [*parts, folded("Every threshold", table(shown))]


def _short(value: float) -> str:
    return count(value) if value == int(value) and value > 1 else ratio(value)


def _patients(evaluation: DetectionEvaluation) -> list[Child]:
    rows = [
        [_team(evaluation, team), Cell(named(patient)), *_count_cells(counts)]
        for team in evaluation.team_names
        for patient, counts in evaluation.patient_counts(team).items()
    ]
    caption = "The frames of each patient together."
    header = ["team", "patient", *_COUNT_HEADER]
    return [table(Table("patients", caption, header, rows, patients_table(evaluation)))]


def _frames(evaluation: DetectionEvaluation) -> list[Child]:
    rows = [
        [
            Cell(named(result.frame.name)),
            Cell(named(result.frame.patient)),
            _team(evaluation, result.team),
            *_count_cells(result.counts),
        ]
        for result in evaluation.results
    ]
    caption = "Every frame of every team; an en dash where a figure is undefined."
    header = ["frame", "patient", "team", *_COUNT_HEADER]
    return [table(Table("frames", caption, header, rows, frames_table(evaluation)))]


def _worst(evaluation: DetectionEvaluation) -> list[Child]:
    parts: list[Child] = [
        note(
            "The frames in which each team failed most often; of each, points that were missed, "
            "and what was wrongly found most surely. Circles are as wide as a detection may lie "
            "from the annotated point in their middle; crosses are detections. "
            f"Pictures are {FIELD_UM:.0f} µm wide."
        ),
        _legend(),
    ]
    radius = evaluation.settings.distance_um
    for team in evaluation.team_names:
        worst = worst_frames(evaluation.by_team[team], WORST_FRAMES)
        if not worst:
            continue
        parts.append(element("h3", team_label(team, evaluation.cohort.team_names)))
        for result in worst:
            pictures = failure_pictures(result, radius, FAILURES_PER_FRAME)
            parts.append(_frame_of(result, list(pictures)))
    return parts if len(parts) > 2 else [paragraph("No team failed anywhere.")]


def _legend() -> Html:
    words = {
        Status.FN: "annotated, not found (FN)",
        Status.FP: "detected, not annotated (FP)",
        Status.TP: "found (TP)",
    }
    return status_legend(words)


def _frame_of(result: FrameResult, pictures: list[PointPicture]) -> Html:
    counts = result.counts
    title = fragment(
        named(result.frame.name),
        f": F {ratio(counts.f_measure)}, {count(counts.fn)} missed, {count(counts.fp)} wrong",
    )
    return failures(title, [_picture(picture) for picture in pictures])


def _picture(picture: PointPicture) -> Html:
    judged = picture.result.judged
    is_reference = picture.side is Side.REFERENCE
    points = judged.reference if is_reference else judged.prediction
    distances = judged.reference_distance_um if is_reference else judged.prediction_distance_um
    confidence, distance = float(points.confidence[picture.row]), float(distances[picture.row])
    what = "annotated point" if is_reference else "detection"
    lines: list[Child] = [f"{picture.status}: {what} {points.ids[picture.row]}"]
    if not math.isnan(confidence):
        lines += [element("br"), f"confidence {confidence:g}"]
    if not math.isnan(distance):
        lines += [element("br"), f"nearest {'detection' if is_reference else 'annotated point'}: "]
        lines.append(f"{distance:.1f} µm")
    alt = f"{picture.status}, {what} {points.ids[picture.row]}, frame {picture.result.frame.name}"
    return failure_figure(picture.jpeg, alt, *lines)


def _atypia(evaluation: DetectionEvaluation) -> list[Child]:
    if not evaluation.atypia.results:
        return [paragraph("No frame has both a true score of atypia and one of a team.")]
    ranks = evaluation.atypia.ranks
    rows, records = [], []
    for team in sorted(evaluation.atypia.teams, key=lambda name: ranks[name]):
        found = evaluation.atypia.of(team)
        values = {
            "rank": ranks[team],
            "points": found.points,
            "frames": found.n_frames,
            "right": found.n_right,
            str(AnswerState.NOT_EVALUATED): found.n_not_evaluated,
            str(AnswerState.MISSING): evaluation.atypia.n_missing(team),
        }
        rows.append([_team(evaluation, team), *(number(v, _whole) for v in values.values())])
        records.append({"team": team, **values})
    caption = f"{POINTS_RULE}; teams are ranked by the sum."
    header = list(records[0])
    parts: list[Child] = [table(Table("atypia", caption, header, rows, pd.DataFrame(records)))]
    parts += [_confusion(evaluation, team) for team in evaluation.atypia.teams]
    frame = atypia_table(evaluation)
    each = [
        [
            Cell(named(str(row["region"]))),
            _team(evaluation, row["team"]),
            number(row["reference"], count),
            Cell(AnswerState.NOT_EVALUATED)
            if pd.isna(row["score"])
            else number(float(row["score"]), count),
            number(row["points"], _whole),
        ]
        for row in frame.to_dict("records")
    ]
    header = ["frame", "team", "true score", "score", "points"]
    listed = Table("atypia-frames", "Every frame of every team.", header, each, frame)
    return [*parts, folded("Every frame", table(listed))]


def _whole(value: float) -> str:
    return f"\N{MINUS SIGN}{count(-value)}" if value < 0 else count(value)


def _confusion(evaluation: DetectionEvaluation, team: str) -> Html:
    confusion = evaluation.atypia.of(team).confusion
    titles = [*(str(score) for score in SCORES), str(AnswerState.NOT_EVALUATED)]
    records: list[dict[str, Any]] = [
        {"true score": score, **dict(zip(titles, own, strict=True))}
        for score, own in zip(SCORES, confusion.tolist(), strict=True)
    ]
    rows = [
        [Cell(f"true {score}"), *(number(value, count) for value in own)]
        for score, own in zip(SCORES, confusion.tolist(), strict=True)
    ]
    caption = fragment("Scores of ", team_label(team, evaluation.cohort.team_names), ".")
    slug = f"atypia-confusion-{evaluation.cohort.team_names.index(team) + 1}"
    shown = Table(slug, caption, ["", *titles], rows, pd.DataFrame(records))
    return table(shown)


def _methods(evaluation: DetectionEvaluation) -> list[Child]:
    distance = evaluation.settings.distance_um
    return [
        paragraph(
            f"Detections were paired one to one with annotated points at most {distance:g} µm away "
            "(this distance included): as many pairs as possible, and among all such pairings one "
            "of the smallest summed distance (linear assignment within connected components). "
            "Pairs are true positives (TP), other detections false positives (FP), other annotated "
            "points false negatives (FN). Precision is TP / (TP + FP), recall TP / (TP + FN), the "
            "F-measure 2 TP / (2 TP + FP + FN), of the sums over all frames; frames without a "
            "readable file of a team are left out of its figures."
        ),
        paragraph(
            "At every threshold of confidence the detections at or above it were paired anew. "
            "Average precision is the sum, over falling thresholds, of precision times the recall "
            f"gained, not interpolated. {LEVEL:.0%} intervals of the F-measure are BCa bootstrap "
            "intervals over patients; the Friedman test compares teams by the F-measure per "
            "patient."
        ),
        paragraph(
            "The challenge is MITOS-ATYPIA-14 (Roux et al., contest at ICPR 2014), whose page on "
            "the format of results defines the distance, the figures and the points for atypia."
        ),
    ]

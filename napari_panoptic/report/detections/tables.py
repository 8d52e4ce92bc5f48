"""The tables that ``evaluate`` writes for a cohort of detections. Their columns are a contract."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_panoptic.common.records import fields_of
from napari_panoptic.detections.atypia import AtypiaResult
from napari_panoptic.detections.evaluate import DetectionEvaluation, FrameResult
from napari_panoptic.detections.pairing import NO_PARTNER, DetectionCounts
from napari_panoptic.io.files.fingerprints import input_fingerprints
from napari_panoptic.report.writing import RECORD, provenance, write_set
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED
from napari_panoptic.statistics.teams import bootstrap_record
from napari_panoptic.tables.columns import (
    TableSpec,
    bounds,
    name_column,
    number,
    unshown,
    whole,
)
from napari_panoptic.tables.figures import count, ratio
from napari_panoptic.values.vocabulary import STATUSES, Side

if TYPE_CHECKING:
    import pandas as pd


def _short(value: float) -> str:
    return count(value) if value == int(value) and value > 1 else ratio(value)


COUNTS = (
    whole("tp", "TP"),
    whole("fp", "FP"),
    whole("fn", "FN"),
    number("precision"),
    number("recall"),
    number("f_measure", "F-measure"),
)
_PLACE = (name_column("team"), name_column("patient"), name_column("region", "frame", "the frame"))
DETECTIONS = TableSpec(
    "detections.csv",
    "annotated point or detection, and team",
    [
        *_PLACE,
        unshown("side"),
        unshown("id", about="line in the file"),
        unshown("x_px", "y_px", "confidence", "status", "partner_id"),
        unshown(
            "distance_um",
            about="to the partner; without one, to the nearest point of the other side",
        ),
    ],
)
FRAMES = TableSpec(
    "frames.csv",
    "team and frame",
    [*_PLACE, *COUNTS],
    "Every frame of every team; en dash: undefined.",
)
PATIENTS = TableSpec(
    "patients.csv",
    "team and patient: all frames of the patient",
    [*_PLACE[:2], *COUNTS],
    "The frames of each patient together.",
)
TEAMS = TableSpec(
    "teams.csv",
    "team: all its frames",
    [
        _PLACE[0],
        unshown("patients", about="number"),
        whole("frames", about="number"),
        *COUNTS,
        bounds("f_measure_low", "f_measure_high", f"{LEVEL:.0%} interval of F", "interval"),
        whole("rank"),
        number("average_precision", "average precision"),
        unshown("best_threshold", about="threshold with the largest F-measure"),
        unshown("best_f_measure", about="F-measure at that threshold"),
        unshown("atypia_frames", about="number"),
        unshown("atypia_points", "atypia_rank"),
    ],
    "All frames of a team together; ranked by the F-measure, as in MITOS-ATYPIA-14. Average "
    "precision requires a confidence for every detection.",
)
CURVE = TableSpec(
    "curve.csv",
    "team and threshold",
    [_PLACE[0], number("threshold", write=_short), *COUNTS],
    "Every threshold.",
)
ATYPIA = TableSpec(
    "atypia.csv",
    "team and frame with a reference score",
    [
        *_PLACE,
        unshown("reference", about="true score"),
        unshown("score", about="empty: not evaluated"),
        unshown("confidence", "points"),
    ],
)
TABLES = (DETECTIONS, FRAMES, PATIENTS, TEAMS, CURVE, ATYPIA)
TABLE_NAMES = (*(spec.file for spec in TABLES), RECORD)
"""The files of a set, the record last."""


def write_detection_tables(evaluation: DetectionEvaluation, folder: Path) -> list[Path]:
    """Write all tables into a folder, which is created if missing.

    Existing files of the same names are replaced, all of them or none.
    """
    tables = {
        DETECTIONS.file: detections_table(evaluation),
        FRAMES.file: frames_table(evaluation),
        PATIENTS.file: patients_table(evaluation),
        TEAMS.file: teams_table(evaluation),
        CURVE.file: curve_table(evaluation),
        ATYPIA.file: atypia_table(evaluation),
    }
    return write_set(folder, tables, (RECORD, record_of(evaluation)))


def detections_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per point: annotated ones and detections, of every team and frame.

    ``distance_um`` is the distance to the partner, or without one to the nearest point of
    the other side. Detections below the confidence threshold are ``ignored``.
    """
    import pandas as pd

    parts = [frame_points(result) for result in evaluation.results]
    if not parts:
        return DETECTIONS.frame([])
    return pd.concat(parts, ignore_index=True)[DETECTIONS.keys]


def frame_points(result: FrameResult) -> pd.DataFrame:
    """Return the points of a team in a frame, the annotated ones first."""
    import pandas as pd

    words = np.array([str(status) for status in STATUSES])
    frames = [
        pd.DataFrame(
            {
                "team": result.team,
                "patient": result.frame.patient,
                "region": result.frame.name,
                "side": str(side),
                "id": own.points.ids,
                "x_px": own.points.xy_px[:, 0],
                "y_px": own.points.xy_px[:, 1],
                "confidence": own.points.confidence,
                "status": words[own.status],
                "partner_id": pd.array(
                    [others.ids[p] if p != NO_PARTNER else None for p in own.partner], "Int64"
                ),
                "distance_um": own.distance_um,
            }
        )
        for side in Side
        for own, others in [(result.judged.side(side), result.judged.side(side.other).points)]
    ]
    return pd.concat(frames, ignore_index=True)


def frames_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team and frame."""
    return FRAMES.frame((_place(result), result.counts) for result in evaluation.results)


def _place(result: FrameResult | AtypiaResult) -> dict[str, str]:
    frame = result.frame
    return {"team": result.team, "patient": frame.patient, "region": frame.name}


def patients_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team and patient: counts summed over the frames, figures of the sums."""
    return PATIENTS.frame(
        ({"team": team, "patient": patient}, counts)
        for team in evaluation.team_names
        for patient, counts in evaluation.patient_counts(team).items()
    )


def teams_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team: figures of the sums over all frames, with intervals."""
    return TEAMS.frame(_team_row(evaluation, team) for team in evaluation.team_names)


def best_first(teams: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `teams_table` by rank; teams without a figure come last."""
    return teams.sort_values("rank", kind="stable", na_position="last")


def _team_row(evaluation: DetectionEvaluation, team: str) -> tuple[dict[str, Any], DetectionCounts]:
    interval, curve = evaluation.interval(team), evaluation.curve(team)
    best = None if curve is None else curve.best
    row: dict[str, Any] = {
        "team": team,
        "patients": len(evaluation.patient_counts(team)),
        "frames": len(evaluation.by_team[team]),
        "f_measure_low": interval.low,
        "f_measure_high": interval.high,
        "rank": evaluation.ranks.get(team),
        "average_precision": math.nan if curve is None else curve.average_precision,
        "best_threshold": math.nan,
        "best_f_measure": math.nan,
    }
    if curve is not None and best is not None:
        row["best_threshold"] = curve.thresholds[best]
        row["best_f_measure"] = curve.f_measure[best]
    row["atypia_frames"] = evaluation.atypia.frames[team]
    row["atypia_points"] = evaluation.atypia.points.get(team)
    row["atypia_rank"] = evaluation.atypia.ranks.get(team)
    return row, evaluation.counts(team)


def curve_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team and threshold, the highest first; no rows without confidences."""
    return CURVE.frame(_curve_rows(evaluation))


def _curve_rows(evaluation: DetectionEvaluation) -> Iterator[Any]:
    for team in evaluation.team_names:
        curve = evaluation.curve(team)
        if curve is None:
            continue
        for place, threshold in enumerate(curve.thresholds):
            yield {"team": team, "threshold": threshold}, curve.counts_at(place)


def atypia_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team and frame with a reference score; an empty score: not evaluated."""
    rows = ((_place(result), result.answer, result) for result in evaluation.atypia.results)
    return ATYPIA.frame(rows).astype({"score": "Int64"})


def record_of(evaluation: DetectionEvaluation) -> dict[str, Any]:
    """Return settings, versions, fingerprints, figures and warnings."""
    teams = evaluation.team_names
    record: dict[str, Any] = {
        "cohort": evaluation.cohort.name,
        "task": "detections",
        "settings": evaluation.settings.as_record(),
        "score": {team: evaluation.counts(team).f_measure for team in teams},
        "evaluated_frames": {team: len(evaluation.by_team[team]) for team in teams},
        "bootstrap": bootstrap_record(RESAMPLES, SEED),
        **provenance(evaluation.findings, input_fingerprints(evaluation.cohort, teams)),
    }
    if len(teams) > 1:
        found = evaluation.comparison
        record["statistics"] = {
            "f_measure": {
                **fields_of(found, "n_patients", "friedman_chi2", "friedman_p"),
                "mean_ranks": dict(zip(found.teams, found.mean_ranks.tolist(), strict=True)),
                "why_undefined": found.why_undefined,
            }
        }
    return record

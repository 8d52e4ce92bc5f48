"""The tables that ``evaluate`` writes for a cohort of detections. Their columns are a contract."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_panoptic.detections.cohort import DetectionCohort
from napari_panoptic.detections.evaluate import DetectionEvaluation, FrameResult
from napari_panoptic.detections.pairing import NO_PARTNER, DetectionCounts
from napari_panoptic.io.fingerprints import file_fingerprints
from napari_panoptic.nuclei.values.vocabulary import STATUSES, Side
from napari_panoptic.report.writing import RECORD, provenance, write_set
from napari_panoptic.statistics.bootstrap import RESAMPLES, SEED
from napari_panoptic.statistics.teams import bootstrap_record

DETECTION_COLUMNS = (
    *("team", "patient", "region", "side", "id", "x_px", "y_px", "confidence"),
    *("status", "partner_id", "distance_um"),
)
TABLE_NAMES = (
    *("detections.csv", "frames.csv", "patients.csv", "teams.csv", "curve.csv", "atypia.csv"),
    RECORD,
)
"""The files of a set, the record last."""
COUNT_COLUMNS = ("tp", "fp", "fn", "precision", "recall", "f_measure")


def write_detection_tables(evaluation: DetectionEvaluation, folder: Path) -> list[Path]:
    """Write all tables into a folder, which is created if missing.

    Existing files of the same names are replaced, all of them or none.
    """
    tables = {
        "detections.csv": detections_table(evaluation),
        "frames.csv": frames_table(evaluation),
        "patients.csv": patients_table(evaluation),
        "teams.csv": teams_table(evaluation),
        "curve.csv": curve_table(evaluation),
        "atypia.csv": atypia_table(evaluation),
    }
    return write_set(folder, tables, (RECORD, record_of(evaluation)))


def detections_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per point: annotated ones and detections, of every team and frame.

    ``distance_um`` is the distance to the partner, or without one to the nearest point of
    the other side. Detections below the confidence threshold are ``ignored``.
    """
    parts = [frame_points(result) for result in evaluation.results]
    if not parts:
        return pd.DataFrame(columns=list(DETECTION_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(DETECTION_COLUMNS)]


def frame_points(result: FrameResult) -> pd.DataFrame:
    """Return the points of a team in a frame, the annotated ones first."""
    judged = result.judged
    sides = (
        (
            Side.REFERENCE,
            (judged.reference, judged.reference_status, judged.reference_partner),
            (judged.reference_distance_um, judged.prediction),
        ),
        (
            Side.PREDICTION,
            (judged.prediction, judged.prediction_status, judged.prediction_partner),
            (judged.prediction_distance_um, judged.reference),
        ),
    )
    words = np.array([str(status) for status in STATUSES])
    frames = [
        pd.DataFrame(
            {
                "team": result.team,
                "patient": result.frame.patient,
                "region": result.frame.name,
                "side": str(side),
                "id": points.ids,
                "x_px": points.xy_px[:, 0],
                "y_px": points.xy_px[:, 1],
                "confidence": points.confidence,
                "status": words[status],
                "partner_id": pd.array(
                    [others.ids[p] if p != NO_PARTNER else None for p in partner], "Int64"
                ),
                "distance_um": distance,
            }
        )
        for side, (points, status, partner), (distance, others) in sides
    ]
    return pd.concat(frames, ignore_index=True)


def _figures(counts: DetectionCounts) -> dict[str, Any]:
    return {name: getattr(counts, name) for name in COUNT_COLUMNS}


def frames_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team and frame."""
    rows = [
        {
            "team": result.team,
            "patient": result.frame.patient,
            "region": result.frame.name,
            **_figures(result.counts),
        }
        for result in evaluation.results
    ]
    return pd.DataFrame(rows, columns=["team", "patient", "region", *COUNT_COLUMNS])


def patients_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team and patient: counts summed over the frames, figures of the sums."""
    rows = [
        {"team": team, "patient": patient, **_figures(counts)}
        for team in evaluation.team_names
        for patient, counts in evaluation.patient_counts(team).items()
    ]
    return pd.DataFrame(rows, columns=["team", "patient", *COUNT_COLUMNS])


def teams_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team: figures of the sums over all frames, with intervals."""
    return pd.DataFrame([_team_row(evaluation, team) for team in evaluation.team_names])


def _team_row(evaluation: DetectionEvaluation, team: str) -> dict[str, Any]:
    interval, curve = evaluation.interval(team), evaluation.curve(team)
    best = None if curve is None else curve.best
    row: dict[str, Any] = {
        "team": team,
        "patients": len(evaluation.patient_counts(team)),
        "frames": len(evaluation.by_team[team]),
        **_figures(evaluation.counts(team)),
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
    has_scores = team in evaluation.atypia.teams
    atypia = evaluation.atypia.of(team)
    row["atypia_frames"] = atypia.n_frames
    row["atypia_points"] = atypia.points if has_scores else None
    row["atypia_rank"] = evaluation.atypia.ranks.get(team)
    return row


def curve_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team and threshold, the highest first; no rows without confidences."""
    columns = ["team", "threshold", *COUNT_COLUMNS]
    return pd.DataFrame(_curve_rows(evaluation), columns=columns)


def _curve_rows(evaluation: DetectionEvaluation) -> Iterator[dict[str, Any]]:
    for team in evaluation.team_names:
        curve = evaluation.curve(team)
        if curve is None:
            continue
        for place in range(len(curve)):
            yield {
                "team": team,
                "threshold": curve.thresholds[place],
                **_figures(curve.counts_at(place)),
            }


def atypia_table(evaluation: DetectionEvaluation) -> pd.DataFrame:
    """Return one row per team and frame with a reference score; an empty score: not evaluated."""
    rows = [
        {
            "team": result.team,
            "patient": result.frame.patient,
            "region": result.frame.name,
            "reference": result.reference,
            "score": result.answer.score,
            "confidence": result.answer.confidence,
            "points": result.points,
        }
        for result in evaluation.atypia.results
    ]
    columns = ["team", "patient", "region", "reference", "score", "confidence", "points"]
    return pd.DataFrame(rows, columns=columns).astype({"score": "Int64"})


def record_of(evaluation: DetectionEvaluation) -> dict[str, Any]:
    """Return settings, versions, fingerprints, figures and warnings."""
    teams = evaluation.team_names
    record: dict[str, Any] = {
        "cohort": evaluation.cohort.name,
        "task": "detections",
        "settings": evaluation.settings.as_record(),
        "score": {team: evaluation.counts(team).f_measure for team in teams},
        "evaluated_frames": {team: len(evaluation.by_team[team]) for team in teams},
        "atypia": {
            team: {
                "points": evaluation.atypia.of(team).points,
                "confusion": evaluation.atypia.of(team).confusion.tolist(),
            }
            for team in evaluation.atypia.teams
        },
        "bootstrap": bootstrap_record(RESAMPLES, SEED),
        **provenance(evaluation.findings, input_fingerprints(evaluation.cohort, teams)),
    }
    if len(teams) > 1:
        found = evaluation.comparison
        record["statistics"] = {
            "f_measure": {
                "n_patients": found.n_patients,
                "friedman_chi2": found.friedman_chi2,
                "friedman_p": found.friedman_p,
                "mean_ranks": dict(zip(found.teams, found.mean_ranks.tolist(), strict=True)),
                "why_undefined": found.why_undefined,
            }
        }
    return record


def input_fingerprints(cohort: DetectionCohort, team_names: tuple[str, ...]) -> dict[str, str]:
    """Return a SHA-256 of each input file, by its path relative to the cohort."""
    paths = {path for f in cohort.frames for path in (f.image, f.reference) if path is not None}
    paths |= {path for (team, _), path in cohort.predictions.items() if team in team_names}
    for scored in cohort.atypia:
        paths |= {scored.reference} if scored.reference is not None else set()
        paths |= {path for team, path in scored.predictions.items() if team in team_names}
    return file_fingerprints(paths, cohort.root)

"""The section on the quality of the scores of teams."""

from __future__ import annotations

import pandas as pd

from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.report import plots
from napari_panoptic.report.columns import name_column, number, table, team_column, whole, words
from napari_panoptic.report.nuclei.scores import (
    AVERAGE,
    FAILURES,
    average_table,
    best_thresholds,
    failures_table,
    score_sentences,
)
from napari_panoptic.report.nuclei.teams import all_teams
from napari_panoptic.report.page import Child, bullets, element, named, team_label
from napari_panoptic.report.plots.embed import plot_figure

_SHOWN_FAILURES = 20
_SHOWN_IOUS = (0.5, 0.75)


def scores_section(report: CohortReport) -> list[Child]:
    """Show precision, calibration and thresholds of each team with scores."""
    teams, iou = all_teams(report), report.request.detailed.iou_threshold
    parts: list[Child] = []
    averages, failures = [], []
    for place, (team, found) in enumerate(report.scores.items(), start=1):
        sentences: list[Child] = [named(f"{text}.") for text in score_sentences(found)]
        drawn = plots.score_plots(found, teams, iou=iou, best=best_thresholds(found))
        parts += [
            element("h3", team_label(team, teams)),
            bullets(sentences),
            plot_figure(drawn, f"scores-{place}", _caption(iou)),
        ]
        frame = average_table(found, iou)
        frame.insert(0, "team", team)
        averages.append(frame)
        failures.append(failures_table(found))
    average = pd.concat(averages, ignore_index=True)
    listed = pd.concat(failures, ignore_index=True)
    listed = listed.sort_values("score", ascending=False, kind="stable", ignore_index=True)
    shown = average[average["iou"].isin(_SHOWN_IOUS)].to_dict("records")
    return [
        *parts,
        table(
            "average_precision",
            "Average precision per class, as COCO computes it, at an IoU of 0.5 and 0.75; the file "
            "has all from 0.5 to 0.95.",
            [team_column(teams), *AVERAGE.shown(teams)],
            average,
            shown,
        ),
        table(
            FAILURES.file.removesuffix(".csv"),
            f"Sure and wrong: FP and misclassified predictions, the highest score first "
            f"(the first {_SHOWN_FAILURES}; the file has all).",
            [
                number("score"),
                team_column(teams),
                name_column("region"),
                whole("id"),
                name_column("class"),
                words("status"),
                words("cause"),
            ],
            listed,
            listed.head(_SHOWN_FAILURES).to_dict("records"),
        ),
    ]


def _caption(iou: float) -> str:
    return (
        f"Left: precision over recall at an IoU of {iou:g}, all classes (thick) and each class. "
        "Middle: share of right predictions (TP) over their scores, with 95 % bands (bootstrap "
        "over patients, or with fewer than six Wilson's interval over objects); on the diagonal, "
        "scores are probabilities. Right: PQ and F1 without predictions below each threshold, "
        "mean over patients; vertical lines: thresholds with the best values."
    )

"""Plots of detections: precision against recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from napari_panoptic.detections.curve import DetectionCurve
from napari_panoptic.detections.pairing import DetectionCounts
from napari_panoptic.report.plots.theme import INK, NORMAL, Drawing, Plot, Point, equal_f1_lines
from napari_panoptic.tables.figures import ratio


def precision_recall_curves(
    curves: Mapping[str, DetectionCurve],
    teams: Sequence[str],
    evaluated: Mapping[str, DetectionCounts],
) -> Plot:
    """Draw precision against recall, a point per threshold, and the evaluated threshold.

    Parameters
    ----------
    curves
        Team -> its curve; teams without confidences have none.
    teams
        All teams of the cohort, in its order, which decides their looks.
    evaluated
        Team -> its counts at the threshold of the evaluation, shown as a large mark.
    """
    drawing = Drawing(6.0, 4.6, teams)
    (axes,) = drawing.panels([""], 1)
    equal_f1_lines(axes)
    shown = []
    for team in teams:
        curve, counts = curves.get(team), evaluated.get(team)
        if curve is not None and len(curve) and curve.n_reference:
            points = [_point(curve, place, team) for place in range(len(curve))]
            drawing.mark(axes, points, team, linestyle="-", linewidth=1.3, markersize=3.0)
            shown.append(team)
        if counts is not None and np.isfinite([counts.recall, counts.precision]).all():
            drawing.summary_mark(axes, _evaluated(counts, team))
            shown.append(team)
    axes.set_xlabel("recall", fontsize=NORMAL, color=INK)
    axes.set_ylabel("precision", fontsize=NORMAL, color=INK)
    axes.set(xlim=(-0.02, 1.04), ylim=(-0.02, 1.04))
    drawing.legend(dict.fromkeys(shown))
    return drawing.done()


def _point(curve: DetectionCurve, place: int, team: str) -> Point:
    recall, precision = float(curve.recall[place]), float(curve.precision[place])
    text = (
        f"threshold {curve.thresholds[place]:g}: precision {ratio(precision)}, "
        f"recall {ratio(recall)}, F {ratio(float(curve.f_measure[place]))}"
    )
    return Point(recall, precision, team, text=text)


def _evaluated(counts: DetectionCounts, team: str) -> Point:
    text = f"as evaluated: precision {ratio(counts.precision)}, recall {ratio(counts.recall)}"
    return Point(counts.recall, counts.precision, team, text=f"{text}, F {ratio(counts.f_measure)}")

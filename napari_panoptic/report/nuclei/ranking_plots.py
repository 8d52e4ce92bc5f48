"""The plots of a cohort that the panel of the ranking offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from napari_panoptic.report import plots
from napari_panoptic.report.nuclei.cohort_report import CohortReport, Varied
from napari_panoptic.report.nuclei.tables import confusion_table, patients_table
from napari_panoptic.report.nuclei.teams import all_teams
from napari_panoptic.report.plots import Plot


def cohort_plot(name: str, report: CohortReport) -> Plot:
    """Draw one of `PLOTS`."""
    return PLOTS[name](report)


def _of_patients(draw: Callable[..., Plot], report: CohortReport) -> Plot:
    return draw({"": patients_table(report.evaluation)}, all_teams(report))


def _confusion(report: CohortReport, *, normalised: bool) -> Plot:
    frame, classes = confusion_table(report.evaluation), report.cohort.scheme.names
    return plots.confusion_matrices(frame, classes, all_teams(report), normalised=normalised)


def _mean_ranks(report: CohortReport) -> Plot:
    if "pq" not in report.statistics:
        return plots.nothing_to_show("there are fewer than two teams to compare")
    return plots.critical_difference_diagram(report.statistics["pq"].critical, all_teams(report))


def _curve(report: CohortReport, varied: Varied, *, is_radius: bool) -> Plot:
    chosen, own = [one.settings for one in varied.conditions], report.request.detailed
    if is_radius:
        positions = [float(settings.radius) for settings in chosen]
        usual, label = float(own.dilation_radius), "radius (px)"
    else:
        positions = [settings.iou_threshold for settings in chosen]
        usual, label = own.iou_threshold, "IoU threshold"
    teams = all_teams(report)
    return plots.robustness_curves(varied.found, positions, teams, x_label=label, usual=usual)


def _shifts(report: CohortReport) -> Plot:
    found = report.shifts
    shifts = [condition.shift for condition in found.conditions]
    return plots.shift_maps(found.found, shifts, all_teams(report), columns=2)


def _sizes(report: CohortReport) -> Plot:
    if report.sizes is None:
        return plots.nothing_to_show("no nucleus is annotated")
    return plots.size_lines(report.sizes, all_teams(report))


PLOTS: Mapping[str, Callable[[CohortReport], Plot]] = {
    "PQ per patient": partial(_of_patients, plots.patient_boxes),
    "DQ against SQ": partial(_of_patients, plots.quality_scatter),
    "Precision against recall": partial(_of_patients, plots.detection_scatter),
    "Confusion, counts": partial(_confusion, normalised=False),
    "Confusion, shares": partial(_confusion, normalised=True),
    "Mean ranks": _mean_ranks,
    "PQ against radius": lambda report: _curve(report, report.radii, is_radius=True),
    "PQ against threshold": lambda report: _curve(report, report.thresholds, is_radius=False),
    "Shifts by a pixel": _shifts,
    "By size of nucleus": _sizes,
    "Causes of failures": lambda report: plots.cause_dots(report.causes, all_teams(report)),
}
"""Name in the menu -> what draws it. The panel lists the same names, since drawing is slow to
import."""

"""The plots of the ranking panel; importing this imports matplotlib, which takes long."""

from __future__ import annotations

from collections.abc import Sequence

from napari_panoptic.nuclei.challenge import evaluate_challenge
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.protocols import alignments
from napari_panoptic.nuclei.regions.conditions import radius_conditions, threshold_conditions
from napari_panoptic.nuclei.regions.experiment import Experiment, cohort_robustness
from napari_panoptic.report import plots
from napari_panoptic.report.nuclei.cohort_report import CohortReport, Varied
from napari_panoptic.report.nuclei.tables import confusion_table, patients_table
from napari_panoptic.report.plots import Plot
from napari_panoptic.report.plots.ranks import alignment_curves
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.viewer.kit.plot_view import DRAWING
from napari_panoptic.viewer.panels.ranking.panel import RankingPlot


def alignment_plot(evaluation: Evaluation) -> Plot:
    """Draw how the challenge scores the same predictions numbered in other ways."""
    settings = evaluation.settings.replaced(distances=False)
    scores = evaluate_challenge(evaluation.pair, settings).scores
    found = {name: alignments(score) for name, score in scores.items()}
    with DRAWING:
        return alignment_curves(found)


def region_curve(
    cohort: Cohort,
    region_name: str,
    settings: EvaluationSettings,
    source: Source | None,
    view: RankingPlot,
) -> Plot:
    """Evaluate one region under many radii or thresholds, all competing teams."""
    teams = tuple(team.name for team in cohort.competing_teams)
    base = settings.replaced(distances=False)
    make = radius_conditions if view is RankingPlot.REGION_RADIUS else threshold_conditions
    conditions = make(base=base, source=source)
    work = Experiment(teams, conditions, with_objects=False)
    results = work.evaluate(cohort, cohort.region(region_name))
    varied = Varied(conditions, cohort_robustness([results], work, cohort.scheme.names))
    return _curve(view is RankingPlot.REGION_RADIUS, varied, teams, settings)


def _curve(
    is_radius: bool,
    varied: Varied,
    teams: Sequence[str],
    settings: EvaluationSettings,
) -> Plot:
    chosen = [condition.settings for condition in varied.conditions]
    if is_radius:
        positions = [float(own.radius) for own in chosen]
        usual, label = float(settings.dilation_radius), "radius (px)"
    else:
        positions = [own.iou_threshold for own in chosen]
        usual, label = settings.iou_threshold, "IoU threshold"
    with DRAWING:
        return plots.robustness_curves(varied.found, positions, teams, x_label=label, usual=usual)


def cohort_plot(view: RankingPlot, found: CohortReport) -> Plot:
    """Draw a view of the cohort."""
    evaluation, settings = found.evaluation, found.request.detailed
    teams = [team.name for team in found.cohort.teams]
    if view in (RankingPlot.PATIENTS, RankingPlot.QUALITY, RankingPlot.DETECTION):
        draw = {
            RankingPlot.PATIENTS: plots.patient_boxes,
            RankingPlot.QUALITY: plots.quality_scatter,
            RankingPlot.DETECTION: plots.detection_scatter,
        }[view]
        return draw({"": patients_table(evaluation)}, teams)
    if view in (RankingPlot.CONFUSION, RankingPlot.SHARES):
        classes = found.cohort.scheme.names
        return plots.confusion_matrices(
            confusion_table(evaluation), classes, teams, normalised=view is RankingPlot.SHARES
        )
    if view in (RankingPlot.RADIUS, RankingPlot.THRESHOLD):
        is_radius = view is RankingPlot.RADIUS
        return _curve(is_radius, found.radii if is_radius else found.thresholds, teams, settings)
    if view is RankingPlot.SHIFTS:
        return plots.shift_maps(
            found.shifts.found, [c.shift for c in found.shifts.conditions], teams, columns=2
        )
    if view is RankingPlot.RANK_LINES:
        return plots.rank_lines(found.protocols, teams)
    if view is RankingPlot.CAUSES:
        return plots.cause_dots(found.causes, teams)
    if view is RankingPlot.SIZES and found.sizes is not None:
        return plots.size_lines(found.sizes, teams)
    if view is RankingPlot.MEAN_RANKS and "pq" in found.statistics:
        return plots.critical_difference_diagram(found.statistics["pq"].critical, teams)
    return alignment_curves({})

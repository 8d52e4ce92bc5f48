"""The plots of a cohort of nuclei, one function each.

Every point of a plot knows its team, patient and region, so that a viewer can
respond to picks.
"""

from napari_panoptic.report.plots.failures import cause_dots, confusion_matrices, size_lines
from napari_panoptic.report.plots.patients import detection_scatter, patient_boxes, quality_scatter
from napari_panoptic.report.plots.ranks import (
    critical_difference_diagram,
    rank_lines,
    robustness_curves,
    shift_maps,
)
from napari_panoptic.report.plots.scores import score_plots
from napari_panoptic.report.plots.slices import covariate_curve, covariate_curves
from napari_panoptic.report.plots.sweeps import sweep_causes, sweep_figure
from napari_panoptic.report.plots.theme import (
    Plot,
    Point,
    nothing_to_show,
    png_bytes,
    save,
    svg_text,
)

__all__ = [
    "Plot",
    "Point",
    "cause_dots",
    "confusion_matrices",
    "covariate_curve",
    "covariate_curves",
    "critical_difference_diagram",
    "detection_scatter",
    "nothing_to_show",
    "patient_boxes",
    "png_bytes",
    "quality_scatter",
    "rank_lines",
    "robustness_curves",
    "save",
    "score_plots",
    "shift_maps",
    "size_lines",
    "svg_text",
    "sweep_causes",
    "sweep_figure",
]

"""Plots of a single region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from napari_panoptic.nuclei.palette import team_styles
from napari_panoptic.nuclei.protocols import Alignment
from napari_panoptic.report.plots import Plot

_SMALL, _NORMAL = 7.5, 8.5


def alignment_curves(classes: Mapping[str, Sequence[Alignment]]) -> Plot:
    """Draw what the challenge's scoring makes of the same masks with other ids.

    As table 1 of Foucart, Debeir and Decaestecker (2021): a panel per class, PQ
    as the challenge computed it against the id of the first predicted object,
    and PQ with the matching corrected, which no id changes.

    Parameters
    ----------
    classes
        Class -> its alignments; classes without any are left out.
    """
    shown = {name: found for name, found in classes.items() if found}
    if not shown:
        figure = Figure(figsize=(4.5, 1.5), layout="constrained")
        figure.text(0.5, 0.5, "nothing annotated or predicted here", ha="center", fontsize=_NORMAL)
        return Plot(figure, {})
    figure = Figure(figsize=(4.5, 0.4 + 1.5 * len(shown)), layout="constrained")
    panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    as_run, corrected = (style.colour for style in team_styles(["as run", "corrected"]).values())
    for axes, (name, found) in zip(panels, shown.items(), strict=True):
        firsts = [alignment.first_id for alignment in found]
        axes.plot(
            firsts,
            [alignment.pq for alignment in found],
            color=corrected,
            linestyle="--",
            label="matching corrected",
        )
        axes.step(
            firsts,
            [alignment.pq_as_run for alignment in found],
            where="mid",
            color=as_run,
            label="as run",
        )
        low = min(alignment.pq_as_run for alignment in found)
        high = max(alignment.pq_as_run for alignment in found)
        axes.set_title(f"{name}: {low:.3f} to {high:.3f} as run", fontsize=_NORMAL)
        axes.set_ylabel("PQ", fontsize=_SMALL)
        axes.tick_params(labelsize=_SMALL)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("id of the first predicted object", fontsize=_SMALL)
    panels[0].legend(fontsize=_SMALL, frameon=False, loc="lower right")
    return Plot(figure, {})

"""Plots of a single region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from napari_panoptic.nuclei.display.palette import team_styles
from napari_panoptic.nuclei.protocols import Alignment
from napari_panoptic.report.plots.theme import SMALL, Drawing, Plot, nothing_to_show


def alignment_curves(classes: Mapping[str, Sequence[Alignment]]) -> Plot:
    """Draw how the challenge's scoring of the same masks depends on their ids.

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
        return nothing_to_show("nothing annotated or predicted here", width=4.5)
    titles = [f"{name}: {_range(found)} as run" for name, found in shown.items()]
    drawing = Drawing(4.5, 0.4 + 1.5 * len(shown))
    panels = drawing.panels(titles, 1, share=False)
    as_run, corrected = (style.colour for style in team_styles(["as run", "corrected"]).values())
    for axes, found in zip(panels, shown.values(), strict=True):
        firsts = [alignment.first_id for alignment in found]
        pq, pq_as_run = ([a.pq for a in found], [a.pq_as_run for a in found])
        axes.plot(firsts, pq, color=corrected, linestyle="--", label="matching corrected")
        axes.step(firsts, pq_as_run, where="mid", color=as_run, label="as run")
        axes.set_ylabel("PQ", fontsize=SMALL)
    panels[-1].set_xlabel("id of the first predicted object", fontsize=SMALL)
    panels[0].legend(fontsize=SMALL, frameon=False, loc="lower right")
    return drawing.done()


def _range(found: Sequence[Alignment]) -> str:
    values = [alignment.pq_as_run for alignment in found]
    return f"{min(values):.3f} to {max(values):.3f}"

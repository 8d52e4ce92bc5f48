"""The section on common conditions of the failures of teams."""

from __future__ import annotations

import pandas as pd

from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.nuclei.explain.slices import SliceSearch
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.report import plots
from napari_panoptic.report.columns import table, team_column
from napari_panoptic.report.nuclei.slices import NOTHING, SLICES, slice_sentence, slices_table
from napari_panoptic.report.nuclei.teams import all_teams
from napari_panoptic.report.page import Child, bullets, element, named, note, team_label
from napari_panoptic.report.plots.embed import plot_figure


def slices_section(report: CohortReport) -> list[Child]:
    """Show the slices in which each team fails often, and failure rates by covariate."""
    teams = all_teams(report)
    frames = []
    parts: list[Child] = []
    for place, (team, found) in enumerate(report.slices.items()):
        frame = slices_table(found, Side.REFERENCE)
        frame.insert(0, "team", team)
        frames.append(frame)
        sentences: list[Child] = [
            named(slice_sentence(own, Side.REFERENCE)) for own in found.slices
        ]
        parts += [
            element("h3", team_label(team, teams)),
            bullets(sentences) if sentences else note(f"{NOTHING.capitalize()}."),
        ]
        if found.failures and found.curves:
            curves = plots.covariate_curves(
                found.curves, team, teams, rate=found.failures / found.objects
            )
            parts.append(plot_figure(curves, f"covariates-{place + 1}", _caption(found)))
    listed = [frame for frame in frames if len(frame)]
    if not listed:
        return parts
    shown = pd.concat(listed, ignore_index=True)
    columns = [team_column(teams), *SLICES.shown(teams)]
    caption = (
        "Slices of at most two conditions whose annotated objects are FN or misclassified more "
        "often than other objects of the same patients. Family-wise p-values by permutation "
        "within patients; confirmed in patients held out of a second search."
    )
    return [*parts, table("slices", caption, columns, shown)]


def _caption(found: SliceSearch) -> str:
    bands = {curve.over_patients for curve in found.curves.values()}
    of_what = "bootstrap over patients" if True in bands else "Wilson's interval over objects"
    return (
        "Share of annotated objects that are FN or misclassified, by deciles of each covariate or "
        f"by value, with 95 % bands ({of_what}); dashed: of all objects."
    )

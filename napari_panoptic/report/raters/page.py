"""One HTML file that reports everything about a cohort of several raters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.files.fingerprints import input_fingerprints
from napari_panoptic.raters.evaluate import (
    THERE,
    RatedEvaluation,
    load_images,
    load_map,
    load_reference,
)
from napari_panoptic.raters.ranking import CASES, STRUCTURES
from napari_panoptic.report.columns import shown_columns, spec_table, table
from napari_panoptic.report.page import Section, team_label
from napari_panoptic.report.plots import Plot, png_bytes
from napari_panoptic.report.plots import raters as rater_plots
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.report.raters.statistics import (
    ALL_STRUCTURES,
    UNIT,
    ranking_table,
    rater_statistics,
)
from napari_panoptic.report.raters.tables import (
    LEVELS,
    RELIABILITY,
    SPREAD,
    TEAMS,
    levels_table,
    raters_table,
    reliability_table,
)
from napari_panoptic.report.sections import (
    DATA_SLUG,
    findings_section,
    fingerprints,
    lead,
    methods_section,
    report_document,
    settings_section,
)
from napari_panoptic.report.statistics import StatisticsTables
from napari_panoptic.tables.columns import CellContent, Record, TableColumn, name_column, number
from napari_panoptic.tables.figures import counted, ratio
from napari_panoptic.tables.markup import (
    Child,
    data_uri,
    element,
    folded,
    fragment,
    named,
    paragraph,
)
from napari_panoptic.values.raters import AtLevel, BothEmpty

WORST_PER_TEAM = 3
"""Number of pictures per team."""
PICTURE_DPI = 110


@dataclass(frozen=True, eq=False)
class WorstCase:
    """One of the worst cases of a team, and its drawing."""

    team: str
    structure: str
    case: str
    dice: float
    slice_number: int | None
    plot: Plot


def rater_page(evaluation: RatedEvaluation, worst: Sequence[WorstCase], *, date: str = "") -> str:
    """Return the page of a report; without a date, the same files give the same page."""
    cohort = evaluation.cohort
    first = lead(
        f"{counted(len(cohort.cases), 'case')}, {counted(len(cohort.structures), 'structure')}, "
        f"{counted(len(cohort.raters), 'rater')}, {counted(len(evaluation.teams), 'team')}",
        date=date,
        findings=evaluation.findings,
        consequence="Missing predictions count as background.",
    )
    structures = spec_table(STRUCTURES, evaluation.structures, cohort.teams, ["structure"])
    lowest = evaluation.cases.sort_values("dice", kind="stable").to_dict("records")
    cases = spec_table(CASES, evaluation.cases, cohort.teams, ["case", "structure"], lowest)
    sections = [
        Section("ranking", "Ranking", _ranking(evaluation)),
        Section("tests", "Whether teams differ", _tests(evaluation)),
        Section("structures", "By structure", [structures]),
        Section("raters", "Teams among the raters", _spread(evaluation)),
        Section("levels", "Dice over levels", _levels(evaluation)),
        Section("calibration", "Calibration", _calibration(evaluation)),
        Section("worst", "Worst cases", _worst(evaluation, worst)),
        Section("cases", "All cases", [cases]),
        Section("agreement", "Agreement of the raters", _agreement(evaluation)),
        Section(DATA_SLUG, "Data quality", findings_section(evaluation.findings)),
        Section("settings", "Settings and provenance", _settings(evaluation)),
        Section("methods", "Methods, for a paper", _methods(evaluation)),
    ]
    return report_document(f"Report on several raters: {cohort.name}", first, sections)


def worst_cases(evaluation: RatedEvaluation) -> Iterator[WorstCase]:
    """Draw the cases with the lowest average Dice of each team, among those with a prediction.

    Of a volume, the slice with the lowest average is drawn, among those in which a rater marked
    something; the first one if several are equal. Files that can no longer be read are left out.
    """
    cohort, settings = evaluation.cohort, evaluation.settings
    by_place = {(result.structure, result.case): result for result in evaluation.results}
    for team in evaluation.teams:
        own = evaluation.cases
        own = own[(own["team"] == team) & (own["prediction"] == THERE)]
        worst = own.sort_values("dice", kind="stable").head(WORST_PER_TEAM)
        for row in worst.to_dict("records"):
            case, structure = str(row["case"]), str(row["structure"])
            try:
                loaded = load_reference(cohort, cohort.region(case), structure)
                found = load_map(cohort, team, loaded).values
                images = load_images(loaded).images
            except (PanopticError, OSError):
                continue
            masks, image = loaded.reference.masks, next(iter(images.values()), None)
            number = None
            if loaded.reference.is_volume:
                scores = by_place[structure, case].teams[team][1].slice_scores(settings)
                is_marked = loaded.reference.votes.any(axis=(1, 2))
                number = int(np.argmin(np.where(is_marked, scores, math.inf)))
                masks, found = masks[:, number], found[number]
                image = None if image is None else image[number]
            raters = [cohort.raters.index(rater) for rater in loaded.reference.raters]
            plot = rater_plots.outlines_picture(image, masks, found, raters, settings)
            yield WorstCase(team, structure, case, float(row["dice"]), number, plot)


# --- sections ------------------------------------------------------------------------------------


def _ranking(evaluation: RatedEvaluation) -> list[Child]:
    if not evaluation.teams:
        return [paragraph("There are no predictions; the raters are compared with each other.")]
    first = ["team", "rank", "shared_rank", "score"]
    return [spec_table(TEAMS, ranking_table(evaluation), evaluation.cohort.teams, first)]


def _tests(evaluation: RatedEvaluation) -> list[Child]:
    """Show whether teams differ over cases, and which."""
    found = rater_statistics(evaluation)
    if not found:
        text = "Undefined: comparing teams needs at least two teams, found"
        return [paragraph(f"{text} {len(evaluation.teams)}.")]
    names = {key: key for key in found} | {ALL_STRUCTURES: "all, mean per case"}
    shown = StatisticsTables(
        found,
        evaluation.cohort.teams,
        names,
        ALL_STRUCTURES,
        "Dice",
        unit=UNIT,
        head="structure",
        column="structure",
    )
    return shown.parts(
        "Dice averaged over levels; a missing prediction counts as background. The structures of a "
        "case are not independent: each is tested separately, and so is their mean per case; "
        "p-values are not corrected for the number of structures.",
        None,
        "Mean ranks by Dice, mean over the structures of each case; teams under one bar do not "
        "differ significantly (Nemenyi).",
    )


def _spread(evaluation: RatedEvaluation) -> list[Child]:
    figure = plot_figure(
        rater_plots.spread_plot(evaluation),
        "raters",
        "Teams among the raters: bars reach from the lowest to the highest rater.",
    )
    return [figure, spec_table(SPREAD, evaluation.structures, evaluation.cohort.teams)]


def _levels(evaluation: RatedEvaluation) -> list[Child]:
    levels = levels_table(evaluation)
    caption = "Dice at each level, mean over cases."
    means = levels.groupby(["structure", "team", "level"], sort=False)["dice"].mean().reset_index()
    columns = [
        column
        for column in shown_columns(LEVELS, evaluation.cohort.teams, ["structure"])
        if column.keys != ("case",)
    ]
    shown = table("levels", caption, columns, levels, means.to_dict("records"))
    figure = plot_figure(rater_plots.levels_plot(evaluation), "dice-over-levels", caption)
    return [figure, folded("As a table", shown)]


def _calibration(evaluation: RatedEvaluation) -> list[Child]:
    shown = spec_table(RELIABILITY, reliability_table(evaluation), evaluation.cohort.teams)
    plot = rater_plots.reliability_plot(evaluation)
    figure = plot_figure(plot, "calibration", RELIABILITY.caption)
    return [figure, folded("As a table", shown)]


def _worst(evaluation: RatedEvaluation, worst: Sequence[WorstCase]) -> list[Child]:
    if not worst:
        return [element("p", "There are no pictures to show.", class_="nothing")]
    introduction = paragraph(
        "The lowest averages of each team. Left: one colour per rater. Centre and right: outlines "
        "of the levels of the raters' mean and of the prediction; lighter: higher levels. Of "
        "volumes, the slice with the lowest average is shown."
    )
    return [introduction, *(_figure(evaluation, case) for case in worst)]


def _figure(evaluation: RatedEvaluation, found: WorstCase) -> Child:
    place = "" if found.slice_number is None else f", slice {found.slice_number}"
    caption = fragment(
        team_label(found.team, evaluation.cohort.teams),
        f": {found.case}, {found.structure}{place}; Dice {ratio(found.dice)}",
    )
    address = data_uri("image/png", png_bytes(found.plot, dpi=PICTURE_DPI))
    text = f"Outlines in {found.case}, {found.structure}, of {found.team}"
    shown = element("img", src=address, alt=text, width="710")
    return element("figure", shown, element("figcaption", caption), class_="plot")


def _agreement(evaluation: RatedEvaluation) -> list[Child]:
    found = raters_table(evaluation)
    pairs = found[found["kind"] == "pair"]
    means = pairs.groupby(["structure", "rater", "other"], sort=False)[["dice", "pq", "f1"]].mean()
    columns = [name_column("structure"), TableColumn("raters", _two_raters), number("dice", "Dice")]
    caption = "The masks of each pair of raters, mean over cases."
    if pairs["pq"].notna().any():
        columns += [number("pq", "PQ"), number("f1", "F1")]
        caption = f"{caption} PQ and F1 are of objects."
    rows = means.reset_index().to_dict("records")
    return [table("pairs", caption, columns, found, rows)]


def _two_raters(row: Record) -> CellContent:
    return CellContent(fragment(named(row["rater"]), " and ", named(row["other"])))


def _settings(evaluation: RatedEvaluation) -> list[Child]:
    settings = evaluation.settings
    items: dict[str, Child] = {
        "levels": ", ".join(f"{level:g}" for level in settings.levels),
        "a probability equal to a level": "reaches it"
        if settings.at_level is AtLevel.AT_LEAST
        else "does not reach it",
        "Dice if both sides are empty": "1"
        if settings.both_empty is BothEmpty.ONE
        else "undefined, left out of averages",
        "missing predictions": "background everywhere",
    }
    files = input_fingerprints(evaluation.cohort, evaluation.teams)
    return settings_section(items, fingerprints(files))


def _methods(evaluation: RatedEvaluation) -> list[Child]:
    settings = evaluation.settings
    is_one = settings.both_empty is BothEmpty.ONE
    return methods_section(
        "methods_raters.html.j2",
        levels=[f"{level:g}" for level in settings.levels],
        sign="at least" if settings.at_level is AtLevel.AT_LEAST else "more than",
        empty="1 where both were empty" if is_one else "left out where both were empty",
    )

"""One HTML file that reports everything about a cohort of several raters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.raters.cohort import AtLevel, BothEmpty
from napari_panoptic.raters.evaluate import (
    THERE,
    RatedEvaluation,
    load_images,
    load_map,
    load_reference,
)
from napari_panoptic.raters.levels import Standing
from napari_panoptic.report.cells import note, number, team_label
from napari_panoptic.report.nuclei.methods import REFERENCES
from napari_panoptic.report.nuclei.teams import findings_parts, fingerprint_parts
from napari_panoptic.report.page import (
    Cell,
    Child,
    Section,
    Table,
    data_uri,
    element,
    folded,
    fragment,
    named,
    paragraph,
    plot_figure,
    table,
    write_page,
)
from napari_panoptic.report.plots import Plot, critical_difference_diagram, png_bytes
from napari_panoptic.report.plots import raters as rater_plots
from napari_panoptic.report.raters.statistics import (
    ALL_STRUCTURES,
    UNIT,
    ranking_table,
    rated_statistics,
)
from napari_panoptic.report.raters.tables import rated_fingerprints, tables
from napari_panoptic.report.sections import (
    DATA_SLUG,
    lead,
    report_document,
    settings_beside_versions,
)
from napari_panoptic.report.statistics import (
    TableWords,
    friedman_table,
    means_table,
    nemenyi_table,
    pairs_table,
)
from napari_panoptic.report.text import UNDEFINED, count, interval, ratio
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED
from napari_panoptic.statistics.friedman import SIGNIFICANCE

WORST_PER_TEAM = 3
"""So many pictures of each team are in the report."""
PICTURE_DPI = 110

_STANDING_WORDS = {
    Standing.BELOW: "below all raters",
    Standing.WITHIN: "within the raters",
    Standing.ABOVE: "above all raters",
    Standing.UNDEFINED: UNDEFINED,
}


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A case that a team is bad at, and a drawing of it."""

    team: str
    structure: str
    case: str
    dice: float
    slice_number: int | None
    plot: Plot


def write_rated_report(evaluation: RatedEvaluation, path: Path, *, date: str = "") -> Path:
    """Draw the pictures, and write the report as one HTML file, whole or not at all.

    Parameters
    ----------
    evaluation
        What was computed.
    path
        Where to; an older file is replaced.
    date
        Of the report; without one the same files give the same report.

    Raises
    ------
    PanopticError
        Where the file cannot be written.
    """
    return write_page(path, rated_page(evaluation, list(worst_cases(evaluation)), date=date))


def rated_page(evaluation: RatedEvaluation, worst: list[WorstCase], *, date: str = "") -> str:
    """Make the page of a report."""
    cohort = evaluation.cohort
    said = lead(
        f"{count(len(cohort.cases))} case(s), {count(len(cohort.structures))} structure(s), "
        f"{count(len(cohort.raters))} rater(s), {count(len(evaluation.teams))} team(s)",
        date=date,
        findings=evaluation.findings,
        consequence="thing(s) were missing or unreadable; a prediction that is counts as "
        "background everywhere: see",
    )
    sections = [
        Section("ranking", "Ranking", _ranking(evaluation)),
        Section("tests", "Whether teams differ", _tests(evaluation)),
        Section("structures", "By structure", _structures(evaluation)),
        Section("raters", "Teams among the raters", _spread(evaluation)),
        Section("levels", "Dice over levels", _levels(evaluation)),
        Section("calibration", "Calibration", _calibration(evaluation)),
        Section("worst", "Worst cases", _worst(evaluation, worst)),
        Section("cases", "All cases", _cases(evaluation)),
        Section("agreement", "Agreement of the raters", _agreement(evaluation)),
        Section(DATA_SLUG, "Data quality", findings_parts(evaluation.findings)),
        Section("settings", "Settings and provenance", _settings(evaluation)),
        Section("methods", "Methods, for a paper", _methods(evaluation)),
    ]
    return report_document(f"Report on several raters: {cohort.name}", said, sections)


def worst_cases(evaluation: RatedEvaluation) -> Iterator[WorstCase]:
    """Draw the cases with the lowest average Dice of each team whose predictions are there.

    Of a volume, the slice with the lowest average among those in which a rater
    marked something, the first of equal ones. What cannot be read any more is
    left out.
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


def _team(evaluation: RatedEvaluation, name: str) -> Cell:
    return Cell(team_label(name, evaluation.cohort.teams))


def _ranking(evaluation: RatedEvaluation) -> list[Child]:
    if not evaluation.teams:
        return [paragraph("There are no predictions; the raters are compared with each other.")]
    ranked = ranking_table(evaluation)
    rows = [
        [
            _team(evaluation, row["team"]),
            _rank(row["rank"]),
            _rank(row["shared_rank"]),
            number(row["score"]),
            number(row["dice_all_cases"]),
            number(row["left_out_dice"]),
            number(row["brier"]),
            number(row["cases"], count),
            number(row["missing"], count),
        ]
        for row in ranked.to_dict("records")
    ]
    header = [
        "team",
        "rank",
        "shared rank",
        "score",
        "mean over all cases",
        "against all raters but one",
        "Brier",
        "cases",
        "missing or unreadable",
    ]
    caption = (
        "The score is Dice, averaged over levels, then over the cases of each structure, then "
        "over structures. A lower Brier score is better. The shared rank is 1 + the number of "
        "teams that are significantly better over cases."
    )
    return [table(Table("teams", caption, header, rows, ranked))]


def _rank(value: object) -> Cell:
    return number(value, count) if isinstance(value, int) else Cell(UNDEFINED, math.nan)


def _tests(evaluation: RatedEvaluation) -> list[Child]:
    """Show whether teams differ over cases, and which."""
    found = rated_statistics(evaluation)
    if not found:
        return [
            paragraph(
                f"Undefined: comparing teams needs at least two teams, found "
                f"{len(evaluation.teams)}."
            )
        ]
    names = {name: name for name in found} | {ALL_STRUCTURES: "all, mean per case"}
    teams = evaluation.cohort.teams
    words = TableWords(teams, names, ALL_STRUCTURES, "Dice", UNIT, "structure", "structure")
    critical = found[ALL_STRUCTURES].critical
    caption = (
        "Mean ranks by Dice, mean over the structures of each case; teams under one bar do not "
        "differ significantly (Nemenyi)."
    )
    return [
        note(
            f"Dice averaged over levels; a missing prediction counts as background. Intervals: "
            f"{LEVEL:.0%} bootstrap, {count(RESAMPLES)} resamples of the cases, seed {SEED}; BCa "
            f"unless another method is named. Structures of a case are not independent: each is "
            f"tested by itself, and their mean per case; p-values are not corrected for the number "
            f"of structures."
        ),
        friedman_table(words, found),
        plot_figure(
            critical_difference_diagram(critical, teams),
            "critical-difference",
            caption,
        ),
        nemenyi_table(words, found[ALL_STRUCTURES]),
        means_table(words, found),
        pairs_table(words, found),
    ]


def _structures(evaluation: RatedEvaluation) -> list[Child]:
    rows = [
        [
            Cell(named(row["structure"])),
            _team(evaluation, row["team"]),
            number(row["dice"]),
            number(row["dice_median"]),
            number(row["dice_lowest"]),
            number(row["brier"]),
            number(row["cases"], count),
            number(row["missing"], count),
        ]
        for row in evaluation.structures.to_dict("records")
    ]
    header = ["structure", "team", "mean Dice", "median", "lowest", "Brier", "cases", "missing"]
    caption = "Dice averaged over levels, over the cases of each structure."
    return [table(Table("structures", caption, header, rows, evaluation.structures))]


def _spread(evaluation: RatedEvaluation) -> list[Child]:
    rows = []
    for row in evaluation.structures.to_dict("records"):
        where = _STANDING_WORDS[Standing(row["standing"])]
        low, high = row["raters_lowest"], row["raters_highest"]
        rows.append(
            [
                Cell(named(row["structure"])),
                _team(evaluation, row["team"]),
                number(row["left_out_dice"]),
                Cell(interval(low, high), low),
                Cell(where),
                number(row["cases_below"], count),
                number(row["cases_within"], count),
                number(row["cases_above"], count),
            ]
        )
    header = [
        "structure",
        "team",
        "Dice",
        "lowest to highest rater",
        "stands",
        "cases below",
        "within",
        "above",
    ]
    caption = (
        "Each rater's mask against the mean of the others, and each team against the same means: "
        "Dice averaged over levels, and over the rater left out. A team is within the raters where "
        "it is neither below the lowest nor above the highest of them."
    )
    figure = plot_figure(
        rater_plots.spread_plot(evaluation),
        "raters",
        "Teams among the raters: bars reach from the lowest to the highest rater.",
    )
    return [figure, table(Table("standing", caption, header, rows, evaluation.structures))]


def _levels(evaluation: RatedEvaluation) -> list[Child]:
    levels = tables(evaluation)["levels"]
    caption = "Dice at each level, mean over cases."
    means = levels.groupby(["structure", "team", "level"], sort=False)["dice"].mean().reset_index()
    rows = [
        [
            Cell(named(row["structure"])),
            _team(evaluation, row["team"]),
            Cell(f"{row['level']:g}", float(row["level"])),
            number(row["dice"]),
        ]
        for row in means.to_dict("records")
    ]
    shown = Table("levels", caption, ["structure", "team", "level", "mean Dice"], rows, levels)
    figure = plot_figure(rater_plots.levels_plot(evaluation), "dice-over-levels", caption)
    return [figure, folded("As a table", table(shown))]


def _calibration(evaluation: RatedEvaluation) -> list[Child]:
    caption = (
        "Share of raters who marked a voxel against its predicted probability, all voxels of all "
        "predictions pooled in ten bins; on the dashed line predictions mean what they say."
    )
    found = tables(evaluation)["reliability"]
    rows = [
        [
            _team(evaluation, row["team"]),
            Cell(f"{row['from']:g} to {row['to']:g}", float(row["from"])),
            number(row["voxels"], count),
            number(row["predicted"]),
            number(row["observed"]),
        ]
        for row in found.to_dict("records")
    ]
    header = ["team", "probability", "voxels", "mean predicted", "mean of the raters"]
    shown = Table("reliability", caption, header, rows, found)
    figure = plot_figure(rater_plots.reliability_plot(evaluation), "calibration", caption)
    return [figure, folded("As a table", table(shown))]


def _worst(evaluation: RatedEvaluation, worst: list[WorstCase]) -> list[Child]:
    parts: list[Child] = [
        paragraph(
            "The lowest averages of each team. Left: each rater in a colour of their own. Middle "
            "and right: the outlines of the levels of the raters' mean and of the prediction, the "
            "lighter the higher. Of volumes, the slice with the lowest average."
        )
    ]
    for found in worst:
        place = "" if found.slice_number is None else f", slice {found.slice_number}"
        caption = fragment(
            _team(evaluation, found.team).shown,
            f": {found.case}, {found.structure}{place}; Dice {ratio(found.dice)}",
        )
        address = data_uri("image/png", png_bytes(found.plot, dpi=PICTURE_DPI))
        text = f"Outlines in {found.case}, {found.structure}, of {found.team}"
        shown = element("img", src=address, alt=text, width="710")
        parts.append(element("figure", shown, element("figcaption", caption), class_="plot"))
    if not worst:
        parts.append(element("p", "There is nothing to show.", class_="nothing"))
    return parts


def _cases(evaluation: RatedEvaluation) -> list[Child]:
    rows = [
        [
            Cell(named(row["case"])),
            Cell(named(row["structure"])),
            _team(evaluation, row["team"]),
            Cell(str(row["prediction"])),
            number(row["dice"]),
            number(row["left_out_dice"]),
            Cell(interval(row["raters_lowest"], row["raters_highest"]), row["raters_lowest"]),
            Cell(_STANDING_WORDS[Standing(row["standing"])]),
            number(row["brier"]),
        ]
        for row in evaluation.cases.sort_values("dice", kind="stable").to_dict("records")
    ]
    header = [
        "case",
        "structure",
        "team",
        "prediction",
        "Dice",
        "against all raters but one",
        "raters",
        "stands",
        "Brier",
    ]
    caption = "The lowest first. What is missing or unreadable counts as background."
    return [table(Table("cases", caption, header, rows, evaluation.cases))]


def _agreement(evaluation: RatedEvaluation) -> list[Child]:
    found = tables(evaluation)["raters"]
    pairs = found[found["kind"] == "pair"]
    means = pairs.groupby(["structure", "rater", "other"], sort=False)[["dice", "pq", "f1"]]
    frame = means.mean().reset_index()
    has_objects = bool(pairs["pq"].notna().any())
    rows = [
        [
            Cell(named(row["structure"])),
            Cell(fragment(named(row["rater"]), " and ", named(row["other"]))),
            number(row["dice"]),
            *([number(row["pq"]), number(row["f1"])] if has_objects else []),
        ]
        for row in frame.to_dict("records")
    ]
    header = ["structure", "raters", "Dice", *(["PQ", "F1"] if has_objects else [])]
    caption = "Each two raters' masks, mean over cases" + (
        "; PQ and F1 are of objects." if has_objects else "."
    )
    return [table(Table("pairs", caption, header, rows, found))]


def _settings(evaluation: RatedEvaluation) -> list[Child]:
    settings = evaluation.settings
    items: dict[str, Child] = {
        "levels": ", ".join(f"{level:g}" for level in settings.levels),
        "a probability that equals a level": "reaches it"
        if settings.at_level is AtLevel.AT_LEAST
        else "does not reach it",
        "Dice where both sides are empty": "1"
        if settings.both_empty is BothEmpty.ONE
        else "undefined, left out of averages",
        "missing predictions": "background everywhere",
    }
    return [
        settings_beside_versions(items),
        fingerprint_parts(rated_fingerprints(evaluation.cohort, evaluation.teams)),
    ]


def _methods(evaluation: RatedEvaluation) -> list[Child]:
    settings = evaluation.settings
    sign = "at least" if settings.at_level is AtLevel.AT_LEAST else "more than"
    empty = (
        "1 where both were empty"
        if settings.both_empty is BothEmpty.ONE
        else "left out where both were empty"
    )
    levels = ", ".join(f"{level:g}" for level in settings.levels)
    return [
        paragraph(
            f"The reference probability of a voxel was the share of raters who had marked it. "
            f"Reference and predicted probability map were made binary at the levels {levels} "
            f"(voxels with {sign} that probability), and compared by the Dice coefficient at each "
            f"level, {empty}; volumes were compared as a whole. The five coefficients were "
            f"averaged (QUBIQ 2020, structured description of the challenge design). Missing "
            f"predictions counted as background. Scores were averaged over the cases of each "
            f"structure, and over structures."
            if len(settings.levels) == 5
            else f"The reference probability of a voxel was the share of raters who had marked "
            f"it. Reference and predicted probability map were made binary at {levels} (voxels "
            f"with {sign} that probability) and compared by the Dice coefficient, {empty}, whose "
            f"values were averaged; missing predictions counted as background."
        ),
        paragraph(
            f"Teams were compared over cases, the structures of a case averaged: Friedman test, "
            f"and where p < {SIGNIFICANCE:g} the Nemenyi test; teams that do not differ share a "
            f"rank."
        ),
        paragraph(
            "The raters' spread is that of each rater's mask against the mean of all others by "
            "the same measure; teams were placed in it by their average over the same references. "
            "The Brier score is the mean over voxels and raters of the squared difference of "
            "predicted probability and mask."
        ),
        element("h3", "References"),
        element(
            "ol",
            element(
                "li",
                "Menze B, Joskowicz L, Bakas S, et al. Quantification of Uncertainties in "
                "Biomedical Image Quantification: structured description of the challenge design. "
                "MICCAI, 2020.",
            ),
            element(
                "li", "Dice LR. Measures of the amount of ecologic association. Ecology, 1945."
            ),
            element("li", REFERENCES["demsar"]),
            element("li", "Brier GW. Verification of forecasts. Monthly Weather Review, 1950."),
        ),
    ]

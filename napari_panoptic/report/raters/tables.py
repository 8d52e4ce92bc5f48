"""The tables that ``evaluate`` writes for a cohort of raters. Their columns are a contract."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.records import fields_of
from napari_panoptic.io.files.fingerprints import input_fingerprints
from napari_panoptic.raters.evaluate import RatedEvaluation, RatedResult
from napari_panoptic.raters.levels import RELIABILITY_BINS, MapComparison
from napari_panoptic.raters.ranking import CASE, CASES, STANDING, STRUCTURE, STRUCTURES, TEAM
from napari_panoptic.report.raters.statistics import (
    UNIT,
    ranking_table,
    rater_statistics,
    statistics_records,
)
from napari_panoptic.report.statistics import pairs_frame, tests_frame
from napari_panoptic.report.writing import RECORD, provenance, write_set
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    TableSpec,
    bounds,
    number,
    unshown,
    whole,
)

if TYPE_CHECKING:
    import pandas as pd


def _bin(row: Record) -> CellContent:
    return CellContent(f"{row['from']:g} to {row['to']:g}", float(row["from"]))


LEVELS = TableSpec(
    "levels.csv",
    "team, structure, case and level",
    [
        TEAM,
        STRUCTURE,
        CASE,
        number("level", write=lambda level: f"{level:g}"),
        number("dice", "mean Dice"),
        unshown("reference_px", "prediction_px", "both_px"),
    ],
)
SPREAD = TableSpec(
    "standing.csv",
    "team and structure",
    [
        STRUCTURE,
        TEAM,
        number("left_out_dice", "Dice"),
        bounds("raters_lowest", "raters_highest", "lowest to highest rater"),
        STANDING,
        whole("cases_below", "cases below"),
        whole("cases_within", "within"),
        whole("cases_above", "above"),
    ],
    "Each rater's mask against the mean of the others, and each team against the same means: Dice "
    "averaged over levels, and over the rater left out. A team is within the raters if it is "
    "neither below the lowest nor above the highest of them.",
)
"""Other columns of `STRUCTURES`, which reports show in a table of their own."""
TEAMS = TableSpec(
    "teams.csv",
    "team",
    [
        whole("rank", about="of the score"),
        TEAM,
        unshown("structures", about="number"),
        whole("cases", about="number"),
        whole("missing", "missing or unreadable"),
        number("score"),
        number("dice_all_cases", "mean over all cases", about="plain mean over cases"),
        number("left_out_dice", "against all raters but one", about="mean over structures"),
        number("brier", "Brier", about="mean over structures"),
        unshown("mean_rank", about="over cases"),
        whole("shared_rank", "shared rank", about="empty if there is no test"),
    ],
    "The score is Dice, averaged over levels, then over the cases of each structure, then over "
    "structures. A lower Brier score is better. The shared rank is 1 + the number of teams that "
    "are significantly better over cases.",
)
TESTS = TableSpec(
    "tests.csv",
    "structure, the first row for their mean: `(all)`",
    [
        unshown("structure", "cases", "left_out", "friedman_chi2", "friedman_p", "kendall_w"),
        unshown("critical_difference", "why_undefined"),
    ],
)
PAIRS = TableSpec(
    "pairs.csv",
    "structure or `(all)`, and pair of teams",
    [
        unshown("structure", "first", "second"),
        unshown("cases", about="number"),
        unshown("left_out", about="cases"),
        unshown("difference", about="of Dice"),
        unshown("low", "high", about="interval of the difference"),
        unshown("method", "rank_biserial", "wilcoxon_p", "holm_p", "why_undefined"),
    ],
)
RATERS = TableSpec(
    "raters.csv",
    "structure, case, and pair of raters or rater against all others",
    [
        unshown("structure", "case"),
        unshown("kind", about="pair or left-out"),
        unshown("rater", "other", "dice"),
        unshown("pq", "f1", about="of objects"),
        unshown("area_px", about="of the rater"),
    ],
)
SLICES = TableSpec(
    "slices.csv",
    "team, structure, case and slice of a volume",
    [
        unshown("team", "structure", "case"),
        unshown("slice", about="from 0"),
        unshown("dice", about="mean over levels, followed by `dice_at_` each level"),
    ],
)
RELIABILITY = TableSpec(
    "reliability.csv",
    "team and bin of predicted probability",
    [
        TEAM,
        TableColumn("probability", _bin, ("from", "to"), "bounds of the bin"),
        whole("voxels", about="number"),
        number("predicted", "mean predicted", about="mean probability"),
        number("observed", "mean of the raters", about="share of raters"),
    ],
    "Share of raters who marked a voxel against its predicted probability, all voxels of all "
    "predictions pooled in ten bins; the dashed line marks perfect calibration.",
)
TABLES = (LEVELS, CASES, STRUCTURES, TEAMS, TESTS, PAIRS, RATERS, SLICES, RELIABILITY)
TABLE_NAMES = (*(spec.file for spec in TABLES), RECORD)
"""The files of a set, the record last."""


def write_rater_tables(evaluation: RatedEvaluation, folder: Path) -> None:
    """Write all tables and ``evaluation.json``; existing ones are replaced, all of them or none."""
    statistics = rater_statistics(evaluation)
    tables = {
        LEVELS.file: levels_table(evaluation),
        CASES.file: evaluation.cases,
        STRUCTURES.file: evaluation.structures,
        TEAMS.file: ranking_table(evaluation),
        TESTS.file: tests_frame(statistics, "structure", UNIT),
        PAIRS.file: pairs_frame(statistics, "structure", UNIT),
        RATERS.file: raters_table(evaluation),
        SLICES.file: slices_table(evaluation),
        RELIABILITY.file: reliability_table(evaluation),
    }
    write_set(folder, tables, (RECORD, record_of(evaluation)))


def levels_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return a row per team, structure, case and level."""
    rows = []
    for place, comparison in _each(evaluation):
        dice, counts = comparison.dice(evaluation.settings), comparison.counts
        rows += [
            {
                **place,
                "level": level,
                "dice": dice[k],
                "reference_px": int(counts.reference[k]),
                "prediction_px": int(counts.prediction[k]),
                "both_px": int(counts.both[k]),
            }
            for k, level in enumerate(evaluation.settings.levels)
        ]
    return LEVELS.frame(rows)


def slices_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return a row per slice (from 0) of each volume: Dice at each level, and its average."""
    levels = [f"dice_at_{level:g}" for level in evaluation.settings.levels]
    rows = []
    for place, comparison in _each(evaluation):
        if comparison.slices is None:
            continue
        dice = comparison.slices.dice(evaluation.settings.both_empty)
        scores = comparison.slice_scores(evaluation.settings)
        for place_z, (score, row) in enumerate(zip(scores, dice, strict=True)):
            own = dict(zip(levels, row, strict=True))
            rows.append({**place, "slice": place_z, "dice": score, **own})
    return SLICES.extended(*levels).frame(rows)


def raters_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return a row per pair of raters, and one per rater against the mean of the others.

    ``pq`` and ``f1`` are figures of objects, if the raters' files contain objects.
    """
    rows: list[dict[str, Any]] = []
    for structure in evaluation.cohort.structures:
        for result in evaluation.of_structure(structure):
            rows += _rater_rows(result)
    return RATERS.frame(rows)


def _rater_rows(result: RatedResult) -> Iterator[dict[str, Any]]:
    found, objects = result.raters, result.objects
    place = {"structure": result.structure, "case": result.case}
    for i, rater in enumerate(found.raters):
        area = {"rater": rater, "area_px": int(found.area_px[i])}
        yield place | area | {"kind": "left-out", "dice": found.left_out_mean[i]}
        for j, other in enumerate(found.raters):
            if j <= i:
                continue
            quality = {}
            if objects is not None:
                pq, f1 = objects.of_class(result.structure)
                quality = {"pq": pq[i, j], "f1": f1[i, j]}
            pair = {"kind": "pair", "other": other, "dice": found.pairwise[i, j]}
            yield place | area | pair | quality


def reliability_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return a row per team and bin of probability, over all voxels of all cases."""
    rows = []
    for team in evaluation.teams:
        found = evaluation.reliability(team)
        for place, voxels in enumerate(found.voxels.tolist()):
            rows.append(
                {
                    "team": team,
                    "from": place / RELIABILITY_BINS,
                    "to": (place + 1) / RELIABILITY_BINS,
                    "voxels": voxels,
                    "predicted": found.predicted[place] / voxels if voxels else math.nan,
                    "observed": found.observed[place] / voxels if voxels else math.nan,
                }
            )
    return RELIABILITY.frame(rows)


def record_of(evaluation: RatedEvaluation) -> dict[str, Any]:
    """Return settings, versions, fingerprints, scores and warnings."""
    return {
        "cohort": evaluation.cohort.name,
        "task": "raters",
        "settings": evaluation.settings.as_record(),
        **fields_of(evaluation.cohort, "structures", "raters"),
        "score": dict(zip(evaluation.ranking["team"], evaluation.ranking["score"], strict=True)),
        "evaluated": len(evaluation.results),
        "statistics": statistics_records(evaluation),
        **provenance(evaluation.findings, input_fingerprints(evaluation.cohort, evaluation.teams)),
    }


def _each(evaluation: RatedEvaluation) -> Iterator[tuple[dict[str, str], MapComparison]]:
    """Yield the place of each prediction, as columns, and its comparison with the raters."""
    for team in evaluation.teams:
        for structure in evaluation.cohort.structures:
            for result in evaluation.of_structure(structure):
                place = {"team": team, "structure": structure, "case": result.case}
                yield place, result.teams[team][1]

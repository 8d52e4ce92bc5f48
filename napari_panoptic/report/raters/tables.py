"""The tables that ``evaluate`` writes for a cohort of raters. Their columns are a contract."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from napari_panoptic.io.fingerprints import file_fingerprints
from napari_panoptic.raters.cohort import RatedCohort
from napari_panoptic.raters.evaluate import RatedEvaluation, RatedResult
from napari_panoptic.raters.levels import RELIABILITY_BINS
from napari_panoptic.report.raters.statistics import (
    UNIT,
    ranking_table,
    rater_statistics,
    statistics_records,
)
from napari_panoptic.report.statistics import pairs_frame, tests_frame
from napari_panoptic.report.writing import RECORD, provenance, write_set

TABLE_NAMES = (
    *("levels.csv", "cases.csv", "structures.csv", "teams.csv", "tests.csv", "pairs.csv"),
    *("raters.csv", "slices.csv", "reliability.csv"),
    RECORD,
)
"""The files of a set, the record last."""


def write_rater_tables(evaluation: RatedEvaluation, folder: Path) -> None:
    """Write all tables and ``evaluation.json``; existing ones are replaced, all of them or none.

    Parameters
    ----------
    evaluation
        The evaluation.
    folder
        The folder; created if missing.
    """
    named = {f"{name}.csv": table for name, table in tables(evaluation).items()}
    write_set(folder, named, (RECORD, record_of(evaluation)))


def tables(evaluation: RatedEvaluation) -> Mapping[str, pd.DataFrame]:
    """Return every table by the name of its file."""
    return {
        "levels": levels_table(evaluation),
        "cases": evaluation.cases,
        "structures": evaluation.structures,
        "teams": ranking_table(evaluation),
        "tests": tests_frame(rater_statistics(evaluation), "structure", UNIT),
        "pairs": pairs_frame(rater_statistics(evaluation), "structure", UNIT),
        "raters": raters_table(evaluation),
        "slices": slices_table(evaluation),
        "reliability": reliability_table(evaluation),
    }


def levels_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return a row per team, structure, case and level."""
    rows = []
    for team, result in _each(evaluation):
        comparison = result.teams[team][1]
        dice = comparison.dice(evaluation.settings)
        for place, level in enumerate(evaluation.settings.levels):
            counts = comparison.counts[place]
            rows.append(
                {
                    "team": team,
                    "structure": result.structure,
                    "case": result.case,
                    "level": level,
                    "dice": dice[place],
                    "reference_px": int(counts.reference),
                    "prediction_px": int(counts.prediction),
                    "both_px": int(counts.both),
                }
            )
    columns = ["team", "structure", "case", "level", "dice"]
    return pd.DataFrame(rows, columns=[*columns, "reference_px", "prediction_px", "both_px"])


def slices_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return a row per slice (from 0) of each volume: Dice at each level, and its average."""
    levels = [f"dice_at_{level:g}" for level in evaluation.settings.levels]
    rows = []
    for team, result in _each(evaluation):
        comparison = result.teams[team][1]
        if comparison.slices is None:
            continue
        dice = comparison.slices.dice(evaluation.settings.both_empty)
        scores = comparison.slice_scores(evaluation.settings)
        place = {"team": team, "structure": result.structure, "case": result.case}
        for number, (score, row) in enumerate(zip(scores, dice, strict=True)):
            own = dict(zip(levels, row, strict=True))
            rows.append({**place, "slice": number, "dice": score, **own})
    return pd.DataFrame(rows, columns=["team", "structure", "case", "slice", "dice", *levels])


def raters_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return a row per pair of raters, and one per rater against the mean of the others.

    ``pq`` and ``f1`` are figures of objects, if the raters' files contain objects.
    """
    rows: list[dict[str, Any]] = []
    for structure in evaluation.cohort.structures:
        for result in evaluation.of_structure(structure):
            rows += _rater_rows(result)
    columns = ["structure", "case", "kind", "rater", "other", "dice", "pq", "f1", "area_px"]
    return pd.DataFrame(rows, columns=columns)


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
    return pd.DataFrame(rows, columns=["team", "from", "to", "voxels", "predicted", "observed"])


def record_of(evaluation: RatedEvaluation) -> dict[str, Any]:
    """Return settings, versions, fingerprints, scores and warnings."""
    return {
        "cohort": evaluation.cohort.name,
        "task": "raters",
        "settings": evaluation.settings.as_record(),
        "structures": list(evaluation.cohort.structures),
        "raters": list(evaluation.cohort.raters),
        "score": dict(zip(evaluation.ranking["team"], evaluation.ranking["score"], strict=True)),
        "evaluated": len(evaluation.results),
        "statistics": statistics_records(evaluation),
        **provenance(evaluation.findings, input_fingerprints(evaluation.cohort, evaluation.teams)),
    }


def input_fingerprints(cohort: RatedCohort, teams: tuple[str, ...]) -> dict[str, str]:
    """Return a SHA-256 of each input file, by its path relative to the cohort."""
    files = [file for case in cohort.cases for own in case.masks.values() for file in own.values()]
    files += [file for (team, _, _), file in cohort.predictions.items() if team in teams]
    paths = [path for case in cohort.cases for path in case.images.values()]
    for file in files:
        paths += [file.path] if file.objects is None else file.objects.all_paths
    return file_fingerprints(paths, cohort.root)


def _each(evaluation: RatedEvaluation) -> Iterator[tuple[str, RatedResult]]:
    for team in evaluation.teams:
        for structure in evaluation.cohort.structures:
            for result in evaluation.of_structure(structure):
                yield team, result

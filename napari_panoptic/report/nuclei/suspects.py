"""The table of suspect annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from napari_panoptic.common.records import fields_of
from napari_panoptic.questions.engines.cohort_suspects import CohortSuspects
from napari_panoptic.report.writing import provenance, write_set
from napari_panoptic.tables.columns import TableSpec, unshown
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.settings import EvaluationSettings

SUSPECTS = TableSpec(
    "suspects.csv",
    "suspect, the most suspect first",
    [
        unshown("score", about="from 0 to 1; higher is more suspect"),
        unshown("kind", about="overlooked, badly-located, wrong-class, split or merged"),
        unshown("patient", "region"),
        unshown("side", about="prediction if the annotation overlooks the object, else reference"),
        unshown("team", about="of the prediction; empty for a reference object"),
        unshown("id", about="of the object"),
        unshown("other_ids", about="of a split object, separated by spaces"),
        unshown("class", about="of the object"),
        unshown("suggested_class", about="if the class is suspect"),
        unshown("teams", about="which agree, separated by ` | `"),
        unshown("centroid_y_px", "centroid_x_px"),
        unshown("reason", about="in words"),
    ],
)
SUSPECTS_RECORD = "suspects.json"
SUSPECTS_NAMES = (SUSPECTS.file, SUSPECTS_RECORD)
"""The files of a set, the record last."""


def suspects_about(
    cohort: Cohort, teams: Sequence[str], settings: EvaluationSettings
) -> dict[str, Any]:
    """Return the cohort, settings and teams of a comparison for the record."""
    return {"cohort": cohort.name, "settings": settings.as_record(), "teams": list(teams)}


def write_suspects(
    found: CohortSuspects, folder: Path, about: Mapping[str, Any], inputs: Mapping[str, str]
) -> list[Path]:
    """Write the suspects of a cohort into a folder, which is created if missing.

    Parameters
    ----------
    found
        The suspects.
    folder
        The folder; existing files of the same names are replaced, all of them or none.
    about
        Further entries of the record besides versions, warnings and inputs, such as settings.
    inputs
        Path of each input file -> its fingerprint.

    Returns
    -------
    list of Path
        The files, the record last.
    """
    rows = (
        {
            **fields_of(suspect, "score", "kind", "patient", "region", "side"),
            "team": suspect.team or "",
            "id": suspect.id,
            "other_ids": " ".join(map(str, suspect.other_ids)),
            "class": suspect.class_name,
            "suggested_class": suspect.suggested_class,
            "teams": " | ".join(suspect.teams),
            "centroid_y_px": suspect.centroid_yx_px[0],
            "centroid_x_px": suspect.centroid_yx_px[1],
            "reason": suspect.sentence,
        }
        for suspect in found.suspects
    )
    record = {
        **about,
        "regions": found.regions,
        "reference_objects": found.objects,
        **provenance(found.findings, inputs),
    }
    return write_set(folder, {SUSPECTS.file: SUSPECTS.frame(rows)}, (SUSPECTS_RECORD, record))

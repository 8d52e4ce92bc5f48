"""The folder that ``napari-panoptic evaluate`` wrote, read back without the images."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.spreadsheets import plain
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.files.guard import TABLE_BYTES, check_file, check_length
from napari_panoptic.values.conventions import DEFAULT_PROTOCOL, Mistake, with_corrections
from napari_panoptic.values.vocabulary import Cause, Side, Status

if TYPE_CHECKING:
    import pandas as pd

RECORD, OBJECTS, REGIONS = "evaluation.json", "objects.csv", "regions.csv"
_TEXTS = ("team", "patient", "region", "side", "class", "status", "cause", "partner_class")
_WHOLE = ("id", "partner_id", "area_px")
_NUMBERS = ("iou", "hausdorff_px", "centroid_y_px", "centroid_x_px")
_PLACES = ("team", "patient", "region", "class")
_MEAN = "mean"
_AGAIN = "run 'napari-panoptic evaluate' again"


@dataclass(frozen=True, eq=False)
class EvaluationTables:
    """An evaluation of a cohort of nuclei, as it was written."""

    #: The folder that it was read from.
    folder: Path
    #: The rows of ``objects.csv``; empty texts instead of missing ones.
    objects: pd.DataFrame
    #: Columns team, patient and region: every region in which a team was evaluated.
    places: pd.DataFrame
    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: The settings by name.
    settings: Mapping[str, Any]
    #: The versions of the packages that it was made with.
    versions: Mapping[str, str]
    #: What was missing or unreadable then, and files that were changed since.
    findings: tuple[Finding, ...]

    @property
    def teams(self) -> list[str]:
        """The teams that were evaluated, in order."""
        return list(dict.fromkeys(self.places["team"]))


def _settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by the names of this version; earlier ones named the scoring."""
    settings = dict(record)
    if "scoring" in settings:
        corrections = frozenset(map(Mistake, settings.pop("corrections")))
        is_challenge = settings.pop("scoring") == "challenge"
        name = with_corrections(corrections) if is_challenge else DEFAULT_PROTOCOL
        settings["convention"] = name
    return settings


def read_evaluation(folder: Path) -> EvaluationTables:
    """Read the objects, regions and settings of an evaluation.

    Parameters
    ----------
    folder
        The output of ``evaluate``.

    Raises
    ------
    UnreadableFileError
        If a table is missing or not what ``evaluate`` writes.
    """
    record = _record(folder / RECORD)
    objects = _table(folder / OBJECTS, _TEXTS, _WHOLE, _NUMBERS)
    regions = _table(folder / REGIONS, _PLACES, (), ())
    try:
        class_names = tuple(str(name) for name in record["classes"])
        settings, versions = _settings(record["settings"]), dict(record["versions"])
        written = dict(record["tables"])
        findings = [
            _finding(one) for kind in ("missing", "unreadable") for one in record["warnings"][kind]
        ]
    except (LookupError, TypeError, ValueError) as error:
        raise UnreadableFileError(
            "expected settings, classes, versions and tables of an evaluation of nuclei, found a "
            f"record without them; {_AGAIN}",
            path=folder / RECORD,
        ) from error
    _check_words(objects, class_names, folder / OBJECTS)
    for name, found in file_fingerprints([folder / OBJECTS, folder / REGIONS], folder).items():
        if written.get(name) != found:
            message = f"{name} was changed after the evaluation; {_AGAIN} for its own figures"
            findings.append(Finding(FindingKind.CHANGED, message, path=folder / name))
    return EvaluationTables(
        folder=folder,
        objects=objects,
        places=regions.loc[regions["class"] == _MEAN, ["team", "patient", "region"]],
        class_names=class_names,
        settings=settings,
        versions=versions,
        findings=tuple(findings),
    )


def _record(path: Path) -> dict[str, Any]:
    if not path.parent.is_dir():
        raise UnreadableFileError(
            "expected the output folder of 'napari-panoptic evaluate', but there is no such folder",
            path=path.parent,
        )
    check_file(path, "the record of an evaluation")
    check_length(path, "the record of an evaluation", TABLE_BYTES)
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableFileError(
            f"expected the record of an evaluation in JSON, found other content; {_AGAIN}",
            path=path,
        ) from error
    if not isinstance(record, dict):
        raise UnreadableFileError(
            f"expected the record of an evaluation, found a {type(record).__name__}; {_AGAIN}",
            path=path,
        )
    return record


def _table(
    path: Path, texts: Sequence[str], whole: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame:
    """Return the columns of a table; texts as they were before they were made inert."""
    import pandas as pd

    check_file(path, "a table of an evaluation")
    check_length(path, "a table of an evaluation", TABLE_BYTES)
    columns = [*texts, *whole, *numbers]
    try:
        # As texts first: versions of pandas differ in the last digit of the numbers they read.
        table: pd.DataFrame = pd.read_csv(path, usecols=columns, dtype=str, keep_default_na=False)
        for name in numbers:
            table[name] = table[name].replace("", "nan").astype(float)
        for name in whole:
            numbers_of = [int(cell) if cell else None for cell in table[name]]
            table[name] = pd.array(numbers_of, dtype="Int64")
    except (OSError, ValueError, OverflowError) as error:
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableFileError(
            f"expected the columns {english_list(columns)} of an evaluation of nuclei, found a "
            f"table that cannot be read as such ({detail}); {_AGAIN}",
            path=path,
        ) from error
    for name in texts:
        known = {text: plain(text) for text in table[name].unique()}
        table[name] = table[name].map(known).astype(object)
    return table[columns]


def _check_words(objects: pd.DataFrame, class_names: Sequence[str], path: Path) -> None:
    """Check that texts of a vocabulary are words of it."""
    vocabularies: dict[str, Iterable[str]] = {
        "side": Side,
        "status": Status,
        "cause": Cause,
        "class": class_names,
        "partner_class": ("", *class_names),
    }
    for column, words in vocabularies.items():
        known = [str(word) for word in words]
        if unknown := sorted(set(objects[column]) - set(known)):
            raise UnreadableFileError(
                f"expected {english_list(known)} in the column {column}, found "
                f"{english_list(unknown[:5])}; {_AGAIN}",
                path=path,
            )
    if objects[["id", "area_px"]].isna().any(axis=None):
        raise UnreadableFileError(
            f"expected an id and an area of each object, found an empty cell; {_AGAIN}", path=path
        )


def _finding(record: Mapping[str, Any]) -> Finding:
    """Return a finding as the record of an evaluation has it."""
    path = record["path"]
    return Finding(
        FindingKind(record["kind"]),
        str(record["message"]),
        path=None if path is None else Path(path),
        region=record["region"],
        team=record["team"],
        count=int(record["count"]),
    )

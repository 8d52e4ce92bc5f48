"""Regions that are done, kept on disk: one file each, whole or not taken for one.

A run that was interrupted finds in them what need not be done again. A file is
text: a line that says what it is of, and a line of JSON with the results, in
which every floating-point number has all its digits.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from napari_panoptic.common.errors import Finding, FindingKind, PanopticError
from napari_panoptic.common.visible import utf8
from napari_panoptic.nuclei.challenge import ClassScore
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.reading import RegionResult, RowsFile

Value = TypeVar("Value")
RegionResults = list[list[RegionResult]]
"""Per condition, the teams of one region."""

_FORMAT = "napari-panoptic region 1"
_ENDING = ".part.json"
# What is raised where a file is no JSON, or holds other values than this version writes.
_NOT_AS_WRITTEN = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


class DamagedPartError(PanopticError):
    """A stored region is half-written, was changed, or is no stored region at all."""


@dataclass(frozen=True)
class PartStore:
    """A folder with a file for each region that is done.

    Parameters
    ----------
    folder
        Made when the first region is written.
    """

    folder: Path

    def write(self, region: str, fingerprint: str, results: RegionResults) -> None:
        """Keep the results of a region; an older file of it is replaced at once.

        Parameters
        ----------
        region
            Its name.
        fingerprint
            Of everything that the results depend on.
        results
            What to keep, with all digits.

        Raises
        ------
        PanopticError
            Where the folder cannot be written to.
        """
        body = json.dumps(
            [[_result_record(result) for result in found] for found in results],
            separators=(",", ":"),
            default=_plain,
        )
        header = {"format": _FORMAT, "region": region, "fingerprint": fingerprint}
        first_line = json.dumps(header | {"sha256": _sha256(body)})
        path = self._path(region)
        # Its own name for every process and thread, should two write the same region.
        temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary.write_text(f"{first_line}\n{body}\n", encoding="utf-8", newline="")
            temporary.replace(path)
        except OSError as error:
            raise PanopticError(
                f"the regions that are done cannot be kept here: {error.strerror}; make room, "
                f"or choose another folder",
                path=self.folder,
            ) from error
        finally:
            temporary.unlink(missing_ok=True)

    def fingerprint(self, region: str) -> str | None:
        """Return the fingerprint that a region was kept with; None where it was not.

        Raises
        ------
        DamagedPartError
            Where its file is not whole.
        """
        found = self._read(region)
        return None if found is None else found[0]

    def read(self, region: str) -> RegionResults | None:
        """Return the results of a region as they were kept; None where they were not.

        Raises
        ------
        DamagedPartError
            Where its file is not whole.
        """
        found = self._read(region)
        if found is None:
            return None
        try:
            results = [[_result(record) for record in records] for records in json.loads(found[1])]
        except _NOT_AS_WRITTEN as error:
            raise self._damaged(region) from error
        return [[self._with_whole_rows(result) for result in found] for found in results]

    def rows_path(self, region: str, number: int) -> Path:
        """Return the place for rows of a region that are too many to hold, by a number of theirs.

        `remove` removes them with the region.
        """
        path = self._path(region)
        return path.with_name(f"{path.name}.{number}.csv")

    def _with_whole_rows(self, result: RegionResult) -> RegionResult:
        """Find the rows in a file of their own, in this folder wherever it is now.

        A run that was ended can have written others in their place, of other
        files or settings, before it wrote the results that belong to them.
        """
        if result.rows is None:
            return result
        path = self.folder / result.rows.path.name
        try:
            found = RowsFile.of(path)
        except OSError:
            found = None
        if found is None or found.sha256 != result.rows.sha256:
            raise DamagedPartError(
                "the stored rows of the objects are damaged, half-written or of another run: the "
                "region is evaluated again",
                path=path,
                region=result.region,
            )
        return replace(result, rows=found)

    def n_regions(self) -> int:
        """Count the regions that are kept, whatever their fingerprints."""
        return sum(1 for _ in self.folder.glob(f"*{_ENDING}"))

    def remove(self) -> None:
        """Remove the files of all regions, and the folder where nothing else is in it.

        Raises
        ------
        PanopticError
            Where that is not allowed.
        """
        try:
            for path in self.folder.glob(f"*{_ENDING}*"):
                path.unlink(missing_ok=True)
            if self.folder.is_dir() and not any(self.folder.iterdir()):
                self.folder.rmdir()
        except OSError as error:
            raise PanopticError(
                f"the regions of an earlier run cannot be removed: {error.strerror}; remove "
                f"the folder by hand",
                path=self.folder,
            ) from error

    def _path(self, region: str) -> Path:
        # Names may differ in what a file name cannot show: a digest keeps them apart.
        readable = re.sub(r"[^A-Za-z0-9._-]+", "_", region)[:80]
        return self.folder / f"{readable}-{_sha256(region)[:12]}{_ENDING}"

    def _read(self, region: str) -> tuple[str, str] | None:
        path = self._path(region)
        try:
            first_line, body, rest = path.read_text(encoding="utf-8").split("\n")
            header = json.loads(first_line)
            is_whole = (
                header["format"] == _FORMAT
                and header["region"] == region
                and header["sha256"] == _sha256(body)
                and not rest
            )
            fingerprint = str(header["fingerprint"])
        except FileNotFoundError:
            return None
        except (OSError, *_NOT_AS_WRITTEN):
            is_whole = False
        if not is_whole:
            raise self._damaged(region)
        return fingerprint, body

    def _damaged(self, region: str) -> DamagedPartError:
        return DamagedPartError(
            "the stored results are damaged or half-written: the region is evaluated again",
            path=self._path(region),
            region=region,
        )


def _plain(value: np.generic) -> Any:
    """Make a number of Python's own of one of NumPy's."""
    return value.item()


def _sha256(text: str) -> str:
    return hashlib.sha256(utf8(text)).hexdigest()


# --- records: plain values, and back ----------------------------------------------------------


def _result_record(result: RegionResult) -> dict[str, Any]:
    return {
        "team": result.team,
        "patient": result.patient,
        "region": result.region,
        "objects": None if result.objects is None else _frame_record(result.objects),
        "counts": None if result.counts is None else _counts_record(result.counts),
        "scores": None if result.scores is None else _scores_record(result.scores),
        "findings": [finding.as_record() for finding in result.findings],
        "rows": None if result.rows is None else [result.rows.path.name, result.rows.sha256],
    }


def _result(record: Mapping[str, Any]) -> RegionResult:
    objects, counts, scores = record["objects"], record["counts"], record["scores"]
    rows = record.get("rows")
    return RegionResult(
        team=_of_type(str, record["team"]),
        patient=_of_type(str, record["patient"]),
        region=_of_type(str, record["region"]),
        objects=None if objects is None else _frame(objects),
        counts=None if counts is None else _counts(counts),
        scores=None if scores is None else {name: _score(own) for name, own in scores.items()},
        findings=tuple(_finding(finding) for finding in record["findings"]),
        rows=None if rows is None else RowsFile(Path(rows[0]), _of_type(str, rows[1])),
    )


def _frame_record(frame: pd.DataFrame) -> list[list[Any]]:
    """Return name, type and values of each column; what is missing is None."""
    return [[name, str(column.dtype), _values(column)] for name, column in frame.items()]


def _values(column: pd.Series[Any]) -> list[Any]:
    if isinstance(column.dtype, pd.Int64Dtype):
        return list(column.array.to_numpy(object, na_value=None).tolist())
    return column.tolist()


def _frame(columns: Sequence[Sequence[Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=dtype) for name, dtype, values in columns})


def _counts_record(counts: Counts) -> dict[str, Any]:
    values = {f.name: getattr(counts, f.name) for f in fields(counts)}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def _counts(record: Mapping[str, Any]) -> Counts:
    names = tuple(record["class_names"])
    known = Counts.zero(names)
    values: dict[str, Any] = {"class_names": names}
    for name, value in record.items():
        if isinstance(example := getattr(known, name), np.ndarray):
            values[name] = np.array(value, example.dtype)
        elif name != "class_names":
            values[name] = value
    return Counts(**values)


def _scores_record(scores: Mapping[str, ClassScore]) -> dict[str, Any]:
    return {
        name: {f.name: getattr(score, f.name) for f in fields(score)}
        | {"counts": _counts_record(score.counts)}
        for name, score in scores.items()
    }


def _score(record: Mapping[str, Any]) -> ClassScore:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    return ClassScore(**values | {"counts": _counts(record["counts"])})


def _finding(record: Mapping[str, Any]) -> Finding:
    path = record["path"]
    if _of_type(int, record["count"]) < 1:
        raise ValueError(f"a finding of {record['count']} cases")
    changed = {
        "kind": FindingKind(record["kind"]),
        "message": _of_type(str, record["message"]),
        "path": None if path is None else Path(path),
        "object_ids": tuple(_of_type(int, id_) for id_ in record["object_ids"]),
    }
    return Finding(**{**record, **changed})


def _of_type(kind: type[Value], value: Any) -> Value:
    if type(value) is not kind:
        raise TypeError(f"expected a {kind.__name__}, found {value!r}")
    return value

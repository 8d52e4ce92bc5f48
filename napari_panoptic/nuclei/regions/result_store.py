"""Finished regions on disk, one file each, so that an interrupted run can resume.

A file is text: a header with a checksum, and a line of JSON with the results,
in which every floating-point number has all its digits. Files that are damaged
or incomplete are never used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path

import numpy as np

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.records import decoded, encoded
from napari_panoptic.common.text import utf8
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.regions.results import RegionResult, RowsFile

RegionResults = list[list[RegionResult]]
"""Per condition, the teams of one region."""

_FORMAT = "napari-panoptic region 3"
_ENDING = ".part.json"
# Raised for a file that is no JSON, or holds other values than this version writes.
_NOT_AS_WRITTEN = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


class DamagedPartError(PanopticError):
    """A stored region is incomplete, was changed, or is no stored region at all."""


@dataclass(frozen=True)
class PartStore:
    """A folder with a file for each finished region."""

    #: Made when the first region is written.
    folder: Path

    def write(self, region: str, fingerprint: str, results: RegionResults) -> None:
        """Store the results of a region, replacing an older file atomically.

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
        # Conditions that differ in nothing here share a result.
        distinct = {id(result): result for result in chain.from_iterable(results)}
        known = {key: encoded(result) for key, result in distinct.items()}
        records = [[known[id(result)] for result in found] for found in results]
        body = json.dumps(records, separators=(",", ":"))
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
        """Return the fingerprint that a region was stored with; None if it was not.

        Raises
        ------
        DamagedPartError
            If its file is damaged.
        """
        found = self._read(region)
        return None if found is None else found[0]

    def read(self, region: str) -> RegionResults | None:
        """Return the stored results of a region; None if there are none.

        Raises
        ------
        DamagedPartError
            If its file is damaged.
        """
        found = self._read(region)
        if found is None:
            return None
        try:
            results: RegionResults = decoded(RegionResults, json.loads(found[1]))
            for result in chain.from_iterable(results):
                _check(result, region)
        except _NOT_AS_WRITTEN as error:
            raise self._damaged(region) from error
        return [[self._with_whole_rows(result) for result in found] for found in results]

    def rows_path(self, region: str, number: int) -> Path:
        """Return the file for the rows of a region that are too many to hold, by their number.

        `remove` removes them with the region.
        """
        path = self._path(region)
        return path.with_name(f"{path.name}.{number}.csv")

    def _with_whole_rows(self, result: RegionResult) -> RegionResult:
        """Return the result with its rows in this folder, which may have been moved.

        A run that was killed may have overwritten them, with other files or
        settings, before it wrote the results that belong to them.
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
        """Return the number of stored regions, of any fingerprint."""
        return sum(1 for _ in self.folder.glob(f"*{_ENDING}"))

    def remove(self) -> None:
        """Remove the files of all regions, and the folder if nothing else is in it.

        Raises
        ------
        PanopticError
            If that is not permitted.
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


def _check(result: RegionResult, region: str) -> None:
    """Check what types do not tell.

    Raises
    ------
    ValueError
        If no evaluation of the region has such a result.
    """
    if result.region != region:
        raise ValueError(f"expected the region {region}, found {result.region}")
    if any(finding.count < 1 for finding in result.findings):
        raise ValueError("a finding was found no times")
    if result.counts is None:
        return
    zero = Counts.zero(result.counts.class_names)
    for field in fields(zero)[1:]:
        found, size = getattr(result.counts, field.name), np.shape(getattr(zero, field.name))
        is_possible = np.isfinite(found) & (np.asarray(found) >= 0)
        if np.shape(found) != size or not np.all(is_possible):
            raise ValueError(f"expected {size} finite numbers from 0 as {field.name}")


def _sha256(text: str) -> str:
    return hashlib.sha256(utf8(text)).hexdigest()

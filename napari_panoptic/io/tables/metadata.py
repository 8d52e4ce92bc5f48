"""The optional table of patients, ``metadata.csv``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.files.links import leads_out
from napari_panoptic.io.tables.csv_tables import read_rows

METADATA_FILE = "metadata.csv"


@dataclass(frozen=True, eq=False)
class Metadata:
    """Columns of a table with one row per patient."""

    #: Column -> patient -> cell; patients with an empty cell are absent.
    columns: Mapping[str, Mapping[str, str]]
    #: Unknown and missing patients.
    findings: tuple[Finding, ...] = ()

    def group_of(self, column: str, patient: str) -> str:
        """Return a patient's entry in a column; empty if there is none."""
        return self.columns.get(column, {}).get(patient, "")


def read_metadata(path: Path, patients: Iterable[str]) -> Metadata:
    """Read a table with a column ``patient`` and any others, such as ``organ``.

    Parameters
    ----------
    path
        CSV in UTF-8, separated by commas or semicolons.
    patients
        The patients of the cohort. Rows of others are left out and reported,
        as are patients without a row.

    Raises
    ------
    UnreadableFileError
        As `read_rows`, also for a patient who is there twice.
    """
    known, listed = set(patients), set[str]()
    rows = read_rows(path, "a table of patients", ("patient",), unique="patient")
    columns: dict[str, dict[str, str]] = {name: {} for name in rows.header if name != "patient"}
    for _, row in rows:
        patient = row.pop("patient")
        listed.add(patient)
        for name, cell in row.items():
            if cell and patient in known:
                columns[name][patient] = cell
    return Metadata(columns, _strangers(path, known, listed))


def metadata_beside(root: Path, patients: Iterable[str]) -> Metadata | None:
    """Read the table in a cohort's folder; return None if there is none.

    Raises
    ------
    UnreadableFileError
        As :func:`read_metadata`.
    """
    path = root / METADATA_FILE
    if path.is_symlink() and leads_out(path, root):
        raise UnreadableFileError(
            "this is a link that leads out of the cohort's folder, and was not followed; give the "
            "table itself (on the command line by --metadata), or put it there",
            path=path,
        )
    return read_metadata(path, patients) if path.is_file() else None


def _strangers(path: Path, known: set[str], listed: set[str]) -> tuple[Finding, ...]:
    found = []
    if unknown := sorted(listed - known):
        found.append(
            Finding(
                FindingKind.EXTRA,
                f"{counted(len(unknown), 'patient')} of the table, not in the cohort: "
                f"{english_list(unknown[:5])}",
                path=path,
                count=len(unknown),
            )
        )
    if missing := sorted(known - listed):
        found.append(
            Finding(
                FindingKind.MISSING,
                f"{counted(len(missing), 'patient')} of the cohort, not in the table and in no "
                f"group: {english_list(missing[:5])}",
                path=path,
                count=len(missing),
            )
        )
    return tuple(found)

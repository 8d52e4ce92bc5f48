"""The table of patients: read, or refused with the line that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.tables.metadata import read_metadata

PATIENTS = ("A-1", "A-2", "B-1")


def table(folder: Path, text: str) -> Path:
    path = folder / "metadata.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("separator", [",", ";"])
def test_columns_by_patient(tmp_path: Path, separator: str) -> None:
    text = "\ufefforgan, patient ,site\nLung,A-1,x\nKidney, A-2 ,\n\nLung,B-1,y\n"
    found = read_metadata(table(tmp_path, text.replace(",", separator)), PATIENTS)
    assert found.findings == ()
    assert dict(found.columns["organ"]) == {"A-1": "Lung", "A-2": "Kidney", "B-1": "Lung"}
    assert (found.group_of("site", "A-1"), found.group_of("site", "A-2")) == ("x", "")
    assert found.group_of("age", "A-1") == ""


def test_unknown_and_missing_patients_are_told(tmp_path: Path) -> None:
    found = read_metadata(table(tmp_path, "patient,organ\nA-1,Lung\nZ-9,Skin\n"), PATIENTS)
    assert dict(found.columns["organ"]) == {"A-1": "Lung"}
    extra, missing = found.findings
    assert (extra.kind, extra.count) == (FindingKind.EXTRA, 1)
    assert "Z-9" in extra.message
    assert (missing.kind, missing.count) == (FindingKind.MISSING, 2)
    assert "A-2 and B-1" in missing.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "with the column patient, found no columns"),
        ("name,organ\nA-1,Lung\n", "found name and organ"),
        ("patient,organ\nA-1,Lung\nA-2,Lung\nA-1,Skin\n", "in line 2 and again in line 4"),
        ("patient,organ,organ\nA-1,a,b\n", "found organ twice"),
        ("patient,organ\nA-1\n", "expected 2 cells in line 2, found 1"),
        ('patient,organ\nA-1,"Lung\n', "a table of patients in CSV, found"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read_metadata(table(tmp_path, text), PATIENTS)


def test_no_text_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_bytes(b"patient,organ\nA-1,\xff\xfe\n")
    with pytest.raises(UnreadableFileError, match="UTF-8"):
        read_metadata(tmp_path / "metadata.csv", PATIENTS)
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        read_metadata(tmp_path / "other.csv", PATIENTS)

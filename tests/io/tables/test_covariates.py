"""Tables of covariates: what is read, and what is refused with what to do."""

from pathlib import Path

import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.tables.covariates import read_covariates


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_columns_may_be_in_any_order(tmp_path: Path, separator: str, start: str) -> None:
    text = (
        f"{start}blur,id,side,region,patient,note\n"
        "0.5, 3,reference, r 1,p,\n"
        "\n"
        "x,3,prediction,r 1,p,NA\n"
    ).replace(",", separator)
    frame = read_covariates(written(tmp_path / "table.csv", text))
    assert list(frame) == ["patient", "region", "side", "id", "blur", "note"]
    assert frame.to_dict("records") == [
        {"patient": "p", "region": "r 1", "side": "reference", "id": 3, "blur": "0.5", "note": ""},
        {"patient": "p", "region": "r 1", "side": "prediction", "id": 3, "blur": "x", "note": "NA"},
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "found"),
        ("patient,region,id,blur\n", "add side"),
        ("patient,region,side,id\np,r,reference,1\n", "covariate"),
        ("patient,region,side,id,\np,r,reference,1,2\n", "name them"),
        ("patient,region,side,id,blur,blur\np,r,reference,1,2,3\n", "found blur twice"),
        ("patient,region,side,id,blur\np,r,left,1,2\n", "found 'left' in row 1"),
        ("patient,region,side,id,blur\np,r,reference,1.5,2\n", "'id', found '1.5'"),
        ("patient,region,side,id,blur\np,r,reference,one,2\n", "'id', found 'one'"),
        ("patient,region,side,id,blur\np,r,reference\n", "5 cells in line 2, found 3"),
        (
            "patient,region,side,id,blur\np,r,reference,1,2\np,r,reference,01,3\n",
            "reference 1 of region 'r' twice",
        ),
        ("patient,region,side,id,blur\np,r,reference,1,2,3,4\n", "5 cells in line 2, found 7"),
        ('patient,region,side,id,blur\n"p,r,reference,1,2\n', "in CSV, found"),
    ],
)
def test_what_is_no_such_table_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path / "table.csv", text)
    with pytest.raises(UnreadableFileError, match=problem) as caught:
        read_covariates(path)
    assert caught.value.path == path


def test_other_encodings_and_missing_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("patient,region,side,id,gr\u00f6\u00dfe\n".encode("latin-1"))
    with pytest.raises(UnreadableFileError, match="UTF-8"):
        read_covariates(path)
    with pytest.raises(UnreadableFileError):
        read_covariates(tmp_path / "missing.csv")

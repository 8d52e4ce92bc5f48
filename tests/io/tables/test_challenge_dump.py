"""The organisers' output: what is read of it, and what is said of lines that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.tables.challenge_dump import (
    MONUSAC_2020_TEST_ORGANS,
    organ_of,
    read_dump,
    read_organs,
)
from tests.support.paths import REPOSITORY, SHARED_CASES, needs_shared_cases

SMALL_DUMP = REPOSITORY / "tests" / "data" / "organisers_dump.txt"
MASK = ".\\P1\\P1_1\\Lymphocyte\\1_mask.mat"
FILES = "['D:\\\\Team/1.mat']"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "dump.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_every_figure_is_read_in_order() -> None:
    dump = read_dump(SMALL_DUMP)
    assert dump.teams == ("Team Alpha", "beta_2", "Gamma")
    assert [sum(f.team == team for f in dump.figures) for team in dump.teams] == [7, 7, 6]
    first, third = dump.figures[0], dump.figures[2]
    assert (first.patient, first.region, first.class_name) == ("P1", "P1_1", "Epithelial")
    assert (first.pq, first.line) == (0.8, 4)
    assert (third.region, third.pq, third.line) == ("P1_2", 0.5, 11)  # after an empty line


def test_a_mask_that_was_not_handed_in_scored_0() -> None:
    absent = [f for f in read_dump(SMALL_DUMP).figures if not f.submitted]
    assert [(f.team, f.region, f.class_name, f.pq) for f in absent] == [
        ("beta_2", "P3_1", "Lymphocyte", 0.0),  # without a list of files
        ("Gamma", "P3_1", "Epithelial", 0.0),  # with an empty one
    ]


def test_line_ends_of_windows_and_slashes_of_linux(tmp_path: Path) -> None:
    text = SMALL_DUMP.read_text("utf-8").replace("\\\\", "/").replace("\\", "/")
    path = tmp_path / "dump.txt"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_dump(path).figures == read_dump(SMALL_DUMP).figures


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([MASK, FILES, "0.5"], "line 1: expected a team's name, found '.\\P1"),
        (["0.5"], "line 1: expected a team's name, found '0.5'"),
        (["A"], "line 2: expected a mask's path of team A, found the end of the file"),
        (["A", "B", MASK], "line 2: expected a mask's path of team A, found 'B'"),
        (["A", FILES], "line 2: expected a team's name or a mask's path such as"),
        (["A", MASK, "0.5", "0.6"], "line 4: expected a team's name or a mask's path such as"),
        (["A", MASK, FILES, MASK], "line 4: expected the PQ, between 0 and 1, of class Lymphocyte"),
        (["A", MASK, FILES], "in region P1_1, found the end of the file"),
        (["A", MASK], "line 3: expected the PQ"),
        (["A", MASK, "", FILES, "", "0.4O"], "line 6: expected the PQ"),
        (["A", MASK, "0.4O"], "region P1_1, found '0.4O'"),
        (["A", MASK, "1.2"], "found '1.2'"),
        (["A", MASK, "-0.1"], "found '-0.1'"),
        (["A", MASK, "nan"], "found 'nan'"),
        (["A", MASK, "['D:/1.mat'", "0.4"], "line 3: expected a list that ends with ]"),
        (["A", ".\\P1\\Lymphocyte\\1_mask.mat", "0.4"], "line 2: expected a path such as"),
        (
            ["A", MASK, "0.4", MASK, "0.4"],
            "line 5: expected one PQ per region and class of a team, found a second one of class "
            "Lymphocyte in region P1_1 (the first is in line 3)",
        ),
        (
            ["A", MASK, "0.4", "B", MASK, "0.4", "A", MASK, "0.4"],
            "line 7: expected each team once, found 'A' again (first in line 1)",
        ),
        (["", " "], "line 1: expected a team's name, found the end of the file"),
    ],
)
def test_lines_that_do_not_fit(tmp_path: Path, lines: list[str], message: str) -> None:
    path = written(tmp_path, *lines)
    with pytest.raises(UnreadableFileError) as error:
        read_dump(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_what_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_bytes(b"Team \xff\n")
    with pytest.raises(UnreadableFileError, match="found an invalid byte at position 5"):
        read_dump(path)
    path.write_bytes(b"")
    with pytest.raises(UnreadableFileError, match="found an empty file"):
        read_dump(path)
    with pytest.raises(UnreadableFileError, match="no such file"):
        read_dump(tmp_path / "nowhere.txt")
    with pytest.raises(UnreadableFileError, match="found a folder"):
        read_dump(tmp_path)


def test_organs_from_a_table() -> None:
    organs = read_organs(REPOSITORY / "tests" / "data" / "organs.csv", read_dump(SMALL_DUMP))
    assert organs == {"P1": "Lung", "P2": "Lung", "P3": "Kidney", "P4": "Kidney"}


def test_organs_by_case(tmp_path: Path) -> None:
    name = "TCGA-AA-0001-01Z-00-DX1"
    dump = read_dump(written(tmp_path, "A", MASK.replace("P1", name), "0.5"))
    table = tmp_path / "organs.csv"
    table.write_text("patient,organ\nTCGA-AA-0001,Lung\nTCGA-AA-0002,Breast\n", "utf-8")
    organs = read_organs(table, dump)
    assert organs == {"TCGA-AA-0001": "Lung"}
    assert organ_of(name, organs) == "Lung"


def test_a_table_without_organs(tmp_path: Path) -> None:
    table = tmp_path / "organs.csv"
    table.write_text("patient,tissue\nP1,Lung\n", "utf-8")
    with pytest.raises(
        UnreadableFileError, match="columns patient and organ, found patient and tissue"
    ):
        read_organs(table, read_dump(SMALL_DUMP))


def test_the_organ_is_that_of_the_patient_or_of_the_case() -> None:
    organs = {"TCGA-AA-0001": "Lung", "TCGA-AA-0001-01Z-00-DX2": "Kidney"}
    assert organ_of("TCGA-AA-0001-01Z-00-DX1", organs) == "Lung"
    assert organ_of("TCGA-AA-0001-01Z-00-DX2", organs) == "Kidney"
    assert organ_of("TCGA-AA-00011", organs) is None
    assert organ_of("P1", organs) is None


@needs_shared_cases
def test_the_real_output_is_read_wholly() -> None:
    dump = read_dump(SHARED_CASES / "challenge-dump" / "per_image_class_pq.txt")
    assert dump.teams == ("Amirreza Mahbod", "Dark Brotherhood", "IVG", "SJTU_426")
    places = {
        team: [(f.region, f.class_name) for f in dump.figures if f.team == team]
        for team in dump.teams
    }
    assert all(place == places["IVG"] and len(place) == 162 for place in places.values())
    assert len({f.region for f in dump.figures}) == 101
    patients = {f.patient for f in dump.figures}
    assert len(patients) == len(MONUSAC_2020_TEST_ORGANS) == 25
    assert all(organ_of(patient, MONUSAC_2020_TEST_ORGANS) for patient in patients)
    assert {f.team for f in dump.figures if not f.submitted} == {"SJTU_426"}

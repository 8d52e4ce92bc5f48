"""CSV files of points and of atypia scores."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.points.point_files import read_atypia, read_points, write_points
from napari_panoptic.values.detections import Points


@pytest.fixture
def write(tmp_path):
    def write(text, *, mode="w"):
        path = tmp_path / "points.csv"
        path.write_bytes(text if mode == "b" else text.encode())
        return path

    return write


def test_the_challenges_example_is_read(write):
    points = read_points(write("375,784,0.952342\n878,13,0.899445\n")).points
    assert points.xy_px.tolist() == [[375, 784], [878, 13]]
    assert points.confidence.tolist() == [0.952342, 0.899445]
    assert points.ids.tolist() == [1, 2]


def test_confidences_may_be_left_out_and_lines_may_be_empty(write):
    read = read_points(write("\ufeff1.5, 2\r\n\r\n3,4,0.5\r\n5,6,\r\n"))
    assert read.points.xy_px.tolist() == [[1.5, 2], [3, 4], [5, 6]]
    assert np.array_equal(read.points.confidence, [np.nan, 0.5, np.nan], equal_nan=True)
    assert read.points.ids.tolist() == [1, 3, 4]  # the lines of the file
    assert read.findings == ()


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_says_that_nothing_was_found(write, text):
    read = read_points(write(text))
    assert len(read.points) == 0
    assert read.findings == ()


def test_pixels_of_a_mitosis_become_their_centre_in_the_annotation_only(write):
    path = write("10,10,11,10,12,13\n7,8,0.5\n")
    assert read_points(path, is_reference=True).points.xy_px.tolist() == [[11, 11], [7, 8]]
    detections = read_points(path)
    assert detections.points.xy_px.tolist() == [[7, 8]]
    assert [f.kind for f in detections.findings] == [FindingKind.MALFORMED]


@pytest.mark.parametrize(
    "wrong", ["a,b", "1", "1,2,3,4,5", "nan,2", "1,inf", "1,2,nan", "1;2", "1_0,2", "1,,2"]
)
def test_a_line_that_is_no_point_is_left_out_and_told_with_its_number(write, wrong):
    read = read_points(write(f"1,2\n{wrong}\n3,4\n"), is_reference=True, region="r", team="t")
    assert read.points.xy_px.tolist() == [[1, 2], [3, 4]]
    (finding,) = read.findings
    assert (finding.kind, finding.region, finding.team) == (FindingKind.MALFORMED, "r", "t")
    assert finding.object_ids == (2,)
    assert "line 2 of points.csv" in finding.message
    assert wrong in finding.message


def test_a_file_without_any_point_is_unreadable_and_not_empty(write):
    with pytest.raises(UnreadableFileError, match="line 1 is 'x;y'"):
        read_points(write("x;y\n1;2\n"))
    with pytest.raises(UnreadableFileError, match="UTF-8"):
        read_points(write(b"\xff\xfe1,2", mode="b"))


def test_points_beyond_the_image_are_told_and_kept(write):
    read = read_points(write("0,0\n-1,5\n19,9\n20,5\n3,10\n-0.5,9.5\n"), shape=(10, 20))
    assert len(read.points) == 6
    (finding,) = read.findings
    assert finding.kind is FindingKind.OUTSIDE_IMAGE
    assert finding.object_ids == (2, 4, 5)
    negative = read_points(write("-1,5\n1e9,3\n"))
    assert [f.object_ids for f in negative.findings] == [(1,)]


NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.none() | st.floats(0, 1))))
def test_what_is_written_comes_back(tmp_path_factory, rows):
    confidence = np.array([math.nan if c is None else c for *_, c in rows])
    points = Points(
        np.array([row[:2] for row in rows], float).reshape(-1, 2),
        confidence,
        np.arange(1, len(rows) + 1),
    )
    path = write_points(tmp_path_factory.mktemp("points") / "p.csv", points)
    back = read_points(path).points
    assert np.array_equal(back.xy_px, points.xy_px)
    assert np.array_equal(back.confidence, confidence, equal_nan=True)
    assert np.array_equal(back.ids, points.ids)


def test_scores_of_atypia(write):
    assert (read_atypia(write("3,0.857438\n")).score, read_atypia(write("3")).score) == (3, 3)
    assert read_atypia(write("3,0.857438\n")).confidence == 0.857438
    assert read_atypia(write(" \n")).score is None


@pytest.mark.parametrize("wrong", ["4", "0", "2.5", "a", "1,2,3", "1\n2", "nan"])
def test_what_is_no_score_is_refused(write, wrong):
    with pytest.raises(UnreadableFileError, match="expected one score"):
        read_atypia(write(wrong))


def test_the_mean_of_a_mitosis_far_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,1\n1e308,1,1e308,1\n")
    read = read_points(path, is_reference=True)
    assert read.points.ids.tolist() == [1]
    assert [finding.object_ids for finding in read.findings] == [(2,)]

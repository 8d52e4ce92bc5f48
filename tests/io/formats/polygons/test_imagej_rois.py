"""ImageJ ROIs, against files that roifile writes, and against label images."""

from __future__ import annotations

import struct
import zipfile
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from roifile import ROI_OPTIONS, ROI_SUBTYPE, ROI_TYPE, ImagejRoi

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.common.progress import StoppedError
from napari_panoptic.io.files.guard import VARIABLE
from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.polygons import imagej_rois
from napari_panoptic.io.formats.polygons.imagej_rois import write_files
from napari_panoptic.io.formats.polygons.model import PolygonFile
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.examples import examples
from tests.support.outlines import read_outlines, stopped

SHAPE = (12, 14)
ONE_CLASS = ClassScheme(names=("Nucleus",), colours=((255, 0, 0),), ambiguous=None)
SQUARE = [(1, 2), (5, 2), (5, 6), (1, 6)]


def polygon(points: list[tuple[float, float]] = SQUARE, *, group: int = 0) -> ImagejRoi:
    roi = ImagejRoi.frompoints(points, name="")
    roi.roitype = ROI_TYPE.POLYGON
    roi.group = group
    return roi


def archive(folder: Path, rois: dict[str, ImagejRoi | bytes]) -> Path:
    path = folder / "RoiSet.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name, roi in rois.items():
            file.writestr(name, roi if isinstance(roi, bytes) else roi.tobytes())
    return path


def loaded(path: Path, scheme: ClassScheme = MONUSAC_CLASSES) -> LoadedMasks:
    return load_masks(MaskFiles(Source.IMAGEJ_ROI, {"": (path,)}), scheme, shape=SHAPE)


def read(folder: Path, rois: dict[str, ImagejRoi | bytes]) -> PolygonFile:
    return read_outlines(Source.IMAGEJ_ROI, archive(folder, rois))


def test_classes_come_from_folder_name_group_or_the_only_class(tmp_path: Path) -> None:
    path = archive(
        tmp_path,
        {
            "Lymphocyte/0001.roi": polygon(group=1),
            "Epithelial-0002.roi": polygon(group=2),
            "0003-0100.roi": polygon(group=3),
            "macrophage 104.ROI": polygon(),
            "0005.roi": polygon(),
            "mystery_6.roi": polygon(group=9),
            "__MACOSX/x.roi": b"",
            "notes.txt": b"",
        },
    )
    file = read_outlines(Source.IMAGEJ_ROI, path)
    assert file.polygons.class_index.tolist() == [2, 1, 3, 4]
    assert file.polygons.ids.tolist() == [1, 2, 3, 4]  # the numbers do not ascend
    assert [(f.class_name, f.object_ids) for f in file.findings] == [
        (None, (5,)),
        ("mystery", (6,)),
        (None, ()),  # groups are numbers of classes
    ]
    unnamed = replace(MONUSAC_CLASSES, aliases={"": "Macrophage"})
    assert read_outlines(Source.IMAGEJ_ROI, path, unnamed).polygons.class_index.tolist() == [
        2,
        1,
        3,
        4,
        4,
    ]
    alone = read_outlines(Source.IMAGEJ_ROI, path, ONE_CLASS).polygons
    assert alone.class_index.tolist() == [1] * 6


def test_numbers_at_the_ends_of_names_are_ids_where_they_ascend(tmp_path: Path) -> None:
    names = ("Epithelial-7.roi", "Epithelial-70.roi", "Lymphocyte-0071.Roi")
    file = read(tmp_path, {name: polygon() for name in names})
    assert file.polygons.ids.tolist() == [7, 70, 71]


def test_numbers_of_more_digits_are_no_ids_and_no_part_of_the_class(tmp_path: Path) -> None:
    file = read(
        tmp_path, {f"Lymphocyte-{n}.roi": polygon() for n in (3_000_000_001, 3_000_000_007)}
    )
    assert file.polygons.class_index.tolist() == [2, 2]
    assert file.polygons.ids.tolist() == [1, 2]


def test_a_name_of_nothing_but_separators_takes_no_time(tmp_path: Path) -> None:
    name = 60_000 * "-" + "x"
    file = read(tmp_path, {f"{name}.roi": polygon()})
    assert [(f.class_name, f.object_ids) for f in file.findings] == [(name, (1,))]


def test_names_of_groups_lie_beside(tmp_path: Path) -> None:
    (tmp_path / "type_info.json").write_text('{"1": ["Macrophage", [0, 0, 0]]}')
    assert read(tmp_path, {"0001.roi": polygon(group=1)}).polygons.class_index.tolist() == [4]


def pixels_of(rings: list[list[tuple[float, float]]]) -> NDArray[np.bool_]:
    """Decide pixel by pixel whether its centre has an odd number of edges on its right."""
    result = np.zeros(SHAPE, np.bool_)
    for row, column in np.ndindex(SHAPE):
        y, x, odd = row + 0.5, column + 0.5, False
        for ring in rings:
            for (xa, ya), (xb, yb) in zip(ring, ring[1:] + ring[:1], strict=True):
                if (ya > y) != (yb > y) and x < xa + (y - ya) / (yb - ya) * (xb - xa):
                    odd = not odd
        result[row, column] = odd
    return result


def composite(rings: list[list[tuple[float, float]]]) -> ImagejRoi:
    steps: list[float] = []
    for ring in rings:
        for place, (x, y) in enumerate(ring):
            steps += (1.0 if place else 0.0, x, y)
        steps.append(4.0)
    roi = ImagejRoi()
    roi.roitype, roi.shape_roi_size = ROI_TYPE.RECT, len(steps)
    roi.multi_coordinates = np.array(steps, np.float32)
    return roi


HOLE = [(2, 3), (2, 5), (4, 5), (4, 3)]
APART = [(8, 1), (12, 1), (12, 9), (8, 9)]


@pytest.mark.parametrize(
    ("roi", "rings"),
    [
        (polygon(), [SQUARE]),
        (polygon([(1.25, 2.0), (5.75, 2.5), (3.0, 9.25)]), [[(1.25, 2), (5.75, 2.5), (3, 9.25)]]),
        (composite([SQUARE, HOLE, APART]), [SQUARE, HOLE, APART]),
        (ImagejRoi(roitype=ROI_TYPE.RECT, left=1, top=2, right=5, bottom=6), [SQUARE]),
        (
            ImagejRoi(
                roitype=ROI_TYPE.RECT,
                version=228,  # the first with such rectangles is 223
                options=ROI_OPTIONS.SUB_PIXEL_RESOLUTION,
                xd=1.0,
                yd=2.0,
                widthd=4.0,
                heightd=4.0,
            ),
            [SQUARE],
        ),
    ],
    ids=["integers", "between pixels", "composite", "rectangle", "rectangle between pixels"],
)
def test_objects_have_the_pixels_whose_centres_lie_inside(
    roi: ImagejRoi, rings: list[list[tuple[float, float]]], tmp_path: Path
) -> None:
    path = archive(tmp_path, {"1.roi": roi})
    expected = pixels_of(rings)
    assert np.array_equal(loaded(path, ONE_CLASS).labels.index == 1, expected)
    alone = tmp_path / "a.roi"
    alone.write_bytes(roi.tobytes())
    assert np.array_equal(loaded(alone, ONE_CLASS).labels.index == 1, expected)


def test_ovals_are_ellipses(tmp_path: Path) -> None:
    oval = ImagejRoi(roitype=ROI_TYPE.OVAL, left=2, top=1, right=11, bottom=9)
    y, x = np.indices(SHAPE) + 0.5
    expected = ((x - 6.5) / 4.5) ** 2 + ((y - 5) / 4) ** 2 < 1
    assert np.array_equal(
        loaded(archive(tmp_path, {"1.roi": oval}), ONE_CLASS).labels.index, expected
    )


def test_what_has_no_area_is_left_out_and_told(tmp_path: Path) -> None:
    line = ImagejRoi(roitype=ROI_TYPE.LINE, x2=3.0, y2=4.0)
    point = polygon()
    point.roitype = ROI_TYPE.POINT
    text = ImagejRoi(roitype=ROI_TYPE.RECT, subtype=ROI_SUBTYPE.TEXT, text="Epithelial")
    file = read(
        tmp_path, {"a.roi": line, "b.roi": point, "c.roi": text, "Epithelial.roi": polygon()}
    )
    assert file.polygons.ids.tolist() == [4]
    (told,) = file.findings
    assert told.kind is FindingKind.UNREADABLE
    assert told.object_ids == (1, 2, 3)


def on_plane(z: int) -> ImagejRoi:
    roi = polygon()
    roi.position = z
    return roi


def test_one_plane_of_a_stack_is_read_and_several_are_refused(tmp_path: Path) -> None:
    file = read(tmp_path, {"Epithelial-1.roi": on_plane(3), "Epithelial-2.roi": on_plane(0)})
    assert len(file.polygons) == 2
    with pytest.raises(UnreadableFileError, match="2 planes of a stack"):
        read(tmp_path, {"Epithelial-1.roi": on_plane(3), "Epithelial-2.roi": on_plane(4)})


def with_a_signalling_nan() -> bytes:
    """A NaN of which NumPy warns when it converts it."""
    whole = ImagejRoi.frompoints(np.array([[1.5, 2.0], [8.25, 2.0], [5.0, 9.0]], np.float32))
    place = struct.pack(">f", 8.25)
    assert whole.tobytes().count(place) == 1
    return whole.tobytes().replace(place, b"\xff\xbe\xbe\xbe")


@pytest.mark.parametrize(
    ("rois", "said"),
    [
        ({"a.txt": b"x"}, "none of its 1 files is a ROI"),
        ({"a.roi": b"Iout"}, r"ROI 1 \('a.roi'\) is damaged"),
        ({"1.roi": polygon(), "2.roi": polygon().tobytes()[:70]}, r"ROI 2 \('2.roi'\) is damaged"),
        ({"a.roi": composite([SQUARE]).tobytes()[:-130]}, "is damaged"),
        (
            {"a.roi": composite([[(0.0, 0.0), (1e30, 0.0), (1.0, 1.0)]])},
            "object 1 with a coordinate out of range",
        ),
        ({"a.roi": with_a_signalling_nan()}, "object 1 with a coordinate out of range"),
    ],
)
def test_damaged_ones_are_refused_as_a_whole(
    rois: dict[str, ImagejRoi | bytes], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UnreadableFileError, match=said):
        read(tmp_path, rois)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, {"Epithelial.roi": polygon()})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UnreadableFileError, match="cannot be unpacked"):
        read_outlines(Source.IMAGEJ_ROI, path)


def test_nothing_unpacks_to_more_than_may_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("1.roi", b"Iout" + bytes(imagej_rois.LARGEST_ROI))
    with pytest.raises(UnreadableFileError, match="larger than"):
        read_outlines(Source.IMAGEJ_ROI, path)
    monkeypatch.setenv(VARIABLE, "10")
    with pytest.raises(UnreadableFileError, match="may be held in memory"):
        read(tmp_path, {"Epithelial.roi": polygon()})


def test_reading_can_be_stopped(tmp_path: Path) -> None:
    path = archive(tmp_path, {"Epithelial.roi": polygon()})
    with pytest.raises(StoppedError):
        read_outlines(Source.IMAGEJ_ROI, path, progress=stopped)


@settings(max_examples=examples(15), deadline=None, derandomize=True)
@given(
    index=arrays(
        np.int64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 4)
    ),
    has_area=st.booleans(),
)
def test_what_is_written_comes_back_with_ids_and_classes(
    index: NDArray[np.int64], has_area: bool
) -> None:
    image = np.array([0, 3, 7, 1000, 20_000])[index]
    classes = {3: "Macrophage", 7: "Epithelial", 1000: "Epithelial", 20_000: "Lymphocyte"}
    labels = LabelImage.from_array(image, classes, MONUSAC_CLASSES.names)
    area = (index == 0) if has_area else None
    objects = Objects(labels, Side.PREDICTION, "r", "t", area, MONUSAC_CLASSES, None)
    with TemporaryDirectory() as folder:
        (path,) = write_files(Path(folder) / "r.roi.zip", objects)
        first = path.read_bytes()
        write_files(path, objects)
        assert path.read_bytes() == first
        files = MaskFiles(Source.IMAGEJ_ROI, {"": (path,)})
        again = load_masks(files, MONUSAC_CLASSES, shape=image.shape)
    assert np.array_equal(again.labels.id_image(), image)
    assert again.labels.class_index.tolist() == labels.class_index.tolist()
    found = np.zeros(image.shape, bool) if again.ambiguous is None else again.ambiguous
    assert np.array_equal(found, np.zeros(image.shape, bool) if area is None else area)
    assert again.findings == ()

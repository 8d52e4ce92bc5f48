"""HoVer-Net JSON against a plain reading, and against label images."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from scipy.ndimage import binary_fill_holes, label

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.common.progress import StoppedError
from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.polygons import hovernet
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, PolygonFile
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.contour_files import HOVERNET, label_image
from tests.support.examples import examples
from tests.support.outlines import read_outlines, stopped

Json = Any
ONE_CLASS = ClassScheme(names=("Nucleus",), colours=((255, 0, 0),), ambiguous=None)


def nucleus(*points: tuple[float, float], type_: Json = 1, **more: Json) -> Json:
    return {"bbox": [[0, 0], [1, 1]], "contour": points, "type": type_, "type_prob": 0.5} | more


def written(folder: Path, nuclei: Json, *, mag: Json = 40) -> Path:
    path = folder / "a.json"
    text = nuclei if isinstance(nuclei, str) else json.dumps({"mag": mag, "nuc": nuclei}, indent=1)
    path.write_text(text)
    return path


def read(folder: Path, nuclei: Json, scheme: ClassScheme = MONUSAC_CLASSES) -> PolygonFile:
    return read_outlines(Source.HOVERNET, written(folder, nuclei), scheme)


def loaded(
    path: Path, shape: tuple[int, int], scheme: ClassScheme = MONUSAC_CLASSES
) -> LoadedMasks:
    return load_masks(MaskFiles(Source.HOVERNET, {"": (path,)}), scheme, shape=shape)


def inside_or_on(points: list[tuple[int, int]], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Decide pixel by pixel: on an edge, or with an odd number of edges on its right."""
    result = np.zeros(shape, np.bool_)
    edges = list(zip(points, points[1:] + points[:1], strict=True))
    for y, x in np.ndindex(shape):
        odd = False
        for (xa, ya), (xb, yb) in edges:
            turn = (x - xa) * (yb - ya) - (y - ya) * (xb - xa)
            between = min(xa, xb) <= x <= max(xa, xb) and min(ya, yb) <= y <= max(ya, yb)
            result[y, x] |= turn == 0 and between
            if (ya > y) != (yb > y):
                odd ^= (turn < 0) if yb > ya else (turn > 0)
        result[y, x] |= odd
    return result


def test_contours_of_opencv_give_their_objects_back() -> None:
    expected = label_image()
    masks = loaded(HOVERNET, expected.shape)
    assert np.array_equal(masks.labels.id_image(), expected)
    entries = json.loads(HOVERNET.read_text())["nuc"]
    assert masks.labels.class_index.tolist() == [entry["type"] for entry in entries.values()]
    assert [f.kind for f in masks.findings] == [FindingKind.CLASS_ORDER]


POINT = st.tuples(st.integers(-1, 7), st.integers(-1, 7))


@given(points=st.lists(POINT, min_size=1, max_size=7))
@settings(max_examples=examples(150), deadline=None)
def test_an_object_has_the_pixels_inside_and_on_its_outline(points: list[tuple[int, int]]) -> None:
    with TemporaryDirectory() as folder:
        masks = loaded(written(Path(folder), {"1": nucleus(*points)}), (7, 8))
    assert np.array_equal(masks.labels.index > 0, inside_or_on(points, (7, 8)))


def predictions(labels: LabelImage) -> Objects:
    return Objects(labels, Side.PREDICTION, "R", "T", None, MONUSAC_CLASSES, None)


SMALL = array_shapes(min_dims=2, max_dims=2, max_side=9)


@given(image=arrays(np.int32, SMALL, elements=st.integers(0, 3)))
@settings(max_examples=examples(100), deadline=None)
def test_what_is_written_comes_back_as_far_as_contours_can_say_it(image: NDArray[np.int32]) -> None:
    """Objects that contours cannot hold are named, and have at least their own pixels."""
    names = dict(zip((7, 14, 21), MONUSAC_CLASSES.names, strict=False))
    labels = LabelImage.from_array(image * 7, names, MONUSAC_CLASSES.names)
    height, width = image.shape
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        objects = predictions(labels)
        hovernet.write_files(path, objects)
        again = read_outlines(Source.HOVERNET, path).polygons
    assert len(labels) == len(again)
    changed = {id_ for finding in hovernet.losses(objects) for id_ in finding.object_ids}
    assert again.class_index.tolist() == labels.class_index.tolist()
    for row, id_ in enumerate(labels.ids.tolist()):
        start, end = again.ring_starts[row : row + 2]
        points = [(int(x), int(y)) for x, y in again.vertices_xy[start:end]]
        mask, outlined = image * 7 == id_, inside_or_on(points, (height, width))
        assert (outlined >= mask).all()
        whole = label(mask, np.ones((3, 3)))[1] == 1 and (binary_fill_holes(mask) == mask).all()
        assert (id_ not in changed) == whole
        assert not whole or np.array_equal(outlined, mask)


def test_written_as_hovernet_has_it(tmp_path: Path) -> None:
    labels = LabelImage.from_array(label_image(), "Neutrophil", MONUSAC_CLASSES.names)
    hovernet.write_files(tmp_path / "a.json", predictions(labels))
    content = json.loads((tmp_path / "a.json").read_text())
    assert content["mag"] is None
    ours, theirs = content["nuc"], json.loads(HOVERNET.read_text())["nuc"]
    assert list(ours) == list(theirs)
    for own, other in zip(ours.values(), theirs.values(), strict=True):
        assert own.keys() == other.keys()
        assert own["bbox"] == other["bbox"]
        assert {tuple(p) for p in own["contour"]} <= {(x, y) for x in range(128) for y in range(96)}
        assert own["type"] == 3


def test_classes_by_place_alias_name_and_table(tmp_path: Path) -> None:
    triangle = ((1, 1), (4, 1), (1, 4))
    kinds = [1, 4, 0, 5, "macrophage", 2.0, None]
    nuclei = {str(k): nucleus(*triangle, type_=kind) for k, kind in enumerate(kinds, start=3)}
    file = read(tmp_path, nuclei)
    assert file.polygons.ids.tolist() == [3, 4, 7, 8]
    assert file.polygons.class_index.tolist() == [1, 4, 4, 2]
    *others, order = file.findings
    assert order.kind is FindingKind.CLASS_ORDER
    unknown = {f.class_name: f.object_ids for f in others}
    assert unknown == {"0": (5,), "5": (6,), None: (9,)}

    aliased = ClassScheme(
        MONUSAC_CLASSES.names,
        MONUSAC_CLASSES.colours,
        aliases={"1": "Lymphocyte", "0": "Ambiguous"},
    )
    file = read(tmp_path, nuclei, aliased)
    assert file.polygons.class_index.tolist() == [2, 4, AMBIGUOUS, 4, 2]

    table = {"0": ["nolabe", [0, 0, 0]], "1": ["Neutrophil", [1, 2, 3]], "2": ["dead", [1, 2, 3]]}
    (tmp_path / "type_info.json").write_text(json.dumps(table))
    file = read(tmp_path, nuclei)
    assert file.polygons.ids.tolist() == [3, 7]
    assert file.polygons.class_index.tolist() == [3, 4]
    assert {f.class_name for f in file.findings} == {"4", "nolabe", "5", "dead", None}


def test_without_types_there_must_be_one_class(tmp_path: Path) -> None:
    file = read(tmp_path, {"1": nucleus((1, 1), (3, 1), (2, 3), type_=None)}, ONE_CLASS)
    assert file.polygons.class_index.tolist() == [1]


def test_keys_that_are_no_ascending_numbers_are_replaced(tmp_path: Path) -> None:
    for keys in (("2", "1"), ("a", "b"), ("0", "1")):
        file = read(tmp_path, {key: nucleus((1, 1), (3, 1), (2, 3)) for key in keys})
        assert file.polygons.ids.tolist() == [1, 2]
        kinds = [f.kind for f in file.findings]
        assert kinds == [FindingKind.FALLBACK, FindingKind.CLASS_ORDER]


def test_odd_contours_are_reported_by_their_keys(tmp_path: Path) -> None:
    nuclei = {
        "3": nucleus((1, 1), (5, 1)),
        "5": nucleus(),
        "8": nucleus((0, 0), (4, 4), (4, 0), (0, 4)),
        "9": nucleus((0.4, 0), (3.6, 0), (0, 4)),
    }
    file = read(tmp_path, nuclei)
    found = {(f.kind, f.object_ids) for f in file.findings}
    assert found == {
        (FindingKind.DEGENERATE, (3, 5)),
        (FindingKind.SELF_CROSSING, (8,)),
        (FindingKind.FALLBACK, (9,)),
        (FindingKind.CLASS_ORDER, ()),
    }
    assert file.polygons.vertices_xy[-3:].tolist() == [[0, 0], [4, 0], [0, 4]]


def test_nothing_found_is_no_error(tmp_path: Path) -> None:
    assert len(read(tmp_path, {}).polygons) == 0


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"nuc": []}',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, 1], [2',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, 1]], "type": 1}',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, 1]], "type": 1},}}',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, 1]], "type": 1} "2": 3}}',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, 1]], "type": 1}}} more',
        '{"mag": 40, "nuc": {"1": {"type": 1}}}',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, 1, 1]], "type": 1}}}',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, 1], [2]], "type": 1}}}',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, null]], "type": 1}}}',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, 1e12]], "type": 1}}}',
        '{"mag": 40, "nuc": {"1": {"contour": [[1, 1]], "type": [1]}}}',
        '{"mag": 40, "nuc": {"1": {"contour": "[[1, 1]]", "type": 1}}}',
        "\x89PNG\r\n",
    ],
)
def test_damage_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableFileError, match=r"a\.json.*expected HoVer-Net JSON"):
        read(tmp_path, text)


def test_the_nucleus_at_fault_is_named(tmp_path: Path) -> None:
    good = nucleus((1, 1), (3, 1), (2, 3))
    with pytest.raises(UnreadableFileError, match="nucleus '7'") as caught:
        read(tmp_path, {"4": good, "7": nucleus((1, 1), ("x", 2))})
    assert caught.value.object_id == 2


def test_batches_and_stopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nuclei = {str(k): nucleus((k, 1), (k + 3, 1), (k, 3)) for k in range(1, 8)}
    whole = read(tmp_path, nuclei)
    monkeypatch.setattr(hovernet, "BATCH", 2)
    told: list[tuple[int, int]] = []
    path = tmp_path / "a.json"
    file = read_outlines(
        Source.HOVERNET, path, MONUSAC_CLASSES, progress=lambda *done: told.append(done)
    )
    for one, other in zip(whole.polygons.flat, file.polygons.flat, strict=True):
        assert np.array_equal(one, other)
    assert told == sorted(told)
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    with pytest.raises(StoppedError):
        read_outlines(Source.HOVERNET, path, progress=stopped)


def test_a_table_of_names_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "type_info.json").write_text("[1]")
    with pytest.raises(UnreadableFileError, match=r"type_info\.json.*table of class names"):
        read(tmp_path, {"1": nucleus((1, 1), (3, 1), (2, 3))})

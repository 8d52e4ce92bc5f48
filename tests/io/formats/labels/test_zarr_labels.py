"""Label images as Zarr folders: found in cohorts, read whole or in windows; fingerprints."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.files import fingerprints
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.labels.ome_zarr import write_ome_zarr
from napari_panoptic.io.formats.registry import load_masks, open_masks, reference_shape
from napari_panoptic.io.pixels.label_windows import TiledPixels
from napari_panoptic.values.cohort import ClassScheme, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.builders import (
    label_files,
    two_objects,
    write_svs,
)
from tests.support.zarr_stores import KINDS, write_zarr

SHAPE = (40, 50)
SCHEME = ClassScheme(("a", "b"), ((255, 0, 0), (0, 255, 0)), ambiguous="unclear")
ONE_CLASS = ClassScheme(("cell",), ((255, 0, 0),), ambiguous=None)
DESCRIPTION = """
[classes]
a = [255, 0, 0]
b = [0, 255, 0]

[files]
image = "images/{region}.svs"
reference.labels = "reference/{region}.ome.zarr"
predictions.labels = ["teams/{team}/{class}/{region}.zarr", "teams/{team}/{region}.zarr"]
"""


def some_objects() -> np.ndarray:
    image = np.zeros(SHAPE, np.uint16)
    image[2:20, 3:18] = 5
    image[10:30, 20:41] = 7
    image[33:39, 1:48] = 9
    return image


# --- read whole -------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["xy", "yxc", "cxy", "xyz"])
def test_rows_and_columns_are_the_axes_that_the_metadata_name(axes: str, tmp_path: Path) -> None:
    pixels = some_objects()
    turned = pixels if axes.index("y") < axes.index("x") else pixels.T
    whole = turned.reshape([1 if a in "cz" else SHAPE["yx".index(a)] for a in axes])
    path = tmp_path / "m.zarr"
    group = zarr.create_group(str(path), zarr_format=2)
    array = group.create_array("0", shape=whole.shape, dtype=whole.dtype, chunks=whole.shape)
    array[...] = whole
    named = [{"name": axis, "type": "space"} for axis in axes]
    group.attrs["multiscales"] = [{"axes": named, "datasets": [{"path": "0"}]}]
    loaded = load_masks(label_files(path), ONE_CLASS, shape=SHAPE)
    np.testing.assert_array_equal(loaded.labels.id_image(), pixels)
    tiles = open_masks(label_files(path), ONE_CLASS, SHAPE).labels
    window = np.concatenate([[0], tiles.ids])[tiles.read((5, 10, 30, 45))]
    np.testing.assert_array_equal(window, pixels[5:30, 10:45])


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("leading", [(), (1,), (1, 1, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_pixels_are_those_written(
    zarr_format: int, leading: tuple[int, ...], kind: str, tmp_path: Path
) -> None:
    path = write_zarr(
        tmp_path / "m.zarr", some_objects(), kind=kind, zarr_format=zarr_format, leading=leading
    )
    labels = load_masks(label_files(path), ONE_CLASS, shape=SHAPE).labels
    np.testing.assert_array_equal(labels.id_image(), some_objects())
    assert reference_shape(None, [label_files(path)]) == SHAPE


@pytest.mark.parametrize("table", ["m.csv", "m.ome.csv", "m.json", "m.ome.json"])
def test_a_table_of_classes_beside_it(table: str, tmp_path: Path) -> None:
    path = write_zarr(tmp_path / "m.ome.zarr", some_objects())
    classes = {"5": "b", "7": "unclear", "9": "a"}
    text = json.dumps(classes)
    if table.endswith(".csv"):
        text = "id,class\n" + "".join(f"{id_},{name}\n" for id_, name in classes.items())
    (tmp_path / table).write_text(text)
    loaded = load_masks(label_files(path), SCHEME, shape=SHAPE)
    assert loaded.labels.class_names_of_objects().tolist() == ["b", "a"]
    assert loaded.ambiguous is not None
    np.testing.assert_array_equal(loaded.ambiguous, some_objects() == 7)
    assert open_masks(label_files(path), SCHEME, SHAPE).labels.class_index.tolist() == [2, 1]


def test_one_of_another_size_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_zarr(tmp_path / "m.zarr", some_objects())
    monkeypatch.setattr(TiledPixels, "__init__", refusing(TiledPixels.__init__))
    with pytest.raises(UnreadableFileError, match="width and height are swapped"):
        load_masks(label_files(path), ONE_CLASS, shape=SHAPE[::-1])
    with pytest.raises(AssertionError, match="pixels were read"):
        load_masks(label_files(path), ONE_CLASS, shape=SHAPE)


def refusing(init: Any) -> Any:
    """Make images whose pixels cannot be read."""

    def read(_: Any) -> Any:
        raise AssertionError("pixels were read")

    def changed(self: Any, *values: Any) -> None:
        init(self, *values[:-1], read)

    return changed


def broken_metadata(path: Path) -> None:
    for file in path.rglob("*"):
        if file.name in ("zarr.json", ".zattrs", ".zarray", ".zgroup"):
            file.write_text('{"zarr_format": ')


def broken_list(path: Path) -> None:
    change_attributes(path, {"multiscales": [{"axes": []}], "image-label": {}})


def lost_level(path: Path) -> None:
    scales = [{"datasets": [{"path": "no/such/level"}]}]
    change_attributes(path, {"multiscales": scales, "image-label": {}})


def change_attributes(path: Path, attributes: dict[str, Any]) -> None:
    if (path / ".zattrs").is_file():
        (path / ".zattrs").write_text(json.dumps(attributes))
        return
    record = json.loads((path / "zarr.json").read_text())
    record["attributes"] = {"ome": attributes}
    (path / "zarr.json").write_text(json.dumps(record))


def broken_chunks(path: Path) -> None:
    for file in path.rglob("*"):
        if file.is_file() and not file.name.startswith(".z") and file.name != "zarr.json":
            file.write_bytes(b"no chunk")


def no_metadata(path: Path) -> None:
    for file in [*path.rglob("zarr.json"), *path.rglob(".z*")]:
        file.unlink()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (broken_metadata, "cannot be decoded"),
        (broken_list, "cannot be decoded"),
        (lost_level, "cannot be decoded"),
        (broken_chunks, "cannot be decoded"),
        (no_metadata, "found a folder"),
    ],
)
def test_damage_is_told_alike_whole_and_in_windows(
    damage: Any, words: str, zarr_format: int, tmp_path: Path
) -> None:
    files = label_files(write_zarr(tmp_path / "m.zarr", some_objects(), zarr_format=zarr_format))
    damage(tmp_path / "m.zarr")
    with pytest.raises(UnreadableFileError, match=words) as whole:
        load_masks(files, ONE_CLASS, shape=SHAPE)
    height, width = SHAPE
    with pytest.raises(UnreadableFileError, match=words) as in_windows:
        open_masks(files, ONE_CLASS, SHAPE).labels.read((0, 0, height, width))
    assert str(whole.value) == str(in_windows.value)
    if damage is not broken_chunks:
        assert reference_shape(None, [files]) is None


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_several_planes_are_refused(zarr_format: int, tmp_path: Path) -> None:
    planes = np.stack([some_objects()] * 3)
    path = write_zarr(tmp_path / "m.zarr", planes, kind="array", zarr_format=zarr_format)
    with pytest.raises(UnreadableFileError, match="with one plane"):
        load_masks(label_files(path), ONE_CLASS, shape=SHAPE)


# --- found in cohorts -------------------------------------------------------------------------


def test_a_description_finds_them(tmp_path: Path) -> None:
    (tmp_path / "cohort.toml").write_text(DESCRIPTION)
    write_svs(tmp_path / "images" / "p_1.svs", np.zeros((*SHAPE, 3), np.uint8))
    reference = write_zarr(tmp_path / "reference" / "p_1.ome.zarr", some_objects())
    (tmp_path / "reference" / "p_1.csv").write_text("id,class\n5,a\n7,b\n9,a\n")
    per_class = [
        write_zarr(tmp_path / "teams" / "one" / name / "p_1.ZARR", some_objects(), zarr_format=3)
        for name in SCHEME.names
    ]
    cohort = open_cohort(tmp_path)
    assert cohort.findings == ()
    (region,) = cohort.regions
    assert region.reference is not None
    # The table beside it decides figures as well: whoever looks for changes must know of it.
    assert region.reference.all_paths == (reference, tmp_path / "reference" / "p_1.csv")
    files = cohort.predictions["one", "p_1"][Source.LABELS]
    assert files.all_paths == tuple(per_class)
    loaded = load_masks(region.reference, cohort.scheme, shape=None)
    assert loaded.labels.class_names_of_objects().tolist() == ["a", "b", "a"]


def test_the_challenges_folders_may_have_them(tmp_path: Path) -> None:
    annotations = tmp_path / "MoNuSAC Testing Data and Annotations"
    for region in ("p_1", "p_2"):
        write_svs(annotations / "p" / f"{region}.svs", np.zeros((*SHAPE, 3), np.uint8))
        ending = ".ome.zarr" if region == "p_1" else ".zarr"
        write_zarr(annotations / "p" / f"{region}{ending}", some_objects())
        (annotations / "p" / f"{region}.csv").write_text("id,class\n5,Epithelial\n")
        write_zarr(tmp_path / "Teams" / "one" / f"{region}{ending}", some_objects())
    cohort = open_cohort(tmp_path)
    assert cohort.findings == ()
    assert [region.name for region in cohort.regions] == ["p_1", "p_2"]
    for region in cohort.regions:
        assert region.reference is not None
        assert region.reference.source == Source.LABELS
        assert set(cohort.predictions["one", region.name]) == {Source.LABELS}


def test_one_that_belongs_to_nothing_is_told_once(tmp_path: Path) -> None:
    annotations = tmp_path / "MoNuSAC Testing Data and Annotations"
    write_svs(annotations / "p_1.svs", np.zeros((*SHAPE, 3), np.uint8))
    write_zarr(tmp_path / "Teams" / "one" / "other.zarr" / "inner.zarr", some_objects())
    (tmp_path / "Teams" / "one" / "p_1.geojson").write_text("[]")
    extra = [f for f in open_cohort(tmp_path).findings if f.kind is FindingKind.EXTRA]
    assert [f.message for f in extra] == [
        "labels files for 1 region that this cohort does not have, not used: other"
    ]


# --- fingerprints -----------------------------------------------------------------------------


def fingerprint(path: Path) -> str:
    ((name, found),) = file_fingerprints([path], path.parent).items()
    assert name == path.name
    return found


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_any_change_inside_changes_the_fingerprint(zarr_format: int, tmp_path: Path) -> None:
    path = write_zarr(tmp_path / "m.zarr", some_objects(), zarr_format=zarr_format)
    seen = [fingerprint(path)]
    assert fingerprint(path) == seen[0]
    assert seen[0].startswith("sha256-of-names-sizes-and-times:")
    chunk = max(file for file in path.rglob("*") if file.is_file())

    def changed() -> None:
        now = fingerprint(path)
        assert now not in seen
        seen.append(now)

    status = chunk.stat()
    os.utime(chunk, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    changed()
    chunk.write_bytes(chunk.read_bytes() + b"x")
    os.utime(chunk, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    changed()
    chunk.rename(chunk.with_name("renamed"))
    changed()
    chunk.with_name("renamed").unlink()
    changed()


def test_links_and_very_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.zarr"
    path.mkdir()
    for name in "abcd":
        (path / name).write_bytes(b"x")
    before = fingerprint(path)
    monkeypatch.setattr(fingerprints, "_MOST_FILES", 3)
    cut = fingerprint(path)
    assert cut != before
    (path / "d").write_bytes(b"more")
    assert fingerprint(path) == cut
    (path / "a-circle").symlink_to(path, target_is_directory=True)
    assert fingerprint(path) != cut


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_chunks_that_are_not_there_are_counted(zarr_format: int, tmp_path: Path) -> None:
    objects = two_objects(40, 40)
    objects[:, 20] = 3
    objects[20] = 4  # 9 chunks of 16 x 16 px, of which the corner at the end is empty
    one = ClassScheme(("cell",), ((255, 0, 0),), ambiguous=None)
    path = write_zarr(tmp_path / "m.zarr", objects, kind="array", zarr_format=zarr_format)
    chunks = [p for p in path.rglob("*") if p.is_file() and p.name not in (".zarray", ".zattrs")]
    chunks = [p for p in chunks if p.name != "zarr.json"]
    expected = 9 - len(chunks)
    for lost in (0, 1):
        findings = [
            f
            for found in (
                load_masks(label_files(path), one, shape=objects.shape).findings,
                open_masks(label_files(path), one, objects.shape).findings,
            )
            for f in found
            if f.kind is FindingKind.MISSING
        ]
        assert [f.count for f in findings] == ([expected + lost] * 2 if expected + lost else [])
        if findings:
            assert f"{expected + lost} of the 9 chunks" in findings[0].message
        chunks[0].unlink(missing_ok=True)


def test_what_is_written_here_has_all_its_chunks(tmp_path: Path) -> None:
    index = np.zeros((1100, 1100), np.int32)
    index[3:9, 3:9] = 1
    scheme = ClassScheme(("a", "b"), ((255, 0, 0), (0, 255, 0)), ambiguous=None)
    labels = LabelImage.from_array(index, "a", scheme.names)
    path = tmp_path / "m.ome.zarr"
    write_ome_zarr(path, Objects(labels, Side.PREDICTION, "r", "t", None, scheme, None))
    assert load_masks(label_files(path), scheme, shape=index.shape).findings == ()

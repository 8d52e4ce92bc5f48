from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.common.errors import LabelError, UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.labels.label_tiff import write_labels
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, MaskFiles
from napari_panoptic.values.labels import LabelImage
from tests.support.builders import label_files, two_objects, write_tiff

SHAPE = (12, 16)


def colours(count: int) -> tuple[tuple[int, int, int], ...]:
    return tuple((255, 0, n) for n in range(count))


def scheme_of(count: int) -> ClassScheme:
    return ClassScheme(tuple("ABCDEF"[:count]), colours(count), ambiguous=None)


def read(files: MaskFiles, scheme: ClassScheme = MONUSAC_CLASSES, **options: Any) -> LoadedMasks:
    options.setdefault("shape", SHAPE)
    return load_masks(files, scheme, region="R", team="T", **options)


def save(path: Path, array: NDArray[Any]) -> Path:
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".png":
        Image.fromarray(array).save(path)
    else:
        write_tiff(path, array)
    return path


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, dtype) for name in ("é.tif", "é.npy") for dtype in ("u1", "u2", "i4", "f4", "f8")),
        *(("a.png", dtype) for dtype in ("u1", "u2")),
        ("a.npy", "i8"),
        ("a.npy", "u8"),
    ],
)
def test_one_file_per_class(tmp_path: Path, name: str, dtype: str) -> None:
    path = save(tmp_path / name, two_objects().astype(dtype))
    loaded = read(label_files(Lymphocyte=path))
    np.testing.assert_array_equal(loaded.labels.id_image(), two_objects())
    assert loaded.labels.class_index.tolist() == [2, 2]
    assert (loaded.findings, loaded.ambiguous) == ((), None)


def test_palette_images_keep_their_indices(tmp_path: Path) -> None:
    image = Image.fromarray(two_objects().astype(np.uint8), mode=None).convert("P")
    image.putpalette([0, 0, 0, 9, 9, 9, 200, 0, 0])
    image.save(tmp_path / "a.png")
    loaded = read(label_files(Epithelial=tmp_path / "a.png"))
    np.testing.assert_array_equal(loaded.labels.id_image(), two_objects())


def test_the_ambiguous_class_has_a_file_of_its_own(tmp_path: Path) -> None:
    area = np.zeros(SHAPE, np.uint8)
    area[3:5] = 255
    files = label_files(
        Epithelial=save(tmp_path / "e.tif", two_objects()),
        Ambiguous=save(tmp_path / "a.tif", area),
    )
    loaded = read(files)
    assert loaded.ambiguous is not None
    np.testing.assert_array_equal(loaded.ambiguous, area > 0)
    assert len(loaded.labels) == 2
    save(tmp_path / "a.tif", area * 0)
    assert read(files).ambiguous is None


@pytest.mark.parametrize("ending", ["csv", "json"])
@pytest.mark.parametrize("beside", [True, False])
def test_a_table_gives_the_classes(tmp_path: Path, ending: str, beside: bool) -> None:
    mask = two_objects()
    mask[0, 0], mask[0, 5] = 3, 4
    path = save(tmp_path / "a.tif", mask)
    classes = {1: "Macrophage", 2: "lymphocyte", 3: "Ambiguous", 9: "Epithelial"}
    table = (tmp_path if beside else tmp_path / "..") / f"a.{ending}"
    if ending == "json":
        table.write_text(json.dumps(classes))
    else:
        rows = "".join(f"\n{id_};{name};x" for id_, name in classes.items())
        table.write_text(f"\ufeffID;Class;more{rows}\n", encoding="utf-8")
    loaded = read(label_files(path) if beside else label_files(path, table))
    assert loaded.labels.ids.tolist() == [1, 2]
    assert loaded.labels.class_index.tolist() == [4, 2]
    assert loaded.ambiguous is not None
    assert np.argwhere(loaded.ambiguous).tolist() == [[0, 0]]
    (finding,) = loaded.findings
    assert (finding.kind, finding.object_ids) == (FindingKind.UNKNOWN_CLASS, (4,))
    assert (finding.region, finding.team) == ("R", "T")


def test_class_numbers_in_a_table(tmp_path: Path) -> None:
    path = save(tmp_path / "a.tif", two_objects())
    (tmp_path / "a.csv").write_text("id,class\n1,1\n2,4\n")
    assert read(label_files(path)).labels.class_index.tolist() == [1, 4]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "1,Epithelial\n"),
        ("a.csv", "id,class\nfirst,Epithelial\n"),
        ("a.json", "[1, 2]"),
        ("a.json", '{"1": '),
        ("a.json", '{"one": "Epithelial"}'),
        ("a.csv", "id,class\n1\n\n2,Epithelial,\n".replace("1\n", "x\n")),
    ],
)
def test_tables_that_are_none(tmp_path: Path, name: str, text: str) -> None:
    path = save(tmp_path / "a.tif", two_objects())
    (tmp_path / name).write_text(text)
    with pytest.raises(UnreadableFileError, match="table of classes") as caught:
        read(label_files(path))
    assert caught.value.path == tmp_path / name


def test_without_a_table(tmp_path: Path) -> None:
    path = save(tmp_path / "a.tif", two_objects())
    with pytest.raises(UnreadableFileError, match=r"a\.csv .* or a\.json"):
        read(label_files(path))
    # With a single class there is nothing to tell.
    assert read(label_files(path), scheme_of(1)).labels.class_index.tolist() == [1, 1]
    (tmp_path / "b.csv").write_text("id,class\n")
    with pytest.raises(UnreadableFileError, match="only a table"):
        read(label_files(tmp_path / "b.csv"))


def conic(first_class: int = 3, second_class: int = 6) -> NDArray[np.int32]:
    ids = two_objects()
    classes = np.where(ids == 1, first_class, 0) + np.where(ids == 2, second_class, 0)
    return np.stack([ids, classes.astype(np.int32)], axis=-1)


@pytest.mark.parametrize("name", ["a.npy", "a.tif"])
@pytest.mark.parametrize("channels_first", [False, True])
def test_ids_and_class_numbers(tmp_path: Path, name: str, channels_first: bool) -> None:
    array = conic()
    array[6, 8, 1] = 5
    path = save(tmp_path / name, np.moveaxis(array, -1, 0) if channels_first else array)
    loaded = read(label_files(path), scheme_of(6))
    np.testing.assert_array_equal(loaded.labels.id_image(), two_objects())
    assert loaded.labels.class_index.tolist() == [3, 6]
    finding, order = loaded.findings
    assert (finding.kind, finding.object_ids) == (FindingKind.FALLBACK, (2,))
    assert order.kind is FindingKind.CLASS_ORDER


@pytest.mark.parametrize(("first_class", "taken"), [(1, "ids and class numbers"), (0, "ids per")])
def test_the_meaning_of_two_channels_is_reported_if_it_is_a_guess(
    tmp_path: Path, first_class: int, taken: str
) -> None:
    path = save(tmp_path / "a.npy", conic(first_class, 2))
    finding = read(label_files(path), scheme_of(2)).findings[0]
    assert finding.kind is FindingKind.FALLBACK
    assert f"two channels were read as {taken}" in finding.message
    assert "save one image per class" in finding.message


def test_class_numbers_that_do_not_exist(tmp_path: Path) -> None:
    loaded = read(label_files(save(tmp_path / "a.npy", conic(0, 9))), scheme_of(6))
    assert len(loaded.labels) == 0
    assert {f.class_name: f.object_ids for f in loaded.findings} == {"0": (1,), "9": (2,)}


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("classes", [1, 2, 5])
def test_a_channel_per_class(tmp_path: Path, classes: int, background: bool) -> None:
    channels = np.zeros((*SHAPE, classes + background), np.float64)
    channels[..., 0] = np.where(two_objects() == 1, 7, 0)
    channels[..., classes - 1] += np.where(two_objects() == 2, 8, 0)
    if background:
        channels[..., -1] = (channels[..., :-1] == 0).all(axis=-1)
    if channels.shape[2] == 1:
        (tmp_path / "a.csv").write_text("id,class\n7,A\n8,A\n")
    loaded = read(label_files(save(tmp_path / "a.npy", channels)), scheme_of(classes))
    assert loaded.labels.ids.tolist() == [7, 8]
    assert loaded.labels.class_index.tolist() == [1, classes]


def test_two_channels_of_two_classes_or_of_class_numbers(tmp_path: Path) -> None:
    numbers = read(label_files(save(tmp_path / "a.npy", conic(1, 2))), scheme_of(2))
    assert numbers.labels.class_index.tolist() == [1, 2]
    per_class = np.stack([two_objects(), np.fliplr(two_objects())], axis=-1)
    assert len(read(label_files(save(tmp_path / "b.npy", per_class)), scheme_of(2)).labels) == 4


@pytest.mark.parametrize("shape", [(12, 16, 9), (12, 16, 3, 4), (12,)])
def test_arrays_of_no_known_form(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = save(tmp_path / "a.npy", np.zeros(shape, np.uint8))
    with pytest.raises(UnreadableFileError):
        read(label_files(path))


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableFileError, match="pickled Python objects"):
        read(label_files(Epithelial=path))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (two_objects().T, "width and height are swapped"),
        (two_objects(5, 5), "found 5 x 5 px"),
        (two_objects() - 5, "negative numbers"),
        (two_objects() * 0.3, "values that are not whole numbers"),
    ],
)
def test_what_is_no_label_image(tmp_path: Path, array: NDArray[Any], words: str) -> None:
    path = save(tmp_path / "a.npy", array)
    with pytest.raises(UnreadableFileError, match=words):
        read(label_files(Epithelial=path))
    with pytest.raises(UnreadableFileError, match=words):
        read(label_files(path), scheme_of(1))


def test_colours_are_no_labels(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", np.zeros((*SHAPE, 3), np.uint8))
    with pytest.raises(UnreadableFileError, match="must be 2-D"):
        read(label_files(Epithelial=path))
    with pytest.raises(UnreadableFileError, match="must be 2-D"):
        read(label_files(Ambiguous=path))


def test_binary_images_become_their_components(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", (two_objects() > 0).astype(np.uint8) * np.uint8(255))
    loaded = read(label_files(Epithelial=path))
    assert len(loaded.labels) == 2
    assert [f.kind for f in loaded.findings] == [FindingKind.FALLBACK]


@pytest.mark.parametrize("id_", [2**31, 2**32 + 5, 2**40])
def test_huge_ids_are_kept(tmp_path: Path, id_: int) -> None:
    dtype = np.uint32 if id_ < 2**32 else np.int64
    huge = two_objects().astype(dtype)
    huge[huge == 2] = id_
    path = save(tmp_path / "a.npy", huge)
    (tmp_path / "a.json").write_text(json.dumps({"1": "Epithelial", str(id_): "Macrophage"}))
    by_class = save(tmp_path / "b.npy", huge)
    for files, classes in ((label_files(path), [1, 4]), (label_files(Macrophage=by_class), [4, 4])):
        loaded = read(files)
        assert not loaded.findings
        labels = loaded.labels
        assert (labels.ids.tolist(), labels.class_index.tolist()) == ([1, id_], classes)
        assert labels.original_ids.tolist() == [1, id_]
        assert int(labels.class_masks["Macrophage"].max()) == id_


def test_no_file_at_all(tmp_path: Path) -> None:
    assert len(read(label_files()).labels) == 0
    with pytest.raises(UnreadableFileError, match="size"):
        read(label_files(), shape=None)
    path = save(tmp_path / "a.tif", two_objects())
    assert read(label_files(Epithelial=path), shape=None).labels.shape == SHAPE


@pytest.mark.parametrize(
    ("highest", "dtype"), [(2, np.uint16), (65_535, np.uint16), (65_536, np.uint32)]
)
def test_written_labels_are_read_again(tmp_path: Path, highest: int, dtype: type) -> None:
    labels = two_objects().astype(np.int64)
    labels[labels == 2] = highest
    path = tmp_path / "ü.tif"
    write_labels(path, labels)
    loaded = read(label_files(path), scheme_of(1))
    np.testing.assert_array_equal(loaded.labels.id_image(), labels)
    assert list(tmp_path.iterdir()) == [path]
    from tifffile import imread

    assert imread(path).dtype == dtype


def test_what_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    write_labels(path, two_objects())
    before = path.read_bytes()
    with pytest.raises(LabelError):
        write_labels(path, np.zeros((2, 2, 2), int))
    with pytest.raises(LabelError):
        write_labels(path, np.array([[-1]]))
    assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError):
        write_labels(tmp_path / "no" / "a.tif", two_objects())


@pytest.mark.parametrize("seed", range(6))
def test_a_mask_per_class_gives_the_same_objects(tmp_path: Path, seed: int) -> None:
    """Distributed over masks of single classes and laid over each other: slow and obvious."""
    rng = np.random.default_rng(seed)
    ids = np.append(0, np.sort(rng.choice(60_000, 12, replace=False) + 1))
    labels = ids[rng.integers(0, len(ids), SHAPE)].astype(np.uint16)
    known = [*MONUSAC_CLASSES.names, str(MONUSAC_CLASSES.ambiguous), "Unknown"]
    classes = {int(id_): str(rng.choice(known)) for id_ in ids[1:] if rng.random() < 0.9}
    path = save(tmp_path / "a.tif", labels)
    (tmp_path / "a.json").write_text(json.dumps(classes), encoding="utf-8")
    masks = {
        name: np.where(np.isin(labels, [i for i in classes if classes[i] == name]), labels, 0)
        for name in known
    }
    scored = {name: masks[name].astype(np.int32) for name in known[:-2] if masks[name].any()}
    wanted = LabelImage.from_class_masks(scored, MONUSAC_CLASSES.names, SHAPE)
    loaded = read(label_files(**{"": path}))
    found = loaded.labels
    np.testing.assert_array_equal(found.index, wanted.index)
    assert found.index.dtype == wanted.index.dtype
    for name in ("ids", "class_index", "original_ids"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
        assert getattr(found, name).dtype == getattr(wanted, name).dtype
    assert (found.vanished, found.overlapping_px) == (wanted.vanished, wanted.overlapping_px)
    assert list(found.class_masks) == list(wanted.class_masks)
    for name, mask in wanted.class_masks.items():
        np.testing.assert_array_equal(found.class_masks[name], mask)
        assert found.class_masks[name].dtype == mask.dtype
    if loaded.ambiguous is None:
        assert not masks[known[-2]].any()
    else:
        np.testing.assert_array_equal(loaded.ambiguous, masks[known[-2]] > 0)

"""Objects written in the format of their files are read as before, classes included."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.io.cohorts.comparison import Labels, LabelsComparison
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.own_format import write_like
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side

SIZE = (40, 40)
COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


def scheme(**aliases: str) -> ClassScheme:
    names = ("Epithelial", "Lymphocyte", "Stroma")
    return ClassScheme(names, COLOURS, aliases=aliases)


def square(x: int, y: int) -> list[list[int]]:
    return [[x, y], [x + 8, y], [x + 8, y + 8], [x, y + 8]]


@pytest.mark.parametrize(
    ("table", "aliases"),
    [
        (None, {}),
        ({"1": ["Lymphocyte", [0, 0, 0]], "2": ["Epithelial", [0, 0, 0]]}, {}),
        ({"4": ["lymph", [0, 0, 0]], "7": ["Epithelial", [0, 0, 0]]}, {"lymph": "Lymphocyte"}),
        (None, {"1": "Lymphocyte", "2": "Epithelial"}),
        (None, {"5": "Lymphocyte"}),
    ],
)
@pytest.mark.parametrize("is_above", [False, True])
def test_class_numbers_of_hovernet_mean_the_same_again(
    tmp_path: Path, table: dict[str, object] | None, aliases: dict[str, str], is_above: bool
) -> None:
    """They were written as positions in the cohort: classes were swapped."""
    classes, root = scheme(**aliases), tmp_path / "cohort"
    files = root / "gt" / "r1.json"
    files.parent.mkdir(parents=True)
    if table is not None:
        place = root if is_above else files.parent
        (place / "type_info.json").write_text(json.dumps(table))
    numbers = [int(n) for n in (table or aliases or {"1": "", "2": ""}) if n.isdecimal()]
    nuclei = {
        str(k): {"contour": square(12 * k - 10, 4), "type": number}
        for k, number in enumerate(numbers, start=1)
    }
    files.write_text(json.dumps({"mag": None, "nuc": nuclei}))
    source = MaskFiles(Source.HOVERNET, {"": (files,)})
    before = load_masks(source, classes, shape=SIZE).labels
    objects = Objects(before, Side.REFERENCE, "r1", "", None, classes, None, original=source)
    written = write_like(source, root, tmp_path / "out", objects)
    after = load_masks(written, classes, shape=SIZE).labels  # as the check after `correct` reads
    assert after.class_names_of_objects().tolist() == before.class_names_of_objects().tolist()
    assert np.array_equal(after.id_image(), before.id_image())
    files.write_bytes(written.object_paths[0].read_bytes())  # laid over the cohort
    again = load_masks(source, classes, shape=SIZE).labels
    assert again.class_names_of_objects().tolist() == before.class_names_of_objects().tolist()


def test_a_class_without_a_number_in_the_table_is_written_by_its_name(tmp_path: Path) -> None:
    root, classes = tmp_path / "cohort", scheme()
    root.mkdir()
    (root / "type_info.json").write_text('{"1": ["Lymphocyte", [0, 0, 0]]}')
    (root / "r1.json").write_text(json.dumps({"nuc": {"1": {"contour": square(2, 2), "type": 1}}}))
    source = MaskFiles(Source.HOVERNET, {"": (root / "r1.json",)})
    labels = LabelImage.from_array(
        load_masks(source, classes, shape=SIZE).labels.id_image(), {1: "Stroma"}, classes.names
    )
    objects = Objects(labels, Side.REFERENCE, "r1", "", None, classes, None)
    written = write_like(source, root, tmp_path / "out", objects)
    found = load_masks(written, classes, shape=SIZE).labels
    assert found.class_names_of_objects().tolist() == ["Stroma"]


@pytest.mark.parametrize("name", ["study", "Epithelial study"])
def test_a_folder_named_after_a_class(tmp_path: Path, name: str) -> None:
    """The class was replaced in the name of the cohort's folder, too: `ValueError`."""
    root = tmp_path / name
    path = root / "annotation" / "Epithelial" / "r1.tif"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    image = np.zeros((32, 32), np.int32)
    image[2:9, 2:9], image[12:20, 12:20] = 1, 2
    classes = scheme()
    labels = LabelImage.from_array(image, {1: "Epithelial", 2: "Lymphocyte"}, classes.names)
    objects = Objects(labels, Side.REFERENCE, "r1", "", None, classes, None)
    files = MaskFiles(Source.LABELS, {"Epithelial": (path,)})
    written = write_like(files, root, tmp_path / "out", objects)
    assert [own[0].relative_to(tmp_path / "out").parts[1] for own in written.paths.values()] == [
        "Epithelial",
        "Lymphocyte",
    ]


@pytest.mark.parametrize("first", [2**31 + 5, 2**32 + 5, 2**53 + 1])
def test_classes_of_large_ids_are_kept_in_a_comparison(tmp_path: Path, first: int) -> None:
    """Above 2^32 - 1 the image was renumbered, but not the table of classes."""
    ids = np.zeros((64, 64), np.int64)
    ids[5:20, 5:20], ids[30:50, 30:50] = first, first + 7
    side = Labels(ids, {first: "Epithelial", first + 7: "Lymphocyte"})
    LabelsComparison(side, {"m": side}).write(tmp_path / "c")
    cohort = open_cohort(tmp_path / "c")
    reference = cohort.regions[0].reference
    assert reference is not None
    found = load_masks(reference, cohort.scheme, shape=(64, 64)).labels
    assert found.class_names_of_objects().tolist() == ["Epithelial", "Lymphocyte"]


class Lazy:
    """An array that is read by slices, without limits of its values."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim

    def __getitem__(self, where: slice) -> np.ndarray:
        found: np.ndarray = self._array[where]
        return found


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
@pytest.mark.parametrize("highest", [1, 60_000])
def test_a_lazy_image_is_scaled_by_the_range_of_the_whole(
    tmp_path: Path, dtype: type, highest: int
) -> None:
    """Each strip of 256 rows was scaled by its own range: bands."""
    import tifffile

    image = np.tile(np.linspace(0, highest, 768).astype(dtype)[:, None], (1, 300))
    labels = np.zeros(image.shape, np.int32)
    labels[5:20, 5:20] = 1
    written = []
    for name, each in (("held", image), ("lazy", Lazy(image))):
        side = Labels(labels)
        LabelsComparison(side, {"m": side}, image=each).write(tmp_path / name)
        written.append(tifffile.imread(tmp_path / name / "image" / "pair.tif"))
    assert np.array_equal(*written)

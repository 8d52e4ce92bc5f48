"""Every format that can be written and read returns what was written."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from napari_panoptic.common.errors import UnwritableFileError
from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.registry import form_of, known_forms, load_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage, Scores
from napari_panoptic.values.vocabulary import Side
from tests.support.examples import seeds
from tests.support.paths import REPOSITORY

FORMATS = (REPOSITORY / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
LINES = {
    written: (source, pattern)
    for written, source, pattern in re.findall(
        r'^\| `([\w-]+)` \| `predictions\.([\w-]+) = "([^"]+)"` \|$', FORMATS, re.M
    )
}
"""Written format -> the format it is read as, and its files, as the page states them."""
SCORED = {"labels", "geojson", "annotation-store", "hovernet", "coco-instances", "ome-zarr"}
RENUMBERED = {"imagescope", "geojson", "annotation-store"}
FILLED = {"hovernet"}
"""Formats without holes and with one part per object."""
LARGEST = {"hovernet": 10**9 - 1, "imagej-roi": 10**9 - 1, "coco-panoptic": 2**24 - 1}
"""The highest id of formats that hold fewer than `LARGEST_ID`."""
LARGEST_ID = 2**31 - 1
REFUSING = {"coco-panoptic", "pannuke", "conic"}
"""Formats that are not written with higher ids than they hold; others are renumbered."""
PIECES = 1000
"""Room for the pieces of excluded areas, whose ids follow those of the objects."""
ALIASES = {"Tumour": "Epithelial", "1": "Lymphocyte", "2": "Epithelial"}


def objects(seed: int, scheme: ClassScheme, *, filled: bool, highest: int) -> Objects:
    """Draw blobs with holes, several parts and common edges, or boxes; and an excluded area."""
    generator = np.random.default_rng(seed)
    height, width = generator.integers(24, 70, 2).tolist()
    if filled:
        index = np.zeros((height, width), int)
        for k, (y, x) in enumerate(np.ndindex(height // 11, width // 11), start=1):
            h, w = generator.integers(1, 11, 2)
            index[11 * y : 11 * y + h, 11 * x : 11 * x + w] = k
        index[-3:] = 0
        area = np.zeros(index.shape, np.bool_)
        area[-2:, : int(generator.integers(1, 9))] = True
    else:
        owner = generator.integers(1, 6, (height // 9 + 1, width // 9 + 1))
        cells = np.kron(owner, np.ones((9, 9), int))[:height, :width]
        smooth = ndimage.gaussian_filter(generator.random((height, width)), 1.2)
        index = np.where(smooth > 0.5, cells, 0)
        area = (ndimage.gaussian_filter(generator.random(index.shape), 2) > 0.52) & (index == 0)
    numbers = np.unique(index[index > 0])
    ids = np.sort(generator.choice(np.arange(1, 50), len(numbers), replace=False)).astype(np.int64)
    ids[-1:] = highest
    image = np.zeros(index.shape, np.int64)
    for number, id_ in zip(numbers, ids, strict=True):
        image[index == number] = id_
    names = {int(id_): str(generator.choice(scheme.names)) for id_ in ids}
    labels = LabelImage.from_array(image, names, scheme.names)
    scores = np.round(generator.random(len(ids)), 3)
    scores[::3] = math.nan
    labels = replace(labels, known_scores=Scores(labels.ids, scores))
    return Objects(labels, Side.REFERENCE, "r1", "", area, scheme, 0.25)


def returned(name: str, folder: Path, written: Objects) -> LoadedMasks:
    """Write objects as `convert` does, and read them as the page states."""
    form, (source, pattern) = form_of(name), LINES[name]
    assert form is not None
    if form.write_all is not None:
        form.write_all(folder, 1, iter([written]))
    else:
        assert form.write is not None
        form.write(folder / f"r1{form.endings[0]}", written)
    path = folder / pattern.replace("{region}", "r1")
    read = form_of(source)
    assert read is not None
    files = MaskFiles(Source(source), {"": (path,)})
    if read.items is not None:
        (item,) = read.items(path)
        files = replace(files, paths={"": (path, *item.paths)}, item=item.key)
    return load_masks(files, written.scheme, shape=written.labels.shape)


def test_the_page_lists_every_format_that_is_written() -> None:
    forms = known_forms().values()
    assert LINES.keys() == {form.name for form in forms if form.write or form.write_all}


@pytest.mark.parametrize("aliases", [{}, ALIASES])
@pytest.mark.parametrize("seed", seeds(12))
@pytest.mark.parametrize("name", sorted(LINES))
def test_what_is_written_comes_back(
    tmp_path: Path, name: str, seed: int, aliases: dict[str, str]
) -> None:
    scheme = replace(MONUSAC_CLASSES, aliases=aliases)
    highest = 50 if seed % 2 else LARGEST.get(name, LARGEST_ID) - PIECES
    written = objects(seed, scheme, filled=name in FILLED, highest=highest)
    loaded = returned(name, tmp_path, written)
    ours, theirs = written.labels, loaded.labels
    ids = np.arange(1, len(ours) + 1) if name in RENUMBERED else ours.ids
    assert theirs.ids.tolist() == ids.tolist()
    assert np.array_equal(theirs.index, ours.index)
    assert theirs.class_names_of_objects().tolist() == ours.class_names_of_objects().tolist()
    if name in SCORED:
        np.testing.assert_array_equal(theirs.scores, ours.scores)
    area = np.zeros(ours.shape, np.bool_) if loaded.ambiguous is None else loaded.ambiguous
    assert np.array_equal(area, written.ambiguous)


@pytest.mark.parametrize("highest", [2**31, 2**32 + 5, 2**62, 2**63 - 1])
@pytest.mark.parametrize("name", sorted(LINES))
def test_ids_up_to_2_63_are_kept_or_renumbered_or_refused(
    tmp_path: Path, name: str, highest: int
) -> None:
    """The objects, their order and their classes are the same in any case."""
    written = objects(1, MONUSAC_CLASSES, filled=name in FILLED, highest=highest)
    written = replace(written, ambiguous=None)
    if name in REFUSING:
        with pytest.raises(UnwritableFileError, match="ids up to"):
            returned(name, tmp_path, written)
        return
    loaded = returned(name, tmp_path, written)
    ours, theirs = written.labels, loaded.labels
    assert np.array_equal(theirs.index, ours.index)
    assert theirs.class_names_of_objects().tolist() == ours.class_names_of_objects().tolist()
    assert theirs.ids.tolist() in (ours.ids.tolist(), [*range(1, len(ours) + 1)])


def test_a_class_without_a_number_is_not_written_to_conic(tmp_path: Path) -> None:
    (tmp_path / "type_info.json").write_text('{"1": ["Lymphocyte", [0, 0, 0]]}')
    written = objects(3, MONUSAC_CLASSES, filled=False, highest=50)
    with pytest.raises(UnwritableFileError, match="no number is read as"):
        returned("conic", tmp_path, written)


def test_classes_of_a_table_of_numbers_come_back(tmp_path: Path) -> None:
    (tmp_path / "type_info.json").write_text(json.dumps({"1": ["Stroma"], "2": ["Lymphocyte"]}))
    scheme = replace(MONUSAC_CLASSES, aliases={"Stroma": "Epithelial"})
    for name in sorted(LINES):
        if (form := form_of(name)) is not None and form.write is not None:
            written = objects(2, scheme, filled=name in FILLED, highest=2**20)
            path = tmp_path / f"r1{form.endings[0]}"
            form.write(path, written)
            files = MaskFiles(Source(LINES[name][0]), {"": (path,)})
            if form.items is not None:
                (item,) = form.items(path)
                files = replace(files, item=item.key)
            found = load_masks(files, scheme, shape=written.labels.shape).labels
            names = written.labels.class_names_of_objects().tolist()
            assert found.class_names_of_objects().tolist() == names

"""Files in other px than the image: swapped, scaled and moved, and the rules that say so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from napari_panoptic.common.errors import CohortError, UnreadableFileError
from napari_panoptic.io.cohorts.description import read_description
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.placing import placed_masks
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    Axes,
    MaskFiles,
    OutlineRules,
    Source,
)
from napari_panoptic.values.labels import LabelImage
from tests.support.builders import colour_mask, write_tiff
from tests.support.examples import examples

SWAPPED = OutlineRules(axes=Axes.SWAPPED)


def by_pixel(
    ids: NDArray[np.int64], rules: OutlineRules, shape: tuple[int, int]
) -> list[list[int]]:
    """Look each pixel of the image up in the file, one by one."""
    scale = rules.scale or 1.0
    image = []
    for y in range(shape[0]):
        row = []
        for x in range(shape[1]):
            at = [int((y + 0.5) / scale), int((x + 0.5) / scale)]
            at = at[::-1] if rules.is_swapped else at
            row.append(int(ids[min(at[0], ids.shape[0] - 1), min(at[1], ids.shape[1] - 1)]))
        image.append(row)
    return image


@seed(1)
@settings(max_examples=examples(40), derandomize=True, database=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([1.0, 2.0, 3.0, 0.5, 0.25]),
    st.booleans(),
    st.integers(0, 2**16),
)
def test_masks_have_the_pixels_that_the_rules_state(
    height: int, width: int, scale: float, is_swapped: bool, number: int
) -> None:
    ids = np.random.default_rng(number).integers(0, 6, (height, width))
    labels = LabelImage.from_array(ids, "Lymphocyte", MONUSAC_CLASSES.names)
    rules = OutlineRules(axes=Axes.SWAPPED if is_swapped else None, scale=scale)
    files = MaskFiles(Source.LABELS, {"": (Path("mask.tif"),)}, rules=rules)
    own = (width, height) if is_swapped else (height, width)
    shape = (max(1, round(own[0] * scale)), max(1, round(own[1] * scale)))
    placed = placed_masks(LoadedMasks(labels, ids > 3), files, shape)
    expected = np.array(by_pixel(ids, rules, shape))
    assert placed.labels.id_image().tolist() == expected.tolist()
    assert placed.ambiguous is not None
    assert placed.ambiguous.tolist() == (expected > 3).tolist()
    assert [lost.id for lost in placed.labels.vanished] == sorted(
        {*labels.ids.tolist()} - {*expected.ravel().tolist()}
    )


def test_masks_of_another_size_are_refused_and_colours_are_restored_in_place(
    tmp_path: Path,
) -> None:
    classes = np.zeros((6, 9), np.int64)
    classes[1:4, 2:4], classes[1:4, 5:8] = 1, 2
    path = write_tiff(tmp_path / "mask.tif", colour_mask(classes))
    files = MaskFiles(Source.COLOUR_CODED, {"": (path,)}, rules=SWAPPED)
    masks = load_masks(files, MONUSAC_CLASSES, shape=(9, 6))
    usual = load_masks(MaskFiles(Source.COLOUR_CODED, {"": (path,)}), MONUSAC_CLASSES, shape=(6, 9))
    assert masks.labels.index.tolist() == usual.labels.index.T.tolist()
    assert masks.restored is not None
    assert usual.restored is not None
    for name, mask in masks.labels.class_masks.items():
        assert mask.tolist() == usual.labels.class_masks[name].T.tolist()
    with pytest.raises(UnreadableFileError, match="must have the region"):
        load_masks(files, MONUSAC_CLASSES, shape=(6, 9))
    moved = MaskFiles(Source.COLOUR_CODED, {"": (path,)}, rules=OutlineRules(offset_xy=(1, 2)))
    with pytest.raises(UnreadableFileError, match="an offset cannot move"):
        load_masks(moved, MONUSAC_CLASSES, shape=(6, 9))


def test_outlines_are_placed_as_a_whole_and_in_windows(tmp_path: Path) -> None:
    square = [[[3, 1], [7, 1], [7, 2], [3, 2], [3, 1]]]
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": square},
        "properties": {"classification": "Lymphocyte"},
    }
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps([feature]))
    rules = OutlineRules(axes=Axes.SWAPPED, scale=2.0, offset_xy=(10.0, -5.0))
    files = MaskFiles(Source.GEOJSON, {"": (path,)}, rules=rules)
    expected = np.zeros((20, 30), np.int32)
    expected[1:9, 12:14] = 1  # x from 2 * 1 + 10, y from 2 * 3 - 5
    drawn = load_masks(files, MONUSAC_CLASSES, shape=(20, 30))
    assert drawn.labels.index.tolist() == expected.tolist()
    tiles = open_masks(files, MONUSAC_CLASSES, (20, 30))
    assert tiles.labels.read((0, 5, 20, 25)).tolist() == expected[:, 5:25].tolist()


def test_a_team_replaces_the_offset_of_all_teams() -> None:
    of_bounds, by_hand = OutlineRules(from_bounds=True), OutlineRules(offset_xy=(0.0, 0.0))
    assert not by_hand.completed(of_bounds).is_placed
    assert of_bounds.completed(by_hand).at_bounds((40, 30)).offset_xy == (40, 30)


@pytest.mark.parametrize(
    ("line", "place", "rules"),
    [
        ("predictions.scale = 2", "predictions", {"": OutlineRules(scale=2.0)}),
        (
            'predictions.axes = { A = "swapped" }\npredictions.offset = { a = [1, 2.5] }',
            "predictions",
            {"a": OutlineRules(axes=Axes.SWAPPED, offset_xy=(1.0, 2.5))},
        ),
        ('reference.axes = "swapped"', "reference", {"": SWAPPED}),
        (
            'predictions.offset = "slide-bounds"',
            "predictions",
            {"": OutlineRules(from_bounds=True)},
        ),
        (
            'predictions.axes = "yx"',
            'files.predictions.axes must be "as-stated" or "swapped"',
            None,
        ),
        ("predictions.scale = 0", "files.predictions.scale must be a number", None),
        ("predictions.scale = { a = true }", "files.predictions.scale.a must be a number", None),
        ("predictions.offset = [1]", "files.predictions.offset must be two numbers", None),
        ("reference.scale = { a = 2 }", "files.reference.scale must be one value", None),
        ("mpp = -1", "files.mpp must be a number", None),
    ],
)
def test_rules_are_read_or_refused(
    line: str, place: str, rules: dict[str, OutlineRules] | None, tmp_path: Path
) -> None:
    text = '[classes]\nA = [1, 2, 3]\n[files]\nreference.labels = "{region}.tif"\n'
    text += f'predictions.labels = "p/{{region}}.tif"\n{line}\n'
    if rules is None:
        with pytest.raises(CohortError, match=place):
            read_description(tmp_path / "cohort.toml", text)
    else:
        layout = read_description(tmp_path / "cohort.toml", text)
        assert getattr(layout, place).rules == rules

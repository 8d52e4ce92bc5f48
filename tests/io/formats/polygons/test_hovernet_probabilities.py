"""The probabilities of HoVer-Net (``type_prob``) are the scores of objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.hovernet import write_files
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, Source
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import Side
from tests.support.outlines import read_outlines

SHAPE = (40, 60)
SCHEME = ClassScheme(("a", "b"), ((255, 0, 0), (0, 255, 0)), ambiguous=None)


def nucleus(x: int, probability: Any, kind: int = 1, size: int = 5) -> dict[str, Any]:
    contour = [[x, 5], [x + size, 5], [x + size, 10], [x, 10]]
    return {"contour": contour, "type": kind, "type_prob": probability}


def file_of(folder: Path, nuclei: dict[str, dict[str, Any]]) -> MaskFiles:
    path = folder / "r.json"
    path.write_text(json.dumps({"mag": None, "nuc": nuclei}))
    return MaskFiles(Source.HOVERNET, {"": (path,)})


NUCLEI = {
    "3": nucleus(2, 0.9),
    "4": nucleus(10, 0.8, kind=7),  # of no known class: left out
    "6": nucleus(20, None),
    "9": nucleus(30, 0.25, kind=2),
}


def test_probabilities_are_kept_as_scores(tmp_path: Path) -> None:
    labels = load_masks(file_of(tmp_path, NUCLEI), SCHEME, shape=SHAPE).labels
    assert labels.ids.tolist() == [3, 6, 9]
    np.testing.assert_array_equal(labels.scores, [0.9, np.nan, 0.25])
    # They stay with their objects when others go.
    np.testing.assert_array_equal(
        labels.of_rows(
            np.array([False, False, True]), np.where(labels.index == 3, labels.index, 0)
        ).scores,
        [0.25],
    )


def test_covered_and_overlapping_objects_keep_theirs(tmp_path: Path) -> None:
    nuclei = {"1": nucleus(2, 0.1), "2": nucleus(2, 0.2), "3": nucleus(5, 0.3)}
    labels = load_masks(file_of(tmp_path, nuclei), SCHEME, shape=SHAPE).labels
    assert dict(zip(labels.ids.tolist(), labels.scores.tolist(), strict=True)) == {2: 0.2, 3: 0.3}
    assert labels.with_overlaps(Overlaps.KEEP).scores.tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("nuclei", [{}, {"1": nucleus(2, None)}, {"1": nucleus(2, "high")}])
def test_without_a_probability_there_is_no_score(nuclei: dict[str, Any], tmp_path: Path) -> None:
    labels = load_masks(file_of(tmp_path, nuclei), SCHEME, shape=SHAPE).labels
    assert np.isnan(labels.scores).all()
    assert len(labels.scores) == len(nuclei)


def test_keys_that_do_not_ascend(tmp_path: Path) -> None:
    nuclei = {"9": nucleus(2, 0.9), "3": nucleus(20, 0.3)}
    labels = load_masks(file_of(tmp_path, nuclei), SCHEME, shape=SHAPE).labels
    assert labels.ids.tolist() == [1, 2]
    assert labels.scores.tolist() == [0.9, 0.3]


def test_they_are_written_again(tmp_path: Path) -> None:
    labels = load_masks(file_of(tmp_path, NUCLEI), SCHEME, shape=SHAPE).labels
    objects = Objects(labels, Side.PREDICTION, "R", "T", None, SCHEME, None)
    write_files(tmp_path / "w.json", objects)
    written = json.loads((tmp_path / "w.json").read_text())["nuc"]
    assert {key: entry["type_prob"] for key, entry in written.items()} == {
        "3": 0.9,
        "6": None,
        "9": 0.25,
    }
    assert read_outlines(Source.HOVERNET, tmp_path / "w.json", SCHEME).scores is not None


def test_slides_have_them(tmp_path: Path) -> None:
    tiles = open_masks(file_of(tmp_path, NUCLEI), SCHEME, SHAPE).labels
    assert tiles.known_scores is not None
    np.testing.assert_array_equal(tiles.known_scores.of(tiles.ids), [0.9, np.nan, 0.25])

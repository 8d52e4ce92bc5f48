"""A named pipe in a folder that is a file format is reported, and nothing waits for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.values.cohort import ClassScheme
from tests.support.builders import label_files, noise, two_objects, write_svs
from tests.support.named_pipes import needs_pipes, not_waited_for, pipe_instead_of
from tests.support.zarr_stores import write_zarr

ONE_CLASS = ClassScheme(("cell",), ((255, 0, 0),), ambiguous=None)
DESCRIPTION = """
[classes]
cell = [255, 0, 0]

[files]
image = "{region}.svs"
reference.labels = "{region}.zarr"
predictions.labels = "teams/{team}/{region}.zarr"
"""


@needs_pipes
@pytest.mark.parametrize(
    ("zarr_format", "name"),
    [(2, ".zattrs"), (2, ".zgroup"), (2, "0/.zarray"), (3, "zarr.json"), (3, "0/zarr.json")],
)
def test_a_pipe_as_metadata_of_a_zarr_image(zarr_format: int, name: str, tmp_path: Path) -> None:
    objects = two_objects()
    path = write_zarr(tmp_path / "a.zarr", objects, zarr_format=zarr_format)
    pipe = pipe_instead_of(path / name)
    files = label_files(path)
    with not_waited_for(pipe):
        with pytest.raises(UnreadableFileError):
            load_masks(files, ONE_CLASS, shape=objects.shape)
        with pytest.raises(UnreadableFileError):
            open_masks(files, ONE_CLASS, objects.shape)
        assert file_fingerprints([path], tmp_path)


@needs_pipes
def test_a_pipe_as_png_of_coco_panoptic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cohort, objects = tmp_path / "cohort", two_objects()
    pixels = np.zeros((*objects.shape, 3), np.uint8)
    pixels[..., 0] = objects
    table = {
        "images": [{"id": 1, "file_name": "a_1.png", "width": 16, "height": 12}],
        "annotations": [
            {
                "image_id": 1,
                "file_name": "a_1.png",
                "segments_info": [{"id": n, "category_id": 1} for n in (1, 2)],
            }
        ],
        "categories": [{"id": 1, "name": "cell", "isthing": 1}],
    }
    for place in (cohort, cohort / "Teams" / "x"):
        (place / "panoptic").mkdir(parents=True)
        Image.fromarray(pixels).save(place / "panoptic" / "a_1.png")
        (place / "panoptic.json").write_text(json.dumps(table))
    (cohort / "images").mkdir()
    Image.fromarray(noise(*objects.shape)).save(cohort / "images" / "a_1.png")
    pipe = pipe_instead_of(cohort / "Teams" / "x" / "panoptic" / "a_1.png")
    with not_waited_for(pipe):
        main(["evaluate", str(cohort), "--output", str(tmp_path / "tables")])
    assert "found a pipe" in capsys.readouterr().err


@needs_pipes
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_pipe_among_the_chunks_is_reported(
    zarr_format: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort = tmp_path / "cohort"
    objects = two_objects().astype(np.uint16)
    for name in ("p_1", "p_2"):
        write_svs(cohort / f"{name}.svs", np.zeros((*objects.shape, 3), np.uint8))
        for place in (cohort, cohort / "teams" / "a"):
            write_zarr(place / f"{name}.zarr", objects, kind="array", zarr_format=zarr_format)
    (cohort / "cohort.toml").write_text(DESCRIPTION)
    chunk = "0.0" if zarr_format == 2 else "c/0/0"
    pipe = pipe_instead_of(cohort / "teams" / "a" / "p_1.zarr" / chunk)
    with not_waited_for(pipe):
        code = main(["evaluate", str(cohort), "--output", str(tmp_path / "tables")])
    assert code == 0
    assert "p_2" in (tmp_path / "tables" / "regions.csv").read_text()
    assert "found a pipe" in capsys.readouterr().err

"""A mask image for each nucleus, in the folders of the Data Science Bowl 2018."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, Source

SHAPE = (20, 30)
ONE_CLASS = ClassScheme(("cell",), ((255, 0, 0),), ambiguous="Ambiguous")
BOXES = [(2, 3, 9, 12), (11, 15, 18, 28), (1, 20, 4, 26)]
HASHES = ("07a9bf", "0e548d", "5b6ea9")


def mask(path: Path, *boxes: tuple[int, int, int, int], mode: str = "L") -> Path:
    image = np.zeros(SHAPE, np.uint8)
    for top, left, bottom, right in boxes:
        image[top:bottom, left:right] = 255
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).convert(mode).save(path)
    return path


def loaded(paths: dict[str, tuple[Path, ...]], scheme: ClassScheme = ONE_CLASS) -> LoadedMasks:
    return load_masks(MaskFiles(Source.NUCLEUS_MASKS, paths), scheme, shape=SHAPE)


@pytest.mark.parametrize("mode", ["L", "1", "RGB", "RGBA", "LA"])
def test_each_file_is_a_nucleus(mode: str, tmp_path: Path) -> None:
    pieces = [BOXES[:1], BOXES[1:]]  # the second nucleus has two pieces
    paths = tuple(
        mask(tmp_path / f"{name}.png", *of, mode=mode)
        for name, of in zip(HASHES[:2], pieces, strict=True)
    )
    masks = loaded({"": paths})
    image = masks.labels.id_image()
    assert (image == 1).sum() == 7 * 9
    assert (image == 2).sum() == 7 * 13 + 3 * 6
    assert masks.labels.class_names_of_objects().tolist() == ["cell", "cell"]
    assert not masks.findings
    assert reference_shape(None, [MaskFiles(Source.NUCLEUS_MASKS, {"": paths})]) == SHAPE


def test_shared_and_empty_masks_are_listed(tmp_path: Path) -> None:
    paths = (
        mask(tmp_path / "a.png", (0, 0, 5, 5)),
        mask(tmp_path / "b.png", (3, 3, 8, 8)),
        mask(tmp_path / "c.png"),
        mask(tmp_path / "d.png", (10, 10, 12, 12)),
    )
    masks = loaded({"": paths})
    assert masks.labels.ids.tolist() == [1, 2, 4]
    assert (masks.labels.id_image() == 1).sum() == 25 - 4
    found = {finding.kind: finding.object_ids for finding in masks.findings}
    assert found == {FindingKind.OVERLAPPING: (1,), FindingKind.VANISHED: (3,)}


def test_classes_of_folders_and_sizes(tmp_path: Path) -> None:
    scheme = ClassScheme(("A", "B"), ((255, 0, 0), (0, 255, 0)), ambiguous="Ambiguous")
    first, second, area = (
        mask(tmp_path / f"{name}.png", box) for name, box in zip(HASHES, BOXES, strict=True)
    )
    masks = loaded({"A": (first,), "B": (second,), "Ambiguous": (area,)}, scheme)
    assert masks.labels.class_names_of_objects().tolist() == ["A", "B"]
    assert masks.ambiguous is not None
    assert masks.ambiguous.sum() == 18
    with pytest.raises(UnreadableFileError, match="state no class"):
        loaded({"": (first,)}, scheme)
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(second)
    with pytest.raises(UnreadableFileError, match=r"20 x 30|30 x 20"):
        loaded({"": (first, second)})


@pytest.mark.parametrize("with_teams", [False, True])
def test_init_in_the_folders_of_the_data_science_bowl(
    with_teams: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    regions = ("00071198d059", "003cee89357d")
    for region in regions:
        folder = tmp_path / "stage1_train" / region
        (folder / "images").mkdir(parents=True)
        pixels = np.random.default_rng(0).integers(0, 255, (*SHAPE, 4), np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{region}.png")
        for name, box in zip(HASHES, BOXES, strict=True):
            mask(folder / "masks" / f"{region[:4]}{name}.png", box)
            for team in ("one", "two") if with_teams else ():
                mask(tmp_path / team / region / f"{region[:4]}{name}.png", box)
        if not with_teams:
            mask(tmp_path / "cellpose" / f"{region}_cp_masks.png", *BOXES)
    assert main(["init", str(tmp_path)]) == 0, capsys.readouterr().err
    assert "format nucleus-masks" in capsys.readouterr().out
    cohort = open_cohort(tmp_path)
    assert {region.name for region in cohort.regions} == set(regions)
    assert all(region.image and region.reference for region in cohort.regions)
    assert cohort.team_names == (("one", "two") if with_teams else ("cellpose",))
    assert not cohort.findings
    out = tmp_path.with_name(f"{tmp_path.name}_out")
    assert main(["evaluate", str(tmp_path), "-o", str(out)]) == 0
    assert ",1.0" in (out / "teams.csv").read_text()

"""Files have limits of size, which are stated, and no file beyond them is read."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_panoptic.common.errors import CohortError, PanopticError, UnreadableFileError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.class_tables import read_class_table
from napari_panoptic.io.formats.labels.arrays import array_items
from napari_panoptic.io.formats.labels.coco_panoptic import panoptic_items
from napari_panoptic.io.formats.labels.matlab import mat_variables
from napari_panoptic.values.cohort import MONUSAC_CLASSES, Source
from tests.support.builders import annotation_xml, square, write_mat
from tests.support.outlines import read_outlines

HUGE = 2**31


def grown(path: Path, start: bytes = b"") -> Path:
    """Write a file whose rest, up to 2 GiB, takes no room on the disk."""
    path.write_bytes(start)
    with path.open("r+b") as file:
        file.truncate(HUGE)
    return path


def class_table(name: str) -> Callable[[Path], Any]:
    return lambda root: read_class_table(grown(root / name, b"id,class\n1,Epithelial\n"), SCHEME)


def annotation(start: bytes) -> Callable[[Path], Any]:
    return lambda root: read_outlines(Source.IMAGESCOPE, grown(root / "a.xml", start), SCHEME)


def type_info(root: Path) -> Any:
    grown(root / "type_info.json", b"{")
    (root / "a.json").write_text('{"mag": null, "nuc": {}}')
    return read_outlines(Source.HOVERNET, root / "a.json", SCHEME)


def team_of_coco(root: Path) -> Any:
    return list(panoptic_items(grown(root / "panoptic.json", b"{")))


def names_of_regions(root: Path) -> Any:
    np.save(root / "masks.npy", np.zeros((2, 4, 4, 6), np.uint8))
    grown(root / "regions.csv", b"region\na\nb\n")
    return list(array_items(root / "masks.npy"))


SCHEME = MONUSAC_CLASSES


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(class_table("a.csv"), id="class CSV"),
        pytest.param(class_table("a.json"), id="class JSON"),
        pytest.param(annotation(b""), id="XML that is no text"),
        pytest.param(type_info, id="type_info.json"),
        pytest.param(team_of_coco, id="COCO JSON"),
        pytest.param(names_of_regions, id="regions.csv"),
    ],
)
def test_a_limit_is_stated_and_enforced_before_reading(
    read: Callable[[Path], Any], tmp_path: Path
) -> None:
    with pytest.raises(UnreadableFileError, match=r"up to [\d,]+ MiB, found 2,048 MiB"):
        read(tmp_path)


def test_text_without_an_element_is_not_held(tmp_path: Path) -> None:
    whole = annotation_xml(("Epithelial", [square(1, 1)])).encode()
    path = tmp_path / "a.xml"
    with path.open("wb") as file:
        file.write(whole.removesuffix(b"</Annotations>") + b"<Comment a='")
        for _ in range(24):
            file.write(b"a" * 2**20)
    with pytest.raises(UnreadableFileError, match="16 MiB without an element"):
        read_outlines(Source.IMAGESCOPE, path, SCHEME)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(f"{'.'.join(['a'] * 50_000)} = 1\n", "more than 200 dots", id="dotted key"),
        pytest.param(f"[{'.'.join(['a'] * 50_000)}]\n", "more than 200 dots", id="dotted table"),
        pytest.param("#" * 2**21, "up to 1 MiB", id="long"),
        pytest.param(
            "[classes]\n"
            + "".join(f"c{n} = [1, 2, 3]\n" for n in range(3000))
            + "[files]\nimage = '{region}.png'\n",
            "up to 256 classes, found 3000",
            id="classes",
        ),
    ],
)
def test_descriptions_have_limits(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "cohort.toml").write_text(text)
    with pytest.raises(CohortError, match=words):
        open_cohort(tmp_path)


def test_dots_in_comments_and_lists_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "cohort.toml").write_text(
        f"# {'.' * 300}\n[classes]\na = [1, 2, 3]\n[files]\n  # {'.' * 300}\n"
        "image = ['{region}.png', '{region}.tif']\n"
    )
    assert [region.name for region in open_cohort(tmp_path).regions] == ["a"]


@pytest.mark.parametrize("is_version_5", [False, True])
def test_zeros_are_no_matlab_file(is_version_5: bool, tmp_path: Path) -> None:
    start = b""
    if is_version_5:
        start = write_mat(tmp_path / "b.mat", n_ary_mask=np.zeros((2, 2))).read_bytes()[:128]
    path = tmp_path / "a.mat"
    path.write_bytes(start)
    with path.open("r+b") as file:
        file.truncate(2**30)
    began = time.thread_time()
    with pytest.raises(PanopticError, match="cannot be decoded"):
        mat_variables(path)
    assert time.thread_time() < began + 10


def test_a_huge_matlab_file_is_not_read(tmp_path: Path) -> None:
    path = write_mat(tmp_path / "a.mat", n_ary_mask=np.zeros((2, 2)))
    with path.open("r+b") as file:
        file.truncate(2**33)
    with pytest.raises(UnreadableFileError, match="up to 2,048 MiB, found 8,192 MiB"):
        mat_variables(path)

"""Folders from somebody else: nothing outside of them is read unless whoever opens them says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from napari_panoptic.errors import (
    CohortError,
    FindingKind,
    OutsideLinksError,
    UnreadableFileError,
)
from napari_panoptic.io._patterns import Pattern
from napari_panoptic.io.cohort import open_cohort
from napari_panoptic.io.metadata import metadata_beside
from napari_panoptic.regions import Cohort

ANNOTATIONS = "MoNuSAC Testing Data and Annotations"


def touched(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cohort of one region and one team, and something private beside it."""
    root = tmp_path / "cohort"
    touched(root / ANNOTATIONS / "P" / "P_1.xml")
    touched(root / "Teams" / "A" / "P" / "P_1_mask.png")
    touched(tmp_path / "private" / "P" / "P_1_mask.png")
    touched(tmp_path / "private" / "P" / "P_2.xml")
    return root


def kinds(cohort: Cohort) -> list[FindingKind]:
    return [finding.kind for finding in cohort.findings]


@pytest.mark.parametrize("is_folder", [True, False])
def test_links_out_of_a_cohort_are_not_followed(folder: Path, is_folder: bool) -> None:
    private = folder.parent / "private" / "P"
    if is_folder:
        (folder / "Teams" / "B").symlink_to(private.parent, target_is_directory=True)
    else:
        (folder / "Teams" / "B" / "P").mkdir(parents=True)
        (folder / "Teams" / "B" / "P" / "P_1_mask.png").symlink_to(private / "P_1_mask.png")
    cohort = open_cohort(folder)
    assert [team.name for team in cohort.teams] == ["A"]
    finding = next(f for f in cohort.findings if f.kind is FindingKind.OUTSIDE_FOLDER)
    assert "Teams/B" in finding.message
    assert "--allow-outside" in finding.message
    allowed = open_cohort(folder, allow_outside=True)
    assert [team.name for team in allowed.teams] == ["A", "B"]
    assert FindingKind.OUTSIDE_FOLDER not in kinds(allowed)


def test_links_within_a_cohort_are_followed(folder: Path) -> None:
    (folder / "Teams" / "B").symlink_to(Path("A"), target_is_directory=True)
    moved = folder.parent / "moved"
    moved.symlink_to(folder, target_is_directory=True)  # the folder itself may be a link
    for root in (folder, moved):
        cohort = open_cohort(root)
        assert [team.name for team in cohort.teams] == ["A", "B"]
        assert FindingKind.OUTSIDE_FOLDER not in kinds(cohort)


def test_a_cohort_of_nothing_but_links(folder: Path) -> None:
    other = folder.parent / "other"
    other.mkdir()
    (other / ANNOTATIONS).symlink_to(folder / ANNOTATIONS, target_is_directory=True)
    with pytest.raises(OutsideLinksError, match="1 link") as caught:
        open_cohort(other)
    assert caught.value.path == other
    assert len(open_cohort(other, allow_outside=True).regions) == 1


def test_descriptions_and_tables_from_elsewhere(folder: Path) -> None:
    private = touched(folder.parent / "private.toml")
    private.write_text("patient,organ\nP,Lung\n")
    (folder / "cohort.toml").symlink_to(private)
    assert FindingKind.OUTSIDE_FOLDER in kinds(open_cohort(folder))
    (folder / "metadata.csv").symlink_to(private)
    with pytest.raises(UnreadableFileError, match="leads out"):
        metadata_beside(folder, ["P"])


def test_circles_of_links(folder: Path) -> None:
    (folder / "Teams" / "B").symlink_to(folder / "Teams" / "B")
    assert FindingKind.OUTSIDE_FOLDER in kinds(open_cohort(folder))


@pytest.mark.parametrize(
    "text",
    [
        *("/etc/{region}.png", "../{region}.png", "a/../../{region}.png", "..", "~/../{region}"),
        *("C:/x/{region}.png", r"C:\x\{region}.png", r"\\server\share\{region}.png"),
        *("//server/share/{region}.png", r"..\{region}.png", r"a\..\..\{region}.png"),
        *(r"\\?\C:\{region}.png", "file:///etc/{region}", "{region}/**/x.png"),
    ],
)
def test_patterns_stay_below_the_folder(text: str) -> None:
    with pytest.raises(CohortError):
        Pattern(text)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_are_left_out(folder: Path) -> None:
    pipe = folder / "Teams" / "B" / "P" / "P_1_mask.png"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    cohort = open_cohort(folder)
    assert pipe not in {
        p for f in cohort.predictions.values() for m in f.values() for p in m.all_paths
    }
    assert any("pipe" in f.message for f in cohort.findings if f.kind is FindingKind.EXTRA)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_names_that_are_hardly_names(folder: Path) -> None:
    names = ["P_\n2", "P_\x1b[2J", "P_\u202exml", "P_<b>", "P_'; --", "P_" + "x" * 240]
    for name in names:
        touched(folder / ANNOTATIONS / "P" / f"{name}.xml")
    assert {region.name for region in open_cohort(folder).regions} == {"P_1", *names}

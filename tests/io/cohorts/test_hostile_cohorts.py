"""Folders from somebody else: nothing outside of them is read unless whoever opens them says so."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

from napari_panoptic.common.errors import CohortError, OutsideLinksError, UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.layouts import PatientPattern
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.patterns import Pattern
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.io.files import guard
from napari_panoptic.io.files.links import check_links
from napari_panoptic.io.formats.labels.label_tiff import write_labels
from napari_panoptic.io.formats.registry import load_masks, open_masks, reference_shape
from napari_panoptic.io.tables.metadata import metadata_beside
from napari_panoptic.values.cohort import Cohort, MaskFiles, Source
from tests.support.builders import two_objects

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


def of_labels(folder: Path, *, allow_outside: bool = False) -> tuple[Cohort, MaskFiles]:
    """Open a cohort of label images of one region, and give those of its annotation."""
    cohort = open_cohort(folder, allow_outside=allow_outside)
    (region,) = cohort.regions
    assert region.reference is not None
    return cohort, region.reference


@pytest.fixture
def labels_folder(tmp_path: Path) -> Path:
    root = tmp_path / "labels"
    (root / "a").mkdir(parents=True)
    (tmp_path / "private").mkdir()
    (root / "cohort.toml").write_text(
        "[classes]\nA = [255, 0, 0]\nB = [0, 255, 0]\n"
        '[files]\nreference = {labels = ["a/{region}.tif", "a/{region}.zarr"]}\n'
    )
    return root


def refused(cohort: Cohort, files: MaskFiles) -> None:
    """Make sure that nothing is read of files by any way there is, and that it is said why."""
    with pytest.raises(UnreadableFileError, match=r"leads out .* --allow-outside"):
        load_masks(files, cohort.scheme, shape=(12, 16))
    with pytest.raises(UnreadableFileError, match="leads out"):
        open_masks(files, cohort.scheme, (12, 16))
    assert reference_shape(None, [files]) is None


def test_a_table_of_classes_from_elsewhere(labels_folder: Path) -> None:
    table = labels_folder.parent / "private" / "table.csv"
    table.write_text("id,class\n1,A\n2,B\n")
    write_labels(labels_folder / "a" / "r.tif", two_objects())
    link = labels_folder / "a" / "r.csv"
    link.symlink_to(table)
    cohort, files = of_labels(labels_folder)
    (finding,) = (f for f in cohort.findings if f.kind is FindingKind.OUTSIDE_FOLDER)
    assert "a/r.csv" in finding.message
    refused(cohort, files)
    cohort, files = of_labels(labels_folder, allow_outside=True)
    assert FindingKind.OUTSIDE_FOLDER not in kinds(cohort)
    assert load_masks(files, cohort.scheme, shape=None).labels.ids.tolist() == [1, 2]
    # The same where the link stays in the cohort.
    link.unlink()
    link.symlink_to(table.rename(labels_folder / "classes-of-r.csv"))
    cohort, files = of_labels(labels_folder)
    assert load_masks(files, cohort.scheme, shape=None).labels.ids.tolist() == [1, 2]


@pytest.mark.parametrize("is_behind_another", [False, True])
def test_links_in_a_zarr_folder_are_not_followed(
    labels_folder: Path, is_behind_another: bool
) -> None:
    path = labels_folder / "a" / "r.zarr"
    array = zarr.create_array(str(path), shape=(12, 16), dtype="u2", chunks=(12, 16))
    array[:] = two_objects()
    (labels_folder / "a" / "r.csv").write_text("id,class\n1,A\n2,B\n")
    cohort, files = of_labels(labels_folder)
    assert load_masks(files, cohort.scheme, shape=None).labels.ids.tolist() == [1, 2]
    if is_behind_another:  # one that stays in the cohort leads to one that does not
        (path / "c").rename(labels_folder / "c")
        (path / "c").symlink_to(labels_folder / "c", target_is_directory=True)
    private = labels_folder.parent / "private" / "chunk"
    chunk = path.joinpath("c", "0", "0")
    chunk.rename(private)
    chunk.symlink_to(private)
    refused(cohort, files)
    cohort, files = of_labels(labels_folder, allow_outside=True)
    assert load_masks(files, cohort.scheme, shape=None).labels.ids.tolist() == [1, 2]


def test_circles_of_links_in_a_zarr_folder(labels_folder: Path) -> None:
    path = labels_folder / "a" / "r.zarr"
    array = zarr.create_array(str(path), shape=(12, 16), dtype="u2", chunks=(12, 16))
    array[:] = two_objects()
    (path / "round").symlink_to(path, target_is_directory=True)
    (labels_folder / "a" / "r.csv").write_text("id,class\n1,A\n2,B\n")
    cohort, files = of_labels(labels_folder)
    assert load_masks(files, cohort.scheme, shape=None).labels.ids.tolist() == [1, 2]
    (path / "knot").symlink_to("knot")
    cohort, files = of_labels(labels_folder)
    refused(cohort, files)


def test_what_lies_behind_a_link_out_of_a_zarr_folder_is_not_looked_at(
    labels_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = labels_folder / "a" / "r.zarr"
    zarr.create_array(str(path), shape=(12, 16), dtype="u2", chunks=(12, 16))
    private = labels_folder.parent / "private"
    (path / "out").symlink_to(private, target_is_directory=True)
    _, files = of_labels(labels_folder)
    scandir, seen = os.scandir, []

    def watched(folder: Path) -> object:
        seen.append(Path(folder).resolve())
        return scandir(folder)

    monkeypatch.setattr(guard.os, "scandir", watched)
    with pytest.raises(UnreadableFileError, match="leads out"):
        check_links(files)
    assert seen
    assert private.resolve() not in seen


def test_a_folder_that_may_not_be_read_is_told(
    labels_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = labels_folder / "a" / "r.zarr"
    zarr.create_array(str(path), shape=(12, 16), dtype="u2", chunks=(12, 16))
    _, files = of_labels(labels_folder)

    def denied(folder: Path) -> object:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(guard.os, "scandir", denied)
    with pytest.raises(UnreadableFileError, match=r"Permission denied.* may read it") as caught:
        check_links(files)
    assert caught.value.path == path


def test_names_of_classes_and_regions_from_elsewhere(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    root = tmp_path / "cohort"
    root.mkdir()
    (root / "cohort.toml").write_text(
        "[classes]\nA = [255, 0, 0]\n[files.reference]\n"
        'hovernet = "{region}.json"\nconic = "{region}.npy"\ncoco-panoptic = "all/coco.json"\n'
    )
    (private / "names").write_text('{"1": ["A", [0, 0, 0]]}')
    (root / "r.json").write_text('{"nuc": {}}')
    (root / "type_info.json").symlink_to(private / "names")
    cohort = open_cohort(root)
    assert any("type_info.json" in f.message for f in cohort.findings)
    files = cohort.regions[0].reference
    assert files is not None
    with pytest.raises(UnreadableFileError, match="leads out"):
        load_masks(files, cohort.scheme, shape=(12, 16))
    # Such regions are not even listed.
    (private / "regions").write_text("region\nsecret\n")
    np.save(root / "q.npy", np.zeros((1, 12, 16, 2), np.int32))
    (root / "regions.csv").symlink_to(private / "regions")
    annotation = {"file_name": "s/p.png", "segments_info": []}
    (root / "all").mkdir()
    (root / "all" / "coco.json").write_text(
        json.dumps({"categories": [], "annotations": [annotation]})
    )
    (root / "all" / "coco").mkdir()
    (root / "all" / "coco" / "s").symlink_to(private, target_is_directory=True)
    assert [region.name for region in open_cohort(root).regions] == ["r"]
    names = {region.name for region in open_cohort(root, allow_outside=True).regions}
    assert names == {"p", "q_secret", "r"}


def test_a_table_beside_the_mask_of_a_rater(tmp_path: Path) -> None:
    root = tmp_path / "cohort"
    root.mkdir()
    (root / "cohort.toml").write_text(
        'task = "raters"\n[classes]\nA = [255, 0, 0]\n'
        '[files]\nraters = {labels = "{case}_{rater}.tif"}\n'
    )
    write_labels(root / "c_1.tif", two_objects())
    (tmp_path / "private").write_text("id,class\n1,A\n2,A\n")
    (root / "c_1.csv").symlink_to(tmp_path / "private")
    found = [finding.kind for finding in open_raters(root, allow_outside=True).findings]
    assert FindingKind.OUTSIDE_FOLDER not in found
    cohort = open_raters(root)
    assert FindingKind.OUTSIDE_FOLDER in [finding.kind for finding in cohort.findings]
    files = cohort.cases[0].masks["A"]["1"].objects
    assert files is not None
    assert files.source == Source.LABELS
    assert files.within == root


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


@pytest.mark.parametrize(
    "text",
    [
        "^(?P<patient>[a-z]+_[0-9]+)-",
        "(?P<patient>(a|aa)+)$",
        "(?P<patient>x{99999999999})",
        "(?P<patient>[[a])",
        "patient_*",
    ],
)
def test_regular_expressions_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "cohort.toml").write_text(
        "[classes]\nA = [1, 2, 3]\n[files]\nimage = '{region}.png'\n"
        f"reference.labels = '{{region}}.tif'\npatient = '{text}'\n"
    )
    touched(tmp_path / f"{'a' * 60}b.png")
    with pytest.raises(CohortError, match=r"write a pattern such as \{patient\}_\*"):
        open_cohort(tmp_path)


def test_the_slowest_pattern_that_is_allowed() -> None:
    began = time.thread_time()
    assert PatientPattern("{patient}*!").patient_in("a" * 255) is None
    assert PatientPattern("{patient}*a*!").patient_in("a" * 255) is None
    assert time.thread_time() < began + 3


@pytest.mark.parametrize(
    ("text", "name", "patient"),
    [
        ("{patient}_*", "P1_2_3", "P1_2"),
        ("x-{patient}-*", "X-P1-3", "P1"),
        ("{patient}_*", "P1", None),
        ("{patient}-*", "lung_07-a", "lung_07"),
    ],
)
def test_patients_in_names(text: str, name: str, patient: str | None) -> None:
    assert PatientPattern(text).patient_in(name) == patient


@pytest.mark.parametrize("text", ["{patient}/{region}", "{patient}_{team}", "a/{patient}"])
def test_patterns_that_are_no_names(text: str) -> None:
    with pytest.raises(CohortError, match=r"the placeholder \{patient\} alone"):
        PatientPattern(text)


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

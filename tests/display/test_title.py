"""The line above the image, and why a region and team have no figures."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from napari_panoptic.display.cohort_lines import CohortLines
from napari_panoptic.display.title import (
    LOADING,
    STANDARD,
    threshold_text,
    title_parts,
    why_no_figures,
    why_nothing,
)
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.live.summary import evaluate_cohort_summary
from napari_panoptic.samples.write import write_sample_cohort

TEAM = "careful"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_sample_cohort(tmp_path / "sample")


def shown(folder: Path, region: str) -> Session:
    """Open a cohort and show a region of one team."""
    session = Session(open_cohort(folder))
    session.set_team(TEAM)
    request = session.request(region_name=region)
    assert session.deliver(request, load_region(session.cohort, region, request.settings))
    return session


def lacking(folder: Path, region: str) -> str:
    """Return what the table of regions says in place of the figures."""
    cohort = open_cohort(folder)
    summaries = {
        (line.region, line.team): line
        for line in evaluate_cohort_summary(cohort, replace(Session(cohort).reading, teams=(TEAM,)))
        if line.region == region
    }
    return CohortLines(cohort, summaries).region(region, TEAM).lacking


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.rglob(pattern)
    return path


def test_a_region_with_figures_has_no_reason(folder: Path) -> None:
    session = shown(folder, "Sample-A_1")
    assert why_no_figures(session) is None
    assert not any("unreadable" in part for part in title_parts(session, (), None))


def test_without_an_annotation_it_is_not_evaluated(folder: Path) -> None:
    only(folder, "Sample-A_1.xml").unlink()
    why = why_no_figures(shown(folder, "Sample-A_1"))
    assert why is not None
    assert "has no annotation" in why
    assert lacking(folder, "Sample-A_1") == "no annotation"


def test_an_unreadable_annotation_is_not_called_missing(folder: Path) -> None:
    only(folder, "Sample-A_1.xml").write_text("<Annotations><broken")
    why = why_no_figures(shown(folder, "Sample-A_1"))
    assert why is not None
    assert "annotation of this region cannot be read" in why
    assert lacking(folder, "Sample-A_1") == "unreadable"


@pytest.mark.parametrize(
    ("damage", "words", "word"),
    [
        (lambda path: path.write_bytes(b"no mask"), "cannot be read", "unreadable"),
        (lambda path: path.unlink(), "has no prediction", "missing"),
    ],
    ids=["unreadable", "missing"],
)
def test_predictions_that_are_not_there_or_not_readable(folder, damage, words, word) -> None:
    damage(only(folder, f"Teams/{TEAM}/*/Sample-A_1_mask*"))
    shutil.rmtree(only(folder, f"Submissions/{TEAM}/*/Sample-A_1"))
    why = why_no_figures(shown(folder, "Sample-A_1"))
    assert why is not None
    assert words in why
    assert lacking(folder, "Sample-A_1") == word


def test_an_unreadable_image_is_named(folder: Path) -> None:
    only(folder, "MoNuSAC Testing Data*/*/Sample-A_1.svs").write_bytes(b"II*\0 not an image")
    only(folder, f"Teams/{TEAM}/*/Sample-A_2_mask*").unlink()
    shutil.rmtree(only(folder, f"Submissions/{TEAM}/*/Sample-A_2"))
    only(folder, "MoNuSAC Testing Data*/*/Sample-A_2.svs").write_bytes(b"II*\0 not an image")
    assert lacking(folder, "Sample-A_2") == "missing"
    session = shown(folder, "Sample-A_1")
    assert why_no_figures(session) is None
    assert "image unreadable" in title_parts(session, (), None)


@pytest.mark.parametrize(
    ("count", "threshold", "text"),
    [
        (0, 0.2619671, "no objects below 0.262"),
        (1, 0.43, "without 1 object below 0.43"),
        (12, 0.123456, "without 12 objects below 0.1235"),
    ],
)
def test_a_threshold_is_told_in_few_digits(count, threshold, text) -> None:
    assert threshold_text(count, threshold) == text


def test_panels_without_contents_say_which_case_it_is(folder: Path) -> None:
    only(folder, "Sample-A_1.xml").unlink()
    session = Session(open_cohort(folder))
    session.set_team(TEAM)
    assert why_nothing(session) == LOADING
    assert "has no annotation" in why_nothing(shown(folder, "Sample-A_1"))
    session = shown(folder, "Sample-A_2")
    assert session.snapshot is not None
    pending = replace(session.snapshot, pending=frozenset({TEAM}))
    assert session.deliver(session.request(region_name="Sample-A_2"), pending)
    assert why_nothing(session) == LOADING
    only(folder, f"Teams/{TEAM}/*/Sample-A_2_mask*").unlink()
    shutil.rmtree(only(folder, f"Submissions/{TEAM}/*/Sample-A_2"))
    assert "This team has no prediction" in why_nothing(shown(folder, "Sample-A_2"))


def test_usual_settings_are_one_word_and_others_are_spelt_out(folder: Path) -> None:
    session = shown(folder, "Sample-A_1")
    assert title_parts(session, (), None) == [STANDARD]
    settings = session.settings.replaced(iou_threshold=0.6)
    request = session.request(settings=settings)
    assert session.deliver(request, load_region(session.cohort, "Sample-A_1", settings))
    parts = title_parts(session, (), None)
    assert parts == ["IoU > 0.6", "ambiguous areas removed from both"]

"""From files to results: which files are read, and what is said where that is not as usual."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.live.summary import evaluate_cohort_summary
from napari_panoptic.nuclei.regions import reading as pipeline
from napari_panoptic.nuclei.regions.conditions import Condition
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.reading import choose_files, load_prediction, load_reference
from napari_panoptic.nuclei.regions.results import RegionResult
from napari_panoptic.values.cohort import Cohort, MaskFiles, Source
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.small_cohort import (
    ANNOTATIONS,
    COLOUR_CODED,
    REGIONS,
    TEAMS,
    mask_path,
    submission_folder,
)

FIRST = REGIONS[0]
QUICK = EvaluationSettings(distances=False)


def svs_path(folder: Path) -> Path:
    return folder / ANNOTATIONS / FIRST.patient / f"{FIRST.name}.svs"


def results(
    cohort: Cohort, *, teams: Sequence[str] = TEAMS, source: Source | None = None
) -> dict[tuple[str, str], RegionResult]:
    quick = (Condition("quick", QUICK, source),)
    found = (Experiment(teams, quick).evaluate(cohort, region)[0] for region in cohort.regions)
    return {(result.team, result.region): result for region in found for result in region}


# --- which files ------------------------------------------------------------------------------


def files(source: Source) -> MaskFiles:
    return MaskFiles(source, {"": (Path(str(source)),)})


def test_colour_coded_masks_come_first_then_labels_then_submissions() -> None:
    order = (
        Source.COLOUR_CODED,
        Source.LABELS,
        Source.SUBMISSION,
        Source.IMAGESCOPE,
        Source.GEOJSON,
        Source.PANNUKE,
        Source.CONIC,
        Source.COCO_PANOPTIC,
    )
    forms = {source: files(source) for source in reversed(order)}
    for source in order:
        assert choose_files(forms, None) is forms[source]
        del forms[source]
    assert choose_files(forms, None) is None


def test_a_form_that_is_asked_for_is_never_replaced_by_another() -> None:
    forms = {source: files(source) for source in (Source.COLOUR_CODED, Source.SUBMISSION)}
    assert choose_files(forms, Source.SUBMISSION) is forms[Source.SUBMISSION]
    assert choose_files(forms, Source.LABELS) is None


def test_another_form_fills_a_gap_and_says_so(own_folder: Path) -> None:
    mask_path(own_folder, "alpha", FIRST).unlink()
    found = results(open_cohort(own_folder))
    mixed = [
        (key, finding.message)
        for key, result in found.items()
        for finding in result.findings
        if finding.kind is FindingKind.FALLBACK
    ]
    assert mixed == [
        (
            ("alpha", FIRST.name),
            f"team 'alpha' has no colour-coded prediction for region {FIRST.name}: "
            f"its submission prediction is used instead",
        )
    ]
    submitted = results(open_cohort(own_folder), source=Source.SUBMISSION)
    key = ("alpha", FIRST.name)
    pd.testing.assert_frame_equal(found[key].objects, submitted[key].objects)


def test_a_team_with_one_form_only_mixes_nothing(own_folder: Path) -> None:
    shutil.rmtree(own_folder / "Teams" / "alpha")
    found = results(open_cohort(own_folder), teams=["alpha"])
    kinds = {finding.kind for result in found.values() for finding in result.findings}
    assert FindingKind.FALLBACK not in kinds
    assert all(result.counts is not None for result in found.values())


def test_a_missing_prediction_is_a_finding_and_no_result(own_folder: Path) -> None:
    mask_path(own_folder, "alpha", FIRST).unlink()
    shutil.rmtree(submission_folder(own_folder, "alpha", FIRST))
    found = results(open_cohort(own_folder))
    missing = found.pop(("alpha", FIRST.name))
    assert (missing.objects, missing.counts, missing.patient) == (None, None, FIRST.patient)
    said = [f.message for f in missing.findings if f.kind is FindingKind.MISSING]
    assert said == [f"team 'alpha' has no prediction for region {FIRST.name}: not evaluated"]
    assert all(result.counts is not None for result in found.values())


def test_an_empty_submission_is_a_prediction_of_nothing(small_cohort: Cohort) -> None:
    nothing = next(region for region in REGIONS if not region.beta)
    result = results(small_cohort, source=Source.SUBMISSION)["beta", nothing.name]
    assert result.objects is not None
    assert set(result.objects["status"]) == {"FN"}


def test_restoration_and_radius_reach_the_masks(small_cohort: Cohort) -> None:
    region = small_cohort.region(FIRST.name)
    areas = []
    for radius in (-1, 0, 1, 2):
        settings = EvaluationSettings(restoration="border-dilated", radius=radius)
        masks, _ = load_prediction(small_cohort, region, "alpha", FIRST.shape, settings, None)
        assert masks is not None
        areas.append(int(np.count_nonzero(masks.labels.index)))
    assert areas == sorted(set(areas))


# --- how large a region is ---------------------------------------------------------------------


def test_size_from_the_image(small_cohort: Cohort) -> None:
    reference = load_reference(small_cohort, small_cohort.region(FIRST.name), QUICK)
    assert (reference.shape, reference.mpp) == (FIRST.shape, 0.25)
    assert reference.masks is not None


@pytest.mark.parametrize("is_there", [True, False])
def test_size_from_masks_where_the_image_is_missing_or_unreadable(
    own_folder: Path, is_there: bool
) -> None:
    svs_path(own_folder).unlink()
    if is_there:
        svs_path(own_folder).write_bytes(b"no slide")
    cohort = open_cohort(own_folder)
    reference = load_reference(cohort, cohort.region(FIRST.name), QUICK)
    assert (reference.shape, reference.mpp) == (FIRST.shape, None)
    unreadable = [f.path for f in reference.findings if f.kind is FindingKind.UNREADABLE]
    assert unreadable == ([svs_path(own_folder)] if is_there else [])
    intact = results(open_cohort(own_folder))["alpha", FIRST.name]
    assert intact.objects is not None
    assert len(intact.objects) > 0


def test_size_from_a_submission_where_nothing_else_is_readable(own_folder: Path) -> None:
    svs_path(own_folder).unlink()
    for team in TEAMS:
        mask_path(own_folder, team, FIRST).write_bytes(b"no mask")
    shutil.rmtree(own_folder / COLOUR_CODED)
    cohort = open_cohort(own_folder)
    assert load_reference(cohort, cohort.region(FIRST.name), QUICK).shape == FIRST.shape


def test_a_region_of_unknown_size_fails_alone(own_folder: Path) -> None:
    svs_path(own_folder).write_bytes(b"no slide")
    for kind in ("Teams", "Submissions", COLOUR_CODED):
        for path in (own_folder / kind).rglob(f"*{FIRST.name}*"):
            if path.is_file():
                path.unlink()
    cohort = open_cohort(own_folder)
    said = "the image cannot be read, .* how large it is"
    with pytest.raises(UnreadableFileError, match=said) as error:
        load_reference(cohort, cohort.region(FIRST.name), QUICK)
    assert error.value.region == FIRST.name
    svs_path(own_folder).unlink()
    gone = open_cohort(own_folder)
    with pytest.raises(UnreadableFileError, match=r"there is no image, .* how large it is"):
        load_reference(gone, gone.region(FIRST.name), QUICK)
    svs_path(own_folder).write_bytes(b"no slide")
    found = results(cohort)
    for (_, region), result in found.items():
        assert (result.counts is None) == (region == FIRST.name)
    findings = found["alpha", FIRST.name].findings
    assert [f.kind for f in findings] == [FindingKind.UNREADABLE]


# --- the whole cohort --------------------------------------------------------------------------


def test_teams_are_those_asked_for(small_cohort: Cohort) -> None:
    assert {team for team, _ in results(small_cohort)} == set(TEAMS)
    assert {team for team, _ in results(small_cohort, teams=["beta"])} == {"beta"}
    assert results(small_cohort, teams=[]) == {}


def test_the_summary_tells_the_same_as_the_evaluation(small_cohort: Cohort) -> None:
    everybody = [team.name for team in small_cohort.teams]
    found = results(small_cohort, teams=everybody)
    summaries = list(evaluate_cohort_summary(small_cohort, Reading(teams=small_cohort.team_names)))
    assert [(s.team, s.region) for s in summaries] == list(found)
    for summary in summaries:
        counts = found[summary.team, summary.region].counts
        assert summary.counts is not None
        assert counts is not None
        np.testing.assert_array_equal(summary.counts.confusion, counts.confusion)
        np.testing.assert_array_equal(summary.counts.iou_sum, counts.iou_sum)
        assert summary.counts.hausdorff_pairs.sum() == 0
    assert list(evaluate_cohort_summary(small_cohort, Reading(QUICK))) == []


def test_the_summary_goes_on_after_what_cannot_be_evaluated(own_folder: Path) -> None:
    mask_path(own_folder, "alpha", FIRST).write_bytes(b"no mask")
    (own_folder / ANNOTATIONS / FIRST.patient / f"{REGIONS[1].name}.xml").unlink()
    cohort = open_cohort(own_folder)
    # A region that no file tells anything of.
    cohort = replace(
        cohort,
        regions=(
            *cohort.regions,
            replace(cohort.regions[0], name="lost", image=None, reference=None),
        ),
    )
    summaries = evaluate_cohort_summary(cohort, Reading(QUICK, teams=TEAMS))
    without = {(s.region, s.team): s for s in summaries if s.metrics is None}
    assert set(without) == {
        (FIRST.name, "alpha"),
        *((REGIONS[1].name, team) for team in TEAMS),
        *(("lost", team) for team in TEAMS),
    }
    kinds = {key: {f.kind for f in summary.findings} for key, summary in without.items()}
    assert kinds[FIRST.name, "alpha"] == {FindingKind.UNREADABLE}
    assert kinds["lost", "beta"] == {FindingKind.UNREADABLE}


def test_the_summary_leaves_large_regions_unread(
    small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {region.name: region.shape for region in REGIONS}
    held_up_to_px = sorted(height * width for height, width in sizes.values())[1]
    large = {name for name, (height, width) in sizes.items() if height * width > held_up_to_px}
    assert large
    assert large != set(sizes)
    read: set[str] = set()

    def noting(*arguments: Any, **options: Any) -> LoadedMasks:
        read.add(options["region"])
        return load_masks(*arguments, **options)

    monkeypatch.setattr(pipeline, "load_masks", noting)
    lines = list(evaluate_cohort_summary(small_cohort, Reading(QUICK, None, TEAMS, held_up_to_px)))
    assert read == set(sizes) - large
    assert [(line.region, line.team) for line in lines] == [
        (region.name, team) for region in small_cohort.regions for team in TEAMS
    ]
    for line in lines:
        assert (line.counts is None) == (line.metrics is None) == (line.region in large)
        if line.region in large:
            (told,) = line.findings
            height, width = sizes[line.region]
            assert told.region == line.region
            assert told.message == (
                f"region {line.region} of {width} x {height} px is too large to be held: it is "
                f"evaluated when it is looked at"
            )


class _Predictions(dict):  # type: ignore[type-arg]
    """Predictions that count how often all of them are looked through."""

    n_passes = 0

    def items(self) -> Any:
        self.n_passes += 1
        return super().items()


def test_predictions_are_looked_through_once_for_all_regions(small_cohort: Cohort) -> None:
    predictions = _Predictions(small_cohort.predictions)
    cohort = replace(small_cohort, predictions=predictions)
    settings = EvaluationSettings()
    for region in cohort.regions:
        shape = pipeline.region_size(cohort, replace(region, image=None)).shape
        for team in cohort.teams:
            load_prediction(cohort, region, team.name, shape, settings, None)
    assert predictions.n_passes == 1

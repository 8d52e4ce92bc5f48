"""Objects that share pixels in the live state, in pictures and in the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.common.errors import LabelError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.display.crops import CropSource, cut
from napari_panoptic.display.object_layers import SELECTED, emphasis
from napari_panoptic.explain.consensus import consensus
from napari_panoptic.explain.failure_groups import failure_groups
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.polygons.rasterize import MOST_PLANES
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot, load_in_steps, load_region
from napari_panoptic.live.summary import evaluate_cohort_summary
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.report.nuclei.cohort_report import (
    CohortReport,
    ReportRequest,
    cohort_report,
)
from napari_panoptic.report.nuclei.teams import overlaps_section, overlaps_table
from napari_panoptic.tables.markup import fragment
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings, Overlaps
from napari_panoptic.values.vocabulary import Side
from tests.support.overlapping_cohort import TEAM, nucleus, write_overlapping

FLAT = EvaluationSettings()
KEEP = EvaluationSettings(overlaps=Overlaps.KEEP)
REGION = "P_1"
COVERED = {"1": nucleus(2, 2, 9), "2": nucleus(1, 1, 14), "3": nucleus(30, 20, 9)}
"""The first nucleus is found, and covered completely."""


@pytest.fixture(scope="module")
def overlapping_cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    teams = {"covered": COVERED, "apart": {"1": TEAM["1"]}, "half": TEAM}
    return open_cohort(write_overlapping(tmp_path_factory.mktemp("shown"), teams))


def from_scratch(cohort: Cohort, team: str, settings: EvaluationSettings) -> Evaluation:
    snapshot = load_region(cohort, REGION, FLAT)
    assert snapshot.reference is not None
    pair = LabelPair(snapshot.reference, snapshot.predictions[team], None, snapshot.mpp)
    return evaluate(pair, settings)


def show(session: Session, settings: EvaluationSettings) -> RegionSnapshot:
    request = session.request(region_name=REGION, settings=settings)
    snapshot = load_region(session.cohort, REGION, settings, previous=session.loaded)
    assert session.deliver(request, snapshot)
    return snapshot


def test_a_snapshot_follows_the_choice_to_and_fro(overlapping_cohort: Cohort) -> None:
    snapshot = None
    for settings in (FLAT, KEEP, KEEP.replaced(iou_threshold=0.7), KEEP, FLAT):
        snapshot = load_region(overlapping_cohort, REGION, settings, previous=snapshot)
        for team, found in snapshot.evaluations.items():
            expected = from_scratch(overlapping_cohort, team, settings)
            assert found.objects.equals(expected.objects)
            assert found.settings == settings
            shown = snapshot.predictions[team]
            assert shown.ids.tolist() == found.outcomes.prediction.ids.tolist()
        told = {
            f.team: f.count
            for f in snapshot.findings
            if f.kind is FindingKind.OVERLAPPING and f.team and f.object_ids
        }
        is_kept = settings.overlaps is Overlaps.KEEP
        assert told == ({"covered": 2, "half": 2} if is_kept else {})
        assert snapshot.keeps_overlaps is is_kept


def test_a_pixel_of_two_objects_is_that_of_the_upper_one(overlapping_cohort: Cohort) -> None:
    snapshot = load_region(overlapping_cohort, REGION, KEEP)
    row = snapshot.row_at(Side.PREDICTION, "half", 9, 5)
    assert snapshot.evaluations["half"].outcomes.prediction.ids[row] == 2
    assert snapshot.predictions["covered"].ids.tolist() == [1, 2, 3]
    assert 1 not in snapshot.predictions["covered"].id_image()


def test_an_edited_region_is_flattened_until_the_edit_is_undone(overlapping_cohort: Cohort) -> None:
    session = Session(overlapping_cohort)
    session.set_team("half")
    kept = show(session, KEEP)
    y, x = np.array([30, 30]), np.array([2, 3])
    result = session.edit(Side.PREDICTION, y, x, 9, classes={9: "Epithelial"})
    assert session.is_flattened
    assert result.evaluation.settings == FLAT
    assert session.snapshot is not None
    assert session.snapshot.settings == FLAT
    assert set(session.snapshot.evaluations) == {"apart", "half"}  # "covered" had kept its own
    labels = session.edited_labels(Side.PREDICTION)
    assert kept.reference is not None
    pair = LabelPair(kept.reference.with_overlaps(Overlaps.FLATTEN), labels, None, kept.mpp)
    assert result.evaluation.objects.equals(evaluate(pair, FLAT).objects)
    before = session.original_evaluation()
    assert before is not None
    assert before.objects.equals(from_scratch(overlapping_cohort, "half", FLAT).objects)
    assert session.original_evaluation() is before

    session.set_team("covered")
    assert session.evaluation is not None
    assert session.evaluation.objects.equals(
        from_scratch(overlapping_cohort, "covered", FLAT).objects
    )
    session.set_team("half")
    session.edit(Side.PREDICTION, y, x, 0)
    assert not session.is_flattened
    assert session.snapshot.settings == KEEP
    for team, found in session.snapshot.evaluations.items():
        assert found.objects.equals(from_scratch(overlapping_cohort, team, KEEP).objects)


def test_too_many_on_one_another_are_told_and_flattened_ones_shown(tmp_path: Path) -> None:
    pile = {str(n): nucleus(2, 2, 9) for n in range(1, MOST_PLANES + 2)}
    cohort = open_cohort(write_overlapping(tmp_path, {"pile": pile}))
    snapshot = load_region(cohort, REGION, KEEP)
    assert snapshot.evaluations == {}
    assert any("leave overlaps at flatten" in finding.message for finding in snapshot.findings)
    (first, _) = evaluate_cohort_summary(cohort, Reading(KEEP, teams=cohort.team_names))
    assert first.counts is None
    assert any("leave overlaps at flatten" in finding.message for finding in first.findings)
    again = load_region(cohort, REGION, FLAT, previous=snapshot)
    assert again.evaluations["pile"].counts.tp.sum() == 1
    assert not any("leave overlaps" in finding.message for finding in again.findings)


def test_a_slide_is_not_flattened_in_silence(overlapping_cohort: Cohort) -> None:
    *_, snapshot = load_in_steps(overlapping_cohort, REGION, KEEP, first="half", held_up_to_px=100)
    assert not snapshot.results
    (told,) = [f for f in snapshot.findings if f.team == "half" and "keeping" in f.message]
    assert "keeping the pixels that objects share is not possible" in told.message


def kept(cohort: Cohort, team: str) -> Evaluation:
    return load_region(cohort, REGION, KEEP).evaluations[team]


def test_what_is_covered_is_ringed_and_cut_out_whole(overlapping_cohort: Cohort) -> None:
    found = kept(overlapping_cohort, "covered")
    labels, outcomes = found.pair.prediction, found.outcomes
    mask = labels.planes[0] == 1
    rings = emphasis((labels, 0, outcomes.prediction.bbox[0]), ring_px=1)
    y, x = np.nonzero(rings.image == SELECTED)
    assert (y + rings.origin_yx_px[0]).min() == np.nonzero(mask)[0].min() - 1
    assert (x + rings.origin_yx_px[1]).max() == np.nonzero(mask)[1].max() + 1

    source = CropSource(None, found.pair.reference, labels, outcomes)
    crop = cut(source, Side.PREDICTION, 0, field_px=32, size_px=32)
    field = np.zeros((32, 32), np.int32)
    y0, x0, y1, x1 = outcomes.prediction.bbox[0]
    top, left = (y0 + y1 - 32) // 2, (x0 + x1 - 32) // 2
    field[y0 - top : y1 - top, x0 - left : x1 - left] = 1
    inner = np.pad(field, 1)[2:, 2:] + np.pad(field, 1)[:-2, :-2] == 2
    border = (field == 1) & ~inner
    assert (crop.outlines[border][:, 3] > 0).all()


def test_teams_agree_on_objects_that_are_covered() -> None:
    """Two teams invent the same object, which another one covers: one place of both."""
    shape = (20, 20)
    nothing = LabelImage.empty(shape, ("A",))
    small = np.zeros(shape, np.int32)
    small[4:8, 4:8] = 1
    large = np.zeros(shape, np.int32)
    large[1:18, 1:18] = 2
    alone = LabelImage.from_array(small, {1: "A"}, ("A",))
    both = LabelImage.from_array(large, {2: "A"}, ("A",)).in_planes(
        [small, large], np.array([1, 2]), np.array([1, 1], np.int16), np.array([1, 2])
    )
    found = consensus(
        {
            name: evaluate(LabelPair(nothing, own), KEEP)
            for name, own in (("one", alone), ("two", both))
        }
    )
    shared = found.shared_fp_places(2)
    assert [{t: r.tolist() for t, r in p.rows.items()} for p in shared] == [
        {"one": [0], "two": [0]}
    ]


def test_there_are_no_groups_of_objects_that_share_pixels(overlapping_cohort: Cohort) -> None:
    with pytest.raises(LabelError, match='set overlaps to "flatten"'):
        failure_groups(kept(overlapping_cohort, "half"))


@pytest.fixture(scope="module")
def report(overlapping_cohort: Cohort) -> CohortReport:
    names = tuple(team.name for team in overlapping_cohort.teams)
    found = cohort_report(ReportRequest(overlapping_cohort, KEEP, "disentangled", names), jobs=1)
    assert found is not None
    return found


def test_the_report_shows_both_ways(overlapping_cohort: Cohort, report: CohortReport) -> None:
    frame = overlaps_table(report.overlaps).set_index("team")
    assert frame.index.tolist() == ["covered", "half"]
    for team, row in frame.iterrows():
        both = {}
        for name, settings in (("flatten", FLAT), ("keep", KEEP)):
            counts = from_scratch(
                overlapping_cohort, str(team), settings
            ).counts  # both regions are alike
            both[name] = counts
            for figure in ("tp", "fp", "fn"):
                assert row[f"{figure}_{name}"] == 2 * getattr(counts, figure).sum()
            assert row[f"objects_{name}"] == 2 * (counts.tp.sum() + counts.fp.sum())
            tp, fp, fn = (float(getattr(counts, k)[0]) for k in ("tp", "fp", "fn"))
            assert row[f"pq_{name}"] == pytest.approx(counts.iou_sum[0] / (tp + fp / 2 + fn / 2))
        assert row["pq_difference"] == row["pq_keep"] - row["pq_flatten"]
        assert row["predicted_sharing"] == 4
        assert row["annotated_sharing"] == 0
    text = str(fragment(*overlaps_section(report)))
    assert "every object keeps all of its pixels (keep)" in text
    assert "2 \N{RIGHTWARDS ARROW} 4" in text  # TPs of "covered"

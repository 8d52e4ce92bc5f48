"""Loading a region: what is taken over, in which steps it comes, and figures as if from scratch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot, load_in_steps, load_region
from napari_panoptic.nuclei.metrics import unit_metrics
from napari_panoptic.nuclei.regions import region
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from tests.support.small_cohort import ANNOTATIONS, REGIONS, TEAMS, mask_path

NAMES = [region.name for region in REGIONS]
DEFAULT = EvaluationSettings()


def show(session: Session) -> RegionSnapshot:
    """Ask, load and deliver."""
    request = session.request()
    snapshot = load_region(session.cohort, request.region, request.settings)
    assert session.deliver(request, snapshot)
    return snapshot


CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "matching": {"matching": "centroid"},
    "threshold": {"iou_threshold": 0.7},
    "low threshold": {"iou_threshold": 0.2},
    "clip-predictions": {"ambiguous": "clip-predictions"},
    "majority": {"ambiguous": "majority"},
    "keep": {"ambiguous": "keep"},
    "restoration": {"restoration": "border-dilated"},
    "radius": {"restoration": "border-dilated", "radius": 3},
    "erosion": {"restoration": "border-dilated", "radius": -1},
    "idle radius": {"radius": 5},
    "no distances": {"distances": False},
    "outlines": {"outlines": "both-whole"},
    "near": {"near_iou": 0.4},
}


def assert_same_snapshots(found: RegionSnapshot, wanted: RegionSnapshot) -> None:
    assert found.settings == wanted.settings
    assert (found.region, found.shape, found.mpp) == (wanted.region, wanted.shape, wanted.mpp)
    assert found.source == wanted.source
    assert set(found.findings) == set(wanted.findings)
    assert len(found.findings) == len(wanted.findings)
    assert found.evaluations.keys() == wanted.evaluations.keys() == found.predictions.keys()
    for team, evaluation in found.evaluations.items():
        other = wanted.evaluations[team]
        pd.testing.assert_frame_equal(evaluation.objects, other.objects)
        pd.testing.assert_frame_equal(evaluation.by_class, other.by_class)
        pd.testing.assert_frame_equal(evaluation.confusion, other.confusion)
        np.testing.assert_equal(dict(evaluation.metrics), dict(other.metrics))
        assert evaluation.settings == other.settings
        np.testing.assert_array_equal(
            found.predictions[team].id_image(), wanted.predictions[team].id_image()
        )


@pytest.fixture(scope="module")
def loaded(small_cohort: Cohort) -> Callable[[str, EvaluationSettings], RegionSnapshot]:
    """Load a region once for each setting."""
    return cache(partial(load_region, small_cohort))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("name", "source"),
    [
        (NAMES[0], None),
        (NAMES[1], Source.SUBMISSION),
        *(
            pytest.param(*own, marks=pytest.mark.long)
            for own in product(NAMES[:3], (None, Source.SUBMISSION))
            if own not in ((NAMES[0], None), (NAMES[1], Source.SUBMISSION))
        ),
    ],
)
def test_what_is_taken_over_gives_the_same_figures(
    small_cohort: Cohort,
    loaded: Callable[[str, EvaluationSettings], RegionSnapshot],
    name: str,
    change: str,
    source: Source | None,
) -> None:
    start = EvaluationSettings(restoration="border-dilated", matching="centroid")
    for before in (DEFAULT, start):
        previous = loaded(name, before)
        settings = before.replaced(**CHANGES[change])
        again = load_region(small_cohort, name, settings, source=source, previous=previous)
        assert_same_snapshots(again, load_region(small_cohort, name, settings, source=source))
        assert previous.settings == before


def test_pixels_are_read_once(small_cohort: Cohort) -> None:
    first = load_region(small_cohort, NAMES[0], DEFAULT)
    for change in ({"matching": "centroid"}, {"restoration": "border-dilated"}):
        again = load_region(small_cohort, NAMES[0], DEFAULT.replaced(**change), previous=first)
        assert again.image is first.image
    table = (
        load_region(small_cohort, NAMES[0], DEFAULT.replaced(ambiguous="keep"), previous=first)
        .evaluations["alpha"]
        .table
    )
    assert table is first.evaluations["alpha"].table


def test_a_snapshot_of_another_region_is_no_help(small_cohort: Cohort) -> None:
    previous = load_region(small_cohort, NAMES[0], DEFAULT)
    found = load_region(small_cohort, NAMES[1], DEFAULT, previous=previous)
    assert_same_snapshots(found, load_region(small_cohort, NAMES[1], DEFAULT))
    assert found.image is not previous.image


def test_all_teams_and_the_annotations_own_version(small_cohort: Cohort) -> None:
    snapshot = load_region(small_cohort, NAMES[0], DEFAULT)
    assert list(snapshot.evaluations) == [*TEAMS, "colour-coded GT"]
    assert (snapshot.shape, snapshot.mpp) == (REGIONS[0].shape, 0.25)
    assert snapshot.image is not None
    assert snapshot.image.levels[0].shape == (*REGIONS[0].shape, 3)
    assert snapshot.ambiguous is not None
    assert {f.kind for f in snapshot.findings} == {
        FindingKind.VANISHED,
        FindingKind.OVERLAPPING,
        FindingKind.DEGENERATE,
        FindingKind.OUTSIDE_IMAGE,
    }


def test_a_region_without_reference_can_be_looked_at(own_folder: Path) -> None:
    region = REGIONS[0]
    (own_folder / ANNOTATIONS / region.patient / f"{region.name}.xml").unlink()
    session = Session(open_cohort(own_folder))
    snapshot = show(session)
    assert (snapshot.reference, dict(snapshot.evaluations)) == (None, {})
    assert snapshot.image is not None
    assert len(snapshot.predictions["alpha"]) > 0
    session.select_row(Side.REFERENCE, 0)
    assert (session.evaluation, session.selection) == (None, None)


def test_an_unreadable_prediction_takes_no_other_with_it(own_folder: Path) -> None:
    mask_path(own_folder, "alpha", REGIONS[0]).write_bytes(b"no mask")
    session = Session(open_cohort(own_folder))
    snapshot = show(session)
    assert list(snapshot.evaluations) == ["beta", "colour-coded GT"]
    unreadable = [f for f in snapshot.findings if f.kind is FindingKind.UNREADABLE]
    assert [(f.team, f.region) for f in unreadable] == [("alpha", NAMES[0])]
    assert session.evaluation is None
    session.set_team("beta")
    assert session.evaluation is snapshot.evaluations["beta"]


def test_an_unreadable_image_is_reported_once(own_folder: Path) -> None:
    region = REGIONS[0]
    path = own_folder / ANNOTATIONS / region.patient / f"{region.name}.svs"
    path.write_bytes(b"no slide")
    cohort = open_cohort(own_folder)
    first = load_region(cohort, region.name, DEFAULT)
    assert (first.image, first.shape, first.mpp) == (None, region.shape, None)
    for snapshot in (
        first,
        load_region(cohort, region.name, DEFAULT.replaced(radius=2), previous=first),
        load_region(
            cohort, region.name, DEFAULT.replaced(restoration="border-dilated"), previous=first
        ),
    ):
        unreadable = [f for f in snapshot.findings if f.kind is FindingKind.UNREADABLE]
        assert [f.path for f in unreadable] == [path]
        assert "alpha" in snapshot.evaluations


def test_figures_of_a_snapshot_are_those_of_its_counts(small_cohort: Cohort) -> None:
    evaluation = load_region(small_cohort, NAMES[0], DEFAULT).evaluations["beta"]
    np.testing.assert_equal(dict(evaluation.metrics), dict(unit_metrics(evaluation.counts)))


# --- steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("team", [*TEAMS, "colour-coded GT"])
def test_the_team_that_is_looked_at_comes_first(small_cohort: Cohort, team: str) -> None:
    first, whole = load_in_steps(small_cohort, NAMES[0], DEFAULT, first=team)
    assert list(first.evaluations) == list(first.predictions) == [team]
    assert first.pending == {*TEAMS, "colour-coded GT"} - {team}
    assert first.evaluations[team] is whole.evaluations[team]
    assert_same_snapshots(whole, load_region(small_cohort, NAMES[0], DEFAULT))
    assert list(whole.evaluations) == [*TEAMS, "colour-coded GT"]
    assert not whole.pending


def test_a_team_that_cannot_be_evaluated_is_not_waited_for(own_folder: Path) -> None:
    mask_path(own_folder, "alpha", REGIONS[0]).write_bytes(b"no mask")
    (whole,) = load_in_steps(open_cohort(own_folder), NAMES[0], DEFAULT, first="alpha")
    assert list(whole.evaluations) == ["beta", "colour-coded GT"]


def test_what_nobody_wants_any_more_is_not_finished(small_cohort: Cohort) -> None:
    steps = list(
        load_in_steps(small_cohort, NAMES[0], DEFAULT, first="beta", is_wanted=lambda: False)
    )
    assert [list(step.evaluations) for step in steps] == [["beta"]]


@pytest.mark.parametrize("seed", range(4))
def test_any_walk_of_finished_and_unfinished_steps(small_cohort: Cohort, seed: int) -> None:
    """A hand on a slider: most steps are given up after the first team."""
    rng = np.random.default_rng(seed)
    settings, previous = DEFAULT, None
    for _ in range(8):
        changes = CHANGES[str(rng.choice(list(CHANGES)))]
        settings = settings.replaced(**changes)
        steps = load_in_steps(
            small_cohort,
            NAMES[1],
            settings,
            previous=previous,
            first=str(rng.choice(list(TEAMS))),
            is_wanted=lambda: bool(rng.random() < 0.7),
        )
        *_, previous = steps
        fresh = load_region(small_cohort, NAMES[1], settings)
        for team, evaluation in previous.evaluations.items():
            pd.testing.assert_frame_equal(evaluation.objects, fresh.evaluations[team].objects)
        if not previous.pending:
            assert_same_snapshots(previous, fresh)


def test_files_are_read_once_whatever_the_settings(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = open_cohort(own_folder)
    first = next(load_in_steps(cohort, NAMES[0], DEFAULT, first="alpha"))
    previous = load_region(cohort, NAMES[0], DEFAULT, previous=first)

    def read_again(*_args: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(region, "read_prediction", read_again)
    monkeypatch.setattr(region, "load_reference", read_again)
    for change in CHANGES.values():
        previous = load_region(cohort, NAMES[0], DEFAULT.replaced(**change), previous=previous)
    monkeypatch.undo()
    wanted = load_region(cohort, NAMES[0], DEFAULT.replaced(**change))
    assert_same_snapshots(previous, wanted)

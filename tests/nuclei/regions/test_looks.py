"""Looks at the regions of a cohort: in order, each file once, and one after the other if asked."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.nuclei.regions import reading as reading_module
from napari_panoptic.nuclei.regions.looks import RegionLook, Teams, look_at
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.nuclei.regions.run import PROCESSES, THREADS
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings, Matching
from tests.support.small_cohort import REGIONS, TEAMS

FIRST = REGIONS[0]
QUICK = EvaluationSettings(distances=False)
READING = Reading(QUICK, teams=TEAMS)


def matches(region: Region, teams: Teams, _image: object = None) -> dict[str, int] | None:
    """Return the number of matches of each team that is seen; None in the first region."""
    if region.name == FIRST.name:
        return None
    found = {team: own.evaluation for team, own in teams.items()}
    return {team: int(own.counts.tp.sum()) for team, own in found.items() if own is not None}


def expected(cohort: Cohort, region: Region) -> dict[str, int] | None:
    held = HeldRegion(cohort, region, QUICK)
    return matches(region, {team: held.evaluate(team, QUICK) for team in TEAMS})


@pytest.mark.parametrize(
    ("n_jobs", "scheduler"), [(1, THREADS), (3, THREADS), (None, THREADS), (1, PROCESSES)]
)
def test_regions_come_in_order_with_their_parts(
    small_cohort: Cohort, n_jobs: int | None, scheduler: str
) -> None:
    shares: list[tuple[float, str]] = []
    progress = Progress(report=lambda share, doing: shares.append((share, doing)))
    looks = [RegionLook(READING, matches, at_once=True), RegionLook(READING, matches)]
    found = list(look_at(small_cohort, looks, progress, jobs=n_jobs, scheduler=scheduler))
    assert [seen[0].region for seen in found] == list(small_cohort.regions)
    for region, (at_once, alone) in zip(small_cohort.regions, found, strict=True):
        wanted = expected(small_cohort, region)
        assert list(at_once.parts) == ([] if wanted is None else [wanted])
        own = [] if wanted is None else [{t: wanted[t]} if t in wanted else {} for t in TEAMS]
        assert list(alone.parts) == own
        assert at_once.findings == alone.findings
    total = len(small_cohort.regions)
    assert shares == [(n / total, r.name) for n, r in enumerate(small_cohort.regions, start=1)]


def test_only_the_regions_and_teams_that_are_wanted_are_read(small_cohort: Cohort) -> None:
    last, team = small_cohort.regions[-1], TEAMS[0]
    look = RegionLook(READING, matches, only={(team, last.name)})
    ((seen,),) = look_at(small_cohort, [look])
    assert seen.region == last
    assert list(seen.parts) == [{team: expected(small_cohort, last)[team]}]


def test_each_file_is_read_once_for_all_looks(
    small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, Any]] = []
    original = reading_module.load_masks

    def noting(files: Any, *arguments: Any, **options: Any) -> Any:
        read.append((options["region"], files.all_paths))
        return original(files, *arguments, **options)

    monkeypatch.setattr(reading_module, "load_masks", noting)
    others = QUICK.replaced(matching=Matching.CENTROID), QUICK.replaced(iou_threshold=0.7)
    readings = [READING, *(replace(READING, settings=own) for own in others)]
    looks = [RegionLook(own, partial(matches)) for own in (*readings, READING)]
    together = list(look_at(small_cohort, looks))
    assert len(read) == len(set(read)) > 0
    alone = [[seen.parts for (seen,) in look_at(small_cohort, [look])] for look in looks]
    assert [list(parts) for parts in zip(*alone, strict=True)] == [
        [seen.parts for seen in region] for region in together
    ]


def test_looks_say_which_regions_they_leave_out(small_cohort: Cohort) -> None:
    small = replace(READING, held_up_to_px=1)
    looks = [
        RegionLook(small, matches, too_large="it is too large"),
        RegionLook(small, matches),
        RegionLook(small, matches, takes_windows=True),
    ]
    (told, usual, windows), *_ = look_at(small_cohort, looks)
    assert told.findings == [Finding(FindingKind.FALLBACK, "it is too large", region=FIRST.name)]
    (finding,) = usual.findings
    assert finding.kind is FindingKind.UNREADABLE
    assert "is too large to be held" in finding.message
    assert finding not in windows.findings
    assert windows.findings


def test_a_part_that_is_a_finding_is_one(small_cohort: Cohort) -> None:
    left_out = Finding(FindingKind.MISSING, "left out")
    (seen,), *_ = look_at(small_cohort, [RegionLook(READING, lambda *_: left_out, at_once=True)])
    assert not seen.parts
    assert seen.findings[-1] == left_out


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_looks_can_be_cancelled(small_cohort: Cohort, n_jobs: int) -> None:
    begun: list[str] = []
    told: list[float] = []
    first = small_cohort.regions[0]
    forms = {team: small_cohort.predictions[team, first.name] for team in TEAMS}
    names = [f"R{k:03}" for k in range(40)]
    many = replace(
        small_cohort,
        regions=tuple(replace(first, name=name) for name in names),
        predictions={(team, name): forms[team] for team in TEAMS for name in names},
    )
    look = RegionLook(READING, lambda region, *_: begun.append(region.name), at_once=True)
    progress = Progress(lambda: len(told) < 3, lambda share, _: told.append(share))
    with pytest.raises(StoppedError):
        list(look_at(many, [look], progress, jobs=n_jobs))
    assert len(told) == 3
    assert len(begun) < 40


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_error_of_a_look_is_its_own(small_cohort: Cohort, n_jobs: int) -> None:
    def fail(region: Region, *_: object) -> None:
        raise PanopticError("cannot be done", region=region.name)

    looks = [RegionLook(READING, fail), RegionLook(READING, matches, at_once=True)]
    for region, (failed, seen) in zip(
        small_cohort.regions, look_at(small_cohort, looks, jobs=n_jobs), strict=True
    ):
        with pytest.raises(PanopticError, match="cannot be done"):
            _ = failed.parts
        wanted = expected(small_cohort, region)
        assert list(seen.parts) == ([] if wanted is None else [wanted])

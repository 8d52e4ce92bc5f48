"""Neighbours read ahead: figures as if read anew, few, never stale, and never in the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live import read_ahead
from napari_panoptic.live.read_ahead import ReadAhead, ReadAheadSettings, stamps_of
from napari_panoptic.live.snapshots import RegionSnapshot, load_in_steps, load_region
from napari_panoptic.values.cohort import Cohort, MaskFiles, Source
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.small_cohort import REGIONS, mask_path
from tests.support.waiting import wait_until

NAMES = [region.name for region in REGIONS]
DEFAULT = EvaluationSettings()
WANTED = ReadAheadSettings(DEFAULT, None, "alpha")


@pytest.fixture
def own_cohort(own_folder: Path) -> Cohort:
    return open_cohort(own_folder)


@pytest.fixture
def ahead(own_cohort: Cohort) -> Iterator[ReadAhead]:
    ahead = ReadAhead(own_cohort)
    yield ahead
    ahead.close()


def settle(ahead: ReadAhead) -> None:
    wait_until(lambda: not ahead.is_busy)


def assert_as_read_anew(cohort: Cohort, found: RegionSnapshot) -> None:
    wanted = load_region(cohort, found.region.name, found.settings, source=found.source)
    assert found.evaluations.keys() == wanted.evaluations.keys()
    for team, evaluation in found.evaluations.items():
        pd.testing.assert_frame_equal(evaluation.objects, wanted.evaluations[team].objects)
    assert set(found.findings) == set(wanted.findings)


def test_neighbours_are_there_and_are_shown_at_once(own_cohort: Cohort, ahead: ReadAhead) -> None:
    ahead.want(NAMES[0], NAMES[1:3], WANTED)
    settle(ahead)
    assert ahead.names == set(NAMES[1:3])
    for name in NAMES[1:3]:
        read = ahead.take(name)
        assert read is not None
        (shown,) = load_in_steps(own_cohort, name, DEFAULT, previous=read.snapshot, first="alpha")
        assert shown is read.snapshot
        assert_as_read_anew(own_cohort, shown)


def test_the_first_split_need_not_wait_for_imports(
    ahead: ReadAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "skimage.segmentation", raising=False)
    ahead.want(NAMES[0], (), WANTED)
    wait_until(lambda: "skimage.segmentation" in sys.modules)


@pytest.mark.parametrize(
    ("changes", "source"),
    [
        ({"iou_threshold": 0.3}, None),
        ({"restoration": "border-dilated"}, None),
        ({"ambiguous": "keep"}, None),
        ({}, Source.SUBMISSION),
    ],
)
def test_other_settings_are_never_answered_with_older_figures(
    own_cohort: Cohort, ahead: ReadAhead, changes: dict[str, Any], source: Source | None
) -> None:
    ahead.want(NAMES[0], [NAMES[1]], WANTED)
    settle(ahead)
    read = ahead.take(NAMES[1])
    assert read is not None
    settings = DEFAULT.replaced(**changes)
    shown = load_region(own_cohort, NAMES[1], settings, source=source, previous=read.snapshot)
    assert (shown.settings, shown.source) == (settings, source)
    assert_as_read_anew(own_cohort, shown)


def test_a_file_that_changed_meanwhile_is_read_again(own_folder: Path, ahead: ReadAhead) -> None:
    ahead.want(NAMES[0], [NAMES[1]], WANTED)
    settle(ahead)
    path = mask_path(own_folder, "alpha", REGIONS[1])
    path.write_bytes(mask_path(own_folder, "beta", REGIONS[1]).read_bytes())
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert ahead.take(NAMES[1]) is None
    assert NAMES[1] not in ahead.names


def test_a_file_that_went_or_came_is_noticed(own_folder: Path, own_cohort: Cohort) -> None:
    region = own_cohort.region(NAMES[1])
    before = stamps_of(own_cohort, region)
    path = mask_path(own_folder, "alpha", REGIONS[1])
    assert path in [stamp[0] for stamp in before]
    path.unlink()
    assert stamps_of(own_cohort, region) != before


def test_tables_of_classes_beside_label_images_count_too(tmp_path: Path) -> None:
    (tmp_path / "cohort.toml").write_text(
        '[classes]\nA = [1, 2, 3]\nB = [4, 5, 6]\n[files]\nreference.labels = "{region}.npy"\n',
        encoding="utf-8",
    )
    np.save(tmp_path / "R_1.npy", np.ones((5, 5), np.uint8))
    cohort = open_cohort(tmp_path)
    before = stamps_of(cohort, cohort.region("R_1"))
    assert isinstance(cohort.region("R_1").reference, MaskFiles)
    (tmp_path / "R_1.csv").write_text("id,class\n1,A\n", encoding="utf-8")
    assert stamps_of(cohort, cohort.region("R_1")) != before


def test_at_most_two_neighbours_beside_the_shown_region(
    own_cohort: Cohort, ahead: ReadAhead
) -> None:
    for name in NAMES:
        ahead.keep(
            load_region(own_cohort, name, DEFAULT), stamps_of(own_cohort, own_cohort.region(name))
        )
    ahead.want(NAMES[0], NAMES, WANTED)
    assert ahead.names <= set(NAMES[:3])
    settle(ahead)
    assert ahead.names == set(NAMES[:3])


def test_what_is_large_is_not_kept(
    own_cohort: Cohort, ahead: ReadAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "LARGEST_PX", 10)
    ahead.want(NAMES[0], [NAMES[1]], WANTED)
    settle(ahead)
    ahead.keep(load_region(own_cohort, NAMES[2], DEFAULT), ())
    assert not ahead.names


def test_what_is_being_read_goes_on_for_whoever_asks_for_it(
    own_cohort: Cohort, ahead: ReadAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = Event(), Event()

    def steps(*args: Any, is_wanted: Any, **options: Any) -> Iterator[RegionSnapshot]:
        def asked() -> bool:
            begun.set()
            return may_end.wait(20) and bool(is_wanted())

        yield from load_in_steps(*args, is_wanted=asked, **options)

    monkeypatch.setattr(read_ahead, "load_in_steps", steps)
    ahead.want(NAMES[0], NAMES[1:3], WANTED)
    assert begun.wait(20)
    ahead.pause()  # somebody asks for a region
    may_end.set()
    read = ahead.take(NAMES[1])
    assert read is not None
    assert read.snapshot.pending  # the team that is looked at is there, the others are left
    first, whole = load_in_steps(
        own_cohort, NAMES[1], DEFAULT, previous=read.snapshot, first="alpha"
    )
    assert first.evaluations["alpha"].pair is read.snapshot.evaluations["alpha"].pair
    assert_as_read_anew(own_cohort, whole)
    assert ahead.take(NAMES[2]) is None  # was not begun


def test_a_failure_is_left_to_whoever_asks(
    ahead: ReadAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_options: Any) -> None:
        raise PanopticError("expected a region, found a hole")

    monkeypatch.setattr(read_ahead, "load_in_steps", fail)
    ahead.want(NAMES[0], [NAMES[1]], WANTED)
    settle(ahead)
    assert ahead.take(NAMES[1]) is None


def test_after_closing_nothing_is_read(own_cohort: Cohort) -> None:
    ahead = ReadAhead(own_cohort)
    ahead.close()
    ahead.want(NAMES[0], NAMES[1:3], WANTED)
    assert not ahead.is_busy
    assert not ahead.names

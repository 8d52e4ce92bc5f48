"""All regions at once, on threads, processes and a cluster; interrupted, and taken up again."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.common.progress import Progress
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.files import fingerprints
from napari_panoptic.nuclei.regions import cluster as dask_cluster
from napari_panoptic.nuclei.regions import result_store as parts
from napari_panoptic.nuclei.regions import run as jobs
from napari_panoptic.nuclei.regions.conditions import (
    Condition,
    lessons_conditions,
)
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.result_store import DamagedPartError, PartStore, RegionResults
from napari_panoptic.nuclei.regions.run import (
    PROCESSES,
    THREADS,
    RegionDone,
    region_fingerprint,
    run_regions,
)
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.settings import EvaluationSettings
from tests.nuclei.regions.test_conditions import assert_same, protocol_conditions
from tests.support.dask_cluster import Cluster, cluster_in_one_process
from tests.support.interrupted import stopped_at, write_large_cohort
from tests.support.paths import REPOSITORY
from tests.support.small_cohort import (
    ANNOTATIONS,
    REGIONS,
    TEAMS,
    mask_path,
    submission_folder,
)
from tests.support.waiting import wait_until

FIRST = REGIONS[0]
QUICK = EvaluationSettings(distances=False)
WORK = Experiment(TEAMS, (*lessons_conditions(), *protocol_conditions()))
SMALL_WORK = Experiment(TEAMS, (Condition("one", QUICK),))
TABLES = ("objects", "regions", "patients", "patients_by_class", "teams", "confusion")


@pytest.fixture(scope="module")
def wanted(small_cohort: Cohort) -> list[RegionResults]:
    """What a single thread gives, region by region."""
    return [WORK.evaluate(small_cohort, region) for region in small_cohort.regions]


def assert_same_regions(found: list[RegionResults], wanted: list[RegionResults]) -> None:
    assert len(found) == len(wanted)
    for regions in zip(found, wanted, strict=True):
        for conditions in zip(*regions, strict=True):
            for one, other in zip(*conditions, strict=True):
                assert_same(one, other, f"{other.team} {other.region}")


def done_regions(cohort: Cohort, work: Experiment, store: Path) -> dict[str, RegionDone]:
    news: list[RegionDone] = []
    for _ in run_regions(cohort, work, jobs=2, store=store, on_result=news.append):
        pass
    assert len({done.region for done in news}) == len(news) == len(cohort.regions)
    return {done.region: done for done in news}


def taken_over(done: dict[str, RegionDone]) -> set[str]:
    return {name for name, news in done.items() if news.is_taken_over}


# --- the same, however it is run --------------------------------------------------------------


# Processes without a store are in the test below.
@pytest.mark.parametrize("with_store", [True, False])
@pytest.mark.parametrize("scheduler", [THREADS, pytest.param(PROCESSES, marks=pytest.mark.long)])
def test_the_same_results_bit_by_bit(
    small_cohort: Cohort,
    wanted: list[RegionResults],
    tmp_path: Path,
    scheduler: str,
    with_store: bool,
) -> None:
    store = tmp_path / "store" if with_store else None
    found = list(run_regions(small_cohort, WORK, jobs=2, scheduler=scheduler, store=store))
    assert_same_regions(found, wanted)
    if store is not None:
        # And once more, all of them from the store.
        news: list[RegionDone] = []
        again = list(run_regions(small_cohort, WORK, jobs=1, store=store, on_result=news.append))
        assert all(done.is_taken_over for done in news)
        assert_same_regions(again, wanted)


def test_processes_follow_threads_where_the_rest_is_long(
    small_cohort: Cohort, wanted: list[RegionResults], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    original = jobs._processes

    def processes(number: int) -> Any:
        started.append(number)
        return original(number)

    monkeypatch.setattr(jobs, "_processes", processes)
    many = replace(small_cohort, regions=small_cohort.regions * 2)
    few = [SMALL_WORK.evaluate(small_cohort, region) for region in small_cohort.regions]
    for seconds, work, expected in ((10_000.0, SMALL_WORK, few), (0.0, WORK, wanted)):
        monkeypatch.setattr(jobs, "_WORTH_PROCESSES_S", seconds)
        found = list(run_regions(many, work, jobs=2, scheduler=jobs.AUTO))
        assert_same_regions(found, expected * 2)
        assert started == ([] if seconds else [2])


class Dying(Experiment):
    """Work that ends its process in one region, as the system does when memory runs out."""

    def evaluate(self, cohort: Cohort, region: Region, **how: Any) -> RegionResults:
        if region.name == REGIONS[1].name and multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().evaluate(cohort, region, **how)


@pytest.mark.skipif(os.name != "posix", reason="there is no kill -9")
@pytest.mark.parametrize("moment", ["at work", "between"])
def test_a_worker_that_dies_is_explained_and_finished_regions_are_kept(
    small_cohort: Cohort, tmp_path: Path, moment: str
) -> None:
    others = set(threading.enumerate())
    kind = Dying if moment == "at work" else Experiment
    work = kind(TEAMS[:1], SMALL_WORK.conditions)
    news: list[str] = []

    def on_result(done: RegionDone) -> None:
        news.append(done.region)
        if moment == "between":  # and the pool notices before the next region is submitted
            for child in multiprocessing.active_children():
                child.kill()
            for thread in set(threading.enumerate()) - others:
                thread.join(30)

    many = replace(small_cohort, regions=small_cohort.regions[:4])
    with pytest.raises(PanopticError, match=r"Finished regions are kept: .* fewer --jobs") as found:
        for _ in run_regions(
            many, work, jobs=1, scheduler=PROCESSES, store=tmp_path, on_result=on_result
        ):
            pass
    assert found.value.region not in (None, *news)
    assert len(list(tmp_path.glob("*.part.json"))) == len(news) >= 1


class Held:
    """Lets regions be done in the order that a test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
        self.may_finish = threading.Event()
        self.begun: list[str] = []
        original = Experiment.evaluate

        def evaluate(work: Experiment, cohort: Cohort, region: Any, **how: Any) -> RegionResults:
            self.begun.append(region.name)
            if region.name == first:
                assert self.may_finish.wait(30)
            return original(work, cohort, region, **how)

        monkeypatch.setattr(Experiment, "evaluate", evaluate)


def many_regions(cohort: Cohort, number: int) -> Cohort:
    """Repeat the first region under other names."""
    region = cohort.regions[0]
    names = [f"R{k:03}" for k in range(number)]
    forms = {team: cohort.predictions[team, region.name] for team in TEAMS}
    return replace(
        cohort,
        regions=tuple(replace(region, name=name) for name in names),
        predictions={(team, name): forms[team] for team in TEAMS for name in names},
    )


def test_regions_come_in_order_and_finish_in_any(
    small_cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = many_regions(small_cohort, 12)
    held = Held(monkeypatch, "R000")
    finished: list[str] = []

    def on_result(done: RegionDone) -> None:
        finished.append(done.region)
        if len(finished) == 11:
            assert len(list(tmp_path.glob("*.part.json"))) == 11
            held.may_finish.set()

    found = run_regions(many, SMALL_WORK, jobs=2, store=tmp_path, on_result=on_result)
    names = [results[0][0].region for results in found]
    assert names == [region.name for region in many.regions]
    assert finished[-1] == "R000"


def test_without_a_store_nobody_runs_far_ahead(
    small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is ready before its turn stays in memory then."""
    many = many_regions(small_cohort, 40)
    held = Held(monkeypatch, "R000")
    threading.Timer(1.0, held.may_finish.set).start()
    begun: list[int] = []

    def on_result(done: RegionDone) -> None:
        if done.region == "R000":
            begun.append(len(held.begun))

    names = [
        results[0][0].region
        for results in run_regions(many, SMALL_WORK, jobs=2, on_result=on_result)
    ]
    assert names == [region.name for region in many.regions]
    assert begun[0] <= 8


@pytest.mark.parametrize("with_store", [True, False])
def test_what_was_handed_on_is_kept_by_nobody(
    small_cohort: Cohort, tmp_path: Path, with_store: bool, request: pytest.FixtureRequest
) -> None:
    many = many_regions(small_cohort, 30)
    store = tmp_path if with_store else None
    handed_on: list[weakref.ref[Any]] = []
    most = 0
    gc.freeze()  # what is there already need not be gone through each time
    request.addfinalizer(gc.unfreeze)
    for results in run_regions(many, SMALL_WORK, jobs=2, store=store):
        handed_on.append(weakref.ref(results[0][0].objects))
        gc.collect()
        most = max(most, sum(reference() is not None for reference in handed_on))
    assert len(handed_on) == 30
    assert most <= 2


def test_what_is_not_wanted_any_more_is_not_done(
    small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = many_regions(small_cohort, 40)
    held = Held(monkeypatch, "none")
    finished: list[RegionDone] = []
    found = list(
        run_regions(
            many,
            SMALL_WORK,
            jobs=1,
            on_result=finished.append,
            is_wanted=lambda: len(finished) < 3,
        )
    )
    assert 3 <= len(found) < 8
    assert len(held.begun) < 12


def test_leaving_early_waits_for_nothing_that_has_not_begun(
    small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch, "none")
    for _ in run_regions(many_regions(small_cohort, 40), SMALL_WORK, jobs=1):
        break
    assert len(held.begun) < 8


# --- the store --------------------------------------------------------------------------------


def test_a_finished_region_is_not_done_again(
    small_cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done_regions(small_cohort, WORK, tmp_path)
    held = Held(monkeypatch, "none")
    everything = {region.name for region in small_cohort.regions}
    assert taken_over(done_regions(small_cohort, WORK, tmp_path)) == everything
    assert held.begun == []


def test_a_changed_file_is_done_again_and_its_region_alone(
    own_folder: Path, tmp_path: Path
) -> None:
    cohort = open_cohort(own_folder)
    names = {region.name for region in cohort.regions}
    store = tmp_path / "store"
    done_regions(cohort, SMALL_WORK, store)
    paths = [
        mask_path(own_folder, "alpha", FIRST),
        next(own_folder.rglob(f"{REGIONS[1].name}.xml")),
        next(own_folder.rglob(f"{REGIONS[2].name}.svs")),
    ]
    for path, region in zip(paths, REGIONS, strict=False):
        times = path.stat().st_atime_ns, path.stat().st_mtime_ns
        data = bytearray(path.read_bytes())
        data[-1] ^= 1  # the same size, and soon the same time
        path.write_bytes(data)
        os.utime(path, ns=times)
        assert taken_over(done_regions(cohort, SMALL_WORK, store)) == names - {region.name}
    # Touching changes nothing.
    mask_path(own_folder, "beta", FIRST).touch()
    assert taken_over(done_regions(cohort, SMALL_WORK, store)) == names


def test_a_mask_changed_in_the_middle_is_done_again_where_only_its_ends_are_read(
    own_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "_WHOLE_FILE_BYTES", 64)
    monkeypatch.setattr(fingerprints, "_END_BYTES", 16)
    cohort = open_cohort(own_folder)
    names = {region.name for region in cohort.regions}
    store = tmp_path / "store"
    done_regions(cohort, SMALL_WORK, store)
    path = mask_path(own_folder, "alpha", FIRST)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1  # the same size and ends, at another time
    path.write_bytes(data)
    assert taken_over(done_regions(cohort, SMALL_WORK, store)) == names - {FIRST.name}
    # The time of an image, of which no figure is made, does not matter.
    next(own_folder.rglob(f"{REGIONS[2].name}.svs")).touch()
    assert taken_over(done_regions(cohort, SMALL_WORK, store)) == names


def test_other_settings_or_teams_or_versions_are_done_again(
    small_cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done_regions(small_cohort, SMALL_WORK, tmp_path)
    for work in (
        replace(SMALL_WORK, team_names=("alpha",)),
        replace(SMALL_WORK, with_objects=False),
        replace(SMALL_WORK, conditions=(Condition("one", QUICK.replaced(radius=2)),)),
        replace(SMALL_WORK, conditions=(Condition("one", QUICK, Source.SUBMISSION),)),
        replace(SMALL_WORK, conditions=(Condition("one", QUICK, None, (0, 1)),)),
    ):
        assert taken_over(done_regions(small_cohort, work, tmp_path)) == set()
    scheme = replace(small_cohort.scheme, colours=tuple(reversed(small_cohort.scheme.colours)))
    done_regions(small_cohort, SMALL_WORK, tmp_path)
    assert (
        taken_over(done_regions(replace(small_cohort, scheme=scheme), SMALL_WORK, tmp_path))
        == set()
    )
    done_regions(small_cohort, SMALL_WORK, tmp_path)
    monkeypatch.setattr(jobs, "__version__", "99.0")
    assert taken_over(done_regions(small_cohort, SMALL_WORK, tmp_path)) == set()


def test_another_usual_form_is_done_again(own_folder: Path) -> None:
    """Whether a form is unusual is told by the other regions, and is a finding of this one."""
    for region in REGIONS[1:]:
        mask_path(own_folder, "alpha", region).unlink()
    mixed = open_cohort(own_folder)
    fingerprints = [region_fingerprint(mixed, region, SMALL_WORK) for region in mixed.regions]
    found = list(run_regions(mixed, SMALL_WORK, jobs=1))
    said = [
        [f.kind for f in results[0][0].findings if f.kind is FindingKind.FALLBACK]
        for results in found
    ]
    assert [len(kinds) for kinds in said] == [0, 1, 1, 1, 1]
    mask_path(own_folder, "alpha", FIRST).unlink()
    uniform = open_cohort(own_folder)
    for before, region in zip(fingerprints, uniform.regions, strict=True):
        assert region_fingerprint(uniform, region, SMALL_WORK) != before


def part_path(store: Path, name: str) -> Path:
    (path,) = store.glob(f"{name}-*.part.json")
    return path


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda text: "\0" * len(text),
        lambda text: text.replace('"tp":[', '"tp":[1', 1),
        lambda text: text + "x",
        lambda text: text.replace("napari-panoptic region 3", "napari-panoptic region 0"),
        lambda _: "[1]\n[]\n",
        lambda _: "null\n[]\n",
    ],
    ids=["half", "empty", "zeros", "a digit more", "too long", "format", "list", "null"],
)
def test_a_damaged_part_is_done_again_and_said(
    small_cohort: Cohort, tmp_path: Path, damage: Any
) -> None:
    done_regions(small_cohort, SMALL_WORK, tmp_path)
    path = part_path(tmp_path, FIRST.name)
    text = path.read_text("utf-8")
    assert damage(text) != text
    path.write_text(damage(text), encoding="utf-8")
    with pytest.raises(DamagedPartError, match="evaluated again"):
        PartStore(tmp_path).fingerprint(FIRST.name)
    done = done_regions(small_cohort, SMALL_WORK, tmp_path)
    assert taken_over(done) == {region.name for region in small_cohort.regions} - {FIRST.name}
    assert str(path) in done[FIRST.name].remark
    assert {news.remark for name, news in done.items() if name != FIRST.name} == {""}
    assert path.read_text("utf-8") == text


def test_a_part_that_vanishes_before_its_turn_is_done_again(
    small_cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = many_regions(small_cohort, 12)
    held = Held(monkeypatch, "R000")
    finished: list[str] = []
    again: list[str] = []

    def on_result(done: RegionDone) -> None:
        (again if done.is_again else finished).append(done.region)
        if len(finished) == 11 and not again:
            part_path(tmp_path, "R010").unlink()
            part_path(tmp_path, "R009").write_text("{", encoding="utf-8")
            held.may_finish.set()

    found = run_regions(many, SMALL_WORK, jobs=2, store=tmp_path, on_result=on_result)
    assert [results[0][0].region for results in found] == [r.name for r in many.regions]
    assert held.begun.count("R009") == held.begun.count("R010") == 2
    assert sorted(finished) == [r.name for r in many.regions]  # each is told once
    assert again == ["R009"]  # but for the remark on what was damaged


def test_a_half_written_part_never_has_the_name_of_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PartStore(tmp_path)

    def full(self: Path, text: str, **_: Any) -> int:
        with self.open("w", encoding="utf-8") as file:
            file.write(text[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(PanopticError, match="No space left on device; make room"):
        store.write(FIRST.name, "f", [])
    assert list(tmp_path.iterdir()) == []


def test_names_that_look_alike_as_files_are_kept_apart(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    names = ["a/b", "a b", "a_b", "A_b", "x" * 300, "x" * 299 + "y", "染色", "ß"]
    for name in names:
        store.write(name, f"of {name}", [])
    assert [store.fingerprint(name) for name in names] == [f"of {name}" for name in names]
    assert store.read(names[0]) == []
    assert store.read("never written") is None
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    store.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_odd_numbers_keep_all_their_digits(small_cohort: Cohort, tmp_path: Path) -> None:
    region = small_cohort.regions[0]
    (results,) = Experiment(("alpha",), SMALL_WORK.conditions).evaluate(small_cohort, region)
    objects = results[0].objects
    assert objects is not None
    odd = [0.1 + 0.2, -0.0, float("nan"), float("inf"), 5e-324, 1 / 3, np.nextafter(1, 2)]
    objects["iou"] = np.resize(odd, len(objects))
    store = PartStore(tmp_path)
    store.write(region.name, "f", [results])
    found = store.read(region.name)
    assert found is not None
    assert found[0][0].objects is not None
    np.testing.assert_array_equal(
        found[0][0].objects["iou"].to_numpy().view(np.int64),
        objects["iou"].to_numpy().view(np.int64),
    )
    assert_same_regions([found], [[results]])


def test_the_store_is_no_pickle(small_cohort: Cohort, tmp_path: Path) -> None:
    done_regions(small_cohort, WORK, tmp_path)
    for path in tmp_path.iterdir():
        header, body, rest = path.read_text("utf-8").split("\n")
        assert json.loads(header)["format"] == parts._FORMAT
        assert len(json.loads(body)) == len(WORK.conditions)
        assert rest == ""


# --- a cohort that changes meanwhile ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["mask", "annotation", "everything", "submission"])
def test_what_vanishes_after_the_cohort_was_opened_is_a_finding(
    own_folder: Path, tmp_path: Path, kind: str
) -> None:
    cohort = open_cohort(own_folder)
    last = REGIONS[-1]
    if kind == "mask":
        mask_path(own_folder, "alpha", last).unlink()
    elif kind == "annotation":
        next(own_folder.rglob(f"{last.name}.xml")).unlink()
    elif kind == "submission":
        shutil.rmtree(submission_folder(own_folder, "beta", last))
    else:
        shutil.rmtree(own_folder / ANNOTATIONS / last.patient)
        for path in [*own_folder.rglob(f"{last.name}*")]:
            if path.is_file():
                path.unlink()
    work = Experiment(TEAMS, (*SMALL_WORK.conditions, Condition("s", QUICK, Source.SUBMISSION)))
    found = list(run_regions(cohort, work, jobs=2, store=tmp_path / "store"))
    *others, found_last = found
    intact = [result for regions in others for results in regions for result in results]
    assert all(result.counts is not None for result in intact)
    lost = {
        (number, result.team)
        for number, results in enumerate(found_last)
        for result in results
        if result.counts is None
    }
    everywhere = {(number, team) for number in (0, 1) for team in TEAMS}
    wanted = {
        "mask": {(0, "alpha")},
        "annotation": everywhere,
        "everything": everywhere,
        "submission": {(1, "beta")},
    }[kind]
    assert lost == wanted
    for number, results in enumerate(found_last):
        for result in results:
            if (number, result.team) in lost:
                assert FindingKind.UNREADABLE in {f.kind for f in result.findings}


def test_a_file_that_vanishes_between_two_looks_is_a_finding(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there when it is checked, and gone when it is opened."""
    from napari_panoptic.io.pixels import decode

    gone = mask_path(own_folder, "alpha", FIRST)
    original = decode.check_file

    def check_and_remove(path: Path, what: str) -> None:
        original(path, what)
        if path == gone:
            path.unlink()

    monkeypatch.setattr(decode, "check_file", check_and_remove)
    cohort = open_cohort(own_folder)
    ((alpha, beta),) = Experiment(TEAMS, SMALL_WORK.conditions).evaluate(cohort, cohort.regions[0])
    assert beta.counts is not None
    assert alpha.counts is None
    (finding,) = [f for f in alpha.findings if f.kind is FindingKind.UNREADABLE]
    assert finding.path == gone
    assert "No such file" in finding.message


# --- the command, interrupted -----------------------------------------------------------------


def tables_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.csv").read_bytes() for name in TABLES}


N_LARGE, N_STOPPED = 6, 4
"""Regions of a cohort, and the one before which a run stops."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_cohort(tmp_path_factory.mktemp("large"), N_LARGE)


@pytest.fixture(scope="module")
def large_tables(large: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What comes of it where nothing interrupts."""
    output = tmp_path_factory.mktemp("whole")
    assert main(["evaluate", str(large), "--output", str(output)]) == 0
    return tables_of(output)


def evaluating(cohort: Path, output: Path, scheduler: str) -> list[str]:
    """Return the command line of an evaluation."""
    options = ["--output", str(output), "--jobs", "2", "--scheduler", scheduler]
    return ["evaluate", str(cohort), *options]


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C reaches the workers otherwise here")
@pytest.mark.parametrize(
    "scheduler", ["threads", pytest.param("processes", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("how", ["kill -9", "Ctrl-C"])
def test_an_interrupted_run_goes_on_and_ends_with_the_same_tables(
    large: Path,
    large_tables: dict[str, bytes],
    tmp_path: Path,
    how: str,
    scheduler: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "out"
    with stopped_at(N_STOPPED, how, *evaluating(large, output, scheduler)) as process:
        said = process.communicate(timeout=500)[1]
    assert not list(output.glob("*.csv"))
    if how == "Ctrl-C":
        assert process.returncode == 130
        assert "run the same command again to resume" in said
        assert "Traceback" not in said
    n_done = len(list((output / ".parts").glob("*.part.json")))
    assert n_done in (N_STOPPED - 1, N_STOPPED)
    capsys.readouterr()
    assert main(["evaluate", str(large), "--output", str(output), "--jobs", "2"]) == 0
    assert (
        f"{n_done} of {N_LARGE} regions were done by an interrupted run" in capsys.readouterr().err
    )
    assert tables_of(output) == large_tables
    assert sorted(path.name for path in output.iterdir()) == sorted(
        [*(f"{name}.csv" for name in TABLES), "evaluation.json"]
    )


def children_of(pid: int) -> set[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=,ppid=", "-A"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    )
    parents = {int(line.split()[0]): int(line.split()[1]) for line in found.stdout.splitlines()}
    family = {pid}
    while grown := {child for child, parent in parents.items() if parent in family} - family:
        family |= grown
    return family - {pid}


def test_workers_end_with_the_process_that_started_them(large: Path, tmp_path: Path) -> None:
    with stopped_at(2, "wait", *evaluating(large, tmp_path, "processes")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        workers = children_of(process.pid)
        assert len(workers) >= 2
        process.kill()
    wait_until(
        lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers),
        "workers are left behind",
        pause_s=0.05,
    )


def test_no_resume_begins_anew(small_folder: Path, tmp_path: Path, capsys: Any) -> None:
    cohort = open_cohort(small_folder)
    work = Experiment(TEAMS, (Condition("disentangled", EvaluationSettings()),))
    store = tmp_path / "out" / ".parts"
    arguments = ["evaluate", str(small_folder), "--output", str(tmp_path / "out")]
    for options, said in (["--no-resume"], False), ([], True), (["--resume"], True):
        done_regions(cohort, work, store)
        assert main([*arguments, *options]) == 0
        assert ("5 of 5 regions were done by an interrupted run" in capsys.readouterr().err) == said
        assert not store.exists()


def test_a_damaged_part_is_said_by_the_command(
    small_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = Experiment(TEAMS, (Condition("disentangled", EvaluationSettings()),))
    store = tmp_path / ".parts"
    done_regions(open_cohort(small_folder), work, store)
    path = part_path(store, FIRST.name)
    path.write_bytes(path.read_bytes()[:-20])
    assert main(["evaluate", str(small_folder), "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert f"napari-panoptic: {path}: the stored results are damaged or half-written" in said
    assert "4 of 5 regions" in said


def test_the_example_of_the_documentation_runs(
    small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    text = (REPOSITORY / "docs" / "tasks" / "conditions.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "COHORT").symlink_to(small_folder)
    exec(compile(example, "conditions.md", "exec"), {})  # noqa: S102 - the example is the test
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(" {")[0] for line in printed[:4]] == [
        condition.name for condition in lessons_conditions()
    ]
    assert len(list((tmp_path / "parts").iterdir())) == len(REGIONS)


# --- a cluster --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.wait_for_workers(2)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster_in_one_process(tmp_path_factory.mktemp("cluster")) as address:
        yield address


def test_a_cluster_gives_the_same_bit_by_bit(
    address: str, small_cohort: Cohort, wanted: list[RegionResults], tmp_path: Path
) -> None:
    for store in (None, tmp_path, tmp_path):
        found = run_regions(small_cohort, WORK, scheduler=address, store=store)
        assert_same_regions(list(found), wanted)


def test_few_regions_are_in_flight(
    address: str, small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 0
    original = jobs._Pool.submit
    running: set[Any] = set()

    def submit(pool: Any, *arguments: Any) -> Any:
        nonlocal most
        future = original(pool, *arguments)
        running.add(future)
        most = max(most, sum(not future.done() for future in running))
        return future

    monkeypatch.setattr(jobs._Pool, "submit", submit)
    many = many_regions(small_cohort, 12)
    assert len(list(run_regions(many, SMALL_WORK, scheduler=address))) == 12
    assert len(running) == 12
    assert most <= 4
    running.clear()
    most = 0
    assert len(list(run_regions(many, SMALL_WORK, scheduler=address, jobs=1))) == 12
    assert most == 1


def test_workers_of_another_version_are_refused(
    address: str, small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "__version__", "99.0")
    with pytest.raises(PanopticError, match=r"this is 99\.0: install the same version everywhere"):
        list(run_regions(small_cohort, SMALL_WORK, scheduler=address))


@pytest.mark.long
def test_a_killed_worker_is_survived(
    cluster: Cluster, large: Path, large_tables: dict[str, bytes], tmp_path: Path
) -> None:
    """The cluster's last test but two: it costs a worker."""
    with stopped_at(
        N_STOPPED, "wait", *evaluating(large, tmp_path / "out", cluster.address)
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        cluster.workers[0].kill()
        process.communicate(timeout=500)  # closes its input, and it goes on
    assert process.returncode == 0
    assert tables_of(tmp_path / "out") == large_tables


N_LOST = 20
"""Regions of a run that loses its cluster: four are in flight when that happens."""


def lose_in_the_middle(
    cohort: Cohort, cluster: Cluster, lost: list[Any], said: str, store: Path
) -> None:
    """Kill processes at the first result, when most regions have not been submitted."""
    many = many_regions(cohort, N_LOST)

    def lose(_: RegionDone) -> None:
        for process in lost:
            process.kill()

    with pytest.raises(PanopticError, match=said):
        list(run_regions(many, SMALL_WORK, scheduler=cluster.address, store=store, on_result=lose))
    n_done = len(list(store.glob("*.part.json")))
    assert 0 < n_done < N_LOST
    news: list[RegionDone] = []
    whole = list(run_regions(many, SMALL_WORK, jobs=2, store=store, on_result=news.append))
    assert len(whole) == N_LOST
    assert sum(done.is_taken_over for done in news) == n_done


@pytest.mark.long
def test_a_cluster_that_loses_its_workers_in_the_middle(
    cluster: Cluster,
    small_cohort: Cohort,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The cluster's last test but one: it costs all workers."""
    monkeypatch.setattr(dask_cluster, "_WITHOUT_WORKERS_S", 1.0)
    lose_in_the_middle(small_cohort, cluster, cluster.workers, "has lost all its workers", tmp_path)
    assert "Traceback" not in caplog.text


@pytest.mark.long
def test_no_workers_are_an_error(cluster: Cluster, small_cohort: Cohort) -> None:
    """The cluster's last test."""
    for worker in cluster.workers:
        worker.kill()
        worker.wait(30)

    def is_refused() -> bool:
        try:
            list(run_regions(small_cohort, SMALL_WORK, scheduler=cluster.address))
        except PanopticError as error:
            assert "has no workers: start some with 'dask worker" in str(error)  # noqa: PT017
            return True
        return False

    wait_until(is_refused)


@pytest.mark.long
def test_a_cluster_that_loses_its_scheduler_in_the_middle(
    small_cohort: Cohort, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.wait_for_workers(2)
        lost = [cluster.scheduler]
        lose_in_the_middle(
            small_cohort, cluster, lost, "does not answer any more", tmp_path / "store"
        )
        assert "Traceback" not in caplog.text
    finally:
        cluster.stop()


def test_an_address_that_does_not_answer(
    small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(dask_cluster, "_CONNECT_S", 1.0)
    address = "tcp://127.0.0.1:1"
    arguments = ["evaluate", str(small_folder), "--output", str(tmp_path / "out")]
    assert main([*arguments, "--scheduler", address]) == 1
    assert f"no Dask scheduler answers at '{address}'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("address", ["nonsense://x", "localhost:port", "nowhere", "tcp://"])
def test_what_is_no_address_is_not_waited_for(small_cohort: Cohort, address: str) -> None:
    with pytest.raises(SettingsError, match=f"'{address}' is no address"):
        list(run_regions(small_cohort, SMALL_WORK, scheduler=address))


def test_distributed_is_asked_for_where_it_is_not_installed(
    small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(PanopticError, match=r"pip install 'napari-panoptic\[dask\]'"):
        list(run_regions(small_cohort, SMALL_WORK, scheduler="tcp://127.0.0.1:8786"))


def test_each_region_counts_once_and_remarks_are_passed_on(small_cohort: Cohort) -> None:
    told: list[tuple[float, str]] = []
    remarks: list[str] = []
    many = many_regions(small_cohort, 4)
    progress = Progress(report=lambda *one: told.append(one), remark=remarks.append)
    count = jobs.counting(many, progress)
    for name, remark in (("a", ""), ("b", ""), ("b", "the worker was killed")):
        count(RegionDone(name, is_taken_over=False, remark=remark, is_again=bool(remark)))
    assert told == [(0.25, "1 of 4 regions"), (0.5, "2 of 4 regions"), (0.5, "2 of 4 regions")]
    assert remarks == ["the worker was killed"]

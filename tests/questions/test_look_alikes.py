"""Look-alikes: against loops, planted failures, shuffled ones, and the classes of real nuclei."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from napari_panoptic import open_cohort
from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.io.cohorts.nuclei import open_cohort as nuclei_cohort
from napari_panoptic.questions.answer import UnansweredError
from napari_panoptic.questions.engines.cohort_objects import CohortObjects
from napari_panoptic.questions.look_alikes import (
    COMPARED,
    LARGEST,
    LOOK_ALIKES,
    LookAlikes,
    Scale,
    more_than_usual,
    nearest,
    read_features,
    read_links,
    standardised,
)
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.links import LinkMaker, ObjectLink
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from tests.support.paths import SHARED_CASES, needs_shared_cases

TEAM = "alpha"
NAMES = ["solidity", "area_px", "mine"]


def some_objects(cohort: Cohort, seed: int = 0, patients: int = 8, each: int = 120) -> pd.DataFrame:
    """Draw objects of patients that differ in offset and scale; a tenth are of an odd kind.

    Nine tenths of the odd kind are merged, and a tenth of the others missed.
    """
    rng = np.random.default_rng(seed)
    n = patients * each
    patient = np.repeat(np.arange(patients), each)
    is_odd = rng.random(n) < 0.1
    fails = rng.random(n) < np.where(is_odd, 0.9, 0.1)
    features = rng.normal(size=(n, 4)) + 3.0 * is_odd[:, None]
    features = features * rng.uniform(0.5, 2, (patients, 1))[patient]
    features += rng.normal(scale=3, size=(patients, 4))[patient]
    return pd.DataFrame(
        {
            "patient": [f"patient {k}" for k in patient],
            "region": [cohort.regions[k % len(cohort.regions)].name for k in patient],
            "side": "reference",
            "id": np.arange(1, n + 1),
            "status": np.where(fails, "FN", "TP"),
            "cause": np.where(fails, np.where(is_odd, "merged", "missed"), ""),
            "class": "Lymphocyte",
            **{f"x{k}": features[:, k] for k in range(4)},
        }
    )


def asked_of(cohort: Cohort, frame: pd.DataFrame, rows: list[int], **asked) -> LookAlikes:
    """Ask for the look-alikes of rows."""
    maker = LinkMaker.of(cohort)
    links = [
        maker.link(frame.at[row, "region"], TEAM, [(Side.REFERENCE, int(frame.at[row, "id"]))])
        for row in rows
    ]
    return LookAlikes(links=tuple(links), **asked)


def slow_neighbours(
    frame: pd.DataFrame, patients: list[str], seeds: list[int], scale: Scale, most: int
) -> list[tuple[float, int]]:
    """Standardise and compare object by object; the first to be found wins."""

    def scaled(row: int, name: str) -> float:
        def values(rows: list[int]) -> list[float]:
            known = [float(frame[name][r]) for r in rows if not np.isnan(frame[name][r])]
            return [float(np.log1p(v)) for v in known] if name.endswith("_px") else known

        def mad(known: list[float]) -> float:
            middle = statistics.median(known)
            return 1.4826 * statistics.median(abs(value - middle) for value in known)

        every = list(range(len(frame)))
        group = [r for r in every if scale is Scale.COHORT or patients[r] == patients[row]]
        (value,) = values([row]) or [statistics.median(values(group))]
        spread = mad(values(group)) if len(group) >= 10 else 0
        found = (value - statistics.median(values(group))) / (spread or mad(values(every)))
        return min(max(found, -LARGEST), LARGEST)

    table = [[scaled(row, name) for name in NAMES] for row in range(len(frame))]
    found = []
    for row in set(range(len(frame))) - set(seeds):
        apart = [
            statistics.mean((a - b) ** 2 for a, b in zip(table[row], table[s], strict=True)) ** 0.5
            for s in seeds
            if patients[s] != patients[row]
        ]
        found += [(min(apart), row)] if apart else []
    return sorted(found)[:most]


@pytest.mark.parametrize("scale", Scale)
def test_neighbours_are_those_of_loops(scale: Scale) -> None:
    rng = np.random.default_rng(3)
    patients = ["a"] * 12 + ["b"] * 15 + ["c"] * 4
    frame = pd.DataFrame(
        {
            "solidity": rng.random(31),
            "area_px": rng.lognormal(4, 1, 31),
            "mine": np.where(rng.random(31) < 0.2, np.nan, rng.normal(size=31)),
            "same": 1.0,
            "undefined": np.nan,
        }
    )
    seeds = [2, 14]
    values = standardised(frame, np.array(patients), scale)
    assert values.names == tuple(NAMES)
    assert values.useless == ("same", "undefined")
    assert values.missing == frame["mine"].isna().sum()
    found = nearest(values.numbers, np.array(seeds), np.array(patients), 9)
    wanted = slow_neighbours(frame, patients, seeds, scale, 9)
    assert found.rows.tolist() == [row for _, row in wanted]
    assert found.distances == pytest.approx([distance for distance, _ in wanted])
    assert set(found.candidates) == set(range(31)) - set(seeds)


def test_a_planted_kind_of_failure_is_found(small_cohort: Cohort) -> None:
    frame = some_objects(small_cohort)
    seed = int(np.flatnonzero(frame["cause"] == "merged")[0])
    asked = asked_of(small_cohort, frame, [seed])
    answer = asked.answered(small_cohort, CohortObjects(TEAM, frame))
    rows = answer.files["look-alikes.csv"]
    assert (rows["cause"] == "merged").sum() >= 15
    assert frame.at[seed, "patient"] not in set(rows["patient"])
    assert rows["distance"].is_monotonic_increasing
    record = answer.record.content
    assert record["is_more"]
    assert record["low"] > record["rate_of_all"]
    assert f"{(rows['status'] == 'FN').sum()} of the 20 nuclei of other patients" in answer.headline
    assert "most often merged." in answer.headline
    assert "no more than usual" not in answer.headline


def test_shuffled_failures_are_no_more_than_usual(small_cohort: Cohort) -> None:
    more, tries = 0, 120
    frame = some_objects(small_cohort, patients=6, each=80)
    patients = frame["patient"].to_numpy()
    values = standardised(frame[[f"x{k}" for k in range(4)]], patients, Scale.PATIENT)
    fails = (frame["status"] == "FN").to_numpy()
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        found = nearest(values.numbers, rng.integers(0, len(frame), 1), patients, 20)
        shuffled = rng.permutation(fails)
        more += more_than_usual(found.rows, found.candidates, shuffled, patients).is_more
    assert more <= 0.05 * tries


def test_objects_that_do_not_fail_more_are_called_usual(small_cohort: Cohort) -> None:
    frame = some_objects(small_cohort).assign(status="TP", cause="")
    answer = asked_of(small_cohort, frame, [0]).answered(small_cohort, CohortObjects(TEAM, frame))
    assert answer.headline.startswith("0 of the 20 nuclei of other patients that look most alike f")
    assert "; this is no more than usual." in answer.headline


def test_missing_and_odd_values_are_reported(small_cohort: Cohort) -> None:
    frame = some_objects(small_cohort).assign(touching="no", useless=np.nan)
    frame.loc[:4, "x0"] = np.nan
    asked = asked_of(small_cohort, frame, [0, 200], neighbours=5, among="all", scale="cohort")
    asked = replace(asked, links=(*asked.links, unknown(small_cohort)))
    answer = asked.answered(small_cohort, CohortObjects(TEAM, frame))
    assert answer.notes == (
        "Compared with 2 objects of the links by 4 features.",
        "Objects of the links that do not count and are left out: 1.",
        "Missing values, which count as the median: 5.",
        "Undefined, or the same for all: useless.",
    )
    assert len(answer.files["look-alikes.csv"]) == 5
    with pytest.raises(UnansweredError, match="no object of the links counts"):
        LookAlikes(links=(unknown(small_cohort),)).answered(
            small_cohort, CohortObjects(TEAM, frame)
        )


def unknown(cohort: Cohort) -> ObjectLink:
    """Return a link to an object that is not there."""
    return LinkMaker.of(cohort).link(cohort.regions[0].name, TEAM, [(Side.REFERENCE, 10**6)])


def test_contradictions_and_gaps_are_named(small_cohort: Cohort) -> None:
    maker, region = LinkMaker.of(small_cohort), small_cohort.regions[0].name
    strict = EvaluationSettings(iou_threshold=0.7)
    linked = LinkMaker.of(small_cohort, strict).link(region, TEAM, [(Side.REFERENCE, 1)])
    predicted = maker.link(region, TEAM, [(Side.PREDICTION, 1)])
    assert LookAlikes(links=(linked,)).why_not(small_cohort) == ""
    assert LookAlikes(links=(linked,)).matching.iou_threshold == 0.7
    other = EvaluationSettings(iou_threshold=0.6)
    for asked, problem in (
        (LookAlikes(team=TEAM), "--link"),
        (LookAlikes(links=(maker.link(region, TEAM),)), "--link"),
        (LookAlikes(links=(maker.link(region, "", [(Side.REFERENCE, 1)]),)), "--team"),
        (LookAlikes(links=(linked,), team="beta"), "one team, found 2 .alpha and beta|beta and al"),
        (LookAlikes(links=(linked,), settings=other), "one settings, found 2;"),
        (LookAlikes(links=(linked, predicted)), "one side, found 2"),
    ):
        with pytest.raises(AssertionError, match=problem):
            raise AssertionError(asked.why_not(small_cohort))
    with pytest.raises(SettingsError, match="numbers, found class and touching"):
        read_features("class,area_px,touching")


def test_rows_lead_to_their_objects(nuclei_sample: Path, tmp_path: Path) -> None:
    cohort = open_cohort(nuclei_sample)
    first = cohort.ask("causes", team="merger").objects("causes.csv", 0).iloc[-1]
    own = FailureName("merger", first["region"], Side(first["side"]), int(first["id"]))
    link = LinkMaker.of(cohort.cohort).to([own])
    out = tmp_path / "out"
    arguments = ["look-alikes", str(nuclei_sample), "--link", link, "-o", str(out)]
    assert main([*arguments, "--among", "all", "--neighbours", "7"]) == 0
    rows = pd.read_csv(out / "look-alikes.csv")
    assert list(rows) == LOOK_ALIKES.keys
    assert len(rows) == 7
    record = json.loads((out / "look-alikes.json").read_text("utf-8"))
    assert record["seeds"] == [link]
    assert set(record["features"]) | set(record["features_without_use"]) == set(COMPARED)
    found = cohort.ask("look-alikes", links=read_links(link), among="all", neighbours=7)
    one = found.objects("look-alikes.csv", 0)
    place = ["region", "side", "id"]
    assert one[place].to_numpy().tolist() == rows[place][:1].to_numpy().tolist()
    with pytest.raises(SystemExit) as refused:
        main([*arguments, "--team", "careful"])
    assert refused.value.code == 2


@needs_shared_cases
def test_look_alikes_of_real_nuclei_have_their_class() -> None:
    """Classes are not compared."""
    cohort = nuclei_cohort(SHARED_CASES / "monusac")
    frame = LookAlikes(team="jitter").gather(cohort).of_side(Side.REFERENCE)
    patients, classes = frame["patient"].to_numpy(), frame["class"].to_numpy()
    values = standardised(frame[list(COMPARED)], patients, Scale.PATIENT)
    seeds = np.random.default_rng(0).choice(len(frame), 400, replace=False)
    near = [nearest(values.numbers, np.array([seed]), patients, 10).rows for seed in seeds]
    same = [classes[rows] == classes[seed] for rows, seed in zip(near, seeds, strict=True)]
    assert np.mean(same) >= 0.60

"""Objects of a cohort with covariates, and what a search over them names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.features import known
from napari_panoptic.features.region_side import RegionSide
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.tables.metadata import Metadata
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.questions.answer import UnansweredError
from napari_panoptic.questions.engines.cohort_objects import (
    CAUSES_OF,
    CohortObjects,
    common_slices,
    is_failure,
    joined_objects,
)
from napari_panoptic.questions.question import gather_together
from napari_panoptic.questions.slices import Slices
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from tests.support.builders import noise, write_svs
from tests.support.small_cohort import ANNOTATIONS, REGIONS, write_cohort

SETTINGS = EvaluationSettings()
TEAM = "alpha"


def cohort_objects(cohort: Cohort, *, table: pd.DataFrame | None = None, **asked) -> CohortObjects:
    """Return the objects of a team over a cohort, with the covariates of a table."""
    question = Slices(team=TEAM, settings=SETTINGS, **asked)
    if table is None:
        return question.gather(cohort)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "covariates.csv"
        table.to_csv(path, index=False)
        return replace(question, covariates=path).gather(cohort)


@pytest.fixture(scope="module")
def objects(small_cohort: Cohort) -> CohortObjects:
    return cohort_objects(small_cohort)


def test_every_object_that_counts_has_its_outcome_and_covariates(
    small_cohort: Cohort, objects: CohortObjects
) -> None:
    expected = []
    for region in small_cohort.regions:
        snapshot = load_region(small_cohort, region.name, SETTINGS)
        if (evaluation := snapshot.evaluations.get(TEAM)) is None:
            continue
        for side in Side:
            outcomes = evaluation.outcomes.side(side)
            labels = snapshot.reference if side is Side.REFERENCE else snapshot.predictions[TEAM]
            assert labels is not None
            own = RegionSide(
                region.patient, region.name, TEAM, labels, outcomes, snapshot.image, snapshot.mpp
            )
            frame = evaluation.outcomes.side_frame(side)[["side", "id", "status", "cause"]]
            frame = frame.assign(region=region.name, patient=region.patient)
            expected.append(frame.assign(**known.region_features(own, {})))
    wanted = pd.concat(expected, ignore_index=True)
    wanted = wanted[wanted["status"] != "ignored"].reset_index(drop=True)
    wanted = wanted[list(objects.frame)].astype(objects.frame.dtypes)  # words: str or object
    pd.testing.assert_frame_equal(objects.frame, wanted)
    assert not objects.frame["haematoxylin_od"].isna().any()


def test_failures_are_those_of_the_side_and_the_cause(objects: CohortObjects) -> None:
    for side, failing in ((Side.REFERENCE, ("FN", "misclassified")), (Side.PREDICTION, ("FP",))):
        frame = objects.of_side(side)
        fails = is_failure(frame, side)
        assert fails.tolist() == [status in failing for status in frame["status"]]
        by_cause = [is_failure(frame, side, cause) for cause in CAUSES_OF[side]]
        assert np.sum(by_cause, axis=0).tolist() == fails.astype(int).tolist()
    with pytest.raises(SettingsError, match="'fragment'"):
        is_failure(objects.of_side(Side.REFERENCE), Side.REFERENCE, "fragment")


def test_rows_of_a_slice_name_their_objects(objects: CohortObjects) -> None:
    found = common_slices(objects, permutations=19)
    frame = objects.of_side(Side.REFERENCE)
    assert found.objects == len(frame)
    for own in found.slices:
        listed = frame.iloc[own.rows]
        assert len(listed[["region", "side", "id"]].drop_duplicates()) == own.objects


def test_columns_of_patients_become_covariates(small_cohort: Cohort) -> None:
    first, *others = small_cohort.patients
    metadata = Metadata(
        {
            "organ": {first: "lung", **dict.fromkeys(others, "kidney")},
            "age": {first: "61"},
            "class": dict.fromkeys(small_cohort.patients, "x"),
        }
    )
    found = cohort_objects(small_cohort, metadata=metadata)
    is_first = found.frame["patient"] == first
    assert (found.frame["organ"] == np.where(is_first, "lung", "kidney")).all()
    assert (found.frame.loc[is_first, "age"] == 61).all()
    assert found.frame.loc[~is_first, "age"].isna().all()
    assert any("'class' of the table of patients" in f.message for f in found.findings)
    assert set(found.frame["class"]) <= set(small_cohort.scheme.names)


def test_a_table_adds_covariates_and_its_strangers_are_reported(
    small_cohort: Cohort, objects: CohortObjects
) -> None:
    frame = objects.frame[["patient", "region", "side", "id"]]
    known = frame[frame["side"] == "reference"].iloc[:-1].sample(frac=1, random_state=0)
    table = known.assign(blur=[f"{k / 8}" for k in range(len(known))])
    strange = table.iloc[:2].assign(patient="nobody")
    both = pd.concat([table, strange], ignore_index=True)
    found = cohort_objects(small_cohort, table=both)
    merged = found.frame.merge(table.astype({"blur": float}), "left", list(frame))
    np.testing.assert_array_equal(merged["blur_x"], merged["blur_y"])
    assert found.frame["blur"].notna().sum() == len(known)
    messages = [f.message for f in found.findings]
    assert any(m.startswith(f"2 of {len(both)} rows of the table") for m in messages)
    assert any("'nobody'" in m for m in messages)
    assert any("1 of" in m and "objects are not in the table" in m for m in messages)
    with pytest.raises(SettingsError, match="area_px, which exists already"):
        cohort_objects(small_cohort, table=table.rename(columns={"blur": "area_px"}))


@pytest.mark.parametrize("name", ["index", "level_0", "row", "_merge"])
def test_columns_of_a_table_may_have_the_names_that_pandas_gives(
    small_cohort: Cohort, objects: CohortObjects, name: str
) -> None:
    frame = objects.frame[["patient", "region", "side", "id"]]
    table = frame.assign(tenfold=frame["id"].map(lambda own: f"{10 * own}"))
    table = table.sample(frac=1, random_state=0)
    table[name] = np.arange(len(table))[::-1].astype(str)
    found = cohort_objects(small_cohort, table=table)
    assert (found.frame["tenfold"] == 10 * found.frame["id"]).all()
    by_object = table.set_index(list(frame))[name].astype(float)
    expected = by_object.loc[pd.MultiIndex.from_frame(found.frame[list(frame)])]
    np.testing.assert_array_equal(found.frame[name], expected)


def test_regions_of_different_scales_are_measured_in_micrometres(
    tmp_path: Path, objects: CohortObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_cohort(tmp_path / "cohort")
    region = REGIONS[0]
    picture = root / ANNOTATIONS / region.patient / f"{region.name}.svs"
    write_svs(picture, noise(*region.shape), mpp=0.5)
    plugin = {"plugin": lambda side: {"tiles_px": np.arange(len(side))}}
    monkeypatch.setattr(known, "known_functions", lambda: plugin)
    found = cohort_objects(open_cohort(root)).frame
    in_px = objects.frame
    # Only this package's covariates are known to be lengths, areas or densities.
    assert [name for name in found if str(name).endswith("_px")] == ["tiles_px"]
    mpp = np.where(found["region"] == region.name, 0.5, 0.25)
    for name, power in (("area", 2), ("frame_distance", 1), ("neighbour_distance", 1)):
        expected = in_px[f"{name}_px"] * mpp**power
        np.testing.assert_allclose(found[f"{name}_um"], expected, equal_nan=True)


def test_a_region_without_an_image_has_no_optical_densities(tmp_path: Path) -> None:
    root = write_cohort(tmp_path / "cohort")
    region = REGIONS[1]
    (root / ANNOTATIONS / region.patient / f"{region.name}.svs").unlink()
    found = cohort_objects(open_cohort(root))
    here = found.frame["region"] == region.name
    assert here.any()
    assert (found.frame["haematoxylin_od"].isna() == here).all()
    assert any("optical densities are undefined in 1 of" in f.message for f in found.findings)


def test_large_regions_are_left_out_and_reported(small_cohort: Cohort) -> None:
    with pytest.raises(UnansweredError) as error:
        cohort_objects(small_cohort, held_up_to_px=10)
    kinds = [finding.kind for finding in error.value.findings]
    assert kinds.count(FindingKind.FALLBACK) == len(small_cohort.regions)
    assert common_slices(joined_objects(TEAM, [])).slices == ()


def test_reading_can_be_cancelled(small_cohort: Cohort) -> None:
    with pytest.raises(StoppedError):
        Slices(team=TEAM).gather(small_cohort, Progress(is_wanted=lambda: False))


def test_the_annotation_has_the_covariates_that_it_has_for_each_team_alone(
    small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [Slices(team=team, settings=SETTINGS) for team in (TEAM, "beta")]
    alone = [own.gather(small_cohort) for own in asked]
    sides: list[str] = []
    original = known.measured

    def counted(own: RegionSide, names: tuple[str, ...]) -> dict[str, Any]:
        sides.append(f"{own.region} {own.outcomes.side}")
        return original(own, names)

    monkeypatch.setattr(f"{joined_objects.__module__}.measured", counted)
    together = gather_together(asked, small_cohort)
    for own, found in zip(alone, together, strict=True):
        pd.testing.assert_frame_equal(found.frame, own.frame)
    annotations = [side for side in sides if side.endswith(str(Side.REFERENCE))]
    assert len(annotations) == len(set(annotations)) < len(sides) - len(annotations)

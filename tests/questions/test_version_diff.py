from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.common.errors import LabelError
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate_pair
from napari_panoptic.questions.engines.version_diff import (
    DIFF_COLUMNS,
    PAIRS,
    Change,
    disc_iou,
    disc_pairs,
    fp_rows,
    pair_rows,
    pixel_pairs,
    version_diff,
)
from napari_panoptic.values.vocabulary import Side
from tests.support.examples import examples
from tests.support.label_cases import random_pair
from tests.support.version_rows import two_versions

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=examples(15), derandomize=True, deadline=None)

Key = tuple[str, str, int]
Row = dict[str, object]


def objects_of(version: pd.DataFrame, side: str) -> dict[Key, Row]:
    """Return the objects of a side as plain dictionaries."""
    return {
        (row["patient"], row["region"], row["id"]): row
        for row in version.to_dict("records")
        if row["side"] == side
    }


def random_fp_pairs(rng: np.random.Generator, old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Pair some FPs of each region at random, each at most once."""
    parts = [PAIRS.frame(())]
    for place, own in fp_rows(old).groupby(["patient", "region"]):
        here = (new["patient"] == place[0]) & (new["region"] == place[1])
        other = fp_rows(new[here])
        n = int(rng.integers(0, min(len(own), len(other)) + 1))
        ids = (rng.permutation(one["id"].to_numpy(copy=True))[:n] for one in (own, other))
        parts.append(pair_rows((str(place[0]), str(place[1])), *ids))
    return pd.concat(parts, ignore_index=True)


@few
@given(seeds)
def test_reference_objects_against_sets(seed: int) -> None:
    old, new = two_versions(np.random.default_rng(seed))
    diff = version_diff(old, new)
    before, after = objects_of(old, "reference"), objects_of(new, "reference")
    kept = {key for key in before if before[key]["status"] != "ignored"}
    right = [
        {key for key, row in version.items() if row["status"] == "TP"}
        for version in (before, after)
    ]
    failing = [kept - own for own in right]
    reclassified = {
        key
        for key in failing[0] & failing[1]
        if before[key]["status"] == after[key]["status"] == "misclassified"
        and before[key]["partner_class"] != after[key]["partner_class"]
    }
    expected = {
        "fixed": failing[0] & right[1],
        "broken": right[0] & failing[1],
        "still-right": right[0] & right[1],
        "reclassified": reclassified,
        "still-failing": (failing[0] & failing[1]) - reclassified,
    }
    assert expected["fixed"] == right[1] - right[0]
    assert expected["broken"] == right[0] - right[1]
    found = objects_of(diff.rows, "reference")
    for change, keys in expected.items():
        assert {key for key, row in found.items() if row["change"] == change} == keys
    assert set(found) == kept
    assert diff.ignored == len(before) - len(kept)
    assert diff.ignored_once == 0
    for key, row in found.items():
        for when, version in (("before", before), ("after", after)):
            for name in ("status", "cause", "partner_class"):
                assert row[f"{name}_{when}"] == version[key][name]
            assert row[f"iou_{when}"] == version[key]["iou"]
            assert row[f"partner_{when}"] is version[key]["partner_id"] or (
                row[f"partner_{when}"] == version[key]["partner_id"]
            )
        step = after[key]["iou"] - before[key]["iou"]
        assert row["iou_change"] == ("up" if step > 0.1 else "down" if step < -0.1 else "")
        causes = {before[key]["cause"], after[key]["cause"]}
        assert row["cause_changed"] == (len(causes) == 2 and "" not in causes)
        classes = {before[key]["partner_class"], after[key]["partner_class"]}
        assert row["class_changed"] == (len(classes) == 2 and "" not in classes)


@few
@given(seeds)
def test_fps_against_sets_and_counts_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    old, new = two_versions(rng)
    pairs = random_fp_pairs(rng, old, new)
    diff = version_diff(old, new, same_fps=pairs)
    fps = [
        {key: row for key, row in objects_of(own, "prediction").items() if row["status"] == "FP"}
        for own in (old, new)
    ]
    partner = {(p, r, b): (p, r, a) for p, r, a, b in pairs.itertuples(index=False)}
    predictions = diff.rows[diff.rows["side"] == "prediction"]
    found = {
        change: {
            (row["patient"], row["region"], row["id"])
            for row in predictions[predictions["change"] == change].to_dict("records")
        }
        for change in ("new", "persistent", "gone")
    }
    assert found["new"] == set(fps[1]) - set(partner)
    assert found["persistent"] == set(partner)
    assert found["gone"] == set(fps[0]) - set(partner.values())
    for row in predictions.to_dict("records"):
        key = (row["patient"], row["region"], row["id"])
        was = (
            fps[0][key if row["change"] == "gone" else partner[key]]
            if row["change"] != "new"
            else None
        )
        is_ = None if row["change"] == "gone" else fps[1][key]
        for when, version in (("before", was), ("after", is_)):
            assert row[f"status_{when}"] == ("" if version is None else "FP")
            assert row[f"cause_{when}"] == ("" if version is None else version["cause"])
            assert pd.isna(row[f"partner_{when}"])
            assert (version is None and np.isnan(row[f"iou_{when}"])) or (
                row[f"iou_{when}"] == version["iou"]
            )
        assert row["class"] == (is_ or was)["class"]
        assert row["area_px"] == (is_ or was)["area_px"]
        assert row["class_before"] == ("" if was is None else was["class"])
        assert pd.isna(row["id_before"]) if was is None else row["id_before"] == was["id"]
    counts = diff.counts
    assert sum(counts.values()) == len(diff.rows)
    assert counts[Change.GONE] + counts[Change.PERSISTENT] == len(fps[0])
    assert counts[Change.NEW] + counts[Change.PERSISTENT] == len(fps[1])
    tps = [int(((v["side"] == "reference") & (v["status"] == "TP")).sum()) for v in (old, new)]
    assert counts[Change.BROKEN] + counts[Change.STILL_RIGHT] == tps[0]
    assert counts[Change.FIXED] + counts[Change.STILL_RIGHT] == tps[1]


@few
@given(seeds)
def test_swapped_versions_swap_the_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    old, new = two_versions(rng)
    pairs = random_fp_pairs(rng, old, new)
    swapped = pairs.rename(columns={"id_before": "id_after", "id_after": "id_before"})
    there = version_diff(old, new, same_fps=pairs)
    back = version_diff(new, old, same_fps=swapped)
    opposite = {Change.FIXED: Change.BROKEN, Change.NEW: Change.GONE}
    opposite |= {after: before for before, after in opposite.items()}
    for change, n in there.counts.items():
        assert back.counts[opposite.get(change, change)] == n
    for side in Side:
        mirrored = back.matrix(side).T
        mirrored.index.name, mirrored.columns.name = "before", "after"
        pd.testing.assert_frame_equal(there.matrix(side), mirrored)


@settings(max_examples=3, derandomize=True, deadline=None)
@given(seeds)
def test_cells_and_groups_list_their_objects(seed: int) -> None:
    diff = version_diff(*two_versions(np.random.default_rng(seed)))
    for side in Side:
        matrix = diff.matrix(side)
        for before in matrix.index:
            for after in matrix.columns:
                assert len(diff.cell(side, before, after)) == matrix.loc[before, after]
        assert matrix.to_numpy().sum() == (diff.rows["side"] == str(side)).sum()
    for keys in (["class"], ["patient"], ["patient", "region"]):
        groups = diff.by(*keys)
        assert {Change(name): int(groups[name].sum()) for name in map(str, Change)} == diff.counts
        for row in groups.to_dict("records"):
            own = diff.rows[(diff.rows[keys] == [row[key] for key in keys]).all(axis=1)]
            assert {c: row[c] for c in map(str, Change)} == {
                c: int((own["change"] == c).sum()) for c in map(str, Change)
            }


def test_a_version_compared_with_itself_changes_nothing() -> None:
    old, _ = two_versions(np.random.default_rng(5), patients=4, objects=20)
    diff = version_diff(old, old)
    changed = set(Change) - {Change.STILL_RIGHT, Change.STILL_FAILING, Change.PERSISTENT}
    assert {diff.counts[change] for change in changed} == {0}
    assert diff.counts[Change.PERSISTENT] == len(fp_rows(old)) > 0
    assert set(diff.flags.values()) == {0}


def test_rows_begin_with_the_broken_and_have_the_contracts_columns() -> None:
    old, new = two_versions(np.random.default_rng(6), patients=4, objects=20)
    rows = version_diff(old, new).rows
    assert list(rows.columns) == list(DIFF_COLUMNS)
    contract = (
        "patient,region,side,id,partner_before,partner_after,status_before,status_after,"
        "cause_before,cause_after,iou_before,iou_after,change"
    )
    assert ",".join(DIFF_COLUMNS).startswith(f"{contract},")
    assert list(dict.fromkeys(rows["change"])) == [
        str(change) for change in Change if (rows["change"] == str(change)).any()
    ]


def test_objects_ignored_in_one_version_are_counted_apart() -> None:
    old, new = two_versions(np.random.default_rng(7))
    rows = new.index[(new["side"] == "reference") & (new["status"] == "FN")]
    new.loc[rows[0], ["status", "cause"]] = ["ignored", ""]
    diff = version_diff(old, new)
    assert diff.ignored_once == diff.counts[Change.IGNORED_ONCE] == 1
    assert Change.IGNORED_ONCE in diff.changes
    assert Change.IGNORED_ONCE not in version_diff(old, old).changes
    own, row = new.loc[rows[0]], diff.rows[diff.rows["change"] == "ignored-once"].iloc[0]
    for name in ("patient", "region", "side", "id", "class"):
        assert row[name] == own[name]
    key = own["patient"], own["region"], own["id"]
    assert row["status_before"] == objects_of(old, "reference")[key]["status"] != "ignored"
    assert row["status_after"] == "ignored"


def test_empty_versions() -> None:
    old, new = two_versions(np.random.default_rng(8))
    diff = version_diff(old.iloc[:0], new.iloc[:0])
    assert diff.rows.empty
    assert sum(diff.counts.values()) == 0
    assert diff.matrix(Side.REFERENCE).empty
    assert diff.by("class").empty
    only_new = new[(new["side"] == "prediction") & (new["status"] == "FP")]
    assert version_diff(old.iloc[:0], only_new).counts[Change.NEW] == len(only_new) > 0


def test_other_annotations_are_refused() -> None:
    old, new = two_versions(np.random.default_rng(9))
    lost = new.index[new["side"] == "reference"][0]
    with pytest.raises(LabelError, match="exists only in the old version"):
        version_diff(old, new.drop(index=lost))
    new.loc[lost, "class"] = "Macrophage"
    with pytest.raises(LabelError, match="expected the same annotation"):
        version_diff(old, new)
    twice = pd.concat([old, old[old["side"] == "reference"].iloc[:1]], ignore_index=True)
    with pytest.raises(LabelError, match="occurs twice"):
        version_diff(twice, twice)
    wrong = pair_rows(("P0", "P0_0"), np.array([10**6]), np.array([10**6]))
    with pytest.raises(LabelError, match="each FP at most once, found other objects as id_before"):
        version_diff(old, old, same_fps=wrong)


# --- FPs that are one object in both versions -------------------------------------------------


def evaluations(seed: int) -> tuple[Evaluation, Evaluation]:
    """Evaluate two random predictions of one image against nothing: all are FPs."""
    rng = np.random.default_rng(seed)
    one, other = (random_pair(rng, (16, 16)) for _ in range(2))
    empty = np.zeros((16, 16), int)
    found = [
        evaluate_pair(
            empty,
            case.prediction,
            reference_classes={},
            prediction_classes=case.prediction_classes,
            class_names=("Epithelial", "Lymphocyte", "Neutrophil", "Macrophage"),
        )
        for case in (one, other)
    ]
    return found[0], found[1]


def slow_pixel_pairs(old: np.ndarray, new: np.ndarray) -> set[tuple[int, int]]:
    pairs = set()
    for a in set(np.unique(old).tolist()) - {0}:
        for b in set(np.unique(new).tolist()) - {0}:
            both, either = ((old == a) & (new == b)).sum(), ((old == a) | (new == b)).sum()
            if 2 * both > either:
                pairs.add((a, b))
    return pairs


@settings(max_examples=8, derandomize=True, deadline=None)
@given(seeds)
def test_fps_paired_by_pixels(seed: int) -> None:
    old, new = evaluations(seed)
    images = [one.pair.prediction.id_image() for one in (old, new)]
    a, b = pixel_pairs(old, new)
    assert set(zip(a.tolist(), b.tolist(), strict=True)) == slow_pixel_pairs(*images)
    a, b = pixel_pairs(old, old)
    assert a.tolist() == b.tolist() == old.pair.prediction.ids.tolist()


def test_only_fps_are_paired() -> None:
    labels = np.zeros((10, 20), int)
    labels[2:6, 2:6], labels[2:6, 10:14] = 1, 2
    reference = np.where(labels == 1, 7, 0)
    old = evaluate_pair(
        reference,
        labels,
        reference_classes={7: "Epithelial"},
        prediction_classes=dict.fromkeys((1, 2), "Epithelial"),
    )
    a, b = pixel_pairs(old, old)
    assert (a.tolist(), b.tolist()) == ([2], [2])


def drawn_iou(area: float, other: float, distance: float) -> float:
    """Return the IoU of two discs, drawn on a fine grid."""
    r, s = np.sqrt(np.array([area, other]) / np.pi)
    x = np.linspace(-r, max(r, distance + s), 2001)
    y = np.linspace(-max(r, s), max(r, s), 2001)
    x, y = np.meshgrid(np.append(x, distance - s)[np.newaxis, :].ravel(), y)
    first, second = x**2 + y**2 <= r**2, (x - distance) ** 2 + y**2 <= s**2
    return float((first & second).sum() / (first | second).sum())


@pytest.mark.parametrize(
    ("area", "other", "distance"),
    [
        (100, 100, 2.0),
        (100, 60, 1.0),
        (100, 60, 3.0),
        (60, 100, 4.0),
        (80, 80, 5.4),
        (100, 98, 0.3),
    ],
)
def test_iou_of_discs_against_drawn_ones(area: float, other: float, distance: float) -> None:
    found = disc_iou(np.array([area]), np.array([other]), np.array([distance]))[0]
    assert found == pytest.approx(drawn_iou(area, other, distance), abs=3e-3)


def test_iou_of_discs_at_the_limits() -> None:
    areas, others = np.array([100.0, 100, 50, 50, 100]), np.array([100.0, 50, 100, 50, 50])
    found = disc_iou(areas, others, np.array([0.0, 0, 0, 100, 1.0]))
    assert found == pytest.approx([1, 0.5, 0.5, 0, 0.5])


@few
@given(seeds)
def test_disc_pairs_against_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    old, new = two_versions(rng, patients=1, regions=1)
    # Dense, so that several compete.
    for version in (old, new):
        version[["centroid_y_px", "centroid_x_px"]] = rng.uniform(0, 15, (len(version), 2))
    found = disc_pairs(old, new)
    a, b = fp_rows(old), fp_rows(new)
    iou = {
        (i, j): disc_iou(
            np.array([x["area_px"]], float),
            np.array([y["area_px"]], float),
            np.array(
                [
                    np.hypot(
                        x["centroid_y_px"] - y["centroid_y_px"],
                        x["centroid_x_px"] - y["centroid_x_px"],
                    )
                ]
            ),
        )[0]
        for i, x in a.set_index("id").iterrows()
        for j, y in b.set_index("id").iterrows()
    }
    expected: dict[int, int] = {}
    for i, j in sorted(iou, key=lambda ids: -iou[ids]):
        if iou[i, j] > 0.5 and i not in expected and j not in expected.values():
            expected[i] = j
    assert dict(zip(found["id_before"], found["id_after"], strict=True)) == expected

"""Which objects a new version fixed or broke: the outcomes of two versions, object by object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.nuclei.ambiguity import judge
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import match
from napari_panoptic.nuclei.overlap import overlap_table
from napari_panoptic.tables.columns import TableSpec, link_column, unshown
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.settings import AmbiguousPolicy, EvaluationSettings
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status, of_side

if TYPE_CHECKING:
    import pandas as pd

IOU_STEP = 0.1
"""A change of IoU by more than this is marked."""
SAME_IOU = 0.5
"""Two FPs are one object in both versions if their IoU exceeds this."""

DIFF = TableSpec(
    "diff.csv",
    "reference object, and FP of either version",
    [
        unshown("patient", "region", "side"),
        unshown("id", about="of the new version; of a gone FP, of the old one"),
        unshown("partner_before", "partner_after"),
        unshown("status_before", "status_after", about="empty if the version lacks the FP"),
        unshown("cause_before", "cause_after"),
        unshown("iou_before", "iou_after", about="as in `objects.csv`"),
        unshown(
            "change",
            about="broken, fixed, still-failing, reclassified, still-right, ignored-once; "
            "new, persistent, gone",
        ),
        unshown("class", about="of the object itself, in the new version if it is there"),
        unshown("id_before", "class_before", about="of the old version; empty if it is new"),
        unshown("partner_class_before", "partner_class_after"),
        unshown("class_changed", about="matched in both versions, as different classes"),
        unshown("cause_changed", about="unmatched in both, for different causes"),
        unshown("iou_change", about="`up` or `down` if by more than the setting"),
        unshown("area_px", "centroid_y_px", "centroid_x_px"),
        unshown("delta_pq", about="its part of the change of PQ"),
        link_column(),
    ],
)
"""The columns up to ``change`` are a contract."""
DIFF_COLUMNS = tuple(DIFF.keys[:-2])
"""The columns of a diff: those of `DIFF` but for its parts of the change of PQ, and links."""
PAIRS = TableSpec(
    "", "FP that is in both versions", [unshown("patient", "region", "id_before", "id_after")]
)

NO_OBJECT = "none"
"""The outcome of an FP in the other version if that does not have it."""

_NO_ROW = -1
_PLACE = ["patient", "region"]
_KEY = [*_PLACE, "id"]
_TEXTS = ["side", "class", "status", "cause", "partner_class"]
_OBJECT = [*_KEY, "side", "class", "area_px", "centroid_y_px", "centroid_x_px"]
_OUTCOME = ["id", "class", "partner_id", "partner_class", "status", "cause", "iou"]
_TP, _FP, _MISCLASSIFIED, _IGNORED = (
    str(s) for s in (Status.TP, Status.FP, Status.MISCLASSIFIED, Status.IGNORED)
)


class Change(StrEnum):
    """How the outcome of an object changes in a new version."""

    BROKEN = "broken"  # reference: TP, then FN or misclassified
    FIXED = "fixed"  # reference: FN or misclassified, then TP
    STILL_FAILING = "still-failing"  # reference: FN or misclassified in both
    RECLASSIFIED = "reclassified"  # reference: misclassified in both, as different classes
    STILL_RIGHT = "still-right"  # reference: TP in both
    NEW = "new"  # prediction: an FP of the new version only
    PERSISTENT = "persistent"  # prediction: an FP of both
    GONE = "gone"  # prediction: an FP of the old version only
    IGNORED_ONCE = "ignored-once"  # reference: ignored in one version, and counted in the other


CHANGE_MEANINGS: Mapping[Change, str] = {
    Change.BROKEN: "A nucleus that only the old version finds, in its class.",
    Change.FIXED: "A nucleus that only the new version finds, in its class.",
    Change.STILL_FAILING: "A nucleus that both versions miss or misclassify.",
    Change.RECLASSIFIED: "A nucleus that both versions misclassify, as different classes.",
    Change.STILL_RIGHT: "A nucleus that both versions find, in its class.",
    Change.NEW: "An FP of the new version only.",
    Change.PERSISTENT: "An FP of both versions.",
    Change.GONE: "An FP of the old version only.",
    Change.IGNORED_ONCE: "A nucleus that counts in one version only, and is ignored in the other.",
}
"""Change -> its explanation for users."""


@dataclass(frozen=True, eq=False)
class VersionDiff:
    """Every reference object, and every FP, in two versions."""

    #: Names of the versions.
    old: str
    new: str
    #: One row per reference object and per FP, columns `DIFF_COLUMNS`; broken objects first, in the
    #: order of `Change`. The id of a prediction is that of the new version, or of the old version
    #: if the new one does not have the object.
    rows: pd.DataFrame
    #: Number of reference objects without a row: the ambiguous policy excludes them in both.
    ignored: int

    @cached_property
    def counts(self) -> Mapping[Change, int]:
        """Number of objects of every change, including changes that do not occur."""
        found = self.rows["change"].value_counts()
        return {change: int(found.get(str(change), 0)) for change in Change}

    @property
    def ignored_once(self) -> int:
        """Number of reference objects that are ignored in one version only."""
        return self.counts[Change.IGNORED_ONCE]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes to list: all of them, but `Change.IGNORED_ONCE` only if it occurs."""
        return tuple(c for c in Change if c is not Change.IGNORED_ONCE or self.ignored_once)

    @cached_property
    def flags(self) -> Mapping[str, int]:
        """Number of objects whose class, cause or IoU changed."""
        moved = self.rows["iou_change"].value_counts()
        return {
            "class_changed": int(self.rows["class_changed"].sum()),
            "cause_changed": int(self.rows["cause_changed"].sum()),
            "iou_up": int(moved.get("up", 0)),
            "iou_down": int(moved.get("down", 0)),
        }

    def matrix(self, side: Side) -> pd.DataFrame:
        """Return the number of objects by outcome before (rows) and after (columns).

        Outcomes are ``TP``, ``misclassified``, ``FN: cause``, ``FP: cause``, and ``none`` for a
        prediction that the version does not have. Only outcomes that occur are included, sorted by
        name.
        """
        import pandas as pd

        own = self.rows[self.rows["side"] == of_side(side, Side.REFERENCE, Side.PREDICTION)]
        before, after = outcome_names(own, "before"), outcome_names(own, "after")
        table = pd.crosstab(before, after)
        table.index.name, table.columns.name = "before", "after"
        return table

    def cell(self, side: Side, before: str, after: str) -> pd.DataFrame:
        """Return the rows that a cell of `matrix` counts."""
        own = self.rows[self.rows["side"] == of_side(side, Side.REFERENCE, Side.PREDICTION)]
        chosen = (outcome_names(own, "before") == before) & (outcome_names(own, "after") == after)
        return own[chosen]

    def by(self, *columns: str) -> pd.DataFrame:
        """Return the number of objects of every change, one row per combination of column values.

        Parameters
        ----------
        columns
            One or more of ``patient``, ``region`` and ``class``.
        """
        import pandas as pd

        changes = [str(change) for change in Change]
        keys = [self.rows[name] for name in columns]
        if self.rows.empty:
            return pd.DataFrame(columns=[*columns, *changes])
        found = pd.crosstab(keys, self.rows["change"]).reindex(columns=changes, fill_value=0)
        found.columns.name = None
        return found.reset_index()


def outcome_names(rows: pd.DataFrame, when: str) -> pd.Series:
    """Return the outcome of each row ``before`` or ``after``, as in `VersionDiff.matrix`."""
    status, cause = rows[f"status_{when}"], rows[f"cause_{when}"]
    named = status.where(cause == "", status + ": " + cause)
    return named.where(status != "", NO_OBJECT)


def version_diff(
    old: pd.DataFrame,
    new: pd.DataFrame,
    *,
    names: tuple[str, str] = ("old", "new"),
    same_fps: pd.DataFrame | None = None,
    iou_step: float = IOU_STEP,
) -> VersionDiff:
    """Compare two versions object by object.

    Parameters
    ----------
    old, new
        One row per object of either version: patient, region and `OBJECT_COLUMNS`, as in
        ``objects.csv``, of the same regions and the same annotation. Not changed.
    names
        Names of the two versions.
    same_fps
        The table `PAIRS` of FPs that are one object in both versions, each at most once.
        None pairs them by `disc_pairs`.
    iou_step
        The flag ``iou_change`` is up or down if the IoU changes by more than this.

    Returns
    -------
    VersionDiff
        Reference objects are right if they are TP, failing if FN or misclassified, or ignored.

    Raises
    ------
    LabelError
        If the reference objects or their classes differ, or a pair has an object that is not an FP.
    """
    old, new = _tidied(old), _tidied(new)
    same_fps = disc_pairs(old, new) if same_fps is None else same_fps
    rows = _side_by_side(old, new, same_fps)
    in_both = (rows["status_before"] == _IGNORED) & (rows["status_after"] == _IGNORED)
    rows = _compared(rows[~in_both])
    place = rows["change"].map({str(change): place for place, change in enumerate(Change)})
    rows = rows.assign(place=place).sort_values(["place", *_KEY], ignore_index=True)
    step = rows["iou_after"] - rows["iou_before"]  # NaN is neither above nor below
    rows["iou_change"] = np.select([step > iou_step, step < -iou_step], ["up", "down"], "")
    causes = rows["cause_before"], rows["cause_after"]
    rows["cause_changed"] = (causes[0] != causes[1]) & (causes[0] != "") & (causes[1] != "")
    return VersionDiff(*names, rows[list(DIFF_COLUMNS)], int(in_both.sum()))


def fp_rows(objects: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of FPs."""
    return objects[(objects["side"] == str(Side.PREDICTION)) & (objects["status"] == _FP)]


def disc_pairs(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Pair FPs of two versions without their pixels, as discs of their areas at their centroids.

    Two discs are one object if their IoU exceeds `SAME_IOU`. Pairs are made in the order of
    descending IoU, and each object has at most one partner. Equal objects have equal discs, whose
    IoU is 1; objects of different shapes can be paired wrongly.

    Parameters
    ----------
    old, new
        Objects of two versions, as for `version_diff`.

    Returns
    -------
    DataFrame
        The table `PAIRS`.
    """
    places = dict(list(fp_rows(new).groupby(_PLACE, sort=False)))
    found = []
    for place, own in fp_rows(old).groupby(_PLACE, sort=False):
        if place in places:
            other = places[place]
            a, b = _paired_discs(own, other)
            ids = own["id"].to_numpy()[a], other["id"].to_numpy()[b]
            found.append(pair_rows((str(place[0]), str(place[1])), *ids))
    return joined_pairs(found)


def pixel_pairs(old: Evaluation, new: Evaluation) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair FPs of two evaluations of a region by their pixels.

    Two FPs are one object if the IoU of all their pixels exceeds `SAME_IOU`, whatever
    their classes. Each has at most one partner; if objects of a version share pixels, the
    pairs of the largest summed IoU are chosen.

    Parameters
    ----------
    old, new
        Evaluations of two versions against the same reference, not under edit.

    Returns
    -------
    ids_before, ids_after
        int64 (k,): the ids of each pair.
    """
    pair = LabelPair(old.pair.prediction, new.pair.prediction)
    table = overlap_table(pair)
    judged = judge(table, EvaluationSettings(ambiguous=AmbiguousPolicy.KEEP))
    is_fp = [each.outcomes.prediction.status == STATUS_CODE[Status.FP] for each in (old, new)]
    kept = is_fp[0][judged.pair_reference] & is_fp[1][judged.pair_prediction]
    arrays = ("pair_reference", "pair_prediction", "intersection", "iou")
    judged = replace(judged, **{name: getattr(judged, name)[kept] for name in arrays})
    found = match(pair, table, judged, EvaluationSettings(iou_threshold=SAME_IOU)).pair
    return (
        pair.reference.ids[judged.pair_reference[found]],
        pair.prediction.ids[judged.pair_prediction[found]],
    )


def pair_rows(
    place: tuple[str, str], old_ids: NDArray[np.integer], new_ids: NDArray[np.integer]
) -> pd.DataFrame:
    """Return pairs of FPs of one region as rows of `PAIRS`."""
    return PAIRS.frame_of(*place, old_ids, new_ids)


def joined_pairs(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the pairs of several regions in one table."""
    import pandas as pd

    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else PAIRS.frame(())


# --- both versions side by side ---------------------------------------------------------------


def _tidied(objects: pd.DataFrame) -> pd.DataFrame:
    """Return objects with empty texts in place of the NaN that a reader of CSV leaves."""
    texts = {name: objects[name].astype(object).fillna("") for name in _TEXTS}
    tidied = objects.assign(**texts, partner_id=objects["partner_id"].astype("Int64"))
    return tidied.reset_index(drop=True)


def _side_by_side(old: pd.DataFrame, new: pd.DataFrame, same_fps: pd.DataFrame) -> pd.DataFrame:
    """Return a row per reference object and per FP, with its outcome in both versions."""
    import pandas as pd

    reference = [
        own[own["side"] == str(Side.REFERENCE)].sort_values(_KEY).index for own in (old, new)
    ]
    _check_same(old.loc[reference[0]], new.loc[reference[1]])
    a, b = _rows_of(old, same_fps, "id_before"), _rows_of(new, same_fps, "id_after")
    gone = np.setdiff1d(fp_rows(old).index, a)
    appeared = np.setdiff1d(fp_rows(new).index, b)
    before = np.concatenate([reference[0], a, gone, np.full(len(appeared), _NO_ROW)])
    after = np.concatenate([reference[1], b, np.full(len(gone), _NO_ROW), appeared])
    # A prediction is described as in the new version, or as in the old one if only that has it.
    is_new = (np.arange(len(after)) >= len(reference[0])) & (after != _NO_ROW)
    every = pd.concat([old[_OBJECT], new[_OBJECT]], ignore_index=True)
    objects = every.iloc[np.where(is_new, len(old) + after, before)].reset_index(drop=True)
    return pd.concat(
        [objects, _outcomes(old, before, "before"), _outcomes(new, after, "after")], axis=1
    )


def _outcomes(objects: pd.DataFrame, rows: NDArray[np.intp], when: str) -> pd.DataFrame:
    """Return the outcomes of a version in some rows; empty for `_NO_ROW`."""
    found = objects[_OUTCOME].astype({"id": "Int64", "iou": np.float64}).reindex(rows)
    named = found.rename(columns=lambda name: f"{name.removesuffix('_id')}_{when}")
    texts = {f"{name}_{when}": "" for name in _TEXTS}
    return named.fillna(texts).reset_index(drop=True)


def _compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the change of each object that counts, and whether its class changed."""
    was, is_ = rows["status_before"], rows["status_after"]
    other_partner = rows["partner_class_before"] != rows["partner_class_after"]
    is_persistent = (was == _FP) & (is_ == _FP)
    cases = {
        Change.PERSISTENT: is_persistent,
        Change.NEW: was == "",
        Change.GONE: is_ == "",
        # Under "majority", a match can keep an object that is ignored without one.
        Change.IGNORED_ONCE: (was == _IGNORED) | (is_ == _IGNORED),
        Change.STILL_RIGHT: (was == _TP) & (is_ == _TP),
        Change.BROKEN: was == _TP,
        Change.FIXED: is_ == _TP,
        Change.RECLASSIFIED: (was == _MISCLASSIFIED) & (is_ == _MISCLASSIFIED) & other_partner,
    }
    change = np.select(list(cases.values()), [*map(str, cases)], str(Change.STILL_FAILING))
    matched = [_TP, _MISCLASSIFIED]
    changed = was.isin(matched) & is_.isin(matched) & other_partner
    changed |= is_persistent & (rows["class_before"] != rows["class_after"])
    return rows.assign(change=change, class_changed=changed)


def _check_same(before: pd.DataFrame, after: pd.DataFrame) -> None:
    """Check that both versions have the same reference objects, of the same classes."""
    columns = [*_KEY, "class"]
    if len(before) == len(after) and all(
        np.array_equal(before[name].to_numpy(), after[name].to_numpy()) for name in columns
    ):
        twice = before[before.duplicated(_KEY)]
        if twice.empty:
            return
        where, problem = twice.iloc[0], "occurs twice"
    else:
        either = before[columns].merge(after[columns], how="outer", indicator=True)
        where = either[either["_merge"] != "both"].iloc[0]
        version = "old" if where["_merge"] == "left_only" else "new"
        problem = f"of class {where['class']} exists only in the {version} version"
    raise LabelError(
        f"expected the same annotation for both versions, but reference object {where['id']} "
        f"{problem}; evaluate both against one annotation with the same settings",
        region=str(where["region"]),
    )


def _rows_of(objects: pd.DataFrame, pairs: pd.DataFrame, which: str) -> NDArray[np.intp]:
    """Return the row of the FP of each pair."""
    import pandas as pd

    fps = fp_rows(objects)
    index = pd.MultiIndex.from_frame(fps[_KEY])
    wanted = pd.MultiIndex.from_frame(pairs[[*_PLACE, which]])
    found = index.get_indexer(wanted)
    if (found < 0).any() or len(np.unique(found)) < len(found):
        raise LabelError(
            f"expected pairs of FPs, each FP at most once, found other objects as {which}"
        )
    return fps.index.to_numpy(np.intp)[found]


# --- FPs without their pixels -----------------------------------------------------------------


def _paired_discs(
    old: pd.DataFrame, new: pd.DataFrame
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pair the FPs of a region as discs of their areas; return positions in both tables."""
    from scipy.spatial import cKDTree  # takes long to import

    centres = [side[["centroid_y_px", "centroid_x_px"]].to_numpy(np.float64) for side in (old, new)]
    areas = [side["area_px"].to_numpy(np.float64) for side in (old, new)]
    radii = np.sqrt(areas[0] / np.pi)
    # The centres of discs with an IoU above 0.5 are closer than either radius.
    near = cKDTree(centres[1]).query_ball_point(centres[0], radii)
    a = np.repeat(np.arange(len(old)), [len(found) for found in near])
    b = np.array([one for found in near for one in found], np.intp)
    iou = disc_iou(areas[0][a], areas[1][b], np.hypot(*(centres[0][a] - centres[1][b]).T))
    wanted = np.flatnonzero(iou > SAME_IOU)
    chosen: list[int] = []
    taken: tuple[set[int], set[int]] = (set(), set())
    for one in wanted[np.lexsort((b[wanted], a[wanted], -iou[wanted]))].tolist():
        if a[one] not in taken[0] and b[one] not in taken[1]:
            taken[0].add(int(a[one]))
            taken[1].add(int(b[one]))
            chosen.append(one)
    return a[chosen], b[chosen]


def disc_iou(
    areas: NDArray[np.float64], others: NDArray[np.float64], distances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the IoU (n,) of pairs of discs from their areas (n,) and centre distances (n,)."""
    r, s = np.sqrt(np.maximum(areas, others) / np.pi), np.sqrt(np.minimum(areas, others) / np.pi)
    # The formula of the lens is undefined if one disc contains the other or they do not meet.
    d = np.clip(distances, np.maximum(r - s, 1e-12 * r), r + s)
    p = (d**2 + r**2 - s**2) / (2 * d)
    q = d - p
    lens = (
        r**2 * np.arccos(np.clip(p / r, -1, 1))
        + s**2 * np.arccos(np.clip(q / s, -1, 1))
        - d * np.sqrt(np.maximum(r**2 - p**2, 0))
    )
    inside = distances <= r - s
    shared = np.where(inside, np.minimum(areas, others), np.where(distances >= r + s, 0.0, lens))
    iou: NDArray[np.float64] = shared / (areas + others - shared)
    return iou

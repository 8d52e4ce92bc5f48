"""The failures of a cohort as columns of objects, places and causes, without label images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.nuclei.distances import pair_distances
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.outcomes import PLACE_COLUMNS, ObjectColumns, Outcomes, object_frame
from napari_panoptic.nuclei.regions.looks import RegionLook, Teams, look_at
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.vocabulary import SIDES, STATUS_CODE, Side, Status

if TYPE_CHECKING:
    import pandas as pd

_FN, _FP = STATUS_CODE[Status.FN], STATUS_CODE[Status.FP]
_MISCLASSIFIED = STATUS_CODE[Status.MISCLASSIFIED]
Columns = ObjectColumns
"""Columns of objects, one row per failure.

The failures of a whole evaluation also have ``whole_area_px`` and ``whole_centroid_yx_px``, of all
pixels before any ambiguous area is cut away: they identify an object in a review.
"""


@dataclass(frozen=True, eq=False)
class RegionFailures:
    """The failures of one team in one region."""

    #: One row per failure, reference objects first, each side by row. A misclassified pair has one
    #: row: that of the reference object.
    columns: Columns
    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: Micrometres per pixel, or None.
    mpp: float | None
    #: int64 (r,): areas of the annotated objects, failures or not, which tell what is small; empty
    #: where they are not asked for.
    annotated_px: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        """Count the failures."""
        return len(self.columns["id"])


def region_failures(evaluation: Evaluation) -> RegionFailures:
    """Return the failures of an evaluation, with the Hausdorff distances of misclassified pairs.

    Parameters
    ----------
    evaluation
        The evaluation of a region in memory. Distances that its settings leave out are measured.
    """
    outcomes = evaluation.outcomes
    reference, prediction = outcomes.reference.status, outcomes.prediction.status
    rows = {
        Side.REFERENCE: np.flatnonzero((reference == _FN) | (reference == _MISCLASSIFIED)),
        Side.PREDICTION: np.flatnonzero(prediction == _FP),
    }
    found = chosen_failures(outcomes, rows)
    found = replace(
        found,
        columns={**found.columns, **_whole_columns(evaluation, rows)},
        annotated_px=outcomes.reference.area_px,
    )
    is_misclassified = found.columns["status"] == _MISCLASSIFIED
    if evaluation.settings.distances or not is_misclassified.any():
        return found
    objects = found.columns["row"][is_misclassified].astype(np.int32)
    partners, outlines = outcomes.reference.partner[objects], evaluation.settings.outlines
    measured = pair_distances(
        evaluation.pair, evaluation.table, evaluation.judged, objects, partners, outlines
    )
    hausdorff = found.columns["hausdorff_px"].copy()
    hausdorff[is_misclassified] = measured.hausdorff_px
    return replace(found, columns={**found.columns, "hausdorff_px": hausdorff})


def chosen_failures(outcomes: Outcomes, rows: Mapping[Side, NDArray[np.integer]]) -> RegionFailures:
    """Return given objects in the columns of failures.

    Parameters
    ----------
    outcomes
        The outcomes of a region.
    rows
        Side -> rows of the objects (k,), in the order of the result.
    """
    parts = [outcomes.columns(side, rows[side]) for side in SIDES]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return RegionFailures(columns, outcomes.class_names, outcomes.mpp)


def objects_with_ids(
    evaluation: Evaluation, ids: Mapping[Side, NDArray[np.int64]]
) -> RegionFailures:
    """Return objects of any status in the columns of failures, by their ids.

    Parameters
    ----------
    evaluation
        Of a region that is held.
    ids
        Side -> ids. Unknown ids are left out; a side may be missing.
    """
    outcomes, none = evaluation.outcomes, np.zeros(0, np.int64)
    rows = {
        side: np.flatnonzero(np.isin(outcomes.side(side).ids, ids.get(side, none)))
        for side in SIDES
    }
    found = chosen_failures(outcomes, rows)
    return replace(found, columns={**found.columns, **_whole_columns(evaluation, rows)})


def whole_objects(
    evaluation: Evaluation, side: Side
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return centroids (n, 2) and areas (n,) of all pixels of each object, by row.

    Pixels that the ambiguous policy cuts away count as well. Axis order of the centroids: y, x.
    """
    whole = evaluation.table.side(side)
    return whole.sum_yx / np.maximum(whole.area, 1)[:, None], whole.area


def _whole_columns(evaluation: Evaluation, rows: Mapping[Side, NDArray[np.integer]]) -> Columns:
    measured = [(whole_objects(evaluation, side), rows[side]) for side in SIDES]
    return {
        "whole_centroid_yx_px": np.concatenate([yx[of] for (yx, _), of in measured]),
        "whole_area_px": np.concatenate([area[of] for (_, area), of in measured]),
    }


@dataclass(frozen=True, eq=False)
class Block:
    """The failures of one team in one region, with the names of both."""

    #: Names of the team, the patient and the region.
    team: str
    patient: str
    region: str
    #: The failures.
    failures: RegionFailures


def block_of(region: Region, teams: Teams, _image: object = None) -> Block | None:
    """Return the failures of one team in one region, if it could be evaluated."""
    ((team, evaluated),) = teams.items()
    if evaluated.evaluation is None:
        return None
    return Block(team, region.patient, region.name, region_failures(evaluated.evaluation))


@dataclass(frozen=True)
class FailureName:
    """The identity of a failure under unchanged settings."""

    team: str
    region: str
    side: Side
    id: int


@dataclass(frozen=True)
class FailureSet:
    """Failures, or other objects, that belong together for a reason."""

    #: The reason in words, such as "FN of Team A · Lymphocytes under 80 px".
    title: str
    #: The objects.
    names: frozenset[FailureName]
    #: Two teams, if the failures come from a comparison of two versions.
    versions: tuple[str, str] | None = None
    #: The objects with their columns, if some of them are not failures; else empty.
    given: tuple[Block, ...] = field(default=(), compare=False)
    #: Name -> other teams that agree on the object; their outlines are shown with it.
    agreeing: Mapping[FailureName, tuple[str, ...]] = field(default_factory=dict, compare=False)
    #: Team -> the object that is shown in place of the only one of the set, beside this team.
    instead: Mapping[str, FailureName] = field(default_factory=dict, compare=False)

    def beside(self, team: str | None) -> FailureSet:
        """Return the set as it is shown beside a team."""
        name = self.instead.get(team or "")
        return self if name is None else replace(self, names=frozenset({name}))

    @cached_property
    def ids(self) -> Mapping[tuple[str, str], Mapping[Side, NDArray[np.int64]]]:
        """Team and region -> side -> ids of the objects."""
        found: dict[tuple[str, str], dict[Side, list[int]]] = {}
        for name in self.names:
            sides = found.setdefault((name.team, name.region), {})
            sides.setdefault(name.side, []).append(name.id)
        return {
            place: {side: np.array(ids, np.int64) for side, ids in sides.items()}
            for place, sides in found.items()
        }

    @property
    def teams(self) -> frozenset[str]:
        """The teams that have these failures."""
        return frozenset(name.team for name in self.names)

    def in_order(self) -> list[FailureName]:
        """Return the objects: annotated ones first, by their ids."""
        return sorted(self.names, key=lambda name: (name.side is not Side.REFERENCE, name.id))

    def outlined(self, name: FailureName) -> tuple[str, ...]:
        """Return the further teams whose outlines the crop of an object shows."""
        if self.versions is not None and name.team in self.versions:
            return tuple(team for team in self.versions if team != name.team)
        return self.agreeing.get(name, ())

    def part(self, block: Block) -> Block:
        """Return the failures of a region and team that are in the set, or whose partners are."""
        columns = block.failures.columns
        chosen = np.zeros(len(block.failures), np.bool_)
        for side, ids in self.ids.get((block.team, block.region), {}).items():
            own = columns["side"] == SIDES.index(side)
            chosen |= np.isin(np.where(own, columns["id"], columns["partner_id"]), ids)
        part = {name: column[chosen] for name, column in columns.items()}
        return replace(block, failures=replace(block.failures, columns=part))


def decided_by_zone(evaluation: Evaluation, region: Region, team: str) -> FailureSet:
    """Return the objects whose status would differ without the uncertain border.

    A matched pair is named once, by its annotated object.

    Parameters
    ----------
    evaluation
        Of a region that is held.
    region, team
        Whose evaluation it is.
    """
    decided = {side: evaluation.decided_by_zone(side) for side in SIDES}
    partner = evaluation.outcomes.prediction.partner
    is_matched = np.flatnonzero(partner >= 0)
    is_named = decided[Side.REFERENCE][partner[is_matched]]
    decided[Side.PREDICTION][is_matched[is_named]] = False
    ids = {side: evaluation.outcomes.side(side).ids[decided[side]] for side in SIDES}
    names = (FailureName(team, region.name, side, int(i)) for side in SIDES for i in ids[side])
    given = Block(team, region.patient, region.name, objects_with_ids(evaluation, ids))
    return FailureSet("decided by the border", frozenset(names), given=(given,))


@dataclass(frozen=True, eq=False)
class CohortFailures:
    """The failures of several regions and teams in common columns."""

    #: The regions and teams, in the order of their rows.
    blocks: Sequence[Block] = ()

    def __len__(self) -> int:
        """Count the failures."""
        return len(self.block)

    @cached_property
    def block(self) -> NDArray[np.intp]:
        """Position of each row's region and team in `blocks`."""
        return np.repeat(np.arange(len(self.blocks)), [len(at.failures) for at in self.blocks])

    @cached_property
    def columns(self) -> Columns:
        """The columns of all rows."""
        if not self.blocks:
            return _EMPTY
        parts = [block.failures.columns for block in self.blocks]
        return {name: np.concatenate([part[name] for part in parts]) for name in _EMPTY}

    @property
    def class_names(self) -> tuple[str, ...]:
        """The scored classes, in order; empty without regions."""
        return self.blocks[0].failures.class_names if self.blocks else ()

    def place(self, row: int) -> Block:
        """Return the region and team of a row."""
        return self.blocks[int(self.block[row])]

    def side(self, row: int) -> Side:
        """Return the side of a row's object."""
        return SIDES[int(self.columns["side"][row])]

    def name(self, row: int) -> FailureName:
        """Return the identity of a row's object."""
        at = self.place(row)
        return FailureName(at.team, at.region, self.side(row), int(self.columns["id"][row]))

    def find(self, name: FailureName) -> int | None:
        """Return the row of a failure, identified by itself or its partner; None if unknown."""
        blocks = [
            number
            for number, at in enumerate(self.blocks)
            if (at.team, at.region) == (name.team, name.region)
        ]
        here = np.isin(self.block, blocks)
        own = self.columns["side"] == SIDES.index(name.side)
        found = np.flatnonzero(here & own & (self.columns["id"] == name.id))
        if not len(found):
            found = np.flatnonzero(here & ~own & (self.columns["partner_id"] == name.id))
        return int(found[0]) if len(found) else None

    def frame(self, rows: NDArray[np.integer]) -> pd.DataFrame:
        """Return rows with the columns of `OBJECTS`.

        Parameters
        ----------
        rows
            The rows, in the order of the result.
        """
        import pandas as pd

        at = [self.blocks[number] for number in self.block[rows]]
        places = {name: [getattr(block, name) for block in at] for name in PLACE_COLUMNS}
        um_per_px = np.array([block.failures.mpp or np.nan for block in at], np.float64)
        values = {name: column[rows] for name, column in self.columns.items()}
        objects = object_frame(values, self.class_names, um_per_px)
        return pd.concat([pd.DataFrame(places), objects], axis=1)


def chosen_objects(
    cohort: Cohort,
    names: Iterable[FailureName],
    reading: Reading,
    progress: Progress = UNWATCHED,
) -> tuple[Block, ...]:
    """Evaluate the regions of given objects, and return these objects as columns.

    Objects that do not exist under the settings are left out, and so are regions that cannot be
    read.

    Parameters
    ----------
    cohort, names
        The cohort and the objects, of any of its teams.
    reading
        How to evaluate; distances are not measured.
    progress
        Receives the progress, and is checked for cancellation.

    Raises
    ------
    StoppedError
        If cancelled.
    """
    ids = FailureSet("", frozenset(names)).ids
    reading = replace(reading.without_distances, teams=cohort.team_names)
    look = RegionLook(reading, partial(_chosen, ids), only=ids)
    # Regions that cannot be read are reported when they are shown.
    return tuple(block for (seen,) in look_at(cohort, [look], progress) for block in seen.parts)


def _chosen(
    ids: Mapping[tuple[str, str], Mapping[Side, NDArray[np.int64]]],
    region: Region,
    teams: Teams,
    _image: object,
) -> Block | None:
    """Return the objects of a team in a region that were asked for by their ids."""
    ((team, evaluated),) = teams.items()
    if evaluated.evaluation is None:
        return None
    own = objects_with_ids(evaluated.evaluation, ids[team, region.name])
    return Block(team, region.patient, region.name, own)


_EMPTY: Columns = {
    "side": np.zeros(0, np.int8),
    "id": np.zeros(0, np.int64),
    "row": np.zeros(0, np.int64),
    "class": np.zeros(0, np.int16),
    "status": np.zeros(0, np.int8),
    "cause": np.zeros(0, np.int8),
    "partner_id": np.zeros(0, np.int64),
    "partner_class": np.zeros(0, np.int16),
    "iou": np.zeros(0),
    "hausdorff_px": np.zeros(0),
    "hausdorff95_px": np.zeros(0),
    "area_px": np.zeros(0, np.int64),
    "centroid_yx_px": np.zeros((0, 2)),
    "bbox": np.zeros((0, 4), np.int32),
    "score": np.zeros(0),
}

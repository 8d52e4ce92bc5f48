"""The items that a review can be asked about: objects, and tiles of background.

The population of a team are its matched pairs, its FNs, its FPs, and the tiles of background.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import SideOutcomes
from napari_panoptic.nuclei.regions.looks import RegionLook, Teams, look_at
from napari_panoptic.review.identity import one_spelling
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.vocabulary import CAUSES, STATUS_CODE, Status

TILE_PX = 64
"""Height and width of a tile of background, in px."""
MOST_COUNTED = 9999
"""Most nuclei in one tile; it has fewer pixels."""
NO_ID = -1
"""The id of a tile."""
_SEPARATOR = "\x1f"  # in no name that a file system or a table can show

StrArray = NDArray[np.object_]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
KeyParts = tuple[str, str, str, str]
"""What identifies an item: team, region, side, and its id or the name of the tile."""


class ItemSide(StrEnum):
    """What an item of a plan is."""

    REFERENCE = "reference"  # an annotated object, with its partner if it has one
    PREDICTION = "prediction"  # an FP
    BACKGROUND = "background"  # a tile


SIDES = tuple(ItemSide)


class ItemKind(StrEnum):
    """The outcome of an item before the review."""

    TP = "TP"
    MISCLASSIFIED = "misclassified"
    FN = "FN"
    FP = "FP"
    BACKGROUND = "background"


KINDS = tuple(ItemKind)
EMPTY, PARTLY = "empty", "partly"
"""Details of background: a tile without objects and ambiguous area, and any other."""
SUSPECT = "suspect"
"""First word of the detail of items whose annotation is suspect."""


@dataclass(frozen=True, eq=False)
class Units:
    """All items of some teams that can be drawn, one row each."""

    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: (n,): names of the team, the patient and the region of each item.
    team: StrArray
    patient: StrArray
    region: StrArray
    #: int8 (n,): positions in `SIDES` and `KINDS`.
    side: NDArray[np.int8]
    kind: NDArray[np.int8]
    #: int64 (n,): ids of objects, `NO_ID` for tiles.
    id: IntArray
    #: float64 (n,): centroid of an object; of a tile the background pixel nearest to its middle.
    y_px: NDArray[np.float64]
    x_px: NDArray[np.float64]
    #: int16 (n,): 1-based index into the classes, 0 for none.
    reference_class: NDArray[np.int16]
    prediction_class: NDArray[np.int16]
    #: float64 (n,): IoU of a matched pair, else 0.
    iou: NDArray[np.float64]
    #: Cause of an FN or FP, `EMPTY` or `PARTLY` for background; else empty. With `SUSPECT` and a
    #: space before it, or `SUSPECT` alone, where the annotation is suspect.
    detail: StrArray

    def __len__(self) -> int:
        """Count the items."""
        return len(self.id)

    def __getitem__(self, rows: NDArray[np.integer] | BoolArray | slice) -> Units:
        """Return some rows, in the order wanted."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})

    def is_kind(self, kind: ItemKind) -> BoolArray:
        """Return which items have an outcome."""
        found: BoolArray = self.kind == KINDS.index(kind)
        return found

    @cached_property
    def is_suspect(self) -> BoolArray:
        """Whether the annotation of each item is suspect (n,)."""
        return np.array([detail.split(" ")[0] == SUSPECT for detail in self.detail], bool)

    @cached_property
    def cause(self) -> StrArray:
        """The detail without `SUSPECT` (n,)."""
        causes = [detail.removeprefix(SUSPECT).lstrip(" ") for detail in self.detail]
        return np.array(causes, object)

    def key_parts(self) -> Iterator[KeyParts]:
        """Yield what identifies each item."""
        sides = [str(SIDES[code]) for code in self.side.tolist()]
        places = zip(self.y_px.tolist(), self.x_px.tolist(), self.id.tolist(), strict=True)
        ids = (tile_name(y, x) if id_ == NO_ID else str(id_) for y, x, id_ in places)
        yield from zip(self.team, self.region, sides, ids, strict=True)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """What identifies each item, as one text."""
        return tuple(key_of(*parts) for parts in self.key_parts())


_COLUMNS = tuple(field.name for field in fields(Units) if field.name != "class_names")


def tile_name(y_px: float, x_px: float) -> str:
    """Return the name of the tile that contains a point: its row and column."""
    return f"{int(y_px // TILE_PX)},{int(x_px // TILE_PX)}"


def key_of(team: str, region: str, side: str, id_or_tile: str) -> str:
    """Return what identifies an item, as `Units.key_parts` yields it, as one text."""
    return _SEPARATOR.join((one_spelling(team), one_spelling(region), side, id_or_tile))


@dataclass(frozen=True, eq=False)
class Population:
    """The items of a cohort, and what could not be read."""

    #: All items that can be drawn.
    units: Units
    #: What was odd, and the regions that are left out.
    findings: tuple[Finding, ...] = ()


def population(cohort: Cohort, reading: Reading, progress: Progress = UNWATCHED) -> Population:
    """Evaluate teams over a cohort, and list every item that a review can be asked about.

    Ignored objects are no items. Regions that cannot be read, or that are too large to hold, are
    findings, and estimates are about the others.

    Parameters
    ----------
    cohort, reading
        What to evaluate, and how; distances are not measured.
    progress
        Where progress is reported.

    Raises
    ------
    StoppedError
        If the work is cancelled.
    """
    look = RegionLook(reading.without_distances, _units_in)
    units: list[Units] = []
    findings: list[Finding] = []
    for (seen,) in look_at(cohort, [look], progress, jobs=None):
        findings += seen.findings
        units += seen.parts
    noted = (*cohort.findings, *dict.fromkeys(findings))
    return Population(joined(cohort.scheme.names, units), noted)


def _units_in(region: Region, teams: Teams, _image: object) -> Units | None:
    """Return the items of one team in one region, if it could be evaluated."""
    ((team, evaluated),) = teams.items()
    if evaluated.evaluation is None:
        return None
    return units_of(evaluated.evaluation, team, region.patient, region.name)


def units_of(evaluation: Evaluation, team: str, patient: str, region: str) -> Units:
    """Return the items of one team in one region.

    Parameters
    ----------
    evaluation
        Of a region that is held.
    team, patient, region
        Names.
    """
    outcomes = evaluation.outcomes
    reference, prediction = outcomes.reference, outcomes.prediction
    parts = [
        _pairs(reference, prediction, Status.TP, ItemKind.TP),
        _pairs(reference, prediction, Status.MISCLASSIFIED, ItemKind.MISCLASSIFIED),
        _unmatched(reference, Status.FN),
        _unmatched(prediction, Status.FP),
        _tiles(evaluation.pair),
    ]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    names = {"team": team, "patient": patient, "region": region}
    columns = {name: np.full(len(joined["id"]), value, object) for name, value in names.items()}
    return Units(class_names=outcomes.class_names, **columns, **joined)


def _pairs(
    reference: SideOutcomes, prediction: SideOutcomes, status: Status, kind: ItemKind
) -> dict[str, NDArray[Any]]:
    rows = np.flatnonzero(
        (reference.status == STATUS_CODE[status]) & (reference.partner != NO_PARTNER)
    )
    return _columns(
        ItemSide.REFERENCE,
        kind,
        reference.ids[rows],
        reference.centroid_yx_px[rows],
        reference_class=reference.class_index[rows],
        prediction_class=prediction.class_index[reference.partner[rows]],
        iou=reference.iou[rows],
    )


def _unmatched(objects: SideOutcomes, status: Status) -> dict[str, NDArray[Any]]:
    rows = np.flatnonzero(objects.status == STATUS_CODE[status])
    is_fn = status is Status.FN
    causes = np.array([str(cause) for cause in CAUSES], object)
    return _columns(
        ItemSide.REFERENCE if is_fn else ItemSide.PREDICTION,
        ItemKind.FN if is_fn else ItemKind.FP,
        objects.ids[rows],
        objects.centroid_yx_px[rows],
        reference_class=objects.class_index[rows] if is_fn else None,
        prediction_class=None if is_fn else objects.class_index[rows],
        detail=causes[objects.cause[rows]],
    )


def _tiles(pair: LabelPair) -> dict[str, NDArray[Any]]:
    """Return the tiles with at least one pixel of background."""
    covered = np.zeros(pair.reference.shape, bool)
    for sheet in (*pair.reference.sheets, *pair.prediction.sheets):
        covered |= sheet > 0
    if pair.ambiguous is not None:
        covered |= pair.ambiguous
    found = [
        (*_nearest_background(tile, y0, x0), EMPTY if not tile.any() else PARTLY)
        for y0, x0, tile in _grid(covered)
        if not tile.all()
    ]
    place = np.array([(y, x) for y, x, _ in found], np.float64).reshape(-1, 2)
    return _columns(
        ItemSide.BACKGROUND,
        ItemKind.BACKGROUND,
        np.full(len(found), NO_ID, np.int64),
        place,
        detail=np.array([detail for *_, detail in found], object),
    )


def _grid(covered: BoolArray) -> Iterator[tuple[int, int, BoolArray]]:
    """Yield the first row and column of each tile, and its part of an image."""
    for y0 in range(0, covered.shape[0], TILE_PX):
        for x0 in range(0, covered.shape[1], TILE_PX):
            yield y0, x0, covered[y0 : y0 + TILE_PX, x0 : x0 + TILE_PX]


def _nearest_background(tile: BoolArray, y0: int, x0: int) -> tuple[int, int]:
    """Return the uncovered pixel nearest to a tile's middle, the first in reading order."""
    y, x = np.nonzero(~tile)
    middle_y, middle_x = (tile.shape[0] - 1) / 2, (tile.shape[1] - 1) / 2
    nearest = int(np.argmin((y - middle_y) ** 2 + (x - middle_x) ** 2))
    return y0 + int(y[nearest]), x0 + int(x[nearest])


def _columns(
    side: ItemSide,
    kind: ItemKind,
    ids: IntArray,
    centroid_yx_px: NDArray[np.float64],
    *,
    reference_class: NDArray[np.int16] | None = None,
    prediction_class: NDArray[np.int16] | None = None,
    iou: NDArray[np.float64] | None = None,
    detail: StrArray | None = None,
) -> dict[str, NDArray[Any]]:
    n = len(ids)
    none = np.zeros(n, np.int16)
    return {
        "side": np.full(n, SIDES.index(side), np.int8),
        "kind": np.full(n, KINDS.index(kind), np.int8),
        "id": ids.astype(np.int64),
        "y_px": centroid_yx_px[:, 0].astype(np.float64),
        "x_px": centroid_yx_px[:, 1].astype(np.float64),
        "reference_class": none if reference_class is None else reference_class,
        "prediction_class": none if prediction_class is None else prediction_class,
        "iou": np.zeros(n) if iou is None else iou,
        "detail": np.full(n, "", object) if detail is None else detail,
    }


def joined(class_names: tuple[str, ...], parts: Sequence[Units]) -> Units:
    """Return all rows, ordered by team first."""
    empty = _columns(
        ItemSide.BACKGROUND, ItemKind.BACKGROUND, np.zeros(0, np.int64), np.zeros((0, 2))
    )
    names: dict[str, Any] = dict.fromkeys(("team", "patient", "region"), np.zeros(0, object))
    several = [Units(class_names=class_names, **names, **empty), *parts]
    columns = {name: np.concatenate([getattr(part, name) for part in several]) for name in _COLUMNS}
    return Units(class_names=class_names, **columns)

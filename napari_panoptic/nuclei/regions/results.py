"""The results of a team in a region without the pixels behind them: rows on disk, and back."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError, PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.nuclei.averages import RegionCounts
from napari_panoptic.nuclei.class_masks import ClassEvaluations
from napari_panoptic.nuclei.conventions import RegionSums, rules_of, sums_of_pair
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.metrics import Counts, count
from napari_panoptic.nuclei.outcomes import OBJECTS, PLACE_COLUMNS, Outcomes, SideOutcomes
from napari_panoptic.nuclei.overlap import Areas
from napari_panoptic.values.cohort import Region
from napari_panoptic.values.conventions import DEFAULT_PROTOCOL
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Side
from napari_panoptic.values.windowed_labels import TiledPair

if TYPE_CHECKING:
    import pandas as pd

_COPIED_BYTES = 2**20
_ROWS_AT_A_TIME = 50_000


@dataclass(frozen=True, eq=False)
class RegionResult:
    """One team's outcomes in one region, without the pixels behind them."""

    #: Names of the team, the patient and the region.
    team: str
    patient: str
    region: str
    #: One row per object, columns `OBJECT_COLUMNS`; None if the region could not be evaluated.
    objects: pd.DataFrame | None
    #: Their sums, as the scoring counts them; None if the region could not be evaluated.
    counts: Counts | None
    #: What conventions need, if it was asked for.
    sums: RegionSums | None = None
    #: Problems found, also those that prevented the evaluation.
    findings: tuple[Finding, ...] = ()
    #: The areas of both sides, unless classes are evaluated alone.
    areas: Areas | None = None
    #: The objects' rows in a file, if they are too many to hold; ``objects`` is None then.
    rows: RowsFile | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        """Team, patient and region: the values of `PLACE_COLUMNS`."""
        return self.team, self.patient, self.region

    def without_objects(self) -> RegionResult:
        """Return a copy that keeps sums and findings, and nothing that grows with the objects."""
        return replace(self, objects=None, rows=None)


@dataclass(frozen=True)
class RowsFile:
    """Rows of objects as they stand in ``objects.csv``, without its header."""

    #: The file.
    path: Path
    #: Of its content, by which these rows are known.
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        """Note a file that has been written.

        Raises
        ------
        OSError
            Where it cannot be read.
        """
        with path.open("rb") as file:
            return cls(path, hashlib.file_digest(file, "sha256").hexdigest())


def placed(objects: pd.DataFrame, place: tuple[str, str, str]) -> pd.DataFrame:
    """Return rows of objects with their place, the values of `PLACE_COLUMNS`: all of `OBJECTS`."""
    return objects.assign(**dict(zip(PLACE_COLUMNS, place, strict=True)))[OBJECTS.keys]


def write_listed(
    path: Path, outcomes: Outcomes, rows: NDArray[np.intp], place: tuple[str, str, str]
) -> None:
    """Write some objects of a region as CSV, with the columns of `OBJECTS`.

    Parameters
    ----------
    path
        The file; replaced when the new one is complete.
    outcomes
        The outcomes of every object.
    rows
        Rows of ``outcomes.to_frame()``, in the order in which they are written.
    place
        Team, patient and region: the values of `PLACE_COLUMNS`.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    with replaced_when_complete(path) as file:
        file.write(OBJECTS.csv(placed(outcomes.to_frame().iloc[rows], place)))


def unreadable_region(
    region: Region, team_names: Sequence[str], error: PanopticError | OSError
) -> list[RegionResult]:
    """Return the results of teams on a region whose size cannot be found out."""
    finding = Finding.unreadable(error, region=region.name)
    return [
        RegionResult(team, region.patient, region.name, None, None, findings=(finding,))
        for team in team_names
    ]


def with_figures(
    result: RegionResult,
    evaluation: Evaluation | Evaluation[TiledPair] | ClassEvaluations,
    settings: EvaluationSettings,
    *,
    with_objects: bool = True,
) -> RegionResult:
    """Return a result with the outcomes and figures of a label pair.

    Parameters
    ----------
    result
        The names and findings.
    evaluation
        Of that team and region, under ``settings``.
    settings
        The convention among them decides how class masks are summed, and whether the result
        has what conventions need.
    with_objects
        Whether to include the rows of the objects, which take longer than the sums.
    """
    if isinstance(evaluation, Evaluation):
        objects = evaluation.objects if with_objects else None
        sums = None
        if settings.convention != DEFAULT_PROTOCOL:
            rules, outside = rules_of(settings), evaluation.judged.counted
            sums = sums_of_pair(evaluation.pair, evaluation.table, rules, outside)
        areas = evaluation.table.areas
        return replace(result, objects=objects, counts=evaluation.counts, sums=sums, areas=areas)
    return replace(
        result,
        objects=_class_objects(evaluation) if with_objects else None,
        counts=evaluation.counts(settings.score.convention),
        sums=RegionSums(evaluation.sums, None),
    )


def _class_objects(classes: ClassEvaluations) -> pd.DataFrame:
    import pandas as pd

    frames = [evaluation.objects for evaluation in classes.evaluations.values()]
    objects = pd.concat(frames, ignore_index=True)
    return objects.sort_values(["side", "id"], ascending=[False, True], ignore_index=True)


def stored_rows(result: RegionResult, outcomes: Outcomes, path: Path) -> RegionResult:
    """Write the rows of objects that are too many to hold into a file of their own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for frame in object_frames(outcomes, _ROWS_AT_A_TIME):
            file.write(OBJECTS.csv(placed(frame, result.place), with_header=False))
    return replace(result, rows=RowsFile.of(path))


def object_frames(outcomes: Outcomes, at_most: int) -> Iterator[pd.DataFrame]:
    """Yield the rows of `Outcomes.to_frame` in their order, a bounded number at a time.

    Parameters
    ----------
    outcomes
        The outcomes of every object.
    at_most
        The largest number of rows in a frame.
    """
    for side in Side:
        own = outcomes.side(side)
        for start in range(0, len(own), at_most):
            part = _part(own, slice(start, start + at_most))
            is_reference = side is Side.REFERENCE
            yield replace(
                outcomes,
                reference=part if is_reference else outcomes.reference,
                prediction=outcomes.prediction if is_reference else part,
            ).side_frame(side)


def _part(side: SideOutcomes, rows: slice) -> SideOutcomes:
    arrays = {f.name: getattr(side, f.name)[rows] for f in fields(side) if f.name != "side"}
    return SideOutcomes(side=side.side, **arrays)


class ObjectsFile:
    """The file of `OBJECTS`, written result by result: it may exceed the memory.

    It has a temporary name until it is complete; as a context manager it is
    removed if it is not completed.

    Parameters
    ----------
    folder
        Where to write it; must exist.
    """

    def __init__(self, folder: Path) -> None:
        self._temporary = folder / f".{OBJECTS.file}.part"
        # Closed by finish, or by leaving the context.
        self._file = self._temporary.open("wb")
        self._file.write(OBJECTS.csv(OBJECTS.frame([])))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()  # fails on a full disk
        finally:
            self._temporary.unlink(missing_ok=True)

    def add(self, result: RegionResult) -> None:
        """Write the objects of a team in a region, if it has any."""
        if result.rows is not None:
            with result.rows.path.open("rb") as rows:
                shutil.copyfileobj(rows, self._file, _COPIED_BYTES)
        elif result.objects is not None:
            self._file.write(OBJECTS.csv(placed(result.objects, result.place), with_header=False))

    def finish(self, folder: Path) -> Path:
        """Close the complete table, and move it to a folder on the same disk."""
        self._file.close()
        return self._temporary.replace(folder / OBJECTS.file)


def counts_of_rows(objects: pd.DataFrame, class_names: Sequence[str]) -> list[RegionCounts]:
    """Count objects region by region.

    Parameters
    ----------
    objects
        Rows of one team: patient, region and `OBJECT_COLUMNS`.
    class_names
        The scored classes, in order.

    Returns
    -------
    list of RegionCounts
        Regions without objects have none.
    """
    return [
        RegionCounts(str(place[1]), str(place[0]), count(outcomes_of_rows(own, class_names)))
        for place, own in objects.groupby(["patient", "region"], sort=False)
    ]


def outcomes_of_rows(objects: pd.DataFrame, class_names: Sequence[str]) -> Outcomes:
    """Return the outcomes of a region from the rows of its objects.

    What rows lack is unknown: 95th percentiles of distances are NaN, bounding boxes empty.

    Parameters
    ----------
    objects, class_names
        As in `counts_of_rows`, of one region.
    """
    import pandas as pd

    rows = {
        side: objects[objects["side"] == str(side)].sort_values("id", kind="stable")
        for side in Side
    }
    ids = {side: own["id"].to_numpy(np.int64) for side, own in rows.items()}

    def outcomes_of(side: Side, other: Side) -> SideOutcomes:
        own = rows[side]
        partner = np.full(len(own), NO_PARTNER, np.int32)
        matched = own["partner_id"].notna().to_numpy()
        wanted = pd.Index(own["partner_id"][matched].to_numpy(np.int64))
        partner[matched] = pd.Index(ids[other]).get_indexer(wanted)
        if (partner[matched] == NO_PARTNER).any():
            lost = wanted[partner[matched] == NO_PARTNER][0]
            raise LabelError(
                f"expected a {other} object {lost}, the partner of a {side} object, found none; "
                "evaluate again",
                region=str(own["region"].iloc[0]),
            )
        n = len(own)
        return SideOutcomes(
            side=side,
            ids=ids[side],
            class_index=(_codes(own["class"], class_names) + 1).astype(np.int16),
            status=_codes(own["status"], STATUSES).astype(np.int8),
            cause=_codes(own["cause"], CAUSES).astype(np.int8),
            partner=partner,
            iou=own["iou"].to_numpy(np.float64),
            hausdorff_px=own["hausdorff_px"].to_numpy(np.float64),
            hausdorff95_px=np.full(n, np.nan),
            area_px=own["area_px"].to_numpy(np.int64),
            centroid_yx_px=own[["centroid_y_px", "centroid_x_px"]].to_numpy(np.float64),
            bbox=np.zeros((n, 4), np.int32),
            score=own["score"].to_numpy(np.float64) if "score" in own else np.full(n, np.nan),
        )

    return Outcomes(
        reference=outcomes_of(Side.REFERENCE, Side.PREDICTION),
        prediction=outcomes_of(Side.PREDICTION, Side.REFERENCE),
        class_names=tuple(class_names),
        mpp=None,
    )


def _codes(words: pd.Series, vocabulary: Sequence[str]) -> NDArray[np.intp]:
    """Return the position of each word in a vocabulary."""
    import pandas as pd

    known = pd.Index([str(word) for word in vocabulary])
    return known.get_indexer(pd.Index(words.to_numpy(object), dtype=object))

"""All objects of a cohort with their outcomes and covariates, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import english_list
from napari_panoptic.features.feature import Need
from napari_panoptic.features.known import (
    FEATURES,
    OUTCOME_COLUMNS,
    USUAL,
    as_covariate,
    in_um,
    measured,
    plugin_findings,
    region_features,
)
from napari_panoptic.features.region_side import RegionSide
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.io.tables.covariates import KEY_COLUMNS
from napari_panoptic.io.tables.metadata import Metadata
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.questions.engines.slices import SliceSearch, search_slices
from napari_panoptic.statistics.max_t import PERMUTATIONS, SEED
from napari_panoptic.values import vocabulary
from napari_panoptic.values.cohort import Region
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import (
    CAUSES,
    STATUS_CODE,
    STATUSES,
    Side,
    Status,
    of_side,
)

if TYPE_CHECKING:
    import pandas as pd

FAILURES: Mapping[Side, tuple[Status, ...]] = {
    Side.REFERENCE: (Status.FN, Status.MISCLASSIFIED),
    Side.PREDICTION: (Status.FP,),
}
"""The statuses of failing objects, by side."""
CAUSES_OF: Mapping[Side, tuple[str, ...]] = {
    Side.REFERENCE: (*map(str, vocabulary.CAUSES_OF[Side.REFERENCE]), str(Status.MISCLASSIFIED)),
    Side.PREDICTION: tuple(map(str, vocabulary.CAUSES_OF[Side.PREDICTION])),
}
"""The causes by which failures of a side can be searched; misclassified objects count as one."""
_SAME_SCALE = 0.01


@dataclass(frozen=True, eq=False)
class CohortObjects:
    """The objects of one team over a cohort."""

    #: Name of the team.
    team: str
    #: One row per object that is not ignored: `OUTCOME_COLUMNS`, then a column per covariate:
    #: float64, NaN if undefined; or words, empty if undefined.
    frame: pd.DataFrame
    #: Inputs that could not be read, and covariates that are undefined.
    findings: tuple[Finding, ...] = ()

    @property
    def covariates(self) -> list[str]:
        """The names of the covariates."""
        return [str(name) for name in self.frame if name not in OUTCOME_COLUMNS]

    def of_side(self, side: Side) -> pd.DataFrame:
        """Return the objects of a side, numbered from 0."""
        own = self.frame["side"] == of_side(side, Side.REFERENCE, Side.PREDICTION)
        return self.frame[own].reset_index(drop=True)


def is_failure(frame: pd.DataFrame, side: Side, cause: str | None = None) -> NDArray[np.bool_]:
    """Return bool (n,): which objects of a side fail.

    Parameters
    ----------
    frame
        Of `CohortObjects.of_side`.
    side
        Reference objects fail if they are FN or misclassified, predictions if they are FP.
    cause
        One of `CAUSES_OF`: only failures of this cause count as failures.

    Raises
    ------
    SettingsError
        For a cause that the side does not have.
    """
    if cause is None:
        failed = frame["status"].isin([str(status) for status in FAILURES[side]])
    elif cause not in CAUSES_OF[side]:
        raise SettingsError(
            f"expected a cause of {side} objects ({english_list(CAUSES_OF[side], limit=99)}), "
            f"found '{cause}'"
        )
    else:
        failed = frame["status" if cause == Status.MISCLASSIFIED else "cause"] == cause
    return failed.to_numpy(np.bool_)


def common_slices(
    objects: CohortObjects,
    side: Side = Side.REFERENCE,
    cause: str | None = None,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = SEED,
    progress: Progress = UNWATCHED,
) -> SliceSearch:
    """Search for slices in which objects of a side fail often.

    Parameters
    ----------
    objects
        The objects of a team.
    side, cause
        The failures to search; see `is_failure`.
    permutations, seed, progress
        As in `napari_panoptic.questions.engines.slices.search_slices`.

    Returns
    -------
    SliceSearch
        Its rows are those of ``objects.of_side(side)``, which has the region, side and id of each.
    """
    frame = objects.of_side(side)
    return search_slices(
        {name: frame[name].to_numpy() for name in objects.covariates},
        is_failure(frame, side, cause),
        frame["patient"].to_numpy(),
        permutations=permutations,
        seed=seed,
        progress=progress,
    )


@dataclass(frozen=True, eq=False)
class MeasuredRegion:
    """The objects of a team in one region."""

    region: str
    #: Micrometres per pixel, or None.
    mpp: float | None
    #: The objects that are not ignored, with the covariates of this package and of plugins: a frame
    #: for each side.
    frames: tuple[pd.DataFrame, ...]


_MEASURED: WeakKeyDictionary[LabelImage, dict[Any, Mapping[str, NDArray[Any]]]] = (
    WeakKeyDictionary()
)
"""Annotated objects -> their features by settings, names and whether there is an image: those of
this package, which are the same beside each team."""


def measured_region(
    evaluation: Evaluation,
    region: Region,
    team: str,
    image: SlideImage | None,
    features: tuple[str, ...] = USUAL,
) -> MeasuredRegion:
    """Measure the objects of a team in a region.

    Parameters
    ----------
    evaluation
        Of the team in the region, which is held.
    region, team, image
        The region, the team, and the image; without one, features of colours are undefined.
    features
        Names of features of this package; those that users add are measured in any case.

    Raises
    ------
    PanopticError
        If a function has a covariate that exists already.
    """
    pair, frames = evaluation.pair, []
    for side in Side:
        labels, outcomes = pair.side(side), evaluation.outcomes.side(side)
        own = RegionSide(region.patient, region.name, team, labels, outcomes, image, pair.mpp)
        known: dict[Any, Mapping[str, NDArray[Any]]] = {}
        if side is Side.REFERENCE:
            known = _MEASURED.setdefault(labels, known)
        try:
            frames.append(_side_frame(own, evaluation.settings, features, known))
        except PanopticError:  # the image is damaged; the views that show it report this
            if image is None:
                raise
            without = replace(own, image=None)
            frames.append(_side_frame(without, evaluation.settings, features, known))
    return MeasuredRegion(region.name, pair.mpp, tuple(frames))


def _side_frame(
    own: RegionSide,
    settings: EvaluationSettings,
    features: tuple[str, ...],
    known: dict[Any, Mapping[str, NDArray[Any]]],
) -> pd.DataFrame:
    import pandas as pd

    outcomes, key = own.outcomes, (settings, features, own.image is not None)
    if key not in known:
        known[key] = measured(own, features)
    columns: dict[str, Any] = {
        "patient": np.full(len(own), own.patient, dtype=object),
        "region": np.full(len(own), own.region, dtype=object),
        "side": np.full(len(own), str(outcomes.side), dtype=object),
        "id": outcomes.ids,
        "status": np.array([str(status) for status in STATUSES], object)[outcomes.status],
        "cause": np.array([str(cause) for cause in CAUSES], object)[outcomes.cause],
    }
    frame = pd.DataFrame(columns | region_features(own, built_in=known[key]))
    counts = outcomes.status != STATUS_CODE[Status.IGNORED]
    return frame if counts.all() else frame[counts]


def _nothing() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: pd.Series(dtype=object) for name in (*OUTCOME_COLUMNS, "class")})


# --- the whole cohort -------------------------------------------------------------------------


def joined_objects(
    team: str,
    regions: Sequence[MeasuredRegion],
    findings: Sequence[Finding] = (),
    *,
    metadata: Metadata | None = None,
    table: pd.DataFrame | None = None,
) -> CohortObjects:
    """Return the objects of all regions, with the covariates of tables.

    Parameters
    ----------
    team, regions, findings
        The team, its objects region by region, and what was odd in their files.
    metadata
        The table of patients. Its columns become covariates of the objects of each patient.
    table
        Further covariates, from `napari_panoptic.io.tables.covariates.read_covariates`.

    Raises
    ------
    SettingsError
        If the table has a covariate that exists already.
    """
    import pandas as pd

    frames = [frame for own in regions for frame in own.frames]
    frame = pd.concat(frames, ignore_index=True) if frames else _nothing()
    scales = {own.region: own.mpp for own in regions}
    frame, extra = _with_tables(_in_one_unit(frame, scales), metadata, table)
    every = dict.fromkeys([*plugin_findings(), *findings, *extra, *_undefined(frame)])
    return CohortObjects(team, frame, tuple(every))


def _in_one_unit(frame: pd.DataFrame, scales: Mapping[str, float | None]) -> pd.DataFrame:
    """Convert lengths to µm if the regions differ in scale; all scales must be known for this."""
    import pandas as pd

    known = [mpp for mpp in scales.values() if mpp is not None]
    if not known or len(known) < len(scales) or max(known) <= (1 + _SAME_SCALE) * min(known):
        return frame
    mpp = frame["region"].map(scales).astype(np.float64)
    columns = [in_um(str(name), frame[name], mpp) for name in frame]
    return pd.DataFrame(dict(columns))


def _with_tables(
    frame: pd.DataFrame, metadata: Metadata | None, table: pd.DataFrame | None
) -> tuple[pd.DataFrame, list[Finding]]:
    """Add the covariates of the table of patients and of that of objects."""
    import pandas as pd

    found: list[Finding] = []
    frame = frame.copy()
    if metadata is not None:
        found += metadata.findings
        for name, by_patient in metadata.columns.items():
            if name in frame:
                message = (
                    f"the column '{name}' of the table of patients is left out: a covariate "
                    f"of this name exists already; rename the column"
                )
                found.append(Finding(FindingKind.EXTRA, message))
                continue
            frame[name] = as_covariate([by_patient.get(who, "") for who in frame["patient"]])
    if table is not None:
        keys = list(KEY_COLUMNS)
        if doubled := [name for name in table if name in frame and name not in keys]:
            raise SettingsError(
                f"the table of covariates has {english_list(doubled)}, which exists already; "
                f"rename the column"
            )
        # Looked up, not merged: a table may have columns of any name, such as "index".
        rows = pd.MultiIndex.from_frame(table[keys]).get_indexer(
            pd.MultiIndex.from_frame(frame[keys])
        )
        used = rows[rows >= 0]
        found += _strangers(table, used, frame)
        for name in table.columns.drop(keys):
            column = np.full(len(frame), "", dtype=object)
            column[rows >= 0] = table[name].to_numpy()[used]
            frame[name] = as_covariate(column)
    return frame, found


def _strangers(
    table: pd.DataFrame, used: NDArray[np.integer], frame: pd.DataFrame
) -> Iterator[Finding]:
    """Report rows of the table without an object, and objects without a row."""
    if n := len(table) - len(used):
        row = table.iloc[int(np.setdiff1d(np.arange(len(table)), used)[0])]
        yield Finding(
            FindingKind.EXTRA,
            f"{n} of {len(table)} rows of the table of covariates match no object that counts "
            f"(ignored objects do not), such as {row['side']} {row['id']} of patient "
            f"'{row['patient']}' in region '{row['region']}'",
            count=n,
        )
    sides = frame["side"].isin(table["side"].unique())
    if missing := int(sides.sum()) - len(used):
        yield Finding(
            FindingKind.MISSING,
            f"{missing} of {int(sides.sum())} objects are not in the table of covariates; its "
            f"covariates are undefined for them",
            count=missing,
        )


def _undefined(frame: pd.DataFrame) -> Iterator[Finding]:
    """Report regions whose image yields no optical densities."""
    stains = [name for name, own in FEATURES.items() if own.needs is Need.IMAGE and name in frame]
    if not stains or not len(frame):
        return
    without = frame.loc[frame[stains].isna().all(axis=1), "region"].unique()
    if len(without):
        yield Finding(
            FindingKind.MISSING,
            f"optical densities are undefined in {len(without)} of "
            f"{frame['region'].nunique()} regions, which have no readable image of their size: "
            f"{english_list(without[:5].tolist())}",
            count=len(without),
        )

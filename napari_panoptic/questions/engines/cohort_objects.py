"""All objects of a cohort with their outcomes and covariates, as tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import english_list
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.io.tables.covariates import KEY_COLUMNS
from napari_panoptic.io.tables.metadata import Metadata
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.regions.reading import HELD_UP_TO_PX, read_picture
from napari_panoptic.nuclei.regions.region import Evaluated, HeldRegion
from napari_panoptic.nuclei.regions.run import walk
from napari_panoptic.questions.engines.covariates import (
    OUTCOME_COLUMNS,
    TEXTS,
    RegionSide,
    as_covariate,
    built_in_covariates,
    plugin_findings,
    region_covariates,
)
from napari_panoptic.questions.engines.scored_objects import ScoredRegion, scored_region
from napari_panoptic.questions.engines.slices import SliceSearch, search_slices
from napari_panoptic.statistics.max_t import PERMUTATIONS, SEED
from napari_panoptic.values import vocabulary
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import CAUSES, STATUS_CODE, STATUSES, Side, Status

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
_TOO_LARGE = (
    "the region is too large to be held, which covariates need; its objects are left out of the "
    "slices"
)


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
    #: The regions that could be evaluated, if the scores of the team are wanted.
    scored: Sequence[ScoredRegion] = ()

    @property
    def covariates(self) -> list[str]:
        """The names of the covariates."""
        return [str(name) for name in self.frame if name not in OUTCOME_COLUMNS]

    def of_side(self, side: Side) -> pd.DataFrame:
        """Return the objects of a side, numbered from 0."""
        own = self.frame["side"] == str(side)
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


def cohort_objects(
    cohort: Cohort,
    team_names: Sequence[str],
    settings: EvaluationSettings,
    *,
    source: Source | None = None,
    metadata: Metadata | None = None,
    table: pd.DataFrame | None = None,
    scores_of: Collection[str] = (),
    held_up_to_px: int = HELD_UP_TO_PX,
    jobs: int | None = 1,
    progress: Progress = UNWATCHED,
) -> dict[str, CohortObjects]:
    """Evaluate teams, and return their objects with covariates.

    Parameters
    ----------
    cohort, team_names, settings, source
        What to evaluate, and how. Scoring and distances have no effect.
    metadata
        The table of patients. Its columns become covariates of the objects of each patient.
    table
        Further covariates, from `napari_panoptic.io.tables.covariates.read_covariates`.
    scores_of
        The teams whose scores are wanted.
    held_up_to_px
        Regions with more pixels are left out: covariates need all of their pixels at once.
    jobs
        Regions at a time; None for the number of processors.
    progress
        Receives the progress after each region, and is checked for cancellation.

    Returns
    -------
    dict
        Team -> its objects; its findings list the inputs that could not be read.

    Raises
    ------
    PanopticError
        If a function or the table has a covariate that exists already.
    StoppedError
        If cancelled.
    """
    import pandas as pd

    settings = settings.replaced(distances=False)
    parts: dict[str, list[_TeamObjects]] = {team: [] for team in team_names}
    scales: dict[str, float | None] = {}

    def of_region(region: Region, held: HeldRegion) -> list[_TeamObjects]:
        scales[region.name] = held.mpp
        return _region_objects(region, held.each_team(team_names, settings, source), scores_of)

    for _, found in walk(
        cohort,
        team_names,
        settings,
        of_region,
        jobs=jobs,
        held_up_to_px=held_up_to_px,
        too_large=_TOO_LARGE,
        progress=progress,
    ):
        if isinstance(found, Finding):
            found = [_TeamObjects([found])] * len(team_names)
        for team, own in zip(team_names, found, strict=True):
            parts[team].append(own)
    objects = {}
    for team, regions in parts.items():
        frames = [frame for own in regions for frame in own.frames]
        frame = pd.concat(frames, ignore_index=True) if frames else _nothing()
        frame, extra = _with_tables(_in_one_unit(frame, scales), metadata, table)
        odd = [finding for own in regions for finding in own.findings]
        findings = dict.fromkeys([*plugin_findings(), *odd, *extra, *_undefined(frame)])
        scored = [one for own in regions for one in own.scored]
        objects[team] = CohortObjects(team, frame, tuple(findings), scored)
    return objects


# --- one region -------------------------------------------------------------------------------


_KnownCovariates = dict[bool, Mapping[str, NDArray[Any]]]
"""Whether there is an image -> the built-in covariates of a side."""


@dataclass(frozen=True, eq=False)
class _TeamObjects:
    """The objects of a team in one region, side by side, and with their scores if wanted."""

    findings: Sequence[Finding]
    frames: Sequence[pd.DataFrame] = ()
    scored: Sequence[ScoredRegion] = ()


def _region_objects(
    region: Region,
    teams: Iterator[tuple[str, Evaluated[Evaluation]]],
    scores_of: Collection[str],
) -> list[_TeamObjects]:
    """Return the objects of each team in a region."""
    objects: list[_TeamObjects] = []
    annotation: _KnownCovariates = {}
    image, odd = read_picture(region)
    try:
        for team, found in teams:
            findings = [*odd, *found.findings]
            if (own := found.evaluation) is None:
                objects.append(_TeamObjects(findings))
                continue
            at = region.patient, region.name
            frames = list(_both_sides(own, (*at, team), image, annotation))
            scored = [scored_region(own, *at)] if team in scores_of else []
            objects.append(_TeamObjects(findings, frames, scored))
    finally:
        if image is not None:
            image.close()
    return objects


def _both_sides(
    evaluation: Evaluation,
    at: tuple[str, str, str],
    image: SlideImage | None,
    annotation: _KnownCovariates,
) -> Iterator[pd.DataFrame]:
    pair = evaluation.pair
    for side in Side:
        labels = pair.side(side)
        own = RegionSide(*at, labels, evaluation.outcomes.side(side), image, pair.mpp)
        known = annotation if side is Side.REFERENCE else {}
        try:
            yield _side_frame(own, known)
        except PanopticError:  # the image is damaged; the views that show it report this
            if image is None:
                raise
            yield _side_frame(replace(own, image=None), known)


def _side_frame(own: RegionSide, known: _KnownCovariates) -> pd.DataFrame:
    import pandas as pd

    outcomes, has_image = own.outcomes, own.image is not None
    if has_image not in known:
        known[has_image] = built_in_covariates(own)
    columns: dict[str, Any] = {
        "patient": np.full(len(own), own.patient, dtype=object),
        "region": np.full(len(own), own.region, dtype=object),
        "side": np.full(len(own), str(outcomes.side), dtype=object),
        "id": outcomes.ids,
        "status": np.array([str(status) for status in STATUSES], object)[outcomes.status],
        "cause": np.array([str(cause) for cause in CAUSES], object)[outcomes.cause],
    }
    frame = pd.DataFrame(columns | region_covariates(own, built_in=known[has_image]))
    counts = outcomes.status != STATUS_CODE[Status.IGNORED]
    return frame if counts.all() else frame[counts]


def _nothing() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: pd.Series(dtype=object) for name in (*OUTCOME_COLUMNS, "class")})


# --- the whole cohort -------------------------------------------------------------------------


def _in_one_unit(frame: pd.DataFrame, scales: Mapping[str, float | None]) -> pd.DataFrame:
    """Convert lengths to µm if the regions differ in scale; all scales must be known for this."""
    import pandas as pd

    known = [mpp for mpp in scales.values() if mpp is not None]
    if not known or len(known) < len(scales) or max(known) <= (1 + _SAME_SCALE) * min(known):
        return frame
    mpp = frame["region"].map(scales).astype(np.float64)
    converted = {}
    for name in map(str, frame):
        power = TEXTS[name].px_power if name in TEXTS else 0
        if power:
            converted[name.removesuffix("_px") + "_um"] = frame[name] * mpp**power
        else:  # also columns of plugins, whatever their names end with
            converted[name] = frame[name]
    return pd.DataFrame(converted)


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
    if "haematoxylin_od" not in frame or not len(frame):
        return
    without = frame.loc[frame["haematoxylin_od"].isna(), "region"].unique()
    if len(without):
        yield Finding(
            FindingKind.MISSING,
            f"optical densities are undefined in {len(without)} of "
            f"{frame['region'].nunique()} regions, which have no readable image of their size: "
            f"{english_list(without[:5].tolist())}",
            count=len(without),
        )

"""What is doubtful about the files of a region, as findings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.cohorts.description import SLIDE_BOUNDS
from napari_panoptic.io.formats.format import TiledMasks
from napari_panoptic.io.formats.labels.pieces import stretched_findings
from napari_panoptic.io.formats.registry import is_mask
from napari_panoptic.io.images.slides import ImageInfo
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.overlap import Areas, OverlapTable
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import TiledPair


def unstated_bounds(cohort: Cohort, region: Region, info: ImageInfo) -> tuple[Finding, ...]:
    """Report a slide with bounds if the cohort does not say from where its outlines count."""
    if info.bounds_xy == (0, 0):
        return ()
    predicted = cohort.predictions_in(region.name)
    sides = {"reference": [region.reference] if region.reference else [], "predictions": predicted}
    x, y = info.bounds_xy
    words = [
        f'{side}.offset = "{SLIDE_BOUNDS}"'
        for side, found in sides.items()
        if any(_counts_from_corner(files) for files in found)
    ]
    message = (
        f"the scanned area of the slide begins at x {x}, y {y} (its bounds), from where QuPath "
        f"counts; outlines were taken to count from the corner of the slide. Where QuPath wrote "
        f"them, set {' or '.join(words)} under [files] in cohort.toml; elsewhere [0, 0]"
    )
    found = Finding(FindingKind.CONVENTION, message, path=region.image, region=region.name)
    return (found,) if words else ()


def _counts_from_corner(files: MaskFiles) -> bool:
    """Return whether nothing states where outlines of the slide begin."""
    rules = files.rules
    is_stated = rules.offset_xy is not None or rules.from_bounds is not None
    return not is_stated and files.patch is None and not is_mask(files)


SAME_MAGNIFICATION = math.sqrt(2)
"""Magnifications that differ by less are the same: scanners of 40x have from 0.2 to 0.3 um/px."""
UM_PER_PX_AT_1X = 10.0


def check_magnification(
    stated: float, mpp: float | None, region: Region, team: str | None
) -> tuple[Finding, ...]:
    """Check that a stated magnification is that of a region's image.

    Parameters
    ----------
    stated
        The magnification in the file of the objects.
    mpp
        Micrometres per pixel of the region's image; None if it is not known.
    region, team
        The region, and the team; None for the annotation.

    Returns
    -------
    tuple of Finding
        That it could not be checked, if that of the image is not known.

    Raises
    ------
    UnreadableFileError
        If the image has another one: all objects would be misplaced.
    """
    if mpp is None:
        message = (
            f"the outlines are in px at a magnification of {stated:g}; that of the image is not "
            f"known: they were taken for px of the image"
        )
        return (Finding(FindingKind.FALLBACK, message, region=region.name, team=team),)
    of_image = UM_PER_PX_AT_1X / mpp
    if 1 / SAME_MAGNIFICATION < stated / of_image < SAME_MAGNIFICATION:
        return ()
    raise UnreadableFileError(
        f"the outlines are in px at a magnification of {stated:g}, and the image has about "
        f"{of_image:.0f} ({mpp:g} um/px): they would all be misplaced. Multiply their "
        f"coordinates by {of_image / stated:.2f} and the magnification likewise, process the image "
        f"at its own magnification, or give the image at that of the outlines",
        region=region.name,
    )


VAST_SHARE = 0.5
"""Share of a region that no nucleus covers."""
LEAST_VAST_PX = 100**2
"""Smaller regions may be crops around a nucleus."""
_GRID = 200
"""Rows of pixels, at least, by which the share of a held region is found."""


def vast_objects(labels: LabelImage) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Return the ids of objects that cover more of a region than a nucleus does, and its shape."""
    step = max(1, min(labels.shape) // _GRID)
    seen = labels.index[::step, ::step]
    if np.count_nonzero(seen) <= VAST_SHARE * seen.size:  # not even all together do
        return labels.ids[:0], labels.shape
    share = np.bincount(seen.ravel(), minlength=len(labels) + 1)[1:] / max(seen.size, 1)
    return labels.ids[share > VAST_SHARE], labels.shape


def vast_findings(
    ids: NDArray[np.int64], shape: tuple[int, ...], region: Region, team: str | None
) -> tuple[Finding, ...]:
    """Report objects that cover more of a region of this shape than a nucleus does."""
    if not len(ids) or math.prod(shape) < LEAST_VAST_PX:
        return ()
    numbers = tuple(ids.tolist())
    message = (
        f"object {english_list(numbers)} covers more than {VAST_SHARE:.0%} of the region, as no "
        f"nucleus does: the mask may be inverted (0 for objects; save 0 for the background), or "
        f"this is the outline of an area (remove it)"
    )
    found = Finding(
        FindingKind.CONVENTION, message, region=region.name, team=team, object_ids=numbers
    )
    return (found,)


LEAST_APART = 5
"""With fewer objects on a side, they may as well lie elsewhere."""
LITTLE = 0.3
"""Dice coefficient of the areas of both sides below which they overlap little."""


def little_overlap(areas: Areas, team: str, region: str | None = None) -> tuple[Finding, ...]:
    """Return a finding if both sides have objects and these overlap little.

    Parameters
    ----------
    areas
        Of all regions of a team.
    team
        Its name.
    region
        The region, if they are of one only; hard ones overlap little by themselves, so that only
        objects that do not touch at all are reported.
    """
    limit = LITTLE if region is None else 0.0
    if min(areas.n_reference, areas.n_prediction) < LEAST_APART or areas.dice > limit:
        return ()
    how = f"overlap little (Dice {areas.dice:.2f})" if areas.shared_px else "do not touch"
    message = (
        f"the {areas.n_prediction} objects of {team} and the {areas.n_reference} annotated ones "
        f"{how}: they may be those of other regions, mirrored, turned, moved, in px of another "
        f"resolution, in micrometres, with x and y swapped, or run lengths that go row by row. If "
        f"so, export them again, or set scale, offset or axes under [files] in cohort.toml (init "
        f"looks for the cause)"
    )
    return (Finding(FindingKind.LITTLE_OVERLAP, message, region=region, team=team),)


def vanished_in_zone(
    evaluation: Evaluation | Evaluation[TiledPair], team: str, region: str
) -> tuple[Finding, ...]:
    """Describe the objects of which the uncertain border leaves no pixel."""
    zone, findings = evaluation.settings.zone_px, []
    if not zone:
        return ()
    for side, name, owner in (
        (Side.REFERENCE, "annotated nuclei", None),
        (Side.PREDICTION, "predictions", team),
    ):
        labels = evaluation.pair.side(side)
        ids = tuple(labels.ids[evaluation.in_zone(side)].tolist())
        if ids:
            message = (
                f"{len(ids)} of {len(labels)} {name} "
                f"{'has' if len(ids) == 1 else 'have'} no pixel left "
                f"outside of the uncertain border of {zone} px: ignored"
            )
            findings.append(
                Finding(
                    FindingKind.VANISHED,
                    message,
                    region=region,
                    team=owner,
                    count=len(ids),
                    object_ids=ids,
                )
            )
    return tuple(findings)


def no_prediction(region: Region, team: str, source: Source | None) -> Finding:
    """Return the finding that a team has no prediction in the requested format."""
    form = f" in the format '{source}'" if source is not None else ""
    message = f"team '{team}' has no prediction{form} for region {region.name}: not evaluated"
    return Finding(FindingKind.MISSING, message, region=region.name, team=team)


def unusual_form(
    usual: Source | None, region: Region, team: str, files: MaskFiles, source: Source | None
) -> tuple[Finding, ...]:
    """Return a finding if a team's figures would mix two formats of its predictions.

    Parameters
    ----------
    usual
        The team's usual format over the cohort.
    region, team, files
        The prediction.
    source
        The format that was asked for; None for the usual one.
    """
    if source is not None or files.source == usual:
        return ()
    message = (
        f"team '{team}' has no {usual} prediction for region {region.name}: "
        f"its {files.source} prediction is used instead"
    )
    return (Finding(FindingKind.FALLBACK, message, region=region.name, team=team),)


def not_in_windows(region: Region, team: str, what: str) -> Finding:
    """Return the finding that the settings need the region as a whole, which is not held."""
    message = (
        f"region {region.name} is too large to be held, and {what} is not possible for a region "
        f"that is read in windows: not evaluated for team '{team}'"
    )
    return Finding(FindingKind.UNREADABLE, message, region=region.name, team=team)


def findings_after(
    masks: TiledMasks,
    pair: TiledPair,
    table: OverlapTable,
    region: Region,
    team: str | None,
    files: MaskFiles | None = None,
) -> tuple[Finding, ...]:
    """Return what is known only after all windows of a side have been read.

    Parameters
    ----------
    masks
        The objects.
    pair, table
        The objects with pixels, and what was counted of them.
    region, team
        The region, and the team; None for the annotation.
    files
        The files; None for those of the annotation.

    Returns
    -------
    tuple of Finding
        What the format reports, or else the objects without a pixel; objects of masks
        whose pieces lie far apart; and those that cover most of the slide.
    """
    side = Side.REFERENCE if team is None else Side.PREDICTION
    ids, counts, labels = pair.side(side).ids, table.side(side), masks.labels
    has_pixel, files = np.isin(labels.ids, ids), files or region.reference
    vast = ids[counts.area > VAST_SHARE * math.prod(labels.shape)]
    others = vast_findings(vast, labels.shape, region, team)
    is_open = files is not None and files.rules.objects is None and files.object_paths
    if files is not None and is_open and is_mask(files):
        name = "reference" if team is None else "predictions"
        found = stretched_findings(ids, counts.area, counts.bbox, files.all_paths[0], name)
        others += tuple(replace(finding, region=region.name, team=team) for finding in found)
    if masks.findings_after is not None:
        return (*masks.findings_after(has_pixel), *others)
    lost = tuple(labels.ids[~has_pixel].tolist())
    if not lost:
        return others
    message = (
        f"{counted(len(lost), 'object')} without a pixel left, outside the image, covered by "
        f"others or with no inner pixel: {english_list(lost)}"
    )
    return (
        Finding(
            FindingKind.VANISHED,
            message,
            region=region.name,
            team=team,
            count=len(ids),
            object_ids=lost,
        ),
        *others,
    )

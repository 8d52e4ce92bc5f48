"""Recognise the contents of a folder and report doubts, before any evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from napari_panoptic.common.errors import CohortError, OutsideLinksError
from napari_panoptic.common.findings import FINDING_TITLES, Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.inspection.looking import (
    SampledRegion,
    SampledSide,
    probed,
    regions_to_read,
    sampled_region,
    sides_of,
)
from napari_panoptic.inspection.names import class_doubts, name_doubts, number_doubts
from napari_panoptic.inspection.places import place_doubts, side_doubts
from napari_panoptic.inspection.values import REFERENCE, Doubt, Fix, InspectedSide, SideCount
from napari_panoptic.io.cohorts.description import cohort_listing, description_in
from napari_panoptic.io.cohorts.description_edits import layout_text, save_description, with_setting
from napari_panoptic.io.cohorts.folder_scan import scan_folder
from napari_panoptic.io.cohorts.layouts import Layout
from napari_panoptic.io.cohorts.nuclei import EXPECTED, layout_of, open_cohort
from napari_panoptic.io.cohorts.patterns import check_listing
from napari_panoptic.io.images.slides import ImageInfo
from napari_panoptic.values.cohort import Cohort, Source

IMAGES = "images"
"""The images, where names of sides and teams are expected."""
MPP_CHOICES = ((0.25, "40x"), (0.5, "20x"), (1.0, "10x"))
"""Usual micrometres per pixel, and the magnification of the objective."""
NUCLEUS_UM = (2.0, 50.0)
"""Diameters that the median nucleus has, in micrometres."""

_DOUBTED = (
    *(FindingKind.MISSING, FindingKind.UNKNOWN_CLASS, FindingKind.CONVENTION),
    *(FindingKind.NO_MPP, FindingKind.OUTSIDE_IMAGE, FindingKind.CLASS_ORDER),
)
"""Kinds of findings that doubts report, or that lie at every edge of an image."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """The recognised contents of a folder."""

    #: The cohort as its files are now read.
    cohort: Cohort
    #: The text of its ``cohort.toml``, or that which describes its known layout.
    description: str
    #: Whether the folder is read like this without another ``cohort.toml``.
    is_saved: bool
    #: The recognised files of images, annotation and teams.
    counts: tuple[SideCount, ...]
    #: Names of the regions whose objects were read.
    looked_at: tuple[str, ...]
    #: Doubts about the contents.
    doubts: tuple[Doubt, ...]
    #: Problems found in the files that were read, and in the folders.
    findings: tuple[Finding, ...]
    #: The region and the team for a picture; None if no region has both sides.
    shown: tuple[str, str] | None
    #: Whether links that lead out of the folder are followed.
    allow_outside: bool = False

    @property
    def root(self) -> Path:
        """The folder."""
        return self.cohort.root

    @property
    def notes(self) -> list[str]:
        """One line for each kind of finding that is no doubt, with an example."""
        others = [finding for finding in self.findings if finding.kind not in _DOUBTED]
        lines = []
        for kind, count in Counter(finding.kind for finding in others).items():
            example = next(finding for finding in others if finding.kind is kind)
            number = f" ({count} times)" if count > 1 else ""
            lines.append(f"{FINDING_TITLES[kind]}{number}: {example.message}")
        return lines

    def with_fixes(self, fixes: Sequence[Fix]) -> Inspection:
        """Inspect the folder again with other settings. Nothing is written."""
        text = self.description
        for fix in fixes:
            for key, value in fix.settings:
                text = with_setting(text, key, value)
        return inspect_folder(self.root, description=text, allow_outside=self.allow_outside)

    def save(self) -> Path | None:
        """Write the description if it is new; return the path of the copy of the old one."""
        return None if self.is_saved else save_description(self.root, self.description)


def inspect_folder(
    folder: Path,
    *,
    description: str | None = None,
    allow_outside: bool = False,
    progress: Progress = UNWATCHED,
) -> Inspection:
    """Recognise the contents of a folder and report doubts. The folder is not changed.

    Objects are read in a few regions only, sizes and resolutions of all images.

    Parameters
    ----------
    folder
        The folder, or its ``cohort.toml``.
    description
        The text of a ``cohort.toml`` to use instead of that in the folder. Without
        both, and where the layout is unknown, one is made by scanning the folder.
    allow_outside
        Whether links that lead out of the folder are followed.
    progress
        Reported and checked for cancellation region by region.

    Raises
    ------
    CohortError
        If the folder is not a cohort and none can be recognised.
    StoppedError
        If cancelled.
    """
    listing = cohort_listing(folder, allow_outside=allow_outside)
    is_saved = description is None
    if description is None:
        known = known_description(folder, allow_outside=allow_outside)
        is_saved = known is not None
        description = known or _scanned(folder, allow_outside=allow_outside)
    cohort = open_cohort(
        folder, allow_outside=allow_outside, description=None if is_saved else description
    )
    layout = layout_of(listing, None if is_saved else description)
    infos = probed(cohort.regions)
    regions = regions_to_read(cohort, infos)
    teams = [team.name for team in cohort.competing_teams]
    sample = []
    for number, region in enumerate(regions):
        progress.check()
        progress.tell(number / len(regions), f"reading {region.name}")
        sample.append(sampled_region(cohort, region, infos.get(region.name), teams))
    odd = [
        replace(f, team=side.team) for each in sample for side in each.sides for f in side.findings
    ]
    findings = (*cohort.findings, *odd)
    named = tuple(name_doubts(cohort, layout, listing))
    doubts = (
        *_unreadable(sample, teams),
        *named,
        *_doubts(cohort, layout, infos, sample, findings),
        *_missing(cohort, {doubt.name.partition(":")[2] for doubt in named}),
    )
    return Inspection(
        cohort=cohort,
        description=description,
        is_saved=is_saved,
        counts=tuple(_counts(cohort, sample)),
        looked_at=tuple(region.name for region in regions),
        doubts=doubts,
        findings=findings,
        shown=_shown(sample, [doubt.name.partition(":")[2] for doubt in doubts]),
        allow_outside=allow_outside,
    )


def known_description(folder: Path, *, allow_outside: bool = False) -> str | None:
    """Return the ``cohort.toml`` of a folder, or a text for its known layout; None without both.

    Raises
    ------
    CohortError
        If the ``cohort.toml`` cannot be understood.
    """
    listing = cohort_listing(folder, allow_outside=allow_outside)
    check_listing(listing, EXPECTED)
    if (path := description_in(listing)) is not None:
        layout_of(listing)  # raises the error
        return path.read_text(encoding="utf-8-sig")
    try:
        layout = layout_of(listing)
        open_cohort(folder, allow_outside=allow_outside)
    except OutsideLinksError:
        raise
    except CohortError:
        return None
    return layout_text(layout, listing)


def _scanned(folder: Path, *, allow_outside: bool) -> str:
    """Return the description of a folder of unknown layout."""
    scan = scan_folder(cohort_listing(folder, allow_outside=allow_outside).root)
    if scan.reference is None and not scan.predictions:
        open_cohort(folder, allow_outside=allow_outside)  # raises the error
    return scan.description()


def _doubts(
    cohort: Cohort,
    layout: Layout,
    infos: dict[str, ImageInfo],
    sample: Sequence[SampledRegion],
    findings: Sequence[Finding],
) -> Iterator[Doubt]:
    reference = InspectedSide("reference", None, REFERENCE)
    has_teams = any("team" in pattern.fields for pattern in layout.predictions.all)
    teams = [
        InspectedSide("predictions", team.name if has_teams else None, team.name)
        for team in cohort.competing_teams
    ]
    yield from place_doubts(sample, reference, teams)
    for target in (reference, *teams):
        yield from side_doubts(target, sides_of(sample, target.name))
    yield from class_doubts(cohort.scheme, findings)
    yield from number_doubts(sample, cohort.scheme, (reference, *teams))
    yield from _mpp_doubt(infos, sample)
    yield from _empty(sample, [target.name for target in (reference, *teams)])


def _unreadable(sample: Sequence[SampledRegion], teams: Sequence[str]) -> Iterator[Doubt]:
    """Report sides with files that cannot be read, except those of another size than the image."""
    for name in (REFERENCE, *teams):
        sides = [s for s in sides_of(sample, name) if s.own_shape in (None, s.shape)]
        odd = [f for side in sides for f in side.findings if f.kind is FindingKind.UNREADABLE]
        if odd:
            yield Doubt(
                f"unreadable:{name}",
                f"Files of {name} cannot be read in {len({f.region for f in odd})} of {len(sides)} "
                f"regions that were read: {odd[0].message}.",
            )


def _mpp_doubt(infos: dict[str, ImageInfo], sample: Sequence[SampledRegion]) -> Iterator[Doubt]:
    """Report images without micrometres per pixel, or with implausible ones."""
    known = [info.mpp for info in infos.values() if info.mpp is not None]
    fixes = [(value, f"{value:g} µm per px ({lens})") for value, lens in MPP_CHOICES]
    if infos and len(known) < len(infos):
        is_clear = bool(known)
        if is_clear:
            own = float(median(known))
            fixes = [(own, f"{own:g} µm per px, as the others"), *fixes]
        yield _mpp(
            f"{len(infos) - len(known)} of {len(infos)} images state no micrometres per pixel: "
            "distances are given in px only.",
            fixes,
            is_clear=is_clear,
        )
    elif diameters := [d for region in sample if (d := _diameter_um(region)) is not None]:
        low, high = NUCLEUS_UM
        typical = median(diameters)
        if not low <= typical <= high:
            yield _mpp(
                f"The images state {median(known):g} µm per px, with which the median annotated "
                f"object is {typical:.2g} µm wide; nuclei are from {low:g} to {high:g} µm wide.",
                fixes,
                is_clear=False,
            )


def _mpp(message: str, fixes: Sequence[tuple[float, str]], *, is_clear: bool) -> Doubt:
    made = [Fix(f"{value:g}", label, ((("files", "mpp"), value),)) for value, label in fixes]
    unique = {fix.name: fix for fix in reversed(made)}
    return Doubt("mpp", message, tuple(unique.values())[::-1], is_clear)


def _diameter_um(region: SampledRegion) -> float | None:
    """Return the diameter of the disk of the median area of the annotated objects."""
    side = region.reference
    if side is None or side.masks is None or side.image is None or side.image.mpp is None:
        return None
    areas = np.bincount(side.masks.labels.index.ravel())[1:]
    return None if not len(areas) else float(2 * np.sqrt(np.median(areas) / np.pi) * side.image.mpp)


def _missing(cohort: Cohort, named: set[str]) -> Iterator[Doubt]:
    """Report sides without files for some regions, except those whose files have other names."""
    if REFERENCE in named:
        return  # each region occurs twice, and no team has both
    for finding in cohort.findings:
        name = finding.team or REFERENCE
        if finding.kind is FindingKind.MISSING and name not in named:
            message = f"{finding.message[0].upper()}{finding.message[1:]}."
            yield Doubt(f"missing:{name}", message)


def _empty(sample: Sequence[SampledRegion], names: Sequence[str]) -> Iterator[Doubt]:
    """Report sides without a single object where another side has some."""
    read = {name: [s for s in sides_of(sample, name) if s.is_read] for name in names}
    filled = {name for name, sides in read.items() if any(side.has_objects for side in sides)}
    for name, sides in read.items():
        if sides and filled and name not in filled:
            yield Doubt(
                f"empty:{name}",
                f"No object of {name} was found in the regions that were read. Check that these "
                "are the right files.",
            )


def _objects(cohort: Cohort, sides: Sequence[SampledSide]) -> dict[str, int] | None:
    """Count the objects of each class in the sides that could be read; None if there is none."""
    drawn = [side.counts() for side in sides if side.masks is not None]
    return {c: sum(each[c] for each in drawn) for c in cohort.scheme.names} if drawn else None


def _counts(cohort: Cohort, sample: Sequence[SampledRegion]) -> Iterator[SideCount]:
    regions = cohort.regions
    images = {region.name for region in regions if region.image is not None}
    annotated = {region.name for region in regions if region.reference is not None}
    predicted = {name for _, name in cohort.predictions}

    def side(
        name: str, found: set[str], partners: set[str], forms: Iterable[Source], unused: int = 0
    ) -> SideCount:
        return SideCount(
            name,
            tuple(dict.fromkeys(map(str, forms))),
            len(found),
            len(found & partners),
            len({region.name for region in regions} - found),
            unused,
            None if name == IMAGES else _objects(cohort, sides_of(sample, name)),
        )

    yield side(IMAGES, images, annotated, ())
    forms = [region.reference.source for region in regions if region.reference is not None]
    yield side(REFERENCE, annotated, images | predicted, forms)
    for team in cohort.competing_teams:
        own = {
            region: files
            for (name, region), files in cohort.predictions.items()
            if name == team.name
        }
        forms = [source for files in own.values() for source in files]
        yield side(team.name, set(own), annotated, forms, _unused(cohort, team.name))


def _unused(cohort: Cohort, team: str) -> int:
    """Count the regions and files that were found and belong to no region of the cohort."""
    return sum(
        finding.count
        for finding in cohort.findings
        if finding.kind is FindingKind.EXTRA and finding.team == team and not finding.class_name
    )


def _shown(sample: Sequence[SampledRegion], doubted: Sequence[str]) -> tuple[str, str] | None:
    """Choose the region with most annotated objects, and a team, rather one with doubts."""
    found = [
        (team in doubted, sum(region.reference.counts().values()), region.region.name, team)
        for region in sample
        if region.reference is not None
        for team, side in region.predictions.items()
        if side.is_read
    ]
    return max(found, key=lambda each: each[:2])[2:] if found else None

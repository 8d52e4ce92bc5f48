"""A folder becomes a cohort: regions, teams, and which files hold what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path

from napari_panoptic.common.errors import CohortError, PanopticError, UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import composed, counted, english_list
from napari_panoptic.io.cohorts.description import (
    DESCRIPTION,
    description_in,
    read_description,
)
from napari_panoptic.io.cohorts.discovery import (
    IMAGE,
    PREDICTIONS,
    REFERENCE,
    FileTable,
    FoundFile,
    Key,
    RegionFiles,
    Search,
    cohort_name,
    missing_sides,
    one_region,
    opened_folder,
)
from napari_panoptic.io.cohorts.layouts import (
    ANNOTATIONS,
    COCO_NAMES,
    COLOUR_CODED,
    CONIC_LAYOUT,
    PANNUKE_LAYOUT,
    SUBMISSIONS,
    TEAMS,
    Layout,
    MaskPatterns,
    Patterns,
    coco_layout,
    monusac_layout,
    patterns_of,
)
from napari_panoptic.io.cohorts.patches import PlacedRegion, read_patches
from napari_panoptic.io.cohorts.patterns import (
    Listing,
    Match,
    missing,
    natural_key,
)
from napari_panoptic.io.formats.format import FileItem, ListItems
from napari_panoptic.io.formats.labels.arrays import array_items
from napari_panoptic.io.formats.labels.label_images import (
    SIDECAR_SUFFIXES,
    area_beside,
    labels_beside,
    sidecars_beside,
)
from napari_panoptic.io.formats.registry import known_forms, plugin_findings
from napari_panoptic.io.images.arrays import holds_many_images
from napari_panoptic.values.cohort import (
    UNSTATED,
    Cohort,
    MaskFiles,
    OutlineRules,
    Region,
    Source,
    Team,
)

ANNOTATION, CLASSES, PROBABILITY = "annotation", "classes", "probability"
"""Content of files, beside the roles of all tasks: see `layouts.MaskPatterns`."""
ANNOTATION_TEAM = "colour-coded GT"
"""Name of the annotation's own version where it is scored like a team."""

EXPECTED = (
    f"expected either the MoNuSAC folders, '{ANNOTATIONS}/PATIENT/REGION.svs' and '.xml' with "
    f"'{TEAMS}/TEAM/PATIENT/REGION_mask.png.tif' or '{SUBMISSIONS}/TEAM/PATIENT/REGION/CLASS/"
    f"*.mat', or the arrays of PanNuke (masks.npy) or CoNIC (labels.npy), or a COCO panoptic data "
    f"set (panoptic.json), or a file {DESCRIPTION} that describes the folder (see "
    "docs/reference/cohorts.md). Choose such a folder, or let 'napari-panoptic init FOLDER' "
    "describe this one"
)
"""Requirements on a folder, for messages."""


def open_cohort(
    folder: str | Path, *, allow_outside: bool = False, description: str | None = None
) -> Cohort:
    """Find out which regions and teams a folder holds. No pixels are read.

    A ``cohort.toml`` in the folder says what lies where; without one the
    folders of the MoNuSAC challenge are expected. Names of folders and endings
    are compared without regard to case.

    Parameters
    ----------
    folder
        The cohort's folder, or its ``cohort.toml``.
    allow_outside
        Whether links that lead out of the folder are followed. Only the
        user may allow it, never a file of the cohort.
    description
        The text of a ``cohort.toml`` to use instead of that in the folder, if any.

    Returns
    -------
    Cohort
        What is missing or extra is in its findings.

    Raises
    ------
    CohortError
        If the folder is missing, is a file, cannot be read, or holds no
        region; where its ``cohort.toml`` cannot be understood.
    OutsideLinksError
        If that may be so because links out of it were not followed.
    """
    with opened_folder(folder, EXPECTED, allow_outside=allow_outside) as listing:
        layout = layout_of(listing, description)
        return _Discovery(layout, listing).cohort()


def layout_of(listing: Listing, description: str | None = None) -> Layout:
    """Find out how a folder is laid out, by its ``cohort.toml`` or its names.

    Parameters
    ----------
    listing
        The folder.
    description
        The text of a ``cohort.toml`` to use instead of that in the folder, if any.

    Raises
    ------
    CohortError
        If it is no cohort.
    """
    if description is not None:
        return read_description(listing.root / DESCRIPTION, description)
    if (path := description_in(listing)) is not None:
        return read_description(path)
    if any(listing.below((ANNOTATIONS,))):
        return monusac_layout()
    for layout in (PANNUKE_LAYOUT, CONIC_LAYOUT):
        if any(any(pattern.files(listing)) for pattern in layout.reference.all):
            return layout
    for pattern in patterns_of(*COCO_NAMES):
        for match in pattern.files(listing):
            return _coco(match.path)
    hint = ""
    known = {name.casefold() for name in (ANNOTATIONS, TEAMS, SUBMISSIONS, COLOUR_CODED)}
    if listing.root.resolve().name.casefold() in known:
        hint = "this looks like one folder of a cohort, open the folder above it; "
    for entry in listing.entries(listing.root):
        if entry.is_folder and any(Listing(entry.path).below((ANNOTATIONS,))):
            hint = f"did you mean the folder '{entry.path.name}' in it? "
    raise CohortError(f"this folder is no cohort; {hint}{EXPECTED}", path=listing.root)


def _coco(path: Path) -> Layout:
    try:
        return coco_layout(path)
    except UnreadableFileError as error:
        raise CohortError(f"{error.message}; or add a {DESCRIPTION}", path=path) from error


_Predictions = dict[tuple[str, str], dict[Source, MaskFiles]]
_Regions = list[tuple[Region, Key]]


class _Discovery(Search):
    """One walk through a cohort's folder."""

    def __init__(self, layout: Layout, listing: Listing) -> None:
        super().__init__(listing)
        self._layout = layout
        self._scheme = layout.scheme
        self._placed = self._places_in_slides()
        self._of_slides: dict[str, list[str]] = defaultdict(list)
        # The region of each key in files of the annotation, for results that name none.
        self._listed: Mapping[str, str] = {}
        for at in self._placed.values():
            self._of_slides[at.slide.casefold()].append(at.region)

    def _places_in_slides(self) -> dict[str, PlacedRegion]:
        """Return the place of each region in its slide, by its casefolded name."""
        placed = list(self._layout.patches)
        for pattern in self._layout.patch_tables:
            tables = [match.path for match in self._marked(pattern)]
            if not tables:
                raise CohortError(
                    f"there is no table '{pattern.text}', which states where regions lie in "
                    f"slides; add it",
                    path=self._listing.root,
                )
            try:
                placed += read_patches(tables[0])
            except UnreadableFileError as error:
                raise CohortError(error.message, path=error.path) from error
        by_name = {own.region.casefold(): own for own in placed}
        if len(by_name) < len(placed):
            names = sorted(own.region.casefold() for own in placed)
            again = next(name for name, other in pairwise(names) if name == other)
            raise CohortError(f"the region '{again}' has two places in slides; keep one of them")
        return by_name

    def cohort(self) -> Cohort:
        layout = self._layout
        own = self._find(IMAGE, layout.image, self._images_in)
        own |= self._masks(REFERENCE, layout.reference)
        regions = self._regions(own)
        if not regions:
            raise self._nothing_found(layout.all_patterns)
        self._listed = _listed_regions(own)
        # A pattern of teams may fit the folders of images and annotations, too.
        taken = frozenset(self._used)
        of_teams = self._masks(PREDICTIONS, layout.predictions, taken)
        predictions = self._predictions(of_teams, PREDICTIONS, layout.predictions, regions)
        self._findings.extend(self._idle_teams(of_teams, taken))
        of_copies = self._masks(ANNOTATION, layout.annotation)
        copies = self._predictions(of_copies, ANNOTATION, layout.annotation, regions)
        annotation = {(ANNOTATION_TEAM, region): forms for (_, region), forms in copies.items()}
        everything = [region for region, _ in regions]
        self._findings.extend(
            missing_sides(
                "region",
                everything,
                ": evaluated, but not shown",
                has_images=bool(layout.image),
                has_references=bool(layout.reference.forms),
            )
        )
        self._findings.extend(self._unknown_places(everything))
        self._findings.extend(_prediction_findings(predictions, everything))
        self._findings.extend(self._extra_files())
        teams = sorted({team for team, _ in predictions}, key=natural_key)
        return Cohort(
            name=cohort_name(layout.name, self._listing),
            root=self._listing.root,
            scheme=self._scheme,
            regions=tuple(everything),
            teams=(
                *(Team(name) for name in teams),
                *([Team(ANNOTATION_TEAM, is_annotation=True)] if annotation else []),
            ),
            predictions={**predictions, **annotation},
            findings=(
                *plugin_findings(),
                *self._common_findings(),
            ),
            annotation_places=_places_of(layout.reference),
            prediction_places=_places_of(layout.predictions),
        )

    def _images_in(self, match: Match) -> Iterator[FileItem]:
        """List the images of a file; only an array may hold many."""
        holds_one = "region" in match.fields and not holds_many_images(match.path)
        return self._places(match, None if holds_one else array_items)

    def _masks(
        self, role: str, masks: MaskPatterns, taken: frozenset[Path] = frozenset()
    ) -> FileTable:
        """Find the masks of one side, and the files beside them that decide how they are read."""
        table = FileTable()
        for source, patterns in masks.forms.items():
            table |= self._masks_of_format(role, source, patterns, taken)
        tables = self._find(CLASSES, masks.sidecars, shared=True)
        table |= [row for found in table.of(role) for row in self._beside(found, tables)]
        self._findings.extend(_rules_without_team(masks.rules, table.teams(role)))
        return table | self._find(PROBABILITY, masks.probabilities)

    def _beside(self, found: RegionFiles, tables: FileTable) -> Iterator[FoundFile]:
        """Yield rows of the files that decide how others are read, and note that they are used."""
        for name, paths in found.paths.items():
            more: list[Path] = []
            if found.row.source == Source.LABELS:
                own = None if name else tables.at(found.key, CLASSES, found.row.team)
                more += [] if own is None else [*own.paths[""], *own.spare]
                more += self._tables_beside(name, [*paths, *more])
            companions = known_forms()[found.row.source].companions(paths[0])
            self._note_beside(*companions)
            for path in (*more, *companions):
                yield found.row_of(name, path)

    def _tables_beside(self, name: str, paths: Sequence[Path]) -> Iterator[Path]:
        """Yield the tables of classes beside label images; they decide figures as much as these."""
        has_table = any(path.suffix.lower() in SIDECAR_SUFFIXES for path in paths)
        for path in paths:
            beside = list(sidecars_beside(path))
            if not name and path == paths[0]:
                yield from () if has_table else beside[:1]
                if (area := area_beside(path)) is not None:
                    beside.append(area)
                    yield area
            self._note_beside(*beside)

    def _note_beside(self, *paths: Path) -> None:
        """Note files that others need; their readers refuse links out of the folder."""
        self._used.update(paths)
        for path in paths:
            self._listing.admits(path)

    def _places(self, match: Match, items: ListItems | None) -> Iterator[FileItem]:
        """List the regions of a file; that of a file that holds one has no key."""
        region, patient = match.fields.get("region"), match.fields.get("patient")
        if (slide := match.fields.get("slide")) is not None:
            yield from self._patches_of(slide, match, patient)
            return
        if items is None:
            yield FileItem(str(region), "", patient)
            return
        try:
            for item in items(match.path):
                if not all(map(self._listing.admits, item.paths)):
                    continue
                listed = self._listed.get(item.key) if item.is_keyed else None
                own = composed(listed or item.name)
                name = own if region is None else f"{region}_{own}"
                name = region if region is not None and item.is_only else name
                yield replace(item, name=name, patient=patient or item.patient)
        except PanopticError as error:
            team = self._teams[self._teams.key(match)] if "team" in match.fields else None
            self._findings.append(
                Finding(FindingKind.UNREADABLE, error.message, path=error.path, team=team)
            )

    def _patches_of(self, slide: str, match: Match, patient: str | None) -> Iterator[FileItem]:
        """Yield the regions that lie in a slide."""
        names = self._of_slides.get(slide.casefold(), [])
        for name in names:
            yield FileItem(name, "", patient)
        if not names:
            message = f"no region has a place in the slide '{slide}'; its outlines are not used"
            self._findings.append(Finding(FindingKind.EXTRA, message, path=match.path))

    def _masks_of_format(
        self, role: str, source: Source, patterns: Patterns, taken: frozenset[Path]
    ) -> FileTable:
        items = known_forms()[source].items
        unknown: dict[tuple[str, str], list[Path]] = defaultdict(list)

        def class_of(match: Match) -> str | None:
            if source == Source.LABELS and (of := labels_beside(match.path)) and of.is_file():
                return None  # the ambiguous area of another file, which has it noted
            if (text := match.fields.get("class")) is None:
                return ""
            if (name := self._scheme.canonical(text)) is None:
                unknown[self._teams.key(match), text].append(match.path)
            return name

        table = self._find(
            role, patterns, lambda m: self._places(m, items), class_of, taken, source=source
        )
        self._findings.extend(self._unknown_classes(unknown))
        # Folders of regions without a single file in them: nothing was found there by the team.
        return table | [
            FoundFile(match.path, role, item.name, item.patient, team, source, is_folder=True)
            for pattern in patterns
            if "class" in pattern.fields and (folder := pattern.folder_of("region")) is not None
            for match in folder.folders(self._listing)
            for team in [self._teams.key(match)]
            for item in one_region(match)
        ]

    def _regions(self, table: FileTable) -> _Regions:
        regions = []
        for place in table.places((IMAGE, REFERENCE), self._layout.patient_of):
            image = table.at(place.key, IMAGE)
            masks = self._files(table, REFERENCE, self._layout.reference, "", place.key)
            region = Region(
                place.name,
                place.patient,
                image.first if image else None,
                next(iter(masks.values()), None),
                image.row.item if image else None,
                self._layout.mpp,
            )
            regions.append((region, place.key))
        return regions

    def _files(
        self, table: FileTable, role: str, masks: MaskPatterns, team: str, key: Key
    ) -> dict[Source, MaskFiles]:
        """Return the files of a team, or of the annotation, for a region."""
        rules = masks.rules.get(team, UNSTATED).completed(masks.rules.get("", UNSTATED))
        return {
            source: self._mask_files(found, rules, table.first(found.key, PROBABILITY, team))
            for source in masks.forms
            if (found := table.at(key, role, team, source))
        }

    def _mask_files(
        self, found: RegionFiles, rules: OutlineRules, probability: Path | None
    ) -> MaskFiles:
        order = ["", *self._scheme.names, self._scheme.ambiguous]
        paths = {name: tuple(found.paths[name]) for name in sorted(found.paths, key=order.index)}
        row, within = found.row, self._listing.within
        patch = self._placed[row.region.casefold()].patch if found.is_of_slide else None
        return MaskFiles(row.source, paths, row.item, within, rules, patch, probability)

    def _predictions(
        self, table: FileTable, role: str, masks: MaskPatterns, regions: _Regions
    ) -> _Predictions:
        self._findings.extend(self._unknown_regions(table, role, regions))
        return {
            (self._teams[team], region.name): files
            for team in sorted(table.teams(role))
            for region, key in regions
            if (files := self._files(table, role, masks, team, key))
        }

    def _unknown_classes(self, unknown: Mapping[tuple[str, str], list[Path]]) -> Iterator[Finding]:
        known = [*self._scheme.names, *([self._scheme.ambiguous] if self._scheme.ambiguous else [])]
        for (team, name), paths in unknown.items():
            yield Finding(
                FindingKind.EXTRA,
                f"{counted(len(paths), 'file')} of the unknown class '{name}', not used; known are "
                f"{english_list(known)}",
                path=paths[0],
                team=self._teams[team] if team else None,
                class_name=name,
                count=len(paths),
            )

    def _unknown_places(self, regions: Iterable[Region]) -> Iterator[Finding]:
        """Report places in slides of regions that the cohort does not have."""
        known = {region.name.casefold() for region in regions}
        names = [at.region for key, at in self._placed.items() if key not in known]
        if names:
            yield Finding(
                FindingKind.EXTRA,
                f"{counted(len(names), 'region')} with a place in a slide, but not in this cohort: "
                f"{english_list(names)}",
                count=len(names),
            )

    def _unknown_regions(self, table: FileTable, role: str, regions: _Regions) -> Iterator[Finding]:
        unknown: dict[tuple[Source, str], list[str]] = defaultdict(list)
        for found in table.others(role, [key for _, key in regions]):
            unknown[found.row.source, found.row.team].append(found.row.region)
        for (source, team), names in unknown.items():
            yield Finding(
                FindingKind.EXTRA,
                f"{source} files for {counted(len(names), 'region')} that this cohort does not "
                f"have, not used: {english_list(names)}",
                region=names[0] if len(names) == 1 else None,
                team=self._teams[team] if team else None,
                count=len(names),
            )

    def _idle_teams(self, table: FileTable, taken: frozenset[Path]) -> Iterator[Finding]:
        """Report folders of teams in which nothing is a prediction.

        Folders with ``taken`` files, those of images and annotations, are no teams.
        """
        teams = set(table.teams(PREDICTIONS))
        folders_of_files = {path.parent for path in taken}
        holders = {above for folder in folders_of_files for above in (folder, *folder.parents)}
        patterns = chain.from_iterable(self._layout.predictions.forms.values())
        folders = {pattern.folder_of("team") for pattern in patterns}
        for folder in sorted((f for f in folders if f), key=lambda f: f.text):
            for match in folder.folders(self._listing):
                if (key := self._teams.key(match)) not in teams and match.path not in holders:
                    teams.add(key)
                    message = (
                        f"the team folder '{match.path.name}' holds no prediction for any region; "
                        f"the team is left out"
                    )
                    yield Finding(
                        FindingKind.MISSING, message, path=match.path, team=match.fields["team"]
                    )

    def _extra_files(self) -> Iterator[Finding]:
        """Report files in the cohort's own folders that no pattern explains."""
        roots = {p.fixed for p in self._layout.all_patterns if p.fixed}
        for fixed in sorted(roots):
            for folder in self._listing.below(fixed):
                extra = [p for p in self._listing.files_below(folder) if p not in self._used]
                self._used.update(extra)
                if extra:
                    names = english_list([p.relative_to(folder).as_posix() for p in extra], limit=5)
                    yield Finding(
                        FindingKind.EXTRA,
                        f"{counted(len(extra), 'file')} in '{folder.name}' of no known region, "
                        f"team or class, not used: {names}",
                        path=extra[0] if len(extra) == 1 else folder,
                        count=len(extra),
                    )


def _listed_regions(table: FileTable) -> dict[str, str]:
    """Return the region of each id of an image in COCO instances of the annotation.

    An id that several files give to different images is left out.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for found in table.of(REFERENCE):
        if found.row.source == Source.COCO_INSTANCES and found.row.item is not None:
            names[found.row.item].add(found.row.region)
    return {key: own.pop() for key, own in names.items() if len(own) == 1}


def _rules_without_team(
    rules: Mapping[str, OutlineRules], teams: Container[str]
) -> Iterator[Finding]:
    """Report rules for teams without files: their names may be misspelt."""
    if names := [name for name in rules if name and name not in teams]:
        yield Finding(
            FindingKind.EXTRA,
            f"{DESCRIPTION} states how outlines of {english_list(names)} are read, but there is no "
            f"such team; correct the name",
            count=len(names),
        )


def _places_of(masks: MaskPatterns) -> tuple[str, ...]:
    """Return one place for each form, in words."""
    return tuple(patterns[0].in_words for patterns in masks.forms.values() if patterns)


def _prediction_findings(predictions: _Predictions, regions: list[Region]) -> Iterator[Finding]:
    for team in sorted({team for team, _ in predictions}, key=natural_key):
        of_team = {region.name: predictions.get((team, region.name), {}) for region in regions}
        for source in known_forms():
            there = [name for name, forms in of_team.items() if source in forms]
            lacking = [name for name, forms in of_team.items() if source not in forms]
            if there and lacking:
                yield missing("region", lacking, f"no {source} file of team '{team}'", team=team)

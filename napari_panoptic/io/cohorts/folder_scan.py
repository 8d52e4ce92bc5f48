"""Scan a folder for images, annotations and teams, and describe it in a cohort.toml."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from napari_panoptic.common.errors import (
    CohortError,
    MissingPackageError,
    PanopticError,
    UnreadableFileError,
)
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.cohorts.description import cohort_listing
from napari_panoptic.io.cohorts.description_edits import description_text
from napari_panoptic.io.cohorts.file_groups import IMAGE, FolderLevel, Group, ScannedFile, merged
from napari_panoptic.io.cohorts.pair import scheme_of
from napari_panoptic.io.cohorts.patterns import Listing, Pattern, check_listing
from napari_panoptic.io.formats.class_numbers import TYPE_INFO
from napari_panoptic.io.formats.coco_files import read_coco
from napari_panoptic.io.formats.dicom_files import import_dicom
from napari_panoptic.io.formats.format import FileItem
from napari_panoptic.io.formats.one_file import format_of, split_name, stated_classes
from napari_panoptic.io.formats.recognise import is_coco_panoptic, json_source
from napari_panoptic.io.formats.registry import form_of
from napari_panoptic.io.images.slides import IMAGE_ENDINGS, are_one_slide, probe_image
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ONLY_CLASS, ClassScheme, Source

_TABLES = (".csv", ".json", ".txt", ".toml", ".md", ".xlsx")
_EXAMINED = 5
"""Number of files of the annotation, and of each team, that are opened to find the classes."""
_ONE_CLASS = ClassScheme((ONLY_CLASS,), MONUSAC_CLASSES.colours[:1])
"""The classes if files of the annotation, or of some predictions, state none."""
_PICTURE_FOLDER = re.compile(
    r"(cp_)?(outlines?|overlays?|flows?|visuali[sz]ations?|previews?|thumbnails?)", re.IGNORECASE
)
_PICTURE_NAME = re.compile(
    r"(.+?)_(cp_)?(outlines?|overlays?|flows?|dP|cellprob|cp_output)(_cp_masks.*)?", re.IGNORECASE
)
"""Pictures that Cellpose, HoVer-Net and data sets have beside objects, and their other output."""
_SIDE_NAME = re.compile(
    r"(.+?)(_(cp_)?(masks?|labels?|seg|gt|annotations?|pred(iction)?s?|instances?))", re.IGNORECASE
)
"""Names of objects beside an image of the same name."""
_Leaf = tuple[tuple[str, ...], bool, str]
"""The folders below the cohort's, whether files have one more of their own, and their ending."""


@dataclass(frozen=True)
class Scan:
    """The result of scanning a folder."""

    #: The folder.
    root: Path
    #: Where images and annotations were found; None if they were not.
    images: Group | None
    reference: Group | None
    #: Where predictions were found.
    predictions: tuple[Group, ...]
    #: The classes.
    scheme: ClassScheme
    #: Files of no known kind.
    unknown: tuple[Path, ...]
    #: Sentences on what could not be found.
    missing: tuple[str, ...]
    #: Pictures of results, such as overlays, which are not used.
    pictures: tuple[Path, ...] = ()
    #: Sentences on files of no known kind that packages may read which are not installed.
    unread: tuple[str, ...] = ()

    @property
    def summary(self) -> list[str]:
        """Lines that say what was recognised."""
        lines = []
        if self.images is not None:
            lines.append(_line("image", self.images))
        if self.reference is not None:
            lines.append(_line("annotation", self.reference))
        for group in self.predictions:
            teams = f" of {english_list(group.teams)}" if group.teams else ""
            lines.append(_line(f"prediction(s){teams}", group))
        for paths, what in (
            (self.pictures, "picture(s) of results not used"),
            (self.unknown, "file(s) not recognised"),
        ):
            if paths:
                names = english_list([path.relative_to(self.root).as_posix() for path in paths])
                lines.append(f"{counted(len(paths), what)}: {names}")
        return [*lines, *self.unread]

    def description(self) -> str:
        """Return the text of a ``cohort.toml`` for the folder.

        Raises
        ------
        CohortError
            If something needed is missing.
        """
        if self.missing or self.reference is None:
            raise CohortError("; ".join((*self.missing, *self.unread)), path=self.root)
        files: dict[str, list[str]] = {
            "image": [] if self.images is None else [self.images.pattern],
            f"reference.{self.reference.kind}": [self.reference.pattern],
        }
        for group in self.predictions:
            files.setdefault(f"predictions.{group.kind}", []).append(group.pattern)
        return description_text(self.root.resolve().name, self.scheme, files)


def scan_folder(folder: Path, *, reference: str | None = None) -> Scan:
    """Find out which files of a folder are images, annotations and predictions.

    Files are grouped by folder and ending; one file of each group is opened to
    recognise its format. Folders with files of the same names are teams, folders
    with different ones patients. The annotation is found by its name, such as
    ``annotations`` or ``gt``. Overlays and other pictures of results are passed over. Patterns
    that would not find these files, or others with them, are reported as missing.

    Parameters
    ----------
    folder
        The folder. Nothing in it is changed.
    reference
        The folder or file with the annotation, if the user said: a path in the folder, or a path
        of its own that leads there.

    Raises
    ------
    CohortError
        If the folder cannot be read, or the annotation is not in it.
    """
    listing = cohort_listing(folder, allow_outside=False)
    check_listing(listing, "expected a folder with images, annotations and predictions")
    files = [file for own in _leaves(_scanned(listing)).values() for file in own]
    groups, in_sets = _sets(files)
    files = [file for file in files if file.path not in in_sets]
    stems = {file.name for file in files}
    pictures = {file.path: file for file in files if _is_picture(file, stems)}
    files = [file for file in files if file.path not in pictures]
    unknown: list[Path] = []
    unread: list[str] = []
    for (folders, is_folder, ending), own in _leaves(
        _slides(_without_tables(_sides(files)))
    ).items():
        try:
            kind = _kind(own[0].path)
        except MissingPackageError as error:
            kind = None
            unread.append(str(error))
        if kind is None:
            unknown += [file.path for file in own]
        else:
            levels = tuple(map(FolderLevel, folders))
            below = () if is_folder else None
            groups.append(Group(kind, levels, ending, tuple(own), below=below))
    wanted = None if reference is None else _path_inside(listing.root, reference)
    scan = _scan(listing, merged(groups, wanted), wanted)
    return replace(scan, unknown=tuple(unknown), pictures=tuple(pictures), unread=tuple(unread))


def _scanned(listing: Listing) -> Iterator[ScannedFile]:
    """Yield the files of a folder that may belong to a cohort."""
    for path in listing.files_below(listing.root):
        name, ending = split_name(path)
        folders = path.relative_to(listing.root).parts[:-1]
        is_hidden = any(part.startswith(".") for part in (*folders, path.name))
        if name and not is_hidden and path.name != TYPE_INFO:
            yield ScannedFile(path, folders, name, ending)


def _leaves(files: Iterable[ScannedFile]) -> dict[_Leaf, list[ScannedFile]]:
    """Return files by folder and ending, sorted by these."""
    leaves: dict[_Leaf, list[ScannedFile]] = defaultdict(list)
    for file in files:
        leaves[file.folders, file.is_folder, file.ending].append(file)
    return dict(sorted(leaves.items()))


def _path_inside(root: Path, reference: str) -> Path:
    """Return the path of the annotation below the folder, however it was given."""
    here = root.absolute()
    for path in (here / reference, Path(reference).absolute()):
        for base, full in ((here, path), (here.resolve(), path.resolve())):
            if full.exists() and full.is_relative_to(base) and full != base:
                return full.relative_to(base)
    raise CohortError(
        f"--reference: expected a folder or file in this folder, found '{reference}', which is not "
        f"there. Check how it is spelt",
        path=root,
    )


def _sets(files: Iterable[ScannedFile]) -> tuple[list[Group], set[Path]]:
    """Return groups of COCO files of many regions, and their files with the masks of these."""
    groups: list[Group] = []
    paths: set[Path] = set()
    for (folders, _, ending), own in _leaves(files).items():
        is_json = ending.casefold().endswith(".json")
        # Of files of one region each, which can be thousands, the first few are opened.
        if not is_json or not any(_set_in(file.path) for file in own[:_EXAMINED]):
            continue
        for file in own:
            if (found := _set_in(file.path)) is not None:
                kind, items = found
                place = (*folders, file.name)
                names = dict.fromkeys(item.name for item in items)
                rows = tuple(ScannedFile(file.path, place, name, ending) for name in names)
                groups.append(
                    Group(kind, tuple(map(FolderLevel, place)), ending, rows, is_set=True)
                )
                paths |= {file.path, *(mask for item in items for mask in item.paths)}
    return groups, paths


def _set_in(path: Path) -> tuple[str, list[FileItem]] | None:
    """Return the format and the regions of a COCO file of many regions; None for another file."""
    try:
        kind = Source.COCO_PANOPTIC if is_coco_panoptic(path) else json_source(path)
        form = form_of(kind) if kind in (Source.COCO_PANOPTIC, Source.COCO_INSTANCES) else None
        items = [] if form is None or form.items is None else list(form.items(path))
    except (PanopticError, OSError):
        return None
    is_set = bool(items) and not items[0].is_only
    return (str(kind), items) if is_set else None


def _is_picture(file: ScannedFile, stems: Container[str]) -> bool:
    """Return whether a file is a picture of results: in such a folder, or beside objects."""
    if file.ending.casefold().lstrip(".") not in IMAGE_ENDINGS:
        return False
    beside = _PICTURE_NAME.fullmatch(file.name)
    return any(map(_PICTURE_FOLDER.fullmatch, file.folders)) or bool(beside and beside[1] in stems)


def _sides(files: Sequence[ScannedFile]) -> Iterator[ScannedFile]:
    """Part objects from the images beside them: ``a_gt.png`` and ``a_pred.png`` from ``a.jpg``."""
    stems = {(file.folders, file.name) for file in files}
    for file in files:
        side = _SIDE_NAME.fullmatch(file.name)
        if side is not None and (file.folders, side[1]) in stems:
            yield replace(file, name=side[1], ending=side[2] + file.ending)
        else:
            yield file


def _without_tables(files: Iterable[ScannedFile]) -> Iterator[ScannedFile]:
    """Leave out tables of classes beside other files of the same names."""
    leaves = _leaves(files)
    objects = {
        (file.folders, file.name)
        for (_, _, ending), own in leaves.items()
        if ending not in _TABLES
        for file in own
    }
    for (folders, _, ending), own in leaves.items():
        if ending not in _TABLES or not any((folders, file.name) in objects for file in own):
            yield from own


def _slides(files: Iterable[ScannedFile]) -> Iterator[ScannedFile]:
    """Take a folder with the files of one DICOM slide for one image of the folder's name."""
    for (folders, _, ending), own in _leaves(files).items():
        paths = sorted(file.path for file in own)
        is_slide = folders and ending.casefold() == ".dcm" and len(paths) > 1
        if is_slide and are_one_slide([paths[0], paths[-1]]):
            yield ScannedFile(paths[0], folders[:-1], folders[-1], ".dcm", is_folder=True)
        else:
            yield from own


def _kind(path: Path) -> str | None:
    """Recognise what a file is: an image, objects in some format, or neither.

    Raises
    ------
    MissingPackageError
        If that needs a package that is not installed, or reading its objects does.
    """
    ending = path.suffix.casefold().lstrip(".")
    if ending in IMAGE_ENDINGS and ending not in ("tif", "tiff", "png"):
        return IMAGE
    try:
        kind = str(format_of(path))
        if kind == Source.DICOM_ANN:
            import_dicom("pydicom", path)
        return kind
    except MissingPackageError:
        raise
    except PanopticError:
        pass
    try:
        probe_image(path)
    except (PanopticError, OSError):
        return None
    return IMAGE


def _scan(listing: Listing, groups: list[Group], reference: Path | None) -> Scan:
    # A colour image can be a mask in a form that is not read, as in NuCLS.
    images = max(
        (group for group in groups if group.kind == IMAGE),
        key=lambda group: (group.reference_rank is None, len(group.files)),
        default=None,
    )
    masks = [g for g in groups if g.kind != IMAGE]
    regions = images.regions if images is not None else set()
    masks = [group.per_nucleus(regions).with_affixes(regions) for group in masks]
    chosen, why = _reference(masks, reference, listing.root)
    predictions = tuple(group for group in masks if group is not chosen)
    if chosen is not None and images is None:
        predictions = tuple(group.with_affixes(chosen.regions) for group in predictions)
    missing = [] if chosen is not None else [why]
    if chosen is not None and not predictions:
        missing.append("no predictions were found beside the annotation")
    if chosen is not None and images is not None and not chosen.regions & images.regions:
        missing.append(
            f"the names of images ({english_list(sorted(images.regions)[:3])}) and annotations "
            f"({english_list(sorted(chosen.regions)[:3])}) do not fit together"
        )
    described = [group for group in (images, chosen, *predictions) if group is not None]
    named = images or chosen
    fit = _Fit(listing, described, set() if named is None else named.regions)
    predictions = tuple(fit.as_team(group) for group in predictions)
    if not missing:
        of_regions = [group for group in (images, chosen) if group is not None]
        whys = [fit.misfit(group) for group in of_regions]
        whys += [fit.misfit(group, is_prediction=True) for group in predictions]
        missing = [why for why in whys if why is not None]
    try:
        scheme = _scheme(chosen, predictions)
    except UnreadableFileError as error:
        scheme = _ONE_CLASS
        missing.append(f"the classes cannot be read from the annotation: {error}")
    return Scan(listing.root, images, chosen, predictions, scheme, (), tuple(missing))


class _Fit:
    """Tests which files the patterns of a description find in its folder.

    Parameters
    ----------
    listing
        The folder.
    groups
        Those that are described.
    regions
        Names of the regions.
    """

    def __init__(self, listing: Listing, groups: Iterable[Group], regions: Iterable[str]) -> None:
        self._listing = listing
        self._used = {path for group in groups for path in group.paths}
        self._regions = {name.casefold() for name in regions}

    def as_team(self, group: Group) -> Group:
        """Take the only folder of predictions for that of a team, if no other folder fits then."""
        of_team = group.of_team()
        is_found = of_team is not None and not self.misfit(of_team, is_prediction=True)
        return of_team if of_team is not None and is_found else group

    def misfit(self, group: Group, *, is_prediction: bool = False) -> str | None:
        """Describe the files that a pattern does not find, finds twice or finds beside its own."""
        matches = list(Pattern(group.pattern).files(self._listing))
        lost = sorted(group.paths - {match.path for match in matches})
        places: dict[tuple[str, ...], list[Path]] = defaultdict(list)
        others = []
        own = self._used if is_prediction else group.paths
        for match in matches:
            if match.path in own:
                places[tuple(match.fields.values())].append(match.path)
            # Images and annotations make a region of every name. Predictions of unknown regions
            # are reported later, and others would be those of further teams.
            elif group.is_set or self._is_known(match.fields["region"]) is is_prediction:
                others.append(match.path)
        again = next((paths for paths in places.values() if len(paths) > 1), [])
        holds_many = group.below is not None
        for paths, what in (
            (lost, "does not find"),
            ([] if holds_many or group.is_set else again, "takes for files of one region"),
            ([] if holds_many else others, "also finds"),
        ):
            if paths:
                names = [path.relative_to(self._listing.root).as_posix() for path in paths]
                return (
                    f"the pattern '{group.pattern}' {what}: {english_list(names, limit=3)}. Put "
                    f"images, annotations and the predictions of each model into folders of their "
                    f"own, or write the cohort.toml yourself (docs/reference/cohorts.md)"
                )
        return None

    def _is_known(self, region: str) -> bool:
        return region.casefold() in self._regions


def _reference(masks: Sequence[Group], wanted: Path | None, root: Path) -> tuple[Group | None, str]:
    """Choose the annotation among groups of objects, or say why that cannot be done."""
    if not masks:
        return None, (
            "no annotation and no prediction was found: expected label images (TIFF, PNG, NPY, "
            "OME-Zarr) or outlines (GeoJSON, XML, JSON, .mat, .db, ROIs)"
        )
    if wanted is not None:
        place = root / wanted
        found = [
            group
            for group in masks
            if any(path == place or place in path.parents for path in group.paths)
        ]
        if len(found) == 1 and not found[0].has_teams:
            return found[0], ""
        if found:
            places = english_list([f"'{group.pattern}'" for group in found])
            return None, (
                f"'{wanted.as_posix()}' is not the annotation alone: {places}. Name the folder or "
                f"file of the annotation with --reference"
            )
        return None, f"no annotation was found in '{wanted.as_posix()}'"
    ranked = [(rank, group) for group in masks if (rank := group.reference_rank) is not None]
    best = min((rank for rank, _ in ranked), default=None)
    found = [group for rank, group in ranked if rank == best]
    if len(found) == 1 and not found[0].has_teams:
        return found[0], ""
    places = english_list([f"'{group.pattern}'" for group in masks])
    return None, (
        f"it is not clear which files are the annotation: {places}. Name its folder with "
        f"--reference FOLDER"
    )


def _scheme(reference: Group | None, predictions: Iterable[Group]) -> ClassScheme:
    """Return the classes that files of the annotation state, and those that two teams state.

    A class of one team only has no partner; it becomes a doubt when the team's files are read.
    An annotation with numbers of classes has the names that teams state; numbers of teams, as
    results of COCO have them, are the categories of a COCO annotation.

    Raises
    ------
    UnreadableFileError
        If no file of the annotation that was opened can be read.
    """
    if reference is None:
        return _ONE_CLASS
    annotated, errors = _stated(reference, [file.path for file in reference.files])
    if not annotated and errors:
        raise errors[0]
    teams_of: dict[str, set[str]] = defaultdict(set)
    for group in predictions:
        of_teams = {team: _stated(group, paths) for team, paths in group.by_team.items()}
        # Files that cannot be read may state classes.
        if not any(names or errors for names, errors in of_teams.values()):
            return _ONE_CLASS
        for team, (names, _) in of_teams.items():
            for name in names:
                teams_of[name].add(team)
    has_numbers = any(name.isdigit() for name in teams_of)
    least = 1 if any(name.isdigit() for name in annotated) else 2
    shared = [name for name, teams in teams_of.items() if len(teams) >= least]
    names = [name for name in (*annotated, *shared) if not name.isdigit()]
    scheme = scheme_of(names) if annotated and names else _ONE_CLASS
    if has_numbers and reference.kind == Source.COCO_INSTANCES:
        path = reference.files[0].path
        stated = read_coco(path, "COCO instances").categories.items()
        aliases = {str(n): own for n, name in stated if (own := scheme.canonical(name))}
        scheme = replace(scheme, aliases=aliases)
    return scheme


def _stated(group: Group, paths: Sequence[Path]) -> tuple[list[str], list[UnreadableFileError]]:
    """Return the classes that the first files of a side state, and why others cannot be read."""
    names: list[str] = []
    errors: list[UnreadableFileError] = []
    form = form_of(group.kind)
    for path in [*dict.fromkeys(paths)][:_EXAMINED]:
        try:
            items = [] if form is None or form.items is None else [*form.items(path)]
            keys: list[str | None] = [item.key for item in items[:_EXAMINED]]
            for key in keys or [None]:
                names += stated_classes(path, Source(group.kind), item=key)
        except UnreadableFileError as error:
            errors.append(error)
    return names, errors


def _line(what: str, group: Group) -> str:
    kind = "" if group.kind == IMAGE else f", format {group.kind}"
    return f"{counted(len(group.files), what)}: {group.pattern}{kind}"

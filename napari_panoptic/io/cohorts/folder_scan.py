"""Scan a folder for images, annotations and teams, and describe it in a cohort.toml."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from napari_panoptic.common.errors import (
    CohortError,
    MissingPackageError,
    PanopticError,
    UnreadableFileError,
)
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.cohorts.description import cohort_listing
from napari_panoptic.io.cohorts.description_edits import toml_text
from napari_panoptic.io.cohorts.layouts import Layout, MaskPatterns, Patterns
from napari_panoptic.io.cohorts.pair import REFERENCE_WORDS, scheme_of
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

IMAGE = "image"
"""Kind of a group of files that are images; other kinds are formats of objects."""
_TABLES = (".csv", ".json", ".txt", ".toml", ".md", ".xlsx")
_EXAMINED = 5
"""How many files of the annotation, and of each team, are opened to find out the classes."""
_ONE_CLASS = ClassScheme((ONLY_CLASS,), MONUSAC_CLASSES.colours[:1])
"""The classes if files of the annotation, or of some predictions, state none."""
_SEPARATORS = "_-. "
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
_SPLIT = re.compile(
    r"(stage\d+_)?(train(ing)?|test(ing)?|val(id(ation)?)?|fold[ _-]?\d+)", re.IGNORECASE
)
"""Names of folders that divide a data set, and are neither patients nor teams."""
_FOLDER_OF_TEAMS = re.compile(
    r"(teams?|models?|methods?|algorithms?|pred(iction)?s?|results?|submissions?)", re.IGNORECASE
)
"""Names of folders that hold a folder for each team."""

_NUMBERED = re.compile(r"(?P<side>.*[A-Za-z].*[_\- ])(?P<number>\d+)")
"""Names of folders of a side and a patient, as ``Slide_01`` and ``GT_01`` of the TNBC data set."""

_Leaf = tuple[tuple[str, ...], str]
"""The folders below the cohort's, and the ending of files."""
_Leaves = dict[_Leaf, dict[str, Path]]
"""Files by name."""


@dataclass(frozen=True)
class Group:
    """Files of one kind whose places follow one pattern."""

    #: `IMAGE`, or the format of the objects.
    kind: str
    #: Names of folders below the cohort's; one may be ``{team}``, one hold ``{patient}``, and
    #: those whose names do not matter are ``*``.
    folder: tuple[str, ...]
    #: How their names end.
    ending: str
    #: Path of each file by the names of those of its folders that vary, the innermost first, and
    #: its own.
    files: dict[tuple[str, str], Path]
    #: What stands before and behind the region in the files' names.
    affixes: tuple[str, str] = ("", "")
    #: Whether each file holds many regions, which it names; its own name is the last of `folder`.
    is_set: bool = False

    @property
    def pattern(self) -> str:
        """The pattern of these files, as a ``cohort.toml`` has it."""
        if self.is_set:
            return "/".join(self.folder) + self.ending
        before, behind = self.affixes
        return "/".join((*self.folder, f"{before}{{region}}{behind}{self.ending}"))

    @property
    def has_teams(self) -> bool:
        """Whether the pattern names the team."""
        return "{team}" in self.folder

    @property
    def regions(self) -> set[str]:
        """Names of the regions that have a file."""
        before, behind = self.affixes
        return {name[len(before) : len(name) - len(behind) or None] for _, name in self.files}

    @property
    def by_team(self) -> dict[str, list[Path]]:
        """The files of each team; all of one without a name if the pattern does not name teams."""
        found: dict[str, list[Path]] = defaultdict(list)
        at = [part for part in self.folder if _varies(part)][::-1]
        for (folders, _), path in self.files.items():
            team = folders.split("/")[at.index("{team}")] if self.has_teams else ""
            found[team].append(path)
        return found

    @property
    def teams(self) -> list[str]:
        """Names of the teams, where the pattern has them."""
        return sorted(self.by_team) if self.has_teams else []


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


def description_text(name: str, scheme: ClassScheme, files: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a ``cohort.toml``.

    Parameters
    ----------
    name
        What the cohort is called.
    scheme
        The classes.
    files
        Keys of ``[files]`` and the patterns of each; keys without a pattern are
        left out.
    """
    lines = [
        "# Where the files of this cohort are; see docs/reference/cohorts.md.",
        f"name = {toml_text(name)}",
        "",
        "# The classes, in the order of all tables, with their colours.",
        "[classes]",
        *(
            f"{toml_text(each)} = {toml_text(colour)}"
            for each, colour in zip(scheme.names, scheme.colours, strict=True)
        ),
        "",
    ]
    if scheme.ambiguous is not None:
        lines += [
            "# The class of areas that are excluded from scoring.",
            "[ambiguous]",
            f"name = {toml_text(scheme.ambiguous)}",
            "",
        ]
    if scheme.aliases:
        lines += [
            "# Other names and numbers of classes in files.",
            "[aliases]",
            *(f"{toml_text(own)} = {toml_text(name)}" for own, name in scheme.aliases.items()),
            "",
        ]
    lines += [
        "# {region}, {patient} and {team} stand for names, and must agree between the lines.",
        "[files]",
    ]
    for key, patterns in files.items():
        if patterns:
            lines.append(f"{key} = {toml_text(patterns[0] if len(patterns) == 1 else patterns)}")
    return "\n".join(lines) + "\n"


def layout_text(layout: Layout, listing: Listing) -> str:
    """Return the text of a ``cohort.toml`` for a folder of a known layout.

    Patterns without a file are left out.
    """
    patterns = {
        "image": layout.image,
        **_keyed("reference", layout.reference),
        **_keyed("predictions", layout.predictions),
        **_keyed("annotation", layout.annotation),
    }
    files = {
        key: [each.text for each in own if any(each.files(listing))]
        for key, own in patterns.items()
    }
    name = layout.name or listing.root.resolve().name
    return description_text(name, layout.scheme, files)


def _keyed(side: str, masks: MaskPatterns) -> dict[str, Patterns]:
    return {f"{side}.{form}": patterns for form, patterns in masks.forms.items()}


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
    leaves: _Leaves = defaultdict(dict)
    for path in listing.files_below(listing.root):
        name, ending = split_name(path)
        parents = path.relative_to(listing.root).parts[:-1]
        is_hidden = any(part.startswith(".") for part in (*parents, path.name))
        if name and not is_hidden and path.name != TYPE_INFO:
            leaves[parents, ending][name] = path
    groups = _without_sets(leaves)
    pictures = _without_pictures(leaves)
    leaves = _with_sides(leaves)
    leaves = {key: files for key, files in leaves.items() if files and not _is_table(key, leaves)}
    leaves = _with_dicom_slides(leaves)
    unknown: list[Path] = []
    unread: list[str] = []
    for (parents, ending), files in sorted(leaves.items()):
        try:
            kind = _kind(next(iter(files.values())))
        except MissingPackageError as error:
            kind = None
            unread.append(str(error))
        if kind is None:
            unknown += list(files.values())
        else:
            of_file = {("", name): path for name, path in files.items()}
            groups.append(Group(kind, parents, ending, of_file))
    wanted = None if reference is None else _path_inside(listing.root, reference)
    scan = _scan(listing, _merged(groups, wanted), wanted)
    return replace(scan, unknown=tuple(unknown), pictures=tuple(pictures), unread=tuple(unread))


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


def _without_sets(leaves: _Leaves) -> list[Group]:
    """Take COCO files of many regions out of files, with the masks that belong to them."""
    groups: list[Group] = []
    masks: set[Path] = set()
    for (parents, ending), files in sorted(leaves.items()):
        is_json = ending.casefold().endswith(".json")
        # Of files of one region each, which can be thousands, the first few are opened.
        if not is_json or not any(map(_set_in, [*files.values()][:_EXAMINED])):
            continue
        for name, path in list(files.items()):
            if (found := _set_in(path)) is not None:
                kind, items = found
                of_region = {("", item.name): path for item in items}
                groups.append(Group(kind, (*parents, name), ending, of_region, is_set=True))
                masks.update(mask for item in items for mask in item.paths)
                del files[name]
    for files in leaves.values() if masks else ():
        for name in [name for name, path in files.items() if path in masks]:
            del files[name]
    return groups


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


def _without_pictures(leaves: _Leaves) -> list[Path]:
    """Take pictures of results out of files, and return them."""
    stems = {name for files in leaves.values() for name in files}
    pictures: list[Path] = []
    for (parents, ending), files in sorted(leaves.items()):
        if ending.casefold().lstrip(".") not in IMAGE_ENDINGS:
            continue
        in_folder = any(map(_PICTURE_FOLDER.fullmatch, parents))
        for name in list(files):
            beside = _PICTURE_NAME.fullmatch(name)
            if in_folder or (beside and beside[1] in stems):
                pictures.append(files.pop(name))
    return pictures


def _with_sides(leaves: _Leaves) -> _Leaves:
    """Part objects from the images beside them: ``a_gt.png`` and ``a_pred.png`` from ``a.jpg``."""
    stems = {(parents, name) for (parents, _), files in leaves.items() for name in files}
    found: _Leaves = defaultdict(dict)
    for (parents, ending), files in leaves.items():
        for name, path in files.items():
            side = _SIDE_NAME.fullmatch(name)
            if side and (parents, side[1]) in stems:
                found[parents, side[2] + ending][side[1]] = path
            else:
                found[parents, ending][name] = path
    return found


def _is_table(key: _Leaf, leaves: _Leaves) -> bool:
    """Whether files are tables of classes beside other files of the same names."""
    parents, ending = key
    return ending in _TABLES and any(
        other != ending and folder == parents and other not in _TABLES and set(files) & set(found)
        for files in (leaves[key],)
        for (folder, other), found in leaves.items()
    )


def _with_dicom_slides(leaves: _Leaves) -> _Leaves:
    """Take a folder with the files of one DICOM slide for one image of the folder's name."""
    found: _Leaves = defaultdict(dict)
    for (parents, ending), files in leaves.items():
        paths = sorted(files.values())
        is_slide = parents and ending.casefold() == ".dcm" and len(paths) > 1
        if is_slide and are_one_slide([paths[0], paths[-1]]):
            found[parents[:-1], "/*.dcm"][parents[-1]] = paths[0]
        else:
            found[parents, ending] |= files
    return found


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


def _merged(groups: Sequence[Group], reference: Path | None) -> list[Group]:
    """Join groups whose folders differ in one name, from the innermost folder outwards."""
    depth = max((len(group.folder) for group in groups), default=0)
    for level in reversed(range(depth)):
        alike: dict[tuple[str, tuple[str, ...], str], list[Group]] = defaultdict(list)
        sides = _numbered_sides(groups, level)
        for group in groups:
            folder = group.folder
            if level < len(folder) and (side := sides.get(folder[: level + 1])) is not None:
                rest = (*folder[:level], f"{side}{{patient}}", *folder[level + 1 :])
                alike[group.kind, rest, group.ending].append(group)
                continue
            is_reference = level < len(folder) and (
                _is_reference_name(folder[level])
                if reference is None
                else Path(*folder[: level + 1]) == reference
            )
            if len(folder) <= level or is_reference:
                alike[group.kind, folder, group.ending].append(group)
            else:
                rest = (*folder[:level], "*", *folder[level + 1 :])
                alike[group.kind, rest, group.ending].append(group)
        groups = [_joined(same, level, rest[level:]) for (_, rest, _), same in alike.items()]
    return list(groups)


def _numbered_sides(groups: Iterable[Group], level: int) -> dict[tuple[str, ...], str]:
    """Return what names the side in folders at a level, where several sides have the same numbers.

    Those are the numbers of patients: ``Slide_01``, ``Slide_02`` beside ``GT_01``, ``GT_02``.
    """
    numbers: dict[tuple[tuple[str, ...], str], set[str]] = defaultdict(set)
    found: dict[tuple[str, ...], tuple[tuple[str, ...], str]] = {}
    for group in groups:
        name = _NUMBERED.fullmatch(group.folder[level]) if level < len(group.folder) else None
        if name and "{patient}" not in group.folder and not _SPLIT.fullmatch(name[0]):
            side = group.folder[:level], name["side"]
            numbers[side].add(name["number"])
            found[group.folder[: level + 1]] = side
    is_shared = {
        side: any(
            side != other and side[0] == other[0] and len(own & others) > 1
            for other, others in numbers.items()
        )
        for side, own in numbers.items()
    }
    return {folder: side[1] for folder, side in found.items() if is_shared[side]}


def _varies(part: str) -> bool:
    """Return whether the name of a folder is not the same for all files of a group."""
    return part == "*" or "{" in part


def _is_reference_name(folder: str) -> bool:
    """Whether the name of a folder points to an annotation, so that it is no team's."""
    return _reference_rank(Group("", (folder,), "", {})) is not None


def _joined(same: Sequence[Group], level: int, below: tuple[str, ...]) -> Group:
    """Join groups: folders are teams where names of files repeat, patients where they do not.

    Folders above those of patients, and parts of a data set, have names that do not matter.
    """
    first = same[0]
    is_numbered = bool(below) and below[0].endswith("{patient}")
    if len(same) == 1 and not is_numbered:
        return first
    names = [key for group in same for key in group.files]
    is_annotation = any(map(_is_reference_name, first.folder[:level]))
    is_team = first.kind != IMAGE and not is_annotation and len(set(names)) < len(names)
    is_split = all(_SPLIT.fullmatch(group.folder[level]) for group in same)
    field = "*" if is_split or "{patient}" in first.folder else "{patient}"
    field = below[0] if is_numbered else "{team}" if is_team else field
    files = {
        (f"{team}/{g.folder[level]}".strip("/"), name): path
        for g in same
        for (team, name), path in g.files.items()
    }
    folder = (*first.folder[:level], field, *first.folder[level + 1 :])
    return replace(first, folder=folder, files=files)


def _reference_rank(group: Group) -> int | None:
    """Return how clearly the names of a group point to an annotation: 0 is clearest."""
    fixed = [part for part in group.folder if not part.startswith("{")]
    before = re.split(r"/[^/]*$|\.", group.ending)[0]  # the folders or the rest of the name
    text = "/".join((*fixed, *group.affixes, before)).casefold()
    text = text.replace("_cp_masks", "")  # Cellpose's, which is a prediction
    words = re.split(r"[^a-z]+", text)
    return next(
        (
            rank
            for rank, word in enumerate(REFERENCE_WORDS)
            if any(part in (word, f"{word}s") or (len(word) > 2 and word in part) for part in words)
        ),
        None,
    )


def _scan(listing: Listing, groups: list[Group], reference: Path | None) -> Scan:
    # A colour image can be a mask in a form that is not read, as in NuCLS.
    images = max(
        (group for group in groups if group.kind == IMAGE),
        key=lambda group: (_reference_rank(group) is None, len(group.files)),
        default=None,
    )
    masks = [g for g in groups if g.kind != IMAGE]
    regions = images.regions if images is not None else set()
    masks = [_with_affixes(_per_nucleus(group, regions), regions) for group in masks]
    chosen, why = _reference(masks, reference, listing.root)
    predictions = tuple(group for group in masks if group is not chosen)
    if chosen is not None and images is None:
        predictions = tuple(_with_affixes(group, chosen.regions) for group in predictions)
    missing = [] if chosen is not None else [why]
    if chosen is not None and not predictions:
        missing.append("no predictions were found beside the annotation")
    if chosen is not None and images is not None and not chosen.regions & images.regions:
        missing.append(
            f"the names of images ({english_list(sorted(images.regions)[:3])}) and annotations "
            f"({english_list(sorted(chosen.regions)[:3])}) do not fit together"
        )
    described = [group for group in (images, chosen, *predictions) if group is not None]
    fit = _Fit(listing, described, (images or chosen or Group("", (), "", {})).regions)
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
        self._used = {path for group in groups for path in group.files.values()}
        self._regions = {name.casefold() for name in regions}

    def as_team(self, group: Group) -> Group:
        """Take the only folder of predictions for that of a team, if no other folder fits then."""
        level = _level_of_team(group)
        if level is None:
            return group
        team = group.folder[level]
        files = {
            (f"{folders}/{team}".strip("/"), name): path
            for (folders, name), path in group.files.items()
        }
        folder = (*group.folder[:level], "{team}", *group.folder[level + 1 :])
        of_team = replace(group, folder=folder, files=files)
        return group if self.misfit(of_team, is_prediction=True) else of_team

    def misfit(self, group: Group, *, is_prediction: bool = False) -> str | None:
        """Describe the files that a pattern does not find, finds twice or finds beside its own."""
        matches = list(Pattern(group.pattern).files(self._listing))
        lost = sorted(set(group.files.values()) - {match.path for match in matches})
        places: dict[tuple[str, ...], list[Path]] = defaultdict(list)
        others = []
        own = self._used if is_prediction else set(group.files.values())
        for match in matches:
            if match.path in own:
                places[tuple(match.fields.values())].append(match.path)
            # Images and annotations make a region of every name. Predictions of unknown regions
            # are reported later, and others would be those of further teams.
            elif group.is_set or self._is_known(match.fields["region"]) is is_prediction:
                others.append(match.path)
        again = next((paths for paths in places.values() if len(paths) > 1), [])
        holds_many = "*" in group.ending
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


def _level_of_team(group: Group) -> int | None:
    """Return which folder can be that of the only team: the only one, or one in ``models``."""
    folders = group.folder[:-1] if group.is_set else group.folder
    is_only = len(folders) == 1
    is_inside = len(folders) > 1 and _FOLDER_OF_TEAMS.fullmatch(folders[0])
    level = 0 if is_only else 1 if is_inside else None
    if group.has_teams or level is None or _varies(folders[level]):
        return None
    return level


def _per_nucleus(group: Group, regions: set[str]) -> Group:
    """Take folders that are named as the regions, with a mask for each nucleus, for one each."""
    names = {folders.split("/")[0] for folders, _ in group.files}
    is_one_each = group.kind == Source.LABELS and "{patient}" in group.folder
    if not is_one_each or not names & regions or group.regions & regions:
        return group
    files: dict[tuple[str, str], Path] = {}
    for (folders, _), path in group.files.items():
        name, _, others = folders.partition("/")
        files.setdefault((others, name), path)
    level = group.folder.index("{patient}")
    ending = "/".join(("", *group.folder[level + 1 :], f"*{group.ending}"))
    return Group(Source.NUCLEUS_MASKS, group.folder[:level], ending, files)


def _with_affixes(group: Group, regions: set[str]) -> Group:
    """Find what stands around the names of regions in the names of files."""
    counts = affixes_of((name for _, name in group.files), regions)
    if group.is_set or not counts:
        return group
    best = max(counts, key=lambda affixes: (counts[affixes], -len("".join(affixes))))
    return replace(group, affixes=best)


def affixes_of(names: Iterable[str], regions: Iterable[str]) -> Counter[tuple[str, str]]:
    """Count what stands before and behind the names of regions in the names of files."""
    counts: Counter[tuple[str, str]] = Counter()
    wanted = set(regions)
    lengths = sorted({len(region) for region in wanted})
    for name in names:
        found: set[str] = set()  # the first place of each counts
        for at, length in product(range(len(name)), lengths):
            region = name[at : at + length]
            if region in wanted and region not in found:
                found.add(region)
                if _is_apart(name, at, length):
                    counts[name[:at], name[at + length :]] += 1
    return counts


def _is_apart(name: str, at: int, length: int) -> bool:
    before, behind = name[:at], name[at + length :]
    return (not before or before[-1] in _SEPARATORS) and (not behind or behind[0] in _SEPARATORS)


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
            if any(path == place or place in path.parents for path in group.files.values())
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
    ranked = [(rank, group) for group in masks if (rank := _reference_rank(group)) is not None]
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
    annotated, errors = _stated(reference, [*reference.files.values()])
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
        path = next(iter(reference.files.values()))
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

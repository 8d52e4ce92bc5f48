"""Where the files of a cohort of several raters lie: QUBIQ's folders, or ``cohort.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts import schema
from napari_panoptic.io.cohorts.description import (
    OF_ALL_TASKS,
    OF_CLASSES,
    described,
    scheme_in,
)
from napari_panoptic.io.cohorts.layouts import ANNOTATIONS
from napari_panoptic.io.cohorts.patterns import Listing, Pattern
from napari_panoptic.values.cohort import ClassScheme, Source
from napari_panoptic.values.raters import AtLevel, BothEmpty, RatersSettings

SPLITS = ("training", "validation", "testing", "test", "train", "val")
"""Folder names that are neither a data set nor a case (train/test splits)."""
SHELVES = ("teams", "predictions", "submissions", "results")
"""Names of folders that hold the folders of teams."""
DEEPEST = 6
"""Deepest level of folders that is searched for QUBIQ's files."""

_TIFF = re.compile(r"\.tiff?$", re.IGNORECASE)
_VOLUME = r"(?:\.nii(?:\.gz)?|\.tiff?)"
_MASK = re.compile(rf"(?P<structure>.+?)_seg(?P<rater>[0-9]+){_VOLUME}", re.IGNORECASE)
_IMAGE = re.compile(rf"image(?:[_-](?P<modality>.+))?{_VOLUME}", re.IGNORECASE)
_MAP = re.compile(rf"(?P<structure>.+?)(?:{_VOLUME}|\.png|\.npy)", re.IGNORECASE)


@dataclass(frozen=True)
class RatersPattern(Pattern):
    """A path in a cohort of several raters."""

    known: ClassVar[tuple[str, ...]] = ("case", "structure", "rater", "team", "modality")


RatersPatterns = tuple[RatersPattern, ...]


@dataclass(frozen=True)
class RatersLayout:
    """Where the files of a cohort lie, as its ``cohort.toml`` says."""

    #: Where images lie, the preferred first.
    image: RatersPatterns = ()
    #: Where masks and probability maps lie: under None files of one structure each, under a form
    #: files of objects of all classes.
    raters: Mapping[Source | None, RatersPatterns] = field(default_factory=dict)
    predictions: Mapping[Source | None, RatersPatterns] = field(default_factory=dict)
    #: The classes of files of objects.
    scheme: ClassScheme | None = None
    #: How predictions are compared.
    settings: RatersSettings = field(default_factory=RatersSettings)
    #: Name of the cohort, or None for the folder's.
    name: str | None = None

    @property
    def is_qubiq(self) -> bool:
        """Whether nothing says where masks lie, so that they lie as in QUBIQ."""
        return not self.raters


def read_raters_description(path: Path) -> RatersLayout:
    """Read a ``cohort.toml`` about several raters; as `described`."""
    return described(path, _layout)


def _layout(values: dict[str, Any]) -> RatersLayout:
    found = _DESCRIPTION(values, "")
    files = found.get("files", {})
    if files and not files.get("raters"):
        raise CohortError(
            "[files] must state where the raters' masks are: give raters, or leave [files] out for "
            "the folders of QUBIQ"
        )
    levels = {_SETTINGS[key]: value for key, value in found.get("levels", {}).items()}
    forms = (*files.get("raters", {}), *files.get("predictions", {}))
    return RatersLayout(
        **files,
        scheme=scheme_in(values) if any(forms) else None,
        settings=RatersSettings(**levels),
        name=found.get("name"),
    )


def _by_form(required: set[str], optional: set[str]) -> schema.Reader:
    """Return the reader of patterns of files of one structure each, or of a table of formats."""
    of_form = schema.patterns(RatersPattern, optional, lambda _: required)
    of_structure = schema.patterns(RatersPattern, optional, lambda _: {*required, "structure"})
    known = (Source.LABELS, Source.IMAGESCOPE, Source.GEOJSON)
    forms = schema.table({str(source): of_form for source in known})

    def read(value: Any, place: str) -> dict[Source | None, RatersPatterns]:
        if isinstance(value, dict):
            return {Source(form): found for form, found in forms(value, place).items()}
        found = of_structure(value, place)
        return {None: found} if found else {}

    return read


def _levels(value: Any, place: str) -> tuple[float, ...]:
    if not isinstance(value, list) or not all(map(schema.is_number, value)):
        raise CohortError(f"{place} must be a list of numbers, found {value!r}")
    try:
        return tuple(map(float, value))
    except OverflowError:
        raise CohortError(
            f"{place} must be between 0 and 1, found a number that is too large"
        ) from None


_SETTINGS = {"at": "levels", "equal": "at_level", "both_empty": "both_empty"}
"""Keys of [levels] and their fields of `RatersSettings`."""
_FILES = {
    "image": schema.patterns(RatersPattern, {"modality"}, lambda _: {"case"}),
    "raters": _by_form({"case", "rater"}, set()),
    "predictions": _by_form({"case"}, {"team"}),
}
_LEVELS = {"at": _levels, "equal": schema.word(AtLevel), "both_empty": schema.word(BothEmpty)}
_DESCRIPTION = schema.table(
    {
        **OF_ALL_TASKS,
        "files": schema.table(_FILES),
        "levels": schema.table(_LEVELS),
        **OF_CLASSES,
    }
)


# --- The folders of QUBIQ ------------------------------------------------------------------------


@dataclass(frozen=True)
class QubiqFile:
    """A file in the folders of QUBIQ."""

    #: Path of the file.
    path: Path
    #: Names of the folders between the cohort's and the case's, without those that name neither
    #: data set nor team.
    folders: tuple[str, ...]
    #: Name of its folder.
    case: str


@dataclass(frozen=True)
class QubiqFiles:
    """The files of a cohort in the folders of QUBIQ, sorted by the form of their names."""

    #: With structure and rater.
    masks: tuple[tuple[QubiqFile, str, str], ...]
    #: With the modality, which is empty for a plain ``image.nii.gz``.
    images: tuple[tuple[QubiqFile, str], ...]
    #: With the structure; all other files in these folders are among them.
    maps: tuple[tuple[QubiqFile, str], ...]


def qubiq_files(listing: Listing) -> QubiqFiles:
    """Look through the folders for masks, images and probability maps.

    A mask is called ``STRUCTURE_segNN.nii.gz``, an image ``image.nii.gz`` or
    ``image_MODALITY.nii.gz``, or ``.tif``; anything else that could be an image may be a map.
    """
    masks, images, maps = [], [], []
    for file in _below(listing, listing.root, ()):
        name = file.path.name
        if found := _MASK.fullmatch(name):
            masks.append((file, found["structure"], found["rater"]))
        elif found := _IMAGE.fullmatch(name):
            images.append((file, found["modality"] or ""))
        elif found := _MAP.fullmatch(name):
            maps.append((file, found["structure"]))
    return QubiqFiles(tuple(masks), tuple(images), tuple(maps))


def looks_like_qubiq(folder: Path) -> bool:
    """Return whether a folder holds masks of several raters as QUBIQ names them.

    The folders of MoNuSAC are not looked through.
    """
    if not folder.is_dir():
        return False
    listing = Listing(folder)
    try:
        if any(listing.below((ANNOTATIONS,))):
            return False
        names = (file.path.name for file in _below(listing, folder, ()))
        # Other TIFFs may be called so as well: a description must say what they are.
        return any(_MASK.fullmatch(name) and not _TIFF.search(name) for name in names)
    except OSError:
        return False  # opening the folder reports why


def _below(listing: Listing, folder: Path, above: tuple[str, ...]) -> Iterator[QubiqFile]:
    names = tuple(n for n in above[:-1] if n.casefold() not in (*SPLITS, *SHELVES))
    for entry in listing.entries(folder):
        if not entry.is_folder:
            if above:
                yield QubiqFile(entry.path, names, above[-1])
        elif len(above) < DEEPEST and not entry.path.is_symlink():
            yield from _below(listing, entry.path, (*above, entry.path.name))

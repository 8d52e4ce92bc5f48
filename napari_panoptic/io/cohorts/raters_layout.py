"""Where the files of a cohort of several raters lie: QUBIQ's folders, or ``cohort.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.description import (
    TASK_KEY,
    check_keys,
    described,
    name_in,
    pattern_list_of,
    scheme_in,
    table_at,
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

_NIFTI = r"\.nii(?:\.gz)?"
_MASK = re.compile(rf"(?P<structure>.+?)_seg(?P<rater>[0-9]+){_NIFTI}", re.IGNORECASE)
_IMAGE = re.compile(rf"image(?:[_-](?P<modality>.+))?{_NIFTI}", re.IGNORECASE)
_MAP = re.compile(rf"(?P<structure>.+?)(?:{_NIFTI}|\.tiff?|\.png|\.npy)", re.IGNORECASE)


@dataclass(frozen=True)
class RatersPattern(Pattern):
    """A path in a cohort of several raters."""

    known: ClassVar[tuple[str, ...]] = ("case", "structure", "rater", "team", "modality")


RatersPatterns = tuple[RatersPattern, ...]


@dataclass(frozen=True)
class RatersLayout:
    """Where the files of a cohort lie, as its ``cohort.toml`` says.

    Parameters
    ----------
    image
        Where images lie, the preferred first.
    raters, predictions
        Where masks and probability maps lie: under None files of one structure
        each, under a form files of objects of all classes.
    scheme
        The classes of files of objects.
    settings
        How predictions are compared.
    name
        Name of the cohort, or None for the folder's.
    """

    image: RatersPatterns = ()
    raters: Mapping[Source | None, RatersPatterns] = field(default_factory=dict)
    predictions: Mapping[Source | None, RatersPatterns] = field(default_factory=dict)
    scheme: ClassScheme | None = None
    settings: RatersSettings = field(default_factory=RatersSettings)
    name: str | None = None

    @property
    def is_qubiq(self) -> bool:
        """Whether nothing says where masks lie, so that they lie as in QUBIQ."""
        return not self.raters


def read_raters_description(path: Path) -> RatersLayout:
    """Read a ``cohort.toml`` about several raters; as `described`."""
    return described(path, _layout)


def _layout(table: dict[str, Any]) -> RatersLayout:
    check_keys(
        table,
        "",
        (TASK_KEY, "name", "files", "levels", "classes", "ambiguous", "masks", "aliases"),
    )
    files = table_at(table, "files")
    check_keys(files, "files", ("image", "raters", "predictions"))
    raters = _forms(files, "raters", {"case", "rater"}, set())
    predictions = _forms(files, "predictions", {"case"}, {"team"})
    if bool(raters) != bool(files):
        raise CohortError(
            "[files] must state where the raters' masks are: give raters, or leave [files] out for "
            "the folders of QUBIQ"
        )
    needs_classes = any(source for source in (*raters, *predictions))
    return RatersLayout(
        image=pattern_list_of(
            RatersPattern, files.get("image", []), "files.image", {"case"}, {"modality"}
        ),
        raters=raters,
        predictions=predictions,
        scheme=scheme_in(table) if needs_classes else None,
        settings=_settings(table_at(table, "levels")),
        name=name_in(table),
    )


def _forms(
    files: dict[str, Any], key: str, required: set[str], optional: set[str]
) -> dict[Source | None, RatersPatterns]:
    value, where = files.get(key, []), f"files.{key}"
    if not isinstance(value, dict):
        found = pattern_list_of(RatersPattern, value, where, {*required, "structure"}, optional)
        return {None: found} if found else {}
    known = (Source.LABELS, Source.IMAGESCOPE, Source.GEOJSON)
    check_keys(value, where, [str(source) for source in known])
    return {
        Source(form): pattern_list_of(RatersPattern, texts, f"{where}.{form}", required, optional)
        for form, texts in value.items()
    }


def _settings(table: dict[str, Any]) -> RatersSettings:
    check_keys(table, "levels", ("at", "equal", "both_empty"))
    settings = RatersSettings()
    levels = table.get("at", list(settings.levels))
    is_list = isinstance(levels, list) and all(
        isinstance(level, (int, float)) and not isinstance(level, bool) for level in levels
    )
    if not is_list:
        raise CohortError(f"levels.at must be a list of numbers, found {levels!r}")
    try:
        numbers = tuple(float(level) for level in levels)
    except OverflowError:
        raise CohortError(
            "levels.at must be between 0 and 1, found a number that is too large"
        ) from None
    return RatersSettings(
        levels=numbers,
        at_level=AtLevel(_word(table, "equal", list(AtLevel), settings.at_level)),
        both_empty=BothEmpty(_word(table, "both_empty", list(BothEmpty), settings.both_empty)),
    )


def _word(table: dict[str, Any], key: str, known: list[Any], default: str) -> str:
    value = table.get(key, default)
    if value not in known:
        words = english_list([str(word) for word in known])
        raise CohortError(f"levels.{key} must be one of {words}, found {value!r}")
    return str(value)


# --- The folders of QUBIQ ------------------------------------------------------------------------


@dataclass(frozen=True)
class QubiqFile:
    """A file in the folders of QUBIQ.

    Parameters
    ----------
    path
        Where.
    folders
        Names of the folders between the cohort's and the case's, without those
        that name neither data set nor team.
    case
        Name of its folder.
    """

    path: Path
    folders: tuple[str, ...]
    case: str


@dataclass(frozen=True)
class QubiqFiles:
    """The files of a cohort in the folders of QUBIQ, sorted by the form of their names.

    Parameters
    ----------
    masks
        With structure and rater.
    images
        With the modality, which is empty for a plain ``image.nii.gz``.
    maps
        With the structure; what else lies there is among them.
    """

    masks: tuple[tuple[QubiqFile, str, str], ...]
    images: tuple[tuple[QubiqFile, str], ...]
    maps: tuple[tuple[QubiqFile, str], ...]


def qubiq_files(listing: Listing) -> QubiqFiles:
    """Look through the folders for masks, images and probability maps.

    A mask is called ``STRUCTURE_segNN.nii.gz``, an image ``image.nii.gz`` or
    ``image_MODALITY.nii.gz``; anything else that could be an image may be a map.
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
        return any(_MASK.fullmatch(f.path.name) for f in _below(listing, folder, ()))
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

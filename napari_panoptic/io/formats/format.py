"""A file format of objects: how its files are found, read and written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.progress import CountReport, unreported
from napari_panoptic.common.text import english_list
from napari_panoptic.io.formats.polygons.model import PolygonFile
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, OutlineRules, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import Restoration
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import TiledArea, TiledLabels


@dataclass(frozen=True, eq=False)
class LoadedMasks:
    """The objects of one side of one region, as read from disk."""

    #: The scored objects.
    labels: LabelImage
    #: bool (y, x), True where the file marks an excluded area; None if it marks none.
    ambiguous: NDArray[np.bool_] | None
    #: Problems found while reading.
    findings: tuple[Finding, ...] = ()
    #: Micrometres per pixel, if the file states it.
    mpp: float | None = None
    #: Restores the objects again with another restoration and radius, from the pixels that were
    #: read; None if the format needs no restoration.
    restored: Callable[[Restoration, int], LoadedMasks] | None = None
    #: Magnification of the image in whose px the objects are, if the file states it.
    magnification: float | None = None


@dataclass(frozen=True, eq=False)
class TiledMasks:
    """The objects of one side of a slide that is too large to hold, as opened from disk."""

    #: The scored objects; windows of their pixels are read from the files on request.
    labels: TiledLabels
    #: Where the file marks an excluded area; None where it marks none.
    ambiguous: TiledArea | None
    #: Problems found while reading.
    findings: tuple[Finding, ...] = ()
    #: Returns the findings that need every window to have been read, given bool (n,): which objects
    #: have a pixel. None if there are none.
    findings_after: Callable[[NDArray[np.bool_]], tuple[Finding, ...]] | None = None
    #: Returns all objects as one image, which knows the pixels that they share, and findings about
    #: these. None if no two objects share a pixel: the whole is then read as one window.
    whole: Callable[[], tuple[LabelImage, tuple[Finding, ...]]] | None = None
    #: Micrometres per pixel, if the file states it.
    mpp: float | None = None
    #: Magnification of the image in whose px the objects are, if the file states it.
    magnification: float | None = None

    def held(self) -> LoadedMasks:
        """Return all objects and the whole area."""
        tiled, found = self.labels, tuple[Finding, ...]()
        if self.whole is not None:
            labels, found = self.whole()
            labels = replace(labels, known_scores=tiled.known_scores)
        else:
            labels = tiled.held()
        area = None if self.ambiguous is None else self.ambiguous.read((0, 0, *tiled.shape))
        if self.findings_after is not None:
            found += self.findings_after(np.isin(tiled.ids, labels.ids))
        return LoadedMasks(
            labels, area, (*found, *self.findings), self.mpp, magnification=self.magnification
        )


@dataclass(frozen=True, kw_only=True)
class OpenRequest:
    """Options of opening masks."""

    #: Height and width of the region in px, or None if unknown.
    shape: tuple[int, int] | None = None
    #: How objects are recovered from colour-coded masks.
    restoration: Restoration = Restoration.BORDER_REMOVED
    radius: int = 1
    #: Whether the region is too large to be held: pixels are read later, window by window.
    in_windows: bool = False
    #: Receives the amount done and the total; an exception in it cancels.
    progress: CountReport = unreported


@dataclass(frozen=True, eq=False)
class Objects:
    """The objects of one side of a region, ready to be written."""

    #: The objects.
    labels: LabelImage
    #: Which side they are on.
    side: Side
    #: Region and team; the team is empty for the annotation.
    region: str
    team: str
    #: bool image (y, x) of the excluded area to write, or None.
    ambiguous: NDArray[np.bool_] | None
    #: The classes.
    scheme: ClassScheme
    #: Micrometres per pixel, or None.
    mpp: float | None
    #: The patient, if it is written.
    patient: str = ""
    #: The files from which edited objects were read: a format may copy their other content.
    original: MaskFiles | None = None
    #: Id -> what else is known of an object, for formats that have a place for it.
    details: Mapping[int, Mapping[str, object]] = field(default_factory=dict)

    @property
    def ambiguous_class(self) -> str:
        """The class name of the excluded area in files."""
        return self.scheme.ambiguous or "Ambiguous"


class ReadOutlines(Protocol):
    """Reads a file of outlines without drawing them.

    A file that is cut off or damaged is refused as a whole: with half an annotation, good
    predictions would count as false.

    Parameters
    ----------
    path
        The file.
    scheme
        The classes.
    progress
        Receives what was read of the file and all of it, in bytes or in objects.
    rules
        How outlines are read where the format leaves it open.

    Returns
    -------
    PolygonFile
        Vertices as in the file. A file without an object has no polygons.

    Raises
    ------
    UnreadableFileError
        If the file is missing, empty, damaged or of another format.
    """

    def __call__(
        self,
        path: Path,
        scheme: ClassScheme,
        *,
        progress: CountReport = ...,
        rules: OutlineRules = ...,
    ) -> PolygonFile:
        """Read the file."""


Open = Callable[[MaskFiles, ClassScheme, OpenRequest], TiledMasks | LoadedMasks]
MeasureShape = Callable[[MaskFiles], tuple[int, int] | None]
Write = Callable[[Path, Objects], tuple[Path, ...]]


@dataclass(frozen=True)
class FileItem:
    """One region of a file that holds many."""

    #: The name of the region.
    name: str
    #: The reader finds the region by it; see `napari_panoptic.values.cohort.MaskFiles`.
    key: str
    #: The patient, if the file states it.
    patient: str | None = None
    #: Further files of this region alone.
    paths: tuple[Path, ...] = ()
    #: Whether the file holds no other region; ``{region}`` in its path then names it.
    is_only: bool = False
    #: Whether the file has no name of the region, only the key under which the annotation lists it.
    is_keyed: bool = False


ListItems = Callable[[Path], Iterable[FileItem]]
WriteAll = Callable[[Path, int, Iterable[Objects]], tuple[Finding, ...]]


class PerClass(StrEnum):
    """Whether a format has a file for each class, named by ``{class}`` in patterns."""

    NEVER = "never"  # one file holds all classes
    EITHER = "either"  # one file for all, or one per class
    ALWAYS = "always"


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format of objects, and the functions that handle its files.

    Only a name, a title and one of ``open``, ``write`` and ``write_all`` are needed.
    """

    #: Its name in ``cohort.toml``, ``--source`` and ``--to``: lower-case letters, digits and
    #: hyphens.
    name: str
    #: Its name in menus and messages.
    title: str
    #: Opens the objects of one side of one region. The whole image is one window; `LoadedMasks` are
    #: returned by formats that are only read whole. Raises
    #: `napari_panoptic.common.errors.UnreadableFileError` for files that cannot be read, and
    #: reports problems that it handled as findings. None for a format that is only written.
    open: Open | None = None
    #: Whether ``open`` can leave the pixels of a slide too large for memory on the disk.
    in_windows: bool = False
    #: Returns height and width in px without reading all, or None if the files do not state them.
    #: May raise as ``open`` does.
    shape: MeasureShape = lambda files: None  # noqa: ARG005
    #: Reads outlines without drawing them; None for a format of pixels, whose files tell the size
    #: of the region. See `napari_panoptic.io.formats.polygons.polygon_format`, which makes formats
    #: of outlines.
    outlines: ReadOutlines | None = None
    #: Whether outlines have shares of the image's width and height instead of px.
    in_shares: bool = False
    #: Lists the files beside one that decide how it is read, such as a table that names classes.
    companions: Callable[[Path], tuple[Path, ...]] = lambda path: ()  # noqa: ARG005
    #: Whether patterns in a ``cohort.toml`` have the placeholder ``{class}``.
    per_class: PerClass = PerClass.NEVER
    #: Lists the regions of a file that holds many; patterns in a ``cohort.toml`` then need no
    #: ``{region}``. None if a file holds one.
    items: ListItems | None = None
    #: Endings of the names of such files, such as ``.geojson`` or ``_outlines.txt``; files are
    #: written with the first. Among the folders of MoNuSAC, files ``REGION`` + ending are found
    #: without a ``cohort.toml``: any ending of a format of a plugin, the first one of a built-in
    #: format.
    endings: tuple[str, ...] = ()
    #: Writes the objects of one region to a path that ends in the first ending, and returns every
    #: file that was written, the requested one first. Changes no other files; an `OSError` may
    #: pass.
    write: Write | None = None
    #: Lists the files beside the requested one that ``write`` may replace or remove; files of a
    #: cohort are never among them.
    beside: Callable[[Path], tuple[Path, ...]] = lambda path: ()  # noqa: ARG005
    #: Returns findings about what files of this format cannot hold of the objects that are written.
    losses: Callable[[Objects], tuple[Finding, ...]] = lambda objects: ()  # noqa: ARG005
    #: Writes ``count`` regions into an existing, empty folder, in files that hold them all, or with
    #: a file about all. Returns findings about what could not be written as it was.
    write_all: WriteAll | None = None
    #: Whether programs write outlines of this format along the edges of pixels or through their
    #: centres, which a ``cohort.toml`` can state.
    has_conventions: bool = False

    def __post_init__(self) -> None:
        """Check that the format can be used.

        Raises
        ------
        PanopticError
            If something is missing.
        """
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise PanopticError(
                f"the name of a format has lower-case letters, digits and hyphens, such as "
                f"my-format; found '{self.name}'"
            )
        if self.open is None and self.write is None and self.write_all is None:
            raise PanopticError(f"the format '{self.name}' can neither be read nor written")
        if self.write is not None and not self.endings:
            raise PanopticError(
                f"the format '{self.name}' is written, and needs an ending for its files"
            )
        if wrong := [ending for ending in self.endings if not ending.startswith((".", "_"))]:
            raise PanopticError(
                f"endings of the format '{self.name}' start with a dot or _, found "
                f"{english_list(wrong)}"
            )

    @property
    def source(self) -> Source:
        """The name as `napari_panoptic.values.cohort.MaskFiles` store it."""
        return Source(self.name)

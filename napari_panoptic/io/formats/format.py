"""What a form in which objects can be on disk is: how it is found, read and written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import Finding, PanopticError, english_list
from napari_panoptic.io.formats.polygons.model import PolygonFile
from napari_panoptic.nuclei.values.cohort import ClassScheme, MaskFiles, OutlineRules, Source
from napari_panoptic.nuclei.values.labels import LabelImage
from napari_panoptic.nuclei.values.settings import Restoration
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.nuclei.values.windowed_labels import TiledArea, TiledLabels


@dataclass(frozen=True, eq=False)
class LoadedMasks:
    """The objects of one side of one region, as read from disk.

    Parameters
    ----------
    labels
        The scored objects.
    ambiguous
        bool (y, x), True where the file marks an excluded area; None where it
        marks none.
    findings
        What was odd.
    mpp
        Micrometres per pixel, where the file says.
    restored
        Recovers the objects anew with another restoration and radius, from
        what was read; None where the form needs no restoration.
    magnification
        That of the image in whose px the objects are, where the file says it.
    """

    labels: LabelImage
    ambiguous: NDArray[np.bool_] | None
    findings: tuple[Finding, ...] = ()
    mpp: float | None = None
    restored: Callable[[Restoration, int], LoadedMasks] | None = None
    magnification: float | None = None


@dataclass(frozen=True, eq=False)
class TiledMasks:
    """The objects of one side of a slide that is too large to hold, as opened from disk.

    Parameters
    ----------
    labels
        The scored objects; windows of their pixels are read from the files on
        request.
    ambiguous
        Where the file marks an excluded area; None where it marks none.
    findings
        Problems found while reading.
    findings_after
        Returns the findings that need every window to have been read, given
        bool (n,): which objects have a pixel. None if there are none.
    magnification
        Magnification of the image in whose px the objects are, if the file states it.
    """

    labels: TiledLabels
    ambiguous: TiledArea | None
    findings: tuple[Finding, ...] = ()
    findings_after: Callable[[NDArray[np.bool_]], tuple[Finding, ...]] | None = None
    magnification: float | None = None


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
    """How to load masks, and what for.

    Parameters
    ----------
    shape
        Height and width of the region in px, or None where unknown.
    restoration, radius
        How objects are recovered from colour-coded masks.
    region, team
        Names, for findings and errors.
    """

    shape: tuple[int, int] | None = None
    restoration: Restoration = Restoration.BORDER_REMOVED
    radius: int = 1
    region: str | None = None
    team: str | None = None


@dataclass(frozen=True, eq=False)
class Objects:
    """The objects of one side of a region, ready to be written.

    Parameters
    ----------
    labels
        The objects.
    side
        Which side they are on.
    region, team
        Where they are from; the team is empty for the annotation.
    ambiguous
        bool image (y, x) of the excluded area, or None where there is none, or
        none to be written.
    scheme
        The classes.
    mpp
        Micrometres per pixel, or None.
    patient
        Whose region it is, where that is to be written.
    original
        The files that the objects were read from before they were edited, if
        they were: a form may take over what they say beside the objects.
    """

    labels: LabelImage
    side: Side
    region: str
    team: str
    ambiguous: NDArray[np.bool_] | None
    scheme: ClassScheme
    mpp: float | None
    patient: str = ""
    original: MaskFiles | None = None

    @property
    def ambiguous_class(self) -> str:
        """What the excluded area is called in files."""
        return self.scheme.ambiguous or "Ambiguous"


class OpenTiles(Protocol):
    """Opens the files of one form; see `napari_panoptic.io.formats.registry.open_masks`."""

    def __call__(
        self,
        files: MaskFiles,
        scheme: ClassScheme,
        shape: tuple[int, int],
        *,
        region: str | None = None,
        team: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> TiledMasks:
        """Open the files."""


class ReadOutlines(Protocol):
    """Reads a file of outlines without drawing them."""

    def __call__(
        self,
        path: Path,
        scheme: ClassScheme,
        *,
        progress: Callable[[int, int], None] | None = None,
        is_wanted: Callable[[], bool] = ...,
        rules: OutlineRules = ...,
    ) -> PolygonFile:
        """Read the file; raise ReadingStoppedError when ``is_wanted`` returns False."""


Load = Callable[[MaskFiles, ClassScheme, LoadRequest], LoadedMasks]
MeasureShape = Callable[[MaskFiles], tuple[int, int] | None]
Write = Callable[[Path, Objects], tuple[Path, ...]]


@dataclass(frozen=True)
class Item:
    """One region of a file that holds many.

    Parameters
    ----------
    name
        What the region is called.
    key
        By which the reader finds it; see `napari_panoptic.nuclei.values.cohort.MaskFiles`.
    patient
        Whose it is, where the file says.
    paths
        Further files that only this region has.
    """

    name: str
    key: str
    patient: str | None = None
    paths: tuple[Path, ...] = ()


ListItems = Callable[[Path], Iterable[Item]]
WriteAll = Callable[[Path, int, Iterable[Objects]], tuple[Finding, ...]]


class PerClass(StrEnum):
    """Whether a form has a file for each class, named by ``{class}`` in patterns."""

    NEVER = "never"  # one file holds all classes
    EITHER = "either"  # one file for all, or one per class
    ALWAYS = "always"


@dataclass(frozen=True, kw_only=True)
class Format:
    """A form in which objects can be on disk, and what can be done with its files.

    Only a name, a title and one of ``load``, ``write`` and ``write_all`` are needed.

    Parameters
    ----------
    name
        What it is called in ``cohort.toml``, at ``--source`` and ``--to``:
        lower-case letters, digits and hyphens.
    title
        What people call it, for menus and messages.
    load
        Reads the objects of one side of one region. Raises
        `napari_panoptic.common.errors.UnreadableFileError` for what cannot be read,
        and reports what it handled as findings. None for a form that is only
        written.
    shape
        Gives height and width in px without reading all, or None where the
        files do not say. May raise as ``load`` does.
    open_tiles
        Opens the files of a slide too large to be held; None where they can
        only be read whole.
    outlines
        Reads outlines without drawing them; None for a format of pixels, whose
        files tell the size of the region. See
        `napari_panoptic.io.formats.polygons.polygon_format`, which makes formats
        of outlines.
    companions
        Lists the files beside one that decide how it is read, such as a table
        that names classes.
    per_class
        Whether patterns in a ``cohort.toml`` have the placeholder ``{class}``.
    items
        Lists the regions of a file that holds many; patterns in a
        ``cohort.toml`` then need no ``{region}``. None where a file holds one.
    endings
        How the names of such files end, such as ``.geojson``; the first is
        given to files that are written. Among the folders of MoNuSAC, files
        ``REGION`` + ending are found without a ``cohort.toml``: any ending of a
        form that a plugin brings, the first one of a built-in form.
    write
        Writes the objects of one region to a path that ends in the first
        ending, and gives every file that was written, the one asked for first.
        Other places are left as they are; an `OSError` may pass.
    beside
        Lists the files beside the one asked for that ``write`` may replace or
        remove; those of a cohort are never among them.
    losses
        Tells what files of this form cannot hold of the objects that ``write`` is
        given, for whoever converts or saves them.
    write_all
        Writes regions, of which it is told the number, into an empty folder,
        which is there, in files that hold them all. Gives what could not be
        written as it was.
    """

    name: str
    title: str
    load: Load | None = None
    shape: MeasureShape = lambda files: None  # noqa: ARG005
    open_tiles: OpenTiles | None = None
    outlines: ReadOutlines | None = None
    companions: Callable[[Path], tuple[Path, ...]] = lambda path: ()  # noqa: ARG005
    per_class: PerClass = PerClass.NEVER
    items: ListItems | None = None
    endings: tuple[str, ...] = ()
    write: Write | None = None
    beside: Callable[[Path], tuple[Path, ...]] = lambda path: ()  # noqa: ARG005
    losses: Callable[[Objects], tuple[Finding, ...]] = lambda objects: ()  # noqa: ARG005
    write_all: WriteAll | None = None

    def __post_init__(self) -> None:
        """Check that the form can be used.

        Raises
        ------
        PanopticError
            Saying what is missing.
        """
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise PanopticError(
                f"the name of a format has lower-case letters, digits and hyphens, such as "
                f"my-format; found '{self.name}'"
            )
        if self.load is None and self.write is None and self.write_all is None:
            raise PanopticError(f"the format '{self.name}' can neither be read nor written")
        if self.write is not None and not self.endings:
            raise PanopticError(
                f"the format '{self.name}' is written, and needs an ending for its files"
            )
        if wrong := [ending for ending in self.endings if not ending.startswith(".")]:
            raise PanopticError(
                f"endings of the format '{self.name}' start with a dot, found {english_list(wrong)}"
            )

    @property
    def source(self) -> Source:
        """The name, as `napari_panoptic.nuclei.values.cohort.MaskFiles` have it."""
        return Source(self.name)


def located(
    findings: Iterable[Finding], request: LoadRequest, *, path: Path | None = None
) -> tuple[Finding, ...]:
    """Add to findings where they were met, as far as they do not say so themselves."""
    return tuple(
        replace(
            finding,
            path=finding.path or path,
            region=finding.region or request.region,
            team=finding.team or request.team,
        )
        for finding in findings
    )

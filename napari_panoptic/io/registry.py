"""The forms in which objects can be on disk: each reader registers its own here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.errors import Finding
from napari_panoptic.evaluation.labels import LabelImage
from napari_panoptic.evaluation.settings import Restoration
from napari_panoptic.regions import ClassScheme, MaskFiles, Source


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
    """

    labels: LabelImage
    ambiguous: NDArray[np.bool_] | None
    findings: tuple[Finding, ...] = ()
    mpp: float | None = None
    restored: Callable[[Restoration, int], LoadedMasks] | None = None


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


Load = Callable[[MaskFiles, ClassScheme, LoadRequest], LoadedMasks]
MeasureShape = Callable[[MaskFiles], tuple[int, int] | None]


@dataclass(frozen=True)
class Form:
    """What can be done with the files of one form.

    Parameters
    ----------
    load
        Reads them.
    shape
        Gives height and width in px without reading all, or None where the
        files do not say.
    """

    load: Load
    shape: MeasureShape


FORMS: dict[Source, Form] = {}
"""Every registered form."""


def register(
    source: Source,
    load: Load,
    shape: MeasureShape = lambda files: None,  # noqa: ARG005
) -> None:
    """Make a form known to `napari_panoptic.io.loading.load_masks`.

    Parameters
    ----------
    source
        The form.
    load, shape
        See `Form`.
    """
    FORMS[source] = Form(load, shape)


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

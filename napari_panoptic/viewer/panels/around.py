"""What panels may use while a cohort is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from napari_panoptic.live.session import Session

if TYPE_CHECKING:
    from napari_panoptic.viewer.desk.link import Link
    from napari_panoptic.viewer.kit.title_strip import KeysDialog
    from napari_panoptic.viewer.panels.legend import LegendStrip
    from napari_panoptic.viewer.panels.metrics import MetricsPanel
    from napari_panoptic.viewer.panels.navigator import Navigator
    from napari_panoptic.viewer.panels.notes import NotesDialog
    from napari_panoptic.viewer.panels.objects.panel import ObjectTable
    from napari_panoptic.viewer.panels.settings import SettingsPanel
    from napari_panoptic.viewer.panels.title import TitleStrip


@dataclass(frozen=True, eq=False)
class Panels:
    """The widgets that every desk has."""

    navigator: Navigator
    settings: SettingsPanel
    metrics: MetricsPanel
    objects: ObjectTable
    title: TitleStrip
    legend: LegendStrip
    notes: NotesDialog
    keys: KeysDialog


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a part may use while a cohort is shown."""

    #: The napari viewer.
    viewer: Any
    #: The live state.
    session: Session
    #: Session and viewer joined: has the scene and the other panels.
    link: Link

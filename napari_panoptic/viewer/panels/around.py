"""What panels may use while a cohort is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from psygnal import SignalInstance

from napari_panoptic.live.session import Session
from napari_panoptic.questions.engines.cohort_failures import FailureName, FailureSet
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.region_work import SummaryWork
from napari_panoptic.viewer.kit.keys_dialog import KeysDialog
from napari_panoptic.viewer.layers.scene import Scene
from napari_panoptic.viewer.panels.metrics import MetricsPanel
from napari_panoptic.viewer.panels.navigator import Navigator
from napari_panoptic.viewer.panels.notes import NotesDialog
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.settings import SettingsPanel
from napari_panoptic.viewer.panels.strips import LegendStrip, TitleStrip
from napari_panoptic.viewer.state.desk_state import DeskState

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Panels:
    """The widgets of a desk."""

    navigator: Navigator
    settings: SettingsPanel
    metrics: MetricsPanel
    objects: ObjectTable
    title: TitleStrip
    legend: LegendStrip
    notes: NotesDialog
    keys: KeysDialog


class FailureWalk(Protocol):
    """The queue of failures over the cohort, in the order that the user chose."""

    ended: SignalInstance
    """`go_on` found no open failure."""
    chosen_changed: SignalInstance
    """Other failures, or none, are chosen together."""
    only_changed: SignalInstance
    """The gallery and N are limited to a set of failures, or no longer."""

    @property
    def only(self) -> FailureSet | None:
        """The failures that the gallery and N are limited to; None for no limit."""

    def show_only(self, only: FailureSet | None) -> None:
        """Limit the gallery and N to a set of failures; None for no limit."""

    @property
    def chosen(self) -> tuple[FailureName, ...]:
        """The failures that the user chose together; empty if fewer than two."""

    def choose(self, names: Sequence[FailureName]) -> None:
        """Choose several failures together; fewer than two are none."""

    def stand_here(self) -> None:
        """Go on from the selected object, whatever becomes of it until the next step."""

    def go_on(self, is_open: Callable[[FailureName], bool]) -> None:
        """Go to the next open failure, from the first again after the last."""


class DeskLink(Protocol):
    """The link between session and viewer, as panels see it."""

    scene: Scene
    state: DeskState
    summary: SummaryWork
    edits_rested: SignalInstance

    @property
    def failures(self) -> FailureWalk:
        """The queue of failures over the cohort."""

    @property
    def panels(self) -> Panels:
        """The panels that every desk has."""

    def presenter(self, kind: type[T]) -> T:
        """Return the presenter of another panel; a LookupError where it is not there."""

    def reveal(self, title: str) -> None:
        """Bring the panel of a title to the front."""

    def show_failures(
        self,
        title: str,
        names: Iterable[FailureName],
        versions: tuple[str, str] | None = None,
    ) -> None:
        """Show exactly these failures in the gallery, and lead through them with N."""

    def show_objects(self, objects: FailureSet) -> None:
        """Show exactly these objects in the gallery, failures or not."""

    def go_to(
        self,
        region: str,
        side: Side | None = None,
        object_id: int | None = None,
        *,
        team: str | None = None,
        beside: Sequence[str] = (),
    ) -> None:
        """Show a region, and an object in it, with the outlines of other teams."""

    def show_selected(self) -> None:
        """Name the selected object above the image, in place of any message."""

    def follow_selected(self) -> None:
        """Bring the selected object into view, unless the user turned this off."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a part may use while a cohort is shown."""

    #: The napari viewer.
    viewer: Any
    #: The live state.
    session: Session
    #: Session and viewer joined: has the scene and the other panels.
    link: DeskLink

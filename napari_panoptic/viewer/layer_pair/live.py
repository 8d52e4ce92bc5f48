"""Layers of the user's on a desk, followed as they change.

The layers are written as a small cohort into a temporary folder (`store`), and the desk opens on
it. From then on they are watched (`watch`), and changes are mirrored in the session (`mirror`).
They are never changed themselves, but for the columns of results in their features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import napari
from napari.layers import Layer, Points

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import english_list
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.io.cohorts import comparison as arrays
from napari_panoptic.live.mends import Box
from napari_panoptic.live.session import Selection, Session
from napari_panoptic.viewer.desk.detections import DetectionDesk
from napari_panoptic.viewer.desk.nuclei import Desk
from napari_panoptic.viewer.jobs.jobs import Several, single_shot, stop_timers
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.napari_private import unwrapped
from napari_panoptic.viewer.kit.shown import show_info, show_warning
from napari_panoptic.viewer.layer_pair import sources
from napari_panoptic.viewer.layer_pair.mirror import Mirror, write_results
from napari_panoptic.viewer.layer_pair.sources import ChosenLayers
from napari_panoptic.viewer.layer_pair.store import Store
from napari_panoptic.viewer.layer_pair.watch import Connections, PairWatch
from napari_panoptic.viewer.opening import Opened, read_folder, show_in

FOLLOW_MS = 16
"""How long after a change of a layer it is compared with the pixels read last."""
REST_MS = 150
"""The same for large layers, and for all that builds the comparison again."""
NOT_WRITTEN = (
    "The changed layers could not be written for panels over all regions, which show them as they "
    "were: {}. Make room on the disk, then change a layer or press Compare again."
)
FEATURES_MS = 200
"""How long after the last change results are written to the layers' features."""


@dataclass(frozen=True, eq=False)
class _View:
    """The state that is kept when a comparison is built again."""

    settings: Any
    layer: Layer | None
    """The prediction that was looked at."""
    selection: Selection | None
    center: tuple[float, ...]
    zoom: float
    active: Layer | None


class LiveComparison:
    """A comparison of layers of the user's.

    Parameters
    ----------
    viewer
        The viewer.
    choice
        The layers.
    say
        Receives one sentence if something went wrong or takes long, and an
        empty one if there is none.
    opened
        Called when the desk of large layers is open, which takes a while.
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        choice: ChosenLayers,
        say: Callable[[str], None] | None = None,
        opened: Callable[[], None] | None = None,
    ) -> None:
        self._viewer = unwrapped(viewer)
        self._choice = choice
        self._tell, self._opened = say, opened
        self._desk: Desk | DetectionDesk | None = None
        self._session: Session | DetectionSession | None = None
        #: The files; None before the start, and after the end.
        self._store: Store | None = None
        self._mirror = Mirror(self._viewer, choice)
        self._watch, self._of_session = PairWatch(), Connections()
        self._removed: list[str] = []
        self._writing_results = Within()
        self._follow = single_shot(FOLLOW_MS, self._take_changes)
        self._again = single_shot(REST_MS, self._rebuild)
        self._features = single_shot(FEATURES_MS, self._settle)
        self._reading = Several()

    @property
    def desk(self) -> Desk | DetectionDesk | None:
        """The desk, while it shows this comparison."""
        return self._desk

    @property
    def is_settled(self) -> bool:
        """Whether the desk shows the layers as they are."""
        timers = (self._follow, self._again, self._features)
        is_waiting = any(timer.isActive() for timer in timers) or self._reading.is_busy
        return not is_waiting and (self._desk is None or self._desk.is_settled)

    def start(self, earlier: LiveComparison | None = None) -> bool:
        """Open the desk; False if the user keeps the open cohort.

        Parameters
        ----------
        earlier
            A comparison that this one takes the place of: settings, team and
            view stay as they are.

        Raises
        ------
        PanopticError
            If the layers cannot be compared.
        """
        comparison = sources.arrays_of(self._choice, self._viewer)
        self._store = Store(self._store_changes, self._on_not_written)
        view = None
        if earlier is not None and earlier.desk is not None:
            view, self._desk, self._session = earlier._view(), earlier.desk, earlier._session
        is_open = False
        try:
            is_open = self._open(comparison, view)
        finally:
            if not is_open:
                self.close()
        if is_open:
            self._listen_to_layers()
        return is_open

    def save(self, folder: Path) -> Path:
        """Write the comparison as a cohort, to be opened again later.

        Raises
        ------
        PanopticError
            If the folder is not empty, or cannot be written.
        """
        return sources.arrays_of(self._choice, self._viewer).write(folder)

    def be_silent(self) -> None:
        """Stop emitting signals: the dock that listened is gone."""
        self._tell = self._opened = None

    def close(self) -> None:
        """Let go of the layers; results stay in their features."""
        self._watch.close()
        self._of_session.close()
        stop_timers(self._follow, self._again, self._features)
        if self._store is not None:
            self._store.close()
        self._mirror.forget_absent(())
        if self._desk is not None and self in self._desk.companions:
            self._desk.companions.remove(self)
        self._desk = self._session = self._store = None
        self.be_silent()

    # --- opening ------------------------------------------------------------------------------

    def _open(
        self, comparison: arrays.LabelsComparison | arrays.PointsComparison, view: _View | None
    ) -> bool:
        """Write the layers as they are, and show them; False if the user refuses."""
        if self._store is None:
            return False
        is_of_labels = isinstance(comparison, arrays.LabelsComparison)
        is_reopened = view is not None and is_of_labels and isinstance(self._desk, Desk)
        if is_reopened and self._desk is not None and not self._desk.may_leave():
            return False
        self._mirror.read(self._choice, comparison)
        folder = self._store.new_place()
        placement = sources.placement_of(self._choice.reference)

        def prepare() -> Opened:
            opened = read_folder(comparison.write(folder))
            cohort: Any = opened.cohort
            return replace(opened, cohort=replace(cohort, placement=placement))

        is_large = any(sources.is_large(layer, self._viewer) for layer in self._choice.layers)
        if not is_large:
            return self._show(prepare(), view, is_reopened=is_reopened)
        self._say("The layers are read block by block; the desk opens after that.")

        def take(opened: Opened) -> None:
            is_open = self._store is not None  # else closed meanwhile
            if is_open and self._show(opened, view, is_reopened=is_reopened):
                self._say("These layers are large; after a change, press Compare again.")
                if self._opened is not None:
                    self._opened()

        self._reading.start(prepare, take, lambda error: self._say(str(error)))
        return True

    def _show(self, opened: Opened, view: _View | None, *, is_reopened: bool) -> bool:
        self._of_session.close()
        team = None if view is None else self._choice.teams.get(view.layer)
        settings = None if view is None else view.settings
        desk: Any = self._desk
        if is_reopened:
            desk.show_cohort(opened.cohort, settings=settings, team=team)
        else:
            desk = show_in(self._viewer, opened)
            if desk is None:
                self._listen_to_session()
                return False
        self._desk, self._session = desk, desk.session
        if self not in desk.companions:
            desk.companions.append(self)
        session = self._session
        if isinstance(session, Session):
            if view is not None:
                self._keep_view(session, view)
        elif session is not None and type(settings) is type(session.settings):
            session.set_settings(settings)
        self._listen_to_session()
        return True

    def _keep_view(self, session: Session, view: _View) -> None:
        """Show the same part of the image, and select the same object, once there is one."""
        camera, layers = self._viewer.scene.camera, self._viewer.layers

        def restore(_snapshot: object = None) -> None:
            session.region_changed.disconnect(restore)
            camera.center, camera.zoom = view.center, view.zoom
            if view.active is not None and view.active in layers:
                layers.selection.active = view.active
            chosen, shown = view.selection, session.shown
            if chosen is None or shown is None:
                return
            row = shown.outcomes.side(chosen.side).row_of(chosen.id)
            if row is not None:
                session.select_row(chosen.side, row)

        session.region_changed.connect(restore)

    def _view(self) -> _View | None:
        """Return the present view of the comparison."""
        session = self._session
        if session is None:
            return None
        layers = {team: layer for layer, team in self._choice.teams.items()}
        camera = self._viewer.scene.camera
        return _View(
            session.settings,
            layers.get(session.team or ""),
            session.selection if isinstance(session, Session) else None,
            tuple(camera.center),
            float(camera.zoom),
            self._viewer.layers.selection.active,
        )

    def _rebuild(self) -> None:
        """Compare the layers again: another slice, another size, another name, one less."""
        if not self._is_alive() or (self._removed and not self._drop_removed()):
            return
        choice = replace(self._choice)  # names its teams again: layers may have other names now
        try:
            comparison = sources.arrays_of(choice, self._viewer)
        except (PanopticError, ValueError) as error:
            self._warn(f"{error} The results are the previous ones.")
            return
        self._say("")
        view, self._choice = self._view(), choice
        self._open(comparison, view)

    # --- listening ----------------------------------------------------------------------------

    def _listen_to_layers(self) -> None:
        watch = self._watch
        for signal, slot in (
            (watch.drawn, self._on_drawn),
            (watch.stepped, self._on_step),
            (watch.moved, self._on_moved),
            (watch.classified, self._on_classes),
            (watch.removed, self._on_removed),
        ):
            signal.connect(slot)
        watch.listen(self._viewer, self._choice)

    def _listen_to_session(self) -> None:
        session, connect = self._session, self._of_session.connect
        if self._desk is None:
            return
        connect(self._desk.closed, self.close)
        if isinstance(session, Session):
            for signal in (
                session.region_changed,
                session.teams_came,
                session.edited,
                session.settings_changed,
                session.team_changed,
            ):
                connect(signal, self._on_results)
            connect(session.edits_discarded, self._on_discarded)
        elif session is not None:
            connect(session.judged_changed, self._on_results)

    def _is_alive(self) -> bool:
        """Return whether the desk still shows this comparison; let go if it does not."""
        if self._reading.is_busy:
            return self._store is not None
        if self._desk is not None and self._desk.session is self._session is not None:
            return True
        self.close()
        return False

    def _is_followed(self) -> bool:
        """Return whether changes of the layers are the user's, on a desk that shows them."""
        return not self._writing_results and self._is_alive()

    def _on_drawn(self, layer: Layer, box: Box | None) -> None:
        if not self._is_followed():
            return
        if self._mirror.note(layer, box):
            self._follow.setInterval(REST_MS if self._mirror.is_slow(layer) else FOLLOW_MS)
            if not self._follow.isActive():
                self._follow.start()
        elif isinstance(layer, Points) or layer is self._choice.image:
            self._again.start()
        else:  # to read it takes long, and many events change nothing
            self._say(f"'{layer.name}' may have changed; press Compare to evaluate it again.")

    def _on_step(self) -> None:
        try:
            if self._is_followed() and self._mirror.has_stepped():
                self._again.start()
        except PanopticError as error:
            self._warn(str(error))

    def _on_moved(self) -> None:
        if self._is_alive():
            self._again.start()

    def _on_classes(self, layer: Layer) -> None:
        if self._is_followed() and self._mirror.has_other_classes(layer):
            self._again.start()

    def _on_removed(self, layer: Layer) -> None:
        if layer in self._choice.layers and self._is_alive():
            self._removed.append(layer.name)
            self._again.start()

    def _drop_removed(self) -> bool:
        """Report once which layers are gone; return whether to continue without them."""
        names, self._removed = self._removed, []
        choice, present = self._choice, self._viewer.layers
        words = english_list([f"'{name}'" for name in names])
        was = "The layer {} was removed" if len(names) == 1 else "The layers {} were removed"
        left = tuple(each for each in choice.predictions if each in present)
        is_left = choice.reference in present and bool(left)
        if not is_left:
            text = f"{was.format(words)}: the results are those of the last state."
            self._mirror.forget_absent(present)
        else:
            text = f"{was.format(words)} from the comparison."
            self._choice = replace(
                choice,
                predictions=left,
                image=choice.image if choice.image in present else None,
                ambiguous=choice.ambiguous if choice.ambiguous in present else None,
            )
        show_info(text)
        self._say(text)
        return is_left

    def _on_results(self, *_: Any) -> None:
        self._features.start()

    def _on_discarded(self) -> None:
        """Mirror the layers again: their mirror was discarded with the user's edits."""
        loaded = self._session.loaded if isinstance(self._session, Session) else None
        if loaded is not None and not self._writing_results:
            self._mirror.restart(loaded)
            self._follow.start()

    # --- following ----------------------------------------------------------------------------

    def _take_changes(self) -> None:
        """Mirror changes of the layers in the session."""
        session, store = self._session, self._store
        if not self._is_alive() or not isinstance(session, Session) or store is None:
            return
        if session.snapshot is None or session.snapshot.pending:  # loading: look again later
            if self._desk is not None and not self._desk.is_settled:
                self._follow.start()
            return
        try:
            self._mirror.take_changes(session, store.note)
        except (PanopticError, ValueError):
            self._again.start()

    def _settle(self) -> None:
        """Evaluate all teams after the last change, and write results to the layers."""
        session = self._session
        if not self._is_alive() or not isinstance(session, Session) or session.snapshot is None:
            return
        session.evaluate_edited()
        with self._writing_results:
            write_results(self._choice, session, self._viewer.layers)

    def _store_changes(self) -> None:
        if self._is_alive() and self._store is not None:
            self._store.write(self._choice, self._viewer, self._mirror.pixels)

    def _on_not_written(self, error: PanopticError) -> None:
        if self._is_alive():
            self._warn(NOT_WRITTEN.format(error))

    # --- messages -----------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        if self._tell is not None:
            self._tell(text)

    def _warn(self, text: str) -> None:
        self._say(text)
        show_warning(text)

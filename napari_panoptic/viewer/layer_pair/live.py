"""Layers of the user's on a desk, followed as they change.

The layers are written as a small cohort into a temporary folder, and the desk opens on it. From
then on they are watched: what changes in them is mirrored in the session. They are never changed
themselves, but for the columns of results in their features.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import napari
import numpy as np
from napari.layers import Labels, Layer, Points
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import english_list
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.io.cohorts import comparison as arrays
from napari_panoptic.live.session import Selection, Session
from napari_panoptic.nuclei.edits import IdWindow
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Several, single_shot, stop_timers
from napari_panoptic.viewer.kit.napari_private import boxes_of, unwrapped
from napari_panoptic.viewer.kit.shown import show_info, show_warning
from napari_panoptic.viewer.layer_pair import sources
from napari_panoptic.viewer.layer_pair.sources import ChosenLayers, write_features
from napari_panoptic.viewer.layers.watch import box_around
from napari_panoptic.viewer.opening import Opened, read_folder, show_in

FOLLOW_MS = 16
"""How long after a change of a layer it is compared with what was seen last."""
REST_MS = 150
"""The same for large layers, and for all that builds the comparison again."""
NOT_WRITTEN = (
    "The changed layers could not be written for panels over all regions, which show them as they "
    "were: {}. Make room on the disk, then change a layer or press Compare again."
)
STORE_MS = 1500
"""How long after the last change the files follow, which all that looks at cohorts reads."""
LARGE_PX = 16_000_000
FEATURES_MS = 200
"""How long after the last change results are written to the layers' features."""
_MOST_IDS = np.iinfo(np.uint16).max
Box = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class _View:
    """What is kept where a comparison is built again."""

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
        Receives one sentence where something went wrong or takes long, and an
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
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._desk: Any = None
        self._session: Any = None
        self._seen: dict[Layer, NDArray[Any]] = {}
        self._slices: dict[Layer, tuple[int, ...]] = {}
        self._classes: dict[Layer, Mapping[int, str] | str] = {}
        self._scores: dict[Layer, Mapping[int, float]] = {}
        self._area: NDArray[np.bool_] | None = None
        self._changed: dict[Layer, Box | None] = {}
        self._removed: list[str] = []
        self._is_writing = False
        self._follow = single_shot(FOLLOW_MS, self._take_changes)
        self._again = single_shot(REST_MS, self._rebuild)
        self._features = single_shot(FEATURES_MS, self._settle)
        self._store = single_shot(STORE_MS, self._store_changes)
        self._place: Path | None = None
        self._unstored: set[Layer] = set()
        self._writer = ThreadPoolExecutor(1, "comparison")
        self._reading, self._writing = Several(), Several()
        self._connections: list[tuple[Any, Callable[..., Any]]] = []
        self._of_session: list[tuple[Any, Callable[..., Any]]] = []

    @property
    def desk(self) -> Any:
        """The desk, while it shows this comparison."""
        return self._desk

    @property
    def is_settled(self) -> bool:
        """Whether the desk shows the layers as they are."""
        timers = (self._follow, self._again, self._features)
        is_waiting = any(timer.isActive() for timer in timers) or self._reading.is_busy
        return not is_waiting and (self._desk is None or self._desk.is_settled)

    def start(self, earlier: LiveComparison | None = None) -> bool:
        """Open the desk; False if the user keeps what is open.

        Parameters
        ----------
        earlier
            A comparison that this one takes the place of: settings, team and
            view stay as they are.

        Raises
        ------
        PanopticError
            Where the layers cannot be compared.
        """
        found = sources.arrays_of(self._choice, self._viewer)
        self._folder = tempfile.TemporaryDirectory(
            prefix="napari-panoptic-", ignore_cleanup_errors=True
        )
        view = None
        if earlier is not None and earlier.desk is not None:
            view, self._desk, self._session = earlier._view(), earlier.desk, earlier._session
        is_open = False
        try:
            is_open = self._open(found, view)
        finally:
            if not is_open:
                self.close()
        if not is_open:
            return False
        self._connect()
        return True

    def save(self, folder: Path) -> Path:
        """Write the comparison as a cohort, to be opened again later.

        Raises
        ------
        PanopticError
            Where the folder is not empty, or cannot be written.
        """
        return sources.arrays_of(self._choice, self._viewer).write(folder)

    def be_silent(self) -> None:
        """Stop emitting signals: the dock that listened is gone."""
        self._tell = self._opened = None

    def close(self) -> None:
        """Let go of the layers; results stay in their features."""
        for emitter, slot in (*self._connections, *self._of_session):
            emitter.disconnect(slot)
        self._connections, self._of_session = [], []
        stop_timers(self._follow, self._again, self._features, self._store)
        self._writer.shutdown(cancel_futures=True)  # it writes into the folder
        self._seen, self._slices, self._classes, self._scores = {}, {}, {}, {}
        if self._desk is not None and self in self._desk.companions:
            self._desk.companions.remove(self)
        self._desk = self._session = None
        self._tell = self._opened = None
        self._changed.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # --- opening ------------------------------------------------------------------------------

    def _open(
        self, found: arrays.LabelsComparison | arrays.PointsComparison, view: _View | None
    ) -> bool:
        """Write the layers as they are, and show them; False if the user refuses."""
        if self._folder is None:
            return False
        is_of_labels = isinstance(found, arrays.LabelsComparison)
        is_reopened = view is not None and is_of_labels and isinstance(self._session, Session)
        if is_reopened and not self._desk.may_leave():
            return False
        self._note_seen(found)
        place = self._place = Path(tempfile.mkdtemp(dir=self._folder.name))
        placement = sources.placement_of(self._choice.reference)

        def prepare() -> Opened:
            opened = read_folder(found.write(place))
            cohort: Any = opened.cohort
            return replace(opened, cohort=replace(cohort, placement=placement))

        is_large = any(sources.is_large(at, self._viewer) for at in self._choice.layers)
        if not is_large:
            return self._show(prepare(), view, is_reopened=is_reopened)
        self._say("The layers are read block by block; the desk opens after that.")

        def take(opened: Opened) -> None:
            is_open = self._folder is not None  # else closed meanwhile
            if is_open and self._show(opened, view, is_reopened=is_reopened):
                self._say("These layers are large; after a change, press Compare again.")
                if self._opened is not None:
                    self._opened()

        self._reading.start(prepare, take, lambda error: self._say(str(error)))
        return True

    def _show(self, opened: Opened, view: _View | None, *, is_reopened: bool) -> bool:
        self._drop_session()
        team = None if view is None else self._choice.teams.get(view.layer)
        settings = None if view is None else view.settings
        if is_reopened:
            desk = self._desk
            desk.show_cohort(opened.cohort, settings=settings, team=team)
        else:
            desk = show_in(self._viewer, opened)
            if desk is None:
                if self._session is not None:
                    self._listen_to_session()
                return False
        self._desk, self._session = desk, desk.session
        if self not in desk.companions:
            desk.companions.append(self)
        session = self._session
        if isinstance(session, Session):
            if view is not None:
                self._keep_view(session, view)
        elif settings is not None and type(settings) is type(session.settings):
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
        """Note how the comparison is looked at."""
        session = self._session
        if session is None:
            return None
        layers = {team: layer for layer, team in self._choice.teams.items()}
        camera = self._viewer.scene.camera
        return _View(
            session.settings,
            layers.get(session.team),
            session.selection if isinstance(session, Session) else None,
            tuple(camera.center),
            float(camera.zoom),
            self._viewer.layers.selection.active,
        )

    def _note_seen(self, found: arrays.LabelsComparison | arrays.PointsComparison) -> None:
        """Note what the session is about to show, to tell later what has changed."""
        choice = self._choice
        self._slices = {at: sources.slice_of(at, self._viewer) for at in choice.layers}
        self._changed.clear()
        self._unstored.clear()
        if isinstance(found, arrays.PointsComparison):
            return
        sides = (found.reference, *found.predictions.values())
        self._seen = {
            layer: np.array(side.array)
            for layer, side in zip(choice.sides, sides, strict=True)
            if not sources.is_large(layer, self._viewer)
        }
        self._classes = {layer: sources.classes_of(layer, choice) for layer in choice.sides}
        self._scores = {layer: sources.scores_of(layer) for layer in choice.sides}
        self._area = None if found.ambiguous is None else np.asarray(found.ambiguous)

    def _rebuild(self) -> None:
        """Compare the layers again: another slice, another size, another name, one less."""
        if not self._is_alive() or (self._removed and not self._drop_removed()):
            return
        choice = replace(self._choice)  # names its teams again: layers may have other names now
        try:
            found = sources.arrays_of(choice, self._viewer)
        except (PanopticError, ValueError) as error:
            self._warn(f"{error} The results are the previous ones.")
            return
        self._say("")
        view, self._choice = self._view(), choice
        self._open(found, view)

    # --- listening ----------------------------------------------------------------------------

    def _connect(self) -> None:
        layers, dims = self._viewer.layers.events, self._viewer.dims.events
        self._listen(layers.removed, self._on_removed)
        for emitter in (dims.current_step, dims.order):
            self._listen(emitter, self._on_step)
        for layer in self._choice.layers:
            self._listen_to(layer)

    def _listen_to(self, layer: Layer) -> None:
        events: Any = layer.events
        is_labels = isinstance(layer, Labels)

        def on_change(_event: Any) -> None:
            self._on_changed(layer)

        def on_stroke(event: Any) -> None:
            offset, size = tuple(event.offset), event.data.shape
            if len(offset) != 2:
                self._on_changed(layer)
                return
            y, x = (int(value) for value in offset)
            self._on_changed(layer, (y, x, y + int(size[0]), x + int(size[1])))

        def on_paint(event: Any) -> None:
            for box in boxes_of(event.value):
                self._on_changed(layer, box)

        self._listen(events.data, on_change)
        if is_labels:
            self._listen(events.labels_update, on_stroke)
            self._listen(events.paint, on_paint)
            # Undo, redo and refresh() by other code tell nothing else.
            is_fixed = hasattr(sources.data_of(layer), "dask")
            if not is_fixed and not sources.is_large(layer, self._viewer):
                self._listen(events.set_data, on_change)
        if layer in self._choice.sides and self._choice.class_column is not None:
            self._listen(events.features, lambda _event: self._on_classes(layer))
        self._listen(events.name, self._on_placed)
        for name in ("scale", "translate", "rotate", "shear", "affine", "units"):
            if (emitter := getattr(events, name, None)) is not None:
                self._listen(emitter, self._on_placed)

    def _listen_to_session(self) -> None:
        session, desk = self._session, self._desk
        table: list[tuple[Any, Callable[..., Any]]] = [(desk.closed, self.close)]
        if isinstance(session, Session):
            table += [
                (session.region_changed, self._on_results),
                (session.teams_came, self._on_results),
                (session.edited, self._on_results),
                (session.settings_changed, self._on_results),
                (session.team_changed, self._on_results),
                (session.edits_discarded, self._on_discarded),
            ]
        elif isinstance(session, DetectionSession):
            table += [(session.judged_changed, self._on_results)]
        for signal, slot in table:
            signal.connect(slot)
        self._of_session = table

    def _drop_session(self) -> None:
        for signal, slot in self._of_session:
            signal.disconnect(slot)
        self._of_session = []

    def _listen(self, emitter: Any, slot: Callable[..., Any]) -> None:
        emitter.connect(slot)
        self._connections.append((emitter, slot))

    def _is_alive(self) -> bool:
        """Return whether the desk still shows this comparison; lets go where it does not."""
        if self._reading.is_busy:
            return self._folder is not None
        if self._desk is not None and self._desk.session is self._session is not None:
            return True
        self.close()
        return False

    def _on_changed(self, layer: Layer, box: Box | None = None) -> None:
        if self._is_writing or not self._is_alive():
            return
        is_area = layer is self._choice.ambiguous and self._seen
        if layer not in self._seen and not is_area:
            self._on_unseen(layer)
            return
        known = self._changed.get(layer, box)
        is_whole = box is None or known is None
        self._changed[layer] = None if is_whole else box_around(known, box)  # type: ignore[arg-type]
        size = max(seen.size for seen in self._seen.values())
        is_slow = size > LARGE_PX or sources.is_lazy(layer)
        self._follow.setInterval(REST_MS if is_slow else FOLLOW_MS)
        if not self._follow.isActive():
            self._follow.start()

    def _on_unseen(self, layer: Layer) -> None:
        """Follow a layer whose pixels are not compared with what was seen of them."""
        if isinstance(layer, Points) or layer is self._choice.image:
            self._again.start()
        else:  # to read it takes long, and many events change nothing
            self._say(f"'{layer.name}' may have changed; press Compare to evaluate it again.")

    def _on_step(self, _event: Any = None) -> None:
        if self._is_writing or not self._is_alive():
            return
        try:
            now = {at: sources.slice_of(at, self._viewer) for at in self._choice.layers}
        except PanopticError as error:
            self._warn(str(error))
            return
        if now != self._slices:
            self._again.start()

    def _on_placed(self, _event: Any = None) -> None:
        """Compare again: a layer lies elsewhere, or has another name."""
        if self._is_alive():
            self._again.start()

    def _on_classes(self, layer: Layer) -> None:
        """Compare again where a class or a score in the user's columns is another one."""
        if self._is_writing or not self._is_alive():
            return
        same_classes = sources.classes_of(layer, self._choice) == self._classes.get(layer)
        if not same_classes or sources.scores_of(layer) != self._scores.get(layer):
            self._again.start()

    def _on_removed(self, event: Any) -> None:
        layer, choice = event.value, self._choice
        if layer not in choice.layers or not self._is_alive():
            return
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
            for layer in [layer for layer in self._seen if layer not in present]:
                del self._seen[layer]
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
        session = self._session
        if session is None or session.loaded is None or self._is_writing:
            return
        for layer in self._seen:
            labels = self._mirror_of(layer, session.loaded)
            if labels is not None:
                self._seen[layer] = _ids_of(labels, np.s_[:, :]).astype(self._seen[layer].dtype)
                self._changed[layer] = None
        if self._choice.ambiguous is not None:
            self._area = session.loaded.ambiguous
            self._changed[self._choice.ambiguous] = None
        self._follow.start()

    # --- following ----------------------------------------------------------------------------

    def _take_changes(self) -> None:
        """Mirror in the session what has changed in the layers."""
        if not self._is_alive() or self._session is None:
            return
        snapshot = self._session.snapshot
        if snapshot is None or snapshot.pending:  # still loading: look again later
            if not self._desk.is_settled:
                self._follow.start()
            return
        waiting, self._changed = self._changed, {}
        for layer, box in waiting.items():
            try:
                if layer is self._choice.ambiguous:
                    self._take_area()
                elif layer in self._seen:
                    self._take(layer, box)
            except (PanopticError, ValueError):
                self._again.start()
                return

    def _take(self, layer: Layer, box: Box | None) -> None:
        """Mirror what has changed in one layer, within a box where that is known.

        Raises
        ------
        PanopticError
            Where it is more than an edit can be.
        """
        seen = self._seen[layer]
        now = sources.labels_of(layer, self._viewer, seen.shape)
        is_reference = layer is self._choice.reference
        team = None if is_reference else self._choice.teams[layer]
        part = _difference(seen, now, box)
        if part is None:
            return
        labels = self._mirror_of(layer, self._session.snapshot)
        if labels is None:
            raise PanopticError("there is no working copy")
        # Pixels beside those that changed stay, also where the user drew on the desk's copy.
        ids = np.where(seen[part] != now[part], now[part], _ids_of(labels, part))
        for window in _windows(ids.astype(np.int64), (part[0].start, part[1].start)):
            self._session.mirror_window(
                Side.REFERENCE if is_reference else Side.PREDICTION,
                window,
                team=team,
                classes=self._class_names(layer, window.ids.tolist(), labels),
            )
        seen[part] = now[part]
        self._unstored.add(layer)
        self._store.start()

    def _class_names(self, layer: Layer, ids: list[int], labels: LabelImage) -> dict[int, str]:
        """Return the classes of ids as the cohort spells them."""
        classes = self._classes.get(layer, "")
        spelt = {name.casefold(): name for name in labels.class_names}
        named = {id_: sources.class_of(classes, id_) for id_ in ids if id_}
        return {id_: spelt.get(name.casefold(), name) for id_, name in named.items()}

    def _take_area(self) -> None:
        """Mirror the ambiguous area."""
        shape = next(iter(self._seen.values())).shape
        now = sources.ambiguous_of(self._choice, self._viewer, shape)
        if now is None or (self._area is not None and np.array_equal(now, self._area)):
            return
        self._area = now
        self._session.set_ambiguous(now, is_mirrored=True)

    def _mirror_of(self, layer: Layer, snapshot: Any) -> LabelImage | None:
        """Return the objects of a layer as a snapshot has them."""
        if layer is self._choice.reference:
            labels: LabelImage | None = snapshot.reference
            return labels
        return snapshot.predictions.get(self._choice.teams[layer])  # type: ignore[no-any-return]

    def _settle(self) -> None:
        """Evaluate all teams after the last change, and write results to the layers."""
        if not self._is_alive() or self._session is None:
            return
        if isinstance(self._session, DetectionSession):
            return
        if self._session.snapshot is None:
            return
        self._session.evaluate_edited()
        self._write_features()

    def _write_features(self) -> None:
        """Write each team's results to its layer, those of the current team to the reference."""
        snapshot, team = self._session.snapshot, self._session.team
        present = self._viewer.layers
        self._is_writing = True
        try:
            for layer, name in self._choice.teams.items():
                found = snapshot.result(name)
                if found is not None and layer in present:
                    write_features(layer, found.objects, Side.PREDICTION)
            found = snapshot.result(team)
            if found is not None and self._choice.reference in present:
                write_features(self._choice.reference, found.objects, Side.REFERENCE)
        finally:
            self._is_writing = False

    def _store_changes(self) -> None:
        """Write the sides that have changed to the comparison's files, in another thread."""
        place, choice, layers = self._place, self._choice, self._unstored
        if place is None or not layers or not self._is_alive():
            return
        self._unstored = set()
        try:
            found = sources.arrays_of(choice, self._viewer)
        except (PanopticError, ValueError):
            return  # they no longer fit together, which was said
        if not isinstance(found, arrays.LabelsComparison):
            return
        sides = {choice.teams.get(at): self._seen[at].copy() for at in layers if at in self._seen}
        for team, pixels in sides.items():
            known = found.reference if team is None else found.predictions[team]
            side = replace(known, array=pixels)
            changed = replace(
                found,
                reference=side if team is None else found.reference,
                predictions=found.predictions if team is None else {team: side},
            )
            written = self._writer.submit(changed.write_side, place, team)
            failed = partial(self._on_not_written, layers)
            self._writing.start(partial(_waited, written), lambda _: None, failed)

    def _on_not_written(self, layers: set[Layer], error: PanopticError) -> None:
        if self._is_alive():
            self._unstored |= layers  # with the next change
            self._warn(NOT_WRITTEN.format(error))

    # --- telling ------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        if self._tell is not None:
            self._tell(text)

    def _warn(self, text: str) -> None:
        self._say(text)
        show_warning(text)


def _waited(written: Future[str]) -> None:
    """Wait until a side is written; for workers."""
    with suppress(CancelledError):  # the comparison was closed
        written.result()


def _ids_of(labels: LabelImage, part: Any) -> NDArray[np.int64]:
    """Return the id of each pixel of a part, 0 for background."""
    known = np.concatenate([[0], labels.ids])
    ids: NDArray[np.int64] = known[labels.index[part]]
    return ids


def _difference(
    seen: NDArray[Any], now: NDArray[Any], box: Box | None
) -> tuple[slice, slice] | None:
    """Return the window of a box in which two label arrays differ; None if they are equal."""
    height, width = seen.shape
    y0, x0, y1, x1 = box or (0, 0, height, width)
    y0, x0, y1, x1 = max(y0, 0), max(x0, 0), min(y1, height), min(x1, width)
    changed = seen[y0:y1, x0:x1] != now[y0:y1, x0:x1]
    rows = np.flatnonzero(changed.any(axis=1))
    if not len(rows):
        return None
    columns = np.flatnonzero(changed[rows[0] : rows[-1] + 1].any(axis=0))
    return (
        slice(y0 + int(rows[0]), y0 + int(rows[-1]) + 1),
        slice(x0 + int(columns[0]), x0 + int(columns[-1]) + 1),
    )


def _windows(ids: NDArray[np.int64], corner_yx: tuple[int, int]) -> Iterator[IdWindow]:
    """Yield windows of few enough ids that together cover an array of ids."""
    import pandas as pd

    numbers, unique = pd.factorize(ids.ravel())  # by hashing: far faster than sorting
    if len(unique) > _MOST_IDS and len(ids) > 1:
        half = len(ids) // 2
        yield from _windows(ids[:half], corner_yx)
        yield from _windows(ids[half:], (corner_yx[0] + half, corner_yx[1]))
        return
    yield IdWindow(corner_yx, numbers.reshape(ids.shape).astype(np.uint16), unique)

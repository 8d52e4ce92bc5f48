"""Objects under edit: drawings on layers go to the session's working copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Labels
from numpy.typing import NDArray
from psygnal import Signal

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.object_layers import too_many_objects
from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.saving import without_erased
from napari_panoptic.kernels.drawing import MAX_OBJECTS
from napari_panoptic.live.autosaves import EditedPart
from napari_panoptic.live.session import EditedEvaluation, Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.edits import IdWindow
from napari_panoptic.values.cohort import MaskFiles
from napari_panoptic.values.labels import LabelImage, Scores
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.editing.history import EditHistory
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.napari_private import show_tools
from napari_panoptic.viewer.kit.shown import show_error, show_info, show_warning
from napari_panoptic.viewer.layers.scene import Scene
from napari_panoptic.viewer.layers.watch import ClassChange, LayerValues, LayerWatch

SMALL_PX = 4_000_000
"""Layers up to this size are compared whenever they are redrawn; larger ones only
while editing is switched on, since that takes a tenth of a second."""

NEW_OBJECT_KEY = "M"
"""That of napari for a new label."""

FLATTENED = (
    "Editing flattens overlaps: each pixel belongs to the uppermost object, as with “Shared "
    "pixels: Object on top”. Discard or undo the edits to restore the overlaps."
)
"""Said once for each region with objects that keep shared pixels."""


@dataclass(frozen=True, eq=False)
class EditablePart:
    """The present contents of a part of a region: views that the next edit may change."""

    #: The objects; for an ambiguous area, those of the annotation.
    labels: LabelImage
    #: The ambiguous area of the region.
    ambiguous: NDArray[np.bool_] | None
    #: Micrometres per pixel, or None.
    mpp: float | None
    #: The files that an annotation was read from.
    original: MaskFiles | None

    def content(self, part: EditedPart) -> LabelImage | NDArray[np.bool_]:
        """Return the objects, or the ambiguous area where that was edited."""
        if part.side is not None:
            return self.labels
        return np.zeros(self.labels.shape, bool) if self.ambiguous is None else self.ambiguous


@dataclass(eq=False)
class _Unsaved:
    """An unsaved edit."""

    #: Revision of the last edit.
    revision: int
    #: Its present contents, whatever region is shown; None if it was never shown.
    drawn: EditablePart | None = None


class LiveEdits:
    """Keeps the reference's and the current team's layer in step with their copies.

    Parameters
    ----------
    viewer
        The napari viewer.
    session
        The live state.
    scene
        The layers.
    history
        The order of strokes and of all else that can be undone.
    """

    changed = Signal()
    """The edits, their saved state or the switch has changed."""

    def __init__(
        self, viewer: ViewerModel, session: Session, scene: Scene, history: EditHistory
    ) -> None:
        self._viewer, self._session, self._scene = viewer, session, scene
        self.history = history
        self._watches: dict[Side, LayerWatch] = {}
        self._region = ""
        self._is_on = False
        self._taking = Within()  # the layer shows an edit already
        self.chosen_class: str | None = None
        """The class that new objects get; None for that of the selected object."""
        self._unsaved: dict[EditedPart, _Unsaved] = {}
        self.revision = 0
        """The number of edits so far."""
        self._warned_flattened: set[str] = set()
        # An object that was undone may be done again: its id is no other one's.
        self._highest_ids: dict[EditedPart, int] = {}
        self._gone = single_shot(0, self._make_again)
        self._viewer.layers.events.removed.connect(self._on_removed)

    @property
    def is_on(self) -> bool:
        """Whether the layers can be painted on."""
        return self._is_on

    @property
    def unsaved(self) -> tuple[EditedPart, ...]:
        """The unsaved edits, in the order of editing."""
        return tuple(self._unsaved)

    def last_change(self, part: EditedPart) -> int:
        """Return the revision of the last edit; 0 if it is saved."""
        return self._unsaved[part].revision if part in self._unsaved else 0

    def drawn(self, part: EditedPart) -> EditablePart | None:
        """Return something unsaved as it is now, whatever region is shown."""
        return self._unsaved[part].drawn if part in self._unsaved else None

    def copies_here(self) -> list[EditedPart]:
        """List the drawn parts of the shown region, which differ from the files."""
        snapshot = self._session.snapshot
        if snapshot is None:
            return []
        name = snapshot.region.name
        teams = [EditedPart(name, Side.PREDICTION, team) for team in snapshot.predictions]
        parts = [EditedPart(name, Side.REFERENCE), *teams, EditedPart(name, None)]
        return [part for part in parts if self._is_copy(part)]

    @property
    def is_busy(self) -> bool:
        """Whether a layer is still to be compared with its copy."""
        return self._gone.isActive() or not all(w.is_resting for w in self._watches.values())

    def close(self) -> None:
        """Let go of all layers, as they are."""
        self._viewer.layers.events.removed.disconnect(self._on_removed)
        self._drop_watches()
        self._is_on = False
        stop_timers(self._gone)

    def watch(self) -> None:
        """Watch the layers of the shown region; watches that still apply are kept."""
        wanted = self._to_watch()
        snapshot = self._session.snapshot
        region = "" if snapshot is None else snapshot.region.name
        watched = {side: (watch.layer, watch.values) for side, watch in self._watches.items()}
        if watched == wanted and region == self._region:
            self._give_locks()
            return
        for watch in self._watches.values():
            if watch.layer.editable:
                watch.layer.editable = False
        self._drop_watches()
        self._region = region
        for side, (layer, values) in wanted.items():
            self._watches[side] = LayerWatch(
                layer,
                values,
                current=partial(self._current, side, region),
                changed=partial(self._take, side),
                classed=partial(self._give_classes, side),
                refused=partial(self._refuse, side),
                asked=self._on_undo_asked,
            )
            self.history.add_source(self._watches[side])
            # napari's own would give the number, and so the class, of an object that was undone.
            layer.bind_key(NEW_OBJECT_KEY, self._on_new_label, overwrite=True)
        self._give_locks()

    def _to_watch(self) -> dict[Side, tuple[Labels, LayerValues]]:
        """Return the layers that can be edited, and what their values stand for."""
        session, scene = self._session, self._scene
        if session.snapshot is None or session.evaluation is None:
            return {}
        found = {}
        for side in Side:
            labels, shown = self._labels(side), scene.object_layer(side, session.team)
            if labels is not None and shown is not None and not too_many_objects(labels):
                found[side] = shown
        return found

    def set_on(self, is_on: bool, side: Side = Side.PREDICTION) -> bool:
        """Make the layers editable, or not; the layer of a side becomes the active one.

        Returns
        -------
        bool
            False if there is nothing to edit: it is then said why.
        """
        self._is_on = is_on
        if is_on:
            self._restore_missing()
            if side not in self._watches:
                self._is_on = False
                show_info(self._why_not())
                self.changed.emit()
                return False
        self._give_locks()
        if is_on:
            self._activate(self._watches[side])
        elif self._is_ours(self._viewer.layers.selection.active):
            self._viewer.layers.selection.active = self._scene.image_layer
        self.changed.emit()
        return True

    def activate(self, side: Side) -> None:
        """Make the layer of a side the one that is painted on."""
        if side in self._watches:
            self._activate(self._watches[side])

    @property
    def active_side(self) -> Side | None:
        """The side whose layer is the active one."""
        active = self._viewer.layers.selection.active
        return next((side for side, w in self._watches.items() if w.layer is active), None)

    def start_new_object(self) -> None:
        """Choose a label that no object has, and take the brush."""
        side = self.active_side
        if side is None or not self._is_on:
            return
        if self._choose_new_label(side):
            self._watches[side].layer.mode = "paint"

    def _choose_new_label(self, side: Side) -> bool:
        """Let the brush draw a new object; return whether there is a layer to draw on."""
        watch, labels = self._watches[side], self._labels(side)
        if labels is None:
            return False
        highest = self._highest_ids.get(self._part(side), 0)
        known = self._session.known_ids(side)
        taken = int(watch.values.values(np.append(known, highest)).max())
        watch.layer.selected_label = min(taken + 1, MAX_OBJECTS)
        return True

    def _on_new_label(self, _layer: Labels) -> None:
        if (side := self.active_side) is not None:
            self._choose_new_label(side)

    def follow_selection(self) -> None:
        """Let the brush paint the selected object further."""
        chosen = self._session.selection
        if chosen is None or not self._is_on or chosen.side not in self._watches:
            return
        watch = self._watches[chosen.side]
        watch.layer.selected_label = watch.values.value(chosen.id)

    def new_class(self) -> str:
        """Return the class of new objects."""
        if self.chosen_class is not None:
            return self.chosen_class
        session = self._session
        names, evaluation = session.cohort.scheme.names, session.evaluation
        if evaluation is None:
            return names[0]
        if (of_selected := self.selected_class()) is not None:
            return of_selected
        counts = np.bincount(evaluation.outcomes.reference.class_index, minlength=len(names) + 1)
        return names[int(counts[1:].argmax())]

    def selected_class(self) -> str | None:
        """Return the class of the selected object; None if none is selected."""
        session = self._session
        chosen, evaluation = session.selection, session.evaluation
        if chosen is None or evaluation is None:
            return None
        own = evaluation.outcomes.side(chosen.side)
        return session.cohort.scheme.names[int(own.class_index[chosen.row]) - 1]

    def set_class(self, name: str) -> None:
        """Set the class of the selected object; it can be undone like a stroke.

        The layer of the object becomes the active one, so that it is there that
        the next step is undone.
        """
        chosen, before = self._session.selection, self.selected_class()
        if chosen is None or before is None or name == before:
            return
        watch = self._watches.get(chosen.side)
        if not self._give_classes(chosen.side, {chosen.id: name}) or watch is None:
            return
        watch.remember(ClassChange(chosen.id, before, name))
        if self._is_on:
            self._activate(watch)
        else:
            self._viewer.layers.selection.active = watch.layer

    def _give_classes(self, side: Side, names: Mapping[int, str]) -> bool:
        """Set the classes of objects (id -> class), and report those that are refused."""
        try:
            for id_, name in names.items():
                self._session.set_class(side, id_, name)
        except PanopticError as error:
            show_error(str(error))
            return False
        return True

    def next_id(self, side: Side) -> int:
        """Return an id that no object of a side has or had."""
        highest = self._highest_ids.get(self._part(side), 0)
        return max(highest, int(self._session.known_ids(side).max(initial=0))) + 1

    def _on_undo_asked(self, redo: bool) -> None:
        if problem := self.history.undo(redo=redo):
            show_info(problem)

    def objects_to_save(self, side: Side) -> Objects:
        """Return a side as it is now, in arrays that later edits do not change."""
        session = self._session
        drawn = self._drawn_now(side)
        if session.snapshot is None or drawn is None:
            raise PanopticError("there is nothing to save: no region with objects is shown")
        return self._objects(self._part(side), drawn)

    def unsaved_objects(self) -> list[Objects]:
        """Return all that is not saved, of all regions; an ambiguous area with its annotation."""
        found = {}
        for part, unsaved in self._unsaved.items():
            sided = replace(part, side=part.side or Side.REFERENCE)
            if unsaved.drawn is not None and sided not in found:
                found[sided] = self._objects(sided, unsaved.drawn)
        return list(found.values())

    def _drawn_now(self, side: Side) -> EditablePart | None:
        snapshot, labels = self._session.snapshot, self._labels(side)
        if snapshot is None or labels is None:
            return None
        return EditablePart(labels, snapshot.ambiguous, snapshot.mpp, snapshot.region.reference)

    def _objects(self, part: EditedPart, drawn: EditablePart) -> Objects:
        labels = drawn.labels.with_overlaps(Overlaps.FLATTEN)  # files have one object a pixel
        area = drawn.ambiguous
        is_reference = part.side is Side.REFERENCE
        return Objects(
            labels=replace(
                labels,
                index=labels.index.copy(),
                ids=labels.ids.copy(),
                class_index=labels.class_index.copy(),
            ),
            side=Side.REFERENCE if is_reference else Side.PREDICTION,
            region=part.region,
            team=part.team or "",
            ambiguous=area.copy() if is_reference and area is not None and area.any() else None,
            scheme=self._session.cohort.scheme,
            mpp=drawn.mpp,
            original=drawn.original if is_reference else None,
        )

    def open_objects(self, side: Side, masks: LoadedMasks) -> None:
        """Replace the objects of a side by those of a file, as if the user had drawn them.

        An object whose id exists already is replaced by that of the file;
        others are numbered on from the highest id. The ambiguous area is that of
        the file, if it has one, and so are the scores.

        Parameters
        ----------
        side
            The side; editing need not be switched on.
        masks
            Objects and area, of the size of the shown region.

        Raises
        ------
        PanopticError
            Where they cannot be taken; nothing is changed then.
        """
        session, now = self._session, self._labels(side)
        watch = self._watches.get(side)
        if now is None or watch is None:
            raise PanopticError(self._why_not())
        opened = without_erased(masks.labels.with_overlaps(Overlaps.FLATTEN))
        ids = opened.ids.copy()
        known_ids = session.known_ids(side)
        is_new = ~np.isin(ids, known_ids)
        ids[is_new] = int(known_ids.max(initial=0)) + 1 + np.arange(is_new.sum())
        if int(watch.values.values(ids).max(initial=0)) > MAX_OBJECTS:
            raise PanopticError(
                f"a layer has room for {MAX_OBJECTS} objects, and the file has {len(ids)}"
            )
        names = dict(zip(ids.tolist(), opened.class_names_of_objects().tolist(), strict=True))
        before = dict(zip(now.ids.tolist(), now.class_names_of_objects().tolist(), strict=True))
        by_id = np.argsort(ids)
        window = IdWindow(
            (0, 0),
            opened.index.astype(np.uint16),
            np.concatenate([[0], ids]),
            Scores(ids[by_id], opened.scores[by_id]),
        )
        session.edit_window(
            side,
            window,
            classes={id_: name for id_, name in names.items() if id_ not in before},
            renamed={id_: name for id_, name in names.items() if before.get(id_, name) != name},
        )
        watch.forget_history()  # strokes on the previous contents
        if masks.ambiguous is not None:
            self.set_ambiguous(masks.ambiguous)

    def note_saved(self, saved: Iterable[EditedPart]) -> None:
        """Remember the saved parts."""
        for part in saved:
            self._unsaved.pop(part, None)
        self.changed.emit()

    def discard(self) -> None:
        """Go back to the files of the shown region."""
        session = self._session
        if session.snapshot is None:
            return
        name = session.snapshot.region.name
        self._unsaved = {at: n for at, n in self._unsaved.items() if at.region != name}
        session.discard_edits()
        self.changed.emit()

    def forget_histories(self) -> None:
        """Forget the strokes that layers could undo, since all edits were discarded."""
        for watch in self._watches.values():
            watch.forget_history()

    def forget_discarded(self) -> None:
        """Forget edits of regions whose edits were discarded."""
        has_edits = self._session.has_edits
        left = {at: n for at, n in self._unsaved.items() if has_edits(at.region)}
        if left != self._unsaved:
            self._unsaved = left
            self.changed.emit()

    def on_edited(self, result: EditedEvaluation) -> None:
        """Remember the edited part; bring layers up to date with edits made elsewhere."""
        snapshot = self._session.snapshot
        if snapshot is None:
            return
        name = snapshot.region.name
        part = self._part(result.side, result.team)
        if result.is_area:
            part = EditedPart(name, None)
        self.revision += 1
        if result.is_mirrored and part not in self._unsaved:
            pass  # its source is kept elsewhere
        elif self._is_copy(part):
            self._unsaved.setdefault(part, _Unsaved(self.revision)).revision = self.revision
        else:
            self._unsaved.pop(part, None)  # every edit was undone
        for at, unsaved in self._unsaved.items():
            if at.region == name and at.team in (None, self._session.team):
                unsaved.drawn = self._drawn_now(at.side or Side.REFERENCE) or unsaved.drawn
        if self._session.is_flattened and name not in self._warned_flattened:
            self._warned_flattened.add(name)
            show_warning(FLATTENED)
        if not self._taking and result.edit is not None and result.edit.changed_px:
            self._show_edit(result)
        self.history.sync()
        self.changed.emit()

    def _show_edit(self, result: EditedEvaluation) -> None:
        """Bring the layer of a side up to date with an edit made elsewhere."""
        team = self._session.team
        if result.side is Side.PREDICTION and result.team != team:
            return  # the scene fills that layer when it is looked at
        watch, labels = self._watches.get(result.side), self._labels(result.side)
        if watch is not None and labels is not None and watch.values.has_room_for(labels.ids):
            watch.follow_copy(result.box)
        elif result.is_mirrored or watch is not None:  # else the layer would undo the edit
            self._put_back(result.side)

    def _is_copy(self, part: EditedPart) -> bool:
        """Return whether the shown region differs from its files."""
        session = self._session
        if part.side is None:
            return session.is_area_drawn
        return session.is_drawn(part.side, part.team)

    def set_ambiguous(self, mask: NDArray[np.bool_] | None) -> None:
        """Redraw the ambiguous area."""
        try:
            self._session.set_ambiguous(mask)
        except PanopticError as error:
            show_error(str(error))

    def _take(self, side: Side, window: IdWindow, ids: NDArray[np.int64]) -> None:
        """Hand changed pixels to the session; a refused change is undone on the layer."""
        session, labels = self._session, self._labels(side)
        if labels is None:
            return
        classes = self._classes_of_drawn(side, ids)
        part = self._part(side)
        highest = max(classes, default=0)
        self._highest_ids[part] = max(self._highest_ids.get(part, 0), highest)
        try:
            with self._taking:
                session.edit_window(side, window, classes=classes)
        except PanopticError as error:
            show_error(str(error))
            self._put_back(side)

    def _classes_of_drawn(self, side: Side, ids: NDArray[np.int64]) -> dict[int, str]:
        """Return the classes of drawn objects that had no pixel before.

        Objects of the files keep their class, and undo and redo bring back that of
        the time.
        """
        session = self._session
        on_disk = None if session.loaded is None else self._labels_in(session.loaded, side)
        if on_disk is None or session.evaluation is None:
            return {}
        absent = ids[(ids != 0) & ~np.isin(ids, session.evaluation.outcomes.side(side).ids)]
        if not len(absent):
            return {}
        known = session.known_ids(side)
        if not self._watches[side].replaying:
            known = known[np.isin(known, on_disk.ids)]
        new = absent[~np.isin(absent, known)]
        return dict.fromkeys(new.tolist(), self.new_class() if len(new) else "")

    def _refuse(self, side: Side, reason: str) -> None:
        show_warning(reason)
        self._put_back(side)

    def _put_back(self, side: Side) -> None:
        """Let a layer show its copy again."""
        self._scene.restore_objects(side, self._session.team)
        self.watch()

    def _current(self, side: Side, region: str) -> LabelImage | None:
        """Return the labels for a watched layer; None while the scene fills it."""
        snapshot = self._session.snapshot
        if snapshot is None or snapshot.region.name != region:
            return None
        return None if self._scene.is_filling else self._labels(side)

    def _part(self, side: Side, team: str | None = None) -> EditedPart:
        """Return a side of the shown region; of the current team if none is named."""
        snapshot = self._session.snapshot
        region = "" if snapshot is None else snapshot.region.name
        return EditedPart(
            region, side, team or self._session.team if side is Side.PREDICTION else None
        )

    def _labels(self, side: Side) -> LabelImage | None:
        snapshot = self._session.snapshot
        return None if snapshot is None else self._labels_in(snapshot, side)

    def _labels_in(self, snapshot: RegionSnapshot, side: Side) -> LabelImage | None:
        if side is Side.REFERENCE:
            return snapshot.reference
        return snapshot.predictions.get(self._session.team or "")

    def _drop_watches(self) -> None:
        for watch in self._watches.values():
            watch.layer.bind_key(NEW_OBJECT_KEY, None)
            self.history.remove_source(watch)
            watch.close()
        self._watches = {}

    def _give_locks(self) -> None:
        for side, watch in self._watches.items():
            labels = self._labels(side)
            is_small = labels is None or labels.index.size <= SMALL_PX
            watch.is_thorough = self._is_on or is_small
            if watch.layer.editable != self._is_on:
                watch.layer.editable = self._is_on
                show_tools(watch.layer, shown=self._is_on)
                if self._is_on:  # else a first stroke would become a part of object 1
                    self._choose_new_label(side)

    def _activate(self, watch: LayerWatch) -> None:
        watch.layer.visible = True
        self._viewer.layers.selection.active = watch.layer
        self.follow_selection()

    def _is_ours(self, layer: Any) -> bool:
        return any(watch.layer is layer for watch in self._watches.values())

    def _on_removed(self, event: Any) -> None:
        if self._is_ours(event.value):
            self._gone.start()

    def _make_again(self) -> None:
        """Drop the watch of a layer that was deleted; make it again if it was edited."""
        session, scene = self._session, self._scene
        gone = [
            side for side, watch in self._watches.items() if watch.layer not in self._viewer.layers
        ]
        for side in gone:
            watch = self._watches.pop(side)
            self.history.remove_source(watch)
            watch.close()
            if session.is_drawn(side) and self._labels(side) is not None:
                scene.restore_objects(side, session.team)
                show_warning(
                    f"The layer '{watch.layer.name}' holds edits and was restored. Use Discard to "
                    "remove the edits."
                )
        if gone:
            self.watch()

    def _restore_missing(self) -> None:
        """Create layers again that the user deleted."""
        session, scene = self._session, self._scene
        for side in Side:
            missing = scene.object_layer(side, session.team) is None
            if missing and self._labels(side) is not None:
                scene.restore_objects(side, session.team)
                self.watch()

    def _why_not(self) -> str:
        labels = [self._labels(side) for side in Side]
        if any(at is not None and too_many_objects(at) for at in labels):
            return "This region has too many objects to edit (limit 65,534)."
        return (
            "There is nothing to edit here: choose a region with an annotation, and a team "
            "with a prediction."
        )

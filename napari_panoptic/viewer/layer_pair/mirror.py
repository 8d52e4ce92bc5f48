"""The user's layers as a session shows them, and how it follows their changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
from napari.layers import Layer
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.cohorts import comparison as arrays
from napari_panoptic.live.mends import Box
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.edits import IdWindow
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.layer_pair import sources
from napari_panoptic.viewer.layer_pair.sources import ChosenLayers, write_features
from napari_panoptic.viewer.layers.watch import box_around

LARGE_PX = 16_000_000
_MOST_IDS = np.iinfo(np.uint16).max


class Mirror:
    """The layers as they were read, and the pixels that may have changed since.

    Parameters
    ----------
    viewer
        The viewer.
    choice
        The layers.
    """

    def __init__(self, viewer: Any, choice: ChosenLayers) -> None:
        self._viewer, self._choice = viewer, choice
        #: Of the sides whose pixels are compared: those that the session has.
        self.pixels: dict[Layer, NDArray[Any]] = {}
        self._area: NDArray[np.bool_] | None = None
        self._slices: dict[Layer, tuple[int, ...]] = {}
        self._classes: dict[Layer, Mapping[int, str] | str] = {}
        self._scores: dict[Layer, Mapping[int, float]] = {}
        self._changed: dict[Layer, Box | None] = {}

    def read(
        self,
        choice: ChosenLayers,
        comparison: arrays.LabelsComparison | arrays.PointsComparison,
    ) -> None:
        """Take over layers that were read, which the session is about to show."""
        self._choice, self._slices = choice, self._slices_of(choice)
        self._changed.clear()
        if isinstance(comparison, arrays.PointsComparison):
            return
        sides = (comparison.reference, *comparison.predictions.values())
        self.pixels = {
            layer: np.array(side.array)
            for layer, side in zip(choice.sides, sides, strict=True)
            if not sources.is_large(layer, self._viewer)
        }
        self._classes = {layer: sources.classes_of(layer, choice) for layer in choice.sides}
        self._scores = {layer: sources.scores_of(layer) for layer in choice.sides}
        ambiguous = comparison.ambiguous
        self._area = None if ambiguous is None else np.asarray(ambiguous)

    def _slices_of(self, choice: ChosenLayers) -> dict[Layer, tuple[int, ...]]:
        return {layer: sources.slice_of(layer, self._viewer) for layer in choice.layers}

    def has_stepped(self) -> bool:
        """Return whether the viewer shows another slice of a layer.

        Raises
        ------
        PanopticError
            If it shows one that cannot be compared.
        """
        return self._slices_of(self._choice) != self._slices

    def has_other_classes(self, layer: Layer) -> bool:
        """Return whether a class or a score in the columns of a layer has changed."""
        same_classes = sources.classes_of(layer, self._choice) == self._classes.get(layer)
        return not same_classes or sources.scores_of(layer) != self._scores.get(layer)

    def note(self, layer: Layer, box: Box | None) -> bool:
        """Note that pixels of a layer may have changed; return False if it is not compared."""
        is_area = layer is self._choice.ambiguous and self.pixels
        if layer not in self.pixels and not is_area:
            return False
        noted = self._changed.get(layer, box)
        self._changed[layer] = None if box is None or noted is None else box_around(noted, box)
        return True

    def is_slow(self, layer: Layer) -> bool:
        """Return whether comparing a layer takes long."""
        largest = max(pixels.size for pixels in self.pixels.values())
        return largest > LARGE_PX or sources.is_lazy(layer)

    def forget_absent(self, layers: Collection[Layer]) -> None:
        """No longer compare layers that are not among some."""
        self.pixels = {layer: pixels for layer, pixels in self.pixels.items() if layer in layers}

    def restart(self, loaded: RegionSnapshot) -> None:
        """Compare all pixels again: the session shows its files."""
        for layer in self.pixels:
            labels = self._labels(layer, loaded)
            if labels is not None:
                ids = _ids_of(labels, np.s_[:, :])
                self.pixels[layer] = ids.astype(self.pixels[layer].dtype)
                self._changed[layer] = None
        if self._choice.ambiguous is not None:
            self._area = loaded.ambiguous
            self._changed[self._choice.ambiguous] = None

    def take_changes(self, session: Session, taken: Callable[[Layer], object]) -> None:
        """Let a session follow the changes; report each side that has changed.

        Raises
        ------
        PanopticError, ValueError
            If a change is more than an edit can be.
        """
        waiting, self._changed = self._changed, {}
        for layer, box in waiting.items():
            if layer is self._choice.ambiguous:
                self._take_area(session)
            elif layer in self.pixels and self._take(layer, box, session):
                taken(layer)

    def _take(self, layer: Layer, box: Box | None, session: Session) -> bool:
        """Follow one layer, within a box if that is known; return whether it has changed."""
        before = self.pixels[layer]
        now = sources.labels_of(layer, self._viewer, before.shape)
        part = _difference(before, now, box)
        if part is None:
            return False
        labels = None if session.snapshot is None else self._labels(layer, session.snapshot)
        if labels is None:
            raise PanopticError("there is no working copy")
        # Pixels beside those that changed stay, also where the user drew on the desk's copy.
        ids = np.where(before[part] != now[part], now[part], _ids_of(labels, part))
        team = self._choice.teams.get(layer)
        for window in _windows(ids.astype(np.int64), (part[0].start, part[1].start)):
            session.mirror_window(
                Side.REFERENCE if team is None else Side.PREDICTION,
                window,
                team=team,
                classes=self._class_names(layer, window.ids.tolist(), labels),
            )
        before[part] = now[part]
        return True

    def _class_names(self, layer: Layer, ids: list[int], labels: LabelImage) -> dict[int, str]:
        """Return the classes of ids as the cohort spells them."""
        classes = self._classes.get(layer, "")
        spelt = {name.casefold(): name for name in labels.class_names}
        named = {id_: sources.class_of(classes, id_) for id_ in ids if id_}
        return {id_: spelt.get(name.casefold(), name) for id_, name in named.items()}

    def _take_area(self, session: Session) -> None:
        shape = next(iter(self.pixels.values())).shape
        now = sources.ambiguous_of(self._choice, self._viewer, shape)
        if now is None or (self._area is not None and np.array_equal(now, self._area)):
            return
        self._area = now
        session.set_ambiguous(now, is_mirrored=True)

    def _labels(self, layer: Layer, snapshot: RegionSnapshot) -> LabelImage | None:
        """Return the objects of a layer as a snapshot has them."""
        team = self._choice.teams.get(layer)
        return snapshot.reference if team is None else snapshot.predictions.get(team)


def write_results(choice: ChosenLayers, session: Session, present: Collection[Layer]) -> None:
    """Write each team's results to its layer, those of the current team to the reference."""
    snapshot = session.snapshot
    if snapshot is None:
        return
    sides = [(layer, team, Side.PREDICTION) for layer, team in choice.teams.items()]
    for layer, team, side in (*sides, (choice.reference, session.team, Side.REFERENCE)):
        evaluation = snapshot.result(team)
        if evaluation is not None and layer in present:
            write_features(layer, evaluation.objects, side)


def _ids_of(labels: LabelImage, part: Any) -> NDArray[np.int64]:
    """Return the id of each pixel of a part, 0 for background."""
    ids: NDArray[np.int64] = np.concatenate([[0], labels.ids])[labels.index[part]]
    return ids


def _difference(
    before: NDArray[Any], now: NDArray[Any], box: Box | None
) -> tuple[slice, slice] | None:
    """Return the window of a box in which two label arrays differ; None if they are equal."""
    height, width = before.shape
    y0, x0, y1, x1 = box or (0, 0, height, width)
    y0, x0, y1, x1 = max(y0, 0), max(x0, 0), min(y1, height), min(x1, width)
    changed = before[y0:y1, x0:x1] != now[y0:y1, x0:x1]
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

"""Compare layers that are open in napari: the shortest way into the program.

The layers chosen are written as a small cohort into a temporary folder, and the desk opens on it.
From then on the layers are watched: what changes in them is handed to the session as an edit. They
are never changed themselves, but for the columns of results in their features.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import napari
import numpy as np
import pandas as pd
from magicgui.widgets import ComboBox, Container, FileEdit, Label, PushButton, Select
from napari.layers import Image, Labels, Layer, Shapes
from numpy.typing import NDArray
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QFileDialog

from napari_panoptic.errors import LabelError, PanopticError, english_list
from napari_panoptic.evaluation.live import IdWindow
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.io import comparison as arrays
from napari_panoptic.io.label_images import read_sidecar
from napari_panoptic.io.pair import ONLY_CLASS, REFERENCE_WORDS
from napari_panoptic.regions import ClassScheme
from napari_panoptic.session import Session
from napari_panoptic.viewer.opening import read_folder, show_in
from napari_panoptic.viewer.owned import is_own
from napari_panoptic.viewer.shown import show_error, show_info
from napari_panoptic.viewer.widgets.desk import Desk, desk_in
from napari_panoptic.viewer.widgets.docks import unwrapped

FOLLOW_MS = 33
"""How long after a change of a layer it is compared with what was seen last."""
REST_MS = 150
"""The same for large layers, and for all that builds the comparison anew."""
LARGE_PX = 16_000_000
FEATURES_MS = 200
"""How long after the last change results are written to the layers' features."""
ONE_CLASS = "one class"
TABLE_FILE = "a table file"
RESULTS = ("status", "cause", "class", "partner", "iou", "hausdorff")
"""Columns of results in the features of the layers."""
TWO_D = "The program compares 2-D images; of stacks it compares the slice that is shown."


@dataclass(frozen=True, eq=False)
class Choice:
    """The layers to compare.

    Parameters
    ----------
    reference
        The annotation: Labels or Shapes.
    predictions
        The predictions: Labels or Shapes.
    image
        The image, or None.
    ambiguous
        Labels or Shapes of the area where nothing is scored, or None.
    class_column
        Column of the layers' features with the class of each object; None for
        one class.
    class_table
        A CSV or JSON table of id and class in place of the column.
    """

    reference: Layer
    predictions: tuple[Layer, ...]
    image: Layer | None = None
    ambiguous: Layer | None = None
    class_column: str | None = None
    class_table: Path | None = None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer, the reference first."""
        others = (self.image, self.ambiguous)
        return (self.reference, *self.predictions, *(each for each in others if each is not None))


def arrays_of(choice: Choice, viewer: Any) -> arrays.Comparison:
    """Take the slice that is shown of each layer.

    Raises
    ------
    PanopticError
        In one sentence, for layers that do not lie over one another.
    """
    if not choice.predictions:
        raise PanopticError("Choose at least one layer with predictions.")
    if choice.reference in choice.predictions:
        raise PanopticError(
            f"'{choice.reference.name}' is chosen as reference and as prediction; choose it once."
        )
    shape = _shape_of(choice, viewer)
    for layer in choice.layers[1:]:
        _check_placement(choice.reference, layer)
    table = _read_table(choice.class_table)
    sides = {
        layer: arrays.Labels(_labels_of(layer, viewer, shape), _classes_of(layer, choice, table))
        for layer in (choice.reference, *choice.predictions)
    }
    ambiguous = None
    if choice.ambiguous is not None:
        ambiguous = np.asarray(_labels_of(choice.ambiguous, viewer, shape)) > 0
    units = {str(unit) for unit in choice.reference.units[-2:]}
    scale = choice.reference.scale[-2:]
    is_um = units <= {"micrometer", "um", "µm"} and bool(units) and scale[0] == scale[1]
    return arrays.Comparison(
        sides[choice.reference],
        {layer.name: sides[layer] for layer in choice.predictions},
        image=None if choice.image is None else _image_of(choice.image, viewer),
        ambiguous=ambiguous,
        mpp=float(scale[0]) if is_um else None,
        name=f"{choice.reference.name} / {english_list([p.name for p in choice.predictions])}",
    )


def _plane(layer: Layer, viewer: Any, *, channels: int = 0) -> Any:
    """Return the 2-D slice of a layer's data that is shown."""
    data = layer.data[0] if getattr(layer, "multiscale", False) else layer.data
    depth = data.ndim - channels - 2
    if depth <= 0:
        return data
    if tuple(viewer.dims.order[-2:]) != tuple(sorted(viewer.dims.order))[-2:]:
        raise PanopticError(
            f"'{layer.name}' has {data.ndim} axes and is shown from another side; show the last "
            f"two axes. {TWO_D}"
        )
    step = viewer.dims.current_step[-(depth + 2) : -2]
    sizes = data.shape[:depth]
    at = tuple(min(max(int(s), 0), size - 1) for s, size in zip(step, sizes, strict=True))
    return data[at]


def _shape_of(choice: Choice, viewer: Any) -> tuple[int, int]:
    """Return height and width of what is compared; shapes have none of their own."""
    for layer in choice.layers:
        if isinstance(layer, Labels):
            return tuple(_plane(layer, viewer).shape)  # type: ignore[return-value]
        if isinstance(layer, Image):
            plane = _plane(layer, viewer, channels=int(layer.rgb))
            return tuple(plane.shape[:2])  # type: ignore[return-value]
    raise PanopticError("Shapes do not tell the size of the image; choose the image, too.")


def _labels_of(layer: Layer, viewer: Any, shape: tuple[int, int]) -> Any:
    """Return the objects of a layer as a label array."""
    if isinstance(layer, Labels):
        found = _plane(layer, viewer)
        if tuple(found.shape) != shape:
            raise PanopticError(
                f"'{layer.name}' has {found.shape[0]} x {found.shape[1]} px and the others "
                f"{shape[0]} x {shape[1]}; crop or resample one of them."
            )
        return found
    if isinstance(layer, Shapes):
        return np.asarray(layer.to_labels(labels_shape=shape))
    raise PanopticError(
        f"'{layer.name}' has points; outlines are needed. Points are compared with points as a "
        "cohort of detections (docs/detections.md)."
    )


def _image_of(layer: Layer, viewer: Any) -> Any:
    plane = _plane(layer, viewer, channels=int(layer.rgb))
    return np.asarray(plane)


def _check_placement(reference: Layer, layer: Layer) -> None:
    """Check that two layers lie over one another, pixel by pixel.

    Raises
    ------
    PanopticError
        Naming the first difference and the remedy.
    """
    for name in ("scale", "translate", "rotate", "shear"):
        one = np.atleast_1d(np.asarray(getattr(reference, name), float))
        other = np.atleast_1d(np.asarray(getattr(layer, name), float))
        if one.ndim == 2:
            one, other = one[-2:, -2:], other[-2:, -2:]
        elif name in ("scale", "translate"):
            one, other = one[-2:], other[-2:]
        if one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=1e-12):
            continue
        raise PanopticError(
            f"'{layer.name}' and '{reference.name}' differ in {name} ({_text(other)} and "
            f"{_text(one)}); give both the same {name}, and resample one of them if its pixels "
            "are larger."
        )


def _text(values: NDArray[Any]) -> str:
    return ", ".join(f"{value:g}" for value in values.ravel())


def _read_table(path: Path | None) -> Mapping[int, str] | None:
    if path is None:
        return None
    return read_sidecar(path, ClassScheme((ONLY_CLASS,), ((255, 0, 0),)))


def _classes_of(layer: Layer, choice: Choice, table: Mapping[int, str] | None) -> arrays.Classes:
    """Return id -> class of a layer's objects, or the one class of all."""
    if table is not None:
        return _Defaulting(table)
    column = choice.class_column
    features = layer.features
    if column is None or column not in features:
        return ONLY_CLASS
    ids = features["index"] if "index" in features else _positions(layer, len(features))
    named = zip(ids, features[column], strict=True)
    return _Defaulting({int(id_): str(name) for id_, name in named if not pd.isna(name)})


class _Defaulting(dict[int, str]):
    """Objects that a table does not name have the class `ONLY_CLASS`."""

    def get(self, key: int, default: Any = None) -> Any:
        return super().get(key, ONLY_CLASS if default is None else default)


def _positions(layer: Layer, n: int) -> range:
    """Return the ids that rows without an index stand for."""
    return range(1, n + 1) if isinstance(layer, Shapes) else range(n)


class LiveComparison:
    """Layers of the user's on the desk, followed as they change.

    Parameters
    ----------
    viewer
        The viewer.
    choice
        The layers.
    """

    def __init__(self, viewer: napari.Viewer, choice: Choice) -> None:
        self._viewer = unwrapped(viewer)
        self._choice = choice
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._desk: Desk | None = None
        self._session: Session | None = None
        self._seen: dict[Layer, NDArray[Any]] = {}
        self._changed: set[Layer] = set()
        self._is_writing = False
        self._follow = _timer(FOLLOW_MS, self._take_changes)
        self._again = _timer(REST_MS, self._rebuild)
        self._features = _timer(FEATURES_MS, self._write_features)
        self._connections: list[tuple[Any, Callable[..., Any]]] = []

    def start(self) -> bool:
        """Open the desk; False where the user keeps what is open.

        Raises
        ------
        PanopticError
            Where the layers cannot be compared.
        """
        self._folder = tempfile.TemporaryDirectory(
            prefix="napari-panoptic-", ignore_cleanup_errors=True
        )
        if not self._open():
            self._folder.cleanup()
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
        return arrays_of(self._choice, self._viewer).write(folder)

    def close(self) -> None:
        """Let go of the layers; results stay in their features."""
        for emitter, slot in self._connections:
            emitter.disconnect(slot)
        self._connections = []
        for timer in (self._follow, self._again, self._features):
            timer.stop()
        self._seen = {}
        self._desk = self._session = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # --- opening ------------------------------------------------------------------------------

    def _open(self) -> bool:
        """Write the layers as they are, and show them; True where they are shown."""
        found = arrays_of(self._choice, self._viewer)
        if self._folder is None:
            return False
        place = Path(tempfile.mkdtemp(dir=self._folder.name))
        opened = read_folder(found.write(place))
        before = self._session
        if show_in(self._viewer, opened) is None:
            return False
        self._desk = desk_in(self._viewer)
        self._session = None if self._desk is None else self._desk.session
        if before is not None and self._session is not None:
            self._session.request(settings=before.settings)
        self._seen = {
            layer: np.array(side.array)
            for layer, side in zip(
                (self._choice.reference, *self._choice.predictions),
                (found.reference, *found.predictions.values()),
                strict=True,
            )
            if isinstance(side.array, np.ndarray)
        }
        return True

    def _rebuild(self) -> None:
        """Compare the layers anew: another slice, another size, another name."""
        if not self._is_alive():
            return
        try:
            self._drop_session()
            if self._open():
                self._listen_to_session()
        except (PanopticError, LabelError) as error:
            show_error(str(error))

    # --- listening ----------------------------------------------------------------------------

    def _connect(self) -> None:
        layers = self._viewer.layers.events
        self._listen(layers.removed, self._on_removed)
        self._listen(self._viewer.dims.events.current_step, self._on_step)
        for layer in self._choice.layers:
            events = layer.events
            names = ("data", "set_data", "paint", "labels_update")
            for emitter in (getattr(events, name, None) for name in names):
                if emitter is not None:
                    self._listen(emitter, lambda _event, layer=layer: self._on_changed(layer))
            self._listen(events.name, self._on_renamed)
        self._listen_to_session()

    def _listen_to_session(self) -> None:
        session = self._session
        if session is None:
            return
        for signal in (session.region_changed, session.edited, session.settings_changed):
            self._listen(signal, self._on_results)
        self._listen(session.team_changed, self._on_team)
        if self._desk is not None:
            self._listen(self._desk.closed, self.close)

    def _drop_session(self) -> None:
        session = self._session
        if session is None:
            return
        own = (session.region_changed, session.edited, session.settings_changed)
        of_session = (*own, session.team_changed)
        kept = []
        for emitter, slot in self._connections:
            is_old = any(emitter is each for each in of_session)
            is_old |= self._desk is not None and emitter is self._desk.closed
            if is_old:
                emitter.disconnect(slot)
            else:
                kept.append((emitter, slot))
        self._connections = kept

    def _listen(self, emitter: Any, slot: Callable[..., Any]) -> None:
        emitter.connect(slot)
        self._connections.append((emitter, slot))

    def _is_alive(self) -> bool:
        """Whether the desk still shows this comparison; lets go where it does not."""
        if self._desk is not None and self._desk.session is self._session is not None:
            return True
        self.close()
        return False

    def _on_changed(self, layer: Layer) -> None:
        if self._is_writing or not self._is_alive():
            return
        if layer not in self._seen:
            if layer is not self._choice.image:
                self._again.start()
            return
        self._changed.add(layer)
        self._follow.setInterval(REST_MS if self._seen[layer].size > LARGE_PX else FOLLOW_MS)
        if not self._follow.isActive():
            self._follow.start()

    def _on_step(self, _event: Any = None) -> None:
        if any(layer.ndim - int(getattr(layer, "rgb", False)) > 2 for layer in self._choice.layers):
            self._again.start()

    def _on_renamed(self, _event: Any = None) -> None:
        self._again.start()

    def _on_removed(self, event: Any) -> None:
        layer = event.value
        if layer not in self._choice.layers or not self._is_alive():
            return
        predictions = tuple(each for each in self._choice.predictions if each is not layer)
        if layer is self._choice.reference or not predictions:
            show_info(
                f"The layer '{layer.name}' was removed: the results are those of its last state."
            )
            self._seen.pop(layer, None)
            return
        show_info(f"The layer '{layer.name}' was removed from the comparison.")
        self._choice = replace(
            self._choice,
            predictions=predictions,
            image=None if layer is self._choice.image else self._choice.image,
            ambiguous=None if layer is self._choice.ambiguous else self._choice.ambiguous,
        )
        self._again.start()

    def _on_results(self, *_: Any) -> None:
        self._features.start()

    def _on_team(self, *_: Any) -> None:
        self._changed |= set(self._seen) - {self._choice.reference}
        self._follow.start()
        self._features.start()

    # --- following ----------------------------------------------------------------------------

    def _take_changes(self) -> None:
        """Hand what has changed in the layers to the session."""
        if not self._is_alive() or self._session is None:
            return
        session = self._session
        if session.snapshot is None:  # still loading: look again later
            self._follow.start()
            return
        waiting, self._changed = self._changed, set()
        for layer in waiting:
            is_reference = layer is self._choice.reference
            if not is_reference and layer.name != session.team:
                continue  # taken when the team is looked at
            try:
                shape = self._seen[layer].shape
                now = np.asarray(_labels_of(layer, self._viewer, shape))
                window, box = _difference(self._seen[layer], now)
                if window is None:
                    continue
                side = Side.REFERENCE if is_reference else Side.PREDICTION
                classes = _classes_of(layer, self._choice, _read_table(self._choice.class_table))
                named = {
                    int(id_): classes if isinstance(classes, str) else classes.get(int(id_))
                    for id_ in window.ids.tolist()
                    if id_
                }
                session.edit_window(side, window, classes=named)
                self._seen[layer][box] = now[box]
            except (PanopticError, ValueError):
                self._again.start()
                return

    def _write_features(self) -> None:
        """Write each team's results to its layer, those of the current team to the reference."""
        if not self._is_alive() or self._session is None or self._session.snapshot is None:
            return
        snapshot, team = self._session.snapshot, self._session.team
        self._is_writing = True
        try:
            for layer in self._choice.predictions:
                if (found := snapshot.evaluations.get(layer.name)) is not None:
                    write_features(layer, found.objects, Side.PREDICTION)
            if (found := snapshot.evaluations.get(team or "")) is not None:
                write_features(self._choice.reference, found.objects, Side.REFERENCE)
        finally:
            self._is_writing = False


def _difference(
    seen: NDArray[Any], now: NDArray[Any]
) -> tuple[IdWindow | None, tuple[slice, slice]]:
    """Find what differs between two label arrays of one shape."""
    changed = seen != now
    rows = np.flatnonzero(changed.any(axis=1))
    if not len(rows):
        return None, np.s_[0:0, 0:0]
    columns = np.flatnonzero(changed[rows[0] : rows[-1] + 1].any(axis=0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    ids, numbers = np.unique(now[box], return_inverse=True)
    if len(ids) > np.iinfo(np.uint16).max:
        raise PanopticError("too many objects changed at once")
    numbers = numbers.reshape(now[box].shape).astype(np.uint16)
    corner = int(rows[0]), int(columns[0])
    return IdWindow(corner, numbers, ids.astype(np.int64)), box


def write_features(layer: Layer, objects: pd.DataFrame, side: Side) -> None:
    """Write the results of objects to a layer's features, beside the user's own columns.

    Parameters
    ----------
    layer
        Labels, by whose values objects are found, or Shapes.
    objects
        The objects of an evaluation.
    side
        On which side the layer's objects are.
    """
    own = objects[objects["side"] == str(side)].set_index("id")
    results = pd.DataFrame(
        {
            "status": own["status"],
            "cause": own["cause"],
            "class": own["class"],
            "partner": own["partner_id"],
            "iou": own["iou"],
            "hausdorff": own["hausdorff_px"],
        }
    )
    features = layer.features.drop(columns=[c for c in RESULTS if c in layer.features])
    if isinstance(layer, Shapes):
        placed = results.reindex(range(1, len(layer.data) + 1)).reset_index(drop=True)
        layer.features = pd.concat([features.reset_index(drop=True), placed], axis=1)
        return
    if "index" not in features:
        features = features.assign(index=range(len(features)))
    known = features.set_index("index")
    everything = known.index.union(results.index).union([0])
    merged = known.reindex(everything).join(results)
    layer.features = merged.rename_axis("index").reset_index()


def _timer(interval: int, slot: Callable[[], None]) -> QTimer:
    timer = QTimer()
    timer.setSingleShot(True)
    timer.setInterval(interval)
    timer.timeout.connect(slot)
    return timer


class CompareLayers(Container[Any]):
    """The dock in which layers are chosen.

    Parameters
    ----------
    viewer
        The viewer whose layers are compared.
    """

    def __init__(self, viewer: napari.Viewer | None = None) -> None:
        self._viewer = unwrapped(viewer or napari.current_viewer())
        self._live: LiveComparison | None = None
        self.reference = ComboBox(label="Reference", choices=self._objects)
        self.predictions = Select(label="Predictions", choices=self._objects)
        self.image = ComboBox(label="Image", choices=self._images, nullable=True)
        self.ambiguous = ComboBox(label="Ambiguous", choices=self._objects, nullable=True)
        self.classes = ComboBox(label="Classes", choices=self._class_sources)
        self.table = FileEdit(label="Table", filter="Tables (*.csv *.json)", visible=False)
        self.compare = PushButton(text="Compare")
        self.save = PushButton(text="Save as cohort…", enabled=False)
        self.message = Label(value="")
        super().__init__(
            widgets=[
                *(self.reference, self.predictions, self.image, self.ambiguous),
                *(self.classes, self.table, self.compare, self.save, self.message),
            ],
            labels=True,
        )
        self.compare.changed.connect(self._on_compare)
        self.save.changed.connect(self._on_save)
        self.classes.changed.connect(self._on_classes)
        self.reference.changed.connect(lambda _layer: self.classes.reset_choices())
        if self._viewer is not None:
            self._guess()
            for events in (self._viewer.layers.events.inserted, self._viewer.layers.events.removed):
                events.connect(self._on_layers)
        self._say(TWO_D)

    # --- choices ------------------------------------------------------------------------------

    def _objects(self, _widget: Any = None) -> list[tuple[str, Layer]]:
        return self._of(Labels, Shapes)

    def _images(self, _widget: Any = None) -> list[tuple[str, Layer]]:
        return self._of(Image)

    def _of(self, *kinds: type[Layer]) -> list[tuple[str, Layer]]:
        """List the user's layers of some kinds, the uppermost first."""
        if self._viewer is None:
            return []
        return [
            (layer.name, layer)
            for layer in reversed(self._viewer.layers)
            if isinstance(layer, kinds) and not is_own(layer)
        ]

    def _class_sources(self, _widget: Any = None) -> list[str]:
        layer = self.reference.value if hasattr(self, "reference") else None
        columns = [] if layer is None else [str(c) for c in layer.features.columns]
        return [ONE_CLASS, *(c for c in columns if c not in ("index", *RESULTS)), TABLE_FILE]

    def _guess(self) -> None:
        """Choose what is likely: the reference by its name, all other labels as predictions."""
        layers = [layer for _, layer in self._objects() if isinstance(layer, Labels)]
        named = [layer for layer in layers if _sounds_like_a_reference(layer.name)]
        # The lowest layer was opened first.
        reference = (named or layers[::-1] or [None])[0]
        if reference is None:
            return
        self.reference.value = reference
        self.predictions.value = [
            layer
            for layer in layers
            if layer is not reference and layer.data.shape[-2:] == reference.data.shape[-2:]
        ]
        images = [
            image
            for _, image in self._images()
            if image.data.shape[: image.data.ndim - int(image.rgb)][-2:]
            == reference.data.shape[-2:]
        ]
        if images:
            self.image.value = images[-1]

    def _on_layers(self, _event: Any = None) -> None:
        had_none = not self.reference.choices
        self.reset_choices()
        if had_none:
            self._guess()

    def _on_classes(self, value: Any) -> None:
        self.table.visible = value == TABLE_FILE

    # --- buttons ------------------------------------------------------------------------------

    def _choice(self) -> Choice:
        if self.reference.value is None:
            raise PanopticError("Open an annotation and a prediction as Labels layers first.")
        source = self.classes.value
        return Choice(
            self.reference.value,
            tuple(self.predictions.value),
            self.image.value,
            self.ambiguous.value,
            class_column=None if source in (ONE_CLASS, TABLE_FILE) else source,
            class_table=Path(self.table.value) if source == TABLE_FILE else None,
        )

    def _on_compare(self) -> None:
        try:
            live = LiveComparison(self._viewer, self._choice())
            if not live.start():
                return
        except (PanopticError, LabelError) as error:
            self._say(str(error))
            return
        if self._live is not None:
            self._live.close()
        self._live = live
        self.save.enabled = True
        self._say("The results follow the layers as they change.")

    def _on_save(self) -> None:
        folder = ask_for_new_folder(self.native)
        if folder is None or self._live is None:
            return
        try:
            self._live.save(folder)
        except (PanopticError, LabelError) as error:
            self._say(str(error))
        else:
            self._say(f"Saved to {folder}. Open it with Open cohort….")

    def _say(self, text: str) -> None:
        self.message.value = text


def _sounds_like_a_reference(name: str) -> bool:
    return any(word in name.casefold() for word in REFERENCE_WORDS[:8])


def ask_for_new_folder(parent: Any) -> Path | None:
    """Ask for the folder of a new cohort; None where the user cancels."""
    path, _ = QFileDialog.getSaveFileName(parent, "Save the comparison as a cohort folder")
    return Path(path) if path else None

"""Compare layers that are open in napari: the dock in which they are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import napari
from magicgui.widgets import ComboBox, Container, FileEdit, Label, PushButton, Select
from napari.layers import Image, Labels, Layer, Points, Shapes
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_panoptic.common.errors import LabelError, PanopticError
from napari_panoptic.io.cohorts.pair import REFERENCE_WORDS
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.layouts import ShrinkingPanel
from napari_panoptic.viewer.kit.napari_private import unwrapped
from napari_panoptic.viewer.kit.questions import file_to_save
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import dock_of
from napari_panoptic.viewer.layer_pair.live import LiveComparison
from napari_panoptic.viewer.layer_pair.sources import TWO_D, ChosenLayers, own_columns
from napari_panoptic.viewer.layers.owned import is_own

ONE_CLASS = "one class"
TABLE_FILE = "a table file"
TAB = "Compared layers"
ROWS = 5
"""How many rows of the list of predictions are seen at a time."""
ROW_PX = 20
LEAST_PX = 120
"""The height that the dock insists on."""
FOLLOWS = "The results follow the layers as they change."


class CompareLayers(Container[Any]):  # type: ignore[misc]
    """The dock in which layers are chosen.

    Parameters
    ----------
    viewer
        The viewer whose layers are compared.
    """

    _area: ShrinkingPanel | None = None

    def __init__(self, viewer: napari.Viewer | None = None) -> None:
        self._viewer = unwrapped(viewer or napari.current_viewer())
        self._live: LiveComparison | None = None
        self._is_chosen_by_user = False
        self._filling = Within()  # nothing of this is a choice of the user's
        self.reference = ComboBox(label="Reference", choices=self._objects)
        self.predictions = Select(label="Predictions", choices=self._objects)
        self.image = ComboBox(label="Image", choices=self._images, nullable=True)
        self.ambiguous = ComboBox(label="Ambiguous", choices=self._areas, nullable=True)
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
        self._set_tooltips()
        rows = self.predictions.native
        rows.setFixedHeight(ROWS * ROW_PX + 2 * rows.frameWidth())
        rows.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        text = self.message.native
        text.setWordWrap(True)
        text.setTextFormat(Qt.TextFormat.PlainText)
        self.compare.changed.connect(self._on_compare)
        self.save.changed.connect(self._on_save)
        self.classes.changed.connect(self._on_classes)
        self.reference.changed.connect(self._on_chosen)
        self.predictions.changed.connect(self._on_chosen)
        self._emitters: list[Any] = []
        if self._viewer is not None:
            events = self._viewer.layers.events
            self._emitters = [events.inserted, events.removed, events.renamed]
            for emitter in self._emitters:
                emitter.connect(self._on_layers)
            self.native.destroyed.connect(self._let_go)
            self._guess()
        self._say(TWO_D)

    @property
    def native(self) -> QWidget:
        """The widget that napari docks: the rows, which scroll in a low window."""
        if self._area is None:
            self._area = ShrinkingPanel(super().native, LEAST_PX)
        return self._area

    @property
    def live(self) -> LiveComparison | None:
        """The comparison that was opened last."""
        return self._live

    def _set_tooltips(self) -> None:
        for widget, text in (
            (self.reference, "Layer with the annotation: Labels, Shapes or Points"),
            (self.predictions, "Layers with predictions, one or more (Ctrl+click)"),
            (self.image, "Image below the results, if any"),
            (self.ambiguous, "Labels or Shapes of the area where nothing is scored, if any"),
            (self.classes, "Where the class of each object is stated"),
            (self.table, "CSV or JSON table of id and class, for all layers"),
            (self.compare, "Open all panels for these layers"),
            (self.save, "Write the comparison to a folder that can be opened again"),
        ):
            widget.tooltip = text

    # --- choices ------------------------------------------------------------------------------

    def _objects(self, _widget: Any = None) -> list[tuple[str, Layer]]:
        return self._of(Labels, Shapes, Points)

    def _areas(self, _widget: Any = None) -> list[tuple[str, Layer]]:
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
        columns = [] if layer is None else own_columns(layer)
        return [ONE_CLASS, *(name for name in columns if name != "index"), TABLE_FILE]

    def _guess(self) -> None:
        """Choose likely layers: the reference by its name, all others as predictions."""
        layers = [layer for _, layer in self._objects()]
        for kind in (Labels, Points, Shapes):
            of_kind = [layer for layer in layers if isinstance(layer, kind)]
            if of_kind:
                break
        else:
            return
        named = [layer for layer in of_kind if _sounds_like_a_reference(layer.name)]
        # The lowest layer was opened first.
        reference = (named or of_kind[::-1])[0]
        size = _size_of(reference)
        with self._filling:
            self.reference.value = reference
            self.predictions.value = [
                layer for layer in of_kind if layer is not reference and _size_of(layer) == size
            ]
            images = [image for _, image in self._images() if size in (None, _size_of(image))]
            if images:
                self.image.value = images[-1]
            self.classes.reset_choices()

    def _on_layers(self, _event: Any = None) -> None:
        with self._filling:
            self.reset_choices()
            if not self._is_chosen_by_user:
                self._guess()

    def _on_chosen(self, _value: Any = None) -> None:
        if not self._filling:
            self._is_chosen_by_user = True
            self.classes.reset_choices()

    def _on_classes(self, value: Any) -> None:
        self.table.visible = value == TABLE_FILE

    # --- buttons ------------------------------------------------------------------------------

    def _choice(self) -> ChosenLayers:
        if self.reference.value is None:
            raise PanopticError("Open an annotation and a prediction as Labels layers first.")
        source = self.classes.value
        is_table = source == TABLE_FILE
        if is_table and not Path(self.table.value).is_file():
            raise PanopticError("Choose the table with the class of each object.")
        return ChosenLayers(
            self.reference.value,
            tuple(self.predictions.value),
            self.image.value,
            self.ambiguous.value,
            class_column=None if source == ONE_CLASS or is_table else source,
            class_table=Path(self.table.value) if is_table else None,
        )

    def _on_compare(self) -> None:
        self._say("")
        try:
            live = LiveComparison(self._viewer, self._choice(), self._tell, self._put_behind)
            with self._out_of_the_way():
                if not live.start(self._live):
                    return
                if self._live is not None:
                    self._live.close()
                self._live = live
                self._put_behind()
        except (PanopticError, LabelError, ValueError) as error:
            self._say(_in_one_line(error))
            return
        self._is_chosen_by_user = True
        self.save.enabled = True
        if not self.message.value:
            self._say(FOLLOWS)

    @contextmanager
    def _out_of_the_way(self) -> Iterator[None]:
        """Hide this dock until it is a tab: beside all panels it needs too much room."""
        dock = dock_of(self.native)
        if dock is None or dock.isFloating() or dock.isHidden():
            yield
            return
        dock.hide()
        try:
            yield
        finally:
            dock.show()

    def _put_behind(self) -> None:
        """Make room for the desk: this dock becomes one of the tabs of its panels."""
        dock = dock_of(self.native)
        if self._live is not None and self._live.desk is not None and dock is not None:
            dock.setWindowTitle(TAB)  # the tabs of the panels have little room
            self._live.desk.tab_behind(dock)

    def _on_save(self) -> None:
        folder = ask_for_new_folder(self.native)
        if folder is None or self._live is None:
            return
        try:
            self._live.save(folder)
        except (PanopticError, LabelError, ValueError) as error:
            self._say(_in_one_line(error))
        else:
            self._say(f"Saved to {folder}. Open it with Open cohort….")

    def _tell(self, text: str) -> None:
        self._say(text or FOLLOWS)

    def _say(self, text: str) -> None:
        self.message.value = shown(text)

    def _let_go(self) -> None:
        """Stop listening, with the dock; a desk that is open goes on following its layers."""
        for emitter in self._emitters:
            emitter.disconnect(self._on_layers)
        self._emitters = []
        if self._live is not None:
            self._live.be_silent()
            self._live = None


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _size_of(layer: Any) -> tuple[int, ...] | None:
    """Return height and width of a layer with pixels."""
    if not isinstance(layer, (Labels, Image)):
        return None
    data = layer.data[0] if layer.multiscale else layer.data
    shape = data.shape[:-1] if getattr(layer, "rgb", False) else data.shape
    return tuple(shape[-2:])


def _sounds_like_a_reference(name: str) -> bool:
    return any(word in name.casefold() for word in REFERENCE_WORDS[:8])


def ask_for_new_folder(parent: Any) -> Path | None:
    """Ask for the folder of a new cohort; None if the user cancels."""
    return file_to_save(parent, "Save the comparison as a cohort folder", "", "")

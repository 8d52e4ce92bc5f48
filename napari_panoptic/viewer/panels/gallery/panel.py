"""The failure gallery: a crop of every failure, at one scale, grouped by cause."""

from __future__ import annotations

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QTimer
from qtpy.QtGui import QImage, QPaintEvent
from qtpy.QtWidgets import (
    QHBoxLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.nuclei.crops import FIELD_STEP_PX, CropSource, bounded_field_px
from napari_panoptic.nuclei.display import styles
from napari_panoptic.nuclei.display.describe import hover_html, object_facts
from napari_panoptic.nuclei.display.object_rows import ObjectFilter
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.nuclei.session import Selection
from napari_panoptic.nuclei.values.vocabulary import CAUSES, STATUSES, Cause, Side, Status
from napari_panoptic.viewer.kit.crop_picture import crop_picture
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.kit.widgets import ElidedLabel, is_in_sight
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.gallery.crop_grid import Caption, Contents, CropGrid, Group
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.part import Connections, DeskPart
from napari_panoptic.viewer.panels.slide_texts import on_slide

EDIT_REST_MS = 150
"""How long the hand rests before crops follow an edit."""
NO_COHORT = "No crops to show. Open a cohort, or choose a region and team with a prediction."
NO_FAILURES = "No failures here: nothing is FN, FP or misclassified. J goes to the next region."
ALL_HIDDEN = "None of the listed objects is a failure. Press “list all” to see every failure."
MISNAMED = "misclassified"


class GalleryPanel(QWidget):
    """The gallery, how many failures it shows, and how much around each."""

    all_wanted = Signal()
    came_into_sight = Signal()
    field_changed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = CropGrid()
        self._seen = QTimer(self)
        self._seen.setSingleShot(True)
        self._seen.setInterval(0)  # not while it is being painted
        self._seen.timeout.connect(self.came_into_sight.emit)
        self.hint = PlainLabel(NO_COHORT)
        self.hint.setWordWrap(True)
        self.line = ElidedLabel()
        self.everything = QToolButton()
        self.everything.setText("✕ list all")
        self.everything.setToolTip("Only some objects are listed: list all of them again.")
        self.closer, self.wider = QToolButton(), QToolButton()
        for button, text, tip, step in (
            (self.closer, "+", "Show less around each object, and the object larger.", -1),
            (self.wider, "−", "Show more around each object, and the object smaller.", 1),
        ):
            button.setText(text)
            button.setToolTip(f"{tip} Also Ctrl and the mouse wheel.")
            button.clicked.connect(lambda _=False, step=step: self.field_changed.emit(step))
        self.view.zoomed.connect(self.field_changed.emit)
        self.everything.clicked.connect(lambda _=False: self.all_wanted.emit())
        bar = QHBoxLayout()
        bar.setSpacing(3)
        bar.addWidget(self.line, 1)
        for button in (self.everything, self.wider, self.closer):
            bar.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(3)
        layout.addLayout(bar)
        layout.addWidget(self.hint)
        layout.addWidget(self.view, 1)
        self.setFocusProxy(self.view)

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802
        """Report that the panel is visible; Qt sends no other event when it comes to the front."""
        super().paintEvent(event)
        self._seen.start()

    def hint_text(self) -> str:
        """Return the hint; empty if there are crops."""
        return "" if self.hint.isHidden() else self.hint.text()


class GalleryPart(DeskPart):
    """Keeps the gallery in step with the object table: the same failures, in the same order."""

    title = "Failures"
    key = "g"
    follows_table = True

    def __init__(self) -> None:
        super().__init__()
        self._panel = GalleryPanel()
        self._source: CropSource | None = None
        self._field_px = FIELD_STEP_PX
        self._shown: tuple[int, str, str | None] | None = None
        self._is_stale = True
        self._rest = QTimer(self._panel)
        self._rest.setSingleShot(True)
        self._rest.setInterval(EDIT_REST_MS)
        self._rest.timeout.connect(self._panel.view.redraw_pictures)
        self._panel.came_into_sight.connect(self._on_sight)

    @property
    def widget(self) -> QWidget:
        """The panel itself; made once."""
        return self._panel

    @property
    def panel(self) -> GalleryPanel:
        """The same, by its own type."""
        return self._panel

    @property
    def field_px(self) -> int:
        """Width of every crop in the image."""
        return self._field_px

    @property
    def is_busy(self) -> bool:
        """Whether crops in sight are still to be drawn."""
        return self._panel.view.is_busy

    def connections(self, around: Surroundings) -> Connections:
        """Follow the table and the selection; emit where the user wants to go."""
        view = self._panel.view
        return [
            (around.link.panels.objects.listed_changed, self.refresh),
            (around.session.selection_changed, self._show_selection),
            (view.chosen, self._on_chosen),
            (view.wanted, self._on_wanted),
            (self._panel.all_wanted, self._on_all_wanted),
            (self._panel.field_changed, self._on_field_changed),
        ]

    def refresh(self) -> None:
        """Show the failures that the table lists, in its order; later if the gallery is hidden."""
        self._is_stale = not is_in_sight(self._panel)
        if self._is_stale:
            self._panel.view.let_go()
            return
        before, self._source = self._source, self._new_source()
        if self._source is None or self.around is None:
            self._panel.view.show_contents(Contents())
            snapshot = None if self.around is None else self.around.session.snapshot
            self._say(on_slide(snapshot, slide_texts.GALLERY, NO_COHORT), 0)
            return
        self._begin_anew_or_rest(before, self._source)
        groups = _groups(self._table)
        self._panel.view.show_contents(
            Contents(groups, self._caption, self._tooltip, self._draw, self._name)
        )
        count = sum(len(group.rows) for group in groups)
        hint = NO_FAILURES if self._table.model.filter.is_open else ALL_HIDDEN
        self._say("" if count else hint, count)
        self._show_selection(self.around.session.selection)

    def detach(self) -> None:
        """Leave a cohort: there is nothing to cut crops from any more."""
        super().detach()
        self._panel.view.let_go()
        self._source = None
        self._shown = None
        self._is_stale = True

    @property
    def _table(self) -> ObjectTable:
        if self.around is None:
            raise RuntimeError("a gallery is asked for crops only while it is attached")
        return self.around.link.panels.objects

    def _new_source(self) -> CropSource | None:
        if self.around is None:
            return None
        session, outcomes = self.around.session, self._table.outcomes
        snapshot = session.snapshot
        if snapshot is None or outcomes is None or snapshot.reference is None:
            return None
        prediction = snapshot.predictions.get(session.team or "")
        if prediction is None:
            return None
        return CropSource(snapshot.image, snapshot.reference, prediction, outcomes)

    def _begin_anew_or_rest(self, before: CropSource | None, now: CropSource) -> None:
        """Drop the pictures of another region or team; those of other outcomes follow soon.

        The scale stays within a region, whatever is listed.
        """
        if self.around is None or self.around.session.snapshot is None:
            return
        session = self.around.session
        shown = (id(session), self.around.session.snapshot.region.name, session.team)
        if self._shown is None or shown[:2] != self._shown[:2]:
            self._field_px = now.usual_field_px()
        if shown != self._shown:
            self._panel.view.forget_pictures()
        elif before is None or not _is_same(before, now):
            self._rest.start()
        self._shown = shown

    def _say(self, hint: str, count: int) -> None:
        panel = self._panel
        panel.hint.setText(hint)
        panel.hint.setVisible(bool(hint))
        panel.view.setVisible(not hint)
        is_open = self.around is None or self._table.model.filter.is_open
        panel.everything.setVisible(not is_open)
        for button in (panel.closer, panel.wider):
            button.setEnabled(count > 0)
        width = f"{self._field_px}{styles.THIN_SPACE}px"
        mpp = None if self._source is None else self._source.outcomes.mpp
        if mpp is not None:
            width = styles.length_text(self._field_px * mpp, "µm")
        plural = "" if count == 1 else "s"
        panel.line.set_text(
            f"{styles.count_text(count)} failure{plural} · each crop {width} wide" if count else "",
            tooltip="The failures that the object table lists, in its order within each cause.",
        )

    def _object(self, row: int) -> tuple[Side, int]:
        return self._table.model.rows.object_of(row)

    def _name(self, row: int) -> tuple[str, int]:
        side, at = self._object(row)
        return str(side), int(self._outcomes.side(side).ids[at])

    @property
    def _outcomes(self) -> Outcomes:
        if self._source is None:
            raise RuntimeError("a gallery without a region has no crops")
        return self._source.outcomes

    def _caption(self, row: int) -> Caption:
        side, at = self._object(row)
        own = self._outcomes.side(side)
        status = STATUSES[own.status[at]]
        word = "mis." if status is Status.MISCLASSIFIED else styles.STATUS_WORDS[status]
        name = self._outcomes.class_names[own.class_index[at] - 1]
        return Caption(
            (
                f"{word} {own.ids[at]} · {name}",
                self._taken_for(side, at) or f"IoU {styles.ratio_text(float(own.iou[at]))}",
            ),
            styles.STATUS_COLOURS[status],
        )

    def _taken_for(self, side: Side, at: int) -> str:
        partner = int(self._outcomes.side(side).partner[at])
        if partner == NO_PARTNER:
            return ""
        other = self._outcomes.other(side)
        return f"→ {self._outcomes.class_names[other.class_index[partner] - 1]}"

    def _tooltip(self, row: int) -> str:
        if self._source is None or self.around is None:
            return ""
        side, at = self._object(row)
        own = self._outcomes.side(side)
        labels = self._source.labels(side)
        places = np.flatnonzero(labels.ids == own.ids[at])
        if not len(places):
            return ""
        name = "reference" if side is Side.REFERENCE else self.around.session.team or ""
        facts = object_facts(labels, self._outcomes, side, at, side_name=name)
        return hover_html(facts)

    def _draw(self, row: int, size: int, per_point: float) -> QImage:
        side, at = self._object(row)
        if self._source is None:
            return QImage(size, size, QImage.Format.Format_RGB32)
        return crop_picture(
            self._source, side, at, field_px=self._field_px, size_px=size, per_point=per_point
        )

    def _show_selection(self, selection: Selection | None) -> None:
        if self._source is not None and not self._is_stale:
            self._panel.view.select(None if selection is None else self._row_of(selection))

    def _row_of(self, selection: Selection) -> int:
        """Find the crop of an object, or of its partner: a pair has one crop only."""
        rows = self._table.model.rows
        row = rows.row_of(selection.side, selection.row)
        if selection.row < len(self._outcomes.side(selection.side)):
            partner = int(self._outcomes.side(selection.side).partner[selection.row])
            if partner != NO_PARTNER and not self._panel.view.has(row):
                across = Side.PREDICTION if selection.side is Side.REFERENCE else Side.REFERENCE
                return rows.row_of(across, partner)
        return row

    def _on_sight(self) -> None:
        if self._is_stale and self.around is not None:
            self.refresh()

    def _on_chosen(self, row: int) -> None:
        if self.around is not None:
            self.around.session.select_row(*self._object(row))

    def _on_wanted(self, row: int) -> None:
        """Go there: select the object and bring it to the middle."""
        if self.around is None:
            return
        self.around.session.select_row(*self._object(row))
        selection = self.around.session.selection
        if selection is not None:
            self.around.link.scene.centre(selection)

    def _on_all_wanted(self) -> None:
        self._table.set_filter(ObjectFilter())

    def _on_field_changed(self, step: int) -> None:
        wanted = bounded_field_px(self._field_px + step * FIELD_STEP_PX)
        if wanted != self._field_px:
            self._field_px = wanted
            self._panel.view.redraw_pictures()
            self._say("", len(self._panel.view.rows))


def _groups(table: ObjectTable) -> list[Group]:
    """Group the listed failures by cause, the group of the worst one first."""
    failures = table.model.failures()
    causes = table.model.rows.values["cause"][failures].astype(np.intp)
    codes, firsts = np.unique(causes, return_index=True)
    return [
        Group(*_heading(CAUSES[int(code)]), failures[causes == code])
        for code in codes[np.argsort(firsts)]
    ]


def _heading(cause: Cause) -> tuple[str, str]:
    if cause is Cause.NONE:
        return MISNAMED, styles.STATUS_MEANINGS[Status.MISCLASSIFIED]
    return str(cause), styles.CAUSE_MEANINGS[cause]


def _is_same(one: CropSource, other: CropSource) -> bool:
    return (
        one.image is other.image
        and one.reference is other.reference
        and one.prediction is other.prediction
        and one.outcomes is other.outcomes
    )

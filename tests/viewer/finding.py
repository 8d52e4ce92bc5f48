"""Finding one's way on a desk in a real window."""

from contextlib import contextmanager, suppress
from unittest.mock import patch

import numpy as np
from qtpy.QtCore import QCoreApplication, QEvent, QPoint, Qt
from qtpy.QtGui import QGuiApplication, QKeyEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractItemView, QApplication, QMessageBox, QWidget

from napari_panoptic.display.styles import LUT_LENGTH
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause
from napari_panoptic.viewer.kit.layouts import Curtain
from napari_panoptic.viewer.kit.menus import TickMenu
from napari_panoptic.viewer.kit.widgets import dock_of

FIRST, SECOND, THIRD = "Sample-A_1", "Sample-A_2", "Sample-B_1"


def canvas_of(viewer):
    """Return the Qt widget that a viewer draws in."""
    return viewer.window._qt_viewer.canvas.native


def on_canvas(viewer, y_px, x_px, *, layer="reference"):
    """Find a pixel of the region on the canvas."""
    scale = viewer.layers[layer].scale
    camera = viewer.scene.camera
    height, width = viewer.canvas.size
    y, x = np.array([y_px, x_px]) * scale
    return QPoint(
        round((x - camera.center[-1]) * camera.zoom + width / 2),
        round((y - camera.center[-2]) * camera.zoom + height / 2),
    )


def nearest_view_middle(viewer, box, *, layer="reference"):
    """Return the nearest place to look at to show a box (y0, x0, y1, x1 in px) of a region.

    The box and its neighbourhood are then in sight, and no empty border beside the image; one that
    is smaller than the canvas is in the middle. A neighbourhood that is too large has the box in
    the middle instead.
    """
    own, camera, found = viewer.layers[layer], viewer.scene.camera, []
    around = max(box[2] - box[0], box[3] - box[1])
    for axis, canvas_px in enumerate(viewer.canvas.size):
        scale, shift, n = own.scale[axis], own.translate[axis], own.data.shape[axis]
        seen = max(box[axis] - around, 0), min(box[axis + 2] + around, n)
        ends = np.array([box[axis], box[axis + 2], *seen, 0, n])
        start, stop, first, last, low, high = shift + scale * (ends - 0.5)
        half_view = canvas_px / camera.zoom / 2
        if last - first < 2 * half_view:
            nearest = min(max(camera.center[-2 + axis], last - half_view), first + half_view)
        else:
            nearest = (start + stop) / 2
        if high - low < 2 * half_view:
            found.append((low + high) / 2)
        else:
            found.append(min(max(nearest, low + half_view), high - half_view))
    return found


def row_of_status(desk, side, status):
    codes = desk.session.evaluation.outcomes.side(side).status
    return int(np.flatnonzero(codes == STATUS_CODE[status])[0])


def missed_row(desk):
    """Find a reference object where nothing at all was predicted."""
    codes = desk.session.evaluation.outcomes.reference.cause
    return int(np.flatnonzero(codes == CAUSE_CODE[Cause.MISSED])[0])


def handle_events():
    """Handle all that is due in Qt: events, layouts, timers of 0 ms, answers of the display.

    One step may ask for the next one, such as a layout for a drawing.
    """
    for _ in range(10):
        QGuiApplication.sync()
        QCoreApplication.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def hold(widget, key, modifier, wait):
    """Press a key and let the keyboard repeat it several times, with a wait after each."""
    QTest.keyPress(widget, key, modifier)
    wait()
    for _ in range(3):
        for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
            event = QKeyEvent(kind, key, modifier, chr(key).lower(), True)
            QCoreApplication.sendEvent(QApplication.focusWidget(), event)
        wait()
    QTest.keyRelease(widget, key, modifier)


def click(canvas, place):
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)


def tick_column(table, name):
    """Show or hide a column of the table of objects, as a click in its menu does."""
    menu = table.findChild(TickMenu, options=Qt.FindChildOption.FindDirectChildrenOnly)
    next(action for action in menu.actions() if action.data() == name).trigger()


def bring_to_front(widget):
    """Show the dock that a panel is in, before others in the same place."""
    dock = dock_of(widget)
    dock.show()
    dock.raise_()


def show_inspect(desk, wait_until):
    """Show the first region in the first workspace as it is built in."""
    desk.reset_workspace("Inspect")
    desk.link.go_to(FIRST, team="careful")
    wait_until(lambda: desk.is_settled and desk.is_arranged)
    desk.session.select(None)


@contextmanager
def other_source(desk, wait_until):
    """Let the predictions be read from other files, as with the box in the settings."""
    box = desk.panels.settings.source
    box.choose(next(v for v in box.values if v is not None))
    try:
        yield
    finally:
        wait_until(lambda: desk.is_settled)
        box.choose(None)
        wait_until(lambda: desk.is_settled)


def names_of_visible(viewer):
    return [layer.name for layer in viewer.layers if layer.visible]


def shown_text(label):
    """Return the text of a label or button; empty if it is hidden."""
    return "" if label.isHidden() else label.text()


def texts_in_sight(viewer):
    """Give every text of a window that its user can read, and the names of its layers."""
    window = viewer.window._qt_window
    texts = {window.windowTitle(), str(viewer.status), *(layer.name for layer in viewer.layers)}
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or _is_covered(widget):
            continue
        for name in ("text", "currentText", "toPlainText", "windowTitle", "toolTip"):
            with suppress(AttributeError, TypeError):
                texts.add(str(getattr(widget, name)()))
        if isinstance(widget, QAbstractItemView) and (model := widget.model()) is not None:
            columns = range(model.columnCount())
            rows = range(model.rowCount())
            texts.update(str(model.index(row, k).data()) for row in rows for k in columns)
    return texts


def _is_covered(widget):
    """Return whether a curtain hides a widget."""
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    while widget is not None and not isinstance(widget, Curtain):
        if any(not curtain.isHidden() for curtain in widget.findChildren(Curtain, options=direct)):
            return True
        widget = widget.parentWidget()
    return False


def lut_of(colour):
    """Return colours of labels of which all have the same one; 0 has none."""
    lut = np.zeros((LUT_LENGTH, 4), np.float32)
    lut[1:] = colour
    return lut


def drawn_colours(view, index):
    """Give the RGB colours (0-255) of the pixels of a cell of a table, as it is drawn."""
    image = view.viewport().grab(view.visualRect(index)).toImage()
    places = ((x, y) for y in range(image.height()) for x in range(image.width()))
    return {image.pixelColor(x, y).getRgb()[:3] for x, y in places}


def close_viewer(viewer):
    """Close a window that a test opened itself, without its place in the settings."""
    with patch.object(viewer.window._qt_window, "_save_current_window_settings"):
        viewer.close()


@contextmanager
def answering(*answers):
    """Press the buttons of these texts in the next boxes, the last one in all others.

    Gives the list of what they ask.
    """
    asked, left = [], list(answers)

    def press(box):
        asked.append(box.text())
        wanted = left.pop(0) if len(left) > 1 else left[0]
        next(b for b in box.buttons() if b.text().replace("&", "").startswith(wanted)).click()

    with patch.object(QMessageBox, "exec", press):
        yield asked

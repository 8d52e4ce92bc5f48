"""A small picture of a large region, with the present view as a frame and the magnification."""

from __future__ import annotations

import math

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QEvent, QObject, QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import QWidget

from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.viewer.layers.camera import canvas_size
from napari_panoptic.viewer.panels.part import Connections, Presenter

LARGE_PX = 4_000_000
"""Regions of at least this many pixels have an overview; smaller ones are seen at a glance."""
LONGEST_PX = 180
"""Length of the longer side of the picture on the screen."""
MARGIN_PX = 10
"""Between the overview and the edges of the canvas."""
SMALLEST_FRAME_PX = 6
"""The frame of the view is at least this large, however near one looks."""
TEN_TIMES_MPP = 1.0
"""Micrometres per pixel at which an image on the screen counts as magnified 10 times."""
_FRAME, _GROUND = QColor(255, 214, 0), QColor(20, 20, 24, 215)


def magnification_text(screen_px_per_px: float, mpp: float | None) -> str:
    """Return the magnification of an objective that shows tissue in this size.

    Parameters
    ----------
    screen_px_per_px
        The zoom: how large an image pixel is on the screen.
    mpp
        Micrometres per image pixel (0.25 at 40x); None shows the zoom in percent.
    """
    if mpp is None:
        return f"{_rounded(100 * screen_px_per_px)} %"
    return f"{_rounded(10 * TEN_TIMES_MPP * screen_px_per_px / mpp)}x"


def _rounded(value: float) -> str:
    """Write a number with three digits, and no zeros behind the point."""
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class OverviewPicture(QWidget):
    """The picture of a region, and the view as a frame that the mouse moves.

    Parameters
    ----------
    parent
        In whose lower left corner it lies.
    """

    centre_wanted = Signal(float, float)  # y and x in px of the region

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._picture: QImage | None = None
        self._px_per_screen = 1.0
        self._view = QRectF()
        self._text = ""
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip("Overview: click or drag to move the view")
        self.setAccessibleName("Overview")
        parent.installEventFilter(self)
        self.hide()

    @property
    def text(self) -> str:
        """The magnification as it is shown."""
        return self._text

    @property
    def view(self) -> tuple[float, float, float, float]:
        """The frame: y0, x0, y1, x1 in px of the region."""
        shown = self._view
        return shown.top(), shown.left(), shown.bottom(), shown.right()

    def show_image(self, image: SlideImage) -> None:
        """Show another region."""
        height, width = image.shape
        self._px_per_screen = max(height, width) / LONGEST_PX
        smallest = np.asarray(image.levels[-1])
        step = max(1, math.ceil(max(smallest.shape[:2]) / (2 * LONGEST_PX)))
        pixels = np.ascontiguousarray(smallest[::step, ::step, :3])
        rows, columns = pixels.shape[:2]
        picture = QImage(pixels.tobytes(), columns, rows, 3 * columns, QImage.Format.Format_RGB888)
        self._picture = picture.copy()  # Qt does not keep the bytes
        size = (width / self._px_per_screen, height / self._px_per_screen)
        self.setFixedSize(
            max(round(size[0]), 70), max(round(size[1]), 20) + self.fontMetrics().height() + 4
        )
        self._put_into_corner()
        self.update()

    def show_view(self, box: tuple[float, float, float, float], text: str) -> None:
        """Move the frame to y0, x0, y1, x1 in px, and show the magnification."""
        y0, x0, y1, x1 = box
        self._view, self._text = QRectF(x0, y0, x1 - x0, y1 - y0), text
        self.update()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Stay in the corner."""
        if event is not None and event.type() == QEvent.Type.Resize:
            self._put_into_corner()
        return super().eventFilter(watched, event)

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802, ARG002
        """Draw picture, frame and magnification."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), _GROUND)
        area = self._area()
        if self._picture is not None:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(area, self._picture)
        painter.setClipRect(area)
        painter.setPen(QPen(_FRAME, 2))
        painter.drawRect(self._frame())
        painter.setClipping(False)
        painter.setPen(Qt.GlobalColor.white)
        below = QRectF(4, area.bottom(), self.width() - 8, self.height() - area.bottom())
        painter.drawText(below, int(Qt.AlignmentFlag.AlignVCenter), self._text)
        painter.end()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Move the view to where the mouse is."""
        self.mouseMoveEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Move the view with the mouse while a button is held."""
        if event is not None and event.buttons() & Qt.MouseButton.LeftButton:
            place = event.position()
            y, x = place.y() * self._px_per_screen, place.x() * self._px_per_screen
            self.centre_wanted.emit(y, x)

    def _area(self) -> QRectF:
        return QRectF(0, 0, self.width(), self.height() - self.fontMetrics().height() - 4)

    def _frame(self) -> QRectF:
        """Return the frame on the screen; a tiny one is widened."""
        k = self._px_per_screen
        view = self._view
        frame = QRectF(view.x() / k, view.y() / k, view.width() / k, view.height() / k)
        wider = max(0.0, SMALLEST_FRAME_PX - frame.width()) / 2
        higher = max(0.0, SMALLEST_FRAME_PX - frame.height()) / 2
        frame.adjust(-wider, -higher, wider, higher)
        frame.setTopLeft(_at_least(frame.topLeft(), 1))
        area = self._area()
        frame.setRight(min(frame.right(), area.right() - 1))
        frame.setBottom(min(frame.bottom(), area.bottom() - 1))
        return frame

    def _put_into_corner(self) -> None:
        parent = self.parentWidget()
        if parent is not None:
            self.move(MARGIN_PX, parent.height() - self.height() - MARGIN_PX)


def _at_least(point: QPointF, least: float) -> QPointF:
    return QPointF(max(point.x(), least), max(point.y(), least))


class OverviewPresenter(Presenter[OverviewPicture]):
    """Shows an overview of large regions over the canvas, and follows the camera."""

    title = "Overview"
    shows_outcomes = False

    def connections(self) -> Connections:
        """Listen to session, state, camera and picture."""
        camera = self.around.viewer.scene.camera.events
        return [
            (self.session.region_changed, self.refresh),
            (self.link.state.events.overview, self.refresh),
            (camera.zoom, self._follow),
            (camera.center, self._follow),
            (self.panel.centre_wanted, self._centre),
        ]

    def refresh(self, _changed: object = None) -> None:
        """Show the region, if it is large and the user wants its overview."""
        snapshot, picture = self.session.snapshot, self.panel
        image = None if snapshot is None else snapshot.image
        is_wanted = image is not None and math.prod(image.shape) >= LARGE_PX
        if image is not None and is_wanted and self.link.state.overview:
            picture.show_image(image)
            picture.show()
            picture.raise_()
            self._follow()
        else:
            picture.hide()

    def _follow(self, _event: object = None) -> None:
        """Show where the camera looks."""
        snapshot, viewer = self.session.snapshot, self.around.viewer
        if snapshot is None or self.panel.isHidden():
            return
        pixels, camera = PixelSize.of(snapshot), viewer.scene.camera
        half = canvas_size(viewer) / camera.zoom / 2
        sides = zip(camera.center[-2:], half, pixels.origin, pixels.scale, strict=True)
        (y0, y1), (x0, x1) = (
            ((middle - reach - origin) / scale, (middle + reach - origin) / scale)
            for middle, reach, origin, scale in sides
        )
        zoom = float(camera.zoom) * min(pixels.scale)
        self.panel.show_view((y0, x0, y1, x1), magnification_text(zoom, snapshot.mpp))

    def _centre(self, y: float, x: float) -> None:
        if self.session.snapshot is not None:
            place = PixelSize.of(self.session.snapshot).to_world((y, x))
            self.around.viewer.scene.camera.center = (0.0, *place)

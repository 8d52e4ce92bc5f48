"""The button that starts a piece of work, the one that stops it, and the bar between them."""

from __future__ import annotations

from qtpy.QtWidgets import QProgressBar

from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import PushButton

_PARTS = 1000
_HEIGHT_PX = 10


class ThinBar(QProgressBar):
    """A low progress bar without text."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextVisible(False)
        self.setFixedHeight(_HEIGHT_PX)


class WorkControls:
    """Starts work, stops it, and shows its progress; the panel lays the widgets out.

    Parameters
    ----------
    text, tooltip
        Of the button that starts the work.
    stop_tooltip
        Of the button that stops it.
    bar
        A bar with another look than the thin one.
    """

    def __init__(
        self,
        text: str,
        tooltip: str,
        *,
        stop_tooltip: str = "Stop after the region that is being evaluated.",
        bar: QProgressBar | None = None,
    ) -> None:
        self.start, self.stop = PushButton(text, tooltip), PushButton("Stop", stop_tooltip)
        self.bar = ThinBar() if bar is None else bar
        self.is_running = False
        self.bar.hide()
        self.stop.hide()

    def show_progress(
        self, share: float | None, doing: str = "", *, may_start: bool = True
    ) -> None:
        """Show the share of the work that is done; None if none is running."""
        count = None if share is None else (round(_PARTS * share), _PARTS)
        self.show_count(count, doing, may_start=may_start)

    def show_count(
        self, count: tuple[int, int] | None, doing: str = "", *, may_start: bool = True
    ) -> None:
        """Show the number that is done and the total; None if no work is running."""
        self.is_running = count is not None
        self.bar.setVisible(self.is_running)
        self.stop.setVisible(self.is_running)
        self.start.setVisible(may_start and not self.is_running)
        self.bar.setToolTip(shown(doing))
        if count is not None:
            self.bar.setMaximum(max(count[1], 1))
            self.bar.setValue(count[0])

"""Whether the user can have seen the selection: the image was painted since."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from napari_panoptic.live.session import Selection, Session
from napari_panoptic.viewer.kit.napari_private import canvas_widget, on_painted


class Painting:
    """Knows whether the image has been painted since another object was selected.

    An image that is not on the screen, such as in a workspace without it, is not waited for.

    Parameters
    ----------
    viewer
        The napari viewer.
    session
        The live state.
    """

    def __init__(self, viewer: Any, session: Session) -> None:
        self._viewer, self._session = viewer, session
        self._shown: tuple[str, Selection] | None = None
        self._is_due = False
        self._end = on_painted(viewer, self._on_painted)

    @property
    def is_due(self) -> bool:
        """Whether the image is still to be painted with the selection."""
        return self._is_due and self._is_on_screen()

    def expect(self) -> None:
        """Wait for the image to be painted with the latest change."""
        canvas = canvas_widget(self._viewer)
        if self._end is not None and canvas is not None:
            self._is_due = True
            canvas.update()

    def follow_selection(self, selection: Selection | None) -> None:
        """Wait for the image with another object; the same one in another row is known."""
        snapshot, before = self._session.snapshot, self._shown
        if selection is None or snapshot is None:
            self._shown, self._is_due = None, False
            return
        self._shown = (snapshot.region.name, replace(selection, row=0))
        if self._shown != before:
            self.expect()

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._end is not None:
            self._end()
        self._end, self._is_due = None, False

    def _on_painted(self) -> None:
        self._is_due = False

    def _is_on_screen(self) -> bool:
        canvas = canvas_widget(self._viewer)
        if canvas is None or not canvas.isVisible() or canvas.visibleRegion().isEmpty():
            return False
        window = canvas.window()
        handle = None if window is None else window.windowHandle()
        return handle is not None and handle.isExposed()

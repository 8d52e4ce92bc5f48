"""The objects under the mouse: hovering describes them, a click selects them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from qtpy.QtGui import QCursor
from qtpy.QtWidgets import QToolTip, QWidget

from napari_panoptic.display.describe import facts_of, hover_html
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.viewer.jobs.jobs import single_shot
from napari_panoptic.viewer.kit.events import is_plain_click
from napari_panoptic.viewer.layers.scene import Pointed, Scene
from napari_panoptic.viewer.layers.slide_view import SlideView

HOVER_DELAY_MS = 120
"""How long the mouse rests before the tooltip of the object under it."""
ZOOM_DELAY_MS = 200
"""How long a zoom rests before outlines follow it."""


class Pointer:
    """Follows the mouse and the zoom over the image of a desk.

    Parameters
    ----------
    viewer
        The napari viewer.
    session
        The live state.
    scene, slides
        The layers.
    owner
        A widget that the timers end with.
    """

    def __init__(
        self, viewer: Any, session: Session, scene: Scene, slides: SlideView, owner: QWidget
    ) -> None:
        self._viewer, self._session = viewer, session
        self._scene, self._slides = scene, slides
        self._pointed: list[Pointed] = []
        self._place = ""
        self.is_silent = False
        """Whether objects under the mouse are not described."""
        self._hover = single_shot(HOVER_DELAY_MS, self._show_hover, owner)
        self._zoomed = single_shot(ZOOM_DELAY_MS, scene.follow_zoom, owner)
        viewer.scene.camera.events.zoom.connect(self._on_zoom)
        viewer.mouse_drag_callbacks.append(self._on_press)
        viewer.mouse_move_callbacks.append(self._on_move)

    @property
    def is_zooming(self) -> bool:
        """Whether outlines are still to follow the zoom."""
        return self._zoomed.isActive()

    def close(self) -> None:
        """Follow the mouse no more; touches no widget."""
        self._viewer.scene.camera.events.zoom.disconnect(self._on_zoom)
        for callbacks, callback in (
            (self._viewer.mouse_drag_callbacks, self._on_press),
            (self._viewer.mouse_move_callbacks, self._on_move),
        ):
            if callback in callbacks:
                callbacks.remove(callback)

    def forget(self) -> None:
        """Forget the objects under the mouse: others are shown there now."""
        self._pointed = []

    def _on_press(self, _viewer: Any, event: Any) -> Iterator[None]:
        """Select the clicked object; a drag moves the view."""
        position, viewbox = tuple(event.position), event.viewbox
        is_panning = self._is_panning()
        is_click = yield from is_plain_click(event)
        if is_click and is_panning:
            self._click_at(position, viewbox)

    def _click_at(self, position: Sequence[float], viewbox: tuple[int, int] | None) -> None:
        """Go near where squares of a slide are seen, else select the object."""
        if not (self.is_slide_in_sight and self._slides.enter(position)):
            self._select_at(self._scene.objects_at(position, viewbox))

    @property
    def is_slide_in_sight(self) -> bool:
        """Whether the squares of a slide are seen instead of objects."""
        return self._scene.alternative is self._slides

    def _is_panning(self) -> bool:
        """Return whether the mouse is free, and not painting or transforming a layer."""
        active = self._viewer.layers.selection.active
        return active is None or str(active.mode) == "pan_zoom"

    def _select_at(self, found: list[Pointed]) -> None:
        """Select the topmost object; clicked again, the one beneath it."""
        if not found:
            self._session.select(None)
            return
        chosen = self._session.selection
        current = None if chosen is None else (chosen.side, chosen.row)
        own = (None, self._session.team)
        places = [(at.side, at.row) if at.team in own else None for at in found]
        start = places.index(current) + 1 if current is not None and current in places else 0
        pointed = found[start % len(found)]
        if pointed.team is not None and pointed.team != self._session.team:
            self._session.set_team(pointed.team)
        self._session.select_row(pointed.side, pointed.row)

    def _on_move(self, _viewer: Any, event: Any) -> None:
        pointed = self._scene.objects_at(event.position, event.viewbox)
        place = self._slides.place_text(event.position) if self.is_slide_in_sight else ""
        if (pointed, place) != (self._pointed, self._place):
            self._pointed, self._place = pointed, place
            QToolTip.hideText()
        if pointed or place:
            self._hover.start()
        else:
            self._hover.stop()

    def _on_zoom(self) -> None:
        self._zoomed.start()

    def _show_hover(self) -> None:
        if not self._viewer.mouse_over_canvas:
            return
        text = "" if self.is_silent else self.hover_text(self._pointed) or self._place
        if text:
            QToolTip.showText(QCursor.pos(), text)

    def hover_text(self, pointed: list[Pointed]) -> str:
        """Describe the objects under the mouse; partners appear once."""
        described: list[Pointed] = []
        for candidate in pointed:
            if not any(self._are_partners(candidate, other) for other in described):
                described.append(candidate)
        facts = [
            facts_of(self._session, candidate.team, candidate.side, candidate.row)
            for candidate in described
        ]
        return "<hr>".join(hover_html(fact) for fact in facts if fact is not None)

    def _are_partners(self, one: Pointed, other: Pointed) -> bool:
        snapshot = self._session.snapshot
        team = one.team or other.team or ""
        known = None if snapshot is None else snapshot.result(team)
        if known is None or one.side is other.side:
            return False
        partner = known.outcomes.side(one.side).partner[one.row]
        return bool(partner != NO_PARTNER and partner == other.row)

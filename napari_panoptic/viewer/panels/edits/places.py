"""The places at which an object is to be drawn by hand: listed in the panel, and shown."""

from __future__ import annotations

import html
from collections.abc import Sequence

from qtpy.QtGui import QPalette

from napari_panoptic.common.text import counted
from napari_panoptic.display.names import distinct_names
from napari_panoptic.viewer.editing.object_actions import ObjectActions, PlaceToDraw
from napari_panoptic.viewer.panels.edits.panel import EditsPanel
from napari_panoptic.viewer.panels.part import Surroundings

HOW_TO_DRAW = "{side} {id}: press Edit (Alt+D) and draw it here."


class PlacesToDraw:
    """Lists the places that verdicts “both wrong” left, and goes to them.

    Parameters
    ----------
    around
        The session, and the link that leads to other regions.
    panel
        Shows the list.
    mending
        Knows the places.
    """

    def __init__(self, around: Surroundings, panel: EditsPanel, mending: ObjectActions) -> None:
        self._session, self._link = around.session, around.link
        self._panel, self._mending = panel, mending
        self._places: tuple[PlaceToDraw, ...] = ()
        self._wanted: PlaceToDraw | None = None

    def show(self) -> None:
        """List the places as they are now."""
        self._places = tuple(self._mending.places_to_draw())
        names = [region.name for region in self._session.cohort.regions]
        short = dict(zip(names, distinct_names(names), strict=True))
        # Qt's own colour of links cannot be read on a dark window.
        colour = self._panel.palette().color(QPalette.ColorRole.WindowText).name()
        self._panel.to_draw.set_rich(_markup(self._places, short, colour))
        self._panel.to_draw.setVisible(bool(self._places))

    def go_to(self, number: str) -> None:
        """Show the place that was clicked, with its region and team."""
        place = self._places[int(number)]
        self._wanted = place
        self._link.go_to(place.region, team=place.team)
        self.arrive()

    def arrive(self) -> None:
        """Bring the place into view once its region is shown."""
        place, snapshot = self._wanted, self._session.snapshot
        if place is None or snapshot is None or self._session.wanted_region != place.region:
            self._wanted = None
        elif snapshot.region.name == place.region:
            self._wanted = None
            self._session.select(None)
            self._link.scene.camera.bring_box_into_view(place.bbox)
            self._link.say(HOW_TO_DRAW.format(side=place.target[0], id=place.target[1]))


def _markup(places: Sequence[PlaceToDraw], names: dict[str, str], colour: str) -> str:
    """Write the places as links, one line per region; a link is the number of its place."""
    lines = [f"To draw: {counted(len(places), 'place')}"]
    for region in dict.fromkeys(place.region for place in places):
        links = [
            f"<a style='color:{colour}' href='{number}'>{place.target[0]} {place.target[1]}</a>"
            for number, place in enumerate(places)
            if place.region == region
        ]
        lines.append(f"{html.escape(names.get(region, region))}: {', '.join(links)}")
    return "<br>".join(lines)

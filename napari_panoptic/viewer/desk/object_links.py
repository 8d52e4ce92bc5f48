"""Links to the contents of a desk: copied from it, and opened on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import QApplication, QWidget

from napari_panoptic.explain.failures import (
    FailureName,
    FailureSet,
    chosen_objects,
)
from napari_panoptic.live.session import Session
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.links import CohortKey, LinkError, LinkMaker, ObjectLink, check_link
from napari_panoptic.viewer.jobs.jobs import Job, Stream
from napari_panoptic.viewer.kit.link_socket import LinkServer
from napari_panoptic.viewer.kit.napari_private import window_of
from napari_panoptic.viewer.kit.questions import BoxQuestion, ask
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.panels.part import BLIND_SENTENCE
from napari_panoptic.viewer.state.desk_state import DeskState

if TYPE_CHECKING:
    from napari_panoptic.viewer.desk.nuclei import Desk

GALLERY_TITLE = "Objects of a link"
NO_LINKS = f"{BLIND_SENTENCE} Links would show them. Finish the plan first."
NOTHING_TO_LINK = "Nothing to link to. Open a cohort first."


class LinkClipboard:
    """Copies links to the shown objects.

    Parameters
    ----------
    session, state
        The state of the desk.
    say
        Reports the copied link to the user.
    """

    def __init__(self, session: Session, state: DeskState, say: Callable[[str], object]) -> None:
        self._session, self._state, self._say = session, state, say

    def copy(self, objects: Sequence[FailureName]) -> None:
        """Copy the link to objects of one region and team; show why if there can be none."""
        try:
            self._copy(self._links.to_all(objects))
        except LinkError as error:
            show_error(str(error))

    def copy_shown(self) -> None:
        """Copy the link to the selected object; without one, to the region and team."""
        session = self._session
        selection, region = session.selection, session.wanted_region or ""
        objects = []
        if selection is not None and session.snapshot is not None:
            region = session.snapshot.region.name  # another one may be being loaded
            objects = [(selection.side, selection.id)]
        try:
            self._copy(self._links.link(region, session.team or "" if region else "", objects))
        except LinkError as error:
            show_error(str(error))

    @property
    def _links(self) -> LinkMaker:
        session = self._session
        return LinkMaker(self._key, session.settings, session.source)

    @cached_property
    def _key(self) -> CohortKey:
        return CohortKey.of(self._session.cohort)

    def _copy(self, link: ObjectLink) -> None:
        clipboard = QGuiApplication.clipboard()
        if self._state.is_blind:
            show_info(NO_LINKS)
        elif clipboard is not None:
            clipboard.setText(link.text)
            self._say(f"Copied {link.text}")


class LinkOpener:
    """Opens links on a desk, also those that other processes of the same user send.

    Parameters
    ----------
    desk
        The desk.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._key: CohortKey | None = None
        self._server = LinkServer(self._take)
        self._gallery: Stream[FailureSet] = Stream(self._show_gallery)

    @property
    def is_busy(self) -> bool:
        """Whether the objects of a link are still being read."""
        return self._gallery.is_busy

    def begin(self, cohort: Cohort) -> None:
        """Take links to a cohort from now on."""
        self._key = CohortKey.of(cohort)
        self._server.listen(self._key)

    def end(self) -> None:
        """Take no links any more."""
        self._key = None
        self._server.close()
        self._gallery.stop()

    def open(self, link: ObjectLink) -> None:
        """Show the target of a link.

        The user is asked about a link to another version of the cohort. Names that this cohort
        lacks are reported, and nothing is changed.
        """
        desk = self._desk
        if desk.session is None or self._key is None:
            show_info(NOTHING_TO_LINK)
            return
        if desk.state.is_blind:
            show_info(NO_LINKS)
            return
        _bring_forward(window_of(desk.viewer))
        try:
            link = check_link(link, desk.session.cohort)
        except LinkError as error:
            show_error(str(error))
            return
        differs = difference_text(link.cohort, self._key)
        if not differs or may_open(window_of(desk.viewer), differs):
            self._go(link)

    def open_copied(self) -> None:
        """Open the link in the clipboard; report if there is none."""
        clipboard = QGuiApplication.clipboard()
        try:
            self.open(ObjectLink.parse("" if clipboard is None else clipboard.text()))
        except LinkError as error:
            show_error(str(error))

    def _take(self, link: ObjectLink) -> bool:
        """Open a link from another process, unless a dialog is open; before that, answer it."""
        if QApplication.activeModalWidget() is not None:
            return False
        self._desk.later(partial(self.open, link))
        return True

    def _go(self, link: ObjectLink) -> None:
        """Show region, team, settings and objects."""
        desk, session = self._desk, self._desk.session
        if desk.link is None or session is None:
            return
        self._gallery.stop()
        side, object_id = link.objects[0] if link.objects else (None, None)
        desk.link.go_to(
            link.region or session.wanted_region or "",
            side,
            object_id,
            team=link.team or None,
            settings=link.settings,
            source=link.source,
        )
        team = link.team or session.team
        if len(link.objects) > 1 and team is not None:
            names = [FailureName(team, link.region, *one) for one in link.objects]
            self._gallery.start(partial(_with_columns, session, link, names))

    def _show_gallery(self, objects: FailureSet) -> None:
        if self._desk.link is not None:
            self._desk.link.show_objects(objects)


def _with_columns(
    session: Session, link: ObjectLink, names: Sequence[FailureName], job: Job[FailureSet]
) -> Iterator[FailureSet]:
    """Read the objects of a link, some of which may be no failures."""
    given = chosen_objects(
        session.cohort,
        names,
        replace(session.reading, settings=link.settings, source=link.source),
        job.progress,
    )
    yield FailureSet(GALLERY_TITLE, frozenset(names), given=given)


def difference_text(linked: CohortKey, here: CohortKey) -> str:
    """Describe how the cohort of a link differs from the shown one; empty if it does not.

    A copy under another name is the same cohort.
    """
    differs = here.differences(linked)
    if not differs:
        return ""
    if linked.name != here.name:
        return (
            f"This link was copied from the cohort “{linked.name}”, and “{here.name}” is open. "
            f"Their {differs} differ, so it can lead to another object."
        )
    return (
        f"This link was copied from another version of the cohort “{here.name}”: its {differs} "
        "differ, so it can lead to another object."
    )


def may_open(parent: QWidget | None, message: str) -> bool:
    """Ask whether a link to another version of the cohort is opened."""
    answers = {"Open it here": True, "Cancel": False}
    return ask(parent, BoxQuestion("Link to another cohort", message, answers))


def _bring_forward(window: QWidget | None) -> None:
    if window is not None:
        if window.isMinimized():
            window.showNormal()
        window.raise_()
        window.activateWindow()

"""The desk for nuclei: its panels and their presenters, its workspaces, and its cohort."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import napari
from qtpy.compat import isalive
from qtpy.QtWidgets import QMainWindow, QWidget

from napari_panoptic.display.regions.question import region_questions
from napari_panoptic.live.session import Session
from napari_panoptic.questions.question import question_kind, question_names
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.viewer.desk import shell
from napari_panoptic.viewer.desk.docks import after_layout
from napari_panoptic.viewer.desk.link import Link
from napari_panoptic.viewer.desk.object_links import LinkOpener
from napari_panoptic.viewer.desk.shell import DeskShell
from napari_panoptic.viewer.desk.workspaces import Arrangement, DockArea, Stack, Workspace
from napari_panoptic.viewer.kit.commands import offer
from napari_panoptic.viewer.kit.keys import (
    OPEN_COHORT,
    OPEN_LINK,
    TOGGLE_OVERVIEW,
    key_sections,
    panel_shortcut,
)
from napari_panoptic.viewer.kit.title_strip import KeysDialog
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.legend import LegendPresenter, LegendStrip
from napari_panoptic.viewer.panels.metrics import MetricsPanel, MetricsPresenter
from napari_panoptic.viewer.panels.navigator import Navigator, NavigatorPresenter
from napari_panoptic.viewer.panels.notes import NotesDialog
from napari_panoptic.viewer.panels.object_card import ObjectPresenter
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.objects.presenter import ObjectsPresenter
from napari_panoptic.viewer.panels.overview import OverviewPicture, OverviewPresenter
from napari_panoptic.viewer.panels.part import PanelPart, Panels, Presenter, presenter_of
from napari_panoptic.viewer.panels.question.presenter import question_presenter
from napari_panoptic.viewer.panels.queue import QueueBar, QueuePresenter
from napari_panoptic.viewer.panels.ranking import RankingPresenter
from napari_panoptic.viewer.panels.region_question import region_presenter
from napari_panoptic.viewer.panels.review.plan.presenter import PlanPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from napari_panoptic.viewer.panels.scores import ScoresPresenter
from napari_panoptic.viewer.panels.settings import SettingsPanel, SettingsPresenter
from napari_panoptic.viewer.panels.start import StartPanel
from napari_panoptic.viewer.panels.suspects import SuspectsPresenter
from napari_panoptic.viewer.panels.teams import TeamsPresenter
from napari_panoptic.viewer.panels.title import (
    NOTHING_OPEN,
    SlidePresenter,
    TitlePresenter,
    TitleStrip,
)
from napari_panoptic.viewer.panels.versions import VersionsPresenter
from napari_panoptic.viewer.state.preferences import PREFERENCES

_OWN_PANELS: Mapping[str, type[Presenter[Any]] | None] = {
    "scores": ScoresPresenter,
    "suspects": SuspectsPresenter,
    "compare": VersionsPresenter,
    "ranking": None,
}
"""Questions whose panels have widgets of their own; None for those within another panel."""


def _question_parts() -> dict[str, type[Presenter[Any]]]:
    """Return the panels of all questions that have one, by their names."""
    return {
        name: _OWN_PANELS.get(name) or question_presenter(question_kind(name))
        for name in question_names()
        if name not in _OWN_PANELS or _OWN_PANELS[name] is not None
    }


_QUESTIONS = _question_parts()
_WITH_FAILURES = ("slices", "causes", "scores", "suspects")
_WITH_TEAMS = ("compare", "sweep")
_WITH_GROUPS = ("groups",)
"""Questions beside the gallery, the teams, and the groups of a region; others come after the first
of them."""
_OTHERS = tuple(
    name for name in _QUESTIONS if name not in (*_WITH_FAILURES, *_WITH_TEAMS, *_WITH_GROUPS)
)
BESIDE_FAILURES = tuple(_QUESTIONS[name].title for name in (*_WITH_FAILURES, *_OTHERS))
"""Titles of the panels that are tabs behind the gallery of failures."""

REGION_QUESTIONS: Mapping[str, type[Presenter[Any]]] = {
    name: TeamsPresenter if name == "teams" else region_presenter(kind)
    for name, kind in region_questions().items()
}
"""The panels of the questions about the region that is shown, by the names of the questions."""
_INSPECTING = tuple(
    panel.title
    for name, panel in REGION_QUESTIONS.items()
    if name not in ("ambiguous", "groups", "teams")
)
"""Titles of those that have no workspace of their own: tabs behind the objects."""

WITH_EVALUATE_ALL = ("Failures", "Cohort")
"""Workspaces whose questions can be asked together."""
ASKED = (*BESIDE_FAILURES, RankingPresenter.title)
"""Titles of the panels whose questions can be asked together."""

PARTS: tuple[type[Presenter[Any]], ...] = (
    ObjectPresenter,
    FailuresPresenter,
    *(_QUESTIONS[name] for name in (*_WITH_FAILURES, *_OTHERS)),
    *REGION_QUESTIONS.values(),
    *(_QUESTIONS[name] for name in (*_WITH_TEAMS, *_WITH_GROUPS)),
    EditsPresenter,
    ReviewPresenter,
    PlanPresenter,
    RankingPresenter,
)


def base_parts(panels: Panels) -> list[PanelPart[Any]]:
    """Make the parts of the panels that every desk has; the table comes before what follows it."""
    return [
        PanelPart(SlidePresenter, panels.title.slide),
        PanelPart(NavigatorPresenter, panels.navigator),
        PanelPart(SettingsPresenter, panels.settings),
        PanelPart(ObjectsPresenter, panels.objects),
        PanelPart(MetricsPresenter, panels.metrics),
        PanelPart(TitlePresenter, panels.title),
        PanelPart(QueuePresenter, panels.queue),
        PanelPart(LegendPresenter, panels.legend),
    ]


T = TypeVar("T")
INSPECTOR = "Panoptic Inspector (Panoptic)"
"""Name of the dock of the strip: the one that napari itself gives it from its menu."""
START = "Start"
REGIONS, SETTINGS, METRICS, OBJECTS = "Regions", "Settings", "Metrics", "Objects"

WORKSPACES = (
    Workspace(
        "Inspect",
        "Browse regions, objects and metrics",
        Arrangement(
            right=DockArea(
                0.3,
                (
                    Stack(("Object",), 0.38),
                    Stack((OBJECTS, "Edits", *_INSPECTING), 0.48),
                    Stack((METRICS,), 0.14),
                ),
            ),
        ),
        OBJECTS,
    ),
    Workspace(
        "Failures",
        "Compare the failures of the whole cohort",
        Arrangement(
            right=DockArea(
                0.42,
                (
                    Stack(("Failures", *BESIDE_FAILURES), 0.66),
                    Stack(("Object",), 0.34),
                ),
            ),
        ),
        "Failures",
    ),
    Workspace(
        "Groups",
        "Find splits, mergers and duplicates, and what they cost",
        Arrangement(
            right=DockArea(0.36, (Stack(("Groups",), 0.66), Stack(("Object", "Group costs"), 0.34)))
        ),
        "Groups",
    ),
    Workspace(
        "Ambiguous",
        "Compare two policies for ambiguous areas, and draw such areas",
        Arrangement(
            right=DockArea(0.36, (Stack(("Ambiguous", "Edits")),)),
        ),
        "Ambiguous",
    ),
    Workspace(
        "Teams",
        "Compare several teams",
        Arrangement(bottom=DockArea(0.36, (Stack(("Teams", "Versions", "Sweeps")),))),
        "Teams",
    ),
    Workspace(
        "Review",
        "Judge failures one by one",
        Arrangement(
            right=DockArea(0.3, (Stack(("Review", "Plan"), 0.72), Stack(("Object",), 0.28)))
        ),
        "Review",
    ),
    Workspace(
        "Cohort",
        "Rank teams and compare regions and patients",
        Arrangement(
            left=DockArea(0.29, (Stack((REGIONS,)),)),
            right=DockArea(0.71, (Stack(("Ranking", "Conventions", "Borders")),)),
            has_image=False,
        ),
        "Ranking",
    ),
)


class Desk(DeskShell):
    """The panels around the image, and the link to their contents.

    Parameters
    ----------
    viewer
        The viewer.
    """

    name = INSPECTOR
    workspaces = WORKSPACES
    empty = Arrangement(right=DockArea(0.36, (Stack((START,)),)))
    extras: ClassVar[Mapping[str, str]] = {
        REGIONS: "Show the tables of regions and teams",
        SETTINGS: "Show the settings of the evaluation",
    }

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer)
        self.link: Link | None = None
        self.session: Session | None = None
        self.links = LinkOpener(self)
        legend, queue, objects = LegendStrip(), QueueBar(), ObjectTable()
        title = TitleStrip(legend, queue)
        title.show_message(NOTHING_OPEN)
        self.start = StartPanel(self.viewer, self.open)
        self.make_strip(title)
        self.panels = Panels(
            navigator=Navigator(),
            settings=SettingsPanel(),
            metrics=MetricsPanel(),
            objects=objects,
            title=title,
            queue=queue,
            legend=legend,
            notes=NotesDialog(objects),
            keys=KeysDialog(objects),
        )
        self._base = base_parts(self.panels)
        self.parts: list[PanelPart[Any]] = [PanelPart(kind) for kind in PARTS]
        self.panels.settings.open.pushed.connect(self.ask_for_cohort)
        self.panels.title.keys_clicked.connect(self._show_keys)
        self._bar.panels.gather(None, title.keys)
        self._withdraw: Callable[[], None] = lambda: None
        self.closed.connect(self._remove_overview)

    @property
    def is_settled(self) -> bool:
        """Whether everything asked for is shown."""
        return self.link is None or (self.link.is_settled and not self.links.is_busy)

    def docked(self) -> Mapping[str, QWidget]:
        """Return title -> panel of all docks."""
        panels = self.panels
        own: dict[str, QWidget] = {
            START: self.start,
            REGIONS: panels.navigator,
            SETTINGS: panels.settings,
            METRICS: panels.metrics,
            OBJECTS: panels.objects,
        }
        return own | {part.title: part.widget for part in self.parts}

    def legend_strip(self) -> QWidget:
        """Return the legend."""
        return self.panels.legend

    def presenter(self, kind: type[T]) -> T:
        """Return the presenter of a panel; a LookupError if no cohort is shown."""
        return presenter_of([*self._base, *self.parts], kind)

    def raise_part(self, part: PanelPart[Any] | Presenter[Any]) -> None:
        """Bring a part's panel to the front."""
        self.reveal(part.title)

    def build(self) -> None:
        """Put the panels around the image; done only once."""
        super().build()
        window = self.strip.window()
        is_built = any(isinstance(part.widget, OverviewPicture) for part in self._base)
        if is_built or not isinstance(window, QMainWindow):
            return
        self.dock(OBJECTS).visibilityChanged.connect(self.panels.objects.set_in_sight)
        middle = window.centralWidget()
        if middle is not None:
            self._base.append(PanelPart(OverviewPresenter, OverviewPicture(middle)))
        commands = {
            OPEN_COHORT: self.ask_for_cohort,
            OPEN_LINK: self.links.open_copied,
            TOGGLE_OVERVIEW: self._toggle_overview,
        }
        self._withdraw = offer(self.viewer, commands)

    def show_cohort(
        self,
        cohort: Cohort,
        *,
        region: str | None = None,
        settings: EvaluationSettings | None = None,
        team: str | None = None,
    ) -> None:
        """Show a cohort instead of the one shown before.

        Parameters
        ----------
        cohort
            What to show.
        region
            The region to start with; the one shown last, or the first, where None.
        settings
            How to evaluate; the default protocol where None.
        team
            The team to start with; the one shown last, or the first, where None.
        """
        self.leave_cohort()
        if self.workspace is None:
            self.show_last_workspace()
        self.session = Session(cohort, settings)
        last_region, last_team = last_place(cohort)
        team = team or last_team
        if team is not None:
            self.session.set_team(team)
        self.link = Link(
            self._viewer,
            self.session,
            self.panels,
            self.state,
            parts=[*self._base, *self.parts],
            reveal=self.reveal,
            asked_together=self.asked_together,
        )
        self.link.start(region or last_region)
        self.links.begin(cohort)

    def asked_together(self, title: str) -> tuple[str, ...]:
        """Return the panels whose questions are asked with one: of its workspace, the shown first.

        Parameters
        ----------
        title
            Title of a panel.
        """
        shown = () if self.workspace is None else (self.workspace,)
        for workspace in (*shown, *self.workspaces):
            docks = workspace.arrangement.docks
            if workspace.name in WITH_EVALUATE_ALL and title in docks:
                return tuple(own for own in docks if own in ASKED)
        return ()

    def later(self, action: Callable[[], None]) -> None:
        """Do something when Qt has handled pending events, unless the desk is gone by then."""
        after_layout(self.strip, action)

    def leave_cohort(self) -> None:
        """Stop all work and undo all connections; touch no widget."""
        self.links.end()
        link, self.link = self.link, None
        if link is not None:
            link.close()

    def show_failure(self) -> None:
        """Select the first failure unless something is selected, as for a picture."""
        if self.session is not None and self.link is not None and self.session.selection is None:
            self.link.failures.step()

    def may_leave(self) -> bool:
        """Return whether another cohort may be shown; asks where something would be lost."""
        return all(part.may_leave() for part in self.parts)

    def _remove_overview(self) -> None:
        """Remove the overview and the commands of the window."""
        self._withdraw()
        for part in self._base:
            if isinstance(picture := part.widget, OverviewPicture) and isalive(picture):  # type: ignore[no-untyped-call]
                picture.hide()
                picture.deleteLater()

    def _toggle_overview(self) -> None:
        self.state.overview = not self.state.overview

    def _show_keys(self) -> None:
        """List all keys, those of the parts among them; also before a cohort is open."""
        own = []
        for part in self.parts:
            raising = () if part.key is None else (panel_shortcut(part.key, part.title),)
            keys = (*part.single_keys, *(shortcut for shortcut, _ in part.shortcuts()))
            own.append((part.title, (*raising, *keys)))
        self.panels.keys.show_keys(key_sections(own))
        show_in_front(self.panels.keys)


def last_place(cohort: Cohort) -> tuple[str | None, str | None]:
    """Return the region and team of a cohort that were shown last, if it still has them."""
    region, team = PREFERENCES.place(cohort.root)
    regions, teams = {at.name for at in cohort.regions}, {at.name for at in cohort.teams}
    return (region if region in regions else None), (team if team in teams else None)


def desk_of(viewer: napari.Viewer) -> Desk:
    """Return the desk of a viewer, opened where it is not yet."""
    return shell.desk_of(viewer, Desk)


def desk_in(viewer: napari.Viewer) -> Desk | None:
    """Return the desk of a viewer, or None if none is open."""
    return shell.desk_in(viewer, Desk)

"""The kit of panels that show something of the present region: they compute when seen.

Such a panel needs a value that takes a moment. It is computed by a worker, only
while the panel is in sight, and again when its input changed; an answer
that comes too late is discarded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from psygnal import Signal
from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtWidgets import QDockWidget, QWidget

from napari_panoptic.display.title import why_nothing
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Latest, single_shot
from napari_panoptic.viewer.kit.widgets import dock_of, is_in_sight
from napari_panoptic.viewer.layers.labels import MarkLayer
from napari_panoptic.viewer.panels.part import Connections, PanelT, Presenter, Surroundings

WAITING = "Evaluating …"
"""Shown in place of a result of another region or team."""


@dataclass(frozen=True, eq=False)
class Here:
    """A region and a team that is evaluated in it; nothing in it changes any more."""

    #: The region. Its label images may be under edit: not for workers.
    snapshot: RegionSnapshot
    team: str
    evaluation: Evaluation


@dataclass(frozen=True, eq=False)
class ResultHere:
    """The result of a worker in a region for a team."""

    here: Here


T = TypeVar("T", bound=ResultHere)


@dataclass(frozen=True, eq=False)
class Material:
    """The input of a worker about a region; nothing in it changes any more."""

    #: The region. Its label images may be under edit: not for workers.
    snapshot: RegionSnapshot
    #: Team -> its evaluation, if that can be used as it is.
    evaluations: Mapping[str, Evaluation]
    #: Team -> its label pair, if it has to be evaluated first.
    pairs: Mapping[str, LabelPair]
    #: How to evaluate them.
    settings: EvaluationSettings

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams that can be compared, in the cohort's order."""
        known = {*self.evaluations, *self.pairs}
        return tuple(team for team in self.snapshot.predictions if team in known)

    def complete(self) -> dict[str, Evaluation]:
        """Evaluate the rest; for workers."""
        settings = self.settings.replaced(distances=False)
        done = {team: evaluate(pair, settings) for team, pair in self.pairs.items()}
        return {team: done.get(team) or self.evaluations[team] for team in self.teams}


def material(session: Session, *, teams: Collection[str] | None = None) -> Material | None:
    """Take the present state of the current region.

    Parameters
    ----------
    session
        The live state; on the main thread.
    teams
        Only these teams; all where None.

    Returns
    -------
    Material or None
        None if there is no region, or nothing in it to compare.
    """
    snapshot = session.snapshot
    if snapshot is None or snapshot.reference is None:
        return None
    wanted = [name for name in snapshot.predictions if teams is None or name in teams]
    if not session.has_edits(snapshot.region.name):
        known = {
            name: snapshot.evaluations[name] for name in wanted if name in snapshot.evaluations
        }
        return Material(snapshot, known, {}, snapshot.settings) if known else None
    # Images under edit change with the next stroke: the worker gets copies.
    reference = _copied(snapshot.reference)
    pairs = {
        name: LabelPair(
            reference, _copied(snapshot.predictions[name]), snapshot.ambiguous, snapshot.mpp
        )
        for name in wanted
    }
    return Material(snapshot, {}, pairs, snapshot.settings) if pairs else None


def _copied(labels: LabelImage) -> LabelImage:
    return replace(
        labels,
        index=labels.index.copy(),
        ids=labels.ids.copy(),
        class_index=labels.class_index.copy(),
        original_ids=labels.original_ids.copy(),
    )


class Sight(QObject):
    """Reports when a panel becomes visible or hidden; made by `Sight.of`.

    Emits `changed` with whether it can be seen.
    """

    changed = Signal(bool)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._dock: QDockWidget | None = None
        # Docks are moved after the event.
        self._later = single_shot(0, self._look, self)
        self.is_seen = False
        widget.installEventFilter(self)
        self._find_dock()
        self._look()

    @classmethod
    def of(cls, widget: QWidget) -> Sight:
        """Return the watch of a panel, made on first use."""
        known = widget.findChild(cls, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return known if isinstance(known, cls) else cls(widget)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Notice events that may show or hide the widget; none is held back."""
        kind = None if event is None else event.type()
        if kind in (QEvent.Type.ParentChange, QEvent.Type.Show):
            self._find_dock()
        if kind == QEvent.Type.Hide:
            self._look()
        if kind in _MAY_CHANGE_SIGHT:
            self._later.start()
        return super().eventFilter(watched, event)

    def _find_dock(self) -> None:
        """Listen to the dock: a panel that it moves behind another tab gets no event."""
        dock = dock_of(self._widget)
        if dock is not None and dock is not self._dock:
            self._dock = dock
            dock.visibilityChanged.connect(lambda _visible: self._later.start())

    def _look(self) -> None:
        seen = is_in_sight(self._widget)
        if seen != self.is_seen:
            self.is_seen = seen
            self.changed.emit(seen)


_MAY_CHANGE_SIGHT = (
    QEvent.Type.ParentChange,
    QEvent.Type.Show,
    QEvent.Type.Hide,
    QEvent.Type.Resize,
    QEvent.Type.Paint,
)


class SeenPresenter(Presenter[PanelT]):
    """Computes the contents of its panel, and only while that is in sight."""

    def __init__(self, around: Surroundings, panel: PanelT) -> None:
        super().__init__(around, panel)
        self._is_stale = True
        self._sight = Sight.of(panel)

    @abstractmethod
    def compute_now(self) -> None:
        """Recompute and show the contents; called only while the panel is visible."""

    @property
    def is_in_sight(self) -> bool:
        """Whether the panel is visible, or its value is needed."""
        return self._sight.is_seen

    @property
    def is_window_gone(self) -> bool:
        """Whether the window was closed, so that nothing in it must be touched any more."""
        try:
            window = self.panel.window()
            return window is None or not window.isVisible()
        except RuntimeError:  # Qt deleted the widget already
            return True

    def connections(self) -> Connections:
        """Listen to whatever changes the figures, and to the panel coming into sight."""
        return [
            (self.session.region_changed, self.refresh),
            (self.session.team_changed, self.refresh),
            (self.link.edits_rested, self.refresh),
            (self._sight.changed, self._on_sight),
        ]

    def refresh(self, *_changed: object) -> None:
        """Compute again, now or when the panel comes into sight."""
        self._is_stale = True
        if self.is_in_sight:
            self._is_stale = False
            self.compute_now()

    def is_shown(self, snapshot: RegionSnapshot) -> bool:
        """Return whether a result is of the shown region."""
        return self.session.snapshot is not None and self.session.snapshot.region == snapshot.region

    def select_id(self, side: Side, id_: int) -> None:
        """Select an object of a list by its id: edits since may have given it another row."""
        shown = self.session.shown
        row = None if shown is None else shown.outcomes.side(side).row_of(id_)
        if row is not None:
            self.session.select_row(side, row)

    def centre_selected(self) -> None:
        """Bring the selected object to the middle of the canvas."""
        if self.session.selection is not None:
            self.link.scene.centre(self.session.selection)

    def _on_sight(self, seen: bool) -> None:
        if seen and self._is_stale:
            self.refresh()


class RegionPresenter(SeenPresenter[PanelT], Generic[PanelT, T]):
    """Presents the region and team that are shown, with marks on the image.

    The marks are there only while the panel is in sight.
    """

    marks_name: ClassVar[str]
    """Name of the layer of marks."""
    on_slide: ClassVar[str]
    """Shown on a whole slide, of which nothing is computed."""
    compute: ClassVar[Callable[..., Any]]
    """Returns the value of a `Here` and the choices; for workers."""

    def __init__(self, around: Surroundings, panel: PanelT) -> None:
        super().__init__(around, panel)
        self.value: T | None = None
        """The listed result; None without one, or if it is of another region or team."""
        self.marks = MarkLayer(around.viewer, self.marks_name)
        self._latest: Latest[T] = Latest(self._take)
        self._asked: tuple[object, ...] = ()

    def choices(self) -> tuple[object, ...]:
        """Return the choices that the value depends on, besides region and team."""
        return ()

    def obstacle(self, snapshot: RegionSnapshot) -> str:  # noqa: ARG002 - most have none
        """Return why a region with objects of the team has no value; empty if it has one."""
        return ""

    @abstractmethod
    def show(self, value: T) -> None:
        """Show a value in the panel."""

    @abstractmethod
    def show_nothing(self, why: str) -> None:
        """Show why there is no value."""

    @abstractmethod
    def mark(self) -> None:
        """Mark objects on the image, or take the marks away."""

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed."""
        return self._latest.is_busy

    def close(self) -> None:
        """Stop, and take the marks away."""
        self._latest.close()
        (self.marks.forget if self.is_window_gone else self.marks.remove)()

    def select_row(self, side: Side, row: int) -> None:
        """Select an object of the list, unless that is of another region or team."""
        if self.value is not None:
            self.select_id(side, int(self.value.here.evaluation.outcomes.side(side).ids[row]))

    def refresh(self, *_changed: object) -> None:
        """Let go of the value of another region or team at once, and compute as soon as seen."""
        if self.value is not None and not self._is_present(self.value.here):
            self.value, self._asked = None, ()
            self.mark()
        super().refresh()

    def compute_now(self) -> None:
        """Compute the contents in a worker, unless they are of the same evaluation."""
        snapshot, team = self.session.snapshot, self.session.team
        if snapshot is None or team is None:
            self._forget(why_nothing(self.session))
        elif snapshot.is_slide:
            self._forget(self.on_slide)
        elif team in snapshot.pending:
            self._stop()  # stale: the new evaluation is on its way
            if self.value is None:
                self.show_nothing(WAITING)
        elif obstacle := self.obstacle(snapshot):
            self._forget(obstacle)
        elif (known := material(self.session, teams=(team,))) is None:
            self._forget(why_nothing(self.session))
        else:
            choices = self.choices()
            asked = (*known.evaluations.values(), *choices)
            if known.pairs or asked != self._asked:
                self._asked = () if known.pairs else asked
                self._latest.start(partial(_computed, type(self).compute, known, team, choices))

    def _is_present(self, here: Here) -> bool:
        return self.is_shown(here.snapshot) and here.team == self.session.team

    def _take(self, value: T) -> None:
        if self._is_present(value.here):
            self.value = value
            self.show(value)
            self.mark()
        else:  # the panel was hidden when another region came
            self._asked = ()

    def _stop(self) -> None:
        self._latest.drop()
        self._asked = ()

    def _forget(self, why: str) -> None:
        self._stop()
        self.value = None
        self.show_nothing(why)
        self.mark()

    def _on_sight(self, seen: bool) -> None:
        super()._on_sight(seen)
        self.mark()


def _computed(
    compute: Callable[..., T], known: Material, team: str, choices: tuple[object, ...]
) -> T:
    return compute(Here(known.snapshot, team, known.complete()[team]), *choices)

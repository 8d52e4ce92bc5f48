"""What the panels that compare and audit have in common: they compute when seen.

Such a panel needs a value that takes a moment. It is computed by a worker, only
while the panel is in sight, and again when its input changed; an answer
that comes too late is discarded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Protocol, TypeVar

from psygnal import Signal
from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtWidgets import QDockWidget, QWidget

from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.jobs.timers import single_shot
from napari_panoptic.viewer.kit.widgets import dock_of, is_in_sight
from napari_panoptic.viewer.layers.mark_layer import MarkLayer
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections, PanelT, Presenter

WAITING = "Evaluating …"
"""Shown in place of what is of another region, or of another team."""


class _OfRegion(Protocol):
    """What is found in a region for a team."""

    @property
    def snapshot(self) -> RegionSnapshot: ...
    @property
    def team(self) -> str: ...
    @property
    def evaluation(self) -> Evaluation: ...


T = TypeVar("T", bound=_OfRegion)


@dataclass(frozen=True, eq=False)
class Material:
    """What a worker needs to know of a region; nothing in it changes any more."""

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
        return tuple(team for team in self.snapshot.predictions if team in self._known)

    @property
    def _known(self) -> set[str]:
        return {*self.evaluations, *self.pairs}

    def complete(self) -> dict[str, Evaluation]:
        """Evaluate what has not been; for workers."""
        settings = self.settings.replaced(distances=False)
        done = {team: evaluate(pair, settings) for team, pair in self.pairs.items()}
        return {team: done.get(team) or self.evaluations[team] for team in self.teams}


def material(session: Session, *, teams: Collection[str] | None = None) -> Material | None:
    """Take what there is now of the current region.

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
    """Reports when a panel becomes visible or hidden.

    Parameters
    ----------
    widget
        The panel that is watched.
    changed
        Called with whether it can be seen.

    Emits `changed` with the same.
    """

    changed = Signal(bool)

    def __init__(self, widget: QWidget, changed: Callable[[bool], None] | None = None) -> None:
        super().__init__(widget)
        self._widget = widget
        if changed is not None:
            self.changed.connect(changed)
        self._dock: QDockWidget | None = None
        # Docks are moved after the event.
        self._later = single_shot(0, self._look, self)
        self.is_seen = False
        widget.installEventFilter(self)

    @classmethod
    def of(cls, widget: QWidget) -> Sight:
        """Return what watches a panel, made when it is asked for first."""
        known = widget.findChild(cls, options=Qt.FindChildOption.FindDirectChildrenOnly)
        if isinstance(known, cls):
            return known
        made = cls(widget)
        made._find_dock()
        made._look()
        return made

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Look at what happens to the widget; hold nothing back."""
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
    """Computes what its panel shows, and only while that is in sight.

    Subclasses say in `compute_now` what to do.
    """

    def __init__(self, around: Surroundings, panel: PanelT) -> None:
        super().__init__(around, panel)
        self._is_stale = True
        self._sight = Sight.of(panel)

    @abstractmethod
    def compute_now(self) -> None:
        """Compute and show what is so now; called only while it can be seen."""

    def on_sight(self, seen: bool) -> None:
        """Do something more when the panel comes into sight or goes."""

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
        """Return whether a result is of the region that is shown."""
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
        self.on_sight(seen)


class TeamPresenter(SeenPresenter[PanelT], Generic[PanelT, T]):
    """Presents the region and team that are shown, with marks on the image.

    The marks are there only while the panel is in sight.
    """

    marks_name: ClassVar[str]
    """Name of the layer of marks."""

    def __init__(self, around: Surroundings, panel: PanelT) -> None:
        super().__init__(around, panel)
        self.value: T | None = None
        self.marks = MarkLayer(around.viewer, self.marks_name)
        self._latest: Latest[T] = Latest(self._show)
        self._asked: tuple[object, ...] | None = None
        self.is_waiting = False
        """Whether what is shown is still being evaluated."""

    @property
    def here(self) -> T | None:
        """The value, unless another region or team is shown by now."""
        value = self.value
        is_here = (
            value is not None and self.is_shown(value.snapshot) and value.team == self.session.team
        )
        return value if is_here else None

    def select_row(self, side: Side, row: int) -> None:
        """Select an object of the list, unless that is of another region or team."""
        if self.here is not None:
            self.select_id(side, int(self.here.evaluation.outcomes.side(side).ids[row]))

    @abstractmethod
    def computation(self, known: Material, team: str) -> Callable[[], T]:
        """Return what a worker is to compute."""

    def wants(self, known: Material) -> bool:  # noqa: ARG002 - most show whatever there is
        """Return whether there is anything to compute of a region."""
        return True

    @abstractmethod
    def choices(self) -> tuple[object, ...]:
        """Return the choices that the value depends on, besides region and team."""

    @abstractmethod
    def show(self, value: T | None) -> None:
        """Show a value in the panel; None if there is nothing to show."""

    @abstractmethod
    def mark(self) -> None:
        """Mark objects on the image, or take the marks away."""

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed."""
        return self._latest.is_busy

    def close(self) -> None:
        """Stop, and take the marks away."""
        super().close()
        self._latest.close()
        (self.marks.forget if self.is_window_gone else self.marks.remove)()

    def compute_now(self) -> None:
        """Compute in a worker what the panel shows, unless it is that of the same evaluation."""
        session, team = self.session, self.session.team
        snapshot = session.snapshot
        is_slide = snapshot is not None and snapshot.is_slide
        self.is_waiting = snapshot is not None and team in snapshot.pending and not is_slide
        if self.is_waiting:
            self._latest.drop()  # stale: the new evaluation is on its way
            self._asked = None
            if self.here is None:
                self._show(None)
            return
        known = None if team is None else material(session, teams=(team,))
        if known is None or team is None or not self.wants(known):
            self._latest.drop()
            self._asked = None
            self._show(None)
            return
        if self.here is None:
            self.mark()  # what is marked is of another region or team
        evaluation = known.evaluations.get(team)
        asked = None if evaluation is None else (evaluation, *self.choices())
        if asked is None or asked != self._asked:
            self._asked = asked
            self._latest.start(self.computation(known, team))

    def on_sight(self, seen: bool) -> None:  # noqa: ARG002 - marks know
        """Mark objects only while the panel is visible."""
        self.mark()

    def _show(self, value: T | None) -> None:
        self.value = value
        self.show(value)
        self.mark()

"""The live state of a desk of detections: frame, team, settings, edits; no Qt here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from psygnal import Signal

from napari_panoptic.detected import FrameStandings, LoadedFrame, standings_of
from napari_panoptic.errors import Finding
from napari_panoptic.evaluation.detections import (
    DetectionCounts,
    DetectionSettings,
    JudgedPoints,
    PrecisionRecall,
    StackedStandings,
    Standing,
    judge_points,
    summed,
)
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.points import DetectionCohort, Points
from napari_panoptic.scored import AtypiaEvaluation

Place = tuple[str, str | None]
"""A frame's name, and a team's or None for the annotation."""


@dataclass
class _History:
    """Working copy of the points of one side of a frame, and what it was before.

    Parameters
    ----------
    saved
        The points as a file has them: the one that was read, or written since.
    past, future
        What undo and redo lead to, the nearest last.
    """

    saved: Points
    past: list[Points] = field(default_factory=list)
    future: list[Points] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _TeamFigures:
    """What is known of a team, to be computed once for each state."""

    names: tuple[str, ...]
    stacked: StackedStandings


class DetectionSession:
    """What is shown of a cohort of detections, and what somebody changed in it.

    What the frame shown amounts to is found out at once. Of the other frames
    that takes long where they are many: whoever holds the session takes those
    that are `outdated`, finds it out in another thread, and hands it back by
    `take_standings`. Until then their figures are unknown, never old ones.

    Parameters
    ----------
    cohort
        What to show.
    """

    frame_changed = Signal()  # another frame is shown
    judged_changed = Signal()  # what became of the points shown
    points_changed = Signal(object)  # Side: points were put back by undo, redo or discarding
    figures_changed = Signal()  # figures of frames and teams
    selection_changed = Signal()

    def __init__(self, cohort: DetectionCohort) -> None:
        self.cohort = cohort
        self.settings = DetectionSettings()
        self.team: str | None = cohort.team_names[0] if cohort.teams else None
        self.shown: LoadedFrame | None = None
        self.judged: JudgedPoints | None = None
        self.selection: tuple[Side, int] | None = None
        self.failed: dict[str, str] = {}
        self._frames: dict[str, LoadedFrame] = {}
        self.scores: AtypiaEvaluation | None = None
        self._standings: dict[str, Mapping[str, Standing]] = {}
        self._figures: dict[str, _TeamFigures] = {}
        self._counts: dict[str, dict[str, DetectionCounts]] = {}
        self._histories: dict[Place, _History] = {}

    # What somebody chooses.

    def add_frame(self, loaded: LoadedFrame) -> None:
        """Take a frame that was read, now `outdated`; one that is there stays, with its edits."""
        if loaded.frame.name not in self._frames:
            self._frames[loaded.frame.name] = loaded

    def add_failure(self, name: str, why: str) -> None:
        """Note that a frame cannot be read."""
        self.failed[name] = why
        self.figures_changed.emit()

    def show(self, name: str) -> None:
        """Show a frame that was added."""
        self.shown = self._frames[name]
        if name not in self._standings:
            self._stand(name)
        self.selection = None
        self.judged = self._judge()
        self.frame_changed.emit()
        self.figures_changed.emit()

    def set_team(self, team: str) -> None:
        """Show another team's detections."""
        if team == self.team:
            return
        self.team = self.cohort.checked_team(team)
        self.selection = None
        self.judged = self._judge()
        self.judged_changed.emit()
        self.figures_changed.emit()

    def set_settings(self, settings: DetectionSettings) -> None:
        """Judge in another way; at another distance all frames but the one shown are outdated."""
        if settings == self.settings:
            return
        is_further = settings.distance_um != self.settings.distance_um
        self.settings = settings
        self._counts.clear()
        if is_further:
            self._standings.clear()
            self._figures.clear()
            if self.shown is not None:
                self._stand(self.shown.frame.name)
        self.judged = self._judge()
        self.judged_changed.emit()
        self.figures_changed.emit()

    def select(self, selection: tuple[Side, int] | None) -> None:
        """Select a point of the frame shown, or none."""
        if selection != self.selection:
            self.selection = selection
            self.selection_changed.emit()

    # Edits.

    def points(self, side: Side) -> Points | None:
        """Give the points of a side of the frame shown, as they are now."""
        if self.shown is None:
            return None
        if side is Side.REFERENCE:
            return self.shown.reference
        return self.shown.predictions.get(self.team or "")

    def edit(self, side: Side, points: Points, *, goes_on: bool = False) -> None:
        """Take points that somebody moved, added or deleted.

        Parameters
        ----------
        side
            Of the frame and team shown.
        points
            All of its points.
        goes_on
            Whether this is one more step of the same change, such as a drag:
            undo takes all its steps back at once.
        """
        before = self.points(side)
        if before is None or self.shown is None:
            return
        history = self._histories.setdefault(self._place(side), _History(before))
        if not goes_on:
            history.past.append(before)
            history.future.clear()
        self._put(side, points)

    def undo(self, side: Side) -> bool:
        """Take the newest change of a side back; False where there is none."""
        return self._travel(side, back=True)

    def redo(self, side: Side) -> bool:
        """Make a change again that was taken back; False where there is none."""
        return self._travel(side, back=False)

    def may_undo(self, side: Side, *, back: bool = True) -> bool:
        """Tell whether there is something to take back, or to make again."""
        history = self._histories.get(self._place(side))
        return history is not None and bool(history.past if back else history.future)

    def mark_saved(self, side: Side) -> None:
        """Note that the present points of a side are in a file."""
        history, now = self._histories.get(self._place(side)), self.points(side)
        if history is not None and now is not None:
            history.saved = now
            self.figures_changed.emit()

    @property
    def unsaved(self) -> list[Place]:
        """The sides with changes that no file has."""
        return [
            place
            for place, history in self._histories.items()
            if self._points_at(place) is not history.saved
        ]

    def _points_at(self, place: Place) -> Points | None:
        name, team = place
        loaded = self._frames[name]
        return loaded.reference if team is None else loaded.predictions.get(team)

    def _place(self, side: Side) -> Place:
        name = "" if self.shown is None else self.shown.frame.name
        return name, None if side is Side.REFERENCE else self.team

    def _travel(self, side: Side, *, back: bool) -> bool:
        history, now = self._histories.get(self._place(side)), self.points(side)
        if history is None or now is None:
            return False
        source, target = history.past, history.future
        if not back:
            source, target = target, source
        if not source:
            return False
        target.append(now)
        self._put(side, source.pop())
        self.points_changed.emit(side)
        return True

    def _put(self, side: Side, points: Points) -> None:
        if self.shown is None:
            return
        before, selected = self.points(side), self.selection
        if before is not None and selected is not None and selected[0] is side:
            # Rows change where points are deleted or come back; the point is still the same one.
            rows = np.flatnonzero(points.ids == before.ids[selected[1]])
            self.selection = (side, int(rows[0])) if len(rows) else None
        if side is Side.REFERENCE:
            self.shown = replace(self.shown, reference=points)
        else:
            predictions = {**self.shown.predictions, (self.team or ""): points}
            self.shown = replace(self.shown, predictions=predictions)
        name = self.shown.frame.name
        self._frames[name] = self.shown
        self._stand(name, None if side is Side.REFERENCE else self.team)
        self.judged = self._judge()
        self.judged_changed.emit()
        self.figures_changed.emit()

    # Figures.

    def _judge(self) -> JudgedPoints | None:
        """Judge the points shown; a side without a file counts as unknown, not as empty."""
        reference, prediction = self.points(Side.REFERENCE), self.points(Side.PREDICTION)
        if self.shown is None or reference is None or prediction is None:
            return None
        return judge_points(reference, prediction, self.shown.mpp_xy, self.settings)

    def _stand(self, name: str, team: str | None = None) -> None:
        """Find out what a frame amounts to, of one team only where it is named."""
        loaded = self._frames[name]
        if team is not None:
            loaded = replace(loaded, predictions={team: loaded.predictions[team]})
        self._keep(name, standings_of(loaded, self.settings.distance_um).by_team)

    def _keep(self, name: str, by_team: Mapping[str, Standing]) -> None:
        self._standings[name] = {**self._standings.get(name, {}), **by_team}
        for team in by_team:
            self._figures.pop(team, None)
            self._counts.pop(team, None)

    @property
    def outdated(self) -> list[LoadedFrame]:
        """The frames that were read, and of which it is to be found out what they amount to."""
        return [each for name, each in self._frames.items() if name not in self._standings]

    def take_standings(self, found: Iterable[FrameStandings]) -> None:
        """Take what was found out; of points or for a distance that are no more, nothing."""
        for each in found:
            name = each.loaded.frame.name
            is_current = each.distance_um == self.settings.distance_um
            if is_current and self._frames.get(name) is each.loaded:
                self._keep(name, each.by_team)
        self.figures_changed.emit()

    def set_scores(self, scores: AtypiaEvaluation) -> None:
        """Take the scores of atypia that were read."""
        self.scores = scores
        self.figures_changed.emit()

    def _figures_of(self, team: str) -> _TeamFigures:
        if team not in self._figures:
            names = tuple(
                frame.name
                for frame in self.cohort.frames
                if team in self._standings.get(frame.name, {})
            )
            stacked = StackedStandings.of([self._standings[name][team] for name in names])
            self._figures[team] = _TeamFigures(names, stacked)
        return self._figures[team]

    def _counts_of(self, team: str) -> Mapping[str, DetectionCounts]:
        """Give the counts of a team by frame, as far as they are known."""
        if team not in self._counts:
            own = self._figures_of(team)
            counts = own.stacked.counts(self.settings)
            self._counts[team] = dict(zip(own.names, counts, strict=True))
        return self._counts[team]

    def counts(self, frame: str, team: str | None) -> DetectionCounts | None:
        """Give TP, FP and FN of a team in a frame; None where they are not known."""
        return None if team is None else self._counts_of(team).get(frame)

    def lacking(self, frame: str, team: str) -> str:
        """Say why a team has no counts in a frame that was read: no file, or an unreadable one."""
        is_there = (team, frame) in self.cohort.predictions
        return "unreadable" if is_there else "missing"

    def pooled(self, team: str | None) -> DetectionCounts:
        """Sum over all frames of which it is known so far what they amount to."""
        return DetectionCounts() if team is None else summed(self._counts_of(team).values())

    def curve(self) -> PrecisionRecall | None:
        """Give precision and recall of the team shown, over all frames known so far."""
        own = None if self.team is None else self._figures_of(self.team)
        return own.stacked.curve if own is not None and own.names else None

    def is_known(self, name: str) -> bool:
        """Tell whether it is known what a frame amounts to, or that it cannot be read."""
        return name in self._standings or name in self.failed

    @property
    def n_known(self) -> int:
        """Of how many frames that is known."""
        return sum(self.is_known(frame.name) for frame in self.cohort.frames)

    def has_annotation(self, name: str) -> bool:
        """Tell whether a frame that was read has a usable annotation."""
        return name in self._frames and self._frames[name].reference is not None

    def is_told(self, name: str) -> bool:
        """Tell whether a frame was read, or it is known that it cannot be."""
        return name in self._frames or name in self.failed

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was odd in the frame shown."""
        return () if self.shown is None else self.shown.findings

    @property
    def confidence_range(self) -> tuple[float, float] | None:
        """Lowest and highest confidence of the team shown; None where it gives none."""
        found = [each.predictions.get(self.team or "") for each in self._frames.values()]
        own = [points.confidence for points in found if points is not None]
        known = np.concatenate([np.zeros(0), *own])
        known = known[~np.isnan(known)]
        return (float(known.min()), float(known.max())) if len(known) else None

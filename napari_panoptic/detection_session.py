"""The live state of a desk of detections: frame, team, settings, edits; no Qt here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from psygnal import Signal

from napari_panoptic.detected import LoadedFrame
from napari_panoptic.errors import Finding
from napari_panoptic.evaluation.detections import (
    DetectionCounts,
    DetectionSettings,
    JudgedPoints,
    PrecisionRecall,
    Standing,
    curve_of,
    judge_points,
    standing,
    summed,
)
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.points import DetectionCohort, Points

Place = tuple[str, str | None]
"""A frame's name, and a team's or None for the annotation."""


@dataclass
class _History:
    """Working copy of the points of one side of a frame, and what it was before.

    Parameters
    ----------
    past, future
        What undo and redo lead to, the nearest last.
    is_saved
        Whether the present state is in a file.
    """

    past: list[Points] = field(default_factory=list)
    future: list[Points] = field(default_factory=list)
    is_saved: bool = True


class DetectionSession:
    """What is shown of a cohort of detections, and what somebody changed in it.

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
        self._standings: dict[tuple[str, str], Standing] = {}
        self._histories: dict[Place, _History] = {}

    # What somebody chooses.

    def add_frame(self, loaded: LoadedFrame) -> None:
        """Take a frame that was read; one that is there stays, with its edits."""
        if loaded.frame.name not in self._frames:
            self._frames[loaded.frame.name] = loaded
            self._stand(loaded.frame.name)

    def add_failure(self, name: str, why: str) -> None:
        """Note that a frame cannot be read."""
        self.failed[name] = why
        self.figures_changed.emit()

    def show(self, name: str) -> None:
        """Show a frame that was added."""
        self.shown = self._frames[name]
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
        """Judge in another way."""
        if settings == self.settings:
            return
        is_further = settings.distance_um != self.settings.distance_um
        self.settings = settings
        if is_further:
            self._standings.clear()
            for name in self._frames:
                self._stand(name)
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
        history = self._histories.setdefault(self._place(side), _History())
        if not goes_on:
            history.past.append(before)
            history.future.clear()
        history.is_saved = False
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
        if (history := self._histories.get(self._place(side))) is not None:
            history.is_saved = True
            self.figures_changed.emit()

    @property
    def unsaved(self) -> list[Place]:
        """The sides with changes that no file has."""
        return [place for place, history in self._histories.items() if not history.is_saved]

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
        history.is_saved = False
        self._put(side, source.pop())
        self.points_changed.emit(side)
        return True

    def _put(self, side: Side, points: Points) -> None:
        if self.shown is None:
            return
        if side is Side.REFERENCE:
            self.shown = replace(self.shown, reference=points)
        else:
            predictions = {**self.shown.predictions, (self.team or ""): points}
            self.shown = replace(self.shown, predictions=predictions)
        name = self.shown.frame.name
        self._frames[name] = self.shown
        self._stand(name, None if side is Side.REFERENCE else self.team)
        self.judged = self._judge()
        if self.selection is not None:
            side_selected, row = self.selection
            known = self.points(side_selected)
            if known is None or row >= len(known):
                self.selection = None
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
        loaded = self._frames[name]
        if loaded.reference is None:
            return
        for own, points in loaded.predictions.items():
            if team in (None, own):
                self._standings[name, own] = standing(
                    loaded.reference, points, loaded.mpp_xy, self.settings.distance_um
                )

    def counts(self, frame: str, team: str | None) -> DetectionCounts | None:
        """Give TP, FP and FN of a team in a frame; None where they are not known."""
        found = self._standings.get((frame, team or ""))
        return None if found is None else found.counts(self.settings)

    def pooled(self, team: str | None) -> DetectionCounts:
        """Sum over all frames that were read so far."""
        found = [
            self.counts(frame.name, team)
            for frame in self.cohort.frames
            if (frame.name, team or "") in self._standings
        ]
        return summed(counts for counts in found if counts is not None)

    def curve(self) -> PrecisionRecall | None:
        """Give precision and recall of the team shown, over all frames read so far."""
        found = [
            self._standings[frame.name, self.team or ""]
            for frame in self.cohort.frames
            if (frame.name, self.team or "") in self._standings
        ]
        return curve_of(found) if found else None

    def is_read(self, name: str) -> bool:
        """Tell whether a frame was read."""
        return name in self._frames

    @property
    def n_read(self) -> int:
        """How many frames were read, or cannot be."""
        return len(self._frames) + len(self.failed.keys() - self._frames.keys())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was odd in the frame shown."""
        return () if self.shown is None else self.shown.findings

    @property
    def confidence_range(self) -> tuple[float, float] | None:
        """Lowest and highest confidence of the team shown; None where it gives none."""
        own = [one.confidence for (_, team), one in self._standings.items() if team == self.team]
        known = np.concatenate([np.zeros(0), *own])
        known = known[~np.isnan(known)]
        return (float(known.min()), float(known.max())) if len(known) else None

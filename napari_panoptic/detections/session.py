"""The live state of a desk of detections: frame, team, settings and edits, without Qt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from psygnal import Signal

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.detections.curve import ConfidenceCounts, DetectionCurve, StackedCounts
from napari_panoptic.detections.evaluate import (
    JUDGING_ERRORS,
    FrameCounts,
    LoadedFrame,
    count_frame_or_why,
    why_not_judged,
)
from napari_panoptic.detections.pairing import (
    DetectionCounts,
    DetectionSettings,
    JudgedPoints,
    judge_points,
)
from napari_panoptic.values.detections import DetectionCohort, Points
from napari_panoptic.values.vocabulary import Side

Place = tuple[str, str | None]
"""Name of a frame, and of a team or None for the annotation."""


@dataclass
class _History:
    """The undo history of the points of one side of a frame."""

    #: The points as read from, or last written to, a file.
    saved: Points
    #: The stacks of undo and redo: number of the step, and the points before it.
    past: list[tuple[int, Points]] = field(default_factory=list)
    future: list[tuple[int, Points]] = field(default_factory=list)


class _TeamFigures(NamedTuple):
    """The counts of a team, by frame and at any threshold."""

    counts: Mapping[str, DetectionCounts]
    stacked: StackedCounts


class DetectionSession:
    """The state of the window on a cohort of detections, with its edits.

    The shown frame is counted immediately. The others may take long: the owner of
    the session counts the `outdated` frames in another thread and passes the result
    to `take_counts`. Until then their figures are unknown, never stale.

    Parameters
    ----------
    cohort
        The cohort to show.
    """

    judged_changed = Signal()  # the outcomes of the shown points
    figures_changed = Signal()  # figures of frames and teams
    selection_changed = Signal()
    judging_failed = Signal(str)  # the first frame that cannot be judged; others are only marked

    def __init__(self, cohort: DetectionCohort) -> None:
        self.cohort = cohort
        self.settings = DetectionSettings()
        self.team: str | None = cohort.team_names[0] if cohort.teams else None
        self.shown: LoadedFrame | None = None
        self.judged: JudgedPoints | None = None
        self.selection: tuple[Side, int] | None = None
        self.failed: dict[str, str] = {}
        self.unjudged: dict[str, str] = {}
        self._has_told = False
        self._frames: dict[str, LoadedFrame] = {}
        self._by_confidence: dict[str, Mapping[str, ConfidenceCounts]] = {}
        self._figures: dict[str, _TeamFigures] = {}
        self._histories: dict[Place, _History] = {}
        self._n_steps = 0

    # Choices of the user.

    def add_frame(self, loaded: LoadedFrame) -> None:
        """Add a loaded frame, now `outdated`; a known one stays, with its edits."""
        name = loaded.frame.name
        self.failed.pop(name, None)
        if name not in self._frames:
            self._frames[name] = loaded

    def add_failure(self, name: str, why: str) -> None:
        """Mark a frame as unreadable."""
        self.failed[name] = why
        self.figures_changed.emit()

    def show(self, name: str) -> None:
        """Show a frame that was added."""
        self.shown = self._frames[name]
        if name not in self._by_confidence:
            self._count(name)
        self.selection = None
        self.judged = self._judge()
        self.figures_changed.emit()

    def set_team(self, team: str) -> None:
        """Show another team's detections."""
        if team == self.team:
            return
        self.team = self.cohort.checked_team(team)
        self.selection = None
        self._judge_again()

    def set_settings(self, settings: DetectionSettings) -> None:
        """Set how to match; another distance makes all frames but the shown one outdated."""
        if settings == self.settings:
            return
        is_further = settings.distance_um != self.settings.distance_um
        self.settings = settings
        self._figures.clear()
        if is_further:
            self._by_confidence.clear()
            self.unjudged.clear()
            self._has_told = False
            if self.shown is not None:
                self._count(self.shown.frame.name)
        self._judge_again()

    def select(self, selection: tuple[Side, int] | None) -> None:
        """Select a point of the frame shown, or none."""
        if selection != self.selection:
            self.selection = selection
            self.selection_changed.emit()

    # Edits.

    def points(self, side: Side) -> Points | None:
        """Return the current points of a side of the shown frame."""
        return None if self.shown is None else self._points_at(self._place(side))

    def edit(self, side: Side, points: Points, *, goes_on: bool = False) -> None:
        """Replace the points of a side after the user moved, added or deleted some.

        Parameters
        ----------
        side
            Side of the shown frame and team.
        points
            All of its points.
        goes_on
            Whether this continues the previous change, such as a drag; undo reverts
            them together.
        """
        before = self.points(side)
        if before is None or self.shown is None:
            return
        history = self._histories.setdefault(self._place(side), _History(before))
        if not goes_on or history.future:  # undone during a drag: a new change
            history.past.append((self._next_step(), before))
            history.future.clear()
        self._put(side, points)

    def undo(self) -> bool:
        """Undo the newest change of the shown points, on either side; False without any."""
        return self._travel(back=True)

    def redo(self) -> bool:
        """Redo the change undone last; False without any."""
        return self._travel(back=False)

    def may_undo(self, *, back: bool = True) -> bool:
        """Return whether there is a change to undo, or to redo."""
        return self._newest(back=back) is not None

    def mark_saved(self, side: Side) -> None:
        """Mark the current points of a side as saved."""
        history, now = self._histories.get(self._place(side)), self.points(side)
        if history is not None and now is not None:
            history.saved = now
            self.figures_changed.emit()

    @property
    def unsaved(self) -> list[Place]:
        """The sides with unsaved changes."""
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
        return name, None if side is Side.REFERENCE else self.team or ""

    def _next_step(self) -> int:
        self._n_steps += 1
        return self._n_steps

    def _newest(self, *, back: bool) -> Side | None:
        """Return the shown side that was changed, or undone, last."""
        when: dict[Side, int] = {}
        for side in Side:
            history = self._histories.get(self._place(side))
            steps = [] if history is None else history.past if back else history.future
            if steps:
                when[side] = steps[-1][0]
        return max(when, key=when.__getitem__, default=None)

    def _travel(self, *, back: bool) -> bool:
        side = self._newest(back=back)
        now = None if side is None else self.points(side)
        if side is None or now is None:
            return False
        history = self._histories[self._place(side)]
        source, target = history.past, history.future
        if not back:
            source, target = target, source
        target.append((self._next_step(), now))
        self._put(side, source.pop()[1])
        return True

    def _put(self, side: Side, points: Points) -> None:
        if self.shown is None:
            return
        before, selected = self.points(side), self.selection
        if before is not None and selected is not None and selected[0] is side:
            # Rows change when points are deleted or restored; ids do not.
            rows = np.flatnonzero(points.ids == before.ids[selected[1]])
            self.selection = (side, int(rows[0])) if len(rows) else None
        if side is Side.REFERENCE:
            self.shown = replace(self.shown, reference=points)
        else:
            predictions = {**self.shown.predictions, (self.team or ""): points}
            self.shown = replace(self.shown, predictions=predictions)
        name = self.shown.frame.name
        self._frames[name] = self.shown
        self._count(name, None if side is Side.REFERENCE else self.team)
        self._judge_again()

    # Figures.

    def _judge_again(self) -> None:
        """Judge the shown points after a change of team, settings or points."""
        self.judged = self._judge()
        self.judged_changed.emit()
        self.figures_changed.emit()

    def _judge(self) -> JudgedPoints | None:
        """Judge the shown points; a side without a file is unknown, not empty."""
        reference, prediction = self.points(Side.REFERENCE), self.points(Side.PREDICTION)
        shown = self.shown
        if shown is None or reference is None or prediction is None:
            return None
        if shown.frame.name in self.unjudged:
            return None
        try:
            return judge_points(reference, prediction, shown.mpp_xy, self.settings)
        except JUDGING_ERRORS as error:
            self._refuse(shown.frame.name, why_not_judged(shown.frame, error))
            return None

    def _count(self, name: str, team: str | None = None) -> None:
        """Count a frame, for one team if it is named."""
        loaded = self._frames[name]
        if team is not None and name not in self.unjudged:
            loaded = replace(loaded, predictions={team: loaded.predictions[team]})
        self._keep(count_frame_or_why(loaded, self.settings.distance_um))

    def _keep(self, found: FrameCounts) -> None:
        name = found.loaded.frame.name
        if found.why_not:
            self._refuse(name, found.why_not)
            return
        self.unjudged.pop(name, None)
        self._by_confidence[name] = {**self._by_confidence.get(name, {}), **found.by_team}
        for team in found.by_team:
            self._figures.pop(team, None)

    def _refuse(self, name: str, why: str) -> None:
        """Mark a frame as unjudgeable and drop its figures."""
        self.unjudged[name] = why
        self._by_confidence[name] = {}  # not outdated: it would fail again
        self._figures.clear()
        if not self._has_told:  # not again with every step of a drag
            self._has_told = True
            self.judging_failed.emit(why)

    @property
    def outdated(self) -> list[LoadedFrame]:
        """Loaded frames that still have to be counted."""
        return [each for name, each in self._frames.items() if name not in self._by_confidence]

    def take_counts(self, found: Iterable[FrameCounts]) -> None:
        """Store counts, except those for other points or another distance than the current."""
        for each in found:
            name = each.loaded.frame.name
            is_current = each.distance_um == self.settings.distance_um
            if is_current and self._frames.get(name) is each.loaded:
                self._keep(each)
        self.figures_changed.emit()

    def _figures_of(self, team: str) -> _TeamFigures:
        if team not in self._figures:
            names = [
                frame.name
                for frame in self.cohort.frames
                if team in self._by_confidence.get(frame.name, {})
            ]
            stacked = StackedCounts.of([self._by_confidence[name][team] for name in names])
            counts = dict(zip(names, stacked.counts(self.settings), strict=True))
            self._figures[team] = _TeamFigures(counts, stacked)
        return self._figures[team]

    def counts(self, frame: str, team: str | None) -> DetectionCounts | None:
        """Return TP, FP and FN of a team in a frame; None if unknown."""
        return None if team is None else self._figures_of(team).counts.get(frame)

    def lacking(self, frame: str, team: str) -> str:
        """Return why a team has no counts in a loaded frame."""
        if frame in self.unjudged:
            return "not judged"
        is_there = (team, frame) in self.cohort.predictions
        return "unreadable" if is_there else "missing"

    def why_nothing_is_judged(self) -> str:
        """Return why the shown points are not judged, and what to do.

        Empty if they are judged, and before a frame is shown.
        """
        shown, team = self.shown, self.team
        if shown is None or self.judged is not None:
            return ""
        name = shown.frame.name
        if name in self.unjudged:
            return f"{self.unjudged[name]}."
        lacks_reference = shown.reference is None
        if team is None and not lacks_reference:
            expected = self.cohort.predictions_expected
            return f"This cohort has no predictions: {expected}. Put them there and open it again."
        concerned = None if lacks_reference else team
        for finding in self.findings:
            if finding.kind is FindingKind.UNREADABLE and finding.team == concerned:
                others = "" if lacks_reference else " Other teams are not concerned."
                return f"{finding.message}. Mend this file, and open the cohort again.{others}"
        if lacks_reference:
            return (
                f"Frame {name} has no annotation: its points can be looked at, not judged. Add the "
                f"file of its points, and open the cohort again."
            )
        return (
            f"Team {team} has no file of frame {name}, which is left out of its figures; an empty "
            f"file says that nothing was found. Add it, and open the cohort again."
        )

    def pooled(self, team: str | None) -> DetectionCounts:
        """Return the sum over all frames counted so far."""
        counts = {} if team is None else self._figures_of(team).counts
        return sum(counts.values(), DetectionCounts())

    @property
    def n_counted(self) -> int:
        """Number of frames in which the shown team is counted so far."""
        return 0 if self.team is None else len(self._figures_of(self.team).counts)

    def curve(self) -> DetectionCurve | None:
        """Return precision and recall of the shown team, over all frames counted so far."""
        own = None if self.team is None else self._figures_of(self.team)
        return own.stacked.curve if own is not None and own.counts else None

    def is_known(self, name: str) -> bool:
        """Return whether a frame is counted, or known to be unreadable."""
        return name in self._by_confidence or name in self.failed

    @property
    def n_known(self) -> int:
        """Number of frames that are counted or unreadable."""
        return sum(self.is_known(frame.name) for frame in self.cohort.frames)

    def has_annotation(self, name: str) -> bool:
        """Return whether a loaded frame has a readable annotation."""
        return name in self._frames and self._frames[name].reference is not None

    def is_loaded_or_failed(self, name: str) -> bool:
        """Return whether loading a frame has finished, successfully or not."""
        return name in self._frames or name in self.failed

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the shown frame."""
        return () if self.shown is None else self.shown.findings

    @property
    def confidence_range(self) -> tuple[float, float] | None:
        """Lowest and highest confidence of the shown team; None without any."""
        found = [each.predictions.get(self.team or "") for each in self._frames.values()]
        own = [points.confidence for points in found if points is not None]
        known = np.concatenate([np.zeros(0), *own])
        known = known[~np.isnan(known)]
        return (float(known.min()), float(known.max())) if len(known) else None

"""The live state of a desk of detections: frame, team, settings, edits; no Qt here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from psygnal import Signal

from napari_panoptic.common.errors import Finding, FindingKind
from napari_panoptic.detections.cohort import DetectionCohort, Points
from napari_panoptic.detections.evaluate import (
    FrameStandings,
    LoadedFrame,
    standings_or_why,
    why_not_judged,
)
from napari_panoptic.detections.pairing import (
    DetectionCounts,
    DetectionSettings,
    JudgedPoints,
    PrecisionRecall,
    StackedStandings,
    Standing,
    judge_points,
    summed,
)
from napari_panoptic.detections.scores import AtypiaEvaluation
from napari_panoptic.nuclei.values.vocabulary import Side

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
        What undo and redo lead to, the nearest last: when the change was made
        or taken back, and the points without it.
    """

    saved: Points
    past: list[tuple[int, Points]] = field(default_factory=list)
    future: list[tuple[int, Points]] = field(default_factory=list)


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
        self.scores: AtypiaEvaluation | None = None
        self._standings: dict[str, Mapping[str, Standing]] = {}
        self._figures: dict[str, _TeamFigures] = {}
        self._counts: dict[str, dict[str, DetectionCounts]] = {}
        self._histories: dict[Place, _History] = {}
        self._n_steps = 0

    # What somebody chooses.

    def add_frame(self, loaded: LoadedFrame) -> None:
        """Take a frame that was read, now `outdated`; one that is there stays, with its edits."""
        name = loaded.frame.name
        self.failed.pop(name, None)
        if name not in self._frames:
            self._frames[name] = loaded

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
            self.unjudged.clear()
            self._has_told = False
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
        """Return the points of a side of the frame shown, as they are now."""
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
        if not goes_on or history.future:  # taken back in the midst of a drag: a new change
            history.past.append((self._next_step(), before))
            history.future.clear()
        self._put(side, points)

    def undo(self) -> bool:
        """Take the newest change of the points shown back, of either side; False without any."""
        return self._travel(back=True)

    def redo(self) -> bool:
        """Make the change again that was taken back last; False where there is none."""
        return self._travel(back=False)

    def may_undo(self, *, back: bool = True) -> bool:
        """Return whether there is something to take back, or to make again."""
        return self._newest(back=back) is not None

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

    def _next_step(self) -> int:
        self._n_steps += 1
        return self._n_steps

    def _newest(self, *, back: bool) -> Side | None:
        """Find the side of what is shown that was changed, or changed back, last."""
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
        shown = self.shown
        if shown is None or reference is None or prediction is None:
            return None
        if shown.frame.name in self.unjudged:
            return None
        try:
            return judge_points(reference, prediction, shown.mpp_xy, self.settings)
        except Exception as error:  # noqa: BLE001 - as in `standings_or_why`
            self._refuse(shown.frame.name, why_not_judged(shown.frame, error))
            return None

    def _stand(self, name: str, team: str | None = None) -> None:
        """Find out what a frame amounts to, of one team only where it is named."""
        loaded = self._frames[name]
        if team is not None and name not in self.unjudged:
            loaded = replace(loaded, predictions={team: loaded.predictions[team]})
        self._keep(standings_or_why(loaded, self.settings.distance_um))

    def _keep(self, found: FrameStandings) -> None:
        name = found.loaded.frame.name
        if found.why_not:
            self._refuse(name, found.why_not)
            return
        self.unjudged.pop(name, None)
        self._standings[name] = {**self._standings.get(name, {}), **found.by_team}
        for team in found.by_team:
            self._figures.pop(team, None)
            self._counts.pop(team, None)

    def _refuse(self, name: str, why: str) -> None:
        """Note that a frame cannot be judged: it has no figures, old ones neither."""
        self.unjudged[name] = why
        self._standings[name] = {}  # not outdated: it would fail again
        self._figures.clear()
        self._counts.clear()
        if not self._has_told:  # else once more with every step of a drag
            self._has_told = True
            self.judging_failed.emit(why)

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
                self._keep(each)
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
        """Return the counts of a team by frame, as far as they are known."""
        if team not in self._counts:
            own = self._figures_of(team)
            counts = own.stacked.counts(self.settings)
            self._counts[team] = dict(zip(own.names, counts, strict=True))
        return self._counts[team]

    def counts(self, frame: str, team: str | None) -> DetectionCounts | None:
        """Return TP, FP and FN of a team in a frame; None where they are not known."""
        return None if team is None else self._counts_of(team).get(frame)

    def lacking(self, frame: str, team: str) -> str:
        """Say why a team has no counts in a frame that was read: no file, or an unreadable one."""
        if frame in self.unjudged:
            return "not judged"
        is_there = (team, frame) in self.cohort.predictions
        return "unreadable" if is_there else "missing"

    def why_nothing_is_judged(self) -> str:
        """Describe why the points shown are not judged: what was expected, found, and what to do.

        Empty where they are judged, and before anything is shown.
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
        """Sum over all frames of which it is known so far what they amount to."""
        return DetectionCounts() if team is None else summed(self._counts_of(team).values())

    @property
    def n_counted(self) -> int:
        """In how many frames the team shown has figures so far: sums are of these."""
        return 0 if self.team is None else len(self._counts_of(self.team))

    def curve(self) -> PrecisionRecall | None:
        """Return precision and recall of the team shown, over all frames known so far."""
        own = None if self.team is None else self._figures_of(self.team)
        return own.stacked.curve if own is not None and own.names else None

    def is_known(self, name: str) -> bool:
        """Return whether it is known what a frame amounts to, or that it cannot be read."""
        return name in self._standings or name in self.failed

    @property
    def n_known(self) -> int:
        """Of how many frames that is known."""
        return sum(self.is_known(frame.name) for frame in self.cohort.frames)

    def has_annotation(self, name: str) -> bool:
        """Return whether a frame that was read has a usable annotation."""
        return name in self._frames and self._frames[name].reference is not None

    def is_told(self, name: str) -> bool:
        """Return whether a frame was read, or it is known that it cannot be."""
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

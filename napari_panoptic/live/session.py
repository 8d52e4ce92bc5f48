"""The live state behind every view: cohort, region, team, settings, selection.

Independent of Qt and napari. Regions are loaded in any thread; the result is
delivered on the thread that owns the session, and the answer to an outdated
request is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.live.mends import Box, Mend, SideChange
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.live.working_copies import WHOLE, EditedAnnotation, RegionCopies, key_of
from napari_panoptic.nuclei.edits import Edit, IdWindow
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.questions.engines.thresholds import evaluation_at_threshold
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.conventions import DEFAULT_PROTOCOL
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.reading import HELD_UP_TO_PX, Reading
from napari_panoptic.values.settings import (
    EvaluationSettings,
    Overlaps,
    protocol,
)
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import TiledPair


@dataclass(frozen=True, eq=False)
class EditedEvaluation:
    """An edit and the evaluation after it."""

    #: Whose objects were edited; for the reference, the team looked at.
    team: str
    side: Side
    #: The changed pixels and objects. None if the class of an object or the ambiguous
    #: area was changed.
    edit: Edit | None
    #: The team's evaluation after it.
    evaluation: Evaluation
    #: Whether it only follows the source of the objects, such as a layer of the user: there is
    #: nothing to save then.
    is_mirrored: bool = False
    #: Whether the ambiguous area was redrawn.
    is_area: bool = False

    box: Box | None = None
    """y0, x0, y1, x1 of a window that contains all changed pixels, if known."""


@dataclass(frozen=True)
class Selection:
    """The selected object."""

    #: Whose outcomes are meant.
    team: str
    #: Which side the object is on.
    side: Side
    #: 0-based row among the objects of that side.
    row: int
    #: The object's id.
    id: int


@dataclass(frozen=True)
class Request:
    """A request to show a region; the newest number wins."""

    number: int
    region: str
    settings: EvaluationSettings
    source: Source | None
    team: str | None = None
    """The team to evaluate before the others; None to evaluate all at the same time."""


@dataclass(frozen=True, eq=False)
class _Cut:
    """An evaluation without the predictions of low score, and that with all of them."""

    threshold: float
    whole: Evaluation
    evaluation: Evaluation


class Session:
    """Cohort, region, team, settings and selection, with a signal for each.

    Parameters
    ----------
    cohort
        The shown cohort.
    settings
        How to evaluate; None for the default protocol.
    """

    region_changed = Signal(RegionSnapshot)
    teams_came = Signal(RegionSnapshot)  # other teams were evaluated; the shown contents stay
    team_changed = Signal(str)
    settings_changed = Signal(EvaluationSettings)
    source_changed = Signal(object)  # Source | None: predictions are read from other files
    selection_changed = Signal(object)  # Selection | None
    selected_again = Signal(Selection)  # the user chose the object that is selected already
    summary_changed = Signal(RegionSummary)
    edited = Signal(EditedEvaluation)
    copies_changed = Signal()  # other sides, or the ambiguous area, differ from the files now
    edits_discarded = Signal()  # all edits of the region were discarded
    threshold_changed = Signal(object)  # float | None: predictions of a lower score are left out

    def __init__(self, cohort: Cohort, settings: EvaluationSettings | None = None) -> None:
        self.cohort = cohort
        self.held_up_to_px = HELD_UP_TO_PX  # larger regions are evaluated in windows
        self.protocol = protocol(DEFAULT_PROTOCOL)
        self._settings = settings or self.protocol
        self._source: Source | None = None
        self._region_name: str | None = None
        self._newest = 0
        teams = (*cohort.competing_teams, *cohort.teams)
        self._team = teams[0].name if teams else None
        self._selection: Selection | None = None
        self._snapshot: RegionSnapshot | None = None
        self._loaded: RegionSnapshot | None = None
        self._threshold: float | None = None
        self._last_cut: _Cut | None = None
        self._summaries: dict[tuple[str, str], RegionSummary] = {}
        self._copies: dict[str, RegionCopies] = {}

    @property
    def snapshot(self) -> RegionSnapshot | None:
        """The shown region; None before the first delivery."""
        return self._snapshot

    @property
    def loaded(self) -> RegionSnapshot | None:
        """The snapshot of the files on disk, without edits.

        Workers may read it: it never changes, while a snapshot with edits
        changes with every stroke.
        """
        return self._loaded

    @property
    def wanted_region(self) -> str | None:
        """The region requested last, even if it is not there yet; None before any request."""
        return self._region_name

    @property
    def settings(self) -> EvaluationSettings:
        """The settings requested last."""
        return self._settings

    @property
    def source(self) -> Source | None:
        """The format of predictions requested last."""
        return self._source

    @property
    def reading(self) -> Reading:
        """How all teams are read and evaluated."""
        return Reading(self._settings, self._source, self.cohort.team_names, self.held_up_to_px)

    @property
    def team(self) -> str | None:
        """The team whose outcomes are shown; None in a cohort without teams."""
        return self._team

    @property
    def selection(self) -> Selection | None:
        """The selected object."""
        return self._selection

    @property
    def summaries(self) -> Mapping[tuple[str, str], RegionSummary]:
        """``(region, team)`` -> its line, as far as computed."""
        return self._summaries

    @property
    def evaluation(self) -> Evaluation | None:
        """The current team's evaluation of the current region, if there is one."""
        if self.snapshot is None or self.team is None:
            return None
        return self.snapshot.evaluations.get(self.team)

    @property
    def shown(self) -> Evaluation | Evaluation[TiledPair] | None:
        """The current team's evaluation of a held region or of a slide."""
        return None if self.snapshot is None else self.snapshot.result(self.team)

    @property
    def threshold(self) -> float | None:
        """Predictions of the current region and team with a lower score are left out, if any.

        It holds for the shown figures of this region, also under other settings, until another
        region or team is shown or something is edited. Summaries are without it.
        """
        return self._threshold

    @property
    def n_below_threshold(self) -> int:
        """How many predictions the threshold leaves out."""
        cut = self._current_cut
        if cut is None:
            return 0
        return len(cut.whole.outcomes.prediction) - len(cut.evaluation.outcomes.prediction)

    def with_all_scores(self, team: str | None) -> Evaluation | Evaluation[TiledPair] | None:
        """Return a team's evaluation of the current region, whatever the threshold."""
        cut = self._current_cut
        if cut is not None and team == self.team:
            return cut.whole
        return None if self.snapshot is None else self.snapshot.result(team)

    def set_threshold(self, threshold: float | None) -> None:
        """Leave out predictions with a lower score, in the region and team that are shown.

        Nothing is changed but the evaluation: pixels, files and summaries stay.

        Parameters
        ----------
        threshold
            The lowest score that stays; None for all predictions. Those without a score stay.

        Raises
        ------
        PanopticError
            If the region is under edit.
        """
        if threshold == self._threshold:
            return
        if threshold is not None and self._has_edits_here:
            raise PanopticError(
                "no threshold in a region with unsaved edits. Save or discard the edits first"
            )
        if self._snapshot is not None and (cut := self._current_cut) is not None:
            self._snapshot = _replaced(self._snapshot, str(self.team), cut.whole)
        self._threshold, self._last_cut = threshold, None
        if self._snapshot is not None:
            self._snapshot = self._at_threshold(self._snapshot)
        before = self._selection
        self._selection = self._refound(before)
        self.threshold_changed.emit(threshold)
        if before is not None and self._selection is None:
            self.selection_changed.emit(None)

    @property
    def _current_cut(self) -> _Cut | None:
        """The cut, if it is shown."""
        cut = self._last_cut
        return cut if cut is not None and self.evaluation is cut.evaluation else None

    @property
    def _has_edits_here(self) -> bool:
        return self._loaded is not None and self.has_edits(self._loaded.region.name)

    def _at_threshold(self, snapshot: RegionSnapshot) -> RegionSnapshot:
        """Return a snapshot without the predictions of low score of the current team."""
        team = self.team
        whole = snapshot.evaluations.get(team or "")
        if self._threshold is None or team is None or whole is None:
            return snapshot
        cut = self._last_cut
        if cut is None or cut.whole is not whole or cut.threshold != self._threshold:
            cut = _Cut(self._threshold, whole, evaluation_at_threshold(whole, self._threshold))
            self._last_cut = cut
        return _replaced(snapshot, team, cut.evaluation)

    def request(
        self,
        *,
        region_name: str | None = None,
        settings: EvaluationSettings | None = None,
        source: Source | str | None = "unchanged",
        team_first: bool = True,
    ) -> Request:
        """Request a region or other settings; arguments that are left out stay as requested last.

        Parameters
        ----------
        region_name, settings, source
            What to show.
        team_first
            Whether the shown team may come before the others.

        Returns
        -------
        Request
            To be answered by :func:`napari_panoptic.live.snapshots.load_region` and
            :meth:`deliver`.

        Raises
        ------
        PanopticError
            For an unknown region, or a cohort without regions.
        """
        if region_name is None:
            region_name = self._current_region_name()
        self._region_name = self.cohort.region(region_name).name
        before = self._source, self._settings
        if source != "unchanged":
            self._source = None if source is None else Source(source)
        if settings is not None:
            self._settings = settings
        if self._source != before[0]:
            self.source_changed.emit(self._source)
        if self._settings != before[1]:
            self.settings_changed.emit(self._settings)
        self._newest += 1
        team = self._team if team_first else None
        return Request(self._newest, self._region_name, self._settings, self._source, team)

    def is_current(self, request: Request) -> bool:
        """Return whether there is no newer request."""
        return request.number == self._newest

    def deliver(self, request: Request, snapshot: RegionSnapshot) -> bool:
        """Show the answer to a request, unless there is a newer request.

        An answer may come in two steps: first the shown team
        (`region_changed`), then the others (`teams_came`). The selected object
        stays selected if it still exists.

        Returns
        -------
        bool
            False if the answer came too late and was dropped.
        """
        if not self.is_current(request):
            return False
        same_region = (
            self._snapshot is not None and self._snapshot.region.name == snapshot.region.name
        )
        before, shown = self._selection, self.shown
        self._loaded = snapshot
        if not same_region or self._has_edits_here:
            self._threshold = self._last_cut = None
        used = {name: copies for name, copies in self._copies.items() if copies.is_used}
        self._copies = used
        if snapshot.region.name in used:
            used[snapshot.region.name].follow(snapshot)
        self._snapshot = self._at_threshold(self._with_copies(snapshot))
        if same_region and shown is not None and self.shown is shown:
            self.teams_came.emit(self._snapshot)
            return True
        self._selection = None
        self.region_changed.emit(self._snapshot)
        selection = self._refound(before) if same_region else None
        if selection is not None:
            self.select(selection)
        elif before is not None and self._selection is None:
            self.selection_changed.emit(None)
        return True

    def set_team(self, name: str) -> None:
        """Show another team's outcomes; a selected reference object stays selected."""
        if name == self._team:
            return
        self.cohort.checked_team(name)
        selection = self._selection
        self._threshold = self._last_cut = None
        self._team = name
        if self._loaded is not None:
            self._snapshot = self._with_copies(self._loaded)
        self._selection = None
        self.team_changed.emit(name)
        if selection is not None and selection.side is Side.REFERENCE:
            self.select(self._refound(replace(selection, team=name)))
        else:
            self.selection_changed.emit(None)

    def select(self, selection: Selection | None) -> None:
        """Select an object, or none."""
        if selection != self._selection:
            self._selection = selection
            self.selection_changed.emit(selection)
        elif selection is not None:
            self.selected_again.emit(selection)

    def select_row(self, side: Side, row: int) -> None:
        """Select an object of the current team's evaluation by its row."""
        evaluation = self.shown
        if evaluation is None or self.team is None:
            return
        ids = evaluation.outcomes.side(side).ids
        if 0 <= row < len(ids):
            self.select(Selection(self.team, side, row, int(ids[row])))

    def edit(
        self,
        side: Side,
        y: NDArray[np.integer],
        x: NDArray[np.integer],
        ids: NDArray[np.integer] | int,
        *,
        classes: Mapping[int, str] | None = None,
    ) -> EditedEvaluation:
        """Set pixels of a working copy of the reference or of the current team's prediction.

        Parameters
        ----------
        side
            Which of the two.
        y, x
            Pixels (n,), each at most once.
        ids
            One id, or one per pixel; 0 erases.
        classes
            Id -> class, for new ids and those without pixels.

        Raises
        ------
        PanopticError
            If there is nothing to edit, or a new id has no class; nothing is
            changed then.
        """
        return self._edit(
            side,
            lambda copies, team: copies.edit(
                team, side, lambda pair: pair.set_pixels(side, y, x, ids, classes=classes), (y, x)
            ),
        )

    def edit_window(
        self,
        side: Side,
        window: IdWindow,
        *,
        classes: Mapping[int, str] | None = None,
        renamed: Mapping[int, str] | None = None,
    ) -> EditedEvaluation:
        """Set all pixels of a window of a working copy; see :meth:`edit`.

        Existing objects may get another class with it (`renamed`, id -> class);
        everything is evaluated once.
        """
        return self._edit(
            side,
            lambda copies, team: copies.edit(
                team,
                side,
                lambda pair: pair.set_window(side, window, classes=classes, renamed=renamed),
                _slices(window.box),
            ),
        )

    def mirror_window(
        self,
        side: Side,
        window: IdWindow,
        *,
        team: str | None = None,
        classes: Mapping[int, str] | None = None,
    ) -> EditedEvaluation:
        """Follow a change of the source of the objects; see :meth:`edit_window`.

        Parameters
        ----------
        side, window, classes
            As there.
        team
            Whose prediction it is, also one that is not shown; None for the one
            that is.
        """
        return self._edit(
            side,
            lambda copies, whose: copies.edit(
                whose,
                side,
                lambda pair: pair.set_window(side, window, classes=classes),
                _slices(window.box),
                is_mirrored=True,
            ),
            team=team,
            is_mirrored=True,
            box=window.box,
        )

    def apply(self, mend: Mend) -> tuple[EditedEvaluation, ...]:
        """Apply an action on objects, see `napari_panoptic.live.actions`; or its inverse.

        Returns
        -------
        tuple of EditedEvaluation
            One for each side that changes, and one for the ambiguous area.

        Raises
        ------
        PanopticError
            If there is nothing to edit, or the objects have changed since the action was
            prepared; nothing is changed then.
        """
        here, team = self._here, str(self.team)
        for change in mend.sides:
            change.check(here.pair(team))
        done = [self._apply(change) for change in mend.sides]
        if mend.area is not None:
            area = mend.area.applied_to(here.ambiguous, here.pair(team).reference.shape)
            done.append(self._set_area(area, _slices(mend.area.box)))
        return tuple(done)

    def _apply(self, change: SideChange) -> EditedEvaluation:
        area = change.y, change.x
        return self._edit(
            change.side,
            lambda copies, team: copies.edit(team, change.side, change.apply, area),
            box=change.box,
        )

    def evaluate_edited(self) -> None:
        """Evaluate the teams whose evaluation is older than the edits."""
        snapshot = self.snapshot
        if snapshot is None or not self._has_edits_here:
            return
        copies, settings = self._here, self._settings_of_edits
        missing = [team for team in snapshot.predictions if team not in snapshot.evaluations]
        evaluated = {team: copies.evaluate(team, settings) for team in missing}
        self._snapshot = replace(snapshot, results={**snapshot.results, **evaluated})
        for team, each in evaluated.items():
            self.add_summary(RegionSummary.of(snapshot.region.name, team, each))

    def set_class(self, side: Side, id_: int, class_name: str) -> EditedEvaluation:
        """Set the class of an object of a working copy."""
        return self._edit(
            side,
            lambda copies, team: copies.edit(
                team, side, lambda pair: pair.set_class(side, id_, class_name), WHOLE
            ),
        )

    def known_ids(self, side: Side) -> NDArray[np.int64]:
        """Return the ids that have a class, those of objects without pixels included."""
        return self._here.known_ids(side, str(self.team))

    def set_ambiguous(
        self, ambiguous: NDArray[np.bool_] | None, *, is_mirrored: bool = False
    ) -> EditedEvaluation:
        """Redraw the ambiguous area of the region, for all teams.

        Parameters
        ----------
        ambiguous
            bool image (y, x), or None for no such area.
        is_mirrored
            Whether this only follows the source of the area.
        """
        # One copy for all teams, which the caller cannot change.
        area = None if ambiguous is None else ambiguous.copy()
        return self._set_area(area, is_mirrored=is_mirrored)

    def _set_area(
        self,
        area: NDArray[np.bool_] | None,
        changed: tuple[slice, slice] | None = None,
        *,
        is_mirrored: bool = False,
    ) -> EditedEvaluation:
        return self._edit(
            Side.REFERENCE,
            lambda copies, _team: copies.set_ambiguous(area, changed, is_mirrored=is_mirrored),
            is_mirrored=is_mirrored,
            is_area=True,
        )

    def has_edits(self, region: str) -> bool:
        """Return whether anything in a region differs from the files."""
        return region in self._copies and self._copies[region].has_edits

    @property
    def has_any_edits(self) -> bool:
        """Whether anything in any region differs from the files."""
        return any(copies.has_edits for copies in self._copies.values())

    def is_edited(self, side: Side, team: str | None = None) -> bool:
        """Return whether a side of the current region differs from the file."""
        return self._has_edits_here and key_of(side, team or self.team) in self._here.edited

    def is_drawn(self, side: Side, team: str | None = None) -> bool:
        """Return whether a side differs from the file by edits that are not mirrored."""
        return self.is_edited(side, team) and key_of(side, team or self.team) in self._here.drawn

    @property
    def drawn(self) -> list[tuple[Side, str | None]]:
        """The sides of the current region, with their teams, that `is_drawn` is true of."""
        teams = () if self.snapshot is None else self.snapshot.predictions
        found: list[tuple[Side, str | None]] = [
            (Side.PREDICTION, team) for team in teams if self.is_drawn(Side.PREDICTION, team)
        ]
        return [(Side.REFERENCE, None), *found] if self.is_drawn(Side.REFERENCE) else found

    @property
    def is_area_drawn(self) -> bool:
        """Whether the ambiguous area of the region was redrawn on the desk."""
        here = self._here if self._has_edits_here else None
        return here is not None and here.is_area_drawn and here.is_ambiguous_edited

    @property
    def is_flattened(self) -> bool:
        """Whether objects of the current region would keep shared pixels but for its edits."""
        return self._has_edits_here and self._here.loaded.keeps_overlaps

    def original_evaluation(self) -> Evaluation | None:
        """Evaluate the current team on the files on disk, if anything was edited."""
        if not self._has_edits_here:
            return None
        return self._here.evaluate_on_disk(str(self.team), self._settings_of_edits)

    def edited_labels(self, side: Side) -> LabelImage:
        """Return the reference or the current team's prediction as it is now, to be saved."""
        return self._here.labels(side, str(self.team))

    @property
    def has_drawn_annotations(self) -> bool:
        """Whether the annotation of any region differs from the files by edits by hand."""
        return any(copies.is_annotation_drawn for copies in self._copies.values())

    def drawn_annotations(self) -> list[EditedAnnotation]:
        """Return the annotations of all regions that differ by edits by hand."""
        return [own.annotation() for own in self._copies.values() if own.is_annotation_drawn]

    def discard_edits(self) -> None:
        """Go back to the files of the current region."""
        if self._loaded is None or not self._has_edits_here:
            return
        del self._copies[self._loaded.region.name]
        before, self._selection = self._selection, None
        self._snapshot = self._loaded
        self.edits_discarded.emit()
        self.copies_changed.emit()
        self.region_changed.emit(self._snapshot)
        self.select(self._refound(before))

    def add_summary(self, summary: RegionSummary) -> None:
        """Remember one line of the cohort summary."""
        self._summaries[summary.region, summary.team] = summary
        self.summary_changed.emit(summary)

    def clear_summaries(self) -> None:
        """Forget the cohort summary, since settings changed."""
        self._summaries.clear()

    def _current_region_name(self) -> str:
        """Return the name of the region requested last, which may not be loaded yet."""
        if self._region_name is not None:
            return self._region_name
        if not self.cohort.regions:
            raise PanopticError("this cohort has no regions to show", path=self.cohort.root)
        return self.cohort.regions[0].name

    @property
    def _here(self) -> RegionCopies:
        """The working copies of the current region, as on disk until something is edited."""
        loaded = self._loaded
        if loaded is None or self.team is None or loaded.reference is None:
            raise PanopticError(
                "there is nothing to edit: a region with an annotation and a team is needed"
            )
        name = loaded.region.name
        if name not in self._copies:
            self._copies[name] = RegionCopies(loaded)
        return self._copies[name]

    @property
    def _settings_of_edits(self) -> EvaluationSettings:
        """The settings by which objects under edit are judged: a stroke sets one id per pixel."""
        return self.settings.replaced(overlaps=Overlaps.FLATTEN)

    def _edit(
        self,
        side: Side,
        do: Callable[[RegionCopies, str], Edit | None],
        *,
        team: str | None = None,
        is_mirrored: bool = False,
        is_area: bool = False,
        box: Box | None = None,
    ) -> EditedEvaluation:
        """Change working copies for a team, the one shown where None; show what that changes."""
        self.set_threshold(None)
        copies, whose = self._here, team or str(self.team)
        key = key_of(side, whose)
        was_edited, was_other = self._edited_here, copies.is_restored_differently(key)
        edit = do(copies, whose)
        shown = self._with_copies(copies.loaded)
        evaluation = shown.evaluations.get(whose) or copies.evaluate(whose, self._settings_of_edits)
        self._snapshot = _replaced(shown, whose, evaluation)
        selection = self._selection
        self._selection = self._refound(selection)
        result = EditedEvaluation(whose, side, edit, evaluation, is_mirrored, is_area, box)
        if self._edited_here != was_edited:
            self.copies_changed.emit()
        if was_other and key not in copies.edited:  # more pixels changed than were edited
            self.region_changed.emit(self._snapshot)
        self.edited.emit(result)
        if selection is not None and self._selection is None:
            self.selection_changed.emit(None)
        return result

    @property
    def _edited_here(self) -> tuple[frozenset[str | None], bool]:
        """The sides that differ from the files, and whether the area does."""
        return self._here.edited, self._here.is_ambiguous_edited

    def _with_copies(self, loaded: RegionSnapshot) -> RegionSnapshot:
        """Return a region with the working copies instead of the files on disk.

        Only the shown team is evaluated again; others that the edits
        concern have no evaluation until they are shown.
        """
        if not self.has_edits(loaded.region.name):
            return loaded
        copies, settings = self._here, self._settings_of_edits
        pairs = {team: copies.pair(team) for team in loaded.predictions}
        evaluations = {
            team: evaluation
            for team, evaluation in loaded.evaluations.items()
            if not copies.concern(team) and not evaluation.pair.has_planes
        }
        if self.team in pairs:
            evaluations[self.team] = copies.evaluate(self.team, settings)
        reference = next((pair.reference for pair in pairs.values()), loaded.reference)
        return replace(
            loaded,
            reference=reference,
            ambiguous=copies.ambiguous,
            predictions={team: pair.prediction for team, pair in pairs.items()},
            results=evaluations,
            settings=loaded.settings.replaced(overlaps=Overlaps.FLATTEN),
        )

    def _refound(self, selection: Selection | None) -> Selection | None:
        """Find a selected object again by its id, in another snapshot or team."""
        evaluation = self.shown
        if selection is None or evaluation is None:
            return None
        row = evaluation.outcomes.side(selection.side).row_of(selection.id)
        return None if row is None else replace(selection, row=row)


def _slices(box: Box) -> tuple[slice, slice]:
    y0, x0, y1, x1 = box
    return slice(y0, y1), slice(x0, x1)


def _replaced(snapshot: RegionSnapshot, team: str, evaluation: Evaluation) -> RegionSnapshot:
    return replace(snapshot, results={**snapshot.results, team: evaluation})

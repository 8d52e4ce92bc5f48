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
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.live.working_copies import Area, Originals, WorkingCopies
from napari_panoptic.nuclei.edits import Edit, EditedPair, IdWindow
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.nuclei.regions.reading import HELD_UP_TO_PX
from napari_panoptic.questions.thresholds import evaluation_at_threshold
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import (
    DEFAULT_PROTOCOL,
    EvaluationSettings,
    Overlaps,
    protocol,
)
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import TiledPair


@dataclass(frozen=True, eq=False)
class EditedEvaluation:
    """An edit and the evaluation after it.

    Parameters
    ----------
    team, side
        Whose objects were edited; for the reference, the team looked at.
    edit
        What was changed in the pixels and objects. None if the class of an
        object or the ambiguous area was changed.
    evaluation
        The team's evaluation after it.
    is_mirrored
        Whether it only follows the source of the objects, such as a layer of
        the user: there is nothing to save then.
    """

    team: str
    side: Side
    edit: Edit | None
    evaluation: Evaluation
    is_mirrored: bool = False
    box: tuple[int, int, int, int] | None = None
    """y0, x0, y1, x1 of a window that contains all changed pixels, if known."""


@dataclass(frozen=True)
class Selection:
    """The selected object.

    Parameters
    ----------
    team
        Whose outcomes are meant.
    side
        Which side the object is on.
    row
        0-based row among the objects of that side.
    id
        The object's id.
    """

    team: str
    side: Side
    row: int
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
        The cohort that is shown.
    settings
        How to evaluate; None for the default protocol.
    """

    region_changed = Signal(RegionSnapshot)
    team_changed = Signal(str)
    settings_changed = Signal(EvaluationSettings)
    source_changed = Signal(object)  # Source | None: predictions are read from other files
    selection_changed = Signal(object)  # Selection | None
    selected_again = Signal(Selection)  # the user chose the object that is selected already
    summary_changed = Signal(RegionSummary)
    edited = Signal(EditedEvaluation)
    copies_changed = Signal()  # a working copy was created or discarded
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
        self._copies = WorkingCopies()
        # What was asked for, and the evaluation of the files on disk that answers it.
        self._original: tuple[tuple[object, ...], Evaluation] | None = None
        # What has edits that are not mirrored: sides by region and team, areas by region.
        self._drawn: set[tuple[str, str | None]] = set()
        self._drawn_areas: set[str] = set()

    @property
    def snapshot(self) -> RegionSnapshot | None:
        """What is shown; None before the first delivery."""
        return self._snapshot

    @property
    def loaded(self) -> RegionSnapshot | None:
        """The snapshot of the files on disk, without edits.

        Workers may read it: it never changes, while a snapshot with edits
        changes with every stroke.
        """
        return self._loaded

    @property
    def copies(self) -> WorkingCopies:
        """The working copies."""
        return self._copies

    @property
    def settings(self) -> EvaluationSettings:
        """The settings requested last."""
        return self._settings

    @property
    def source(self) -> Source | None:
        """The format of predictions requested last."""
        return self._source

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

        It holds for what is shown of this region, also under other settings, until another
        region or team is shown or something is edited. Summaries are without it.
        """
        return self._threshold

    @property
    def n_below_threshold(self) -> int:
        """How many predictions the threshold leaves out."""
        cut = self._cut
        if cut is None:
            return 0
        return len(cut.whole.outcomes.prediction) - len(cut.evaluation.outcomes.prediction)

    def with_all_scores(self, team: str | None) -> Evaluation | Evaluation[TiledPair] | None:
        """Return a team's evaluation of the current region, whatever the threshold."""
        cut = self._cut
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
        if self._snapshot is not None and (cut := self._cut) is not None:
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
    def _cut(self) -> _Cut | None:
        """The cut, if it is what is shown."""
        cut = self._last_cut
        return cut if cut is not None and self.evaluation is cut.evaluation else None

    @property
    def _has_edits_here(self) -> bool:
        return self.snapshot is not None and self._copies.has_edits(self.snapshot.region.name)

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
        """Request a region or other settings; what is left out stays as requested last.

        Parameters
        ----------
        region_name, settings, source
            What to show.
        team_first
            Whether the team that is shown may come before the others.

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

        An answer may come in two steps: first with teams still to come, then
        whole. The selected object stays selected if it still exists.

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
        if not same_region or self._copies.has_edits(snapshot.region.name):
            self._threshold = self._last_cut = None
        self._snapshot = self._at_threshold(self._with_copies(snapshot))
        if same_region and shown is not None and self.shown is shown:
            self.region_changed.emit(self._snapshot)  # only other teams have come
            return True
        self._selection = None
        self.region_changed.emit(self._snapshot)
        found = self._refound(before) if same_region else None
        if found is not None:
            self.select(found)
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
        self._re_evaluate_copies()
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
            side, lambda live: live.set_pixels(side, y, x, ids, classes=classes), (y, x)
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
            lambda live: live.set_window(side, window, classes=classes, renamed=renamed),
            _area_of(window),
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
            lambda live: live.set_window(side, window, classes=classes),
            _area_of(window),
            team=team,
            is_mirrored=True,
            box=window.box,
        )

    def evaluate_edited(self) -> None:
        """Evaluate the teams whose evaluation is older than the edits."""
        snapshot = self.snapshot
        if snapshot is None or not self._copies.has_edits(snapshot.region.name):
            return
        originals, _ = self._editable()
        missing = [team for team in snapshot.predictions if team not in snapshot.evaluations]
        settings = self._settings_of_edits
        found = {team: self._copies.evaluate(originals, team, settings) for team in missing}
        evaluated = {team: each for team, each in found.items() if each is not None}
        self._snapshot = replace(snapshot, evaluations={**snapshot.evaluations, **evaluated})
        for team, each in evaluated.items():
            self.add_summary(RegionSummary.of(snapshot.region.name, team, each))

    def set_class(self, side: Side, id_: int, class_name: str) -> EditedEvaluation:
        """Set the class of an object of a working copy."""
        return self._edit(side, lambda live: live.set_class(side, id_, class_name))

    def known_ids(self, side: Side) -> NDArray[np.int64]:
        """Return the ids that have a class, those of objects without pixels included."""
        originals, team = self._editable()
        return self._copies.known_ids(originals, team, side)

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
        self.set_threshold(None)
        originals, _ = self._editable()
        is_new = not self._copies.is_ambiguous_edited(originals.region)
        self._copies.set_ambiguous(originals, ambiguous)
        if not is_mirrored:
            self._drawn_areas.add(originals.region)
        return self._after_edit(Side.REFERENCE, None, is_new=is_new, is_mirrored=is_mirrored)

    def is_edited(self, side: Side, team: str | None = None) -> bool:
        """Return whether a side of the current region is a working copy."""
        if self.snapshot is None:
            return False
        return self._copies.is_edited(self.snapshot.region.name, side, team or self.team)

    def is_drawn(self, side: Side, team: str | None = None) -> bool:
        """Return whether a side is a working copy with edits that are not mirrored."""
        if self.snapshot is None:
            return False
        key = None if side is Side.REFERENCE else team or self.team
        is_drawn = (self.snapshot.region.name, key) in self._drawn
        return is_drawn and self.is_edited(side, team)

    @property
    def is_area_drawn(self) -> bool:
        """Whether the ambiguous area of the region was redrawn on the desk."""
        name = None if self.snapshot is None else self.snapshot.region.name
        return name in self._drawn_areas and self._copies.is_ambiguous_edited(str(name))

    @property
    def is_flattened(self) -> bool:
        """Whether objects of the current region would keep shared pixels but for its edits."""
        loaded = self._loaded
        if loaded is None or self.snapshot is None or self.snapshot.region != loaded.region:
            return False
        return loaded.keeps_overlaps and self._copies.has_edits(loaded.region.name)

    def original_evaluation(self) -> Evaluation | None:
        """Evaluate the current team on the files on disk, if anything was edited."""
        if self.snapshot is None or not self._copies.has_edits(self.snapshot.region.name):
            return None
        originals, team = self._editable()
        asked = (self._loaded, team, self._settings_of_edits)
        if self._original is None or self._original[0] != asked:
            found = evaluate(originals.pair(team), self._settings_of_edits)
            self._original = (asked, found)
        return self._original[1]

    def edited_labels(self, side: Side) -> LabelImage:
        """Return the reference or the current team's prediction as it is now, to be saved."""
        originals, team = self._editable()
        return self._copies.labels(originals, team, side)

    def discard_edits(self) -> None:
        """Go back to the files of the current region."""
        if self._loaded is None or not self._copies.has_edits(self._loaded.region.name):
            return
        name = self._loaded.region.name
        self._copies.discard(name)
        self._drawn = {at for at in self._drawn if at[0] != name}
        self._drawn_areas.discard(name)
        before, self._selection = self._selection, None
        self._snapshot = self._loaded
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

    def _editable(self) -> tuple[Originals, str]:
        loaded, team = self._loaded, self.team
        if loaded is None or team is None or loaded.reference is None:
            raise PanopticError(
                "there is nothing to edit: a region with an annotation and a team is needed"
            )
        # What is edited shares no pixels: a stroke sets one id a pixel.
        predictions = loaded.predictions.items()
        originals = Originals(
            loaded.region.name,
            loaded.reference.with_overlaps(Overlaps.FLATTEN),
            loaded.ambiguous,
            {name: labels.with_overlaps(Overlaps.FLATTEN) for name, labels in predictions},
            loaded.mpp,
            {name: e for name, e in loaded.evaluations.items() if not e.pair.has_planes},
        )
        return originals, team

    def _edit(
        self,
        side: Side,
        do: Callable[[EditedPair], Edit | None],
        area: Area = (slice(0), slice(0)),
        *,
        team: str | None = None,
        is_mirrored: bool = False,
        box: tuple[int, int, int, int] | None = None,
    ) -> EditedEvaluation:
        self.set_threshold(None)
        originals, shown = self._editable()
        team = team or shown
        is_new = not self._copies.is_edited(originals.region, side, team)
        is_other = self._copies.is_restored_differently(originals, side, team)
        edit = self._copies.edit(originals, team, side, do, area)
        is_other = is_other and not self._copies.is_edited(originals.region, side, team)
        if not is_mirrored:
            self._drawn.add((originals.region, None if side is Side.REFERENCE else team))
        return self._after_edit(
            side,
            edit,
            is_new=is_new,
            is_other_picture=is_other,
            team=team,
            is_mirrored=is_mirrored,
            box=box,
        )

    @property
    def _settings_of_edits(self) -> EvaluationSettings:
        return _flattened(self.settings)

    def _after_edit(
        self,
        side: Side,
        edit: Edit | None,
        *,
        is_new: bool,
        is_other_picture: bool = False,
        team: str | None = None,
        is_mirrored: bool = False,
        box: tuple[int, int, int, int] | None = None,
    ) -> EditedEvaluation:
        """Show an edit; `is_other_picture` if more pixels changed than were edited."""
        originals, shown = self._editable()
        team = team or shown
        evaluation = self._copies.evaluate(originals, team, self._settings_of_edits)
        if evaluation is None or self.snapshot is None:
            raise PanopticError("an edit without a working copy", region=originals.region)
        is_as_on_disk = not self._copies.has_edits(originals.region)
        loaded = self._loaded
        is_current = loaded is not None and loaded.settings == self.settings
        known = self._unaffected(loaded) if loaded is not None and is_current else {}
        predictions = self.snapshot.predictions
        if is_as_on_disk and loaded is not None:
            # Every edit was undone: workers may read what is shown again.
            evaluation = known.get(team) or evaluate(originals.pair(team), self._settings_of_edits)
            predictions = loaded.predictions
        elif self.snapshot.keeps_overlaps:
            predictions = originals.predictions
        self._snapshot = replace(
            self.snapshot,
            reference=evaluation.pair.reference,
            ambiguous=evaluation.pair.ambiguous,
            predictions={**predictions, team: evaluation.pair.prediction},
            evaluations={**known, **self._unaffected(self.snapshot), team: evaluation},
            settings=self.snapshot.settings.replaced(overlaps=evaluation.settings.overlaps),
        )
        selection = self._selection
        if selection is not None:
            self._selection = self._refound(selection)
        result = EditedEvaluation(team, side, edit, evaluation, is_mirrored, box)
        if is_new or is_as_on_disk:
            self.copies_changed.emit()
        if is_other_picture:
            self.region_changed.emit(self._snapshot)
        self.edited.emit(result)
        if selection is not None and self._selection is None:
            self.selection_changed.emit(None)
        return result

    def _with_copies(self, snapshot: RegionSnapshot) -> RegionSnapshot:
        """Return a snapshot with the working copies instead of the files on disk.

        Only the team that is shown is evaluated again; others that the edits
        concern have no evaluation until they are shown.
        """
        name = snapshot.region.name
        if not self._copies.has_edits(name):
            return snapshot
        originals, team = self._editable()
        evaluations = self._unaffected(snapshot)
        if team in snapshot.predictions:
            settings = _flattened(snapshot.settings)
            evaluation = self._copies.evaluate(originals, team, settings)
            if evaluation is not None:
                evaluations[team] = evaluation
        pairs = {other: self._copies.pair(originals, other) for other in snapshot.predictions}
        reference = next((pair.reference for pair in pairs.values()), snapshot.reference)
        return replace(
            snapshot,
            reference=reference,
            ambiguous=self._copies.ambiguous(originals),
            predictions={other: pair.prediction for other, pair in pairs.items()},
            evaluations=evaluations,
            settings=_flattened(snapshot.settings),
        )

    def _unaffected(self, snapshot: RegionSnapshot) -> dict[str, Evaluation]:
        """Return the evaluations that no edit concerns.

        In a region with edits, those of objects that keep shared pixels are none of them.
        """
        name = snapshot.region.name
        has_edits = self._copies.has_edits(name)
        return {
            team: evaluation
            for team, evaluation in snapshot.evaluations.items()
            if not self._copies.is_affected(name, team)
            and not (has_edits and evaluation.pair.has_planes)
        }

    def _re_evaluate_copies(self) -> None:
        """Update the current team with edits made while another was shown."""
        if self.snapshot is not None and self._loaded is not None:
            again, settings = self._with_copies(self._loaded), self.snapshot.settings
            self._snapshot = replace(
                again, settings=settings.replaced(overlaps=again.settings.overlaps)
            )

    def _refound(self, selection: Selection | None) -> Selection | None:
        """Find a selected object again by its id, in another snapshot or team."""
        evaluation = self.shown
        if selection is None or evaluation is None:
            return None
        row = evaluation.outcomes.side(selection.side).row_of(selection.id)
        return None if row is None else replace(selection, row=row)


def _flattened(settings: EvaluationSettings) -> EvaluationSettings:
    """Return the settings by which objects under edit are judged: a stroke sets one id a pixel."""
    return settings.replaced(overlaps=Overlaps.FLATTEN)


def _area_of(window: IdWindow) -> Area:
    y0, x0, y1, x1 = window.box
    return slice(y0, y1), slice(x0, x1)


def _replaced(snapshot: RegionSnapshot, team: str, evaluation: Evaluation) -> RegionSnapshot:
    return replace(snapshot, evaluations={**snapshot.evaluations, team: evaluation})

"""The live state behind every view: cohort, region, team, settings, selection.

Nothing here knows of Qt or napari. Loading is a pure function that may run in
any thread; its result is delivered on the thread that owns the session, and
an answer to an outdated request is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_panoptic.errors import Finding, PanopticError, UnreadableFileError
from napari_panoptic.evaluation.evaluate import Evaluation, evaluate
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.live import Edit
from napari_panoptic.evaluation.settings import DEFAULT_PROTOCOL, EvaluationSettings, protocol
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.io.slides import SlideImage, read_image
from napari_panoptic.pipeline import (
    ReferenceMasks,
    RegionSummary,
    load_prediction,
    load_reference,
    unreadable,
)
from napari_panoptic.regions import Cohort, Region, Source
from napari_panoptic.working_copies import Originals, WorkingCopies


@dataclass(frozen=True, eq=False)
class RegionSnapshot:
    """Everything there is to show of one region under one set of settings.

    Parameters
    ----------
    region
        Which region.
    shape
        Height and width in px.
    mpp
        Micrometres per pixel, or None.
    image
        The pixels, or None where there are none to show.
    reference
        The annotated objects, or None where there is no usable annotation.
    ambiguous
        bool image (y, x) of the excluded area, or None.
    predictions
        Team -> its objects; teams without a usable prediction are absent.
    evaluations
        Team -> what came of it; empty without a reference.
    settings, source
        What was asked for.
    findings
        What was missing, vanished, overlapping or unreadable in this region.
    read_reference
        The annotation as it was read, so that it need not be read again.
    """

    region: Region
    shape: tuple[int, int]
    mpp: float | None
    image: SlideImage | None
    reference: LabelImage | None
    ambiguous: NDArray[np.bool_] | None
    predictions: Mapping[str, LabelImage]
    evaluations: Mapping[str, Evaluation]
    settings: EvaluationSettings
    source: Source | None
    findings: tuple[Finding, ...]
    read_reference: ReferenceMasks | None = None

    def row_at(self, side: Side, team: str | None, y: int, x: int) -> int | None:
        """Find the object at a pixel.

        Parameters
        ----------
        side, team
            The reference as the team's evaluation has it, or the team's
            prediction.
        y, x
            A pixel inside the region.

        Returns
        -------
        int or None
            The object's 0-based row in the team's outcomes; None for background.
        """
        labels = self.reference if side is Side.REFERENCE else self.predictions.get(team or "")
        if labels is None or not labels.index[y, x]:
            return None
        row = int(labels.index[y, x]) - 1
        evaluation = self.evaluations.get(team or "")
        if evaluation is None:
            return row
        return evaluation.outcomes.side(side).row_of(int(labels.ids[row]))

    def index_of(self, side: Side, team: str | None, row: int) -> int | None:
        """Find the number by which an object's pixels are marked in its label image.

        While objects are edited that is not their row plus one.

        Parameters
        ----------
        side, team
            The reference as the team's evaluation has it, or the team's
            prediction.
        row
            0-based row in the team's outcomes.

        Returns
        -------
        int or None
            The value in ``LabelImage.index``; None where there is no such object.
        """
        labels = self.reference if side is Side.REFERENCE else self.predictions.get(team or "")
        evaluation = self.evaluations.get(team or "")
        if labels is None or evaluation is None:
            return None if labels is None or row >= len(labels) else row + 1
        ids = evaluation.outcomes.side(side).ids
        if row >= len(ids):
            return None
        if row < len(labels) and labels.ids[row] == ids[row]:
            return row + 1
        slots = np.flatnonzero(labels.ids == ids[row])
        return int(slots[0]) + 1 if len(slots) else None


@dataclass(frozen=True, eq=False)
class EditedEvaluation:
    """What an edit came to.

    Parameters
    ----------
    team, side
        Whose objects were edited; for the reference, the team looked at.
    edit
        Which pixels' worth of change, and which objects. None where the class
        of an object or the ambiguous area was changed.
    evaluation
        The team's evaluation after it.
    """

    team: str
    side: Side
    edit: Edit | None
    evaluation: Evaluation


@dataclass(frozen=True)
class Selection:
    """One object that somebody points at.

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
    """What somebody wants to see; the newest number wins."""

    number: int
    region: str
    settings: EvaluationSettings
    source: Source | None


def load_region(
    cohort: Cohort,
    region_name: str,
    settings: EvaluationSettings,
    *,
    source: Source | None = None,
    previous: RegionSnapshot | None = None,
) -> RegionSnapshot:
    """Read and evaluate everything of one region.

    Parameters
    ----------
    cohort
        Where the region is from.
    region_name
        Its name.
    settings
        How to restore and evaluate.
    source
        Which form of the predictions to read; None for the usual one.
    previous
        An earlier snapshot; what the new settings do not touch is taken over
        from it, not read again.

    Raises
    ------
    PanopticError
        Where not even the size of the region can be found out.
    """
    if previous is not None and previous.region.name == region_name:
        if _same_masks(previous, settings, source):
            return _re_evaluated(previous, settings)
        image, findings = previous.image, _image_findings(previous)
    else:
        image, findings = _read_pixels(cohort.region(region_name))

    region = cohort.region(region_name)
    reference = _known_reference(previous, region) or load_reference(cohort, region, settings)
    findings += tuple(f for f in reference.findings if f not in findings)
    predictions: dict[str, LabelImage] = {}
    shape = reference.shape
    # Kernels let go of the interpreter: two teams are restored at a time.
    with ThreadPoolExecutor(max_workers=2) as pool:
        loaded = pool.map(
            lambda team: load_prediction(cohort, region, team.name, shape, settings, source),
            cohort.teams,
        )
    for team, (masks, found) in zip(cohort.teams, loaded, strict=True):
        findings += found
        if masks is not None:
            predictions[team.name] = masks.labels
    snapshot = RegionSnapshot(
        region=region,
        shape=reference.shape,
        mpp=reference.mpp,
        image=image,
        reference=None if reference.masks is None else reference.masks.labels,
        ambiguous=None if reference.masks is None else reference.masks.ambiguous,
        predictions=predictions,
        evaluations={},
        settings=settings,
        source=source,
        findings=findings,
        read_reference=reference,
    )
    return _re_evaluated(snapshot, settings)


def _known_reference(previous: RegionSnapshot | None, region: Region) -> ReferenceMasks | None:
    """Take the annotation over where no restoration changes it: only colour codes are restored."""
    if previous is None or previous.region != region:
        return None
    if region.reference is not None and region.reference.source is Source.COLOUR_CODED:
        return None
    return previous.read_reference


@dataclass
class _State:
    """What a session remembers."""

    settings: EvaluationSettings
    region_name: str | None = None
    snapshot: RegionSnapshot | None = None
    team: str | None = None
    selection: Selection | None = None
    source: Source | None = None
    newest: int = 0
    loaded: RegionSnapshot | None = None
    summaries: dict[tuple[str, str], RegionSummary] = field(default_factory=dict)


class Session:
    """Cohort, region, team, settings and selection, with a signal for each.

    Parameters
    ----------
    cohort
        What is being looked at.
    settings
        How to evaluate; the default protocol where None.
    """

    region_changed = Signal(RegionSnapshot)
    team_changed = Signal(str)
    settings_changed = Signal(EvaluationSettings)
    selection_changed = Signal(object)  # Selection | None
    summary_changed = Signal(RegionSummary)
    edited = Signal(EditedEvaluation)
    copies_changed = Signal()  # a working copy came to be or was discarded

    def __init__(self, cohort: Cohort, settings: EvaluationSettings | None = None) -> None:
        self.cohort = cohort
        self.protocol = protocol(DEFAULT_PROTOCOL)
        self._state = _State(settings=settings or self.protocol)
        teams = (*cohort.competing_teams, *cohort.teams)
        self._state.team = teams[0].name if teams else None
        self._copies = WorkingCopies()

    @property
    def snapshot(self) -> RegionSnapshot | None:
        """What is shown; None before the first delivery."""
        return self._state.snapshot

    @property
    def loaded(self) -> RegionSnapshot | None:
        """The same as it is on disk, without anything that was edited.

        This is what a worker may read: it never changes, while a snapshot with
        edits does with every stroke.
        """
        return self._state.loaded

    @property
    def copies(self) -> WorkingCopies:
        """What was edited."""
        return self._copies

    @property
    def settings(self) -> EvaluationSettings:
        """The settings asked for last."""
        return self._state.settings

    @property
    def source(self) -> Source | None:
        """The form of predictions asked for last."""
        return self._state.source

    @property
    def team(self) -> str | None:
        """Whose outcomes are shown; None in a cohort without teams."""
        return self._state.team

    @property
    def selection(self) -> Selection | None:
        """The object pointed at."""
        return self._state.selection

    @property
    def summaries(self) -> Mapping[tuple[str, str], RegionSummary]:
        """``(region, team)`` -> its line, as far as computed."""
        return self._state.summaries

    @property
    def evaluation(self) -> Evaluation | None:
        """The current team's evaluation of the current region, if there is one."""
        if self.snapshot is None or self.team is None:
            return None
        return self.snapshot.evaluations.get(self.team)

    def request(
        self,
        *,
        region_name: str | None = None,
        settings: EvaluationSettings | None = None,
        source: Source | str | None = "unchanged",
    ) -> Request:
        """Ask for a region or for other settings; what is left out stays as asked for last.

        Returns
        -------
        Request
            To be answered by :func:`load_region` and :meth:`deliver`.

        Raises
        ------
        PanopticError
            For an unknown region, or a cohort without regions.
        """
        state = self._state
        if region_name is None:
            region_name = self._current_region_name()
        state.region_name = self.cohort.region(region_name).name
        if source != "unchanged":
            state.source = None if source is None else Source(source)
        if settings is not None and settings != state.settings:
            state.settings = settings
            self.settings_changed.emit(settings)
        state.newest += 1
        return Request(state.newest, state.region_name, state.settings, state.source)

    def is_current(self, request: Request) -> bool:
        """Tell whether nothing newer has been asked for since."""
        return request.number == self._state.newest

    def deliver(self, request: Request, snapshot: RegionSnapshot) -> bool:
        """Show the answer to a request, unless something newer was asked for.

        The selected object stays selected where it is still there.

        Returns
        -------
        bool
            False where the answer came too late and was dropped.
        """
        if not self.is_current(request):
            return False
        state = self._state
        same_region = (
            state.snapshot is not None and state.snapshot.region.name == snapshot.region.name
        )
        before = state.selection
        state.loaded = snapshot
        state.snapshot = self._with_copies(snapshot)
        state.selection = None
        self.region_changed.emit(state.snapshot)
        found = self._refound(before) if same_region else None
        if found is not None:
            self.select(found)
        elif before is not None and state.selection is None:
            self.selection_changed.emit(None)
        return True

    def set_team(self, name: str) -> None:
        """Show another team's outcomes; a selected reference object stays selected."""
        if name == self._state.team:
            return
        self.cohort.team(name)
        selection = self._state.selection
        self._state.team = name
        self._re_evaluate_copies()
        self._state.selection = None
        self.team_changed.emit(name)
        if selection is not None and selection.side is Side.REFERENCE:
            self.select(self._refound(replace(selection, team=name)))
        else:
            self.selection_changed.emit(None)

    def select(self, selection: Selection | None) -> None:
        """Point at an object, or at none."""
        if selection != self._state.selection:
            self._state.selection = selection
            self.selection_changed.emit(selection)

    def select_row(self, side: Side, row: int) -> None:
        """Point at an object of the current team's evaluation by its row."""
        evaluation = self.evaluation
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
            Id -> class, for new ids.

        Raises
        ------
        PanopticError
            Where there is nothing to edit, or a new id has no class; nothing is
            changed then.
        """
        originals, team = self._editable()
        is_new = not self._copies.is_edited(originals.region, side, team)
        edit = self._copies.edit(originals, team, side, y, x, ids, classes)
        return self._after_edit(side, edit, is_new=is_new)

    def set_class(self, side: Side, id_: int, class_name: str) -> EditedEvaluation:
        """Give an object of a working copy another class."""
        originals, team = self._editable()
        is_new = not self._copies.is_edited(originals.region, side, team)
        self._copies.set_class(originals, team, side, id_, class_name)
        return self._after_edit(side, None, is_new=is_new)

    def set_ambiguous(self, ambiguous: NDArray[np.bool_] | None) -> EditedEvaluation:
        """Redraw the ambiguous area of the region, for all teams."""
        originals, _ = self._editable()
        is_new = not self._copies.is_ambiguous_edited(originals.region)
        self._copies.set_ambiguous(originals, ambiguous)
        return self._after_edit(Side.REFERENCE, None, is_new=is_new)

    def is_edited(self, side: Side, team: str | None = None) -> bool:
        """Tell whether a side of the current region is a working copy."""
        if self.snapshot is None:
            return False
        return self._copies.is_edited(self.snapshot.region.name, side, team or self.team)

    def original_evaluation(self) -> Evaluation | None:
        """Evaluate the current team on the files as they are, where anything was edited."""
        if self.snapshot is None or not self._copies.has_edits(self.snapshot.region.name):
            return None
        originals, team = self._editable()
        return self._copies.original_evaluation(originals, team, self.settings)

    def edited_labels(self, side: Side) -> LabelImage:
        """Give the reference or the current team's prediction as it is now, to be saved."""
        originals, team = self._editable()
        return self._copies.labels(originals, team, side)

    def discard_edits(self) -> None:
        """Go back to the files of the current region."""
        state = self._state
        if state.loaded is None or not self._copies.has_edits(state.loaded.region.name):
            return
        self._copies.discard(state.loaded.region.name)
        before, state.selection = state.selection, None
        state.snapshot = state.loaded
        self.copies_changed.emit()
        self.region_changed.emit(state.snapshot)
        self.select(self._refound(before))

    def add_summary(self, summary: RegionSummary) -> None:
        """Remember one line of the cohort summary."""
        self._state.summaries[summary.region, summary.team] = summary
        self.summary_changed.emit(summary)

    def clear_summaries(self) -> None:
        """Forget the cohort summary, since settings changed."""
        self._state.summaries.clear()

    def next_region(self) -> str:
        """Name the region after the one asked for last; after the last comes the first."""
        return self._neighbour(1)

    def previous_region(self) -> str:
        """Name the region before the one asked for last; before the first comes the last."""
        return self._neighbour(-1)

    def _neighbour(self, step: int) -> str:
        names = [region.name for region in self.cohort.regions]
        return names[(names.index(self._current_region_name()) + step) % len(names)]

    def _current_region_name(self) -> str:
        """Name the region asked for last, though it may not be there yet."""
        if self._state.region_name is not None:
            return self._state.region_name
        if not self.cohort.regions:
            raise PanopticError("this cohort has no regions to show", path=self.cohort.root)
        return self.cohort.regions[0].name

    def _editable(self) -> tuple[Originals, str]:
        loaded, team = self._state.loaded, self.team
        if loaded is None or team is None or loaded.reference is None:
            raise PanopticError(
                "there is nothing to edit: a region with an annotation and a team is needed"
            )
        originals = Originals(
            loaded.region.name, loaded.reference, loaded.ambiguous, loaded.predictions, loaded.mpp
        )
        return originals, team

    def _after_edit(self, side: Side, edit: Edit | None, *, is_new: bool) -> EditedEvaluation:
        originals, team = self._editable()
        evaluation = self._copies.evaluate(originals, team, self.settings)
        if evaluation is None or self.snapshot is None:
            raise PanopticError("an edit without a working copy", region=originals.region)
        self._state.snapshot = replace(
            self.snapshot,
            reference=evaluation.pair.reference,
            ambiguous=evaluation.pair.ambiguous,
            predictions={**self.snapshot.predictions, team: evaluation.pair.prediction},
            evaluations={**self.snapshot.evaluations, team: evaluation},
        )
        selection = self._state.selection
        if selection is not None:
            self._state.selection = self._refound(selection)
        result = EditedEvaluation(team, side, edit, evaluation)
        if is_new:
            self.copies_changed.emit()
        self.edited.emit(result)
        if selection is not None and self._state.selection is None:
            self.selection_changed.emit(None)
        return result

    def _with_copies(self, snapshot: RegionSnapshot) -> RegionSnapshot:
        """Put what was edited in the place of what is on disk."""
        if not self._copies.has_edits(snapshot.region.name):
            return snapshot
        originals, _ = self._editable()
        evaluations = dict(snapshot.evaluations)
        for team in snapshot.predictions:
            evaluation = self._copies.evaluate(originals, team, snapshot.settings)
            if evaluation is not None:
                evaluations[team] = evaluation
        return replace(
            snapshot,
            reference=next(iter(evaluations.values())).pair.reference,
            ambiguous=self._copies.ambiguous(originals),
            predictions={team: e.pair.prediction for team, e in evaluations.items()},
            evaluations=evaluations,
        )

    def _re_evaluate_copies(self) -> None:
        """Bring the current team up to date with edits made while another was looked at."""
        if self.snapshot is not None and self._state.loaded is not None:
            self._state.snapshot = replace(
                self._with_copies(self._state.loaded), settings=self.snapshot.settings
            )

    def _refound(self, selection: Selection | None) -> Selection | None:
        """Find a selected object again by its id, in another snapshot or team."""
        evaluation = self.evaluation
        if selection is None or evaluation is None:
            return None
        row = evaluation.outcomes.side(selection.side).row_of(selection.id)
        return None if row is None else replace(selection, row=row)


def _read_pixels(region: Region) -> tuple[SlideImage | None, tuple[Finding, ...]]:
    if region.image is None:
        return None, ()
    try:
        image = read_image(region.image)
    except UnreadableFileError as error:
        return None, (unreadable(error, region=region.name),)
    return image, tuple(replace(finding, region=region.name) for finding in image.findings)


def _image_findings(snapshot: RegionSnapshot) -> tuple[Finding, ...]:
    return tuple(f for f in snapshot.findings if f.path == snapshot.region.image and f.path)


def _same_masks(
    previous: RegionSnapshot, settings: EvaluationSettings, source: Source | None
) -> bool:
    """Tell whether the same files would be restored in the same way."""
    same_restoration = (
        settings.restoration is previous.settings.restoration
        and settings.dilation_radius == previous.settings.dilation_radius
    )
    return same_restoration and source == previous.source


def _re_evaluated(snapshot: RegionSnapshot, settings: EvaluationSettings) -> RegionSnapshot:
    """Evaluate all teams of a snapshot again; overlap tables known already are kept."""
    evaluations: dict[str, Evaluation] = {}
    reference = snapshot.reference
    if reference is not None:

        def evaluated(team: str) -> Evaluation:
            known = snapshot.evaluations.get(team)
            if known is not None:
                return evaluate(known.pair, settings, table=known.table)
            prediction = snapshot.predictions[team]
            pair = LabelPair(reference, prediction, snapshot.ambiguous, snapshot.mpp)
            return evaluate(pair, settings)

        with ThreadPoolExecutor(max_workers=2) as pool:
            found = pool.map(evaluated, snapshot.predictions)
        evaluations = dict(zip(snapshot.predictions, found, strict=True))
    return replace(snapshot, evaluations=evaluations, settings=settings)

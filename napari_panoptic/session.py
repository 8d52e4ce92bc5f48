"""The live state behind every view: cohort, region, team, settings, selection.

Nothing here knows of Qt or napari. Loading is a pure function that may run in
any thread; its result is delivered on the thread that owns the session, and
an answer to an outdated request is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_panoptic.errors import Finding, PanopticError, UnreadableFileError
from napari_panoptic.evaluation.evaluate import Evaluation, evaluate
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.settings import DEFAULT_PROTOCOL, EvaluationSettings, protocol
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.io.slides import SlideImage, read_image
from napari_panoptic.pipeline import (
    RegionSummary,
    load_prediction,
    load_reference,
    unreadable,
)
from napari_panoptic.regions import Cohort, Region, Source


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
    reference = load_reference(cohort, region, settings)
    findings += tuple(f for f in reference.findings if f not in findings)
    predictions: dict[str, LabelImage] = {}
    for team in cohort.teams:
        masks, found = load_prediction(cohort, region, team.name, reference.shape, settings, source)
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
    )
    return _re_evaluated(snapshot, settings)


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

    def __init__(self, cohort: Cohort, settings: EvaluationSettings | None = None) -> None:
        self.cohort = cohort
        self.protocol = protocol(DEFAULT_PROTOCOL)
        self._state = _State(settings=settings or self.protocol)
        teams = (*cohort.competing_teams, *cohort.teams)
        self._state.team = teams[0].name if teams else None

    @property
    def snapshot(self) -> RegionSnapshot | None:
        """What is shown; None before the first delivery."""
        return self._state.snapshot

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
        state.snapshot = snapshot
        state.selection = None
        self.region_changed.emit(snapshot)
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

    def _refound(self, selection: Selection | None) -> Selection | None:
        """Find a selected object again by its id, in another snapshot or team."""
        evaluation = self.evaluation
        if selection is None or evaluation is None:
            return None
        rows = np.flatnonzero(evaluation.outcomes.side(selection.side).ids == selection.id)
        return replace(selection, row=int(rows[0])) if len(rows) else None


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
    if snapshot.reference is not None:
        for team, prediction in snapshot.predictions.items():
            known = snapshot.evaluations.get(team)
            if known is not None:
                evaluations[team] = evaluate(known.pair, settings, table=known.table)
            else:
                pair = LabelPair(snapshot.reference, prediction, snapshot.ambiguous, snapshot.mpp)
                evaluations[team] = evaluate(pair, settings)
    return replace(snapshot, evaluations=evaluations, settings=settings)

"""Searches what the failures of a cohort have in common, and shows each slice in the gallery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from napari_panoptic.io.tables.metadata import metadata_beside
from napari_panoptic.questions.engines.cohort_objects import CohortObjects
from napari_panoptic.questions.engines.cohort_slices import (
    CohortSlices,
    SliceRequest,
    cohort_slices,
)
from napari_panoptic.questions.engines.slice_conditions import Curve, slice_words
from napari_panoptic.questions.engines.slices import Slice
from napari_panoptic.viewer.jobs.jobs import Job, Latest
from napari_panoptic.viewer.kit.inputs import Choice
from napari_panoptic.viewer.kit.plot_view import DRAWING
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.cohort_run import CohortRun, RunTexts
from napari_panoptic.viewer.panels.notes import notes_in_tooltip
from napari_panoptic.viewer.panels.part import Connections, Presenter
from napari_panoptic.viewer.panels.slices import panel as texts
from napari_panoptic.viewer.panels.slices.panel import SliceLine, SlicesPanel

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot

_TEXTS = RunTexts(texts.HINT, texts.NO_TEAM, texts.SEARCHING, texts.STOPPED, texts.STALE)

# What writes tables and plots takes long to import: it is imported when a search is done.


class SlicesPresenter(Presenter[SlicesPanel]):
    """What the failures of the team that is shown have in common, over the whole cohort."""

    title = "Slices"
    key = "Alt-k"  # S saves a screenshot in napari
    panel_type = SlicesPanel

    def __init__(self, around: Surroundings, panel: SlicesPanel) -> None:
        super().__init__(around, panel)
        self._run: CohortRun[SliceRequest, CohortSlices] = CohortRun(
            panel.work, _TEXTS, wanted=self._request, take=self._on_found, clear=self._clear
        )
        self._drawing: Latest[Plot] = Latest(panel.plot.show_plot)
        self._objects: CohortObjects | None = None

    @property
    def slices(self) -> CohortSlices | None:
        """What was found; None if that is unknown under the present settings."""
        return self._run.result

    @property
    def is_busy(self) -> bool:
        """Whether a search is running, or a plot being drawn."""
        return self._run.is_busy or self._drawing.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        session, panel = self.session, self.panel
        return [
            (session.team_changed, self._on_change),
            (session.settings_changed, self._on_change),
            (session.source_changed, self._on_change),
            (session.edited, self._on_edit),
            (session.copies_changed, self._on_edit),
            (panel.what_changed, self._on_change),
            (panel.work.start.pushed, self.search),
            (panel.work.stop.pushed, self._run.stop),
            (panel.list.rested, self._on_rest),
            (panel.list.opened, self._on_opened),
            (panel.covariate.chosen, self._draw),
        ]

    def refresh(self) -> None:
        """Show that nothing has been searched yet."""
        self._run.reset()

    def close(self) -> None:
        """Stop all work."""
        self._run.close()
        self._drawing.close()

    def search(self) -> None:
        """Search over the cohort in a worker; only other failures need no new evaluation."""
        if self._run.is_current:  # the same search again: files may have changed meanwhile
            self._objects = None
        held_up_to_px = self.session.held_up_to_px
        self._run.start(partial(_searched, objects=self._objects, held_up_to_px=held_up_to_px))

    def _request(self) -> SliceRequest | None:
        """Return what a search would be about now."""
        session, panel = self.session, self.panel
        if session.team is None:
            return None
        return SliceRequest(
            session.cohort,
            session.team,
            session.settings,
            session.source,
            panel.side.choice,
            panel.cause.choice,
        )

    # What happens elsewhere.

    def _on_change(self, _changed: object = None) -> None:
        """Show no slices of another team, other settings or other failures."""
        request, searched = self._request(), self._run.request
        is_other = searched is None or request is None or _place(request) != _place(searched)
        if is_other:
            self._objects = None
        self._run.check("" if is_other else texts.HINT)

    def _on_edit(self, _edited: object = None) -> None:
        """Note unsaved edits, and read the files again for the next search."""
        self._objects = None
        self._note()

    # What was found.

    def _on_found(self, slices: CohortSlices) -> None:
        from napari_panoptic.report.nuclei.slices import NOTHING, search_sentence

        self._objects = slices.objects
        found, request = slices.found, slices.request
        if not found.objects:
            self.panel.show_nothing("Nothing could be evaluated; see the notes of the regions.")
            self._note()
            return
        headline = search_sentence(found, request.team, request.side, request.cause)
        headline += "." if found.slices else f". {NOTHING.capitalize()}."
        covariates = [Choice(name, name.replace("_", " ")) for name in found.curves]
        self.panel.show_slices(headline, _lines(slices), covariates)
        self._note()
        if self.panel.covariate.choice is not None:
            self._draw(self.panel.covariate.choice)

    def _note(self) -> None:
        """Show what the slices leave out."""
        slices = self.slices
        if slices is None:
            return
        notes = [texts.LEADS] if slices.found.slices else []
        if self.session.has_any_edits:
            notes.append(texts.NOT_EDITED)
        count, tooltip = notes_in_tooltip(slices.objects.findings)
        self.panel.show_note(" ".join(filter(None, (*notes, count))), tooltip)

    def _on_rest(self, row: int) -> None:
        """Show the rate over the covariate of a slice."""
        if self.slices is not None:
            covariate = self.slices.found.slices[row].conditions[0].covariate
            if covariate in self.panel.covariate.values:
                self.panel.covariate.choose(covariate)

    def _on_opened(self, row: int) -> None:
        """Show the failures of a slice in the gallery."""
        if self.slices is not None:
            own = self.slices.found.slices[row]
            self.link.show_failures(_title(self.slices, own), self.slices.failures_of(own))

    def _draw(self, covariate: str) -> None:
        if self.slices is None:
            return
        found, team = self.slices.found, self.slices.request.team
        rate = found.failures / found.objects
        teams = self.session.cohort.team_names
        self._drawing.start(partial(_curve, found.curves[covariate], team, teams, rate))

    def _clear(self, hint: str) -> None:
        self._drawing.drop()
        self.panel.show_nothing(hint)


def _place(request: SliceRequest) -> tuple[object, ...]:
    """Return what decides which objects there are, whichever of their failures are searched."""
    return request.team, request.settings, request.source


def _searched(
    request: SliceRequest,
    job: Job[CohortSlices],
    *,
    objects: CohortObjects | None,
    held_up_to_px: int,
) -> Iterator[CohortSlices]:
    """Search; for workers."""
    cohort = request.cohort
    found = cohort_slices(
        request,
        objects=objects,
        metadata=None if objects else metadata_beside(cohort.root, cohort.patients),
        held_up_to_px=held_up_to_px,
        progress=job.progress,
    )
    if found.found.objects:
        _ = found.found.curves  # while the window need not wait for them
    yield found


def _lines(slices: CohortSlices) -> list[SliceLine]:
    from napari_panoptic.report.nuclei.slices import slice_figures, slice_sentence

    side, cause = slices.request.side, slices.request.cause
    return [
        SliceLine(slice_sentence(own, side, cause), slice_figures(own))
        for own in slices.found.slices
    ]


def _title(slices: CohortSlices, own: Slice) -> str:
    """Return what the failures of a slice have in common, for the gallery."""
    from napari_panoptic.report.nuclei.slices import failures_word

    request = slices.request
    word = failures_word(request.side, request.cause)
    return f"{word} of {request.team} · {slice_words(own.conditions, request.side)}"


def _curve(curve: Curve, team: str, teams: Sequence[str], rate: float) -> Plot:
    from napari_panoptic.report.plots import covariate_curve

    with DRAWING:
        return covariate_curve(curve, team, teams, rate=rate)

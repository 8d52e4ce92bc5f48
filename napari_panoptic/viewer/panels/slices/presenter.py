"""Searches what the failures of a cohort have in common, and shows each slice in the gallery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.io.metadata import metadata_beside
from napari_panoptic.nuclei.explain.cohort_objects import CohortObjects
from napari_panoptic.nuclei.explain.cohort_slices import CohortSlices, SliceRequest, cohort_slices
from napari_panoptic.nuclei.explain.failure_curves import Curve
from napari_panoptic.nuclei.explain.slice_conditions import slice_words
from napari_panoptic.nuclei.explain.slices import Slice
from napari_panoptic.viewer.jobs.jobs import Job, Latest, Stream, show_failure
from napari_panoptic.viewer.kit.choice_box import Choice
from napari_panoptic.viewer.kit.plot_view import DRAWING
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections, Presenter
from napari_panoptic.viewer.panels.slices import panel as texts
from napari_panoptic.viewer.panels.slices.panel import SliceLine, SlicesPanel

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot

MOST_NOTES = 12
"""The most notes that the tooltip lists."""

# What writes tables and plots takes long to import: it is imported when a search is done.


class SlicesPresenter(Presenter[SlicesPanel]):
    """What the failures of the team that is shown have in common, over the whole cohort."""

    title = "Slices"
    key = "Alt-s"
    panel_type = SlicesPanel

    def __init__(self, around: Surroundings, panel: SlicesPanel) -> None:
        super().__init__(around, panel)
        self._work: Stream[CohortSlices] = Stream(
            self._on_found,
            ended=self._on_end,
            failed=self._on_failed,
            progressed=self._on_progress,
        )
        self._drawing: Latest[Plot] = Latest(panel.plot.show_plot)
        self._objects: CohortObjects | None = None
        self._searched: SliceRequest | None = None
        self.slices: CohortSlices | None = None
        """What was found; None if that is unknown under the present settings."""

    @property
    def is_busy(self) -> bool:
        """Whether a search is running, or a plot being drawn."""
        return self._work.is_busy or self._drawing.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        session, panel = self.session, self.panel
        return [
            (session.team_changed, self._on_change),
            (session.settings_changed, self._on_change),
            (self.link.panels.settings.source_chosen, self._on_change),
            (session.edited, self._on_edit),
            (session.copies_changed, self._on_edit),
            (panel.what_changed, self._on_change),
            (panel.search_wanted, self.search),
            (panel.stop_wanted, self._on_stop),
            (panel.list.rested, self._on_rest),
            (panel.list.opened, self._on_opened),
            (panel.covariate_chosen, self._draw),
        ]

    def refresh(self) -> None:
        """Show that nothing has been searched yet."""
        self._show_nothing(texts.HINT)

    def close(self) -> None:
        """Stop all work."""
        self._work.close()
        self._drawing.close()

    def search(self) -> None:
        """Search over the cohort in a worker; only other failures need no new evaluation."""
        request = self._request()
        if request is None:
            return
        # The same search again is for files that changed meanwhile.
        objects = None if request == self._searched else self._objects
        self._searched = request
        self._show_nothing(texts.SEARCHING)
        self.panel.show_progress(0.0)
        self._work.start(partial(_searched, request, objects, self.session.held_up_to_px))

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
        request, searched = self._request(), self._searched
        if request == searched:
            return
        is_other = searched is None or request is None or _place(request) != _place(searched)
        if is_other:
            self._objects = None
        had_some = self._work.is_busy or self.slices is not None
        self._work.stop()
        self._searched = None
        if had_some or request is None or self.panel.headline.text() == texts.NO_TEAM:
            self._show_nothing(texts.STALE if had_some and is_other else texts.HINT)

    def _on_edit(self, _edited: object = None) -> None:
        """Note unsaved edits, and read the files again for the next search."""
        self._objects = None
        self._note()

    def _on_progress(self, share: float, doing: str) -> None:
        self.panel.show_progress(share, doing)

    def _on_failed(self, error: PanopticError) -> None:
        self._show_nothing(texts.HINT)
        show_failure(error)

    def _on_end(self) -> None:
        self.panel.show_progress(None)

    def _on_stop(self) -> None:
        self._work.stop()
        self._searched = None
        self._show_nothing(texts.STOPPED)

    # What was found.

    def _on_found(self, slices: CohortSlices) -> None:
        from napari_panoptic.report.nuclei.slices import NOTHING, search_sentence

        self.slices, self._objects = slices, slices.objects
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
        copies, regions = self.session.copies, self.session.cohort.regions
        notes = [texts.LEADS] if slices.found.slices else []
        if any(copies.has_edits(region.name) for region in regions):
            notes.append(texts.NOT_EDITED)
        findings = slices.objects.findings
        if findings:
            plural = "" if len(findings) == 1 else "s"
            notes.append(f"{len(findings)} note{plural} in the tooltip.")
        lines = [": ".join(filter(None, (at.region, at.message))) for at in findings[:MOST_NOTES]]
        if len(findings) > MOST_NOTES:
            lines.append("…")
        tooltip = "\n".join(lines)
        self.panel.show_note(" ".join(notes), tooltip)

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

    def _show_nothing(self, hint: str) -> None:
        self.slices = None
        self._drawing.drop()
        is_possible = self._request() is not None
        self.panel.search.setEnabled(is_possible)
        self.panel.show_progress(None)
        self.panel.show_nothing(hint if is_possible else texts.NO_TEAM)


def _place(request: SliceRequest) -> tuple[object, ...]:
    """Return what decides which objects there are, whichever of their failures are searched."""
    return request.team, request.settings, request.source


def _searched(
    request: SliceRequest,
    objects: CohortObjects | None,
    held_up_to_px: int,
    job: Job[CohortSlices],
) -> Iterator[CohortSlices]:
    """Search; for workers."""
    progress = Progress(lambda: job.is_wanted, job.report)
    cohort = request.cohort
    try:
        found = cohort_slices(
            request,
            objects=objects,
            metadata=None if objects else metadata_beside(cohort.root, cohort.patients),
            held_up_to_px=held_up_to_px,
            progress=progress,
        )
    except StoppedError:
        return
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

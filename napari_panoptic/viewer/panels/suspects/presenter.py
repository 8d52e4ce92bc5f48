"""Searches a cohort for suspect annotations, and leads to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from qtpy.QtWidgets import QFileDialog

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.styles import count_text
from napari_panoptic.io.formats.saving import check_not_in_cohort
from napari_panoptic.questions.engines.cohort_failures import (
    FailureName,
    FailureSet,
    chosen_objects,
)
from napari_panoptic.questions.engines.cohort_suspects import (
    SUSPECT_SETTINGS,
    CohortSuspects,
    cohort_suspects,
)
from napari_panoptic.questions.engines.suspects import Suspect
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Job, Stream, show_failure
from napari_panoptic.viewer.kit.questions import may_replace
from napari_panoptic.viewer.kit.shown import show_info
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.cohort_run import CohortRun, RunTexts
from napari_panoptic.viewer.panels.notes import notes_in_tooltip
from napari_panoptic.viewer.panels.part import Connections, Presenter
from napari_panoptic.viewer.panels.suspects import panel as texts
from napari_panoptic.viewer.panels.suspects.panel import SuspectsPanel

_TEXTS = RunTexts(texts.HINT, texts.ONE_TEAM, texts.SEARCHING, texts.STOPPED, texts.STALE)


@dataclass(frozen=True)
class _Request:
    """What is compared, and how."""

    cohort: Cohort
    teams: tuple[str, ...]
    settings: EvaluationSettings
    source: Source | None


class SuspectsPresenter(Presenter[SuspectsPanel]):
    """The suspect annotations of the whole cohort."""

    title = "Suspects"
    key = "Alt-u"
    panel_type = SuspectsPanel

    def __init__(self, around: Surroundings, panel: SuspectsPanel) -> None:
        super().__init__(around, panel)
        self._search: CohortRun[_Request, CohortSuspects] = CohortRun(
            panel.work, _TEXTS, wanted=self._request, take=self._on_found, clear=panel.show_nothing
        )
        self._gathering: Stream[FailureSet] = Stream(
            self.link.show_objects, ended=self._on_end, progressed=panel.show_progress
        )
        self._export: Stream[Path] = Stream(self._on_saved, ended=self._on_end)

    @property
    def found(self) -> CohortSuspects | None:
        """What was found; None if that is unknown under the present settings."""
        return self._search.result

    @property
    def is_busy(self) -> bool:
        """Whether suspects are searched, read for the gallery, or saved."""
        return self._search.is_busy or self._gathering.is_busy or self._export.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        session, panel = self.session, self.panel
        return [
            (session.settings_changed, self._on_change),
            (session.source_changed, self._on_change),
            (session.edited, self._on_edit),
            (session.copies_changed, self._on_edit),
            (panel.work.start.pushed, self.search),
            (panel.work.stop.pushed, self._search.stop),
            (panel.making.stop.pushed, self._on_stop),
            (panel.export.pushed, self._on_export),
            (panel.gallery_wanted, self._on_gallery),
            (panel.suspect_chosen, self._on_chosen),
            (panel.centre_wanted, self._on_centre),
        ]

    def refresh(self) -> None:
        """Show that nothing has been searched yet."""
        self._search.reset()

    def close(self) -> None:
        """Stop all work."""
        for work in (self._search, self._gathering, self._export):
            work.close()

    def search(self) -> None:
        """Compare all teams over the cohort, in a worker."""
        self._search.start(partial(_searched, held_up_to_px=self.session.held_up_to_px))

    def name_of(self, suspect: Suspect) -> FailureName:
        """Name the object that shows a suspect, where possible one of the team that is shown."""
        team = self.session.team
        if suspect.side is Side.REFERENCE:
            return FailureName(team or suspect.teams[0], suspect.region, suspect.side, suspect.id)
        predictions = dict(zip(suspect.teams, suspect.team_ids, strict=True))
        if team not in predictions:
            team = suspect.team or suspect.teams[0]
        return FailureName(team, suspect.region, suspect.side, predictions[team])

    def _request(self) -> _Request | None:
        """Return what a search would be about now."""
        session = self.session
        teams = tuple(team.name for team in session.cohort.competing_teams)
        if len(teams) < 2:
            return None
        settings = SUSPECT_SETTINGS.replaced(ambiguous=session.settings.ambiguous)
        return _Request(session.cohort, teams, settings, session.source)

    # What happens elsewhere.

    def _on_change(self, _changed: object = None) -> None:
        """Show no suspects of another policy or other files, and no objects of other settings."""
        self._search.check()
        if self._gathering.is_busy:
            self._gathering.stop()
            self._on_end()
            show_info(texts.GALLERY_STALE)

    def _on_edit(self, _edited: object = None) -> None:
        self._note()

    def _on_end(self) -> None:
        self.panel.show_progress(None)

    def _on_stop(self) -> None:
        self._gathering.stop()
        self._export.stop()
        self._on_end()

    # What was found.

    def _on_found(self, found: CohortSuspects) -> None:
        if not found.regions:
            self._search.show_nothing(texts.NOTHING)
            return
        objects, regions = count_text(found.objects), count_text(found.regions)
        plural = "" if found.regions == 1 else "s"
        about = f"among {objects} annotated objects in {regions} region{plural}."
        self.panel.show_suspects(found.suspects, about)
        self._note()

    def _note(self) -> None:
        """Show what the suspects leave out."""
        found = self.found
        if found is None:
            return
        notes = []
        if self.session.has_any_edits:
            notes.append(texts.NOT_EDITED)
        count, tooltip = notes_in_tooltip(found.findings)
        self.panel.show_note(" ".join(filter(None, (*notes, count))), tooltip)

    # The way to them.

    def _on_chosen(self, suspect: Suspect) -> None:
        """Go to a suspect, with the outlines of all teams that agree."""
        name = self.name_of(suspect)
        self.link.go_to(
            name.region, name.side, name.id, team=name.team, beside=_others(suspect, name.team)
        )

    def _on_centre(self, suspect: Suspect) -> None:
        self._on_chosen(suspect)
        snapshot, selection = self.session.snapshot, self.session.selection
        if (
            snapshot is not None
            and selection is not None
            and snapshot.region.name == suspect.region
        ):
            self.link.scene.centre(selection)

    def _on_gallery(self, suspects: Sequence[Suspect]) -> None:
        """Read the objects as they are under the settings of the desk, and show them."""
        session = self.session
        agreeing: dict[FailureName, tuple[str, ...]] = {}
        for suspect in suspects:  # two may be about one object
            name = self.name_of(suspect)
            teams = (*agreeing.get(name, ()), *_others(suspect, name.team))
            agreeing[name] = tuple(dict.fromkeys(teams))
        kinds = {str(suspect.kind) for suspect in suspects}
        title = f"Suspects · {kinds.pop()}" if len(kinds) == 1 else "Suspects"
        now = _Request(session.cohort, (), session.settings, session.source)
        self.panel.show_progress(0.0)
        self._gathering.start(partial(_gathered, now, title, agreeing, session.held_up_to_px))

    # The export.

    def _on_export(self) -> None:
        """Ask for a folder, and save what the command ``suspects`` writes."""
        from napari_panoptic.report.nuclei.suspects import SUSPECTS_NAMES

        found, request = self.found, self._search.request
        if found is None or request is None:
            return
        chosen = QFileDialog.getExistingDirectory(self.panel, "Save suspects in a folder")
        if not chosen:
            return
        files = [Path(chosen) / name for name in SUSPECTS_NAMES]
        try:
            check_not_in_cohort(files, request.cohort.root)
        except PanopticError as error:
            show_failure(error)
            return
        if may_replace(self.panel, files):
            self.panel.show_progress(0.0)
            self._export.start(lambda _job: _saved(found, request, Path(chosen)))

    def _on_saved(self, path: Path) -> None:
        show_info(f"The suspects are in {path}")


def _others(suspect: Suspect, team: str) -> tuple[str, ...]:
    return tuple(other for other in suspect.teams if other != team)


def _searched(
    request: _Request, job: Job[CohortSuspects], *, held_up_to_px: int
) -> Iterator[CohortSuspects]:
    """Search; for workers."""
    progress = job.progress
    done, total = 0, len(request.cohort.regions)

    def count() -> None:
        nonlocal done
        progress.check()
        done += 1
        progress.tell(done / total, f"{done} of {total} regions")

    yield cohort_suspects(
        request.cohort,
        request.teams,
        request.settings,
        request.source,
        held_up_to_px=held_up_to_px,
        on_region=count,
    )


def _gathered(
    now: _Request,
    title: str,
    agreeing: Mapping[FailureName, tuple[str, ...]],
    held_up_to_px: int,
    job: Job[FailureSet],
) -> Iterator[FailureSet]:
    """Read the objects of suspects; for workers."""
    given = chosen_objects(
        now.cohort,
        agreeing,
        now.settings,
        now.source,
        held_up_to_px=held_up_to_px,
        progress=job.progress,
    )
    yield FailureSet(title, frozenset(agreeing), given=given, agreeing=agreeing)


def _saved(found: CohortSuspects, request: _Request, folder: Path) -> Iterator[Path]:
    """Save; for workers."""
    from napari_panoptic.report.nuclei.suspects import suspects_about, write_suspects
    from napari_panoptic.report.nuclei.tables import input_fingerprints

    cohort, teams = request.cohort, request.teams
    about = suspects_about(cohort, teams, request.settings)
    table, *_ = write_suspects(found, folder, about, input_fingerprints(cohort, teams))
    yield table

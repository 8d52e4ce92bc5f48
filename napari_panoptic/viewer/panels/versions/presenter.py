"""Compare two teams as an old and a new version, in one region or over the cohort."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.progress import Progress
from napari_panoptic.nuclei.regions.run import RegionDone
from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.questions.engines.versions import (
    VersionComparison,
    check_scoring,
    compare_in_region,
    compare_teams_of,
)
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.viewer.jobs.jobs import Job, Latest, Stream
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.region_panel import Material, SeenPresenter, material
from napari_panoptic.viewer.panels.slide_texts import on_slide
from napari_panoptic.viewer.panels.versions.panel import (
    EMPTY,
    ONE_TEAM,
    PRESS,
    VersionsPanel,
)
from napari_panoptic.viewer.state.modes import VersionChoice, VersionScope

OUTDATED_SETTINGS = "Outdated: the settings or the files have changed. Press “Compare” again."
OUTDATED_EDITS = "Outdated: objects have been edited. Save the edits and press “Compare” again."
UNSAVED = "Compared as on disk: unsaved edits are not included."
STOPPED = "Stopped. Press “Compare” to start again."
COMPARING = "Comparing both versions …"


@dataclass(frozen=True)
class _Request:
    """The inputs of a comparison over the cohort besides the files."""

    old: str
    new: str
    settings: EvaluationSettings
    source: Source | None


class VersionsPresenter(SeenPresenter[VersionsPanel]):
    """Compare two teams as an old and a new version."""

    title = "Versions"
    key = "Alt-n"  # V is the mnemonic of napari's menu View
    panel_type = VersionsPanel

    def __init__(self, around: Surroundings, panel: VersionsPanel) -> None:
        super().__init__(around, panel)
        self._state = self.link.state
        self._in_region: Latest[VersionComparison] = Latest(
            self._take, failed=self._on_region_failed
        )
        self._over_cohort: Stream[VersionComparison] = Stream(
            self._take_cohort,
            ended=self._on_ended,
            failed=self._on_failed,
            progressed=self._on_progress,
        )
        self.comparison: VersionComparison | None = None
        """The comparison on screen."""
        self._found: tuple[_Request, VersionComparison] | None = None
        self._asked: _Request | None = None
        self._is_edited_since = False
        self._hint = PRESS
        cohort = self.session.cohort
        teams = [team.name for team in (*cohort.competing_teams, *cohort.teams)]
        self._teams = list(dict.fromkeys(teams))
        panel.offer_teams(self._teams)

    @property
    def is_busy(self) -> bool:
        """Whether versions are being compared."""
        return self._in_region.is_busy or self._over_cohort.is_busy

    @property
    def choice(self) -> VersionChoice:
        """The compared teams and where; teams of this cohort if it has two."""
        kept, teams = self._state.versions, self._teams
        if len(teams) < 2:
            return replace(kept, old="", new="")
        old = kept.old if kept.old in teams else next(t for t in teams if t != kept.new)
        is_usable = kept.new in teams and kept.new != old
        return replace(kept, old=old, new=kept.new if is_usable else _after(teams, old))

    def connections(self) -> Connections:
        """Listen to session, state and panel."""
        session, link, panel = self.session, self.link, self.panel
        return [
            (session.region_changed, self.refresh),
            (session.teams_came, self.refresh),
            (session.settings_changed, self._on_change),
            (session.source_changed, self._on_change),
            (session.copies_changed, self.refresh),
            (session.edited, self._on_edited),
            (link.edits_rested, self.refresh),
            (self._state.events.versions, self._on_choice),
            (self._sight.changed, self._on_sight),
            (panel.choice_changed, partial(setattr, self._state, "versions")),
            (panel.work.start.pushed, self.compare),
            (panel.work.stop.pushed, self._on_stop),
            (panel.object_chosen, self._on_object),
            (panel.region_chosen, link.go_to),
            (panel.gallery_wanted, self._on_gallery),
        ]

    def close(self) -> None:
        """Stop all work."""
        self._in_region.close()
        self._over_cohort.close()

    def compute_now(self) -> None:
        """Compare both versions in the region, or show the known result over the cohort."""
        choice, panel = self.choice, self.panel
        panel.show_choice(choice)
        is_of_cohort = choice.scope is VersionScope.COHORT and len(self._teams) > 1
        if not self._over_cohort.is_busy:
            panel.work.show_count(None, may_start=is_of_cohort)
        why_not = self._why_not()
        if why_not:
            self._in_region.drop()
            self._show(None, hint=why_not)
        elif is_of_cohort:
            self._in_region.drop()
            self._show_cohort(choice)
        else:
            self._compare_region(choice)

    def compare(self) -> None:
        """Compare both versions over the cohort, in a worker."""
        session, choice = self.session, self.choice
        if self._why_not():
            return
        request = _Request(choice.old, choice.new, session.settings, session.source)
        self._asked, self._is_edited_since = request, False
        self._hint = COMPARING
        self._over_cohort.start(partial(_compared, session.cohort, request, session.held_up_to_px))
        self._on_progress(0, len(session.cohort.regions))
        self.refresh()

    def _why_not(self) -> str:
        if len(self._teams) < 2:
            return ONE_TEAM
        try:
            check_scoring(self.session.settings)
        except SettingsError as error:
            return str(error)
        return ""

    def _show(
        self, comparison: VersionComparison | None, *, hint: str = EMPTY, note: str = ""
    ) -> None:
        self.comparison = comparison
        self.panel.show_comparison(comparison, hint=hint, note=note)

    # In the current region.

    def _compare_region(self, choice: VersionChoice) -> None:
        snapshot = self.session.snapshot
        if snapshot is not None and snapshot.pending and not snapshot.is_slide:
            self._in_region.drop()  # stale: new evaluations are being computed
            self._show(None, hint=COMPARING)
            return
        teams = (choice.old, choice.new)
        known = material(self.session, teams=teams)
        if known is None or set(known.teams) != set(teams):
            self._in_region.drop()
            self._show(None, hint=on_slide(snapshot, slide_texts.VERSIONS, EMPTY))
            return
        if self.comparison is None:
            self._show(None, hint=COMPARING)
        names = self.session.cohort.scheme.names
        self._in_region.start(partial(_compared_in_region, known, choice, names))

    def _take(self, comparison: VersionComparison) -> None:
        self._show(comparison)

    def _on_region_failed(self, error: PanopticError) -> None:
        self._show(None, hint=str(error))

    # Over the cohort.

    def _show_cohort(self, choice: VersionChoice) -> None:
        found, session = self._found, self.session
        if found is None or (found[0].old, found[0].new) != (choice.old, choice.new):
            self._show(None, hint=self._hint)
            return
        request, comparison = found
        note = ""
        if (request.settings, request.source) != (session.settings, session.source):
            note = OUTDATED_SETTINGS
        elif session.has_any_edits:
            note = OUTDATED_EDITS if self._is_edited_since else UNSAVED
        self._show(comparison, note=note)

    def _take_cohort(self, comparison: VersionComparison) -> None:
        if self._asked is not None:
            self._found = (self._asked, comparison)

    def _on_progress(self, done: int, total: int) -> None:
        self.panel.work.show_count((done, total))

    def _on_ended(self) -> None:
        if self._hint == COMPARING:
            self._hint = PRESS
        self.refresh()

    def _on_failed(self, error: PanopticError) -> None:
        self._hint = str(error)
        self._show(None, hint=self._hint)

    def _on_stop(self) -> None:
        self._over_cohort.stop()
        self._hint = STOPPED
        self.refresh()

    # Changes elsewhere.

    def _on_choice(self, choice: VersionChoice) -> None:
        asked = self._asked
        if asked is not None and (asked.old, asked.new) != (choice.old, choice.new):
            self._over_cohort.stop()
        self._hint = COMPARING if self._over_cohort.is_busy else PRESS
        self.refresh()

    def _on_change(self, _changed: object) -> None:
        """Stop a comparison of other settings or files; a finished one is marked as outdated."""
        self._over_cohort.stop()
        self._hint = PRESS
        self.refresh()

    def _on_edited(self, _edited: object) -> None:
        """Remember that something was edited; it is shown once the hand rests."""
        self._is_edited_since = True

    def _on_object(self, name: FailureName) -> None:
        self.link.go_to(name.region, name.side, name.id, team=name.team)

    def _on_gallery(self, title: str, names: list[FailureName]) -> None:
        self.link.show_failures(title, names, (self.choice.old, self.choice.new))


def _after(teams: list[str], old: str) -> str:
    """Return the team after another, the first one after the last."""
    return teams[(teams.index(old) + 1) % len(teams)]


def _compared_in_region(
    known: Material, choice: VersionChoice, class_names: tuple[str, ...]
) -> VersionComparison:
    """Compare two versions in a region; for workers."""
    evaluations = known.complete()
    old, new = ((name, evaluations[name]) for name in (choice.old, choice.new))
    return compare_in_region(known.snapshot.region, old, new, class_names)


def _compared(
    cohort: Cohort, request: _Request, held_up_to_px: int, job: Job[VersionComparison]
) -> Iterator[VersionComparison]:
    """Compare two versions over a cohort; for workers."""
    done, total = 0, len(cohort.regions)

    def count(region: RegionDone) -> None:
        nonlocal done
        done += not region.is_again
        job.report(min(done, total), total)

    # One region at a time: the window keeps a processor to itself.
    yield compare_teams_of(
        cohort,
        request.old,
        request.new,
        request.settings,
        source=request.source,
        jobs=1,
        held_up_to_px=held_up_to_px,
        on_result=count,
        progress=Progress(lambda: job.is_wanted),
    )

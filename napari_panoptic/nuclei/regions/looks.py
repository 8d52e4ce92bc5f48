"""Looks at the regions of a cohort: each file is read once for any number of them.

A look sees each region with the evaluations of its teams, held in memory or read in windows, in a
thread, another process or on another machine, and keeps what it needs of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress, StoppedError
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.regions.reading import (
    TooLargeError,
    read_picture,
    region_size,
    too_large,
)
from napari_panoptic.nuclei.regions.region import (
    Evaluated,
    HeldRegion,
    WindowedRegion,
    one_slide,
    slide_workers,
)
from napari_panoptic.nuclei.regions.run import THREADS, run_regions
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings

Teams = Mapping[str, Evaluated[Any]]
"""Team -> its evaluation in a region; its `evaluation` is None if it could not be evaluated."""
_MOST_REGIONS = 8


@dataclass(frozen=True)
class RegionLook:
    """What is looked at in the regions of a cohort; pickled if other processes read them."""

    #: Which teams are read, and how.
    reading: Reading
    #: Called with a region, its teams and its image (None if it is not asked for, or cannot be
    #: read). Returns what is kept, a finding that says why the region is left out, or None.
    look: Callable[[Region, Teams, SlideImage | None], Any]
    #: Whether it is called with all teams at once; else with one after the other, of which one is
    #: in memory at a time.
    at_once: bool = False
    #: Whether regions that are too large to be held are read in windows; else they are left out.
    takes_windows: bool = False
    #: Whether it needs the image.
    reads_image: bool = False
    #: What is reported of regions that are left out as too large; by default that they are.
    too_large: str = ""
    #: The teams and regions that are looked at; None for all.
    only: Container[tuple[str, str]] | None = None

    def teams_in(self, region: str) -> tuple[str, ...]:
        """Return the teams that are looked at in a region."""
        teams, only = self.reading.teams, self.only
        return teams if only is None else tuple(team for team in teams if (team, region) in only)


@dataclass(eq=False)
class Seen:
    """What a look keeps of a region."""

    region: Region
    #: What was odd in the files, and why teams or the region were left out.
    findings: list[Finding] = field(default_factory=list)
    #: The error of the look; it saw nothing more of the region then.
    error: PanopticError | None = None
    _parts: list[Any] = field(default_factory=list)

    @property
    def parts(self) -> Sequence[Any]:
        """What `RegionLook.look` returned: for each team, or once.

        Raises
        ------
        PanopticError
            The error of the look.
        """
        if self.error is not None:
            raise self.error
        return self._parts

    def add(self, look: RegionLook, teams: Teams, image: SlideImage | None) -> None:
        """Look at teams."""
        if self.error is not None:
            return
        try:
            part = look.look(self.region, teams, image)
        except StoppedError:
            raise
        except PanopticError as error:
            self.error = error
            return
        if isinstance(part, Finding):
            self.findings.append(part)
        elif part is not None:
            self._parts.append(part)


def look_at(
    cohort: Cohort,
    looks: Sequence[RegionLook],
    progress: Progress = UNWATCHED,
    *,
    jobs: int | None = 1,
    scheduler: str = THREADS,
) -> Iterator[list[Seen]]:
    """Look at each region of a cohort in several ways at once.

    Files are read once, and each team is evaluated once under each settings. A region is in memory
    only while it is looked at.

    Parameters
    ----------
    cohort
        The cohort.
    looks
        They have the same limit of pixels as the first one.
    progress
        Reported to after each region, and checked for cancellation.
    jobs
        Regions at a time; None for the number of processors. With 1 nothing is read ahead. Of
        threads there are at most eight: each region may take gigabytes.
    scheduler
        As in `napari_panoptic.nuclei.regions.run.run_regions`.

    Yields
    ------
    list of Seen
        For each region that any look wants, in the cohort's order: per look what it keeps.

    Raises
    ------
    StoppedError
        If cancelled.
    """
    work = RegionLooks(tuple(looks))
    wanted = [
        region for region in cohort.regions if any(own.teams_in(region.name) for own in looks)
    ]
    if scheduler == THREADS:
        jobs = min(jobs or os.cpu_count() or 1, _MOST_REGIONS)
    results: Iterator[list[Seen]]
    if scheduler == THREADS and jobs == 1:
        quiet = Progress(progress.is_wanted)
        results = (work.evaluate(cohort, region, progress=quiet) for region in wanted)
    else:
        part = replace(cohort, regions=tuple(wanted))
        results = run_regions(
            part, work, jobs=jobs, scheduler=scheduler, is_wanted=progress.is_wanted
        )
    progress.check()
    for number, (region, seen) in enumerate(zip(wanted, results, strict=False), start=1):
        progress.check()
        progress.tell(number / len(wanted), region.name)
        yield seen
    progress.check()  # the results end early if cancelled


@dataclass(frozen=True)
class RegionLooks:
    """Several looks, as work on a region."""

    looks: tuple[RegionLook, ...]

    @cached_property
    def team_names(self) -> tuple[str, ...]:
        """The teams that any look reads."""
        return tuple(dict.fromkeys(team for own in self.looks for team in own.reading.teams))

    def evaluate(
        self, cohort: Cohort, region: Region, *, progress: Progress = UNWATCHED
    ) -> list[Seen]:
        """Return per look what it keeps of a region."""
        asking = [own for own in self.looks if own.teams_in(region.name)]
        image, odd = read_picture(region) if any(o.reads_image for o in asking) else (None, ())
        seen = [Seen(region, findings=[*odd] if own.reads_image else []) for own in self.looks]
        try:
            self._look(cohort, seen, image, progress)
        finally:
            if image is not None:
                image.close()
        for own in seen:
            own.findings = list(dict.fromkeys(own.findings))
        return seen

    def _look(
        self, cohort: Cohort, seen: Sequence[Seen], image: SlideImage | None, progress: Progress
    ) -> None:
        """Evaluate one team after the other, and let each look see those that it wants."""
        region = seen[0].region
        opened = _opened(cohort, region, self.looks[0].reading)
        is_slide = isinstance(opened, WindowedRegion)
        together: list[dict[str, Evaluated[Any]]] = [{} for _ in self.looks]
        with one_slide(progress) if is_slide else nullcontext():
            for team in self.team_names:
                known: dict[Any, Evaluated[Any]] = {}
                for look, own, teams in zip(self.looks, seen, together, strict=True):
                    if team not in look.teams_in(region.name):
                        continue
                    if isinstance(opened, WindowedRegion) and not look.takes_windows:
                        evaluated = _left_out(look, region, opened)
                    else:
                        key = look.reading.settings, look.reading.source
                        if key not in known:
                            known[key] = _evaluated(opened, team, *key, progress)
                        evaluated = known[key]
                    own.findings += evaluated.findings
                    if look.at_once:
                        teams[team] = evaluated
                    else:
                        own.add(look, {team: evaluated}, image)
                if not isinstance(opened, Finding):
                    opened.forget(team)
            for look, own, teams in zip(self.looks, seen, together, strict=True):
                if teams:
                    own.add(look, teams, image)


_Opened = HeldRegion | WindowedRegion | Finding


def _opened(cohort: Cohort, region: Region, reading: Reading) -> _Opened:
    """Hold a region, or prepare it to be read in windows; or return why neither is possible."""
    try:
        return HeldRegion(cohort, region, reading.settings, held_up_to_px=reading.held_up_to_px)
    except TooLargeError:
        return WindowedRegion(cohort, region, region_size(cohort, region))
    except (PanopticError, OSError) as error:
        return Finding.unreadable(error, region=region.name)


def _evaluated(
    opened: _Opened,
    team: str,
    settings: EvaluationSettings,
    source: Source | None,
    progress: Progress,
) -> Evaluated[Any]:
    """Evaluate a team; whatever prevents it is a finding."""
    if isinstance(opened, Finding):
        return Evaluated(None, (opened,))
    if isinstance(opened, WindowedRegion):
        found = opened.evaluate(team, settings, source, progress=progress, workers=slide_workers())
        return replace(found, of_annotation=(*opened.size.findings, *found.of_annotation))
    evaluate = opened.score if settings.takes_class_masks else opened.evaluate
    return evaluate(team, settings, source)


def _left_out(look: RegionLook, region: Region, slide: WindowedRegion) -> Evaluated[Any]:
    """Return that a look needs regions that can be held."""
    finding = (
        Finding(FindingKind.FALLBACK, look.too_large, region=region.name)
        if look.too_large
        else Finding.unreadable(too_large(region, slide.size.shape), region=region.name)
    )
    return Evaluated(None, (finding,), is_too_large=True)

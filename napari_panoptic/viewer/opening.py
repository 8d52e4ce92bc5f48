"""Which desk shows a cohort: one kind of desk for each thing that cohorts are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import napari
from platformdirs import user_cache_path
from qtpy.compat import isalive
from qtpy.QtWidgets import QWidget

from napari_panoptic.common.errors import CohortError, OutsideLinksError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.inspection.inspect import Inspection, inspect_folder
from napari_panoptic.inspection.values import Fix
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.cohorts.pair import pair_of_files
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.report.nuclei.inspection_picture import InspectionPicture, inspection_picture
from napari_panoptic.samples.write import write_sample
from napari_panoptic.values.cohort import Task
from napari_panoptic.values.links import ObjectLink
from napari_panoptic.viewer.desk.nuclei import Desk
from napari_panoptic.viewer.desk.shell import DeskShell, Wanted
from napari_panoptic.viewer.jobs.jobs import Several
from napari_panoptic.viewer.kit.napari_private import unwrapped, window_check, window_of
from napari_panoptic.viewer.kit.questions import BoxQuestion, ask, existing_folder
from napari_panoptic.viewer.kit.shown import NOTIFICATIONS, OpeningReport, show_error, shown
from napari_panoptic.viewer.panels.inspection import InspectionDialog
from napari_panoptic.viewer.state.preferences import PREFERENCES

TITLE_END = " · napari-panoptic"
"""How the title of a window of this program's own ends, after the cohort's name."""

NO_NUCLEI = "Links lead to nuclei, and this cohort has none. Open the cohort of the link."
SAMPLE_FOLDERS = {
    Task.NUCLEI: "sample",
    Task.DETECTIONS: "sample-detections",
    Task.RATERS: "sample-raters",
}
"""In the user's cache: in a folder that all users share, others could put theirs in its place."""


class AnyCohort(Protocol):
    """What cohorts have in common, whatever they are about."""

    @property
    def name(self) -> str:
        """A name for people."""

    @property
    def root(self) -> Path:
        """The folder it was found in."""

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings."""

    def region(self, name: str) -> Any:
        """Find a region by its name; a CohortError where there is none."""


class AnyDesk(Protocol):
    """What desks have in common, whatever they show."""

    @property
    def is_settled(self) -> bool:
        """Whether everything asked for is shown."""

    def show_failure(self) -> None:
        """Select the first failure, as for a picture."""

    def may_leave(self) -> bool:
        """Return whether another cohort may be shown; asks where something would be lost."""

    def close(self) -> None:
        """Remove the panels and the desk's layers, and leave the window as it was."""


@dataclass(frozen=True, eq=False)
class DeskKind:
    """Functions that open and show one kind of cohort."""

    #: Reads the contents of a folder, in any thread; receives as ``allow_outside`` whether links
    #: out of it are followed.
    read: Callable[..., Any]
    #: Shows the result on the desk of a viewer, which is opened if necessary, beginning with a
    #: region by its name, or with the first if None.
    show: Callable[[Any, Any, str | None], AnyDesk]
    #: Returns the desk of this kind that is open in a viewer, or None.
    present: Callable[[Any], AnyDesk | None]


def _nuclei() -> DeskKind:
    from napari_panoptic.io.cohorts.nuclei import open_cohort
    from napari_panoptic.viewer.desk.nuclei import desk_in, desk_of

    return DeskKind(open_cohort, partial(_show_on, desk_of), desk_in)


def _detections() -> DeskKind:
    from napari_panoptic.io.cohorts.detections import open_detection_cohort
    from napari_panoptic.viewer.desk.detections import detection_desk_in, detection_desk_of

    show = partial(_show_on, detection_desk_of)
    return DeskKind(open_detection_cohort, show, detection_desk_in)


def _show_on(desk_of: Callable[[Any], Any], viewer: Any, cohort: Any, region: str | None) -> Any:
    """Show a cohort on the desk of a viewer, which is opened if necessary."""
    desk = desk_of(viewer)
    desk.show_cohort(cohort, region=region)
    return desk


def _raters() -> DeskKind:
    from napari_panoptic.io.cohorts.raters import open_raters
    from napari_panoptic.viewer.desk.raters import rated_desk_in, show_rated

    return DeskKind(open_raters, show_rated, rated_desk_in)


KINDS: Mapping[Task, Callable[[], DeskKind]] = {
    Task.NUCLEI: _nuclei,
    Task.DETECTIONS: _detections,
    Task.RATERS: _raters,
}
"""The desk for each task; imported only where it is needed."""


@dataclass(frozen=True, eq=False)
class Opened:
    """A cohort that was found in a folder, and its task."""

    task: Task
    cohort: AnyCohort


def read_folder(folder: str | Path, *, allow_outside: bool = False) -> Opened:
    """Detect the task and content of a folder, without a window.

    Parameters
    ----------
    folder
        The cohort's folder.
    allow_outside
        Whether links that lead out of it are followed.

    Raises
    ------
    CohortError
        Where it is no cohort, or about something that no desk shows.
    """
    task = task_of(folder)
    if task not in KINDS:
        raise CohortError(
            f"cohorts about {task} cannot be shown in a window; use 'napari-panoptic evaluate'",
            path=Path(folder),
        )
    return Opened(task, KINDS[task]().read(Path(folder), allow_outside=allow_outside))


def open_in(
    viewer: napari.Viewer, folder: str | Path, *, region: str | None = None
) -> AnyDesk | None:
    """Open a cohort's folder on the desk that suits it; as `show_in`.

    Raises
    ------
    CohortError
        As `read_folder`.
    """
    return show_in(viewer, read_folder(folder), region=region)


def show_in(viewer: napari.Viewer, opened: Opened, *, region: str | None = None) -> AnyDesk | None:
    """Show a cohort on the desk that suits it; desks of other kinds are closed first.

    Parameters
    ----------
    viewer
        A viewer with a window.
    opened
        What to show.
    region
        The region to start with; the first where None.

    Returns
    -------
    AnyDesk or None
        The desk; None if the user keeps the open cohort.
    """
    viewer = unwrapped(viewer)
    others = [kind() for task, kind in KINDS.items() if task is not opened.task]
    suitable = KINDS[opened.task]()
    present = [kind.present(viewer) for kind in (suitable, *others)]
    if not all(desk is None or desk.may_leave() for desk in present):
        return None
    for kind in others:
        desk = kind.present(viewer)
        if desk is not None:
            desk.close()
    desk = suitable.show(viewer, opened.cohort, region)
    if viewer.title.endswith(TITLE_END):  # else the window is not this program's own
        viewer.title = title_of(opened)
    return desk


def title_of(opened: Opened) -> str:
    """Return the title of a window of this program's own."""
    return f"{shown(opened.cohort.name)}{TITLE_END}"


def ask_for_folder(
    viewer: napari.Viewer, parent: QWidget | None = None, report: OpeningReport = NOTIFICATIONS
) -> None:
    """Let the user choose a cohort's folder, and open it in the background."""
    last = PREFERENCES.last_cohort
    title = "Open cohort: a folder with images, annotations and predictions"
    folder = existing_folder(parent, title, "" if last is None else last)
    if folder is not None:
        inspect_in_background(viewer, folder, report)


def open_in_background(viewer: Any, folder: Path, report: OpeningReport = NOTIFICATIONS) -> None:
    """Open a folder and show it; report why if that fails."""
    read = partial(_ask_about_links, partial(_read, folder))
    _in_background(viewer, folder.name, read, _show_chosen, report)


def inspect_in_background(viewer: Any, folder: Path, report: OpeningReport = NOTIFICATIONS) -> None:
    """Show the contents of a folder in a dialog, which opens it; report why if that fails.

    Cohorts of points and of several raters are opened at once.
    """
    read = partial(_ask_about_links, partial(_inspect, folder))
    _in_background(viewer, folder.name, read, _show_chosen, report)


def open_link_in(
    viewer: Any, folder: Path, link: ObjectLink, report: OpeningReport = NOTIFICATIONS
) -> None:
    """Open a folder in the background, and in it the target of a link."""
    read = partial(_ask_about_links, partial(_read, folder))
    _in_background(viewer, folder.name, read, partial(_show_linked, link), report)


def open_dropped(viewer: Any, paths: Sequence[Path], report: OpeningReport = NOTIFICATIONS) -> None:
    """Open a cohort's folder, or compare files with objects of one image, in the background."""
    if len(paths) == 1 and paths[0].is_dir() and paths[0].suffix.casefold() != ".zarr":
        inspect_in_background(viewer, paths[0], report)
    else:
        names = ", ".join(path.name for path in paths)
        _in_background(viewer, names, partial(_read_pair, list(paths)), show_in, report)


def open_sample(
    viewer: Any, report: OpeningReport = NOTIFICATIONS, task: Task = Task.NUCLEI
) -> None:
    """Write the sample cohort of a task if it is not there, and show it."""
    _in_background(viewer, "the sample", partial(read_sample, task), show_in, report)


def read_sample(task: Task) -> Opened:
    """Write the sample cohort of a task into the user's cache if it is not there, and read it."""
    folder = user_cache_path("napari-panoptic") / SAMPLE_FOLDERS[task]
    return read_folder(write_sample(folder, task))


def may_follow(parent: QWidget | None, message: str) -> bool:
    """Ask whether links out of a cohort's folder may be followed."""
    text = f"{message}\n\nOnly follow links in cohorts you trust."
    answers = {"Follow them": True, "Leave them out": False}
    return ask(parent, BoxQuestion("Links out of the cohort", text, answers))


# --- reading ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Inspected:
    """The contents of a folder, and a picture of it."""

    inspection: Inspection
    picture: InspectionPicture | None

    @property
    def cohort(self) -> AnyCohort:
        return self.inspection.cohort

    @classmethod
    def of(cls, inspection: Inspection) -> _Inspected:
        return cls(inspection, inspection_picture(inspection))


@dataclass(frozen=True, eq=False)
class _Outside:
    """Links out of a folder that were not followed; the user is asked about them."""

    message: str
    #: Reads the folder again, and follows them.
    followed: Callable[[], Opened | _Inspected]
    #: The cohort without them, if any.
    unfollowed: Opened | _Inspected | None


def _read(folder: Path, allow_outside: bool) -> Opened:
    return read_folder(folder, allow_outside=allow_outside)


def _inspect(folder: Path, allow_outside: bool) -> _Inspected | Opened:
    """Inspect a cohort of nuclei, or read any other one."""
    if task_of(folder) is not Task.NUCLEI:
        return read_folder(folder, allow_outside=allow_outside)
    return _Inspected.of(inspect_folder(folder, allow_outside=allow_outside))


def _ask_about_links(read: Callable[[bool], Opened | _Inspected]) -> Opened | _Inspected | _Outside:
    """Read a folder, or report that links lead out of it."""
    try:
        answer = read(False)
    except OutsideLinksError as error:
        return _Outside(error.message, partial(read, True), None)
    kinds = {finding.kind: finding for finding in answer.cohort.findings}
    outside = kinds.get(FindingKind.OUTSIDE_FOLDER)
    return answer if outside is None else _Outside(outside.message, partial(read, True), answer)


def _read_pair(paths: Sequence[Path]) -> Opened:
    return Opened(Task.NUCLEI, pair_of_files(paths))


_READING = Several()


def _in_background(
    viewer: Any,
    name: str,
    read: Callable[[], Any],
    show: Callable[[Any, Any], object],
    report: OpeningReport,
) -> None:
    """Read in another thread; show the answer if the window was not closed meanwhile.

    Parameters
    ----------
    viewer
        The viewer.
    name
        The source.
    read
        Called in the other thread.
    show
        Called with the viewer and the answer.
    report
        Where the user sees the progress, and why it cannot be read.
    """
    viewer = unwrapped(viewer)
    is_open = window_check(viewer)

    def take(answer: Any) -> None:
        if not is_open():
            return
        report.show_over()
        if not isinstance(answer, _Outside):
            show(viewer, answer)
        elif may_follow(window_of(viewer), answer.message):
            _in_background(viewer, name, answer.followed, show, report)
        elif answer.unfollowed is not None:
            show(viewer, answer.unfollowed)

    def show_failed(error: Exception) -> None:
        if is_open():
            report.show_over()
            report.show_failed(str(error))

    report.show_reading(name)
    _READING.start(read, take, show_failed)


# --- showing ------------------------------------------------------------------------------------


def _ask_about(viewer: Any, inspected: _Inspected) -> None:
    """Show the recognised contents, apply settings, and open the cohort if wanted."""
    dialog = InspectionDialog(window_of(viewer))
    is_new = not (inspected.inspection.root / DESCRIPTION).exists()
    shown_now = [inspected]

    def show(_viewer: Any, answer: _Inspected) -> None:
        if isalive(dialog):  # type: ignore[no-untyped-call]
            shown_now[0] = answer
            dialog.show_inspection(answer.inspection, answer.picture, is_new=is_new)

    def apply(fix: Fix) -> None:
        def again() -> _Inspected:
            return _Inspected.of(shown_now[0].inspection.with_fixes([fix]))

        dialog.set_busy(True)
        _in_background(viewer, "", again, show, _InDialog(dialog))

    def open_it() -> None:
        inspection = shown_now[0].inspection
        try:
            inspection.save()
        except CohortError as error:
            dialog.show_failed(str(error))
            return
        dialog.accept()
        _show_chosen(viewer, Opened(Task.NUCLEI, inspection.cohort))

    dialog.fix_wanted.connect(apply)
    dialog.open_button.pushed.connect(open_it)
    show(viewer, inspected)
    dialog.open()


class _InDialog:
    """Reports in the dialog that a folder cannot be read again."""

    def __init__(self, dialog: InspectionDialog) -> None:
        self._dialog = dialog

    def show_reading(self, name: str) -> None:
        """Show nothing: the dialog does."""

    def show_failed(self, message: str) -> None:
        """Show why a setting cannot be used."""
        if isalive(self._dialog):  # type: ignore[no-untyped-call]
            self._dialog.show_failed(message)

    def show_over(self) -> None:
        """Show nothing: the dialog does."""


def _show_chosen(viewer: Any, answer: Opened | _Inspected) -> None:
    """Show a cohort that the user chose, and remember it; or what its folder holds."""
    if isinstance(answer, _Inspected):
        _ask_about(viewer, answer)
    elif show_in(viewer, answer) is not None:
        PREFERENCES.last_cohort = answer.cohort.root


def _show_linked(link: ObjectLink, viewer: Any, answer: Opened) -> None:
    """Show a cohort, and in it the target of a link."""
    desk = show_in(viewer, answer)
    if desk is None:
        return
    PREFERENCES.last_cohort = answer.cohort.root
    if isinstance(desk, Desk):
        desk.links.open(link)
    else:
        show_error(NO_NUCLEI)


def _open(
    viewer: Any,
    wanted: Wanted,
    report: OpeningReport = NOTIFICATIONS,
    parent: QWidget | None = None,
) -> None:
    """Open a desk's request: desks do not know each other."""
    if wanted is None:
        ask_for_folder(viewer, parent, report)
    elif isinstance(wanted, Task):
        open_sample(viewer, report, wanted)
    elif isinstance(wanted, Path):
        open_in_background(viewer, wanted, report=report)
    else:
        open_dropped(viewer, wanted, report)


DeskShell.opener = staticmethod(_open)

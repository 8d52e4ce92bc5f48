"""Take the pictures of docs/ in a real window on the sample cohort.

Run on a virtual screen:

    xvfb-run -a -s "-screen 0 1600x1000x24" .venv/bin/python scripts/pictures.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import napari
import numpy as np
from PIL import Image
from qtpy.QtWidgets import QApplication

from napari_panoptic.detections.pairing import DetectionSettings
from napari_panoptic.display.object_rows import WorstFirst
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.samples.write import (
    write_detection_sample,
    write_raters_sample,
    write_sample_cohort,
)
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.detections import DetectionDesk
from napari_panoptic.viewer.desk.nuclei import Desk, desk_of
from napari_panoptic.viewer.desk.raters import show_rated
from napari_panoptic.viewer.desk.window import mark_own
from napari_panoptic.viewer.opening import AnyDesk, open_in
from napari_panoptic.viewer.panels.ranking import RankingPresenter
from napari_panoptic.viewer.panels.versions import VersionsPresenter
from napari_panoptic.viewer.state.preferences import Queue, VersionChoice, VersionScope

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.cases import scene, write_slide
from benchmarks.windows import read_in_windows

DOCS = Path(__file__).resolve().parent.parent / "docs"
WINDOW_PX = (1600, 1000)
PICTURE_PX = (1200, 750)
QUALITY = 52
PATIENCE_S = 60.0
SLIDE = (8_000, 10_000), 40_000
"""Height and width in px of the slide that is shown, and its objects."""


def settle(desk: AnyDesk, *, at_least_s: float = 0.8) -> None:
    """Let the window work until everything asked for is shown."""
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE_S:
        QApplication.processEvents()
        time.sleep(0.01)
        if desk.is_settled and time.monotonic() - start > at_least_s:
            return
    raise TimeoutError("the desk did not settle")


def save(viewer: napari.Viewer, name: str) -> None:
    """Save the window small enough for a repository."""
    shot = viewer.screenshot(canvas_only=False, flash=False)
    picture = Image.fromarray(np.ascontiguousarray(shot[..., :3]))
    picture = picture.resize(PICTURE_PX, Image.Resampling.LANCZOS)
    path = DOCS / "pictures" / f"{name}.jpg"
    picture.save(path, quality=QUALITY, optimize=True, subsampling=0)
    print(f"{path.name}: {path.stat().st_size // 1024} KiB")


def take(desk: Desk, viewer: napari.Viewer) -> None:
    """Take one picture of each workspace, and one of the edits."""
    desk.show_failure()
    for workspace in desk.workspaces:
        desk.reset_workspace(workspace.name)
        if workspace.name == "Cohort":
            desk.presenter(RankingPresenter).ask()
        settle(desk, at_least_s=2.0)
        if workspace.name == "Ambiguous" and desk.link is not None:
            desk.link.scene.fit()
            settle(desk)
        name = workspace.name.lower()
        save(viewer, "desk" if name == "inspect" else f"desk-{name}")
    versions = desk.presenter(VersionsPresenter)
    desk.state.versions = VersionChoice("over-splitter", "merger", VersionScope.COHORT)
    desk.show_workspace("Teams")
    desk.reveal("Versions")
    settle(desk)
    versions.ask()
    settle(desk, at_least_s=2.0)
    save(viewer, "desk-versions")
    desk.reveal("Edits")
    if desk.session is not None:
        y, x = np.mgrid[120:190, 60:190]  # rubs some nuclei out
        desk.session.edit(Side.PREDICTION, y.ravel(), x.ravel(), 0)
        settle(desk, at_least_s=2.0)
        save(viewer, "desk-edits")
        desk.session.discard_edits()
        settle(desk)


def own_window() -> napari.Viewer:
    """Open a window as the program does, at the size of the pictures."""
    viewer = napari.Viewer()
    mark_own(viewer)
    viewer.window.resize(*WINDOW_PX)
    return viewer


def take_detections() -> None:
    """Take the picture of the desk of detections, at a threshold in the middle."""
    with tempfile.TemporaryDirectory() as folder:
        viewer = own_window()
        try:
            cohort = write_detection_sample(Path(folder) / "detections")
            desk = open_in(viewer, cohort, region="A01_00a")
            if not isinstance(desk, DetectionDesk) or desk.session is None:
                raise TypeError("expected the desk of detections")
            settle(desk, at_least_s=2.0)
            desk.session.set_team("eager")
            desk.session.set_settings(DetectionSettings(confidence=0.5))
            settle(desk)
            desk.show_failure()
            desk.scene.fit()
            settle(desk)
            save(viewer, "detections")
        finally:
            viewer.close()


def in_window(action: Callable[[Desk, napari.Viewer], None]) -> None:
    """Open the sample cohort in a window and do something with it."""
    with tempfile.TemporaryDirectory() as folder:
        cohort = open_cohort(write_sample_cohort(Path(folder) / "sample"))
        viewer = own_window()
        try:
            desk = desk_of(viewer)
            desk.show_cohort(cohort, region="Sample-B_1")
            settle(desk, at_least_s=2.0)
            desk.session.set_team("over-splitter") if desk.session else None
            settle(desk)
            desk.state.queue, desk.state.order = Queue.REGION, WorstFirst.IMPACT
            desk.link.failures.step() if desk.link else None
            settle(desk)
            action(desk, viewer)
        finally:
            viewer.close()


def take_raters() -> None:
    """Take the pictures of several raters: a volume, and a slice with all levels."""
    with tempfile.TemporaryDirectory() as folder:
        viewer = own_window()
        try:
            cohort = open_raters(write_raters_sample(Path(folder) / "sample"))
            desk = show_rated(viewer, cohort)
            settle(desk, at_least_s=2.0)
            save(viewer, "raters")
            desk.cases.structures.setCurrentText("prostate/task02")
            desk.cases.structures.choose("prostate/task02")
            desk.cases.teams.choose("shifted")
            desk.levels.only.setChecked(False)
            settle(desk, at_least_s=2.0)
            save(viewer, "raters-levels")
            desk.close()
        finally:
            viewer.close()


def take_slide() -> None:
    """Take the picture of a slide from afar, where squares tell where objects fail."""
    with tempfile.TemporaryDirectory() as folder:
        viewer = own_window()
        try:
            desk = desk_of(viewer)
            cohort = open_cohort(write_slide(Path(folder) / "slide", scene(*SLIDE)))
            with read_in_windows():
                desk.show_cohort(cohort)
            settle(desk, at_least_s=2.0)
            viewer.reset_view()
            settle(desk, at_least_s=2.0)
            save(viewer, "desk-slide")
            desk.close()
        finally:
            viewer.close()


if __name__ == "__main__":
    in_window(take)
    take_raters()
    take_detections()
    take_slide()
    sys.exit(0)

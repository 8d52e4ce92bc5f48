"""Kernels that are ready before they are needed."""

import subprocess
import sys
import time

import pytest

from napari_panoptic.nuclei import first_start
from napari_panoptic.nuclei import warm_up as warm
from napari_panoptic.nuclei.warm_up import WarmUp

CHAIN = """
import sys
from pathlib import Path

import numpy as np

from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.nuclei.values.windowed_labels import TiledArea
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.labels.label_images import read_labels
from napari_panoptic.nuclei.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.nuclei.live.session import Session
from napari_panoptic.nuclei.live.snapshots import load_region
from napari_panoptic.nuclei.display import failure_cells
from napari_panoptic.nuclei.display import object_layers as layers
from napari_panoptic.nuclei.display import slide_layers
from napari_panoptic.nuclei import warm_up as warm
from napari_panoptic.kernels.drawing import outline_pixels
from napari_panoptic.viewer import warm as viewer_warm
from napari_panoptic.viewer.editing.shapes_ready import are_shapes_ready
from napari_panoptic.nuclei.display.team_pictures import consensus_picture
from napari_panoptic.nuclei.display.styles import ColourBy
from tests.support.small_cohort import write_cohort
from tests.support.slides import random_pair, tiled

viewer_warm.warm_up()
warm.WARM_UP.finish()
assert are_shapes_ready()
before = {name: list(kernel.signatures) for name, kernel in warm.kernels().items()}
assert before

folder = Path(sys.argv[1])
cohort = open_cohort(write_cohort(folder / "cohort"))
for region in cohort.regions:
    for source in (None, Source.SUBMISSION):
        snapshot = None
        for changes in (
            {},
            {"matching": "centroid"},
            {"iou_threshold": 0.2},
            {"ambiguous": "majority"},
            {"ambiguous": "keep"},
            {"ambiguous": "clip-predictions"},
            {"restoration": "border-dilated", "radius": 3},
            {"restoration": "border-dilated", "radius": -1},
            {"outlines": "both-whole"},
        ):
            settings = EvaluationSettings(**changes)
            snapshot = load_region(
                cohort, region.name, settings, source=source, previous=snapshot
            )
        for labels in snapshot.predictions.values():
            outline_pixels(layers.label_data(labels), 2)
        if snapshot.ambiguous is not None:
            layers.hatching(snapshot.ambiguous)
        if snapshot.evaluations:
            consensus_picture(snapshot.evaluations, 2)
        session = Session(cohort)
        session.deliver(session.request(region_name=region.name), snapshot)
        if session.evaluation is None:
            continue
        for side in Side:
            session.edit(side, np.arange(5), np.arange(5), 77, classes={77: "Epithelial"})
            session.edit(side, np.arange(3), np.arange(3), 0)
        area = np.zeros(snapshot.shape, bool)
        area[:4] = True
        session.set_ambiguous(area)

pair = random_pair((700, 1100), 60)
outcomes = evaluate(pair).outcomes
drawn = slide_layers.DrawnSide(tiled(pair.reference), outcomes.reference)
for width_px in (0, 2):
    drawn.look = slide_layers.SideLook(drawn.codes(ColourBy.CLASS, None), (width_px, width_px))
    for level in drawn.levels:
        np.asarray(level)
failure_cells.FailureCells.count(outcomes, (700, 1100), 64)
area = TiledArea((700, 1100), lambda box: np.ones((box[2] - box[0], box[3] - box[1]), bool))
np.asarray(slide_layers.DrawnArea(area).levels[0])
of_slides = [name for name in warm.kernels() if "slide_layers" in name or "failure_cells" in name]
unknown = [name for name in of_slides if name not in before]
unready = [name for name in of_slides if not before.get(name, True)]
assert not unknown + unready, unknown + unready

labels = np.zeros((40, 50), np.int64)
labels[3:9, 3:9], labels[20:30, 20:35] = 7, 50
(folder / "a.json").write_text('{"7": "Epithelial", "50": "Lymphocyte"}', encoding="utf-8")
for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"):
    for order in "CF":
        np.save(folder / "a.npy", np.asarray(labels.astype(dtype), order=order))
        read_labels(MaskFiles(Source.LABELS, {"": (folder / "a.npy",)}), MONUSAC_CLASSES)

after = {name: list(kernel.signatures) for name, kernel in warm.kernels().items()}
new = {
    name: signatures
    for name, signatures in after.items()
    if name in before and signatures != before[name]
}
print("compiled later:", new)
sys.exit(bool(new))
"""


@pytest.mark.long
def test_nothing_is_compiled_after_the_warm_up(tmp_path):
    # In a process of its own: other tests have kernels compiled already.
    done = subprocess.run(
        [sys.executable, "-c", CHAIN, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_where_nothing_was_started_nobody_waits():
    WarmUp().wait()


def test_a_region_waits_for_what_shows_it_and_not_for_the_rest(monkeypatch):
    up = WarmUp()
    monkeypatch.setattr(warm, "has_compiled", lambda: False)
    monkeypatch.setattr(warm, "LEISURE_S", 60.0)
    up.start()
    up.wait()
    assert up._can_show.is_set()
    assert up._thread.is_alive()
    up.go_on()
    up._thread.join(60)
    assert not up._thread.is_alive()
    assert not up.is_first_start


def test_on_a_first_start_edits_are_waited_for_too(monkeypatch):
    up = WarmUp()
    monkeypatch.setattr(warm, "has_compiled", lambda: True)
    told = []

    def change(*_args):
        told.append(up.is_first_start)
        time.sleep(0.1)

    monkeypatch.setattr(warm, "change_something", change)
    up.start()
    up.wait()
    assert up._can_edit.is_set()
    assert told == [True]
    up._thread.join(60)
    assert not up._thread.is_alive()
    assert not up.is_first_start


def test_without_a_place_for_files_nobody_waits_for_ever(monkeypatch):
    def fail(**_kwargs):
        raise PermissionError

    monkeypatch.setattr(warm, "TemporaryDirectory", fail)
    up = WarmUp()
    up.start()
    up.wait()
    up._thread.join(10)
    assert not up._thread.is_alive()


LISTED = """
import sys
from pathlib import Path
from napari_panoptic.nuclei import first_start
from napari_panoptic.nuclei import warm_up as warm

if sys.argv[1] == "beside":
    first_start.evaluate_and_edit()
else:
    cohort = warm.write_tiny_cohort(Path(sys.argv[1]))
    warm.change_something(cohort, warm.show_something(cohort))
for name, kernel in warm.kernels().items():
    for signature in kernel.signatures:
        print(name, signature)
"""


@pytest.mark.long
def test_the_process_beside_compiles_what_the_window_needs(tmp_path):
    """And nothing else: what it does is done for the window, kernel by kernel."""
    beside, here = (
        set(
            subprocess.run(
                [sys.executable, "-c", LISTED, what], capture_output=True, text=True, check=True
            ).stdout.splitlines()
        )
        for what in ("beside", str(tmp_path))
    )
    assert beside - here == set()
    engine = tuple(
        f"napari_panoptic.kernels.{name}." for name in ("changes", "contours", "counts", "relabel")
    )
    evaluated = {line for line in here if line.startswith(engine)}
    assert len(beside & evaluated) > 0.8 * len(evaluated)


@pytest.mark.long
def test_on_a_first_start_another_process_compiles_too(monkeypatch):
    monkeypatch.setattr(first_start, "has_cached_kernels", lambda: False)
    monkeypatch.setattr(first_start.os, "cpu_count", lambda: 2)
    beside = first_start.compile_beside()
    assert beside is not None
    assert beside.wait(250) == 0


@pytest.mark.parametrize(("is_cached", "processors"), [(True, 8), (False, 1), (False, None)])
def test_else_there_is_none(monkeypatch, is_cached, processors):
    monkeypatch.setattr(first_start, "has_cached_kernels", lambda: is_cached)
    monkeypatch.setattr(first_start.os, "cpu_count", lambda: processors)
    assert first_start.compile_beside() is None


def test_the_process_beside_ends_with_the_warm_up(monkeypatch):
    beside = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    monkeypatch.setattr(warm, "compile_beside", lambda: beside)
    monkeypatch.setattr(warm, "show_something", lambda _: None)
    up = WarmUp()
    up._is_leaving.set()
    up.start()
    up.leave()
    assert beside.returncode is not None


UNITS = """
from unittest.mock import patch
import pint
from napari_panoptic.viewer import warm as work

kinds = []
note = lambda: kinds.append(type(pint.get_application_registry().get()).__name__)
with patch.object(type(work.WARM_UP), "start", lambda _self: note()):
    note()
    work.warm_up()
print(*kinds)
"""


@pytest.mark.long
def test_units_are_defined_before_another_thread_creates_layers():
    """Defined in two threads at once, napari's units are incomplete for a moment."""
    done = subprocess.run([sys.executable, "-c", UNITS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["LazyRegistry", "UnitRegistry"]

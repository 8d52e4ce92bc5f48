"""Load or compile the kernels while the window opens, so that it does not wait for them later.

Everything that a desk does with nuclei is done once with a region of a few pixels. A kernel
that was compiled before comes from the disk; on a first start, when there is none,
each is compiled, which takes seconds, half of them in another process. Regions are
shown only when the kernels that the window itself runs are ready: it would stand still
where it had to compile them.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread, main_thread
from typing import Any

import numpy as np
import tifffile
from numba.extending import is_jitted
from numpy.typing import NDArray

from napari_panoptic.io.cohorts.layouts import ANNOTATIONS, TEAMS
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import LoadRequest, Objects
from napari_panoptic.io.formats.labels.label_images import read_labels
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.io.formats.saving import write_objects
from napari_panoptic.kernels.drawing import outline_pixels
from napari_panoptic.nuclei.display import marks, slide_layers
from napari_panoptic.nuclei.display import object_layers as layers
from napari_panoptic.nuclei.display.failure_cells import SMALLEST_CELL_PX, FailureCells
from napari_panoptic.nuclei.display.styles import ColourBy
from napari_panoptic.nuclei.display.team_pictures import cell_pictures
from napari_panoptic.nuclei.edits import IdWindow
from napari_panoptic.nuclei.first_start import compile_beside, has_cached_kernels
from napari_panoptic.nuclei.live.session import Session
from napari_panoptic.nuclei.live.snapshots import RegionSnapshot, load_region
from napari_panoptic.nuclei.values.cohort import MONUSAC_CLASSES, Cohort, MaskFiles, Source
from napari_panoptic.nuclei.values.labels import LabelImage
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.nuclei.values.windowed_labels import Box, TiledLabels

PATIENCE_S = 180.0
"""The longest time that a worker waits for kernels."""
LEISURE_S = 5.0
"""The longest time that kernels which no picture needs wait for the first picture."""
SIDE_PX = 24
OTHER_SETTINGS = (
    {"matching": "centroid", "ambiguous": "keep", "outlines": "both-whole"},
    {"iou_threshold": 0.3, "ambiguous": "majority"},
    {"restoration": "border-dilated", "ambiguous": "clip-predictions"},
    {"restoration": "border-dilated", "radius": -1, "distances": False},
)
"""What the sliders and menus of the settings lead to, beside the defaults."""


class WarmUp:
    """Compiles or loads the kernels of this process, once, in a thread of its own.

    Parameters
    ----------
    at_last
        Called in that thread with the region of a few pixels when everything else is
        done: what the caller draws besides.
    """

    def __init__(self, at_last: Callable[[RegionSnapshot], None] = lambda _snapshot: None) -> None:
        self.at_last = at_last
        self._lock = Lock()
        self._thread: Thread | None = None
        self._was_cold = False
        self._can_show, self._is_shown = Event(), Event()
        self._can_edit, self._is_leaving = Event(), Event()

    def start(self) -> None:
        """Begin, unless that was done before."""
        with self._lock:
            if self._thread is None:
                self._was_cold = not has_cached_kernels()
                self._thread = Thread(target=self._run, name="warm-up", daemon=True)
                self._thread.start()
                atexit.register(self.leave)

    def wait(self) -> None:
        """Wait until a region can be shown; return at once if nothing was started. For workers.

        On a first start, wait until it can be edited too: the window must not still be
        compiling when the user starts to edit.
        """
        if self._thread is not None:
            self._can_show.wait(PATIENCE_S)
            if has_compiled():
                self._can_edit.wait(PATIENCE_S)

    def leave(self) -> None:
        """Start nothing more, and wait for the rest: compiling must not outlive the interpreter."""
        self._is_leaving.set()
        self._is_shown.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def go_on(self) -> None:
        """Compile what no picture needs, now that the first one is shown."""
        self._is_shown.set()

    def finish(self) -> None:
        """Make everything ready now, and wait for it."""
        self.start()
        self.go_on()
        if self._thread is not None:
            self._thread.join()

    @property
    def is_compiling(self) -> bool:
        """Whether nothing was cached at the start, and the first picture waits for kernels."""
        return self._was_cold and not self._can_show.is_set()

    @property
    def is_first_start(self) -> bool:
        """Whether kernels are being compiled, which takes seconds."""
        return self._thread is not None and not self._can_edit.is_set() and has_compiled()

    def _run(self) -> None:
        beside = compile_beside()
        try:
            with TemporaryDirectory(prefix="napari-panoptic-") as folder:
                cohort = write_tiny_cohort(Path(folder))
                snapshot = show_something(cohort)
                self._can_show.set()
                if not has_compiled():
                    self._is_shown.wait(LEISURE_S)
                if self._is_leaving.is_set():
                    return
                change_something(cohort, snapshot)
                self._can_edit.set()
                if self._is_leaving.is_set():
                    return
                compare_something(snapshot)
                save_something(Path(folder))
                if not self._is_leaving.is_set():
                    self.at_last(snapshot)
        except RuntimeError:
            if main_thread().is_alive():
                raise
            # Else the interpreter is ending, and starts no more threads.
        except OSError:
            pass  # no place for temporary files: each kernel is made ready when it is needed
        finally:
            self._can_show.set()
            self._can_edit.set()
            if beside is not None:
                beside.terminate()
                beside.wait()


WARM_UP = WarmUp()
"""That of this process."""


def show_something(cohort: Cohort) -> RegionSnapshot:
    """Read, evaluate and draw the tiny region as the desk does at first."""
    snapshot = load_region(cohort, "P_1", EvaluationSettings())
    for labels in (snapshot.reference, *snapshot.predictions.values()):
        if labels is not None:
            outline_pixels(layers.label_data(labels), 1)
    if snapshot.ambiguous is not None:
        layers.hatching(snapshot.ambiguous)
    return snapshot


def change_something(cohort: Cohort, snapshot: RegionSnapshot) -> None:
    """Change settings and edit, on either side, as the desk does."""
    for changes in OTHER_SETTINGS:
        settings = snapshot.settings.replaced(**changes)
        load_region(cohort, snapshot.region.name, settings, previous=snapshot)
    session = Session(cohort)
    session.deliver(session.request(), snapshot)
    y, x = np.mgrid[4:6, 4:12].reshape(2, -1)
    numbers = np.array([[0, 1], [1, 2]], np.uint16)
    for side in Side:
        ids = np.array([0, 1, 900], np.int64)
        classes = {900: cohort.scheme.names[0], 901: cohort.scheme.names[1]}
        session.edit(side, y, x, 901, classes=classes)
        session.edit(side, y, x, 0)
        session.edit_window(side, IdWindow((3, 3), numbers, ids), classes=classes)
        session.set_class(side, 900, cohort.scheme.names[1])
    session.set_ambiguous(_area(slice(2, 9)))
    session.set_ambiguous(None)
    session.edited_labels(Side.REFERENCE)
    labels = snapshot.predictions["T"]
    marks.outlines(labels.index, 1, len(labels))


def compare_something(snapshot: RegionSnapshot) -> None:
    """Draw what marks and compares objects: rings, the teams' cells, a slide."""
    evaluations, reference = snapshot.evaluations, snapshot.reference
    if reference is None:
        raise RuntimeError("the tiny region has an annotation")
    found = evaluations["T"].outcomes
    layers.emphasis(
        reference,
        0,
        box=found.reference.bbox[0],
        other=snapshot.predictions["T"],
        partner_row=0,
        partner_box=found.prediction.bbox[0],
    )
    cell_pictures(evaluations, (1, 1))
    draw_slide(snapshot)


def draw_slide(snapshot: RegionSnapshot) -> None:
    """Draw the objects of the tiny region as those of a slide: near, from afar, and in squares."""
    outcomes, labels = snapshot.evaluations["T"].outcomes, snapshot.predictions["T"]

    def read(box: Box) -> NDArray[np.int32]:
        y0, x0, y1, x1 = box
        return np.ascontiguousarray(labels.index[y0:y1, x0:x1])

    tiles = TiledLabels(
        labels.shape,
        labels.ids,
        labels.class_index,
        labels.original_ids,
        labels.class_names,
        read,
    )
    drawn = slide_layers.DrawnSide(tiles, outcomes.prediction)
    codes = drawn.codes(ColourBy.STATUS, None)
    for width_px in (0, 1):
        drawn.look = slide_layers.SideLook(codes, (width_px,) * slide_layers.LEVELS_FROM_PIXELS)
        for level in drawn.levels:
            np.asarray(level)
    FailureCells.count(outcomes, labels.shape, SMALLEST_CELL_PX)


def save_something(folder: Path) -> None:
    """Write objects in every form, one with a hole and one in two pieces; read some."""
    drawn = np.zeros((SIDE_PX, SIDE_PX), np.int32)
    drawn[3:9, 3:9], drawn[5:7, 5:7] = 1, 0
    drawn[12:16, 3:6], drawn[16:20, 6:9] = 2, 2
    names = {1: MONUSAC_CLASSES.names[0], 2: MONUSAC_CLASSES.names[1]}
    labels = LabelImage.from_array(drawn, names, MONUSAC_CLASSES.names)
    where = (Side.REFERENCE, "P_1", "", _area(slice(14, 22)), MONUSAC_CLASSES, None)
    objects = Objects(labels, *where)
    for ending in (".tif", ".geojson", ".xml"):
        write_objects(folder / f"objects{ending}", objects)
    polygons = MaskFiles(Source.GEOJSON, {"": (folder / "objects.geojson",)})
    load_masks(polygons, MONUSAC_CLASSES, shape=labels.shape)
    image = MaskFiles(Source.LABELS, {"": (folder / "objects.tif",)})
    read_labels(image, MONUSAC_CLASSES, LoadRequest(shape=labels.shape))
    # Masks of submissions are binary, and column by column in memory.
    np.save(folder / "binary.npy", np.asfortranarray(drawn > 0))
    binary = MaskFiles(Source.LABELS, {MONUSAC_CLASSES.names[0]: (folder / "binary.npy",)})
    read_labels(binary, MONUSAC_CLASSES, LoadRequest(shape=labels.shape))


def has_compiled() -> bool:
    """Return whether a kernel of this package was not found on the disk in this process."""
    return any(sum(kernel.stats.cache_misses.values()) for kernel in kernels().values())


def kernels() -> dict[str, Any]:
    """List the compiled functions of this package, as far as imported, by module and name."""
    modules = [m for name, m in list(sys.modules.items()) if name.startswith(_KERNELS)]
    return {
        f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}": kernel
        for module in modules
        for kernel in list(vars(module).values())
        if is_jitted(kernel) and kernel.py_func.__module__.startswith(_KERNELS)
    }


_KERNELS = "napari_panoptic.kernels."


def write_tiny_cohort(folder: Path) -> Cohort:
    """Write a region with two objects, an ambiguous area and a team that finds most of it."""
    annotations = folder / ANNOTATIONS / "P"
    team = folder / TEAMS / "T" / "P"
    for place in (annotations, team):
        place.mkdir(parents=True)
    image = np.full((SIDE_PX, SIDE_PX, 3), 200, np.uint8)
    tifffile.imwrite(annotations / "P_1.tif", image, photometric="rgb")
    (annotations / "P_1.xml").write_text(_annotation(), encoding="utf-8")
    mask = np.zeros((SIDE_PX, SIDE_PX, 3), np.uint8)
    mask[4:9, 4:9] = MONUSAC_CLASSES.colours[0]
    mask[14:20, 16:22] = MONUSAC_CLASSES.colours[1]
    mask[15:17, 4:9] = MONUSAC_CLASSES.colours[1]
    tifffile.imwrite(team / "P_1_mask.png.tif", mask, photometric="rgb")
    return open_cohort(folder)


def _annotation() -> str:
    """Write an annotation as ImageScope does, without the kernels that trace outlines."""
    boxes = {
        MONUSAC_CLASSES.names[0]: (3, 3, 9, 9),
        MONUSAC_CLASSES.names[1]: (12, 4, 20, 12),
        str(MONUSAC_CLASSES.ambiguous): (12, 14, 20, 22),
    }
    text = '<Annotations MicronsPerPixel="0.25">'
    for number, (name, (y0, x0, y1, x1)) in enumerate(boxes.items(), start=1):
        corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1))
        vertices = "".join(f'<Vertex X="{x}" Y="{y}" Z="0"/>' for x, y in corners)
        text += (
            f'<Annotation Id="{number}"><Attributes><Attribute Name="{name}"/></Attributes>'
            f'<Regions><Region Id="1"><Vertices>{vertices}</Vertices></Region></Regions>'
            f"</Annotation>"
        )
    return text + "</Annotations>"


def _area(columns: slice) -> NDArray[np.bool_]:
    area = np.zeros((SIDE_PX, SIDE_PX), bool)
    area[12:20, columns] = True
    return area

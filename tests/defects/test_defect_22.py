"""Start-up tricks, global parameters and errors of our own that others had to bear."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import tifffile
from matplotlib.artist import Artist
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.files import guard
from napari_panoptic.io.formats.format import LoadRequest
from napari_panoptic.io.formats.labels.label_images import read_labels
from napari_panoptic.report.plots import svg_text
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from tests.support.builders import label_files


class _Pause(Artist):
    """Waits while it is drawn until the test goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.may_go_on = threading.Event(), threading.Event()

    def draw(self, renderer: RendererBase) -> None:  # noqa: ARG002
        self.reached.set()
        assert self.may_go_on.wait(60)


def test_defect_22_the_command_leaves_the_garbage_collector_alone() -> None:
    program = (
        "import gc, runpy, sys\n"
        "sys.argv = ['napari-panoptic', '--version']\n"
        "try:\n"
        "    runpy.run_module('napari_panoptic', run_name='__main__')\n"
        "except SystemExit:\n"
        "    pass\n"
        "assert gc.isenabled()\n"
        "assert gc.get_freeze_count() == 0, gc.get_freeze_count()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_defect_22_a_figure_written_elsewhere_reverts_no_parameter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another plugin changes a parameter while a worker writes a figure: the change stays."""
    monkeypatch.setitem(mpl.rcParams, "lines.linewidth", 1.5)
    before = mpl.rcParams["svg.hashsalt"]
    figure, pause = Figure(), _Pause()
    figure.add_artist(pause)
    worker = threading.Thread(target=svg_text, args=(figure,))
    worker.start()
    assert pause.reached.wait(60)
    mpl.rcParams["lines.linewidth"] = 7.25
    pause.may_go_on.set()
    worker.join(60)
    assert mpl.rcParams["lines.linewidth"] == 7.25
    assert mpl.rcParams["svg.hashsalt"] == before


def test_defect_22_two_workers_that_write_figures_leave_no_parameter_behind() -> None:
    before = mpl.rcParams["svg.hashsalt"]
    figures, pauses, workers = [Figure(), Figure()], [_Pause(), _Pause()], []
    for number, (figure, pause) in enumerate(zip(figures, pauses, strict=True)):
        figure.add_artist(pause)
        workers.append(
            threading.Thread(target=svg_text, args=(figure,), kwargs={"salt": str(number)})
        )
    workers[0].start()
    assert pauses[0].reached.wait(60)
    workers[1].start()
    pauses[1].reached.wait(0.2)  # with one writer at a time it is not reached yet
    pauses[0].may_go_on.set()
    workers[0].join(60)
    pauses[1].may_go_on.set()
    workers[1].join(60)
    assert mpl.rcParams["svg.hashsalt"] == before


def _read(path: Path) -> list[int]:
    files = label_files(Lymphocyte=path)
    loaded = read_labels(files, MONUSAC_CLASSES, LoadRequest(shape=(20, 30), region="R", team="T"))
    return loaded.labels.class_index.tolist()


def _write(path: Path) -> Path:
    pixels = np.zeros((20, 30), np.uint8)
    pixels[3:9, 4:12] = 1
    match path.suffix:
        case ".tif":
            tifffile.imwrite(path, pixels)
        case ".npy":
            np.save(path, pixels)
        case _:
            Image.fromarray(pixels).save(path)
    return path


@pytest.mark.parametrize("name", ["label.tif", "label.npy", "label.png"])
def test_defect_22_a_mistake_in_this_program_is_no_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = _write(tmp_path / name)
    assert len(_read(path)) == 1
    monkeypatch.delattr(guard, "BYTES_PER_PX")  # as after a typo
    with pytest.raises(NameError, match="BYTES_PER_PX"):
        _read(path)


def test_defect_22_a_decoder_that_gives_up_with_such_an_error_still_means_damage(
    tmp_path: Path,
) -> None:
    """Pillow raises SyntaxError for a broken PNG."""
    path = _write(tmp_path / "label.png")
    content = path.read_bytes()
    at = content.index(b"IDAT")
    path.write_bytes(content[:at] + b"I\0\0\0" + content[at + 4 :])
    with pytest.raises(UnreadableFileError, match="damaged"):
        _read(path)

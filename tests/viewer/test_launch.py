"""The window that the command line opens."""

import shutil
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from skimage.io import imread

from napari_panoptic.common.errors import CohortError, SettingsError
from napari_panoptic.display.styles import STATUS_COLOURS
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.values.links import CohortKey, LinkError, LinkMaker, ObjectLink
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer import launch
from tests.support.sandbox import contents, sandbox
from tests.viewer.in_a_process import run_in_process

OTHERS = ("napari", "vispy", "mesa_shader_cache", "qtshadercache", "fontconfig")
"""What the viewer, Qt and the graphics driver keep in their own places."""
pytestmark = pytest.mark.usefixtures("qtbot")


def test_a_picture_shows_coloured_objects_and_filled_docks(sample_folder, tmp_path):
    path = tmp_path / "ünïcode.png"

    # In a process of its own, as a person would: napari's tests keep one for themselves.
    code = "import sys; from napari_panoptic.cli.main import main; sys.exit(main(sys.argv[1:]))"
    options = ["view", sample_folder, "--region", "Sample-A_1", "--screenshot", path]
    around, before = tmp_path / "around", contents(sample_folder)
    environment = sandbox(around)
    places = set(contents(around))
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, options)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=around / "cwd",
        env=environment,
    )

    assert done.returncode == 0, done.stderr
    # Settings and caches are napari's and the toolkit's; this program adds none to them.
    written = {name.split("/", 2)[1] for name in set(contents(around)) - places}
    assert not [name for name in written if not name.startswith(OTHERS)], written
    assert contents(sample_folder) == before
    pixels = imread(path)[..., :3].astype(int)
    assert min(pixels.shape[:2]) >= 480
    for colour in STATUS_COLOURS.values():
        near = np.abs(pixels - colour).max(axis=-1) <= 12
        assert near.sum() > 10, f"nothing is drawn in {colour}"


HANGING_READ = """
import sys, time
from napari_panoptic.cli.main import main
from napari_panoptic.viewer import launch
from napari_panoptic.viewer.jobs import region_work

launch.PATIENCE_S, launch.CLOSING_S = 0.5, 0.1
region_work.load_in_steps = lambda *_args, **_options: time.sleep(600)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.long
def test_a_read_that_hangs_ends_in_a_message_and_keeps_no_process(sample_folder, tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            HANGING_READ,
            "view",
            sample_folder,
            "--screenshot",
            tmp_path / "p.png",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=sandbox(tmp_path / "around"),
    )
    assert done.returncode == 1, done.stderr
    assert "nothing has happened for" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_picture_is_waited_for_while_there_is_progress(monkeypatch, tmp_path):
    """A region that takes longer than a window is patient, but is being computed meanwhile."""
    monkeypatch.setattr(launch, "PATIENCE_S", 0.01)
    work = iter(range(100))
    monkeypatch.setattr(launch, "_worker_s", lambda: next(work) * launch.WORKED_S)
    checks = iter(range(60))
    pictures = []
    viewer = SimpleNamespace(screenshot=lambda path, **_: pictures.append(path))
    desk = SlowDesk(lambda: next(checks, 60) == 60)
    launch._take_picture(viewer, desk, tmp_path / "p.png")
    assert pictures == [str(tmp_path / "p.png")]
    assert desk.failures_shown == 1


class SlowDesk:
    """A desk that is settled in the end."""

    def __init__(self, has_settled):
        self._has_settled, self.failures_shown = has_settled, 0

    @property
    def is_settled(self):
        return self._has_settled()

    def show_failure(self):
        self.failures_shown += 1


def test_an_unknown_region_is_refused_before_a_window_opens(sample_folder, tmp_path):
    with pytest.raises(SettingsError, match=r"--region: there is no region .* did you mean"):
        launch.run_view(sample_folder, region="Sample-A_9", screenshot=tmp_path / "a.png")


def test_a_folder_that_is_no_cohort_is_refused(tmp_path):
    with pytest.raises(CohortError):
        launch.run_view(tmp_path, screenshot=tmp_path / "a.png")


@pytest.mark.long
def test_a_window_needs_nothing_that_takes_long_to_import():
    heavy = (
        *(f"scipy.{name}" for name in ("fft", "integrate", "interpolate", "io", "ndimage")),
        *(f"scipy.{name}" for name in ("optimize", "sparse", "spatial", "stats")),
        *("skimage.color", "skimage.morphology", "zarr", "numcodecs", "fsspec"),
        *("matplotlib", "distributed", "nibabel", "shapely", "openslide", "filelock"),
    )
    code = (
        "import sys, napari_panoptic.cli.main, napari_panoptic.viewer.launch\n"
        "from napari_panoptic.viewer.opening import KINDS, Task\n"
        "KINDS[Task.NUCLEI]()\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert "napari_panoptic.viewer.desk.nuclei" in done.stdout.split()
    assert not set(heavy) & set(done.stdout.split())


def test_a_window_begins_with_the_region_of_a_link(cohort):
    link = LinkMaker.of(cohort).link("Sample-A_2", "merger", [(Side.REFERENCE, 3)])
    settings = EvaluationSettings(iou_threshold=0.4)
    begin = launch.Beginning.of(replace(link, settings=settings), cohort, None)
    assert begin == launch.Beginning("Sample-A_2", "merger", settings)
    # The user is asked first about another version of the cohort.
    other = replace(cohort, regions=cohort.regions[:2])
    assert launch.Beginning.of(link, other, None) == launch.Beginning()
    with pytest.raises(LinkError, match="there is no region 'Sample-A_2'"):
        launch.Beginning.of(link, replace(cohort, regions=cohort.regions[2:]), None)


def test_the_cohort_of_a_link_is_found_among_those_shown_lately(
    nuclei_sample, tmp_path, preferences
):
    folders = [tmp_path / name for name in ("two", "one", "fewer/one", "gone", "no cohort")]
    for folder in folders[:3]:
        shutil.copytree(nuclei_sample, folder)
    folders[4].mkdir()
    for place in [*folders[2].glob("*/merger")]:
        shutil.rmtree(place)
    for folder in (folders[0], *folders[2:]):
        preferences.keep_place(folder, "Sample-A_1", "careful")
    whole, fewer = (CohortKey.of(open_cohort(folders[k])) for k in (0, 2))
    # The same fingerprint counts, whatever the folder is named.
    assert launch.recent_cohort(ObjectLink(replace(whole, name="one"))).root == folders[0]
    assert launch.recent_cohort(ObjectLink(fewer)).root == folders[2]
    # Without one, a cohort of the same name: the user is asked about it.
    unknown = replace(whole, regions="00000000")
    assert launch.recent_cohort(ObjectLink(replace(unknown, name="one"))).root == folders[2]
    assert launch.recent_cohort(ObjectLink(replace(unknown, name="three"))) is None
    preferences.keep_place(folders[1], None, None)
    assert launch.recent_cohort(ObjectLink(replace(whole, name="one"))).root == folders[1]


LINKED = """
from napari_panoptic.values.links import LinkMaker
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer import launch
from napari_panoptic.viewer.desk.nuclei import desk_in

cohort = open_cohort(sys.argv[1])
link = LinkMaker.of(cohort).link("Sample-A_2", "merger", [(Side.REFERENCE, 3)])


def look():
    viewer = napari.current_viewer()

    def is_there():
        session = desk_in(viewer).session
        return session is not None and session.selection is not None and desk_in(viewer).is_settled

    wait_until(is_there)
    session = desk_in(viewer).session
    print(session.snapshot.region.name, session.selection.team, session.selection.id)
    viewer.close()


def choose(_parent, title, _start):
    print(title)
    return cohort.root


napari.run, launch.existing_folder = look, choose
assert launch.run_view(cohort, link=link) == 0
assert launch.run_link(link) == 0
"""

SHOWN_LAST = """
from napari_panoptic.live import read_ahead
from napari_panoptic.viewer import launch
from napari_panoptic.viewer.jobs import region_work
from napari_panoptic.viewer.state.preferences import PREFERENCES

cohort = open_cohort(sys.argv[1])
PREFERENCES.keep_place(cohort.root, "Sample-B_1", "merger")
read_first, load = [], region_work.load_in_steps


def noted(cohort, region, *args, **options):
    read_first.append(region)
    return load(cohort, region, *args, **options)


read_ahead.load_in_steps = region_work.load_in_steps = noted
napari.run = lambda: napari.current_viewer().close()
assert launch.run_view(cohort) == 0
print(read_first[0])
"""


def test_new_windows_open_links_and_the_region_that_was_shown_last(sample_folder, tmp_path):
    """A link is of the cohort that is given, or of the folder that the window asks for.

    Of a cohort, the region shown last is read before its first one.
    """
    printed = run_in_process(LINKED + SHOWN_LAST, sample_folder, tmp_path / "around").splitlines()
    assert printed == [
        "Sample-A_2 merger 3",
        f"Open link: the folder of the cohort {sample_folder.name}",
        "Sample-A_2 merger 3",
        "Sample-B_1",
    ]


def test_a_window_is_painted_again_after_it_was_filled(make_napari_viewer):
    viewer = make_napari_viewer()
    window = viewer.window._qt_window
    with launch._painted_once(viewer):
        assert not window.updatesEnabled()
    assert window.updatesEnabled()

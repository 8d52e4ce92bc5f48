"""What can go wrong around a run, and what is said of it: nothing is lost, and work goes on."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.files.locking import InUseError, exclusive_lock
from napari_panoptic.io.formats.polygons.geojson_writer import UnwritableFileError
from napari_panoptic.io.formats.saving import write_objects
from napari_panoptic.report.nuclei.cohort_report import ReportRequest, cohort_report
from napari_panoptic.report.nuclei.tables import TABLE_NAMES
from napari_panoptic.values.settings import EvaluationSettings
from tests.faults.kill import ENDINGS, version
from tests.support.paths import REPOSITORY, contents
from tests.support.small_cohort import REGIONS, TEAMS, mask_path

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="full and closed disks are made with means of Linux"
)

KILOBYTE = 1024
TABLES = TABLE_NAMES


@pytest.fixture(scope="module")
def wanted(small_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What `evaluate` writes of it where nothing goes wrong."""
    folder = tmp_path_factory.mktemp("wanted")
    assert main(["evaluate", str(small_folder), "--output", str(folder)]) == 0
    return {name: (folder / name).read_bytes() for name in TABLES}


# --- a disk that is full, or closed -----------------------------------------------------------


class Disk:
    """A small disk of its own, which can be filled up and closed."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        folder.mkdir()
        self._mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))

    def close_to_writers(self) -> None:
        self._mount("-o", "remount,ro", str(self.folder))

    def grow(self, size: int) -> None:
        self._mount("-o", f"remount,size={size}", str(self.folder))

    def remove(self) -> None:
        subprocess.run(["umount", str(self.folder)], check=True)  # noqa: S607

    def _mount(self, *arguments: str) -> None:
        done = subprocess.run(
            ["mount", *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"disks cannot be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("only root may mount a disk")
    found = Disk(tmp_path / "disk", 16 * KILOBYTE)
    yield found
    found.remove()


@contextmanager
def no_file_above(n_bytes: int) -> Iterator[None]:
    """Let writing fail as on a full disk, for everybody and everywhere."""
    import resource  # Windows has none

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_evaluate_on_a_full_disk_says_so_and_goes_on_when_there_is_room(
    small_folder: Path, disk: Disk, wanted: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    output = disk.folder / "out"
    arguments = ["evaluate", str(small_folder), "--output", str(output)]
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert str(disk.folder) in said
    assert "choose another" in said
    for name, data in contents(disk.folder).items():
        assert name.startswith("out/.") or data == wanted[Path(name).name]
    disk.grow(4000 * KILOBYTE)
    assert main(arguments) == 0
    assert contents(output) == wanted


@pytest.mark.parametrize("n_bytes", [0, 500, 3000])
def test_tables_too_large_for_the_disk_leave_the_older_ones(
    small_folder: Path,
    tmp_path: Path,
    n_bytes: int,
    wanted: dict[str, bytes],
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "out"
    assert main(["evaluate", str(small_folder), "--output", str(output), "--no-distances"]) == 0
    before = contents(output)
    with no_file_above(n_bytes):
        assert main(["evaluate", str(small_folder), "--output", str(output)]) == 1
    assert "choose another" in capsys.readouterr().err
    now = contents(output)
    assert {name for name in now if not name.startswith(".parts/")} == set(before)
    assert all(now[name] in (before[name], wanted[name]) for name in before)


@pytest.mark.parametrize("ending", ENDINGS)
def test_saving_on_a_full_disk_leaves_what_was_saved_before(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"mine{ending}"
    write_objects(path, version(0))
    before = contents(tmp_path)
    for n_bytes in (0, 40, max(map(len, before.values())) - 60):
        with no_file_above(n_bytes), pytest.raises(UnwritableFileError, match="choose another"):
            write_objects(path, version(1))
        # Zarr's own threads may write on into a hidden folder that was removed.
        now = {n: d for n, d in contents(tmp_path).items() if not n.startswith(".")}
        assert now == before


def test_a_set_of_files_that_cannot_be_exchanged_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file of three finds its place taken away."""
    path = tmp_path / "mine.tif"
    write_objects(path, version(0))
    before = contents(tmp_path)
    original = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if self.suffix == ".part" and target.suffix == ".csv":
            raise OSError(errno.EIO, "Input/output error")
        return original(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(UnwritableFileError, match="Input/output error"):
        write_objects(path, version(1))
    assert contents(tmp_path) == before


def test_a_closed_disk_is_said_before_the_work(
    small_folder: Path, disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    disk.close_to_writers()
    for command, target in (("evaluate", "out"), ("report", "report.html")):
        assert main([command, str(small_folder), "--output", str(disk.folder / target)]) == 1
        said = capsys.readouterr().err
        assert "Read-only file system" in said
        assert "choose another" in said
    with pytest.raises(UnwritableFileError, match="Read-only file system"):
        write_objects(disk.folder / "mine.xml", version(0))


def test_saved_files_can_be_read_by_whom_the_folder_lets(tmp_path: Path) -> None:
    known = os.umask(0o022)
    try:
        for path in write_objects(tmp_path / "mine.tif", version(0)):
            assert path.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(known)


# --- files that change meanwhile --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["changed", "removed"])
def test_a_file_that_becomes_another_one_during_evaluate_is_told(
    own_folder: Path,
    tmp_path: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = mask_path(own_folder, "alpha", REGIONS[0])
    _at_the_end(monkeypatch, lambda: path.unlink() if kind == "removed" else os.utime(path, (1, 1)))
    assert main(["evaluate", str(own_folder), "--output", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert re.search(
        f"napari-panoptic: {re.escape(path.name)} was {kind} while.*run the same again", said
    )
    assert path.name in (tmp_path / "out" / "evaluation.json").read_text("utf-8")


def _at_the_end(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Do something when the last region is done."""
    from napari_panoptic.cli import nuclei as cli

    original = cli._results

    def results(*arguments: Any) -> Any:
        found = original(*arguments)
        action()
        return found

    monkeypatch.setattr(cli, "_results", results)


def test_a_file_that_becomes_another_one_during_a_report_is_told(own_folder: Path) -> None:
    opened = open_cohort(own_folder)
    path = mask_path(own_folder, "beta", REGIONS[1])
    request = ReportRequest(opened, EvaluationSettings(), "disentangled", TEAMS)
    report = cohort_report(request, jobs=1, on_result=lambda _done: os.utime(path, (1, 1)))
    assert report is not None
    assert [f.path for f in report.findings if f.kind is FindingKind.CHANGED] == [path]


# --- two at once ------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from napari_panoptic.io.files.locking import exclusive_lock
with exclusive_lock(Path(sys.argv[1]), "an evaluation", "choose another --output"):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def another_that_holds(lock: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_evaluate_into_the_same_folder_is_refused_while_the_first_runs(
    small_folder: Path, tmp_path: Path, wanted: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    arguments = ["evaluate", str(small_folder), "--output", str(output)]
    with another_that_holds(output / ".lock") as first:
        assert main(arguments) == 1
        said = capsys.readouterr().err
        assert f"{output}: an evaluation is already writing here (process {first.pid} on" in said
        assert "wait until it has ended, or choose another --output" in said
        assert list(contents(output)) == [".lock"]
    # The first was killed, and has left its lock behind: it locks nothing.
    assert (output / ".lock").exists()
    assert main(arguments) == 0
    assert contents(output) == wanted


def test_a_second_report_into_the_same_file_is_refused(
    small_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with another_that_holds(tmp_path / ".report.html.lock"):
        assert main(["report", str(small_folder), "-o", str(tmp_path / "report.html")]) == 1
    assert "a report is already writing here" in capsys.readouterr().err


def test_of_many_that_want_the_same_lock_one_has_it_at_a_time(tmp_path: Path) -> None:
    """The lock file comes and goes; nobody may hold one that was removed."""
    lock, inside = tmp_path / ".lock", tmp_path / "inside"
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                end = time.monotonic() + 0.5
                while time.monotonic() < end:
                    try:
                        with exclusive_lock(lock, "it", "wait"):
                            inside.mkdir()  # fails where somebody else is inside
                            inside.rmdir()
                    except InUseError:
                        pass
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_evaluate_has_left_of_tables_goes_with_the_next(
    small_folder: Path, tmp_path: Path, wanted: dict[str, bytes]
) -> None:
    for name in (".regions.csv.1a2b3c4d.part", ".objects.csv.part"):
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / name).write_text("half")
    assert main(["evaluate", str(small_folder), "--output", str(tmp_path / "out")]) == 0
    assert contents(tmp_path / "out") == wanted


# --- Ctrl-C -----------------------------------------------------------------------------------


def test_ctrl_c_while_the_program_is_imported_is_one_line(tmp_path: Path) -> None:
    # A module that the command imports first, in place of the one that takes long.
    (tmp_path / "numpy.py").write_text(
        "import sys, time\nprint('importing', flush=True)\ntime.sleep(60)\n", encoding="utf-8"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "napari_panoptic", "dump", "nothing.txt"],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "napari-panoptic: stopped\n")


# --- killed -----------------------------------------------------------------------------------


@pytest.mark.long
def test_killed_at_any_moment() -> None:
    """The short form of ``python -m tests.faults.kill --kills 200``."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.kill", "--kills", "2", "--regions", "1"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r": 2 kills, ", done.stdout)) == 4 + len(ENDINGS)

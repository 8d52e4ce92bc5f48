"""The samples of all tasks: always the same files, written whole or not at all."""

import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.samples import write
from napari_panoptic.samples.write import write_sample
from napari_panoptic.values.cohort import Task

DIGESTS = {
    Task.NUCLEI: "eac6b252b85b19eb163d30a08417580a2fa8f0557e47ce8aa0b306846e09d89e",
    Task.DETECTIONS: "15dd578a532543e163b2b5bb3249cb93a9c87be9abfae4456cc3395186527687",
    Task.RATERS: "f9fe2e3ef0d504932aa4013172dda8c41f6f0145e11d767461afe800841a7fce",
}
"""Of names and content of all files, as the program wrote them that once drew the cohorts; for
detections without the frames. Those of raters were converted from NIfTI."""
SMALL_IMPORTS = """
import sys
from napari_panoptic.cli.main import main
assert main(["sample", sys.argv[1]]) == 0
heavy = {"matplotlib", "napari", "numba", "numpy", "pandas", "scipy", "skimage", "tifffile"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""


def _digest(folder: Path) -> str:
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.parent.name != "frames":
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@pytest.mark.parametrize("task", Task)
def test_the_files_are_always_the_same(task: Task, tmp_path: Path) -> None:
    assert _digest(write_sample(tmp_path / "sample", task)) == DIGESTS[task]


def test_the_sample_of_raters_has_its_teams(tmp_path: Path) -> None:
    cohort = open_raters(write_sample(tmp_path / "sample", Task.RATERS))
    assert cohort.teams == ("calibrated", "overconfident", "shifted")


@pytest.mark.parametrize("task", Task)
def test_one_that_is_there_is_left_as_it_is(task: Task, tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "sample", task)
    edited = next(path for path in folder.rglob("*") if path.is_file() and path.parent != folder)
    edited.write_bytes(b"edited")
    assert write_sample(folder, task) == folder
    assert edited.read_bytes() == b"edited"


@pytest.mark.parametrize("task", Task)
def test_a_folder_with_something_else_in_it_is_left_alone(task: Task, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(CohortError, match=r"new or empty folder.*holds something else"):
        write_sample(tmp_path, task)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(("kept", "found"), [(None, "no such file"), (-1, "a damaged one")])
def test_an_archive_that_is_missing_or_damaged_is_named(
    kept: int | None,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "data"
    shutil.copytree(write.DATA, data)
    monkeypatch.setattr(write, "DATA", data)
    archive = data / "nuclei.tar.xz"
    content = archive.read_bytes()
    archive.unlink()
    if kept is not None:
        archive.write_bytes(content[:kept])
    assert main(["sample", str(tmp_path / "sample")]) == 1
    message = capsys.readouterr().err
    assert f"{archive}: expected the archive with the sample cohort, found {found}; " in message
    assert "install napari-panoptic again" in message
    assert not (tmp_path / "sample").exists()


def test_the_command_loads_nothing_that_computes(tmp_path: Path) -> None:
    command = (sys.executable, "-c", SMALL_IMPORTS, str(tmp_path / "sample"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

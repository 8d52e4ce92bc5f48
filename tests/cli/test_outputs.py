"""No command that writes tables replaces a file that this program did not write."""

from __future__ import annotations

from pathlib import Path

import pytest

from napari_panoptic.cli.main import main
from tests.support.paths import REPOSITORY, contents

DUMP = ("dump", str(REPOSITORY / "tests" / "data" / "organisers_dump.txt"))
COMMANDS = {
    "evaluate": ("patients.csv", ("--no-distances",)),
    "sweep": ("sweep.csv", ()),
    "compare": ("diff.csv", ("min_size2", "min_size10")),
    "suspects": ("suspects.csv", ()),
    "scores": ("scores.json", ("--team", "min_size10")),
    "slices": ("slices.csv", ("--team", "min_size10")),
}
"""Command -> a file that it writes, and its other arguments."""


@pytest.mark.parametrize("command", [*COMMANDS, "dump"])
def test_a_strangers_file_stays_as_it_is(
    command: str, sweep_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, options = COMMANDS.get(command, ("patients.csv", ()))
    words = DUMP if command == "dump" else (command, str(sweep_folder), *options)
    (tmp_path / name).write_text("patient,survival\nP1,12\n")
    before = contents(tmp_path)
    assert main([*words, "-o", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert name in said
    assert "is not replaced; choose another place" in said
    assert contents(tmp_path) == before


@pytest.mark.parametrize("command", ["evaluate", "compare", "dump"])
def test_a_run_replaces_its_own_tables_until_they_are_changed(
    command: str, sweep_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, options = COMMANDS.get(command, ("patients.csv", ()))
    words = [*(DUMP if command == "dump" else (command, str(sweep_folder), *options)), "-o"]
    out = str(tmp_path / "out")
    assert main([*words, out]) in (0, 3, 4)
    assert main([*words, out]) in (0, 3, 4)
    (tmp_path / "out" / name).write_text("mine\n")
    assert main([*words, out]) == 1
    assert "was changed since" in capsys.readouterr().err
    assert (tmp_path / "out" / name).read_text() == "mine\n"

"""No command that writes tables replaces a file that this program did not write."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.report.writing import write_set
from tests.support.commands import Run
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


def test_a_second_run_leaves_no_table_of_the_first(
    small_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of published figures stayed, and the next run with them was refused."""
    words = ["conventions", str(small_folder), "--teams", "alpha", "-o", str(tmp_path)]
    published = ["--published", "alpha=0.8", "--figure", "dice"]
    matches, others = tmp_path / "matches.csv", {"conventions.csv", "conventions.json"}
    assert main([*words, *published]) == 0
    assert set(contents(tmp_path)) - {".lock"} >= {*others, matches.name}
    assert main(words) == 0
    assert not matches.exists()
    assert set(contents(tmp_path)) >= others
    assert main([*words, *published]) == 0
    assert matches.exists()
    matches.write_text("mine\n")
    assert main(words) == 1
    assert "was changed since" in capsys.readouterr().err
    assert matches.read_text() == "mine\n"


def test_only_unchanged_tables_of_the_same_record_are_removed(tmp_path: Path) -> None:
    table, out = pd.DataFrame({"a": [1]}), tmp_path / "out"
    write_set(out, {"a.csv": table, "b.csv": table, "c.csv": table}, ("r.json", {}))
    (tmp_path / "stranger.csv").write_text("mine")
    (out / "b.csv").write_text("mine")
    record = json.loads((out / "r.json").read_text("utf-8"))
    record["tables"] |= file_fingerprints([tmp_path / "stranger.csv"], out)
    record["tables"]["../stranger.csv"] = next(iter(record["tables"].values()))
    (out / "r.json").write_text(json.dumps(record))
    write_set(out, {"a.csv": table}, ("r.json", {}))
    assert sorted(contents(out)) == ["a.csv", "b.csv", "r.json"]
    assert contents(tmp_path)["stranger.csv"] == b"mine"
    write_set(out, {"d.csv": table}, ("other.json", {}))
    assert "a.csv" in contents(out)


def test_a_removed_table_returns_if_the_new_set_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pd.DataFrame({"a": [1]})
    write_set(tmp_path, {"a.csv": table, "b.csv": table}, ("r.json", {}))
    before = contents(tmp_path)
    replace = Path.replace

    def fails(self: Path, target: Path) -> Path:
        if self.parent.name == ".set.new" and self.name == "r.json":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fails)
        with pytest.raises(OSError, match="No space"):
            write_set(tmp_path, {"a.csv": table * 2}, ("r.json", {}))
    assert contents(tmp_path) == before


RULES = {
    "--matching": "centroid",
    "--iou-threshold": "0.8",
    "--ambiguous": "keep",
    "--zone": "2",
    "--protocol": "monusac-2020-as-run",
    "--correct": "matching",
}


@pytest.mark.parametrize("option", RULES)
@pytest.mark.parametrize("command", ["causes", "groups", "scores", "slices"])
def test_a_rule_changes_a_table_or_is_refused(
    command: str, option: str, small_folder: Path, tmp_path: Path
) -> None:
    """``groups`` and ``causes`` took a protocol that changed nothing but their records."""
    words = [command, str(small_folder), "--team", "alpha", "-o"]
    changed = exit_status([*words, str(tmp_path / "changed"), option, RULES[option]])
    if option in ("--protocol", "--correct"):
        assert changed == 2
    elif command in ("causes", "groups"):  # the cohort is too small for the others
        assert changed == exit_status([*words, str(tmp_path / "usual")]) == 0
        usual, others = contents(tmp_path / "usual"), contents(tmp_path / "changed")
        assert any(usual[name] != others[name] for name in usual if name.endswith(".csv"))


def exit_status(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as stopped:
        return int(stopped.code or 0)


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_a_name_that_is_too_long_is_refused(
    nuclei_sample: Path, tmp_path: Path, run: Run, command: str
) -> None:
    """It ended in a traceback."""
    ran = run(command, nuclei_sample, "-o", tmp_path / ("x" * 300))
    assert ran.code == 1
    assert "choose a shorter name" in ran.err

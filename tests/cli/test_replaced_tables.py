"""The tables of `evaluate` are replaced as one set, whatever signal arrives meanwhile."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.report.nuclei.tables import TABLE_NAMES
from tests.support.paths import contents

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")

TABLES = TABLE_NAMES
MOST_RENAMES = 60


@pytest.fixture(scope="module")
def sets(one_region: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """An older set of tables and a newer one; every table differs."""
    for name, teams in {"older": "alpha", "newer": "alpha,beta"}.items():
        assert evaluate(one_region, one_region.parent / name, teams) == 0
    older, newer = contents(one_region.parent / "older"), contents(one_region.parent / "newer")
    assert set(older) == set(newer) == set(TABLES)
    assert not set(older.values()) & set(newer.values())
    return older, newer


def evaluate(cohort: Path, output: Path, teams: str = "alpha,beta") -> int:
    options = ["--teams", teams, "--jobs", "1", "--scheduler", "threads"]
    return main(["evaluate", str(cohort), "--output", str(output), *options])


def tables_in(folder: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(folder).items() if name in TABLES}


def stopped_at(rename: int, number: signal.Signals, cohort: Path, output: Path) -> bool:
    """Evaluate in a child that gets a signal as it renames a file of the output."""
    child = os.fork()
    if child == 0:
        count = 0

        def on_event(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal count
            if event == "os.rename" and os.fspath(arguments[1]).startswith(str(output)):
                count += 1
                if count == rename:
                    os.kill(os.getpid(), number)

        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.addaudithook(on_event)
            evaluate(cohort, output)
        finally:
            os._exit(0 if count < rename else 1)
    _, status = os.waitpid(child, 0)
    return status != 0


@pytest.mark.parametrize(
    ("number", "is_replaced", "step"),
    [(signal.SIGINT, True, 2), (signal.SIGINT, False, 3), (signal.SIGTERM, True, 4)],
)
def test_a_signal_leaves_the_older_set_or_the_newer_one(
    one_region: Path,
    sets: tuple[dict[str, bytes], dict[str, bytes]],
    tmp_path: Path,
    number: signal.Signals,
    is_replaced: bool,
    step: int,
) -> None:
    older, newer = sets if is_replaced else ({}, sets[1])
    seen = set()
    for rename in range(1, MOST_RENAMES, step):
        output = tmp_path / str(rename)
        if is_replaced:
            shutil.copytree(one_region.parent / "older", output)
        was_stopped = stopped_at(rename, number, one_region, output)
        found = tables_in(output)
        assert found in (older, newer), f"rename {rename}: {sorted(found)}"
        seen.add(found == newer)
        if not was_stopped:
            break
    assert rename > len(TABLES)  # one per table at least
    assert seen == {False, True}
    assert set(contents(output)) == set(TABLES)


@pytest.mark.long
@pytest.mark.parametrize("is_replaced", [True, False], ids=["replaced", "first"])
def test_a_mixed_set_is_recognised_and_completed(
    one_region: Path,
    sets: tuple[dict[str, bytes], dict[str, bytes]],
    tmp_path: Path,
    is_replaced: bool,
) -> None:
    """After kill -9 the record, which names each table's content, is there for a whole set only."""
    older, newer = sets if is_replaced else ({}, sets[1])
    n_mixed = 0
    for rename in range(2, MOST_RENAMES, 3):
        output = tmp_path / str(rename)
        if is_replaced:
            shutil.copytree(one_region.parent / "older", output)
        if not stopped_at(rename, signal.SIGKILL, one_region, output):
            break
        found = tables_in(output)
        if found not in (older, newer):
            n_mixed += 1
            assert "evaluation.json" not in found
            # The next run completes the set before all else, even one that is refused.
            with pytest.raises(SystemExit):
                main(["evaluate", str(one_region), "-o", str(output), "--scheduler", "none"])
            assert tables_in(output) == newer
    assert n_mixed
    (last,) = [path for path in tmp_path.iterdir() if path.name == str(rename - 3)]
    assert evaluate(one_region, last) == 0
    assert contents(last) == newer


def test_the_record_names_the_content_of_each_table(
    sets: tuple[dict[str, bytes], dict[str, bytes]],
) -> None:
    for tables in sets:
        record = json.loads(tables["evaluation.json"])
        assert record["tables"] == {
            name: f"sha256:{hashlib.sha256(tables[name]).hexdigest()}"
            for name in sorted(set(TABLES) - {"evaluation.json"})
        }


def test_a_table_that_cannot_be_replaced_leaves_the_older_set(
    one_region: Path,
    sets: tuple[dict[str, bytes], dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Such as one that a spreadsheet holds open on Windows."""
    output = tmp_path / "out"
    shutil.copytree(one_region.parent / "older", output)
    original = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target == output / "teams.csv" and "new" in self.parent.name:
            raise PermissionError(errno.EACCES, "Permission denied")
        return original(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        assert evaluate(one_region, output) == 1
    assert "the tables cannot be written: Permission denied" in capsys.readouterr().err
    assert tables_in(output) == sets[0]
    (output / "teams.csv").unlink()
    (output / "teams.csv").mkdir()
    (output / "teams.csv" / "mine.txt").write_text("kept")
    before = tables_in(output)
    assert evaluate(one_region, output) == 1
    assert "teams.csv is a folder" in capsys.readouterr().err
    assert tables_in(output) == before
    assert (output / "teams.csv" / "mine.txt").read_text() == "kept"

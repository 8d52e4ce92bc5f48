"""Where the tests find their data, and what is in a folder."""

import csv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED_CASES = REPOSITORY.parent / "shared" / "cases"

needs_shared_cases = pytest.mark.skipif(
    not SHARED_CASES.is_dir(),
    reason=f"the shared cases are not beside this repository ({SHARED_CASES.name}/ not found)",
)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of the files of a folder, by their paths in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Read a table: a dictionary per row."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))

"""Files of tables and records: sets that are replaced together, in UTF-8."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.records import encoded
from napari_panoptic.common.spreadsheets import csv_bytes
from napari_panoptic.common.text import encodable, utf8
from napari_panoptic.io.files.file_sets import replaced_as_set
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.files.replacing import replaced_when_complete

if TYPE_CHECKING:
    import pandas as pd

RECORD = "evaluation.json"
"""The record beside the tables of an evaluation."""
MADE_WITH = "Made with napari-panoptic"
"""Beginning of the last line of each report."""
_PAGE_END_BYTES = 2**20


def write_set(
    folder: Path,
    tables: Mapping[str, pd.DataFrame],
    record: tuple[str, Mapping[str, Any]],
    *,
    add: Callable[[Path], object] = lambda _draft: None,
) -> list[Path]:
    """Write CSV tables and their JSON record; existing files are replaced, all of them or none.

    Unchanged tables of an earlier set with the same record that the new one lacks are removed.

    Parameters
    ----------
    folder
        The folder; created if missing.
    tables
        File name -> table. UTF-8 with a header, empty if undefined; no cell is a formula.
    record
        File name and content; dataclasses become objects, undefined numbers ``null``. A
        fingerprint of each table is added as ``tables``.
    add
        Called with a folder, to which it adds other files of the set.

    Returns
    -------
    list of Path
        The files, the record last.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name, content = record
    with replaced_as_set(folder, name) as draft:
        add(draft)
        for table_name, table in tables.items():
            (draft / table_name).write_bytes(csv_bytes(table))
        fingerprints = file_fingerprints(draft.iterdir(), draft)
        plain = _plain(encoded({**content, "tables": fingerprints}))
        text = json.dumps(plain, indent=1, ensure_ascii=False)
        (draft / name).write_bytes(utf8(f"{text}\n"))
        for outdated in _unchanged_tables(folder / name) - {*fingerprints, name}:
            (draft / outdated).mkdir()
    return [*(folder / own for own in fingerprints), folder / name]


def provenance(findings: Iterable[Finding], inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return what every record contains: warnings, versions, and fingerprints of the inputs."""
    # Readers look for these kinds: they are always present.
    usual = (
        FindingKind.VANISHED,
        FindingKind.OVERLAPPING,
        FindingKind.MISSING,
        FindingKind.UNREADABLE,
    )
    warnings: dict[str, list[dict[str, Any]]] = {str(kind): [] for kind in usual}
    for finding in findings:
        warnings.setdefault(str(finding.kind), []).append(finding.as_record())
    return {"warnings": warnings, "versions": versions(), "inputs": inputs}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect the figures, if known."""
    packages = ("napari-panoptic", "numpy", "scipy", "scikit-image", "pandas")
    readers = ("tifffile", "openslide-python", "openslide-bin")
    found = {"python": platform.python_version()}
    for name in (*packages, *readers):
        with suppress(PackageNotFoundError):  # conda has OpenSlide's library under another name
            found[name] = version(name)
    return found


def check_replaceable(folder: Path, names: Sequence[str]) -> None:
    """Check that no file of a set would replace one that this program did not write.

    Files are known by their fingerprints in the record of an earlier run, so those that were
    changed since are kept as well.

    Parameters
    ----------
    folder
        Their folder.
    names
        The files of the set, the record last.

    Raises
    ------
    PanopticError
        If there is another file; the first is named.
    """
    own = _own_tables(folder, names)
    for name in names:
        if os.path.lexists(folder / name) and name not in own:
            what = "is not known to be written by napari-panoptic, or was changed since"
            if (folder / name).is_dir():
                what = "is a folder"
            raise PanopticError(
                f"{name} {what}, so it is not replaced; choose another place, or move it away",
                path=folder / name,
            )


def _own_tables(folder: Path, names: Sequence[str]) -> frozenset[str]:
    """Return the files of a set that are unchanged since `write_set`, according to the record."""
    try:
        record = json.loads((folder / names[-1]).read_bytes())
        is_own = "napari-panoptic" in record.get("versions", ())
        wanted = record.get("tables")
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return frozenset()
    if not isinstance(wanted, dict):  # early versions wrote no fingerprints
        return frozenset(names if is_own else ())
    found = file_fingerprints((folder / name for name in names), folder)
    own = [name for name in names if name in wanted and wanted[name] == found[name]]
    # The record of `dump` names no versions.
    return frozenset([*own, names[-1]] if is_own or own else ())


def _unchanged_tables(record: Path) -> frozenset[str]:
    """Return the names of the tables that are unchanged since `write_set` wrote a record."""
    try:
        stated = json.loads(record.read_bytes())["tables"].items()
    except (OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return frozenset()
    wanted = {name: each for name, each in stated if Path(name).name == name}
    found = file_fingerprints((record.parent / name for name in wanted), record.parent)
    return frozenset(name for name, each in wanted.items() if found[name] == each)


def is_own_page(path: Path) -> bool:
    """Return whether a file is a report of this program, according to its last line."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _PAGE_END_BYTES))
        return MADE_WITH.encode() in file.read()


def _plain(value: Any) -> Any:
    """Return encoded values as JSON parsers accept them; undefined numbers become null."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return encodable(value)  # JSON parsers refuse the escape of a lone surrogate
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def check_writable(path: Path) -> None:
    """Check, before long work, that a file can be written.

    Raises
    ------
    PanopticError
        If it cannot: its folder is missing or read-only, or it is a folder itself.
    """
    if path.is_dir():
        raise PanopticError(
            "expected the name of a file to write, found a folder; add the name of the file",
            path=path,
        )
    temporary = path.with_name(f".{path.name[:40]}.{os.getpid()}.part")
    try:
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise PanopticError(
            f"the file cannot be written: {error.strerror}; make its folder, or choose another "
            f"place",
            path=path,
        ) from error


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file completely or not at all; an existing one is replaced."""
    with replaced_when_complete(path) as file:
        file.write(content)
    return path

"""Writing records and tables: JSON's own values, and files that are whole or not there."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_panoptic.errors import PanopticError
from napari_panoptic.io._files import replaced_when_complete
from napari_panoptic.spreadsheets import inert_cells


def write_table(path: Path, table: pd.DataFrame) -> Path:
    """Write a CSV table: UTF-8, with a header, empty where undefined, no cell a formula."""
    return _replace(path, inert_cells(table).to_csv(index=False, lineterminator="\n"))


def write_record(path: Path, record: Mapping[str, Any]) -> Path:
    """Write a JSON record, ``null`` where undefined."""
    return _replace(path, json.dumps(_plain(record), indent=1, ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    """Make JSON's own values of everything: undefined numbers become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def check_writable(path: Path) -> None:
    """Find out before long work whether a file can be written.

    Raises
    ------
    PanopticError
        Where it cannot: its folder is missing or closed, or it is a folder.
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
    """Write a file whole or not at all; an older one is replaced."""
    with replaced_when_complete(path) as file:
        file.write(content)
    return path


def _replace(path: Path, text: str) -> Path:
    return write_bytes(path, text.encode())

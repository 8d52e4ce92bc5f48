"""Places that programs like to write to, each empty, and what is in them afterwards."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import matplotlib as mpl

from tests.support.paths import REPOSITORY


def contents(folder: Path) -> dict[str, str]:
    """Give every file and folder below a folder, files with their content's fingerprint."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


def sandbox(folder: Path) -> dict[str, str]:
    """Make places that programs like to write to, and give the environment that names them."""
    places = {name: folder / name for name in ("home", "tmp", "cwd", "config", "cache", "data")}
    for place in places.values():
        place.mkdir(parents=True)
    named = {
        **dict.fromkeys(("HOME", "USERPROFILE"), places["home"]),
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), places["tmp"]),
        "XDG_CONFIG_HOME": places["config"],
        "XDG_CACHE_HOME": places["cache"],
        "XDG_DATA_HOME": places["data"],
        # Matplotlib lists the machine's fonts where there is no list yet: its own, slow affair.
        "MPLCONFIGDIR": Path(mpl.get_cachedir()),
        "PYTHONPATH": REPOSITORY,
    }
    return {**os.environ, **{name: str(path) for name, path in named.items()}}

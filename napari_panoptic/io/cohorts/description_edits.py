"""Changes of single settings in the text of a ``cohort.toml``; all else stays as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Table

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.files.replacing import replaced_when_complete

Key = tuple[str, ...]
"""The names of tables and of the key in the last of them."""


def with_setting(text: str, key: Key, value: Any) -> str:
    """Return a description in which a setting has a value.

    An existing setting is replaced where it stands; a new one becomes a line of
    its own, in its table if there is one. Comments and the order of lines are
    kept, except comments within a replaced list.

    Parameters
    ----------
    text
        Valid TOML.
    key
        Such as ``("files", "predictions", "vertices")``.
    value
        Text, a number, a list of these, or a mapping: then names that are in it are set, others
        stay, and a single value that was there counts for all others (under ``""``).

    Raises
    ------
    CohortError
        If something else than a table is in the way.
    """
    ending = "\r\n" if "\r\n" in text else "\n"
    document = tomlkit.parse(text.replace("\r\n", "\n"))
    table: Any = document
    for name in key[:-1]:
        if name not in table and table is document:
            document[name] = tomlkit.table()
        elif name not in table:
            _set(table, name, {})
        table = table[name]
        if not isinstance(table, Mapping):
            raise CohortError(f"{'.'.join(key[:-1])} in {DESCRIPTION} must be a table")
    old = table.get(key[-1])
    if isinstance(value, Mapping) and isinstance(old, Mapping):
        set_now = {name.casefold() for name in value}
        for name in [n for n in old if n.casefold() in set_now and n not in value]:
            del table[key[-1]][name]
        for name, own in value.items():
            _set(table[key[-1]], name, own)
    else:
        is_for_others = isinstance(value, Mapping) and old is not None
        _set(table, key[-1], {"": old, **value} if is_for_others else value)
    return tomlkit.dumps(document).replace("\n", ending)


def _set(table: Any, name: str, value: Any) -> None:
    """Set a value; a new one comes before the comments that belong to what follows the table."""
    if table.get(name) == value:
        return
    lines = table.value.body if isinstance(table, Table) else []
    behind = []
    while name not in table and lines and lines[-1][0] is None:
        behind.append(lines.pop())
    if isinstance(value, Mapping):
        table[name] = tomlkit.inline_table()
        table[name].update(value)
    else:
        table[name] = tomlkit.item(value)
    lines.extend(reversed(behind))


def toml_key(key: Key) -> str:
    """Return a key with its tables, as TOML writes it: ``aliases."Tumour cell"``."""
    return tomlkit.key(key).as_string()


def toml_text(value: Any) -> str:
    """Return a value on one line, as TOML writes it."""
    if not isinstance(value, Mapping):
        return str(tomlkit.item(value).as_string())
    inner = ", ".join(f"{tomlkit.key(k).as_string()} = {toml_text(v)}" for k, v in value.items())
    return f"{{ {inner} }}" if inner else "{}"


def save_description(folder: Path, text: str) -> Path | None:
    """Write the ``cohort.toml`` of a folder, and keep a copy of the one that was there.

    Parameters
    ----------
    folder
        The cohort's folder.
    text
        The whole description.

    Returns
    -------
    Path or None
        The copy, which replaces no earlier one; None if there was no description, or the same.

    Raises
    ------
    CohortError
        If it cannot be written.
    """
    path = folder / DESCRIPTION
    try:
        before = path.read_bytes() if path.exists() else None
        if before == text.encode():
            return None
        kept = None if before is None else _keep(path, before)
        with replaced_when_complete(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise CohortError(
            f"the {DESCRIPTION} cannot be written: {error.strerror or error}; copy the folder to a "
            "place where you may write",
            path=path,
        ) from error
    return kept


def _keep(path: Path, content: bytes) -> Path:
    number = 1
    while True:
        kept = path.with_name(f"{DESCRIPTION}.bak" if number == 1 else f"{DESCRIPTION}.bak{number}")
        try:
            with kept.open("xb") as file:
                file.write(content)
        except FileExistsError:
            number += 1
        else:
            return kept

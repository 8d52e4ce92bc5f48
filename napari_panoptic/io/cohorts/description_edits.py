"""Changes of single settings in the text of a ``cohort.toml``; all else stays as it is written."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.files.replacing import replaced_when_complete

Key = tuple[str, ...]
"""The names of tables and of the key in the last of them."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_VALUE = 500
"""Lines of a value that is replaced."""
_HEADER = re.compile(r"\s*\[[^\[]")


def with_setting(text: str, key: Key, value: Any) -> str:
    """Return a description in which a setting has a value.

    An existing setting is replaced where it stands; a new one becomes a line of
    its own, in its table if there is one. Comments and the order of lines are
    kept, except a comment behind the replaced value.

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
        If the setting cannot be written without changing others.
    """
    table = tomllib.loads(text)
    value = _merged(_at(table, key), value)
    wanted = _with(table, key, value)
    if wanted == table:
        return text
    for changed in chain(_replaced(text, key, value), _added(text, key, value)):
        if _means(changed, wanted):
            return changed
    raise CohortError(
        f"{'.'.join(key)} = {toml_text(value)} cannot be written without changing other lines; "
        f"add it to {DESCRIPTION} yourself"
    )


def toml_text(value: Any) -> str:
    """Return a value on one line, as TOML writes it."""
    match value:
        case str():
            return quoted(value)
        case Mapping():
            inner = ", ".join(f"{_name(k)} = {toml_text(v)}" for k, v in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(map(toml_text, value))}]"
    return json.dumps(value)


def quoted(text: str) -> str:
    """Quote a text as TOML does, which takes JSON's escapes."""
    return json.dumps(text, ensure_ascii=False)


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


def _replaced(text: str, key: Key, value: Any) -> Iterator[str]:
    """Yield texts in which lines that may be those of a setting are replaced."""
    lines = text.splitlines(keepends=True)
    for start, line in enumerate(lines):
        name, equals, _ = line.partition("=")
        if not equals or not name.rstrip().rstrip("\"'").endswith(key[-1]):
            continue
        ending = "\r\n" if line.endswith("\r\n") else "\n"
        new = f"{name.rstrip()} = {toml_text(value)}{ending}"
        for end in range(start + 1, min(len(lines), start + _LONGEST_VALUE) + 1):
            yield "".join([*lines[:start], new, *lines[end:]])


def _added(text: str, key: Key, value: Any) -> Iterator[str]:
    """Yield texts with a line more: in the innermost table that has a header, or a new one."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    for depth in range(len(key) - 1, -1, -1):
        new = f"{'.'.join(map(_name, key[depth:]))} = {toml_text(value)}{ending}"
        place = _end_of(lines, key[:depth])
        if place is not None:
            yield "".join([*lines[:place], new, *lines[place:]])
    header = f"{ending}[{_name(key[0])}]{ending}"
    yield "".join([*lines, header, f"{'.'.join(map(_name, key[1:]))} = {toml_text(value)}{ending}"])


def _end_of(lines: Sequence[str], table: Key) -> int | None:
    """Return behind which line the settings of a table end; None if it has no header."""
    headers = [n for n, line in enumerate(lines) if _HEADER.match(line)]
    if not table:
        start = 0
    else:
        own = [n for n in headers if _header_key(lines[n]) == table]
        if not own:
            return None
        start = own[0] + 1
    end = next((n for n in headers if n >= start), len(lines))
    while end > start and (not lines[end - 1].strip() or lines[end - 1].lstrip()[0] == "#"):
        end -= 1
    return end


def _header_key(line: str) -> Key | None:
    try:
        inner: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    names = []
    while inner:
        [(name, inner)] = inner.items()
        names.append(name)
    return tuple(names)


def _means(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _at(table: Any, key: Key) -> Any:
    for name in key:
        table = table.get(name) if isinstance(table, dict) else None
    return table


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(new, Mapping) or old is None:
        return new
    known = old if isinstance(old, dict) else {"": old}
    set_now = {name.casefold() for name in new}
    return {**{name: v for name, v in known.items() if name.casefold() not in set_now}, **new}


def _with(table: dict[str, Any], key: Key, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(table)
    inner = changed
    for name in key[:-1]:
        inner = inner.setdefault(name, {})
        if not isinstance(inner, dict):
            raise CohortError(f"{'.'.join(key[:-1])} in {DESCRIPTION} must be a table")
    # As it will be read: tuples become lists.
    inner[key[-1]] = tomllib.loads(f"value = {toml_text(value)}")["value"]
    return changed


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else quoted(name)

"""Write the text of a ``cohort.toml``, and change single settings of it and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Table

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.cohorts.layouts import Layout, MaskPatterns, Patterns
from napari_panoptic.io.cohorts.patterns import Listing
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.values.cohort import ClassScheme

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


def description_text(name: str, scheme: ClassScheme, files: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a ``cohort.toml``.

    Parameters
    ----------
    name
        What the cohort is called.
    scheme
        The classes.
    files
        Keys of ``[files]`` and the patterns of each; keys without a pattern are
        left out.
    """
    lines = [
        "# Where the files of this cohort are; see docs/reference/cohorts.md.",
        f"name = {toml_text(name)}",
        "",
        "# The classes, in the order of all tables, with their colours.",
        "[classes]",
        *(
            f"{toml_text(each)} = {toml_text(colour)}"
            for each, colour in zip(scheme.names, scheme.colours, strict=True)
        ),
        "",
    ]
    if scheme.ambiguous is not None:
        lines += [
            "# The class of areas that are excluded from scoring.",
            "[ambiguous]",
            f"name = {toml_text(scheme.ambiguous)}",
            "",
        ]
    if scheme.aliases:
        lines += [
            "# Other names and numbers of classes in files.",
            "[aliases]",
            *(f"{toml_text(own)} = {toml_text(name)}" for own, name in scheme.aliases.items()),
            "",
        ]
    lines += [
        "# {region}, {patient} and {team} stand for names, and must agree between the lines.",
        "[files]",
    ]
    for key, patterns in files.items():
        if patterns:
            lines.append(f"{key} = {toml_text(patterns[0] if len(patterns) == 1 else patterns)}")
    return "\n".join(lines) + "\n"


def layout_text(layout: Layout, listing: Listing) -> str:
    """Return the text of a ``cohort.toml`` for a folder of a known layout.

    Patterns without a file are left out.
    """
    patterns = {
        "image": layout.image,
        **_keyed("reference", layout.reference),
        **_keyed("predictions", layout.predictions),
        **_keyed("annotation", layout.annotation),
    }
    files = {
        key: [each.text for each in own if any(each.files(listing))]
        for key, own in patterns.items()
    }
    name = layout.name or listing.root.resolve().name
    return description_text(name, layout.scheme, files)


def _keyed(side: str, masks: MaskPatterns) -> dict[str, Patterns]:
    return {f"{side}.{form}": patterns for form, patterns in masks.forms.items()}

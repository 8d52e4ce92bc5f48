"""The file of verdicts that the page of a package saves: read, and checked for changes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.records import decoded
from napari_panoptic.common.text import english_list, shortened
from napari_panoptic.io.files.guard import SMALL_TABLE_BYTES, check_file, check_length
from napari_panoptic.io.files.json_files import parsed_json
from napari_panoptic.review.package.contents import Contents, PackageItem, package_id, unseal
from napari_panoptic.review.plan.units import MOST_COUNTED
from napari_panoptic.values.vocabulary import Verdict

FORMAT = "napari-panoptic verdicts"
VERSION = 1
_WHAT = "a file of verdicts that the page of a review package saved"
_AGAIN = "ask the reviewer to save the verdicts again from the page, and send that file unchanged"


@dataclass(frozen=True)
class AnsweredItem:
    """The answer to one item."""

    item: PackageItem
    #: Who is right; None for a counted background tile.
    verdict: Verdict | None
    #: Number of nuclei without an outline in a background tile; None for objects and for tiles that
    #: cannot be judged.
    count: int | None
    #: A remark, or empty.
    note: str
    #: Time by the reviewer's clock, in UTC.
    given_at: datetime


@dataclass(frozen=True)
class Answers:
    """A file of verdicts whose digest is right."""

    #: The package that was answered.
    contents: Contents
    #: The id of that package.
    package: str
    #: The reviewer's name as entered in the page; may be empty.
    reviewer: str
    #: The digest of the file, which identifies it.
    digest: str
    #: One per answered item, in the order of the package.
    answers: tuple[AnsweredItem, ...]


@dataclass(frozen=True)
class _Line:
    item: str
    verdict: str
    count: int | None
    note: str
    given_at: str


@dataclass(frozen=True)
class _File:
    format: str
    version: int
    package: str
    items: str
    reviewer: str
    saved_at: str
    verdicts: tuple[_Line, ...]
    digest: str


def read_answers(path: Path) -> Answers:
    """Read a file of verdicts.

    Raises
    ------
    UnreadableFileError
        If it is no such file, or was altered since the page saved it.
    """
    file = _read(path)
    if file.format != FORMAT or file.version != VERSION:
        raise UnreadableFileError(
            f"expected {_WHAT} (version {VERSION}), found '{shortened(file.format, 40)}' version "
            f"{file.version}; update the program, or choose the right file",
            path=path,
        )
    if _digest_of(file) != file.digest:
        raise _altered("its digest does not fit its content", path)
    if package_id(file.items) != file.package:
        raise _altered("its items are not those of its package", path)
    try:
        contents = unseal(file.items)
    except ValueError as error:
        raise _altered(f"its items cannot be read ({shortened(str(error), 80)})", path) from error
    return Answers(
        contents, file.package, file.reviewer.strip(), file.digest, _answers(file, contents, path)
    )


def digest_of(parts: Iterable[str]) -> str:
    """Return the SHA-256 of several texts, each preceded by its length in bytes and a colon."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"


def _digest_of(file: _File) -> str:
    head = (file.format, str(file.version), file.package, file.items, file.reviewer, file.saved_at)
    lines = [
        (line.item, line.verdict, _number(line.count), line.note, line.given_at)
        for line in file.verdicts
    ]
    return digest_of([*head, *(part for line in lines for part in line)])


def _number(count: int | None) -> str:
    return "" if count is None else str(count)


def _read(path: Path) -> _File:
    check_file(path, _WHAT)
    check_length(path, _WHAT, SMALL_TABLE_BYTES)
    try:
        file: _File = decoded(_File, parsed_json(path.read_bytes()))
    except (ValueError, TypeError, LookupError) as error:
        raise UnreadableFileError(
            f"expected {_WHAT}, found something else or a damaged file "
            f"({shortened(str(error), 120)}); {_AGAIN}",
            path=path,
        ) from error
    return file


def _answers(file: _File, contents: Contents, path: Path) -> tuple[AnsweredItem, ...]:
    items = {item.item: item for item in contents.items}
    counts = Counter(line.item for line in file.verdicts)
    if unknown := [item for item in counts if item not in items]:
        raise _altered(f"its package has no item {english_list(unknown)}", path)
    if doubled := [item for item, count in counts.items() if count > 1]:
        raise _altered(f"it answers item {english_list(doubled)} more than once", path)
    given = {line.item: _answer(line, items[line.item], path) for line in file.verdicts}
    return tuple(given[item] for item in items if item in given)


def _answer(line: _Line, item: PackageItem, path: Path) -> AnsweredItem:
    try:
        verdict = Verdict(line.verdict) if line.verdict else None
        given_at = datetime.fromisoformat(line.given_at)
        if given_at.tzinfo is None:
            raise ValueError("a time without its zone")
        given_at = given_at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _altered(f"item {item.item}: {shortened(str(error), 80)}", path) from error
    if item.target is None:
        is_right = (verdict is Verdict.CANNOT_TELL) == (line.count is None) and (
            verdict in (None, Verdict.CANNOT_TELL)
        )
        is_right &= line.count is None or 0 <= line.count <= MOST_COUNTED
    else:
        is_right = verdict is not None and line.count is None
    if not is_right:
        raise _altered(f"item {item.item} has an answer that the page does not offer", path)
    return AnsweredItem(item, verdict, line.count, line.note, given_at)


def _altered(what: str, path: Path) -> UnreadableFileError:
    return UnreadableFileError(
        f"the file was altered after the page had saved it, or was damaged on its way: {what}. "
        f"Nothing was imported; {_AGAIN}",
        path=path,
    )

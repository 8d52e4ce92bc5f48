"""JSON as programs write it, with a byte order mark or with NaN; errors of parsers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import visible

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Mark at the beginning of UTF-8 that editors and programs of Windows write."""
_UNEXPECTED: tuple[type[Exception], ...] = (
    *(OSError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError),
)
"""Errors that values of unexpected types and shapes lead to."""


def parsed_json(text: bytes) -> Any:
    """Return the content of JSON in UTF-8.

    Parameters
    ----------
    text
        With or without a byte order mark. NaN and Infinity, which are no JSON, are numbers, since
        Python and QuPath write them.

    Raises
    ------
    ValueError
        If it is damaged.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if b"NaN" not in text and b"Infinity" not in text:
            raise
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


@contextmanager
def parsing(path: Path, what: str, *others: type[Exception]) -> Iterator[None]:
    """Turn the errors that unexpected content leads to into one that names the file.

    Parameters
    ----------
    path, what
        The file, and what is expected.
    others
        Errors of a parser beside the usual ones.

    Raises
    ------
    UnreadableFileError
        If the content differs from it.
    """
    try:
        yield
    except (*_UNEXPECTED, *others) as error:
        match error:
            case KeyError():
                found = f"the key {error} is missing"
            case RecursionError():  # its message describes the decoder, not the file
                found = "lists nested too deeply"
            case _:
                found = visible(str(error))
        raise UnreadableFileError(
            f"expected {what}, found something else ({found}); export it again", path=path
        ) from error

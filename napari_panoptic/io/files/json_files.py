"""JSON as programs write it, parsed once until the file changes; errors of parsers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import orjson

from napari_panoptic.common.cache import ByteCache
from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import visible

_Content = TypeVar("_Content")
_More = ParamSpec("_More")

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Mark at the beginning of UTF-8 that editors and programs of Windows write."""
# In memory, the contents of JSON take several times the bytes of the file.
PARSED: ByteCache[Any, Any] = ByteCache(2**28, keeps_last=True)
"""Contents of files, counted by the bytes of the files."""
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


def kept_until_changed(
    parse: Callable[Concatenate[Path, _More], _Content],
) -> Callable[Concatenate[Path, _More], _Content]:
    """Return a function that parses a file once and keeps its content until the file changes.

    Of all files together, the least recently used ones are dropped if they have more than
    the limit of `PARSED`. The function is thread-safe; errors are raised again by each call.

    Parameters
    ----------
    parse
        Returns the content of a file; all parameters must be hashable.
    """

    def content(path: Path, /, *args: _More.args, **kwargs: _More.kwargs) -> _Content:
        status = path.stat()
        found: _Content = PARSED.current(
            (parse, path, args, *sorted(kwargs.items())),
            partial(parse, path, *args, **kwargs),
            lambda _content: status.st_size,
            version=(status.st_mtime_ns, status.st_size),
        )
        return found

    return content

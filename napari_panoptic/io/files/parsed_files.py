"""Contents of files of many regions, parsed once and kept until the file changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

LARGEST_BYTES = 2**28
"""Bytes of the files whose contents are kept; the last one is kept, however large it is."""
_Content = TypeVar("_Content")
_More = ParamSpec("_More")
_Key = tuple[Any, ...]

# In memory, the contents of JSON take several times the bytes of the file.
_kept: OrderedDict[_Key, tuple[Any, int]] = OrderedDict()
_lock = threading.RLock()


def kept_until_changed(
    parse: Callable[Concatenate[Path, _More], _Content],
) -> Callable[Concatenate[Path, _More], _Content]:
    """Return a function that parses a file once and keeps its content until the file changes.

    Of all files together, the least recently used ones are dropped if they have more than
    `LARGEST_BYTES`. The function is thread-safe; errors are raised again by each call.

    Parameters
    ----------
    parse
        Returns the content of a file; all parameters must be hashable.
    """

    def content(path: Path, /, *args: _More.args, **kwargs: _More.kwargs) -> _Content:
        status = path.stat()
        key = (parse, path, status.st_mtime_ns, status.st_size, args, *sorted(kwargs.items()))
        with _lock:
            if key not in _kept:
                _keep(key, parse(path, *args, **kwargs), status.st_size)
            _kept.move_to_end(key)
            found: _Content = _kept[key][0]
        return found

    return content


def _keep(key: _Key, content: object, size: int) -> None:
    parse, path, *_ = key
    for other in [each for each in _kept if each[:2] == (parse, path) and each[4:] == key[4:]]:
        del _kept[other]  # the file as it was
    _kept[key] = content, size
    total = sum(each for _, each in _kept.values())
    while total > LARGEST_BYTES and len(_kept) > 1:
        _, (_, dropped) = _kept.popitem(last=False)
        total -= dropped

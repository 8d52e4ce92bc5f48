"""Contents of files of many regions, parsed once and kept until the file changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from napari_panoptic.common.cache import ByteCache

_Content = TypeVar("_Content")
_More = ParamSpec("_More")

# In memory, the contents of JSON take several times the bytes of the file.
PARSED: ByteCache[Any, Any] = ByteCache(2**28, keeps_last=True)
"""Contents of files, counted by the bytes of the files."""


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

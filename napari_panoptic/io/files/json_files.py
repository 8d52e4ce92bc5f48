"""JSON as programs write it: with a byte order mark, or with NaN."""

from __future__ import annotations

import json
from typing import Any

import orjson

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Of UTF-8, which editors and programs of Windows write first."""


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

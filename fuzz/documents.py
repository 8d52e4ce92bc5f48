"""Files with mistakes: a good document as plain values, edited, and written in its format.

Lengths, offsets and checksums are right whatever the values are, so that readers get
as far as the values themselves.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import math
import sqlite3
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import nibabel
import numpy as np

Write = Callable[[Any], bytes]

_NUMBERS = [0, -1, 1, 2, 3, 5, 8, 16, 32, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53]
_NUMBERS += [2**63 - 1, 2**63, 2**64, 10**30, 10**400, 0.5, -0.5, 1e-320, 1e308, math.nan, math.inf]
_TEXTS = ["", " ", "0", "1", "-1", "1.5", "1e999", "nan", "\0", "é", "\ud800", "\U0001f600"]
_TEXTS += ["a" * 300, "Epithelial", "epithelial ", "Ambiguous", "Class 1", "a\nb", "..", "/"]
_TEXTS += ["{region}", "*", "(", "[[a]", "x{99999999999}", "(?P<patient>", "9" * 5000, "<b>", "1;2"]
_TEXTS += ["true", "null"]


class Deep:
    """As many lists in each other, which no serializer could write by recursion."""

    def __init__(self, depth: int) -> None:
        self.depth = depth


class Choices:
    """Decisions read from bytes: a changed byte changes one; after the end all are the first."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""
        taken = self.some_bytes(1 if n <= 256 else 2 if n <= 65536 else 8)
        return int.from_bytes(taken, "little") % n if n else 0

    def some_bytes(self, size: int) -> bytes:
        """Return the next bytes, or those that are left."""
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def one_of(self, values: list[Any]) -> Any:
        """Return one of some values."""
        return values[self.below(len(values))]


def odd_value(choices: Choices) -> Any:
    """Return a value that fits nowhere, or only just."""
    match choices.below(16):
        case 0 | 1 | 2 | 3:
            return choices.one_of(_NUMBERS)
        case 4 | 5 | 6:
            return choices.one_of(_TEXTS)
        case 7 | 8:
            return choices.below(70_000) - 300
        case 9:
            return struct.unpack("<f", choices.some_bytes(4).ljust(4, b"\0"))[0]
        case 10:
            return choices.some_bytes(choices.below(8)).decode("utf-8", "surrogateescape")
        case 11:
            return choices.one_of([None, True, False])
        case 12:
            return [odd_value(choices) for _ in range(choices.below(4))]
        case 13:
            return {choices.one_of(_TEXTS): odd_value(choices)}
        case 14:
            return Deep(choices.one_of([200, 3000, 100_000]))
    return choices.one_of(_NUMBERS) * choices.one_of([1, -1])


def edited(document: Any, choices: Choices) -> Any:
    """Take a document of plain values, and change, remove or repeat some of them."""
    root = [copy.deepcopy(document)]
    for _ in range(choices.below(5)):
        places = list(_places(root))
        holder, key = choices.one_of(places)
        match choices.below(8):
            case 0 if holder is not root:
                del holder[key]
            case 1 if isinstance(holder, list) and holder is not root:
                holder.insert(key, copy.deepcopy(holder[key]))
            case 2:
                other, other_key = choices.one_of(places)
                holder[key] = copy.deepcopy(other[other_key])
            case _:
                holder[key] = odd_value(choices)
    return root[0]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, (dict, list)):
            yield from _places(item)


def document(goods: list[Any], write: Write, decisions: bytes) -> bytes:
    """Write one of some good documents with mistakes; now and then its bytes are damaged as well.

    The decisions choose the document and the mistakes; without any there are none.
    """
    choices = Choices(decisions)
    chosen = choices.one_of(goods)
    damage = choices.below(12)
    data = write(edited(chosen, choices))
    at = choices.below(len(data) + 1)
    match damage:
        case 10:
            return data[:at]
        case 11:
            inserted = choices.some_bytes(choices.below(5))
            return data[:at] + inserted + data[at + choices.below(5) :]
    return data


def whole(value: Any, low: int = 0, high: int = 2**32 - 1) -> int:
    """Make a whole number within limits of anything."""
    is_float = isinstance(value, float) and math.isfinite(value)
    if not is_float and (isinstance(value, bool) or not isinstance(value, int)):
        value = 0 if value in (None, "") else len(str(value))
    return max(low, min(high, int(value)))


def text_of(value: Any) -> str:
    return "[" * value.depth if isinstance(value, Deep) else str(value)


def raw(text: str) -> bytes:
    """Return the bytes of a text, lone surrogates included."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _wrapped(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _hex(value: Any) -> bytes:
    try:
        return bytes.fromhex(str(value))
    except ValueError:
        return raw(text_of(value))


def array_hex(array: Any, *, order: str = "C") -> str:
    """Return the bytes of an array as they are in a file."""
    return str(array.tobytes(order=order).hex())


# --- text ---------------------------------------------------------------------------------------


def json_bytes(value: Any) -> bytes:
    """Write JSON; NaN and infinities as Python writes them."""
    return raw(_json(value))


def _json(value: Any) -> str:
    match value:
        case Deep():
            return "[" * value.depth + "]" * value.depth
        case dict():
            items = (f"{json.dumps(str(k))}: {_json(v)}" for k, v in value.items())
            return "{" + ", ".join(items) + "}"
        case list():
            return "[" + ", ".join(map(_json, value)) + "]"
    return json.dumps(value)


def toml_bytes(value: Any) -> bytes:
    """Write TOML: one key per line, tables in line."""
    if not isinstance(value, dict):
        return raw(_toml(value))
    return raw("\n".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()))


def _toml(value: Any) -> str:
    match value:
        case dict():
            items = (f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items())
            return "{" + ", ".join(items) + "}"
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case Deep():
            return _json(value)
        case bool():
            return str(value).lower()
        case None:
            return "1979-05-27"
        case int() | float():
            return str(value)
    return json.dumps(str(value), ensure_ascii="\ud800" not in str(value))


def xml_bytes(value: Any) -> bytes:
    """Write XML: an element is {"tag": name, attribute: text, "in": [elements]}."""
    return raw('<?xml version="1.0" encoding="UTF-8"?>\n' + _xml(value))


def _xml(value: Any) -> str:
    if isinstance(value, Deep):
        return "<Region>" * min(value.depth, 3000) + "</Region>" * min(value.depth, 3000)
    if not isinstance(value, dict):
        return escape(str(value))
    tag, inside = str(value.get("tag", "x")), _wrapped(value.get("in", []))
    attributes = {k: text for k, text in value.items() if k not in ("tag", "in")}.items()
    head = tag + "".join(f" {k}={quoteattr(text_of(text))}" for k, text in attributes)
    return f"<{head}>{''.join(map(_xml, inside))}</{tag}>" if inside else f"<{head}/>"


def csv_bytes(value: Any) -> bytes:
    """Write a table: a list of rows."""
    rows = (",".join(map(text_of, _wrapped(row))) for row in _wrapped(value))
    return raw("\n".join(rows))


def lines_bytes(value: Any) -> bytes:
    return raw("\n".join(map(text_of, _wrapped(value))))


def part_bytes(value: Any) -> bytes:
    """Write a stored region: {"header": …, "body": …}, with the checksum of the body."""
    if not isinstance(value, dict):
        return json_bytes(value)
    body, header = _json(value.get("body")), value.get("header")
    if isinstance(header, dict) and "sha256" in header:
        header = header | {"sha256": hashlib.sha256(raw(body)).hexdigest()}
    return raw(f"{_json(header)}\n{body}\n")


def pack_files(value: Any) -> bytes:
    """Write several files as one: {name: content}; contents without "hex:" are JSON."""
    if not isinstance(value, dict):
        return json_bytes(value)
    parts = []
    for name, content in value.items():
        data = (
            bytes.fromhex(content[4:]) if str(content).startswith("hex:") else json_bytes(content)
        )
        parts.append(raw(f"--- {name} {len(data)}\n") + data)
    return b"\n".join(parts)


def unpack_files(data: bytes, allowed: tuple[str, ...]) -> dict[str, bytes]:
    """Read what `pack_files` wrote, as far as it can be; other names are left out."""
    files: dict[str, bytes] = {}
    at = 0
    while (at := data.find(b"--- ", at)) >= 0:
        end = data.find(b"\n", at)
        name, _, size = data[at + 4 : end if end >= 0 else None].decode("latin-1").rpartition(" ")
        at = end + 1 if end >= 0 else len(data)
        following = data.find(b"\n--- ", at)
        stop = (
            at + int(size[:7]) if size.isdecimal() else following if following >= 0 else len(data)
        )
        if name in allowed:
            files[name] = data[at:stop]
        at = max(stop, at) if stop <= len(data) else len(data)
    return files


# --- pixels -------------------------------------------------------------------------------------

TIFF_TYPES = {1: "B", 2: "s", 3: "H", 4: "I", 5: "II", 11: "f", 12: "d", 13: "I", 16: "Q"}


def tiff_bytes(value: Any) -> bytes:
    """Write a TIFF: {"order": "<", "pages": [{"tags": [[code, type, values]], "data": [hex]}]}.

    A value "offset" or "size" of a tag stands for those of the page's data.
    """
    if not isinstance(value, dict):
        value = {"pages": [value]}
    order = ">" if value.get("order") == ">" else "<"
    out = bytearray((b"MM\0*" if order == ">" else b"II*\0") + bytes(4))
    link = 4
    for page in (page for page in _listed(value.get("pages")) if isinstance(page, dict)):
        pieces = [_hex(piece) for piece in _wrapped(page.get("data"))]
        offsets = []
        for piece in pieces:
            offsets.append(len(out))
            out += piece
        known = {"offset": offsets, "size": [len(piece) for piece in pieces]}
        tags = [tag for tag in _listed(page.get("tags")) if isinstance(tag, list) and len(tag) > 2]
        entries = [_tiff_entry(order, tag, known, out) for tag in tags]
        out += bytes(len(out) % 2)
        struct.pack_into(f"{order}I", out, link, len(out))
        out += struct.pack(f"{order}H", min(len(entries), 65535)) + b"".join(entries)
        link = len(out)
        out += bytes(4)
    return bytes(out)


def _tiff_entry(order: str, tag: list[Any], known: dict[str, list[int]], out: bytearray) -> bytes:
    code, kind, values = whole(tag[0], 0, 65535), whole(tag[1], 0, 65535), tag[2]
    values = known.get(values, values) if isinstance(values, str) else values
    if isinstance(values, str) or kind == 2:
        packed = raw(text_of(values)) + b"\0"
        count = len(packed)
    else:
        letters = TIFF_TYPES.get(kind, "H")
        packed = b"".join(_number(order, letters[0], number) for number in _wrapped(values))
        count = len(_wrapped(values)) // len(letters)
    count = whole(tag[3]) if len(tag) > 3 else count
    if len(packed) > 4:
        start = len(out)
        out += packed + bytes(len(packed) % 2)
        packed = struct.pack(f"{order}I", start)
    return struct.pack(f"{order}HHI", code, kind, count) + packed.ljust(4, b"\0")


def _number(order: str, letter: str, value: Any) -> bytes:
    if letter in "fd":
        try:
            return struct.pack(order + letter, value)
        except (struct.error, OverflowError, TypeError):
            return struct.pack(order + letter, math.nan)
    letter = "B" if letter == "s" else letter
    most = 2 ** (8 * struct.calcsize(f"<{letter}")) - 1
    return struct.pack(order + letter, whole(value, 0, most))


def png_bytes(value: Any) -> bytes:
    """Write a PNG: a list of [name, content]; checksums are right, IDAT is compressed."""
    out = b"\x89PNG\r\n\x1a\n"
    for chunk in _wrapped(value):
        name, content = (*chunk, "", "")[:2] if isinstance(chunk, list) else (chunk, "")
        if isinstance(content, list):  # the header
            numbers = [whole(number) for number in [*content, *[0] * 7][:7]]
            data = struct.pack(">II", *numbers[:2]) + bytes(number % 256 for number in numbers[2:])
        else:
            data = _hex(content)
        data = zlib.compress(data) if name == "IDAT" else data
        tag = raw(text_of(name)).ljust(4, b"\0")[:4]
        out += struct.pack(">I", len(data)) + tag + data
        out += struct.pack(">I", zlib.crc32(tag + data))
    return out


def npy_bytes(value: Any) -> bytes:
    """Write an NPY file: {"version": 1, "header": {…} or text, "data": hex}."""
    if not isinstance(value, dict):
        return b"\x93NUMPY\x01\x00" + json_bytes(value)
    header = value.get("header")
    data = raw(header if isinstance(header, str) else _python(header)) + b"\n"
    version = whole(value.get("version", 1), 0, 255)
    length = struct.pack("<H" if version == 1 else "<I", min(len(data), 65535))
    return b"\x93NUMPY" + bytes([version, 0]) + length + data + _hex(value.get("data"))


def _python(value: Any) -> str:
    match value:
        case Deep():
            return "(" * value.depth + ")" * value.depth
        case dict():
            return "{" + ", ".join(f"{k!r}: {_python(v)}" for k, v in value.items()) + "}"
        case list():
            return "(" + "".join(f"{_python(v)}, " for v in value) + ")"
    return repr(value)


def pickle_bytes(value: Any) -> bytes:
    """Write an NPY file with one pickled object, as `numpy.save` does; any value."""
    array = np.empty((), object)
    array[()] = value
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def _archive(members: list[tuple[Any, bytes]]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive, warnings.catch_warnings(action="ignore"):
        for name, data in members:
            text = text_of(name).encode("utf-8", "replace").decode().replace("\0", "")
            archive.writestr(zipfile.ZipInfo(text[:10_000] or "x"), data)  # no longer names exist
    return packed.getvalue()


def npz_bytes(value: Any) -> bytes:
    """Write an archive: a list of names and NPY documents."""
    members = ([*_listed(member), "", None][:2] for member in _listed(value))
    return _archive([(name, npy_bytes(document)) for name, document in members])


def roi_bytes(value: Any) -> bytes:
    """Write ImageJ ROIs into an archive: a list of dictionaries; lengths and checksums are right.

    Of each: "name", "type", "box" (top, left, bottom, right), "points" or the steps of a composite
    "path", "group" and "plane".
    """
    rois = [roi if isinstance(roi, dict) else {"name": roi} for roi in _listed(value)]
    return _archive([(roi.get("name", ""), _roi(roi)) for roi in rois])


def _roi(roi: dict[str, Any]) -> bytes:
    points, steps = (
        [_listed(point) for point in _listed(roi.get("points"))],
        _listed(roi.get("path")),
    )
    columns = [[point[k] if len(point) > k else 0 for point in points] for k in (0, 1)]
    shorts = b"".join(_number(">", "H", number) for column in columns for number in column)
    path = b"".join(_number(">", "f", step) for step in steps)
    box = [_number(">", "H", side) for side in [*_listed(roi.get("box")), 0, 0, 0, 0][:4]]
    head = b"Iout" + struct.pack(">hBx", 229, whole(roi.get("type"), 0, 255)) + b"".join(box)
    head += struct.pack(">H", min(len(points), 2**16 - 1)) + bytes(16)
    head += struct.pack(">hi16xi", 0, len(steps), whole(roi.get("plane"), 0, 2**31 - 1))
    second = struct.pack(">30xB33x", whole(roi.get("group"), 0, 255))
    return head + struct.pack(">i", 64 + len(shorts + path)) + shorts + path + second


def mat_bytes(value: Any) -> bytes:
    """Write a MATLAB file of version 5: a list of variables.

    Of each: "class", "flags", "dims", "name", "type", "data", "more" and "compressed".
    """
    out = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    for variable in map(_dict, _wrapped(value)):
        element = _mat_variable(variable)
        if variable.get("compressed"):
            packed = zlib.compress(element)
            element = struct.pack("<II", 15, len(packed)) + packed
        out += element
    return out


def _mat_variable(variable: dict[str, Any]) -> bytes:
    kind = whole(variable.get("class"), 0, 255) | whole(variable.get("flags"), 0, 255) << 8
    dims = [whole(n, -(2**31), 2**31 - 1) for n in _wrapped(variable.get("dims"))]
    body = _element(6, struct.pack("<II", kind, 0)) + _element(
        5, struct.pack(f"<{len(dims)}i", *dims)
    )
    body += _element(1, raw(text_of(variable.get("name", ""))))
    body += _element(whole(variable.get("type"), 0, 2**31), _hex(variable.get("data")))
    for pair in _listed(variable.get("more")):
        if isinstance(pair, list) and len(pair) == 2:
            body += _element(whole(pair[0], 0, 2**31), _hex(pair[1]))
    return struct.pack("<II", 14, len(body)) + body


def _element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def sqlite_bytes(value: Any) -> bytes:
    """Write a database: {"statements": [SQL], "rows": [[table, [values]]]}, if SQLite accepts."""
    value = _dict(value)
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in _listed(value.get("statements")):
            _execute(connection, str(statement), [])
        for row in _listed(value.get("rows")):
            if isinstance(row, list) and len(row) == 2 and isinstance(row[1], list):
                marks = ", ".join("?" * len(row[1]))
                _execute(connection, f"INSERT INTO {row[0]} VALUES ({marks})", row[1])  # noqa: S608
        connection.commit()
        try:
            return connection.serialize()
        except sqlite3.OperationalError:  # nothing was made
            return b""


def _execute(connection: sqlite3.Connection, statement: str, values: list[Any]) -> None:
    refused = (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeEncodeError, ValueError)
    with suppress(*refused):
        connection.execute(statement, [_sql_value(value) for value in values])


def _sql_value(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("hex:"):
        return _hex(value[4:])
    return value if isinstance(value, (int, float, str)) else None


def nifti_bytes(value: Any) -> bytes:
    """Write NIfTI-1: {"header": {field: value}, "data": hex}; the data lie at byte 352."""
    value = value if isinstance(value, dict) else {"header": value}
    header = np.zeros((), nibabel.nifti1.header_dtype)
    for name, content in _dict(value.get("header")).items():
        # What the field cannot hold is left out.
        with suppress(ValueError, TypeError, OverflowError), np.errstate(all="ignore"):
            header[name] = content
    return header.tobytes() + bytes(4) + _hex(value.get("data"))

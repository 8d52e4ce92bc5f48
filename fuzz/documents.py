"""Files with mistakes: a good one as plain values, edited, and written in its format again.

Lengths, offsets and checksums are right whatever the values are, so that readers get
as far as the values themselves.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import io
import json
import math
import re
import sqlite3
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import nibabel
import numpy as np
import tifffile

_NUMBERS = [0, -1, 1, 2, 3, 5, 8, 16, 32, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53]
_NUMBERS += [2**63 - 1, 2**63, 2**64, 10**30, 10**400, 0.5, -0.5, 1e-320, 1e308, math.nan, math.inf]
_TEXTS = ["", " ", "0", "1", "-1", "1.5", "1e999", "nan", "\0", "é", "\ud800", "\U0001f600"]
_TEXTS += ["a" * 300, "Epithelial", "epithelial ", "Ambiguous", "Class 1", "a\nb", "..", "/"]
_TEXTS += ["{region}", "*", "(", "[[a]", "x{99999999999}", "(?P<patient>", "9" * 5000, "<b>", "1;2"]
_TEXTS += ["true", "null"]
_BETWEEN = "\n--- "  # files in one


@dataclass(frozen=True)
class Deep:
    """As many lists in each other, which no serializer could write by recursion."""

    depth: int

    def __repr__(self) -> str:
        return f"deep {self.depth}"

    @staticmethod
    def written(text: str) -> str:
        """Put the lists into a text that names them."""
        nested = r'"?deep ([0-9]+)"?'
        return re.sub(nested, lambda n: "[" * int(n[1]) + "]" * int(n[1]), text)


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


@dataclass(frozen=True)
class Format:
    """How documents are written, and how they are made of good files, if of a file at all."""

    write: Callable[[Any], bytes]
    parse: Callable[[bytes], Any] = lambda _content: None

    def document(self, good: Any) -> Any:
        """Return a good file or document as a document, None if the file has another format."""
        return self.parse(good) if isinstance(good, bytes) else good


def damaged(goods: list[Any], write: Callable[[Any], bytes], decisions: bytes) -> bytes:
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
    return Deep.written(str(value)) if isinstance(value, Deep) else str(value)


def raw(text: str) -> bytes:
    """Return the bytes of a text, lone surrogates included."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _wrapped(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _a(kind: type, value: Any) -> Any:
    """Return a value of a kind, or an empty one."""
    return value if isinstance(value, kind) else kind()


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


def _content(value: Any) -> bytes:
    return value if isinstance(value, bytes) else raw(text_of(value))


# --- text ---------------------------------------------------------------------------------------


def _json(value: Any, **options: Any) -> str:
    """Write JSON; NaN and infinities as Python writes them."""
    return Deep.written(json.dumps(value, default=str, **options))


def json_bytes(value: Any) -> bytes:
    return raw(_json(value))


def _toml_bytes(value: Any) -> bytes:
    """Write TOML: one key per line, tables in line."""
    rows = value.items() if isinstance(value, dict) else [("x", value)]
    options = {"separators": (", ", " = "), "ensure_ascii": False}
    text = "\n".join(f"{json.dumps(str(key))} = {_json(own, **options)}" for key, own in rows)
    for own, other in (("null", "1979-05-27"), ("NaN", "nan"), ("Infinity", "inf")):
        text = text.replace(own, other)
    return raw(text)


def _xml_bytes(value: Any) -> bytes:
    """Write XML: an element is {"tag": name, attribute: text, "in": [elements]}."""
    return raw('<?xml version="1.0" encoding="UTF-8"?>\n' + _xml(value))


def _xml(value: Any) -> str:
    if isinstance(value, Deep):
        return "<Region>" * value.depth + "</Region>" * value.depth
    if not isinstance(value, dict):
        return escape(str(value))
    tag, inside = str(value.get("tag", "x")), _wrapped(value.get("in", []))
    attributes = {k: text for k, text in value.items() if k not in ("tag", "in")}.items()
    head = tag + "".join(f" {k}={quoteattr(text_of(text))}" for k, text in attributes)
    return f"<{head}>{''.join(map(_xml, inside))}</{tag}>" if inside else f"<{head}/>"


def _xml_document(content: bytes) -> Any:
    def element(own: ElementTree.Element) -> dict[str, Any]:
        return {"tag": own.tag, **own.attrib, "in": list(map(element, own))}

    return element(ElementTree.fromstring(content))  # noqa: S314 - one of the tests


def _csv_bytes(value: Any) -> bytes:
    """Write a table: a list of rows, or of texts for lines of one cell."""
    return raw("\n".join(",".join(map(text_of, _wrapped(row))) for row in _wrapped(value)))


def _part_bytes(value: Any) -> bytes:
    """Write a stored region: {"header": …, "body": …}, with the checksum of the body."""
    if not isinstance(value, dict):
        return json_bytes(value)
    body, header = _json(value.get("body")), value.get("header")
    if isinstance(header, dict) and "sha256" in header:
        header = header | {"sha256": hashlib.sha256(raw(body)).hexdigest()}
    return raw(f"{_json(header)}\n{body}\n")


def _pack(value: Any) -> bytes:
    """Write several files as one: {name: content}; what is not bytes is JSON."""
    parts = []
    for name, content in _a(dict, value).items():
        data = content if isinstance(content, bytes) else json_bytes(content)
        parts.append(raw(f"{_BETWEEN}{name}\n") + data)
    return b"".join(parts)


def unpack_files(data: bytes, allowed: list[str]) -> dict[str, bytes]:
    """Read what `_pack` wrote, as far as it can be; other names are left out."""
    parts = (part.partition(b"\n") for part in data.split(_BETWEEN.encode()))
    files = {name.decode("latin-1"): content for name, _, content in parts}
    return {name: content for name, content in files.items() if name in allowed}


# --- pixels -------------------------------------------------------------------------------------

TIFF_TYPES = {1: "B", 2: "s", 3: "H", 4: "I", 5: "II", 11: "f", 12: "d", 13: "I", 16: "Q"}


def _tiff_bytes(value: Any) -> bytes:
    """Write a TIFF: {"order": "<", "pages": [{"tags": [[code, type, values]], "data": [bytes]}]}.

    A value "offset" or "size" of a tag stands for those of the page's data.
    """
    if not isinstance(value, dict):
        value = {"pages": [value]}
    order = ">" if value.get("order") == ">" else "<"
    out = bytearray((b"MM\0*" if order == ">" else b"II*\0") + bytes(4))
    link = 4
    for page in (page for page in _a(list, value.get("pages")) if isinstance(page, dict)):
        pieces = [_content(piece) for piece in _wrapped(page.get("data"))]
        offsets = []
        for piece in pieces:
            offsets.append(len(out))
            out += piece
        known = {"offset": offsets, "size": [len(piece) for piece in pieces]}
        tags = [tag for tag in _a(list, page.get("tags")) if isinstance(tag, list) and len(tag) > 2]
        entries = [_tiff_entry(order, tag, known, out) for tag in tags]
        out += bytes(len(out) % 2)
        struct.pack_into(f"{order}I", out, link, len(out))
        out += struct.pack(f"{order}H", min(len(entries), 65535)) + b"".join(entries)
        link = len(out)
        out += bytes(4)
    return bytes(out)


def _tiff_document(content: bytes) -> Any:
    names = {273: "offset", 324: "offset", 279: "size", 325: "size"}
    pages = []
    with tifffile.TiffFile(io.BytesIO(content)) as tiff:
        for page in tiff.pages:
            tags = []
            for tag in page.tags:
                is_text = isinstance(tag.value, str)
                numbers = tag.value if is_text else np.ravel(tag.value).astype(int).tolist()
                tags.append([tag.code, int(tag.dtype), names.get(tag.code, numbers)])
            pieces = zip(page.dataoffsets, page.databytecounts, strict=True)
            data = [content[start : start + size] for start, size in pieces]
            pages.append({"tags": tags, "data": data})
        return {"order": tiff.byteorder, "pages": pages}


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


def _png_bytes(value: Any) -> bytes:
    """Write a PNG: a list of [name, content]; checksums are right, IDAT is compressed."""
    out = b"\x89PNG\r\n\x1a\n"
    for chunk in _wrapped(value):
        name, content = (*chunk, "", "")[:2] if isinstance(chunk, list) else (chunk, "")
        if isinstance(content, list):  # the header
            numbers = [whole(number) for number in [*content, *[0] * 7][:7]]
            data = struct.pack(">II", *numbers[:2]) + bytes(number % 256 for number in numbers[2:])
        else:
            data = _content(content)
        data = zlib.compress(data) if name == "IDAT" else data
        tag = raw(text_of(name)).ljust(4, b"\0")[:4]
        out += struct.pack(">I", len(data)) + tag + data
        out += struct.pack(">I", zlib.crc32(tag + data))
    return out


def _png_document(content: bytes) -> Any:
    chunks: list[Any] = []
    at = 8
    while at < len(content):
        size, name = struct.unpack_from(">I4s", content, at)
        data = content[at + 8 : at + 8 + size]
        data = zlib.decompress(data) if name == b"IDAT" else data
        header = [*struct.unpack(">IIBBBBB", data)] if name == b"IHDR" else None
        chunks.append([name.decode(), header or data])
        at += 12 + size
    return chunks


def _npy_bytes(value: Any) -> bytes:
    """Write an NPY file: {"version": 1, "header": {…} or text, "data": bytes}."""
    if not isinstance(value, dict):
        return b"\x93NUMPY\x01\x00" + json_bytes(value)
    header = value.get("header")
    text = repr(header).replace("[", "(").replace("]", ",)")  # sizes are tuples
    data = raw(header if isinstance(header, str) else Deep.written(text)) + b"\n"
    version = whole(value.get("version", 1), 0, 255)
    length = struct.pack("<H" if version == 1 else "<I", min(len(data), 65535))
    return b"\x93NUMPY" + bytes([version, 0]) + length + data + _content(value.get("data", b""))


def _npy_document(content: bytes) -> Any:
    end = 10 + int.from_bytes(content[8:10], "little")
    header = ast.literal_eval(content[10:end].decode())
    header["shape"] = list(header["shape"])
    return {"version": 1, "header": header, "data": content[end:]}


def _picture_bytes(value: Any) -> bytes:
    """Write a TIFF, PNG or NPY document, whichever it is."""
    if isinstance(value, dict):
        return _npy_bytes(value) if "header" in value else _tiff_bytes(value)
    return _png_bytes(value)


def _picture_document(content: bytes) -> Any:
    parsers = {b"II": _tiff_document, b"MM": _tiff_document, b"\x89P": _png_document}
    parse = (parsers | {b"\x93N": _npy_document}).get(content[:2])
    return parse and parse(content)


def _pickle_bytes(value: Any) -> bytes:
    """Write an NPY file with one pickled object, as `numpy.save` does; any value."""
    array = np.empty((), object)
    array[()] = value
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def zipped(members: list[tuple[Any, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Write an archive, without the time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive, warnings.catch_warnings(action="ignore"):
        for member, data in members:
            text = text_of(member).encode("utf-8", "replace").decode().replace("\0", "")
            name = zipfile.ZipInfo(text[:10_000] or "x")  # no longer names exist
            archive.writestr(name, data, compression)
    return packed.getvalue()


def _archive_of(member: Format) -> Format:
    """Return the format of archives: lists of names and documents of one format."""

    def write(value: Any) -> bytes:
        pairs = ([*_wrapped(own), "", None][:2] for own in _a(list, value))
        return zipped([(name, member.write(document)) for name, document in pairs])

    def parse(content: bytes) -> Any:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return [[name, member.parse(archive.read(name))] for name in archive.namelist()]

    return Format(write, parse)


def _shorts_bytes(value: Any) -> bytes:
    """Write numbers of two bytes each, of which an ImageJ ROI consists."""
    return b"".join(_number(">", "H", number) for number in _wrapped(value))


def _shorts_document(content: bytes) -> Any:
    return np.frombuffer(content[: len(content) // 2 * 2], ">u2").tolist()


def _mat_bytes(value: Any) -> bytes:
    """Write a MATLAB file of version 5: a list of variables.

    Of each: whether it is "compressed", and its "elements" with their types: whole numbers
    (flags and dimensions) or bytes.
    """
    out = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    for variable in (_a(dict, own) for own in _wrapped(value)):
        body = b""
        for kind, content in (own for own in _a(list, variable.get("elements")) if _is_pair(own)):
            numbers = content if isinstance(content, list) else ()
            data = b"".join(_number("<", "I", number) for number in numbers)
            body += _element(kind, data or _content(content))
        element = _element(14, body)
        is_packed = variable.get("compressed")
        out += _element(15, zlib.compress(element), pads=False) if is_packed else element
    return out


def _element(kind: Any, data: bytes, *, pads: bool = True) -> bytes:
    head = struct.pack("<II", whole(kind, 0, 2**31), len(data))
    return head + data + bytes(-len(data) % 8 if pads else 0)


def _mat_document(content: bytes) -> Any:
    if not content.startswith(b"MATLAB 5.0"):
        return None
    variables = []
    for kind, data in _elements(content[128:], pads=False):
        (_, body), *_ = _elements(zlib.decompress(data)) if kind == 15 else [(kind, data)]
        flags, dims, *others = _elements(body)
        elements = [[own, np.frombuffer(part, "<u4").tolist()] for own, part in (flags, dims)]
        elements += map(list, others)
        variables.append({"elements": elements, "compressed": kind == 15})
    return variables


def _elements(content: bytes, *, pads: bool = True) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 8 <= len(content):
        kind, size = struct.unpack_from("<II", content, at)
        if kind >> 16:  # a small one
            yield kind & 0xFFFF, content[at + 4 : at + 4 + (kind >> 16)]
            at += 8
        else:
            yield kind, content[at + 8 : at + 8 + size]
            at += 8 + size + (-size % 8 if pads else 0)


def _sqlite_bytes(value: Any) -> bytes:
    """Write a database: {"statements": [SQL], "rows": [[table, [values]]]}, if SQLite accepts."""
    value = _a(dict, value)
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in _a(list, value.get("statements")):
            _execute(connection, str(statement), [])
        for table, row in (own for own in _a(list, value.get("rows")) if _is_pair(own)):
            marks = ", ".join("?" * len(_wrapped(row)))
            _execute(connection, f"INSERT INTO {table} VALUES ({marks})", _wrapped(row))  # noqa: S608
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
    return value if isinstance(value, (int, float, str, bytes)) else None


def _sqlite_document(content: bytes) -> Any:
    rows = []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content)
        made = [*connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql > ''")]
        for table in (name for kind, name, _ in made if kind == "table"):
            found = connection.execute(f"SELECT * FROM {table}")  # noqa: S608
            rows += [[table, list(row)] for row in found]
    return {"statements": [" ".join(sql.split()) for *_, sql in made], "rows": rows}


def _nifti_bytes(value: Any) -> bytes:
    """Write NIfTI-1: {"header": {field: value}, "data": bytes}; the data lie at byte 352."""
    value = value if isinstance(value, dict) else {"header": value}
    header = np.zeros((), nibabel.nifti1.header_dtype)
    for name, content in _a(dict, value.get("header")).items():
        # What the field cannot hold is left out.
        with suppress(ValueError, TypeError, OverflowError), np.errstate(all="ignore"):
            header[name] = content
    return header.tobytes() + bytes(4) + _content(value.get("data", b""))


def _nifti_document(content: bytes) -> Any:
    header = np.frombuffer(content[:348], nibabel.nifti1.header_dtype)[0]
    fields = {name: header[name].tolist() for name in header.dtype.names}
    texts = {name: own.decode() for name, own in fields.items() if isinstance(own, bytes)}
    return {"header": fields | texts, "data": content[352:]}


JSON, TOML, CSV = Format(json_bytes, json.loads), Format(_toml_bytes), Format(_csv_bytes)
XML, PART, FILES = Format(_xml_bytes, _xml_document), Format(_part_bytes), Format(_pack)
PICTURE = Format(_picture_bytes, _picture_document)
PICKLE = Format(_pickle_bytes, lambda content: np.load(io.BytesIO(content), allow_pickle=True)[()])
NPZ = _archive_of(Format(_npy_bytes, _npy_document))
ROIS = _archive_of(Format(_shorts_bytes, _shorts_document))
MAT, SQLITE = Format(_mat_bytes, _mat_document), Format(_sqlite_bytes, _sqlite_document)
NIFTI = Format(_nifti_bytes, _nifti_document)

"""The SQLite file of a review: open, check, migrate, set aside if damaged.

This module knows the layout of the file and its failures, not the meaning of its rows.
"""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list

REVIEW_FILE = "panoptic-review.sqlite"
"""Name of the review file beside a cohort."""

SCHEMA_VERSION = 2
"""Version of the layout that this program writes."""

_SCHEMA = (
    "CREATE TABLE schema_version (version INTEGER NOT NULL, since TEXT NOT NULL)",
    """CREATE TABLE verdicts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        reviewer TEXT NOT NULL,
        team TEXT NOT NULL,
        region TEXT NOT NULL,
        side TEXT NOT NULL,
        object_id INTEGER NOT NULL,
        class_name TEXT NOT NULL,
        centroid_y_px REAL NOT NULL,
        centroid_x_px REAL NOT NULL,
        area_px INTEGER NOT NULL,
        verdict TEXT NOT NULL,
        tag TEXT NOT NULL,
        note TEXT NOT NULL,
        given_at TEXT NOT NULL,
        replaces INTEGER REFERENCES verdicts (id),
        withdrawn_at TEXT,
        revision INTEGER NOT NULL,
        writer TEXT NOT NULL,
        role TEXT NOT NULL DEFAULT '')""",
    "CREATE INDEX verdicts_by_place ON verdicts (reviewer, region, team, side)",
    "CREATE INDEX verdicts_by_replaced ON verdicts (replaces)",
    "CREATE INDEX verdicts_by_revision ON verdicts (revision)",
)

# Speeds up the lookup of an object; not required.
_LOOK_UP = (
    "CREATE INDEX IF NOT EXISTS verdicts_by_object "
    "ON verdicts (reviewer, region, team, side, class_name, centroid_y_px)"
)

LARGEST_BYTES = 2**30
"""Largest review file: some millions of verdicts."""
LONGEST_TEXT = 2**20
"""Largest value in a review file, in bytes."""

# The column number of a computed value is -2.
_COMPUTED_INDEXES = """
    SELECT DISTINCT own.name
    FROM sqlite_master AS tables, pragma_index_list(tables.name) AS own,
        pragma_index_info(own.name) AS columns
    WHERE tables.type = 'table' AND (own.partial OR columns.cid = -2)"""

# Version -> the statements that lead from it to the next one.
_MIGRATIONS: Mapping[int, Sequence[str]] = {
    1: ("ALTER TABLE verdicts ADD COLUMN role TEXT NOT NULL DEFAULT ''",),
}


class ReviewError(PanopticError):
    """A review file cannot be used, or a verdict was not saved.

    Parameters
    ----------
    message, path, region, object_id
        As for every error of this package.
    suggestion
        Another place for the review file, where one would help.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | None = None,
        region: str | None = None,
        object_id: int | None = None,
        suggestion: Path | None = None,
    ) -> None:
        self.suggestion = suggestion
        super().__init__(message, path=path, region=region, object_id=object_id)


class _DamagedError(Exception):
    """The file is no SQLite database, or a damaged one."""


def may_be_there(path: Path) -> bool:
    """Return whether a file exists, or cannot be checked; opening it then raises the reason."""
    try:
        return path.exists()
    except OSError:  # such as a disconnected network drive, or a folder that may not be read
        return True


def suggested_path(path: Path) -> Path | None:
    """Return a path in the user's home for a review file that cannot be at `path`."""
    try:
        home = Path.home()
    except RuntimeError:  # the home folder is unknown
        return None
    folder = path.absolute().parent
    number = zlib.crc32(str(folder).encode("utf-8", "surrogateescape"))
    return home / "napari-panoptic-reviews" / f"{folder.name or 'cohort'}-{number:08x}.sqlite"


def open_review_file(
    path: Path, timeout_s: float, *, create: bool = True
) -> tuple[sqlite3.Connection, tuple[Finding, ...]]:
    """Open a review file; set a damaged one aside and start a new one.

    Parameters
    ----------
    path
        The file.
    timeout_s
        Time to wait, in seconds, while another connection writes.
    create
        Whether to create a missing file and its folder; an error if not.

    Returns
    -------
    sqlite3.Connection
        For any thread, one at a time; transactions are begun by :func:`transaction`.
    tuple of Finding
        Files set aside or converted.

    Raises
    ------
    ReviewError
        If the file cannot be used.
    """
    _prepare_folder(path, create=create)
    notices: tuple[Finding, ...] = ()
    for _ in range(3):
        identity = file_identity(path)
        try:
            connection, found = _connected(path, timeout_s, create=create)
        except _DamagedError as error:
            # Another window may have set it aside already; its new file must stay.
            if file_identity(path) == identity:
                notices += (_set_aside(path, str(error)),)
                create = True
            continue
        return connection, (*notices, *found)
    raise ReviewError(
        "the review file is damaged, and so is each that takes its place; check the disk, or "
        "choose another place",
        path=path,
        suggestion=suggested_path(path),
    )


def open_to_read(path: Path) -> tuple[sqlite3.Connection, int]:
    """Open an existing review file without ever writing to it.

    Returns
    -------
    sqlite3.Connection
        For reading.
    int
        The version of the file's layout.

    Raises
    ------
    ReviewError
        If there is no file, it is damaged, or it is none of this program and version.
    """
    if not path.is_file():
        raise ReviewError("there is no review file; check the name", path=path)
    failure = "the review cannot be read"
    try:
        with ExitStack() as on_error:
            uri = _uri_without_creating(path).removesuffix("rw") + "ro"
            connection = sqlite3.connect(uri, isolation_level=None, uri=True)
            on_error.callback(connection.close)
            _distrust(connection)
            version = _version(connection, path)
            _check_schema(connection, path)
            ((verdict,), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
            if verdict != "ok":
                raise ReviewError(f"{failure}: the file is damaged ({verdict})", path=path)
            on_error.pop_all()
    except UnicodeDecodeError as error:
        raise ReviewError(f"{failure}: the file is damaged", path=path) from error
    except sqlite3.Error as error:
        if _code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            what = "it is no review file, or a damaged one; choose another file"
            raise ReviewError(f"{failure}: {what}", path=path) from error
        raise explained(error, path, failure) from error
    if version is None:
        connection.close()
        raise ReviewError(f"{failure}: the file is empty", path=path)
    return connection, version


def _prepare_folder(path: Path, *, create: bool) -> None:
    try:
        is_folder = path.is_dir()
        if create and not path.parent.is_dir():
            path.parent.mkdir(exist_ok=True)
    except OSError as error:
        suggestion = suggested_path(path)
        what = f"no review file can be made here ({error.strerror or error})"
        raise ReviewError(
            _choose_other(what, suggestion), path=path, suggestion=suggestion
        ) from error
    if is_folder:
        raise ReviewError(
            f"expected the name of a review file, found a folder; choose a file in it, such as "
            f"{REVIEW_FILE}",
            path=path,
        )


def _connected(
    path: Path, timeout_s: float, *, create: bool
) -> tuple[sqlite3.Connection, tuple[Finding, ...]]:
    try:
        with ExitStack() as on_error:
            connection = sqlite3.connect(
                path if create else _uri_without_creating(path),
                timeout=timeout_s,
                isolation_level=None,
                check_same_thread=False,
                uri=not create,
            )
            on_error.callback(connection.close)
            _distrust(connection)
            notices = _prepared(connection, path)
            on_error.pop_all()
    except UnicodeDecodeError as error:
        # SQLite quotes the schema in its message, and Python decodes the message.
        raise _DamagedError("malformed database schema, which is no text") from error
    except sqlite3.Error as error:
        if _code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise _DamagedError(str(error)) from error
        raise explained(error, path, "the review cannot be opened") from error
    return connection, notices


def _uri_without_creating(path: Path) -> str:
    """Return the URI by which SQLite opens only an existing file (https://www.sqlite.org/uri.html)."""
    uri = path.absolute().as_uri()
    if not uri.startswith("file:///"):  # the name of a Windows server, which SQLite rejects
        uri = uri.replace("file://", "file:////", 1)
    return f"{uri}?mode=rw"


def _distrust(connection: sqlite3.Connection) -> None:
    """Run nothing that the file's schema contains, and bound the size of values.

    As SQLite's documentation advises for untrusted files (https://www.sqlite.org/security.html).
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_TEXT)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the file holds plain rows, and no code that runs on access.

    Raises
    ------
    ReviewError
        For triggers, views, virtual tables, computed columns, and indexes on expressions.
    """
    acting = [
        f"{kind} {name}"
        for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master")
        if kind not in ("table", "index") or not _is_plain(sql)
    ]
    acting += [f"index {name}" for (name,) in connection.execute(_COMPUTED_INDEXES)]
    for table in ("schema_version", "verdicts", "receipts", "plans", "plan_items", "plan_verdicts"):
        rows = connection.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (table,))
        acting += [f"column {name}" for name, hidden in rows if hidden]
    if acting:
        raise ReviewError(
            f"expected a review file of plain rows, found {english_list(acting)}, which would run "
            f"code; this program writes nothing of the kind. The file was not changed: choose "
            f"another file",
            path=path,
        )


def _is_plain(sql: object) -> bool:
    """Return whether a statement of the schema makes no virtual table; indexes may have none."""
    if sql is None:
        return True
    return isinstance(sql, str) and not re.match(r"(?i)\s*CREATE\s+VIRTUAL\b", sql)


def _prepared(connection: sqlite3.Connection, path: Path) -> tuple[Finding, ...]:
    """Check a file, migrate it, and check that it can be written."""
    # First of all: the files of other programs stay untouched, whatever their state.
    _version(connection, path)
    _check_schema(connection, path)
    ((verdict,), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok":
        raise _DamagedError(verdict)
    _make_durable(connection)
    notices: list[Finding] = []
    with transaction(connection):
        version = _version(connection, path)
        if version is None:
            _execute_all(connection, _SCHEMA)
            _note_version(connection)
        elif version < SCHEMA_VERSION:
            notices.append(_migrated(connection, path, version))
        connection.execute(_LOOK_UP)
        # Fails here and not at the first verdict if the file cannot be written.
        connection.execute("UPDATE schema_version SET version = version")
    return tuple(notices)


def _version(connection: sqlite3.Connection, path: Path) -> int | None:
    """Return the version of the file's layout; None for an empty file.

    Raises
    ------
    ReviewError
        If the file is not one of this program or version.
    """
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not names:
        return None
    _check_bytes(connection, path)
    if not {"schema_version", "verdicts"} <= names:
        raise ReviewError(
            "expected a review file, found a database of another program; it was left as it is: "
            "choose another file name",
            path=path,
        )
    (version,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    if not isinstance(version, int | None):
        raise ReviewError(
            f"the review file states that its layout is {str(version)[:60]!r}, which is no "
            f"number; it was changed by another program and left as it is: restore a copy, or "
            f"begin another file",
            path=path,
        )
    if version is not None and version > SCHEMA_VERSION:
        raise ReviewError(
            f"the review file was written by a newer version of this program (layout {version}, "
            f"known up to {SCHEMA_VERSION}); it was left as it is: update the program, or begin "
            f"another file",
            path=path,
        )
    return version or 0


def _check_bytes(connection: sqlite3.Connection, path: Path) -> None:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    if pages * page_bytes > LARGEST_BYTES:
        raise ReviewError(
            f"expected a review file of up to {LARGEST_BYTES >> 20} MiB, found one of "
            f"{pages * page_bytes >> 20} MiB; it was left as it is: choose another file",
            path=path,
        )


def _migrated(connection: sqlite3.Connection, path: Path, version: int) -> Finding:
    """Migrate an older file, after making a copy of it."""
    missing = next((v for v in range(version, SCHEMA_VERSION) if v not in _MIGRATIONS), None)
    if missing is not None:
        raise ReviewError(
            f"the review file has the layout {missing}, which this version cannot convert; it "
            f"was left as it is: begin another file",
            path=path,
        )
    copy = _free_name(path, f"version-{version}")
    _copy(path, copy)
    for step in range(version, SCHEMA_VERSION):
        _execute_all(connection, _MIGRATIONS[step])
    _note_version(connection)
    return Finding(
        FindingKind.FALLBACK,
        f"the review file was of an older version and was converted; a copy of it as it was is "
        f"kept as {copy.name}",
        path=copy,
    )


def _copy(path: Path, copy: Path) -> None:
    """Copy a database with its journals, even during a transaction of another connection."""
    # With a new connection, since SQLite cannot copy for one that is in a transaction.
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        try:
            source.backup(target)
        except BaseException:
            target.close()
            copy.unlink(missing_ok=True)
            raise


def _execute_all(connection: sqlite3.Connection, statements: Sequence[str]) -> None:
    for statement in statements:
        connection.execute(statement)


def _note_version(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO schema_version VALUES (?, ?)", (SCHEMA_VERSION, stamp(now())))


def _make_durable(connection: sqlite3.Connection) -> None:
    """Have each transaction on disk when it ends.

    A rollback journal is also safe on network drives, and leaves one complete file. Files of
    earlier versions have a write-ahead log, which SQLite writes into the file here.
    """
    try:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.OperationalError as error:
        # A window of an earlier version has the file open with a write-ahead log: as safe.
        if _code(error) != sqlite3.SQLITE_BUSY:
            raise
    connection.execute("PRAGMA synchronous = EXTRA")
    # Without it, macOS leaves the data in the drive's own memory.
    connection.execute("PRAGMA fullfsync = ON")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run statements as one transaction, which is on disk at the end or did not happen."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _set_aside(path: Path, what: str) -> Finding:
    """Rename a damaged file and its journals."""
    target = _free_name(path, "corrupt")
    try:
        path.rename(target)
        for suffix in ("-wal", "-shm", "-journal"):
            journal = path.with_name(path.name + suffix)
            if journal.exists():
                journal.rename(target.with_name(target.name + suffix))
    except OSError as error:
        raise ReviewError(
            f"the review file is damaged ({what}) and cannot be set aside "
            f"({error.strerror or error}); close other windows that use it, or choose another "
            f"place",
            path=path,
            suggestion=suggested_path(path),
        ) from error
    return Finding(
        FindingKind.UNREADABLE,
        f"the review file was damaged or no review file ({what}); it was kept as {target.name}, "
        f"and a new one was begun",
        path=target,
    )


def _free_name(path: Path, why: str) -> Path:
    """Return an unused name beside a file."""
    stem = f"{path.name}.{why}-{now():%Y%m%dT%H%M%SZ}"
    number = 1
    candidate = path.with_name(stem)
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{stem}-{number}")
    return candidate


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file under a path; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _code(error: sqlite3.Error) -> int:
    # Extended codes carry the basic one in their lowest byte; the module's own errors have none.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def explained(
    error: sqlite3.Error,
    path: Path,
    failure: str,
    *,
    region: str | None = None,
    object_id: int | None = None,
) -> ReviewError:
    """Return an error of SQLite as one with a plain message.

    Parameters
    ----------
    error
        The error of SQLite.
    path
        The review file.
    failure
        What failed, as the beginning of the message.
    region, object_id
        The object concerned.
    """
    suggestion = None
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            why = "another program holds the review file; close it there, or try again in a moment"
        case sqlite3.SQLITE_FULL:
            why = "the disk is full; free some space and try again"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            suggestion = suggested_path(path)
            why = _choose_other("the review file cannot be written to", suggestion)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            why = "the review file is damaged; open the review again, which sets the file aside"
        case sqlite3.SQLITE_IOERR:
            why = f"the disk or the network does not answer as it should ({error}); try again"
        case _:
            why = f"SQLite reports '{error}'; open the review again"
    return ReviewError(
        f"{failure}: {why}",
        path=path,
        region=region,
        object_id=object_id,
        suggestion=suggestion,
    )


def _choose_other(what: str, suggestion: Path | None) -> str:
    example = f", for example {suggestion}" if suggestion else ""
    return f"{what}; choose another place for it{example}"


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Return a time as the file stores it: ISO 8601, to the microsecond."""
    return moment.isoformat(timespec="microseconds")

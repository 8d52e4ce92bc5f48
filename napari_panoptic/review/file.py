"""The SQLite file of a review: open, check, read and append changes, set aside if damaged.

The file is one table of changes: region, kind, time and a value in JSON. None is ever replaced or
deleted. This module knows the failures of the file, not the meaning of its changes.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list

REVIEW_FILE = "panoptic-review.sqlite"
"""Name of the review file beside a cohort."""

_LAYOUT = 3
"""The layout that this program writes, in the file's ``user_version``; earlier ones had tables."""

_SCHEMA = (
    """CREATE TABLE changes (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        region TEXT NOT NULL,
        kind TEXT NOT NULL,
        at TEXT NOT NULL,
        value TEXT NOT NULL)""",
    "CREATE INDEX changes_by_region ON changes (region)",
    f"PRAGMA user_version = {_LAYOUT}",
)
EARLIER_TABLES = frozenset({"schema_version", "verdicts"})
"""Tables of a review file of an earlier version."""

LARGEST_BYTES = 2**30
"""Largest review file: some millions of verdicts."""
LONGEST_TEXT = 2**26
"""Largest value in a review file, in bytes: a plan of some 400,000 items."""

# The column number of a computed value is -2.
_COMPUTED_INDEXES = """
    SELECT DISTINCT own.name
    FROM sqlite_master AS tables, pragma_index_list(tables.name) AS own,
        pragma_index_info(own.name) AS columns
    WHERE tables.type = 'table' AND (own.partial OR columns.cid = -2)"""

_COMPUTED_COLUMNS = """
    SELECT columns.name FROM sqlite_master AS tables, pragma_table_xinfo(tables.name) AS columns
    WHERE tables.type = 'table' AND columns.hidden"""
_UNREADABLE = "the review cannot be read"


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


class ReviewFile:
    """The changes in a review file, to read and to append to; nothing else changes.

    Parameters
    ----------
    path
        The file. A damaged one is set aside, and a new one begun.
    timeout_s
        Time to wait, in seconds, while another window writes.
    create
        Whether to create a missing file, with its folder if the folder above exists;
        an error if not.
    to_read
        Whether the file is only read, and never written to.

    Raises
    ------
    ReviewError
        If the file cannot be used: a place that cannot be written to, a file of another
        version or of another program (left untouched), a locked file.
    """

    def __init__(
        self, path: Path, *, timeout_s: float = 2.0, create: bool = True, to_read: bool = False
    ) -> None:
        self.path = path
        #: Files that were set aside on opening.
        self.notices: tuple[Finding, ...] = ()
        #: Number of times the file was opened: again whenever another file replaced it.
        self.times_opened = 0
        self._timeout_s = timeout_s
        #: Held while the file is read or written, and what was read from it is used.
        self.lock = threading.RLock()
        self._to_read = to_read
        self._open(create=create)

    def close(self) -> None:
        """Close the file. Nothing is lost without calling it."""
        with self.lock:
            self._connection.close()

    def read(self, statement: str, /, **values: object) -> list[Any]:
        """Return the rows of a statement.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        with self.lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise explained(error, self.path, "the verdicts cannot be read") from error

    def state(self) -> tuple[int, int]:
        """Return SQLite's number for changes by other connections, and of the newest change."""
        # In this order: a change in between makes the first number outdated, so that the
        # next call finds it.
        ((version,),) = self.read("PRAGMA data_version")
        ((newest,),) = self.read("SELECT coalesce(max(number), 0) FROM changes")
        return int(version), int(newest)

    @contextmanager
    def writing(self, failure: str, **where: Any) -> Iterator[None]:
        """Append changes as one transaction, which is on disk at the end or did not happen.

        Parameters
        ----------
        failure
            The beginning of the error's message.
        where
            Region and object that it is about.

        Raises
        ------
        ReviewError
            If nothing was written.
        """
        with self.lock:
            self._follow(failure, where)
            try:
                with transaction(self._connection):
                    yield
            except sqlite3.Error as error:
                raise explained(error, self.path, failure, **where) from error

    def append(self, region: str, kind: str, at: datetime, value: str) -> int:
        """Append a change, inside of `writing`, and return its number."""
        return int(
            self._connection.execute(
                "INSERT INTO changes (region, kind, at, value) VALUES (?, ?, ?, ?)",
                (region, kind, stamp(at), value),
            ).lastrowid
            or 0
        )

    def _open(self, *, create: bool) -> None:
        if self._to_read:
            self._connection = _opened_to_read(self.path)
        else:
            self._connection, notices = _opened(self.path, self._timeout_s, create=create)
            self.notices += notices
        self.times_opened += 1
        self._identity = file_identity(self.path)

    def _follow(self, failure: str, where: dict[str, Any]) -> None:
        """Open the file again if another one has replaced it under the path."""
        identity = file_identity(self.path)
        if identity == self._identity:
            return
        if identity is None:
            raise ReviewError(
                f"{failure}: the review file was moved or deleted while it was in use; put it "
                f"back, or open the review again",
                path=self.path,
                **where,
            )
        self._connection.close()
        try:
            self._open(create=False)
        except ReviewError as error:
            raise ReviewError(
                f"{failure}: {error.message}",
                path=self.path,
                suggestion=error.suggestion,
                **where,
            ) from error


def _opened(
    path: Path, timeout_s: float, *, create: bool
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
        Files set aside.

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
            connection = _connected(path, timeout_s, create=create)
        except _DamagedError as error:
            # Another window may have set it aside already; its new file must stay.
            if file_identity(path) == identity:
                notices += (_set_aside(path, str(error)),)
                create = True
            continue
        return connection, notices
    raise ReviewError(
        "the review file is damaged, and so is each that takes its place; check the disk, or "
        "choose another place",
        path=path,
        suggestion=suggested_path(path),
    )


def _opened_to_read(path: Path) -> sqlite3.Connection:
    """Open an existing review file without ever writing to it.

    Raises
    ------
    ReviewError
        If there is no file, it is damaged, or it is none of this program and version.
    """
    connection = opened_as_it_is(path)
    with ExitStack() as on_error:
        on_error.callback(connection.close)
        if not _is_begun(connection, path):
            raise ReviewError(f"{_UNREADABLE}: the file is empty", path=path)
        on_error.pop_all()
    return connection


def opened_as_it_is(path: Path) -> sqlite3.Connection:
    """Open a SQLite file of any layout without ever writing to it.

    Raises
    ------
    ReviewError
        If there is no file, it is damaged, or its schema would run code.
    """
    if not path.is_file():
        raise ReviewError("there is no review file; check the name", path=path)
    try:
        with ExitStack() as on_error:
            uri = _uri_without_creating(path).removesuffix("rw") + "ro"
            connection = sqlite3.connect(uri, isolation_level=None, uri=True)
            on_error.callback(connection.close)
            _distrust(connection)
            _check_bytes(connection, path)
            _check_schema(connection, path)
            ((verdict,), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
            if verdict != "ok":
                raise ReviewError(f"{_UNREADABLE}: the file is damaged ({verdict})", path=path)
            on_error.pop_all()
    except UnicodeDecodeError as error:
        raise ReviewError(f"{_UNREADABLE}: the file is damaged", path=path) from error
    except sqlite3.Error as error:
        if _code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            what = "it is no review file, or a damaged one; choose another file"
            raise ReviewError(f"{_UNREADABLE}: {what}", path=path) from error
        raise explained(error, path, _UNREADABLE) from error
    return connection


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


def _connected(path: Path, timeout_s: float, *, create: bool) -> sqlite3.Connection:
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
            _prepare(connection, path)
            on_error.pop_all()
    except UnicodeDecodeError as error:
        # SQLite quotes the schema in its message, and Python decodes the message.
        raise _DamagedError("malformed database schema, which is no text") from error
    except sqlite3.Error as error:
        if _code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise _DamagedError(str(error)) from error
        raise explained(error, path, "the review cannot be opened") from error
    return connection


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
    acting += [f"column {name}" for (name,) in connection.execute(_COMPUTED_COLUMNS)]
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


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Check a file, begin an empty one, and check that it can be written."""
    # First of all: the files of other programs stay untouched, whatever their state.
    _is_begun(connection, path)
    _check_bytes(connection, path)
    _check_schema(connection, path)
    ((verdict,), *_) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok":
        raise _DamagedError(verdict)
    _make_durable(connection)
    with transaction(connection):
        if not _is_begun(connection, path):
            for statement in _SCHEMA:
                connection.execute(statement)
        # Fails here and not at the first verdict if the file cannot be written.
        connection.execute(f"PRAGMA user_version = {_LAYOUT}")


def _is_begun(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether the file has the table of changes; an empty one has not.

    Raises
    ------
    ReviewError
        If the file is not one of this program or version.
    """
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not names:
        return False
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if names >= EARLIER_TABLES:
        raise ReviewError(
            f"the review file was written by an earlier version of this program; it was left as "
            f"it is. To continue it, rename it to {path.stem}-earlier{path.suffix} and run: "
            f"napari-panoptic import-verdicts {path.stem}-earlier{path.suffix} COHORT",
            path=path,
        )
    if "changes" not in names or layout < _LAYOUT:
        raise ReviewError(
            "expected a review file, found a database of another program; it was left as it is: "
            "choose another file name",
            path=path,
        )
    if layout > _LAYOUT:
        raise ReviewError(
            f"the review file was written by a newer version of this program (layout {layout}, "
            f"known up to {_LAYOUT}); it was left as it is: update the program, or begin "
            f"another file",
            path=path,
        )
    return True


def _check_bytes(connection: sqlite3.Connection, path: Path) -> None:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    if pages * page_bytes > LARGEST_BYTES:
        raise ReviewError(
            f"expected a review file of up to {LARGEST_BYTES >> 20} MiB, found one of "
            f"{pages * page_bytes >> 20} MiB; it was left as it is: choose another file",
            path=path,
        )


def _make_durable(connection: sqlite3.Connection) -> None:
    """Have each transaction on disk when it ends.

    A rollback journal is also safe on network drives, and leaves one complete file.
    """
    connection.execute("PRAGMA journal_mode = DELETE").fetchone()
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

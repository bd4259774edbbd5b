"""A metadata store in one SQLite file: for a broker that is a cluster of one.

The file is in WAL mode with synchronous=FULL: a transaction that was acknowledged is on the disk,
also after kill -9 or a power cut. It is locked for as long as it is open. Mirrors' passwords are in
it, so it is for the broker's own user alone.
"""

import logging
import os
import sqlite3
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from twinlog.metastore.local import LocalStore, Written
from twinlog.metastore.store import (
    ABSENT,
    ChangeBatch,
    Committed,
    Conflict,
    Delete,
    Entry,
    KeyChange,
    Listing,
    Put,
    Revision,
    StoreError,
    Unchanged,
    Write,
    prefix_end,
)

log = logging.getLogger(__name__)

FILE_NAME: Final = "metadata.db"
SCHEMA_VERSION: Final = 1
PRIVATE: Final = 0o600
APPLICATION_ID: Final = 0x54574C47  # "TWLG", in the file's header

_SCHEMA: Final = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
    "CREATE TABLE store (revision INTEGER NOT NULL)",
    "INSERT INTO store VALUES (0)",
    "CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL, revision INTEGER NOT NULL,"
    " is_leased INTEGER NOT NULL) WITHOUT ROWID",
)


def open_sqlite_store(path: Path, now_ms: Callable[[], int]) -> LocalStore:
    """Open the file, or make it; the store belongs to the running event loop."""
    table = SqliteTable(path)
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata-store")
    return LocalStore(table, executor, revision=table.revision, now_ms=now_ms)


class SqliteTable:
    """Entries in a table of a SQLite file; any thread may use it, one at a time."""

    def __init__(self, path: Path) -> None:
        """Open the file at ``path``, make it if it is absent, refuse one that is not ours."""
        self._path = path
        _keep_private(path)
        try:
            self._db = sqlite3.connect(
                path, isolation_level=None, timeout=0, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise StoreError(f"{path}: cannot be opened: {error}") from error
        try:
            self._open()
            self.revision = Revision(self._scalar("SELECT revision FROM store"))
            self._drop_leased()
        except sqlite3.Error as error:
            self._db.close()
            raise StoreError(f"{path}: {_why(error)}") from error
        except StoreError:
            self._db.close()
            raise

    def get(self, key: bytes) -> Entry | None:
        """Give the entry of ``key``."""
        row = self._db.execute(
            "SELECT value, revision FROM entries WHERE key = ?", (key,)
        ).fetchone()
        return Entry(key, row[0], Revision(row[1])) if row else None

    def list(self, prefix: bytes) -> Listing:
        """Give all entries under ``prefix`` in key order."""
        query = "SELECT key, value, revision FROM entries WHERE key >= ?"
        end = prefix_end(prefix)
        rows = (
            self._db.execute(f"{query} ORDER BY key", (prefix,))
            if end is None
            else self._db.execute(f"{query} AND key < ? ORDER BY key", (prefix, end))
        )
        entries = tuple(Entry(key, value, Revision(revision)) for key, value, revision in rows)
        return Listing(entries, self.revision)

    def transact(
        self, conditions: Sequence[Unchanged], writes: Sequence[Write], *, is_leased: bool
    ) -> Written:
        """Write all or nothing; when this returns the writes are on the disk."""
        failed = tuple(c.key for c in conditions if self._revision_of(c.key) != c.revision)
        if failed:
            return Written(Conflict(failed))
        revision = Revision(self.revision + 1)
        try:
            self._db.execute("BEGIN IMMEDIATE")
            changes = tuple(
                c for w in writes if (c := self._take(w, revision, is_leased=is_leased))
            )
            if not changes:
                self._db.execute("ROLLBACK")
                return Written(Committed(self.revision))
            self._db.execute("UPDATE store SET revision = ?", (revision,))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise StoreError(f"{self._path}: nothing was written: {_why(error)}") from error
        self.revision = revision
        return Written(Committed(revision), ChangeBatch(revision, changes))

    def close(self) -> None:
        """Close the file; SQLite folds its write-ahead log back into it."""
        self._db.close()

    def _open(self) -> None:
        """Lock the file, check that it is ours, and make its tables if it is new."""
        # Exclusive locking before WAL is entered keeps the WAL's index in our memory: no -shm
        # file, and a second process is refused instead of mixing its writes with ours.
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("BEGIN IMMEDIATE")
        version = self._scalar("PRAGMA user_version")
        owner = self._scalar("PRAGMA application_id")
        is_empty = self._scalar("SELECT count(*) FROM sqlite_master") == 0
        if is_empty and version == 0:
            for statement in _SCHEMA:
                self._db.execute(statement)
        elif owner != APPLICATION_ID:
            raise StoreError(f"{self._path}: is a SQLite file, but not twinlog's; move it away")
        elif version != SCHEMA_VERSION:
            raise StoreError(
                f"{self._path}: has schema version {version}, this twinlog knows only "
                f"{SCHEMA_VERSION}; start the twinlog version that wrote it"
            )
        self._db.execute("COMMIT")

    def _drop_leased(self) -> None:
        """Remove keys held by leases of an earlier process: no lease outlives its process here."""
        rows = self._db.execute("SELECT key FROM entries WHERE is_leased").fetchall()
        if rows:
            self.transact((), [Delete(key) for (key,) in rows], is_leased=False)

    def _take(self, write: Write, revision: Revision, *, is_leased: bool) -> KeyChange | None:
        """Carry out one write; None when it changes nothing."""
        if isinstance(write, Put):
            self._db.execute(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)",
                (write.key, write.value, revision, is_leased),
            )
            return KeyChange(write.key, write.value)
        cursor = self._db.execute("DELETE FROM entries WHERE key = ?", (write.key,))
        return KeyChange(write.key, None) if cursor.rowcount else None

    def _revision_of(self, key: bytes) -> Revision:
        row = self._db.execute("SELECT revision FROM entries WHERE key = ?", (key,)).fetchone()
        return Revision(row[0]) if row else ABSENT

    def _scalar(self, query: str) -> int:
        value = self._db.execute(query).fetchone()[0]
        assert isinstance(value, int), f"{query} gave {value!r}"
        return value


def _keep_private(path: Path) -> None:
    """Make the file, or take from others what they may do with it and with what lies beside it.

    SQLite gives its write-ahead log the permissions of the file itself.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))
    except OSError as error:
        raise StoreError(f"{path}: cannot be opened: {error.strerror}") from error
    for file in (path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))):
        if not file.exists():
            continue
        mode = stat.S_IMODE(file.stat().st_mode)
        if not mode & ~PRIVATE:
            continue
        try:
            file.chmod(PRIVATE)
        except OSError as error:
            fields = {"file": str(file), "mode": f"{mode:04o}", "why": error.strerror}
            log.warning(
                "others may read mirrors' passwords, and it cannot be changed", extra=fields
            )
            continue
        fields = {"file": str(file), "before": f"{mode:04o}", "now": f"{PRIVATE:04o}"}
        log.warning("others could read mirrors' passwords; they no longer can", extra=fields)


def _why(error: sqlite3.Error) -> str:
    """Say what went wrong and what to do."""
    if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
        return "is in use by another process; stop that broker first"
    if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
        return "is not a SQLite file; move it away or restore it from a backup"
    return f"{error} ({error.sqlite_errorname})"

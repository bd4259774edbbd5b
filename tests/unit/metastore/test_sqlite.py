import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from twinlog.metastore.sqlite import SqliteTable, open_sqlite_store
from twinlog.metastore.store import ABSENT, Put, Revision, StoreError, Unchanged


def clock() -> int:
    return 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metadata.db"


def test_entries_and_revisions_survive_closing(path: Path) -> None:
    table = SqliteTable(path)
    table.transact((), (Put(b"a", b"1"),), is_leased=False)
    table.transact((), (Put(b"b", b"2"),), is_leased=False)
    table.close()
    again = SqliteTable(path)
    assert again.revision == 2
    assert [(e.key, e.value, e.revision) for e in again.list(b"").entries] == [
        (b"a", b"1", 1),
        (b"b", b"2", 2),
    ]
    again.close()


def test_keys_of_leases_do_not_survive_the_process(path: Path) -> None:
    table = SqliteTable(path)
    table.transact((), (Put(b"held", b"1"),), is_leased=True)
    table.transact((), (Put(b"kept", b"1"),), is_leased=False)
    table.close()
    again = SqliteTable(path)
    assert [entry.key for entry in again.list(b"").entries] == [b"kept"]
    again.close()


def test_a_second_broker_is_refused_while_the_file_is_open(path: Path) -> None:
    table = SqliteTable(path)
    with pytest.raises(StoreError, match="in use by another process"):
        SqliteTable(path)
    table.close()


def test_another_schema_version_is_refused(path: Path) -> None:
    SqliteTable(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 7")
    db.close()
    with pytest.raises(StoreError, match="schema version 7, this twinlog knows only 1"):
        SqliteTable(path)


def test_a_sqlite_file_of_somebody_else_is_refused(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE songs (name TEXT)")
    db.close()
    with pytest.raises(StoreError, match="not twinlog's"):
        SqliteTable(path)


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"hello, I am not a database at all, sorry" * 100)
    with pytest.raises(StoreError, match=r"metadata\.db: is not a SQLite file"):
        SqliteTable(path)
    assert path.read_bytes().startswith(b"hello")


def test_a_folder_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"absent/metadata\.db: "):
        SqliteTable(tmp_path / "absent" / "metadata.db")


def test_a_failed_write_says_so_and_leaves_the_table_usable(path: Path) -> None:
    table = SqliteTable(path)
    table._db.execute("PRAGMA max_page_count = 8")
    with pytest.raises(StoreError, match="nothing was written"):
        table.transact((), (Put(b"small", b"1"), Put(b"big", bytes(100_000))), is_leased=False)
    assert table.get(b"small") is None
    table.transact((), (Put(b"small", b"1"),), is_leased=False)
    assert table.revision == 1
    table.close()


async def test_opening_takes_less_than_30_ms_of_the_processor(path: Path) -> None:
    best_s = 1.0
    for _ in range(20):
        began = time.process_time()
        store = open_sqlite_store(path, clock)
        best_s = min(best_s, time.process_time() - began)
        await store.close()
    assert best_s < 0.030


WRITER = """
import sys
from pathlib import Path
from twinlog.metastore.sqlite import SqliteTable
from twinlog.metastore.store import Put
table = SqliteTable(Path(sys.argv[1]))
for number in range(1_000_000):
    table.transact((), (Put(b"a%d" % number, b"x"), Put(b"b%d" % number, b"x")), is_leased=False)
    print(number, flush=True)
"""


@pytest.mark.slow
def test_after_kill_9_every_acknowledged_transaction_is_there_and_none_by_halves(
    path: Path,
) -> None:
    for lines in (1, 17, 60):
        path.unlink(missing_ok=True)
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(lines)]
            writer.kill()
            acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
        table = SqliteTable(path)
        for number in acknowledged:
            assert table.get(b"a%d" % number) is not None
        first_half, second_half = table.list(b"a").entries, table.list(b"b").entries
        assert len(first_half) == len(second_half) >= len(acknowledged)
        assert table.revision == len(first_half)
        unchanged = Unchanged(b"new", ABSENT)
        assert table.transact((unchanged,), (Put(b"new", b""),), is_leased=False).batch is not None
        assert table.revision == Revision(len(first_half) + 1)
        table.close()


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


@pytest.fixture
def any_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("any_umask")
def test_what_it_keeps_is_for_its_own_user_alone(path: Path) -> None:
    table = SqliteTable(path)
    table.transact((), (Put(b"a", b"1"),), is_leased=False)
    files = list(path.parent.iterdir())
    assert {file.name for file in files} >= {"metadata.db", "metadata.db-wal"}
    assert {mode_of(file) for file in files} == {0o600}
    table.close()


@pytest.mark.usefixtures("any_umask")
def test_a_file_of_before_that_others_could_read_is_closed_to_them_with_a_warning(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    SqliteTable(path).close()
    beside = path.with_name("metadata.db-wal")
    beside.touch()
    path.chmod(0o644)
    SqliteTable(path).close()
    assert mode_of(path) == 0o600
    assert not beside.exists() or mode_of(beside) == 0o600
    told = [vars(record) for record in caplog.records]
    assert [(each["file"], each["before"]) for each in told] == [
        (str(path), "0644"),
        (str(beside), "0666"),
    ]
    caplog.clear()
    SqliteTable(path).close()
    assert not caplog.records

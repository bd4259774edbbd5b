import asyncio
import socket
from pathlib import Path

import pytest

from support.batches import batch
from support.brokers import local_broker
from twinlog.metastore.sqlite import SqliteTable
from twinlog.metastore.store import StoreError
from twinlog.model.errors import SettingsError


async def test_an_empty_folder_is_taken_into_use_and_one_of_another_cluster_refused(
    tmp_path: Path,
) -> None:
    async with local_broker(tmp_path, {"cluster.id": "mine"}):
        pass
    assert "cluster.id=mine" in (tmp_path / "data" / "meta.properties").read_text()
    with pytest.raises(SettingsError, match="belongs to cluster mine"):
        async with local_broker(tmp_path, {"cluster.id": "another"}):
            pass


async def test_a_folder_of_another_broker_is_refused(tmp_path: Path) -> None:
    async with local_broker(tmp_path, {"node.id": "1"}):
        pass
    with pytest.raises(SettingsError, match=r"node\.id"):
        async with local_broker(tmp_path, {"node.id": "2"}):
            pass


async def test_two_brokers_cannot_share_a_folder(tmp_path: Path) -> None:
    async with local_broker(tmp_path):
        with pytest.raises(SettingsError, match="used by another broker"):
            async with local_broker(tmp_path):
                pass


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match=f"127.0.0.1:{port}"):
            async with local_broker(tmp_path, {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}):
                pass


async def test_a_store_that_is_full_at_the_start_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("metadata.db: nothing was written: disk is full")

    monkeypatch.setattr(SqliteTable, "transact", fail)
    with pytest.raises(SettingsError, match=r"metadata\.db: nothing was written: disk is full"):
        async with local_broker(tmp_path):
            pass


async def test_records_and_their_end_survive_a_restart(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("t")
        await broker.produce("t", batch(5))
    async with local_broker(tmp_path) as broker:
        assert (await broker.produce("t", batch(1))).base_offset == 5


async def test_an_orderly_stop_lets_a_waiting_reader_go(tmp_path: Path) -> None:
    async with asyncio.timeout(60), local_broker(tmp_path) as broker:
        await broker.make_topic("t")
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()

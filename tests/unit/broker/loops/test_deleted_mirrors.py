"""What is known of a deleted mirror goes, also when that could not be written at once."""

import asyncio
from pathlib import Path

import pytest

from support.asking import delete
from support.brokers import LocalBroker, local_broker
from support.mirrored_pair import QUICK, Pair, log_of, mirrored_pair, until
from twinlog.mirroring.records import MirrorPartition
from twinlog.mirroring.shard import MirrorShard
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.wire.messages.mirrors import DELETE_CLUSTER_MIRROR, DeleteClusterMirrorRequest
from twinlog.wire.records.batch import iter_headers
from twinlog.wire.records.records import records_of

pytestmark = pytest.mark.slow


def mirrors_known(broker: LocalBroker) -> set[str]:
    """Give the mirrors of which ``__mirror_state`` knows something."""
    return {of.mirror for of in partitions_known(broker)}


def partitions_known(broker: LocalBroker) -> set[MirrorPartition]:
    """Read ``__mirror_state`` as its coordinator would; give the partitions that it knows."""
    known: set[MirrorPartition] = set()
    for index in range(int(QUICK["mirror.state.topic.num.partitions"])):
        log = log_of(broker, TopicPartition(TopicName("__mirror_state"), index))
        shard = MirrorShard()
        for path in sorted(Path(log.folder).glob("*.log")):
            stored = memoryview(path.read_bytes())
            for position, header in iter_headers(stored):
                for record in records_of(stored, position, header):
                    assert record.key is not None
                    shard.replay(bytes(record.key), record.value)
        known |= shard._everything().keys()
    return known


async def test_states_that_could_not_be_deleted_with_their_mirror_go_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    def refuse(*_: object) -> None:
        tried.set()
        raise ApiError(ErrorCode.NOT_COORDINATOR, "its coordinator has just moved")

    folder = tmp_path / "destination"
    async with local_broker(tmp_path / "source", QUICK) as source:
        async with local_broker(folder, QUICK) as here:
            pair = Pair(source, here)
            await pair.make_topic("t")
            await pair.create()
            await pair.start("t")
            await pair.until_state("MIRRORING", "t")
            await pair.stop("t")
            await pair.until_state("STOPPED", "t")
            with monkeypatch.context() as patched:
                patched.setattr(MirrorShard, "delete_mirror", refuse)
                gone = await here.ask(
                    DELETE_CLUSTER_MIRROR, DeleteClusterMirrorRequest(mirror_name="m")
                )
                assert not gone.error_code
                await asyncio.wait_for(tried.wait(), 60)
            assert mirrors_known(here) == {"m"}
        async with local_broker(folder, QUICK) as here:

            async def is_forgotten() -> bool:
                return not mirrors_known(here)

            await until(is_forgotten)


async def stopped(pair: Pair, *topics: str) -> None:
    """Mirror topics until they are stopped."""
    for topic in topics:
        await pair.make_topic(topic)
    await pair.create()
    await pair.start(*topics)
    for topic in topics:
        await pair.until_state("MIRRORING", topic)
    await pair.stop(*topics)
    for topic in topics:
        await pair.until_state("STOPPED", topic)


async def until_one_is_known(broker: LocalBroker) -> None:
    async def is_so() -> bool:
        return len(partitions_known(broker)) == 1

    await until(is_so)


async def test_the_states_of_a_topic_go_with_it_though_its_mirror_stays(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await stopped(pair, "gone", "kept")
        await delete(pair.destination, "gone")
        await until_one_is_known(pair.destination)
        assert (await pair.describe("kept")).state_value == "STOPPED"


async def test_states_that_could_not_be_deleted_with_their_topic_go_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    def refuse(*_: object) -> None:
        tried.set()
        raise ApiError(ErrorCode.NOT_COORDINATOR, "its coordinator has just moved")

    folder = tmp_path / "destination"
    async with local_broker(tmp_path / "source", QUICK) as source:
        async with local_broker(folder, QUICK) as here:
            await stopped(Pair(source, here), "gone", "kept")
            with monkeypatch.context() as patched:
                patched.setattr(MirrorShard, "delete_topics", refuse)
                await delete(here, "gone")
                await asyncio.wait_for(tried.wait(), 60)
            assert len(partitions_known(here)) == 2
        async with local_broker(folder, QUICK) as here:
            await until_one_is_known(here)

"""What is known of a deleted mirror goes, also when that could not be written at once."""

import asyncio
from pathlib import Path

import pytest

from support.brokers import LocalBroker, local_broker
from support.mirrored_pair import QUICK, Pair, log_of, until
from twinlog.mirroring.shard import MirrorShard
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.wire.messages.mirrors import DELETE_CLUSTER_MIRROR, DeleteClusterMirrorRequest
from twinlog.wire.records.batch import iter_headers
from twinlog.wire.records.records import records_of

pytestmark = pytest.mark.slow


def mirrors_known(broker: LocalBroker) -> set[str]:
    """Read ``__mirror_state`` as its coordinator would; give the mirrors that it knows."""
    known: set[str] = set()
    for index in range(int(QUICK["mirror.state.topic.num.partitions"])):
        log = log_of(broker, TopicPartition(TopicName("__mirror_state"), index))
        shard = MirrorShard()
        for path in sorted(Path(log.folder).glob("*.log")):
            stored = memoryview(path.read_bytes())
            for position, header in iter_headers(stored):
                for record in records_of(stored, position, header):
                    assert record.key is not None
                    shard.replay(bytes(record.key), record.value)
        known |= {of.mirror for of in shard._everything()}
    return known


async def test_states_that_could_not_be_deleted_with_their_mirror_go_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
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
                await asyncio.sleep(0.1)  # who could delete it by now has tried
            assert mirrors_known(here) == {"m"}
        async with local_broker(folder, QUICK) as here:

            async def is_forgotten() -> bool:
                return not mirrors_known(here)

            await until(is_forgotten)

"""A source's topic that is deleted and made again is another topic: nothing of it comes here."""

from pathlib import Path

import pytest

from support.committing import commit, until_committed
from support.mirrored_pair import Pair, mirrored_pair
from twinlog.wire.messages.topics import DELETE_TOPICS, DeleteTopicsRequest, TopicToDelete

pytestmark = pytest.mark.slow
OFTEN = {"mirror.metadata.refresh.interval.ms": "50"}
NEVER = {"mirror.metadata.refresh.interval.ms": "0"}


async def made_again(pair: Pair, retention_ms: str = "3333") -> None:
    gone = DeleteTopicsRequest(topics=(TopicToDelete(name="t"),), timeout_ms=60_000)
    await pair.source.ask(DELETE_TOPICS, gone)
    await pair.make_topic("t", retention_ms=retention_ms)
    await pair.produce("t", 2)


async def test_its_settings_are_not_those_of_the_copy(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path, OFTEN) as pair:
        await pair.make_topic("t", retention_ms="1111")
        await pair.create()
        await pair.start("t", "later.*")
        await made_again(pair, retention_ms="2222")
        await pair.until_state("FAILED", "t")
        for topic in ("later1", "later2"):  # the second: by a look after the one that had the first
            await pair.make_topic(topic)
            await pair.until_level(topic)
        assert await pair.settings_here("t") == {"retention.ms": "1111"}


@pytest.mark.parametrize("looks", [OFTEN, NEVER], ids=["failed", "not yet seen"])
async def test_its_groups_offsets_are_not_those_of_the_copy(
    tmp_path: Path, looks: dict[str, str]
) -> None:
    async with mirrored_pair(tmp_path, looks) as pair:
        for topic in ("t", "u"):
            await pair.make_topic(topic)
            await pair.produce(topic, 3)
        await pair.create()
        await pair.start("t", "u")
        for topic in ("t", "u"):
            await pair.until_level(topic)
        await commit(pair.source, "g", t=6, u=4)
        await until_committed(pair.destination, "g", t=6, u=4)
        await made_again(pair)
        if looks is OFTEN:
            await pair.until_state("FAILED", "t")
        await commit(pair.source, "g", t=2, u=5)
        await until_committed(pair.destination, "g", t=6, u=5)

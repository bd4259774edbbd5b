"""Records that the source deletes before they come are a gap: passed and told, or refused."""

import json
from pathlib import Path
from typing import Any

from support.commands import Ran
from support.mirrored_pair import Pair, log_of, mirrored_pair, until
from support.pair_commands import (
    command,
    described,
    set_broker_config,
    set_config,
    set_mirror_config,
    until_held,
    until_range,
    verified,
)
from twinlog.cluster.configs import ResourceKind
from twinlog.model.ids import TopicName, TopicPartition
from twinlog.wire.messages.topics import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

T = TopicPartition(TopicName("t"), 0)


async def overtaken(pair: Pair, policy: str) -> tuple[int, int, int]:
    """Hold a mirror, and let the source delete what has not come; give the gap, and the end."""
    for topic in ("t", "witness"):
        await pair.make_topic(topic)
    await pair.produce("t", 5)
    await pair.create(mirror_gap_policy=policy)
    await pair.start("t", "witness")
    await until_range(pair.destination, ("t", 0), 0, 10)
    await hold(pair, rate=0)
    await until_held(pair, "t", "witness")
    await pair.produce("t", 5)
    first, end = log_of(pair.destination, T).end, log_of(pair.source, T).end
    partition = DeleteRecordsPartition(partition_index=0, offset=first + 4)
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name="t", partitions=(partition,)),), timeout_ms=60_000
    )
    answer = await pair.source.ask(DELETE_RECORDS, request)
    assert not answer.topics[0].partitions[0].error_code, answer
    await hold(pair, rate=1 << 60)
    return first, first + 4, end


async def hold(pair: Pair, *, rate: int) -> None:
    """Let the mirror fetch at that rate, and see that it does."""
    throttled = "mirror.replication.throttled.replicas"
    await set_config(pair, ResourceKind.TOPIC, "t", throttled, "*")
    await set_broker_config(pair, "mirror.replication.throttled.rate", str(rate))


async def planned(pair: Pair) -> Ran:
    return await command(pair.destination, "--stop", "--plan", "--topics", "t")


async def losses(pair: Pair) -> list[dict[str, Any]]:
    rows = await described(pair.destination)
    return [dict(loss) for loss in rows["t", 0]["losses"] if loss["kind"] == "gap"]


async def test_a_gap_is_passed_and_told_by_describe_verify_and_plan(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        first, start, end = await overtaken(pair, "continue")
        await until_range(pair.destination, ("t", 0), start, end)
        (gap,) = await losses(pair)
        assert (gap["firstOffset"], gap["endOffset"]) == (first, start)
        code, found = await verified(pair.destination, "--topics", "t")
        assert (code, found["result"], found["from"]) == (0, "EQUAL", start), found
        assert [(each["firstOffset"], each["endOffset"]) for each in found["gaps"]] == [
            (first, start)
        ]
        line = (
            f"t-0 records {first} to {start - 1} never came, the source had deleted them before: "
        )
        ran = await command(pair.destination, "--verify")
        assert line in ran.out, ran.out
        ran = await planned(pair)
        assert line in ran.out, ran.out
        assert ran.code == 0, ran


async def test_a_gap_is_refused_and_the_operator_is_told_how_to_go_on_without_the_records(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        first, start, end = await overtaken(pair, "fail")
        lost = f"records {first} to {start - 1} are lost"
        await pair.until_failed("t", lost, "set it to continue", "--recover")
        await until_range(pair.destination, ("t", 0), 0, first)
        assert await losses(pair) == []
        await set_mirror_config(pair, "mirror.gap.policy", "continue")

        async def has_recovered() -> bool:
            ran = await command(pair.destination, "--recover", "--topics", "t")
            assert ran.code == 0, ran.err
            return (await pair.describe("t")).state_value == "MIRRORING"

        await until(has_recovered)
        await until_range(pair.destination, ("t", 0), start, end)
        (gap,) = await losses(pair)
        assert (gap["firstOffset"], gap["endOffset"]) == (first, start)
        code, found = await verified(pair.destination, "--topics", "t")
        assert (code, found["result"]) == (0, "EQUAL"), json.dumps(found)

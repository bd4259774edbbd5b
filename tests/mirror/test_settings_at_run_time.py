"""What an operator alters of a mirror at work reaches every partition, and leaves none behind."""

from pathlib import Path

import pytest

from support.kafka_cluster import KafkaCluster
from support.mirror import Mirror, producing, twinlog_command
from support.mirrored_pair import Pair, log_of, mirrored_pair, until
from support.pair_commands import set_broker_config, set_mirror_config
from support.twinlog_process import TwinlogProcess
from twinlog.model.ids import TopicName, TopicPartition

PARTITIONS = 8


async def mirrored(pair: Pair) -> None:
    await pair.make_topic("t", PARTITIONS)
    await pair.create(request_timeout_ms="60000")
    await pair.start("t")
    await more_comes(pair)


async def more_comes(pair: Pair) -> None:
    """Write to every partition and see that it comes, in state MIRRORING."""
    for partition in range(PARTITIONS):
        await pair.produce("t", 2, partition=partition)
    for partition in range(PARTITIONS):
        await pair.until_level("t", partition)
        await pair.until_state("MIRRORING", "t", partition)
    for partition in range(PARTITIONS):
        assert pair.bytes_of(pair.source, "t", partition) == pair.bytes_of(
            pair.destination, "t", partition
        )


def state_records(pair: Pair) -> int:
    """Count what was ever written to __mirror_state."""
    logs = [
        log_of(pair.destination, TopicPartition(TopicName("__mirror_state"), index))
        for index in range(2)
    ]
    return sum(log.end for log in logs if log is not None)


@pytest.mark.parametrize(
    ("key", "value", "records_max"),
    [
        ("fetch.max.bytes", "5000", PARTITIONS),
        ("request.timeout.ms", "45000", PARTITIONS),
        ("fetch.wait.max.ms", "5", PARTITIONS),
        ("mirror.gap.policy", "fail", 0),
        ("mirror.start.offset.spec", "latest", 0),
        ("topics.include", "t,u", 0),
    ],
)
async def test_every_partition_goes_on_after_another_value_and_few_states_are_written(
    tmp_path: Path, key: str, value: str, records_max: int
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirrored(pair)
        before = state_records(pair)
        await set_mirror_config(pair, key, value)
        await more_comes(pair)
        assert state_records(pair) - before <= records_max


async def test_another_address_of_the_same_source_is_followed(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirrored(pair)
        before = state_records(pair)
        await set_mirror_config(pair, "bootstrap.servers", f"localhost:{pair.source.address.port}")
        await more_comes(pair)
        assert state_records(pair) - before <= PARTITIONS


async def test_a_wrong_address_stops_nothing_for_good(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirrored(pair)
        right = str(pair.source.address)
        await set_mirror_config(pair, "bootstrap.servers", "127.0.0.1:1")

        async def is_told() -> bool:
            return "127.0.0.1:1" in ((await pair.describe("t")).error_message or "")

        await until(is_told)
        for partition in range(PARTITIONS):
            assert (await pair.describe("t", partition)).state_value == "MIRRORING"
            await pair.produce("t", 1, partition=partition)
        await set_mirror_config(pair, "bootstrap.servers", right)
        await more_comes(pair)


async def test_settings_altered_one_after_the_other_while_records_come_lose_none(
    tmp_path: Path,
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirrored(pair)
        for number in range(12):
            await set_mirror_config(pair, "fetch.max.bytes", str(3_000 + number))
            await pair.produce("t", 1, partition=number % PARTITIONS)
            if number % 3 == 0:
                await set_mirror_config(
                    pair, "mirror.gap.policy", "fail" if number % 2 else "continue"
                )
        await more_comes(pair)


async def test_the_brokers_own_settings_for_mirrors_count_at_once(tmp_path: Path) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await mirrored(pair)
        for key, value in (
            ("mirror.num.replica.fetchers", "3"),
            ("mirror.failed.retry.max.attempts", "7"),
            ("mirror.metadata.refresh.interval.ms", "50"),
        ):
            await set_broker_config(pair, key, value)
        await more_comes(pair)
        await set_mirror_config(pair, "topics.include", "t,u")
        await pair.make_topic("u")
        await pair.until_state("MIRRORING", "u")


@pytest.mark.kafka
@pytest.mark.cluster
@pytest.mark.slow
def test_a_mirror_of_kafka_goes_over_to_another_broker_of_it_and_back_from_nowhere(
    trio: KafkaCluster, twinlog: TwinlogProcess, fresh: str
) -> None:
    partitions = [(fresh, number) for number in range(6)]
    trio.create_topic(fresh, partitions=6)
    mirror = Mirror(twinlog, trio, "over")
    mirror.create(bootstrap_servers=trio.brokers[1].bootstrap, request_timeout_ms="60000")
    mirror.start([fresh])
    with producing(trio, [fresh]):
        mirror.await_more(partitions)
        for key, value in (
            ("bootstrap.servers", trio.brokers[3].bootstrap),
            ("fetch.max.bytes", "200000"),
            ("bootstrap.servers", "127.0.0.1:1"),
            ("bootstrap.servers", trio.brokers[2].bootstrap),
            ("request.timeout.ms", "45000"),
            ("mirror.gap.policy", "fail"),
        ):
            what = ("--entity-type", "cluster-mirrors", "--entity-name", mirror.name)
            at = ("configs", "--bootstrap-server", twinlog.bootstrap, *what)
            done = twinlog_command(*at, "--alter", "--add-config", f"{key}={value}")
            assert done.exit_code == 0, done.stderr
            if value != "127.0.0.1:1":
                mirror.await_more(partitions)
    mirror.await_caught_up(partitions)
    mirror.await_states(partitions, "MIRRORING")
    mirror.assert_equal(partitions)

"""A source that gives little, late, or no longer what it had: nothing is lost in silence."""

import json
import shutil
import time
from pathlib import Path
from typing import Final

import pytest

from support.cluster_admin import create_topic, offsets_of
from support.java_tools import main_class
from support.jvm import run_tool
from support.kafka_node import KafkaNode
from support.mirror import Mirror, Partition, producing
from support.proxied_kafka import ProxiedKafka
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

QUOTA_BYTES_PER_S: Final = 150_000


def _produce(node: KafkaNode | TwinlogProcess, of: Partition, count: int) -> None:
    """Write records of 1 KB that cannot be made smaller, in batches of about 50."""
    producer = producer_of(node)
    for number in range(count):
        producer.produce(of[0], number.to_bytes(4, "big") * 250, partition=of[1])
        if number % 50 == 49:
            flush(producer)
    flush(producer)


def test_a_source_s_quota_slows_a_mirror_down_and_starves_no_partition(
    kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    partitions = [(fresh, 0), (fresh, 1), (fresh, 2)]
    kafka_4.create_topic(fresh, partitions=3)
    for of in partitions:
        _produce(kafka_4, of, 500)
    # A quota is the client id's, and a mirror's fetchers are named after it.
    run_tool(
        kafka_4.version,
        main_class(kafka_4.version, "ConfigCommand"),
        *("--bootstrap-server", kafka_4.bootstrap, "--alter"),
        *("--add-config", f"consumer_byte_rate={QUOTA_BYTES_PER_S}"),
        *("--entity-type", "clients", "--entity-name", "mirror-fetcher-0-thrifty"),
    )
    mirror = Mirror(twinlog, kafka_4, "thrifty")
    mirror.create(fetch_response_max_bytes="100000", fetch_max_bytes="60000")
    begun_s = time.monotonic()
    mirror.start([fresh])
    wait_until(lambda: all(offsets_of(twinlog, *of)[1] > 0 for of in partitions), "all are begun")
    mirror.await_caught_up(partitions)
    # 1.5 MB, less what a quota allows at once.
    assert time.monotonic() - begun_s > 2.0
    mirror.assert_equal(partitions)
    mirror.await_states(partitions, "MIRRORING")


@pytest.mark.parametrize("cut_at_bytes", [0, 70_000], ids=["slow", "slow and breaking"])
def test_a_bad_line_loses_and_repeats_nothing(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str, cut_at_bytes: int
) -> None:
    partitions = [(fresh, 0), (fresh, 1)]
    proxied.node.create_topic(fresh, partitions=2)
    for of in partitions:
        _produce(proxied.node, of, 300)
    # Longer than a round trip takes here, and shorter than an answer of the default size would.
    proxied.proxy.limp(bytes_per_s=400_000, delay_s=0.08, cut_at_bytes=cut_at_bytes)
    mirror = Mirror(twinlog, proxied.node, "far-away")
    mirror.create(
        bootstrap_servers=proxied.proxy.bootstrap,
        fetch_response_max_bytes="60000",
        fetch_max_bytes="30000",
        fetch_backoff_ms="200",
    )
    mirror.start([fresh])
    with producing(proxied.node, [fresh]):
        mirror.await_more(partitions)
        mirror.await_more(partitions)
    mirror.await_caught_up(partitions, timeout_s=120)
    mirror.assert_equal(partitions)
    mirror.await_states(partitions, "MIRRORING")


def test_retention_that_overtakes_a_paused_mirror_is_a_gap_with_its_range(
    kafka_4: KafkaNode, twinlog: TwinlogProcess, fresh: str
) -> None:
    of = (fresh, 0)
    small = {"segment.bytes": str(1 << 20), "retention.bytes": "-1"}
    kafka_4.create_topic(fresh, config=small)
    _produce(kafka_4, of, 200)
    mirror = Mirror(twinlog, kafka_4, "overtaken")
    mirror.create()
    mirror.start([fresh])
    mirror.await_caught_up([of])
    mirror.run("--pause", "--mirror", "overtaken", "--topics", fresh)
    mirror.await_states([of], "PAUSED")
    _produce(kafka_4, of, 4_000)
    run_tool(
        kafka_4.version,
        main_class(kafka_4.version, "ConfigCommand"),
        *("--bootstrap-server", kafka_4.bootstrap, "--alter"),
        *("--add-config", f"retention.bytes={1 << 20}"),
        *("--entity-type", "topics", "--entity-name", fresh),
    )
    wait_until(
        lambda: offsets_of(kafka_4, *of)[0] > 200,
        lambda: f"retention passes offset 200, now {offsets_of(kafka_4, *of)}",
    )
    mirror.run("--resume", "--mirror", "overtaken", "--topics", fresh)
    mirror.await_caught_up([of])
    mirror.assert_equal([of])
    (row,) = mirror.describe()
    losses = row["losses"]
    assert isinstance(losses, list)
    (gap,) = [loss for loss in losses if loss["kind"] == "gap"]
    assert gap["firstOffset"] == 200
    # Retention may go on deleting after the gap was found; what it deletes then was mirrored.
    assert 200 < gap["endOffset"] <= offsets_of(kafka_4, *of)[0]
    assert row["state"] == "MIRRORING"


def test_another_cluster_at_the_source_s_address_is_never_mixed_with_it(
    tmp_path: Path, watchful: TwinlogProcess, fresh: str
) -> None:
    of = (fresh, 0)
    source = TwinlogProcess(tmp_path / "source")
    source.start()
    try:
        create_topic(source, fresh)
        _produce(source, of, 100)
        mirror = Mirror(watchful, source, "steadfast")
        mirror.create()
        mirror.start([fresh])
        mirror.await_caught_up([of])
        source.stop()
        aside = tmp_path / "aside"
        shutil.move(source.log_folder, aside)
        source.start()
        create_topic(source, fresh)
        _produce(source, of, 300)
        mirror.await_row(of, "FAILED", "nothing of it is taken")
        assert offsets_of(watchful, *of) == (0, 100)
        # The one it is of comes back: the operator says that all is well again.
        source.stop()
        shutil.rmtree(source.log_folder)
        shutil.move(aside, source.log_folder)
        source.start()
        _produce(source, of, 50)
        mirror.run("--recover", "--mirror", "steadfast", "--topics", fresh)
        mirror.await_caught_up([of])
        mirror.assert_equal([of])
    finally:
        source.stop()


def test_a_source_that_is_gone_for_long_is_told_as_it_was_and_its_age_grows(
    proxied: ProxiedKafka, twinlog: TwinlogProcess, fresh: str
) -> None:
    of = (fresh, 0)
    proxied.node.create_topic(fresh)
    _produce(proxied.node, of, 50)
    mirror = Mirror(twinlog, proxied.node, "in-the-dark")
    mirror.create(bootstrap_servers=proxied.proxy.bootstrap)
    mirror.start([fresh])
    mirror.await_caught_up([of])
    proxied.proxy.cut()
    seen_ms: list[int] = []

    def age_grows() -> bool:
        (row,) = mirror.describe()
        assert row["state"] == "MIRRORING", json.dumps(row)
        age_ms = row["lagMs"]
        if isinstance(age_ms, int) and (not seen_ms or age_ms > seen_ms[-1]):
            seen_ms.append(age_ms)
        return len(seen_ms) >= 4 and seen_ms[-1] > 5_000

    wait_until(age_grows, lambda: f"the age grows: {seen_ms}")
    _produce(proxied.node, of, 50)
    proxied.proxy.heal()
    mirror.await_caught_up([of])
    mirror.assert_equal([of])

"""Small steps of tests with more than two clusters: brokers, records, and what became of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from support.cluster_admin import Broker
from support.mirror import Mirror, Partition, twinlog_command
from support.source_data import flush, producer_of
from support.twinlog_process import TwinlogProcess

ULE_SETTING: Final = "mirror.support.unclean.leader.election"
_QUICK: Final = {
    "mirror.metadata.refresh.interval.ms": "500",
    "mirror.failed.retry.initial.backoff.ms": "50",
    "mirror.failed.retry.max.backoff.ms": "1000",
}


@contextmanager
def twinlogs(folder: Path, count: int) -> Iterator[list[TwinlogProcess]]:
    """Run that many twinlogs, each a cluster of its own."""
    brokers = [
        TwinlogProcess(folder / f"twinlog-{number}", node_id=number, settings=_QUICK)
        for number in range(1, count + 1)
    ]
    try:
        for broker in brokers:
            broker.start()
        yield list(brokers)
    finally:
        for broker in brokers:
            broker.stop()


def write(broker: Broker, of: Partition, word: str, count: int = 3) -> list[bytes]:
    """Write ``count`` batches of three records with an idempotent producer; give the values."""
    producer = producer_of(broker, enable_idempotence="true", compression_type="lz4")
    values = []
    for number in range(count):
        for step in range(3):
            values.append(f"{word} {number} {step}".encode())
            producer.produce(of[0], values[-1], key=word, partition=of[1])
        flush(producer)
    return values


def mirror_started(
    destination: TwinlogProcess,
    source: Any,
    name: str,
    topics: Sequence[str],
    **settings: str,
) -> Mirror:
    """Create a mirror and start topics."""
    mirror = Mirror(destination, source, name)
    settings.setdefault("groups_sync_interval_ms", "200")
    mirror.create(**settings)
    mirror.start(topics)
    return mirror


def stop_all(mirror: Mirror, of: Sequence[Partition]) -> None:
    """Stop the topics and wait until they are writable."""
    mirror.stop(sorted({topic for topic, _ in of}))
    mirror.await_states(of, "STOPPED")


def level(mirror: Mirror, of: Sequence[Partition]) -> None:
    """Wait until all of it is mirrored, and compare the files."""
    mirror.await_states(of, "MIRRORING")
    mirror.await_caught_up(of)
    mirror.assert_equal(of)


def row_of(mirror: Mirror, of: Partition) -> dict[str, Any]:
    """Give what is told of one partition."""
    (row,) = (each for each in mirror.describe() if (each["topic"], each["partition"]) == of)
    return row


def losses_of(mirror: Mirror, of: Partition) -> list[tuple[str, int, int]]:
    """Give kind, first and end offset of what a partition lost."""
    return [
        (loss["kind"], loss["firstOffset"], loss["endOffset"])
        for loss in row_of(mirror, of)["losses"]
    ]


def allow_unclean(broker: Broker, topic: str) -> None:
    """Let a mirrored topic follow its source over an unclean election."""
    where = ("configs", "--bootstrap-server", broker.bootstrap, "--alter", "--topic", topic)
    done = twinlog_command(*where, "--add-config", f"{ULE_SETTING}=true")
    assert done.exit_code == 0, done.stderr

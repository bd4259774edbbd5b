"""Proves that a mirror has what its source has: by bytes, and by key where that is compacted."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from support.cluster_admin import Broker, until_known
from support.kafka_cluster import KafkaCluster, Partition
from support.log_bytes import Batch, batches_of
from support.mirror import Mirror
from support.waiting import wait_until
from twinlog.wire.records.batch import iter_headers
from twinlog.wire.records.records import records_of

# A cleaner puts its new segment in place a moment before it says how far it came.
_CLEANER_S: Final = 60.0

Values = dict[bytes | None, tuple[int, bytes | None]]


class StormyProof:
    """Compares a source, at rest and whole, with its mirror."""

    def __init__(self, source: KafkaCluster, mirror: Mirror) -> None:
        self.equal_bytes = 0
        self.equal_batches = 0
        self.keys_compared = 0
        self._source: Final = source
        self._mirror: Final = mirror
        self._cleaned: Final[dict[Partition, int]] = {}

    def await_level(self, partitions: Sequence[Partition], recover: Callable[[], object]) -> None:
        """Return when the mirror ends where the source ends, in every partition.

        What fails meanwhile, as an operator was to decide, is recovered.
        """

        def behind() -> dict[Partition, tuple[int, int]]:
            theirs = ends_of(self._source, partitions)
            ours = ends_of(self._mirror.twinlog, partitions)
            return {of: (theirs[of], ours[of]) for of in partitions if theirs[of] != ours[of]}

        def told() -> str:
            return f"ends there and here: {behind()}; {self._amiss()}"

        wait_until(lambda: not recover() and not behind(), told, timeout_s=180.0)

    def _amiss(self) -> list[object]:
        return [
            (row["topic"], row["partition"], row["state"], row["errorMessage"])
            for row in self._mirror.describe()
            if row["state"] != "MIRRORING" or row["errorMessage"]
        ]

    def compare(self, partitions: Iterable[Partition]) -> None:
        """Fail unless the logs are the same, byte for byte."""
        for found in self._mirror.assert_equal(partitions):
            self.equal_bytes += found.equal_bytes
            self.equal_batches += found.equal_batches

    def compare_compacted(self, partitions: Iterable[Partition]) -> None:
        """Fail unless all that no cleaner has seen is the same by bytes, and the rest by key."""
        for of in partitions:
            theirs = list(batches_of(self._source.partition_folder(*of)))
            ours = list(batches_of(self._mirror.twinlog.partition_folder(*of)))
            cleaned = self._same_from(of, theirs, ours)
            tail = [batch for batch in ours if batch.base_offset >= cleaned]
            self.equal_batches += len(tail)
            self.equal_bytes += sum(len(batch.content) for batch in tail)
            there, here = latest(theirs), latest(ours)
            assert _living(there) == _living(here), f"{of} has other values than its source"
            self.keys_compared += len(there)

    def _same_from(self, of: Partition, theirs: list[Batch], ours: list[Batch]) -> int:
        """Give how far a cleaner says it came; fail unless all from there on is the same."""
        deadline = time.monotonic() + _CLEANER_S
        while True:
            cleaned = self._cleaned[of] = max(self._cleaned.get(of, 0), self._cleaned_up_to(of))
            try:
                _assert_same_from(of, cleaned, theirs, ours)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return cleaned

    def _cleaned_up_to(self, of: Partition) -> int:
        """How far the cleaner of any broker has come."""
        found = 0
        for broker in self._source.brokers.values():
            checkpoint = broker.log_folder / "cleaner-offset-checkpoint"
            for line in checkpoint.read_text().splitlines() if checkpoint.exists() else ():
                if line.startswith(f"{of[0]} {of[1]} "):
                    found = max(found, int(line.rpartition(" ")[2]))
        return found


def ends_of(broker: Broker, partitions: Sequence[Partition]) -> dict[Partition, int]:
    """Give the high watermarks of many partitions at once."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 2})

    def ask() -> dict[Partition, int]:
        asked = admin.list_offsets({TopicPartition(*of): OffsetSpec.latest() for of in partitions})
        return {(of.topic, of.partition): found.result(60).offset for of, found in asked.items()}

    return until_known(ask)


def latest(batches: Iterable[Batch]) -> Values:
    """Give the last record of each key, with its offset."""
    found: Values = {}
    for batch in batches:
        for position, header in iter_headers(batch.content):
            if not header.is_control:
                for one in records_of(batch.content, position, header):
                    key = None if one.key is None else bytes(one.key)
                    found[key] = (one.offset, None if one.value is None else bytes(one.value))
    return found


def _living(values: Values) -> Values:
    """Leave out what was deleted: a cleaner does so too, in its own time."""
    return {key: value for key, value in values.items() if value[1] is not None}


def _assert_same_from(
    of: Partition, start: int, theirs: Iterable[Batch], ours: Iterable[Batch]
) -> None:
    there = [batch for batch in theirs if batch.base_offset >= start]
    here = [batch for batch in ours if batch.base_offset >= start]
    for one, other in zip(there, here, strict=False):
        assert one.content == other.content, f"{of} from {start}: {one} there, {other} here"
    assert len(there) == len(here), f"{of} from {start}: {len(there)} batches, here {len(here)}"

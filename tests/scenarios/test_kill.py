"""Killed while clients write and groups commit: what was answered is there, and there once."""

import asyncio
import os
import random
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Final

import confluent_kafka
import pytest

from support.cluster_admin import create_topic
from support.positions import committed_offset, leader_epochs, visible_records
from support.raw_writer import RawWriter
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

# By hand: BROKER_KILLS=30 pytest tests/scenarios/test_kill.py
KILLS: Final = int(os.environ.get("BROKER_KILLS", "5"))
SEED: Final = int(os.environ.get("BROKER_KILLS_SEED", "4711"))
TOPIC: Final = "killed"
PARTITIONS: Final = 3
GROUP: Final = "killed-group"
PATIENT: Final = {"reconnect.backoff.max.ms": 200, "log_level": 2}


class LibrdkafkaWriter(threading.Thread):
    """An idempotent producer of librdkafka; its values say who wrote them, and in which order."""

    def __init__(self, bootstrap: str, name: str) -> None:
        super().__init__(daemon=True)
        self.name_of_values = name
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failures: list[str] = []
        self.count = 0
        self._address = bootstrap
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Write no more, and wait until everything is acknowledged."""
        self._stopping.set()
        self.join(timeout=180)
        assert not self.is_alive(), f"{self.name_of_values} still waits for answers"

    def run(self) -> None:
        """Write at a steady pace."""
        config = {"enable.idempotence": True, "linger.ms": 2, "batch.num.messages": 20, **PATIENT}
        producer = confluent_kafka.Producer({"bootstrap.servers": self._address, **config})
        while not self._stopping.is_set():
            for _ in range(20):
                value = b"%s-%d" % (self.name_of_values.encode(), self.count)
                partition = self.count % PARTITIONS
                producer.produce(TOPIC, value, partition=partition, on_delivery=self._told)
                self.count += 1
            producer.poll(0.02)
        if producer.flush(120):
            self.failures.append("not everything was acknowledged in 120 s")

    def _told(self, error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        self.acknowledged[message.partition(), message.offset()] = message.value()


class Reader(threading.Thread):
    """A member of a group that commits what it read, and remembers what was answered."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.tried: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.answer_count = 0
        self.went_back: list[str] = []
        self._address = bootstrap
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Leave the group."""
        self._stopping.set()
        self.join(timeout=180)
        assert not self.is_alive(), "the reader hangs"

    def run(self) -> None:
        """Poll and commit, whatever becomes of the broker."""
        config = {
            "bootstrap.servers": self._address,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 45_000,
            **PATIENT,
        }
        consumer = confluent_kafka.Consumer(config)
        consumer.subscribe([TOPIC], on_assign=self._assigned)
        while not self._stopping.is_set():
            for message in consumer.consume(200, timeout=0.1):
                if message.error() is None:
                    self.tried[message.partition()] = message.offset() + 1
            self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: confluent_kafka.Consumer) -> None:
        offsets = [confluent_kafka.TopicPartition(TOPIC, p, at) for p, at in self.tried.items()]
        if not offsets:
            return
        try:
            told = consumer.commit(offsets=offsets, asynchronous=False)
        except confluent_kafka.KafkaException:
            return  # whether it was written, nobody knows
        self.answer_count += 1
        for each in told or ():
            if each.error is None:
                self.committed[each.partition] = each.offset

    def _assigned(
        self, consumer: confluent_kafka.Consumer, of: list[confluent_kafka.TopicPartition]
    ) -> None:
        for each in consumer.committed(of, timeout=60):
            if max(each.offset, 0) < self.committed.get(each.partition, 0):
                self.went_back.append(f"{each.partition}: {each.offset}, not {self.committed}")


@pytest.mark.timeout(600 + 60 * KILLS)
async def test_what_was_answered_outlives_every_kill(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    # Small segments, so that some kills come just after one was begun.
    twinlog = TwinlogProcess(tmp_path, settings={"log.segment.bytes": "50000"})
    twinlog.start()
    create_topic(twinlog, TOPIC, partitions=PARTITIONS)
    raw = [RawWriter(twinlog.bootstrap, f"raw{n}", TOPIC, n) for n in range(2)]
    others = [LibrdkafkaWriter(twinlog.bootstrap, f"rdkafka{n}") for n in range(2)]
    reader = Reader(twinlog.bootstrap)
    epochs = [leader_epochs(twinlog, [TOPIC])]
    try:
        async with asyncio.TaskGroup() as tasks:
            for writer in raw:
                tasks.create_task(writer.run())
            for thread in (*others, reader):
                thread.start()
            for _ in range(KILLS):
                await asyncio.to_thread(await_answers, raw, others, reader)
                await asyncio.sleep(chance.uniform(0, 1.0))
                await asyncio.to_thread(twinlog.kill)
                await asyncio.to_thread(twinlog.start)
                epochs.append(await asyncio.to_thread(leader_epochs, twinlog, [TOPIC]))
            await asyncio.to_thread(await_answers, raw, others, reader)
            for writer in raw:
                writer.is_stopping = True
            for one in others:
                await asyncio.to_thread(one.stop)
        await asyncio.to_thread(
            lambda: wait_until(
                lambda: len(reader.committed) == PARTITIONS, "all partitions are committed"
            )
        )
        await asyncio.to_thread(reader.stop)
        await asyncio.to_thread(check_records, twinlog, raw, others)
        await asyncio.to_thread(check_commits, twinlog, reader)
    finally:
        for writer in raw:
            writer.is_stopping = True
        twinlog.stop()
    for before, after in pairwise(epochs):
        assert all(after[of] > before[of] for of in before), (before, after)
    assert sum(writer.resent_batches for writer in raw) > 0, "no kill met a request under way"


def await_answers(raw: list[RawWriter], others: list[LibrdkafkaWriter], reader: Reader) -> None:
    """Return when every writer and the reader were answered something since now."""
    writers: list[RawWriter | LibrdkafkaWriter] = [*raw, *others]

    def answers() -> list[int]:
        return [*(len(writer.acknowledged) for writer in writers), reader.answer_count]

    before = answers()
    wait_until(
        lambda: all(now > then for now, then in zip(answers(), before, strict=True)),
        lambda: f"each is answered: {before} before, {answers()} now",
    )


def check_records(
    twinlog: TwinlogProcess, raw: list[RawWriter], others: list[LibrdkafkaWriter]
) -> None:
    there = {
        partition: dict(visible_records(twinlog, TOPIC, partition))
        for partition in range(PARTITIONS)
    }
    for one in others:
        assert one.failures == []
        lost = [of for of, value in one.acknowledged.items() if there[of[0]].get(of[1]) != value]
        assert lost == [], f"{one.name_of_values}: answered, and not there"
    for writer in raw:
        held = there[writer.partition]
        lost_offsets = [at for at, value in writer.acknowledged.items() if held.get(at) != value]
        assert lost_offsets == [], f"{writer.name}: answered, and not there"
    for records in there.values():
        twice = [value for value, times in Counter(records.values()).items() if times > 1]
        assert twice == [], "written twice"
        assert sorted(records) == list(range(len(records))), "offsets have holes"
    check_order(there, raw, others)


def check_order(
    there: dict[int, dict[int, bytes | None]],
    raw: list[RawWriter],
    others: list[LibrdkafkaWriter],
) -> None:
    """Every value is there, in each partition in the order it was sent."""
    for writer in raw:
        assert written_by(writer.name, there[writer.partition]) == writer.written
    for one in others:
        for partition, records in there.items():
            sent = range(partition, one.count, PARTITIONS)
            expected = [b"%s-%d" % (one.name_of_values.encode(), number) for number in sent]
            assert written_by(one.name_of_values, records) == expected


def written_by(name: str, records: dict[int, bytes | None]) -> list[bytes]:
    prefix = name.encode() + b"-"
    return [value for _, value in sorted(records.items()) if value and value.startswith(prefix)]


def check_commits(twinlog: TwinlogProcess, reader: Reader) -> None:
    assert reader.went_back == []
    for partition, answered in reader.committed.items():
        found = committed_offset(twinlog, GROUP, TOPIC, partition)
        assert found is not None
        assert answered <= found <= reader.tried[partition]

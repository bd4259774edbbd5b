"""Five real Kafka clients behind two verbs: produce values, and consume some in a group."""

import asyncio
import subprocess
import time
from collections.abc import Sequence
from typing import Protocol

import aiokafka
import confluent_kafka
import kafka

from support.java_tools import console_consume, console_produce

_TIMEOUT_S = 120.0


class ClientError(Exception):
    """A client could not do what a test asked of it; the text is the client's."""


class Client(Protocol):
    """A client as the tests use it; values are text without line ends."""

    name: str

    def produce(self, bootstrap: str, topic: str, values: Sequence[str]) -> None:
        """Produce values, in order, and return when all are acknowledged."""

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[str]:
        """Join a group, go on where it stands (or at the start), read, commit and leave."""


class Kcat:
    """The command line client, on an old librdkafka (2.0 in Debian 12)."""

    name = "kcat"

    def produce(self, bootstrap: str, topic: str, values: Sequence[str]) -> None:
        """Produce with kcat -P, which reads one value a line."""
        text = "".join(f"{value}\n" for value in values)
        self._run(["-b", bootstrap, "-P", "-t", topic, "-z", "lz4"], text)

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[str]:
        """Consume with kcat -G, whose consumer commits as it closes."""
        limits = ["-c", str(count), "-X", "auto.offset.reset=earliest", "-f", r"%s\n"]
        said = self._run(["-b", bootstrap, "-q", *limits, "-G", group, topic], "")
        return said.splitlines()

    def _run(self, arguments: Sequence[str], stdin: str) -> str:
        command = ["kcat", *arguments]
        try:
            run = subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise ClientError(f"{' '.join(command)} did not end: {late.stderr!r}") from None
        if run.returncode != 0:
            raise ClientError(f"{' '.join(command)} ended with {run.returncode}: {run.stderr}")
        return run.stdout


class Confluent:
    """The newest librdkafka, through confluent-kafka."""

    name = "confluent-kafka"

    def produce(self, bootstrap: str, topic: str, values: Sequence[str]) -> None:
        """Produce with an idempotent producer and zstd."""
        failures: list[str] = []

        def on_delivery(error: confluent_kafka.KafkaError | None, _: object) -> None:
            if error is not None:
                failures.append(str(error))

        config = {"enable.idempotence": True, "compression.type": "zstd", "linger.ms": 5}
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **config})
        for value in values:
            producer.produce(topic, value.encode(), on_delivery=on_delivery)
        left = producer.flush(_TIMEOUT_S)
        if left or failures:
            raise ClientError(f"{left} records not acknowledged; {failures[:3]}")

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[str]:
        """Consume one record at a time and commit the last of each partition."""
        config = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, **config})
        values: list[str] = []
        next_offsets: dict[int, int] = {}
        deadline = time.monotonic() + _TIMEOUT_S
        try:
            consumer.subscribe([topic])
            while len(values) < count:
                if time.monotonic() > deadline:
                    raise ClientError(f"{len(values)} of {count} records in {_TIMEOUT_S} s")
                message = consumer.poll(0.5)
                if message is None:
                    continue
                if message.error():
                    raise ClientError(str(message.error()))
                values.append(message.value().decode())
                next_offsets[message.partition()] = message.offset() + 1
            offsets = [
                confluent_kafka.TopicPartition(topic, partition, offset)
                for partition, offset in next_offsets.items()
            ]
            consumer.commit(offsets=offsets, asynchronous=False)
        finally:
            consumer.close()
        return values


class KafkaPython:
    """The pure Python client, kafka-python."""

    name = "kafka-python"

    def produce(self, bootstrap: str, topic: str, values: Sequence[str]) -> None:
        """Produce with gzip."""
        producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type="gzip")
        try:
            sent = [producer.send(topic, value.encode()) for value in values]
            producer.flush(timeout=_TIMEOUT_S)
            for future in sent:
                future.get(timeout=_TIMEOUT_S)
        finally:
            producer.close()

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[str]:
        """Consume and commit the position behind the last record read."""
        consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=int(_TIMEOUT_S * 1000),
            max_poll_records=1,
        )
        values: list[str] = []
        try:
            while len(values) < count:
                record = next(consumer, None)
                if record is None:
                    raise ClientError(f"{len(values)} of {count} records in {_TIMEOUT_S} s")
                values.append(record.value.decode())
            consumer.commit()
        finally:
            consumer.close()
        return values


class Aiokafka:
    """The asyncio client, aiokafka."""

    name = "aiokafka"

    def produce(self, bootstrap: str, topic: str, values: Sequence[str]) -> None:
        """Produce with snappy."""
        asyncio.run(self._produce(bootstrap, topic, values))

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[str]:
        """Consume record by record and commit the position behind the last."""
        return asyncio.run(self._consume(bootstrap, topic, group, count))

    async def _produce(self, bootstrap: str, topic: str, values: Sequence[str]) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type="snappy", acks="all"
        )
        await producer.start()
        try:
            sent = [await producer.send(topic, value.encode()) for value in values]
            await asyncio.wait_for(asyncio.gather(*sent), _TIMEOUT_S)
        finally:
            await producer.stop()

    async def _consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[str]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        values: list[str] = []
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                while len(values) < count:
                    values.append((await consumer.getone()).value.decode())
            await consumer.commit()
        except TimeoutError:
            raise ClientError(f"{len(values)} of {count} records in {_TIMEOUT_S} s") from None
        finally:
            await consumer.stop()
        return values


class JavaConsole:
    """Kafka's own Java clients, through its console tools."""

    name = "java"

    def produce(self, bootstrap: str, topic: str, values: Sequence[str]) -> None:
        """Produce uncompressed; the Java producer is idempotent unless told otherwise."""
        console_produce(bootstrap, topic, values)

    def consume(self, bootstrap: str, topic: str, group: str, count: int) -> list[str]:
        """Consume; the console consumer commits what it printed as it closes."""
        return console_consume(bootstrap, topic, "--from-beginning", "--group", group, count=count)


CLIENTS: tuple[Client, ...] = (Kcat(), Confluent(), KafkaPython(), Aiokafka(), JavaConsole())

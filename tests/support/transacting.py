"""Writes transactions to a broker, over and over, of which some are aborted."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.cluster_admin import Broker
from support.source_data import await_markers, flush, producer_of

_TIMEOUT_MS = 600_000


@contextmanager
def transacting(source: Broker, topic: str, *, partitions: int) -> Iterator[list[int]]:
    """Write until the block ends; give the running count of transactions, every third aborted.

    Behind the block every transaction is over at the broker, its markers written.
    """
    done = [0]
    stopping = threading.Event()
    name = f"transacting at {topic}"
    producer = producer_of(
        source,
        transactional_id=name,
        compression_type="snappy",
        linger_ms=2,
        transaction_timeout_ms=_TIMEOUT_MS,
    )
    producer.init_transactions(120)

    def run() -> None:
        while not stopping.wait(0.02):
            producer.begin_transaction()
            for step in range(4 * partitions):
                value = f"transaction {done[0]} step {step}".encode()
                producer.produce(topic, value, partition=step % partitions)
                if step % partitions == partitions - 1:
                    flush(producer)
            end = producer.abort_transaction if done[0] % 3 == 2 else producer.commit_transaction
            end(120)
            done[0] += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        stopping.set()
        thread.join(timeout=300)
        assert not thread.is_alive(), "the transactional producer hangs"
        await_markers(source, name)

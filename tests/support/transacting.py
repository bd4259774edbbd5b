"""Writes transactions to a broker, over and over, of which some are aborted."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.cluster_admin import Broker
from support.source_data import flush, producer_of


@contextmanager
def transacting(source: Broker, topic: str, *, partitions: int) -> Iterator[list[int]]:
    """Write until the block ends; give the running count of transactions, every third aborted."""
    done = [0]
    stopping = threading.Event()
    producer = producer_of(
        source, transactional_id=f"transacting at {topic}", compression_type="snappy", linger_ms=2
    )
    producer.init_transactions(60)

    def run() -> None:
        while not stopping.wait(0.02):
            producer.begin_transaction()
            for step in range(4 * partitions):
                value = f"transaction {done[0]} step {step}".encode()
                producer.produce(topic, value, partition=step % partitions)
                if step % partitions == partitions - 1:
                    flush(producer)
            end = producer.abort_transaction if done[0] % 3 == 2 else producer.commit_transaction
            end(30)
            done[0] += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        stopping.set()
        thread.join(timeout=60)
        assert not thread.is_alive(), "the transactional producer hangs"

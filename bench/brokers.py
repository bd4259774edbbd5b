"""The two brokers that are measured side by side, fresh and one at a time: twinlog and Kafka."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.kafka_install import KAFKA_4
from support.kafka_node import KafkaNode
from support.twinlog_process import TwinlogProcess

BrokerProcess = KafkaNode | TwinlogProcess
NAMES = ("twinlog", "kafka")


@contextmanager
def fresh_broker(name: str) -> Iterator[BrokerProcess]:
    """Give a broker with an empty folder, not yet started; stop it and remove the folder after."""
    folder = Path(tempfile.mkdtemp(prefix=f"twinlog-bench-{name}-"))
    broker = TwinlogProcess(folder) if name == "twinlog" else KafkaNode(folder, version=KAFKA_4)
    try:
        yield broker
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_broker(name: str) -> Iterator[BrokerProcess]:
    """Give a broker with an empty folder that is ready."""
    with fresh_broker(name) as broker:
        broker.start()
        yield broker


def broker_names(text: str) -> Sequence[str]:
    """Read a list of brokers from the command line."""
    names = text.split(",")
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ValueError(f"no broker {unknown[0]}; there are: {', '.join(NAMES)}")
    return names

"""A Kafka of a test's own behind a proxy, to be stopped, spoilt and cut off."""

from dataclasses import dataclass

from support.kafka_node import KafkaNode
from support.tampering_proxy import TamperingProxy


@dataclass(frozen=True, slots=True)
class ProxiedKafka:
    """Mirrors reach it through the proxy only; tests reach the node directly too."""

    node: KafkaNode
    proxy: TamperingProxy

"""Tests of the question by which a broker is known to be ready."""

import pytest

from support.kafka_node import KafkaNode
from support.server_process import free_port
from support.twinlog_process import answers_api_versions


def test_nobody_listening_is_not_ready() -> None:
    assert not answers_api_versions(free_port())


@pytest.mark.kafka
@pytest.mark.slow
def test_a_real_kafka_of_each_age_is_ready(any_kafka: KafkaNode) -> None:
    assert answers_api_versions(any_kafka.port)

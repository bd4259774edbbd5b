"""The answering broker is a broker to others, too."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from support.answering_broker import answering_broker


def test_kafka_python_writes_and_reads_through_it() -> None:
    with answering_broker() as broker:
        broker.logs["a", 0] = b""
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=False)
        sent = producer.send("a", value=b"one", key=b"k", partition=0)
        assert sent.get(timeout=60).offset == 0
        producer.close()
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", group_id=None
        )
        consumer.assign([TopicPartition("a", 0)])
        record = next(consumer)
        assert (record.key, record.value, record.offset) == (b"k", b"one", 0)
        consumer.close()

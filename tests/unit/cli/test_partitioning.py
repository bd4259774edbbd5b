"""Keys go to the partitions that every Kafka client sends them to."""

from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_pythons_murmur2

from twinlog.cli.partitioning import murmur2, partition_of


@given(data=st.binary(max_size=40))
def test_the_hash_is_kafkas(data: bytes) -> None:
    assert murmur2(data) == kafka_pythons_murmur2(data) & 0xFFFF_FFFF


def test_known_values() -> None:
    # From Kafka's own UtilsTest, as unsigned numbers.
    assert murmur2(b"21") == -973932308 & 0xFFFF_FFFF
    assert murmur2(b"foobar") == -790332482 & 0xFFFF_FFFF
    assert murmur2(b"a-little-bit-long-string") == -985981536 & 0xFFFF_FFFF


@given(key=st.binary(max_size=20), count=st.integers(1, 100))
def test_a_key_has_a_partition(key: bytes, count: int) -> None:
    assert 0 <= partition_of(key, count) < count

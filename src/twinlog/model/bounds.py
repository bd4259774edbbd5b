"""Limits that are not settings, each with its unit."""

from typing import Final

FRAME_BYTES_MIN: Final = 4  # the shortest header: the correlation id of a response
TOPIC_NAME_CHARS_MAX: Final = 249
MIRROR_NAME_CHARS_MAX: Final = 249
TAGGED_FIELDS_MAX: Final = 10_000
BATCH_HEADER_BYTES: Final = 61
GROUP_TEXT_BYTES_MAX: Final = 16_000  # ids of groups, instances and clients, names of protocols
DECOMPRESSED_BATCH_BYTES_MAX: Final = 128 << 20
PARTITIONS_PER_TOPIC_MAX: Final = 10_000
DESCRIBED_PARTITIONS_MAX: Final = 2_000  # partitions in one answer of DescribeTopicPartitions

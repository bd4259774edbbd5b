"""Names and identity files inside a log dir are Kafka's."""

from uuid import UUID

import pytest

from twinlog.model.errors import SettingsError
from twinlog.model.ids import TopicId, TopicName, TopicPartition
from twinlog.storage.folders import (
    DELETED_FOLDER_SUFFIX,
    Identity,
    decode_identity,
    decode_topic_id,
    decode_uuid,
    encode_identity,
    encode_topic_id,
    encode_uuid,
    is_deleted_folder,
    offset_and_kind,
    partition_of_folder,
    renamed_folder,
)

SOME_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")


def test_a_uuid_is_written_in_22_characters() -> None:
    assert encode_uuid(SOME_ID) == "ABEiM0RVZneImaq7zN3u_w"
    assert decode_uuid("ABEiM0RVZneImaq7zN3u_w") == SOME_ID


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [("a-0", "a", 0), ("a-b-12", "a-b", 12), ("__x.y_z-3", "__x.y_z", 3)],
)
def test_a_folder_is_named_after_its_partition(name: str, topic: str, partition: int) -> None:
    assert partition_of_folder(name) == TopicPartition(TopicName(topic), partition)


@pytest.mark.parametrize("name", ["a", "-1", "a-", "a b-1", "meta.properties", "a-1.x-delete"])
def test_other_folders_hold_no_partition(name: str) -> None:
    assert partition_of_folder(name) is None


def test_a_deleted_folder_is_known_again_however_long_its_name() -> None:
    for topic in ("a", "t" * 249):
        of = TopicPartition(TopicName(topic), 0)
        name = renamed_folder(of, SOME_ID, DELETED_FOLDER_SUFFIX)
        assert len(name) <= 255
        assert is_deleted_folder(name)
        assert partition_of_folder(name) is None
    assert not is_deleted_folder("a-0")
    assert not is_deleted_folder(f"a-0.{SOME_ID.hex}-stray")


def test_segment_files_are_told_from_others() -> None:
    assert offset_and_kind("00000000000000000042.timeindex") == (42, "timeindex")
    assert offset_and_kind("00000000000000000042.log.deleted") is None
    assert offset_and_kind("partition.metadata") is None


def test_the_identity_file_round_trips_and_kafkas_own_are_read() -> None:
    identity = Identity("cluster-1", 3, SOME_ID)
    assert decode_identity(encode_identity(identity), "meta.properties") == identity
    kafkas = b"#\n#Mon Nov 30\ncluster.id=x\\=y\nversion=0\nbroker.id=4\n"
    assert decode_identity(kafkas, "m") == Identity("x=y", 4, UUID(int=0))


@pytest.mark.parametrize("content", [b"", b"node.id=1\n", b"node.id=a\ncluster.id=x\n"])
def test_a_bad_identity_file_is_named(content: bytes) -> None:
    with pytest.raises(SettingsError, match=r"/d/meta\.properties"):
        decode_identity(content, "/d/meta.properties")


def test_partition_metadata_names_the_topic() -> None:
    content = encode_topic_id(TopicId(SOME_ID))
    assert content == b"version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w"
    assert decode_topic_id(content + b"\n") == SOME_ID
    assert decode_topic_id(content[:-3]) is None
    assert decode_topic_id(b"") is None

import struct

from twinlog.groups.subscriptions import subscribed_topics


def test_the_topics_of_any_version_are_read() -> None:
    for version in range(4):
        metadata = struct.pack(">hi", version, 2) + b"\0\1a\0\1b" + b"whatever follows"
        assert sorted(subscribed_topics(metadata) or ()) == ["a", "b"]


def test_bytes_of_another_kind_name_no_topics() -> None:
    assert subscribed_topics(b"") is None
    assert subscribed_topics(b"\0\0\x7f\xff\xff\xff") is None

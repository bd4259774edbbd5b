from twinlog.broker.request_counts import RequestCounts
from twinlog.model.errors import ErrorCode
from twinlog.wire.messages.group_offsets import (
    OFFSET_FETCH,
    OffsetFetchResponse,
)
from twinlog.wire.messages.groups import HEARTBEAT, HeartbeatResponse
from twinlog.wire.messages.metadata import (
    METADATA,
    MetadataResponse,
    MetadataTopic,
)


def test_requests_are_told_by_name_and_version_once_there_was_one() -> None:
    counts = RequestCounts()
    counts.of(HEARTBEAT).versions[4] += 1
    counts.of(HEARTBEAT).versions[4] += 1
    counts.of(METADATA)
    assert dict(counts.requests()) == {("Heartbeat", 4): 2}


def test_every_place_of_an_answer_that_has_an_error_is_counted() -> None:
    counts = RequestCounts()
    unknown = MetadataTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="a", partitions=()
    )
    fine = MetadataTopic(name="b", partitions=())
    counts.of(METADATA).note_errors(MetadataResponse(brokers=(), topics=(unknown, fine, unknown)))
    counts.of(HEARTBEAT).note_errors(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    counts.of(HEARTBEAT).note_errors(HeartbeatResponse())
    assert dict(counts.errors()) == {
        ("Metadata", "UNKNOWN_TOPIC_OR_PARTITION"): 2,
        ("Heartbeat", "UNKNOWN_MEMBER_ID"): 1,
    }


def test_lists_that_are_not_there_have_no_errors() -> None:
    counts = RequestCounts()
    counts.of(OFFSET_FETCH).note_errors(OffsetFetchResponse())
    assert not list(counts.errors())

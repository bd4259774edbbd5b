from twinlog.wire.frames import frame_length, with_length


def test_a_frame_is_its_length_its_header_and_its_body_in_one_piece_when_small() -> None:
    assert with_length(b"head", [b"body"]) == [b"\x00\x00\x00\x08headbody"]


def test_record_batches_stay_pieces_of_their_own() -> None:
    records = memoryview(b"records")
    assert with_length(b"h", [b"before", records, b"after"]) == [
        b"\x00\x00\x00\x13hbefore",
        records,
        b"after",
    ]


def test_a_big_body_is_not_copied() -> None:
    body = bytes(100_000)
    first, second = with_length(b"h", [body])
    assert first == b"\x00\x01\x86\xa1h"
    assert second is body


def test_a_length_is_read_as_it_stands() -> None:
    assert frame_length(b"xx\x00\x00\x01\x00", 2) == 256
    assert frame_length(memoryview(b"\xff\xff\xff\xff")) == -1

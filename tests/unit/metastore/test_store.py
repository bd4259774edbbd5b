from twinlog.metastore.store import prefix_end


def test_a_prefix_ends_before_the_next_byte() -> None:
    assert prefix_end(b"t/") == b"t0"
    assert prefix_end(b"a\xff") == b"b"


def test_no_key_comes_after_a_prefix_of_0xff_bytes() -> None:
    assert prefix_end(b"\xff\xff") is None
    assert prefix_end(b"") is None

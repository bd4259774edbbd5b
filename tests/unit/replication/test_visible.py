import pytest

from twinlog.model.ids import Offset
from twinlog.replication.visible import READ_COMMITTED, READ_UNCOMMITTED, Reader, visible_end


@pytest.mark.parametrize(
    ("replica_id", "isolation_level", "end"),
    [(2, READ_COMMITTED, 30), (-1, READ_UNCOMMITTED, 20), (-1, READ_COMMITTED, 10)],
)
def test_a_reader_sees_what_it_may(replica_id: int, isolation_level: int, end: int) -> None:
    reader = Reader.of(replica_id, isolation_level)
    assert end == visible_end(
        reader, log_end=Offset(30), high_watermark=Offset(20), last_stable=Offset(10)
    )


def test_a_stable_offset_above_the_high_watermark_shows_no_more() -> None:
    assert (
        visible_end(
            Reader.COMMITTED_CONSUMER,
            log_end=Offset(30),
            high_watermark=Offset(20),
            last_stable=Offset(25),
        )
        == 20
    )

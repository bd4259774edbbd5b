"""What is known of the mirrors at work, and the calls that wake them."""

from twinlog.broker.mirror_board import MirrorBoard, MirrorStatus
from twinlog.model.ids import TopicName, TopicPartition


def test_a_nudge_reaches_a_mirror_that_is_at_work() -> None:
    board = MirrorBoard()
    board.nudge("none")
    status = board.statuses["m"] = MirrorStatus()
    board.nudge("m")
    assert status.refresh_wanted.is_set()
    assert board.status_of("m") is status
    assert board.status_of("none") is None


def test_recovery_is_noted_and_wakes_who_carries_it_out() -> None:
    board = MirrorBoard()
    of = TopicPartition(TopicName("t"), 0)
    board.recover([of])
    assert board.recover_wanted == {of}
    assert board.wake.is_set()

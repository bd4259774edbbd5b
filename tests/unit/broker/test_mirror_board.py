"""What is known of the mirrors at work, and the calls that wake them."""

from twinlog.broker.mirror_board import TOPICS, MirrorBoard, MirrorStatus
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


def test_a_mirrors_numbers_go_on_when_it_is_begun_again_and_end_with_it() -> None:
    board, first, second, third = MirrorBoard(), MirrorStatus(), MirrorStatus(), MirrorStatus()
    board.begin("m", first, 5)
    first.counts.fetches += 1
    board.task_failed(first, TOPICS, "no answer")
    assert first.task_errors == {TOPICS: "no answer"}
    board.end("m", is_deleted=False)
    assert board.status_of("m") is None
    board.begin("m", second, 7)
    assert (second.begun_at_ms, second.counts.fetches) == (7, 1)
    board.end("m", is_deleted=True)
    board.begin("m", third, 9)
    assert third.counts.fetches == 0
    assert board.task_errors[TOPICS] == 1

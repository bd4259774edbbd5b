"""What is told of a mirrored partition's past."""

from dataclasses import replace

from twinlog.cli.mirror_history import gap_lines, history_as_json, start_line
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.wire.messages.mirrors import DescribedLoss, DescribedStart

ROW = PartitionRow("m", "orders", 2, 300, 300, "MIRRORING", 0, None)
BEGUN = DescribedStart(spec="latest", offset=250, skipped_from=100, at_ms=7)
GAP = DescribedLoss(kind="gap", first_offset=200, end_offset=250, cause="retention", at_ms=7)
CUT = replace(GAP, kind="truncation")


def test_what_was_mirrored_from_the_earliest_record_on_has_no_past() -> None:
    assert start_line(ROW, 0) is None
    assert gap_lines(ROW) == []
    assert history_as_json(ROW) == {"start": None, "gaps": []}


def test_where_equality_begins_is_told_with_the_operators_words_for_it() -> None:
    row = replace(ROW, start=BEGUN)
    assert start_line(row, 250) == (
        "orders-2 is equal from 250, since mirror.start.offset.spec=latest; "
        "records 100 to 249 were never to be mirrored"
    )
    was_begun = "orders-2 was begun at 250, since mirror.start.offset.spec=latest; "
    for later_or_not_equal in (280, None):
        assert str(start_line(row, later_or_not_equal)).startswith(was_begun)


def test_a_source_that_had_nothing_left_nothing_out() -> None:
    row = replace(ROW, start=replace(BEGUN, skipped_from=250))
    assert str(start_line(row, 250)).endswith("=latest; the source had no records below")


def test_a_gap_is_told_with_its_range_and_cause_and_nothing_else_is_a_gap() -> None:
    row = replace(ROW, losses=(CUT, GAP))
    assert gap_lines(row) == [
        "orders-2 records 200 to 249 never came, the source had deleted them before: retention"
    ]
    assert [gap["firstOffset"] for gap in history_as_json(row)["gaps"]] == [200]

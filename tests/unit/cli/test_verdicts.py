"""What --verify shows: a table, what differs, a sum; or JSON."""

import io
import json
from dataclasses import replace

from twinlog.cli.batch_comparison import Comparison, Side
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.cli.verdicts import DIFFERENT, EQUAL, NOT_COMPARED, Verdict, VerifyView
from twinlog.wire.messages.mirrors import DescribedLoss, DescribedStart


def finished(end: int) -> Comparison:
    made = Comparison(0, end)
    for side in Side:
        made.finish(side)
    return made


def different() -> Comparison:
    made = Comparison(0, 9)
    made.give_up(Side.DESTINATION, 4, "no batch")
    made.difference_count = 3
    return made


def text_of(*verdicts: Verdict, as_json: bool = False) -> str:
    out = io.StringIO()
    VerifyView("m", verdicts).write(out, as_json=as_json)
    return out.getvalue()


def test_equal_partitions_are_a_row_each_and_a_sum() -> None:
    lines = text_of(Verdict("orders", 0, finished(7))).splitlines()
    assert lines[0].split()[-2:] == ["BYTES", "RESULT"]
    assert lines[1].split() == ["orders", "0", "0", "7", "0", "0", EQUAL]
    assert lines[2] == "Mirror m: 1 partition(s) equal, 0 different, 0 not compared"


def test_a_difference_is_told_with_its_offset_and_how_many_more_there_are() -> None:
    lines = text_of(Verdict("orders", 1, different())).splitlines()
    assert lines[1].split() == ["orders", "1", "0", "4", "0", "0", DIFFERENT]
    assert lines[2] == "orders-1 at offset 4: unreadable at the destination (no batch)"
    assert lines[3] == "orders-1 differs in 2 more place(s)"
    assert lines[4].endswith("0 partition(s) equal, 1 different, 0 not compared")


def test_what_is_not_compared_says_why_and_is_not_equal() -> None:
    begun = Comparison(0, 9, skipped=[(2, 5)])
    verdicts = (Verdict("a", 0, why="no leader"), Verdict("a", 1, begun, "source gone"))
    assert not VerifyView("m", verdicts).is_equal
    lines = text_of(*verdicts).splitlines()
    assert lines[1].split() == ["a", "0", "-", "-", "-", "-", NOT_COMPARED]
    assert lines[3:6] == [
        "a-0 was not compared: no leader",
        "a-1 offsets 2 to 4 were deleted before they could be compared",
        "a-1 was not compared to its end: source gone",
    ]


def test_nothing_compared_is_not_equal() -> None:
    assert not VerifyView("m", ()).is_equal


def test_json_tells_the_same() -> None:
    told = json.loads(
        text_of(
            Verdict("a", 0, finished(7)),
            Verdict("a", 1, different()),
            Verdict("a", 2, why="x"),
            as_json=True,
        )
    )
    assert (told["mirror"], told["isEqual"]) == ("m", False)
    equal, differs, unknown = told["partitions"]
    assert equal.keys() == unknown.keys() >= {"start", "gaps"}, "the same for what has no row yet"
    assert (equal["result"], equal["equalUpTo"], equal["mirroredEnd"]) == (EQUAL, 7, 7)
    assert differs["differences"][0]["offset"] == 4
    assert differs["differenceCount"] == 3
    assert (unknown["result"], unknown["equalUpTo"], unknown["why"]) == (NOT_COMPARED, None, "x")


def test_an_equal_partition_says_where_equality_begins_and_what_never_came() -> None:
    row = PartitionRow(
        "m",
        "orders",
        0,
        9,
        9,
        "MIRRORING",
        0,
        None,
        losses=(
            DescribedLoss(kind="gap", first_offset=2, end_offset=5, cause="retention", at_ms=7),
        ),
        start=DescribedStart(spec="latest", offset=0, skipped_from=0, at_ms=1),
    )
    verdict = Verdict("orders", 0, finished(7), row=row)
    assert VerifyView("m", [verdict]).is_equal
    assert text_of(verdict).splitlines()[2:4] == [
        "orders-0 is equal from 0, since mirror.start.offset.spec=latest; "
        "the source had no records below",
        "orders-0 records 2 to 4 never came, the source had deleted them before: retention",
    ]
    (told,) = json.loads(text_of(verdict, as_json=True))["partitions"]
    assert told["start"]["offset"] == 0
    assert told["gaps"][0]["endOffset"] == 5


def test_what_the_copy_lacks_at_its_beginning_is_told_unless_it_was_begun_there() -> None:
    comparison = Comparison(5, 9)
    row = PartitionRow("m", "orders", 0, None, 9, "MIRRORING", 0, None)
    lacking = Verdict("orders", 0, comparison, row=row, source_start=2)
    told = (
        "orders-0 begins at 5 here, and at 2 at the source: offsets 2 to 4 are not here "
        "and were not compared"
    )
    assert told in text_of(lacking).splitlines()
    assert lacking.result == DIFFERENT, "a mirror's log begins where the source's does"
    stopped = replace(lacking, row=replace(row, state="STOPPED"))
    assert stopped.result == EQUAL, "retention is its own by now"
    assert "are not here (deleted by retention, or lost) and" in text_of(stopped)
    assert json.loads(text_of(lacking, as_json=True))["partitions"][0]["onlyAtSource"] == [2, 5]
    begun = replace(row, start=DescribedStart(spec="latest", offset=5, skipped_from=2, at_ms=0))
    assert replace(lacking, row=begun).only_at_source is None
    assert replace(lacking, row=begun).result == EQUAL
    assert replace(lacking, source_start=5).only_at_source is None

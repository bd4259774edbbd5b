"""What a stop would lose: counted, told as a table with reasons, and as JSON."""

import io
import json

import pytest

from support.batches import batch
from twinlog.cli.batch_comparison import Mark, piece_of
from twinlog.cli.mirror_groups import GroupChange
from twinlog.cli.mirror_tables import PartitionRow
from twinlog.cli.stop_plan import (
    LINES_MAX,
    ConfigDifference,
    OpenTransaction,
    PartitionPlan,
    StopPlan,
    note_transactions,
)


def row(
    partition: int = 0,
    state: str = "MIRRORING",
    *,
    ends: tuple[int | None, int | None] = (110, 100),
    lag_bytes: int | None = 500,
    error: str | None = None,
) -> PartitionRow:
    return PartitionRow(
        "m", "orders", partition, *ends, state, 0, error, lag_bytes=lag_bytes, lag_ms=1_500
    )


LEVEL = PartitionPlan(row(), 100, 100)
BEHIND = PartitionPlan(row(1), 120, 100)


def text_of(plan: StopPlan) -> list[str]:
    out = io.StringIO()
    plan.write(out, as_json=False)
    return out.getvalue().splitlines()


def test_a_mirror_that_is_level_loses_nothing() -> None:
    plan = StopPlan("m", [LEVEL])
    assert plan.is_lossless
    lines = text_of(plan)
    assert lines[1].split() == ["orders", "1", "0", "0", "1.5", "0", "0"]
    assert lines[2:] == ["Stopping mirror m now would lose nothing. Nothing was changed."]


def test_what_is_behind_is_counted_per_topic_and_told_per_partition() -> None:
    failed = PartitionPlan(row(2, "FAILED", error="bad batch at 7"), 130, 100)
    lines = text_of(StopPlan("m", [LEVEL, BEHIND, failed]))
    # 500 bytes for the 10 records that the mirror knows of: 50 for each.
    assert lines[1].split() == ["orders", "3", "50", "2500", "1.5", "1", "0"]
    assert lines[2:] == [
        "orders-1 is MIRRORING, 20 record(s) behind",
        "orders-2 is FAILED, 30 record(s) behind: bad batch at 7",
        "Stopping mirror m now would lose 50 record(s) and abort 0 transaction(s); "
        "1 partition(s) do not follow the source; 0 group offset(s) and 0 setting(s) differ. "
        "Nothing was changed.",
    ]


@pytest.mark.parametrize(
    ("state", "is_lossless"),
    [("FAILED", False), ("LOG_ALIGNMENT", False), ("PAUSED", True), ("MIRRORING", True)],
)
def test_as_many_records_as_at_the_source_are_not_the_source_s_where_it_is_not_followed(
    state: str, *, is_lossless: bool
) -> None:
    level = PartitionPlan(row(0, state), 100, 100)
    assert StopPlan("m", [level]).is_lossless is is_lossless


def test_without_the_source_the_last_known_figures_are_used_and_said_to_be() -> None:
    dark = [LEVEL, PartitionPlan(row(), None, 100)]
    plan = StopPlan("m", dark, None, None, troubles=["The source is away"])
    lines = text_of(plan)
    assert lines[0] == "The source is away"
    assert lines[3] == "orders-0 is MIRRORING, 10 record(s) behind"
    assert lines[4] == (
        "Stopping mirror m now would lose 10 record(s) as far as the mirror last knew (it was "
        "level 1.5 s ago) and abort 0 transaction(s); an unknown number of group offsets and an "
        "unknown number of settings differ. Nothing was changed."
    )
    assert plan.as_json()["groups"] is plan.as_json()["configs"] is None
    assert not StopPlan("m", [LEVEL], None).is_lossless
    assert not StopPlan("m", [LEVEL], configs=None).is_lossless
    assert not StopPlan("m", [PartitionPlan(row(ends=(100, 100)), None, 100)]).is_lossless


def test_what_nobody_knows_is_unknown_and_not_nothing() -> None:
    unknown = PartitionPlan(row(ends=(None, 100), lag_bytes=None), None, 100)
    assert (unknown.records, unknown.byte_count, unknown.is_lossless) == (None, None, False)
    lines = text_of(StopPlan("m", [unknown]))
    assert lines[1].split()[2:4] == ["-", "-"]
    assert "an unknown number of record(s) behind" in lines[2]
    assert "would lose an unknown number of records as far as" in lines[3]


def test_bytes_are_unknown_without_a_figure_of_the_broker() -> None:
    assert PartitionPlan(row(lag_bytes=None), 120, 100).byte_count is None
    assert PartitionPlan(row(ends=(100, 100)), 120, 100).byte_count is None
    assert PartitionPlan(row(lag_bytes=None), 100, 100).byte_count == 0
    assert PartitionPlan(row(lag_bytes=None), 120, 100, sample=(70, 10)).byte_count == 140


def test_what_the_source_has_deleted_is_told_and_has_no_bytes() -> None:
    plan = PartitionPlan(row(lag_bytes=None), 120, 100, source_start=115, sample=(70, 1))
    assert (plan.records, plan.byte_count, plan.deleted) == (20, 350, (100, 115))
    assert text_of(StopPlan("m", [plan]))[3] == (
        "orders-0 records 100 to 114 are deleted at the source already and will not come, "
        "stopped or not"
    )
    assert plan.as_json()["deletedAtSource"] == [100, 115]


def test_a_transaction_over_many_partitions_is_one() -> None:
    one, other = OpenTransaction(9, 1, 77), OpenTransaction(8, 0, 3)
    plans = [PartitionPlan(row(at), 100, 100, (one,)) for at in range(3)]
    plans.append(PartitionPlan(row(3), 100, 100, (other, OpenTransaction(-1, -1, 5))))
    lines = text_of(StopPlan("m", plans))
    assert lines[1].split()[-1] == "3"
    assert "abort 3 transaction(s)" in lines[-1]


def test_groups_settings_and_open_transactions_are_losses_too() -> None:
    group = GroupChange("g", "orders", 0, 120, 100, 100)
    config = ConfigDifference("orders", "retention.ms", "5", None)
    transaction = OpenTransaction(9, 1, 77)
    undecided = PartitionPlan(row(), 100, 100, (transaction,))
    for plan in (
        StopPlan("m", [LEVEL], groups=[group]),
        StopPlan("m", [LEVEL], configs=[config]),
        StopPlan("m", [undecided]),
        StopPlan("m", [PartitionPlan(row(), 100, 100, trouble="no leader")]),
    ):
        assert not plan.is_lossless
    lines = text_of(StopPlan("m", [undecided], [group], [config]))
    assert lines[2:5] == [
        "orders-0 has an open transaction of producer 9 from offset 77 on, which would be aborted",
        "group g on orders-0: 120 at the source, 100 here; clamped to 100",
        "topic orders: retention.ms: retention.ms=5 at the source, the default here",
    ]
    assert "abort 1 transaction(s); 1 group offset(s) and 1 setting(s) differ" in lines[5]


def test_a_group_that_the_source_itself_would_set_back_is_told_and_no_loss() -> None:
    group = GroupChange("g", "orders", 0, 60, 70, 70, possible_at_source=70)
    plan = StopPlan("m", [LEVEL], groups=[group])
    assert plan.is_lossless
    assert text_of(plan)[2:] == [
        "group g on orders-0: 60 at the source, 70 here; clamped to 70, where the source's own "
        "log begins",
        "Stopping mirror m now would lose nothing. Nothing was changed.",
    ]
    assert plan.as_json()["groups"][0]["isLoss"] is False


def test_of_many_lines_the_first_are_told() -> None:
    plans = [PartitionPlan(row(number), 120, 100) for number in range(LINES_MAX + 2)]
    lines = text_of(StopPlan("m", plans))
    assert len(lines) == 2 + LINES_MAX + 2
    assert lines[-2] == "and 2 more line(s): --json tells all"


def test_json_tells_all() -> None:
    out = io.StringIO()
    config = ConfigDifference("orders", "retention.ms", "5", None)
    plan = PartitionPlan(row(), None, 100, (OpenTransaction(9, 1, 77),))
    StopPlan("m", [plan], configs=[config], troubles=["away"]).write(out, as_json=True)
    told = json.loads(out.getvalue())
    assert (told["mirror"], told["isLossless"], told["troubles"]) == ("m", False, ["away"])
    (topic,) = told["topics"]
    assert (topic["recordsLost"], topic["bytesLost"], topic["lagMs"]) == (10, 500, 1_500)
    (partition,) = topic["partitions"]
    assert (partition["sourceOffset"], partition["isSourceOffsetCurrent"]) == (110, False)
    assert partition["openTransactions"] == [
        {"producerId": 9, "producerEpoch": 1, "firstOffset": 77}
    ]
    assert told["configs"][0] == {
        "topic": "orders",
        "name": "retention.ms",
        "source": "5",
        "destination": None,
    }


def marks(*batches: bytes) -> tuple[Mark, ...]:
    return piece_of(b"".join(batches), 0, 1_000).marks


def test_a_transaction_is_open_until_the_marker_of_its_producer() -> None:
    still_open: dict[int, OpenTransaction] = {}
    note_transactions(
        still_open,
        marks(
            batch(2, base_offset=0, producer=(7, 0, 0), is_transactional=True),
            batch(1, base_offset=2, producer=(8, 3, 0), is_transactional=True),
            batch(1, base_offset=3, producer=(8, 3, 1), is_transactional=True),
            batch(1, base_offset=4, producer=(9, 0, 0)),
        ),
    )
    assert set(still_open) == {7, 8}
    marker = batch(1, base_offset=5, producer=(7, 0, -1), is_transactional=True, is_control=True)
    reset = batch(1, base_offset=6, is_control=True)
    note_transactions(still_open, marks(marker, reset, marker))
    assert still_open == {8: OpenTransaction(8, 3, 2)}

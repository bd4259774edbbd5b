"""Mirrors are shown in KIP-1279's columns, widths and JSON."""

import io
import json

from twinlog.cli.mirror_tables import (
    FailedView,
    ListView,
    PartitionRow,
    StateView,
    TasksView,
)
from twinlog.wire.messages.mirrors import (
    DescribedLoss,
    DescribedMirror,
    DescribedMirrorPartition,
    DescribedMirrorTask,
    DescribedMirrorTopic,
    DescribedStart,
    ListedMirror,
)


def rows(*partitions: DescribedMirrorPartition) -> list[PartitionRow]:
    topic = DescribedMirrorTopic(topic_name="orders", partitions=partitions)
    return list(PartitionRow.all_of(DescribedMirror(mirror_name="a-to-b", topics=(topic,))))


def written(view: StateView | FailedView | TasksView, *, as_json: bool = False) -> str:
    out = io.StringIO()
    view.write(out, as_json=as_json)
    return out.getvalue()


def test_the_list_has_the_columns_of_the_proposal() -> None:
    out = io.StringIO()
    listed = [
        ListedMirror(mirror_name="b", source_bootstrap="h:1," * 15 + "h:2", topic_count=2),
        ListedMirror(mirror_name="a", source_bootstrap="h:1", source_cluster_id="c" * 22),
    ]
    ListView(listed).write(out)
    head, first, second = out.getvalue().splitlines()
    assert head == (
        f"{'MIRROR':30} {'TOPICS':10} {'SOURCE-CLUSTER-ID':26} {'SOURCE-BOOTSTRAP-SERVER'}"
    )
    assert first == f"{'a':30} {'0':10} {'c' * 22:26} h:1"
    assert second.startswith(f"{'b':30} {'2':10} {'-':26} ...")
    assert second.endswith("h:1,h:2")
    assert len(second) == 30 + 10 + 26 + 50 + 3


def test_no_mirror_is_told() -> None:
    out = io.StringIO()
    ListView([]).write(out)
    assert out.getvalue() == "No mirrors found\n"


def test_states_have_the_columns_of_the_proposal_and_unknown_offsets_are_dashes() -> None:
    known = DescribedMirrorPartition(
        partition_index=0, state_value="MIRRORING", source_offset=120, destination_offset=100
    )
    dark = DescribedMirrorPartition(
        partition_index=1, state_value="EPOCH_FENCING", destination_offset=7
    )
    head, first, second = written(StateView(rows(known, dark))).splitlines()
    assert head == (
        f"{'MIRROR':30} {'TOPIC':40} {'PARTITION':10} {'SOURCE-OFFSET':15} "
        f"{'DESTINATION-OFFSET':18} {'LAG':10} STATE"
    )
    assert (
        first == f"{'a-to-b':30} {'orders':40} {'0':10} {'120':15} {'100':18} {'20':10} MIRRORING"
    )
    assert (
        second == f"{'a-to-b':30} {'orders':40} {'1':10} {'-':15} {'7':18} {'-':10} EPOCH_FENCING"
    )


def test_a_destination_ahead_of_a_stale_source_offset_has_no_lag() -> None:
    (row,) = rows(
        DescribedMirrorPartition(
            partition_index=0, state_value="STOPPED", source_offset=5, destination_offset=7
        )
    )
    assert row.lag == 0


def test_json_has_the_names_of_the_proposal_and_more_behind_them() -> None:
    partition = DescribedMirrorPartition(
        partition_index=3,
        state_value="FAILED",
        error_message="bad",
        retry_attempt=2,
        source_offset=9,
        destination_offset=4,
        last_mirror_offset=3,
        lag_bytes=700,
        lag_ms=1500,
        losses=(
            DescribedLoss(
                kind="truncation",
                first_offset=3,
                end_offset=9,
                cause="why",
                at_ms=7,
                saved_to="/file",
                saved_bytes=80,
            ),
        ),
        start=(DescribedStart(spec="latest", offset=3, skipped_from=1, at_ms=6),),
    )
    expected = {
        "mirror": "a-to-b",
        "topic": "orders",
        "partition": 3,
        "sourceOffset": 9,
        "destinationOffset": 4,
        "lag": 5,
        "state": "FAILED",
        "retryAttempt": 2,
        "errorMessage": "bad",
        "lagBytes": 700,
        "lagMs": 1500,
        "lastMirrorEpoch": None,
        "lastMirrorOffset": 3,
        "losses": [
            {
                "kind": "truncation",
                "firstOffset": 3,
                "endOffset": 9,
                "cause": "why",
                "atMs": 7,
                "savedTo": "/file",
                "savedBytes": 80,
            }
        ],
        "start": {"spec": "latest", "offset": 3, "skippedFrom": 1, "atMs": 6},
    }
    assert json.loads(written(StateView(rows(partition)), as_json=True)) == [expected]
    assert json.loads(written(FailedView(rows(partition), 20), as_json=True)) == [expected]


def test_nothing_is_told_in_words_and_as_an_empty_list() -> None:
    fine = rows(DescribedMirrorPartition(partition_index=0, state_value="MIRRORING"))
    assert written(StateView([])) == "No mirror partitions found\n"
    assert written(FailedView(fine, 20)) == "No failed partitions found\n"
    assert written(StateView([]), as_json=True) == "[]\n"
    assert written(FailedView(fine, 20), as_json=True) == "[]\n"


def test_failures_tell_their_retries_and_their_cause_in_one_line() -> None:
    again = DescribedMirrorPartition(
        partition_index=0, state_value="FAILED", retry_attempt=3, error_message="a\n b" + "c" * 90
    )
    never = DescribedMirrorPartition(partition_index=1, state_value="FAILED", retry_attempt=-1)
    _, first, second = written(FailedView(rows(again, never), 20)).splitlines()
    assert first == f"{'a-to-b':30} {'orders':40} {'0':10} {'3/20':7} a b{'c' * 74}..."
    assert second == f"{'a-to-b':30} {'orders':40} {'1':10} NonRetryable -"


def test_rows_sort_by_mirror_topic_and_partition_as_a_number() -> None:
    made = rows(
        DescribedMirrorPartition(partition_index=10, state_value="STOPPED"),
        DescribedMirrorPartition(partition_index=9, state_value="STOPPED"),
    )
    assert [row.partition for row in sorted(made)] == [9, 10]


def test_a_task_is_ok_or_failed_or_has_nothing_to_do() -> None:
    tasks = (
        DescribedMirrorTask(name="acls", note="the source has no authorizer"),
        DescribedMirrorTask(name="group offsets", error="not\nallowed"),
        DescribedMirrorTask(name="topics"),
    )
    view = TasksView([DescribedMirror(mirror_name="a-to-b", tasks=tasks)])
    head, *lines = written(view).splitlines()
    assert head == f"{'MIRROR':30} {'TASK':30} {'STATE':15} DETAIL"
    assert [line.split(maxsplit=1)[1].split("  ")[0] for line in lines] == [
        "acls",
        "group offsets",
        "topics",
    ]
    assert lines[0].endswith(f"{'NOT_APPLICABLE':15} the source has no authorizer")
    assert lines[1].endswith(f"{'FAILED':15} not allowed")
    assert lines[2].endswith(f"{'OK':15} -")
    assert json.loads(written(view, as_json=True))[1] == {
        "mirror": "a-to-b",
        "task": "group offsets",
        "state": "FAILED",
        "detail": "not\nallowed",
    }
    assert written(TasksView([])) == "No mirror tasks found\n"

"""Several mirrors beside each other: fan-out, many sources, shared sources, both ways at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.cluster_admin import create_topic
from support.kafka_node import KafkaNode
from support.mirror import Mirror, producing, twinlog_command
from support.positions import committed_offset, visible_records, why_produce_fails
from support.record_ledger import records_in, tails_in
from support.source_data import commit
from support.topology import level, mirror_started, row_of, stop_all, twinlogs, write
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

GROUP = "readers"


@contextmanager
def _two(folder: Path) -> Iterator[tuple[TwinlogProcess, TwinlogProcess]]:
    with twinlogs(folder, 2) as (a, b):
        yield a, b


def _ask(mirror: Mirror, *arguments: str) -> Any:
    """Run the mirrors command, however it ends."""
    where = ("mirrors", "--bootstrap-server", mirror.twinlog.bootstrap, "--mirror", mirror.name)
    return twinlog_command(*where, *arguments)


def _await_offset(broker: TwinlogProcess, of: tuple[str, int], offset: int | None) -> None:
    wait_until(
        lambda: committed_offset(broker, GROUP, *of) == offset,
        lambda: f"{of} has {offset}, not {committed_offset(broker, GROUP, *of)}",
    )


def test_one_source_feeds_two_destinations_that_know_nothing_of_each_other(tmp_path: Path) -> None:
    of = ("orders", 0)
    with twinlogs(tmp_path, 3) as (a, b, c):
        create_topic(a, of[0])
        to_b, to_c = mirror_started(b, a, "to-b", [of[0]]), mirror_started(c, a, "to-c", [of[0]])
        with producing(a, [of[0]]):
            to_b.await_more([of])
            to_c.await_more([of])
            stop_all(to_b, [of])
            to_b.run("--delete", "--mirror", to_b.name)
            to_c.await_more([of])
        write(b, of, "only at B")
        level(to_c, [of])
        assert row_of(to_c, of)["losses"] == []


@pytest.mark.kafka
def test_two_sources_share_a_destination_but_no_topic_and_no_offset(
    kafka_4: KafkaNode, tmp_path: Path, fresh: str
) -> None:
    theirs, ours, both = (f"{fresh}-kafka", 0), (f"{fresh}-twinlog", 0), (f"{fresh}-both", 0)
    with _two(tmp_path) as (source, destination):
        for broker, topics in ((kafka_4, (theirs, both)), (source, (ours, both))):
            for number, of in enumerate(topics):
                create_topic(broker, of[0])
                write(broker, of, f"at {broker.bootstrap}", 5)
                commit(broker, GROUP, {of: 4 + number})
        commit(source, GROUP, {both: 9})
        from_kafka = mirror_started(destination, kafka_4, "kafka", [theirs[0], both[0]])
        level(from_kafka, [theirs, both])
        from_twinlog = Mirror(destination, source, "twinlog")
        from_twinlog.create(groups_sync_interval_ms="200")
        refused = _ask(from_twinlog, "--start", "--topics", f"{ours[0]},{both[0]}")
        assert refused.exit_code == 1
        assert f"belongs to mirror {from_kafka.name}" in refused.stderr, refused.stderr
        level(from_twinlog, [ours])
        for of, offset in ((theirs, 4), (both, 5), (ours, 4)):
            _await_offset(destination, of, offset)
        for broker, of in ((kafka_4, both), (source, both), (source, ours)):
            write(broker, of, "later")
        commit(source, GROUP, {both: 11, ours: 6})
        _await_offset(destination, ours, 6)
        level(from_kafka, [theirs, both])
        level(from_twinlog, [ours])
        assert committed_offset(destination, GROUP, *both) == 5
        assert set(from_twinlog.states()) == {ours}


def test_two_mirrors_of_one_source_share_its_topics_by_their_filters(tmp_path: Path) -> None:
    first, second, third = ("alpha-1", 0), ("beta-1", 0), ("beta-2", 0)
    with _two(tmp_path) as (source, destination):
        for of in (first, second):
            create_topic(source, of[0])
            write(source, of, "before")
        alphas = Mirror(destination, source, "alphas")
        betas = Mirror(destination, source, "betas")
        alphas.create(topics_include="alpha-.*")
        betas.create(topics_include="beta-.*")
        level(alphas, [first])
        level(betas, [second])
        stop_all(alphas, [first])
        alphas.run("--delete", "--mirror", alphas.name)
        for of in (first, second):
            write(source, of, "after")
        create_topic(source, third[0])
        write(source, third, "new")
        level(betas, [second, third])
        assert set(betas.states()) == {second, third}
        write(destination, first, "its own")


def test_a_loop_is_refused_and_mends_itself_when_the_other_way_is_stopped(tmp_path: Path) -> None:
    of = ("orders", 0)
    with _two(tmp_path) as (a, b):
        create_topic(a, of[0])
        there = mirror_started(b, a, "a-to-b", [of[0]])
        write(a, of, "first")
        level(there, [of])
        back = mirror_started(a, b, "b-to-a", [of[0]])
        back.await_row(of, "FAILED", "Detected mirror loop for mirror a-to-b")
        there.await_states([of], "MIRRORING")
        # Being asked for has raised the leader epoch there, which the fetches learn of.
        wait_until(lambda: row_of(there, of)["errorMessage"] is None, "the mirror goes on")
        stop_all(there, [of])
        # Nobody asks for it again.
        back.await_states([of], "MIRRORING")
        write(b, of, "at the other side")
        level(back, [of])
        assert row_of(back, of)["losses"] == []


def test_a_loop_begun_by_mistake_is_taken_back_with_nothing_lost(tmp_path: Path) -> None:
    of = ("orders", 0)
    with _two(tmp_path) as (a, b):
        create_topic(a, of[0])
        there = mirror_started(b, a, "a-to-b", [of[0]])
        write(a, of, "first")
        level(there, [of])
        back = mirror_started(a, b, "b-to-a", [of[0]])
        back.await_states([of], "FAILED")
        assert why_produce_fails(a, of[0]) is not None
        stop_all(back, [of])
        sent = write(a, of, "second")
        level(there, [of])
        assert [value for _, value in visible_records(b, of[0])][-len(sent) :] == sent
        assert row_of(there, of)["losses"] == row_of(back, of)["losses"] == []


def test_a_failback_after_the_mirror_was_deleted_copies_anew_and_keeps_what_was_here(
    tmp_path: Path,
) -> None:
    of = ("orders", 0)
    with _two(tmp_path) as (a, b):
        create_topic(a, of[0])
        there = mirror_started(b, a, "a-to-b", [of[0]])
        write(a, of, "first")
        level(there, [of])
        stop_all(there, [of])
        there.run("--delete", "--mirror", there.name)
        write(b, of, "second")
        before = records_in(a.partition_folder(*of))
        back = mirror_started(a, b, "b-to-a", [of[0]])
        level(back, [of])
        (tail,) = tails_in(a.log_folder)
        assert tail.records == before
        assert [loss["savedTo"] for loss in row_of(back, of)["losses"]] == [str(tail.path)]


def test_each_of_two_clusters_mirrors_other_topics_of_the_other(tmp_path: Path) -> None:
    of_a, of_b = ("made-at-a", 0), ("made-at-b", 0)
    with _two(tmp_path) as (a, b):
        create_topic(a, of_a[0])
        create_topic(b, of_b[0])
        there = mirror_started(b, a, "a-to-b", [of_a[0]])
        back = mirror_started(a, b, "b-to-a", [of_b[0]])
        with producing(a, [of_a[0]]), producing(b, [of_b[0]]):
            there.await_more([of_a])
            back.await_more([of_b])
        commit(a, GROUP, {of_a: 3})
        commit(b, GROUP, {of_b: 5})
        level(there, [of_a])
        level(back, [of_b])
        _await_offset(b, of_a, 3)
        _await_offset(a, of_b, 5)
        stop_all(there, [of_a])
        write(b, of_a, "taken over")
        write(b, of_b, "goes on")
        level(back, [of_b])

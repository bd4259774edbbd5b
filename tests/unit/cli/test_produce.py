"""Producing lines: keys, compression, partitions, retries, refusals."""

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import Ran, run_command
from twinlog.cli import cluster, produce
from twinlog.wire.messages.produce import PRODUCE, ProduceRequest, ProduceResponse
from twinlog.wire.records.batch import iter_headers
from twinlog.wire.records.compression import Compression
from twinlog.wire.records.records import Record, records_of


def produce_command(broker: AnsweringBroker, stdin: bytes, *arguments: str) -> Ran:
    given = ["produce", "--bootstrap-server", broker.bootstrap, "--topic", "a", *arguments]
    return run_command(given, stdin)


def records(broker: AnsweringBroker, partition: int = 0) -> list[Record]:
    log = broker.logs["a", partition]
    return [r for position, header in iter_headers(log) for r in records_of(log, position, header)]


def test_each_line_is_a_record_and_the_topic_is_created(broker: AnsweringBroker) -> None:
    ran = produce_command(broker, b"one\r\ntwo\n\nlast")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert [(r.key, r.value) for r in records(broker)] == [
        (None, b"one"),
        (None, b"two"),
        (None, b""),
        (None, b"last"),
    ]
    (asked, *_) = broker.asked_for(ProduceRequest)
    assert asked.acks == -1


@pytest.mark.parametrize(
    ("flags", "compression"),
    [
        ([], Compression.NONE),
        (["--compression-codec"], Compression.GZIP),
        (["--compression-codec", "zstd"], Compression.ZSTD),
    ],
    ids=str,
)
def test_batches_are_compressed_as_asked(
    broker: AnsweringBroker, flags: list[str], compression: Compression
) -> None:
    produce_command(broker, b"one\n" * 10, *flags)
    ((_, header),) = iter_headers(broker.logs["a", 0])
    assert header.compression == compression
    assert len(records(broker)) == 10


def test_keys_and_nulls_are_read_from_the_line(broker: AnsweringBroker) -> None:
    flags = ["parse.key=true", "key.separator=:", "null.marker=NULL"]
    properties = [word for flag in flags for word in ("--property", flag)]
    produce_command(broker, b"k:v:w\nNULL:x\nk2:NULL\n", *properties)
    assert [(r.key, r.value) for r in records(broker)] == [
        (b"k", b"v:w"),
        (None, b"x"),
        (b"k2", None),
    ]


def test_equal_keys_stay_in_one_partition(broker: AnsweringBroker) -> None:
    broker.logs = {("a", number): b"" for number in range(3)}
    lines = b"".join(b"key%d\t%d\n" % (n % 5, n) for n in range(50))
    produce_command(broker, lines, "--property", "parse.key=true")
    keys = [{r.key for r in records(broker, number)} for number in range(3)]
    assert sum(len(some) for some in keys) == 5
    assert sum(len(records(broker, number)) for number in range(3)) == 50


def test_a_line_without_a_key_is_named(broker: AnsweringBroker) -> None:
    ran = produce_command(broker, b"a\tb\nbad\n", "--property", "parse.key=true")
    assert ran.code == 1
    assert "line 2 has no key: there is no '\\t' in it" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compression-codec", "lzo"], "no compression is called 'lzo'"),
        (["--property", "parse.kee=true"], "no property parse.kee; there are parse.key"),
        (["--property", "parse.key"], "'parse.key' is not key=value"),
        (["--request-required-acks", "2"], "invalid choice: '2'"),
    ],
    ids=str,
)
def test_flags_that_do_not_fit_are_code_2(
    broker: AnsweringBroker, arguments: list[str], message: str
) -> None:
    ran = produce_command(broker, b"", *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_long_input_goes_in_batches_and_a_long_line_in_one(broker: AnsweringBroker) -> None:
    produce_command(broker, b"x" * 700_000 + b"\n" + b"y" * 1_000 + b"\n" + b"z" * 600_000)
    assert [len(r.value or b"") for r in records(broker)] == [700_000, 1_000, 600_000]


def test_a_leader_that_moves_is_followed(
    broker: AnsweringBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "RETRY_DELAY_S", 0)
    broker.produce_errors = [(6, ""), (5, "")]
    assert produce_command(broker, b"one\n").code == 0
    assert [r.value for r in records(broker)] == [b"one"]


def test_a_refusal_is_told_in_the_brokers_words(broker: AnsweringBroker) -> None:
    broker.produce_errors = [(44, "topic a is mirrored by m")]
    ran = produce_command(broker, b"one\n")
    assert ran.code == 1
    assert ran.err == (
        "twinlog produce: records for a-0 were not written: topic a is mirrored by m "
        "(POLICY_VIOLATION).\n"
    )


def test_retries_end(broker: AnsweringBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "RETRY_DELAY_S", 0)
    broker.produce_errors = [(6, "")] * 100
    ran = produce_command(broker, b"one\n")
    assert ran.code == 1
    assert "were not written: NOT_LEADER_OR_FOLLOWER" in ran.err
    assert len(broker.asked_for(ProduceRequest)) == cluster.RETRIES_MAX


def test_an_answer_without_the_partition_is_taken_as_it_is(broker: AnsweringBroker) -> None:
    broker.on(PRODUCE, ProduceResponse(responses=()))
    assert produce_command(broker, b"one\n", "--request-required-acks", "1").code == 0

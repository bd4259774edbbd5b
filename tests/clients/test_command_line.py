"""Our command line is an ordinary client: twinlog, Kafka 4 and Kafka 2.1 answer it alike."""

from collections.abc import Iterator

import pytest

from support.commands import Ran, run_command
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

ONE_COPY = ("--replication-factor", "1")  # brokers before Kafka 2.4 have no defaults to ask for

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(
    params=[
        "twinlog",
        pytest.param("kafka_4", marks=pytest.mark.kafka),
        pytest.param("kafka_2_1", marks=pytest.mark.kafka),
    ]
)
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Give the address of a running broker."""
    if request.param != "twinlog":
        yield request.getfixturevalue(request.param).bootstrap
        return
    twinlog = TwinlogProcess(tmp_path_factory.mktemp("twinlog"))
    try:
        twinlog.start()
        yield twinlog.bootstrap
    finally:
        twinlog.stop()


def run(bootstrap: str, command: str, *arguments: str, stdin: bytes = b"") -> Ran:
    return run_command([command, "--bootstrap-server", bootstrap, *arguments], stdin)


def done(bootstrap: str, command: str, *arguments: str, stdin: bytes = b"") -> str:
    """Run a command that must succeed; give what it printed."""
    ran = run(bootstrap, command, *arguments, stdin=stdin)
    assert ran.code == 0, ran.err
    return ran.out


def test_topics_records_groups_and_configs(bootstrap: str) -> None:
    topic = ("--topic", "cli-orders")
    done(
        bootstrap,
        "topics",
        "--create",
        *topic,
        *ONE_COPY,
        "--partitions",
        "2",
        "--config",
        "segment.ms=70000",
    )
    again = run(bootstrap, "topics", "--create", *topic, *ONE_COPY, "--partitions", "2")
    assert (again.code, "TOPIC_ALREADY_EXISTS" in again.err) == (1, True)
    done(bootstrap, "topics", "--alter", *topic, "--partitions", "3")
    grown = "PartitionCount: 3\tReplicationFactor: 1\tConfigs: segment.ms=70000"
    # The metadata of Kafka's brokers follow its controller a moment later.
    wait_until(lambda: grown in done(bootstrap, "topics", "--describe", *topic), "three partitions")

    altered = run(bootstrap, "configs", "--alter", *topic, "--add-config", "retention.ms=90000")
    if altered.code == 0:
        wait_until(
            lambda: "retention.ms=90000" in done(bootstrap, "configs", "--describe", *topic),
            "the setting is altered",
        )
    else:  # Kafka 2.1 cannot alter a single setting (KIP-339)
        assert "INCREMENTAL_ALTER_CONFIGS" in altered.err

    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    for codec in ("none", "gzip", "snappy", "lz4"):
        lines = b"".join(b"k%d:%s-%d\n" % (n, codec.encode(), n) for n in range(10))
        done(bootstrap, "produce", *topic, *keyed, "--compression-codec", codec, stdin=lines)
    group = ("--group", "cli-billing")
    first = done(bootstrap, "consume", *topic, *group, "--from-beginning", "--max-messages", "15")
    lag = done(bootstrap, "groups", "--describe", *group)
    assert sum(int(line.split()[5]) for line in lag.splitlines()[2:]) == 25
    rest = done(bootstrap, "consume", *topic, *group, "--from-beginning", "--max-messages", "25")
    assert len(first.splitlines()) == 15
    more = done(bootstrap, "consume", *topic, *group, "--from-beginning", "--timeout-ms", "2000")
    read = sorted((first + rest + more).splitlines())
    assert read == sorted(f"{c}-{n}" for c in ("none", "gzip", "snappy", "lz4") for n in range(10))

    done(bootstrap, "groups", "--reset-offsets", *group, *topic, "--to-earliest", "--execute")
    lag = done(bootstrap, "groups", "--describe", *group)
    assert sum(int(line.split()[5]) for line in lag.splitlines()[2:]) == 40
    assert "cli-billing" in done(bootstrap, "groups", "--list").splitlines()
    done(bootstrap, "groups", "--delete", *group)
    assert run(bootstrap, "groups", "--describe", *group).code == 1

    done(bootstrap, "topics", "--delete", *topic)


def test_zstd_where_the_broker_knows_it(bootstrap: str) -> None:
    done(bootstrap, "topics", "--create", "--topic", "cli-zstd", "--partitions", "1", *ONE_COPY)
    lines = b"".join(b"line %d\n" % n for n in range(1_000))
    produced = run(
        bootstrap, "produce", "--topic", "cli-zstd", "--compression-codec", "zstd", stdin=lines
    )
    assert produced.code == 0, produced.err
    read = done(
        bootstrap,
        "consume",
        *("--topic", "cli-zstd", "--from-beginning", "--max-messages", "1000"),
    )
    assert read.encode() == lines


def test_a_broker_without_mirrors_says_so(bootstrap: str) -> None:
    ran = run(bootstrap, "mirrors", "--list")
    assert ran.code == 0 or "LIST_CLUSTER_MIRRORS" in ran.err

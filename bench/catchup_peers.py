"""The four that copy a backlog: twinlog, MirrorMaker 2, Kafka's own follower, and a C program."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bench.processes import Use, await_progress
from bench.sources import Shape, log_bytes
from confluent_kafka import Consumer, TopicPartition

from support.cluster_admin import Broker, offset_asker
from support.java_tools import main_class
from support.jvm import java_server, run_tool
from support.kafka_install import KAFKA_WITH_MIRROR_MAKER, cache_folder
from support.kafka_node import KafkaNode
from support.mirror import Mirror
from support.server_process import ServerProcess, free_port
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until

Peer = Callable[[KafkaNode, Shape, int, Path], Use]

# Settings with which MirrorMaker 2 copies about twice as fast as with its own.
_MIRROR_MAKER_TUNED = {
    "producer.batch.size": "65536",
    "producer.linger.ms": "20",
    "producer.buffer.memory": str(64 << 20),
    "consumer.max.poll.records": "2000",
    "consumer.fetch.max.bytes": str(50 << 20),
}


def twinlog(source: KafkaNode, shape: Shape, total: int, folder: Path) -> Use:
    """Mirror the topic into a fresh twinlog broker."""
    destination = TwinlogProcess(folder)
    try:
        destination.start()
        mirror = Mirror(destination, source)
        mirror.create()
        mirror.start([shape.topic])
        pids = [destination.server.pid]
        meter = await_progress(lambda: log_bytes(destination.log_folder, shape), total, pids)
        use = meter.read(total)
        mirror.assert_equal([(shape.topic, partition) for partition in range(shape.partitions)])
        return use
    finally:
        destination.stop()


def mirror_maker(source: KafkaNode, shape: Shape, total: int, folder: Path) -> Use:
    """Copy the topic with MirrorMaker 2 as it comes into a fresh Kafka."""
    return _mirror_maker(source, shape, total, folder, {})


def mirror_maker_tuned(source: KafkaNode, shape: Shape, total: int, folder: Path) -> Use:
    """Copy the topic with MirrorMaker 2 in large batches into a fresh Kafka."""
    codec = {"producer.compression.type": shape.codec}
    return _mirror_maker(source, shape, total, folder, _MIRROR_MAKER_TUNED | codec)


def _mirror_maker(
    source: KafkaNode, shape: Shape, total: int, folder: Path, tuning: dict[str, str]
) -> Use:
    destination = KafkaNode(folder / "kafka")
    maker = mirror_maker_process(source, destination, shape.topic, shape.partitions, folder, tuning)
    wanted = _records_in(source, shape.topic, shape.partitions)
    try:
        destination.start()
        # The topic is made here so that asking for its end needs no retries; the maker finds it.
        destination.create_topic(f"src.{shape.topic}", partitions=shape.partitions)
        maker.start(lambda: True)
        pids = [destination.server.pid, maker.pid]
        # Its batches are its own, so that records are counted rather than bytes; not too often,
        # for it is the measured broker that answers.
        with closing(offset_asker(destination)) as asker:
            meter = await_progress(
                lambda: _ends(asker, f"src.{shape.topic}", shape.partitions),
                wanted,
                pids,
                poll_s=0.1,
            )
            return meter.read(total)
    finally:
        maker.stop()
        destination.stop()


def _records_in(broker: Broker, topic: str, partitions: int) -> int:
    with closing(offset_asker(broker)) as asker:
        return _ends(asker, topic, partitions)


def _ends(asker: Consumer, topic: str, partitions: int) -> int:
    of = [TopicPartition(topic, partition) for partition in range(partitions)]
    return sum(asker.get_watermark_offsets(each, timeout=20)[1] for each in of)


def mirror_maker_process(
    source: KafkaNode,
    destination: KafkaNode,
    topic: str,
    partitions: int,
    folder: Path,
    tuning: dict[str, str],
) -> ServerProcess:
    """Give MirrorMaker 2, not yet started, that copies a topic to `src.` and its name."""
    replication = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
    storage = ("offset.storage.", "status.storage.", "config.storage.")
    settings = {
        "clusters": "src, dst",
        "src.bootstrap.servers": source.bootstrap,
        "dst.bootstrap.servers": destination.bootstrap,
        "src->dst.enabled": "true",
        "src->dst.topics": topic,
        "dst->src.enabled": "false",
        "tasks.max": str(partitions),
        "sync.topic.acls.enabled": "false",
        **{f"{name}replication.factor": "1" for name in (*replication, *storage)},
        **{f"src.{key}": value for key, value in tuning.items() if key.startswith("consumer.")},
        **{f"dst.{key}": value for key, value in tuning.items() if key.startswith("producer.")},
    }
    properties = folder / "mirror-maker.properties"
    folder.mkdir(parents=True, exist_ok=True)
    properties.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    # As Kafka's own start script gives it: 2 GB at most.
    options = ("-Xmx2g",)
    return java_server("mirror-maker", KAFKA_WITH_MIRROR_MAKER, main, properties, options=options)


def follower(source: KafkaNode, shape: Shape, total: int, folder: Path) -> Use:
    """Let a second, empty Kafka broker of the source's cluster become a replica of the topic."""
    replica = KafkaNode(folder, node_id=_next_node_id(), joins=source, version=source.version)
    try:
        replica.start()
        _reassign(source, shape, [source.node_id, replica.node_id], folder)
        pids = [replica.server.pid]
        meter = await_progress(lambda: log_bytes(replica.log_folder, shape), total, pids)
        use = meter.read(total)
        # The next peer shall find the topic as this one did.
        _await_in_sync(source, shape, {source.node_id, replica.node_id})
        _reassign(source, shape, [source.node_id], folder)
        _await_in_sync(source, shape, {source.node_id})
        return use
    finally:
        replica.stop()


_node_ids = iter(range(2, 1000))


def _next_node_id() -> int:
    return next(_node_ids)


def _await_in_sync(source: KafkaNode, shape: Shape, wanted: set[int]) -> None:
    admin = source.admin()

    def is_so() -> bool:
        topic = admin.list_topics(shape.topic, timeout=20).topics[shape.topic]
        return all(set(partition.isrs) == wanted for partition in topic.partitions.values())

    wait_until(is_so, f"{shape.topic} is in sync at brokers {wanted}", timeout_s=120)


def _reassign(source: KafkaNode, shape: Shape, replicas: list[int], folder: Path) -> None:
    partitions = [
        {"topic": shape.topic, "partition": partition, "replicas": replicas}
        for partition in range(shape.partitions)
    ]
    plan = folder / "reassignment.json"
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    tool = main_class(source.version, "ReassignPartitionsCommand")
    where = ("--bootstrap-server", source.bootstrap)
    run_tool(source.version, tool, *where, "--reassignment-json-file", str(plan), "--execute")


def c_floor(source: KafkaNode, shape: Shape, total: int, folder: Path) -> Use:
    """Send the source's log files to a C program that writes what it receives."""
    program = compiled_floor()
    folder.mkdir(parents=True, exist_ok=True)
    files = [
        str(path)
        for partition in range(shape.partitions)
        for path in sorted(source.partition_folder(shape.topic, partition).glob("*.log"))
    ]
    port = str(free_port())
    receiver = subprocess.Popen(
        [program, "receive", port, str(folder / "received")], stdout=subprocess.PIPE, text=True
    )
    time.sleep(0.2)
    began = time.perf_counter()
    subprocess.run([program, "send", port, *files], check=True)
    said, _ = receiver.communicate(timeout=60)
    wall_s = time.perf_counter() - began
    cpu_s, received, peak = said.split()
    (folder / "received").unlink()
    return Use(wall_s, float(cpu_s), int(peak), int(received))


def compiled_floor() -> str:
    """Compile the C program into the cache, and give its path."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("no C compiler: `cc` is not on the path (Debian: gcc libc6-dev)")
    program = cache_folder() / "floor"
    program.parent.mkdir(parents=True, exist_ok=True)
    code = Path(__file__).with_name("floor.c")
    if not program.exists() or program.stat().st_mtime < code.stat().st_mtime:
        subprocess.run([compiler, "-O2", "-o", str(program), str(code)], check=True)
    return str(program)


PEERS: dict[str, Peer] = {
    "twinlog": twinlog,
    "floor": c_floor,
    "follower": follower,
    "mirror-maker-tuned": mirror_maker_tuned,
    "mirror-maker": mirror_maker,
}

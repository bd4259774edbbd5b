"""Kafka's own log dumper reads what twinlog wrote for its clients, also after kill -9."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.client_drivers import Confluent
from support.cluster_admin import create_topic
from support.java_tools import check_partition_folders
from support.kafka_install import KAFKA_4, require
from support.source_data import CODECS, flush, producer_of, record
from support.twinlog_process import TwinlogProcess

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

ENDINGS: dict[str, Callable[[TwinlogProcess], object]] = {
    "stopped": TwinlogProcess.stop,
    "killed": TwinlogProcess.kill,
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_the_dumper_has_no_complaint_about_what_clients_wrote(
    tmp_path: Path, ending: Callable[[TwinlogProcess], object]
) -> None:
    require(KAFKA_4)
    twinlog = TwinlogProcess(tmp_path / "twinlog")
    try:
        twinlog.start()
        create_topic(twinlog, "written", config={"segment.ms": "100", "index.interval.bytes": "1"})
        for codec in CODECS:
            producer = producer_of(twinlog, compression_type=codec, enable_idempotence="true")
            for number in range(300):
                producer.produce("written", **record(number))
                if number % 50 == 49:
                    flush(producer)
            time.sleep(0.15)
        Confluent().produce(twinlog.bootstrap, "read", [f"{n}" for n in range(10)])
        Confluent().consume(twinlog.bootstrap, "read", "readers", 5)
        ending(twinlog)
        # What a kill left torn or short is mended at the next start.
        twinlog.start()
        assert Confluent().consume(twinlog.bootstrap, "read", "readers", 5) == list("56789")
    finally:
        twinlog.stop()
    folders = [path.parent for path in sorted(twinlog.log_folder.glob("*-*/*.log"))]
    dump = check_partition_folders(dict.fromkeys(folders))
    assert dump.count("| offset:") >= len(CODECS) * 300 + 10
    assert len(list((twinlog.log_folder / "written-0").glob("*.log"))) > 3

"""A source of three brokers in a storm: whatever breaks there, the mirror ends equal by bytes.

By hand: MIRROR_STORM_MINUTES=30 pytest tests/mirror/test_stormy_source.py -k storm
"""

import logging
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from support.kafka_cluster import KafkaCluster
from support.mirror import Mirror, twinlog_command
from support.positions import visible_in_each, visible_records
from support.stormy_faults import StormyFaults
from support.stormy_producers import StormyProducers, Targets
from support.stormy_proof import StormyProof
from support.twinlog_process import TwinlogProcess

pytestmark = [pytest.mark.kafka, pytest.mark.cluster, pytest.mark.slow]

log = logging.getLogger(__name__)

_MINUTES: Final = float(os.environ.get("MIRROR_STORM_MINUTES", "0"))
_SEED: Final = int(os.environ.get("MIRROR_STORM_SEED", "4711"))
_REPORT: Final = os.environ.get("MIRROR_STORM_REPORT")
_FAULTS_A_ROUND: Final = 6
_IN_SHORT: Final = (
    "partitions moved",
    "unclean election, frozen",
    "twinlog killed",
    "broker killed",
    "preferred election",
)

_COUNT: Final = 2
_TARGETS: Final = Targets(
    numbered=("storm-followed", "storm-guarded"),
    transactional="storm-transactions",
    compacted="storm-compacted",
    remembered="storm-kept",
    partitions=_COUNT,
)
_ROLLING: Final = {"segment.bytes": "4194304"}
_LOSING: Final = {
    **_ROLLING,
    "unclean.leader.election.enable": "true",
    "min.insync.replicas": "1",
}
_CLEANED: Final = {
    "cleanup.policy": "compact",
    "segment.ms": "2000",
    "min.cleanable.dirty.ratio": "0.01",
}
_CONFIGS: Final = {
    # The operator lets the mirror follow this one, and decides each time about the next.
    "storm-followed": _LOSING,
    "storm-guarded": _LOSING,
    "storm-transactions": _LOSING,
    "storm-compacted": {**_LOSING, **_CLEANED},
    "storm-kept": {**_ROLLING, "min.insync.replicas": "2"},
}
_GUARDED: Final = ("storm-guarded", "storm-kept")
_SETTING: Final = "mirror.support.unclean.leader.election"


class Storm:
    """The source, its mirror, who writes and what breaks."""

    def __init__(self, source: KafkaCluster, twinlog: TwinlogProcess) -> None:
        self.source: Final = source
        self.twinlog: Final = twinlog
        self.mirror: Final = Mirror(twinlog, source, "storm")
        self.partitions: Final = [(name, each) for name in _CONFIGS for each in range(_COUNT)]
        self.producers: Final = StormyProducers(source, _TARGETS, _SEED)
        losing = [of for of in self.partitions if of[0] != _TARGETS.remembered]
        chance = random.Random(_SEED)
        self.faults: Final = StormyFaults(source, twinlog, self.partitions, losing, chance)
        self.proof: Final = StormyProof(source, self.mirror)
        self.recovered = 0
        self.rounds = 0

    def begin(self) -> None:
        """Make the topics and mirror them."""
        for topic, config in _CONFIGS.items():
            self.source.create_topic(topic, partitions=_COUNT, config=config)
        self.mirror.create()
        self.mirror.start(_CONFIGS)
        self.mirror.await_states(self.partitions, "MIRRORING")
        for topic in _CONFIGS:
            self._support(topic, is_supported=topic not in _GUARDED)

    def round(self, faults: Sequence[str]) -> None:
        """Let the faults happen while all write; heal, and prove that nothing is missing."""
        with self.producers.writing():
            for fault in faults:
                log.info("storm: %s", fault)
                self.faults.strike(fault)
            self.faults.heal()
        self.producers.end_transactions()
        self.proof.await_level(self.partitions, self._recover)
        self.mirror.await_states(self.partitions, "MIRRORING")
        compacted = [of for of in self.partitions if of[0] == _TARGETS.compacted]
        self.proof.compare([of for of in self.partitions if of not in compacted])
        self.proof.compare_compacted(compacted)
        self._assert_kept()
        self._assert_same_transactions()
        self.rounds += 1
        self._report()

    def _recover(self) -> int:
        """Decide as an operator does that the guarded topic shall follow its source, this once.

        Gives how many partitions had failed.
        """
        failed = [row for row in self.mirror.describe() if row["state"] == "FAILED"]
        topics = {str(row["topic"]) for row in failed}
        assert all("unclean" in str(row["errorMessage"]) for row in failed), failed
        assert topics <= {"storm-guarded"}, f"{failed} cannot have lost anything unasked"
        for topic in topics:
            self._support(topic, is_supported=True)
            self.mirror.run("--recover", "--mirror", self.mirror.name, "--topics", topic)
            self.mirror.await_states(self.partitions, "MIRRORING")
            self._support(topic, is_supported=False)
        self.recovered += len(failed)
        return len(failed)

    def _support(self, topic: str, *, is_supported: bool) -> None:
        where = ("configs", "--bootstrap-server", self.twinlog.bootstrap, "--alter")
        value = str(is_supported).lower()
        done = twinlog_command(*where, "--topic", topic, "--add-config", f"{_SETTING}={value}")
        assert done.exit_code == 0, done.stderr

    def _assert_kept(self) -> None:
        """Fail unless all that was acknowledged where nothing may be lost is here."""
        for of, places in self.producers.written.kept.items():
            here = dict(visible_records(self.twinlog, *of))
            amiss = [offset for offset, value in places.items() if here.get(offset) != value]
            assert not amiss, f"{of}: acknowledged, and not here: {amiss[:10]}"

    def _assert_same_transactions(self) -> None:
        """Fail unless what was decided, aborted and left undecided is the same on both sides."""
        undecided = [of for of in self.partitions if of[0] == _TARGETS.transactional]
        there = visible_in_each(self.source, undecided)
        assert there == visible_in_each(self.twinlog, undecided)

    # What is told of it

    def losses(self) -> Counter[str]:
        """Count what the mirror tells that it lost, by kind and topic."""
        found: Counter[str] = Counter()
        for row in self.mirror.describe():
            losses = row["losses"]
            assert isinstance(losses, list)
            for loss in losses:
                found[f"{loss['kind']} {row['topic']}"] += 1
        return found

    def states(self) -> Counter[str]:
        """Count the states that partitions came into."""
        words = (line.partition(" to=")[2].partition(",")[0] for line in self._log_lines())
        return Counter(word for word in words if word)

    def _log_lines(self) -> Iterator[str]:
        with self.twinlog.server.log.open() as lines:
            yield from (line for line in lines if "mirror partition changed state" in line)

    def _report(self) -> None:
        written, proof = self.producers.written, self.proof
        told = (
            f"round {self.rounds}: faults {dict(self.faults.counts)}; "
            f"acknowledged {dict(written.acknowledged)}, refused {dict(written.refused)}, "
            f"transactions {dict(written.transactions)}; compared {proof.equal_batches} batches, "
            f"{proof.equal_bytes} bytes, {proof.keys_compared} keys; states {dict(self.states())}; "
            f"losses {dict(self.losses())}; recovered by the operator {self.recovered}"
        )
        log.info("%s", told)
        if _REPORT:
            with Path(_REPORT).open("a") as file:
                file.write(f"{time.strftime('%H:%M:%S')} {told}\n")


@pytest.mark.timeout(900 + 90 * _MINUTES)
def test_whatever_breaks_in_a_storm_the_mirror_ends_equal_by_bytes(
    trio: KafkaCluster, twinlog: TwinlogProcess
) -> None:
    storm = Storm(trio, twinlog)
    storm.begin()
    until = time.monotonic() + 60 * _MINUTES
    storm.round(_IN_SHORT)
    while time.monotonic() < until:
        storm.round(storm.faults.deal(_FAULTS_A_ROUND))
    losses = storm.losses()
    assert losses, "no election lost anything"
    assert not any(_TARGETS.remembered in kind for kind in losses), losses
    assert storm.states()["ULE_RECOVERY"] > 0
    assert all(storm.producers.written.acknowledged[topic] > 0 for topic in _CONFIGS)
    assert storm.producers.written.transactions["committed"] > 0

"""Plays a mirrored partition's machine by one-line commands: what it is told, what it orders."""

from collections.abc import Iterator
from dataclasses import fields
from struct import pack
from uuid import UUID

from twinlog.config.mirror_start import start_timestamp_ms
from twinlog.mirroring import effects as do
from twinlog.mirroring import events as on
from twinlog.mirroring.alignment import LogFacts
from twinlog.mirroring.batches import identity_of
from twinlog.mirroring.partition import PartitionMirror
from twinlog.mirroring.policy import (
    FROM_EARLIEST,
    GapPolicy,
    MirrorPolicy,
    RetryPolicy,
    StartSpec,
)
from twinlog.mirroring.records import (
    LastMirrorEpoch,
    MirrorPartition,
    PartitionStart,
    PartitionState,
)
from twinlog.mirroring.states import DesiredState, MirrorState
from twinlog.model.epochs import EpochStart
from twinlog.model.errors import ErrorCode
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset

OF = MirrorPartition(mirror="m", topic_id=UUID(int=7), partition=0)
RETRY = RetryPolicy(backoff_ms_min=100, backoff_ms_max=10_000, attempts_max=3)
HALF = 0.5


def batch(base: int, last: int, epoch: int, *, magic: int = 2, crc: int = 0) -> bytes:
    """Give the bytes of a batch of which only the header matters."""
    delta = last - base
    body = pack(">ibI", epoch, magic, crc) + pack(">hi", 0, delta) + bytes(30)
    body += pack(">i", delta + 1) + bytes(8)
    return pack(">qi", base, len(body)) + body


class Player:
    """One machine; ``play`` takes a command, gives what came of it.

    Commands begin with the time (``20ms``); the turn of an answer is always the present one.
    """

    def __init__(self) -> None:
        self.machine = PartitionMirror(OF, MirrorPolicy(failed=RETRY, source=RETRY))
        self._saving: do.SaveState | None = None
        self._last: do.SaveLastMirrorEpoch | None = None
        self._noted: do.SaveStart | None = None

    def play(self, command: str) -> Iterator[str]:
        """Tell the machine, and give its orders and where it is then."""
        time, name, *words = command.split(" ")
        if name == "policy":
            self._set_policy(words)
            return
        event = getattr(self, "_" + name.replace("-", "_"))(*words)
        effects = self.machine.on(event, int(time.removesuffix("ms")), HALF)
        for effect in effects:
            if isinstance(effect, do.SaveState):
                self._saving = effect
            if isinstance(effect, do.SaveLastMirrorEpoch):
                self._last = effect
            if isinstance(effect, do.SaveStart):
                self._noted = effect
            yield _told(effect)
        yield self._where()

    def _where(self) -> str:
        machine = self.machine
        line = f"= {machine.state.name}"
        if machine.trouble:
            line += f" ({machine.trouble})"
        if machine.deadline_ms is not None:
            line += f" until {machine.deadline_ms}ms"
        return line

    def _set_policy(self, words: list[str]) -> None:
        gap = GapPolicy.FAIL if "gap-fail" in words else GapPolicy.CONTINUE
        start = FROM_EARLIEST
        for word in words:
            if word.startswith("start="):
                spec = word.removeprefix("start=")
                start = StartSpec(spec, start_timestamp_ms(spec))
        policy = MirrorPolicy(gap, "unclean" in words, start, failed=RETRY, source=RETRY)
        self.machine = PartitionMirror(OF, policy)

    # Events

    def _start(self, desired: str, *words: str) -> on.Started:
        given = dict(word.split("=", 1) for word in words if "=" in word)
        actual = None
        if "actual" in given:
            actual = PartitionState(
                state=MirrorState[given["actual"]],
                state_epoch=7,
                previous_state=MirrorState[given.get("previous", "UNKNOWN")],
                error=given.get("error"),
                retry_attempt=int(given.get("attempt", "0")),
            )
        last = None
        if "last" in given:
            epoch, end = given["last"].split("@")
            written = int(given.get("wrote", "-1"))
            last = LastMirrorEpoch(epoch=int(epoch), log_end=int(end), own_from=written)
        own = LeaderEpoch(int(given.get("own", "20")))
        begun = None
        if "begun" in given:
            spec, offsets = given["begun"].split("@")
            skipped_from, offset = offsets.split("..")
            begun = PartitionStart(
                spec=spec,
                offset=int(offset),
                skipped_from=int(skipped_from),
                leader_epoch=5,
                is_over="over" in words,
            )
        now, before = (LeaderEpoch(int(epoch)) for epoch in given.get("handed", "-1,-1").split(","))
        return on.Started(DesiredState[desired], actual, last, own, begun, (now, before))

    def _saved(self) -> on.StateSaved:
        assert self._saving is not None
        return on.StateSaved(self._saving.state, self._saving.expected_state_epoch + 1)

    def _last_saved(self) -> on.LastMirrorEpochSaved:
        assert self._last is not None
        effect = self._last
        last = LastMirrorEpoch(epoch=effect.epoch, log_end=effect.log_end, own_from=effect.own_from)
        return on.LastMirrorEpochSaved(last)

    def _begun(self) -> on.StartSaved:
        assert self._noted is not None
        return on.StartSaved(self._noted.start, self.machine.turn)

    def _at(self, offset: str) -> on.OffsetAtFound:
        found = None if offset == "none" else Offset(int(offset))
        return on.OffsetAtFound(found, self.machine.turn)

    def _desired(self, desired: str) -> on.DesiredChanged:
        return on.DesiredChanged(DesiredState[desired])

    def _recover(self) -> on.RecoverAsked:
        return on.RecoverAsked()

    def _epoch(self, epoch: str) -> on.LeaderEpochSeen:
        return on.LeaderEpochSeen(LeaderEpoch(int(epoch)))

    def _log(self, offsets: str, *words: str) -> on.LogRead:
        start, end = offsets.split("..")
        epochs = tuple(
            EpochStart(LeaderEpoch(int(e)), Offset(int(o)))
            for e, o in (word.split("@") for word in words if "@" in word and "=" not in word)
        )
        given = dict(word.split("=") for word in words if "=" in word)
        facts = LogFacts(
            Offset(int(start)),
            Offset(int(end)),
            epochs,
            int(given.get("open", "0")),
            "reset" in words,
            identity_of(_batch_of(given["last"])) if "last" in given else None,
        )
        return on.LogRead(facts, self.machine.turn)

    def _mirrors(self, *words: str) -> on.SourceMirrorsRead:
        agreed, began = None, None
        if words and words[-1].startswith("began="):
            began = Offset(int(words[-1].removeprefix("began=")))
            words = words[:-1]
        if words and "@" in words[0]:
            epoch, end = words[0].split("@")
            agreed = LastMirrorEpoch(epoch=int(epoch), log_end=int(end))
        problem = " ".join(words) if words and agreed is None else None
        return on.SourceMirrorsRead(agreed, problem, self.machine.turn, began)

    def _leader(self, node: str, epoch: str) -> on.SourceLeaderFound:
        return on.SourceLeaderFound(BrokerId(int(node)), LeaderEpoch(int(epoch)), self.machine.turn)

    def _moved(self, node: str, epoch: str) -> on.SourceLeaderMoved:
        return on.SourceLeaderMoved(BrokerId(int(node)), LeaderEpoch(int(epoch)))

    def _range(self, offsets: str) -> on.SourceRangeFound:
        start, end = offsets.split("..")
        return on.SourceRangeFound(Offset(int(start)), Offset(int(end)), self.machine.turn)

    def _end(self, asked: str, epoch: str, end: str) -> on.EpochEndFound:
        return on.EpochEndFound(
            LeaderEpoch(int(asked)), LeaderEpoch(int(epoch)), Offset(int(end)), self.machine.turn
        )

    def _refused(self, code: str) -> on.SourceRefused:
        return on.SourceRefused(ErrorCode[code], "says the source", self.machine.turn)

    def _lost(self, *words: str) -> on.SourceLost:
        return on.SourceLost(" ".join(words))

    def _fetched(self, offset: str, high_watermark: str, start: str, *words: str) -> on.Fetched:
        """Give batches, as ``_batch_of`` reads them."""
        raw = b"".join(_batch_of(word) for word in words)
        return on.Fetched(
            Offset(int(offset)),
            Offset(int(high_watermark)),
            Offset(int(start)),
            memoryview(raw),
            self.machine.turn,
        )

    def _diverged(self) -> on.Diverged:
        return on.Diverged(self.machine.turn)

    def _append_failed(self, offset: str, *words: str) -> on.AppendFailed:
        return on.AppendFailed(Offset(int(offset)), " ".join(words), Offset(int(offset)))

    def _done(self) -> on.StepDone:
        return on.StepDone(self.machine.turn)

    def _step_failed(self, *words: str) -> on.StepFailed:
        return on.StepFailed(" ".join(words), self.machine.turn)

    def _converged(self) -> on.ReplicasConverged:
        return on.ReplicasConverged(self.machine.turn)

    def _committed(self) -> on.LogCommitted:
        return on.LogCommitted(self.machine.turn)

    def _time(self) -> on.TimeCame:
        return on.TimeCame()


def _batch_of(word: str) -> bytes:
    """Read base-last@epoch; ``old`` after it makes it of message format v1, ``#7`` its CRC 7."""
    word, _, crc = word.partition("#")
    offsets, epoch = word.removesuffix("old").split("@")
    base, last = offsets.split("-")
    magic = 1 if word.endswith("old") else 2
    return batch(int(base), int(last), int(epoch), magic=magic, crc=int(crc or 0))


def _told(effect: do.Effect) -> str:
    """Give an effect in a line, without what only the loop needs."""
    shown = []
    for field in fields(effect):
        value = getattr(effect, field.name)
        if field.name == "turn":
            continue
        if isinstance(value, bytes | memoryview):
            value = f"{len(value)} bytes"
        elif isinstance(value, MirrorState):
            value = value.name
        shown.append(f"{field.name}={value}")
    return f"{type(effect).__name__}({', '.join(shown)})"

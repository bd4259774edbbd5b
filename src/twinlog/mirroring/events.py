"""What can happen to a mirrored partition.

Answers carry the ``turn`` of the question they belong to: an answer to a question that is no longer
of interest is passed over.
"""

from dataclasses import dataclass

from twinlog.mirroring.alignment import LogFacts, still_agreed
from twinlog.mirroring.records import LastMirrorEpoch, PartitionStart, PartitionState
from twinlog.mirroring.states import DesiredState, MirrorState
from twinlog.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, Offset
from twinlog.wire.primitives import Buffer


@dataclass(frozen=True, slots=True)
class Started:
    """This broker leads the partition; what is told of it is durable, None where nothing is."""

    desired: DesiredState
    actual: PartitionState | None
    last_mirror_epoch: LastMirrorEpoch | None
    leader_epoch: LeaderEpoch
    start: PartitionStart | None = None
    handed_over: tuple[LeaderEpoch, LeaderEpoch] = (NO_EPOCH, NO_EPOCH)
    """Our epochs when the log was given to another mirror than before: last, and before that."""

    @property
    def agreed(self) -> LastMirrorEpoch | None:
        """The last mirror epoch, unless another mirror had the log since."""
        last = self.last_mirror_epoch
        return None if last is None else still_agreed(last, last.own_from, self.handed_over[0])


@dataclass(frozen=True, slots=True)
class DesiredChanged:
    """An operator asked for another state."""

    desired: DesiredState


@dataclass(frozen=True, slots=True)
class RecoverAsked:
    """An operator asks a FAILED partition to try again, whatever its attempts."""


@dataclass(frozen=True, slots=True)
class StateSaved:
    """The state record is committed."""

    state: MirrorState
    state_epoch: int


@dataclass(frozen=True, slots=True)
class LastMirrorEpochSaved:
    """The last mirror epoch is committed."""

    saved: LastMirrorEpoch


@dataclass(frozen=True, slots=True)
class StartSaved:
    """It is committed where the partition begins; None is the source's earliest record."""

    start: PartitionStart | None
    turn: int


@dataclass(frozen=True, slots=True)
class LeaderEpochSeen:
    """The cluster image shows our leader epoch."""

    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class LogRead:
    """What the local log is now."""

    facts: LogFacts
    turn: int


@dataclass(frozen=True, slots=True)
class SourceMirrorsRead:
    """What the source says of its own mirrors of our cluster.

    ``agreed`` is the last mirror epoch it has of us, None when it has none or cannot tell;
    ``problem`` says why this partition may not be started now. ``began`` is where a mirror of us
    began over there: what is below it, the source never had.
    """

    agreed: LastMirrorEpoch | None
    problem: str | None
    turn: int
    began: Offset | None = None


@dataclass(frozen=True, slots=True)
class SourceLeaderFound:
    """The source's metadata names a leader."""

    node: BrokerId
    epoch: LeaderEpoch
    turn: int


@dataclass(frozen=True, slots=True)
class SourceLeaderMoved:
    """A metadata refresh that nobody here asked for names the leader (perhaps still the same)."""

    node: BrokerId
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class SourceRangeFound:
    """Where the source's records begin and end (exclusive)."""

    start: Offset
    end: Offset
    turn: int


@dataclass(frozen=True, slots=True)
class OffsetAtFound:
    """Where the first record of the time that was asked for lies; None if there is none yet."""

    offset: Offset | None
    turn: int


@dataclass(frozen=True, slots=True)
class EpochEndFound:
    """The source's answer about ``asked``: the highest epoch at or below it, and its end."""

    asked: LeaderEpoch
    epoch: LeaderEpoch
    end: Offset
    turn: int


@dataclass(frozen=True, slots=True)
class SourceRefused:
    """The source answered a question or a fetch with an error, or could not be asked."""

    code: int
    why: str
    turn: int


@dataclass(frozen=True, slots=True)
class SourceLost:
    """The source's topic is gone or is another one: nothing will mend that by itself."""

    why: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """The source's answer to FetchFrom; ``records`` may be empty or end in a cut batch."""

    offset: Offset
    high_watermark: Offset
    log_start: Offset
    records: Buffer
    turn: int


@dataclass(frozen=True, slots=True)
class Diverged:
    """The source says that the epoch we fetched last ended earlier there (Fetch v12)."""

    turn: int


@dataclass(frozen=True, slots=True)
class AppendFailed:
    """Fetched batches were not written; ``offset`` is where the trouble lies."""

    offset: Offset
    why: str
    log_end: Offset


@dataclass(frozen=True, slots=True)
class StepDone:
    """A local order was carried out: truncated, restarted, markers or reset written."""

    turn: int


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A local order could not be carried out."""

    why: str
    turn: int


@dataclass(frozen=True, slots=True)
class ReplicasConverged:
    """Every assigned replica has the same log as ours."""

    turn: int


@dataclass(frozen=True, slots=True)
class LogCommitted:
    """Every in-sync replica has the same log as ours."""

    turn: int


@dataclass(frozen=True, slots=True)
class TimeCame:
    """The machine's ``deadline_ms`` has passed."""


Event = (
    Started
    | DesiredChanged
    | RecoverAsked
    | StateSaved
    | LastMirrorEpochSaved
    | StartSaved
    | LeaderEpochSeen
    | LogRead
    | SourceMirrorsRead
    | SourceLeaderFound
    | SourceLeaderMoved
    | SourceRangeFound
    | OffsetAtFound
    | EpochEndFound
    | SourceRefused
    | SourceLost
    | Fetched
    | Diverged
    | AppendFailed
    | StepDone
    | StepFailed
    | ReplicasConverged
    | LogCommitted
    | TimeCame
)

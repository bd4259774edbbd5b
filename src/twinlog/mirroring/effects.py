"""What a mirrored partition asks its loop to do, in order.

Every effect may be carried out twice: a broker can die between any two of them, and the machine
made afterwards decides anew from what is durable.
"""

from dataclasses import dataclass

from twinlog.mirroring.records import PartitionStart
from twinlog.mirroring.states import MirrorState
from twinlog.model.ids import BrokerId, LeaderEpoch, Offset
from twinlog.wire.primitives import Buffer


@dataclass(frozen=True, slots=True)
class SaveState:
    """Write the state to ``__mirror_state``; answer StateSaved once it is committed."""

    state: MirrorState
    expected_state_epoch: int
    previous: MirrorState
    error: str | None
    retry_attempt: int


@dataclass(frozen=True, slots=True)
class SaveLastMirrorEpoch:
    """Write the last mirror epoch; answer LastMirrorEpochSaved once it is committed."""

    epoch: LeaderEpoch
    log_end: Offset
    own_from: LeaderEpoch


@dataclass(frozen=True, slots=True)
class SaveStart:
    """Write where the partition begins (None: at the earliest); answer StartSaved when committed.

    A RestartAt that follows from it is not ordered before: whoever takes over begins there too.
    """

    start: PartitionStart | None
    turn: int


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Answer LogRead; look for a producer reset from ``pid_reset_from`` on (None: do not)."""

    pid_reset_from: Offset | None
    turn: int


@dataclass(frozen=True, slots=True)
class ReadSourceMirrors:
    """Ask the source for its mirrors of our cluster; answer SourceMirrorsRead."""

    turn: int


@dataclass(frozen=True, slots=True)
class FindSourceLeader:
    """Refresh the source's metadata; answer SourceLeaderFound."""

    turn: int


@dataclass(frozen=True, slots=True)
class AskSourceRange:
    """Ask the source's leader where its records begin and end; answer SourceRangeFound."""

    node: BrokerId
    leader_epoch: LeaderEpoch
    turn: int


@dataclass(frozen=True, slots=True)
class AskOffsetAt:
    """Ask the source's leader for its first record of this time or later; answer OffsetAtFound."""

    node: BrokerId
    leader_epoch: LeaderEpoch
    timestamp_ms: int
    turn: int


@dataclass(frozen=True, slots=True)
class AskEpochEnd:
    """Ask the source's leader where ``epoch`` ended; answer EpochEndFound."""

    node: BrokerId
    leader_epoch: LeaderEpoch
    epoch: LeaderEpoch
    turn: int


@dataclass(frozen=True, slots=True)
class FetchFrom:
    """Keep this partition in the fetches to ``node``, next from ``offset``."""

    node: BrokerId
    leader_epoch: LeaderEpoch
    offset: Offset
    last_fetched_epoch: LeaderEpoch
    turn: int


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Take this partition out of the fetches; an answer under way is passed over."""


@dataclass(frozen=True, slots=True)
class Append:
    """Write fetched batches unchanged; on failure answer AppendFailed."""

    batches: Buffer


@dataclass(frozen=True, slots=True)
class BeginAt:
    """Let the empty log begin at ``start``, the base offset of the batch that is appended next.

    A source's log can start inside a batch (DeleteRecords); the whole batch is mirrored.
    """

    start: Offset


@dataclass(frozen=True, slots=True)
class RaiseLogStart:
    """Move the log start up to the source's."""

    start: Offset


@dataclass(frozen=True, slots=True)
class BumpEpoch:
    """Have our leader epoch raised to at least ``at_least``; LeaderEpochSeen follows."""

    at_least: LeaderEpoch


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Cut the log at ``end`` on every in-sync replica, note what was cut; answer StepDone."""

    end: Offset
    cause: str
    turn: int


@dataclass(frozen=True, slots=True)
class RestartAt:
    """Drop all records, begin again at ``start``, note what was dropped; answer StepDone.

    From ``ours_from`` on, records are not known to have come from the source: they are saved
    before. None when all came from there, and the source has deleted them.
    """

    start: Offset
    cause: str
    turn: int
    ours_from: Offset | None


@dataclass(frozen=True, slots=True)
class NoteGap:
    """Records from ``first`` to ``end`` (exclusive) will never be here: tell the operator.

    A RestartAt follows, and is not begun before the gap is written down.
    """

    first: Offset
    end: Offset
    cause: str


@dataclass(frozen=True, slots=True)
class AwaitReplicas:
    """Wait until every assigned replica has our log end; answer ReplicasConverged."""

    turn: int


@dataclass(frozen=True, slots=True)
class AwaitCommit:
    """Wait until every in-sync replica has our log end; answer LogCommitted."""

    turn: int


@dataclass(frozen=True, slots=True)
class AppendAbortMarkers:
    """Abort every open transaction in our own epoch, replicated; answer StepDone."""

    turn: int


@dataclass(frozen=True, slots=True)
class AppendPidReset:
    """Write the producer reset in our own epoch, replicated; answer StepDone."""

    turn: int


Effect = (
    SaveState
    | SaveLastMirrorEpoch
    | SaveStart
    | ReadLog
    | ReadSourceMirrors
    | FindSourceLeader
    | AskSourceRange
    | AskOffsetAt
    | AskEpochEnd
    | FetchFrom
    | StopFetching
    | BeginAt
    | Append
    | RaiseLogStart
    | BumpEpoch
    | TruncateTo
    | RestartAt
    | NoteGap
    | AwaitReplicas
    | AwaitCommit
    | AppendAbortMarkers
    | AppendPidReset
)

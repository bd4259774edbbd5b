"""What is known of the mirrors at work on this broker: for whoever describes or nudges them."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

from twinlog.mirroring.lag import LagInputs
from twinlog.mirroring.records import MirrorPartition, RecordLoss
from twinlog.mirroring.states import MirrorState
from twinlog.mirroring.throttle import Throttle
from twinlog.model.ids import TopicPartition

TOPICS: Final = "topics"
CONFIGS: Final = "topic configs"
GROUPS: Final = "group offsets"
ACLS: Final = "acls"
SYNC_TASKS: Final = (TOPICS, CONFIGS, GROUPS, ACLS)
"""The tasks of a mirror that are done again and again; fetches have names of their own."""


class LossKind(Enum):
    """How records were lost."""

    GAP = "gap"
    """The source had deleted them before they came."""
    TRUNCATION = "truncation"
    """They were cut off here: the source does not have them."""
    RESTART = "restart"
    """All there was here was dropped, to begin anew."""


class MirroredPartition(Protocol):
    """What a description needs of a partition that is mirrored here."""

    @property
    def state(self) -> MirrorState:
        """Its last committed state."""
        ...

    @property
    def lag(self) -> LagInputs:
        """What the source has told."""
        ...

    @property
    def trouble(self) -> str | None:
        """What it is waiting out."""
        ...

    @property
    def is_aligned(self) -> bool:
        """Whether its log is known to hold nothing but the source's records."""
        ...


@dataclass(slots=True)
class MirrorCounts:
    """What a mirror did since the broker started; also while it is begun again."""

    fetches: int = 0
    fetch_failures: int = 0
    fetched_bytes: int = 0
    losses: Counter[LossKind] = field(default_factory=Counter)
    lost_records: Counter[LossKind] = field(default_factory=Counter)
    unsure_losses: dict[MirrorPartition, list[RecordLoss]] = field(default_factory=dict)
    """Losses whose write was not seen to succeed: not counted, though it may have."""
    task_errors: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class MirrorStatus:
    """One mirror at work: its partitions, and the last error of each of its tasks."""

    counts: MirrorCounts = field(default_factory=MirrorCounts)
    begun_at_ms: int = 0
    put_off_at_ms: int = -1
    """When the source last answered that its quota is used up: it is there, and tells nothing."""
    throttled: frozenset[TopicPartition] = frozenset()
    """Partitions that are fetched at the broker's rate for all of them."""
    partitions: dict[TopicPartition, MirroredPartition] = field(default_factory=dict)
    task_errors: dict[str, str | None] = field(default_factory=dict)
    task_notes: dict[str, str] = field(default_factory=dict)
    """Why a task has nothing to do, where that is not for ever."""
    refresh_wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when everything at the source should be looked at now."""
    leaders_wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the source's partitions may have other leaders."""


class MirrorBoard:
    """All mirrors at work on this broker, by name."""

    def __init__(self) -> None:
        self.statuses: Final[dict[str, MirrorStatus]] = {}
        self.counts: Final[dict[str, MirrorCounts]] = {}
        self.task_errors: Final[Counter[str]] = Counter()
        """Those of all mirrors, also of deleted ones."""
        self.recover_wanted: Final[set[TopicPartition]] = set()
        self.wake: Final = asyncio.Event()
        self.throttle: Final = Throttle()
        """What all throttled partitions of this broker may fetch together."""

    def begin(self, mirror: str, status: MirrorStatus, now_ms: int) -> None:
        """Take in a mirror that goes to work here; its numbers go on where they were."""
        status.begun_at_ms = now_ms
        status.counts = self.counts.setdefault(mirror, status.counts)
        self.statuses[mirror] = status

    def end(self, mirror: str, *, is_deleted: bool) -> None:
        """Let go of a mirror that is at work here no more."""
        self.statuses.pop(mirror, None)
        if is_deleted:
            self.counts.pop(mirror, None)

    def task_failed(self, status: MirrorStatus, task: str, why: str) -> None:
        """Note that something done again and again has failed this time."""
        status.task_errors[task] = why
        status.counts.task_errors[task] += 1
        self.task_errors[task] += 1

    def status_of(self, mirror: str) -> MirrorStatus | None:
        """Give a mirror's status; None while it is not at work here."""
        return self.statuses.get(mirror)

    def nudge(self, mirror: str) -> None:
        """Let a mirror look at its source now, and not only when its time comes."""
        status = self.statuses.get(mirror)
        if status is not None:
            status.refresh_wanted.set()

    def recover(self, partitions: list[TopicPartition]) -> None:
        """Let partitions that are FAILED try again."""
        self.recover_wanted.update(partitions)
        self.wake.set()

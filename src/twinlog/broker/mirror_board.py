"""What is known of the mirrors at work on this broker: for whoever describes or nudges them."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Protocol

from twinlog.mirroring.lag import LagInputs
from twinlog.mirroring.states import MirrorState
from twinlog.model.ids import Offset, TopicPartition

LOSSES_KEPT_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Loss:
    """Records that were cut off here, or that will never come; ``end`` is exclusive."""

    of: TopicPartition
    first: Offset
    end: Offset
    cause: str
    at_wall_ms: int


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


@dataclass(slots=True)
class MirrorStatus:
    """One mirror at work: its partitions, and the last error of each of its tasks."""

    partitions: dict[TopicPartition, MirroredPartition] = field(default_factory=dict)
    task_errors: dict[str, str | None] = field(default_factory=dict)
    refresh_wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when everything at the source should be looked at now."""
    leaders_wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the source's partitions may have other leaders."""


class MirrorBoard:
    """All mirrors at work on this broker, by name."""

    def __init__(self) -> None:
        self.statuses: Final[dict[str, MirrorStatus]] = {}
        self.losses: Final[deque[Loss]] = deque(maxlen=LOSSES_KEPT_MAX)
        self.recover_wanted: Final[set[TopicPartition]] = set()
        self.wake: Final = asyncio.Event()

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

"""How one alignment can end.

What each of them leads to is decided by the partition's machine.
"""

from dataclasses import dataclass
from typing import Final

from twinlog.mirroring.alignment import LogFacts, SourceFacts
from twinlog.model.ids import BrokerId, Offset

IS_ANOTHER_TOPIC: Final = (
    "its topic was recreated or restored, so its records are not those mirrored so far; stop the "
    "mirror for this topic, delete the topic here and start it again"
)


@dataclass(frozen=True, slots=True)
class Aligned:
    """The local log is a prefix of the source's; it can be followed from its end."""

    node: BrokerId
    source: SourceFacts
    local: LogFacts


@dataclass(frozen=True, slots=True)
class EpochRaised:
    """Our leader epoch is far enough above the source's."""


@dataclass(frozen=True, slots=True)
class Doubtful:
    """The answers would cost records: ask everything once more before acting on them.

    ``offset`` is where the log would be cut or begun; of two answers the cheaper one counts.
    """

    verdict: str
    offset: Offset
    looks: int = 1
    """How often in a row the answers came to this verdict."""


@dataclass(frozen=True, slots=True)
class TailLost:
    """The source lost records that are here, by an unclean election; recovery is allowed."""

    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The partition cannot be followed."""

    why: str
    is_retryable: bool


Conclusion = Aligned | EpochRaised | Doubtful | TailLost | Refused

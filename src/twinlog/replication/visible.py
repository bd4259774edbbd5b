"""How far a reader may see: log end, high watermark or last stable offset, by who it is."""

from enum import Enum
from typing import Final

from twinlog.model.ids import Offset

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class Reader(Enum):
    """Who reads, as far as it matters to what it may see."""

    FOLLOWER = "follower"
    CONSUMER = "consumer"
    COMMITTED_CONSUMER = "read_committed consumer"

    @staticmethod
    def of(replica_id: int, isolation_level: int) -> "Reader":
        """Tell who sent a Fetch or ListOffsets; a replica id below 0 is no replica's."""
        if replica_id >= 0:
            return Reader.FOLLOWER
        if isolation_level == READ_COMMITTED:
            return Reader.COMMITTED_CONSUMER
        return Reader.CONSUMER


def visible_end(
    reader: Reader, *, log_end: Offset, high_watermark: Offset, last_stable: Offset
) -> Offset:
    """Give the first offset that ``reader`` may not see yet.

    A follower sees all, or nothing would ever be replicated. A consumer sees what no change of
    leader can take back. A read_committed consumer sees no record of a transaction still open.
    """
    match reader:
        case Reader.FOLLOWER:
            return log_end
        case Reader.CONSUMER:
            return high_watermark
        case Reader.COMMITTED_CONSUMER:
            return min(last_stable, high_watermark)

"""What a control batch says: which marker it is, and from which coordinator."""

from typing import NamedTuple

from twinlog.model.errors import CorruptBatchError, WireError
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import BatchHeader
from twinlog.wire.records.control import ControlType, control_type_of, coordinator_epoch_of
from twinlog.wire.records.records import records_of

NO_COORDINATOR_EPOCH = -1
_ENDS = (ControlType.ABORT, ControlType.COMMIT)


class Marker(NamedTuple):
    """The one record of a control batch."""

    type: ControlType | None
    """None for a type that this version does not know."""
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    timestamp: int = -1

    @property
    def ends_transaction(self) -> bool:
        """Whether this is a commit or an abort."""
        return self.type in _ENDS


def marker_of(buffer: Buffer, position: int, header: BatchHeader) -> Marker | None:
    """Read the marker of the control batch at ``position``; None when compaction took it away.

    Raises CorruptBatchError when the batch holds no such record.
    """
    records = records_of(buffer, position, header)
    if not records:
        return None
    try:
        kind = control_type_of(records[0].key)
        if kind not in _ENDS:
            return Marker(kind)
        return Marker(kind, coordinator_epoch_of(records[0].value), records[0].timestamp)
    except WireError as error:
        raise CorruptBatchError(header.base_offset, str(error)) from error

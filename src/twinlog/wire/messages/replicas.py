"""DescribeLogDirs: v1-5.

v2: flexible. v3: an error of the whole. v4: size of the disk (KIP-827). v5: cordoned folders
(KIP-1066).
"""

from typing import Annotated, Final

from twinlog.wire.api_keys import ApiKey
from twinlog.wire.primitives import Int16, Int32, Int64
from twinlog.wire.schema import Api, message, since


@message
class LogDirTopic:
    topic: str
    partitions: tuple[Int32, ...]


@message
class DescribeLogDirsRequest:
    topics: tuple[LogDirTopic, ...] | None = None


@message
class DescribedLogPartition:
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64 = 0
    is_future_key: bool = False


@message
class DescribedLogTopic:
    name: str
    partitions: tuple[DescribedLogPartition, ...]


@message
class DescribedLogDir:
    error_code: Int16 = 0
    log_dir: str
    topics: tuple[DescribedLogTopic, ...]
    total_bytes: Annotated[Int64, since(4)] = -1
    usable_bytes: Annotated[Int64, since(4)] = -1
    is_cordoned: Annotated[bool, since(5)] = False


@message
class DescribeLogDirsResponse:
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3)] = 0
    results: tuple[DescribedLogDir, ...]


DESCRIBE_LOG_DIRS: Final = Api(
    ApiKey.DESCRIBE_LOG_DIRS,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    1,
    5,
    flexible_since=2,
)

"""A topic is not started in a mirror before its stop in another one is through."""

from pathlib import Path

import pytest

from support.mirrored_pair import Pair, create_mirror, mirrored_pair
from twinlog.broker.mirrors import local_log
from twinlog.model.errors import DiskError, ErrorCode
from twinlog.wire.messages.mirrors import (
    START_MIRROR_TOPICS,
    MirrorTopicResult,
    StartMirrorTopicsRequest,
)

pytestmark = pytest.mark.slow


async def start_in_n(pair: Pair) -> MirrorTopicResult:
    request = StartMirrorTopicsRequest(mirror_name="n", include_patterns=("t",))
    (result,) = (await pair.destination.ask(START_MIRROR_TOPICS, request)).topics
    return result


async def test_a_topic_is_started_in_another_mirror_once_its_stop_is_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise DiskError("no space left on device")

    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t")
        await pair.produce("t", 2)
        await pair.create()
        address = {"bootstrap.servers": str(pair.source.address)}
        assert not (await create_mirror(pair.destination, "n", address)).error_code
        await pair.start("t")
        await pair.until_level("t")
        assert (await start_in_n(pair)).error_code == ErrorCode.TOPIC_ALREADY_IN_CLUSTER_MIRROR
        with monkeypatch.context() as patched:
            patched.setattr(local_log, "write_pid_reset", refuse)
            await pair.stop("t")
            refused = await start_in_n(pair)
            assert refused.error_code == ErrorCode.MIRROR_TOPIC_BEING_STOPPED
            assert "is not yet let go of by mirror m: t-0 is " in str(refused.error_message)
        await pair.until_state("STOPPED", "t")
        assert not (await start_in_n(pair)).error_code
        await pair.until_state("MIRRORING", "t")

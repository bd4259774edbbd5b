"""Who asked for what, and how partitions changed state: each is a line with all that matters."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from support.brokers import local_broker
from support.mirrored_pair import QUICK, Pair, mirrored_pair
from twinlog.broker.mirrors.audit import (
    TOPICS_TOLD_MAX,
    UNFINISHED,
    audited,
    cause_of,
    tell_altered,
    tell_by_itself,
)
from twinlog.mirroring.states import NEXT_STATES, MirrorState
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.network.peer import Peer
from twinlog.wire.messages import mirrors


@pytest.fixture
def context() -> Any:
    return SimpleNamespace(client_id="tool", peer=Peer("10.0.0.9", 4711, "PLAINTEXT"))


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="twinlog.state-change")
    return caplog


def fields_of(lines: pytest.LogCaptureFixture) -> dict[str, Any]:
    return vars(lines.records[-1])


async def test_a_request_is_told_with_who_asked_and_what_came_of_it(
    context: Any, lines: pytest.LogCaptureFixture
) -> None:
    answer = mirrors.MirrorTopicsResponse(
        topics=(
            mirrors.MirrorTopicResult(topic_name="a"),
            mirrors.MirrorTopicResult(topic_name="b", error_code=139, error_message="not its own"),
        )
    )

    @audited("stop")
    async def handle(
        request: mirrors.StopMirrorTopicsRequest, context: Any
    ) -> mirrors.MirrorTopicsResponse:
        return answer

    request = mirrors.StopMirrorTopicsRequest(
        mirror_name="m", topics=(), patterns=("a.*",), state_offset=7
    )
    assert await handle(request, context) is answer
    told = fields_of(lines)
    assert told["msg"] == "mirror was asked"
    assert (told["verb"], told["mirror"], told["patterns"]) == ("stop", "m", "a.*")
    assert (told["topics"], told["refused"]) == ("a", "b: TOPIC_NOT_IN_CLUSTER_MIRROR")
    assert (told["client_id"], told["address"]) == ("tool", "10.0.0.9:4711")
    assert told["decided_at"] == 7


async def test_who_asked_is_told_also_if_nobody_waits_for_the_answer(
    context: Any, lines: pytest.LogCaptureFixture
) -> None:
    @audited("stop")
    async def handle(
        request: mirrors.StopMirrorTopicsRequest, context: Any
    ) -> mirrors.MirrorTopicsResponse:
        await asyncio.Event().wait()
        raise AssertionError

    request = mirrors.StopMirrorTopicsRequest(mirror_name="m", topics=(), patterns=("a.*",))
    asking = asyncio.ensure_future(handle(request, context))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    told = fields_of(lines)
    assert (told["verb"], told["patterns"], told["client_id"]) == ("stop", "a.*", "tool")
    assert told["error"] == UNFINISHED
    tell_altered("m", ["ssl.key.password"], asyncio.CancelledError(), context)
    assert fields_of(lines)["error"] == UNFINISHED


async def test_the_values_of_settings_are_never_told(
    context: Any, lines: pytest.LogCaptureFixture
) -> None:
    @audited("create")
    async def handle(
        request: mirrors.CreateClusterMirrorRequest, context: Any
    ) -> mirrors.CreateClusterMirrorResponse:
        why = "sasl.jaas.config=hunter2 cannot be read"
        return mirrors.CreateClusterMirrorResponse(error_code=40, error_message=why)

    config = (mirrors.MirrorConfig(name="sasl.jaas.config", value="hunter2"),)
    await handle(mirrors.CreateClusterMirrorRequest(mirror_name="m", config=config), context)
    told = fields_of(lines)
    assert (told["settings"], told["error"]) == ("sasl.jaas.config", "INVALID_CONFIG")
    tell_altered("m", ["ssl.key.password"], ApiError(ErrorCode.INVALID_CONFIG, "hunter2"), context)
    assert fields_of(lines)["settings"] == "ssl.key.password"
    assert not any("hunter2" in str(vars(record)) for record in lines.records)


def test_of_many_topics_the_first_are_told(lines: pytest.LogCaptureFixture) -> None:
    names = [f"t{number}" for number in range(TOPICS_TOLD_MAX + 3)]
    tell_by_itself("start", "m", names, "topics.include")
    assert fields_of(lines)["topics"].endswith(f"t{TOPICS_TOLD_MAX - 1} and 3 more")


def test_every_step_that_the_table_allows_has_a_cause() -> None:
    for before, after in NEXT_STATES.items():
        for now in after:
            assert cause_of(before, now, "the disk is full"), (before, now)
    failed = cause_of(MirrorState.MIRRORING, MirrorState.FAILED, "the disk is full")
    assert failed == "the disk is full"
    again = cause_of(MirrorState.FAILED, MirrorState.MIRRORING, "the disk is full")
    assert again == "tried again after: the disk is full"


@pytest.mark.slow
async def test_a_partition_that_goes_on_after_a_start_has_changed_no_state(
    tmp_path: Any, lines: pytest.LogCaptureFixture
) -> None:
    async with local_broker(tmp_path / "source", QUICK) as source:
        async with local_broker(tmp_path / "here", QUICK) as here:
            pair = Pair(source, here)
            await pair.make_topic("t")
            await pair.create()
            await pair.start("t")
            await pair.until_state("MIRRORING", "t")
        lines.clear()
        async with local_broker(tmp_path / "here", QUICK) as here:
            await Pair(source, here).produce("t")
            await Pair(source, here).until_level("t")
    told = [vars(record) for record in lines.records if record.name == "twinlog.state-change"]
    assert {each["msg"] for each in told} == {"mirror partition taken up"}
    taken_up = told[0]
    assert (taken_up["state"], taken_up["state_epoch"]) == ("MIRRORING", 2)


@pytest.mark.slow
async def test_a_stop_is_told_step_by_step_with_where_it_stood(
    tmp_path: Any, lines: pytest.LogCaptureFixture
) -> None:
    async with mirrored_pair(tmp_path) as pair:
        await pair.make_topic("t")
        await pair.produce("t", 3)
        await pair.create()
        await pair.start("t")
        await pair.until_level("t")
        await pair.stop("t")
        await pair.until_state("STOPPED", "t")
    told = [vars(r) for r in lines.records if r.msg == "mirror partition changed state"]
    steps = [(each["from"], each["to"], each["cause"]) for each in told]
    assert steps == [
        ("UNKNOWN", "LOG_ALIGNMENT", "asked to be MIRRORING"),
        ("LOG_ALIGNMENT", "MIRRORING", "both logs are aligned"),
        ("MIRRORING", "STOPPING", "asked to be STOPPED"),
        ("STOPPING", "STOPPED", "the stop is done"),
    ]
    assert [each["state_epoch"] for each in told] == [1, 2, 3, 4]
    last = told[-1]
    assert (last["mirror"], last["topic"], last["partition"]) == ("m", "t", 0)
    assert (last["log_start"], last["source_offset"], last["last_mirror_offset"]) == (0, 6, 6)
    assert last["log_end"] == 7, "the reset of producers lies behind the mirrored end"
    assert last["leader_epoch"] > told[0]["leader_epoch"]
    verbs = [vars(r)["verb"] for r in lines.records if r.msg == "mirror was asked"]
    assert verbs == ["create", "start", "stop"]

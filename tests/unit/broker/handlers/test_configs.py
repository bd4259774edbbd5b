import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.brokers import LocalBroker, local_broker
from twinlog.broker.handlers.configs import handle_incremental_alter_configs
from twinlog.broker.mirrors.audit import UNFINISHED
from twinlog.model.errors import ErrorCode
from twinlog.network.peer import Peer
from twinlog.wire.messages.configs import (
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    AlterConfigsRequest,
    ConfigAlteration,
    ConfigReplacement,
    DescribeConfigsRequest,
    DescribedConfig,
    DescribedResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ResourceAlteration,
    ResourceReplacement,
    ResourceToDescribe,
)

TOPIC, BROKER, LOGGER, MIRROR = 2, 4, 8, 64
SET, DELETE, APPEND = 0, 1, 2


async def describe(
    broker: LocalBroker,
    kind: int,
    name: str,
    keys: Sequence[str] | None = None,
    version: int | None = None,
    **fields: Any,
) -> DescribedResource:
    asked = ResourceToDescribe(
        resource_type=kind,
        resource_name=name,
        configuration_keys=None if keys is None else tuple(keys),
    )
    request = DescribeConfigsRequest(resources=(asked,), **fields)
    return (await broker.ask(DESCRIBE_CONFIGS, request, version)).results[0]


async def config(broker: LocalBroker, kind: int, name: str, key: str) -> DescribedConfig:
    (found,) = (await describe(broker, kind, name, [key], include_synonyms=True)).configs
    return found


async def edit(
    broker: LocalBroker, kind: int, name: str, *edits: tuple[str, int, str | None], **fields: Any
) -> tuple[str, str | None]:
    resource = ResourceAlteration(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            ConfigAlteration(name=key, config_operation=operation, value=value)
            for key, operation, value in edits
        ),
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), **fields)
    answer = (await broker.ask(INCREMENTAL_ALTER_CONFIGS, request)).responses[0]
    return ErrorCode(answer.error_code).name, answer.error_message


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_topics_settings_are_told_with_their_sources(tmp_path: Path, version: int) -> None:
    async with local_broker(tmp_path, {"log.retention.ms": "60000"}) as broker:
        await broker.make_topic("a")
        await edit(broker, TOPIC, "a", ("segment.ms", SET, "5000"))
        answer = await describe(
            broker, TOPIC, "a", version=version, include_synonyms=True, include_documentation=True
        )
        found = {entry.name: entry for entry in answer.configs}
        sources = {name: entry.config_source for name, entry in found.items()}
        assert (found["segment.ms"].value, sources["segment.ms"]) == ("5000", 1)
        assert (found["retention.ms"].value, sources["retention.ms"]) == ("60000", 4)
        assert (found["cleanup.policy"].value, sources["cleanup.policy"]) == ("delete", 5)
        synonyms = [(s.name, s.value, s.source) for s in found["retention.ms"].synonyms]
        assert synonyms[0] == ("log.retention.ms", "60000", 4)
        if version >= 3:
            assert found["segment.ms"].config_type == 5
            assert found["segment.ms"].documentation


async def test_only_what_is_asked_is_told(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("a")
        answer = await describe(broker, TOPIC, "a", ["retention.ms", "no.such"])
        assert [entry.name for entry in answer.configs] == ["retention.ms"]
        assert answer.configs[0].synonyms == ()
        assert answer.configs[0].documentation is None


async def test_resources_that_are_not_are_told(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        for kind, name, code in [
            (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
            (BROKER, "7", ErrorCode.INVALID_REQUEST),
            (BROKER, "x", ErrorCode.INVALID_REQUEST),
            (LOGGER, "1", ErrorCode.INVALID_REQUEST),
            (77, "1", ErrorCode.INVALID_REQUEST),
            (MIRROR, "none", ErrorCode.UNKNOWN_CLUSTER_MIRROR),
        ]:
            answer = await describe(broker, kind, name)
            assert answer.error_code == code, (kind, name)
            assert answer.error_message
            refused, _ = await edit(broker, kind, name, ("retention.ms", SET, "1"))
            assert refused == code.name, (kind, name)


async def test_edits_take_effect_and_outlive_the_broker(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("a")
        assert await edit(
            broker, TOPIC, "a", ("retention.ms", SET, "1"), ("cleanup.policy", APPEND, "compact")
        ) == ("NONE", None)
    async with local_broker(tmp_path) as broker:
        assert (await config(broker, TOPIC, "a", "retention.ms")).value == "1"
        assert (await config(broker, TOPIC, "a", "cleanup.policy")).value == "delete,compact"
        await edit(broker, TOPIC, "a", ("retention.ms", DELETE, None))
        assert (await config(broker, TOPIC, "a", "retention.ms")).config_source == 5


async def test_a_wrong_edit_changes_nothing_and_says_why(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("a")
        code, why = await edit(
            broker, TOPIC, "a", ("segment.ms", SET, "5"), ("retention.ms", SET, "soon")
        )
        assert code == "INVALID_CONFIG"
        assert why is not None
        assert "retention.ms=soon" in why
        assert (await config(broker, TOPIC, "a", "segment.ms")).config_source == 5


async def test_to_validate_changes_nothing(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("a")
        change = ("retention.ms", SET, "1")
        assert await edit(broker, TOPIC, "a", change, validate_only=True) == ("NONE", None)
        assert (await config(broker, TOPIC, "a", "retention.ms")).config_source == 5


async def test_of_many_resources_each_is_changed_or_refused_alone(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("a")
        edits = (ConfigAlteration(name="retention.ms", config_operation=SET, value="1"),)
        resources = tuple(
            ResourceAlteration(resource_type=TOPIC, resource_name=name, configs=edits)
            for name in ("a", "none", "b", "b")
        )
        request = IncrementalAlterConfigsRequest(resources=resources)
        answer = await broker.ask(INCREMENTAL_ALTER_CONFIGS, request)
        assert [ErrorCode(r.error_code).name for r in answer.responses] == [
            "NONE",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "INVALID_REQUEST",
            "INVALID_REQUEST",
        ]
        assert (await config(broker, TOPIC, "a", "retention.ms")).value == "1"


async def test_the_older_request_gives_all_configs_anew(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("a")
        await edit(broker, TOPIC, "a", ("retention.ms", SET, "1"))
        anew = ResourceReplacement(
            resource_type=TOPIC,
            resource_name="a",
            configs=(ConfigReplacement(name="segment.ms", value="7"),),
        )
        answer = await broker.ask(ALTER_CONFIGS, AlterConfigsRequest(resources=(anew,)))
        assert answer.responses[0].error_code == ErrorCode.NONE
        assert (await config(broker, TOPIC, "a", "segment.ms")).value == "7"
        assert (await config(broker, TOPIC, "a", "retention.ms")).config_source == 5


async def test_a_broker_tells_its_own_settings_and_takes_dynamic_ones(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        assert (await config(broker, BROKER, "1", "node.id")).value == "1"
        assert (await config(broker, BROKER, "1", "node.id")).read_only
        code, why = await edit(broker, BROKER, "1", ("node.id", SET, "5"))
        assert code == "INVALID_REQUEST"
        assert why is not None
        assert "server.properties" in why
        change = ("log.retention.ms", SET, "70000")
        assert await edit(broker, BROKER, "", change) == ("NONE", None)
        retention = await config(broker, BROKER, "1", "log.retention.ms")
        assert (retention.value, retention.config_source) == ("70000", 3)
        every = await describe(broker, BROKER, "")
        assert [(c.name, c.value, c.config_source) for c in every.configs] == [
            ("log.retention.ms", "70000", 3)
        ]
        await broker.make_topic("a")
        assert (await config(broker, TOPIC, "a", "retention.ms")).config_source == 3


async def test_what_has_configs_is_listed(tmp_path: Path) -> None:
    async with local_broker(tmp_path) as broker:
        await broker.make_topic("a")

        async def listed(version: int, *kinds: int) -> list[tuple[int, str]]:
            request = ListConfigResourcesRequest(resource_types=kinds)
            answer = await broker.ask(LIST_CONFIG_RESOURCES, request, version)
            return [(r.resource_type, r.resource_name) for r in answer.config_resources]

        assert await listed(1) == [(TOPIC, "a"), (BROKER, ""), (BROKER, "1")]
        assert await listed(1, TOPIC) == [(TOPIC, "a")]
        assert await listed(1, MIRROR) == []
        assert await listed(0) == []
        answer = await broker.ask(
            LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(resource_types=(99,)), 1
        )
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_who_alters_a_mirror_is_told_also_if_nobody_waits_for_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def change(_: Any) -> None:
        await asyncio.Event().wait()

    facts: Any = SimpleNamespace(change=change)
    context: Any = SimpleNamespace(
        broker=SimpleNamespace(facts=facts), client_id="tool", peer=Peer("h", 1, "PLAINTEXT")
    )
    secret = ConfigAlteration(name="ssl.key.password", config_operation=SET, value="hush")
    resource = ResourceAlteration(resource_type=MIRROR, resource_name="m", configs=(secret,))
    request = IncrementalAlterConfigsRequest(resources=(resource,))
    with caplog.at_level(logging.INFO, logger="twinlog.state-change"):
        asking = asyncio.ensure_future(handle_incremental_alter_configs(request, context))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    (told,) = (vars(record) for record in caplog.records)
    assert (told["verb"], told["mirror"], told["settings"]) == ("alter", "m", "ssl.key.password")
    assert told["error"] == UNFINISHED
    assert "hush" not in str(told)

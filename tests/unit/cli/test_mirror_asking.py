"""What every verb of mirrors asks first; the rest is tested through the verbs."""

import argparse
import asyncio
from pathlib import Path

import pytest

from support.answering_broker import AnsweringBroker, answering_broker
from support.mirror_answers import filters
from twinlog.cli.failures import CliError
from twinlog.cli.mirror_asking import (
    matching,
    some_matching,
    source_of,
    topics_not_here,
    words,
)
from twinlog.wire.messages.mirrors import ListedMirror

MIRROR = ListedMirror(mirror_name="m", source_bootstrap="s:1", topic_names=("b", "a", "aa"))


def test_names_have_commas_between_them() -> None:
    assert words(" a, b.*,, ") == ("a", "b.*")
    assert words(None) == ()


def test_no_topics_are_all_of_the_mirrors_topics() -> None:
    assert matching(MIRROR, None) == ["a", "aa", "b"]
    assert matching(MIRROR, "a,c") == ["a"]
    assert some_matching(MIRROR, "a.*") == ["a", "aa"]


def test_no_match_and_no_topic_are_told_apart() -> None:
    with pytest.raises(CliError, match="no topic of mirror m matches c: see them with"):
        some_matching(MIRROR, "c")
    with pytest.raises(CliError, match="no topic of mirror m matches c, d: see them with"):
        some_matching(MIRROR, "a.*,c,b,d")
    with pytest.raises(CliError, match="no topic of mirror m is there: see them with"):
        some_matching(ListedMirror(mirror_name="m", source_bootstrap="s:1"), None)


def connect(mirror: ListedMirror, file: Path | None = None) -> str | None:
    """Connect to a mirror's source; give the cluster's id."""

    async def run() -> str | None:
        options = argparse.Namespace(source_command_config=file)
        async with source_of(mirror, options) as source:
            return (await source.metadata([])).cluster_id

    return asyncio.run(run())


def test_the_source_is_where_the_mirror_says_or_where_the_file_does(
    broker: AnsweringBroker, tmp_path: Path
) -> None:
    there = ListedMirror(
        mirror_name="m", source_bootstrap=broker.bootstrap, source_cluster_id="answering"
    )
    assert connect(there) == "answering"
    file = tmp_path / "source.properties"
    file.write_text(f"bootstrap.servers={broker.bootstrap}\n")
    assert connect(MIRROR, file) == "answering"


@pytest.mark.parametrize(
    ("include", "named", "found"),
    [
        (".*", ".*", ["bills", "orders"]),
        (".*", "orders,nothing", ["orders"]),
        ("bi.*", ".*", ["bills"]),
        ("", ".*", []),
    ],
)
def test_topics_that_the_filters_mean_and_are_not_here_are_found(
    broker: AnsweringBroker, include: str, named: str, found: list[str]
) -> None:
    filters(broker, topics_include=include, topics_exclude="pri.*")
    broker.logs["here", 0] = b""

    async def run(source: AnsweringBroker) -> list[str]:
        there = ListedMirror(mirror_name="m", source_bootstrap=source.bootstrap)
        here = ListedMirror(mirror_name="m", source_bootstrap=broker.bootstrap)
        options = argparse.Namespace(source_command_config=None)
        async with source_of(here, options) as ours, source_of(there, options) as theirs:
            return await topics_not_here(ours, theirs, "m", named)

    with answering_broker() as source:
        for name in ("here", "orders", "bills", "private", "__consumer_offsets"):
            source.logs[name, 0] = b""
        assert asyncio.run(run(source)) == found


def test_a_source_that_is_away_or_another_cluster_is_refused(broker: AnsweringBroker) -> None:
    away = ListedMirror(mirror_name="m", source_bootstrap="127.0.0.1:1")
    with pytest.raises(CliError, match=r"is bootstrap.servers of mirror m's source right\?"):
        connect(away)
    nowhere = ListedMirror(mirror_name="m", source_bootstrap="")
    with pytest.raises(CliError, match=r"bootstrap.servers of mirror m's source: no address"):
        connect(nowhere)
    other = ListedMirror(
        mirror_name="m", source_bootstrap=broker.bootstrap, source_cluster_id="lost"
    )
    with pytest.raises(CliError, match="is cluster lost, but answering answers at 127"):
        connect(other)
